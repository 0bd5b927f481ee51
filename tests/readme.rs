//! Checks the console blocks of README.md, docs/ and the skill: each command is run, and its output must equal the text
//! below it. Words may be quoted as in a shell. Commands with `main.pb.gz` (on the start pages) run in a folder where it
//! and `branch.pb.gz` are the two profiles of the story. All other commands run in the root of the repository. The other
//! commands of the skill run, too, because an agent copies them; that folder therefore also has runs of a program.
//!
//! To accept new output: `UPDATE_GOLDENS=1 cargo test -p pprofdiff-cli --test command readme::`.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The skill of agents.
const SKILL: &str = "skills/pprofdiff/SKILL.md";

/// Returns README.md, the pages of docs/, and the skill.
fn pages(root: &Path) -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.extend([root.join("README.md"), root.join(SKILL)]);
    pages.sort();
    pages
}

/// Creates a folder with the profiles of the start pages.
fn start(root: &Path, name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pprofdiff-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, side) in [("main", "base"), ("branch", "new")] {
        let profile = root.join(format!("tests/corpus/story-cpu.{side}.pb.gz"));
        std::fs::copy(profile, folder.join(format!("{name}.pb.gz"))).unwrap();
    }
    folder
}

/// Returns the text of a page with the current output of its commands, and the number of commands.
fn fresh(root: &Path, start: &Path, text: &str) -> (String, usize) {
    let mut parts = text.split("```console\n");
    let mut fresh = parts.next().unwrap().to_owned();
    let mut blocks = 0;
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let command = block.lines().next().unwrap();
        let args = command.strip_prefix("$ pprofdiff ").expect("a console block begins with its command");
        let args = args.split(' ').map(|word| word.trim_matches('\''));
        let folder = if command.contains(" main.pb.gz") { start } else { root };
        let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).current_dir(folder).args(args).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        fresh.push_str(&format!("```console\n{command}\n{}```{rest}", String::from_utf8(output.stdout).unwrap()));
        blocks += 1;
    }
    (fresh, blocks)
}

#[test]
fn the_pages_show_the_current_output_of_their_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let start = start(&root, "start");
    let mut shown = 0;
    let mut stale = Vec::new();
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).unwrap();
        let (fresh, blocks) = fresh(&root, &start, &text);
        shown += blocks;
        if fresh == text {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&page, fresh).unwrap();
        } else {
            stale.push(page);
        }
    }
    std::fs::remove_dir_all(start).unwrap();
    assert!(shown >= 6, "only {shown} console blocks");
    assert!(stale.is_empty(), "{stale:?} show other output; the first lines of tests/readme.rs say how to accept it");
}

/// The example of a configuration checks the CPU profiles of the start pages: 2 would be an error.
#[test]
fn the_example_of_a_configuration_checks_cpu_profiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = start(&root, "configuration");
    let text = std::fs::read_to_string(root.join("docs/check.md")).unwrap();
    let (_, block) = text.split_once("```toml\n").unwrap();
    std::fs::write(folder.join("pprofdiff.toml"), block.split_once("```").unwrap().0).unwrap();
    let args = ["check", "main.pb.gz", "branch.pb.gz"];
    let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).current_dir(&folder).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{:?}: {errors}", output.status);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The loop over services writes reports that can be merged, and accepted findings pass.
#[test]
#[cfg(unix)]
fn the_loop_over_services_writes_reports_with_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = start(&root, "services");
    let text = std::fs::read_to_string(root.join("docs/check.md")).unwrap();
    let block = |section: &str| {
        let (_, section) = text.split_once(section).unwrap();
        let (_, block) = section.split_once("```sh\n").unwrap();
        block.split_once("```").unwrap().0.to_owned()
    };
    let folder_of_binary = Path::new(env!("CARGO_BIN_EXE_pprofdiff")).parent().unwrap().display().to_string();
    let path = format!("{folder_of_binary}:{}", std::env::var("PATH").unwrap());
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        let output = shell.current_dir(&folder).env("PATH", &path).args(["-c", script]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for (service, new) in [("cart", "main"), ("orders", "branch"), ("users", "main")] {
        std::fs::create_dir(folder.join(service)).unwrap();
        std::fs::copy(folder.join("main.pb.gz"), folder.join(service).join("main.pb.gz")).unwrap();
        std::fs::copy(folder.join(format!("{new}.pb.gz")), folder.join(service).join("branch.pb.gz")).unwrap();
    }
    let (code, output) = run(&block("### Several services"));
    assert_eq!(code, Some(1), "{output}");
    for (service, verdict) in [("cart", "pass"), ("orders", "fail"), ("users", "pass")] {
        assert!(output.contains(&format!("\n{service}: {verdict}: ")), "{output}");
        let report =
            |ending: &str| std::fs::read_to_string(folder.join(format!("reports/{service}.{ending}"))).unwrap();
        assert!(report("xml").contains(&format!("<testsuite name=\"{service}\" ")));
        assert!(report("sarif").contains(&format!("\"id\": \"pprofdiff/{service}/\"")));
    }
    let (code, output) = run(&block("### Accept findings"));
    assert_eq!(code, Some(3), "{output}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Returns the commands of a page: the lines of its blocks, and code between backticks.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 1 {
            commands.extend(part.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line).to_owned()));
        } else {
            commands.extend(part.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " ")));
        }
    }
    let commands = commands.into_iter().map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    commands.filter(|line| line.starts_with("pprofdiff ")).collect()
}

