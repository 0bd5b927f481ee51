//! `pprofdiff mcp`: offers verbs as tools to agents, with a Model Context Protocol server on standard input and output.
//!
//! A tool runs the verb of the same name (`load` runs `info`), and its arguments are options of the verb, with `_` for
//! `-` in their names. A call is converted to command-line words and parsed like them. Tools and verbs therefore have
//! the same meaning and errors and mostly the same descriptions, and an answer can give its next step both as a call
//! and as a command. The server adds two features: loaded diffs stay in memory under short names, and answers fit the
//! token budget of the agent.

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
use pprofdiff::recording::Recording;
use pprofdiff::text::{redacted, sanitize};
use pprofdiff::{Cancellation, Diff, Source, cancellation};
use pprofdiff_report::{EachWriter, Format, Report, Request, Style, View, missing_sources, text_head, tokens};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

use self::call::{ToolCall, next};
use self::tool::{BUDGET, LEAST_BUDGET, TOOL_SPECS, ToolSpec};
use crate::args::{self, BatchArgs, InfoArgs, Later, McpArgs, SeriesArgs, Verb};
use crate::input::recorded_sources;
use crate::outputs::Outputs;
use crate::{Failure, Inputs, Result, batch, check, explain, is_pattern, must_match, say, series, sides};

const INSTRUCTIONS: &str = "\
    Compares pprof profiles, and those of other profilers. Begin with load; explain names the causes of a \
    difference, and the other tools show the numbers behind it. Each answer ends with the next step, as a call and as \
    a command.";

/// The maximum number of loaded diffs. A profile takes about its inflated size in memory.
const MAX_LOADED: usize = 8;

/// Tokens reserved for the line that reports the number of pairs shown.
const ROOM_FOR_COUNT: usize = 40;

/// The maximum number of tokens in an error about arguments, because arguments can be megabytes.
const LONGEST_REFUSAL: usize = 500;

