// One client: what became of it, and why. For the live page, the playground and reports.
//
// A run is { clients: { clients, global_labels, warnings }, rounds: [{ round, selected, arrived }] }.

import { figure, html, number, percent, plural, svg } from "/assets/dom.js";
import { labelBars } from "/assets/bars.js";

/** What happened to a client in the rounds up to one. */
function past(run, index, round) {
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
  const most = Math.max(1, ...shown.map(([copies, came]) => Math.max(copies, came)));
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
  if (client.selection === undefined || client.selection > 1e-9) return null;
  const word = new RegExp(`client ${client.id.replace(/[^\w-]/g, "\\$&")}\\b`);
  const said = (run.clients.warnings ?? []).find((warning) => word.test(warning));
  if (said) return said;
  const fails = `it fails with probability ${number(client.failure)}`;
  return client.eligible === false ? `It is left out: ${fails}, which is above the threshold.` : `It is left out: ${fails}, or others carry its labels at less cost.`;
}

/** What is to be told of a client up to a round, as elements; null when there is none of this name. `remembers` says whether
 * the server keeps everyone's latest update. */
export function clientPanel(run, id, round, remembers) {
  const index = run?.clients?.clients.findIndex((client) => client.id === id) ?? -1;
  if (index < 0) return null;
  const client = run.clients.clients[index];
  const found = past(run, index, round);
  const failed = Math.max(0, found.drawn - found.arrived);
  const ago = plural(found.rounds.length - found.last, "round");
  const rows = [
    ["drawn", `${plural(found.drawn, "time")} in ${plural(found.rounds.length, "round")}`],
    ["arrived, failed", `${found.arrived}, ${failed}${found.drawn ? ` (${percent(failed / found.drawn)} failed)` : ""}`],
    ["fails with probability", number(client.failure)],
    ["probability of a draw", client.selection === undefined ? "not by probabilities" : percent(client.selection, 2)],
    ["share in the data", percent(client.weight, 2)],
    ["share in what arrives, expected", client.appearance === undefined ? "–" : percent(client.appearance, 2)],
    ["share in what arrived, realised", percent(found.share, 2)],
    ["last arrival", found.last === null ? "never" : `round ${found.last}, ${ago} ago`],
    ["link", [client.standard, client.indoor === undefined ? null : client.indoor ? "indoors" : "outdoors"].filter(Boolean).join(", ") || "–"],
  ];
  if (remembers) rows.push(["what the server remembers of it", found.last === null ? "nothing yet" : `its update of round ${found.last}, ${ago} old`]);
  const left = reason(run, client);
  const facts = html("table", { className: "plain" }, html("caption", { className: "hidden" }, `Client ${id}`), html("tbody", {}, ...rows.map(([name, value]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, value)))));
  const labels = client.labels ?? [];
  const words = labels.map((share, label) => [share, label]).filter(([share]) => share > 0).map(([share, label]) => `${label}: ${percent(share)}`);
  const bars = labelBars(320, 130, run.clients.global_labels, [{ shares: labels.length ? labels : null, style: "c0" }], `Labels of client ${id}: ${words.join(", ") || "not told"}. Outline: all data.`);
  return [
    ...(left ? [html("p", { className: "problem" }, left)] : []),
    html("div", { className: "grid" }, facts, html("div", {}, html("h3", {}, "Its labels (outline: all data)"), bars)),
    html("h3", {}, "Round by round: arrived, failed"),
    html("ul", { className: "legend" }, html("li", {}, html("span", { className: "key block good", "aria-hidden": "true" }), "arrived"), html("li", {}, html("span", { className: "key block bad", "aria-hidden": "true" }), "failed")),
    timeline(found.rounds, id),
  ];
}
