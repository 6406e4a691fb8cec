//! Picks the entries of a row that matter, and remembers where they were.

use super::{Path, simd::Set};

/// Entries that may be written past the end of those kept.
pub(super) const SLACK: usize = 16;

/// Which entries are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Those that differ from the background.
    Other,
    /// Those not below or at the background, NaN included: ReLU.
    Above,
}

/// Writes column and value − background of each kept entry of the row; returns how many there are.
///
/// # Panics
///
/// Without room for the whole row and [`SLACK`] more.
pub(super) fn compress(
    path: Path,
    row: &[f32],
    background: f32,
    keep: Keep,
    columns: &mut [u32],
    values: &mut [f32],
) -> usize {
    let room = row.len() + SLACK;
    assert!(columns.len() >= room && values.len() >= room);
    match path.0 {
        // SAFETY: a `Path` of this kind exists only where the CPU has the instruction set; there is room.
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => unsafe { x86::avx512(row, background, keep, columns, values) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { x86::avx2(row, background, keep, columns, values) },
        Set::Portable => tail(row, 0, 0, background, keep, columns, values),
    }
}

/// One entry at a time, from column `first` on, after `count` kept ones.
fn tail(
    row: &[f32],
    first: usize,
    mut count: usize,
    background: f32,
    keep: Keep,
    columns: &mut [u32],
    values: &mut [f32],
) -> usize {
    for (column, &value) in row.iter().enumerate().skip(first) {
        // Written whether kept or not: a branch here would be guessed wrong too often.
        columns[count] = column as u32;
        values[count] = value - background;
        let kept = match keep {
            Keep::Other => value != background,
            Keep::Above => value > background || value.is_nan(),
        };
        count += usize::from(kept);
    }
    count
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Keep, tail};

    /// For each mask of eight lanes, the lanes that are set, in order.
    const ORDER: [[u32; 8]; 256] = {
        let mut order = [[0; 8]; 256];
        let mut mask = 0;
        while mask < 256 {
            let (mut lane, mut count) = (0, 0);
            while lane < 8 {
                if mask & (1 << lane) != 0 {
                    order[mask][count] = lane;
                    count += 1;
                }
                lane += 1;
            }
            mask += 1;
        }
        order
    };

    /// # Safety
    ///
    /// `columns` and `values` are eight longer than the row.
    #[target_feature(enable = "avx2,fma,popcnt")]
    pub(super) unsafe fn avx2(
        row: &[f32],
        background: f32,
        keep: Keep,
        columns: &mut [u32],
        values: &mut [f32],
    ) -> usize {
        let dark = _mm256_set1_ps(background);
        let mut count = 0;
        let whole = row.len() / 8 * 8;
        for first in (0..whole).step_by(8) {
            // SAFETY: eight floats start at `first`; at most `first` entries are kept so far, so there is room for
            // eight more; a mask of eight lanes is below 256.
            unsafe {
                let value = _mm256_loadu_ps(row.as_ptr().add(first));
                let kept = match keep {
                    Keep::Other => _mm256_cmp_ps::<_CMP_NEQ_UQ>(value, dark),
                    Keep::Above => _mm256_cmp_ps::<_CMP_NLE_UQ>(value, dark),
                };
                let mask = _mm256_movemask_ps(kept) as usize;
                let order = _mm256_loadu_si256(ORDER[mask & 255].as_ptr().cast());
                let packed = _mm256_permutevar8x32_ps(_mm256_sub_ps(value, dark), order);
                _mm256_storeu_ps(values.as_mut_ptr().add(count), packed);
                let places = _mm256_add_epi32(order, _mm256_set1_epi32(first as i32));
                _mm256_storeu_si256(columns.as_mut_ptr().add(count).cast(), places);
                count += mask.count_ones() as usize;
            }
        }
        tail(row, whole, count, background, keep, columns, values)
    }

    /// # Safety
    ///
    /// `columns` and `values` are sixteen longer than the row.
    #[target_feature(enable = "avx512f,avx2,fma,popcnt")]
    pub(super) unsafe fn avx512(
        row: &[f32],
        background: f32,
        keep: Keep,
        columns: &mut [u32],
        values: &mut [f32],
    ) -> usize {
        let dark = _mm512_set1_ps(background);
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let mut count = 0;
        let whole = row.len() / 16 * 16;
        for first in (0..whole).step_by(16) {
            // SAFETY: as above, with sixteen lanes.
            unsafe {
                let value = _mm512_loadu_ps(row.as_ptr().add(first));
                let mask = match keep {
                    Keep::Other => _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(value, dark),
                    Keep::Above => _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(value, dark),
                };
                let packed = _mm512_maskz_compress_ps(mask, _mm512_sub_ps(value, dark));
                _mm512_storeu_ps(values.as_mut_ptr().add(count), packed);
                let places = _mm512_add_epi32(lanes, _mm512_set1_epi32(first as i32));
                let places = _mm512_maskz_compress_epi32(mask, places);
                _mm512_storeu_si512(columns.as_mut_ptr().add(count).cast(), places);
                count += mask.count_ones() as usize;
            }
        }
        tail(row, whole, count, background, keep, columns, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_keeps_the_same_entries() {
        let special = [f32::NAN, f32::INFINITY, -0.0, 0.0, -0.4, f32::NEG_INFINITY];
        for length in [0, 1, 7, 8, 15, 16, 17, 40, 100] {
            let row: Vec<f32> = (0..length)
                .map(|i| if i % 3 == 0 { special[i / 3 % 6] } else { (i as f32 * 1.3).sin() })
                .collect();
            for (background, keep) in
                [(0.0, Keep::Other), (-0.4, Keep::Other), (0.0, Keep::Above), (-0.4, Keep::Above)]
            {
                let expected: Vec<(u32, u32)> = (0..)
                    .zip(&row)
                    .filter(|(_, value)| match keep {
                        Keep::Other => **value != background,
                        Keep::Above => {
                            !matches!(value.partial_cmp(&&background), Some(o) if o.is_le())
                        }
                    })
                    .map(|(column, value)| (column, (value - background).to_bits()))
                    .collect();
                for path in Path::supported() {
                    let (mut columns, mut values) =
                        (vec![0; length + SLACK], vec![0.0; length + SLACK]);
                    let count = compress(path, &row, background, keep, &mut columns, &mut values);
                    let found: Vec<(u32, u32)> = columns
                        .iter()
                        .copied()
                        .zip(values.iter().map(|value| value.to_bits()))
                        .take(count)
                        .collect();
                    assert_eq!(found, expected, "{}", path.name());
                }
            }
        }
    }
}
