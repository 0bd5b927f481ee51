//! Finds source lines from which stacks continue in a given way, such as the line of a call.

use std::collections::BTreeMap;

use pprofdiff_profile::random::HashMap;

use serde::Serialize;

use super::{Measure, Walk, identity};

/// A line of a source file, as recorded in the profiles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SourceLocation {
    /// The source file.
    pub file: String,
    /// The line. For a function, the line at which it begins, or the lowest recorded line within it if the profile lacks
    /// that line.
    pub line: i64,
}

impl SourceLocation {
    /// Creates a line of a file.
    pub fn new(file: impl Into<String>, line: i64) -> SourceLocation {
        SourceLocation { file: file.into(), line }
    }

    /// Returns the line in short: the file's name without its folders, and the line, such as `loops.go:212`.
    pub fn short(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        format!("{name}:{}", self.line)
    }
}

/// The lines to find: lines of these functions, in stacks that continue as described.
#[doc(hidden)]
#[derive(Debug)]
pub struct CallSite<'c> {
    /// All names of the function whose line is wanted.
    pub functions: Vec<&'c str>,
    /// The rest of the stack, below the function.
    pub below: BelowSite<'c>,
}

/// The part of a stack below a function whose line is wanted.
#[doc(hidden)]
#[derive(Debug)]
pub enum BelowSite<'c> {
    /// No frame: the function's own cost.
    Leaf,
    /// One of these functions directly below.
    Callee(Vec<&'c str>),
    /// One of these functions anywhere below.
    Anywhere(Vec<&'c str>),
    /// Any frames, or no frame.
    Any,
}

impl BelowSite<'_> {
    fn names(&self) -> &[&str] {
        match self {
            BelowSite::Callee(names) | BelowSite::Anywhere(names) => names,
            BelowSite::Leaf | BelowSite::Any => &[],
        }
    }
}

/// Returns the cost of each line of each site on one side, summed over the side's first `n_runs` profiles. Functions
/// without a file or a line do not count.
#[doc(hidden)]
pub fn call_lines(
    measure: &Measure,
    base: bool,
    n_runs: usize,
    sites: &[CallSite<'_>],
) -> Vec<BTreeMap<SourceLocation, f64>> {
    let mut costs: Vec<BTreeMap<SourceLocation, f64>> = sites.iter().map(|_| BTreeMap::new()).collect();
    let trim = &measure.summary().query.trim_path;
    for walk in measure.walks_of(base).take(n_runs) {
        let file_of = |function: u32| {
            let profile = &walk.input.profile;
            let file = identity::file_path(profile.string(profile.functions().file[function as usize]), trim);
            String::from_utf8_lossy(&file).into_owned()
        };
        for (costs, by_line) in costs.iter_mut().zip(costs_by_line(&walk, sites)) {
            for ((function, line), cost) in by_line {
                let file = file_of(function);
                if !file.is_empty() && line > 0 {
                    *costs.entry(SourceLocation { file, line }).or_default() += cost as f64;
                }
            }
        }
    }
    costs
}

/// Returns the costs of one profile for each site, by function (as an index of the profile) and line.
fn costs_by_line(walk: &Walk<'_>, sites: &[CallSite<'_>]) -> Vec<BTreeMap<(u32, i64), i128>> {
    let (locations, roles) = (walk.input.profile.locations(), roles(walk, sites));
    let mut costs: Vec<BTreeMap<(u32, i64), i128>> = sites.iter().map(|_| BTreeMap::new()).collect();
    // The frames with a role, innermost first: depth, roles, function and line.
    let mut stack: Vec<(usize, u64, (u32, i64))> = Vec::new();
    walk.for_each(|value, leaf_first, _| {
        stack.clear();
        let mut depth = 0;
        // Filters add pseudo-frames after the profile's own locations. They have no line.
        for &location in leaf_first.iter().filter(|&&location| (location as usize) < locations.len()) {
            for line in locations.lines(location).map(|line| line as usize) {
                let function = locations.line_function[line];
                match roles.get(function as usize) {
                    None | Some(0) => {}
                    Some(&roles) => stack.push((depth, roles, (function, locations.line_number[line]))),
                }
                depth += 1;
            }
        }
        for ((number, site), costs) in (0..).zip(sites).zip(&mut costs).filter(|_| !stack.is_empty()) {
            let mut last_below = None;
            for &(depth, roles, place) in &stack {
                let is_below = match (&site.below, last_below) {
                    (BelowSite::Any, _) => true,
                    (BelowSite::Leaf, _) => depth == 0,
                    (BelowSite::Callee(_), last) => last.is_some_and(|last: usize| last + 1 == depth),
                    (BelowSite::Anywhere(_), last) => last.is_some(),
                };
                if roles >> number & 1 != 0 && is_below {
                    *costs.entry(place).or_default() += i128::from(value);
                    break;
                }
                if roles >> (MAX_SITES + number) & 1 != 0 {
                    last_below = Some(depth);
                }
            }
        }
    });
    costs
}

/// The maximum number of sites, because the roles of a function are bits of one number.
#[doc(hidden)]
pub const MAX_SITES: usize = 32;

/// Returns a set of bits for each function of a profile: bit `i` for a function whose line site `i` wants, and bit
/// `MAX_SITES + i` for a function below it. Most frames have no role, so samples cost little.
fn roles(walk: &Walk<'_>, sites: &[CallSite<'_>]) -> Vec<u64> {
    let mut by_name: HashMap<&[u8], u64> = HashMap::default();
    for (number, site) in sites.iter().enumerate().take(MAX_SITES) {
        for (names, bit) in [(&site.functions[..], number), (site.below.names(), MAX_SITES + number)] {
            names.iter().for_each(|name| *by_name.entry(name.as_bytes()).or_default() |= 1 << bit);
        }
    }
    let profile = &walk.input.profile;
    let names = profile.functions().name.iter();
    names.map(|&name| by_name.get(profile.string(name)).copied().unwrap_or(0)).collect()
}
