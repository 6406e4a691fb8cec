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
        let mut process = Command::new(env!("CARGO_BIN_EXE_fedcote"))
            .args(["serve", "--listen", "127.0.0.1:0"])
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
