// The playground: sliders in, the library's answer out.

import { address, ask, complain, find, html, labelName, latest, number, percent, put } from "/assets/common.js";
import { labelBars } from "/assets/bars.js";
import { clientPanel } from "/assets/client.js";

const LABELS = 5;
const SAMPLES = 600;
/** Rounds of the example that a client is looked at in. */
const ROUNDS = 100;
let failures = [0.1, 0.9, 0.05, 0.8, 0, 0.6, 0.3, 0.3, 0.1, 0.5, 0.2, 0.7, 0.1, 0, 0.4, 0.84, 0.2, 0.1, 0.6, 0.3];

/** The client that is looked at, and the last answer. */
let looked = address.get("client");
let answered = null;

/** How long ago, on average, the server last heard a client that is drawn with this probability. */
const age = (asked, fedcote, index) => 1 / (1 - (1 - fedcote.selection[index] * (1 - asked.clients[index].failure)) ** asked.selected);

/** What the server does with what arrives, in a sentence. */
const SERVER = {
  plain: () => "The server averages what arrives in a round and forgets it; the label mix above is what it gets on average.",
  memory: (asked, fedcote) => `The server averages the last update of every client by its share of the data: the mix is right once all were heard, whatever fails. ${ages(asked, fedcote)}`,
  control: (asked, fedcote) => `As with memory, and clients correct their steps by what the server remembers of them. ${ages(asked, fedcote)}`,
};

function ages(asked, fedcote) {
  const all = asked.clients.map((_, index) => age(asked, fedcote, index));
  const never = all.filter((rounds) => !Number.isFinite(rounds)).length;
  const heard = all.filter(Number.isFinite);
  const oldest = heard.length ? Math.max(...heard) : null;
  return `${oldest === null ? "" : `The oldest that it remembers is ${oldest.toFixed(1)} rounds old on average.`}${never ? ` ${never} client${never > 1 ? "s" : ""} would never be heard and stay unknown.` : ""}`;
}

/** Label counts of a client. */
function counts(kind, index, clients) {
  const mine = new Array(LABELS).fill(0);
  if (kind === "all") return mine.fill(SAMPLES / LABELS);
  if (kind === "rare") {
    if (index === 1) mine[LABELS - 1] = SAMPLES;
    else mine[index % (LABELS - 1)] = SAMPLES;
  } else if (kind === "one") mine[Math.floor((index * LABELS) / Math.max(LABELS, clients)) % LABELS] = SAMPLES;
  else {
    mine[index % LABELS] = SAMPLES / 2;
    mine[(index + 1) % LABELS] = SAMPLES / 2;
  }
  return mine;
}

/** What `fedcote select` would be asked. */
function question() {
  const clients = Number(find("count").value);
  const kind = find("labels").value;
  const server = find("server").value;
  return {
    selected: Number(find("draws").value),
    ...(server === "plain" ? {} : { aim: "freshness" }),
    ...(Number(find("threshold").value) === 0.85 ? {} : { threshold: Number(find("threshold").value) }),
    clients: Array.from({ length: clients }, (_, index) => ({ id: String(index + 1), labels: counts(kind, index, clients), failure: failures[index] })),
  };
}

const text = ({ selected, threshold, clients }) => `{"selected": ${selected}, ${threshold === undefined ? "" : `"threshold": ${threshold}, `}"clients": [\n${clients.map((client) => `  ${JSON.stringify(client)}`).join(",\n")}]}`;

/** The rows of clients, made again when their number or labels change. */
function rows(asked) {
  const items = asked.clients.map((client, index) => {
    const id = `failure-${index}`;
    const slider = html("input", { type: "range", id, min: 0, max: 1, step: 0.01, value: client.failure, "aria-label": `Failure probability of client ${client.id}` });
    slider.addEventListener("input", () => {
      failures[index] = Number(slider.value);
      update();
    });
    const held = client.labels.map((count, label) => (count ? labelName(label) : null)).filter(Boolean);
    const value = (kind, words) => html("span", { className: `value ${kind}` }, html("span", { className: "hidden" }, `${words} `), html("b", { className: kind }));
    const name = html("button", { type: "button", className: "quiet", "aria-label": `Look at client ${client.id}` }, client.id);
    name.addEventListener("click", () => look(looked === client.id ? null : client.id, true));
    return html(
      "li",
      { className: "client" },
      html("span", { className: "who" }, name, html("label", { for: id, htmlFor: id, className: "facts" }, `· ${held.length === LABELS ? "all" : held.join(", ")}`)),
      html("span", { className: "slide" }, slider, html("output", { htmlFor: id, "aria-live": "off" })),
      value("selection", "drawn (FedAvg → FedCote)"),
      value("appearance", "arrives (FedAvg → FedCote)"),
    );
  });
  find("clients").replaceChildren(...items);
}

