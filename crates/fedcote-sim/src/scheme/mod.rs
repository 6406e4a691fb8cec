//! A scheme is three parts: whom to ask, what a client does, what becomes of what arrived.
//!
//! Every baseline is a named combination of parts with its parameters. A scenario changes the
//! parameters of a named scheme, or mixes parts under a new name:
//!
//! ```toml
//! [scheme.fedcote]
//! draws = "systematic"
//!
//! [scheme.mine]
//! base = "fedcote"
//! local = "prox"
//! aggregation = "yogi"
//! ```

mod config;
mod kinds;
mod named;

use std::collections::BTreeMap;

pub use config::SchemeConfig;
pub use kinds::{
    AggregationKind, AimKind, ControlKind, FailureKind, LocalKind, SelectionKind, SolverKind,
};
pub use named::NAMED;
use named::named;

use crate::scenario::remedy;

/// A scheme with everything decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    /// Its name in the scenario.
    pub name: String,
    /// Whom to ask.
    pub selection: SelectionKind,
    /// What a client does.
    pub local: LocalKind,
    /// What becomes of what arrived.
    pub aggregation: AggregationKind,
    /// Which failures it meets.
    pub failures: FailureKind,
    /// Parameters; what is `None` has its part's default.
    pub config: SchemeConfig,
}

/// The `[scheme.*]` tables of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schemes(BTreeMap<String, SchemeConfig>);

impl Schemes {
    /// Adds a table.
    pub fn insert(&mut self, name: String, config: SchemeConfig) {
        self.0.insert(name, config);
    }

    /// The tables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &SchemeConfig)> {
        self.0.iter()
    }

    /// Drops the tables of all other schemes.
    pub fn retain(&mut self, name: &str) {
        self.0.retain(|other, _| other == name);
    }

    /// Decides everything about the scheme of that name; an error is a key and a reason.
    pub fn resolve(&self, name: &str) -> Result<Scheme, (String, String)> {
        let table = format!("scheme.{name}");
        if name.is_empty()
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            || name.starts_with('.')
        {
            let reason = format!("`{name}`: use letters, digits, - and _ (it names a folder)");
            return Err(("schemes".to_owned(), reason));
        }
        let own = self.0.get(name);
        let base = own.and_then(|own| own.base.as_deref());
        let config = match (base, own) {
            (Some(base), _) => named(base).ok_or_else(|| {
                (format!("{table}.base"), format!("`{base}` is no named scheme{}", known(base)))
            })?,
            (None, Some(_)) => named(name).or_else(|| named("fedavg")).expect("fedavg is named"),
            (None, None) => named(name).ok_or_else(|| {
                let reason = format!(
                    "no scheme `{name}`{} (or describe it in a table [{table}])",
                    known(name)
                );
                ("schemes".to_owned(), reason)
            })?,
        };
        let config = match own {
            Some(own) => config.overlaid(own),
            None => config,
        };
        let scheme = Scheme {
            name: name.to_owned(),
            selection: config.selection.expect("every named scheme has one"),
            local: config.local.expect("every named scheme has one"),
            aggregation: config.aggregation.expect("every named scheme has one"),
            failures: config.failures.expect("every named scheme has one"),
            config,
        };
        if let Some(own) = own {
            scheme.check(own).map_err(|(key, reason)| (format!("{table}.{key}"), reason))?;
        }
        Ok(scheme)
    }
}

fn known(wrong: &str) -> String {
    remedy(wrong, &NAMED.map(|(name, _)| name))
}

