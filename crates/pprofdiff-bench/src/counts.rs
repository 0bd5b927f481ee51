//! `--counts`: counts calls and instructions instead of timing. Valgrind's callgrind counts every instruction of a program
//! and of its children, and cProfile every call of a Python program. Load of the machine changes no count, so one run per
//! side is usually enough.
//!
//! This file has a table of adapters for counted commands; `adapters` has the table for timed commands. A program that compiles its code while it runs is
//! refused, because the counted program would not be the program that users run.

use std::path::{Path, PathBuf};

use pprofdiff::sequential::{Decision, FrameChange, MISSES, Pairs};
use pprofdiff::shared::with_default_type;
use pprofdiff::{LoadOptions, Query, Source, WriteOptions};
use pprofdiff_shell::{Failure, Result, error_line, operations};

use super::adapters::{self, Adapter, RunPlan, Taken};
use super::process::{Ended, Runner, lines};
use super::sides::Checkout;

/// The default of `--runs` for counts: a first pair, and two more if it shows a change.
pub const DEFAULT_COUNTED_RUNS: u64 = 3;
/// The number of counted runs per side if runs of the same build differ by more than the effect. Fewer runs prove nothing
/// about costs with a few possible values: with three runs per side, all three new ones are the larger in one of ten tries.
const NOISY_RUNS: usize = 6;
/// The smallest change that matters by default. Equal builds of most programs differ by less than a hundredth of it: by the
/// length of a path, or by an address.
pub const DEFAULT_COUNTED_EFFECT: f64 = 0.0002;
/// The number of callers that callgrind keeps with each function. More callers make stacks more exact, and larger files.
const CALLERS: &str = "--separate-callers=10";
/// The counters, as `runs.toml` names them.
pub const CALLGRIND: &str = "callgrind";
/// Callgrind follows calls and returns of one stack. Go's goroutines have stacks of their own, so its callers would be wrong.
/// Cachegrind counts without callers.
pub const CACHEGRIND: &str = "cachegrind";
/// The counter of calls in Python programs.
pub const CPROFILE: &str = "cProfile";
/// The sample type that cProfile counts.
const CALLS: &str = "calls";
/// The largest number of changed frames in the verdict.
const MAX_FRAMES: usize = 3;

/// The verbs of Cargo that start a program by the runner of its target.
const CARGO_RUNS: [&str; 6] = ["bench", "run", "r", "test", "t", "nextest"];
/// The options of Cargo before the verb that have a value of their own.
const CARGO_OPTIONS_WITH_VALUES: [&str; 5] = ["-C", "-Z", "--color", "--config", "--explain"];
/// Programs that compile while they run.
const COMPILE_WHILE_RUNNING: [&str; 9] = ["node", "deno", "bun", "java", "dotnet", "pypy", "pypy3", "luajit", "julia"];

static VALGRIND: Adapter = CALLGRIND_ADAPTER;
static GO_TEST: Adapter =
    Adapter { name: "go test -bench", command: go_command, taken: go_counted, fixed: go_fixed, ..CALLGRIND_ADAPTER };
static CARGO: Adapter = Adapter { name: "cargo", command: cargo_command, ..CALLGRIND_ADAPTER };
static PYTHON: Adapter = Adapter {
    name: "python -m cProfile",
    command: python_command,
    taken: python_counted,
    advice: |_| None,
    ..CALLGRIND_ADAPTER
};
const CALLGRIND_ADAPTER: Adapter = Adapter {
    name: "valgrind",
    handles: |_| true,
    command: valgrind_command,
    taken: counted,
    fixed: |_, _| None,
    advice: advice_of_valgrind,
};

/// How a command is counted.
pub struct Counting {
    pub adapter: &'static Adapter,
    /// The counter, for `runs.toml`.
    pub counter: &'static str,
    /// Variables that make runs repeatable, or that run a tool's program under valgrind.
    pub variables: fn(&Path) -> Vec<(String, String)>,
}

