//! The end of `bench`: explains the runs, or checks them if there are limits, and writes the report files.

use std::path::Path;

use pprofdiff::recording::Recording;
use pprofdiff_explain::Explanation;
use pprofdiff_page::PageView;
use pprofdiff_report::{Format, Report, View};
use pprofdiff_shell::git::Commits;
use pprofdiff_shell::{Failure, Result, say, write_to};

use crate::args::{BenchArgs, CheckArgs, ExplainArgs, GitArgs, SideArgs};
use crate::input::recorded_sources;
use crate::{REGISTRY, check, explain};

/// Rejects options that `explain` or `check` would reject only after all runs: formats, rules, an unreadable or invalid
/// configuration, and, without limits, queries that `explain` does not support.
pub fn check_args(args: &BenchArgs) -> Result<()> {
    let format = args.output.format()?;
    let request = pprofdiff_report::Request::default();
    let query = args.query.request(View::Explain(Default::default())).query;
    if has_limits(args) {
        check::check_config(args.config.as_deref())?;
        if answers(format) {
            request.asking(View::Check(Default::default())).for_format(format, &REGISTRY)?;
        }
    } else {
        pprofdiff_explain::check_query(&query)?;
        if answers(format) {
            request.asking(View::Explain(Default::default())).for_format(format, &REGISTRY)?;
        }
    }
    if answers(format) || args.output.path().is_some() {
        for path in &args.report {
            REGISTRY.format_of_path(path)?;
        }
        return args.fail_on.iter().try_for_each(|rule| Ok(pprofdiff::check::Rules::default().fail_on(rule)?));
    }
    Err(Failure::Message(format!("{} needs a file; set one with -o", format.name)))
}

/// Returns true if `bench` ends like `check`.
fn has_limits(args: &BenchArgs) -> bool {
    !args.fail_on.is_empty() || args.config.is_some() || args.baseline.is_some()
}

/// Returns true if the format can write causes or findings. Other formats write the comparison itself.
fn answers(format: &Format) -> bool {
    let request = pprofdiff_report::Request::default();
    request.asking(View::Explain(Default::default())).for_format(format, &REGISTRY).is_ok()
        || request.asking(View::Check(Default::default())).for_format(format, &REGISTRY).is_ok()
}

/// Explains or checks the runs. Returns the exit code and the commits that reach a cause directly. After a check, it
/// looks for these commits only with `--bisect`, because that needs a separate explanation.
pub fn answer(
    mut args: BenchArgs,
    dir: &Path,
    recording: &Recording,
    has_total_changed: bool,
) -> Result<(u8, Vec<String>)> {
    let input = || SideArgs { files: vec![dir.to_owned()], base: Vec::new(), new: Vec::new() };
    let range = match recording.range.as_str() {
        "" => None,
        range => match Commits::from_range(Path::new("."), range) {
            Ok(_) => Some(range.to_owned()),
            // `bench` also compares a range without commits, for example with an unchanged working tree. Then no
            // commits are ranked.
            Err(Failure::Message(message)) => {
                say(&message);
                None
            }
            Err(e) => return Err(e),
        },
    };
    let git = || GitArgs { range: range.clone() };
    // A format without causes, such as a page, becomes a report file, and the causes go to standard output.
    let mut files = std::mem::take(&mut args.report);
    if let (false, Some(path)) = (answers(args.output.format()?), args.output.path()) {
        files.push(path.to_owned());
        args.output = args.output.without_path();
    }
    let undecided_total = !has_total_changed;
    let explained = ExplainArgs { undecided_total, ..ExplainArgs::for_runs(input(), git(), &args) };
    let (code, candidates) = if !has_limits(&args) {
        let (report, diff, format) = explain::answer(&explained)?;
        write_to(args.output.path(), |out| args.output.write(format, &report, &[], out).map(drop))?;
        for path in &files {
            write_file(path, &diff, &explained)?;
        }
        let candidates = match &report {
            Report::Explain(explanation) => direct(explanation),
            _ => Vec::new(),
        };
        (0, candidates)
    } else {
        let candidates = if args.bisect {
            // The explanation is not written, and `explain` may not support the output format of the check.
            let explained = ExplainArgs { output: args.output.without_path(), ..explained };
            match explain::answer(&explained)?.0 {
                Report::Explain(explanation) => direct(&explanation),
                _ => Vec::new(),
            }
        } else {
            Vec::new()
        };
        let new = recording.runs.iter().find(|run| run.side == "new" && !run.commit.is_empty());
        let baseline = args.baseline(new.map(|run| run.commit.clone()));
        let checked = CheckArgs {
            input: input(),
            fail_on: args.fail_on,
            config: args.config,
            floor: None,
            name: None,
            accept_findings: false,
            // With a baseline, the base consists of stored profiles, which form no pairs with the new runs.
            paired: baseline.dir.is_none(),
            baseline,
            strict: false,
            require_power: false,
            explain: true,
            same_code: None,
            git: git(),
            query: args.query,
            output: args.output,
            report: files,
            load: args.load,
        };
        (check::run(&checked)?, candidates)
    };
    Ok((code, candidates))
}

/// Returns the commits that reach a cause directly, without duplicates.
fn direct(explanation: &Explanation) -> Vec<String> {
    let ranked = explanation.causes.iter().filter_map(|cause| cause.commits.as_ref()).flat_map(|all| &all.ranked);
    let mut commits: Vec<String> = Vec::new();
    for commit in ranked.filter(|commit| commit.direct) {
        if !commits.contains(&commit.commit) {
            commits.push(commit.commit.clone());
        }
    }
    commits
}

/// Writes the explanation in the format of the file extension, or the comparison if the format does not support
/// explanations.
fn write_file(path: &Path, diff: &pprofdiff::Diff, explained: &ExplainArgs) -> Result<()> {
    let format = REGISTRY.format_of_path(path)?;
    let request_in_format = |view| explained.query.request(view).for_format(format, &REGISTRY);
    let mut request = match request_in_format(View::Explain(explain::options(explained)?)) {
        Ok(request) => request,
        Err(_) => request_in_format(View::default())?,
    };
    if let Some(PageView { options, sources }) = request.view.downcast_mut() {
        options.explain = explain::options(explained)?;
        *sources = recorded_sources(&explained.input.files);
    }
    if let View::Profile(options) = &mut request.view {
        *options = crate::packing(Some(path));
    }
    let report = request.answer(diff)?;
    write_to(Some(path), |out| format.write(&report, out, Default::default()))
}
