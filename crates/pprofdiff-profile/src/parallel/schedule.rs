//! Estimates the duration of a call on more cores than the machine has. Only benchmarks use it (feature `schedule`).
//!
//! The call runs on this thread alone, as if the pool had the given number of threads. Its jobs run one after another,
//! and each job is timed. Afterwards, the jobs are scheduled on the simulated cores.
//!
//! The simulation ignores contention for memory bandwidth, caches and locks. The estimate therefore shows the
//! parallelism of the code, and a real machine is slower. A sort counts as a single job, although a pool would divide
//! it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A step in the work of one thread.
enum ScheduleStep {
    /// Sequential work: the next step of the same thread starts after it.
    Alone(Duration),
    /// Jobs that may run in parallel. The thread waits for all of them.
    Fork(Vec<Vec<ScheduleStep>>),
}

/// The recorded steps of a call.
pub struct Schedule {
    cores: usize,
    steps: Vec<ScheduleStep>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("cores", &self.cores).finish_non_exhaustive()
    }
}

struct Recorder {
    cores: usize,
    clock: fn() -> Duration,
    steps: Vec<ScheduleStep>,
    since: Duration,
}

impl Recorder {
    /// Records the work since the last recorded step.
    fn note(&mut self) {
        let now = (self.clock)();
        self.steps.push(ScheduleStep::Alone(now.saturating_sub(self.since)));
        self.since = now;
    }

    fn begin(&mut self) {
        self.since = (self.clock)();
    }
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

fn recording<R>(f: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    RECORDER.with_borrow_mut(|recorder| recorder.as_mut().map(f))
}

/// Returns the number of simulated threads, if the call is being recorded.
pub(super) fn threads() -> Option<usize> {
    recording(|recorder| recorder.cores)
}

/// A set of jobs that may run in parallel.
pub(super) struct Fork {
    before: Vec<ScheduleStep>,
    jobs: Vec<Vec<ScheduleStep>>,
}

impl Fork {
    /// Begins a set of jobs. Returns `None` if the call is not being recorded.
    pub(super) fn begin() -> Option<Fork> {
        recording(|recorder| {
            recorder.note();
            Fork { before: std::mem::take(&mut recorder.steps), jobs: Vec::new() }
        })
    }

    /// Runs and times a job.
    pub(super) fn job<R>(&mut self, job: impl FnOnce() -> R) -> R {
        recording(Recorder::begin);
        let result = job();
        self.jobs.extend(recording(|recorder| {
            recorder.note();
            std::mem::take(&mut recorder.steps)
        }));
        result
    }

    /// Ends the set of jobs and records it.
    pub(super) fn end(mut self) {
        recording(|recorder| {
            self.before.push(ScheduleStep::Fork(self.jobs));
            recorder.steps = self.before;
            recorder.begin();
        });
    }
}

/// Calls `f` as if it ran in a pool with `cores` threads, and records its steps with `clock`. The best clock is the
/// thread's CPU time, which stops while other threads use the processor.
pub fn record<R>(cores: usize, clock: fn() -> Duration, f: impl FnOnce() -> R) -> (R, Schedule) {
    RECORDER.set(Some(Recorder { cores, clock, steps: Vec::new(), since: clock() }));
    let result = f();
    recording(Recorder::note);
    let steps = RECORDER.take().map_or_else(Vec::new, |recorder| recorder.steps);
    (result, Schedule { cores, steps })
}

/// A job that is running or ready to run.
struct Job<'a> {
    steps: std::slice::Iter<'a, ScheduleStep>,
    /// The job that waits for this job.
    parent: Option<usize>,
    /// The number of jobs that must finish before this job continues.
    waits: usize,
}

impl Schedule {
    /// Returns the total time of all jobs on a single core.
    pub fn work(&self) -> Duration {
        fn total(steps: &[ScheduleStep]) -> Duration {
            let time = |step: &ScheduleStep| match step {
                ScheduleStep::Alone(time) => *time,
                ScheduleStep::Fork(jobs) => jobs.iter().map(|job| total(job)).sum(),
            };
            steps.iter().map(time).sum()
        }
        total(&self.steps)
    }

