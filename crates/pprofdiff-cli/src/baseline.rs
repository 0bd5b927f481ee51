//! A folder with the profiles of the last builds of one or more branches. `check --baseline` compares with the profiles
//! of one branch.
//!
//! An entry is two files: `ID.pb.gz` (the profile) and `ID.json` (branch, commit, time and labels). The id consists of
//! the time and a random number, so two writers never write the same file. This needs no lock, which a killed job would
//! leave behind, and the small JSON files serve as the index. The profile is written first, so every entry has one.
//!
//! The folder may come from a cache that strangers can write. Therefore no file contains the path of another file,
//! links are not followed, sizes and counts are bounded, and unreadable entries are skipped with a warning.

use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pprofdiff::text::sanitize;
use pprofdiff::{Diff, LoadOptions, Profile, Source, WriteOptions};
use pprofdiff_shell::{Failure, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::BaselineArgs;

/// The maximum of `--keep`, the number of profiles of a branch that are kept and compared.
pub const MAX_PROFILES: usize = 50;
const SCHEMA: &str = "pprofdiff-baseline/1";
/// The maximum number of entries in a folder, counting all branches, and the maximum size of an `ID.json` file in
/// bytes.
const MAX_ENTRIES: usize = 20_000;
const MAX_BYTES: u64 = 16 << 10;
/// The tolerance for clocks that disagree, in seconds. An entry further in the future has a wrong time.
const EARLY: u64 = 24 * 60 * 60;
/// The maximum number of warnings about single entries.
const MAX_LISTED: usize = 10;
/// The age after which a profile without an entry counts as left behind by a killed job.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The facts about a stored profile: the content of `ID.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BaselineEntry {
    schema: String,
    branch: String,
    /// The name of the checked program, if the check has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    commit: Option<String>,
    /// Seconds since 1970.
    time: u64,
    labels: Map<String, Value>,
}

/// The entries of one branch and one name that have the requested labels.
pub struct Baseline<'a> {
    dir: &'a Path,
    selector: BaselineEntry,
    keep: usize,
    /// Entries with their ids, newest first.
    entries: Vec<(String, BaselineEntry)>,
    /// Entries whose time is in the future.
    future: Vec<(String, BaselineEntry)>,
    /// The number of entries that were skipped before their profile was read. Includes unreadable entries, which may
    /// belong to another branch.
    left_out: usize,
    /// Warnings about skipped entries.
    warnings: Vec<String>,
}

impl<'a> Baseline<'a> {
    /// Reads the entries of a folder. A folder that does not exist has no entries. A check with a name has only entries with
    /// this name, and a check without one only entries without a name, because a folder may hold several programs.
    pub fn open(dir: &'a Path, args: &BaselineArgs, name: Option<&str>) -> Result<Baseline<'a>> {
        if let Some((key, _)) = args
            .label
            .iter()
            .enumerate()
            .find_map(|(i, label)| args.label[..i].iter().any(|(key, _)| *key == label.0).then_some(label))
        {
            return Err(Failure::Message(format!("--label {key} is given twice")));
        }
        let selector = BaselineEntry {
            schema: SCHEMA.to_owned(),
            branch: args.branch.clone(),
            name: name.map(str::to_owned),
            commit: args.commit.clone(),
            time: args.commit_time.unwrap_or_else(|| since_1970(SystemTime::now())),
            labels: args.label.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect(),
        };
        let (entries, future, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut baseline = Baseline { dir, selector, keep: args.keep.into(), entries, future, left_out: 0, warnings };
        let mut ids = baseline.ids("json")?;
        // An id begins with the time, so this puts the newest entry first.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let latest = since_1970(SystemTime::now()).max(baseline.selector.time) + EARLY;
        for id in ids {
            let is_early =
                id.split('-').next().and_then(|time| time.parse().ok()).is_none_or(|time: u64| time > latest);
            let why = match baseline.entry(&id) {
                Ok(entry) if !baseline.is_selected(&entry) => continue,
                Ok(entry) if is_early => {
                    baseline.future.push((id.clone(), entry));
                    "its time is in the future; check the clock of the job that stored it, and the clock here"
                        .to_owned()
                }
                Ok(entry) => {
                    baseline.entries.push((id, entry));
                    continue;
                }
                Err(why) => why,
            };
            baseline.left_out += 1;
            baseline.warnings.push(format!("{}: skipped: {why}", baseline.path(&id, "json").display()));
        }
        Ok(baseline)
    }

    /// Loads the last profiles that can be compared with the new side, at most `--keep` of them, newest first.
    pub fn profiles(&mut self, new: &[Arc<Profile>], options: &LoadOptions) -> Vec<Arc<Profile>> {
        let mut loaded_profiles = Vec::new();
        // A profile that can't be read costs as much time as a good one, so the number of attempts is limited.
        for (id, entry) in self.entries.iter().take(2 * self.keep) {
            if loaded_profiles.len() == self.keep {
                break;
            }
            let path = self.path(id, "pb.gz");
            let loaded = read(&path, options.inflated_limit).map_err(|e| e.to_string()).and_then(|bytes| {
                let profile =
                    Source::Bytes(entry.profile_name(), bytes).load(options).map_err(|e| e.detail().to_owned())?;
                Diff::new(std::slice::from_ref(&profile), new).map_err(|e| e.detail().to_owned())?;
                Ok(profile)
            });
            match loaded {
                Ok(profile) => loaded_profiles.push(profile),
                Err(why) => self.warnings.push(format!("{}: skipped: {why}", path.display())),
            }
        }
        loaded_profiles
    }

    /// Returns the number of entries of the branch with these labels, including unusable entries. An unreadable entry
    /// counts, because it may belong to the branch.
    pub fn count(&self) -> usize {
        self.entries.len() + self.left_out
    }

    /// Returns a description of the selected entries, such as `branch main of orders with os=linux`.
    pub fn description(&self) -> String {
        let labels = self.selector.labels.iter();
        let labels: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        let with = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(" ")) };
        let of = self.selector.name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
        sanitize(&format!("branch {}{of}{with}", self.selector.branch)).into_owned()
    }

