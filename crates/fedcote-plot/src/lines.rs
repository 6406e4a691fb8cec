//! Curves over rounds (or any other axis), with bands over seeds and labels at their ends.

use crate::axis::{self, Axis, Format};
use crate::font;
use crate::panel::{self, Frame, Key, Mark, Panel, Words};
use crate::svg::{Anchor, Area, Svg};
use crate::theme::{self, Style};

/// A point of a curve: mean over seeds and what is above and below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where: a round, mostly.
    pub x: f64,
    /// The mean.
    pub mean: f64,
    /// Half the height of the band: the standard deviation; 0 with one seed.
    pub deviation: f64,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its label.
    pub name: String,
    /// Its colour and dash.
    pub style: Style,
    /// Ascending in x; points that are not finite are left out.
    pub points: Vec<Point>,
    /// Drawn thick and on top.
    pub strong: bool,
}

/// A chart of curves. Public fields are the options; [`Lines::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Heading; none when empty.
    pub heading: String,
    /// What x is; nothing is written when empty.
    pub x_label: String,
    /// What y is; nothing is written when empty.
    pub y_label: String,
    /// How y is written.
    pub format: Format,
    /// A logarithmic y axis when the values span more than a factor of ten.
    pub logarithmic: bool,
    /// The place on the x axis that stands for infinity, right of all others.
    pub infinity: Option<f64>,
    /// Shaded part of the x axis: where the tail begins and ends.
    pub tail: Option<(f64, f64)>,
    /// Bands of one deviation around the means.
    pub bands: bool,
    /// Names at the ends of the lines; otherwise (and on narrow figures) a legend below.
    pub direct: bool,
    /// No names at all, for small panels whose heading names the one coloured curve.
    pub unnamed: bool,
    /// Curves in grey behind the others, to compare with.
    pub context: Vec<Vec<Point>>,
    /// The curves.
    pub series: Vec<Series>,
    /// A y range to use instead of the data's own, so that panels can share one.
    pub range: Option<(f64, f64)>,
    /// Height of the whole panel; chosen by the width when `None`.
    pub tall: Option<f64>,
}

impl Lines {
    /// An empty chart with this heading.
    pub fn new(heading: &str) -> Self {
        Self {
            heading: heading.to_owned(),
            x_label: String::new(),
            y_label: String::new(),
            format: Format::Number,
            logarithmic: false,
            infinity: None,
            tail: None,
            bands: true,
            direct: true,
            unnamed: false,
            context: Vec::new(),
            series: Vec::new(),
            range: None,
            tall: None,
        }
    }

    /// The y range of the curves, bands included, clipped to what the format can mean.
    pub fn y_range(&self) -> (f64, f64) {
        let own = self.series.iter().flat_map(|series| &series.points);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in own.chain(self.context.iter().flatten()).filter(|point| finite(point)) {
            // A band reaching below zero says nothing about a quantity that is positive.
            let below = point.mean - if self.bands { point.deviation } else { 0.0 };
            low = low.min(if self.logarithmic && below <= 0.0 { point.mean } else { below });
            high = high.max(point.mean + if self.bands { point.deviation } else { 0.0 });
        }
        match self.format {
            Format::Percent => axis::two_points(low.max(0.0), high.min(1.0)),
            Format::Number => (low, high),
        }
    }

    fn labelled(&self, width: f64) -> bool {
        self.direct && !self.unnamed && width >= 460.0
    }

    fn names(&self) -> Vec<&str> {
        self.series.iter().map(|series| series.name.as_str()).collect()
    }

    fn legend_height(&self, width: f64) -> f64 {
        if self.unnamed || self.labelled(width) {
            0.0
        } else {
            panel::legend_height(&self.names(), width) + 8.0
        }
    }
}

impl Panel for Lines {
    fn describe(&self) -> String {
        let mut parts = Vec::new();
        for series in &self.series {
            let Some(last) = series.points.iter().rev().find(|point| finite(point)) else {
                parts.push(format!("{}: no values", series.name));
                continue;
            };
            // One seed has no deviation.
            let text = match self.format {
                Format::Percent if last.deviation == 0.0 => format!("{:.2}%", last.mean * 100.0),
                Format::Number if last.deviation == 0.0 => format!("{:.4}", last.mean),
                Format::Percent => {
                    format!("{:.2}% ± {:.2}", last.mean * 100.0, last.deviation * 100.0)
                }
                Format::Number => format!("{:.4} ± {:.4}", last.mean, last.deviation),
            };
            parts.push(format!("{} ends at {text}", series.name));
        }
        let what = if self.y_label.is_empty() { &self.heading } else { &self.y_label };
        let over =
            if self.x_label.is_empty() { String::new() } else { format!(" over {}", self.x_label) };
        format!("Line chart, {what}{over}: {}.", parts.join("; "))
    }

    fn height(&self, width: f64) -> f64 {
        let tall = self.tall.unwrap_or((width * 0.45).clamp(270.0, 420.0));
        tall + self.legend_height(width)
    }

