//! Writes a diff as one profile. The base's samples are negated and labelled, so that nothing cancels out.
//!
//! `go tool pprof` opens it and shows the numbers of `-diff_base`. pprofdiff opens it as the original diff.
//!
//! Samples are sorted by stack, which compresses best. A written diff cannot be combined with other profiles, since any
//! sum with it would count a side twice.

use super::filter::{Compiled, FilterKind, Filtered};
use super::normalize::{Normalize, Scales};
use super::{Diff, Query};
use crate::{Error, Result};
use pprofdiff_profile::shared::{MergePart, MergedFields, Merger, SampleOrder, pack};
use pprofdiff_profile::{Profile, WriteOptions};

impl Diff {
    /// Converts the diff to a profile with all its sample types. [`Profile::to_bytes`] writes it.
    ///
    /// Applies the query's filters and normalization, but not its granularity. Normalization scales each sample type by
    /// its own totals. A sample type without values on the new side is not scaled. The query's sample type becomes the
    /// default of the profile, as in google/pprof. For a single profile, returns that profile, filtered.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`]. Also fails if `tagroot` or `tagleaf` is set, whose frames exist in
    /// views only, and for a `match` other than auto or exact, because a written profile keeps the original names.
    pub fn to_profile(&self, query: &Query) -> Result<Profile> {
        Profile::decode("diff", self.to_message(query, SampleOrder::Sorted)?)
    }

    /// Like [`Diff::to_profile`], but keeps the samples in the order in which they were read, the new side first.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::to_profile`].
    pub fn to_profile_as_read(&self, query: &Query) -> Result<Profile> {
        Profile::decode("diff", self.to_message(query, SampleOrder::Added)?)
    }

    /// Returns the bytes of a file with the profile of [`Diff::to_profile`], without decoding that profile first.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::to_profile`] and [`Profile::to_bytes`].
    pub fn to_bytes(&self, query: &Query, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.to_message(query, SampleOrder::Sorted)?, options)
    }

    fn to_message(&self, query: &Query, order: SampleOrder) -> Result<Vec<u8>> {
        if query.filters.has(FilterKind::Keys) {
            return Err(Error::query(
                "tagroot and tagleaf add frames to views only; these frames can't be written to a profile",
            ));
        }
        if !query.matching.is_exact() {
            return Err(Error::query(
                "a written profile keeps the original names; set match when you view it, not when you write it",
            ));
        }
        let default_type = query.sample_type.as_deref().map(|name| self.find_sample_type(Some(name))).transpose()?;
        let diff = &*self.of_tagged_sides(query, &mut Vec::new())?;
        let filters = Compiled::new(&query.filters, query.no_inlines, query.all_frames)?;
        let plans = diff.plans(query, &filters, &Default::default(), &mut Vec::new())?;
        let scales = |t: usize| {
            let (base, new) = (diff.side_total(true, t), diff.side_total(false, t));
            // A column without values cannot be scaled by its total.
            let mode = if new.magnitude == 0 { Normalize::None } else { query.normalize };
            let kind = &diff.types[t].kind;
            diff.scales(mode, base, new).map_err(|e| Error::query(format!("sample type {kind}: {}", e.detail())))
        };
        let scales: Vec<Scales> = (0..diff.types.len()).map(scales).collect::<Result<_>>()?;
        let mut merger = Merger::new(&diff.types);
        for (m, plan) in diff.inputs.iter().zip(&plans) {
            let selection = Filtered { profile: &m.profile, plan };
            merger.add(MergePart {
                profile: &m.profile,
                index: m.index,
                side: m.part,
                as_base: m.base,
                weight: 1,
                selection,
            });
        }
        let profiles: Vec<&Profile> = diff.inputs.iter().map(|m| &*m.profile).collect();
        let fields = MergedFields {
            duration_nanos: diff.side_duration(false) / diff.runs()[1] as i64,
            frames_dropped: true,
            default_type,
            order,
        };
        if diff.runs() == [1, 1] {
            return Ok(merger.finish(&profiles, fields, |is_base, column, v| scales[column].for_side(is_base).apply(v)));
        }
        // The mean of many runs gives a stack a fraction of a sample. The rounding error of each value is carried to
        // the next value, so that the sums of the written values equal the rounded sums.
        let mut before = vec![[0_i64; 2]; scales.len()];
        Ok(merger.finish(&profiles, fields, |is_base, column, v| {
            let (scale, before) = (scales[column].for_side(is_base), &mut before[column][usize::from(is_base)]);
            let after = *before + v;
            scale.apply(after).saturating_sub(scale.apply(std::mem::replace(before, after)))
        }))
    }
}
