//! Numbers in the prose of pages that come from committed tables: the sentence says what its table has.
//!
//! A marker right behind a number names its cell:
//!
//! ```text
//! FedAvg has 81.89 ± 0.68<!--% harsh/table-4 | fedavg | non-iid accuracy -->
//! ```
//!
//! The file is `docs/results/paper/harsh/table-4.csv`; `%` shows a share in percent, `=` a number as it is. Behind the column may
//! follow `| difference`: from the paper's number, in the next column of that name; with the column `*` it is the largest difference of
//! the row, whatever its sign. The number must be the cell's, rounded to the digits that are written. `cargo xtask docs` writes them anew.

use std::collections::BTreeMap;
use std::path::Path;

use crate::pages::Page;
use crate::root;

/// A table of a CSV file: names of columns, and rows by name.
struct Table {
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error: csv::Error| format!("{}: {error}", path.display());
        let mut reader = csv::Reader::from_path(path).map_err(wrong)?;
        let columns = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
        let mut rows = BTreeMap::new();
        for record in reader.records() {
            let cells: Vec<String> = record.map_err(wrong)?.iter().map(str::to_owned).collect();
            rows.insert(cells.first().cloned().unwrap_or_default(), cells);
        }
        Ok(Self { columns, rows })
    }

    /// What a marker stands for: a value, and its deviation if there is one.
    fn cell(
        &self,
        row: &str,
        column: &str,
        difference: bool,
    ) -> Result<(f64, Option<f64>), String> {
        let cells = self.rows.get(row).ok_or_else(|| format!("no row `{row}`"))?;
        let value = |at: usize| -> Result<f64, String> {
            let text = cells.get(at).map_or("", String::as_str);
            text.parse().map_err(|_| format!("{row}, {column}: `{text}` is not a number"))
        };
        let named = |name: &str, from: usize| {
            let places = self.columns.iter().enumerate().skip(from);
            places.filter(|(_, found)| *found == name).map(|(at, _)| at).next()
        };
        if column == "*" {
            let all = self.columns.iter().enumerate().filter(|(_, name)| *name == "difference");
            let sizes = all.filter_map(|(at, _)| value(at).ok()).map(f64::abs);
            return match sizes.reduce(f64::max) {
                Some(largest) if difference => Ok((largest, None)),
                _ => Err(format!("{row}: no differences")),
            };
        }
        let at = named(column, 1).ok_or_else(|| format!("no column `{column}`"))?;
        if difference {
            let at =
                named("difference", at).ok_or_else(|| format!("no difference of `{column}`"))?;
            return Ok((value(at)?, None));
        }
        let deviation = named(&format!("{column} deviation"), at).and_then(|at| value(at).ok());
        Ok((value(at)?, deviation))
    }
}

/// A page's text with the numbers that its tables have; what is wrong with its markers.
fn written(text: &str, tables: &Path) -> (String, Vec<String>) {
    let (mut out, mut wrong) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, marker, after)) = next(rest) {
        let told = expected(before, marker, tables);
        match told {
            Ok((kept, number)) => {
                out += kept;
                out += &number;
            }
            Err(problem) => {
                wrong.push(format!("<!--{marker}-->: {problem}"));
                out += before;
            }
        }
        out += &format!("<!--{marker}-->");
        rest = after;
    }
    (out + rest, wrong)
}

/// The text before the first marker, the marker, and the text behind it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let start = ["<!--%", "<!--="].iter().filter_map(|opening| text.find(opening)).min()?;
    let length = text[start..].find("-->")?;
    let inside = &text[start + 4..start + length];
    Some((&text[..start], inside, &text[start + length + 3..]))
}

