//! The table of frames, with flat and cum of both sides.
//!
//! flat is the cost of a frame itself: the frame is the leaf of the stack. cum is the cost of the frame with all its
//! callees. A frame that recurs in a stack counts once per sample. Each frame stores the number of its last sample (a
//! stamp), so no set is needed to detect recurrence. A frame whose stamp was never set has no row.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::frames::{Innermost, InputFrames};
use super::selection::mean;
use super::walk::{SampleLocations, SampleVisitor, Walk};
use super::{Frames, Measure, Pair, Status, Summary};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::samples::{Sample, SampleRange};

/// The sort order of rows. Rows with equal cost are sorted by the second cost, then by name, file and line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Sort {
    /// By the magnitude of flat's delta, or of flat for a single profile.
    #[default]
    Flat,
    /// By the magnitude of cum's delta, or of cum for a single profile.
    Cum,
}

impl Sort {
    /// Returns the sort key of a row before its name, larger first: the magnitudes of both deltas, starting with the
    /// cost that rows are sorted by.
    #[doc(hidden)]
    pub fn size(self, flat: Pair, cum: Pair) -> [u64; 2] {
        let (first, second) = if self == Sort::Flat { (flat, cum) } else { (cum, flat) };
        [first, second].map(|pair| pair.delta().unsigned_abs())
    }
}

/// A frame with its costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopRow {
    /// The index in [`Top::frames`].
    pub frame: u32,
    /// The cost of the frame itself.
    pub flat: Pair,
    /// The cost of the frame with all its callees.
    pub cum: Pair,
    /// Whether both sides have the frame, and whether its costs differ.
    pub status: Status,
}

impl TopRow {
    /// A row with zero costs.
    pub(super) const EMPTY: TopRow = {
        let zero = Pair { base: 0, new: 0 };
        TopRow { frame: 0, flat: zero, cum: zero, status: Status::Same }
    };

    /// Returns true if the row fell: if its flat fell, or if its cum fell and its flat stayed the same.
    pub(super) fn is_negative(&self) -> bool {
        let flat = self.flat.delta();
        flat < 0 || flat == 0 && self.cum.delta() < 0
    }
}

/// The statistics of a row over runs, for the cost in the table's sort order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chance {
    /// The standard deviation of the base's runs, in the unit of the values, or `None` with a single run.
    pub base_sd: Option<f64>,
    /// The standard deviation of the new side's runs, in the unit of the values, or `None` with a single run.
    pub new_sd: Option<f64>,
    /// The probability that runs of equal builds differ at least by this change (p-value). `None` if there are too few
    /// events for a test, if the number of samples is unknown and a side has only one run, and for frames that are
    /// excluded.
    pub p: Option<f64>,
    /// The false discovery rate among all rows that are at least as significant (Benjamini-Hochberg). `None` without a
    /// p-value.
    pub q: Option<f64>,
    /// The reason why the frame is excluded from tests; `None` if it is not excluded.
    pub left_out: Option<LeftOut>,
}

/// The reason why a frame is excluded from per-frame tests: its presence in a profile is itself random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LeftOut {
    /// The profiler itself adds the frame. In reality, its caller was running.
    Profiling,
    /// A profile may show this frame or the function that it is inlined into.
    Inlining,
}

impl LeftOut {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::Profiling => "profiling",
            LeftOut::Inlining => "inlining",
        }
    }
}

/// The statistics of the total over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TotalChance {
    /// The standard deviation of the base's runs, in the unit of the values, or `None` with a single run.
    pub base_sd: Option<f64>,
    /// The standard deviation of the new side's runs, in the unit of the values, or `None` with a single run.
    pub new_sd: Option<f64>,
    /// The probability that runs of equal builds differ at least by this change (p-value). `None` if there is one run
    /// per side and the number of samples is unknown.
    pub p: Option<f64>,
    /// The p-value from the ranks of the totals (Mann-Whitney, as in benchstat), or `None` with one run on a side.
    pub rank_p: Option<f64>,
}

/// The significance level: the maximum false discovery rate of significant rows, and the maximum p-value of a
/// significant total.
pub const SIGNIFICANT: f64 = 0.05;

/// The table of frames.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Top {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The frames that the rows refer to.
    pub frames: Arc<Frames>,
    /// The rows, sorted by |delta| of one cost (flat or cum) descending, then of the second cost, then by name, file
    /// and line.
    pub rows: Vec<TopRow>,
    /// The number of rows before small rows were hidden. It does not include the rows that the query's `drop_negative`
    /// removes.
    pub rows_total: usize,
    /// The sort order of the rows.
    pub sort: Sort,
    /// The statistics of each frame, by frame index. `None` unless the table comes from [`Measure::top_of_runs`].
    pub chances: Option<Arc<[Chance]>>,
}

