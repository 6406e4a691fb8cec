// One run as it happens: events in, figures out.

import { ask, coalesced, complain, find, html, latest, percent, plural, small } from "/assets/common.js";
import { curves, labelBars } from "/assets/figures.js";
import { NetworkMap } from "/assets/map.js";
import { State } from "/assets/state.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const base = `/api/runs/${encodeURIComponent(name)}`;
const state = new State();
const map = new NetworkMap(find("map"));
/** What is looked at; `round` null follows the run. */
const view = { scheme: null, chosen: false, seed: null, round: null, places: [], placed: null };

const key = () => `${view.scheme}/${view.seed}`;
const shown = () => view.round ?? Math.max(1, state.runs.get(key())?.rounds.length ?? 1);

/** Fills a select without losing what was picked. */
function options(select, values, picked) {
  const same = [...select.options].map((option) => option.value).join() === values.join();
  if (!same) select.replaceChildren(...values.map((value) => html("option", { value }, String(value))));
  select.value = picked;
}

/** The scheme to begin with: FedCote if it is there and has begun. */
function pick() {
  const { schemes, seeds } = state.general;
  const begun = (scheme) => state.runs.get(`${scheme}/${view.seed}`)?.rounds.length;
  if (!seeds.includes(view.seed)) view.seed = seeds[0];
  if (!schemes.includes(view.scheme) || !view.chosen) {
    const fresh = schemes.includes("fedcote") ? "fedcote" : schemes[0];
    view.scheme = begun(fresh) ? fresh : (schemes.find(begun) ?? fresh);
  }
}

let told = "";

function head() {
  const { schemes, seeds, rounds, clients, selected } = state.general;
  find("facts").textContent = `${plural(schemes.length, "scheme")} · ${plural(seeds.length, "seed")} · ${plural(rounds, "round")} · ${plural(clients, "client")}, ${plural(selected, "draw")} a round`;
  const now = state.status;
  const word = now ? { running: now.own ? "running" : "running elsewhere", finished: "finished", stopped: "stopped", failed: "failed" }[now.state] : "";
  if (find("state").textContent !== word) {
    find("state").textContent = word;
    find("state").className = `state ${now?.state ?? ""}`;
  }
  find("stop").hidden = !(now?.state === "running" && now.own);
  find("resume").hidden = !["stopped", "failed"].includes(now?.state);
  const notices = [now?.message, ...state.notices].filter(Boolean).join(" ");
  if (notices !== told) complain((told = notices) || null);
  document.title = `${name} · ${word} · FedCote`;
}

function scrubber() {
  const { rounds } = state.general;
  const slider = find("round");
  slider.max = Math.max(1, state.last);
  slider.disabled = state.last === 0;
  slider.value = shown();
  slider.setAttribute("aria-valuetext", `round ${shown()} of ${rounds}`);
  find("shown").textContent = state.last ? `${shown()} of ${rounds}` : "–";
  find("follow").setAttribute("aria-pressed", String(view.round === null));
  options(find("scheme"), state.general.schemes, view.scheme);
  options(find("seed"), state.general.seeds, view.seed);
}

function accuracy() {
  const { schemes, rounds } = state.general;
  const lines = schemes.map((scheme, at) => ({ name: scheme, style: state.styles[at], points: state.curve(scheme), emphasised: scheme === view.scheme }));
  const width = Math.max(280, find("accuracy").clientWidth);
  find("accuracy").replaceChildren(curves(width, Math.round(Math.min(340, 0.62 * width)), lines, rounds, state.last, shown()));
  const rows = schemes.map((scheme, at) => {
    const runs = state.of(scheme);
    const done = runs.reduce((sum, run) => sum + run.rounds.length, 0);
    const diverged = runs.some((run) => run.diverged) ? " (diverged)" : "";
    const swatch = html("span", { className: `swatch ${state.styles[at].join(" ")}`, "aria-hidden": "true" });
    const cells = [
      percent(state.mean(scheme, (run) => run.accuracy(shown())), 2) + diverged,
      state.mean(scheme, (run) => run.upTo(shown()).arrivals)?.toFixed(2) ?? "–",
      small(state.mean(scheme, (run) => run.divergence(shown()))),
      `${done} / ${rounds * state.general.seeds.length}`,
    ];
    const row = html("tr", {}, html("th", { scope: "row" }, swatch, scheme), ...cells.map((cell) => html("td", {}, cell)));
    row.dataset.scheme = scheme;
    return row;
  });
  find("table").tBodies[0].replaceChildren(...rows);
}

function labels() {
  const element = find("labels");
  const panels = state.general.schemes.map((scheme, at) => {
    const run = state.runs.get(`${scheme}/${view.seed}`);
    const all = run?.clients?.global_labels;
    const chi = run ? run.divergence(shown()) : undefined;
    const title = html("h3", {}, scheme, " ", html("span", { className: "facts" }, `χ² ${small(chi)}`));
    if (!all) return html("div", {}, title, html("p", { className: "hint" }, "not begun"));
    const mine = run.upTo(shown()).labels;
    const words = all.map((share, label) => `label ${label}: ${percent(mine?.[label] ?? 0)} of ${percent(share)}`);
    const bars = labelBars(280, 130, all, [{ shares: mine, style: state.styles[at][0] }], `Labels that took part with ${scheme} up to round ${shown()}. ${words.join("; ")}.`);
    return html("div", {}, title, bars);
  });
  element.replaceChildren(...panels);
}

const names = (clients, list) => list.map(([index, copies]) => (copies > 1 ? `${clients[index]?.id ?? index + 1} (${copies}×)` : (clients[index]?.id ?? String(index + 1)))).join(", ") || "nobody";

