//! Finds source lines from which stacks continue in a given way, such as the line of a call.

use std::collections::BTreeMap;

use pprofdiff_profile::Profile;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::Sample;

use serde::Serialize;

use super::walk::{SampleLocations, SampleVisitor};
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

/// A line: the number of its file in [`FilesOfLines`], and its number in the file.
#[doc(hidden)]
pub type FileLine = (u32, i64);

/// The costs of lines.
#[doc(hidden)]
pub type LineCosts = BTreeMap<FileLine, f64>;

/// The paths of source files, each stored once. A path can be long, and a function can have many lines.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct FilesOfLines {
    paths: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl FilesOfLines {
    fn number(&mut self, path: String) -> u32 {
        *self.numbers.entry(path).or_insert_with_key(|path| {
            self.paths.push(path.clone());
            self.paths.len() as u32 - 1
        })
    }

    /// Returns a line with the path of its file.
    pub fn location(&self, (file, line): FileLine) -> SourceLocation {
        SourceLocation { file: self.paths[file as usize].clone(), line }
    }
}

/// Returns the cost of each line of each site on one side, summed over the side's first `n_runs` profiles. Functions
/// without a file or a line do not count. Files are numbered in `files`.
#[doc(hidden)]
pub fn call_lines(
    measure: &Measure,
    base: bool,
    n_runs: usize,
    sites: &[CallSite<'_>],
    files: &mut FilesOfLines,
) -> Vec<LineCosts> {
    let mut costs: Vec<LineCosts> = sites.iter().map(|_| BTreeMap::new()).collect();
    let trim = &measure.summary().query.trim_path;
    for walk in measure.walks_of(base).take(n_runs) {
        let profile = &walk.input.profile;
        let of_functions = lines_are_of_functions(profile);
        // The number of each function's file, or `None` without a path.
        let mut known: HashMap<u32, Option<u32>> = HashMap::default();
        for (costs, by_line) in costs.iter_mut().zip(costs_by_line(&walk, sites)) {
            for ((function, line), cost) in by_line {
                let functions = profile.functions();
                // A line that stands for the whole function is right only if it is the function's first line.
                if line <= 0 || of_functions && functions.start_line[function as usize] != line {
                    continue;
                }
                let file = *known.entry(function).or_insert_with(|| {
                    let path = identity::file_path(profile.string(functions.file[function as usize]), trim);
                    (!path.is_empty()).then(|| files.number(String::from_utf8_lossy(&path).into_owned()))
                });
                if let Some(file) = file {
                    *costs.entry((file, line)).or_default() += cost as f64;
                }
            }
        }
    }
    costs
}

/// The number of functions from which on it is no coincidence that each has a single line.
const MANY_FUNCTIONS: usize = 30;

/// Returns true if each function of a profile has a single line. V8 and cProfile write the first line of the function. The
/// Rust crate `pprof` writes the line of one of the stacks for all stacks, so a line may belong to an unrelated call.
fn lines_are_of_functions(profile: &Profile) -> bool {
    let locations = profile.locations();
    let mut lines: HashMap<u32, i64> = HashMap::default();
    let all = locations.line_function.iter().zip(locations.line_number.iter());
    all.into_iter().all(|(&function, &line)| *lines.entry(function).or_insert(line) == line)
        && lines.len() >= MANY_FUNCTIONS
}

/// Returns the costs of one profile for each site, by function (as an index of the profile) and line.
fn costs_by_line(walk: &Walk<'_>, sites: &[CallSite<'_>]) -> Vec<BTreeMap<(u32, i64), i128>> {
    let (profile, roles) = (&walk.input.profile, roles(walk, sites));
    let role_of = |function: u32| roles.get(function as usize).copied().unwrap_or(0);
    let lines = |location: u32| profile.locations().lines(location).map(|line| line as usize);
    let functions = &profile.locations().line_function;
    let union = |location: u32| lines(location).fold(0, |roles, line| roles | role_of(functions[line]));
    let mut visitor = SiteVisitor {
        walk,
        sites,
        roles: &roles,
        location_roles: (0..profile.n_locations() as u32).map(union).collect(),
        pending: 0,
        last_below: vec![None; sites.len()],
        costs: sites.iter().map(|_| BTreeMap::new()).collect(),
    };
    walk.visit(&profile.sample_range(), &mut visitor);
    visitor.costs
}

/// Adds up the costs of the sites' lines.
struct SiteVisitor<'w, 'm> {
    walk: &'w Walk<'m>,
    sites: &'w [CallSite<'w>],
    /// The roles of each function of the profile.
    roles: &'w [u64],
    /// The roles of all functions of each location.
    location_roles: Vec<u64>,
    /// The sites without a line in the current sample, as bits.
    pending: u32,
    /// By site: the depth of the last function below the site's function.
    last_below: Vec<Option<usize>>,
    costs: Vec<BTreeMap<(u32, i64), i128>>,
}

impl<'m> SampleVisitor<'m> for SiteVisitor<'_, 'm> {
    /// Most samples contain no function whose line is wanted. They are read once and dropped. Frames are visited innermost
    /// first and not stored, because a sample can have a frame for each fraction of a byte.
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        // Filters add pseudo-frames after the profile's own locations. They have no line.
        let mut roles = 0;
        locations.for_each(|location| roles |= self.location_roles.get(location as usize).copied().unwrap_or(0));
        self.pending = roles as u32;
        if self.pending != 0 {
            self.last_below.fill(None);
            let mut depth = 0;
            locations.for_each(|location| depth += self.visit(location, depth, value));
        }
    }
}

impl SiteVisitor<'_, '_> {
    /// Adds the value of the current sample to the frames of a location that are the innermost line of a site. Returns the
    /// number of all its frames.
    fn visit(&mut self, location: u32, depth: usize, value: i64) -> usize {
        let locations = self.walk.input.profile.locations();
        let Some(&roles) = self.location_roles.get(location as usize) else { return 0 };
        let lines = locations.lines(location);
        let count = lines.len();
        if roles != 0 && self.pending != 0 {
            for (depth, line) in (depth..).zip(lines.map(|line| line as usize)) {
                let function = locations.line_function[line];
                let roles = self.roles.get(function as usize).copied().unwrap_or(0);
                if roles != 0 {
                    self.add(depth, roles, (function, locations.line_number[line]), value);
                }
            }
        }
        count
    }

    /// Adds the value to a frame with a role, for each pending site whose innermost line it is.
    fn add(&mut self, depth: usize, roles: u64, place: (u32, i64), value: i64) {
        for number in bits(roles as u32 & self.pending) {
            let is_below = match (&self.sites[number].below, self.last_below[number]) {
                (BelowSite::Any, _) => true,
                (BelowSite::Leaf, _) => depth == 0,
                (BelowSite::Callee(_), last) => last.is_some_and(|last: usize| last + 1 == depth),
                (BelowSite::Anywhere(_), last) => last.is_some(),
            };
            if is_below {
                *self.costs[number].entry(place).or_default() += i128::from(value);
                self.pending &= !(1 << number);
            }
        }
        for number in bits((roles >> MAX_SITES) as u32 & self.pending) {
            self.last_below[number] = Some(depth);
        }
    }
}

/// Iterates over the numbers of the set bits.
fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(number)
    })
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
