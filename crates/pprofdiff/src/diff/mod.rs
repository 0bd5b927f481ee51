//! Two sides, compared: which frames, edges, stacks and labels each has, and what changed.
//!
//! ```text
//! Diff (inputs of two sides, common sample types)
//!   -> Selection (granularity, filters: frames interned)
//!        -> Measure (one sample type, normalization)
//!             -> top, edges, stacks, labels (each an ordered list of rows), flame (a tree cut out of the stacks)
//! ```
//!
//! A [`Diff`] is cheap: it decides only which columns of the profiles belong together. A [`Selection`] does what costs,
//! for all of its measures; each table is then one pass over the samples, or, where several views are asked, over a tree of
//! all stacks (`tree`) that the selection keeps. A single profile has the same views, with one side.
//!
//! The new side leads: its order of sample types and, at granularity `addresses`, its addresses. Deltas can't overflow,
//! since `Diff::new` refuses sides whose magnitudes together do not fit an int64.

#[cfg(feature = "list")]
mod alignment;
pub mod edges;
pub mod filter;
pub mod flame;
mod frames;
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
pub(crate) use frames::{FrameInterner, Innermost, State};
pub use identity::Granularity;
pub use matching::Matching;
pub(crate) use matching::Moves;
pub use normalize::Normalize;
pub(crate) use normalize::Scale;
pub(crate) use pattern::compile;
pub use query::Query;
pub use selection::{Measure, Selection, Side, Summary};
pub use top::{Sort, Top, TopRow};
pub(crate) use walk::{SampleLocations, SampleVisitor, Walk};

use serde::{Deserialize, Serialize};

use crate::sampling::{KnownOfTypes, nothing_known};
use crate::{Error, Result};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::shared::{CommonType, common_types, common_types_of_sides, default_type};
use pprofdiff_profile::{LoadOptions, Profile, Source, parallel};

/// A value of both sides. Of a single profile, `base` is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The base's.
    pub base: i64,
    /// The new side's; scaled, if the view normalizes.
    pub new: i64,
}

impl Pair {
    /// `new - base`. Never overflows for sums over samples, see [`Diff::new`].
    pub fn delta(self) -> i64 {
        self.new.saturating_sub(self.base)
    }
}

/// What happened to a row between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Only the new side has it.
    Added,
    /// Only the base has it.
    Removed,
    /// Both have it, with different values.
    Changed,
    /// Both have it, with the same values.
    Same,
}

impl Status {
    /// The status as results spell it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Added => "added",
            Status::Removed => "removed",
            Status::Changed => "changed",
            Status::Same => "same",
        }
    }

    pub(crate) fn new(in_base: bool, in_new: bool, equal: bool) -> Status {
        match (in_base, in_new) {
            (false, _) => Status::Added,
            (true, false) => Status::Removed,
            (true, true) if equal => Status::Same,
            (true, true) => Status::Changed,
        }
    }
}

/// The most sample types that a warning names.
const MAX_NAMED: usize = 10;

/// Lists sample types in a warning.
fn listed(types: &[&str]) -> String {
    let (shown, more) = types.split_at(types.len().min(MAX_NAMED));
    let and_more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{and_more}", shown.join(", "))
}

/// One profile of a comparison, or one side of a written diff.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub profile: Arc<Profile>,
    /// Its place in [`CommonType::columns`].
    pub index: usize,
    /// True if it is of the base's side.
    pub base: bool,
    /// `Some(b)`: the profile is a written diff; only the samples of its base (true), or the others.
    pub part: Option<bool>,
    /// Of a part, the sums of each column over it.
    part_totals: Arc<[Total]>,
}

impl Input {
    /// What values are multiplied by on top of the unit's factor: the base of a written diff is negative.
    pub(crate) fn sign(&self) -> i64 {
        if self.part == Some(true) { -1 } else { 1 }
    }

    /// The sums of one of its columns, over its own part of the samples.
    pub(crate) fn total(&self, column: usize) -> Total {
        match self.part {
            Some(_) => self.part_totals[column],
            None => self.profile.totals()[column],
        }
    }

    /// How often its profiler took a sample, if it has a sample type that counts it.
    fn counted(&self) -> Option<i64> {
        let types = self.profile.sample_types();
        let column = types.iter().position(|(kind, unit)| kind == "samples" && unit == "count")?;
        Some(self.total(column).magnitude)
    }

