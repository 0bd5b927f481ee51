//! A folder with profiles of a branch's last builds, which `check --baseline` compares with.
//!
//! An entry is two files, `ID.pb.gz` (the profile) and `ID.json` (branch, commit, time, labels), with an id of time and
//! chance. No two writers write one file, so nothing is lost without a lock, which a job that was killed would leave
//! behind; the entries' small files are the index. The profile is written first, so that an entry has one.
//!
//! The folder may come out of a cache that strangers wrote. So nothing in a file says where another is, links are not
//! followed, sizes and numbers are bounded, and what can't be read is left out and said.

use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pprofdiff::text::sanitize;
use pprofdiff::{Diff, LoadOptions, Profile, Source, WriteOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::BaselineArgs;
use crate::{Failure, Result};

/// The most profiles of a branch that are kept and compared with.
pub const MAX_PROFILES: usize = 50;
const SCHEMA: &str = "pprofdiff-baseline/1";
/// The most entries of a folder, of all branches, and the most bytes of an entry's small file.
const MAX_ENTRIES: usize = 20_000;
const MAX_BYTES: u64 = 16 << 10;
/// An entry that is so much newer than now was not stored by a job whose clock is right.
const EARLY: u64 = 24 * 60 * 60;
/// The most that is said of entries one by one.
const MAX_LISTED: usize = 10;
/// A profile without an entry is no longer being stored after so long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of a stored profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    schema: String,
    branch: String,
    commit: Option<String>,
    /// Seconds since 1970.
    time: u64,
    labels: Map<String, Value>,
}

/// The entries of one branch that have the wanted labels.
pub struct Baseline<'a> {
    dir: &'a Path,
    wanted: Entry,
    keep: usize,
    /// The newest first, with their ids.
    entries: Vec<(String, Entry)>,
    /// Those of the branch that are later than any right clock.
    future: Vec<(String, Entry)>,
    /// How many of this branch, or of none that could be read, are left out without a look at their profiles.
    left_out: usize,
    /// What was left out, and why.
    said: Vec<String>,
}

