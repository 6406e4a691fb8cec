//! Tasks in Python: `fedcote._task.Bridge` behind the simulator's trait.
//!
//! The interpreter is held only while Python code runs. Nothing here waits for other threads meanwhile, so a pool
//! thread that needs the interpreter gets it.

use std::sync::{Arc, Mutex};

use fedcote::random::Key;
use fedcote_learn::train::Sampler;
use fedcote_sim::scheme::SelectionKind;
use fedcote_sim::task::{Job, LabelCounts, Parameter, Scores, Task, Tasks};
use fedcote_sim::{Error, Scenario, vector};
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use rand::Rng;

use crate::refuse;

/// The mini-batches of a client with so many samples, steps × batch.
#[pyfunction]
pub fn batches<'py>(
    py: Python<'py>,
    key: [u8; 32],
    steps: usize,
    batch: usize,
    samples: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let size = batch.min(samples);
    if size == 0 {
        return Err(refuse("batches: a client trains on at least one sample"));
    }
    let samples = u32::try_from(samples).map_err(|_| refuse("batches: too many samples"))?;
    let mut sampler = Sampler::new(samples, Key::stream_of(key));
    let mut drawn = Vec::with_capacity(steps * size);
    for _ in 0..steps {
        drawn.extend(sampler.draw(batch).iter().map(|&place| i64::from(place)));
    }
    PyArray1::from_vec(py, drawn).reshape([steps, size])
}

/// The first exception of the user's code, kept for whoever started the run, or printed.
#[derive(Clone, Default)]
pub struct Failure {
    kept: Arc<Mutex<Option<PyErr>>>,
    /// Whether tracebacks go to standard error at once.
    printed: bool,
}

impl Failure {
    /// Tracebacks go to standard error at once.
    pub fn printed() -> Self {
        Self { printed: true, ..Self::default() }
    }

    /// The simulator's error as an exception, with the one that led to it as its cause.
    pub fn raise(&self, py: Python<'_>, error: &Error) -> PyErr {
        if !matches!(error, Error::Task { .. } | Error::Scheme { .. }) {
            return refuse(error);
        }
        let raised = PyErr::from_type(python(py, "TaskError"), error.to_string());
        raised.set_cause(py, self.kept.lock().expect("no panic while held").take());
        raised
    }

    /// The simulator's words for an exception of a task.
    pub fn explain(&self, py: Python<'_>, round: u32, client: Option<u32>, error: PyErr) -> Error {
        if let Some(missing) = missing(py, &error, || "task.python".to_owned()) {
            return missing;
        }
        Error::Task { round, client, reason: self.reason(py, error) }
    }

    /// The simulator's words for an exception of a scheme.
    pub fn explain_scheme(
        &self,
        py: Python<'_>,
        round: u32,
        client: Option<u32>,
        scheme: &str,
        error: PyErr,
    ) -> Error {
        if let Some(missing) = missing(py, &error, || format!("scheme.{scheme}.python")) {
            return missing;
        }
        let scheme = scheme.to_owned();
        Error::Scheme { round, client, scheme, reason: self.reason(py, error) }
    }

    /// What happened, in a few words. The exception is kept, unless it only says what must not be returned.
    fn reason(&self, py: Python<'_>, error: PyErr) -> String {
        if error.is_instance(py, &python(py, "Refused")) {
            return error.value(py).to_string();
        }
        let reason = format!("raised {error}");
        if self.printed {
            error.display(py);
        }
        self.kept.lock().expect("no panic while held").get_or_insert(error);
        reason
    }
}

/// The error for a name in a scenario behind which there is no code: the request is wrong, not the work.
fn missing(py: Python<'_>, error: &PyErr, place: impl FnOnce() -> String) -> Option<Error> {
    error
        .is_instance(py, &python(py, "Missing"))
        .then(|| Error::Scenario { place: place(), reason: error.value(py).to_string() })
}

/// An exception of the package.
fn python<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyType> {
    let found = py.import("fedcote._task").and_then(|module| module.getattr(name));
    found.and_then(|found| Ok(found.cast_into::<PyType>()?)).expect("the package has it")
}

/// The tasks of a comparison: a `fedcote._task.Tasks`.
pub struct PythonTasks {
    tasks: Py<PyAny>,
    identity: Option<String>,
    /// A scheme that chooses clients by their loss.
    by_loss: Option<String>,
    failure: Failure,
}

