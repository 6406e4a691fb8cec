//! The table at the end of a comparison.

use fedcote_sim::statistics::{Difference, MEASURES, verdict};
use fedcote_sim::summary::{SchemeSummary, Spread, Summary};

use crate::table::{Align, Table};

type Value = fn(&SchemeSummary) -> Option<Spread>;

/// A column: heading, measure, value, factor, decimals.
struct Column {
    name: &'static str,
    measure: &'static str,
    value: Value,
    factor: f64,
    decimals: usize,
}

const COLUMNS: [Column; 7] = [
    column("last acc %", "test_accuracy", |s| s.test_accuracy, 100.0, 2),
    column("tail acc %", "tail_accuracy", |s| s.tail_accuracy, 100.0, 2),
    column("swing", "tail_spread", |s| s.tail_spread, 100.0, 2),
    column("train loss", "train_loss", |s| s.train_loss, 1.0, 4),
    column("arrivals", "arrivals", |s| s.arrivals, 1.0, 1),
    column("χ² expected", "label_divergence_wanted", |s| s.label_divergence_wanted, 1.0, 4),
    column("χ² realised", "label_divergence_realised", |s| s.label_divergence_realised, 1.0, 3),
];

const fn column(
    name: &'static str,
    measure: &'static str,
    value: Value,
    factor: f64,
    decimals: usize,
) -> Column {
    Column { name, measure, value, factor, decimals }
}

/// Columns in which leading schemes are bold.
const BOLD: [&str; 4] = ["test_accuracy", "tail_accuracy", "tail_spread", "train_loss"];

