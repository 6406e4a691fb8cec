//! The real command, and raw requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// `fedcote serve` as a process.
pub struct Server {
    process: Child,
    pub address: String,
    /// What it printed.
    #[allow(dead_code)] // not every test reads it
    pub line: String,
}

impl Server {
    pub fn start(folder: &Path, words: &[&str]) -> Self {
        Self::start_with(folder, words, &[])
    }

    /// The same with environment variables.
    pub fn start_with(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_fedcote"))
            .envs(variables.iter().copied())
            .arg("serve")
            .arg(folder)
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit("http://").next().unwrap();
        let port = url.split('/').next().unwrap().rsplit(':').next().unwrap();
        let address = format!("127.0.0.1:{port}");
        Self { process, address, line }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends bytes and reads until the server closes.
    pub fn send(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that has refused may close while more is on its way.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub fn get(&self, path: &str) -> String {
        self.get_with(path, "")
    }

    pub fn get_with(&self, path: &str, headers: &str) -> String {
        let host = &self.address;
        self.send(
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n")
                .as_bytes(),
        )
    }

    #[allow(dead_code)] // not every test sends forms
    pub fn post(&self, path: &str, body: &str, headers: &str) -> String {
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n"
        );
        self.send(format!("{head}{headers}\r\n{body}").as_bytes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}
