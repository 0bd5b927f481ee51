//! Tests of estimated stacks: sums stay exact, for random programs and for graphs with too many or too long stacks.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::kit::mutations::Random;

/// The sums that stacks must keep. Places are numbers of functions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    own: BTreeMap<u32, i64>,
    inclusive: BTreeMap<u32, i64>,
    /// Costs by caller and callee, with each stack once.
    calls: BTreeMap<(u32, u32), i64>,
    counts: BTreeMap<(u32, u32), i64>,
}

impl Facts {
    /// Adds a stack, leaf first, with a cost and a count of calls of its leaf.
    fn add(&mut self, stack: &[u32], cost: i64, count: i64) {
        if cost != 0 {
            *self.own.entry(stack[0]).or_default() += cost;
            for &function in &stack.iter().copied().collect::<BTreeSet<_>>() {
                *self.inclusive.entry(function).or_default() += cost;
            }
            let pairs: BTreeSet<_> = stack.windows(2).map(|pair| (pair[1], pair[0])).collect();
            pairs.into_iter().for_each(|pair| *self.calls.entry(pair).or_default() += cost);
        }
        if count != 0 {
            *self.counts.entry((stack[1], stack[0])).or_default() += count;
        }
    }
}

fn add_functions(graph: &mut CallGraph, n: u32) {
    for function in 0..n {
        assert_eq!(graph.function(0, function).unwrap(), function);
    }
}

fn stacks(graph: CallGraph, balance: Balance) -> (Facts, Estimate, usize) {
    let (mut facts, mut n) = (Facts::default(), 0);
    let estimate = graph.stacks(balance, |group, places, values| {
        assert_eq!(group, 0);
        assert!(values.iter().all(|&value| value >= 0), "{values:?}");
        n += 1;
        facts.add(places, values[0], values[1]);
        Ok(())
    });
    (facts, estimate.unwrap(), n)
}

/// Returns a graph whose functions have the same own cost and call later functions.
fn layers(functions: u32, own: i64, callees: impl Fn(u32) -> Vec<u32>) -> CallGraph {
    let mut graph = CallGraph::new(1, 1, 0);
    let mut cost = vec![0; functions as usize];
    add_functions(&mut graph, functions);
    // A function is called once by each caller, so its cost is divided evenly among them.
    let mut callers = vec![0i64; functions as usize];
    (0..functions).for_each(|function| callees(function).iter().for_each(|&callee| callers[callee as usize] += 1));
    for function in (0..functions).rev() {
        graph.add_own(function, function, &[own]).unwrap();
        cost[function as usize] += own;
        for callee in callees(function) {
            let part = cost[callee as usize] / callers[callee as usize];
            callers[callee as usize] -= 1;
            cost[callee as usize] -= part;
            graph.add_call((function, function, callee), &[1], &[part], &[]).unwrap();
            cost[function as usize] += part;
        }
    }
    graph
}

#[test]
fn sums_of_random_programs_stay_exact() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let n = 2 + random.below(9) as u32;
        let has_recursion = seed % 2 == 0;
        let mut expected = Facts::default();
        let mut graph = CallGraph::new(1, 1, 0);
        add_functions(&mut graph, n);
        // Runs a program: calls, returns and costs. Calls with a cost of their own are recorded when they return.
        let (mut stack, mut entered, mut now) = (vec![0u32], vec![0i64], 0i64);
        for _ in 0..200 {
            let top = *stack.last().unwrap();
            match random.below(3) {
                0 if stack.len() < 8 => {
                    let callee = 1 + random.below(u64::from(n) - 1) as u32;
                    if callee > top || has_recursion {
                        stack.push(callee);
                        entered.push(now);
                    }
                }
                1 if stack.len() > 1 => return_from(&mut stack, &mut entered, now, &mut graph, &mut expected),
                _ => {
                    let cost = random.below(100) as i64;
                    now += cost;
                    graph.add_own(top, top, &[cost]).unwrap();
                    let leaf_first: Vec<u32> = stack.iter().rev().copied().collect();
                    expected.add(&leaf_first, cost, 0);
                }
            }
        }
        while stack.len() > 1 {
            return_from(&mut stack, &mut entered, now, &mut graph, &mut expected);
        }
        let (found, estimate, _) = stacks(graph, Balance::Exact);
        assert_eq!((&found.own, &found.counts), (&expected.own, &expected.counts), "{seed}");
        assert_eq!(estimate.left_out, [0], "{seed}");
        assert!(!estimate.has_remainder && !estimate.is_lowered, "{seed}");
        assert_eq!(found.inclusive.get(&0), expected.inclusive.get(&0), "{seed}");
        if !has_recursion {
            assert_eq!(found, expected, "{seed}");
        }
    }
}

