//! Who may be selected: a threshold on the failure probability that must not lose a label.
//!
//! Excluding clients above a threshold can exclude every holder of a label, and the model never sees that
//! label again. Such a label gets back its most reliable holders.
//!
//! A holder has at least [`SUBSTANTIAL`] of the label's share in all data. A few samples do not make one: were they all that
//! is left of a label, no selection could give it its share, and noise on reported counts gives everyone a few.

use super::Warning;
use crate::chunks;
use crate::error::Error;
use crate::federation::Federation;

/// A client holds a label if this much of the label's share in all data is its share at the client. Somebody always has the
/// whole of it.
const SUBSTANTIAL: f64 = 0.5;

/// Who may be selected, and what happened to labels.
#[derive(Debug)]
pub struct Eligibility {
    pub eligible: Vec<bool>,
    /// Labels with the clients taken back for them.
    pub restored: Vec<(usize, Vec<usize>)>,
    pub warnings: Vec<Warning>,
}

/// For each label, the least failure probability of the clients with at least this share of it.
fn least_failure(federation: &Federation, shares: &[f64]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; shares.len()];
    for part in chunks::map(federation.len(), |range| {
        let mut least = vec![f64::INFINITY; shares.len()];
        for client in range {
            let failure = federation.failure()[client];
            let labels = federation.labels(client).iter().zip(shares);
            for (least, (label, share)) in least.iter_mut().zip(labels) {
                if label >= share && failure < *least {
                    *least = failure;
                }
            }
        }
        least
    }) {
        least.iter_mut().zip(part).for_each(|(least, part)| *least = least.min(part));
    }
    least
}

impl Eligibility {
    pub fn new(federation: &Federation, threshold: f64, coverage: bool) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&threshold) {
            let legal = "from 0 to 1";
            return Err(Error::Parameter { name: "threshold", legal, value: threshold });
        }
        let failure = federation.failure();
        if failure.iter().all(|&failure| failure >= 1.0) {
            return Err(Error::NobodyArrives);
        }
        let mut eligible: Vec<bool> =
            failure.iter().map(|&failure| failure <= threshold && failure < 1.0).collect();
        let mut restored = Vec::new();
        let mut warnings = Vec::new();

        let global = federation.global_labels();
        let holding: Vec<f64> = global.iter().map(|share| SUBSTANTIAL * share).collect();
        // Where no holder ever arrives, whoever has a few samples must do.
        let best = least_failure(federation, &holding);
        let any = if best.iter().all(|&best| best < 1.0) {
            best.clone()
        } else {
            least_failure(federation, &vec![f64::MIN_POSITIVE; global.len()])
        };
        for (label, (best, any)) in best.into_iter().zip(any).enumerate() {
            let (best, enough) =
                if best < 1.0 { (best, holding[label]) } else { (any, f64::MIN_POSITIVE) };
            if global[label] == 0.0 || (best <= threshold && best < 1.0) {
                continue;
            }
            if best >= 1.0 {
                warnings.push(Warning::LabelUnreachable { label });
            } else if coverage {
                let holds = |&client: &usize| {
                    failure[client] == best && federation.labels(client)[label] >= enough
                };
                restored.push((label, (0..federation.len()).filter(holds).collect::<Vec<_>>()));
            } else {
                warnings.push(Warning::LabelLost { label });
            }
        }
        for &client in restored.iter().flat_map(|(_, clients)| clients) {
            eligible[client] = true;
        }
        if !eligible.contains(&true) {
            return Err(Error::NobodyEligible(threshold));
        }
        Ok(Self { eligible, restored, warnings })
    }

    /// All warnings, the restored labels' with what they cost under this selection.
    pub fn warnings(
        self,
        federation: &Federation,
        selected: u64,
        selection: &[f64],
    ) -> Vec<Warning> {
        let failure = federation.failure();
        let mut taken_back = vec![false; if self.restored.is_empty() { 0 } else { failure.len() }];
        for &client in self.restored.iter().flat_map(|(_, clients)| clients) {
            taken_back[client] = true;
        }
        let (mut others, mut arriving) = (0.0, 0.0);
        for (client, _) in taken_back.iter().enumerate().filter(|(_, taken_back)| !**taken_back) {
            others += selection[client];
            arriving += selection[client] * (1.0 - failure[client]);
        }
        let mut warnings = self.warnings;
        for (label, clients) in self.restored {
            let lost =
                |&client: &usize| selection[client] * (arriving / others - (1.0 - failure[client]));
            let arrivals_lost = if others > 0.0 {
                selected as f64 * clients.iter().map(lost).sum::<f64>()
            } else {
                0.0
            };
            let clients = clients.iter().map(|&client| federation.id(client).into()).collect();
            warnings.push(Warning::LabelRestored { label, clients, arrivals_lost });
        }
        warnings
    }
}
