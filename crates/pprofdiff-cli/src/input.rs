//! What the arguments name as profiles: standard input, a URL or a file, read within the limits of the arguments and of
//! the environment. The one place in the command that decides which of them a text means.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::binary::Binaries;
use pprofdiff::input::{Fetch, file_builds, pattern_builds};
use pprofdiff::text::redacted;
use pprofdiff::{Diff, Error, LoadOptions, Profile, Source};

use crate::args::{InputArgs, LoadArgs};
use crate::fetch::{Fetcher, url};
use crate::outputs::Outputs;
use crate::{Failure, Result, advise};

/// The variable of the environment that says the most bytes that a profile may inflate to.
const LIMIT_VARIABLE: &str = "PPROFDIFF_MAX_INFLATED";

/// The variable that says in which folders binaries are searched; pprof's.
const BINARY_VARIABLE: &str = "PPROF_BINARY_PATH";

/// How to load profiles: with the given limit in bytes; if there is none, with that of the environment's
/// `PPROFDIFF_MAX_INFLATED`; and without either, with the default. The engine itself asks no environment. Format and
/// type are those of [`LoadOptions::with_input_format`] and [`LoadOptions::with_input_type`]; the folders of
/// `PPROF_BINARY_PATH` are searched after the binaries that are given.
///
/// # Errors
/// A variable that is no number; more than 4 GiB minus one; an unknown format, or a type without a unit.
pub fn load_options(
    inflated_limit: Option<u64>,
    input_format: Option<&str>,
    input_type: Option<&str>,
    binaries: Binaries,
) -> pprofdiff::Result<LoadOptions> {
    let of_variable = |text: OsString| {
        let number = text.to_str().and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| {
            Error::query(format!("{LIMIT_VARIABLE} is the most bytes that a profile may inflate to, not {text:?}"))
        })
    };
    let variable = || std::env::var_os(LIMIT_VARIABLE).filter(|text| !text.is_empty()).map(of_variable).transpose();
    let folders = std::env::var_os(BINARY_VARIABLE).unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()).collect();
    let mut options = LoadOptions::default().with_binaries(binaries.with_folders(folders));
    if let Some(limit) = inflated_limit.map_or_else(variable, |limit| Ok(Some(limit)))? {
        options = options.with_inflated_limit(limit)?;
    }
    if let Some(format) = input_format {
        options = options.with_input_format(format)?;
    }
    match input_type {
        Some(text) => options.with_input_type(text),
        None => Ok(options),
    }
}

/// Makes sources of what a user names.
pub struct Inputs {
    pub options: LoadOptions,
    pub fetcher: Arc<Fetcher>,
    /// What must not be read.
    pub outputs: Arc<Outputs>,
}

impl Inputs {
    /// Inputs of a command that writes these outputs.
    pub fn new(args: &LoadArgs, outputs: Outputs) -> Result<Inputs> {
        for binary in [&args.binary, &args.base_binary, &args.new_binary].into_iter().flatten() {
            outputs.check_input(binary)?;
        }
        let binaries = |of_side: &[PathBuf]| [of_side, &args.binary].concat();
        let binaries = Binaries::new(binaries(&args.base_binary), binaries(&args.new_binary));
        let options = load_options(
            args.inflated_limit,
            args.input_format.as_deref(),
            args.input_type.as_deref(),
            binaries.with_any_build(args.any_build),
        )?;
        // A profile that is not packed is as long as what it holds; one that is longer packed than it may be inflated
        // is not worth its memory.
        let fetcher = Arc::new(Fetcher::new(args.timeout, options.inflated_limit));
        Ok(Inputs { options, fetcher, outputs: Arc::new(outputs) })
    }

    /// As [`Inputs::new`], where no profile is loaded as a base: its binaries would be ignored.
    pub fn without_base(args: &LoadArgs, outputs: Outputs) -> Result<Inputs> {
        if !args.base_binary.is_empty() {
            let message = "--base-binary is for a comparison of two sides; here name the binary with --binary";
            return Err(Failure::Message(message.to_owned()));
        }
        Inputs::new(args, outputs)
    }

