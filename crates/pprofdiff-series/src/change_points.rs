//! Finds the builds where a series changes, each with the builds on both sides that count as runs of one program. A
//! change point comes from the lasting changes of all frames, or from a build that the caller names. A series stores
//! values but no profiles, so the profiles are loaded again for comparisons and explanations.

use std::sync::Arc;

use super::{Against, Build, Ranked, Series, Shift, ShiftKind};
use pprofdiff::LoadOptions;
use pprofdiff::{Diff, Error, Granularity, Normalize, Query, Result, Sort, Source};
use pprofdiff_explain::{ExplainOptions, Explanation, explain};
use pprofdiff_profile::Profile;
use pprofdiff_profile::short_lists::sort_by_key;

/// A change splits the level of another change that is up to this many times larger. Smaller changes are ignored.
const DISTURBING: u64 = 10;

/// A build where frames changed, or which the caller chose, with the builds on both sides that count as runs of one
/// program. Builds are indexes in [`super::Builds::all`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangePoint {
    /// The first build with the changes. For a drift, the last build of all.
    pub build: usize,
    /// The changes at this build, as indexes in the [`Ranked::rows`] of [`Series::shifts`], the largest change first.
    /// Empty if the caller chose the build.
    pub rows: Vec<usize>,
    /// The builds before the change, and the builds from it on. For lasting changes, these are the nearest builds
    /// without another change of similar size in between. For a drift, these are the first and the last builds.
    pub sides: [Vec<usize>; 2],
}

impl ChangePoint {
    /// Replaces the rows that changed at this build.
    #[must_use]
    pub fn with_rows(mut self, rows: Vec<usize>) -> ChangePoint {
        self.rows = rows;
        self
    }
}

impl Series {
    /// Returns the builds with lasting changes in the order of the builds, with at most `runs` builds per side. Changes
    /// that may have come with the same build form one point. A drift is a separate point that compares the first and
    /// the last builds.
    pub fn change_points(&self, shifts: &Ranked<Shift>, runs: usize) -> Vec<ChangePoint> {
        let rows = &shifts.rows;
        let size = |row: &usize| rows[*row].value.delta().unsigned_abs();
        // The build and the rows of each point. Rows are sorted by size, so a point gets the build of its largest
        // change.
        let mut points: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut drifts = Vec::new();
        for (i, shift) in rows.iter().enumerate() {
            let may_be = |build: usize| shift.between[0] <= build && build <= shift.between[1];
            match points.iter_mut().find(|(build, _)| may_be(*build)) {
                _ if shift.kind == ShiftKind::Drift => drifts.push(i),
                Some((_, point_rows)) => point_rows.push(i),
                None => points.push((shift.build, vec![i])),
            }
        }
        // The builds where levels end, and the size of the change. A change that passed also ends a level when it
        // disappears.
        let mut ends: Vec<(usize, u64)> =
            points.iter().map(|(build, point_rows)| (*build, size(&point_rows[0]))).collect();
        let until = |(i, shift): (usize, &Shift)| Some((shift.until?, size(&i)));
        ends.extend(rows.iter().enumerate().filter(|(_, s)| s.kind == ShiftKind::Passed).filter_map(until));
        let columns: Vec<usize> = self.values().map(|(build, _)| build).collect();
        let place = |build: usize| columns.partition_point(|&b| b < build);
        let mut change_points: Vec<ChangePoint> = points
            .into_iter()
            .map(|(build, rows)| {
                let least = size(&rows[0]) / DISTURBING;
                let ends = || ends.iter().filter(|(_, size)| *size >= least).map(|(build, _)| *build);
                let from = place(ends().filter(|&end| end < build).max().unwrap_or(0));
                let to = ends().filter(|&end| end > build).min().map_or(columns.len(), place);
                let column = place(build);
                let sides =
                    [from.max(column.saturating_sub(runs))..column, column..to.min(column.saturating_add(runs))];
                ChangePoint { build, rows, sides: sides.map(|side| columns[side].to_vec()) }
            })
            .collect();
        if !drifts.is_empty() {
            change_points.extend(self.ends(runs).ok().map(|ends| ends.with_rows(drifts)));
        }
        sort_by_key(&mut change_points, |point| point.build);
        change_points
    }
    /// Returns a build as a change point, independent of the changes in it. In a history, the sides are the builds
    /// before it and the builds from it on, at most `runs` of each. For builds against a base, the first side is the
    /// base.
    ///
    /// # Errors
    /// Fails for the first build, if `runs` is zero, and for a build without values.
    pub fn change_point(&self, build: usize, runs: usize) -> Result<ChangePoint> {
        let columns: Vec<usize> = self.values().map(|(build, _)| build).collect();
        let key = || self.builds.all.get(build).map_or("", |b| b.key.as_str());
        let Some(column) = columns.iter().position(|&b| b == build) else {
            return Err(Error::query(format!("the build {:?} has no values", key())));
        };
        if column == 0 || runs == 0 {
            let why = if runs == 0 { "no runs are compared" } else { "nothing comes before it" };
            return Err(Error::query(format!("the build {:?} can't be explained: {why}", key())));
        }
        let sides = match self.builds.against {
            Against::Previous => {
                [column.saturating_sub(runs)..column, column..columns.len().min(column.saturating_add(runs))]
            }
            Against::First => [0..1, column..column + 1],
        };
        Ok(ChangePoint { build, rows: Vec::new(), sides: sides.map(|side| columns[side].to_vec()) })
    }

