//! What there is to make, what it needs, what of that is there.

use std::collections::HashSet;

use crate::artefact::{ARTEFACTS, Body};
use crate::request::Request;
use crate::runs::{self, Run, Store};

/// All artefacts.
#[derive(Debug, Clone)]
pub struct List {
    /// The artefacts, in the paper's order.
    pub artefacts: Vec<Listed>,
    /// The number of distinct runs in the folder that have ended.
    pub runs: usize,
    /// The seconds that those runs took.
    pub seconds: f64,
}

/// One artefact.
#[derive(Debug, Clone)]
pub struct Listed {
    /// What the user types.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// The runs that it needs; `None` if it is computed without runs.
    pub runs: Option<usize>,
    /// The runs of those that have ended.
    pub finished: usize,
    /// The mean seconds per run of those that have ended.
    pub seconds_per_run: Option<f64>,
}

pub(crate) fn of(request: &Request, store: &Store) -> List {
    let mut timed: HashSet<Run> = HashSet::new();
    let mut list = List { artefacts: Vec::new(), runs: 0, seconds: 0.0 };
    for artefact in &ARTEFACTS {
        let grid = artefact.grid(request);
        let runs = grid
            .map_or_else(Vec::new, |grid| runs::of_grid(&grid, &artefact.adapt(request).seeds()));
        let (mut finished, mut total) = (0, 0.0);
        for run in &runs {
            let Some(seconds) = store.seconds(run) else { continue };
            finished += 1;
            total += seconds;
            if timed.insert(run.clone()) {
                list.seconds += seconds;
            }
        }
        list.artefacts.push(Listed {
            name: artefact.name,
            what: artefact.what,
            runs: (!matches!(artefact.body, Body::Other(_))).then_some(runs.len()),
            finished,
            seconds_per_run: (finished > 0).then(|| total / finished as f64),
        });
    }
    list.runs = timed.len();
    list
}
