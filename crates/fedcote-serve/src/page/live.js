// One run as it happens: events in, figures out.

import { address, ask, coalesced, complain, find, html, latest, number, percent, plural, put, runPath, span, when } from "/assets/common.js";
import { Chart } from "/assets/chart.js";
import { horizon } from "/assets/series.js";
import { clientPanel } from "/assets/client.js";
import { labelBars } from "/assets/bars.js";
import { NetworkMap } from "/assets/map.js";
import { State, count } from "/assets/state.js";
import { strip } from "/assets/strip.js";

/** A combination of a sweep has the sweep's name before its own. */
const name = location.pathname.split("/").slice(2).map(decodeURIComponent).join("/");
const sweep = name.includes("/") ? name.split("/")[0] : null;
const base = `/api/runs/${runPath(name)}`;
const state = new State();
const chart = new Chart(find("accuracy"), ({ measure, axis, hidden }) => address.set({ measure, axis, hide: hidden.join(",") }));
/** What is looked at: `round` null is the last one; `follow` goes along with the run that grows. */
const asked = (key) => address.get(key);
const view = {
  scheme: asked("scheme"),
  seed: asked("seed") === null ? null : Number(asked("seed")),
  round: asked("round") === null ? null : Number(asked("round")),
  client: asked("client"),
  follow: asked("scheme") === null && asked("seed") === null && asked("round") === null,
  places: [],
  placed: null,
};
Object.assign(chart.view, { measure: asked("measure") ?? "test_accuracy", axis: asked("axis") ?? "round", hidden: asked("hide")?.split(",") ?? [] });
/** Whether the client is to be brought into view. */
let reveal = false;
const map = new NetworkMap(find("map"), (client) => {
  reveal = client !== view.client;
  look({ client: reveal ? client : null });
});

const key = () => `${view.scheme}/${view.seed}`;
const shown = () => Math.max(1, view.round ?? state.runs.get(key())?.rounds.length ?? 1);

/** Looks at something else, and says so in the address. */
function look(change) {
  Object.assign(view, change);
  address.set(view.follow ? { scheme: null, seed: null, round: null, client: view.client } : { scheme: view.scheme, seed: view.seed, round: view.round, client: view.client });
  draw();
}

/** Fills a select without losing what was picked. */
function options(select, values, picked) {
  const same = [...select.options].map((option) => option.value).join() === values.join();
  if (!same) select.replaceChildren(...values.map((value) => html("option", { value }, String(value))));
  select.value = picked;
}

/** Follows the run that grows; otherwise begins with FedCote, if it has begun. */
function pick() {
  const { schemes, seeds } = state.general;
  const growing = view.follow ? state.growing(key()) : null;
  if (growing) {
    const cut = growing.lastIndexOf("/");
    [view.scheme, view.seed] = [growing.slice(0, cut), Number(growing.slice(cut + 1))];
  }
  if (!seeds.includes(view.seed)) view.seed = seeds[0];
  const begun = (scheme) => state.runs.get(`${scheme}/${view.seed}`)?.rounds.length;
  if (!schemes.includes(view.scheme) || (view.follow && !begun(view.scheme))) {
    const fresh = schemes.includes("fedcote") ? "fedcote" : schemes[0];
    view.scheme = begun(fresh) ? fresh : (schemes.find(begun) ?? fresh);
  }
}

function head() {
  const { schemes, seeds, rounds, clients, selected } = state.general;
  const begun = state.begun ? ` · started ${when(state.begun)}` : "";
  put("facts", `${plural(schemes.length, "scheme")} · ${plural(seeds.length, "seed")} · ${plural(rounds, "round")} · ${plural(clients, "client")}, ${plural(selected, "draw")} a round${begun}`);
  const now = state.status;
  const word = now?.state ?? "";
  put("state", word);
  find("state").className = `state ${word}`;
  find("stop").hidden = !(word === "running" && now.own);
  find("resume").hidden = sweep !== null || !["stopped", "failed"].includes(word);
  const notices = [now?.message, ...state.notices].filter(Boolean).join(" ");
  complain(notices || told || null);
  document.title = `${name} · ${word} · FedCote`;
}

