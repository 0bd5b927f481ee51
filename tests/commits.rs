//! Tests of finding the commit behind a cause. Each test repository has twenty commits, generated from a seed in one of
//! four languages. At most one commit is guilty; the others rename, move, format and comment code, change other code in
//! the same file, or bump dependencies. The profiles are generated too, with the files and lines of the sources. The
//! causes come from the real `explain`.
//!
//! The weights were tuned on even seeds (`COMMITS_FROM=0`). The accuracy is tested on odd seeds from 9001, which were
//! not used for tuning. To print each case: `COMMITS=1 cargo test -p pprofdiff-cli --test engine commits:: --
//! --nocapture`. `evals/run` uses some of these cases as tasks: the test `tasks_for_the_evals_are_written` writes them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::{Diff, Profile, Query};
use pprofdiff_commits::{History, LOG_ARGS, Tree};
use pprofdiff_explain::{ExplainOptions, Explanation, RankedCommit, RankedCommits, Reach};
use pprofdiff_report::{Registry, Report};

/// A SplitMix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Language {
    Go,
    Rust,
    Python,
    Node,
}

#[derive(Clone)]
struct Function {
    name: String,
    file: usize,
    local: &'static str,
    text: &'static str,
    comments: usize,
    is_wrapped: bool,
    /// Statements other than calls.
    statements: Vec<String>,
    calls: Vec<usize>,
    /// The call that is inside a loop.
    looped: Option<usize>,
    /// True if the function calls the library.
    calls_library: bool,
    constant: usize,
    cost: u64,
}

#[derive(Clone)]
struct Program {
    language: Language,
    files: Vec<String>,
    functions: Vec<Function>,
    /// Name, file and value of each constant.
    constants: Vec<(String, usize, u32)>,
    /// Versions of the library that is called, and of an unused one.
    versions: [u32; 2],
    library_cost: u64,
    notes: usize,
}

const LOCALS: [&str; 5] = ["total", "result", "sum", "amount", "count"];
const TEXTS: [&str; 4] = ["begin", "start of work", "working", "in progress"];
const WORDS: [&str; 24] = [
    "validate", "parse", "render", "encode", "collect", "merge", "lookup", "resolve", "convert", "measure", "arrange",
    "digest", "compare", "expand", "filter", "inspect", "load", "order", "pack", "quote", "reduce", "shape", "trim",
    "weigh",
];
const STEMS: [&str; 5] = ["email", "cart", "report", "index", "prices"];

impl Program {
    fn new(language: Language, random: &mut Random) -> Program {
        let ending = ["go", "rs", "py", "js"][language as usize];
        let files = STEMS.iter().enumerate().map(|(i, stem)| format!("{}/{stem}.{ending}", ["shop", "store"][i % 2]));
        let files: Vec<String> = files.collect();
        let constants = (0..5).map(|i| (format!("LIMIT_{}", STEMS[i].to_uppercase()), i, 10 + i as u32)).collect();
        let mut functions: Vec<Function> = Vec::new();
        for i in 0..16 {
            // main, three handlers, six workers and six helpers.
            let calls = match i {
                0 => vec![1, 2, 3],
                1..=3 => vec![2 * i + 2, 2 * i + 3],
                4..=9 => vec![i + 6],
                _ => Vec::new(),
            };
            let word = if i == 0 { "main".to_owned() } else { format!("{}{}", WORDS[i], ["", "All", "One"][i % 3]) };
            functions.push(Function {
                name: word,
                file: if i == 0 { 0 } else { random.below(5) },
                local: random.pick::<&str>(&LOCALS),
                text: random.pick::<&str>(&TEXTS),
                comments: random.below(2),
                is_wrapped: false,
                statements: (0..1 + random.below(3)).map(|s| format!("{} + {}", s + i, random.below(90))).collect(),
                calls,
                looped: None,
                calls_library: i == 7,
                constant: random.below(5),
                // The guilty commit may add calls of these functions, so they cost enough to be noticed.
                cost: if [13, 15].contains(&i) { 800 } else { 200 + random.below(900) as u64 },
            });
        }
        Program { language, files, functions, constants, versions: [3, 5], library_cost: 700, notes: 0 }
    }

