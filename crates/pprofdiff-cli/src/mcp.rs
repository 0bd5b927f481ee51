//! `pprofdiff mcp`: the command as tools for agents, a server of the Model Context Protocol on standard input and
//! output.
//!
//! A tool is a verb, and its arguments are some of the verb's options under their names: a call becomes the words that
//! would be typed, and is parsed like those. So both mean the same, have one description and the same errors, and an
//! answer can name its next step as a call and as a command. Two things are the server's own: what is loaded stays
//! loaded under a short name, and an answer fits the tokens that the agent grants it.

mod call;
mod stdio;
mod tool;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pprofdiff::advice::{operand, word};
use pprofdiff::input::{SIGNS, sort_builds};
use pprofdiff::list::SourceDirs;
use pprofdiff::loading::Loading;
use pprofdiff::options::OptionValue;
use pprofdiff::recording::{RecordedSide, Recording};
use pprofdiff::text::{redacted, sanitize};
use pprofdiff::{Diff, Source, Work, work};
use pprofdiff_report::{EachWriter, Format, Report, Request, Style, View, missing_sources, text_head, tokens};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

use self::call::{Call, next};
use self::tool::{BUDGET, LEAST_BUDGET, TOOL_SPECS, ToolSpec};
use crate::args::{self, BatchArgs, InfoArgs, Later, McpArgs, SeriesArgs, Verb};
use crate::input::recorded_sources;
use crate::outputs::Outputs;
use crate::{Failure, Inputs, Result, batch, check, explain, is_pattern, must_match, say, series};

const INSTRUCTIONS: &str = "\
    Compares pprof profiles (and what other profilers write). Begin with load; explain names the causes of a \
    difference, the other tools show the numbers behind it. Each answer ends with the next step, as a call and as a \
    command.";

/// How many diffs stay loaded: a profile takes about its inflated size.
const MAX_LOADED: usize = 8;

/// Tokens of what says how many pairs are shown.
const ROOM_FOR_COUNT: usize = 40;

/// Tokens of what is said of wrong arguments, which may be megabytes.
const LONGEST_REFUSAL: usize = 500;

