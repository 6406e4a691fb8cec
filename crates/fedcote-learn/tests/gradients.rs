//! Losses and gradients of every model: against JAX on the same weights and batch, and, for those with
//! convolutions, against finite differences of their definition in f64.

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    Path,
    data::Shape,
    models::{Batch, Cnn, Mlp, Model, ModelKind, ModelSpec, ResNet20, build},
};
use serde::Deserialize;

/// The generator of `fixtures/make.py`: numbers in [−1, 1) that are exact in f32.
struct Generator(u64);

impl Generator {
    fn take(&mut self, count: usize) -> Vec<f32> {
        let next = || {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 40) as f64 / f64::from(1 << 23) - 1.0) as f32
        };
        std::iter::repeat_with(next).take(count).collect()
    }
}

/// Weights, inputs and labels as in `fixtures/make.py`.
fn sample(model: &dyn Model, samples: usize) -> (Vec<f32>, Vec<f32>, Vec<u8>) {
    let mut generator = Generator(1);
    let mut weights = Vec::new();
    for parameter in model.parameters() {
        let values = generator.take(parameter.len());
        let inputs: usize = parameter.shape[..parameter.shape.len() - 1].iter().product();
        let limit = 1.0 / (inputs as f32).sqrt();
        weights.extend(values.iter().map(|value| {
            if parameter.name.ends_with("scale") {
                1.0 + 0.25 * value
            } else if parameter.shape.len() == 1 {
                0.25 * value
            } else {
                value * limit
            }
        }));
    }
    let inputs = generator.take(samples * model.inputs()).iter().map(|value| 2.0 * value).collect();
    let labels = (0..samples).map(|i| ((7 * i + 3) % model.classes()) as u8).collect();
    (weights, inputs, labels)
}

#[derive(Deserialize)]
struct Case {
    name: String,
    samples: usize,
    image: [usize; 3],
    classes: usize,
    loss: f64,
    logits: Vec<f64>,
    parameters: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    name: String,
    shape: Vec<usize>,
    norm: f64,
    product: f64,
    elements: Vec<f64>,
}

/// ‖a − b‖ / ‖b‖; without the denominator where that is zero.
fn distance(a: impl IntoIterator<Item = f32>, b: &[f64]) -> f64 {
    let (mut difference, mut norm, mut count) = (0.0, 0.0, 0);
    for (a, b) in a.into_iter().zip(b) {
        difference += (f64::from(a) - b).powi(2);
        norm += b * b;
        count += 1;
    }
    assert_eq!(count, b.len());
    (difference / if norm > 0.0 { norm } else { 1.0 }).sqrt()
}

#[test]
fn losses_logits_and_gradients_are_those_of_jax() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("fixtures/gradients.json")).expect("the fixture");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let [height, width, channels] = case.image;
        let shape = Shape { height, width, channels };
        let models: Vec<Box<dyn Model>> = match case.name.as_str() {
            "softmax" => vec![Box::new(Mlp::new(&[784, 10]))],
            "mlp" => vec![Box::new(Mlp::new(&[784, 30, 10]))],
            "resnet20" => Path::supported()
                .into_iter()
                .map(|path| -> Box<dyn Model> {
                    Box::new(ResNet20::with_path(shape, case.classes, path))
                })
                .collect(),
            "cnn" => {
                let (channels, hidden): (&[usize], &[usize]) = match height {
                    32 => (&[32, 32], &[256, 64]),
                    _ => (&[16, 48, 32], &[]),
                };
                let cnn = |path| -> Box<dyn Model> {
                    Box::new(Cnn::new(shape, channels, hidden, case.classes, path).unwrap())
                };
                Path::supported().into_iter().map(cnn).collect()
            }
            other => panic!("unknown model {other}"),
        };
        for model in models {
            check(&*model, &case);
        }
    }
}

