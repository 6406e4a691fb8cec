//! The paper's own sums over all multisets of clients: yardsticks for tests and benchmarks, not for use.
//!
//! Proposition 2 gives the effective appearance as a sum over the `C(N+K−1, K)` multisets that `K` draws can
//! yield (20,030,010 for twenty clients and ten draws), Proposition 3 another as a sum over `N^(K−2)` tuples.
//! [`crate::appearance::appearance`] computes the same numbers in closed form.

use crate::appearance::check;
use crate::error::{Error, check_length};

/// Sums over more multisets or tuples than this are refused.
const MAX_TERMS: f64 = 1e9;

/// The number of multisets, `C(N+K−1, K)`.
///
/// ```
/// assert_eq!(fedcote::enumeration::multisets(20, 10), 20_030_010.0);
/// ```
pub fn multisets(clients: usize, selected: u64) -> f64 {
    let mut count = 1.0;
    for k in 1..=selected {
        count *= (clients as f64 - 1.0 + k as f64) / k as f64;
        if count.is_infinite() {
            break;
        }
    }
    count.round()
}

/// The effective appearance by Proposition 2.
pub fn appearance(selection: &[f64], failure: &[f64], selected: u64) -> Result<Vec<f64>, Error> {
    let mut sums = vec![0.0; selection.len()];
    let mut arrived = 0.0;
    enumerate(selection, failure, selected, |multiset| {
        arrived += multiset.probability;
        for (&client, share) in multiset.clients.iter().zip(multiset.shares) {
            sums[client] += multiset.probability * share;
        }
    })?;
    if arrived == 0.0 {
        return Err(Error::NobodyArrives);
    }
    sums.iter_mut().for_each(|sum| *sum /= arrived);
    Ok(sums)
}

/// The vector–Jacobian product of Proposition 2: `Σ_j v_j ∂β̄_j/∂s_i`, as the paper's appendix has it.
///
/// Selection probabilities must be positive, and no failure probability 1.
pub fn gradient(
    selection: &[f64],
    failure: &[f64],
    selected: u64,
    cotangent: &[f64],
) -> Result<Vec<f64>, Error> {
    check_length("cotangent", selection.len(), cotangent.len())?;
    let mut sums = vec![0.0; selection.len()];
    enumerate(selection, failure, selected, |multiset| {
        let shares = multiset.clients.iter().zip(multiset.shares);
        let value: f64 = shares.map(|(&client, share)| cotangent[client] * share).sum();
        // ∂Pr/∂s_i = Pr · n_i / s_i; a client drawn n times is n entries of the list.
        for &client in multiset.clients {
            sums[client] += multiset.probability * value / selection[client];
        }
    })?;
    Ok(sums)
}

/// The effective appearance by Proposition 3, for two draws or more.
pub fn proposition_3(selection: &[f64], failure: &[f64], selected: u64) -> Result<Vec<f64>, Error> {
    check(selection, failure, selected)?;
    let clients = selection.len();
    if selected < 2 || (clients as f64).powf(selected as f64) > MAX_TERMS {
        let legal = "at least 2 and small enough to enumerate";
        return Err(Error::Parameter { name: "selected", legal, value: selected as f64 });
    }
    let mut excess = vec![0.0; clients];
    let mut tuple = vec![0; selected as usize - 2];
    loop {
        let probability: f64 = tuple.iter().map(|&j: &usize| selection[j]).product();
        let mut product = 1.0;
        let mut numerator = 1.0;
        for &j in &tuple {
            product *= failure[j];
            numerator += product;
        }
        for (i, excess) in excess.iter_mut().enumerate() {
            for other in (0..clients).filter(|&other| other != i) {
                *excess +=
                    selection[other] * (failure[other] - failure[i]) * probability * numerator
                        / (1.0 - failure[i] * failure[other] * product);
            }
        }
        // The next tuple, as an odometer counts.
        let Some(place) = tuple.iter().position(|&j| j + 1 < clients) else { break };
        tuple[..place].fill(0);
        tuple[place] += 1;
    }
    Ok(selection.iter().zip(excess).map(|(selection, excess)| selection * (1.0 + excess)).collect())
}