    /// Returns the function's name in the profile.
    fn frame(&self, f: usize) -> String {
        let function = &self.functions[f];
        let file = &self.files[function.file];
        let (folder, name) = file.split_once('/').unwrap();
        let stem = name.split('.').next().unwrap();
        match self.language {
            Language::Go if f == 0 => "main.main".to_owned(),
            Language::Go => format!("acme/{folder}.{}", function.name),
            Language::Rust => format!("acme::{folder}::{stem}::{}", function.name),
            Language::Python | Language::Node => function.name.clone(),
        }
    }

    fn library(&self) -> (&'static str, String) {
        let version = self.versions[0];
        match self.language {
            Language::Go => {
                ("github.com/lib/fast.Decode", format!("/root/go/pkg/mod/github.com/lib/fast@v1.{version}.0/d.go"))
            }
            Language::Rust => {
                ("fast::decode", format!("/root/.cargo/registry/src/index-1/fast-1.{version}.0/src/d.rs"))
            }
            Language::Python => ("decode", "/usr/lib/python3/site-packages/fast/d.py".to_owned()),
            Language::Node => ("decode", "/app/node_modules/fast/d.js".to_owned()),
        }
    }

    /// Returns the source files, and the first line of each function.
    fn render(&self) -> (Vec<(String, String)>, Vec<i64>) {
        let mut texts: Vec<String> = self.files.iter().map(|_| String::new()).collect();
        let mut starts = vec![0; self.functions.len()];
        let line = |text: &str| text.matches('\n').count() as i64 + 1;
        for (i, text) in texts.iter_mut().enumerate() {
            let folder = self.files[i].split('/').next().unwrap();
            text.push_str(&match self.language {
                Language::Go => format!("package {folder}\n\n"),
                Language::Rust => "use crate::*;\n\n".to_owned(),
                Language::Python => "import log\n\n".to_owned(),
                Language::Node => "const log = require('log');\n\n".to_owned(),
            });
            for (name, _, value) in self.constants.iter().filter(|constant| constant.1 == i) {
                text.push_str(&match self.language {
                    Language::Go => format!("const {name} = {value}\n\n"),
                    Language::Rust => format!("const {name}: u32 = {value};\n\n"),
                    Language::Python => format!("{name} = {value}\n\n"),
                    Language::Node => format!("const {name} = {value};\n\n"),
                });
            }
        }
        for (i, f) in self.functions.iter().enumerate() {
            let text = &mut texts[f.file];
            let mark = if self.language == Language::Python { "#" } else { "//" };
            (0..f.comments).for_each(|n| text.push_str(&format!("{mark} {} does part {n} of it.\n", f.name)));
            starts[i] = line(text);
            let parameter = match (self.language, f.is_wrapped) {
                (Language::Go, false) => "n int".to_owned(),
                (Language::Go, true) => "\n\tn int,\n".to_owned(),
                (Language::Rust, false) => "n: u32".to_owned(),
                (Language::Rust, true) => "\n    n: u32,\n".to_owned(),
                (_, false) => "n".to_owned(),
                (_, true) => "\n    n,\n".to_owned(),
            };
            let (name, local) = (&f.name, f.local);
            let end = if matches!(self.language, Language::Rust | Language::Node) { ";" } else { "" };
            let mut say = |statement: String| text.push_str(&format!("{statement}\n"));
            say(match self.language {
                Language::Go => format!("func {name}({parameter}) int {{\n\t{local} := n"),
                Language::Rust => format!("pub fn {name}({parameter}) -> u32 {{\n    let mut {local} = n;"),
                Language::Python => format!("def {name}({parameter}):\n    {local} = n"),
                Language::Node => format!("function {name}({parameter}) {{\n    let {local} = n;"),
            });
            say(format!("    log(\"{}\"){end}", f.text));
            f.statements.iter().for_each(|s| say(format!("    {local} = {local} + {s}{end}")));
            if f.calls_library {
                say(format!("    {local} = fast.decode({local}){end}"));
            }
            for &callee in &f.calls {
                let call = format!("{local} = {local} + {}({local}){end}", self.functions[callee].name);
                match (self.language, f.looped == Some(callee)) {
                    (_, false) => say(format!("    {call}")),
                    (Language::Python, true) => say(format!("    for k in range(9):\n        {call}")),
                    (Language::Rust, true) => say(format!("    for _ in 0..9 {{\n        {call}\n    }}")),
                    (Language::Go, true) => say(format!("    for k := 0; k < 9; k++ {{\n        {call}\n    }}")),
                    (Language::Node, true) => {
                        say(format!("    for (let k = 0; k < 9; k++) {{\n        {call}\n    }}"))
                    }
                }
            }
            let limit = &self.constants[f.constant].0;
            say(format!("    {local} = {local} * {limit}{end}\n    return {local}{end}"));
            say(if self.language == Language::Python { String::new() } else { "}\n".to_owned() });
        }
        let mut all: Vec<(String, String)> = self.files.iter().cloned().zip(texts).collect();
        let [fast, other] = self.versions;
        all.push(match self.language {
            Language::Go => ("go.mod".to_owned(), format!("module acme\n\ngo 1.24\n\nrequire (\n\tgithub.com/lib/fast v1.{fast}.0\n\tgithub.com/lib/other v1.{other}.0\n)\n")),
            Language::Rust => ("Cargo.toml".to_owned(), format!("[package]\nname = \"acme\"\n\n[dependencies]\nfast = \"1.{fast}\"\nother = {{ version = \"1.{other}\" }}\n")),
            Language::Python => ("requirements.txt".to_owned(), format!("fast==1.{fast}\nother>=1.{other}\n")),
            Language::Node => ("package.json".to_owned(), format!("{{\n  \"dependencies\": {{\n    \"fast\": \"^1.{fast}.0\",\n    \"other\": \"^1.{other}.0\"\n  }}\n}}\n")),
        });
        all.push(("README.md".to_owned(), "A shop.\n".repeat(self.notes + 1)));
        (all, starts)
    }

