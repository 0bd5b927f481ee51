//! Translates the arguments of `go tool pprof`, whose options have one dash. If a word has an equivalent here, it is
//! translated; otherwise the error suggests an alternative. docs/from-pprof.md has the same list for people, and a test
//! compares both with `go tool pprof -h`.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use crate::args::{self, Cli};

/// The translation of a pprof word.
enum Meaning {
    /// A view, or a view in a format.
    View(&'static [&'static str]),
    /// A view with a regular expression.
    ViewOf(&'static str),
    /// An option without a value.
    Switch(&'static [&'static str]),
    /// A switch that is on by default. The words apply when it is turned off.
    TurnedOff(&'static [&'static str]),
    /// An option with a value, and the unit to append to the value.
    Option(&'static str, &'static str),
    /// An option for pictures of the call graph. Tables do not drop rows by a fraction.
    InPictures(&'static str),
    /// The base. The other files then form the new side.
    Base,
    /// How symbols are found and demangled.
    Symbolize,
    /// No equivalent; the text suggests an alternative.
    Answer(&'static str),
}

use Meaning::{Answer, Base, InPictures, Option as Valued, Switch, Symbolize, TurnedOff, View, ViewOf};

const PICTURE: &str =
    "-o graph.svg writes a picture without Graphviz; other kinds: --format dot | dot -Tpng -o graph.png";
const BROWSER: &str = "-o report.html --open writes a page and opens it in the browser; no server runs";
const SERVER: &str = "pprofdiff serve --open FILES shows them in the browser";
const WEBLIST: &str =
    "list REGEX --binary PATH --source-path DIR -o list.html --open writes a page of lines with their instructions";
const CERTIFICATES: &str =
    "https uses the system's certificates; fetch the profile with curl: curl ... | pprofdiff top -";
const SYMBOLS: &str =
    "names come from the profile; for addresses without names set the binary: --binary PATH, or PPROF_BINARY_PATH";

/// All words of `go tool pprof -h`, in its order.
const WORDS: &[(&str, Meaning)] = &[
    ("callgrind", View(&["top", "--format", "callgrind"])),
    ("comments", View(&["comments"])),
    ("disasm", ViewOf("disasm")),
    ("dot", View(&["top", "--format", "dot"])),
    ("eog", Answer(BROWSER)),
    ("evince", Answer(BROWSER)),
    ("gif", Answer(PICTURE)),
    ("gv", Answer(BROWSER)),
    ("kcachegrind", Answer("-o x.callgrind writes the file; then: kcachegrind x.callgrind")),
    ("list", ViewOf("list")),
    ("pdf", Answer(PICTURE)),
    ("peek", ViewOf("peek")),
    ("png", Answer(PICTURE)),
    ("proto", View(&["top", "--format", "pprof"])),
    ("ps", Answer(PICTURE)),
    ("raw", View(&["raw"])),
    ("svg", View(&["top", "--format", "svg"])),
    ("tags", View(&["labels"])),
    ("text", View(&["top"])),
    ("top", View(&["top"])),
    ("topproto", Answer("-o rows.csv or -o rows.json writes the rows of a table, -o x.pb.gz whole samples")),
    ("traces", View(&["traces"])),
    ("tree", View(&["tree"])),
    ("web", Answer(BROWSER)),
    ("weblist", Answer(WEBLIST)),
    ("call_tree", Switch(&["--call-tree"])),
    ("compact_labels", Answer("headers are already short; --format csv has none")),
    ("divide_by", Answer("--normalize FACTOR scales the new side; one profile is shown as it is")),
    ("drop_negative", Switch(&["--drop-negative"])),
    ("edgefraction", InPictures("--edge-fraction")),
    ("focus", Valued("--focus", "")),
    ("hide", Valued("--hide", "")),
    ("ignore", Valued("--ignore", "")),
    ("intel_syntax", Answer("instructions are written in AT&T's syntax, as objdump does")),
    ("mean", Switch(&["--mean"])),
    ("nodecount", Valued("-n", "")),
    ("nodefraction", InPictures("--node-fraction")),
    ("noinlines", Switch(&["--noinlines"])),
    ("normalize", Switch(&["--normalize", "total"])),
    ("output", Valued("--output", "")),
    ("prune_from", Valued("--prune-from", "")),
    ("relative_percentages", Switch(&["--relative-percentages"])),
    ("sample_index", Valued("--sample-type", "")),
    ("show", Valued("--show", "")),
    ("show_from", Valued("--show-from", "")),
    ("showcolumns", Answer("columns of source lines are not shown; --granularity lines shows lines")),
    ("source_path", Valued("--source-path", "")),
    ("tagfocus", Valued("--tagfocus", "")),
    ("taghide", Valued("--taghide", "")),
    ("tagignore", Valued("--tagignore", "")),
    ("tagleaf", Valued("--tagleaf", "")),
    ("tagroot", Valued("--tagroot", "")),
    ("tagshow", Valued("--tagshow", "")),
    ("trim", TurnedOff(&["-n", "0", "--node-fraction", "0", "--edge-fraction", "0"])),
    ("trim_path", Valued("--trim-path", "")),
    ("unit", Valued("--unit", "")),
    ("functions", Switch(&["--granularity", "functions"])),
    ("filefunctions", Switch(&["--granularity", "filefunctions"])),
    ("files", Switch(&["--granularity", "files"])),
    ("lines", Switch(&["--granularity", "lines"])),
    ("addresses", Switch(&["--granularity", "addresses"])),
    ("cum", Switch(&["--sort", "cum"])),
    ("flat", Switch(&["--sort", "flat"])),
    (
        "seconds",
        Answer(
            "put it in the URL, .../profile?seconds=30; heap, mutex and block: pprofdiff delta URL --seconds 30 -o OUT",
        ),
    ),
    ("timeout", Valued("--timeout", "s")),
    ("buildid", Answer(SYMBOLS)),
    ("add_comment", Answer("written profiles keep their own comments")),
    ("diff_base", Base),
    ("base", Base),
    ("symbolize", Symbolize),
    ("tls_cert", Answer(CERTIFICATES)),
    ("tls_key", Answer(CERTIFICATES)),
    ("tls_ca", Answer(CERTIFICATES)),
    ("http", Answer(SERVER)),
    ("no_browser", Answer("-o report.html writes the page without opening it")),
    ("tools", Answer("pprofdiff runs no other tools, so it needs no path")),
    ("all_frames", Switch(&["--all-frames"])),
    ("inuse_space", Switch(&["--sample-type", "inuse_space"])),
    ("inuse_objects", Switch(&["--sample-type", "inuse_objects"])),
    ("alloc_space", Switch(&["--sample-type", "alloc_space"])),
    ("alloc_objects", Switch(&["--sample-type", "alloc_objects"])),
    ("total_delay", Switch(&["--sample-type", "delay"])),
    ("contentions", Switch(&["--sample-type", "contentions"])),
    ("mean_delay", Switch(&["--mean", "--sample-type", "delay"])),
];

/// Translates pprof's arguments into ours. Returns the arguments unchanged if none of them is pprof's.
///
/// # Errors
/// Fails if a pprof word has no equivalent; the message suggests an alternative. Also fails for a missing or invalid
/// value, two views, a view of pprof together with a verb of pprofdiff, and a base without a profile to compare.
pub fn translate_args(args: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let args: Vec<OsString> = args.into_iter().collect();
    // This quick check avoids building the command for most argument lists, which have no pprof words.
    let is_known = |arg: &OsString| arg.to_str().and_then(named).is_some();
    if !args.iter().skip(1).any(is_known) {
        return Ok(args);
    }
    let command = args::whole();
    if !args.iter().skip(1).any(|arg| arg.to_str().is_some_and(|arg| meaning(&command, arg).is_some())) {
        return Ok(args);
    }
    ArgTranslation::from_args(&command, args)?.words()
}

/// Returns the pprof word of an argument, its meaning, and the value after `=`, if the argument may be an option of
/// pprof.
fn named(arg: &str) -> Option<(&'static str, &'static Meaning, Option<&str>)> {
    let word = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    WORDS.iter().find(|(word, _)| *word == name).map(|(word, meaning)| (*word, meaning, value))
}

/// Like [`named`], except that an argument with two dashes is not pprof's if it is one of our options.
fn meaning<'a>(command: &Command, arg: &'a str) -> Option<(&'static str, &'static Meaning, Option<&'a str>)> {
    let option = named(arg)?;
    let is_ours = arg.starts_with("--") && options(command).any(|spec| spec.get_long() == Some(option.0));
    (!is_ours).then_some(option)
}

