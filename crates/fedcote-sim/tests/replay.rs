//! Every scheme against an independent implementation: the draws and arrivals of a run are replayed in f64 with rules
//! written down again from their formulas, on softmax regression with whole local data sets as batches.

mod flights;

use std::collections::BTreeMap;
use std::sync::Arc;

use fedcote_sim::local::{AdvanceKind, ControlKind};
use fedcote_sim::scheme::{AggregationKind, LocalKind, NAMED, Named, Scheme, SelectionKind};
use fedcote_sim::selection::{DifferenceKind, LossKind};
use fedcote_sim::{Classification, Engine, Outcome, Scenario, World};

const ROUNDS: u32 = 20;
const RATE: f64 = 0.2;
const FEATURES: usize = 4;
const CLASSES: usize = 3;

const TEXT: &str = r#"
clients = 6
selected = 4
schemes = ["fedavg", "control-full", "scaffold-trained", "scaffold-as-printed", "tf-renormalised", "newt-previous", "choice-own", "prox-mean", "yogi-rate", "awe-weighted", "dyn-strong", "scaffold-often", "stale-full", "f3ast-fast", "krum-multi", "krum-given", "trimmed-more"]
[data]
set = "synthetic"
samples = 240
features = 4
classes = 3
partition = "dirichlet"
concentration = 0.5
[model]
kind = "softmax"
[training]
local_steps = [2, 5]
batch = 1000
rate = 0.2
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
[clock]
seconds_per_sample = [0.001, 0.002, 0.02, 0.004, 0.0015, 0.003]
[scheme.control-full]
base = "fedcote-control"
correction = "full"
[scheme.scaffold-trained]
base = "scaffold"
advance = "trained"
[scheme.scaffold-as-printed]
base = "scaffold"
advance = "trained"
control = "printed"
[scheme.tf-renormalised]
base = "tf-aggregation"
threshold = 0.7
renormalised = true
retry = true
[scheme.newt-previous]
base = "newt"
differences = "previous"
[scheme.choice-own]
base = "power-of-choice"
loss = "own"
[scheme.prox-mean]
base = "fedprox"
aggregation = "mean"
[scheme.yogi-rate]
base = "fedyogi"
server_rate = 0.05
[scheme.awe-weighted]
base = "fedawe"
clip = 0
weighted = true
server_rate = 0.7
[scheme.dyn-strong]
base = "feddyn"
alpha = 0.3
[scheme.scaffold-often]
base = "amplified-scaffold"
every = 3
[scheme.stale-full]
base = "fedstale"
stale = 1
[scheme.f3ast-fast]
base = "f3ast"
smoothing = 0.2
[scheme.krum-multi]
base = "fedavg-krum"
selection = "everyone"
keep = 2
[scheme.krum-given]
base = "fedavg-krum"
selection = "everyone"
byzantine = 1
[scheme.trimmed-more]
base = "fedcote"
aggregation = "trimmed-mean"
trim = 0.4
"#;

/// Schemes of the scenario that are not named ones.
const OWN: [&str; 16] = [
    "krum-multi",
    "krum-given",
    "trimmed-more",
    "awe-weighted",
    "dyn-strong",
    "scaffold-often",
    "stale-full",
    "f3ast-fast",
    "control-full",
    "scaffold-trained",
    "scaffold-as-printed",
    "tf-renormalised",
    "newt-previous",
    "choice-own",
    "prox-mean",
    "yogi-rate",
];

type Vector = Vec<f64>;

/// The clients' data in f64.
struct Data {
    inputs: Vec<Vec<Vector>>,
    labels: Vec<Vec<usize>>,
}

impl Data {
    fn of(task: &Classification) -> Self {
        let (mut inputs, mut labels) = (Vec::new(), Vec::new());
        for client in 0..task.partition.len() {
            let samples = task.partition.client(client);
            let mut flat = vec![0.0; samples.len() * FEATURES];
            let mut classes = vec![0; samples.len()];
            task.data.train.gather(samples, &mut flat, &mut classes);
            let rows = flat.chunks(FEATURES).map(|row| row.iter().map(|&x| f64::from(x)).collect());
            inputs.push(rows.collect());
            labels.push(classes.into_iter().map(usize::from).collect());
        }
        Self { inputs, labels }
    }

    /// The mean cross-entropy.
    fn loss(&self, client: usize, model: &[f64]) -> f64 {
        self.power_mean(client, model, 1)
    }

    /// The mean of a power of the samples' cross-entropy.
    fn power_mean(&self, client: usize, model: &[f64], power: i32) -> f64 {
        let count = self.labels[client].len() as f64;
        let samples = self.inputs[client].iter().zip(&self.labels[client]);
        let one = |(input, &label): (&Vector, &usize)| {
            let logit = |class: usize| -> f64 {
                let sum: f64 = (0..FEATURES).map(|i| input[i] * model[i * CLASSES + class]).sum();
                sum + model[FEATURES * CLASSES + class]
            };
            let loss =
                (0..CLASSES).map(|class| logit(class).exp()).sum::<f64>().ln() - logit(label);
            loss.powi(power)
        };
        samples.map(one).sum::<f64>() / count
    }

