//! The artefacts: what each is, and which runs it is made of.

use crate::request::Request;
use crate::variant::{Setting, Task, Variant};
use crate::{beyond, calibrate, grids, placement, readings, rivals};

/// One table or figure.
pub struct Artefact {
    /// What the user types.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// The task that it is about, if it is about one only.
    pub task: Option<Task>,
    /// What it is made of.
    pub body: Body,
}

/// What an artefact is made of.
pub enum Body {
    /// A table of runs, a row per scheme, with the paper's numbers beside.
    Table(fn(&Request) -> Grid),
    /// Curves over the rounds of runs, a panel per scenario.
    Curves(Curve, fn(&Request) -> Grid),
    /// A table of runs, a row per reading of a scheme.
    Readings,
    /// The comparison with what is not in the paper.
    Beyond,
    /// The protocol of another paper, with its numbers.
    Rivals,
    /// The fit of the network to one number of the paper.
    Calibration,
    /// The choice of a placement by another.
    Placement,
    /// No runs: computed from settings, or measured on the way.
    Other(Other),
}

/// What the curves of a figure show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    Accuracy,
    MeanLoss,
}

/// Artefacts without runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Other {
    Standards,
    Links,
    Enumeration,
    OneLabel,
    Gradients,
    GradientRatio,
    GradientDeviation,
    Selection,
    Draws,
    Theorem,
    TheoremWalking,
    Gaps,
    Uploads,
    Estimators,
}

/// Which runs make a table or figure.
pub struct Grid {
    pub rows: Vec<Row>,
    pub columns: Vec<Column>,
    /// What differs from the paper, and what else a reader should know.
    pub notes: Vec<&'static str>,
}

/// A row of a table, or a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub name: String,
    pub scheme: String,
    /// What this row's scenario has beside the column's.
    pub setting: Option<Setting>,
}

impl Row {
    /// A scheme under its own name.
    pub fn plain(scheme: &str) -> Self {
        Self { name: scheme.to_owned(), scheme: scheme.to_owned(), setting: None }
    }
}

/// A column of a table, or a panel.
pub struct Column {
    /// Its name in the paper's numbers.
    pub paper: String,
    pub variant: Variant,
    pub measure: Measure,
}

/// What a column shows, after the last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Accuracy,
    Loss,
}

impl Grid {
    /// The variant that a row has in a column.
    pub fn variant(&self, row: &Row, column: &Column) -> Variant {
        Variant { setting: row.setting, ..column.variant.clone() }
    }
}

