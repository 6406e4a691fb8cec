//! A heat map: a number for every pair of values of two settings, coloured and written.

use crate::axis::Format;
use crate::font;
use crate::panel::Panel;
use crate::svg::{Anchor, Area, Svg};
use crate::theme::{self, STEPS};

/// A chart of coloured cells.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Heading; none when empty.
    pub heading: String,
    /// What the columns are.
    pub x_label: String,
    /// What the rows are.
    pub y_label: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// Row after row; what is missing or not finite is left empty.
    pub values: Vec<Option<f64>>,
    /// How values are written.
    pub format: Format,
    /// The range of the colours, so that panels can share one.
    pub range: (f64, f64),
}

const ROW: f64 = 30.0;
const BELOW: f64 = 42.0;

impl Heat {
    fn value(&self, row: usize, column: usize) -> Option<f64> {
        self.values[row * self.columns.len() + column].filter(|value| value.is_finite())
    }

    fn write(&self, value: f64) -> String {
        match self.format {
            Format::Percent => format!("{:.1}", 100.0 * value),
            Format::Number if value.abs() >= 100.0 => format!("{value:.0}"),
            Format::Number => format!("{value:.3}"),
        }
    }

    fn top(&self) -> f64 {
        if self.heading.is_empty() { 18.0 } else { 42.0 }
    }
}

impl Panel for Heat {
    fn describe(&self) -> String {
        let mut cells = Vec::new();
        for (row, of_row) in self.rows.iter().enumerate() {
            for (column, of_column) in self.columns.iter().enumerate() {
                if let Some(value) = self.value(row, column) {
                    cells.push(format!("{of_row}, {of_column}: {}", self.write(value)));
                }
            }
        }
        let Self { heading, y_label, x_label, .. } = self;
        format!("Heat map, {heading}, {y_label} by {x_label}: {}.", cells.join("; "))
    }

    fn height(&self, _: f64) -> f64 {
        self.top() + ROW * self.rows.len() as f64 + BELOW
    }

    fn draw(&self, svg: &mut Svg, area: Area) {
        let tick = theme::text("tick");
        let widest = self.rows.iter().map(|name| font::width(name, tick)).fold(0.0, f64::max);
        let inner = area.inset(self.top(), 2.0, BELOW, widest.min(area.width * 0.3) + 10.0);
        if !self.heading.is_empty() {
            let text = font::fit(&self.heading, theme::text("head"), area.width);
            svg.text(area.x, area.y + 14.0, Anchor::Start, "head", &text);
        }
        svg.text(area.x, inner.y - 6.0, Anchor::Start, "label", &self.y_label);
        let wide = inner.width / self.columns.len().max(1) as f64;
        let (low, high) = self.range;
        for (row, name) in self.rows.iter().enumerate() {
            let y = inner.y + ROW * row as f64;
            let text = font::fit(name, tick, widest.min(area.width * 0.3));
            svg.text(inner.x - 6.0, y + ROW / 2.0 + 4.0, Anchor::End, "tick", &text);
            for column in 0..self.columns.len() {
                let x = inner.x + wide * column as f64;
                let Some(value) = self.value(row, column) else { continue };
                let share = if high > low { (value - low) / (high - low) } else { 0.5 };
                let step = ((share * STEPS as f64) as usize).min(STEPS - 1);
                svg.rect(x + 1.0, y + 1.0, wide - 2.0, ROW - 2.0, &format!("pin fine f{step}"));
                let text = self.write(value);
                if font::width(&text, tick) < wide - 4.0 {
                    let (middle, base) = (x + wide / 2.0, y + ROW / 2.0 + 4.0);
                    svg.text(middle, base, Anchor::Middle, "tick halo", &text);
                }
            }
        }
        for (column, name) in self.columns.iter().enumerate() {
            let middle = inner.x + wide * (column as f64 + 0.5);
            let text = font::fit(name, tick, wide - 2.0);
            svg.text(middle, inner.bottom() + 15.0, Anchor::Middle, "tick", &text);
        }
        let middle = inner.x + inner.width / 2.0;
        svg.text(middle, inner.bottom() + 34.0, Anchor::Middle, "label", &self.x_label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::figure;

    fn heat(values: Vec<Option<f64>>) -> Heat {
        Heat {
            heading: "fedcote".into(),
            x_label: "loss".into(),
            y_label: "K".into(),
            columns: ["0", "10"].map(String::from).to_vec(),
            rows: ["5", "20"].map(String::from).to_vec(),
            values,
            format: Format::Percent,
            range: (0.5, 0.9),
        }
    }

    #[test]
    fn cells_have_their_value_and_the_colour_of_it() {
        let heat = heat(vec![Some(0.5), Some(0.9), Some(0.72), None]);
        let svg = figure("Accuracy", &[&heat], 1, 480.0).inline();
        for part in ["pin fine f0", "pin fine f5", "pin fine f3", ">50.0<", ">90.0<", ">72.0<"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(svg.matches("pin fine").count(), 3);
        assert!(heat.describe().contains("5, 10: 90.0"), "{}", heat.describe());
    }

    #[test]
    fn values_that_are_not_numbers_leave_no_trace() {
        let heat = heat(vec![Some(f64::NAN), Some(f64::INFINITY), None, Some(0.6)]);
        let svg = figure("Accuracy", &[&heat], 1, 480.0).inline();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
