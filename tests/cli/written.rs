//! Tests of the files that the command writes: pages, pictures, stacks, diffs, merged profiles, deltas.

use std::path::Path;

use super::{command, corpus, failure, json, run, stdout, story, temp};

#[test]
fn a_page_is_written_to_a_file_or_pipe_and_opened_on_request() {
    let [base, new] = story();
    let path = temp("page.html");
    let file = path.to_str().unwrap();
    assert_eq!(stdout(&[&base, &new, "--format", "html", "-o", file]), "");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("logmill/names.canonical"));
    assert_eq!(stdout(&[&base, &new, "--format", "html"]), page);
    assert!(stdout(&["top", &base, "--format", "html", "--min-width", "0.5"]).len() < page.len());
    for verb in [&["tree"][..], &["peek", "x"], &["stacks"], &["labels"]] {
        let reason = failure(&[verb, &[&base, &new, "--format", "html"]].concat());
        let expected = format!("{} can't be written as html; supported formats: text, json", verb[0]);
        assert!(reason.contains(&expected), "{reason}");
    }
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story");
    let sources = ["--base-source", story.to_str().unwrap(), "--new-source", story.to_str().unwrap()];
    let line = "names.Same(table[i].name, name)";
    for profiles in [&[&*base, &new][..], &["diff", &base, &new], &["top", &base]] {
        let listed = stdout(&[profiles, &["--format", "html"], &sources].concat());
        assert!(listed.contains(line) && listed.contains("table.go"));
        assert!(failure(&[profiles, &sources].concat()).contains("--format html"));
    }
    assert!(!page.contains(line));
    assert!(failure(&[&base, &new, "--format", "html", "-n", "3"]).contains("--max-frames"));
    assert!(failure(&[&base, &new, "--format", "html", "--min-width", "2"]).contains("0 to 1"));
    assert!(failure(&[&base, &new, "--open"]).contains("-o"));
    assert!(failure(&[&base, &new, "--format", "text", "--open"]).contains("--format html"));
    assert!(failure(&[&base, &new, "--format", "html", "--open"]).contains("-o"));
}

