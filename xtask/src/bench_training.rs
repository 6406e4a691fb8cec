//! `cargo xtask bench training`: what clients compute, beside PyTorch, in one interleaved run on one thread.
//!
//! Two programs, `crates/fedcote-learn/benches/training.rs` and `bench/training/pytorch.py`, answer the name of a
//! measurement with the processor seconds it took; they are asked in turn, several times, and the best of each
//! counts. PyTorch is installed into a virtual environment under `target/` (about 5 GB), unless the environment
//! variable `FEDCOTE_TORCH_PYTHON` names a Python that has it.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// How often each measurement is taken.
const ROUNDS: usize = 5;
/// Operations of a 768×768×768 matrix product.
const PRODUCT: f64 = 2.0 * 768.0 * 768.0 * 768.0;
/// Multiply-adds of an image in the first layer of ResNet-20 (whose input needs no gradient) and in the others.
const FIRST: f64 = 1024.0 * 27.0 * 16.0;
const OTHERS: f64 = 6.0 * 1024.0 * 2304.0
    + 256.0 * (4608.0 + 5.0 * 9216.0)
    + 64.0 * (18432.0 + 5.0 * 36864.0)
    + 640.0;
/// Operations of a step with 128 samples: forward, weight gradient, input gradient.
const RESNET: f64 = 128.0 * 2.0 * (2.0 * FIRST + 3.0 * OTHERS);
const MLP: f64 = 128.0 * 2.0 * (2.0 * 784.0 * 30.0 + 3.0 * 300.0);

/// A program that answers measurements.
struct Side {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Side {
    fn start(name: &'static str, command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{name}: cannot start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name}: no pipes"));
        };
        Ok(Self { name, child, input, output: BufReader::new(output) })
    }

    fn ask(&mut self, measurement: &str) -> Result<f64, String> {
        let name = self.name;
        let failed = |error: std::io::Error| format!("{name}: {measurement}: {error}");
        writeln!(self.input, "{measurement}").map_err(failed)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(failed)?;
        line.trim().parse().map_err(|_| format!("{name}: {measurement}: answered {line:?}"))
    }

    /// Closes its input, at which it ends.
    fn finish(self) -> Result<(), String> {
        let Self { name, mut child, input, .. } = self;
        drop(input);
        child.wait().map(drop).map_err(|error| format!("{name}: {error}"))
    }
}

/// Runs both sides in turn and prints the comparison.
pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let python = torch_python(root)?;
    let mut ours = Side::start(
        "fedcote",
        Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
            .args(["bench", "-p", "fedcote-learn", "--bench", "training", "--", "--serve"])
            .current_dir(root),
    )?;
    let mut theirs = Side::start(
        "pytorch",
        Command::new(python)
            .arg(root.join("bench/training/pytorch.py"))
            .env("OMP_NUM_THREADS", "1"),
    )?;
    const OURS: [&str; 7] =
        ["product", "mlp", "resnet20", "cnn", "evaluate", "clients-1", "clients-2"];
    const THEIRS: [&str; 7] = [
        "product",
        "mlp",
        "resnet20",
        "resnet20-channels-last",
        "cnn",
        "cnn-channels-last",
        "evaluate",
    ];
    let (mut fedcote, mut pytorch) = ([f64::INFINITY; 7], [f64::INFINITY; 7]);
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        for i in 0..OURS.len() {
            fedcote[i] = fedcote[i].min(ours.ask(OURS[i])?);
            pytorch[i] = pytorch[i].min(theirs.ask(THEIRS[i])?);
        }
    }
    ours.finish()?;
    theirs.finish()?;

    let [product, mlp, resnet, cnn, evaluate, one, two] = fedcote;
    let [
        their_product,
        their_mlp,
        eager,
        channels_last,
        cnn_eager,
        cnn_channels_last,
        their_evaluate,
    ] = pytorch;
    let their_resnet = eager.min(channels_last);
    let peak = PRODUCT / product.min(their_product);
    println!("one thread, processor time, best of {ROUNDS} interleaved rounds");
    println!("| | FedCote | PyTorch | ratio | wanted |");
    println!("|---|---|---|---|---|");
    let row = |name: &str, ours: f64, theirs: f64, wanted: &str| {
        println!(
            "| {name} | {:.3} ms | {:.3} ms | {:.2} | {wanted} |",
            1e3 * ours,
            1e3 * theirs,
            theirs / ours
        );
    };
    row("MLP 784×30×10, step of 128", mlp, their_mlp, "4");
    row("ResNet-20, step of 128, PyTorch eager", resnet, eager, "1.5");
    row("ResNet-20, step of 128, PyTorch channels last", resnet, channels_last, "1.5");
    row("CNN of 551,786 parameters, step of 128, PyTorch eager", cnn, cnn_eager, "1.5");
    row("the same, PyTorch channels last", cnn, cnn_channels_last, "1.5");
    row("70,000 MNIST images evaluated", evaluate, their_evaluate, "1");
    row("matrix product 768×768×768", product, their_product, "");
    println!();
    println!(
        "The fastest matrix product runs at {:.1} GFLOP/s. Shares of it, counting the operations",
        peak / 1e9
    );
    println!("of direct convolutions and dense products:");
    for (name, operations, ours, theirs) in
        [("ResNet-20", RESNET, resnet, their_resnet), ("MLP", MLP, mlp, their_mlp)]
    {
        let share = |time: f64| 100.0 * operations / time / peak;
        println!("{name}: FedCote {:.0} %, PyTorch {:.0} %", share(ours), share(theirs));
    }
    println!();
    println!(
        "Ten clients on two threads cost {:.3} times the processor time of one thread (wanted: at most 1.1).",
        two / one
    );
    Ok(())
}

/// A Python that has PyTorch.
pub fn torch_python(root: &Path) -> Result<PathBuf, String> {
    if let Some(python) = env::var_os("FEDCOTE_TORCH_PYTHON") {
        return Ok(python.into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let folder = target.join("bench-training");
    let python = folder.join("bin/python");
    let call = |program: &Path, arguments: &[&str]| -> Result<bool, String> {
        let status = Command::new(program).args(arguments).status();
        status.map(|status| status.success()).map_err(|e| format!("{}: {e}", program.display()))
    };
    if python.exists() && call(&python, &["-c", "import torch"])? {
        return Ok(python);
    }
    eprintln!("installing PyTorch into {}", folder.display());
    let made = call(Path::new("python3"), &["-m", "venv", &folder.to_string_lossy()])?;
    if !made || !call(&python, &["-m", "pip", "install", "--quiet", "torch", "numpy"])? {
        return Err("PyTorch could not be installed; see above".into());
    }
    Ok(python)
}
