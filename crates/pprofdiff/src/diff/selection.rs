//! Applies a query to a diff in two steps. A selection (filters, granularity) does the expensive work. A measure of the
//! selection (sample type, normalization) is cheap.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::filter::{Compiled, FilterKind, FilterPlan};
use super::frames::{Frames, InputFrames, State};
use super::identity::{self, Granularity};
use super::matching::{Matching, Moves, RenamedFunctions};
use super::normalize::{Normalize, Scale, Scales};
use super::tags::number_units;
use super::top::TotalChance;
use super::tree::StackTree;
#[cfg(feature = "check")]
use super::walk::ChosenVisitor;
use super::walk::{StackVisitor, TypeColumns, Walk};
use super::{Diff, Input, Pair, Query, duration};
use crate::sampling::Sampling;
use crate::target::is_level;
use crate::units;
use crate::{Error, Result};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::{Profile, parallel};

/// The ratio of two sides' durations from which a warning suggests to compare rates. A program that does the same work
/// more slowly also runs longer, and its costs must not be divided by that time; such changes are rarely this large.
const MIN_DURATION_RATIO: f64 = 2.0;

/// Returns a value divided by its count, or the value itself if the count is zero.
pub(super) fn mean(value: i64, count: i64) -> i64 {
    value.checked_div(count).unwrap_or(value)
}

/// One side of a measure, as headers show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Side {
    /// The names of the profiles.
    pub paths: Vec<String>,
    /// The number of samples as written: records, each a stack with its labels.
    pub samples: usize,
    /// The number of samples that the profiler took, if all profiles have a sample type that counts it
    /// (`samples/count`).
    pub counted: Option<i64>,
    /// The sum of the profiles' durations.
    pub duration_nanos: i64,
    /// The earliest time of the profiles, or 0 if no profile records a time.
    pub time_nanos: i64,
    /// The part of the recordings that was read ([`TimeWindow`](crate::TimeWindow)), as the first profile with a window
    /// states it. `None` if the profiles were read as a whole.
    pub window: Option<String>,
}

/// The header of a measure: everything that a table needs besides its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The base, or `None` for a single profile.
    pub base: Option<Side>,
    /// The new side, or the single profile.
    pub new: Side,
    /// The name of the sample type.
    pub sample_type: String,
    /// The unit of all values.
    pub unit: String,
    /// The query, with this sample type.
    pub query: Query,
    /// The factor that scales the new side's values. The division of values by the number of runs is not part of it.
    pub factor: f64,
    /// True if several profiles of a side add up. Otherwise they are runs, and a value is the mean over them, rounded
    /// once.
    #[serde(default)]
    pub sum: bool,
    /// Warnings that a user should read before trusting the rows.
    pub warnings: Vec<String>,
    /// The statistics of the total over runs, in tables that also have statistics of rows.
    #[serde(default)]
    pub chance: Option<TotalChance>,
    /// The sampling models of the base and of the new side, in tables that have statistics of rows.
    #[serde(default)]
    pub sampling: Option<[Sampling; 2]>,
    /// The sums of the magnitudes of all values, with the new side scaled. Sums are taken before filters, unless
    /// percentages are relative. Percentages refer to the base's sum. If the query divides values by counts, the sum is
    /// divided as well.
    pub total: Pair,
}

/// The result of a query's filters and frame options on a diff or a single profile: filters are applied, and frames of
/// both sides are interned together. This is the expensive step and runs once. Each [`Measure`] of a selection is cheap
/// and shares the frames.
#[derive(Clone)]
pub struct Selection {
    diff: Diff,
    shared: Arc<SelectionData>,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("query", self.query()).finish_non_exhaustive()
    }
}

/// The data that all measures of a selection share.
struct SelectionData {
    query: Query,
    base: Option<Side>,
    new: Side,
    /// The filter plan of each input.
    plans: Vec<FilterPlan>,
    frames: Arc<Frames>,
    /// For each input, the map from its own frame indexes to the common indexes.
    translations: Vec<Vec<u32>>,
    warnings: Vec<String>,
    /// The tree of stacks that several views share, once it is built. `None` if the tree would be too large.
    tree: OnceLock<Option<Arc<StackTree>>>,
}

/// Returns a warning with the number of names that were made canonical, and one example.
fn matched(inputs: &[InputFrames]) -> Option<String> {
    let all: usize = inputs.iter().map(|input| input.matched.0).sum();
    let (original, canonical) = inputs.iter().find_map(|input| input.matched.1.as_ref())?;
    let names = if all == 1 { "name original" } else { "names were" };
    Some(format!("{all} {names} matched without compiler-generated numbers, such as {original} as {canonical}"))
}

