//! The scenario that is tortured, the undisturbed reference, and the judgement after a fault.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::Chance;
use super::faults::{self, Fault};

const SCENARIO: &str = r#"
rounds = 40
clients = 6
selected = 4
seeds = [1, 2]
schemes = ["fedavg", "fedcote", "scaffold", "fedcote-memory", "newt"]
evaluate_every = 5
checkpoint_every = 3
[data]
set = "synthetic"
samples = 600
features = 10
classes = 3
partition = "dirichlet"
[model]
kind = "mlp"
hidden = [8]
[training]
local_steps = 4
batch = 16
rate = 0.1
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
knowledge = "estimated"
[server]
clip = 2.0
[hostile]
clients = [4]
kind = "scaled"
factor = -100.0
"#;

/// Files by their path in the folder.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Where faults are injected.
pub struct Bench {
    program: PathBuf,
    folder: PathBuf,
    reference: Files,
    /// How long an undisturbed comparison takes.
    pub duration: Duration,
    /// Whether file systems can be mounted.
    mounts: bool,
}

/// How a folder recovered.
pub struct Recovered {
    /// How often the command refused, with advice that helped.
    pub refusals: u64,
}

impl Bench {
    /// Runs the reference.
    pub fn new(program: &Path, folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::write(folder.join("mine.toml"), SCENARIO).map_err(|error| error.to_string())?;
        let mut bench = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            reference: Files::new(),
            duration: Duration::ZERO,
            mounts: false,
        };
        let begun = Instant::now();
        let done = bench.command("calm").output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(format!("the undisturbed run: {}", text(&done.stderr)));
        }
        bench.duration = begun.elapsed();
        bench.reference = comparable(&folder.join("calm"));
        bench.mounts = faults::Mount::new(&folder.join("probe"), 64).is_ok();
        Ok(bench)
    }

    /// Whether a kind of fault can be injected here.
    pub fn can(&self, fault: Fault) -> bool {
        self.mounts || !fault.mounts()
    }

    /// The command that begins or goes on in a folder.
    pub fn command(&self, out: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "mine.toml", "--json", "--resume", "--out", out]);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The program under test, for faults that start it in their own way.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The folder that everything happens in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Injects one fault into a new folder and sees what becomes of it.
    pub fn round(&self, fault: Fault, chance: &mut Chance) -> Result<Recovered, String> {
        let out = self.folder.join("out");
        let clear = || match fs::remove_dir_all(&out) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        };
        clear()?;
        let harmed = fault.inject(self, &out, chance)?;
        // What was finished and not harmed must be there afterwards, not made again: the seconds would differ.
        let finished: Files = files(&out)
            .into_iter()
            .filter(|(path, _)| path.ends_with("finished.json"))
            .filter(|(path, _)| !harmed.iter().any(|harmed| harmed.parent() == path.parent()))
            .collect();
        let refusals = self.recover(&out)?;
        self.judge(&out)?;
        let after = files(&out);
        for (path, contents) in &finished {
            if after.get(path) != Some(contents) {
                return Err(format!("{} was finished and has been lost", path.display()));
            }
        }
        clear()?;
        Ok(Recovered { refusals })
    }

    /// Resumes until it succeeds, doing what refusals say.
    fn recover(&self, out: &Path) -> Result<u64, String> {
        for refusals in 0..20 {
            let done = self.command("out").output().map_err(|error| error.to_string())?;
            if done.status.success() {
                return Ok(refusals);
            }
            let told = one_line(&done)?;
            // `PATH: … remove DIR to run it again` or `DIR: … or remove this folder`.
            let named = told.split_once("remove ").map(|(_, rest)| rest);
            let folder = match named {
                Some(rest) if rest.starts_with("this folder") => {
                    told.trim_start_matches("fedcote: ").split(": ").next()
                }
                Some(rest) => rest.split(" to run it again").next(),
                None => None,
            };
            let folder = folder.ok_or(format!("a refusal that says not what to do: {told}"))?;
            let folder = self.folder.join(folder);
            if !folder.starts_with(out) || folder == out || !folder.is_dir() {
                return Err(format!("advice that cannot be followed: {told}"));
            }
            fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        }
        Err("twenty refusals, and no end".to_owned())
    }

    /// Compares a finished folder with the reference, and looks for litter.
    fn judge(&self, out: &Path) -> Result<(), String> {
        let found = comparable(out);
        for (path, contents) in &self.reference {
            match found.get(path) {
                None => return Err(format!("{} is missing", path.display())),
                Some(other) if other != contents => {
                    return Err(format!("{} is silently wrong", path.display()));
                }
                _ => {}
            }
        }
        let litter = |path: &&PathBuf| {
            path.extension().is_some_and(|extension| extension == "part")
                || path.components().any(|part| part.as_os_str() == "checkpoint")
        };
        match files(out).keys().find(litter) {
            Some(path) => Err(format!("{} was left behind", path.display())),
            None => Ok(()),
        }
    }

    /// Cleans up after success.
    pub fn leave(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The one line of a refusal; anything else is an error.
pub fn one_line(done: &Output) -> Result<String, String> {
    let told = text(&done.stderr);
    let lines = told.lines().count();
    if !matches!(done.status.code(), Some(1..=3)) || lines != 1 || !told.starts_with("fedcote: ") {
        return Err(format!("ended with {} and {lines} lines: {told}", done.status));
    }
    Ok(told.trim_end().to_owned())
}

/// What the program said.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All files below a folder, by relative path.
pub fn files(folder: &Path) -> Files {
    fn walk(folder: &Path, below: &Path, found: &mut Files) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, found),
                _ => drop(found.insert(path, fs::read(entry.path()).unwrap_or_default())),
            }
        }
    }
    let mut found = Files::new();
    walk(folder, Path::new(""), &mut found);
    found
}

/// The files that must not depend on what happened: all but those that tell the time.
pub fn comparable(out: &Path) -> Files {
    let mut found = files(out);
    found.retain(|path, _| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let timed = ["finished.json", "summary.json", "summary.csv", "report.html", ".lock"];
        !timed.contains(&name)
    });
    // A configuration that means the same is as good as before: blank lines and the command that began it say
    // nothing, and how often is saved changes no number.
    for (path, contents) in &mut found {
        if path.ends_with("config.toml") || path.ends_with("scenario.toml") {
            let text = String::from_utf8_lossy(contents);
            let says = |line: &&str| {
                !line.is_empty() && !line.starts_with('#') && !line.starts_with("checkpoint_every")
            };
            *contents = text.lines().filter(says).collect::<Vec<_>>().join("\n").into_bytes();
        }
    }
    // The summary without its seconds.
    let summary = fs::read_to_string(out.join("summary.csv")).unwrap_or_default();
    let mut lines = summary.lines().map(|line| line.split(',').collect::<Vec<_>>());
    if let Some(header) = lines.next() {
        let at = header.iter().position(|name| *name == "seconds_mean");
        let rest: Vec<String> = lines
            .map(|mut line| {
                at.map(|at| line.remove(at));
                line.join(",")
            })
            .collect();
        found.insert("summary.csv".into(), rest.join("\n").into_bytes());
    }
    found
}