/// Returns the options of all verbs.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().chain(command.get_subcommands().flat_map(Command::get_arguments))
}

/// Returns the maximum number of values that follow our option `arg`.
pub fn most_values(command: &Command, arg: &str) -> usize {
    let mut letters = arg.chars().skip(1);
    let (letter, more) = (letters.next(), letters.next());
    let option = match arg.strip_prefix("--") {
        Some(long) => options(command).find(|spec| spec.get_long() == Some(long)),
        None => options(command).find(|spec| more.is_none() && letter.is_some() && spec.get_short() == letter),
    };
    let max_values = |spec: &Arg| spec.get_num_args().map_or(1, |range| range.max_values());
    option.filter(|spec| spec.get_action().takes_values()).map_or(0, max_values)
}

/// Returns true if an option of a verb has this long name.
pub fn is_long_option(command: &Command, name: &str) -> bool {
    options(command).any(|spec| spec.get_long() == Some(name))
}

/// Returns true if the argument is an option, and not a file or a value.
pub fn is_option(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|arg| arg.len() > 1 && arg.starts_with('-'))
}

/// The parsed arguments.
#[derive(Default)]
struct ArgTranslation {
    program: Vec<OsString>,
    /// pprof's word for a view, and our words.
    view: Option<(&'static str, Vec<OsString>)>,
    base: Vec<OsString>,
    /// All arguments that are not options: files, and a verb of pprofdiff with its expression.
    files: Vec<OsString>,
    options: Vec<OsString>,
    /// pprof's word for the last picture option, for the error if the view is a table.
    picture_option: Option<&'static str>,
    /// True if the output file came from pprof's `-output`, whose extension does not set the format.
    has_output: bool,
}

impl ArgTranslation {
    fn from_args(command: &Command, args: Vec<OsString>) -> Result<ArgTranslation, String> {
        let mut args = args.into_iter().peekable();
        let mut read = ArgTranslation { program: args.next().into_iter().collect(), ..ArgTranslation::default() };
        while let Some(arg) = args.next() {
            let text = arg.to_str().unwrap_or_default();
            if text == "--" {
                read.files.extend(args);
                break;
            }
            if let Some((word, meaning, value)) = meaning(command, text) {
                read.word(word, meaning, value.map(OsString::from), &mut args)?;
            } else if is_option(&arg) {
                let mut values = most_values(command, text);
                read.options.push(arg);
                while values > 0
                    && let Some(value) = args.next_if(|value| !is_option(value))
                {
                    read.options.push(value);
                    values -= 1;
                }
            } else {
                read.files.push(arg);
            }
        }
        Ok(read)
    }

