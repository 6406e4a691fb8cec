//! The three parts of a scheme, as traits; each implementation is one file.

use std::sync::Arc;

use fedcote::Federation;

use crate::Error;
pub use crate::clock::{Asked, Traffic};
use crate::saved::Saved;
use crate::task::Correction;
use crate::world::World;

/// What a part may look at in a round.
#[derive(Clone, Copy)]
pub struct RoundContext<'a> {
    /// Task and network: what all schemes share.
    pub world: &'a World,
    /// Weights and labels as the clients report them, with the failure probabilities the server believes in.
    pub federation: &'a Federation,
    /// Whether these probabilities may differ from those of the round before.
    pub changed: bool,
    /// Who is there in this round; only a scheme that asks around first may look at it.
    pub available: &'a [bool],
    /// The round, from 1.
    pub round: u32,
    /// The global model that was broadcast.
    pub global: &'a Arc<Vec<f32>>,
}

/// A client and how often it was drawn, or how many of its uploads arrived.
pub type Count = (u32, u32);

/// A local model that reached the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The client.
    pub client: u32,
    /// How many of its uploads arrived.
    pub copies: u32,
    /// How many local steps it made.
    pub steps: u32,
    /// Its model; empty if the aggregation has [absorbed](Aggregation::absorb) it.
    pub model: Vec<f32>,
}

/// Selection probabilities and what they lead to.
#[derive(Debug, Clone, Copy)]
pub struct Probabilities<'a> {
    /// The selection probabilities s.
    pub selection: &'a [f64],
    /// The share of each client in the aggregate that they lead to, as far as the server knows.
    pub appearance: &'a [f64],
    /// What the appearance aims at: the weights p, or what the solver could reach.
    pub target: &'a [f64],
    /// χ² of the effective against the actual label distribution.
    pub label_divergence: f64,
    /// The number of draws by these probabilities in a round.
    pub draws: u64,
}

impl Probabilities<'_> {
    /// How many uploads of a client are to be expected in a round: K s (1 − ε).
    pub fn expected(&self, context: &RoundContext, client: u32) -> f64 {
        let client = client as usize;
        self.draws as f64 * self.selection[client] * (1.0 - context.federation.failure()[client])
    }
}

/// What a part remembers from round to round.
pub trait State {
    /// Bytes on the server that grow with the number of clients.
    fn memory(&self) -> usize {
        0
    }

    /// Puts what must survive an interruption into `saved`.
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        let _ = saved;
    }

    /// Takes it back; an error says what is damaged.
    ///
    /// # Errors
    ///
    /// When something is missing or has the wrong size.
    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        let _ = saved;
        Ok(())
    }
}

/// Whom to ask.
pub trait Selection: State + Send + Sync {
    /// Gets ready for a round, before its draws.
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        let _ = context;
        Ok(())
    }

    /// Draws clients; `redraw` counts how often this round was drawn already.
    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error>;

    /// The probabilities behind the draws, for a selection that has some.
    fn probabilities(&self) -> Option<Probabilities<'_>> {
        None
    }

    /// Whether it sees who is there, so that who is not counts as a failure that was observed.
    fn sees_absent(&self) -> bool {
        false
    }

    /// What the user should know about the probabilities in force.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Learns what arrived.
    fn received(&mut self, context: &RoundContext, arrivals: &[Arrival]) {
        let _ = (context, arrivals);
    }

    /// Whether [`received`](Self::received) reads the models.
    fn reads_models(&self) -> bool {
        false
    }

    /// Whether clients must tell their label counts, and not only how many samples they have.
    fn needs_labels(&self) -> bool {
        false
    }

    /// The clients under way, for a selection that does not wait for rounds to end.
    fn buffered(&mut self) -> Option<&mut crate::selection::Buffered> {
        None
    }

    /// Whom the last draw asked for a loss.
    fn asked(&self) -> Asked<'_> {
        Asked::default()
    }

    /// Whether it goes by what clients learnt whose uploads were all lost: they then train, too.
    fn uses_lost(&self) -> bool {
        false
    }

    /// Learns what was trained and lost, before [`received`](Self::received); copies are 0.
    fn lost(&mut self, context: &RoundContext, lost: &[Arrival]) {
        let _ = (context, lost);
    }
}