/// Uses a fake browser that only records its arguments.
#[test]
#[cfg(target_os = "linux")]
fn open_passes_the_page_to_the_browser() {
    use std::os::unix::fs::PermissionsExt;
    let [base, new] = story();
    let (bin, noted) = (temp("bin"), temp("opened"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("xdg-open"), format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", noted.display())).unwrap();
    std::fs::set_permissions(bin.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let page = temp("opened.html");
    let run = |path: &Path| {
        let args = [&base, &new, "--format", "html", "--open", "-o", page.to_str().unwrap()];
        command().args(args).env("PATH", path).output().unwrap()
    };
    let output = run(&bin);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&noted).unwrap(), page.to_str().unwrap());
    let output = run(&temp("nothing here"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("is written, but no browser opened it") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn csv_and_folded_print_warnings_to_standard_error() {
    let [base, new] = story();
    for format in ["csv", "folded", "pprof"] {
        let out = temp("warned").display().to_string();
        let output = run(&[&base, &new, "--format", format, "--focus", "no such frame", "-o", &out]);
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "pprofdiff: warning: focus \"no such frame\" matched nothing\n", "{format}");
    }
}

#[test]
fn a_reopened_diff_refuses_what_it_cannot_compute() {
    let [base, new] = story();
    let out = temp("reopened.pb.gz").display().to_string();
    stdout(&[&base, &new, "--format", "pprof", "-o", &out]);
    assert!(failure(&[&out, "--normalize", "duration"]).contains("duration"));
    let by_tag = json(&[&out, "--tagfocus", "true", "--format", "json"]);
    assert_eq!(by_tag["rows_total"], 0, "the label that marks the base is not to be seen");
    assert!(stdout(&["info", &out]).contains("a written diff"));
}

#[test]
fn a_written_diff_opens_again_and_merged_profiles_add_up() {
    let [base, new] = story();
    for name in ["diff.pb.gz", "diff.pb", "diff.zst"] {
        let out = temp(name).display().to_string();
        assert_eq!(stdout(&[&base, &new, "--format", "pprof", "-o", &out]), "");
        let rows =
            |args: &[&str]| json(&[args, &["--format", "json", "--granularity", "lines"]].concat())["rows"].clone();
        assert!(rows(&[&out]) == rows(&[&base, &new]), "{name}");
    }
    let sum = temp("sum.pb.gz").display().to_string();
    stdout(&["merge", &base, &new, &base, "-o", &sum]);
    assert_eq!(json(&["top", &sum, "--format", "json"])["total"], 1_900_000_000i64 * 2 + 2_930_000_000);
}

#[test]
fn one_delta_is_written_for_each_pair_of_snapshots() {
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let out = temp("delta.pb.gz").display().to_string();
    assert_eq!(stdout(&["delta", &snapshot(3), &snapshot(4), "-o", &out]), "");
    let allocated =
        |file: &str| json(&["top", file, "--sample-type", "alloc_space", "--format", "json"])["total"].clone();
    let difference = allocated(&snapshot(4)).as_i64().unwrap() - allocated(&snapshot(3)).as_i64().unwrap();
    assert_eq!(allocated(&out), difference);
    assert!(stdout(&["info", &out]).contains("pprofdiff delta: cumulative alloc_objects alloc_space;"));

    let all: Vec<String> = (0..9).map(snapshot).collect();
    let template = temp("{index}.delta.pb").display().to_string();
    let files: Vec<&str> = all.iter().map(String::as_str).collect();
    stdout(&[&["delta"], &files[..], &["-o", &template]].concat());
    let sum: i64 = (1..9).map(|i| allocated(&template.replace("{index}", &i.to_string())).as_i64().unwrap()).sum();
    assert_eq!(sum, allocated(&all[8]).as_i64().unwrap() - allocated(&all[0]).as_i64().unwrap());

    // The compression level is applied.
    let size = |name: &str, level: &str| {
        let out = temp(name).display().to_string();
        stdout(&["delta", &all[3], &all[4], "-o", &out, "--level", level]);
        std::fs::metadata(out).unwrap().len()
    };
    assert!(size("1.pb.gz", "1") > size("9.pb.gz", "9") && size("1.zst", "1") > size("19.zst", "19"));
}

#[test]
fn a_restart_between_snapshots_is_always_reported() {
    let snapshot = |i: usize| corpus(&format!("series/mutex-{i:02}.pb.gz"));
    let (before, after, out) = (snapshot(8), snapshot(9), temp("reset.pb.gz").display().to_string());
    let line = failure(&["delta", &before, &after, "-o", &out]);
    assert!(line.contains("mutex-09.pb.gz: counters went down in ") && line.contains("--on-reset pass"), "{line}");
    for (policy, words) in [("pass", "the snapshot is passed as it is"), ("clamp", "these count as unchanged")] {
        let output = run(&["delta", &before, &after, "-o", &out, "--on-reset", policy]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.starts_with("pprofdiff: warning: ") && stderr.lines().count() == 1);
        assert!(stdout(&["info", &out]).contains(words));
    }
}

#[test]
fn mistakes_with_snapshots_exit_with_2_and_one_line() {
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let (a, b, c) = (snapshot(1), snapshot(2), snapshot(3));
    let out = temp("none.pb.gz").display().to_string();
    assert!(failure(&["delta", &a, "-o", &out]).contains("two snapshots"));
    assert!(failure(&["delta", &a, &b]).contains("--output"));
    assert!(failure(&["delta", &a, &b, &c, "-o", &out]).contains("{index}"));
    assert!(failure(&["delta", &b, &a, "-o", &out]).contains("give the older snapshot first"));
    assert!(failure(&["delta", &a, &corpus("series/mutex-02.pb.gz"), "-o", &out]).contains("cumulative sample types"));
    assert!(failure(&["delta", &a, &b, "-o", &out, "--cumulative", "heap"]).contains("\"heap\""));
    assert!(failure(&["delta", &a, &b, "-o", &out, "--level", "10"]).contains("levels 0 to 9"));
    assert!(failure(&["delta", "-", "-", "-o", &out]).contains("only once"));
    assert!(!Path::new(&out).exists());
    // Users may declare a gauge to be cumulative.
    stdout(&["delta", &a, &b, "-o", &out, "--cumulative", "alloc_space,alloc_objects"]);
    assert!(stdout(&["delta", "--help"]).contains("mutex_duration"));
}

#[test]
fn folded_stacks_have_one_column_per_side() {
    let [base, new] = story();
    let folded = stdout(&[&base, &new, "--format", "folded"]);
    assert!(folded.starts_with("# pprofdiff-folded cpu/nanoseconds base new\n"), "{folded}");
    let sums = folded.lines().skip(1).fold((0i64, 0i64), |(b, n), line| {
        let mut parts = line.rsplitn(3, ' ');
        let mut number = || parts.next().unwrap().parse::<i64>().unwrap();
        let (new, base) = (number(), number());
        assert!(parts.next().unwrap().contains(';'), "{line}");
        (b + base, n + new)
    });
    assert_eq!(sums, (1_900_000_000, 2_930_000_000));
}

#[test]
fn call_graphs_are_written_as_dot_and_svg() {
    let [base, new] = story();
    for verb in [&["diff"][..], &["top"], &["tree"]] {
        let svg = stdout(&[verb, &[&base, &new, "--format", "svg", "-n", "10"]].concat());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("class=\"node\"").count(), 10);
        assert!(stdout(&[verb, &[&base, &new, "--format", "dot"]].concat()).starts_with("digraph"));
    }
    let ranked =
        |sort: &[&str]| stdout(&[&["top", &base, "--format", "dot", "-n", "3", "--node-fraction", "0"], sort].concat());
    assert!(ranked(&["--sort", "cum"]).contains("main.run") && ranked(&["--sort", "flat"]) != ranked(&[]));
    let all = stdout(&["top", &base, "--format", "dot", "-n0", "--node-fraction", "0", "--edge-fraction=0"]);
    let rows = json(&["top", &base, "--format", "json"])["rows_total"].as_u64().unwrap() as usize;
    assert_eq!(
        all.lines().filter(|l| l.starts_with('N') && l.contains(" [label") && !l.contains(" -> ")).count(),
        rows
    );
    for args in [&["stacks", &base][..], &["peek", "main", &base], &["labels", &base], &["stacks", "--labels", &base]] {
        assert!(failure(&[args, &["--format", "dot"]].concat()).contains("can't be written as dot"));
        let scope = [args, &["--format", "speedscope"]].concat();
        assert!(args[0] == "stacks" && args.len() == 2 || failure(&scope).contains("can't be written as speedscope"));
    }
    assert!(failure(&[&base, &new, "--format", "svg", "--node-fraction", "7"]).contains("from 0 to 1"));
}

#[test]
fn the_output_extension_selects_the_format() {
    let [base, new] = story();
    for (name, begin) in [
        ("ending.json", "{\"schema\": \"pprofdiff/1\", \"kind\": \"diff\""),
        ("ending.csv", "name,file,line"),
        ("ending.md", "**cpu**"),
        ("ending.svg", "<svg "),
        ("ending.flame.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pprofdiff-flamegraph\""),
        ("ending.dot", "digraph"),
        ("ending.html", "<!doctype html>"),
        ("ending.speedscope.json", "{\"$schema\""),
        ("ending.folded", ""),
        ("ending", "base  "),
        ("ending.txt", "base  "),
    ] {
        let path = temp(name);
        stdout(&[&base, &new, "-o", path.to_str().unwrap()]);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.starts_with(begin) && !written.is_empty(), "{name}: {}", &written[..50]);
        // `--format` takes precedence over the extension.
        stdout(&[&base, &new, "--format", "csv", "-o", path.to_str().unwrap()]);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("name,"), "{name}");
    }
    let written = temp("ending.pb.gz");
    stdout(&[&base, &new, "-o", written.to_str().unwrap()]);
    assert!(stdout(&["top", written.to_str().unwrap()]).contains("base  "));
    let reason = failure(&[&base, &new, "-o", temp("ending.xyz").to_str().unwrap()]);
    assert!(reason.contains("ending.xyz") && reason.contains(".svg (svg)"), "{reason}");
    let reason = failure(&["labels", &base, "-o", temp("labels.svg").to_str().unwrap()]);
    assert!(
        reason.contains("labels can't be written as svg; supported formats: text, json, csv, markdown"),
        "{reason}"
    );
}

