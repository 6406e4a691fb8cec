//! Standard output, whose reader may have seen enough.

use std::io::{self, Write};

use crate::error::Error;

/// Standard output behind a buffer.
pub type Stdout = io::BufWriter<io::StdoutLock<'static>>;

/// Writes to standard output through a buffer. A reader that stops reading, such as `head`, is no failure.
pub fn write(content: impl FnOnce(&mut Stdout) -> io::Result<()>) -> Result<(), Error> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match content(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::work(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a text.
pub fn print(text: &str) -> Result<(), Error> {
    write(|out| out.write_all(text.as_bytes()))
}
