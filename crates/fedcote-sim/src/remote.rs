//! Runs whose rounds are computed elsewhere, stretch by stretch, while their folders stay here.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::Error;
use crate::comparison::{Control, Event, Listener};
use crate::folder::{Line, RunFolder};
use crate::plan::RunId;
use crate::runner::{Begun, begin};
use crate::scenario::Scenario;
use crate::stretch::{Rest, State, Stretch};

/// Where stretches of runs are computed: other processes or machines. It repeats by itself what is lost on the way.
pub trait Remote: Sync {
    /// Rounds per stretch; `None` for as many as between two checkpoints.
    fn rounds(&self) -> Option<u32>;

    /// How many stretches it should have at once.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    fn room(&self) -> Result<usize, Error>;

    /// Takes a stretch to compute with [`Stretch::play`]. The answer comes under this number.
    ///
    /// # Errors
    ///
    /// When it cannot be sent.
    fn submit(&self, number: usize, piece: &Piece) -> Result<(), Error>;

    /// Waits for a moment; the numbers of what is done, and what it came to ([`Stretch::to_bytes`]).
    ///
    /// # Errors
    ///
    /// When the work itself is refused or fails, which no repetition would change.
    fn wait(&self) -> Result<Vec<(usize, Vec<u8>)>, Error>;

    /// Forgets all that was submitted.
    fn cancel(&self);
}

/// A stretch to compute.
pub struct Piece<'a> {
    /// The scenario as text, with absolute paths.
    pub scenario: &'a str,
    /// The run.
    pub run: &'a RunId,
    /// Where to go on; `None` for the run's beginning.
    pub state: Option<&'a State>,
    /// Rounds to play; with 0 it is only seen whether the run can begin.
    pub rounds: u32,
}

/// Sees whether a run could begin, there. False means that the user did not want to wait.
pub(crate) fn probe(
    remote: &dyn Remote,
    scenario: &Scenario,
    run: &RunId,
    control: &Control,
) -> Result<bool, Error> {
    let scenario = scenario.clone().rooted()?.to_toml();
    let answered = || {
        remote.submit(0, &Piece { scenario: &scenario, run, state: None, rounds: 0 })?;
        while !control.stop.load(Ordering::Relaxed) {
            if let Some((_, answer)) = remote.wait()?.first() {
                return Stretch::from_bytes(answer).map(|_| true);
            }
        }
        Ok(false)
    };
    answered()
        .inspect(|&answer| {
            if !answer {
                remote.cancel()
            }
        })
        .inspect_err(|_| remote.cancel())
}

/// Plays all runs to their ends; false means that it was interrupted.
pub(crate) fn play_all(
    remote: &dyn Remote,
    scenario: &Scenario,
    runs: &[RunId],
    folders: &[RunFolder],
    control: &Control,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let rounds = remote.rounds().unwrap_or(scenario.general.checkpoint_every);
    let scenario = scenario.clone().rooted()?.to_toml();
    let driver = Driver { remote, scenario, rounds, runs, listener };
    let result = driver.play(folders, control);
    if !matches!(result, Ok(true)) {
        remote.cancel();
    }
    result
}

struct Driver<'a> {
    remote: &'a dyn Remote,
    scenario: String,
    rounds: u32,
    runs: &'a [RunId],
    listener: &'a dyn Listener,
}

impl Driver<'_> {
    fn play(&self, folders: &[RunFolder], control: &Control) -> Result<bool, Error> {
        let mut left = folders.iter().enumerate();
        let mut under_way: HashMap<usize, Begun> = HashMap::new();
        loop {
            let room = self.remote.room()?.max(1);
            while under_way.len() < room && !control.stop.load(Ordering::Relaxed) {
                let Some((at, folder)) = left.next() else { break };
                let Some((begun, saved)) = begin(&self.runs[at], folder, self.listener)? else {
                    continue;
                };
                let round = begun.writer.round();
                self.listener.event(&self.runs[at], Event::Started { round });
                let state = saved.map(|saved| State::new(round, saved)).transpose()?;
                self.submit(at, round, state.as_ref())?;
                under_way.insert(at, begun);
            }
            if control.stop.load(Ordering::Relaxed) {
                for (at, begun) in &under_way {
                    let round = begun.writer.round();
                    self.listener.event(&self.runs[*at], Event::Interrupted { round });
                }
                return Ok(under_way.is_empty() && left.next().is_none());
            }
            if under_way.is_empty() {
                return Ok(true);
            }
            for (at, answer) in self.remote.wait()? {
                let Some(begun) = under_way.get_mut(&at) else { continue };
                if self.apply(at, begun, &Stretch::from_bytes(&answer)?)? {
                    under_way.remove(&at);
                }
            }
        }
    }

    /// Sends the next stretch of a run. It ends where a checkpoint is due.
    fn submit(&self, at: usize, round: u32, state: Option<&State>) -> Result<(), Error> {
        let rounds = self.rounds - round % self.rounds;
        let piece = Piece { scenario: &self.scenario, run: &self.runs[at], state, rounds };
        self.remote.submit(at, &piece)
    }

    /// Writes what a stretch came to, and sends the next one. True when the run has ended.
    fn apply(&self, at: usize, begun: &mut Begun, stretch: &Stretch) -> Result<bool, Error> {
        let run = &self.runs[at];
        let event = |event| self.listener.event(run, event);
        let lines = stretch.rounds()?;
        let finished = begun.writer.apply(stretch)?;
        if !stretch.warnings.is_empty() {
            event(Event::Warned(&stretch.warnings));
        }
        for line in &lines {
            if let Line::Round(report) = line {
                event(Event::Round(report));
            }
        }
        match (&stretch.rest, finished) {
            (Rest::State(state), None) => {
                self.submit(at, stretch.round, Some(state)).map(|()| false)
            }
            (_, Some(finished)) => {
                event(Event::Finished(&finished));
                Ok(true)
            }
            (Rest::Ended(..), None) => unreachable!("a run that ended is finished"),
        }
    }
}
