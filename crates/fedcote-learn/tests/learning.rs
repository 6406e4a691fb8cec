//! Gradients, training and evaluation against independent computations.

use std::path::Path;

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    Augmentation,
    data::{DataSpec, Dataset, SetKind, load},
    evaluate, gradient_over, loss_over,
    models::{Batch, Mlp, Model, ModelKind, ModelSpec, build},
    train::{LocalSettings, Trainer, local},
};
use rand::RngExt;

/// The mean cross-entropy of a perceptron, written from its definition in f64.
fn loss_by_hand(sizes: &[usize], weights: &[f64], inputs: &[f32], labels: &[u8]) -> f64 {
    let mut sum = 0.0;
    for (sample, &label) in labels.iter().enumerate() {
        let mut values: Vec<f64> =
            inputs[sample * sizes[0]..][..sizes[0]].iter().map(|&value| value.into()).collect();
        let mut at = 0;
        for layer in 1..sizes.len() {
            let (rows, columns) = (sizes[layer - 1], sizes[layer]);
            values = (0..columns)
                .map(|column| {
                    let dot: f64 = (0..rows)
                        .map(|row| values[row] * weights[at + row * columns + column])
                        .sum();
                    let value = dot + weights[at + rows * columns + column];
                    if layer + 1 < sizes.len() { value.max(0.0) } else { value }
                })
                .collect();
            at += (rows + 1) * columns;
        }
        let total: f64 = values.iter().map(|value| value.exp()).sum();
        sum += total.ln() - values[usize::from(label)];
    }
    sum / labels.len() as f64
}

/// ‖a − b‖ / ‖b‖.
fn distance(a: &[f32], b: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| {
        values.map(|value| value * value).sum::<f64>().sqrt()
    };
    norm(&mut a.iter().zip(b).map(|(&a, b)| f64::from(a) - b)) / norm(&mut b.iter().copied())
}

/// A batch in which most inputs equal the background, as pixels do.
fn batch(inputs: usize, classes: usize, samples: usize, background: f32) -> (Vec<f32>, Vec<u8>) {
    let mut stream = Key::new(3, Purpose::Test).stream();
    let values = (0..inputs * samples)
        .map(|_| if stream.random_bool(0.3) { stream.random_range(-1.0..2.0) } else { background })
        .collect();
    (values, (0..samples).map(|_| stream.random_range(0..classes) as u8).collect())
}

#[test]
fn gradients_equal_finite_differences() {
    for (sizes, samples, background) in [
        (vec![5, 3], 7, 0.0),
        (vec![17, 9, 4], 12, -0.42),
        (vec![6, 8, 5, 3], 1, -0.42),
        (vec![33, 30, 10], 20, 0.0),
        (vec![40, 40, 12], 13, 1.5),
    ] {
        let model = Mlp::new(&sizes);
        let weights = model.initialise(Key::new(1, Purpose::Model));
        let (inputs, labels) = batch(sizes[0], sizes[sizes.len() - 1], samples, background);
        let mut gradient = vec![f32::NAN; model.len()];
        let batch = Batch { inputs: &inputs, labels: &labels, background };
        let mut workspace = model.workspace(samples + 3);
        let loss = model.loss_and_gradient(&weights, &batch, &mut gradient, &mut workspace);
        let mut exact: Vec<f64> = weights.iter().map(|&weight| weight.into()).collect();
        let at = loss_by_hand(&sizes, &exact, &inputs, &labels);
        assert!((f64::from(loss) - at).abs() < 1e-6 * at, "{sizes:?}: {loss} {at}");
        let differences: Vec<f64> = (0..exact.len())
            .map(|i| {
                let mut shifted = |by: f64| {
                    let before = exact[i];
                    exact[i] += by;
                    let loss = loss_by_hand(&sizes, &exact, &inputs, &labels);
                    exact[i] = before;
                    loss
                };
                (shifted(1e-6) - shifted(-1e-6)) / 2e-6
            })
            .collect();
        let off = distance(&gradient, &differences);
        assert!(off < 3e-6, "{sizes:?}: {off:e}");
    }
}

