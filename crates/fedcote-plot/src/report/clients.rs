//! What failures do to clients and labels, and what a scheme does about it.

use super::figures::{Figure, columns, dynamic};
use crate::axis::Format;
use crate::bars::Bars;
use fedcote_sim::RoundReport;

use crate::folder::{self, Clients, Run, Scheme, Seed};
use crate::panel::{Panel, figure, keyed_figure};
use crate::scatter::{Cloud, Scatter};
use crate::tables::Digits;
use crate::theme::Style;

const FAILED: usize = 1;
const DONE: usize = 0;
const DRAWN: usize = 5;
const TRUE: usize = 7;

const OBSERVED: &str = " *Observed over the run: this scheme has no selection probabilities.";

/// More clients than this make bars too thin to see.
const BARS: usize = 80;
/// More points than this in a scatter chart show nothing new.
const POINTS: usize = 400;

/// The first seed of a scheme that has a picture of its clients.
fn first(scheme: &Scheme) -> Option<(&Seed, &Clients)> {
    scheme.seeds.iter().find_map(|seed| Some((seed, seed.clients.as_ref()?)))
}

/// Each client's share in the aggregate: expected, or, for schemes that cannot tell, observed.
fn shares(seed: &Seed, clients: &Clients) -> (Vec<f64>, bool) {
    let observed = || seed.observed(clients.clients.len());
    folder::appearance(clients).map_or_else(|| (observed(), true), |shares| (shares, false))
}

fn chi_square(shares: &[f64], reference: &[f64]) -> f64 {
    let terms = shares.iter().zip(reference).filter(|(_, r)| **r > 0.0);
    let sum: f64 = terms.map(|(s, r)| (s - r).powi(2) / r).sum();
    // What rounding leaves of nothing.
    if sum < 1e-14 { 0.0 } else { sum }
}

/// Schemes that select alike share a panel: the one of the first of them.
#[derive(Default)]
struct Together {
    panels: Vec<(Vec<String>, Bars)>,
}

impl Together {
    fn add(&mut self, scheme: &str, bars: Bars) {
        match self.panels.iter_mut().find(|(_, other)| other.shows_the_same(&bars)) {
            Some((names, _)) => names.push(scheme.to_owned()),
            None => self.panels.push((vec![scheme.to_owned()], bars)),
        }
    }

    /// The panels, and a sentence on who shares one.
    fn done(self) -> (Vec<Bars>, String) {
        let mut same = String::new();
        let mut panels = Vec::new();
        for (names, mut bars) in self.panels {
            if let [first, others @ ..] = &names[..]
                && !others.is_empty()
            {
                bars.heading += &format!(" and {} more", others.len());
                same += &format!(" As {first}: {}.", others.join(", "));
            }
            panels.push(bars);
        }
        (panels, same)
    }
}

/// Labels: actual, and effective before and after.
pub(super) fn labels(run: &Run) -> Option<Figure> {
    let mut together = Together::default();
    let mut any_observed = false;
    for scheme in &run.schemes {
        let Some((seed, clients)) = first(scheme) else { continue };
        if clients.clients.iter().any(|client| client.labels.is_empty()) {
            continue;
        }
        let draws = seed.rounds.iter().map(RoundReport::draws).max().unwrap_or(0).max(1);
        let before = folder::plain_appearance(clients, draws)
            .map(|shares| folder::effective_labels(clients, &shares));
        let (shares, observed) = shares(seed, clients);
        let after = folder::effective_labels(clients, &shares);
        let actual = &clients.global_labels;
        any_observed |= observed;
        let divergence = |labels: &[f64]| Digits::Significant(2).write(chi_square(labels, actual));
        let change = match &before {
            Some(before) => format!("χ² {} → {}", divergence(before), divergence(&after)),
            None => format!("χ² {}", divergence(&after)),
        };
        let classes: Vec<String> = (0..clients.classes).map(|class| class.to_string()).collect();
        let star = if observed { "*" } else { "" };
        let mut bars = Bars::new(&format!("{}{star}", scheme.name), &classes);
        if let Some(before) = &before {
            bars = bars.pale("effective, drawn by weight", before, Style::new(FAILED));
        }
        bars = bars.bars("effective, this scheme", &after, Style::new(DONE));
        bars = bars.ticks("actual", actual, Style::new(TRUE));
        bars.y_label = change;
        bars.format = Format::Percent;
        bars.legend = false;
        bars.tall = 180.0;
        together.add(&scheme.name, bars);
    }
    let (mut panels, same) = together.done();
    let top = panels.iter().map(Bars::largest).fold(0.0, f64::max);
    panels.iter_mut().for_each(|panel| panel.top = Some(top));
    let key = panels.first()?.key();
    let star = if any_observed { OBSERVED } else { "" };
    let caption = format!(
        "Share of each label in what reaches the server, on average, against its share in all data. Pale: if \
         clients were drawn by their weights and nothing were done about failures. χ² is the distance from the \
         actual shares, before and after.{same}{star}"
    );
    Some(Figure::new("labels", &caption, |width| {
        keyed_figure(
            "Labels, actual and effective",
            &key,
            &dynamic(&panels),
            columns(width, 3, 1),
            width,
        )
    }))
}