/// The cum of a frame on one side. It takes 16 bytes, so that stamp and sum share a cache line.
#[derive(Clone, Copy, Default)]
struct Cum {
    /// The number of the last sample with the frame, counted from 1. 0 if no sample has it.
    stamp: u32,
    sum: i64,
}

/// The sums of one profile. Only frames of this profile are stored, so that many profiles with different frames take no
/// more memory than a single profile with all frames.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProfileSums {
    /// True if the profile belongs to the base.
    pub is_base: bool,
    /// The sum of the magnitudes of its values, before filters.
    pub total: i64,
    /// The (flat, cum) by frame of the measure.
    frames: hashbrown::HashMap<u32, (i64, i64), FastState>,
}

impl ProfileSums {
    /// Returns a frame's flat and cum, 0 if the profile does not contain the frame.
    pub fn sums(&self, frame: u32) -> (i64, i64) {
        self.frames.get(&frame).copied().unwrap_or_default()
    }
}

/// The sums over an input or over a part of its samples, by the input's own frame indexes.
struct FrameSums {
    flat: Vec<i64>,
    cum: Vec<Cum>,
}

impl Measure {
    /// Computes the table of frames.
    pub fn top(&self, sort: Sort) -> Top {
        let mut rows = self.rows();
        if let Some(counts) = self.counts() {
            let mut count_of = vec![(0, 0); self.frames().len()];
            counts.rows().iter().for_each(|row| count_of[row.frame as usize] = (row.flat.new, row.cum.new));
            for row in &mut rows {
                let (flat, cum) = count_of[row.frame as usize];
                (row.flat.new, row.cum.new) = (mean(row.flat.new, flat), mean(row.cum.new, cum));
            }
        }
        if self.summary().query.drop_negative {
            rows.retain(|row| !row.is_negative());
        }
        let (summary, frames, rows_total) = (self.summary().clone(), self.frames().clone(), rows.len());
        let cost = |row: &TopRow| if sort == Sort::Flat { row.flat } else { row.cum };
        rows.retain(|row| !summary.query.hides(cost(row), summary.total));
        let mut top = Top { summary, frames, rows, rows_total, sort, chances: None };
        top.sort(sort);
        top
    }

    /// Returns the sums of each frame, in no particular order.
    fn rows(&self) -> Vec<TopRow> {
        let (mut rows, present) = match self.tree() {
            Some(tree) => tree.frame_sums(self.sample_type, self.frames().len()),
            None => self.walked_sums(),
        };
        for (i, (row, (in_base, in_new))) in rows.iter_mut().zip(&present).enumerate() {
            row.frame = i as u32;
            (row.flat, row.cum) = (self.scales.apply(row.flat), self.scales.apply(row.cum));
            row.status = Status::new(*in_base, *in_new, row.flat.delta() == 0 && row.cum.delta() == 0);
        }
        let mut i = 0;
        rows.retain(|_| {
            i += 1;
            present[i - 1] != (false, false)
        });
        rows
    }

