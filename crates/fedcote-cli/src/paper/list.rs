//! `fedcote paper --list`: what there is to make, what it needs, what of that is there.

use super::artefact::{ARTEFACTS, Body};
use super::request::Request;
use super::runs::{self, Store};
use crate::error::Error;
use crate::table::{Align, Table, styled};

/// Prints the list for this request.
pub fn print(request: &Request, store: &Store) -> Result<(), Error> {
    let mut table = Table::new([
        ("artefact", Align::Left),
        ("runs", Align::Right),
        ("there", Align::Right),
        ("s a run", Align::Right),
        ("", Align::Left),
    ]);
    let mut timed: Vec<(runs::Run, f64)> = Vec::new();
    for artefact in &ARTEFACTS {
        let grid = artefact.grid(request);
        let runs = grid
            .map_or_else(Vec::new, |grid| runs::of_grid(&grid, &artefact.adapt(request).seeds()));
        let seconds: Vec<f64> = runs.iter().filter_map(|run| store.seconds(run)).collect();
        for run in &runs {
            if let Some(seconds) =
                store.seconds(run).filter(|_| !timed.iter().any(|(r, _)| r == run))
            {
                timed.push((run.clone(), seconds));
            }
        }
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let none = matches!(artefact.body, Body::Other(_));
        table.push([
            artefact.name.to_owned(),
            if none { "–".to_owned() } else { runs.len().to_string() },
            if none { String::new() } else { seconds.len().to_string() },
            if seconds.is_empty() { String::new() } else { format!("{mean:.1}") },
            artefact.what.to_owned(),
        ]);
    }
    let mut text = table.render(styled());
    text += &format!(
        "\nRuns of the {} network{}; artefacts share runs. Seconds are those measured for runs that are there.\n",
        request.network,
        request.rounds.map_or(String::new(), |rounds| format!(", {rounds} rounds")),
    );
    if !timed.is_empty() {
        let total: f64 = timed.iter().map(|(_, seconds)| seconds).sum();
        text += &format!("{} runs are there; they took {total:.0} s.\n", timed.len());
    }
    crate::output::print(&text)
}
