//! Keeps two commands from writing into one folder.

use std::fs::{self, File};
use std::path::Path;

use crate::Error;

/// Keeps other commands away from a folder until dropped.
pub struct Lock(#[allow(dead_code)] File); // held, never read

impl Lock {
    /// The file's name in the folder.
    pub const FILE: &str = ".lock";

    /// Takes the lock, or says who has it.
    pub fn take(out: &Path) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(Error::io(out))?;
        let path = out.join(Self::FILE);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Error::io(&path))?;
        let mut locked = file.try_lock();
        for _ in 0..LOOKS {
            if !matches!(locked, Err(fs::TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => {
                let reason = "another command is working in this folder; wait for it, or choose another --out";
                Err(Error::folder(out, reason))
            }
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }

    /// Whether a command is working in the folder. To know, the lock is held for an instant.
    pub fn is_taken(out: &Path) -> bool {
        File::open(out.join(Self::FILE)).is_ok_and(|file| Self::is_held(&file))
    }

    /// Whether somebody holds the lock that this is the file of.
    pub(super) fn is_held(file: &File) -> bool {
        matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
    }
}

/// Tries to take a lock before it is given up: whoever only looks ([`Lock::is_taken`]) is gone by then.
const LOOKS: u32 = 5;
