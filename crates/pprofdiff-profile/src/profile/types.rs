//! Which sample types several profiles have in common, and how each profile's columns map to them.
//!
//! Types are matched by name, in the order of the first profile. Where the units of one name differ
//! (milliseconds here, nanoseconds there) all are converted to the finest, which is exact.
//!
//! A heap dump before the first free has `objects` and `space` alone, as in pprof. Nothing was freed, so both are what was
//! allocated and what is in use. Next to dumps that tell these apart, such a dump has all four types.

use super::Profile;
use crate::advice::{pattern_of, word};
use crate::error::{Error, ErrorKind, Result};
use crate::random::{HashMap, HashSet};
use crate::units;

/// A sample type that all profiles have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonType {
    /// Its name.
    pub kind: String,
    /// The finest of the profiles' units.
    pub unit: String,
    /// For each profile, in order: its column, and what its values are multiplied by.
    pub columns: Vec<(usize, i64)>,
}

/// The sample types of a heap dump, each with the name that it has before the first free.
const HEAP: [(&[u8], &[u8]); 4] = [
    (b"alloc_objects", b"objects"),
    (b"alloc_space", b"space"),
    (b"inuse_objects", b"objects"),
    (b"inuse_space", b"space"),
];

/// Returns true if a profile tells what was allocated from what is in use.
fn has_frees(p: &Profile) -> bool {
    HEAP.iter().all(|(name, _)| p.value_types().iter().any(|t| p.string(t.kind) == *name))
}

/// Lists the names of a profile's sample types with their columns. `has_frees` is true if another profile is a heap dump
/// after the first free.
fn names(p: &Profile, has_frees: bool) -> Vec<(&[u8], usize)> {
    let own: Vec<(&[u8], usize)> = p.value_types().iter().enumerate().map(|(i, t)| (p.string(t.kind), i)).collect();
    let is_before_frees = matches!(own[..], [(b"objects", _), (b"space", _)]);
    if !(has_frees && is_before_frees) {
        return own;
    }
    let column = |name: &[u8]| own.iter().find(|(of_dump, _)| *of_dump == name);
    HEAP.iter().filter_map(|&(name, before)| Some((name, column(before)?.1))).collect()
}

/// # Errors
/// No type in common (both lists are named), units that do not convert, or values that are too large
/// for the finer unit.
pub fn common_types<'p>(profiles: &[&'p Profile]) -> Result<Vec<CommonType>> {
    let Some(first) = profiles.first() else { return Ok(Vec::new()) };
    let mut types = Vec::new();
    let has_frees = profiles.iter().any(|p| has_frees(p));
    let by_name = |p: &&'p Profile| names(p, has_frees).into_iter().rev().collect::<HashMap<&'p [u8], usize>>();
    let columns: Vec<_> = profiles.iter().map(by_name).collect();
    for (name, index) in names(first, has_frees) {
        // The first column of a name wins, should a name occur twice.
        if columns[0][name] != index {
            continue;
        }
        let columns = columns.iter().map(|columns| columns.get(name).copied()).collect::<Option<Vec<usize>>>();
        let Some(columns) = columns else { continue };
        types.push(convert_units(profiles, String::from_utf8_lossy(name).into_owned(), &columns)?);
    }
    if types.is_empty() && !first.value_types().is_empty() {
        return Err(none_in_common(&kinds(profiles)));
    }
    check_sums(profiles, &types)?;
    Ok(types)
}

/// Returns the [`common_types`] of both sides. If a side mixes kinds of profiles, the error describes the kinds side by
/// side, because a pattern selects the files of one side only.
pub fn common_types_of_sides(base: &[&Profile], new: &[&Profile]) -> Result<Vec<CommonType>> {
    let sides = [("on the base side, ", base), ("on the new side, ", new)];
    let has_frees = base.iter().chain(new).any(|p| has_frees(p));
    let mixed = sides.iter().filter(|(_, profiles)| !base.is_empty() && !is_of_one_kind(profiles, has_frees));
    let mixed: Vec<String> = mixed.map(|(side, profiles)| format!("{side}{}", kinds(profiles))).collect();
    match mixed.is_empty() {
        true => common_types(&[new, base].concat()),
        false => Err(none_in_common(&mixed.join("; "))),
    }
}

/// Returns true if the profiles share a sample type, or the first profile has no sample types.
fn is_of_one_kind(profiles: &[&Profile], has_frees: bool) -> bool {
    let Some((first, rest)) = profiles.split_first() else { return true };
    let rest: Vec<_> = rest.iter().map(|p| names(p, has_frees)).collect();
    let is_common = |name: &[u8]| rest.iter().all(|names| names.iter().any(|(other, _)| *other == name));
    let first = names(first, has_frees);
    first.is_empty() || first.iter().any(|(name, _)| is_common(name))
}

fn none_in_common(kinds: &str) -> Error {
    Error::new(ErrorKind::Incompatible, format!("no sample type is common to all profiles: {kinds}"))
}

/// The maximum number of kinds of profiles that an error describes.
const MAX_KINDS: usize = 4;

