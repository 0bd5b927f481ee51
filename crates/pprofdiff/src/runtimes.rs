//! Knowledge about language runtimes, as data: one row per language. A row tells which frames belong to the system
//! instead of the program, which of these react to causes elsewhere (garbage collection, scheduling, locks), and which
//! are artefacts of profiling.
//!
//! No other module knows languages: `explain`, `check` and `runs` use this table.

use std::sync::OnceLock;

use regex::{Regex, bytes};

use crate::Result;
use crate::diff::compile;

/// The frames of one language's runtime. The regular expressions match anywhere in a frame's name.
pub struct Runtime {
    /// The name in results.
    pub name: &'static str,
    /// A regular expression of names that only this runtime has, and the minimum fraction of distinct names that match
    /// it in its profiles.
    detect: (&'static str, f64),
    /// Frames that are no candidates for a cause: their caller represents the program's action.
    system: &'static str,
    /// Frames whose cost reacts to causes elsewhere, and varies most between equal runs.
    background: &'static str,
    /// Leaf frames that the profiler itself adds, while their caller was running.
    artefact: Option<&'static str>,
    /// Frames that collect garbage, and frames that allocate memory. A row has both or neither.
    garbage: Option<(&'static str, &'static str)>,
    /// Leaf frames that wait for the runtime's own locks.
    own_waits: Option<&'static str>,
    /// Frames of the standard library and of program runners, without code of the reader.
    standard: Option<&'static str>,
    /// Frames of benchmark runners. A runner chooses the number of iterations, so the amount of work varies.
    benchmark: Option<&'static str>,
    /// True if stacks end at the program's last frame, because chance decides which of several inlined library frames a
    /// sample hits.
    pub trim_library_leaves: bool,
    /// True if compilers decide about inlining, so frames come and go between builds. False for Go, whose profiles show
    /// inlined frames, and for interpreters.
    pub inlining_differs: bool,
    /// True if profiles of one binary show different inlined frames, even between runs.
    pub unstable_inlining: bool,
    /// True if a compiler decides about inlining while the program runs, so runs of one build show different leaf
    /// frames.
    pub jit_inlining: bool,
    /// True if a few functions, such as imports, differ between runs of one build by more than the others. A pair's other
    /// frames then show too little noise. Measured for Python and V8; Java's runs do not show it.
    pub uneven_runs: bool,
    /// The origin of the row, and whether it was compared with profiles of our own.
    pub source: &'static str,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// The alternatives, in the column `system`, of the C library's frames that start programs and threads. Callgrind writes
/// `(below main)` for such a frame without a name. Symbols have a version (`__libc_start_main@@GLIBC_2.34`).
macro_rules! starts_of_programs {
    () => {
        r"\(below main\)|_start$|__libc_start_\w+|__clone3?$|clone3?$|start_thread$"
    };
}

/// The first row with enough matching names applies. The last row is the fallback, without names of its own.
static RUNTIMES: [Runtime; 7] = [
    Runtime {
        name: "go",
        detect: (r"^(runtime|main|internal|sync)[./]", 0.05),
        system: r"^(runtime[./]|internal/(runtime|abi|cpu|bytealg|sync|race)\b|sync\.|sync/atomic|type:|memeqbody$|cmpbody$|aeshashbody$|memclr\w*$|memmove$|gcWriteBarrier\d?$|indexbytebody$|countbody$|callRet$|_rt0|_cgo)",
        background: r"^(runtime\.(gcAssistAlloc\d?|gcBgMarkWorker|gcStart|gcMarkDone|bgsweep|bgscavenge|wbBufFlush\d?|gcWriteBarrier\d?|gcmarknewobject|bulkBarrierPreWrite|deductAssistCredit|deductSweepCredit|futex\w*|lock2|unlock2|procyield\w*|osyield\w*|usleep\w*|findRunnable|schedule|park_m|mcall|semasleep|notesleep|semacquire1?|semrelease1?|madvise|sysUnused\w*)|(internal/)?sync\.\(\*Mutex\)\.(lockSlow|unlockSlow)|gcWriteBarrier\d?)$",
        // A signal that asks a goroutine to yield. On a loaded machine, up to a third of all samples end there.
        artefact: Some(r"^runtime\.asyncPreempt2?$"),
        garbage: Some((
            r"^(runtime\.(gc[A-Z]\w*|bgsweep|bgscavenge|wbBufFlush\d?|bulkBarrierPreWrite|deduct\w+Credit)|gcWriteBarrier\d?)$",
            r"^runtime\.mallocgc$",
        )),
        own_waits: Some(r"^runtime\."),
        standard: Some(
            r"^(archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|sync|syscall|testing|text|time|unicode|unique|unsafe|vendor|weak)[./]",
        ),
        benchmark: Some(r"^testing\.\(\*B\)\."),
        trim_library_leaves: false,
        inlining_differs: false,
        unstable_inlining: false,
        jit_inlining: false,
        uneven_runs: false,
        source: "Go's runtime package (mgc.go, proc.go, preempt.go); compared with profiles of Go programs",
    },
    Runtime {
        name: "rust",
        detect: (
            r"^<?(core|alloc)::|^<?std::(rt|sys|panicking|io|collections)::|::h[0-9a-f]{16}$|::\{\{closure\}\}|\{closure#\d+\}",
            0.02,
        ),
        system: concat!(
            r"^(<.* as (core|alloc|std)::|<?&?(mut )?(core|alloc|std|hashbrown|compiler_builtins)::|<?&?(u|i|f)(8|16|32|64|128|size)>|<\[|<\(|__|_?je_|mem(cpy|move|set|chr)|[a-z_]+$|",
            starts_of_programs!(),
            ")"
        ),
        background: r"^(__lll_lock_\w+|futex\w*|_?je_arena_(decay|purge)\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(r"^<?(core|alloc|std|tokio|rayon|rayon_core|criterion|test)::"),
        benchmark: Some(r"^<?(criterion|divan|test::bench)::"),
        trim_library_leaves: true,
        inlining_differs: true,
        unstable_inlining: true,
        jit_inlining: false,
        uneven_runs: false,
        source: "the standard library's crates; compared with profiles by pprof-rs",
    },
    Runtime {
        name: "jvm",
        detect: (r"^(java|javax|jdk|sun|scala|kotlin)[./]", 0.05),
        system: r"^(java|javax|jdk|sun|com[./]sun)[./]|^(JVM_|Unsafe_|_ZN|__)|^(InterpreterRuntime|StubRoutines|OptoRuntime|SharedRuntime)\b",
        background: r"^(G1|ZGC|Z[A-Z]\w+::|Shenandoah|Parallel\w*GC|GCTaskThread|WorkerThread|VM_|SafepointSynchronize|CompileBroker|C[12]Compiler|Monitor::|ObjectMonitor::)|jdk[./]internal[./]misc[./]Unsafe\.park$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(r"^(java|javax|jdk|sun|kotlin|scala|org[./](junit|gradle|apache|springframework|openjdk))[./]"),
        benchmark: Some(r"^org[./]openjdk[./]jmh[./]"),
        trim_library_leaves: true,
        inlining_differs: true,
        unstable_inlining: false,
        jit_inlining: true,
        uneven_runs: false,
        source: "OpenJDK's source tree; compared with recordings of its Flight Recorder, which show no collector",
    },
    Runtime {
        name: "v8",
        detect: (r"^\(program\)$|^\(idle\)$|^\(garbage collector\)$|^Garbage Collection$|\bnode:internal/", 0.0),
        system: r"^(\(program\)|\(idle\)|\(garbage collector\)|Garbage Collection|Node\.js|\(external\)|\(root\))$",
        background: r"^(\(garbage collector\)|Garbage Collection|\(idle\)|\(program\))$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(
            r"^(Module\.|node:|executeUserEntryPoint$|wrapModuleLoad$|processTicksAndRejections$)|\bnode:internal/",
        ),
        benchmark: None,
        trim_library_leaves: true,
        inlining_differs: true,
        unstable_inlining: false,
        jit_inlining: false,
        uneven_runs: true,
        source: "V8's profile generator (meta frames in parentheses); compared with profiles by pprof-nodejs",
    },
    Runtime {
        name: "python",
        detect: (r"^<module>$|^<frozen importlib|^_PyEval_|<(listcomp|lambda|genexpr)>$", 0.0),
        system: concat!(r"^(<frozen |_?Py[A-Z_]\w+|__libc_\w+|", starts_of_programs!(), ")"),
        background: r"^(gc_collect\w*|_?PyGC_\w+|take_gil|drop_gil|PyThread_acquire\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(
            r"^(<module>|<frozen .*|_?(call_with_frames_removed|find_and_load\w*|load_unlocked|exec_module|LoaderBasics\..*|SourceFileLoader\..*|handle_fromlist)|pytest\b.*)$",
        ),
        benchmark: Some(r"\bpytest_benchmark\b|^Timer\.(timeit|repeat)\b"),
        trim_library_leaves: true,
        inlining_differs: false,
        unstable_inlining: false,
        jit_inlining: false,
        uneven_runs: true,
        source: "CPython's source tree; untested: no CPU profiles of our own",
    },
    Runtime {
        name: "c++",
        detect: (r"::|^_Z|^operator (new|delete)", 0.1),
        system: concat!(
            r"^(std::|__gnu_cxx::|__|operator (new|delete)|(tc_|je_)?(malloc|free|calloc|realloc)$|mem(cpy|move|set|cmp|chr)|_int_(malloc|free)$|",
            starts_of_programs!(),
            ")"
        ),
        background: r"^(__lll_lock_\w+|futex\w*|pthread_(mutex|cond)_\w+|tcmalloc::(ThreadCache::Scavenge|CentralFreeList)\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(r"^(std|__gnu_cxx|boost|testing|benchmark)::"),
        benchmark: Some(r"^benchmark::"),
        trim_library_leaves: true,
        inlining_differs: true,
        unstable_inlining: false,
        jit_inlining: false,
        uneven_runs: false,
        source: "libstdc++, glibc and gperftools; compared with profiles by gperftools",
    },
    Runtime {
        name: "other",
        detect: ("", 0.0),
        system: concat!(r"^(__libc_\w+$|", starts_of_programs!(), ")"),
        background: r"^(futex\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: None,
        benchmark: None,
        trim_library_leaves: false,
        inlining_differs: false,
        unstable_inlining: false,
        jit_inlining: false,
        uneven_runs: false,
        source: "nothing is known but the C library",
    },
];

