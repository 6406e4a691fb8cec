//! The state of a run as plain data: named slices of numbers and small JSON values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Everything that a run must remember between rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    /// Slices of model size or multiples of it.
    pub tensors: BTreeMap<String, Vec<f32>>,
    /// Everything else.
    pub values: BTreeMap<String, serde_json::Value>,
}

impl Saved {
    /// Remembers a slice.
    pub fn put(&mut self, name: &str, slice: &[f32]) {
        self.tensors.insert(name.to_owned(), slice.to_vec());
    }

    /// Remembers a value.
    pub fn put_value(&mut self, name: &str, value: &impl Serialize) {
        let value = serde_json::to_value(value).expect("states are plain data");
        self.values.insert(name.to_owned(), value);
    }

    /// The slice of that name and length; what is missing was damaged.
    pub fn get(&self, name: &str, length: usize) -> Result<Vec<f32>, String> {
        match self.tensors.get(name) {
            Some(slice) if slice.len() == length => Ok(slice.clone()),
            Some(slice) => Err(format!("`{name}` has {} values, not {length}", slice.len())),
            None => Err(format!("`{name}` is missing")),
        }
    }

    /// The value of that name.
    pub fn get_value<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let value = self.values.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
        serde_json::from_value(value.clone()).map_err(|error| format!("`{name}`: {error}"))
    }
}
