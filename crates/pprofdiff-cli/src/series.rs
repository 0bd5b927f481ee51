//! `pprofdiff series`: follows frames along a history of builds, or compares many builds with one base. A failed build
//! is reported and does not stop the others.

use std::path::Path;

use pprofdiff::Source;
use pprofdiff::advice::word;
use pprofdiff::input::{GroupReadings, GroupedBuilds, HistoryBuilds, group_readings, sort_builds};
use pprofdiff::random::HashMap;
use pprofdiff::text::sanitize;
use pprofdiff_report::{Form, Format, GivenOptions, RUNS, Report, Request, Takes, View, answer_lines, failed_builds};
use pprofdiff_series::histories::Histories;
use pprofdiff_series::{Against, BuildOrder, FEWEST_BUILDS, Series, SeriesOptions, ShiftKind};
use pprofdiff_shell::git::{self, CommitPlace};
use pprofdiff_shell::terminal::Progress;
use pprofdiff_shell::{Failure, Outputs, Result, error_line, say, write_to};

use crate::args::{SeriesArgs, SeriesOrder, SeriesRows};
use crate::next_step::suggest_explanation;
use crate::{Inputs, REGISTRY, explain, is_pattern, one_stdin};
use pprofdiff::shared::short_lists::sort_by_key;

pub fn run(args: &SeriesArgs) -> Result<()> {
    let format = args.output.format()?;
    let inputs = Inputs::without_base(&args.load, Outputs::new(args.output.path()))?;
    let mut builds = match groups(args, &inputs)? {
        Some(groups) if !groups.keys.is_empty() => return run_groups(args, &inputs, format, groups),
        Some(groups) => groups.groups.into_iter().flat_map(|group| group.builds).collect(),
        None => builds(args, &inputs)?,
    };
    let commits = match &args.git {
        Some(dir) => Some(order_by_commits(dir, &mut builds)?),
        None => {
            if args.order == SeriesOrder::Key && git::are_commits(builds.iter().map(|(key, _)| key.as_str())) {
                say(
                    "warning: the keys of the builds look like commits, and are ordered by name; pass --git to order them by \
                     history",
                );
            }
            None
        }
    };
    let progress = Progress::new(Some(builds.len() as u64), "builds");
    let count = builds.len();
    let builds = builds.into_iter().inspect(|_| progress.advance());
    let series = load(args, &inputs, format, count, commits.as_ref(), builds);
    progress.finish();
    let series = series?;
    let failed = failed_builds(&series.builds);
    if failed.len() == series.errors().len() {
        series.errors().iter().for_each(|(_, error)| say(&error_line(error)));
    } else {
        failed.iter().for_each(|line| say(line));
    }
    let (report, closing) = answer(args, &inputs, format, &series)?;
    let closing = if closing { answer_of_largest(&series, args, &inputs)? } else { None };
    let commit_lines = match (&args.git, &commits) {
        (Some(dir), Some(commits)) if format.form == Form::Text => first_commits(dir, &series, commits, args)?,
        _ => Vec::new(),
    };
    // The endings of the text, from the shortest to the longest.
    let mut endings = vec![String::new()];
    match closing {
        Some(texts) => {
            let all = |text: String| [&commit_lines[..], &[text]].concat().join("\n");
            endings.extend(texts.map(|text| format!("\n{}\n", all(text))));
        }
        None if commit_lines.is_empty() => endings.clear(),
        None => endings.push(format!("\n{}\n", commit_lines.join("\n"))),
    }
    write_to(args.output.path(), |out| args.output.write(format, &report, &endings, out).map(drop))?;
    suggest_explanation(&series, args, format);
    match series.errors().len() {
        0 => Ok(()),
        failed => Err(Failure::Message(format!("{failed} of {} builds failed", series.builds.all.len()))),
    }
}

/// The commits of builds, by the keys of the builds.
type BuildCommits = HashMap<String, CommitPlace>;

