// Elements and numbers, for the live page and for the script inside a report.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with properties and children; texts are never read as HTML. */
export function html(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element && key !== "for" && key !== "role") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** An SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A figure that says in words what it shows. */
export function figure(width, height, description, ...children) {
  const box = { class: "fig", viewBox: `0 0 ${width} ${height}`, width, height };
  return svg("svg", { ...box, role: "img", "aria-label": description }, ...children);
}

/** Round numbers between two bounds, about so many; whole ones if asked. */
export function ticks(low, high, count, whole = false) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) ?? power;
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(+(at * step).toPrecision(12));
  return found;
}

/** A number in three significant digits, the same way everywhere. */
export function number(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  if (size >= 1e6) return `${number(value / 1e6)} million`;
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 5e-5) return value.toExponential(1);
  return String(+value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4));
}

export const percent = (share, digits = 1) => (share === undefined || share === null ? "–" : `${(100 * share).toFixed(digits)} %`);

export const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

/** The names of labels 0, 1, …: short, the same everywhere. */
export const labelName = (index) => String(index);

/** Gives the browser a file to save. */
export function save(name, blob) {
  const link = html("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
