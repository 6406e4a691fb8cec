//! One entry to the solvers: who may be selected, and with which probability.

mod eligibility;
mod gradient;
mod homogeneity;
mod warning;

pub use warning::Warning;

use serde::{Deserialize, Serialize};

use crate::appearance::{AppearanceModel, Model, check_selection};
use crate::chunks;
use crate::divergence::{label_divergence, weight_divergence};
use crate::draw::label_order;
use crate::error::{Error, check_draws, check_length};
use crate::federation::Federation;
use crate::invert::{Limits, many_draws};
use crate::target::TargetProblem;
use crate::{Draws, Uploads};
use eligibility::Eligibility;

/// How to find the selection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Method {
    /// The optimal appearance by a convex problem, then the selection that leads to it.
    Exact {
        /// How much more labels matter than weights, `κ > 0`. Default 1000.
        kappa: f64,
        /// The price of a failed draw, `ρ ≥ 0`. Default 0: unbiased when everybody is eligible.
        efficiency: f64,
    },
    /// Algorithm 2 of the paper: projected gradient descent on the label divergence alone.
    Gradient {
        /// Solve for this many draws instead (the paper's FedCote-II). Default: the number asked for.
        k_apx: Option<u64>,
        /// Largest number of steps. Default 2000.
        max_steps: usize,
        /// Projected gradient at which to stop. Default 1e-10.
        tolerance: f64,
    },
}

impl Method {
    /// The exact method with its defaults.
    pub const EXACT: Self = Self::Exact { kappa: 1000.0, efficiency: 0.0 };

    /// The gradient method with its defaults.
    pub const GRADIENT: Self = Self::Gradient { k_apx: None, max_steps: 2000, tolerance: 1e-10 };

    /// `exact` or `gradient`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact { .. } => "exact",
            Self::Gradient { .. } => "gradient",
        }
    }
}

/// What [`select`] should do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The method. Default: exact.
    pub method: Method,
    /// Clients with a failure probability above it are excluded; from 0 to 1. Default 0.85.
    pub threshold: f64,
    /// Whether a label whose holders are all excluded gets its most reliable holders back. Default true.
    pub coverage: bool,
    /// How clients will be drawn. Default: independently. The gradient method descends for the default procedure, as in
    /// the paper, whatever the procedure; what it reports is the appearance under the procedure.
    #[serde(default)]
    pub draws_kind: Draws,
    /// What an upload carries. Default: one draw.
    #[serde(default)]
    pub uploads: Uploads,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::EXACT,
            threshold: 0.85,
            coverage: true,
            draws_kind: Draws::Independent,
            uploads: Uploads::PerDraw,
        }
    }
}

/// Selection probabilities and what they lead to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// The method that found them.
    pub method: Method,
    /// Draws a round, `K`.
    pub draws: u64,
    /// Selection probabilities, `s`.
    pub selection: Vec<f64>,
    /// Effective appearance, `β̄`.
    pub appearance: Vec<f64>,
    /// The appearance aimed at; for the gradient method, the one it found.
    pub target: Vec<f64>,
    /// Who may be selected.
    pub eligible: Vec<bool>,
    /// `χ²(ᾱ‖α_g)`.
    pub label_divergence: f64,
    /// `χ²(β̄‖p)`.
    pub weight_divergence: f64,
    /// `K Σ s (1 − ε)`: uploads a round that arrive on average.
    pub expected_arrivals: f64,
    /// The residual that certifies the optimum. Exact: the largest violation of the optimality conditions of the
    /// target, or of `β̄(s) = β` if that is larger. Gradient: the projected gradient.
    pub optimality: f64,
    /// Multipliers of the exact method's target: a start for the next solve.
    pub multipliers: Vec<f64>,
    /// What deserves attention.
    pub warnings: Vec<Warning>,
}

/// What given selection probabilities lead to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Draws a round, `K`.
    pub draws: u64,
    /// Effective appearance, `β̄`.
    pub appearance: Vec<f64>,
    /// `χ²(ᾱ‖α_g)`.
    pub label_divergence: f64,
    /// `χ²(β̄‖p)`.
    pub weight_divergence: f64,
    /// `K Σ s (1 − ε)`.
    pub expected_arrivals: f64,
    /// What deserves attention.
    pub warnings: Vec<Warning>,
}