    /// Computes the exact sums of each frame and the sides that have it, with a pass over the samples.
    fn walked_sums(&self) -> (Vec<TopRow>, Vec<(bool, bool)>) {
        let parts: Vec<(Walk<'_>, SampleRange)> =
            self.walks().flat_map(|walk| walk.ranges().into_iter().map(move |range| (walk.clone(), range))).collect();
        let sums = parallel::map(&parts, |(walk, range)| FrameSums::from_walk(walk, range));
        let n = self.frames().len();
        let mut rows = vec![TopRow::EMPTY; n];
        let mut present = vec![(false, false); n];
        for ((walk, _), sums) in parts.iter().zip(&sums) {
            for (index, &common) in walk.translation.iter().enumerate() {
                if sums.cum[index].stamp == 0 {
                    continue;
                }
                let (row, present) = (&mut rows[common as usize], &mut present[common as usize]);
                let (flat, cum) = (sums.flat[index], sums.cum[index].sum);
                if walk.input.base {
                    present.0 = true;
                    row.flat.base += flat;
                    row.cum.base += cum;
                } else {
                    present.1 = true;
                    row.flat.new += flat;
                    row.cum.new += cum;
                }
            }
        }
        (rows, present)
    }

    /// Returns the sums of each profile separately: the side, the total of its values, and its frames.
    pub fn profile_sums(&self) -> Vec<ProfileSums> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let sums = FrameSums::from_walk(walk, &walk.input.profile.sample_range());
            let frames = walk.translation.iter().zip(sums.flat.iter().zip(&sums.cum));
            let mut profile_sums =
                ProfileSums { is_base: walk.input.base, total: walk.total(), frames: Default::default() };
            for (&common, (&flat, cum)) in frames.filter(|(_, (flat, cum))| (**flat, cum.sum) != (0, 0)) {
                let sums = profile_sums.frames.entry(common).or_default();
                *sums = (sums.0 + flat, sums.1 + cum.sum);
            }
            profile_sums
        })
    }

    /// Returns for each profile the sum of the magnitudes of values that pass the filters.
    #[cfg(feature = "check")]
    pub(crate) fn profile_totals_kept(&self) -> Vec<i64> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let mut total = 0;
            // If the sums over all samples fit, the sums over a part of them fit too.
            walk.for_each_sample(|value, _| total += value.saturating_abs());
            total
        })
    }

    /// Returns for each profile the (flat, cum) of several frames taken as one. A sample with several of these frames
    /// counts once in cum. `chosen` has an element for each frame.
    #[cfg(feature = "check")]
    pub(crate) fn profile_sums_of_any(&self, chosen: &[bool]) -> Vec<(i64, i64)> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let is_chosen = |&f: &u32| chosen[walk.translation[f as usize] as usize];
            let (mut flat, mut cum) = (0, 0);
            walk.for_each(|value, locations, _| {
                let leaf = locations.first().and_then(|&l| walk.frames.expand(l).first());
                flat += if leaf.is_some_and(is_chosen) { value } else { 0 };
                cum += if locations.iter().any(|&l| walk.frames.expand(l).iter().any(is_chosen)) { value } else { 0 };
            });
            (flat, cum)
        })
    }

    /// Returns for each profile the sums of samples by groups of frames. `bits` has the groups of each frame, as bits:
    /// at most [`MAX_GROUPS`] groups, and [`COMMON_GROUP`].
    #[cfg(feature = "check")]
    pub(crate) fn profile_sums_of_groups(&self, bits: &[u64], n_groups: usize) -> Vec<GroupSums> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let bits_of_frame = |has: u64, &frame: &u32| has | bits[walk.translation[frame as usize] as usize];
            let n_locations = walk.frames.innermost().len() as u32;
            let bits_of_location: Vec<u64> =
                (0..n_locations).map(|l| walk.frames.expand(l).iter().fold(0, bits_of_frame)).collect();
            let mut sums = GroupSums { common: 0, groups: vec![(0, 0); n_groups] };
            walk.for_each_union(&bits_of_location, |value, has| {
                let is_common = has & COMMON_GROUP != 0;
                sums.common += if is_common { value } else { 0 };
                let mut groups = has & !COMMON_GROUP;
                while groups != 0 {
                    let (all, common) = &mut sums.groups[groups.trailing_zeros() as usize];
                    *all += value;
                    *common += if is_common { value } else { 0 };
                    groups &= groups - 1;
                }
            });
            sums
        })
    }
}

/// The maximum number of groups of [`Measure::profile_sums_of_groups`].
#[cfg(feature = "check")]
pub(crate) const MAX_GROUPS: usize = 63;

/// The bit of the frames that each group is compared with.
#[cfg(feature = "check")]
pub(crate) const COMMON_GROUP: u64 = 1 << MAX_GROUPS;

/// The sums of one profile by groups of frames. A sample with several frames of a group counts once.
#[cfg(feature = "check")]
pub(crate) struct GroupSums {
    /// The samples with a frame of [`COMMON_GROUP`].
    pub common: i64,
    /// By group: the samples with a frame of the group, and those that also have a frame of [`COMMON_GROUP`].
    pub groups: Vec<(i64, i64)>,
}

impl FrameSums {
    fn from_walk(walk: &Walk<'_>, range: &SampleRange) -> FrameSums {
        let frames = walk.frames;
        let sums = FrameSums { flat: vec![0; frames.len()], cum: vec![Cum::default(); frames.len()] };
        let (innermost, second) = (frames.innermost(), frames.second());
        let mut summing = Summing { sums, frames, innermost, second, stamp: 0 };
        walk.visit(range, &mut summing);
        summing.sums
    }

    /// Adds a sample's value to a frame's cum, without a branch.
    #[inline(always)]
    fn add(&mut self, stamp: u32, value: i64, frame: u32) {
        let cum = &mut self.cum[frame as usize];
        cum.sum += std::hint::select_unpredictable(cum.stamp == stamp, 0, value);
        cum.stamp = stamp;
    }
}

/// Sums up samples.
struct Summing<'m> {
    sums: FrameSums,
    frames: &'m InputFrames,
    innermost: Vec<Innermost>,
    second: Vec<Innermost>,
    /// The number of the sample, counted from 1.
    stamp: u32,
}

impl<'m> SampleVisitor<'m> for Summing<'_> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        self.stamp += 1;
        if let Some(leaf) = locations.leaf() {
            self.sums.flat[self.innermost[leaf as usize].frame() as usize] += value;
        }
        self.add_frames(value, locations);
    }
}

