//! Selection for a running federation.

mod state;

use crate::divergence::label_divergence;
use crate::draw::{Alias, label_order, systematic};
use crate::error::{Error, check_length, check_probabilities};
use crate::estimate::EstimatorKind;
use crate::federation::{Federation, FederationSpec, check_range};
use crate::groups::Groups;
use crate::random::{Key, Purpose};
use crate::{Draws, Options, Solution, Warning, select_or_all};
use fedcote_support::readable;
use state::State;

/// Chooses clients round after round, and learns who fails.
///
/// Tell it what you know about clients, ask it whom to ask, tell it who answered. Clients are numbers from 0 in the order in which
/// they [`join`](Self::join); they come and go by being listed as available or not, and stay known until they are [forgotten](Self::forget).
///
/// - A client that has not told its label counts is taken to have the mean of the others'.
/// - Failure probabilities are estimated from what [`observe`](Self::observe) is told, unless
///   [`set_failure`](Self::set_failure) gives them.
/// - Clients that fail together are in a group ([`set_groups`](Self::set_groups), [`set_group`](Self::set_group)). Their failure
///   probabilities, given or estimated, are those for whatever reason, as they are observed: those of [`Groups::overall`].
/// - When every available client is above the threshold, nobody is excluded ([`select_or_all`]).
/// - Probabilities are worked out again when clients, labels, failure probabilities or the number of draws changed, never from an
///   earlier solution: a restored selector finds the same bits.
///
/// With the feature `serde` the whole state can be saved and restored.
///
/// ```
/// use fedcote::{Options, Selector};
///
/// let mut selector = Selector::new(1, Default::default(), Options::new())?;
/// let (phone, tablet) = (selector.join(), selector.join());
/// selector.set_labels(phone, &[100.0, 0.0])?;
/// let drawn = selector.select(&[phone, tablet], 4)?;
/// assert_eq!(drawn.iter().map(|&(_, count)| count).sum::<u32>(), 4);
/// for (client, _count) in drawn {
///     selector.observe(client, client == tablet)?;
/// }
/// # Ok::<(), fedcote::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Selector {
    state: State,
    latest: Option<Latest>,
}

/// The clients of the latest selection, and what was found for them. All arrays are in the order of `clients`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Latest {
    /// Their numbers.
    pub clients: Vec<u32>,
    /// Which of them could be drawn.
    pub present: Vec<bool>,
    /// Their weights, labels and failure probabilities.
    pub federation: Federation,
    /// The probabilities that were drawn from. Warnings name clients by number.
    pub solution: Solution,
}

impl Selector {
    /// A selector without clients. Same seed, same calls: same draws.
    ///
    /// # Errors
    /// When a parameter of the estimator is out of its range; options are checked by the first selection.
    pub fn new(seed: u64, estimator: EstimatorKind, options: Options) -> Result<Self, Error> {
        Ok(Self { state: State::new(seed, estimator, options)?, latest: None })
    }

    /// How many clients have joined.
    pub fn clients(&self) -> usize {
        self.state.known.len()
    }

    /// How many rounds have begun.
    pub fn round(&self) -> u32 {
        self.state.round
    }

    /// How failure probabilities are estimated.
    pub fn estimator(&self) -> EstimatorKind {
        self.state.kind
    }

    /// How clients are selected.
    pub fn options(&self) -> &Options {
        &self.state.options
    }

    /// A client more; returns its number.
    ///
    /// # Panics
    /// When there are 2³² clients already.
    pub fn join(&mut self) -> u32 {
        let client = u32::try_from(self.clients()).expect("fewer than 2^32 clients");
        self.grow(client as usize + 1);
        client
    }

    /// Lets clients join until there are this many; never removes any.
    pub fn grow(&mut self, clients: usize) {
        if clients > self.clients() {
            self.state.estimator.grow(clients);
            self.state.known.resize(clients, None);
            self.state.counts.resize(clients * self.state.classes, 0.0);
        }
    }

    /// Forgets all that is known of a client. Its number stays, for another client.
    ///
    /// # Errors
    /// When there is no such client.
    pub fn forget(&mut self, client: u32) -> Result<(), Error> {
        let (place, classes) = (self.place(client)?, self.state.classes);
        self.state.estimator.forget(place);
        self.state.known[place] = None;
        self.state.counts[place * classes..][..classes].fill(0.0);
        if let Some(group) = self.state.members.get_mut(place) {
            *group = None;
        }
        self.latest = None;
        Ok(())
    }

