//! The runs behind the chosen artefacts, and the artefacts made from them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fedcote_sim::comparison::{Event, Listener, RunId};
use fedcote_sim::remote::Remote;

use crate::artefact::{Artefact, Body, Curve, Grid, Other};
use crate::document::{Document, Origin};
use crate::error::Error;
use crate::gradients::Gradients;
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

/// An artefact with the runs that it needs.
struct Needed {
    artefact: &'static Artefact,
    grid: Option<Grid>,
    /// The seeds of each column.
    seeds: Vec<Vec<u64>>,
    runs: Vec<Run>,
    /// Not all of the request is there: other rounds, fewer seeds, a column without runs.
    partial: bool,
}

/// Chosen artefacts with the runs that they need.
pub struct Plan {
    options: Options,
    request: Request,
    store: Store,
    artefacts: Vec<Needed>,
    runs: Vec<Run>,
    rounds: u32,
}

impl Plan {
    pub(crate) fn new(
        options: Options,
        request: Request,
        artefacts: Vec<&'static Artefact>,
    ) -> Result<Self, Error> {
        let store = Store::new(&options.out);
        let with_runs = |artefact| needed(artefact, &request, &store, options.existing);
        let artefacts: Vec<Needed> =
            artefacts.into_iter().map(with_runs).collect::<Result<_, Error>>()?;
        let runs = runs::distinct(artefacts.iter().flat_map(|needed| &needed.runs).cloned());
        let rounds = runs.first().map_or(Ok(0), |run| run.variant.rounds())?;
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
        let mut all = Vec::new();
        let named: usize = self.artefacts.iter().map(|needed| needed.runs.len()).sum();
        if named > self.runs.len() {
            watch.say(&format!(
                "{} artefacts name {named} runs, {} different ones; each is executed and read once",
                self.artefacts.len(),
                self.runs.len()
            ));
        }
        for needed in &self.artefacts {
            let Needed { artefact, runs, .. } = needed;
            let wanted: HashSet<&Run> = runs.iter().collect();
            let part: Vec<&Run> = own.iter().copied().filter(|run| wanted.contains(run)).collect();
            if !self.options.existing && !self.store.play(&part, *threads, stop, remote, watch)? {
                return Ok(None);
            }
            let left = runs.iter().filter(|run| !self.store.has(run)).count();
            let document = match self.document(needed) {
                Err(Error::NotStored(what)) => {
                    watch.say(&format!("{}: {what}; it is left out", artefact.name));
                    continue;
                }
                document => document?,
            };
            let Some(document) = document else {
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
            let folder = out.join(self.folder(needed.partial));
            if let Some(other) = document.replaces(&folder, &file) {
                watch.say(&format!("{}: replaces \"{other}\"", artefact.name));
            }
            let page = document.write(&folder, &file, &origin)?;
            let missing = match left {
                0 => String::new(),
                left => format!("; {left} of {} runs are missing", runs.len()),
            };
            watch.say(&format!("{}: {}{missing}", artefact.name, page.display()));
            all.push(Made { name: artefact.name, page, text: document.text() });
        }
        Ok(Some(all))
    }

    /// The name of the folder for pages; those of other numbers of rounds do not replace each other.
    fn folder(&self, partial: bool) -> String {
        let network = self.request.network;
        match (partial, self.request.rounds) {
            (true, _) => format!("{network}-existing"),
            (false, Some(rounds)) => format!("{network}-cut-r{rounds}"),
            (false, None) if self.request.is_cut() => format!("{network}-cut"),
            (false, None) => network.to_string(),
        }
    }

    /// Makes an artefact; `None` when runs are missing.
    fn document(&self, needed: &Needed) -> Result<Option<Document>, Error> {
        let Needed { artefact, grid, seeds, partial, .. } = needed;
        let request = &artefact.adapt(&self.request);
        let there = partial.then(|| "the runs that are there".to_owned());
        let cuts = [request.cuts()].into_iter().filter(|cuts| !cuts.is_empty()).chain(there);
        let cuts = match cuts.collect::<Vec<_>>().join(", ") {
            cuts if cuts.is_empty() => cuts,
            cuts => format!(" (cut down: {cuts})"),
        };
        let (name, what, out) = (artefact.name, artefact.what, self.options.out.as_path());
        let bare = format!("{name}: {what}{cuts}");
        let title = format!("{name}: {what}, {} network{cuts}", request.network);
        let (store, existing) = (&self.store, self.options.existing);
        let read = |grid| tables::read(grid, seeds, store, existing);
        let gradients = Gradients { out, existing };
        let mut document = match (&artefact.body, grid) {
            (Body::Table(_), Some(grid)) => {
                read(grid)?.map(|cells| tables::compared(name, title, grid, &cells))
            }
            (Body::Readings, Some(grid)) => {
                read(grid)?.map(|cells| readings::make(title, grid, &cells))
            }
            (Body::Beyond, Some(grid)) => {
                read(grid)?.map(|cells| tables::tails(title, grid, &cells))
            }
            (Body::Rivals, Some(grid)) => read(grid)?.map(|cells| rivals::make(bare, grid, &cells)),
            (Body::Calibration, Some(grid)) => {
                tables::read(grid, seeds, store, false)?.map(|cells| calibrate::make(bare, &cells))
            }
            (Body::Placement, Some(grid)) => tables::read(grid, seeds, store, false)?
                .map(|cells| placement::make(bare, grid, &cells)),
            (Body::Curves(curve, _), Some(grid)) => read(grid)?
                .map(|cells| curves::draw(*curve, title, grid, seeds, &cells, store))
                .transpose()?,
            (Body::Other(kind), _) => Some(match kind {
                Other::Standards => settings::standards(title, request)?,
                Other::Links => settings::links(title, request)?,
                Other::Enumeration => theory::enumeration(bare),
                Other::OneLabel
                | Other::Gradients
                | Other::GradientRatio
                | Other::GradientDeviation => heterogeneity::make(*kind, bare, request, gradients)?,
                Other::Selection => selection::clients(title, request)?,
                Other::Draws => selection::draws(title, request)?,
                Other::Theorem | Other::TheoremWalking => {
                    let smoothness = self.options.smoothness.unwrap_or(1.0);
                    let walking = *kind == Other::TheoremWalking;
                    theorem::make(title, request, walking, smoothness, gradients)?
                }
                Other::Gaps => theorem::gaps(bare, request, gradients)?,
                Other::Uploads => uploads::make(title, request)?,
                Other::Estimators => estimators::make(bare, request)?,
            }),
            (_, None) => None,
        };
        if let (true, Some(document), Some(grid)) = (existing, &mut document, grid) {
            document.text.insert(0, tables::extents(grid, seeds)?);
            let losses = matches!(artefact.body, Body::Curves(Curve::MeanLoss, _));
            if losses && grid.columns.iter().any(|column| !column.variant.every_loss) {
                let every = "Runs that have the loss of every round are not there: this is the mean over every fiftieth round and the last one.";
                document.text.insert(1, every.to_owned());
            }
        }
        Ok(document)
    }
}

/// The runs that an artefact needs; of what is there, if only that is asked for.
fn needed(
    artefact: &'static Artefact,
    request: &Request,
    store: &Store,
    existing: bool,
) -> Result<Needed, Error> {
    let asked = artefact.adapt(request).seeds();
    let Some(mut grid) = artefact.grid(request) else {
        let (seeds, runs) = (Vec::new(), Vec::new());
        return Ok(Needed { artefact, grid: None, seeds, runs, partial: false });
    };
    if grid.rows.is_empty() {
        let all = artefact.grid(&Request { schemes: Vec::new(), ..request.clone() });
        let names: Vec<String> =
            all.into_iter().flat_map(|grid| grid.rows).map(|row| row.name).collect();
        let reason =
            format!("{} has none of them; its schemes are {}", artefact.name, names.join(", "));
        return Err(Error::option("schemes", reason));
    }
    let mut seeds = vec![asked.clone(); grid.columns.len()];
    let mut partial = false;
    // A fit needs all of its runs.
    if existing && !matches!(artefact.body, Body::Calibration | Body::Placement) {
        let variants =
            |grid: &Grid| grid.columns.iter().map(|c| c.variant.clone()).collect::<Vec<_>>();
        let before = (variants(&grid), seeds);
        seeds = runs::there(&mut grid, &asked, store);
        partial = before != (variants(&grid), seeds.clone());
    }
    let runs = runs::of_grid(&grid, &asked);
    Ok(Needed { artefact, grid: Some(grid), seeds, runs, partial })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::artefact::ARTEFACTS;

    #[test]
    fn all_artefacts_together_plan_no_run_twice() {
        let plan = Options { artefacts: vec!["all".into()], ..Options::default() }.plan().unwrap();
        let named: usize = plan.artefacts.iter().map(|needed| needed.runs.len()).sum();
        let different: HashSet<&Run> = plan.runs.iter().collect();
        assert_eq!(different.len(), plan.runs.len());
        assert!(named > plan.runs.len(), "{named} runs are named, {} planned", plan.runs.len());
        for Needed { artefact, runs, .. } in &plan.artefacts {
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
        let named: usize = plan.artefacts.iter().map(|needed| needed.runs.len()).sum();
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
        // Of one run there is no deviation: the one that is shown is the paper's.
        assert!(fedavg.clone().all(|row| row.matches('±').count() <= 4), "{rows:?}");
        // Curves have no paper's number to tell: the table beside them does.
        make("figure-8", &["fedavg"], false);
        let (_, made) = make("figure-8", &["fedavg", "ideal"], true);
        assert!(made[0].text.contains("not run"));
    }

    fn small(out: &std::path::Path, artefact: &str, rounds: Option<u32>, seeds: &[u64]) -> Options {
        Options {
            artefacts: vec![artefact.to_owned()],
            rounds,
            seeds: Some(seeds.to_vec()),
            schemes: vec!["fedavg".into(), "ideal".into()],
            out: out.to_owned(),
            ..Options::default()
        }
    }

    fn made(options: Options) -> String {
        let plan = options.plan().unwrap();
        let made = plan.make(&AtomicBool::new(false), None, &|_: &RunId, _: Event| ());
        std::fs::read_to_string(&made.unwrap().unwrap()[0].page).unwrap()
    }

    /// Regression: columns of different numbers of rounds could not stand in one table, and cut-down pages of different numbers of
    /// rounds replaced each other.
    #[test]
    fn each_column_shows_the_longest_runs_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let one = made(small(out, "table-4", Some(1), &[1]));
        // Its column u = 0.5 is the second half of table 4.
        made(small(out, "table-6", Some(2), &[1]));
        let fedavg = |seeds| Options {
            schemes: vec!["fedavg".into()],
            ..small(out, "table-6", Some(2), seeds)
        };
        made(fedavg(&[2]));
        let there = |seeds| Options { existing: true, ..small(out, "table-4", None, seeds) };
        // Seed 2 has no run without failures.
        let page = made(there(&[1, 2, 3]));
        let told = "Made of the runs that are there. i.i.d.: 1 rounds, seed 1; two labels per client: 2 rounds, seed 1.";
        assert!(page.contains(told) && page.contains("the runs that are there)\n"), "{page}");
        assert!(!page.contains("| not run |"), "{page}");
        let alone = made(Options { schemes: vec!["fedavg".into()], ..there(&[1, 2, 3]) });
        assert!(alone.contains("two labels per client: 2 rounds, seeds 1, 2."), "{alone}");
        // What is given stays.
        let given = made(Options { existing: true, ..small(out, "table-4", Some(1), &[1]) });
        assert!(given.contains("two labels per client: 1 rounds"), "{given}");
        // Pages of other numbers of rounds have other folders.
        assert!(one.contains("(cut down: 1 rounds, 1 seed, 2 schemes)"));
        assert!(out.join("calibrated-cut-r1/table-4.md").is_file());
        assert!(out.join("calibrated-cut-r2/table-6.md").is_file());
    }

    #[test]
    fn the_mean_loss_is_made_of_plain_runs_where_no_others_are_there() {
        let folder = tempfile::tempdir().unwrap();
        made(small(folder.path(), "table-4", Some(1), &[1]));
        let there = Options { existing: true, ..small(folder.path(), "figure-9", None, &[1]) };
        let page = made(there);
        assert!(page.contains("this is the mean over every fiftieth round"), "{page}");
    }
}
