//! Rules for the generated parts of function names: hashes, addresses, counters, and release folders. Compilers,
//! runtimes and profilers add such parts. All readers that cut such parts and all code that matches names use this
//! table.
//!
//! The [`Variants`] of a rule determine who applies it. A random number ([`Variants::Random`]) never distinguishes
//! functions, so [`stable`] removes it, and comparisons of runs match functions by stable names unless the user chooses
//! otherwise. The other rules are less certain. [`canonical_of`] and [`canonical`] apply them too, for example in the
//! search for causes, in the comparison of fleets, and if the user chooses to match canonical names.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Regex};

use crate::demangle::{Demangle, symbol};

/// The relation between names that share a canonical name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variants {
    /// Different functions. If both builds have a function with the full name, it is the same function in both.
    Own,
    /// Functions that are numbered in source order. Their numbers only correspond if both builds have the same
    /// functions.
    Numbered,
    /// A single function with several names, such as a part that the compiler moved out.
    One,
    /// A single function whose names differ by a number that changes with each run or build.
    Random,
}

/// The replacement for a match.
enum Replacement {
    /// A text. `$1` stands for the first capture group.
    Text(&'static str),
    /// The same path with a capital drive letter and slashes.
    WindowsPath,
}

use Replacement::{Text, WindowsPath};

/// A rule that replaces parts of names, with examples.
struct NameRule {
    variants: Variants,
    /// Lists of literal texts. The pattern is only tried on names that contain all texts of at least one list, because
    /// searching for literals is much cheaper.
    has: &'static [&'static [&'static str]],
    pattern: &'static str,
    with: Replacement,
    /// Names before and after the replacement.
    #[cfg_attr(not(test), expect(dead_code, reason = "documentation, which a test checks"))]
    examples: &'static [(&'static str, &'static str)],
}

/// The rules, in the order of their application.
static RULES: &[NameRule] = &[
    // The hash of the module that a function came from, which is the last suffix.
    NameRule {
        variants: Variants::Random,
        has: &[&[".llvm."]],
        pattern: r"\.llvm\.\d+",
        with: Text(""),
        examples: &[("orders::price::h0123456789abcdef.llvm.1234567", "orders::price")],
    },
    NameRule {
        variants: Variants::Random,
        has: &[&["::h"]],
        pattern: r"::h[0-9a-f]{16}(\.|$)",
        with: Text("$1"),
        examples: &[("orders::price::h0123456789abcdef", "orders::price")],
    },
    // The hash that distinguishes crates with equal names. Demanglers write it unless they shorten names.
    NameRule {
        variants: Variants::Random,
        has: &[&["]::"]],
        pattern: r"([A-Za-z0-9_])\[[0-9a-f]{8,16}\]::",
        with: Text("$1::"),
        examples: &[
            ("shop[a1b2c3d4e5f60718]::tax", "shop::tax"),
            ("<alloc[26d71db9ae44d532]::vec::Vec<u8>>::push", "<alloc::vec::Vec<u8>>::push"),
        ],
    },
    // Hidden classes of a JVM contain their address, and before Java 15 also a number. The separator is a dot in
    // async-profiler, and a plus or a slash in the JVM.
    NameRule {
        variants: Variants::Random,
        has: &[&["0x", "$"]],
        pattern: r"[+/.]0x[0-9a-f]{6,16}(/\d+)?",
        with: Text(""),
        examples: &[
            (
                "java/lang/invoke/LambdaForm$DMH/0x0000000800c0c400.invokeStatic",
                "java/lang/invoke/LambdaForm$DMH.invokeStatic",
            ),
            ("java.lang.invoke.LambdaForm$MH.0x00007feba8001440.invoke", "java.lang.invoke.LambdaForm$MH.invoke"),
            ("java/lang/invoke/LambdaForm$MH+0x00007f2f7000a400/12", "java/lang/invoke/LambdaForm$MH"),
        ],
    },
    NameRule {
        variants: Variants::Random,
        has: &[&["$$Lambda"], &["LambdaForm$"]],
        pattern: r"(\$\$Lambda|LambdaForm\$[A-Z]+)(\$\d+)?(/\d+)?",
        with: Text("$1"),
        examples: &[
            ("com.acme.Shop$$Lambda$14/0x0000000800c03000.apply", "com.acme.Shop$$Lambda.apply"),
            ("Shop$$Lambda$6.0x00007feba8001440.run", "Shop$$Lambda.run"),
            ("Press$$Lambda$87+0x00007f2f70007a08/1572098393", "Press$$Lambda"),
            ("a/B$$Lambda/0x00007f2f70007a08", "a/B$$Lambda"),
            ("a/B$$Lambda$3/1418481495.get", "a/B$$Lambda.get"),
            ("java/lang/invoke/LambdaForm$DMH/1418481495.invokeStatic", "java/lang/invoke/LambdaForm$DMH.invokeStatic"),
        ],
    },
    // Generated classes. A run numbers them in the order of their first use.
    NameRule {
        variants: Variants::Random,
        has: &[&["Accessor"], &["$Proxy"]],
        pattern: r"(MethodAccessor|ConstructorAccessor|\$Proxy)\d+",
        with: Text("$1"),
        examples: &[
            (
                "jdk/internal/reflect/GeneratedMethodAccessor12.invoke",
                "jdk/internal/reflect/GeneratedMethodAccessor.invoke",
            ),
            ("sun.reflect.GeneratedConstructorAccessor3", "sun.reflect.GeneratedConstructorAccessor"),
            ("jdk.proxy2.$Proxy7.find", "jdk.proxy2.$Proxy.find"),
        ],
    },
    // Classes that libraries generate, with a hash or a random word.
    NameRule {
        variants: Variants::Random,
        has: &[&["CGLIB$$"], &["$HibernateProxy$"], &["$ByteBuddy$"], &["$MockitoMock$"]],
        pattern: r"(By\w*CGLIB)\$\$[0-9a-f]+|(\$(?:HibernateProxy|ByteBuddy|MockitoMock))\$\w+",
        with: Text("$1$2"),
        examples: &[
            ("app/Service$$EnhancerBySpringCGLIB$$1a2b3c4d.call", "app/Service$$EnhancerBySpringCGLIB.call"),
            ("a.B$$FastClassByCGLIB$$9f8e7d6c.invoke", "a.B$$FastClassByCGLIB.invoke"),
            ("a.B$HibernateProxy$lOx3Gqgt.name", "a.B$HibernateProxy.name"),
        ],
    },
    // Deployment folders, whose names are times, counters or commits.
    NameRule {
        variants: Variants::Random,
        has: &[&["/releases/"]],
        pattern: r"/releases/(?:\d[\d_.-]*|[0-9a-f]{7,40})/",
        with: Text("/releases/"),
        examples: &[("{closure:/srv/releases/20240101120000/src/f.php:12}", "{closure:/srv/releases/src/f.php}")],
    },
    // Addresses of Python objects in the text form of functions.
    NameRule {
        variants: Variants::Random,
        has: &[&[" at 0x"]],
        pattern: r" at 0x[0-9a-fA-F]{4,16}\b",
        with: Text(""),
        examples: &[("<function f at 0x7f3a2c0d1e50>", "<function f>")],
    },
    // Libraries that a program unpacks into a temporary file, and files whose names contain a process ID.
    NameRule {
        variants: Variants::Random,
        has: &[&[".so"], &[".dylib"], &[".jnilib"], &[".dll"], &[".tmp"], &["perf-"]],
        pattern: r"-?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{9,}(\.(?:so|dylib|jnilib|dll|tmp)\b)|(\bperf)-\d+(\.map\b)",
        with: Text("$1$2$3"),
        examples: &[
            ("[libnetty_epoll_12345678901234567.so]", "[libnetty_epoll_.so]"),
            ("[snappy-1.1.8-0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f-libsnappyjava.so]", "[snappy-1.1.8-libsnappyjava.so]"),
            ("[perf-4242.map]", "[perf.map]"),
            ("libfoo-20240101.so", "libfoo-20240101.so"),
        ],
    },
    // Profilers write the path of a file with a lower or upper case drive letter, and with `\` or `/`. At the start of
    // a name, a letter before `:/` may be a function (`f:/app/page.js`).
    NameRule {
        variants: Variants::Random,
        has: &[&[":\\"], &[":/"]],
        pattern: r#"(?:\b[A-Za-z]:\\|[\s(/][A-Za-z]:/)[^:*?"<>|()]*"#,
        with: WindowsPath,
        examples: &[
            (r"render c:\work\app\render.js", "render C:/work/app/render.js"),
            ("render C:/work/app/render.js", "render C:/work/app/render.js"),
            (r"f (file:///d:\a.js)", "f (file:///D:/a.js)"),
            ("https://a.example/b.js", "https://a.example/b.js"),
            ("f:/app/page.ts", "f:/app/page.ts"),
        ],
    },
    NameRule {
        variants: Variants::One,
        has: &[&[".cold"], &[".part"], &[".constprop"], &[".isra"], &[".llvm"]],
        pattern: r"(\.(cold|part|constprop|isra|llvm)(\.\d+)*)+$",
        with: Text(""),
        examples: &[("parse.part.0.constprop.1", "parse")],
    },
    // Go's text profiles, and all its profiles before Go 1.21, write `[...]` for any type arguments.
    NameRule {
        variants: Variants::Own,
        has: &[&["/", "["], &["[go.shape."], &["[..."]],
        pattern: r"\[[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*\]",
        with: Text("[...]"),
        examples: &[
            ("x/lru.(*Cache[go.shape.int,x/y.T[int]]).Get", "x/lru.(*Cache[...]).Get"),
            ("main.Map[go.shape.int]", "main.Map[...]"),
            ("main.Map[...]", "main.Map[...]"),
            ("x/y.F[int].G[string]", "x/y.F[...].G[...]"),
            ("Row::operator[]", "Row::operator[]"),
            ("<[T]>::sort", "<[T]>::sort"),
        ],
    },
    NameRule {
        variants: Variants::One,
        has: &[&["{{closure}}"]],
        pattern: r"(::\{\{closure\}\})+$",
        with: Text(""),
        examples: &[("orders::price::{{closure}}::{{closure}}", "orders::price")],
    },
    NameRule {
        variants: Variants::Numbered,
        has: &[&["{closure#"]],
        pattern: r"\{closure#\d+\}",
        with: Text("{closure#}"),
        examples: &[("a::{closure#2}", "a::{closure#}")],
    },
    NameRule {
        variants: Variants::Numbered,
        has: &[&[".func"]],
        pattern: r"\.func\d+((\.\d+)*|-range\d+)",
        with: Text(".func#"),
        examples: &[("main.run.func3.1", "main.run.func#"), ("a.function1", "a.function1")],
    },
    // PHP names a closure after the line where it begins.
    NameRule {
        variants: Variants::Own,
        has: &[&["{closure:"]],
        pattern: r"(\{closure:[^{}]*?):\d+(-\d+)?\}",
        with: Text("$1}"),
        examples: &[("{closure:App\\Shop::tax():12}", "{closure:App\\Shop::tax()}")],
    },
    NameRule {
        variants: Variants::Own,
        has: &[&[".js:"], &[".mjs:"], &[".cjs:"]],
        pattern: r"(\.[cm]?js):\d+(:\d+)?$",
        with: Text("$1"),
        examples: &[("render:/app/page.js:12:7", "render:/app/page.js"), ("f:/a/b.mjs:12", "f:/a/b.mjs")],
    },
    // The name that pprof-nodejs gives to anonymous functions.
    NameRule {
        variants: Variants::Own,
        has: &[&["(anonymous:L#"]],
        pattern: r"\(anonymous:L#\d+:C#\d+\)$",
        with: Text("(anonymous)"),
        examples: &[("(anonymous:L#70:C#30)", "(anonymous)")],
    },
];

/// The compiled patterns of the rules. Each pattern is compiled when a name first needs it. An invalid pattern replaces
/// nothing, and a test would fail.
static COMPILED: [OnceLock<Option<Regex>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];

/// By rule: the bytes that every name needs for the rule, as a set of [`bytes_of`].
static BYTES: [u64; RULES.len()] = {
    let (mut all, mut rule) = ([0; RULES.len()], 0);
    while rule < RULES.len() {
        let (mut common, mut list) = (u64::MAX, 0);
        while list < RULES[rule].has.len() {
            let (mut needed, mut part) = (0, 0);
            while part < RULES[rule].has[list].len() {
                needed |= bytes_of(RULES[rule].has[list][part]);
                part += 1;
            }
            common &= needed;
            list += 1;
        }
        all[rule] = common;
        rule += 1;
    }
    all
};

/// Returns the set of bytes of a text: a bit for each value of the lower six bits.
const fn bytes_of(text: &str) -> u64 {
    let (bytes, mut set, mut i) = (text.as_bytes(), 0, 0);
    while i < bytes.len() {
        set |= 1 << (bytes[i] & 63);
        i += 1;
    }
    set
}

/// A name and its canonical forms.
#[derive(Debug)]
pub struct Canonical<'a> {
    /// The name without numbers that change with each run or build. Two equal stable names always mean the same
    /// function.
    pub stable: Cow<'a, str>,
    /// The name without any of the parts that the rules replace.
    pub name: Cow<'a, str>,
    /// The relation between stable names that share this canonical name.
    pub variants: Variants,
}

/// Returns the stable name: the name without numbers that change with each run or build.
pub fn stable(name: &str) -> Cow<'_, str> {
    // A mangled Rust name contains a hash of its crate.
    let name = symbol(name.as_bytes(), Demangle::Default).map_or(Cow::Borrowed(name), Cow::Owned);
    replaced(name, |variants| variants == Variants::Random).0
}

