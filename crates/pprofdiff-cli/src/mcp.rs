//! `pprofdiff mcp`: the command as tools for agents, a server of the Model Context Protocol on standard input and
//! output.
//!
//! A tool is a verb, and its arguments are some of the verb's options under their names: a call becomes the words that
//! would be typed, and is parsed like those. So both mean the same, have one description and the same errors, and an
//! answer can name its next step as a call and as a command. Two things are the server's own: what is loaded stays
//! loaded under a short name, and an answer fits the tokens that the agent grants it.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Arg, ArgAction, Command, CommandFactory, Parser};
use pprofdiff::advice::{exactly, operand, typed, word};
use pprofdiff::check::Outcome;
use pprofdiff::list::Routine;
use pprofdiff::text::{harmless, redacted};
use pprofdiff::{Diff, Source};
use pprofdiff_report::{Ask, Format, Report, Request, missing_sources, text_head, tokens};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, transport};
use serde_json::{Value, json};

use crate::args::{Cli, InfoArgs, McpArgs, Verb};
use crate::{Failure, Inputs, Result, check, explain, must_match, say, usage};

/// A verb that agents can call.
struct Offer {
    tool: &'static str,
    verb: &'static str,
    /// What it does, if it is not what the verb's help says.
    about: Option<&'static str>,
    /// What it takes besides a diff and a budget, by the names that clap knows them by.
    options: &'static [&'static [&'static str]],
}

/// The options of all views. Those that are rarely needed are left to the command: an agent pays for each.
const VIEW: &[&str] =
    &["sample_type", "normalize", "focus", "ignore", "hide", "show", "show_from", "tagfocus", "tagignore"];

const OFFERS: [Offer; 6] = [
    Offer {
        tool: "load",
        verb: "info",
        about: Some(
            "Load two sides to compare, or one profile (new alone); says what is in the files, and the name that the \
             other tools take as diff",
        ),
        options: &[&["base", "new", "input_format", "input_type"]],
    },
    Offer { tool: "explain", verb: "explain", about: None, options: &[&["ops"], VIEW] },
    Offer { tool: "top", verb: "top", about: None, options: &[&["sort", "significant", "granularity"], VIEW] },
    Offer { tool: "peek", verb: "peek", about: None, options: &[&["regex", "granularity"], VIEW] },
    Offer {
        tool: "list",
        verb: "list",
        about: None,
        options: &[&["regex", "base_source", "new_source", "source_path"], VIEW],
    },
    Offer { tool: "check", verb: "check", about: None, options: &[&["fail_on", "floor", "strict"], VIEW] },
];

const INSTRUCTIONS: &str = "\
    Compares pprof profiles (and what other profilers write). Begin with load; explain names the causes of a \
    difference, the other tools show the numbers behind it. Each answer ends with the next step, as a call and as a \
    command.";

/// How many diffs stay loaded: a profile takes about its inflated size.
const MOST_LOADED: usize = 8;

/// Tokens of an answer, where none are given, and the fewest, in which a verdict and the next step have room.
const BUDGET: u64 = 2000;
const LEAST_BUDGET: u64 = 100;

/// Serves until the client goes.
pub fn run(args: &McpArgs) -> Result<()> {
    if io::stdin().is_terminal() {
        say("mcp waits for an agent on standard input; docs/agents.md says how one starts it");
    }
    let threads = rayon::ThreadPoolBuilder::new().build();
    let pool = threads.map_err(|e| Failure::Message(format!("no threads can be started: {e}")))?;
    let server = Server(Arc::new(Diffs { allow_urls: args.allow_urls, pool, loaded: Mutex::default() }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(async {
        match server.serve(transport::stdio()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
            // A client that goes before it has said anything wants nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    });
    // Nobody waits for what is still worked out, nor for the thread that reads.
    runtime.shutdown_background();
    served.map_err(Failure::Message)
}

struct Server(Arc<Diffs>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("pprofdiff", env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cli = Cli::command();
        Ok(ListToolsResult::with_all_items(OFFERS.iter().filter_map(|offer| offer.described(&cli)).collect()))
    }

    /// Answers on the pool: this thread goes on reading, so that a client that goes or cancels is noticed.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offer) = OFFERS.iter().find(|offer| offer.tool == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        let diffs = self.0.clone();
        let arguments = request.arguments.unwrap_or_default();
        let work = move || diffs.pool.install(|| diffs.answer(offer, arguments));
        let result = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(answer)) => CallToolResult::success(vec![ContentBlock::text(answer)]),
            Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(error)]),
            Err(e) => return Err(ErrorData::internal_error(e.to_string(), None)),
        };
        Ok(result.into())
    }
}

impl Offer {
    fn has(&self, name: &str) -> bool {
        self.options.iter().any(|names| names.contains(&name))
    }

