//! `pprofdiff check`, for CI: reads rules from the command line and the configuration, writes findings, adds accepted
//! findings to the configuration, and exits with the verdict.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::check::{CheckPolicy, SourceLocation};
use pprofdiff::recording::Recording;
use pprofdiff::{Diff, Profile};
use pprofdiff_explain::ExplainedCheck;
use pprofdiff_page::PageView;
use pprofdiff_report::{AcceptedFindings, CheckOptions, Format, Report, Request, View, accepted_findings, exit_code};
use pprofdiff_shell::{Failure, Outputs, Result, git, is_stdin, say, write_to};

use crate::args::{CheckArgs, SideArgs};
use crate::baseline::Baseline;
use crate::explain::own_runtime;
use crate::fetch::url;
use crate::input::{Inputs, one_stdin, recorded_sources};
use crate::next_step::{AnsweredCommand, suggest_next};
use crate::{REGISTRY, open, packing};

/// The configuration file that is read if it exists and --config is not given.
const CONFIG: &str = "pprofdiff.toml";

pub fn run(args: &CheckArgs) -> Result<u8> {
    let format = args.output.format()?;
    let mut request = args.query.request(View::Check(options(args)?)).for_format(format, &REGISTRY)?;
    let reports = args.report.iter().map(|path| {
        let format = REGISTRY.format_of_path(path)?;
        Ok((path, format, reported(args, &request, path, format)?))
    });
    let reports = reports.collect::<Result<Vec<_>>>()?;
    let commits = git::commits(args.git.range.as_deref())?;
    let (diff, warnings, mut store) = load(args)?;
    let mut report = answer(&request, &diff, &warnings)?;
    if let (Report::Check(check), true) = (&report, args.accept_findings)
        && accept_findings(check, args.config.as_deref())?
    {
        // The report and the exit code have the verdict with the new exceptions.
        request.view = View::Check(options(args)?);
        report = answer(&request, &diff, &warnings)?;
    }
    if let (Report::Check(check), Some(commits)) = (&mut report, &commits) {
        for why in check.rules.iter_mut().filter_map(|rule| rule.why.as_mut()) {
            commits.rank(&diff, &request.query, Arc::make_mut(why))?;
        }
    }
    if let Report::Check(check) = &mut report {
        let git = if args.git.range.is_some() { git::root(Path::new(".")) } else { None };
        let folders: Vec<PathBuf> = git.into_iter().chain(std::env::current_dir().ok()).collect();
        shorten_places(check, &folders);
    }
    for (path, format, request) in reports {
        let compared = request.map(|request| request.answer(&diff)).transpose()?;
        write_to(Some(path), |out| format.write(compared.as_ref().unwrap_or(&report), out, Default::default()))?;
    }
    let verdict = match &report {
        Report::Check(check) => exit_code(check.verdict),
        _ => 2,
    };
    let mut left = 0;
    let write = |out: &mut dyn Write| args.output.write(format, &report, &[], out).map(|tokens| left = tokens);
    let written = match write_to(args.output.path(), write) {
        // The exit code has the verdict even if the reader of the output stops early (`| head`).
        Ok(()) | Err(Failure::ClosedPipe) => Ok(verdict),
        Err(e) => Err(e),
    };
    // With a baseline, no other verb has the same base.
    if args.baseline.dir.is_none() {
        let (input, load, query) = (&args.input, &args.load, &request.query);
        let asked = AnsweredCommand { verb: "check", regex: None, input, query, load, has_sources: false };
        suggest_next(&asked, &report, format, &args.output, left);
    }
    // Storing comes last, so that an error in the store does not hide the findings.
    match (&report, &mut store) {
        (Report::Check(check), Some((baseline, new)))
            if args.baseline.accept || args.baseline.store && !check.exceeds_a_limit() =>
        {
            baseline.store(&distinct(new), args.baseline.accept)?;
        }
        (Report::Check(_), Some((_, new))) if args.baseline.store && !new.is_empty() => {
            say("the new profiles are not stored, because they exceed a limit; --accept stores them");
        }
        _ => {}
    }
    written
}

