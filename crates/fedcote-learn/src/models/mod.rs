//! Models over one flat slice of parameters.
//!
//! A model is one file that implements [`Model`]; [`build`] is the only place that knows them all.

mod cnn;
mod loss;
mod mlp;
mod resnet20;

use std::any::Any;

use fedcote::random::{Key, Stream};
use rand::RngExt;
use serde::{Deserialize, Serialize};

pub use cnn::Cnn;
pub use loss::{cross_entropy, sample_losses};
pub use mlp::Mlp;
pub use resnet20::ResNet20;

use crate::{Error, Path, data::Shape};

/// A named part of a model's flat parameter slice, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name, such as `layer1.weight`.
    pub name: String,
    /// The shape: dense weights are `[in, out]`, convolutions `[height, width, in, out]`.
    pub shape: Vec<usize>,
    /// Where it starts in the flat slice.
    pub offset: usize,
}

impl Parameter {
    /// The number of values.
    #[allow(clippy::len_without_is_empty)] // a parameter is never empty
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Parameters of these names and shapes, one after the other.
    pub fn table(shapes: impl IntoIterator<Item = (String, Vec<usize>)>) -> Vec<Self> {
        let mut offset = 0;
        let mut table = Vec::new();
        for (name, shape) in shapes {
            let parameter = Self { name, shape, offset };
            offset += parameter.len();
            table.push(parameter);
        }
        table
    }
}

/// Inputs of a mini-batch, samples × height × width × channels, and their labels.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The inputs, one sample after the other, channels last.
    pub inputs: &'a [f32],
    /// One label per sample.
    pub labels: &'a [u8],
    /// A value that many inputs have (black, after standardisation). A model may skip the work that such
    /// inputs share; the result differs by rounding only.
    pub background: f32,
}

impl<'a> Batch<'a> {
    /// A batch whose background is zero.
    pub fn new(inputs: &'a [f32], labels: &'a [u8]) -> Self {
        Self { inputs, labels, background: 0.0 }
    }
}

/// Buffers that a model reuses from step to step, so that a step allocates nothing.
///
/// What is inside is the model's own type; a workspace serves the model that made it.
pub struct Workspace(Box<dyn Any + Send>);

impl Workspace {
    /// A workspace that holds these buffers.
    pub fn new<B: Any + Send>(buffers: B) -> Self {
        Self(Box::new(buffers))
    }

    /// The buffers.
    ///
    /// # Panics
    ///
    /// When another kind of model made this workspace.
    pub fn buffers<B: Any>(&mut self) -> &mut B {
        self.0.downcast_mut().expect("a workspace serves the model that made it")
    }
}

/// A classifier trained by cross-entropy.
///
/// Slices have the length the model asks for (`weights` and `gradient`: [`Model::len`]), and a batch has at
/// most as many samples as its workspace was made for; anything else panics.
#[allow(clippy::len_without_is_empty)] // a model is never empty
pub trait Model: Send + Sync {
    /// Names, shapes and offsets; contiguous, in order, covering the whole slice.
    fn parameters(&self) -> &[Parameter];

    /// The number of parameters.
    fn len(&self) -> usize {
        self.parameters().last().map_or(0, |last| last.offset + last.len())
    }

    /// The number of inputs a sample has.
    fn inputs(&self) -> usize;

    /// The number of classes.
    fn classes(&self) -> usize;

    /// The instruction set that it computes with.
    fn path(&self) -> Path {
        Path::best()
    }

    /// Initial weights from the stream of that key.
    fn initialise(&self, key: Key) -> Vec<f32>;

    /// Buffers for batches of up to this many samples.
    fn workspace(&self, batch: usize) -> Workspace;

    /// The batch's mean cross-entropy; its gradient overwrites `gradient`.
    fn loss_and_gradient(
        &self,
        weights: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        workspace: &mut Workspace,
    ) -> f32;

