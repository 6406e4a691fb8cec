//! Python's pickles of plain data, read without running what is in them.
//!
//! A pickle is a program for a small stack machine. Here only the instructions that make numbers, texts, lists, tuples and
//! dictionaries are known; those that look up or call anything are refused. Values are places in one list, so nothing is
//! copied, however often a pickle refers to it.

use std::collections::HashMap;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// `None`, `True` and `False`, bytes: nothing that a trace needs.
    Other,
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list or tuple: places of its items.
    List(Vec<usize>),
    /// A dictionary: places of keys and values, in the order in which they were set.
    Dictionary(Vec<(usize, usize)>),
}

/// What a pickle holds.
#[derive(Debug)]
pub(super) struct Pickle {
    values: Vec<Value>,
    root: usize,
}

impl Pickle {
    pub(super) fn root(&self) -> &Value {
        &self.values[self.root]
    }

    pub(super) fn get(&self, place: usize) -> &Value {
        &self.values[place]
    }

    /// The value of a key of a dictionary; the last one, should it be set twice.
    pub(super) fn find(&self, items: &[(usize, usize)], key: &str) -> Option<&Value> {
        let named = |(name, _): &&(usize, usize)| matches!(self.get(*name), Value::Text(text) if text == key);
        items.iter().rev().find(named).map(|(_, value)| self.get(*value))
    }

    /// Reads a pickle, or says at which byte it is wrong, and why.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        let mut machine = Machine {
            bytes,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        loop {
            let begin = machine.at;
            match machine.step().map_err(|reason| (begin, reason))? {
                None => {}
                Some(root) => return Ok(Self { values: machine.values, root }),
            }
        }
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<usize>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, usize>,
}

type Step<T> = Result<T, String>;

