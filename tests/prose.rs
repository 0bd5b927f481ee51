//! The English of comments, documentation, help and messages. The test counts the sentences that contain a construction
//! which native technical writers avoid, such as "What is left of them" as a subject, and compares the rate of each crate
//! and page with its limit in `tests/prose.txt`.
//!
//! Limits may only fall. After an improvement, lower them with `UPDATE_GOLDENS=1`, which never raises a limit and adds
//! limits for new crates and pages. The number is a hint, not the goal: a plain sentence that matches is fine, and a
//! sentence that avoids all patterns can still be hard to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Constructions to avoid, with the reason in the words of an editor.
const CONSTRUCTIONS: [(&str, &str); 8] = [
    (
        "a clause as subject: name the thing",
        r"^(?:What(?:ever)?|Who(?:ever)?|Where|Whether|How (?:far|long|many|much|often))\b.*[^?]$",
    ),
    (
        "a preposition before which, whom, whose or what: make two sentences",
        r"\b(?:above|at|below|by|for|from|in|of|on|to|under|with) (?:what|which|whom|whose)\b",
    ),
    (
        "an opening with Of, As or So: start with the subject",
        r"^(?:As|Beside|Besides|Likewise|Of|So) (?:a|all|an|before|each|its|it|many|much|one|several|the|them|two|what|which)\b",
    ),
    (
        "a vague passive: say who does it",
        r"\b(?:are|be|is|was|were) (?:answered|asked|called for|looked at|looked up in|made of|put away|said|spoken|taken for|told)\b",
    ),
    (
        "a missing thing as object: say what happens instead",
        r"\b(?:asks|gives|has|have|knows|leaves|needs|says|starts|takes) (?:no|none|nothing)\b|\b(?:is|are) (?:none|nothing)\b",
    ),
    (
        "a quantity without its noun: repeat the noun",
        r"\b(?:as many|as much|as those|such as that|so clearly|so many|so much|so often|that of|those of)\b",
    ),
    ("a preposition at the end: move it before its noun", r"\b(?:at|by|for|from|in|of|on|to|with) ?[.;:]$"),
    (
        "a pronoun for a thing: repeat the name",
        r"\b(?:one that|ones|that which|the one|the other|the others|those that)\b",
    ),
];
/// Crates and pages with fewer sentences have no limit of their own: one sentence would decide.
const MIN_SENTENCES: usize = 20;
/// The number of sentences that a failure prints for each crate or page.
const EXAMPLES: usize = 8;

/// String literals.
static LITERAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(?s)"((?:[^"\\]|\\.)*)""#).unwrap());
/// Line breaks, escapes and placeholders in a string literal.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\n\s*|\\n|\{[^}]*\}").unwrap());
/// The start of a list item in Markdown.
static ITEM: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*(?:[-*]|\d+\.) ").unwrap());
/// Code in a sentence.
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`]*`").unwrap());
/// A link in Markdown.
static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap());
/// The end of a sentence and the start of the next one.
static END: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"[.!?;:] ["(]?[A-Z]"#).unwrap());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects files with one of the endings below a folder.
fn files(folder: &Path, endings: &[&str], paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !["target", "gallery", "corpus"].contains(&name.as_str()) {
            files(&path, endings, paths);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            paths.push(path);
        }
    }
}

/// Joins the text of consecutive lines of comments to blocks. `comment` returns the text of a line's comment.
fn comment_blocks(text: &str, comment: impl Fn(&str) -> Option<&str>) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        match comment(line.trim_start()).map(str::trim) {
            Some(words) if !words.is_empty() => {
                let block = blocks.last_mut().unwrap();
                block.push(' ');
                block.push_str(words);
            }
            _ => blocks.push(String::new()),
        }
    }
    blocks
}

/// The comments, and the string literals with at least five words, of a file in Rust before its unit tests.
fn rust_blocks(text: &str) -> Vec<String> {
    let comment =
        |line: &'_ str| ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned);
    let mut blocks = comment_blocks(text, |line| ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)));
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = code.lines().filter(|line| comment(line.trim_start()).is_none()).collect::<Vec<_>>().join("\n");
    for literal in LITERAL.captures_iter(&code) {
        let words = ESCAPE.replace_all(&literal[1], |piece: &regex::Captures| match &piece[0] {
            "\\n" => ". ".to_owned(),
            piece if piece.starts_with('{') => "X".to_owned(),
            _ => String::new(),
        });
        if words.split_whitespace().count() >= 5 {
            blocks.push(words.into_owned());
        }
    }
    blocks
}

/// The comments and docstrings of a file in Python.
fn python_blocks(text: &str) -> Vec<String> {
    let mut blocks = comment_blocks(text, |line| line.strip_prefix('#'));
    blocks.extend(text.split("\"\"\"").skip(1).step_by(2).flat_map(|doc| doc.split("\n\n")).map(str::to_owned));
    blocks
}

/// The paragraphs and list items of a page without code, tables, headings and HTML.
fn markdown_blocks(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect::<Vec<_>>().join("\n\n");
    let kept = |line: &str| !["|", "#", "<", "    "].iter().any(|mark| line.starts_with(mark));
    let lines = prose.lines().map(|line| if kept(line) || line.trim_start().starts_with("- ") { line } else { "" });
    let separated: String =
        lines.map(|line| if ITEM.is_match(line) { format!("\n{line}\n") } else { format!("{line}\n") }).collect();
    separated.split("\n\n").map(str::to_owned).collect()
}

