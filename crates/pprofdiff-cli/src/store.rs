//! `pprofdiff store`: profiles by keys, in files that data engines read. What fails is said and stops nothing.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pprofdiff::input::ListedFile;
use pprofdiff::store::{self, Selection, Store};
use pprofdiff::text::sanitize;
use pprofdiff::{Error, Source, units};

use crate::args::{StoreAddArgs, StoreArgs, StoreVerb};
use crate::outputs::Outputs;
use crate::terminal::Progress;
use crate::{Failure, Inputs, Result, error_line, is_pattern, one_stdin, say};

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
                "{} files of {} are now {} of {}; {} left over are removed\n",
                done.files_before,
                size(done.bytes_before),
                done.files_after,
                size(done.bytes_after),
                done.left_over
            ))
        }
    }
}

type Keys = Vec<(String, String)>;

/// The profiles that the arguments name, with their keys.
fn profiles(args: &StoreAddArgs, inputs: &Inputs) -> Result<Vec<(Keys, Source)>> {
    let of_file = |file: ListedFile| -> Result<(Keys, Source)> {
        Ok((file.keys.into_iter().collect(), inputs.found(Source::Path(file.profile), true)?))
    };
    let is_asked_of_files = args.key.iter().any(|(_, value)| value.contains(['{', '}']));
    match args.profiles.as_slice() {
        patterns if is_asked_of_files || matches!(patterns, [pattern] if is_pattern(pattern)) => {
            let mut found = Vec::new();
            for pattern in patterns {
                let files = inputs.finder().keyed_files(&pattern.to_string_lossy(), &args.key, &inputs.options)?;
                found.extend(files.into_iter().map(of_file).collect::<Result<Vec<_>>>()?);
            }
            Ok(found)
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
    let (mut added, mut known, mut failed, mut bytes) = (0, 0, 0, 0);
    for (keys, source) in &profiles {
        let done = source
            .load(&inputs.options)
            .and_then(|profile| store::add(&into, &profile, keys).map_err(|e| e.in_input(&source.name())));
        match done {
            Ok(done) if done.is_new => (added, bytes) = (added + 1, bytes + done.bytes),
            Ok(_) => known += 1,
            // The next profile would have no room either.
            Err(e) if e.kind() == pprofdiff::ErrorKind::Io && is_of_store(&e, &args.store) => return Err(e.into()),
            Err(e) => {
                failed += 1;
                progress.suspend(|| say(&error_line(&e)));
            }
        }
        progress.advance();
    }
    progress.finish();
    let were_there = if known > 0 { format!("; {known} were there already") } else { String::new() };
    let what = if added == 1 { "profile" } else { "profiles" };
    print(&format!("{added} {what} added, {}{were_there}\n", size(bytes)))?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Message(format!("{failed} of {} profiles failed", profiles.len()))),
    }
}

/// True of an error of the store's own files.
fn is_of_store(e: &Error, store: &Path) -> bool {
    e.input().is_some_and(|name| Path::new(name).starts_with(store))
}

fn list(path: &Path) -> Result<()> {
    let Some(selection) = Selection::named(path)? else {
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