/// Finds selection probabilities for `draws` draws a round.
///
/// `warm`, an earlier solution for the same clients, is where the search starts; the exact method's result does
/// not depend on it.
///
/// ```
/// use fedcote::{FederationSpec, Options, select};
///
/// let federation = FederationSpec {
///     ids: None,
///     classes: 2,
///     counts: vec![50.0, 50.0, 100.0, 0.0, 0.0, 100.0],
///     failure: vec![0.1, 0.5, 0.8],
/// }
/// .check()?;
/// let solution = select(&federation, 10, &Options::default(), None)?;
/// // Everybody is eligible, so everybody appears by weight; who fails more is drawn more.
/// assert!((solution.appearance[2] - federation.weights()[2]).abs() < 1e-9);
/// assert!(solution.selection[2] > solution.selection[1]);
/// # Ok::<(), fedcote::Error>(())
/// ```
pub fn select(
    federation: &Federation,
    draws: u64,
    options: &Options,
    warm: Option<&Solution>,
) -> Result<Solution, Error> {
    check_draws(draws)?;
    let eligibility = Eligibility::new(federation, options.threshold, options.coverage)?;
    let warm = warm.filter(|warm| warm.selection.len() == federation.len());
    let order = order(federation, options.draws_kind)?;
    let procedure = (options.draws_kind, options.uploads);
    let (model, is_exact) = Model::new(procedure, federation.failure(), draws, &order);
    let mut found = match options.method {
        Method::Exact { kappa, efficiency } => {
            exact(federation, &model, &eligibility.eligible, kappa, efficiency, warm)?
        }
        Method::Gradient { k_apx, max_steps, tolerance } => {
            let k_apx = k_apx.unwrap_or(draws);
            check_draws(k_apx)?;
            let limits = (max_steps, tolerance);
            descent(federation, &model, k_apx, &eligibility.eligible, limits, warm)?
        }
    };
    let eligible = eligibility.eligible.clone();
    let mut warnings = eligibility.warnings(federation, draws, &found.selection);
    warnings.append(&mut found.warnings);
    warnings.extend((!is_exact).then_some(Warning::ClosedForm));
    Ok(Solution {
        method: options.method,
        draws,
        label_divergence: label_divergence(federation, &found.appearance),
        weight_divergence: weight_divergence(federation, &found.appearance),
        expected_arrivals: expected_arrivals(federation, draws, &found.selection),
        target: found.target.unwrap_or_else(|| found.appearance.clone()),
        selection: found.selection,
        appearance: found.appearance,
        eligible,
        optimality: found.optimality,
        multipliers: found.multipliers,
        warnings,
    })
}

/// What the selection probabilities `selection`, which must sum to one within 1e-6, lead to.
///
/// For independent draws with an upload each; [`evaluate_for`] takes the procedure.
pub fn evaluate(
    federation: &Federation,
    draws: u64,
    selection: &[f64],
) -> Result<Evaluation, Error> {
    evaluate_for(federation, draws, selection, (Draws::default(), Uploads::default()))
}

/// What the selection probabilities `selection` lead to when clients are drawn, and upload, in this way.
///
/// ```
/// use fedcote::{Draws, FederationSpec, Uploads, evaluate_for};
///
/// let federation = FederationSpec {
///     ids: None,
///     classes: 1,
///     counts: vec![50.0, 50.0],
///     failure: vec![0.0, 0.5],
/// }
/// .check()?;
/// // Two draws of each client in one upload: client 2 arrives every other round, then with half of the draws.
/// let procedure = (Draws::Systematic, Uploads::PerClient);
/// let evaluation = evaluate_for(&federation, 4, &[0.5, 0.5], procedure)?;
/// assert!((evaluation.appearance[1] - 0.25).abs() < 1e-15);
/// # Ok::<(), fedcote::Error>(())
/// ```
pub fn evaluate_for(
    federation: &Federation,
    draws: u64,
    selection: &[f64],
    procedure: (Draws, Uploads),
) -> Result<Evaluation, Error> {
    check_draws(draws)?;
    check_length("selection", federation.len(), selection.len())?;
    check_selection(selection)?;
    let failure = federation.failure();
    let mut appearance = vec![0.0; selection.len()];
    let order = order(federation, procedure.0)?;
    let (model, is_exact) = Model::new(procedure, failure, draws, &order);
    model.appearance(selection, &mut appearance)?;
    let mut warnings = Vec::new();
    warnings.extend((!is_exact).then_some(Warning::ClosedForm));
    let never = |client: &usize| selection[*client] > 0.0 && failure[*client] >= 1.0;
    let clients = (0..selection.len()).filter(never).count();
    if clients > 0 {
        let selection = (0..selection.len()).filter(never).map(|client| selection[client]).sum();
        warnings.push(Warning::NeverArrives { selection, clients });
    }
    Ok(Evaluation {
        draws,
        label_divergence: label_divergence(federation, &appearance),
        weight_divergence: weight_divergence(federation, &appearance),
        expected_arrivals: expected_arrivals(federation, draws, selection),
        appearance,
        warnings,
    })
}

/// The order of systematic draws; independent ones need none.
fn order(federation: &Federation, kind: Draws) -> Result<Vec<u32>, Error> {
    match kind {
        Draws::Independent => Ok(Vec::new()),
        Draws::Systematic => {
            label_order(federation.all_labels(), federation.len(), federation.classes())
        }
    }
}

