// What the pages share: requests, problems, numbers.

export { figure, html, labelName, number, percent, plural, svg, ticks } from "/assets/dom.js";

export const find = (id) => document.getElementById(id);

/** Asks the server; a refusal becomes an Error with `field`. */
export async function ask(address, body) {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(address, body === undefined ? {} : post);
  } catch {
    throw new Error("The server does not answer. Is `fedcote serve` still running?");
  }
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw Object.assign(new Error(answer.error), { field: answer.field, status: response.status });
  return answer;
}

/** Shows a problem, or hides it. */
export function complain(text, element = find("problem")) {
  if (element.textContent !== (text ?? "")) element.textContent = text ?? "";
  element.hidden = !text;
}

/** Puts a text where it is not there already: what is read aloud is read once. */
export function put(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text;
}

/** The address of a run's name; a combination of a sweep has the sweep's name before its own. */
export const runPath = (name) => name.split("/").map(encodeURIComponent).join("/");

/** A time span in words. */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** Day and time of a number of seconds since 1970. */
export const when = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

/** What the address asks for, and how to change it without a new page. */
export const address = {
  get: (key) => new URLSearchParams(location.search).get(key),
  set(values) {
    const words = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(values)) {
      if (value === null || value === undefined || value === "") words.delete(key);
      else words.set(key, value);
    }
    const text = words.toString();
    if (text !== location.search.slice(1)) history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
  },
};

/** Runs a function at the next frame, once however often it is called before; `pause` is how long to wait at least. */
export function coalesced(draw, pause = () => 0) {
  let waiting = false;
  const now = () =>
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  return () => {
    if (waiting) return;
    waiting = true;
    if (pause()) setTimeout(now, pause());
    else now();
  };
}

/** Runs an asynchronous function with the latest arguments, one call at a time. */
export function latest(work) {
  let busy = false;
  let next = null;
  return async function call(...values) {
    next = values;
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const now = next;
        next = null;
        await work(...now);
      }
    } finally {
      busy = false;
    }
  };
}
