//! Resolves the profiles that the arguments name: standard input, a URL, a file, a pattern, or recorded runs (a folder
//! of `bench`, one side of it, or a selection of a store). The size limit comes from the arguments or the environment.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::input::{Finder, file_builds};
use pprofdiff::list::SourceDirs;
use pprofdiff::recording::{RecordedSide, Recording};
use pprofdiff::text::redacted;
use pprofdiff::{Diff, Error, LoadOptions, Profile, Source};
use pprofdiff_shell::{Failure, Outputs, Result, is_stdin};

use crate::args::{LoadArgs, SideArgs};
use crate::fetch::{self, Fetcher, url};
use crate::{advise, bucket, sides};

/// Turns names from the user into sources.
pub struct Inputs {
    pub options: LoadOptions,
    pub fetcher: Arc<Fetcher>,
    /// Output files, which must not be read as inputs.
    pub outputs: Arc<Outputs>,
}

impl Inputs {
    /// Creates the inputs of a command that writes `outputs`.
    pub fn new(args: &LoadArgs, outputs: Outputs) -> Result<Inputs> {
        Inputs::with_options(args, args.profiles.0.to_options()?, outputs)
    }

    /// Like [`Inputs::new`], for commands without a base side.
    pub fn without_base(args: &LoadArgs, outputs: Outputs) -> Result<Inputs> {
        Inputs::with_options(args, args.profiles.0.to_options_without_base()?, outputs)
    }

    fn with_options(args: &LoadArgs, options: LoadOptions, outputs: Outputs) -> Result<Inputs> {
        outputs.check_folders()?;
        let loading = &args.profiles.0;
        let mut binaries = [&loading.binary, &loading.base_binary, &loading.new_binary].into_iter().flatten();
        binaries.try_for_each(|binary| outputs.check_input(binary))?;
        // The limit for inflated content also limits the answer of a server. An uncompressed profile is as large as its
        // content, and a compressed file above this limit would inflate to even more.
        let fetcher = Arc::new(Fetcher::new(args.timeout, options.inflated_limit));
        Ok(Inputs { options, fetcher, outputs: Arc::new(outputs) })
    }

    /// Resolves a name that the user typed. Standard input is read at once. A URL is fetched when its profile is
    /// loaded, so memory holds only the answers of profiles that are being processed.
    pub fn source(&self, path: &Path) -> Result<Source> {
        if let Some(url) = url(path) {
            return Ok(fetch::source(&self.fetcher, url, true)?);
        }
        self.outputs.check_input(path)?;
        if !is_stdin(path) {
            return Ok(sides::source_of(path)?);
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(Source::Bytes("-".to_owned(), bytes))
    }

    /// Resolves the names that the user typed for one side of a diff.
    pub fn sources<'p>(&self, side: impl IntoIterator<Item = &'p PathBuf>) -> Result<Vec<Source>> {
        let mut all = Vec::new();
        for path in side {
            match sides::named(path)? {
                Some(side) => all.extend(side.to_sources()),
                None if is_folder(path) => all.extend(self.files_of(path)?),
                None if has_wildcards(path) => {
                    all.extend(self.builds(path, true)?.into_iter().map(|(_, source)| source));
                }
                None => all.push(self.source(path)?),
            }
        }
        Ok(all)
    }

    /// Returns the files of a folder in the order of their names, as the runs of a side. Ignores hidden files and
    /// subfolders.
    fn files_of(&self, folder: &Path) -> Result<Vec<Source>> {
        let name = folder.display().to_string();
        let entries = std::fs::read_dir(folder).map_err(|e| Failure::Message(format!("{name}: {e}")))?;
        let is_hidden = |file: &Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = paths.filter(|file| file.is_file() && !is_hidden(file)).collect();
        files.sort();
        if files.is_empty() {
            let advice = "name the profiles, or write a quoted pattern such as 'base/*/cpu.pb.gz'";
            return Err(Failure::Message(format!("{name}: this directory has no files; {advice}")));
        }
        files.iter().map(|file| self.source(file)).collect()
    }

    /// Finds builds and their keys. `files` are files and URLs, one pattern, one side's runs, or one selection of a
    /// store.
    pub fn named(&self, files: &[PathBuf]) -> Result<Vec<(String, Source)>> {
        self.named_by(files, true, |file| self.source(file))
    }

