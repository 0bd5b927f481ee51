//! `pprofdiff delta`: reads snapshots from files or from a live process, and writes deltas to files or standard output.
//!
//! While `delta` waits for the next snapshot from a URL, it keeps the newest snapshot in a file, so that a failed
//! request or Ctrl-C does not lose it. For deltas on standard output, it keeps no file.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use pprofdiff::delta::{Delta, DeltaComputer};

use pprofdiff::{ErrorKind, Profile, WriteOptions, cancellation};
use pprofdiff_shell::{Failure, Outputs, Result, is_stdin, is_watched, say, write_to};

use crate::args::{DeltaArgs, SnapshotSchedule};
use crate::{Inputs, fetch, one_stdin, packing};

/// The placeholder in the output's name for the number of the delta.
const INDEX: &str = "{index}";

pub fn run(args: &DeltaArgs) -> Result<()> {
    let snapshots = args.snapshots.as_slice();
    for url in snapshots.iter().filter_map(|path| fetch::page_url(path)).filter(|_| args.options().cumulative.is_none())
    {
        if let Some(reason) = fetch::not_cumulative(url) {
            return Err(Failure::Message(format!(
                "{url}: {reason}, so there is nothing to subtract; if this one is different, give the sample types \
                 that count from the start with --cumulative TYPE,..."
            )));
        }
    }
    match (snapshots, args.schedule()) {
        ([url], Some(schedule)) if fetch::page_url(url).is_some() => live(args, &url.to_string_lossy(), schedule),
        (_, Some(_)) => {
            Err(Failure::Message("--seconds and --every take snapshots from one http:// or https:// URL".to_owned()))
        }
        ([url], None) if fetch::page_url(url).is_some() => Err(Failure::Message(
            "set the time until the second snapshot: --seconds 30, or --every 30s --count 10".to_owned(),
        )),
        ([_], None) => Err(Failure::Message("a delta needs two snapshots, the older one first".to_owned())),
        (snapshots, None) => files(args, snapshots),
    }
}

fn files(args: &DeltaArgs, snapshots: &[PathBuf]) -> Result<()> {
    one_stdin(snapshots.iter())?;
    let mut deltas = Deltas::new(args, snapshots.len() > 2)?;
    let outputs = (1..snapshots.len() as u64).map(|number| numbered(&args.output, number));
    let inputs = Inputs::without_base(&args.load, Outputs::new(outputs))?;
    let load = |path: &PathBuf| inputs.load(path);
    let mut next = load(&snapshots[0]);
    for path in snapshots[1..].iter().map(Some).chain([None]) {
        let snapshot = next?;
        // Loads the next snapshot while this one is processed.
        let (done, loaded) = pprofdiff::parallel::join(|| deltas.add(&snapshot), || path.map(load));
        done?;
        let Some(loaded) = loaded else { break };
        next = loaded;
    }
    Ok(())
}

/// Takes snapshots until `schedule` is complete. The newest snapshot stays in a file next to the output until the last
/// delta is written.
fn live(args: &DeltaArgs, url: &str, schedule: SnapshotSchedule) -> Result<()> {
    let mut deltas = Deltas::new(args, schedule.count != Some(1))?;
    let Inputs { options, fetcher, .. } = Inputs::without_base(&args.load, Outputs::default())?;
    let kept = Kept::beside(&args.output);
    let begin = Instant::now();
    let mut taken = 0;
    loop {
        let took = fetcher.get(url).map_err(Failure::from).and_then(|(bytes, secrets)| {
            let snapshot = pprofdiff::from_bytes(url, &bytes, &options);
            let snapshot = snapshot.map_err(|e| e.without(&secrets))?;
            deltas.add(&snapshot)?;
            kept.replace(&bytes)?;
            Ok(bytes.len())
        });
        let size = took.map_err(|e| kept.mention(e, taken > 0))?;
        taken += 1;
        if schedule.count.is_some_and(|count| taken > count) {
            kept.remove();
            return Ok(());
        }
        // Counts from the start, so that a slow answer does not delay later snapshots.
        let due = begin + schedule.every.saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX));
        let total_suffix = schedule.count.map_or_else(String::new, |count| format!(" of {}", count + 1));
        wait(due, &format!("snapshot {taken}{total_suffix} taken, {}", kilobytes(size)));
    }
}