impl Diff {
    /// Applies the query's filters, granularity and `no_inlines`, and interns the frames. `moves` lists the functions
    /// that the caller has found to be renamed or inlined between the builds.
    ///
    /// Fails on an invalid query, such as an invalid regular expression. The profiles were checked when they were
    /// loaded.
    #[doc(hidden)]
    pub fn select_with(&self, query: &Query, moves: &Moves) -> Result<Selection> {
        let is_of_runs = !self.sum && self.runs().iter().any(|&runs| runs > 1);
        self.select_matched(query, query.matching.resolved(is_of_runs), moves)
    }

    /// Like [`Diff::select_with`], but matches names by `matching`. The query keeps its own setting, which reports
    /// show.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::select_with`].
    pub(crate) fn select_matched(&self, query: &Query, matching: Matching, moves: &Moves) -> Result<Selection> {
        query.check(self)?;
        let filters = Compiled::new(&query.filters, query.no_inlines, query.all_frames)?;
        let mut warnings: Vec<String> = Vec::new();
        let diff = &*self.of_tagged_sides(query, &mut warnings)?;
        for m in self.inputs.iter().filter(|m| m.part != Some(true)) {
            warnings.extend(m.profile.warnings());
        }
        warnings.extend(self.repeats().iter().cloned());
        let plans = diff.plans(query, &filters, &moves.folded, &mut warnings)?;
        let profiles: Vec<&Profile> = diff.inputs.iter().map(|m| &*m.profile).collect();
        let shifts = match query.granularity {
            Granularity::Addresses => identity::address_shifts(&profiles),
            _ => vec![Vec::new(); profiles.len()],
        };
        let state = State::default();
        let zipped: Vec<_> = diff.inputs.iter().zip(&plans).zip(&shifts).collect();
        let no_renames = RenamedFunctions::default();
        let inputs = parallel::map(&zipped, |((m, plan), shifts)| {
            let renamed = if m.base { &moves.renamed } else { &no_renames };
            InputFrames::new(&m.profile, plan, query, matching, renamed, shifts, &state)
        });
        warnings.extend(matched(&inputs));
        warnings.extend(diff.warning_about_goroutines());
        warnings.extend(moves.warnings.iter().cloned());
        let (frames, translations) = Frames::merge(inputs, query.granularity, &state);
        warnings.extend(frames.warning());
        let shared = SelectionData {
            query: query.clone(),
            base: diff.is_two_sided().then(|| diff.side(true, usize::MAX)),
            new: diff.side(false, usize::MAX),
            plans,
            frames: Arc::new(frames),
            translations,
            warnings,
            tree: OnceLock::new(),
        };
        Ok(Selection { diff: diff.clone(), shared: Arc::new(shared) })
    }

    /// Returns the scales for the values of a sample type, given the sums of both sides.
    ///
    /// # Errors
    /// Fails if a single profile is normalized, on normalization by zero, and if scaled values overflow.
    pub(crate) fn scales(&self, mode: Normalize, base: Total, new: Total) -> Result<Scales> {
        if !self.is_two_sided() && mode != Normalize::None {
            return Err(Error::query("normalize scales one side to match the other, but there is only one profile"));
        }
        let durations = (self.side_duration(true), self.side_duration(false));
        let runs = self.runs();
        let scale = Scale::new(mode, (base.sum, new.sum), durations, runs)?;
        scale.check(base.magnitude, new.magnitude)?;
        Ok(Scales { base: Scale::mean(runs[0]), new: scale })
    }