    /// Returns all stacks from the root with their costs. -1 is the library.
    fn stacks(&self) -> Vec<(Vec<i64>, u64)> {
        let mut all = Vec::new();
        let mut open = vec![(vec![0i64], 1u64)];
        while let Some((stack, times)) = open.pop() {
            let f = &self.functions[*stack.last().unwrap() as usize];
            all.push((stack.clone(), f.cost * times));
            if f.calls_library {
                all.push(([&stack[..], &[-1]].concat(), self.library_cost * times));
            }
            for &callee in &f.calls {
                let more = if f.looped == Some(callee) { 3 } else { 1 };
                open.push(([&stack[..], &[callee as i64]].concat(), times * more));
            }
        }
        all
    }

    fn profile(&self, random: &mut Random) -> Arc<Profile> {
        let (_, starts) = self.render();
        let mut b = ProfileBuilder::new();
        b.sample_type("cpu", "nanoseconds");
        b.period("cpu", "nanoseconds", 10_000_000);
        for (stack, cost) in self.stacks() {
            let mut locations = Vec::new();
            for &f in stack.iter().rev() {
                let (name, file, start) = match usize::try_from(f) {
                    Ok(f) => (self.frame(f), format!("/build/7/{}", self.files[self.functions[f].file]), starts[f]),
                    Err(_) => (self.library().0.to_owned(), self.library().1, 10),
                };
                let function = b.function(name, file, start);
                let line = b.line(function, start + 2);
                locations.push(b.location(None, 0, &[line]).unwrap());
            }
            // The sum of many uniform numbers is about normal.
            let dice: i64 = (0..12).map(|_| random.below(1001) as i64 - 500).sum();
            let samples = (cost as f64 + (cost as f64).sqrt() * dice as f64 / 1000.0).max(0.0).round() as i64;
            b.sample(&locations, &[samples * 10_000_000], &[]).unwrap();
        }
        Arc::new(b.build("made up").unwrap())
    }

