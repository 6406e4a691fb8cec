//! Dense layers with ReLU between them, and softmax regression as the case of no hidden layer.
//!
//! x₀ = input, x_{l+1} = max(0, x_l W_l + b_l), logits = x_{L−1} W_{L−1} + b_{L−1}; the loss is
//! cross-entropy. `layerN.weight` is `[in, out]`, `layerN.bias` is `[out]`.
//!
//! Four of five pixels of a digit are black and half of the hidden units are off, so a layer works on lists
//! of the inputs that differ from the background β (zero after ReLU): x W + b = (x − β) W + (b + β Σ_i W_i),
//! and the gradient of W is (x − β)ᵀ δ + β 1ᵀ δ.

use fedcote::random::Key;

use super::{Batch, Model, Parameter, Workspace, loss::cross_entropy, uniform};
use crate::kernels::{
    Path,
    buffer::Buffer,
    sparse::{Lists, Panels, combine, scatter},
};

/// A multi-layer perceptron.
pub struct Mlp {
    sizes: Vec<usize>,
    parameters: Vec<Parameter>,
    path: Path,
}

/// What a pass leaves behind.
struct Buffers {
    room: usize,
    layers: Vec<LayerBuffers>,
    logits: Vec<f32>,
}

/// Buffers of one layer. Rows are padded as [`Panels`] are.
struct LayerBuffers {
    inputs: Lists,
    weight: Panels,
    gradient: Panels,
    /// The bias, with what the background adds; later the sum of δ.
    start: Buffer,
    /// Before ReLU; later δ.
    outputs: Buffer,
    /// The way back, for layers that have one below: lists of δ, the transposed weight, δ Wᵀ.
    slopes: Lists,
    transposed: Panels,
    back: Buffer,
}

impl Mlp {
    /// A perceptron with layers of these sizes: inputs, hidden layers, classes.
    ///
    /// # Panics
    ///
    /// With fewer than two sizes.
    pub fn new(sizes: &[usize]) -> Self {
        Self::with_path(sizes, Path::best())
    }

    /// The same, with kernels for a given instruction set.
    ///
    /// # Panics
    ///
    /// With fewer than two sizes.
    pub fn with_path(sizes: &[usize], path: Path) -> Self {
        assert!(sizes.len() >= 2, "a perceptron has inputs and outputs");
        let mut shapes = Vec::new();
        for (layer, size) in sizes.windows(2).enumerate() {
            shapes.push((format!("layer{}.weight", layer + 1), vec![size[0], size[1]]));
            shapes.push((format!("layer{}.bias", layer + 1), vec![size[1]]));
        }
        Self { sizes: sizes.to_vec(), parameters: Parameter::table(shapes), path }
    }

    /// Where a layer's weight and bias lie, and the length of the weight.
    fn place(&self, layer: usize) -> (std::ops::Range<usize>, usize) {
        let at = self.parameters[2 * layer].offset;
        let weight = self.sizes[layer] * self.sizes[layer + 1];
        (at..at + weight + self.sizes[layer + 1], weight)
    }

    fn forward(&self, weights: &[f32], batch: &Batch, buffers: &mut Buffers) {
        let samples = batch.labels.len();
        assert!(samples <= buffers.room, "the workspace was made for {} samples", buffers.room);
        assert_eq!(weights.len(), self.len());
        assert_eq!(batch.inputs.len(), samples * self.sizes[0]);
        for layer in 0..buffers.layers.len() {
            let (before, after) = buffers.layers.split_at_mut(layer);
            let here = &mut after[0];
            let background = match before.last() {
                None => {
                    here.inputs.fill(self.path, batch.inputs, batch.background);
                    batch.background
                }
                Some(below) => {
                    let stride = Panels::padded(self.sizes[layer]);
                    here.inputs.fill_positive(
                        self.path,
                        &below.outputs[..samples * stride],
                        stride,
                    );
                    0.0
                }
            };
            let (place, split) = self.place(layer);
            let (weight, bias) = weights[place].split_at(split);
            here.weight.pack(weight);
            here.start.fill(0.0);
            here.start[..bias.len()].copy_from_slice(bias);
            if background != 0.0 {
                here.weight.add_row_sum(background, &mut here.start);
            }
            let outputs = &mut here.outputs[..samples * Panels::padded(bias.len())];
            combine(self.path, &here.inputs, &here.weight, &here.start, outputs);
        }
        let classes = self.classes();
        let outputs = &buffers.layers[buffers.layers.len() - 1].outputs;
        let rows = outputs.chunks_exact(Panels::padded(classes));
        for (logits, row) in buffers.logits[..samples * classes].chunks_exact_mut(classes).zip(rows)
        {
            logits.copy_from_slice(&row[..classes]);
        }
    }

