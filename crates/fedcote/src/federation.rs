//! Who takes part: ids, label counts, failure probabilities, checked once and then trusted.

use std::borrow::Cow;
use std::collections::HashSet;

use fedcote_support::readable;

use crate::chunks;
use crate::error::{Error, check_length};
use crate::groups::Groups;

/// The largest label count, 2⁵³: up to here every whole number is exact.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// The smallest label count that is not zero.
const MIN_COUNT: f64 = 1e-9;

/// A description of a federation, not yet checked: for clients with names, or counts that are one array already.
/// [`Federation::new`] is shorter.
///
/// ```
/// use fedcote::FederationSpec;
///
/// let federation = FederationSpec {
///     ids: None,
///     classes: 2,
///     counts: vec![30.0, 10.0, 0.0, 60.0],
///     failure: vec![0.1, 0.5],
/// }
/// .check()?;
/// assert_eq!(federation.weights(), [0.4, 0.6]);
/// assert_eq!(federation.labels(0), [0.75, 0.25]);
/// assert_eq!(federation.global_labels(), [0.3, 0.7]);
/// # Ok::<(), fedcote::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FederationSpec {
    /// The clients' names, all different; `None` names them `1`, `2`, … .
    pub ids: Option<Vec<String>>,
    /// The number of label classes, `C`.
    pub classes: usize,
    /// Samples of each label on each client, `N × C` row after row: 0, or from 1e-9 to 2⁵³ each, at least one
    /// of a client's above 0.
    pub counts: Vec<f64>,
    /// Each client's probability that an upload fails, from 0 to 1.
    pub failure: Vec<f64>,
}

impl FederationSpec {
    /// Checks the description and derives weights and label shares from the counts.
    ///
    /// # Errors
    /// When there is no client or no label, lengths do not fit, ids are not all different, or a count or failure
    /// probability is out of its range.
    pub fn check(self) -> Result<Federation, Error> {
        let Self { ids, classes, mut counts, failure } = self;
        let clients = failure.len();
        if clients == 0 {
            return Err(Error::NoClients);
        }
        if classes == 0 {
            return Err(Error::NoClasses);
        }
        check_length("labels", clients.saturating_mul(classes), counts.len())?;
        if let Some(ids) = &ids {
            check_length("ids", clients, ids.len())?;
        }
        let ids = ids.map(Ids::pack).transpose()?;
        let name = |client: usize| match &ids {
            Some(ids) => ids.get(client).to_owned(),
            None => (client + 1).to_string(),
        };

        check_failure(&failure, &name)?;
        for (client, row) in counts.chunks_exact(classes).enumerate() {
            check_counts(row).map_err(|problem| Error::Client {
                client: name(client),
                field: "labels",
                problem,
            })?;
        }

        // From here on the counts become shares, in place.
        let mut weights: Vec<f64> =
            counts.chunks_exact(classes).map(|row| row.iter().sum()).collect();
        let samples = chunks::sum(clients, |range| weights[range].iter().sum());
        let mut global = vec![0.0; classes];
        for chunk in chunks::map(clients, |range| {
            let mut sum = vec![0.0; classes];
            for row in counts[range.start * classes..range.end * classes].chunks_exact(classes) {
                sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
            }
            sum
        }) {
            global.iter_mut().zip(chunk).for_each(|(sum, part)| *sum += part);
        }
        global.iter_mut().for_each(|sum| *sum /= samples);
        for (row, &total) in counts.chunks_exact_mut(classes).zip(&weights) {
            row.iter_mut().for_each(|count| *count /= total);
        }
        weights.iter_mut().for_each(|weight| *weight /= samples);
        let groups = None;
        Ok(Federation { ids, classes, labels: counts, weights, global, failure, samples, groups })
    }
}

/// A valid federation: arrays over clients, no allocation per client.
#[derive(Debug, Clone, PartialEq)]
pub struct Federation {
    ids: Option<Ids>,
    classes: usize,
    labels: Vec<f64>,
    weights: Vec<f64>,
    global: Vec<f64>,
    failure: Vec<f64>,
    samples: f64,
    groups: Option<Groups>,
}