    /// Applies a change that costs nothing, and returns its description.
    fn decoy(&mut self, random: &mut Random, cause: &[usize]) -> &'static str {
        let any = random.below(self.functions.len() - 1) + 1;
        // A decoy must not really change a function on the path of the cause.
        let other = loop {
            let f = random.below(self.functions.len());
            if !cause.contains(&f) || f == 0 {
                break f;
            }
        };
        let fresh = random.next() % 10_000;
        match random.below(12) {
            0 => {
                self.functions[any].comments += 1;
                "comment"
            }
            1 => {
                self.functions[any].is_wrapped ^= true;
                "format"
            }
            2 => {
                let local = self.functions[any].local;
                self.functions[any].local =
                    LOCALS[(LOCALS.iter().position(|l| *l == local).unwrap() + 1) % LOCALS.len()];
                "rename a local"
            }
            3 => {
                let text = self.functions[any].text;
                self.functions[any].text = TEXTS[(TEXTS.iter().position(|t| *t == text).unwrap() + 1) % TEXTS.len()];
                "text"
            }
            4 => {
                let file = self.functions[any].file;
                self.functions[any].file = (file + 2) % 4;
                "move a function"
            }
            5 => {
                let name = self.functions[any].name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
                self.functions[any].name = format!("{name}{fresh}");
                "rename a function"
            }
            6 => {
                let file = random.below(5);
                let (path, ending) = self.files[file].rsplit_once('.').unwrap();
                let path = path.trim_end_matches(|c: char| c.is_ascii_digit());
                self.files[file] = format!("{path}{fresh}.{ending}");
                "rename a file"
            }
            7 => {
                self.versions[1] += 1;
                "bump another dependency"
            }
            8 => {
                self.notes += 1;
                "readme"
            }
            9 => {
                let file = random.below(5);
                let constants = self.constants.len();
                self.constants.push((format!("SPARE_{constants}"), file, 7));
                "another constant"
            }
            _ => {
                self.functions[other].statements.push(format!("{fresh}"));
                "another function"
            }
        }
    }

    /// Applies the change that costs time, and returns its description.
    fn guilt(&mut self, kind: usize) -> &'static str {
        let worker = &mut self.functions[7];
        match kind {
            0 => {
                worker.statements.push("work(n) * 17".to_owned());
                worker.cost *= 5;
                "own lines"
            }
            1 => {
                // A helper that other functions already call.
                worker.calls.push(15);
                worker.looped = Some(15);
                "a call"
            }
            2 => {
                let mut new = self.functions[12].clone();
                (new.name, new.cost, new.statements) = ("escape".to_owned(), 1800, vec!["3 * n".to_owned()]);
                let number = self.functions.len();
                self.functions[7].calls.push(number);
                self.functions.push(new);
                "a new function"
            }
            3 => {
                let constant = worker.constant;
                worker.cost *= 5;
                self.constants[constant].2 *= 100;
                "a constant"
            }
            4 => {
                self.library_cost *= 4;
                self.versions[0] += 1;
                "a dependency"
            }
            _ => {
                worker.looped = Some(13);
                "a loop around a call"
            }
        }
    }
}

/// The functions on the path of the cause. No decoy may really change them.
const CAUSE: [usize; 5] = [0, 1, 2, 7, 13];

struct Case {
    language: Language,
    branch: String,
    /// Short commit names, oldest first, with their descriptions.
    what: Vec<String>,
    guilty: Option<usize>,
    /// The files of the last commit.
    files: Vec<(String, String)>,
    /// The kind of guilt.
    kind: usize,
    /// The program at the last commit.
    program: Program,
    base: Arc<Profile>,
    new: Arc<Profile>,
}

impl Case {
    fn new(seed: u64, has_guilt: bool) -> Case {
        let mut random = Random(seed * 2 + u64::from(has_guilt));
        let language = [Language::Go, Language::Rust, Language::Python, Language::Node][seed as usize / 2 % 4];
        let kind = seed as usize / 2 % 6;
        let mut program = Program::new(language, &mut random);
        // Only one function may use the constant that will change.
        let constant = program.constants.len();
        program.constants.push(("LIMIT_OF_WORK".to_owned(), (program.functions[7].file + seed as usize % 2) % 5, 64));
        program.functions[7].constant = constant;
        let base = program.profile(&mut random);
        let guilty = has_guilt.then(|| random.below(20));
        let branch = format!("{seed}-{has_guilt}");
        let mut stream = commit(&branch, &program, &program, "begin", 0);
        let mut descriptions = Vec::new();
        for i in 0..20 {
            let before = program.clone();
            let mut is_changed = false;
            while !is_changed {
                descriptions.truncate(i);
                descriptions.push(match guilty {
                    Some(guilty) if guilty == i => format!("GUILTY: {}", program.guilt(kind)),
                    _ => program.decoy(&mut random, &CAUSE).to_owned(),
                });
                is_changed = before.render().0 != program.render().0;
            }
            stream.push_str(&commit(&branch, &before, &program, &format!("change {i}"), i + 1));
        }
        if !has_guilt {
            // Another cause made the program slower, such as the machine or the data.
            program.guilt_without_lines(kind);
        }
        let new = program.profile(&mut random);
        // Uses a pack file. With few objects, git would write one file for each.
        // Two tests may create the same case, and git refuses to update a branch that another process updates.
        static IMPORT: Mutex<()> = Mutex::new(());
        let only = IMPORT.lock().unwrap_or_else(PoisonError::into_inner);
        git(repository(), &["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"], &stream);
        drop(only);
        Case { language, branch, what: descriptions, guilty, files: program.render().0, kind, program, base, new }
    }

