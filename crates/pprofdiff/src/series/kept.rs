//! Columns of a store's builds that were made before, so that a history with one build more reads that build alone.
//!
//! ```text
//! builds, in their order -> groups of some 64 -> one file each below STORE/_series, by a hash of what it follows from
//! ```
//!
//! A group ends behind a build whose id says so, not after so many: a build that is added, or removed in the middle,
//! changes its own group and no other. While the last group grows, it is made of what is kept of its beginning.
//!
//! Ids are hashes of all that a profile holds, so a file says what its profiles do, whatever happened to them since; and
//! only builds that are there are asked for. It is a cache: what is wrong in it is made again. Who can write into it can
//! write into the store, too.

use std::borrow::Cow;
use std::iter::Peekable;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::FrameValue;
use super::builder::{Column, Group, read_group};
use super::stored::asks_more;
use crate::Result;
use crate::diff::{Frames, Query};
use pprofdiff_profile::LoadOptions;
use pprofdiff_profile::columns::Total;
use pprofdiff_profile::input::Source;
use pprofdiff_profile::store::{Store, StoredProfile};
use pprofdiff_profile::work;

/// Another number where columns mean something else.
const SCHEMA: &str = concat!("pprofdiff-series/2 ", env!("CARGO_PKG_VERSION"));
/// One build of so many is the last of its group.
const USUAL: u8 = 64;
/// The most builds of a group.
const MAX_BUILDS: usize = 256;

/// The profiles of a build that is in a store.
fn profiles(source: &Source) -> Option<Vec<&StoredProfile>> {
    match source {
        Source::Stored(stored) => Some(vec![stored]),
        Source::Merged(_, parts) => {
            let stored = parts.iter().map(|part| if let Source::Stored(stored) = part { Some(stored) } else { None });
            stored.collect()
        }
        _ => None,
    }
}

/// The store that a build is in, and whether it is the last of its group; `None` of builds that are in no store.
fn place(source: &Source) -> Option<(&Store, bool)> {
    let profiles = profiles(source)?;
    let first = profiles.first()?;
    let tail = first.id().get(30..).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    Some((first.store(), tail.is_none_or(|tail| tail.is_multiple_of(USUAL))))
}

/// A group with all builds that come next and belong to it: of a store up to one that is the last.
pub(super) fn filled(
    mut group: Vec<(String, Source)>,
    builds: &mut Peekable<impl Iterator<Item = (String, Source)>>,
) -> Vec<(String, Source)> {
    while let Some((store, false)) = group.last().and_then(|(_, last)| place(last))
        && group.len() < MAX_BUILDS
        && let Some(next) = builds.next_if(|(_, next)| place(next).is_some_and(|(other, _)| other == store))
    {
        group.push(next);
    }
    group
}

/// What is kept of a build, of frames that its group shares.
#[derive(Serialize, Deserialize)]
struct KeptColumn<'a> {
    values: Cow<'a, [FrameValue]>,
    total: [i64; 2],
    sample_type: Cow<'a, str>,
    unit: Cow<'a, str>,
    samples: u32,
    duration_nanos: i64,
    time_nanos: i64,
    event: f64,
}

/// The columns of a group of builds: what is kept, and the others read and kept. `None` where nothing is kept of such a
/// question.
pub(super) fn group(builds: &[(String, Source)], query: &Query, load: &LoadOptions) -> Option<Group> {
    let sample_type = query.sample_type.as_deref().filter(|_| !asks_more(query, load))?;
    let (store, _) = place(&builds.first()?.1)?;
    let names = names(builds, sample_type, load)?;
    let begun = (1..=builds.len()).rev().find_map(|n| Some((n, read(store, &names[n - 1], n, sample_type)?)));
    let (known, begun) = match begun {
        Some((n, group)) if n == builds.len() => return Some(group),
        Some((n, group)) => (n, Some(group)),
        None => (0, None),
    };
    let rest = read_group(&builds[known..], query, load);
    let group = Group::concat(begun.into_iter().chain([rest]).collect(), query.granularity).ok()?;
    if let Some(bytes) = to_bytes(&group) {
        store.write_derived(&names[builds.len() - 1], bytes);
        if known > 0 {
            store.remove_derived(&names[known - 1]);
        }
    }
    Some(group)
}