/// Compiles an expression of the table. An invalid expression matches nothing, and a test detects it. Names of runtimes
/// are ASCII, so the expression is restricted to ASCII: Unicode classes take most of the compile time.
fn compiled(expression: &str) -> Option<Regex> {
    let ascii = expression.replace(r"\w", "[0-9A-Za-z_]").replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)");
    Regex::new(&ascii).ok()
}

/// The expressions that detect a runtime, each compiled at its first use. Compiling a whole row takes longer.
static DETECT: [OnceLock<Option<Regex>>; RUNTIMES.len()] = [const { OnceLock::new() }; RUNTIMES.len()];

/// The other expressions of each row, each compiled at its first use: compiling them costs more than reading a small
/// profile.
static OTHERS: [[OnceLock<Option<Regex>>; 9]; RUNTIMES.len()] =
    [const { [const { OnceLock::new() }; 9] }; RUNTIMES.len()];

/// The properties of frames that a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// System frames and artefacts, which views leave out. The other properties are then false, and `program` only
    /// excludes system frames.
    LeftOut,
    /// All properties.
    All,
}

/// The paths of libraries: files of package managers and of installed languages.
const LIBRARIES: &str = r"(^|/)(site-packages|dist-packages|node_modules|vendor|pkg/mod|\.cargo/registry|rustc)/|@v\d|^node:|^<frozen |/lib/python3\.\d+/|/usr/(include|lib|share)/|/go/src/";

