//! One vector of model size for every client heard from, in one piece of memory.

use std::collections::BTreeMap;

use crate::saved::Saved;

/// Rows of equal length, one per client, made when first written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slab {
    length: usize,
    slots: BTreeMap<u32, usize>,
    values: Vec<f32>,
}

impl Slab {
    /// No rows yet.
    pub fn new(length: usize) -> Self {
        Self { length, ..Self::default() }
    }

    /// The row of a client, if it has one.
    pub fn get(&self, client: u32) -> Option<&[f32]> {
        self.slots.get(&client).map(|&slot| &self.values[slot * self.length..][..self.length])
    }

    /// The row of a client; a new one is all zeros.
    pub fn row(&mut self, client: u32) -> &mut [f32] {
        let next = self.slots.len();
        let slot = *self.slots.entry(client).or_insert(next);
        if slot == next {
            self.values.resize((next + 1) * self.length, 0.0);
        }
        &mut self.values[slot * self.length..][..self.length]
    }

    /// Clients with a row, in order, and their rows.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[f32])> {
        let row = |slot: usize| &self.values[slot * self.length..][..self.length];
        self.slots.iter().map(move |(&client, &slot)| (client, row(slot)))
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<f32>()
    }

    /// Saves under a name.
    pub fn save<'a>(&'a self, name: &str, saved: &mut Saved<'a>) {
        saved.put(name, &self.values);
        let mut clients = vec![0; self.slots.len()];
        for (&client, &slot) in &self.slots {
            clients[slot] = client;
        }
        saved.put_value(name, &clients);
    }

    /// Reads back what was saved under a name.
    pub fn restore(&mut self, name: &str, saved: &mut Saved<'_>) -> Result<(), String> {
        let clients: Vec<u32> = saved.get_value(name)?;
        self.values = saved.take(name, clients.len() * self.length)?;
        self.slots = clients.iter().enumerate().map(|(slot, &client)| (client, slot)).collect();
        if self.slots.len() == clients.len() {
            Ok(())
        } else {
            Err(format!("`{name}` names a client twice"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_saving() {
        let mut slab = Slab::new(2);
        slab.row(7).copy_from_slice(&[1.0, 2.0]);
        slab.row(3).copy_from_slice(&[3.0, 4.0]);
        slab.row(7)[0] = 5.0;
        let mut saved = Saved::default();
        slab.save("rows", &mut saved);
        let mut again = Slab::new(2);
        again.restore("rows", &mut saved.clone()).unwrap();
        assert_eq!(again, slab);
        assert_eq!(again.get(7), Some([5.0, 2.0].as_slice()));
        assert_eq!(again.get(1), None);
        assert_eq!(again.iter().map(|(client, _)| client).collect::<Vec<_>>(), [3, 7]);
        assert!(Slab::new(3).restore("rows", &mut saved).is_err());
    }
}
