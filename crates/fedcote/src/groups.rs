//! Clients that fail together, because the access point, relay or cell that they share is down.

use crate::error::{Error, check_probabilities};

/// Who shares what may be down, and how often it is, afresh in every attempt at uploads.
///
/// ```
/// use fedcote::{Federation, Groups, Options, select};
///
/// // Clients 1 and 2 are behind an access point that is down every fifth time; each fails on its own as well.
/// let groups = Groups::new([0.2], [Some(0), Some(0), None])?;
/// let failure = groups.overall(&[0.1, 0.2, 0.3])?;
/// assert!((failure[0] - (1.0 - 0.8 * 0.9)).abs() < 1e-15 && failure[2] == 0.3);
///
/// let labels = [[100.0, 0.0], [0.0, 100.0], [100.0, 0.0]];
/// let federation = Federation::new(labels, failure)?.with_groups(groups)?;
/// let solution = select(&federation, 10, &Options::new())?;
/// assert!(solution.label_divergence < 1e-9);
/// # Ok::<(), fedcote::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    failure: Vec<f64>,
    /// The group of each client; as many as there are groups for none.
    of: Vec<u32>,
}

// What is counted are groups, of which there may be none; `clients` is the other length.
#[allow(clippy::len_without_is_empty)]
impl Groups {
    /// Groups that are down with these probabilities, and the group of each client, if it is in one.
    ///
    /// # Errors
    /// When a probability is none, or a client is in a group that is not there.
    pub fn new(
        failure: impl Into<Vec<f64>>,
        of: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<Self, Error> {
        let failure = failure.into();
        check_probabilities("groups", &failure)?;
        let groups = failure.len();
        let index = |(client, group): (usize, Option<usize>)| match group {
            None => Ok(groups as u32),
            Some(group) if group < groups => Ok(group as u32),
            Some(group) => Err(Error::Client {
                client: (client + 1).to_string(),
                field: "group",
                problem: format!("{group} is not there: groups count from 0 to below {groups}"),
            }),
        };
        let of = of.into_iter().enumerate().map(index).collect::<Result<_, Error>>()?;
        Ok(Self { failure, of })
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.failure.len()
    }

    /// The number of clients, in a group or not.
    pub fn clients(&self) -> usize {
        self.of.len()
    }

    /// How often each group is down.
    pub fn failure(&self) -> &[f64] {
        &self.failure
    }

    /// The group of a client, if it is in one.
    pub fn of(&self, client: usize) -> Option<usize> {
        let group = self.of[client] as usize;
        (group < self.len()).then_some(group)
    }

    /// The groups among these clients, in this order.
    pub(crate) fn of_clients(&self, clients: &[u32]) -> Self {
        let of = clients.iter().map(|&client| self.of[client as usize]).collect();
        Self { failure: self.failure.clone(), of }
    }

    /// The probability that a client's group is down; 0 without a group.
    pub fn down(&self, client: usize) -> f64 {
        self.of(client).map_or(0.0, |group| self.failure[group])
    }

    /// The probability that an upload fails for whatever reason, from that with which each client fails on its own:
    /// `1 − (1 − φ)(1 − ε)`.
    ///
    /// # Errors
    /// When there are not as many as clients, or one is no probability.
    pub fn overall(&self, own: &[f64]) -> Result<Vec<f64>, Error> {
        crate::error::check_length("failure", self.clients(), own.len())?;
        check_probabilities("failure", own)?;
        let either = |(client, own): (usize, &f64)| {
            let down = self.down(client);
            if down == 0.0 { *own } else { down + (1.0 - down) * own }
        };
        Ok(own.iter().enumerate().map(either).collect())
    }

    /// The way back from [`overall`](Self::overall) for one client: 0 where the group alone explains all.
    pub(crate) fn own(&self, client: usize, overall: f64) -> f64 {
        let down = self.down(client);
        if down == 0.0 {
            overall
        } else if down >= 1.0 {
            1.0
        } else {
            ((overall - down) / (1.0 - down)).max(0.0)
        }
    }
}
