//! ResNet-20 with group normalisation.
//!
//! A 3×3 convolution to 16 channels, then three stages of three residual blocks with 16, 32 and 64 channels, global
//! average pooling and a dense layer (K. He et al., *Deep Residual Learning for Image Recognition*, CVPR 2016,
//! section 4.2). A block is y = max(0, N₂(C₂ max(0, N₁(C₁ x))) + S x). The first block of the second and third stage
//! halves height and width; there the shortcut S takes every second pixel and adds channels of zeros (their option
//! A), elsewhere it is the identity. Group normalisation N (Y. Wu and K. He, ECCV 2018) stands in the place of batch
//! normalisation, so images do not mix; that it has two groups is our choice. Convolutions have no bias: 267,696 weights, 1,376 in normalisations, 650 in the dense layer make 269,722
//! parameters for 32×32×3 images and ten classes.
//!
//! Because images do not mix, a batch is taken a few images at a time, forward and backward, so that activations
//! stay in the cache.

mod pixels;

use std::mem::swap;

use fedcote::random::Key;

use pixels::{pool, scatter, spread, stage, subsample};

use super::{Batch, Model, Parameter, Workspace, loss::cross_entropy, uniform};
use crate::{
    data::Shape,
    kernels::{
        Path,
        buffer::Buffer,
        conv3x3::{self, Convolution},
        group_norm::{self, Moments, Shortcut},
        plane::Plane,
        winograd,
    },
};

/// Groups of a normalisation.
const GROUPS: usize = 2;
/// Images taken at a time.
const TILE: usize = 8;
/// Blocks in the network; each has two layers, after the first one.
const BLOCKS: usize = 9;
/// Channels of the last stage.
const FEATURES: usize = 64;

/// The residual network.
pub struct ResNet20 {
    path: Path,
    layers: Vec<Layer>,
    classes: usize,
    parameters: Vec<Parameter>,
}

/// A convolution and the normalisation behind it.
struct Layer {
    convolution: Convolution,
    /// Where its weights start; scale and shift of the normalisation follow.
    weight: usize,
}

impl Layer {
    /// Whether Winograd's method applies; otherwise the convolution is computed directly.
    fn fast(&self) -> bool {
        let c = self.convolution;
        c.stride == 1 && c.input.channels.is_multiple_of(16)
    }

    /// Its weights, scale and shift.
    fn part<'w>(&self, weights: &'w [f32]) -> (&'w [f32], &'w [f32], &'w [f32]) {
        let (size, outputs) = (self.convolution.weights(), self.convolution.outputs);
        let (weight, rest) = weights[self.weight..].split_at(size);
        (weight, &rest[..outputs], &rest[outputs..2 * outputs])
    }

    fn part_mut<'w>(
        &self,
        weights: &'w mut [f32],
    ) -> (&'w mut [f32], &'w mut [f32], &'w mut [f32]) {
        let (size, outputs) = (self.convolution.weights(), self.convolution.outputs);
        let (weight, rest) = weights[self.weight..].split_at_mut(size);
        let (scale, rest) = rest.split_at_mut(outputs);
        (weight, scale, &mut rest[..outputs])
    }
}

/// What the model reuses from step to step.
struct Buffers {
    room: usize,
    /// The input, then the output of each layer, padded.
    activations: Vec<Buffer>,
    /// What each convolution made, dense, and the moments of its groups.
    convolved: Vec<Buffer>,
    moments: Vec<Vec<Moments>>,
    /// For each layer: weights transformed for the forward pass, for the input gradient, and the sum from which the
    /// weight gradient comes.
    forward: Vec<Buffer>,
    backward: Vec<Buffer>,
    sums: Vec<Buffer>,
    turned: Buffer,
    /// The slope at the output of a block, and inside it, dense.
    slope: Buffer,
    inner: Buffer,
    /// The slope at the output of a convolution, padded, one for each stage.
    behind: Vec<Buffer>,
    scratch: Buffer,
    features: Vec<f32>,
    pooled_slope: Vec<f32>,
    logits: Vec<f32>,
}

impl ResNet20 {
    /// The network for images of this shape and that many classes.
    pub fn new(shape: Shape, classes: usize) -> Self {
        Self::with_path(shape, classes, Path::best())
    }