    /// Gradient of the mean cross-entropy of x·W + b, W being in × out, then b.
    fn gradient(&self, client: usize, model: &[f64]) -> Vector {
        let mut gradient = vec![0.0; model.len()];
        let count = self.labels[client].len() as f64;
        for (input, &label) in self.inputs[client].iter().zip(&self.labels[client]) {
            let logit = |class: usize| -> f64 {
                let sum: f64 = (0..FEATURES).map(|i| input[i] * model[i * CLASSES + class]).sum();
                sum + model[FEATURES * CLASSES + class]
            };
            let exponentials: Vector = (0..CLASSES).map(|class| logit(class).exp()).collect();
            let total: f64 = exponentials.iter().sum();
            for class in 0..CLASSES {
                let error = exponentials[class] / total - f64::from(u8::from(class == label));
                for i in 0..FEATURES {
                    gradient[i * CLASSES + class] += error * input[i] / count;
                }
                gradient[FEATURES * CLASSES + class] += error / count;
            }
        }
        gradient
    }
}

/// How long a client takes: the download of 15 numbers at 50 Mbit/s, its steps over all its samples, and 0.1 s for an upload.
fn seconds(world: &World, data: &Data, client: usize) -> f64 {
    const PER_SAMPLE: [f64; 6] = [0.001, 0.002, 0.02, 0.004, 0.0015, 0.003];
    let steps = f64::from(world.steps(client as u32));
    let samples = data.labels[client].len() as f64;
    15.0 * 32.0 / 50e6 + steps * samples * PER_SAMPLE[client] + 0.1
}

/// a + factor · b.
fn plus(a: &[f64], factor: f64, b: &[f64]) -> Vector {
    a.iter().zip(b).map(|(a, b)| a + factor * b).collect()
}

/// Everything that some rule remembers.
struct Replay {
    data: Data,
    global: Vector,
    first: Vector,
    second: Vector,
    control: Vector,
    controls: BTreeMap<usize, Vector>,
    updates: BTreeMap<usize, Vector>,
    /// For control variates on the server: gradients.
    gradients: BTreeMap<usize, Vector>,
    /// The last model of each client: those that the server received, and those that were trained.
    received: BTreeMap<usize, Vector>,
    trained: BTreeMap<usize, Vector>,
    /// Who was selected in the rounds before.
    selected: Vec<Vec<usize>>,
    /// Participation intervals: rounds since the last, and those that ended.
    intervals: Vec<(u32, Vec<u32>)>,
    /// The clients' own models, and the rounds they are of.
    own: Vec<Vector>,
    since: Vec<u32>,
    /// Who arrived in the rounds before.
    came: Vec<Vec<usize>>,
    /// The model after the last amplification, and sums of gradients and steps since.
    anchor: Vector,
    sums: Vec<(Vector, f64)>,
    /// Utilities and the rounds they are of.
    utilities: BTreeMap<usize, (f64, u32)>,
    /// How long each client takes.
    seconds: Vector,
}

/// What a rule may look at.
struct Seen<'a> {
    arrived: Vec<(usize, f64)>,
    weights: &'a [f64],
    target: &'a [f64],
    selection: Option<&'a [f64]>,
    draws: f64,
    failure: &'a [f64],
    labels: Vec<Vector>,
    goal: &'a [f64],
}

impl Replay {
    fn new(task: &Classification, world: &World, initial: &[f32]) -> Self {
        let zero = vec![0.0; initial.len()];
        let data = Data::of(task);
        Self {
            seconds: (0..task.partition.len()).map(|c| seconds(world, &data, c)).collect(),
            data,
            global: initial.iter().map(|&x| f64::from(x)).collect(),
            first: zero.clone(),
            second: zero.clone(),
            control: zero,
            controls: BTreeMap::new(),
            updates: BTreeMap::new(),
            gradients: BTreeMap::new(),
            received: BTreeMap::new(),
            trained: BTreeMap::new(),
            selected: Vec::new(),
            intervals: vec![(0, Vec::new()); task.partition.len()],
            own: vec![initial.iter().map(|&x| f64::from(x)).collect(); task.partition.len()],
            since: vec![0; task.partition.len()],
            came: Vec::new(),
            anchor: initial.iter().map(|&x| f64::from(x)).collect(),
            sums: vec![(vec![0.0; initial.len()], 0.0); task.partition.len()],
            utilities: BTreeMap::new(),
        }
    }

