//! The arguments of views apart from the engine's option tables: sources, output and the call graph.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, ColorChoice, Command, FromArgMatches, Subcommand};
use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Heading;
use pprofdiff_page::PageOptions;
use pprofdiff_report::{Format, MIN_BUDGET, Report, Style, Takes, TokenBudget, View, ViewOptions, ViewSpec};
use pprofdiff_shell::git::git_sources;
use pprofdiff_shell::{Result, color_wanted, is_stdin, text_width};

use super::help::Later;
use super::sides::{RowArgs, SideArgs, SortBy};
use super::table::{LoadArgs, QueryArgs};
use crate::REGISTRY;

const TOP_EXAMPLES: &str = "\
Examples:
  pprofdiff main.pb.gz branch.pb.gz --sort cum             order by cost with callees
  pprofdiff top heap.pb.gz                                 one profile
  pprofdiff old.pb.gz new.pb.gz --sample-type alloc_space --normalize 1000/3000
  pprofdiff main.pb.gz branch.pb.gz --format svg -o callgraph.svg
  pprofdiff old.pb.gz new.pb.gz --format json | jq '.rows[0]'
  pprofdiff old.pb.gz new.pb.gz --format pprof -o diff.pb.gz && go tool pprof -top diff.pb.gz";

/// The end of long help of some views.
const VIEW_EXAMPLES: [(&str, &str); 4] = [
    ("peek", "Example:\n  pprofdiff peek tableInsensitive main.pb.gz branch.pb.gz"),
    (
        "list",
        "Example:\n  pprofdiff list names.compare main.pb.gz branch.pb.gz --base-source main/ --new-source branch/",
    ),
    (
        "disasm",
        "Example:\n  pprofdiff disasm names.compare main.pb.gz branch.pb.gz --base-binary main/app \
         --new-binary branch/app",
    ),
    (
        "labels",
        "Example:\n  pprofdiff labels pyroscope://localhost:4040      a continuous profiler, see docs/sources.md",
    ),
];

/// The arguments of `diff` and `top`: a table of frames, or a page, which can show source lines.
#[derive(Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// Show only significant rows (FDR 5 %)
    #[arg(long)]
    pub significant: bool,
    /// End with a one-line explanation; a terminal always shows it
    #[arg(long, hide_short_help = true)]
    pub explain: bool,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub view: ViewArgs,
}

const SOURCES: &str = "Sources (for list and --format html; files are read only below these folders)";

#[derive(Args)]
pub struct SourceArgs {
    /// Source directory of the base
    #[arg(help_heading = SOURCES, long, value_name = "DIR", hide_short_help = true)]
    pub base_source: Vec<PathBuf>,
    /// Source directory of the new side [default: the recorded sources of a folder of runs; otherwise the working
    /// directory, for `list` on a terminal or with --open]
    #[arg(help_heading = SOURCES, long, value_name = "DIR", hide_short_help = true)]
    pub new_source: Vec<PathBuf>,
    /// Source directories of both sides, or of a single profile
    #[arg(help_heading = SOURCES, long, value_name = "DIR:...", hide_short_help = true)]
    pub source_path: Option<std::ffi::OsString>,
    /// Sources of each side at its revision, BASE..NEW, from the repository in the current directory; for BASE alone,
    /// the new side has the working tree
    #[arg(help_heading = SOURCES, long, value_name = "RANGE", hide_short_help = true,
        conflicts_with_all = ["base_source", "new_source", "source_path"])]
    pub git: Option<String>,
}

impl SourceArgs {
    /// Returns true if no source directory is given.
    pub fn is_empty(&self) -> bool {
        self.base_source.is_empty() && self.new_source.is_empty() && self.source_path.is_none() && self.git.is_none()
    }

    /// Returns a warning for each named folder that does not exist.
    pub fn warnings(&self) -> Vec<String> {
        let both: Vec<PathBuf> = self.source_path.iter().flat_map(std::env::split_paths).collect();
        let named =
            [("--base-source", &self.base_source), ("--new-source", &self.new_source), ("--source-path", &both)];
        let missing = |(option, dirs): (&'static str, &'_ Vec<PathBuf>)| -> Vec<String> {
            let dirs = dirs.iter().filter(|dir| !dir.is_dir());
            dirs.map(|dir| format!("{option} {}: no such folder, so no source lines come from it", dir.display()))
                .collect()
        };
        named.into_iter().flat_map(missing).collect()
    }

    /// Returns the source directories. `is_two_sided` is false for a single profile.
    ///
    /// # Errors
    /// Fails if git cannot resolve the range of `--git`.
    pub fn resolve(&self, is_two_sided: bool) -> Result<SourceDirs> {
        match &self.git {
            Some(range) => git_sources(Path::new("."), range, is_two_sided),
            None => Ok(self.dirs()),
        }
    }