/// The artefacts, in the paper's order.
pub const ARTEFACTS: [Artefact; 37] = [
    other("table-2", "settings: the standard of each client", Other::Standards),
    other("table-3", "settings: link parameters of each standard", Other::Links),
    table(
        "table-4",
        "MNIST, balanced: loss and accuracy of all schemes",
        Some(Task::Mnist),
        grids::balanced,
    ),
    table(
        "table-5",
        "CIFAR-10, balanced: loss and accuracy of all schemes",
        Some(Task::Cifar10),
        grids::balanced,
    ),
    table(
        "table-6",
        "MNIST, two labels per client, unbalanced",
        Some(Task::Mnist),
        grids::unbalanced,
    ),
    table(
        "table-7",
        "CIFAR-10, two labels per client, unbalanced",
        Some(Task::Cifar10),
        grids::unbalanced,
    ),
    other("table-8", "work of FedCote-II: ratio of the numbers of multisets", Other::Enumeration),
    table("table-9", "MNIST: FedCote-II for several K_apx", Some(Task::Mnist), grids::approximate),
    table(
        "table-10",
        "CIFAR-10: FedCote-II for several K_apx",
        Some(Task::Cifar10),
        grids::approximate,
    ),
    table("table-11", "K = 20, balanced", None, grids::twenty),
    table("table-12", "walking clients, two labels per client", None, grids::dynamic),
    Artefact {
        name: "readings",
        what: "schemes that can be read in two ways, each beside the paper's number",
        task: Some(Task::Mnist),
        body: Body::Readings,
    },
    other("table-13", "settings: labels and weights behind figures 3 to 5", Other::OneLabel),
    curves(
        "figure-2",
        "accuracy over rounds, u = 0.9",
        Curve::Accuracy,
        Some(Task::Mnist),
        grids::figure_2,
    ),
    other("figure-3", "gradient norm and deviation within classes", Other::Gradients),
    other("figure-4", "their ratio, and the solver's κ", Other::GradientRatio),
    other("figure-5", "deviation within classes against weight", Other::GradientDeviation),
    other("figure-6", "selection probabilities, and the labels they lead to", Other::Selection),
    other("figure-7", "selection probabilities for growing K", Other::Draws),
    curves("figure-8", "accuracy over rounds, K = 20", Curve::Accuracy, None, grids::figure_8),
    curves(
        "accuracy-balanced",
        "accuracy over rounds, balanced, K = 10, two labels per client",
        Curve::Accuracy,
        None,
        grids::accuracy_balanced,
    ),
    curves("figure-9", "mean training loss over rounds", Curve::MeanLoss, None, grids::figure_9),
    other("theorem-1", "the terms of the convergence bound", Other::Theorem),
    other("theorem-2", "the same where clients walk", Other::TheoremWalking),
    other("proposition-1", "how far clients' gradients are from the global one", Other::Gaps),
    beyond("beyond", "what is not in the paper, against Ideal"),
    beyond("beyond-static", "the first part of it: clients stand, two labels per client"),
    beyond("beyond-walking", "the second part of it: clients walk, two labels per client"),
    beyond("beyond-estimated", "failure probabilities that the server is not told, by estimator"),
    beyond("beyond-threshold", "the threshold that loses labels, and label coverage"),
    beyond("beyond-privacy", "label counts with noise, by privacy"),
    beyond("beyond-stragglers", "clients that are late"),
    other(
        "beyond-uploads",
        "one upload for all draws of a client: who ignores that",
        Other::Uploads,
    ),
    other(
        "beyond-estimators",
        "rounds that estimators of failure probabilities need",
        Other::Estimators,
    ),
    Artefact {
        name: "rivals",
        what: "FedAWE's protocol: clients that come and go, with its schemes and ours",
        task: None,
        body: Body::Rivals,
    },
    Artefact {
        name: "calibrate",
        what: "the loss outdoors at which FedAvg is as good as in the paper",
        task: Some(Task::Mnist),
        body: Body::Calibration,
    },
    Artefact {
        name: "calibrate-placement",
        what: "the placement that loses no label and at which FedAvg is as good as in the paper",
        task: Some(Task::Mnist),
        body: Body::Placement,
    },
];

const fn table(
    name: &'static str,
    what: &'static str,
    task: Option<Task>,
    grid: fn(&Request) -> Grid,
) -> Artefact {
    Artefact { name, what, task, body: Body::Table(grid) }
}

const fn curves(
    name: &'static str,
    what: &'static str,
    curve: Curve,
    task: Option<Task>,
    grid: fn(&Request) -> Grid,
) -> Artefact {
    Artefact { name, what, task, body: Body::Curves(curve, grid) }
}

const fn other(name: &'static str, what: &'static str, kind: Other) -> Artefact {
    Artefact { name, what, task: None, body: Body::Other(kind) }
}

const fn beyond(name: &'static str, what: &'static str) -> Artefact {
    Artefact { name, what, task: Some(Task::Mnist), body: Body::Beyond }
}

