//! The state of a run in one safetensors file.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use super::{Seals, checksum};
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
pub struct Checkpoint {
    /// Rounds already played.
    pub round: u32,
    /// Seconds already spent.
    pub seconds: f64,
    /// The state after them.
    pub saved: Saved,
    /// Checksums of the files written so far.
    pub seals: Seals,
    /// The instruction sets that the rounds were computed with.
    pub instructions: BTreeSet<String>,
}

/// Writes the state after a round, as a whole.
pub fn save(path: &Path, checkpoint: &Checkpoint) -> Result<(), Error> {
    let contents = contents(checkpoint).map_err(|error| Error::folder(path, error.to_string()))?;
    Ok(fedcote_support::write(path, &contents)?)
}

/// The bytes of the file.
pub(crate) fn contents(checkpoint: &Checkpoint) -> Result<Vec<u8>, SafeTensorError> {
    let Checkpoint { round, seconds, saved, seals, instructions } = checkpoint;
    let mut small = saved.values.clone();
    small.insert(SEALS.to_owned(), serde_json::to_value(seals).expect("plain data"));
    let sets = serde_json::to_value(instructions).expect("plain data");
    small.insert(INSTRUCTIONS.to_owned(), sets);
    let values = serde_json::to_vec(&(round, seconds, &small)).expect("plain data");
    let tensors: Vec<(&str, Vec<u8>)> = saved
        .tensors
        .iter()
        .map(|(name, slice)| (name.as_str(), slice.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let mut views = vec![(VALUES, view(Dtype::U8, &values)?)];
    for (name, bytes) in &tensors {
        views.push((*name, view(Dtype::F32, bytes)?));
    }
    let sums: Vec<String> = std::iter::once((VALUES, &values))
        .chain(tensors.iter().map(|(name, bytes)| (*name, bytes)))
        .map(|(name, bytes)| named_checksum(name, bytes))
        .collect();
    let sums = sums.join(",");
    let metadata = HashMap::from([("checksums".to_owned(), sums)]);
    safetensors::serialize(views, Some(metadata))
}

/// A damaged name is damage too.
fn named_checksum(name: &str, bytes: &[u8]) -> String {
    format!("{name}:{}", checksum(bytes))
}

fn view(kind: Dtype, bytes: &[u8]) -> Result<TensorView<'_>, SafeTensorError> {
    let size = if kind == Dtype::F32 { size_of::<f32>() } else { 1 };
    TensorView::new(kind, vec![bytes.len() / size], bytes)
}

/// Reads the state back. A file that is missing or damaged is no state: the run then begins again, which costs
/// time but never a wrong number.
pub fn load(path: &Path) -> Result<Option<Checkpoint>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    Ok(understand(&bytes))
}

pub(crate) fn understand(bytes: &[u8]) -> Option<Checkpoint> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let file = SafeTensors::deserialize(bytes).ok()?;
    let sums = header.metadata().as_ref()?.get("checksums")?.clone();
    let mut saved = Saved::default();
    let values = file.tensor(VALUES).ok()?;
    let mut found = vec![named_checksum(VALUES, values.data())];
    let (round, seconds, small) = serde_json::from_slice(values.data()).ok()?;
    saved.values = small;
    // Early versions did not write them.
    let seals = match saved.values.remove(SEALS) {
        None => Seals::default(),
        Some(seals) => serde_json::from_value(seals).ok()?,
    };
    let instructions = match saved.values.remove(INSTRUCTIONS) {
        None => BTreeSet::new(),
        Some(sets) => serde_json::from_value(sets).ok()?,
    };
    let mut names: Vec<&str> = file.names().into_iter().filter(|name| *name != VALUES).collect();
    names.sort_unstable();
    for name in names {
        let tensor = file.tensor(name).ok()?;
        found.push(named_checksum(name, tensor.data()));
        let chunks = tensor.data().chunks_exact(4);
        let slice = chunks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        saved.tensors.insert(name.to_owned(), slice);
    }
    (sums == found.join(",")).then_some(Checkpoint { round, seconds, saved, seals, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Saved {
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

    fn checkpoint() -> Checkpoint {
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