/// Finds how to count a command. Fails for a program that compiles its code while it runs.
pub fn find(command: &[String]) -> Result<Counting> {
    let program = adapters::program(command);
    let none: fn(&Path) -> Vec<(String, String)> = |_| Vec::new();
    if COMPILE_WHILE_RUNNING.contains(&program) {
        let instead = if program == "node" { " (node --jitless is another program)" } else { "" };
        return Err(Failure::Message(format!(
            "--counts can't count {program}: it compiles the code while it runs, so a counter would count the compiler, and \
             code that users never run{instead}; time it, without --counts"
        )));
    }
    if is_wrapped(program) {
        return Err(Failure::Message(format!(
            "--counts starts the counter itself; give the program's own command, without {program}"
        )));
    }
    if is_python(program) {
        if PythonCommand::parse(command).is_none() {
            let message = "cProfile can't count python -c; put the code into a file";
            return Err(Failure::Message(message.to_owned()));
        }
        let variables: fn(&Path) -> Vec<(String, String)> = |_| vec![("PYTHONHASHSEED".to_owned(), "0".to_owned())];
        return Ok(Counting { adapter: &PYTHON, counter: CPROFILE, variables });
    }
    if adapters::is_go_benchmark(command) {
        return Ok(Counting { adapter: &GO_TEST, counter: CACHEGRIND, variables: go_variables });
    }
    if program == "cargo" && cargo_verb(command).is_some_and(|verb| CARGO_RUNS.contains(&verb)) {
        return Ok(Counting { adapter: &CARGO, counter: CALLGRIND, variables: cargo_variables });
    }
    Ok(Counting { adapter: &VALGRIND, counter: CALLGRIND, variables: none })
}

fn is_wrapped(program: &str) -> bool {
    ["valgrind", "perf", "py-spy"].contains(&program)
}

fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns the query with the sample type that a counter counts. cProfile also times.
pub fn query(counter: &str, query: &Query) -> Query {
    let mut query = query.clone();
    if counter == CPROFILE && query.sample_type.is_none() {
        query.sample_type = Some(CALLS.to_owned());
    }
    query
}

/// Returns the counter of both commands.
pub fn counter(commands: [&[String]; 2]) -> Result<&'static str> {
    let counter = |command: &[String]| Ok::<_, Failure>(find(&adapters::split_variables(command).1)?.counter);
    let [base, new] = [counter(commands[0])?, counter(commands[1])?];
    if base != new {
        let message = format!("the sides can't be compared: {base} counts the base, and {new} the new side");
        return Err(Failure::Message(message));
    }
    Ok(base)
}

/// Returns the maximum number of pairs, given the pairs so far. `runs` is the number that the user set, or the default.
pub fn max_runs(runs: usize, is_set: bool, pairs: &Pairs, effect: f64) -> usize {
    match pairs.len() {
        _ if is_set => runs,
        1 if pairs.decision() == Decision::NoLargerChange => 1,
        n if n > 1 && pairs.spread() > effect => runs.max(NOISY_RUNS),
        _ => runs,
    }
}

/// Fails if the counter is not installed.
pub fn check_installed(counter: &str, checkout: &Checkout, runner: &Runner<'_>) -> Result<()> {
    if ![CALLGRIND, CACHEGRIND].contains(&counter) || version_of_valgrind(&checkout.dir, runner).is_some() {
        return Ok(());
    }
    Err(Failure::Message(format!("--counts needs valgrind, which can't be started; {}", how_to_install())))
}

/// Returns the words that tell how to install valgrind.
pub fn how_to_install() -> &'static str {
    if cfg!(target_os = "linux") {
        "install it with `apt install valgrind`, `dnf install valgrind` or `apk add valgrind`"
    } else {
        "valgrind runs on Linux: use a container or a CI job with Linux"
    }
}