impl PythonTasks {
    /// Of this object, for the schemes of a scenario.
    pub fn new(tasks: &Bound<'_, PyAny>, scenario: &Scenario, failure: Failure) -> PyResult<Self> {
        let identity = tasks.getattr("identity")?.extract()?;
        let by_loss = |name: &&String| {
            let scheme = scenario.schemes.resolve(name);
            scheme.is_ok_and(|scheme| matches!(scheme.selection, SelectionKind::PowerOfChoice(_)))
        };
        let by_loss = scenario.general.schemes.iter().find(by_loss).cloned();
        Ok(Self { tasks: tasks.clone().unbind(), identity, by_loss, failure })
    }
}

impl Tasks for PythonTasks {
    fn task(&self, seed: u64) -> Result<Arc<dyn Task>, Error> {
        Python::attach(|py| {
            let made = || PythonTask::new(&self.tasks.bind(py).call_method1("task", (seed,))?);
            let made = made().map_err(|error| self.failure.explain(py, 0, None, error))?;
            if let (Some(scheme), false) = (&self.by_loss, made.loss) {
                let place = "schemes".to_owned();
                let reason = format!(
                    "`{scheme}` chooses clients by their loss: the task needs a method loss(model, client)"
                );
                return Err(Error::Scenario { place, reason });
            }
            Ok(Arc::new(PythonTask { failure: self.failure.clone(), ..made }) as Arc<dyn Task>)
        })
    }

    fn identity(&self) -> Option<String> {
        self.identity.clone()
    }
}

/// One task: a `fedcote._task.Bridge`.
struct PythonTask {
    bridge: Py<PyAny>,
    parameters: Vec<Parameter>,
    labels: LabelCounts,
    /// Whether it trains all clients at once.
    many: bool,
    /// Whether it knows the loss of a client.
    loss: bool,
    failure: Failure,
}

/// Keeps a model alive as long as arrays show it.
#[pyclass(frozen)]
struct Shown(#[allow(dead_code)] Arc<Vec<f32>>);

/// A model as an array that cannot be written to, without a copy.
fn shown<'py>(py: Python<'py>, model: &Arc<Vec<f32>>) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let owner = Bound::new(py, Shown(Arc::clone(model)))?;
    let values = ArrayView1::from(model.as_slice());
    // SAFETY: the array holds `owner`, which holds the vector; whose contents nobody changes, as it is shared, and the
    // array is made read-only before anybody sees it.
    #[allow(unsafe_code)]
    let array = unsafe { PyArray1::borrow_from_array(&values, owner.into_any()) };
    array.readwrite().make_nonwriteable();
    Ok(array)
}

/// The arrays of a model, flat, in order.
pub type Arrays<'py> = Vec<PyReadonlyArray1<'py, f32>>;

impl PythonTask {
    fn new(bridge: &Bound<'_, PyAny>) -> PyResult<Self> {
        let table: Vec<(String, Vec<usize>, usize)> = bridge.getattr("parameters")?.extract()?;
        let parameter = |(name, shape, offset)| Parameter { name, shape, offset };
        let (classes, counts): (usize, PyReadonlyArray1<f64>) =
            bridge.call_method0("labels")?.extract()?;
        Ok(Self {
            parameters: table.into_iter().map(parameter).collect(),
            labels: LabelCounts { classes, counts: counts.as_slice()?.to_vec() },
            many: !bridge.getattr("many")?.is_none(),
            loss: !bridge.getattr("loss")?.is_none(),
            bridge: bridge.clone().unbind(),
            failure: Failure::default(),
        })
    }

    /// Whether all clients of a round train in one call.
    fn together(&self) -> bool {
        let batched = |bridge: &Bound<'_, PyAny>| bridge.call_method0("batched")?.extract();
        self.many && Python::attach(|py| batched(self.bridge.bind(py))).unwrap_or(true)
    }