    /// Compares the first builds with the last builds, at most `runs` of each, as if all changes had come with the last
    /// build.
    ///
    /// # Errors
    /// Fails if `runs` is zero, and if fewer than two builds have values.
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

    /// Returns the point of the largest lasting change or, if there is none, of the largest step. Returns `None` if no
    /// value ever changed, and if `runs` is zero and there is no lasting change.
    pub fn largest_change(&self, sort: Sort, runs: usize) -> Option<ChangePoint> {
        let lasting = self.change_points(&self.shifts(sort), runs);
        lasting.into_iter().find(|point| point.rows.first() == Some(&0)).or_else(|| {
            let step = self.movers(sort).rows.first()?.step;
            let changes = step.flat.delta() != 0 || step.cum.delta() != 0;
            self.change_point(step.to, runs).ok().filter(|_| changes)
        })
    }

    /// Returns the keys of the builds that a change point compares: `b12..b14 -> b15..b17`.
    pub fn compared_builds(&self, point: &ChangePoint) -> String {
        let key = |build: &usize| self.builds.all.get(*build).map_or("", |build| build.key.as_str());
        let side = |builds: &Vec<usize>| match builds.as_slice() {
            [] => String::new(),
            [one] => key(one).to_owned(),
            [first, .., last] => format!("{}..{}", key(first), key(last)),
        };
        let [base, new] = &point.sides;
        format!("{} -> {}", side(base), side(new))
    }

    /// Loads the profiles of a change point for a comparison. The builds before it are runs of the base, and the builds
    /// from it on are runs of the new side. Profiles are read again from their paths or fetched again, in parallel
    /// inside a rayon pool.
    ///
    /// # Errors
    /// Fails if a profile cannot be loaded again, for example because its source was not a file. Returns the errors of
    /// [`Diff::new`].
    pub fn diff(&self, point: &ChangePoint, load: &LoadOptions) -> Result<Diff> {
        let open = |builds: &Vec<usize>| -> Result<Vec<Arc<Profile>>> {
            let builds: Vec<(usize, &Build)> =
                builds.iter().filter_map(|&number| Some((number, self.builds.all.get(number)?))).collect();
            let source = |(number, build): &(usize, &Build)| match self.fetches.get(*number) {
                Some(Some(fetch)) => fetch.clone(),
                _ => Source::Path((&build.path).into()),
            };
            let sources: Vec<Source> = builds.iter().map(source).collect();
            Diff::load_side(&sources, load).map_err(|e| {
                let failed = builds.iter().find(|(_, build)| e.input() == Some(&build.path)).or(builds.first());
                let (key, path) = failed.map_or(("", ""), |(_, build)| (&build.key, &build.path));
                let detail = format!(
                    "the build {key:?} can't be read again, which causes and graphs require; give builds as files: {}",
                    e.detail()
                );
                Error::query(detail).in_input(path)
            })
        };
        let [base, new] = &point.sides;
        Diff::new(&open(base)?, &open(new)?)
    }

    /// Explains the change at a change point, by comparing the builds before it with the later builds. Several runs per
    /// side show the noise between builds. The explanation uses functions without normalization, because it finds the
    /// scale itself.
    ///
    /// # Errors
    /// Returns the errors of [`Series::diff`] and [`explain`].
    pub fn explain(&self, point: &ChangePoint, load: &LoadOptions, options: &ExplainOptions) -> Result<Explanation> {
        self.explain_diff(&self.diff(point, load)?, options)
    }

    /// Explains a comparison of builds that [`Series::diff`] returned, like `explain` of the same files. If the caller chose
    /// no sample type for the series, the explanation may add another one, such as the allocations of heap profiles.
    ///
    /// # Errors
    /// Returns the errors of [`explain`].
    pub fn explain_diff(&self, diff: &Diff, options: &ExplainOptions) -> Result<Explanation> {
        let mut query = self.explained_query();
        let explained = diff.sample_types().get(diff.type_to_explain().0).map(|(name, _)| name.clone());
        if self.has_default_type && explained.as_ref() == Some(&self.summary.sample_type) {
            query.sample_type = None;
        }
        explain(diff, &query, &[], options)
    }

    /// Returns the query whose stacks explanations compare: functions without normalization.
    pub fn explained_query(&self) -> Query {
        self.summary.query.clone().with_granularity(Granularity::Functions).with_normalize(Normalize::None)
    }
}
