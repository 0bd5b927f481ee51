//! Counted calls: how often functions were called, in profiles that count each call at the frame that was called.

use super::{Measure, Walk};
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::short_lists::sort_by;

/// A function, and its caller if only this caller's calls count. Both are sets of frames, because builds may spell a name
/// differently.
#[derive(Debug, Clone, Default)]
pub struct CalledFunction {
    /// The frames of the function.
    pub function: HashSet<u32>,
    /// The frames of the caller; `None` for all callers.
    pub caller: Option<HashSet<u32>>,
}

/// The sums over all runs of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallSums {
    /// The number of calls.
    pub calls: f64,
    /// The cost of the stacks with these calls, including callees.
    pub cum: f64,
    /// The function's own cost in these calls.
    pub flat: f64,
}

/// An entry function: all of its callers were called once, as `main` is. It was called several times, for example once
/// per request, so its calls count the work of a run.
#[derive(Debug, Clone)]
pub struct EntryCalls {
    /// The frame of the function.
    pub frame: u32,
    /// The calls per run, by side.
    pub calls: [f64; 2],
    /// The cost with callees, summed over the runs of each side.
    pub cum: [f64; 2],
}

impl CalledFunction {
    fn is_callee(&self, frame: u32, above: Option<u32>) -> bool {
        let is_from = |callers: &HashSet<u32>| above.is_some_and(|above| callers.contains(&above));
        self.function.contains(&frame) && self.caller.as_ref().is_none_or(is_from)
    }
}

impl Measure {
    /// Returns the entry functions, most expensive first, and the cost of all stacks by side. This measure counts the calls,
    /// and `cost` is another sample type of the same selection. Leaves out the last `learned` profiles of the base.
    #[doc(hidden)]
    pub fn entry_calls(&self, cost: &Measure, learned: usize) -> (Vec<EntryCalls>, [f64; 2]) {
        let n_base = self.walks_of(true).count().saturating_sub(learned);
        let runs = [n_base, self.walks_of(false).count()];
        let mut calls: HashMap<u32, [f64; 2]> = HashMap::default();
        let mut callers: HashMap<u32, HashSet<u32>> = HashMap::default();
        let mut cum: HashMap<u32, [f64; 2]> = HashMap::default();
        let mut total = [0.0; 2];
        let mut frames: Vec<u32> = Vec::new();
        for (side, base) in [(0, true), (1, false)] {
            for walk in self.walks_of(base).take(runs[side]) {
                let innermost = walk.innermost();
                walk.for_each(|value, locations, _| {
                    frames.clear();
                    locations.iter().for_each(|&l| walk.push_frames(innermost[l as usize], l, &mut frames));
                    let Some(&leaf) = frames.first() else { return };
                    calls.entry(leaf).or_default()[side] += value as f64 / runs[side] as f64;
                    // A recursive call is no caller.
                    let caller = frames.get(1).filter(|&&caller| caller != leaf);
                    callers.entry(leaf).or_default().extend(caller);
                });
            }
            for walk in cost.walks_of(base).take(runs[side]) {
                let innermost = walk.innermost();
                walk.for_each(|value, locations, _| {
                    frames.clear();
                    locations.iter().for_each(|&l| walk.push_frames(innermost[l as usize], l, &mut frames));
                    total[side] += value as f64;
                    frames.sort_unstable();
                    frames.dedup();
                    frames.iter().for_each(|&frame| cum.entry(frame).or_default()[side] += value as f64);
                });
            }
        }
        let is_once = |frame: &u32| calls.get(frame).is_some_and(|calls| calls.iter().all(|&calls| calls <= 1.0));
        let is_repeated = |frame: &u32| calls.get(frame).is_some_and(|calls| calls.iter().all(|&calls| calls > 1.0));
        let is_called_once = |callers: &HashSet<u32>| !callers.is_empty() && callers.iter().all(is_once);
        let is_entry = |frame: &u32| is_repeated(frame) && callers.get(frame).is_some_and(is_called_once);
        let mut entries: Vec<EntryCalls> = calls
            .iter()
            .filter(|(frame, _)| is_entry(frame))
            .map(|(&frame, &calls)| EntryCalls { frame, calls, cum: cum.get(&frame).copied().unwrap_or_default() })
            .collect();
        let size = |entry: &EntryCalls| entry.cum[0] + entry.cum[1];
        sort_by(&mut entries, |a, b| size(b).total_cmp(&size(a)).then(a.frame.cmp(&b.frame)));
        (entries, total)
    }

    /// Returns, by function, the calls and the cost on the base and on the new side. This measure counts the calls, and
    /// `cost` is another sample type of the same selection. Leaves out the last `learned` profiles of the base.
    #[doc(hidden)]
    pub fn call_sums(&self, cost: &Measure, functions: &[CalledFunction], learned: usize) -> Vec<[CallSums; 2]> {
        let mut sums = vec![[CallSums::default(); 2]; functions.len()];
        let n_base = self.walks_of(true).count().saturating_sub(learned);
        let mut base_walks = 0;
        for (calls, cost) in self.walks().zip(cost.walks()) {
            let side = usize::from(!calls.input.base);
            base_walks += 1 - side;
            if side == 0 && base_walks > n_base {
                continue;
            }
            let innermost = calls.innermost();
            let frames_of = |locations: &[u32], walk: &Walk<'_>, frames: &mut Vec<u32>| {
                frames.clear();
                locations.iter().for_each(|&l| walk.push_frames(innermost[l as usize], l, frames));
            };
            let mut frames = Vec::new();
            calls.for_each(|value, locations, _| {
                frames_of(locations, &calls, &mut frames);
                let Some(&leaf) = frames.first() else { return };
                for (function, sums) in functions.iter().zip(&mut sums) {
                    if function.is_callee(leaf, frames.get(1).copied()) {
                        sums[side].calls += value as f64;
                    }
                }
            });
            cost.for_each(|value, locations, _| {
                frames_of(locations, &cost, &mut frames);
                for (function, sums) in functions.iter().zip(&mut sums) {
                    if frames.first().is_some_and(|&leaf| function.is_callee(leaf, frames.get(1).copied())) {
                        sums[side].flat += value as f64;
                    }
                    let is_call = |i: usize| function.is_callee(frames[i], frames.get(i + 1).copied());
                    if (0..frames.len()).any(is_call) {
                        sums[side].cum += value as f64;
                    }
                }
            });
        }
        sums
    }
}
