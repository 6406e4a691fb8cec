//! Grouped bars: a few quantities for each client, label or number of arrivals.

use crate::axis::{Axis, Format};
use crate::font;
use crate::panel::{self, Frame, Key, Mark, Panel, Words};
use crate::svg::{Anchor, Area, Svg};
use crate::theme::{self, Style};

/// A quantity over all categories.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    values: Vec<f64>,
    style: Style,
    mark: Mark,
}

/// A chart of grouped bars, with ticks across them for what they should reach.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Heading; none when empty.
    pub heading: String,
    categories: Vec<String>,
    groups: Vec<Group>,
    /// What the categories are.
    pub x_label: String,
    /// What the bars measure.
    pub y_label: String,
    /// How values are written.
    pub format: Format,
    /// Upper end of the y axis, so that panels can share one.
    pub top: Option<f64>,
    /// Bars of neighbouring categories touch, as in a histogram.
    pub touching: bool,
    /// Draw the legend (else the figure around it explains the colours).
    pub legend: bool,
    /// A value of the category axis (by position, fractions allowed) to mark, and what it is.
    pub marked: Option<(f64, String)>,
    /// The categories are clients, of whom a report has more to tell.
    pub clients: bool,
    /// Height of the whole panel without its legend.
    pub tall: f64,
}

impl Bars {
    /// No bars yet, over these categories.
    pub fn new<S: AsRef<str>>(heading: &str, categories: &[S]) -> Self {
        Self {
            heading: heading.to_owned(),
            categories: categories.iter().map(|name| name.as_ref().to_owned()).collect(),
            groups: Vec::new(),
            x_label: String::new(),
            y_label: String::new(),
            format: Format::Number,
            top: None,
            touching: false,
            legend: true,
            marked: None,
            clients: false,
            tall: 200.0,
        }
    }

    /// Adds bars in the next colour, one value a category.
    pub fn series(self, name: &str, values: &[f64]) -> Self {
        let style = Style::new(self.groups.len());
        self.bars(name, values, style)
    }

    /// Adds bars in this style.
    pub fn bars(self, name: &str, values: &[f64], style: Style) -> Self {
        self.with(name, values, style, Mark::Square)
    }

    /// Adds pale bars in this style: the state before, beside the state after.
    pub fn pale(self, name: &str, values: &[f64], style: Style) -> Self {
        self.with(name, values, style, Mark::SoftSquare)
    }

    /// Adds ticks across each category's bars: the value they are measured against.
    pub fn ticks(self, name: &str, values: &[f64], style: Style) -> Self {
        self.with(name, values, style, Mark::Tick)
    }

    /// The largest value of any bar or tick.
    pub fn largest(&self) -> f64 {
        let values = self.groups.iter().flat_map(|group| &group.values);
        values.copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// Whether the other chart shows the same values.
    pub fn shows_the_same(&self, other: &Self) -> bool {
        let near = |a: &f64, b: &f64| (a - b).abs() <= 1e-12 || (a.is_nan() && b.is_nan());
        let same = |a: &Group, b: &Group| {
            a.values.len() == b.values.len()
                && a.values.iter().zip(&b.values).all(|(a, b)| near(a, b))
        };
        self.groups.len() == other.groups.len()
            && self.groups.iter().zip(&other.groups).all(|(a, b)| same(a, b))
    }

    /// What the colours mean, for figures with one key over several charts.
    pub fn key(&self) -> Vec<Key> {
        let entry =
            |group: &Group| Key { name: group.name.clone(), style: group.style, mark: group.mark };
        self.groups.iter().map(entry).collect()
    }

    fn with(mut self, name: &str, values: &[f64], style: Style, mark: Mark) -> Self {
        let (name, values) = (name.to_owned(), values.to_vec());
        self.groups.push(Group { name, values, style, mark });
        self
    }

    fn legend_height(&self, width: f64) -> f64 {
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        if self.legend { panel::legend_height(&names, width) + 6.0 } else { 0.0 }
    }

    fn write(&self, value: f64) -> String {
        match self.format {
            Format::Percent => format!("{:.2}%", value * 100.0),
            Format::Number => format!("{value:.4}"),
        }
    }
}

impl Panel for Bars {
    fn describe(&self) -> String {
        let groups: Vec<String> = self
            .groups
            .iter()
            .map(|group| {
                // A screen reader should not have to read a thousand numbers.
                let shown: Vec<String> = self
                    .categories
                    .iter()
                    .zip(&group.values)
                    .take(24)
                    .map(|(category, &value)| format!("{category} {}", self.write(value)))
                    .collect();
                let more = self.categories.len().saturating_sub(24);
                let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
                format!("{}: {}{rest}", group.name, shown.join(", "))
            })
            .collect();
        let what = if self.heading.is_empty() { &self.y_label } else { &self.heading };
        let by =
            if self.x_label.is_empty() { String::new() } else { format!(" by {}", self.x_label) };
        format!("Bar chart, {what}{by}. {}.", groups.join(". "))
    }

