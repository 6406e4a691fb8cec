//! Drawing K clients from selection probabilities.
//!
//! Two ways, which both draw client i an expected K·s_i times:
//!
//! - [`Alias`]: K independent draws with replacement, as in the paper. The table takes O(N) to build and
//!   O(1) per draw (A. J. Walker, ACM TOMS 3, 1977; built as in M. D. Vose, IEEE TSE 17, 1991).
//! - [`systematic`]: one offset u, uniform in [0, 1/K), and the K points u + k/K on the cumulative
//!   selection (W. G. Madow, Ann. Math. Stat. 20, 1949). A client is drawn ⌊K·s_i⌋ or ⌈K·s_i⌉ times. When
//!   clients stand in the order of their labels ([`label_order`]), every stretch of the order, hence every
//!   label, gets its share of the draws to within one: most of the noise of a round's label mix is gone.
//!
//! Draws are pairs `(client, count)` in ascending order of clients, at most min(N, K) of them.
//!
//! ```
//! use fedcote::draw::{Alias, systematic};
//! use fedcote::random::{Key, Purpose};
//!
//! let selection = [0.5, 0.25, 0.25];
//! let mut stream = Key::new(1, Purpose::Selection).round(7).stream();
//! let drawn = Alias::new(&selection)?.draws(8, &mut stream)?;
//! assert_eq!(drawn.iter().map(|&(_, count)| count).sum::<u32>(), 8);
//!
//! // All K·s are whole numbers here, so systematic draws leave nothing to chance.
//! assert_eq!(systematic(&selection, &[0, 1, 2], 8, &mut stream)?, [(0, 4), (1, 2), (2, 2)]);
//! # Ok::<(), fedcote::Error>(())
//! ```

use rand::{Rng, RngExt};

use crate::error::{Error, check_length, check_probabilities, check_selected};

/// The sum of selection probabilities, once they are known to be some: each in [0, 1], together 1 within 1e-6.
fn total(selection: &[f64]) -> Result<f64, Error> {
    check_probabilities("selection", selection)?;
    let total: f64 = selection.iter().sum();
    if (total - 1.0).abs() <= 1e-6 { Ok(total) } else { Err(Error::SelectionSum(total)) }
}

/// Independent draws with replacement by the alias method.
#[derive(Debug, Clone)]
pub struct Alias {
    /// Column i keeps its own client with this probability and gives its alias otherwise.
    keep: Vec<f64>,
    alias: Vec<u32>,
}

impl Alias {
    /// The table for the given probabilities.
    ///
    /// # Errors
    /// When they are not probabilities that sum to 1 within 1e-6.
    pub fn new(selection: &[f64]) -> Result<Self, Error> {
        let scale = selection.len() as f64 / total(selection)?;
        let mut keep: Vec<f64> = selection.iter().map(|s| s * scale).collect();
        let mut alias: Vec<u32> = (0..selection.len() as u32).collect();
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            alias.iter().partition(|&&client| keep[client as usize] < 1.0);
        while let (Some(&giver), Some(taker)) = (rich.last(), poor.pop()) {
            alias[taker as usize] = giver;
            let left = keep[giver as usize] - (1.0 - keep[taker as usize]);
            keep[giver as usize] = left;
            if left < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        // What is left over is 1 up to rounding.
        for client in rich.into_iter().chain(poor) {
            keep[client as usize] = 1.0;
        }
        Ok(Self { keep, alias })
    }

    /// One client.
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        // One word serves twice: the high half of word·N is the column, the low half the fraction in it.
        let product = u128::from(rng.next_u64()) * self.keep.len() as u128;
        let column = (product >> 64) as usize;
        let fraction = (product as u64 >> 11) as f64 * (0.5f64).powi(53);
        if fraction < self.keep[column] { column as u32 } else { self.alias[column] }
    }