/// Returns valgrind's version, or `None` if it can't be started.
pub fn version_of_valgrind(dir: &Path, runner: &Runner<'_>) -> Option<String> {
    let output = tempfile::NamedTempFile::new().ok()?;
    let command = ["valgrind", "--version"].map(str::to_owned);
    let (output, kind) = (output.path(), super::process::OutputKind::Log);
    let job = super::process::CommandJob { command: &command, dir, variables: &[], output, kind, patience: None };
    let ended = runner.run(&job).ok()?;
    ended.status.success().then(|| lines(output).next().unwrap_or_default())
}

/// Returns valgrind and its options. Each process of a run writes a file.
fn valgrind(dir: &Path) -> Vec<String> {
    let mut words: Vec<String> =
        ["valgrind", "--quiet", "--tool=callgrind", CALLERS, "--trace-children=yes"].map(str::to_owned).into();
    words.push(format!("--callgrind-out-file={}", adapters::path(&dir.join("callgrind.out.%p"))));
    words
}

/// Returns valgrind and its options for programs with many stacks.
fn valgrind_without_callers(dir: &Path) -> Vec<String> {
    let mut words: Vec<String> = ["valgrind", "--quiet", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes"]
        .map(str::to_owned)
        .into();
    words.push(format!("--cachegrind-out-file={}", adapters::path(&dir.join("cachegrind.out.%p"))));
    words
}

/// Joins words to a text that Go and Cargo split again. Cargo splits at spaces, and only Go knows quotes, so a path with
/// spaces fails with Cargo.
fn joined(words: &[String]) -> String {
    let needs_quotes = |word: &String| word.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"');
    if words.iter().any(needs_quotes) { shell_words::join(words) } else { words.join(" ") }
}

fn valgrind_command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = valgrind(plan.dir);
    words.extend(adapters::with_profile(plan));
    words
}

/// Collects the files of a run's processes as one profile.
fn counted(plan: &RunPlan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    let profiles = vec![counts_of_processes(plan.dir)?];
    // A run is one execution of the same command, so both sides did the same work.
    Ok(Taken { profiles, operations: Some(1.0) })
}

fn counts_of_processes(dir: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_output = ["callgrind.out.", "cachegrind.out."].iter().any(|begin| name.starts_with(begin));
        if is_output && entry.metadata()?.len() > 0 {
            files.push(entry.path());
        }
    }
    files.sort();
    match files.as_slice() {
        [] => Err(Failure::Message(format!("valgrind wrote no counts to {}", dir.display()))),
        [file] => Ok(file.clone()),
        files => {
            let wrong = |e: pprofdiff::Error| Failure::Message(error_line(&e));
            let sources = files.iter().cloned().map(Source::Path).collect();
            let merged =
                Source::Merged(dir.display().to_string(), sources).load(&LoadOptions::default()).map_err(wrong)?;
            let bytes = merged.to_bytes(&WriteOptions::default()).map_err(wrong)?;
            let path = dir.join("counts.pb.gz");
            std::fs::write(&path, bytes)?;
            Ok(path)
        }
    }
}

/// Runs the test binary, but not the compiler, under valgrind: `go test -exec`.
fn go_command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command[..2].to_vec();
    words.extend([
        "-o".to_owned(),
        adapters::path(plan.binary),
        "-exec".to_owned(),
        joined(&valgrind_without_callers(plan.dir)),
    ]);
    for (option, word) in [("run", "-run=^$"), ("count", "-count=1")] {
        if !adapters::go_has(plan.command, option) {
            words.push(word.to_owned());
        }
    }
    words.extend(plan.command[2..].iter().cloned());
    if let Some(operations) = plan.operations.or_else(|| (!adapters::go_has(plan.command, "benchtime")).then_some(1)) {
        let end = words.iter().position(|word| word.trim_start_matches('-') == "args").unwrap_or(words.len());
        words.insert(end, format!("-benchtime={operations}x"));
    }
    words
}

