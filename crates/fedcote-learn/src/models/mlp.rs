//! Dense layers with ReLU between them, and softmax regression as the case of no hidden layer.
//!
//! x₀ = input, x_{l+1} = max(0, x_l W_l + b_l), logits = x_{L−1} W_{L−1} + b_{L−1}; the loss is
//! cross-entropy. `layerN.weight` is `[in, out]`, `layerN.bias` is `[out]`.

use fedcote::random::Key;

use super::{Batch, Model, Parameter, Workspace, loss::cross_entropy, uniform};
use crate::kernels::dense::{Matrix, product};

/// A multi-layer perceptron.
pub struct Mlp {
    sizes: Vec<usize>,
    parameters: Vec<Parameter>,
}

/// What a pass leaves behind: the outputs of each layer, and the gradient at two neighbouring ones.
struct Buffers {
    batch: usize,
    outputs: Vec<Vec<f32>>,
    delta: Vec<f32>,
    below: Vec<f32>,
}

impl Mlp {
    /// A perceptron with layers of these sizes: inputs, hidden layers, classes.
    ///
    /// # Panics
    ///
    /// With fewer than two sizes.
    pub fn new(sizes: &[usize]) -> Self {
        assert!(sizes.len() >= 2, "a perceptron has inputs and outputs");
        let mut shapes = Vec::new();
        for (layer, size) in sizes.windows(2).enumerate() {
            shapes.push((format!("layer{}.weight", layer + 1), vec![size[0], size[1]]));
            shapes.push((format!("layer{}.bias", layer + 1), vec![size[1]]));
        }
        Self { sizes: sizes.to_vec(), parameters: Parameter::table(shapes) }
    }

    /// Weight and bias of a layer.
    fn layer<'w>(&self, weights: &'w [f32], layer: usize) -> (&'w [f32], &'w [f32]) {
        let at = self.parameters[2 * layer].offset;
        let (inputs, outputs) = (self.sizes[layer], self.sizes[layer + 1]);
        weights[at..at + (inputs + 1) * outputs].split_at(inputs * outputs)
    }

    fn forward(&self, weights: &[f32], batch: &Batch, outputs: &mut [Vec<f32>]) {
        let samples = batch.labels.len();
        assert_eq!(weights.len(), self.len());
        assert_eq!(batch.inputs.len(), samples * self.sizes[0]);
        for layer in 0..outputs.len() {
            let (weight, bias) = self.layer(weights, layer);
            let (before, after) = outputs.split_at_mut(layer);
            let input =
                before.last().map_or(batch.inputs, |input| &input[..samples * self.sizes[layer]]);
            let output = &mut after[0][..samples * bias.len()];
            for row in output.chunks_exact_mut(bias.len()) {
                row.copy_from_slice(bias);
            }
            product(
                output,
                true,
                Matrix::new(input, samples, self.sizes[layer]),
                Matrix::new(weight, self.sizes[layer], bias.len()),
            );
            if layer + 2 < self.sizes.len() {
                output.iter_mut().for_each(|value| *value = value.max(0.0));
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

    fn initialise(&self, key: Key) -> Vec<f32> {
        let mut stream = key.stream();
        let mut weights = Vec::with_capacity(self.len());
        for size in self.sizes.windows(2) {
            weights.extend(uniform(&mut stream, size[0]).take((size[0] + 1) * size[1]));
        }
        weights
    }

    fn workspace(&self, batch: usize) -> Workspace {
        let widest = self.sizes[1..].iter().max().copied().unwrap_or(0);
        Workspace::new(Buffers {
            batch,
            outputs: self.sizes[1..].iter().map(|size| vec![0.0; batch * size]).collect(),
            delta: vec![0.0; batch * widest],
            below: vec![0.0; batch * widest],
        })
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        workspace: &mut Workspace,
    ) -> f32 {
        let Buffers { batch: room, outputs, delta, below } = workspace.buffers();
        let samples = batch.labels.len();
        assert!(samples <= *room, "the workspace was made for {room} samples");
        assert_eq!(gradient.len(), self.len());
        self.forward(weights, batch, outputs);
        let last = outputs.len() - 1;
        let logits = &mut outputs[last][..samples * self.classes()];
        let loss = cross_entropy(logits, batch.labels, self.classes());
        delta[..logits.len()].copy_from_slice(logits);
        for layer in (0..outputs.len()).rev() {
            let (inputs, size) = (self.sizes[layer], self.sizes[layer + 1]);
            let at = self.parameters[2 * layer].offset;
            let (of_weight, of_bias) =
                gradient[at..at + (inputs + 1) * size].split_at_mut(inputs * size);
            let output = Matrix::new(&delta[..samples * size], samples, size);
            of_bias.fill(0.0);
            for row in delta[..samples * size].chunks_exact(size) {
                of_bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            if layer == 0 {
                let input = Matrix::new(batch.inputs, samples, inputs);
                product(of_weight, false, input.transposed(), output);
            } else {
                let input = &outputs[layer - 1][..samples * inputs];
                product(of_weight, false, Matrix::new(input, samples, inputs).transposed(), output);
                let weight = Matrix::new(self.layer(weights, layer).0, inputs, size);
                let below_here = &mut below[..samples * inputs];
                product(below_here, false, output, weight.transposed());
                for (slope, &value) in below_here.iter_mut().zip(input) {
                    *slope = if value > 0.0 { *slope } else { 0.0 };
                }
                std::mem::swap(delta, below);
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
        let Buffers { batch: room, outputs, .. } = workspace.buffers();
        let samples = batch.labels.len();
        assert!(samples <= *room, "the workspace was made for {room} samples");
        self.forward(weights, batch, outputs);
        &outputs[outputs.len() - 1][..samples * self.classes()]
    }
}
