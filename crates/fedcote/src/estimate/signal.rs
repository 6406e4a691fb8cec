//! Failure probabilities from signals: pilots, channel state.
//!
//! Every attempt, lost or not, shows a margin x in decibels: by how much the link's capacity exceeded what the upload needs; at
//! most 0, and the link fails. One such number says far more than the one bit of an arrival. With shadowing x is normal, mean and
//! variance unknown. Under a normal-inverse-gamma prior (mean 0, k₀, a₀, b₀) and discounted sums n, mean m and squared deviations S,
//! the probability that the next x is at most 0 is Student's (Gelman et al., *Bayesian Data Analysis*, section 3.3):
//!
//! ```text
//! k = k₀ + n    μ = n m / k    a = a₀ + n/2    b = b₀ + S/2 + k₀ n m² / (2k)
//! link = T_{2a}( −μ / √(b (1 + 1/k) / a) )
//! ```
//!
//! Devices that break and clients that are late are in no margin. Uploads that did not arrive although their margin was above 0 are
//! counted beside: with f of those and g that arrived, `other = f / (f + g + 1)`, and the estimate is
//! 1 − (1 − link)(1 − other). A client that never showed a signal is estimated from its arrivals, as by
//! [`beta`](super::beta) with the prior ½. What was observed is multiplied by `retention` at the end of every round.
//!
//! ```
//! use fedcote::estimate::Signal;
//!
//! let mut signal = Signal::new(2, 0.95)?;
//! for margin_db in [9.0, 14.0, 12.0, 8.0] {
//!     signal.observe_signal(0, margin_db);
//!     signal.observe(0, true);
//! }
//! assert!(signal.failure(0) < 0.1); // Four arrivals alone would say 1/6.
//! assert_eq!(signal.failure(1), 0.5);
//! # Ok::<(), fedcote::Error>(())
//! ```

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::check;
use crate::{Error, special};

/// The prior: mean 0 dB, worth a tenth of an observation, and a deviation of about 6 dB, worth four.
const MEAN_STRENGTH: f64 = 0.1;
const SHAPE: f64 = 2.0;
const SCALE: f64 = 72.0;

/// The largest estimate: a hopeless link's probability would round to 1.
const LARGEST: f64 = 1.0 - 1e-6;

/// Estimates from signals; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Signal {
    retention: f64,
    round: u32,
    seen: Vec<Seen>,
}

/// What was seen of a client, discounted as of the round of the last observation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
struct Seen {
    /// Signals: how many, their mean, their squared deviations from it.
    count: f64,
    mean: f64,
    squares: f64,
    /// Uploads that no margin explains, lost and arrived.
    failed: f64,
    arrived: f64,
    /// Whether a signal came whose upload has not been told yet, and whether its link held.
    #[cfg_attr(feature = "serde", serde(default))]
    pending: Option<bool>,
    last: u32,
}

impl Signal {
    /// No client observed yet.
    ///
    /// # Errors
    /// When the retention is not in (0, 1].
    pub fn new(clients: usize, retention: f64) -> Result<Self, Error> {
        let valid = retention > 0.0 && retention <= 1.0;
        check("retention", retention, valid, "a number in (0, 1]")?;
        Ok(Self { retention, round: 0, seen: vec![Seen::default(); clients] })
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.seen.len()
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        let last = self.round;
        self.seen.resize(clients.max(self.clients()), Seen { last, ..Seen::default() });
    }

    /// Forgets what was observed of a client; panics when there is no such client.
    pub fn forget(&mut self, client: usize) {
        self.seen[client] = Seen { last: self.round, ..Seen::default() };
    }

