//! A plain convolutional network.
//!
//! Blocks of a 3×3 convolution with padding 1, bias, ReLU and the maximum of 2×2 pixels, then dense layers with ReLU
//! between them. With `channels = [32, 32]` and `hidden = [256, 64]` on 32×32×3 images it is the network of 551,786
//! parameters that experiments on absent clients use (S. Wang and M. Ji, ICLR 2024; M. Xiang et al., NeurIPS 2024),
//! with their initial weights: normal with deviation √(2/fan_in), biases zero; the last layer uniform in ±1/√fan_in.
//! Pixels are flattened channels last.
//!
//! Images do not mix in a convolution, so a few are taken at a time; of the whole batch only what the way back needs
//! is kept. The dense layers take the batch at once.

mod head;

use fedcote::random::Key;
use rand::RngExt;
use rand_distr::StandardNormal;

use head::Head;

use super::{Batch, Model, Parameter, Workspace, loss::cross_entropy, uniform};
use crate::{
    Error,
    data::Shape,
    kernels::{
        Path,
        buffer::Buffer,
        conv3x3::{self, Convolution},
        dense,
        plane::Plane,
        pool::{self, Layout, pooled},
        winograd,
    },
};

/// Images taken at a time.
const TILE: usize = 8;

/// The convolutional network.
pub struct Cnn {
    path: Path,
    blocks: Vec<Block>,
    head: Head,
    parameters: Vec<Parameter>,
}

/// A convolution with what follows it.
struct Block {
    convolution: Convolution,
    /// Where its weights start; the bias follows.
    weight: usize,
}

impl Block {
    /// Whether Winograd's method applies; otherwise the convolution is computed directly.
    fn fast(&self) -> bool {
        self.convolution.input.channels.is_multiple_of(16)
    }

    /// Its output.
    fn pooled(&self) -> Plane {
        pooled(self.convolution.output())
    }

    /// Where weights and bias are.
    fn place(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let bias = self.weight + self.convolution.weights();
        (self.weight..bias, bias..bias + self.convolution.outputs)
    }
}

/// What the model reuses from step to step.
struct Buffers {
    room: usize,
    /// For each block, of the whole batch: its input, padded, and which pixels were the largest.
    inputs: Vec<Buffer>,
    choices: Vec<Vec<u32>>,
    /// The input of the dense layers; later the slopes there.
    features: Buffer,
    head: head::Buffers,
    logits: Vec<f32>,
    /// For each block: weights transformed for the forward pass, for the input gradient, and the sum from which the
    /// weight gradient comes.
    forward: Vec<Buffer>,
    backward: Vec<Buffer>,
    sums: Vec<Buffer>,
    turned: Buffer,
    /// Of a few images: what a convolution made; for each block the slope there, padded; the slope at its input.
    convolved: Buffer,
    behind: Vec<Buffer>,
    slope: Buffer,
    scratch: Buffer,
}

impl Cnn {
    /// The network with convolutions to these numbers of channels and dense layers of these sizes before the last.
    ///
    /// # Errors
    ///
    /// Without channels, with channels that are not multiples of 16, with more blocks than the images can be halved,
    /// or with a dense layer of size 0.
    pub fn new(
        shape: Shape,
        channels: &[usize],
        hidden: &[usize],
        classes: usize,
        path: Path,
    ) -> Result<Self, Error> {
        let wrong = |reason: String| Err(Error::setting("model.channels", reason));
        if channels.is_empty() {
            return wrong("is empty; name at least one convolution, as in [32, 32]".into());
        }
        if let Some(odd) = channels.iter().find(|&&n| n == 0 || !n.is_multiple_of(16)) {
            return wrong(format!("{odd} channels; they come in multiples of 16"));
        }
        if hidden.contains(&0) {
            let reason = "a layer of size 0; every size is at least 1";
            return Err(Error::setting("model.hidden", reason));
        }
        let Shape { height, width, .. } = shape;
        if height.min(width).checked_shr(channels.len() as u32).unwrap_or(0) == 0 {
            let most = height.min(width).max(1).ilog2();
            return wrong(format!(
                "{} blocks; samples of {height}×{width} can be halved {most} times",
                channels.len()
            ));
        }
        let mut plane = Plane { height, width, channels: shape.channels };
        let (mut blocks, mut shapes, mut weight) = (Vec::new(), Vec::new(), 0_usize);
        for (at, &outputs) in channels.iter().enumerate() {
            shapes.push((format!("conv{}.weight", at + 1), vec![3, 3, plane.channels, outputs]));
            shapes.push((format!("conv{}.bias", at + 1), vec![outputs]));
            blocks.push(Block {
                convolution: Convolution { input: plane, outputs, stride: 1 },
                weight,
            });
            weight = weight
                .saturating_add(plane.channels.saturating_mul(outputs).saturating_mul(9))
                .saturating_add(outputs);
            plane = Plane { height: plane.height / 2, width: plane.width / 2, channels: outputs };
        }
        let sizes = [&[plane.height * plane.width * plane.channels], hidden, &[classes]].concat();
        let total = sizes.windows(2).fold(weight, |sum, size| {
            sum.saturating_add(size[1].saturating_mul(size[0].saturating_add(1)))
        });
        if total > super::MOST_PARAMETERS {
            return wrong(format!(
                "with model.hidden makes more than {} weights; make them smaller",
                super::MOST_PARAMETERS
            ));
        }
        for (at, size) in sizes.windows(2).enumerate() {
            shapes.push((format!("dense{}.weight", at + 1), size.to_vec()));
            shapes.push((format!("dense{}.bias", at + 1), vec![size[1]]));
        }
        let head = Head { sizes, offset: weight };
        Ok(Self { path, blocks, head, parameters: Parameter::table(shapes) })
    }

