//! Checks the rules of ARCHITECTURE.md that a test can check, and that files and tests named in the documents exist.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files below a directory that have one of the endings, with their text.
fn files(dir: &str, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "node_modules", "__pycache__"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    assert!(!files.is_empty(), "nothing in {dir}");
    files
}

/// Returns the module of a file: `crate::diff::walk` for `src/diff/walk.rs`.
fn module_of(path: &Path) -> Vec<String> {
    let text = path.with_extension("").to_string_lossy().replace('\\', "/");
    let inside = text.rsplit_once("/src/").map_or("", |(_, inside)| inside);
    let parts = inside.split('/').filter(|part| !["mod", "lib", "main"].contains(part));
    std::iter::once("crate").chain(parts).map(str::to_owned).collect()
}

/// Resolves `super::` and `self::`, so that the path starts at the crate's root.
fn absolute(path: &str, module: &[String]) -> String {
    let (mut module_path, mut rest) = (module.to_vec(), path);
    if !rest.starts_with("super::") && !rest.starts_with("self::") {
        return path.to_owned();
    }
    rest = rest.strip_prefix("self::").unwrap_or(rest);
    while let Some(above) = rest.strip_prefix("super::") {
        module_path.pop();
        rest = above;
    }
    format!("{}::{rest}", module_path.join("::"))
}

/// Collects each path of a `use` tree, with its name in the file.
fn collect_imports(tree: &str, before: &str, imports: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    if let (Some(open), Some(close)) = (tree.find('{'), tree.rfind('}')) {
        let (mut depth, mut start, inner) = (0, 0, &tree[open + 1..close]);
        let before = format!("{before}{}", &tree[..open]);
        for (offset, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    collect_imports(&inner[start..offset], &before, imports);
                    start = offset + 1;
                }
                _ => {}
            }
        }
    } else if !tree.is_empty() {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap()));
        let path = if path == "self" { before.trim_end_matches("::").to_owned() } else { format!("{before}{path}") };
        let name = if name == "self" { path.rsplit("::").next().unwrap() } else { name };
        imports.push((path.clone(), name.trim().to_owned()));
    }
}

/// Returns all paths in the code of a file, from the crate's root: its imports, and other paths with imported names
/// resolved.
fn paths_of(path: &Path, text: &str) -> Vec<String> {
    let module = module_of(path);
    let lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut imports = Vec::new();
    let is_import = |line: &str| {
        let line = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
        line.starts_with("use ")
    };
    let mut lines = code.lines().map(str::trim);
    while let Some(line) = lines.by_ref().find(|line| is_import(line)) {
        let mut statement = line.to_owned();
        while !statement.ends_with(';') {
            statement.extend([" ", lines.next().unwrap()]);
        }
        let (_, tree) = statement.trim_end_matches(';').split_once("use ").unwrap();
        collect_imports(tree, "", &mut imports);
    }
    let imports: Vec<(String, String)> =
        imports.into_iter().map(|(path, name)| (absolute(&path, &module), name)).collect();
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named = code.split(|c: char| !is_of_path(c)).filter(|word| word.contains("::")).map(|word| {
        let (first, rest) = word.split_once("::").unwrap();
        match imports.iter().find(|(_, name)| name == first) {
            Some((path, _)) => format!("{path}::{rest}"),
            None => absolute(word, &module),
        }
    });
    let named: Vec<String> = named.collect();
    imports.into_iter().map(|(path, _)| path).chain(named).collect()
}

#[test]
fn all_forms_of_imports_are_parsed() {
    let text = "use super::{a::{self, B as C}, d};\npub(crate) use std::thread as t;\nuse self::e::*;\n// use crate::no;\n\
                fn f() { t::spawn(C::new()); super::g(); }\n";
    let paths = paths_of(Path::new("crates/x/src/one/two.rs"), text);
    for path in
        ["crate::one::a", "crate::one::a::B", "crate::one::d", "std::thread", "crate::one::two::e::*", "crate::one::g"]
    {
        assert!(paths.iter().any(|p| p == path), "{path}: {paths:?}");
    }
    assert!(paths.contains(&"std::thread::spawn".to_owned()) && paths.contains(&"crate::one::a::B::new".to_owned()));
    assert!(!paths.iter().any(|p| p.contains("no")), "{paths:?}");
}