function show(asked, answer) {
  const { fedavg, fedcote, labels } = answer;
  asked.clients.forEach((client, index) => {
    const row = find("clients").children[index];
    // There are fewer clients by now; the answer about them follows.
    if (!row) return;
    row.querySelector("output").textContent = client.failure.toFixed(2);
    const pair = (kind) => {
      const cell = row.querySelector(`b.${kind}`);
      const left = kind === "selection" && !fedcote.eligible[index];
      cell.textContent = `${percent(fedavg?.[kind][index])} → ${left ? "left out" : percent(fedcote[kind][index])}`;
      cell.dataset.fedcote = fedcote[kind][index];
      cell.dataset.fedavg = fedavg?.[kind][index] ?? "";
    };
    pair("selection");
    pair("appearance");
    row.classList.toggle("excluded", !fedcote.eligible[index]);
    row.title = fedcote.eligible[index] ? "" : "fails too often: not drawn";
  });
  const words = labels.map((share, label) => `label ${labelName(label)}: ${percent(share)} in the data, FedAvg gets ${percent(fedavg?.labels[label])}, FedCote ${percent(fedcote.labels[label])}`);
  const width = Math.max(280, find("mix").clientWidth);
  const series = [{ shares: fedavg?.labels, style: "c1" }, { shares: fedcote.labels, style: "c0" }];
  find("mix").replaceChildren(labelBars(width, 220, labels, series, `Label mix. ${words.join("; ")}.`));
  const fill = (id, value, shown) => {
    find(id).textContent = shown;
    find(id).dataset.value = value ?? "";
  };
  fill("fedavg-divergence", fedavg?.label_divergence, number(fedavg?.label_divergence));
  fill("fedcote-divergence", fedcote.label_divergence, number(fedcote.label_divergence));
  fill("fedavg-arrivals", fedavg?.expected_arrivals, fedavg?.expected_arrivals.toFixed(2) ?? "–");
  fill("fedcote-arrivals", fedcote.expected_arrivals, fedcote.expected_arrivals.toFixed(2));
  const off = (mix) => Math.max(...labels.map((share, label) => Math.abs(mix[label] - share)));
  const verdict = !fedavg
    ? "Drawn by amount of data, no upload ever arrives."
    : off(fedavg.labels) < 0.005
      ? "Both get the mix of the data: failures do no harm here."
      : `FedAvg is off by up to ${percent(off(fedavg.labels))} of a label, FedCote by ${percent(off(fedcote.labels))}.`;
  put("verdict", verdict);
  put("server-text", SERVER[find("server").value](asked, fedcote));
  document.body.classList.remove("stale");
  find("warnings").replaceChildren(...answer.warnings.map((warning) => html("li", {}, warning)));
}