    /// Whether the parts of a restored state fit together.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self) -> bool {
        let sound = |seen: &Seen| {
            let sums = [seen.count, seen.squares, seen.failed, seen.arrived];
            sums.iter().all(|sum| (0.0..f64::INFINITY).contains(sum))
                && seen.mean.is_finite()
                && seen.last <= self.round
        };
        Self::new(0, self.retention).is_ok() && self.round < u32::MAX && self.seen.iter().all(sound)
    }

    /// What is left by now of what was seen.
    fn current(&self, client: usize) -> Seen {
        let seen = self.seen[client];
        if seen.last == self.round {
            return seen;
        }
        let left = self.retention.powf(f64::from(self.round - seen.last));
        Seen {
            count: seen.count * left,
            squares: seen.squares * left,
            failed: seen.failed * left,
            arrived: seen.arrived * left,
            // A pilot of an earlier round says nothing about an upload of this one.
            pending: None,
            last: self.round,
            ..seen
        }
    }

    /// Takes note of the margin of an upload in the current round, in dB, before [`observe`](Self::observe) says what became of it.
    /// Margins beyond ±200 dB count as such, one that is no number does not count. Panics when there is no such client.
    pub fn observe_signal(&mut self, client: usize, margin_db: f64) {
        if margin_db.is_nan() {
            return;
        }
        let mut seen = self.current(client);
        let margin = margin_db.clamp(-200.0, 200.0);
        let gap = margin - seen.mean;
        seen.count += 1.0;
        seen.mean += gap / seen.count;
        seen.squares += gap * (margin - seen.mean);
        seen.pending = Some(margin > 0.0);
        self.seen[client] = seen;
    }

    /// Takes note of one upload in the current round; panics when there is no such client.
    pub fn observe(&mut self, client: usize, arrived: bool) {
        let mut seen = self.current(client);
        let counts = match seen.pending.take() {
            Some(held) => held,
            // Without a signal it tells nothing about the other causes of one who sends signals.
            None => seen.count == 0.0,
        };
        if counts {
            *if arrived { &mut seen.arrived } else { &mut seen.failed } += 1.0;
        }
        self.seen[client] = seen;
    }

    /// Takes note of an upload in the current round that was lost whatever its link: the client was not there. Panics when there
    /// is no such client.
    pub fn observe_absent(&mut self, client: usize) {
        let seen = self.current(client);
        self.seen[client] = Seen { failed: seen.failed + 1.0, pending: None, ..seen };
    }

    /// Clients are drawn: margins told before say nothing about the uploads that follow.
    pub fn draw(&mut self) {
        self.seen.iter_mut().for_each(|seen| seen.pending = None);
    }

    /// Ends the current round.
    pub fn tick(&mut self) {
        self.round += 1;
    }

    /// The estimated failure probability of a client; panics when there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        let Seen { count, mean, squares, failed, arrived, .. } = self.current(client);
        if count == 0.0 {
            return (failed + 1.0) / (failed + arrived + 2.0);
        }
        let k = MEAN_STRENGTH + count;
        let location = count * mean / k;
        let a = SHAPE + 0.5 * count;
        let b = SCALE + 0.5 * squares + 0.5 * MEAN_STRENGTH * count * mean * mean / k;
        let scale = (b * (1.0 + 1.0 / k) / a).sqrt();
        let link = special::student_probability(2.0 * a, -location / scale);
        let other = failed / (failed + arrived + 1.0);
        (1.0 - (1.0 - link) * (1.0 - other)).clamp(0.0, LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It used to wait for the next upload, whose fate it says nothing about.
    #[test]
    fn a_pilot_of_an_earlier_round_explains_no_upload() {
        let mut signal = Signal::new(1, 0.9).unwrap();
        signal.observe_signal(0, 20.0);
        signal.tick();
        let mut with_upload = signal.clone();
        with_upload.observe(0, false);
        assert_eq!(with_upload.failure(0), signal.failure(0));
        // Nor does one that was told before somebody was drawn in the same round.
        signal.observe_signal(0, 20.0);
        signal.draw();
        let before = signal.failure(0);
        signal.observe(0, false);
        assert_eq!(signal.failure(0), before);
    }

    /// Half of the uploads of a client that is away half of the time used to be left out, since they show no margin.
    #[test]
    fn absence_counts_beside_the_link() {
        let mut signal = Signal::new(1, 1.0).unwrap();
        for _ in 0..500 {
            signal.observe_signal(0, 30.0);
            signal.observe(0, true);
            signal.observe_absent(0);
        }
        assert!((signal.failure(0) - 0.5).abs() < 0.01, "{}", signal.failure(0));
    }

    #[test]
    fn the_estimate_is_as_by_hand() {
        // Margins 2 and 6: n = 2, m = 4, S = 8; k = 2.1, μ = 8/2.1, a = 3, b = 72 + 4 + 0.1·2·16/4.2 = 76.7619;
        // t = −3.8095/√(76.7619·(1 + 1/2.1)/3) = −0.61978, and T_6(t) = 0.27910 from the closed form for six degrees:
        // ½ + ½ sin θ (1 + ½ cos² θ + ⅜ cos⁴ θ), tan θ = t/√6.
        let mut signal = Signal::new(1, 1.0).unwrap();
        for margin in [2.0, 6.0] {
            signal.observe_signal(0, margin);
            signal.observe(0, true);
        }
        let b = 76.0 + 0.1 * 2.0 * 16.0 / 4.2;
        let t: f64 = -(8.0 / 2.1) / (b * (1.0 + 1.0 / 2.1) / 3.0f64).sqrt();
        let (sin, cos) = (t / 6f64.sqrt()).atan().sin_cos();
        let link = 0.5 + 0.5 * sin * (1.0 + 0.5 * cos * cos + 0.375 * cos.powi(4));
        assert!((signal.failure(0) - link).abs() < 1e-12, "{} and {link}", signal.failure(0));
        // A third upload is lost although its margin was above 0: other = 1/(1 + 2 + 1).
        let mut with_loss = signal.clone();
        with_loss.observe(0, false);
        assert_eq!(with_loss.failure(0), signal.failure(0), "it had no signal: not counted");
        with_loss.observe_signal(0, 4.0);
        let before = with_loss.failure(0);
        with_loss.observe(0, false);
        let after = 1.0 - (1.0 - before_without_other(&with_loss)) * 0.75;
        assert!((with_loss.failure(0) - after).abs() < 1e-12 && after > before);
        // A link that did not hold explains its loss.
        let mut explained = signal.clone();
        explained.observe_signal(0, -1.0);
        let link = explained.failure(0);
        explained.observe(0, false);
        assert_eq!(explained.failure(0), link);
    }

    fn before_without_other(signal: &Signal) -> f64 {
        let mut without = signal.clone();
        without.seen[0].failed = 0.0;
        without.failure(0)
    }

    #[test]
    fn what_was_seen_fades_by_rounds() {
        let mut signal = Signal::new(2, 0.5).unwrap();
        signal.observe_signal(0, -30.0);
        assert!(signal.failure(0) > 0.95);
        signal.tick();
        signal.tick();
        // A quarter of an observation is left; one of +30 dB outweighs it.
        signal.observe_signal(0, 30.0);
        let mean = (0.25 * -30.0 + 30.0) / 1.25;
        assert!((signal.seen[0].mean - mean).abs() < 1e-12);
        assert!((signal.seen[0].count - 1.25).abs() < 1e-12);
        let squares = 0.25 * (-30.0 - mean).powi(2) + (30.0 - mean).powi(2);
        assert!((signal.seen[0].squares - squares).abs() < 1e-9);
        (0..200).for_each(|_| signal.tick());
        assert!((signal.failure(0) - 0.5).abs() < 0.01, "{}", signal.failure(0));
        // Who shows no signals is estimated from arrivals.
        (0..3).for_each(|_| signal.observe(1, true));
        assert_eq!(signal.failure(1), 0.2);
        signal.observe_signal(1, f64::NAN);
        assert_eq!(signal.failure(1), 0.2);
    }

    /// With normal margins the estimate nears Φ(−μ/σ); a link whose margin is always −200 stays below 1.
    #[test]
    fn the_estimate_nears_the_outage() {
        use crate::random::{Key, Purpose};
        use rand::RngExt;
        let mut stream = Key::new(9, Purpose::Test).stream();
        for (mean, sigma, outage) in [(8.0, 8.0, 0.158655), (-4.0, 4.0, 0.841345), (0.0, 6.0, 0.5)]
        {
            let mut signal = Signal::new(1, 1.0).unwrap();
            for _ in 0..4000 {
                let (radius, angle): (f64, f64) = (stream.random(), stream.random());
                let unit =
                    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
                let margin = mean + sigma * unit;
                signal.observe_signal(0, margin);
                signal.observe(0, margin > 0.0);
            }
            assert!((signal.failure(0) - outage).abs() < 0.02, "{} {outage}", signal.failure(0));
        }
        let mut hopeless = Signal::new(1, 1.0).unwrap();
        (0..10_000).for_each(|_| hopeless.observe_signal(0, f64::NEG_INFINITY));
        assert!(hopeless.failure(0) < 1.0 && hopeless.failure(0) > 0.999);
    }
}
