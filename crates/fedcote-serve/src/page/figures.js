// Curves and bars, in the classes of the report's figures.

import { figure, labelName, percent, svg, ticks } from "/assets/common.js";

/** Accuracy over rounds, a line a scheme, with a mark at the round shown. */
export function curves(width, height, schemes, wanted, last, shown) {
  // Of a long run the axis shows what there is, and grows.
  let rounds = wanted;
  if (wanted > 1000) for (rounds = 100; rounds < 1.1 * last; ) rounds *= String(rounds).startsWith("2") ? 2.5 : 2;
  rounds = Math.min(wanted, rounds);
  const area = { left: 44, right: width - 12, top: 12, bottom: height - 34 };
  const all = schemes.flatMap((scheme) => scheme.points.map((point) => point[1]));
  const low = all.length ? Math.max(0, Math.floor(10 * Math.min(...all)) / 10) : 0;
  const high = all.length ? Math.min(1, Math.max(low + 0.1, Math.ceil(20 * Math.max(...all) + 0.2) / 20)) : 1;
  const x = (round) => area.left + ((area.right - area.left) * round) / Math.max(1, rounds);
  const y = (accuracy) => area.bottom - ((area.bottom - area.top) * (accuracy - low)) / (high - low);
  const parts = [];
  for (const at of ticks(low, high, height / 55)) {
    parts.push(svg("line", { class: "grid", x1: area.left, x2: area.right, y1: y(at), y2: y(at) }));
    parts.push(svg("text", { class: "tick", x: area.left - 6, y: y(at) + 4, "text-anchor": "end" }, `${+(100 * at).toFixed(1)}`));
  }
  for (const at of ticks(0, rounds, width / 90)) {
    parts.push(svg("text", { class: "tick", x: x(at), y: area.bottom + 16, "text-anchor": "middle" }, String(at)));
  }
  parts.push(svg("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
  parts.push(svg("text", { class: "label", x: area.right, y: height - 2, "text-anchor": "end" }, "round"));
  parts.push(svg("text", { class: "label", x: area.left + 4, y: area.top + 2 }, "%"));
  if (shown > 0) parts.push(svg("line", { class: "rule", x1: x(shown), x2: x(shown), y1: area.top, y2: area.bottom }));
  for (const { name, style, points, emphasised } of schemes) {
    // No screen has more points than these.
    const every = Math.ceil(points.length / 1500);
    const path = points.filter((_, at) => at % every === 0 || at === points.length - 1).map(([round, accuracy]) => `${x(round).toFixed(1)},${y(accuracy).toFixed(1)}`).join(" ");
    const weight = emphasised ? "thick" : "";
    const line = svg("polyline", { class: `line ${style[0]} ${style[1]} ${weight}`, points: path, "data-scheme": name, "data-points": points.length });
    parts.push(line);
    if (points.length === 1) parts.push(svg("circle", { class: `fill ${style[0]}`, r: 3, cx: x(points[0][0]), cy: y(points[0][1]) }));
  }
  const words = schemes.filter(({ points }) => points.length).map(({ name, points }) => `${name} ${percent(points.at(-1)[1])}`);
  const text = words.length ? `Test accuracy over rounds. Last: ${words.join(", ")}.` : "Test accuracy over rounds: no evaluation yet.";
  return figure(width, height, text, ...parts);
}

/** Label shares: outlines of what the data has, filled with what took part. */
export function labelBars(width, height, actual, series, description) {
  const bottom = height - 18;
  const most = Math.max(...actual, ...series.flatMap(({ shares }) => shares ?? [])) * 1.08 || 1;
  const y = (share) => bottom - ((bottom - 8) * share) / most;
  const step = width / actual.length;
  const parts = [];
  actual.forEach((share, label) => {
    const left = label * step + step * 0.12;
    const wide = step * 0.76;
    const each = wide / series.length;
    series.forEach(({ shares, style }, index) => {
      if (!shares) return;
      const bar = { class: `${style} soft`, x: left + index * each + each * 0.04, width: each * 0.92, y: y(shares[label]), height: bottom - y(shares[label]) };
      parts.push(svg("rect", bar));
    });
    parts.push(svg("rect", { class: "line thin ink", x: left, width: wide, y: y(share), height: bottom - y(share) }));
    parts.push(svg("text", { class: "tick", x: left + wide / 2, y: height - 4, "text-anchor": "middle" }, labelName(label)));
  });
  parts.push(svg("line", { class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom }));
  return figure(width, height, description, ...parts);
}
