//! Trains on a whole data set, as if there were one client: what federated training can hope for.
//!
//! ```sh
//! cargo run --release -p fedcote-learn --example centralised                       # MNIST, 784×30×10
//! cargo run --release -p fedcote-learn --example centralised -- cifar10 FOLDER     # CIFAR-10, ResNet-20
//! ```
//!
//! `FOLDER` holds CIFAR-10's binary files (`data_batch_1.bin` … `test_batch.bin`). Plain gradient descent in batches
//! of 128 (MNIST) or 32 (CIFAR-10); the last epoch takes a tenth of the rate. `RAYON_NUM_THREADS=1` keeps evaluation
//! on one thread too; training always is.

use std::{path::Path, process::ExitCode, time::Instant};

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    Error,
    data::{DataSpec, SetKind, load},
    evaluate,
    models::{ModelKind, ModelSpec, build},
    train::{LocalSettings, Trainer, local},
};

const EPOCHS: u32 = 6;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (data, model, batch, rate) = match words[..] {
        [] | ["mnist"] => (DataSpec::default(), ModelSpec::default(), 128, 0.1),
        ["cifar10", folder] => (
            DataSpec { set: SetKind::Cifar10, path: Some(folder.into()), ..DataSpec::default() },
            ModelSpec { kind: ModelKind::Resnet20, ..ModelSpec::default() },
            32,
            0.03,
        ),
        _ => {
            eprintln!("usage: centralised [mnist | cifar10 FOLDER]");
            return ExitCode::from(2);
        }
    };
    match train(&data, &model, batch, rate) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn train(data: &DataSpec, model: &ModelSpec, batch: usize, rate: f32) -> Result<(), Error> {
    let data = load(data, Path::new("."))?;
    let model = build(model, data.train.shape, data.train.classes)?;
    let mut weights = model.initialise(Key::new(1, Purpose::Model));
    let samples: Vec<u32> = (0..data.train.len() as u32).collect();
    let mut trainer = Trainer::new(&*model, batch);
    let steps = data.train.len() / batch;
    println!("{}: {} parameters, {steps} steps an epoch", data.name, model.len());
    for epoch in 1..=EPOCHS {
        let rate = if epoch < EPOCHS { rate } else { 0.1 * rate };
        let settings = LocalSettings { steps, batch, rate };
        let key = Key::new(1, Purpose::Batch).round(epoch);
        let start = Instant::now();
        let outcome = local(
            &*model,
            &mut weights,
            &data.train,
            &samples,
            &settings,
            key,
            &mut |_, _| (),
            &mut trainer,
        );
        let step = 1e3 * start.elapsed().as_secs_f64() / steps as f64;
        let test = evaluate(&*model, &weights, &data.test);
        println!(
            "epoch {epoch}: training loss {:.4}, test accuracy {:.2} %, {step:.3} ms a step",
            outcome.loss,
            100.0 * test.accuracy
        );
    }
    Ok(())
}