    fn draw(&self, svg: &mut Svg, area: Area) {
        let drawn =
            || self.series.iter().flat_map(|s| &s.points).chain(self.context.iter().flatten());
        let xs = drawn().filter(|point| finite(point)).map(|point| point.x);
        let (x_low, x_high) =
            xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let wanted = if area.width < 260.0 { 3 } else { 5 };
        let x = Axis::linear(x_low, x_high, if area.width < 260.0 { 2 } else { 5 }, Format::Number);
        let x = match self.infinity {
            Some(at) => x.with_tick(at, "∞"),
            None => x,
        };
        let (low, high) = self.range.unwrap_or_else(|| self.y_range());
        let y = if self.logarithmic {
            Axis::adaptive(low, high, wanted, self.format)
        } else {
            Axis::rounded(low, high, wanted, self.format)
        };
        let labelled = self.labelled(area.width);
        let name = theme::text("strong");
        let right = if labelled {
            self.names()
                .iter()
                .map(|text| font::width(text, name))
                .fold(0.0, f64::max)
                .min(area.width * 0.3)
                + 26.0
        } else {
            8.0
        };
        let below = self.legend_height(area.width);
        let words = Words {
            heading: self.heading.clone(),
            x: self.x_label.clone(),
            y: self.y_label.clone(),
        };
        let plot = area.inset(0.0, 0.0, below, 0.0);
        let frame = Frame::new(plot, &words, Some(&x), &y, right);
        if let Some((from, to)) = self.tail {
            let (from, to) = (frame.x(from), frame.x(to));
            svg.rect(from, frame.inner.y, to - from, frame.inner.height, "shade");
            if to - from > 24.0 && !self.unnamed {
                let (middle, above) = ((from + to) / 2.0, frame.inner.y - 4.0);
                svg.text(middle, above, Anchor::Middle, "note", "tail");
            }
        }
        frame.draw(svg);
        let place = |points: &[Point]| -> Vec<(f64, f64, f64, f64)> {
            points
                .iter()
                .filter(|point| finite(point))
                .map(|p| {
                    (
                        frame.x(p.x),
                        frame.y(p.mean),
                        frame.y(p.mean - p.deviation),
                        frame.y(p.mean + p.deviation),
                    )
                })
                .collect()
        };
        svg.group("faint", |svg| {
            for points in &self.context {
                let line: Vec<_> = place(points).iter().map(|p| (p.0, p.1)).collect();
                svg.polyline(&thin(&line), "line thin");
            }
        });
        let mut order: Vec<&Series> = self.series.iter().collect();
        // What a dashed line covers is seen in its gaps.
        order.sort_by_key(|series| (!series.style.dash().is_empty(), series.strong));
        if self.bands {
            for series in &order {
                let placed = place(&series.points);
                if series.points.iter().all(|point| point.deviation == 0.0) {
                    continue;
                }
                let veil = if self.series.len() > 4 && !series.strong { "veil" } else { "band" };
                svg.polygon(&envelope(&placed), &format!("{veil} {}", series.style.colour()));
            }
        }
        let mut ends = Vec::new();
        for series in &order {
            let line: Vec<_> = place(&series.points).iter().map(|p| (p.0, p.1)).collect();
            let (colour, dash) = (series.style.colour(), series.style.dash());
            let thick = if series.strong { " thick" } else { "" };
            svg.titled(colour, &series.name, |svg| {
                svg.polyline(&thin(&line), format!("line{thick} {dash}").trim_end());
                if let [(x, y)] = line[..] {
                    svg.circle(x, y, 3.0, "fill");
                }
            });
            if let Some(&end) = line.last() {
                ends.push((*series, end));
            }
        }
        frame.base(svg);
        if labelled {
            let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
            let gap = (frame.inner.height / wanted.len().max(1) as f64).min(15.0);
            let places =
                panel::spread(&wanted, gap, frame.inner.y + 2.0, frame.inner.bottom() - 2.0);
            for ((series, end), place) in ends.iter().zip(places) {
                let (colour, right) = (series.style.colour(), frame.inner.right());
                // From where the line ends, which may be before the right edge, to its name.
                let leader = [
                    (end.0 + 2.0, end.1),
                    (right + 4.0, end.1),
                    (right + 15.0, place),
                    (right + 20.0, place),
                ];
                let leader = if end.0 < right - 4.0 { &leader[2..] } else { &leader[..] };
                svg.polyline(leader, &format!("line thin {colour}"));
                let class = if series.strong { "strong" } else { "name" };
                let text = font::fit(&series.name, theme::text(class), right_room(&area, right));
                svg.text(right + 24.0, place + 4.0, Anchor::Start, class, &text);
            }
        } else if !self.unnamed {
            let entries: Vec<_> = self
                .series
                .iter()
                .map(|s| Key { name: s.name.clone(), style: s.style, mark: Mark::Line })
                .collect();
            let legend = Area {
                x: area.x,
                y: area.bottom() - below + 8.0,
                width: area.width,
                height: below,
            };
            panel::legend(svg, legend, &entries);
        }
    }
}