#[test]
fn gradients_equal_those_of_automatic_differentiation() {
    #[derive(serde::Deserialize)]
    struct Case {
        sizes: Vec<usize>,
        weights: Vec<f32>,
        inputs: Vec<f32>,
        labels: Vec<u8>,
        loss: f64,
        gradient: Vec<f64>,
    }
    let cases: Vec<Case> = serde_json::from_str(include_str!("fixtures/mlp.json")).unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let model = Mlp::new(&case.sizes);
        let mut gradient = vec![0.0; model.len()];
        let mut workspace = model.workspace(case.labels.len());
        let batch = Batch::new(&case.inputs, &case.labels);
        let loss = model.loss_and_gradient(&case.weights, &batch, &mut gradient, &mut workspace);
        assert!((f64::from(loss) - case.loss).abs() < 1e-6, "{loss} {}", case.loss);
        assert!(distance(&gradient, &case.gradient) < 1e-6);
    }
}

#[test]
fn parameters_of_the_papers_model() {
    let model = Mlp::new(&[784, 30, 10]);
    assert_eq!(model.len(), 23_860);
    let weights = model.initialise(Key::new(1, Purpose::Model));
    assert_eq!(weights.len(), model.len());
    for parameter in model.parameters() {
        let limit = if parameter.name.starts_with("layer1") { 784_f32 } else { 30.0 }.powf(-0.5);
        let values = &weights[parameter.offset..][..parameter.len()];
        assert!(values.iter().all(|value| value.abs() <= limit), "{}", parameter.name);
        // The deviation of a uniform variable on ±limit is limit/√3; the largest weight comes near the limit.
        if parameter.len() >= 300 {
            let square: f32 =
                values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
            assert!((square.sqrt() * 3_f32.sqrt() / limit - 1.0).abs() < 0.1);
        }
    }
}

fn synthetic() -> std::sync::Arc<Dataset> {
    let spec = DataSpec {
        set: SetKind::Synthetic,
        samples: Some(3_000),
        features: Some(12),
        classes: Some(4),
        ..DataSpec::default()
    };
    load(&spec, Path::new(".")).unwrap()
}

#[test]
fn evaluation_and_gradient_over_samples_equal_sums_by_hand() {
    let data = synthetic();
    let model = build(&ModelSpec::default(), data.train.shape, 4).unwrap();
    let weights = model.initialise(Key::new(2, Purpose::Model));
    let exact: Vec<f64> = weights.iter().map(|&weight| weight.into()).collect();
    let samples: Vec<u32> = (0..data.train.len() as u32).filter(|sample| sample % 3 != 1).collect();
    let (mut inputs, mut labels) = (vec![0.0; samples.len() * 12], vec![0; samples.len()]);
    data.train.gather(&samples, &mut inputs, &mut labels);
    let by_hand = loss_by_hand(&[12, 30, 4], &exact, &inputs, &labels);
    let (loss, gradient) = gradient_over(&*model, &weights, &data.train, &samples);
    assert!((loss - by_hand).abs() < 1e-6);
    assert!((loss_over(&*model, &weights, &data.train, &samples) - by_hand).abs() < 1e-6);
    let mut whole = vec![0.0; model.len()];
    let batch = Batch::new(&inputs, &labels);
    model.loss_and_gradient(&weights, &batch, &mut whole, &mut model.workspace(samples.len()));
    let whole: Vec<f64> = whole.iter().map(|&slope| slope.into()).collect();
    assert!(distance(&gradient, &whole) < 1e-5);
    // Per class and over all, from the logits of one big batch.
    let all: Vec<u32> = (0..data.test.len() as u32).collect();
    let (mut inputs, mut labels) = (vec![0.0; all.len() * 12], vec![0; all.len()]);
    data.test.gather(&all, &mut inputs, &mut labels);
    let mut workspace = model.workspace(all.len());
    let logits = model.logits(&weights, &Batch::new(&inputs, &labels), &mut workspace);
    let mut correct = [0_u64; 4];
    for (row, &label) in logits.chunks(4).zip(&labels) {
        let own = row[usize::from(label)];
        correct[usize::from(label)] += u64::from(row.iter().all(|&value| value <= own));
    }
    let evaluation = evaluate(&*model, &weights, &data.test);
    let share = |count: u64, of: usize| count as f64 / of as f64;
    assert_eq!(evaluation.accuracy, share(correct.iter().sum(), all.len()));
    for (class, part) in evaluation.per_class.iter().enumerate() {
        let own: Vec<usize> =
            (0..labels.len()).filter(|&i| usize::from(labels[i]) == class).collect();
        assert_eq!(
            (part.samples, part.accuracy),
            (own.len() as u64, share(correct[class], own.len()))
        );
        let picked: Vec<f32> = own.iter().flat_map(|&i| inputs[i * 12..][..12].to_vec()).collect();
        let by_hand = loss_by_hand(&[12, 30, 4], &exact, &picked, &vec![class as u8; own.len()]);
        assert!((part.loss - by_hand).abs() < 1e-6);
    }
    assert!((evaluation.loss - loss_by_hand(&[12, 30, 4], &exact, &inputs, &labels)).abs() < 1e-6);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let data = synthetic();
    let model = build(&ModelSpec::default(), data.train.shape, 4).unwrap();
    let weights = model.initialise(Key::new(2, Purpose::Model));
    let samples: Vec<u32> = (0..3_000).collect();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (loss, gradient) = gradient_over(&*model, &weights, &data.train, &samples);
            let over = loss_over(&*model, &weights, &data.train, &samples);
            (loss.to_bits(), gradient, over.to_bits(), evaluate(&*model, &weights, &data.train))
        })
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(5));
}