/// Serves until the client disconnects.
pub fn run(args: &McpArgs) -> Result<()> {
    if io::stdin().is_terminal() {
        say("mcp waits for an agent on standard input; see docs/agents.md for how to start it");
    }
    let threads = rayon::ThreadPoolBuilder::new().build();
    let pool = threads.map_err(|e| Failure::Message(format!("can't start threads: {e}")))?;
    let server =
        McpServer(Arc::new(Diffs { allow_urls: args.allow_urls, pool: Arc::new(pool), loaded: Mutex::default() }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(async {
        match server.serve(stdio::Stdio::new()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
            // A client that disconnects before it sends anything is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    });
    // Does not wait for unfinished answers or for the thread that reads standard input.
    runtime.shutdown_background();
    served.map_err(Failure::Message)
}

struct McpServer(Arc<Diffs>);

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("pprofdiff", env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (cli, mut described) = (args::whole(), Vec::new());
        let tools = TOOL_SPECS.iter().filter_map(|spec| spec.described(&cli, &mut described)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Answers on another thread. This thread stays free for other messages, so it notices when the client cancels or
    /// disconnects.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(spec) = TOOL_SPECS.iter().find(|spec| spec.tool == request.name) else {
            return Err(ErrorData::invalid_params(format!("unknown tool {:?}", request.name), None));
        };
        let diffs = self.0.clone();
        let arguments = request.arguments.unwrap_or_default();
        let work = Cancellation::new();
        let stopping = work.clone();
        let watcher = tokio::spawn(async move {
            context.ct.cancelled().await;
            stopping.stop();
        });
        let answer = move || {
            let answer = || work.run(|| diffs.answer(spec, arguments));
            let answer = match spec.tool {
                // `batch` waits for the pool, so it must not run on a thread of the pool.
                "batch" => answer(),
                _ => diffs.pool.install(answer),
            };
            // Only a cancelled request gets this error, and its client ignores the response.
            answer.unwrap_or_else(|e| Err(CallRefusal::Answer(e.to_string())))
        };
        let answered = tokio::task::spawn_blocking(answer).await;
        watcher.abort();
        let result = match answered {
            Ok(Ok(answer)) => CallToolResult::success(vec![ContentBlock::text(answer)]),
            Ok(Err(CallRefusal::Answer(error))) => CallToolResult::error(vec![ContentBlock::text(error)]),
            Ok(Err(CallRefusal::Arguments(error))) => return Err(ErrorData::invalid_params(error, None)),
            Err(e) => return Err(ErrorData::internal_error(e.to_string(), None)),
        };
        Ok(result.into())
    }

    /// rmcp passes a tool call with invalid parameters to this handler, as an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "tools/call" => {
                let why = "tools/call needs the name of a tool, and its arguments as an object";
                Err(ErrorData::invalid_params(why, None))
            }
            method => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
        }
    }
}

/// The reason why a call has no answer.
enum CallRefusal {
    /// The tool does not support the arguments.
    Arguments(String),
    /// The tool ran and failed.
    Answer(String),
}

/// A loaded diff with its name.
struct LoadedDiff {
    name: String,
    diff: Diff,
    /// The inputs with their loading options, quoted for a shell.
    inputs: String,
    /// The paths of the inputs, if they include recorded runs, see [`recorded`].
    runs: Vec<PathBuf>,
}

/// The loaded diffs, with the most recently used last, and the number of diffs loaded so far.
#[derive(Default)]
struct DiffStore {
    loaded: Vec<Arc<LoadedDiff>>,
    count: usize,
}

struct Diffs {
    allow_urls: bool,
    pool: Arc<rayon::ThreadPool>,
    loaded: Mutex<DiffStore>,
}

impl Diffs {
    /// Returns the answer to a call, or a one-line error. Both fit the budget, except that an error about the arguments
    /// may have up to [`LONGEST_REFUSAL`] tokens.
    fn answer(&self, spec: &'static ToolSpec, mut arguments: JsonObject) -> Result<String, CallRefusal> {
        let wrong = |message: &str| CallRefusal::Arguments(text_head(&sanitize(&redacted(message)), LONGEST_REFUSAL));
        let budget = match arguments.remove("budget").unwrap_or(json!(BUDGET)) {
            Value::Number(n) if n.as_u64().is_some_and(|n| n >= LEAST_BUDGET) => n.as_u64().unwrap_or(BUDGET),
            other => {
                return Err(wrong(&format!("budget must be a number of tokens, at least {LEAST_BUDGET}, not {other}")));
            }
        };
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        let name = if spec.needs_diff() { arguments.remove("diff") } else { None };
        if let Some(other) = name.as_ref().filter(|name| !name.is_string()) {
            return Err(wrong(&format!("diff must be a name that load returned, not {other}")));
        }
        let call = ToolCall { spec, arguments };
        call.check().map_err(|message| wrong(&message))?;
        self.answer_within(&call, name, budget).map_err(|failure| {
            let message = match failure {
                Failure::Message(message) => message,
                Failure::ClosedPipe => "the reader has gone".to_owned(),
                Failure::Interrupted => "the call was interrupted".to_owned(),
            };
            CallRefusal::Answer(text_head(&sanitize(&redacted(&message)), budget))
        })
    }

    fn answer_within(&self, call: &ToolCall, name: Option<Value>, budget: usize) -> Result<String> {
        // Calls queue for the pool. A call that was cancelled in the queue must not start.
        cancellation::checkpoint();
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

    /// Loads the inputs of a call, stores them as a diff, and describes them. The next step is `explain`, or `top` for
    /// a single profile.
    fn load(&self, args: &InfoArgs, budget: usize) -> Result<String> {
        let runs = recorded(&args.input.base, &args.input.new);
        let mut load = args.load.clone();
        if let ([], Some(dir)) = (&args.input.base[..], runs.first().filter(|dir| Recording::is_in(dir))) {
            Recording::add_binaries(dir, &mut load.profiles.0);
        }
        let inputs = Inputs::new(&load, Outputs::default())?;
        // Returns the sources of a side, and their names.
        let sources = |side: &[PathBuf], placeholder| {
            let (mut all, mut names) = (Vec::new(), Vec::new());
            for path in side {
                let side_sources = self.sources(path, &inputs)?;
                match sides::named(path)? {
                    Some(side) => names.push(operand(&side.name, placeholder)),
                    None => names.extend(side_sources.iter().map(|source| operand(&source.name(), placeholder))),
                }
                all.extend(side_sources);
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
                // A single file can be both sides, if each side selects a time.
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
            ([], _) => return Err(Failure::Message("several runs need a base to compare with".to_owned())),
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
        let step = ToolCall::new(if diff.is_two_sided() { "explain" } else { "top" }, []);
        let (loaded, dropped) = self.keep(diff, words, runs);
        let mut first = format!("diff {}\n", loaded.name);
        if let Some(dropped) = dropped {
            let why = format!("because {MAX_LOADED} diffs stay loaded; load it again to use it");
            first.push_str(&format!("{} is dropped, {why}\n", dropped.name));
        }
        let endings = step.map_or_else(Vec::new, |step| step.next_steps(Some(&loaded.name), &loaded.inputs));
        let text = report.text_within(budget.saturating_sub(tokens(&first)), &endings)?;
        Ok(first + &text)
    }

    /// Returns how frames change along the builds. The next step is to load the builds around the largest change.
    fn series(&self, args: &SeriesArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::without_base(&args.load, Outputs::default())?;
        let mut builds = inputs.named_by_agent(&args.builds, self.allow_urls)?;
        sort_builds(&mut builds);
        if let Some(base) = &args.base {
            builds.insert(0, ("base".to_owned(), inputs.resolve(sides::source_of(base)?, self.allow_urls)?));
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
            let step = ToolCall::new("load", [("base", path(before)), ("new", path(point.build))]);
            step.map_or_else(Vec::new, |step| step.next_steps(None, ""))
        });
        Ok(report.text_within(budget, &endings)?)
    }

    /// Returns as many pairs as fit the budget. The next step is to load the first pair that succeeded.
    fn batch(&self, args: &BatchArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::new(&args.load, Outputs::default())?;
        for name in &args.pairs {
            self.readable(Source::Path(name.into()), &inputs)?;
        }
        let mut writer = EachWriter::new(Format::named("text")?, Style::default())?;
        let (options, table) = (inputs.options.clone(), batch::table(args, writer.limit())?);
        let (pairs, count) = batch::pairs(args, inputs, self.allow_urls)?;
        // The next steps of the pairs that have been read but not yet shown.
        let steps = Arc::new(Mutex::new(Vec::new()));
        let pending_steps = steps.clone();
        let pairs = pairs.map(move |mut item| {
            item.sides = item.sides.and_then(|(base, new)| {
                let names = |side: &[Source]| json!(side.iter().map(Source::name).collect::<Vec<_>>());
                let step = ToolCall::new("load", [("base", names(&base)), ("new", names(&new))]);
                pending_steps.lock().unwrap_or_else(PoisonError::into_inner).push((item.name.clone(), step));
                let regular = |side: Vec<Source>| side.into_iter().map(regular).collect::<pprofdiff::Result<Vec<_>>>();
                Ok((regular(base)?, regular(new)?))
            });
            item
        });
        // Each step adds one pair or selects a longer ending, and the answer stops at the first step that does not fit.
        // A larger budget therefore never shows less.
        let (mut text, mut shown, mut endings, mut ending, mut is_full) = (String::new(), 0, Vec::new(), 0, false);
        for (name, result) in pprofdiff::batch::map(self.pool.clone(), pairs, options, table) {
            let mut block = Vec::new();
            match &result {
                Ok(table) => writer.write(&name, Ok(table), &mut block)?,
                Err(e) => writeln!(block, "{}  failed: {e}", sanitize(&name))?,
            }
            let block = String::from_utf8_lossy(&block).into_owned();
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            let position = steps.iter().position(|(pair_name, _)| *pair_name == name);
            let step = position.and_then(|position| steps.swap_remove(position).1);
            drop(steps);
            if endings.is_empty() && result.is_ok() {
                endings = step.map_or_else(Vec::new, |step| step.next_steps(None, ""));
            }
            let size = |text: &str, ending: usize| tokens(text) + endings.get(ending).map_or(0, |e: &String| tokens(e));
            if is_full || size(&text, ending) + tokens(&block) + ROOM_FOR_COUNT > budget {
                let all = count.map_or_else(String::new, |count| format!(" of {count}"));
                let more = format!("{shown}{all} pairs are shown; raise the budget to see more\n");
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

    /// Resolves a name: a URL, a file, recorded runs, or a pattern, which no shell has expanded.
    fn sources(&self, path: &Path, inputs: &Inputs) -> Result<Vec<Source>> {
        let is_pattern = is_pattern(path) && path.to_string_lossy().contains(SIGNS);
        let named = match is_pattern {
            true => inputs.builds(path, self.allow_urls)?.into_iter().map(|(_, source)| source).collect(),
            false => sides::sources_of(path)?,
        };
        named.into_iter().map(|source| self.readable(source, inputs)).collect()
    }

    /// Resolves a source that an agent named, if the server may read it.
    fn readable(&self, source: Source, inputs: &Inputs) -> Result<Source> {
        Ok(regular(inputs.resolve(source, self.allow_urls)?)?)
    }

    /// Stores a diff under a new name. Returns it, and the diff that was dropped to make room.
    fn keep(&self, diff: Diff, inputs: String, runs: Vec<PathBuf>) -> (Arc<LoadedDiff>, Option<Arc<LoadedDiff>>) {
        let mut store = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        store.count += 1;
        let loaded = Arc::new(LoadedDiff { name: format!("d{}", store.count), diff, inputs, runs });
        store.loaded.push(loaded.clone());
        let dropped = (store.loaded.len() > MAX_LOADED).then(|| store.loaded.remove(0));
        (loaded, dropped)
    }

    /// Returns the diff with this name, and marks it as the most recently used.
    fn named(&self, name: Option<&Value>) -> Result<Arc<LoadedDiff>> {
        let mut store = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let position = name.and_then(Value::as_str).and_then(|name| store.loaded.iter().position(|l| l.name == name));
        let Some(position) = position else {
            let names: Vec<&str> = store.loaded.iter().map(|loaded| loaded.name.as_str()).collect();
            let loaded_names = match &names[..] {
                [] => "nothing is loaded".to_owned(),
                names => format!("loaded: {}", names.join(", ")),
            };
            let reason = name.map_or_else(|| "diff is missing".to_owned(), |name| format!("unknown diff {name}"));
            let message = format!(
                "{reason} ({loaded_names}; the last {MAX_LOADED} diffs stay loaded): load it with the tool load"
            );
            return Err(Failure::Message(message));
        };
        let loaded = store.loaded.remove(position);
        store.loaded.push(loaded.clone());
        Ok(loaded)
    }
}

/// Returns the possible endings of an answer, from the shortest to the longest. Each has the next step. If sources are
/// missing, the longer endings also have a hint to the options for source folders. An agent needs the hint more than
/// the shell command, so only the longest ending has the shell command.
fn endings(call: &ToolCall, report: &Report, diff: &str, inputs: &str) -> Vec<String> {
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

/// Rejects pipes and devices, which may never end. Standard input belongs to the client, and waiting for another pipe
/// would block a thread forever.
fn regular(source: Source) -> pprofdiff::Result<Source> {
    let other = source.path().and_then(|path| fs::metadata(path).ok()).filter(|m| !m.is_file() && !m.is_dir());
    match other {
        Some(_) => {
            let why = "this is a pipe or a device, and mcp reads only regular files; write it to a file first";
            Err(pprofdiff::Error::query(why).in_input(&source.name()))
        }
        None => Ok(source),
    }
}

/// Returns the paths if there are at most two, and at least one is a folder of runs or a side of recorded runs.
/// Otherwise returns an empty list.
fn recorded(base: &[PathBuf], new: &[PathBuf]) -> Vec<PathBuf> {
    let names = [base, new].concat();
    let is_recorded = |path: &PathBuf| Recording::is_in(path) || matches!(sides::named(path), Ok(Some(_)));
    if names.len() <= 2 && names.iter().any(is_recorded) { names } else { Vec::new() }
}

/// Completes a view with facts from the folder of runs: the number of operations, and the source folders.
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

/// Returns the request of a verb. The budget also limits the number of rows, because a row takes at least one token.
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
        _ => return Err(Failure::Message("this verb is not a tool".to_owned())),
    })
}
