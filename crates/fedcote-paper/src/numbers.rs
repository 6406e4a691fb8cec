//! The paper's own numbers, transcribed from its tables, to stand beside ours.

use std::sync::LazyLock;

use fedcote_sim::summary::Spread;

/// A cell of one of the paper's tables; accuracies are in percent there.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub table: String,
    pub row: String,
    pub column: String,
    pub value: Spread,
}

static NUMBERS: LazyLock<Vec<Number>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_reader(include_str!("numbers.csv").as_bytes());
    let number = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.expect("the file is ours");
        let value = |at: usize| record[at].parse().expect("the file is ours");
        Number {
            table: record[0].to_owned(),
            row: record[1].to_owned(),
            column: record[2].to_owned(),
            value: Spread {
                mean: value(3),
                std: if record[4].is_empty() { f64::NAN } else { value(4) },
            },
        }
    };
    reader.records().map(number).collect()
});

/// What the paper has in this cell.
pub fn number(table: &str, row: &str, column: &str) -> Option<Spread> {
    let found = NUMBERS.iter().find(|n| n.table == table && n.row == row && n.column == column);
    found.map(|number| number.value)
}

/// All cells of a table.
#[cfg(test)]
pub fn of_table(table: &str) -> impl Iterator<Item = &'static Number> {
    NUMBERS.iter().filter(move |number| number.table == table)
}