/// The text that stays, and the number that belongs behind it.
fn expected<'a>(before: &'a str, marker: &str, tables: &Path) -> Result<(&'a str, String), String> {
    let factor = if marker.starts_with('%') { 100.0 } else { 1.0 };
    let fields: Vec<&str> = marker[1..].split('|').map(str::trim).collect();
    let (file, row, column, difference) = match fields[..] {
        [file, row, column] => (file, row, column, false),
        [file, row, column, "difference"] => (file, row, column, true),
        _ => {
            return Err(
                "a marker is `file | row | column` or `file | row | column | difference`".into()
            );
        }
    };
    let (value, deviation) =
        Table::read(&tables.join(format!("{file}.csv")))?.cell(row, column, difference)?;
    let (kept, last) = number_at_end(before).ok_or("there is no number before it")?;
    let show = |value: f64, like: &str| {
        let digits = like.split_once('.').map_or(0, |(_, digits)| digits.len());
        let sign = if like.starts_with('+') && value >= 0.0 { "+" } else { "" };
        let minus = if like.starts_with('−') { "−" } else { "-" };
        format!("{sign}{:.digits$}", factor * value).replace('-', minus)
    };
    let pair = kept.strip_suffix(" ± ").and_then(number_at_end);
    match (pair, deviation) {
        (Some((kept, first)), Some(deviation)) => {
            Ok((kept, format!("{} ± {}", show(value, first), show(deviation, last))))
        }
        (Some(_), None) => Err("its cell has no deviation".into()),
        (None, _) => Ok((kept, show(value, last))),
    }
}

/// Splits a number from the end of a text.
fn number_at_end(text: &str) -> Option<(&str, &str)> {
    let bare = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let signed = bare.strip_suffix(['+', '-', '−']).unwrap_or(bare);
    // A hyphen behind a letter belongs to a word.
    let start = if signed.ends_with(char::is_alphanumeric) { bare.len() } else { signed.len() };
    (start < text.len() && text[start..].contains(|c: char| c.is_ascii_digit()))
        .then(|| text.split_at(start))
}

#[test]
fn sentences_say_what_their_tables_have() {
    let tables = root().join("docs/results/paper");
    let mut problems = Vec::new();
    let mut markers = 0;
    for page in Page::all() {
        let (text, wrong) = written(&page.text, &tables);
        markers += page.text.matches("<!--%").count() + page.text.matches("<!--=").count();
        problems.extend(wrong.into_iter().map(|problem| format!("{}: {problem}", page.name)));
        if text == page.text {
            continue;
        }
        if std::env::var_os("FEDCOTE_WRITE_DOCS").is_some() {
            std::fs::write(root().join(&page.name), &text).expect("written");
            continue;
        }
        for (said, has) in page.text.lines().zip(text.lines()).filter(|(said, has)| said != has) {
            problems.push(format!(
                "{}: a table says otherwise:\n  page:  {said}\n  table: {has}",
                page.name
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "{}\n(`cargo xtask docs` writes the numbers anew)",
        problems.join("\n")
    );
    assert!(markers > 50, "only {markers} markers: has their form changed?");
}

/// The test of the test: a sentence whose number is another one, or whose table, row or column is not there, is found.
#[test]
fn an_altered_number_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = "scheme,iid,iid deviation,paper,paper deviation,difference,pairs,difference\n\
               fedavg,0.81888,0.0068,0.8089,0.036,0.00998,0.5,-0.2\n";
    std::fs::write(folder.path().join("t.csv"), csv).expect("written");
    let check = |text: &str| written(text, folder.path());
    for sound in [
        "has 81.89<!--% t | fedavg | iid -->, which",
        "has 81.9 ± 0.7<!--% t | fedavg | iid --> here",
        "raw 0.50<!--= t | fedavg | pairs -->",
        "+1.0<!--% t | fedavg | iid | difference --> and −20.0<!--% t | fedavg | pairs | difference -->",
        "within 20.0<!--% t | fedavg | * | difference --> points, K-20<!-- a comment -->",
    ] {
        assert_eq!(check(sound), (sound.to_owned(), Vec::new()));
    }
    for (altered, right) in [
        ("has 81.88<!--% t | fedavg | iid -->", "has 81.89<!--% t | fedavg | iid -->"),
        ("81.89 ± 0.86<!--% t | fedavg | iid -->", "81.89 ± 0.68<!--% t | fedavg | iid -->"),
        (
            "20<!--% t | fedavg | pairs | difference -->",
            "-20<!--% t | fedavg | pairs | difference -->",
        ),
    ] {
        assert_eq!(check(altered), (right.to_owned(), Vec::new()));
    }
    for broken in [
        "1.0<!--% u | fedavg | iid -->",
        "1.0<!--% t | fedprox | iid -->",
        "1.0<!--% t | fedavg | ideal -->",
        "1.0 ± 0.1<!--% t | fedavg | pairs -->",
        "words<!--% t | fedavg | pairs -->",
        "1.0<!--% t | fedavg -->",
    ] {
        assert_eq!(check(broken).1.len(), 1, "{broken}");
    }
}
