//! `--layouts`: links both sides anew for each pair of runs, with the functions in another order. The difference of a
//! pair then includes the effect of the layout, so a change must be larger than this effect to be certain.
//!
//! | linked by | order of the functions |
//! |---|---|
//! | `go test -bench` | `-ldflags=-randlayout=SEED` |
//! | `--build` with `go` | the same, in `GOFLAGS` |
//! | `--build` with a compiler driver, also below make or cargo | lld's `--shuffle-sections`. Programs called `cc`, `gcc` and so on at the front of `PATH` add it, because builds often ignore `CFLAGS` and `LDFLAGS` |
//!
//! Each side has its own seed in each pair. With a common seed, equal sides would be equal programs, and their difference
//! would not include the layout.

use std::path::{Path, PathBuf};

use pprofdiff::binary::{Binary, Memory};
use pprofdiff::recording::{RecordedRun, Recording, SIDES};
use pprofdiff_shell::{Failure, Result};
use tempfile::TempDir;

use super::adapters;

/// The minimum number of layouts before a decision.
pub const MIN_LAYOUTS: usize = 5;
/// The number of pairs, from the first, whose programs run a second time. The differences between both runs of a program
/// are the noise without the effect of layout.
const REPEATED: u64 = 5;
/// The minimum ratio of variances for an effect of layout: the 95 % quantile of F with 4 and 10 degrees of freedom, for
/// [`MIN_LAYOUTS`] layouts and [`REPEATED`] repetitions per side. More layouts have a smaller quantile.
const MIN_RATIO: f64 = 3.48;
/// The seeds of lld are positive and have 31 bits.
const MAX_SEED: u64 = (1 << 31) - 2;
/// The variable with the seed, for builds that set the order of functions themselves.
const SEED_VARIABLE: &str = "PPROFDIFF_LAYOUT";
/// The first version of Go whose linker has `-randlayout`.
const MIN_GO: u64 = 22;
/// The compiler drivers that link programs.
const DRIVERS: [&str; 9] =
    ["cc", "c++", "gcc", "g++", "clang", "clang++", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc", "c99"];

/// The command that links a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linking {
    /// `go test` links the program and runs it.
    GoTest,
    /// The build command links the program.
    Build,
}

/// The layouts of a benchmark.
pub struct Layouts {
    linking: [Linking; 2],
    /// The folder with the programs that add options to compiler drivers. It exists if lld was found.
    drivers: Option<TempDir>,
    /// The last seed of each side.
    linked: [Option<u64>; 2],
    /// True if both sides are built in one folder, so that each build replaces the program of the previous one.
    pub is_shared: bool,
}

fn message<T>(text: impl Into<String>) -> Result<T> {
    Err(Failure::Message(text.into()))
}

/// Returns the seed of a side in a pair.
pub fn seed(recording: &Recording, pair: u64, side: usize) -> u64 {
    let number = recording.seed.wrapping_mul(10_007).wrapping_add(pair.wrapping_mul(2)).wrapping_add(side as u64);
    number % MAX_SEED + 1
}

/// Returns true if the programs of this pair run twice.
pub fn is_repeated(pair: u64) -> bool {
    pair <= REPEATED
}

/// Returns true if a shell command contains a word, such as the name of a program.
fn has_word(command: &str, name: &str) -> bool {
    command
        .split(|c: char| c.is_whitespace() || ";&|()'\"=".contains(c))
        .any(|word| word.rsplit('/').next() == Some(name))
}

fn is_driver(command: &str) -> bool {
    DRIVERS.iter().any(|driver| has_word(command, driver))
}

