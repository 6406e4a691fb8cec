// The map: cell and building, stations, clients where they are, and what became of their uploads.

import { figure, html, svg } from "/assets/common.js";

/** Units across: the enlarged building is drawn smaller, so that marks and names look alike. */
const SIZES = { cell: 400, building: 270, ring: 400 };
const BOUNDS = [0.01, 0.1, 0.35, 0.6, 0.85];
const step = (failure) => BOUNDS.filter((bound) => failure > bound).length;

/** A square of the plane, `extent` metres across. */
class View {
  constructor(name, middle, extent) {
    const size = SIZES[name];
    Object.assign(this, { name, middle, size, scale: size / extent });
    this.marks = new Map();
  }

  pixel(x, y) {
    return [this.size / 2 + (x - this.middle[0]) * this.scale, this.size / 2 - (y - this.middle[1]) * this.scale];
  }

  shows(x, y) {
    const [left, top] = this.pixel(x, y);
    return left >= 0 && left <= this.size && top >= 0 && top <= this.size;
  }

  ground(plan) {
    const parts = [];
    if (!plan) return [svg("rect", { class: "outdoor", width: this.size, height: this.size })];
    if (this.name === "building") parts.push(svg("rect", { class: "outdoor", width: this.size, height: this.size }));
    else parts.push(svg("circle", { class: "outdoor", cx: this.size / 2, cy: this.size / 2, r: plan.radius * this.scale }), svg("circle", { class: "axis", cx: this.size / 2, cy: this.size / 2, r: plan.radius * this.scale }));
    const [x, y, width, depth] = plan.building;
    const [left, top] = this.pixel(x - width / 2, y + depth / 2);
    const box = { x: left, y: top, width: width * this.scale, height: depth * this.scale };
    parts.push(svg("rect", { class: "indoor", ...box }), svg("rect", { class: "line thin ink", ...box }));
    parts.push(svg("text", { class: "note", x: 6, y: this.size - 6 }, this.name === "building" ? "the building, enlarged" : `cell of ${plan.radius} m radius`));
    const metres = [5, 10, 20, 50, 100, 200, 500, 1000].find((length) => length * this.scale > 45) ?? 1000;
    const [right, base] = [this.size - 8, this.size - 10];
    parts.push(svg("path", { class: "line thin ink", d: `M${right - metres * this.scale},${base - 5}V${base}H${right}V${base - 5}` }));
    parts.push(svg("text", { class: "note", x: right, y: base - 9, "text-anchor": "end" }, `${metres} m`));
    return parts;
  }
}

/** What became of the uploads of a client: all, some or none arrived, or it was not drawn. */
const fateOf = (copies, came) => (copies === 0 ? "idle" : came === 0 ? "failed" : came < copies ? "partly" : "arrived");

/** A shape for each standard, as in the report. */
const SHAPES = {
  wifi24: "M-6,0A6,6 0 1 1 6,0A6,6 0 1 1 -6,0Z",
  wifi5: "M-5.5,-5.5H5.5V5.5H-5.5Z",
  "4g": "M0,-7.5L7,5.5H-7Z",
  "5g": "M0,-7.5L7.5,0L0,7.5L-7.5,0Z",
};
const NAMES = { wifi24: "Wi-Fi 2.4 GHz", wifi5: "Wi-Fi 5 GHz", "4g": "4G", "5g": "5G" };

export class NetworkMap {
  /** `pick` is told the name of a client that is chosen. */
  constructor(element, pick) {
    this.element = element;
    this.pick = pick;
    this.clear();
  }

  clear() {
    this.canvas = null;
    this.plan = undefined;
    this.views = [];
    this.element.replaceChildren();
  }

  /** Sets up the views: with a plan the cell and its building, without one a ring around the server. */
  layOut(plan, clients) {
    this.clear();
    this.plan = plan;
    this.clients = clients;
    this.views = [];
    if (plan) {
      const [x, y, width, depth] = plan.building;
      const inset = Math.max(width, depth) < 0.35 * plan.radius;
      this.views.push(new View("cell", [0, 0], 2.12 * plan.radius));
      if (inset) this.views.push(new View("building", [x, y], 1.25 * Math.max(width, depth)));
    } else this.views.push(new View("ring", [0, 0], 2.5));
    for (const view of this.views) {
      view.links = svg("g");
      view.layer = svg("g");
      view.drawing = figure(view.size, view.size, "", ...view.ground(plan), view.links, view.layer, ...this.stations(view));
      view.drawing.classList.add(view.name);
      view.drawing.setAttribute("role", "group");
      this.element.append(view.drawing);
    }
    const standards = [...new Set(clients.map((client) => client.standard).filter((standard) => standard in SHAPES))];
    if (standards.length) {
      const item = (standard) => html("li", {}, figure(16, 16, NAMES[standard], svg("path", { class: "line ink", transform: "translate(8,8) scale(.9)", d: SHAPES[standard] })), NAMES[standard]);
      this.element.append(html("ul", { className: "legend standards" }, ...standards.map(item)));
    }
  }