    fn dirs(&self) -> SourceDirs {
        let both: Vec<PathBuf> = self.source_path.iter().flat_map(std::env::split_paths).collect();
        let with_both = |dirs: &[PathBuf]| dirs.iter().chain(&both).cloned().collect();
        SourceDirs::new(with_both(&self.base_source), with_both(&self.new_source))
    }
}

const OUTPUT: &str = "Output";

/// The token budget of all verbs that write text for readers.
#[derive(Clone, Copy, Args)]
pub struct BudgetArg {
    /// Maximum tokens of text or Markdown, as docs/agents.md counts them: the most important parts that fit, and the
    /// number of omitted parts
    #[arg(help_heading = OUTPUT, long, value_name = "TOKENS", value_parser = token_budget, hide_short_help = true)]
    pub budget: Option<usize>,
}

impl BudgetArg {
    /// Writes text or Markdown within the budget, with the last of the `endings` that fits. Returns the number of
    /// tokens that are left.
    pub fn write(
        self,
        format: &Format,
        report: &Report,
        endings: &[String],
        style: Style,
        out: &mut dyn Write,
    ) -> io::Result<usize> {
        let Some(tokens) = self.budget else {
            format.write(report, out, style)?;
            endings.last().map_or(Ok(()), |ending| out.write_all(ending.as_bytes()))?;
            return Ok(usize::MAX);
        };
        let text = report.within(format, &TokenBudget { tokens, advice: MORE, endings })?;
        out.write_all(text.as_bytes())?;
        Ok(tokens - pprofdiff_report::tokens(&text))
    }
}

/// The advice of shortened text.
pub const MORE: &str = "set a larger --budget";

/// Parses a token budget.
fn token_budget(text: &str) -> Result<usize, String> {
    let tokens = text.parse().ok().filter(|tokens| *tokens >= MIN_BUDGET);
    tokens.ok_or_else(|| format!("must be a number of tokens, at least {MIN_BUDGET}"))
}

/// The output options of all verbs that write a result in a choice of formats, except for `convert`.
#[derive(Clone, Args)]
pub struct OutputArgs {
    /// Format, see `pprofdiff formats` [default: by extension, else text]
    #[arg(help_heading = OUTPUT, long, value_parser = formats(), hide_possible_values = true)]
    pub(super) format: Option<String>,
    /// Output file [default: standard output]
    #[arg(help_heading = OUTPUT, short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// In CSV, put ' before text that a spreadsheet would run as a formula (text that starts with = + - @)
    #[arg(help_heading = OUTPUT, long, hide_short_help = true)]
    quote_formulas: bool,
    /// Color of text; auto colors a terminal, and follows NO_COLOR and CLICOLOR_FORCE
    #[arg(help_heading = OUTPUT, long, value_name = "WHEN", value_enum, default_value = "auto", hide_short_help = true)]
    color: ColorChoice,
    #[command(flatten)]
    pub within: BudgetArg,
}

impl OutputArgs {
    /// Returns the output file, or `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_stdin(path))
    }

    /// Returns the same options with text on standard output.
    pub fn without_path(&self) -> OutputArgs {
        OutputArgs { format: None, output: None, ..self.clone() }
    }

    /// Returns the format of `--format`, or else the format of the file extension.
    ///
    /// # Errors
    /// Fails for an unknown format, and for a format that ignores --budget.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        let format = match (&self.format, &self.output) {
            (Some(name), _) => REGISTRY.format(name),
            (None, Some(path)) => REGISTRY.format_of_path(path),
            (None, None) => REGISTRY.format("text"),
        }?;
        self.within.budget.map_or(Ok(()), |_| format.check_budget())?;
        Ok(format)
    }

    /// Writes a report within the budget, and returns the number of tokens that are left.
    pub fn write(
        &self,
        format: &Format,
        report: &Report,
        endings: &[String],
        out: &mut dyn Write,
    ) -> io::Result<usize> {
        self.within.write(format, report, endings, self.style(), out)
    }

    pub fn style(&self) -> Style {
        let color = match self.color {
            ColorChoice::Auto => self.path().is_none() && color_wanted(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let width = if self.path().is_none() { text_width() } else { None };
        Style { color, quote_formulas: self.quote_formulas, width, ..Style::default() }
    }
}

/// Returns the output formats as possible values, so that shells can complete them.
fn formats() -> PossibleValuesParser {
    let formats = REGISTRY.formats().iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(formats.collect::<Vec<_>>())
}

#[derive(Args)]
pub struct ViewArgs {
    #[command(flatten)]
    pub input: SideArgs,
    #[command(flatten)]
    pub rows: RowArgs,
    /// Add up the files of a side [default: treat them as runs and show their means]
    #[arg(long, hide_short_help = true)]
    pub sum: bool,
    #[command(flatten)]
    pub query: QueryArgs<true>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write a page and open it in the browser
    #[arg(long, help_heading = OUTPUT)]
    pub open: bool,
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// In a page, omit flame graph boxes below this fraction of the total; 0 draws every box that has room
    #[arg(long, value_name = "PART", value_parser = fraction, default_value_t = PageOptions::default().min_width)]
    #[arg(help_heading = Heading::Limits.name(), hide_short_help = true)]
    pub min_width: f64,
    /// In a page, the maximum number of boxes in all its flame graphs
    #[arg(long, value_name = "N", default_value_t = PageOptions::default().max_frames)]
    #[arg(help_heading = Heading::Limits.name(), hide_short_help = true)]
    pub max_frames: usize,
}

/// The verb of a view whose arguments all follow from its descriptor. `top` and `explain` have additional arguments.
pub struct ViewVerb {
    pub view: View,
    /// The source directories, if the view shows sources.
    pub sources: Option<SourceArgs>,
    pub args: ViewArgs,
}

impl ViewVerb {
    fn views() -> impl Iterator<Item = &'static ViewSpec> {
        let excluded = ["top", "explain"];
        REGISTRY.views().iter().copied().filter(move |spec| spec.view.is_some() && !excluded.contains(&spec.name))
    }

    fn command(spec: &'static ViewSpec) -> Command {
        let mut command = Command::new(spec.name).about(spec.about);
        if let Some(matched) = &spec.matched {
            command = command.arg(Arg::new("regex").value_name("REGEX").required(true).help(matched.about));
        }
        if spec.takes.contains(&Takes::Labels) {
            let about = "Separate stacks by the labels of their samples, and show the labels";
            command = command.arg(Arg::new("labels").long("labels").action(ArgAction::SetTrue).help(about));
        }
        if spec.takes.contains(&Takes::Sources) {
            command = SourceArgs::augment_args(command);
        }
        if let Some((_, examples)) = VIEW_EXAMPLES.iter().find(|(name, _)| *name == spec.name) {
            command = command.after_help(*examples);
        }
        Later::<ViewArgs>::augment_args(command)
    }
}

