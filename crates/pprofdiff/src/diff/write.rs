//! A diff as one profile: the base's samples negated and labelled, so that nothing cancels.
//!
//! `go tool pprof` opens it with the numbers of `-diff_base`; we open it as the diff it was.
//!
//! Samples are in the order of their stacks, which packs best. A written diff stands alone: beside other profiles it is
//! refused, since any sum with it counts a side twice.

use super::filter::{Compiled, FilterKind, Filtered};
use super::normalize::{Normalize, Scales};
use super::{Diff, Query};
use crate::{Error, Result};
use pprofdiff_profile::shared::{Fields, Merger, Part, pack};
use pprofdiff_profile::{Profile, WriteOptions};

impl Diff {
    /// The diff as a profile with all its sample types; write it with [`Profile::to_bytes`].
    ///
    /// Applies the query's filters and normalization, which scales each sample type by its own totals, but not its
    /// granularity. The query's sample type becomes the default of the profile, as in google/pprof. For a single
    /// profile, returns that profile, filtered.
    ///
    /// # Errors
    /// As [`Diff::measure`]; also `tagroot` and `tagleaf`, whose frames exist in views only.
    pub fn to_profile(&self, query: &Query) -> Result<Profile> {
        Profile::decode("diff", self.to_message(query, true)?)
    }

    /// As [`Diff::to_profile`], with the samples in the order in which they were read, the new side's first.
    ///
    /// # Errors
    /// As [`Diff::to_profile`].
    pub fn to_profile_as_read(&self, query: &Query) -> Result<Profile> {
        Profile::decode("diff", self.to_message(query, false)?)
    }

    /// The diff as a file's bytes: what [`Diff::to_profile`] gives, written, without making a profile of it first.
    ///
    /// # Errors
    /// As [`Diff::to_profile`] and [`Profile::to_bytes`].
    pub fn to_bytes(&self, query: &Query, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.to_message(query, true)?, options)
    }

    fn to_message(&self, query: &Query, by_stack: bool) -> Result<Vec<u8>> {
        if query.filters.has(FilterKind::Keys) {
            return Err(Error::query(
                "tagroot and tagleaf make frames of labels for a view; they can't be written to a profile",
            ));
        }
        if !query.matching.is_exact() {
            return Err(Error::query("a written profile has names as they are: match them when it is looked at"));
        }
        let default_type = query.sample_type.as_deref().map(|name| self.find_sample_type(Some(name))).transpose()?;
        let diff = &*self.of_tagged_sides(query, &mut Vec::new())?;
        let filters = Compiled::new(&query.filters, query.no_inlines, query.all_frames)?;
        let plans = diff.plans(query, &filters, &Default::default(), &mut Vec::new())?;
        let scales = |t: usize| {
            let (base, new) = (diff.side_total(true, t), diff.side_total(false, t));
            // A column without values has nothing to scale.
            let mode = if new.magnitude == 0 { Normalize::None } else { query.normalize };
            let kind = &diff.types[t].kind;
            diff.scales(mode, base, new).map_err(|e| Error::query(format!("sample type {kind}: {}", e.detail())))
        };
        let scales: Vec<Scales> = (0..diff.types.len()).map(scales).collect::<Result<_>>()?;
        let mut merger = Merger::new(&diff.types);
        for (m, plan) in diff.inputs.iter().zip(&plans) {
            let selection = Filtered { profile: &m.profile, plan };
            merger.add(Part {
                profile: &m.profile,
                index: m.index,
                side: m.part,
                as_base: m.base,
                weight: 1,
                selection,
            });
        }
        let profiles: Vec<&Profile> = diff.inputs.iter().map(|m| &*m.profile).collect();
        let fields = Fields {
            duration_nanos: diff.side_duration(false) / diff.runs()[1] as i64,
            frames_dropped: true,
            default_type,
            by_stack,
        };
        if diff.runs() == [1, 1] {
            return Ok(merger.finish(&profiles, fields, |is_base, column, v| scales[column].for_side(is_base).apply(v)));
        }
        // Of many runs a stack has a fraction of a sample: what rounding leaves of one is added to the next, so that the
        // sums of what is written are the rounded sums.
        let mut before = vec![[0_i64; 2]; scales.len()];
        Ok(merger.finish(&profiles, fields, |is_base, column, v| {
            let (scale, before) = (scales[column].for_side(is_base), &mut before[column][usize::from(is_base)]);
            let after = *before + v;
            scale.apply(after).saturating_sub(scale.apply(std::mem::replace(before, after)))
        }))
    }
}
