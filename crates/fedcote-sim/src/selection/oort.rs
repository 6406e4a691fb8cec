//! Oort (Lai, Zhu, Madhyastha and Chowdhury, "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021): clients
//! whose samples have high losses and that are not slow, and some that were never tried.
//!
//! The utility of a client is U_i = m_i √(mean of its samples' squared losses), m_i = min(its samples, E · batch), of the model it got when it was asked last;
//! of one that was not tried yet it is m_i. The score of a tried client is (min(U_i, cap) − U_min)/(U_max − U_min) + √(0.1 ln r / L_i), L_i being
//! the round it was asked last, the cap the 98 % quantile, U_min 0.999 times the smallest. Each round the share of exploration falls by 0.95, from 0.9 to 0.2.
//! ⌊K (1 − x)⌋ tried clients are drawn in proportion to their scores among those whose score is at least 0.7 of the score at that place, the others among the
//! best five times as many untried ones in proportion to m_i; what is left is filled up at random. Only who is there is asked; the first round is drawn at random.
//! A client whose upload is lost gets the mean utility of those that arrived, as Oort's stragglers do.
//!
//! Of a client that takes t_i > T for download, training and upload, score, or m_i if it was not tried yet, are multiplied by (T/t_i)^α, α = 2. T is the
//! duration at the θ-th percentile of all clients, θ = 10 at first. Every 20 rounds, from the 40th on, the mean utilities of exploited clients that arrived are
//! summed over the last 20 rounds and over the 20 before: if the sums differ by at most a tenth, θ rises by 5, at 100 T is no bound any more; if by five times or more, θ falls by 5. Oort also asks
//! 1.1 K clients and takes the first K; here it asks K, as all schemes of a comparison do.

