//! The `pprofdiff` command, as a function: arguments in, exit code out.
//!
//! The binary that cargo installs and the console script of the Python package are the same code. A
//! face holds no algorithm: this one parses arguments, calls the engine, writes the table.

mod args;
mod batch;
mod check;
mod delta;
mod fetch;
mod series;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use args::{Cli, Format, InfoArgs, InfoFormat, InputArgs, MergeArgs, SourceArgs, TopArgs, Verb, ViewArgs};
use clap::{CommandFactory, Parser};
use pprofdiff::report::{self, CsvOptions, Kind, PageOptions, Table, TextOptions};
use pprofdiff::{Compression, Diff, LoadOptions, Source, SourceDirs, Sources, View, WriteOptions, harmless, redacted};

/// What went wrong; printed as one line.
enum Failure {
    Message(String),
    /// The reader of our output has gone (`| head`), which is no error.
    ClosedPipe,
}

impl From<pprofdiff::Error> for Failure {
    fn from(e: pprofdiff::Error) -> Failure {
        Failure::Message(told(&e))
    }
}

/// An error in one line. Commands to copy are for people: logs have strangers' names in them often enough.
fn told(e: &pprofdiff::Error) -> String {
    match e.advice().filter(|_| io::stderr().is_terminal()) {
        Some(command) => format!("{e}: {command}"),
        None => e.to_string(),
    }
}

/// Says on a terminal which commands help against the profiles' warnings.
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

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Message(e.to_string()),
        }
    }
}

type Result<T, E = Failure> = std::result::Result<T, E>;

/// Runs the command; `args` begin with the program's name. Returns the exit code: 0 done, 2 usage or
/// input error (one line on standard error); of the gate also 1 and 3, of an interrupted batch 130.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            if !e.use_stderr() {
                // Help and version go to standard output and are no error.
                let _ = e.print();
                return 0;
            }
            // clap explains over several lines, which end with the usage.
            let reason = e.to_string();
            let lines = reason.lines().map(str::trim).take_while(|l| !l.starts_with("Usage:"));
            let reason = lines.filter(|l| !l.is_empty() && !l.starts_with("For more")).collect::<Vec<_>>().join(" ");
            say(&format!("{}; see pprofdiff --help", reason.trim_start_matches("error: ")));
            return 2;
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().build();
    let result = match pool {
        Ok(pool) => pool.install(|| execute(cli)),
        // Without threads (a limit of the system) one thread does it all.
        Err(_) => execute(cli),
    };
    match result {
        Ok(code) => code,
        Err(Failure::ClosedPipe) => 0,
        Err(Failure::Message(message)) => {
            say(&message);
            2
        }
    }
}

/// Does what is asked; the exit code.
fn execute(cli: Cli) -> Result<u8> {
    match cli.verb {
        None => diff(&cli.diff),
        Some(Verb::Diff(args)) => diff(&args),
        Some(Verb::Top(args)) => show_top(&args, &open(&args.view.input)?),
        Some(Verb::Tree(args)) => {
            if !args.format.is_graph() {
                rows_only(&args, "tree")?;
            }
            show(&args, &open(&args.input)?, |view, n| Ok(view.edges(None, args.sort())?.table(Kind::Tree).head(n)))
        }
        Some(Verb::Peek { regex, view: args }) => {
            rows_only(&args, "peek")?;
            show(&args, &open(&args.input)?, |view, n| {
                let edges = view.edges(Some(&regex), args.sort())?;
                if edges.nodes.is_empty() {
                    return Err(Failure::Message(format!("no frame matches {regex:?}")));
                }
                Ok(edges.table(Kind::Peek).head(n))
            })
        }
        Some(Verb::List { regex, sources, view: args }) => list(&args, &regex, &sources),
        Some(Verb::Stacks { labels, view: args }) => {
            if labels || args.format.is_graph() {
                rows_only(&args, if labels { "stacks --labels" } else { "stacks" })?;
            }
            table_only(&args, "stacks")?;
            show(&args, &open(&args.input)?, |view, n| Ok(view.stacks(labels).table_head(n)))
        }
        Some(Verb::Labels(args)) => {
            rows_only(&args, "labels")?;
            show(&args, &open(&args.input)?, |view, n| Ok(view.labels().table().head(n)))
        }
        Some(Verb::Info(args)) => info(&args),
        Some(Verb::Merge(args)) => merge(&args),
        Some(Verb::Delta(args)) => delta::run(&args),
        Some(Verb::Batch(args)) => return batch::run(&args),
        Some(Verb::Series(args)) => series::run(&args),
        Some(Verb::Check(args)) => return check::run(&args),
        Some(Verb::Completions { shell }) => {
            // Into memory first: clap_complete panics on a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pprofdiff", &mut script);
            Ok(io::stdout().write_all(&script)?)
        }
    }?;
    Ok(0)
}

