// Several runs in one chart, and the settings in which they differ.

import { Chart } from "/assets/chart.js";
import { address, ask, complain, find, html, plural, runPath } from "/assets/common.js";

const names = new URLSearchParams(location.search).getAll("run");
const chart = new Chart(find("chart"), ({ measure, axis, hidden }) => address.set({ measure, axis, hide: hidden.join(",") }));
Object.assign(chart.view, { measure: address.get("measure") ?? "test_accuracy", axis: address.get("axis") ?? "round", hidden: address.get("hide")?.split(",") ?? [] });

/** Runs are told apart by colour, schemes of a run by dashes. */
const style = (run, scheme) => [`c${run % 8}`, ["", "d1", "d2"][scheme % 3]];

function settings(all) {
  const keys = [...new Set(all.flatMap((one) => Object.keys(one)))].sort();
  const differing = keys.filter((key) => new Set(all.map((one) => one[key] ?? "–")).size > 1);
  find("settings").tHead.replaceChildren(html("tr", {}, html("th", { scope: "col" }, "key"), ...names.map((name) => html("th", { scope: "col" }, html("a", { href: `/runs/${runPath(name)}` }, name)))));
  const rows = differing.map((key) => html("tr", {}, html("th", { scope: "row" }, key), ...all.map((one) => html("td", {}, one[key] ?? "–"))));
  find("settings").tBodies[0].replaceChildren(...(rows.length ? rows : [html("tr", {}, html("th", { scope: "row" }, "none"), ...all.map(() => html("td", {}, "–")))]));
}

async function begin() {
  const fetched = await Promise.allSettled(names.map((name) => ask(`/api/runs/${runPath(name)}/series`)));
  const refused = fetched.map((one, at) => (one.status === "rejected" ? `${names[at]}: ${one.reason.message}` : null)).filter(Boolean);
  if (refused.length) complain(refused.join(" "));
  const series = [];
  let rounds = 0;
  fetched.forEach((one, run) => {
    if (one.status === "rejected") return;
    rounds = Math.max(rounds, one.value.rounds);
    one.value.series.forEach((scheme, at) => series.push({ ...scheme, name: `${names[run]} · ${scheme.name}`, style: style(run, at), strong: false }));
  });
  find("facts").textContent = `${plural(names.length, "run")}, ${plural(series.length, "curve")}. A colour for each run, dashes for its schemes.`;
  chart.show(series, rounds);
  const all = await Promise.all(names.map((name) => ask(`/api/runs/${runPath(name)}/settings`).catch(() => ({}))));
  settings(all);
  document.body.dataset.ready = "true";
}

if (names.length) begin();
else find("facts").textContent = "Tick runs in the table of runs to compare them.";