/// Appends the failing findings to the allow-list of the configuration, which may not exist yet. Returns true if there are
/// any. Failures of totals and groups are not accepted, because an exception without a frame turns its rule off.
fn accept_findings(check: &ExplainedCheck, named: Option<&Path>) -> Result<bool> {
    let AcceptedFindings { entries, count, refused } = accepted_findings(check);
    let path = named.unwrap_or(Path::new(CONFIG));
    let name = path.display();
    for rule in refused {
        say(&format!("{rule}: not accepted, because an exception would turn this rule off; raise its limit instead"));
    }
    if count == 0 {
        say(&format!("nothing was added to {name}"));
        return Ok(false);
    }
    let mut options = CheckOptions::default();
    let old = config(named)?.map_or_else(String::new, |(_, text)| text);
    let line_end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let text = match old.is_empty() {
        true => entries.trim_start().to_owned(),
        false => format!("{old}{line_end}{entries}"),
    };
    options.config = Some(text.clone());
    options.rules().map_err(|e| {
        Failure::Message(format!(
            "{name}: cannot add to the allow-list; write `allow = [...]` as [[check.allow]] tables: {e}"
        ))
    })?;
    pprofdiff::output::write_file(path, |out| out.write_all(text.as_bytes()))?;
    let findings = if count == 1 { "finding" } else { "findings" };
    say(&format!("added {count} {findings} to the allow-list of {name}"));
    Ok(true)
}

/// Makes source files relative to the first of the folders that contains them. GitHub and code scanning show only files
/// with a path in the repository. Relative paths of other files, such as `math/big/int.go` of Go's library, are listed as
/// foreign. If the folders have none of the files, the sources are elsewhere, and no path is listed.
fn shorten_places(check: &mut ExplainedCheck, folders: &[PathBuf]) {
    let (mut foreign_files, mut is_checkout) = (Vec::new(), false);
    let mut shorten = |place: &mut SourceLocation| {
        let relative = folders.iter().find_map(|folder| Path::new(&place.file).strip_prefix(folder).ok());
        if let Some(relative) = relative.and_then(Path::to_str).filter(|relative| !relative.is_empty()) {
            place.file = relative.to_owned();
        }
        match Path::new(&place.file) {
            file if file.is_absolute() => {}
            file if folders.iter().any(|folder| folder.join(file).is_file()) => is_checkout = true,
            _ => foreign_files.push(place.file.clone()),
        }
    };
    for rule in &mut check.rules {
        rule.findings.iter_mut().filter_map(|finding| finding.place.as_mut()).for_each(&mut shorten);
        if let Some(why) = &mut rule.why {
            Arc::make_mut(why).causes.iter_mut().filter_map(|cause| cause.place.as_mut()).for_each(&mut shorten);
        }
    }
    if is_checkout {
        check.foreign_files = foreign_files;
    }
}

/// Returns the request for a report whose format can't write findings: it shows the comparison instead. Returns `None`
/// if the format can write findings.
fn reported(args: &CheckArgs, check: &Request, path: &Path, format: &Format) -> Result<Option<Request>> {
    if check.for_format(format, &REGISTRY).is_ok() {
        return Ok(None);
    }
    let mut request = check.asking(View::default()).for_format(format, &REGISTRY)?;
    if let Some(PageView { options, sources }) = request.view.downcast_mut() {
        options.explain = own_runtime(args.config.as_deref())?;
        *sources = recorded_sources(&args.input.files);
    }
    if let View::Profile(options) = &mut request.view {
        *options = packing(Some(path));
    }
    Ok(Some(request))
}

/// A baseline, and the profiles that may be stored in it.
type BaselineStore<'a> = (Baseline<'a>, Vec<Arc<Profile>>);

/// Returns the findings, with the warnings of the baseline.
fn answer(request: &Request, diff: &Diff, warnings: &[String]) -> Result<Report> {
    let mut report = request.answer(diff)?;
    if let (Report::Check(check), false) = (&mut report, warnings.is_empty()) {
        Arc::make_mut(&mut check.summary).warnings.extend_from_slice(warnings);
    }
    Ok(report)
}

