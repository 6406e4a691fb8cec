//! What became of every client, round by round, as small as it can be told: the script of a report shows one at a time.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::names;
use super::script::short;
use crate::folder::{Clients, Run, Seed};

/// A report carries at most so many bytes of it; the first seed of every scheme comes before the second of any.
const MOST_BYTES: usize = 1_500_000;

/// `{ tables, runs, left_out }`: what clients are, once for all runs that have them alike; and for each run who was drawn and
/// arrived. `None` when no run tells of its clients, or none is small enough.
pub(super) fn data(runs: &[Run]) -> Option<Value> {
    let names = names(runs);
    let mut all = Vec::new();
    for (run, folder) in runs.iter().zip(&names) {
        for scheme in &run.schemes {
            let name = match runs.len() {
                1 => scheme.name.clone(),
                _ => format!("{folder} · {}", scheme.name),
            };
            let file = run.scenario.as_ref();
            let remembers = file.is_some_and(|file| file.keeps_updates(&scheme.name));
            for (place, seed) in scheme.seeds.iter().enumerate() {
                if let Some(clients) = &seed.clients {
                    all.push((place, name.clone(), remembers, seed, clients));
                }
            }
        }
    }
    // A stable sort: schemes keep their order.
    all.sort_by_key(|(place, ..)| *place);
    let (mut tables, mut told) = (Vec::<(String, Value)>::new(), Vec::new());
    let (mut bytes, mut left_out) = (0, 0);
    for (_, name, remembers, seed, clients) in all {
        let table = table(clients);
        let text = table.to_string();
        let Some(rounds) = packed(seed, MOST_BYTES - bytes) else {
            left_out += 1;
            continue;
        };
        let known = tables.iter().position(|(same, _)| *same == text);
        let size = rounds.len() + 20 * clients.clients.len();
        let size = size + if known.is_some() { 0 } else { text.len() };
        if bytes + size > MOST_BYTES {
            left_out += 1;
            continue;
        }
        bytes += size;
        let table = known.unwrap_or_else(|| {
            tables.push((text, table));
            tables.len() - 1
        });
        let column = |of: fn(&crate::folder::Client) -> Option<f64>| -> Option<Vec<f64>> {
            clients.clients.iter().map(|client| of(client).map(short)).collect()
        };
        told.push(json!({
            "name": name, "seed": seed.seed, "remembers": remembers, "table": table, "rounds": rounds,
            "selection": column(|client| client.selection),
            "appearance": column(|client| client.appearance),
            "warnings": clients.warnings,
        }));
    }
    let tables: Vec<Value> = tables.into_iter().map(|(_, table)| table).collect();
    (!told.is_empty()).then(|| json!({ "tables": tables, "runs": told, "left_out": left_out }))
}

/// What clients are, whatever the scheme does with them.
fn table(clients: &Clients) -> Value {
    let shorts = |values: &[f64]| values.iter().copied().map(short).collect::<Vec<f64>>();
    let client = |client: &crate::folder::Client| {
        let mut told = json!({
            "id": client.id, "labels": shorts(&client.labels),
            "failure": short(client.failure), "weight": short(client.weight),
        });
        if let Some(standard) = &client.standard {
            told["standard"] = json!(standard);
        }
        if let Some(indoor) = client.indoor {
            told["indoor"] = json!(indoor);
        }
        told
    };
    let all: Vec<Value> = clients.clients.iter().map(client).collect();
    json!({ "global_labels": shorts(&clients.global_labels), "clients": all })
}

/// Who was drawn and arrived: rounds between commas, clients between spaces, each a number in base 36; alone it was drawn once and
/// arrived, with a dash it was drawn once and failed, `*5*3` is five draws of which three arrived. `None` when it has more than so
/// many bytes.
fn packed(seed: &Seed, most: usize) -> Option<String> {
    let mut text = String::new();
    let mut last = 0;
    for round in &seed.rounds {
        // A round that is missing is an empty one; a file may claim any number of them.
        let ends = round.round.saturating_sub(last.max(1)) as usize;
        if text.len() + ends > most {
            return None;
        }
        text.extend(std::iter::repeat_n(',', ends));
        last = round.round;
        let mut clients: Vec<(u32, u32, u32)> =
            round.selected.iter().map(|&(client, copies)| (client, copies, 0)).collect();
        let mut places: HashMap<u32, usize> =
            clients.iter().enumerate().map(|(at, &(client, ..))| (client, at)).collect();
        for &(client, came) in &round.arrived {
            let at = *places.entry(client).or_insert_with(|| {
                // What was drawn in an earlier round.
                clients.push((client, 0, 0));
                clients.len() - 1
            });
            clients[at].2 = came;
        }
        let words: Vec<String> = clients
            .into_iter()
            .map(|(client, copies, came)| match (copies, came) {
                (1, 1) => digits(client),
                (1, 0) => format!("{}-", digits(client)),
                _ => format!("{}*{copies}*{came}", digits(client)),
            })
            .collect();
        text.push_str(&words.join(" "));
    }
    (text.len() <= most).then_some(text)
}

/// A number in base 36.
fn digits(mut number: u32) -> String {
    let mut text = Vec::new();
    loop {
        text.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return text.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use fedcote_sim::RoundReport;

    use super::*;

    fn round(round: u32, selected: &[(u32, u32)], arrived: &[(u32, u32)]) -> RoundReport {
        let (selected, arrived) = (selected.to_vec(), arrived.to_vec());
        RoundReport { round, selected, arrived, ..RoundReport::default() }
    }

    #[test]
    fn rounds_are_packed_as_the_script_reads_them() {
        let rounds = vec![
            round(1, &[(0, 1), (35, 1), (36, 5)], &[(0, 1), (36, 3)]),
            round(2, &[], &[]),
            // One that is missing, and an arrival of an earlier draw.
            round(4, &[(1, 2)], &[(7, 1)]),
        ];
        let seed = Seed { seed: 1, rounds, clients: None };
        let text = "0 z- 10*5*3,,,1*2*0 7*0*1";
        assert_eq!(packed(&seed, text.len()).as_deref(), Some(text));
        assert_eq!(packed(&seed, text.len() - 1), None);
        assert_eq!(
            (digits(0), digits(1295), digits(1296)),
            ("0".into(), "zz".into(), "100".into())
        );
    }

    /// One line of round 4294967295 became 4.3 GB of commas before their number was looked at.
    #[test]
    fn a_late_round_is_left_out_before_it_is_packed() {
        let last = |last| {
            let rounds = vec![round(1, &[(0, 1)], &[]), round(last, &[(0, 1)], &[])];
            packed(&Seed { seed: 1, rounds, clients: None }, 100)
        };
        assert_eq!(last(u32::MAX), None);
        assert_eq!(last(4).as_deref(), Some("0-,,,0-"));
    }

    /// Every arrival was looked for among all draws, a time that grows with the square of the clients.
    #[test]
    fn many_clients_are_packed_in_one_pass() {
        let drawn: Vec<(u32, u32)> = (0..300_000).map(|client| (client, 1)).collect();
        let came: Vec<(u32, u32)> = drawn.iter().rev().copied().collect();
        let seed = Seed { seed: 1, rounds: vec![round(1, &drawn, &came)], clients: None };
        let expected: Vec<String> = drawn.iter().map(|&(client, _)| digits(client)).collect();
        assert!(packed(&seed, usize::MAX) == Some(expected.join(" ")));
    }
}
