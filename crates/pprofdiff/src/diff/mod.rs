//! Compares two sides and reports which frames, edges, stacks and labels each side has, and how their values differ.
//!
//! ```text
//! Diff (inputs of two sides, common sample types)
//!   -> Selection (granularity, filters: frames interned)
//!        -> Measure (one sample type, normalization)
//!             -> top, edges, stacks, labels (each an ordered list of rows), flame (a tree cut out of the stacks)
//! ```
//!
//! A [`Diff`] is cheap to create: it only decides which columns of the profiles belong together. A [`Selection`] does
//! the expensive work once for all of its measures. Each table is then one pass over the samples. If several views are
//! requested, the selection builds a tree of all stacks (`tree`) and the views read this tree. A single profile has the
//! same views with one side.
//!
//! The new side determines the order of the sample types and, at granularity `addresses`, the addresses. Deltas cannot
//! overflow, because `Diff::new` rejects sides whose magnitudes together exceed an int64.

#[cfg(feature = "list")]
mod alignment;
pub(crate) mod call_lines;
pub(crate) mod calls;
pub mod edges;
pub mod filter;
pub mod flame;
mod frames;
mod goroutines;
pub mod graph;
pub(crate) mod identity;
pub mod labels;
pub mod list;
pub(crate) mod matching;
mod normalize;
pub(crate) mod order;
mod pattern;
mod query;
mod repeats;
mod roots;
mod selection;
pub mod stacks;
mod tag_sides;
mod tags;
pub(crate) mod texts;
pub mod top;
mod tree;
mod walk;
mod write;

use std::path::Path;
use std::sync::Arc;

pub use filter::Filters;
pub use frames::Frames;
pub use frames::{FrameInterner, Innermost, State};
pub use identity::Granularity;
pub use matching::Matching;
pub use matching::Moves;
pub use normalize::Normalize;
pub use normalize::Scale;
pub(crate) use pattern::compile;
pub use query::Query;
pub use selection::{Measure, Selection, Side, Summary};
pub use top::{Sort, Top, TopRow};
pub use walk::{SampleLocations, SampleVisitor, Walk};

use serde::{Deserialize, Serialize};

use crate::sampling::{KnownOfTypes, nothing_known};
use crate::{Error, Result};
use crate::{LoadOptions, Source};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::shared::{CommonType, common_types, common_types_of_sides, default_type};
use pprofdiff_profile::{Profile, parallel};

/// A value of both sides. `base` is 0 for a single profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The value of the base.
    pub base: i64,
    /// The value of the new side, scaled if the view normalizes.
    pub new: i64,
}

impl Pair {
    /// Returns `new - base`. Never overflows for sums over samples, see [`Diff::new`].
    pub fn delta(self) -> i64 {
        self.new.saturating_sub(self.base)
    }
}

/// How a row differs between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The row exists only on the new side.
    Added,
    /// The row exists only in the base.
    Removed,
    /// The row exists on both sides with different values.
    Changed,
    /// The row exists on both sides with the same values.
    Same,
}

impl Status {
    /// Returns the status as it is spelled in results.
    pub fn name(self) -> &'static str {
        match self {
            Status::Added => "added",
            Status::Removed => "removed",
            Status::Changed => "changed",
            Status::Same => "same",
        }
    }

    #[doc(hidden)]
    pub fn new(in_base: bool, in_new: bool, equal: bool) -> Status {
        match (in_base, in_new) {
            (false, _) => Status::Added,
            (true, false) => Status::Removed,
            (true, true) if equal => Status::Same,
            (true, true) => Status::Changed,
        }
    }
}

/// The maximum number of sample types that a warning lists.
const MAX_NAMED: usize = 10;

/// Joins the names of sample types for a warning, at most [`MAX_NAMED`] of them.
fn listed(types: &[&str]) -> String {
    let (shown, more) = types.split_at(types.len().min(MAX_NAMED));
    let and_more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{and_more}", shown.join(", "))
}