static IN_LIBRARIES: OnceLock<Option<Regex>> = OnceLock::new();

/// Returns true if the file belongs to a library.
pub fn is_library(file: &str) -> bool {
    IN_LIBRARIES.get_or_init(|| compiled(LIBRARIES)).as_ref().is_some_and(|libraries| libraries.is_match(file))
}

/// The properties of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Class {
    /// The frame belongs to the system, not to the program.
    pub system: bool,
    /// The cost of the frame reacts to causes elsewhere.
    pub background: bool,
    /// The frame, as a leaf, is an artefact of profiling.
    pub artefact: bool,
    /// The frame, as a leaf, waits for a lock of the runtime.
    pub own_waits: bool,
    /// The frame runs a benchmark.
    pub benchmark: bool,
    /// The frame collects garbage.
    pub collects: bool,
    /// The frame allocates memory that becomes garbage.
    pub allocates: bool,
    /// The frame belongs to the system and starts a program or thread.
    pub starts: bool,
    /// The frame may be the program's own code: it belongs neither to the system nor to the standard library.
    pub program: bool,
}

/// The user's additions to the table, for the program's own runtime.
#[derive(Default)]
pub struct UserRules {
    system: Vec<bytes::Regex>,
    background: Vec<bytes::Regex>,
}

impl std::fmt::Debug for UserRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserRules").finish_non_exhaustive()
    }
}

