//! Tests with speedscope files made by hand.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::kit::tree::rows;

fn load(text: &str) -> Result<Profile> {
    crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
}

/// Writes a file with the frames a, b and c, and these profiles.
fn file(profiles: &str) -> String {
    format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{profiles}],
        "shared":{{"frames":[{{"name":"a"}},{{"name":"b","file":"b.py","line":12,"col":null}},{{"name":"c","line":null}}]}}}}"#
    )
}

fn sampled(unit: &str, samples: &str, weights: &str) -> String {
    format!(r#"{{"type":"sampled","name":"{unit}!","unit":"{unit}","samples":{samples},"weights":{weights}}}"#)
}

fn evented(events: &[(&str, &str, u32)]) -> String {
    let event = |(kind, time, frame): &(&str, &str, u32)| format!(r#"{{"type":"{kind}","at":{time},"frame":{frame}}}"#);
    let events: Vec<String> = events.iter().map(event).collect();
    format!(r#"{{"unit":"milliseconds","events":[{}],"type":"evented","endValue":9}}"#, events.join(","))
}

#[test]
fn samples_are_stacks_from_the_root_with_a_weight_each() {
    for (unit, weights, kind, expected) in [
        ("none", "[1,2,4]", "samples/count", [": 2", "a|b b.py:12: 5"]),
        ("bytes", "[1,-2,4]", "space/bytes", [": -2", "a|b b.py:12: 5"]),
        ("nanoseconds", "[1,2.4,4]", "time/nanoseconds", [": 2", "a|b b.py:12: 5"]),
        ("microseconds", "[1,2,4]", "time/nanoseconds", [": 2000", "a|b b.py:12: 5000"]),
        ("milliseconds", "[1,0.002,4]", "time/nanoseconds", [": 2000", "a|b b.py:12: 5000000"]),
        ("seconds", "[0.01,2,0.03]", "time/nanoseconds", [": 2000000000", "a|b b.py:12: 40000000"]),
    ] {
        let p = load(&file(&sampled(unit, "[[0,1],[],[0,1]]", weights))).unwrap();
        assert_eq!(rows(&p), expected, "{unit}");
        let (k, u) = kind.split_once('/').unwrap();
        assert_eq!(p.sample_types(), [(k.to_owned(), u.to_owned())]);
    }
}

#[test]
fn an_event_ends_the_cost_of_the_stack_before_it() {
    let all =
        [("O", "0", 0), ("O", "1.5", 1), ("C", "2", 1), ("O", "2", 1), ("C", "4", 1), ("C", "4", 0), ("O", "5", 2)];
    let p = load(&file(&evented(&all))).unwrap();
    assert_eq!(rows(&p), ["a: 1500000", "a|b b.py:12: 2500000", "c: 4000000"]);
    // With all frames closed, the end of the profile costs nothing.
    let p = load(&file(&evented(&[("O", "1600000000000.25", 2), ("C", "1600000000000.5", 2)]))).unwrap();
    assert_eq!(rows(&p), ["c: 250000"]);
}

#[test]
fn a_frame_that_closes_before_its_callees_closes_them() {
    // dotnet-trace closes b before c, which b calls. In the second file, c also calls b.
    for (events, expected) in [
        (
            vec![("O", "0", 0), ("O", "0", 1), ("O", "0", 2), ("C", "3", 1), ("C", "3", 2), ("C", "4", 0)],
            vec!["a: 1000000", "a|b b.py:12|c: 3000000"],
        ),
        (
            vec![("O", "0", 2), ("O", "0", 1), ("O", "0", 2), ("C", "3", 1), ("C", "3", 2), ("C", "5", 2)],
            vec!["c: 2000000", "c|b b.py:12|c: 3000000"],
        ),
        // The callee's own close event may come later.
        (
            vec![("O", "0", 0), ("O", "0", 1), ("O", "0", 2), ("C", "3", 1), ("C", "4", 2), ("C", "5", 0)],
            vec!["a: 2000000", "a|b b.py:12|c: 3000000"],
        ),
    ] {
        let p = load(&file(&evented(&events))).unwrap();
        assert_eq!(rows(&p), expected);
        let warnings = p.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("1 of 6 events close a frame before"), "{warnings:?}");
    }
}

/// Writes a dotnet-trace file. A thread runs `Main` for 3 ms, 2 of them in managed code, and waits in it for the next
/// 6.
fn dotnet(process: &str, leaf: &str) -> String {
    let frames = [
        process,
        "(Non-Activities)",
        "Threads",
        "Thread (7) (.NET ThreadPool)",
        "Shop!Main()",
        leaf,
        "UNMANAGED_CODE_TIME",
    ];
    let frames: Vec<String> = frames.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
    let open: Vec<_> = (0..5).map(|frame| ("O", "0", frame)).collect();
    let events = [open, vec![("O", "0", 5), ("C", "2", 5), ("O", "3", 6), ("C", "9", 6)]].concat();
    format!(r#"{{"shared":{{"frames":[{}]}},"profiles":[{}]}}"#, frames.join(","), evented(&events))
}

#[test]
fn dotnet_trace_processes_and_threads_become_labels_and_leaves_become_sample_types() {
    let p = load(&dotnet("Process64 Shop (36060) (36060) Args: ", "CPU_TIME")).unwrap();
    let labels = "process=Shop pid=36060 tid=7 thread=.NET ThreadPool";
    let expected = ["1000000 0", "2000000 2000000", "6000000 0"];
    assert_eq!(rows(&p), expected.map(|values| format!("Shop!Main() {labels}: {values}")));
    let types = ["wall", "cpu"].map(|kind| (kind.to_owned(), "nanoseconds".to_owned()));
    assert_eq!((p.sample_types(), p.default_sample_type()), (types.to_vec(), Some(1)));
    // Without CPU time, the default is the type that has values.
    let p = load(&dotnet("Process64 Shop (36060) (36060) Args: ", "UNMANAGED_CODE_TIME")).unwrap();
    assert_eq!(p.default_sample_type(), Some(0));
    // In files of other tools, functions may have these names.
    for other in [dotnet("main", "CPU_TIME"), dotnet("Process64 Shop (1)", "f").replace("UNMANAGED_CODE_TIME", "g")] {
        assert_eq!(load(&other).unwrap().sample_types(), [("time".to_owned(), "nanoseconds".to_owned())]);
    }
}

#[test]
fn profiles_with_one_unit_add_up_and_other_units_become_types() {
    let profiles =
        [sampled("none", "[[0]]", "[3]"), sampled("seconds", "[[0]]", "[1]"), evented(&[("O", "0", 0), ("C", "1", 0)])];
    let p = load(&file(&profiles.join(","))).unwrap();
    assert_eq!(rows(&p), ["a profile=none!: 3 0", "a profile=seconds!: 0 1000000000", "a: 0 1000000"]);
    let typed = |text: &str| {
        let options = LoadOptions::default().with_input_type(text).unwrap();
        crate::from_bytes("in", file(&profiles.join(",")).as_bytes(), &options).unwrap().sample_types()
    };
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(kind, unit)| (kind.to_owned(), unit.to_owned()));
    assert_eq!(typed("gas/units"), pairs([("gas", "units"), ("time", "nanoseconds")]));
    assert_eq!(typed("samples/count"), pairs([("samples", "count"), ("time", "nanoseconds")]));
}

#[test]
fn the_note_of_our_writer_sets_the_sample_type_and_the_sides() {
    let ours = |about: &str, profiles: &str| file(profiles).replacen('{', &format!("{{\"pprofdiff\":{about},"), 1);
    let about = r#"{"sample_type":"delay","unit":"seconds","two_sided":false,"more":[1]}"#;
    let p = load(&ours(about, &sampled("seconds", "[[0]]", "[3]"))).unwrap();
    assert_eq!(
        (rows(&p), p.sample_types()),
        (vec!["a: 3".to_owned()], vec![("delay".to_owned(), "seconds".to_owned())])
    );
    let about = r#"{"sample_type":"cpu","unit":"nanoseconds","two_sided":true}"#;
    let sides = [sampled("nanoseconds", "[[0],[1]]", "[3,4]"), sampled("nanoseconds", "[[0]]", "[5]")];
    let p = load(&ours(about, &sides.join(","))).unwrap();
    assert!(p.is_diff());
    assert_eq!(rows(&p), [" pprof::base=true: 0", "a pprof::base=true: -3", "a: 5", "b b.py:12 pprof::base=true: -4"]);
    let empty = [sampled("nanoseconds", "[]", "[]"), sides[1].clone()];
    assert!(load(&ours(about, &empty.join(","))).unwrap().is_diff());
    let error = load(&ours(about, &sides[0])).unwrap_err();
    assert!(error.to_string().contains("it should have two sides, but there are 1 profiles"), "{error}");
}

#[test]
fn speedscope_is_recognised_by_its_schema_or_its_frames() {
    for (text, is_speedscope) in [
        (r#"{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json","sha"#, true),
        (r#"{"$schema":"https:\/\/www.speedscope.app\/file-format-schema.json"}"#, true),
        (r#"{"shared":{"frames":[{"name":"a"}"#, true),
        (r#"{"$schema":"https://json-schema.org/draft-07/schema"}"#, false),
        (r#"{"a":{"shared":{"frames":[]}}}"#, false),
        (r#"[{"shared":{"frames":[]}}]"#, false),
    ] {
        assert_eq!((SPEEDSCOPE.recognises)(text.as_bytes()), is_speedscope, "{text}");
    }
}

#[test]
fn errors_name_the_profile_and_the_record_in_it() {
    let single = |kind: &str, samples: &str, weights: &str| file(&sampled(kind, samples, weights));
    for (text, words) in [
        (single("none", "[[3]]", "[1]"), "profile 0: sample 0: unknown frame 3: there are 3"),
        (single("none", "[[-1]]", "[1]"), "unknown frame -1"),
        (single("none", "[[0],[0]]", "[1]"), "profile 0: sample 1: `weights` has no weight for this sample"),
        (single("none", "[[0]]", "[1,2]"), "`weights` has more elements than `samples`"),
        (single("none", "[[0]]", "[0.5]"), "0.5 has a fraction"),
        (single("bytes", "[[0]]", "[0.5]"), "0.5 has a fraction"),
        (single("seconds", "[[0]]", "[1e10]"), "1e10 is more than an int64 holds"),
        (single("none", "[[0],[0]]", "[9223372036854775807,1]"), "add up to more than an int64 holds"),
        (single("hours", "[[0]]", "[1]"), "\"hours\" is not a unit of speedscope"),
        (single("none", "[0]", "[1]"), "sample 0: expected an array, not '0'"),
        (file(&evented(&[("O", "0", 0), ("C", "1", 1)])), "event 1: it closes a frame that is not open"),
        (file(&evented(&[("C", "0", 0)])), "event 0: it closes a frame"),
        (file(&evented(&[("O", "5", 0), ("C", "4", 0)])), "event 1: it is earlier than the previous event"),
        (file(&evented(&[("X", "5", 0)])), "event 0: its type is neither \"O\" nor \"C\""),
        (file(r#"{"type":"evented","unit":"none","events":[{"type":"O","at":1}]}"#), "event 0: it has no frame"),
        (file(r#"{"type":"evented","unit":"none","events":[{"type":"O","frame":1}]}"#), "it has no time `at`"),
        (file(r#"{"type":"sampled","unit":"none","samples":[]}"#), "profile 0: it has no weights"),
        (file(r#"{"type":"other","unit":"none"}"#), "it has no known type"),
        (file(r#"{"type":"sampled"}"#), "it has no unit"),
        ("{\"shared\":{\"frames\":[]}}".to_owned(), "it has no `profiles`"),
        ("{\"shared\":{\"frames\":[{}]},\"profiles\":[]}".to_owned(), "frame 0: it has no name"),
        ("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}".to_owned(), "it has no `shared`"),
    ] {
        let error = load(&text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let whole = file(&[sampled("none", "[[0]]", "[3]"), evented(&[("O", "0", 0), ("C", "1", 0)])].join(","));
    let options = LoadOptions::default().with_input_format("speedscope").unwrap();
    for end in 1..whole.len() {
        let error = crate::from_bytes("in", &whole.as_bytes()[..end], &options).unwrap_err();
        assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
    }
}