/// One multiset that the draws may yield.
struct Multiset<'a> {
    probability: f64,
    /// The clients drawn, in order, repeated as often as drawn.
    clients: &'a [usize],
    /// The share of each entry of that list in the aggregate.
    shares: &'a [f64],
}

fn enumerate(
    selection: &[f64],
    failure: &[f64],
    selected: u64,
    mut visit: impl FnMut(Multiset<'_>),
) -> Result<(), Error> {
    check(selection, failure, selected)?;
    let terms = multisets(selection.len(), selected);
    if terms > MAX_TERMS {
        let legal = "small enough to enumerate (10^9 multisets)";
        return Err(Error::Parameter { name: "selected", legal, value: selected as f64 });
    }
    let selected = selected as usize;
    // 1 / (K C(K−1, k))
    let mut factors = vec![1.0 / selected as f64];
    for k in 1..selected {
        factors.push(factors[k - 1] * k as f64 / (selected - k) as f64);
    }
    let mut clients = vec![0; selected];
    let mut shares = vec![0.0; selected];
    let mut symmetric = vec![0.0; selected + 1];
    loop {
        let product: f64 = clients.iter().map(|&client| failure[client]).product();
        if product < 1.0 {
            // Elementary symmetric polynomials of the failures drawn …
            symmetric.fill(0.0);
            symmetric[0] = 1.0;
            for (drawn, &client) in clients.iter().enumerate() {
                for k in (1..=drawn + 1).rev() {
                    symmetric[k] += failure[client] * symmetric[k - 1];
                }
            }
            let mut probability = 1.0;
            let mut copies = 0.0;
            for place in 0..selected {
                let client = clients[place];
                let repeated = place > 0 && clients[place - 1] == client;
                copies = if repeated { copies + 1.0 } else { 1.0 };
                probability *= selection[client] * (place + 1) as f64 / copies;
                if repeated {
                    shares[place] = shares[place - 1];
                    continue;
                }
                // … and of those without one copy of this client, by division.
                let mut without = 0.0;
                let mut sum = 0.0;
                for (k, factor) in factors.iter().enumerate() {
                    without = symmetric[k] - failure[client] * without;
                    sum += factor * without;
                }
                shares[place] = (1.0 - failure[client]) / (1.0 - product) * sum;
            }
            visit(Multiset { probability, clients: &clients, shares: &shares });
        }
        // The next non-decreasing list.
        let Some(place) = clients.iter().rposition(|&client| client + 1 < selection.len()) else {
            return Ok(());
        };
        let next = clients[place] + 1;
        clients[place..].fill(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_table_of_ratios() {
        // C(N+K_apx−1, K_apx) / C(N+K−1, K) for N = 20, K = 10, in per cent, as printed.
        let printed = [(2, 0.0010), (4, 0.0442), (6, 0.8842), (8, 11.0837)];
        for (k_apx, percent) in printed {
            let ratio = 100.0 * multisets(20, k_apx) / multisets(20, 10);
            assert!((ratio - percent).abs() <= 0.00005, "{k_apx}: {ratio}");
        }
    }

    #[test]
    fn two_clients_two_draws_by_hand() {
        // Multisets {1,1}, {1,2}, {2,2} with ε = (0, ½), s = (½, ½): shares of client 1 are 1, ½·½ + ½·1 = ¾, 0.
        let appearance = appearance(&[0.5, 0.5], &[0.0, 0.5], 2).expect("valid");
        assert!((appearance[0] - (0.25 + 0.5 * 0.75)).abs() < 1e-15);
        assert!((appearance[1] - 0.375).abs() < 1e-15);
    }

    #[test]
    fn too_many_multisets_are_refused() {
        let selection = vec![0.01; 100];
        assert!(appearance(&selection, &vec![0.5; 100], 20).is_err());
        assert!(proposition_3(&selection, &vec![0.5; 100], 20).is_err());
        assert!(proposition_3(&selection, &vec![0.5; 100], 1).is_err());
    }
}
