//! Processes that a command leaves behind when it ends. On Linux this process adopts the orphans among its descendants
//! (`PR_SET_CHILD_SUBREAPER`). This also finds daemons that have their own session. On other Unix systems only the
//! command's process group is stopped, and on Windows only the command itself.

use std::fmt;

/// A process, identified by its id and start time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct OrphanProcess {
    id: i32,
    /// The start time, which distinguishes processes that had the same id.
    start: u64,
    name: String,
}

impl fmt::Display for OrphanProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// Finds the descendants of this process that belong to its commands: all descendants except `others`.
pub struct Orphans {
    /// Descendants that do not belong to commands.
    #[cfg(target_os = "linux")]
    others: std::cell::RefCell<linux::Others>,
}

#[cfg(not(target_os = "linux"))]
impl Orphans {
    pub fn adopt() -> Orphans {
        Orphans {}
    }

    #[cfg(unix)]
    pub fn signal(&self, _: nix::sys::signal::Signal) {}

    pub fn reap(&self, _: &std::process::Child) {}

    pub fn left(&self) -> Vec<OrphanProcess> {
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::path::Path;
    use std::process::Child;

    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
    use nix::unistd::Pid;
    use pprofdiff::random::HashSet;

    use super::{OrphanProcess, Orphans};

    /// Descendants that are older than the benchmark, such as background jobs of a shell that started pprofdiff with
    /// `exec`, and their descendants. The set holds ids with start times and never shrinks, because a process that was
    /// missing from one reading of `/proc` must not be killed after the next.
    #[derive(Default)]
    pub struct Others(HashSet<(i32, u64)>);

    /// A process as `/proc` lists it.
    struct ProcEntry {
        parent: i32,
        group: i32,
        process: OrphanProcess,
        /// False for a zombie.
        is_running: bool,
    }

    impl Others {
        /// Adds the descendants of the set's members. When their parent ends, `own_process` (this process) adopts them,
        /// as it adopts the descendants of a command. A process can lose its parent before any reading of `/proc`. Its
        /// process group still identifies it, because each command has a new group.
        fn grow(&mut self, own_process: i32, entries: &[ProcEntry]) {
            let is_other =
                |entry: &&ProcEntry| entry.process.id == own_process || self.0.contains(&entry.process.key());
            let groups: HashSet<i32> = entries.iter().filter(is_other).map(|entry| entry.group).collect();
            let adopted = entries.iter().filter(|entry| entry.parent == own_process && groups.contains(&entry.group));
            self.0.extend(adopted.map(|entry| entry.process.key()));
            let is_known = |entry: &&ProcEntry| self.0.contains(&entry.process.key());
            let mut parents: Vec<i32> = entries.iter().filter(is_known).map(|entry| entry.process.id).collect();
            while let Some(parent) = parents.pop() {
                for ProcEntry { process, .. } in entries.iter().filter(|entry| entry.parent == parent) {
                    if self.0.insert(process.key()) {
                        parents.push(process.id);
                    }
                }
            }
        }

        /// Returns the running descendants of a process that are not in the set.
        fn descendants_of(&self, ancestor: i32, entries: &[ProcEntry]) -> Vec<OrphanProcess> {
            let mut descendants = Vec::new();
            let mut parents = vec![ancestor];
            while let Some(parent) = parents.pop() {
                for ProcEntry { process, is_running, .. } in entries.iter().filter(|entry| entry.parent == parent) {
                    if !self.0.contains(&process.key()) {
                        parents.push(process.id);
                        descendants.extend(is_running.then(|| process.clone()));
                    }
                }
            }
            descendants
        }
    }

    impl OrphanProcess {
        fn key(&self) -> (i32, u64) {
            (self.id, self.start)
        }
    }

    impl Orphans {
        /// Starts to adopt orphans and records the descendants that already exist.
        pub fn adopt() -> Orphans {
            let older = Others::default().descendants_of(own_id(), &entries());
            let others = RefCell::new(Others(older.iter().map(OrphanProcess::key).collect()));
            // Linux before 3.4 refuses this call. There, init adopts the orphans.
            let _ = nix::sys::prctl::set_child_subreaper(true);
            Orphans { others }
        }

        /// Sends `signal` to all running processes of commands.
        pub fn signal(&self, signal: Signal) {
            for process in self.left() {
                let _ = kill(Pid::from_raw(process.id), signal);
            }
        }

        /// Reaps orphans that ended. It stops at the command itself, because the caller needs its exit status; a later
        /// call reaps the rest. It also records new descendants of older processes, so callers should run it at short
        /// intervals.
        pub fn reap(&self, command: &Child) {
            // Without older processes, skip the reading of `/proc`, which takes time from the benchmark.
            if !self.others.borrow().0.is_empty() {
                self.others.borrow_mut().grow(own_id(), &entries());
            }
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            while let Ok(WaitStatus::Exited(id, _) | WaitStatus::Signaled(id, ..)) = waitid(Id::All, flags) {
                if u32::try_from(id.as_raw()) == Ok(command.id()) || waitpid(id, Some(WaitPidFlag::WNOHANG)).is_err() {
                    break;
                }
            }
        }

        /// Returns the running processes that belong to commands.
        pub fn left(&self) -> Vec<OrphanProcess> {
            let entries = entries();
            let mut others = self.others.borrow_mut();
            others.grow(own_id(), &entries);
            others.descendants_of(own_id(), &entries)
        }
    }

    fn own_id() -> i32 {
        i32::try_from(std::process::id()).unwrap_or_default()
    }

    /// Reads all processes. Returns an empty list if `/proc` belongs to another pid namespace, because an id there
    /// means a different process here.
    fn entries() -> Vec<ProcEntry> {
        let link = std::fs::read_link("/proc/self");
        if link.ok().as_deref() != Some(Path::new(&own_id().to_string())) {
            return Vec::new();
        }
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// Reads a process from `/proc`.
    fn read(id: i32) -> Option<ProcEntry> {
        let text = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name is in parentheses, and can itself contain blanks and parentheses.
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let mut fields = text.get(close + 1..)?.split_whitespace();
        let (state, parent, group) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // The start time is field 22 of the line.
        let start = fields.nth(16)?.parse().ok()?;
        let name = text.get(open + 1..close)?.to_owned();
        Some(ProcEntry {
            parent,
            group,
            process: OrphanProcess { id, start, name },
            is_running: !matches!(state, "Z" | "X"),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::{OrphanProcess, Others, ProcEntry};

        fn entry(parent: i32, id: i32, start: u64) -> ProcEntry {
            // Each command has its own group. The other processes are in group 1.
            let group = if id < 20 { 1 } else { 20 };
            ProcEntry { parent, group, process: OrphanProcess { id, start, name: String::new() }, is_running: true }
        }

        #[test]
        fn processes_born_to_an_older_job_are_not_orphans_of_a_command() {
            let mut others = Others([(10, 1)].into());
            let ids = |others: &Others, entries: &[ProcEntry]| -> Vec<i32> {
                others.descendants_of(1, entries).iter().map(|process| process.id).collect()
            };
            let before = [entry(1, 10, 1), entry(10, 11, 2), entry(11, 12, 3), entry(1, 20, 4)];
            others.grow(1, &before);
            assert_eq!(ids(&others, &before), [20]);
            // The older job ended, so its descendants have a new parent.
            let after = [entry(1, 11, 2), entry(1, 12, 3), entry(12, 13, 5), entry(1, 20, 4), entry(20, 21, 6)];
            others.grow(1, &after);
            assert_eq!(ids(&others, &after), [20, 21]);
            // Process 14 lost its parent before it was first read.
            let later = [entry(0, 1, 0), entry(1, 14, 8), entry(14, 15, 9), entry(1, 20, 4)];
            others.grow(1, &later);
            assert_eq!(ids(&others, &later), [20]);
            // A command's process reuses the id of an older job.
            assert_eq!(ids(&others, &[entry(1, 10, 7)]), [10]);
        }
    }
}