    /// The tool as agents see it: help and values of the verb's own options.
    fn described(&self, cli: &Command) -> Option<Tool> {
        let verb = cli.find_subcommand(self.verb)?;
        let mut properties = JsonObject::new();
        if self.tool != "load" {
            properties.insert("diff".to_owned(), json!({"type": "string", "description": "What load called it"}));
        }
        properties.extend(self.arguments(verb).map(|arg| (arg.get_id().to_string(), property(arg))));
        let about = format!("The most tokens of the answer [default: {BUDGET}]");
        let budget = json!({"type": "integer", "minimum": LEAST_BUDGET, "description": about});
        properties.insert("budget".to_owned(), budget);
        let needed = ["diff", "new", "regex"].into_iter();
        let required: Vec<&str> = needed.filter(|name| properties.contains_key(*name)).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let Value::Object(schema) = schema else { return None };
        let about = self.about.map(str::to_owned).or_else(|| verb.get_about().map(ToString::to_string));
        let mut about = about.unwrap_or_default();
        // How rules are written stands below the options of check, before its examples.
        let below = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        if let Some(more) = below.split("\n\n").next().filter(|more| !more.is_empty() && !more.starts_with("Examples"))
        {
            about = format!("{about}. {more}");
        }
        let tool = Tool::new(self.tool, about, schema);
        Some(tool.with_annotations(ToolAnnotations::new().read_only(true)))
    }

