//! Tables of means and deviations, some in bold, as Markdown, LaTeX, CSV, JSON and HTML.

use std::fmt::Write;

use crate::svg::Escaped;
pub use fedcote_sim::statistics::Better;
use fedcote_sim::summary::Spread;

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Hundredfold, with so many decimals.
    Percent(usize),
    /// With so many decimals.
    Fixed(usize),
    /// With so many significant digits, as a power of ten where that is shorter.
    Significant(usize),
}

impl Digits {
    /// The number as text.
    pub fn write(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "–".into(),
            Self::Percent(decimals) => format!("{:.decimals$}", value * 100.0),
            Self::Fixed(decimals) => format!("{value:.decimals$}"),
            Self::Significant(_) if value == 0.0 => "0".into(),
            Self::Significant(digits) => {
                let power = value.abs().log10().floor() as i32;
                if (-4..6).contains(&power) {
                    let decimals = (digits as i32 - 1 - power).max(0) as usize;
                    format!("{value:.decimals$}")
                } else {
                    format!("{value:.*e}", digits.saturating_sub(1))
                }
            }
        }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Which values are good.
    pub better: Better,
    /// How values are written.
    pub digits: Digits,
}

impl Column {
    /// A column.
    pub fn new(name: &str, better: Better, digits: Digits) -> Self {
        Self { name: name.to_owned(), better, digits }
    }
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Mean and deviation.
    Spread(Spread),
    /// One number.
    Number(f64),
    /// The value of a scheme that no other is separably better than.
    Leading(Spread),
    /// A remark.
    Text(String),
    /// Nothing.
    Empty,
}

impl From<Option<Spread>> for Cell {
    fn from(statistic: Option<Spread>) -> Self {
        statistic.map_or(Self::Empty, Self::Spread)
    }
}

impl Cell {
    fn value(&self) -> Option<f64> {
        match self {
            Self::Spread(statistic) | Self::Leading(statistic) => Some(statistic.mean),
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Empty => None,
        }
        .filter(|value| value.is_finite())
    }

