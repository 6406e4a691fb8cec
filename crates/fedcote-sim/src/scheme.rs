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

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::remedy;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }
    };
}

choice! {
    /// Whom to ask.
    SelectionKind {
        /// Draws in proportion to the weights p (FedAvg).
        Weights,
        /// The candidates with the highest loss.
        PowerOfChoice,
        /// The clients whose last model is farthest from the global one.
        Newt,
        /// Groups that together have the global label mix, in turn.
        Gs,
        /// Draws that minimise the variance of unbiased aggregation.
        TfAggregation,
        /// Draws that undo the distortion by failures.
        Fedcote,
    }
}
choice! {
    /// What a client does.
    LocalKind {
        /// Plain mini-batch SGD.
        Sgd,
        /// With a proximal term towards the global model.
        Prox,
        /// With control variates.
        Scaffold,
    }
}
choice! {
    /// What becomes of what arrived.
    AggregationKind {
        /// The mean of what arrived, each copy counting once.
        Mean,
        /// The mean weighted by copies times p.
        WeightedMean,
        /// Weights that make the expectation right, not normalised.
        TfAggregation,
        /// Updates divided by their number of steps.
        Nova,
        /// An adaptive step on the mean update.
        Yogi,
        /// The mean of everyone's latest update (MIFA).
        Memory,
        /// The mean update corrected by everyone's latest one (FedVARP).
        VarianceReduced,
        /// The mean weighted by observed participation (FedAU).
        Fedau,
        /// Weights that match this round's labels to the global mix.
        LabelMatched,
    }
}
choice! {
    /// Which failures a scheme meets.
    FailureKind {
        /// Those of the network.
        Network,
        /// None at all.
        None,
        /// Everyone fails with the mean probability of the network.
        Equalised,
    }
}
choice! {
    /// How selection probabilities are solved for.
    SolverKind {
        /// Convex target and inversion.
        Exact,
        /// The paper's projected gradient descent.
        Gradient,
    }
}
choice! {
    /// How SCAFFOLD's control variate is scaled.
    ControlKind {
        /// By the number of local steps, as in the original.
        Original,
        /// By the number of selected clients, as printed in the paper.
        Printed,
    }
}

/// A scheme as written in a scenario: what is not said is as in its base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeConfig {
    /// The named scheme to start from; by default the one of the same name, else `fedavg`.
    pub base: Option<String>,
    /// Whom to ask.
    pub selection: Option<SelectionKind>,
    /// What a client does.
    pub local: Option<LocalKind>,
    /// What becomes of what arrived.
    pub aggregation: Option<AggregationKind>,
    /// Which failures the scheme meets.
    pub failures: Option<FailureKind>,
    /// How clients are drawn from selection probabilities.
    pub draws: Option<fedcote::Draws>,
    /// How `fedcote` solves for them.
    pub solver: Option<SolverKind>,
    /// `fedcote`, exact: weight of label divergence against weight divergence.
    pub kappa: Option<f64>,
    /// `fedcote`, exact: price of a failed draw.
    pub efficiency: Option<f64>,
    /// `fedcote`, `tf-aggregation`: clients that fail more often are left out.
    pub threshold: Option<f64>,
    /// `fedcote`: the threshold must not lose a label.
    pub coverage: Option<bool>,
    /// `fedcote`, gradient: solve for this K instead (FedCote-II).
    pub k_apx: Option<u64>,
    /// `power-of-choice`: candidates d; by default 1.5 K, at most N.
    pub candidates: Option<u64>,
    /// `prox`: the coefficient μ.
    pub mu: Option<f64>,
    /// `scaffold`: how the control variate is scaled.
    pub control: Option<ControlKind>,
    /// `mean`, `weighted-mean`, `nova`, `yogi`, memory kinds: step size on the server.
    pub server_rate: Option<f64>,
    /// `yogi`: decay of the first moment.
    pub beta1: Option<f64>,
    /// `yogi`: decay of the second moment.
    pub beta2: Option<f64>,
    /// `yogi`: adaptivity τ.
    pub adaptivity: Option<f64>,
    /// `label-matched`: ridge λ towards equal weights.
    pub ridge: Option<f64>,
    /// `fedau`: the longest participation interval that counts.
    pub cutoff: Option<u32>,
}

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

