//! Caches columns of a store's builds, so that adding a build to a history only reads the new build.
//!
//! ```text
//! builds, in their order -> groups of about 64 -> one file each below STORE/_series, named by a hash of its inputs
//! ```
//!
//! The id of a build decides whether it ends a group. Groups do not end after a fixed number of builds, so adding or
//! removing a build in the middle only changes its own group. While the last group grows, its cached prefix is reused.
//!
//! Ids are hashes of the whole content of a profile. A cached file therefore stays valid, whatever happens to the
//! profiles. It is only used for builds that exist. Invalid files are replaced. Whoever can write to the cache can also
//! write to the store, so it needs no further protection.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::stored::needs_samples;
use crate::FrameValue;
use crate::known::{BuildColumn, BuildGroup};
use pprofdiff::LoadOptions;
use pprofdiff::input::{DerivedData, Source};
use pprofdiff::{Frames, Query, Result};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::columns::Total;

/// The version of the format. It must change if the meaning of columns changes.
const SCHEMA: &str = concat!("pprofdiff-series/2 ", env!("CARGO_PKG_VERSION"));
/// The mean number of builds in a group: one build in 64 ends its group.
const MEAN_BUILDS: u8 = 64;
/// The maximum number of builds in a group.
const MAX_BUILDS: usize = 256;

/// Returns the store and the id of each profile of a build, or `None` if a part of it is not in a store.
fn profiles(source: &Source) -> Option<Vec<(&dyn DerivedData, &str)>> {
    match source {
        Source::Custom(stored) => Some(vec![stored.derived()?]),
        Source::Merged(_, parts) => {
            let stored =
                parts.iter().map(|part| if let Source::Custom(stored) = part { stored.derived() } else { None });
            stored.collect()
        }
        _ => None,
    }
}

/// Returns the store of a build, and whether the build ends its group. Returns `None` for builds that are not in a
/// store.
fn place(source: &Source) -> Option<(&dyn DerivedData, bool)> {
    let profiles = profiles(source)?;
    let &(store, id) = profiles.first()?;
    let tail = id.get(30..).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    Some((store, tail.is_none_or(|tail| tail.is_multiple_of(MEAN_BUILDS))))
}

/// Returns true if a build belongs to the group of the builds before it: it is in the same store, the last of these
/// builds does not end the group, and there are fewer than [`MAX_BUILDS`]. A build that is not in a store stays alone.
pub(super) fn continues(group: &[(String, Source)], next: &Source) -> bool {
    let Some((store, false)) = group.last().and_then(|(_, last)| place(last)) else { return false };
    group.len() < MAX_BUILDS && place(next).is_some_and(|(other, _)| other.path() == store.path())
}

/// The cached form of a column. Its frames are shared by the group.
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

/// Returns the columns of a group of builds. Reads missing columns from the profiles and caches them. Returns `None` if
/// the cache does not support the query: it holds only the costs of functions for a named sample type, of builds in a
/// store.
pub(super) fn group(
    builds: &[(String, Source)],
    query: &Query,
    load: &LoadOptions,
    read_builds: &dyn Fn(&[(String, Source)]) -> BuildGroup,
) -> Option<BuildGroup> {
    let sample_type = query.sample_type.as_deref().filter(|_| !needs_samples(query, load))?;
    let (store, _) = place(&builds.first()?.1)?;
    let names = names(builds, sample_type, load)?;
    let prefix = (1..=builds.len()).rev().find_map(|n| Some((n, read(store, &names[n - 1], n, sample_type)?)));
    let (cached_len, prefix) = match prefix {
        Some((n, group)) if n == builds.len() => return Some(group),
        Some((n, group)) => (n, Some(group)),
        None => (0, None),
    };
    let rest = read_builds(&builds[cached_len..]);
    let group = BuildGroup::concat(prefix.into_iter().chain([rest]).collect(), query.granularity).ok()?;
    if let Some(bytes) = to_bytes(&group) {
        store.write(&names[builds.len() - 1], bytes);
        if cached_len > 0 {
            store.remove(&names[cached_len - 1]);
        }
    }
    Some(group)
}

/// Returns for each prefix of the builds the name of its cached file. Returns `None` if a build is not in a store.
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
        profiles.iter().for_each(|(_, id)| hash.update(id));
        let digest = hash.clone().finalize();
        names.push(digest[..16].iter().map(|byte| format!("{byte:02x}")).collect());
    }
    Some(names)
}

/// Reads the cached columns of `n` builds. The file is validated like untrusted input. Returns `None` if it is missing
/// or invalid.
fn read(store: &dyn DerivedData, name: &str, n: usize, sample_type: &str) -> Option<BuildGroup> {
    let bytes = store.read(name)?;
    cancellation::checkpoint();
    let ((frames, columns), rest): ((Frames, Vec<KeptColumn>), _) = postcard::take_from_bytes(&bytes).ok()?;
    if !rest.is_empty() || columns.len() != n || !frames.are_functions() {
        return None;
    }
    let mut seen = vec![usize::MAX; frames.len()];
    let check = |(column, kept): (usize, KeptColumn)| {
        let [sum, magnitude] = kept.total;
        let fits = |value: i64| magnitude >= 0 && value.unsigned_abs() <= magnitude.unsigned_abs();
        let is_new = |frame: u32| {
            let before = seen.get_mut(frame as usize).map(|last| std::mem::replace(last, column));
            before.is_some_and(|before| before != column)
        };
        let values_fit = kept.values.iter().all(|v| fits(v.flat) && fits(v.cum));
        let is_right = fits(sum) && kept.sample_type == sample_type && kept.event.is_finite() && values_fit;
        let mut frames = kept.values.iter().map(|v| v.frame);
        (is_right && frames.all(is_new)).then(|| {
            Ok(BuildColumn {
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
    Some(BuildGroup { frames, columns })
}

impl KeptColumn<'_> {
    /// Returns `None` for a build that failed, and for a build with warnings, since warnings may contain its name.
    fn new(column: &Result<BuildColumn>) -> Option<KeptColumn<'_>> {
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

/// Serializes a group. Returns `None` if a column cannot be cached, because its build failed or has warnings.
fn to_bytes(group: &BuildGroup) -> Option<Vec<u8>> {
    let columns = group.columns.iter().map(KeptColumn::new).collect::<Option<Vec<_>>>()?;
    postcard::to_stdvec(&(&group.frames, columns)).ok()
}
