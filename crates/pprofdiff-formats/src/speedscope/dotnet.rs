//! Frames of dotnet-trace that are not functions.
//!
//! `dotnet-trace convert --format Speedscope` puts the process and the thread at the root of each stack, and the
//! activity of the thread at its leaf:
//!
//! ```text
//! Process64 Shop (36060) (36060) Args: ;(Non-Activities);Threads;Thread (34288);Shop!Shop.Program.Main();CPU_TIME
//! ```
//!
//! The ids differ between runs, so as frames they would look like changes. They become labels: `process`, `pid`, `tid`
//! and, where a thread has a name, `thread`. The leaf decides the sample type. `CPU_TIME` is time in managed code and
//! becomes `cpu`. All time becomes `wall`. The difference (`UNMANAGED_CODE_TIME`) is time in native code, where most
//! threads wait.

use crate::kit::tree::too_large;
use pprofdiff_profile::Result;
use pprofdiff_profile::Sampled;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};

/// The sample types, in the order of a sample's values.
pub(super) const TYPES: [&str; 2] = ["wall", "cpu"];

/// The role of a frame that is not a function.
#[derive(Debug, Clone)]
enum DotnetRole {
    Labels(Vec<Label>),
    /// A group of threads.
    Group,
    CpuTime,
    UnmanagedTime,
}

/// The frames of a file that are not functions.
#[derive(Debug, Default)]
pub(super) struct Dotnet {
    roles: HashMap<LocationId, DotnetRole>,
    /// True if there is a frame of a process.
    has_process: bool,
    /// True if there is a frame of CPU time or of unmanaged time.
    has_time: bool,
    /// The total CPU time of the stacks that were converted.
    cpu: i64,
    /// The statistics of CPU time. Each interval counts as one sample.
    sampled: Sampled,
}

impl Dotnet {
    /// Records a frame if dotnet-trace uses its name for frames that are not functions.
    pub fn note(&mut self, name: &[u8], location: LocationId, builder: &mut ProfileBuilder) {
        let role = match name {
            b"CPU_TIME" => DotnetRole::CpuTime,
            b"UNMANAGED_CODE_TIME" => DotnetRole::UnmanagedTime,
            b"(Non-Activities)" | b"Threads" => DotnetRole::Group,
            _ => {
                let Some(labels) = labels(name) else { return };
                self.has_process |= labels.iter().any(|(key, _)| *key == "pid");
                let mut label = |(key, value): (&str, &str)| {
                    let (key, value) = (builder.string(key), builder.string(value));
                    Label { key, value: LabelValue::Text(value) }
                };
                DotnetRole::Labels(labels.into_iter().map(&mut label).collect())
            }
        };
        self.has_time |= matches!(role, DotnetRole::CpuTime | DotnetRole::UnmanagedTime);
        self.roles.insert(location, role);
    }

    /// Counts an interval as CPU time if its leaf is `CPU_TIME`.
    pub fn count(&mut self, leaf: Option<LocationId>, time: i64) {
        if leaf.is_some_and(|leaf| matches!(self.roles.get(&leaf), Some(DotnetRole::CpuTime))) {
            self.sampled.add(time);
        }
    }

    /// Returns the statistics of CPU time.
    pub fn sampled(&self) -> Sampled {
        self.sampled
    }

    /// Returns true if dotnet-trace wrote the file: it has a process frame and a time frame. Files of other tools have
    /// at most one of them, as the name of a function.
    pub fn is_written(&self) -> bool {
        self.has_process && self.has_time
    }

    /// Removes frames that are not functions from the root and the leaf of a stack, adds labels for them, and returns
    /// the values for `time` ([`TYPES`]). A stack without functions keeps its leaf, so that its time has a row.
    pub fn convert(
        &mut self,
        leaf_first: &mut Vec<LocationId>,
        time: i64,
        labels: &mut Vec<Label>,
    ) -> Result<[i64; 2]> {
        while let Some(root) = leaf_first.last() {
            match self.roles.get(root) {
                Some(DotnetRole::Labels(root_labels)) => labels.extend(root_labels),
                Some(DotnetRole::Group) => {}
                _ => break,
            }
            leaf_first.pop();
        }
        let leaf = leaf_first.first().and_then(|leaf| self.roles.get(leaf));
        let cpu = if matches!(leaf, Some(DotnetRole::CpuTime)) { time } else { 0 };
        if leaf_first.len() > 1 && matches!(leaf, Some(DotnetRole::CpuTime | DotnetRole::UnmanagedTime)) {
            leaf_first.remove(0);
        }
        self.cpu = self.cpu.checked_add(cpu).ok_or_else(too_large)?;
        Ok([time, cpu])
    }

    /// Returns the default sample type: CPU time, or wall time if no thread ran managed code.
    pub fn default_type(&self, builder: &mut ProfileBuilder) -> StringId {
        builder.string(TYPES[usize::from(self.cpu != 0)])
    }
}

/// Parses `Process64 NAME (PID) ...` and `Thread (TID) (NAME)` into labels.
fn labels(name: &[u8]) -> Option<Vec<(&'static str, &str)>> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some(rest) = name.strip_prefix("Thread (") {
        let (tid, rest) = rest.split_once(')').filter(|(tid, _)| is_number(tid))?;
        let thread = rest.trim().trim_start_matches('(').trim_end_matches(')');
        return Some([("tid", tid), ("thread", thread)].into_iter().filter(|(_, value)| !value.is_empty()).collect());
    }
    let rest = ["Process64 ", "Process32 ", "Process "].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    // The name of a process may contain parentheses.
    let (end, pid) = rest.match_indices(" (").find_map(|(end, _)| {
        let after = &rest[end + 2..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && after[digits..].starts_with(')')).then(|| (end, &after[..digits]))
    })?;
    Some([("process", rest[..end].trim()), ("pid", pid)].into_iter().filter(|(_, value)| !value.is_empty()).collect())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_threads_are_labels() {
        for (name, expected) in [
            ("Process64 Shop (36060) (36060) Args: ", Some(vec![("process", "Shop"), ("pid", "36060")])),
            ("Process32 My App (x) (12) Args: --a (1)", Some(vec![("process", "My App (x)"), ("pid", "12")])),
            ("Process64 (7)", None),
            ("Thread (34288)", Some(vec![("tid", "34288")])),
            ("Thread (5) (.NET ThreadPool)", Some(vec![("tid", "5"), ("thread", ".NET ThreadPool")])),
            ("Thread (main)", None),
            ("ThreadPool.Run()", None),
            ("Process.Start(4)", None),
        ] {
            assert_eq!(labels(name.as_bytes()), expected, "{name}");
        }
    }
}