fn check(model: &dyn Model, case: &Case) {
    let (weights, inputs, labels) = sample(model, case.samples);
    let batch = Batch::new(&inputs, &labels);
    let mut workspace = model.workspace(case.samples);
    let mut gradient = vec![f32::NAN; model.len()];
    // Twice, because what the first pass leaves in the workspace must not show.
    for _ in 0..2 {
        let logits = model.logits(&weights, &batch, &mut workspace);
        assert!(distance(logits.iter().copied(), &case.logits) < 1e-4, "{}", case.name);
        let loss = model.loss_and_gradient(&weights, &batch, &mut gradient, &mut workspace);
        assert!((f64::from(loss) / case.loss - 1.0).abs() < 1e-4, "{} {loss}", case.name);
        let mut random = Generator(2);
        assert_eq!(model.parameters().len(), case.parameters.len());
        for (parameter, expected) in model.parameters().iter().zip(&case.parameters) {
            assert_eq!((&parameter.name, &parameter.shape), (&expected.name, &expected.shape));
            let part = &gradient[parameter.offset..][..parameter.len()];
            let count = expected.elements.len();
            let chosen = (0..count).map(|i| part[i * part.len() / count]);
            let error = distance(chosen, &expected.elements);
            assert!(error < 1e-4, "{} {}: {error:.1e}", case.name, parameter.name);
            let norm = part.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            assert!((norm / expected.norm - 1.0).abs() < 1e-4, "{}", parameter.name);
            let random = random.take(part.len());
            let product: f64 =
                part.iter().zip(random).map(|(&g, r)| f64::from(g) * f64::from(r)).sum();
            let error = (product - expected.product).abs() / expected.norm;
            assert!(error < 1e-4, "{} {}: {error:.1e}", case.name, parameter.name);
        }
    }
}

/// Networks by their definition, in f64.
mod definition {
    use super::*;

    /// One image, channels last.
    #[derive(Clone)]
    struct Image {
        height: usize,
        width: usize,
        channels: usize,
        values: Vec<f64>,
    }

    impl Image {
        fn at(&self, row: isize, column: isize, channel: usize) -> f64 {
            let inside = |at: isize, size: usize| at >= 0 && (at as usize) < size;
            if !inside(row, self.height) || !inside(column, self.width) {
                return 0.0;
            }
            self.values[(row as usize * self.width + column as usize) * self.channels + channel]
        }

        fn convolved(&self, weights: &[f64], outputs: usize, stride: usize) -> Self {
            let (height, width) = (self.height.div_ceil(stride), self.width.div_ceil(stride));
            let mut values = vec![0.0; height * width * outputs];
            for (pixel, sums) in values.chunks_exact_mut(outputs).enumerate() {
                let (row, column) = (pixel / width * stride, pixel % width * stride);
                for (tap, weights) in weights.chunks_exact(self.channels * outputs).enumerate() {
                    let (a, b) = (tap / 3, tap % 3);
                    for (channel, weights) in weights.chunks_exact(outputs).enumerate() {
                        let x = self.at((row + a) as isize - 1, (column + b) as isize - 1, channel);
                        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
                    }
                }
            }
            Self { height, width, channels: outputs, values }
        }

        fn normalised(mut self, scale: &[f64], shift: &[f64]) -> Self {
            let half = self.channels / 2;
            for group in [0, 1] {
                let here = |i: &usize| i % self.channels / half == group;
                let all: Vec<usize> = (0..self.values.len()).filter(here).collect();
                let n = all.len() as f64;
                let mean = all.iter().map(|&i| self.values[i]).sum::<f64>() / n;
                let variance =
                    all.iter().map(|&i| (self.values[i] - mean).powi(2)).sum::<f64>() / n;
                for i in all {
                    let c = i % self.channels;
                    let value = (self.values[i] - mean) / (variance + 1e-5).sqrt();
                    self.values[i] = value * scale[c] + shift[c];
                }
            }
            self
        }

        fn shifted(mut self, bias: &[f64]) -> Self {
            let channels = self.channels;
            self.values.iter_mut().enumerate().for_each(|(i, value)| *value += bias[i % channels]);
            self
        }

        fn pooled(&self) -> Self {
            let (height, width) = (self.height / 2, self.width / 2);
            let value = |i: usize| {
                let (pixel, channel) = (i / self.channels, i % self.channels);
                let (row, column) = (2 * (pixel / width) as isize, 2 * (pixel % width) as isize);
                let four = [(0, 0), (0, 1), (1, 0), (1, 1)];
                let four = four.map(|(a, b)| self.at(row + a, column + b, channel));
                four.into_iter().fold(f64::NEG_INFINITY, f64::max)
            };
            let values = (0..height * width * self.channels).map(value).collect();
            Self { height, width, channels: self.channels, values }
        }

        fn rectified(mut self) -> Self {
            self.values.iter_mut().for_each(|value| *value = value.max(0.0));
            self
        }
    }

    /// The mean cross-entropy of a batch, given the logits of a sample.
    pub fn loss(
        shape: Shape,
        inputs: &[f64],
        labels: &[u8],
        logits: impl Fn(&[f64]) -> Vec<f64>,
    ) -> f64 {
        let losses = inputs.chunks_exact(shape.len()).zip(labels).map(|(input, &label)| {
            let logits = logits(input);
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            total.ln() - logits[usize::from(label)]
        });
        losses.sum::<f64>() / labels.len() as f64
    }

