//! The Python package: format, lints and types of its sources; build the wheel, install it into fresh environments, run
//! its tests.
//!
//! Environments under `target/python`: one with nothing but the wheel; then, tested at the same time, one with the oldest
//! Flower that is supported, one with the newest that resolves, one with Ray, and one without any of them but with JAX,
//! scikit-learn, a notebook's kernel and trackers of experiments. Only the newest Flower plays the real federation on loopback.
//! PyTorch is large: it has an environment and a task of its own, and stays installed.

mod environment;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use environment::Environment;
use environment::call;

/// What is tested: the wheel, and the environment that built it.
pub struct Package {
    tools: Environment,
    wheel: String,
}

/// The package, or why its tests are skipped.
pub enum Built {
    Package(Package),
    Skipped(String),
}

/// Builds the wheel, unless there is no Python, or packages cannot be installed. Continuous integration, where nobody reads
/// what was skipped, fails then.
pub fn package_or_skip() -> Result<Built, String> {
    let version = "import sys; sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", version]).status();
    let tools = if found.is_ok_and(|status| status.success()) {
        println!(
            "Installs maturin and ziglang from the Python package index below {}",
            crate::target().display()
        );
        let made = tools(&crate::target().join("python"));
        // What is installed says nothing of what is to come.
        let made = made.and_then(|tools| tools.reach("pytest").map(|()| tools));
        made.map_err(|reason| {
            format!("packages cannot be installed, for want of a network perhaps ({reason})")
        })
    } else {
        Err("there is no `python3` of version 3.10 or newer".to_owned())
    };
    match tools {
        Ok(tools) => package(tools).map(Built::Package),
        Err(reason) if crate::strict() => Err(format!("Python: {reason}")),
        Err(reason) => Ok(Built::Skipped(reason)),
    }
}

/// Builds the wheel.
fn package(tools: Environment) -> Result<Package, String> {
    let wheel = tools.wheel(crate::root(), &crate::target().join("python"))?;
    Ok(Package { tools, wheel })
}

/// Builds and tests everything.
pub fn run() -> Result<(), String> {
    test(&package(tools(&crate::target().join("python"))?)?)
}

/// Tests the wheel and the Python sources.
pub fn test(Package { tools, wheel }: &Package) -> Result<(), String> {
    let root = crate::root();
    let folder = crate::target().join("python");
    println!(
        "Installs ruff, mypy, pytest, pandas, polars, JAX, scikit-learn, dp-accounting, ipykernel, MLflow, wandb, Flower and Ray \
         from the Python package index into environments in {} (about 3 GB): they test the Python package",
        folder.display()
    );
    tools.install(&["ruff>=0.9"])?;
    call(tools.module("ruff").arg("check").args(PYTHON).current_dir(root))?;
    call(tools.module("ruff").args(["format", "--check"]).args(PYTHON).current_dir(root))?;

    let bare = Environment::fresh(&folder, "bare")?;
    bare.install(&[wheel.as_str()])?;
    bare.command(&folder)?;

    // A real federation waits most of its time: the other tests take theirs meanwhile.
    type Part = fn(&Path, &Environment, &str) -> Result<(), String>;
    let parts: [(&str, Part); 4] = [
        ("flower-newest", newest_flower),
        ("plain", plain),
        ("flower-oldest", oldest_flower),
        ("ray", ray),
    ];
    println!(
        "Four environments are tested at the same time; what each does is in {} until it ends",
        folder.join("NAME.log").display()
    );
    std::thread::scope(|scope| {
        let part = |(name, test): (&'static str, Part)| {
            let (folder, wheel) = (folder.clone(), wheel.as_str());
            scope.spawn(move || {
                let log = folder.join(name).with_extension("log");
                let environment = Environment::fresh(&folder, name);
                let result = environment
                    .and_then(|environment| test(root, &environment.quiet(log.clone()), wheel));
                let told = fs::read(&log).unwrap_or_default();
                println!("--- {name}\n{}", String::from_utf8_lossy(&told));
                result.map_err(|reason| format!("{name}, see {}: {reason}", log.display()))
            })
        };
        let started: Vec<_> = parts.into_iter().map(part).collect();
        crate::all_of(started.into_iter().map(|part| {
            part.join().unwrap_or_else(|_| Err("a part of the Python tests panicked".into()))
        }))
    })
}

/// The newest Flower with real federations on loopback, and the types of all sources and examples.
fn newest_flower(root: &Path, newest: &Environment, wheel: &str) -> Result<(), String> {
    newest.install(&[&format!("{wheel}[flower]"), "flwr>=1.21", "pytest", "mypy>=1.14"])?;
    let real = newest.beside("real");
    std::thread::scope(|scope| {
        let federations = scope
            .spawn(|| real.pytest(root, &REAL, &[("FEDCOTE_REAL_FEDERATION", OsStr::new("1"))]));
        let rest = (|| {
            for files in
                ["python/fedcote", "python/tests/typed.py", "examples/flower", "examples/nvflare"]
            {
                newest.types(root, &[files])?;
            }
            newest.pytest(root, &FLOWER, &[])
        })();
        let federations = federations.join();
        newest.append(&real);
        let federations = federations.unwrap_or_else(|_| Err("real federations panicked".into()));
        crate::all_of([rest, federations])
    })
}

