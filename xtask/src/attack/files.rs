//! Files that the command reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Answer;
use super::mutate::mutated;
use crate::torture::Chance;

/// Nothing may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A comparison that takes no time.
const SMALL: &str = "rounds = 4\nclients = 3\nselected = 2\nseeds = [1]\nschemes = [\"fedavg\", \"fedcote\"]\ncheckpoint_every = 1\n\
                     evaluate_every = 2\n[data]\nset = \"synthetic\"\nsamples = 60\n[model]\nkind = \"softmax\"\n\
                     [network]\nkind = \"fixed\"\nfailure = [0.1, 0.2, 0.3]\n";
const TRACED: &str = "rounds = 4\nclients = 3\n[network]\nkind = \"trace\"\nfile = \"trace.csv\"\n";
const TRACE: &str = "round,client,failure\n1,1,0.5\n1,2,0.25\n1,3,1\n2,1,0\n2,2,0.75\n2,3,0.125\n";
const PROBLEMS: [&str; 3] = [
    "{\"selected\": 2, \"threshold\": 0.85, \"groups\": {\"g\": 0.1}, \"clients\": [\n\
     {\"id\": \"a\", \"labels\": [30, 10, 0], \"failure\": 0.1, \"group\": \"g\"},\n\
     {\"id\": \"b\", \"labels\": [0, 40, 2], \"failure\": 0.6, \"group\": \"g\"},\n\
     {\"id\": \"c\", \"labels\": [7, 0, 5.5], \"failure\": 0.95}]}\n",
    "{\"selected\":3,\"clients\":[{\"labels\":[1,2],\"failure\":0},{\"labels\":[3,0],\"failure\":1}]}",
    "id,failure,label_0,label_1\na,0.1,30,10\nb,0.6,0,40\n\"c,\"\"d\",0.3,1e3,0\n",
];

/// Sound files to make hostile ones of.
pub struct Samples {
    program: PathBuf,
    folder: PathBuf,
    scenarios: Vec<Vec<u8>>,
    /// A finished comparison, by path.
    finished: Vec<(PathBuf, Vec<u8>)>,
    /// One that was killed after some rounds.
    begun: Vec<(PathBuf, Vec<u8>)>,
}

