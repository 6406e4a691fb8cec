//! The runs behind the chosen artefacts, and the artefacts made from them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fedcote_sim::comparison::{Event, Listener, RunId};
use fedcote_sim::remote::Remote;

use crate::artefact::{Artefact, Body, Other};
use crate::document::{Document, Origin};
use crate::error::Error;
use crate::options::Options;
use crate::request::Request;
use crate::runs::{self, Run, Store};
use crate::variant::Task;
use crate::{
    calibrate, curves, estimators, heterogeneity, placement, readings, rivals, selection, settings,
    tables, theorem, theory, uploads,
};

/// Shows progress: what happens in runs, and lines between them.
pub trait Watch: Listener {
    /// A line about what was done or begins now.
    fn say(&self, _line: &str) {}
}

impl<F: Fn(&RunId, Event) + Sync> Watch for F {}

/// An artefact that was written.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its name.
    pub name: &'static str,
    /// Its Markdown page.
    pub page: PathBuf,
    /// Its tables in Markdown, to be read at once.
    pub text: String,
}

/// Chosen artefacts with the runs that they need.
pub struct Plan {
    options: Options,
    request: Request,
    store: Store,
    artefacts: Vec<(&'static Artefact, Vec<Run>)>,
    runs: Vec<Run>,
    rounds: u32,
}

impl Plan {
    pub(crate) fn new(
        options: Options,
        request: Request,
        artefacts: Vec<&'static Artefact>,
    ) -> Result<Self, Error> {
        let with_runs = |artefact| Ok((artefact, needed(artefact, &request)?));
        let artefacts: Vec<(&Artefact, Vec<Run>)> =
            artefacts.into_iter().map(with_runs).collect::<Result<_, Error>>()?;
        let runs = runs::distinct(artefacts.iter().flat_map(|(_, runs)| runs).cloned());
        let rounds = match runs.first() {
            Some(run) => {
                run.variant.scenario(std::slice::from_ref(&run.scheme), &[1])?.general.rounds
            }
            None => 0,
        };
        let store = Store::new(&options.out);
        Ok(Self { options, request, store, artefacts, runs, rounds })
    }

    /// The runs of the shard that have not ended yet.
    pub fn missing(&self) -> usize {
        if self.options.existing {
            return 0;
        }
        self.own().iter().filter(|run| !self.store.has(run)).count()
    }

    /// Rounds of the first run.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The schemes of all runs, a name per run.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|run| run.scheme.as_str())
    }

    fn own(&self) -> Vec<&Run> {
        self.options.shard.of(&self.runs)
    }

    /// Plays the runs that are missing and writes the artefacts. An artefact whose runs are not all there, because
    /// another shard has them, is left out; when only what exists is asked for, one without any run. `None` when it was stopped; the same call continues.
    /// Rounds are computed by `remote`, if there is one.
    pub fn make(
        &self,
        stop: &AtomicBool,
        remote: Option<&dyn Remote>,
        watch: &dyn Watch,
    ) -> Result<Option<Vec<Made>>, Error> {
        let Options { threads, out, command, .. } = &self.options;
        let own = self.own();
        let origin = Origin::new(command.clone());
        let cut = if self.request.is_cut() { "-cut" } else { "" };
        let folder = out.join(format!("{}{cut}", self.request.network));
        let mut all = Vec::new();
        let named: usize = self.artefacts.iter().map(|(_, runs)| runs.len()).sum();
        if named > self.runs.len() {
            watch.say(&format!(
                "{} artefacts name {named} runs, {} different ones; each is executed and read once",
                self.artefacts.len(),
                self.runs.len()
            ));
        }
        for (artefact, runs) in &self.artefacts {
            let needed: HashSet<&Run> = runs.iter().collect();
            let part: Vec<&Run> = own.iter().copied().filter(|run| needed.contains(run)).collect();
            if !self.options.existing && !self.store.play(&part, *threads, stop, remote, watch)? {
                return Ok(None);
            }
            let Some(document) = self.document(artefact)? else {
                let left = runs.iter().filter(|run| !self.store.has(run)).count();
                let remedy = match self.options.existing {
                    true => "it is left out",
                    false => "put the run folders of all parts together",
                };
                let (name, all) = (artefact.name, runs.len());
                watch.say(&format!("{name}: {left} of {all} runs are missing; {remedy}"));
                continue;
            };
            let file = match (artefact.task, self.request.task) {
                (None, Task::Cifar10) => format!("{}-cifar10", artefact.name),
                _ => artefact.name.to_owned(),
            };
            let page = document.write(&folder, &file, &origin)?;
            watch.say(&format!("{}: {}", artefact.name, page.display()));
            all.push(Made { name: artefact.name, page, text: document.text() });
        }
        Ok(Some(all))
    }

