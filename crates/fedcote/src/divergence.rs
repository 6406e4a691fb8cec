//! Chi-square divergences between shares: how far an aggregate is from the one that is wanted.

use crate::chunks;
use crate::federation::Federation;

/// `χ²(q‖p) = Σ (q − p)² / p`. Entries where both are zero count nothing.
///
/// ```
/// assert_eq!(fedcote::divergence::chi_square(&[0.75, 0.25], &[0.5, 0.5]), 0.25);
/// ```
pub fn chi_square(shares: &[f64], reference: &[f64]) -> f64 {
    chunks::sum(shares.len(), |range| {
        let pairs = shares[range.clone()].iter().zip(&reference[range]);
        pairs.map(|(&share, &reference)| term(share - reference, reference)).sum()
    })
}

fn term(difference: f64, reference: f64) -> f64 {
    if difference == 0.0 { 0.0 } else { difference * difference / reference }
}

/// The label shares of the aggregate, `ᾱ_c = Σ β̄_i α_{i,c}`.
pub fn effective_labels(federation: &Federation, appearance: &[f64]) -> Vec<f64> {
    mix(federation, |client| appearance[client])
}

/// `χ²(ᾱ‖α_g)`: how far the labels of the aggregate are from those of all samples.
pub fn label_divergence(federation: &Federation, appearance: &[f64]) -> f64 {
    // Σ (β̄_i − p_i) α_i rather than ᾱ − α_g: exact when β̄ = p.
    let weights = federation.weights();
    mix(federation, |client| appearance[client] - weights[client])
        .iter()
        .zip(federation.global_labels())
        .map(|(&difference, &goal)| if goal > 0.0 { term(difference, goal) } else { 0.0 })
        .sum()
}

/// `χ²(β̄‖p)`: how far the appearances are from the clients' weights.
pub fn weight_divergence(federation: &Federation, appearance: &[f64]) -> f64 {
    chi_square(appearance, federation.weights())
}

/// `χ²(α_i‖α_g)`: how unusual one client's labels are.
pub fn client_divergence(federation: &Federation, client: usize) -> f64 {
    chi_square(federation.labels(client), federation.global_labels())
}

/// `Σ_i f_i α_i`.
fn mix(federation: &Federation, factor: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let classes = federation.classes();
    let mut total = vec![0.0; classes];
    for part in chunks::map(federation.len(), |range| {
        let mut sum = vec![0.0; classes];
        for client in range {
            let factor = factor(client);
            let labels = federation.labels(client);
            sum.iter_mut().zip(labels).for_each(|(sum, label)| *sum += factor * label);
        }
        sum
    }) {
        total.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    total
}
