//! Adds whole profiles up, each multiplied by a weight.

use super::super::types::{CommonType, common_types};
use super::super::{DOUBTFUL_SIDES, Profile, Sampled, WriteOptions, pack};
use super::{Everything, MergePart, MergedFields, Merger, SampleOrder};
use crate::cancellation;
use crate::error::{Error, ErrorKind, Result};

/// Merges profiles by adding up their samples.
///
/// The result keeps the sample types that all profiles have, in their finest unit. It has the earliest time, the sum of
/// the durations, and each distinct comment once. Its period is the longest period among the profiles that have the
/// first declared period type. The other fields come from the first profile that sets them. Written diffs merge into
/// the diff of both sides' sums.
///
/// # Errors
/// Fails if there are no profiles or no common sample type, if units do not convert into each other, if values add up
/// past int64, if only some of the profiles are written diffs, or if [`Profile::may_be_diff`] is true for a profile.
pub fn merge(profiles: &[&Profile]) -> Result<Profile> {
    merge_as("merged", profiles)
}

/// Merges like [`merge`], and names the result.
pub fn merge_as(name: &str, profiles: &[&Profile]) -> Result<Profile> {
    sum(name, profiles, &vec![1; profiles.len()], 1)
}

/// The number of parts in a weight of 1.
const PARTS: i64 = 1_000_000;

/// Merges like [`merge`], with each profile's values multiplied by its weight. A weight of 3 gives the same values as
/// passing the profile three times. Durations are added up without weights, because pprof's `Profile.Scale` does not
/// change them either. Weights are rounded to six decimals.
///
/// Whole weights give exact results. With fractional weights, the rounding error of each sample carries over to the
/// next, so the sum of each sample type is rounded only once.
///
/// # Errors
/// Fails like [`merge`], and if a weight is outside 0.000001 to 1000000 or weighted values add up past int64.
pub fn merge_weighted(profiles: &[(&Profile, f64)]) -> Result<Profile> {
    let (profiles, weights, parts) = whole_weights(profiles)?;
    sum("merged", &profiles, &weights, parts)
}

/// Merges like [`merge_weighted`], and returns the bytes of a file with the merged profile. This function does not
/// decode the profile that it has just encoded, so it is faster than [`Profile::to_bytes`] of that profile.
///
/// # Errors
/// Returns the errors of [`merge_weighted`] and [`Profile::to_bytes`].
pub fn merge_bytes(profiles: &[(&Profile, f64)], options: &WriteOptions) -> Result<Vec<u8>> {
    let (profiles, weights, parts) = whole_weights(profiles)?;
    pack(&sum_message(&profiles, &weights, parts)?.0, options)
}

/// Returns the bytes of a file with the profile, in which views show the sample type `kind` by default.
///
/// # Errors
/// Fails if the profile has no such sample type. Returns the errors of [`merge`] and [`Profile::to_bytes`].
pub fn with_default_type(profile: &Profile, kind: &str, options: &WriteOptions) -> Result<Vec<u8>> {
    if !profile.sample_types().iter().any(|(name, _)| name == kind) {
        return Err(Error::query(format!("there is no sample type {kind}")).in_input(profile.name()));
    }
    pack(&sum_message_with(&[profile], &[1], 1, Some(kind))?.0, options)
}