    /// Makes an artefact; `None` when runs are missing.
    fn document(&self, artefact: &Artefact) -> Result<Option<Document>, Error> {
        let request = &artefact.adapt(&self.request);
        let cuts = match request.cuts() {
            cuts if cuts.is_empty() => String::new(),
            cuts => format!(" (cut down: {cuts})"),
        };
        let (name, what, out) = (artefact.name, artefact.what, &self.options.out);
        let bare = format!("{name}: {what}{cuts}");
        let title = format!("{name}: {what}, {} network{cuts}", request.network);
        let (seeds, store) = (&request.seeds(), &self.store);
        let existing = self.options.existing;
        let read = |grid| tables::read(grid, seeds, store, existing);
        Ok(match (&artefact.body, artefact.grid(request)) {
            (Body::Table(_), Some(grid)) => {
                read(&grid)?.map(|cells| tables::compared(name, title, &grid, &cells))
            }
            (Body::Readings, Some(grid)) => {
                read(&grid)?.map(|cells| readings::make(title, &grid, &cells))
            }
            (Body::Beyond, Some(grid)) => {
                read(&grid)?.map(|cells| tables::tails(title, &grid, &cells))
            }
            (Body::Rivals, Some(grid)) => {
                read(&grid)?.map(|cells| rivals::make(bare, &grid, &cells))
            }
            (Body::Calibration, Some(grid)) => {
                tables::read(&grid, seeds, store, false)?.map(|cells| calibrate::make(bare, &cells))
            }
            (Body::Placement, Some(grid)) => tables::read(&grid, seeds, store, false)?
                .map(|cells| placement::make(bare, &grid, &cells)),
            (Body::Curves(curve, _), Some(grid)) => read(&grid)?
                .map(|cells| curves::draw(*curve, title, &grid, seeds, &cells, store))
                .transpose()?,
            (Body::Other(kind), _) => Some(match kind {
                Other::Standards => settings::standards(title, request)?,
                Other::Links => settings::links(title, request)?,
                Other::Enumeration => theory::enumeration(bare),
                Other::OneLabel
                | Other::Gradients
                | Other::GradientRatio
                | Other::GradientDeviation => heterogeneity::make(*kind, bare, request, out)?,
                Other::Selection => selection::clients(title, request)?,
                Other::Draws => selection::draws(title, request)?,
                Other::Theorem | Other::TheoremWalking => {
                    let smoothness = self.options.smoothness.unwrap_or(1.0);
                    let walking = *kind == Other::TheoremWalking;
                    theorem::make(title, request, walking, smoothness, out)?
                }
                Other::Gaps => theorem::gaps(bare, request, out)?,
                Other::Uploads => uploads::make(title, request)?,
                Other::Estimators => estimators::make(bare, request)?,
            }),
            (_, None) => None,
        })
    }
}