/// Without Flower, with what tasks and results need.
fn plain(root: &Path, plain: &Environment, wheel: &str) -> Result<(), String> {
    let wanted = [
        "pytest",
        "pandas",
        "polars",
        "jax",
        "scikit-learn",
        "tensorboard",
        "jsonschema",
        "dp-accounting",
    ];
    plain.install(&[&[wheel], wanted.as_slice(), &NOTEBOOKS, &TRACKERS].concat())?;
    let draws = draws(root, &crate::target().join("python"))?;
    plain.pytest(root, &["python/tests"], &[("FEDCOTE_DRAWS", draws.as_os_str())])
}

/// The oldest Flower that is supported, without a real federation.
fn oldest_flower(root: &Path, oldest: &Environment, wheel: &str) -> Result<(), String> {
    oldest.install(&[&format!("{wheel}[flower]"), "flwr==1.21.0", "pytest"])?;
    oldest.pytest(root, &FLOWER, &[])
}

/// Clusters of Ray on this machine.
fn ray(root: &Path, ray: &Environment, wheel: &str) -> Result<(), String> {
    ray.install(&[&format!("{wheel}[ray]"), "pytest"])?;
    ray.pytest(root, &["python/tests/test_ray.py"], &[("FEDCOTE_RAY", OsStr::new("1"))])
}

/// The example for NVFlare in its own simulator.
pub fn nvflare() -> Result<(), String> {
    let root = crate::root();
    let folder = crate::target().join("python");
    println!(
        "Installs maturin and NVFlare from the Python package index into environments in {}",
        folder.display()
    );
    let wheel = tools(&folder)?.wheel(root, &folder)?;
    let environment = Environment::fresh(&folder, "nvflare")?;
    environment.install(&[wheel.as_str(), "nvflare>=2.9"])?;
    let mut job = Command::new(&environment.python);
    job.args(["job.py", "--rounds", "10"]).current_dir(root.join("examples/nvflare"));
    println!("$ {}", format!("{job:?}").replace('"', ""));
    let ran = job.output().map_err(|error| format!("{job:?}: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let accuracy = text.lines().rev().find_map(|line| {
        line.strip_prefix("test accuracy after 10 rounds: ").and_then(|rest| rest.parse().ok())
    });
    match accuracy {
        Some(accuracy) if ran.status.success() && 0.8 < accuracy => {
            println!("test accuracy {accuracy}");
            Ok(())
        }
        _ => Err(format!(
            "{job:?}: {}\n{text}\n{}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        )),
    }
}

/// Tests what needs PyTorch, and the types of sources and examples that use it.
pub fn torch() -> Result<(), String> {
    let root = crate::root();
    let folder = crate::target().join("python");
    println!(
        "Installs PyTorch from the Python package index into an environment in {}, unless it is there: a download of 3 GB, \
         6 GB on the disk",
        folder.display()
    );
    let wheel = tools(&folder)?.wheel(root, &folder)?;
    let environment = Environment::new(&folder, "torch")?;
    let wanted = [&format!("{wheel}[torch,flower]"), "pytest", "mypy>=1.14"];
    environment.install(&[wanted.as_slice(), &NOTEBOOKS].concat())?;
    // The version is the same whatever was changed.
    environment.install(&["--force-reinstall", "--no-deps", &wheel])?;
    let tests = [
        "test_correction.py",
        "test_torch.py",
        "test_torch_data.py",
        "test_docs.py",
        "test_notebooks.py",
    ];
    let tests = tests.map(|name| format!("python/tests/{name}"));
    environment.pytest(root, &tests.each_ref().map(String::as_str), &[])?;
    environment.types(root, &["python/fedcote/torch.py", "examples/torch"])
}

/// What executes notebooks.
const NOTEBOOKS: [&str; 2] = ["nbclient", "ipykernel"];

/// Trackers of experiments; MLflow without its server.
const TRACKERS: [&str; 2] = ["mlflow-skinny", "wandb"];

/// The tests with processes of Flower.
const REAL: [&str; 1] = ["python/tests/test_federation.py"];

/// The tests that need Flower; all others run without it.
const FLOWER: [&str; 15] = [
    "python/tests/test_attack.py",
    "python/tests/test_client.py",
    "python/tests/test_correction.py",
    "python/tests/test_docs.py",
    "python/tests/test_flower.py",
    "python/tests/test_flower_clients.py",
    "python/tests/test_flower_control.py",
    "python/tests/test_flower_gate.py",
    "python/tests/test_flower_memory.py",
    "python/tests/test_flower_optimizer.py",
    "python/tests/test_flower_privacy.py",
    "python/tests/test_flower_state.py",
    "python/tests/test_flower_wireless.py",
    "python/tests/test_package.py",
    "python/tests/test_soak.py",
];

/// Python sources, for ruff.
const PYTHON: [&str; 5] = ["python/fedcote", "python/tests", "python/bench", "examples", "bench"];

/// The environment that builds wheels.
pub fn tools(folder: &Path) -> Result<Environment, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tools = Environment::new(folder, "tools")?;
    // Zig links against the symbols of an older glibc than the one that is here.
    tools.install(&["maturin>=1.8,<2", "ziglang>=0.13"])?;
    Ok(tools)
}

/// What chance decided in small federations, for the implementation in NumPy.
fn draws(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let file = folder.join("draws.json");
    let written =
        fs::File::create(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let build = ["build", "--quiet", "--workspace", "--example", "draws"];
    call(crate::cargo().args(build).current_dir(root))?;
    call(Command::new(crate::target().join("debug/examples/draws")).stdout(written))?;
    Ok(file)
}
