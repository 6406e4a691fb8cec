//! The state of a run as plain data: named slices of numbers and small JSON values.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Everything that a run must remember between rounds. While it is written, slices are borrowed from the run: a state may
/// have one model per client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved<'a> {
    /// Slices of model size or multiples of it.
    pub tensors: BTreeMap<String, Cow<'a, [f32]>>,
    /// Everything else.
    pub values: BTreeMap<String, serde_json::Value>,
}

impl<'a> Saved<'a> {
    /// Remembers a slice.
    pub fn put(&mut self, name: &str, slice: &'a [f32]) {
        self.tensors.insert(name.to_owned(), Cow::Borrowed(slice));
    }

    /// The same with slices of its own, for whoever goes on before it is written.
    pub fn into_owned(self) -> Saved<'static> {
        let own = |(name, slice): (String, Cow<'_, [f32]>)| (name, slice.into_owned().into());
        Saved { tensors: self.tensors.into_iter().map(own).collect(), values: self.values }
    }

    /// Remembers a value.
    pub fn put_value(&mut self, name: &str, value: &impl Serialize) {
        let value = serde_json::to_value(value).expect("states are plain data");
        self.values.insert(name.to_owned(), value);
    }

    /// Takes out the slice of that name and length; what is missing was damaged.
    pub fn take(&mut self, name: &str, length: usize) -> Result<Vec<f32>, String> {
        match self.tensors.remove(name) {
            Some(slice) if slice.len() == length => Ok(slice.into_owned()),
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
