//! What must hold between the values of a scenario.

use fedcote::SettingError;
use fedcote::estimate::EstimatorKind;
use fedcote_learn::data::Shape;
use fedcote_radio::Kind;
use fedcote_support::suggestion;

use super::{LocalSteps, Pilots, Scenario, Selected};
use crate::aggregation::{AggregationKind, KrumSettings};
use crate::privacy::Privacy;
use crate::scheme::{NAMED, Scheme};
use crate::selection::SelectionKind;

/// Step sizes that single precision can tell from 0 and from infinity, with room to spare.
const MIN_RATE: f64 = 1e-30;
const MAX_RATE: f64 = 1e30;

impl Scenario {
    /// Checks what a type alone cannot say.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let wrong = |key: &str, reason: &str| Err(SettingError::new(key, reason));
        let general = &self.general;
        if general.rounds == 0 {
            return wrong("rounds", "must be at least 1");
        }
        if general.clients == 0 || general.clients > 100_000_000 {
            return wrong("clients", "must be from 1 to 100000000");
        }
        if let Selected::Number(draws) = general.selected
            && !(1..=1_000_000_000).contains(&draws)
        {
            return wrong("selected", "must be from 1 to 1000000000, or \"all\"");
        }
        if general.seeds.is_empty() {
            return wrong("seeds", "name at least one seed, as in [1, 2, 3]");
        }
        if general.schemes.is_empty() {
            return wrong("schemes", "name at least one scheme, as in [\"fedavg\", \"fedcote\"]");
        }
        if let Some(twice) = repeated(&general.seeds) {
            return wrong("seeds", &format!("{twice} is listed twice"));
        }
        if let Some(twice) = repeated(&general.schemes) {
            return wrong("schemes", &format!("`{twice}` is listed twice"));
        }
        let against = &general.against;
        if !against.is_empty() && !general.schemes.contains(against) {
            let listed: Vec<&str> = general.schemes.iter().map(String::as_str).collect();
            let reason = format!("`{against}` is not compared{}", suggestion(against, &listed));
            return wrong("against", &reason);
        }
        if general.evaluate_every == 0 {
            return wrong("evaluate_every", "must be at least 1");
        }
        if general.train_loss_every == 0 {
            return wrong("train_loss_every", "must be at least 1");
        }
        if general.checkpoint_every == 0 {
            return wrong("checkpoint_every", "must be at least 1");
        }
        if general.max_attempts == 0 {
            return wrong("max_attempts", "must be at least 1");
        }
        if !(0.0..=1.0).contains(&general.target_accuracy) {
            return wrong("target_accuracy", "must be from 0 to 1");
        }
        let training = &self.training;
        match training.local_steps {
            LocalSteps::Same(0) => return wrong("training.local_steps", "must be at least 1"),
            LocalSteps::Range([low, high]) if low == 0 || low > high => {
                return wrong("training.local_steps", "must be [low, high] with 1 <= low <= high");
            }
            _ => {}
        }
        if training.batch == 0 {
            return wrong("training.batch", "must be at least 1");
        }
        let positive = |rate: f64| (MIN_RATE..=MAX_RATE).contains(&rate);
        if training.rate <= 0.0 || training.rate.is_nan() {
            return wrong("training.rate", "must be a positive number");
        }
        if !positive(training.rate) {
            return wrong("training.rate", "must be from 1e-30 to 1e30");
        }
        let rounds = || training.rate_changes.iter().map(|(round, _)| *round);
        if rounds().next() == Some(0)
            || !rounds().is_sorted_by(|a, b| a < b)
            || !training.rate_changes.iter().all(|&(_, rate)| positive(rate))
        {
            return wrong(
                "training.rate_changes",
                "must be [[round, rate], …] with growing rounds from 1 and rates from 1e-30 to 1e30",
            );
        }
        if !(0.0..=1e6).contains(&training.rate_decay) {
            return wrong("training.rate_decay", "must be from 0 to 1e6");
        }
        self.task.check()?;
        self.observation.check()?;
        self.server.check()?;
        self.hostile.check(general.clients)?;
        self.data.check().map_err(setting)?;
        // Where the shape is not known yet, any will do: most of what is wrong with a model is wrong for all of them.
        let any = (Shape { height: 32, width: 32, channels: 3 }, 10);
        let (shape, classes) = self.samples().unwrap_or(any);
        fedcote_learn::models::build(&self.model, shape, classes).map_err(setting)?;
        let augmentation = training.augmentation();
        if self.task.is_given() {
            if augmentation != Default::default() {
                let key = if training.crop > 0 { "crop" } else { "flip" };
                return wrong(&format!("training.{key}"), "has no effect beside [task]; remove it");
            }
        } else {
            augmentation.check(shape).map_err(setting)?;
        }
        self.network.check(general.clients)?;
        self.clock.check(self)?;
        if self.observation.pilots == Pilots::Everyone && self.network.kind != Kind::Radio {
            return wrong("network.pilots", "has no effect here: it belongs to kind = \"radio\"");
        }
        let retransmissions = self.network.retransmissions;
        match self.observation.estimator {
            // A margin tells of one transmission, a lost upload has many.
            EstimatorKind::Signal { .. } if retransmissions > 0 => {
                return wrong(
                    "network.estimator",
                    "\"signal\" is for uploads without retransmissions; use \"retransmissions\"",
                );
            }
            EstimatorKind::Retransmissions { retransmissions: told, .. }
                if told != 0 && told != retransmissions =>
            {
                let reason = format!(
                    "{told} retransmissions, network.retransmissions is {retransmissions}; leave it out here"
                );
                return wrong("network.estimator", &reason);
            }
            _ => {}
        }
        for name in general.schemes.iter().chain(self.schemes.iter().map(|(name, _)| name)) {
            let scheme = self.schemes.resolve(name)?;
            if general.schemes.contains(name) {
                self.check_scheme(&scheme)?;
            }
        }
        // A table for a scheme that is neither compared nor known by name is a typo.
        let known: Vec<&str> = NAMED.iter().map(|named| named.name).collect();
        let meant =
            |name: &&String| !known.contains(&name.as_str()) && !general.schemes.contains(name);
        if let Some(name) = self.schemes.iter().map(|(name, _)| name).find(meant) {
            let listed: Vec<&str> =
                general.schemes.iter().map(String::as_str).chain(known).collect();
            let reason = format!("no scheme `{name}` is compared{}", suggestion(name, &listed));
            return Err(SettingError::new(format!("scheme.{name}"), reason));
        }
        Ok(())
    }

    /// Checks what a scheme needs of the rest of the scenario.
    fn check_scheme(&self, scheme: &Scheme) -> Result<(), SettingError> {
        let clients = self.general.clients;
        let draws = match self.general.selected {
            Selected::Number(draws) => draws,
            Selected::Everyone(_) => clients as u64,
        };
        Privacy::new(&self.server, scheme, clients, draws)?;
        if let AggregationKind::Krum(KrumSettings { byzantine: Some(hostile), .. }) =
            scheme.aggregation
        {
            let everyone =
                matches!(scheme.selection, SelectionKind::Everyone | SelectionKind::CaFed(_));
            let most = if everyone { clients as u64 } else { draws.min(clients as u64) };
            let needed = hostile.saturating_mul(2).saturating_add(3);
            if needed > most {
                let reason =
                    format!("needs {needed} clients a round (2f + 3), at most {most} arrive");
                return Err(SettingError::new(format!("scheme.{}.byzantine", scheme.name), reason));
            }
        }
        Ok(())
    }
}

fn setting(error: fedcote_learn::Error) -> SettingError {
    match error {
        fedcote_learn::Error::Setting(error) => error,
        other => SettingError::new("", other.to_string()),
    }
}

pub(super) fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)).map(|(_, v)| v)
}