/// The named schemes and what each is.
pub const NAMED: [(&str, &str); 19] = [
    ("fedavg", "K draws in proportion to the weights; mean of what arrives"),
    ("power-of-choice", "the candidates with the highest loss"),
    ("newt", "the clients whose last model is farthest from the global one"),
    ("gs", "groups that together have the global label mix, in turn"),
    ("tf-aggregation", "weights that make the expectation right, not normalised"),
    ("fednova", "updates divided by their number of steps"),
    ("fedyogi", "an adaptive step on the server"),
    ("fedprox", "a proximal term on the clients"),
    ("scaffold", "control variates"),
    ("ideal", "fedavg on a network without failures"),
    ("fedcote", "selection that undoes the distortion by failures, solved exactly"),
    ("fedcote-gradient", "the same by the paper's projected gradient descent"),
    ("fedcote-ii", "the same descent for a smaller number of draws (K_apx = 4)"),
    ("fedavg-equalised", "fedavg when everyone fails with the mean probability"),
    ("fedcote-memory", "fedcote with systematic draws and the server's memory of updates"),
    ("fedcote-matched", "fedcote with weights that match this round's labels"),
    ("mifa", "fedavg draws; the server remembers everyone's latest update"),
    ("fedvarp", "fedavg draws; variance reduced by everyone's latest update"),
    ("fedau", "fedavg draws; weights from observed participation"),
];

fn named(name: &str) -> Option<SchemeConfig> {
    use AggregationKind as A;
    use SelectionKind as S;
    let plain = SchemeConfig {
        selection: Some(S::Weights),
        local: Some(LocalKind::Sgd),
        aggregation: Some(A::Mean),
        failures: Some(FailureKind::Network),
        ..Default::default()
    };
    let fedcote = SchemeConfig { selection: Some(S::Fedcote), ..plain.clone() };
    let gradient = SchemeConfig {
        solver: Some(SolverKind::Gradient),
        coverage: Some(false),
        ..fedcote.clone()
    };
    let aggregated = |aggregation| SchemeConfig { aggregation: Some(aggregation), ..plain.clone() };
    let selected = |selection| SchemeConfig {
        selection: Some(selection),
        aggregation: Some(A::WeightedMean),
        ..plain.clone()
    };
    Some(match name {
        "fedavg" => plain,
        "ideal" => SchemeConfig { failures: Some(FailureKind::None), ..plain },
        "fedavg-equalised" => SchemeConfig { failures: Some(FailureKind::Equalised), ..plain },
        "power-of-choice" => selected(S::PowerOfChoice),
        "newt" => selected(S::Newt),
        "gs" => selected(S::Gs),
        "tf-aggregation" => SchemeConfig {
            selection: Some(S::TfAggregation),
            aggregation: Some(A::TfAggregation),
            ..plain
        },
        "fednova" => aggregated(A::Nova),
        "fedyogi" => aggregated(A::Yogi),
        "fedprox" => SchemeConfig { local: Some(LocalKind::Prox), ..aggregated(A::WeightedMean) },
        "scaffold" => SchemeConfig { local: Some(LocalKind::Scaffold), ..plain },
        "fedcote" => fedcote,
        "fedcote-gradient" => gradient,
        "fedcote-ii" => SchemeConfig { k_apx: Some(4), ..gradient },
        "fedcote-memory" => SchemeConfig {
            draws: Some(fedcote::Draws::Systematic),
            aggregation: Some(A::Memory),
            ..fedcote
        },
        "fedcote-matched" => SchemeConfig { aggregation: Some(A::LabelMatched), ..fedcote },
        "mifa" => aggregated(A::Memory),
        "fedvarp" => aggregated(A::VarianceReduced),
        "fedau" => aggregated(A::Fedau),
        _ => return None,
    })
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

impl SchemeConfig {
    /// This configuration with the other's keys in place of its own where the other has them.
    fn overlaid(self, over: &Self) -> Self {
        macro_rules! overlay {
            ($($field:ident),*) => { Self { $($field: over.$field.clone().or(self.$field)),* } };
        }
        overlay!(
            base,
            selection,
            local,
            aggregation,
            failures,
            draws,
            solver,
            kappa,
            efficiency,
            threshold,
            coverage,
            k_apx,
            candidates,
            mu,
            control,
            server_rate,
            beta1,
            beta2,
            adaptivity,
            ridge,
            cutoff
        )
    }
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
            ("efficiency", config.efficiency, 0.0, f64::MAX),
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
                let range = if high > 1.0 {
                    "not negative".to_owned()
                } else {
                    format!("from {low} to {high}")
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
