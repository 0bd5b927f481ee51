//! `pprofdiff store`: stores profiles by key, in files that data engines can read. A failed profile is reported and
//! does not stop the others.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pprofdiff::input::ListedFile;
use pprofdiff::text::sanitize;
use pprofdiff::{Error, Source, units};
use pprofdiff_shell::terminal::Progress;
use pprofdiff_shell::{Failure, Outputs, Result, error_line, say};
use pprofdiff_store::{self as store, Store, StoreSelection};

use crate::args::{StoreAddArgs, StoreArgs, StoreVerb};
use crate::{Inputs, is_pattern, one_stdin};

pub fn run(args: &StoreArgs) -> Result<()> {
    match &args.verb {
        StoreVerb::Add(args) => add(args),
        StoreVerb::List { store } => list(store),
        StoreVerb::Compact { store } => {
            let done = Store::open(store)?.compact()?;
            for link in &done.links {
                let link = link.display();
                say(&format!("warning: {link} is a link; its target was neither compacted nor removed"));
            }
            print(&format!(
                "{} files of {} are now {} of {}; {} leftovers were removed\n",
                done.files_before,
                size(done.bytes_before),
                done.files_after,
                size(done.bytes_after),
                done.left_over
            ))
        }
    }
}

type StoreKeys = Vec<(String, String)>;

/// Returns the profiles in the arguments, with their keys.
fn profiles(args: &StoreAddArgs, inputs: &Inputs) -> Result<Vec<(StoreKeys, Source)>> {
    let with_keys = |file: ListedFile| -> Result<(StoreKeys, Source)> {
        Ok((file.keys.into_iter().collect(), inputs.resolve(Source::Path(file.profile), true)?))
    };
    let has_placeholders = args.key.iter().any(|(_, value)| value.contains(['{', '}']));
    match args.profiles.as_slice() {
        patterns if has_placeholders || matches!(patterns, [pattern] if is_pattern(pattern)) => {
            let mut keyed_profiles = Vec::new();
            for pattern in patterns {
                let files = inputs.finder().keyed_files(&pattern.to_string_lossy(), &args.key, &inputs.options)?;
                keyed_profiles.extend(files.into_iter().map(with_keys).collect::<Result<Vec<_>>>()?);
            }
            Ok(keyed_profiles)
        }
        files => {
            one_stdin(files.iter())?;
            files.iter().map(|file: &PathBuf| Ok((args.key.clone(), inputs.source(file)?))).collect()
        }
    }
}

fn add(args: &StoreAddArgs) -> Result<()> {
    let inputs = Inputs::without_base(&args.load, Outputs::default())?;
    let profiles = profiles(args, &inputs)?;
    let names: Vec<String> = args.key.iter().map(|(name, _)| name.clone()).collect();
    let into = Store::open_or_create(&args.store, &names)?;
    let progress = Progress::new(Some(profiles.len() as u64), "profiles");
    let (mut added, mut duplicates, mut failed, mut bytes) = (0, 0, 0, 0);
    for (keys, source) in &profiles {
        let done = source
            .load(&inputs.options)
            .and_then(|profile| store::add(&into, &profile, keys).map_err(|e| e.in_input(&source.name())));
        match done {
            Ok(done) if done.is_new => (added, bytes) = (added + 1, bytes + done.bytes),
            Ok(_) => duplicates += 1,
            // An I/O error of the store would also affect the next profile, so it ends the command.
            Err(e) if e.kind() == pprofdiff::ErrorKind::Io && is_store_error(&e, &args.store) => return Err(e.into()),
            Err(e) => {
                failed += 1;
                progress.suspend(|| say(&error_line(&e)));
            }
        }
        progress.advance();
    }
    progress.finish();
    let duplicate_note = if duplicates > 0 { format!("; {duplicates} already stored") } else { String::new() };
    let noun = if added == 1 { "profile" } else { "profiles" };
    print(&format!("{added} {noun} added, {}{duplicate_note}\n", size(bytes)))?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Message(format!("{failed} of {} profiles failed", profiles.len()))),
    }
}

/// Returns true if the error is about the store's own files.
fn is_store_error(e: &Error, store: &Path) -> bool {
    e.input().is_some_and(|name| Path::new(name).starts_with(store))
}

fn list(path: &Path) -> Result<()> {
    let Some(selection) = StoreSelection::named(path)? else {
        Store::open(path)?;
        return Ok(());
    };
    let mut text = String::new();
    let (mut profiles, mut bytes) = (0, 0);
    for partition in selection.partitions()? {
        let (n, (_, size_of)) = (partition.profiles()?.len(), partition.size()?);
        (profiles, bytes) = (profiles + n, bytes + size_of);
        text.push_str(&format!("{}  {n}  {}\n", sanitize(&partition.name()), size(size_of)));
    }
    text.push_str(&format!("profiles: {profiles}, {}\n", size(bytes)));
    print(&text)
}

fn size(bytes: u64) -> String {
    units::show(i64::try_from(bytes).unwrap_or(i64::MAX), "bytes")
}

fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