    /// Says how many samples of each label a client holds; all 0 takes it back.
    ///
    /// # Errors
    /// When there is no such client, the counts are not as many as for the other clients, or one is neither 0 nor from 1e-9
    /// to 2⁵³.
    pub fn set_labels(&mut self, client: u32, counts: &[f64]) -> Result<(), Error> {
        let place = self.place(client)?;
        let field = "labels";
        if counts.is_empty() {
            return Err(Error::NoClasses);
        }
        check_range(counts).map_err(|problem| Error::Client {
            client: client.to_string(),
            field,
            problem,
        })?;
        if self.state.classes == 0 {
            self.state.classes = counts.len();
            self.state.counts = vec![0.0; self.clients() * counts.len()];
        }
        check_length(field, self.state.classes, counts.len())?;
        let known = &mut self.state.counts[place * counts.len()..][..counts.len()];
        if known != counts {
            known.copy_from_slice(counts);
            self.latest = None;
        }
        Ok(())
    }

    /// Gives a client's failure probability, in place of the estimate; `None` takes it back.
    ///
    /// # Errors
    /// When there is no such client, or this is no probability.
    pub fn set_failure(&mut self, client: u32, failure: Option<f64>) -> Result<(), Error> {
        let place = self.place(client)?;
        if let Some(value) = failure.filter(|failure| !(0.0..=1.0).contains(failure)) {
            let problem = format!("must be a probability from 0 to 1, is {}", readable(value));
            return Err(Error::Client { client: client.to_string(), field: "failure", problem });
        }
        self.state.known[place] = failure;
        Ok(())
    }

    /// Says how often each group of clients that fail together is down, in place of what was said before. Groups are
    /// numbers from 0.
    ///
    /// # Errors
    /// When this is no probability, or a client is in a group that would be gone.
    pub fn set_groups(&mut self, failure: impl Into<Vec<f64>>) -> Result<(), Error> {
        let failure = failure.into();
        check_probabilities("groups", &failure)?;
        for (client, group) in (0..).zip(&self.state.members) {
            check_group(client, *group, failure.len())?;
        }
        if failure != self.state.groups {
            self.state.groups = failure;
            self.latest = None;
        }
        Ok(())
    }

    /// Says which group a client is in; `None` for none.
    ///
    /// # Errors
    /// When there is no such client or no such group.
    pub fn set_group(&mut self, client: u32, group: Option<u32>) -> Result<(), Error> {
        let place = self.place(client)?;
        check_group(client, group, self.state.groups.len())?;
        let members = &mut self.state.members;
        if members.get(place).copied().flatten() != group {
            members.resize(members.len().max(place + 1), None);
            members[place] = group;
            self.latest = None;
        }
        Ok(())
    }

    /// Says whether a client's upload arrived in the current round.
    ///
    /// # Errors
    /// When there is no such client.
    pub fn observe(&mut self, client: u32, arrived: bool) -> Result<(), Error> {
        let place = self.place(client)?;
        self.state.estimator.observe(place, arrived);
        Ok(())
    }

    /// Says by how many decibels the capacity of a client's link exceeded what its upload needs, as pilots or channel state show it,
    /// before [`observe`](Self::observe) says whether the upload arrived. For the estimator `signal`.
    ///
    /// # Errors
    /// When there is no such client, the margin is no number, or the estimator is another one.
    pub fn observe_signal(&mut self, client: u32, margin_db: f64) -> Result<(), Error> {
        let place = self.place(client)?;
        self.check_estimator("observe_signal", "signal")?;
        if margin_db.is_nan() {
            let problem = "must be a number of decibels, is NaN".into();
            return Err(Error::Client { client: client.to_string(), field: "margin", problem });
        }
        self.state.estimator.observe_signal(place, margin_db);
        Ok(())
    }

    /// Says how many transmissions of a client's upload failed, and whether a last one got through, before
    /// [`observe`](Self::observe) says whether the upload arrived. For the estimator `retransmissions`.
    ///
    /// # Errors
    /// When there is no such client, or the estimator is another one.
    pub fn observe_transmissions(
        &mut self,
        client: u32,
        failed: u32,
        arrived: bool,
    ) -> Result<(), Error> {
        let place = self.place(client)?;
        self.check_estimator("observe_transmissions", "retransmissions")?;
        self.state.estimator.observe_transmissions(place, failed, arrived);
        Ok(())
    }

    fn check_estimator(&self, call: &'static str, needed: &'static str) -> Result<(), Error> {
        let found = self.state.kind.name();
        if found == needed { Ok(()) } else { Err(Error::Estimator { call, needed, found }) }
    }

    /// A client's failure probability: as given, or as estimated by now.
    ///
    /// # Errors
    /// When there is no such client.
    pub fn failure(&self, client: u32) -> Result<f64, Error> {
        let place = self.place(client)?;
        Ok(self.state.known[place].unwrap_or_else(|| self.state.estimator.failure(place)))
    }