    /// Creates the filter plan of each input. Adds a warning for each filter that matched nothing.
    pub(crate) fn plans(
        &self,
        query: &Query,
        filters: &Compiled,
        folded: &[HashSet<String>; 2],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<FilterPlan>> {
        let by_range = query.filters.has(FilterKind::Labels);
        let units = if by_range { number_units(self.inputs.iter().map(|m| &*m.profile)) } else { Default::default() };
        let first_of_new = self.inputs.iter().find(|m| !m.base);
        let mut plans = Vec::with_capacity(self.inputs.len());
        let mut matched: Vec<(&str, bool)> = Vec::new();
        for m in self.inputs.iter() {
            let mut input_warnings = Vec::new();
            let rules = &first_of_new.unwrap_or(m).profile;
            let folded = &folded[usize::from(!m.base)];
            let (plan, hits) = FilterPlan::new(&m.profile, rules, filters, folded, &units, &mut input_warnings)?;
            for w in input_warnings {
                if !warnings.contains(&w) {
                    warnings.push(w);
                }
            }
            for (name, hit) in hits {
                match matched.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, any)) => *any |= hit,
                    None => matched.push((name, hit)),
                }
            }
            plans.push(plan);
        }
        let active_filters = query.filters.set();
        for (name, _) in matched.iter().filter(|(_, hit)| !hit) {
            let value = active_filters.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v);
            warnings.push(format!("{name} {value:?} matched nothing"));
        }
        Ok(plans)
    }

    /// Summarizes the first `profiles` profiles of a side.
    #[doc(hidden)]
    pub fn side(&self, base: bool, profiles: usize) -> Side {
        let inputs: Vec<&Input> = self.inputs.iter().filter(|m| m.base == base).take(profiles).collect();
        let samples = |m: &&Input| match m.part {
            None => m.profile.n_samples(),
            Some(part) => m.profile.samples().filter(|s| s.is_base() == part).count(),
        };
        Side {
            paths: inputs.iter().map(|m| m.profile.name().to_owned()).collect(),
            samples: inputs.iter().map(samples).sum(),
            counted: inputs.iter().try_fold(0, |sum: i64, m| m.counted()?.checked_add(sum)),
            duration_nanos: duration(inputs.iter().copied()),
            time_nanos: inputs.iter().map(|m| m.profile.time_nanos()).filter(|&t| t != 0).min().unwrap_or(0),
            window: inputs.iter().find_map(|m| m.profile.window()).map(|window| window.as_str().to_owned()),
        }
    }
}

impl Side {
    /// Creates the side of a table whose columns are builds.
    #[doc(hidden)]
    pub fn of_builds(paths: Vec<String>, samples: usize, duration_nanos: i64, time_nanos: i64) -> Side {
        Side { paths, samples, counted: None, duration_nanos, time_nanos, window: None }
    }
}

impl Summary {
    /// Creates the header of a table whose columns are builds. The query has the sample type.
    #[doc(hidden)]
    pub fn of_builds(builds: Side, unit: String, query: Query, total: Pair, warnings: Vec<String>) -> Summary {
        Summary {
            base: None,
            new: builds,
            sample_type: query.sample_type.clone().unwrap_or_default(),
            unit,
            query,
            factor: 1.0,
            sum: false,
            warnings,
            chance: None,
            sampling: None,
            total,
        }
    }

    /// Returns true if values are means over several runs on at least one side.
    pub fn is_of_runs(&self) -> bool {
        !self.sum && self.base.as_ref().is_some_and(|base| base.paths.len() > 1 || self.new.paths.len() > 1)
    }
}

impl Selection {
    /// Returns the underlying diff.
    #[doc(hidden)]
    pub fn diff(&self) -> &Diff {
        &self.diff
    }

    /// Returns the query that was applied.
    #[doc(hidden)]
    pub fn query(&self) -> &Query {
        &self.shared.query
    }

    /// Returns the frames, which all measures share.
    pub fn frames(&self) -> &Arc<Frames> {
        &self.shared.frames
    }

    /// Returns the tree of all stacks, if it was built and is small enough.
    pub(super) fn tree(&self) -> Option<&Arc<StackTree>> {
        self.shared.tree.get()?.as_ref()
    }

    /// Builds the tree if it does not exist yet. Two threads may both build it, and the first result is kept. Making
    /// one thread wait could deadlock inside a pool.
    pub(super) fn keep_tree(&self, build: impl FnOnce() -> Option<StackTree>) {
        if self.shared.tree.get().is_none() {
            let _ = self.shared.tree.set(build().map(Arc::new));
        }
    }

