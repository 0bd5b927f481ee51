//! A folder of runs that `pprofdiff bench` recorded, as described by its `runs.toml`. docs/bench.md documents the
//! schema.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::loading::Loading;
use crate::{Error, LoadOptions, Result, Source};

/// The name of the file that describes the folder.
pub const RUNS_FILE: &str = "runs.toml";
const SCHEMA: &str = "pprofdiff-runs/1";
/// The recording of perf in the folder of a run, and its text with source lines, which bench compares.
const PERF_DATA: &str = "perf.data";
const PERF_SCRIPT: &str = "perf.txt";
/// The names of the sides.
pub const SIDES: [&str; 2] = ["base", "new"];

/// The runs of two sides, and the settings of the recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recording {
    /// The schema version of this description.
    pub schema: String,
    /// The command that was run.
    pub command: Vec<String>,
    /// The command of the new side; empty if both sides ran the same command.
    #[serde(default)]
    pub new_command: Vec<String>,
    /// The compared range, `BASE..NEW` of a repository; empty for a comparison of two folders.
    #[serde(default)]
    pub range: String,
    /// The compared folders; empty for a repository.
    #[serde(default)]
    pub dirs: Vec<String>,
    /// The build command of a side.
    #[serde(default)]
    pub build: String,
    /// The seed that decides which side starts, and in which order the sides alternate.
    pub seed: u64,
    /// The smallest change that matters, as a part.
    pub effect: f64,
    /// The program that counted calls or instructions; empty if the runs were timed.
    #[serde(default)]
    pub counter: String,
    /// The number of operations that each run performs, if it is fixed.
    #[serde(default)]
    pub fixed_operations: Option<u64>,
    /// True if the programs of each pair were linked with the functions in another order.
    #[serde(default)]
    pub layouts: bool,
    /// The number of pairs after which the planned runs ended for the first time. The single last look happened then.
    #[serde(default)]
    pub last_look: Option<usize>,
    /// Facts about the machine: names and values.
    #[serde(default)]
    pub machine: Vec<(String, String)>,
    /// The software versions of both sides: a name (such as the compiler), the base's version and the new side's
    /// version.
    #[serde(default)]
    pub versions: Vec<(String, String, String)>,
    /// The runs, in recording order.
    #[serde(default, rename = "run")]
    pub runs: Vec<RecordedRun>,
}

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedRun {
    /// `base` or `new`.
    pub side: String,
    /// The number of the pair. Runs of both sides with equal numbers are a pair.
    pub pair: u64,
    /// The commit; empty for a folder or a working tree.
    #[serde(default)]
    pub commit: String,
    /// The profiles, relative to the folder. The first profile is compared.
    pub profiles: Vec<String>,
    /// The total of the first profile per operation, in the profile's unit.
    pub total: f64,
    /// The number of completed operations.
    #[serde(default)]
    pub operations: Option<f64>,
    /// The seed for the order of the program's functions, if the recording has layouts.
    #[serde(default)]
    pub layout: Option<u64>,
    /// The total of a second run of the same program, per operation, which only shows the noise between such runs.
    #[serde(default)]
    pub repeated: Option<f64>,
    /// The start time in seconds since 1970.
    pub began: u64,
    /// The duration in seconds.
    pub seconds: f64,
    /// The state of the machine during the run: names and numbers.
    #[serde(default)]
    pub machine: Vec<(String, f64)>,
    /// The reason that the run differs from the other runs of its side; empty without a disturbance.
    #[serde(default)]
    pub disturbed: String,
}

/// A side of a folder of runs, used in place of a profile: `RUNS/base` or `RUNS/new`. Callers also use it for the
/// profiles of a store that match some keys.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedSide {
    /// The path as it was typed.
    pub name: String,
    /// The profiles of its runs.
    pub runs: Vec<Source>,
    /// The folder with the sources that the profiles name.
    pub sources: PathBuf,
    /// The folder with the binaries.
    pub binaries: PathBuf,
}

impl RecordedSide {
    /// Creates a side from its runs, without folders of sources and binaries.
    pub fn new(name: String, runs: Vec<Source>) -> RecordedSide {
        RecordedSide { name, runs, sources: PathBuf::new(), binaries: PathBuf::new() }
    }

