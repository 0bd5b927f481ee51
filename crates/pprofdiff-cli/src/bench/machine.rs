//! What is known of the machine, and what it did during each run: recorded, and said where sides or times differ.

use std::fs::read_to_string;

use pprofdiff::recording::RecordedRun;

/// A clock that is slower by this is another machine.
const SLOWER: f64 = 0.9;
/// Sides whose machines had such a different load were not run alike.
const LOADED: f64 = 0.5;
/// A run that took so much longer than its side's median was disturbed.
const DISTURBED: f64 = 1.5;

fn first_line(path: &str) -> Option<String> {
    Some(read_to_string(path).ok()?.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
}

/// The values of a field of /proc/cpuinfo.
fn cpu_info(field: &str) -> Vec<String> {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of_line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

/// What does not change between runs, as far as the system says it.
pub fn facts() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map(|n| n.to_string()).ok();
    let all = [
        ("system", Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        ("cpu", cpu_info("model name").into_iter().next()),
        ("cores", cores),
        ("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("no_turbo", first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")),
        ("cpu_limit", first_line("/sys/fs/cgroup/cpu.max")),
        ("memory_limit", first_line("/sys/fs/cgroup/memory.max")),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// What the machine does now, as far as the system says it.
pub fn now() -> Vec<(String, f64)> {
    let number = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let clocks: Vec<f64> = cpu_info("cpu MHz").iter().filter_map(|text| number(text)).collect();
    let clock = (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64);
    let pressure = first_line("/proc/pressure/memory");
    let pressure = pressure.and_then(|line| number(line.split_once("avg10=")?.1));
    let all = [
        ("load", first_line("/proc/loadavg").and_then(|line| number(&line))),
        ("mhz", clock),
        ("memory_pressure", pressure),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn of<'a>(runs: impl Iterator<Item = &'a RecordedRun>, name: &str) -> Option<f64> {
    mean(runs.filter_map(|run| run.machine.iter().find(|(known, _)| known == name).map(|(_, value)| *value)))
}

/// What a reader should know: where the machine was not the same for both sides, or for the first and the last runs, and
/// which runs took much longer than others of their side.
pub fn notes(before: &[(String, String)], now: &[(String, String)], runs: &[RecordedRun]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, value) in now {
        match before.iter().find(|(known, _)| known == name) {
            Some((_, other)) if other != value => notes.push(format!("earlier runs had {name} {other}, these {value}")),
            _ => {}
        }
    }
    let side = |name: &'static str| runs.iter().filter(move |run| run.side == name);
    if let (Some(base), Some(new)) = (of(side("base"), "load"), of(side("new"), "load"))
        && (base - new).abs() > LOADED
    {
        notes.push(format!(
            "the machine's load was {base:.1} in runs of the base, and {new:.1} in those of the new side"
        ));
    }
    let part = runs.len().min(4);
    if let (Some(first), Some(last)) = (of(runs[..part].iter(), "mhz"), of(runs[runs.len() - part..].iter(), "mhz"))
        && runs.len() > part
        && last < SLOWER * first
    {
        notes.push(format!("the last {part} runs had {:.0} % of the clock of the first", 100.0 * last / first));
    }
    for name in ["base", "new"] {
        let mut times: Vec<f64> = side(name).map(|run| run.seconds).collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
        let slow: Vec<String> =
            side(name).filter(|run| run.seconds > DISTURBED * median).map(|run| run.pair.to_string()).collect();
        if times.len() > 2 && !slow.is_empty() {
            notes.push(format!(
                "runs {} of the {name} side took more than {DISTURBED} times the median's time",
                slow.join(", ")
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::{RecordedRun, facts, notes, now};

    fn run(side: &str, load: f64, mhz: f64, seconds: f64) -> RecordedRun {
        let mut run = RecordedRun::default();
        (run.side, run.seconds) = (side.to_owned(), seconds);
        run.machine = vec![("load".to_owned(), load), ("mhz".to_owned(), mhz)];
        run
    }

    #[test]
    fn a_machine_that_changes_is_said() {
        let alike: Vec<_> = (0..8).map(|i| run(["base", "new"][i % 2], 1.0, 2000.0, 1.0)).collect();
        assert!(notes(&facts(), &facts(), &alike).is_empty());
        let mut other: Vec<_> =
            (0..8).map(|i| run(["base", "new"][i % 2], (i % 2) as f64, 2000.0 - 100.0 * i as f64, 1.0)).collect();
        other[3].seconds = 9.0;
        let said =
            notes(&[("cpu".to_owned(), "a".to_owned())], &[("cpu".to_owned(), "b".to_owned())], &other).join("\n");
        for wanted in ["had cpu a, these b", "load was 0.0", "the last 4 runs had 78 %", "of the new side took more"] {
            assert!(said.contains(wanted), "{said}");
        }
        assert!(now().iter().all(|(_, value)| value.is_finite()));
    }
}
