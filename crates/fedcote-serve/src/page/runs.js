// The table of runs; `form.js` starts one.

import { address, ask, complain, find, html, percent, plural, put, runPath, span, when } from "/assets/common.js";
import { begin, taken } from "/assets/form.js";

const STATES = { running: "running", finished: "finished", stopped: "stopped", failed: "failed", damaged: "damaged" };
let runs = [];
const ticked = new Set((address.get("tick") ?? "").split("/").filter(Boolean));
const order = { by: address.get("sort") ?? "begun", down: address.get("order") !== "up" };

/** More rows than these are shown when they are asked for: the form below stays near. */
const ROWS = 50;
let every = false;

/** What a column is sorted by. */
const KEYS = {
  name: (run) => run.name.toLowerCase(),
  state: (run) => run.state,
  accuracy: (run) => run.best?.mean ?? -1,
  size: (run) => run.total,
  begun: (run) => run.begun,
  seconds: (run) => run.seconds ?? -1,
};

function shown() {
  const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (run) => [run.name, run.state, ...(run.schemes ?? []), run.sweep ? "sweep" : "", ...(run.sweep?.[0] ?? [])].join(" ").toLowerCase();
  const key = KEYS[order.by] ?? KEYS.begun;
  const compare = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
  return runs.filter((run) => words.every((word) => text(run).includes(word))).sort((a, b) => (order.down ? compare(b, a) : compare(a, b)));
}

function entry(run) {
  const share = run.total ? run.done / run.total : 0;
  const tick = html("input", { type: "checkbox", checked: ticked.has(run.name), "aria-label": `Compare ${run.name}` });
  tick.addEventListener("change", () => {
    if (tick.checked) ticked.add(run.name);
    else ticked.delete(run.name);
    offer();
  });
  const state = html("td", {}, html("span", { className: `state ${run.state}` }, STATES[run.state] ?? run.state));
  if (run.state !== "finished" && run.state !== "damaged") state.append(html("progress", { max: 1, value: share, "aria-label": `Progress of ${run.name}` }), html("span", { className: "facts" }, ` ${Math.floor(100 * share)} %`));
  if (run.message) state.append(html("span", { className: "note-line" }, run.message));
  const best = run.best ? `${run.best.name} ${percent(run.best.mean, 2)}${run.best.std > 0 ? ` ± ${(100 * run.best.std).toFixed(2)}` : ""}` : "–";
  const [keys, points] = run.sweep ?? [];
  const grid = keys ? `sweep over ${keys.join(", ")}: ${plural(points, "combination")} of ` : "";
  const size = run.schemes ? `${grid}${plural(run.schemes.length, "scheme")}, ${plural(run.seeds.length, "seed")}, ${plural(run.rounds, "round")}, ${plural(run.clients, "client")}` : "–";
  if (keys) tick.disabled = true, tick.title = "a sweep has a page that compares its combinations";
  const link = html("a", { href: `/runs/${runPath(run.name)}` }, run.name);
  const again = html("a", { href: `/?again=${encodeURIComponent(run.name)}#start`, "aria-label": `Run ${run.name} again with changes` }, "again");
  const bin = html("button", { type: "button", className: "quiet", disabled: run.state === "running", "aria-label": `Move ${run.name} to the bin` }, "delete");
  bin.addEventListener("click", () => remove(run.name));
  return html("tr", {}, html("td", {}, tick), html("th", { scope: "row" }, link), state, html("td", {}, best), html("td", { className: "facts", title: run.schemes?.join(", ") ?? "" }, size), html("td", {}, when(run.begun)), html("td", {}, run.seconds ? span(run.seconds) : "–"), html("td", { className: "row-actions" }, run.schemes ? again : "", bin));
}

/** The link that compares; two runs or more make sense. */
function offer() {
  const chosen = runs.map((run) => run.name).filter((name) => ticked.has(name));
  const link = find("compare");
  link.toggleAttribute("aria-disabled", chosen.length < 2);
  link.textContent = chosen.length > 1 ? `Compare ${chosen.length} runs` : "Tick two runs to compare them";
  if (chosen.length > 1) link.href = `/compare?${chosen.map((name) => `run=${encodeURIComponent(name)}`).join("&")}`;
  else link.removeAttribute("href");
}

async function remove(name) {
  if (!confirm(`Move ${name} to the bin (the folder .bin beside the runs)?`)) return;
  try {
    await ask(`/api/runs/${encodeURIComponent(name)}/delete`, {});
    complain(null, find("list-problem"));
  } catch (error) {
    complain(error.message, find("list-problem"));
  }
  await read();
}

let before = "";

function draw() {
  const found = shown();
  const listed = every ? found : found.slice(0, ROWS);
  find("all").hidden = found.length <= ROWS;
  put("all", every ? `Show the first ${ROWS}` : `Show all ${found.length}`);
  const now = JSON.stringify([listed, [...ticked], order]);
  if (now === before) return;
  before = now;
  // Focus stays where it was, although the table is made anew.
  const focus = document.activeElement?.closest?.("#runs tbody") && document.activeElement.getAttribute("aria-label") + document.activeElement.getAttribute("href");
  find("runs").tBodies[0].replaceChildren(...listed.map(entry));
  if (focus) [...find("runs").querySelectorAll("tbody a, tbody button, tbody input")].find((element) => element.getAttribute("aria-label") + element.getAttribute("href") === focus)?.focus();
  for (const head of find("runs").querySelectorAll("[data-sort]")) head.setAttribute("aria-sort", head.dataset.sort !== order.by ? "none" : order.down ? "descending" : "ascending");
  offer();
}

async function read() {
  try {
    runs = await ask("/api/runs");
    const running = runs.filter((run) => run.state === "running").length;
    put("status", runs.length ? `${plural(runs.length, "run")}, ${running} running` : "No runs here yet. Start one below.");
    taken(runs.map((run) => run.name));
    draw();
  } catch (error) {
    put("status", error.message);
  }
}

async function keepReading() {
  await read();
  setTimeout(keepReading, document.hidden ? 10000 : 2000);
}

for (const head of find("runs").querySelectorAll("[data-sort]")) {
  head.querySelector("button").addEventListener("click", () => {
    order.down = order.by === head.dataset.sort ? !order.down : head.dataset.sort !== "name";
    order.by = head.dataset.sort;
    address.set({ sort: order.by, order: order.down ? null : "up" });
    draw();
  });
}
find("all").addEventListener("click", () => {
  every = !every;
  draw();
});
find("search").value = address.get("search") ?? "";
find("search").addEventListener("input", () => {
  address.set({ search: find("search").value });
  draw();
});
await keepReading();
await begin(address.get("again"));
// Shown when it has its place: rows come before it.
find("start-section").classList.remove("later");