    /// Whom the rules that leave nothing to chance select, or `None` where chance decides: K = 4 of six clients, and six candidates.
    /// Scores nearer than rounding of single precision are taken as they fall.
    fn check_selected(
        &self,
        name: &str,
        scheme: &Scheme,
        selected: &[usize],
        weights: &[f64],
        failure: &[f64],
    ) {
        let none = |client: &usize| !self.received.contains_key(client);
        let scores: Vector = match &scheme.selection {
            SelectionKind::Newt(settings) if settings.differences == DifferenceKind::Heard => (0
                ..6)
                .map(|client| match self.received.get(&client) {
                    None => f64::INFINITY,
                    Some(model) => {
                        let gap = plus(model, -1.0, &self.global);
                        (-weights[client]).exp() * gap.iter().map(|x| x * x).sum::<f64>().sqrt()
                    }
                })
                .collect(),
            SelectionKind::Newt(_) => {
                // Drawn by lot once, then for ever.
                assert_eq!(
                    self.selected.first().map_or(selected, |first| first),
                    selected,
                    "{name}"
                );
                return;
            }
            SelectionKind::PowerOfChoice(settings) => (0..6)
                .map(|client| match (settings.loss, self.trained.get(&client)) {
                    (LossKind::Own, Some(own)) => self.data.loss(client, own),
                    _ => self.data.loss(client, &self.global),
                })
                .collect(),
            SelectionKind::F3ast(settings) => {
                let rates = smoothed(&self.selected, settings.smoothing);
                (0..6).map(|client| (weights[client] / rates[client]).powi(2)).collect()
            }
            SelectionKind::Everyone => {
                assert_eq!(selected, [0, 1, 2, 3, 4, 5], "{name}");
                return;
            }
            SelectionKind::CaFed(_) => {
                assert_eq!(selected, self.worth_keeping(weights, failure), "{name}");
                return;
            }
            SelectionKind::Oort(_) => {
                self.check_oort(name, selected);
                return;
            }
            SelectionKind::Gs => {
                // Two groups in turn, together everyone once.
                if let [.., before, last] = self.selected.as_slice() {
                    assert_eq!(before, selected, "{name}");
                    let mut everyone = [last.as_slice(), selected].concat();
                    everyone.sort_unstable();
                    assert_eq!(everyone, [0, 1, 2, 3, 4, 5], "{name}");
                }
                return;
            }
            _ => return,
        };
        assert_eq!(selected.len(), 4, "{name}");
        let left = (0..6).filter(|client| !selected.contains(client));
        let highest = left.map(|client| scores[client]).fold(f64::NEG_INFINITY, f64::max);
        for &client in selected {
            let slack = if highest.is_finite() { 1e-4 * highest.abs() } else { 0.0 };
            assert!(
                scores[client] >= highest - slack,
                "{name}: {client} of {selected:?}, {scores:?}"
            );
        }
        // While some were never heard from, Newt asks as many of them as it can.
        if matches!(scheme.selection, SelectionKind::Newt(_)) {
            let unheard = (0..6).filter(none).count();
            assert_eq!(selected.iter().filter(|c| none(c)).count(), unheard.min(4), "{name}");
        }
    }

    /// CA-Fed without correlations: clients by number, then by how rarely they arrive, are left out where the error does not rise.
    fn worth_keeping(&self, weights: &[f64], failure: &[f64]) -> Vec<usize> {
        let losses: Vector = (0..6).map(|client| self.data.loss(client, &self.global)).collect();
        let error = |kept: &[usize]| {
            let total: f64 = kept.iter().map(|&client| weights[client]).sum();
            let loss: f64 = kept.iter().map(|&client| weights[client] * losses[client]).sum();
            // Half the distance of distributions: what those left out had.
            let worst = losses.iter().fold(0.0f64, |worst, loss| worst.max(*loss));
            loss / total + worst * (1.0 - total).powi(2)
        };
        let mut kept: Vec<usize> = (0..6).collect();
        let mut rare: Vec<usize> = (0..6).collect();
        rare.sort_by(|a, b| failure[*b].total_cmp(&failure[*a]));
        for client in (0..6).chain(rare) {
            let without: Vec<usize> = kept.iter().copied().filter(|one| *one != client).collect();
            if without.len() < kept.len() && !without.is_empty() && error(&without) <= error(&kept)
            {
                kept = without;
            }
        }
        kept
    }

    /// Oort: untried clients as far as exploration goes, and tried ones whose score is not far below that of the last place. Who takes longer than the
    /// fastest, which is the tenth percentile of six, loses by the square.
    fn check_oort(&self, name: &str, selected: &[usize]) {
        assert_eq!(selected.len(), 4, "{name}");
        let round = self.selected.len() as i32 + 1;
        let tried = |client: &usize| self.utilities.contains_key(client);
        let untried = 6 - self.utilities.len();
        let share = if untried == 0 { 0.0 } else { (0.9 * 0.95f64.powi(round)).max(0.2) };
        let exploited = ((4.0 * (1.0 - share)) as usize).min(self.utilities.len());
        let explored = selected.iter().filter(|client| !tried(client)).count();
        assert_eq!(explored, untried.min(4 - exploited), "{name}, round {round}");
        // Whoever fills up a round is drawn at random, so that only rounds without filling up say something.
        if explored + exploited < 4 || exploited == 0 {
            return;
        }
        let found: Vec<f64> = self.utilities.values().map(|(utility, _)| *utility).collect();
        let low = 0.999 * found.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let high = found.iter().fold(0.0f64, |a, b| a.max(*b));
        let fastest = self.seconds.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let score = |client: &usize| {
            let (utility, last) = self.utilities[client];
            let age = 0.1 * f64::from(round).ln() / f64::from(last);
            let kept = (fastest / self.seconds[*client]).powi(2);
            kept * ((utility - low) / (high - low).max(1e-4) + age.sqrt())
        };
        let mut sorted: Vector = self.utilities.keys().map(score).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let cutoff = 0.7 * sorted[exploited.min(sorted.len() - 1)];
        for client in selected.iter().filter(|client| tried(client)) {
            assert!(score(client) >= cutoff - 1e-4, "{name}, round {round}: {client}");
        }
    }