    /// Transforms the weights, for the gradient too if asked.
    fn prepare(&self, weights: &[f32], buffers: &mut Buffers, gradient: bool) {
        for (l, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.fast()) {
            let weight = &weights[block.place().0];
            winograd::transform_weights(self.path, weight, false, &mut buffers.forward[l]);
            if gradient {
                let turned = &mut buffers.turned[..weight.len()];
                conv3x3::transpose(block.convolution, weight, turned);
                winograd::transform_weights(self.path, turned, true, &mut buffers.backward[l]);
                buffers.sums[l].fill(0.0);
            }
        }
    }

    /// The logits of a batch, into `buffers.logits`.
    fn forward(&self, weights: &[f32], batch: &Batch, buffers: &mut Buffers) {
        let samples = batch.labels.len();
        for (tile, inputs) in batch.inputs.chunks(TILE * self.inputs()).enumerate() {
            let (first, images) = (tile * TILE, inputs.len() / self.inputs());
            let plane = self.blocks[0].convolution.input;
            plane.pad(inputs, &mut buffers.inputs[0][first * plane.padded()..]);
            for (l, block) in self.blocks.iter().enumerate() {
                let (c, small) = (block.convolution, block.pooled());
                let (weight, bias) = block.place();
                let (before, after) = buffers.inputs.split_at_mut(l + 1);
                let x = &before[l][first * c.input.padded()..][..images * c.input.padded()];
                let z = &mut buffers.convolved[..images * c.output().dense()];
                if block.fast() {
                    let (transformed, scratch) = (&buffers.forward[l], &mut buffers.scratch);
                    winograd::forward(self.path, c, x, transformed, z, false, scratch);
                } else {
                    conv3x3::forward(self.path, c, x, &weights[weight], z);
                }
                let (layout, y) = match after.first_mut() {
                    Some(next) => (Layout::padded(small), &mut **next),
                    None => (self.features(), &mut *buffers.features),
                };
                let choices = &mut buffers.choices[l][first * small.dense()..];
                let y = &mut y[first * layout.image..];
                pool::forward(self.path, c.output(), z, &weights[bias], layout, y, choices);
            }
        }
        let logits = &mut buffers.logits[..samples * self.classes()];
        let (features, head) = (&buffers.features, &mut buffers.head);
        self.head.forward(self.path, weights, features, samples, head, logits);
    }

    /// How the output of the last block lies in `features`.
    fn features(&self) -> Layout {
        let plane = self.blocks[self.blocks.len() - 1].pooled();
        Layout::dense(plane, dense::stride(plane.dense()))
    }

    /// Adds the gradients of the blocks; `buffers.features` holds the slopes there.
    fn backward(&self, samples: usize, gradient: &mut [f32], buffers: &mut Buffers) {
        for first in (0..samples).step_by(TILE) {
            let images = TILE.min(samples - first);
            for (l, block) in self.blocks.iter().enumerate().rev() {
                let (c, small) = (block.convolution, block.pooled());
                let (weight, bias) = block.place();
                let (layout, slopes) = if l + 1 == self.blocks.len() {
                    (self.features(), &buffers.features[first * self.features().image..])
                } else {
                    (Layout::dense(small, small.dense()), &buffers.slope[..])
                };
                let choices = &buffers.choices[l][first * small.dense()..];
                let dz = &mut buffers.behind[l][..images * c.output().padded()];
                let of_bias = &mut gradient[bias];
                pool::backward(self.path, c.output(), layout, slopes, choices, dz, of_bias);
                let x = &buffers.inputs[l][first * c.input.padded()..][..images * c.input.padded()];
                let scratch = &mut buffers.scratch;
                if block.fast() {
                    winograd::weight_gradient(self.path, c, x, dz, &mut buffers.sums[l], scratch);
                } else {
                    conv3x3::weight_gradient(self.path, c, x, dz, &mut gradient[weight]);
                }
                if l > 0 {
                    // Channels of an inner block are multiples of 16, so it is fast.
                    let turned =
                        Convolution { input: c.output(), outputs: c.input.channels, stride: 1 };
                    let dx = &mut buffers.slope[..images * c.input.dense()];
                    let transformed = &buffers.backward[l];
                    winograd::forward(self.path, turned, dz, transformed, dx, false, scratch);
                }
            }
        }
        for (block, sums) in self.blocks.iter().zip(&buffers.sums) {
            if block.fast() {
                winograd::finish_gradient(self.path, sums, &mut gradient[block.place().0]);
            }
        }
    }

