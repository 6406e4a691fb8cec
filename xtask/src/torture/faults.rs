//! The faults.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use super::Chance;
use super::bench::{Bench, files, one_line, text};

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL at any moment, once to four times.
    Kill,
    /// SIGTERM, SIGHUP or SIGINT at any moment.
    Signal,
    /// Bits flipped in a file of a folder that is finished or half-way.
    Flip,
    /// A file cut short, down to nothing.
    Truncate,
    /// A part of a file overwritten by zeros, as a crashed file system leaves it.
    Zeros,
    /// A file gone.
    Delete,
    /// Lines of a file repeated, lost or followed by garbage.
    Lines,
    /// A limit on the size of files.
    Limit,
    /// Two commands in one folder, or a report in the middle of a run.
    Two,
    /// File times long ago or far ahead, and a monotonic clock that jumped.
    Clock,
    /// A disk that is full.
    Full,
    /// A disk that has become read-only.
    ReadOnly,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Kill,
        Self::Flip,
        Self::Signal,
        Self::Truncate,
        Self::Full,
        Self::Zeros,
        Self::ReadOnly,
        Self::Delete,
        Self::Two,
        Self::Lines,
        Self::Limit,
        Self::Clock,
    ];

    /// Whether it needs to mount a file system.
    pub fn mounts(self) -> bool {
        matches!(self, Self::Full | Self::ReadOnly)
    }

    /// Injects it into a new folder `out`; says which files it harmed.
    pub fn inject(
        self,
        bench: &Bench,
        out: &Path,
        chance: &mut Chance,
    ) -> Result<Vec<PathBuf>, String> {
        match self {
            Self::Kill => {
                for _ in 0..=chance.below(4) {
                    interrupt(bench, "KILL", chance)?;
                }
            }
            Self::Signal => {
                let signal = *chance.one(&["TERM", "HUP", "INT"]);
                interrupt(bench, signal, chance)?;
            }
            Self::Flip | Self::Truncate | Self::Zeros | Self::Delete | Self::Lines => {
                begin(bench, chance)?;
                return self.damage(out, chance);
            }
            Self::Limit => {
                let limit = 1 + chance.below(12);
                let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$@\"");
                let mut command = Command::new("sh");
                command.args(["-c", &script, "sh"]).arg(bench.program());
                within(bench, &mut command)?;
            }
            Self::Two => return two(bench, chance).map(|()| Vec::new()),
            Self::Clock => {
                begin(bench, chance)?;
                set_times(out, chance)?;
                jump(bench, chance)?;
            }
            Self::Full => {
                let _mount = Mount::new(out, 48 + chance.below(600))?;
                within(bench, &mut Command::new(bench.program()))?;
                keep(out)?;
            }
            Self::ReadOnly => {
                let mount = Mount::new(out, 16 * 1024)?;
                if chance.below(4) > 0 {
                    begin(bench, chance)?;
                }
                mount.read_only()?;
                let done = bench.command("out").output().map_err(|error| error.to_string())?;
                advised(&one_line(&done)?)?;
                keep(out)?;
            }
        }
        Ok(Vec::new())
    }

    /// Harms one file of a folder.
    fn damage(self, out: &Path, chance: &mut Chance) -> Result<Vec<PathBuf>, String> {
        let found: Vec<(PathBuf, Vec<u8>)> =
            files(out).into_iter().filter(|(_, contents)| !contents.is_empty()).collect();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // Half of the time a file of the kinds that matter most.
        let vital = ["metrics.jsonl", "finished.json", "model.safetensors", "state.safetensors"];
        let vital = *chance.one(&vital);
        let most: Vec<_> = found.iter().filter(|(path, _)| path.ends_with(vital)).collect();
        let (path, contents) = match chance.below(2) {
            0 if !most.is_empty() => *chance.one(&most),
            _ => chance.one(&found),
        };
        let mut contents = contents.clone();
        let length = contents.len() as u64;
        let at = chance.below(length) as usize;
        match self {
            Self::Flip => {
                for _ in 0..=chance.below(3) {
                    contents[chance.below(length) as usize] ^= 1 << chance.below(8);
                }
            }
            Self::Truncate => contents.truncate(*chance.one(&[0, at, at, contents.len() - 1])),
            Self::Zeros => {
                let end = (at + 1 + chance.below(512) as usize).min(contents.len());
                contents[at..end].fill(0);
            }
            Self::Lines => {
                let mut lines: Vec<&[u8]> =
                    contents.split_inclusive(|&byte| byte == b'\n').collect();
                let at = chance.below(lines.len() as u64) as usize;
                match chance.below(4) {
                    0 => lines.insert(at, lines[at]),
                    1 => drop(lines.remove(at)),
                    2 => lines.reverse(),
                    _ => lines.push(b"{\"round\": 1, \x00\xff"),
                }
                contents = lines.concat();
            }
            _ => {}
        }
        let file = out.join(path);
        let done = match self {
            Self::Delete => fs::remove_file(&file),
            _ => fs::write(&file, contents),
        };
        done.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(vec![path.clone()])
    }
}

fn spawn(bench: &Bench, program: &mut Command) -> Result<Child, String> {
    let model = bench.command("out");
    program.args(model.get_args()).current_dir(bench.folder()).stdin(Stdio::null());
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().map_err(|error| format!("{program:?}: {error}"))
}

/// Runs to an end that is either success or one line of advice.
fn within(bench: &Bench, program: &mut Command) -> Result<(), String> {
    let done = spawn(bench, program)?.wait_with_output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { advised(&one_line(&done)?) }
}

