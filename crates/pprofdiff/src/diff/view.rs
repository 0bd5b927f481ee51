//! One question to a diff: sample type, granularity, filters, normalization. What all its tables share.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::filter::{Compiled, Plan};
use super::frames::{Frames, MemberFrames, State};
use super::identity::{self, Granularity};
use super::normalize::{Normalize, Scale};
use super::tags::number_units;
use super::{Diff, Filters, Member, Pair};
use crate::error::Result;
use crate::parallel;
use crate::profile::{Profile, Sample, Total};

/// What to look at, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// The sample type's name; the default one if not given.
    pub sample_type: Option<String>,
    /// What a row stands for.
    pub granularity: Granularity,
    /// Count inlined functions as part of the one they were inlined into.
    pub no_inlines: bool,
    /// Prefixes to cut off the paths of files, the first that fits. Given any, versions of folders (`y@v1.2.3`) are cut
    /// as well, so that two checkouts compare; without, paths are pprof's. Where no files are shown it changes nothing.
    pub trim_path: Vec<String>,
    /// Which samples and frames take part.
    pub filters: Filters,
    /// How the new side is scaled.
    pub normalize: Normalize,
}

/// One side of a view, for headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The profiles' names.
    pub paths: Vec<String>,
    /// Number of samples as written.
    pub samples: usize,
    /// Sum of the profiles' durations.
    pub duration_nanos: i64,
    /// The earliest time; 0 if none tells.
    pub time_nanos: i64,
}

/// What a view is of: everything a table needs besides its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The base; `None` if this is a single profile.
    pub base: Option<Side>,
    /// The new side, or the single profile.
    pub new: Side,
    /// The sample type's name.
    pub sample_type: String,
    /// The unit of all values.
    pub unit: String,
    /// What a row stands for.
    pub granularity: Granularity,
    /// True if inlined functions are counted as part of their caller.
    pub no_inlines: bool,
    /// What was cut off the paths of files.
    pub trim_path: Vec<String>,
    /// The filters that are set, by pprof's names.
    pub filters: Vec<(String, String)>,
    /// How the new side was scaled.
    pub normalize: Normalize,
    /// What the new side's values were multiplied by.
    pub factor: f64,
    /// What a user should know before trusting the rows.
    pub warnings: Vec<String>,
    /// Sums of the magnitudes of all values, before filters; percentages are of the base's. The new
    /// side's is scaled.
    pub total: Pair,
}

/// One member of a view, ready to be walked.
#[derive(Clone)]
pub(crate) struct Walk {
    pub member: Member,
    pub plan: Arc<Plan>,
    column: usize,
    times: i64,
    /// Index in [`Frames::member`].
    pub index: usize,
}

impl Walk {
    /// True if nothing is filtered, so that samples keep all their locations and [`Walk::each_whole`] will do.
    pub(crate) fn is_whole(&self) -> bool {
        self.plan.is_trivial() && self.member.part.is_none()
    }

    /// The parts of the samples that can be worked on at the same time: of a walk that is not whole, all.
    pub(crate) fn parts(&self) -> Vec<Range<usize>> {
        let profile = &self.member.profile;
        if self.is_whole() { profile.parts_of_samples() } else { std::iter::once(profile.all_samples()).collect() }
    }

    /// The fast form of [`Walk::each`], for a walk that is whole: calls `f` with each sample of a part that counts, and
    /// its value.
    #[inline(always)]
    pub(crate) fn each_whole<'s>(&'s self, part: Range<usize>, mut f: impl FnMut(i64, Sample<'s>)) {
        self.member.profile.each_sample(part, |sample| {
            let value = sample.value(self.column);
            if value != 0 {
                f(value * self.times, sample);
            }
        });
    }

    /// Calls `f` with each sample that counts: its value and its locations, leaf first.
    pub(crate) fn each<'s>(&'s self, mut f: impl FnMut(i64, &[u32], Sample<'s>)) {
        let mut locations = Vec::new();
        for (i, sample) in self.member.profile.samples().enumerate() {
            let value = sample.value(self.column);
            if value == 0 || self.member.part.is_some_and(|part| part != sample.is_base()) {
                continue;
            }
            if self.plan.apply(i, &sample, &mut locations) {
                f(value * self.times, &locations, sample);
            }
        }
    }
}