    /// The same, with kernels for a given instruction set.
    pub fn with_path(shape: Shape, classes: usize, path: Path) -> Self {
        let mut plane =
            Plane { height: shape.height, width: shape.width, channels: shape.channels };
        let mut layers: Vec<Layer> = Vec::new();
        let mut shapes = Vec::new();
        let mut weight = 0;
        let mut layer = |name: String, outputs: usize, stride: usize| {
            let convolution = Convolution { input: plane, outputs, stride };
            shapes.push((format!("{name}.weight"), vec![3, 3, plane.channels, outputs]));
            shapes.push((format!("{name}.norm.scale"), vec![outputs]));
            shapes.push((format!("{name}.norm.shift"), vec![outputs]));
            layers.push(Layer { convolution, weight });
            weight += convolution.weights() + 2 * outputs;
            plane = convolution.output();
        };
        layer("first".into(), 16, 1);
        for block in 0..BLOCKS {
            let (stage, of_stage) = (block / 3, block % 3);
            let outputs = 16 << stage;
            let stride = if stage > 0 && of_stage == 0 { 2 } else { 1 };
            let name = format!("stage{}.block{}", stage + 1, of_stage + 1);
            layer(format!("{name}.first"), outputs, stride);
            layer(format!("{name}.second"), outputs, 1);
        }
        shapes.push(("dense.weight".into(), vec![FEATURES, classes]));
        shapes.push(("dense.bias".into(), vec![classes]));
        Self { path, layers, classes, parameters: Parameter::table(shapes) }
    }

    /// Weights and biases of the last layer.
    fn dense(&self) -> std::ops::Range<usize> {
        self.len() - (FEATURES + 1) * self.classes..self.len()
    }

    /// Transforms the weights, for the gradient too if asked.
    fn prepare(&self, weights: &[f32], buffers: &mut Buffers, gradient: bool) {
        for (l, layer) in self.layers.iter().enumerate() {
            let (weight, ..) = layer.part(weights);
            if layer.fast() {
                winograd::transform_weights(self.path, weight, false, &mut buffers.forward[l]);
            }
            if gradient && l > 0 {
                if layer.fast() {
                    let turned = &mut buffers.turned[..weight.len()];
                    conv3x3::transpose(layer.convolution, weight, turned);
                    winograd::transform_weights(self.path, turned, true, &mut buffers.backward[l]);
                    buffers.sums[l].fill(0.0);
                } else {
                    conv3x3::transpose(layer.convolution, weight, &mut buffers.backward[l]);
                }
            }
        }
    }

    /// The logits of a tile of images.
    fn forward(&self, weights: &[f32], inputs: &[f32], images: usize, buffers: &mut Buffers) {
        let first = self.layers[0].convolution.input;
        first.pad(inputs, &mut buffers.activations[0]);
        for (l, layer) in self.layers.iter().enumerate() {
            let c = layer.convolution;
            let (weight, scale, shift) = layer.part(weights);
            let (before, after) = buffers.activations.split_at_mut(l + 1);
            let x = &before[l][..images * c.input.padded()];
            let z = &mut buffers.convolved[l][..images * c.output().dense()];
            let y = &mut after[0][..images * c.output().padded()];
            if layer.fast() {
                let transformed = &buffers.forward[l];
                winograd::forward(self.path, c, x, transformed, z, false, &mut buffers.scratch);
            } else {
                conv3x3::forward(self.path, c, x, weight, z);
            }
            let shortcut = if l == 0 || l % 2 == 1 {
                Shortcut::None
            } else {
                let from = self.layers[l - 1].convolution.input;
                let x = &before[l - 1][..images * from.padded()];
                if from == c.output() {
                    Shortcut::From(x)
                } else {
                    subsample(from, x, c.output(), y);
                    Shortcut::InPlace
                }
            };
            let moments = &mut buffers.moments[l][..images * GROUPS];
            group_norm::forward(self.path, c.output(), z, scale, shift, shortcut, moments, y);
        }
        let plane = self.last();
        let y = &buffers.activations[self.layers.len()];
        let features = &mut buffers.features[..images * FEATURES];
        pool(plane, y, features);
        let (weight, bias) = weights[self.dense()].split_at(FEATURES * self.classes);
        let logits = &mut buffers.logits[..images * self.classes];
        for row in logits.chunks_exact_mut(self.classes) {
            row.copy_from_slice(bias);
        }
        // Plain loops: a layer this small is no work.
        for (logits, features) in
            logits.chunks_exact_mut(self.classes).zip(features.chunks_exact(FEATURES))
        {
            for (feature, row) in features.iter().zip(weight.chunks_exact(self.classes)) {
                logits.iter_mut().zip(row).for_each(|(logit, weight)| *logit += feature * weight);
            }
        }
    }