/** Numbers from 0 to 1, the same ones every time (mulberry32). */
function chances(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Rounds as they might be: draws by these probabilities, each upload lost with its client's. */
function example(asked, selection) {
  const chance = chances(1);
  const pick = () => {
    let rest = chance();
    const found = selection.findIndex((share) => (rest -= share) < 0);
    return found < 0 ? selection.findLastIndex((share) => share > 0) : found;
  };
  return Array.from({ length: ROUNDS }, (_, at) => {
    const [selected, arrived] = [new Map(), new Map()];
    for (let draw = 0; draw < asked.selected; draw++) {
      const client = pick();
      selected.set(client, (selected.get(client) ?? 0) + 1);
      if (chance() >= asked.clients[client].failure) arrived.set(client, (arrived.get(client) ?? 0) + 1);
    }
    return { round: at + 1, selected: [...selected], arrived: [...arrived] };
  });
}

/** Shows the client that is looked at, as it fares in an example of some rounds. */
function client() {
  const scheme = find("client-scheme").value;
  const by = answered?.answer[scheme];
  const all = by && answered.asked.clients.map(({ id, labels, failure }, index) => {
    const total = labels.reduce((sum, count) => sum + count, 0);
    return { id, failure, labels: labels.map((count) => count / total), weight: answered.answer.weights[index], selection: by.selection[index], appearance: by.appearance[index], eligible: by.eligible?.[index] };
  });
  const run = all && { clients: { clients: all, global_labels: answered.answer.labels, warnings: answered.answer.warnings }, rounds: example(answered.asked, by.selection) };
  const found = run && looked && clientPanel(run, looked, ROUNDS, scheme === "fedcote" && find("server").value !== "plain");
  find("client-section").hidden = !found;
  for (const row of find("clients").children) row.querySelector("button").setAttribute("aria-pressed", String(row.querySelector("button").textContent === looked));
  if (!found) return;
  put("h-client", `Client ${looked}`);
  find("client-panel").replaceChildren(...found);
}

function look(id, reveal = false) {
  looked = id;
  address.set({ client: id });
  client();
  if (reveal && id !== null) find("client-section").scrollIntoView({ block: "nearest" });
}

const compute = latest(async (asked, number) => {
  try {
    const answer = await ask("/api/playground", asked);
    answered = { asked, answer };
    show(asked, answer);
    client();
    complain(null);
  } catch (error) {
    // Numbers of another question would be wrong now.
    document.body.classList.add("stale");
    answered = null;
    client();
    for (const cell of document.querySelectorAll("#numbers td, #clients b.selection, #clients b.appearance")) cell.textContent = "–";
    find("mix").replaceChildren();
    put("verdict", "");
    put("server-text", "");
    find("warnings").replaceChildren();
    complain(error.message);
  }
  document.body.dataset.answered = number;
});

/** The number of questions so far. The page is up to date when `data-answered` has reached `data-asked`: the text of the
 * question cannot tell, because rows that were made again wait for the answer to a question that may be the same. */
let questions = 0;

function update() {
  const asked = question();
  find("count-out").textContent = asked.clients.length;
  find("draws-out").textContent = asked.selected;
  find("threshold-out").textContent = Number(find("threshold").value).toFixed(2);
  find("document").textContent = text(asked);
  put("command-flags", `${asked.aim ? ` --aim ${asked.aim}` : ""}`);
  address.set({ clients: asked.clients.length, draws: asked.selected, labels: find("labels").value, server: find("server").value, threshold: find("threshold").value, fail: asked.clients.map((client) => Math.round(100 * client.failure)).join(".") });
  asked.clients.forEach((client, index) => {
    const row = find("clients").children[index];
    if (row) row.querySelector("output").textContent = client.failure.toFixed(2);
  });
  document.body.dataset.asked = ++questions;
  compute(asked, questions);
}

function rebuild() {
  rows(question());
  update();
}

/** What the address says, as far as it makes sense. */
function recall() {
  for (const [id, key] of [["count", "clients"], ["draws", "draws"], ["labels", "labels"], ["server", "server"], ["threshold", "threshold"]]) {
    const value = address.get(key);
    const field = find(id);
    if (value !== null && (field.type === "range" ? Number.isFinite(Number(value)) : [...field.options].some((option) => option.value === value))) field.value = value;
  }
  (address.get("fail") ?? "").split(".").forEach((word, index) => {
    const share = Number(word) / 100;
    if (word !== "" && index < failures.length && share >= 0 && share <= 1) failures[index] = share;
  });
}

recall();
find("draws").addEventListener("input", update);
find("threshold").addEventListener("input", update);
find("server").addEventListener("change", update);
find("share").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  put("verdict", "The address has all settings; it is copied.");
});
find("client-scheme").addEventListener("change", client);
find("no-client").addEventListener("click", () => look(null));
find("count").addEventListener("input", rebuild);
find("labels").addEventListener("change", rebuild);
find("reliable").addEventListener("click", () => {
  failures = failures.map(() => 0);
  rebuild();
});
find("mixed").addEventListener("click", () => {
  failures = failures.map(() => Math.round(100 * (Math.random() < 0.3 ? 0.6 + 0.4 * Math.random() : 0.3 * Math.random())) / 100);
  rebuild();
});
addEventListener("resize", update);
rebuild();
