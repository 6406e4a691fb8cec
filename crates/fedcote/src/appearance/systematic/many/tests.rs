use rand::RngExt;

use super::*;
use crate::appearance::AppearanceModel;
use crate::draw::systematic_at;
use crate::random::{Key, Purpose};

fn problem(clients: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut stream = Key::new(seed, Purpose::Test).stream();
    let mut selection: Vec<f64> = (0..clients).map(|_| 0.1 + stream.random::<f64>()).collect();
    let total: f64 = selection.iter().sum();
    selection.iter_mut().for_each(|s| *s /= total);
    let failure = (0..clients)
        .map(|at| match at % 50 {
            7 => 0.0,
            13 => 1.0,
            _ => 0.98 * stream.random::<f64>(),
        })
        .collect();
    (selection, failure)
}

/// The walk with sums of logarithms and twice the digits, on problems that both can do.
#[test]
fn pieces_come_to_the_same_as_the_whole() {
    for (clients, selected, seed) in
        [(9_000, 3, 1), (20_000, 40, 2), (6_000, 700, 3), (300, 290, 4)]
    {
        let (mut selection, failure) = problem(clients, seed);
        // Some are drawn several times.
        for at in [5, 6, clients - 1] {
            selection[at] = 0.04;
        }
        let total: f64 = selection.iter().sum();
        selection.iter_mut().for_each(|s| *s /= total);
        let order: Vec<u32> = (0..clients as u32).rev().collect();
        for uploads in [Uploads::PerDraw, Uploads::PerClient] {
            let model =
                Systematic { failure: &failure, selected, order: &order, uploads, groups: None };
            let (mut whole, mut cut) = (vec![0.0; clients], vec![0.0; clients]);
            model.whole(&selection, &mut whole).unwrap();
            appearance(&model, &selection, &mut cut).unwrap();
            for (client, (one, two)) in whole.iter().zip(&cut).enumerate() {
                let error = (one - two).abs();
                assert!(error <= 1e-10 * one, "{clients} {selected} {client}: {one} {two}");
            }
            assert!((cut.iter().sum::<f64>() - 1.0).abs() < 1e-10);
        }
    }
}

/// One client among a million by another way: the lists of draws at every offset at which it is drawn, and of each the
/// distribution of the number of arrivals by dynamic programming.
#[test]
fn single_clients_of_many_are_as_by_dynamic_programming() {
    for (clients, selected, several) in [(1_000_000, 10, 5), (100_000, 100, 3)] {
        let (selection, failure) = problem(clients, 5);
        let order: Vec<u32> = (0..clients as u32).collect();
        let model = Systematic {
            failure: &failure,
            selected,
            order: &order,
            uploads: Uploads::PerDraw,
            groups: None,
        };
        let mut found = vec![0.0; clients];
        model.appearance(&selection, &mut found).unwrap();
        let mut cumulated = vec![0.0];
        for s in &selection {
            cumulated.push(cumulated.last().unwrap() + s);
        }
        let points = |at: usize| selected as f64 * cumulated[at] / cumulated[clients];
        for number in 0..several {
            let client = (number * 2 + 1) * clients / (2 * several) + number;
            if failure[client] == 1.0 {
                assert_eq!(found[client], 0.0);
                continue;
            }
            // Offsets in units of 1/K, from where the client begins to where it ends; all borders between.
            let (from, to) = (points(client), points(client + 1));
            let mut borders = vec![from, to];
            for at in 0..=clients {
                let shift = (from - points(at)).ceil();
                borders.extend(Some(points(at) + shift).filter(|border| *border < to));
            }
            borders.sort_by(f64::total_cmp);
            let mut share = 0.0;
            // What is shorter than that rounding cannot place, and it does not count.
            for pair in borders.windows(2).filter(|pair| pair[1] - pair[0] > 1e-9 * (to - from)) {
                let position = (0.5 * (pair[0] + pair[1])).fract();
                let drawn = systematic_at(&selection, &order, selected, position).unwrap();
                share += (pair[1] - pair[0]) * of_list(&drawn, &failure, client as u32);
            }
            let error = (found[client] / share - 1.0).abs();
            assert!(error < 1e-6, "{clients} {selected} {client}: {} {share}", found[client]);
        }
    }
}

/// The expected share of a client in what arrives of a list of draws, given that something does.
fn of_list(drawn: &[(u32, u32)], failure: &[f64], client: u32) -> f64 {
    assert!(drawn.contains(&(client, 1)) && drawn.iter().all(|(_, copies)| *copies == 1));
    let mut arrivals = vec![1.0];
    let mut nobody = 1.0;
    for &(other, _) in drawn {
        let failure = failure[other as usize];
        nobody *= failure;
        if other == client {
            continue;
        }
        arrivals.push(0.0);
        for count in (0..arrivals.len()).rev() {
            let below = if count == 0 { 0.0 } else { arrivals[count - 1] };
            arrivals[count] = failure * arrivals[count] + (1.0 - failure) * below;
        }
    }
    let others: f64 = (1..).zip(&arrivals).map(|(total, p)| p / f64::from(total)).sum();
    (1.0 - failure[client as usize]) * others / (1.0 - nobody)
}
