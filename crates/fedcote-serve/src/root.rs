//! The folder of runs: nothing outside it is ever read or written.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Error;

/// The folder, without symbolic links in its own path.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

/// Whether a word can be the name of a run: one component of a path, and not a hidden one.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 120
        && !name.starts_with(['.', '-'])
        && name.chars().all(|c| !c.is_control() && !matches!(c, '/' | '\\' | ':'))
        && name.trim() == name
}

impl Root {
    /// The folder at this path, made if it is not there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::Folder { path: path.to_owned(), reason };
        fs::create_dir_all(path).map_err(|error| failed(error.to_string()))?;
        let path = path.canonicalize().map_err(|error| failed(error.to_string()))?;
        if path.join("scenario.toml").is_file() {
            let parent = path.parent().unwrap_or(&path);
            return Err(failed(format!(
                "is a run itself; serve the folder that holds it: fedcote serve {}",
                parent.display()
            )));
        }
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of a sweep that is there.
    pub fn sweep(&self, name: &str) -> Option<PathBuf> {
        let path = self.inside(name)?;
        (path.is_dir() && self.plain_file(&path.join(fedcote_sim::sweep::FILE))).then_some(path)
    }

    /// The folder of a run that is there: `NAME`, or `SWEEP/NAME` for a combination of a sweep.
    pub fn run(&self, name: &str) -> Option<PathBuf> {
        let path = match name.split_once('/') {
            None => self.inside(name)?,
            Some((sweep, point)) => self.sweep(sweep).filter(|_| is_name(point))?.join(point),
        };
        (path.is_dir() && self.plain_file(&path.join("scenario.toml"))).then_some(path)
    }

    /// The path of a run that may be there or not.
    pub fn inside(&self, name: &str) -> Option<PathBuf> {
        let path = self.0.join(name);
        let hidden = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        (is_name(name) && !hidden(&path)).then_some(path)
    }

    /// Moves a run to the bin: a hidden folder beside the runs, from where it can be taken back by hand.
    pub fn discard(&self, name: &str) -> io::Result<()> {
        let bin = self.0.join(".bin");
        fs::create_dir_all(&bin)?;
        let path = self.inside(name).ok_or(io::ErrorKind::NotFound)?;
        let free = |number: u32| match number {
            0 => bin.join(name),
            _ => bin.join(format!("{name}-{number}")),
        };
        let place = (0..).map(free).find(|place| fs::symlink_metadata(place).is_err());
        fs::rename(path, place.unwrap_or(bin))
    }

    /// Whether this is a plain file below the folder that no symbolic link leads to.
    pub fn plain_file(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| real == path && real.starts_with(&self.0))
            && fs::symlink_metadata(path).is_ok_and(|data| data.is_file())
    }

    /// Whether all that a report reads of a run are plain files and folders.
    pub fn is_plain(&self, run: &Path) -> bool {
        fn plain(path: &Path, depth: u32) -> bool {
            let Ok(entries) = fs::read_dir(path) else { return false };
            entries.flatten().all(|entry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => depth == 0 || plain(&entry.path(), depth - 1),
                Ok(kind) => kind.is_file(),
                Err(_) => false,
            })
        }
        // The runs of a sweep are one folder further down.
        plain(run, if fedcote_sim::sweep::is_sweep(run) { 3 } else { 2 })
    }

    /// Opens a plain file to read it; what is none is as good as not there.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        if !self.plain_file(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        File::open(path)
    }

    /// The text of a file of at most so many bytes.
    pub fn read(&self, path: &Path, most: u64) -> Option<String> {
        let mut text = String::new();
        let file = self.open_file(path).ok()?;
        let read = file.take(most + 1).read_to_string(&mut text).ok()?;
        (read as u64 <= most).then_some(text)
    }

    /// The names of the folders in a folder below this one, in order; hidden ones and links do not count.
    pub fn folders(&self, path: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_name(name))
            .collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_components() {
        for good in ["quickstart", "a b", "run-2", "läuft", "a..b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "", ".", "..", ".lock", "../x", "a/b", "a\\b", "a\0b", "a\nb", "-rf", "c:x", " a", "a ",
        ] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(!is_name(&"a".repeat(121)));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("scenario.toml"), "rounds = 1").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
        // A run that is a link.
        link(outside.path(), &root.path().join("linked"));
        assert!(root.run("linked").is_none());
        // A run whose files are links.
        let run = root.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::write(run.join("scenario.toml"), "rounds = 1").unwrap();
        assert!(root.run("run").is_some() && root.is_plain(&run));
        link(&outside.path().join("scenario.toml"), &run.join("summary.json"));
        assert!(root.read(&run.join("summary.json"), 100).is_none());
        assert!(!root.is_plain(&run));
        // A combination of a sweep is one only in the folder of a sweep, and no link.
        fs::create_dir(run.join("rate=1")).unwrap();
        fs::write(run.join("rate=1/scenario.toml"), "rounds = 1").unwrap();
        assert!(root.run("run/rate=1").is_none());
        fs::write(run.join("sweep.toml"), "rounds = 1").unwrap();
        assert!(root.run("run/rate=1").is_some() && root.sweep("run").is_some());
        link(outside.path(), &run.join("rate=2"));
        for bad in ["run/rate=2", "run/..", "run/../linked", "run/rate=1/x", "/run", "run/"] {
            assert!(root.run(bad).is_none(), "{bad}");
        }
        // A scheme's folder that is a link.
        link(outside.path(), &run.join("fedavg"));
        assert!(root.read(&run.join("fedavg").join("scenario.toml"), 100).is_none());
        assert_eq!(root.folders(&run), ["rate=1"]);
    }

    #[test]
    fn a_run_folder_is_not_a_folder_of_runs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.toml"), "rounds = 1").unwrap();
        let error = Root::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is a run itself; serve the folder that holds it"), "{error}");
    }
}
