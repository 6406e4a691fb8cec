//! Sweeps: the words of `--sweep`, progress, and the table at the end.

use std::path::Path;

use fedcote_sim::comparison::Control;
use fedcote_sim::statistics::MEASURES;
use fedcote_sim::summary::{Spread, tail_rounds};
use fedcote_sim::sweep::{self, PointSummary, SweepSummary};
use fedcote_sim::{Scenario, Tasks};

use super::progress::{Progress, Style};
use crate::error::Error;
use crate::table::{Align, Table};

/// Makes the tasks of a scenario.
type MakeTasks<'a> = &'a dyn Fn(&Scenario) -> Result<Box<dyn Tasks>, Error>;

/// Executes a sweep and shows how far it is.
pub fn run(
    scenario: &Scenario,
    tasks: MakeTasks,
    out: &Path,
    control: &Control,
    style: Style,
) -> Result<Option<SweepSummary>, Error> {
    let points = &scenario.sweep.points;
    let name = |name: &String| name.chars().count();
    let width = points.iter().map(|point| name(&point.name)).max().unwrap_or(0)
        + scenario.general.schemes.iter().map(name).max().unwrap_or(0);
    let progress = Progress::over(sweep::runs(scenario), scenario.general.rounds, width + 9, style);
    let failed = std::cell::RefCell::new(None);
    // The command's own errors say more than the simulator's.
    let make = |scenario: &Scenario| {
        tasks(scenario).map_err(|error| {
            let reason = error.to_string();
            *failed.borrow_mut() = Some(error);
            fedcote_sim::Error::Scenario { place: "task".to_owned(), reason }
        })
    };
    let found = sweep::compare(scenario, &make, out, control, &progress);
    progress.finish();
    found.map_err(|error| failed.take().unwrap_or_else(|| error.into()))
}

/// A line per combination, a column per scheme: the first measure that there is; bold, if asked for, the schemes that no
/// other is separably better than.
pub fn render(summary: &SweepSummary, bold: bool) -> String {
    let schemes = summary.schemes();
    let all = || summary.points.iter().flat_map(|point| &point.schemes);
    let measured = MEASURES.iter().find(|measure| all().any(|s| (measure.over)(s).is_some()));
    let Some(measure) = measured else { return String::new() };
    let keys = summary.keys.iter().map(|key| (key.clone(), Align::Right));
    let names = schemes.iter().map(|name| ((*name).to_owned(), Align::Right));
    let mut table = Table::new(keys.chain(names));
    let factor = if measure.percent { 100.0 } else { 1.0 };
    for (row, point) in summary.points.iter().enumerate() {
        let values = summary.keys.iter().map(|key| point.word(key));
        let of = |name: &&str| point.schemes.iter().find(|scheme| scheme.name == **name);
        let cells = schemes.iter().map(|name| {
            let found = of(name).and_then(|scheme| Some(((measure.over)(scheme)?, scheme.seeds)));
            match found {
                None => "–".to_owned(),
                Some((Spread { mean, .. }, 1)) => format!("{:.2}", factor * mean),
                Some((Spread { mean, std }, _)) => {
                    format!("{:.2} ± {:.2}", factor * mean, factor * std)
                }
            }
        });
        table.push(values.chain(cells));
        for (column, name) in schemes.iter().enumerate() {
            let leads = |leads: &String| leads == measure.name;
            if of(name).is_some_and(|scheme| scheme.leads.iter().any(leads)) {
                table.mark(row, summary.keys.len() + column);
            }
        }
    }
    let mut text = table.render(bold);
    let unit = if measure.percent { ", in percent" } else { "" };
    text += &format!("\n{}{unit}", capital(measure.words));
    let rounds: Vec<u32> = summary.points.iter().map(|point| point.rounds).collect();
    if let [first, rest @ ..] = rounds.as_slice()
        && rest.iter().all(|other| other == first)
    {
        text += &format!(" (the last {} of {first} rounds)", tail_rounds(*first));
    }
    let seeds = all().map(|scheme| scheme.seeds).max().unwrap_or(0);
    text += &match seeds {
        1 => ". One seed: which scheme is better cannot be told from chance.\n".to_owned(),
        seeds => format!(
            ", mean ± deviation over {seeds} seeds; bold where no other scheme is separably better.\n"
        ),
    };
    text + &separable(summary, measure.name)
}

/// Where schemes cannot be told from the one that they are compared with.
fn separable(summary: &SweepSummary, measure: &str) -> String {
    let mut text = String::new();
    for name in summary.schemes() {
        let differs = |point: &PointSummary| {
            let scheme = point.schemes.iter().find(|scheme| scheme.name == name)?;
            Some(scheme.differences.get(measure)?.separable)
        };
        let told: Vec<bool> = summary.points.iter().filter_map(differs).collect();
        let against = summary.points.iter().find_map(|point| point.against.as_deref());
        if let (Some(against), false) = (against, told.is_empty()) {
            let separable = told.iter().filter(|separable| **separable).count();
            text += &format!(
                "{name}: separable from {against} in {separable} of {} settings.\n",
                told.len()
            );
        }
    }
    text
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
