//! Reads the commits of a range from `git log`, with their changes function by function. The log must contain whole
//! files as diff context. Moved, reformatted or commented code is no change.

use super::source::{Language, Lexeme, Outline, SourceFunction, call_lines, calls, essence, language, loops};
use pprofdiff_profile::random::{HashMap, HashSet};

/// The arguments of `git`, before the range. Each file is whole, so that the functions of both versions are visible.
pub const LOG_ARGS: [&str; 13] = [
    "-c",
    "core.quotePath=false",
    "log",
    "--no-merges",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=1000000",
    "--patch",
    "--format=%x00%H%x00%h%x00%s%x00",
];

/// The commits of a range, newest first.
#[derive(Debug, Default)]
pub struct History {
    pub(super) commits: Vec<CommitChanges>,
    /// The old and new names of files, newest first.
    pub(super) renames: Vec<(String, String)>,
}

/// The changes of a commit.
#[derive(Debug, Default)]
pub(super) struct CommitChanges {
    pub id: String,
    pub short: String,
    pub subject: String,
    pub functions: Vec<FunctionChange>,
    pub outside: Vec<OutsideChange>,
    pub dependencies: Vec<DependencyChange>,
    /// Functions with a new file or name: path and name before and after.
    pub moves: Vec<[(String, String); 2]>,
}

/// A function that a commit adds, removes or changes.
#[derive(Debug)]
pub(super) struct FunctionChange {
    pub path: String,
    pub name: String,
    pub owner: Option<String>,
    /// The first and the last changed line, starting at 1. If the commit only removed lines of the function, all lines
    /// of the function. For a removed function, its lines before the commit.
    pub lines: (u32, u32),
    pub added_calls: Vec<String>,
    /// The line of each added call, by its position in `added_calls`. `None` if the commit did not change a line with
    /// this call, for example because the call is on a line that it copied.
    pub added_lines: Vec<Option<u32>>,
    pub removed_calls: Vec<String>,
    /// True if the number of loops changed.
    pub has_loop: bool,
    /// True if only quoted texts changed.
    pub is_text: bool,
    /// The number of added and removed tokens.
    pub size: usize,
}

/// A change of a commit outside of functions.
#[derive(Debug)]
pub(super) struct OutsideChange {
    pub path: String,
    pub lines: (u32, u32),
    /// The names that the changed lines define.
    pub names: Vec<String>,
}

/// A dependency whose required version changed.
#[derive(Debug)]
pub(super) struct DependencyChange {
    pub path: String,
    pub name: String,
    pub line: u32,
}