/// Cargo separates the crates. This test covers the modules within a crate, and dependencies that a crate must not use.
#[test]
fn modules_depend_in_one_direction() {
    let forbidden: &[(&str, &[&str])] = &[
        ("crates/pprofdiff-profile/src/profile", &["crate::delta"]),
        ("crates/pprofdiff-profile/src/delta", &["crate::profile::wire"]),
        ("crates/pprofdiff-formats/src/kit", &["crate::table", "crate::load"]),
        ("crates/pprofdiff/src/diff", &["crate::batch", "crate::check", "crate::input::server"]),
        ("crates/pprofdiff/src/check", &["crate::batch"]),
        ("crates/pprofdiff-series/src/store", &["crate::builder", "crate::shifts", "crate::change_points"]),
        ("crates/pprofdiff-profile/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-symbols/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-formats/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-explain/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-series/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-commits/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-report/src", &["std::thread::spawn", "std::thread::scope"]),
        ("crates/pprofdiff-report/src/format", &["crate::registry", "crate::view"]),
        ("crates/pprofdiff-page/src", &["std::thread::spawn", "std::thread::scope"]),
        // The command contains no algorithms, so it needs no collections.
        ("crates/pprofdiff-cli/src", &["std::collections"]),
        // The crates below the command know no arguments.
        ("crates/pprofdiff-bench/src", &["clap"]),
        ("crates/pprofdiff-mcp/src", &["std::collections"]),
        ("crates/pprofdiff-remote/src", &["clap", "std::collections"]),
        ("crates/pprofdiff-shell/src", &["clap", "std::collections"]),
    ];
    for (dir, words) in forbidden {
        for (path, text) in files(dir, &[".rs"]) {
            let paths = paths_of(&path, &text);
            for word in *words {
                let is_below =
                    |p: &String| p.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
                assert!(!paths.iter().any(is_below), "{} must not use {word}", path.display());
            }
        }
    }
}

/// The modules of the report crate in the order of their layers. A module imports only modules before it.
const REPORT_MODULES: [(&str, &[&str]); 7] = [
    (
        "helpers",
        &["palette", "names", "numbers", "layout", "tokens", "text", "style", "json", "markdown", "html", "similar"],
    ),
    ("tables", &["table", "shown", "rows"]),
    (
        "documents",
        &[
            "series",
            "fragment",
            "callgraph",
            "timelines",
            "chart",
            "explain",
            "check",
            "listing",
            "raw",
            "traces",
            "ranking",
            "histories",
            "document",
        ],
    ),
    ("reports", &["report"]),
    ("answers", &["view", "request"]),
    ("formats", &["shows", "format"]),
    ("frontends", &["budget", "next_step", "registry", "refusals", "schema"]),
];

/// Imports against the order, with the reason.
const REPORT_EXCEPTIONS: [(&str, &str, &str); 1] =
    [("table", "view", "a stored table names its kind, and views define kinds")];

#[test]
fn modules_of_the_report_import_in_one_direction() {
    let order: Vec<&str> = REPORT_MODULES.iter().flat_map(|(_, modules)| *modules).copied().collect();
    let mut exceptions: BTreeSet<&(&str, &str, &str)> = BTreeSet::new();
    let mut n_imports = 0;
    for (path, text) in files("crates/pprofdiff-report/src", &[".rs"]) {
        let module = module_of(&path);
        let Some(from) = module.get(1).filter(|_| !path.ends_with("tests.rs")) else { continue };
        let place = order.iter().position(|module| module == from);
        let place = place.unwrap_or_else(|| panic!("REPORT_MODULES does not list {from}"));
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let code = code.split("#[cfg(test)]\npub(crate) mod ").next().unwrap();
        for imported in paths_of(&path, code) {
            let Some(to) = imported.strip_prefix("crate::").and_then(|rest| rest.split("::").next()) else { continue };
            let Some(imported_place) = order.iter().position(|module| *module == to) else { continue };
            n_imports += 1;
            if imported_place > place {
                let exception = REPORT_EXCEPTIONS.iter().find(|(a, b, _)| a == from && *b == to);
                assert!(exception.is_some(), "{} must not use {imported}", path.display());
                exceptions.extend(exception);
            }
        }
    }
    assert!(n_imports > 200, "only {n_imports} imports");
    assert_eq!(exceptions.len(), REPORT_EXCEPTIONS.len(), "an exception is no longer needed");
}

