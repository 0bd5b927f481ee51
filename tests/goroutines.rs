//! Tests of goroutine dumps: all forms that one Go process wrote (`tests/producers/goroutines`). The text of `debug=2`
//! and of SIGQUIT must give the same content as the protobuf form.

use std::collections::BTreeMap;
use std::sync::Arc;

use pprofdiff::samples::{Label, LabelValue, Sample};
use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort};
use pprofdiff_explain::ExplainOptions;

use crate::oracle;
use crate::synthetic;

fn open(name: &str) -> Profile {
    pprofdiff::open(oracle::corpus().join("goroutines").join(name), &LoadOptions::default()).unwrap()
}

fn read(text: &str) -> Profile {
    pprofdiff::from_bytes("in", text.as_bytes(), &LoadOptions::default()).unwrap()
}

/// Returns the frames of a sample from the root: functions with files and lines.
fn frames(p: &Profile, sample: Sample<'_>) -> Vec<String> {
    let mut frames = Vec::new();
    sample.for_each_location(|l| {
        for n in p.locations().lines(l) {
            let f = p.locations().line_function[n as usize] as usize;
            let (name, file) = (p.text(p.functions().name[f]), p.text(p.functions().file[f]));
            frames.push(format!("{name} {file}:{}", p.locations().line_number[n as usize]));
        }
    });
    frames.reverse();
    frames
}

fn labels(p: &Profile, sample: Sample<'_>) -> Vec<String> {
    let text = |label: Label| match label.value {
        LabelValue::Text(value) => format!("{}={}", p.text(label.key), p.text(value)),
        LabelValue::Number(value, unit) => format!("{}={value}{}", p.text(label.key), p.text(unit)),
    };
    sample.labels().map(text).collect()
}