/** How far all runs are, how fast, and how long it takes still. */
function pace() {
  const { done, total } = state.progress();
  const share = total ? done / total : 0;
  find("progress").value = share;
  const words = [`${Math.floor(100 * share)} %`, `${done.toLocaleString("en")} of ${plural(total, "round")} over all runs`];
  // Until the server says how the run stands, what it has is still coming in.
  if (!state.status) words.unshift("Loading");
  if (state.status?.state === "running") {
    if (state.begun) words.push(`${span(Date.now() / 1000 - state.begun)} since it was started`);
    const rate = state.rate(Date.now());
    if (rate > 0) words.push(`${number(rate)} rounds a second`, `about ${span((total - done) / rate)} left`);
  }
  put("pace", words.join(" · "));
}

function scrubber() {
  const { rounds } = state.general;
  const slider = find("round");
  const [at, running] = [shown(), state.status?.state === "running"];
  slider.max = horizon(rounds, state.last);
  slider.disabled = state.last === 0;
  slider.value = at;
  slider.setAttribute("aria-valuetext", `round ${at} of ${rounds}`);
  put("shown", state.last ? `${at} of ${rounds}` : "–");
  find("follow").hidden = !running;
  find("follow").setAttribute("aria-pressed", String(view.follow));
  find("play").hidden = state.last === 0 || (running && view.follow);
  put("play", playing ? "Pause" : "Play");
  options(find("scheme"), state.general.schemes, view.scheme);
  options(find("seed"), state.general.seeds, view.seed);
}

function table() {
  const { schemes, rounds, seeds } = state.general;
  const spread = (found, write) => (found ? write(found.mean) + (found.deviation === null ? "" : ` ± ${write(found.deviation)}`) : "–");
  const rows = schemes.map((scheme, at) => {
    const runs = state.of(scheme);
    const done = runs.reduce((sum, run) => sum + run.rounds.length, 0);
    const blown = runs.filter((run) => run.diverged).length;
    const swatch = html("span", { className: `swatch ${state.styles[at].join(" ")}`, "aria-hidden": "true" });
    const over = (value) => state.over(scheme, shown(), value);
    const accuracy = over((run) => run.last("test_accuracy", shown()));
    const cells = [
      spread(accuracy, (value) => percent(value, 2)),
      spread(over((run) => run.mean("arrivals", shown())), (value) => value.toFixed(2)),
      number(over((run) => run.mean("label_divergence_wanted", shown()))?.mean),
      number(over((run) => run.mean("label_divergence_realised", shown()))?.mean),
      `${accuracy?.count ?? 0} of ${seeds.length}${blown ? `, ${blown} diverged` : ""}`,
      `${done} / ${rounds * seeds.length}`,
    ];
    const row = html("tr", {}, html("th", { scope: "row" }, swatch, scheme), ...cells.map((cell) => html("td", {}, cell)));
    row.dataset.scheme = scheme;
    return row;
  });
  find("table").tBodies[0].replaceChildren(...rows);
}

/** What the selections warn of; schemes that say the same stand together. */
function warnings() {
  const said = new Map();
  for (const [run, { clients }] of state.runs) {
    for (const text of clients?.warnings ?? []) said.set(text, (said.get(text) ?? new Set()).add(run.replace(/\/(?=[^/]*$)/, ", seed ")));
  }
  find("warnings-section").hidden = said.size === 0;
  if (find("warnings").childElementCount === said.size) return;
  find("warnings").replaceChildren(...[...said].map(([text, schemes]) => html("li", {}, `${[...schemes].join("; ")}: ${text}`)));
}

