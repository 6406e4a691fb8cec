//! One row a scheme: its mean as a dot, its deviation as a whisker. A table that can be seen.

use crate::axis::{self, Axis, Format};
use crate::font;
use crate::panel::Panel;
use crate::svg::{Anchor, Area, Svg};
use crate::theme::{self, Style};

/// A dot with its whisker.
#[derive(Clone, Debug)]
pub struct Dot {
    /// The row's name.
    pub name: String,
    /// Its colour.
    pub style: Style,
    /// Mean; nothing is drawn when it is not finite.
    pub mean: f64,
    /// Half the length of the whisker.
    pub deviation: f64,
    /// A second value to compare with, drawn as a ring: a published one, mostly.
    pub other: Option<f64>,
    /// Written in bold.
    pub strong: bool,
}

/// A chart of dots with whiskers.
#[derive(Clone, Debug)]
pub struct Dots {
    /// Heading; none when empty.
    pub heading: String,
    /// What is measured.
    pub x_label: String,
    /// How values are written.
    pub format: Format,
    /// The rows, from the top.
    pub rows: Vec<Dot>,
    /// A range to use instead of the data's own, so that panels can share one.
    pub range: Option<(f64, f64)>,
}

const ROW: f64 = 24.0;

impl Dots {
    /// The range of dots and whiskers.
    pub fn own_range(&self) -> (f64, f64) {
        let whiskers = self.rows.iter().filter(|dot| dot.mean.is_finite()).flat_map(|dot| {
            let other = dot.other.filter(|value| value.is_finite()).unwrap_or(dot.mean);
            [dot.mean - dot.deviation, dot.mean + dot.deviation, other]
        });
        let (low, high) = whiskers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if self.format == Format::Percent { axis::two_points(low, high) } else { (low, high) }
    }

    fn write(&self, dot: &Dot) -> String {
        let (scale, digits) = if self.format == Format::Percent { (100.0, 2) } else { (1.0, 4) };
        if dot.mean.is_finite() && dot.deviation == 0.0 {
            format!("{:.digits$}", dot.mean * scale)
        } else if dot.mean.is_finite() {
            format!("{:.digits$} ± {:.digits$}", dot.mean * scale, dot.deviation * scale)
        } else {
            "–".into()
        }
    }
}

impl Panel for Dots {
    fn describe(&self) -> String {
        let rows: Vec<String> =
            self.rows.iter().map(|dot| format!("{} {}", dot.name, self.write(dot))).collect();
        format!("{}, {}: {}.", self.heading, self.x_label, rows.join("; "))
    }

    fn height(&self, _: f64) -> f64 {
        self.rows.len() as f64 * ROW + 46.0 + if self.heading.is_empty() { 0.0 } else { 24.0 }
    }

    fn draw(&self, svg: &mut Svg, area: Area) {
        let (low, high) = self.range.unwrap_or_else(|| self.own_range());
        let axis = Axis::rounded(low, high, 4, self.format);
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let strong = theme::text("strong");
        let left = widest(&mut self.rows.iter().map(|dot| font::width(&dot.name, strong)))
            .min(area.width * 0.4);
        let right = widest(&mut self.rows.iter().map(|dot| font::width(&self.write(dot), strong)));
        let top = if self.heading.is_empty() { 0.0 } else { 24.0 };
        let inner = area.inset(top, right + 16.0, 46.0, left + 14.0);
        if !self.heading.is_empty() {
            let text = font::fit(&self.heading, theme::text("head"), area.width);
            svg.text(area.x, area.y + 14.0, Anchor::Start, "head", &text);
        }
        let place = |value: f64| axis.place(value, inner.x, inner.right());
        let mut free = f64::NEG_INFINITY;
        for (value, text) in axis.ticks() {
            let at = place(*value);
            let half = font::width(text, theme::text("tick")) / 2.0;
            svg.line(at, inner.y, at, inner.bottom(), "grid");
            if at - half >= free {
                svg.text(at, inner.bottom() + 15.0, Anchor::Middle, "tick", text);
                free = at + half + 6.0;
            }
        }
        svg.text(
            inner.x + inner.width / 2.0,
            inner.bottom() + 34.0,
            Anchor::Middle,
            "label",
            &self.x_label,
        );
        for (index, dot) in self.rows.iter().enumerate() {
            let y = inner.y + ROW * (index as f64 + 0.5);
            let class = if dot.strong { "strong" } else { "name" };
            let name = font::fit(&dot.name, theme::text(class), left);
            svg.text(inner.x - 14.0, y + 4.0, Anchor::End, class, &name);
            svg.text(area.right(), y + 4.0, Anchor::End, class, &self.write(dot));
            if !dot.mean.is_finite() {
                continue;
            }
            svg.titled(dot.style.colour(), &format!("{} {}", dot.name, self.write(dot)), |svg| {
                svg.line(
                    place(dot.mean - dot.deviation),
                    y,
                    place(dot.mean + dot.deviation),
                    y,
                    "line",
                );
                if let Some(other) = dot.other.filter(|value| value.is_finite()) {
                    svg.circle(place(other), y, 4.5, "hollow");
                }
                svg.circle(place(dot.mean), y, 4.5, "fill");
            });
        }
    }
}
