//! Fuzz target: problems as JSON and CSV, and what the solvers make of those that can be read.

use super::*;

#[path = "../../../../fuzz/mutate.rs"]
mod mutate;

const JSON: &[u8] = br#"{"selected": 2, "threshold": 0.85, "clients": [
{"id": "a", "labels": [30, 10, 0], "failure": 0.1, "selection": 0.5},
{"id": "b", "labels": [0, 40, 2], "failure": 0.6, "selection": 0.25},
{"id": "c", "labels": [7, 0, 5.5], "failure": 0.95, "selection": 0.25}]}"#;
const NAMELESS: &[u8] =
    br#"{"clients":[{"labels":[1,2],"failure":0},{"labels":[3,0],"failure":1}]}"#;
const CSV: &[u8] = b"id,failure,label_0,label_1\na,0.1,30,10\nb,0.6,0,40\n\"c,\"\"d\",0.3,1e3,0\n";
const WITH_SELECTION: &[u8] = b"id,failure,selection,label_0\na,0.1,0.5,30\nb,0.6,0.5,4\n";
const WORDS: [&str; 12] = [
    "\"id\"",
    "\"labels\"",
    "\"failure\"",
    "\"selection\"",
    "\"selected\"",
    "\"clients\"",
    "label_0",
    "null",
    "{}",
    "\n",
    ",",
    "\u{feff}",
];

#[test]
fn problems() {
    mutate::fuzz(&[JSON, NAMELESS, CSV, WITH_SELECTION], &WORDS, |bytes| {
        let Ok(problem) = Problem::parse(bytes) else { return };
        let draws = problem.selected.unwrap_or(3);
        let threshold = problem.threshold.unwrap_or(0.85);
        let Ok((federation, _)) = problem.check(None, false) else { return };
        // A request that can be read is solved or refused, whatever its numbers.
        if federation.len() > 10 || draws > 50 {
            return;
        }
        let options = fedcote::Options::new().with_threshold(threshold);
        if let Ok(solution) = fedcote::select(&federation, draws, &options) {
            let sum: f64 = solution.selection.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "selection probabilities sum to {sum}");
            let sound = |s: &f64| (0.0..=1.0 + 1e-12).contains(s);
            assert!(solution.selection.iter().all(sound), "{:?}", solution.selection);
        }
    });
}
