//! Facts about the machine, and its activity during each run. They are recorded, and differences between sides or
//! between earlier and later runs are reported.

use std::fs::read_to_string;
use std::path::Path;
use std::time::Instant;

use pprofdiff::recording::{RecordedRun, Recording, SIDES};
use pprofdiff_shell::{Failure, Result};

use super::process::{CommandJob, OutputKind, Runner, lines};
use pprofdiff::shared::short_lists::sort_by_key;

/// A note reports that the machine became slower if the ratio of the clock rates in the last and the first runs is
/// below this value.
const SLOWER: f64 = 0.9;
/// A note reports the load of the machine, or the processors that other processes used, if the means of the sides
/// differ by more than this value.
const LOADED: f64 = 0.5;
/// A run is disturbed if it took longer than this multiple of its side's median, and more than `SHORT` seconds longer.
const DISTURBED: f64 = 1.5;
/// A run is disturbed if the processors that other processes used exceed the median of its side by more than this.
const BUSY: f64 = 0.5;
/// Runs shorter than this many seconds are too short for CPU ticks. A run that exceeds its side's median by less than
/// this does not count as disturbed by its duration, because one uncached file can cause that.
const SHORT: f64 = 0.1;
/// The minimum use of a processor for a process to be named.
const NAMED: f64 = 0.2;
/// Clock ticks per second in /proc (`USER_HZ`). Linux uses this value on x86, Arm, RISC-V and POWER.
const TICKS: f64 = 100.0;
/// The names of two facts of a run: the processors that other processes used, and the prefix for the busiest process.
const OTHERS: &str = "others";
const BUSIEST: &str = "busy ";

/// Environment variables that change how programs behave. Other variables are not recorded, because they can be
/// secrets.
const VARIABLES: [&str; 27] = [
    "CFLAGS",
    "CXXFLAGS",
    "CGO_ENABLED",
    "GODEBUG",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "JAVA_OPTS",
    "LANG",
    "LC_ALL",
    "LDFLAGS",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "NODE_ENV",
    "NODE_OPTIONS",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "RAYON_NUM_THREADS",
    "RUSTFLAGS",
    "TOKIO_WORKER_THREADS",
    "TZ",
    "UV_THREADPOOL_SIZE",
];

/// Tools whose version is recorded: the name, the command that prints the version, and a file that shows that a project
/// uses the tool.
const VERSIONS: [(&str, &[&str], &str); 5] = [
    ("go", &["go", "version"], "go.mod"),
    ("rustc", &["rustc", "--version"], "Cargo.toml"),
    ("cc", &["cc", "--version"], "Makefile"),
    ("node", &["node", "--version"], "package.json"),
    ("python3", &["python3", "--version"], "pyproject.toml"),
];