/// Returns the builds of several histories, if `--group` is given.
fn groups(args: &SeriesArgs, inputs: &Inputs) -> Result<Option<GroupedBuilds>> {
    let Some(keys) = &args.group else { return Ok(None) };
    let [one] = args.builds.as_slice() else {
        return Err(Failure::Message("--group needs one pattern, or one manifest file".to_owned()));
    };
    if one.is_file() {
        inputs.outputs.check_input(one)?;
    }
    let mut groups = inputs.finder().build_groups(&one.to_string_lossy(), keys, &inputs.options)?;
    for (_, source) in groups.groups.iter_mut().flat_map(|group| &mut group.builds) {
        *source = inputs.resolve(source.clone(), true)?;
    }
    Ok(Some(groups))
}

/// Ranks several histories by their largest lasting change.
fn run_groups(args: &SeriesArgs, inputs: &Inputs, format: &Format, mut all: GroupedBuilds) -> Result<()> {
    REGISTRY.check_histories(format)?;
    let (mut request, closes) = request(args, true, format)?;
    if closes {
        return Err(Failure::Message(
            "--explain with --group explains lasting changes, which are the default rows; leave out --rows".to_owned(),
        ));
    }
    // Text and Markdown show the largest change of each history, so they need only its cause.
    if let (View::Shifts { limit, explain: Some(_), .. }, Form::Text | Form::Prose) = (&mut request.view, format.form) {
        *limit = Some(1);
    }
    let query = request.of_one_type()?.clone();
    let mut commits = None;
    if let Some(dir) = &args.git {
        let mut builds: Vec<(String, ())> = Vec::new();
        builds.extend(all.groups.iter().flat_map(|group| &group.builds).map(|(key, _)| (key.clone(), ())));
        builds.sort();
        builds.dedup();
        let places = order_by_commits(dir, &mut builds)?;
        for group in &mut all.groups {
            sort_by_key(&mut group.builds, |(key, _)| places.get(key).map(|commit| commit.position));
        }
        commits = Some(places);
    }
    let progress = Progress::new(Some(all.groups.len() as u64), "histories");
    let options = |_: &HistoryBuilds| Ok(series_options(args, inputs, commits.as_ref()));
    let histories = Histories::load(all.keys, all.groups, &query, args.shown.sort(), options, || progress.advance());
    progress.finish();
    let histories = histories?;
    for history in &histories.all {
        failed_builds(&history.series.builds)
            .iter()
            .for_each(|line| say(&format!("{}: {line}", history.values.join("/"))));
    }
    // The other forms contain failed histories. Rows do not, so these are printed as messages.
    for failed in histories.failed.iter().filter(|_| format.form == Form::Rows) {
        say(&format!("{}: {}", failed.values.join("/"), error_line(&failed.cause)));
    }
    let limit = args.shown.n.map_or(HISTORIES_SHOWN, |n| if n == 0 { usize::MAX } else { n });
    let report = request.answer_histories(&histories, limit, &inputs.options)?;
    write_to(args.output.path(), |out| args.output.write(format, &report, &[], out).map(drop))?;
    let (failed_builds, builds) = histories.failed_builds();
    match (histories.failed.len(), failed_builds) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Failure::Message(format!("{failed} of {builds} builds failed"))),
        (failed, _) => {
            let all = failed + histories.all.len();
            Err(Failure::Message(format!("{failed} of {all} histories failed")))
        }
    }
}

/// The default number of histories in text and Markdown.
const HISTORIES_SHOWN: usize = 20;

/// Orders builds by the history of their commits, oldest first. Returns the commits.
fn order_by_commits<T>(dir: &Path, builds: &mut [(String, T)]) -> Result<BuildCommits> {
    let keys: Vec<&str> = builds.iter().map(|(key, _)| key.as_str()).collect();
    let places = git::commit_places(dir, &keys)?;
    let commits: BuildCommits = keys.iter().map(|key| (*key).to_owned()).zip(places).collect();
    sort_by_key(builds, |(key, _)| commits.get(key).map(|commit| commit.position));
    Ok(commits)
}

