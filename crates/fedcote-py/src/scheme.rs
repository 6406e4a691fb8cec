//! Schemes in Python: `fedcote._scheme.SchemeBridge` behind the simulator's parts.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use fedcote::draw::Alias;
use fedcote::random::{Key, Purpose};
use fedcote_sim::own::{OwnParts, OwnSchemes};
use fedcote_sim::part::{
    Aggregation, Arrival, Count, LocalUpdate, Probabilities, RoundContext, Selection, State,
    Traffic,
};
use fedcote_sim::saved::Saved;
use fedcote_sim::scheme::Scheme;
use fedcote_sim::task::{Correction, Task, Tasks};
use fedcote_sim::{Error, World};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::Rng;

use crate::refuse;
use crate::task::{Arrays, Failure};

/// Independent draws with these probabilities: clients, and how often each was drawn.
#[pyfunction]
pub fn draw(
    key: [u8; 32],
    probabilities: PyReadonlyArray1<'_, f64>,
    selected: u64,
) -> PyResult<Vec<(u32, u32)>> {
    let alias = Alias::new(probabilities.as_slice()?).map_err(refuse)?;
    alias.draws(selected, &mut Key::stream_of(key)).map_err(refuse)
}

/// Tasks with schemes of the user's own beside them.
pub struct WithSchemes {
    tasks: Box<dyn Tasks>,
    schemes: Arc<PythonSchemes>,
}

impl WithSchemes {
    /// `schemes` is a `fedcote._scheme.Schemes`.
    pub fn new(tasks: Box<dyn Tasks>, schemes: Py<PyAny>, failure: Failure) -> Self {
        Self { tasks, schemes: Arc::new(PythonSchemes { schemes, failure }) }
    }
}

impl Tasks for WithSchemes {
    fn task(&self, seed: u64) -> Result<Arc<dyn Task>, Error> {
        self.tasks.task(seed)
    }

    fn schemes(&self) -> Option<Arc<dyn OwnSchemes>> {
        Some(Arc::clone(&self.schemes) as Arc<dyn OwnSchemes>)
    }

    fn identity(&self) -> Option<String> {
        self.tasks.identity()
    }
}

struct PythonSchemes {
    schemes: Py<PyAny>,
    failure: Failure,
}

impl OwnSchemes for PythonSchemes {
    fn parts(&self, scheme: &Scheme, world: &World) -> Result<OwnParts, Error> {
        let place = scheme.python.clone().unwrap_or_default();
        let parameters = world.task.parameters().iter();
        let shapes = parameters.map(|p| (p.name.clone(), p.shape.clone(), p.offset));
        let shapes: Vec<(String, Vec<usize>, usize)> = shapes.collect();
        let made = Python::attach(|py| {
            let make = || {
                let words = (&scheme.name, place, shapes, world.federation.len());
                let bridge = self.schemes.bind(py).call_method1("bridge", words)?;
                let has = |name: &str| bridge.getattr(name)?.extract::<bool>();
                let has = (has("selects")?, has("corrects")?, has("aggregates")?);
                Ok((bridge.unbind(), has))
            };
            let wrong = |error| self.failure.explain_scheme(py, 0, None, &scheme.name, error);
            make().map_err(wrong)
        })?;
        let (bridge, (selects, corrects, aggregates)) = made;
        if selects && scheme.aggregation.needs_probabilities() {
            let place = format!("scheme.{}.python", scheme.name);
            let word = scheme.aggregation.word();
            let reason = format!("aggregation \"{word}\" needs a selection by probabilities");
            return Err(Error::Scenario { place, reason });
        }
        let own = Arc::new(Own {
            bridge,
            name: scheme.name.clone(),
            failure: self.failure.clone(),
            current: Mutex::default(),
        });
        let part = |wanted: bool| wanted.then(|| Part(Arc::clone(&own)));
        Ok(OwnParts {
            selection: part(selects).map(|part| Box::new(part) as Box<dyn Selection>),
            local: part(corrects).map(|part| Box::new(part) as Box<dyn LocalUpdate>),
            aggregation: part(aggregates).map(|part| Box::new(part) as Box<dyn Aggregation>),
        })
    }
}