    /// Turns δ in the outputs of each layer, from the last to the first, into gradients.
    fn backward(
        &self,
        weights: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let samples = batch.labels.len();
        for layer in (0..buffers.layers.len()).rev() {
            let (size, stride) = (self.sizes[layer + 1], Panels::padded(self.sizes[layer + 1]));
            let (below, here) = buffers.layers.split_at_mut(layer);
            let here = &mut here[0];
            let slopes = &here.outputs[..samples * stride];
            let (place, split) = self.place(layer);
            let (of_weight, of_bias) = gradient[place.clone()].split_at_mut(split);
            here.start.fill(0.0);
            for row in slopes.chunks_exact(stride) {
                here.start.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
            }
            of_bias.copy_from_slice(&here.start[..size]);
            let background = if layer == 0 { batch.background } else { 0.0 };
            here.start.iter_mut().for_each(|sum| *sum *= background);
            scatter(self.path, &here.inputs, slopes, &mut here.gradient);
            here.gradient.unpack_plus(&here.start, of_weight);
            if let Some(below) = below.last_mut() {
                let stride_below = Panels::padded(self.sizes[layer]);
                here.transposed.pack_transposed(&weights[place][..split]);
                here.slopes.fill_strided(self.path, slopes, stride);
                below.start.fill(0.0);
                let back = &mut here.back[..samples * stride_below];
                combine(self.path, &here.slopes, &here.transposed, &below.start, back);
                // δ passes where ReLU was open, and takes the place of what decides that.
                for (value, &slope) in below.outputs.iter_mut().zip(&*back) {
                    *value = if *value > 0.0 { slope } else { 0.0 };
                }
            }
        }
    }
}

impl Model for Mlp {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn inputs(&self) -> usize {
        self.sizes[0]
    }

    fn classes(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    fn path(&self) -> Path {
        self.path
    }

    fn initialise(&self, key: Key) -> Vec<f32> {
        let mut stream = key.stream();
        let mut weights = Vec::with_capacity(self.len());
        for size in self.sizes.windows(2) {
            weights.extend(uniform(&mut stream, size[0]).take((size[0] + 1) * size[1]));
        }
        weights
    }

    fn workspace(&self, batch: usize) -> Workspace {
        let layer = |(layer, size): (usize, &[usize])| {
            let (inputs, outputs) = (size[0], size[1]);
            // Nothing goes back beyond the first layer.
            let behind = if layer == 0 { 0 } else { inputs };
            LayerBuffers {
                inputs: Lists::new(batch, inputs),
                slopes: Lists::new(if layer == 0 { 0 } else { batch }, outputs),
                weight: Panels::new(inputs, outputs),
                transposed: Panels::new(outputs, behind),
                gradient: Panels::new(inputs, outputs),
                start: Buffer::zeros(Panels::padded(outputs)),
                outputs: Buffer::zeros(batch * Panels::padded(outputs)),
                back: Buffer::zeros(batch * Panels::padded(behind)),
            }
        };
        Workspace::new(Buffers {
            room: batch,
            layers: self.sizes.windows(2).enumerate().map(layer).collect(),
            logits: vec![0.0; batch * self.classes()],
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
        self.forward(weights, batch, buffers);
        let (samples, classes) = (batch.labels.len(), self.classes());
        let logits = &mut buffers.logits[..samples * classes];
        let loss = cross_entropy(logits, batch.labels, classes);
        let last = buffers.layers.len() - 1;
        let rows = buffers.layers[last].outputs.chunks_exact_mut(Panels::padded(classes));
        for (row, slopes) in rows.zip(logits.chunks_exact(classes)) {
            row[..classes].copy_from_slice(slopes);
        }
        self.backward(weights, batch, gradient, buffers);
        loss
    }

    fn logits<'w>(
        &self,
        weights: &[f32],
        batch: &Batch,
        workspace: &'w mut Workspace,
    ) -> &'w [f32] {
        let buffers: &mut Buffers = workspace.buffers();
        self.forward(weights, batch, buffers);
        &buffers.logits[..batch.labels.len() * self.classes()]
    }
}
