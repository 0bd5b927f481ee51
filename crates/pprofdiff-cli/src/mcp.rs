//! `pprofdiff mcp`: offers verbs as tools to agents, with a Model Context Protocol server on standard input and output.
//!
//! A tool runs the verb of the same name (`load` runs `info`), and its arguments are options of the verb, with `_` for
//! `-` in their names. A call is converted to command-line words and parsed like them. Tools and verbs therefore have
//! the same meaning and errors and mostly the same descriptions, and an answer can give its next step both as a call
//! and as a command. The crate pprofdiff-mcp is the server. This file has the answers of the tools.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Command, Parser};
use pprofdiff::advice::{operand, word};
use pprofdiff::input::{SIGNS, sort_builds};
use pprofdiff::list::SourceDirs;
use pprofdiff::loading::Loading;
use pprofdiff::options::OptionValue;
use pprofdiff::recording::Recording;
use pprofdiff::text::sanitize;
use pprofdiff::{Diff, Source, cancellation};
use pprofdiff_mcp::{LoadedDiffs, MAX_LOADED, ToolCall, Verbs, endings};
use pprofdiff_report::{EachWriter, PairsText, Request, Style, View, tokens};
use pprofdiff_shell::{Failure, Outputs, Result, say};
use serde_json::{Value, json};

use crate::args::{self, BatchArgs, Cli, InfoArgs, Later, McpArgs, SeriesArgs, Verb};
use crate::input::recorded_sources;
use crate::{Inputs, REGISTRY, batch, check, explain, is_pattern, must_match, series, sides, usage};

/// Serves until the client disconnects.
pub fn run(args: &McpArgs) -> Result<()> {
    if io::stdin().is_terminal() {
        say("mcp waits for an agent on standard input; see docs/agents.md for how to start it");
    }
    let threads = rayon::ThreadPoolBuilder::new().build();
    let pool = threads.map_err(|e| Failure::Message(format!("can't start threads: {e}")))?;
    let pool = Arc::new(pool);
    pprofdiff_mcp::serve(
        Diffs { allow_urls: args.allow_urls, pool: pool.clone(), loaded: LoadedDiffs::default() },
        pool,
    )
}

struct Diffs {
    allow_urls: bool,
    pool: Arc<rayon::ThreadPool>,
    loaded: LoadedDiffs,
}

impl Verbs for Diffs {
    fn command_line(&self) -> Command {
        args::whole()
    }

    fn is_loaded(&self, diff: Option<&Value>) -> bool {
        self.loaded.has(diff)
    }

    fn answer(&self, call: &ToolCall, diff: Option<&Value>, budget: usize) -> Result<String> {
        // Calls queue for the pool. A call that was cancelled in the queue must not start.
        cancellation::checkpoint();
        let verb = verb(call)?;
        match &verb {
            Verb::Info(Later(args)) => return self.load(args, budget),
            Verb::Series(Later(args)) => return self.series(args, budget),
            Verb::Batch(Later(args)) => return self.batch(args, budget),
            _ => {}
        }
        let loaded = self.loaded.named(diff)?;
        let mut request = request(&verb, budget)?.for_format(REGISTRY.format("text")?, &REGISTRY)?;
        complete(&mut request.view, &loaded.runs)?;
        let report = request.answer(&loaded.diff)?;
        must_match(&request, &report, &loaded.diff)?;
        Ok(report.text_within(budget, &endings(&args::whole(), call, &report, &loaded.name, &loaded.inputs))?)
    }
}

impl Diffs {
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
                match sides::is_side(path) {
                    true => names.push(operand(&path.display().to_string(), placeholder)),
                    false => names.extend(side_sources.iter().map(|source| operand(&source.name(), placeholder))),
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
        let (loaded, dropped) = self.loaded.keep(diff, words, runs);
        let mut first = format!("diff {}\n", loaded.name);
        if let Some(dropped) = dropped {
            let why = format!("because {MAX_LOADED} diffs stay loaded; load it again to use it");
            first.push_str(&format!("{} is dropped, {why}\n", dropped.name));
        }
        let endings =
            step.map_or_else(Vec::new, |step| step.next_steps(&args::whole(), Some(&loaded.name), &loaded.inputs));
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
        let (format, count) = (REGISTRY.format("text")?, builds.len());
        let series = series::load(args, &inputs, format, count, None, builds.into_iter())?;
        let (report, _) = series::answer(args, &inputs, format, &series)?;
        let point = series.largest_change(args.shown.sort(), 1);
        let endings = point.map_or_else(Vec::new, |point| {
            let before = if args.base.is_some() { 0 } else { series.builds.loaded_before(point.build) };
            let path = |build: usize| json!([series.builds.all[build].path]);
            let step = ToolCall::new("load", [("base", path(before)), ("new", path(point.build))]);
            step.map_or_else(Vec::new, |step| step.next_steps(&args::whole(), None, ""))
        });
        Ok(report.text_within(budget, &endings)?)
    }

    /// Returns as many pairs as fit the budget. The next step is to load the first pair that succeeded.
    fn batch(&self, args: &BatchArgs, budget: usize) -> Result<String> {
        let inputs = Inputs::new(&args.load, Outputs::default())?;
        for name in &args.pairs {
            self.readable(Source::Path(name.into()), &inputs)?;
        }
        let mut writer = EachWriter::new(REGISTRY.format("text")?, Style::default(), &REGISTRY)?;
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
        let mut text = PairsText::for_agent(budget);
        for (name, result) in pprofdiff::batch::map(self.pool.clone(), pairs, options, table) {
            let mut block = Vec::new();
            match &result {
                Ok(table) => writer.write(&name, &[], Ok(table), &mut block)?,
                Err(e) => writeln!(block, "{}  failed: {e}", sanitize(&name))?,
            }
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            let position = steps.iter().position(|(pair_name, _)| *pair_name == name);
            let step = position.and_then(|position| steps.swap_remove(position).1);
            drop(steps);
            if !text.has_endings() && result.is_ok() {
                text.set_endings(step.map_or_else(Vec::new, |step| step.next_steps(&args::whole(), None, "")));
            }
            if !text.push(&String::from_utf8_lossy(&block)) {
                break;
            }
        }
        Ok(text.finish(count))
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
    let is_recorded = |path: &PathBuf| Recording::is_in(path) || sides::is_side(path);
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

/// Parses the words of a call.
fn verb(call: &ToolCall) -> Result<Verb> {
    let words = std::iter::once("pprofdiff".to_owned()).chain(call.words(&args::whole()));
    let cli = Cli::try_parse_from(words).map_err(|e| Failure::Message(usage(&e)))?;
    cli.verb.ok_or_else(|| Failure::Message("the call names no verb".to_owned()))
}
