//! Files that appear whole or not at all.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file could not be written. Displays as one line: which, why, and what to do.
#[derive(Debug)]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, source } = self;
        write!(formatter, "{}: {source}{}", path.display(), remedy(source))
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// What to do about a file that cannot be written, to follow what the system said.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room, then try again (continue a comparison with --resume)"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "; make it writable or choose another place, then try again (continue a comparison with --resume)"
        }
        _ => "",
    }
}

/// Replaces a file as a whole: a temporary file beside it, flushed to the disk, then renamed. An interruption leaves
/// the old file or the new one.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    create(path, contents).map(|_| ())
}

/// The same, and the file stays open at its end, to read and to write. It is this writer's own: when another one
/// replaces the file, what is added here goes nowhere.
pub fn create(path: &Path, contents: &[u8]) -> Result<File, WriteError> {
    write_with(path, |file| file.write_all(contents))
}

/// The same, by a function that writes the contents, for those that are too large to be in memory. It may be called again.
pub fn write_with(
    path: &Path,
    contents: impl Fn(&mut File) -> io::Result<()>,
) -> Result<File, WriteError> {
    let file =
        replace(path, contents).map_err(|source| WriteError { path: path.to_owned(), source })?;
    // The rename itself must survive a power cut; not every system can open folders for that.
    if let Ok(folder) =
        File::open(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    {
        let _ = folder.sync_all();
    }
    Ok(file)
}

fn replace(path: &Path, contents: impl Fn(&mut File) -> io::Result<()>) -> io::Result<File> {
    loop {
        let temporary = beside(path);
        let mut file =
            match File::options().read(true).write(true).create_new(true).open(&temporary) {
                // A process with the same number was killed while it wrote: in a container numbers repeat.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other?,
            };
        // The lock tells `sweep` that the file is being written. Without locks it leaves such files alone.
        let _ = file.try_lock();
        let written = contents(&mut file).and_then(|()| file.sync_all());
        match written.and_then(|()| fs::rename(&temporary, path)) {
            // Swept between its creation and its lock. A folder that is gone fails to create the next one.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                // If this fails too, the first error is the one to report.
                let _ = fs::remove_file(&temporary);
                return Err(error);
            }
            Ok(()) => {
                // Where there are no locks there is none to give back.
                let _ = file.unlock();
                return Ok(file);
            }
        }
    }
}

/// Removes from a folder what an interrupted [`write()`] left there; files that are being written stay. A missing
/// folder has nothing to remove.
pub fn sweep(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = entry?.path();
        let ours = path.file_name().and_then(|name| name.to_str()).is_some_and(is_temporary);
        if !ours || !is_abandoned(&path) {
            continue;
        }
        match fs::remove_file(&path) {
            // Its writer has renamed it meanwhile, or another command has swept it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Whether nobody writes the temporary file: a process that ends, however it ends, loses its locks. Where files cannot
/// be opened or locked nobody can tell, and the file stays: it does no harm.
fn is_abandoned(path: &Path) -> bool {
    File::options().write(true).open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether [`beside`] makes such names, `.NAME.PROCESS.NUMBER.part`. Other files are not ours to remove.
fn is_temporary(name: &str) -> bool {
    let parts = || {
        let mut parts = name.strip_prefix('.')?.strip_suffix(".part")?.rsplitn(3, '.');
        parts.next()?.parse::<u64>().ok()?;
        parts.next()?.parse::<u32>().ok()?;
        parts.next()
    };
    parts().is_some_and(|name| !name.is_empty())
}

/// A name in the same folder that no other write uses.
fn beside(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{}.part", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_no_temporary_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        // A folder that is not empty cannot be replaced by a file.
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write(&folder.path().join("missing/m"), b"new").unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::NotFound);
    }

    /// In a container every process may have the same number: a file left by one that was killed used to stop the next.
    #[test]
    fn a_temporary_file_of_a_killed_namesake_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        // The next names that this process would use, whatever other tests write meanwhile.
        for number in 0..50 {
            let name = format!(".m.{}.{number}.part", std::process::id());
            fs::write(folder.path().join(name), b"left").unwrap();
        }
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        sweep(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Whether a writer is alive used to be read from `/proc`: on systems without it, a report that one command was
    /// writing was removed by another. The process number in the name, and whether such a process exists, no longer
    /// matter: only the lock does.
    #[test]
    fn what_is_being_written_and_files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let dead = u32::MAX;
        let names = [
            ".left.1.0.part".to_owned(),
            format!(".left.{}.9.part", std::process::id()),
            format!(".written.{dead}.0.part"),
            ".film.part".to_owned(),
            ".a.b.part".to_owned(),
            "m.7.0.part".to_owned(),
            "..7.0.part".to_owned(),
        ];
        for name in &names {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        let writer = File::options().write(true).open(folder.path().join(&names[2])).unwrap();
        writer.lock().unwrap();
        sweep(folder.path()).unwrap();
        let there = || names.each_ref().map(|name| folder.path().join(name).exists());
        assert_eq!(there(), [false, false, true, true, true, true, true]);
        drop(writer);
        sweep(folder.path()).unwrap();
        assert_eq!(there(), [false, false, false, true, true, true, true]);
        sweep(&folder.path().join("missing")).unwrap();
    }

    /// A sweep in the instant between a temporary file's creation and its lock must not fail the write.
    #[test]
    fn writes_and_sweeps_at_the_same_time_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let writer = |name: &'static str| {
                let path = folder.path().join(name);
                scope.spawn(move || (0..40).for_each(|_| write(&path, b"whole").unwrap()))
            };
            let writers = [writer("a"), writer("b")];
            while writers.iter().any(|writer| !writer.is_finished()) {
                sweep(folder.path()).unwrap();
            }
        });
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_disk_that_refuses_says_what_to_do() {
        let source = io::Error::from(ErrorKind::StorageFull);
        let full = WriteError { path: "a/b".into(), source };
        assert!(full.to_string().contains("make room"), "{full}");
    }
}
