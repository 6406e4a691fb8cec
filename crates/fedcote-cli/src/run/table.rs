//! The table at the end of a comparison.

use fedcote_sim::summary::{SchemeSummary, Spread, Summary};

use crate::table::{Align, Table};

type Value = fn(&SchemeSummary) -> Option<Spread>;

/// A column: heading, value, factor, decimals, and whether more is better.
struct Column {
    name: &'static str,
    value: Value,
    factor: f64,
    decimals: usize,
    best: Option<Best>,
}

#[derive(Clone, Copy, PartialEq)]
enum Best {
    Most,
    Least,
}

const COLUMNS: [Column; 7] = [
    Column {
        name: "last acc %",
        value: |s| s.test_accuracy,
        factor: 100.0,
        decimals: 2,
        best: Some(Best::Most),
    },
    Column {
        name: "tail acc %",
        value: |s| s.tail_accuracy,
        factor: 100.0,
        decimals: 2,
        best: Some(Best::Most),
    },
    Column {
        name: "swing",
        value: |s| s.tail_spread,
        factor: 100.0,
        decimals: 2,
        best: Some(Best::Least),
    },
    Column {
        name: "train loss",
        value: |s| s.train_loss,
        factor: 1.0,
        decimals: 4,
        best: Some(Best::Least),
    },
    Column { name: "arrivals", value: |s| s.arrivals, factor: 1.0, decimals: 1, best: None },
    Column {
        name: "χ² wanted",
        value: |s| s.label_divergence_wanted,
        factor: 1.0,
        decimals: 4,
        best: None,
    },
    Column {
        name: "χ² realised",
        value: |s| s.label_divergence_realised,
        factor: 1.0,
        decimals: 3,
        best: None,
    },
];

/// The table as text; the best of each column bold if asked for.
pub fn render(summary: &Summary, bold: bool) -> String {
    let names = COLUMNS.iter().map(|column| (column.name, Align::Right));
    let mut table = Table::new(std::iter::once(("scheme", Align::Left)).chain(names));
    for scheme in &summary.schemes {
        let cells = COLUMNS.iter().map(|column| cell(column, scheme));
        table.push(std::iter::once(scheme.name.clone()).chain(cells));
    }
    for (at, column) in COLUMNS.iter().enumerate() {
        if let Some(row) = best(column, &summary.schemes) {
            table.mark(row, at + 1);
        }
    }
    let mut text = table.render(bold);
    let tail = fedcote_sim::summary::tail_rounds(summary.rounds);
    text += &format!("\nAccuracy on the test set after round {}", summary.rounds);
    text += &format!(" (last) and over the last {tail} rounds (tail, swing).\n");
    for scheme in summary.schemes.iter().filter(|scheme| scheme.diverged > 0) {
        let rounds: Vec<String> = scheme.diverged_at.iter().map(u32::to_string).collect();
        let (name, diverged, seeds) = (&scheme.name, scheme.diverged, scheme.seeds);
        let rounds = rounds.join(", ");
        text += &format!("{name}: {diverged} of {seeds} runs diverged, at round {rounds}.\n");
    }
    text
}

fn cell(column: &Column, scheme: &SchemeSummary) -> String {
    match (column.value)(scheme) {
        None => "–".to_owned(),
        Some(spread) => {
            let decimals = column.decimals;
            let mean = number(column.factor * spread.mean, decimals);
            if scheme.seeds > 1 {
                format!("{mean} ± {}", number(column.factor * spread.std, decimals))
            } else {
                mean
            }
        }
    }
}

fn number(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e6 || (value != 0.0 && value.abs() < 0.5 * 10f64.powi(-(decimals as i32))) {
        format!("{value:.1e}")
    } else {
        format!("{value:.decimals$}")
    }
}

/// The best row of a column among schemes that meet failures.
fn best(column: &Column, schemes: &[SchemeSummary]) -> Option<usize> {
    let wanted = column.best?;
    let values = schemes.iter().enumerate().filter(|(_, scheme)| !scheme.reference);
    let values = values.filter_map(|(row, scheme)| Some((row, (column.value)(scheme)?.mean)));
    let better = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    match wanted {
        Best::Most => values.max_by(better),
        Best::Least => values.min_by(better),
    }
    .map(|(row, _)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[scheme.x] base = "ideal"` used to be marked as the best.
    #[test]
    fn a_reference_is_not_the_best() {
        let scheme = |reference, mean| SchemeSummary {
            reference,
            test_accuracy: Some(Spread { mean, std: 0.0 }),
            ..SchemeSummary::default()
        };
        let schemes = [scheme(false, 0.8), scheme(false, 0.9), scheme(true, 0.99)];
        assert_eq!(best(&COLUMNS[0], &schemes), Some(1));
    }
}