/// Ends a call. As callgrind and cProfile do, only the outermost call of a pair has an inclusive cost.
fn return_from(stack: &mut Vec<u32>, entered: &mut Vec<i64>, now: i64, graph: &mut CallGraph, expected: &mut Facts) {
    let pair = (stack[stack.len() - 2], stack[stack.len() - 1]);
    let is_nested = stack[..stack.len() - 1].windows(2).any(|other| (other[0], other[1]) == pair);
    let cost = if is_nested { 0 } else { now - entered[entered.len() - 1] };
    graph.add_call((pair.0, pair.0, pair.1), &[1], &[cost], &[]).unwrap();
    *expected.counts.entry(pair).or_default() += 1;
    stack.pop();
    entered.pop();
}

#[test]
fn costs_are_divided_in_proportion_to_calls() {
    // `0` calls `1` and `2`, which call `3` for 300 and 100; `3` calls `4`.
    let mut graph = CallGraph::new(1, 1, 0);
    add_functions(&mut graph, 5);
    for (call, count, cost) in
        [((0, 1), 1, 300), ((0, 2), 1, 100), ((1, 3), 30, 300), ((2, 3), 10, 100), ((3, 4), 8, 200)]
    {
        graph.add_call((call.0, call.0, call.1), &[count], &[cost], &[]).unwrap();
    }
    graph.add_own(3, 3, &[200]).unwrap();
    graph.add_own(4, 4, &[200]).unwrap();
    let mut rows = Vec::new();
    let estimate = graph.stacks(Balance::Exact, |_, places, values| {
        rows.push((places.iter().rev().map(u32::to_string).collect::<String>(), values.to_vec()));
        Ok(())
    });
    rows.sort();
    let expected: Vec<(String, Vec<i64>)> =
        [("01", [0, 1]), ("013", [150, 30]), ("0134", [150, 6]), ("02", [0, 1]), ("023", [50, 10]), ("0234", [50, 2])]
            .map(|(stack, values)| (stack.to_owned(), values.to_vec()))
            .into();
    assert_eq!(rows, expected);
    let estimate = estimate.unwrap();
    assert_eq!((estimate.shared, estimate.recursive, estimate.functions), (1, 0, 5));
    assert!(
        estimate.notes("Ir", "").join("").contains("1 of 5 functions have several callers; recursive functions: 0")
    );
}

#[test]
fn exponentially_many_stacks_stay_exact_within_a_budget() {
    // Forty pairs of functions; each function calls both of the next pair: 2^40 stacks.
    let callees = |function: u32| -> Vec<u32> {
        let next = (function / 2 + 1) * 2;
        if next < 80 { vec![next, next + 1] } else { Vec::new() }
    };
    let graph = layers(80, 1_000_000_000, callees);
    let (facts, estimate, n) = stacks(graph.clone(), Balance::Exact);
    assert!(estimate.has_remainder && estimate.left_out == [0], "{estimate:?}");
    assert!(n < 100_000, "{n}");
    assert!(facts.own.values().all(|&cost| cost == 1_000_000_000) && facts.own.len() == 80, "{facts:?}");
    assert!(facts.counts.values().all(|&count| count == 1) && facts.counts.len() == 156);
    assert_eq!(facts.inclusive[&0] + facts.inclusive[&1], 80_000_000_000);
    for (i, &(caller, _, callee)) in graph.calls.values.iter().enumerate() {
        assert_eq!(facts.calls[&(caller, callee)], graph.call_numbers[3 * i + 1], "{caller} {callee}");
    }
    assert!(estimate.notes("Ir", "")[1].contains("light stacks are not in proportion"));
}

