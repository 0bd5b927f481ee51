//! Stores of profiles, and what their functions cost: computed once, when a profile is added, so that a history is made of
//! columns that are there already.

use std::sync::Arc;

use crate::diff::{Diff, Normalize, Query, Sort};
use crate::{Profile, Result, explain};
pub use pprofdiff_profile::store::{
    Added, Compaction, Costs, FunctionCost, Partition, Selection, Store, StoredProfile, TypeCosts, store_pairs,
};

/// Adds a profile to a store, with what its functions cost.
///
/// # Errors
/// As [`Store::add`]; a written diff, which is no profile of one build.
pub fn add(store: &Store, profile: &Arc<Profile>, keys: &[(String, String)]) -> Result<Added> {
    profile.one_sided()?;
    store.add(profile, keys, &costs(profile)?)
}

/// What the functions of a profile cost, in all sample types.
fn costs(profile: &Arc<Profile>) -> Result<Costs> {
    let diff = Diff::of_profile(profile)?;
    let selection = diff.select(&Query::default())?;
    let mut costs = Costs::default();
    costs.default_type = diff.find_sample_type(None)?;
    costs.is_plain = true;
    for index in 0..diff.sample_types().len() {
        let measure = selection.measure_type(index, Normalize::None)?;
        let event = explain::sampling(&measure)?.0.first().copied().unwrap_or(0.0);
        let top = measure.top(Sort::Flat);
        // What is warned of names the profile, or asks for a binary.
        costs.is_plain &= top.summary.warnings.is_empty();
        let function = |row: &crate::TopRow| {
            let [function, binary] = top.frames.function(row.frame).map(|t| String::from_utf8_lossy(t).into_owned());
            FunctionCost { function, binary, flat: row.flat.new, cum: row.cum.new }
        };
        let total = diff.side_total(false, index);
        costs.types.push(TypeCosts {
            name: [top.summary.sample_type.clone(), top.summary.unit.clone()],
            total: [total.sum, total.magnitude],
            event,
            functions: top.rows.iter().map(function).collect(),
        });
    }
    Ok(costs)
}
