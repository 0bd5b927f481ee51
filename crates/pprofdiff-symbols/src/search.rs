//! Chooses the binary for the addresses of a mapping: a binary that the user names, a binary in a searched folder (as
//! pprof searches `PPROF_BINARY_PATH`), or the file at the path in the profile. Opens nothing unless the user named a
//! binary or a folder, and uses no file with another build id, except a named binary with `--any-build`.
//!
//! A profile may come from a stranger, and so do the paths in it. A user who names a binary or a folder opts in to
//! opening them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::dwarf::SYSTEM_DEBUG_FOLDER;
use super::file::Binary;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::{Mapping, NONE};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::shared::Symbolizer;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// Binaries and folders of binaries, for each side of a comparison. Clones share the binaries that were read.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    /// The paths for the base, and the paths for the new side or for a profile without a side.
    named: [Vec<PathBuf>; 2],
    /// True for the binaries of the base.
    is_base: bool,
    /// The folders in `PPROF_BINARY_PATH`, for both sides.
    folders: Vec<PathBuf>,
    any_build: bool,
    /// The binaries that were read, by their canonical path.
    opened: Arc<Mutex<HashMap<PathBuf, Arc<Binary>>>>,
}

/// The maximum number of missing binaries to list in a warning.
const MAX_LISTED_BINARIES: usize = 3;

/// Formats missing binaries for a warning: the first few, and the number of remaining binaries.
pub fn some_of(mut missing: Vec<String>) -> String {
    let more = missing.len().saturating_sub(MAX_LISTED_BINARIES);
    missing.truncate(MAX_LISTED_BINARIES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", missing.join(", "))
}

/// A binary with the mapping of a process.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The file.
    pub binary: Arc<Binary>,
    mapping: Option<Mapping>,
    /// The possible files with the binary's debug information.
    pub(super) by_build_id: Vec<PathBuf>,
}

impl Mapped {
    /// Converts an address of the process to an address in the file; see [`Binary::own_address`].
    pub fn own_address(&self, address: u64) -> Option<u64> {
        self.binary.own_address(self.mapping.as_ref(), address)
    }

    /// Looks up addresses of the file, so that [`Binary::frames`] knows them. Returns warnings for the user.
    ///
    /// # Errors
    /// Returns an error if the file can't be read any more.
    pub fn look_up(&self, addresses: &[u64]) -> Result<Vec<String>> {
        self.binary.look_up(addresses, &self.by_build_id)
    }
}

/// A mapping that needs a binary.
struct WantedBinary<'a> {
    mapping: Option<&'a Mapping>,
    file: String,
    build_id: String,
    /// The description of the mapping in errors.
    words: String,
    /// True if the mapping is the kernel or one of its modules, in the upper half of the address space.
    is_kernel: bool,
    /// True if the mapping is the program itself: the first mapping, or the placeholder for a profile without mappings.
    is_main: bool,
}

impl WantedBinary<'_> {
    fn file_name(&self) -> Option<&str> {
        // The path may also be a Windows path.
        self.file.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
    }

    /// Returns false if the build ids differ. Some binaries and some profiles lack a build id; they match any build.
    fn admits(&self, binary: &Binary) -> bool {
        self.build_id.is_empty() || binary.build_id().is_empty() || self.is(binary)
    }

    fn is(&self, binary: &Binary) -> bool {
        let plain = |id: &str| id.replace('-', "").to_ascii_lowercase();
        !self.build_id.is_empty() && plain(&self.build_id) == plain(binary.build_id())
    }
}

impl Binaries {
    /// Creates a set of the binaries and folders of binaries that the user names: for the base, and for the new side or
    /// a profile without a side.
    pub fn new(base: Vec<PathBuf>, new: Vec<PathBuf>) -> Binaries {
        Binaries { named: [base, new], ..Binaries::default() }
    }