    /// Calls Python; what it raises is told with the round and the client.
    fn call<T>(
        &self,
        round: u32,
        client: Option<u32>,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, Error> {
        Python::attach(|py| {
            work(self.bridge.bind(py))
                .map_err(|error| self.failure.explain(py, round, client, error))
        })
    }

    /// A job as the user sees it.
    fn job<'py>(
        bridge: &Bound<'py, PyAny>,
        anchor: &Bound<'py, PyArray1<f32>>,
        job: &Job<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = bridge.py();
        let sum = |linear: &[(f32, std::borrow::Cow<'_, [f32]>)]| {
            let mut sum = vec![0.0; linear[0].1.len()];
            for (factor, values) in linear {
                vector::add(&mut sum, *factor, values);
            }
            PyArray1::from_vec(py, sum)
        };
        let correction = match job.correction.linear.as_slice() {
            [] => None,
            linear => Some(sum(linear)),
        };
        // A stream of its own: the mini-batches' must not lose a number.
        let seed = job.key.attempt(u32::MAX).stream().next_u64();
        let key = PyBytes::new(py, &job.key.bytes());
        let (rate, proximal) = (f64::from(job.rate), f64::from(job.correction.proximal));
        let words = (job.client, job.round, seed, job.steps, job.batch, rate, proximal);
        let (client, round, seed, steps, batch, rate, proximal) = words;
        bridge.call_method1(
            "job",
            (client, round, seed, steps, batch, rate, proximal, correction, anchor, key),
        )
    }

    /// Trains all jobs in one call.
    fn train_many(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        let round = jobs.first().map_or(0, |job| job.round);
        self.call(round, None, |bridge| {
            let model = shown(bridge.py(), global)?;
            let made: PyResult<Vec<_>> =
                jobs.iter().map(|job| Self::job(bridge, &model, job)).collect();
            let found = bridge.call_method1("train_many", (&model, made?))?;
            for (place, job) in jobs.iter_mut().enumerate() {
                receive(job, global.len(), found.get_item(place)?.extract()?)?;
            }
            Ok(())
        })
    }
}

/// Copies what came back into the flat model.
fn receive(job: &mut Job<'_>, length: usize, arrays: Arrays<'_>) -> PyResult<()> {
    job.model.clear();
    job.model.reserve_exact(length);
    for array in &arrays {
        job.model.extend_from_slice(array.as_slice()?);
    }
    job.finite = vector::finite(&job.model);
    Ok(())
}

impl Task for PythonTask {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn label_counts(&self) -> LabelCounts {
        self.labels.clone()
    }

    fn initial(&self, _key: Key) -> Result<Vec<f32>, Error> {
        self.call(0, None, |bridge| {
            let arrays: Arrays = bridge.call_method0("initial")?.extract()?;
            let mut model = Vec::with_capacity(self.len());
            for array in &arrays {
                model.extend_from_slice(array.as_slice()?);
            }
            Ok(model)
        })
    }

    fn jobs_at_once(&self) -> usize {
        if self.together() { usize::MAX } else { 1 }
    }

    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        if self.together() && jobs.iter().all(|job| job.start.is_none()) {
            return if jobs.is_empty() { Ok(()) } else { self.train_many(global, jobs) };
        }
        for job in jobs {
            self.call(job.round, Some(job.client), |bridge| {
                let py = bridge.py();
                let anchor = shown(py, global)?;
                let start = match job.start {
                    None => anchor.clone(),
                    Some(start) => PyArray1::from_slice(py, start),
                };
                let made = Self::job(bridge, &anchor, job)?;
                // The job, and with it its correction, is gone before the result is copied.
                let found = bridge.call_method1("train", (start, made))?;
                receive(job, global.len(), found.extract()?)
            })?;
        }
        Ok(())
    }

    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        self.call(0, None, |bridge| {
            let model = PyArray1::from_slice(bridge.py(), model);
            bridge.call_method1("losses", (model, clients.to_vec()))?.extract()
        })
    }

    fn evaluate(&self, model: &[f32], on_training_data: bool) -> Result<Scores, Error> {
        if !on_training_data {
            return self.call(0, None, |bridge| {
                let model = PyArray1::from_slice(bridge.py(), model);
                bridge.call_method1("evaluate", (model,))?.extract()
            });
        }
        if !self.loss {
            return Ok(Scores::new());
        }
        let samples: Vec<f64> =
            self.labels.counts.chunks(self.labels.classes).map(|row| row.iter().sum()).collect();
        let clients: Vec<u32> = (0..samples.len() as u32).collect();
        let losses = self.losses(model, &clients)?;
        let sum: f64 = losses.iter().zip(&samples).map(|(loss, samples)| loss * samples).sum();
        Ok(vec![("loss".to_owned(), sum / samples.iter().sum::<f64>())])
    }
}