    /// What Oort learns: the utility of the model that was sent, for lost uploads the mean of those that arrived.
    fn observe_utilities(&mut self, old: &[f64], round: u32, selected: &[usize], came: &[usize]) {
        let utility = |client: usize| {
            self.data.labels[client].len() as f64 * self.data.power_mean(client, old, 2).sqrt()
        };
        let mean = came.iter().map(|&client| utility(client)).sum::<f64>() / came.len() as f64;
        let values: Vec<(usize, f64)> = selected
            .iter()
            .map(|&client| (client, if came.contains(&client) { utility(client) } else { mean }))
            .collect();
        self.utilities.extend(values.into_iter().map(|(client, value)| (client, (value, round))));
    }

    /// `None` for a local rule that is not written down here.
    fn train(&self, client: usize, steps: u32, scheme: &Scheme) -> Option<Vector> {
        let zero = vec![0.0; self.global.len()];
        let local = &scheme.local;
        let mut model = match &scheme.aggregation {
            AggregationKind::Fedawe(_) | AggregationKind::Fedpbc(_) => self.own[client].clone(),
            _ => self.global.clone(),
        };
        for _ in 0..steps {
            let mut gradient = self.data.gradient(client, &model);
            match &scheme.aggregation {
                AggregationKind::AmplifiedScaffold(_) => {
                    let own = self.controls.get(&client).unwrap_or(&zero);
                    gradient = plus(&plus(&gradient, 1.0, &self.control), -1.0, own);
                }
                AggregationKind::Feddyn(settings) => {
                    let share = 6.0 * self.data.labels[client].len() as f64 / 240.0;
                    let strength = settings.alpha / share;
                    let own = self.controls.get(&client).unwrap_or(&zero);
                    let away = plus(&model, -1.0, &self.global);
                    gradient = plus(&plus(&gradient, strength, own), strength, &away);
                }
                _ => {}
            }
            match local {
                LocalKind::Sgd => {}
                LocalKind::Prox(_) => {
                    gradient = plus(&gradient, 0.01, &plus(&model, -1.0, &self.global));
                }
                LocalKind::Scaffold(_) => {
                    let own = self.controls.get(&client).unwrap_or(&zero);
                    gradient = plus(&plus(&gradient, 1.0, &self.control), -1.0, own);
                }
                _ => return None,
            }
            if matches!(scheme.aggregation, AggregationKind::Control(_)) {
                gradient = plus(&gradient, 1.0, &self.deviation(client, steps));
            }
            model = plus(&model, -RATE, &gradient);
        }
        Some(model)
    }

    /// What the server adds to a client's gradients: nothing for one step, or before it was heard.
    fn deviation(&self, client: usize, steps: u32) -> Vector {
        let zero = vec![0.0; self.global.len()];
        match self.gradients.get(&client) {
            Some(own) if steps > 1 => plus(&self.control, -1.0, own),
            _ => zero,
        }
    }

    /// Control variates as gradients, worked out from what arrived.
    fn control_step(
        &mut self,
        seen: &Seen,
        clients: &[usize],
        updates: &[Vector],
        steps: &[f64],
    ) -> Vector {
        for ((&client, update), &steps) in clients.iter().zip(updates).zip(steps) {
            let plain = plus(&vec![0.0; update.len()], -1.0 / (steps * RATE), update);
            let gradient = plus(&plain, -1.0, &self.deviation(client, steps as u32));
            // By how much an update changed, in nats: never enough for corrections to end.
            if let Some(before) = self.gradients.get(&client) {
                let change: f64 = plus(&gradient, -1.0, before).iter().map(|x| x * x).sum();
                assert!(change * steps * RATE < 0.5);
            }
            self.gradients.insert(client, gradient);
        }
        let known: f64 = self.gradients.keys().map(|&c| seen.target[c]).sum();
        self.control = self.gradients.iter().fold(vec![0.0; self.global.len()], |sum, (&c, g)| {
            plus(&sum, seen.target[c] / known, g)
        });
        let mean_steps = steps.iter().sum::<f64>() / steps.len() as f64;
        plus(&self.global, -mean_steps * RATE, &self.control)
    }

