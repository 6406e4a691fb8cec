//! Virtual environments of Python, below `target/python`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The tag of the wheel: any Linux since 2018.
const GLIBC: &str = "manylinux_2_28";

/// A virtual environment of Python.
pub struct Environment {
    /// Its interpreter.
    pub python: PathBuf,
    /// Where its output goes, if not where ours goes.
    log: Option<PathBuf>,
}

impl Environment {
    /// The environment of this name, made if it is not there.
    pub fn new(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        let python = home.join("bin/python");
        if !python.exists() {
            call(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        }
        Ok(Self { python, log: None })
    }

    /// The environment of this name, with nothing in it.
    pub fn fresh(folder: &Path, name: &str) -> Result<Self, String> {
        let home = folder.join(name);
        if home.exists() {
            fs::remove_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        }
        Self::new(folder, name)
    }

    /// The same, whose output goes into a file.
    pub fn quiet(self, log: PathBuf) -> Self {
        let _ = fs::remove_file(&log);
        Self { log: Some(log), ..self }
    }

    /// The same environment with a file of its own for output, for what runs at the same time.
    pub fn beside(&self, name: &str) -> Self {
        let log = self.log.as_ref().map(|log| log.with_extension(format!("{name}.log")));
        let other = Self { python: self.python.clone(), log: None };
        match log {
            Some(log) => other.quiet(log),
            None => other,
        }
    }

    /// Puts what `other` has written at the end of this environment's output.
    pub fn append(&self, other: &Self) {
        let (Some(to), Some(from)) = (&self.log, &other.log) else { return };
        let told = fs::read(from).unwrap_or_default();
        let file = fs::OpenOptions::new().create(true).append(true).open(to);
        // What cannot be told is told by the result all the same.
        let _ = file.and_then(|mut file| file.write_all(&told));
    }

    /// Runs a command; its output, and what is said of it, where this environment's goes.
    fn call(&self, command: &mut Command) -> Result<(), String> {
        let Some(log) = &self.log else { return call(command) };
        let wrong = |error| format!("{}: {error}", log.display());
        let mut file = fs::OpenOptions::new().create(true).append(true).open(log).map_err(wrong)?;
        writeln!(file, "$ {}", shown(command)).map_err(wrong)?;
        command.stdout(file.try_clone().map_err(wrong)?).stderr(file.try_clone().map_err(wrong)?);
        let seconds = run(command)?;
        writeln!(file, "  took {seconds} s").map_err(wrong)
    }

    /// A module of the environment as a command.
    pub fn module(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        // Without it every process would compile anew what `install` leaves uncompiled.
        command.args(["-m", name]).env_remove("PYTHONDONTWRITEBYTECODE");
        command
    }

    /// Installs packages that are not there. Most of their modules are never imported: to compile all of them takes half
    /// of the time.
    pub fn install(&self, packages: &[&str]) -> Result<(), String> {
        let options = ["install", "--quiet", "--no-compile", "--disable-pip-version-check"];
        self.call(self.module("pip").args(options).args(packages))
    }

    /// Whether a package could be installed now, if it were not there.
    pub fn reach(&self, package: &str) -> Result<(), String> {
        let options = ["install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"];
        self.call(self.module("pip").args(options).args(["--disable-pip-version-check", package]))
    }

    /// Builds the wheel and says where it is.
    pub fn wheel(&self, root: &Path, folder: &Path) -> Result<String, String> {
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
    pub fn command(&self, folder: &Path) -> Result<(), String> {
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
    pub fn pytest(
        &self,
        root: &Path,
        files: &[&str],
        variables: &[(&str, &OsStr)],
    ) -> Result<(), String> {
        let mut pytest = self.module("pytest");
        pytest.current_dir(root).args(files).envs(variables.iter().copied());
        self.call(&mut pytest)
    }

    /// Checks types, as strictly as `pyproject.toml` says.
    pub fn types(&self, root: &Path, files: &[&str]) -> Result<(), String> {
        self.call(self.module("mypy").args(files).current_dir(root))
    }
}

/// Prints a command and runs it; its output goes where ours goes, and how long it took where that is worth knowing.
pub fn call(command: &mut Command) -> Result<(), String> {
    println!("$ {}", shown(command));
    let seconds = run(command)?;
    if seconds >= 5 {
        println!("  took {seconds} s");
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    format!("{command:?}").replace('"', "")
}

/// Runs a command; how many seconds it took.
fn run(command: &mut Command) -> Result<u64, String> {
    let begun = Instant::now();
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        Ok(begun.elapsed().as_secs())
    } else {
        Err(format!("{command:?} failed: {status}"))
    }
}
