//! `clients.json`: who takes part, as seen in the first round.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{optional, parse};
use crate::Error;

/// `clients.json`. Fields are in the order of their names, in which they have always been written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clients {
    /// Number of labels.
    pub classes: usize,
    /// The clients, in order.
    pub clients: Vec<Client>,
    /// The share of each label in all data.
    pub global_labels: Vec<f64>,
    /// What the user should know about network and selection.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A client in `clients.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Its expected share in the aggregate, for schemes that draw by probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appearance: Option<f64>,
    /// Its probability of failure.
    pub failure: f64,
    /// Its name.
    pub id: String,
    /// Whether it is indoors, on a radio network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indoor: Option<bool>,
    /// The share of each label in its data.
    #[serde(default)]
    pub labels: Vec<f64>,
    /// Its probability of being drawn, for schemes that draw by probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<f64>,
    /// Its radio standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard: Option<String>,
    /// Its share of all samples.
    pub weight: f64,
    /// Where it is, in metres east of the base station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// Where it is, in metres north of the base station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
}

impl Clients {
    /// The file's name in the folder of a run.
    pub const FILE: &str = "clients.json";

    /// Above this many clients the file is left out: nobody looks at it client by client.
    pub const MOST: usize = 10_000;

    /// Reads the file in the folder of a run, if it is there.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(Self::FILE);
        optional(&path)?.map(|bytes| Self::parse(&path, &bytes)).transpose()
    }

    /// Understands and checks the file's contents; `path` is for errors.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let clients: Self = parse(path, bytes)?;
        match clients.check() {
            Ok(()) => Ok(clients),
            Err(reason) => Err(Error::Damaged { path: path.to_owned(), line: None, reason }),
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self { classes, global_labels, .. } = self;
        if global_labels.len() != *classes {
            return Err(format!("{} global labels for {classes} classes", global_labels.len()));
        }
        for Client { id, labels, weight, failure, selection, appearance, .. } in &self.clients {
            if !labels.is_empty() && labels.len() != *classes {
                let count = labels.len();
                return Err(format!("client \"{id}\": {count} labels for {classes} classes"));
            }
            let shares = [Some(*weight), Some(*failure), *selection, *appearance];
            // Sums of rounded shares may be a little above 1.
            let wrong = |share: &f64| !(0.0..=1.0 + 1e-9).contains(share);
            if let Some(share) = shares.into_iter().flatten().find(wrong) {
                return Err(format!("client \"{id}\": {share} is not a share between 0 and 1"));
            }
        }
        Ok(())
    }
}