    fn height(&self, width: f64) -> f64 {
        self.tall + self.legend_height(width)
    }

    fn draw(&self, svg: &mut Svg, area: Area) {
        let y = Axis::rounded(0.0, self.top.unwrap_or(self.largest()), 3, self.format);
        let words = Words {
            heading: self.heading.clone(),
            x: self.x_label.clone(),
            y: self.y_label.clone(),
        };
        let below = self.legend_height(area.width);
        let frame = Frame::new(area.inset(0.0, 0.0, below, 0.0), &words, None, &y, 4.0);
        frame.draw(svg);
        let inner = frame.inner;
        let slot = inner.width / self.categories.len().max(1) as f64;
        let bars = self.groups.iter().filter(|group| group.mark != Mark::Tick).count();
        let gap = if self.touching { slot.min(1.0) * 0.5 } else { slot * 0.16 };
        let wide = (slot - 2.0 * gap) / bars.max(1) as f64;
        let tick = theme::text("tick");
        let widest = self.categories.iter().map(|name| font::width(name, tick)).fold(0.0, f64::max);
        // Every category has its name under it, or every second, every fifth, …
        let strides = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
        let fits = |stride: &usize| *stride as f64 * slot >= widest + 3.0;
        let every = strides.into_iter().find(fits).unwrap_or(usize::MAX);
        for (index, category) in self.categories.iter().enumerate() {
            let left = inner.x + slot * index as f64;
            let value = |group: &Group| group.values.get(index).copied().filter(|v| v.is_finite());
            let told: Vec<String> = self
                .groups
                .iter()
                .filter_map(|group| Some(format!("{} {}", group.name, self.write(value(group)?))))
                .collect();
            let title = format!("{category}: {}", told.join(", "));
            let draw = |svg: &mut Svg| {
                let mut at = left + gap;
                for group in &self.groups {
                    let Some(value) = value(group) else {
                        at += if group.mark == Mark::Tick { 0.0 } else { wide };
                        continue;
                    };
                    let (top, colour) = (frame.y(value), group.style.colour());
                    if group.mark == Mark::Tick {
                        svg.line(
                            left + gap * 0.6,
                            top,
                            left + slot - gap * 0.6,
                            top,
                            &format!("line mark {colour}"),
                        );
                        continue;
                    }
                    let kind = if group.mark == Mark::Square { "fill" } else { "soft" };
                    svg.rect(
                        at,
                        top,
                        (wide - 0.4).max(0.3),
                        inner.bottom() - top,
                        &format!("{kind} {colour}"),
                    );
                    at += wide;
                }
            };
            match self.clients {
                true => svg.client(category, &title, draw),
                false => svg.titled("", &title, draw),
            }
            if index % every == 0 && widest < area.width / 3.0 {
                let middle = left + slot / 2.0;
                svg.text(middle, inner.bottom() + 16.0, Anchor::Middle, "tick", category);
            }
        }
        if let Some((position, text)) = &self.marked {
            let x = inner.x + slot * (position + 0.5);
            svg.line(x, inner.y, x, inner.bottom(), "rule");
            let (anchor, shift) = if x > inner.x + inner.width / 2.0 {
                (Anchor::End, -5.0)
            } else {
                (Anchor::Start, 5.0)
            };
            svg.text(x + shift, inner.y + 10.0, anchor, "note halo", text);
        }
        frame.base(svg);
        if self.legend {
            let legend = Area { y: area.bottom() - below + 6.0, height: below, ..area };
            panel::legend(svg, legend, &self.key());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_heights_in_proportion() {
        let mut bars = Bars::new("b", &["a", "b"]).series("s", &[1.0, 0.5]);
        bars.legend = false;
        let svg = panel::figure("f", &[&bars], 1, 300.0).inline();
        let tree = roxmltree::Document::parse(&svg).unwrap();
        let heights: Vec<f64> = tree
            .descendants()
            .filter(|node| {
                node.has_tag_name(("http://www.w3.org/2000/svg", "rect"))
                    && node.attribute("class") == Some("fill c0")
            })
            .map(|node| node.attribute("height").unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 2);
        assert!((heights[0] / heights[1] - 2.0).abs() < 0.01, "{heights:?}");
    }

    #[test]
    fn missing_and_wrong_values_are_left_out() {
        let bars = Bars::new("b", &["a", "b", "c"]).series("s", &[1.0, f64::NAN]).ticks(
            "t",
            &[],
            Style::new(7),
        );
        let svg = panel::figure("f", &[&bars], 1, 300.0).inline();
        assert_eq!(svg.matches("fill c0").count(), 2, "one bar and its legend: {svg}");
        assert!(!svg.contains("NaN</title>"));
    }
}
