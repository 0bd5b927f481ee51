//! The Model Context Protocol server of `pprofdiff mcp`: its messages on standard input and output, the table of tools
//! with their schemas, the budget of tokens, and the diffs that stay loaded.
//!
//! A message becomes a [`ToolCall`], and the command's [`Verbs`] answer it. A tool runs a verb, and its arguments are
//! options of the verb, so the schemas describe the command's own options. This crate parses no options and loads no
//! profiles.

mod call;
mod load_queue;
mod loaded;
mod stdio;
mod tool;

use std::sync::Arc;

use clap::Command;
use pprofdiff::Cancellation;
use pprofdiff::text::{redacted, sanitize};
use pprofdiff_report::text_head;
use pprofdiff_shell::{Failure, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

pub use self::call::{ToolCall, endings};
use self::load_queue::LoadQueue;
pub use self::loaded::{LoadedDiff, LoadedDiffs, MAX_LOADED};
use self::stdio::Stdio;
pub use self::tool::ToolSpec;
use self::tool::{BUDGET, LEAST_BUDGET, TOOL_SPECS};

const INSTRUCTIONS: &str = "\
    Compares pprof profiles, and those of other profilers. Begin with load; explain names the causes of a \
    difference, and the other tools show the numbers behind it. Each answer ends with the next step, as a call and as \
    a command.";

/// The maximum number of tokens in an error about arguments, because arguments can be megabytes.
const LONGEST_REFUSAL: usize = 500;

/// The command behind the tools.
pub trait Verbs: Send + Sync + 'static {
    /// Returns the command line with the options of all verbs.
    fn command_line(&self) -> Command;

    /// Returns true if a loaded diff has this name.
    fn is_loaded(&self, diff: Option<&Value>) -> bool;

    /// Answers a call within a budget of tokens. `diff` is the name of the loaded diff.
    ///
    /// # Errors
    /// Fails like the verb.
    fn answer(&self, call: &ToolCall, diff: Option<&Value>, budget: usize) -> Result<String>;
}

/// Serves until the client disconnects. Calls run on `pool`.
///
/// # Errors
/// Fails if the client's messages cannot be read.
pub fn serve(verbs: impl Verbs, pool: Arc<rayon::ThreadPool>) -> Result<()> {
    let server = McpServer { verbs: Arc::new(verbs), pool, loads: LoadQueue::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(async {
        match server.serve(Stdio::new()).await {
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

struct McpServer {
    verbs: Arc<dyn Verbs>,
    pool: Arc<rayon::ThreadPool>,
    loads: LoadQueue,
}

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
        let (cli, mut described) = (self.verbs.command_line(), Vec::new());
        let tools = TOOL_SPECS.iter().filter_map(|spec| spec.described(&cli, &mut described)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Answers on another thread. This thread stays free for other messages, so it notices when the client cancels or
    /// disconnects.
    ///
    /// A client may name a diff before `load` has answered: calls wait for the loads that were sent before them, and
    /// loads run in the order in which they were sent, so the names of diffs follow this order. rmcp starts a task per
    /// message in the order of the messages, and the runtime of [`serve`] first polls tasks in the order of their
    /// start.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(spec) = TOOL_SPECS.iter().find(|spec| spec.tool == request.name) else {
            return Err(ErrorData::invalid_params(format!("unknown tool {:?}", request.name), None));
        };
        let (earlier, _turn) = if spec.tool == "load" { self.loads.join() } else { (self.loads.last(), None) };
        let (verbs, pool) = (self.verbs.clone(), self.pool.clone());
        let arguments = request.arguments.unwrap_or_default();
        // A wait on a thread of the pool could block the load itself.
        if spec.tool == "load" || spec.needs_diff() && !verbs.is_loaded(arguments.get("diff")) {
            LoadQueue::wait(earlier).await;
        }
        let work = Cancellation::new();
        let stopping = work.clone();
        let watcher = tokio::spawn(async move {
            context.ct.cancelled().await;
            stopping.stop();
        });
        let answer = move || {
            let answer = || work.run(|| answer_within(&*verbs, spec, arguments));
            let answer = match spec.tool {
                // `batch` waits for the pool, so it must not run on a thread of the pool.
                "batch" => answer(),
                _ => pool.install(answer),
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

/// Returns the answer to a call, or a one-line error. Both fit the budget, except that an error about the arguments
/// may have up to [`LONGEST_REFUSAL`] tokens.
fn answer_within(verbs: &dyn Verbs, spec: &'static ToolSpec, mut arguments: JsonObject) -> Result<String, CallRefusal> {
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
    call.check(&verbs.command_line()).map_err(|message| wrong(&message))?;
    verbs.answer(&call, name.as_ref(), budget).map_err(|failure| {
        let message = match failure {
            Failure::Message(message) => message,
            Failure::Choice(message, commands) => format!("{message}: {}", commands.join("; ")),
            Failure::ClosedPipe => "the reader has gone".to_owned(),
            Failure::Interrupted => "the call was interrupted".to_owned(),
        };
        CallRefusal::Answer(text_head(&sanitize(&redacted(&message)), budget))
    })
}
