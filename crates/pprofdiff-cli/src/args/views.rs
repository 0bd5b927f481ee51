//! What views take besides the options of the engine's table: sources, and where the answer goes.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Heading;
use pprofdiff_report::{Format, PageOptions, Style, Takes, View, ViewOptions, ViewSpec};

use super::help::Later;
use super::sides::{Rows, Sides, SortBy};
use super::table::{LoadArgs, QueryArgs};
use crate::{color_wanted, is_stdin};

/// A table of frames, or a page, which may have source lines.
#[derive(Args)]
pub struct TopArgs {
    /// Show only significant rows (FDR 5 %)
    #[arg(long)]
    pub significant: bool,
    /// Close with what explain says, in a line; on a terminal that is so anyway
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
    /// Where the base's sources are
    #[arg(help_heading = SOURCES, long, value_name = "DIR", hide_short_help = true)]
    pub base_source: Vec<PathBuf>,
    /// Where the new side's sources are [default: of list on a terminal, the working directory]
    #[arg(help_heading = SOURCES, long, value_name = "DIR", hide_short_help = true)]
    pub new_source: Vec<PathBuf>,
    /// Where the sources of both sides, or of one profile, are
    #[arg(help_heading = SOURCES, long, value_name = "DIR:...", hide_short_help = true)]
    pub source_path: Option<std::ffi::OsString>,
}

impl SourceArgs {
    /// True if nothing is given.
    pub fn is_empty(&self) -> bool {
        self.base_source.is_empty() && self.new_source.is_empty() && self.source_path.is_none()
    }

    pub fn dirs(&self) -> SourceDirs {
        let both: Vec<PathBuf> = self.source_path.iter().flat_map(std::env::split_paths).collect();
        let with = |own: &[PathBuf]| own.iter().chain(&both).cloned().collect();
        SourceDirs::new(with(&self.base_source), with(&self.new_source))
    }
}

const OUTPUT: &str = "Output";

/// Where an answer goes, and how it is written: the same for all verbs that answer something.
#[derive(Clone, Args)]
pub struct OutputArgs {
    /// Format, see `pprofdiff formats` [default: by the file, else text]
    #[arg(help_heading = OUTPUT, long, value_parser = formats(), hide_possible_values = true)]
    pub(super) format: Option<String>,
    /// File to write [default: standard output]
    #[arg(help_heading = OUTPUT, short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// In CSV, put a ' before texts that a spreadsheet would run as formulas: those that begin with = + - @
    #[arg(help_heading = OUTPUT, long, hide_short_help = true)]
    quote_formulas: bool,
}

impl OutputArgs {
    /// The file; none if it is standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_stdin(path))
    }

    /// The same to standard output as text.
    pub fn without_path(&self) -> OutputArgs {
        OutputArgs { format: None, output: None, ..self.clone() }
    }

    /// The format that is named, or that the output's name asks for.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        match (&self.format, &self.output) {
            (Some(name), _) => Format::named(name),
            (None, Some(path)) => Format::of_path(path),
            (None, None) => Format::named("text"),
        }
    }

    pub fn style(&self) -> Style {
        let color = self.path().is_none() && color_wanted();
        Style { color, quote_formulas: self.quote_formulas, ..Style::default() }
    }
}

/// The formats of answers, as clap completes them.
fn formats() -> PossibleValuesParser {
    let formats = Format::all().iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(formats.collect::<Vec<_>>())
}

