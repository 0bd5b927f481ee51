//! The table of frames: flat and cum of both sides.
//!
//! flat is what a frame cost itself (it was the leaf of the stack), cum what it cost with all that it
//! called; a frame that recurs in one stack counts once. "Once per sample" is a stamp per frame, the
//! sample's number, so no set is kept or cleared. A frame whose stamp was never set has no row.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::frames::{Innermost, InputFrames};
use super::selection::mean;
use super::walk::{SampleLocations, SampleVisitor, Walk};
use super::{Frames, Measure, Pair, Status, Summary};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::FastState;
use pprofdiff_profile::samples::{Sample, SampleRange};

/// What rows are ordered by. Rows that are equal in it are ordered by the other of the two, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Sort {
    /// By the magnitude of flat's delta (of flat, for a single profile).
    #[default]
    Flat,
    /// By that of cum.
    Cum,
}

impl Sort {
    /// What rows are ordered by before their names, the largest first: the magnitudes of both deltas, the column that
    /// is sorted by first.
    pub(crate) fn size(self, flat: Pair, cum: Pair) -> [u64; 2] {
        let (by, other) = if self == Sort::Flat { (flat, cum) } else { (cum, flat) };
        [by, other].map(|pair| pair.delta().unsigned_abs())
    }
}

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopRow {
    /// Index in [`Top::frames`].
    pub frame: u32,
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it called.
    pub cum: Pair,
    /// What happened to it.
    pub status: Status,
}

impl TopRow {
    /// Of a frame of which nothing is known yet.
    pub(super) const EMPTY: TopRow = {
        let nothing = Pair { base: 0, new: 0 };
        TopRow { frame: 0, flat: nothing, cum: nothing, status: Status::Same }
    };

    /// True if it fell: its flat, or its cum while its flat stayed.
    pub(super) fn is_negative(&self) -> bool {
        let flat = self.flat.delta();
        flat < 0 || flat == 0 && self.cum.delta() < 0
    }
}

/// What runs say of a row, by the cost that rows are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chance {
    /// The standard deviation of the base's runs, in the unit of the values; `None` of one run.
    pub base_sd: Option<f64>,
    /// That of the new side's.
    pub new_sd: Option<f64>,
    /// How probable it is that runs of equal builds differ as much or more; `None` where there are too few events to say,
    /// and of frames that are left out.
    pub p: Option<f64>,
    /// The part of false ones among all rows that differ so clearly or more (Benjamini-Hochberg).
    pub q: Option<f64>,
    /// Why the frame is left out, if it is.
    pub left_out: Option<LeftOut>,
}

/// Why nothing is asked of a frame that is asked of each: it is chance whether a profile has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LeftOut {
    /// Profiling itself puts it there; its caller was running.
    Profiling,
    /// What it is inlined into is shown, or it itself.
    Inlining,
}

impl LeftOut {
    /// The word for it in tables.
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::Profiling => "profiling",
            LeftOut::Inlining => "inlining",
        }
    }
}

/// What runs say of the total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TotalChance {
    /// The standard deviation of the base's runs, in the unit of the values; `None` of one run.
    pub base_sd: Option<f64>,
    /// That of the new side's.
    pub new_sd: Option<f64>,
    /// How probable it is that runs of equal builds differ as much or more.
    /// `None` with one run a side of an unknown number of samples.
    pub p: Option<f64>,
    /// The same by the ranks of the totals alone (Mann-Whitney, as benchstat); `None` with one run on a side.
    pub rank_p: Option<f64>,
}

/// Rows are told from noise up to this part of false ones among them, and the total up to this p-value.
pub const SIGNIFICANT: f64 = 0.05;

/// The table of frames.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Top {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The frames that rows refer to.
    pub frames: Arc<Frames>,
    /// Ordered by |delta| of flat or of cum descending, then by that of the other, then name, file, line.
    pub rows: Vec<TopRow>,
    /// Number of rows before any were left out.
    pub rows_total: usize,
    /// What the rows are ordered by.
    pub sort: Sort,
    /// By frame, what runs say of it, of tables that know ([`Measure::top_of_runs`]).
    pub chances: Option<Arc<[Chance]>>,
}

/// One side's sums of one frame. 16 bytes, so that stamp and sum share a cache line.
#[derive(Clone, Copy, Default)]
struct Cum {
    /// Number of the last sample that had the frame, from 1; 0 if none had.
    stamp: u32,
    sum: i64,
}

/// One profile's sums, only of the frames that it has, so that many profiles with different frames take no more than
/// one with all.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProfileSums {
    /// Of the base's side?
    pub is_base: bool,
    /// The sum of the magnitudes of its values, before filters.
    pub total: i64,
    /// By the measure's frames: flat and cum.
    frames: hashbrown::HashMap<u32, (i64, i64), FastState>,
}

impl ProfileSums {
    /// A frame's flat and cum; 0 if the profile does not have it.
    pub fn sums(&self, frame: u32) -> (i64, i64) {
        self.frames.get(&frame).copied().unwrap_or_default()
    }
}

/// The sums of an input, or of a part of its samples, by its own frame indexes.
struct Sums {
    flat: Vec<i64>,
    cum: Vec<Cum>,
}

impl Measure {
    /// The table of frames.
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

