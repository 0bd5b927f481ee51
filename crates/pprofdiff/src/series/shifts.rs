//! Lasting changes along a history: which frame costs something else from which build on.
//!
//! ```text
//! all frames -> noise (what they have in common, how far and how long builds wander)
//! values of a frame, without it -> levels of one variance, spikes cut -> segments -> those beyond chance -> what each was
//! ```
//!
//! docs/statistics.md has the formulas and what was measured.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Against, Ranked, Series};
use crate::diff::top::SIGNIFICANT;
use crate::diff::{Pair, Sort};
use crate::explain as causes;
use crate::statistics::counts::median;
use crate::statistics::distributions::student_quantile;
use crate::statistics::lines::{Fit, Line, LinePoints};
use crate::statistics::noise::{Noise, OwnNoise};
use crate::statistics::rank::false_discoveries;
use crate::statistics::segments::{LEAST, Sums, around, cut_spikes, leveled, price};
use pprofdiff_profile::parallel;
use pprofdiff_profile::work;

/// The fewest builds in which lasting changes are looked for: two levels.
pub const FEWEST_BUILDS: usize = 2 * LEAST;
/// Frames with fewer events in all builds show no shift.
const FEWEST_EVENTS: f64 = 60.0;
/// Where a level that was left is reached again: within this part of the change.
const BACK: f64 = 0.25;
/// Builds that a shift may as well have come with: the squares that they are worse by.
const WORSE: f64 = 6.0;
/// Builds from which on a line is tried at first.
const MAX_STARTS: usize = 64;
/// Segments are looked for in this many pairs of builds and frames; the costliest frames are looked at first.
const MAX_WORK: usize = 1_000_000_000;
/// The most events of a build.
const MAX_EVENTS: f64 = 1e9;

/// What a lasting change was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ShiftKind {
    /// It stays.
    Step,
    /// It went away again.
    Passed,
    /// It came bit by bit.
    Drift,
}

impl ShiftKind {
    /// As results spell it.
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
    /// Index in [`Series::frames`].
    pub frame: u32,
    /// What it was.
    pub kind: ShiftKind,
    /// The first build that has it; of a drift the first that has more, or the first of all.
    pub build: usize,
    /// The first and the last build that it may as well have come with.
    pub between: [usize; 2],
    /// Of what passed the first build without it; of a drift the last of all.
    pub until: Option<usize>,
    /// The mean before and after; of a drift, of the line through its builds, in the first build of all and in the last.
    pub value: Pair,
    /// Where the change of the mean lies with a probability of 95 %.
    pub interval: [f64; 2],
    /// The part of false ones among all shifts that are so clear or clearer (Benjamini-Hochberg).
    pub q: f64,
}

/// A frame's values in the builds that have it, by column.
struct Points {
    frame: u32,
    points: Vec<(usize, i64)>,
    /// The sum of the magnitudes of all.
    cost: i128,
}

impl Points {
    /// The events of all builds.
    fn counts(&self, n: usize, event: f64) -> Vec<f64> {
        let mut counts = vec![0.0; n];
        self.points.iter().for_each(|&(column, v)| counts[column] = v.max(0) as f64 / event);
        counts
    }
}

/// A frame's course over all builds.
struct Course<'a> {
    frame: u32,
    /// Without what all frames have in common.
    values: Vec<f64>,
    /// The values as levels of one variance, without spikes.
    levels: Vec<f64>,
    sums: Sums,
    /// What is a spike is no part of a mean.
    is_spike: Vec<bool>,
    event: f64,
    noise: &'a Noise,
    own: OwnNoise,
}

impl Series {
    /// True if lasting changes are looked for: of six builds or more, each compared with the one before it.
    pub fn is_history(&self) -> bool {
        self.builds.against == Against::Previous && self.columns.len() >= FEWEST_BUILDS
    }

