//! Tests of stacks for other viewers: speedscope and inferno.

use pprofdiff::{Diff, Granularity, Query};
use pprofdiff_report as report;

use super::{hostile_diff, pair};
use crate::oracle;

#[test]
fn other_viewers_read_stacks_with_both_values() {
    for diff in oracle::pairs().iter().map(|n| pair(n)).chain([hostile_diff()]) {
        for granularity in [Granularity::Functions, Granularity::Lines] {
            let view = diff.measure(&Query::default().with_granularity(granularity)).unwrap();
            let stacks = view.stacks(false);
            let mut folded = Vec::new();
            report::folded(&stacks, &mut folded).unwrap();
            let folded = String::from_utf8(folded).unwrap();
            let (mut base, mut new) = (0, 0);
            for line in folded.lines().filter(|line| !line.starts_with("# ")) {
                // Parses a line like other tools: two numbers from the end.
                let (rest, last) = line.rsplit_once(' ').unwrap();
                let (stack, first) = rest.rsplit_once(' ').unwrap();
                assert!(!stack.is_empty());
                base += first.parse::<i64>().unwrap();
                new += last.parse::<i64>().unwrap();
            }
            let sum = |f: fn(&pprofdiff::stacks::StackRow) -> i64| stacks.rows.iter().map(f).sum::<i64>();
            assert_eq!((base, new), (sum(|r| r.weight.base), sum(|r| r.weight.new)));

            let mut scope = Vec::new();
            report::speedscope(&stacks, &mut scope).unwrap();
            let scope: serde_json::Value = serde_json::from_slice(&scope).unwrap();
            let frames = scope["shared"]["frames"].as_array().unwrap();
            for (profile, (name, value)) in
                scope["profiles"].as_array().unwrap().iter().zip([("base", base), ("new", new)])
            {
                let list = |key: &str| profile[key].as_array().unwrap().clone();
                assert_eq!(
                    (&profile["name"], &profile["type"], &profile["endValue"]),
                    (&name.into(), &"sampled".into(), &value.into())
                );
                assert_eq!(list("weights").iter().map(|w| w.as_i64().unwrap()).sum::<i64>(), value);
                assert_eq!(list("samples").len(), list("weights").len());
                for stack in list("samples") {
                    assert!(stack.as_array().unwrap().iter().all(|f| (f.as_u64().unwrap() as usize) < frames.len()));
                }
            }
            assert_eq!(scope["profiles"].as_array().unwrap().len(), 2);
        }
    }
}

#[test]
fn inferno_draws_folded_stacks_of_one_profile_and_of_two() {
    let one = Diff::of_profile(pair("story-cpu").base().next().unwrap()).unwrap();
    for (diff, is_diff) in [(pair("story-cpu"), true), (hostile_diff(), true), (one, false)] {
        let view = diff.measure(&Query::default()).unwrap();
        let mut folded = Vec::new();
        report::folded(&view.stacks(false), &mut folded).unwrap();
        let mut svg = Vec::new();
        let mut options = inferno::flamegraph::Options::default();
        options.min_width = 0.0;
        inferno::flamegraph::from_reader(&mut options, &*folded, &mut svg).unwrap();
        let svg = String::from_utf8_lossy(&svg).into_owned();
        let total = view.summary().total.new;
        let shown = inferno_number(total);
        assert!(
            svg.contains(&format!("<title>all ({shown} samples, 100%")),
            "{shown} is not in {}",
            &svg[svg.len() - 3000..]
        );
        // inferno shows the change of a frame only for two columns.
        assert_eq!(svg.contains("%; +") || svg.contains("%; -"), is_diff);
    }
}

/// Formats a number like inferno: `1,234,567`.
fn inferno_number(v: i64) -> String {
    let digits: Vec<char> = v.to_string().chars().rev().collect();
    let groups: Vec<String> = digits.chunks(3).map(|c| c.iter().collect()).collect();
    groups.join(",").chars().rev().collect()
}