    pub(crate) fn write(&self, digits: Digits) -> String {
        match self {
            Self::Spread(Spread { mean, .. }) if !mean.is_finite() => "–".into(),
            Self::Spread(Spread { mean, std }) | Self::Leading(Spread { mean, std }) => {
                format!("{} ± {}", digits.write(*mean), digits.write(*std))
            }
            Self::Number(number) => digits.write(*number),
            Self::Text(text) => text.clone(),
            Self::Empty => "–".into(),
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its heading.
    pub name: String,
    /// One cell a column.
    pub cells: Vec<Cell>,
    /// Never bold: an ideal that no scheme can have, or a run that diverged.
    pub apart: bool,
}

/// A table.
///
/// ```
/// use fedcote_sim::summary::Spread;
/// use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};
/// let spread = |mean, std| vec![Cell::Spread(Spread { mean, std })];
/// let table = Table {
///     title: "Accuracy".into(),
///     corner: "scheme".into(),
///     columns: vec![Column::new("accuracy (%)", Better::Higher, Digits::Percent(2))],
///     rows: vec![
///         Row { name: "fedavg".into(), cells: spread(0.8089, 0.0361), apart: false },
///         Row { name: "fedcote".into(), cells: spread(0.9052, 0.0120), apart: false },
///     ],
/// };
/// assert!(table.markdown().contains("| fedcote | **90.52 ± 1.20** |"));
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What the rows are.
    pub corner: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// Whether the cell is bold: it leads, or it has the highest number of its column, the lowest where these are good;
    /// equal to all printed digits is as high. The latter says nothing about chance.
    pub fn is_bold(&self, row: usize, column: usize) -> bool {
        let Column { better, digits, .. } = self.columns[column];
        if let Some(Cell::Leading(_)) = self.rows[row].cells.get(column) {
            return true;
        }
        let value = |row: &Row| {
            let value = row.cells.get(column).and_then(Cell::value).filter(|_| !row.apart)?;
            Some(if better == Better::Lower { -value } else { value })
        };
        let rivals: Vec<f64> = self.rows.iter().filter_map(value).collect();
        let highest = rivals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let Some(own) =
            value(&self.rows[row]).filter(|_| better != Better::Neither && rivals.len() > 1)
        else {
            return false;
        };
        digits.write(own) == digits.write(highest)
    }

    fn text(&self, row: usize, column: usize) -> String {
        let cell = self.rows[row].cells.get(column).unwrap_or(&Cell::Empty);
        cell.write(self.columns[column].digits)
    }

    /// Each row's name and its cells' texts, the bold ones marked.
    fn marked(&self, mark: impl Fn(String, bool) -> String) -> Vec<(String, Vec<String>)> {
        let cells = |row| {
            (0..self.columns.len()).map(|c| mark(self.text(row, c), self.is_bold(row, c))).collect()
        };
        self.rows.iter().enumerate().map(|(index, row)| (row.name.clone(), cells(index))).collect()
    }

    /// GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let escape = |text: &str| {
            let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
            text.replace('*', "\\*").replace(['\n', '\r'], " ")
        };
        let mut out = format!("| {} |", escape(&self.corner));
        for column in &self.columns {
            let _ = write!(out, " {} |", escape(&column.name));
        }
        out.push_str("\n|---|");
        out.push_str(&"---:|".repeat(self.columns.len()));
        for (name, cells) in
            self.marked(
                |text, bold| if bold { format!("**{}**", escape(&text)) } else { escape(&text) },
            )
        {
            let _ = write!(out, "\n| {} | {} |", escape(&name), cells.join(" | "));
        }
        out.push('\n');
        out
    }

    /// A LaTeX `tabular` with the rules of the package booktabs.
    pub fn latex(&self) -> String {
        let mut out = format!(
            "\\begin{{tabular}}{{l{}}}\n\\toprule\n{}",
            "r".repeat(self.columns.len()),
            latex(&self.corner)
        );
        for column in &self.columns {
            let _ = write!(out, " & {}", latex(&column.name));
        }
        out.push_str(" \\\\\n\\midrule\n");
        let mark = |text: String, bold| {
            let text = latex(&text);
            if bold { format!("\\textbf{{{text}}}") } else { text }
        };
        for (name, cells) in self.marked(mark) {
            let _ = writeln!(out, "{} & {} \\\\", latex(&name), cells.join(" & "));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n");
        out
    }

    /// Comma-separated values at full precision: a column for each mean and one for its deviation.
    pub fn csv(&self) -> String {
        let quote = fedcote_support::csv_field;
        let spreads = |column: usize| {
            self.rows.iter().any(|row| {
                matches!(row.cells.get(column), Some(Cell::Spread(_) | Cell::Leading(_)))
            })
        };
        let mut out = quote(&self.corner);
        for (index, column) in self.columns.iter().enumerate() {
            let _ = write!(out, ",{}", quote(&column.name));
            if spreads(index) {
                let _ = write!(out, ",{}", quote(&format!("{} deviation", column.name)));
            }
        }
        out.push('\n');
        for row in &self.rows {
            out.push_str(&quote(&row.name));
            for index in 0..self.columns.len() {
                let (value, deviation) = match row.cells.get(index) {
                    Some(Cell::Spread(spread) | Cell::Leading(spread)) => {
                        (spread.mean.to_string(), spread.std.to_string())
                    }
                    Some(Cell::Number(number)) => (number.to_string(), String::new()),
                    Some(Cell::Text(text)) => (quote(text), String::new()),
                    Some(Cell::Empty) | None => Default::default(),
                };
                let _ = write!(out, ",{value}");
                if spreads(index) {
                    let _ = write!(out, ",{deviation}");
                }
            }
            out.push('\n');
        }
        out
    }

    /// One JSON document: title, columns, and rows by name with values at full precision.
    pub fn json(&self) -> serde_json::Value {
        let cell = |row: usize, column: usize| {
            let bold = self.is_bold(row, column);
            match self.rows[row].cells.get(column) {
                Some(Cell::Spread(Spread { mean, std }) | Cell::Leading(Spread { mean, std })) => {
                    serde_json::json!({"mean": mean, "std": std, "bold": bold})
                }
                Some(Cell::Number(value)) => serde_json::json!({"value": value, "bold": bold}),
                Some(Cell::Text(text)) => serde_json::json!({"text": text}),
                Some(Cell::Empty) | None => serde_json::Value::Null,
            }
        };
        let rows = self.rows.iter().enumerate().map(|(index, row)| {
            let cells: Vec<_> = (0..self.columns.len()).map(|column| cell(index, column)).collect();
            serde_json::json!({"name": row.name, "cells": cells})
        });
        let columns = self
            .columns
            .iter()
            .map(|column| serde_json::json!({"name": column.name, "better": column.better}));
        serde_json::json!({
            "title": self.title,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    /// An HTML `<table>` with its title as caption.
    pub fn html(&self) -> String {
        let mut out = format!(
            "<table><caption>{}</caption><thead><tr><th scope=\"col\">{}</th>",
            Escaped(&self.title),
            Escaped(&self.corner)
        );
        for column in &self.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", Escaped(&column.name));
        }
        out.push_str("</tr></thead><tbody>");
        let mark = |text: String, bold| {
            let text = Escaped(&text);
            if bold { format!("<strong>{text}</strong>") } else { text.to_string() }
        };
        for (name, cells) in self.marked(mark) {
            let _ = write!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                Escaped(&name),
                cells.join("</td><td>")
            );
        }
        out.push_str("</tbody></table>");
        out
    }
}

fn latex(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(character);
            }
            '±' => out.push_str("$\\pm$"),
            '–' => out.push_str("--"),
            '×' => out.push_str("$\\times$"),
            '²' => out.push_str("$^2$"),
            'χ' => out.push_str("$\\chi$"),
            '\n' | '\r' => out.push(' '),
            plain => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests;
