//! Finds lasting changes in a history: frames whose cost differs after a build.
//!
//! ```text
//! all frames -> noise (the part that all frames share, and how far and how long builds deviate)
//! values of a frame, without it -> levels of one variance, spikes cut -> segments -> those beyond chance -> kinds
//! ```
//!
//! docs/statistics.md contains the formulas and the measurements.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use std::collections::BTreeSet;

use super::{Against, FramePoint, Ranked, Series};
use crate::statistics::lines::{Fit, LineFit, LinePoints};
use crate::statistics::noise::{Noise, OwnNoise};
use crate::statistics::segments::{
    LEAST, Sums, around, cut_spikes, degrees_of_means, leveled, price, unleveled, variances_of_means,
};
use pprofdiff::shared::statistics::counts::median;
use pprofdiff::shared::statistics::distributions::student_quantile;
use pprofdiff::shared::statistics::rank::false_discoveries;
use pprofdiff::shared::{SIGNIFICANT, by_chance};
use pprofdiff::{Pair, Sort};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::parallel;
use pprofdiff_profile::short_lists::{sort_by, sort_by_key};
use pprofdiff_profile::units;

/// The minimum number of builds in a history for detecting lasting changes: enough for two levels.
pub const FEWEST_BUILDS: usize = 2 * LEAST;
/// The minimum number of events of a frame over all builds. Rarer frames are not searched.
const MIN_EVENTS: f64 = 60.0;
/// The tolerance for a return to the previous level, as a share of the change.
const MAX_RETURN_DISTANCE: f64 = 0.25;
/// The maximum increase of the squared error for builds that may also have caused the change, in units of the variance
/// of a build.
const MAX_EXTRA_SQUARES: f64 = 6.0;
/// The number of start builds for lines in the first pass.
const MAX_STARTS: usize = 64;
/// The maximum number of pairs of builds, summed over frames. The frames with the highest cost are searched first.
const MAX_WORK: usize = 1_000_000_000;
/// The maximum q-value of a change that a warning states because the rows do not show it. It is stricter than the level of
/// rows, because the warnings come from a second search of the same history, which adds false changes.
const MAX_Q_OF_WARNING: f64 = 0.01;
/// The minimum part of a change of the total that rows explain. Below it, a warning states the change.
const MIN_PART_OF_TOTAL: f64 = 0.5;
/// If a callee has at least this part of the largest change by cum, the warning names the callee instead of its caller.
const MIN_PART_OF_CALLERS: f64 = 0.8;
/// The maximum number of events in a build. It bounds the value of an event from below if the profiles do not tell it.
const MAX_EVENTS: f64 = 1e9;

/// The kind of a lasting change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ShiftKind {
    /// The value changed at one build, and the change remains.
    Step,
    /// The value changed at one build, and later returned to about its earlier level.
    Passed,
    /// The value changed gradually, along a line.
    Drift,
}

impl ShiftKind {
    /// Returns the kind as it is spelled in results.
    pub fn name(self) -> &'static str {
        match self {
            ShiftKind::Step => "step",
            ShiftKind::Passed => "passed",
            ShiftKind::Drift => "drift",
        }
    }
}

/// A lasting change of a frame's flat or cum. Builds are indexes in [`super::Builds::all`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Shift {
    /// The index in [`Series::frames`].
    pub frame: u32,
    /// The kind of change.
    pub kind: ShiftKind,
    /// The most likely first build with the change. For a drift, the first build with growth, or the first build of all.
    pub build: usize,
    /// The first and the last build that may have introduced the change.
    pub between: [usize; 2],
    /// For a change that passed, the first build without it. For a drift, the last build of all. `None` for a step.
    pub until: Option<usize>,
    /// The mean before and after the change. For a drift, the values of the fitted line in the first and the last build
    /// of all.
    pub value: Pair,
    /// The mean total of the builds that `value.base` averages. For a drift, it averages the builds before the growth, and
    /// at least the first build.
    pub total_before: i64,
    /// The 95 % confidence interval of the change, new minus base, in the unit of `value`. For a drift, the change is
    /// the growth of the fitted line.
    pub interval: [f64; 2],
    /// The false discovery rate among all shifts that are at least as significant (Benjamini-Hochberg).
    pub q: f64,
}

/// The result of a search for lasting changes.
#[derive(Default)]
struct FoundShifts {
    rows: Vec<Shift>,
    /// The changes of the total. Their frame does not exist, and their q is a p-value.
    totals: Vec<Shift>,
    /// The number of frames that were skipped because there are too many builds.
    left_out: usize,
    /// The number of frames that were skipped because of negative values.
    negative: usize,
}

