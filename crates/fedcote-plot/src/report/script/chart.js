// The chart of the live page and of reports: curves to look into.

import { figure, html, number, save, svg, ticks } from "/assets/dom.js";
import { AXES, MEASURES, csv, horizon, mean, nameOf, present, single } from "/assets/series.js";

const write = (key, value) => (MEASURES[key]?.percent ? `${(100 * value).toFixed(2)} %` : number(value));

/** A chart in an element. `view` is what is looked at; `changed` is told when the reader changes it. */
export class Chart {
  constructor(element, changed = () => {}) {
    Object.assign(this, { element, changed, series: [], rounds: 0, mark: null, at: null });
    this.view = { measure: "test_accuracy", axis: "round", smooth: 0, log: false, seeds: false, hidden: [], zoom: null };
    this.controls();
    this.plot = html("div", { className: "plot", tabIndex: 0, role: "group", "aria-label": "Chart: arrow keys move along the curves, plus and minus zoom, Escape shows all" });
    this.readout = html("div", { className: "readout", role: "status", hidden: true });
    this.legend = html("div", { className: "names", role: "group", "aria-label": "Curves, each can be hidden" });
    element.classList.add("chart");
    element.append(this.bar, this.plot, this.readout, this.legend);
    this.listen();
  }

  /** Shows these series of runs of so many rounds, with a mark at a round. Where the version is the one before, the curves are. */
  show(series, rounds, mark = null, version = {}) {
    const same = version === this.version && rounds === this.rounds;
    Object.assign(this, { series, rounds, mark, version });
    if (same) return this.marked();
    this.wanted ??= { measure: this.view.measure, axis: this.view.axis };
    this.offer(this.measure, present(series, [...Object.keys(MEASURES), ...this.others()]), nameOf, "measure");
    this.offer(this.axis, ["round", ...present(series, Object.keys(AXES))], (key) => AXES[key], "axis");
    this.draw();
  }

  /** Scores that a task of one's own reports. */
  others() {
    const keys = new Set(this.series.flatMap((one) => one.seeds.flatMap((seed) => Object.keys(seed.columns))));
    return [...keys].filter((key) => !(key in MEASURES) && !(key in AXES));
  }

  offer(select, keys, name, field) {
    if (!keys.length) keys = [this.view[field]];
    // What is wanted may come later: a run has arrivals before it has an accuracy.
    this.view[field] = keys.includes(this.wanted[field]) ? this.wanted[field] : keys[0];
    if (select.dataset.keys !== keys.join()) {
      select.dataset.keys = keys.join();
      select.replaceChildren(...keys.map((value) => html("option", { value }, name(value))));
    }
    select.value = this.view[field];
    select.parentElement.hidden = keys.length < 2;
  }

