//! FedAU (Wang and Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
//! Averaging", ICLR 2024).
//!
//! A client's weight ω_i is the mean length of the participation intervals that ended before this round, cut off at a
//! maximum (1 before the first): who comes every tenth round counts ten times when it comes. w̄ ← w̄ + η Σ_i p_i ω_i (w_i − w̄) over what
//! arrived.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::vector::{add, mean_change};

parameters! {
    /// Parameters of `aggregation = "fedau"`.
    pub struct FedAuSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The longest participation interval that counts, in rounds.
        cutoff: u32 = 50, in 1..;
    }
}

/// The mean weighted by observed participation.
pub struct FedAu {
    rate: f32,
    cutoff: u32,
    intervals: Vec<Interval>,
}

/// What is known of a client's participation.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Interval {
    /// Rounds since the current interval began.
    length: u32,
    /// Intervals that ended.
    count: u32,
    /// Their mean length.
    mean: f64,
}

impl Interval {
    /// One more round; says the weight in force, which knows nothing yet of the interval that may end now.
    fn advance(&mut self, arrived: bool, cutoff: u32) -> f64 {
        let weight = if self.count == 0 { 1.0 } else { self.mean };
        self.length += 1;
        if arrived || self.length == cutoff {
            let count = f64::from(self.count);
            self.mean = (count * self.mean + f64::from(self.length)) / (count + 1.0);
            self.count += 1;
            self.length = 0;
        }
        weight
    }
}

impl FedAu {
    /// Nothing observed yet.
    pub fn new(settings: &FedAuSettings) -> Self {
        let rate = settings.server_rate as f32;
        Self { rate, cutoff: settings.cutoff, intervals: Vec::new() }
    }

    fn factors(&mut self, weights: &[f64], arrivals: &[Arrival]) -> Vec<(u32, f64)> {
        self.intervals.resize(weights.len(), Interval::default());
        let mut arrivals = arrivals.iter().peekable();
        let mut factors = Vec::new();
        for (client, interval) in self.intervals.iter_mut().enumerate() {
            let arrived = arrivals.next_if(|arrival| arrival.client as usize == client).is_some();
            let weight = interval.advance(arrived, self.cutoff);
            if arrived {
                factors.push((client as u32, weights[client] * weight));
            }
        }
        factors
    }
}

impl Aggregation for FedAu {
    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let weights = probabilities.map_or(context.federation.weights(), |p| p.target);
        let factors = self.factors(weights, arrivals);
        let terms = arrivals.iter().zip(&factors).map(|(a, f)| (f.1, a.model.as_slice()));
        let change = mean_change(global, terms);
        add(global, self.rate, &change);
        Ok(factors)
    }
}

impl State for FedAu {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put_value("fedau.intervals", &self.intervals);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.intervals = saved.get_value("fedau.intervals")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn rare_guests_weigh_more_as_by_hand() {
        let mut fedau = FedAu::new(&FedAuSettings { cutoff: 3, ..Default::default() });
        let weights = [0.5, 0.5];
        let both = [arrival(0, 1, 1, &[]), arrival(1, 1, 1, &[])];
        assert_eq!(fedau.factors(&weights, &both), [(0, 0.5), (1, 0.5)]);
        assert_eq!(fedau.factors(&weights, &both[..1]), [(0, 0.5)]);
        // Client 1 comes after 2 rounds; so far its only interval had length 1.
        assert_eq!(fedau.factors(&weights, &both[1..]), [(1, 0.5)]);
        // Now the mean interval is (1 + 2)/2. It stays away; after 3 rounds the interval is cut off: (1 + 2 + 3)/3 = 2.
        for _ in 0..3 {
            fedau.factors(&weights, &[]);
        }
        assert_eq!(fedau.factors(&weights, &both[1..]), [(1, 0.5 * 2.0)]);
        // An interval of 1 has ended since: (1 + 2 + 3 + 1)/4 = 1.75.
        assert_eq!(fedau.factors(&weights, &both[1..]), [(1, 0.5 * 1.75)]);
    }
}