    /// Returns the time from start to end on the simulated cores. A free core takes the job that became ready last. The
    /// core that finishes the last of several parallel jobs continues their waiting parent job. No core
    /// idles while a job is ready, as in a rayon pool.
    pub fn time(&self) -> Duration {
        let mut jobs = vec![Job { steps: self.steps.iter(), parent: None, waits: 0 }];
        let (mut ready, mut running) = (vec![0], BinaryHeap::new());
        let (mut now, mut free) = (Duration::ZERO, self.cores);
        loop {
            while free > 0
                && let Some(mut job) = ready.pop()
            {
                // Take steps that cost no time until this core is busy, has forked jobs, or must leave the job to a
                // sibling. At the end of the last sibling, the core continues with the parent.
                loop {
                    match jobs[job].steps.next() {
                        Some(ScheduleStep::Alone(time)) => {
                            running.push(Reverse((now + *time, job)));
                            free -= 1;
                            break;
                        }
                        Some(ScheduleStep::Fork(forked)) if forked.is_empty() => {}
                        Some(ScheduleStep::Fork(forked)) => {
                            let first = jobs.len();
                            jobs[job].waits = forked.len();
                            jobs.extend(forked.iter().map(|steps| Job {
                                steps: steps.iter(),
                                parent: Some(job),
                                waits: 0,
                            }));
                            ready.extend((first..jobs.len()).rev());
                            break;
                        }
                        None => {
                            let Some(parent) = jobs[job].parent else { return now };
                            jobs[parent].waits -= 1;
                            if jobs[parent].waits > 0 {
                                break;
                            }
                            job = parent;
                        }
                    }
                }
            }
            let Some(Reverse((time, job))) = running.pop() else { return now };
            (now, free) = (time, free + 1);
            ready.push(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(milliseconds: u64) -> ScheduleStep {
        ScheduleStep::Alone(Duration::from_millis(milliseconds))
    }

    fn on(cores: usize, steps: Vec<ScheduleStep>) -> (u128, u128) {
        let schedule = Schedule { cores, steps };
        (schedule.work().as_millis(), schedule.time().as_millis())
    }

    #[test]
    fn jobs_are_scheduled_on_cores() {
        let steps = || {
            let inner = vec![alone(5), ScheduleStep::Fork(vec![vec![alone(20)], vec![alone(20)]]), alone(5)];
            vec![alone(10), ScheduleStep::Fork(vec![inner, vec![alone(30)], vec![]]), alone(1)]
        };
        assert_eq!(on(1, steps()), (91, 91));
        // 10, then 5 + 20 + 20 + 5 on one core and 30 on the other, then 1.
        assert_eq!(on(2, steps()), (91, 61));
        assert_eq!(on(3, steps()), (91, 41));
        assert_eq!(on(64, steps()), (91, 41));
        assert_eq!(on(2, vec![ScheduleStep::Fork(Vec::new()), alone(7)]), (7, 7));
    }

    thread_local! {
        static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn work_inside_jobs_is_recorded() {
        let busy = |milliseconds| NOW.set(NOW.get() + milliseconds);
        let (sum, schedule) = record(
            4,
            || Duration::from_millis(NOW.get()),
            || {
                busy(3);
                let run_job = |n: &u64| {
                    busy(10);
                    let ((), one) = super::super::join(|| busy(20), || 1);
                    busy(*n);
                    n + one
                };
                assert_eq!(super::super::threads(), 4);
                let sum = super::super::map(&[1, 2, 3], run_job).iter().sum::<u64>();
                super::super::each(vec![5, 5], busy);
                sum
            },
        );
        assert_eq!((sum, super::super::threads()), (9, 1));
        assert_eq!(schedule.work().as_millis(), 3 + 3 * 30 + 6 + 10);
        assert_eq!(schedule.time().as_millis(), 3 + 30 + 3 + 5);
    }
}