/// One profile of a comparison, or one side of a written diff.
#[derive(Debug, Clone)]
pub struct Input {
    /// The profile.
    pub profile: Arc<Profile>,
    /// The index of this input in [`CommonType::columns`].
    pub index: usize,
    /// True if the input belongs to the base.
    pub base: bool,
    /// Set if the profile is a written diff: `Some(true)` selects the samples of its base, `Some(false)` the samples of
    /// its new side.
    pub part: Option<bool>,
    /// The sums of each column over this part of a written diff. Empty for a whole profile.
    part_totals: Arc<[Total]>,
}

impl Input {
    /// Returns a factor for values, in addition to the unit's factor. It is -1 for the base of a written diff, which is
    /// stored with negated values.
    pub(crate) fn sign(&self) -> i64 {
        if self.part == Some(true) { -1 } else { 1 }
    }

    /// Returns the sums of a column over this input's samples.
    pub(crate) fn total(&self, column: usize) -> Total {
        match self.part {
            Some(_) => self.part_totals[column],
            None => self.profile.totals()[column],
        }
    }

    /// Returns the number of samples that the profiler took. Returns `None` without a sample type `samples` in `count`.
    fn counted(&self) -> Option<i64> {
        let types = self.profile.sample_types();
        let column = types.iter().position(|(kind, unit)| kind == "samples" && unit == "count")?;
        Some(self.total(column).magnitude)
    }

    /// Creates the input for one side of a written diff.
    fn part(profile: &Arc<Profile>, base: bool) -> Input {
        let mut totals = vec![Total::default(); profile.totals().len()];
        for s in profile.samples().filter(|s| s.is_base() == base) {
            let mut column = totals.iter_mut();
            s.for_each_value(|v| {
                // If the sums over all samples fit, the sums over a part of them fit too.
                if let Some(total) = column.next() {
                    total.sum += if base { -v } else { v };
                    total.magnitude += v.saturating_abs();
                }
            });
        }
        Input { profile: profile.clone(), index: 0, base, part: Some(base), part_totals: totals.into() }
    }

    fn whole(profile: &Arc<Profile>, index: usize, base: bool) -> Input {
        Input { profile: profile.clone(), index, base, part: None, part_totals: Arc::default() }
    }
}

/// A comparison of a base with a new side. Several profiles of a side are runs of one program. The values are then the
/// means over the runs, or their sums after [`Diff::summed`].
#[derive(Debug, Clone)]
pub struct Diff {
    /// The inputs that take part. A run that a side lists several times is included once, unless the runs add up.
    pub(crate) inputs: Arc<[Input]>,
    /// All profiles that the caller gave.
    all_inputs: Arc<[Input]>,
    /// Warnings about repeated runs.
    repeats: Arc<[String]>,
    pub(crate) types: Arc<[CommonType]>,
    default_type: usize,
    /// True for a comparison, false for the views of a single profile.
    two_sided: bool,
    /// True if the profiles of a side add up.
    sum: bool,
    /// A cache of the sampling model of each sample type.
    pub(crate) known: KnownOfTypes,
    /// The folder of runs that the user gave in place of the files.
    folder: Option<Arc<str>>,
}