    /// Returns the side of a folder of runs that a path names. Returns `None` for other paths, and for `RUNS/base` or
    /// `RUNS/new` if the path exists.
    ///
    /// # Errors
    /// Returns the errors of [`Recording::read_sides`].
    pub fn named(path: &Path) -> Result<Option<RecordedSide>> {
        let side = SIDES.iter().position(|side| path.file_name().is_some_and(|name| name == *side));
        let (Some(side), Some(dir)) = (side, path.parent()) else { return Ok(None) };
        if path.exists() || !Recording::is_in(dir) {
            return Ok(None);
        }
        let name = path.display().to_string();
        let ([base, new], sources, binaries) =
            (Recording::read_sides(dir)?, Recording::sources(dir), Recording::binaries(dir));
        let runs = [base, new].into_iter().nth(side).unwrap_or_default().into_iter().map(Source::Path).collect();
        Ok(Some(RecordedSide { name, runs, sources: sources[side].clone(), binaries: binaries[side].clone() }))
    }

    /// Returns the runs, as a side of a diff.
    pub fn to_sources(&self) -> Vec<Source> {
        self.runs.clone()
    }

    /// Returns the sum of the runs as one source. A single run that is not a file is returned unchanged.
    pub fn to_source(&self) -> Source {
        match &self.runs[..] {
            [one] if one.path().is_none() => one.clone(),
            runs => Source::Merged(self.name.clone(), runs.to_vec()),
        }
    }
}

impl Recording {
    /// Creates a recording without runs.
    pub fn new(command: &[String]) -> Recording {
        Recording { schema: SCHEMA.to_owned(), command: command.to_vec(), ..Recording::default() }
    }

    /// Returns the command of a side: 0 for the base, 1 for the new side.
    pub fn command_of(&self, side: usize) -> &[String] {
        if side == 1 && !self.new_command.is_empty() { &self.new_command } else { &self.command }
    }

    /// Returns the folders with the sources that the profiles name, for the base and for the new side.
    pub fn sources(dir: &Path) -> [PathBuf; 2] {
        SIDES.map(|side| dir.join("sources").join(side))
    }

    /// Returns the folders with the binaries of both sides.
    pub fn binaries(dir: &Path) -> [PathBuf; 2] {
        SIDES.map(|side| dir.join("binaries").join(side))
    }

