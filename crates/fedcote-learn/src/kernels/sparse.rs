//! Dense layers whose inputs are mostly one value: black pixels, units that ReLU switched off.
//!
//! Inputs are kept as [`Lists`] of the entries that differ from the background. Matrices are kept in panels
//! of [`PANEL`] columns, so that one row of a panel is a few vectors and a whole panel stays in cache while
//! the samples of a batch pass by. Two products do everything: [`combine`] (forward, and the gradient at a
//! layer's input) and [`scatter`] (the gradient of the weights). Nothing here allocates after `new`.

use super::{
    Path,
    buffer::Buffer,
    compress::{Keep, SLACK, compress},
    simd::{Simd, dispatch},
};

/// Columns of a panel.
pub(super) const PANEL: usize = 32;
/// Running sums that are kept in registers at once.
const SUMS: usize = 8;

/// For each sample, the columns whose entry is not the background, and by how much.
///
/// Every column in a list is below `columns`: the products rely on that.
pub(crate) struct Lists {
    columns: usize,
    starts: Vec<usize>,
    places: Vec<u32>,
    values: Vec<f32>,
}

impl Lists {
    /// Room for that many samples of that many columns.
    pub(crate) fn new(samples: usize, columns: usize) -> Self {
        let room = samples * columns + SLACK;
        Self {
            columns,
            starts: Vec::with_capacity(samples + 1),
            places: vec![0; room],
            values: vec![0.0; room],
        }
    }

    /// Takes the entries of these rows that differ from the background.
    pub(crate) fn fill(&mut self, path: Path, rows: &[f32], background: f32) {
        self.fill_where(path, rows, self.columns, background, Keep::Other);
    }

    /// Takes the positive entries of rows that lie `stride` apart: ReLU. NaN is kept.
    pub(crate) fn fill_positive(&mut self, path: Path, rows: &[f32], stride: usize) {
        self.fill_where(path, rows, stride, 0.0, Keep::Above);
    }

    /// Takes all entries of rows that lie `stride` apart, but zeros.
    pub(crate) fn fill_strided(&mut self, path: Path, rows: &[f32], stride: usize) {
        self.fill_where(path, rows, stride, 0.0, Keep::Other);
    }

    fn fill_where(&mut self, path: Path, rows: &[f32], stride: usize, background: f32, keep: Keep) {
        self.starts.clear();
        let mut count = 0;
        self.starts.push(count);
        for row in rows.chunks_exact(stride) {
            let (places, values) = (&mut self.places[count..], &mut self.values[count..]);
            count += compress(path, &row[..self.columns], background, keep, places, values);
            self.starts.push(count);
        }
    }

    fn samples(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The entries of each sample: columns and values, equally many.
    #[inline(always)]
    fn entries(&self) -> impl Iterator<Item = (&[u32], &[f32])> {
        self.starts.windows(2).map(|bounds| {
            let entries = bounds[0]..bounds[1];
            (&self.places[entries.clone()], &self.values[entries])
        })
    }
}

/// A matrix in panels, padded with zero columns.
pub(crate) struct Panels {
    rows: usize,
    columns: usize,
    values: Buffer,
}

impl Panels {
    /// Zeros.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: Buffer::zeros(rows * Self::padded(columns)) }
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The panels, one after the other.
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The number of columns, with the padding.
    pub(crate) fn padded(columns: usize) -> usize {
        columns.next_multiple_of(PANEL)
    }

    /// Takes the values of a row-major matrix.
    pub(crate) fn pack(&mut self, matrix: &[f32]) {
        assert_eq!(matrix.len(), self.rows * self.columns);
        for (panel, values) in self.values.chunks_exact_mut(self.rows * PANEL).enumerate() {
            let first = panel * PANEL;
            let end = self.columns.min(first + PANEL);
            for (to, from) in values.chunks_exact_mut(PANEL).zip(matrix.chunks_exact(self.columns))
            {
                to[..end - first].copy_from_slice(&from[first..end]);
            }
        }
    }

    /// Takes the transpose of a row-major matrix.
    pub(crate) fn pack_transposed(&mut self, matrix: &[f32]) {
        assert_eq!(matrix.len(), self.rows * self.columns);
        for (column, from) in matrix.chunks_exact(self.rows).enumerate() {
            let to = &mut self.values[column / PANEL * self.rows * PANEL + column % PANEL..];
            to.iter_mut().step_by(PANEL).zip(from).for_each(|(to, &from)| *to = from);
        }
    }

