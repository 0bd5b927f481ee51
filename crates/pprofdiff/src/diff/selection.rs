//! What is asked of a diff, in two steps: a selection (filters, granularity) does what costs, a measure of it (sample
//! type, normalization) is cheap.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::filter::{Compiled, FilterKind, FilterPlan};
use super::frames::{Frames, InputFrames, State};
use super::identity::{self, Granularity};
use super::matching::{Matching, Moves, Renamed};
use super::normalize::{Normalize, Scale, Scales};
use super::tags::number_units;
use super::top::TotalChance;
use super::tree::Tree;
use super::walk::{Columns, StackVisitor, Walk};
use super::{Diff, Input, Pair, Query, duration};
use crate::sampling::Sampling;
use crate::{Error, Result};
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::{Profile, parallel};

/// A value by the number of what it is of; itself where there is none.
pub(super) fn mean(value: i64, count: i64) -> i64 {
    value.checked_div(count).unwrap_or(value)
}

/// One side of a measure, for headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Side {
    /// The profiles' names.
    pub paths: Vec<String>,
    /// Number of samples as written: records, each a stack with its labels.
    pub samples: usize,
    /// How often the profiler took a sample, where all profiles have a sample type that counts it (`samples/count`).
    pub counted: Option<i64>,
    /// Sum of the profiles' durations.
    pub duration_nanos: i64,
    /// The earliest time; 0 if none tells.
    pub time_nanos: i64,
    /// The part of their recordings that was read ([`TimeWindow`](crate::TimeWindow)), if not all of it was.
    pub window: Option<String>,
}

/// What a measure is of: everything a table needs besides its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The base; `None` if this is a single profile.
    pub base: Option<Side>,
    /// The new side, or the single profile.
    pub new: Side,
    /// The sample type's name.
    pub sample_type: String,
    /// The unit of all values.
    pub unit: String,
    /// What was asked, of this sample type.
    pub query: Query,
    /// What the new side's values were multiplied by; besides, each side's are means of its runs.
    pub factor: f64,
    /// Several profiles of a side add up. Else they are runs, and a value is their mean, rounded once.
    #[serde(default)]
    pub sum: bool,
    /// What a user should know before trusting the rows.
    pub warnings: Vec<String>,
    /// What runs say of the total, of tables that know what they say of rows.
    #[serde(default)]
    pub chance: Option<TotalChance>,
    /// How many samples stand behind the values of the base and of the new side, where statistics were asked for.
    #[serde(default)]
    pub sampling: Option<[Sampling; 2]>,
    /// Sums of the magnitudes of all values, before filters unless percentages are relative; percentages are of the base's.
    /// The new side's is scaled.
    pub total: Pair,
}

/// What a query selects of a diff, or of a single profile: filters applied, frames interned, both sides brought
/// together. This is what costs, and is done once; each [`Measure`] of it is cheap and shares the frames.
#[derive(Clone)]
pub struct Selection {
    diff: Diff,
    shared: Arc<Shared>,
}

/// What all measures of a selection share.
struct Shared {
    query: Query,
    base: Option<Side>,
    new: Side,
    /// For each input.
    plans: Vec<FilterPlan>,
    frames: Arc<Frames>,
    /// For each input: from its own frame indexes to the common ones.
    translations: Vec<Vec<u32>>,
    warnings: Vec<String>,
    /// What several views share, once it is built; `None` where it would not fit.
    tree: OnceLock<Option<Arc<Tree>>>,
}

/// How many names were made canonical, with an example.
fn matched(inputs: &[InputFrames]) -> Option<String> {
    let all: usize = inputs.iter().map(|input| input.matched.0).sum();
    let (was, is) = inputs.iter().find_map(|input| input.matched.1.as_ref())?;
    let names = if all == 1 { "name was" } else { "names were" };
    Some(format!("{all} {names} matched without what a compiler numbers, such as {was} as {is}"))
}

impl Diff {
    /// Selects what the query's filters, granularity and `no_inlines` say: works out the filters and interns the
    /// frames. What moved between the builds is what the caller knows of it.
    ///
    /// # Errors
    /// An invalid regular expression. The profiles were checked when they were loaded.
    pub(crate) fn select_with(&self, query: &Query, moves: &Moves) -> Result<Selection> {
        let is_of_runs = !self.sum && self.runs().iter().any(|&runs| runs > 1);
        self.select_matched(query, query.matching.resolved(is_of_runs), moves)
    }