/// Splits a block into sentences with at least four words, with code and links' targets removed.
fn sentences(block: &str) -> Vec<String> {
    let text = LINK.replace_all(block, "$1");
    let text = CODE.replace_all(&text, "X");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut starts = vec![0];
    starts.extend(END.find_iter(&text).map(|end| end.start() + 1));
    starts.push(text.len());
    let sentences = starts.windows(2).map(|pair| text[pair[0]..pair[1]].trim().trim_matches(['*', '_', '-']).trim());
    let is_sentence = |text: &&str| text.split(' ').count() >= 4 && text.contains(|c: char| c.is_ascii_lowercase());
    sentences.filter(is_sentence).map(str::to_owned).collect()
}

/// The sentences of a crate or a page, and those that match, each with the advice.
#[derive(Default)]
struct Place {
    sentences: usize,
    matches: Vec<(&'static str, String)>,
}

impl Place {
    /// Matching sentences per thousand, rounded up.
    fn rate(&self) -> usize {
        (1000 * self.matches.len()).div_ceil(self.sentences.max(1))
    }
}

/// All crates, folders of Python, and pages.
fn places() -> BTreeMap<String, Place> {
    let patterns = CONSTRUCTIONS.map(|(advice, pattern)| (advice, Regex::new(pattern).unwrap()));
    let mut paths = Vec::new();
    for folder in ["crates", "benches", "python", "docs", "evals", "release", "skills"] {
        files(&root().join(folder), &[".rs", ".py", ".pyi", ".md"], &mut paths);
    }
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    paths.extend(top.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = match name.rsplit('.').next() {
            Some("rs") => rust_blocks(&text),
            Some("md") => markdown_blocks(&text),
            _ => python_blocks(&text),
        };
        let place = match name.ends_with(".md") {
            true => name.clone(),
            false => name.split('/').take(2).filter(|part| !part.contains('.')).collect::<Vec<_>>().join("/"),
        };
        let place = places.entry(place).or_default();
        for sentence in blocks.iter().flat_map(|block| sentences(block)) {
            place.sentences += 1;
            if let Some((advice, _)) = patterns.iter().find(|(_, pattern)| pattern.is_match(&sentence)) {
                place.matches.push((advice, format!("{name}: {sentence}")));
            }
        }
    }
    places.retain(|_, place| place.sentences >= MIN_SENTENCES);
    places
}

#[test]
fn prose_of_each_crate_and_page_stays_within_its_limit() {
    let file = root().join("tests/prose.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let limits: BTreeMap<&str, usize> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(place, limit)| (place, limit.parse().unwrap()))
        .collect();
    let places = places();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        let mut lowered = "# Sentences per 1,000 that tests/prose.rs objects to. Limits may only fall.\n".to_owned();
        for (name, place) in &places {
            // In steps of ten, so that a few plain sentences that match do not fail the next change.
            let rate = place.rate().next_multiple_of(10);
            let limit = limits.get(name.as_str()).map_or(rate, |&limit| limit.min(rate));
            writeln!(lowered, "{name} {limit}").unwrap();
        }
        std::fs::write(&file, lowered).unwrap();
        return;
    }
    let mut failures = String::new();
    for (name, place) in &places {
        // A new page or crate has to be as plain as the plainest tool that we compared: ripgrep has 55.
        let limit = limits.get(name.as_str()).copied().unwrap_or(55);
        if place.rate() > limit {
            writeln!(failures, "\n{name}: {} of 1,000 sentences, the limit is {limit}", place.rate()).unwrap();
            for (advice, sentence) in place.matches.iter().take(EXAMPLES) {
                writeln!(failures, "  {advice}\n    {sentence}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    let stale: Vec<_> = limits.keys().filter(|name| !places.contains_key(**name)).collect();
    assert!(stale.is_empty(), "tests/prose.txt has limits for {stale:?}, which no longer exist");
}

#[test]
fn constructions_to_avoid_are_found_and_plain_sentences_are_not() {
    let patterns = CONSTRUCTIONS.map(|(_, pattern)| Regex::new(pattern).unwrap());
    let matches = |sentence: &str| patterns.iter().filter(|pattern| pattern.is_match(sentence)).count();
    for sentence in [
        "What is left of the stacks that are heavy.",
        "The file in which the samples are.",
        "Of a heap profile this is the rate.",
        "The user is told about it.",
        "A frame that has none of them.",
        "The value is as much smaller.",
        "The file that it was read from.",
        "Sums of those that changed.",
    ] {
        assert!(matches(sentence) >= 1, "{sentence}");
    }
    for sentence in ["Returns the stacks of a profile.", "What does the profile show?", "Maximum number of retries."] {
        assert_eq!(matches(sentence), 0, "{sentence}");
    }
}

#[test]
fn blocks_of_each_language_become_sentences() {
    let rust = "//! First line\n//! and second. Then another sentence follows.\nfn f() { say(\"a message of {n} words\\n\"); }\n";
    let all = |blocks: Vec<String>| blocks.iter().flat_map(|block| sentences(block)).collect::<Vec<_>>();
    assert_eq!(
        all(rust_blocks(rust)),
        ["First line and second.", "Then another sentence follows.", "a message of X words."]
    );
    let page = "# Title of the page\n\nA paragraph with `code` in it.\n\n- an item of a list\n- another item of it\n\n| a | table |\n";
    assert_eq!(all(markdown_blocks(page)), ["A paragraph with X in it.", "an item of a list", "another item of it"]);
    let python = "\"\"\"The module's docstring here.\"\"\"\n# A comment of four words\nx = 1\n";
    assert_eq!(all(python_blocks(python)), ["A comment of four words", "The module's docstring here."]);
}