/// What the columns of the first builds are called, for each number of them.
fn names(builds: &[(String, Source)], sample_type: &str, load: &LoadOptions) -> Option<Vec<String>> {
    let mut hash = Sha256::new();
    hash.update(SCHEMA);
    hash.update(load.inflated_limit.to_le_bytes());
    hash.update((sample_type.len() as u64).to_le_bytes());
    hash.update(sample_type);
    let mut names = Vec::with_capacity(builds.len());
    for (_, source) in builds {
        let profiles = profiles(source)?;
        hash.update((profiles.len() as u64).to_le_bytes());
        profiles.iter().for_each(|stored| hash.update(stored.id()));
        let digest = hash.clone().finalize();
        names.push(digest[..16].iter().map(|byte| format!("{byte:02x}")).collect());
    }
    Some(names)
}

/// What is kept of so many builds, checked as all that a stranger may have written.
fn read(store: &Store, name: &str, n: usize, sample_type: &str) -> Option<Group> {
    let bytes = store.read_derived(name)?;
    work::poll();
    let ((frames, columns), rest): ((Frames, Vec<KeptColumn>), _) = postcard::take_from_bytes(&bytes).ok()?;
    if !rest.is_empty() || columns.len() != n || !frames.are_functions() {
        return None;
    }
    let mut seen = vec![usize::MAX; frames.len()];
    let check = |(at, kept): (usize, KeptColumn)| {
        let [sum, magnitude] = kept.total;
        let fits = |value: i64| magnitude >= 0 && value.unsigned_abs() <= magnitude.unsigned_abs();
        let is_new = |frame: u32| {
            let before = seen.get_mut(frame as usize).map(|last| std::mem::replace(last, at));
            before.is_some_and(|before| before != at)
        };
        let values_fit = kept.values.iter().all(|v| fits(v.flat) && fits(v.cum));
        let is_right = fits(sum) && kept.sample_type == sample_type && kept.event.is_finite() && values_fit;
        let mut frames = kept.values.iter().map(|v| v.frame);
        (is_right && frames.all(is_new)).then(|| {
            Ok(Column {
                values: kept.values.into_owned(),
                total: Total { sum, magnitude },
                sample_type: kept.sample_type.into_owned(),
                unit: kept.unit.into_owned(),
                samples: kept.samples as usize,
                duration_nanos: kept.duration_nanos,
                time_nanos: kept.time_nanos,
                warnings: Vec::new(),
                event: kept.event,
            })
        })
    };
    let columns = columns.into_iter().enumerate().map(check).collect::<Option<_>>()?;
    Some(Group { frames, columns })
}

impl KeptColumn<'_> {
    /// `None` of a build that failed, or was warned of, which may be by its name.
    fn new(column: &Result<Column>) -> Option<KeptColumn<'_>> {
        let column = column.as_ref().ok().filter(|column| column.warnings.is_empty())?;
        Some(KeptColumn {
            values: Cow::Borrowed(&column.values),
            total: [column.total.sum, column.total.magnitude],
            sample_type: Cow::Borrowed(&column.sample_type),
            unit: Cow::Borrowed(&column.unit),
            samples: u32::try_from(column.samples).ok()?,
            duration_nanos: column.duration_nanos,
            time_nanos: column.time_nanos,
            event: column.event,
        })
    }
}

/// A group as it is kept, if all of it can be.
fn to_bytes(group: &Group) -> Option<Vec<u8>> {
    let columns = group.columns.iter().map(KeptColumn::new).collect::<Option<Vec<_>>>()?;
    postcard::to_stdvec(&(&group.frames, columns)).ok()
}
