//! Printing what selection probabilities lead to: a table to read, CSV, or one JSON document.

use std::io::{self, Write};

use fedcote::{Draws, Federation, Options, Uploads, Warning};

use crate::arguments::number as parsed;
use crate::error::Error;
use crate::table::{Align, Table, strong, styled};

/// Rows of the table before the rest is only counted.
const ROWS: usize = 40;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct Format {
    /// Print one JSON document instead of a table
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the clients as CSV instead of a table
    #[arg(long)]
    pub csv: bool,
}

/// Who is excluded.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args)]
pub struct Exclusion {
    /// Exclude clients with a higher failure probability [default: the file's, else 0.85]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = parsed)]
    pub threshold: Option<f64>,
    /// Let the threshold lose a label, as in the paper
    #[arg(long)]
    no_coverage: bool,
}

impl Exclusion {
    /// As the library has it, with the threshold of the flag or the file.
    pub fn options(self, threshold: Option<f64>) -> Options {
        let options = Options::new().with_coverage(!self.no_coverage);
        options.with_threshold(threshold.unwrap_or(options.threshold))
    }
}

/// How clients are drawn and upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct Procedure {
    /// How clients are drawn: one by one, or by evenly spaced points, which is less noisy
    #[arg(long, value_enum, value_name = "KIND", default_value_t = DrawsName::Independent)]
    draws: DrawsName,
    /// What one upload carries: one draw of a client, or all its draws of the round
    #[arg(long, value_enum, value_name = "KIND", default_value_t = UploadsName::PerDraw)]
    uploads: UploadsName,
}