fn diff(args: &TopArgs) -> Result<()> {
    let input = &args.view.input;
    let diff = open(input)?;
    if !diff.is_two_sided() {
        let file = input.files.first().map_or_else(String::new, |f| f.display().to_string());
        let message = format!("a diff needs BASE and NEW, or a written diff; for one profile: pprofdiff top {file}");
        return Err(Failure::Message(message));
    }
    show_top(args, &diff)
}

fn show_top(args: &TopArgs, diff: &Diff) -> Result<()> {
    let (args, sources) = (&args.view, &args.sources);
    if args.format == Format::Html {
        return page(args, diff, (!sources.is_empty()).then(|| sources.dirs()).as_ref());
    }
    if !sources.is_empty() {
        return Err(Failure::Message("source lines are shown by list, or in a page (--format html)".to_owned()));
    }
    show(args, diff, |view, n| Ok(view.top(args.sort()).table_head(n)))
}

/// Writes the page, and opens it if that is wanted.
fn page(args: &ViewArgs, diff: &Diff, sources: Option<&SourceDirs>) -> Result<()> {
    if args.n.is_some() {
        return Err(Failure::Message("-n limits rows; a page is limited by --min-width and --max-frames".to_owned()));
    }
    let output = args.output.as_deref().filter(|path| !is_stdin(path));
    if output.is_none() && (args.open || io::stdout().is_terminal()) {
        return Err(Failure::Message("a page is for a browser; name a file for it with -o".to_owned()));
    }
    let options = PageOptions { min_width: args.min_width, max_frames: args.max_frames, ..PageOptions::default() };
    let page = report::page(diff, &args.query()?, &options, sources.map(|s| s as &dyn Sources))?;
    write_to(output, |out| out.write_all(page.html.as_bytes()))?;
    match output.filter(|_| args.open) {
        Some(path) => open::that(path).map_err(|e| {
            let path = path.display();
            Failure::Message(format!("{path} is written, but no browser would open it: {e}"))
        }),
        None => Ok(()),
    }
}

/// Refuses the page, for verbs that show something else.
fn table_only(args: &ViewArgs, verb: &str) -> Result<()> {
    match args.format {
        Format::Html => Err(Failure::Message(format!("{verb} can't be written as a page; diff and top can"))),
        _ => Ok(()),
    }
}

/// Refuses the formats that write all stacks or the call graph, for verbs that show something else.
fn rows_only(args: &ViewArgs, verb: &str) -> Result<()> {
    table_only(args, verb)?;
    match args.format {
        Format::Pprof | Format::Folded | Format::Speedscope => Err(Failure::Message(format!(
            "{verb} can't be written as a profile or as folded stacks; diff, top and stacks can"
        ))),
        Format::Dot | Format::Svg => {
            Err(Failure::Message(format!("{verb} can't be drawn as a call graph; diff, top and tree can")))
        }
        _ => Ok(()),
    }
}

/// Loads what the arguments name: two sides, or one profile (which may be a written diff).
fn open(input: &InputArgs) -> Result<Diff> {
    let diff = load(input)?;
    advise(&diff);
    Ok(diff)
}