    /// Writes the row-major matrix.
    pub(crate) fn unpack(&self, matrix: &mut [f32]) {
        assert_eq!(matrix.len(), self.rows * self.columns);
        for (panel, values) in self.values.chunks_exact(self.rows * PANEL).enumerate() {
            let first = panel * PANEL;
            let end = self.columns.min(first + PANEL);
            for (from, to) in values.chunks_exact(PANEL).zip(matrix.chunks_exact_mut(self.columns))
            {
                to[first..end].copy_from_slice(&from[..end - first]);
            }
        }
    }

    /// Writes the row-major matrix, each row plus `each`.
    pub(crate) fn unpack_plus(&self, each: &[f32], matrix: &mut [f32]) {
        assert_eq!(matrix.len(), self.rows * self.columns);
        for (panel, values) in self.values.chunks_exact(self.rows * PANEL).enumerate() {
            let first = panel * PANEL;
            let end = self.columns.min(first + PANEL);
            for (from, to) in values.chunks_exact(PANEL).zip(matrix.chunks_exact_mut(self.columns))
            {
                for ((to, from), each) in to[first..end].iter_mut().zip(from).zip(&each[first..end])
                {
                    *to = from + each;
                }
            }
        }
    }

    /// Adds factor · (the sum of the rows) to `out`, which is as long as a padded row.
    pub(crate) fn add_row_sum(&self, factor: f32, out: &mut [f32]) {
        for (values, out) in
            self.values.chunks_exact(self.rows * PANEL).zip(out.chunks_exact_mut(PANEL))
        {
            let mut sum = [0.0; PANEL];
            for row in values.chunks_exact(PANEL) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            out.iter_mut().zip(sum).for_each(|(out, sum)| *out += factor * sum);
        }
    }
}

dispatch! {
    /// out_b = start + Σ value · matrix_column over the entries of sample b. Rows of `out` are padded.
    fn combine(lists: &Lists, matrix: &Panels, start: &[f32], out: &mut [f32]) = combine_generic
}

#[inline(always)]
unsafe fn combine_generic<S: Simd>(lists: &Lists, matrix: &Panels, start: &[f32], out: &mut [f32]) {
    let stride = Panels::padded(matrix.columns);
    assert!(lists.columns == matrix.rows && start.len() == stride);
    assert_eq!(out.len(), lists.samples() * stride);
    let vectors = PANEL / S::LANES;
    for (panel, values) in matrix.values.chunks_exact(matrix.rows * PANEL).enumerate() {
        for ((places, factors), out) in lists.entries().zip(out.chunks_exact_mut(stride)) {
            let out = &mut out[panel * PANEL..][..PANEL];
            // SAFETY: the caller has the instruction set. Columns of entries are below `lists.columns`, which is
            // the number of rows of `values`, so a row of PANEL floats is there; `start` and `out` have a panel.
            unsafe {
                let row = |entry: usize| {
                    values.as_ptr().add(*places.get_unchecked(entry) as usize * PANEL)
                };
                let factor = |entry: usize| S::splat(*factors.get_unchecked(entry));
                // Several entries at a time in sums of their own, so that no sum waits for itself.
                let mut sums = [S::splat(0.0); SUMS];
                for v in 0..vectors {
                    sums[v] = S::load(start.as_ptr().add(panel * PANEL + v * S::LANES));
                }
                let at_once = SUMS / vectors;
                let whole = places.len() / at_once * at_once;
                for first in (0..whole).step_by(at_once) {
                    for e in 0..at_once {
                        let (factor, row) = (factor(first + e), row(first + e));
                        for v in 0..vectors {
                            let sum = &mut sums[e * vectors + v];
                            *sum = factor.fma(S::load(row.add(v * S::LANES)), *sum);
                        }
                    }
                }
                for entry in whole..places.len() {
                    let (factor, row) = (factor(entry), row(entry));
                    for v in 0..vectors {
                        sums[v] = factor.fma(S::load(row.add(v * S::LANES)), sums[v]);
                    }
                }
                for v in 0..vectors {
                    let mut sum = sums[v];
                    for e in 1..at_once {
                        sum = sum.add(sums[e * vectors + v]);
                    }
                    sum.store(out.as_mut_ptr().add(v * S::LANES));
                }
            }
        }
    }
}

dispatch! {
    /// matrix_column = Σ value · row_b over all entries of all samples b. Rows are padded.
    fn scatter(lists: &Lists, rows: &[f32], matrix: &mut Panels) = scatter_generic
}

#[inline(always)]
unsafe fn scatter_generic<S: Simd>(lists: &Lists, rows: &[f32], matrix: &mut Panels) {
    let stride = Panels::padded(matrix.columns);
    assert!(lists.columns == matrix.rows && rows.len() == lists.samples() * stride);
    matrix.values.fill(0.0);
    let vectors = PANEL / S::LANES;
    for (panel, values) in matrix.values.chunks_exact_mut(matrix.rows * PANEL).enumerate() {
        for ((places, factors), row) in lists.entries().zip(rows.chunks_exact(stride)) {
            let row = &row[panel * PANEL..][..PANEL];
            // SAFETY: as in `combine_generic`; `values` is borrowed exclusively.
            unsafe {
                let mut slopes = [S::splat(0.0); SUMS];
                for v in 0..vectors {
                    slopes[v] = S::load(row.as_ptr().add(v * S::LANES));
                }
                for (&place, &factor) in places.iter().zip(factors) {
                    let factor = S::splat(factor);
                    let sum = values.as_mut_ptr().add(place as usize * PANEL);
                    for v in 0..vectors {
                        let sum = sum.add(v * S::LANES);
                        factor.fma(slopes[v], S::load(sum)).store(sum);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number for each place, a third of them `background`.
    fn numbers(count: usize, background: f32) -> Vec<f32> {
        (0..count)
            .map(|i| if i * 7 % 3 == 0 { background } else { (i as f32 * 0.7).sin() })
            .collect()
    }

    #[test]
    fn products_equal_their_definitions_on_every_path() {
        for (samples, rows, columns, background) in [
            (1, 1, 1, 0.0),
            (3, 17, 10, -0.4),
            (5, 40, 32, 0.0),
            (4, 33, 70, 1.5),
            (2, 5, 96, -0.4),
        ] {
            let inputs = numbers(samples * rows, background);
            let matrix: Vec<f32> = (0..rows * columns).map(|i| (i as f32 * 0.3).cos()).collect();
            let stride = Panels::padded(columns);
            for path in Path::supported() {
                let mut lists = Lists::new(samples + 1, rows);
                lists.fill(path, &inputs, background);
                let mut panels = Panels::new(rows, columns);
                panels.pack(&matrix);
                let mut start = vec![0.25; stride];
                panels.add_row_sum(background, &mut start);
                let mut out = vec![f32::NAN; samples * stride];
                combine(path, &lists, &panels, &start, &mut out);
                for b in 0..samples {
                    for c in 0..columns {
                        let terms = (0..rows).map(|r| {
                            f64::from(inputs[b * rows + r]) * f64::from(matrix[r * columns + c])
                        });
                        let exact = 0.25 + terms.sum::<f64>();
                        assert!(
                            (f64::from(out[b * stride + c]) - exact).abs() < 2e-5,
                            "{}",
                            path.name()
                        );
                    }
                }
                let slopes: Vec<f32> =
                    (0..samples * stride).map(|i| (i as f32 * 0.9).cos()).collect();
                let mut each = vec![0.0; stride];
                for row in slopes.chunks(stride) {
                    each.iter_mut().zip(row).for_each(|(sum, slope)| *sum += background * slope);
                }
                let (mut sums, mut gradient) =
                    (Panels::new(rows, columns), vec![0.0; rows * columns]);
                scatter(path, &lists, &slopes, &mut sums);
                sums.unpack_plus(&each, &mut gradient);
                for r in 0..rows {
                    for c in 0..columns {
                        let terms = (0..samples).map(|b| {
                            f64::from(inputs[b * rows + r]) * f64::from(slopes[b * stride + c])
                        });
                        let off = f64::from(gradient[r * columns + c]) - terms.sum::<f64>();
                        assert!(off.abs() < 2e-5, "{}", path.name());
                    }
                }
                // The transpose, unpacked again, is the transpose.
                let mut turned = Panels::new(columns, rows);
                turned.pack_transposed(&matrix);
                let mut back = vec![0.0; rows * columns];
                turned.unpack_plus(&vec![0.0; Panels::padded(rows)], &mut back);
                assert!(
                    (0..rows * columns)
                        .all(|i| back[i % columns * rows + i / columns] == matrix[i])
                );
            }
        }
    }

    #[test]
    fn relu_keeps_positive_entries_and_nan() {
        for path in Path::supported() {
            let mut lists = Lists::new(2, 3);
            lists.fill_positive(path, &[1.0, -1.0, f32::NAN, 9.0, 0.0, 2.0, 3.0, 9.0], 4);
            let kept = lists.places[..lists.starts[2]].to_vec();
            assert_eq!((kept, &lists.starts[..]), (vec![0, 2, 1, 2], &[0, 2, 4][..]));
        }
    }
}