    /// `None` for an aggregation that is not written down here.
    fn aggregate(
        &mut self,
        kind: &AggregationKind,
        seen: &Seen,
        models: &[Vector],
        steps: &[f64],
    ) -> Option<()> {
        let clients: Vec<usize> = seen.arrived.iter().map(|(client, _)| *client).collect();
        let copies: Vector = seen.arrived.iter().map(|(_, copies)| *copies).collect();
        let total: f64 = copies.iter().sum();
        let old = self.global.clone();
        let updates: Vec<Vector> = models.iter().map(|model| plus(model, -1.0, &old)).collect();
        let combined = |factors: &[f64], vectors: &[Vector]| {
            factors.iter().zip(vectors).fold(vec![0.0; old.len()], |sum, (f, v)| plus(&sum, *f, v))
        };
        let mean: Vector = copies.iter().map(|copies| copies / total).collect();
        self.global = match kind {
            AggregationKind::Mean(_) => combined(&mean, models),
            AggregationKind::WeightedMean(_) => {
                let raw: Vector = clients
                    .iter()
                    .zip(&copies)
                    .map(|(&c, copies)| copies * seen.weights[c])
                    .collect();
                let sum: f64 = raw.iter().sum();
                combined(&raw.iter().map(|raw| raw / sum).collect::<Vector>(), models)
            }
            AggregationKind::TfAggregation(settings) => {
                let s = seen.selection.unwrap();
                let selectable = seen.weights.iter().zip(s).filter(|(_, s)| **s > 0.0);
                let total: f64 = match settings.renormalised {
                    true => selectable.map(|(p, _)| p).sum(),
                    false => 1.0,
                };
                let factors: Vector = clients
                    .iter()
                    .zip(&copies)
                    .map(|(&c, copies)| {
                        copies * seen.weights[c] / (4.0 * total * s[c] * (1.0 - seen.failure[c]))
                    })
                    .collect();
                combined(&factors, models)
            }
            AggregationKind::Nova(_) => {
                let effective: f64 = mean.iter().zip(steps).map(|(m, steps)| m * steps).sum();
                let factors: Vector =
                    mean.iter().zip(steps).map(|(m, steps)| effective * m / steps).collect();
                plus(&old, 1.0, &combined(&factors, &updates))
            }
            AggregationKind::Yogi(settings) => {
                let change = combined(&mean, &updates);
                let mut next = old.clone();
                for i in 0..next.len() {
                    self.first[i] = 0.9 * self.first[i] + 0.1 * change[i];
                    let square = change[i].powi(2);
                    let sign = (self.second[i] - square).signum();
                    self.second[i] -= 0.01 * square * sign;
                    next[i] +=
                        settings.server_rate * self.first[i] / (self.second[i].sqrt() + 1e-3);
                }
                next
            }
            AggregationKind::Memory(_) => {
                self.updates.extend(clients.iter().copied().zip(updates.iter().cloned()));
                let known: f64 = self.updates.keys().map(|&c| seen.target[c]).sum();
                let factors: Vector =
                    self.updates.keys().map(|&c| seen.target[c] / known).collect();
                let all: Vec<Vector> = self.updates.values().cloned().collect();
                plus(&old, 1.0, &combined(&factors, &all))
            }
            AggregationKind::Control(_) => self.control_step(seen, &clients, &updates, steps),
            AggregationKind::VarianceReduced(_) => {
                let zero = vec![0.0; old.len()];
                let mut change = zero.clone();
                for ((client, share), update) in clients.iter().zip(&mean).zip(&updates) {
                    let before = self.updates.get(client).unwrap_or(&zero);
                    change = plus(&change, *share, &plus(update, -1.0, before));
                }
                for (&client, update) in &self.updates {
                    change = plus(&change, seen.target[client], update);
                }
                self.updates.extend(clients.iter().copied().zip(updates.iter().cloned()));
                plus(&old, 1.0, &change)
            }
            AggregationKind::Fedau(_) => {
                let factors: Vector = clients
                    .iter()
                    .map(|&client| {
                        let ended = &self.intervals[client].1;
                        let sum: u32 = ended.iter().sum();
                        let mean = if ended.is_empty() {
                            1.0
                        } else {
                            f64::from(sum) / ended.len() as f64
                        };
                        seen.target[client] * mean
                    })
                    .collect();
                for (client, (length, ended)) in self.intervals.iter_mut().enumerate() {
                    *length += 1;
                    if clients.contains(&client) || *length == 50 {
                        ended.push(std::mem::take(length));
                    }
                }
                plus(&old, 1.0, &combined(&factors, &updates))
            }
            AggregationKind::All(_) => {
                let factors: Vector = clients.iter().map(|&c| seen.target[c]).collect();
                plus(&old, 1.0, &combined(&factors, &updates))
            }
            AggregationKind::Known(_) => plus(&old, 1.0, &combined(&seen.inverse(), &updates)),
            AggregationKind::Fedstale(settings) => {
                let zero = vec![0.0; old.len()];
                let mut change = combined(&seen.inverse(), &updates);
                for (client, factor) in clients.iter().zip(seen.inverse()) {
                    let before = self.updates.get(client).unwrap_or(&zero);
                    change = plus(&change, -settings.stale * factor, before);
                }
                if !clients.is_empty() {
                    for (&client, update) in &self.updates {
                        change = plus(&change, settings.stale * seen.target[client], update);
                    }
                }
                self.updates.extend(clients.iter().copied().zip(updates.iter().cloned()));
                plus(&old, 1.0, &change)
            }
            AggregationKind::F3ast(settings) => {
                self.came.push(clients.clone());
                let rates = smoothed(&self.came, settings.smoothing);
                let factors: Vector = clients.iter().map(|&c| seen.weights[c] / rates[c]).collect();
                plus(&old, 1.0, &combined(&factors, &updates))
            }
            AggregationKind::Fedawe(settings) => {
                self.came.push(clients.clone());
                let round = self.came.len() as u32;
                let equal = vec![1.0 / clients.len() as f64; clients.len()];
                let starts: Vec<Vector> = clients.iter().map(|&c| self.own[c].clone()).collect();
                let echoes: Vector = clients
                    .iter()
                    .map(|&c| {
                        let weight = if settings.weighted { 6.0 * seen.weights[c] } else { 1.0 };
                        weight * f64::from(round - self.since[c]) / clients.len() as f64
                    })
                    .collect();
                let moves: Vec<Vector> =
                    models.iter().zip(&starts).map(|(model, own)| plus(model, -1.0, own)).collect();
                let change = combined(&echoes, &moves);
                let norm = change.iter().map(|x| x * x).sum::<f64>().sqrt();
                let clipped = settings.clip > 0.0 && norm > settings.clip;
                let scale = if clipped { settings.clip / norm } else { 1.0 };
                let next = match clients.is_empty() {
                    true => old.clone(),
                    false => {
                        plus(&combined(&equal, &starts), settings.server_rate * scale, &change)
                    }
                };
                for &client in &clients {
                    (self.own[client], self.since[client]) = (next.clone(), round);
                }
                next
            }
            AggregationKind::Fedpbc(_) => {
                let equal = vec![1.0 / clients.len() as f64; clients.len()];
                let next = if clients.is_empty() { old.clone() } else { combined(&equal, models) };
                for &client in &clients {
                    self.own[client] = next.clone();
                }
                next
            }
            AggregationKind::Amplified(settings) => {
                self.came.push(clients.clone());
                let equal = vec![1.0 / clients.len() as f64; clients.len()];
                let next = if clients.is_empty() { old.clone() } else { combined(&equal, models) };
                self.amplified(next, settings.every, settings.amplification)
            }
            AggregationKind::AmplifiedScaffold(settings) => {
                self.came.push(clients.clone());
                let zero = vec![0.0; old.len()];
                for ((&client, update), &steps) in clients.iter().zip(&updates).zip(steps) {
                    let own = self.controls.get(&client).unwrap_or(&zero);
                    let drift = plus(own, -1.0, &self.control);
                    let raw = plus(&plus(&zero, -1.0 / RATE, update), steps, &drift);
                    let (sum, count) = &mut self.sums[client];
                    (*sum, *count) = (plus(sum, 1.0, &raw), *count + steps);
                }
                let equal = vec![1.0 / clients.len() as f64; clients.len()];
                let next = if clients.is_empty() { old.clone() } else { combined(&equal, models) };
                let next = self.amplified(next, settings.every, settings.amplification);
                if (self.came.len() as u32).is_multiple_of(settings.every) {
                    for (client, (sum, count)) in self.sums.iter_mut().enumerate() {
                        if *count > 0.0 {
                            self.controls.insert(client, plus(&zero, 1.0 / *count, sum));
                        }
                        (*sum, *count) = (zero.clone(), 0.0);
                    }
                    let sum = |sum: Vector, own: &Vector| plus(&sum, 1.0 / 6.0, own);
                    self.control = self.controls.values().fold(zero.clone(), sum);
                }
                next
            }
            AggregationKind::Feddyn(_) => {
                for (&client, update) in clients.iter().zip(&updates) {
                    let own = self.controls.entry(client).or_insert(vec![0.0; old.len()]);
                    *own = plus(own, 1.0, update);
                }
                let sum = |sum: Vector, own: &Vector| plus(&sum, 1.0 / 6.0, own);
                self.control = self.controls.values().fold(vec![0.0; old.len()], sum);
                let equal = vec![1.0 / clients.len() as f64; clients.len()];
                match clients.is_empty() {
                    true => old.clone(),
                    false => plus(&combined(&equal, models), 1.0, &self.control),
                }
            }
            AggregationKind::LabelMatched(_) => combined(&matched(seen, &mean), models),
            AggregationKind::Median(_) => columns(models, |sorted| {
                let n = sorted.len();
                (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
            }),
            AggregationKind::TrimmedMean(settings) => columns(models, |sorted| {
                // One after the other, smallest and largest, while more than a share is to go and some would stay.
                let (mut low, mut high) = (0, sorted.len());
                while high - low > 2 && (low as f64) < settings.trim * sorted.len() as f64 {
                    (low, high) = (low + 1, high - 1);
                }
                sorted[low..high].iter().sum::<f64>() / (high - low) as f64
            }),
            AggregationKind::Krum(settings) => {
                let n = models.len();
                let f = settings.byzantine.map_or((n.max(3) - 3) / 2, |f| f as usize);
                match n >= 2 * f + 3 {
                    true => {
                        let nearest = nearest(models, n - f - 2, settings.keep as usize);
                        let share = vec![1.0 / nearest.len() as f64; nearest.len()];
                        combined(&share, &nearest)
                    }
                    false => old.clone(),
                }
            }
            _ => return None,
        };
        Some(())
    }

    /// FedBuff: a step with the two updates that come next, each from the model that its client was sent. `own` has the models of all steps.
    fn step_buffered(
        &mut self,
        world: &World,
        server: &mut flights::Server,
        report: &fedcote_sim::RoundReport,
    ) {
        if report.round == 1 {
            self.own = vec![self.global.clone()];
        }
        let before = server.now;
        let flights::Round { started, ended } = server.round(world, report.round);
        assert_eq!(flights::counts(started.iter().map(|flight| flight.client)), report.selected);
        assert_eq!(flights::counts(ended.iter().map(|flight| flight.client)), report.arrived);
        // Before the first step every client tells how many samples it has: a number of 32 bits at 480 bits in 0.1 s.
        let told = if report.round == 1 { 0.1 / 15.0 } else { 0.0 };
        let passed = server.now - before + told;
        assert!((report.seconds.unwrap() - passed).abs() < 1e-9, "{:?} {passed}", report.seconds);
        let mut next = self.global.clone();
        for flight in &ended {
            let start = self.own[flight.version].clone();
            let mut model = start.clone();
            for _ in 0..world.steps(flight.client) {
                let gradient = self.data.gradient(flight.client as usize, &model);
                model = plus(&model, -RATE, &gradient);
            }
            let age = (self.own.len() - 1 - flight.version) as f64;
            next = plus(&next, 0.5 / (1.0 + age).sqrt(), &plus(&model, -1.0, &start));
        }
        self.own.push(next.clone());
        self.global = next;
    }

    /// Away from the model after the last amplification, in every so manieth round.
    fn amplified(&mut self, model: Vector, every: u32, factor: f64) -> Vector {
        if !(self.came.len() as u32).is_multiple_of(every) {
            return model;
        }
        self.anchor = plus(&self.anchor, factor, &plus(&model, -1.0, &self.anchor));
        self.anchor.clone()
    }

    /// SCAFFOLD, option II: everyone who arrived advances from the same server variate, by local steps or whatever else scales it.
    fn advance_controls(
        &mut self,
        old: &[f64],
        arrived: &[usize],
        models: &[Vector],
        scales: &[f64],
    ) {
        let server = self.control.clone();
        for ((&client, model), scale) in arrived.iter().zip(models).zip(scales) {
            let own = self.controls.get(&client).cloned().unwrap_or(vec![0.0; old.len()]);
            let drift = plus(old, -1.0, model);
            let next = plus(&plus(&own, -1.0, &server), 1.0 / (scale * RATE), &drift);
            self.control = plus(&self.control, 1.0 / 6.0, &plus(&next, -1.0, &own));
            self.controls.insert(client, next);
        }
    }
}

impl Seen<'_> {
    /// Copies · p/(K s (1 − ε)) of what arrived.
    fn inverse(&self) -> Vector {
        let s = self.selection.unwrap();
        let weight = |&(c, copies): &(usize, f64)| {
            copies * self.target[c] / (self.draws * s[c] * (1.0 - self.failure[c]))
        };
        self.arrived.iter().map(weight).collect()
    }
}