    /// Adds folders to search after the named folders. All folders are searched as pprof searches the folders in
    /// `PPROF_BINARY_PATH`: for any file in `BUILD_ID/`, for `BUILD_ID`, for `ab/cdef.debug` (the build id's first two
    /// digits, and the rest), for the file's name, and for its whole path.
    #[must_use]
    pub fn with_folders(self, folders: Vec<PathBuf>) -> Binaries {
        Binaries { folders, ..self }
    }

    /// Uses the binaries that the user names even if their build ids differ from the profile's. Files in folders still
    /// need the right build id.
    #[must_use]
    pub fn with_any_build(self, any_build: bool) -> Binaries {
        Binaries { any_build, ..self }
    }

    /// Returns the binaries for the profiles of the base.
    #[must_use]
    pub fn of_base(&self) -> Binaries {
        Binaries { is_base: true, ..self.clone() }
    }

    /// Attaches these binaries to a profile, so that [`Binaries::of`] returns them. Does nothing if this side has none.
    pub fn attach(&self, profile: Profile) -> Profile {
        match self.is_empty() {
            true => profile,
            false => profile.with_attachment(Some(Arc::new(self.clone()))),
        }
    }

    /// Returns the binaries and folders that the user named when the profile was loaded, if there are any.
    pub fn of(profile: &Profile) -> Option<&Binaries> {
        profile.attachment()?.downcast_ref()
    }

    /// Returns true if this side has neither named binaries nor folders to search.
    pub fn is_empty(&self) -> bool {
        self.named[usize::from(!self.is_base)].is_empty() && self.folders.is_empty()
    }

    /// Returns true if the user named a binary or a folder for this side. `PPROF_BINARY_PATH` does not count.
    pub fn is_named(&self) -> bool {
        !self.named[usize::from(!self.is_base)].is_empty()
    }

    /// Finds the binaries of mappings of a profile, in their order. Returns `Ok(None)` for a mapping without a file,
    /// such as `[vdso]`. A missing binary is an error text that starts with the description of the mapping.
    ///
    /// # Errors
    /// Returns an error if a named binary can't be read, or if none of the named binaries fits the profile and one is
    /// of another build.
    pub fn find(
        &self,
        profile: &Profile,
        mappings: &[u32],
    ) -> Result<Vec<std::result::Result<Option<Mapped>, String>>> {
        let named = &self.named[usize::from(!self.is_base)];
        let (given, folders): (Vec<_>, Vec<_>) = named.iter().cloned().partition(|path| !path.is_dir());
        let given = given.iter().map(|path| self.open(path)).collect::<Result<Vec<_>>>()?;
        let folders: Vec<&PathBuf> = folders.iter().chain(&self.folders).collect();
        let targets: Vec<WantedBinary<'_>> =
            mappings.iter().map(|&mapping| describe_mapping(profile, mapping)).collect();
        let chosen = self.assign(&given, &targets).map_err(|e| e.in_input(profile.name()))?;
        let results = targets.iter().zip(chosen).map(|(target, chosen)| {
            let binary = match chosen {
                Some(binary) => Some(binary),
                None => self.search(&folders, target).map_err(|why| format!("{} ({why})", target.words))?,
            };
            Ok(binary.map(|binary| {
                let by_build_id = debug_files(&folders, binary.build_id());
                Mapped { binary, mapping: target.mapping.cloned(), by_build_id }
            }))
        });
        Ok(results.collect())
    }

