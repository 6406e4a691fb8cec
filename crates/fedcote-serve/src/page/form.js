// The form that starts a run: a preset, or a run that is there, with changes.

import { ask, complain, find, html, runPath } from "/assets/common.js";

let choices = { presets: [], schemes: [] };
let names = new Set();
/** Fields that the reader has changed; another preset leaves them alone. */
const touched = new Set();

/** The names that are taken. */
export function taken(list) {
  names = new Set(list);
}

const chosen = () => choices.presets.find((preset) => preset.name === find("preset").value);
const listed = (text) => [...text.matchAll(/"([^"]*)"|'([^']*)'/g)].map((match) => match[1] ?? match[2]);
const checks = () => [...find("schemes").querySelectorAll("input")];
const freeName = (name) => {
  for (let number = 1; ; number++) {
    const tried = number === 1 ? name : `${name}-${number}`;
    if (!names.has(tried)) return tried;
  }
};

/** [1, 2, 3] as people write it. */
const plain = (seeds) => seeds.replace(/^\[|\]$/g, "").trim();

function fill() {
  const preset = chosen();
  find("summary").textContent = preset.summary;
  for (const [key, value] of Object.entries(preset.settings)) {
    const field = find(key);
    if (key !== "schemes" && field && !touched.has(key)) field.value = key === "seeds" ? plain(value) : value;
  }
  if (!("data.unbalance" in preset.settings) && !touched.has("data.unbalance")) find("data.unbalance").value = "";
  if (!touched.has("sweep")) find("sweep").value = (preset.sweep ?? []).join("\n");
  const schemes = listed(preset.settings.schemes);
  if (!touched.has("schemes")) for (const check of checks()) check.checked = schemes.includes(check.value);
  if (!touched.has("name")) find("name").value = freeName((preset.like ?? preset.name).replaceAll("/", " "));
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

/** What differs from the preset; schemes keep its order, further ones follow. */
function changes() {
  const preset = chosen();
  const settings = {};
  for (const [key, value] of Object.entries(preset.settings)) {
    if (key === "schemes") {
      const [was, now] = [listed(value), checks().filter((check) => check.checked).map((check) => check.value)];
      // A scheme of one's own has no box: it stays.
      const known = checks().map((check) => check.value);
      const kept = was.filter((scheme) => now.includes(scheme) || !known.includes(scheme));
      const all = [...kept, ...now.filter((scheme) => !was.includes(scheme))];
      if (all.join() !== was.join()) settings[key] = JSON.stringify(all);
    } else if (find(key)) {
      const text = find(key).value.trim();
      const write = (words) => (key === "seeds" ? plain(words).replace(/\s+/g, "") : words);
      if (write(text) !== write(value)) settings[key] = write(text);
    }
  }
  const unbalance = find("data.unbalance").value.trim();
  if (unbalance && unbalance !== preset.settings["data.unbalance"]) settings["data.unbalance"] = unbalance;
  else delete settings["data.unbalance"];
  return settings;
}

async function start(event) {
  event.preventDefault();
  clear();
  find("submit").disabled = true;
  try {
    const { like, name: preset } = chosen();
    const question = { name: find("name").value.trim(), settings: changes(), sweep: find("sweep").value.split("\n").map((line) => line.trim()).filter(Boolean), ...(like ? { like } : { preset }) };
    const { name } = await ask("/api/runs", question);
    location.href = `/runs/${encodeURIComponent(name)}`;
  } catch (error) {
    refuse(error);
  }
  find("submit").disabled = false;
}

/** Makes the form ready; `again` names a run to begin from. */
export async function begin(again) {
  try {
    choices = await ask("/api/choices");
    if (again) choices.presets.unshift(await ask(`/api/runs/${runPath(again)}/choices`));
  } catch (error) {
    complain(error.message);
  }
  if (!choices.presets.length) return;
  find("preset").append(...choices.presets.map((preset) => html("option", { value: preset.name }, preset.name)));
  const scheme = ({ name, what }) => html("label", {}, html("input", { type: "checkbox", value: name }), html("span", {}, html("b", {}, name), html("span", { className: "facts" }, ` ${what}`)));
  find("schemes").querySelector(".checks").append(...choices.schemes.map(scheme));
  find("preset").addEventListener("change", fill);
  find("form").addEventListener("submit", start);
  find("form").addEventListener("input", (event) => {
    if (event.target.id !== "preset") touched.add(event.target.closest("#schemes") ? "schemes" : event.target.id);
  });
  fill();
  if (again) find("start").scrollIntoView();
}