impl Scheme {
    /// Refuses parameters out of range, and those that no part of the scheme would read.
    fn check(&self, own: &SchemeConfig) -> Result<(), (String, String)> {
        use AggregationKind as A;
        use SelectionKind as S;
        let config = &self.config;
        let fedcote = self.selection == S::Fedcote;
        let gradient = config.solver == Some(SolverKind::Gradient);
        let drawn = matches!(self.selection, S::Weights | S::TfAggregation | S::Fedcote);
        let yogi = self.aggregation == A::Yogi;
        let stepped = !matches!(self.aggregation, A::TfAggregation);
        // key, whether it is set here, whether some part reads it, which one would
        let readers = [
            ("draws", own.draws.is_some(), drawn, "a selection by probabilities"),
            ("solver", own.solver.is_some(), fedcote, "selection = \"fedcote\""),
            ("aim", own.aim.is_some(), fedcote, "selection = \"fedcote\""),
            ("kappa", own.kappa.is_some(), fedcote && !gradient, "the exact solver of fedcote"),
            (
                "efficiency",
                own.efficiency.is_some(),
                fedcote && !gradient,
                "the exact solver of fedcote",
            ),
            (
                "threshold",
                own.threshold.is_some(),
                fedcote || self.selection == S::TfAggregation,
                "selection = \"fedcote\" or \"tf-aggregation\"",
            ),
            ("coverage", own.coverage.is_some(), fedcote, "selection = \"fedcote\""),
            ("k_apx", own.k_apx.is_some(), fedcote && gradient, "solver = \"gradient\""),
            (
                "candidates",
                own.candidates.is_some(),
                self.selection == S::PowerOfChoice,
                "selection = \"power-of-choice\"",
            ),
            ("mu", own.mu.is_some(), self.local == LocalKind::Prox, "local = \"prox\""),
            (
                "control",
                own.control.is_some(),
                self.local == LocalKind::Scaffold,
                "local = \"scaffold\"",
            ),
            ("server_rate", own.server_rate.is_some(), stepped, "an aggregation with a step"),
            ("beta1", own.beta1.is_some(), yogi, "aggregation = \"yogi\""),
            ("beta2", own.beta2.is_some(), yogi, "aggregation = \"yogi\""),
            ("adaptivity", own.adaptivity.is_some(), yogi, "aggregation = \"yogi\""),
            (
                "ridge",
                own.ridge.is_some(),
                self.aggregation == A::LabelMatched,
                "aggregation = \"label-matched\"",
            ),
            (
                "cutoff",
                own.cutoff.is_some(),
                self.aggregation == A::Fedau,
                "aggregation = \"fedau\"",
            ),
        ];
        for (key, set, read, reader) in readers {
            if set && !read {
                return Err((
                    key.to_owned(),
                    format!("has no effect here: it belongs to {reader}"),
                ));
            }
        }
        // A scheme that draws without probabilities has no weights to make unbiased.
        if self.aggregation == A::TfAggregation && !drawn {
            let reason = "aggregation \"tf-aggregation\" needs a selection by probabilities";
            return Err(("aggregation".to_owned(), reason.to_owned()));
        }
        let ranges = [
            ("kappa", config.kappa, 0.0, f64::MAX),
            ("efficiency", config.efficiency, 0.0, fedcote::MAX_EFFICIENCY),
            ("threshold", config.threshold, 0.0, 1.0),
            ("mu", config.mu, 0.0, 1e30),
            ("server_rate", config.server_rate, 0.0, 1e30),
            ("beta1", config.beta1, 0.0, 1.0),
            ("beta2", config.beta2, 0.0, 1.0),
            ("adaptivity", config.adaptivity, 0.0, 1e30),
            ("ridge", config.ridge, 0.0, f64::MAX),
        ];
        for (key, value, low, high) in ranges {
            if value.is_some_and(|value| !(low..=high).contains(&value)) {
                let range = match high {
                    f64::MAX => "a number of 0 or more".to_owned(),
                    _ => format!("from {low} to {}", fedcote::readable(high)),
                };
                return Err((key.to_owned(), format!("must be {range}")));
            }
        }
        for (key, value) in [
            ("k_apx", config.k_apx),
            ("candidates", config.candidates),
            ("cutoff", config.cutoff.map(u64::from)),
        ] {
            if value == Some(0) {
                return Err((key.to_owned(), "must be at least 1".to_owned()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_scheme_resolves() {
        for (name, _) in NAMED {
            assert_eq!(Schemes::default().resolve(name).unwrap().name, name);
        }
    }

    #[test]
    fn a_mixture_takes_the_rest_from_its_base() {
        let mut schemes = Schemes::default();
        let own = SchemeConfig {
            base: Some("fedcote".into()),
            aggregation: Some(AggregationKind::Yogi),
            beta1: Some(0.5),
            ..Default::default()
        };
        schemes.insert("mine".into(), own);
        let scheme = schemes.resolve("mine").unwrap();
        assert_eq!(scheme.selection, SelectionKind::Fedcote);
        assert_eq!(scheme.aggregation, AggregationKind::Yogi);
        assert_eq!(scheme.config.beta1, Some(0.5));
    }

    #[test]
    fn a_parameter_without_effect_is_refused() {
        let mut schemes = Schemes::default();
        schemes.insert("fedavg".into(), SchemeConfig { mu: Some(0.1), ..Default::default() });
        let (key, reason) = schemes.resolve("fedavg").unwrap_err();
        assert_eq!(key, "scheme.fedavg.mu");
        assert_eq!(reason, "has no effect here: it belongs to local = \"prox\"");
    }

    #[test]
    fn a_misspelt_scheme_gets_a_suggestion() {
        let (key, reason) = Schemes::default().resolve("fedcoat").unwrap_err();
        assert_eq!(key, "schemes");
        assert!(reason.contains("did you mean `fedcote`?"), "{reason}");
        assert!(Schemes::default().resolve("../evil").is_err());
    }
}