#[test]
fn steps_follow_the_definition() {
    let data = synthetic();
    let model = build(&ModelSpec::default(), data.train.shape, 4).unwrap();
    let start = model.initialise(Key::new(2, Purpose::Model));
    let key = Key::new(7, Purpose::Batch);
    let run = |samples: &[u32], steps, batch, adjust: &mut dyn FnMut(&[f32], &mut [f32])| {
        let mut weights = start.clone();
        let settings = LocalSettings { steps, batch, rate: 0.1 };
        let mut trainer = Trainer::new(&*model, batch);
        let outcome = local(
            &*model,
            &mut weights,
            &data.train,
            samples,
            &settings,
            key,
            adjust,
            &mut trainer,
        );
        (weights, outcome)
    };
    // Fewer samples than a batch: all are used, so a step is a step of full gradient descent.
    let few = [5, 17, 900, 2_999];
    let (weights, outcome) = run(&few, 1, 128, &mut |_, _| ());
    let (loss, gradient) = gradient_over(&*model, &start, &data.train, &few);
    assert!(outcome.finite && (outcome.loss - loss).abs() < 1e-6);
    for ((after, before), slope) in weights.iter().zip(&start).zip(&gradient) {
        assert!((after - (before - 0.1 * slope)).abs() < 1e-7);
    }
    // A hook that removes the gradient leaves the weights alone; one that spoils it is reported.
    let mut calls = 0;
    let (weights, _) = run(&few, 3, 2, &mut |_, gradient| {
        calls += 1;
        gradient.fill(0.0);
    });
    assert_eq!((calls, weights), (3, start.clone()));
    assert!(!run(&few, 1, 2, &mut |_, gradient| gradient[3] = f32::NAN).1.finite);
    // The key alone decides, and another key decides otherwise.
    let all: Vec<u32> = (0..3_000).collect();
    assert_eq!(run(&all, 4, 16, &mut |_, _| ()), run(&all, 4, 16, &mut |_, _| ()));
    let mut other = start.clone();
    let settings = LocalSettings { steps: 4, batch: 16, rate: 0.1 };
    let mut trainer = Trainer::new(&*model, 16);
    local(
        &*model,
        &mut other,
        &data.train,
        &all,
        &settings,
        key.client(1),
        &mut |_, _| (),
        &mut trainer,
    );
    assert_ne!(other, run(&all, 4, 16, &mut |_, _| ()).0);
}

/// A mini-batch has distinct samples, and each sample appears in its share of mini-batches.
#[test]
fn mini_batches_are_fair_draws_without_replacement() {
    // Softmax regression from zero weights on one-hot inputs: the gradient's rows tell which samples were seen.
    let mut data = synthetic().train.clone();
    let count = 10;
    data.shape = fedcote_learn::data::Shape { height: 1, width: count, channels: 1 };
    data.images =
        (0..count * count).map(|i| if i / count == i % count { 255 } else { 0 }).collect();
    data.labels = vec![0; count];
    data.standards = vec![fedcote_learn::data::Standard::new(0.0, 1.0)];
    let model = Mlp::new(&[count, 4]);
    let samples: Vec<u32> = (0..count as u32).collect();
    let (steps, batch) = (4_000, 3);
    let mut seen = vec![0_u32; count];
    let mut weights = vec![0.0; model.len()];
    let settings = LocalSettings { steps, batch, rate: 0.0 };
    let mut count_rows = |_: &[f32], gradient: &mut [f32]| {
        // Label 0 at zero weights: each time a sample is in the batch, its row gets (0.25 − 1)/batch.
        let rows: Vec<f32> =
            (0..count).map(|row| gradient[row * 4] / (-0.75 / batch as f32)).collect();
        assert!(
            rows.iter().all(|&times| times.abs() < 1e-5 || (times - 1.0).abs() < 1e-5),
            "{rows:?}"
        );
        rows.iter().zip(&mut seen).for_each(|(&times, seen)| *seen += u32::from(times > 0.5));
    };
    let key = Key::new(1, Purpose::Batch);
    let mut trainer = Trainer::new(&model, batch);
    local(&model, &mut weights, &data, &samples, &settings, key, &mut count_rows, &mut trainer);
    let (mean, deviation) = (1_200.0, (4_000_f64 * 0.3 * 0.7).sqrt());
    assert!(
        seen.iter().all(|&times| (f64::from(times) - mean).abs() < 4.5 * deviation),
        "{seen:?}"
    );
}