#[derive(Args)]
pub struct ViewArgs {
    #[command(flatten)]
    pub input: Sides,
    #[command(flatten)]
    pub rows: Rows,
    /// Add up the files of a side [default: they are runs, and values are their means]
    #[arg(long, hide_short_help = true)]
    pub sum: bool,
    #[command(flatten)]
    pub query: QueryArgs<true>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write a page and show it in the browser
    #[arg(long, help_heading = OUTPUT)]
    pub open: bool,
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// In a page, the part of the whole below which a box of the flame graph is not drawn; 0 draws what there is room for
    #[arg(long, value_name = "PART", value_parser = part, default_value_t = PageOptions::default().min_width)]
    #[arg(help_heading = Heading::Limits.name(), hide_short_help = true)]
    pub min_width: f64,
    /// In a page, the maximum number of boxes of all its flame graphs
    #[arg(long, value_name = "N", default_value_t = PageOptions::default().max_frames)]
    #[arg(help_heading = Heading::Limits.name(), hide_short_help = true)]
    pub max_frames: usize,
}

/// The verb of a view that is asked by its name alone: all but those that have options of their own.
pub struct ViewVerb {
    pub view: View,
    /// Where the sources are, of a view that shows them.
    pub sources: Option<SourceArgs>,
    pub args: ViewArgs,
}

impl ViewVerb {
    fn views() -> impl Iterator<Item = &'static ViewSpec> {
        let own = ["top", "explain"];
        ViewSpec::all().iter().copied().filter(move |spec| spec.view.is_some() && !own.contains(&spec.name))
    }

    fn command(spec: &'static ViewSpec) -> Command {
        let mut command = Command::new(spec.name).about(spec.about);
        if let Some(matched) = &spec.matched {
            command = command.arg(Arg::new("regex").value_name("REGEX").required(true).help(matched.about));
        }
        if spec.takes.contains(&Takes::Labels) {
            let about = "Also tell apart stacks whose samples have different labels, and show those";
            command = command.arg(Arg::new("labels").long("labels").action(ArgAction::SetTrue).help(about));
        }
        if spec.takes.contains(&Takes::Sources) {
            command = SourceArgs::augment_args(command);
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
        let asked = matches.subcommand().and_then(|(name, matches)| {
            let spec = ViewVerb::views().find(|spec| spec.name == name)?;
            Some((spec, spec.view?, matches))
        });
        let Some((spec, view, matches)) = asked else { return Err(clap::Error::new(ErrorKind::MissingSubcommand)) };
        let args = ViewArgs::from_arg_matches(matches)?;
        let takes = |what| spec.takes.contains(&what);
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

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "a part of the whole is a number from 0 to 1".to_owned())
}

const GRAPH: &str = "Call graph (--format dot and svg)";

#[derive(Args)]
pub struct GraphArgs {
    /// Leave out nodes whose cum is less than this part of the total
    #[arg(help_heading = GRAPH, long, value_name = "F", default_value_t = GraphOptions::default().node_fraction, hide_short_help = true)]
    node_fraction: f64,
    /// Leave out calls that are less than this part of the total
    #[arg(help_heading = GRAPH, long, value_name = "F", default_value_t = GraphOptions::default().edge_fraction, hide_short_help = true)]
    edge_fraction: f64,
    /// Draw a box for each way to a frame; also of callgrind
    #[arg(help_heading = GRAPH, long, hide_short_help = true)]
    pub call_tree: bool,
}

#[derive(Args)]
pub struct InfoArgs {
    #[command(flatten)]
    pub input: Sides,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args)]
pub struct RawArgs {
    #[command(flatten)]
    pub input: Sides,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
}

impl ViewArgs {
    /// The format that is named, or that the output's name asks for; to be opened, it is a page.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        if self.open && self.output.format.is_none() { Format::named("html") } else { self.output.format() }
    }

    pub fn graph_options(&self) -> GraphOptions {
        let mut options = GraphOptions::default();
        options.node_count = self.rows.n.unwrap_or(options.node_count);
        options.node_fraction = self.graph.node_fraction;
        options.edge_fraction = self.graph.edge_fraction;
        options.call_tree = self.graph.call_tree;
        options.rank = match self.rows.sort {
            None => Rank::Entropy,
            Some(SortBy::Flat) => Rank::Flat,
            Some(SortBy::Cum) => Rank::Cum,
        };
        options
    }
}