impl Layouts {
    /// Decides how to link both sides. Creates the programs that add options to compiler drivers.
    ///
    /// # Errors
    /// Fails with the reason if the order of functions cannot be set.
    pub fn new(recording: &Recording) -> Result<Layouts> {
        let mut linking = [Linking::Build; 2];
        for (side, linking) in linking.iter_mut().enumerate() {
            let words = adapters::split_variables(recording.command_of(side)).1;
            *linking = match adapters::find(&words).name {
                "go test -bench" => Linking::GoTest,
                name @ ("node" | "py-spy record") => {
                    return message(format!("--layouts needs a program that a linker makes; {name} runs none"));
                }
                _ if recording.build.is_empty() => {
                    return message(
                        "--layouts links the program anew for each pair of runs; set the command that links it with --build",
                    );
                }
                _ => Linking::Build,
            };
        }
        let build = &recording.build;
        let mut drivers = None;
        if linking.contains(&Linking::Build) && !build.contains(SEED_VARIABLE) {
            let is_go = has_word(build, "go");
            if is_go && build.contains("-ldflags") {
                return message(format!(
                    "--layouts sets -ldflags in GOFLAGS, and the build overrides it; add -randlayout=${SEED_VARIABLE} to \
                     the -ldflags of --build, in double quotes"
                ));
            }
            match find_lld() {
                Some(lld) => drivers = Some(create_drivers(&lld)?),
                None if is_go && !is_driver(build) => {}
                None if !cfg!(target_os = "linux") => {
                    return message(
                        "--layouts can order functions of Go on each system, and of other languages on Linux",
                    );
                }
                None => {
                    return message(
                        "--layouts needs the linker lld, which is not installed (apt install lld, or Rust)",
                    );
                }
            }
        }
        if std::env::var("GOFLAGS").is_ok_and(|flags| flags.contains("-ldflags")) {
            return message("--layouts sets -ldflags in GOFLAGS, which has one already; move it to the command");
        }
        Ok(Layouts { linking, drivers, linked: [None; 2], is_shared: false })
    }

    /// Refuses versions of Go without `-randlayout`. `version` is the output of `go version`.
    pub fn check_go(version: &str) -> Result<()> {
        let minor = version.split("go1.").nth(1).map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        match minor.flatten().and_then(|minor| minor.parse::<u64>().ok()) {
            Some(minor) if minor < MIN_GO => {
                message(format!("--layouts needs Go 1.{MIN_GO}; here is {}", version.trim()))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the build command links the side.
    pub fn is_built(&self, side: usize) -> bool {
        self.linking[side] == Linking::Build
    }

    /// Sets the seed of a side. Returns true if the side must be linked again.
    pub fn set(&mut self, side: usize, seed: u64) -> bool {
        if self.is_shared {
            self.linked[1 - side] = None;
        }
        self.linked[side].replace(seed) != Some(seed)
    }

    /// Returns the variables for the build of a side.
    pub fn variables(&self, side: usize) -> Vec<(String, String)> {
        let Some(seed) = self.linked[side] else { return Vec::new() };
        let mut variables = vec![(SEED_VARIABLE.to_owned(), seed.to_string())];
        let flags = std::env::var("GOFLAGS").unwrap_or_default();
        variables.push(("GOFLAGS".to_owned(), format!("{flags} -ldflags=-randlayout={seed}").trim().to_owned()));
        if let Some(drivers) = &self.drivers {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = [drivers.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
            if let Ok(joined) = std::env::join_paths(folders) {
                variables.push(("PATH".to_owned(), joined.to_string_lossy().into_owned()));
            }
        }
        variables
    }

    /// Returns the command of a side, with the option for the order of functions if the command links the program.
    pub fn command(&self, side: usize, command: &[String]) -> Vec<String> {
        match (self.linking[side], self.linked[side]) {
            (Linking::GoTest, Some(seed)) => go_test(command, seed),
            _ => command.to_vec(),
        }
    }

    /// Returns the path for the binary of `go test`. Each layout has its own, because profiles name it.
    pub fn binary(&self, side: usize, binary: &Path) -> PathBuf {
        match self.linked[side] {
            Some(seed) => binary.with_file_name(format!("bench-{seed}.bin")),
            None => binary.to_owned(),
        }
    }
}

/// Adds `-randlayout` to the linker options of `go test`.
fn go_test(command: &[String], seed: u64) -> Vec<String> {
    let layout = format!("-randlayout={seed}");
    let mut words = command.to_vec();
    let name = |word: &str| word.trim_start_matches('-').to_owned();
    let args = words.iter().position(|word| name(word) == "args").unwrap_or(words.len());
    match words[..args].iter().position(|word| name(word).split('=').next() == Some("ldflags")) {
        Some(i) if words[i].contains('=') => words[i] = format!("{} {layout}", words[i]),
        Some(i) if i + 1 < args => words[i + 1] = format!("{} {layout}", words[i + 1]),
        _ => words.insert(2.min(words.len()), format!("-ldflags={layout}")),
    }
    words
}

/// Returns the folder with `ld.lld`: below `PATH`, or in the Rust toolchain.
fn find_lld() -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(folder) = std::env::split_paths(&path).find(|folder| folder.join("ld.lld").is_file()) {
        return Some(folder);
    }
    let output = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let root = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned()).join("lib/rustlib");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).ok()?.flatten().map(|entry| entry.path().join("bin/gcc-ld")).collect();
    folders.sort();
    folders.into_iter().find(|folder| folder.join("ld.lld").is_file())
}

/// Creates the programs that add options to compiler drivers, in a new folder. Each calls the driver that is next in
/// `PATH`.
fn create_drivers(lld: &Path) -> Result<TempDir> {
    let wrong = |e: std::io::Error| Failure::Message(format!("can't create a folder for --layouts: {e}"));
    let folder = tempfile::Builder::new().prefix("pprofdiff-layouts-").tempdir().map_err(wrong)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let lld = lld.display().to_string();
    for driver in DRIVERS {
        let Some(real) = std::env::split_paths(&path).map(|dir| dir.join(driver)).find(|file| file.is_file()) else {
            continue;
        };
        let [real, lld] =
            [real.display().to_string(), format!("-B{lld}")].map(|text| shell_words::quote(&text).into_owned());
        // A driver that only compiles or reports must not get options of the linker.
        let text = format!(
            "#!/bin/sh\nlink=yes\nfor word do case $word in -c|-S|-E|-M|-MM|-fsyntax-only) link=;; \
             -v|--version|-dump*|-print*|--print*|-\\#\\#\\#) exec {real} \"$@\";; esac; done\n\
             [ $# -gt 0 ] || exec {real}\n[ -n \"$link\" ] || exec {real} \"$@\" -ffunction-sections\n\
             exec {real} \"$@\" -ffunction-sections -fuse-ld=lld {lld} \"-Wl,--shuffle-sections=.text*=${SEED_VARIABLE}\"\n"
        );
        let file = folder.path().join(driver);
        std::fs::write(&file, text).map_err(wrong)?;
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o700)).map_err(wrong)?;
    }
    Ok(folder)
}

