//! Gradients class by class, measured along training without failures: G² and the deviations V² of Section 3.3.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fedcote_learn::gradient_over;
use fedcote_sim::scenario::LocalSteps;
use fedcote_sim::{Classification, Engine, Outcome, World};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::variant::Variant;

/// What a training run showed, round by round, before the round's update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `G² = Σ_c α_{g,c} ‖∇F_{g,c}‖²` of each round.
    pub norm: Vec<f64>,
    /// `Σ_{i,c} p_i α_{i,c} V²_{i,c}` of each round.
    pub deviation: Vec<f64>,
    /// The samples of a class that a client has.
    pub cells: Vec<MeasuredCell>,
    /// The training loss of the untrained model.
    pub initial_loss: f64,
    /// `‖∇F_{g,c}‖²` of each round and class.
    #[serde(default)]
    pub class_norms: Vec<Vec<f64>>,
    /// `‖∇F_i − ∇F‖²` of each round and client.
    #[serde(default)]
    pub gaps: Vec<Vec<f64>>,
}

/// A class at a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCell {
    pub client: usize,
    pub class: usize,
    /// `p_i α_{i,c}`: the share of all samples.
    pub share: f64,
    /// `V²_{i,c} = ‖∇F_{i,c} − ∇F_{g,c}‖²` of each round.
    pub deviation: Vec<f64>,
}

impl MeasuredCell {
    /// The median over rounds.
    pub fn median(&self) -> f64 {
        let mut values = self.deviation.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2.0
        }
    }
}

impl Measured {
    /// `κ = G² / Σ p α V²` of each round.
    pub fn ratios(&self) -> Vec<f64> {
        self.norm.iter().zip(&self.deviation).map(|(norm, deviation)| norm / deviation).collect()
    }
}

/// Where measurements are stored.
#[derive(Clone, Copy)]
pub struct Gradients<'a> {
    pub out: &'a Path,
    /// What is not there is an error: nothing may be trained.
    pub existing: bool,
}

/// The measurement for a variant, a seed and a number of local steps; read from the store if it is there.
pub fn measured(
    variant: &Variant,
    local_steps: u32,
    rounds: u32,
    seed: u64,
    store: Gradients,
) -> Result<Measured, Error> {
    let file = file(variant, local_steps, rounds, seed, store.out);
    if let Ok(text) = std::fs::read_to_string(&file) {
        let found: Measured = serde_json::from_str(&text).map_err(|error| {
            Error::request(format!("{}: {error}; remove it to measure again", file.display()))
        })?;
        // Measurements of before this was part of them are made again.
        if !found.gaps.is_empty() {
            return Ok(found);
        }
    }
    if store.existing {
        return Err(Error::NotStored(format!("{} is missing", file.display())));
    }
    let mut scenario = variant.scenario(&["ideal".to_owned()], &[seed])?;
    scenario.training.local_steps = LocalSteps::Same(local_steps);
    scenario.general.rounds = rounds;
    let task = Arc::new(Classification::load(&scenario, seed)?);
    let world = Arc::new(World::new(Arc::new(scenario), task.clone(), seed)?);
    let measured = measure(&world, &task, rounds)?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::work(format!("{}: {error}", folder.display())))?;
    }
    let text = serde_json::to_vec(&measured).expect("plain data");
    fedcote_support::write(&file, &text).map_err(Error::work)?;
    Ok(measured)
}

fn file(variant: &Variant, local_steps: u32, rounds: u32, seed: u64, out: &Path) -> PathBuf {
    // Nothing fails in these runs, so the network is not part of the name.
    let slug = Variant { rounds: None, ..variant.clone() }.slug();
    let slug = slug.split_once('-').map_or(slug.as_str(), |(_, rest)| rest);
    out.join("gradients").join(format!("{slug}-e{local_steps}-r{rounds}-seed{seed}.json"))
}

fn measure(world: &Arc<World>, task: &Classification, rounds: u32) -> Result<Measured, Error> {
    let scheme = world.scenario.schemes.resolve("ideal");
    let scheme = scheme.map_err(|error| Error::request(error.to_string()))?;
    let mut engine = Engine::new(Arc::clone(world), scheme)?;
    let train = &task.data.train;
    let mut cells = Vec::new();
    let mut samples = Vec::new();
    for client in 0..task.partition.len() {
        for class in 0..train.classes {
            let own = task.partition.client(client).iter().copied();
            let own: Vec<u32> =
                own.filter(|&sample| usize::from(train.labels[sample as usize]) == class).collect();
            if !own.is_empty() {
                let share = own.len() as f64 / train.len() as f64;
                cells.push(MeasuredCell { client, class, share, deviation: Vec::new() });
                samples.push(own);
            }
        }
    }
    let mut measured = Measured {
        norm: Vec::new(),
        deviation: Vec::new(),
        cells,
        initial_loss: 0.0,
        class_norms: Vec::new(),
        gaps: Vec::new(),
    };
    for round in 1..=rounds {
        let of = |samples: &Vec<u32>| gradient_over(&*task.model, engine.global(), train, samples);
        let parts: Vec<(f64, Vec<f32>)> = samples.iter().map(of).collect();
        if round == 1 {
            let losses = measured.cells.iter().zip(&parts);
            measured.initial_loss = losses.map(|(cell, (loss, _))| cell.share * loss).sum();
        }
        measured.add(&parts, train.classes);
        if let Outcome::Diverged = engine.step(round)? {
            return Err(Error::work(format!(
                "round {round}: the numbers blew up without failures"
            )));
        }
    }
    Ok(measured)
}

