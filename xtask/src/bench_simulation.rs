//! `cargo xtask bench simulation`: whole runs beside the same loop in PyTorch, and the cost of a round by federation
//! size.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench_training::torch_python;

/// Repeats of the interleaved comparison; the best of each side counts.
const REPEATS: usize = 3;

/// Builds the command, then runs both parts.
pub fn run() -> Result<(), String> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent folder")?;
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--quiet", "-p", "fedcote-cli"]).current_dir(root);
    measure(&mut build)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let fedcote = target.join("release").join("fedcote");
    let out = target.join("bench-simulation");
    beside_pytorch(root, &fedcote, &out)?;
    by_size(&fedcote, &out)
}

/// 500 rounds of FedAvg on MNIST, evaluated every 10 rounds, both sides in turn on all cores.
fn beside_pytorch(root: &Path, fedcote: &Path, out: &Path) -> Result<(), String> {
    let python = torch_python(root)?;
    let mut ours = Measured::worst();
    let mut theirs = Measured::worst();
    for _ in 0..REPEATS {
        clear(out)?;
        let mut command = Command::new(fedcote);
        command.args(["run", "paper-calibrated", "--json", "--seeds", "1"]);
        command.args(["--set", "schemes=[\"fedavg\"]", "--out"]).arg(out);
        ours = ours.better(measure(&mut command)?);
        let script = root.join("bench/simulation/pytorch.py");
        theirs = theirs.better(measure(Command::new(&python).arg(script))?);
    }
    println!(
        "500 rounds of FedAvg on MNIST, evaluation every 10 rounds, best of {REPEATS}, start-up included"
    );
    println!("{:<10} {:>9} {:>9}", "", "seconds", "peak MB");
    println!("{:<10} {:>9.2} {:>9.0}", "fedcote", ours.seconds, ours.megabytes);
    println!("{:<10} {:>9.2} {:>9.0}", "PyTorch", theirs.seconds, theirs.megabytes);
    println!("ratio      {:>9.1}\n", theirs.seconds / ours.seconds);
    Ok(())
}

/// FedCote with estimated failures on ever larger federations, K = 1,000.
fn by_size(fedcote: &Path, out: &Path) -> Result<(), String> {
    println!(
        "FedCote, softmax regression, K = 1,000, failures estimated: 20 rounds, one evaluation"
    );
    println!("{:>9} {:>12} {:>9}", "clients", "ms per round", "peak MB");
    for clients in [1_000, 10_000, 100_000, 1_000_000] {
        let mut seconds = [0.0; 2];
        let mut megabytes = 0.0;
        // Two lengths, so that making the world does not count.
        for (at, rounds) in [2, 22].into_iter().enumerate() {
            clear(out)?;
            let mut command = Command::new(fedcote);
            command.args(["run", "--json", "--seeds", "1", "--out"]).arg(out);
            for set in [
                format!("rounds={rounds}"),
                format!("clients={clients}"),
                format!("data.samples={}", 2 * clients),
                "selected=1000".to_owned(),
                "schemes=[\"fedcote\"]".to_owned(),
                "evaluate_every=1000".to_owned(),
                "data.set=synthetic".to_owned(),
                "data.partition=iid".to_owned(),
                "model={kind=\"softmax\"}".to_owned(),
                "training.batch=2".to_owned(),
                "network.knowledge=estimated".to_owned(),
            ] {
                command.arg("--set").arg(set);
            }
            let measured = measure(&mut command)?;
            seconds[at] = measured.seconds;
            megabytes = measured.megabytes;
        }
        println!("{clients:>9} {:>12.1} {megabytes:>9.0}", (seconds[1] - seconds[0]) / 20.0 * 1e3);
    }
    clear(out)
}

/// Wall time and peak memory of a command.
#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    megabytes: f64,
}

impl Measured {
    fn worst() -> Self {
        Self { seconds: f64::INFINITY, megabytes: 0.0 }
    }

    fn better(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.min(other.seconds),
            megabytes: self.megabytes.max(other.megabytes),
        }
    }
}

/// Runs a command to its end.
fn measure(command: &mut Command) -> Result<Measured, String> {
    let begun = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{command:?} does not start: {error}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut megabytes = 0.0f64;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            if !status.success() {
                return Err(format!("{command:?} ended with {status}"));
            }
            return Ok(Measured { seconds: begun.elapsed().as_secs_f64(), megabytes });
        }
        let status = std::fs::read_to_string(&status_file).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<f64>().ok());
        megabytes = megabytes.max(kilobytes.unwrap_or(0.0) / 1e3);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn clear(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
