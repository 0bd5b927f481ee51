//! Adds profiles to a store, with the costs of their functions. The costs are computed once, when a profile is added, so that
//! a history only reads existing columns.

use std::sync::Arc;

use crate::{Added, Store};
use pprofdiff::input::{Costs, FunctionCost, TypeCosts};
use pprofdiff::shared::sampling;
use pprofdiff::{Diff, Normalize, Profile, Query, Result, Sort, TopRow};

/// Adds a profile to a store, together with the costs of its functions.
///
/// # Errors
/// Returns the errors of [`Store::add`], and an error for a written diff, because it is not the profile of one build.
pub fn add(store: &Store, profile: &Arc<Profile>, keys: &[(String, String)]) -> Result<Added> {
    profile.one_sided()?;
    store.add(profile, keys, &costs(profile)?)
}

/// Returns the costs of a profile's functions, in all sample types.
fn costs(profile: &Arc<Profile>) -> Result<Costs> {
    let diff = Diff::of_profile(profile)?;
    let selection = diff.select(&Query::default())?;
    let mut costs = Costs::default();
    costs.default_type = diff.find_sample_type(None)?;
    costs.is_plain = true;
    for index in 0..diff.sample_types().len() {
        let measure = selection.measure_type(index, Normalize::None)?;
        let event = sampling(&measure)?.0.first().copied().unwrap_or(0.0);
        let top = measure.top(Sort::Flat);
        // A warning names the profile or asks for a binary, so a profile with warnings cannot be reduced to plain
        // costs.
        costs.is_plain &= top.summary.warnings.is_empty();
        let function = |row: &TopRow| {
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