#[test]
fn every_file_starts_with_a_module_comment() {
    for dir in ["crates", "tests", "python"] {
        for (path, text) in files(dir, &[".rs", ".py", ".pyi"]) {
            let first = text.lines().find(|l| !l.starts_with("#!")).unwrap_or_default();
            let opens = first.starts_with("//!")
                || first.starts_with("//")
                || first.starts_with("\"\"\"")
                || first.starts_with('#');
            assert!(opens, "{} does not say what it is for", path.display());
        }
    }
}

/// A reader finds the only definition of a type by its name. Excluded are the messages of profile.proto, the Python
/// classes, which have the names that users type, and the error alias `Result`. Twins for different platforms are
/// defined in one file and count once.
#[test]
fn type_names_are_unique() {
    let mut definitions: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for (path, text) in files("crates", &[".rs"]) {
        let is_excluded =
            path.ends_with("profile/proto.rs") || path.starts_with(root().join("crates/pprofdiff-python"));
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests") || path.iter().any(|part| part == "tests");
        if is_excluded || is_test {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for line in code.lines().filter(|line| !line.starts_with(' ')) {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let keyword = words.iter().position(|word| ["struct", "enum", "trait", "type"].contains(word));
            let Some(name) = keyword.filter(|_| !line.starts_with(['/', '#', '"'])).and_then(|k| words.get(k + 1))
            else {
                continue;
            };
            if name.starts_with(char::is_uppercase) && *name != "Result" {
                definitions.entry((*name).to_owned()).or_default().insert(path.clone());
            }
        }
    }
    assert!(definitions.len() > 300, "only {} types", definitions.len());
    let repeated: Vec<_> = definitions.iter().filter(|(_, paths)| paths.len() > 1).collect();
    assert!(repeated.is_empty(), "types with the same name: {repeated:#?}");
}

/// `#[non_exhaustive]` options can get new fields without breaking callers. `LoadOptions` is excluded, because
/// constants are built from it.
#[test]
fn options_are_non_exhaustive() {
    let is_options = |line: &str| line.starts_with("pub struct ") && line.ends_with("Options {");
    let mut n_types = 0;
    let dirs =
        ["profile", "formats", "explain", "series", "commits"].map(|name| format!("crates/pprofdiff-{name}/src"));
    for dir in dirs.iter().map(String::as_str).chain(["crates/pprofdiff/src"]) {
        for (path, text) in files(dir, &[".rs"]) {
            let lines = text.lines().zip(text.lines().skip(1));
            for (before, line) in lines.filter(|(_, l)| is_options(l) && !l.contains("LoadOptions")) {
                assert_eq!(before, "#[non_exhaustive]", "{}: {line}", path.display());
                n_types += 1;
            }
        }
    }
    assert!(n_types >= 5, "only {n_types} kinds of options");
}

#[test]
fn one_module_has_unsafe_code() {
    for (path, text) in
        files("crates", &[".rs"]).into_iter().filter(|(path, _)| !path.ends_with("profile/libdeflate.rs"))
    {
        assert!(!text.contains("unsafe {") && !text.contains("unsafe fn"), "{}", path.display());
    }
}

/// Without a secret key, anyone can compute colliding inputs (tests/flooding.rs). The list names hashers without a key.
#[test]
fn hashers_are_keyed() {
    for (path, text) in files("crates", &[".rs"]) {
        for word in ["FixedState", "BuildHasherDefault", "FxHash", "fnv::", "DefaultHasher::new"] {
            assert!(!text.contains(word), "{}: {word} has no key", path.display());
        }
    }
}

/// In wasm, only `random.rs` provides secret keys. Those of the standard library and of foldhash are predictable there.
#[test]
fn hashers_take_their_keys_from_one_place() {
    let names = ["profile", "symbols", "formats", "explain", "series", "commits", "store", "report", "page"];
    let dirs = names.map(|name| format!("crates/pprofdiff-{name}/src"));
    for dir in dirs.iter().map(String::as_str).chain(["crates/pprofdiff/src"]) {
        for (path, text) in files(dir, &[".rs"]).into_iter().filter(|(path, _)| !path.ends_with("random.rs")) {
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            // Includes groups of imports: everything from `std::collections::` to the end of the statement.
            let taken_from = |place: &str, names: &[&str]| {
                code.split(place).skip(1).any(|rest| {
                    let rest = rest.split(['\n', ';']).next().unwrap();
                    names.iter().any(|name| rest.contains(name))
                })
            };
            let maps = taken_from("std::collections::", &["HashMap", "HashSet", "hash_map::RandomState"]);
            let states = taken_from("std::hash::", &["RandomState", "DefaultHasher"]) || code.contains("foldhash::");
            assert!(!maps && !states, "{}: hashers and their maps are those of random.rs", path.display());
        }
    }
}

/// The wheel for the tests reuses the crates that the Rust tests compiled, provided that all features are the same.
/// Otherwise the crates are compiled again, which takes two minutes and is otherwise unnoticed.
#[test]
fn the_wheel_reuses_the_crates_compiled_for_the_tests() {
    let features = |edges: &str, packages: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["tree", "--locked", "--offline", "--prefix", "none", "--no-dedupe", "--format", "{p} {f}"]);
        let out = command.args(["--edges", edges]).args(packages).current_dir(root()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let tests = features("normal,build,dev", &["--workspace", "--exclude", "pprofdiff-benches"]);
    let wheel = features("normal,build", &["--package", "pprofdiff-python", "--features", "as-tests"]);
    let others: Vec<_> = wheel.difference(&tests).filter(|line| !line.starts_with("pprofdiff-python ")).collect();
    assert!(
        wheel.len() > 100 && others.is_empty(),
        "the feature as-tests does not turn on what the tests do: {others:?}"
    );
}

/// The wheel's command has every feature of the command that cargo installs, and so all of its crates.
#[test]
fn the_wheel_has_the_whole_command() {
    let crates = |package: &str, features: &str, name: &str| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["tree", "--locked", "--offline", "--prefix", "none", "--no-dedupe", "--edges", "normal"]);
        let out = command.args(["--package", package, "--format", name]).args(features.split_whitespace());
        let out = out.current_dir(root()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let command_line = |lines: BTreeSet<String>| {
        let features = lines.into_iter().find(|line| line.starts_with("pprofdiff-cli ")).unwrap();
        assert!(features.contains("mcp"), "{features}");
        features
    };
    let installed = command_line(crates("pprofdiff-cli", "", "{p} {f}"));
    assert_eq!(command_line(crates("pprofdiff-python", "", "{p} {f}")), installed, "without the tests' features");
    assert_eq!(command_line(crates("pprofdiff-python", "--features as-tests", "{p} {f}")), installed);
    let (wheel, command) = (crates("pprofdiff-python", "", "{p}"), crates("pprofdiff-cli", "", "{p}"));
    assert_eq!(command.difference(&wheel).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Returns the documents with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let top = top.filter(|path| path.extension().is_some_and(|e| e == "md"));
    let mut documents: Vec<_> = top.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    for page in ["evals/README.md", "tests/README.md", "release/README.md", "skills/pprofdiff/SKILL.md"] {
        let path = root().join(page);
        documents.push((path.clone(), std::fs::read_to_string(path).unwrap()));
    }
    documents.extend(files("docs", &[".md"]));
    documents.extend(files("benches", &[".md"]));
    documents
}

/// Returns the text between backticks, outside code blocks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2))
}

#[test]
fn documents_name_files_and_tests_that_exist() {
    let sources: Vec<String> =
        files("crates", &[".rs"]).into_iter().chain(files("tests", &[".rs", ".py"])).map(|(_, text)| text).collect();
    let mut named = 0;
    for (path, text) in documents() {
        let paths = ["crates/", "tests/", "docs/", "benches/", "python/"];
        for word in code_words(&text).filter(|w| !w.contains([' ', '*'])) {
            if paths.iter().any(|start| word.starts_with(start)) {
                assert!(root().join(word).exists(), "{}: there is no {word}", path.display());
                named += 1;
            }
            // Only test names have this many underscores here.
            let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_name && word.matches('_').count() >= 3 {
                let defined = [format!("fn {word}("), format!("def {word}(")];
                let exists = sources.iter().any(|s| defined.iter().any(|d| s.contains(d.as_str())));
                assert!(exists, "{}: there is no test {word}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 50, "only {named} files and tests are named");
}