/// The values of a frame by column, in the builds that contain it.
struct FramePoints {
    frame: u32,
    points: Vec<(usize, i64)>,
    /// The sum of the magnitudes of all values.
    cost: i128,
}

impl FramePoints {
    fn new(frame: u32, points: Vec<(usize, i64)>) -> FramePoints {
        let cost = points.iter().map(|(_, v)| i128::from(*v).abs()).sum();
        FramePoints { frame, points, cost }
    }

    /// Returns the number of events in all builds.
    fn events(&self, event: f64) -> f64 {
        self.points.iter().map(|(_, v)| (*v).max(0) as f64).sum::<f64>() / event
    }

    /// Returns the number of events in each build.
    fn counts(&self, n: usize, event: f64) -> Vec<f64> {
        let mut counts = vec![0.0; n];
        self.points.iter().for_each(|&(column, v)| counts[column] = v.max(0) as f64 / event);
        counts
    }
}

/// The values of a frame over all builds.
struct Course<'a> {
    frame: u32,
    /// The values without the noise that all frames share.
    values: Vec<f64>,
    /// The values transformed to equal variance, without spikes.
    levels: Vec<f64>,
    sums: Sums,
    /// The totals of the builds.
    totals: &'a [i64],
    /// Marks spikes, which are excluded from means.
    is_spike: Vec<bool>,
    event: f64,
    noise: &'a Noise,
    frame_noise: OwnNoise,
}

impl Series {
    /// Returns true if lasting changes are detected: if at least six builds have values, and each build is compared
    /// with the build before it.
    pub fn is_history(&self) -> bool {
        self.builds.against == Against::Previous && self.columns.len() >= FEWEST_BUILDS
    }

    /// Returns the lasting changes of a history: steps, changes that passed, and drifts, sorted by the magnitude of the
    /// change. About one in twenty is false. There are no results, and a warning, for fewer than six builds with
    /// values, and for builds that are compared with a base. The time grows with the square of the number of builds.
    /// Frames with few events are not searched. Frames with negative values are skipped with a warning, and so are the
    /// frames with the lowest cost if there are very many builds.
    ///
    /// A change may be spread over many frames, or be in a frame that several callers share. Then no frame's own cost
    /// shows it. If `sort` is flat, a warning therefore states a change of the total that the rows do not explain, and
    /// another warning names the frame whose cost with callees changed most.
    pub fn shifts(&self, sort: Sort) -> Ranked<Shift> {
        let is_history = self.is_history();
        let FoundShifts { rows, totals, left_out, negative } =
            if is_history { self.find_shifts(sort) } else { FoundShifts::default() };
        let unseen = if is_history && sort == Sort::Flat { self.unseen_changes(&rows, &totals) } else { Vec::new() };
        let (mut summary, builds, frames) = (self.summary.clone(), self.builds.clone(), self.frames.clone());
        let warning = match left_out {
            0 if is_history => None,
            0 => Some("lasting changes are detected only in a history of six builds or more".to_owned()),
            n => Some(format!("{n} frames were not searched for lasting changes, because there are too many builds")),
        };
        let negative_warning = (negative > 0)
            .then(|| format!("frames with negative values were not searched for lasting changes: {negative}"));
        for warning in warning.into_iter().chain(negative_warning).chain(unseen) {
            Arc::make_mut(&mut summary).warnings.push(warning);
        }
        Ranked { summary, builds, frames, sort, rows }
    }

