//! Tests of source lines in the command's output: the search for sources, and path prefixes that are trimmed to compare
//! checkouts.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{command, failure, json, stdout, story, temp};

/// Writes a profile of one function in a file, with one sample on a line.
fn profile_in(name: &str, file: &str, line: i64) -> String {
    use pprofdiff::proto::{Function, Line, Location, Profile, Sample, ValueType};
    let p = Profile {
        string_table: ["", "cpu", "nanoseconds", "y.f", file].iter().map(|s| s.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: vec![Function { id: 1, name: 3, filename: 4, start_line: line - 1, ..Default::default() }],
        location: vec![Location { id: 1, line: vec![Line { function_id: 1, line, column: 0 }], ..Default::default() }],
        sample: vec![Sample { location_id: vec![1], value: vec![1_000_000], label: vec![] }],
        ..Default::default()
    };
    let path = temp(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, p.load(name).unwrap().to_bytes(&Default::default()).unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn files_of_two_checkouts_match_after_trimming_paths() {
    let base = profile_in("trim/main/cpu.pb.gz", "/root/go/pkg/mod/github.com/x/y@v1.2.3/z.go", 7);
    let new = profile_in("trim/branch/cpu.pb.gz", "/home/ci/mod/github.com/x/y@v1.2.4/z.go", 7);
    let trim = "--trim-path=/root/go/pkg/mod:/home/ci/mod/";
    for granularity in ["files", "lines", "filefunctions"] {
        let granularity = format!("--granularity={granularity}");
        let plain = json(&[&base, &new, &granularity, "--format=json"]);
        assert_eq!((&plain["rows_total"], &plain["trim_path"]), (&2.into(), &Value::Array(vec![])), "{plain}");
        // An option with an empty value is ignored, because scripts pass unset variables.
        assert_eq!(json(&[&base, &new, &granularity, "--format=json", "--trim-path="]), plain);
        let trimmed = json(&[&base, &new, &granularity, "--format=json", trim]);
        let row = &trimmed["rows"][0];
        assert_eq!((&trimmed["rows_total"], row["status"].as_str()), (&1.into(), Some("same")), "{trimmed}");
        assert_eq!(row["file"], "github.com/x/y/z.go");
        assert!(stdout(&[&base, &new, &granularity, trim]).contains("trim_path=/root/go/pkg/mod:/home/ci/mod/"));
        assert!(stdout(&["stacks", &base, &new, &granularity, trim]).contains("github.com/x/y/z.go"));
        let series = json(&["series", &base, &new, &granularity, trim, "--format=json", "--rows=values"]);
        assert!(series.to_string().contains("\"github.com/x/y/z.go\"") && !series.to_string().contains("@v1"));
    }
    let (main, branch) = (temp("trim/main").display().to_string(), temp("trim/branch").display().to_string());
    let batch = stdout(&["batch", &main, &branch, "--granularity=files", trim, "--format=jsonl"]);
    assert!(batch.contains("\"github.com/x/y/z.go\"") && !batch.contains("@v1"), "{batch}");

    // A listing matches the two files without an option. Its search for sources includes the version in the path.
    let sources = temp("trim/mod/github.com/x/y@v1.2.4/z.go");
    std::fs::create_dir_all(sources.parent().unwrap()).unwrap();
    std::fs::write(&sources, "line\n".repeat(9)).unwrap();
    let folder = temp("trim/mod").display().to_string();
    for trim in [&[][..], &[trim]] {
        let listed = json(&[&["list", "y.f", &base, &new, "--format=json", "--new-source", &folder], trim].concat());
        let [routine] = &listed["routines"].as_array().unwrap()[..] else { panic!("{listed}") };
        assert_eq!(routine["new_source"].as_str(), sources.to_str(), "{listed}");
        let expected = if trim.is_empty() { "/home/ci/mod/github.com/x/y@v1.2.4/z.go" } else { "github.com/x/y/z.go" };
        assert_eq!(routine["file"], expected);
    }
}

/// Returns the output of a command in a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(dir: &Path, args: &[&str]) -> String {
    let words: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_pprofdiff"), words.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = script.output().unwrap_or_else(|e| panic!("cannot run `script` (util-linux): {e}"));
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

#[test]
#[cfg(target_os = "linux")]
fn in_a_terminal_sources_of_the_new_side_default_to_the_working_directory() {
    let [base, new] = story();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let list = ["list", "tableInsensitive", &base, &new];
    let shown = on_a_terminal(&sources, &list);
    assert!(shown.contains("source ./logmill/headers/table.go\n"), "{shown}");
    assert!(shown.contains("note: no source of the base: lines are paired by their numbers"), "{shown}");
    assert!(shown.contains("names.Same(table[i].name, name)"), "{shown}");
    assert!(shown.ends_with("set its folder with --base-source DIR; only these were searched: .\n"), "{shown}");
    // If a folder is given, no other folder is searched.
    let named = on_a_terminal(&sources, &[&list[..], &["--base-source", "logmill"]].concat());
    assert!(named.ends_with("set its folder with --new-source DIR; only these were searched: logmill\n"), "{named}");
    // With a pipe, a file or JSON, the working directory is not searched.
    let stdout_in_sources = |args: &[&str]| {
        let output = command().args(args).current_dir(&sources).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let hint = "no source was found: set the folders with --base-source DIR and --new-source DIR, \
                or one for both with --source-path DIR; no folder was searched\n";
    assert!(stdout_in_sources(&list).ends_with(hint), "{}", stdout_in_sources(&list));
    let file = temp("listing.txt").display().to_string();
    on_a_terminal(&sources, &[&list[..], &["-o", &file]].concat());
    assert!(std::fs::read_to_string(&file).unwrap().ends_with(hint));
    let as_json = on_a_terminal(&sources, &[&list[..], &["--format", "json"]].concat());
    assert!(as_json.contains("\"new_source\":null") && !as_json.contains("--source-path"), "{as_json}");
    // Without sources, nothing shows whether a line is the same in both builds.
    assert!(as_json.contains("\"change\":\"unknown\"") && !as_json.contains("\"change\":\"same\""), "{as_json}");
    let one = stdout_in_sources(&["list", "tableInsensitive", &base]);
    assert!(one.ends_with("set its folder with --source-path DIR; no folder was searched\n"), "{one}");
    let many = stdout_in_sources(&["list", ".", &base, &new, "--source-path", "."]);
    assert!(regex::Regex::new(r"no source was found for \d+ of \d+ functions: set").unwrap().is_match(&many));
}

#[test]
fn list_shows_source_lines_of_functions() {
    let [base, new] = story();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let sources = sources.to_str().unwrap();
    let text = stdout(&["list", "tableInsensitive", &base, &new, "--source-path", sources]);
    let line = text.lines().find(|l| l.contains("names.Same(table[i].name, name)")).unwrap();
    assert!(line.contains("0.33s  1.78s  +1.45s"), "{line}");
    let one = json(&["list", "tableInsensitive", &base, "--format", "json", "--source-path", sources]);
    assert_eq!(one["kind"], "list");
    assert!(one["routines"][0]["source"].as_str().unwrap().ends_with("logmill/headers/table.go"));

    // Only one side has sources, and a prefix is trimmed.
    let folder = format!("{sources}/logmill");
    let some = json(&[
        "list",
        "logmill/",
        &base,
        &new,
        "--format=json",
        "--new-source",
        &folder,
        "--trim-path=x:logmill",
        "-n1",
    ]);
    let routines = some["routines"].as_array().unwrap();
    assert_eq!((routines.len(), &routines[0]["base_source"]), (1, &Value::Null));
    assert!(routines[0]["notes"][0].as_str().unwrap().starts_with("no source of the base"), "{some}");
    assert!(!routines[0]["file"].as_str().unwrap().starts_with("logmill/"));

    assert!(failure(&["list", "no such function", &base]).contains("no function matches"));
    assert!(failure(&["list", "(", &base]).contains("regular expression of list"));
    assert!(failure(&["list", ".", &base, "--format", "csv"]).contains("supported formats: text, json"));
}

#[test]
fn a_listing_shows_the_source_of_each_side_at_its_revision() {
    let repository = temp("revisions/app");
    std::fs::create_dir_all(repository.join("lib")).unwrap();
    let git = |dir: &Path, args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(dir).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&repository, &["init", "-q", "-b", "main", "."]);
    let secret = repository.join("secret.go");
    for (version, tag) in [("one", "v1"), ("two", "v2")] {
        // The line of the sample moves down in the second version.
        let before = if tag == "v1" { "a\nb\n" } else { "a\nb\nc\nd\n" };
        std::fs::write(repository.join("lib/z.go"), format!("{before}work({version})\nend\n")).unwrap();
        std::fs::write(&secret, version).unwrap();
        #[cfg(unix)]
        if tag == "v1" {
            std::os::unix::fs::symlink("secret.go", repository.join("lib/link.go")).unwrap();
        }
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", version]);
        git(&repository, &["tag", tag]);
    }
    // The working tree has a third version, which no side shows unless it is asked for.
    std::fs::write(repository.join("lib/z.go"), "x\ny\nq\nr\nwork(three)\n").unwrap();
    let base = profile_in("revisions/base.pb.gz", "/build/7/app/lib/z.go", 3);
    let new = profile_in("revisions/new.pb.gz", "/build/9/app/lib/z.go", 5);
    let listed = |dir: &Path, args: &[&str]| {
        let output = command().current_dir(dir).arg("list").arg("y.f").args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, text, errors) = listed(&repository, &[&base, &new, "--git", "v1..v2"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(text.contains("- work(one)") && text.contains("+ work(two)") && !text.contains("three"), "{text}");
    assert!(text.contains(":lib/z.go"), "{text}");
    // In a subfolder, in a bare repository, and in a page.
    assert!(listed(&repository.join("lib"), &[&base, &new, "--git", "v1..v2"]).1.contains("+ work(two)"));
    let bare = temp("revisions/app.git");
    git(&repository, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    assert!(listed(&bare, &[&base, &new, "--git", "v1..v2"]).1.contains("- work(one)"));
    let page = temp("revisions/page.html").display().to_string();
    let args = [&base, &new, "--git", "v1..v2", "--format", "html", "-o", &page];
    let output = command().current_dir(&repository).arg("diff").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // One revision: the new side has the working tree, and a single profile has the revision.
    let text = listed(&repository, &[&base, &new, "--git", "v1"]).1;
    assert!(text.contains("- work(one)") && text.contains("+ work(three)"), "{text}");
    let text = listed(&repository, &[&base, "--git", "v1"]).1;
    assert!(text.contains("work(one)") && !text.contains("three"), "{text}");
    // Links are not followed, and no other file is shown.
    let linked = profile_in("revisions/link.pb.gz", "/build/7/app/lib/link.go", 1);
    assert!(!listed(&repository, &[&linked, "--git", "v2"]).1.contains("two"));
    let outside = profile_in("revisions/outside.pb.gz", "../secret.go", 1);
    assert!(!listed(&repository.join("lib"), &[&outside, "--git", "v2"]).1.contains("two"));
    let refused = |dir: &Path, range: &str, why: &str| {
        let (code, out, errors) = listed(dir, &[&base, &new, &format!("--git={range}")]);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{errors}");
        assert!(errors.contains(why), "{errors}");
    };
    refused(
        &repository,
        "v1..nope",
        "unknown commit \"nope\"; write --git BASE..NEW with two commits, branches or tags",
    );
    refused(&repository, "--output=x..v2", "unknown commit \"--output=x\"");
    refused(&repository, "secret.go", "secret.go is a file");
    refused(&bare, "v1", "a bare repository has no working tree for the new side");
    refused(&std::env::temp_dir(), "v1..v2", "not a git repository");
    assert!(
        failure(&["list", "y.f", &base, &new, "--git", "v1..v2", "--source-path", "."]).contains("cannot be used with")
    );
}