    /// Logits, samples × classes. `batch.labels` is not looked at, except for the number of samples.
    fn logits<'w>(&self, weights: &[f32], batch: &Batch, workspace: &'w mut Workspace)
    -> &'w [f32];
}

/// Which model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Softmax regression: one dense layer.
    Softmax,
    /// Dense layers with ReLU between them.
    Mlp,
    /// ResNet-20 with group normalisation.
    Resnet20,
    /// Blocks of 3×3 convolution, ReLU and 2×2 max-pooling, then dense layers with ReLU between them.
    Cnn,
}

/// The `[model]` table of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSpec {
    /// Which model; default `mlp`.
    pub kind: ModelKind,
    /// Sizes of the hidden dense layers of an `mlp` or `cnn`; default `[30]`, for a `cnn` `[256, 64]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<usize>>,
    /// Channels of each block of a `cnn`, multiples of 16; a block halves height and width; default `[32, 32]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<usize>>,
}

impl Default for ModelSpec {
    fn default() -> Self {
        Self { kind: ModelKind::Mlp, hidden: None, channels: None }
    }
}

/// A model of 4 GiB: more is a slip of the pen.
const MOST_PARAMETERS: usize = 1 << 30;

/// The model that a specification describes, for samples of this shape, with the best instruction set of this CPU.
pub fn build(spec: &ModelSpec, shape: Shape, classes: usize) -> Result<Box<dyn Model>, Error> {
    build_for(spec, shape, classes, Path::best())
}

/// The same, with a given instruction set.
pub fn build_for(
    spec: &ModelSpec,
    shape: Shape,
    classes: usize,
    path: Path,
) -> Result<Box<dyn Model>, Error> {
    if spec.hidden.is_some() && !matches!(spec.kind, ModelKind::Mlp | ModelKind::Cnn) {
        let reason = "belongs to kind = \"mlp\" or \"cnn\"; remove it";
        return Err(Error::setting("model.hidden", reason));
    }
    if spec.channels.is_some() && spec.kind != ModelKind::Cnn {
        return Err(Error::setting("model.channels", "belongs to kind = \"cnn\"; remove it"));
    }
    if !(2..=256).contains(&classes) {
        return Err(Error::setting("model", format!("{classes} classes; 2 to 256 will do")));
    }
    let hidden = match spec.kind {
        ModelKind::Softmax => &[][..],
        ModelKind::Mlp => spec.hidden.as_deref().unwrap_or(&[30]),
        ModelKind::Resnet20 => {
            return Ok(Box::new(ResNet20::with_path(shape, classes, path)));
        }
        ModelKind::Cnn => {
            let channels = spec.channels.as_deref().unwrap_or(&[32, 32]);
            let hidden = spec.hidden.as_deref().unwrap_or(&[256, 64]);
            return Ok(Box::new(Cnn::new(shape, channels, hidden, classes, path)?));
        }
    };
    if hidden.contains(&0) {
        return Err(Error::setting("model.hidden", "a layer of size 0; every size is at least 1"));
    }
    let sizes = [&[shape.len()], hidden, &[classes]].concat();
    let parameters = sizes.windows(2).try_fold(0_usize, |sum, size| {
        sum.checked_add(size[1].checked_mul(size[0].checked_add(1)?)?)
    });
    if parameters.is_none_or(|parameters| parameters > MOST_PARAMETERS) {
        let reason = format!("layers with more than {MOST_PARAMETERS} weights; make them smaller");
        return Err(Error::setting("model.hidden", reason));
    }
    Ok(Box::new(Mlp::with_path(&sizes, path)))
}

/// Values drawn uniformly from ±1/√fan_in, as weights and biases start here.
pub fn uniform(stream: &mut Stream, fan_in: usize) -> impl Iterator<Item = f32> {
    let limit = 1.0 / (fan_in as f32).sqrt();
    std::iter::repeat_with(move || limit * (2.0 * stream.random::<f32>() - 1.0))
}
