//! Where results go: standard output, whose reader may have seen enough, and places that can be written to.

use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;

/// Standard output behind a buffer.
pub type Stdout = io::BufWriter<io::StdoutLock<'static>>;

/// Writes to standard output through a buffer. A reader that stops reading, such as `head`, is no failure.
pub fn write(content: impl FnOnce(&mut Stdout) -> io::Result<()>) -> Result<(), Error> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    written(content(&mut out).and_then(|()| out.flush()))
}

/// How writing to standard output ended.
pub fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::work(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// A text without characters that a terminal takes for commands: they are written as Rust writes them.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Prints a text.
pub fn print(text: &str) -> Result<(), Error> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Whether a flag names a folder, or a place where one can be made.
pub fn folder(flag: &str, path: &Path) -> Result<(), Error> {
    match path.ancestors().find(|above| above.exists()) {
        Some(above) if !above.is_dir() => {
            Err(Error::request(format!("{}: is a file; {flag} needs a folder", above.display())))
        }
        _ => Ok(()),
    }
}

/// Whether a flag names a file, or a place in a folder where one can be made.
pub fn file(flag: &str, path: &Path) -> Result<(), Error> {
    let wrong =
        |path: &Path, what: &str| Err(Error::request(format!("{}: {what} {flag}", path.display())));
    match path.parent() {
        _ if path.is_dir() => wrong(path, "is a folder; name a file in it with"),
        Some(above) if !above.as_os_str().is_empty() && !above.is_dir() => {
            wrong(above, "no such folder; make it, or choose another with")
        }
        _ => Ok(()),
    }
}