    /// Adds names and lines to the addresses of a profile, as far as their binaries are found. Notes on the profile
    /// list missing binaries. `limit` is the maximum size of the new profile.
    ///
    /// # Errors
    /// Returns the errors of [`Binaries::find`], and an error if the profile would exceed the limit.
    pub fn symbolize(&self, profile: Profile, limit: u64) -> Result<Profile> {
        if self.is_empty() {
            return Ok(profile);
        }
        let groups = without_lines(&profile);
        if groups.is_empty() {
            return Ok(profile);
        }
        let mappings: Vec<u32> = groups.iter().map(|(mapping, _)| *mapping).collect();
        let (mut notes, mut missing) = (Vec::new(), Vec::new());
        let mut symbolizer = Symbolizer::default();
        for (n, ((mapping, locations), result)) in groups.iter().zip(self.find(&profile, &mappings)?).enumerate() {
            let mapped = match result {
                Ok(Some(mapped)) => mapped,
                Ok(None) => continue,
                Err(words) => {
                    missing.push(words);
                    continue;
                }
            };
            let file_addresses = |&l: &u32| Some((l, mapped.own_address(profile.locations().address[l as usize])?));
            let file_addresses: Vec<(u32, u64)> = locations.iter().filter_map(file_addresses).collect();
            let addresses: Vec<u64> = file_addresses.iter().map(|&(_, address)| address).collect();
            notes.extend(mapped.look_up(&addresses)?);
            let n_before = symbolizer.n_locations();
            for (location, address) in file_addresses {
                mapped.binary.frames(address, |lines| symbolizer.add(&profile, location, n, lines));
            }
            if symbolizer.n_locations() == n_before {
                notes.push(format!(
                    "{} has neither debug information nor symbols for the addresses of {}",
                    mapped.binary.path().display(),
                    describe_mapping(&profile, *mapping).words
                ));
            }
        }
        if !missing.is_empty() {
            notes.push(format!("no names were found for addresses in {}", some_of(missing)));
        }
        let name = profile.name().to_owned();
        let profile = symbolizer.finish(profile, limit).map_err(|e| e.in_input(&name))?;
        Ok(profile.with_notes(notes))
    }

    fn open(&self, path: &Path) -> Result<Arc<Binary>> {
        // Several paths, for example in several profiles, can name the same file.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(binary) = opened().get(&real) {
            return Ok(binary.clone());
        }
        let binary = Arc::new(Binary::open(path)?);
        Ok(opened().entry(real).or_insert(binary).clone())
    }

    /// Assigns the user's binaries to mappings: by build id, or by file name. The first binary that matches no mapping
    /// is assigned to the program itself, unless another binary matches it. A kernel symbol table is assigned to all
    /// mappings of the kernel.
    fn assign(&self, given: &[Arc<Binary>], targets: &[WantedBinary<'_>]) -> Result<Vec<Option<Arc<Binary>>>> {
        let mut chosen = vec![None; targets.len()];
        let mut refused = None;
        let main = targets.iter().position(|w| w.is_main);
        for binary in given {
            if binary.is_of_kernel() {
                let kernel_mappings = targets.iter().zip(&mut chosen).filter(|(w, _)| w.is_kernel);
                kernel_mappings.for_each(|(_, chosen)| *chosen = Some(binary.clone()));
                continue;
            }
            let admits = |w: &&WantedBinary<'_>| self.any_build || w.admits(binary);
            let file_name = binary.path().file_name().and_then(|n| n.to_str());
            let same_name = |w: &WantedBinary<'_>| w.file_name().is_some() && w.file_name() == file_name;
            let by_name = || targets.iter().position(|w| same_name(w) && admits(&w));
            let index = targets.iter().position(|w| w.is(binary)).or_else(by_name);
            match (index, main) {
                (Some(index), _) => chosen[index] = Some(binary.clone()),
                (None, Some(main)) if admits(&&targets[main]) => {
                    chosen[main].get_or_insert_with(|| binary.clone());
                }
                (None, Some(main)) => {
                    let mapping = targets.iter().find(|w| same_name(w)).unwrap_or(&targets[main]);
                    refused.get_or_insert_with(|| {
                        Error::new(
                            ErrorKind::Incompatible,
                            format!(
                                "it was recorded from {}, but {} has the build id {}; pass the binary of that build, or \
                             --any-build to use this one anyway",
                                mapping.words,
                                binary.path().display(),
                                binary.build_id()
                            ),
                        )
                    });
                }
                (None, None) => {}
            }
        }
        // `--binary` applies to both sides and may name the binary of each, so one match is enough.
        refused.filter(|_| chosen.iter().all(Option::is_none)).map_or(Ok(chosen), Err)
    }

    /// Finds the binary of a mapping in the folders, or at its path in the profile. Returns `None` for a mapping
    /// without a file, and a text for the user as the error.
    fn search(
        &self,
        folders: &[&PathBuf],
        target: &WantedBinary<'_>,
    ) -> std::result::Result<Option<Arc<Binary>>, String> {
        // Mappings with these prefixes are parts of the kernel, or code that was generated at run time.
        let no_file = ["[", "//anon", "linux-vdso", "/dev/", "anon_inode:"];
        if no_file.iter().any(|begin| target.file.starts_with(begin)) {
            return Ok(None);
        }
        let mut candidates = Vec::new();
        for folder in folders {
            if is_hex(&target.build_id) {
                let build_folder = folder.join(&target.build_id);
                let entries = std::fs::read_dir(&build_folder).into_iter().flatten().flatten();
                let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
                files.sort();
                candidates.extend(files);
                candidates.push(build_folder);
            }
            candidates.extend(debug_files(&[folder], &target.build_id));
            candidates.extend(target.file_name().map(|name| folder.join(name)));
            candidates.push(folder.join(target.file.trim_start_matches('/')));
        }
        if !target.file.is_empty() {
            candidates.push(PathBuf::from(&target.file));
        }
        let mut other_build = None;
        for path in candidates.iter().filter(|path| path.is_file()) {
            match self.open(path) {
                Ok(binary) if target.admits(&binary) => return Ok(Some(binary)),
                Ok(binary) => other_build = Some(binary),
                Err(_) => {}
            }
        }
        Err(match other_build {
            Some(binary) => format!("{} has the build id {}", binary.path().display(), binary.build_id()),
            None => "not found".to_owned(),
        })
    }
}