function round() {
  const run = state.runs.get(key());
  const clients = run?.clients?.clients;
  const now = run?.rounds[shown() - 1];
  if (!clients || !now) {
    const ended = run?.rounds.length ? `This run has ${plural(run.rounds.length, "round")} so far.` : "This run has not begun.";
    find("round-text").textContent = ended;
    if (!clients) map.clear();
    view.placed = null;
    return;
  }
  const drawn = new Map(now.selected);
  const arrived = new Map(now.arrived);
  const failed = now.selected.map(([client, copies]) => [client, copies - (arrived.get(client) ?? 0)]).filter(([, copies]) => copies > 0);
  const again = now.attempts > 1 ? ` It took ${now.attempts} attempts until anything arrived.` : "";
  const many = clients.length > 100;
  const sum = (list) => list.reduce((total, [, copies]) => total + copies, 0);
  const text = many
    ? `Round ${now.round}: ${sum(now.selected)} draws, ${sum(now.arrived)} uploads arrived, ${sum(failed)} failed.${again}`
    : `Round ${now.round}: arrived ${names(clients, now.arrived)}; failed ${names(clients, failed)}.${again}`;
  find("round-text").textContent = text;
  if (clients.length > 2000) return void map.element.replaceChildren(html("p", { className: "hint" }, "Too many clients to draw one by one."));
  if (view.placed !== key()) return void place();
  if (view.plan?.walks) walk();
  map.draw(view.places, drawn, arrived, `Map of ${view.scheme}, seed ${view.seed}. ${text}`);
}

/** Fetches cell, stations and places when another run is looked at. */
const place = latest(async () => {
  const wanted = key();
  const seed = view.seed;
  try {
    view.plan = await ask(`${base}/map?seed=${seed}`);
    view.places = view.plan ? await ask(`${base}/places?seed=${seed}&round=${shown()}`) : [];
  } catch {
    [view.plan, view.places] = [null, []];
  }
  const clients = state.runs.get(wanted)?.clients?.clients;
  if (wanted !== key() || !clients) return;
  view.placed = wanted;
  view.at = shown();
  map.layOut(view.plan, clients);
  draw();
});

/** Fetches where walking clients are in the round shown. */
const walk = latest(async () => {
  const [wanted, at] = [key(), shown()];
  if (view.at === at) return;
  try {
    const places = await ask(`${base}/places?seed=${view.seed}&round=${at}`);
    if (wanted !== key()) return;
    [view.places, view.at] = [places, at];
    draw();
  } catch {
    view.at = at;
  }
});

let offered = "";

/** What can be saved grows with the run. */
async function downloads() {
  const begun = state.last > 0;
  const offer = `${begun} ${state.status?.state}`;
  if (offer === offered) return;
  offered = offer;
  const link = (file, text) => html("li", {}, html("a", { href: `/runs/${encodeURIComponent(name)}/${file}` }, text));
  const items = [link("scenario.toml", "Scenario (TOML)")];
  if (begun) {
    items.unshift(link("report.html", "Report"), link("summary.csv", "Summary (CSV)"), link("rounds.csv", "All rounds (CSV)"));
    const figures = await ask(`${base}/figures`).catch(() => []);
    items.push(...figures.map((id) => link(`${id}.svg`, `Figure: ${id} (SVG)`)));
  }
  find("downloads").replaceChildren(...items);
}

const draw = coalesced(() => {
  if (!state.general) return;
  pick();
  head();
  scrubber();
  accuracy();
  labels();
  round();
  downloads();
});

let source = null;
let last = "";

/** Listens to the run, from the last event that was seen. */
function listen() {
  if (source || document.hidden) return;
  source = new EventSource(`${base}/events${last ? `?last=${encodeURIComponent(last)}` : ""}`);
  const mine = source;
  for (const kind of ["reset", "scenario", "status", "clients", "rounds", "cut", "diverged", "notice"]) {
    mine.addEventListener(kind, (event) => {
      if (event.lastEventId) last = event.lastEventId;
      if (kind === "reset") view.placed = null;
      state.take(kind, JSON.parse(event.data));
      draw();
    });
  }
  mine.addEventListener("open", () => complain(null, find("connection")));
  mine.addEventListener("error", () => {
    complain("The connection is gone; trying again. Is `fedcote serve` still running?", find("connection"));
    // A refusal ends the browser's own attempts, a broken line does not.
    if (mine.readyState === EventSource.CLOSED && source === mine) {
      source = null;
      setTimeout(listen, 2000);
    }
  });
}

/** A page that nobody looks at needs no line of its own: browsers have few of them for one server. */
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return listen();
  source?.close();
  source = null;
});

async function tell(verb) {
  complain(null);
  find(verb).disabled = true;
  try {
    await ask(`${base}/${verb}`, {});
  } catch (error) {
    complain(error.message);
  }
  find(verb).disabled = false;
}

find("name").textContent = name;
find("stop").addEventListener("click", () => tell("stop"));
find("resume").addEventListener("click", () => tell("resume"));
find("round").addEventListener("input", (event) => {
  view.round = Number(event.target.value);
  draw();
});
find("follow").addEventListener("click", () => {
  view.round = view.round === null ? shown() : null;
  draw();
});
find("scheme").addEventListener("change", (event) => {
  view.scheme = event.target.value;
  view.chosen = true;
  draw();
});
find("seed").addEventListener("change", (event) => {
  view.seed = Number(event.target.value);
  draw();
});
addEventListener("resize", draw);
listen();
