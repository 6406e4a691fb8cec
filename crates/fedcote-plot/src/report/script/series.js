// What a chart shows: columns of numbers by seed, averaged over seeds.
//
// A series is { name, style: [colour, dash], strong, seeds: [{ seed, columns: { key: [rounds, values] } }] }.

/** What can be looked at, in the words that the report uses. */
export const MEASURES = {
  test_accuracy: { name: "test accuracy", percent: true },
  test_loss: { name: "test loss" },
  train_loss: { name: "training loss" },
  arrivals: { name: "arrivals per round" },
  label_divergence_wanted: { name: "expected label divergence χ²" },
  label_divergence_realised: { name: "realised label divergence χ²" },
};

/** What can be along the horizontal axis; all but rounds add up. */
export const AXES = {
  round: "round",
  seconds: "simulated seconds",
  bytes_up: "bytes sent by clients",
  bytes_down: "bytes sent to clients",
  joules: "joules of clients",
};


export const nameOf = (key) => MEASURES[key]?.name ?? key;

/** The keys that any of the series has, of these. */
export function present(series, keys) {
  return keys.filter((key) => series.some((one) => one.seeds.some((seed) => seed.columns[key]?.[0].length)));
}

/** The sum of a column up to each round. */
function sums([rounds, values]) {
  const found = new Map();
  let sum = 0;
  rounds.forEach((round, at) => found.set(round, (sum += values[at])));
  return found;
}

/** Exponential smoothing that begins without bias; `strength` from 0 to 1. */
function smoothed(values, strength) {
  if (!strength) return values;
  let [sum, weight] = [0, 0];
  return values.map((value) => {
    sum = strength * sum + (1 - strength) * value;
    weight = strength * weight + (1 - strength);
    return sum / weight;
  });
}

/** The mean and deviation of a measure over the seeds that have reached a round: [{ x, round, mean, deviation, count }]. */
export function mean(one, key, axis, strength) {
  const at = new Map();
  for (const { columns } of one.seeds) {
    const [rounds, values] = columns[key] ?? [[], []];
    const along = axis === "round" ? null : sums(columns[axis] ?? [[], []]);
    smoothed(values, strength).forEach((value, place) => {
      const round = rounds[place];
      const x = along ? along.get(round) : round;
      if (!Number.isFinite(value) || x === undefined) return;
      const found = at.get(round) ?? { x: 0, values: [] };
      found.x += x;
      found.values.push(value);
      at.set(round, found);
    });
  }
  return [...at].sort((a, b) => a[0] - b[0]).map(([round, { x, values }]) => {
    const count = values.length;
    const middle = values.reduce((sum, value) => sum + value, 0) / count;
    const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
    return { round, x: x / count, mean: middle, deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0, count };
  });
}

/** The points of one seed alone. */
export function single(seed, key, axis, strength) {
  return mean({ seeds: [seed] }, key, axis, strength);
}

/** All points as CSV: a line per series, seed and round. */
export function csv(series, key) {
  const lines = [`series,seed,round,${key}`];
  for (const one of series) {
    for (const { seed, columns } of one.seeds) {
      const [rounds, values] = columns[key] ?? [[], []];
      const name = /[",\n]/.test(one.name) ? `"${one.name.replaceAll('"', '""')}"` : one.name;
      rounds.forEach((round, at) => lines.push(`${name},${seed},${round},${values[at]}`));
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Where an axis of rounds ends: at the last one planned; of a long run at what there is, and it grows. */
export function horizon(planned, last) {
  let rounds = planned;
  if (planned > 1000) for (rounds = 100; rounds < 1.1 * last; ) rounds *= String(rounds).startsWith("2") ? 2.5 : 2;
  return Math.max(1, Math.min(planned, rounds), last);
}