    fn check(&self, weights: &[f32], batch: &Batch, buffers: &Buffers) {
        let samples = batch.labels.len();
        assert!(samples <= buffers.room, "the workspace was made for {} samples", buffers.room);
        assert_eq!(weights.len(), self.len());
        assert_eq!(batch.inputs.len(), samples * self.inputs());
    }
}

impl Model for Cnn {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn inputs(&self) -> usize {
        self.blocks[0].convolution.input.dense()
    }

    fn classes(&self) -> usize {
        self.head.sizes[self.head.sizes.len() - 1]
    }

    fn path(&self) -> Path {
        self.path
    }

    fn initialise(&self, key: Key) -> Vec<f32> {
        let mut stream = key.stream();
        let mut weights = Vec::with_capacity(self.len());
        let (others, last) = self.parameters.split_at(self.parameters.len() - 2);
        for pair in others.chunks_exact(2) {
            let fan_in: usize = pair[0].shape[..pair[0].shape.len() - 1].iter().product();
            let deviation = (2.0 / fan_in as f32).sqrt();
            let values =
                (0..pair[0].len()).map(|_| deviation * stream.sample::<f32, _>(StandardNormal));
            weights.extend(values);
            weights.extend(std::iter::repeat_n(0.0, pair[1].len()));
        }
        let count = last[0].len() + last[1].len();
        weights.extend(uniform(&mut stream, last[0].shape[0]).take(count));
        weights
    }

    fn workspace(&self, batch: usize) -> Workspace {
        let images = batch.min(TILE);
        let of_blocks = |size: &dyn Fn(&Block) -> usize| -> Vec<Buffer> {
            self.blocks.iter().map(|block| Buffer::zeros(size(block))).collect()
        };
        let most = |size: &dyn Fn(&Block) -> usize| {
            Buffer::zeros(self.blocks.iter().map(size).max().unwrap_or(0))
        };
        let if_fast = |size: fn(Convolution) -> usize| {
            move |block: &Block| if block.fast() { size(block.convolution) } else { 0 }
        };
        Workspace::new(Buffers {
            room: batch,
            inputs: of_blocks(&|block| batch * block.convolution.input.padded()),
            choices: self.blocks.iter().map(|b| vec![0; batch * b.pooled().dense()]).collect(),
            features: Buffer::zeros(batch * self.features().image),
            head: self.head.buffers(batch),
            logits: vec![0.0; batch * self.classes()],
            forward: of_blocks(&if_fast(winograd::transformed)),
            backward: of_blocks(&if_fast(winograd::transformed)),
            sums: of_blocks(&if_fast(winograd::transformed)),
            turned: most(&if_fast(Convolution::weights)),
            convolved: most(&|block| images * block.convolution.output().dense()),
            behind: of_blocks(&|block| images * block.convolution.output().padded()),
            slope: most(&|block| images * block.pooled().dense()),
            scratch: most(&if_fast(winograd::scratch)),
        })
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        workspace: &mut Workspace,
    ) -> f32 {
        let buffers: &mut Buffers = workspace.buffers();
        assert_eq!(gradient.len(), self.len());
        self.check(weights, batch, buffers);
        self.prepare(weights, buffers, true);
        self.forward(weights, batch, buffers);
        let samples = batch.labels.len();
        let logits = &mut buffers.logits[..samples * self.classes()];
        let loss = cross_entropy(logits, batch.labels, self.classes());
        let (features, head) = (&mut buffers.features, &mut buffers.head);
        self.head.backward(self.path, weights, logits, features, gradient, head);
        gradient[..self.head.offset].fill(0.0);
        self.backward(samples, gradient, buffers);
        loss
    }

    fn logits<'w>(
        &self,
        weights: &[f32],
        batch: &Batch,
        workspace: &'w mut Workspace,
    ) -> &'w [f32] {
        let buffers: &mut Buffers = workspace.buffers();
        self.check(weights, batch, buffers);
        self.prepare(weights, buffers, false);
        self.forward(weights, batch, buffers);
        &buffers.logits[..batch.labels.len() * self.classes()]
    }
}
