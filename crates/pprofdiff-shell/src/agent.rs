//! Agent mode: the reader of the output is a language model, not a person at a terminal.

use std::env;

/// The environment variables that agents set for the commands that they run, with their sources.
const VARIABLES: [&str; 9] = [
    // A name that any agent can set: README of @vercel/detect-agent (github.com/vercel/vercel, packages/detect-agent).
    "AI_AGENT",
    // Claude Code: code.claude.com/docs/en/env-vars.
    "CLAUDECODE",
    // The agent of Cursor, in its editor and in its command line: forum.cursor.com/t/132427.
    "CURSOR_AGENT",
    // Gemini CLI: docs/tools/shell.md of github.com/google-gemini/gemini-cli.
    "GEMINI_CLI",
    // Codex: codex-rs/protocol/src/shell_environment.rs of github.com/openai/codex. The sandbox sets the second variable
    // (AGENTS.md there).
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    // OpenCode, GitHub Copilot CLI and Cline, as github.com/ansys/pymapdl/issues/4634 and
    // github.com/checkly/checkly-cli/pull/1261 found them. Their own documentation does not list them.
    "OPENCODE",
    "COPILOT_CLI",
    "CLINE_ACTIVE",
];

/// Returns true if an agent runs this command. An empty variable counts as not set.
///
/// Agents often run commands in a pseudoterminal, where progress and colours are noise that costs tokens. Agent mode
/// omits both, fails instead of asking a question, and suggests a next step. It changes no answer: standard output has the same bytes as
/// without an agent and without a terminal.
pub fn is_agent() -> bool {
    VARIABLES.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}