    /// As [`Diff::select_with`], with names matched in this way. The query keeps its own way, which reports show.
    ///
    /// # Errors
    /// As [`Diff::select_with`].
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
        let as_they_are = Renamed::default();
        let inputs = parallel::map(&zipped, |((m, plan), shifts)| {
            let renamed = if m.base { &moves.renamed } else { &as_they_are };
            InputFrames::new(&m.profile, plan, query, matching, renamed, shifts, &state)
        });
        warnings.extend(matched(&inputs));
        warnings.extend(moves.told.iter().cloned());
        let (frames, translations) = Frames::merge(inputs, query.granularity, &state);
        warnings.extend(frames.warning());
        let shared = Shared {
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

    /// What the values of a sample type are scaled by, given the sums of both sides.
    pub(crate) fn scales(&self, mode: Normalize, base: Total, new: Total) -> Result<Scales> {
        if !self.is_two_sided() && mode != Normalize::None {
            return Err(Error::query("normalize scales one side to the other; there is only one profile"));
        }
        let durations = (self.side_duration(true), self.side_duration(false));
        let runs = self.runs();
        let scale = Scale::new(mode, (base.sum, new.sum), durations, runs)?;
        scale.check(base.magnitude, new.magnitude)?;
        Ok(Scales { base: Scale::mean(runs[0]), new: scale })
    }

    /// The plan of the filters for each input; warns of those that matched nothing.
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
            let mut own_warnings = Vec::new();
            let rules = &first_of_new.unwrap_or(m).profile;
            let folded = &folded[usize::from(!m.base)];
            let (plan, hits) = FilterPlan::new(&m.profile, rules, filters, folded, &units, &mut own_warnings)?;
            for w in own_warnings {
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
        let given = query.filters.set();
        for (name, _) in matched.iter().filter(|(_, hit)| !hit) {
            let value = given.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v);
            warnings.push(format!("{name} {value:?} matched nothing"));
        }
        Ok(plans)
    }

