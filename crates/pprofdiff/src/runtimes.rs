//! What is known of runtimes, as data: a row a language. Which frames are the system's and not the program's, which of
//! them only answer to causes elsewhere (garbage collection, scheduling, locks), and which are artefacts of profiling.
//!
//! Nothing else knows a language: `explain`, `check` and `runs` ask here.

use std::sync::OnceLock;

use regex::{Regex, bytes};

use crate::Result;
use crate::diff::compile;

/// What is known of one language's runtime. Expressions match anywhere in a frame's name.
pub(crate) struct Runtime {
    /// What it is called in results.
    pub name: &'static str,
    /// Names that only it has, and the least share of the distinct names that they make up in its profiles.
    detect: (&'static str, f64),
    /// Frames that are no candidates for a cause: what the program does is done by its caller.
    system: &'static str,
    /// Frames whose cost answers to causes elsewhere, and differs most between equal runs.
    background: &'static str,
    /// Leaf frames that profiling itself puts there: its caller was running.
    artefact: Option<&'static str>,
    /// Frames that collect garbage, and frames that allocate what it is made of: both are known, or neither.
    garbage: Option<(&'static str, &'static str)>,
    /// Leaf frames of waits that are for the runtime's own locks.
    own_waits: Option<&'static str>,
    /// Frames of the standard library and of what runs programs: no code of the reader's.
    standard: Option<&'static str>,
    /// Frames of what runs benchmarks: it chooses how often, so the amount of work may be any.
    benchmark: Option<&'static str>,
    /// Stacks end at the program's last frame: which of several inlined library frames a sample hits is chance.
    pub trim_library_leaves: bool,
    /// Which of several inlined frames a profile shows differs even between runs of one binary.
    pub unstable_inlining: bool,
    /// A compiler decides while the program runs what it inlines, so runs of one build show different frames at the leaf.
    pub jit_inlining: bool,
    /// Where what the row says is from, and whether profiles of ours were compared with it.
    pub source: &'static str,
}

/// The first whose names are there counts; the last has no names of its own.
static RUNTIMES: [Runtime; 7] = [
    Runtime {
        name: "go",
        detect: (r"^(runtime|main|internal|sync)[./]", 0.05),
        system: r"^(runtime[./]|internal/(runtime|abi|cpu|bytealg|sync|race)\b|sync\.|sync/atomic|type:|memeqbody$|cmpbody$|aeshashbody$|memclr\w*$|memmove$|gcWriteBarrier\d?$|indexbytebody$|countbody$|callRet$|_rt0|_cgo)",
        background: r"^(runtime\.(gcAssistAlloc\d?|gcBgMarkWorker|gcStart|gcMarkDone|bgsweep|bgscavenge|wbBufFlush\d?|gcWriteBarrier\d?|gcmarknewobject|bulkBarrierPreWrite|deductAssistCredit|deductSweepCredit|futex\w*|lock2|unlock2|procyield\w*|osyield\w*|usleep\w*|findRunnable|schedule|park_m|mcall|semasleep|notesleep|semacquire1?|semrelease1?|madvise|sysUnused\w*)|(internal/)?sync\.\(\*Mutex\)\.(lockSlow|unlockSlow)|gcWriteBarrier\d?)$",
        // A signal that asks a goroutine to yield; on a loaded machine up to a third of all samples end there.
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
        unstable_inlining: false,
        jit_inlining: false,
        source: "Go's runtime package (mgc.go, proc.go, preempt.go); compared with profiles of Go programs",
    },
    Runtime {
        name: "rust",
        detect: (
            r"^<?(core|alloc)::|^<?std::(rt|sys|panicking|io|collections)::|::h[0-9a-f]{16}$|::\{\{closure\}\}|\{closure#\d+\}",
            0.02,
        ),
        system: r"^(<.* as (core|alloc|std)::|<?&?(mut )?(core|alloc|std|hashbrown|compiler_builtins)::|<?&?(u|i|f)(8|16|32|64|128|size)>|<\[|<\(|__|_?je_|mem(cpy|move|set|chr)|[a-z_]+$)",
        background: r"^(__lll_lock_\w+|futex\w*|_?je_arena_(decay|purge)\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(r"^<?(core|alloc|std|tokio|rayon|rayon_core|criterion|test)::"),
        benchmark: Some(r"^<?(criterion|divan|test::bench)::"),
        trim_library_leaves: true,
        unstable_inlining: true,
        jit_inlining: false,
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
        unstable_inlining: false,
        jit_inlining: true,
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
        unstable_inlining: false,
        jit_inlining: false,
        source: "V8's profile generator (meta frames in parentheses); compared with profiles by pprof-nodejs",
    },
    Runtime {
        name: "python",
        detect: (r"^<module>$|^<frozen importlib|^_PyEval_|<(listcomp|lambda|genexpr)>$", 0.0),
        system: r"^(<frozen |_?Py[A-Z_]\w+|__libc_\w+|_start$|clone3?$|start_thread$)",
        background: r"^(gc_collect\w*|_?PyGC_\w+|take_gil|drop_gil|PyThread_acquire\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(
            r"^(<module>|<frozen .*|_?(call_with_frames_removed|find_and_load\w*|load_unlocked|exec_module|LoaderBasics\..*|SourceFileLoader\..*|handle_fromlist)|pytest\b.*)$",
        ),
        benchmark: Some(r"\bpytest_benchmark\b|^Timer\.(timeit|repeat)\b"),
        trim_library_leaves: true,
        unstable_inlining: false,
        jit_inlining: false,
        source: "CPython's source tree; untested: no CPU profiles of our own",
    },
    Runtime {
        name: "c++",
        detect: (r"::|^_Z|^operator (new|delete)", 0.1),
        system: r"^(std::|__gnu_cxx::|__|_start$|operator (new|delete)|(tc_|je_)?(malloc|free|calloc|realloc)$|mem(cpy|move|set|cmp|chr)|clone3?$|start_thread$|_int_(malloc|free)$)",
        background: r"^(__lll_lock_\w+|futex\w*|pthread_(mutex|cond)_\w+|tcmalloc::(ThreadCache::Scavenge|CentralFreeList)\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: Some(r"^(std|__gnu_cxx|boost|testing|benchmark)::"),
        benchmark: Some(r"^benchmark::"),
        trim_library_leaves: true,
        unstable_inlining: false,
        jit_inlining: false,
        source: "libstdc++, glibc and gperftools; compared with profiles by gperftools",
    },
    Runtime {
        name: "other",
        detect: ("", 0.0),
        system: r"^(__libc_\w+|_start|clone3?|start_thread)$",
        background: r"^(futex\w*)$",
        artefact: None,
        garbage: None,
        own_waits: None,
        standard: None,
        benchmark: None,
        trim_library_leaves: false,
        unstable_inlining: false,
        jit_inlining: false,
        source: "nothing is known but the C library",
    },
];