impl UserRules {
    /// Compiles the regular expressions of both lists.
    ///
    /// # Errors
    /// Fails on an invalid expression.
    pub fn new(system: &[String], background: &[String]) -> Result<UserRules> {
        let all = |option: &str, list: &[String]| list.iter().map(|re| compile(option, re)).collect::<Result<Vec<_>>>();
        Ok(UserRules { system: all("system", system)?, background: all("background", background)? })
    }
}

/// Detects the runtime of the names, and returns it with the properties of each name.
pub fn classify<S: AsRef<str> + Sync>(names: &[S], user: &UserRules, asked: Asked) -> (&'static Runtime, Vec<Class>) {
    let is_detected = |(runtime, detect): (&Runtime, &OnceLock<Option<Regex>>)| {
        let Some(detect) = detect.get_or_init(|| compiled(runtime.detect.0)) else { return false };
        let matches = names.iter().filter(|name| detect.is_match(name.as_ref())).count();
        matches > 0 && matches as f64 > runtime.detect.1 * names.len() as f64
    };
    let row = RUNTIMES.iter().zip(DETECT.iter()).position(is_detected).unwrap_or(RUNTIMES.len() - 1);
    let runtime = &RUNTIMES[row];
    let compile = |column: usize, expression: Option<&str>| {
        let compile_expression = || expression.and_then(compiled);
        let is_needed = asked == Asked::All || column < 2;
        if is_needed { OTHERS[row][column].get_or_init(compile_expression) } else { &None }
    };
    let (collects, allocates) = runtime.garbage.unzip();
    let (system, artefact) = (compile(0, Some(runtime.system)), compile(1, runtime.artefact));
    let (background, benchmark) = (compile(2, Some(runtime.background)), compile(3, runtime.benchmark));
    let (standard, own_waits) = (compile(4, runtime.standard), compile(5, runtime.own_waits));
    let (collects, allocates) = (compile(6, collects), compile(7, allocates));
    let starts = compile(8, Some(concat!(r"^(runtime\.goexit$|", starts_of_programs!(), ")")));
    let is = |regex: &Option<Regex>, name: &str| regex.as_ref().is_some_and(|regex| regex.is_match(name));
    let any = |user: &[bytes::Regex], name: &str| user.iter().any(|regex| regex.is_match(name.as_bytes()));
    let is_system = |name: &str| is(system, name) || any(&user.system, name);
    let class = |name: &str, system: bool| Class {
        system,
        background: is(background, name) || any(&user.background, name),
        artefact: is(artefact, name),
        own_waits: is(own_waits, name),
        benchmark: is(benchmark, name),
        collects: is(collects, name),
        allocates: is(allocates, name),
        starts: system && is(starts, name),
        program: !system && !is(standard, name),
    };
    let classes = names.iter().map(|name| class(name.as_ref(), is_system(name.as_ref())));
    (runtime, classes.collect())
}

