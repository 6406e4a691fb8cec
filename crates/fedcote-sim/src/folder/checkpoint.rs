//! The state of a run in one safetensors file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use fedcote_learn::checkpoint::Values;
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use super::{Seals, Sum};
use crate::Error;
use crate::saved::Saved;

/// The tensor that holds the small values, as JSON text.
const VALUES: &str = "values.json";

/// The value that holds the checksums of the files that the state goes with.
const SEALS: &str = "files";

/// The value that holds the instruction sets.
const INSTRUCTIONS: &str = "instructions";

/// Where an interrupted run goes on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint<'a> {
    /// Rounds already played.
    pub round: u32,
    /// Seconds already spent.
    pub seconds: f64,
    /// The state after them.
    pub saved: Saved<'a>,
    /// Checksums of the files written so far.
    pub seals: Seals,
    /// The instruction sets that the rounds were computed with.
    pub instructions: BTreeSet<String>,
}

/// Writes the state after a round, as a whole.
pub fn save(path: &Path, checkpoint: &Checkpoint) -> Result<(), Error> {
    let contents = |file: &mut File| {
        let mut file = BufWriter::new(file);
        write(&mut file, checkpoint)?;
        file.flush()
    };
    Ok(fedcote_support::write_with(path, contents).map(drop)?)
}

/// The bytes of the file, to be sent.
pub(crate) fn contents(checkpoint: &Checkpoint) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes, checkpoint)?;
    Ok(bytes)
}

/// Tensors go into the file piece by piece: a state may be as large as half of the memory.
fn write(to: &mut impl Write, checkpoint: &Checkpoint) -> io::Result<()> {
    let Checkpoint { round, seconds, saved, seals, instructions } = checkpoint;
    let mut small = saved.values.clone();
    small.insert(SEALS.to_owned(), serde_json::to_value(seals).expect("plain data"));
    let sets = serde_json::to_value(instructions).expect("plain data");
    small.insert(INSTRUCTIONS.to_owned(), sets);
    let values = serde_json::to_vec(&(round, seconds, &small)).expect("plain data");
    let mut tensors = vec![(VALUES, vec![values.len()], Values::Bytes(&values))];
    for (name, slice) in &saved.tensors {
        tensors.push((name.as_str(), vec![slice.len()], Values::Numbers(slice)));
    }
    let mut sums = BTreeMap::new();
    for (name, _, values) in &tensors {
        let mut sum = Sum::new();
        values.pieces(|piece| {
            sum.add(piece);
            io::Result::Ok(())
        })?;
        sums.insert((*name).to_owned(), sum);
    }
    let metadata = HashMap::from([("checksums".to_owned(), joined(sums))]);
    fedcote_learn::checkpoint::write(to, tensors, Some(metadata))
}

/// Checksums by name, that of the values first. A damaged name is damage too.
fn joined(mut sums: BTreeMap<String, Sum>) -> String {
    let first = sums.remove_entry(VALUES);
    let named = first.into_iter().chain(sums).map(|(name, sum)| format!("{name}:{}", sum.text()));
    named.collect::<Vec<_>>().join(",")
}

/// Reads the state back. A file that is missing or damaged is no state: the run then begins again, which costs
/// time but never a wrong number.
pub fn load(path: &Path) -> Result<Option<Checkpoint<'static>>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    let length = file.metadata().map_err(Error::io(path))?.len();
    read(&mut BufReader::new(file), length).map_err(Error::io(path))
}

/// The state in these bytes, if they are whole.
pub(crate) fn understand(mut bytes: &[u8]) -> Option<Checkpoint<'static>> {
    let length = bytes.len() as u64;
    read(&mut bytes, length).ok()?
}

