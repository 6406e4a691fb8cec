// What is known of a comparison: rounds as they come, and sums over them.

/** One scheme with one seed. */
export class Run {
  constructor() {
    this.clients = null;
    this.diverged = false;
    this.cut(0);
  }

  /** Rounds that came; they begin right after the last one. */
  add(rounds) {
    for (const round of rounds) {
      this.rounds[round.round - 1] = round;
      const came = count(round.arrived);
      this.column("arrivals", round.round, came);
      for (const [key, value] of [["arrivals", came], ["label_divergence_realised", round.label_divergence_realised], ["label_divergence_wanted", round.label_divergence_wanted]]) {
        const sums = (this.totals[key] ??= [[0], [0]]);
        sums[0][round.round] = sums[0].at(-1) + (value ?? 0);
        sums[1][round.round] = sums[1].at(-1) + (value === undefined ? 0 : 1);
      }
      for (const [key, value] of Object.entries({ ...round, ...round.scores })) {
        if (typeof value === "number" && key !== "round" && key !== "attempts") this.column(key, round.round, value);
      }
    }
  }

  column(key, round, value) {
    const column = (this.columns[key] ??= [[], []]);
    column[0].push(round);
    column[1].push(value);
  }

  cut(round) {
    const kept = (this.rounds ?? []).slice(0, round);
    [this.rounds, this.columns, this.totals, this.sums, this.diverged] = [[], {}, {}, null, false];
    this.add(kept);
  }

  /** The last value of a measure up to a round, with none if the run has not got so far. */
  last(key, round) {
    const [rounds, values] = this.columns[key] ?? [[], []];
    for (let at = rounds.length - 1; at >= 0; at--) if (rounds[at] <= round) return values[at];
    return undefined;
  }

  /** The mean of a number over rounds 1 to `round`. */
  mean(key, round) {
    const at = Math.min(round, this.rounds.length);
    const [sums, counts] = this.totals[key] ?? [[0], [0]];
    return counts[at] ? sums[at] / counts[at] : undefined;
  }

  /** Label shares in what arrived in rounds 1 to `round`, null for nothing; goes on from the last call where it can. */
  labels(round) {
    const wanted = Math.min(round, this.rounds.length);
    if (!this.sums || this.sums.round > wanted || this.sums.clients !== this.clients) {
      this.sums = { round: 0, clients: this.clients, labels: new Array(this.clients?.classes ?? 0).fill(0), heard: 0 };
    }
    const { sums } = this;
    while (sums.round < wanted) {
      const now = this.rounds[sums.round++];
      const total = count(now?.arrived ?? []);
      if (!total || !this.clients) continue;
      sums.heard++;
      for (const [client, copies] of now.arrived) {
        const labels = this.clients.clients[client]?.labels ?? [];
        for (let label = 0; label < labels.length; label++) sums.labels[label] += (copies / total) * labels[label];
      }
    }
    return sums.heard ? sums.labels.map((sum) => sum / sums.heard) : null;
  }
}

/** Copies in a list of [client, copies]. */
export const count = (list) => list.reduce((sum, [, copies]) => sum + copies, 0);

export class State {
  constructor() {
    this.reset();
  }

  reset() {
    this.general = null;
    this.begun = null;
    this.styles = [];
    this.remembers = [];
    this.runs = new Map();
    this.status = null;
    this.notices = [];
    this.events = 0;
    this.pace = [];
  }

  run(key) {
    if (!this.runs.has(key)) this.runs.set(key, new Run());
    return this.runs.get(key);
  }

  /** Takes an event in. */
  take(kind, data) {
    this.version = {};
    switch (kind) {
      case "reset": return this.reset();
      case "scenario": [this.general, this.styles, this.remembers, this.begun] = [data.general, data.styles, data.remembers ?? [], data.begun ?? null]; return;
      case "status": this.status = data; return;
      case "clients": this.run(data.run).clients = data.clients; return;
      case "rounds": {
        const run = this.run(data.run);
        run.add(data.rounds);
        run.grown = ++this.events;
        return;
      }
      case "cut": this.run(data.run).cut(data.round); return;
      case "diverged": this.run(data.run).diverged = true; return;
      case "notice": if (!this.notices.includes(data.text)) this.notices.push(data.text); return;
    }
  }

  /** The runs of a scheme that have begun, one a seed. */
  of(scheme) {
    const seeds = this.general?.seeds ?? [];
    return seeds.map((seed) => this.runs.get(`${scheme}/${seed}`)).filter((run) => run?.rounds.length);
  }

  /** How a run stands: waiting, running, stopped, done or diverged. */
  standing(key) {
    const run = this.runs.get(key);
    if (run?.diverged) return "diverged";
    if (run && run.rounds.length >= this.general.rounds) return "done";
    const going = this.status?.state === "running";
    if (!run?.rounds.length) return "waiting";
    return going ? "running" : "stopped";
  }

  /** The run that grew last and has not ended; the one looked at now as long as it grows. */
  growing(now) {
    const open = [...this.runs].filter(([key, run]) => run.rounds.length && this.standing(key) === "running");
    if (!open.length) return null;
    const newest = open.reduce((a, b) => ((a[1].grown ?? 0) >= (b[1].grown ?? 0) ? a : b));
    const mine = open.find(([key]) => key === now);
    return mine && (mine[1].grown ?? 0) > (newest[1].grown ?? 0) - 2 * open.length - 4 ? now : newest[0];
  }

  /** The last round of any run. */
  get last() {
    let last = 0;
    for (const run of this.runs.values()) last = Math.max(last, run.rounds.length);
    return last;
  }

  /** Rounds played and to be played over all runs; one that blew up plays no more. */
  progress() {
    const { schemes, seeds, rounds } = this.general;
    let [done, total] = [0, 0];
    for (const scheme of schemes) {
      for (const seed of seeds) {
        const run = this.runs.get(`${scheme}/${seed}`);
        const played = run?.rounds.length ?? 0;
        done += played;
        total += run?.diverged ? played : rounds;
      }
    }
    return { done, total };
  }

  /** Rounds a second over the last half minute that was watched. */
  rate(now) {
    const { done } = this.progress();
    if (this.pace.at(-1)?.done !== done) this.pace.push({ now, done });
    while (this.pace.length > 2 && this.pace[0].now < now - 30000) this.pace.shift();
    const [first, last] = [this.pace[0], this.pace.at(-1)];
    return last && last.now > first.now + 1500 ? (1000 * (last.done - first.done)) / (last.now - first.now) : undefined;
  }

  /** The curves of the chart. */
  series() {
    return this.general.schemes.map((scheme, at) => {
      const seeds = this.general.seeds.map((seed) => ({ seed, columns: this.runs.get(`${scheme}/${seed}`)?.columns ?? {} }));
      return { name: scheme, style: this.styles[at], strong: /^fedcote/.test(scheme), seeds };
    });
  }

  /** Mean, deviation and number of a value over the seeds that have reached a round. */
  over(scheme, round, value) {
    const reached = this.of(scheme).filter((run) => run.rounds.length >= round || run.diverged);
    const values = reached.map(value).filter((found) => found !== undefined);
    if (!values.length) return null;
    const mean = values.reduce((sum, found) => sum + found, 0) / values.length;
    const squares = values.reduce((sum, found) => sum + (found - mean) ** 2, 0);
    return { mean, deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null, count: values.length };
  }
}
