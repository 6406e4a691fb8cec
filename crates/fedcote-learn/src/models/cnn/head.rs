//! The dense layers behind the convolutions: x_{l+1} = max(0, x_l W_l + b_l), the last one without ReLU.

use crate::kernels::{
    Path,
    buffer::Buffer,
    dense::{outer_product, product, stride},
    sparse::Panels,
};

/// Sizes of the layers, and where the first weight is in the flat slice; each bias follows its weight.
pub(super) struct Head {
    pub sizes: Vec<usize>,
    pub offset: usize,
}

/// What a pass leaves behind.
pub(super) struct Buffers {
    layers: Vec<Layer>,
    /// Slopes at the inputs of a layer, before ReLU's gate.
    back: Buffer,
}

struct Layer {
    weight: Panels,
    transposed: Panels,
    gradient: Panels,
    /// Activations; later the slopes before ReLU.
    outputs: Buffer,
}

impl Head {
    fn layers(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Where a layer's weight and bias are.
    fn place(&self, layer: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let before = self.sizes.windows(2).take(layer).map(|size| (size[0] + 1) * size[1]);
        let start = self.offset + before.sum::<usize>();
        let bias = start + self.sizes[layer] * self.sizes[layer + 1];
        (start..bias, bias..bias + self.sizes[layer + 1])
    }

    pub fn buffers(&self, batch: usize) -> Buffers {
        let layers = self.sizes.windows(2).map(|size| Layer {
            weight: Panels::new(size[0], size[1]),
            transposed: Panels::new(size[1], size[0]),
            gradient: Panels::new(size[0], size[1]),
            outputs: Buffer::zeros(batch * stride(size[1])),
        });
        let widest = self.sizes[1..].iter().copied().max().unwrap_or(0);
        Buffers { layers: layers.collect(), back: Buffer::zeros(batch * stride(widest)) }
    }

    /// The logits of these features, one row a sample.
    pub fn forward(
        &self,
        path: Path,
        weights: &[f32],
        features: &[f32],
        samples: usize,
        buffers: &mut Buffers,
        logits: &mut [f32],
    ) {
        for layer in 0..self.layers() {
            let (weight, bias) = self.place(layer);
            let step = stride(self.sizes[layer + 1]);
            let (before, after) = buffers.layers.split_at_mut(layer);
            let x = before.last().map_or(features, |below| &below.outputs);
            let here = &mut after[0];
            here.weight.pack(&weights[weight]);
            let bias = &weights[bias];
            for row in here.outputs[..samples * step].chunks_exact_mut(step) {
                row[..bias.len()].copy_from_slice(bias);
                row[bias.len()..].fill(0.0);
            }
            product(path, samples, x, &here.weight, &mut here.outputs);
            if layer + 1 < self.layers() {
                here.outputs[..samples * step].iter_mut().for_each(|value| {
                    // Not `max`, which would hide NaN.
                    *value = if *value <= 0.0 { 0.0 } else { *value };
                });
            }
        }
        let classes = self.sizes[self.layers()];
        let outputs = &buffers.layers[self.layers() - 1].outputs;
        let rows = outputs.chunks_exact(stride(classes));
        for (logits, row) in logits.chunks_exact_mut(classes).zip(rows) {
            logits.copy_from_slice(&row[..classes]);
        }
    }

    /// Gradients of all layers from the slopes at the logits; the slopes at the features take the features' place.
    pub fn backward(
        &self,
        path: Path,
        weights: &[f32],
        slopes: &[f32],
        features: &mut [f32],
        gradient: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let classes = self.sizes[self.layers()];
        let samples = slopes.len() / classes;
        let Buffers { layers, back } = buffers;
        let rows = layers[self.layers() - 1].outputs.chunks_exact_mut(stride(classes));
        for (row, slopes) in rows.zip(slopes.chunks_exact(classes)) {
            row[..classes].copy_from_slice(slopes);
        }
        for layer in (0..self.layers()).rev() {
            let (weight, bias) = self.place(layer);
            let (before, after) = layers.split_at_mut(layer);
            let here = &mut after[0];
            let step = stride(self.sizes[layer + 1]);
            let of_bias = &mut gradient[bias];
            of_bias.fill(0.0);
            for row in here.outputs[..samples * step].chunks_exact(step) {
                of_bias.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
            }
            let x = before.last().map_or(&*features, |below| &below.outputs);
            outer_product(path, samples, x, &here.outputs, &mut here.gradient);
            here.gradient.unpack(&mut gradient[weight.clone()]);
            here.transposed.pack_transposed(&weights[weight]);
            let room = samples * stride(self.sizes[layer]);
            match before.last_mut() {
                None => {
                    features[..room].fill(0.0);
                    product(path, samples, &here.outputs, &here.transposed, features);
                }
                Some(below) => {
                    back[..room].fill(0.0);
                    product(path, samples, &here.outputs, &here.transposed, back);
                    for (value, &slope) in below.outputs[..room].iter_mut().zip(&back[..room]) {
                        *value = if *value > 0.0 { slope } else { 0.0 };
                    }
                }
            }
        }
    }
}
