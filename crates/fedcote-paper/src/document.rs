//! What an artefact looks like on disk: one Markdown page, tables as LaTeX, CSV and JSON, figures as SVG and PNG.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fedcote_plot::svg::Svg;
use fedcote_plot::tables::Table;
use fedcote_plot::theme::Theme;

use crate::error::Error;

/// An artefact, ready to be written.
#[derive(Default)]
pub struct Document {
    pub title: String,
    /// Paragraphs of plain text, in Markdown.
    pub text: Vec<String>,
    /// Tables, each with what distinguishes its file name from the first one's.
    pub tables: Vec<(&'static str, Table)>,
    /// Figures, likewise.
    pub figures: Vec<(&'static str, Svg)>,
    /// What the figures show, as CSV, likewise.
    pub data: Vec<(&'static str, String)>,
}

/// How an artefact came to be.
pub struct Origin {
    pub command: String,
    pub date: String,
    pub machine: String,
}

impl Origin {
    /// Here and now.
    pub fn new(command: String) -> Self {
        Self { command, date: today(), machine: machine() }
    }
}

impl Document {
    /// The tables, for reading on the spot.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (_, table) in &self.tables {
            let _ = write!(text, "{}\n{}\n", table.title, table.markdown());
        }
        text
    }

    /// The title of the page that writing would replace, if it is another one.
    pub fn replaces(&self, folder: &Path, name: &str) -> Option<String> {
        let page = std::fs::read_to_string(folder.join(format!("{name}.md"))).ok()?;
        let title = page.lines().next()?.strip_prefix("# ")?;
        (title != self.title).then(|| title.to_owned())
    }

    /// Writes all files; returns the page's path.
    pub fn write(&self, folder: &Path, name: &str, origin: &Origin) -> Result<PathBuf, Error> {
        let file = |part: &str, ending: &str| match part {
            "" => format!("{name}.{ending}"),
            part => format!("{name}-{part}.{ending}"),
        };
        let put = |file: String, contents: &[u8]| {
            fedcote_support::write(&folder.join(file), contents).map_err(Error::work)
        };
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::work(format!("{}: {error}", folder.display())))?;
        let version = env!("CARGO_PKG_VERSION");
        let Origin { command, date, machine } = origin;
        let mut page = format!("# {}\n", self.title);
        for (part, figure) in &self.figures {
            put(file(part, "svg"), figure.document().as_bytes())?;
            let png = fedcote_plot::png(figure, Theme::Light, 2.0).map_err(Error::work)?;
            put(file(part, "png"), &png)?;
            let _ = write!(page, "\n![{}]({})\n", figure.title(), file(part, "svg"));
        }
        for (part, data) in &self.data {
            put(file(part, "csv"), data.as_bytes())?;
            let _ = write!(page, "\n[The data of the figure]({})\n", file(part, "csv"));
        }
        for (part, table) in &self.tables {
            put(file(part, "tex"), table.latex().as_bytes())?;
            put(file(part, "csv"), table.csv().as_bytes())?;
            if !table.title.is_empty() {
                let _ = write!(page, "\n## {}\n", table.title);
            }
            let _ = write!(page, "\n{}", table.markdown());
        }
        for paragraph in &self.text {
            let _ = write!(page, "\n{paragraph}\n");
        }
        let _ = write!(page, "\n`{command}`, version {version}, {date}, {machine}.\n");
        put(file("", "md"), page.as_bytes())?;
        let json = serde_json::json!({
            "title": self.title,
            "text": self.text,
            "tables": self.tables.iter().map(|(_, table)| table.json()).collect::<Vec<_>>(),
            "command": command,
            "version": version,
            "date": date,
            "machine": machine,
        });
        put(file("", "json"), &serde_json::to_vec_pretty(&json).expect("plain data"))?;
        Ok(folder.join(file("", "md")))
    }
}

/// The date in UTC, as 2026-11-15.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    fedcote_plot::date(seconds / 86_400)
}

/// Cores and, where the system tells, the processor.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    match model {
        Some(model) => format!("{cores} cores, {}", model.trim()),
        None => format!("{cores} cores"),
    }
}