/// What a client does besides plain steps of gradient descent, as data for its [`Task`](crate::task::Task).
pub trait LocalUpdate: State + Send + Sync {
    /// What is added to the gradients of a client in this round.
    fn correction(&self, context: &RoundContext, client: u32) -> Correction<'_> {
        let _ = (context, client);
        Correction::default()
    }

    /// The same where it may fail, in the user's own code.
    ///
    /// # Errors
    ///
    /// When that code fails.
    fn try_correction(&self, context: &RoundContext, client: u32) -> Result<Correction<'_>, Error> {
        Ok(self.correction(context, client))
    }

    /// What is sent to and from a drawn client beside the model.
    fn traffic(&self, context: &RoundContext, client: u32) -> Traffic {
        let _ = (context, client);
        Traffic::default()
    }

    /// The model that a client starts from, if it is not the global one.
    fn start(&self, client: u32) -> Option<&[f32]> {
        let _ = client;
        None
    }

    /// Learns what arrived.
    fn received(&mut self, context: &RoundContext, arrivals: &[Arrival]) {
        let _ = (context, arrivals);
    }

    /// Whether [`received`](Self::received) reads the models.
    fn reads_models(&self) -> bool {
        false
    }

    /// Whether clients whose uploads are all lost train, too, because they keep something of it.
    fn uses_lost(&self) -> bool {
        false
    }

    /// Learns what was trained and lost, before [`received`](Self::received); copies are 0.
    fn lost(&mut self, context: &RoundContext, lost: &[Arrival]) {
        let _ = (context, lost);
    }
}

/// What becomes of what arrived.
pub trait Aggregation: State + Send + Sync {
    /// Whether uploads are repeated when nothing arrived.
    fn retries(&self) -> bool {
        true
    }

    /// Whether a round in which nobody can arrive counts, too; otherwise it leaves everything as it is. For an aggregation that
    /// does not retry.
    fn counts_empty_rounds(&self) -> bool {
        false
    }

    /// Named numbers that say what the server did in the round it has just aggregated, for `metrics.jsonl`.
    fn scores(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// What the server adds to the gradients of a client in this round, on top of the local rule.
    fn correction(&self, context: &RoundContext, client: u32) -> Correction<'_> {
        let _ = (context, client);
        Correction::default()
    }

    /// The model that a client starts from, if it is not the global one.
    fn start(&self, client: u32) -> Option<&[f32]> {
        let _ = client;
        None
    }

    /// The model to evaluate, if it is not the global one.
    fn evaluated(&self, global: &[f32]) -> Option<Vec<f32>> {
        let _ = global;
        None
    }

    /// Whether clients whose uploads are all lost train, too, because something comes of it.
    fn uses_lost(&self) -> bool {
        false
    }

    /// Learns what was trained and lost, after [`aggregate`](Self::aggregate); copies are 0.
    fn lost(&mut self, context: &RoundContext, lost: &[Arrival]) {
        let _ = (context, lost);
    }

    /// Takes note of a model as soon as it is there, if no other part reads it: before [`aggregate`](Self::aggregate) of the
    /// same round, which then finds this client among the arrivals. Whoever needs the model no more leaves it empty, so
    /// that the models of a round need not be there all at once.
    fn absorb(&mut self, context: &RoundContext, client: u32, steps: u32, model: &mut Vec<f32>) {
        let _ = (context, client, steps, model);
    }

    /// Whether clients must tell their label counts, and not only how many samples they have.
    fn needs_labels(&self) -> bool {
        false
    }

    /// What is sent to and from a drawn client beside the model.
    fn traffic(&self, context: &RoundContext, client: u32) -> Traffic {
        let _ = (context, client);
        Traffic::default()
    }

    /// Moves the global model. Returns the weight that each client had in the move.
    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error>;
}