    fn word(
        &mut self,
        word: &'static str,
        meaning: &'static Meaning,
        value: Option<OsString>,
        args: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), String> {
        let is_off =
            matches!(value.as_ref().and_then(|v| v.to_str()), Some("false" | "f" | "F" | "0" | "FALSE" | "False"));
        let is_on =
            value.as_ref().is_none_or(|v| matches!(v.to_str(), Some("true" | "t" | "T" | "1" | "TRUE" | "True")));
        if matches!(meaning, View(_) | Switch(_) | TurnedOff(_)) && !is_on && !is_off {
            return Err(format!("-{word} must be on or off: -{word}, -{word}=true or -{word}=false"));
        }
        let owned = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let mut valued = || {
            let value = value.clone().or_else(|| args.next());
            value.ok_or_else(|| format!("-{word} needs a value"))
        };
        match meaning {
            View(_) | Switch(_) if is_off => {}
            View(words) => self.set_view(word, owned(words))?,
            ViewOf(view) => {
                let regex = valued()?;
                self.set_view(word, vec![view.into(), regex])?;
            }
            Switch(words) => self.options.extend(owned(words)),
            TurnedOff(words) => self.options.extend(if is_off { owned(words) } else { Vec::new() }),
            Valued(option, unit) => {
                let mut value = valued()?;
                value.push(unit);
                self.has_output |= word == "output";
                // Uses a single argument, so that the value may begin with a dash.
                let mut option = OsString::from(option);
                if option != "-n" {
                    option.push("=");
                }
                option.push(value);
                self.options.push(option);
            }
            InPictures(option) => {
                self.options.extend([option.into(), valued()?]);
                self.picture_option = Some(word);
            }
            Base => self.base.push(valued()?),
            Symbolize => {
                let how = valued()?.to_string_lossy().to_lowercase();
                for part in how.split(':') {
                    match part.strip_prefix("demangle=") {
                        Some(mode) => self.options.push(format!("--demangle={mode}").into()),
                        None if part == "none" || part == "no" => self.options.push("--demangle=off".into()),
                        None if part.is_empty() => {}
                        None => return Err(answered(word, SYMBOLS)),
                    }
                }
            }
            Answer(answer) => return Err(answered(word, answer)),
        }
        Ok(())
    }