    /// Returns the walk over each profile, with its columns of all sample types.
    pub(super) fn columns(&self) -> Vec<TypeColumns<'_>> {
        let types = &self.diff.types;
        let all = self.walks(0).map(|walk| {
            let sign = walk.input.sign();
            let columns = types.iter().map(|t| t.columns[walk.input.index]);
            TypeColumns { of_types: columns.map(|(column, times)| (column, times * sign)).collect(), walk }
        });
        all.collect()
    }

    /// Returns the walk over each profile for one sample type. Empty if the sample type does not exist.
    fn walks(&self, sample_type: usize) -> impl Iterator<Item = Walk<'_>> {
        let Selection { diff, shared } = self;
        let columns = diff.types.get(sample_type).map(|t| &t.columns);
        columns.into_iter().flat_map(move |columns| {
            diff.inputs.iter().enumerate().map(move |(index, input)| {
                let (column, times) = columns[input.index];
                Walk {
                    index,
                    input,
                    frames: shared.frames.input(index),
                    translation: &shared.translations[index],
                    plan: &shared.plans[index],
                    column,
                    times: times * input.sign(),
                }
            })
        })
    }

    /// Returns the measure of a sample type by its name (`None` for the default type), scaled.
    ///
    /// # Errors
    /// Fails on an unknown sample type, if a single profile is normalized, on normalization by zero, and if scaled
    /// values overflow.
    pub fn measure(&self, sample_type: Option<&str>, normalize: Normalize) -> Result<Measure> {
        let measure = self.measure_type(self.diff.find_sample_type(sample_type)?, normalize)?;
        let zero_default = sample_type.is_none().then(|| self.diff.where_values_are()).flatten();
        let without_stacks = measure.without_stacks();
        let durations = self.warn_of_durations(&measure);
        Ok(measure.warned(zero_default).warned(without_stacks).warned(durations))
    }

    /// Returns a warning if the runs of one side are much longer than the runs of the other side, so that all costs grow
    /// with the time. Levels, such as memory in use, do not grow with it.
    fn warn_of_durations(&self, measure: &Measure) -> Option<String> {
        let (summary, diff) = (&measure.summary, &self.diff);
        let is_level = is_level(&summary.sample_type);
        if !diff.is_two_sided() || is_level || summary.query.normalize != Normalize::None {
            return None;
        }
        // The runs of a sum are parts of one run.
        let runs = if diff.sum { [1, 1] } else { diff.runs() };
        let [base, new] =
            [(true, runs[0]), (false, runs[1])].map(|(base, n)| diff.side_duration(base) / n.max(1) as i64);
        let (short, long) = (base.min(new), base.max(new));
        let is_much = short > 0 && long as f64 >= MIN_DURATION_RATIO * short as f64;
        let show = |nanos| units::show(nanos, "nanoseconds");
        is_much.then(|| {
            format!(
                "the profiles differ in duration ({} and {}); normalize=duration compares rates",
                show(base),
                show(new)
            )
        })
    }

    /// Returns the measure of a sample type by its index in [`Diff::sample_types`].
    ///
    /// # Errors
    /// Returns the errors of [`Selection::measure`].
    pub fn measure_type(&self, sample_type: usize, normalize: Normalize) -> Result<Measure> {
        let diff = &self.diff;
        let Some(t) = diff.types.get(sample_type) else {
            return Err(Error::query(format!("there is no sample type number {sample_type}")));
        };
        let (base, new) = (diff.side_total(true, sample_type), diff.side_total(false, sample_type));
        let scales = diff.scales(normalize, base, new)?;
        let runs = diff.runs();
        let summary = Summary {
            base: self.shared.base.clone(),
            new: self.shared.new.clone(),
            sample_type: t.kind.clone(),
            unit: t.unit.clone(),
            query: self.shared.query.clone().with_sample_type(&*t.kind).with_normalize(normalize),
            factor: match normalize {
                Normalize::None => 1.0,
                Normalize::Factor(factor) => factor,
                _ => scales.new.factor() * runs[1] as f64,
            },
            warnings: self.shared.warnings.clone(),
            sum: diff.sum,
            chance: None,
            sampling: None,
            total: scales.apply(Pair { base: base.magnitude, new: new.magnitude }),
        };
        let mut measure = Measure { selection: self.clone(), sample_type, scales, summary: Arc::new(summary) };
        if self.shared.query.relative_percentages || self.shared.query.mean {
            let total = measure.shown_total(measure.summary.query.relative_percentages);
            let summary = Arc::make_mut(&mut measure.summary);
            summary.total = total;
            if self.shared.query.mean {
                summary.sample_type.insert_str(0, "mean_");
            }
        }
        Ok(measure)
    }
}

/// One sample type of a [`Selection`]: the source of tables, stacks, graphs and lists of frames.
#[derive(Clone)]
pub struct Measure {
    pub(super) selection: Selection,
    pub(crate) sample_type: usize,
    pub(super) scales: Scales,
    pub(super) summary: Arc<Summary>,
}

