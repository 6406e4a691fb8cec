//! The Python package: format, lints and types of its sources; build the wheel, install it into fresh environments, run
//! its tests.
//!
//! Environments under `target/python`: one with nothing but the wheel, one with the oldest Flower that is supported, one
//! with the newest that resolves, one with Ray, and one without any of them but with JAX, scikit-learn, a notebook's kernel and trackers of experiments. Only the newest
//! Flower plays the real federation on loopback. PyTorch is large: it has an environment and a task of its own, and stays
//! installed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Builds and tests everything; without Python, or without packages, a line says that it was skipped. Continuous
/// integration, where nobody reads that line, fails instead.
pub fn run_or_skip() -> Result<(), String> {
    let version = "import sys; sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", version]).status();
    let missing = if found.is_ok_and(|status| status.success()) {
        println!(
            "Installs maturin and ziglang from the Python package index below {}",
            crate::target().display()
        );
        tools(&crate::target().join("python")).err().map(|reason| {
            format!("packages cannot be installed, for want of a network perhaps ({reason})")
        })
    } else {
        Some("there is no `python3` of version 3.10 or newer".to_owned())
    };
    match missing {
        None => run(),
        Some(reason) if crate::strict() => Err(format!("Python: {reason}")),
        Some(reason) => {
            println!("Python tests SKIPPED: {reason}");
            Ok(())
        }
    }
}

/// Builds and tests everything.
pub fn run() -> Result<(), String> {
    let root = crate::root();
    let folder = crate::target().join("python");
    println!(
        "Installs maturin, ziglang, ruff, mypy, pytest, pandas, polars, JAX, scikit-learn, dp-accounting, ipykernel, MLflow, wandb, Flower and Ray \
         from the Python package index into environments in {} (about 3 GB): they build and test the Python package",
        folder.display()
    );
    let tools = tools(&folder)?;
    tools.install(&["ruff>=0.9"])?;
    call(tools.module("ruff").arg("check").args(PYTHON).current_dir(root))?;
    call(tools.module("ruff").args(["format", "--check"]).args(PYTHON).current_dir(root))?;
    let wheel = tools.wheel(root, &folder)?;

    let bare = Environment::fresh(&folder, "bare")?;
    bare.install(&[wheel.as_str()])?;
    bare.command(&folder)?;

    let plain = Environment::fresh(&folder, "plain")?;
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
    plain.install(&[&[wheel.as_str()], wanted.as_slice(), &NOTEBOOKS, &TRACKERS].concat())?;
    let draws = draws(root, &folder)?;
    plain.pytest(root, &["python/tests"], &[("FEDCOTE_DRAWS", draws.as_os_str())])?;

    for (name, flower, real) in
        [("flower-oldest", "flwr==1.21.0", false), ("flower-newest", "flwr>=1.21", true)]
    {
        let environment = Environment::fresh(&folder, name)?;
        environment.install(&[&format!("{wheel}[flower]"), flower, "pytest"])?;
        let real = real.then_some(("FEDCOTE_REAL_FEDERATION", OsStr::new("1")));
        environment.pytest(root, &FLOWER, real.as_slice())?;
        if real.is_some() {
            environment.install(&["mypy>=1.14"])?;
            environment.types(root, &["python/fedcote"])?;
            environment.types(root, &["python/tests/typed.py"])?;
            environment.types(root, &["examples/flower"])?;
            environment.types(root, &["examples/nvflare"])?;
        }
    }

    let ray = Environment::fresh(&folder, "ray")?;
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
    let wanted = [&format!("{wheel}[torch]"), "pytest", "mypy>=1.14"];
    environment.install(&[wanted.as_slice(), &NOTEBOOKS].concat())?;
    // The version is the same whatever was changed.
    environment.install(&["--force-reinstall", "--no-deps", &wheel])?;
    let tests = ["test_torch.py", "test_torch_data.py", "test_docs.py", "test_notebooks.py"];
    let tests = tests.map(|name| format!("python/tests/{name}"));
    environment.pytest(root, &tests.each_ref().map(String::as_str), &[])?;
    environment.types(root, &["python/fedcote/torch.py", "examples/torch"])
}

/// What executes notebooks.
const NOTEBOOKS: [&str; 2] = ["nbclient", "ipykernel"];

/// Trackers of experiments; MLflow without its server.
const TRACKERS: [&str; 2] = ["mlflow-skinny", "wandb"];

