//! `theorem-1` and `theorem-2`: the terms of the convergence bound, and which of them FedCote removes, where clients stand and where
//! they walk; the corollaries are the bound without the term that FedCote is made to remove. `proposition-1`: how far clients' gradients
//! are from the global one, and how far they may be.

use fedcote::bound::{Bound, Training, proposition_1, theorem_2};
use fedcote::{Federation, Options, evaluate, select_or_all};
use fedcote_plot::tables::{Better, Column, Digits, Row, Table};

use crate::document::Document;
use crate::error::Error;
use crate::gradients::{Gradients, Measured, measured};
use crate::request::Request;
use crate::selection::{PAPER, world};
use crate::tables;
use crate::variant::{Share, Variant};

/// Rounds over which gradients are measured.
const ROUNDS: u32 = 50;

const SCHEMES: [&str; 4] = ["fedavg", "fedcote-gradient", "fedcote", "ideal"];
const FILES: [&str; 3] = ["", "non-iid", "unbalanced"];

/// Rounds at which the appearance of walking clients is looked at.
const LOOKS: u32 = 20;

fn scenarios(request: &Request) -> [Variant; 3] {
    let pairs = request.variant(Share::Pairs);
    [request.variant(Share::Iid), pairs.clone(), Variant { unbalance: 9, ..pairs }]
}

/// The bound for each scheme in each scenario: Theorem 1, or Theorem 2 for clients that walk.
pub fn make(
    title: String,
    request: &Request,
    walking: bool,
    smoothness: f64,
    store: Gradients,
) -> Result<Document, Error> {
    let scenarios = scenarios(request).map(|variant| Variant { walking, ..variant });
    let mut tables = Vec::new();
    let mut failed = Vec::new();
    for (file, variant) in FILES.into_iter().zip(&scenarios) {
        let mut bounds: Vec<Vec<Bound>> = vec![Vec::new(); SCHEMES.len()];
        for seed in request.seeds() {
            for (all, bound) in bounds.iter_mut().zip(of_seed(variant, smoothness, seed, store)?) {
                failed = bound.failed.iter().map(ToString::to_string).collect();
                all.push(bound);
            }
        }
        tables.push((file, table(variant.words(), &bounds)));
    }
    let mut text = vec![
        format!(
            "G² and V² are measured over the first {ROUNDS} rounds of training without failures, their largest values; the \
             lowest loss is taken as 0, and L = {smoothness} as given by --smoothness: it scales the first term only. The \
             bound orders schemes; it is no prediction."
        ),
        format!("Conditions of the theorem that do not hold for the paper's own settings: {}.", failed.join("; ")),
        "(a) is there without failures too. FedCote removes the label half of (b), which is the larger one by far with two labels per \
         client; the weight half grows. Corollaries 2 and 3 are the bound without (b). In print χ²G² of (a) stands inside the sum over classes; here it counts once, as in Corollary 1."
            .to_owned(),
    ];
    if walking {
        text.push(format!(
            "Terms are means over {LOOKS} rounds at equal distances, with the failure probabilities of each."
        ));
    }
    Ok(Document { title, text, tables, ..Default::default() })
}

fn of_seed(
    variant: &Variant,
    smoothness: f64,
    seed: u64,
    store: Gradients,
) -> Result<Vec<Bound>, Error> {
    let world = world(variant, seed)?;
    let (federation, draws) = (&*world.federation, world.draws());
    let training = &world.scenario.training;
    let fedcote_sim::scenario::LocalSteps::Same(local_steps) = training.local_steps else {
        return Err(Error::request(
            "training.local_steps: the bound wants one number for everyone",
        ));
    };
    let rounds = ROUNDS.min(world.scenario.general.rounds);
    // Nothing fails while gradients are measured: it does not matter who walks.
    let standing = Variant { walking: false, ..variant.clone() };
    let measured = measured(&standing, local_steps, rounds, seed, store)?;
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
    let all = world.scenario.general.rounds;
    let looks: Vec<u32> = match variant.walking {
        true => (0..LOOKS).map(|look| 1 + look * (all - 1) / (LOOKS - 1)).collect(),
        false => vec![1],
    };
    let mut appearances: [Vec<Vec<f64>>; 4] = Default::default();
    let mut failure = Vec::new();
    for round in looks {
        let mut federation = Federation::clone(federation);
        world.network.failures(round, &mut failure);
        federation.set_failure(failure.clone()).map_err(Error::work)?;
        let weights = federation.weights().to_vec();
        let plain = evaluate(&federation, draws, &weights).map_err(Error::work)?;
        let paper = select_or_all(&federation, draws, &PAPER).map_err(Error::work)?;
        let exact = select_or_all(&federation, draws, &Options::default()).map_err(Error::work)?;
        let found = [plain.appearance, paper.appearance, exact.appearance, weights];
        appearances.iter_mut().zip(found).for_each(|(all, one)| all.push(one));
    }
    let bound = |all: &Vec<Vec<f64>>| {
        let all: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        theorem_2(federation, draws, &all, &constants).map_err(Error::work)
    };
    appearances.iter().map(bound).collect()
}