impl Subcommand for ViewVerb {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(ViewVerb::views().map(ViewVerb::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        ViewVerb::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ViewVerb::views().any(|spec| spec.name == name)
    }
}

impl FromArgMatches for ViewVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ViewVerb, clap::Error> {
        let selected = matches.subcommand().and_then(|(name, matches)| {
            let spec = ViewVerb::views().find(|spec| spec.name == name)?;
            Some((spec, spec.view?, matches))
        });
        let Some((spec, view, matches)) = selected else { return Err(clap::Error::new(ErrorKind::MissingSubcommand)) };
        let args = ViewArgs::from_arg_matches(matches)?;
        let takes = |option| spec.takes.contains(&option);
        let sources = takes(Takes::Sources).then(|| SourceArgs::from_arg_matches(matches)).transpose()?;
        let mut options = ViewOptions { sort: args.rows.sort(), ..ViewOptions::default() };
        if spec.matched.is_some() {
            options.regex = matches.get_one::<String>("regex").cloned().unwrap_or_default();
        }
        options.by_labels = takes(Takes::Labels) && matches.get_flag("labels");
        options.sources = sources.as_ref().map_or_else(SourceDirs::default, SourceArgs::dirs);
        Ok(ViewVerb { view: view(options), sources, args })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ViewVerb::from_arg_matches(matches)?;
        Ok(())
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

const GRAPH: &str = "Call graph (--format dot and svg)";

#[derive(Args)]
pub struct GraphArgs {
    /// Omit nodes whose cum is below this fraction of the total
    #[arg(help_heading = GRAPH, long, value_name = "F", default_value_t = GraphOptions::default().node_fraction, hide_short_help = true)]
    node_fraction: f64,
    /// Omit calls below this fraction of the total
    #[arg(help_heading = GRAPH, long, value_name = "F", default_value_t = GraphOptions::default().edge_fraction, hide_short_help = true)]
    edge_fraction: f64,
    /// Draw a box for each path to a frame; also applies to callgrind
    #[arg(help_heading = GRAPH, long, hide_short_help = true)]
    pub call_tree: bool,
}

#[derive(Args)]
pub struct InfoArgs {
    #[command(flatten)]
    pub input: SideArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args)]
pub struct RawArgs {
    #[command(flatten)]
    pub input: SideArgs,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub within: BudgetArg,
    #[command(flatten)]
    pub load: LoadArgs,
}

impl ViewArgs {
    /// Returns the format of `--format`, or else the format of the file extension. `--open` without `--format` writes a
    /// page.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        if self.open && self.output.format.is_none() { REGISTRY.format("html") } else { self.output.format() }
    }

    /// Sets the options of a picture of the call graph, except for the number of nodes.
    pub fn set_graph_options(&self, options: &mut GraphOptions) {
        options.node_fraction = self.graph.node_fraction;
        options.edge_fraction = self.graph.edge_fraction;
        options.call_tree = self.graph.call_tree;
        options.rank = match self.rows.sort {
            None => Rank::Entropy,
            Some(SortBy::Flat) => Rank::Flat,
            Some(SortBy::Cum) => Rank::Cum,
        };
    }
}
