//! The state behind `fedcote.Selector`: clients by number, labels, estimates, seeded draws.

use fedcote::divergence::label_divergence;
use fedcote::draw::{Alias, label_order, systematic};
use fedcote::estimate::{Estimator, EstimatorKind};
use fedcote::random::{Key, Purpose};
use fedcote::{Draws, Error, Federation, FederationSpec, Options, Solution};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::refuse;
use crate::select::{Aim, Choices, lines, put, solve};

type Numbers<'py> = Bound<'py, PyArray1<u32>>;

/// What is saved.
#[derive(Serialize, Deserialize)]
struct State {
    seed: u64,
    choices: Choices,
    kind: EstimatorKind,
    estimator: Estimator,
    /// Failure probabilities that the user knows, which replace estimates.
    known: Vec<Option<f64>>,
    classes: usize,
    /// Label counts, row after row; zeros for a client that has not told.
    counts: Vec<f64>,
}

/// The clients of the latest selection, and what was found for them.
struct Latest {
    clients: Vec<u32>,
    present: Vec<bool>,
    federation: Federation,
    solution: Solution,
}

/// Clients by number, from 0.
#[pyclass(module = "fedcote._fedcote")]
pub struct Core {
    state: State,
    options: Options,
    aim: Aim,
    latest: Option<Latest>,
}

impl Core {
    fn with(state: State) -> PyResult<Self> {
        let (options, aim) = (state.choices.options()?, state.choices.aim()?);
        Ok(Self { state, options, aim, latest: None })
    }

    fn len(&self) -> usize {
        self.state.known.len()
    }

    fn check(&self, clients: &[u32]) -> PyResult<()> {
        match clients.iter().find(|&&client| client as usize >= self.len()) {
            None => Ok(()),
            Some(client) => Err(PyIndexError::new_err(format!("there is no client {client}"))),
        }
    }

    fn failure(&self, client: u32) -> f64 {
        let client = client as usize;
        self.state.known[client].unwrap_or_else(|| self.state.estimator.failure(client))
    }

    /// The federation of these clients. Who has not told its labels is taken to have the mean of the others;
    /// when nobody has, all are alike.
    fn federation(&self, clients: &[u32], failure: Vec<f64>) -> Result<Federation, Error> {
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

    /// Solves for these clients and draws `selected` of those that are present.
    fn solve_and_draw(
        &mut self,
        clients: Vec<u32>,
        present: Vec<bool>,
        selected: u64,
        key: Key,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let failure: Vec<f64> = clients.iter().map(|&client| self.failure(client)).collect();
        let (federation, solution) = match self.latest.take() {
            Some(latest) if latest.clients == clients => {
                let same = latest.federation.failure() == failure
                    && latest.solution.draws == selected
                    && latest.present == present;
                let Latest { mut federation, solution, .. } = latest;
                federation.set_failure(failure)?;
                (federation, same.then_some(solution))
            }
            _ => (self.federation(&clients, failure)?, None),
        };
        // Never from an earlier solution of something else: a restored selector must find the same bits.
        let solution = match solution {
            Some(solution) => solution,
            None => self.solve(&federation, &present, selected)?,
        };
        let mut stream = key.stream();
        let drawn = match self.options.draws_kind {
            Draws::Independent => Alias::new(&solution.selection)?.draws(selected, &mut stream)?,
            Draws::Systematic => {
                let (labels, classes) = (federation.all_labels(), federation.classes());
                let order = label_order(labels, clients.len(), classes)?;
                systematic(&solution.selection, &order, selected, &mut stream)?
            }
        };
        self.latest = Some(Latest { clients, present, federation, solution });
        Ok(drawn)
    }

    /// Solves for a federation of which only some can be drawn now.
    fn solve(
        &self,
        federation: &Federation,
        present: &[bool],
        selected: u64,
    ) -> Result<Solution, Error> {
        let solve = |options: &Options| solve(federation, selected, options, self.aim);
        let mut solution = match solve(&self.options) {
            // Leaving everyone out would leave nobody to ask.
            Err(Error::NobodyEligible(_)) => solve(&Options { threshold: 1.0, ..self.options })?,
            solved => solved?,
        };
        if present.contains(&false) {
            let among_present = |shares: &[f64]| {
                let share = |(&share, &present): (&f64, &bool)| if present { share } else { 0.0 };
                let shares: Vec<f64> = shares.iter().zip(present).map(share).collect();
                let total: f64 = shares.iter().sum();
                (total > 0.0).then(|| shares.iter().map(|share| share / total).collect())
            };
            // When nobody who has a say is present, by weight.
            let selection = among_present(&solution.selection)
                .or_else(|| among_present(federation.weights()))
                .ok_or(Error::NobodyArrives)?;
            put(&mut solution, federation, selection);
        }
        Ok(solution)
    }
}

#[pymethods]
impl Core {
    #[new]
    fn new(seed: u64, estimator: &str, choices: Choices) -> PyResult<Self> {
        let kind: EstimatorKind = if estimator.starts_with('{') {
            serde_json::from_str(estimator)
                .map_err(|error| refuse(format_args!("estimator: {error}")))?
        } else {
            estimator.parse().map_err(refuse)?
        };
        let estimator = kind.estimator(0).map_err(refuse)?;
        let (known, counts) = (Vec::new(), Vec::new());
        Self::with(State { seed, choices, kind, estimator, known, classes: 0, counts })
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// Makes room for clients up to this number.
    fn grow(&mut self, clients: usize) {
        if clients > self.len() {
            self.state.estimator.grow(clients);
            self.state.known.resize(clients, None);
            self.state.counts.resize(clients * self.state.classes, 0.0);
        }
    }

    fn set_labels(
        &mut self,
        clients: PyReadonlyArray1<'_, u32>,
        counts: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let clients = clients.as_slice()?;
        self.check(clients)?;
        let classes = counts.shape()[1];
        if self.state.classes == 0 {
            if classes == 0 {
                return Err(refuse("labels: there must be at least one label class"));
            }
            self.state.counts = vec![0.0; self.len() * classes];
            self.state.classes = classes;
        }
        if classes != self.state.classes {
            let text = format!("labels: expected {} values, found {classes}", self.state.classes);
            return Err(refuse(text));
        }
        for (&client, row) in clients.iter().zip(counts.as_slice()?.chunks_exact(classes)) {
            let known = &mut self.state.counts[client as usize * classes..][..classes];
            if known != row {
                known.copy_from_slice(row);
                self.latest = None;
            }
        }
        Ok(())
    }

    fn set_failure(&mut self, client: u32, failure: Option<f64>) -> PyResult<()> {
        self.check(&[client])?;
        self.state.known[client as usize] = failure;
        Ok(())
    }

    fn observe(&mut self, client: u32, arrived: bool) -> PyResult<()> {
        self.check(&[client])?;
        self.state.estimator.observe(client as usize, arrived);
        Ok(())
    }

    fn failures<'py>(
        &self,
        py: Python<'py>,
        clients: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let clients = clients.as_slice()?;
        self.check(clients)?;
        let failures: Vec<f64> = clients.iter().map(|&client| self.failure(client)).collect();
        Ok(failures.into_pyarray(py))
    }

