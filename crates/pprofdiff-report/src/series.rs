//! The common parts of tables of many builds: the columns of frames and builds, and the header.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::html::escape;
use super::numbers::{CostFormat, counted};
use super::table::{Cell, Data, Table, Texts};
use super::text::settings;
use pprofdiff::advice::{pattern_of, word};
use pprofdiff::text::sanitize;
use pprofdiff::{Frames, Normalize, Summary};
use pprofdiff_series::{Against, Build, BuildOrder, Builds, Ranked};

/// The maximum number of builds on each side of a change that are treated as runs of one program. It is large enough to
/// estimate the noise between builds.
pub const RUNS: usize = 5;

/// Returns the columns that identify a frame: name, file, line, mapping.
pub(crate) fn frame_columns(frames: &Frames, rows: impl Iterator<Item = u32> + Clone) -> Vec<Data> {
    let all = || 0..frames.len() as u32;
    let text = |f: &dyn Fn(u32) -> Option<String>| {
        Data::Text(all().map(f).collect::<Texts>().shared(rows.clone().map(|frame| frame as usize)))
    };
    let line = Data::Line(rows.clone().map(|f| frames.line(f)).collect());
    vec![text(&|f| Some(frames.name(f))), text(&|f| frames.file(f)), line, text(&|f| frames.mapping(f))]
}

/// Returns the columns of builds: keys and numbers. Both are missing for rows without a build.
pub(crate) fn build_columns(builds: &Builds, rows: impl Iterator<Item = Option<usize>> + Clone) -> [Data; 2] {
    // An additional missing key at the end stands for rows without a build.
    let keys: Texts = builds.all.iter().map(|b| Some(&b.key)).chain([None]).collect();
    let keys = keys.shared(rows.clone().map(|build| build.unwrap_or(builds.all.len())));
    [Data::Text(keys), Data::Line(rows.map(|build| build.map(|build| build as i64)).collect())]
}

impl Table {
    /// Formats the build in the column `name` with its number for people: `key #3`. Returns `-` for a row without a
    /// build.
    pub(crate) fn build(&self, name: &str, row: usize) -> String {
        let number = match self.column(&format!("{name}_number")).map(|c| c.cell(row)) {
            Some(Cell::Int(number)) => number,
            _ => return "-".to_owned(),
        };
        let key = self.text_of(name, row);
        format!("{key} #{number}")
    }

    /// Formats a frame and the build in the column `build` for a chart.
    pub(crate) fn name_with_build(&self, row: usize, build: &str, name: fn(&str) -> &str) -> String {
        format!("{} · {}", name(&self.label(row)), self.text_of(build, row))
    }

    /// Adds the builds, the order and the number of all rows of a ranked list to the table.
    pub(crate) fn of_ranked<T>(self, ranked: &Ranked<T>) -> Table {
        let mut table = self.of_builds(&ranked.builds, ranked.rows.len());
        table.sort = ranked.sort;
        table
    }

    pub(crate) fn of_builds(mut self, builds: &Arc<Builds>, rows_total: usize) -> Table {
        self.builds = Some(builds.clone());
        self.rows_total = rows_total;
        self
    }
}

/// Describes the builds: `12 builds by key, 01 to 12`. The count includes failed builds, whose number is stated, but
/// the two keys are of the first and the last build with values.
pub fn extent(builds: &Builds) -> String {
    let good = builds.loaded();
    let ends = [good.clone().next(), good.clone().next_back()].map(|b| b.map_or("", |b| &b.key));
    let n = builds.all.len();
    let order = match builds.order {
        BuildOrder::Key => "by key",
        BuildOrder::Commits => "by their commits",
        BuildOrder::Given => "in the order given",
    };
    let failed = match builds.failed().count() {
        0 => String::new(),
        failed => format!(" ({failed} failed)"),
    };
    format!("{}{failed} {order}, {} to {}", counted(n, "build"), ends[0], ends[1])
}

fn compared(builds: &Builds) -> String {
    match (builds.against, builds.all.first()) {
        (Against::First, Some(first)) => format!("each is compared with {}", first.key),
        _ => "each is compared with the previous build".to_owned(),
    }
}

/// Returns the change of the total from the first to the last build with values, in words, and as a delta for its
/// colour.
fn totals(s: &Summary) -> (String, i64) {
    let cost = CostFormat::in_unit(&s.unit, true, std::iter::once(s.total));
    (format!("{} from the first to the last", cost.change(s.total, "->")), s.total.delta())
}

/// Describes the normalization of a series, or returns `None` without normalization. Builds are normalized to the first
/// build with values.
fn normalized(s: &Summary, builds: &Builds) -> Option<String> {
    let first_key = builds.loaded().next().map_or("", |b| &b.key);
    (s.query.normalize != Normalize::None).then(|| format!("normalized by {} to {first_key}", s.query.normalize.mode()))
}

/// Describes the totals and the builds in one line.
pub(super) fn header(s: &Summary, builds: &Builds) -> String {
    let totals = totals(s).0.replace("->", "→");
    format!("{} ({}): {totals}; {}, {}", s.sample_type, s.unit, extent(builds), compared(builds))
}

