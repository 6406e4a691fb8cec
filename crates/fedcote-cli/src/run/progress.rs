//! Progress of a comparison: bars on a terminal, lines elsewhere, nothing with `--json`.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use fedcote_sim::Scenario;
use fedcote_sim::comparison::{Event, Listener, RunId, Shard, plan};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A bar for each run under way, and one for the whole.
    Bars,
    /// A line for each run that begins or ends, and now and then between.
    Lines,
    /// Nothing.
    Quiet,
}

impl Style {
    /// What suits standard error.
    pub fn of(json: bool) -> Self {
        match (json, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Bars,
            (false, false) => Self::Lines,
        }
    }
}

/// Shows a comparison's progress.
pub struct Progress {
    style: Style,
    rounds: u32,
    width: usize,
    bars: MultiProgress,
    whole: ProgressBar,
    shown: Mutex<HashMap<RunId, Shown>>,
}

struct Shown {
    bar: ProgressBar,
    /// The round after which the run began or went on.
    from: u32,
    accuracy: Option<f64>,
    arrived: u64,
    told: Instant,
}

/// Seconds between lines about the same run.
const LINE_EVERY: u64 = 10;

impl Progress {
    /// Nothing begun yet.
    pub fn new(scenario: &Scenario, shard: Shard, style: Style) -> Self {
        let general = &scenario.general;
        let width = general.schemes.iter().map(String::len).max().unwrap_or(0) + 8;
        Self::over(shard.of(&plan(scenario)).len(), general.rounds, width, style)
    }

    /// Nothing begun yet of so many runs of so many rounds, whose names are so wide.
    pub fn over(runs: usize, rounds: u32, width: usize, style: Style) -> Self {
        let bars = MultiProgress::new();
        let whole = ProgressBar::new(runs as u64 * u64::from(rounds));
        let template = "{prefix:<24} {bar:30} {percent:>3} %  {elapsed} gone, {eta} left";
        whole.set_style(ProgressStyle::with_template(template).expect("a fixed template"));
        whole.set_prefix(format!("{runs} runs"));
        let whole = if style == Style::Bars { bars.add(whole) } else { whole };
        Self { style, rounds, width, bars, whole, shown: Mutex::default() }
    }

    /// Says something between the runs.
    pub fn say(&self, line: &str) {
        match self.style {
            Style::Quiet => {}
            Style::Lines => eprintln!("{line}"),
            Style::Bars => {
                // Printing can only fail when the terminal is gone.
                let _ = self.bars.println(line);
            }
        }
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        self.whole.finish_and_clear();
        // Clearing can only fail when the terminal is gone.
        let _ = self.bars.clear();
    }

    fn name(&self, run: &RunId) -> String {
        format!("{} seed {}", run.scheme, run.seed)
    }

    fn begin(&self, run: &RunId, round: u32) {
        let bar = ProgressBar::new(self.rounds.into());
        let template = "{prefix:<24} {bar:30} {pos:>4}/{len}  {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("a fixed template"));
        bar.set_prefix(self.name(run));
        bar.set_position(round.into());
        let bar = match self.style {
            Style::Bars => self.bars.insert_before(&self.whole, bar),
            _ => bar,
        };
        let shown = Shown { bar, from: round, accuracy: None, arrived: 0, told: Instant::now() };
        self.shown.lock().expect("no panic while held").insert(run.clone(), shown);
        self.whole.inc(round.into());
        if self.style == Style::Lines && round > 0 {
            eprintln!(
                "{:<width$}  resumes after round {round}",
                self.name(run),
                width = self.width
            );
        }
    }

    fn end(&self, run: &RunId, line: &str) {
        if let Some(shown) = self.shown.lock().expect("no panic while held").remove(run) {
            shown.bar.finish_and_clear();
            self.bars.remove(&shown.bar);
        }
        self.say(&format!("{:<width$}  {line}", self.name(run), width = self.width));
    }
}

impl Listener for Progress {
    fn event(&self, run: &RunId, event: Event) {
        match event {
            Event::Started { round } => self.begin(run, round),
            Event::Round(report) => {
                self.whole.inc(1);
                let mut shown = self.shown.lock().expect("no panic while held");
                let Some(shown) = shown.get_mut(run) else { return };
                shown.arrived += report.arrivals();
                shown.bar.inc(1);
                if let Some(accuracy) = report.test_accuracy {
                    shown.accuracy = Some(accuracy);
                    let message = format!(
                        "accuracy {:5.2} %  arrivals {:.1}",
                        100.0 * accuracy,
                        shown.arrived as f64 / f64::from(report.round - shown.from),
                    );
                    shown.bar.set_message(message.clone());
                    if self.style == Style::Lines && shown.told.elapsed().as_secs() >= LINE_EVERY {
                        shown.told = Instant::now();
                        let (name, width) = (self.name(run), self.width);
                        eprintln!("{name:<width$}  round {}  {message}", report.round);
                    }
                }
            }
            Event::Warned(warnings) => {
                for warning in warnings {
                    let (name, width) = (self.name(run), self.width);
                    self.say(&format!("{name:<width$}  warning: {warning}"));
                }
            }
            Event::Finished(finished) => {
                let accuracy = self
                    .shown
                    .lock()
                    .expect("no panic while held")
                    .get(run)
                    .and_then(|s| s.accuracy);
                let line = match (finished.diverged_at, accuracy) {
                    (Some(round), _) => format!("diverged at round {round}"),
                    (None, Some(accuracy)) => format!(
                        "{} rounds in {:.1} s, accuracy {:.2} %",
                        finished.rounds,
                        finished.seconds,
                        100.0 * accuracy
                    ),
                    (None, None) => format!("{} rounds", finished.rounds),
                };
                self.end(run, &line);
            }
            Event::Skipped(finished) => {
                self.whole.inc(self.rounds.into());
                self.end(run, &format!("finished before, {} rounds", finished.rounds));
            }
            Event::Interrupted { round } => self.end(run, &format!("saved after round {round}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use fedcote_sim::RoundReport;

    use super::*;

    #[test]
    fn arrivals_of_a_resumed_run_are_those_per_round_since() {
        let progress = Progress::over(1, 200, 20, Style::Quiet);
        let run = RunId { scheme: "fedavg".into(), seed: 1 };
        progress.event(&run, Event::Started { round: 128 });
        for round in [129, 130] {
            let report = RoundReport {
                round,
                arrived: vec![(0, 1), (3, 2)],
                test_accuracy: Some(0.5),
                ..RoundReport::default()
            };
            progress.event(&run, Event::Round(&report));
        }
        let shown = progress.shown.lock().unwrap();
        assert_eq!(shown[&run].bar.message(), "accuracy 50.00 %  arrivals 3.0");
    }
}