impl std::fmt::Debug for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measure").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Measure {
    /// Returns the header of this measure.
    pub fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Adds a warning, if there is one.
    fn warned(mut self, warning: Option<String>) -> Measure {
        Arc::make_mut(&mut self.summary).warnings.extend(warning);
        self
    }

    /// Returns a warning if there are values but no frames, so that tables are empty although no filter is set. An
    /// example is Go's profile of created threads, which has no stacks.
    fn without_stacks(&self) -> Option<String> {
        let Summary { total, sample_type, query, .. } = &*self.summary;
        let is_empty = *total != Pair::default() && self.frames().is_empty() && query.filters.set().is_empty();
        is_empty.then(|| format!("no sample of {sample_type} has a stack, so only its total is known"))
    }

    /// Returns the frames of all rows.
    pub fn frames(&self) -> &Arc<Frames> {
        &self.selection.shared.frames
    }

    /// Returns the measure of the first sample type, which counts, if the query divides values by it.
    pub(super) fn counts(&self) -> Option<Measure> {
        self.summary.query.mean.then(|| Measure { sample_type: 0, ..self.clone() })
    }

    /// Returns the total of the samples that pass the filters, while [`Summary::total`] covers all samples. If there
    /// are filters, this takes a pass over the samples.
    pub fn kept_total(&self) -> Pair {
        match self.summary.query.filters.set().is_empty() {
            true => self.summary.total,
            false => self.shown_total(true),
        }
    }

    /// Returns the total of the samples that pass the filters (`kept`), or of all samples.
    fn shown_total(&self, kept: bool) -> Pair {
        let diff = &self.selection.diff;
        let total = |measure: &Measure, base: bool| match kept {
            true => measure.kept(base),
            false => diff.side_total(base, measure.sample_type),
        };
        let whole = Pair { base: total(self, true).magnitude, new: total(self, false).magnitude };
        match self.counts() {
            Some(counts) => Pair { base: 0, new: mean(whole.new, total(&counts, false).sum) },
            None => self.scales.apply(whole),
        }
    }

    /// Returns the sums over one side's samples that pass the filters.
    fn kept(&self, base: bool) -> Total {
        if let Some(tree) = self.tree() {
            return tree.total(self.sample_type, base);
        }
        let mut total = Total::default();
        for walk in self.walks_of(base) {
            // If the sums over all samples fit, the sums over a part of them fit too.
            walk.for_each_sample(|value, _| {
                total.sum += value;
                total.magnitude += value.saturating_abs();
            });
        }
        total
    }

    /// Returns this measure without normalization and without division by the number of runs. Its values are exact
    /// sums, so the summary marks the profiles as adding up.
    #[must_use]
    pub fn exact(&self) -> Measure {
        let total = |base| self.selection.diff.side_total(base, self.sample_type).magnitude;
        let mut summary = (*self.summary).clone();
        (summary.query.normalize, summary.factor, summary.sum) = (Normalize::None, 1.0, true);
        summary.total = Pair { base: total(true), new: total(false) };
        Measure { scales: Scales::ONE, summary: Arc::new(summary), ..self.clone() }
    }

    /// Returns the walk over each profile.
    #[doc(hidden)]
    pub fn walks(&self) -> impl Iterator<Item = Walk<'_>> {
        self.selection.walks(self.sample_type)
    }

    /// Returns the walk over each profile of one side.
    #[doc(hidden)]
    pub fn walks_of(&self, base: bool) -> impl Iterator<Item = Walk<'_>> {
        self.walks().filter(move |w| w.input.base == base)
    }

    /// Returns the decompressed size of all profiles in bytes. Views derive their limits from it.
    #[doc(hidden)]
    pub fn profile_bytes(&self) -> usize {
        self.walks().map(|w| w.input.profile.inflated_size()).sum()
    }

    /// Calls `f` with each sample of one side that passes the filters: its value, and its frames as common indexes,
    /// root first.
    pub(crate) fn for_each_stack(&self, base: bool, mut f: impl FnMut(i64, &[u32])) {
        let mut stack = Vec::new();
        for walk in self.walks_of(base) {
            let mut visitor = StackVisitor { walk: &walk, innermost: walk.innermost(), stack, f: &mut f };
            walk.visit(&walk.input.profile.sample_range(), &mut visitor);
            stack = visitor.stack;
        }
    }

    /// Like [`Measure::for_each_stack`], with only the chosen frames of each stack, and without stacks that have none.
    /// `is_chosen` has an element for each frame.
    #[cfg(feature = "check")]
    pub(crate) fn for_each_chosen_stack(&self, base: bool, is_chosen: &[bool], mut f: impl FnMut(i64, &[u32])) {
        for walk in self.walks_of(base) {
            let mut visitor = ChosenVisitor::new(&walk, is_chosen, &mut f);
            walk.visit(&walk.input.profile.sample_range(), &mut visitor);
        }
    }

    /// Computes a result for each side, in parallel inside a rayon pool. Returns (base, new).
    pub(crate) fn sides<T: Send>(&self, f: impl Fn(bool) -> T + Sync) -> (T, T) {
        parallel::join(|| f(true), || f(false))
    }
}