    /// The lasting changes of a history: steps, what passed, and drifts, by the magnitude of the change. About one in
    /// twenty of them is false. None of fewer than six builds, and of builds that are compared with a base. Takes time
    /// with the square of the number of builds; of very many the frames that cost least are left out, with a warning.
    pub fn shifts(&self, sort: Sort) -> Ranked<Shift> {
        let is_history = self.is_history();
        let (rows, [left_out, negative]) = if is_history { self.find_shifts(sort) } else { (Vec::new(), [0, 0]) };
        let (mut summary, builds, frames) = (self.summary.clone(), self.builds.clone(), self.frames.clone());
        let warning = match left_out {
            0 if is_history => None,
            0 => Some("lasting changes are looked for in a history of six builds or more".to_owned()),
            n => Some(format!("lasting changes of {n} frames were not looked for, as there are so many builds")),
        };
        let of_negative = (negative > 0)
            .then(|| format!("lasting changes of frames with negative values were not looked for: {negative}"));
        for warning in warning.into_iter().chain(of_negative) {
            Arc::make_mut(&mut summary).warnings.push(warning);
        }
        Ranked { summary, builds, frames, sort, rows }
    }

    /// The rows; how many frames were left out, since there are so many builds, and since they have negative values.
    fn find_shifts(&self, sort: Sort) -> (Vec<Shift>, [usize; 2]) {
        work::begin_phase("finding changes");
        let n = self.columns.len();
        let event = self.event();
        // What profiling itself puts there, or inlining, comes and goes.
        let by_chance = causes::by_chance(&self.frames).map_or_else(|_| Vec::new(), |(by_chance, _)| by_chance);
        let mut all: Vec<Points> = Vec::new();
        let mut negative = 0;
        self.for_each_frame(|frame, points| {
            let values = points.iter().map(|p| (p.column, if sort == Sort::Flat { p.flat } else { p.cum }));
            let points: Vec<(usize, i64)> = values.collect();
            let events = points.iter().map(|(_, v)| (*v).max(0) as f64).sum::<f64>() / event;
            if values_are_negative(&points) {
                negative += 1;
            } else if !by_chance.get(frame as usize).is_some_and(Option::is_some) && events >= FEWEST_EVENTS {
                let cost = points.iter().map(|(_, v)| i128::from(*v).abs()).sum();
                all.push(Points { frame, points, cost });
            }
        });
        all.sort_by_key(|points| (Reverse(points.cost), points.frame));
        let most = (MAX_WORK / (n * n)).max(1);
        let left_out = all.len().saturating_sub(most);
        all.truncate(most);
        let noise = Noise::learn(&all, |points| points.counts(n, event));
        let course = |points: &Points| Course::new(points, n, event, &noise);
        // A course is larger than its points, so it is made again where something is found.
        let changes = parallel::map(&all, |points| course(points).changes());
        let p: Vec<f64> = changes.iter().flatten().map(|(_, p)| *p).collect();
        // A change of each frame might be found by chance; of frames without one nothing is said.
        let silent = changes.iter().filter(|changes| changes.is_empty()).count();
        let mut q = false_discoveries(&[p, vec![1.0; silent]].concat()).into_iter();
        let mut kept = Vec::new();
        for (points, changes) in all.iter().zip(&changes) {
            let of_frame = changes.iter().map(|(at, _)| (*at, q.next().unwrap_or(1.0)));
            let of_frame: Vec<(usize, f64)> = of_frame.filter(|(_, q)| *q <= SIGNIFICANT).collect();
            kept.extend((!of_frame.is_empty()).then_some((points, of_frame)));
        }
        let rows = parallel::map(&kept, |(points, changes)| course(points).shifts(changes));
        let mut rows: Vec<Shift> = rows.into_iter().flatten().map(|shift| self.of_builds(shift)).collect();
        rows.sort_by(|a: &Shift, b: &Shift| {
            let size = |s: &Shift| Reverse(s.value.delta().unsigned_abs());
            let name = |s: &Shift| self.frames.order(s.frame);
            size(a).cmp(&size(b)).then(a.build.cmp(&b.build)).then_with(|| name(a).cmp(&name(b)))
        });
        (rows, [left_out, negative])
    }

    /// What an event is worth, by the typical build. Of values that nothing is known of, only what neighbours differ by
    /// is noise: their events are very small.
    fn event(&self) -> f64 {
        let builds = || self.columns.iter().map(|(build, _)| &self.builds.all[*build]);
        let known = builds().map(|b| b.event).filter(|event| *event > 0.0 && event.is_finite());
        let most = builds().map(|b| b.total).max().unwrap_or(1);
        median(&mut known.collect::<Vec<_>>()).max(most as f64 / MAX_EVENTS).max(f64::MIN_POSITIVE)
    }

