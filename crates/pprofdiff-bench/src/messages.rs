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

/// The number of samples per run in both sides together, times the squared effect and the number of runs per side, that
/// a benchmark needs. The difference of a function with a tenth of the total has a standard deviation of
/// `sqrt(2 * 0.1 * 0.9 / (samples * runs))` of the total, and a test of all functions and looks finds five of them nine
/// times in ten.
const SAMPLES_BY_EFFECT: f64 = 2.0 * 0.1 * 0.9 * 25.0;

/// Returns the number of samples per run that finds a change of a function with a tenth of the total, if only sampling
/// makes the runs differ.
pub fn samples_to_find(effect: f64, runs: usize) -> f64 {
    SAMPLES_BY_EFFECT / (effect * effect * runs.max(1) as f64)
}

/// Returns the advice to let the program run longer, if the runs have too few samples for the effect. `samples` is the
/// mean number per run; `None` if the profiles do not tell it.
pub fn too_short(samples: Option<f64>, effect: f64, runs: usize, adapter: &str) -> Option<String> {
    let needed = samples_to_find(effect, runs);
    let samples = samples.filter(|samples| *samples < needed)?;
    let rounded = |value: f64| match value {
        value if value < 10.0 => format!("{value:.1}").trim_end_matches(".0").to_owned(),
        value => format!("{value:.0}"),
    };
    let how = if adapter == "go test -bench" { ", such as with -benchtime" } else { "" };
    Some(format!(
        "the runs are too short: a run has about {} samples, and a change of {} % in {runs} runs per side needs about {}; \
         let the command do at least {} times as much work{how}, or set a larger --effect",
        rounded(samples),
        rounded(100.0 * effect),
        rounded(needed),
        rounded((needed / samples.max(1.0)).max(1.1)),
    ))
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

#[cfg(test)]
mod tests {
    use super::{samples_to_find, too_short};

    #[test]
    fn runs_with_few_samples_are_called_too_short_for_the_effect() {
        let message = too_short(Some(1.5), 0.02, 10, "go test -bench").unwrap_or_default();
        assert_eq!(
            message,
            "the runs are too short: a run has about 1.5 samples, and a change of 2 % in 10 runs per side needs about 1125; \
             let the command do at least 750 times as much work, such as with -benchtime, or set a larger --effect"
        );
        assert_eq!(too_short(Some(600.0), 0.02, 20, "node"), None);
        assert_eq!(too_short(None, 0.02, 20, "node"), None);
        // Twice the effect needs a quarter of the samples.
        assert!((samples_to_find(0.04, 20) * 4.0 - samples_to_find(0.02, 20)).abs() < 1e-6);
    }
}