    /// Returns the right answer for the evals: the guilty commit, its functions in the profile with the file and the
    /// first and last line of each, and the changed lines.
    fn truth(&self) -> serde_json::Value {
        let places = |names: &[usize]| -> Vec<serde_json::Value> {
            let (texts, starts) = self.program.render();
            let place = |&f: &usize| {
                let file = &self.program.files[self.program.functions[f].file];
                let text = texts.iter().find(|(path, _)| path == file).map(|(_, text)| text.as_str()).unwrap();
                let others = self.program.functions.iter().zip(&starts);
                let next = others.filter(|(g, start)| g.file == self.program.functions[f].file && **start > starts[f]);
                let end = next.map(|(_, start)| start - 1).min().unwrap_or(text.lines().count() as i64);
                serde_json::json!({"function": self.program.frame(f), "file": file, "lines": [starts[f], end]})
            };
            names.iter().map(place).collect()
        };
        // The changed function first, then the function whose cost grew.
        let functions: &[usize] = match self.kind {
            1 => &[7, 15],
            2 => &[7, 16],
            5 => &[7, 13],
            _ => &[7],
        };
        let library = (self.kind == 4).then(|| self.program.library().0);
        serde_json::json!({
            "branch": self.branch,
            "language": format!("{:?}", self.language),
            "guilty": self.guilty.map(|i| format!("change {i}")),
            "what": self.guilty.map(|i| &self.what[i]),
            "functions": if self.guilty.is_some() { places(functions) } else { Vec::new() },
            "library": library.filter(|_| self.guilty.is_some()),
        })
    }

    /// Explains the case, and returns the accused commits.
    fn rank(&self) -> (Explanation, RankedCommits) {
        let range = format!("{0}~20..{0}", self.branch);
        let log = git(repository(), &[&LOG_ARGS[..], &[&range]].concat(), "");
        let history = History::parse(&log);
        assert_eq!(history.len(), 20);
        let read = |path: &str| self.files.iter().find(|(name, _)| name == path).map(|(_, text)| text.clone());
        let tree = Tree { files: self.files.iter().map(|(name, _)| name.clone()).collect(), read: &read };
        let diff = Diff::new(std::slice::from_ref(&self.base), std::slice::from_ref(&self.new)).unwrap();
        let query = Query::default();
        let mut e = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
        pprofdiff_commits::rank_commits(&diff, &query, &mut e, &history, &tree).unwrap();
        // Ordered as a user reads them: the first accused commit belongs to the first cause that has one.
        let mut all = RankedCommits::default();
        for ranked in e.causes.iter().filter_map(|cause| cause.commits.as_ref()) {
            all.of = ranked.of;
            let accused: Vec<String> = all.ranked.iter().map(|commit| commit.commit.clone()).collect();
            let direct = ranked.ranked.iter().filter(|commit| commit.direct && !accused.contains(&commit.commit));
            all.ranked.extend(direct.cloned());
        }
        (e, all)
    }
}

impl Program {
    fn guilt_without_lines(&mut self, kind: usize) {
        match kind {
            4 => self.library_cost *= 4,
            1 | 5 => self.functions[13].cost *= 5,
            _ => self.functions[7].cost *= 5,
        }
    }
}

/// Returns a commit for `git fast-import`.
fn commit(branch: &str, before: &Program, after: &Program, subject: &str, number: usize) -> String {
    let (old, new) = (before.render().0, after.render().0);
    let mut stream = format!(
        "commit refs/heads/{branch}\ncommitter A <a@example.com> {} +0000\ndata {}\n{subject}\n",
        1_700_000_000 + number,
        subject.len()
    );
    for (path, _) in old.iter().filter(|(path, _)| number > 0 && !new.iter().any(|(kept, _)| kept == path)) {
        stream.push_str(&format!("D {path}\n"));
    }
    for (path, text) in &new {
        stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
    }
    stream
}

/// Creates one repository for the branches of all cases, without template files. Creating files took most of the time.
fn repository() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("commits-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        git(Path::new("."), &["init", "-q", "--bare", "--template=", folder.to_str().unwrap()], "");
        folder
    })
}

