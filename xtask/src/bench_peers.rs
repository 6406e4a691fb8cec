//! `cargo xtask bench peers`: the same federations in FedCote, in FedCote's engine with a PyTorch task, in a plain PyTorch
//! loop, Flower, FedLab and pfl-research.
//!
//! The work is in `bench/peers`; here the program and the wheel are built, and every side in Python gets an environment of
//! its own under `target/peers`. All share one PyTorch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench_training::torch_python;
use crate::python::tools;
use crate::run as call;

/// Peers, and what to install for them.
const PEERS: [(&str, &str); 3] =
    [("flower", "flwr"), ("fedlab", "fedlab"), ("pfl", "pfl[pytorch]")];

/// Builds, installs, compares.
pub fn run() -> Result<(), String> {
    let (root, target) = (crate::root(), crate::target());
    let build = ["build", "--release", "--quiet", "-p", "fedcote-cli"];
    call(crate::cargo().args(build).current_dir(root))?;
    let folder = target.join("peers");
    let torch = torch_python(root)?;
    let mut compare = Command::new(&torch);
    compare.arg(root.join("bench/peers/compare.py"));
    compare.arg(target.join("release/fedcote")).arg(&folder);
    compare.arg(format!("fedcote={}", engine(root, &target, &folder, &torch)?.display()));
    compare.arg(format!("pytorch={}", torch.display()));
    for (name, package) in PEERS {
        match environment(&folder.join(name), &torch, package) {
            Ok(python) => _ = compare.arg(format!("{name}={}", python.display())),
            Err(reason) => eprintln!("{name} is left out: {reason}"),
        }
    }
    call(&mut compare)
}

/// A Python with the wheel of these sources.
fn engine(root: &Path, target: &Path, folder: &Path, torch: &Path) -> Result<PathBuf, String> {
    let place = target.join("python");
    let wheel = tools(&place)?.wheel(root, &place)?;
    let python = environment(&folder.join("fedcote"), torch, &wheel)?;
    // The version is the same whatever was changed.
    let again = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
    call(Command::new(&python).args(again))?;
    Ok(python)
}

/// A Python with the package, and with the PyTorch of another one.
fn environment(folder: &Path, torch: &Path, package: &str) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    let done = folder.join("installed");
    if !done.exists() {
        call(Command::new(torch).args(["-m", "venv"]).arg(folder))?;
        let place = "import sysconfig, sys; open(sysconfig.get_path('purelib') + '/torch.pth', 'w').write(sys.argv[1])";
        let found = Command::new(torch)
            .args([
                "-c",
                "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))",
            ])
            .output()
            .map_err(|error| format!("{}: {error}", torch.display()))?;
        let packages = String::from_utf8_lossy(&found.stdout).into_owned();
        call(Command::new(&python).args(["-c", place, packages.trim()]))?;
        call(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))?;
        fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(python)
}