    /// K clients, as sorted pairs `(client, count)`, in O(N + K) or O(K log K) time, whichever is less.
    ///
    /// # Errors
    /// When `draws` is not from 1 to 10⁹.
    pub fn draws(&self, selected: u64, rng: &mut impl Rng) -> Result<Vec<(u32, u32)>, Error> {
        check_selected(selected)?;
        if selected as usize >= self.keep.len() / 16 {
            let mut counts = vec![0u32; self.keep.len()];
            for _ in 0..selected {
                counts[self.draw(rng) as usize] += 1;
            }
            return Ok((0..).zip(counts).filter(|&(_, count)| count > 0).collect());
        }
        let mut drawn: Vec<u32> = (0..selected).map(|_| self.draw(rng)).collect();
        drawn.sort_unstable();
        Ok(drawn.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect())
    }
}

/// K systematic draws: the points u + k/K on the cumulative selection, clients taken in the given order.
///
/// # Errors
/// When `selection` does not hold probabilities that sum to 1 within 1e-6, `order` does not name every client
/// once, or `draws` is not from 1 to 10⁹.
pub fn systematic(
    selection: &[f64],
    order: &[u32],
    selected: u64,
    rng: &mut impl Rng,
) -> Result<Vec<(u32, u32)>, Error> {
    systematic_at(selection, order, selected, rng.random())
}

/// The [`systematic`] draws for a given position K·u in [0, 1) of the first point.
///
/// # Errors
/// As [`systematic`]; also when the position lies outside [0, 1).
pub fn systematic_at(
    selection: &[f64],
    order: &[u32],
    selected: u64,
    position: f64,
) -> Result<Vec<(u32, u32)>, Error> {
    total(selection)?;
    check_selected(selected)?;
    check_order(order, selection.len())?;
    if !(0.0..1.0).contains(&position) {
        return Err(Error::Parameter { name: "position", legal: "in [0, 1)", value: position });
    }
    // Summed in the order of the walk, so that the walk ends on it exactly.
    let total: f64 = order.iter().map(|&client| selection[client as usize]).sum();
    let mut drawn = Vec::with_capacity(selection.len().min(selected as usize));
    let (mut before, mut cumulated) = (0u32, 0.0);
    for &client in order {
        cumulated += selection[client as usize];
        // The number of points below the cumulative selection; all of them at its end, whatever the rounding.
        let below = if cumulated < total {
            let points = selected as f64 * (cumulated / total) - position;
            points.ceil().clamp(0.0, selected as f64) as u32
        } else {
            selected as u32
        };
        if below > before {
            drawn.push((client, below - before));
            before = below;
        }
    }
    drawn.sort_unstable();
    Ok(drawn)
}

/// Checks that an order names each of N clients exactly once.
pub(crate) fn check_order(order: &[u32], clients: usize) -> Result<(), Error> {
    let mut seen = vec![false; clients];
    let fresh = |&client: &u32| match seen.get_mut(client as usize) {
        Some(seen) => !std::mem::replace(seen, true),
        None => false,
    };
    if order.len() == clients && order.iter().all(fresh) {
        Ok(())
    } else {
        Err(Error::Order(clients))
    }
}

