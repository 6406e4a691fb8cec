//! One entry to the solvers: who may be selected, and with which probability.

mod eligibility;
mod gradient;
mod homogeneity;
mod methods;
mod options;
mod solution;
mod warning;

pub use methods::MAX_EFFICIENCY;
pub use options::{Aim, Method, Options};
pub use solution::{Evaluation, Solution};
pub use warning::Warning;

use crate::appearance::{AppearanceModel, Model, check_selection};
use crate::divergence::{label_divergence, weight_divergence};
use crate::draw::label_order;
use crate::error::{Error, check_length, check_selected};
use crate::federation::Federation;
use crate::{Draws, Uploads, chunks, freshness};
use eligibility::Eligibility;

/// Finds selection probabilities for `selected` draws per round.
///
/// ```
/// use fedcote::{Federation, Options, select};
///
/// let labels = [[50.0, 50.0], [100.0, 0.0], [0.0, 100.0]];
/// let federation = Federation::new(labels, [0.1, 0.5, 0.8])?;
/// let solution = select(&federation, 10, &Options::new())?;
/// // Everybody is eligible, so everybody appears by weight; who fails more is drawn more.
/// assert!((solution.appearance[2] - federation.weights()[2]).abs() < 1e-9);
/// assert!(solution.selection[2] > solution.selection[1]);
/// # Ok::<(), fedcote::Error>(())
/// ```
///
/// # Errors
/// When `selected` or an option is out of its range, the threshold excludes everyone
/// ([`Error::NobodyEligible`]; see [`select_or_all`]), or every client's failure probability is 1.
pub fn select(
    federation: &Federation,
    selected: u64,
    options: &Options,
) -> Result<Solution, Error> {
    solve(federation, selected, options, None)
}

/// As [`select`], searching from an earlier solution for the same clients, as when failure probabilities changed a little.
///
/// The exact method's result does not depend on where it starts, up to rounding. A solution for another number of clients is
/// ignored.
///
/// # Errors
/// As [`select`].
pub fn select_from(
    federation: &Federation,
    selected: u64,
    options: &Options,
    earlier: &Solution,
) -> Result<Solution, Error> {
    solve(federation, selected, options, Some(earlier))
}

/// As [`select`], but where the threshold would exclude everyone it excludes nobody: for a server that has to ask someone.
///
/// # Errors
/// As [`select`], but never [`Error::NobodyEligible`].
pub fn select_or_all(
    federation: &Federation,
    selected: u64,
    options: &Options,
) -> Result<Solution, Error> {
    match select(federation, selected, options) {
        Err(Error::NobodyEligible(_)) => select(federation, selected, &options.with_threshold(1.0)),
        found => found,
    }
}

/// Who may be selected: clients within the threshold, and those taken back for label coverage.
///
/// # Errors
/// When the threshold is out of its range or excludes everyone, or every client's failure probability is 1.
pub fn eligible(federation: &Federation, options: &Options) -> Result<Vec<bool>, Error> {
    Ok(Eligibility::new(federation, options.threshold, options.coverage)?.eligible)
}

