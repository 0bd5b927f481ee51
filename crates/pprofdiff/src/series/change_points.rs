//! The builds at which a series changes, each with the builds on both sides that are runs of one program: brought
//! together from the lasting changes of all frames, or a build that the caller names. A series keeps values and no
//! profiles, so these are read again to be compared and explained.

use std::sync::Arc;

use super::{Against, Build, Ranked, Series, Shift, ShiftKind};
use crate::diff::{Diff, Granularity, Normalize, Sort};
use crate::explain::{ExplainOptions, Explanation};
use crate::{Error, Result};
use pprofdiff_profile::{LoadOptions, Profile, parallel};

/// A change ends the level of another that is at most so many times as large; smaller ones do not disturb it.
const DISTURBING: u64 = 10;

/// A build at which frames changed, with the builds on both sides that are taken for runs of one program. Builds are
/// indexes in [`super::Builds::all`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangePoint {
    /// The first build that has the changes; of a drift the last of all.
    pub build: usize,
    /// What changed there: indexes in the rows that were brought together, the largest change first.
    pub rows: Vec<usize>,
    /// The builds before it, and from it on, that no other change lies between; the nearest of them.
    pub sides: [Vec<usize>; 2],
}

impl ChangePoint {
    /// With other rows that changed there.
    #[must_use]
    pub fn with_rows(mut self, rows: Vec<usize>) -> ChangePoint {
        self.rows = rows;
        self
    }
}

impl Series {
    /// Where lasting changes lie, in the order of the builds, at most `runs` builds a side. Changes that may have come
    /// with the same build are one point. A drift is a point of its own, of the first and the last builds.
    pub fn change_points(&self, shifts: &Ranked<Shift>, runs: usize) -> Vec<ChangePoint> {
        let rows = &shifts.rows;
        let size = |row: &usize| rows[*row].value.delta().unsigned_abs();
        // The build of each point with its rows. Rows come by size, so a point's build is that of its largest change.
        let mut points: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut drifts = Vec::new();
        for (i, shift) in rows.iter().enumerate() {
            let may_be = |build: usize| shift.between[0] <= build && build <= shift.between[1];
            match points.iter_mut().find(|(build, _)| may_be(*build)) {
                _ if shift.kind == ShiftKind::Drift => drifts.push(i),
                Some((_, of)) => of.push(i),
                None => points.push((shift.build, vec![i])),
            }
        }
        // Where levels end, and by how large a change: what passed ends one where it went away, too.
        let mut ends: Vec<(usize, u64)> = points.iter().map(|(build, of)| (*build, size(&of[0]))).collect();
        let until = |(i, shift): (usize, &Shift)| Some((shift.until?, size(&i)));
        ends.extend(rows.iter().enumerate().filter(|(_, s)| s.kind == ShiftKind::Passed).filter_map(until));
        let columns: Vec<usize> = self.values().map(|(build, _)| build).collect();
        let place = |build: usize| columns.partition_point(|&b| b < build);
        let mut found: Vec<ChangePoint> = points
            .into_iter()
            .map(|(build, rows)| {
                let least = size(&rows[0]) / DISTURBING;
                let ends = || ends.iter().filter(|(_, size)| *size >= least).map(|(build, _)| *build);
                let from = place(ends().filter(|&end| end < build).max().unwrap_or(0));
                let to = ends().filter(|&end| end > build).min().map_or(columns.len(), place);
                let at = place(build);
                let sides = [from.max(at.saturating_sub(runs))..at, at..to.min(at.saturating_add(runs))];
                ChangePoint { build, rows, sides: sides.map(|side| columns[side].to_vec()) }
            })
            .collect();
        if !drifts.is_empty() {
            found.extend(self.ends(runs).ok().map(|ends| ends.with_rows(drifts)));
        }
        found.sort_by_key(|point| point.build);
        found
    }
    /// A build as a change point, whatever changed there: of a history with the builds before it and those from it on,
    /// at most `runs` of each; of builds against a base with the base.
    ///
    /// # Errors
    /// The first build; no runs; a build without values.
    pub fn change_point(&self, build: usize, runs: usize) -> Result<ChangePoint> {
        let columns: Vec<usize> = self.values().map(|(build, _)| build).collect();
        let key = || self.builds.all.get(build).map_or("", |b| b.key.as_str());
        let Some(at) = columns.iter().position(|&b| b == build) else {
            return Err(Error::query(format!("the build {:?} has no values", key())));
        };
        if at == 0 || runs == 0 {
            let why = if runs == 0 { "no runs are compared" } else { "nothing comes before it" };
            return Err(Error::query(format!("the build {:?} can't be explained: {why}", key())));
        }
        let sides = match self.builds.against {
            Against::Previous => [at.saturating_sub(runs)..at, at..columns.len().min(at.saturating_add(runs))],
            Against::First => [0..1, at..at + 1],
        };
        Ok(ChangePoint { build, rows: Vec::new(), sides: sides.map(|side| columns[side].to_vec()) })
    }