impl Diff {
    /// Compares profiles that are already loaded.
    ///
    /// # Errors
    /// Fails if a side has no profiles, if a profile is a written diff (which already contains two sides), if the
    /// profiles share no sample type, or if units cannot be converted. Also fails if the values of both sides add up to
    /// more than an int64, so that no later sum or delta can overflow.
    pub fn new(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Result<Diff> {
        if base.is_empty() || new.is_empty() {
            return Err(Error::query("a diff needs at least one profile on each side"));
        }
        base.iter().chain(new).try_for_each(|p| p.one_sided())?;
        // The new side determines the order of the sample types and the addresses, as in pprof.
        let input = |(i, p): (usize, &Arc<Profile>)| Input::whole(p, i, i >= new.len());
        Diff::from_inputs(new.iter().chain(base).enumerate().map(input).collect(), true)
    }

    /// Loads two files and compares them. Inside a rayon pool, the files load in parallel. [`Diff::load`] accepts
    /// several files per side.
    ///
    /// # Errors
    /// Returns the errors of [`open`](crate::open) and [`Diff::new`].
    pub fn open(base: impl AsRef<Path>, new: impl AsRef<Path>, options: &LoadOptions) -> Result<Diff> {
        let source = |path: &Path| [Source::Path(path.to_owned())];
        Diff::load(&source(base.as_ref()), &source(new.as_ref()), options)
    }

    /// Loads both sides, each from one or several sources, and compares them. Inside a rayon pool, the sides load in
    /// parallel.
    ///
    /// # Errors
    /// Returns the errors of [`open`](crate::open) and [`Diff::new`].
    pub fn load(base: &[Source], new: &[Source], options: &LoadOptions) -> Result<Diff> {
        let load = repeats::load_side;
        let (base, new) = parallel::join(|| load(base, &options.of_base()), || load(new, options));
        Diff::new(&base?, &new?)
    }

    /// Compares two profiles. This is [`Diff::new`] for the usual case of one profile per side.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::new`].
    pub fn between(base: impl Into<Arc<Profile>>, new: impl Into<Arc<Profile>>) -> Result<Diff> {
        Diff::new(&[base.into()], &[new.into()])
    }

    /// Opens a diff that was written as one profile ([`Diff::to_profile`], or pprof with `-proto -diff_base`) as a diff
    /// with two sides. Opens any other profile as a diff with one side.
    pub fn of_profile(profile: &Arc<Profile>) -> Result<Diff> {
        if profile.is_diff() {
            return Diff::from_inputs(vec![Input::part(profile, false), Input::part(profile, true)], true);
        }
        Diff::from_inputs(vec![Input::whole(profile, 0, false)], false)
    }

    /// Returns true if a side lists a run several times. Such a run counts once. Returns false for summed profiles,
    /// because each listed profile then counts.
    #[cfg(feature = "check")]
    pub(crate) fn has_repeats(&self) -> bool {
        self.inputs.len() < self.all_inputs.len()
    }

    /// Loads the sources of one side for [`Diff::new`]. Loads a file with several names only once, so the diff
    /// recognizes it as one run.
    ///
    /// # Errors
    /// Returns the errors of [`Source::load`].
    pub fn load_side(sources: &[Source], options: &LoadOptions) -> Result<Vec<Arc<Profile>>> {
        repeats::load_side(sources, options)
    }

    fn from_inputs(inputs: Vec<Input>, two_sided: bool) -> Result<Diff> {
        // A written diff is one profile, so both sides have the same sample types.
        let side = |base| inputs.iter().filter(|m| m.base == base).map(|m| &*m.profile).collect::<Vec<_>>();
        let (base, new) = (side(true), side(false));
        let types = match inputs.iter().find(|m| m.part.is_some()) {
            Some(written) => common_types(&[&*written.profile])?,
            None => common_types_of_sides(&base, &new)?,
        };
        let default_type = default_type(&new, &base, &types);
        let all_inputs: Arc<[Input]> = inputs.into();
        let (inputs, repeats) = match all_inputs.iter().any(|m| m.part.is_some()) {
            true => (all_inputs.clone(), Vec::new()),
            false => {
                let (runs, repeats) = repeats::distinct(&all_inputs);
                (runs.into(), repeats)
            }
        };
        let known_bases = nothing_known(types.len());
        let (types, repeats, folder) = (types.into(), repeats.into(), None);
        Ok(Diff { inputs, all_inputs, repeats, types, default_type, two_sided, sum: false, known: known_bases, folder })
    }

    /// Returns this diff with the profiles of each side added up, for example parts of one run on several machines.
    #[must_use]
    pub fn summed(self) -> Diff {
        let known_bases = nothing_known(self.types.len());
        Diff { sum: true, inputs: self.all_inputs.clone(), repeats: Arc::default(), known: known_bases, ..self }
    }

    /// Iterates over all profiles that the caller gave for a side. [`Diff::base`] and [`Diff::new_side`] list a
    /// repeated run only once.
    pub fn given(&self, is_base: bool) -> impl Iterator<Item = &Arc<Profile>> {
        self.all_inputs.iter().filter(move |m| m.base == is_base).map(|m| &m.profile)
    }

    /// Returns the warnings about runs that a side repeats. Empty if the profiles add up.
    pub(crate) fn repeats(&self) -> &[String] {
        &self.repeats
    }

    /// Counts the distinct runs among the last `last` profiles of the base that do not also occur among the earlier
    /// profiles.
    #[doc(hidden)]
    pub fn different_runs(&self, last: usize) -> usize {
        let first = self.given(true).count().saturating_sub(last);
        let is_kept = |given: &Arc<Profile>| self.base().any(|run| Arc::ptr_eq(run, given));
        let mut seen: Vec<&Arc<Profile>> = self.given(true).take(first).collect();
        let mut runs = 0;
        for profile in self.given(true).skip(first) {
            if is_kept(profile) && !seen.iter().any(|other| Arc::ptr_eq(other, profile)) {
                seen.push(profile);
                runs += 1;
            }
        }
        runs
    }

    /// Returns this diff with the name of the folder that contains exactly these runs. Commands in an answer then show
    /// the folder instead of all its files.
    #[must_use]
    pub fn with_folder(self, folder: impl AsRef<Path>) -> Diff {
        Diff { folder: Some(folder.as_ref().display().to_string().into()), ..self }
    }

    /// Returns the folder that the user gave in place of the files, if any.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Returns true if the profiles of each side add up.
    pub fn is_summed(&self) -> bool {
        self.sum
    }

    /// Returns the number of runs that the values of the base and of the new side are averaged over. It is 1 for both
    /// sides if the profiles add up, and 1 for the base of a single profile.
    pub(crate) fn runs(&self) -> [usize; 2] {
        let runs = |base: bool| self.inputs.iter().filter(|m| m.base == base).count();
        if self.sum { [1, 1] } else { [runs(true).max(1), runs(false)] }
    }

    /// Returns true if there are two sides, also for a written diff. Returns false for a single profile.
    pub fn is_two_sided(&self) -> bool {
        self.two_sided
    }

    /// Returns the sample types that all profiles have, as (type, unit), in the order of the new side's first file.
    pub fn sample_types(&self) -> Vec<(String, String)> {
        self.types.iter().map(|t| (t.kind.clone(), t.unit.clone())).collect()
    }

    /// Returns the sample type that views show by default, or `None` if the profiles have no sample types.
    pub fn default_sample_type(&self) -> Option<&str> {
        self.types.get(self.default_type).map(|t| t.kind.as_str())
    }

    /// Returns a warning that lists the sample types with values, if the default type is zero everywhere and others are
    /// not.
    pub(crate) fn where_values_are(&self) -> Option<String> {
        let (default, others) = self.types_with_values()?;
        Some(format!("the default sample type, {default}, has no values; these have: {}", listed(&others)))
    }

    /// Returns the sample type to explain by default. If the default type is zero everywhere, returns the first type
    /// with values and a sentence that reports this.
    #[doc(hidden)]
    pub fn type_to_explain(&self) -> (usize, Option<String>) {
        let Some((default, others)) = self.types_with_values() else { return (self.default_type, None) };
        let [first, rest @ ..] = &others[..] else { return (self.default_type, None) };
        let others =
            if rest.is_empty() { String::new() } else { format!("; these also have values: {}", listed(rest)) };
        let sentence = format!("the default sample type, {default}, has no values, but {first} has{others}");
        let number = self.types.iter().position(|t| t.kind == *first).unwrap_or(self.default_type);
        (number, Some(sentence))
    }

    /// Returns the default sample type and the types with values, if the default type is zero everywhere and others are
    /// not.
    fn types_with_values(&self) -> Option<(&str, Vec<&str>)> {
        let has_values = |t: usize| [true, false].iter().any(|&base| self.side_total(base, t).magnitude != 0);
        let default = self.types.get(self.default_type).filter(|_| !has_values(self.default_type))?;
        let others: Vec<&str> =
            (0..self.types.len()).filter(|&t| has_values(t)).map(|t| self.types[t].kind.as_str()).collect();
        (!others.is_empty()).then_some((&*default.kind, others))
    }

    /// Iterates over the profiles of the base. Empty for a single profile.
    pub fn base(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.inputs.iter().filter(|m| m.base).map(|m| &m.profile)
    }

    /// Iterates over the profiles of the new side, or over the single profile.
    pub fn new_side(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.inputs.iter().filter(|m| !m.base).map(|m| &m.profile)
    }

    /// Returns the number of samples of all profiles. A profile that is a written diff counts once.
    pub fn n_samples(&self) -> usize {
        self.profiles().map(|(_, profile)| profile.n_samples()).sum()
    }

    /// Iterates over all profiles, each once, with its role: `base`, `new`, or `profile` for a single profile and a
    /// written diff.
    pub fn profiles(&self) -> impl Iterator<Item = (&'static str, &Profile)> {
        let whole = |m: &Input| m.part.is_some() || !self.two_sided;
        let side = move |m: &Input| {
            if whole(m) {
                "profile"
            } else if m.base {
                "base"
            } else {
                "new"
            }
        };
        let inputs = self.inputs.iter().filter(|m| m.part != Some(true));
        let (base, new): (Vec<&Input>, Vec<&Input>) = inputs.partition(|m| m.base);
        base.into_iter().chain(new).map(move |m| (side(m), &*m.profile))
    }

    /// Returns the index in [`Diff::sample_types`] of a sample type that is given by name or by number; `None` selects
    /// the default. Sample types of heap profiles are also found under related names: with `inuse_` or `alloc_` in
    /// front if nothing was freed, and without `inuse_` if something was freed.
    ///
    /// # Errors
    /// Fails if no sample type has this name or number, or if the profiles have no common sample types.
    pub fn find_sample_type(&self, name: Option<&str>) -> Result<usize> {
        if self.types.is_empty() {
            return Err(Error::query("the profile has no sample types, so there is nothing to show"));
        }
        let Some(name) = name else { return Ok(self.default_type) };
        let position = |kind: &str| self.types.iter().position(|t| t.kind == kind);
        let number = || name.parse().ok().filter(|&n: &usize| n < self.types.len());
        // Heap dumps of a program use other names before its first free. Until then, everything allocated is in use.
        let is_heap = || position("objects").is_some() && position("space").is_some();
        let allocated = || name.strip_prefix("alloc_").filter(|_| is_heap());
        let before_frees = || position(name.strip_prefix("inuse_").or_else(allocated)?);
        let after_frees = || position(&format!("inuse_{name}"));
        let index = position(name).or_else(before_frees).or_else(after_frees).or_else(number);
        index.ok_or_else(|| {
            let names: Vec<&str> = self.types.iter().map(|t| t.kind.as_str()).collect();
            Error::query(format!("there is no sample type {name:?}; there are {}", names.join(", ")))
        })
    }

    /// Returns the sums of a sample type over one side, in its common unit.
    #[doc(hidden)]
    pub fn side_total(&self, base: bool, sample_type: usize) -> Total {
        let mut total = Total::default();
        for m in self.inputs.iter().filter(|m| m.base == base) {
            let (column, times) = self.types[sample_type].columns[m.index];
            let part = m.total(column);
            total.sum += part.sum * times;
            total.magnitude += part.magnitude * times;
        }
        total
    }

    /// Returns the sum of the durations of one side's profiles, in nanoseconds. It is 0 for the base of a written diff.
    pub(crate) fn side_duration(&self, base: bool) -> i64 {
        duration(self.inputs.iter().filter(|m| m.base == base))
    }
}

/// Returns the sum of the profiles' durations, in nanoseconds. A written diff records only the duration of the new
/// side.
fn duration<'a>(inputs: impl Iterator<Item = &'a Input>) -> i64 {
    let durations = inputs.filter(|m| m.part != Some(true)).map(|m| m.profile.duration_nanos());
    durations.fold(0, i64::saturating_add)
}