/// The state in a file of this length; nothing if it is damaged.
fn read(from: &mut impl Read, length: u64) -> io::Result<Option<Checkpoint<'static>>> {
    let Some(header) = read_header(from, length)? else { return Ok(None) };
    let Some(wanted) = header.metadata().as_ref().and_then(|known| known.get("checksums")) else {
        return Ok(None);
    };
    let (mut saved, mut values, mut sums) = (Saved::default(), Vec::new(), BTreeMap::new());
    for name in header.offset_keys() {
        let info = header.info(&name).expect("it is one of its keys");
        let size = info.data_offsets.1 - info.data_offsets.0;
        let mut sum = Sum::new();
        if name == VALUES {
            read_pieces(from, size, &mut sum, |piece| values.extend_from_slice(piece))?;
        } else if info.dtype == Dtype::F32 {
            let mut slice = Vec::with_capacity(size / size_of::<f32>());
            read_pieces(from, size, &mut sum, |piece| {
                let numbers = piece.chunks_exact(4);
                slice.extend(numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
            })?;
            saved.tensors.insert(name.clone(), slice.into());
        } else {
            return Ok(None);
        }
        sums.insert(name, sum);
    }
    if joined(sums) != *wanted {
        return Ok(None);
    }
    let understood = || {
        let (round, seconds, mut small): (_, _, BTreeMap<String, serde_json::Value>) =
            serde_json::from_slice(&values).ok()?;
        // Early versions did not write them.
        let seals = match small.remove(SEALS) {
            None => Seals::default(),
            Some(seals) => serde_json::from_value(seals).ok()?,
        };
        let instructions = match small.remove(INSTRUCTIONS) {
            None => BTreeSet::new(),
            Some(sets) => serde_json::from_value(sets).ok()?,
        };
        saved.values = small;
        Some(Checkpoint { round, seconds, saved, seals, instructions })
    };
    Ok(understood())
}

/// Names and places of the tensors of a file of this length.
fn read_header(from: &mut impl Read, length: u64) -> io::Result<Option<Metadata>> {
    let mut size = [0; 8];
    if length < 8 {
        return Ok(None);
    }
    from.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    let Some(data) = (length - 8).checked_sub(size) else { return Ok(None) };
    let mut header = Vec::new();
    from.take(size).read_to_end(&mut header)?;
    let header: Option<Metadata> = serde_json::from_slice(&header).ok();
    Ok(header.filter(|header| header.data_len() as u64 == data))
}

/// So many bytes, a few at a time.
fn read_pieces(
    from: &mut impl Read,
    size: usize,
    sum: &mut Sum,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut piece = [0; 1 << 14];
    let mut left = size;
    while left > 0 {
        let piece = &mut piece[..left.min(1 << 14)];
        from.read_exact(piece)?;
        sum.add(piece);
        each(piece);
        left -= piece.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn state() -> Saved<'static> {
        let mut saved = Saved::default();
        saved.put("global", &[1.0, -2.5, f32::MIN_POSITIVE]);
        saved.put("empty", &[]);
        saved.put_value("numbers", &[0.1, 1e-300]);
        saved
    }

    fn seals() -> Seals {
        let mut seals = Seals::default();
        seals.set("metrics.jsonl", "0123456789abcdef".to_owned());
        seals
    }

    fn checkpoint() -> Checkpoint<'static> {
        let instructions = BTreeSet::from(["avx2".to_owned(), "portable".to_owned()]);
        Checkpoint { round: 7, seconds: 1.5, saved: state(), seals: seals(), instructions }
    }

    #[test]
    fn a_state_survives_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.safetensors");
        save(&path, &checkpoint()).unwrap();
        assert_eq!(load(&path).unwrap().unwrap(), checkpoint());
        assert!(load(&folder.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.safetensors");
        save(&path, &checkpoint()).unwrap();
        let sound = fs::read(&path).unwrap();
        for bit in 0..sound.len() * 8 {
            let mut damaged = sound.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Some(resumed) = understand(&damaged) {
                // Spaces in the header may change without harm; the state may not.
                assert_eq!(resumed.saved, state(), "bit {bit}");
                assert_eq!((resumed.round, resumed.seals), (7, seals()), "bit {bit}");
            }
        }
        for length in 0..sound.len() {
            assert!(understand(&sound[..length]).is_none(), "cut at {length}");
        }
    }
}
