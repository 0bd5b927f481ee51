//! Matching across builds: names that compilers number are made equal, functions that were renamed, inlined or outlined
//! are found by their neighbours.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::rows::Rows;

/// A rule for names that a build makes up: what of them is replaced, and an example.
struct Rule {
    /// What must be there for the expression to be tried.
    has: &'static str,
    pattern: &'static str,
    with: &'static str,
    /// Before and after.
    #[cfg_attr(not(test), expect(dead_code, reason = "documentation, which a test checks"))]
    example: (&'static str, &'static str),
}

/// Applied in this order.
static RULES: &[Rule] = &[
    Rule {
        has: "::h",
        pattern: r"::h[0-9a-f]{16}$",
        with: "",
        example: ("orders::price::h0123456789abcdef", "orders::price"),
    },
    Rule {
        has: ".",
        pattern: r"(\.(cold|part|constprop|isra|llvm)(\.\d+)*)+$",
        with: "",
        example: ("parse.part.0.constprop.1", "parse"),
    },
    Rule {
        has: "/",
        pattern: r"\[[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*\]",
        with: "[...]",
        example: ("x/lru.(*Cache[go.shape.int,x/y.T[int]]).Get", "x/lru.(*Cache[...]).Get"),
    },
    Rule {
        has: "{{closure}}",
        pattern: r"(::\{\{closure\}\})+$",
        with: "",
        example: ("orders::price::{{closure}}::{{closure}}", "orders::price"),
    },
    Rule {
        has: "{closure#",
        pattern: r"\{closure#\d+\}",
        with: "{closure#}",
        example: ("a::{closure#2}", "a::{closure#}"),
    },
    Rule {
        has: ".func",
        pattern: r"\.func\d+((\.\d+)*|-range\d+)",
        with: ".func#",
        example: ("main.run.func3.1", "main.run.func#"),
    },
    Rule {
        has: "$$Lambda",
        pattern: r"\$\$Lambda.*$",
        with: "$$$$Lambda",
        example: ("com.acme.Shop$$Lambda$14/0x0000000800c03000.apply", "com.acme.Shop$$Lambda"),
    },
    Rule {
        has: ".js:",
        pattern: r"(\.[cm]?js):\d+(:\d+)?$",
        with: "$1",
        example: ("render:/app/page.js:12:7", "render:/app/page.js"),
    },
];

static COMPILED: LazyLock<Vec<(&Rule, Regex)>> =
    LazyLock::new(|| RULES.iter().filter_map(|rule| Some((rule, Regex::new(rule.pattern).ok()?))).collect());

/// A name without what a compiler numbers anew in each build.
pub(super) fn canonical(name: &str) -> String {
    let mut name = name.to_owned();
    for (rule, regex) in COMPILED.iter() {
        if name.contains(rule.has) {
            let replaced = regex.replace_all(&name, rule.with);
            // What nothing is left of was no suffix.
            if !replaced.is_empty() && replaced != name {
                name = replaced.into_owned();
            }
        }
    }
    name
}

/// The most frames of one side that are tried as another's new name, the costliest first.
const MOST_RENAMED: usize = 200;

/// Values of frames and of calls on one side.
struct Calls {
    of: HashMap<u32, f64>,
    calls: HashMap<(u32, u32), f64>,
}

impl Calls {
    fn new(rows: &Rows, side: usize) -> Calls {
        let mut calls = Calls { of: HashMap::new(), calls: HashMap::new() };
        let (mut frames, mut pairs) = (Vec::new(), Vec::new());
        for (i, row) in rows.rows.iter().enumerate().filter(|(_, row)| row.v[side] > 0.0) {
            let stack = rows.stack(i);
            once(&mut frames, stack.iter().copied()).for_each(|f| *calls.of.entry(f).or_default() += row.v[side]);
            let of_stack = stack.windows(2).map(|w| (w[0], w[1]));
            once(&mut pairs, of_stack).for_each(|p| *calls.calls.entry(p).or_default() += row.v[side]);
        }
        calls
    }
}

/// Each distinct value once.
fn once<T: Copy + Ord>(into: &mut Vec<T>, values: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    into.clear();
    into.extend(values);
    into.sort_unstable();
    into.dedup();
    into.iter().copied()
}

/// A function that has another name on the new side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Renamed {
    pub old: u32,
    pub new: u32,
}