/// A garbage collection starts at another place in each run, so it is off. One processor makes the scheduler repeat itself.
fn go_variables(_: &Path) -> Vec<(String, String)> {
    [("GOGC", "off"), ("GOMAXPROCS", "1"), ("GODEBUG", "asyncpreemptoff=1")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into()
}

fn go_counted(plan: &RunPlan<'_>, ended: &Ended, _: &Runner<'_>) -> Result<Taken> {
    let counts = operations::from_go_output(lines(&ended.output));
    let operations = Some(counts.iter().map(|(_, count)| count).sum()).filter(|n| *n > 0.0);
    Ok(Taken { profiles: vec![counts_of_processes(plan.dir)?], operations })
}

fn go_fixed(command: &[String], ended: &Ended) -> Option<u64> {
    if adapters::go_has(command, "benchtime") { adapters::go_fixed(command, ended) } else { Some(1) }
}

/// Returns the verb of a Cargo command: its first word that is neither an option nor a toolchain (`+nightly`).
fn cargo_verb(command: &[String]) -> Option<&str> {
    let mut words = command.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        if CARGO_OPTIONS_WITH_VALUES.contains(&word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            return Some(word);
        }
    }
    None
}

/// Criterion repeats a benchmark for a time, so the number of iterations would differ. `--test` runs each benchmark once.
/// Before `--`, this option means a test target instead.
fn cargo_command(plan: &RunPlan<'_>) -> Vec<String> {
    let mut words = plan.command.to_vec();
    if cargo_verb(&words) != Some("bench") {
        return words;
    }
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if !words[end..].iter().any(|word| word == "--test") {
        if end == words.len() {
            words.push("--".to_owned());
        }
        words.push("--test".to_owned());
    }
    words
}

/// Makes Cargo start the program, but not the compiler, under valgrind.
fn cargo_variables(dir: &Path) -> Vec<(String, String)> {
    let target = format!("{}_unknown_linux_gnu", std::env::consts::ARCH).to_uppercase();
    vec![(format!("CARGO_TARGET_{target}_RUNNER"), joined(&valgrind(dir)))]
}

/// The parts of a Python command.
struct PythonCommand {
    /// The interpreter and its options.
    interpreter: Vec<String>,
    /// The script, or `-m` and the module, with its arguments.
    program: Vec<String>,
}

impl PythonCommand {
    /// Splits a command like Python's `getopt.c`, where letters may share a word (`-Im`), and the last one may have its
    /// value in the same word (`-mpkg`). Returns `None` for code in the command itself (`-c`).
    fn parse(words: &[String]) -> Option<PythonCommand> {
        let mut interpreter: Vec<String> = words.iter().take(1).cloned().collect();
        let mut words = words.iter().skip(1).cloned().peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-') && word != "-") {
            if word == "--" {
                break;
            }
            let has_own_value = match word[1..].find(['-', 'c', 'm', 'X', 'W']) {
                // A long option. One of them has a value.
                Some(0) if word.starts_with("--") => word == "--check-hash-based-pycs",
                Some(place) => match (&word[..=place], &word[place + 1..=place + 1], &word[place + 2..]) {
                    (_, "c", _) => return None,
                    (flags, "m", module) => {
                        interpreter.extend(Some(flags).filter(|flags| flags.len() > 1).map(str::to_owned));
                        let module = Some(module).filter(|module| !module.is_empty()).map(str::to_owned);
                        let program = std::iter::once("-m".to_owned()).chain(module).chain(words).collect();
                        return Some(PythonCommand { interpreter, program });
                    }
                    (_, _, value) => value.is_empty(),
                },
                None => false,
            };
            interpreter.push(word);
            interpreter.extend(words.next_if(|_| has_own_value));
        }
        Some(PythonCommand { interpreter, program: words.collect() })
    }
}

/// Puts cProfile between the interpreter's options and the program.
fn python_command(plan: &RunPlan<'_>) -> Vec<String> {
    let Some(PythonCommand { interpreter: mut all, program }) = PythonCommand::parse(plan.command) else {
        return plan.command.to_vec();
    };
    all.extend(["-m", "cProfile", "-o"].map(str::to_owned));
    all.push(adapters::path(&python_file(plan.dir)));
    all.extend(program);
    all
}