/// The inputs do not exist, so an error that names them would come from reading them.
#[test]
fn impossible_combinations_are_refused_before_inputs_are_read() {
    let cases: [(&[&str], &str); 16] = [
        (
            &["top", "--format", "junit"],
            "top can't be written as junit; supported formats: text, json, csv, markdown, ",
        ),
        (&["diff", "--significant", "--format", "svg"], "top of significant rows can't be written as svg"),
        (&["top", "--sample-type", "a,b", "--format", "html"], "top of several sample types can't be written as html"),
        (&["stacks", "--labels", "--format", "folded"], "stacks can't be written as folded"),
        (&["stacks", "--format", "folded", "-n", "3"], "-n limits rows, but folded is always written whole"),
        (&["tree", "--format", "callgrind", "-n", "3"], "-n limits rows, but callgrind is always written whole"),
        (&["diff", "--format", "html", "-n", "3"], "-n limits rows; for a page, use --min-width and --max-frames"),
        (&["top", "--call-tree"], "--call-tree is for call graphs: --format dot, svg or callgrind"),
        (&["diff", "--base-source", "."], "source lines need `list`, or a page (--format html)"),
        (&["diff", "--explain", "--format", "csv"], "--explain needs a table of two sides in --format text"),
        (&["info", "--format", "csv"], "info can't be written as csv; supported formats: text, json"),
        (&["labels", "--hide-below", "5"], "labels does not support --hide-below"),
        (&["traces", "--sample-type", "a,b"], "traces shows one sample type at a time"),
        (&["series", "--dense"], "--dense needs --rows values"),
        (
            &["series", "--rows", "steps", "--explain", "--format", "csv"],
            "--explain needs --format text, or rows that are lasting changes (--rows shifts)",
        ),
        (
            &["batch", "--rank", "--format", "folded"],
            "a ranking is written as text, json, jsonl, csv, markdown or html, not folded",
        ),
    ];
    for (args, expected) in cases {
        let message = failure(&[args, &["absent.pb", "absent2.pb"]].concat());
        assert!(message.contains(expected) && !message.contains("absent"), "{args:?}: {message}");
    }
    // A page of the whole diff has no row limit, and `list` limits functions in each of its formats.
    let [base, new] = story();
    for format in ["text", "json", "html"] {
        let limited = stdout(&["list", "main", &base, &new, "--format", format, "-n", "1"]);
        assert!(limited.len() < stdout(&["list", "main", &base, &new, "--format", format]).len(), "{format}");
    }
}

