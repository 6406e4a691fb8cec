// What the pages share: elements, requests, numbers.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with properties and children; texts are never read as HTML. */
export function html(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element && key !== "for" && key !== "role") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** An SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A figure that says in words what it shows. */
export function figure(width, height, description, ...children) {
  const box = { class: "fig", viewBox: `0 0 ${width} ${height}`, width, height };
  return svg("svg", { ...box, role: "img", "aria-label": description }, ...children);
}

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
  element.textContent = text ?? "";
  element.hidden = !text;
}

export const percent = (share, digits = 1) => (share === undefined || share === null ? "–" : `${(100 * share).toFixed(digits)} %`);

/** A small number, readable. */
export function small(value) {
  if (value === undefined || value === null) return "–";
  if (value < 1e-9) return "0";
  return value >= 0.01 ? value.toFixed(3) : value.toExponential(1);
}

export const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

/** The names of labels 0, 1, …: short, the same everywhere. */
export const labelName = (index) => String(index);

/** Runs a function at the next frame, once however often it is called before. */
export function coalesced(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
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
    while (next) {
      const now = next;
      next = null;
      await work(...now);
    }
    busy = false;
  };
}

/** Round numbers between two bounds, about so many. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) ?? power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(+(at * step).toPrecision(12));
  return found;
}