use fedcote::random::{Purpose, Stream};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::power_of_choice::largest;
use crate::Error;
use crate::part::{Arrival, Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "oort"`.
    pub struct OortSettings {
        /// The share of exploration before the first round.
        exploration_start: f64 = 0.9, in 0.0..=1.0;
        /// What it is multiplied by each round.
        exploration_decay: f64 = 0.95, in 0.0..=1.0;
        /// Its smallest value.
        exploration_least: f64 = 0.2, in 0.0..=1.0;
        /// The share of the score at the last place that is still good enough.
        score_cutoff: f64 = 0.7, in 0.0..=1.0;
        /// The power of T/t by which a client that takes t seconds, longer than T, loses score; 0 leaves durations out.
        duration_penalty: f64 = 2.0, in 0.0..;
        /// The percentile of all clients' durations that T is at first; 100 for no bound.
        duration_percentile: f64 = 10.0, in 0.0..=100.0;
        /// The rounds after which utilities say whether T changes.
        pacer_rounds: u32 = 20, in 1..;
        /// By how much its percentile changes.
        pacer_step: f64 = 5.0, in 0.0..=100.0;
    }
}

/// Clients of high utility, and some that were never tried.
pub struct Oort {
    settings: OortSettings,
    state: Tried,
    /// Samples that a round of training sees, of each client.
    sizes: Vec<f64>,
    /// Seconds that a round takes each client.
    durations: Vec<f64>,
    /// Who was asked in this round, and the utility of the model it got.
    asked: Vec<(u32, f64)>,
    /// Who of them was asked for its score.
    exploited: Vec<u32>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Tried {
    exploration: Option<f64>,
    /// Utility and last round of clients that were tried.
    clients: Vec<Option<(f64, u32)>>,
    /// The percentile that T is.
    percentile: Option<f64>,
    /// Mean utilities of exploited clients that arrived, of the last rounds.
    utilities: Vec<f64>,
    /// Rounds that were played.
    played: u32,
}

impl Oort {
    pub(super) fn new(settings: &OortSettings) -> Self {
        Self {
            settings: settings.clone(),
            state: Tried::default(),
            sizes: Vec::new(),
            durations: Vec::new(),
            asked: Vec::new(),
            exploited: Vec::new(),
        }
    }

    fn share(&self) -> f64 {
        self.state.exploration.unwrap_or(self.settings.exploration_start)
    }

    fn percentile(&self) -> f64 {
        self.state.percentile.unwrap_or(self.settings.duration_percentile)
    }

    /// What clients keep of their scores, by how long they take.
    fn kept(&self) -> Vec<f64> {
        let percentile = self.percentile();
        let bound = match percentile < 100.0 {
            true => quantile(&self.durations, percentile / 100.0),
            false => f64::INFINITY,
        };
        let penalty = self.settings.duration_penalty;
        self.durations.iter().map(|&seconds| kept(seconds, bound, penalty)).collect()
    }

    /// Lets T grow where utilities have become flat, and shrink where they change much.
    fn pace(&mut self, utility: f64) {
        let rounds = self.settings.pacer_rounds as usize;
        let utilities = &mut self.state.utilities;
        utilities.push(utility);
        if utilities.len() > 2 * rounds {
            utilities.remove(0);
        }
        self.state.played += 1;
        if utilities.len() < 2 * rounds
            || !self.state.played.is_multiple_of(self.settings.pacer_rounds)
        {
            return;
        }
        let before: f64 = utilities[..rounds].iter().sum();
        let change = (utilities[rounds..].iter().sum::<f64>() - before).abs();
        let step = self.settings.pacer_step;
        let percentile = self.percentile();
        if change <= 0.1 * before {
            self.state.percentile = Some((percentile + step).min(100.0));
        } else if change >= 5.0 * before {
            self.state.percentile = Some((percentile - step).max(step.min(percentile)));
        }
    }
}

/// The share of its score that a client keeps.
fn kept(seconds: f64, bound: f64, penalty: f64) -> f64 {
    if seconds > bound { (bound / seconds).powf(penalty) } else { 1.0 }
}

/// The quantile of Oort's code: the value at this share of the places.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)]
}

/// The scores of tried clients from their utilities and last rounds, in this round.
fn scores(tried: &[(f64, u32)], round: u32) -> Vec<f64> {
    let utilities: Vec<f64> = tried.iter().map(|(utility, _)| *utility).collect();
    let cap = quantile(&utilities, 0.98);
    let capped: Vec<f64> = utilities.iter().map(|utility| utility.min(cap)).collect();
    let low = 0.999 * capped.iter().copied().fold(f64::INFINITY, f64::min);
    let high = capped.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = (high - low).max(1e-4);
    let score = |(utility, (_, last)): (&f64, &(f64, u32))| {
        (utility - low) / range + (0.1 * f64::from(round).ln() / f64::from((*last).max(1))).sqrt()
    };
    capped.iter().zip(tried).map(score).collect()
}

/// So many of the candidates without replacement in proportion to their weights: the smallest of Exp(1)/weight.
fn sample(candidates: &[(u32, f64)], wanted: usize, stream: &mut Stream) -> Vec<u32> {
    let first = |(_, weight): &(u32, f64)| {
        (1.0 - stream.random::<f64>()).ln() / weight.max(f64::MIN_POSITIVE)
    };
    let times: Vec<f64> = candidates.iter().map(first).collect();
    let chosen = largest(times.into_iter(), wanted as u64);
    chosen.into_iter().map(|at| candidates[at as usize].0).collect()
}

impl Oort {
    /// Whom to ask among those who are there: who is asked for its score, and all.
    fn choose(
        &self,
        there: &[u32],
        wanted: usize,
        round: u32,
        stream: &mut Stream,
    ) -> [Vec<u32>; 2] {
        let kept = self.kept();
        let known = |client: &u32| self.state.clients[*client as usize];
        let tried: Vec<(u32, (f64, u32))> =
            there.iter().filter_map(|client| Some((*client, known(client)?))).collect();
        let untried: Vec<u32> = there.iter().copied().filter(|c| known(c).is_none()).collect();
        let share = if untried.is_empty() { 0.0 } else { self.share() };
        let exploit = ((wanted as f64 * (1.0 - share)) as usize).min(tried.len());
        let mut chosen = Vec::new();
        if exploit > 0 {
            let mut scores =
                scores(&tried.iter().map(|(_, found)| *found).collect::<Vec<_>>(), round);
            for (score, (client, _)) in scores.iter_mut().zip(&tried) {
                *score *= kept[*client as usize];
            }
            let mut sorted = scores.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let cutoff = self.settings.score_cutoff * sorted[exploit.min(sorted.len() - 1)];
            let candidates: Vec<(u32, f64)> = tried
                .iter()
                .zip(&scores)
                .filter(|(_, score)| **score >= cutoff)
                .map(|((client, _), score)| (*client, *score))
                .collect();
            chosen = sample(&candidates, exploit, stream);
        }
        let exploited = chosen.clone();
        let explore = wanted.saturating_sub(chosen.len()).min(untried.len());
        if explore > 0 {
            let size = |&client: &u32| self.sizes[client as usize] * kept[client as usize];
            let best = largest(untried.iter().map(size), 5 * explore as u64);
            // The first round is drawn at random.
            let candidates: Vec<(u32, f64)> = match round {
                1 => untried.iter().map(|&client| (client, 1.0)).collect(),
                _ => best
                    .into_iter()
                    .map(|at| untried[at as usize])
                    .map(|client| (client, size(&client)))
                    .collect(),
            };
            chosen.extend(sample(&candidates, explore, stream));
        }
        let left: Vec<(u32, f64)> = there
            .iter()
            .filter(|client| !chosen.contains(client))
            .map(|&client| (client, 1.0))
            .collect();
        let missing = wanted.saturating_sub(chosen.len()).min(left.len());
        chosen.extend(sample(&left, missing, stream));
        chosen.sort_unstable();
        [exploited, chosen]
    }
}

impl Selection for Oort {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        let clients = context.federation.len();
        self.state.clients.resize(clients, None);
        let settings = &self.settings;
        let next = (settings.exploration_decay * self.share()).max(settings.exploration_least);
        self.state.exploration = Some(next);
        if self.sizes.is_empty() {
            let world = context.world;
            let samples: f64 = world.task.label_counts().counts.iter().sum();
            let seen = |client: usize| {
                let own = (context.federation.weights()[client] * samples).round();
                let steps = u64::from(world.steps(client as u32));
                own.min((steps * world.scenario.training.batch as u64) as f64)
            };
            self.sizes = (0..clients).map(seen).collect();
            let seconds =
                |client| world.clock.usual_seconds(&world.network, client, world.steps(client));
            self.durations = (0..clients as u32).map(seconds).collect();
        }
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let there: Vec<u32> =
            (0..).zip(context.available).filter(|(_, there)| **there).map(|(c, _)| c).collect();
        let key = context.world.key(Purpose::Selection).round(context.round).attempt(redraw);
        let wanted = context.world.draws().min(there.len() as u64) as usize;
        let [exploited, chosen] = self.choose(&there, wanted, context.round, &mut key.stream());
        self.exploited = exploited;
        let losses = context.world.task.rms_losses(context.global, &chosen)?;
        let utility = |(&client, loss): (&u32, f64)| (client, self.sizes[client as usize] * loss);
        self.asked = chosen.iter().zip(losses).map(utility).collect();
        Ok(chosen.into_iter().map(|client| (client, 1)).collect())
    }

    fn received(&mut self, context: &RoundContext, arrivals: &[Arrival]) {
        let arrived = |client: u32| arrivals.iter().any(|arrival| arrival.client == client);
        let asked = std::mem::take(&mut self.asked);
        let came: Vec<f64> =
            asked.iter().filter(|(client, _)| arrived(*client)).map(|(_, u)| *u).collect();
        let mean = came.iter().sum::<f64>() / came.len() as f64;
        let exploited: Vec<f64> = asked
            .iter()
            .filter(|(client, _)| arrived(*client) && self.exploited.contains(client))
            .map(|(_, utility)| *utility)
            .collect();
        self.pace(exploited.iter().sum::<f64>() / (exploited.len() as f64).max(1.0));
        for (client, utility) in asked {
            let own = &mut self.state.clients[client as usize];
            match own {
                _ if arrived(client) => *own = Some((utility, context.round)),
                _ if !came.is_empty() => *own = Some((mean, context.round)),
                Some((_, last)) => *last = context.round,
                None => {}
            }
        }
    }
}

impl State for Oort {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put_value("oort.tried", &self.state);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.state = saved.get_value("oort.tried")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedcote::random::Key;

    /// Utilities from 10 to 20 in round 10: (20 − 9.99)/10.01 + √(0.1 ln 10 / 9) and 0.01/10.01 + √(0.1 ln 10).
    #[test]
    fn scores_are_as_by_hand() {
        let found = scores(&[(20.0, 9), (10.0, 1)], 10);
        assert!(
            (found[0] - 1.159951).abs() < 1e-6 && (found[1] - 0.480852).abs() < 1e-6,
            "{found:?}"
        );
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.98), 3.0);
        // Ten seconds where five are wanted: a quarter is kept.
        assert!((found[0] * kept(10.0, 5.0, 2.0) - 0.289988).abs() < 1e-6);
        assert_eq!(
            [kept(5.0, 5.0, 2.0), kept(10.0, 5.0, 0.0), kept(7.0, f64::INFINITY, 2.0)],
            [1.0; 3]
        );
    }

    /// Ten clients of 1 to 10 seconds: the duration at the 10th percentile is that of the second. What is kept is (2/t)²; without a bound, everything.
    #[test]
    fn slow_clients_lose_score_and_start_utility() {
        let mut oort = Oort::new(&OortSettings::default());
        oort.durations = (1..=10).map(f64::from).collect();
        let kept = oort.kept();
        for (at, wanted) in [(0, 1.0), (1, 1.0), (2, 4.0 / 9.0), (3, 0.25), (9, 0.04)] {
            assert!((kept[at] - wanted).abs() < 1e-12, "{kept:?}");
        }
        // Of three tried clients of the same utility the one that takes 10 s is below 0.7 of the others' score, so never exploited;
        // of untried ones it is drawn 25 times more rarely than the one of 1 s.
        oort.state.clients = vec![None; 10];
        oort.sizes = vec![10.0; 10];
        let mut slow = 0;
        for attempt in 0..2000 {
            let mut stream = Key::new(2, Purpose::Test).attempt(attempt).stream();
            let [_, chosen] = oort.choose(&[0, 9], 1, 10, &mut stream);
            slow += usize::from(chosen == [9]);
        }
        // 2000/26 = 76.9 with a deviation of 8.6.
        assert!((50..=104).contains(&slow), "{slow}");
        oort.state.clients = vec![Some((50.0, 5)); 10];
        for attempt in 0..50 {
            let mut stream = Key::new(3, Purpose::Test).attempt(attempt).stream();
            assert_ne!(oort.choose(&[0, 1, 9], 1, 10, &mut stream)[1], [9]);
        }
        oort.state.percentile = Some(100.0);
        assert_eq!(oort.kept(), [1.0; 10]);
    }

    /// Twenty rounds of utility 1 and twenty of 1.05: flat, the percentile rises by 5. Then twenty of 8, more than five times as much: it falls again.
    /// Then twenty of 4: neither.
    #[test]
    fn the_pacer_follows_utilities() {
        let mut oort = Oort::new(&OortSettings::default());
        let mut seen = Vec::new();
        for (utility, rounds) in [(1.0, 20), (1.05, 20), (8.0, 20), (4.0, 20)] {
            (0..rounds).for_each(|_| oort.pace(utility));
            seen.push(oort.percentile());
        }
        assert_eq!(seen, [10.0, 15.0, 10.0, 10.0]);
        // It never falls below the step, and ends at 100.
        (0..20).for_each(|_| oort.pace(1000.0));
        assert_eq!(oort.percentile(), 5.0);
        (0..20).for_each(|_| oort.pace(1e6));
        assert_eq!(oort.percentile(), 5.0);
        (0..20 * 40).for_each(|_| oort.pace(1e6));
        assert_eq!(oort.percentile(), 100.0);
    }

    /// Four tried clients of which one is far better, and two untried ones: with x = 0.5 half of four draws go to the untried, whom
    /// nobody crowds out; of the tried those near the score of the second place are drawn.
    #[test]
    fn some_are_exploited_and_some_explored() {
        let mut oort = Oort::new(&OortSettings::default());
        oort.state.exploration = Some(0.5);
        let tried = |utility: f64| Some((utility, 5));
        oort.state.clients = vec![tried(100.0), tried(90.0), tried(1.0), tried(2.0), None, None];
        oort.sizes = vec![10.0; 6];
        oort.durations = vec![1.0; 6];
        for attempt in 0..50 {
            let mut stream = Key::new(1, Purpose::Test).attempt(attempt).stream();
            let [exploited, chosen] = oort.choose(&[0, 1, 2, 3, 4, 5], 4, 10, &mut stream);
            assert_eq!((exploited.len(), chosen.len()), (2, 4));
            assert!(chosen.contains(&4) && chosen.contains(&5), "{chosen:?}");
            let [_, absent] = oort.choose(&[2, 3], 4, 10, &mut stream);
            assert_eq!(absent, [2, 3]);
        }
    }
}