/// Something of the sorted values in every coordinate.
fn columns(models: &[Vector], of: impl Fn(&[f64]) -> f64) -> Vector {
    let column = |at: usize| {
        let mut column: Vector = models.iter().map(|model| model[at]).collect();
        column.sort_by(f64::total_cmp);
        of(&column)
    };
    (0..models[0].len()).map(column).collect()
}

/// The models with the lowest sums of squared distances to their nearest others, the lowest one first.
fn nearest(models: &[Vector], others: usize, keep: usize) -> Vec<Vector> {
    let score = |model: &Vector| {
        let gap = |other: &Vector| plus(model, -1.0, other).iter().map(|x| x * x).sum::<f64>();
        let mut gaps: Vector = models.iter().map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        // The first is that to itself.
        gaps[1..=others].iter().sum::<f64>()
    };
    let mut sorted: Vec<(f64, Vector)> =
        models.iter().map(|model| (score(model), model.clone())).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted.truncate(keep);
    sorted.into_iter().map(|(_, model)| model).collect()
}

/// Rates that start at 4/6, after these rounds.
fn smoothed(rounds: &[Vec<usize>], smoothing: f64) -> Vector {
    let mut rates = vec![4.0 / 6.0; 6];
    for members in rounds {
        for (client, rate) in rates.iter_mut().enumerate() {
            let there = f64::from(u8::from(members.contains(&client)));
            *rate = (1.0 - smoothing) * *rate + smoothing * there;
        }
    }
    rates
}

