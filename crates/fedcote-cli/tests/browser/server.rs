//! `fedcote serve` as a user has it: the real command on a free port.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A page that is being served.
pub struct Server {
    process: Child,
    /// Where it is, without a slash at the end.
    pub address: String,
}

impl Server {
    /// Serves the runs in a folder.
    pub fn start(folder: &Path) -> Self {
        Self::at(folder, "127.0.0.1:0")
    }

    /// The same at an address of one's own; `FEDCOTE_PROGRAM` may name another build of the command.
    pub fn at(folder: &Path, listen: &str) -> Self {
        let program = std::env::var_os("FEDCOTE_PROGRAM");
        let mut process = Command::new(program.unwrap_or(env!("CARGO_BIN_EXE_fedcote").into()))
            .args(["serve", "--listen", listen])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().trim_end_matches('/').to_owned();
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