impl Samples {
    pub fn new(program: &Path, folder: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut samples = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            scenarios: vec![SMALL.as_bytes().to_vec()],
            finished: Vec::new(),
            begun: Vec::new(),
        };
        for preset in ["quickstart", "paper-dynamic", "fedawe"] {
            let done = Command::new(program).args(["run", preset, "--print-config"]).output();
            samples.scenarios.push(done.map_err(failed)?.stdout);
        }
        fs::write(folder.join("small.toml"), SMALL).map_err(failed)?;
        fs::write(folder.join("traced.toml"), TRACED).map_err(failed)?;
        let out = folder.join("served/one");
        let mut command = samples.command(&["run", "small.toml", "--out"]);
        samples.expect(command.arg(&out), 0)?;
        samples.finished = read(&out).map_err(failed)?;
        // A run whose checkpoint is there: the last round is never reached.
        let long = SMALL.replace("rounds = 4", "rounds = 4000000");
        fs::write(folder.join("long.toml"), long).map_err(failed)?;
        let out = folder.join("begun");
        let mut command = samples.command(&["run", "long.toml", "--threads", "1", "--out"]);
        let mut process = command.arg(&out).stderr(Stdio::null()).spawn().map_err(failed)?;
        let checkpoint = out.join("fedavg/1/checkpoint/state.safetensors");
        let begun = Instant::now();
        while !checkpoint.exists() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        process.kill().and_then(|()| process.wait()).map_err(failed)?;
        samples.begun = read(&out).map_err(failed)?;
        Ok(samples)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Runs a command to its end: its status, and what it said.
    fn call(&self, command: &mut Command) -> Result<(i32, String), String> {
        let failed = |error: std::io::Error| format!("{command:?}: {error}");
        let log = self.folder.join("said");
        let file = fs::File::create(&log).map_err(failed)?;
        let mut process = command.stderr(file).spawn().map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            match process.try_wait().map_err(|error| error.to_string())? {
                Some(status) => {
                    let said = fs::read(&log).map_err(|error| error.to_string())?;
                    let said = String::from_utf8_lossy(&said).into_owned();
                    // One that was killed by a signal has none.
                    return Ok((status.code().unwrap_or(-1), said));
                }
                None if begun.elapsed() > PATIENCE => {
                    // It is ours, and has to go.
                    let _ = process.kill();
                    let _ = process.wait();
                    return Err(format!("{command:?} does not end within {PATIENCE:?}"));
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The status of a command that must be 0, or 1 or 2 with one line.
    fn judge(&self, command: &mut Command) -> Answer {
        let (status, said) = self.call(command)?;
        let line = said.lines().count() == 1 && said.starts_with("fedcote: ");
        let plain = said.chars().all(|c| c == '\n' || !c.is_control());
        match status {
            0 if !said.contains("panicked") => Ok("done".to_owned()),
            1 | 2 if line && plain => Ok("refused".to_owned()),
            _ => Err(format!("{command:?} ended with {status} and said {said:?}")),
        }
    }

    fn expect(&self, command: &mut Command, wanted: i32) -> Result<(), String> {
        let (status, said) = self.call(command)?;
        if status == wanted { Ok(()) } else { Err(format!("{command:?}: {status}, {said}")) }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn scenario(&self, chance: &mut Chance) -> Answer {
        let sample = chance.one(&self.scenarios).clone();
        self.write("case.toml", &mutated(&sample, chance))?;
        self.judge(&mut self.command(&["run", "case.toml", "--print-config"]))
    }

    pub fn problem(&self, chance: &mut Chance) -> Answer {
        let sample = *chance.one(&PROBLEMS);
        self.write("case", &mutated(sample.as_bytes(), chance))?;
        let words: &[&str] = match chance.below(3) {
            0 => &["select", "case", "--selected", "3"],
            1 => &["select", "case", "--json"],
            _ => &["select", "case", "--aim", "freshness", "--selected", "2"],
        };
        self.judge(&mut self.command(words))
    }

    pub fn trace(&self, chance: &mut Chance) -> Answer {
        self.write("trace.csv", &mutated(TRACE.as_bytes(), chance))?;
        self.judge(&mut self.command(&["network", "traced.toml", "--round", "2"]))
    }

    /// A finished comparison with one file altered: the report says so, or does not need it.
    pub fn report(&self, chance: &mut Chance) -> Answer {
        let out = self.folder.join("altered");
        let (name, changed) = self.altered(&out, &self.finished, chance)?;
        let answer = self.judge(&mut self.command(&["report", "altered"]))?;
        let said = fs::read_to_string(self.folder.join("said")).unwrap_or_default();
        let report = fs::read_to_string(out.join("report.html")).unwrap_or_default();
        let sealed = ["metrics.jsonl", "clients.json", "finished.json", "summary.json"];
        let told = ["checksum", "damaged", "metrics.jsonl", "json:"];
        let told = told.iter().any(|word| said.contains(word) || report.contains(word));
        let sealed = sealed.iter().any(|file| name.ends_with(file));
        if changed && sealed && answer == "done" && !told {
            return Err(format!("{} was altered and the report does not say so", name.display()));
        }
        Ok(if answer == "done" && changed && sealed { "told".to_owned() } else { answer })
    }

    pub fn resume(&self, chance: &mut Chance) -> Answer {
        let out = self.folder.join("altered");
        self.altered(&out, &self.begun, chance)?;
        // Three rounds more at most.
        let words = ["run", "--resume", "--out", "altered", "--set", "rounds=4000000", "--json"];
        let mut command = self.command(&words);
        command.args(["--stop-with-input"]);
        let (status, said) = self.call(&mut command)?;
        match status {
            // The input has ended before it began: it saves and stops.
            0 | 3 => Ok("resumed".to_owned()),
            1 | 2 if said.lines().count() == 1 => Ok("refused".to_owned()),
            _ => Err(format!("{command:?} ended with {status} and said {said:?}")),
        }
    }

    /// Writes files with one of them altered; which, and whether it is another now.
    fn altered(
        &self,
        out: &Path,
        files: &[(PathBuf, Vec<u8>)],
        chance: &mut Chance,
    ) -> Result<(PathBuf, bool), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", out.display());
        match fs::remove_dir_all(out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let chosen = chance.below(files.len() as u64) as usize;
        let mut found = (PathBuf::new(), false);
        for (at, (name, bytes)) in files.iter().enumerate() {
            let path = out.join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
            let contents = if at == chosen { mutated(bytes, chance) } else { bytes.clone() };
            if at == chosen {
                found = (name.clone(), contents != *bytes);
            }
            fs::write(path, contents).map_err(failed)?;
        }
        Ok(found)
    }
}

/// All files of a folder but locks and reports, by their paths in it.
fn read(folder: &Path) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.starts_with('.') && name != "report.html" {
                let inside = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                files.push((inside, fs::read(&path)?));
            }
        }
    }
    files.sort();
    Ok(files)
}