fn first_line(path: &str) -> Option<String> {
    Some(read_to_string(path).ok()?.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Returns the values of a field in /proc/cpuinfo.
fn cpu_info(field: &str) -> Vec<String> {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of_line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

/// Returns the facts that stay the same between runs, if the system provides them.
pub fn facts() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map(|n| n.to_string()).ok();
    let all = [
        ("system", Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        ("cpu", cpu_info("model name").into_iter().next()),
        ("cores", cores),
        ("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("no_turbo", first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")),
        ("boost", first_line("/sys/devices/system/cpu/cpufreq/boost")),
        ("cpu_limit", first_line("/sys/fs/cgroup/cpu.max")),
        ("memory_limit", first_line("/sys/fs/cgroup/memory.max")),
    ];
    let variables =
        VARIABLES.into_iter().map(|name| (name, std::env::var(name).ok().filter(|value| !value.is_empty())));
    let variables = variables.filter_map(|(name, value)| Some((format!("${name}"), value?)));
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).chain(variables).collect()
}

/// Returns the current state of the machine, if the system provides it.
fn now() -> Vec<(String, f64)> {
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

/// Returns the versions of the compilers and runtimes that a side uses, and the variables that the side sets. A side
/// uses a tool if its command or build names the tool, or if its folder contains the tool's project file (see
/// `VERSIONS`).
pub fn versions(
    dir: &Path,
    variables: &[(String, String)],
    command: &[String],
    build: &str,
    runner: &Runner<'_>,
) -> Result<Vec<(String, String)>> {
    let mut versions: Vec<(String, String)> =
        variables.iter().map(|(name, value)| (format!("${name}"), value.clone())).collect();
    for (name, version, made_with) in VERSIONS {
        let is_word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        if !dir.join(made_with).exists() && !is_word(build) && !command.iter().any(|word| is_word(word)) {
            continue;
        }
        let version: Vec<String> = version.iter().map(|&word| word.to_owned()).collect();
        let file = tempfile::NamedTempFile::new()?;
        let (output, kind) = (file.path(), OutputKind::Log);
        match runner.run(&CommandJob { command: &version, dir, variables, output, kind, patience: None }) {
            Ok(ended) if ended.status.success() => {
                let line = lines(output).next().map_or_else(String::new, |line| line.trim().to_owned());
                versions.push((name.to_owned(), line));
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            _ => {}
        }
    }
    Ok(versions)
}

/// Merges the facts of both sides into rows of name, base value and new value.
pub fn beside(base: Vec<(String, String)>, new: Vec<(String, String)>) -> Vec<(String, String, String)> {
    let value_of = |all: &[(String, String)], name: &str| {
        all.iter().find(|(fact_name, _)| fact_name == name).map_or_else(String::new, |(_, value)| value.clone())
    };
    let mut all: Vec<(String, String, String)> =
        base.iter().map(|(name, value)| (name.clone(), value.clone(), value_of(&new, name))).collect();
    let only_new = new.iter().filter(|(name, _)| !base.iter().any(|(fact_name, _)| fact_name == name));
    all.extend(only_new.map(|(name, value)| (name.clone(), String::new(), value.clone())));
    all
}

/// CPU ticks of the whole machine since boot and of each process since its start, and how often the CPU limit throttled
/// the cgroup.
#[derive(Default)]
struct Ticks {
    busy: f64,
    stolen: f64,
    own_process: f64,
    throttled: f64,
    /// Id, name and ticks of each process, sorted by id.
    processes: Vec<(u32, String, f64)>,
}

impl Ticks {
    fn read() -> Ticks {
        let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
        let all = numbers(&first_line("/proc/stat").unwrap_or_default());
        // The order of the fields: user, nice, system, idle, iowait, irq, softirq, steal.
        let field = |i: usize| all.get(i).copied().unwrap_or(0.0);
        let busy = field(0) + field(1) + field(2) + field(5) + field(6);
        // Includes children that have ended.
        let own_process = process_ticks("/proc/self/stat").map_or(0.0, |(_, own_ticks, children)| own_ticks + children);
        let limits = read_to_string("/sys/fs/cgroup/cpu.stat").unwrap_or_default();
        let throttled = limits.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok());
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let process = |entry: std::fs::DirEntry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let (name, ticks, _) = process_ticks(&format!("/proc/{id}/stat"))?;
            Some((id, name, ticks))
        };
        let mut processes: Vec<(u32, String, f64)> = entries.filter_map(process).collect();
        processes.retain(|(id, ..)| *id != std::process::id());
        sort_by_key(&mut processes, |(id, ..)| *id);
        Ticks { busy, stolen: field(7), own_process, throttled: throttled.unwrap_or(0.0), processes }
    }
}

/// Reads the name of a process, its ticks, and the ticks of its children that have ended.
fn process_ticks(path: &str) -> Option<(String, f64, f64)> {
    let text = read_to_string(path).ok()?;
    // The name can contain blanks and parentheses.
    let (name, rest) = (text.get(text.find('(')? + 1..text.rfind(')')?)?, text.get(text.rfind(')')? + 1..)?);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok());
    Some((name.to_owned(), field(11)? + field(12)?, field(13)? + field(14)?))
}

/// Measures the activity of the machine during a run.
pub struct Watch {
    now: Vec<(String, f64)>,
    begun: Instant,
    ticks: Ticks,
}

impl Watch {
    pub fn begin() -> Watch {
        Watch { now: now(), begun: Instant::now(), ticks: Ticks::read() }
    }