fn solve(
    federation: &Federation,
    selected: u64,
    options: &Options,
    warm: Option<&Solution>,
) -> Result<Solution, Error> {
    check_selected(selected)?;
    if !(0.0..=1.0).contains(&options.exploration) {
        let (legal, value) = ("from 0 to 1", options.exploration);
        return Err(Error::Parameter { name: "exploration", legal, value });
    }
    let eligibility = Eligibility::new(federation, options.threshold, options.coverage)?;
    let warm = warm.filter(|warm| warm.selection.len() == federation.len());
    let fresh = options.aim == Aim::Freshness;
    // The exact target depends on neither draws nor uploads; where it is all that is wanted, no model is needed.
    let modelled = !(fresh && matches!(options.method, Method::Exact { .. }));
    let order = if modelled { order(federation, options.draws)? } else { Vec::new() };
    let procedure = (options.draws, options.uploads);
    let (model, is_exact) = Model::of(federation, procedure, selected, &order);
    let mut found = match options.method {
        Method::Exact { kappa, efficiency } => {
            let target =
                methods::target(federation, &eligibility.eligible, kappa, efficiency, warm)?;
            if fresh {
                methods::remembered(target)
            } else {
                methods::inverted(federation, &model, target)?
            }
        }
        Method::Gradient { k_apx, max_steps, tolerance } => {
            let k_apx = k_apx.unwrap_or(selected);
            check_selected(k_apx)?;
            let limits = (max_steps, tolerance);
            methods::descent(federation, &model, k_apx, &eligibility.eligible, limits, warm)?
        }
    };
    let target = found.target.take().unwrap_or_else(|| found.appearance.clone());
    if fresh {
        found.selection = freshness::selection(&target, federation.failure())?;
    }
    let eligible = eligibility.eligible.clone();
    let mut warnings = eligibility.warnings(federation, selected, &found.selection);
    warnings.append(&mut found.warnings);
    if modelled && !is_exact {
        warnings.extend(approximations(&model, federation, procedure));
    }
    if options.exploration > 0.0 {
        for (selection, weight) in found.selection.iter_mut().zip(federation.weights()) {
            *selection += options.exploration * (weight - *selection);
        }
        if !fresh {
            model.appearance(&found.selection, &mut found.appearance)?;
        }
    }
    Ok(Solution {
        method: options.method,
        selected,
        label_divergence: label_divergence(federation, &found.appearance),
        weight_divergence: weight_divergence(federation, &found.appearance),
        expected_arrivals: expected_arrivals(federation, selected, &found.selection),
        target,
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
///
/// # Errors
/// As [`evaluate_for`].
pub fn evaluate(
    federation: &Federation,
    selected: u64,
    selection: &[f64],
) -> Result<Evaluation, Error> {
    evaluate_for(federation, selected, selection, (Draws::default(), Uploads::default()))
}

/// What the selection probabilities `selection` lead to when clients are drawn, and upload, in this way.
///
/// ```
/// use fedcote::{Draws, Federation, Uploads, evaluate_for};
///
/// let federation = Federation::new([[50.0], [50.0]], [0.0, 0.5])?;
/// // Two draws of each client in one upload: client 2 arrives every other round, then with half of the draws.
/// let procedure = (Draws::Systematic, Uploads::PerClient);
/// let evaluation = evaluate_for(&federation, 4, &[0.5, 0.5], procedure)?;
/// assert!((evaluation.appearance[1] - 0.25).abs() < 1e-15);
/// # Ok::<(), fedcote::Error>(())
/// ```
///
/// # Errors
/// When `selected` is out of its range, `selection` does not hold a probability for each client that sum to 1 within 1e-6,
/// or nobody with a probability above 0 ever arrives.
pub fn evaluate_for(
    federation: &Federation,
    selected: u64,
    selection: &[f64],
    procedure: (Draws, Uploads),
) -> Result<Evaluation, Error> {
    check_selected(selected)?;
    check_length("selection", federation.len(), selection.len())?;
    check_selection(selection)?;
    let failure = federation.failure();
    let mut appearance = vec![0.0; selection.len()];
    let order = order(federation, procedure.0)?;
    let (model, is_exact) = Model::of(federation, procedure, selected, &order);
    model.appearance(selection, &mut appearance)?;
    let mut warnings = Vec::new();
    if !is_exact {
        warnings.extend(approximations(&model, federation, procedure));
    }
    let never = |client: &usize| selection[*client] > 0.0 && failure[*client] >= 1.0;
    let clients = (0..selection.len()).filter(never).count();
    if clients > 0 {
        let selection = (0..selection.len()).filter(never).map(|client| selection[client]).sum();
        warnings.push(Warning::NeverArrives { selection, clients });
    }
    Ok(Evaluation {
        selected,
        label_divergence: label_divergence(federation, &appearance),
        weight_divergence: weight_divergence(federation, &appearance),
        expected_arrivals: expected_arrivals(federation, selected, selection),
        appearance,
        warnings,
    })
}

/// What is not in the model.
fn approximations(
    model: &Model,
    federation: &Federation,
    procedure: (Draws, Uploads),
) -> impl Iterator<Item = Warning> {
    let together = matches!(model, Model::Grouped(_));
    let ignored = federation.groups().is_some() && !together;
    let closed = (together || matches!(model, Model::Independent(_)))
        && procedure != (Draws::Independent, Uploads::PerDraw);
    let found = [ignored.then_some(Warning::GroupsIgnored), closed.then_some(Warning::ClosedForm)];
    found.into_iter().flatten()
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
fn expected_arrivals(federation: &Federation, selected: u64, selection: &[f64]) -> f64 {
    let failure = federation.failure();
    selected as f64
        * chunks::sum(selection.len(), |range| {
            let pairs = selection[range.clone()].iter().zip(&failure[range]);
            pairs.map(|(selection, failure)| selection * (1.0 - failure)).sum()
        })
}
