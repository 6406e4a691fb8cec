//! What the user asked for: network, task, and how far everything is cut down.

use super::variant::{Network, Share, Task, Variant};

/// Seeds of a full artefact.
pub const SEEDS: u64 = 5;

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub network: Network,
    pub task: Task,
    /// Rounds, if not the paper's.
    pub rounds: Option<u32>,
    pub seeds: Vec<u64>,
    /// The schemes to show; all when empty.
    pub schemes: Vec<String>,
}

impl Request {
    /// The balanced, static scenario with K = 10.
    pub fn variant(&self, share: Share) -> Variant {
        Variant::new(self.network, self.task, share, self.rounds)
    }

    /// Whether anything is cut down.
    pub fn is_cut(&self) -> bool {
        !self.cuts().is_empty()
    }

    /// How everything is cut down, for titles; empty if it is not.
    pub fn cuts(&self) -> String {
        let mut cuts = Vec::new();
        if let Some(rounds) = self.rounds {
            cuts.push(format!("{rounds} rounds"));
        }
        if self.seeds.len() as u64 != SEEDS {
            cuts.push(match self.seeds.len() {
                1 => "1 seed".to_owned(),
                count => format!("{count} seeds"),
            });
        }
        if !self.schemes.is_empty() {
            cuts.push(format!("{} schemes", self.schemes.len()));
        }
        cuts.join(", ")
    }
}