    /// Returns the state at the start of the run and the activity since then: processors used by other processes,
    /// processors taken by the host, how often a CPU limit was hit, and the busiest process. Omits the activity of runs
    /// shorter than `SHORT`, and on systems without `/proc/stat`.
    pub fn end(self) -> Vec<(String, f64)> {
        let mut facts = self.now;
        let (before, after) = (self.ticks, Ticks::read());
        let seconds = self.begun.elapsed().as_secs_f64();
        if after.busy <= 0.0 || seconds < SHORT {
            return facts;
        }
        let processors = |ticks: f64| (100.0 * ticks.max(0.0) / TICKS / seconds).round() / 100.0;
        facts
            .push((OTHERS.to_owned(), processors(after.busy - before.busy - (after.own_process - before.own_process))));
        facts.push(("stolen".to_owned(), processors(after.stolen - before.stolen)));
        facts.push(("throttled".to_owned(), after.throttled - before.throttled));
        let used = after.processes.into_iter().filter_map(|(id, name, ticks)| {
            let index = before.processes.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
            Some((name, processors(ticks - before.processes[index].2)))
        });
        let busiest = used.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, used)| *used >= NAMED);
        facts.extend(busiest.map(|(name, used)| (format!("{BUSIEST}{name}"), used)));
        facts
    }
}

