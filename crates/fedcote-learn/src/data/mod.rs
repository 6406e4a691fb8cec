//! Data sets.

/// The shape of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values a pixel; they are stored together (channels last).
    pub channels: usize,
}

impl Shape {
    /// The number of values a sample has.
    #[allow(clippy::len_without_is_empty)] // a sample is never empty
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }
}
