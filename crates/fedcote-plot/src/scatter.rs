//! Points in the plane: what a client gets against how often it fails, for instance.

use crate::axis::{Axis, Format};
use crate::panel::{self, Frame, Key, Mark, Panel, Words};
use crate::svg::{Anchor, Area, Svg};
use crate::theme::Style;

/// A cloud of points in one colour.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub style: Style,
    /// x and y; points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// A scatter chart.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Heading; none when empty.
    pub heading: String,
    /// What x is.
    pub x_label: String,
    /// What y is.
    pub y_label: String,
    /// How x is written.
    pub x_format: Format,
    /// How y is written.
    pub y_format: Format,
    /// Logarithmic y when it spans more than a factor of ten.
    pub logarithmic: bool,
    /// A horizontal line to compare with, and what it is.
    pub rule: Option<(f64, String)>,
    /// The clouds.
    pub clouds: Vec<Cloud>,
}

impl Scatter {
    fn legend_height(&self, width: f64) -> f64 {
        let names: Vec<&str> = self.clouds.iter().map(|cloud| cloud.name.as_str()).collect();
        if names.len() > 1 { panel::legend_height(&names, width) + 6.0 } else { 0.0 }
    }
}

impl Panel for Scatter {
    fn describe(&self) -> String {
        let clouds: Vec<String> = self
            .clouds
            .iter()
            .map(|cloud| format!("{}, {} points", cloud.name, cloud.points.len()))
            .collect();
        format!("Scatter chart, {} against {}: {}.", self.y_label, self.x_label, clouds.join("; "))
    }

    fn height(&self, width: f64) -> f64 {
        (width * 0.6).clamp(200.0, 360.0) + self.legend_height(width)
    }

    fn draw(&self, svg: &mut Svg, area: Area) {
        let finite = |cloud: &Cloud| -> Vec<(f64, f64)> {
            cloud.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
        };
        let all: Vec<(f64, f64)> = self.clouds.iter().flat_map(finite).collect();
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        };
        let (left, right) = range(&mut all.iter().map(|point| point.0));
        let (low, high) =
            range(&mut all.iter().map(|point| point.1).chain(self.rule.iter().map(|rule| rule.0)));
        let x = Axis::rounded(left, right, 5, self.x_format);
        let y = if self.logarithmic {
            Axis::adaptive(low, high, 4, self.y_format)
        } else {
            Axis::rounded(low, high, 4, self.y_format)
        };
        let words = Words {
            heading: self.heading.clone(),
            x: self.x_label.clone(),
            y: self.y_label.clone(),
        };
        let below = self.legend_height(area.width);
        let frame = Frame::new(area.inset(0.0, 0.0, below, 0.0), &words, Some(&x), &y, 8.0);
        frame.draw(svg);
        if let Some((value, text)) = &self.rule {
            let at = frame.y(*value);
            svg.line(frame.inner.x, at, frame.inner.right(), at, "rule");
            svg.text(frame.inner.right(), at - 5.0, Anchor::End, "note halo", text);
        }
        let radius = if all.len() > 200 { 2.0 } else { 3.5 };
        for cloud in &self.clouds {
            svg.titled(cloud.style.colour(), &cloud.name, |svg| {
                for (x, y) in finite(cloud) {
                    svg.circle(frame.x(x), frame.y(y), radius, "dot");
                }
            });
        }
        frame.base(svg);
        if self.clouds.len() > 1 {
            let entries: Vec<_> = self
                .clouds
                .iter()
                .map(|c| Key { name: c.name.clone(), style: c.style, mark: Mark::Disc })
                .collect();
            panel::legend(
                svg,
                Area { y: area.bottom() - below + 6.0, height: below, ..area },
                &entries,
            );
        }
    }
}
