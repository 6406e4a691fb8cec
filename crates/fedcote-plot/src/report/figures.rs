//! The figures of a report: from run folders to charts.

use super::clients;
use crate::axis::Format;
use crate::bars::Bars;
use crate::dots::{Dot, Dots};
use fedcote_sim::RoundReport;

use crate::folder::{Run, Scheme};
use crate::lines::{Lines, Point, Series};
use crate::map::{self, Map};
use crate::panel::{Panel, figure, keyed_figure};
use crate::svg::Svg;
use crate::theme::{self, Style};

/// Width of figures on a desk and in print, and on a phone.
const WIDE: f64 = 960.0;
const NARROW: f64 = 358.0;

/// A figure of a report, drawn for two widths.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short name, fit for a file name.
    pub id: &'static str,
    /// What to see in it: plain text.
    pub caption: String,
    /// For wide screens and print.
    pub wide: Svg,
    /// For phones.
    pub narrow: Svg,
}

impl Figure {
    pub(super) fn new(id: &'static str, caption: &str, draw: impl Fn(f64) -> Svg) -> Self {
        Self { id, caption: caption.to_owned(), wide: draw(WIDE), narrow: draw(NARROW) }
    }
}

/// Half as many columns on a phone, at least one.
pub(super) fn columns(width: f64, wide: usize, narrow: usize) -> usize {
    if width == WIDE { wide } else { narrow }
}

pub(super) fn dynamic<P: Panel>(panels: &[P]) -> Vec<&dyn Panel> {
    panels.iter().map(|panel| panel as &dyn Panel).collect()
}

/// The style of each scheme.
pub(super) fn styles(run: &Run) -> Vec<Style> {
    theme::styles(&run.schemes.iter().map(|scheme| scheme.name.as_str()).collect::<Vec<_>>())
}

/// All figures of a run folder, in the order of the report; those without data are left out.
pub fn figures(run: &Run) -> Vec<Figure> {
    let all = [
        tail(run),
        accuracy(run),
        each(run),
        costs(run),
        loss(run, "train-loss", "Training loss", |round| round.train_loss),
        loss(run, "test-loss", "Test loss", |round| round.test_loss),
        clients::labels(run),
        clients::clients(run),
        network(run),
        histogram(run),
        arrivals(run),
    ];
    all.into_iter().flatten().collect()
}

fn points(scheme: &Scheme, value: impl Fn(&RoundReport) -> Option<f64>) -> Vec<Point> {
    let curve = scheme.curve(value).into_iter();
    curve.map(|(round, at)| Point { x: round as f64, mean: at.mean, deviation: at.std }).collect()
}

fn series(run: &Run, value: impl Fn(&RoundReport) -> Option<f64>) -> Vec<Series> {
    let of = |(scheme, style): (&Scheme, Style)| Series {
        name: scheme.name.clone(),
        style,
        points: points(scheme, &value),
        strong: theme::is_strong(&scheme.name),
    };
    let all = run.schemes.iter().zip(styles(run)).map(of);
    all.filter(|series| !series.points.is_empty()).collect()
}

fn tail_of(run: &Run) -> Option<(f64, f64)> {
    let (first, last) = run.tail();
    (last > first).then_some((first as f64, last as f64))
}

/// Accuracy over the tail, a dot a scheme.
pub(super) fn tail_dots(run: &Run, heading: &str) -> Dots {
    let rows = run.schemes.iter().zip(styles(run)).map(|(scheme, style)| {
        let tail = scheme.summary.tail_accuracy;
        Dot {
            name: scheme.name.clone(),
            style,
            mean: tail.map_or(f64::NAN, |tail| tail.mean),
            deviation: tail.map_or(0.0, |tail| tail.std),
            other: None,
            strong: theme::is_strong(&scheme.name),
        }
    });
    Dots {
        heading: heading.to_owned(),
        x_label: "test accuracy over the tail".into(),
        format: Format::Percent,
        rows: rows.collect(),
        range: None,
    }
}

