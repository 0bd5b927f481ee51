//! Translates a file's record ids to dense indexes.
//!
//! Nearly every producer numbers its records 1..n in table order. The index is then the id minus one, and no table is
//! needed. Other ids use a vector if the largest id is at most four times the number of records, and a hash map
//! otherwise. The map's hasher is seeded per process, so a file cannot cause collisions on purpose.

use hashbrown::HashMap;

use super::NONE;
use crate::error::{Error, Result};
use crate::random::QualityState;

/// A map from ids to dense indexes.
#[derive(Debug)]
pub(crate) enum Ids {
    /// The ids 1..=n in order.
    Sequential(u32),
    /// The indexes by id; `NONE` for unused ids.
    Small(Vec<u32>),
    Sparse(HashMap<u64, u32, QualityState>),
}

impl Ids {
    /// Builds the map from the table's ids, in the order of its records. Fails if an id is 0 or occurs twice, and
    /// returns the index of the invalid record.
    pub(crate) fn new(ids: &[u64], record_name: &str) -> Result<Ids, (usize, Error)> {
        let reserved = || Error::malformed(format!("{record_name} has the reserved id 0"));
        let twice = |id| Error::malformed(format!("{record_name} id {id} occurs twice"));
        if ids.iter().enumerate().all(|(i, &id)| id == i as u64 + 1) {
            return Ok(Ids::Sequential(ids.len() as u32));
        }
        let max = ids.iter().copied().max().unwrap_or(0);
        if max <= 4 * ids.len() as u64 {
            let mut table = vec![NONE; max as usize + 1];
            for (i, &id) in ids.iter().enumerate() {
                let slot = &mut table[id as usize];
                if id == 0 {
                    return Err((i, reserved()));
                }
                if *slot != NONE {
                    return Err((i, twice(id)));
                }
                *slot = i as u32;
            }
            return Ok(Ids::Small(table));
        }
        let mut map = HashMap::with_capacity_and_hasher(ids.len(), QualityState::default());
        for (i, &id) in ids.iter().enumerate() {
            if id == 0 {
                return Err((i, reserved()));
            }
            if map.insert(id, i as u32).is_some() {
                return Err((i, twice(id)));
            }
        }
        Ok(Ids::Sparse(map))
    }

    /// Returns the index of the record with this id.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        match self {
            Ids::Sequential(n) => {
                let index = id.wrapping_sub(1);
                (index < u64::from(*n)).then_some(index as u32)
            }
            Ids::Small(table) => table.get(usize::try_from(id).ok()?).copied().filter(|&i| i != NONE),
            Ids::Sparse(map) => map.get(&id).copied(),
        }
    }
}
