//! The `pprofdiff` command as a function: it takes arguments and returns an exit code.
//!
//! The binary that cargo installs and the console script of the Python package run the same code. The statistics are in
//! the crate `pprofdiff` and the formats in `pprofdiff-report`. This crate parses arguments, reads inputs, runs
//! benchmarks and servers, and writes results.

mod args;
mod baseline;
mod batch;
mod bench;
mod bucket;
mod check;
mod delta;
mod explain;
mod fetch;
mod input;
#[cfg(feature = "mcp")]
mod mcp;
mod mistakes;
mod next_step;
mod pprof_compat;
mod series;
#[cfg(feature = "serve")]
mod serve;
#[doc(hidden)]
pub mod sides;
#[cfg(feature = "store")]
mod store;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use fetch::server_source;

use args::{
    Cli, ConvertArgs, InfoArgs, Later, MergeArgs, RawArgs, SourceArgs, TopArgs, Verb, ViewArgs, ViewVerb,
    converted_formats,
};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use input::{Inputs, is_pattern, one_stdin, open, open_with, open_with_addresses, recorded_sources};
use next_step::{AnsweredCommand, suggest_next};
use pprofdiff::advice::operand;
use pprofdiff::list::SourceDirs;
use pprofdiff::{Cancellation, Compression, Diff, Granularity, Normalize, WriteOptions};
use pprofdiff_page::PageView;
use pprofdiff_report::{
    Form, Format, GivenOptions, Registry, Report, Request, Style, Takes, View, explain_line, json_schema,
    missing_sources,
};
use pprofdiff_shell::terminal::{self, AtInterrupt, Phases, stop_at_interrupt};
use pprofdiff_shell::{Failure, Outputs, Result, exit_code, is_stdin, is_watched, say, warn, write_to};

/// The formats and views of the command.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::standard().with(&pprofdiff_page::ALL));

/// The replacement for builds without the MCP server.
#[cfg(not(feature = "mcp"))]
mod mcp {
    use pprofdiff_shell::{Failure, Result};

    use crate::args::McpArgs;

    pub fn run(_: &McpArgs) -> Result<()> {
        let message =
            "this build has no MCP server (feature \"mcp\" is off); the command that pip and cargo install has it";
        Err(Failure::Message(message.to_owned()))
    }
}

/// The replacement for builds without the page server.
#[cfg(not(feature = "serve"))]
mod serve {
    use pprofdiff_shell::{Failure, Result};

    use crate::args::ServeArgs;

    pub fn run(_: &ServeArgs) -> Result<()> {
        let message = "this build can't serve pages (feature \"serve\" is off); -o report.html writes a page";
        Err(Failure::Message(message.to_owned()))
    }
}

/// Shows on a terminal, for each profile whose function names are missing, a command that adds the names.
fn advise(diff: &Diff) {
    if !io::stderr().is_terminal() {
        return;
    }
    for (_, profile) in diff.profiles() {
        if let Some(command) = profile.advice() {
            say(&format!("names for {}: {command}", profile.name()));
        }
    }
}

/// Finds the commits of builds in the repository of a folder, for the Python binding. Returns for each key the place of
/// its commit, which grows from old to new commits, and its subject.
///
/// # Errors
/// Fails like [`pprofdiff_shell::git::commit_places`], with the message.
#[doc(hidden)]
pub fn commit_places(folder: &Path, keys: &[String]) -> Result<Vec<(usize, String)>, String> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    match pprofdiff_shell::git::commit_places(folder, &keys) {
        Ok(places) => Ok(places.into_iter().map(|commit| (commit.position, commit.subject)).collect()),
        Err(Failure::Message(message)) => Err(message),
        Err(_) => Err("git was interrupted".to_owned()),
    }
}