/// The tests that need Flower; all others have run without it.
const FLOWER: [&str; 16] = [
    "python/tests/test_attack.py",
    "python/tests/test_client.py",
    "python/tests/test_correction.py",
    "python/tests/test_docs.py",
    "python/tests/test_federation.py",
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
const PYTHON: [&str; 4] = ["python/fedcote", "python/tests", "python/bench", "examples"];

/// The environment that builds wheels.
fn tools(folder: &Path) -> Result<Environment, String> {
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

/// The tag of the wheel: any Linux since 2018.
const GLIBC: &str = "manylinux_2_28";

/// A virtual environment of Python.
pub struct Environment {
    python: PathBuf,
}

impl Environment {
    /// The environment of this name, made if it is not there.
    pub fn new(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        let python = home.join("bin/python");
        if !python.exists() {
            call(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        }
        Ok(Self { python })
    }

    /// The environment of this name, with nothing in it.
    fn fresh(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        if home.exists() {
            fs::remove_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        }
        Self::new(folder, name)
    }

    /// A module of the environment as a command.
    pub fn module(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-m", name]);
        command
    }

    /// Installs packages that are not there.
    pub fn install(&self, packages: &[&str]) -> Result<(), String> {
        let quiet = ["install", "--quiet", "--disable-pip-version-check"];
        call(self.module("pip").args(quiet).args(packages))
    }

    /// Builds the wheel and says where it is.
    fn wheel(&self, root: &Path, folder: &Path) -> Result<String, String> {
        let wheels = folder.join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)
                .map_err(|error| format!("{}: {error}", wheels.display()))?;
        }
        let mut maturin = self.module("maturin");
        maturin.args(["build", "--release", "--quiet", "--interpreter"]).arg(&self.python);
        maturin.arg("--out").arg(&wheels).current_dir(root);
        if cfg!(target_os = "linux") {
            // Zig is a module of the Python that is first in the path.
            let programs = self.python.parent().map(Path::to_owned);
            let others = std::env::var_os("PATH").unwrap_or_default();
            let path = programs.into_iter().chain(std::env::split_paths(&others));
            maturin.env("PATH", std::env::join_paths(path).map_err(|error| error.to_string())?);
            maturin.args(["--zig", "--compatibility", GLIBC]);
        }
        call(&mut maturin)?;
        let found =
            fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
        let mut found = found.filter_map(Result::ok).map(|entry| entry.path());
        let wheel = found.find(|path| path.extension() == Some(OsStr::new("whl")));
        let wheel = wheel.ok_or("maturin made no wheel")?;
        let tagged = wheel.file_name().is_some_and(|name| name.to_string_lossy().contains(GLIBC));
        if cfg!(target_os = "linux") && !tagged {
            return Err(format!("{}: its tag is not {GLIBC}", wheel.display()));
        }
        wheel.to_str().map(str::to_owned).ok_or_else(|| "the wheel's path is not text".into())
    }

    /// Runs the installed command where there is nothing else: no Rust, no PyTorch, no Flower.
    fn command(&self, folder: &Path) -> Result<(), String> {
        let programs = self.python.parent().ok_or("an environment has a folder for programs")?;
        let out = folder.join("bare-run");
        if out.exists() {
            fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        }
        let mut command = Command::new(programs.join("fedcote"));
        command.env_clear().env("PATH", programs).args(["run", "--rounds", "2", "--out"]).arg(&out);
        call(&mut command)?;
        if out.join("report.html").exists() { Ok(()) } else { Err("no report was written".into()) }
    }

    /// Runs the tests, outside the source tree's package, so that the installed one is meant.
    fn pytest(
        &self,
        root: &Path,
        files: &[&str],
        variables: &[(&str, &OsStr)],
    ) -> Result<(), String> {
        let mut pytest = self.module("pytest");
        pytest.current_dir(root).args(files).envs(variables.iter().copied());
        call(&mut pytest)
    }

    /// Checks types, as strictly as `pyproject.toml` says.
    fn types(&self, root: &Path, files: &[&str]) -> Result<(), String> {
        call(self.module("mypy").args(files).current_dir(root))
    }
}

/// Prints a command and runs it; its output goes where ours goes, and how long it took where that is worth knowing.
fn call(command: &mut Command) -> Result<(), String> {
    println!("$ {}", format!("{command:?}").replace('"', ""));
    let begun = Instant::now();
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    let seconds = begun.elapsed().as_secs();
    if seconds >= 5 {
        println!("  took {seconds} s");
    }
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
