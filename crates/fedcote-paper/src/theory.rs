//! What needs no training: the work of the enumeration, the bound.

use fedcote::enumeration::multisets;
use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};

use crate::document::Document;
use crate::numbers::number;

const CLIENTS: usize = 20;
const DRAWS: u64 = 10;

/// Table 8: how many multisets FedCote-II enumerates, in percent of FedCote's.
pub fn enumeration(title: String) -> Document {
    let digits = Digits::Fixed(4);
    let column = |name: &str| Column::new(name, Better::Neither, digits);
    let row = |k_apx: u64| {
        let ours = 100.0 * multisets(CLIENTS, k_apx) / multisets(CLIENTS, DRAWS);
        let name = format!("K_apx={k_apx}");
        let theirs = number("table-8", &name, "ratio").map(|paper| paper.mean);
        let difference = theirs.map(|paper| rounded(ours) - paper);
        let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Number);
        Row { name, cells: vec![cell(Some(ours)), cell(theirs), cell(difference)], apart: false }
    };
    let table = Table {
        title: format!("Multisets, N = {CLIENTS}, K = {DRAWS}"),
        corner: "FedCote-II".into(),
        columns: vec![column("ratio (%)"), column("paper"), column("difference")],
        rows: [2, 4, 6, 8].map(row).into(),
    };
    let text = "C(N+K_apx−1, K_apx) / C(N+K−1, K). The closed form that this program uses needs no multisets: its cost \
                does not grow so, and FedCote-II saves nothing with it.";
    Document { title, text: vec![text.into()], tables: vec![("", table)], ..Default::default() }
}

/// As printed, to four decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digits that the paper prints, all of them.
    #[test]
    fn table_8_is_the_papers() {
        let table = enumeration(String::new()).tables[0].1.markdown();
        for row in [
            "| K_apx=2 | 0.0010 | 0.0010 | 0.0000 |",
            "| K_apx=4 | 0.0442 | 0.0442 | 0.0000 |",
            "| K_apx=6 | 0.8842 | 0.8842 | 0.0000 |",
            "| K_apx=8 | 11.0837 | 11.0837 | 0.0000 |",
        ] {
            assert!(table.contains(row), "{row} in {table}");
        }
    }
}
