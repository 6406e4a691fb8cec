//! FedCote: selection probabilities that undo the distortion of the label mix by failures, solved by the
//! `fedcote` library, and solved again whenever the failure probabilities change. For a server with memory, whose weights
//! see to the labels, those that keep the memory fresh.

use fedcote::{Draws, Method, Options};

use super::drawing::Drawing;
use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};
use crate::scenario::{Knowledge, Scenario};
use crate::scheme::settings::{choices, parameters};

choices! {
    /// How selection probabilities are solved for.
    pub enum SolverKind in "solver" {
        /// Convex target and inversion.
        "exact" => Exact(ExactSettings),
        /// The paper's projected gradient descent.
        "gradient" => Gradient(GradientSettings),
    }
}

choices! {
    /// What selection probabilities are for.
    #[derive(Copy, Eq)]
    pub enum AimKind in "aim" {
        /// That the aggregate of what arrives has the labels of all data.
        "appearance" => Appearance,
        /// That what a server remembers of each client is fresh; its weights see to the labels.
        "freshness" => Freshness,
    }
}

parameters! {
    /// Parameters of `selection = "fedcote"`.
    pub struct FedcoteSettings {
        /// How clients are drawn from selection probabilities.
        draws: Draws = Draws::Independent;
        /// How selection probabilities are solved for.
        solver: SolverKind = SolverKind::default();
        /// What selection probabilities are for: `freshness` is for a server with memory.
        aim: AimKind = AimKind::Appearance;
        /// Clients that fail more often are left out.
        threshold: f64 = 0.85, in 0.0..=1.0;
        /// The threshold must not lose a label.
        coverage: bool = true;
    }
}

parameters! {
    /// Parameters of `solver = "exact"`.
    pub struct ExactSettings {
        /// Weight of label divergence against weight divergence.
        kappa: f64 = 1000.0, in 0.0..;
        /// Price of a failed draw.
        efficiency: f64 = 0.0, in 0.0..=fedcote::solve::MAX_EFFICIENCY;
    }
}

parameters! {
    /// Parameters of `solver = "gradient"`.
    pub struct GradientSettings {
        /// Solve for this K instead (FedCote-II).
        k_apx: Option<u64> = None, in 1..;
    }
}

/// Draws by FedCote.
pub struct Fedcote {
    options: Options,
    aim: AimKind,
    exploration: f64,
    drawing: Drawing,
    warnings: Vec<String>,
}

impl Fedcote {
    pub(super) fn new(settings: &FedcoteSettings, scenario: &Scenario, drawing: Drawing) -> Self {
        let method = match &settings.solver {
            SolverKind::Exact(ExactSettings { kappa, efficiency }) => {
                Method::Exact { kappa: *kappa, efficiency: *efficiency }
            }
            SolverKind::Gradient(GradientSettings { k_apx }) => match Method::GRADIENT {
                Method::Gradient { max_steps, tolerance, .. } => {
                    Method::Gradient { k_apx: *k_apx, max_steps, tolerance }
                }
                other => other,
            },
        };
        let options = Options {
            method,
            threshold: settings.threshold,
            coverage: settings.coverage,
            draws_kind: settings.draws,
            uploads: scenario.observation.uploads,
        };
        // Only who learns has something to explore.
        let exploration = match scenario.observation.knowledge {
            Knowledge::Known => 0.0,
            Knowledge::Estimated => scenario.server.exploration,
        };
        Self { options, aim: settings.aim, exploration, drawing, warnings: Vec::new() }
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