    /// A network of blocks with these channels and dense layers of these sizes, classes last.
    pub fn cnn(
        shape: Shape,
        channels: &[usize],
        dense: &[usize],
        weights: &[f64],
        input: &[f64],
    ) -> Vec<f64> {
        let mut rest = weights;
        let mut take = |count: usize| {
            let (part, after) = rest.split_at(count);
            rest = after;
            part
        };
        let Shape { height, width, channels: colours } = shape;
        let mut x = Image { height, width, channels: colours, values: input.to_vec() };
        for &outputs in channels {
            let y = x.convolved(take(9 * x.channels * outputs), outputs, 1);
            x = y.shifted(take(outputs)).rectified().pooled();
        }
        let mut x = x.values;
        for (layer, &outputs) in dense.iter().enumerate() {
            let weight = take(x.len() * outputs);
            let mut y = take(outputs).to_vec();
            for (x, row) in x.iter().zip(weight.chunks_exact(outputs)) {
                y.iter_mut().zip(row).for_each(|(y, weight)| *y += x * weight);
            }
            if layer + 1 < dense.len() {
                y.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            x = y;
        }
        assert!(rest.is_empty());
        x
    }

    pub fn resnet20(shape: Shape, classes: usize, weights: &[f64], input: &[f64]) -> Vec<f64> {
        let mut rest = weights;
        let mut take = |count: usize| {
            let (part, after) = rest.split_at(count);
            rest = after;
            part
        };
        let Shape { height, width, channels } = shape;
        let mut x = Image { height, width, channels, values: input.to_vec() };
        let mut layer = |x: &Image, outputs: usize, stride: usize| {
            let y = x.convolved(take(9 * x.channels * outputs), outputs, stride);
            y.normalised(take(outputs), take(outputs))
        };
        x = layer(&x, 16, 1).rectified();
        for (stage, block) in (0..3).flat_map(|stage| (0..3).map(move |block| (stage, block))) {
            let outputs = 16 << stage;
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let inside = layer(&x, outputs, stride).rectified();
            let mut y = layer(&inside, outputs, 1);
            for (i, value) in y.values.iter_mut().enumerate() {
                let (pixel, channel) = (i / outputs, i % outputs);
                if channel < x.channels {
                    let (row, column) = (pixel / y.width * stride, pixel % y.width * stride);
                    *value += x.at(row as isize, column as isize, channel);
                }
            }
            x = y.rectified();
        }
        let dense = take(64 * classes);
        let mut logits = take(classes).to_vec();
        for (i, value) in x.values.iter().enumerate() {
            let row = &dense[i % 64 * classes..][..classes];
            let mean = value / (x.height * x.width) as f64;
            logits.iter_mut().zip(row).for_each(|(logit, weight)| *logit += mean * weight);
        }
        assert!(rest.is_empty());
        logits
    }
}

#[test]
fn the_gradient_of_every_parameter_of_resnet20_is_a_finite_difference_of_its_definition() {
    let shape = Shape { height: 7, width: 6, channels: 2 };
    differences(shape, &ResNet20::new(shape, 5), |weights, input| {
        definition::resnet20(shape, 5, weights, input)
    });
}

#[test]
fn the_gradient_of_every_parameter_of_a_cnn_is_a_finite_difference_of_its_definition() {
    let shape = Shape { height: 7, width: 10, channels: 2 };
    for path in Path::supported() {
        let model = Cnn::new(shape, &[32, 16], &[9], 5, path).unwrap();
        differences(shape, &model, |weights, input| {
            definition::cnn(shape, &[32, 16], &[9, 5], weights, input)
        });
    }
}

fn differences(shape: Shape, model: &dyn Model, logits: impl Fn(&[f64], &[f64]) -> Vec<f64>) {
    let (weights, inputs, labels) = sample(model, 3);
    let mut gradient = vec![0.0; model.len()];
    let mut workspace = model.workspace(3);
    let batch = Batch::new(&inputs, &labels);
    let loss = model.loss_and_gradient(&weights, &batch, &mut gradient, &mut workspace);
    let [weights, inputs] =
        [&weights, &inputs].map(|v| v.iter().map(|&value| f64::from(value)).collect::<Vec<_>>());
    let at =
        |weights: &[f64]| definition::loss(shape, &inputs, &labels, |input| logits(weights, input));
    assert!((f64::from(loss) - at(&weights)).abs() < 1e-5);
    // Along the gradient itself, one parameter at a time: the derivative there is its norm.
    for parameter in model.parameters() {
        let range = parameter.offset..parameter.offset + parameter.len();
        let part = &gradient[range.clone()];
        let norm = part.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        // And across it, where a wrong element would show that the norm hides.
        let random = Generator(3).take(part.len());
        let length = random.iter().map(|&r| f64::from(r).powi(2)).sum::<f64>().sqrt();
        let across: Vec<f64> = random.iter().map(|&r| f64::from(r) / length).collect();
        let along: Vec<f64> = part.iter().map(|&g| f64::from(g) / norm).collect();
        for direction in [along, across] {
            let expected: f64 =
                part.iter().zip(&direction).map(|(&g, direction)| f64::from(g) * direction).sum();
            let moved = |step: f64| {
                let mut weights = weights.clone();
                let here = weights[range.clone()].iter_mut().zip(&direction);
                here.for_each(|(weight, direction)| *weight += step * direction);
                at(&weights)
            };
            let step = 1e-6;
            let found = (moved(step) - moved(-step)) / (2.0 * step);
            let error = (found - expected).abs() / norm;
            assert!(error < 1e-4, "{}: {found} and {expected}", parameter.name);
        }
    }
}

#[test]
fn resnet20_has_the_parameters_of_the_paper() {
    let model = ResNet20::new(Shape { height: 32, width: 32, channels: 3 }, 10);
    assert_eq!(model.len(), 269_722);
    let of = |end: &str| {
        let parameters =
            model.parameters().iter().filter(|parameter| parameter.name.ends_with(end));
        parameters.map(|parameter| parameter.len()).sum::<usize>()
    };
    assert_eq!((of("scale"), of("shift")), (688, 688));
}

#[test]
fn the_default_cnn_has_the_parameters_and_initial_weights_of_published_code() {
    let spec = ModelSpec { kind: ModelKind::Cnn, ..ModelSpec::default() };
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let model = build(&spec, shape, 10).unwrap();
    assert_eq!(model.len(), 551_786);
    // The one for SVHN, and MNIST's single channel.
    let spec = ModelSpec { hidden: Some(vec![128]), ..spec };
    assert_eq!(build(&spec, shape, 10).unwrap().len(), 273_706);
    let digits = Shape { height: 28, width: 28, channels: 1 };
    assert_eq!(build(&spec, digits, 10).unwrap().len(), 320 + 9_248 + 200_832 + 1_290);
    let weights = model.initialise(Key::new(1, Purpose::Model));
    for parameter in model.parameters() {
        let values = &weights[parameter.offset..][..parameter.len()];
        let fan_in: usize = parameter.shape[..parameter.shape.len() - 1].iter().product();
        let squares: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
        let variance = squares / values.len() as f64;
        if parameter.name.starts_with("dense3") {
            assert!(values.iter().all(|value| value.abs() <= 0.125));
        } else if parameter.name.ends_with("bias") {
            assert_eq!(variance, 0.0);
        } else {
            let expected = 2.0 / fan_in as f64;
            let deviation = (2.0 / values.len() as f64).sqrt();
            assert!((variance / expected - 1.0).abs() < 4.0 * deviation, "{}", parameter.name);
        }
    }
}

#[test]
fn portable_and_vector_paths_of_resnet20_agree_to_rounding() {
    let shape = Shape { height: 12, width: 9, channels: 3 };
    paths_agree(|path| Box::new(ResNet20::with_path(shape, 10, path)));
}

#[test]
fn portable_and_vector_paths_of_a_cnn_agree_to_rounding() {
    let shape = Shape { height: 12, width: 9, channels: 3 };
    paths_agree(|path| Box::new(Cnn::new(shape, &[32, 48], &[70], 10, path).unwrap()));
}

fn paths_agree(model: impl Fn(Path) -> Box<dyn Model>) {
    let run = |path: Path, samples: usize| {
        let model = model(path);
        let (weights, inputs, labels) = sample(&*model, samples);
        let mut gradient = vec![0.0; model.len()];
        let mut workspace = model.workspace(samples);
        let batch = Batch::new(&inputs, &labels);
        let loss = model.loss_and_gradient(&weights, &batch, &mut gradient, &mut workspace);
        gradient.push(loss);
        gradient
    };
    // Below, at and above the number of images that are taken at a time.
    for samples in [1, 8, 13] {
        let paths = Path::supported();
        let portable = run(paths[paths.len() - 1], samples);
        let expected: Vec<f64> = portable.iter().map(|&value| f64::from(value)).collect();
        for path in paths {
            let found = run(path, samples);
            assert_eq!(found, run(path, samples), "the same bits every time");
            assert!(distance(found, &expected) < 1e-4, "{} {samples}", path.name());
        }
    }
}