impl<'a> Baseline<'a> {
    /// Reads the entries of a folder; none if there is no folder yet.
    pub fn open(dir: &'a Path, args: &BaselineArgs) -> Result<Baseline<'a>> {
        if let Some((key, _)) = args
            .label
            .iter()
            .enumerate()
            .find_map(|(i, label)| args.label[..i].iter().any(|(key, _)| *key == label.0).then_some(label))
        {
            return Err(Failure::Message(format!("--label {key} is given twice")));
        }
        let wanted = Entry {
            schema: SCHEMA.to_owned(),
            branch: args.branch.clone(),
            commit: args.commit.clone(),
            time: args.commit_time.unwrap_or_else(|| since_1970(SystemTime::now())),
            labels: args.label.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect(),
        };
        let (entries, future, said) = (Vec::new(), Vec::new(), Vec::new());
        let mut baseline = Baseline { dir, wanted, keep: args.keep.into(), entries, future, left_out: 0, said };
        let mut ids = baseline.ids("json")?;
        // By time, and by the rest of the id where that is equal.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let latest = since_1970(SystemTime::now()).max(baseline.wanted.time) + EARLY;
        for id in ids {
            let is_early =
                id.split('-').next().and_then(|time| time.parse().ok()).is_none_or(|time: u64| time > latest);
            let why = match baseline.entry(&id) {
                Ok(entry) if !baseline.is_wanted(&entry) => continue,
                Ok(entry) if is_early => {
                    baseline.future.push((id.clone(), entry));
                    "it is of the future; was the clock of the job that stored it right, and is this one?".to_owned()
                }
                Ok(entry) => {
                    baseline.entries.push((id, entry));
                    continue;
                }
                Err(why) => why,
            };
            baseline.left_out += 1;
            baseline.said.push(format!("{}: left out: {why}", baseline.path(&id, "json").display()));
        }
        Ok(baseline)
    }

    /// The last profiles that compare with the new side, as sources of them.
    pub fn profiles(&mut self, new: &[Arc<Profile>], options: &LoadOptions) -> Vec<Arc<Profile>> {
        let mut found = Vec::new();
        // Profiles that can't be read cost as much as others, so there is an end of trying.
        for (id, entry) in self.entries.iter().take(2 * self.keep) {
            if found.len() == self.keep {
                break;
            }
            let path = self.path(id, "pb.gz");
            let loaded = read(&path, options.inflated_limit).map_err(|e| e.to_string()).and_then(|bytes| {
                let profile = Source::Bytes(entry.name(), bytes).load(options).map_err(|e| e.detail().to_owned())?;
                Diff::new(std::slice::from_ref(&profile), new).map_err(|e| e.detail().to_owned())?;
                Ok(profile)
            });
            match loaded {
                Ok(profile) => found.push(profile),
                Err(why) => self.said.push(format!("{}: left out: {why}", path.display())),
            }
        }
        found
    }

    /// How many entries there are of the branch and its labels, usable or not. One that can't be read may be of them.
    pub fn count(&self) -> usize {
        self.entries.len() + self.left_out
    }

    /// What the entries are of, for people: `branch main with os=linux`.
    pub fn name(&self) -> String {
        let labels = self.wanted.labels.iter();
        let labels: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        let with = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(" ")) };
        sanitize(&format!("branch {}{with}", self.wanted.branch)).into_owned()
    }

    /// What was left out, not all of it one by one.
    pub fn warnings(&self) -> Vec<String> {
        let mut said: Vec<String> = self.said.iter().take(MAX_LISTED).cloned().collect();
        if self.said.len() > MAX_LISTED {
            said.push(format!("{}: {} more were left out", self.dir.display(), self.said.len() - MAX_LISTED));
        }
        said
    }

    /// Stores profiles, and forgets the oldest of the branch with the same labels; with `alone` all that were there.
    pub fn store(&mut self, profiles: &[Arc<Profile>], alone: bool) -> Result<()> {
        fs::create_dir_all(self.dir).map_err(|e| self.error(&e))?;
        let text = serde_json::to_vec_pretty(&self.wanted).map_err(io::Error::from)?;
        let mut stored = Vec::new();
        for profile in profiles {
            let chance = std::hash::RandomState::new().hash_one(SystemTime::now());
            let id = format!("{:012}-{chance:016x}", self.wanted.time);
            let bytes = profile.to_bytes(&WriteOptions::default())?;
            for (kind, content) in [("pb.gz", &bytes), ("json", &text)] {
                pprofdiff::output::write_file(self.path(&id, kind), |out| out.write_all(content))?;
            }
            stored.push((id, self.wanted.clone()));
        }
        let others = std::mem::take(&mut self.entries);
        let mut same: Vec<_> = others.into_iter().filter(|(_, entry)| entry.labels == self.wanted.labels).collect();
        if alone {
            let future = std::mem::take(&mut self.future);
            same.extend(future.into_iter().filter(|(_, entry)| entry.labels == self.wanted.labels));
        } else {
            // By age, as a build that is measured late is no new one.
            same.append(&mut stored);
            same.sort_unstable_by(|a, b| b.0.cmp(&a.0));
            same.drain(..self.keep.max(profiles.len()).min(same.len()));
        }
        for (id, _) in same {
            // The entry first, so that none is left without its profile; another writer may have been here.
            for kind in ["json", "pb.gz"] {
                let _ = fs::remove_file(self.path(&id, kind));
            }
        }
        self.remove_abandoned();
        Ok(())
    }

    /// Removes profiles that a job left which was killed between its two files.
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

    /// The ids of which there is a file of this kind. Other names are none of ours.
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

    fn entry(&self, id: &str) -> Result<Entry, String> {
        let bytes = read(&self.path(id, "json"), MAX_BYTES).map_err(|e| e.to_string())?;
        let entry: Entry = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
        if entry.schema != SCHEMA {
            return Err(format!("it is not of schema {SCHEMA}"));
        }
        Ok(entry)
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        entry.branch == self.wanted.branch
            && self.wanted.labels.iter().all(|(key, value)| entry.labels.get(key) == Some(value))
    }

    fn error(&self, e: &io::Error) -> Failure {
        Failure::Message(format!("{}: {e}", self.dir.display()))
    }
}

impl Entry {
    /// What the profile is called in results.
    fn name(&self) -> String {
        format!("{}@{}", self.branch, self.commit.as_deref().unwrap_or("unknown"))
    }
}

/// `001763812357-0123456789abcdef`.
fn is_id(name: &str) -> bool {
    let is_of =
        |text: &str, length: usize, digit: fn(&u8) -> bool| text.len() == length && text.bytes().all(|b| digit(&b));
    name.split_once('-')
        .is_some_and(|(time, chance)| is_of(time, 12, u8::is_ascii_digit) && is_of(chance, 16, u8::is_ascii_hexdigit))
}

/// A regular file, not longer than this.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