impl Summing<'_> {
    /// Adds a sample's value to the frames of all its locations. This is the innermost loop. It is a separate function,
    /// and the rare case is a separate call, so that all its variables stay in registers.
    #[inline(never)]
    fn add_frames(&mut self, value: i64, locations: impl SampleLocations) {
        // Branch prediction fails for locations with several frames, so they are collected without a branch.
        let mut inlined = [0; 64];
        let mut n_inlined = 0;
        locations.for_each(|l| {
            let first = self.innermost[l as usize];
            self.sums.add(self.stamp, value, first.frame());
            inlined[n_inlined % 64] = l;
            n_inlined += usize::from(first.has_more());
            if n_inlined == 64 {
                self.add_many_callers(value, &inlined);
                n_inlined = 0;
            }
        });
        self.add_callers(value, &inlined[..n_inlined]);
    }

    /// Calls [`Summing::add_callers`] from within the innermost loop. It is not inlined, because it is rarely needed.
    #[cold]
    #[inline(never)]
    fn add_many_callers(&mut self, value: i64, locations: &[u32; 64]) {
        self.add_callers(value, locations);
    }

    /// Adds the value to the frames that the innermost frames of these locations are inlined into.
    #[inline(never)]
    fn add_callers(&mut self, value: i64, locations: &[u32]) {
        for &l in locations {
            let second = self.second[l as usize];
            self.sums.add(self.stamp, value, second.frame());
            if second.has_more() {
                self.frames.expand(l)[2..].iter().for_each(|&f| self.sums.add(self.stamp, value, f));
            }
        }
    }
}

impl Top {
    /// Keeps the significant rows. Keeps no rows if the table has no statistics.
    pub fn retain_significant(&mut self) {
        let chances = self.chances.clone().unwrap_or_default();
        let q = |row: &TopRow| chances.get(row.frame as usize).and_then(|chance| chance.q);
        self.rows.retain(|row| q(row).is_some_and(|q| q <= SIGNIFICANT));
    }

    /// Sorts the rows.
    pub fn sort(&mut self, sort: Sort) {
        self.sort = sort;
        // Rows are wide, so this sorts keys instead. It computes the size of each row once. The smallest key is the
        // largest size.
        let key = |row: &TopRow| {
            let [first, second] = sort.size(row.flat, row.cum);
            !(u128::from(first) << 64 | u128::from(second))
        };
        let mut keys: Vec<(u128, u32)> = self.rows.iter().map(key).zip(0..).collect();
        keys.sort_unstable_by_key(|&(key, _)| key);
        // Most rows differ in size. The names of the remaining rows are looked up once per row, and not in each
        // comparison.
        for tied in keys.chunk_by_mut(|a, b| a.0 == b.0).filter(|tied| tied.len() > 1) {
            let name = |row: u32| self.frames.order(self.rows[row as usize].frame);
            let mut named: Vec<_> = tied.iter().map(|&(_, row)| (name(row), row)).collect();
            parallel::sort_unstable_by(&mut named, |a, b| a.0.cmp(&b.0));
            tied.iter_mut().zip(named).for_each(|((_, row), (_, named))| *row = named);
        }
        self.rows = keys.iter().map(|&(_, row)| self.rows[row as usize]).collect();
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use pprofdiff_profile::builder::ProfileBuilder;

    use super::{Sort, TopRow};
    use crate::{Diff, Query, Result};

    #[test]
    fn sorting_keys_equals_sorting_rows_by_sizes_and_names() -> Result<()> {
        let mut seed = 1u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        let mut profile = |name: &str| {
            let mut builder = ProfileBuilder::new();
            builder.sample_type("cpu", "nanoseconds");
            let mut frames = Vec::new();
            for i in 0..300 {
                // The order of the names differs from the order of the frames.
                let function = builder.function(format!("f{}", i * 7919 % 300), "", 0);
                let line = builder.line(function, 0);
                frames.push(builder.location(None, 0, &[line])?);
            }
            for _ in 0..2000 {
                let stack = [frames[next(300) as usize], frames[next(20) as usize]];
                // Many rows have equal sizes, and some sums are negative.
                builder.sample(&stack, &[i64::from(next(4)) - 1], &[])?;
            }
            builder.build(name)
        };
        let measure = Diff::between(profile("base")?, profile("new")?)?.measure(&Query::default())?;
        for sort in [Sort::Flat, Sort::Cum] {
            let top = measure.top(sort);
            let mut expected: Vec<TopRow> = top.rows.clone();
            let size = |row: &TopRow| Reverse(sort.size(row.flat, row.cum));
            expected.sort_by(|a, b| {
                size(a).cmp(&size(b)).then_with(|| top.frames.name(a.frame).cmp(&top.frames.name(b.frame)))
            });
            assert!(top.rows.windows(2).filter(|rows| size(&rows[0]) == size(&rows[1])).count() > 50);
            assert_eq!(top.rows, expected);
        }
        Ok(())
    }
}