    /// Draws `selected` times among the available clients for the next round: clients in the order in which they are listed, each
    /// with how often it was drawn. Draws depend on that order.
    ///
    /// # Errors
    /// When nobody is available, a client is unknown or listed twice, an option or `selected` is out of its range, or nobody
    /// available ever arrives. Then nothing has changed, and no round has begun.
    pub fn select(&mut self, available: &[u32], selected: u64) -> Result<Vec<(u32, u32)>, Error> {
        self.select_present(available, &vec![true; available.len()], selected, false)
    }

    /// Draws once more in the same round, as when nothing arrived.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn select_again(
        &mut self,
        available: &[u32],
        selected: u64,
    ) -> Result<Vec<(u32, u32)>, Error> {
        self.select_present(available, &vec![true; available.len()], selected, true)
    }

    /// As [`select`](Self::select), or [`select_again`](Self::select_again) where `again`, for a server that remembers updates:
    /// probabilities are worked out for all `clients` that have a say in the average, and only those that are `present` are
    /// drawn, in proportion to them.
    ///
    /// # Errors
    /// As [`select`](Self::select); also when `present` is not as long as `clients`.
    pub fn select_present(
        &mut self,
        clients: &[u32],
        present: &[bool],
        selected: u64,
        again: bool,
    ) -> Result<Vec<(u32, u32)>, Error> {
        check_length("present", clients.len(), present.len())?;
        self.check_distinct(clients)?;
        let (round, attempt) = match (again, self.state.round) {
            (true, 1..) => (self.state.round, self.state.attempt.saturating_add(1)),
            (_, round) => (round.saturating_add(1), 0),
        };
        // The first attempt of a round ends the round before.
        let before = (round > 1 && attempt == 0).then(|| self.state.estimator.clone());
        if before.is_some() {
            self.state.estimator.tick();
        }
        let key = Key::new(self.state.seed, Purpose::Selection).round(round).attempt(attempt);
        let drawn = self.solve_and_draw(clients, present, selected, key);
        match (&drawn, before) {
            (Ok(_), _) => {
                (self.state.round, self.state.attempt) = (round, attempt);
                self.state.estimator.draw();
            }
            (Err(_), Some(before)) => self.state.estimator = before,
            (Err(_), None) => {}
        }
        drawn
    }

    /// The latest selection; `None` before the first one, after one that failed, and when labels have changed since.
    pub fn latest(&self) -> Option<&Latest> {
        self.latest.as_ref()
    }

    /// `χ²(ᾱ‖α_g)` of an aggregate of these clients of the latest selection with these weights, which need not sum to one. All
    /// labels are those of the clients of that selection.
    ///
    /// # Errors
    /// When there is no latest selection, a client was not part of it, or no weight is above 0.
    pub fn label_divergence(&self, weights: &[(u32, f64)]) -> Result<f64, Error> {
        let Some(Latest { clients, federation, .. }) = &self.latest else {
            return Err(Error::NotSelectedYet("label_divergence"));
        };
        let mut given = vec![0.0; self.clients()];
        for &(client, weight) in weights {
            given[self.place(client)?] += weight;
        }
        let mut shares: Vec<f64> = clients
            .iter()
            .map(|&client| std::mem::replace(&mut given[client as usize], 0.0))
            .collect();
        if let Some(client) = given.iter().position(|&weight| weight != 0.0) {
            return Err(Error::Client {
                client: client.to_string(),
                field: "weight",
                problem: "is of a client that was not part of the latest selection".into(),
            });
        }
        let total: f64 = shares.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            let legal = "above 0 and finite";
            return Err(Error::Parameter { name: "sum of weights", legal, value: total });
        }
        shares.iter_mut().for_each(|share| *share /= total);
        Ok(label_divergence(federation, &shares))
    }

    fn place(&self, client: u32) -> Result<usize, Error> {
        let place = client as usize;
        if place < self.clients() { Ok(place) } else { Err(Error::NoSuchClient(client)) }
    }

    fn check_distinct(&self, clients: &[u32]) -> Result<(), Error> {
        let mut seen = vec![false; self.clients()];
        for &client in clients {
            if std::mem::replace(&mut seen[self.place(client)?], true) {
                let problem = "is listed twice; list every client once".into();
                return Err(Error::Client {
                    client: client.to_string(),
                    field: "available",
                    problem,
                });
            }
        }
        Ok(())
    }

    fn solve_and_draw(
        &mut self,
        clients: &[u32],
        present: &[bool],
        selected: u64,
        key: Key,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let failure: Vec<f64> =
            clients.iter().map(|&client| self.failure(client)).collect::<Result<_, _>>()?;
        let (federation, solution) = match self.latest.take() {
            Some(latest) if latest.clients == clients => {
                let same = latest.federation.failure() == failure
                    && latest.solution.selected == selected
                    && latest.present == present;
                let Latest { mut federation, solution, .. } = latest;
                federation.set_failure(failure)?;
                (federation, same.then_some(solution))
            }
            _ => (self.federation(clients, failure)?, None),
        };
        let solution = match solution {
            Some(solution) => solution,
            None => self.solve(&federation, clients, present, selected)?,
        };
        let mut stream = key.stream();
        let drawn = match self.state.options.draws {
            Draws::Independent => Alias::new(&solution.selection)?.draws(selected, &mut stream)?,
            Draws::Systematic => {
                let (labels, classes) = (federation.all_labels(), federation.classes());
                let order = label_order(labels, clients.len(), classes)?;
                systematic(&solution.selection, &order, selected, &mut stream)?
            }
        };
        let (clients, present) = (clients.to_vec(), present.to_vec());
        let drawn =
            drawn.into_iter().map(|(place, count)| (clients[place as usize], count)).collect();
        self.latest = Some(Latest { clients, present, federation, solution });
        Ok(drawn)
    }

    /// The federation of these clients, with those groups that some of them are in.
    fn federation(&self, clients: &[u32], failure: Vec<f64>) -> Result<Federation, Error> {
        let federation = self.labelled(clients, failure)?;
        let group = |&client: &u32| self.state.members.get(client as usize).copied().flatten();
        let mut used: Vec<u32> = clients.iter().filter_map(group).collect();
        used.sort_unstable();
        used.dedup();
        if used.is_empty() {
            return Ok(federation);
        }
        let down: Vec<f64> = used.iter().map(|&group| self.state.groups[group as usize]).collect();
        let of = clients.iter().map(|client| used.binary_search(&group(client)?).ok());
        federation.with_groups(Groups::new(down, of)?)
    }

    /// The clients and their labels. Who has not told its labels is taken to have the mean of the others';
    /// when nobody has, all are alike.
    fn labelled(&self, clients: &[u32], failure: Vec<f64>) -> Result<Federation, Error> {
        let classes = self.state.classes.max(1);
        if self.state.classes == 0 {
            let counts = vec![1.0; clients.len()];
            return FederationSpec { ids: None, classes, counts, failure }.check();
        }
        let mut counts = Vec::with_capacity(clients.len() * classes);
        let mut mean = vec![0.0; classes];
        let mut silent = Vec::new();
        for (place, &client) in clients.iter().enumerate() {
            let row = &self.state.counts[client as usize * classes..][..classes];
            if row.iter().all(|&count| count == 0.0) {
                silent.push(place);
            }
            mean.iter_mut().zip(row).for_each(|(mean, count)| *mean += count);
            counts.extend_from_slice(row);
        }
        let told = clients.len() - silent.len();
        if told == 0 {
            mean.fill(1.0);
        } else {
            mean.iter_mut().for_each(|mean| *mean /= told as f64);
        }
        for place in silent {
            counts[place * classes..][..classes].copy_from_slice(&mean);
        }
        FederationSpec { ids: None, classes, counts, failure }.check()
    }

    /// Solves for a federation of which only some can be drawn now.
    fn solve(
        &self,
        federation: &Federation,
        clients: &[u32],
        present: &[bool],
        selected: u64,
    ) -> Result<Solution, Error> {
        let mut solution = select_or_all(federation, selected, &self.state.options)?;
        for warning in &mut solution.warnings {
            if let Warning::LabelRestored { clients: named, .. } = warning {
                // The federation names its clients 1, 2, …
                let number = |name: &String| name.parse().map(|place: usize| clients[place - 1]);
                for name in named {
                    *name = number(name).map_or_else(|_| name.clone(), |n| n.to_string());
                }
            }
        }
        if present.contains(&false) {
            let among_present = |shares: &[f64]| {
                let share = |(&share, &present): (&f64, &bool)| if present { share } else { 0.0 };
                let shares: Vec<f64> = shares.iter().zip(present).map(share).collect();
                let total: f64 = shares.iter().sum();
                (total > 0.0).then(|| shares.iter().map(|share| share / total).collect())
            };
            // When nobody who has a say is present, by weight.
            let selection: Vec<f64> = among_present(&solution.selection)
                .or_else(|| among_present(federation.weights()))
                .ok_or(Error::NobodyArrives)?;
            let arrives = |(selection, failure): (&f64, &f64)| selection * (1.0 - failure);
            let arriving: f64 = selection.iter().zip(federation.failure()).map(arrives).sum();
            solution.expected_arrivals = selected as f64 * arriving;
            solution.selection = selection;
        }
        Ok(solution)
    }
}

fn check_group(client: u32, group: Option<u32>, groups: usize) -> Result<(), Error> {
    let Some(group) = group.filter(|&group| group as usize >= groups) else { return Ok(()) };
    let problem = format!("{group} is not there: groups count from 0 to below {groups}");
    Err(Error::Client { client: client.to_string(), field: "group", problem })
}

#[cfg(test)]
mod tests;