/// `K Σ s (1 − ε)`.
fn expected_arrivals(federation: &Federation, draws: u64, selection: &[f64]) -> f64 {
    let failure = federation.failure();
    draws as f64
        * chunks::sum(selection.len(), |range| {
            let pairs = selection[range.clone()].iter().zip(&failure[range]);
            pairs.map(|(selection, failure)| selection * (1.0 - failure)).sum()
        })
}

struct Found {
    selection: Vec<f64>,
    appearance: Vec<f64>,
    /// `None`: the appearance itself.
    target: Option<Vec<f64>>,
    multipliers: Vec<f64>,
    optimality: f64,
    warnings: Vec<Warning>,
}

/// An optimality worse than this is reported.
const WORTH_A_WARNING: f64 = 1e-9;

/// The highest price of a failed draw.
pub const MAX_EFFICIENCY: f64 = 1e6;

fn exact(
    federation: &Federation,
    model: &Model,
    eligible: &[bool],
    kappa: f64,
    efficiency: f64,
    warm: Option<&Solution>,
) -> Result<Found, Error> {
    // Beyond that the price alone decides, and swallows the digits of everything else.
    if !(0.0..=MAX_EFFICIENCY).contains(&efficiency) {
        let legal = "from 0 to 1000000";
        return Err(Error::Parameter { name: "efficiency", legal, value: efficiency });
    }
    let failure = federation.failure();
    let price: Vec<f64> = if efficiency == 0.0 {
        Vec::new()
    } else {
        // Whoever is not eligible has no appearance to pay for.
        let price = |(&failure, &eligible): (&f64, &bool)| {
            if eligible { 0.5 * efficiency / (1.0 - failure) } else { 0.0 }
        };
        failure.iter().zip(eligible).map(price).collect()
    };
    let problem = TargetProblem {
        reference: federation.weights(),
        labels: federation.all_labels(),
        goal: federation.global_labels(),
        kappa,
        price: &price,
        eligible,
    };
    let target = problem.solve(warm.map(|warm| warm.multipliers.as_slice()))?;
    let start = many_draws(&target.appearance, failure);
    let inversion = model.invert(&target.appearance, start, Limits::default())?;
    let miss = inversion
        .appearance
        .iter()
        .zip(&target.appearance)
        .map(|(found, wanted)| (found - wanted).abs())
        .fold(0.0, f64::max);
    let optimality = miss.max(target.residual);
    // Large multipliers cost digits: with κ = 1e9 and labels out of reach, 1e-8 is all that f64 holds.
    let size = target.multipliers.iter().fold(0.0, |size: f64, y| size.max(y.abs()));
    let warnings = if optimality <= WORTH_A_WARNING.max(1e-14 * size) {
        Vec::new()
    } else {
        vec![Warning::NotConverged { residual: optimality }]
    };
    Ok(Found {
        selection: inversion.selection,
        appearance: inversion.appearance,
        target: Some(target.appearance),
        multipliers: target.multipliers,
        optimality,
        warnings,
    })
}

/// Counts whose differences are at least this likely by chance are taken as i.i.d.
const HOMOGENEOUS: f64 = 0.01;

fn descent(
    federation: &Federation,
    model: &Model,
    k_apx: u64,
    eligible: &[bool],
    (max_steps, tolerance): (usize, f64),
    warm: Option<&Solution>,
) -> Result<Found, Error> {
    if !(tolerance >= 0.0 && tolerance.is_finite()) {
        let legal = "at least 0 and finite";
        return Err(Error::Parameter { name: "tolerance", legal, value: tolerance });
    }
    let by_weight = || {
        let weights = federation.weights().iter().zip(eligible);
        let mut start: Vec<f64> =
            weights.map(|(&weight, &eligible)| if eligible { weight } else { 0.0 }).collect();
        chunks::normalise(&mut start);
        start
    };
    let mut appearance = vec![0.0; federation.len()];
    let p_value = homogeneity::p_value(federation);
    let (selection, optimality, warnings) = if p_value > HOMOGENEOUS {
        // Proposition 4: with i.i.d. labels selection by weight is optimal.
        // No step is made: the residual says how far from optimal it is for these very counts.
        let end = gradient::descend(federation, eligible, k_apx, by_weight(), 0, tolerance)?;
        (end.selection, end.residual, vec![Warning::Homogeneous { p_value }])
    } else {
        let start = match warm {
            Some(warm) => {
                let mut start = warm.selection.clone();
                gradient::project(&mut start, eligible);
                start
            }
            None => by_weight(),
        };
        let end = gradient::descend(federation, eligible, k_apx, start, max_steps, tolerance)?;
        let warnings = if end.residual <= tolerance.max(WORTH_A_WARNING) {
            Vec::new()
        } else {
            vec![Warning::NotConverged { residual: end.residual }]
        };
        (end.selection, end.residual, warnings)
    };
    model.appearance(&selection, &mut appearance)?;
    Ok(Found { selection, appearance, target: None, multipliers: Vec::new(), optimality, warnings })
}