    /// Adds the gradient of a tile; `buffers.logits` holds the slope at the logits.
    fn backward(
        &self,
        weights: &[f32],
        images: usize,
        gradient: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let slope = &buffers.logits[..images * self.classes];
        let (of_weight, of_bias) = gradient[self.dense()].split_at_mut(FEATURES * self.classes);
        let weight = &weights[self.dense()][..FEATURES * self.classes];
        let pooled = &mut buffers.pooled_slope[..images * FEATURES];
        for (i, slope) in slope.chunks_exact(self.classes).enumerate() {
            of_bias.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += slope);
            for k in 0..FEATURES {
                let (at, row) = (i * FEATURES + k, k * self.classes..(k + 1) * self.classes);
                let feature = buffers.features[at];
                let sums = of_weight[row.clone()].iter_mut().zip(slope);
                sums.for_each(|(sum, slope)| *sum += feature * slope);
                pooled[at] =
                    weight[row].iter().zip(slope).map(|(weight, slope)| weight * slope).sum();
            }
        }
        spread(self.last(), pooled, &mut buffers.slope);
        for block in (0..BLOCKS).rev() {
            let (first, second) = (1 + 2 * block, 2 + 2 * block);
            self.normalisation(weights, second, images, gradient, buffers);
            self.weight_gradient(second, images, gradient, buffers);
            // The slope of the shortcut waits in `slope` while `inner` goes through the block.
            swap(&mut buffers.slope, &mut buffers.inner);
            self.input_gradient(second, images, false, buffers);
            self.normalisation(weights, first, images, gradient, buffers);
            self.weight_gradient(first, images, gradient, buffers);
            let c = self.layers[first].convolution;
            if c.stride == 1 {
                swap(&mut buffers.slope, &mut buffers.inner);
                self.input_gradient(first, images, true, buffers);
            } else {
                self.input_gradient(first, images, false, buffers);
                let shortcut = &buffers.inner[..images * c.output().dense()];
                scatter(c.output(), shortcut, c.input, &mut buffers.slope);
            }
        }
        self.normalisation(weights, 0, images, gradient, buffers);
        self.weight_gradient(0, images, gradient, buffers);
    }

    /// From the slope at a layer's output to that at its convolution's.
    fn normalisation(
        &self,
        weights: &[f32],
        l: usize,
        images: usize,
        gradient: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let plane = self.layers[l].convolution.output();
        let (_, scale, _) = self.layers[l].part(weights);
        let (_, of_scale, of_shift) = self.layers[l].part_mut(gradient);
        group_norm::backward(
            self.path,
            plane,
            &buffers.convolved[l][..images * plane.dense()],
            scale,
            &buffers.moments[l][..images * GROUPS],
            &buffers.activations[l + 1][..images * plane.padded()],
            &mut buffers.slope[..images * plane.dense()],
            of_scale,
            of_shift,
            &mut buffers.behind[stage(plane)][..images * plane.padded()],
        );
    }

    fn weight_gradient(
        &self,
        l: usize,
        images: usize,
        gradient: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let c = self.layers[l].convolution;
        let x = &buffers.activations[l][..images * c.input.padded()];
        let dy = &buffers.behind[stage(c.output())][..images * c.output().padded()];
        if self.layers[l].fast() {
            let (sums, scratch) = (&mut buffers.sums[l], &mut buffers.scratch);
            winograd::weight_gradient(self.path, c, x, dy, sums, scratch);
        } else {
            let (of_weight, ..) = self.layers[l].part_mut(gradient);
            conv3x3::weight_gradient(self.path, c, x, dy, of_weight);
        }
    }

    /// From the slope at a convolution's output to that at its input, which goes to `slope`.
    fn input_gradient(&self, l: usize, images: usize, add: bool, buffers: &mut Buffers) {
        let c = self.layers[l].convolution;
        let dy = &buffers.behind[stage(c.output())][..images * c.output().padded()];
        let dx = &mut buffers.slope[..images * c.input.dense()];
        let weights = &buffers.backward[l];
        if self.layers[l].fast() {
            let turned = Convolution { input: c.output(), outputs: c.input.channels, stride: 1 };
            winograd::forward(self.path, turned, dy, weights, dx, add, &mut buffers.scratch);
        } else {
            assert!(!add);
            conv3x3::input_gradient(self.path, c, dy, weights, dx);
        }
    }

    /// The shape of the last activations.
    fn last(&self) -> Plane {
        self.layers[self.layers.len() - 1].convolution.output()
    }
}

impl Model for ResNet20 {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn inputs(&self) -> usize {
        self.layers[0].convolution.input.dense()
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn path(&self) -> Path {
        self.path
    }