/// Describes the kinds of profiles by their sample types. Each kind has its number of profiles, an example, and a
/// pattern that matches only this kind.
fn kinds(profiles: &[&Profile]) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for p in profiles {
        let types = p.sample_types().into_iter().map(|(kind, _)| kind).collect::<Vec<_>>().join(", ");
        match kinds.iter_mut().find(|(known, _)| *known == types) {
            Some((_, names)) => names.push(p.name()),
            None => kinds.push((types, vec![p.name()])),
        }
    }
    let describe = |(types, names): &(String, Vec<&str>)| {
        let [first, _, ..] = names.as_slice() else { return format!("{} has {types}", names[0]) };
        let others = kinds.iter().filter(|(other, _)| other != types).flat_map(|(_, names)| names);
        let pattern = pattern_of(names, &others.copied().collect::<Vec<_>>());
        let pattern = pattern.map_or_else(String::new, |pattern| format!(": name {}", word(&pattern)));
        format!("{} have {types}, such as {first}{pattern}", names.len())
    };
    let mut all: Vec<String> = kinds.iter().take(MAX_KINDS).map(describe).collect();
    if kinds.len() > MAX_KINDS {
        all.push(format!("{} more kinds", kinds.len() - MAX_KINDS));
    }
    all.join("; ")
}

/// Which of the common types is shown unless told otherwise: as pprof, which brings the profiles of a side together,
/// then both sides. A profile that loses a type, or whose types stand in another order, then names as its default the
/// first that is left, unless its own is still there. The first that names one decides; else it is the last. Types of
/// one name are not left, as long as others are.
pub fn default_type<'p>(new: &[&'p Profile], base: &[&'p Profile], types: &[CommonType]) -> usize {
    let has_frees = new.iter().chain(base).any(|p| has_frees(p));
    let defaults = |p: &&'p Profile| Defaults::from_profile(p, has_frees);
    let side = |of: &[&'p Profile]| Defaults::together(of.iter().map(defaults).collect());
    let sides = [new, base].into_iter().filter(|side| !side.is_empty()).map(side).collect();
    let wanted = String::from_utf8_lossy(Defaults::together(sides).default).into_owned();
    types.iter().position(|t| t.kind == wanted).unwrap_or(types.len().saturating_sub(1))
}

/// The names of sample types, and the one that is the default: empty if there is none.
struct Defaults<'p> {
    types: Vec<&'p [u8]>,
    default: &'p [u8],
}

impl<'p> Defaults<'p> {
    fn from_profile(p: &'p Profile, has_frees: bool) -> Defaults<'p> {
        let types = names(p, has_frees).into_iter().map(|(name, _)| name).collect();
        Defaults { types, default: p.string(p.header().default_sample_type) }
    }

    fn together(all: Vec<Defaults<'p>>) -> Defaults<'p> {
        let mut common: HashSet<&[u8]> = all.first().iter().flat_map(|d| &d.types).copied().collect();
        for one in &all {
            let mut times: HashMap<&[u8], usize> = HashMap::default();
            one.types.iter().for_each(|name| *times.entry(name).or_default() += 1);
            common.retain(|name| times.get(name) == Some(&1));
        }
        let first = all.first().into_iter().flat_map(|d| &d.types).copied();
        let types: Vec<&[u8]> = first.filter(|name| common.contains(name)).collect();
        let adapted = |one: &Defaults<'p>| {
            let is_kept = one.types == types || common.contains(one.default);
            if is_kept { one.default } else { types.first().copied().unwrap_or_default() }
        };
        let default = all.iter().map(adapted).find(|name| !name.is_empty()).unwrap_or_default();
        Defaults { types, default }
    }
}

fn convert_units(profiles: &[&Profile], kind: String, columns: &[usize]) -> Result<CommonType> {
    let units: Vec<String> = profiles.iter().zip(columns).map(|(p, &c)| p.text(p.value_types()[c].unit)).collect();
    if units.iter().all(|u| *u == units[0]) {
        let columns = columns.iter().map(|&c| (c, 1)).collect();
        return Ok(CommonType { unit: units[0].clone(), kind, columns });
    }
    let incompatible = || {
        Error::new(
            ErrorKind::Incompatible,
            format!("the units of sample type {kind} do not convert into each other: {}", units.join(", ")),
        )
    };
    let known: Vec<units::Known> =
        units.iter().map(|u| units::find(u)).collect::<Option<_>>().ok_or_else(incompatible)?;
    if !known.iter().all(|k| k.same_family(known[0])) {
        return Err(incompatible());
    }
    let finest = (0..known.len()).min_by_key(|&i| known[i].factor()).unwrap_or(0);
    let times = |k: &units::Known| i64::try_from(k.factor() / known[finest].factor()).map_err(|_| incompatible());
    let columns = columns.iter().zip(&known).map(|(&c, k)| Ok((c, times(k)?))).collect::<Result<_>>()?;
    Ok(CommonType { unit: units[finest].clone(), kind, columns })
}

/// Makes sure that no sum over samples of these profiles can overflow, in any order.
fn check_sums(profiles: &[&Profile], types: &[CommonType]) -> Result<()> {
    for t in types {
        let magnitude = |(p, &(column, times)): (&&Profile, &(usize, i64))| {
            i128::from(p.totals()[column].magnitude) * i128::from(times)
        };
        if profiles.iter().zip(&t.columns).map(magnitude).sum::<i128>() > i128::from(i64::MAX) {
            let detail = format!("the values of sample type {} add up to more than an int64 holds", t.kind);
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
    }
    Ok(())
}