// A federation has at least one client, so there is no `is_empty`.
#[allow(clippy::len_without_is_empty)]
impl Federation {
    /// The federation of clients with these label counts, one row per client, and these failure probabilities.
    ///
    /// ```
    /// use fedcote::Federation;
    ///
    /// let federation = Federation::new([[30.0, 10.0], [0.0, 60.0]], [0.1, 0.5])?;
    /// assert_eq!(federation.weights(), [0.4, 0.6]);
    /// # Ok::<(), fedcote::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FederationSpec::check`]; also when rows differ in length.
    pub fn new<Row: AsRef<[f64]>>(
        labels: impl IntoIterator<Item = Row>,
        failure: impl Into<Vec<f64>>,
    ) -> Result<Self, Error> {
        let (mut counts, mut classes, failure) = (Vec::new(), None, failure.into());
        let mut rows = 0;
        for row in labels {
            let row = row.as_ref();
            rows += 1;
            let expected = *classes.get_or_insert(row.len());
            if row.len() != expected {
                let found = row.len();
                return Err(Error::Client {
                    client: rows.to_string(),
                    field: "labels",
                    problem: format!("must be {expected} counts as for client 1, are {found}"),
                });
            }
            counts.extend_from_slice(row);
        }
        check_length("failure", rows, failure.len())?;
        FederationSpec { ids: None, classes: classes.unwrap_or(0), counts, failure }.check()
    }

    /// The number of clients, `N ≥ 1`.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// The number of label classes, `C ≥ 1`.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// A client's name.
    pub fn id(&self, client: usize) -> Cow<'_, str> {
        match &self.ids {
            Some(ids) => Cow::Borrowed(ids.get(client)),
            None => Cow::Owned((client + 1).to_string()),
        }
    }

    /// Each client's share of all samples, `p`.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The label shares of one client, `α_i`.
    pub fn labels(&self, client: usize) -> &[f64] {
        &self.labels[client * self.classes..][..self.classes]
    }

    /// The label shares of all clients, row after row.
    pub fn all_labels(&self) -> &[f64] {
        &self.labels
    }

    /// The label shares of all samples together, `α_g = Σ p_i α_i`.
    pub fn global_labels(&self) -> &[f64] {
        &self.global
    }

    /// Each client's probability that an upload fails, `ε`.
    pub fn failure(&self) -> &[f64] {
        &self.failure
    }

    /// The number of samples of all clients together.
    pub fn samples(&self) -> f64 {
        self.samples
    }

    /// Who fails together, if anybody does.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// The federation in which these clients fail together; [`failure`](Self::failure) stays what it is: the probability that
    /// an upload fails for whatever reason ([`Groups::overall`]).
    ///
    /// # Errors
    /// When the groups are of another number of clients.
    pub fn with_groups(mut self, groups: Groups) -> Result<Self, Error> {
        check_length("groups", self.len(), groups.clients())?;
        self.groups = Some(groups);
        Ok(self)
    }

    /// The federation in which everybody fails on its own, with the same probabilities.
    #[must_use]
    pub fn without_groups(mut self) -> Self {
        self.groups = None;
        self
    }

    /// Replaces the failure probabilities, as when a network changes from round to round.
    ///
    /// # Errors
    /// When there is not one for each client, or one is no probability.
    pub fn set_failure(&mut self, failure: Vec<f64>) -> Result<(), Error> {
        check_length("failure", self.len(), failure.len())?;
        check_failure(&failure, &|client| self.id(client).into_owned())?;
        self.failure = failure;
        Ok(())
    }
}

fn check_failure(failure: &[f64], name: &dyn Fn(usize) -> String) -> Result<(), Error> {
    match failure.iter().position(|value| !(0.0..=1.0).contains(value)) {
        None => Ok(()),
        Some(client) => Err(Error::Client {
            client: name(client),
            field: "failure",
            problem: format!("must be a probability from 0 to 1, is {}", readable(failure[client])),
        }),
    }
}

fn check_counts(row: &[f64]) -> Result<(), String> {
    check_range(row)?;
    if row.iter().all(|&count| count == 0.0) {
        return Err("are all 0: a client needs at least one sample".into());
    }
    Ok(())
}

/// Checks that every count is 0 or within the bounds.
pub(crate) fn check_range(row: &[f64]) -> Result<(), String> {
    for (label, &count) in row.iter().enumerate() {
        if !(count == 0.0 || (MIN_COUNT..=MAX_COUNT).contains(&count)) {
            let found = readable(count);
            return Err(format!("[{label}] must be 0 or from 1e-9 to 2^53, is {found}"));
        }
    }
    Ok(())
}