impl Measured {
    /// Adds a round: the gradients of all cells.
    fn add(&mut self, parts: &[(f64, Vec<f32>)], classes: usize) {
        let length = parts.first().map_or(0, |(_, gradient)| gradient.len());
        let (mut norm, mut deviation) = (0.0, 0.0);
        let (mut class_norms, mut global) = (Vec::new(), vec![0.0; length]);
        for class in 0..classes {
            let of_class: Vec<usize> =
                (0..self.cells.len()).filter(|&at| self.cells[at].class == class).collect();
            let total: f64 = of_class.iter().map(|&at| self.cells[at].share).sum();
            // The gradient over a class is the mean of the clients' by their samples of it.
            let mut mean = vec![0.0; length];
            for &at in &of_class {
                let share = self.cells[at].share / total;
                for (mean, &part) in mean.iter_mut().zip(&parts[at].1) {
                    *mean += share * f64::from(part);
                }
            }
            let squared: f64 = mean.iter().map(|value| value * value).sum();
            class_norms.push(squared);
            norm += total * squared;
            global.iter_mut().zip(&mean).for_each(|(sum, mean)| *sum += total * mean);
            for &at in &of_class {
                let gap = |(&part, &mean): (&f32, &f64)| (f64::from(part) - mean).powi(2);
                let squared: f64 = parts[at].1.iter().zip(&mean).map(gap).sum();
                deviation += self.cells[at].share * squared;
                self.cells[at].deviation.push(squared);
            }
        }
        let clients = self.cells.iter().map(|cell| cell.client + 1).max().unwrap_or(0);
        let gap = |client: usize| {
            let own = || (0..self.cells.len()).filter(|&at| self.cells[at].client == client);
            let total: f64 = own().map(|at| self.cells[at].share).sum();
            let mut apart: Vec<f64> = global.iter().map(|value| -value).collect();
            for at in own() {
                let share = self.cells[at].share / total;
                for (apart, &part) in apart.iter_mut().zip(&parts[at].1) {
                    *apart += share * f64::from(part);
                }
            }
            apart.iter().map(|value| value * value).sum()
        };
        self.gaps.push((0..clients).map(gap).collect());
        self.class_norms.push(class_norms);
        self.norm.push(norm);
        self.deviation.push(deviation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_and_deviations_are_as_by_hand() {
        let cell =
            |client, class, share| MeasuredCell { client, class, share, deviation: Vec::new() };
        let cells = vec![cell(0, 0, 0.25), cell(1, 0, 0.25), cell(1, 1, 0.5)];
        let (class_norms, gaps) = (vec![], vec![]);
        let mut measured = Measured {
            norm: vec![],
            deviation: vec![],
            cells,
            initial_loss: 0.0,
            class_norms,
            gaps,
        };
        // Class 0: gradients (2, 0) and (0, 2), mean (1, 1), each √2 away. Class 1: (3, 4) alone.
        measured.add(&[(1.0, vec![2.0, 0.0]), (1.0, vec![0.0, 2.0]), (1.0, vec![3.0, 4.0])], 2);
        assert_eq!(measured.norm, [0.5 * 2.0 + 0.5 * 25.0]);
        assert_eq!(measured.deviation, [0.25 * 2.0 + 0.25 * 2.0]);
        assert_eq!(measured.ratios(), [13.5]);
        assert_eq!(measured.class_norms, [[2.0, 25.0]]);
        // ∇F = (1, 1)/2 + (3, 4)/2 = (2, 2.5); client 0 has (2, 0), client 1 (0, 2)/3 + (3, 4)·2/3 = (2, 10/3).
        assert_eq!(measured.gaps[0][0], 6.25);
        assert!((measured.gaps[0][1] - (10.0 / 3.0 - 2.5f64).powi(2)).abs() < 1e-12);
        assert_eq!(measured.cells[2].deviation, [0.0]);
        let mut many = measured.cells[0].clone();
        many.deviation = vec![5.0, 1.0, 3.0, 4.0];
        assert_eq!(many.median(), 3.5);
    }
}