#[test]
fn callers_of_very_deep_stacks_are_left_out() {
    let graph = layers(20_000, 3, |function| if function < 19_999 { vec![function + 1] } else { Vec::new() });
    let (mut own, mut left_out, mut frames) = (0, 0, 0);
    let estimate = graph.stacks(Balance::Exact, |_, places, values| {
        own += values[0];
        left_out += if places.last() == Some(&LEFT_OUT) { values[0] } else { 0 };
        frames += places.len();
        Ok(())
    });
    let estimate = estimate.unwrap();
    assert_eq!((own, estimate.left_out), (60_000, vec![left_out]));
    assert!(left_out > 0 && left_out < 60_000, "{left_out}");
    assert!(frames < 6 << 20, "{frames}");
}

#[test]
fn cycles_keep_own_costs_and_counts() {
    // A hundred functions call each other; function 100 calls the first, and each calls function 101.
    let mut graph = CallGraph::new(1, 1, 0);
    add_functions(&mut graph, 102);
    let mut expected = Facts::default();
    for caller in 0..100 {
        for callee in (0..100).filter(|&callee| callee != caller) {
            graph.add_call((caller, caller, callee), &[2], &[1_000_000], &[]).unwrap();
            expected.counts.insert((caller, callee), 2);
        }
        graph.add_call((caller, caller, 101), &[3], &[7], &[]).unwrap();
        graph.add_own(caller, caller, &[caller.into()]).unwrap();
        expected.counts.insert((caller, 101), 3);
        expected.own.insert(caller, caller.into());
    }
    graph.add_own(101, 101, &[700]).unwrap();
    graph.add_call((100, 100, 0), &[1], &[4950 + 700], &[]).unwrap();
    expected.counts.insert((100, 0), 1);
    expected.own.insert(101, 700);
    expected.own.remove(&0);
    let (facts, estimate, _) = stacks(graph, Balance::Exact);
    assert_eq!((facts.own, facts.counts), (expected.own, expected.counts));
    assert_eq!((facts.inclusive[&100], facts.inclusive[&101], estimate.recursive), (5650, 700, 100));
}

#[test]
fn calls_that_cost_more_than_functions_are_lowered() {
    let mut graph = CallGraph::new(1, 1, 0);
    add_functions(&mut graph, 3);
    graph.add_own(2, 2, &[90]).unwrap();
    graph.add_call((0, 0, 2), &[1], &[100], &[]).unwrap();
    graph.add_call((1, 1, 2), &[1], &[200], &[]).unwrap();
    let (facts, estimate, _) = stacks(graph.clone(), Balance::Exact);
    assert_eq!(facts.calls, [((0, 2), 30), ((1, 2), 60)].into());
    assert!(estimate.is_lowered);
    // As weights, they are divided without a note.
    let (weighed, estimate, _) = stacks(graph, Balance::ByCounts);
    assert_eq!(weighed, facts);
    assert!(!estimate.is_lowered);
}

#[test]
fn too_many_costs_are_refused() {
    let mut graph = CallGraph::new(1000, 1, 0);
    let function = graph.function(0, 0).unwrap();
    let error = (0..).find_map(|place| graph.add_own(function, place, &[1]).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn long_cycles_and_long_functions_take_limited_work() {
    // A cycle of 30,000 functions, and a chain of 3,000 functions to a function with 30,000 lines.
    let mut cycle = CallGraph::new(1, 1, 0);
    add_functions(&mut cycle, 30_001);
    for function in 0..30_000u32 {
        cycle.add_call((function, function, (function + 1) % 30_000), &[1], &[1_000_000], &[]).unwrap();
        cycle.add_own(function, function, &[5]).unwrap();
    }
    cycle.add_call((30_000, 30_000, 0), &[1], &[150_000], &[]).unwrap();
    let mut chain = CallGraph::new(1, 1, 0);
    add_functions(&mut chain, 3_001);
    (0..30_000).for_each(|line| chain.add_own(3_000, 5_000 + line, &[5]).unwrap());
    (0..3_000).for_each(|function| chain.add_call((function, function, function + 1), &[1], &[150_000], &[]).unwrap());
    for (graph, total, calls) in [(cycle, 150_000, 30_001), (chain, 150_000, 3_000)] {
        let (mut cost, mut count, mut frames) = (0, 0, 0);
        let estimate = graph.stacks(Balance::Exact, |_, places, values| {
            (cost, count, frames) = (cost + values[0], count + values[1], frames + places.len());
            Ok(())
        });
        assert!(estimate.unwrap().left_out[0] > 0);
        assert_eq!((cost, count), (total, calls));
        assert!(frames < 6 << 20, "{frames}");
    }
}
