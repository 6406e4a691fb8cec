//! Who is working where: a lock for each run, and one for each command that works in a comparison's folder.

use std::fs::{self, File};
use std::path::Path;

use crate::Error;

/// Tries to take a lock before it is given up: whoever only looks ([`Lock::is_taken`]) is gone by then.
const LOOKS: u32 = 5;

/// Keeps other commands away until dropped.
pub struct Lock(#[allow(dead_code)] File); // held, never read

impl Lock {
    /// The file's name in the folder.
    pub const FILE: &str = ".lock";

    /// Takes the lock of a run's folder, or says that another command has it.
    ///
    /// # Errors
    ///
    /// When another command has it, or the folder cannot be written to.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        Self::try_take(&folder.join(Self::FILE))?.ok_or_else(|| {
            let reason =
                "another command is working on this run; wait for it, or choose another --out";
            Error::folder(folder, reason)
        })
    }

    /// Shows that a command is working in a comparison's folder: takes the first of `.lock`, `.lock-2`, `.lock-3`, …
    /// that is free. A command that wants to be `alone` there is refused while another is working.
    pub(crate) fn join(out: &Path, alone: bool) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(Error::io(out))?;
        if alone {
            // Taken before the others are looked at: of two commands that begin together one is refused.
            let first = Self::try_take(&out.join(Self::FILE))?;
            let others = Self::taken(out, |name| name.starts_with(".lock-"));
            return first.filter(|_| !others).ok_or_else(|| {
                let reason =
                    "another command is working in this folder; wait for it, or choose another --out";
                Error::folder(out, reason)
            });
        }
        for number in 1u32.. {
            let name = if number == 1 { ".lock".to_owned() } else { format!(".lock-{number}") };
            if let Some(lock) = Self::try_take(&out.join(name))? {
                return Ok(lock);
            }
        }
        unreachable!("numbers do not end")
    }

    /// Waits for the lock of that file.
    pub(crate) fn wait(path: &Path) -> Result<Self, Error> {
        let file = Self::open(path)?;
        file.lock().map_err(Error::io(path))?;
        Ok(Self(file))
    }

    fn open(path: &Path) -> Result<File, Error> {
        // To open a named pipe is to wait for whoever reads it.
        if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
            return Err(Error::folder(
                path,
                "is not a plain file; remove it, or choose another --out",
            ));
        }
        let file = File::options().create(true).truncate(false).write(true).open(path);
        file.map_err(Error::io(path))
    }

    fn try_take(path: &Path) -> Result<Option<Self>, Error> {
        let file = Self::open(path)?;
        let mut locked = file.try_lock();
        for _ in 0..LOOKS {
            if !matches!(locked, Err(fs::TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => Ok(Some(Self(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(Error::io(path)(error)),
        }
    }

    /// Whether a command is working in the folder of a comparison or run. To know, the lock is held for an instant.
    pub fn is_taken(folder: &Path) -> bool {
        Self::taken(folder, |name| name == Self::FILE || name.starts_with(".lock-"))
    }

    /// Whether one of the locks of these names is held.
    fn taken(folder: &Path, is_lock: impl Fn(&str) -> bool) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let named = |entry: &fs::DirEntry| is_lock(&entry.file_name().to_string_lossy());
        entries.flatten().filter(named).any(|entry| {
            // Anything else of that name, such as a named pipe, could make the reader wait.
            entry.file_type().is_ok_and(|kind| kind.is_file())
                && File::open(entry.path()).is_ok_and(|file| Self::is_held(&file))
        })
    }

    /// Whether a command holds the lock that this is the file of.
    pub(super) fn is_held(file: &File) -> bool {
        matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_commands_join_one_folder_and_a_run_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        assert!(!Lock::is_taken(out));
        let first = Lock::join(out, true).unwrap();
        let refused = Lock::join(out, true).err().unwrap().to_string();
        assert!(refused.contains("another command is working in this folder"), "{refused}");
        let second = Lock::join(out, false).unwrap();
        drop(first);
        assert!(Lock::is_taken(out));
        drop(second);
        assert!(!Lock::is_taken(out));
        let run = out.join("fedavg/1");
        let _held = Lock::take(&run).unwrap();
        assert!(Lock::is_taken(&run) && !Lock::is_taken(out));
        let refused = Lock::take(&run).err().unwrap().to_string();
        assert!(refused.contains("another command is working on this run"), "{refused}");
    }
}
