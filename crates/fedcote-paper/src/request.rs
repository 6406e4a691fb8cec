//! What the user asked for: network, task, and how far everything is cut down.

use crate::variant::{Network, Share, Task, Variant};

/// Seeds of a full artefact.
pub const SEEDS: u64 = 5;

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub network: Network,
    pub task: Task,
    /// Rounds, if not the paper's.
    pub rounds: Option<u32>,
    /// Seeds, if not those of a full artefact.
    pub seeds: Option<Vec<u64>>,
    /// Number of seeds of the full artefact, from 1.
    pub full_seeds: u64,
    /// The schemes to show; all when empty.
    pub schemes: Vec<String>,
}

impl Request {
    /// The balanced, static scenario with K = 10.
    pub fn variant(&self, share: Share) -> Variant {
        Variant::new(self.network, self.task, share, self.rounds)
    }

    /// The seeds.
    pub fn seeds(&self) -> Vec<u64> {
        self.seeds.clone().unwrap_or_else(|| (1..=self.full_seeds).collect())
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
        let seeds = self.seeds();
        let first = |count: u64| seeds.iter().copied().eq(1..=count);
        match seeds.len() {
            _ if first(self.full_seeds) => {}
            1 if first(1) => cuts.push("1 seed".to_owned()),
            count if first(count as u64) => cuts.push(format!("{count} seeds")),
            count => {
                let names: Vec<String> = seeds.iter().map(u64::to_string).collect();
                let word = if count == 1 { "seed" } else { "seeds" };
                cuts.push(format!("{word} {}", names.join(" and ")));
            }
        }
        if !self.schemes.is_empty() {
            cuts.push(format!("{} schemes", self.schemes.len()));
        }
        cuts.join(", ")
    }
}