/// The scheme of one run.
struct Own {
    bridge: Py<PyAny>,
    name: String,
    failure: Failure,
    /// The round under way as the user sees it, for the corrections of all its clients.
    current: Mutex<Option<(u32, Py<PyAny>)>>,
}

/// One part of it.
struct Part(Arc<Own>);

impl Part {
    fn call<T>(
        &self,
        round: u32,
        client: Option<u32>,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, Error> {
        Python::attach(|py| {
            let own = &self.0;
            work(own.bridge.bind(py))
                .map_err(|error| own.failure.explain_scheme(py, round, client, &own.name, error))
        })
    }
}

/// A round as the user sees it.
fn seen<'py>(
    bridge: &Bound<'py, PyAny>,
    context: &RoundContext,
    redraw: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, world, federation) = (bridge.py(), context.world, context.federation);
    let key = world.key(Purpose::Selection).round(context.round).attempt(redraw);
    // A stream of its own: the draws' must not lose a number.
    let seed = key.client(u64::MAX).stream().next_u64();
    bridge.call_method1(
        "round",
        (
            context.round,
            PyArray1::from_slice(py, context.global),
            PyArray1::from_slice(py, federation.weights()),
            PyArray1::from_slice(py, federation.all_labels()),
            PyArray1::from_slice(py, federation.failure()),
            world.draws(),
            seed,
            PyBytes::new(py, &key.bytes()),
        ),
    )
}

impl Selection for Part {
    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        self.call(context.round, None, |bridge| {
            bridge.call_method1("select", (seen(bridge, context, redraw)?,))?.extract()
        })
    }
}

impl LocalUpdate for Part {
    /// A correction is a vector of model size that the client is sent.
    fn traffic(&self, _context: &RoundContext, _client: u32) -> Traffic {
        Traffic { vectors_down: 1, ..Traffic::default() }
    }

    fn try_correction(&self, context: &RoundContext, client: u32) -> Result<Correction<'_>, Error> {
        let sum = self.call(context.round, Some(client), |bridge| {
            let py = bridge.py();
            let current = self.0.current.lock().expect("no panic while held").take();
            let round = match current.filter(|(number, _)| *number == context.round) {
                Some((_, round)) => round.into_bound(py),
                None => seen(bridge, context, 0)?,
            };
            let found = bridge.call_method1("correct", (&round, client))?;
            let kept = (context.round, round.unbind());
            *self.0.current.lock().expect("no panic while held") = Some(kept);
            found.extract::<Option<Arrays>>()?.map(|arrays| joined(&arrays)).transpose()
        })?;
        let linear = sum.map(|sum| (1.0, Cow::Owned(sum))).into_iter().collect();
        Ok(Correction { linear, proximal: 0.0 })
    }
}

fn joined(arrays: &Arrays<'_>) -> PyResult<Vec<f32>> {
    let mut sum = Vec::new();
    for array in arrays {
        sum.extend_from_slice(array.as_slice()?);
    }
    Ok(sum)
}

impl Aggregation for Part {
    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        self.call(context.round, None, |bridge| {
            let py = bridge.py();
            let told =
                |a: &Arrival| (a.client, a.copies, a.steps, PyArray1::from_slice(py, &a.model));
            let told: Vec<_> = arrivals.iter().map(told).collect();
            let round = seen(bridge, context, 0)?;
            let found: Arrays = bridge.call_method1("aggregate", (round, told))?.extract()?;
            global.copy_from_slice(&joined(&found)?);
            Ok(())
        })?;
        Ok(arrivals.iter().map(|arrival| (arrival.client, f64::from(arrival.copies))).collect())
    }
}

/// The name under which the user's state is saved.
const STATE: &str = "python";

impl State for Part {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        // All parts share one state; it was checked when it was last changed, so it can be written.
        if !saved.values.contains_key(STATE) {
            let text =
                self.call(0, None, |bridge| bridge.call_method0("save")?.extract::<String>());
            if let Ok(text) = text {
                saved.put_value(STATE, &text);
            }
        }
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        let text: String = saved.get_value(STATE)?;
        self.call(0, None, |bridge| bridge.call_method1("restore", (text,)).map(drop))
            .map_err(|error| error.to_string())
    }
}