/// Waits until `due`, and shows the remaining time on a terminal.
fn wait(due: Instant, done: &str) {
    let terminal = is_watched(&io::stderr());
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if terminal {
            let _ = write!(io::stderr(), "\r{done}; next in {} s\x1b[K", left.as_secs_f64().ceil());
        }
        let tick = Duration::from_nanos(u64::from(left.subsec_nanos()));
        let tick = if tick.is_zero() { left.min(Duration::from_secs(1)) } else { tick };
        cancellation::checkpoint();
        thread::sleep(tick.min(Duration::from_millis(100)));
    }
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Turns snapshots into files with deltas.
struct Deltas<'a> {
    args: &'a DeltaArgs,
    computer: DeltaComputer,
    options: WriteOptions,
    /// The number of snapshots so far.
    seen: u64,
}

impl<'a> Deltas<'a> {
    fn new(args: &'a DeltaArgs, several: bool) -> Result<Deltas<'a>> {
        if several && !args.output.to_string_lossy().contains(INDEX) {
            let message = format!(
                "several deltas need several files; put the number in the name, such as -o 'delta-{INDEX}.pb.gz'"
            );
            return Err(Failure::Message(message));
        }
        let mut options = packing(Some(&args.output));
        options.level = args.level;
        Ok(Deltas { args, computer: DeltaComputer::new(args.options()), options, seen: 0 })
    }

    /// Processes a snapshot. Writes a delta, except for the first snapshot.
    fn add(&mut self, snapshot: &Profile) -> Result<()> {
        self.seen += 1;
        let failure = |e: pprofdiff::Error| match e.kind() {
            ErrorKind::Reset => {
                Failure::Message(format!("{e}; to continue after a reset, use --on-reset pass or --on-reset clamp"))
            }
            ErrorKind::NotCumulative => Failure::Message(format!("{e} (--cumulative TYPE,...)")),
            _ => e.into(),
        };
        if self.seen == 1 {
            return self.computer.start(snapshot).map_err(failure);
        }
        let delta = self.computer.update(snapshot).map_err(failure)?;
        let bytes = delta.to_bytes(&self.options)?;
        let output = numbered(&self.args.output, self.seen - 1);
        write_to(Some(&output), |out| out.write_all(&bytes))?;
        tell(snapshot, &delta, &output, bytes.len());
        Ok(())
    }
}

/// Returns the file of the delta with this number.
fn numbered(output: &Path, number: u64) -> PathBuf {
    PathBuf::from(output.to_string_lossy().replace(INDEX, &number.to_string()))
}

/// Reports the written file if standard error is a terminal, and always reports counters that decreased or disappeared.
fn tell(snapshot: &Profile, delta: &Delta<'_>, output: &Path, size: usize) {
    let name = output.display();
    if io::stderr().is_terminal() && !is_stdin(output) {
        let total = snapshot.n_samples();
        say(&format!("{name}: {} of {total} samples, {}", delta.samples, kilobytes(size)));
    }
    if let Some(warning) = delta.warning() {
        say(&format!("warning: {name}: {warning}"));
    }
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1} kB", bytes as f64 / 1000.0)
}

/// A file with the newest snapshot of a live process, which survives a crash of this process.
struct Kept {
    /// `None` if the deltas go to standard output.
    path: Option<PathBuf>,
}

impl Kept {
    /// Returns `delta-snapshot.pb.gz` for `delta-{index}.pb.gz`, and `out.snapshot.pb.gz` for `out.pb.gz`.
    fn beside(output: &Path) -> Kept {
        if is_stdin(output) {
            return Kept { path: None };
        }
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let name = match name.split_once('.') {
            _ if name.contains(INDEX) => name.replace(INDEX, "snapshot"),
            Some((stem, ending)) => format!("{stem}.snapshot.{ending}"),
            None => format!("{name}.snapshot"),
        };
        // The directory may have the number in its name too, so the snapshot goes in the nearest parent without the
        // number.
        let directory = output.parent().unwrap_or(Path::new(""));
        let plain = directory.ancestors().find(|d| !d.to_string_lossy().contains(INDEX)).unwrap_or(Path::new(""));
        Kept { path: Some(plain.join(name)) }
    }

    fn replace(&self, bytes: &[u8]) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        Ok(pprofdiff::output::write_file(path, |out| out.write_all(bytes))?)
    }

    fn remove(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }

    /// Adds the location of the newest snapshot to an error message.
    fn mention(&self, e: Failure, taken: bool) -> Failure {
        match (e, &self.path) {
            (Failure::Message(message), Some(path)) if taken => {
                Failure::Message(format!("{message}; the last snapshot is kept in {}", path.display()))
            }
            (e, _) => e,
        }
    }
}