/// Runs the command. `args` begins with the program's name. Returns the exit code: 0 done, 2 usage or input error (one
/// line on standard error), 130 interrupted by Ctrl-C; `check`, `explain --exit-code` and `bench` with limits also
/// return 1 and 3, and checks 4.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    pprofdiff_shell::name_options(args::long_options);
    let args = match pprof_compat::translate_args(args) {
        Ok(args) => args,
        Err(message) => return exit_code(Err(Failure::Message(message))),
    };
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) if cli.verb.is_some() => match mistakes::several_heaps(&args) {
            Some(message) => return exit_code(Err(Failure::Message(message))),
            None => cli,
        },
        Err(e) if !e.use_stderr() => return exit_code(print_help(&e)),
        parsed => match (mistakes::explain(&args, parsed.as_ref().err()), parsed) {
            (Some(message), _) => return exit_code(Err(Failure::Message(message))),
            (None, Ok(cli)) => cli,
            (None, Err(e)) => {
                let reason = usage(&e);
                let help = if reason.ends_with('?') { "" } else { "; see pprofdiff --help" };
                return exit_code(Err(Failure::Message(reason + help)));
            }
        },
    };
    let work = Cancellation::new();
    if matches!(cli.verb, Some(Verb::Bench(_))) {
        terminal::interrupt_at_kill();
    }
    let pool = rayon::ThreadPoolBuilder::new().build();
    match cli.verb {
        // `mcp` holds nothing that needs cleanup on Ctrl-C. `serve --open` can leave its redirect page, whose address
        // then no longer works.
        Some(Verb::Serve(_) | Verb::Mcp(_)) => {}
        Some(Verb::Batch(_)) => stop_at_interrupt(&work, AtInterrupt::Finish),
        Some(Verb::Bench(_)) => stop_at_interrupt(&work, AtInterrupt::CleanUp),
        _ => stop_at_interrupt(&work, AtInterrupt::Exit),
    }
    let run = || match cli.verb {
        // These two verbs continue after `work` is stopped, to write the finished part.
        Some(Verb::Batch(Later(args))) => batch::run(&args, &work),
        Some(Verb::Bench(Later(args))) => bench::run(args, &work),
        _ => match work.run(|| execute(cli))? {
            // The same Ctrl-C can also end a pipe that this command reads, which looks like an input error.
            Err(_) if work.is_stopped() => Err(Failure::Interrupted),
            done => done,
        },
    };
    let result = {
        let _phases = Phases::show(&work);
        match pool {
            Ok(pool) => pool.install(run),
            // If the system allows no more threads, this thread does all the work.
            Err(_) => run(),
        }
    };
    exit_code(result)
}

/// Prints help or the version on standard output. This is not an error.
fn print_help(help: &clap::Error) -> Result<u8> {
    help.print()?;
    io::stdout().flush()?;
    Ok(0)
}

/// Returns clap's error message as one line. clap's own text has several lines, with tips, the usage and a reference to
/// `--help`.
fn usage(e: &clap::Error) -> String {
    let text = e.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("For more") && !line.starts_with("tip:");
    let reason = lines.filter(is_reason).collect::<Vec<_>>().join(" ");
    let reason = reason.trim_start_matches("error: ").trim_end_matches(" found");
    // Replaces the words of the standard library's integer parsers.
    let reason = reason.replace("invalid digit found in string", "expected a whole number");
    let suggestions = [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let suggestion = suggestions.into_iter().find_map(|kind| match e.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        Some(ContextValue::Strings(words)) => words.first().cloned(),
        _ => None,
    });
    match suggestion {
        Some(word) => format!("{reason}; did you mean {word}?"),
        None => reason,
    }
}

