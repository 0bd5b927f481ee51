//! The sample types that several profiles have in common, and the column of each type in each profile.
//!
//! Types are matched by name, in the order of the first profile. If profiles use different units for one name (such as
//! milliseconds and nanoseconds), all values are converted to the finest unit, which is exact.
//!
//! pprof gives a heap dump from before the first free only the types `objects` and `space`. Nothing was freed yet, so
//! both count allocations as well as memory in use. Next to dumps with separate types, such a dump gets all four types.

use super::Profile;
use crate::advice::{pattern_of, word};
use crate::error::{Error, ErrorKind, Result};
use crate::random::{HashMap, HashSet};
use crate::units;

/// A sample type that all profiles have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonType {
    /// The name of the type.
    pub kind: String,
    /// The finest unit that any of the profiles uses.
    pub unit: String,
    /// For each profile, in order: the column, and the factor that converts its values to `unit`.
    pub columns: Vec<(usize, i64)>,
}

/// The sample types of a heap dump, each with its name before the first free.
const HEAP: [(&[u8], &[u8]); 4] = [
    (b"alloc_objects", b"objects"),
    (b"alloc_space", b"space"),
    (b"inuse_objects", b"objects"),
    (b"inuse_space", b"space"),
];

/// Returns true if a profile has separate types for allocations and for memory in use.
fn has_frees(p: &Profile) -> bool {
    HEAP.iter().all(|(name, _)| p.value_types().iter().any(|t| p.string(t.kind) == *name))
}

/// Lists the names of a profile's sample types with their columns. `has_frees` is true if any compared profile is a
/// heap dump from after the first free.
fn names(p: &Profile, has_frees: bool) -> Vec<(&[u8], usize)> {
    let columns: Vec<(&[u8], usize)> = p.value_types().iter().enumerate().map(|(i, t)| (p.string(t.kind), i)).collect();
    let is_before_frees = matches!(columns[..], [(b"objects", _), (b"space", _)]);
    if !(has_frees && is_before_frees) {
        return columns;
    }
    let column = |name: &[u8]| columns.iter().find(|(dump_name, _)| *dump_name == name);
    HEAP.iter().filter_map(|&(name, before)| Some((name, column(before)?.1))).collect()
}

/// Finds the sample types that all profiles have.
///
/// # Errors
/// Fails if the profiles have no type in common (the error lists the types), if units do not convert into each other,
/// or if the absolute values of all profiles, converted to the finest unit, add up past int64.
pub fn common_types<'p>(profiles: &[&'p Profile]) -> Result<Vec<CommonType>> {
    let Some(first) = profiles.first() else { return Ok(Vec::new()) };
    let mut types = Vec::new();
    let has_frees = profiles.iter().any(|p| has_frees(p));
    let by_name = |p: &&'p Profile| names(p, has_frees).into_iter().rev().collect::<HashMap<&'p [u8], usize>>();
    let columns: Vec<_> = profiles.iter().map(by_name).collect();
    for (name, index) in names(first, has_frees) {
        // If a name occurs twice in a profile, its first column wins.
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

/// Returns the [`common_types`] of both sides. In [`CommonType::columns`], all new profiles precede the base profiles.
///
/// # Errors
/// Fails like [`common_types`]. If the profiles of a side have no type in common, the error describes the kinds of each
/// such side separately, because a file pattern selects the files of one side only.
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

/// Returns the error for profiles without a common sample type.
fn none_in_common(kinds: &str) -> Error {
    Error::new(ErrorKind::Incompatible, format!("no sample type is common to all profiles: {kinds}"))
}

/// The maximum number of kinds of profiles that an error describes.
const MAX_KINDS: usize = 4;

/// Describes the kinds of profiles by their sample types. If a kind has several profiles, its description has their
/// number, an example, and a file pattern that matches only this kind (if such a pattern exists).
fn kinds(profiles: &[&Profile]) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for p in profiles {
        let types = p.sample_types().into_iter().map(|(kind, _)| kind).collect::<Vec<_>>().join(", ");
        match kinds.iter_mut().find(|(listed, _)| *listed == types) {
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
    let mut descriptions: Vec<String> = kinds.iter().take(MAX_KINDS).map(describe).collect();
    if kinds.len() > MAX_KINDS {
        descriptions.push(format!("{} more kinds", kinds.len() - MAX_KINDS));
    }
    descriptions.join("; ")
}

/// Returns the index of the common type that views show by default. The result is the same as in pprof,
/// which combines the profiles of each side and then the two sides.
///
/// Combining works as follows. A profile whose list of types differs from the common list declares the first common
/// type as its default, unless its own default is still common. The first profile with a default decides. Without any
/// default, the last type is shown. A type whose name occurs twice in a profile is not common.
pub fn default_type<'p>(new: &[&'p Profile], base: &[&'p Profile], types: &[CommonType]) -> usize {
    let has_frees = new.iter().chain(base).any(|p| has_frees(p));
    let defaults = |p: &&'p Profile| Defaults::from_profile(p, has_frees);
    let side = |profiles: &[&'p Profile]| Defaults::combine(profiles.iter().map(defaults).collect());
    let sides = [new, base].into_iter().filter(|side| !side.is_empty()).map(side).collect();
    let default = String::from_utf8_lossy(Defaults::combine(sides).default).into_owned();
    types.iter().position(|t| t.kind == default).unwrap_or(types.len().saturating_sub(1))
}

/// The names of sample types and the default type, which is empty if the profile declares no default.
struct Defaults<'p> {
    types: Vec<&'p [u8]>,
    default: &'p [u8],
}

impl<'p> Defaults<'p> {
    fn from_profile(p: &'p Profile, has_frees: bool) -> Defaults<'p> {
        let types = names(p, has_frees).into_iter().map(|(name, _)| name).collect();
        Defaults { types, default: p.string(p.header().default_sample_type) }
    }

    fn combine(inputs: Vec<Defaults<'p>>) -> Defaults<'p> {
        let mut common: HashSet<&[u8]> = inputs.first().iter().flat_map(|d| &d.types).copied().collect();
        for input in &inputs {
            let mut times: HashMap<&[u8], usize> = HashMap::default();
            input.types.iter().for_each(|name| *times.entry(name).or_default() += 1);
            common.retain(|name| times.get(name) == Some(&1));
        }
        let first = inputs.first().into_iter().flat_map(|d| &d.types).copied();
        let types: Vec<&[u8]> = first.filter(|name| common.contains(name)).collect();
        let adapted = |input: &Defaults<'p>| {
            let is_kept = input.types == types || common.contains(input.default);
            if is_kept { input.default } else { types.first().copied().unwrap_or_default() }
        };
        let default = inputs.iter().map(adapted).find(|name| !name.is_empty()).unwrap_or_default();
        Defaults { types, default }
    }
}

/// Converts the columns of one type to the finest of the profiles' units.
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
    let known_units: Vec<units::Known> =
        units.iter().map(|u| units::find(u)).collect::<Option<_>>().ok_or_else(incompatible)?;
    if !known_units.iter().all(|k| k.same_family(known_units[0])) {
        return Err(incompatible());
    }
    let finest = (0..known_units.len()).min_by_key(|&i| known_units[i].factor()).unwrap_or(0);
    let times = |k: &units::Known| i64::try_from(k.factor() / known_units[finest].factor()).map_err(|_| incompatible());
    let columns = columns.iter().zip(&known_units).map(|(&c, k)| Ok((c, times(k)?))).collect::<Result<_>>()?;
    Ok(CommonType { unit: units[finest].clone(), kind, columns })
}

/// Checks that no sum over samples of these profiles can overflow, in any order.
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
