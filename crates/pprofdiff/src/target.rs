//! Facts about sample types that tests of chance need: which types belong together, which type counts another, how a type is
//! sampled, and whether the runtime's share of a type is background.

use crate::diff::{Diff, Measure, Normalize, Selection};
use crate::events::{Columns, ValueKind, known_variance_of};
use crate::sampling::{Group, counts_every_event};
use crate::{Error, Result};

/// Pairs of sample types `(cost, count, sampling)`: the second type counts what the first type measures.
const PAIRS: &[(&str, &str, ValueKind)] = &[
    ("alloc_space", "alloc_objects", ValueKind::Heap),
    ("inuse_space", "inuse_objects", ValueKind::Heap),
    ("space", "objects", ValueKind::Heap),
    ("space", "allocations", ValueKind::Heap),
    ("native_alloc_space", "native_alloc_objects", ValueKind::Heap),
    ("native_inuse_space", "native_inuse_objects", ValueKind::Heap),
    ("delay", "contentions", ValueKind::Delay),
    ("park", "parks", ValueKind::Delay),
];

/// The sample type of all allocations, in heap profiles that also have memory in use.
pub const ALLOCATED: &str = "alloc_space";

/// Sample types of delays, including types without a count.
const DELAYS: [&str; 4] = ["delay", "park", "lock", "locks"];

/// Returns true for a sample type that measures delays.
pub fn is_delay(sample_type: &str) -> bool {
    DELAYS.contains(&sample_type)
}

/// Sample types that measure a level instead of activity. A larger level does not mean more work.
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

/// Returns true for a sample type that measures a level, whatever the other types of the profile are.
pub fn is_level(sample_type: &str) -> bool {
    LEVELS.contains(&sample_type)
}

/// Returns true for a sample type that measures a level. JAX calls device memory in use `space`, and counts it by
/// `allocations`.
pub fn is_level_among(types: &[(String, String)], sample_type: &str) -> bool {
    const IN_USE: [&str; 2] = ["space", "allocations"];
    let has = |name: &&str| types.iter().any(|(kind, _)| kind == name);
    is_level(sample_type) || IN_USE.contains(&sample_type) && IN_USE.iter().all(has)
}

/// Sample types whose runtime frames are not background: they are the program's own waiting or memory.
const WITHOUT_BACKGROUND: &[&str] = &["time", "wall", "goroutine", "goroutineleak", "threadcreate"];

/// Sample types of a wall clock.
pub(crate) const WALL: [&str; 3] = ["wall", "time", "wall_samples"];

/// Sample types that count the samples of any other type.
pub(crate) const COUNTS: [&str; 2] = ["samples", "sample"];

/// Returns how a sample type relates to other types, as far as its sampling depends on them.
pub(crate) fn group_of(types: &[(String, String)], number: usize) -> Group {
    let Some((name, _)) = types.get(number) else { return Group::Sampled };
    let has_type = |name: &str| types.iter().any(|(kind, _)| kind == name);
    let pair =
        PAIRS.iter().find(|(cost, count, _)| has_type(cost) && has_type(count) && (name == cost || name == count));
    match pair {
        Some((space, objects, ValueKind::Heap)) => Group::Heap(space, objects),
        Some(_) => Group::Delay { is_counted: true },
        None if is_delay(name) => Group::Delay { is_counted: false },
        None => Group::Sampled,
    }
}

impl Diff {
    /// Returns how a sample type relates to other types, as far as its sampling depends on them.
    pub(crate) fn group(&self, number: usize) -> Group {
        group_of(&self.sample_types(), number)
    }