/// A file before and after a commit.
#[derive(Default)]
struct Patch<'a> {
    old_path: Option<&'a str>,
    new_path: Option<&'a str>,
    /// The lines of both sides, each with a flag that is true if both sides have the line.
    sides: [Vec<(&'a str, bool)>; 2],
}

impl History {
    /// Parses the output of `git` with [`LOG_ARGS`]. Uncommitted changes may precede it as another commit.
    pub fn parse(text: &str) -> History {
        let mut history = History::default();
        let mut parts = text.split('\0').skip(1);
        while let (Some(id), Some(short), Some(subject), Some(patch)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        {
            history.push(id, short, subject, patch);
        }
        history
    }

    /// Adds an older commit from the output of `git diff`.
    pub fn push(&mut self, id: &str, short: &str, subject: &str, patch: &str) {
        let mut commit = CommitChanges {
            id: id.to_owned(),
            short: short.to_owned(),
            subject: subject.to_owned(),
            ..CommitChanges::default()
        };
        let patches = patches(patch);
        for patch in &patches {
            if let (Some(old), Some(new)) = (patch.old_path, patch.new_path)
                && old != new
            {
                self.renames.push((old.to_owned(), new.to_owned()));
            }
        }
        commit.read(&patches);
        self.commits.push(commit);
    }

    /// Returns true if the history contains zero commits.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// Returns the number of commits.
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Returns the history with newer commits before these.
    #[must_use]
    pub fn after(self, mut newer: History) -> History {
        newer.commits.extend(self.commits);
        newer.renames.extend(self.renames);
        newer
    }
}

fn patches(text: &str) -> Vec<Patch<'_>> {
    let mut all: Vec<Patch<'_>> = Vec::new();
    let mut is_hunk = false;
    for line in text.split('\n') {
        if line.starts_with("diff --git ") {
            all.push(Patch::default());
            is_hunk = false;
            continue;
        }
        let Some(patch) = all.last_mut() else { continue };
        if !is_hunk {
            let path_after = |side: &str, prefix: &str| line.strip_prefix(side).map(|path| path.strip_prefix(prefix));
            if let Some(path) = line.strip_prefix("rename from ") {
                patch.old_path = Some(path);
            } else if let Some(path) = line.strip_prefix("rename to ") {
                patch.new_path = Some(path);
            } else if let Some(path) = path_after("--- ", "a/") {
                patch.old_path = path.map(|path| path.trim_end_matches('\t'));
            } else if let Some(path) = path_after("+++ ", "b/") {
                patch.new_path = path.map(|path| path.trim_end_matches('\t'));
            }
        }
        if line.starts_with("@@ ") {
            is_hunk = true;
        } else if is_hunk && let Some(kind) = line.chars().next() {
            let text = line[kind.len_utf8()..].trim_end_matches('\r');
            match kind {
                ' ' => patch.sides.iter_mut().for_each(|side| side.push((text, true))),
                '-' => patch.sides[0].push((text, false)),
                '+' => patch.sides[1].push((text, false)),
                _ => {}
            }
        }
    }
    all
}

/// Returns the words that the new side has more often, and the words that the old side has more often.
fn differences<'a>(
    old: impl Iterator<Item = &'a str>,
    new: impl Iterator<Item = &'a str>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut counts: HashMap<&str, i64> = HashMap::default();
    old.for_each(|word| *counts.entry(word).or_default() -= 1);
    new.for_each(|word| *counts.entry(word).or_default() += 1);
    let repeated = |sign: i64| {
        let changed = counts.iter().filter(move |(_, n)| **n * sign > 0);
        let mut words: Vec<&str> = changed.flat_map(|(word, n)| (0..n.abs()).map(move |_| *word)).collect();
        words.sort_unstable();
        words
    };
    (repeated(1), repeated(-1))
}

/// Returns a function's tokens for comparison. The function's own name, new names of renamed functions, and new paths
/// of moved functions do not count.
fn body(
    function: &SourceFunction,
    side: usize,
    renamed: &HashMap<String, String>,
    moved: &HashSet<String>,
) -> Vec<String> {
    let tokens = essence(&function.tokens);
    let depth = tokens.first().and_then(|t| t.text.strip_prefix('\n')?.parse::<i64>().ok()).unwrap_or(0);
    let mut all: Vec<String> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let text = match token.text.strip_prefix('\n').and_then(|level| level.parse::<i64>().ok()) {
            Some(level) => format!("\n{}", level - depth),
            None if token.text == function.name => "\u{1}".to_owned(),
            None => match renamed.get(&token.text).filter(|_| side == 0) {
                Some(new) => new.clone(),
                None => token.text.clone(),
            },
        };
        if moved.contains(&text) {
            let is_path = |t: Option<&String>| t.is_some_and(|t| t == "." || t == ":");
            while is_path(all.last()) {
                all.pop();
                if !is_path(all.last()) {
                    all.pop();
                }
            }
        }
        all.push(text);
    }
    all
}

/// Returns true if the texts differ only by names, consistently renamed. Called names and members may not differ.
fn is_renaming(old: &[String], new: &[String]) -> bool {
    if old.len() != new.len() {
        return false;
    }
    let mut names: HashMap<&str, &str> = HashMap::default();
    let mut taken: HashMap<&str, &str> = HashMap::default();
    old.iter().zip(new).enumerate().all(|(i, (a, b))| {
        let is_name = |t: &str| t.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_called = |all: &[String]| all.get(i + 1).is_some_and(|t| t == "(");
        let is_member = i > 0 && old[i - 1] == ".";
        if !is_name(a) || !is_name(b) {
            return a == b;
        }
        if a != b && (is_called(old) || is_called(new) || is_member) {
            return false;
        }
        *names.entry(a).or_insert(b) == b && *taken.entry(b).or_insert(a) == a
    })
}