/// Returns the possible paths of a build's debug information: `ab/cdef.debug`, as in gdb's layout, in each folder and
/// in the system's folder for debug information.
fn debug_files(folders: &[&PathBuf], build_id: &str) -> Vec<PathBuf> {
    if !is_hex(build_id) || build_id.len() < 4 {
        return Vec::new();
    }
    let (prefix, rest) = build_id.split_at(2);
    let file = Path::new(prefix).join(format!("{rest}.debug"));
    let system = Path::new(SYSTEM_DEBUG_FOLDER).join(".build-id");
    folders.iter().map(|folder| folder.join(&file)).chain([system.join(&file)]).collect()
}

/// Returns true for hexadecimal digits. Only such a build id is safe as a part of a path.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Groups the locations without lines by mapping. The mapping is 0 in a profile without mappings. Skips locations
/// without an address, and in a profile with mappings also the locations without a mapping.
fn without_lines(profile: &Profile) -> Vec<(u32, Vec<u32>)> {
    let locations = profile.locations();
    let n_mappings = profile.mappings().len();
    let mut groups: Vec<(u32, Vec<u32>)> = (0..n_mappings.max(1) as u32).map(|m| (m, Vec::new())).collect();
    for location in 0..locations.len() as u32 {
        let group = match locations.mapping[location as usize] {
            NONE if n_mappings == 0 => 0,
            NONE => continue,
            mapping => mapping as usize,
        };
        if locations.lines(location).is_empty() && locations.address[location as usize] != 0 {
            groups[group].1.push(location);
        }
    }
    groups.retain(|(_, locations)| !locations.is_empty());
    groups
}

fn describe_mapping(profile: &Profile, number: u32) -> WantedBinary<'_> {
    let mapping = profile.mappings().get(number as usize);
    let (file, build_id) = mapping.map_or_else(Default::default, |m| (profile.text(m.file), profile.text(m.build_id)));
    let words = mapping.map_or_else(|| "a binary without a name".to_owned(), |m| profile.mapping_words(m));
    let is_kernel = mapping.is_some_and(|m| m.start >> 63 != 0 && !file.starts_with("[v"));
    WantedBinary { mapping, file, build_id, words, is_kernel, is_main: number == 0 || profile.mappings().is_empty() }
}
