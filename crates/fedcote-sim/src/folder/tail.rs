//! Reads `metrics.jsonl` along while it grows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::metrics::Line;
use super::{Sum, checksum};

/// No line is longer: it would be one of millions of draws.
const MOST_LINE: u64 = 64 << 20;

/// How far a metrics file was read.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    /// Bytes of whole lines.
    bytes: u64,
    /// These lines.
    lines: usize,
    /// The last round among them.
    round: u32,
    /// Length and checksum of the last line, to see whether the file still has it there.
    last: Option<(u64, String)>,
    /// The checksum of these lines.
    sum: Option<Sum>,
    /// The file's length when its next line was found to be too long: nothing is read until the file is shorter.
    endless: Option<u64>,
}

/// What a metrics file has beyond the last look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    /// What was read before holds up to this round only: the run was cut back to its checkpoint, or begun again.
    pub cut: Option<u32>,
    /// The lines of rounds that are new, each a checked JSON object of one [`RoundReport`](crate::RoundReport).
    pub lines: Vec<String>,
    /// The round in which the numbers blew up.
    pub diverged_at: Option<u32>,
    /// The last line that is not as it should be, from 1, and what is wrong with it.
    pub damaged: Option<(usize, String)>,
    /// Bytes read.
    pub bytes: u64,
    /// Whether there is more to read at once.
    pub more: bool,
}

impl Tail {
    /// Reads the whole lines that are new, until that many bytes are read. A line that is still being written is for a
    /// later look.
    pub fn look(&mut self, file: &File, most: u64) -> io::Result<News> {
        let mut news = News::default();
        let length = file.metadata()?.len();
        if length < self.bytes {
            // A resumed run is cut back to its checkpoint: what is kept is known already.
            *self = Self::kept(file)?;
            news.cut = Some(self.round);
        } else if length > self.bytes && !self.continues(file)? {
            *self = Self::default();
            news.cut = Some(0);
        }
        self.endless = self.endless.filter(|&at| length >= at);
        let mut reader = self.reader(file)?;
        let mut line = Vec::new();
        while length > self.bytes && self.endless.is_none() {
            news.more = news.bytes >= most;
            if news.more {
                break;
            }
            if !whole_line(&mut reader, &mut line)? {
                if line.len() as u64 == MOST_LINE {
                    self.endless = Some(length);
                    news.damaged = Some((self.lines + 1, "the line has no end".to_owned()));
                }
                break;
            }
            self.pass(&line);
            news.bytes += line.len() as u64;
            match (Line::parse(&line, self.round), str::from_utf8(line.trim_ascii())) {
                (_, Ok("")) => {}
                (Ok(Line::Round(report)), Ok(text)) => {
                    self.round = report.round;
                    news.lines.push(text.to_owned());
                }
                (Ok(Line::Diverged(end)), _) => news.diverged_at = Some(end.diverged_at),
                (Err(reason), Ok(_)) => news.damaged = Some((self.lines, reason)),
                (_, Err(_)) => news.damaged = Some((self.lines, "not UTF-8 text".to_owned())),
            }
        }
        Ok(news)
    }

    /// The checksum of the lines that were read, to be compared with the one that a finished run has.
    pub fn checksum(&self) -> String {
        self.sum.unwrap_or_else(Sum::new).text()
    }

    fn reader<'a>(&self, mut file: &'a File) -> io::Result<BufReader<&'a File>> {
        file.seek(SeekFrom::Start(self.bytes))?;
        Ok(BufReader::new(file))
    }

    /// Counts a whole line as read.
    fn pass(&mut self, line: &[u8]) {
        self.bytes += line.len() as u64;
        self.lines += 1;
        self.sum.get_or_insert_with(Sum::new).add(line);
        self.last = Some((line.len() as u64, checksum(line)));
    }

    /// Whether the file still has the line that was read last where it was.
    fn continues(&self, mut file: &File) -> io::Result<bool> {
        let Some((length, sum)) = &self.last else { return Ok(true) };
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(self.bytes - length))?;
        file.take(*length).read_to_end(&mut line)?;
        Ok(checksum(&line) == *sum)
    }

    /// All whole lines of a file, read already.
    fn kept(file: &File) -> io::Result<Self> {
        let mut tail = Self::default();
        let mut reader = tail.reader(file)?;
        let mut line = Vec::new();
        while whole_line(&mut reader, &mut line)? {
            tail.pass(&line);
            if let Ok(Line::Round(report)) = Line::parse(&line, tail.round) {
                tail.round = report.round;
            }
        }
        Ok(tail)
    }
}

/// Reads a line; false when it has no end, be it not yet or because it is too long.
fn whole_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    reader.take(MOST_LINE).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n"))
}

/// The last round in a metrics file, found from its end; 0 when there is none.
pub fn last_round(mut file: &File) -> io::Result<u32> {
    let length = written(file)?;
    // As much of the end as holds a whole line, which is long when many clients are drawn.
    for window in (16..=26).map(|power| 1 << power) {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(length.saturating_sub(window)))?;
        file.take(window.min(length)).read_to_end(&mut bytes)?;
        let all = window >= length;
        // No text of ours.
        if bytes.contains(&0) {
            break;
        }
        // The first piece may be the rest of a line.
        let lines = bytes.split_inclusive(|&byte| byte == b'\n').skip(usize::from(!all));
        let whole: Vec<&[u8]> = lines.filter(|line| line.ends_with(b"\n")).collect();
        for line in whole.into_iter().rev() {
            if let Ok(Line::Round(report)) = Line::parse(line, 0) {
                return Ok(report.round);
            }
        }
        if all {
            break;
        }
    }
    Ok(0)
}

/// The length of a file without the zeros at its end, which a power cut leaves where nothing was written yet. Text has none, so
/// that their beginning is found by halving: a sparse file is as long as it says.
fn written(mut file: &File) -> io::Result<u64> {
    let (mut text, mut zeros) = (0, file.metadata()?.len());
    let mut is_zero = |at| {
        let mut byte = [0];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut byte).map(|()| byte == [0])
    };
    if zeros == 0 || !is_zero(zeros - 1)? {
        return Ok(zeros);
    }
    while text < zeros {
        let middle = text + (zeros - text) / 2;
        if is_zero(middle)? {
            zeros = middle;
        } else {
            text = middle + 1;
        }
    }
    Ok(text)
}