/// Frames that only one side has, of the same cost among the same callers and callees: a neighbour that is itself
/// one-sided counts as unknown. The best match first, one to one.
pub(super) fn renamed(rows: &Rows) -> Vec<Renamed> {
    let seen = [Calls::new(rows, 0), Calls::new(rows, 1)];
    let (total, event) = (rows.total(), rows.event());
    let only = |side: usize| {
        let (here, there) = (&seen[side].of, &seen[1 - side].of);
        let large = |&(f, v): &(&u32, &f64)| {
            *v > (0.003 * total[side]).max(5.0 * event) && !there.contains_key(f) && !rows.is_system(*f)
        };
        let mut only: Vec<(f64, u32)> = here.iter().filter(large).map(|(f, v)| (*v, *f)).collect();
        only.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        only.truncate(MOST_RENAMED);
        only.into_iter().map(|(_, f)| f).collect::<Vec<u32>>()
    };
    let only = [only(0), only(1)];
    if only.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    // For each frame the shares of its callers (true) and callees; u32::MAX is an unknown one.
    type Neighbours = BTreeMap<(bool, u32), f64>;
    let near: [HashMap<u32, Neighbours>; 2] = [0, 1].map(|side| {
        let mut near: HashMap<u32, Neighbours> = only[side].iter().map(|&f| (f, Neighbours::new())).collect();
        for (i, row) in rows.rows.iter().enumerate().filter(|(_, row)| row.v[side] > 0.0) {
            let stack = rows.stack(i);
            for (j, frame) in stack.iter().enumerate() {
                let Some(neighbours) = near.get_mut(frame) else { continue };
                let name = |at: Option<&u32>| match at {
                    Some(f) if only[side].contains(f) => u32::MAX,
                    Some(f) => *f,
                    None => u32::MAX - 1,
                };
                let caller = name(j.checked_sub(1).and_then(|j| stack.get(j)));
                let share = row.v[side] / seen[side].of.get(frame).copied().unwrap_or(f64::MAX);
                *neighbours.entry((true, caller)).or_default() += share;
                *neighbours.entry((false, name(stack.get(j + 1)))).or_default() += share;
            }
        }
        near
    });
    let mut pairs = Vec::new();
    for &old in &only[0] {
        for &new in &only[1] {
            let (a, b) = (&near[0][&old], &near[1][&new]);
            let common = |callers: bool| -> f64 {
                let both = a.iter().filter(|((caller, _), _)| *caller == callers);
                both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
            };
            let (up, down) = (common(true), common(false));
            let overlap = (up + down) / 2.0;
            let (va, vb) = (seen[0].of[&old], seen[1].of[&new]);
            let ratio = (vb / total[1] / (va / total[0])).ln().abs();
            let deviation = (event / va + event / vb + 0.02).sqrt();
            if overlap > 0.6 && up > 0.5 && ratio < 3.0 * deviation && va + vb > 24.0 * event {
                pairs.push((overlap - ratio / deviation / 10.0, Renamed { old, new }));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1.old, a.1.new).cmp(&(b.1.old, b.1.new))));
    let mut found: Vec<Renamed> = Vec::new();
    for (_, pair) in pairs {
        if found.iter().all(|known| known.old != pair.old && known.new != pair.new) {
            found.push(pair);
        }
    }
    found
}

/// A function that is part of its caller on the other side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inlined {
    /// The side that has it.
    pub side: usize,
    pub frame: u32,
    pub caller: u32,
    pub value: f64,
}

/// Frames that one side lacks while what they call hangs directly under their callers there.
pub(super) fn inlined(rows: &Rows) -> Vec<Inlined> {
    let seen = [Calls::new(rows, 0), Calls::new(rows, 1)];
    let event = rows.event();
    let mut found = Vec::new();
    for side in [0, 1] {
        let (here, there) = (&seen[side], &seen[1 - side]);
        let is_only = |f: &u32| !there.of.contains_key(f) && here.of.get(f).is_some_and(|v| *v > 5.0 * event);
        let mut around: BTreeMap<u32, BTreeMap<(u32, u32), f64>> = BTreeMap::new();
        for (i, row) in rows.rows.iter().enumerate().filter(|(_, row)| row.v[side] > 0.0) {
            for w in rows.stack(i).windows(3) {
                if is_only(&w[1]) && !is_only(&w[0]) && !is_only(&w[2]) {
                    *around.entry(w[1]).or_default().entry((w[0], w[2])).or_default() += row.v[side];
                }
            }
        }
        for (frame, pairs) in around {
            let below: f64 = pairs.values().sum();
            let of = |calls: &Calls, pair| calls.calls.get(pair).copied().unwrap_or(0.0);
            let direct: f64 = pairs.iter().map(|(p, v)| v.min((of(there, p) - of(here, p)).max(0.0))).sum();
            let value = here.of[&frame];
            let most = pairs.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            if let Some((&(caller, _), _)) = most
                && below > 0.6 * value
                && direct > 0.5 * below
            {
                found.push(Inlined { side, frame, caller, value });
            }
        }
    }
    found.sort_by_key(|f| (f.side, f.frame));
    found
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, RULES, canonical};

    #[test]
    fn each_rule_does_what_its_example_says() {
        assert_eq!(COMPILED.len(), RULES.len());
        for rule in RULES {
            assert_eq!(canonical(rule.example.0), rule.example.1);
        }
        for name in ["main.(*T).M", "f", ".cold", "std::vector<int>::push_back", "a.function1"] {
            assert_eq!(canonical(name), name);
        }
    }
}
