//! What a call would take on more cores than there are. It runs on this thread alone, as if the pool had so many threads;
//! its jobs run one after the other, each is timed, and then they are put on so many cores. For benchmarks (the feature
//! `schedule`): a build without it has none of this.
//!
//! Jobs have nothing in common in such a schedule: no memory bandwidth, cache or lock. So it says what the division into jobs
//! allows, not what a machine gives. A sort counts as one job, though a pool divides it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Part of what one thread does.
enum Step {
    /// Nothing else can be done meanwhile.
    Alone(Duration),
    /// Jobs that may run at the same time, and are waited for.
    Fork(Vec<Vec<Step>>),
}

/// What a call did.
pub struct Schedule {
    cores: usize,
    steps: Vec<Step>,
}

struct Recorder {
    cores: usize,
    clock: fn() -> Duration,
    steps: Vec<Step>,
    since: Duration,
}

impl Recorder {
    /// What was done since the last job.
    fn note(&mut self) {
        let now = (self.clock)();
        self.steps.push(Step::Alone(now.saturating_sub(self.since)));
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

/// How many threads the call takes its pool to have, while it is recorded.
pub(super) fn threads() -> Option<usize> {
    recording(|recorder| recorder.cores)
}

/// Jobs of which one waits for another no more than it must.
pub(super) struct Fork {
    before: Vec<Step>,
    jobs: Vec<Vec<Step>>,
}

impl Fork {
    /// Nothing unless the call is recorded.
    pub(super) fn begin() -> Option<Fork> {
        recording(|recorder| {
            recorder.note();
            Fork { before: std::mem::take(&mut recorder.steps), jobs: Vec::new() }
        })
    }

    /// Does a job.
    pub(super) fn job<R>(&mut self, job: impl FnOnce() -> R) -> R {
        recording(Recorder::begin);
        let done = job();
        self.jobs.extend(recording(|recorder| {
            recorder.note();
            std::mem::take(&mut recorder.steps)
        }));
        done
    }

    /// All are done.
    pub(super) fn end(mut self) {
        recording(|recorder| {
            self.before.push(Step::Fork(self.jobs));
            recorder.steps = self.before;
            recorder.begin();
        });
    }
}

/// Calls `f` as if it ran in a pool of so many threads, and records what it does by a clock: best this thread's own, which
/// stands still while others have the processor.
pub fn record<R>(cores: usize, clock: fn() -> Duration, f: impl FnOnce() -> R) -> (R, Schedule) {
    RECORDER.set(Some(Recorder { cores, clock, steps: Vec::new(), since: clock() }));
    let done = f();
    recording(Recorder::note);
    let steps = RECORDER.take().map_or_else(Vec::new, |recorder| recorder.steps);
    (done, Schedule { cores, steps })
}

/// A job that has begun, or can.
struct Job<'a> {
    steps: std::slice::Iter<'a, Step>,
    /// Who waits for it, and how many jobs it waits for itself.
    parent: Option<usize>,
    waits: usize,
}

impl Schedule {
    /// The time of all jobs, one after the other.
    pub fn work(&self) -> Duration {
        fn of(steps: &[Step]) -> Duration {
            let time = |step: &Step| match step {
                Step::Alone(time) => *time,
                Step::Fork(jobs) => jobs.iter().map(|job| of(job)).sum(),
            };
            steps.iter().map(time).sum()
        }
        of(&self.steps)
    }

    /// The time from the first to the last on the cores that it was recorded for. A core that is free takes the job that
    /// became possible last, and the last of several jobs goes on with what waited for them: as in a pool, no core idles
    /// while there is a job.
    pub fn time(&self) -> Duration {
        let mut jobs = vec![Job { steps: self.steps.iter(), parent: None, waits: 0 }];
        let (mut ready, mut running) = (vec![0], BinaryHeap::new());
        let (mut now, mut free) = (Duration::ZERO, self.cores);
        loop {
            while free > 0
                && let Some(mut at) = ready.pop()
            {
                // A core follows a job down its forks until there is something to do.
                loop {
                    match jobs[at].steps.next() {
                        Some(Step::Alone(time)) => {
                            running.push(Reverse((now + *time, at)));
                            free -= 1;
                            break;
                        }
                        Some(Step::Fork(forked)) if forked.is_empty() => {}
                        Some(Step::Fork(forked)) => {
                            let first = jobs.len();
                            jobs[at].waits = forked.len();
                            jobs.extend(forked.iter().map(|steps| Job {
                                steps: steps.iter(),
                                parent: Some(at),
                                waits: 0,
                            }));
                            ready.extend((first..jobs.len()).rev());
                            break;
                        }
                        None => {
                            let Some(parent) = jobs[at].parent else { return now };
                            jobs[parent].waits -= 1;
                            if jobs[parent].waits > 0 {
                                break;
                            }
                            at = parent;
                        }
                    }
                }
            }
            let Some(Reverse((time, at))) = running.pop() else { return now };
            (now, free) = (time, free + 1);
            ready.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(milliseconds: u64) -> Step {
        Step::Alone(Duration::from_millis(milliseconds))
    }

    fn on(cores: usize, steps: Vec<Step>) -> (u128, u128) {
        let schedule = Schedule { cores, steps };
        (schedule.work().as_millis(), schedule.time().as_millis())
    }

    #[test]
    fn jobs_are_put_on_cores() {
        let steps = || {
            let inner = vec![alone(5), Step::Fork(vec![vec![alone(20)], vec![alone(20)]]), alone(5)];
            vec![alone(10), Step::Fork(vec![inner, vec![alone(30)], vec![]]), alone(1)]
        };
        assert_eq!(on(1, steps()), (91, 91));
        // 10, then 5 + 20 + 5 beside 30, after which a core has the other 20 to do: 5 + 20 + 20 + 5.
        assert_eq!(on(2, steps()), (91, 61));
        assert_eq!(on(3, steps()), (91, 41));
        assert_eq!(on(64, steps()), (91, 41));
        assert_eq!(on(2, vec![Step::Fork(Vec::new()), alone(7)]), (7, 7));
    }

    thread_local! {
        static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn what_runs_in_jobs_is_recorded() {
        let busy = |milliseconds| NOW.set(NOW.get() + milliseconds);
        let (sum, schedule) = record(
            4,
            || Duration::from_millis(NOW.get()),
            || {
                busy(3);
                let of = |n: &u64| {
                    busy(10);
                    let ((), one) = super::super::join(|| busy(20), || 1);
                    busy(*n);
                    n + one
                };
                assert_eq!(super::super::threads(), 4);
                let sum = super::super::map(&[1, 2, 3], of).iter().sum::<u64>();
                super::super::each(vec![5, 5], busy);
                sum
            },
        );
        assert_eq!((sum, super::super::threads()), (9, 1));
        assert_eq!(schedule.work().as_millis(), 3 + 3 * 30 + 6 + 10);
        assert_eq!(schedule.time().as_millis(), 3 + 30 + 3 + 5);
    }
}
