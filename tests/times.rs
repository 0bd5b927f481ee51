//! Tests that durations and times have one grammar: in windows of recordings (also of the Python package), in addresses
//! of servers, and in options of the command.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use pprofdiff::TimeWindow;
use pprofdiff::input::ServerQuery;

/// 2026-03-01T12:00:00Z in milliseconds since 1970.
const NOW: i64 = 1_772_366_400_000;

/// Durations and their nanoseconds.
const DURATIONS: [(&str, u64); 14] = [
    ("1500ns", 1_500),
    ("250us", 250_000),
    ("500ms", 500_000_000),
    ("30s", 30_000_000_000),
    ("1.5m", 90_000_000_000),
    ("1m30s", 90_000_000_000),
    ("30s1m", 90_000_000_000),
    ("1.5m30s", 120_000_000_000),
    ("2h", 7_200_000_000_000),
    ("1d", 86_400_000_000_000),
    ("0.5w", 302_400_000_000_000),
    ("PT1M30S", 90_000_000_000),
    ("1 hour 30 minutes", 5_400_000_000_000),
    ("01:30:00", 5_400_000_000_000),
];

const NO_DURATIONS: [&str; 9] = ["30", "1x", "1.s", ".5s", "1h30", "1mo", "-1s", "1s ago", "1 s é"];

/// Times and their milliseconds since 1970.
const TIMES: [(&str, i64); 10] = [
    ("2026-03-01T12:00:00Z", NOW),
    ("2026-03-01t12:00:00z", NOW),
    ("2026-03-01 12:00:00Z", NOW),
    ("2026-03-01T13:30:00+01:30", NOW),
    ("2026-03-01T13:00:00+0100", NOW),
    ("20260301T120000Z", NOW),
    ("2026-03-01T12:00:00.250Z", NOW + 250),
    ("2026-03-01T12:00:00.2500000000009Z", NOW + 250),
    ("1772366400", NOW),
    ("1772366400250", NOW + 250),
];

const NO_TIMES: [&str; 6] = [
    "2026-03-01",
    "2026-03-01T12:00:00",
    "2026-02-29T12:00:00Z",
    "2026-13-01T12:00:00Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T12:00:00+1:00",
];

const LEAP_SECONDS: [&str; 2] = ["2016-12-31T23:59:60Z", "2016-12-31T23:59:60.5+00:00"];

/// Returns the error of a window, or an empty text.
fn window_error(window: &str) -> String {
    window.parse::<TimeWindow>().map_or_else(|e| e.to_string(), |_| String::new())
}

/// Returns the error of a server's address, or an empty text.
fn server_error(from: &str, until: &str) -> String {
    let address = format!("pyroscope://h?from={from}&until={until}");
    ServerQuery::parse(&address, NOW + 1000).map_or_else(|e| e.to_string(), |_| String::new())
}

/// Returns the error of a command whose files do not exist.
fn command_error(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let output = command.args(args).args(["no-such-base", "no-such-new"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Checks with `error`, which gets the ends of a range, that two texts stand for the same time: no range from one to
/// the other is valid.
fn assert_equal(error: impl Fn(&str, &str) -> String, text: &str, number: &str, problem: &str) {
    for (from, until) in [(text, number), (number, text)] {
        let error = error(from, until);
        assert!(error.contains(problem), "{from} until {until}: {error:?}");
    }
}

#[test]
fn every_place_accepts_the_same_durations() {
    for (text, nanos) in DURATIONS {
        let number = format!("{nanos}ns");
        let window = |from: &str, until: &str| window_error(&format!("{from}..{until}"));
        assert_equal(window, text, &number, "must end after it begins");
        let server = |from: &str, until: &str| server_error(&format!("-{from}"), &format!("now-{until}"));
        assert_equal(server, text, &number, "is not before until");
        assert!(command_error(&["--timeout", text]).contains("no-such-base: "), "{text}");
        assert!(command_error(&["delta", "-o", "x", "--every", text]).contains("URL"), "{text}");
    }
    assert_eq!(window_error("0..1s") + &server_error("-1s", "-0"), "");
    assert!(command_error(&["--timeout", "0"]).contains("must be greater than zero"));
}

#[test]
fn every_place_refuses_the_same_durations_and_lists_the_accepted_ones() {
    for text in NO_DURATIONS {
        let error = window_error(&format!("{text}.."));
        assert!(error.contains(&format!("{text}..")) && error.contains("10s..25s, ..1m30s"), "{text}: {error:?}");
        let error = server_error(&format!("-{text}"), "now");
        assert!(error.contains(&format!("\"-{text}\" is not a time; write now, -1h")), "{text}: {error:?}");
        for (verb, option) in [(&[][..], "--timeout"), (&["delta", "-o", "x"], "--every"), (&["bench"], "--max-time")] {
            let error = command_error(&[verb, &[&format!("{option}={text}")]].concat());
            let accepted = "is not a duration; write 30s, 1.5m, 500ms or 1d12h (units: ns, us, ms, s, m, h, d, w)";
            assert!(error.contains(&format!("{text:?} {accepted}")), "{text}: {error:?}");
        }
    }
}

#[test]
fn every_place_accepts_the_same_times() {
    let commit_time = |text: &str| command_error(&["check", "--baseline", "no-such-folder", "--commit-time", text]);
    for (text, millis) in TIMES {
        let number = millis.to_string();
        let window = |from: &str, until: &str| window_error(&format!("{from}..{until}"));
        assert_equal(window, text, &number, "must end after it begins");
        assert_equal(server_error, text, &number, "is not before until");
        assert!(commit_time(text).contains("no-such-"), "{text}: {}", commit_time(text));
    }
    assert!(commit_time("now-1d").contains("no-such-"), "{}", commit_time("now-1d"));
    for text in NO_TIMES {
        assert!(window_error(&format!("{text}..")).contains("2026-11-25T10:00:00Z"), "{text}");
        let problem = format!("{text:?} is not a time; write now, -1h, 2026-03-01T12:00:00Z, or seconds since 1970");
        assert!(server_error(text, "now").contains(&problem), "{text}");
        assert!(commit_time(text).contains(&problem), "{text}: {}", commit_time(text));
    }
    for text in LEAP_SECONDS {
        let problem = "is a leap second, which Unix time does not have; write the second before or after it";
        let problem = format!("{text:?} {problem}");
        for error in [window_error(&format!("{text}..")), server_error(text, "now"), commit_time(text)] {
            assert!(error.contains(&problem), "{text}: {error:?}");
        }
    }
}
