//! Times what clients and the evaluator do.
//!
//! `cargo bench -p fedcote-learn --bench training` prints each figure once. With `--serve` it reads the name of a
//! measurement a line from standard input and answers with the seconds it took, so that `cargo xtask bench training`
//! can take turns with another implementation.

use std::{
    hint::black_box,
    io::{BufRead, Write},
    path::Path as FilePath,
    sync::Arc,
};

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    Path,
    data::{DataSpec, Dataset, Shape, load},
    evaluate,
    models::{Batch, Cnn, Mlp, Model, ResNet20},
    train::{LocalSettings, Trainer, local},
};
use rand::RngExt;
use rayon::prelude::*;

const BATCH: usize = 128;
const CIFAR: Shape = Shape { height: 32, width: 32, channels: 3 };
const NAMES: [&str; 9] = [
    "product",
    "mlp",
    "resnet20",
    "resnet20-portable",
    "cnn",
    "cnn-portable",
    "evaluate",
    "clients-1",
    "clients-2",
];

/// A model with what a step of it needs.
struct Case {
    model: Box<dyn Model>,
    inputs: Vec<f32>,
    labels: Vec<u8>,
    background: f32,
}

impl Case {
    fn resnet20(path: Path) -> Self {
        Self::images(Box::new(ResNet20::with_path(CIFAR, 10, path)))
    }

    fn cnn(path: Path) -> Self {
        let model = Cnn::new(CIFAR, &[32, 32], &[256, 64], 10, path);
        Self::images(Box::new(model.expect("sizes that fit")))
    }

    fn images(model: Box<dyn Model>) -> Self {
        let mut stream = Key::new(1, Purpose::Test).stream();
        let inputs = (0..BATCH * CIFAR.len()).map(|_| 3.4 * stream.random::<f32>() - 1.7).collect();
        let labels = (0..BATCH).map(|_| stream.random_range(0..10)).collect();
        Self { model, inputs, labels, background: 0.0 }
    }

    fn mlp(data: &Dataset) -> Self {
        let mut inputs = vec![0.0; BATCH * 784];
        let mut labels = vec![0; BATCH];
        let samples: Vec<u32> = (0..BATCH as u32).collect();
        data.train.gather(&samples, &mut inputs, &mut labels);
        let model = Box::new(Mlp::new(&[784, 30, 10]));
        Self { model, inputs, labels, background: data.train.background() }
    }

    /// The shortest of some steps of gradient descent, in seconds.
    fn step(&self, repeats: usize) -> f64 {
        let mut weights = self.model.initialise(Key::new(1, Purpose::Model));
        let mut gradient = vec![0.0; weights.len()];
        let mut workspace = self.model.workspace(BATCH);
        let batch = Batch { background: self.background, ..Batch::new(&self.inputs, &self.labels) };
        shortest(repeats, || {
            let loss =
                self.model.loss_and_gradient(&weights, &batch, &mut gradient, &mut workspace);
            for (weight, slope) in weights.iter_mut().zip(&gradient) {
                *weight -= 0.01 * slope;
            }
            black_box(loss);
        })
    }
}

/// The shortest of some calls, after one that does not count, in seconds.
fn shortest(repeats: usize, mut call: impl FnMut()) -> f64 {
    call();
    (0..repeats)
        .map(|_| {
            let start = processor_time();
            call();
            processor_time() - start
        })
        .fold(f64::INFINITY, f64::min)
}

/// A product of two 768×768 matrices: 2 · 768³ floating-point operations.
fn product() -> f64 {
    const N: usize = 768;
    let (a, b) = (vec![0.5_f32; N * N], vec![0.25_f32; N * N]);
    let mut c = vec![0.0_f32; N * N];
    let stride = N as isize;
    shortest(4, || {
        // SAFETY: three whole row-major N×N matrices; `c` is borrowed exclusively.
        #[allow(unsafe_code)]
        unsafe {
            let (a, b) = (a.as_ptr(), b.as_ptr());
            matrixmultiply::sgemm(
                N,
                N,
                N,
                1.0,
                a,
                stride,
                1,
                b,
                stride,
                1,
                0.0,
                c.as_mut_ptr(),
                stride,
                1,
            );
        }
    })
}

/// The processor time of ten clients' local training on that many threads.
fn clients(data: &Dataset, threads: usize) -> f64 {
    let model = Mlp::new(&[784, 30, 10]);
    let start = model.initialise(Key::new(1, Purpose::Model));
    let settings = LocalSettings { steps: 100, batch: BATCH, rate: 0.05 };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let before = processor_time();
    pool.install(|| {
        (0..10_u64).into_par_iter().for_each_init(
            || Trainer::new(&model, BATCH),
            |trainer, client| {
                let samples: Vec<u32> =
                    (6000 * client as u32..6000 * (client as u32 + 1)).collect();
                let mut weights = start.clone();
                let key = Key::new(1, Purpose::Batch).client(client);
                let adjust = &mut |_: &[f32], _: &mut [f32]| ();
                let train = &data.train;
                local(&model, &mut weights, train, &samples, &settings, key, adjust, trainer);
            },
        );
    });
    processor_time() - before
}

/// Seconds of processor time of all threads of this process: other programs' load counts less than on a clock.
fn processor_time() -> f64 {
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    {
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
        }
        const PROCESS: i32 = 2;
        let mut time = [0; 2];
        // SAFETY: on 64-bit Linux a `timespec` is two 64-bit numbers, seconds and nanoseconds.
        if unsafe { clock_gettime(PROCESS, &mut time) } == 0 {
            return time[0] as f64 + 1e-9 * time[1] as f64;
        }
    }
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

fn mnist() -> Arc<Dataset> {
    load(&DataSpec::default(), FilePath::new(".")).expect("MNIST is embedded")
}

fn measure(name: &str) -> Option<f64> {
    Some(match name {
        "product" => product(),
        "mlp" => Case::mlp(&mnist()).step(300),
        "resnet20" => Case::resnet20(Path::best()).step(2),
        "resnet20-portable" => Case::resnet20(*Path::supported().last()?).step(1),
        "cnn" => Case::cnn(Path::best()).step(5),
        "cnn-portable" => Case::cnn(*Path::supported().last()?).step(2),
        "evaluate" => {
            let data = mnist();
            let model = Mlp::new(&[784, 30, 10]);
            let weights = model.initialise(Key::new(1, Purpose::Model));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
            pool.install(|| {
                shortest(3, || {
                    black_box(evaluate(&model, &weights, &data.train));
                    black_box(evaluate(&model, &weights, &data.test));
                })
            })
        }
        "clients-1" => clients(&mnist(), 1),
        "clients-2" => clients(&mnist(), 2),
        _ => return None,
    })
}

fn main() {
    if std::env::args().any(|argument| argument == "--serve") {
        for name in std::io::stdin().lock().lines().map_while(Result::ok) {
            match measure(&name) {
                Some(seconds) => println!("{seconds}"),
                None => println!("unknown"),
            }
            std::io::stdout().flush().expect("standard output is open");
        }
        return;
    }
    println!("instruction set: {}", Path::best().name());
    for name in NAMES {
        if let Some(seconds) = measure(name) {
            println!("{name:18} {:10.3} ms", 1e3 * seconds);
        }
    }
}
