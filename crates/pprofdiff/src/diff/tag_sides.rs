//! Restricts each side to samples with certain labels: `base_tagfocus` and `new_tagfocus` choose the samples of a side.
//!
//! The other filters do not change totals. These two filters decide which samples are compared, for example two regions
//! of one profile, so a side's totals, runs and noise come from its own samples. Each profile is therefore replaced by
//! a profile of these samples before all other steps.

use std::borrow::Cow;
use std::sync::Arc;

use super::filter::{Compiled, FilterPlan, Filtered};
use super::tags::number_units;
use super::{Diff, Filters, Input, Query};
use crate::sampling::nothing_known;
use crate::{Error, Result};
use pprofdiff_profile::Profile;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::shared::{MergePart, MergedFields, Merger, SampleOrder, common_types, common_types_of_sides};

impl Diff {
    /// Returns the diff of the samples that `base_tagfocus` and `new_tagfocus` choose. Adds a warning for each of these
    /// filters that matches nothing.
    ///
    /// # Errors
    /// Fails on an invalid expression, and if one of these filters is set for a single profile.
    pub(super) fn of_tagged_sides(&self, query: &Query, warnings: &mut Vec<String>) -> Result<Cow<'_, Diff>> {
        let filters = &query.filters;
        let given = [("base_tagfocus", &filters.base_tagfocus), ("new_tagfocus", &filters.new_tagfocus)];
        let given = given.map(|(name, value)| Some((name, value.as_deref()?)).filter(|(_, value)| !value.is_empty()));
        if given.iter().all(Option::is_none) {
            return Ok(Cow::Borrowed(self));
        }
        if !self.is_two_sided() {
            return Err(Error::query(
                "base_tagfocus and new_tagfocus choose the samples of two sides, and there is only one profile; give it twice to \
                 compare its labels, or use tagfocus",
            ));
        }
        let units = number_units(self.all_inputs.iter().map(|input| &*input.profile));
        let mut all_inputs = Vec::with_capacity(self.all_inputs.len());
        let mut matched = [false; 2];
        for input in self.all_inputs.iter() {
            let side = usize::from(!input.base);
            let Some((_, value)) = given[side] else {
                all_inputs.push(input.clone());
                continue;
            };
            let profile = Arc::new(tagged(&input.profile, value, &units)?);
            let restricted = match input.part {
                None => Input { profile, ..input.clone() },
                Some(base) => Input::part(&profile, base),
            };
            matched[side] |= restricted.profile.n_samples() > 0;
            all_inputs.push(restricted);
        }
        for (given, _) in given.iter().zip(matched).filter(|(_, matched)| !matched) {
            warnings.extend(given.map(|(name, value)| format!("{name} {value:?} matched nothing")));
        }
        let kept: HashSet<(bool, usize)> = self.inputs.iter().map(|input| (input.base, input.index)).collect();
        let inputs: Vec<Input> =
            all_inputs.iter().filter(|input| kept.contains(&(input.base, input.index))).cloned().collect();
        let side = |base: bool| {
            all_inputs.iter().filter(|input| input.base == base).map(|input| &*input.profile).collect::<Vec<_>>()
        };
        let types = match all_inputs.iter().find(|input| input.part.is_some()) {
            Some(written) => common_types(&[&*written.profile])?,
            None => common_types_of_sides(&side(true), &side(false))?,
        };
        // The default type does not depend on which samples are chosen.
        let kind = self.default_sample_type().unwrap_or_default();
        let default_type = types.iter().position(|t| t.kind == kind).unwrap_or(types.len().saturating_sub(1));
        Ok(Cow::Owned(Diff {
            inputs: inputs.into(),
            all_inputs: all_inputs.into(),
            known: nothing_known(types.len()),
            types: types.into(),
            default_type,
            ..self.clone()
        }))
    }
}

/// Returns the profile of the samples that a `tagfocus` keeps.
fn tagged(profile: &Profile, tagfocus: &str, units: &HashMap<Vec<u8>, String>) -> Result<Profile> {
    let filters = Filters { tagfocus: Some(tagfocus.to_owned()), ..Filters::default() };
    // Frames that the profile marks to be dropped are dropped later, as in every profile.
    let filters = Compiled::new(&filters, false, true)?;
    let (plan, _) = FilterPlan::new(profile, profile, &filters, &HashSet::default(), units, &mut Vec::new())?;
    let types = common_types(&[profile])?;
    let mut merger = Merger::new(&types);
    let selection = Filtered { profile, plan: &plan };
    merger.add(MergePart { profile, index: 0, side: None, as_base: false, weight: 1, selection });
    let duration_nanos = profile.duration_nanos();
    let fields = MergedFields { duration_nanos, frames_dropped: false, default_type: None, order: SampleOrder::Added };
    let message = merger.finish(&[profile], fields, |_, _, value| value);
    Ok(Profile::decode(profile.name(), message)?.with_context_of(profile))
}
