// Bars of labels, in the classes of the report's figures.

import { figure, labelName, svg, ticks } from "/assets/dom.js";

/** Label shares: outlines of what the data has, filled with what took part. With `most`, panels share one scale. */
export function labelBars(width, height, actual, series, description, most) {
  const [left, bottom] = [34, height - 18];
  most ??= Math.max(...actual, ...series.flatMap(({ shares }) => shares ?? []));
  const high = 1.08 * most || 1;
  const y = (share) => bottom - ((bottom - 8) * share) / high;
  const step = (width - left) / actual.length;
  const parts = ticks(0, high, 3).flatMap((at) => [
    svg("line", { class: "grid", x1: left, x2: width, y1: y(at), y2: y(at) }),
    svg("text", { class: "tick", x: left - 4, y: y(at) + 4, "text-anchor": "end" }, `${+(100 * at).toFixed(1)} %`),
  ]);
  // Many labels: bars touch, and only some have their name.
  const gap = step < 8 ? 0 : 0.12;
  const every = Math.ceil(18 / step);
  actual.forEach((share, label) => {
    const from = left + label * step + step * gap;
    const wide = step * (1 - 2 * gap);
    const each = wide / series.length;
    series.forEach(({ shares, style }, index) => {
      if (!shares) return;
      parts.push(svg("rect", { class: `${style} bar`, x: from + index * each, width: each * (gap ? 0.94 : 1), y: y(shares[label]), height: bottom - y(shares[label]) }));
    });
    if (gap) parts.push(svg("rect", { class: "line thin ink", x: from, width: wide, y: y(share), height: bottom - y(share) }));
    if (label % every === 0) parts.push(svg("text", { class: "tick", x: from + wide / 2, y: height - 4, "text-anchor": "middle" }, labelName(label)));
  });
  if (!gap) {
    const steps = actual.flatMap((share, label) => [`${left + label * step},${y(share)}`, `${left + (label + 1) * step},${y(share)}`]);
    parts.push(svg("polyline", { class: "line thin ink", points: steps.join(" ") }));
  }
  parts.push(svg("line", { class: "axis", x1: left, x2: width, y1: bottom, y2: bottom }));
  return figure(width, height, description, ...parts);
}
