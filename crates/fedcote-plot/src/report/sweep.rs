//! The report of a sweep: every measure against the keys that are swept.

use std::fmt::Write;
use std::path::Path;

use fedcote_sim::statistics::{MEASURES, Measure};
use fedcote_sim::summary::Spread;
use fedcote_sim::sweep::{PointSummary, SweepSummary, summarise};

use super::figures::{Figure, columns, dynamic};
use super::page::{shell, show};
use crate::Error;
use crate::axis::Format;
use crate::heat::Heat;
use crate::lines::{Lines, Point, Series};
use crate::panel::figure;
use crate::svg::Escaped;
use crate::tables::{Better, Cell, Column, Digits, Row, Table};
use crate::theme;

/// Reads the folder of a sweep.
///
/// # Errors
///
/// When it is no sweep's, a file is damaged, or there are no runs in it yet.
pub fn read(folder: &Path) -> Result<SweepSummary, Error> {
    let summary = summarise(folder)?;
    if summary.schemes().is_empty() {
        let reason = "no run of this sweep has ended yet".to_owned();
        return Err(Error::Missing { path: folder.into(), reason });
    }
    Ok(summary)
}

/// What the schemes of a combination came to in a measure.
fn spread(point: &PointSummary, name: &str, measure: &Measure) -> Option<Spread> {
    (measure.over)(point.schemes.iter().find(|scheme| scheme.name == name)?)
}

/// The measures that anything is known of.
fn measures(summary: &SweepSummary) -> impl Iterator<Item = &'static Measure> {
    let known = |measure: &&Measure| {
        let mut schemes = summary.points.iter().flat_map(|point| &point.schemes);
        schemes.any(|scheme| (measure.over)(scheme).is_some())
    };
    MEASURES.iter().filter(known)
}

/// A figure for every measure: lines over one key, heat maps over two; none over more.
pub fn figures(summary: &SweepSummary) -> Vec<Figure> {
    let draw = |measure| match summary.keys.len() {
        1 => Some(lines(summary, measure)),
        2 => Some(heat(summary, measure)),
        _ => None,
    };
    measures(summary).filter_map(draw).collect()
}

fn format(measure: &Measure) -> Format {
    if measure.percent { Format::Percent } else { Format::Number }
}

fn lines(summary: &SweepSummary, measure: &'static Measure) -> Figure {
    let key = &summary.keys[0];
    let numbers: Option<Vec<f64>> =
        summary.points.iter().map(|point| point.settings.get(key)?.as_f64()).collect();
    let mut lines = Lines::new("");
    lines.x_label = match numbers {
        Some(_) => key.clone(),
        None => {
            let name =
                |(at, point): (usize, &PointSummary)| format!("{} {}", at + 1, point.word(key));
            let names: Vec<String> = summary.points.iter().enumerate().map(name).collect();
            format!("{key}: {}", names.join(", "))
        }
    };
    let numbers =
        numbers.unwrap_or_else(|| (1..).map(f64::from).take(summary.points.len()).collect());
    let schemes = summary.schemes();
    for (name, style) in schemes.iter().zip(theme::styles(&schemes)) {
        let mut points: Vec<Point> = summary
            .points
            .iter()
            .zip(&numbers)
            .filter_map(|(point, &x)| {
                let Spread { mean, std } = spread(point, name, measure)?;
                Some(Point { x, mean, deviation: std })
            })
            .collect();
        points.sort_by(|one, two| one.x.total_cmp(&two.x));
        let strong = theme::is_strong(name);
        lines.series.push(Series { name: (*name).to_owned(), style, points, strong });
    }
    lines.series.retain(|series| !series.points.is_empty());
    lines.format = format(measure);
    lines.y_label = measure.words.into();
    lines.logarithmic = !measure.percent;
    let seeds = summary.points.iter().flat_map(|point| &point.schemes).map(|s| s.seeds).max();
    let seeds = match seeds {
        Some(2..) => "Mean over seeds, with a band of one standard deviation.",
        _ => "One seed.",
    };
    let caption = format!("{} against {key}. {seeds}", capital(measure.words));
    let title = format!("{} against {key}", capital(measure.words));
    Figure::new(measure.name, &caption, |width| figure(&title, &[&lines], 1, width))
}