fn git(dir: &Path, args: &[&str], input: &str) -> String {
    let mut child = Command::new("git")
        .args(["-c", "init.defaultBranch=main"])
        .current_dir(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number of cases, how often the guilty commit is first, how often it is among the first three, and how
/// often a commit is accused although none is guilty.
fn measure(seeds: impl Iterator<Item = u64>) -> (usize, usize, usize, usize) {
    let is_shown = std::env::var_os("COMMITS").is_some();
    let (mut all, mut first, mut in_three, mut accused) = (0, 0, 0, 0);
    for seed in seeds {
        let case = Case::new(seed, true);
        let (e, ranked) = case.rank();
        let guilty = format!("change {}", case.guilty.unwrap());
        let place = ranked.ranked.iter().filter(|commit| commit.direct).position(|commit| commit.subject == guilty);
        all += 1;
        first += usize::from(place == Some(0));
        in_three += usize::from(place.is_some_and(|place| place < 3));
        let cause = e.causes.first().map(|c| (c.kind, &c.caller, &c.function));
        if is_shown && place != Some(0) {
            let named: Vec<_> = ranked.ranked.iter().map(|c| (&c.subject, &c.why, c.direct)).collect();
            eprintln!("{seed} {:?} {:?} {place:?} {cause:?} {named:?}", case.language, case.what[case.guilty.unwrap()]);
            eprintln!("    {:?} x{:.3} {:?}", e.verdict, e.scale.factor, case.what);
        }
        let innocent = Case::new(seed, false);
        let (e, ranked) = innocent.rank();
        accused += usize::from(ranked.first().is_some());
        if is_shown && let Some(named) = ranked.first() {
            let number: usize = named.subject.trim_start_matches("change ").parse().unwrap();
            eprintln!("{seed} innocent {:?}: {} {:?}", innocent.language, innocent.what[number], named.why);
            for c in &e.causes {
                let first =
                    c.commits.as_ref().and_then(RankedCommits::first).map(|commit| (&commit.subject, &commit.why));
                eprintln!("    {:?} {:?} {:?} {:+.3} {first:?}", c.kind, c.caller, c.function, c.share);
            }
        }
    }
    (all, first, in_three, accused)
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn the_guilty_commit_is_first_and_innocent_ones_are_not_accused() {
    let count = 60;
    let begin = std::env::var("COMMITS_FROM").map_or(9001, |first| first.parse().unwrap());
    let (all, first, in_three, accused) = measure((0..count).map(|i| begin + 2 * i));
    eprintln!("of {all}: first {first}, in three {in_three}, innocent accused {accused}");
    assert!(first * 100 >= all * 80, "first in {first} of {all}");
    assert!(in_three * 100 >= all * 95, "among three in {in_three} of {all}");
    assert!(accused * 100 <= all * 5, "accused in {accused} of {all}");
}

#[test]
fn an_accused_commit_has_a_place_and_a_reason() {
    // The function's own lines changed, in Go.
    let case = Case::new(1, true);
    let (_, ranked) = case.rank();
    let first = ranked.first().unwrap();
    let guilty = case.guilty.unwrap();
    assert_eq!((first.subject.as_str(), first.reach), (format!("change {guilty}").as_str(), Reach::OwnLines));
    let text = git(repository(), &["show", &format!("{}:{}", first.commit, first.file)], "");
    let names = git(repository(), &["ls-tree", "-r", "--name-only", &case.branch], "");
    assert_eq!(names.lines().count(), case.files.len());
    for (name, text) in &case.files {
        assert_eq!(git(repository(), &["show", &format!("{}:{name}", case.branch)], ""), *text, "{name}");
    }
    let line = text.lines().nth(first.lines.0 as usize - 1).unwrap();
    assert!(line.contains("work(n) * 17") && first.lines.0 == first.lines.1, "{line:?} {:?}", first.lines);
    assert_eq!((first.why.as_str(), ranked.of), ("changes the function itself", 20));
}

/// A call of a new function, in Go, and a call of a function with other callers, in Rust.
#[test]
fn an_added_call_is_the_reason() {
    for seed in [16, 2] {
        let case = Case::new(seed, true);
        let (_, ranked) = case.rank();
        let first = ranked.first().unwrap();
        assert_eq!(first.subject, format!("change {}", case.guilty.unwrap()), "{:?}", case.what);
        assert_eq!(first.reach, Reach::Call, "{first:?}");
        // Later commits may have appended a number to the function's name.
        let called = first.why.strip_prefix("adds a call of ").unwrap().trim_end_matches(|c: char| c.is_ascii_digit());
        let text = git(repository(), &["show", &format!("{}:{}", first.commit, first.file)], "");
        let line = text.lines().nth(first.lines.0 as usize - 1).unwrap();
        assert!(first.lines.0 == first.lines.1 && line.contains(&format!("{called}(")), "{first:?}: {line:?}");
    }
}

/// The text names the nearest commit, unless it only changes the same file or folder.
#[test]
fn a_commit_that_only_changes_code_nearby_is_not_named() {
    let (mut e, _) = Case::new(1, true).rank();
    let function = e.causes[0].function.clone().unwrap();
    let mut written = |reach: Reach| {
        let ids = ["0123456789abcdef", "0123456", "tidy"].map(str::to_owned);
        let near = RankedCommit::new(ids, "shop/other.go".to_owned(), (1, 2), reach, "is near".to_owned(), false);
        e.causes[0].commits = Some(RankedCommits::new(3, vec![near]));
        let mut text = Vec::new();
        let report = Report::Explain(Box::new(e.clone()));
        Registry::standard().format("text").unwrap().write(&report, &mut text, Default::default()).unwrap();
        String::from_utf8(text).unwrap()
    };
    for reach in [Reach::File, Reach::Folder] {
        let text = written(reach);
        assert!(
            text.contains(&format!("   none of 3 commits touches {function}\n")) && !text.contains("tidy"),
            "{text}"
        );
    }
    let nearest = format!("none of 3 commits touches {function}; nearest: 0123456 tidy, shop/other.go:1-2: is near\n");
    assert!(written(Reach::Constant).contains(&nearest));
}

/// Explains profiles of counted calls, and ranks one commit that changes a file from `old` to `new`. Stacks are root
/// first, with the file of each function. Returns the text.
fn after_commit(path: &str, [old, new]: [&str; 2], stacks: &[(&[(&str, &str)], [i64; 2])]) -> String {
    let profile = |side: usize| {
        let mut b = ProfileBuilder::new();
        b.sample_type("calls", "count");
        for (stack, values) in stacks.iter().filter(|(_, values)| values[side] > 0) {
            let mut locations = Vec::new();
            for (name, file) in stack.iter().rev() {
                let function = b.function(*name, *file, 1);
                let line = b.line(function, 1);
                locations.push(b.location(None, 0, &[line]).unwrap());
            }
            b.sample(&locations, &[values[side]], &[]).unwrap();
        }
        Arc::new(b.build("counted").unwrap())
    };
    let lines = |text: &str, sign: char| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let patch = format!(
        "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,9 +1,9 @@\n{}{}",
        lines(old, '-'),
        lines(new, '+')
    );
    let history = History::parse(&format!("\0{}\0abcdef1\0change it\0{patch}", "abcdef1".repeat(5)));
    let read = |name: &str| (name == path).then(|| new.to_owned());
    let tree = Tree { files: vec![path.to_owned()], read: &read };
    let diff = Diff::new(&[profile(0)], &[profile(1)]).unwrap();
    let query = Query::default();
    let mut e = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
    pprofdiff_commits::rank_commits(&diff, &query, &mut e, &history, &tree).unwrap();
    let mut text = Vec::new();
    let report = Report::Explain(Box::new(e));
    Registry::standard().format("text").unwrap().write(&report, &mut text, Default::default()).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_function_behind_an_attribute_is_accused() {
    let [main, price] = [("main", "shop.c"), ("price", "shop.c")];
    let old = "__attribute__((noinline)) static int price(int n) {\n  return n * 8;\n}\nint main() {\n  price(1);\n}\n";
    let stacks: [(&[(&str, &str)], [i64; 2]); 2] = [(&[main], [9000, 9000]), (&[main, price], [9000, 18000])];
    let text = after_commit("shop.c", [old, &old.replace('8', "12")], &stacks);
    assert!(text.contains("   abcdef1 change it, shop.c:1-3: changes the function itself\n"), "{text}");
}

/// The parser of sources does not know every language construct, so a function that it can't find may have changed.
#[test]
fn a_change_of_a_function_that_is_not_found_is_not_denied() {
    let [main, price] = [("main", "shop.c"), ("price", "shop.c")];
    let stacks: [(&[(&str, &str)], [i64; 2]); 2] = [(&[main], [9000, 9000]), (&[main, price], [9000, 18000])];
    for (definition, sentence) in [
        (
            "DEFINE_FUNCTION(price)",
            "no change of price was found in the commit; its definition was not located in the sources",
        ),
        ("int price(int n) { return n; }\nint other()", "the commit does not touch price"),
    ] {
        let old = format!("{definition} {{\n  work(8);\n}}\nint main() {{\n  price(1);\n}}\n");
        let text = after_commit("shop.c", [&old, &old.replace('8', "12")], &stacks);
        assert!(text.contains(&format!("   {sentence}\n")), "{text}");
    }
}

#[test]
fn a_function_above_a_comprehension_is_a_direct_caller() {
    let [rank, list, score] = ["rank", "<listcomp>", "score"].map(|name| (name, "app.py"));
    let others = ["a", "b", "c", "d"].map(|name| [(name, "app.py")]);
    let (upper, lower) = ([rank, list], [rank, list, score]);
    let mut stacks: Vec<(&[(&str, &str)], [i64; 2])> = vec![(&lower, [90000, 45000]), (&upper, [20000, 20000])];
    // Functions that show that the amount of work is the same.
    stacks.extend(others.iter().map(|stack| (&stack[..], [20000, 20000])));
    let old = "def score(x):\n    return x\n\n\ndef rank(all):\n    return [score(x) for x in all]\n";
    let text = after_commit("app.py", [old, &old.replace("in all", "in all[::2]")], &stacks);
    assert!(text.contains("the commit does not touch score; nearest: abcdef1 change it, app.py:5-6: "), "{text}");
    assert!(text.contains(": changes rank, which calls it\n"), "{text}");
}

/// Cachegrind counts without callers.
#[test]
fn a_commit_that_adds_a_call_of_a_library_is_named_without_stacks() {
    let library = ("strings.ToUpper", "/usr/local/go/src/strings/strings.go");
    let stacks: [(&[(&str, &str)], [i64; 2]); 2] =
        [(&[("acme.Clean", "shop.go")], [9000, 9000]), (&[library], [0, 5000])];
    let old = "package acme\n\nfunc Clean(s string) string {\n\treturn s\n}\n";
    let text = after_commit("shop.go", [old, &old.replace("return s", "return strings.ToUpper(s)")], &stacks);
    assert!(text.contains("   abcdef1 change it, shop.go:4: adds a call of ToUpper\n"), "{text}");
    // A call of the same name that was there before is no reason.
    let text = after_commit("shop.go", [old, &old.replace("return s", "return lower(s)")], &stacks);
    assert!(text.contains("no change of strings.ToUpper was found in the commit"), "{text}");
}

/// Writes cases for `evals/run` to `evals-commits` in Cargo's folder for temporary files, or to `EVALS_COMMITS`: a bare
/// repository, the profiles of each case, and `truth.json`. `EVALS_COUNT` sets the number of guilty cases, which is 24
/// by default, so that every kind of guilt is combined with every language once or twice. Each third case also has an
/// innocent range.
#[test]
#[ignore = "slow; `tests/run all` runs it before the evals"]
fn tasks_for_the_evals_are_written() {
    let default = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evals-commits");
    let folder = std::env::var_os("EVALS_COMMITS").map_or(default, PathBuf::from);
    let count: u64 = std::env::var("EVALS_COUNT").map_or(24, |count| count.parse().unwrap());
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut rows = Vec::new();
    for i in 0..count {
        for has_guilt in [true, false] {
            if has_guilt || i % 3 == 0 {
                let case = Case::new(9001 + 2 * i, has_guilt);
                for (side, profile) in [("base", &case.base), ("new", &case.new)] {
                    let file = folder.join(format!("{}.{side}.pb.gz", case.branch));
                    std::fs::write(file, profile.to_bytes(&pprofdiff::WriteOptions::default()).unwrap()).unwrap();
                }
                rows.push(case.truth());
            }
        }
    }
    std::fs::write(folder.join("truth.json"), serde_json::to_vec_pretty(&rows).unwrap()).unwrap();
    git(
        Path::new("."),
        &["clone", "-q", "--mirror", repository().to_str().unwrap(), folder.join("git").to_str().unwrap()],
        "",
    );
    assert!(rows.len() as u64 > count && folder.join("git/HEAD").is_file());
}

/// Ranges whose decoys rename functions and files. With the old names, explain's causes are renames, or are far above
/// the changed function.
#[test]
fn a_renamed_function_or_file_is_not_accused() {
    for seed in [214, 418, 606, 656, 658, 5027] {
        let innocent = Case::new(seed, false);
        let (_, ranked) = innocent.rank();
        assert!(ranked.first().is_none(), "{seed} {:?}", ranked.first());
    }
}