/// An expression of the table. One that is invalid matches nothing, which a test sees. Names of runtimes are ASCII, and the
/// letters of all scripts take most of the time to compile.
fn compiled(expression: &str) -> Option<Regex> {
    let ascii = expression.replace(r"\w", "[0-9A-Za-z_]").replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)");
    Regex::new(&ascii).ok()
}

/// The expressions by which runtimes are told apart, each once it is needed; those of a whole row take longer to compile.
static DETECT: [OnceLock<Option<Regex>>; RUNTIMES.len()] = [const { OnceLock::new() }; RUNTIMES.len()];

/// The other expressions of each row, each once it is needed: compiling them costs more than to look at a small profile.
static OTHERS: [[OnceLock<Option<Regex>>; 8]; RUNTIMES.len()] =
    [const { [const { OnceLock::new() }; 8] }; RUNTIMES.len()];

/// What is asked of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Which are the system's, or artefacts: what views leave out.
    LeftOut,
    /// All that is known.
    All,
}

/// Where libraries lie: files of package managers and of installed languages.
const LIBRARIES: &str = r"(^|/)(site-packages|dist-packages|node_modules|vendor|pkg/mod|\.cargo/registry|rustc)/|@v\d|^node:|^<frozen |/lib/python3\.\d+/|/usr/(include|lib|share)/|/go/src/";

static IN_LIBRARIES: OnceLock<Option<Regex>> = OnceLock::new();

/// True of a file that is of a library.
pub(crate) fn is_library(file: &str) -> bool {
    IN_LIBRARIES.get_or_init(|| compiled(LIBRARIES)).as_ref().is_some_and(|libraries| libraries.is_match(file))
}

/// What a frame is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// The system's and not the program's.
    pub system: bool,
    /// Its cost answers to causes elsewhere.
    pub background: bool,
    /// As a leaf it is an artefact of profiling.
    pub artefact: bool,
    /// As a leaf it waits for a lock of the runtime's own.
    pub own_waits: bool,
    /// It runs a benchmark.
    pub benchmark: bool,
    /// It collects garbage.
    pub collects: bool,
    /// It allocates what becomes garbage.
    pub allocates: bool,
    /// It may be the program's own code: it is neither the system's nor of the standard library.
    pub program: bool,
}