/// The table as text; bold, if asked for, the schemes that no other is separably better than.
pub fn render(summary: &Summary, bold: bool) -> String {
    let names = COLUMNS.iter().map(|column| (column.name, Align::Right));
    let mut table = Table::new(std::iter::once(("scheme", Align::Left)).chain(names));
    for scheme in &summary.schemes {
        let cells = COLUMNS.iter().map(|column| cell(column, scheme));
        table.push(std::iter::once(scheme.name.clone()).chain(cells));
    }
    for (at, column) in COLUMNS.iter().enumerate() {
        let leads = |scheme: &SchemeSummary| scheme.leads.iter().any(|name| name == column.measure);
        for (row, scheme) in summary.schemes.iter().enumerate() {
            if BOLD.contains(&column.measure) && leads(scheme) {
                table.mark(row, at + 1);
            }
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
    text + &costs(summary, bold) + &differences(summary)
}

/// How much the schemes differ from the one that all are compared with, in the first measure that they have.
fn differences(summary: &Summary) -> String {
    let (Some(against), schemes) = (&summary.against, &summary.schemes) else {
        return String::new();
    };
    // A task of one's own may have scores alone.
    let own = schemes.iter().flat_map(|scheme| scheme.differences.keys());
    let own = own.filter(|name| name.starts_with("scores.")).map(|name| (&**name, &**name, false));
    let known = MEASURES.iter().take_while(|measure| measure.name != "rounds_to");
    let known = known.map(|measure| (measure.name, measure.words, measure.percent));
    let has = |name: &str| schemes.iter().any(|scheme| scheme.differences.contains_key(name));
    let Some((name, words, percent)) = known.chain(own).find(|(name, ..)| has(name)) else {
        return String::new();
    };
    let found: Vec<(&str, &Difference)> = schemes
        .iter()
        .filter_map(|scheme| Some((scheme.name.as_str(), scheme.differences.get(name)?)))
        .collect();
    let unit = if percent { ", in points" } else { "" };
    let mut text = format!("\nAgainst {against}, seed by seed: {words}{unit}.\n");
    let mut table = Table::new([
        ("scheme", Align::Left),
        ("difference", Align::Right),
        ("95 % interval", Align::Right),
        ("seeds", Align::Left),
    ]);
    for (scheme, difference) in found {
        let interval = difference.interval(percent).unwrap_or_else(|| "–".to_owned());
        table.push([scheme.to_owned(), difference.signed(percent), interval, difference.signs()]);
    }
    text += &table.render(false);
    text + &verdict(schemes).map(|verdict| format!("{verdict}\n")).unwrap_or_default()
}

/// What the target accuracy cost.
fn costs(summary: &Summary, bold: bool) -> String {
    let target = fedcote_support::readable((1e4 * summary.target_accuracy).round() / 100.0);
    if summary.schemes.iter().all(|scheme| scheme.reached == 0) {
        return String::new();
    }
    let timed = summary.schemes.iter().any(|scheme| scheme.seconds_to.is_some());
    let radio = summary.schemes.iter().any(|scheme| scheme.joules_to.is_some());
    let columns: Vec<&Column> =
        COSTS.iter().take(1 + 2 * usize::from(timed) + usize::from(radio)).collect();
    let first = format!("to {target} %");
    let names = columns.iter().map(|column| (column.name, Align::Right));
    let mut table = Table::new(std::iter::once((first.as_str(), Align::Left)).chain(names));
    for scheme in &summary.schemes {
        let missed = scheme.seeds - scheme.reached;
        let note = if missed > 0 && scheme.reached > 0 {
            format!(" ({} of {} seeds)", scheme.reached, scheme.seeds)
        } else {
            String::new()
        };
        let cells = columns.iter().map(|column| cell(column, scheme));
        table.push(std::iter::once(format!("{}{note}", scheme.name)).chain(cells));
    }
    format!("\n{}", table.render(bold))
}

const COSTS: [Column; 4] = [
    column("rounds", "rounds_to", |s| s.rounds_to, 1.0, 0),
    column("seconds", "seconds_to", |s| s.seconds_to, 1.0, 1),
    column("MB", "bytes_to", |s| s.bytes_to, 1e-6, 1),
    column("joules", "joules_to", |s| s.joules_to, 1.0, 1),
];

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

#[cfg(test)]
mod tests {
    use fedcote_sim::statistics::summaries;
    use fedcote_sim::summary::RunSummary;

    use super::*;

    fn summary(schemes: &[(&str, bool, &[f64])]) -> Summary {
        let run = |&accuracy: &f64| {
            let mut run = RunSummary::so_far(10, 0.9, None, Some(10), &[]);
            run.test_accuracy = Some(accuracy);
            run.tail_accuracy = Some(accuracy);
            run.seconds = Some(1.0);
            run
        };
        let runs: Vec<_> = schemes
            .iter()
            .map(|(name, reference, values)| {
                (*name, *reference, (1..).zip(values.iter().map(run)).collect())
            })
            .collect();
        let against = Some(schemes[0].0);
        Summary {
            schemes: summaries(&runs, against),
            against: against.map(str::to_owned),
            rounds: 10,
            ..Summary::default()
        }
    }

    /// `[scheme.x] base = "ideal"` used to be marked as the best.
    #[test]
    fn bold_is_what_no_other_is_separably_better_than_and_no_reference() {
        let found = summary(&[
            ("fedavg", false, &[0.80, 0.81, 0.82]),
            ("fedcote", false, &[0.90, 0.91, 0.905]),
            ("mine", true, &[0.99, 0.98, 0.985]),
        ]);
        let text = render(&found, true);
        let bold = |scheme: &str| {
            let line = text.lines().find(|line| line.starts_with(scheme)).unwrap();
            line.contains("\x1b[1m")
        };
        assert!(!bold("fedavg") && bold("fedcote") && !bold("mine"), "{text}");
        assert!(text.contains("fedcote (90.50 %) is separably above every other scheme"), "{text}");
    }

    #[test]
    fn differences_have_their_interval_and_say_when_they_are_none() {
        let found = summary(&[
            ("fedavg", false, &[0.80, 0.81, 0.82]),
            ("fedcote", false, &[0.90, 0.91, 0.905]),
            ("fedprox", false, &[0.81, 0.80, 0.82]),
        ]);
        let text = render(&found, false);
        // 0.095 ± 4.3027 · 0.00866 / √3, and 0 ± 4.3027 · 0.01 / √3.
        for line in [
            "Against fedavg, seed by seed: test accuracy over the tail, in points.",
            "fedcote       +9.50  [+7.35, +11.65]  higher at 3 of 3",
            "fedprox       +0.00   [-2.48, +2.48]  higher at 1 of 3; not separable",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let one = render(&summary(&[("fedavg", false, &[0.8]), ("fedcote", false, &[0.9])]), true);
        assert!(one.contains("One seed: which scheme is better cannot be told"), "{one}");
        assert!(one.contains("–  higher at 1 of 1; one seed: not separable from chance"), "{one}");
        let alone = render(&summary(&[("fedavg", false, &[0.8])]), false);
        assert!(!alone.contains("One seed"), "{alone}");
    }
}