function labels() {
  const runs = state.general.schemes.map((scheme) => state.runs.get(`${scheme}/${view.seed}`));
  const shares = runs.map((run) => (run?.clients ? run.labels(shown()) : null));
  const most = Math.max(0, ...runs.flatMap((run) => run?.clients?.global_labels ?? []), ...shares.flatMap((mine) => mine ?? []));
  const panels = state.general.schemes.map((scheme, at) => {
    const all = runs[at]?.clients?.global_labels;
    const title = html("h3", {}, scheme);
    if (!all) return html("div", {}, title, html("p", { className: "hint" }, "not begun"));
    const words = all.map((share, label) => `label ${label}: ${percent(shares[at]?.[label] ?? 0)} of ${percent(share)}`);
    return html("div", {}, title, labelBars(280, 130, all, [{ shares: shares[at], style: state.styles[at][0] }], `Labels that took part with ${scheme} up to round ${shown()}. ${words.join("; ")}.`, most));
  });
  find("labels").replaceChildren(...panels);
}

const names = (clients, list) => list.map(([index, copies]) => (copies > 1 ? `${clients[index]?.id ?? index + 1} (${copies}×)` : (clients[index]?.id ?? String(index + 1)))).join(", ") || "nobody";

function round() {
  const run = state.runs.get(key());
  const clients = run?.clients?.clients;
  const now = run?.rounds[shown() - 1];
  const every = state.general.clients;
  const [selected, came] = [now?.selected ?? [], now?.arrived ?? []];
  const [drawn, arrived] = [new Map(selected), new Map(came)];
  const failed = selected.map(([client, copies]) => [client, copies - (arrived.get(client) ?? 0)]).filter(([, copies]) => copies > 0);
  const again = now?.attempts > 1 ? ` It took ${now.attempts} attempts until anything arrived.` : "";
  const text = !now
    ? run?.rounds.length ? `${view.scheme}, seed ${view.seed} has ${plural(run.rounds.length, "round")} so far, round ${shown()} is not among them.` : `${view.scheme}, seed ${view.seed} has not begun.`
    : every > 100
      ? `Round ${now.round}: ${plural(count(selected), "draw")}, ${plural(count(came), "upload")} arrived, ${count(failed)} failed.${again}`
      : `Round ${now.round}: arrived ${names(clients ?? [], came)}; failed ${names(clients ?? [], failed)}.${again}`;
  put("round-text", text);
  const told = `Map of ${view.scheme}, seed ${view.seed}. ${text}`;
  // While places are on their way the map still has the run before: it is named for no round, and dimmed.
  const placing = every <= 2000 && clients && view.placed !== key();
  find("map").dataset.round = placing ? "" : (now?.round ?? "");
  find("map").setAttribute("aria-busy", String(Boolean(placing)));
  if (every > 2000) return void map.drawMany(every, clients, drawn, arrived, told);
  if (!clients) {
    // What was laid out is gone: the run that it was of is placed again when it is looked at again.
    view.placed = null;
    return void map.clear();
  }
  if (placing) return void place();
  if (view.plan?.walks) walk();
  map.draw(view.places, drawn, arrived, told);
}