    /// Draws among the clients that are present: their places in `clients`, and how often each was drawn. The first attempt
    /// of a round ends the round before; when it fails, nothing has changed.
    fn select<'py>(
        &mut self,
        py: Python<'py>,
        clients: PyReadonlyArray1<'py, u32>,
        present: PyReadonlyArray1<'py, bool>,
        selected: u64,
        round: u32,
        attempt: u32,
    ) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
        let clients = clients.as_slice()?.to_vec();
        let present = present.as_slice()?.to_vec();
        self.check(&clients)?;
        if present.len() != clients.len() {
            return Err(refuse("present: must be as long as clients"));
        }
        let key = Key::new(self.state.seed, Purpose::Selection).round(round).attempt(attempt);
        let drawn = py.detach(|| {
            let before = (round > 1 && attempt == 0).then(|| self.state.estimator.clone());
            if before.is_some() {
                self.state.estimator.tick();
            }
            let drawn = self.solve_and_draw(clients, present, selected, key);
            if let (Err(_), Some(before)) = (&drawn, before) {
                self.state.estimator = before;
            }
            drawn
        });
        let drawn = drawn.map_err(refuse)?;
        let (places, counts): (Vec<u32>, Vec<u32>) = drawn.into_iter().unzip();
        Ok((places.into_pyarray(py), counts.into_pyarray(py)))
    }

    /// What the latest selection leads to.
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(Latest { clients, federation, solution, .. }) = &self.latest else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        out.set_item("clients", PyArray1::from_slice(py, clients))?;
        out.set_item("method", solution.method.name())?;
        out.set_item("weights", PyArray1::from_slice(py, federation.weights()))?;
        out.set_item("failure", PyArray1::from_slice(py, federation.failure()))?;
        out.set_item("selection", PyArray1::from_slice(py, &solution.selection))?;
        out.set_item("appearance", PyArray1::from_slice(py, &solution.appearance))?;
        out.set_item("target", PyArray1::from_slice(py, &solution.target))?;
        out.set_item("eligible", PyArray1::from_slice(py, &solution.eligible))?;
        out.set_item("label_divergence", solution.label_divergence)?;
        out.set_item("weight_divergence", solution.weight_divergence)?;
        out.set_item("expected_arrivals", solution.expected_arrivals)?;
        out.set_item("optimality", solution.optimality)?;
        out.set_item("warnings", lines(&solution.warnings))?;
        Ok(Some(out))
    }

    /// `χ²(ᾱ‖α_g)` of an aggregate of these places of the latest selection with these weights.
    fn label_divergence(&self, places: Vec<u32>, weights: Vec<f64>) -> PyResult<f64> {
        let Some(Latest { federation, .. }) = &self.latest else {
            return Err(refuse("label_divergence: call select first"));
        };
        let total: f64 = weights.iter().sum();
        let mut shares = vec![0.0; federation.len()];
        for (place, weight) in places.into_iter().zip(weights) {
            match shares.get_mut(place as usize) {
                Some(share) if total > 0.0 => *share += weight / total,
                _ => {
                    return Err(refuse(
                        "label_divergence: weights must be of clients selected from",
                    ));
                }
            }
        }
        Ok(label_divergence(federation, &shares))
    }

    fn state(&self) -> PyResult<String> {
        serde_json::to_string(&self.state).map_err(refuse)
    }

    #[staticmethod]
    fn restored(state: &str) -> PyResult<Self> {
        let wrong = |problem: &str| refuse(format_args!("state: {problem}"));
        let state: State =
            serde_json::from_str(state).map_err(|error| wrong(&error.to_string()))?;
        let clients = state.known.len();
        if state.estimator.clients() != clients || state.counts.len() != clients * state.classes {
            return Err(wrong("the numbers of clients disagree"));
        }
        Self::with(state)
    }
}
