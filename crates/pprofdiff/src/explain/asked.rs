//! Which sample types belong together, and what of each is known: what counts it, how it is sampled, whether a runtime's
//! part of it is background.

use super::evidence::read::Columns;
use super::evidence::rows::Kind;
use crate::diff::{Diff, Measure, Normalize, Selection};
use crate::sampling::Group;
use crate::{Error, Result};

/// Sample types of which one counts what the other measures, and how they are sampled.
const PAIRS: &[(&str, &str, Kind)] = &[
    ("alloc_space", "alloc_objects", Kind::Heap),
    ("inuse_space", "inuse_objects", Kind::Heap),
    ("space", "objects", Kind::Heap),
    ("space", "allocations", Kind::Heap),
    ("native_alloc_space", "native_alloc_objects", Kind::Heap),
    ("native_inuse_space", "native_inuse_objects", Kind::Heap),
    ("delay", "contentions", Kind::Delay),
    ("park", "parks", Kind::Delay),
];

/// What was allocated, of a heap that says besides what is left of it.
pub(super) const ALLOCATED: &str = "alloc_space";

/// Those of delays that nothing may count.
const DELAYS: [&str; 4] = ["delay", "park", "lock", "locks"];

/// Those of what there is, and not of what is done: more of everything is no more work.
const LEVELS: [&str; 9] = [
    "inuse_space",
    "inuse_objects",
    "native_inuse_space",
    "native_inuse_objects",
    "live_space",
    "live_objects",
    "goroutine",
    "goroutineleak",
    "threadcreate",
];

pub(super) fn is_level(sample_type: &str) -> bool {
    LEVELS.contains(&sample_type)
}

/// Returns true for a sample type of what there is. JAX calls device memory in use `space`, and counts it by `allocations`.
pub(super) fn is_level_among(types: &[(String, String)], sample_type: &str) -> bool {
    const IN_USE: [&str; 2] = ["space", "allocations"];
    let has = |name: &&str| types.iter().any(|(kind, _)| kind == name);
    is_level(sample_type) || IN_USE.contains(&sample_type) && IN_USE.iter().all(has)
}

/// Sample types of which the runtime's part is the program's own waiting or memory.
const WITHOUT_BACKGROUND: &[&str] = &["time", "wall", "goroutine", "goroutineleak", "threadcreate"];

/// Those of a wall clock.
pub(super) const WALL: [&str; 3] = ["wall", "time", "wall_samples"];

/// What counts samples of anything else.
pub(super) const COUNTS: [&str; 2] = ["samples", "sample"];

/// Returns how one of some sample types belongs to the others, as far as sampling depends on it.
pub(crate) fn group_of(types: &[(String, String)], number: usize) -> Group {
    let Some((own, _)) = types.get(number) else { return Group::Sampled };
    let has = |name: &str| types.iter().any(|(kind, _)| kind == name);
    let pair = PAIRS.iter().find(|(cost, count, _)| has(cost) && has(count) && (own == cost || own == count));
    match pair {
        Some((space, objects, Kind::Heap)) => Group::Heap(space, objects),
        Some(_) => Group::Delay { is_counted: true },
        None if DELAYS.contains(&own.as_str()) => Group::Delay { is_counted: false },
        None => Group::Sampled,
    }
}

impl Diff {
    /// Returns how a sample type belongs to others, as far as sampling depends on it.
    pub(crate) fn group(&self, number: usize) -> Group {
        group_of(&self.sample_types(), number)
    }

    /// What is explained if this is asked for.
    pub(super) fn asked(&self, sample_type: Option<&str>, beside: &[String]) -> Result<Asked> {
        let types = self.sample_types();
        let first = match sample_type {
            Some(_) => self.find_sample_type(sample_type)?,
            // An explanation of nothing but zeros helps nobody, and pprof has none that it should equal.
            None => self.type_to_explain().0,
        };
        let Asked { mut number, cost, count, .. } = self.asked_of(first);
        for name in beside {
            let other = self.find_sample_type(Some(name))?;
            // Of a pair the cost is explained, and the count says how much of that is more of them.
            match (cost, count) {
                (Some(cost), Some(count)) if other == cost || other == count => number = cost,
                (None, Some(count)) if other == count || first == count => {
                    number = if other == count { first } else { other };
                }
                _ => {
                    let text = format!("{} and {name} do not belong together: explain one", types[first].0);
                    return Err(Error::query(text));
                }
            }
        }
        Ok(self.asked_of(number))
    }

    /// A sample type with what belongs to it.
    pub(super) fn asked_of(&self, number: usize) -> Asked {
        let types = self.sample_types();
        let named = |name: &str| types.iter().position(|(kind, _)| kind == name);
        let of_pair = PAIRS.iter().find_map(|&(cost, count, kind)| {
            let pair = (named(cost)?, named(count)?);
            (pair.0 == number || pair.1 == number).then_some((pair, kind))
        });
        let counter = || COUNTS.iter().find_map(|name| named(name).filter(|&i| types[i].1 == "count"));
        let count = of_pair.map(|((_, count), _)| count).or_else(counter);
        let name = types[number].0.as_str();
        let uncounted = if DELAYS.contains(&name) { Kind::Delay } else { Kind::Sampled };
        let kind = of_pair.map_or(uncounted, |(_, kind)| kind);
        let has_background = match kind {
            Kind::Heap => false,
            Kind::Delay => true,
            Kind::Sampled => !WITHOUT_BACKGROUND.contains(&name) && !is_level(name),
        };
        Asked { number, count, cost: of_pair.map(|((cost, _), _)| cost), kind, has_background }
    }
}

/// A sample type to be explained, with what belongs to it, by their numbers in [`Diff::sample_types`].
pub(super) struct Asked {
    pub(super) number: usize,
    /// What counts it.
    pub(super) count: Option<usize>,
    /// What is counted, where that is a sample type, too.
    pub(super) cost: Option<usize>,
    pub(super) kind: Kind,
    has_background: bool,
}

impl Asked {
    /// Reads something of both sides, of which `value` is the cost.
    pub(super) fn read<T>(
        &self,
        selection: &Selection,
        value: &Measure,
        learned: usize,
        read: impl FnOnce(&Columns<'_>) -> T,
    ) -> Result<T> {
        let measure = |number: usize| selection.measure_type(number, Normalize::None);
        let bytes = self.cost.filter(|_| self.kind == Kind::Heap);
        let (count, bytes) = (self.count.map(measure).transpose()?, bytes.map(measure).transpose()?);
        let (count, bytes) = (count.as_ref(), bytes.as_ref());
        let Asked { kind, has_background, .. } = *self;
        let diff = selection.diff();
        let is_level = is_level_among(&diff.sample_types(), &value.summary().sample_type);
        let rates = diff.rates(self.number);
        Ok(read(&Columns { value, count, bytes, kind, has_background, learned, is_level, rates }))
    }
}