/// The runs that an artefact needs.
fn needed(artefact: &Artefact, request: &Request) -> Result<Vec<Run>, Error> {
    let Some(grid) = artefact.grid(request) else { return Ok(Vec::new()) };
    if grid.rows.is_empty() {
        let all = artefact.grid(&Request { schemes: Vec::new(), ..request.clone() });
        let names: Vec<String> =
            all.into_iter().flat_map(|grid| grid.rows).map(|row| row.name).collect();
        let reason =
            format!("{} has none of them; its schemes are {}", artefact.name, names.join(", "));
        return Err(Error::option("schemes", reason));
    }
    Ok(runs::of_grid(&grid, &artefact.adapt(request).seeds()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::artefact::ARTEFACTS;

    #[test]
    fn all_artefacts_together_plan_no_run_twice() {
        let plan = Options { artefacts: vec!["all".into()], ..Options::default() }.plan().unwrap();
        let named: usize = plan.artefacts.iter().map(|(_, runs)| runs.len()).sum();
        let different: HashSet<&Run> = plan.runs.iter().collect();
        assert_eq!(different.len(), plan.runs.len());
        assert!(named > plan.runs.len(), "{named} runs are named, {} planned", plan.runs.len());
        for (artefact, runs) in &plan.artefacts {
            assert!(runs.iter().all(|run| different.contains(run)), "{}", artefact.name);
        }
    }

    #[test]
    fn a_run_that_two_artefacts_share_is_played_and_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let options = |artefacts: &[&str]| Options {
            artefacts: artefacts.iter().map(|&name| name.to_owned()).collect(),
            rounds: Some(1),
            seeds: Some(vec![1]),
            schemes: vec!["fedavg".into(), "ideal".into()],
            out: folder.path().to_owned(),
            ..Options::default()
        };
        let table = options(&["table-4"]).plan().unwrap();
        let shares = |artefact: &&Artefact| {
            let other = artefact.name != "table-4";
            let plan = other.then(|| options(&[artefact.name]).plan().ok()).flatten();
            plan.is_some_and(|plan| plan.runs.iter().any(|run| table.runs.contains(run)))
        };
        let other =
            ARTEFACTS.iter().find(|artefact| shares(artefact)).expect("one that shares").name;
        let plan = options(&["table-4", other]).plan().unwrap();
        let named: usize = plan.artefacts.iter().map(|(_, runs)| runs.len()).sum();
        assert!(named > plan.runs.len());
        let played = std::sync::atomic::AtomicUsize::new(0);
        let watch = |_: &RunId, event: Event| {
            if let Event::Finished(_) = event {
                played.fetch_add(1, Ordering::Relaxed);
            }
        };
        let made = plan.make(&AtomicBool::new(false), None, &watch).unwrap().unwrap();
        assert_eq!(made.len(), 2);
        assert_eq!(played.load(Ordering::Relaxed), plan.runs.len());
        assert_eq!(plan.store.reads.load(Ordering::Relaxed), plan.runs.len());
    }

    #[test]
    fn what_exists_is_shown_and_the_rest_is_said_not_to_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let make = |artefact: &str, schemes: &[&str], existing| {
            let options = Options {
                artefacts: vec![artefact.to_owned()],
                rounds: Some(1),
                seeds: Some(vec![1]),
                schemes: schemes.iter().map(|&name| name.to_owned()).collect(),
                existing,
                out: folder.path().to_owned(),
                ..Options::default()
            };
            let plan = options.plan().unwrap();
            let watch = |_: &RunId, _: Event| assert!(!existing, "nothing is played");
            (plan.missing(), plan.make(&AtomicBool::new(false), None, &watch).unwrap().unwrap())
        };
        assert_eq!(make("table-4", &["fedavg"], true).1.len(), 0, "no run of it is there");
        make("table-4", &["fedavg"], false);
        let (missing, made) = make("table-4", &["fedavg", "ideal"], true);
        assert_eq!(missing, 0);
        let rows: Vec<&str> = made[0].text.lines().filter(|line| line.contains('|')).collect();
        let ideal: Vec<&&str> = rows.iter().filter(|row| row.contains("| ideal |")).collect();
        assert!(!ideal.is_empty() && ideal.iter().all(|row| row.contains("not run")), "{rows:?}");
        let fedavg = rows.iter().filter(|row| row.contains("| fedavg |"));
        assert!(fedavg.clone().count() > 0 && fedavg.clone().all(|row| !row.contains("not run")));
        // Curves have no paper's number to tell: the table beside them does.
        make("figure-8", &["fedavg"], false);
        let (_, made) = make("figure-8", &["fedavg", "ideal"], true);
        assert!(made[0].text.contains("not run"));
    }
}