    /// The verb's options that the tool has, in the tool's order.
    fn arguments<'a>(&'a self, verb: &'a Command) -> impl Iterator<Item = &'a Arg> {
        let names = self.options.iter().flat_map(|names| names.iter());
        names.filter_map(|name| verb.get_arguments().find(|arg| arg.get_id() == name))
    }
}

/// An option as JSON Schema has it.
fn property(arg: &Arg) -> Value {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let mut property = match arg.get_action() {
        ArgAction::SetTrue => json!({"type": "boolean"}),
        ArgAction::Append if arg.get_value_delimiter().is_none() => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        _ if values.is_empty() => json!({"type": "string"}),
        _ => json!({"type": "string", "enum": values}),
    };
    property["description"] = json!(about);
    property
}

/// A call without what is the server's own.
struct Call {
    offer: &'static Offer,
    arguments: JsonObject,
}

impl Call {
    fn new(tool: &str, arguments: impl IntoIterator<Item = (&'static str, Value)>) -> Option<Call> {
        let offer = OFFERS.iter().find(|offer| offer.tool == tool)?;
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Some(Call { offer, arguments })
    }

    /// With what another call asks of the same question, where this one has no answer of its own.
    fn asking_as(mut self, other: &Call) -> Call {
        for (name, value) in &other.arguments {
            if self.offer.has(name) && !self.arguments.contains_key(name) {
                self.arguments.insert(name.clone(), value.clone());
            }
        }
        self
    }

    /// The verb and its options, each a word; what stands for itself comes last.
    fn words(&self) -> Result<Vec<String>> {
        let (cli, tool) = (Cli::command(), self.offer.tool);
        let verb = cli.find_subcommand(self.offer.verb);
        let (mut words, mut last) = (vec![self.offer.verb.to_owned()], Vec::new());
        for (name, value) in &self.arguments {
            let arg = verb.and_then(|verb| self.offer.arguments(verb).find(|arg| arg.get_id() == name.as_str()));
            let Some(arg) = arg else {
                let has = self.offer.options.concat().join(", ");
                return Err(Failure::Message(format!("{tool} takes no {name:?}; it takes diff, budget, {has}")));
            };
            let texts = match value {
                Value::Null | Value::Bool(false) => continue,
                Value::Bool(true) if matches!(arg.get_action(), ArgAction::SetTrue) => vec![None],
                Value::Array(values) => values.iter().map(text).collect(),
                value => vec![text(value)],
            };
            for text in texts {
                match (arg.get_long(), text) {
                    (Some(long), None) if matches!(arg.get_action(), ArgAction::SetTrue) => {
                        words.push(format!("--{long}"));
                    }
                    (Some(long), Some(text)) => words.push(format!("--{long}={text}")),
                    // An expression that begins with a dash is no option.
                    (None, Some(text)) if text.starts_with('-') => last.push(format!("\\{text}")),
                    (None, Some(text)) => last.push(text),
                    _ => return Err(Failure::Message(format!("{name} is {value}, which it can't be"))),
                }
            }
        }
        words.append(&mut last);
        Ok(words)
    }

    /// What the words mean.
    fn verb(&self) -> Result<Verb> {
        let words = std::iter::once("pprofdiff".to_owned()).chain(self.words()?);
        let cli = Cli::try_parse_from(words).map_err(|e| Failure::Message(usage(&e)))?;
        cli.verb.ok_or_else(|| Failure::Message("nothing is asked".to_owned()))
    }

    /// The command for a shell, of these inputs.
    fn command(&self, inputs: &str) -> Option<String> {
        let quoted = |text: &String| match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => format!("{option}={}", word(value)),
            None if text.starts_with("--") => text.clone(),
            _ => word(text),
        };
        let words: Vec<String> = self.words().ok()?.iter().map(quoted).collect();
        Some(format!("pprofdiff {} {inputs}", words.join(" ")))
    }

    /// The next step in a line, as a call and as a command; in less where it takes more than a quarter of the budget.
    fn told(&self, loaded: &Loaded, budget: usize) -> String {
        let mut arguments = JsonObject::from_iter([("diff".to_owned(), json!(loaded.name))]);
        arguments.extend(self.arguments.clone());
        let tool = self.offer.tool;
        let call = format!("Next: {tool} {}", Value::Object(arguments));
        let shell = self.command(&loaded.inputs).map(|command| format!("{call} or in a shell: {command}"));
        let lines = shell.into_iter().chain([call, format!("Next: {tool}")]);
        let mut lines = lines.map(|line| format!("\n{}\n", harmless(&line)));
        lines.find(|line| tokens(line) <= budget / 4).unwrap_or_default()
    }
}

/// A value as it would be typed.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What is loaded, under a name.
struct Loaded {
    name: String,
    diff: Diff,
    /// The inputs as words for a shell, with how they were read.
    inputs: String,
}

/// The diffs, the one that was used last at the end, and how many there have been.
#[derive(Default)]
struct Store {
    loaded: Vec<Arc<Loaded>>,
    count: usize,
}

struct Diffs {
    allow_urls: bool,
    pool: rayon::ThreadPool,
    loaded: Mutex<Store>,
}

impl Diffs {
    /// The answer to a call, or one line that says why there is none; neither is longer than the budget.
    fn answer(&self, offer: &'static Offer, mut arguments: JsonObject) -> Result<String, String> {
        let budget = match arguments.remove("budget").unwrap_or(json!(BUDGET)) {
            Value::Number(n) if n.as_u64().is_some_and(|n| n >= LEAST_BUDGET) => n.as_u64().unwrap_or(BUDGET),
            other => return Err(format!("budget is a number of tokens from {LEAST_BUDGET} on, not {other}")),
        };
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        self.answer_within(offer, arguments, budget).map_err(|failure| {
            let message = match failure {
                Failure::Message(message) => message,
                Failure::ClosedPipe => "the reader has gone".to_owned(),
            };
            text_head(&harmless(&redacted(&message)), budget)
        })
    }