/// Runs the verb and returns the exit code.
fn execute(cli: Cli) -> Result<u8> {
    match cli.verb {
        None => diff(&cli.diff.0),
        Some(Verb::Diff(Later(args))) => diff(&args),
        Some(Verb::Top(Later(args))) => {
            let request = top_request(&args)?;
            show_top(&args, request, &open_view(&args.view, false)?)
        }
        Some(Verb::View(ViewVerb { view, sources, args })) => show_view(&args, sources.as_ref(), view),
        Some(Verb::Info(Later(args))) => info(&args),
        Some(Verb::Raw(Later(args))) => raw(&args, View::Raw),
        Some(Verb::Comments(Later(args))) => raw(&args, View::Comments),
        Some(Verb::Merge(Later(args))) => merge(&args),
        Some(Verb::Convert(Later(args))) => convert(&args),
        Some(Verb::Delta(Later(args))) => delta::run(&args),
        Some(Verb::Batch(Later(args))) => return batch::run(&args, &Cancellation::new()),
        Some(Verb::Bench(Later(args))) => return bench::run(args, &Cancellation::new()),
        Some(Verb::Series(Later(args))) => series::run(&args),
        #[cfg(feature = "store")]
        Some(Verb::Store(Later(args))) => store::run(&args),
        Some(Verb::Check(Later(args))) => return check::run(&args),
        Some(Verb::Explain(Later(args))) => return explain::run(&args),
        Some(Verb::Serve(Later(args))) => serve::run(&args),
        Some(Verb::Mcp(Later(args))) => mcp::run(&args),
        Some(Verb::Formats { schema }) => {
            let text = if schema { format!("{:#}\n", json_schema()) } else { args::formats() };
            io::stdout().write_all(text.as_bytes())?;
            Ok(io::stdout().flush()?)
        }
        Some(Verb::Completions { shell }) => {
            io::stdout().write_all(&shell.script())?;
            Ok(io::stdout().flush()?)
        }
        Some(Verb::Man { dir }) => manual(&dir),
    }?;
    Ok(0)
}

/// Writes man pages for the command and for each verb.
fn manual(dir: &Path) -> Result<()> {
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|e| Failure::Message(format!("{}: {e}", dir.display())))
}

fn diff(args: &TopArgs) -> Result<()> {
    let input = &args.view.input;
    let request = top_request(args)?;
    let diff = open_view(&args.view, false)?;
    if !diff.is_two_sided() {
        if let Some((_, doubtful)) = diff.profiles().find(|(_, profile)| profile.may_be_diff()) {
            return Err(Failure::Message(doubtful.warnings().join("; ")));
        }
        let file = input.files.first().map_or_else(String::new, |f| f.display().to_string());
        let message = format!("a diff needs BASE and NEW, or a written diff; for one profile: pprofdiff top {file}");
        return Err(Failure::Message(message));
    }
    show_top(args, request, &diff)
}

/// Returns the request for the table of frames.
fn top_request(args: &TopArgs) -> Result<Request> {
    let view = View::Top { sort: args.view.rows.sort(), limit: None, significant: args.significant };
    request(&args.view, Some(&args.sources), view, args.explain)
}

/// Shows the table of frames. On a terminal or with --explain, a one-line explanation follows the table, if the table
/// has two sides and a single sample type.
fn show_top(args: &TopArgs, request: Request, diff: &Diff) -> Result<()> {
    if args.explain && !diff.is_two_sided() {
        return Err(Takes::Explain.refusal(request.view.spec()).into());
    }
    let is_text = args.view.format()?.form == Form::Text;
    let is_watched = args.view.output.path().is_none() && is_watched(&io::stdout());
    show_with(&args.view, Some(&args.sources), request, diff, |request, report| {
        let is_shown = args.explain || is_text && is_watched;
        let summary =
            report.summary().filter(|s| is_shown && s.base.is_some() && request.query.extra_sample_types.is_empty())?;
        // Turns normalization off, because `explain` estimates itself how much work each side did. Groups by function,
        // because the explanation names functions.
        let query = request.query.clone().with_normalize(Normalize::None).with_granularity(Granularity::Functions);
        let query = query.with_sample_type(&summary.sample_type).without_view_options();
        let explanation = pprofdiff_explain::explain(diff, &query, &[], &explain::own_runtime(None).ok()?).ok()?;
        explain_line(&explanation).map(|line| format!("explain: {line}"))
    })
}