/// The programs that a build made, in the folder of a side. They are set aside during the next build, because make and
/// cargo only link a program that is missing.
pub struct SetAside(Vec<(PathBuf, PathBuf)>);

impl SetAside {
    /// Sets aside the programs that the words of a command name in a folder, and their copies in `deps` of cargo.
    pub fn new(words: &[String], dir: &Path, root: &Path) -> Result<SetAside> {
        let mut aside = SetAside(Vec::new());
        for program in programs(words, dir, root) {
            let copies = program.parent().and_then(|parent| std::fs::read_dir(parent.join("deps")).ok());
            let copies = copies.into_iter().flatten().flatten().map(|entry| entry.path());
            for file in copies.filter(|copy| is_same_file(copy, &program)).chain([program.clone()]) {
                let mut name = file.clone().into_os_string();
                name.push(".pprofdiff-aside");
                std::fs::rename(&file, &name)?;
                aside.0.push((file, name.into()));
            }
        }
        Ok(aside)
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        for (file, aside) in self.0.drain(..).rev() {
            let _ = if file.exists() { std::fs::remove_file(aside) } else { std::fs::rename(aside, file) };
        }
    }
}

#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    id(a).is_some() && id(a) == id(b)
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

/// Returns the programs in a folder of sources that the words of a command name.
pub fn programs(words: &[String], dir: &Path, root: &Path) -> Vec<PathBuf> {
    let mut programs: Vec<PathBuf> = Vec::new();
    for word in words {
        let Ok(file) = std::fs::canonicalize(dir.join(word)) else { continue };
        if file.starts_with(root) && file.is_file() && !programs.contains(&file) && Binary::open(&file).is_ok() {
            programs.push(file);
        }
    }
    programs
}

/// The order of the functions of a program.
#[derive(PartialEq, Eq)]
pub struct FunctionOrder(Vec<Vec<u8>>);

impl FunctionOrder {
    /// Returns the order of a program's functions, or of its bytes if it is stripped.
    pub fn of(program: &Path) -> Result<FunctionOrder> {
        let memory = Memory::default();
        let wrong = |e: pprofdiff::Error| Failure::Message(pprofdiff_shell::error_line(&e));
        let binary = Binary::open(program).map_err(wrong)?;
        let code = binary.code(&[], &memory).map_err(wrong)?;
        let names: Vec<Vec<u8>> = code.functions().map(|f| code.origin(f).0.to_owned()).collect();
        Ok(FunctionOrder(if names.is_empty() { vec![std::fs::read(program)?] } else { names }))
    }
}

