//! What makes a description of availability valid.

use fedcote::SettingError;
use fedcote_support::readable;

use super::config::{AvailabilityConfig, Chance, FlgoMode, Pattern, Presence, least_correlation};
use crate::check::{per_client, positive, probability, require};
use crate::config::PerClient;
use crate::error::refused;

impl AvailabilityConfig {
    /// The first key that has another value than its default although this kind does not read it.
    fn without_effect(&self) -> Option<&'static str> {
        use Presence::{Bernoulli, Cyclic, Flgo, GilbertElliott, InTurn, LabelCoupled, Markov};
        let default = Self::default();
        let is = |kinds: &[Presence]| kinds.contains(&self.kind);
        let patterns = is(&[Bernoulli, LabelCoupled]);
        let pattern = |patterned: &[Pattern]| patterns && patterned.contains(&self.pattern);
        let sines = pattern(&[Pattern::Sine, Pattern::InterleavedSine]);
        [
            (
                "probability",
                is(&[Bernoulli, LabelCoupled, Markov, GilbertElliott, Cyclic]),
                self.probability != default.probability,
            ),
            ("pattern", patterns, self.pattern != default.pattern),
            ("period", sines || pattern(&[Pattern::Staircase]), self.period != default.period),
            ("amplitude", sines, self.amplitude != default.amplitude),
            ("low", pattern(&[Pattern::Staircase]), self.low != default.low),
            ("cutoff", pattern(&[Pattern::InterleavedSine]), self.cutoff != default.cutoff),
            (
                "correlation",
                is(&[Markov, GilbertElliott]) && self.absence_rounds.is_none(),
                self.correlation != default.correlation,
            ),
            ("absence_rounds", is(&[Markov, GilbertElliott]), self.absence_rounds.is_some()),
            ("good", is(&[GilbertElliott]), self.good != default.good),
            ("bad", is(&[GilbertElliott]), self.bad != default.bad),
            ("cycle", is(&[Cyclic, InTurn]), self.cycle != default.cycle),
            ("groups", is(&[InTurn]), self.groups != default.groups),
            ("mode", is(&[Flgo]), self.mode != default.mode),
            ("strength", is(&[Flgo]), self.strength.is_some()),
            ("known", self.kind != Presence::Always, self.known != default.known),
        ]
        .into_iter()
        .find(|(_, read, changed)| *changed && !read)
        .map(|(key, _, _)| key)
    }

    /// Whether this describes the availability of so many clients; if not, what is wrong with it.
    pub(crate) fn check(&self, clients: usize) -> Result<(), SettingError> {
        let key = |last: &str| format!("availability.{last}");
        if let Some(idle) = self.without_effect() {
            return Err(refused(key(idle), "has no effect on availability of this kind"));
        }
        let given = match self.chance() {
            Chance::Given(given) => Some(given),
            Chance::Recipe(_) => None,
        };
        if let Some(given) = &given {
            per_client(&key("probability"), given, clients, probability)?;
        }
        require(self.period > 0, &key("period"), || "must be at least 1".into())?;
        for (name, value) in [
            ("amplitude", self.amplitude),
            ("low", self.low),
            ("cutoff", self.cutoff),
            ("good", self.good),
            ("bad", self.bad),
            ("strength", self.strength.unwrap_or(0.0)),
        ] {
            // FLGo's powers of the number of samples may be any.
            let any = name == "strength" && matches!(self.mode, FlgoMode::Mdf | FlgoMode::Ldf);
            if !any {
                probability(&key(name), value)?;
            }
        }
        if matches!(self.mode, FlgoMode::Ln | FlgoMode::Sln) {
            require(self.strength != Some(1.0), &key("strength"), || "must be below 1".into())?;
        }
        require(self.cycle >= 2, &key("cycle"), || "must be at least 2".into())?;
        require(
            self.groups >= 1 && self.groups as usize <= clients.max(5),
            &key("groups"),
            || format!("must be from 1 to {clients}, the number of clients"),
        )?;
        require(
            self.kind != Presence::InTurn || self.cycle.is_multiple_of(self.groups),
            &key("cycle"),
            || format!("must be a multiple of groups = {}", self.groups),
        )?;
        if let Some(rounds) = self.absence_rounds {
            positive(&key("absence_rounds"), rounds)?;
            require(rounds >= 1.0, &key("absence_rounds"), || "must be at least 1".into())?;
        }
        per_client(&key("correlation"), &self.correlation, clients, |key, value| {
            require((-1.0..=1.0).contains(&value), key, || {
                format!("must be between -1 and 1, not {}", readable(value))
            })
        })?;
        if let (Some(given), None) = (&given, self.absence_rounds)
            && matches!(self.kind, Presence::Markov | Presence::GilbertElliott)
        {
            let count = match (given, &self.correlation) {
                (PerClient::All(_), PerClient::All(_)) => 1,
                _ => clients,
            };
            for client in 0..count {
                let (share, lambda) = (given.get(client), self.correlation.get(client));
                let least = least_correlation(share);
                require(lambda >= least - 1e-12, &key("correlation"), || {
                    let which =
                        if count > 1 { format!("client {}: ", client + 1) } else { String::new() };
                    format!(
                        "{which}{} is too small for probability {}: no such chain, at least {}",
                        readable(lambda),
                        readable(share),
                        readable((1e4 * least).ceil() / 1e4)
                    )
                })?;
            }
        }
        Ok(())
    }
}
