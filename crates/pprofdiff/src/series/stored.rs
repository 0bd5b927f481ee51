//! The column of a build that is in a store, of what its functions cost: no sample is read.

use super::FrameValue;
use super::builder::Column;
use crate::diff::matching::stable;
use crate::diff::{FrameInterner, Frames, Granularity, Query};
use crate::{Error, Result};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::input::Source;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::{Demangle, LoadOptions};

/// True where a question takes more than what functions cost, or profiles that are loaded in a way of their own.
pub(super) fn asks_more(query: &Query, options: &LoadOptions) -> bool {
    let asks_more = Query { sample_type: None, ..query.clone() } != Query::default() || options.time.is_some();
    #[cfg(feature = "binary")]
    let asks_more = asks_more || !options.binaries.is_empty();
    asks_more || options.input_format.is_some() || options.demangle != Demangle::Default
}

/// The column of a stored profile; `None` of any other, and where more is asked than a store knows without its samples.
pub(super) fn column(source: &Source, query: &Query, options: &LoadOptions) -> Result<Option<(Column, Frames)>> {
    let Source::Stored(stored) = source else { return Ok(None) };
    if asks_more(query, options) {
        return Ok(None);
    }
    let Some(costs) = stored.costs(options.inflated_limit)? else { return Ok(None) };
    let asked = match &query.sample_type {
        Some(name) => costs.types.iter().find(|t| t.name[0] == *name),
        None => costs.types.get(costs.default_type),
    };
    // A name that is none is an error in the words of all profiles.
    let Some(of_type) = asked else { return Ok(None) };
    // Functions that a series takes for one may call each other, so their costs don't add up.
    if of_type.functions.iter().any(|row| stable(&row.function) != row.function) {
        return Ok(None);
    }
    let damaged = |why: &str| Err(Error::malformed(format!("what its functions cost {why}")).in_input(&stored.name()));
    let [sum, magnitude] = of_type.total;
    let mut own = FrameInterner::new(Granularity::Functions);
    let mut seen: HashSet<u32> = HashSet::default();
    let mut values = Vec::with_capacity(of_type.functions.len());
    for row in &of_type.functions {
        let frame = own.add_function(row.function.as_bytes(), row.binary.as_bytes());
        if !seen.insert(frame) {
            return damaged("has a function twice");
        }
        if [row.flat, row.cum].iter().any(|v| v.unsigned_abs() > magnitude.unsigned_abs()) {
            return damaged("is more than the profile's total");
        }
        values.push(FrameValue { frame, flat: row.flat, cum: row.cum });
    }
    let [sample_type, unit] = of_type.name.clone();
    let column = Column {
        values,
        total: Total { sum, magnitude },
        sample_type,
        unit,
        samples: costs.samples,
        duration_nanos: costs.duration_nanos,
        time_nanos: costs.time_nanos,
        warnings: Vec::new(),
        event: of_type.event,
    };
    Ok(Some((column, own.frames())))
}