fn fact(run: &RecordedRun, name: &str) -> Option<f64> {
    run.machine.iter().find(|(fact_name, _)| fact_name == name).map(|(_, value)| *value)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Records for each run why it differs from the other runs of its side, if it does. A side with fewer than three runs
/// is skipped.
pub fn mark_disturbed(runs: &mut [RecordedRun]) {
    for side in SIDES {
        let of_side = || runs.iter().filter(|run| run.side == side);
        if of_side().count() < 3 {
            continue;
        }
        let seconds = median(of_side().map(|run| run.seconds).collect()).unwrap_or(0.0);
        let usual = |name| median(of_side().filter_map(|run| fact(run, name)).collect());
        let (others, throttled) = (usual(OTHERS), usual("throttled"));
        for run in runs.iter_mut().filter(|run| run.side == side) {
            let mut reasons = Vec::new();
            if run.seconds > DISTURBED * seconds && run.seconds > seconds + SHORT {
                reasons.push(format!("it took {:.1} times as long as the median run", run.seconds / seconds));
            }
            if let (Some(usual), Some(others)) =
                (others, fact(run, OTHERS).filter(|o| others.is_some_and(|u| *o > u + BUSY)))
            {
                let busiest = run.machine.iter().find_map(|(name, _)| name.strip_prefix(BUSIEST));
                let who = busiest.map_or_else(String::new, |name| format!(", most of them {name}"));
                reasons.push(format!(
                    "other processes used {others:.1} processors{who}, and {usual:.1} during the median run"
                ));
            }
            if throttled == Some(0.0) && fact(run, "throttled").is_some_and(|times| times > 0.0) {
                reasons.push("the container's CPU limit throttled it".to_owned());
            }
            run.disturbed = reasons.join("; ");
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn mean_fact<'a>(runs: impl Iterator<Item = &'a RecordedRun>, name: &str) -> Option<f64> {
    mean(runs.filter_map(|run| fact(run, name)))
}

/// Returns notes for the user: differences of the machine between the sides or between the first and last runs, and
/// disturbed runs. `before` has the facts of earlier runs that `--more` continues.
pub fn notes(before: &[(String, String)], recording: &Recording) -> Vec<String> {
    let (now, runs) = (&recording.machine, &recording.runs);
    let mut notes = Vec::new();
    let value = |all: &[(String, String)], name: &str| {
        all.iter().find(|(fact_name, _)| fact_name == name).map(|(_, v)| v.clone())
    };
    let mut names: Vec<&String> = before.iter().chain(now).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|_| !before.is_empty()) {
        let none = || "none".to_owned();
        let (earlier, now) = (value(before, name), value(now, name));
        if earlier != now {
            let (earlier, now) = (earlier.unwrap_or_else(none), now.unwrap_or_else(none));
            notes.push(format!("earlier runs had {name} {earlier}, these {now}"));
        }
    }
    for (name, base, new) in recording.versions.iter().filter(|(_, base, new)| base != new) {
        let or_none = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
        notes.push(format!("the base has {name} {}, the new side {}", or_none(base), or_none(new)));
    }
    let side = |name: &'static str| runs.iter().filter(move |run| run.side == name);
    for (name, words) in
        [("load", "the machine's load was"), (OTHERS, "the number of processors that other processes used was")]
    {
        if let (Some(base), Some(new)) = (mean_fact(side("base"), name), mean_fact(side("new"), name))
            && (base - new).abs() > LOADED
        {
            notes.push(format!("{words} {base:.1} in runs of the base, and {new:.1} in runs of the new side"));
        }
    }
    let part = runs.len().min(4);
    if let (Some(first), Some(last)) =
        (mean_fact(runs[..part].iter(), "mhz"), mean_fact(runs[runs.len() - part..].iter(), "mhz"))
        && runs.len() > part
        && last < SLOWER * first
    {
        notes.push(format!("the last {part} runs had {:.0} % of the clock rate of the first", 100.0 * last / first));
    }
    for name in SIDES {
        let disturbed: Vec<&RecordedRun> = side(name).filter(|run| !run.disturbed.is_empty()).collect();
        if let Some(first) = disturbed.first() {
            let pairs: Vec<String> = disturbed.iter().map(|run| run.pair.to_string()).collect();
            notes.push(format!(
                "disturbed runs of the {name} side, which still count: {} (run {}: {})",
                pairs.join(", "),
                first.pair,
                first.disturbed
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::{BUSIEST, OTHERS, RecordedRun, Recording, Watch, beside, facts, mark_disturbed, notes};

    fn run(side: &str, load: f64, mhz: f64, seconds: f64) -> RecordedRun {
        let mut run = RecordedRun::default();
        (run.side, run.seconds) = (side.to_owned(), seconds);
        run.machine = vec![("load".to_owned(), load), ("mhz".to_owned(), mhz), (OTHERS.to_owned(), 0.1)];
        run
    }

    fn notes_text(before: &[(String, String)], now: &[(String, String)], runs: Vec<RecordedRun>) -> String {
        let mut recording = Recording::new(&[]);
        (recording.machine, recording.runs) = (now.to_vec(), runs);
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        recording.versions = beside(
            pair("go", "1.23"),
            now.iter().find(|(n, _)| n == "go").map_or_else(|| pair("go", "1.23"), |(_, version)| pair("go", version)),
        );
        mark_disturbed(&mut recording.runs);
        notes(before, &recording).join("\n")
    }

    #[test]
    fn changes_of_the_machine_are_reported() {
        let alike: Vec<_> = (0..8).map(|i| run(["base", "new"][i % 2], 1.0, 2000.0, 1.0)).collect();
        assert_eq!(notes_text(&facts(), &facts(), alike), "");
        let mut other: Vec<_> =
            (0..8).map(|i| run(["base", "new"][i % 2], (i % 2) as f64, 2000.0 - 100.0 * i as f64, 1.0)).collect();
        other[3].seconds = 9.0;
        other[4].machine[2].1 = 1.4;
        other[4].machine.push((format!("{BUSIEST}make"), 1.2));
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let text =
            notes_text(&[fact("cpu", "a"), fact("$GOGC", "off")], &[fact("cpu", "b"), fact("go", "1.24")], other);
        for fragment in [
            "had cpu a, these b",
            "had $GOGC off, these none",
            "the base has go 1.23, the new side 1.24",
            "load was 0.0",
            "the last 4 runs had 78 %",
            "of the new side, which still count: 0 (run 0: it took 9.0 times",
            "other processes used 1.4 processors, most of them make, and 0.1 during the median run",
        ] {
            assert!(text.contains(fragment), "{fragment}: {text}");
        }
    }

    #[test]
    fn the_activity_of_other_processes_during_a_run_is_measured() {
        let mut watch = Watch::begin();
        watch.begun -= std::time::Duration::from_secs(1);
        let facts = watch.end();
        assert!(facts.iter().all(|(_, value)| value.is_finite() && *value >= 0.0), "{facts:?}");
        assert_eq!(facts.iter().any(|(name, _)| name == OTHERS), cfg!(target_os = "linux"), "{facts:?}");
    }
}
