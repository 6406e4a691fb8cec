// A sweep: its combinations as a table, each a run of its own, and a figure of the measure that is looked at.

import { address, ask, complain, find, html, number, percent, plural, put, runPath, when } from "/assets/common.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const base = `/api/runs/${runPath(name)}`;
const ticked = new Set();
let sweep = null;
let measure = address.get("measure");
let told = null;

const known = (key) => sweep.points.some((point) => Object.values(point.schemes).some((scheme) => key in scheme.measures));

function head() {
  const { status, keys, points, schemes, seeds, done, total } = sweep;
  put("facts", `${keys.join(", ")} · ${plural(points.length, "combination")} of ${plural(schemes.length, "scheme")}, ${plural(seeds.length, "seed")} · started ${when(sweep.begun)}`);
  put("state", status.state);
  find("state").className = `state ${status.state}`;
  find("stop").hidden = !(status.state === "running" && status.own);
  find("resume").hidden = !["stopped", "failed"].includes(status.state);
  find("progress").value = total ? done / total : 0;
  put("pace", `${Math.floor((100 * done) / (total || 1))} % · ${done.toLocaleString("en")} of ${plural(total, "round")} over all runs`);
  complain([status.message, sweep.problem, told].filter(Boolean).join(" ") || null);
  document.title = `${name} · ${status.state} · FedCote`;
}

function measures() {
  const offered = sweep.measures.filter(({ name: key }) => known(key));
  if (!offered.some(({ name: key }) => key === measure)) measure = address.get("measure") ?? offered[0]?.name ?? null;
  const keys = offered.map(({ name: key }) => key).join();
  if (find("measure").dataset.keys !== keys) {
    find("measure").dataset.keys = keys;
    find("measure").replaceChildren(...offered.map(({ name: key, words }) => html("option", { value: key }, words)));
  }
  find("measure").value = measure;
  find("measure").disabled = !offered.length;
}

function cell(scheme, percents) {
  const found = scheme?.measures[measure];
  if (!found) return html("td", {}, "–");
  const write = percents ? (value) => percent(value, 2) : number;
  const text = write(found.mean) + (scheme.seeds > 1 ? ` ± ${write(found.std)}` : "");
  return html("td", {}, found.leads ? html("strong", {}, text) : text);
}

function table() {
  const now = sweep.measures.find(({ name: key }) => key === measure);
  const words = now?.words ?? "measure";
  find("caption").textContent = `${words[0].toUpperCase()}${words.slice(1)}, mean ± standard deviation over seeds. Bold: no other scheme is separably better there (paired 95 % intervals), some are separably worse.`;
  const column = (text) => html("th", { scope: "col" }, text);
  find("points").tHead.replaceChildren(html("tr", {}, column(sweep.keys.join(", ")), html("th", { scope: "col" }, html("span", { className: "hidden" }, "compare")), column("state"), ...sweep.schemes.map(column)));
  const focus = document.activeElement?.closest?.("#points tbody") && document.activeElement.getAttribute("aria-label") + document.activeElement.getAttribute("href");
  const rows = sweep.points.map((point) => {
    const values = sweep.keys.map((key) => point.settings[key]).join(", ");
    const tick = html("input", { type: "checkbox", checked: ticked.has(point.name), disabled: !point.done, "aria-label": `Compare ${values}` });
    tick.addEventListener("change", () => {
      if (tick.checked) ticked.add(point.name);
      else ticked.delete(point.name);
      offer();
    });
    const link = point.begun ? html("a", { href: `/runs/${runPath(`${name}/${point.name}`)}` }, values) : values;
    const share = point.done === point.total || !point.done ? "" : ` ${Math.floor((100 * point.done) / point.total)} %`;
    const row = html("tr", {}, html("th", { scope: "row" }, link), html("td", {}, tick), html("td", {}, html("span", { className: `state ${point.state}` }, point.state + share)), ...sweep.schemes.map((scheme) => cell(point.schemes[scheme], now?.percent)));
    row.dataset.point = point.name;
    return row;
  });
  find("points").tBodies[0].replaceChildren(...rows);
  if (focus) [...find("points").querySelectorAll("tbody a, tbody input")].find((element) => element.getAttribute("aria-label") + element.getAttribute("href") === focus)?.focus();
}

/** The link that compares; two combinations or more make sense. */
function offer() {
  const chosen = sweep.points.map((point) => point.name).filter((point) => ticked.has(point));
  const link = find("compare");
  link.toggleAttribute("aria-disabled", chosen.length < 2);
  link.textContent = chosen.length > 1 ? `Compare ${chosen.length} combinations` : "Tick two combinations to compare them";
  if (chosen.length > 1) link.href = `/compare?${chosen.map((point) => `run=${encodeURIComponent(`${name}/${point}`)}`).join("&")}`;
  else link.removeAttribute("href");
}

function figure() {
  const found = sweep.figures.find(({ id }) => id === measure);
  const text = found ? (innerWidth > 760 ? found.wide : found.narrow) : "";
  if (find("figure").dataset.text === text) return;
  find("figure").dataset.text = text;
  const drawing = text && document.adoptNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
  find("figure").replaceChildren(...(drawing ? [drawing] : []));
  find("figure").dataset.measure = found?.id ?? "";
  put("figure-caption", found?.caption ?? (sweep.keys.length > 2 ? "Figures are drawn over one key or two; the CSV has all numbers." : "No run of this sweep has ended yet."));
}

function downloads() {
  const link = (file, text) => html("li", {}, html("a", { href: `/runs/${runPath(name)}/${file}` }, text));
  const items = [link("sweep.toml", "Scenario (TOML)")];
  if (measure && known(measure)) items.unshift(link("report.html", "Report"), link("summary.csv", "All numbers (CSV)"));
  if (find("figure").dataset.measure) items.push(link(`${measure}.svg`, "The figure (SVG)"));
  if (find("downloads").childElementCount !== items.length || items.at(-1).textContent !== find("downloads").lastChild?.textContent || find("downloads").dataset.measure !== measure) find("downloads").replaceChildren(...items);
  find("downloads").dataset.measure = measure ?? "";
}

function draw() {
  if (!sweep) return;
  head();
  measures();
  table();
  offer();
  figure();
  find("warnings-section").hidden = !sweep.warnings.length;
  find("warnings").replaceChildren(...sweep.warnings.map((warning) => html("li", {}, warning)));
  downloads();
  document.body.dataset.ready = "true";
}

async function read() {
  try {
    sweep = await ask(`${base}/sweep`);
    draw();
  } catch (error) {
    complain(error.message);
  }
}

async function keepReading() {
  await read();
  setTimeout(keepReading, document.hidden || sweep?.status.state !== "running" ? 10000 : 2000);
}

async function tell(verb) {
  told = null;
  find(verb).disabled = true;
  try {
    await ask(`${base}/${verb}`, {});
  } catch (error) {
    told = error.message;
  }
  find(verb).disabled = false;
  await read();
}

find("name").textContent = name;
find("again").href = `/?again=${encodeURIComponent(name)}#start`;
find("stop").addEventListener("click", () => tell("stop"));
find("resume").addEventListener("click", () => tell("resume"));
find("measure").addEventListener("change", () => {
  measure = find("measure").value;
  address.set({ measure });
  draw();
});
addEventListener("resize", draw);
keepReading();
