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

/// The sites of one sample type.
#[doc(hidden)]
#[derive(Debug)]
pub struct SitesOfType<'c> {
    /// The sample type. All measures of a call of [`call_lines`] belong to the same selection.
    pub measure: &'c Measure,
    /// The number of profiles to read on the base and on the new side.
    pub runs: (usize, usize),
    /// At most [`MAX_SITES`] sites.
    pub sites: Vec<CallSite<'c>>,
    /// The files of the lines.
    pub files: FilesOfLines,
}

/// Returns by sample type the cost of each line of each site on one side. Functions without a file or a line do not
/// count. Reads the samples once for up to [`MAX_TYPES`] sample types.
#[doc(hidden)]
pub fn call_lines(types: &mut [SitesOfType<'_>], base: bool) -> Vec<Vec<LineCosts>> {
    let empty = |of_type: &SitesOfType<'_>| of_type.sites.iter().map(|_| LineCosts::new()).collect();
    let mut all: Vec<Vec<LineCosts>> = types.iter().map(empty).collect();
    for (types, all) in types.chunks_mut(MAX_TYPES).zip(all.chunks_mut(MAX_TYPES)) {
        let n_runs = |of_type: &SitesOfType<'_>| if base { of_type.runs.0 } else { of_type.runs.1 };
        for run in 0..types.iter().map(n_runs).max().unwrap_or(0) {
            let mut read: Vec<_> =
                types.iter_mut().zip(&mut *all).filter(|(of_type, _)| run < n_runs(of_type)).collect();
            add_run(&mut read, base, run);
        }
    }
    all
}

/// Adds the costs of one profile to the costs of each sample type. `run` is its position among the profiles of its side.
fn add_run(types: &mut [(&mut SitesOfType<'_>, &mut Vec<LineCosts>)], base: bool, run: usize) {
    let walks: Vec<Walk<'_>> =
        types.iter().filter_map(|(of_type, _)| of_type.measure.walks_of(base).nth(run)).collect();
    let Some(Walk { input, .. }) = walks.first() else { return };
    let profile = &input.profile;
    let functions = profile.functions();
    let of_functions = lines_are_of_functions(profile);
    let sites: Vec<&[CallSite<'_>]> = types.iter().map(|(of_type, _)| &of_type.sites[..]).collect();
    let by_type = costs_by_line(&walks, &sites);
    for ((SitesOfType { measure, files, .. }, all), by_site) in types.iter_mut().zip(by_type) {
        let trim = &measure.summary().query.trim_path;
        // The number of each function's file, or `None` without a path.
        let mut known: HashMap<u32, Option<u32>> = HashMap::default();
        for (costs, by_line) in all.iter_mut().zip(by_site) {
            for ((function, line), cost) in by_line {
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

/// The costs of a site's lines, by function (as an index of the profile) and line.
type SiteCosts = BTreeMap<(u32, i64), i128>;

/// Returns by sample type the costs of one profile for each site. `walks` and `sites` have an element for each sample type.
fn costs_by_line(walks: &[Walk<'_>], sites: &[&[CallSite<'_>]]) -> Vec<Vec<SiteCosts>> {
    let Some((walk, others)) = walks.split_first() else { return Vec::new() };
    let types: Vec<TypeSites<'_>> = sites.iter().map(|sites| TypeSites::new(&walk.input.profile, sites)).collect();
    let wants = |location: usize| {
        let bit = |(number, of_type): (usize, &TypeSites<'_>)| u8::from(of_type.wants(location)) << number;
        types.iter().enumerate().map(bit).sum()
    };
    let wanted = (0..walk.input.profile.n_locations()).map(wants).collect();
    let mut visitor = SiteVisitor { walks, wanted, types };
    let has_other_value = |sample: &Sample<'_>| others.iter().any(|other| other.value(sample) != 0);
    walk.visit_or(&walk.input.profile.sample_range(), has_other_value, &mut visitor);
    visitor.types.into_iter().map(|of_type| of_type.costs).collect()
}

/// The maximum number of sample types that are read at once, because a location has a bit for each.
const MAX_TYPES: usize = 8;

/// Adds up the costs of the sites' lines for all sample types.
struct SiteVisitor<'w, 'm> {
    /// The profile of each sample type.
    walks: &'w [Walk<'m>],
    /// By location, a bit for each sample type that wants a line of it.
    wanted: Vec<u8>,
    types: Vec<TypeSites<'w>>,
}

impl<'m> SampleVisitor<'m> for SiteVisitor<'_, 'm> {
    /// Most samples contain no function whose line is wanted. They are read once and dropped. Frames are visited innermost
    /// first and not stored, because a sample can have a frame for each fraction of a byte.
    #[inline(always)]
    fn sample(&mut self, _: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        // Filters add pseudo-frames after the profile's own locations. They have no line.
        let mut wanted = 0;
        locations.for_each(|location| wanted |= self.wanted.get(location as usize).copied().unwrap_or(0));
        if wanted == 0 {
            return;
        }
        for (number, (of_type, walk)) in self.types.iter_mut().zip(self.walks).enumerate() {
            let value = if wanted >> number & 1 != 0 { walk.value(&sample) } else { 0 };
            if value != 0 {
                of_type.begin_sample();
                let mut depth = 0;
                locations.for_each(|location| depth += of_type.visit(location, depth, value));
            }
        }
    }
}

/// The sites of one sample type, in one profile.
struct TypeSites<'w> {
    profile: &'w Profile,
    sites: &'w [CallSite<'w>],
    /// The roles of each function of the profile.
    roles: Vec<u64>,
    /// The roles of all functions of each location.
    location_roles: Vec<u64>,
    /// The sites without a line in the current sample, as bits.
    pending: u32,
    /// By site: the depth of the last function below the site's function.
    last_below: Vec<Option<usize>>,
    costs: Vec<SiteCosts>,
}

impl<'w> TypeSites<'w> {
    fn new(profile: &'w Profile, sites: &'w [CallSite<'w>]) -> TypeSites<'w> {
        let roles = roles(profile, sites);
        let role_of = |function: u32| roles.get(function as usize).copied().unwrap_or(0);
        let lines = |location: u32| profile.locations().lines(location).map(|line| line as usize);
        let functions = &profile.locations().line_function;
        let union = |location: u32| lines(location).fold(0, |roles, line| roles | role_of(functions[line]));
        let location_roles = (0..profile.n_locations() as u32).map(union).collect();
        let (last_below, costs) = (vec![None; sites.len()], sites.iter().map(|_| SiteCosts::new()).collect());
        TypeSites { profile, sites, roles, location_roles, pending: 0, last_below, costs }
    }

    /// Returns true if a site wants a line of this location.
    fn wants(&self, location: usize) -> bool {
        self.location_roles[location] & u64::from(u32::MAX) != 0
    }

    fn begin_sample(&mut self) {
        self.pending = ((1u64 << self.sites.len()) - 1) as u32;
        self.last_below.fill(None);
    }

    /// Adds the value of the current sample to the frames of a location that are the innermost line of a site. Returns the
    /// number of all its frames.
    fn visit(&mut self, location: u32, depth: usize, value: i64) -> usize {
        let locations = self.profile.locations();
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
fn roles(profile: &Profile, sites: &[CallSite<'_>]) -> Vec<u64> {
    let mut by_name: HashMap<&[u8], u64> = HashMap::default();
    for (number, site) in sites.iter().enumerate().take(MAX_SITES) {
        for (names, bit) in [(&site.functions[..], number), (site.below.names(), MAX_SITES + number)] {
            names.iter().for_each(|name| *by_name.entry(name.as_bytes()).or_default() |= 1 << bit);
        }
    }
    let names = profile.functions().name.iter();
    names.map(|&name| by_name.get(profile.string(name)).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use pprofdiff_profile::builder::ProfileBuilder;

    use super::{BelowSite, CallSite, FilesOfLines, SitesOfType, call_lines};
    use crate::{Diff, Normalize, Query, Result};

    #[test]
    fn lines_of_several_sample_types_equal_those_of_each_type() -> Result<()> {
        let mut seed = 1u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        let n_types = 10;
        let mut profile = |name: &str| {
            let mut builder = ProfileBuilder::new();
            (0..n_types).for_each(|i| builder.sample_type(&format!("type{i}"), "count"));
            let mut locations = Vec::new();
            for i in 0..60 {
                let names = [format!("f{}", i % 12), format!("f{}", i % 7)];
                let functions = names.map(|name| builder.function(&name, format!("{name}.go"), 1));
                let lines = functions.map(|function| builder.line(function, 1 + i % 5));
                locations.push(builder.location(None, 0, if i % 3 == 0 { &lines } else { &lines[..1] })?);
            }
            for _ in 0..300 {
                let stack: Vec<_> = (0..next(9)).map(|_| locations[next(60) as usize]).collect();
                // Many samples have a value of a few types only.
                let values: Vec<i64> = (0..n_types).map(|_| i64::from(next(9)) * i64::from(next(3) == 0)).collect();
                builder.sample(&stack, &values, &[])?;
            }
            builder.build(name)
        };
        let side = |profiles: [_; 2]| profiles.map(std::sync::Arc::new).to_vec();
        let diff = Diff::new(&side([profile("a")?, profile("b")?]), &side([profile("c")?, profile("d")?]))?;
        let selection = diff.select(&Query::default())?;
        let measures = (0..n_types).map(|i| selection.measure_type(i, Normalize::None)).collect::<Result<Vec<_>>>()?;
        let of_type = |i: usize| {
            let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11"];
            let site = |function: usize, below| CallSite { functions: vec![names[(function + i) % 12]], below };
            let sites = vec![
                site(0, BelowSite::Any),
                site(1, BelowSite::Leaf),
                site(2, BelowSite::Callee(vec![names[(i + 3) % 12]])),
                site(4, BelowSite::Anywhere(vec![names[(i + 5) % 12]])),
            ];
            // Some types read fewer profiles.
            let runs = (2 - i % 2, 2 - i / 2 % 2);
            SitesOfType { measure: &measures[i], runs, sites, files: FilesOfLines::default() }
        };
        let mut all: Vec<SitesOfType<'_>> = (0..n_types).map(of_type).collect();
        let mut alone: Vec<SitesOfType<'_>> = (0..n_types).map(of_type).collect();
        for base in [true, false] {
            let together = call_lines(&mut all, base);
            for (lines, alone) in together.iter().zip(&mut alone) {
                assert!(lines.iter().filter(|lines| !lines.is_empty()).count() >= 2);
                assert_eq!(*lines, call_lines(std::slice::from_mut(alone), base)[0]);
            }
        }
        Ok(())
    }
}