    /// Returns sentences about lasting changes of the total and of costs with callees that `rows`, the changes of the
    /// frames' own costs, do not show.
    fn unseen_changes(&self, rows: &[Shift], totals: &[Shift]) -> Vec<String> {
        let is_same_time =
            |row: &Shift, total: &Shift| row.between[0] <= total.between[1] && total.between[0] <= row.between[1];
        let is_explained = |total: &&Shift| {
            let deltas = rows.iter().filter(|row| is_same_time(row, total)).map(|row| row.value.delta() as f64);
            deltas.sum::<f64>() / total.value.delta() as f64 >= MIN_PART_OF_TOTAL
        };
        // Filters do not change the total, so filtered rows cannot explain its change.
        let is_filtered = !self.summary.query.filters.set().is_empty();
        let is_stated = |total: &&Shift| !is_filtered && total.q <= MAX_Q_OF_WARNING && !is_explained(total);
        let unexplained: Vec<&Shift> = totals.iter().filter(is_stated).collect();
        let mut sentences: Vec<String> = Vec::new();
        if let Some(total) = unexplained.iter().max_by_key(|total| total.value.delta().unsigned_abs()) {
            let change = self.change_in_words(total);
            let frames = if rows.is_empty() {
                "no frame's own cost changed lastingly"
            } else {
                "the rows explain less than half of it"
            };
            sentences.push(format!("the total changed lastingly {change}; {frames}"));
        }
        if rows.is_empty() || !sentences.is_empty() {
            let found = self.find_shifts(Sort::Cum).rows;
            let certain: Vec<&Shift> = found.iter().filter(|shift| shift.q <= MAX_Q_OF_WARNING).collect();
            if let Some(largest) = certain.first() {
                // The callers of a changed frame change by the same amount. The frame with the smallest cost is the innermost.
                let is_as_large = |shift: &&&Shift| {
                    let part = shift.value.delta() as f64 / largest.value.delta() as f64;
                    part >= MIN_PART_OF_CALLERS && is_same_time(shift, largest)
                };
                let cost = |shift: &&&Shift| shift.value.base.max(shift.value.new);
                let innermost = certain.iter().filter(is_as_large).min_by_key(cost).unwrap_or(largest);
                let name = self.frames.name(innermost.frame);
                let frames: BTreeSet<u32> = certain.iter().map(|shift| shift.frame).collect();
                let others = match frames.len() - 1 {
                    0 => String::new(),
                    1 => ", and 1 other frame".to_owned(),
                    n => format!(", and {n} other frames"),
                };
                let change = self.change_in_words(innermost);
                sentences
                    .push(format!("by cum, {name} changed lastingly {change}{others}; sort by cum to see the changes"));
            }
        }
        sentences
    }

    /// Describes a change: `since b12: 3.82s -> 4.79s (+25.4%)`.
    fn change_in_words(&self, shift: &Shift) -> String {
        let key = |build: usize| self.builds.all.get(build).map_or("", |build| build.key.as_str());
        let when = match (shift.kind, shift.until) {
            (ShiftKind::Step, _) | (_, None) => format!("since {}", key(shift.build)),
            (ShiftKind::Passed, Some(until)) => format!("from {} until {}", key(shift.build), key(until)),
            (ShiftKind::Drift, Some(until)) => format!("in a drift from {} to {}", key(shift.build), key(until)),
        };
        let Pair { base, new } = shift.value;
        let [before, after] = [base, new].map(|value| units::show(value, &self.summary.unit));
        let growth = match base {
            0 => String::new(),
            _ => format!(" ({:+.1}%)", 100.0 * (new as f64 / base as f64 - 1.0)),
        };
        format!("{when}: {before} -> {after}{growth}")
    }

