//! `theorem-1`: the terms of the convergence bound, and which of them FedCote removes.

use std::path::Path;

use fedcote::bound::{Bound, Training, theorem_1};
use fedcote::{Options, evaluate, select};
use fedcote_plot::tables::{Better, Column, Digits, Row, Table};
use fedcote_sim::summary::Spread;

use crate::document::Document;
use crate::error::Error;
use crate::gradients::{Measured, measured};
use crate::request::Request;
use crate::selection::{PAPER, world};
use crate::variant::{Share, Variant};

/// Rounds over which gradients are measured.
const ROUNDS: u32 = 50;

const SCHEMES: [&str; 4] = ["fedavg", "fedcote-gradient", "fedcote", "ideal"];
const FILES: [&str; 3] = ["", "non-iid", "unbalanced"];

/// The bound for each scheme in each scenario.
pub fn make(
    title: String,
    request: &Request,
    smoothness: f64,
    out: &Path,
) -> Result<Document, Error> {
    let pairs = request.variant(Share::Pairs);
    let scenarios = [request.variant(Share::Iid), pairs.clone(), Variant { unbalance: 9, ..pairs }];
    let mut tables = Vec::new();
    let mut failed = Vec::new();
    for (file, variant) in FILES.into_iter().zip(&scenarios) {
        let mut bounds: Vec<Vec<Bound>> = vec![Vec::new(); SCHEMES.len()];
        for seed in request.seeds() {
            for (all, bound) in bounds.iter_mut().zip(of_seed(variant, smoothness, seed, out)?) {
                failed = bound.failed.iter().map(ToString::to_string).collect();
                all.push(bound);
            }
        }
        tables.push((file, table(variant.words(), &bounds)));
    }
    let text = vec![
        format!(
            "G² and V² are measured over the first {ROUNDS} rounds of training without failures, their largest values; the \
             lowest loss is taken as 0, and L = {smoothness} as given by --smoothness: it scales the first term only. The \
             bound orders schemes; it is no prediction."
        ),
        format!("Conditions of the theorem that do not hold for the paper's own settings: {}.", failed.join("; ")),
        "(a) is there without failures too. FedCote removes the label half of (b); the exact solver keeps the weight half \
         small as well. In print χ²G² of (a) stands inside the sum over classes; here it counts once, as in Corollary 1."
            .to_owned(),
    ];
    Ok(Document { title, text, tables, figures: Vec::new() })
}

fn of_seed(variant: &Variant, smoothness: f64, seed: u64, out: &Path) -> Result<Vec<Bound>, Error> {
    let world = world(variant, seed)?;
    let (federation, draws) = (&*world.federation, world.draws());
    let training = &world.scenario.training;
    let fedcote_sim::scenario::LocalSteps::Same(local_steps) = training.local_steps else {
        return Err(Error::request(
            "training.local_steps: the bound wants one number for everyone",
        ));
    };
    let rounds = ROUNDS.min(world.scenario.general.rounds);
    let measured = measured(variant, local_steps, rounds, seed, out)?;
    let deviation = deviations(&measured, federation.len(), federation.classes());
    let constants = Training {
        smoothness,
        initial_gap: measured.initial_loss,
        gradient_norm: largest(&measured.norm),
        class_deviation: &deviation,
        rounds: world.scenario.general.rounds.into(),
        local_steps: local_steps.into(),
        rate: None,
        as_printed: false,
    };
    let plain = evaluate(federation, draws, federation.weights()).map_err(Error::work)?;
    let paper = select(federation, draws, &PAPER).map_err(Error::work)?;
    let exact = select(federation, draws, &Options::default()).map_err(Error::work)?;
    let appearances: [&[f64]; 4] =
        [&plain.appearance, &paper.appearance, &exact.appearance, federation.weights()];
    let bound =
        |appearance| theorem_1(federation, draws, appearance, &constants).map_err(Error::work);
    appearances.into_iter().map(bound).collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The largest V² of each class at each client; 0 for a class that a client does not have, where it has no weight.
fn deviations(measured: &Measured, clients: usize, classes: usize) -> Vec<f64> {
    let mut all = vec![0.0; clients * classes];
    for cell in &measured.cells {
        all[cell.client * classes + cell.class] = largest(&cell.deviation);
    }
    all
}

fn table(title: String, bounds: &[Vec<Bound>]) -> Table {
    let column = |name: &str| Column::new(name, Better::Lower, Digits::Significant(3));
    let row = |(name, bounds): (&&str, &Vec<Bound>)| {
        let over = |value: &dyn Fn(&Bound) -> f64| {
            Spread::of(&bounds.iter().map(value).collect::<Vec<_>>()).into()
        };
        let cells = vec![
            over(&|bound| bound.initial),
            over(&|bound| bound.heterogeneity),
            over(&|bound| bound.weights),
            over(&|bound| bound.labels),
            over(&Bound::total),
        ];
        Row { name: (*name).to_owned(), cells, apart: *name == "ideal" }
    };
    Table {
        title,
        corner: "scheme".into(),
        columns: vec![
            column("start"),
            column("(a) non-i.i.d. data"),
            column("(b) weights"),
            column("(b) labels"),
            column("bound"),
        ],
        rows: SCHEMES.iter().zip(bounds).map(row).collect(),
    }
}