#[test]
fn a_written_diff_cannot_be_combined_with_other_inputs() {
    let [base, new] = story();
    let out = temp("side.pb.gz").display().to_string();
    stdout(&[&base, &new, "--format", "pprof", "-o", &out]);
    let expected = format!("{out}: this is a written diff: ");
    let sides: [&[&str]; 8] = [
        &[&out, &new],
        &[&base, &out],
        &["explain", &base, &out],
        &["list", "names", &out, &new],
        &["series", "--base", &out, &base, &new],
        &["--base", &base, "--base", &out, "--new", &new],
        &["check", &base, &out, "--fail-on", "total>+5%"],
        &["delta", &out, &new, "-o", "none.pb.gz", "--cumulative", "cpu"],
    ];
    for args in sides {
        let line = failure(args);
        assert!(line.contains(&expected) && line.contains("the profiles from which it was made"), "{line}");
    }
    // In a batch, only that pair fails.
    let pairs = temp("pairs.csv");
    std::fs::write(&pairs, format!("base,new\n{base},{new}\n{out},{new}\n")).unwrap();
    let output = run(&["batch", &pairs.display().to_string(), "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&expected));
    // Merged diffs give the diff of the sums. A diff cannot be merged with a profile.
    let twice = temp("twice.pb.gz").display().to_string();
    stdout(&["merge", &out, &out, "-o", &twice]);
    assert_eq!(
        json(&[&twice, "--format", "json"])["total"],
        json(&["--base", &base, "--base", &base, "--new", &new, "--new", &new, "--format", "json"])["total"]
    );
    assert!(
        failure(&["merge", &new, &out, "-o", &twice]).contains(&format!("{out}: this is a written diff, but others"))
    );
}

#[test]
fn callgrind_output_of_a_diff_has_both_sides_as_events() {
    let [base, new] = story();
    let out = temp("diff.callgrind").display().to_string();
    stdout(&[&base, &new, "-o", &out]);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.starts_with("# callgrind format\npositions: instr line\nevents: cpu_base(nanoseconds) cpu_new("),
        "{text}"
    );
    // The own costs of all addresses add up to the totals. The line after `calls=` is the cost of the call.
    let lines: Vec<&str> = text.lines().collect();
    let costs = lines.windows(2).filter(|l| !l[0].starts_with("calls=") && l[1].starts_with("0x")).map(|l| {
        let words: Vec<i64> = l[1].split(' ').skip(2).map(|w| w.parse().unwrap()).collect();
        [words[0], words[1]]
    });
    assert_eq!(costs.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]), [1_900_000_000, 2_930_000_000]);
    let call = lines.iter().position(|l| l.starts_with("calls=")).unwrap();
    assert!(lines[call + 1].starts_with("* * ") && lines[call + 1].split(' ').count() == 4, "{}", lines[call + 1]);
    assert!(failure(&[&base, &new, "-n", "3", "--format", "callgrind"]).contains("written whole"));
    assert!(failure(&["labels", &base, "--format", "callgrind"]).contains("can't be written as callgrind"));
}