/// Names the commit of the first build of each lasting change in one line, and the number of commits that may have
/// introduced the change. Several frames that changed with the same build have one line, unless different commits may
/// have introduced their changes. The lines about such a build name a frame.
fn first_commits(dir: &Path, series: &Series, commits: &BuildCommits, args: &SeriesArgs) -> Result<Vec<String>> {
    let key = |build: usize| series.builds.all.get(build).map_or("", |build| build.key.as_str());
    let rows = args.shown.n.map_or(HISTORIES_SHOWN, |n| if n == 0 { usize::MAX } else { n });
    let (mut lines, mut named): (Vec<FirstCommit>, Vec<_>) = (Vec::new(), Vec::new());
    for shift in series.shifts(args.shown.sort()).rows.iter().take(rows) {
        let [earliest, latest] = shift.between;
        let before = series.builds.loaded_before(earliest);
        let (Some(first), Some(base), Some(tip)) =
            (commits.get(key(shift.build)), commits.get(key(before)), commits.get(key(latest)))
        else {
            continue;
        };
        if shift.kind == ShiftKind::Drift || named.contains(&(shift.build, before, latest)) {
            continue;
        }
        named.push((shift.build, before, latest));
        let direction = if shift.value.delta() > 0 { "bad" } else { "good" };
        let build = format!("{} {}", key(shift.build), first.subject);
        let line = match git::commits_between(dir, &base.id, &tip.id)? {
            Some(0) => format!("first {direction} build: {build}; the build before it has the same commit"),
            Some(1) => format!("first {direction} commit: {build}"),
            Some(count) => {
                format!(
                    "first {direction} build: {build}; the change is from one of {count} commits since {}",
                    key(before)
                )
            }
            None => format!(
                "first {direction} build: {build}; {} before it is on another branch, so the change may be older",
                key(before)
            ),
        };
        lines.push(FirstCommit { build: shift.build, line, frame: series.frames.name(shift.frame) });
    }
    let is_alone = |first: &FirstCommit| lines.iter().filter(|other| other.build == first.build).count() == 1;
    let show = |first: &FirstCommit| match is_alone(first) {
        true => sanitize(&first.line).into_owned(),
        false => sanitize(&format!("{} ({})", first.line, first.frame)).into_owned(),
    };
    Ok(lines.iter().map(show).collect())
}

/// The line about the first build of a lasting change.
struct FirstCommit {
    build: usize,
    line: String,
    /// The frame with the largest change.
    frame: String,
}

/// Returns the options for loading builds.
fn series_options(args: &SeriesArgs, inputs: &Inputs, commits: Option<&BuildCommits>) -> SeriesOptions {
    let against = if args.base.is_some() { Against::First } else { Against::Previous };
    let order = match (commits, args.order) {
        (Some(_), _) => BuildOrder::Commits,
        (None, SeriesOrder::Key) => BuildOrder::Key,
        (None, SeriesOrder::Given) => BuildOrder::Given,
    };
    let subjects = commits.into_iter().flatten().map(|(key, commit)| (key.clone(), commit.subject.clone()));
    let subjects: HashMap<String, String> = subjects.collect();
    let options = SeriesOptions::default().with_load(inputs.options.clone()).with_against(against);
    let options = options.with_order(order).with_subjects(subjects);
    #[cfg(feature = "store")]
    let options = options.with_known(&pprofdiff_series::StoreColumns);
    options
}

/// Loads `count` builds. `commits` are their commits, if they are ordered by history.
pub fn load(
    args: &SeriesArgs,
    inputs: &Inputs,
    format: &Format,
    count: usize,
    commits: Option<&BuildCommits>,
    builds: impl Iterator<Item = (String, Source)>,
) -> Result<Series> {
    // Rejects unsupported options before a profile is loaded. The default kind of rows depends on the number of builds.
    let (request, _) = request(args, args.base.is_none() && count >= FEWEST_BUILDS, format)?;
    let query = request.of_one_type()?.clone();
    Ok(Series::load(builds, &query, &series_options(args, inputs, commits))?)
}