/// Returns each stack with its label `tenant` and the sum of a sample type. Removes content that only some forms print:
/// frames of the runtime at both ends, type arguments, and the stack of the goroutine that writes the profile. The
/// middle of a deep stack becomes a single frame.
fn stacks(p: &Profile, kind: &str) -> BTreeMap<String, i64> {
    let column = p.sample_types().iter().position(|(name, _)| name == kind).unwrap();
    let mut sums = BTreeMap::new();
    for sample in p.samples() {
        let mut frames = frames(p, sample);
        let is_runtime = |f: &String| f.starts_with("runtime.") || f.starts_with("time.Sleep");
        let first = frames.iter().position(|f| !is_runtime(f)).unwrap_or(0);
        frames.drain(..first);
        frames.truncate(frames.iter().rposition(|f| !is_runtime(f)).map_or(0, |last| last + 1));
        frames.iter_mut().for_each(|f| *f = f.replace("[go.shape.string]", "[...]"));
        if frames.first().is_some_and(|f| f.starts_with("main.main ")) {
            frames.truncate(1);
            frames[0] = "main.main".to_owned();
        }
        frames.retain(|f| f != "[frames elided] :0");
        frames.dedup();
        let tenant = labels(p, sample).into_iter().find(|l| l.starts_with("tenant=")).unwrap_or_default();
        *sums.entry(format!("{}|{tenant}", frames.join("|"))).or_default() += sample.value(column);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// The state of a goroutine is a consequence of what the goroutine does, so it is no cause.
#[test]
fn the_state_of_goroutines_is_no_cause() {
    let [base, new] = ["fixed.sigquit.txt.gz", "leaking.sigquit.txt.gz"].map(open);
    let diff = Diff::new(&[Arc::new(base)], &[Arc::new(new)]).unwrap();
    let e = pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default()).unwrap();
    assert!(!e.causes.is_empty() && e.causes.iter().all(|cause| cause.label.is_none()), "{:?}", e.causes);
}

#[test]
fn all_forms_of_one_dump_have_the_same_stacks_and_counts() {
    for (side, n_goroutines, n_leaks) in [("leaking", 14, 5), ("fixed", 9, 0)] {
        let all = stacks(&open(&format!("{side}.goroutine.pb.gz")), "goroutine");
        assert_eq!(all.values().sum::<i64>(), n_goroutines);
        for form in ["goroutine.debug2.txt.gz", "goroutineleak.debug2.txt.gz", "sigquit.txt.gz"] {
            let name = format!("{side}.{form}");
            oracle::assert_same(&stacks(&open(&name), "goroutine"), &all, &name);
        }
        let leaks = stacks(&open(&format!("{side}.goroutineleak.pb.gz")), "goroutineleak");
        assert_eq!(leaks.values().sum::<i64>(), n_leaks);
        oracle::assert_same(
            &stacks(&open(&format!("{side}.goroutineleak.debug2.txt.gz")), "goroutineleak"),
            &leaks,
            side,
        );
    }
}

/// The text of `debug=1` has `runtime.(unnamed)` for leaf frames that Go omits.
#[test]
fn a_dump_compares_with_every_other_form_of_the_same_process() {
    for kind in ["goroutine", "goroutineleak"] {
        for side in ["leaking", "fixed"] {
            let forms = ["pb.gz", "debug1.txt.gz", "debug2.txt.gz"];
            let profiles: Vec<Profile> = forms.iter().map(|form| open(&format!("{side}.{kind}.{form}"))).collect();
            let total = |p: &Profile| {
                let types = p.sample_types();
                p.total(types.iter().position(|(name, _)| name == kind).unwrap())
            };
            assert_eq!(total(&profiles[1]), total(&profiles[0]), "{side}.{kind} debug=1");
            assert_eq!(total(&profiles[2]), total(&profiles[0]), "{side}.{kind} debug=2");
        }
        // The default sample type of both forms has the name of the endpoint.
        let side = |side: &str| Arc::new(open(&format!("{side}.{kind}.debug2.txt.gz")));
        let diff = Diff::new(&[side("fixed")], &[side("leaking")]).unwrap();
        let top = diff.measure(&Query::default()).unwrap().top(Sort::Cum);
        assert_eq!(top.summary.sample_type, kind);
        let first = top.rows.iter().find(|row| top.frames.name(row.frame) == "main.(*queue[...]).take").unwrap();
        assert_eq!(first.cum.delta(), 3);
    }
}

/// Returns each goroutine's frames from the root, and its labels.
fn rows(text: &str) -> Vec<String> {
    let p = read(text);
    p.samples().map(|s| format!("{} [{}]", frames(&p, s).join("|"), labels(&p, s).join(", "))).collect()
}

#[test]
fn arguments_are_removed_from_functions_and_the_state_becomes_labels() {
    let text = "goroutine 18 [chan receive (leaked), 12 minutes, locked to thread, synctest bubble 3]:\n\
        main.wait(...)\n\t/src/a b.go:7\n\
        main.(*T[...]).M(0xc000012345, {0x1, 0x2?, ...})\n\t/src/main.go:8 +0x19\n\
        created by main.(*T[...]).Start.func1 in goroutine 1\n\t/src/main.go:9 +0x333\n\n\
        goroutine 19 gp=0xc000002380 m=3 mp=0xc1 [select (no cases) (scan)]:\n\
        runtime.gopark(0x0?)\n\t/go/proc.go:424 +0xce fp=0xc0 sp=0xc1 pc=0x46d30e\n\
        main.main.gowrap1()\n\t/src/main.go:1 +0x1 fp=0xc0 sp=0xc1 pc=0x46d30e\n\
        runtime.goexit({})\n\t/go/asm.s:1 +0x1\n";
    let expected = [
        "main.(*T[...]).M /src/main.go:8|main.wait /src/a b.go:7 [state=chan receive, locked=to thread, leaked=true, \
         created by=main.(*T[...]).Start.func1, minutes=12minutes, bubble=3]",
        "runtime.gopark /go/proc.go:424 [state=select (no cases)]",
    ];
    assert_eq!(rows(text), expected);
    assert_eq!(rows(&text.replace('\n', "\r\n")), expected);
    // An inlined function is a line of its caller's location, as in Go's profile.
    let p = read(text);
    assert_eq!(p.locations().lines(0).len(), 2);
    assert_eq!(p.total(1), Some(1), "one goroutine leaks");
}

#[test]
fn a_crash_is_read_without_the_text_around_its_goroutines() {
    let text = "2026/01/02 listening\npanic: boom (leaked)\n\n[signal SIGSEGV: segmentation violation]\n\n\
        goroutine 0 gp=0x5 m=0 mp=0x6 [idle]:\nruntime.futex()\n\t/go/s.s:5 +0x21\n\n\
        goroutine 1 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:7 +0x1\nmain.main()\n\t/src/main.go:3 +0x1\n\n\
        goroutine 2 [force gc (idle)]:\nruntime.gopark()\n\t/go/proc.go:4 +0xc\ncreated by runtime.init.7 in goroutine 1\n\t/go/proc.go:3 +0x1\n\n\
        goroutine 5 [finalizer wait]:\nmain.close()\n\t/src/main.go:9 +0x1\nruntime.runFinalizers()\n\t/go/mfinal.go:2 +0x1\n\
        created by runtime.createfing\n\t/go/mfinal.go:1 +0x1\n\n\
        runtime stack:\nruntime.throw()\n\t/go/panic.go:1 +0x1\n\nrax    0x0\nrip    0x45e1e1\n\n\
        goroutine 7 [running]:\n\tgoroutine running on other thread; stack unavailable\ncreated by main.main\n\t/src/main.go:5 +0x1\n\n\
        goroutine 8 [running]:\n\tgoroutine running on other thread; stack unavailable\n\n-----\n\n\
        goroutine 8 [running]:\nmain.spin()\n\t/src/main.go:6 +0x1\nexit status 2\n";
    let expected = [
        "main.main /src/main.go:3|runtime.gopanic /go/panic.go:7 [state=running]",
        "runtime.runFinalizers /go/mfinal.go:2|main.close /src/main.go:9 [state=finalizer wait, created by=runtime.createfing]",
        "main.spin /src/main.go:6 [state=running]",
        "[stack unavailable] :0 [state=running, created by=main.main]",
    ];
    assert_eq!(rows(text), expected);
    assert_eq!(read(text).sample_types().len(), 1, "the message of a panic is no leak");
}

#[test]
fn elided_and_foreign_frames_have_stable_names() {
    let text = |elided: &str, address: &str| {
        format!(
            "goroutine 1 [syscall]:\nnon-Go function at pc={address}\nmain.f(0x1)\n\t/a.go:1 +0x1\n{elided}\nmain.g(0x1)\n\t/a.go:2 +0x1\n\
             [originating from goroutine 7]:\nmain.h(...)\n\t/a.go:3 +0x1\ncreated by main.i\n\t/a.go:4 +0x1\n"
        )
    };
    let rows_of = |elided, address| rows(&text(elided, address));
    let expected = ["main.g /a.go:2|[frames elided] :0|main.f /a.go:1|non-Go function :0 [state=syscall]"];
    assert_eq!(rows_of("...22 frames elided...", "0x1"), expected);
    assert_eq!(rows_of("...additional frames elided...", "0xff"), expected);
}

#[test]
fn labels_of_the_program_are_read_with_their_escapes() {
    let text = r#"goroutine 1 [select, 2 minutes labels:{"a]:": "x, \"y\"}", "\t\x1bz\u00e9\U0001f600": ""}]:"#;
    let rows = rows(&format!("{text}\nmain.main()\n\t/a.go:1\n"));
    assert_eq!(rows, ["main.main /a.go:1 [state=select, a]:=x, \"y\"}, minutes=2minutes]"]);
    // A label without a value is ignored. A truncated label ends the list.
    let cut = r#"goroutine 1 [select labels:{"a": "b", "c": "\u12"}]:"#;
    assert_eq!(self::rows(&format!("{cut}\nmain.main()\n\t/a.go:1\n")), ["main.main /a.go:1 [state=select, a=b]"]);
}

#[test]
fn a_repeated_goroutine_counts_once_with_a_note() {
    let one = "goroutine 3 [select]:\nmain.f()\n\t/a.go:1 +0x1\n\n";
    let p = read(&one.repeat(3));
    assert_eq!(p.total(0), Some(1));
    assert!(p.warnings()[0].starts_with("in: 2 goroutines are printed more than once"), "{:?}", p.warnings());
    assert!(read(one).warnings().is_empty());
}

#[test]
fn prose_about_goroutines_is_not_a_dump() {
    for text in
        ["goroutine 1 [running]:\n", "goroutine 1 [running]:\nit was late.\nAnd dark.\n", "a goroutine 1 [x]:\n\tb\n"]
    {
        assert!(pprofdiff::from_bytes("in", text.as_bytes(), &LoadOptions::default()).is_err(), "{text}");
    }
    let options = LoadOptions::default().with_input_format("goroutines").unwrap();
    let error = pprofdiff::from_bytes("in", b"panic: boom\n", &options).unwrap_err();
    assert!(error.to_string().contains("has no goroutine; a goroutine begins with a line such as"), "{error}");
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_truncated_dump_has_the_goroutines_before_the_end() {
    let bytes = std::fs::read(oracle::corpus().join("goroutines/fixed.goroutineleak.debug2.txt.gz")).unwrap();
    let whole = oracle::gunzip(&bytes);
    let options = LoadOptions::default().with_input_format("goroutines").unwrap();
    let mut last = 0;
    for end in 0..whole.len() {
        // A text that ends within the first goroutine's line is not a dump.
        let Ok(p) = pprofdiff::from_bytes("in", &whole[..end], &options) else {
            assert_eq!(last, 0, "{end}");
            continue;
        };
        let total = p.total(0).unwrap();
        assert!((last..=last + 1).contains(&total), "{end}: {last} -> {total}");
        last = total;
    }
    assert_eq!(last, 9);
}

#[test]
fn different_forms_of_one_dump_have_equal_cum_and_a_warning() {
    let side = |form: &str| Arc::new(open(&format!("leaking.goroutine{form}")));
    let warnings = |base: &str, new: &str| {
        let diff = Diff::new(&[side(base)], &[side(new)]).unwrap();
        let measure = diff.measure(&Query::default()).unwrap();
        for row in measure.top(Sort::Cum).rows {
            let name = measure.frames().name(row.frame);
            // The forms write type arguments differently.
            let is_own = name.starts_with("main.") && !name.contains('[');
            assert!(!is_own || row.cum.delta() == 0, "{name}");
        }
        let all = &measure.summary().warnings;
        all.iter().filter(|warning| warning.contains("runtime.gopark")).cloned().collect::<Vec<_>>()
    };
    let [binary, brief, words] = [".pb.gz", ".debug1.txt.gz", ".debug2.txt.gz"];
    for text in [brief, words] {
        assert!(warnings(text, binary)[0].starts_with("the base lacks"), "{text}");
        assert!(warnings(binary, text)[0].starts_with("the new side lacks"), "{text}");
    }
    for form in [binary, brief, words] {
        assert_eq!(warnings(form, form), [] as [&str; 0], "{form}");
    }
    // A side without goroutines, such as a profile of leaks before the first leak, has no form.
    let empty = synthetic::profile(&synthetic::stacks(&[("goroutine", "count")], &[]));
    for sides in [[empty.clone(), side(binary)], [side(binary), empty]] {
        let [base, new] = sides;
        let diff = Diff::new(&[base], &[new]).unwrap();
        let warnings = diff.measure(&Query::default()).unwrap().summary().warnings.clone();
        assert!(!warnings.iter().any(|warning| warning.contains("lacks runtime.gopark")), "{warnings:?}");
    }
}