    /// Finds builds like [`Inputs::named`], but for an agent: URLs need `allow_urls`.
    #[cfg(feature = "mcp")]
    pub fn named_by_agent(&self, files: &[PathBuf], allow_urls: bool) -> Result<Vec<(String, Source)>> {
        self.named_by(files, allow_urls, |file| Ok(self.resolve(sides::source_of(file)?, allow_urls)?))
    }

    fn named_by(
        &self,
        files: &[PathBuf],
        allow_urls: bool,
        source: impl Fn(&Path) -> Result<Source>,
    ) -> Result<Vec<(String, Source)>> {
        if let [one] = files
            && let Some(builds) = sides::builds(one)?
        {
            return Ok(builds);
        }
        match files {
            [one] if is_pattern(one) => self.builds(one, allow_urls),
            files => {
                let keys = file_builds(files).into_iter().map(|(key, _)| key);
                keys.zip(files).map(|(key, file)| Ok((key, source(file)?))).collect()
            }
        }
    }

    /// Finds the files or objects that match a pattern, with their keys. A pattern of URLs needs `allow_urls`.
    pub fn builds(&self, pattern: &Path, allow_urls: bool) -> Result<Vec<(String, Source)>> {
        if !allow_urls && let Some(url) = url(pattern) {
            return Err(not_allowed(url).into());
        }
        let builds = self.finder().builds(&pattern.to_string_lossy())?.into_iter();
        builds.map(|(key, source)| Ok((key, self.resolve(source, true)?))).collect()
    }

    /// Returns a finder for files and for objects in buckets.
    pub fn finder(&self) -> Finder<'_> {
        Finder::with_objects(self)
    }

    /// Resolves a name that comes from a manifest, an agent or the matches of a pattern. The user did not type such a
    /// URL, so it needs `allow_urls`. Callers set `allow_urls` if the user typed the pattern.
    ///
    /// # Errors
    /// Fails for a URL without `allow_urls`, and for a file that the command will write.
    pub fn resolve(&self, source: Source, allow_urls: bool) -> pprofdiff::Result<Source> {
        match source.path().and_then(url) {
            None => {
                source.path().map_or(Ok(()), |path| self.outputs.check_input(path))?;
                Ok(source)
            }
            Some(url) if allow_urls => fetch::source(&self.fetcher, url, false),
            Some(url) => Err(not_allowed(url)),
        }
    }

    pub fn load(&self, path: &Path) -> Result<Arc<Profile>> {
        Ok(self.source(path)?.load(&self.options)?)
    }
}

fn not_allowed(url: &str) -> Error {
    let detail = "URLs in a manifest, or from an agent, are fetched only with --allow-urls";
    Error::query(detail).in_input(&redacted(url))
}

/// Loads the profiles in the arguments: two sides, or one profile, which may be a written diff.
pub fn open(args: &SideArgs, load: &LoadArgs, outputs: Outputs, sample_type: Option<&str>) -> Result<Diff> {
    open_with(args, load, outputs, sample_type, |_| Ok(Vec::new()))
}

/// Like [`open`], with the addresses of instructions if a folder of runs has them beside its profiles.
pub fn open_with_addresses(
    args: &SideArgs,
    load: &LoadArgs,
    outputs: Outputs,
    sample_type: Option<&str>,
) -> Result<Diff> {
    open_sides(args, load, outputs, Profiles { sample_type, has_addresses: true }, |_| Ok(Vec::new()))
}

/// The profiles to choose in a folder of runs.
struct Profiles<'a> {
    sample_type: Option<&'a str>,
    has_addresses: bool,
}

/// Like [`open`], with the profiles of `further` after the profiles of the base. `further` is not called for a single
/// profile.
pub fn open_with(
    args: &SideArgs,
    load: &LoadArgs,
    outputs: Outputs,
    sample_type: Option<&str>,
    further: impl FnOnce(&Inputs) -> Result<Vec<Source>>,
) -> Result<Diff> {
    open_sides(args, load, outputs, Profiles { sample_type, has_addresses: false }, further)
}