fn heat(summary: &SweepSummary, measure: &'static Measure) -> Figure {
    let values = |key: &String| {
        let mut found: Vec<String> = Vec::new();
        for point in &summary.points {
            let word = point.word(key);
            if !found.contains(&word) {
                found.push(word);
            }
        }
        found
    };
    let [across, down] = [&summary.keys[0], &summary.keys[1]];
    let (names, rows) = (values(across), values(down));
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    let mut panels = Vec::new();
    for scheme in summary.schemes() {
        let at = |row: &String, column: &String| {
            let here =
                |point: &&PointSummary| point.word(across) == *column && point.word(down) == *row;
            spread(summary.points.iter().find(here)?, scheme, measure).map(|spread| spread.mean)
        };
        let values: Vec<Option<f64>> =
            rows.iter().flat_map(|row| names.iter().map(move |name| at(row, name))).collect();
        for value in values.iter().flatten().filter(|value| value.is_finite()) {
            range = (range.0.min(*value), range.1.max(*value));
        }
        panels.push(Heat {
            heading: scheme.to_owned(),
            x_label: across.clone(),
            y_label: down.clone(),
            columns: names.clone(),
            rows: rows.clone(),
            values,
            format: format(measure),
            range,
        });
    }
    panels.iter_mut().for_each(|panel| panel.range = range);
    let unit = if measure.percent { ", in percent" } else { "" };
    let caption = format!(
        "{}{unit}, mean over seeds, scheme by scheme; the panels share their colours.",
        capital(measure.words)
    );
    let title = format!("{} against {across} and {down}", capital(measure.words));
    Figure::new(measure.name, &caption, |width| {
        figure(&title, &dynamic(&panels), columns(width, 2, 1), width)
    })
}

/// A row per combination, a column per scheme, in the first measure that there is.
pub fn table(summary: &SweepSummary) -> Table {
    let measure = measures(summary).next().unwrap_or(&MEASURES[0]);
    let digits = if measure.percent { Digits::Percent(2) } else { Digits::Significant(4) };
    let names = summary.schemes();
    let row = |point: &PointSummary| {
        let cell = |name: &&str| {
            let Some(scheme) = point.schemes.iter().find(|scheme| scheme.name == **name) else {
                return Cell::Empty;
            };
            match (measure.over)(scheme) {
                Some(of) if scheme.leads.iter().any(|leads| leads == measure.name) => {
                    Cell::Leading(of)
                }
                Some(of) if scheme.seeds > 1 => Cell::Spread(of),
                Some(of) => Cell::Number(of.mean),
                None => Cell::Empty,
            }
        };
        let words: Vec<String> = summary.keys.iter().map(|key| point.word(key)).collect();
        Row { name: words.join(", "), cells: names.iter().map(cell).collect(), apart: true }
    };
    let unit = if measure.percent { " in percent" } else { "" };
    Table {
        title: format!(
            "{}{unit}, mean ± standard deviation over seeds. Bold: no other scheme is separably better there (paired 95 % \
             intervals), some are separably worse.",
            capital(measure.words)
        ),
        corner: summary.keys.join(", "),
        columns: names.iter().map(|name| Column::new(name, Better::Neither, digits)).collect(),
        rows: summary.points.iter().map(row).collect(),
    }
}

/// The report as HTML.
pub fn html(name: &str, summary: &SweepSummary) -> String {
    let title = format!("Sweep {name}");
    let mut contents = vec![("summary".to_owned(), "Summary".to_owned(), 0)];
    let mut body = format!(
        "<section aria-labelledby=\"summary\"><h2 id=\"summary\">Summary</h2>\
         <div class=\"scroll\" role=\"region\" aria-label=\"Summary table\" tabindex=\"0\">{}</div></section>",
        table(summary).html()
    );
    let found = figures(summary);
    if found.is_empty() {
        body += "<p>Figures are drawn over one key or two; sweep.csv has all numbers.</p>";
    }
    for one in &found {
        let words = MEASURES.iter().find(|measure| measure.name == one.id);
        let words = words.map_or(one.id.to_owned(), |measure| capital(measure.words));
        let _ = write!(
            body,
            "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{}</h2>{}</section>",
            Escaped(&words),
            show(one, ""),
            id = one.id,
        );
        contents.push((one.id.to_owned(), words, 0));
    }
    body += "<section aria-labelledby=\"repeat\"><h2 id=\"repeat\">How to repeat it</h2><p>Made with:</p>";
    let _ = write!(
        body,
        "<pre tabindex=\"0\"><code>{}</code></pre></section>",
        Escaped(&summary.command)
    );
    contents.push(("repeat".into(), "How to repeat it".into(), 0));
    let mut facts = vec![
        format!("{} settings", summary.points.len()),
        format!("{} schemes", summary.schemes().len()),
    ];
    if summary.missing > 0 {
        facts.push(format!("{} runs not finished", summary.missing));
    }
    facts.push(format!("fedcote {}", summary.version));
    let facts = format!("<p class=\"facts\">{}</p>", Escaped(&facts.join(" · ")));
    shell(&title, &facts, &contents, &body, false)
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