/// Proposition 1: squared distances of clients' gradients from the global one, and their bound.
pub fn gaps(title: String, request: &Request, store: Gradients) -> Result<Document, Error> {
    let mut rows = Vec::new();
    for variant in scenarios(request) {
        let mut found: [Vec<f64>; 5] = Default::default();
        for seed in request.seeds() {
            let values = gaps_of_seed(&variant, seed, store)?;
            found.iter_mut().zip(values).for_each(|(all, one)| all.push(one));
        }
        let cells = found.iter().map(|values| tables::cell(values)).collect();
        rows.push(Row { name: variant.words(), cells, apart: false });
    }
    let column = |name: &str| Column::new(name, Better::Neither, Digits::Significant(3));
    let table = Table {
        title: String::new(),
        corner: "data".into(),
        columns: vec![
            column("‖∇F_i − ∇F‖²"),
            column("from features"),
            column("from labels"),
            column("bound"),
            column("largest share of the bound"),
        ],
        rows,
    };
    let text = format!(
        "Means over clients and the first {ROUNDS} rounds of training without failures: the squared distance of a client's gradient from the \
         global one, the two sums of Proposition 1, and twice their sum, which bounds it. The last column is the largest quotient of distance \
         and bound over clients and rounds; above 1 the proposition would be wrong."
    );
    Ok(Document { title, text: vec![text], tables: vec![("", table)], ..Default::default() })
}

fn gaps_of_seed(variant: &Variant, seed: u64, store: Gradients) -> Result<[f64; 5], Error> {
    let world = world(variant, seed)?;
    let federation = &*world.federation;
    let fedcote_sim::scenario::LocalSteps::Same(local_steps) = world.scenario.training.local_steps
    else {
        return Err(Error::request("training.local_steps: must be one number for everyone"));
    };
    let rounds = ROUNDS.min(world.scenario.general.rounds);
    let measured = measured(variant, local_steps, rounds, seed, store)?;
    let mut values = [0.0f64; 5];
    let count = measured.gaps.iter().map(Vec::len).sum::<usize>() as f64;
    for (round, gaps) in measured.gaps.iter().enumerate() {
        for (client, &gap) in gaps.iter().enumerate() {
            let mut distances = vec![0.0; federation.classes()];
            for cell in measured.cells.iter().filter(|cell| cell.client == client) {
                distances[cell.class] = cell.deviation[round];
            }
            let norms = &measured.class_norms[round];
            let bound =
                proposition_1(federation, client, &distances, norms).map_err(Error::work)?;
            let means = [gap, bound.feature, bound.label, bound.total()];
            values.iter_mut().zip(means).for_each(|(sum, value)| *sum += value / count);
            values[4] = values[4].max(gap / bound.total());
        }
    }
    Ok(values)
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
            tables::cell(&bounds.iter().map(value).collect::<Vec<_>>())
        };
        let cells = vec![
            over(&|bound| bound.initial),
            over(&|bound| bound.heterogeneity),
            over(&|bound| bound.weights),
            over(&|bound| bound.labels),
            over(&Bound::total),
            over(&Bound::corollary),
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
            column("without (b)"),
        ],
        rows: SCHEMES.iter().zip(bounds).map(row).collect(),
    }
}