    /// What a typed name stands for. Standard input is read at once; a URL is fetched when its profile is loaded, so
    /// that no more answers are in memory than profiles that are being worked on.
    pub fn source(&self, path: &Path) -> Result<Source> {
        if let Some(url) = url(path) {
            return Ok(self.of_url(url));
        }
        self.outputs.check_input(path)?;
        if !is_stdin(path) {
            return Ok(Source::Path(path.to_owned()));
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(Source::Bytes("-".to_owned(), bytes))
    }

    /// Builds by their keys: those of files that are named, or of the files of a pattern.
    pub fn named(&self, files: &[PathBuf]) -> Result<Vec<(String, Source)>> {
        match files {
            [one] if is_pattern(one) => {
                let builds = pattern_builds(&one.to_string_lossy())?;
                builds.iter().try_for_each(|(_, source)| self.check_found(source))?;
                Ok(builds)
            }
            files => {
                let keys = file_builds(files).into_iter().map(|(key, _)| key);
                keys.zip(files).map(|(key, file)| Ok((key, self.source(file)?))).collect()
            }
        }
    }

    /// Checks a file that a directory or a pattern has.
    ///
    /// # Errors
    /// It will be written.
    pub fn check_found(&self, source: &Source) -> pprofdiff::Result<()> {
        source.path().map_or(Ok(()), |path| self.outputs.check_input(path))
    }

    /// What a manifest or an agent names: URLs of which nobody typed a letter are fetched only if that is allowed.
    pub fn found(&self, source: Source, allow_urls: bool) -> pprofdiff::Result<Source> {
        match source.path().and_then(url) {
            None => self.check_found(&source).map(|()| source),
            Some(url) if allow_urls => Ok(self.of_url(url)),
            Some(_) => {
                let detail = "URLs in a manifest, or from an agent, are fetched only with --allow-urls";
                Err(Error::query(detail).in_input(&source.name()))
            }
        }
    }

    pub fn load(&self, path: &Path) -> Result<Arc<Profile>> {
        Ok(self.source(path)?.load(&self.options)?)
    }

    fn of_url(&self, url: &str) -> Source {
        let (fetcher, address) = (self.fetcher.clone(), url.to_owned());
        Source::Fetch(redacted(url).into_owned(), Fetch::new(move || fetcher.get(&address)))
    }
}

/// Loads what the arguments name: two sides, or one profile (which may be a written diff).
pub fn open(args: &InputArgs, outputs: Outputs) -> Result<Diff> {
    open_with(args, outputs, |_| Ok(Vec::new()))
}

/// As [`open`], with further profiles behind those of the base.
pub fn open_with(
    args: &InputArgs,
    outputs: Outputs,
    further: impl FnOnce(&Inputs) -> Result<Vec<Source>>,
) -> Result<Diff> {
    if let [one] = args.files.as_slice() {
        let diff = Diff::of_profile(&Inputs::without_base(&args.load, outputs)?.load(one)?)?;
        advise(&diff);
        return Ok(diff);
    }
    let inputs = Inputs::new(&args.load, outputs)?;
    let (base, new): (&[PathBuf], &[PathBuf]) = match args.files.as_slice() {
        [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
        _ => (&args.base, &args.new),
    };
    if base.is_empty() || new.is_empty() {
        let message = if base.is_empty() && new.is_empty() {
            "no profile is given; see pprofdiff --help"
        } else {
            "the other side is missing; a diff needs --base and --new"
        };
        return Err(Failure::Message(message.to_owned()));
    }
    one_stdin(base.iter().chain(new))?;
    let sources = |side: &[PathBuf]| side.iter().map(|path| inputs.source(path)).collect::<Result<Vec<_>>>();
    let (mut base, new) = (sources(base)?, sources(new)?);
    base.extend(further(&inputs)?);
    let diff = Diff::load(&base, &new, &inputs.options)?;
    advise(&diff);
    Ok(diff)
}

/// True of what names no file, so that it can only be a pattern.
pub fn is_pattern(path: &Path) -> bool {
    !path.exists() && !is_stdin(path) && url(path).is_none()
}

pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

pub fn one_stdin<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    if files.filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::Message("standard input can be read only once, so only one file can be -".to_owned()));
    }
    Ok(())
}
