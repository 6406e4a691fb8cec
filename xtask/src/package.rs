//! `cargo xtask package`: every published crate as the archive that would be uploaded, and its size.

use std::fs;

use crate::{cargo, run, target};

/// What a registry accepts, in bytes.
const LIMIT: u64 = 10_000_000;

/// Packages all crates, prints their sizes and refuses one that is too large. `verify` also builds each from its
/// archive, which takes minutes.
pub fn all(verify: bool) -> Result<(), String> {
    let folder = target().join("package");
    // Archives of crates that no longer exist would be counted.
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut command = cargo();
    command.args(["package", "--quiet", "--workspace", "--exclude", "xtask"]);
    // Changes that are not committed are packaged too: this is a check, nothing is uploaded.
    command.args(["--exclude", "fedcote-py", "--allow-dirty"]);
    if !verify {
        // What was built from needs no other index; so the tests pass without a network.
        command.args(["--no-verify", "--offline"]);
    }
    run(&mut command)?;
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut sizes = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "crate") {
            let size = fs::metadata(&path).map_err(|error| error.to_string())?.len();
            sizes.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), size));
        }
    }
    sizes.sort();
    for (name, size) in &sizes {
        println!("{name:<32} {:>8.2} MB", *size as f64 / 1e6);
    }
    match sizes.iter().find(|(_, size)| *size > LIMIT) {
        Some((name, size)) => Err(format!("{name} has {size} bytes; registries accept {LIMIT}")),
        None if sizes.is_empty() => Err("no crate was packaged".to_owned()),
        None => Ok(()),
    }
}
