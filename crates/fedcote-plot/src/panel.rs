//! Panels, and figures made of them: everything that charts of all kinds have in common.

use crate::axis::Axis;
use crate::font;
use crate::svg::{Anchor, Area, Svg};
use crate::theme::{self, Style};

/// One chart of a figure.
pub trait Panel {
    /// What the chart says, in words, with its main numbers.
    fn describe(&self) -> String;

    /// The height that suits this width, in pixels.
    fn height(&self, width: f64) -> f64;

    /// Draws the chart into the area.
    fn draw(&self, svg: &mut Svg, area: Area);
}

/// A figure: panels in rows of so many columns, at this width in pixels.
///
/// ```
/// use fedcote_plot::{bars::Bars, panel::figure};
/// let bars = Bars::new("Arrivals", &["0", "1", "2"]).series("fedcote", &[0.1, 0.4, 0.5]);
/// let svg = figure("Arrivals per round", &[&bars], 1, 480.0);
/// assert!(svg.document().starts_with("<svg"));
/// assert!(svg.description().contains("Arrivals"));
/// ```
pub fn figure(title: &str, panels: &[&dyn Panel], columns: usize, width: f64) -> Svg {
    keyed_figure(title, &[], panels, columns, width)
}

/// As [`figure`], with one key to the colours above all panels.
pub fn keyed_figure(
    title: &str,
    key: &[Key],
    panels: &[&dyn Panel],
    columns: usize,
    width: f64,
) -> Svg {
    const GAP: f64 = 24.0;
    let columns = columns.clamp(1, panels.len().max(1));
    let wide = (width - GAP * (columns - 1) as f64) / columns as f64;
    let rows: Vec<f64> = panels
        .chunks(columns)
        .map(|row| row.iter().map(|panel| panel.height(wide)).fold(0.0, f64::max))
        .collect();
    let names: Vec<&str> = key.iter().map(|entry| entry.name.as_str()).collect();
    let mut y = if key.is_empty() { 0.0 } else { legend_height(&names, width) + 14.0 };
    let height = y + rows.iter().sum::<f64>() + GAP * rows.len().saturating_sub(1) as f64;
    let description: Vec<String> = panels.iter().map(|panel| panel.describe()).collect();
    let mut svg = Svg::new(width, height.max(1.0), title, &description.join(" "));
    legend(&mut svg, Area { x: 0.0, y: 0.0, width, height: y }, key);
    for (row, &tall) in panels.chunks(columns).zip(&rows) {
        for (column, panel) in row.iter().enumerate() {
            let x = column as f64 * (wide + GAP);
            panel.draw(&mut svg, Area { x, y, width: wide, height: tall });
        }
        y += tall + GAP;
    }
    svg
}

/// An entry of a legend: a name, and what it looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name.
    pub name: String,
    /// Colour and dash.
    pub style: Style,
    /// Shape.
    pub mark: Mark,
}

/// The words around a chart with axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pub heading: String,
    pub x: String,
    pub y: String,
}

/// The inner rectangle of a chart and its axes.
pub(crate) struct Frame<'a> {
    pub inner: Area,
    area: Area,
    words: &'a Words,
    x: Option<&'a Axis>,
    y: &'a Axis,
}

impl<'a> Frame<'a> {
    /// Finds the inner rectangle; `right` pixels stay free for direct labels. The horizontal axis is
    /// the caller's business when `x` is `None`.
    pub fn new(area: Area, words: &'a Words, x: Option<&'a Axis>, y: &'a Axis, right: f64) -> Self {
        let bottom = if words.x.is_empty() { 22.0 } else { 40.0 };
        let tick = theme::text("tick");
        let widest = y.ticks().iter().map(|(_, text)| font::width(text, tick)).fold(0.0, f64::max);
        // Half of a number that stands at the very end reaches beyond it.
        let last =
            x.and_then(|x| x.ticks().last()).map_or(0.0, |(_, text)| font::width(text, tick));
        let right = right.max(last / 2.0 + 1.0);
        let inner = area.inset(Self::top(words), right, bottom, widest + 8.0);
        Self { inner, area, words, x, y }
    }

    /// Draws heading, labels, grid and ticks.
    pub fn draw(&self, svg: &mut Svg) {
        let Self { inner, area, words, .. } = self;
        let mut line = area.y;
        if !words.heading.is_empty() {
            let text = font::fit(&words.heading, theme::text("head"), area.width);
            svg.text(area.x, area.y + 14.0, Anchor::Start, "head", &text);
            line += 20.0;
        }
        if !words.y.is_empty() {
            svg.text(area.x, line + 13.0, Anchor::Start, "label", &words.y);
        }
        for (value, text) in self.y.ticks() {
            let at = self.y(*value);
            svg.line(inner.x, at, inner.right(), at, "grid");
            svg.text(inner.x - 6.0, at + 4.0, Anchor::End, "tick", text);
        }
        // Ticks that would touch the one before are left out.
        let mut free = f64::NEG_INFINITY;
        for (value, text) in self.x.iter().flat_map(|x| x.ticks()) {
            let at = self.x(*value);
            let half = font::width(text, theme::text("tick")) / 2.0;
            svg.line(at, inner.bottom(), at, inner.bottom() + 4.0, "axis");
            if at - half >= free {
                svg.text(at, inner.bottom() + 17.0, Anchor::Middle, "tick", text);
                free = at + half + 6.0;
            }
        }
        if !words.x.is_empty() {
            let middle = inner.x + inner.width / 2.0;
            svg.text(middle, inner.bottom() + 34.0, Anchor::Middle, "label", &words.x);
        }
    }