    /// Returns true if the folder contains a description of runs.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(RUNS_FILE).is_file()
    }

    /// Reads the description of a folder.
    ///
    /// # Errors
    /// Returns an error for a missing file, invalid TOML, a different schema version, a run without a valid side or
    /// without a profile, or a profile outside of the folder.
    pub fn read(dir: &Path) -> Result<Recording> {
        let path = dir.join(RUNS_FILE);
        let name = path.display().to_string();
        let wrong = |message: String| Error::query(message).in_input(&name);
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
        let first = |e: toml::de::Error| e.message().lines().next().unwrap_or_default().to_owned();
        let recording: Recording = toml::from_str(&text).map_err(|e| wrong(first(e)))?;
        if recording.schema != SCHEMA {
            return Err(wrong(format!("its schema is {:?}; expected {SCHEMA:?}", recording.schema)));
        }
        for run in &recording.runs {
            let is_below = |profile: &String| {
                Path::new(profile).components().all(|part| matches!(part, std::path::Component::Normal(_)))
            };
            if !SIDES.contains(&run.side.as_str()) || run.profiles.is_empty() {
                return Err(wrong(format!("run {} needs a side, base or new, and a profile", run.pair)));
            }
            if let Some(profile) = run.profiles.iter().find(|profile| !is_below(profile)) {
                return Err(wrong(format!("{profile} is not below the folder")));
            }
        }
        Ok(recording)
    }

    /// Returns the compared profiles of the base and of the new side.
    pub fn sides(&self, dir: &Path) -> [Vec<PathBuf>; 2] {
        SIDES.map(|side| {
            let runs = self.runs.iter().filter(|run| run.side == side);
            runs.filter_map(|run| run.profiles.first()).map(|profile| dir.join(profile)).collect()
        })
    }

    /// Returns the compared profiles of a folder, for the base and for the new side.
    ///
    /// # Errors
    /// Returns the errors of [`Recording::read`], and an error for a side without runs.
    pub fn read_sides(dir: &Path) -> Result<[Vec<PathBuf>; 2]> {
        let sides = Recording::read(dir)?.sides(dir);
        if sides.iter().any(Vec::is_empty) {
            return Err(Error::query("it needs at least one run per side").in_input(&dir.display().to_string()));
        }
        Ok(sides)
    }

    /// Like [`Recording::read_sides`], but returns the first profiles of the runs that have this sample type: `go test`
    /// writes a CPU profile and a heap profile per run. Returns the compared profiles without a sample type, and if no
    /// profile has it.
    ///
    /// # Errors
    /// Returns the errors of [`Recording::read_sides`], and of [`open`](crate::open) for the profiles of the first run.
    pub fn read_sides_with(dir: &Path, sample_type: Option<&str>, options: &LoadOptions) -> Result<[Vec<PathBuf>; 2]> {
        let compared = Recording::read_sides(dir)?;
        let recording = Recording::read(dir)?;
        let (Some(name), Some(first)) = (sample_type, recording.runs.first()) else { return Ok(compared) };
        if first.profiles.len() < 2 {
            return Ok(compared);
        }
        for (number, profile) in first.profiles.iter().enumerate() {
            let profile = Source::Path(dir.join(profile)).load(options)?;
            if profile.sample_types().iter().any(|(kind, _)| kind == name) {
                let sides = SIDES.map(|side| {
                    let runs = recording.runs.iter().filter(|run| run.side == side);
                    runs.filter_map(|run| run.profiles.get(number)).map(|profile| dir.join(profile)).collect::<Vec<_>>()
                });
                return Ok(if sides.iter().any(Vec::is_empty) { compared } else { sides });
            }
        }
        Ok(compared)
    }

    /// Returns the recordings of perf beside the profiles of both sides, which have the addresses of instructions. The text
    /// of `perf script` has source lines instead. Returns `None` if a run has a different profile, or if the first
    /// recording can't be read without perf.
    pub fn read_sides_with_addresses(dir: &Path, options: &LoadOptions) -> Result<Option<[Vec<PathBuf>; 2]>> {
        let recorded = |profile: &PathBuf| {
            let data = profile.with_file_name(PERF_DATA);
            (profile.file_name()? == PERF_SCRIPT && data.is_file()).then_some(data)
        };
        let [base, new] = Recording::read_sides(dir)?.map(|side| side.iter().map(recorded).collect::<Option<Vec<_>>>());
        let (Some(base), Some(new)) = (base, new) else { return Ok(None) };
        let is_readable = base.first().is_some_and(|first| Source::Path(first.clone()).load(options).is_ok());
        Ok(is_readable.then_some([base, new]))
    }

    /// Adds the binaries in a folder of runs to the loading options, after explicitly named binaries.
    pub fn add_binaries(dir: &Path, loading: &mut Loading) {
        let [base, new] = Recording::binaries(dir);
        for (side, kept) in [(&mut loading.base_binary, base), (&mut loading.new_binary, new)] {
            side.extend(Some(kept).filter(|kept| kept.is_dir()));
        }
    }

    /// Returns the mean number of operations per run on each side; `None` if a run lacks the number, or if a side has
    /// no runs.
    pub fn operations(&self) -> Option<(f64, f64)> {
        let mean = |side: &str| {
            let runs = self.runs.iter().filter(|run| run.side == side);
            let operations: Option<Vec<f64>> = runs.map(|run| run.operations).collect();
            operations
                .filter(|operations| !operations.is_empty())
                .map(|operations| operations.iter().sum::<f64>() / operations.len() as f64)
        };
        Some((mean("base")?, mean("new")?))
    }

    /// Formats the description as TOML.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let list = |all: &[String]| all.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "schema = {}\ncommand = [{}]", quoted(&self.schema), list(&self.command));
        if !self.new_command.is_empty() {
            let _ = writeln!(text, "new_command = [{}]", list(&self.new_command));
        }
        let _ = writeln!(text, "range = {}\ndirs = [{}]", quoted(&self.range), list(&self.dirs));
        let _ = writeln!(text, "build = {}\nseed = {}\neffect = {:?}", quoted(&self.build), self.seed, self.effect);
        if !self.counter.is_empty() {
            let _ = writeln!(text, "counter = {}", quoted(&self.counter));
        }
        if let Some(operations) = self.fixed_operations {
            let _ = writeln!(text, "fixed_operations = {operations}");
        }
        if self.layouts {
            let _ = writeln!(text, "layouts = true");
        }
        if let Some(pairs) = self.last_look {
            let _ = writeln!(text, "last_look = {pairs}");
        }
        let facts: Vec<String> =
            self.machine.iter().map(|(name, value)| format!("  [{}, {}],\n", quoted(name), quoted(value))).collect();
        let _ = writeln!(text, "machine = [\n{}]", facts.concat());
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(name, base, new)| format!("  [{}, {}, {}],\n", quoted(name), quoted(base), quoted(new)))
            .collect();
        let _ = writeln!(text, "versions = [\n{}]", versions.concat());
        for run in &self.runs {
            let _ = writeln!(text, "\n[[run]]\nside = {}\npair = {}", quoted(&run.side), run.pair);
            let _ = writeln!(text, "commit = {}\nprofiles = [{}]", quoted(&run.commit), list(&run.profiles));
            let _ = writeln!(text, "total = {:?}", run.total);
            if let Some(operations) = run.operations {
                let _ = writeln!(text, "operations = {operations:?}");
            }
            if let Some(layout) = run.layout {
                let _ = writeln!(text, "layout = {layout}");
            }
            if let Some(repeated) = run.repeated {
                let _ = writeln!(text, "repeated = {repeated:?}");
            }
            let _ = writeln!(text, "began = {}\nseconds = {:?}", run.began, run.seconds);
            let facts: Vec<String> =
                run.machine.iter().map(|(name, value)| format!("[{}, {value:?}]", quoted(name))).collect();
            let _ = writeln!(text, "machine = [{}]", facts.join(", "));
            if !run.disturbed.is_empty() {
                let _ = writeln!(text, "disturbed = {}", quoted(&run.disturbed));
            }
        }
        text
    }
}