/// Serves until the client goes.
pub fn run(args: &McpArgs) -> Result<()> {
    if io::stdin().is_terminal() {
        say("mcp waits for an agent on standard input; docs/agents.md says how one starts it");
    }
    let threads = rayon::ThreadPoolBuilder::new().build();
    let pool = threads.map_err(|e| Failure::Message(format!("can't start threads: {e}")))?;
    let server =
        Server(Arc::new(Diffs { allow_urls: args.allow_urls, pool: Arc::new(pool), loaded: Mutex::default() }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(async {
        match server.serve(stdio::Stdio::new()).await {
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
        let (cli, mut known) = (args::whole(), Vec::new());
        let tools = TOOL_SPECS.iter().filter_map(|spec| spec.described(&cli, &mut known)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Answers on the pool: this thread goes on with other messages, so that a client that goes or cancels is noticed.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(spec) = TOOL_SPECS.iter().find(|spec| spec.tool == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        let diffs = self.0.clone();
        let arguments = request.arguments.unwrap_or_default();
        let work = Work::new();
        let stopping = work.clone();
        let watcher = tokio::spawn(async move {
            context.ct.cancelled().await;
            stopping.stop();
        });
        let answer = move || {
            let answer = || work.run(|| diffs.answer(spec, arguments));
            let answer = match spec.tool {
                // It waits for the pool, which one of the pool's own threads can't.
                "batch" => answer(),
                _ => diffs.pool.install(answer),
            };
            // Nobody reads it: a request that is cancelled has no answer.
            answer.unwrap_or_else(|e| Err(Refusal::Answer(e.to_string())))
        };
        let answered = tokio::task::spawn_blocking(answer).await;
        watcher.abort();
        let result = match answered {
            Ok(Ok(answer)) => CallToolResult::success(vec![ContentBlock::text(answer)]),
            Ok(Err(Refusal::Answer(error))) => CallToolResult::error(vec![ContentBlock::text(error)]),
            Ok(Err(Refusal::Arguments(error))) => return Err(ErrorData::invalid_params(error, None)),
            Err(e) => return Err(ErrorData::internal_error(e.to_string(), None)),
        };
        Ok(result.into())
    }

    /// A call of a tool whose parameters are none reaches rmcp's handlers as a method that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "tools/call" => {
                let why = "tools/call takes the name of a tool, and its arguments as an object";
                Err(ErrorData::invalid_params(why, None))
            }
            method => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
        }
    }
}

/// Why a call has no answer.
enum Refusal {
    /// The tool does not take such arguments.
    Arguments(String),
    /// The tool was called, and can't answer.
    Answer(String),
}

/// What is loaded, under a name.
struct Loaded {
    name: String,
    diff: Diff,
    /// The inputs as words for a shell, with how they were read.
    inputs: String,
    /// The names of the inputs, where that is a folder of runs, or sides of such.
    runs: Vec<PathBuf>,
}

/// The diffs, the one that was used last at the end, and how many there have been.
#[derive(Default)]
struct Store {
    loaded: Vec<Arc<Loaded>>,
    count: usize,
}

struct Diffs {
    allow_urls: bool,
    pool: Arc<rayon::ThreadPool>,
    loaded: Mutex<Store>,
}

impl Diffs {
    /// The answer to a call, or one line that says why there is none; neither is longer than the budget.
    fn answer(&self, spec: &'static ToolSpec, mut arguments: JsonObject) -> Result<String, Refusal> {
        let wrong = |message: &str| Refusal::Arguments(text_head(&sanitize(&redacted(message)), LONGEST_REFUSAL));
        let budget = match arguments.remove("budget").unwrap_or(json!(BUDGET)) {
            Value::Number(n) if n.as_u64().is_some_and(|n| n >= LEAST_BUDGET) => n.as_u64().unwrap_or(BUDGET),
            other => return Err(wrong(&format!("budget is a number of tokens from {LEAST_BUDGET} on, not {other}"))),
        };
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        let name = if spec.is_of_diff() { arguments.remove("diff") } else { None };
        if let Some(other) = name.as_ref().filter(|name| !name.is_string()) {
            return Err(wrong(&format!("diff is the name that load gave, not {other}")));
        }
        let call = Call { spec, arguments };
        call.check().map_err(|message| wrong(&message))?;
        self.answer_within(&call, name, budget).map_err(|failure| {
            let message = match failure {
                Failure::Message(message) => message,
                Failure::ClosedPipe => "the reader has gone".to_owned(),
                Failure::Interrupted => "the call was interrupted".to_owned(),
            };
            Refusal::Answer(text_head(&sanitize(&redacted(&message)), budget))
        })
    }

    fn answer_within(&self, call: &Call, name: Option<Value>, budget: usize) -> Result<String> {
        // Calls wait for the pool; one that was cancelled meanwhile is not begun.
        work::poll();
        let verb = call.verb()?;
        match &verb {
            Verb::Info(Later(args)) => return self.load(args, budget),
            Verb::Series(Later(args)) => return self.series(args, budget),
            Verb::Batch(Later(args)) => return self.batch(args, budget),
            _ => {}
        }
        let loaded = self.named(name.as_ref())?;
        let mut request = request(&verb, budget)?.for_format(Format::named("text")?)?;
        complete(&mut request.view, &loaded.runs)?;
        let report = request.answer(&loaded.diff)?;
        must_match(&request, &report, &loaded.diff)?;
        Ok(report.text_within(budget, &endings(call, &report, &loaded.name, &loaded.inputs))?)
    }

    /// Loads what a call names, and says what it is.
    fn load(&self, args: &InfoArgs, budget: usize) -> Result<String> {
        let runs = recorded(&args.input.base, &args.input.new);
        let mut load = args.load.clone();
        if let ([], Some(dir)) = (&args.input.base[..], runs.first().filter(|dir| Recording::is_in(dir))) {
            Recording::add_binaries(dir, &mut load.profiles.0);
        }
        let inputs = Inputs::new(&load, Outputs::default())?;
        // What is loaded, and what it is called.
        let sources = |side: &[PathBuf], placeholder| {
            let (mut all, mut names) = (Vec::new(), Vec::new());
            for path in side {
                let found = self.sources(path, &inputs)?;
                match RecordedSide::named(path)? {
                    Some(side) => names.push(operand(&side.name, placeholder)),
                    None => names.extend(found.iter().map(|source| operand(&source.name(), placeholder))),
                }
                all.extend(found);
            }
            Ok::<_, Failure>((all, names))
        };
        let ((base, base_names), (new, new_names)) = match runs.as_slice() {
            [dir] if Recording::is_in(dir) => {
                let [base, new] = Recording::read_sides(dir)?;
                (
                    (sources(&base, "")?.0, Vec::new()),
                    (sources(&new, "")?.0, vec![operand(&dir.to_string_lossy(), "RUNS")]),
                )
            }
            _ => {
                // One file may be both sides, by its time.
                let is_two_parts = args.input.base.is_empty() && load.profiles.0.has_both_times();
                let base = if is_two_parts { &args.input.new } else { &args.input.base };
                (sources(base, "BASE")?, sources(&args.input.new, "NEW")?)
            }
        };
        let (diff, mut words) = match (&base_names[..], &new_names[..]) {
            ([], [name]) if !base.is_empty() => {
                let diff = Diff::load(&base, &new, &inputs.options)?;
                (runs.iter().fold(diff, |diff, dir| diff.with_folder(dir)), name.clone())
            }
            ([], [name]) => {
                load.profiles.0.to_options_without_base()?;
                let one = match &new[..] {
                    [one] => one.clone(),
                    runs => Source::Merged(name.clone(), runs.to_vec()),
                };
                (Diff::of_profile(&one.load(&inputs.options)?)?, name.clone())
            }
            ([], _) => return Err(Failure::Message("several runs need a base to be compared with".to_owned())),
            ([_], [_]) => (Diff::load(&base, &new, &inputs.options)?, [base_names, new_names].concat().join(" ")),
            _ => {
                let words = format!("--base {} --new {}", base_names.join(" "), new_names.join(" "));
                (Diff::load(&base, &new, &inputs.options)?, words)
            }
        };
        for option in Loading::options().filter(|option| option.is_set(&args.load.profiles.0)) {
            let name = option.name.replace('_', "-");
            words.push_str(&match option.get(&args.load.profiles.0) {
                OptionValue::Flag(_) => format!(" --{name}"),
                value => format!(" --{name}={}", word(&value.text(&(option.kind)()))),
            });
        }
        let report = Request::default().asking(View::Info).answer(&diff)?;
        let step = Call::new(if diff.is_two_sided() { "explain" } else { "top" }, []);
        let (loaded, dropped) = self.keep(diff, words, runs);
        let mut first = format!("diff {}\n", loaded.name);
        if let Some(dropped) = dropped {
            let why = format!("since {MAX_LOADED} stay loaded; load it again to ask of it");
            first.push_str(&format!("{} is dropped, {why}\n", dropped.name));
        }
        let endings = step.map_or_else(Vec::new, |step| step.next_steps(Some(&loaded.name), &loaded.inputs));
        let text = report.text_within(budget.saturating_sub(tokens(&first)), &endings)?;
        Ok(first + &text)
    }

    /// How frames go along builds, and next the builds around the largest change.
    fn series(&self, args: &SeriesArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::without_base(&args.load, Outputs::default())?;
        let mut builds = inputs.named_by_agent(&args.builds, self.allow_urls)?;
        sort_builds(&mut builds);
        if let Some(base) = &args.base {
            builds.insert(0, ("base".to_owned(), inputs.resolve(RecordedSide::source_of(base)?, self.allow_urls)?));
        }
        let builds = builds.into_iter().map(|(key, source)| Ok((key, regular(source)?)));
        let builds = builds.collect::<Result<Vec<_>>>()?;
        let (format, count) = (Format::named("text")?, builds.len());
        let series = series::load(args, &inputs, format, count, builds.into_iter())?;
        let (report, _) = series::answer(args, &inputs, format, &series)?;
        let point = series.largest_change(args.shown.sort(), 1);
        let endings = point.map_or_else(Vec::new, |point| {
            let before = if args.base.is_some() { 0 } else { series.builds.loaded_before(point.build) };
            let path = |build: usize| json!([series.builds.all[build].path]);
            let step = Call::new("load", [("base", path(before)), ("new", path(point.build))]);
            step.map_or_else(Vec::new, |step| step.next_steps(None, ""))
        });
        Ok(report.text_within(budget, &endings)?)
    }

    /// The pairs for which there is room, and next the first of them that can be compared.
    fn batch(&self, args: &BatchArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::new(&args.load, Outputs::default())?;
        for name in &args.pairs {
            self.readable(Source::Path(name.into()), &inputs)?;
        }
        let mut writer = EachWriter::new(Format::named("text")?, Style::default())?;
        let (options, table) = (inputs.options.clone(), batch::table(args, writer.limit())?);
        let (pairs, count) = batch::pairs(args, inputs, self.allow_urls)?;
        // Names of the pairs that are at work or done, with their paths.
        let steps = Arc::new(Mutex::new(Vec::new()));
        let known = steps.clone();
        let pairs = pairs.map(move |mut item| {
            item.sides = item.sides.and_then(|(base, new)| {
                let names = |side: &[Source]| json!(side.iter().map(Source::name).collect::<Vec<_>>());
                let step = Call::new("load", [("base", names(&base)), ("new", names(&new))]);
                known.lock().unwrap_or_else(PoisonError::into_inner).push((item.name.clone(), step));
                let regular = |side: Vec<Source>| side.into_iter().map(regular).collect::<pprofdiff::Result<Vec<_>>>();
                Ok((regular(base)?, regular(new)?))
            });
            item
        });
        // Each step adds one pair or selects a longer ending, and the answer stops at the first step that does not fit. A
        // larger budget therefore never shows less.
        let (mut text, mut shown, mut endings, mut ending, mut is_full) = (String::new(), 0, Vec::new(), 0, false);
        for (name, result) in pprofdiff::batch::map(self.pool.clone(), pairs, options, table) {
            let mut block = Vec::new();
            match &result {
                Ok(table) => writer.write(&name, Ok(table), &mut block)?,
                Err(e) => writeln!(block, "{}  failed: {e}", sanitize(&name))?,
            }
            let block = String::from_utf8_lossy(&block).into_owned();
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            let at = steps.iter().position(|(of, _)| *of == name);
            let step = at.and_then(|at| steps.swap_remove(at).1);
            drop(steps);
            if endings.is_empty() && result.is_ok() {
                endings = step.map_or_else(Vec::new, |step| step.next_steps(None, ""));
            }
            let size = |text: &str, ending: usize| tokens(text) + endings.get(ending).map_or(0, |e: &String| tokens(e));
            if is_full || size(&text, ending) + tokens(&block) + ROOM_FOR_COUNT > budget {
                let all = count.map_or_else(String::new, |count| format!(" of {count}"));
                let more = format!("{shown}{all} pairs are shown; the others: ask with a larger budget\n");
                if shown > 0 {
                    return Ok(text + &more + endings.get(ending).map_or("", String::as_str));
                }
                let ending = endings.iter().rfind(|ending| tokens(ending) <= budget / 4).map_or("", String::as_str);
                return Ok(text_head(&block, budget.saturating_sub(budget / 4 + ROOM_FOR_COUNT)) + &more + ending);
            }
            text.push_str(&block);
            shown += 1;
            while !is_full && endings.get(ending + 1).is_some_and(|longer| tokens(longer) <= tokens(&text) / 3) {
                is_full = size(&text, ending + 1) + ROOM_FOR_COUNT > budget;
                ending += usize::from(!is_full);
            }
        }
        let ending = endings.iter().rfind(|ending| tokens(&text) + tokens(ending) <= budget);
        Ok(text + ending.map_or("", String::as_str))
    }

    /// What a name stands for: a URL, a file, or the files of a pattern, which no shell has seen.
    fn sources(&self, path: &Path, inputs: &Inputs) -> Result<Vec<Source>> {
        let is_pattern = is_pattern(path) && path.to_string_lossy().contains(SIGNS);
        let named = match is_pattern {
            true => inputs.builds(path, self.allow_urls)?.into_iter().map(|(_, source)| source).collect(),
            false => RecordedSide::sources_of(path)?,
        };
        named.into_iter().map(|source| self.readable(source, inputs)).collect()
    }

    /// What the server reads of what an agent names.
    fn readable(&self, source: Source, inputs: &Inputs) -> Result<Source> {
        Ok(regular(inputs.resolve(source, self.allow_urls)?)?)
    }

    /// Keeps a diff under a new name; the one that goes for it, if there are too many.
    fn keep(&self, diff: Diff, inputs: String, runs: Vec<PathBuf>) -> (Arc<Loaded>, Option<Arc<Loaded>>) {
        let mut store = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        store.count += 1;
        let loaded = Arc::new(Loaded { name: format!("d{}", store.count), diff, inputs, runs });
        store.loaded.push(loaded.clone());
        let dropped = (store.loaded.len() > MAX_LOADED).then(|| store.loaded.remove(0));
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
            let message = format!("{asked} ({there}; the last {MAX_LOADED} stay): load it with the tool load");
            return Err(Failure::Message(message));
        };
        let loaded = store.loaded.remove(at);
        store.loaded.push(loaded.clone());
        Ok(loaded)
    }
}

/// Returns the possible endings of an answer, from the shortest to the longest. They have the next step and, if sources are
/// missing, a hint to their folders. An agent needs the hint more than the shell command, so the shell command comes last.
fn endings(call: &Call, report: &Report, diff: &str, inputs: &str) -> Vec<String> {
    let mut endings = next(call, report).map_or_else(Vec::new, |step| step.next_steps(Some(diff), inputs));
    let hint = match report {
        Report::Listing(listing) => missing_sources(listing, ["base_source", "new_source", "source_path"]),
        _ => None,
    };
    if let (Some(hint), [_, call, shell]) = (hint, &mut endings[..]) {
        *shell = format!("\n{hint}\n{shell}");
        let hinted = format!("\n{hint}\n{call}");
        endings.insert(2, hinted);
    }
    endings
}

/// Refuses pipes and devices, which may never end: standard input is the client's own, and whoever waits for another holds a
/// thread for ever.
fn regular(source: Source) -> pprofdiff::Result<Source> {
    let other = source.path().and_then(|path| fs::metadata(path).ok()).filter(|m| !m.is_file() && !m.is_dir());
    match other {
        Some(_) => {
            let why = "this is a pipe or a device, and mcp reads regular files only: write it to a file first";
            Err(pprofdiff::Error::query(why).in_input(&source.name()))
        }
        None => Ok(source),
    }
}

/// The names of a folder of runs, or of two sides of which one is of such.
fn recorded(base: &[PathBuf], new: &[PathBuf]) -> Vec<PathBuf> {
    let names = [base, new].concat();
    let is_of_runs = |path: &PathBuf| Recording::is_in(path) || matches!(RecordedSide::named(path), Ok(Some(_)));
    if names.len() <= 2 && names.iter().any(is_of_runs) { names } else { Vec::new() }
}

/// Adds what a folder of runs knows to what is asked: how many operations ran, and where sources are.
fn complete(view: &mut View, runs: &[PathBuf]) -> Result<()> {
    match (view, runs) {
        (View::Explain(options), [dir]) if Recording::is_in(dir) && options.ops.is_none() => {
            options.ops = Recording::read(dir)?.operations();
        }
        (View::List { sources, .. }, runs) if *sources == SourceDirs::default() => {
            *sources = recorded_sources(runs).unwrap_or_default();
        }
        _ => {}
    }
    Ok(())
}

/// What a verb asks, of no more rows than there are tokens for.
fn request(verb: &Verb, budget: usize) -> Result<Request> {
    let limit = Some(budget);
    Ok(match verb {
        Verb::Top(Later(args)) => {
            let (sort, significant) = (args.view.rows.sort(), args.significant);
            args.view.query.request(View::Top { sort, limit, significant })
        }
        Verb::View(verb) => verb.args.query.request(verb.view.clone().ordered(verb.args.rows.sort(), limit)),
        Verb::Explain(Later(args)) => args.query.request(View::Explain(explain::options(args)?)),
        Verb::Check(Later(args)) => args.query.request(View::Check(check::options(args)?)),
        _ => return Err(Failure::Message("this verb is no tool".to_owned())),
    })
}