    /// Height of what stands above the inner rectangle.
    pub fn top(words: &Words) -> f64 {
        let heading = if words.heading.is_empty() { 0.0 } else { 20.0 };
        heading + if words.y.is_empty() { 0.0 } else { 18.0 } + 8.0
    }

    /// Horizontal place of a value.
    pub fn x(&self, value: f64) -> f64 {
        let place = |axis: &Axis| axis.place(value, self.inner.x, self.inner.right());
        self.x.map_or(self.inner.x, place)
    }

    /// Vertical place of a value.
    pub fn y(&self, value: f64) -> f64 {
        self.y.place(value, self.inner.bottom(), self.inner.y)
    }

    /// The line at the bottom, drawn last so that it stays on top.
    pub fn base(&self, svg: &mut Svg) {
        let at = self.inner.bottom();
        svg.line(self.inner.x, at, self.inner.right(), at, "axis");
    }
}

/// The shape that stands for a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A piece of a curve.
    Line,
    /// A bar.
    Square,
    /// A pale bar.
    SoftSquare,
    /// A tick across bars.
    Tick,
    /// A point.
    Disc,
}

const ROW: f64 = 18.0;
const MARK: f64 = 24.0;

/// Height of a legend of these names at this width.
pub(crate) fn legend_height(names: &[&str], width: f64) -> f64 {
    legend_places(names, width).last().map_or(0.0, |&(_, y)| y + ROW)
}

fn legend_places(names: &[&str], width: f64) -> Vec<(f64, f64)> {
    let style = theme::text("name");
    let (mut x, mut y) = (0.0, 0.0);
    names
        .iter()
        .map(|name| {
            let wide = MARK + font::width(name, style) + 16.0;
            if x > 0.0 && x + wide - 16.0 > width {
                (x, y) = (0.0, y + ROW);
            }
            let place = (x, y);
            x += wide;
            place
        })
        .collect()
}

/// Entries in rows, as many as fit side by side.
pub(crate) fn legend(svg: &mut Svg, area: Area, entries: &[Key]) {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    for (entry, (x, y)) in entries.iter().zip(legend_places(&names, area.width)) {
        let Key { name, style, mark } = entry;
        let (x, middle) = (area.x + x, area.y + y + ROW / 2.0);
        let colour = style.colour();
        match mark {
            Mark::Line => {
                let class = format!("line {colour} {}", style.dash());
                svg.line(x, middle, x + 18.0, middle, class.trim_end());
            }
            Mark::Square | Mark::SoftSquare => {
                let kind = if *mark == Mark::Square { "fill" } else { "soft" };
                svg.rect(x + 4.0, middle - 5.0, 10.0, 10.0, &format!("{kind} {colour}"));
            }
            Mark::Tick => {
                svg.line(x + 2.0, middle, x + 16.0, middle, &format!("line mark {colour}"));
            }
            Mark::Disc => svg.circle(x + 9.0, middle, 4.0, &format!("fill {colour}")),
        }
        let text = font::fit(name, theme::text("name"), area.width - MARK);
        svg.text(x + MARK, middle + 4.0, Anchor::Start, "name", &text);
    }
}

/// Places near the wanted ones, in order, at least `gap` apart and inside `low..=high` if they fit.
pub(crate) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Neighbours that would overlap form a block centred on the mean of their wishes.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let start = |(sum, count): (f64, usize)| {
        let span = gap * (count - 1) as f64;
        (sum / count as f64 - span / 2.0).min(high - span).max(low)
    };
    for &index in &order {
        let mut block = (wanted[index], 1);
        while let Some(&before) = blocks.last() {
            if start(before) + gap * before.1 as f64 <= start(block) {
                break;
            }
            blocks.pop();
            block = (block.0 + before.0, block.1 + before.1);
        }
        blocks.push(block);
    }
    let mut places = vec![0.0; wanted.len()];
    let mut next = order.iter();
    for block in blocks {
        for position in 0..block.1 {
            if let Some(&index) = next.next() {
                places[index] = start(block) + gap * position as f64;
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_overlap_and_move_no_more_than_needed() {
        assert_eq!(spread(&[50.0, 10.0], 14.0, 0.0, 100.0), [50.0, 10.0]);
        assert_eq!(spread(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0), [40.0, 50.0, 60.0]);
        assert_eq!(spread(&[0.0, 1.0], 10.0, 0.0, 100.0), [0.0, 10.0]);
        let places = spread(&[3.0, 99.0, 98.0, 97.5, 12.0, 11.0], 9.0, 0.0, 100.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 9.0 - 1e-9), "{places:?}");
        assert!(sorted[0] >= 0.0 && sorted[5] <= 100.0);
    }

    #[test]
    fn a_legend_wraps() {
        let names = ["fedcote", "power-of-choice", "tf-aggregation"];
        assert_eq!(legend_height(&names, 1000.0), ROW);
        assert_eq!(legend_height(&names, 150.0), 3.0 * ROW);
        assert_eq!(legend_height(&[], 150.0), 0.0);
    }
}