    fn set_view(&mut self, word: &'static str, words: Vec<OsString>) -> Result<(), String> {
        match self.view.replace((word, words)) {
            Some((before, _)) if before != word => Err(format!("-{before} and -{word} are two views; choose one")),
            _ => Ok(()),
        }
    }

    /// Returns the translated arguments: the view, the options, then the files of each side.
    fn words(self) -> Result<Vec<OsString>, String> {
        let ArgTranslation { program, view, base, mut files, mut options, picture_option, has_output } = self;
        let given = files
            .first()
            .and_then(|first| first.to_str())
            .and_then(|first| Cli::command().find_subcommand(first).map(|_| first.to_owned()));
        let verb_words = match (&given, &view) {
            (Some(verb), Some((word, _))) => {
                return Err(format!("-{word} is a view of pprof, and {verb} a verb of pprofdiff; choose one"));
            }
            (Some(verb), None) if ["peek", "list", "disasm"].contains(&verb.as_str()) => 2,
            (Some(_), None) => 1,
            (None, _) => 0,
        };
        let files_of_new = files.split_off(verb_words.min(files.len()));
        let mut words = [program, files].concat();
        let has = |options: &[OsString], option: &str| {
            options.iter().any(|o| o.to_str().is_some_and(|o| o.starts_with(option)))
        };
        let mut is_table = false;
        if let Some((word, view)) = view {
            let is_other = view.iter().any(|word| word == "--format" || word == "raw" || word == "comments");
            is_table = !is_other && !has(&options, "--format");
            if is_table && has_output {
                options.extend(["--format", "text"].map(OsString::from));
            }
            if base.is_empty() && files_of_new.len() > 1 {
                return Err(format!(
                    "-{word} A B is one profile in pprof; to compare, write -{word} -base A B or pprofdiff {verb} A B; \
                     if A is the program, write pprofdiff {verb} B --binary A; to add up, use pprofdiff merge",
                    verb = view[0].display()
                ));
            }
            words.extend(view);
        }
        if let Some(word) = picture_option.filter(|_| is_table) {
            return Err(answered(word, "tables do not drop rows by a fraction; -n N limits the rows"));
        }
        words.extend(options);
        if base.is_empty() {
            words.extend(files_of_new);
            return Ok(words);
        }
        if files_of_new.is_empty() {
            return Err("-base sets one side, but the profile to compare is missing".to_owned());
        }
        // pprof adds up the files of a side, and so does --sum.
        if base.len() > 1 || files_of_new.len() > 1 {
            words.push("--sum".into());
        }
        for (side, files) in [("--base", base), ("--new", files_of_new)] {
            words.push(side.into());
            words.extend(files);
        }
        Ok(words)
    }
}

fn answered(word: &str, answer: &str) -> String {
    format!("-{word} is an option of pprof; here: {answer}")
}
