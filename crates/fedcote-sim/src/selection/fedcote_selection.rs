//! FedCote: selection probabilities that undo the distortion of the label mix by failures, solved by the
//! `fedcote` library, and solved again whenever the failure probabilities change. For a server with memory, whose weights
//! see to the labels, those that keep the memory fresh.

use fedcote::{Method, Options};

use super::drawing::Drawing;
use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};
use crate::scenario::{Knowledge, Server};
use crate::scheme::{AimKind, Scheme, SolverKind};

/// Draws by FedCote.
pub struct Fedcote {
    options: Options,
    aim: AimKind,
    exploration: f64,
    drawing: Drawing,
    warnings: Vec<String>,
}

impl Fedcote {
    /// With the scheme's parameters, the library's defaults where it has none.
    pub fn new(scheme: &Scheme, server: &Server) -> Self {
        let config = &scheme.config;
        let method = match (config.solver.unwrap_or(SolverKind::Exact), Method::GRADIENT) {
            (SolverKind::Gradient, Method::Gradient { max_steps, tolerance, .. }) => {
                Method::Gradient { k_apx: config.k_apx, max_steps, tolerance }
            }
            _ => Method::Exact {
                kappa: config.kappa.unwrap_or(1000.0),
                efficiency: config.efficiency.unwrap_or(0.0),
            },
        };
        let defaults = Options::default();
        let drawing = Drawing::new(scheme, server.uploads);
        let options = Options {
            method,
            threshold: config.threshold.unwrap_or(defaults.threshold),
            coverage: config.coverage.unwrap_or(defaults.coverage),
            draws_kind: config.draws.unwrap_or_default(),
            uploads: server.uploads,
        };
        // Only who learns has something to explore.
        let exploration = match server.knowledge {
            Knowledge::Known => 0.0,
            Knowledge::Estimated => server.exploration,
        };
        let aim = config.aim.unwrap_or(AimKind::Appearance);
        Self { options, aim, exploration, drawing, warnings: Vec::new() }
    }
}

impl Selection for Fedcote {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        if !self.drawing.stale(context) {
            return Ok(());
        }
        let federation = context.federation;
        let solve =
            |options: &Options| fedcote::select(federation, context.world.draws(), options, None);
        let solution = match solve(&self.options) {
            // Leaving everyone out would leave nobody to ask.
            Err(fedcote::Error::NobodyEligible(_)) => {
                solve(&Options { threshold: 1.0, ..self.options })?
            }
            solved => solved?,
        };
        self.warnings = solution.warnings.iter().map(ToString::to_string).collect();
        let mut selection = match self.aim {
            AimKind::Appearance => solution.selection,
            AimKind::Freshness => {
                fedcote::freshness::selection(&solution.target, federation.failure())?
            }
        };
        if self.exploration > 0.0 {
            for (selection, weight) in selection.iter_mut().zip(federation.weights()) {
                *selection += self.exploration * (weight - *selection);
            }
        }
        self.drawing.set(context, selection, solution.target)
    }

    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        self.drawing.draw(context, redraw)
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.drawing.probabilities()
    }
}

impl State for Fedcote {}