#[test]
fn a_cnn_learns_shifted_digits_and_augmentation_changes_no_mini_batch() {
    let data = load(&DataSpec::default(), Path::new(".")).unwrap();
    let spec =
        ModelSpec { kind: ModelKind::Cnn, channels: Some(vec![16, 16]), hidden: Some(vec![]) };
    let model = build(&spec, data.train.shape, 10).unwrap();
    let samples: Vec<u32> = (0..60_000).collect();
    let settings = LocalSettings { steps: 120, batch: 32, rate: 0.05 };
    let run = |augmentation: Augmentation, seed: u64, steps: usize| {
        let mut weights = model.initialise(Key::new(1, Purpose::Model));
        let mut trainer = Trainer::new(&*model, 32).augmented(augmentation);
        let (key, settings) = (Key::new(seed, Purpose::Batch), LocalSettings { steps, ..settings });
        let (train, adjust) = (&data.train, &mut |_: &[f32], _: &mut [f32]| ());
        local(&*model, &mut weights, train, &samples, &settings, key, adjust, &mut trainer);
        weights
    };
    let plain = Augmentation::default();
    let shifted = Augmentation { crop: 2, flip: false, together: false };
    // The key alone decides.
    assert_eq!(run(shifted, 1, 2), run(shifted, 1, 2));
    assert_ne!(run(shifted, 1, 1), run(shifted, 2, 1));
    assert_ne!(run(shifted, 1, 1), run(plain, 1, 1));
    // The bias of the last layer gets softmax − one-hot: at zero weights it tells labels only, which stay the same.
    let labels = |augmentation: Augmentation| {
        let (mut weights, mut seen) = (vec![0.0; model.len()], Vec::new());
        let mut trainer = Trainer::new(&*model, 32).augmented(augmentation);
        let settings = LocalSettings { steps: 3, rate: 0.0, ..settings };
        let mut adjust =
            |_: &[f32], slope: &mut [f32]| seen.extend_from_slice(&slope[slope.len() - 10..]);
        let key = Key::new(1, Purpose::Batch);
        local(
            &*model,
            &mut weights,
            &data.train,
            &samples,
            &settings,
            key,
            &mut adjust,
            &mut trainer,
        );
        seen
    };
    assert_eq!(labels(shifted), labels(plain));
    let accuracy = evaluate(&*model, &run(shifted, 1, settings.steps), &data.test).accuracy;
    println!("test accuracy {accuracy}");
    assert!(accuracy > 0.85, "{accuracy}");
}

#[test]
fn mnist_is_learnt_past_97_percent_in_three_epochs() {
    let data = load(&DataSpec::default(), Path::new(".")).unwrap();
    let spec = ModelSpec { hidden: Some(vec![100]), ..ModelSpec::default() };
    let model = build(&spec, data.train.shape, 10).unwrap();
    let mut weights = model.initialise(Key::new(1, Purpose::Model));
    let samples: Vec<u32> = (0..60_000).collect();
    let mut trainer = Trainer::new(&*model, 32);
    for (epoch, rate) in [0.1, 0.1, 0.03].into_iter().enumerate() {
        let settings = LocalSettings { steps: 60_000 / 32, batch: 32, rate };
        let key = Key::new(1, Purpose::Batch).round(epoch as u32);
        local(
            &*model,
            &mut weights,
            &data.train,
            &samples,
            &settings,
            key,
            &mut |_, _| (),
            &mut trainer,
        );
    }
    let accuracy = evaluate(&*model, &weights, &data.test).accuracy;
    println!("test accuracy {accuracy}");
    assert!(accuracy > 0.97, "{accuracy}");
}
