//! The `[data]` table of a scenario.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Shape;
use crate::Error;

/// Which data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetKind {
    /// MNIST, embedded.
    Mnist,
    /// CIFAR-10, from a folder in its binary layout.
    Cifar10,
    /// Any four IDX files in a folder.
    Idx,
    /// Gaussian classes.
    Synthetic,
}

/// How samples are divided among clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionKind {
    /// Shuffled, then divided.
    Iid,
    /// Two labels per client.
    LabelPairs,
    /// One label per client.
    OneLabel,
    /// One label mix per client, drawn from a Dirichlet distribution.
    Dirichlet,
    /// One label mix per client, drawn likewise; each label's samples are cut in proportion to the mixes, so that clients differ in size.
    DirichletCut,
    /// A few shards of the samples sorted by label.
    Shards,
}

/// The `[data]` table of a scenario: which samples, and how clients share them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataSpec {
    /// Which data set; default `mnist`.
    pub set: SetKind,
    /// The folder of a `cifar10` or `idx` set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How clients share the training samples; default `iid`.
    pub partition: PartitionKind,
    /// The share of the samples that goes to clients 2, 4, 6, …, between 0 and 1; default 0.5.
    /// Not with `shards`, which are equal, nor with `dirichlet-cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbalance: Option<f64>,
    /// The parameter of the Dirichlet distribution, above 0; default 0.5. Small means few labels per client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<f64>,
    /// Shards per client, at least 1; default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards_per_client: Option<usize>,
    /// Quarter turns, 1 to 4; default 1, none. Client i has its images turned by i mod `rotations` quarter turns, test image j by j mod
    /// `rotations`, so that clients of the same labels differ in their features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotations: Option<usize>,
    /// Training samples of a `synthetic` set; default 10,000. A fifth as many, at most 10,000, form the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Features per `synthetic` sample; default 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// Classes of a `synthetic` set, 2 to 256; default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The deviation around a class's centre, in deviations of the centres; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
}

impl Default for DataSpec {
    fn default() -> Self {
        Self {
            set: SetKind::Mnist,
            path: None,
            partition: PartitionKind::Iid,
            unbalance: None,
            concentration: None,
            shards_per_client: None,
            rotations: None,
            samples: None,
            features: None,
            classes: None,
            noise: None,
        }
    }
}

impl DataSpec {
    /// Refuses values that cannot work and keys that would be ignored, by name.
    pub fn check(&self) -> Result<(), Error> {
        let folder = matches!(self.set, SetKind::Cifar10 | SetKind::Idx);
        let synthetic = self.set == SetKind::Synthetic;
        match &self.path {
            None if folder => refuse("data.path", "missing: name the folder that holds the files")?,
            Some(_) if !folder => {
                refuse("data.path", "belongs to set = \"cifar10\" or \"idx\"; remove it")?
            }
            _ => {}
        }
        for (key, given) in [
            ("data.samples", self.samples.is_some()),
            ("data.features", self.features.is_some()),
            ("data.classes", self.classes.is_some()),
            ("data.noise", self.noise.is_some()),
        ] {
            if given && !synthetic {
                refuse(key, "belongs to set = \"synthetic\"; remove it")?;
            }
        }
        if self.unbalance.is_some_and(|u| !(u > 0.0 && u < 1.0)) {
            refuse("data.unbalance", "must be between 0 and 1, both excluded")?;
        }
        let sized = !matches!(self.partition, PartitionKind::Shards | PartitionKind::DirichletCut);
        if self.unbalance.is_some_and(|u| u != 0.5) && !sized {
            let name =
                if self.partition == PartitionKind::Shards { "shards" } else { "dirichlet-cut" };
            let reason = format!("has no meaning for partition = \"{name}\"; remove it");
            refuse("data.unbalance", &reason)?;
        }
        let mixed =
            matches!(self.partition, PartitionKind::Dirichlet | PartitionKind::DirichletCut);
        if self.concentration.is_some() && !mixed {
            refuse("data.concentration", "belongs to partition = \"dirichlet\"; remove it")?;
        }
        if self.concentration.is_some_and(|alpha| !(alpha > 0.0 && alpha <= 1e6)) {
            refuse("data.concentration", "must be above 0 and at most 1e6")?;
        }
        if self.shards_per_client.is_some() && self.partition != PartitionKind::Shards {
            refuse("data.shards_per_client", "belongs to partition = \"shards\"; remove it")?;
        }
        if self.shards_per_client == Some(0) {
            refuse("data.shards_per_client", "must be at least 1")?;
        }
        if self.rotations.is_some_and(|rotations| !(1..=4).contains(&rotations)) {
            refuse("data.rotations", "must be 1 to 4")?;
        }
        if self.rotations.is_some() && synthetic {
            refuse("data.rotations", "has no meaning for set = \"synthetic\"; remove it")?;
        }
        let (samples, features, classes, noise) = self.synthetic();
        if !(2..=256).contains(&classes) {
            refuse("data.classes", "must be 2 to 256")?;
        }
        if samples < classes || samples > u32::MAX as usize {
            refuse("data.samples", "must be at least one a class, and below 2^32")?;
        }
        if features == 0 || samples.checked_mul(features).is_none_or(|bytes| bytes > MEMORY) {
            refuse("data.features", "must be at least 1, and samples × features at most 2^36")?;
        }
        if !(0.0..=1e3).contains(&noise) {
            refuse("data.noise", "must be 0 to 1000")?;
        }
        Ok(())
    }

    /// Shape and classes of the samples of a synthetic set.
    pub fn synthetic_shape(&self) -> (Shape, usize) {
        let (_, features, classes, _) = self.synthetic();
        (Shape { height: 1, width: features, channels: 1 }, classes)
    }

    /// Samples, features, classes and noise of a synthetic set.
    pub(crate) fn synthetic(&self) -> (usize, usize, usize, f64) {
        (
            self.samples.unwrap_or(10_000),
            self.features.unwrap_or(20),
            self.classes.unwrap_or(10),
            self.noise.unwrap_or(1.0),
        )
    }
}

/// The most bytes that a synthetic set may have.
const MEMORY: usize = 1 << 36;

fn refuse(key: &'static str, reason: &str) -> Result<(), Error> {
    Err(Error::setting(key, reason))
}
