//! Matrix products for dense layers, on the `gemm` crate.

use gemm::{Parallelism, gemm};

/// A row-major matrix, or the transpose of one.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Matrix<'a> {
    /// The matrix with these rows, one after the other.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns);
        Self { values, rows, columns, row_stride: columns as isize, column_stride: 1 }
    }

    /// The transpose, without moving anything.
    pub(crate) fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// `out = left · right`, or `out += left · right`, on this thread.
pub(crate) fn product(out: &mut [f32], add: bool, left: Matrix, right: Matrix) {
    assert_eq!(left.columns, right.rows);
    assert_eq!(out.len(), left.rows * right.columns);
    // SAFETY: the strides are those of whole row-major matrices (or transposes) whose lengths `new` and the
    // asserts above checked, so every element that gemm addresses lies in its slice; `out` is borrowed
    // exclusively, so it overlaps neither operand.
    unsafe {
        gemm(
            left.rows,
            right.columns,
            left.columns,
            out.as_mut_ptr(),
            1,
            right.columns as isize,
            add,
            left.values.as_ptr(),
            left.column_stride,
            left.row_stride,
            right.values.as_ptr(),
            right.column_stride,
            right.row_stride,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