fn tail(run: &Run) -> Option<Figure> {
    let dots = tail_dots(run, "");
    dots.rows.iter().any(|dot| dot.mean.is_finite()).then(|| {
        let caption =
            "Mean test accuracy over the tail, and its standard deviation over seeds, in percent.";
        Figure::new("tail", caption, |width| figure("Accuracy over the tail", &[&dots], 1, width))
    })
}

/// Accuracy of all schemes in one chart.
pub(super) fn accuracy_lines(run: &Run, heading: &str) -> Lines {
    let mut lines = Lines::new(heading);
    lines.series = series(run, |round| round.test_accuracy);
    lines.format = Format::Percent;
    lines.y_label = "test accuracy".into();
    lines.x_label = "round".into();
    lines.tail = tail_of(run);
    // A dozen bands on top of each other hide more than they show; then each scheme has its own panel.
    lines.bands = lines.series.len() <= MANY;
    lines
}

const MANY: usize = 4;

fn accuracy(run: &Run) -> Option<Figure> {
    let lines = accuracy_lines(run, "");
    let caption = match (lines.series.len() > MANY, run.schemes.iter().any(|s| s.seeds.len() > 1)) {
        (true, true) => "Mean over seeds; the bands are in the panels below. Shaded: the tail.",
        (false, true) => {
            "Mean over seeds, with a band of one standard deviation. Shaded: the tail."
        }
        (_, false) => "One seed. Shaded: the tail.",
    };
    (!lines.series.is_empty()).then(|| {
        Figure::new("accuracy", caption, |width| {
            figure("Test accuracy over rounds", &[&lines], 1, width)
        })
    })
}

/// A panel a scheme, with the others in grey, when one chart would be too crowded.
fn each(run: &Run) -> Option<Figure> {
    let lines = accuracy_lines(run, "");
    if lines.series.len() <= MANY {
        return None;
    }
    let smooth: Vec<Vec<Point>> = lines.series.iter().map(|one| smooth(&one.points)).collect();
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    let mut panels: Vec<Lines> = Vec::new();
    for (index, one) in lines.series.iter().enumerate() {
        let others = smooth.iter().enumerate().filter(|(other, _)| *other != index);
        let panel = Lines {
            heading: one.name.clone(),
            x_label: String::new(),
            y_label: String::new(),
            bands: true,
            unnamed: true,
            context: others.map(|(_, points)| points.clone()).collect(),
            series: vec![one.clone()],
            tall: Some(176.0),
            ..lines.clone()
        };
        let (low, high) = panel.y_range();
        range = (range.0.min(low), range.1.max(high));
        panels.push(panel);
    }
    panels.iter_mut().for_each(|panel| panel.range = Some(range));
    let caption = "Test accuracy, scheme by scheme: mean over seeds with a band of one standard deviation; \
                   the other schemes, smoothed, in grey.";
    Some(Figure::new("accuracy-each", caption, |width| {
        figure("Test accuracy, scheme by scheme", &dynamic(&panels), columns(width, 4, 2), width)
    }))
}

/// At most 80 points, each the mean of its neighbourhood.
fn smooth(points: &[Point]) -> Vec<Point> {
    let mean = |chunk: &[Point]| {
        let of =
            |value: fn(&Point) -> f64| chunk.iter().map(value).sum::<f64>() / chunk.len() as f64;
        Point { x: of(|p| p.x), mean: of(|p| p.mean), deviation: 0.0 }
    };
    points.chunks(points.len().div_ceil(80).max(1)).map(mean).collect()
}