/// What a user says of the program's own runtime, besides the table.
#[derive(Default)]
pub(crate) struct UserRules {
    system: Vec<bytes::Regex>,
    background: Vec<bytes::Regex>,
}

impl UserRules {
    pub(crate) fn new(system: &[String], background: &[String]) -> Result<UserRules> {
        let all = |what: &str, list: &[String]| list.iter().map(|re| compile(what, re)).collect::<Result<Vec<_>>>();
        Ok(UserRules { system: all("system", system)?, background: all("background", background)? })
    }
}

/// The table `explain` of a `pprofdiff.toml`. Other tables are for others.
#[cfg(feature = "check")]
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub system: Vec<String>,
    pub background: Vec<String>,
}

#[cfg(feature = "check")]
impl Settings {
    pub(crate) fn from_toml(text: &str) -> Result<Settings> {
        #[derive(serde::Deserialize)]
        struct File {
            #[serde(default)]
            explain: Settings,
        }
        crate::check::toml::<File>(text).map(|file| file.explain)
    }
}

/// The runtime that names belong to, and what each of them is.
pub(crate) fn classify<S: AsRef<str> + Sync>(
    names: &[S],
    own: &UserRules,
    asked: Asked,
) -> (&'static Runtime, Vec<Class>) {
    let is_of = |(runtime, detect): (&Runtime, &OnceLock<Option<Regex>>)| {
        let Some(detect) = detect.get_or_init(|| compiled(runtime.detect.0)) else { return false };
        let found = names.iter().filter(|name| detect.is_match(name.as_ref())).count();
        found > 0 && found as f64 > runtime.detect.1 * names.len() as f64
    };
    let of = RUNTIMES.iter().zip(DETECT.iter()).position(is_of).unwrap_or(RUNTIMES.len() - 1);
    let runtime = &RUNTIMES[of];
    let compile = |at: usize, expression: Option<&str>| {
        let of_row = || expression.and_then(compiled);
        let is_asked = asked == Asked::All || at < 2;
        if is_asked { OTHERS[of][at].get_or_init(of_row) } else { &None }
    };
    let (collects, allocates) = runtime.garbage.unzip();
    let (system, artefact) = (compile(0, Some(runtime.system)), compile(1, runtime.artefact));
    let (background, benchmark) = (compile(2, Some(runtime.background)), compile(3, runtime.benchmark));
    let (standard, own_waits) = (compile(4, runtime.standard), compile(5, runtime.own_waits));
    let (collects, allocates) = (compile(6, collects), compile(7, allocates));
    let is = |regex: &Option<Regex>, name: &str| regex.as_ref().is_some_and(|regex| regex.is_match(name));
    let any = |own: &[bytes::Regex], name: &str| own.iter().any(|regex| regex.is_match(name.as_bytes()));
    let is_system = |name: &str| is(system, name) || any(&own.system, name);
    let class = |name: &str| Class {
        system: is_system(name),
        background: is(background, name) || any(&own.background, name),
        artefact: is(artefact, name),
        own_waits: is(own_waits, name),
        benchmark: is(benchmark, name),
        collects: is(collects, name),
        allocates: is(allocates, name),
        program: !is_system(name) && !is(standard, name),
    };
    (runtime, names.iter().map(|name| class(name.as_ref())).collect())
}

/// Of each name, whether it is of the language's runtime and not the program's.
pub fn are_system(names: &[String]) -> Vec<bool> {
    classify(names, &UserRules::default(), Asked::LeftOut).1.iter().map(|class| class.system).collect()
}

#[cfg(test)]
mod tests {
    use super::{Asked, RUNTIMES, UserRules, classify, compiled};

    #[test]
    fn every_row_is_valid_and_says_its_source() {
        for row in &RUNTIMES {
            let expressions = [
                Some(row.detect.0),
                Some(row.system),
                Some(row.background),
                row.artefact,
                row.benchmark,
                row.standard,
                row.garbage.map(|of| of.0),
                row.garbage.map(|of| of.1),
            ];
            assert!(expressions.into_iter().flatten().all(|expression| compiled(expression).is_some()));
            assert!(row.source.contains("untested") || row.source.contains("compared") || row.name == "other");
        }
    }

    #[test]
    fn names_tell_the_language_and_what_a_frame_is() {
        let classes = |names: &[&str]| {
            let (runtime, classes) =
                classify(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), &UserRules::default(), Asked::All);
            let of = |c: &super::Class| match (c.artefact, c.background, c.system) {
                (true, ..) => 'a',
                (_, true, _) => 'b',
                (_, _, true) => 's',
                _ => '.',
            };
            (runtime.name, classes.iter().map(of).collect::<String>())
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
    }
}