/// Returns the report about the builds, and whether a line with the cause of the largest change follows it.
pub fn answer(args: &SeriesArgs, inputs: &Inputs, format: &Format, series: &Series) -> Result<(Report, bool)> {
    let (request, closing) = request(args, series.is_history(), format)?;
    Ok((request.answer_series(series, &inputs.options)?, closing))
}

/// Returns the request, and whether a line with the cause of the largest change follows its answer. `is_history` is false
/// for fewer than six builds, and for builds that are compared with one base; such builds show movers by default.
fn request(args: &SeriesArgs, is_history: bool, format: &Format) -> Result<(Request, bool)> {
    let (sort, limit) = (args.shown.sort(), None);
    let rows = args.rows.unwrap_or(if is_history { SeriesRows::Shifts } else { SeriesRows::Movers });
    let view = match rows {
        SeriesRows::Shifts => {
            let explain = args.explain.then(|| explain::own_runtime(None)).transpose()?;
            View::Shifts { sort, limit, explain }
        }
        SeriesRows::Movers => View::Movers { sort, limit },
        SeriesRows::Steps => View::Steps { sort, limit },
        SeriesRows::Values => View::Values { dense: args.dense, limit },
    };
    let options = [(Takes::Dense, args.dense), (Takes::Explain, args.explain)];
    let given = GivenOptions::new(args.shown.n, &options).with_budget(args.output.within.budget);
    let closes = args.explain && !view.spec().takes.contains(&Takes::Explain) && format.form == Form::Text;
    Ok((args.query.request(view).for_output(format, &REGISTRY, &given)?, closes))
}

/// Explains how the builds after the largest change differ from the builds before it: first in a brief text, then in full.
fn answer_of_largest(series: &Series, args: &SeriesArgs, inputs: &Inputs) -> Result<Option<[String; 2]>> {
    let Some(point) = series.largest_change(args.shown.sort(), RUNS) else { return Ok(None) };
    let explanation = series.explain(&point, &inputs.options, &explain::own_runtime(None)?)?;
    let compared = series.compared_builds(&point);
    let text = |is_brief: bool| {
        let lines = answer_lines(&explanation, &series.summary.warnings, is_brief).join("\n");
        format!("explain: {}: {lines}", sanitize(&compared))
    };
    Ok(Some([true, false].map(text)))
}

/// Returns the builds of a pattern. Refuses a pattern with several varying parts, and shows the possible meanings.
fn history(pattern: &Path, inputs: &Inputs) -> Result<Vec<(String, Source)>> {
    let text = pattern.to_string_lossy();
    let (builds, varying) = inputs.finder().builds_and_varying_parts(&text)?;
    if let Some(GroupReadings { groups, single, .. }) = group_readings(&varying, &builds) {
        let command = |keys: &String| format!("pprofdiff series --group {} {}", word(keys), word(&text));
        return Err(Failure::Choice(
            format!(
                "several parts of {text:?} vary, and one of them is the build; choose the histories, or one history:"
            ),
            groups.iter().chain(&single).map(command).collect(),
        ));
    }
    builds.into_iter().map(|(key, source)| Ok((key, inputs.resolve(source, true)?))).collect()
}

/// Returns the builds in the arguments in the requested order, with the base first.
fn builds(args: &SeriesArgs, inputs: &Inputs) -> Result<Vec<(String, Source)>> {
    one_stdin(args.builds.iter().chain(&args.base))?;
    let mut builds = match args.builds.as_slice() {
        [one] if is_pattern(one) && args.order == SeriesOrder::Given => {
            return Err(Failure::Message(
                "--order given needs a list of files, because the files of a pattern have no order".to_owned(),
            ));
        }
        [one] if args.base.is_none() && is_pattern(one) => history(one, inputs)?,
        files => inputs.named(files)?,
    };
    if args.order == SeriesOrder::Key {
        sort_builds(&mut builds);
    }
    if let Some(base) = &args.base {
        builds.insert(0, ("base".to_owned(), inputs.source(base)?));
    }
    Ok(builds)
}