/// Returns the comparison, the warnings of the baseline, and the place where the new side may be stored. If the baseline is
/// still empty and may be filled, the new side is compared with itself, which validates the rules and the profiles before
/// they are stored.
fn load(args: &CheckArgs) -> Result<(Diff, Vec<String>, Option<BaselineStore<'_>>)> {
    let outputs = Outputs::new(args.report.iter().map(PathBuf::as_path).chain(args.output.path()));
    let Some(dir) = &args.baseline.dir else {
        if let [one] = args.input.files.as_slice()
            && !Recording::is_in(one)
            && !args.load.profiles.0.has_both_times()
        {
            return Err(Failure::Message("a check needs BASE and NEW, or --baseline DIR and NEW".to_owned()));
        }
        let diff = open(&args.input, &args.load, outputs, args.query.sample_type())?;
        return Ok((diff, Vec::new(), None));
    };
    if is_stdin(dir) || url(dir).is_some() {
        return Err(Failure::Message(format!("--baseline must be a folder, not {}", dir.display())));
    }
    let (new, inputs) = (new_side(&args.input)?, Inputs::new(&args.load, outputs)?);
    let new = inputs.sources(&new)?;
    let new = Diff::load_side(&new, &inputs.options)?;
    let (rules, _) = options(args)?.rules()?;
    let mut baseline = Baseline::open(dir, &args.baseline, rules.name())?;
    // Stored profiles are not recordings, so a time selection of the base does not apply to them.
    let mut of_base = inputs.options.of_base();
    of_base.time = None;
    let base = baseline.profiles(&new, &of_base);
    let mut warnings = baseline.warnings();
    if base.is_empty() {
        let nothing = match baseline.count() {
            0 => format!("{} has no profile of {} to compare with", dir.display(), baseline.description()),
            n => format!("{}: none of the {n} entries of {} is usable", dir.display(), baseline.description()),
        };
        // A baseline whose entries can't be read must not count as empty: the next profiles would become its start,
        // even if they are a regression.
        let may_begin = args.baseline.accept || args.baseline.store && baseline.count() == 0;
        if !may_begin {
            warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
            let way_out = match baseline.count() {
                0 => "store some with --store",
                _ => "repair or remove the skipped entries, or start over with these profiles: --accept",
            };
            return Err(Failure::Message(format!("{nothing}; {way_out}")));
        }
        warnings.push(format!("{nothing}; {} stored", new.len()));
    }
    let diff = Diff::new(if base.is_empty() { &new } else { &base }, &new)?;
    Ok((diff, warnings, Some((baseline, new))))
}

/// Returns the profiles without duplicates. A file with several names is loaded once and occurs several times.
fn distinct(profiles: &[Arc<Profile>]) -> Vec<Arc<Profile>> {
    let mut distinct: Vec<Arc<Profile>> = Vec::new();
    for profile in profiles {
        if !distinct.iter().any(|earlier| Arc::ptr_eq(earlier, profile)) {
            distinct.push(profile.clone());
        }
    }
    distinct
}

/// Returns the files of the new side, when the base comes from the baseline.
fn new_side(args: &SideArgs) -> Result<Vec<PathBuf>> {
    if let [dir] = args.files.as_slice()
        && Recording::is_in(dir)
    {
        let [_, new] = Recording::read_sides(dir)?;
        return Ok(new);
    }
    let new = if args.files.is_empty() { &args.new } else { &args.files };
    if new.is_empty() {
        return Err(Failure::Message("no profile is given; a check with --baseline needs NEW".to_owned()));
    }
    one_stdin(new.iter())?;
    Ok(new.clone())
}

/// Reads the configuration file in `named`, or the default file if it exists. Returns its name and text.
pub fn config(named: Option<&Path>) -> Result<Option<(String, String)>> {
    let Some(path) = named.or_else(|| Some(Path::new(CONFIG)).filter(|path| path.exists())) else { return Ok(None) };
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((name, text))),
        Err(e) => Err(Failure::Message(format!("{name}: {e}"))),
    }
}

/// Checks the rules in a configuration file, for commands that take measurements before they check.
pub fn check_config(named: Option<&Path>) -> Result<()> {
    let Some((name, text)) = config(named)? else { return Ok(()) };
    let mut options = CheckOptions::default();
    options.config = Some(text);
    options.rules().map(drop).map_err(|e| Failure::Message(format!("{name}: {e}")))
}

/// Returns the options from the arguments and the configuration.
///
/// # Errors
/// Fails if the configuration can't be read, or if a rule is invalid. Callers report this before they load a profile.
pub fn options(args: &CheckArgs) -> Result<CheckOptions> {
    let mut options = CheckOptions::default();
    if let Some((name, text)) = config(args.config.as_deref())? {
        options.config = Some(text);
        options.rules().map_err(|e| Failure::Message(format!("{name}: {e}")))?;
    }
    (options.fail_on, options.floor) = (args.fail_on.clone(), args.floor.clone());
    options.name.clone_from(&args.name);
    options.policy = CheckPolicy::default()
        .with_strict(args.strict)
        .with_paired(args.paired)
        .with_require_power(args.require_power)
        .with_explain(args.explain)
        .with_same_code(args.same_code);
    options.rules()?;
    Ok(options)
}
