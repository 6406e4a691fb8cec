//! Krum and Multi-Krum (Blanchard, El Mhamdi, Guerraoui and Stainer, "Machine Learning with Adversaries: Byzantine Tolerant Gradient
//! Descent", NeurIPS 2017).
//!
//! The score of a client is the sum of squared distances of its model to the n − f − 2 nearest others of the n that arrived. w̄ ← w̄ +
//! η (mean of the m models with the lowest scores − w̄), m = 1 being Krum. Of equal scores the lower client number counts. Every client
//! counts once, however often it was drawn: copies of one model are at distance 0 of each other, and would win by that.
//!
//! **Limits.** With f hostile clients among those that arrived it needs n ≥ 2f + 3. In a round with fewer the model stays as it is,
//! which the score `too-few` tells: a smaller f would pretend a protection that is not there. By default f is the largest that the
//! arrivals of a round allow, ⌊(n − 3)/2⌋; under three arrivals nobody can be told from anybody. At most n − f models are averaged. One
//! client is chosen out of n, so rounds learn from little data; and as
//! models are compared as wholes, clients whose labels are rare are far from all others and hardly ever chosen.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;
use crate::vector;

use super::mean::step;

parameters! {
    /// Parameters of `aggregation = "krum"`.
    pub struct KrumSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The number f of hostile clients among those that arrive; by default the largest that the arrivals of a round allow. Rounds with fewer than 2f + 3 arrivals leave the model as it is.
        byzantine: Option<u64> = None, in 0..;
        /// The number m of models that are averaged (Multi-Krum); 1 is Krum.
        keep: u32 = 1, in 1..;
    }
}

/// The models that are nearest to the others.
pub struct Krum {
    settings: KrumSettings,
    too_few: bool,
}

impl Krum {
    /// With these parameters.
    pub fn new(settings: &KrumSettings) -> Self {
        Self { settings: settings.clone(), too_few: false }
    }

    /// The places of the models that are averaged, in order; none if too few arrived.
    fn chosen(&self, arrivals: &[Arrival]) -> Vec<usize> {
        let count = arrivals.len();
        let most = count.saturating_sub(3) / 2;
        let hostile = self.settings.byzantine.map_or(most, |hostile| hostile as usize);
        if count < 3 || hostile > most {
            return Vec::new();
        }
        let mut distances = vec![0.0; count * count];
        for one in 0..count {
            for two in 0..one {
                let (a, b) = (&arrivals[one].model, &arrivals[two].model);
                let distance = vector::squared_distance(a, b);
                distances[one * count + two] = distance;
                distances[two * count + one] = distance;
            }
        }
        let score = |place: usize| -> f64 {
            let row = distances[place * count..][..count].iter().enumerate();
            let mut others: Vec<f64> =
                row.filter(|(other, _)| *other != place).map(|(_, distance)| *distance).collect();
            others.sort_unstable_by(f64::total_cmp);
            others[..count - hostile - 2].iter().sum()
        };
        let scores: Vec<f64> = (0..count).map(score).collect();
        let mut places: Vec<usize> = (0..count).collect();
        places.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        places.truncate((self.settings.keep as usize).min(count - hostile));
        places.sort_unstable();
        places
    }
}

impl Aggregation for Krum {
    fn scores(&self) -> Vec<(&'static str, f64)> {
        vec![("too-few", f64::from(u8::from(self.too_few)))]
    }

    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let places = self.chosen(arrivals);
        self.too_few = places.is_empty();
        let share = 1.0 / places.len() as f64;
        let chosen: Vec<Arrival> = places.iter().map(|&place| arrivals[place].clone()).collect();
        let shares: Vec<(u32, f64)> =
            chosen.iter().map(|arrival| (arrival.client, share)).collect();
        step(&chosen, &shares, self.settings.server_rate as f32, global);
        Ok(shares)
    }
}

impl State for Krum {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    fn chosen(byzantine: Option<u64>, keep: u32, values: &[f32]) -> Vec<usize> {
        let arrivals: Vec<Arrival> =
            (0..).zip(values).map(|(client, &value)| arrival(client, 1, 1, &[value])).collect();
        Krum::new(&KrumSettings { byzantine, keep, ..Default::default() }).chosen(&arrivals)
    }

    #[test]
    fn scores_are_as_by_hand() {
        // n = 5, f = 1: the two nearest others. 0: 1 + 9 = 10; 1: 1 + 4 = 5; 3: 4 + 4 = 8; 5: 4 + 16 = 20; 90: 85² + 87².
        let values = [0.0, 1.0, 3.0, 5.0, 90.0];
        assert_eq!(chosen(Some(1), 1, &values), [1]);
        assert_eq!(chosen(Some(1), 2, &values), [1, 2]);
        assert_eq!(chosen(Some(1), 3, &values), [0, 1, 2]);
        // At most n − f.
        assert_eq!(chosen(Some(1), 9, &values), [0, 1, 2, 3]);
        // f = 0: the three nearest. 0: 1 + 9 + 25 = 35; 1: 1 + 4 + 16 = 21; 3: 4 + 4 + 9 = 17.
        assert_eq!(chosen(Some(0), 1, &values), [2]);
        assert_eq!(chosen(None, 1, &values), chosen(Some(1), 1, &values));
    }

    #[test]
    fn too_few_arrivals_choose_nobody() {
        let values = [0.0, 1.0, 3.0, 5.0, 90.0];
        assert!(chosen(Some(2), 1, &values).is_empty(), "2 · 2 + 3 is 7");
        assert!(chosen(Some(1), 1, &values[..4]).is_empty());
        assert!(chosen(None, 1, &values[..2]).is_empty());
        assert!(chosen(None, 1, &[]).is_empty());
        // The nearest other of each is at distance 1, 1 and 2: of equal scores the first.
        assert_eq!(chosen(None, 1, &values[..3]), [0]);
    }

    /// Two hostile clients of seven agree with each other, and still lose.
    #[test]
    fn a_minority_that_agrees_is_not_chosen() {
        for keep in 1..=5 {
            let chosen = chosen(Some(2), keep, &[0.3, 0.1, -50.0, 0.2, 0.0, -50.0, 0.25]);
            assert!(!chosen.contains(&2) && !chosen.contains(&5), "{chosen:?}");
        }
    }

    #[test]
    fn distances_beyond_single_precision_lose() {
        assert_eq!(chosen(None, 1, &[f32::MAX, 0.0, 1.0, f32::MIN, 2.5]), [2]);
    }
}