    /// Searches all frames and the total.
    fn find_shifts(&self, sort: Sort) -> FoundShifts {
        cancellation::begin_phase("finding changes");
        let n = self.columns.len();
        let event = self.event();
        // Frames that profiling or inlining adds occur randomly, so they are skipped.
        let by_chance = by_chance(&self.frames).map_or_else(|_| Vec::new(), |(by_chance, _)| by_chance);
        let (mut all, mut own): (Vec<FramePoints>, Vec<FramePoints>) = Default::default();
        let mut negative = 0;
        self.for_each_frame(|frame, points| {
            let of = |sort: Sort| {
                let value = |p: &FramePoint| if sort == Sort::Flat { p.flat } else { p.cum };
                FramePoints::new(frame, points.iter().map(|p| (p.column, value(p))).collect())
            };
            let is_searched = |points: &FramePoints| {
                !by_chance.get(frame as usize).is_some_and(Option::is_some) && points.events(event) >= MIN_EVENTS
            };
            let points = of(sort);
            if values_are_negative(&points) {
                negative += 1;
            } else if is_searched(&points) {
                all.push(points);
            }
            if sort == Sort::Cum {
                own.extend(Some(of(Sort::Flat)).filter(|points| !values_are_negative(points) && is_searched(points)));
            }
        });
        let costliest = |points: &FramePoints| (Reverse(points.cost), points.frame);
        sort_by_key(&mut own, costliest);
        sort_by_key(&mut all, costliest);
        let max_frames = (MAX_WORK / (n * n)).max(1);
        let left_out = all.len().saturating_sub(max_frames);
        all.truncate(max_frames);
        let counts = |points: &FramePoints| points.counts(n, event);
        let noise = match sort {
            Sort::Flat => Noise::learn(&all, counts),
            Sort::Cum => Noise::learn_with_callees(&own, &all, counts),
        };
        let totals: Vec<i64> = self.columns.iter().map(|(build, _)| self.builds.all[*build].total).collect();
        let course = |points: &FramePoints| Course::new(points, &totals, event, &noise);
        // A course is larger than its points, so it is not kept, and is computed again for frames with changes.
        let total = FramePoints::new(u32::MAX, totals.iter().copied().enumerate().collect());
        let course_of_total = course(&total);
        let total_changes: Vec<(usize, f64)> = course_of_total.changes();
        let total_shifts =
            if values_are_negative(&total) { Vec::new() } else { course_of_total.shifts(&total_changes) };
        let total_shifts = total_shifts.into_iter().map(|shift| self.to_builds(shift)).collect();
        let changes = parallel::map(&all, |points| course(points).changes());
        let p: Vec<f64> = changes.iter().flatten().map(|(_, p)| *p).collect();
        // A change of any frame may be found by chance, so frames without a change enter the false discovery rate with
        // p = 1.
        let unchanged = changes.iter().filter(|changes| changes.is_empty()).count();
        let mut q = false_discoveries(&[p, vec![1.0; unchanged]].concat()).into_iter();
        let mut kept = Vec::new();
        for (points, changes) in all.iter().zip(&changes) {
            let significant = changes.iter().map(|(start, _)| (*start, q.next().unwrap_or(1.0)));
            let significant: Vec<(usize, f64)> = significant.filter(|(_, q)| *q <= SIGNIFICANT).collect();
            kept.extend((!significant.is_empty()).then_some((points, significant)));
        }
        let rows = parallel::map(&kept, |(points, changes)| course(points).shifts(changes));
        let mut rows: Vec<Shift> = rows.into_iter().flatten().map(|shift| self.to_builds(shift)).collect();
        sort_by(&mut rows, |a: &Shift, b: &Shift| {
            let size = |s: &Shift| Reverse(s.value.delta().unsigned_abs());
            let name = |s: &Shift| self.frames.order(s.frame);
            size(a).cmp(&size(b)).then(a.build.cmp(&b.build)).then_with(|| name(a).cmp(&name(b)))
        });
        FoundShifts { rows, totals: total_shifts, left_out, negative }
    }

    /// Returns the value of one event, as the median over builds. If nothing is known about the values, the event is
    /// very small, and then only the differences between neighbouring builds count as noise.
    fn event(&self) -> f64 {
        let builds = || self.columns.iter().map(|(build, _)| &self.builds.all[*build]);
        let events = builds().map(|b| b.event).filter(|event| *event > 0.0 && event.is_finite());
        let largest = builds().map(|b| b.total).max().unwrap_or(1);
        median(&mut events.collect::<Vec<_>>()).max(largest as f64 / MAX_EVENTS).max(f64::MIN_POSITIVE)
    }

    /// Converts columns to builds.
    fn to_builds(&self, shift: Shift) -> Shift {
        let build = |column: usize| self.columns[column.min(self.columns.len() - 1)].0;
        // The change may have come with a build that failed.
        let behind = |column: usize| column.checked_sub(1).map_or(0, |before| build(before) + 1);
        let between = [behind(shift.between[0]), build(shift.between[1])];
        Shift { build: build(shift.build), between, until: shift.until.map(build), ..shift }
    }
}

fn values_are_negative(points: &FramePoints) -> bool {
    points.points.iter().any(|(_, value)| *value < 0)
}

/// Returns the line with the smallest error. Ties go to the line that starts first.
fn least(lines: &[(LineFit, f64)]) -> Option<&(LineFit, f64)> {
    lines.iter().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.from.cmp(&b.0.from)))
}

