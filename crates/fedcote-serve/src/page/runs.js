// The list of runs, and the form that starts one.

import { ask, complain, find, html, plural } from "/assets/common.js";

const STATES = { running: "running", finished: "finished", stopped: "stopped", failed: "failed" };

function entry(run) {
  const share = run.total ? run.done / run.total : 0;
  const facts = `${run.schemes.join(", ")} · ${plural(run.seeds.length, "seed")} · ${plural(run.rounds, "round")} · ${plural(run.clients, "client")}`;
  const progress = html("progress", { max: 1, value: share, "aria-label": `Progress of ${run.name}` });
  const item = html(
    "li",
    {},
    html("div", { className: "line" }, html("a", { href: `/runs/${encodeURIComponent(run.name)}` }, run.name), html("span", { className: `state ${run.state}` }, STATES[run.state] ?? run.state)),
    html("p", { className: "facts" }, facts),
  );
  if (run.state !== "finished") item.append(html("div", { className: "line" }, progress, html("span", { className: "facts" }, `${Math.floor(100 * share)} %`)));
  if (run.message) item.append(html("p", { className: "problem" }, run.message));
  return item;
}

let before = "";

async function list() {
  try {
    const runs = await ask("/api/runs");
    const running = runs.filter((run) => run.state === "running").length;
    const text = runs.length ? `${plural(runs.length, "run")}, ${running} running` : "No runs here yet. Start one below.";
    if (find("status").textContent !== text) find("status").textContent = text;
    const now = JSON.stringify(runs);
    if (now !== before) {
      before = now;
      // Focus stays where it was, although the list is made anew.
      const focus = document.activeElement?.closest?.("#runs a")?.getAttribute("href");
      find("runs").replaceChildren(...runs.map(entry));
      if (focus) [...find("runs").querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
    }
  } catch (error) {
    if (find("status").textContent !== error.message) find("status").textContent = error.message;
  }
  setTimeout(list, document.hidden ? 10000 : 2000);
}

let choices = { presets: [], schemes: [] };
const chosen = () => choices.presets.find((preset) => preset.name === find("preset").value);
const listed = (text) => [...text.matchAll(/"([^"]*)"|'([^']*)'/g)].map((match) => match[1] ?? match[2]);
const checks = () => [...find("schemes").querySelectorAll("input")];
const freeName = (name, taken) => {
  for (let number = 1; ; number++) {
    const tried = number === 1 ? name : `${name}-${number}`;
    if (!taken.has(tried)) return tried;
  }
};

function fill() {
  const preset = chosen();
  find("summary").textContent = preset.summary;
  for (const [key, value] of Object.entries(preset.settings)) {
    const field = find(key);
    if (key !== "schemes" && field) field.value = value;
  }
  if (!("data.unbalance" in preset.settings)) find("data.unbalance").value = "";
  const schemes = listed(preset.settings.schemes);
  for (const check of checks()) check.checked = schemes.includes(check.value);
  const taken = new Set([...find("runs").querySelectorAll("a")].map((link) => link.textContent));
  find("name").value = freeName(preset.name, taken);
  clear();
}

function clear() {
  complain(null);
  for (const field of find("form").querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
  for (const note of find("form").querySelectorAll(".field .problem, fieldset .problem")) note.remove();
}

/** Shows what is wrong where it is wrong. */
function refuse(error) {
  const field = error.field && find(error.field);
  if (!field) return complain(error.message);
  const note = html("p", { className: "problem", id: `error-${error.field}` }, error.message);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", note.id);
  (field.closest(".field") ?? field).append(note);
  const details = field.closest("details");
  if (details) details.open = true;
  (field.matches("fieldset") ? field.querySelector("input") : field).focus();
  complain(`Not started: ${error.message}`);
}

async function start(event) {
  event.preventDefault();
  clear();
  const settings = {};
  for (const [key, value] of Object.entries(chosen().settings)) {
    if (key === "schemes") {
      const schemes = checks().filter((check) => check.checked).map((check) => check.value);
      if (schemes.join() !== listed(value).join()) settings[key] = JSON.stringify(schemes);
    } else if (find(key)) {
      const text = find(key).value.trim();
      const given = key === "seeds" && !text.startsWith("[") ? `[${text}]` : text;
      if (given !== value) settings[key] = given;
    }
  }
  const unbalance = find("data.unbalance").value.trim();
  if (unbalance && unbalance !== chosen().settings["data.unbalance"]) settings["data.unbalance"] = unbalance;
  else delete settings["data.unbalance"];
  find("submit").disabled = true;
  try {
    const { name } = await ask("/api/runs", { name: find("name").value.trim(), preset: chosen().name, settings });
    location.href = `/runs/${encodeURIComponent(name)}`;
  } catch (error) {
    refuse(error);
  }
  find("submit").disabled = false;
}

async function begin() {
  await list();
  try {
    choices = await ask("/api/choices");
  } catch (error) {
    return complain(error.message);
  }
  find("preset").append(...choices.presets.map((preset) => html("option", { value: preset.name }, preset.name)));
  find("schemes")
    .querySelector(".checks")
    .append(...choices.schemes.map(({ name, what }) => html("label", { title: what }, html("input", { type: "checkbox", value: name }), ` ${name}`)));
  find("preset").addEventListener("change", fill);
  find("form").addEventListener("submit", start);
  fill();
}

begin();