  /** More clients than can be drawn one by one: a square each, row by row, on a canvas. */
  drawMany(count, clients, drawn, arrived, description) {
    const side = Math.ceil(Math.sqrt(count));
    if (this.canvas?.dataset.count !== String(count)) {
      this.clear();
      const cell = Math.max(1, Math.floor(800 / side));
      this.canvas = html("canvas", { width: side * cell, height: Math.ceil(count / side) * cell, className: "many", role: "img" });
      Object.assign(this.canvas.dataset, { count, cell });
      this.element.append(this.canvas);
    }
    const { canvas } = this;
    const cell = Number(canvas.dataset.cell);
    canvas.setAttribute("aria-label", description);
    const looks = getComputedStyle(document.documentElement);
    const colour = (name) => looks.getPropertyValue(`--fc-${name}`).trim();
    const paint = canvas.getContext("2d");
    const square = (index, fill) => {
      paint.fillStyle = fill;
      paint.fillRect((index % side) * cell, Math.floor(index / side) * cell, Math.max(1, cell * 0.9), Math.max(1, cell * 0.9));
    };
    paint.fillStyle = colour("outdoor");
    paint.fillRect(0, 0, canvas.width, canvas.height);
    if (clients) {
      const steps = [0, 1, 2, 3, 4, 5].map((number) => colour(`f${number}`));
      clients.forEach((client, index) => square(index, steps[step(client.failure)]));
    }
    const [good, bad] = [colour("good"), colour("bad")];
    const bigger = Math.max(cell, 3);
    for (const [index, copies] of drawn) {
      paint.fillStyle = fateOf(copies, arrived.get(index) ?? 0) === "failed" ? bad : good;
      paint.fillRect((index % side) * cell - (bigger - cell) / 2, Math.floor(index / side) * cell - (bigger - cell) / 2, bigger, bigger);
    }
    canvas.dataset.drawn = drawn.size;
  }

  stations(view) {
    const shown = (this.plan?.stations ?? [{ name: "server", x: 0, y: 0 }]).filter((at) => this.home(at) === view);
    return shown.map((station) => {
      const [x, y] = view.pixel(station.x, station.y);
      return svg("g", { class: "ink", transform: `translate(${x},${y})` }, svg("path", { class: "fill", d: "M0,-9L8,7H-8Z" }), svg("title", {}, station.name));
    });
  }

  /** The view that a point is drawn in: the building where it is enlarged, else the cell. */
  home(at) {
    const inset = this.views.find((view) => view.name === "building");
    return inset?.shows(at.x, at.y) ? inset : this.views[0];
  }

  station(client) {
    const stations = this.plan?.stations ?? [{ x: 0, y: 0 }];
    const wanted = /^wifi/.test(client.standard ?? "") ? "access point" : "base station";
    return stations.find((station) => station.name === wanted) ?? stations[0];
  }

  /** Draws a round: places ([x, y, indoors, failure]), copies drawn and arrived by client. */
  draw(places, drawn, arrived, description) {
    const many = this.clients.length > 60;
    for (const view of this.views) {
      view.drawing.setAttribute("aria-label", description);
      view.links.replaceChildren();
    }
    this.clients.forEach((client, index) => {
      const turn = (2 * Math.PI * index) / this.clients.length - Math.PI / 2;
      const [x, y, , failure] = places[index] ?? (this.plan ? [client.x ?? 0, client.y ?? 0, client.indoor, null] : [Math.cos(turn), -Math.sin(turn), false, null]);
      const home = this.home({ x, y });
      const copies = drawn.get(index) ?? 0;
      const came = arrived.get(index) ?? 0;
      const fate = fateOf(copies, came);
      for (const view of this.views) if (view !== home) view.marks.get(index)?.remove(), view.marks.delete(index);
      let mark = home.marks.get(index);
      if (!mark) {
        mark = svg("g", { class: "client-mark" }, svg("circle", { class: "ring", r: many ? 5 : 10 }), many ? svg("circle", { class: "pin", r: 3 }) : svg("path", { class: "pin", d: SHAPES[client.standard] ?? SHAPES.wifi24 }), svg("path", { class: "cross", d: "M-4,-4L4,4M-4,4L4,-4" }), svg("title"));
        if (!many) mark.append(svg("text", { class: "tick halo", x: 9, y: -8 }));
        mark.addEventListener("click", () => this.pick(client.id));
        if (!many) {
          mark.setAttribute("tabindex", "0");
          mark.setAttribute("role", "button");
          mark.addEventListener("keydown", (event) => {
            if (event.key === "Enter" || event.key === " ") this.pick(client.id), event.preventDefault();
          });
        }
        home.layer.append(mark);
        home.marks.set(index, mark);
      }
      const [left, top] = home.pixel(x, y);
      mark.style.transform = `translate(${left.toFixed(1)}px,${top.toFixed(1)}px)`;
      const chance = failure ?? client.failure;
      mark.setAttribute("data-fate", fate);
      mark.setAttribute("data-client", client.id);
      mark.querySelector(".pin").setAttribute("class", `pin f${step(chance)}`);
      const words = `client ${client.id}: ${fate === "idle" ? "not drawn" : `drawn ${copies}×, ${came} arrived`}, fails with ${chance.toFixed(3)}`;
      mark.querySelector("title").textContent = words;
      mark.setAttribute("aria-label", words);
      const name = mark.querySelector("text");
      if (name) name.textContent = copies > 1 ? `${client.id} ×${copies}` : client.id;
      if (fate !== "idle" && !many) {
        const station = this.station(client);
        const [toLeft, toTop] = home.pixel(station.x, station.y);
        home.links.append(svg("line", { class: `link ${fate}`, x1: left, y1: top, x2: toLeft, y2: toTop }));
      }
    });
  }
}
