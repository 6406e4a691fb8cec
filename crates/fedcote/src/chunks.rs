//! Parallel loops whose results do not depend on the number of threads.
//!
//! Clients are cut into chunks of a fixed size; each chunk is summed in order, and the chunk sums are
//! added in order. Short inputs run the same chunks on the calling thread.

use std::ops::Range;

#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// Clients per chunk.
pub const CHUNK: usize = 4096;

/// Below this many clients waking other threads costs more than it saves.
#[cfg(feature = "rayon")]
const PARALLEL: usize = 4 * CHUNK;

/// Maps every chunk of `0..length` and returns the results in order.
pub fn map<T: Send>(length: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let chunk = |index: usize| index * CHUNK..length.min((index + 1) * CHUNK);
    let count = length.div_ceil(CHUNK);
    #[cfg(feature = "rayon")]
    if length >= PARALLEL {
        return (0..count).into_par_iter().map(|index| work(chunk(index))).collect();
    }
    (0..count).map(|index| work(chunk(index))).collect()
}

/// The sum over `0..length` of what `work` returns for a chunk.
pub fn sum(length: usize, work: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    sums(length, |range| [work(range)])[0]
}

/// Several sums at once.
pub fn sums<const M: usize>(
    length: usize,
    work: impl Fn(Range<usize>) -> [f64; M] + Sync,
) -> [f64; M] {
    let mut total = [0.0; M];
    for part in map(length, work) {
        for (total, part) in total.iter_mut().zip(part) {
            *total += part;
        }
    }
    total
}

/// Fills `out`, chunk by chunk; `work` gets the index of the chunk's first client and the chunk.
pub fn fill(out: &mut [f64], work: impl Fn(usize, &mut [f64]) + Sync) {
    #[cfg(feature = "rayon")]
    if out.len() >= PARALLEL {
        let chunks = out.par_chunks_mut(CHUNK).enumerate();
        return chunks.for_each(|(index, chunk)| work(index * CHUNK, chunk));
    }
    out.chunks_mut(CHUNK).enumerate().for_each(|(index, chunk)| work(index * CHUNK, chunk));
}

/// Maps every item, all in parallel where that is possible, and returns the results in order.
pub fn each<T: Sync, U: Send>(items: &[T], work: impl Fn(&T) -> U + Sync + Send) -> Vec<U> {
    #[cfg(feature = "rayon")]
    return items.par_iter().map(work).collect();
    #[cfg(not(feature = "rayon"))]
    items.iter().map(work).collect()
}

/// Multiplies every value by `factor`.
pub fn scale(values: &mut [f64], factor: f64) {
    fill(values, |_, chunk| chunk.iter_mut().for_each(|value| *value *= factor));
}

/// Scales non-negative values to sum to one.
pub fn normalise(values: &mut [f64]) {
    let total = sum(values.len(), |range| values[range].iter().sum());
    scale(values, 1.0 / total);
}
