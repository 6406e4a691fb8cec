// What is known of a run: rounds as they come, and sums over them.

export class Run {
  constructor() {
    this.rounds = [];
    this.clients = null;
    this.diverged = false;
    this.sums = null;
  }

  /** Rounds that came; they begin right after the last one. */
  add(rounds) {
    for (const round of rounds) this.rounds[round.round - 1] = round;
  }

  cut(round) {
    this.rounds.length = Math.min(this.rounds.length, round);
    this.sums = null;
    this.diverged = false;
  }

  /** The last evaluated accuracy up to a round. */
  accuracy(round) {
    for (let at = Math.min(round, this.rounds.length) - 1; at >= 0; at--) {
      const accuracy = this.rounds[at]?.test_accuracy;
      if (accuracy !== undefined && accuracy !== null) return accuracy;
    }
    return undefined;
  }

  /** Label shares and arrivals summed over rounds 1 to `round`; goes on from the last call where it can. */
  upTo(round) {
    const wanted = Math.min(round, this.rounds.length);
    if (!this.sums || this.sums.round > wanted || this.sums.clients !== this.clients) {
      const classes = this.clients?.classes ?? 0;
      this.sums = { round: 0, clients: this.clients, labels: new Array(classes).fill(0), heard: 0, arrivals: 0 };
    }
    const { sums } = this;
    while (sums.round < wanted) {
      const now = this.rounds[sums.round++];
      const arrived = now?.arrived ?? [];
      const total = arrived.reduce((sum, [, copies]) => sum + copies, 0);
      sums.arrivals += total;
      if (!total || !this.clients) continue;
      sums.heard++;
      for (const [client, copies] of arrived) {
        const labels = this.clients.clients[client]?.labels ?? [];
        for (let label = 0; label < labels.length; label++) sums.labels[label] += (copies / total) * labels[label];
      }
    }
    return {
      round: wanted,
      labels: sums.heard ? sums.labels.map((sum) => sum / sums.heard) : null,
      arrivals: wanted ? sums.arrivals / wanted : undefined,
    };
  }

  /** χ² of the labels so far against those of all data. */
  divergence(round) {
    const { labels } = this.upTo(round);
    const all = this.clients?.global_labels;
    if (!labels || !all) return undefined;
    return all.reduce((sum, share, label) => sum + (share > 0 ? (labels[label] - share) ** 2 / share : 0), 0);
  }
}

export class State {
  constructor() {
    this.reset();
  }

  reset() {
    this.general = null;
    this.styles = [];
    this.runs = new Map();
    this.status = null;
    this.notices = [];
  }

  run(key) {
    if (!this.runs.has(key)) this.runs.set(key, new Run());
    return this.runs.get(key);
  }

  /** Takes an event in. */
  take(kind, data) {
    switch (kind) {
      case "reset": return this.reset();
      case "scenario": this.general = data.general; this.styles = data.styles; return;
      case "status": this.status = data; return;
      case "clients": this.run(data.run).clients = data.clients; return;
      case "rounds": this.run(data.run).add(data.rounds); return;
      case "cut": this.run(data.run).cut(data.round); return;
      case "diverged": this.run(data.run).diverged = true; return;
      case "notice": this.notices.push(data.text); return;
    }
  }

  /** The runs of a scheme that have begun, one a seed. */
  of(scheme) {
    const seeds = this.general?.seeds ?? [];
    return seeds.map((seed) => this.runs.get(`${scheme}/${seed}`)).filter((run) => run?.rounds.length);
  }

  /** The last round of any run. */
  get last() {
    let last = 0;
    for (const run of this.runs.values()) last = Math.max(last, run.rounds.length);
    return last;
  }

  /** Accuracy points of a scheme, mean over the seeds that have one at that round. */
  curve(scheme) {
    const runs = this.of(scheme);
    const longest = Math.max(0, ...runs.map((run) => run.rounds.length));
    const points = [];
    for (let at = 0; at < longest; at++) {
      let sum = 0;
      let count = 0;
      for (const run of runs) {
        const accuracy = run.rounds[at]?.test_accuracy;
        if (accuracy !== undefined && accuracy !== null) {
          sum += accuracy;
          count++;
        }
      }
      if (count) points.push([at + 1, sum / count]);
    }
    return points;
  }

  /** The mean over seeds of a number. */
  mean(scheme, value) {
    const values = this.of(scheme).map(value).filter((number) => number !== undefined);
    return values.length ? values.reduce((sum, number) => sum + number, 0) / values.length : undefined;
  }
}
