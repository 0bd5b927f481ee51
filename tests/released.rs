//! The texts that change with a release: the first steps of the pages, which `released` in `release/steps.toml` switches
//! from a clone to published packages, and the version in files of other formats.
//!
//! To write both: `UPDATE_GOLDENS=1 cargo test --workspace --exclude pprofdiff-benches --test engine released::`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// Commands, addresses and settings that work only after a release, with an example of each.
const DOWNLOADS: [(&str, &str); 9] = [
    (
        r"\b(?:pip3?|pipx|uv pip|uv tool|conda|mamba|pixi|poetry|brew) (?:global )?(?:install|add|run)\b[^`\n]*[\s'\x22]pprofdiff",
        "pip install 'pprofdiff[notebook]'",
    ),
    (r"\bbrew install pprofdiff|\bconda-forge\b[^`\n]*pprofdiff", "brew install pprofdiff"),
    (r"\buvx? (?:run |--from )?pprofdiff", "uvx pprofdiff mcp"),
    (r#""uvx""#, r#""command": "uvx""#),
    (r"\bcargo (?:install|binstall|add)\b[^`\n]*\spprofdiff", "cargo add rayon pprofdiff"),
    (r#"(?m)^pprofdiff[a-z-]* = "\d"#, "pprofdiff-explain = \"0.1\""),
    (r"\buses: pprofdiff/pprofdiff@", "uses: pprofdiff/pprofdiff@v0"),
    (r"pprofdiff/pprofdiff/releases|shields\.io/(?:pypi|crates)", "https://github.com/pprofdiff/pprofdiff/releases"),
    (r"marketplace add pprofdiff/", "/plugin marketplace add pprofdiff/pprofdiff"),
];

/// Files for publishing, which no reader follows before a release, and tests, which name the commands to check them.
const NOT_PAGES: [&str; 6] = [
    "release/",
    "tests/",
    ".github/workflows/release.yml",
    "server.json",
    "crates/pprofdiff-cli/Cargo.toml",
    "Cargo.lock",
];

/// Files with the version of the package, beside Cargo.toml.
const VERSIONED: [&str; 3] = [".claude-plugin/marketplace.json", ".claude-plugin/plugin.json", "server.json"];

#[derive(Deserialize)]
struct Steps {
    released: bool,
    step: Vec<Step>,
}

/// A part of a page in both forms.
#[derive(Deserialize)]
struct Step {
    page: String,
    clone: String,
    released: String,
}

impl Step {
    fn form(&self, released: bool) -> &str {
        if released { &self.released } else { &self.clone }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn steps() -> Steps {
    toml::from_str(&read("release/steps.toml")).unwrap()
}

fn version() -> String {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    manifest["workspace"]["package"]["version"].as_str().unwrap().to_owned()
}

/// An expression for a form of a step with any version.
fn any_version(form: &str) -> Regex {
    Regex::new(&regex::escape(form).replace(r"\{version\}", r"[0-9][0-9A-Za-z.-]*")).unwrap()
}

/// Writes the steps of a page in one form, whatever form they have. Returns an error for a step that the page lacks.
fn render(page: &str, text: &str, steps: &[Step], released: bool) -> Result<String, String> {
    let mut text = text.to_owned();
    for step in steps.iter().filter(|step| step.page == page) {
        let form = step.form(released).replace("{version}", &version());
        let places = [true, false].map(|form| any_version(step.form(form)));
        if !places.iter().any(|place| place.is_match(&text)) {
            let first = step.clone.lines().next().unwrap_or_default();
            return Err(format!(
                "{page} has neither form of the step {first:?}; edit release/steps.toml with the page"
            ));
        }
        for place in places {
            text = place.replace_all(&text, regex::NoExpand(&form)).into_owned();
        }
    }
    Ok(text)
}

/// The pages of `release/steps.toml` with their text.
fn pages(steps: &[Step]) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> = steps.iter().map(|step| step.page.as_str()).collect();
    names.into_iter().map(|page| (page.to_owned(), read(page))).collect()
}

/// Returns the downloads that a text offers.
fn downloads(text: &str) -> Vec<String> {
    let patterns = DOWNLOADS.iter().map(|(pattern, _)| Regex::new(pattern).unwrap());
    patterns
        .flat_map(|pattern| pattern.find_iter(text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>())
        .collect()
}

/// All text files that people or agents read: pages, help, messages and configuration.
fn texts() -> Vec<(String, String)> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root());
    let listed = git.output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let names =
        names.split('\0').filter(|name| !name.is_empty() && !NOT_PAGES.iter().any(|start| name.starts_with(start)));
    names.filter_map(|name| Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?))).collect()
}

#[test]
fn pages_show_the_first_steps_of_the_switch() {
    let steps = steps();
    for (page, text) in pages(&steps.step) {
        let rendered = render(&page, &text, &steps.step, steps.released).unwrap_or_else(|e| panic!("{e}"));
        if rendered != text && std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(root().join(&page), &rendered).unwrap();
        } else {
            assert!(rendered == text, "{page} differs from release/steps.toml; tests/released.rs says how to write it");
        }
    }
}