fn python_file(dir: &Path) -> PathBuf {
    dir.join("calls.prof")
}

fn python_counted(plan: &RunPlan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    let mut taken = adapters::written(python_file(plan.dir), plan.command)?;
    taken.operations = Some(1.0);
    // cProfile's file shows time by default. The run was made for its calls, so other verbs must show them too.
    let wrong = |e: pprofdiff::Error| Failure::Message(error_line(&e));
    for file in &mut taken.profiles {
        let profile = Source::Path(file.clone()).load(&LoadOptions::default()).map_err(wrong)?;
        let bytes = with_default_type(&profile, CALLS, &WriteOptions::default()).map_err(wrong)?;
        *file = plan.dir.join("calls.pb.gz");
        std::fs::write(&*file, bytes)?;
    }
    Ok(taken)
}

fn advice_of_valgrind(line: &str) -> Option<&'static str> {
    if line.contains("unhandled instruction") || line.contains("Illegal instruction") {
        return Some(
            "valgrind does not know an instruction of the program; build it for an older processor, such as -march=x86-64-v2",
        );
    }
    line.contains("wrong ELF executable class").then_some("valgrind needs a 64-bit program")
}

/// Formats a change of counts, which are exact to more digits than times.
fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        p if p < 0.0005 => format!("{percent:+.5} %"),
        p if p < 0.995 => format!("{percent:+.3} %"),
        _ => format!("{percent:+.1} %"),
    }
}

fn runs(pairs: &Pairs) -> String {
    match pairs.len() {
        1 => "(counted once per side)".to_owned(),
        n => format!("(counted {n} times per side)"),
    }
}

/// Returns the progress message after a pair.
pub fn estimate(pairs: &Pairs, is_confirming: bool) -> String {
    let change = pairs.change().map_or_else(String::new, percent);
    let next = if is_confirming { "; counting again, to see whether equal runs differ" } else { "" };
    format!("{change} {}{next}", runs(pairs))
}

fn frame_line(frame: &FrameChange) -> String {
    let growth = match frame.growth {
        growth if growth.is_infinite() => "is new".to_owned(),
        growth if growth <= -1.0 => "is gone".to_owned(),
        growth => percent(growth),
    };
    format!("changed: {} itself {growth}, {} of the total", frame.name, percent(frame.of_total))
}