/// Quotes a text for TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LoadOptions, RUNS_FILE, RecordedRun, RecordedSide, Recording, Source};

    #[test]
    fn a_sample_type_selects_the_profiles_of_a_run_that_have_it() {
        let dir = std::env::temp_dir().join(format!("pprofdiff-recording-types-{}", std::process::id()));
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
        let mut recording = Recording::new(&["go".to_owned()]);
        for side in ["base", "new"] {
            std::fs::create_dir_all(dir.join(side)).unwrap();
            for (from, to) in [("story-cpu", "cpu"), ("go-heap", "mem")] {
                let from = corpus.join(format!("{from}.{side}.pb.gz"));
                std::fs::copy(from, dir.join(format!("{side}/{to}.pb.gz"))).unwrap();
            }
            let profiles = ["cpu", "mem"].map(|name| format!("{side}/{name}.pb.gz")).into();
            recording.runs.push(RecordedRun { side: side.to_owned(), profiles, ..RecordedRun::default() });
        }
        std::fs::write(dir.join(RUNS_FILE), recording.to_toml()).unwrap();
        let sides = |name| Recording::read_sides_with(&dir, name, &LoadOptions::default()).unwrap();
        let expected = |name: &str| ["base", "new"].map(|side| vec![dir.join(format!("{side}/{name}.pb.gz"))]);
        assert_eq!(sides(Some("alloc_space")), expected("mem"));
        for compared in [None, Some("cpu"), Some("unknown")] {
            assert_eq!(sides(compared), expected("cpu"));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_written_recording_is_read_back_unchanged() {
        let dir = std::env::temp_dir().join(format!("pprofdiff-recording-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut recording = Recording::new(&["a \"b\"\n\u{7f}".to_owned(), "c\\d".to_owned()]);
        recording.machine.push(("cpu".to_owned(), "x".to_owned()));
        (recording.fixed_operations, recording.layouts, recording.last_look) = (Some(7), true, Some(2));
        recording.new_command = vec!["d".to_owned()];
        recording.versions.push(("go".to_owned(), "go1.23".to_owned(), "go1.24".to_owned()));
        for (side, operations) in [("base", 10.0), ("new", 30.0), ("new", 10.0)] {
            let machine = vec![("load".to_owned(), 0.5)];
            let profiles = vec![format!("{side}/cpu.pb.gz")];
            let (side, operations) = (side.to_owned(), Some(operations));
            recording.runs.push(RecordedRun {
                side,
                profiles,
                operations,
                machine,
                total: 1e-9,
                layout: Some(11),
                repeated: Some(2e-9),
                disturbed: "it took \"long\"".to_owned(),
                ..RecordedRun::default()
            });
        }
        let write = |text: &str| std::fs::write(dir.join(RUNS_FILE), text).unwrap();
        write(&recording.to_toml());
        let read = Recording::read(&dir).unwrap();
        assert_eq!(read, recording);
        assert_eq!(read.operations(), Some((10.0, 20.0)));
        assert_eq!(read.sides(&dir).map(|side| side.len()), [1, 2]);
        // A side replaces a profile.
        let new = RecordedSide::named(&dir.join("new")).unwrap().unwrap();
        let files: Vec<_> = new.runs.iter().filter_map(Source::path).collect();
        assert_eq!(files, [dir.join("new/cpu.pb.gz"), dir.join("new/cpu.pb.gz")]);
        assert_eq!((new.sources, new.binaries), (dir.join("sources/new"), dir.join("binaries/new")));
        // An existing path refers to itself.
        std::fs::create_dir(dir.join("base")).unwrap();
        assert!(RecordedSide::named(&dir.join("base")).unwrap().is_none());
        let error = |text: &str| {
            write(text);
            Recording::read(&dir).unwrap_err().to_string()
        };
        assert!(error(&recording.to_toml().replace("runs/1", "runs/2")).ends_with("expected \"pprofdiff-runs/1\""));
        assert!(error(&recording.to_toml().replace("base/cpu", "../cpu")).ends_with("is not below the folder"));
        assert!(error(&recording.to_toml().replace("side = \"base\"", "side = \"x\"")).contains("needs a side"));
        assert!(error("x").starts_with(&dir.display().to_string()));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