    fn initialise(&self, key: Key) -> Vec<f32> {
        let mut stream = key.stream();
        let mut weights = Vec::with_capacity(self.len());
        for layer in &self.layers {
            let c = layer.convolution;
            weights.extend(uniform(&mut stream, 9 * c.input.channels).take(c.weights()));
            weights.extend(std::iter::repeat_n(1.0, c.outputs));
            weights.extend(std::iter::repeat_n(0.0, c.outputs));
        }
        weights.extend(uniform(&mut stream, FEATURES).take(self.dense().len()));
        weights
    }

    fn workspace(&self, batch: usize) -> Workspace {
        let images = batch.min(TILE);
        let of_layers = |size: &dyn Fn(&Layer) -> usize| -> Vec<Buffer> {
            self.layers.iter().map(|layer| Buffer::zeros(size(layer))).collect()
        };
        let transformed = |layer: &Layer| {
            if layer.fast() { winograd::transformed(layer.convolution) } else { 0 }
        };
        let planes = || self.layers.iter().map(|layer| layer.convolution.output());
        let largest = planes().map(Plane::dense).max().unwrap_or(0);
        let mut activations =
            vec![Buffer::zeros(images * self.layers[0].convolution.input.padded())];
        activations.extend(planes().map(|plane| Buffer::zeros(images * plane.padded())));
        let scratch = self.layers.iter().filter(|layer| layer.fast());
        let scratch = scratch.map(|layer| winograd::scratch(layer.convolution)).max().unwrap_or(0);
        Workspace::new(Buffers {
            room: batch,
            activations,
            convolved: of_layers(&|layer| images * layer.convolution.output().dense()),
            moments: self.layers.iter().map(|_| vec![[0.0; 2]; images * GROUPS]).collect(),
            forward: of_layers(&transformed),
            backward: of_layers(&|layer| match layer.fast() {
                true => transformed(layer),
                false => layer.convolution.weights(),
            }),
            sums: of_layers(&transformed),
            turned: Buffer::zeros(9 * FEATURES * FEATURES),
            slope: Buffer::zeros(images * largest),
            inner: Buffer::zeros(images * largest),
            behind: [6, 12, 18]
                .map(|l| Buffer::zeros(images * self.layers[l].convolution.output().padded()))
                .into(),
            scratch: Buffer::zeros(scratch),
            features: vec![0.0; images * FEATURES],
            pooled_slope: vec![0.0; images * FEATURES],
            logits: vec![0.0; batch.max(1) * self.classes],
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
        let samples = batch.labels.len();
        assert!(samples <= buffers.room, "the workspace was made for {} samples", buffers.room);
        assert!(weights.len() == self.len() && gradient.len() == self.len());
        assert_eq!(batch.inputs.len(), samples * self.inputs());
        self.prepare(weights, buffers, true);
        gradient.fill(0.0);
        let mut loss = 0.0;
        let tiles = batch.inputs.chunks(TILE * self.inputs()).zip(batch.labels.chunks(TILE));
        for (inputs, labels) in tiles {
            self.forward(weights, inputs, labels.len(), buffers);
            let logits = &mut buffers.logits[..labels.len() * self.classes];
            let share = labels.len() as f32 / samples as f32;
            loss += share * cross_entropy(logits, labels, self.classes);
            logits.iter_mut().for_each(|slope| *slope *= share);
            self.backward(weights, labels.len(), gradient, buffers);
        }
        for (layer, sums) in self.layers.iter().zip(&buffers.sums) {
            if layer.fast() {
                winograd::finish_gradient(self.path, sums, layer.part_mut(gradient).0);
            }
        }
        loss
    }

    fn logits<'w>(
        &self,
        weights: &[f32],
        batch: &Batch,
        workspace: &'w mut Workspace,
    ) -> &'w [f32] {
        let buffers: &mut Buffers = workspace.buffers();
        let samples = batch.labels.len();
        assert!(samples <= buffers.room, "the workspace was made for {} samples", buffers.room);
        assert_eq!(weights.len(), self.len());
        assert_eq!(batch.inputs.len(), samples * self.inputs());
        self.prepare(weights, buffers, false);
        // A tile's logits are made at the front; going backwards, the first tile's come last and stay there.
        let tiles = batch.inputs.chunks(TILE * self.inputs()).enumerate().rev();
        for (tile, inputs) in tiles {
            let images = inputs.len() / self.inputs();
            self.forward(weights, inputs, images, buffers);
            let size = images * self.classes;
            buffers.logits.copy_within(..size, tile * TILE * self.classes);
        }
        &buffers.logits[..samples * self.classes]
    }
}
