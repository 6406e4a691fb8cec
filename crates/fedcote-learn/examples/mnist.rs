//! Trains the 784×30×10 perceptron on all of MNIST, as if there were one client, and times the parts.
//!
//! ```sh
//! cargo run --release -p fedcote-learn --example mnist
//! ```

use std::{path::Path, time::Instant};

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    data::{DataSpec, load},
    evaluate,
    models::{ModelSpec, build},
    train::{LocalSettings, Trainer, local},
};

fn main() -> Result<(), fedcote_learn::Error> {
    let start = Instant::now();
    let data = load(&DataSpec::default(), Path::new("."))?;
    println!("decoding MNIST: {:.0} ms", 1e3 * start.elapsed().as_secs_f64());
    let model = build(&ModelSpec::default(), data.train.shape, data.train.classes)?;
    let mut weights = model.initialise(Key::new(1, Purpose::Model));
    let samples: Vec<u32> = (0..data.train.len() as u32).collect();
    let mut trainer = Trainer::new(&*model, 128);
    let steps = data.train.len() / 128;
    for (epoch, rate) in (1..).zip([0.1, 0.1, 0.1, 0.05, 0.05, 0.02]) {
        let start = Instant::now();
        let settings = LocalSettings { steps, batch: 128, rate };
        let key = Key::new(1, Purpose::Batch).round(epoch);
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
        let start = Instant::now();
        let test = evaluate(&*model, &weights, &data.test);
        let train = evaluate(&*model, &weights, &data.train);
        println!(
            "epoch {epoch}: loss {:.4}, test accuracy {:.2} %, train accuracy {:.2} %; {step:.4} ms a step, \
             {:.0} ms to evaluate 70,000",
            outcome.loss,
            100.0 * test.accuracy,
            100.0 * train.accuracy,
            1e3 * start.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}
