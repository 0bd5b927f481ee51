//! Repeated runs: a run that a side repeats, by its file or by its content, counts as one run. Counting it several
//! times would underestimate the noise, and chance would look like a change.
//!
//! Two profiles with equal content are the same recording if they record a time. Others, such as folded text, may be
//! two runs of a program that does exactly the same work each time. They remain separate runs, with a warning.

use std::path::Path;
use std::sync::Arc;

use super::Input;
use crate::Result;
use crate::sampling::counts_every_event;
use crate::{LoadOptions, Source};
use pprofdiff_profile::{Profile, parallel};

/// The maximum number of runs that warnings name.
const MAX_NAMED: usize = 3;

/// Loads the sources of a side. Loads a file only once, even if it has several names.
pub(super) fn load_side(side: &[Source], options: &LoadOptions) -> Result<Vec<Arc<Profile>>> {
    let files: Vec<Option<FileIdentity>> = side.iter().map(|source| FileIdentity::from_path(source.path()?)).collect();
    let first_of =
        |index: usize| files[..index].iter().position(|file| file.is_some() && *file == files[index]).unwrap_or(index);
    let firsts: Vec<usize> = (0..side.len()).map(first_of).collect();
    let different: Vec<usize> = (0..side.len()).filter(|&index| firsts[index] == index).collect();
    let loaded =
        parallel::map(&different, |&index| side[index].load(options)).into_iter().collect::<Result<Vec<_>>>()?;
    let profile = |first: usize| different.binary_search(&first).ok().map(|index| loaded[index].clone());
    Ok(firsts.into_iter().filter_map(profile).collect())
}

/// The identity of a regular file, independent of its name.
#[derive(PartialEq, Eq)]
struct FileIdentity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] std::path::PathBuf);

impl FileIdentity {
    fn from_path(path: &Path) -> Option<FileIdentity> {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(FileIdentity((metadata.dev(), metadata.ino())))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            path.canonicalize().ok().map(FileIdentity)
        }
    }
}

/// Returns the runs of both sides without repeats, and warnings about the repeats.
pub(super) fn distinct(inputs: &[Input]) -> (Vec<Input>, Vec<String>) {
    let (mut runs, mut warnings): (Vec<&Input>, Vec<String>) = (Vec::new(), Vec::new());
    for is_base in [false, true] {
        let begin = runs.len();
        let (mut repeats, mut copies) = (Vec::new(), Vec::new());
        for input in inputs.iter().filter(|input| input.base == is_base) {
            match runs[begin..].iter().copied().find(|run| has_same_content(&run.profile, &input.profile)) {
                Some(run) if is_same_run(&run.profile, &input.profile) => count(&mut repeats, run.profile.name()),
                copy => {
                    // Counts repeat between runs.
                    let copy = copy.filter(|run| !has_only_counts(&run.profile));
                    copy.into_iter().for_each(|run| count(&mut copies, run.profile.name()));
                    runs.push(input);
                }
            }
        }
        let side = if is_base { "base" } else { "new side" };
        warnings.extend(words(&repeats, |name, more| {
            format!("{name}: the {side} names this run {} times; it counts once", more + 1)
        }));
        warnings.extend(words(&copies, |name, more| {
            let others = if more == 1 { "run" } else { "runs" };
            format!(
                "{name}: the same content as {more} other {others} of the {side}; if these are copies, keep only one"
            )
        }));
    }
    (runs.into_iter().cloned().collect(), warnings)
}

/// Increments the count of a name.
fn count<'n>(all: &mut Vec<(&'n str, usize)>, name: &'n str) {
    match all.iter_mut().find(|(other, _)| *other == name) {
        Some((_, more)) => *more += 1,
        None => all.push((name, 1)),
    }
}

fn words(all: &[(&str, usize)], say: impl Fn(&str, usize) -> String) -> Vec<String> {
    let (named, others) = all.split_at(all.len().min(MAX_NAMED));
    let mut words: Vec<String> = named.iter().map(|(name, more)| say(name, *more)).collect();
    if let (Some(last), false) = (words.last_mut(), others.is_empty()) {
        last.push_str(&format!(" (and {} more such runs)", others.len()));
    }
    words
}

fn has_same_content(a: &Arc<Profile>, b: &Arc<Profile>) -> bool {
    Arc::ptr_eq(a, b)
        || (a.n_samples() == b.n_samples()
            && a.inflated_size() == b.inflated_size()
            && a.window() == b.window()
            && a.buffer() == b.buffer())
}

/// Returns true if the profile only counts calls or instructions, which equal runs repeat. cProfile also measures times, and
/// two runs do not take the same time to the nanosecond, so files with equal times are copies. Times of 0, such as of
/// valgrind's system calls, are no measurement.
fn has_only_counts(profile: &Profile) -> bool {
    let types = profile.sample_types();
    let is_time = |(i, (_, unit)): (usize, &(String, String))| {
        unit == "nanoseconds" && profile.total(i).is_some_and(|total| total != 0)
    };
    types.iter().any(|(kind, unit)| counts_every_event(kind, unit)) && !types.iter().enumerate().any(is_time)
}

/// Returns true if two profiles with the same content are one recording.
fn is_same_run(a: &Arc<Profile>, b: &Arc<Profile>) -> bool {
    Arc::ptr_eq(a, b) || a.time_nanos() != 0
}
