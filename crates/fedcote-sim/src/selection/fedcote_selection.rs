//! FedCote: selection probabilities that undo the distortion of the label mix by failures, solved by the
//! `fedcote` library, and solved again whenever the failure probabilities change. For a server with memory, whose weights
//! see to the labels, those that keep the memory fresh.

use fedcote::{Aim, Draws, Method, Options};

use super::drawing::Drawing;
use super::printed::{self, PrintedSettings};
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
        /// The paper's Algorithm 2 to the letter, without label coverage and for independent draws.
        "printed" => Printed(PrintedSettings),
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
        /// Whether the selection knows which clients fail together (`[network.groups]`), or takes each to fail on its own.
        groups: bool = true;
    }
}

parameters! {
    /// Parameters of `solver = "exact"`.
    pub struct ExactSettings {
        /// Weight of label divergence against weight divergence.
        kappa: f64 = 1000.0, in 0.0..;
        /// Price of a failed draw.
        efficiency: f64 = 0.0, in 0.0..=fedcote::MAX_EFFICIENCY;
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
    drawing: Drawing,
    /// To the letter, if so.
    printed: Option<PrintedSettings>,
    /// Whether it knows which clients fail together.
    groups: bool,
    warnings: Vec<String>,
}

impl Fedcote {
    pub(super) fn new(settings: &FedcoteSettings, scenario: &Scenario, drawing: Drawing) -> Self {
        let method = match &settings.solver {
            SolverKind::Exact(ExactSettings { kappa, efficiency }) => {
                Method::Exact { kappa: *kappa, efficiency: *efficiency }
            }
            SolverKind::Gradient(GradientSettings { k_apx }) => Method::gradient(*k_apx),
            SolverKind::Printed(_) => Method::GRADIENT,
        };
        let printed = match &settings.solver {
            SolverKind::Printed(printed) => Some(printed.clone()),
            _ => None,
        };
        // Only who learns has something to explore.
        let exploration = match scenario.observation.knowledge {
            Knowledge::Known => 0.0,
            Knowledge::Estimated => scenario.server.exploration,
        };
        let aim = match settings.aim {
            AimKind::Appearance => Aim::Appearance,
            AimKind::Freshness => Aim::Freshness,
        };
        let options = Options::new()
            .with_method(method)
            .with_threshold(settings.threshold)
            .with_coverage(settings.coverage)
            .with_draws(settings.draws)
            .with_uploads(scenario.observation.uploads)
            .with_aim(aim)
            .with_exploration(exploration);
        let groups = settings.groups;
        Self { options, drawing, printed, groups, warnings: Vec::new() }
    }
}

impl Selection for Fedcote {
    fn needs_labels(&self) -> bool {
        true
    }

    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        if !self.drawing.stale(context) {
            return Ok(());
        }
        let selected = context.world.draws();
        let nobody = context.federation.failure().iter().all(|failure| *failure >= 1.0);
        if context.world.asks_everyone() || nobody {
            // There is nothing to choose: the weights are those of the data.
            let weights = context.federation.weights().to_vec();
            return self.drawing.set(context, weights.clone(), weights);
        }
        if let Some(settings) = &self.printed {
            let (federation, threshold) = (context.federation, self.options.threshold);
            let (selection, warnings) = printed::solve(federation, selected, threshold, settings);
            self.warnings = warnings;
            return self.drawing.set(context, selection, federation.weights().to_vec());
        }
        if !self.groups && context.federation.groups().is_some() {
            let alone = context.federation.clone().without_groups();
            let solution = fedcote::select_or_all(&alone, selected, &self.options)?;
            self.warnings = solution.warnings.iter().map(ToString::to_string).collect();
            return self.drawing.set(context, solution.selection, solution.target);
        }
        let solution = fedcote::select_or_all(context.federation, selected, &self.options)?;
        self.warnings = solution.warnings.iter().map(ToString::to_string).collect();
        self.drawing.set_solution(context, solution, self.options.aim)
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