    /// One side of a written diff.
    fn part(profile: &Arc<Profile>, base: bool) -> Input {
        let mut totals = vec![Total::default(); profile.totals().len()];
        for s in profile.samples().filter(|s| s.is_base() == base) {
            let mut column = totals.iter_mut();
            s.for_each_value(|v| {
                // A part of the samples can't overflow where all of them do not.
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

/// A comparison of a base with something new. Several profiles of a side are runs of one program: values are their
/// means, unless they are to add up ([`Diff::summed`]).
#[derive(Debug, Clone)]
pub struct Diff {
    /// The inputs that count. A run that a side repeats is included once, unless the runs add up.
    pub(crate) inputs: Arc<[Input]>,
    /// All profiles that were given.
    named: Arc<[Input]>,
    /// Warnings about repeated runs.
    repeats: Arc<[String]>,
    pub(crate) types: Arc<[CommonType]>,
    default_type: usize,
    /// Two sides; false for the views of a single profile.
    two_sided: bool,
    /// Profiles of a side add up.
    sum: bool,
    /// What is known of the number of samples.
    pub(crate) known: KnownOfTypes,
    /// The folder of runs that was named in place of their files.
    folder: Option<Arc<str>>,
}

impl Diff {
    /// Compares profiles that are loaded already.
    ///
    /// # Errors
    /// A side without profiles; a written diff, which is two sides already; no common sample type, or units that do not
    /// convert; values of both sides that add up past int64 (so that no sum or delta can overflow later).
    pub fn new(base: &[Arc<Profile>], new: &[Arc<Profile>]) -> Result<Diff> {
        if base.is_empty() || new.is_empty() {
            return Err(Error::query("a diff needs at least one profile on each side"));
        }
        base.iter().chain(new).try_for_each(|p| p.one_sided())?;
        // The new side leads, as in pprof: its order of sample types, its addresses.
        let input = |(i, p): (usize, &Arc<Profile>)| Input::whole(p, i, i >= new.len());
        Diff::from_inputs(new.iter().chain(base).enumerate().map(input).collect(), true)
    }

    /// Loads two files and compares them; inside a rayon pool, at the same time. For several files on a side, see
    /// [`Diff::load`].
    ///
    /// # Errors
    /// As [`Profile::open`] and [`Diff::new`].
    pub fn open(base: impl AsRef<Path>, new: impl AsRef<Path>, options: &LoadOptions) -> Result<Diff> {
        let source = |path: &Path| [Source::Path(path.to_owned())];
        Diff::load(&source(base.as_ref()), &source(new.as_ref()), options)
    }

    /// Loads both sides, each of one or several sources, and compares them; inside a rayon pool, at the same time.
    ///
    /// # Errors
    /// As [`Profile::open`] and [`Diff::new`].
    pub fn load(base: &[Source], new: &[Source], options: &LoadOptions) -> Result<Diff> {
        let load = repeats::load_side;
        let (base, new) = parallel::join(|| load(base, &options.of_base()), || load(new, options));
        Diff::new(&base?, &new?)
    }

    /// Compares two profiles: [`Diff::new`] for the usual case of one on each side.
    ///
    /// # Errors
    /// As [`Diff::new`].
    pub fn between(base: impl Into<Arc<Profile>>, new: impl Into<Arc<Profile>>) -> Result<Diff> {
        Diff::new(&[base.into()], &[new.into()])
    }

    /// Opens a diff that was written as one profile ([`Diff::to_profile`], or pprof with `-proto -diff_base`)
    /// as a diff again; any other profile as itself, with one side.
    pub fn of_profile(profile: &Arc<Profile>) -> Result<Diff> {
        if profile.is_diff() {
            return Diff::from_inputs(vec![Input::part(profile, false), Input::part(profile, true)], true);
        }
        Diff::from_inputs(vec![Input::whole(profile, 0, false)], false)
    }

    /// Returns true if a side names a run several times. Such a run counts once.
    #[cfg(feature = "check")]
    pub(crate) fn has_repeats(&self) -> bool {
        self.inputs.len() < self.named.len()
    }

    /// Loads the sources of one side for [`Diff::new`]. A file that has several names is loaded once, so the diff knows it as
    /// one run.
    ///
    /// # Errors
    /// The errors of [`Source::load`].
    pub fn load_side(sources: &[Source], options: &LoadOptions) -> Result<Vec<Arc<Profile>>> {
        repeats::load_side(sources, options)
    }

    fn from_inputs(inputs: Vec<Input>, two_sided: bool) -> Result<Diff> {
        // Of a written diff, which is one profile, both sides are the same.
        let side = |base| inputs.iter().filter(|m| m.base == base).map(|m| &*m.profile).collect::<Vec<_>>();
        let (base, new) = (side(true), side(false));
        let types = match inputs.iter().find(|m| m.part.is_some()) {
            Some(written) => common_types(&[&*written.profile])?,
            None => common_types_of_sides(&base, &new)?,
        };
        let default_type = default_type(&new, &base, &types);
        let named: Arc<[Input]> = inputs.into();
        let (inputs, repeats) = match named.iter().any(|m| m.part.is_some()) {
            true => (named.clone(), Vec::new()),
            false => {
                let (runs, repeats) = repeats::distinct(&named);
                (runs.into(), repeats)
            }
        };
        let known = nothing_known(types.len());
        let (types, repeats, folder) = (types.into(), repeats.into(), None);
        Ok(Diff { inputs, named, repeats, types, default_type, two_sided, sum: false, known, folder })
    }

    /// The same with the profiles of each side added up: parts of one run, such as those of several machines.
    #[must_use]
    pub fn summed(self) -> Diff {
        let known = nothing_known(self.types.len());
        Diff { sum: true, inputs: self.named.clone(), repeats: Arc::default(), known, ..self }
    }

    /// Iterates over all profiles that were given for a side. [`Diff::base`] and [`Diff::new_side`] list a repeated run
    /// only once.
    pub fn given(&self, is_base: bool) -> impl Iterator<Item = &Arc<Profile>> {
        self.named.iter().filter(move |m| m.base == is_base).map(|m| &m.profile)
    }

    /// Returns the warnings about runs that a side repeats.
    pub(crate) fn repeats(&self) -> &[String] {
        &self.repeats
    }

    /// Counts the distinct runs among the last `last` profiles of the base.
    pub(crate) fn different_runs(&self, last: usize) -> usize {
        let first = self.given(true).count().saturating_sub(last);
        let is_kept = |given: &Arc<Profile>| self.base().any(|run| Arc::ptr_eq(run, given));
        let mut known: Vec<&Arc<Profile>> = self.given(true).take(first).collect();
        let mut runs = 0;
        for profile in self.given(true).skip(first) {
            if is_kept(profile) && !known.iter().any(|other| Arc::ptr_eq(other, profile)) {
                known.push(profile);
                runs += 1;
            }
        }
        runs
    }

    /// The same, named by the folder that has these runs and no others: in the commands of an answer it takes the place of
    /// all their files.
    #[must_use]
    pub fn with_folder(self, folder: impl AsRef<Path>) -> Diff {
        Diff { folder: Some(folder.as_ref().display().to_string().into()), ..self }
    }

    /// The folder of runs that names it, if there is one.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// True if the profiles of each side add up.
    pub fn is_summed(&self) -> bool {
        self.sum
    }

    /// How many runs the values of the base and of the new side are means of.
    pub(crate) fn runs(&self) -> [usize; 2] {
        let runs = |base: bool| self.inputs.iter().filter(|m| m.base == base).count();
        if self.sum { [1, 1] } else { [runs(true).max(1), runs(false)] }
    }

    /// True if there are two sides; false if this is a single profile.
    pub fn is_two_sided(&self) -> bool {
        self.two_sided
    }

    /// The sample types that all profiles have, as (type, unit), in the order of the new side's first file.
    pub fn sample_types(&self) -> Vec<(String, String)> {
        self.types.iter().map(|t| (t.kind.clone(), t.unit.clone())).collect()
    }

    /// The sample type that views show unless told otherwise; `None` if there is none at all.
    pub fn default_sample_type(&self) -> Option<&str> {
        self.types.get(self.default_type).map(|t| t.kind.as_str())
    }

    /// Returns a sentence about the sample types that have values, if the default one is zero everywhere and others are
    /// not.
    pub(crate) fn where_values_are(&self) -> Option<String> {
        let (default, others) = self.types_with_values()?;
        Some(format!("the default sample type, {default}, has no values; these have: {}", listed(&others)))
    }

    /// Returns the sample type that is explained if nobody names one: the default one, or if that is zero everywhere, the
    /// first one with values and a sentence that says so.
    pub(crate) fn type_to_explain(&self) -> (usize, Option<String>) {
        let Some((default, others)) = self.types_with_values() else { return (self.default_type, None) };
        let [first, rest @ ..] = &others[..] else { return (self.default_type, None) };
        let others = if rest.is_empty() { String::new() } else { format!("; so have: {}", listed(rest)) };
        let sentence = format!("the default sample type, {default}, has no values, but {first} has{others}");
        let number = self.types.iter().position(|t| t.kind == *first).unwrap_or(self.default_type);
        (number, Some(sentence))
    }

    /// Returns the default sample type and those that have values, if the default one has none and others have.
    fn types_with_values(&self) -> Option<(&str, Vec<&str>)> {
        let has_values = |t: usize| [true, false].iter().any(|&base| self.side_total(base, t).magnitude != 0);
        let default = self.types.get(self.default_type).filter(|_| !has_values(self.default_type))?;
        let others: Vec<&str> =
            (0..self.types.len()).filter(|&t| has_values(t)).map(|t| self.types[t].kind.as_str()).collect();
        (!others.is_empty()).then_some((&*default.kind, others))
    }

    /// The profiles of the base; empty if this is a single profile.
    pub fn base(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.inputs.iter().filter(|m| m.base).map(|m| &m.profile)
    }

    /// The profiles of the new side, or the single profile.
    pub fn new_side(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.inputs.iter().filter(|m| !m.base).map(|m| &m.profile)
    }

    /// Number of samples of all profiles.
    pub fn n_samples(&self) -> usize {
        self.profiles().map(|(_, profile)| profile.n_samples()).sum()
    }

    /// All profiles, each once, with what it is here: `base`, `new` or `profile`.
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

    /// Index in [`Diff::sample_types`] of a sample type by its name (of a heap, also with `inuse_` or `alloc_` in front
    /// where nothing was freed, and without `inuse_` where something was), or by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn find_sample_type(&self, name: Option<&str>) -> Result<usize> {
        if self.types.is_empty() {
            return Err(Error::query("the profile has no sample types, so there is nothing to show"));
        }
        let Some(name) = name else { return Ok(self.default_type) };
        let position = |wanted: &str| self.types.iter().position(|t| t.kind == wanted);
        let number = || name.parse().ok().filter(|&n: &usize| n < self.types.len());
        // Heap dumps of one program have other names before its first free. Then what was allocated is in use.
        let is_heap = || position("objects").is_some() && position("space").is_some();
        let allocated = || name.strip_prefix("alloc_").filter(|_| is_heap());
        let before_frees = || position(name.strip_prefix("inuse_").or_else(allocated)?);
        let after_frees = || position(&format!("inuse_{name}"));
        let found = position(name).or_else(before_frees).or_else(after_frees).or_else(number);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.types.iter().map(|t| t.kind.as_str()).collect();
            Error::query(format!("there is no sample type {name:?}; there are {}", names.join(", ")))
        })
    }

    /// The sums of a sample type over one side, in its common unit.
    pub(crate) fn side_total(&self, base: bool, sample_type: usize) -> Total {
        let mut total = Total::default();
        for m in self.inputs.iter().filter(|m| m.base == base) {
            let (column, times) = self.types[sample_type].columns[m.index];
            let part = m.total(column);
            total.sum += part.sum * times;
            total.magnitude += part.magnitude * times;
        }
        total
    }

    /// Nanoseconds that one side's profiles took together.
    pub(crate) fn side_duration(&self, base: bool) -> i64 {
        duration(self.inputs.iter().filter(|m| m.base == base))
    }
}

/// Nanoseconds that profiles took together. A written diff tells only the new side's.
fn duration<'a>(inputs: impl Iterator<Item = &'a Input>) -> i64 {
    let durations = inputs.filter(|m| m.part != Some(true)).map(|m| m.profile.duration_nanos());
    durations.fold(0, i64::saturating_add)
}
