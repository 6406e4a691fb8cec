//! The script inside a report, and the numbers it shows. It needs no network: the page's policy names its hash, and
//! allows nothing else.

use std::sync::LazyLock;

use fedcote_sim::RoundReport;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::figures::styles;
use super::names;
use crate::folder::{Run, Scheme};
use crate::theme;

/// Modules that pages share with the report, by name, in the order in which they use each other.
pub const MODULES: [(&str, &str); 5] = [
    ("dom.js", include_str!("script/dom.js")),
    ("series.js", include_str!("script/series.js")),
    ("chart.js", include_str!("script/chart.js")),
    ("bars.js", include_str!("script/bars.js")),
    ("client.js", include_str!("script/client.js")),
];

/// All modules in one, with what starts them.
pub(super) static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let texts = MODULES.iter().map(|(_, text)| *text).chain([include_str!("script/report.js")]);
    // In one module nothing is imported.
    let lines = texts.flat_map(str::lines).filter(|line| !line.starts_with("import "));
    lines.flat_map(|line| [line, "\n"]).collect()
});

/// The policy of a report: its own style, font and script, pictures that the script makes, and nothing else.
pub fn policy() -> String {
    let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none';style-src 'unsafe-inline';font-src data:;img-src data:;script-src 'sha256-{hash}'"
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The curves of some runs as the chart wants them: `{ rounds, series: [{ name, style, strong, seeds }] }`.
pub fn series(runs: &[Run]) -> Value {
    let mut all = Vec::new();
    for (index, (run, name)) in runs.iter().zip(names(runs)).enumerate() {
        for (at, (scheme, style)) in run.schemes.iter().zip(styles(run)).enumerate() {
            let (name, style) = if runs.len() == 1 {
                (scheme.name.clone(), json!([style.colour(), style.dash()]))
            } else {
                // Runs are told apart by colour, schemes of a run by dashes.
                let colour = format!("c{}", index % theme::COLOURS);
                let dash = ["", "d1", "d2"][at % 3];
                (format!("{name} · {}", scheme.name), json!([colour, dash]))
            };
            let strong = runs.len() == 1 && theme::is_strong(&scheme.name);
            all.push(
                json!({ "name": name, "style": style, "strong": strong, "seeds": seeds(scheme) }),
            );
        }
    }
    json!({ "rounds": runs.iter().map(|run| run.rounds).max().unwrap_or(0), "series": all })
}

fn seeds(scheme: &Scheme) -> Vec<Value> {
    let seed =
        |seed: &crate::folder::Seed| json!({ "seed": seed.seed, "columns": columns(&seed.rounds) });
    scheme.seeds.iter().map(seed).collect()
}

/// Six digits are more than a screen shows.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Every number that rounds report, as rounds and values by name.
fn columns(rounds: &[RoundReport]) -> Map<String, Value> {
    let mut columns: std::collections::BTreeMap<String, (Vec<u32>, Vec<f64>)> = Default::default();
    for report in rounds {
        let mut put = |key: String, value: f64| {
            let (rounds, values) = columns.entry(key).or_default();
            rounds.push(report.round);
            values.push(short(value));
        };
        put("arrivals".into(), report.arrivals() as f64);
        let Ok(Value::Object(fields)) = serde_json::to_value(report) else { continue };
        for (key, value) in fields {
            match value {
                Value::Number(number) if key != "round" && key != "attempts" => {
                    put(key, number.as_f64().unwrap_or(f64::NAN));
                }
                Value::Object(scores) if key == "scores" => {
                    for (key, value) in scores {
                        value.as_f64().into_iter().for_each(|value| put(key.clone(), value));
                    }
                }
                _ => {}
            }
        }
    }
    columns.into_iter().map(|(key, column)| (key, json!([column.0, column.1]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_written_as_the_web_wants_it() {
        // Worked elsewhere: `printf abc | openssl dgst -sha256 -binary | base64`.
        let hash = base64(&Sha256::digest(b"abc"));
        assert_eq!(hash, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        assert_eq!((base64(b"a"), base64(b"ab")), ("YQ==".into(), "YWI=".into()));
    }

    #[test]
    fn the_script_is_one_module_that_asks_for_nothing() {
        assert!(!SCRIPT.contains("import ") && !SCRIPT.contains("fetch("));
        assert!(SCRIPT.contains("class Chart") && !SCRIPT.contains("</script"));
    }

    #[test]
    fn columns_hold_what_rounds_report() {
        let report = |round: u32, accuracy: Option<f64>| RoundReport {
            round,
            arrived: vec![(3, 2), (1, 1)],
            test_accuracy: accuracy,
            scores: [("f1".to_owned(), 0.25)].into(),
            ..RoundReport::default()
        };
        let columns = columns(&[report(1, None), report(2, Some(0.123456789))]);
        assert_eq!(columns["arrivals"], json!([[1, 2], [3.0, 3.0]]));
        assert_eq!(columns["test_accuracy"], json!([[2], [0.123457]]));
        assert_eq!(columns["f1"], json!([[1, 2], [0.25, 0.25]]));
        assert!(!columns.contains_key("round"));
    }
}