/// A function in a file of one side.
struct SideFunction<'a> {
    patch: usize,
    path: &'a str,
    function: &'a SourceFunction,
}

/// Returns the functions of one side's files.
fn functions_of<'a>(patches: &[Patch<'a>], outlines: &'a [[Outline; 2]], side: usize) -> Vec<SideFunction<'a>> {
    let mut all = Vec::new();
    for (number, (patch, outlines)) in patches.iter().zip(outlines).enumerate() {
        let path = [patch.old_path, patch.new_path][side].unwrap_or_default();
        let functions = outlines[side].functions.iter();
        all.extend(functions.map(|function| SideFunction { patch: number, path, function }));
    }
    all
}

/// Functions of both sides that belong together, as positions in the lists of their sides.
struct Matched {
    pairs: Vec<(usize, usize)>,
    /// The old functions without a new function.
    gone: Vec<usize>,
    /// For each new function, true if it has an old function.
    is_taken: Vec<bool>,
}

impl Matched {
    /// Matches functions with the same name in the same file.
    fn in_place(old: &[SideFunction<'_>], new: &[SideFunction<'_>]) -> Matched {
        let mut matched = Matched { pairs: Vec::new(), gone: Vec::new(), is_taken: vec![false; new.len()] };
        for (i, a) in old.iter().enumerate() {
            let same = |(j, b): &(usize, &SideFunction<'_>)| {
                !matched.is_taken[*j]
                    && b.patch == a.patch
                    && b.function.name == a.function.name
                    && b.function.owner == a.function.owner
            };
            match new.iter().enumerate().find(same).map(|(j, _)| j) {
                Some(j) => {
                    matched.is_taken[j] = true;
                    matched.pairs.push((i, j));
                }
                None => matched.gone.push(i),
            }
        }
        matched
    }

    /// Matches the remaining functions across files and names. A function with equal text elsewhere was moved or
    /// renamed. A function with an equal name elsewhere was moved and changed. Returns the additional pairs.
    fn elsewhere(&mut self, old: &[SideFunction<'_>], new: &[SideFunction<'_>]) -> Vec<(usize, usize)> {
        let nothing = NewNames::default();
        let mut moves = Vec::new();
        for by_text in [true, false] {
            self.gone.retain(|&i| {
                let a = &old[i].function;
                let body_a = by_text.then(|| body(a, 0, &nothing.renamed, &nothing.moved));
                let candidate = (0..new.len()).filter(|&j| !self.is_taken[j]).find(|&j| {
                    let b = &new[j].function;
                    match &body_a {
                        Some(body_a) => body_a.len() > 4 && *body_a == body(b, 1, &nothing.renamed, &nothing.moved),
                        None => a.name == b.name,
                    }
                });
                let Some(j) = candidate else { return true };
                self.is_taken[j] = true;
                moves.push((i, j));
                false
            });
        }
        self.pairs.extend(&moves);
        moves
    }

    /// Returns all functions: pairs, removed functions and added functions.
    fn all(&self) -> impl Iterator<Item = (Option<usize>, Option<usize>)> {
        let pairs = self.pairs.iter().map(|&(i, j)| (Some(i), Some(j)));
        let added = (0..self.is_taken.len()).filter(|&j| !self.is_taken[j]);
        pairs.chain(self.gone.iter().map(|&i| (Some(i), None))).chain(added.map(|j| (None, Some(j))))
    }
}

/// The functions that a commit moves or renames.
#[derive(Default)]
struct NewNames {
    /// The new name of each old name.
    renamed: HashMap<String, String>,
    /// The new names of all moved functions.
    moved: HashSet<String>,
}

