//! Failures from a file: measured, or made by another simulator.
//!
//! A CSV file with the columns `round,client,failure`: rounds from 1 (or from 0, the state before the first
//! round), clients from 1, as everywhere in the program's output, and a probability or a measured 0 (arrived)
//! or 1 (failed). Rows are sorted by round, then client, and every client has a row in every round.

use std::path::Path;

use crate::config::AfterTrace;
use crate::error::Error;
use crate::network::Source;

/// The failure of every client in every round of a trace.
#[derive(Debug)]
pub(crate) struct Trace {
    clients: usize,
    /// The round of the first row.
    first: u64,
    /// Round by round.
    failures: Vec<f64>,
    after: AfterTrace,
}

impl Trace {
    pub(crate) fn read(file: &Path, clients: usize, after: AfterTrace) -> Result<Self, Error> {
        let data = std::fs::read(file)
            .map_err(|source| Error::Read { file: file.to_path_buf(), source })?;
        let refuse = |line, reason| Error::Trace { file: file.to_path_buf(), line, reason };
        let (first, failures) =
            parse(&data, clients).map_err(|(line, reason)| refuse(line, reason))?;
        Ok(Self { clients, first, failures, after })
    }
}

/// The first round of a trace and its failures, or the line that is wrong and why.
fn parse(data: &[u8], clients: usize) -> Result<(u64, Vec<f64>), (u64, String)> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(data);
    let header = reader.headers().map_err(|error| (1, error.to_string()))?;
    if header != ["round", "client", "failure"].as_slice() {
        return Err((1, "the first line must be \"round,client,failure\"".into()));
    }
    let mut failures = Vec::new();
    let (mut line, mut first) = (1, 0);
    for record in reader.records() {
        let record = record.map_err(|error| {
            (error.position().map_or(line + 1, csv::Position::line), error.to_string())
        })?;
        line = record.position().map_or(line + 1, csv::Position::line);
        if record.len() != 3 {
            return Err((line, format!("{} columns instead of 3", record.len())));
        }
        let whole = |index: usize, name: &str| {
            record[index]
                .parse::<u64>()
                .map_err(|_| (line, format!("{name} \"{}\" is not a whole number", &record[index])))
        };
        let (round, client) = (whole(0, "round")?, whole(1, "client")?);
        if client == 0 || client > clients as u64 {
            return Err((line, format!("client {client} is not one of 1 to {clients}")));
        }
        if failures.is_empty() && round == 1 {
            first = 1;
        }
        let read = failures.len() as u64;
        let due = (first + read / clients as u64, read % clients as u64 + 1);
        if (round, client) != due {
            let what =
                if (round, client) < due { "repeats or is out of order" } else { "leaves a hole" };
            let expected = format!("round {}, client {} is due", due.0, due.1);
            return Err((line, format!("round {round}, client {client} {what}: {expected}")));
        }
        match record[2].parse::<f64>() {
            Ok(failure) if (0.0..=1.0).contains(&failure) => failures.push(failure),
            _ => return Err((line, format!("failure \"{}\" is not between 0 and 1", &record[2]))),
        }
    }
    if failures.is_empty() {
        return Err((line, "no rows".into()));
    }
    if !failures.len().is_multiple_of(clients) {
        let present = failures.len() % clients;
        let reason = format!("the last round ends after client {present} of {clients}");
        return Err((line, reason));
    }
    Ok((first, failures))
}

impl Source for Trace {
    fn clients(&self) -> usize {
        self.clients
    }

    fn failure(&self, round: u32, client: usize) -> f64 {
        let rounds = self.failures.len() / self.clients;
        let after_first = u64::from(round).saturating_sub(self.first) as usize;
        let row = match self.after {
            AfterTrace::Repeat => after_first % rounds,
            AfterTrace::Hold => after_first.min(rounds - 1),
        };
        self.failures[row * self.clients + client]
    }

    fn moves(&self) -> bool {
        self.failures.len() > self.clients
    }
}

#[cfg(test)]
pub(crate) mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (u64, String) {
        parse(text.as_bytes(), 2).unwrap_err()
    }

    #[test]
    fn a_complete_trace_is_read_in_order() {
        let text = "round, client, failure\n0,1,0\n0,2,1\n1,1,0.25\n1,2,1e-3\n";
        assert_eq!(parse(text.as_bytes(), 2).unwrap(), (0, vec![0.0, 1.0, 0.25, 1e-3]));
        let text = "round,client,failure\n1,1,0\n1,2,1\n";
        assert_eq!(parse(text.as_bytes(), 2).unwrap(), (1, vec![0.0, 1.0]));
    }

    #[test]
    fn wrong_traces_are_refused_with_their_line() {
        let head = "round,client,failure\n";
        for (rows, line, reason) in [
            (
                "0,1,0\n1,1,0\n1,2,0\n",
                3,
                "round 1, client 1 leaves a hole: round 0, client 2 is due",
            ),
            (
                "0,1,0\n0,2,0\n2,1,0\n",
                4,
                "round 2, client 1 leaves a hole: round 1, client 1 is due",
            ),
            (
                "0,1,0\n0,1,0\n",
                3,
                "round 0, client 1 repeats or is out of order: round 0, client 2 is due",
            ),
            ("0,2,0\n0,1,0\n", 2, "round 0, client 2 leaves a hole: round 0, client 1 is due"),
            (
                "0,1,0\n0,2,0\n1,1,0\n0,2,0\n",
                5,
                "round 0, client 2 repeats or is out of order: round 1, client 2 is due",
            ),
            ("0,1,0\n", 2, "the last round ends after client 1 of 2"),
            ("2,1,0\n", 2, "round 2, client 1 leaves a hole: round 0, client 1 is due"),
            (
                "1,1,0\n1,2,0\n3,1,0\n",
                4,
                "round 3, client 1 leaves a hole: round 2, client 1 is due",
            ),
            ("0,3,0\n", 2, "client 3 is not one of 1 to 2"),
            ("0,0,0\n", 2, "client 0 is not one of 1 to 2"),
            ("0,1,1.5\n", 2, "failure \"1.5\" is not between 0 and 1"),
            ("0,1,NaN\n", 2, "failure \"NaN\" is not between 0 and 1"),
            ("0,1\n", 2, "2 columns instead of 3"),
            ("-1,1,0\n", 2, "round \"-1\" is not a whole number"),
            ("", 1, "no rows"),
        ] {
            assert_eq!(refusal(&format!("{head}{rows}")), (line, reason.to_string()), "{rows}");
        }
        assert_eq!(refusal("a,b\n").0, 1);
        assert_eq!(refusal("").0, 1);
    }
}
