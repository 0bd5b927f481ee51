//! Matching across builds: which names mean the same function. Compilers number what a programmer gave no name, and the
//! numbers are others in each build.

use std::sync::OnceLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};
use pprofdiff_profile::random::{HashMap, HashSet};

/// Which frames of the two sides are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Matching {
    /// Those of equal names, as in pprof.
    #[default]
    Exact,
    /// Those whose names are equal without what compilers number anew in each build: hashes, clones, closures, generic
    /// instantiations, lines in the names of JavaScript's functions.
    Canonical,
    /// These, and besides: functions that were renamed are the same, and those that one side has inlined are part of
    /// their callers on both. They are found by their neighbours and costs, as `explain` finds them.
    Moved,
}

impl Matching {
    /// All, by their names.
    pub const ALL: [(&'static str, Matching); 3] =
        [("exact", Matching::Exact), ("canonical", Matching::Canonical), ("moved", Matching::Moved)];

    /// The name in results.
    pub fn name(self) -> &'static str {
        Matching::ALL[self as usize].0
    }
}

impl std::str::FromStr for Matching {
    type Err = Error;

    fn from_str(text: &str) -> Result<Matching> {
        let known = Matching::ALL.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, matching)| *matching)
            .ok_or_else(|| Error::query(format!("names are matched as exact, canonical or moved, not {text:?}")))
    }
}

/// Names, with what they are called instead.
pub(crate) type Renamed = HashMap<String, String>;

/// What moved between the builds, by canonical names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    /// Names of the base, with those of the new side.
    pub renamed: Renamed,
    /// Of both: functions that are part of their callers on the other.
    pub folded: [HashSet<String>; 2],
    /// What was found, in words.
    pub told: Vec<String>,
}

/// What names with the same canonical one are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variants {
    /// Functions of their own: a name that both builds have is the same function in both.
    Own,
    /// Numbered in the order of the source: the numbers say something only if both builds have the same ones.
    Numbered,
    /// One function, whatever it is called.
    One,
}

/// A rule for names that a build makes up: what of them is replaced, and an example.
struct Rule {
    variants: Variants,
    /// The expression is tried on names that have all of one of these: it takes longer than to look for them.
    has: &'static [&'static [&'static str]],
    pattern: &'static str,
    with: &'static str,
    /// Before and after.
    #[cfg_attr(not(test), expect(dead_code, reason = "documentation, which a test checks"))]
    example: (&'static str, &'static str),
}

/// Applied in this order.
static RULES: &[Rule] = &[
    Rule {
        variants: Variants::One,
        has: &[&["::h"]],
        pattern: r"::h[0-9a-f]{16}$",
        with: "",
        example: ("orders::price::h0123456789abcdef", "orders::price"),
    },
    Rule {
        variants: Variants::One,
        has: &[&[".cold"], &[".part"], &[".constprop"], &[".isra"], &[".llvm"]],
        pattern: r"(\.(cold|part|constprop|isra|llvm)(\.\d+)*)+$",
        with: "",
        example: ("parse.part.0.constprop.1", "parse"),
    },
    Rule {
        variants: Variants::Own,
        has: &[&["/", "["]],
        pattern: r"\[[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*\]",
        with: "[...]",
        example: ("x/lru.(*Cache[go.shape.int,x/y.T[int]]).Get", "x/lru.(*Cache[...]).Get"),
    },
    Rule {
        variants: Variants::One,
        has: &[&["{{closure}}"]],
        pattern: r"(::\{\{closure\}\})+$",
        with: "",
        example: ("orders::price::{{closure}}::{{closure}}", "orders::price"),
    },
    Rule {
        variants: Variants::Numbered,
        has: &[&["{closure#"]],
        pattern: r"\{closure#\d+\}",
        with: "{closure#}",
        example: ("a::{closure#2}", "a::{closure#}"),
    },
    Rule {
        variants: Variants::Numbered,
        has: &[&[".func"]],
        pattern: r"\.func\d+((\.\d+)*|-range\d+)",
        with: ".func#",
        example: ("main.run.func3.1", "main.run.func#"),
    },
    Rule {
        variants: Variants::One,
        has: &[&["$$Lambda"]],
        pattern: r"\$\$Lambda.*$",
        with: "$$$$Lambda",
        example: ("com.acme.Shop$$Lambda$14/0x0000000800c03000.apply", "com.acme.Shop$$Lambda"),
    },
    Rule {
        variants: Variants::Own,
        has: &[&[".js:"], &[".mjs:"], &[".cjs:"]],
        pattern: r"(\.[cm]?js):\d+(:\d+)?$",
        with: "$1",
        example: ("render:/app/page.js:12:7", "render:/app/page.js"),
    },
    // As pprof-nodejs calls functions without a name.
    Rule {
        variants: Variants::Own,
        has: &[&["(anonymous:L#"]],
        pattern: r"\(anonymous:L#\d+:C#\d+\)$",
        with: "(anonymous)",
        example: ("(anonymous:L#70:C#30)", "(anonymous)"),
    },
];

/// The rules' expressions, once a name needs one. One that is invalid replaces nothing, which a test sees.
static COMPILED: [OnceLock<Option<Regex>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];

/// A name without what a compiler numbers anew in each build.
pub(crate) fn canonical(name: &str) -> String {
    canonical_of(name).0
}

/// The same, with what it is to others of that canonical name.
pub(crate) fn canonical_of(name: &str) -> (String, Variants) {
    let (mut name, mut variants) = (name.to_owned(), Variants::Own);
    for (rule, regex) in RULES.iter().zip(&COMPILED) {
        if !rule.has.iter().any(|all| all.iter().all(|part| name.contains(part))) {
            continue;
        }
        let Some(regex) = regex.get_or_init(|| Regex::new(rule.pattern).ok()) else { continue };
        let replaced = regex.replace_all(&name, rule.with);
        // What nothing is left of was no suffix.
        if !replaced.is_empty() && replaced != name {
            name = replaced.into_owned();
            variants = variants.max(rule.variants);
        }
    }
    (name, variants)
}

#[cfg(test)]
mod tests {
    use super::{RULES, canonical};

    #[test]
    fn modules_are_scripts_too_and_operators_are_no_instantiations() {
        assert_eq!(canonical("render:/app/page.mjs:12"), "render:/app/page.mjs");
        assert_eq!(canonical("Row::operator[]"), "Row::operator[]");
        assert_eq!(canonical("x/y.F[int].G[string]"), "x/y.F[...].G[...]");
    }

    #[test]
    fn each_rule_does_what_its_example_says() {
        for rule in RULES {
            assert_eq!(canonical(rule.example.0), rule.example.1);
        }
        for name in ["main.(*T).M", "f", ".cold", "std::vector<int>::push_back", "a.function1"] {
            assert_eq!(canonical(name), name);
        }
    }
}