fn right_room(area: &Area, right: f64) -> f64 {
    area.right() - right - 24.0
}

fn finite(point: &Point) -> bool {
    point.x.is_finite() && point.mean.is_finite() && point.deviation.is_finite()
}

/// The line that looks the same with no more than a few points a pixel column: where points are
/// denser than that, the first, lowest, highest and last of each column are kept.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    columns(points, |point| point.0)
        .flat_map(|column| {
            if column.len() <= 4 {
                return column.to_vec();
            }
            let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
            let all = || 0..column.len();
            let mut kept = vec![
                0,
                all().min_by(by_height).unwrap_or(0),
                all().max_by(by_height).unwrap_or(0),
                column.len() - 1,
            ];
            kept.sort_unstable();
            kept.dedup();
            kept.into_iter().map(|index| column[index]).collect()
        })
        .collect()
}

/// Along the lower edge of a band and back along the upper one.
fn envelope(placed: &[(f64, f64, f64, f64)]) -> Vec<(f64, f64)> {
    let edges: Vec<(f64, f64, f64)> = columns(placed, |point| point.0)
        .flat_map(|column| {
            if column.len() <= 2 {
                return column.iter().map(|p| (p.0, p.2, p.3)).collect();
            }
            let low = column.iter().map(|p| p.2).fold(f64::NEG_INFINITY, f64::max);
            let high = column.iter().map(|p| p.3).fold(f64::INFINITY, f64::min);
            vec![(column[0].0, low, high)]
        })
        .collect();
    let back = edges.iter().rev().map(|edge| (edge.0, edge.2));
    edges.iter().map(|edge| (edge.0, edge.1)).chain(back).collect()
}

/// Runs of neighbours that fall into the same pixel column.
fn columns<T>(points: &[T], x: impl Fn(&T) -> f64) -> impl Iterator<Item = &[T]> {
    points.chunk_by(move |a, b| x(a).floor() == x(b).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: usize) -> Lines {
        let mut chart = Lines::new("Accuracy");
        chart.format = Format::Percent;
        chart.series = vec![Series {
            name: "fedcote".into(),
            style: Style::new(0),
            points: (0..points)
                .map(|x| Point { x: x as f64, mean: 0.5 + 0.4 * (x as f64).sin(), deviation: 0.01 })
                .collect(),
            strong: true,
        }];
        chart
    }

    #[test]
    fn dense_lines_are_thinned_without_losing_their_extremes() {
        let points: Vec<_> =
            (0..100_000).map(|i| (f64::from(i) / 100.0, f64::from(i * 7919 % 1000))).collect();
        let thinned = thin(&points);
        assert!(thinned.len() <= 4001, "{}", thinned.len());
        let highest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(0.0, f64::max);
        assert_eq!(highest(&thinned), highest(&points));
        assert_eq!((thinned[0], thinned.last()), (points[0], points.last()));
        assert!(thinned.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn size_is_bounded_by_pixels_not_rounds() {
        let small = panel::figure("f", &[&chart(2_000)], 1, 700.0).inline().len();
        let large = panel::figure("f", &[&chart(200_000)], 1, 700.0).inline().len();
        assert!(large < 60_000 && small < 60_000, "{small} {large}");
    }

    /// Regression: the bold line of `fedcote` covered that of `fedcote-gradient`, in the same colour.
    #[test]
    fn a_dashed_line_is_on_top_of_the_one_that_it_coincides_with() {
        let mut both = chart(10);
        let names = ["fedcote-gradient", "fedcote"];
        let [paper, own] = theme::styles(&names)[..] else { panic!("two styles") };
        assert!(paper.colour() != own.colour() && !paper.dash().is_empty());
        both.series[0].style = own;
        both.series.insert(0, Series { style: paper, strong: false, ..both.series[0].clone() });
        both.series[0].name = names[0].to_owned();
        let svg = panel::figure("f", &[&both], 1, 700.0).inline();
        let place = |name: &str| svg.find(&format!("<title>{name}</title>")).unwrap();
        assert!(place("fedcote-gradient") > place("fedcote"));
    }

    /// Regression: a limit for infinity stood at 34.5 of a linear axis.
    #[test]
    fn infinity_has_its_mark() {
        let mut lines = chart(4);
        assert!(!panel::figure("f", &[&lines], 1, 700.0).inline().contains('∞'));
        lines.infinity = Some(3.0);
        assert!(panel::figure("f", &[&lines], 1, 700.0).inline().contains('∞'));
    }

    #[test]
    fn values_that_are_not_numbers_leave_no_trace() {
        let mut chart = chart(10);
        chart.series[0].points[3].mean = f64::NAN;
        chart.series[0].points[4].deviation = f64::INFINITY;
        let svg = panel::figure("f", &[&chart], 1, 700.0).inline();
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn the_description_has_the_last_value() {
        let mut chart = chart(1);
        chart.series[0].points[0].mean = 0.9127;
        assert!(chart.describe().contains("fedcote ends at 91.27% ± 1.00"), "{}", chart.describe());
    }
}