    /// The first builds and the last, at most `runs` of each, as if what is between them had come with the last.
    ///
    /// # Errors
    /// No runs, or a series of one build.
    pub fn ends(&self, runs: usize) -> Result<ChangePoint> {
        let columns: Vec<usize> = self.values().map(|(build, _)| build).collect();
        let n = runs.min(columns.len() / 2);
        match columns.last() {
            Some(&build) if n > 0 => {
                let sides = [columns[..n].to_vec(), columns[columns.len() - n..].to_vec()];
                Ok(ChangePoint { build, rows: Vec::new(), sides })
            }
            _ => Err(Error::query("a comparison needs two builds that have values")),
        }
    }

    /// Where the largest lasting change lies; where there is none, the largest step. `None` if nothing ever changed.
    pub fn largest_change(&self, sort: Sort, runs: usize) -> Option<ChangePoint> {
        let lasting = self.change_points(&self.shifts(sort), runs);
        lasting.into_iter().find(|point| point.rows.first() == Some(&0)).or_else(|| {
            let step = self.movers(sort).rows.first()?.step;
            let changes = step.flat.delta() != 0 || step.cum.delta() != 0;
            self.change_point(step.to, runs).ok().filter(|_| changes)
        })
    }

    /// The builds before a change point as runs of one side, and those from it on as runs of the other. Their profiles are
    /// read again from their paths, or fetched again, inside a rayon pool on all its threads.
    ///
    /// # Errors
    /// A profile that can't be read again, as of one that was no file.
    pub fn diff(&self, point: &ChangePoint, load: &LoadOptions) -> Result<Diff> {
        let open = |builds: &Vec<usize>| -> Result<Vec<Arc<Profile>>> {
            let builds: Vec<(usize, &Build)> =
                builds.iter().filter_map(|&number| Some((number, self.builds.all.get(number)?))).collect();
            let again = |(number, build): &(usize, &Build)| {
                let profile = match self.fetches.get(*number) {
                    Some(Some(fetch)) => fetch.load(load),
                    _ => Profile::open(&build.path, load).map(Arc::new),
                };
                profile.map_err(|e| {
                    let detail = format!(
                        "the build {:?} can't be read again, as causes and graphs need it; builds are to be files: {}",
                        build.key,
                        e.detail()
                    );
                    Error::query(detail).in_input(&build.path)
                })
            };
            parallel::map(&builds, again).into_iter().collect()
        };
        let [base, new] = &point.sides;
        Diff::new(&open(base)?, &open(new)?)
    }

    /// Why the builds from a change point on differ from those before it. Several runs show how much builds differ
    /// anyway. Of functions, and not normalized, since the scale is found.
    ///
    /// # Errors
    /// As [`Series::diff`] and [`Diff::explain`].
    pub fn explain(&self, point: &ChangePoint, load: &LoadOptions, options: &ExplainOptions) -> Result<Explanation> {
        let query = self.summary.query.clone().with_granularity(Granularity::Functions).with_normalize(Normalize::None);
        self.diff(point, load)?.explain(&query, &[], options)
    }
}