impl Artefact {
    /// The artefact of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ARTEFACTS.iter().find(|artefact| artefact.name == name)
    }

    /// Whether `all` has it: parts of another, the calibration and the protocol of another paper are asked for by name.
    pub fn is_whole(&self) -> bool {
        !matches!(self.name, "beyond-static" | "beyond-walking")
            && !matches!(self.body, Body::Rivals | Body::Calibration | Body::Placement)
    }

    /// The request as it is for this artefact.
    pub fn adapt(&self, request: &Request) -> Request {
        let mut request = request.clone();
        request.task = self.task.unwrap_or(request.task);
        match self.body {
            Body::Calibration => request.full_seeds = calibrate::SEEDS,
            Body::Rivals => request.full_seeds = rivals::SEEDS,
            _ => {}
        }
        request
    }

    /// The runs that it is made of, cut down to the schemes asked for; `None` if it needs none.
    pub fn grid(&self, request: &Request) -> Option<Grid> {
        let request = &self.adapt(request);
        let mut grid = match &self.body {
            Body::Table(grid) | Body::Curves(_, grid) => grid(request),
            Body::Readings => readings::grid(request),
            Body::Beyond => beyond::grid(self.name, request),
            Body::Rivals => rivals::grid(request),
            Body::Calibration => calibrate::grid(request),
            Body::Placement => placement::grid(request),
            Body::Other(_) => return None,
        };
        if !request.schemes.is_empty() {
            grid.rows.retain(|row| request.schemes.contains(&row.name));
        }
        Some(grid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::of_table;
    use crate::request::SEEDS;
    use crate::tables;
    use crate::variant::Network;

    fn request(task: Task) -> Request {
        let network = Network::Harsh;
        let schemes = Vec::new();
        Request { network, task, rounds: None, seeds: None, full_seeds: SEEDS, schemes }
    }

    /// Every number of the paper's tables has its cell, and every cell that should have a number finds it.
    #[test]
    fn the_papers_numbers_and_our_cells_match() {
        for artefact in ARTEFACTS.iter().filter(|a| matches!(a.body, Body::Table(_))) {
            let mut found = 0;
            for task in [Task::Mnist, Task::Cifar10] {
                if artefact.task.is_some_and(|own| own != task) {
                    continue;
                }
                let grid = artefact.grid(&request(task)).unwrap();
                for row in &grid.rows {
                    let cells = grid.columns.iter();
                    let cells = cells.filter(|c| tables::paper(artefact.name, row, c).is_some());
                    let cells = cells.count();
                    assert!(
                        cells == 0 || cells == grid.columns.len(),
                        "{} {}",
                        artefact.name,
                        row.name
                    );
                    found += cells;
                }
            }
            assert!(found > 0);
            assert_eq!(found, of_table(artefact.name).count(), "{}", artefact.name);
        }
    }

    #[test]
    fn every_grid_resolves_to_scenarios() {
        for artefact in &ARTEFACTS {
            let Some(grid) = artefact.grid(&request(Task::Mnist)) else { continue };
            assert!(!grid.rows.is_empty() && !grid.columns.is_empty());
            let schemes: Vec<String> = grid.rows.iter().map(|row| row.scheme.clone()).collect();
            for column in &grid.columns {
                for scheme in &schemes {
                    let scenario = column.variant.scenario(std::slice::from_ref(scheme), &[1]);
                    assert!(scenario.is_ok(), "{} {scheme}: {:?}", artefact.name, scenario.err());
                }
            }
        }
    }

    /// Transcribed by a program; these few were compared with the print by eye.
    #[test]
    fn some_numbers_are_as_printed() {
        for (table, row, column, mean) in [
            ("table-4", "fedavg", "non-iid accuracy", 80.89),
            ("table-4", "fedcote-gradient", "non-iid accuracy", 93.17),
            ("table-4", "tf-aggregation", "iid loss", 3.6379e34),
            ("table-6", "tf-aggregation", "u=0.7", 41.66),
            ("table-7", "power-of-choice", "u=0.9", 73.29),
            ("table-9", "fedcote-ii-6", "balanced accuracy", 93.26),
            ("table-11", "scaffold", "mnist non-iid", 92.24),
            ("table-12", "fedcote-ii-4", "cifar10", 78.45),
        ] {
            assert_eq!(crate::numbers::number(table, row, column).unwrap().mean, mean);
        }
    }
}