/// A failure of the system must say how to go on.
fn advised(told: &str) -> Result<(), String> {
    let helps = ["--resume", "remove ", "another --out", "make the report with"];
    if helps.iter().any(|word| told.contains(word)) {
        Ok(())
    } else {
        Err(format!("says not what to do: {told}"))
    }
}

/// Waits for some part of an undisturbed run's time.
fn pause(bench: &Bench, chance: &mut Chance) {
    let most = bench.duration.as_micros() as u64;
    std::thread::sleep(Duration::from_micros(chance.below(most)));
}

/// Begins, and sends a signal at some moment.
fn interrupt(bench: &Bench, signal: &str, chance: &mut Chance) -> Result<(), String> {
    let mut child = spawn(bench, &mut Command::new(bench.program()))?;
    pause(bench, chance);
    if signal == "KILL" {
        // It fails only when the run has ended.
        let _ = child.kill();
        child.wait().map_err(|error| error.to_string())?;
        return Ok(());
    }
    if child.try_wait().map_err(|error| error.to_string())?.is_none() {
        let words = [format!("-{signal}"), child.id().to_string()];
        let _ = Command::new("kill").args(words).stderr(Stdio::null()).status();
    }
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    // Before the handler is there, a signal ends the process as signals do: nothing is written by then.
    if done.status.success() || done.status.code().is_none() {
        return Ok(());
    }
    let told = one_line(&done)?;
    if told.contains("resume with: fedcote run --resume --out") { Ok(()) } else { Err(told) }
}

/// A folder that is half-way or finished.
fn begin(bench: &Bench, chance: &mut Chance) -> Result<(), String> {
    match chance.below(3) {
        0 => within(bench, &mut Command::new(bench.program())),
        1 => interrupt(bench, "TERM", chance),
        _ => interrupt(bench, "KILL", chance),
    }
}

/// A second command, while the first is at work.
fn two(bench: &Bench, chance: &mut Chance) -> Result<(), String> {
    let mut first = spawn(bench, &mut Command::new(bench.program()))?;
    pause(bench, chance);
    if chance.below(3) == 0 {
        let mut report = Command::new(bench.program());
        report.args(["report", "out", "--out", "elsewhere"]).current_dir(bench.folder());
        let done = report.output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            one_line(&done)?;
        }
    } else {
        let second = spawn(bench, &mut Command::new(bench.program()))?;
        let done = second.wait_with_output().map_err(|error| error.to_string())?;
        let over = first.try_wait().map_err(|error| error.to_string())?.is_some();
        if done.status.success() {
            // Then the first had ended before, or had not begun and is the one to be refused.
        } else if !one_line(&done)?.contains("another command is working in this folder; wait") {
            return Err(format!("the second command (first over: {over}): {}", text(&done.stderr)));
        }
    }
    let done = first.wait_with_output().map_err(|error| error.to_string())?;
    if done.status.success() || one_line(&done)?.contains("another command is working") {
        return Ok(());
    }
    Err(format!("the first command: {}", text(&done.stderr)))
}

/// Every file as old or as young as can be.
fn set_times(out: &Path, chance: &mut Chance) -> Result<(), String> {
    for path in files(out).keys() {
        let seconds = Duration::from_secs(chance.below(1_000_000_000));
        let time = match chance.below(3) {
            0 => SystemTime::UNIX_EPOCH,
            1 => SystemTime::now() + seconds,
            _ => SystemTime::now() - seconds,
        };
        let file = File::options().append(true).open(out.join(path));
        file.and_then(|file| file.set_modified(time)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Goes on for a while in a world whose monotonic clock is elsewhere; where that cannot be had, as usual.
fn jump(bench: &Bench, chance: &mut Chance) -> Result<(), String> {
    let offset = chance.below(100_000_000).to_string();
    let namespace = ["--time", "--monotonic", &offset, "--"];
    let possible = Command::new("unshare").args(namespace).arg("true").output();
    if possible.is_ok_and(|done| done.status.success()) {
        let mut child = spawn(bench, Command::new("unshare").args(namespace).arg(bench.program()))?;
        pause(bench, chance);
        let _ = child.kill();
        child.wait().map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A small file system in memory, unmounted when dropped.
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts so many KiB.
    pub fn new(at: &Path, kilobytes: u64) -> Result<Self, String> {
        fs::create_dir_all(at).map_err(|error| format!("{}: {error}", at.display()))?;
        let size = format!("size={kilobytes}k");
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        match done {
            Ok(done) if done.status.success() => Ok(Self { at: at.to_owned() }),
            Ok(done) => Err(text(&done.stderr)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Makes it read-only.
    fn read_only(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        let done = mount.args(["-o", "remount,ro"]).arg(&self.at).output();
        let done = done.map_err(|error| error.to_string())?;
        if done.status.success() { Ok(()) } else { Err(text(&done.stderr)) }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).output();
    }
}

/// Copies what is on the mount to the folder below it, where there is room to go on.
fn keep(out: &Path) -> Result<(), String> {
    let found = files(out);
    let unmounted = Command::new("umount").arg(out).output().map_err(|error| error.to_string())?;
    if !unmounted.status.success() {
        return Err(text(&unmounted.stderr));
    }
    for (path, contents) in found {
        let file = out.join(path);
        let folder = file.parent().ok_or("a file is in a folder")?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, contents))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}