  controls() {
    const choose = (text, field) => {
      const select = html("select");
      select.addEventListener("change", () => this.set({ [field]: select.value, zoom: null }));
      return [select, html("label", {}, `${text} `, select)];
    };
    const button = (text, title, work) => {
      const made = html("button", { type: "button", title }, text);
      made.addEventListener("click", work);
      return made;
    };
    const [measure, first] = choose("Show", "measure");
    const [axis, second] = choose("over", "axis");
    this.smooth = html("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0, "aria-label": "Smoothing" });
    this.smooth.addEventListener("input", () => this.set({ smooth: Number(this.smooth.value) }));
    const toggle = (text, field) => {
      const made = html("button", { type: "button", "aria-pressed": "false" }, text);
      made.addEventListener("click", () => this.set({ [field]: !this.view[field] }));
      return made;
    };
    Object.assign(this, { measure, axis, log: toggle("Log", "log"), each: toggle("Seeds", "seeds") });
    this.reset = button("Whole range", "Show all rounds again", () => this.set({ zoom: null }));
    const files = html("span", { className: "files" }, button("PNG", "Save the chart as PNG", () => this.png()), button("SVG", "Save the chart as SVG", () => this.save("svg")), button("CSV", "Save the numbers as CSV", () => this.save("csv")));
    this.bar = html("div", { className: "chart-bar" }, first, second, html("label", {}, "Smooth ", this.smooth), this.log, this.each, this.reset, files);
  }

  set(change) {
    Object.assign(this.view, change);
    for (const field of ["measure", "axis"]) if (field in change) this.wanted[field] = change[field];
    this.draw();
    this.changed(this.view);
  }

  visible() {
    return this.series.filter((one) => !this.view.hidden.includes(one.name));
  }

  draw() {
    const { view } = this;
    const width = Math.max(280, this.plot.clientWidth || this.element.clientWidth || 600);
    const height = Math.round(Math.max(220, Math.min(400, 0.5 * width)));
    this.lines = this.visible().map((one) => ({ one, points: mean(one, view.measure, view.axis, view.smooth) })).filter((line) => line.points.length);
    const direct = width >= 520;
    const right = direct ? Math.min(0.3 * width, 24 + 7.2 * Math.max(0, ...this.lines.map(({ one }) => one.name.length))) : 10;
    this.area = { left: 52, right: width - right, top: 24, bottom: height - 36 };
    this.scales();
    const parts = this.frame(width, height);
    for (const { one, points } of this.lines) parts.push(...this.curve(one, points));
    if (direct) parts.push(...this.labels());
    this.cursor = svg("g", { class: "cursor" });
    const words = this.lines.map(({ one, points }) => `${one.name} ${write(view.measure, points[points.length - 1].mean)}`);
    const text = words.length ? `${nameOf(view.measure)} over ${AXES[view.axis]}. Last: ${words.join(", ")}.` : `${nameOf(view.measure)}: no values yet.`;
    const drawing = figure(width, height, text, ...parts, this.cursor);
    drawing.dataset.series = this.lines.length;
    // What is the same is not put there again: the pointer may be over it.
    this.plot.replaceChildren(drawing);
    this.drawing = drawing;
    for (const [made, on] of [[this.log, view.log], [this.each, view.seeds]]) made.setAttribute("aria-pressed", String(on));
    this.smooth.value = view.smooth;
    this.reset.hidden = !view.zoom;
    this.names();
    this.point(this.at);
  }

  scales() {
    const { area, view } = this;
    const all = this.lines.flatMap(({ points }) => points);
    const last = all.reduce((most, point) => Math.max(most, point.x), 0);
    const whole = view.axis === "round" ? [0, horizon(this.rounds, last)] : [0, last || 1];
    this.whole = whole;
    const [x0, x1] = view.zoom ?? whole;
    const seen = all.filter((point) => point.x >= x0 && point.x <= x1);
    let low = Infinity;
    let high = -Infinity;
    for (const { mean: middle, deviation } of seen) {
      low = Math.min(low, view.log && middle - deviation <= 0 ? middle : middle - deviation);
      high = Math.max(high, middle + deviation);
    }
    if (!(low <= high)) [low, high] = MEASURES[view.measure]?.percent ? [0, 1] : [0, 1];
    this.logarithmic = view.log && low > 0;
    // A span of less than two points, or a tenth, would make noise look like a difference.
    const least = MEASURES[view.measure]?.percent ? 0.02 : 0.1 * Math.max(Math.abs(low), Math.abs(high), 1e-12);
    if (!this.logarithmic) {
      const room = Math.max((high - low) * 1.06, least) - (high - low);
      [low, high] = [low - room / 2, high + room / 2];
      if (MEASURES[view.measure]?.percent) [low, high] = [Math.max(0, low), Math.min(1, high)];
      else if (low < 0 && seen.every((point) => point.mean >= 0)) low = 0;
    } else [low, high] = [low / 1.05, high * 1.05];
    const bend = this.logarithmic ? Math.log : (value) => value;
    Object.assign(this, { x0, x1, low, high });
    this.x = (value) => area.left + ((area.right - area.left) * (value - x0)) / (x1 - x0 || 1);
    this.y = (value) => {
      const share = (bend(Math.max(value, this.logarithmic ? low : -Infinity)) - bend(low)) / (bend(high) - bend(low) || 1);
      return area.bottom - (area.bottom - area.top) * share;
    };
  }

  frame(width, height) {
    const { area, view } = this;
    const parts = [];
    const percent = MEASURES[view.measure]?.percent;
    const decades = () => {
      const found = [];
      for (let power = Math.floor(Math.log10(this.low)); 10 ** power <= this.high; power++) for (const factor of [1, 2, 5]) found.push(+(factor * 10 ** power).toPrecision(12));
      return found.filter((at) => at >= this.low && at <= this.high);
    };
    for (const at of this.logarithmic ? decades() : ticks(this.low, this.high, height / 60)) {
      parts.push(svg("line", { class: "grid", x1: area.left, x2: area.right, y1: this.y(at), y2: this.y(at) }));
      parts.push(svg("text", { class: "tick", x: area.left - 6, y: this.y(at) + 4, "text-anchor": "end" }, percent ? `${+(100 * at).toFixed(2)} %` : number(at)));
    }
    for (const at of ticks(this.x0, this.x1, (area.right - area.left) / 90, view.axis === "round")) {
      parts.push(svg("text", { class: "tick", x: this.x(at), y: area.bottom + 16, "text-anchor": "middle" }, number(at)));
    }
    parts.push(svg("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
    parts.push(svg("text", { class: "label", x: area.right, y: height - 3, "text-anchor": "end" }, AXES[view.axis]));
    const note = this.logarithmic ? `${nameOf(view.measure)} (logarithmic)` : nameOf(view.measure);
    parts.push(svg("text", { class: "label", x: 4, y: 9 }, note));
    this.rule = svg("line", { class: "rule", y1: area.top, y2: area.bottom });
    this.marked();
    return [...parts, this.rule];
  }

  /** Puts the mark at its round. */
  marked() {
    const shown = this.mark && this.view.axis === "round" && this.mark >= this.x0 && this.mark <= this.x1;
    const at = shown ? this.x(this.mark) : 0;
    for (const end of ["x1", "x2"]) this.rule.setAttribute(end, at);
    this.rule.setAttribute("visibility", shown ? "visible" : "hidden");
  }

  /** A line of points within the range, never more than a screen can show. */
  path(points, value) {
    const inside = points.filter((point, at) => (points[at + 1]?.x ?? point.x) >= this.x0 && (points[at - 1]?.x ?? point.x) <= this.x1);
    const every = Math.ceil(inside.length / 1500);
    const clip = (x) => Math.max(this.area.left, Math.min(this.area.right, x));
    return inside.filter((_, at) => at % every === 0 || at === inside.length - 1).map((point) => `${clip(this.x(point.x)).toFixed(1)},${this.y(value(point)).toFixed(1)}`);
  }

  curve(one, points) {
    const parts = [];
    const [colour, dash] = one.style;
    if (points.some((point) => point.deviation > 0) && this.lines.length <= 6) {
      const band = [...this.path(points, (p) => p.mean - p.deviation), ...this.path(points, (p) => p.mean + p.deviation).reverse()];
      parts.push(svg("polygon", { class: `band ${colour}`, points: band.join(" ") }));
    }
    if (this.view.seeds) {
      for (const seed of one.seeds) parts.push(svg("polyline", { class: `line thin seed ${colour}`, "stroke-opacity": 0.5, points: this.path(single(seed, this.view.measure, this.view.axis, this.view.smooth), (p) => p.mean).join(" ") }));
    }
    // Where fewer seeds have got to than before, the mean is of others: a thin line goes on.
    const most = Math.max(...points.map((point) => point.count));
    const full = points.findLastIndex((point) => point.count === most) + 1;
    const line = (some, weight) => svg("polyline", { class: `line ${colour} ${dash} ${weight}`, points: this.path(some, (p) => p.mean).join(" ") });
    const main = line(points.slice(0, full), one.strong ? "thick" : "");
    Object.assign(main.dataset, { scheme: one.name, points: points.length });
    parts.push(main);
    if (full < points.length) parts.push(line(points.slice(full - 1), "thin fewer"));
    if (points.length === 1) parts.push(svg("circle", { class: `fill ${colour}`, r: 3, cx: this.x(points[0].x), cy: this.y(points[0].mean) }));
    return parts;
  }

  /** Names at the ends of lines, moved apart. */
  labels() {
    const ends = this.lines.map(({ one, points }) => {
      const shown = points.filter((point) => point.x <= this.x1);
      const end = shown[shown.length - 1] ?? points[0];
      return { one, x: Math.min(this.x(end.x), this.area.right), y: this.y(end.mean) };
    });
    ends.sort((a, b) => a.y - b.y);
    const gap = Math.min(15, (this.area.bottom - this.area.top) / Math.max(1, ends.length));
    ends.forEach((end, at) => (end.place = Math.max(end.y, at ? ends[at - 1].place + gap : this.area.top)));
    for (let at = ends.length - 1; at >= 0; at--) ends[at].place = Math.min(ends[at].place, at + 1 < ends.length ? ends[at + 1].place - gap : this.area.bottom);
    return ends.flatMap(({ one, x, y, place }) => {
      const edge = this.area.right;
      const leader = svg("polyline", { class: `line thin ${one.style[0]}`, points: `${x + 2},${y} ${Math.max(x + 2, edge + 4)},${y} ${edge + 12},${place} ${edge + 16},${place}` });
      return [leader, svg("text", { class: one.strong ? "strong" : "name", x: edge + 19, y: place + 4 }, one.name)];
    });
  }

  /** Buttons with the names of all curves. */
  names() {
    const key = JSON.stringify([this.series.map((one) => [one.name, one.style]), this.view.hidden]);
    if (this.legend.dataset.key === key) return;
    const focused = document.activeElement?.dataset?.curve;
    this.legend.dataset.key = key;
    this.legend.replaceChildren(...this.series.map((one) => {
      const shown = !this.view.hidden.includes(one.name);
      const made = html("button", { type: "button", "aria-pressed": String(shown), title: shown ? "Hide this curve" : "Show this curve" }, html("span", { className: `swatch ${one.style.join(" ")}`, "aria-hidden": "true" }), one.name);
      made.dataset.curve = one.name;
      made.addEventListener("click", () => this.set({ hidden: shown ? [...this.view.hidden, one.name] : this.view.hidden.filter((name) => name !== one.name) }));
      return made;
    }));
    if (focused) this.legend.querySelector(`[data-curve="${CSS.escape(focused)}"]`)?.focus();
  }

  /** Shows all values at a place on the horizontal axis. */
  point(at) {
    this.at = at;
    const { area } = this;
    this.readout.hidden = at === null || !this.lines.length;
    this.cursor.replaceChildren();
    if (this.readout.hidden) return;
    const near = this.lines.map(({ one, points }) => ({ one, point: points.reduce((best, point) => (Math.abs(point.x - at) < Math.abs(best.x - at) ? point : best)) }));
    const x = near.reduce((best, { point }) => (Math.abs(point.x - at) < Math.abs(best - at) ? point.x : best), near[0].point.x);
    if (x < this.x0 || x > this.x1) return void (this.readout.hidden = true);
    this.cursor.append(svg("line", { class: "rule", x1: this.x(x), x2: this.x(x), y1: area.top, y2: area.bottom }));
    const rows = near.sort((a, b) => b.point.mean - a.point.mean).map(({ one, point }) => {
      this.cursor.append(svg("circle", { class: `fill ${one.style[0]}`, r: 3.5, cx: this.x(point.x), cy: this.y(point.mean) }));
      const spread = point.count > 1 ? ` ± ${write(this.view.measure, point.deviation)}` : "";
      const count = one.seeds.length > 1 ? `n = ${point.count} of ${one.seeds.length}` : "";
      const away = point.x === x ? "" : `at ${number(point.x)}`;
      return html("tr", {}, html("th", { scope: "row" }, html("span", { className: `swatch ${one.style.join(" ")}`, "aria-hidden": "true" }), one.name), html("td", {}, write(this.view.measure, point.mean) + spread), html("td", { className: "facts" }, [count, away].filter(Boolean).join(", ")));
    });
    this.readout.replaceChildren(html("table", {}, html("caption", {}, `${nameOf(this.view.measure)} at ${AXES[this.view.axis]} ${number(x)}`), html("tbody", {}, ...rows)));
    this.readout.dataset.x = x;
  }

  listen() {
    const at = (event) => {
      const box = this.drawing.getBoundingClientRect();
      const left = ((event.clientX - box.left) * this.drawing.viewBox.baseVal.width) / box.width;
      const share = (left - this.area.left) / (this.area.right - this.area.left);
      return this.x0 + Math.max(0, Math.min(1, share)) * (this.x1 - this.x0);
    };
    let from = null;
    // Two fingers zoom: what was under them stays under them.
    const fingers = new Map();
    let pinch = null;
    const share = (x) => {
      const box = this.drawing.getBoundingClientRect();
      return (((x - box.left) * this.drawing.viewBox.baseVal.width) / box.width - this.area.left) / (this.area.right - this.area.left);
    };
    const lift = (event) => {
      fingers.delete(event.pointerId);
      pinch = null;
    };
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      if (event.pointerType === "touch") {
        fingers.set(event.pointerId, event.clientX);
        pinch = fingers.size === 2 ? [...fingers.values()].map((x) => this.x0 + share(x) * (this.x1 - this.x0)) : null;
      }
      from = event.pointerType === "touch" ? null : at(event);
      this.point(at(event));
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event.clientX);
      if (pinch) return this.pinched(pinch, [...fingers.values()].map(share));
      const to = at(event);
      this.point(to);
      if (from === null) return;
      const [left, right] = [this.x(Math.min(from, to)), this.x(Math.max(from, to))];
      this.cursor.append(svg("rect", { class: "veil ink", x: left, width: right - left, y: this.area.top, height: this.area.bottom - this.area.top }));
    });
    addEventListener("pointerup", (event) => {
      if (from === null) return;
      const range = [from, at(event)].sort((a, b) => a - b);
      from = null;
      if (range[1] - range[0] > 0.01 * (this.x1 - this.x0)) this.set({ zoom: range });
    });
    addEventListener("pointerup", lift);
    addEventListener("pointercancel", (event) => {
      lift(event);
      from = null;
    });
    // A finger leaves when it is lifted: what it showed stays to be read.
    this.plot.addEventListener("pointerleave", (event) => from === null && event.pointerType !== "touch" && this.point(null));
    this.plot.addEventListener("dblclick", () => this.set({ zoom: null }));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.series.length && this.draw());
  }

  /** Zooms so that two values are at two shares of the width. */
  pinched(values, shares) {
    if (Math.abs(shares[1] - shares[0]) < 0.02) return;
    const scale = (values[1] - values[0]) / (shares[1] - shares[0]);
    if (!(scale > 0)) return;
    const start = values[0] - shares[0] * scale;
    const whole = this.whole;
    const range = [Math.max(whole[0], start), Math.min(whole[1], start + scale)];
    if (range[1] - range[0] > 1e-3 * (whole[1] - whole[0])) this.set({ zoom: range[0] <= whole[0] && range[1] >= whole[1] ? null : range });
  }

  key(event) {
    const middle = this.at ?? this.x1;
    const places = [...new Set(this.lines.flatMap(({ points }) => points.map((point) => point.x)))].filter((x) => x >= this.x0 && x <= this.x1).sort((a, b) => a - b);
    if (!places.length) return;
    const index = places.reduce((best, x, place) => (Math.abs(x - middle) < Math.abs(places[best] - middle) ? place : best), 0);
    const go = (place) => this.point(places[Math.max(0, Math.min(places.length - 1, place))]);
    const zoom = (factor) => {
      const half = ((this.x1 - this.x0) * factor) / 2;
      const range = [Math.max(0, middle - half), middle + half];
      this.set({ zoom: factor > 1 && half * 2 >= places.length && range[0] === 0 ? null : range });
    };
    const work = { ArrowLeft: () => go(index - 1), ArrowRight: () => go(index + 1), Home: () => go(0), End: () => go(places.length - 1), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: () => (this.view.zoom ? this.set({ zoom: null }) : this.point(null)) }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  /** The drawing with its looks written into it, so that it stands alone. */
  alone() {
    const copy = this.drawing.cloneNode(true);
    copy.querySelector(".cursor")?.remove();
    const originals = this.drawing.querySelectorAll("*:not(.cursor):not(.cursor *)");
    copy.querySelectorAll("*").forEach((element, at) => {
      const looks = getComputedStyle(originals[at]);
      for (const name of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "font-family", "font-size", "font-weight"]) element.setAttribute(name, looks.getPropertyValue(name));
    });
    const paper = getComputedStyle(document.documentElement).backgroundColor;
    copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paper }));
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return new XMLSerializer().serializeToString(copy);
  }

  file(kind) {
    return `${document.title.split(" · ")[0].replace(/[^\w-]+/g, "-")}-${this.view.measure}.${kind}`;
  }

  save(kind) {
    const [text, type] = kind === "csv" ? [csv(this.visible(), this.view.measure), "text/csv"] : [this.alone(), "image/svg+xml"];
    save(this.file(kind), new Blob([text], { type }));
  }

  async png() {
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.alone())}`;
    await picture.decode();
    const canvas = html("canvas", { width: 2 * picture.width, height: 2 * picture.height });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    context.drawImage(picture, 0, 0);
    canvas.toBlob((blob) => save(this.file("png"), blob), "image/png");
  }
}
