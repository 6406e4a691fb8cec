// Scheme × seed: how each run stands, and which one is looked at.

import { find, html, plural } from "/assets/common.js";

const WORDS = { waiting: "waiting", running: "running", stopped: "stopped", done: "finished", diverged: "diverged" };
let before = "";

/** Draws the strip; `pick` is told the key of a cell that is chosen. */
export function strip(state, current, pick) {
  const { schemes, seeds, rounds } = state.general;
  const cells = schemes.map((scheme) => seeds.map((seed) => {
    const key = `${scheme}/${seed}`;
    const played = state.runs.get(key)?.rounds.length ?? 0;
    return { key, seed, standing: state.standing(key), share: Math.floor((50 * played) / rounds) / 50, played };
  }));
  const now = JSON.stringify([cells.map((row) => row.map(({ key, standing, share }) => [key, standing, share])), current]);
  if (now === before) return;
  before = now;
  const focused = document.activeElement?.dataset?.run;
  find("strip").replaceChildren(...schemes.map((scheme, at) => html("div", {}, html("span", { className: "facts" }, html("span", { className: `swatch ${state.styles[at].join(" ")}`, "aria-hidden": "true" }), scheme), ...cells[at].map((cell) => {
    const text = `${scheme}, seed ${cell.seed}: ${WORDS[cell.standing]}, ${cell.played} of ${plural(rounds, "round")}`;
    const button = html("button", { type: "button", className: `cell ${cell.standing}`, title: text, "aria-label": text, "aria-pressed": String(cell.key === current) }, cell.standing === "diverged" ? "!" : String(cell.seed));
    button.dataset.run = cell.key;
    button.dataset.standing = cell.standing;
    button.style.setProperty("--share", `${100 * cell.share}%`);
    button.addEventListener("click", () => pick(cell.key));
    return button;
  }))));
  if (focused) find("strip").querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus();
}