#[test]
fn every_command_of_the_skill_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = start(&root, "skill");
    for (name, side) in [("main", 2), ("branch", 3)] {
        for run in [1, 2] {
            let profile = root.join(format!("tests/corpus/upgrades/loops{side}.{run}.cpu.pb.gz"));
            std::fs::copy(profile, folder.join(format!("{name}-{run}.pb.gz"))).unwrap();
        }
    }
    let text = std::fs::read_to_string(root.join(SKILL)).unwrap();
    let commands = commands(&text);
    assert!(commands.len() >= 10, "{commands:?}");
    let programs = Path::new(env!("CARGO_BIN_EXE_pprofdiff")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&others))).unwrap();
    for command in &commands {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", &path).current_dir(&folder).stdin(std::process::Stdio::null());
        let output = shell.output().unwrap();
        let is_check = command.starts_with("pprofdiff check ") && output.status.code() == Some(1);
        assert!(output.status.success() || is_check, "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The rules of agentskills.io/specification for the front matter, and its advice on length.
#[test]
fn the_skill_has_the_form_that_agents_expect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(SKILL)).unwrap();
    let (matter, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let keys = matter.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_once(':'));
    let keys: Vec<(&str, &str)> = keys.map(|(key, value)| (key, value.trim())).collect();
    assert_eq!(keys.iter().map(|key| key.0).collect::<Vec<_>>(), ["name", "description", "license", "compatibility"]);
    assert_eq!(keys[0].1, "pprofdiff", "the name of the folder");
    let description: Vec<_> = matter.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(keys[1].1, ">-");
    assert!((100..=1024).contains(&description.join(" ").len()), "{description:?}");
    assert!(keys[3].1.len() <= 500);
    assert!(body.lines().count() < 160, "{} lines", body.lines().count());
}

/// The page of the library names the Rust version of the workspace, and its smaller build and its table name the
/// features of the crates.
#[test]
fn the_page_of_the_library_names_the_features_of_the_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest =
        |path: &Path| std::fs::read_to_string(path.join("Cargo.toml")).unwrap().parse::<toml::Table>().unwrap();
    let page = std::fs::read_to_string(root.join("docs/rust.md")).unwrap();
    let (_, block) = page.split_once("```toml\n").unwrap();
    let reduced: toml::Table = block.split_once("```").unwrap().0.parse().unwrap();
    let version = manifest(&root)["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    assert_eq!(reduced["package"]["rust-version"].as_str(), Some(&*version));
    assert!(page.contains(&format!("The crates need Rust {version} or newer.")));
    let features = |name: &str| {
        let all = manifest(&root.join("crates").join(name))["features"].as_table().unwrap().clone();
        all.into_iter().map(|(feature, _)| feature).filter(|feature| feature != "default").collect::<Vec<_>>()
    };
    let dependencies = reduced["dependencies"].as_table().unwrap();
    assert!(dependencies.len() > 3, "{dependencies:?}");
    for (name, dependency) in dependencies {
        assert_eq!(dependency["path"].as_str(), Some(&*format!("../pprofdiff/crates/{name}")));
        assert_eq!(dependency["default-features"].as_bool(), Some(false));
        let all = features(name);
        for feature in dependency.get("features").and_then(|f| f.as_array()).into_iter().flatten() {
            assert!(all.iter().any(|known| Some(&**known) == feature.as_str()), "{name} has no feature {feature:?}");
        }
    }
    let table = page.split_once("| crate | feature |").unwrap().1;
    for name in ["pprofdiff", "pprofdiff-explain", "pprofdiff-report"] {
        let missing: Vec<String> =
            features(name).into_iter().filter(|feature| !table.contains(&format!("`{feature}`"))).collect();
        assert!(missing.is_empty(), "docs/rust.md has no row for {missing:?} of {name}");
    }
}