/// Writes the lines above the rows: the builds (unless the text is brief), the totals, settings and failed builds.
pub(super) fn text_header(out: &mut dyn Write, s: &Summary, builds: &Builds, is_brief: bool) -> io::Result<()> {
    if !is_brief {
        writeln!(out, "{}; {}", sanitize(&extent(builds)), sanitize(&compared(builds)))?;
    }
    writeln!(out, "{} ({}): {}", sanitize(&s.sample_type), sanitize(&s.unit), totals(s).0)?;
    normalized(s, builds).map_or(Ok(()), |n| writeln!(out, "{}", sanitize(&n)))?;
    settings(out, s)?;
    failed_builds(builds).iter().try_for_each(|line| writeln!(out, "failed: {}", sanitize(line)))
}

/// The minimum number of builds with the same error that are reported together.
const MANY: usize = 3;

/// Describes the builds that failed, with the reasons. Three or more failures with the same reason are most likely due
/// to a pattern that matches several kinds of profiles. They are reported in one line, with one build as an example
/// and, if one exists, a pattern that selects only the loaded builds.
pub fn failed_builds(builds: &Builds) -> Vec<String> {
    let reason = |build: &Build| {
        let error = build.error.clone().unwrap_or_default();
        error.strip_prefix(&format!("{}: ", build.path)).map(str::to_owned).unwrap_or(error)
    };
    let mut reasons: Vec<(String, Vec<&Build>)> = Vec::new();
    for build in builds.failed() {
        let reason = reason(build);
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, failed)) => failed.push(build),
            None => reasons.push((reason, vec![build])),
        }
    }
    let loaded: Vec<&str> = builds.loaded().map(|build| build.path.as_str()).collect();
    let failed: Vec<&str> = builds.failed().map(|build| build.path.as_str()).collect();
    let pattern = if loaded.len() > 1 { pattern_of(&loaded, &failed) } else { None };
    let others = pattern.map_or_else(String::new, |pattern| format!("; select the others with {}", word(&pattern)));
    let describe = |(reason, failed): (String, Vec<&Build>)| match failed.as_slice() {
        [first, ..] if failed.len() >= MANY => {
            vec![format!("{}, such as {}: {reason}{others}", counted(failed.len(), "build"), first.key)]
        }
        failed => failed.iter().map(|build| failure(build)).collect(),
    };
    reasons.into_iter().flat_map(describe).collect()
}

/// Formats the error of a failed build, after the build's key unless the error contains it.
fn failure(build: &Build) -> String {
    let error = build.error.as_deref().unwrap_or_default();
    if error.contains(&build.key) { error.to_owned() } else { format!("{}: {error}", build.key) }
}

pub(super) fn html_header(s: &Summary, builds: &Builds) -> String {
    let (total, delta) = totals(s);
    let class = ["less", "", "more"][(delta.signum() + 1) as usize];
    let mut html = format!(
        "<div>{}; {}</div><div><b>{}</b> ({}): <span class=\"{class}\">{}</span></div>",
        escape(&extent(builds)),
        escape(&compared(builds)),
        escape(&s.sample_type),
        escape(&s.unit),
        escape(&total.replace("->", "→"))
    );
    let mut notes: Vec<String> = failed_builds(builds).iter().map(|line| format!("failed: {line}")).collect();
    notes.extend(normalized(s, builds));
    notes.extend(s.query.settings());
    notes.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
    for note in notes {
        let _ = write!(html, "<div class=\"note\">{}</div>", escape(&note));
    }
    html
}

/// Returns a build as JSON.
fn build_json(b: &Build) -> Value {
    let mut build = match &b.error {
        Some(error) => json!({"key": b.key, "path": b.path, "error": error}),
        None => json!({
            "key": b.key,
            "path": b.path,
            "stacks": b.samples,
            "duration_nanos": b.duration_nanos,
            "time_nanos": b.time_nanos,
            "total": b.total,
            "factor": b.factor,
        }),
    };
    if let Some(subject) = &b.subject {
        build["subject"] = json!(subject);
    }
    build
}

/// Returns the builds as a JSON list. Each build is an object with key and path, and either error or stacks,
/// duration_nanos, time_nanos, total and factor.
pub fn builds_json(builds: &Builds) -> String {
    Value::from(builds.all.iter().map(build_json).collect::<Vec<_>>()).to_string()
}

/// Returns the header fields that identify the builds of a table: the builds, their order, and the build that each is
/// compared with. They replace the fields of the sides.
pub(super) fn builds_header(builds: &Builds) -> Vec<(&'static str, Value)> {
    let order = match builds.order {
        BuildOrder::Key => "key",
        BuildOrder::Commits => "commits",
        BuildOrder::Given => "given",
    };
    let against = match builds.against {
        Against::Previous => "previous",
        Against::First => "first",
    };
    vec![("builds", builds.all.iter().map(build_json).collect()), ("order", json!(order)), ("against", json!(against))]
}
