//! How biased is a server that computes its selection for independent draws with an upload each, when it draws
//! systematically or has one upload a client? And how wrong is the closed form where it takes over from the exact models?
//!
//! `cargo run --release -p fedcote --example bias`

use fedcote::appearance::{AppearanceModel, Independent, PerClient, Systematic};
use fedcote::draw::label_order;
use fedcote::random::{Key, Purpose};
use fedcote::{Draws, Error, Federation, FederationSpec, Options, Uploads, evaluate_for, select};
use rand::RngExt;

/// Ten labels, two a client, a hundred samples or so each; failures uniform between 0 and `worst`.
fn federation(clients: usize, worst: f64, seed: u64) -> Result<Federation, Error> {
    let mut rng = Key::new(seed, Purpose::Data).stream();
    let mut counts = vec![0.0; 10 * clients];
    for (client, row) in counts.chunks_exact_mut(10).enumerate() {
        let pair = 2 * (client % 5);
        row[pair] = (50.0 + 100.0 * rng.random::<f64>()).round();
        row[pair + 1] = (50.0 + 100.0 * rng.random::<f64>()).round();
    }
    let failure = (0..clients).map(|_| worst * rng.random::<f64>()).collect();
    FederationSpec { ids: None, classes: 10, counts, failure }.check()
}

/// The largest relative error of an appearance.
fn largest(found: &[f64], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// The mean relative error of an appearance.
fn mean(found: &[f64], wanted: &[f64]) -> f64 {
    let sum: f64 = found.iter().zip(wanted).map(|(a, b)| (a / b - 1.0).abs()).sum();
    sum / found.len() as f64
}

fn ignoring_the_procedure() -> Result<(), Error> {
    println!(
        "Selection for independent draws and an upload each, used otherwise (means over 20 federations,"
    );
    println!("failures 0 to 0.85). Bias: relative error of a client's appearance.\n");
    println!("| N | K | draws | uploads | largest bias | mean bias | label divergence |");
    println!("|---:|---:|---|---|---:|---:|---:|");
    for (clients, selected) in [(20, 5), (20, 10), (20, 20), (100, 10), (100, 100)] {
        for (kind, uploads) in [
            (Draws::Independent, Uploads::PerDraw),
            (Draws::Independent, Uploads::PerClient),
            (Draws::Systematic, Uploads::PerDraw),
            (Draws::Systematic, Uploads::PerClient),
        ] {
            let (mut worst, mut average, mut divergence) = (0.0, 0.0, 0.0);
            for seed in 0..20 {
                let federation = federation(clients, 0.85, seed)?;
                let solution = select(&federation, selected, &Options::default())?;
                let real =
                    evaluate_for(&federation, selected, &solution.selection, (kind, uploads))?;
                worst += largest(&real.appearance, &solution.appearance) / 20.0;
                average += mean(&real.appearance, &solution.appearance) / 20.0;
                divergence += real.label_divergence / 20.0;
            }
            let name = |kind: &dyn std::fmt::Debug| format!("{kind:?}");
            println!(
                "| {clients} | {selected} | {} | {} | {:.1} % | {:.1} % | {divergence:.1e} |",
                name(&kind).to_lowercase(),
                if uploads == Uploads::PerDraw { "per draw" } else { "per client" },
                100.0 * worst,
                100.0 * average,
            );
        }
    }
    Ok(())
}

fn at_the_switch() -> Result<(), Error> {
    println!(
        "\nThe closed form against the exact models at the largest sizes for which these are used (failures 0 to"
    );
    println!("0.9, selection by weight).\n");
    println!("| model | N | K | largest error | mean error |");
    println!("|---|---:|---:|---:|---:|");
    let row = |name: &str, work: f64, limit: f64, selected: u64, systematic: Option<Uploads>| {
        let clients = (limit / work) as usize;
        let federation = federation(clients, 0.9, 1)?;
        let failure = federation.failure();
        let order = label_order(federation.all_labels(), clients, 10)?;
        let (mut exact, mut closed) = (vec![0.0; clients], vec![0.0; clients]);
        let selection = federation.weights();
        match systematic {
            Some(uploads) => Systematic { failure, selected, order: &order, uploads, groups: None }
                .appearance(selection, &mut exact)?,
            None => PerClient { failure, selected }.appearance(selection, &mut exact)?,
        }
        Independent { failure, selected }.appearance(selection, &mut closed)?;
        println!(
            "| {name} | {clients} | {selected} | {:.2} % | {:.3} % |",
            100.0 * largest(&closed, &exact),
            100.0 * mean(&closed, &exact),
        );
        Ok::<(), Error>(())
    };
    for selected in [3, 10, 100, 1000, 100_000] {
        row("independent, per client", PerClient::work(1, selected), 2e6, selected, None)?;
    }
    for uploads in [Uploads::PerDraw, Uploads::PerClient] {
        let name = match uploads {
            Uploads::PerDraw => "systematic, per draw",
            Uploads::PerClient => "systematic, per client",
        };
        // With no more draws than clients the exact model is used for any number of clients.
        for selected in [100_000, 1_000_000] {
            row(name, Systematic::work(1, selected), 1e7, selected, Some(uploads))?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    ignoring_the_procedure()?;
    at_the_switch()
}