/// Refuses a build whose programs have the functions in the same order with two seeds.
pub fn check_order(side: usize, orders: &[Vec<FunctionOrder>; 2]) -> Result<()> {
    let name = SIDES[side];
    if orders.iter().any(Vec::is_empty) {
        return message(format!(
            "--layouts: no word of the {name} side's command is a program that --build makes in the checkout"
        ));
    }
    if orders[0] == orders[1] {
        return message(format!(
            "--layouts: the build of the {name} side ignores the order of functions, so all layouts would be equal; let \
             the build call cc or gcc by name, or give ${SEED_VARIABLE} to the linker: -randlayout of Go, or \
             --shuffle-sections=.text*= of lld"
        ));
    }
    Ok(())
}

/// The effect of the layout on the cost of both sides, from the totals of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayoutEffect {
    layouts: usize,
    /// The number of layouts with a slower new side.
    slower: usize,
    /// The smallest and the largest difference of a pair, as a part.
    range: (f64, f64),
    /// The standard deviation of the logarithm of a side's cost between layouts, without noise; `None` if noise explains
    /// the differences.
    deviations: [Option<f64>; 2],
    /// The standard deviation of the logarithm of cost between runs of one program.
    noise: f64,
}

impl LayoutEffect {
    /// Separates the effect of layout from noise. Returns `None` for fewer layouts than a decision needs.
    ///
    /// The cost of a side varies between pairs by layout, noise and drift, such as a slow minute. Drift moves both sides
    /// of a pair, so it is their covariance, because the layouts of both sides are independent.
    pub fn of(runs: &[RecordedRun]) -> Option<LayoutEffect> {
        let total =
            |pair: u64, side: &str| runs.iter().find(|run| run.pair == pair && run.side == side).map(|run| run.total);
        let mut numbers: Vec<u64> = runs.iter().filter(|run| run.layout.is_some()).map(|run| run.pair).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let pairs = numbers.iter().filter_map(|&pair| Some([total(pair, SIDES[0])?.ln(), total(pair, SIDES[1])?.ln()]));
        let pairs: Vec<[f64; 2]> = pairs.filter(|pair| pair.iter().all(|log| log.is_finite())).collect();
        let repeated =
            runs.iter().filter_map(|run| Some((run.repeated? / run.total).ln())).filter(|log| log.is_finite());
        let repeated: Vec<f64> = repeated.collect();
        if pairs.len() < MIN_LAYOUTS || repeated.is_empty() {
            return None;
        }
        // Both runs vary, so their difference has twice the variance.
        let noise = repeated.iter().map(|log| log * log).sum::<f64>() / (2 * repeated.len()) as f64;
        let count = pairs.len() as f64;
        let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / count;
        let means = [mean(0), mean(1)];
        let covariance = |a: usize, b: usize| {
            pairs.iter().map(|pair| (pair[a] - means[a]) * (pair[b] - means[b])).sum::<f64>() / (count - 1.0)
        };
        let drift = covariance(0, 1).max(0.0);
        let deviation = |side: usize| {
            let variance = covariance(side, side) - drift;
            (variance > MIN_RATIO * noise).then(|| (variance - noise).sqrt())
        };
        let differences: Vec<f64> = pairs.iter().map(|[base, new]| new - base).collect();
        Some(LayoutEffect {
            layouts: pairs.len(),
            slower: differences.iter().filter(|&&difference| difference > 0.0).count(),
            range: differences
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), d| (low.min(*d), high.max(*d))),
            deviations: [deviation(0), deviation(1)],
            noise: noise.sqrt(),
        })
    }

    /// Returns the lines of the verdict.
    pub fn lines(&self) -> Vec<String> {
        let percent = |log: f64| format!("{:+.1} %", 100.0 * log.exp_m1());
        let size = |deviation: f64| format!("±{:.1} %", 100.0 * deviation);
        let noise = size(self.noise);
        let layouts = self.layouts;
        let moved = match self.deviations {
            [None, None] => {
                format!("layout alone moves neither side by more than runs of one program differ ({noise})")
            }
            [base, new] => {
                let side =
                    |deviation: Option<f64>| deviation.map_or_else(|| format!("less than noise ({noise})"), size);
                format!(
                    "layout alone moves the base by {} and the new side by {} (standard deviation over {layouts} layouts; \
                     runs of one program differ by {noise})",
                    side(base),
                    side(new)
                )
            }
        };
        let (low, high) = self.range;
        let each = format!(
            "the new side is slower in {} of {layouts} layouts; a single one would say {} to {}",
            self.slower,
            percent(low),
            percent(high)
        );
        vec![moved, each]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn words(text: &str) -> Vec<String> {
        adapters::split_words(text).ok().unwrap()
    }

    #[test]
    fn the_linker_options_of_go_test_are_kept() {
        let linked = |text: &str| go_test(&words(text), 7).join("|");
        assert_eq!(linked("go test -bench A ./x"), "go|test|-ldflags=-randlayout=7|-bench|A|./x");
        assert_eq!(linked("go test -ldflags=-s -bench A"), "go|test|-ldflags=-s -randlayout=7|-bench|A");
        assert_eq!(linked("go test --ldflags '-s -w' -bench A"), "go|test|--ldflags|-s -w -randlayout=7|-bench|A");
        // The last argument belongs to the benchmark.
        assert_eq!(
            linked("go test -bench A -args -ldflags=x"),
            "go|test|-ldflags=-randlayout=7|-bench|A|-args|-ldflags=x"
        );
    }

    #[test]
    fn commands_without_a_linker_are_refused_with_the_reason() {
        let refused = |command: &str, build: &str| {
            let mut recording = Recording::new(&words(command));
            recording.build = build.to_owned();
            match Layouts::new(&recording) {
                Err(Failure::Message(text)) => text,
                _ => panic!("{command} is accepted"),
            }
        };
        assert!(refused("node a.js", "npm ci").contains("node runs none"));
        assert!(refused("./app", "").contains("with --build"));
        assert!(refused("./app", "go build -ldflags=-s .").contains("-randlayout=$PPROFDIFF_LAYOUT"));
        assert!(Layouts::check_go("go version go1.21.3 linux/amd64").is_err());
        assert!(Layouts::check_go("go version go1.26.8 linux/amd64").is_ok());
    }

    /// Returns the runs of `count` pairs. `layout` and `noise` are standard deviations, and drift moves both sides.
    fn runs(count: u64, layout: [f64; 2], noise: f64, drift: f64) -> Vec<RecordedRun> {
        let mut state = 9u64;
        let mut normal = || {
            let mut dice = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| dice()).sum::<f64>() - 6.0
        };
        let mut runs = Vec::new();
        for pair in 1..=count {
            let slow = drift * normal();
            for side in 0..2 {
                let linked = layout[side] * normal() + slow;
                let mut run = RecordedRun::default();
                (run.side, run.pair, run.layout) = (SIDES[side].to_owned(), pair, Some(pair));
                run.total = (linked + noise * normal()).exp();
                run.repeated = is_repeated(pair).then(|| (linked + noise * normal()).exp());
                runs.push(run);
            }
        }
        runs
    }

    #[test]
    fn the_effect_of_layout_is_separated_from_noise_and_drift() {
        let effect = LayoutEffect::of(&runs(200, [0.03, 0.0], 0.003, 0.05)).unwrap();
        let [base, new] = effect.deviations;
        assert!((base.unwrap() - 0.03).abs() < 0.006, "{effect:?}");
        // Drift is much larger than noise, so a rest of it may remain.
        assert!(new.is_none_or(|new| new < 0.01), "{effect:?}");
        assert!((effect.noise - 0.003).abs() < 0.0015, "{effect:?}");
        let none = LayoutEffect::of(&runs(20, [0.0, 0.0], 0.01, 0.0)).unwrap();
        assert_eq!(none.deviations, [None, None]);
        assert!(none.lines()[0].starts_with("layout alone moves neither side"), "{:?}", none.lines());
        assert!(LayoutEffect::of(&runs(4, [0.0, 0.0], 0.01, 0.0)).is_none());
    }

    #[test]
    fn each_side_of_each_pair_has_another_seed() {
        let recording = Recording::new(&[]);
        let seeds: std::collections::BTreeSet<u64> =
            (1..50).flat_map(|pair| [0, 1].map(|side| seed(&recording, pair, side))).collect();
        assert!(seeds.len() == 98 && !seeds.contains(&0));
    }
}
