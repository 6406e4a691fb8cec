//! GS, group selection: clients are put into groups of at most K whose pooled labels match the global mix
//! best, and one group is asked each round, in turn.
//!
//! Groups are built greedily (each client, largest first, joins the group it suits best), then improved by
//! swapping pairs while that lowers Σ_g χ²(labels of g ‖ α_g). Beyond a few hundred clients they are dealt out
//! in order of their labels, which comes close at no cost.

use fedcote::Federation;
use fedcote::draw::label_order;

use crate::Error;
use crate::part::{Count, RoundContext, Selection, State};

/// Above this many clients groups are dealt out instead of searched for.
const SEARCHED: usize = 500;

/// Groups with the global label mix, in turn.
#[derive(Default)]
pub struct Gs {
    groups: Vec<Vec<u32>>,
}

impl Selection for Gs {
    fn needs_labels(&self) -> bool {
        true
    }

    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        if self.groups.is_empty() {
            self.groups = groups(context.federation, context.world.draws())?;
        }
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let turn = (context.round - 1).wrapping_add(redraw) as usize % self.groups.len();
        Ok(self.groups[turn].iter().map(|&client| (client, 1)).collect())
    }
}

impl State for Gs {}

/// Groups of at most `size` clients, each sorted.
fn groups(federation: &Federation, size: u64) -> Result<Vec<Vec<u32>>, Error> {
    let clients = federation.len();
    let size = size.min(clients as u64) as usize;
    let count = clients.div_ceil(size);
    let mut groups = vec![Vec::new(); count];
    if clients > SEARCHED {
        let order = label_order(federation.all_labels(), clients, federation.classes())?;
        for (at, client) in order.into_iter().enumerate() {
            groups[at % count].push(client);
        }
    } else {
        greedy(federation, size, &mut groups);
        while swapped(federation, &mut groups) {}
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    Ok(groups)
}

/// χ² of a group's pooled labels against the global mix.
fn mismatch(federation: &Federation, group: impl Iterator<Item = u32>) -> f64 {
    let mut pooled = vec![0.0; federation.classes()];
    let mut total = 0.0;
    for client in group {
        let weight = federation.weights()[client as usize];
        total += weight;
        for (pooled, share) in pooled.iter_mut().zip(federation.labels(client as usize)) {
            *pooled += weight * share;
        }
    }
    let global = federation.global_labels();
    let terms = pooled.iter().zip(global).filter(|(_, global)| **global > 0.0);
    terms.map(|(pooled, global)| (pooled / total - global).powi(2) / global).sum()
}

fn greedy(federation: &Federation, size: usize, groups: &mut [Vec<u32>]) {
    let weights = federation.weights();
    let mut order: Vec<u32> = (0..federation.len() as u32).collect();
    order.sort_by(|&a, &b| weights[b as usize].total_cmp(&weights[a as usize]).then(a.cmp(&b)));
    for client in order {
        let gain = |group: &Vec<u32>| {
            let before =
                if group.is_empty() { 0.0 } else { mismatch(federation, group.iter().copied()) };
            mismatch(federation, group.iter().copied().chain([client])) - before
        };
        let best = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.len() < size)
            .map(|(at, group)| (gain(group), at))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (_, at) = best.expect("the groups hold everyone");
        groups[at].push(client);
    }
}

/// Makes the first swap of two clients that lowers the mismatch; says whether there was one.
fn swapped(federation: &Federation, groups: &mut [Vec<u32>]) -> bool {
    for one in 0..groups.len() {
        for two in one + 1..groups.len() {
            for a in 0..groups[one].len() {
                for b in 0..groups[two].len() {
                    let score = |groups: &[Vec<u32>]| {
                        mismatch(federation, groups[one].iter().copied())
                            + mismatch(federation, groups[two].iter().copied())
                    };
                    let before = score(groups);
                    let (left, right) = groups.split_at_mut(two);
                    std::mem::swap(&mut left[one][a], &mut right[0][b]);
                    if score(groups) < before - 1e-12 {
                        return true;
                    }
                    let (left, right) = groups.split_at_mut(two);
                    std::mem::swap(&mut left[one][a], &mut right[0][b]);
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedcote::FederationSpec;

    fn federation(labels: &[[f64; 2]]) -> Federation {
        FederationSpec {
            ids: None,
            classes: 2,
            counts: labels.concat(),
            failure: vec![0.0; labels.len()],
        }
        .check()
        .unwrap()
    }

    #[test]
    fn each_group_has_both_labels() {
        let federation = federation(&[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]);
        let groups = groups(&federation, 2).unwrap();
        assert_eq!(groups.len(), 2);
        for group in &groups {
            assert_eq!(group.len(), 2);
            assert!(mismatch(&federation, group.iter().copied()) < 1e-12, "{groups:?}");
        }
    }

    /// The paper's twenty clients of two labels each, balanced and not, in two groups of ten: of all 92,378 ways to divide them none
    /// has a lower mismatch, which is worked out here from sets of bits.
    #[test]
    fn groups_of_the_papers_federation_are_the_best_there_are() {
        for shares in [[0.25, 0.25, 0.25, 0.25], [0.45, 0.05, 0.45, 0.05]] {
            let mut counts = vec![0.0; 200];
            for client in 0..20 {
                for label in [client / 4 * 2, client / 4 * 2 + 1] {
                    counts[client * 10 + label] =
                        shares[client % 4] * (5400.0 + 100.0 * label as f64);
                }
            }
            let total: f64 = counts.iter().sum();
            let global: Vec<f64> =
                (0..10).map(|c| (0..20).map(|i| counts[i * 10 + c]).sum::<f64>() / total).collect();
            let score = |members: u32| -> f64 {
                let of = |inside: bool| {
                    let mut pooled = [0.0; 10];
                    for client in (0..20).filter(|client| (members >> client & 1 == 1) == inside) {
                        (0..10).for_each(|label| pooled[label] += counts[client * 10 + label]);
                    }
                    let sum: f64 = pooled.iter().sum();
                    let terms = pooled.iter().zip(&global);
                    terms.map(|(found, goal)| (found / sum - goal).powi(2) / goal).sum::<f64>()
                };
                of(true) + of(false)
            };
            let halves = (0..1u32 << 20).filter(|set| set & 1 == 1 && set.count_ones() == 10);
            let best = halves.map(score).fold(f64::INFINITY, f64::min);
            let spec = FederationSpec {
                ids: None,
                classes: 10,
                counts: counts.clone(),
                failure: vec![0.0; 20],
            };
            let found = groups(&spec.check().unwrap(), 10).unwrap();
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10]);
            let ours = score(found[0].iter().fold(0, |set, client| set | 1 << client));
            assert!(ours <= best + 1e-9, "{shares:?}: {ours} and {best}, {found:?}");
        }
    }

    #[test]
    fn large_federations_are_dealt_out_without_losing_anyone() {
        let labels: Vec<[f64; 2]> =
            (0..1001).map(|at| if at % 3 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        let groups = groups(&federation(&labels), 100).unwrap();
        assert_eq!(groups.len(), 11);
        assert!(groups.iter().all(|group| group.len() <= 100));
        let mut everyone: Vec<u32> = groups.concat();
        everyone.sort_unstable();
        assert_eq!(everyone, (0..1001).collect::<Vec<_>>());
    }

    #[test]
    fn one_group_when_everyone_is_asked() {
        let federation = federation(&[[1.0, 0.0], [0.0, 1.0]]);
        assert_eq!(groups(&federation, 10).unwrap(), [vec![0, 1]]);
    }
}