/// Compares the versions of a function. Returns `None` if they differ only by names or layout.
fn function_change(
    patches: &[Patch<'_>],
    a: Option<&SideFunction<'_>>,
    b: Option<&SideFunction<'_>>,
    NewNames { renamed, moved }: &NewNames,
) -> Option<FunctionChange> {
    let body_a = a.map_or_else(Vec::new, |a| body(a.function, 0, renamed, moved));
    let body_b = b.map_or_else(Vec::new, |b| body(b.function, 1, renamed, moved));
    if body_a == body_b || a.is_some() && b.is_some() && is_renaming(&body_a, &body_b) {
        return None;
    }
    let shown = b.or(a)?;
    let tokens = |f: Option<&SideFunction<'_>>| f.map_or(&[] as &[Lexeme], |f| &f.function.tokens).to_vec();
    let (tokens_a, tokens_b) = (tokens(a), tokens(b));
    let current_name = |name: &str| renamed.get(name).cloned().unwrap_or_else(|| name.to_owned());
    let called_a: Vec<String> = calls(&tokens_a).map(current_name).collect();
    let (added, removed) = differences(called_a.iter().map(String::as_str), calls(&tokens_b));
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (added_calls, removed_calls) = (owned(added), owned(removed));
    let (came, went) = differences(body_a.iter().map(String::as_str), body_b.iter().map(String::as_str));
    let is_text = a.is_some() && b.is_some() && came.iter().chain(&went).all(|t| t.starts_with('"'));
    let is_text = is_text && came.len() + went.len() > 0;
    let side = usize::from(b.is_some());
    let changed = &patches[shown.patch].sides[side];
    let lines = shown.function.lines.clone();
    let is_changed = |line: &u32| changed.get(*line as usize).is_some_and(|(_, is_same)| !is_same);
    // If lines were only removed, the function's own lines are shown.
    let first = lines.clone().find(is_changed).unwrap_or(lines.start);
    let last = lines.clone().rev().find(is_changed).unwrap_or(lines.end.saturating_sub(1));
    // Numbered as after the commit, like `lines`.
    let line_of = |name: &String| {
        call_lines(&tokens_b)
            .filter(|(line, called)| called == name && is_changed(line))
            .map(|(line, _)| line + 1)
            .next()
    };
    let added_lines = added_calls.iter().map(line_of).collect();
    Some(FunctionChange {
        path: shown.path.to_owned(),
        name: shown.function.name.clone(),
        owner: shown.function.owner.clone(),
        lines: (first + 1, last + 1),
        added_calls,
        added_lines,
        removed_calls,
        has_loop: loops(&tokens_a) != loops(&tokens_b),
        is_text,
        size: came.len() + went.len(),
    })
}

impl CommitChanges {
    fn read(&mut self, patches: &[Patch<'_>]) {
        let outline = |patch: &Patch<'_>, side: usize, path: Option<&str>| {
            let text = || patch.sides[side].iter().map(|(line, _)| *line).collect::<Vec<_>>().join("\n");
            let language: Option<Language> = path.and_then(language);
            language.map_or_else(Outline::default, |language| Outline::new(&text(), language))
        };
        let outlines: Vec<[Outline; 2]> = patches
            .iter()
            .map(|patch| [outline(patch, 0, patch.old_path), outline(patch, 1, patch.new_path)])
            .collect();
        let (old, new) = (functions_of(patches, &outlines, 0), functions_of(patches, &outlines, 1));
        let mut matched = Matched::in_place(&old, &new);
        let mut names = NewNames::default();
        for (i, j) in matched.elsewhere(&old, &new) {
            let (a, b) = (&old[i], &new[j]);
            let location = |function: &SideFunction<'_>| (function.path.to_owned(), function.function.name.clone());
            self.moves.push([location(a), location(b)]);
            names.moved.insert(b.function.name.clone());
            if a.function.name != b.function.name {
                names.renamed.insert(a.function.name.clone(), b.function.name.clone());
            }
        }
        for (i, j) in matched.all() {
            self.functions.extend(function_change(patches, i.map(|i| &old[i]), j.map(|j| &new[j]), &names));
        }
        for (patch, [before, after]) in patches.iter().zip(&outlines) {
            self.outside(patch, before, after);
            self.dependencies.extend(dependencies(patch));
        }
    }

    /// Records changed lines outside of functions, such as constants and types, by the names that they define. Ignores
    /// imports, and files that the commit adds or removes.
    fn outside(&mut self, patch: &Patch<'_>, before: &Outline, after: &Outline) {
        let Some(path) = patch.new_path.or(patch.old_path) else { return };
        let [old, new] = [before, after].map(|outline| essence(&outline.outside));
        let texts = |tokens: &[&Lexeme]| tokens.iter().map(|t| t.text.clone()).collect::<Vec<_>>();
        if texts(&old) == texts(&new) || patch.old_path.is_none() || patch.new_path.is_none() {
            return;
        }
        let mut names: Vec<String> = Vec::new();
        let mut lines: Option<(u32, u32)> = None;
        for (side, tokens) in [(0usize, &old), (1, &new)] {
            for line in tokens.chunk_by(|a, b| a.line == b.line) {
                let Some(number) = line.first().map(|t| t.line) else { continue };
                let is_same = patch.sides[side].get(number as usize).is_none_or(|(_, is_same)| *is_same);
                let first = line.iter().find(|t| !t.text.starts_with('\n')).map_or("", |t| t.text.as_str());
                // Imports, including continued import lists.
                let is_import =
                    ["import", "use", "package", "from", "require"].contains(&first) || first.starts_with('"');
                if is_same || is_import {
                    continue;
                }
                let defines = |i: &usize| {
                    let next = line.get(i + 1).map_or("", |t| t.text.as_str());
                    // A word after a colon is a type.
                    let is_type = *i > 0 && line[i - 1].text == ":";
                    line[*i].is_name() && !is_type && (["=", ":"].contains(&next) || *i == 0)
                        || *i > 0 && ["const", "static", "define", "let", "var"].contains(&line[i - 1].text.as_str())
                };
                names.extend((0..line.len()).filter(defines).map(|i| line[i].text.clone()));
                if side == 1 {
                    lines = Some((lines.map_or(number, |l| l.0.min(number)), number));
                }
            }
        }
        if !names.is_empty() {
            let (first, last) = lines.unwrap_or((0, 0));
            self.outside.push(OutsideChange { path: path.to_owned(), lines: (first + 1, last + 1), names });
        }
    }
}

/// Returns the dependencies of a manifest whose required version changed: changed lines with a name and a version.
fn dependencies(patch: &Patch<'_>) -> Vec<DependencyChange> {
    let Some(path) = patch.new_path else { return Vec::new() };
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_requirements = file.starts_with("requirements") && file.ends_with(".txt");
    if !is_requirements
        && !["go.mod", "Cargo.toml", "Cargo.lock", "package.json", "pyproject.toml", "setup.cfg"].contains(&file)
    {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut locked = "";
    let separators: &[char] = &[' ', '=', '"', '\'', ',', ':', '<', '>', '~', '^', '[', ']', '{', '}', ';', '!', '\t'];
    for (number, (line, is_same)) in patch.sides[1].iter().enumerate() {
        let mut words = line.split(separators).filter(|word| !word.is_empty());
        let mut name = words.next().unwrap_or_default();
        if ["require", "replace", "version", "name"].contains(&name) && file != "requirements.txt" {
            let is_lock = file == "Cargo.lock";
            match (name, words.next()) {
                ("name", Some(value)) if is_lock => locked = value,
                ("version", _) if is_lock => name = locked,
                ("require" | "replace", Some(value)) => name = value,
                _ => continue,
            }
        }
        let has_version = line.contains(|c: char| c.is_ascii_digit());
        let is_name = name.len() > 1
            && !["//", "#", "module", "go", "toolchain", "edition", "source", "checksum"].contains(&name);
        if !is_same && has_version && is_name {
            changes.push(DependencyChange { path: path.to_owned(), name: name.to_owned(), line: number as u32 + 1 });
        }
    }
    changes
}
