//! The diffs that stay in memory, under the short names by which calls refer to them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pprofdiff::Diff;
use pprofdiff_shell::{Failure, Result};
use serde_json::Value;

/// The maximum number of loaded diffs. A profile takes about its inflated size in memory.
pub const MAX_LOADED: usize = 8;

/// A loaded diff with its name.
pub struct LoadedDiff {
    /// The name, such as `d1`.
    pub name: String,
    /// The diff.
    pub diff: Diff,
    /// The inputs with their loading options, quoted for a shell.
    pub inputs: String,
    /// The paths of the inputs, if they include recorded runs.
    pub runs: Vec<PathBuf>,
}

/// The loaded diffs, with the most recently used last, and the number of diffs loaded so far.
#[derive(Default)]
struct DiffStore {
    loaded: Vec<Arc<LoadedDiff>>,
    count: usize,
}

/// The loaded diffs of a server. Threads can share them.
#[derive(Default)]
pub struct LoadedDiffs(Mutex<DiffStore>);

impl LoadedDiffs {
    /// Stores a diff under a new name. Returns it, and the diff that was dropped to make room.
    pub fn keep(&self, diff: Diff, inputs: String, runs: Vec<PathBuf>) -> (Arc<LoadedDiff>, Option<Arc<LoadedDiff>>) {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        store.count += 1;
        let loaded = Arc::new(LoadedDiff { name: format!("d{}", store.count), diff, inputs, runs });
        store.loaded.push(loaded.clone());
        let dropped = (store.loaded.len() > MAX_LOADED).then(|| store.loaded.remove(0));
        (loaded, dropped)
    }

    /// Returns true if a loaded diff has this name.
    pub fn has(&self, name: Option<&Value>) -> bool {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        name.and_then(Value::as_str).is_some_and(|name| store.loaded.iter().any(|loaded| loaded.name == name))
    }

    /// Returns the diff with this name, and marks it as the most recently used.
    ///
    /// # Errors
    /// Fails if no name is given or no loaded diff has it.
    pub fn named(&self, name: Option<&Value>) -> Result<Arc<LoadedDiff>> {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = name.and_then(Value::as_str).and_then(|name| store.loaded.iter().position(|l| l.name == name));
        let Some(position) = position else {
            let names: Vec<&str> = store.loaded.iter().map(|loaded| loaded.name.as_str()).collect();
            let loaded_names = match &names[..] {
                [] => "nothing is loaded".to_owned(),
                names => format!("loaded: {}", names.join(", ")),
            };
            let reason = name.map_or_else(|| "diff is missing".to_owned(), |name| format!("unknown diff {name}"));
            let message = format!(
                "{reason} ({loaded_names}; the last {MAX_LOADED} diffs stay loaded): load it with the tool load"
            );
            return Err(Failure::Message(message));
        };
        let loaded = store.loaded.remove(position);
        store.loaded.push(loaded.clone());
        Ok(loaded)
    }
}