/// The weights of "label-matched" by exhaustive pairwise exchange: move mass between two arrivals to the exact minimum along
/// that line until nothing moves.
fn matched(seen: &Seen, reference: &[f64]) -> Vector {
    const RIDGE: f64 = 0.1;
    let mut weights = reference.to_vec();
    for _ in 0..20_000 {
        for one in 0..weights.len() {
            for two in 0..weights.len() {
                // f(t) for weights[one] + t, weights[two] − t is a quadratic: a t² + b t.
                let (mut a, mut b) = (0.0, 0.0);
                for (class, goal) in seen.goal.iter().enumerate() {
                    let mix: f64 =
                        weights.iter().zip(&seen.labels).map(|(w, l)| w * l[class]).sum();
                    let direction = seen.labels[one][class] - seen.labels[two][class];
                    a += direction * direction / goal;
                    b += 2.0 * direction * (mix - goal) / goal;
                }
                for (at, sign) in [(one, 1.0), (two, -1.0)] {
                    a += RIDGE / reference[at];
                    b += 2.0 * RIDGE * sign * (weights[at] - reference[at]) / reference[at];
                }
                if one != two {
                    let step = (-b / (2.0 * a)).clamp(-weights[one], weights[two]);
                    weights[one] += step;
                    weights[two] -= step;
                }
            }
        }
    }
    weights
}