fn load(input: &InputArgs) -> Result<Diff> {
    let options = LoadOptions::limited(input.inflated_limit)?;
    let (base, new): (&[PathBuf], &[PathBuf]) = match input.files.as_slice() {
        [one] => return Ok(Diff::of_profile(&source(one)?.load(&options)?)?),
        [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
        _ => (&input.base, &input.new),
    };
    if base.is_empty() || new.is_empty() {
        return Err(Failure::Message("no profile is given; see pprofdiff --help".to_owned()));
    }
    one_stdin(base.iter().chain(new))?;
    let sources = |side: &[PathBuf]| side.iter().map(|p| source(p)).collect::<Result<Vec<_>>>();
    Ok(Diff::load(&sources(base)?, &sources(new)?, &options)?)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn one_stdin<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    if files.filter(|p| is_stdin(p)).count() > 1 {
        return Err(Failure::Message("standard input can be read only once, so only one file can be -".to_owned()));
    }
    Ok(())
}

fn source(path: &Path) -> Result<Source> {
    if !is_stdin(path) {
        return Ok(Source::Path(path.to_owned()));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(Source::Bytes("-".to_owned(), bytes))
}

/// Writes one view of a diff in the format that was asked for. `table` makes the first rows of it.
fn show(args: &ViewArgs, diff: &Diff, table: impl FnOnce(&View, usize) -> Result<Table>) -> Result<()> {
    if args.open {
        return Err(Failure::Message("--open shows a page in the browser; it needs --format html".to_owned()));
    }
    let query = args.query()?;
    let output = args.output.as_deref();
    let all_stacks = matches!(args.format, Format::Pprof | Format::Folded | Format::Speedscope);
    if all_stacks && args.n.is_some() {
        return Err(Failure::Message("-n limits rows; a profile and folded stacks are written whole".to_owned()));
    }
    if args.format == Format::Pprof {
        if output.is_none() && io::stdout().is_terminal() {
            return Err(Failure::Message("a profile is binary; name a file for it with -o".to_owned()));
        }
        if !query.filters.set().is_empty() {
            warn(&diff.view(&query)?);
        }
        let bytes = diff.to_bytes(&query, &packing(output))?;
        return write_to(output, |out| out.write_all(&bytes));
    }
    let view = diff.view(&query)?;
    if matches!(args.format, Format::Csv | Format::Folded | Format::Speedscope) {
        warn(&view);
    }
    match args.format {
        Format::Folded => {
            let stacks = view.stacks(false);
            return write_to(output, |out| report::folded(&stacks, out));
        }
        Format::Speedscope => {
            let stacks = view.stacks(false);
            return write_to(output, |out| report::speedscope(&stacks, out));
        }
        Format::Dot => {
            let graph = view.graph(&args.graph_options())?;
            return write_to(output, |out| graph.write_dot(out));
        }
        Format::Svg => {
            let svg = view.graph(&args.graph_options())?.to_svg()?;
            return write_to(output, |out| writeln!(out, "{svg}"));
        }
        _ => {}
    }
    let most = match (args.n, args.format) {
        (Some(0), _) | (None, Format::Json | Format::Csv) => usize::MAX,
        (Some(n), _) => n,
        (None, _) => 20,
    };
    let table = table(&view, most)?;
    write_to(output, |out| match args.format {
        Format::Json => table.write_json(out),
        Format::Csv => table.write_csv(out, CsvOptions { quote_formulas: args.quote_formulas }),
        Format::Markdown => table.write_markdown(out),
        _ => table.write_text(out, TextOptions { color: output.is_none() && color_wanted() }),
    })
}

/// Source lines with their costs.
fn list(args: &ViewArgs, regex: &str, sources: &SourceArgs) -> Result<()> {
    if !matches!(args.format, Format::Text | Format::Json) {
        return Err(Failure::Message("list writes text and json".to_owned()));
    }
    let output = args.output.as_deref();
    let is_watched = args.format == Format::Text && output.is_none() && io::stdout().is_terminal();
    let dirs = match sources.is_empty() && is_watched {
        // Whoever looks at a listing most likely stands in the checkout of what was built last.
        true => SourceDirs::new(Vec::new(), vec![PathBuf::from(".")]),
        false => sources.dirs(),
    };
    let listing = open(&args.input)?.list(&args.query()?, regex, &dirs)?;
    if listing.routines.is_empty() {
        return Err(Failure::Message(format!("no function matches {regex:?}")));
    }
    let listing = listing.head(args.n.filter(|&n| n > 0).unwrap_or(usize::MAX));
    write_to(output, |out| {
        if args.format == Format::Json {
            return listing.write_json(out);
        }
        listing.write_text(out, TextOptions { color: output.is_none() && color_wanted() })?;
        match listing.missing_sources(["--base-source DIR", "--new-source DIR", "--source-path DIR"]) {
            Some(hint) => writeln!(out, "\n{hint}"),
            None => Ok(()),
        }
    })
}

/// Says on standard error what the other formats have room for.
fn warn(view: &View) {
    for warning in &view.summary().warnings {
        say(&format!("warning: {warning}"));
    }
}

/// Says something on standard error: one line, harmless whatever files, servers and arguments put into it, and without
/// passwords of URLs, which may stand where none is expected.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "pprofdiff: {}", harmless(&redacted(text)));
}

/// Colour for people only: on a terminal, and not where they said no (no-color.org).
fn color_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    io::stdout().is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

fn info(args: &InfoArgs) -> Result<()> {
    let diff = open(&args.input)?;
    write_to(args.output.as_deref(), |out| match args.format {
        InfoFormat::Json => out.write_all(report::info_json(&diff).as_bytes()),
        InfoFormat::Text => report::info(&diff, out),
    })
}

fn merge(args: &MergeArgs) -> Result<()> {
    let options = LoadOptions::limited(args.inflated_limit)?;
    one_stdin(args.files.iter())?;
    let profiles = args.files.iter().map(|p| Ok(source(p)?.load(&options)?)).collect::<Result<Vec<_>>>()?;
    let merged = pprofdiff::merge(&profiles.iter().map(|p| &**p).collect::<Vec<_>>())?;
    let bytes = merged.to_bytes(&packing(Some(&args.output)))?;
    write_to(Some(&args.output), |out| out.write_all(&bytes))
}

/// How a profile is packed, by the name of the file it goes to.
fn packing(output: Option<&Path>) -> WriteOptions {
    let compression = output.map_or(Compression::Gzip, Compression::of_path);
    WriteOptions { compression, level: None }
}

/// Writes to a file, or to standard output.
fn write_to(output: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    match output.filter(|path| !is_stdin(path)) {
        Some(path) => Ok(pprofdiff::write_file(path, write)?),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}