    /// Returns the sample type to explain for a query's sample type and the types that the user listed beside it.
    /// Without a sample type in the query, this is the default, or the first sample type with values. Fails for an
    /// unknown type, and for types that are not a pair of cost and count.
    #[doc(hidden)]
    pub fn explain_target(&self, sample_type: Option<&str>, beside: &[String]) -> Result<ExplainTarget> {
        let types = self.sample_types();
        let first = match sample_type {
            Some(_) => self.find_sample_type(sample_type)?,
            // Explaining zeros helps nobody. pprof lacks such a command, so there is no behaviour to match.
            None => self.type_to_explain().0,
        };
        let ExplainTarget { mut number, cost, count, .. } = self.target_of(first);
        for name in beside {
            let other = self.find_sample_type(Some(name))?;
            // For a pair, explain the cost. The count then shows how much of the change is a different count.
            match (cost, count) {
                (Some(cost), Some(count)) if other == cost || other == count => number = cost,
                (None, Some(count)) if other == count || first == count => {
                    number = if other == count { first } else { other };
                }
                _ => {
                    let text = format!("{} and {name} do not belong together: explain them separately", types[first].0);
                    return Err(Error::query(text));
                }
            }
        }
        Ok(self.target_of(number))
    }

    /// Returns a sample type together with its pair or counter.
    #[doc(hidden)]
    pub fn target_of(&self, number: usize) -> ExplainTarget {
        let types = self.sample_types();
        let position_of = |name: &str| types.iter().position(|(kind, _)| kind == name);
        let pair_and_kind = PAIRS.iter().find_map(|&(cost, count, kind)| {
            let pair = (position_of(cost)?, position_of(count)?);
            (pair.0 == number || pair.1 == number).then_some((pair, kind))
        });
        let counter = || COUNTS.iter().find_map(|name| position_of(name).filter(|&i| types[i].1 == "count"));
        let count = pair_and_kind.map(|((_, count), _)| count).or_else(counter);
        let name = types[number].0.as_str();
        let uncounted = match &types[number] {
            (name, _) if is_delay(name) => ValueKind::Delay,
            (name, unit) if counts_every_event(name, unit) => ValueKind::Counted,
            _ => ValueKind::Sampled,
        };
        let kind = pair_and_kind.map_or(uncounted, |(_, kind)| kind);
        let has_background = match kind {
            ValueKind::Heap => false,
            ValueKind::Delay => true,
            ValueKind::Sampled | ValueKind::Counted => !WITHOUT_BACKGROUND.contains(&name) && !is_level(name),
        };
        ExplainTarget { number, count, cost: pair_and_kind.map(|((cost, _), _)| cost), kind, has_background }
    }
}

/// A sample type to explain and the types that belong to it, as numbers in [`Diff::sample_types`].
#[derive(Debug)]
pub struct ExplainTarget {
    /// The sample type.
    pub number: usize,
    /// The sample type that counts it: the count of its pair, or else the number of samples. `None` if there is
    /// neither.
    pub count: Option<usize>,
    /// The cost of the pair. `None` if the type does not belong to a pair of cost and count.
    pub cost: Option<usize>,
    /// The way its values were measured.
    pub kind: ValueKind,
    has_background: bool,
}

impl ExplainTarget {
    /// Reads the columns of both sides. `value` is the cost.
    pub fn read<T>(
        &self,
        selection: &Selection,
        value: &Measure,
        learned: usize,
        read: impl FnOnce(&Columns<'_>) -> T,
    ) -> Result<T> {
        let measure = |number: usize| selection.measure_type(number, Normalize::None);
        let bytes = self.cost.filter(|_| self.kind == ValueKind::Heap);
        let (count, bytes) = (self.count.map(measure).transpose()?, bytes.map(measure).transpose()?);
        let (count, bytes) = (count.as_ref(), bytes.as_ref());
        let ExplainTarget { kind, has_background, .. } = *self;
        let diff = selection.diff();
        let types = diff.sample_types();
        let is_level = is_level_among(&types, &value.summary().sample_type);
        let rates = diff.rates(self.number);
        let known_variance = known_variance_of(kind, &types[self.number].0, &types);
        Ok(read(&Columns { value, count, bytes, kind, has_background, learned, is_level, rates, known_variance }))
    }
}
