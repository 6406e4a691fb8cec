//! Random numbers that depend on what they are for, and on nothing else.
//!
//! A stream is named by its [`Key`]: seed, purpose, round, client, copy, attempt. Two streams with the
//! same key are equal bit for bit, whoever asks first and on whatever thread, and streams with different
//! keys are independent. All schemes of a comparison therefore meet the same network and the same
//! mini-batches, and a resumed run goes on as if nothing had happened.
//!
//! ```
//! use fedcote::random::{Key, Purpose};
//! use rand::RngExt;
//!
//! let key = Key::new(1, Purpose::Upload).round(3).client(7);
//! let first: f64 = key.stream().random();
//! let again: f64 = key.stream().random();
//! assert_eq!(first, again);
//! assert_ne!(first, key.attempt(1).stream().random::<f64>());
//! ```

use rand::SeedableRng;

/// The generator behind every stream: ChaCha with eight rounds.
pub type Stream = rand_chacha::ChaCha8Rng;

/// What a stream of random numbers is for.
///
/// The numbers are part of what a seed means: they stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// The initial model.
    Model = 1,
    /// How samples are divided among clients.
    Partition = 2,
    /// Where clients stand.
    Placement = 3,
    /// How clients move.
    Mobility = 4,
    /// Which clients the server draws.
    Selection = 5,
    /// Which samples a client puts in a mini-batch.
    Batch = 6,
    /// Whether an upload arrives.
    Upload = 7,
    /// How many local steps a client makes.
    LocalSteps = 8,
    /// Synthetic data.
    Data = 9,
    /// Noise that protects label counts.
    Privacy = 10,
    /// Whether a client finishes in time.
    Straggler = 11,
    /// Anything a test needs.
    Test = 12,
    /// Which clients are hostile.
    Hostile = 13,
    /// Which clients are there.
    Availability = 20,
    /// How the images of a mini-batch are shifted and mirrored.
    Augmentation = 25,
    /// Which device a client has.
    Device = 30,
    /// Which groups of clients are down.
    Group = 31,
    /// Noise that protects updates.
    UpdateNoise = 32,
    /// What a pilot shows of a link.
    Pilot = 33,
}

/// The name of a stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    seed: u64,
    purpose: Purpose,
    round: u32,
    client: u64,
    copy: u32,
    attempt: u32,
}

impl Key {
    /// The key with the given seed and purpose, everything else zero.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose, round: 0, client: 0, copy: 0, attempt: 0 }
    }

    /// The same key for another purpose.
    pub fn purpose(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }

    /// The same key in another round.
    pub fn round(self, round: u32) -> Self {
        Self { round, ..self }
    }

    /// The same key for another client.
    pub fn client(self, client: u64) -> Self {
        Self { client, ..self }
    }

    /// The same key for another copy: the n-th draw of the same client in a round.
    pub fn copy(self, copy: u32) -> Self {
        Self { copy, ..self }
    }

    /// The same key for another attempt.
    pub fn attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// The stream of that name, from its beginning.
    pub fn stream(self) -> Stream {
        Stream::from_seed(self.bytes())
    }

    /// The seed of the stream's generator. The six numbers of a key fill it exactly, so different keys never collide.
    pub fn bytes(self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed[0..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&self.client.to_le_bytes());
        seed[16..20].copy_from_slice(&(self.purpose as u32).to_le_bytes());
        seed[20..24].copy_from_slice(&self.round.to_le_bytes());
        seed[24..28].copy_from_slice(&self.copy.to_le_bytes());
        seed[28..32].copy_from_slice(&self.attempt.to_le_bytes());
        seed
    }

    /// The stream of a key that was given away as [`bytes`](Self::bytes).
    pub fn stream_of(bytes: [u8; 32]) -> Stream {
        Stream::from_seed(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn every_part_of_the_key_changes_the_stream() {
        let key = Key::new(1, Purpose::Test);
        let keys = [
            key,
            Key::new(2, Purpose::Test),
            Key::new(1, Purpose::Upload),
            key.round(1),
            key.client(1),
            key.copy(1),
            key.attempt(1),
        ];
        let firsts: std::collections::HashSet<u64> =
            keys.iter().map(|key| key.stream().next_u64()).collect();
        assert_eq!(firsts.len(), keys.len());
    }
}