    /// The sums of each frame, in no order.
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

    /// The exact sums of each frame, and which sides have it, of a pass over the samples.
    fn walked_sums(&self) -> (Vec<TopRow>, Vec<(bool, bool)>) {
        let parts: Vec<(Walk<'_>, SampleRange)> =
            self.walks().flat_map(|walk| walk.ranges().into_iter().map(move |range| (walk.clone(), range))).collect();
        let sums = parallel::map(&parts, |(walk, range)| Sums::from_walk(walk, range));
        let n = self.frames().len();
        let mut rows = vec![TopRow::EMPTY; n];
        let mut present = vec![(false, false); n];
        for ((walk, _), sums) in parts.iter().zip(&sums) {
            for (own, &common) in walk.translation.iter().enumerate() {
                if sums.cum[own].stamp == 0 {
                    continue;
                }
                let (row, present) = (&mut rows[common as usize], &mut present[common as usize]);
                let (flat, cum) = (sums.flat[own], sums.cum[own].sum);
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

    /// The sums of each profile by itself: whether it is of the base, the total of its values, and its frames.
    pub fn profile_sums(&self) -> Vec<ProfileSums> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let sums = Sums::from_walk(walk, &walk.input.profile.sample_range());
            let own = walk.translation.iter().zip(sums.flat.iter().zip(&sums.cum));
            let mut of_profile =
                ProfileSums { is_base: walk.input.base, total: walk.total(), frames: Default::default() };
            for (&common, (&flat, cum)) in own.filter(|(_, (flat, cum))| (**flat, cum.sum) != (0, 0)) {
                let sums = of_profile.frames.entry(common).or_default();
                *sums = (sums.0 + flat, sums.1 + cum.sum);
            }
            of_profile
        })
    }

    /// The sum of the magnitudes of what filters leave, of each profile by itself.
    #[cfg(feature = "check")]
    pub(crate) fn profile_totals_kept(&self) -> Vec<i64> {
        parallel::map(&self.walks().collect::<Vec<_>>(), |walk| {
            let mut total = 0;
            // A part of the samples can't overflow where all of them do not.
            walk.for_each_sample(|value, _| total += value.saturating_abs());
            total
        })
    }

    /// (flat, cum) of several frames taken as one, of each profile by itself: samples that have any of them
    /// count once in cum. `chosen` has a place for each frame.
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
}

impl Sums {
    fn from_walk(walk: &Walk<'_>, range: &SampleRange) -> Sums {
        let frames = walk.frames;
        let sums = Sums { flat: vec![0; frames.len()], cum: vec![Cum::default(); frames.len()] };
        let (innermost, second) = (frames.innermost(), frames.second());
        let mut summing = Summing { sums, frames, innermost, second, stamp: 0 };
        walk.visit(range, &mut summing);
        summing.sums
    }

    /// Adds a sample's value to one of its frames, without a branch.
    #[inline(always)]
    fn add(&mut self, stamp: u32, value: i64, frame: u32) {
        let cum = &mut self.cum[frame as usize];
        cum.sum += std::hint::select_unpredictable(cum.stamp == stamp, 0, value);
        cum.stamp = stamp;
    }
}

/// Adds samples up.
struct Summing<'m> {
    sums: Sums,
    frames: &'m InputFrames,
    innermost: Vec<Innermost>,
    second: Vec<Innermost>,
    /// Number of the sample, from 1.
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
    /// Adds a sample's value to the frames of all its locations: the innermost loop. It is a function by itself, and
    /// calls another for what is rare, so that all it needs stays in registers.
    #[inline(never)]
    fn add_frames(&mut self, value: i64, locations: impl SampleLocations) {
        // Which locations are more than one frame can't be predicted, so they are put aside without a branch.
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

    /// As [`Summing::add_callers`], in the midst of the innermost loop, which does not make room for it.
    #[cold]
    #[inline(never)]
    fn add_many_callers(&mut self, value: i64, locations: &[u32; 64]) {
        self.add_callers(value, locations);
    }

    /// Adds it to those that the innermost frames of these locations were inlined into.
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
    /// Leaves the rows that more than chance explains; none of a table that does not know.
    pub fn retain_significant(&mut self) {
        let chances = self.chances.clone().unwrap_or_default();
        let q = |row: &TopRow| chances.get(row.frame as usize).and_then(|chance| chance.q);
        self.rows.retain(|row| q(row).is_some_and(|q| q <= SIGNIFICANT));
    }

    /// Reorders the rows.
    pub fn sort(&mut self, sort: Sort) {
        self.sort = sort;
        let size = |row: &TopRow| sort.size(row.flat, row.cum);
        self.rows.sort_unstable_by_key(|row| Reverse(size(row)));
        // Most rows differ in size; the names of the others are looked up once each, and not at each comparison.
        for tied in self.rows.chunk_by_mut(|a, b| size(a) == size(b)).filter(|tied| tied.len() > 1) {
            let mut named: Vec<_> = tied.iter().map(|row| (self.frames.order(row.frame), *row)).collect();
            parallel::sort_unstable_by(&mut named, |a, b| a.0.cmp(&b.0));
            tied.iter_mut().zip(named).for_each(|(row, (_, named))| *row = named);
        }
    }
}