/// A diff, or a single profile, looked at in one way.
#[derive(Clone)]
pub struct View {
    pub(crate) walks: Vec<Walk>,
    pub(crate) frames: Arc<Frames>,
    /// For each member: from its own frame indexes to the common ones.
    pub(crate) translations: Arc<[Vec<u32>]>,
    pub(crate) scale: Scale,
    summary: Arc<Summary>,
}

/// A question whose sample type is still open.
pub(crate) struct Look<'d> {
    diff: &'d Diff,
    query: &'d Query,
    plans: Vec<Arc<Plan>>,
    frames: Arc<Frames>,
    translations: Arc<[Vec<u32>]>,
    base: Option<Side>,
    new: Side,
    warnings: Vec<String>,
}

impl Look<'_> {
    /// The view of a sample type by its number.
    ///
    /// # Errors
    /// A normalization by zero or to values that no longer fit.
    pub(crate) fn at(&self, sample_type: usize) -> Result<View> {
        let (diff, query) = (self.diff, self.query);
        let (base, new) = (diff.side_total(true, sample_type), diff.side_total(false, sample_type));
        let scale = diff.scale(query.normalize, base, new)?;
        let t = &diff.types[sample_type];
        let walks = diff.members.iter().zip(&self.plans).enumerate().map(|(index, (m, plan))| {
            let (column, times) = t.columns[m.index];
            Walk { member: m.clone(), plan: plan.clone(), column, times: times * m.sign(), index }
        });
        let summary = Summary {
            base: self.base.clone(),
            new: self.new.clone(),
            sample_type: t.kind.clone(),
            unit: t.unit.clone(),
            granularity: query.granularity,
            no_inlines: query.no_inlines,
            trim_path: query.trim_path.clone(),
            filters: query.filters.set().into_iter().map(|(name, v)| (name.to_owned(), v.to_owned())).collect(),
            normalize: query.normalize,
            factor: scale.factor(),
            warnings: self.warnings.clone(),
            total: Pair { base: base.magnitude, new: scale.apply(new.magnitude) },
        };
        Ok(View {
            walks: walks.collect(),
            frames: self.frames.clone(),
            translations: self.translations.clone(),
            scale,
            summary: Arc::new(summary),
        })
    }
}

impl Diff {
    /// Looks at the diff in one way. Interns the frames; the tables are made when they are asked for.
    ///
    /// # Errors
    /// An unknown sample type, a bad regular expression, a normalization by zero or to values that no
    /// longer fit. Nothing of the input can be wrong at this point.
    pub fn view(&self, query: &Query) -> Result<View> {
        self.view_of(query, self.find_type(query.sample_type.as_deref())?)
    }

    /// [`Diff::view`] of a sample type by its number, whatever the query names.
    pub(crate) fn view_of(&self, query: &Query, sample_type: usize) -> Result<View> {
        self.look(query)?.at(sample_type)
    }

    /// What the views of all sample types share: which frames and samples there are.
    pub(crate) fn look<'d>(&'d self, query: &'d Query) -> Result<Look<'d>> {
        let filters = Compiled::new(&query.filters, query.no_inlines)?;
        let mut warnings: Vec<String> = Vec::new();
        for m in self.members.iter().filter(|m| m.part != Some(true)) {
            warnings.extend(m.profile.warnings());
        }
        let plans = self.plans(query, &filters, &mut warnings)?;
        let profiles: Vec<&Profile> = self.members.iter().map(|m| &*m.profile).collect();
        let shifts = match query.granularity {
            Granularity::Addresses => identity::address_shifts(&profiles),
            _ => vec![Vec::new(); profiles.len()],
        };
        let state = State::default();
        let inputs: Vec<_> = self.members.iter().zip(&plans).zip(&shifts).collect();
        let members =
            parallel::map(&inputs, |((m, plan), shifts)| MemberFrames::new(&m.profile, plan, query, shifts, &state));
        let (frames, translations) = Frames::merge(members, query.granularity, &state);
        warnings.extend(frames.warning());
        if query.sample_type.is_none() {
            warnings.extend(self.where_values_are());
        }
        Ok(Look {
            diff: self,
            query,
            plans: plans.into_iter().map(Arc::new).collect(),
            frames: Arc::new(frames),
            translations: translations.into(),
            base: self.is_two_sided().then(|| self.side(true)),
            new: self.side(false),
            warnings,
        })
    }

