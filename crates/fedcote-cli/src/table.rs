//! Text tables: columns aligned, the header bold on a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal;

/// Which side of a column its cells keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For names.
    Left,
    /// For numbers.
    Right,
}

/// A table that prints with a header and aligned columns, two spaces apart.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    marked: Vec<(usize, usize)>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.into(), align)).collect();
        Self { columns, rows: Vec::new(), marked: Vec::new() }
    }

    /// Adds a row; cells that are missing are empty, cells too many are dropped.
    pub fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        // Names come from files, and may hold what a terminal takes for commands.
        let cells = cells.into_iter().take(self.columns.len());
        let mut row: Vec<String> = cells.map(|cell| crate::output::visible(&cell)).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Marks a cell to be bold where the header is.
    pub fn mark(&mut self, row: usize, column: usize) {
        self.marked.push((row, column));
    }

    /// The table as text, a line each for header and rows.
    pub fn render(&self, bold_header: bool) -> String {
        let header: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let mut widths: Vec<usize> = header.iter().map(|name| name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        let mut line = |cells: &[&str], bold: &dyn Fn(usize) -> bool| {
            let mut line = String::new();
            for (at, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                // Escape codes have no width, so a bold cell is padded before it is made bold.
                let padding = " ".repeat(width - cell.chars().count());
                let cell = strong(cell, bold_header && bold(at));
                // Writing to a string cannot fail.
                let _ = match self.columns[at].1 {
                    Align::Left => write!(line, "{cell}{padding}  "),
                    Align::Right => write!(line, "{padding}{cell}  "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        };
        line(&header, &|_| true);
        for (row, cells) in self.rows.iter().enumerate() {
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            line(&cells, &|column| self.marked.contains(&(row, column)));
        }
        text
    }
}

/// Whether standard output is a terminal whose user has not asked for plain text with `NO_COLOR`.
pub fn styled() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The text, bold if asked for.
pub fn strong(text: &str, bold: bool) -> String {
    if bold { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escape codes in the name of a client used to reach the terminal.
    #[test]
    fn names_cannot_command_the_terminal() {
        let mut table = Table::new([("client", Align::Left)]);
        table.push(["\x1b]0;owned\x07\x1b[2J\u{9b}31m\nx".to_string()]);
        let text = table.render(false);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), 2);
        let error = crate::error::Error::request("a\x1b[31m\u{7f}.toml: is\nno scenario");
        assert_eq!(error.to_string(), "a\\u{1b}[31m\\u{7f}.toml: is no scenario");
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([("client", Align::Left), ("weight", Align::Right)]);
        table.push(["é".to_string(), "0.5".into()]);
        table.push(["long-name".to_string()]);
        assert_eq!(table.render(false), "client     weight\né             0.5\nlong-name\n");
        table.mark(0, 1);
        let bold = table.render(true);
        assert!(
            bold.starts_with(
                "\x1b[1mclient\x1b[0m     \x1b[1mweight\x1b[0m\né             \x1b[1m0.5\x1b[0m\n"
            ),
            "{bold:?}"
        );
    }
}
