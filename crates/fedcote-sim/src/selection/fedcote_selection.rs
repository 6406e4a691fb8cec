//! FedCote: selection probabilities that undo the distortion of the label mix by failures, solved by the
//! `fedcote` library, and solved again whenever the failure probabilities change. For a server with memory, whose weights
//! see to the labels, those that keep the memory fresh.

use fedcote::{Aim, Method, Options};

use super::drawing::Drawing;
use crate::Error;
use crate::part::{Count, Probabilities, Scene, Selection};
use crate::scenario::{Knowledge, Server};
use crate::scheme::{AimKind, Scheme, SolverKind};

/// Draws by FedCote.
pub struct Fedcote {
    options: Options,
    drawing: Drawing,
    warnings: Vec<String>,
}

impl Fedcote {
    /// With the scheme's parameters, the library's defaults where it has none.
    pub fn new(scheme: &Scheme, server: &Server) -> Self {
        let config = &scheme.config;
        let method = match config.solver.unwrap_or(SolverKind::Exact) {
            SolverKind::Gradient => Method::gradient(config.k_apx),
            SolverKind::Exact => Method::Exact {
                kappa: config.kappa.unwrap_or(1000.0),
                efficiency: config.efficiency.unwrap_or(0.0),
            },
        };
        // Only who learns has something to explore.
        let exploration = match server.knowledge {
            Knowledge::Known => 0.0,
            Knowledge::Estimated => server.exploration,
        };
        let aim = match config.aim.unwrap_or(AimKind::Appearance) {
            AimKind::Appearance => Aim::Appearance,
            AimKind::Freshness => Aim::Freshness,
        };
        let defaults = Options::new();
        let options = defaults
            .with_method(method)
            .with_threshold(config.threshold.unwrap_or(defaults.threshold))
            .with_coverage(config.coverage.unwrap_or(defaults.coverage))
            .with_draws(config.draws.unwrap_or_default())
            .with_uploads(server.uploads)
            .with_aim(aim)
            .with_exploration(exploration);
        Self { options, drawing: Drawing::new(scheme, server.uploads), warnings: Vec::new() }
    }
}

impl Selection for Fedcote {
    fn prepare(&mut self, scene: &Scene) -> Result<(), Error> {
        if !self.drawing.stale(scene) {
            return Ok(());
        }
        let selected = scene.world.draws();
        let solution = fedcote::select_or_all(scene.federation, selected, &self.options)?;
        self.warnings = solution.warnings.iter().map(ToString::to_string).collect();
        self.drawing.set_solution(scene, solution, self.options.aim)
    }

    fn draw(&mut self, scene: &Scene, redraw: u32) -> Result<Vec<Count>, Error> {
        self.drawing.draw(scene, redraw)
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.drawing.probabilities()
    }
}