    fn answer_within(&self, offer: &'static Offer, mut arguments: JsonObject, budget: usize) -> Result<String> {
        let name = arguments.remove("diff").filter(|_| offer.tool != "load");
        let call = Call { offer, arguments };
        let verb = call.verb()?;
        if let Verb::Info(args) = &verb {
            return self.load(args, budget);
        }
        let loaded = self.named(name.as_ref())?;
        let request = request(&verb, budget)?.for_format(Format::named("text")?)?;
        let report = request.answer(&loaded.diff)?;
        must_match(&request, &report)?;
        let last = next(&call, &report).map_or_else(String::new, |step| step.told(&loaded, budget));
        let hint = match &report {
            Report::Listing(listing) => missing_sources(listing, ["base_source", "new_source", "source_path"]),
            _ => None,
        };
        let hint = hint.map(|hint| format!("\n{hint}\n")).filter(|hint| tokens(hint) <= budget / 4).unwrap_or_default();
        let text = report.text_within(budget.saturating_sub(tokens(&last) + tokens(&hint)))?;
        Ok(text + &hint + &last)
    }

    /// Loads what a call names, and says what it is.
    fn load(&self, args: &InfoArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::new(&args.input.load)?;
        let sources = |side: &[std::path::PathBuf]| {
            let sources = side.iter().map(|path| inputs.found(Source::Path(path.clone()), self.allow_urls));
            sources.collect::<pprofdiff::Result<Vec<_>>>()
        };
        let (base, new) = (sources(&args.input.base)?, sources(&args.input.new)?);
        let names = |side: &[Source], other| -> Vec<String> {
            side.iter().map(|source| operand(&source.name(), other)).collect()
        };
        let (base_names, new_names) = (names(&base, "BASE"), names(&new, "NEW"));
        let (diff, mut words) = match (&base[..], &new[..]) {
            ([], [one]) => (Diff::of_profile(&one.load(&inputs.options)?)?, new_names.join(" ")),
            ([], _) => return Err(Failure::Message("several runs need a base to be compared with".to_owned())),
            ([_], [_]) => (Diff::load(&base, &new, &inputs.options)?, [base_names, new_names].concat().join(" ")),
            _ => {
                let words = format!("--base {} --new {}", base_names.join(" "), new_names.join(" "));
                (Diff::load(&base, &new, &inputs.options)?, words)
            }
        };
        let load = &args.input.load;
        for (option, value) in [("--input-format", &load.input_format), ("--input-type", &load.input_type)] {
            if let Some(value) = value {
                words.push_str(&format!(" {option}={}", word(value)));
            }
        }
        let report = Request::default().asking(Ask::Info).answer(&diff)?;
        let step = Call::new(if diff.is_two_sided() { "explain" } else { "top" }, []);
        let (loaded, dropped) = self.keep(diff, words);
        let mut first = format!("diff {}\n", loaded.name);
        if let Some(dropped) = dropped {
            let why = format!("since {MOST_LOADED} stay loaded; load it again to ask of it");
            first.push_str(&format!("{} is dropped, {why}\n", dropped.name));
        }
        let last = step.map_or_else(String::new, |step| step.told(&loaded, budget));
        let text = report.text_within(budget.saturating_sub(tokens(&first) + tokens(&last)))?;
        Ok(first + &text + &last)
    }

