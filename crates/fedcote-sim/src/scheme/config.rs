//! The `[scheme.NAME]` table of a scenario.

use serde::{Deserialize, Serialize};

use super::kinds::{
    AggregationKind, AimKind, ControlKind, FailureKind, LocalKind, SelectionKind, SolverKind,
};

/// A scheme as written in a scenario: what is not said is as in its base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeConfig {
    /// The named scheme to start from; by default the one of the same name, else `fedavg`.
    pub base: Option<String>,
    /// Whom to ask; by default as in the base, like all parts.
    pub selection: Option<SelectionKind>,
    /// What a client does.
    pub local: Option<LocalKind>,
    /// What becomes of what arrived.
    pub aggregation: Option<AggregationKind>,
    /// Which failures the scheme meets.
    pub failures: Option<FailureKind>,
    /// How clients are drawn from selection probabilities; `independent` unless told.
    pub draws: Option<fedcote::Draws>,
    /// How `fedcote` solves for them; `exact` unless told.
    pub solver: Option<SolverKind>,
    /// `fedcote`: what they are for; `appearance` unless told, `freshness` for a server with memory.
    pub aim: Option<AimKind>,
    /// `fedcote`, exact: weight of label divergence against weight divergence; 1000 unless told.
    pub kappa: Option<f64>,
    /// `fedcote`, exact: price of a failed draw; 0 unless told.
    pub efficiency: Option<f64>,
    /// `fedcote`, `tf-aggregation`: clients that fail more often are left out; 0.85 unless told, in `fedcote-memory` 0.95.
    pub threshold: Option<f64>,
    /// `fedcote`: the threshold must not lose a label; true unless told.
    pub coverage: Option<bool>,
    /// `fedcote`, gradient: solve for this K instead (FedCote-II).
    pub k_apx: Option<u64>,
    /// `power-of-choice`: candidates d; 1.5 K, at most N, unless told.
    pub candidates: Option<u64>,
    /// `prox`: the coefficient μ; 0.01 unless told.
    pub mu: Option<f64>,
    /// `scaffold`: how the control variate is scaled; `original` unless told.
    pub control: Option<ControlKind>,
    /// `mean`, `weighted-mean`, `nova`, `yogi`, memory kinds: step size on the server; 1, for `yogi` 0.01, unless told.
    pub server_rate: Option<f64>,
    /// `yogi`: decay of the first moment; 0.9 unless told.
    pub beta1: Option<f64>,
    /// `yogi`: decay of the second moment; 0.99 unless told.
    pub beta2: Option<f64>,
    /// `yogi`: adaptivity τ; 0.001 unless told.
    pub adaptivity: Option<f64>,
    /// `label-matched`: ridge λ towards equal weights; 0.1 unless told.
    pub ridge: Option<f64>,
    /// `fedau`: the longest participation interval that counts; 50 unless told.
    pub cutoff: Option<u32>,
}

impl SchemeConfig {
    /// This configuration with the other's keys in place of its own where the other has them.
    pub(super) fn overlaid(self, over: &Self) -> Self {
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
            aim,
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
