//! Maps a profile's file to the file of the repository, under all names that the file had, and a profile's function
//! name to the name in its source.

use super::history::History;
use pprofdiff_profile::random::HashMap;

/// Path fragments of files that belong to dependencies, not to the program.
const DEPENDENCIES: [&str; 12] = [
    "/pkg/mod/",
    "/vendor/",
    "node_modules/",
    "site-packages/",
    "dist-packages/",
    ".cargo/registry/",
    ".cargo/git/",
    "/rustc/",
    "/rustlib/",
    "/usr/lib/",
    "/usr/local/go/src/",
    "/usr/include/",
];

/// Returns true if a profile's file belongs to a dependency.
pub(super) fn is_dependency(path: &str) -> bool {
    path.contains('@') || path.starts_with("node:") || DEPENDENCIES.iter().any(|part| path.contains(part))
}

/// Returns the folder of a path.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The files of a repository. All names that a file had share one number.
pub(super) struct RepositoryPaths {
    numbers: HashMap<String, usize>,
    /// All paths that end in a file name, by that name.
    by_name: HashMap<String, Vec<String>>,
}

impl RepositoryPaths {
    pub(super) fn new(files: &[String], history: &History) -> RepositoryPaths {
        let mut paths = RepositoryPaths { numbers: HashMap::default(), by_name: HashMap::default() };
        files.iter().for_each(|path| paths.insert(path));
        // Renames are in order from newest to oldest, so an old name gets the number of the name after it.
        for (old, new) in &history.renames {
            paths.insert(new);
            let number = paths.numbers[new];
            paths.insert(old);
            paths.numbers.insert(old.clone(), number);
        }
        for commit in &history.commits {
            let function_paths = commit.functions.iter().map(|change| &change.path);
            function_paths.chain(commit.outside.iter().map(|change| &change.path)).for_each(|path| paths.insert(path));
            commit.moves.iter().flatten().for_each(|(path, _)| paths.insert(path));
        }
        paths
    }

    fn insert(&mut self, path: &str) {
        let next = self.numbers.len();
        if self.numbers.contains_key(path) {
            return;
        }
        self.numbers.insert(path.to_owned(), next);
        let name = path.rsplit('/').next().unwrap_or(path);
        self.by_name.entry(name.to_owned()).or_default().push(path.to_owned());
    }

    /// Returns the number of a file of the repository.
    pub(super) fn number(&self, path: &str) -> Option<usize> {
        self.numbers.get(path).copied()
    }

    /// Returns the files that a profile's path may refer to: files whose path ends with the profile's path, or is its
    /// suffix. The longest suffix wins; several files may share it. Returns no files for a path of a dependency.
    pub(super) fn resolve(&self, profile_path: &str) -> Vec<&str> {
        let path = profile_path.replace('\\', "/");
        let path = path.strip_prefix("file://").unwrap_or(&path).trim_start_matches("./");
        if is_dependency(path) {
            return Vec::new();
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_end = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let fits = |candidate: &&String| is_end(path, candidate) || is_end(candidate, path);
        let candidate = self.by_name.get(name).into_iter().flatten().filter(fits);
        let shared = |candidate: &&String| candidate.len().min(path.len());
        let longest = candidate.clone().map(|candidate| shared(&candidate)).max().unwrap_or(0);
        candidate.filter(|candidate| shared(candidate) == longest).map(String::as_str).collect()
    }
}

/// Returns the parts of a profile's function name as its source spells them: without package paths, types, arguments
/// and compiler suffixes. The last part is the name of the function itself.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut plain = String::with_capacity(name.len());
    let (mut angles, mut brackets) = (0i32, 0i32);
    let is_path = name.contains("::");
    for c in name.chars() {
        match c {
            '<' if is_path => angles += 1,
            '>' if is_path && !plain.ends_with('-') => angles -= 1,
            '[' => brackets += 1,
            ']' => brackets -= 1,
            // Arguments end the name. Parentheses at the start enclose a receiver.
            '(' if is_path && angles == 0 && !plain.is_empty() => break,
            '(' | ')' | '*' => {}
            // In `<T as Trait>::method`, the angle brackets and their contents are dropped.
            _ if angles > 0 || brackets > 0 => {}
            c => plain.push(c),
        }
    }
    let split: Vec<&str> = match is_path {
        true => plain.split("::").collect(),
        false => {
            let plain = plain.split(' ').next().unwrap_or_default();
            plain.rsplit('/').next().unwrap_or(plain).split('.').collect()
        }
    };
    let is_hash =
        |part: &str| part.len() == 17 && part[1..].bytes().all(|b| b.is_ascii_hexdigit()) && part.starts_with('h');
    let is_generated = |part: &str| {
        let numbered = |prefix: &str| {
            part.strip_prefix(prefix).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        };
        part.is_empty()
            || part.starts_with('{')
            || ["", "func", "gowrap", "deferwrap"].into_iter().any(numbered)
            || part == "anonymous"
            || part == "locals"
            || is_hash(part)
    };
    // GCC and LLVM append `.constprop.0`, `.isra.0`, `.part.0` or `.llvm.123` to the names of changed copies.
    let is_copy = |i: usize| {
        ["constprop", "isra", "part", "lto_priv", "llvm"].contains(&split[i])
            && split.get(i + 1).is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let end = (1..split.len()).find(|&i| is_copy(i)).unwrap_or(split.len());
    let kept = split[..end].iter().copied().filter(|part| !is_generated(part));
    kept.map(|part| part.trim_end_matches("-fm").split("-range").next().unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::{RepositoryPaths, parts};

    #[test]
    fn profile_names_map_to_source_names() {
        for (name, expected) in [
            ("logmill/names.compare", "names compare"),
            ("github.com/a/yaml.v3.(*parser).parse.func1", "yaml v3 parser parse"),
            ("main.Map[go.shape.int].func2.1", "main Map"),
            ("shop::cart::Cart<T>::total::{{closure}}", "shop cart Cart total"),
            ("<shop::Cart as core::fmt::Display>::fmt", "fmt"),
            ("ns::Shop::pay(int, std::string)", "ns Shop pay"),
            ("shop::run::h0123456789abcdef", "shop run"),
            ("Shop.pay", "Shop pay"),
            ("validate", "validate"),
            ("price.constprop.0", "price"),
            ("price.isra.0.part.1", "price"),
            ("main.part", "main part"),
            ("(anonymous)", ""),
        ] {
            assert_eq!(parts(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn profile_files_are_found_by_the_end_of_their_paths() {
        let files = ["main.go", "shop/email.go", "other/email.go"].map(str::to_owned);
        let paths = RepositoryPaths::new(&files, &History::default());
        for (profile_path, expected) in [
            ("/build/7/shop/email.go", &["shop/email.go"][..]),
            ("acme/shop/email.go", &["shop/email.go"]),
            ("email.go", &["shop/email.go", "other/email.go"]),
            ("/root/go/pkg/mod/x/y@v1/main.go", &[]),
            ("/build/main.go", &["main.go"]),
            ("none.go", &[]),
        ] {
            assert_eq!(paths.resolve(profile_path), expected, "{profile_path}");
        }
    }
}
