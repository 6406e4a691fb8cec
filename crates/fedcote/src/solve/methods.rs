//! The two methods: the exact one, and the paper's descent.

use super::{Solution, Warning, gradient, homogeneity};
use crate::appearance::{AppearanceModel, Model};
use crate::chunks;
use crate::error::Error;
use crate::federation::Federation;
use crate::invert::{Limits, many_draws};
use crate::target::{Target, TargetProblem};

/// What a method found.
pub struct Found {
    pub selection: Vec<f64>,
    pub appearance: Vec<f64>,
    /// `None`: the appearance itself.
    pub target: Option<Vec<f64>>,
    pub multipliers: Vec<f64>,
    pub optimality: f64,
    pub warnings: Vec<Warning>,
}

/// An optimality worse than this is reported.
const WORTH_A_WARNING: f64 = 1e-9;

/// The highest price of a failed draw.
pub const MAX_EFFICIENCY: f64 = 1e6;

/// The best appearance among those of the eligible clients.
pub fn target(
    federation: &Federation,
    eligible: &[bool],
    kappa: f64,
    efficiency: f64,
    warm: Option<&Solution>,
) -> Result<Target, Error> {
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
    problem.solve(warm.map(|warm| warm.multipliers.as_slice()))
}

/// The target itself is the appearance, as for a server that remembers updates; no selection leads to it by draws.
pub fn remembered(target: Target) -> Found {
    let optimality = target.residual;
    let warnings = not_converged(optimality, &target.multipliers);
    let Target { appearance, multipliers, .. } = target;
    Found { selection: Vec::new(), appearance, target: None, multipliers, optimality, warnings }
}

/// The selection that leads to the target.
pub fn inverted(federation: &Federation, model: &Model, target: Target) -> Result<Found, Error> {
    let start = many_draws(&target.appearance, federation.failure());
    let inversion = model.invert(&target.appearance, start, Limits::default())?;
    let miss = inversion
        .appearance
        .iter()
        .zip(&target.appearance)
        .map(|(found, wanted)| (found - wanted).abs())
        .fold(0.0, f64::max);
    let optimality = miss.max(target.residual);
    let warnings = not_converged(optimality, &target.multipliers);
    Ok(Found {
        selection: inversion.selection,
        appearance: inversion.appearance,
        target: Some(target.appearance),
        multipliers: target.multipliers,
        optimality,
        warnings,
    })
}

/// A warning where the optimality is worse than rounding explains.
fn not_converged(optimality: f64, multipliers: &[f64]) -> Vec<Warning> {
    // Large multipliers cost digits: with κ = 1e9 and labels out of reach, 1e-8 is all that f64 holds.
    let size = multipliers.iter().fold(0.0, |size: f64, y| size.max(y.abs()));
    if optimality <= WORTH_A_WARNING.max(1e-14 * size) {
        Vec::new()
    } else {
        vec![Warning::NotConverged { residual: optimality }]
    }
}

/// Counts whose differences are at least this likely by chance are taken as i.i.d.
const HOMOGENEOUS: f64 = 0.01;

/// The paper's descent.
pub fn descent(
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