fn open_sides(
    args: &SideArgs,
    load: &LoadArgs,
    outputs: Outputs,
    profiles: Profiles<'_>,
    further: impl FnOnce(&Inputs) -> Result<Vec<Source>>,
) -> Result<Diff> {
    if let [dir] = args.files.as_slice()
        && Recording::is_in(dir)
    {
        let mut load = load.clone();
        Recording::add_binaries(dir, &mut load.profiles.0);
        let inputs = Inputs::new(&load, outputs)?;
        let with_addresses = match profiles.has_addresses {
            true => Recording::read_sides_with_addresses(dir, &inputs.options)?,
            false => None,
        };
        let sides = with_addresses
            .map_or_else(|| Recording::read_sides_with(dir, profiles.sample_type, &inputs.options), Ok)?;
        let [mut base, new] = sides.map(|side| side.into_iter().map(Source::Path).collect::<Vec<_>>());
        base.extend(further(&inputs)?);
        let diff = Diff::load(&base, &new, &inputs.options)?.with_folder(dir);
        advise(&diff);
        return Ok(diff);
    }
    let is_two_parts = load.profiles.0.has_both_times();
    if let ([one], false) = (args.files.as_slice(), is_two_parts) {
        let mut load = load.clone();
        if let Some(side) = RecordedSide::named(one)? {
            load.profiles.0.binary.extend(Some(side.binaries).filter(|kept| kept.is_dir()));
        }
        let diff = Diff::of_profile(&Inputs::without_base(&load, outputs)?.load(one)?)?;
        advise(&diff);
        return Ok(diff);
    }
    let mut load = load.clone();
    if let [base, new] = args.files.as_slice() {
        let loading = &mut load.profiles.0;
        for (binaries, named) in [(&mut loading.base_binary, base), (&mut loading.new_binary, new)] {
            binaries.extend(RecordedSide::named(named)?.map(|side| side.binaries).filter(|kept| kept.is_dir()));
        }
    }
    let inputs = Inputs::new(&load, outputs)?;
    let (base, new): (&[PathBuf], &[PathBuf]) = match args.files.as_slice() {
        [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
        [one] => (std::slice::from_ref(one), std::slice::from_ref(one)),
        _ => (&args.base, &args.new),
    };
    if base.is_empty() || new.is_empty() {
        let message = if args.files.len() > 2 {
            "a comparison takes two profiles, BASE and NEW; for several runs per side use --base and --new"
        } else if base.is_empty() && new.is_empty() {
            "no profile is given; see pprofdiff --help"
        } else {
            "the other side is missing; a diff needs --base and --new"
        };
        return Err(Failure::Message(message.to_owned()));
    }
    let (mut base, new) = if let [_] = args.files.as_slice() {
        // Both sides are parts of one recording, which may be standard input.
        let sources = inputs.sources(base)?;
        (sources.clone(), sources)
    } else {
        one_stdin(base.iter().chain(new))?;
        (inputs.sources(base)?, inputs.sources(new)?)
    };
    base.extend(further(&inputs)?);
    let diff = Diff::load(&base, &new, &inputs.options)?;
    advise(&diff);
    Ok(diff)
}

/// Returns the source folders of recorded runs, if the arguments name a folder of runs or its sides, and the folders
/// exist.
pub fn recorded_sources(files: &[PathBuf]) -> Option<SourceDirs> {
    let side = |path: &PathBuf| RecordedSide::named(path).ok().flatten().map(|side| side.sources);
    let [base, new] = match files {
        [dir] if Recording::is_in(dir) => Recording::sources(dir).map(Some),
        [one] => [None, side(one)],
        [base, new] => [side(base), side(new)],
        _ => return None,
    };
    let [base, new] = [base, new].map(|dir| dir.filter(|dir| dir.is_dir()).into_iter().collect::<Vec<_>>());
    (!base.is_empty() || !new.is_empty()).then(|| SourceDirs::new(base, new))
}

/// Returns true for a folder of profiles of one side. Returns false for a folder of recorded runs, which has both sides.
fn is_folder(path: &Path) -> bool {
    path.is_dir() && !Recording::is_in(path)
}

/// Returns true for a pattern of local files (a path with a wildcard that names no file) or of objects in a bucket.
fn has_wildcards(path: &Path) -> bool {
    match url(path) {
        Some(url) => bucket::is_pattern(url),
        None => !path.exists() && path.as_os_str().as_encoded_bytes().iter().any(|b| b"*?[".contains(b)),
    }
}

/// Returns true if the path can only be a pattern: an `s3://` address with wildcards or a slash at its end, or a text
/// that is neither a URL nor standard input, and names no file and no recorded runs.
pub fn is_pattern(path: &Path) -> bool {
    let is_other = || path.exists() || is_stdin(path) || sides::is_side(path);
    match url(path) {
        Some(url) => bucket::is_pattern(url),
        None => !is_other(),
    }
}

pub fn one_stdin<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    if files.filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::Message("standard input can be read only once, so only one file can be -".to_owned()));
    }
    Ok(())
}
