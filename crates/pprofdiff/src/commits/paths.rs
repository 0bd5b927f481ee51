//! Which file of the repository a profile's file is, under all names that the file had, and what a function is called in
//! its source.

use super::history::History;
use pprofdiff_profile::random::HashMap;

/// Parts of paths of what is not the program's.
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

/// True if a profile's file belongs to a dependency.
pub(super) fn is_dependency(path: &str) -> bool {
    path.contains('@') || path.starts_with("node:") || DEPENDENCIES.iter().any(|part| path.contains(part))
}

/// The folder of a path.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The files of a repository: a number for all names that one had.
pub(super) struct Paths {
    numbers: HashMap<String, usize>,
    /// By the last part of a path, all paths that have it.
    by_name: HashMap<String, Vec<String>>,
}

impl Paths {
    pub(super) fn new(files: &[String], history: &History) -> Paths {
        let mut paths = Paths { numbers: HashMap::default(), by_name: HashMap::default() };
        files.iter().for_each(|path| paths.insert(path));
        // The newest first, so that the name before has the number of the one after.
        for (old, new) in &history.renames {
            paths.insert(new);
            let number = paths.numbers[new];
            paths.insert(old);
            paths.numbers.insert(old.clone(), number);
        }
        for commit in &history.commits {
            let of_functions = commit.functions.iter().map(|change| &change.path);
            of_functions.chain(commit.outside.iter().map(|change| &change.path)).for_each(|path| paths.insert(path));
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

    /// The number of a file of the repository.
    pub(super) fn number(&self, path: &str) -> Option<usize> {
        self.numbers.get(path).copied()
    }

    /// The files that a profile's may be: of those that its path ends with, or that end with it, the longest.
    pub(super) fn resolve(&self, of_profile: &str) -> Vec<&str> {
        let path = of_profile.replace('\\', "/");
        let path = path.strip_prefix("file://").unwrap_or(&path).trim_start_matches("./");
        if is_dependency(path) {
            return Vec::new();
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_end = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let fits = |known: &&String| is_end(path, known) || is_end(known, path);
        let known = self.by_name.get(name).into_iter().flatten().filter(fits);
        let shared = |known: &&String| known.len().min(path.len());
        let longest = known.clone().map(|known| shared(&known)).max().unwrap_or(0);
        known.filter(|known| shared(known) == longest).map(String::as_str).collect()
    }
}

/// The parts of a profile's name for a function, as its source has them: without packages' paths, types, arguments, and what
/// compilers add. The last one is the function's own name.
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
            // Arguments end the name, but for a receiver's parentheses.
            '(' if is_path && angles == 0 && !plain.is_empty() => break,
            '(' | ')' | '*' => {}
            // `<T as Trait>::method`, of which the type is the owner.
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
    let is_made = |part: &str| {
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
    let kept = split.into_iter().filter(|part| !is_made(part));
    kept.map(|part| part.trim_end_matches("-fm").split("-range").next().unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::{Paths, parts};

    #[test]
    fn names_of_functions_are_those_of_their_sources() {
        for (name, wanted) in [
            ("logmill/names.compare", "names compare"),
            ("github.com/a/yaml.v3.(*parser).parse.func1", "yaml v3 parser parse"),
            ("main.Map[go.shape.int].func2.1", "main Map"),
            ("shop::cart::Cart<T>::total::{{closure}}", "shop cart Cart total"),
            ("<shop::Cart as core::fmt::Display>::fmt", "fmt"),
            ("ns::Shop::pay(int, std::string)", "ns Shop pay"),
            ("shop::run::h0123456789abcdef", "shop run"),
            ("Shop.pay", "Shop pay"),
            ("validate", "validate"),
            ("(anonymous)", ""),
        ] {
            assert_eq!(parts(name).join(" "), wanted, "{name}");
        }
    }

    #[test]
    fn files_of_profiles_are_found_by_the_end_of_their_paths() {
        let files = ["main.go", "shop/email.go", "other/email.go"].map(str::to_owned);
        let paths = Paths::new(&files, &History::default());
        for (of_profile, wanted) in [
            ("/build/7/shop/email.go", &["shop/email.go"][..]),
            ("acme/shop/email.go", &["shop/email.go"]),
            ("email.go", &["shop/email.go", "other/email.go"]),
            ("/root/go/pkg/mod/x/y@v1/main.go", &[]),
            ("/build/main.go", &["main.go"]),
            ("none.go", &[]),
        ] {
            assert_eq!(paths.resolve(of_profile), wanted, "{of_profile}");
        }
    }
}