    /// From columns to builds.
    fn of_builds(&self, shift: Shift) -> Shift {
        let build = |column: usize| self.columns[column.min(self.columns.len() - 1)].0;
        // It may have come with a build that failed.
        let behind = |column: usize| column.checked_sub(1).map_or(0, |before| build(before) + 1);
        let between = [behind(shift.between[0]), build(shift.between[1])];
        Shift { build: build(shift.build), between, until: shift.until.map(build), ..shift }
    }
}

fn values_are_negative(points: &[(usize, i64)]) -> bool {
    points.iter().any(|(_, value)| *value < 0)
}

/// Of lines that fit as well the first.
fn least(lines: &[(Line, f64)]) -> Option<&(Line, f64)> {
    lines.iter().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.from.cmp(&b.0.from)))
}

impl Course<'_> {
    fn new<'a>(points: &Points, n: usize, event: f64, noise: &'a Noise) -> Course<'a> {
        let mut counts = points.counts(n, event);
        noise.calm(&mut counts);
        let own = noise.own(&counts);
        let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, own.tau)).collect();
        let (levels, is_spike) = cut_spikes(&levels);
        let sums = Sums::new(&levels);
        let values = counts.iter().map(|count| count * event).collect();
        Course { frame: points.frame, values, levels, sums, is_spike, event, noise, own }
    }

    /// How many times the variance of independent builds the mean of so many has.
    fn memory(&self, builds: usize) -> f64 {
        self.noise.memory(self.own, builds)
    }

    /// The price of a level.
    fn price(&self) -> f64 {
        price(self.levels.len()) * self.memory(self.levels.len())
    }

    /// Where levels begin, each with its p-value.
    fn changes(&self) -> Vec<(usize, f64)> {
        self.noise.steps(&self.levels, &self.sums, self.own)
    }

    /// A change with the ends of the segments on its sides.
    fn around(&self, starts: &[usize], i: usize) -> (usize, usize, usize) {
        around(starts, i, self.levels.len())
    }

    /// The mean of some builds without spikes, and the variance of that mean, in the unit of the values.
    fn mean(&self, (from, to): (usize, usize)) -> (f64, f64) {
        let values: Vec<f64> = (from..to).filter(|&i| !self.is_spike[i]).map(|i| self.values[i]).collect();
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (mean.abs() * self.event + (self.own.tau * mean).powi(2)) * self.memory(to - from) / n)
    }

    /// What the changes were, each given with its q. Builds are columns.
    fn shifts(&self, changes: &[(usize, f64)]) -> Vec<Shift> {
        if let Some(drift) = self.drift(changes) {
            return vec![drift];
        }
        let starts: Vec<usize> = changes.iter().map(|(start, _)| *start).collect();
        let mut rows = Vec::new();
        let mut i = 0;
        while i < starts.len() {
            let (from, _, to) = self.around(&starts, i);
            // Levels are of three builds at least while they are looked for; a step may be closer to an end.
            let at = self.clearest(from, to);
            let [before, after] = [(from, at), (at, to)].map(|part| self.mean(part));
            let delta = after.0 - before.0;
            let next = (i + 1 < starts.len()).then(|| self.mean((to, self.around(&starts, i + 1).2)).0);
            let is_back = next.is_some_and(|next| (next - before.0).abs() < BACK * delta.abs());
            let far = 1.96 * (before.1 + after.1).sqrt();
            rows.push(Shift {
                frame: self.frame,
                kind: if is_back { ShiftKind::Passed } else { ShiftKind::Step },
                build: at,
                between: self.between(from, at, to),
                until: is_back.then_some(to),
                value: Pair { base: before.0.round() as i64, new: after.0.round() as i64 },
                interval: [delta - far, delta + far],
                q: changes[i].1,
            });
            i += if is_back { 2 } else { 1 };
        }
        rows
    }

    /// The build between two others with which a change fits best.
    fn clearest(&self, from: usize, to: usize) -> usize {
        let squares = |at: usize| self.sums.squares(from, at) + self.sums.squares(at, to);
        (from + 1..to).min_by(|&a, &b| squares(a).total_cmp(&squares(b))).unwrap_or(to)
    }

    /// The builds that a change may as well have come with.
    fn between(&self, from: usize, at: usize, to: usize) -> [usize; 2] {
        let squares = |at: usize| self.sums.squares(from, at) + self.sums.squares(at, to);
        let most = squares(at) + WORSE * self.memory(to - from);
        let first = (from + 1..=at).rev().take_while(|&i| squares(i) <= most).last();
        let last = (at..to).take_while(|&i| squares(i) <= most).last();
        [first.unwrap_or(at), last.unwrap_or(at)]
    }

    /// A line through all builds, or from some build on, if it explains them as well as the levels do.
    fn drift(&self, changes: &[(usize, f64)]) -> Option<Shift> {
        let n = self.levels.len();
        let q = changes.iter().map(|(_, q)| *q).reduce(f64::min)?;
        let starts: Vec<usize> = changes.iter().map(|(start, _)| *start).collect();
        let mut start = 0;
        let mut of_levels = self.price() * starts.len() as f64;
        // Levels begin where they fit best, as they are said to.
        let best = (0..starts.len()).map(|i| {
            let (from, _, to) = self.around(&starts, i);
            self.clearest(from, to)
        });
        for end in best.chain([n]) {
            let end = end.max(start);
            of_levels += self.sums.squares(start, end);
            start = end;
        }
        let points: Vec<(usize, f64)> = (0..n).filter(|&i| !self.is_spike[i]).map(|i| (i, self.values[i])).collect();
        let points = LinePoints::new(points);
        let fit = Fit { levels: &self.levels, event: self.event, tau: self.own.tau };
        let worse = WORSE * self.memory(n);
        // What rose over fewer builds than two levels have is a step that came late. Where growth begins has a price.
        let price = |from: usize| if from == 0 { self.price() } else { 2.0 * self.price() };
        let fits = |froms: Vec<usize>, best: f64| fit.best(points.lines(&froms), price, (best, of_levels, worse));
        // Of many builds some first, then all around the best of those.
        let all = n.saturating_sub(FEWEST_BUILDS - 1);
        let each = all.div_ceil(MAX_STARTS).max(1);
        let some = fits((0..all).step_by(each).collect(), f64::INFINITY);
        let mut best = least(&some)?;
        let around = best.0.from.saturating_sub(each)..all.min(best.0.from + each);
        let beside = fits(around.filter(|from| from % each != 0).collect(), best.1);
        best = least(&beside).filter(|other| other.1.total_cmp(&best.1).is_lt()).unwrap_or(best);
        let (line, squares) = best;
        if *squares > of_levels {
            return None;
        }
        let as_well = || some.iter().chain(&beside).filter(|(_, of)| *of <= squares + worse).map(|(line, _)| line.from);
        let between = [as_well().min().unwrap_or(line.from), as_well().max().unwrap_or(line.from)];
        // The line is at its first level in the last build without growth.
        let first = |from: usize| if from == 0 { 0 } else { from + 1 };
        let length = (n - 1 - line.from) as f64;
        let (delta, far) = (line.slope * length, self.far(&points, line) * length);
        let (before, after) = (line.at(0).max(0.0), line.at(n - 1).max(0.0));
        Some(Shift {
            frame: self.frame,
            kind: ShiftKind::Drift,
            build: first(line.from),
            between: between.map(first),
            until: Some(n - 1),
            value: Pair { base: before.round() as i64, new: after.round() as i64 },
            interval: [delta - far, delta + far],
            q,
        })
    }

    /// Half of where a line's slope lies with a probability of 95 %.
    fn far(&self, points: &LinePoints, line: &Line) -> f64 {
        let x = |i: usize| i.saturating_sub(line.from) as f64;
        let (points, m) = (&points.points, points.points.len() as f64);
        let left = points.iter().map(|p| (p.1 - line.level - line.slope * x(p.0)).powi(2)).sum::<f64>() / (m - 2.0);
        // No less than what counting and other builds make of it.
        let memory = self.memory(self.levels.len());
        let drawn = |y: f64| (y.abs() * self.event + (self.own.tau * y).powi(2)) * memory;
        let left = left.max(points.iter().map(|p| drawn(line.level + line.slope * x(p.0))).sum::<f64>() / m);
        student_quantile(0.025, (m - 2.0) as u32) * (left / line.squares).sqrt()
    }
}