/// Loads the profiles, for instructions with the addresses that a folder of runs may have. With --sum, the files of a side are added up; otherwise they are runs.
fn open_view(args: &ViewArgs, has_addresses: bool) -> Result<Diff> {
    if args.sum && args.input.base.is_empty() {
        return Err(Failure::Message("--sum needs the files of the sides in --base and --new".to_owned()));
    }
    let open = if has_addresses { open_with_addresses } else { open };
    let diff = open(&args.input, &args.load, Outputs::new(args.output.path()), args.query.sample_type())?;
    Ok(if args.sum { diff.summed() } else { diff })
}

/// Shows a view. If the user forgot the expression, the first profile takes its place, and the error explains that.
fn show_view(args: &ViewArgs, sources: Option<&SourceArgs>, view: View) -> Result<()> {
    let files = &args.input.files;
    let is_alone = files.is_empty() && args.input.base.is_empty() && args.input.new.is_empty();
    let mistake = view.regex().and_then(|regex| mistakes::regex_is_file(view.name(), regex, files));
    let explained = |failure| match (failure, &mistake) {
        (Failure::Message(_), Some(mistake)) => Failure::Message(mistake.clone()),
        (failure, _) => failure,
    };
    let request = request(args, sources, view, false).map_err(explained)?;
    match open_view(args, matches!(request.view, View::Disasm { .. })) {
        Ok(diff) => show(args, sources, request, &diff).map_err(explained),
        Err(failure) if is_alone => Err(explained(failure)),
        Err(failure) => Err(failure),
    }
}

/// Returns the request for a view in the requested format. Impossible combinations are refused here, before a profile is
/// loaded.
fn request(args: &ViewArgs, sources: Option<&SourceArgs>, view: View, explains: bool) -> Result<Request> {
    let format = args.format()?;
    let options = [
        (Takes::CallTree, args.graph.call_tree),
        (Takes::Sources, sources.is_some_and(|sources| !sources.is_empty())),
        (Takes::Explain, explains),
    ];
    let given = GivenOptions::new(args.rows.n, &options).with_budget(args.output.within.budget);
    let mut request = args.query.request(view).for_output(format, &REGISTRY, &given)?;
    match &mut request.view {
        View::Graph(options) if format.form.is_whole() => options.call_tree = args.graph.call_tree,
        View::Graph(options) => args.set_graph_options(options),
        _ => {}
    }
    check_destination(format, args.output.path(), args.open)?;
    Ok(request)
}

/// Rejects standard output for formats that need a file, and --open for formats that no browser shows.
fn check_destination(format: &Format, output: Option<&Path>, open: bool) -> Result<()> {
    let is_terminal = output.is_none() && io::stdout().is_terminal();
    let message = match format.form {
        Form::Page if is_terminal || open && output.is_none() => "a page needs a file; set one with -o",
        Form::Page => return Ok(()),
        _ if open => "--open needs a page (--format html)",
        _ if format.binary && is_terminal => "a profile is binary; set a file with -o",
        _ => return Ok(()),
    };
    Err(Failure::Message(message.to_owned()))
}

/// Answers a request about a diff, and writes the answer in the requested format.
fn show(args: &ViewArgs, sources: Option<&SourceArgs>, request: Request, diff: &Diff) -> Result<()> {
    show_with(args, sources, request, diff, |_, _| None)
}

/// Returns the folders in which a listing searched for sources, in words.
fn searched_folders(request: &Request) -> String {
    let View::List { sources, .. } = &request.view else { return String::new() };
    let folders: Vec<String> = sources.folders().iter().map(|dir| dir.display().to_string()).collect();
    match folders.is_empty() {
        true => "no folder was searched".to_owned(),
        false => format!("only these were searched: {}", folders.join(", ")),
    }
}

