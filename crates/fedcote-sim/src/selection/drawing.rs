//! Draws from selection probabilities, independent or systematic, and what they lead to.

use fedcote::draw::{self, Alias};
use fedcote::random::Purpose;
use fedcote::{Aim, Draws, Solution, Uploads};

use crate::Error;
use crate::part::{Count, Probabilities, RoundContext};

/// Selection probabilities in force, ready to be drawn from.
pub struct Drawing {
    draws: Draws,
    uploads: Uploads,
    remembered: bool,
    state: Option<State>,
}

struct State {
    selection: Vec<f64>,
    appearance: Vec<f64>,
    target: Vec<f64>,
    label_divergence: f64,
    alias: Option<Alias>,
    order: Vec<u32>,
    draws: u64,
}

impl Drawing {
    /// Draws of this kind by clients that upload like this; `remembered` if the server averages what it remembers.
    pub fn new(draws: Draws, uploads: Uploads, remembered: bool) -> Self {
        Self { draws, uploads, remembered, state: None }
    }

    /// Whether probabilities must be worked out (again).
    pub fn stale(&self, context: &RoundContext) -> bool {
        context.changed || self.state.is_none()
    }

    /// Puts probabilities in force.
    pub fn set(
        &mut self,
        context: &RoundContext,
        selection: Vec<f64>,
        target: Vec<f64>,
    ) -> Result<(), Error> {
        let federation = context.federation;
        let everyone = context.world.asks_everyone();
        // Everyone once is what systematic draws with equal probabilities come to.
        let (selection, procedure) = match everyone {
            true => {
                let equal = 1.0 / federation.len() as f64;
                (vec![equal; federation.len()], (Draws::Systematic, self.uploads))
            }
            false => (selection, (self.draws, self.uploads)),
        };
        let nobody = federation.failure().iter().all(|failure| *failure >= 1.0);
        let (appearance, label_divergence) = if self.remembered || nobody {
            // Everyone who was ever heard is in every aggregate, with the weight that is aimed at.
            (target.clone(), fedcote::divergence::label_divergence(federation, &target))
        } else {
            let draws = context.world.draws();
            let evaluation = fedcote::evaluate_for(federation, draws, &selection, procedure)?;
            (evaluation.appearance, evaluation.label_divergence)
        };
        self.put(context, selection, appearance, target, label_divergence)
    }

    /// Puts in force what the solver found.
    pub fn set_solution(
        &mut self,
        context: &RoundContext,
        solution: Solution,
        aim: Aim,
    ) -> Result<(), Error> {
        let Solution { selection, appearance, target, label_divergence, .. } = solution;
        // Whether it describes this server: one that remembers, or one that averages what arrives. For systematic draws the
        // solver leaves out clients that are not selected, which changes the last bits of the appearance.
        let described = match aim {
            Aim::Freshness => self.remembered,
            Aim::Appearance => !self.remembered && self.draws == Draws::Independent,
        };
        if described {
            self.put(context, selection, appearance, target, label_divergence)
        } else {
            self.set(context, selection, target)
        }
    }

    fn put(
        &mut self,
        context: &RoundContext,
        selection: Vec<f64>,
        appearance: Vec<f64>,
        target: Vec<f64>,
        label_divergence: f64,
    ) -> Result<(), Error> {
        let federation = context.federation;
        let (alias, order) = match self.draws {
            Draws::Independent => (Some(Alias::new(&selection)?), Vec::new()),
            Draws::Systematic => {
                let shares = federation.all_labels();
                (None, draw::label_order(shares, federation.len(), federation.classes())?)
            }
        };
        let draws = context.world.draws();
        self.state =
            Some(State { selection, appearance, target, label_divergence, alias, order, draws });
        Ok(())
    }

    /// K draws for a round.
    pub fn draw(&self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let state = self.state.as_ref().expect("probabilities are set before draws");
        let world = context.world;
        if world.asks_everyone() {
            return Ok(available(context));
        }
        let key = world.key(Purpose::Selection).round(context.round).attempt(redraw);
        let mut stream = key.stream();
        Ok(match &state.alias {
            Some(alias) => alias.draws(world.draws(), &mut stream)?,
            None => draw::systematic(&state.selection, &state.order, world.draws(), &mut stream)?,
        })
    }

    pub fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.state.as_ref().map(|state| Probabilities {
            selection: &state.selection,
            appearance: &state.appearance,
            target: &state.target,
            label_divergence: state.label_divergence,
            draws: state.draws,
        })
    }
}

/// Everyone who is there, once.
pub(super) fn available(context: &RoundContext) -> Vec<Count> {
    let clients = (0..).zip(context.available).filter(|(_, there)| **there);
    clients.map(|(client, _)| (client, 1)).collect()
}