#[test]
fn before_a_release_no_text_offers_a_download() {
    if steps().released {
        return;
    }
    let texts = texts();
    assert!(texts.len() > 300, "only {} files", texts.len());
    let offers: Vec<_> =
        texts.iter().flat_map(|(name, text)| downloads(text).into_iter().map(move |d| (name, d))).collect();
    assert!(offers.is_empty(), "these are not released yet, see release/steps.toml: {offers:#?}");
}

#[test]
fn flipping_the_switch_changes_every_page_and_back() {
    let steps = steps().step;
    for (page, text) in pages(&steps) {
        let [released, clone] = [true, false].map(|form| render(&page, &text, &steps, form).unwrap());
        assert_ne!(released, clone, "{page}");
        assert!(!downloads(&released).is_empty(), "{page} offers no download after a release");
        assert_eq!(downloads(&clone), Vec::<String>::new(), "{page} offers downloads before a release");
        for step in steps.iter().filter(|step| step.page == page) {
            assert!(!any_version(&step.clone).is_match(&released), "{page} keeps a step of clones: {}", step.clone);
        }
        assert!(!released.contains("not released yet"), "{page} denies the release");
        assert_eq!(render(&page, &released, &steps, false).unwrap(), clone, "{page}");
        assert_eq!(render(&page, &clone, &steps, true).unwrap(), released, "{page}");
    }
    // A new version replaces the old one.
    let old = "      - uses: pprofdiff/pprofdiff@v0.0.1-rc.1\n        with:\n";
    let new = render("docs/check.md", old, &steps, true).unwrap();
    assert_eq!(new, old.replace("0.0.1-rc.1", &version()));
    assert!(render("docs/check.md", "another workflow", &steps, true).unwrap_err().contains("release/steps.toml"));
}

#[test]
fn downloads_are_found_and_clones_are_not() {
    for (pattern, example) in DOWNLOADS {
        assert!(Regex::new(pattern).unwrap().is_match(example), "{pattern} {example}");
    }
    for text in [
        "pip install .",
        "pip install . polars",
        "pip install '.[notebook]'",
        "cargo install --path crates/pprofdiff-cli",
        "cargo add --path ../pprofdiff/crates/pprofdiff-explain",
        "pip install s3fs # for pprofdiff",
        "go install example.com/x@latest",
    ] {
        let text = text.replace(" # for pprofdiff", "");
        assert_eq!(downloads(&text), Vec::<String>::new(), "{text}");
    }
}

/// Returns every value of the key `version`, at any depth.
fn versions(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| if key == "version" { vec![value] } else { versions(value) }).collect()
        }
        Value::Array(values) => values.iter().flat_map(versions).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn manifests_have_the_version_of_the_package() {
    let version = version();
    let any = Regex::new(r#""version": "[^"]*""#).unwrap();
    for file in VERSIONED {
        let text = read(file);
        let current = any.replace_all(&text, format!("\"version\": \"{version}\"")).into_owned();
        if current != text && std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(root().join(file), &current).unwrap();
        }
        let json: Value = serde_json::from_str(&read(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let versions = versions(&json);
        assert!(!versions.is_empty() && versions.iter().all(|v| **v == version.as_str()), "{file}: {versions:?}");
    }
}

/// The limits of the registry's schema of 2025-12-11. The registry also looks for the name in the README on PyPI.
#[test]
fn the_mcp_registry_accepts_the_server() {
    let server: Value = serde_json::from_str(&read("server.json")).unwrap();
    let name = server["name"].as_str().unwrap();
    assert!(Regex::new(r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$").unwrap().is_match(name) && name.len() <= 200);
    assert!(read("README.md").contains(&format!("mcp-name: {name} ")), "README.md lacks mcp-name: {name}");
    assert!((1..=100).contains(&server["description"].as_str().unwrap().len()));
    for package in server["packages"].as_array().unwrap() {
        assert_eq!(package["identifier"], "pprofdiff");
        assert_eq!(
            (&package["transport"]["type"], &package["packageArguments"][0]["value"]),
            (&"stdio".into(), &"mcp".into())
        );
    }
}

/// Claude Code finds the plugin in its folder, and the skills in the folder `skills` beside the manifest.
#[test]
fn the_marketplace_names_the_plugin_and_its_folder() {
    let [market, plugin] = [".claude-plugin/marketplace.json", ".claude-plugin/plugin.json"]
        .map(|file| serde_json::from_str::<Value>(&read(file)).unwrap());
    assert!(market["owner"]["name"].is_string());
    for entry in market["plugins"].as_array().unwrap() {
        assert_eq!((&entry["name"], &entry["source"]), (&plugin["name"], &"./".into()));
        assert_eq!(entry["description"], plugin["description"]);
    }
    assert_eq!(plugin["mcpServers"]["pprofdiff"]["args"], serde_json::json!(["mcp"]));
    assert!(root().join("skills/pprofdiff/SKILL.md").exists());
}