/// Like [`show`], with a last line that `last` computes after everything else is written. A listing in text ends with a
/// hint about missing sources instead.
fn show_with(
    args: &ViewArgs,
    sources: Option<&SourceArgs>,
    mut request: Request,
    diff: &Diff,
    last: impl FnOnce(&Request, &Report) -> Option<String>,
) -> Result<()> {
    let (format, output) = (args.format()?, args.output.path());
    sources.iter().for_each(|sources| warn(&sources.warnings()));
    if let Some(PageView { options, sources: dirs }) = request.view.downcast_mut() {
        (options.min_width, options.max_frames) = (args.min_width, args.max_frames);
        options.explain = explain::own_runtime(None)?;
        let named = sources.filter(|s| !s.is_empty()).map(|s| s.resolve(diff.is_two_sided())).transpose()?;
        *dirs = named.or_else(|| recorded_sources(&args.input.files));
    }
    match &mut request.view {
        View::Profile(options) => *options = packing(output),
        View::List { sources: dirs, .. } => {
            let is_watched = args.open || format.name == "text" && output.is_none() && is_watched(&io::stdout());
            let is_named = sources.is_some_and(|sources| !sources.is_empty());
            if let Some(sources) = sources.filter(|sources| sources.git.is_some()) {
                *dirs = sources.resolve(diff.is_two_sided())?;
            } else if let (false, Some(recorded)) = (is_named, recorded_sources(&args.input.files)) {
                *dirs = recorded;
            } else if is_watched && !is_named {
                // A user who reads a listing on a terminal most likely runs the command in the checkout of the newest
                // build.
                *dirs = SourceDirs::new(Vec::new(), vec![PathBuf::from(".")]);
            }
        }
        _ => {}
    }
    let report = request.answer(diff)?;
    must_match(&request, &report, diff)?;
    match report.summary() {
        Some(summary) if !format.warns => warn(&summary.warnings),
        None if matches!(request.view, View::Profile(_)) && !request.query.filters.set().is_empty() => {
            warn(&pprofdiff_explain::measure(diff, &request.query)?.summary().warnings);
        }
        _ => {}
    }
    warn(&(format.leaves_out)(&report));
    let last = |request: &Request, report: &Report| match report {
        Report::Listing(listing) if format.name == "text" => {
            let options = ["--base-source DIR", "--new-source DIR", "--source-path DIR"];
            let is_git = sources.is_some_and(|sources| sources.git.is_some());
            let hint = missing_sources(listing, options).filter(|_| !is_git);
            hint.map(|hint| format!("{hint}; {}", searched_folders(request)))
        }
        _ => {
            // The phases may be shown while the last line is computed, because nothing else is written.
            terminal::cover_phases(false);
            let line = last(request, report);
            terminal::cover_phases(true);
            line
        }
    };
    let mut left = usize::MAX;
    write_to(output, |out| {
        // With a budget, the rows leave room for the last line. Otherwise, they do not wait for it.
        if args.output.within.budget.is_some() {
            let ending = last(&request, &report).map(|line| [String::new(), format!("\n{line}\n")]);
            let endings = ending.as_ref().map_or(&[][..], |endings| endings);
            args.output.write(format, &report, endings, out).map(|tokens| left = tokens)
        } else {
            format.write(&report, out, args.output.style())?;
            out.flush()?;
            last(&request, &report).map_or(Ok(()), |line| writeln!(out, "\n{line}"))
        }
    })?;
    let asked = AnsweredCommand {
        verb: request.view.name(),
        regex: request.view.regex(),
        input: &args.input,
        query: &request.query,
        load: &args.load,
        has_sources: sources.is_some_and(|sources| !sources.is_empty()),
    };
    suggest_next(&asked, &report, format, &args.output, left);
    match output.filter(|_| args.open) {
        Some(path) => terminal::open(path),
        None => Ok(()),
    }
}

/// Returns an error if no frame matches the expression, which is most likely a mistake.
fn must_match(request: &Request, report: &Report, diff: &Diff) -> Result<()> {
    match request.unmatched(report, diff)? {
        Some(message) => Err(Failure::Message(message)),
        None => Ok(()),
    }
}

fn info(args: &InfoArgs) -> Result<()> {
    let format = args.output.format()?;
    let request = Request::default().asking(View::Info).for_format(format, &REGISTRY)?;
    let diff = open(&args.input, &args.load, Outputs::new(args.output.path()), None)?;
    let report = request.answer(&diff)?;
    let mut left = 0;
    write_to(args.output.path(), |out| args.output.write(format, &report, &[], out).map(|tokens| left = tokens))?;
    let (input, load, query) = (&args.input, &args.load, &request.query);
    let asked = AnsweredCommand { verb: "info", regex: None, input, query, load, has_sources: false };
    suggest_next(&asked, &report, format, &args.output, left);
    Ok(())
}