/** Fetches cell, stations and places when another run is looked at. */
const place = latest(async () => {
  // Asked for again while it was on its way.
  if (view.placed === key()) return;
  const [wanted, begun] = [key(), resets];
  const seed = view.seed;
  try {
    view.plan = await ask(`${base}/map?seed=${seed}`);
    view.places = view.plan ? await ask(`${base}/places?seed=${seed}&round=${shown()}`) : [];
  } catch {
    [view.plan, view.places] = [null, []];
  }
  const clients = state.runs.get(wanted)?.clients?.clients;
  if (wanted !== key() || begun !== resets || !clients) return draw();
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

function client() {
  const remembers = state.remembers[state.general.schemes.indexOf(view.scheme)];
  const found = view.client && clientPanel(state.runs.get(key()), view.client, shown(), remembers);
  find("client-section").hidden = !found;
  if (found) {
    put("h-client", `Client ${view.client}`);
    find("client-panel").replaceChildren(...found);
    if (reveal) find("client-section").scrollIntoView({ block: "nearest" });
    reveal = false;
  }
  find("no-client").hidden = !view.client;
  if (document.activeElement !== find("client")) find("client").value = view.client ?? "";
  find("client").toggleAttribute("aria-invalid", Boolean(view.client) && !found && Boolean(state.runs.get(key())?.clients));
}

let offered = "";

/** What can be saved grows with the run. */
async function downloads() {
  const begun = state.last > 0;
  const offer = `${begun} ${state.status?.state}`;
  if (offer === offered) return;
  offered = offer;
  const link = (file, text) => html("li", {}, html("a", { href: `/runs/${runPath(name)}/${file}` }, text));
  const items = [link("scenario.toml", "Scenario (TOML)")];
  if (begun) {
    items.unshift(link("report.html", "Report"), link("summary.csv", "Summary (CSV)"), link("rounds.csv", "All rounds (CSV)"));
    const figures = await ask(`${base}/figures`).catch(() => []);
    items.push(...figures.map((id) => link(`${id}.svg`, `Figure: ${id} (SVG)`)));
  }
  find("downloads").replaceChildren(...items);
}

/** While a long run comes in, what is there already is shown now and then. */
const draw = coalesced(() => {
  if (!state.general) {
    if (state.status) complain(state.status.message ?? null);
    return;
  }
  pick();
  head();
  pace();
  strip(state, key(), (chosen) => {
    const cut = chosen.lastIndexOf("/");
    look({ scheme: chosen.slice(0, cut), seed: Number(chosen.slice(cut + 1)), follow: false });
  });
  scrubber();
  chart.show(state.series(), state.general.rounds, state.last ? shown() : null, state.version);
  table();
  warnings();
  labels();
  round();
  client();
  downloads();
  // Shown at once when all of it has its place.
  const clients = state.runs.get(key())?.clients;
  if (!clients || view.placed === key() || state.general.clients > 2000) find("main").classList.remove("loading");
}, () => (state.status ? 0 : 400));

let source = null;
let last = "";
/** How often the server began anew. */
let resets = 0;

/** Listens to the run, from the last event that was seen. */
function listen() {
  if (source || document.hidden) return;
  source = new EventSource(`${base}/events${last ? `?last=${encodeURIComponent(last)}` : ""}`);
  const mine = source;
  for (const kind of ["reset", "scenario", "status", "clients", "rounds", "cut", "diverged", "notice"]) {
    mine.addEventListener(kind, (event) => {
      if (event.lastEventId) last = event.lastEventId;
      if (kind === "reset") {
        view.placed = null;
        resets++;
      }
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

let told = null;

async function tell(verb) {
  told = null;
  find(verb).disabled = true;
  try {
    await ask(`${base}/${verb}`, {});
  } catch (error) {
    told = error.message;
  }
  find(verb).disabled = false;
  draw();
}

let playing = null;

/** Plays the run round by round, or stops doing so. */
function play() {
  clearInterval(playing);
  if (playing) {
    playing = null;
    return draw();
  }
  const end = () => state.runs.get(key())?.rounds.length ?? 1;
  look({ follow: false, round: shown() >= end() ? 1 : shown() });
  playing = setInterval(() => {
    if (view.round === null || view.round >= end()) return play();
    view.round++;
    draw();
  }, 160);
}

find("name").textContent = name;
find("again").href = `/?again=${encodeURIComponent(name)}#start`;
if (sweep) {
  find("sweep").hidden = false;
  find("sweep").append(html("a", { href: `/runs/${runPath(sweep)}` }, sweep));
}
find("stop").addEventListener("click", () => tell("stop"));
find("resume").addEventListener("click", () => tell("resume"));
find("play").addEventListener("click", play);
find("round").addEventListener("input", (event) => look({ round: Number(event.target.value), follow: false }));
find("follow").addEventListener("click", () => look(view.follow ? { follow: false, round: shown() } : { follow: true, round: null }));
find("scheme").addEventListener("change", (event) => look({ scheme: event.target.value, follow: false }));
find("seed").addEventListener("change", (event) => look({ seed: Number(event.target.value), follow: false }));
find("client").addEventListener("change", (event) => look({ client: event.target.value.trim() || null }));
find("no-client").addEventListener("click", () => look({ client: null }));
addEventListener("resize", draw);
setInterval(() => state.general && !document.hidden && state.status?.state === "running" && pace(), 1000);
listen();
