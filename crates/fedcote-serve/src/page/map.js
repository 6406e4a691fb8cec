// The map: cell and building, stations, clients where they are, and what became of their uploads.

import { figure, svg } from "/assets/common.js";

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
    return parts;
  }
}

export class NetworkMap {
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
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
      this.element.append(view.drawing);
    }
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
      const fate = copies === 0 ? "idle" : came > 0 ? "arrived" : "failed";
      for (const view of this.views) if (view !== home) view.marks.get(index)?.remove(), view.marks.delete(index);
      let mark = home.marks.get(index);
      if (!mark) {
        mark = svg("g", { class: "client-mark" }, svg("circle", { class: "ring", r: many ? 5 : 10 }), svg("circle", { class: "pin", r: many ? 3 : 6.5 }), svg("path", { class: "cross", d: "M-4,-4L4,4M-4,4L4,-4" }), svg("title"));
        if (!many) mark.append(svg("text", { class: "tick halo", x: 9, y: -8 }));
        home.layer.append(mark);
        home.marks.set(index, mark);
      }
      const [left, top] = home.pixel(x, y);
      mark.style.transform = `translate(${left.toFixed(1)}px,${top.toFixed(1)}px)`;
      const chance = failure ?? client.failure;
      mark.setAttribute("data-fate", fate);
      mark.setAttribute("data-client", client.id);
      mark.querySelector(".pin").setAttribute("class", `pin f${step(chance)}`);
      mark.querySelector("title").textContent = `client ${client.id}: ${fate === "idle" ? "not drawn" : `drawn ${copies}×, ${came} arrived`}, fails with ${chance.toFixed(3)}`;
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