impl Procedure {
    /// As the library has it.
    pub fn kinds(self) -> (Draws, Uploads) {
        let draws = match self.draws {
            DrawsName::Independent => Draws::Independent,
            DrawsName::Systematic => Draws::Systematic,
        };
        let uploads = match self.uploads {
            UploadsName::PerDraw => Uploads::PerDraw,
            UploadsName::PerClient => Uploads::PerClient,
        };
        (draws, uploads)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DrawsName {
    Independent,
    Systematic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UploadsName {
    PerDraw,
    PerClient,
}

/// What `select` and `evaluate` have to say.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// `exact`, `gradient`, or `given` for probabilities that were brought along.
    pub method: &'static str,
    pub federation: &'a Federation,
    pub procedure: Procedure,
    pub selected: u64,
    pub selection: &'a [f64],
    pub appearance: &'a [f64],
    pub eligible: &'a [bool],
    pub label_divergence: f64,
    pub weight_divergence: f64,
    pub expected_arrivals: f64,
    /// `None` for `evaluate`.
    pub optimality: Option<f64>,
    pub warnings: &'a [Warning],
}

impl Outcome<'_> {
    /// Prints to standard output.
    pub fn print(&self, format: Format) -> Result<(), Error> {
        crate::output::write(|out| {
            if format.json {
                self.json(out)
            } else if format.csv {
                self.csv(out)
            } else {
                self.table(out)
            }
        })
    }

    // Written by hand: a million clients as a tree of values would need ten times the memory.
    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{{\"method\":\"{}\",\"selected\":{},", self.method, self.selected)?;
        write!(out, "\"label_divergence\":{},", Json(self.label_divergence))?;
        write!(out, "\"weight_divergence\":{},", Json(self.weight_divergence))?;
        write!(out, "\"expected_arrivals\":{},", Json(self.expected_arrivals))?;
        if let Some(optimality) = self.optimality {
            write!(out, "\"optimality\":{},", Json(optimality))?;
        }
        out.write_all(b"\"warnings\":")?;
        let warnings: Vec<String> = self.warnings.iter().map(Warning::to_string).collect();
        serde_json::to_writer(&mut *out, &warnings)?;
        out.write_all(b",\"clients\":[")?;
        for client in 0..self.federation.len() {
            out.write_all(if client == 0 { b"\n{\"id\":" } else { b",\n{\"id\":" })?;
            serde_json::to_writer(&mut *out, &self.federation.id(client))?;
            for (name, value) in [
                (&b",\"weight\":"[..], self.federation.weights()[client]),
                (b",\"failure\":", self.federation.failure()[client]),
                (b",\"selection\":", self.selection[client]),
                (b",\"appearance\":", self.appearance[client]),
            ] {
                out.write_all(name)?;
                serde_json::to_writer(&mut *out, &value)?;
            }
            write!(out, ",\"eligible\":{}}}", self.eligible[client])?;
        }
        out.write_all(b"\n]}\n")
    }

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(["id", "weight", "failure", "eligible", "selection", "appearance"])?;
        for client in 0..self.federation.len() {
            writer.write_record([
                &*self.federation.id(client),
                &self.federation.weights()[client].to_string(),
                &self.federation.failure()[client].to_string(),
                &self.eligible[client].to_string(),
                &self.selection[client].to_string(),
                &self.appearance[client].to_string(),
            ])?;
        }
        writer.flush()
    }

    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let style = styled();
        let right = Align::Right;
        let mut table = Table::new([
            ("client", Align::Left),
            ("weight", right),
            ("failure", right),
            ("selection", right),
            ("appearance", right),
        ]);
        for client in 0..self.federation.len().min(ROWS) {
            let selected = self.eligible[client] || self.selection[client] > 0.0;
            table.push([
                self.federation.id(client).into_owned(),
                number(self.federation.weights()[client]),
                number(self.federation.failure()[client]),
                if selected { number(self.selection[client]) } else { "excluded".into() },
                number(self.appearance[client]),
            ]);
        }
        out.write_all(table.render(style).as_bytes())?;
        if self.federation.len() > ROWS {
            let more = self.federation.len() - ROWS;
            writeln!(out, "… and {more} more clients (--json or --csv prints all)")?;
        }
        // FedAvg selects by weight. It has no answer when all the weight is on clients that never arrive.
        let weights = self.federation.weights();
        let kinds = self.procedure.kinds();
        let before = fedcote::evaluate_for(self.federation, self.selected, weights, kinds).ok();
        let by_weight = |of: &dyn Fn(&fedcote::Evaluation) -> String| {
            before.as_ref().map(of).unwrap_or_default()
        };
        let mut sums =
            Table::new([("", Align::Left), ("by weight (FedAvg)", right), (self.heading(), right)]);
        sums.push([
            "label divergence".into(),
            by_weight(&|before| scientific(before.label_divergence)),
            scientific(self.label_divergence),
        ]);
        sums.push([
            "weight divergence".into(),
            by_weight(&|before| scientific(before.weight_divergence)),
            scientific(self.weight_divergence),
        ]);
        sums.push([
            "expected arrivals".into(),
            by_weight(&|before| format!("{:.2}", before.expected_arrivals)),
            format!("{:.2}", self.expected_arrivals),
        ]);
        if let Some(optimality) = self.optimality {
            // Below this it is rounding, which differs between machines.
            let shown = if optimality < 1e-12 { "< 1e-12".into() } else { scientific(optimality) };
            sums.push(["optimality".into(), String::new(), shown]);
        }
        write!(out, "\n{}", sums.render(style))?;
        for warning in self.warnings {
            writeln!(out, "{} {warning}", strong("warning:", style))?;
        }
        Ok(())
    }

    fn heading(&self) -> &'static str {
        if self.optimality.is_some() { "this selection" } else { "as given" }
    }
}

/// A number as JSON has it.
struct Json(f64);

impl std::fmt::Display for Json {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&serde_json::to_string(&self.0).unwrap_or_else(|_| "null".into()))
    }
}

/// Four digits after the point where that shows something, else scientific.
fn number(value: f64) -> String {
    if value == 0.0 || value >= 0.001 { format!("{value:.4}") } else { format!("{value:.2e}") }
}

fn scientific(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.2e}") }
}