    /// Keeps a diff under a new name; the one that goes for it, if there are too many.
    fn keep(&self, diff: Diff, inputs: String) -> (Arc<Loaded>, Option<Arc<Loaded>>) {
        let mut store = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        store.count += 1;
        let loaded = Arc::new(Loaded { name: format!("d{}", store.count), diff, inputs });
        store.loaded.push(loaded.clone());
        let dropped = (store.loaded.len() > MOST_LOADED).then(|| store.loaded.remove(0));
        (loaded, dropped)
    }

    /// The diff of a name, which then is the one that was used last.
    fn named(&self, name: Option<&Value>) -> Result<Arc<Loaded>> {
        let mut store = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let at = name.and_then(Value::as_str).and_then(|name| store.loaded.iter().position(|l| l.name == name));
        let Some(at) = at else {
            let names: Vec<&str> = store.loaded.iter().map(|loaded| loaded.name.as_str()).collect();
            let there = match &names[..] {
                [] => "nothing is loaded".to_owned(),
                names => format!("loaded: {}", names.join(", ")),
            };
            let asked = name.map_or_else(|| "diff is missing".to_owned(), |name| format!("there is no diff {name}"));
            let message = format!("{asked} ({there}; the last {MOST_LOADED} stay): load it with the tool load");
            return Err(Failure::Message(message));
        };
        let loaded = store.loaded.remove(at);
        store.loaded.push(loaded.clone());
        Ok(loaded)
    }
}

/// What a verb asks, of no more rows than there are tokens for.
fn request(verb: &Verb, budget: usize) -> Result<Request> {
    let limit = Some(budget);
    Ok(match verb {
        Verb::Top(args) => {
            let (sort, significant) = (args.view.sort(), args.significant);
            args.view.query.request(Ask::Top { sort, limit, significant })?
        }
        Verb::Peek { regex, view } => {
            view.query.request(Ask::Peek { regex: regex.clone(), sort: view.sort(), limit })?
        }
        Verb::List { regex, sources, view } => {
            view.query.request(Ask::List { regex: regex.clone(), sources: sources.dirs(), limit })?
        }
        Verb::Explain(args) => args.query.request(Ask::Explain(explain::options(args)?))?,
        Verb::Check(args) => args.query.request(Ask::Check(check::options(args)?))?,
        _ => return Err(Failure::Message("this verb is no tool".to_owned())),
    })
}

/// What to ask after an answer: from the causes to their stacks, from rows to their callers, from those to the source.
fn next(call: &Call, report: &Report) -> Option<Call> {
    let two_sided = report.summary().is_some_and(|s| s.base.is_some());
    match (call.offer.tool, report) {
        ("explain", Report::Explain(e)) => {
            let sample_type = ("sample_type", json!(e.sample_type));
            let cause = e.causes.first();
            let label = cause.and_then(|cause| cause.label.as_ref());
            let label = label.map(|label| ("tagfocus", json!(format!("{}={}", label.key, label.value))));
            match cause.and_then(|cause| cause.evidence.pattern.as_deref()) {
                Some(pattern) => {
                    Call::new("peek", [("regex", json!(typed(pattern))), sample_type].into_iter().chain(label))
                }
                None => Call::new("top", std::iter::once(sample_type).chain(label)),
            }
        }
        ("top", Report::Table(table)) if !table.is_empty() => {
            Call::new("peek", [("regex", json!(typed(&exactly(&table.label(0)))))])
        }
        // A name with its file and line is none that list knows.
        ("peek", _) if !call.arguments.contains_key("granularity") => Call::new("list", []),
        ("list", Report::Listing(listing))
            if listing.routines.iter().any(has_no_source) && !call.arguments.contains_key("new_source") =>
        {
            Call::new("list", [("new_source", json!(["."]))])
        }
        ("list", _) if two_sided => Call::new("check", [("fail_on", json!(["total>+5%"]))]),
        ("check", Report::Check(check)) if check.verdict != Outcome::Pass => Call::new("explain", []),
        _ => Call::new("top", [("sort", json!("cum"))]),
    }
    .map(|step| step.asking_as(call))
}

fn has_no_source(routine: &Routine) -> bool {
    routine.places.1.is_none()
}