/// Accuracy over what it cost: simulated seconds, and bytes up and down.
fn costs(run: &Run) -> Option<Figure> {
    let seconds = |round: &RoundReport| round.seconds;
    let megabytes = |round: &RoundReport| Some((round.bytes_up? + round.bytes_down?) as f64 / 1e6);
    let over = |heading: &str, cost: &dyn Fn(&RoundReport) -> Option<f64>| {
        let mut lines = accuracy_lines(run, heading);
        lines.tail = None;
        lines.x_label = heading.to_owned();
        lines.series.retain_mut(|series| {
            let scheme = run.schemes.iter().find(|scheme| scheme.name == series.name);
            let Some(spent) = scheme.map(|scheme| scheme.spent(cost)) else { return false };
            series.points.retain_mut(|point| {
                let at = spent.binary_search_by(|(round, _)| f64::from(*round).total_cmp(&point.x));
                at.map(|at| point.x = spent[at].1).is_ok()
            });
            !series.points.is_empty()
        });
        lines
    };
    let panels = [over("simulated seconds", &seconds), over("megabytes up and down", &megabytes)];
    let caption = "Test accuracy over what the rounds took on the simulated clock and what they sent, mean over seeds: a \
                   scheme that sends more, or waits longer, is further to the right after as many rounds.";
    panels.iter().all(|panel| !panel.series.is_empty()).then(|| {
        Figure::new("costs", caption, |width| {
            let columns = columns(width, 2, 1);
            figure("Test accuracy over seconds and bytes", &dynamic(&panels), columns, width)
        })
    })
}

fn loss(
    run: &Run,
    id: &'static str,
    title: &str,
    value: fn(&RoundReport) -> Option<f64>,
) -> Option<Figure> {
    let mut lines = Lines::new("");
    lines.series = series(run, value);
    lines.y_label = title.to_lowercase();
    lines.x_label = "round".into();
    lines.logarithmic = true;
    lines.tail = tail_of(run);
    lines.bands = lines.series.len() <= MANY;
    (!lines.series.is_empty()).then(|| {
        // An axis that spans more than a factor of ten is logarithmic: the words say so.
        let (low, high) = lines.y_range();
        let axis = if low > 0.0 && high > 10.0 * low { " Logarithmic axis." } else { "" };
        let caption = format!("{title}, mean over seeds. Shaded: the tail.{axis}");
        Figure::new(id, &caption, |width| {
            figure(&format!("{title} over rounds"), &[&lines], 1, width)
        })
    })
}

fn network(run: &Run) -> Option<Figure> {
    let seed = run.schemes.iter().flat_map(|scheme| &scheme.seeds);
    // Under the ideal network nobody fails: any other scheme shows more.
    let all: Vec<_> = seed.filter_map(|seed| Some((seed, seed.clients.as_ref()?))).collect();
    let failing = |clients: &crate::folder::Clients| {
        clients.clients.iter().any(|client| client.failure > 0.0)
    };
    let &(seed, clients) = all.iter().find(|(_, clients)| failing(clients)).or(all.first())?;
    let number = |key: &str, default: f64| {
        let scenario = run.scenario.as_ref();
        scenario.and_then(|file| file.number(&format!("network.{key}"))).unwrap_or(default)
    };
    let mut standards: Vec<String> = ["wifi24", "wifi5", "4g", "5g"].map(String::from).to_vec();
    let mut shown = Vec::new();
    for client in &clients.clients {
        let standard = client.standard.clone().unwrap_or_default();
        let index = standards.iter().position(|name| *name == standard).unwrap_or_else(|| {
            standards.push(standard);
            standards.len() - 1
        });
        shown.push(map::Client {
            name: client.id.clone(),
            standard: index,
            at: (client.x?, client.y?),
            indoor: client.indoor.unwrap_or(false),
            failure: client.failure,
            route: Vec::new(),
        });
    }
    let separation = number("separation_m", 30.0);
    let plan = Map {
        title: format!("The network before round 1, seed {}", seed.seed),
        radius: number("cell_radius_m", 200.0),
        building: [
            separation,
            0.0,
            number("building_width_m", 20.0),
            number("building_depth_m", 20.0),
        ],
        stations: vec![
            map::Station { name: "base station".into(), at: (0.0, 0.0), indoor: false },
            map::Station { name: "access point".into(), at: (separation, 0.0), indoor: true },
        ],
        standards,
        clients: shown,
    };
    let caption =
        "Where clients stand, by which standard they send, and how often their uploads fail."
            .to_owned();
    Some(Figure { id: "network", caption, wide: map::map(&plan), narrow: map::narrow(&plan) })
}

