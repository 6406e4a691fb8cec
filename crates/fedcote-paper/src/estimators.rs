//! `beyond-estimators`: how many rounds estimators need to know failure probabilities.
//!
//! No training: clients are drawn by weight, ten times per round, every draw uploads once, and each estimator is told what a server
//! would see of it. The error is the mean over clients of |estimate − truth|; its mean over seeds decides.

use fedcote::draw::Alias;
use fedcote::estimate::EstimatorKind;
use fedcote::random::{Key, Purpose};
use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};

use crate::document::Document;
use crate::error::Error;
use crate::request::Request;
use crate::variant::{Network, Share, Task, Variant};

/// An error below which probabilities count as known.
const CLOSE: f64 = 0.05;
const CLIENTS: usize = 20;
const DRAWS: u64 = 10;
const ROUNDS: u32 = 500;

/// Names, the retransmissions of the network they are measured on, and whether everyone sends pilots.
const ESTIMATORS: [(&str, u32, bool); 7] = [
    ("window", 0, false),
    ("exponential", 0, false),
    ("beta", 0, false),
    ("signal", 0, false),
    ("signal", 0, true),
    ("beta", 3, false),
    ("retransmissions", 3, false),
];

/// The errors on networks of the paper, standing and walking.
pub fn make(title: String, request: &Request) -> Result<Document, Error> {
    let networks = [(Network::Literal, false), (Network::Harsh, false)]
        .into_iter()
        .chain([(Network::Literal, true), (Network::Harsh, true)]);
    let networks: Vec<(Network, bool)> = networks.collect();
    let mut columns = Vec::new();
    for (network, walking) in &networks {
        let moves = if *walking { "walking" } else { "standing" };
        let name = format!("{network}, {moves}: rounds to {CLOSE}");
        columns.push(Column::new(&name, Better::Lower, Digits::Fixed(0)));
        columns.push(Column::new("error after 100 rounds", Better::Lower, Digits::Fixed(4)));
    }
    let mut rows = Vec::new();
    for (name, retransmissions, pilots) in ESTIMATORS {
        let mut cells = Vec::new();
        for &(network, walking) in &networks {
            let variant =
                Variant { walking, ..Variant::new(network, Task::Mnist, Share::Pairs, None) };
            let errors = errors(&variant, name, retransmissions, pilots, &request.seeds())?;
            let reached = errors.iter().position(|&error| error <= CLOSE);
            cells.push(match reached {
                Some(round) => Cell::Number(round as f64 + 1.0),
                None => Cell::Text("never".into()),
            });
            let late = &errors[100..];
            cells.push(Cell::Number(late.iter().sum::<f64>() / late.len() as f64));
        }
        let name = match retransmissions {
            0 if pilots => format!("{name}, pilots of everyone"),
            0 => name.to_owned(),
            more => format!("{name}, {more} retransmissions"),
        };
        rows.push(Row { name, cells, apart: false });
    }
    let table = Table { title: String::new(), corner: "estimator".into(), columns, rows };
    let text = format!(
        "Ten draws by weight per round, an upload per draw, {ROUNDS} rounds, {} placements; every client is guessed to fail with one half at \
         first. Rounds: until the mean over clients and placements of |estimate − truth| is {CLOSE} or less for the first time. Error: its mean \
         over rounds 101 to {ROUNDS}. Pilots of everyone: who does not upload shows a margin, too. With retransmissions the time of an upload is shared, so that each has a higher rate.",
        request.seeds().len()
    );
    Ok(Document { title, text: vec![text], tables: vec![("", table)], ..Default::default() })
}

/// The mean error after each round.
fn errors(
    variant: &Variant,
    name: &str,
    retransmissions: u32,
    pilots: bool,
    seeds: &[u64],
) -> Result<Vec<f64>, Error> {
    let scenario = variant.scenario(&["fedavg".to_owned()], &[1])?;
    let config = fedcote_radio::NetworkConfig { retransmissions, ..scenario.network.clone() };
    let parameters = scenario.model_parameters()?;
    let mut kind: EstimatorKind = name.parse().map_err(Error::work)?;
    if let EstimatorKind::Retransmissions { retransmissions: told, .. } = &mut kind {
        *told = retransmissions;
    }
    let weights = [1.0 / CLIENTS as f64; CLIENTS];
    let alias = Alias::new(&weights).map_err(Error::work)?;
    let mut errors = vec![0.0; ROUNDS as usize];
    let mut truth = Vec::new();
    for &seed in seeds {
        let network = fedcote_radio::Network::new(&config, CLIENTS, parameters, seed, ".".as_ref())
            .map_err(Error::work)?;
        let mut estimator = kind.estimator(CLIENTS).map_err(Error::work)?;
        for round in 1..=ROUNDS {
            network.failures(round, &mut truth);
            let mut stream = Key::new(seed, Purpose::Selection).round(round).stream();
            let drawn = alias.draws(DRAWS, &mut stream).map_err(Error::work)?;
            for &(client, copies) in &drawn {
                let key = Key::new(seed, Purpose::Upload).round(round).client(client.into());
                for copy in 0..copies {
                    let client = client as usize;
                    let upload = network.upload(round, client, key.copy(copy));
                    if let Some(margin_db) = upload.margin_db {
                        estimator.observe_signal(client, margin_db);
                    }
                    estimator.observe_transmissions(client, upload.failed, upload.arrived);
                    estimator.observe(client, upload.arrived);
                }
            }
            for client in (0..CLIENTS).filter(|_| pilots) {
                let key = Key::new(seed, Purpose::Pilot).round(round).client(client as u64);
                if drawn.iter().all(|&(other, _)| other as usize != client)
                    && let Some(margin_db) = network.upload(round, client, key).margin_db
                {
                    estimator.observe_signal(client, margin_db);
                }
            }
            // What the next round goes by.
            estimator.tick();
            let estimates = estimator.failures();
            let gaps = estimates.iter().zip(&truth).map(|(ours, truth)| (ours - truth).abs());
            errors[round as usize - 1] += gaps.sum::<f64>() / (CLIENTS * seeds.len()) as f64;
        }
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a margin tells is worth more than five arrivals.
    #[test]
    fn signals_need_at_most_a_fifth_of_the_rounds_of_arrivals() {
        for network in [Network::Literal, Network::Harsh] {
            let variant = Variant::new(network, Task::Mnist, Share::Pairs, None);
            let rounds = |name| {
                let errors = errors(&variant, name, 0, false, &[1, 2, 3]).unwrap();
                errors.iter().position(|&error| error <= CLOSE).unwrap() + 1
            };
            let (signal, beta) = (rounds("signal"), rounds("beta"));
            assert!(5 * signal <= beta, "{network}: {signal} and {beta} rounds");
        }
    }
}