impl Course<'_> {
    fn new<'a>(points: &FramePoints, totals: &'a [i64], event: f64, noise: &'a Noise) -> Course<'a> {
        let mut counts = points.counts(totals.len(), event);
        noise.calm(&mut counts);
        let frame_noise = noise.own(&counts);
        let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, frame_noise.tau)).collect();
        let (levels, is_spike) = cut_spikes(&levels);
        let sums = Sums::new(&levels);
        let values = counts.iter().map(|count| count * event).collect();
        Course { frame: points.frame, values, levels, sums, totals, is_spike, event, noise, frame_noise }
    }

    /// Returns the variance of a mean over `builds` builds, relative to independent builds.
    fn memory(&self, builds: usize) -> f64 {
        self.noise.memory(self.frame_noise, builds)
    }

    /// Returns the penalty for an additional level.
    fn price(&self) -> f64 {
        price(self.levels.len()) * self.memory(self.levels.len())
    }

    /// Returns the starts of levels, each with its p-value.
    fn changes(&self) -> Vec<(usize, f64)> {
        self.noise.steps(&self.levels, &self.sums, self.frame_noise)
    }

    /// Returns a change with the ends of the segments on its two sides.
    fn around(&self, starts: &[usize], i: usize) -> (usize, usize, usize) {
        around(starts, i, self.levels.len())
    }

    /// Returns the mean of a range of builds without spikes.
    fn mean(&self, (from, to): (usize, usize)) -> f64 {
        let values: Vec<f64> = (from..to).filter(|&i| !self.is_spike[i]).map(|i| self.values[i]).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// Returns the 95 % confidence interval of the difference between the means of two segments. Each mean has the
    /// variance of the test that found the change, on the same scale. The ends of both means combine as by Zou and Donner
    /// (2008), because the scale is nearly logarithmic for frames that vary much, and their intervals are then far from
    /// symmetric.
    fn interval(&self, segments: (usize, usize, usize), [before, after]: [f64; 2]) -> [f64; 2] {
        let deviations = student_quantile(0.025, degrees_of_means(self.levels.len()));
        let variances = variances_of_means(&self.sums, segments, |builds| self.memory(builds));
        // The distances from the mean to the ends of its interval.
        let distances = |mean: f64, variance: f64| {
            let (level, margin) = (leveled(mean / self.event, self.frame_noise.tau), deviations * variance.sqrt());
            let end = |level: f64| unleveled(level, self.frame_noise.tau) * self.event;
            [(mean - end(level - margin)).max(0.0), (end(level + margin) - mean).max(0.0)]
        };
        let (before_ends, after_ends) = (distances(before, variances[0]), distances(after, variances[1]));
        let delta = after - before;
        [delta - after_ends[0].hypot(before_ends[1]), delta + after_ends[1].hypot(before_ends[0])]
    }

    /// Returns the mean total of a range of builds without spikes.
    fn mean_total(&self, (from, to): (usize, usize)) -> i64 {
        let totals: Vec<f64> = (from..to).filter(|&i| !self.is_spike[i]).map(|i| self.totals[i] as f64).collect();
        (totals.iter().sum::<f64>() / totals.len().max(1) as f64).round() as i64
    }

    /// Classifies the changes, which are given with their q-values. Builds are columns.
    fn shifts(&self, changes: &[(usize, f64)]) -> Vec<Shift> {
        if let Some(drift) = self.drift(changes) {
            return vec![drift];
        }
        let starts: Vec<usize> = changes.iter().map(|(start, _)| *start).collect();
        let mut rows = Vec::new();
        let mut i = 0;
        while i < starts.len() {
            let (from, _, to) = self.around(&starts, i);
            // During the search, a level has at least three builds. The real step may be closer to an end.
            let column = self.clearest(from, to);
            let [before, after] = [(from, column), (column, to)].map(|part| self.mean(part));
            let delta = after - before;
            let next = (i + 1 < starts.len()).then(|| self.mean((to, self.around(&starts, i + 1).2)));
            let is_back = next.is_some_and(|next| (next - before).abs() < MAX_RETURN_DISTANCE * delta.abs());
            rows.push(Shift {
                frame: self.frame,
                kind: if is_back { ShiftKind::Passed } else { ShiftKind::Step },
                build: column,
                between: self.between(from, column, to),
                until: is_back.then_some(to),
                value: Pair { base: before.round() as i64, new: after.round() as i64 },
                total_before: self.mean_total((from, column)),
                interval: self.interval((from, column, to), [before, after]),
                q: changes[i].1,
            });
            i += if is_back { 2 } else { 1 };
        }
        rows
    }

    /// Returns the build between two other builds where a change fits best: the squared error of a mean before it and a
    /// mean from it on is minimal.
    fn clearest(&self, from: usize, to: usize) -> usize {
        let squares = |build: usize| self.sums.squares(from, build) + self.sums.squares(build, to);
        (from + 1..to).min_by(|&a, &b| squares(a).total_cmp(&squares(b))).unwrap_or(to)
    }

    /// Returns the first and the last build that may have introduced the change.
    fn between(&self, from: usize, build: usize, to: usize) -> [usize; 2] {
        let squares = |build: usize| self.sums.squares(from, build) + self.sums.squares(build, to);
        let max_squares = squares(build) + MAX_EXTRA_SQUARES * self.memory(to - from);
        let first = (from + 1..=build).rev().take_while(|&i| squares(i) <= max_squares).last();
        let last = (build..to).take_while(|&i| squares(i) <= max_squares).last();
        [first.unwrap_or(build), last.unwrap_or(build)]
    }

    /// Returns a drift if a line through all builds, or from some build on, fits at least as well as the levels.
    /// Otherwise returns `None`. `changes` are the starts of levels with their q-values.
    fn drift(&self, changes: &[(usize, f64)]) -> Option<Shift> {
        let n = self.levels.len();
        let q = changes.iter().map(|(_, q)| *q).reduce(f64::min)?;
        let starts: Vec<usize> = changes.iter().map(|(start, _)| *start).collect();
        let mut start = 0;
        let mut level_error = self.price() * starts.len() as f64;
        // Moves the start of each level to the build where it fits best, as in the reported steps.
        let best = (0..starts.len()).map(|i| {
            let (from, _, to) = self.around(&starts, i);
            self.clearest(from, to)
        });
        for end in best.chain([n]) {
            let end = end.max(start);
            level_error += self.sums.squares(start, end);
            start = end;
        }
        let points: Vec<(usize, f64)> = (0..n).filter(|&i| !self.is_spike[i]).map(|i| (i, self.values[i])).collect();
        let points = LinePoints::new(points);
        let fit = Fit { levels: &self.levels, event: self.event, tau: self.frame_noise.tau };
        let worse = MAX_EXTRA_SQUARES * self.memory(n);
        // Growth over fewer builds than two levels contain is a late step. The start of growth has a penalty.
        let price = |from: usize| if from == 0 { self.price() } else { 2.0 * self.price() };
        let fits = |froms: Vec<usize>, best: f64| fit.best(points.lines(&froms), price, (best, level_error, worse));
        // With many builds, tries every n-th start first, then all starts next to the best start.
        let all = n.saturating_sub(FEWEST_BUILDS - 1);
        let each = all.div_ceil(MAX_STARTS).max(1);
        let coarse = fits((0..all).step_by(each).collect(), f64::INFINITY);
        let mut best = least(&coarse)?;
        let around = best.0.from.saturating_sub(each)..all.min(best.0.from + each);
        let nearby = fits(around.filter(|from| from % each != 0).collect(), best.1);
        best = least(&nearby).filter(|other| other.1.total_cmp(&best.1).is_lt()).unwrap_or(best);
        let (line, squares) = best;
        if *squares > level_error {
            return None;
        }
        let as_well =
            || coarse.iter().chain(&nearby).filter(|(_, error)| *error <= squares + worse).map(|(line, _)| line.from);
        let between = [as_well().min().unwrap_or(line.from), as_well().max().unwrap_or(line.from)];
        // In the last build without growth, the line is still at its first level.
        let first = |from: usize| if from == 0 { 0 } else { from + 1 };
        let length = (n - 1 - line.from) as f64;
        let (delta, margin) = (line.slope * length, self.slope_margin(&points, line) * length);
        let (before, after) = (line.at(0).max(0.0), line.at(n - 1).max(0.0));
        Some(Shift {
            frame: self.frame,
            kind: ShiftKind::Drift,
            build: first(line.from),
            between: between.map(first),
            until: Some(n - 1),
            value: Pair { base: before.round() as i64, new: after.round() as i64 },
            total_before: self.mean_total((0, line.from + 1)),
            interval: [delta - margin, delta + margin],
            q,
        })
    }

    /// Returns the margin of the 95 % confidence interval of a line's slope.
    fn slope_margin(&self, points: &LinePoints, line: &LineFit) -> f64 {
        let x = |i: usize| i.saturating_sub(line.from) as f64;
        let (points, m) = (&points.points, points.points.len() as f64);
        let left = points.iter().map(|p| (p.1 - line.level - line.slope * x(p.0)).powi(2)).sum::<f64>() / (m - 2.0);
        // The variance is at least the variance from counting and from noise between builds.
        let memory = self.memory(self.levels.len());
        let drawn = |y: f64| (y.abs() * self.event + (self.frame_noise.tau * y).powi(2)) * memory;
        let left = left.max(points.iter().map(|p| drawn(line.level + line.slope * x(p.0))).sum::<f64>() / m);
        student_quantile(0.025, (m - 2.0) as u32) * (left / line.squares).sqrt()
    }
}
