// One client of one run: what became of it, and why.

import { figure, find, html, number, percent, plural, svg } from "/assets/common.js";
import { labelBars } from "/assets/figures.js";

/** What happened to a client in the rounds up to one. */
export function history(run, index, round) {
  const found = { drawn: 0, arrived: 0, share: 0, heard: 0, last: null, rounds: [] };
  for (const now of run.rounds.slice(0, round)) {
    const of = (list) => list.find(([client]) => client === index)?.[1] ?? 0;
    const [copies, came] = [of(now.selected), of(now.arrived)];
    const total = now.arrived.reduce((sum, [, number]) => sum + number, 0);
    found.drawn += copies;
    found.arrived += came;
    if (total) [found.share, found.heard] = [found.share + came / total, found.heard + 1];
    if (came) found.last = now.round;
    found.rounds.push([copies, came]);
  }
  found.share = found.heard ? found.share / found.heard : null;
  return found;
}

/** A column a round: what was drawn, and of it what arrived. */
function timeline(rounds, id) {
  const [width, height] = [600, 64];
  const first = Math.max(0, rounds.length - 300);
  const shown = rounds.slice(first);
  const most = Math.max(1, ...shown.map(([copies]) => copies));
  const step = width / Math.max(1, shown.length);
  const middle = height - 16;
  const parts = shown.flatMap(([copies, came], at) => {
    const box = (from, count, kind) => svg("rect", { class: `fill ${kind}`, x: at * step, width: Math.max(0.6, step * 0.8), y: middle - ((middle - 4) * (from + count)) / most, height: ((middle - 4) * count) / most });
    return [came ? box(0, came, "good") : null, copies > came ? box(came, copies - came, "bad") : null].filter(Boolean);
  });
  parts.push(svg("line", { class: "axis", x1: 0, x2: width, y1: middle, y2: middle }));
  parts.push(svg("text", { class: "tick", x: 0, y: height - 3 }, `round ${first + 1}`), svg("text", { class: "tick", x: width, y: height - 3, "text-anchor": "end" }, `round ${rounds.length}`));
  const times = shown.filter(([copies]) => copies).length;
  return figure(width, height, `Client ${id}, rounds ${first + 1} to ${rounds.length}: drawn in ${times}, arrived in ${shown.filter(([, came]) => came).length}.`, ...parts);
}

/** Why a client is not drawn, in the selection's own words where it has some. */
function reason(run, client) {
  if (client.selection === undefined) return null;
  if (client.selection > 1e-9) return null;
  const word = new RegExp(`client ${client.id.replace(/[^\w-]/g, "\\$&")}\\b`);
  const said = (run.clients.warnings ?? []).find((warning) => word.test(warning));
  return said ?? `It is left out: it fails with probability ${number(client.failure)}, or others carry its labels at less cost.`;
}

/** Shows a client in its panel; false when there is none of this name. */
export function showClient(run, id, round, memory) {
  const index = run?.clients?.clients.findIndex((client) => client.id === id) ?? -1;
  find("client-section").hidden = index < 0;
  if (index < 0) return false;
  const client = run.clients.clients[index];
  const past = history(run, index, round);
  const failed = past.drawn - past.arrived;
  const rows = [
    ["drawn", `${plural(past.drawn, "time")} in ${plural(past.rounds.length, "round")}`],
    ["arrived, failed", `${past.arrived}, ${failed}${past.drawn ? ` (${percent(failed / past.drawn)} failed)` : ""}`],
    ["fails with probability", number(client.failure)],
    ["probability of a draw", client.selection === undefined ? "not by probabilities" : percent(client.selection, 2)],
    ["share in the data", percent(client.weight, 2)],
    ["share in what arrives, expected", client.appearance === undefined ? "–" : percent(client.appearance, 2)],
    ["share in what arrived, realised", percent(past.share, 2)],
    ["last arrival", past.last === null ? "never" : `round ${past.last}, ${plural(past.rounds.length - past.last, "round")} ago`],
    ["link", [client.standard, client.indoor === undefined ? null : client.indoor ? "indoors" : "outdoors"].filter(Boolean).join(", ") || "–"],
  ];
  if (memory) rows.push(["what the server remembers of it", past.last === null ? "nothing yet" : `its update of round ${past.last}`]);
  const left = reason(run, client);
  const facts = html("table", { className: "plain" }, html("caption", { className: "hidden" }, `Client ${id}`), html("tbody", {}, ...rows.map(([name, value]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, value)))));
  const bars = labelBars(320, 130, run.clients.global_labels, [{ shares: client.labels.length ? client.labels : null, style: "c0" }], `Labels of client ${id}: ${client.labels.map((share, label) => `${label}: ${percent(share)}`).join(", ")}. Outline: all data.`);
  find("h-client").textContent = `Client ${id}`;
  find("client-panel").replaceChildren(
    ...(left ? [html("p", { className: "problem" }, left)] : []),
    html("div", { className: "grid" }, facts, html("div", {}, html("h3", {}, "Its labels (outline: all data)"), bars)),
    html("h3", {}, "Round by round: arrived, failed"),
    timeline(past.rounds, id),
  );
  return true;
}