/// Selection, appearance, weight and failure, client by client.
pub(super) fn clients(run: &Run) -> Option<Figure> {
    let (_, example) = run.schemes.iter().find_map(first)?;
    if example.clients.len() > BARS { scatter(run) } else { bars(run) }
}

fn bars(run: &Run) -> Option<Figure> {
    let mut together = Together::default();
    let mut any_observed = false;
    let mut failing: Option<Bars> = None;
    for scheme in &run.schemes {
        let Some((seed, clients)) = first(scheme) else { continue };
        let names: Vec<&str> = clients.clients.iter().map(|client| client.id.as_str()).collect();
        let of = |value: fn(&folder::Client) -> f64| {
            clients.clients.iter().map(value).collect::<Vec<_>>()
        };
        let failure = of(|client| client.failure);
        if failing.is_none() && failure.iter().any(|failure| *failure > 0.0) {
            let mut bars =
                Bars::new("Failure", &names).bars("failure", &failure, Style::new(FAILED));
            bars.top = Some(1.0);
            failing = Some(bars);
        }
        let (shares, observed) = shares(seed, clients);
        any_observed |= observed;
        let star = if observed { "*" } else { "" };
        let selection: Option<Vec<f64>> =
            clients.clients.iter().map(|client| client.selection).collect();
        let mut bars = Bars::new(&format!("{}{star}", scheme.name), &names);
        bars = bars.pale("selection", &selection.unwrap_or_default(), Style::new(DRAWN));
        bars = bars.bars("appearance", &shares, Style::new(DONE));
        bars = bars.ticks("weight", &of(|client| client.weight), Style::new(TRUE));
        together.add(&scheme.name, bars);
    }
    let (mut panels, same) = together.done();
    let top = panels.iter().map(Bars::largest).fold(0.0, f64::max);
    let mut key = panels.first()?.key();
    panels.iter_mut().for_each(|panel| panel.top = Some(top));
    if let Some(failing) = failing {
        key.extend(failing.key());
        panels.insert(0, failing);
    }
    for panel in &mut panels {
        panel.clients = true;
        panel.format = Format::Percent;
        panel.legend = false;
        panel.tall = 170.0;
    }
    let star = if any_observed { OBSERVED } else { "" };
    let caption = format!(
        "For each client: how often its upload fails, how often it is drawn (selection), its average share in the \
         aggregate (appearance), and its share of all samples (weight). First seed, before the first round.{same}{star}"
    );
    Some(Figure::new("clients", &caption, |width| {
        keyed_figure("Clients", &key, &dynamic(&panels), columns(width, 2, 1), width)
    }))
}

fn scatter(run: &Run) -> Option<Figure> {
    let mut panels: Vec<Scatter> = Vec::new();
    for scheme in &run.schemes {
        let Some((seed, clients)) = first(scheme) else { continue };
        let (shares, _) = shares(seed, clients);
        let every = clients.clients.len().div_ceil(POINTS);
        let points = clients.clients.iter().zip(shares).step_by(every);
        let cloud = Cloud {
            name: scheme.name.clone(),
            style: Style::new(DONE),
            points: points.map(|(client, share)| (client.failure, share / client.weight)).collect(),
        };
        panels.push(Scatter {
            heading: scheme.name.clone(),
            x_label: "failure".into(),
            y_label: "appearance ÷ weight".into(),
            x_format: Format::Percent,
            y_format: Format::Number,
            logarithmic: false,
            rule: Some((1.0, "as its weight".into())),
            clouds: vec![cloud],
        });
    }
    let caption = format!(
        "Each client's average share in the aggregate (appearance) against its share of all samples (weight), \
         over its failure probability. At most {POINTS} clients are drawn, evenly chosen."
    );
    let panels: Vec<&dyn Panel> = dynamic(&panels);
    (!panels.is_empty()).then(|| {
        Figure::new("clients", &caption, |width| {
            figure("Clients", &panels, columns(width, 3, 1), width)
        })
    })
}