/// A part that is not written down here has at least a test worked by hand in its own file.
#[test]
fn every_scheme_agrees_with_an_independent_implementation() {
    'schemes: for name in NAMED.iter().map(|Named { name, .. }| *name).chain(OWN) {
        let scenario = Scenario::parse("test", TEXT, &[], ".".as_ref()).unwrap();
        let task = Arc::new(Classification::load(&scenario, 7).unwrap());
        let scheme = scenario.schemes.resolve(name).unwrap();
        let world = Arc::new(World::new(Arc::new(scenario), task.clone(), 7).unwrap());
        let mut engine = Engine::new(Arc::clone(&world), scheme.clone()).unwrap();
        let mut replay = Replay::new(&task, &world, engine.global());
        let seconds = replay.seconds.clone();
        let mut server = flights::Server::new(&seconds);
        for round in 1..=ROUNDS {
            let Outcome::Done(report) = engine.step(round).unwrap() else { panic!("{name}") };
            if matches!(scheme.selection, SelectionKind::Buffered(_)) {
                replay.step_buffered(&world, &mut server, &report);
                continue;
            }
            let federation = &world.federation;
            let selected: Vec<usize> = report.selected.iter().map(|(c, _)| *c as usize).collect();
            let failure = engine.federation().failure();
            replay.check_selected(name, &scheme, &selected, federation.weights(), failure);
            let probabilities = engine.probabilities();
            let clients: Vec<usize> = report.arrived.iter().map(|(c, _)| *c as usize).collect();
            let steps: Vec<u32> = clients.iter().map(|&c| world.steps(c as u32)).collect();
            let models: Option<Vec<Vector>> = clients
                .iter()
                .zip(&steps)
                .map(|(&client, &steps)| replay.train(client, steps, &scheme))
                .collect();
            let Some(models) = models else { continue 'schemes };
            let steps: Vector = steps.into_iter().map(f64::from).collect();
            let seen = Seen {
                arrived: report.arrived.iter().map(|&(c, n)| (c as usize, f64::from(n))).collect(),
                weights: federation.weights(),
                target: probabilities.map_or(federation.weights(), |p| p.target),
                selection: probabilities.map(|p| p.selection),
                draws: probabilities.map_or(0.0, |p| p.draws as f64),
                failure: engine.federation().failure(),
                labels: clients.iter().map(|&c| federation.labels(c).to_vec()).collect(),
                goal: federation.global_labels(),
            };
            let old = replay.global.clone();
            let all: Option<Vec<(usize, Vector)>> = selected
                .iter()
                .map(|&client| {
                    Some((client, replay.train(client, world.steps(client as u32), &scheme)?))
                })
                .collect();
            let all = all.unwrap_or_default();
            if replay.aggregate(&scheme.aggregation, &seen, &models, &steps).is_none() {
                continue 'schemes;
            }
            if let LocalKind::Scaffold(settings) = &scheme.local {
                let printed = settings.control == ControlKind::Printed;
                let scale = |steps: f64| if printed { 4.0 } else { steps };
                let server = replay.control.clone();
                let scales: Vector = steps.iter().map(|&steps| scale(steps)).collect();
                let arrived = replay.controls.clone();
                replay.advance_controls(&old, &clients, &models, &scales);
                if settings.advance == AdvanceKind::Trained {
                    let zero = vec![0.0; old.len()];
                    for (client, model) in all.iter().filter(|(c, _)| !clients.contains(c)) {
                        let own = arrived.get(client).unwrap_or(&zero);
                        let scale = scale(f64::from(world.steps(*client as u32)));
                        let next = plus(
                            &plus(own, -1.0, &server),
                            1.0 / (scale * RATE),
                            &plus(&old, -1.0, model),
                        );
                        replay.controls.insert(*client, next);
                    }
                }
            }
            if let AggregationKind::Fedpbc(_) = scheme.aggregation {
                for (client, model) in all.iter().filter(|(c, _)| !clients.contains(c)) {
                    replay.own[*client] = model.clone();
                }
            }
            replay.observe_utilities(&old, round, &selected, &clients);
            replay.received.extend(clients.iter().copied().zip(models));
            replay.trained.extend(all);
            replay.selected.push(selected);
        }
        let scale = replay.global.iter().fold(1.0f64, |scale, x| scale.max(x.abs()));
        for (at, (ours, theirs)) in engine.global().iter().zip(&replay.global).enumerate() {
            let error = (f64::from(*ours) - theirs).abs();
            assert!(error <= 1e-5 * scale, "{name}, parameter {at}: {ours} and {theirs}");
        }
    }
}