/// How many uploads arrived: share of rounds for each number.
fn histogram(run: &Run) -> Option<Figure> {
    let rounds = || run.schemes.iter().flat_map(|s| &s.seeds).flat_map(|s| &s.rounds);
    let most = rounds().map(|round| round.draws().max(round.arrivals())).max()?;
    let bin = (most + 1).div_ceil(40).max(1);
    let name = |index: u64| {
        if bin == 1 {
            index.to_string()
        } else {
            format!("{}–{}", index * bin, (index + 1) * bin - 1)
        }
    };
    let names: Vec<String> = (0..=most / bin).map(name).collect();
    let mut panels: Vec<Bars> = Vec::new();
    for (scheme, style) in run.schemes.iter().zip(styles(run)) {
        let mut shares = vec![0.0; names.len()];
        let all: Vec<u64> =
            scheme.seeds.iter().flat_map(|s| &s.rounds).map(RoundReport::arrivals).collect();
        all.iter().for_each(|arrivals| shares[(arrivals / bin) as usize] += 1.0 / all.len() as f64);
        let mean = all.iter().sum::<u64>() as f64 / all.len().max(1) as f64;
        let mut bars = Bars::new(&scheme.name, &names).bars("share of rounds", &shares, style);
        bars.format = Format::Percent;
        bars.touching = true;
        bars.legend = false;
        bars.tall = 150.0;
        bars.x_label = String::new();
        bars.marked = Some((mean / bin as f64, format!("mean {mean:.1}")));
        panels.push(bars);
    }
    // One scale for all, except for those whose rounds are all alike: they would flatten the rest.
    let top = panels.iter().map(Bars::largest).filter(|share| *share < 0.9).fold(0.0, f64::max);
    for panel in panels.iter_mut().filter(|panel| panel.largest() < 0.9) {
        panel.top = Some(top);
    }
    let caption = format!(
        "Number of uploads that arrived in a round, of {most} drawn at most: share of rounds."
    );
    Some(Figure::new("arrivals", &caption, |width| {
        keyed_figure("Arrivals per round", &[], &dynamic(&panels), columns(width, 4, 2), width)
    }))
}

/// Arrivals over rounds, smoothed: what a moving network does.
fn arrivals(run: &Run) -> Option<Figure> {
    let mut lines = Lines::new("");
    lines.series = series(run, |round| Some(round.arrivals() as f64));
    for one in &mut lines.series {
        one.points = window(&one.points, (run.rounds / 25).max(1) as usize);
    }
    lines.y_label = "arrivals per round".into();
    lines.x_label = "round".into();
    lines.bands = false;
    lines.series.iter().any(|one| one.points.len() > 2).then(|| {
        let caption = match (run.rounds / 25).max(1) {
            1 => "Uploads that arrived, mean over seeds.".to_owned(),
            rounds => format!("Uploads that arrived, running mean of {rounds} rounds."),
        };
        Figure::new("arrivals-over-rounds", &caption, |width| {
            figure("Arrivals over rounds", &[&lines], 1, width)
        })
    })
}

/// Running mean over the last `length` points.
fn window(points: &[Point], length: usize) -> Vec<Point> {
    let mean = |window: &[Point]| Point {
        x: window[window.len() - 1].x,
        mean: window.iter().map(|point| point.mean).sum::<f64>() / window.len() as f64,
        deviation: 0.0,
    };
    points.windows(length.clamp(1, points.len().max(1))).map(mean).collect()
}