impl<'a> Machine<'a> {
    fn take(&mut self, count: u64) -> Step<&'a [u8]> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken =
            end.and_then(|end| self.bytes.get(self.at..end)).ok_or("the pickle ends here")?;
        self.at += taken.len();
        Ok(taken)
    }

    fn little(&mut self, count: u64) -> Step<u64> {
        Ok(self.take(count)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn line(&mut self) -> Step<&'a str> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or("the pickle ends here")?;
        let text = std::str::from_utf8(&rest[..end]).map_err(|_| "not text")?;
        self.at += end + 1;
        Ok(text.trim_end_matches('\r'))
    }

    fn push(&mut self, value: Value) -> Step<()> {
        self.stack.push(self.values.len());
        self.values.push(value);
        Ok(())
    }

    fn number(&mut self, text: &str) -> Step<()> {
        let digits = text.trim_end_matches('L');
        let number = digits.parse().map_err(|_| format!("{text:?} is not a number"))?;
        self.push(Value::Number(number))
    }

    fn text(&mut self, length: u64) -> Step<()> {
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")?;
        self.push(Value::Text(text.to_owned()))
    }

    fn pop(&mut self) -> Step<usize> {
        let bottom = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= bottom {
            return Err("nothing is left on the stack".into());
        }
        Ok(self.stack.pop().expect("not empty"))
    }

    fn top(&self) -> Step<usize> {
        self.stack.last().copied().ok_or_else(|| "nothing is on the stack".into())
    }

    fn since_mark(&mut self) -> Step<Vec<usize>> {
        let mark = self.marks.pop().ok_or("there is no mark")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn append(&mut self, items: Vec<usize>) -> Step<()> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::List(list) => list.extend(items),
            _ => return Err("items are added to something that is no list".into()),
        }
        Ok(())
    }

    fn set(&mut self, items: &[usize]) -> Step<()> {
        let dictionary = self.top()?;
        if !items.len().is_multiple_of(2) {
            return Err("a key without a value".into());
        }
        match &mut self.values[dictionary] {
            Value::Dictionary(all) => all.extend(items.chunks(2).map(|pair| (pair[0], pair[1]))),
            _ => return Err("keys are set in something that is no dictionary".into()),
        }
        Ok(())
    }

    fn tuple(&mut self, length: usize) -> Step<()> {
        let mut items = (0..length).map(|_| self.pop()).collect::<Step<Vec<_>>>()?;
        items.reverse();
        self.push(Value::List(items))
    }

    fn remember(&mut self, key: u64) -> Step<()> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Step<()> {
        let place = *self.memo.get(&key).ok_or("a reference to what is not there")?;
        self.stack.push(place);
        Ok(())
    }

    /// One instruction; the place of the result when it was the last.
    fn step(&mut self) -> Step<Option<usize>> {
        let instruction = self.take(1)?[0];
        match instruction {
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'.' => return self.pop().map(Some),
            b'}' => self.push(Value::Dictionary(Vec::new()))?,
            b']' | b')' => self.push(Value::List(Vec::new()))?,
            b't' | b'l' => {
                let items = self.since_mark()?;
                self.push(Value::List(items))?;
            }
            b'd' => {
                let items = self.since_mark()?;
                self.push(Value::Dictionary(Vec::new()))?;
                self.set(&items)?;
            }
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(&items)?;
            }
            b'J' => {
                let number = self.little(4)? as u32 as i32;
                self.push(Value::Number(number.into()))?;
            }
            b'K' => {
                let number = self.little(1)?;
                self.push(Value::Number(number as f64))?;
            }
            b'M' => {
                let number = self.little(2)?;
                self.push(Value::Number(number as f64))?;
            }
            0x8a => {
                let length = self.little(1)?;
                let bytes = self.take(length)?;
                let unsigned =
                    bytes.iter().rev().fold(0.0, |sum, &byte| 256.0 * sum + f64::from(byte));
                let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
                let wrapped = if negative { 256f64.powi(bytes.len() as i32) } else { 0.0 };
                self.push(Value::Number(unsigned - wrapped))?;
            }
            b'G' => {
                let bytes: [u8; 8] = self.take(8)?.try_into().expect("eight bytes");
                self.push(Value::Number(f64::from_be_bytes(bytes)))?;
            }
            b'I' | b'L' | b'F' => {
                let text = self.line()?;
                self.number(text)?;
            }
            b'N' | 0x88 | 0x89 => self.push(Value::Other)?,
            b'X' | b'T' => {
                let length = self.little(4)?;
                self.text(length)?;
            }
            0x8c | b'U' => {
                let length = self.little(1)?;
                self.text(length)?;
            }
            0x8d => {
                let length = self.little(8)?;
                self.text(length)?;
            }
            b'V' | b'S' => {
                let text = self.line()?;
                let quoted =
                    |quote| text.strip_prefix(quote).and_then(|t: &str| t.strip_suffix(quote));
                let plain = if instruction == b'S' { quoted('\'').or(quoted('"')) } else { None };
                self.push(Value::Text(plain.unwrap_or(text).to_owned()))?;
            }
            b'C' | b'B' | 0x8e => {
                let length = self.little(match instruction {
                    b'C' => 1,
                    b'B' => 4,
                    _ => 8,
                })?;
                self.take(length)?;
                self.push(Value::Other)?;
            }
            b'q' => {
                let key = self.little(1)?;
                self.remember(key)?;
            }
            b'r' => {
                let key = self.little(4)?;
                self.remember(key)?;
            }
            b'p' | b'g' => {
                let key = self.line()?.parse().map_err(|_| "a reference that is no number")?;
                if instruction == b'p' { self.remember(key)? } else { self.recall(key)? }
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'h' => {
                let key = self.little(1)?;
                self.recall(key)?;
            }
            b'j' => {
                let key = self.little(4)?;
                self.recall(key)?;
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'c' | b'R' | b'i' | b'o' | b'b' | 0x81 | 0x92 | 0x93 | b'P' | b'Q' | 0x82..=0x84 => {
                return Err("the pickle wants to run code, which is refused: save plain numbers, texts, lists and \
                            dictionaries (not NumPy's)"
                    .into());
            }
            other => {
                return Err(format!(
                    "unknown instruction 0x{other:02x}: not a pickle of plain data"
                ));
            }
        }
        Ok(None)
    }
}