    /// What is known of a side's first profiles.
    pub(crate) fn side(&self, base: bool, profiles: usize) -> Side {
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

impl Summary {
    /// True if values are means of several runs, of one side at least.
    pub fn is_of_runs(&self) -> bool {
        !self.sum && self.base.as_ref().is_some_and(|base| base.paths.len() > 1 || self.new.paths.len() > 1)
    }
}

impl Selection {
    /// What it is selected of.
    pub(crate) fn diff(&self) -> &Diff {
        &self.diff
    }

    /// What was asked.
    pub(crate) fn query(&self) -> &Query {
        &self.shared.query
    }

    /// The frames, which all measures share.
    pub fn frames(&self) -> &Arc<Frames> {
        &self.shared.frames
    }

    /// The tree of all stacks, if it was built and fits.
    pub(super) fn tree(&self) -> Option<&Arc<Tree>> {
        self.shared.tree.get()?.as_ref()
    }

    /// Builds the tree unless that was done. Two threads may do it at the same time, of whom the first is taken: to wait
    /// for each other inside of a pool they might wait for ever.
    pub(super) fn keep_tree(&self, build: impl FnOnce() -> Option<Tree>) {
        if self.shared.tree.get().is_none() {
            let _ = self.shared.tree.set(build().map(Arc::new));
        }
    }

    /// The profiles, each with its columns of all sample types.
    pub(super) fn columns(&self) -> Vec<Columns<'_>> {
        let types = &self.diff.types;
        let all = self.walks(0).map(|walk| {
            let sign = walk.input.sign();
            let columns = types.iter().map(|t| t.columns[walk.input.index]);
            Columns { of_types: columns.map(|(column, times)| (column, times * sign)).collect(), walk }
        });
        all.collect()
    }

    /// The profiles, to be walked one by one. There are none if there is no such sample type.
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

    /// One sample type of what is selected, by its name (`None`: the default one), scaled.
    ///
    /// # Errors
    /// An unknown sample type, a normalization by zero or to values that no longer fit.
    pub fn measure(&self, sample_type: Option<&str>, normalize: Normalize) -> Result<Measure> {
        let measure = self.measure_type(self.diff.find_sample_type(sample_type)?, normalize)?;
        let elsewhere = sample_type.is_none().then(|| self.diff.where_values_are()).flatten();
        let without_stacks = measure.without_stacks();
        Ok(measure.warned(elsewhere).warned(without_stacks))
    }

    /// One of [`Diff::sample_types`], by its index there.
    ///
    /// # Errors
    /// As [`Selection::measure`].
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

/// One sample type of a [`Selection`]: what tables, stacks, graphs and lists of frames are made of.
#[derive(Clone)]
pub struct Measure {
    pub(super) selection: Selection,
    pub(crate) sample_type: usize,
    pub(super) scales: Scales,
    pub(super) summary: Arc<Summary>,
}

impl Measure {
    /// What it is of.
    pub fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// With one more warning.
    fn warned(mut self, warning: Option<String>) -> Measure {
        Arc::make_mut(&mut self.summary).warnings.extend(warning);
        self
    }

    /// Returns a warning if there are values but no frame that could have them, so that tables are empty: Go's profile of
    /// created threads has no stacks.
    fn without_stacks(&self) -> Option<String> {
        let Summary { total, sample_type, query, .. } = &*self.summary;
        let is_empty = *total != Pair::default() && self.frames().is_empty() && query.filters.set().is_empty();
        is_empty.then(|| format!("no sample of {sample_type} has a stack, so its total is all that is known"))
    }

    /// The frames that rows refer to.
    pub fn frames(&self) -> &Arc<Frames> {
        &self.selection.shared.frames
    }

    /// The sample type that counts, if values are to be divided by it.
    pub(super) fn counts(&self) -> Option<Measure> {
        self.summary.query.mean.then(|| Measure { sample_type: 0, ..self.clone() })
    }

    /// The total of what filters leave, as [`Summary::total`] is that of the whole. Costs a pass over the samples where
    /// there are filters.
    pub fn kept_total(&self) -> Pair {
        match self.summary.query.filters.set().is_empty() {
            true => self.summary.total,
            false => self.shown_total(true),
        }
    }

    /// The total of what filters leave, or of the whole.
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

    /// The sums of what filters leave of one side.
    fn kept(&self, base: bool) -> Total {
        if let Some(tree) = self.tree() {
            return tree.total(self.sample_type, base);
        }
        let mut total = Total::default();
        for walk in self.walks_of(base) {
            // A part of the samples can't overflow where all of them do not.
            walk.for_each_sample(|value, _| {
                total.sum += value;
                total.magnitude += value.saturating_abs();
            });
        }
        total
    }

    /// The same, not normalized and not divided by runs: values are the exact sums that these start from.
    #[must_use]
    pub fn exact(&self) -> Measure {
        let total = |base| self.selection.diff.side_total(base, self.sample_type).magnitude;
        let mut summary = (*self.summary).clone();
        (summary.query.normalize, summary.factor, summary.sum) = (Normalize::None, 1.0, true);
        summary.total = Pair { base: total(true), new: total(false) };
        Measure { scales: Scales::ONE, summary: Arc::new(summary), ..self.clone() }
    }

    /// The profiles, to be walked one by one.
    pub(crate) fn walks(&self) -> impl Iterator<Item = Walk<'_>> {
        self.selection.walks(self.sample_type)
    }

    /// Those of one side.
    pub(crate) fn walks_of(&self, base: bool) -> impl Iterator<Item = Walk<'_>> {
        self.walks().filter(move |w| w.input.base == base)
    }

    /// Bytes of all profiles, which bound what a view may take.
    pub(crate) fn profile_bytes(&self) -> usize {
        self.walks().map(|w| w.input.profile.inflated_size()).sum()
    }

    /// Calls `f` with each sample that counts of one side: value, common frame indexes root first.
    pub(crate) fn for_each_stack(&self, base: bool, mut f: impl FnMut(i64, &[u32])) {
        let mut stack = Vec::new();
        for walk in self.walks_of(base) {
            let mut visitor = StackVisitor { walk: &walk, innermost: walk.innermost(), stack, f: &mut f };
            walk.visit(&walk.input.profile.sample_range(), &mut visitor);
            stack = visitor.stack;
        }
    }

    /// Works out one thing for each side, at the same time inside a rayon pool: (base, new).
    pub(crate) fn sides<T: Send>(&self, f: impl Fn(bool) -> T + Sync) -> (T, T) {
        parallel::join(|| f(true), || f(false))
    }
}