/// Returns the profiles, their weights as whole numbers, and the number that stands for a weight of 1.
fn whole_weights<'p>(profiles: &[(&'p Profile, f64)]) -> Result<(Vec<&'p Profile>, Vec<i64>, i64)> {
    let whole = |&(_, weight): &(&Profile, f64)| match (weight * PARTS as f64).round() {
        parts if (1e-6..=1e6).contains(&weight) => Ok(parts as i64),
        _ => Err(Error::query(format!("a weight is a number from 0.000001 to 1000000, not {weight}"))),
    };
    let weights = profiles.iter().map(whole).collect::<Result<Vec<_>>>()?;
    // Reduce the weights to lowest terms, which leaves the sums the most room below int64.
    let divisor = weights.iter().fold(PARTS, |a, &b| gcd(a, b));
    let weights: Vec<i64> = weights.iter().map(|weight| weight / divisor).collect();
    Ok((profiles.iter().map(|(profile, _)| *profile).collect(), weights, PARTS / divisor))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Divides `value` by `parts` and rounds half away from zero.
fn rounded(value: i64, parts: i64) -> i64 {
    let (value, parts) = (i128::from(value), i128::from(parts));
    ((2 * value + value.signum() * parts) / (2 * parts)) as i64
}

/// Merges the profiles. Each profile's values are multiplied by its weight and divided by `parts`.
fn sum(name: &str, profiles: &[&Profile], weights: &[i64], parts: i64) -> Result<Profile> {
    let (message, types) = sum_message(profiles, weights, parts)?;
    Ok(Profile::decode(name, message)?.with_sampled(sampled(profiles, &types, weights, parts)))
}

/// Returns the encoded sum of [`sum`] and its sample types.
fn sum_message(profiles: &[&Profile], weights: &[i64], parts: i64) -> Result<(Vec<u8>, Vec<CommonType>)> {
    sum_message_with(profiles, weights, parts, None)
}

fn sum_message_with(
    profiles: &[&Profile],
    weights: &[i64],
    parts: i64,
    default_type: Option<&str>,
) -> Result<(Vec<u8>, Vec<CommonType>)> {
    if profiles.is_empty() {
        return Err(Error::query("there is no profile to merge"));
    }
    if let Some(diff) = profiles.iter().find(|p| p.is_diff()).filter(|_| !profiles.iter().all(|p| p.is_diff())) {
        let detail = "this is a written diff, but others are not; merge only diffs, or only the profiles of one side";
        return Err(Error::new(ErrorKind::Incompatible, detail).in_input(diff.name()));
    }
    if let Some(doubtful) = profiles.iter().find(|p| p.may_be_diff()) {
        return Err(Error::new(ErrorKind::Incompatible, DOUBTFUL_SIDES).in_input(doubtful.name()));
    }
    cancellation::begin_phase("merging");
    let types = common_types(profiles)?;
    check_weights(profiles, &types, weights)?;
    let mut merger = Merger::new(&types);
    for (index, (&profile, &weight)) in profiles.iter().zip(weights).enumerate() {
        merger.add(MergePart { profile, index, side: None, as_base: false, weight, selection: Everything(profile) });
    }
    let duration = profiles.iter().fold(0i64, |sum, p| sum.saturating_add(p.duration_nanos()));
    let fields = MergedFields {
        duration_nanos: duration,
        frames_dropped: false,
        default_type: default_type.and_then(|kind| types.iter().position(|t| t.kind == kind)),
        order: SampleOrder::Grouped,
    };
    let mut before = vec![0_i64; types.len()];
    let message = merger.finish(profiles, fields, |_, column, v| {
        if parts == 1 {
            return v;
        }
        let after = before[column] + v;
        rounded(after, parts) - rounded(std::mem::replace(&mut before[column], after), parts)
    });
    Ok((message, types))
}

/// Returns statistics about the samples behind each sample type of the sum. A type's statistics are empty if a profile
/// with values of this type does not list its samples.
fn sampled(profiles: &[&Profile], types: &[CommonType], weights: &[i64], parts: i64) -> Vec<Sampled> {
    let of_type = |t: &CommonType| {
        let mut sum = Sampled::default();
        for ((profile, &(column, times)), &weight) in profiles.iter().zip(&t.columns).zip(weights) {
            match profile.sampled(column) {
                Some(samples) => sum.merge(samples, times as f64 * weight as f64 / parts as f64),
                None if profile.totals()[column].magnitude == 0 => {}
                None => return Sampled::default(),
            }
        }
        sum
    };
    types.iter().map(of_type).collect()
}

/// Checks that no weighted sum overflows.
fn check_weights(profiles: &[&Profile], types: &[CommonType], weights: &[i64]) -> Result<()> {
    for t in types {
        let weighted = profiles.iter().zip(&t.columns).zip(weights).map(|((p, &(column, times)), &weight)| {
            let each = times.checked_mul(weight)?;
            i128::from(p.totals()[column].magnitude).checked_mul(i128::from(each))
        });
        let sum = weighted.sum::<Option<i128>>();
        if sum.is_none_or(|sum| sum > i128::from(i64::MAX)) {
            let detail = format!(
                "the weighted values of sample type {} add up to more than an int64 holds; use smaller weights, or fewer \
                 decimals",
                t.kind
            );
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::merge_weighted;
    use crate::builder::ProfileBuilder;

    #[test]
    fn weights_outside_the_documented_range_are_refused() {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("cpu", "nanoseconds");
        let Ok(profile) = builder.build("p") else { panic!() };
        let is_accepted = |weight: f64| merge_weighted(&[(&profile, weight)]).is_ok();
        assert!([1e-6, 0.5, 1.0, 1e6].into_iter().all(is_accepted));
        assert!(![9e-7, 5e-7, 0.0, -1.0, 1_000_001.0, f64::NAN, f64::INFINITY].into_iter().any(is_accepted));
    }
}