    /// Returns the warnings about skipped entries. Beyond [`MAX_LISTED`], only their number is given.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.warnings.iter().take(MAX_LISTED).cloned().collect();
        if self.warnings.len() > MAX_LISTED {
            warnings.push(format!("{}: skipped {} more", self.dir.display(), self.warnings.len() - MAX_LISTED));
        }
        warnings
    }

    /// Stores profiles. Then removes entries of the branch with exactly the same labels: the oldest entries beyond
    /// `--keep`, or with `alone` all entries that were stored before, even if their time is in the future.
    pub fn store(&mut self, profiles: &[Arc<Profile>], alone: bool) -> Result<()> {
        fs::create_dir_all(self.dir).map_err(|e| self.error(&e))?;
        let text = serde_json::to_vec_pretty(&self.selector).map_err(io::Error::from)?;
        let mut stored = Vec::new();
        for profile in profiles {
            let chance = std::hash::RandomState::new().hash_one(SystemTime::now());
            let id = format!("{:012}-{chance:016x}", self.selector.time);
            let bytes = profile.to_bytes(&WriteOptions::default())?;
            for (kind, content) in [("pb.gz", &bytes), ("json", &text)] {
                pprofdiff::output::write_file(self.path(&id, kind), |out| out.write_all(content))?;
            }
            stored.push((id, self.selector.clone()));
        }
        let others = std::mem::take(&mut self.entries);
        let mut same: Vec<_> = others.into_iter().filter(|(_, entry)| entry.labels == self.selector.labels).collect();
        if alone {
            let future = std::mem::take(&mut self.future);
            same.extend(future.into_iter().filter(|(_, entry)| entry.labels == self.selector.labels));
        } else {
            // Sorts by the time of the build, because an old build that is measured late is not the newest.
            same.append(&mut stored);
            same.sort_unstable_by(|a, b| b.0.cmp(&a.0));
            same.drain(..self.keep.max(profiles.len()).min(same.len()));
        }
        for (id, _) in same {
            // Removes the entry before its profile, so that no entry lacks a profile. Another writer may have removed
            // them already.
            for kind in ["json", "pb.gz"] {
                let _ = fs::remove_file(self.path(&id, kind));
            }
        }
        self.remove_abandoned();
        Ok(())
    }

    /// Removes profiles whose job was killed before it wrote the entry.
    fn remove_abandoned(&self) {
        for id in self.ids("pb.gz").unwrap_or_default() {
            let path = self.path(&id, "pb.gz");
            let written = fs::symlink_metadata(&path).and_then(|m| m.modified());
            let is_old = written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
            if is_old && !self.path(&id, "json").exists() {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn path(&self, id: &str, kind: &str) -> PathBuf {
        self.dir.join(format!("{id}.{kind}"))
    }

    /// Returns the ids that have a file of this kind. Ignores files with other names.
    fn ids(&self, kind: &str) -> Result<Vec<String>> {
        let names = match fs::read_dir(self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names.map_err(|e| self.error(&e))?,
        };
        let names = names.filter_map(|name| name.ok()?.file_name().into_string().ok());
        let ids = names.filter_map(|name| Some(name.strip_suffix(kind)?.strip_suffix('.')?.to_owned()));
        let ids: Vec<String> = ids.filter(|name| is_id(name)).take(MAX_ENTRIES + 1).collect();
        if ids.len() > MAX_ENTRIES {
            let dir = self.dir.display();
            return Err(Failure::Message(format!(
                "{dir} has more than {MAX_ENTRIES} entries; remove the oldest files"
            )));
        }
        Ok(ids)
    }

    fn entry(&self, id: &str) -> Result<BaselineEntry, String> {
        let bytes = read(&self.path(id, "json"), MAX_BYTES).map_err(|e| e.to_string())?;
        let entry: BaselineEntry = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
        if entry.schema != SCHEMA {
            return Err(format!("expected schema {SCHEMA}"));
        }
        Ok(entry)
    }

    fn is_selected(&self, entry: &BaselineEntry) -> bool {
        entry.branch == self.selector.branch
            && entry.name == self.selector.name
            && self.selector.labels.iter().all(|(key, value)| entry.labels.get(key) == Some(value))
    }

    fn error(&self, e: &io::Error) -> Failure {
        Failure::Message(format!("{}: {e}", self.dir.display()))
    }
}

impl BaselineEntry {
    /// Returns the name of the profile in results, such as `main@1c9a8f7`.
    fn profile_name(&self) -> String {
        format!("{}@{}", self.branch, self.commit.as_deref().unwrap_or("unknown"))
    }
}

/// Returns true for an id, such as `001763812357-0123456789abcdef`.
fn is_id(name: &str) -> bool {
    let has_form =
        |text: &str, length: usize, digit: fn(&u8) -> bool| text.len() == length && text.bytes().all(|b| digit(&b));
    name.split_once('-').is_some_and(|(time, chance)| {
        has_form(time, 12, u8::is_ascii_digit) && has_form(chance, 16, u8::is_ascii_hexdigit)
    })
}

/// Reads a regular file of at most `max_bytes` bytes.
fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("longer than {max_bytes} bytes")));
    }
    Ok(bytes)
}

pub(crate) fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