/// The order in which systematic draws keep a round's label mix steady: by dominant label, then by its share
/// (largest first), then by index.
///
/// `shares` holds one row of `classes` label shares, or counts of clients of equal size, per client. Of equally
/// frequent labels the first is the dominant one.
///
/// ```
/// // Clients 0 and 2 hold mostly label 1; client 2 more purely so.
/// let shares = [0.4, 0.6, 0.9, 0.1, 0.0, 1.0];
/// assert_eq!(fedcote::draw::label_order(&shares, 3, 2)?, [1, 2, 0]);
/// # Ok::<(), fedcote::Error>(())
/// ```
///
/// # Errors
/// When `shares` has not `clients` × `classes` entries.
pub fn label_order(shares: &[f64], clients: usize, classes: usize) -> Result<Vec<u32>, Error> {
    check_length("label shares", clients.saturating_mul(classes), shares.len())?;
    if classes == 0 {
        return Ok((0..clients as u32).collect());
    }
    let dominant: Vec<(usize, f64)> = shares
        .chunks_exact(classes)
        .map(|row| {
            let first = (0, row[0]);
            (1..).zip(&row[1..]).fold(first, |best, (c, &x)| if x > best.1 { (c, x) } else { best })
        })
        .collect();
    let mut order: Vec<u32> = (0..clients as u32).collect();
    order.sort_by(|&a, &b| {
        let ((label_a, share_a), (label_b, share_b)) = (dominant[a as usize], dominant[b as usize]);
        label_a.cmp(&label_b).then(share_b.total_cmp(&share_a))
    });
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};
    use proptest::prelude::*;

    fn stream(round: u32) -> crate::random::Stream {
        Key::new(5, Purpose::Test).round(round).stream()
    }

    /// Pearson's statistic for observed counts against expected ones, over its degrees of freedom's
    /// normal approximation: a standard normal number when the expectation is right.
    fn chi_square_score(counts: &[f64], expected: &[f64]) -> f64 {
        let statistic: f64 = counts.iter().zip(expected).map(|(c, e)| (c - e) * (c - e) / e).sum();
        let freedom = counts.len() as f64 - 1.0;
        (statistic - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn alias_draws_follow_the_selection() {
        let weights: Vec<f64> = (0..50).map(|i| ((i * 7) % 13) as f64 + 0.01).collect();
        let total: f64 = weights.iter().sum();
        let selected = 200_000;
        let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let mut counts = vec![0.0; weights.len()];
        for (client, count) in
            Alias::new(&selection).unwrap().draws(selected, &mut stream(0)).unwrap()
        {
            counts[client as usize] = f64::from(count);
        }
        let expected: Vec<f64> = selection.iter().map(|s| s * selected as f64).collect();
        let score = chi_square_score(&counts, &expected);
        assert!(score.abs() < 4.0, "score {score}");
    }

    #[test]
    fn the_alias_table_holds_exactly_the_selection() {
        // Independent of any draw: sum, over the columns, of what each gives to each client.
        let selection = [0.0, 0.3, 1e-12, 0.2, 0.0, 0.5 - 1e-12];
        let table = Alias::new(&selection).unwrap();
        let mut mass = [0.0; 6];
        for column in 0..6 {
            mass[column] += table.keep[column] / 6.0;
            mass[table.alias[column] as usize] += (1.0 - table.keep[column]) / 6.0;
        }
        for (mass, wanted) in mass.iter().zip(selection) {
            assert!((mass - wanted).abs() < 1e-15, "{mass} {wanted}");
        }
    }

    #[test]
    fn few_draws_among_many_clients_take_the_sorted_path() {
        let table = Alias::new(&vec![1e-4; 10_000]).unwrap();
        let few = table.draws(100, &mut stream(1)).unwrap();
        let mut rng = stream(1);
        let mut singles: Vec<u32> = (0..100).map(|_| table.draw(&mut rng)).collect();
        singles.sort_unstable();
        let unrolled: Vec<u32> =
            few.iter().flat_map(|&(client, count)| vec![client; count as usize]).collect();
        assert_eq!(unrolled, singles);
    }

    #[test]
    fn systematic_draws_by_hand() {
        // Cumulative selection 0.3, 0.8, 1 in the order 2, 0, 1; three points at (v + k)/3.
        let selection = [0.5, 0.2, 0.3];
        let order = [2, 0, 1];
        let at = |v| systematic_at(&selection, &order, 3, v).unwrap();
        assert_eq!(at(0.0), [(0, 2), (2, 1)]); // 0, 1/3, 2/3
        assert_eq!(at(0.45), [(0, 1), (1, 1), (2, 1)]); // 0.15, 0.483, 0.817
        assert_eq!(at(0.95), [(0, 2), (1, 1)]); // 0.317, 0.65, 0.983
    }

    #[test]
    fn positions_next_to_one_lose_no_draw() {
        let position = 1.0 - f64::EPSILON / 2.0;
        let drawn = systematic_at(&[0.5, 0.5], &[0, 1], 1_000_000_000, position).unwrap();
        assert_eq!(drawn.iter().map(|d| d.1).sum::<u32>(), 1_000_000_000);
    }

    #[test]
    fn unusable_requests_are_refused() {
        for bad in [vec![], vec![0.0, 0.0], vec![1.1, -0.1], vec![1.0, f64::NAN], vec![0.5, 0.4]] {
            let order: Vec<u32> = (0..bad.len() as u32).collect();
            assert!(Alias::new(&bad).is_err(), "{bad:?}");
            assert!(systematic_at(&bad, &order, 3, 0.5).is_err(), "{bad:?}");
        }
        for order in [vec![0], vec![0, 0], vec![0, 2], vec![0, 1, 1]] {
            assert!(systematic_at(&[0.5, 0.5], &order, 3, 0.5).is_err(), "{order:?}");
        }
        assert!(systematic_at(&[0.5, 0.5], &[0, 1], 3, 1.0).is_err());
        assert!(systematic_at(&[0.5, 0.5], &[0, 1], 0, 0.5).is_err());
        assert!(label_order(&[0.5; 5], 2, 2).is_err());
    }

    #[test]
    fn order_by_dominant_label_then_share_then_index() {
        #[rustfmt::skip]
        let shares = [
            0.1, 0.2, 0.7,
            0.5, 0.5, 0.0, // a tie goes to the first label
            0.0, 0.1, 0.9,
            0.5, 0.4, 0.1,
            1.0, 0.0, 0.0,
        ];
        assert_eq!(label_order(&shares, 5, 3).unwrap(), [4, 1, 3, 2, 0]);
    }

    proptest! {
        #[test]
        fn systematic_counts_are_the_neighbours_of_their_expectation(
            weights in prop::collection::vec(0.0..1.0f64, 1..40),
            selected in 1u64..200,
            round in 0u32..1000,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let weights: Vec<f64> = weights.iter().map(|w| w / total).collect();
            let order: Vec<u32> = (0..weights.len() as u32).rev().collect();
            let drawn = systematic(&weights, &order, selected, &mut stream(round)).unwrap();
            prop_assert_eq!(drawn.iter().map(|d| u64::from(d.1)).sum::<u64>(), selected);
            prop_assert!(drawn.is_sorted_by(|a, b| a.0 < b.0));
            for (client, weight) in weights.iter().enumerate() {
                let count = drawn.iter().find(|d| d.0 as usize == client).map_or(0, |d| d.1);
                let expected = selected as f64 * weight;
                prop_assert!((f64::from(count) - expected).abs() < 1.0 + 1e-9);
            }
        }

        #[test]
        fn systematic_draws_have_the_right_expectation(
            weights in prop::collection::vec(0.01..1.0f64, 1..8), selected in 1u64..12,
        ) {
            // The mean over a fine grid of positions is the integral up to a grid cell per break.
            let order: Vec<u32> = (0..weights.len() as u32).collect();
            let total: f64 = weights.iter().sum();
            let weights: Vec<f64> = weights.iter().map(|w| w / total).collect();
            let cells = 2000;
            let mut mean = vec![0.0; weights.len()];
            for cell in 0..cells {
                let position = (f64::from(cell) + 0.5) / f64::from(cells);
                for (client, count) in systematic_at(&weights, &order, selected, position).unwrap() {
                    mean[client as usize] += f64::from(count) / f64::from(cells);
                }
            }
            for (mean, weight) in mean.iter().zip(&weights) {
                prop_assert!((mean - selected as f64 * weight).abs() < 2.1 / f64::from(cells));
            }
        }
    }
}