/// Returns, for each name, whether it belongs to the language's runtime and not to the program.
pub fn are_system(names: &[String]) -> Vec<bool> {
    classify(names, &UserRules::default(), Asked::LeftOut).1.iter().map(|class| class.system).collect()
}

#[cfg(test)]
mod tests {
    use super::{Asked, RUNTIMES, UserRules, classify, compiled};

    #[test]
    fn every_row_compiles_and_states_its_source() {
        for row in &RUNTIMES {
            let expressions = [
                Some(row.detect.0),
                Some(row.system),
                Some(row.background),
                row.artefact,
                row.benchmark,
                row.standard,
                row.garbage.map(|pair| pair.0),
                row.garbage.map(|pair| pair.1),
            ];
            assert!(expressions.into_iter().flatten().all(|expression| compiled(expression).is_some()));
            assert!(row.source.contains("untested") || row.source.contains("compared") || row.name == "other");
        }
    }

    #[test]
    fn names_determine_the_runtime_and_the_class_of_a_frame() {
        let classes = |names: &[&str]| {
            let (runtime, classes) =
                classify(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), &UserRules::default(), Asked::All);
            let letter = |c: &super::Class| match (c.artefact, c.background, c.system) {
                (true, ..) => 'a',
                (_, true, _) => 'b',
                (_, _, true) => 's',
                _ => '.',
            };
            (runtime.name, classes.iter().map(letter).collect::<String>())
        };
        let go =
            ["main.main", "runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.asyncPreempt", "memeqbody", "x/y.F"];
        assert_eq!(classes(&go), ("go", ".sbas.".to_owned()));
        let rust = ["orders::price", "core::iter::next", "<T as alloc::vec::Spec>::f", "orders::main", "malloc"];
        assert_eq!(classes(&rust), ("rust", ".ss.s".to_owned()));
        assert_eq!(classes(&["handler", "(program)", "Garbage Collection"]), ("v8", ".bb".to_owned()));
        assert_eq!(classes(&["std::sort", "App::run", "operator new"]), ("c++", "s.s".to_owned()));
        assert_eq!(classes(&["<module>", "work", "take_gil"]).0, "python");
        assert_eq!(classes(&["java.util.HashMap.get", "com.acme.Shop.buy"]), ("jvm", "s.".to_owned()));
        assert_eq!(classes(&["a", "b"]), ("other", "..".to_owned()));
        let starts = ["(below main)", "__libc_start_main@@GLIBC_2.34", "_start", "start_thread", "clone3"];
        assert_eq!(classes(&[&starts[..], &["main"]].concat()), ("other", "sssss.".to_owned()));
        assert_eq!(classes(&[&starts[..], &["shop::main"]].concat()), ("c++", "sssss.".to_owned()));
        assert_eq!(classes(&[&starts[..], &["<module>"]].concat()), ("python", "sssss.".to_owned()));
        assert_eq!(classes(&[&starts[..], &["core::iter::next", "shop::main"]].concat()).1, "ssssss.");
    }
}