fn raw(args: &RawArgs, view: View) -> Result<()> {
    let diff = open(&args.input, &args.load, Outputs::new(&args.output), None)?.summed();
    let format = REGISTRY.format("text")?;
    let report = Request::default().asking(view).answer(&diff)?;
    let style = Style::default();
    write_to(args.output.as_deref(), |out| args.within.write(format, &report, &[], style, out).map(drop))
}

fn merge(args: &MergeArgs) -> Result<()> {
    let inputs = Inputs::without_base(&args.load, Outputs::new([&args.output]))?;
    one_stdin(args.files.iter())?;
    let weights = args.weights().map_err(Failure::Message)?;
    if let Ok(other) = REGISTRY.format_of_path(&args.output)
        && other.name != "pprof"
        && !is_stdin(&args.output)
    {
        let (output, name) = (args.output.display(), other.name);
        let advice = format!("merge writes a profile.proto; use pprofdiff convert to convert it to {name}");
        return Err(Failure::Message(format!("{output}: {advice}")));
    }
    let profiles = args.files.iter().map(|path| inputs.load(path)).collect::<Result<Vec<_>>>()?;
    let weighted: Vec<_> = profiles.iter().map(|profile| &**profile).zip(weights).collect();
    let bytes = pprofdiff::merge_bytes(&weighted, &packing(Some(&args.output)))?;
    write_to(Some(&args.output), |out| out.write_all(&bytes))
}

fn convert(args: &ConvertArgs) -> Result<()> {
    let refuse = |message: &str| Err(Failure::Message(message.to_owned()));
    let format = match &args.format {
        Some(name) => Some(REGISTRY.format(name)?),
        None => REGISTRY.format_of_path(&args.output).ok(),
    };
    let converted = converted_formats();
    let Some(format) = format.filter(|format| converted.contains(&format.name)) else {
        let (output, formats) = (args.output.display(), converted.join(", "));
        let is_of_profile = |format: &&Format| Request::default().for_format(format, &REGISTRY).is_ok();
        let advice = match format.filter(is_of_profile) {
            Some(format) => {
                let [file, output] = [&args.file, &args.output].map(|path| operand(&path.to_string_lossy(), "FILE"));
                format!("{} is a view of a profile: pprofdiff top {file} -o {output}", format.name)
            }
            None => "set one with --format".to_owned(),
        };
        return refuse(&format!("{output}: a profile converts to {formats}; {advice}"));
    };
    let profile = Inputs::without_base(&args.load, Outputs::new([&args.output]))?.load(&args.file)?;
    let output = Some(&*args.output);
    if format.name == "pprof" {
        if args.sample_type.is_some() {
            return refuse(
                "a profile.proto has all sample types; --sample-type is for folded, speedscope and flamegraph",
            );
        }
        check_destination(format, output.filter(|path| !is_stdin(path)), false)?;
        let bytes = profile.to_bytes(&packing(output))?;
        return write_to(output, |out| out.write_all(&bytes));
    }
    let mut request =
        Request::default().asking(View::Stacks { by_labels: false, limit: None }).for_format(format, &REGISTRY)?;
    request.query.sample_type.clone_from(&args.sample_type);
    let report = request.answer(&Diff::of_profile(&profile)?)?;
    if let Some(summary) = report.summary() {
        warn(&summary.warnings);
    }
    warn(&(format.leaves_out)(&report));
    write_to(output, |out| format.write(&report, out, Default::default()))
}

/// Returns write options with the compression that the file's extension implies, or gzip for standard output.
fn packing(output: Option<&Path>) -> WriteOptions {
    let compression = output.map_or(Compression::Gzip, Compression::of_path);
    WriteOptions::default().with_compression(compression)
}