/// Returns the verdict about the total and about frames.
pub fn verdict(pairs: &Pairs, effect: f64) -> Vec<String> {
    let (runs, change) = (runs(pairs), pairs.change().map_or_else(String::new, percent));
    let floor = percent(effect).replace('+', "");
    let spread = match pairs.spread() {
        _ if pairs.len() < 2 => String::new(),
        0.0 => "; all runs of a side counted the same".to_owned(),
        spread => format!("; differences between equal runs: up to {} of the total", percent(spread).replace('+', "")),
    };
    let mut lines = Vec::new();
    lines.push(match pairs.decision() {
        Decision::Change if pairs.has_total_changed() => format!("a change of the total: {change} {runs}{spread}"),
        Decision::Change => format!("a change of a function; the total: {change} {runs}{spread}"),
        Decision::NoLargerChange => {
            format!("no change larger than {floor}, of the total or of a function: {change} {runs}{spread}")
        }
        Decision::Open => {
            let range = pairs
                .interval(MISSES)
                .map_or_else(String::new, |(low, high)| format!(", {} to {}", percent(low), percent(high)));
            format!("undecided: {change}{range} {runs}{spread}; more --runs, or a larger --effect, would decide")
        }
    });
    lines.extend(pairs.changed_frames().iter().take(MAX_FRAMES).map(frame_line));
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Path, RunPlan, adapters, find, percent};

    fn words(text: &str) -> Vec<String> {
        adapters::split_words(text).unwrap_or_default()
    }

    /// Returns the command that counts a command.
    fn counted(text: &str) -> Vec<String> {
        let command = words(text);
        let plan = RunPlan { command: &command, dir: Path::new("D"), binary: Path::new("B"), operations: Some(3) };
        let counting = find(&command).ok().unwrap();
        let mut all: Vec<String> =
            (counting.variables)(plan.dir).iter().map(|(name, value)| format!("{name}={value}")).collect();
        all.extend((counting.adapter.command)(&plan));
        all
    }

    const CALLGRIND: &str = "valgrind --quiet --tool=callgrind --separate-callers=10 --trace-children=yes \
                             --callgrind-out-file=D/callgrind.out.%p";

    const CACHEGRIND: &str = "valgrind --quiet --tool=cachegrind --cache-sim=no --trace-children=yes \
                              --cachegrind-out-file=D/cachegrind.out.%p";

    #[test]
    fn only_the_measured_program_runs_under_the_counter() {
        assert_eq!(counted("./app {profile} x"), words(&format!("{CALLGRIND} ./app D/profile x")));
        let go = format!(
            "GOGC=off GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 go test -o B -exec '{CACHEGRIND}' '-run=^$' -count=1 -bench \
             Parse ./p -benchtime=3x -args -v"
        );
        assert_eq!(counted("go test -bench Parse ./p -args -v"), words(&go));
        let python = "PYTHONHASHSEED=0 python3 -X dev -O -m cProfile -o D/calls.prof";
        assert_eq!(counted("python3 -X dev -O run.py -v"), words(&format!("{python} run.py -v")));
        assert_eq!(counted("python3 -X dev -O -m shop -v"), words(&format!("{python} -m shop -v")));
        assert_eq!(counted("python3 -X dev -Omshop -c 1"), words(&format!("{python} -m shop -c 1")));
        assert_eq!(counted("python3 -X dev -O -- run.py -c 1"), words(&format!("{python} run.py -c 1")));
        let attached =
            "PYTHONHASHSEED=0 python3 -Xdev -IW error --check-hash-based-pycs never -m cProfile -o D/calls.prof";
        let command = "python3 -Xdev -IW error --check-hash-based-pycs never -mshop";
        assert_eq!(counted(command), words(&format!("{attached} -m shop")));
        assert_eq!(counted(&command.replace("-mshop", "run.py -mshop")), words(&format!("{attached} run.py -mshop")));
        assert!(counted("cargo bench -p x").ends_with(&words("cargo bench -p x -- --test")));
        for command in ["cargo run --release -- 5", "cargo run -- bench", "cargo --color never r -p bench"] {
            assert!(
                counted(command).ends_with(&words(command)) && counted(command)[0].contains("_RUNNER="),
                "{command}"
            );
        }
        // Before `--`, the option names a target.
        let target = "cargo +nightly --config a=1 bench --test speed";
        assert!(counted(target).ends_with(&words(&format!("{target} -- --test"))));
        assert!(counted("cargo bench -- --test x").ends_with(&words("cargo bench -- --test x")));
        // The compiler itself is the counted program.
        assert!(counted("cargo build -p bench").starts_with(&words(CALLGRIND)));
        assert!(counted("cargo bench")[0].ends_with(&format!("_RUNNER={CALLGRIND}")));
    }

    #[test]
    fn programs_that_compile_while_they_run_are_refused_with_the_reason() {
        for (command, reason) in [
            ("node a.js", "--jitless is another program"),
            ("/usr/bin/java -jar a.jar", "compiles the code while it runs"),
            ("perf record ./a", "without perf"),
            ("python -c 1", "put the code into a file"),
            ("python3 -Ic 'print(1)'", "put the code into a file"),
        ] {
            let failure = find(&words(command)).err().unwrap();
            let pprofdiff_shell::Failure::Message(message) = failure else { unreachable!() };
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn changes_of_counts_keep_their_digits() {
        let shown = [0.0, 0.000_001, 0.000_5, -0.012_34, 0.5].map(percent);
        assert_eq!(shown, ["0 %", "+0.00010 %", "+0.050 %", "-1.2 %", "+50.0 %"]);
    }
}