#[test]
fn speedscope_warns_about_omitted_stacks() {
    let (one, two) = (temp("negative.folded"), temp("both.folded"));
    std::fs::write(&one, "a;b 5\na;c -3\n").unwrap();
    std::fs::write(&two, "# pprofdiff-folded cpu/nanoseconds base new\na;b 4000 -1000\na;c -1000 3000\nd -5000 0\n")
        .unwrap();
    let (one, two, out) =
        (one.display().to_string(), two.display().to_string(), temp("left-out").display().to_string());
    let stderr_of = |args: &[&str]| {
        let output = run(&[args, &["--format", "speedscope", "-o", &out]].concat());
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = "pprofdiff: warning: speedscope can't show negative values: omitted stacks of";
    let of_one = format!("{warning} -3, 37.50% of the profile by magnitude\n");
    assert_eq!(stderr_of(&["convert", &one]), of_one);
    assert_eq!(stderr_of(&["stacks", &one]), of_one);
    let of_two = format!(
        "{warning} -6us, 60.00% of base by magnitude\n\
         {warning} -1us, 25.00% of new by magnitude\n"
    );
    assert_eq!(stderr_of(&["stacks", &two]), of_two);
    assert_eq!(stderr_of(&["stacks", &one, "--ignore", "c"]), "");
    // Folded stacks can represent them.
    assert_eq!(stdout(&["stacks", &one, "--format", "folded"]), "a;b 5\na;c -3\n");
}

#[test]
fn formats_of_stacks_warn_about_samples_without_a_stack() {
    let (one, two, out) = (temp("stackless.folded"), temp("stackless-new.folded"), temp("stackless-out"));
    std::fs::write(&one, "a;b 90\n 10\n").unwrap();
    std::fs::write(&two, "a;b 90\na;c 30\n").unwrap();
    let [one, two, out] = [one, two, out].map(|path| path.display().to_string());
    let warnings = |args: &[&str]| {
        let output = run(&[args, &["-o", &out]].concat());
        assert!(output.status.success(), "{args:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        stderr.lines().filter(|line| line.contains("left out")).map(str::to_owned).collect::<Vec<_>>()
    };
    let warning =
        |side: &str| vec![format!("pprofdiff: warning: samples without a stack were left out: 10, 10.00% of {side}")];
    for format in ["folded", "speedscope", "flamegraph"] {
        assert_eq!(warnings(&["convert", &one, "--format", format]), warning("the profile"), "{format}");
        assert_eq!(warnings(&["stacks", &one, &two, "--format", format]), warning("the base"), "{format}");
        assert_eq!(warnings(&["convert", &two, "--format", format]), Vec::<String>::new(), "{format}");
        // Filters select stacks.
        assert_eq!(warnings(&["stacks", &one, "--focus", "a", "--format", format]), Vec::<String>::new(), "{format}");
    }
}

/// Numbers leave a shortened text last: after the legends, the heads of columns, and the names of the inputs.
#[test]
fn small_budgets_show_numbers_before_decoration() {
    let [base, new] = story();
    let heap = corpus("series/heap-*.pb.gz");
    let goroutines = corpus("series/goroutine-*.pb.gz");
    let rules = ["--fail-on", "total>+5%", "--fail-on", "cum:any>+20%"];
    for budget in (60..=400).step_by(20).map(|budget: usize| budget.to_string()) {
        let text = |args: &[&str]| {
            let output = run(&[args, &["--budget", &budget]].concat());
            String::from_utf8(output.stdout).unwrap()
        };
        // Heads and legends need a row.
        let top = text(&["top", &base, &new]);
        assert!(top.starts_with("cpu (nanoseconds): 1.90s -> 2.93s"), "{budget}: {top}");
        assert!(!top.contains("flat: base") || top.contains("indexbytebody"), "{budget}: {top}");
        assert!(!top.contains("growth is") || top.lines().count() > 7, "{budget}: {top}");
        for (pattern, rows, frame) in [(&heap, "movers", "main.keep"), (&goroutines, "shifts", "gopark")] {
            let series = text(&["series", pattern, "--rows", rows]);
            assert!(!series.starts_with("12 builds") || series.contains(frame), "{budget}: {series}");
            assert!(!series.contains("before") || series.contains(frame), "{budget}: {series}");
        }
        // A rule on the total shows its values with its name, and the extent of a rule comes after findings.
        let check = text(&[&["check", &base, &new][..], &rules].concat());
        assert!(!check.contains("total>+5%  cpu") || check.contains("1.90s -> 2.93s  +1.03s"), "{budget}: {check}");
        assert!(!check.contains(" compared") || check.contains("0.20s -> 1.68s"), "{budget}: {check}");
    }
}