    /// What the new side's values of a sample type are scaled by, given the sums of both sides.
    pub(crate) fn scale(&self, mode: Normalize, base: Total, new: Total) -> Result<Scale> {
        if !self.is_two_sided() && mode != Normalize::None {
            return Err(crate::Error::query("normalize scales one side to the other; there is only one profile"));
        }
        let durations = (self.side_duration(true), self.side_duration(false));
        let scale = Scale::new(mode, (base.sum, new.sum), durations)?;
        scale.check(base.magnitude, new.magnitude)?;
        Ok(scale)
    }

    /// The filters worked out for each member; says which of them matched nothing anywhere.
    pub(crate) fn plans(&self, query: &Query, filters: &Compiled, warnings: &mut Vec<String>) -> Result<Vec<Plan>> {
        let by_range = query.filters.set().iter().any(|(name, _)| matches!(*name, "tagfocus" | "tagignore"));
        let units = if by_range { number_units(self.members.iter().map(|m| &*m.profile)) } else { Default::default() };
        let mut plans = Vec::with_capacity(self.members.len());
        let mut matched: Vec<(&str, bool)> = Vec::new();
        for m in self.members.iter() {
            let mut own_warnings = Vec::new();
            let (plan, hits) = Plan::new(&m.profile, filters, &units, &mut own_warnings)?;
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

    fn side(&self, base: bool) -> Side {
        let members: Vec<&Member> = self.members.iter().filter(|m| m.base == base).collect();
        let samples = |m: &&Member| match m.part {
            None => m.profile.n_samples(),
            Some(part) => m.profile.samples().filter(|s| s.is_base() == part).count(),
        };
        Side {
            paths: members.iter().map(|m| m.profile.name().to_owned()).collect(),
            samples: members.iter().map(samples).sum(),
            duration_nanos: self.side_duration(base),
            time_nanos: members.iter().map(|m| m.profile.time_nanos()).filter(|&t| t != 0).min().unwrap_or(0),
        }
    }
}

impl View {
    /// What the view is of.
    pub fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    /// The frames that rows refer to.
    pub fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    /// The profiles one by one: whether of the base, and the sum of the magnitudes of its values.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (bool, i64)> {
        self.walks.iter().map(|w| (w.member.base, w.member.total(w.column).magnitude * w.times.abs()))
    }

    /// Calls `f` with each sample that counts of one side: value, common frame indexes root first.
    pub(crate) fn each_stack(&self, base: bool, mut f: impl FnMut(i64, &[u32])) {
        let mut stack = Vec::new();
        for walk in self.walks.iter().filter(|w| w.member.base == base) {
            let frames = self.frames.member(walk.index);
            let translation = &self.translations[walk.index];
            let push = |stack: &mut Vec<u32>, l: u32| {
                stack.extend(frames.of(l).iter().map(|&f| translation[f as usize]));
            };
            let mut finish = |stack: &mut Vec<u32>, value: i64| {
                stack.reverse();
                f(value, stack);
                stack.clear();
            };
            if walk.is_whole() {
                walk.each_whole(walk.member.profile.all_samples(), |value, sample| {
                    sample.each_location(|l| push(&mut stack, l));
                    finish(&mut stack, value);
                });
            } else {
                walk.each(|value, locations, _| {
                    locations.iter().for_each(|&l| push(&mut stack, l));
                    finish(&mut stack, value);
                });
            }
        }
    }

    /// Works out one thing for each side, at the same time inside a rayon pool: (base, new).
    pub(crate) fn sides<T: Send>(&self, f: impl Fn(bool) -> T + Sync) -> (T, T) {
        parallel::join(|| f(true), || f(false))
    }
}