/// Names end to end in one string.
#[derive(Debug, Clone, PartialEq)]
struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    fn pack(ids: Vec<String>) -> Result<Self, Error> {
        let mut seen = HashSet::with_capacity(ids.len());
        for id in &ids {
            if !seen.insert(id.as_str()) {
                return Err(Error::Client {
                    client: id.clone(),
                    field: "id",
                    problem: "is used twice; every client needs its own".into(),
                });
            }
        }
        drop(seen);
        let mut packed = Self { text: String::new(), ends: Vec::with_capacity(ids.len()) };
        for id in ids {
            packed.text.push_str(&id);
            packed.ends.push(packed.text.len());
        }
        Ok(packed)
    }

    fn get(&self, client: usize) -> &str {
        let start = if client == 0 { 0 } else { self.ends[client - 1] };
        &self.text[start..self.ends[client]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> FederationSpec {
        FederationSpec {
            ids: Some(vec!["a".into(), "b".into()]),
            classes: 2,
            counts: vec![1.0, 2.0, 3.0, 4.0],
            failure: vec![0.0, 1.0],
        }
    }

    fn refusal(change: impl FnOnce(&mut FederationSpec)) -> String {
        let mut spec = spec();
        change(&mut spec);
        spec.check().expect_err("must be refused").to_string()
    }

    #[test]
    fn shares_by_hand() {
        let federation = spec().check().expect("valid");
        assert_eq!(federation.weights(), [0.3, 0.7]);
        assert_eq!(federation.labels(1), [3.0 / 7.0, 4.0 / 7.0]);
        assert_eq!(federation.global_labels(), [0.4, 0.6]);
        assert_eq!(federation.samples(), 10.0);
        assert_eq!(federation.id(1), "b");
    }

    #[test]
    fn wrong_descriptions_are_refused_by_name() {
        assert_eq!(
            refusal(|spec| spec.failure[1] = 1.5),
            "client \"b\": failure must be a probability from 0 to 1, is 1.5"
        );
        assert_eq!(
            refusal(|spec| spec.failure[0] = f64::NAN),
            "client \"a\": failure must be a probability from 0 to 1, is NaN"
        );
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e308, 1e-300] {
            assert!(
                refusal(|spec| spec.counts[3] = bad).starts_with("client \"b\": labels [1] must")
            );
        }
        assert_eq!(
            refusal(|spec| spec.counts[..2].fill(0.0)),
            "client \"a\": labels are all 0: a client needs at least one sample"
        );
        assert_eq!(
            refusal(|spec| spec.ids = Some(vec!["a".into(), "a".into()])),
            "client \"a\": id is used twice; every client needs its own"
        );
        assert_eq!(refusal(|spec| spec.counts.truncate(3)), "labels: expected 4 values, found 3");
        assert_eq!(refusal(|spec| spec.ids = Some(vec![])), "ids: expected 2 values, found 0");
        assert_eq!(
            refusal(|spec| spec.classes = 0),
            "labels: there must be at least one label class"
        );
        assert_eq!(
            refusal(|spec| spec.failure.clear()),
            "clients: there must be at least one client"
        );
    }

    #[test]
    fn rows_of_different_lengths_are_refused() {
        let uneven = Federation::new([vec![1.0, 2.0], vec![3.0]], [0.0, 0.0]).unwrap_err();
        assert_eq!(
            uneven.to_string(),
            "client \"2\": labels must be 2 counts as for client 1, are 1"
        );
        let short = Federation::new([[1.0], [3.0]], [0.0]).unwrap_err();
        assert_eq!(short.to_string(), "failure: expected 2 values, found 1");
        let nobody = Federation::new(Vec::<Vec<f64>>::new(), []).unwrap_err();
        assert_eq!(nobody, Error::NoClients);
    }

    #[test]
    fn new_failure_probabilities_are_checked_too() {
        let mut federation = spec().check().expect("valid");
        federation.set_failure(vec![0.5, 0.25]).expect("valid");
        assert_eq!(federation.failure(), [0.5, 0.25]);
        assert!(federation.set_failure(vec![0.5]).is_err());
        assert!(federation.set_failure(vec![0.5, -0.1]).is_err());
        assert_eq!(federation.failure(), [0.5, 0.25]);
    }
}