/// Returns the canonical name: the name without any of the parts that the rules replace.
pub fn canonical(name: &str) -> Cow<'_, str> {
    canonical_of(name).name
}

/// Returns the stable and canonical forms of a name.
pub fn canonical_of(name: &str) -> Canonical<'_> {
    let stable = stable(name);
    let (name, variants) = replaced(stable.clone(), |variants| variants != Variants::Random);
    Canonical { stable, name, variants }
}

/// Applies the rules whose variants satisfy `applies`. Returns the name, and the greatest variants of the rules that
/// changed it ([`Variants::Own`] if none did).
fn replaced(mut name: Cow<'_, str>, applies: impl Fn(Variants) -> bool) -> (Cow<'_, str>, Variants) {
    let mut variants = Variants::Own;
    // Most names lack a byte of each rule, and looking that up is cheaper than searching for texts.
    let mut bytes = bytes_of(&name);
    for ((rule, regex), needed) in
        RULES.iter().zip(&COMPILED).zip(&BYTES).filter(|((rule, _), _)| applies(rule.variants))
    {
        if needed & !bytes != 0 || !rule.has.iter().any(|all| all.iter().all(|part| name.contains(part))) {
            continue;
        }
        let Some(regex) = regex.get_or_init(|| Regex::new(rule.pattern).ok()) else { continue };
        let replaced = match rule.with {
            Text(text) => regex.replace_all(&name, text),
            WindowsPath => regex.replace_all(&name, |captures: &Captures<'_>| with_slashes(&captures[0])),
        };
        // If nothing of the name would remain, ignore the match: the whole name looks like a generated part (`.cold`).
        if !replaced.is_empty() && replaced != name {
            name = Cow::Owned(replaced.into_owned());
            bytes = bytes_of(&name);
            variants = variants.max(rule.variants);
        }
    }
    (name, variants)
}

/// Returns a Windows path with an upper case drive letter and forward slashes.
fn with_slashes(path: &str) -> String {
    let (drive, rest) = path.split_at(path.find(':').unwrap_or_default());
    drive.to_uppercase() + &rest.replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::{RULES, Variants, canonical, stable};

    #[test]
    fn each_rule_matches_its_examples() {
        for rule in RULES {
            for &(before, after) in rule.examples {
                assert_eq!(canonical(before), after, "{before}");
            }
            // Exactly the `Random` rules have examples that `stable` changes.
            let random = rule.examples.iter().filter(|(before, _)| stable(before) != *before).count();
            assert_eq!(random > 0, rule.variants == Variants::Random, "{}", rule.pattern);
        }
    }

    #[test]
    fn names_without_generated_parts_stay_unchanged() {
        for name in [
            "main.(*T).M",
            "f",
            ".cold",
            "std::vector<int>::push_back",
            "core::slice::<impl [T]>::len",
            "a/Base64.encode",
            "a/Outer$1.run",
            "symbol+0x1f",
            "app[12]::f",
            "C::f",
        ] {
            assert_eq!(canonical(name), name);
        }
    }

    #[test]
    fn stable_names_omit_only_random_numbers() {
        for name in ["main.run.func3", "parse.part.0", "main.Map[go.shape.int]", "a::{{closure}}", "f:/a/b.js:1:2"] {
            assert_eq!(stable(name), name);
            assert_ne!(canonical(name), name);
        }
    }
}
