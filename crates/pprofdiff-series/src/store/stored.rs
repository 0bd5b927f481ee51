//! Creates the column of a build in a store from the stored costs of its functions, without reading samples.

use crate::FrameValue;
use crate::known::BuildColumn;
use pprofdiff::input::Source;
use pprofdiff::shared::{FrameInterner, has_binaries};
use pprofdiff::{Demangle, LoadOptions};
use pprofdiff::{Error, Frames, Granularity, Query, Result};
use pprofdiff_profile::canonical::stable;
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::random::HashSet;

/// Returns true if a query needs more than the costs of functions, or if options change how profiles are loaded.
pub(super) fn needs_samples(query: &Query, options: &LoadOptions) -> bool {
    let mut of_any_type = query.clone();
    of_any_type.sample_type = None;
    let needs_samples = of_any_type != Query::default() || options.time.is_some() || has_binaries(options);
    needs_samples || options.input_format.is_some() || options.demangle != Demangle::Default
}

/// Returns the column of a stored profile. Returns `None` if the profile must be loaded instead: for other sources, if
/// the query needs samples, if the store has no costs of this sample type, and if matching would join several
/// functions. Fails if the stored costs cannot be read or are damaged.
pub(super) fn column(source: &Source, query: &Query, options: &LoadOptions) -> Result<Option<(BuildColumn, Frames)>> {
    let Source::Custom(stored) = source else { return Ok(None) };
    if needs_samples(query, options) {
        return Ok(None);
    }
    let Some(costs) = stored.costs(options.inflated_limit)? else { return Ok(None) };
    let stored_type = match &query.sample_type {
        Some(name) => costs.types.iter().find(|t| t.name[0] == *name),
        None => costs.types.get(costs.default_type),
    };
    // An unknown name must cause the same error as for other profiles, so the profile is loaded.
    let Some(type_costs) = stored_type else { return Ok(None) };
    // If matching joins several functions, they may call each other, and then their costs cannot be added up.
    if type_costs.functions.iter().any(|row| stable(&row.function) != row.function) {
        return Ok(None);
    }
    let damaged = |problem: &str| {
        Err(Error::malformed(format!("the stored costs of its functions {problem}")).in_input(&stored.name()))
    };
    let [sum, magnitude] = type_costs.total;
    let mut names = FrameInterner::new(Granularity::Functions);
    let mut seen: HashSet<u32> = HashSet::default();
    let mut values = Vec::with_capacity(type_costs.functions.len());
    for row in &type_costs.functions {
        let frame = names.add_function(row.function.as_bytes(), row.binary.as_bytes());
        if !seen.insert(frame) {
            return damaged("contain a function twice");
        }
        if [row.flat, row.cum].iter().any(|v| v.unsigned_abs() > magnitude.unsigned_abs()) {
            return damaged("exceed the profile's total");
        }
        values.push(FrameValue::new(frame, row.flat, row.cum));
    }
    let [sample_type, unit] = type_costs.name.clone();
    let column = BuildColumn {
        values,
        total: Total { sum, magnitude },
        sample_type,
        unit,
        samples: costs.samples,
        duration_nanos: costs.duration_nanos,
        time_nanos: costs.time_nanos,
        warnings: Vec::new(),
        event: type_costs.event,
    };
    Ok(Some((column, names.frames())))
}
