//! The messages of `bench`: progress and the verdict.

use std::time::Duration;

use pprofdiff::sequential::{ALARMS, Decision, FrameChange, MISSES, Pairs};

use super::measure::Limits;

/// The maximum number of changed frames in the verdict.
const MAX_FRAMES: usize = 3;

fn percent(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}

/// Returns the progress message: the estimate so far, and the maximum remaining time.
pub fn estimate(pairs: &Pairs, limits: &Limits, elapsed: Duration, longest: Duration) -> String {
    let runs = pairs.len();
    let mean = pairs.change().map_or_else(String::new, |change| format!(", {}", percent(change)));
    let interval = pairs.interval(MISSES);
    let range = interval.map_or_else(String::new, |(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    let by_runs = longest * u32::try_from(limits.runs.saturating_sub(runs)).unwrap_or(u32::MAX);
    let left = limits.time.map_or(by_runs, |time| by_runs.min(time.saturating_sub(elapsed)));
    format!("{runs} + {runs} runs{mean}{range}; at most {:.0} s left", left.as_secs_f64().ceil())
}

fn frame_line(frame: &FrameChange) -> String {
    let scope = if frame.is_cum { "with callees" } else { "itself" };
    let growth = match frame.growth {
        growth if growth.is_infinite() => "is new".to_owned(),
        growth if growth <= -1.0 => "is gone".to_owned(),
        growth => percent(growth),
    };
    format!("{} {scope} {growth}, {} of the total", frame.name, percent(frame.of_total))
}

/// Returns the verdict about the total and about frames.
pub fn verdict(pairs: &Pairs, effect: f64) -> Vec<String> {
    let runs = format!("({0} + {0} runs)", pairs.len());
    let change = pairs.change().map_or_else(String::new, percent);
    let between = |alpha: f64| {
        pairs.interval(alpha).map_or_else(String::new, |(low, high)| format!(", {} to {}", percent(low), percent(high)))
    };
    let mut lines = Vec::new();
    match pairs.decision() {
        Decision::Change if pairs.has_total_changed() => {
            let is_clear = pairs.interval(ALARMS).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            let how = if is_clear { between(ALARMS) } else { ", by the ranks of all pairs".to_owned() };
            lines.push(format!("a change of the total: {change}{how} {runs}"));
        }
        Decision::Change => {
            lines.push(format!("a change of a function; the total is undecided: {change}{} {runs}", between(MISSES)));
        }
        Decision::NoLargerChange => {
            let largest = 100.0 * effect;
            lines
                .push(format!("no change of the total larger than {largest:.1} %: {change}{} {runs}", between(MISSES)));
        }
        Decision::Open => lines.push(format!("undecided: {change}{} {runs}", between(MISSES))),
    }
    lines.extend(pairs.changed_frames().iter().take(MAX_FRAMES).map(|frame| format!("changed: {}", frame_line(frame))));
    lines
}
