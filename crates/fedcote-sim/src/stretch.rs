//! Some rounds of a run, computed away from its folder: from the bytes of a state to bytes that the folder's owner
//! turns into files.
//!
//! A stretch is a function of scenario, run and state. So it does no harm to compute one twice, on another machine.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::folder::checkpoint;
use crate::folder::{Checkpoint, Line};
use crate::play::{Ending, Play};
use crate::saved::Saved;
use crate::world::World;

/// The state of a run between two stretches, to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct State(Vec<u8>);

impl State {
    /// The state after so many rounds.
    pub(crate) fn new(round: u32, saved: Saved<'_>) -> Result<Self, Error> {
        let contents = checkpoint::contents(&Checkpoint { round, saved, ..Checkpoint::default() });
        contents.map(Self).map_err(|error| Error::remote(format!("a state: {error}")))
    }

    /// A state that was received.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// A state to be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The rounds played, and the state after them.
    pub(crate) fn saved(&self) -> Result<(u32, Saved<'static>), Error> {
        let understood = checkpoint::understand(&self.0);
        let understood = understood.ok_or_else(|| Error::remote("a state was damaged"))?;
        Ok((understood.round, understood.saved))
    }
}

/// What is left of a run after a stretch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rest {
    /// The state to go on from.
    State(State),
    /// Nothing: how it ended, and the contents of `model.safetensors`.
    Ended(Ending, Vec<u8>),
}

/// What some rounds of a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Rounds played since the run began.
    pub(crate) round: u32,
    /// Seconds that the stretch took.
    pub(crate) seconds: f64,
    /// The instruction set that it was computed with.
    pub(crate) instructions: String,
    /// The contents of `clients.json`, if the first round is among its rounds.
    pub(crate) clients: Option<String>,
    /// What the user should know about the selection, if the first round is among its rounds.
    pub(crate) warnings: Vec<String>,
    /// Lines of `metrics.jsonl`.
    pub(crate) lines: Vec<String>,
    pub(crate) rest: Rest,
}

/// All of a stretch but the bytes of state or model.
#[derive(Serialize, Deserialize)]
struct Header {
    round: u32,
    seconds: f64,
    instructions: String,
    clients: Option<String>,
    warnings: Vec<String>,
    lines: Vec<String>,
    ending: Option<Ending>,
}

impl Stretch {
    /// Plays up to so many rounds of a scheme's run, from its beginning or from a state.
    ///
    /// # Errors
    ///
    /// When the state is damaged, or the work fails.
    pub fn play(
        world: Arc<World>,
        scheme: &str,
        from: Option<&State>,
        rounds: u32,
    ) -> Result<Self, Error> {
        let begun = Instant::now();
        let mut play = Play::new(world, scheme)?;
        if let Some(state) = from {
            let (round, mut saved) = state.saved()?;
            let damaged = |reason| Error::remote(format!("a state was damaged: {reason}"));
            play.restore(round, &mut saved).map_err(damaged)?;
        }
        let (mut clients, mut warnings, mut lines) = (None, Vec::new(), Vec::new());
        for _ in 0..rounds {
            if play.has_ended() {
                break;
            }
            let line = play.step()?;
            lines.push(serde_json::to_string(&line).expect("plain data"));
            if play.round() == 1 {
                clients = play.clients();
                warnings = play.warnings();
            }
        }
        let rest = match play.has_ended() {
            true => Rest::Ended(play.ending(), play.model()?),
            false => Rest::State(State::new(play.round(), play.save())?),
        };
        let (round, instructions) = (play.round(), play.instructions().to_owned());
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Self { round, seconds, instructions, clients, warnings, lines, rest })
    }

    /// The rounds, in order.
    pub(crate) fn rounds(&self) -> Result<Vec<Line>, Error> {
        let understand = |line: &String| {
            let damaged = |reason| Error::remote(format!("a round was damaged: {reason}"));
            Line::parse(line.as_bytes(), 0).map_err(damaged)
        };
        self.lines.iter().map(understand).collect()
    }

    /// To be sent: the length of the header, the header, and the bytes of state or model.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (ending, bytes) = match &self.rest {
            Rest::State(state) => (None, state.as_bytes()),
            Rest::Ended(ending, model) => (Some(*ending), model.as_slice()),
        };
        let header = Header {
            round: self.round,
            seconds: self.seconds,
            instructions: self.instructions.clone(),
            clients: self.clients.clone(),
            warnings: self.warnings.clone(),
            lines: self.lines.clone(),
            ending,
        };
        let header = serde_json::to_vec(&header).expect("plain data");
        [&(header.len() as u64).to_le_bytes(), header.as_slice(), bytes].concat()
    }

    /// As it was received.
    ///
    /// # Errors
    ///
    /// When it was damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let read = || {
            let (length, rest) = bytes.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (header, bytes) = rest.split_at_checked(length)?;
            Some((serde_json::from_slice::<Header>(header).ok()?, bytes))
        };
        let (header, bytes) = read().ok_or_else(|| Error::remote("a result was damaged"))?;
        let rest = match header.ending {
            None => Rest::State(State::from_bytes(bytes)),
            Some(ending) => Rest::Ended(ending, bytes.to_vec()),
        };
        let Header { round, seconds, instructions, clients, warnings, lines, .. } = header;
        Ok(Self { round, seconds, instructions, clients, warnings, lines, rest })
    }
}
