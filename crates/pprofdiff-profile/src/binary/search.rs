//! Which binary a mapping's addresses are looked up in: one that the user names, one in the folders that are searched as
//! pprof searches `PPROF_BINARY_PATH`, or the file where the profile says that it lay. Nothing is opened unless the user
//! named a binary or a folder, and no file of another build is used unless the user insists.
//! A profile comes from strangers, and the paths in it are theirs: whoever names a binary asks for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::dwarf::SYSTEM;
use super::file::Binary;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Mapping, NONE, Profile, Symbolizer};
use crate::random::HashMap;

/// Binaries and folders of binaries, for each side of a comparison. Clones share what was read.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    /// The base's, and the new side's, or those of a profile that has no side.
    named: [Vec<PathBuf>; 2],
    /// True where the base's are meant.
    is_base: bool,
    folders: Vec<PathBuf>,
    any_build: bool,
    opened: Arc<Mutex<HashMap<PathBuf, Arc<Binary>>>>,
}

/// How many missing binaries a warning names.
const MAX_NAMED: usize = 3;

/// Missing binaries as a warning names them: the first ones, and how many more there are.
pub fn some_of(mut missing: Vec<String>) -> String {
    let more = missing.len().saturating_sub(MAX_NAMED);
    missing.truncate(MAX_NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", missing.join(", "))
}

/// A binary where a process had mapped it.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The file.
    pub binary: Arc<Binary>,
    mapping: Option<Mapping>,
    /// Where its debug information may be.
    pub(super) by_build_id: Vec<PathBuf>,
}

impl Mapped {
    /// The address in the file's own numbers of an address of the process; see [`Binary::own_address`].
    pub fn own_address(&self, address: u64) -> Option<u64> {
        self.binary.own_address(self.mapping.as_ref(), address)
    }

    /// Looks addresses of the file up, so that [`Binary::frames`] knows them. Returns what a user should know.
    ///
    /// # Errors
    /// The file can't be read any more.
    pub fn look_up(&self, addresses: &[u64]) -> Result<Vec<String>> {
        self.binary.look_up(addresses, &self.by_build_id)
    }
}

/// A mapping as texts.
struct Wanted<'a> {
    mapping: Option<&'a Mapping>,
    file: String,
    build_id: String,
    /// As errors say it.
    words: String,
    /// It is the kernel or a module of it: in the upper half of all addresses.
    is_kernel: bool,
    /// It is the program itself: the first mapping, or all there is without mappings.
    is_main: bool,
}

impl Wanted<'_> {
    fn file_name(&self) -> Option<&str> {
        // Of Windows' paths, too.
        self.file.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
    }

    /// False of a build id that says something else; some binaries and some profiles have none.
    fn admits(&self, binary: &Binary) -> bool {
        self.build_id.is_empty() || binary.build_id().is_empty() || self.is(binary)
    }

    fn is(&self, binary: &Binary) -> bool {
        let plain = |id: &str| id.replace('-', "").to_ascii_lowercase();
        !self.build_id.is_empty() && plain(&self.build_id) == plain(binary.build_id())
    }
}

impl Binaries {
    /// What the user names, each a binary or a folder of binaries: for the base, and for the new side or a profile that
    /// has no side.
    pub fn new(base: Vec<PathBuf>, new: Vec<PathBuf>) -> Binaries {
        Binaries { named: [base, new], ..Binaries::default() }
    }

    /// With folders that are searched after those, as pprof searches those of `PPROF_BINARY_PATH`: by
    /// `BUILD_ID/FILE`, by `BUILD_ID`, by the first two digits of it and the rest with `.debug`, by the file's name, and by
    /// its whole path.
    #[must_use]
    pub fn with_folders(self, folders: Vec<PathBuf>) -> Binaries {
        Binaries { folders, ..self }
    }

    /// Uses the binaries that the user names even if their build ids are not those of the profile.
    #[must_use]
    pub fn with_any_build(self, any_build: bool) -> Binaries {
        Binaries { any_build, ..self }
    }

    /// The same for the profiles of a base.
    pub(crate) fn of_base(&self) -> Binaries {
        Binaries { is_base: true, ..self.clone() }
    }

    /// True if there is nothing to look into.
    pub fn is_empty(&self) -> bool {
        self.named[usize::from(!self.is_base)].is_empty() && self.folders.is_empty()
    }

    /// True if a binary or a folder is named, and not only folders that are searched anyway.
    pub fn is_named(&self) -> bool {
        !self.named[usize::from(!self.is_base)].is_empty()
    }

    /// The binaries of mappings of a profile, in their order: `Ok(None)` of what is no file, such as the kernel's own
    /// parts, and of what was not found an error in words that begin with what is missing.
    ///
    /// # Errors
    /// A binary that is named can't be read, or it is another build than the profile's.
    pub fn find(
        &self,
        profile: &Profile,
        mappings: &[u32],
    ) -> Result<Vec<std::result::Result<Option<Mapped>, String>>> {
        let named = &self.named[usize::from(!self.is_base)];
        let (given, folders): (Vec<_>, Vec<_>) = named.iter().cloned().partition(|path| !path.is_dir());
        let given = given.iter().map(|path| self.open(path)).collect::<Result<Vec<_>>>()?;
        let folders: Vec<&PathBuf> = folders.iter().chain(&self.folders).collect();
        let wanted: Vec<Wanted<'_>> = mappings.iter().map(|&mapping| wanted(profile, mapping)).collect();
        let chosen = self.assign(&given, &wanted).map_err(|e| e.in_input(profile.name()))?;
        let found = wanted.iter().zip(chosen).map(|(wanted, chosen)| {
            let binary = match chosen {
                Some(binary) => Some(binary),
                None => self.search(&folders, wanted).map_err(|why| format!("{} ({why})", wanted.words))?,
            };
            Ok(binary.map(|binary| {
                let by_build_id = debug_files(&folders, binary.build_id());
                Mapped { binary, mapping: wanted.mapping.cloned(), by_build_id }
            }))
        });
        Ok(found.collect())
    }

    /// The profile with names and lines for its addresses, as far as their binaries are found.
    pub(crate) fn symbolize(&self, profile: Profile, limit: u64) -> Result<Profile> {
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
        for (n, ((mapping, locations), found)) in groups.iter().zip(self.find(&profile, &mappings)?).enumerate() {
            let mapped = match found {
                Ok(Some(mapped)) => mapped,
                Ok(None) => continue,
                Err(words) => {
                    missing.push(words);
                    continue;
                }
            };
            let own = |&l: &u32| Some((l, mapped.own_address(profile.locations().address[l as usize])?));
            let own: Vec<(u32, u64)> = locations.iter().filter_map(own).collect();
            let addresses: Vec<u64> = own.iter().map(|&(_, address)| address).collect();
            notes.extend(mapped.look_up(&addresses)?);
            let before = symbolizer.len();
            for (location, address) in own {
                mapped.binary.frames(address, |lines| symbolizer.add(&profile, location, n, lines));
            }
            if symbolizer.len() == before {
                notes.push(format!(
                    "{} has neither debug information nor symbols for the addresses of {}",
                    mapped.binary.path().display(),
                    wanted(&profile, *mapping).words
                ));
            }
        }
        if !missing.is_empty() {
            notes.push(format!("there are no names for what is in {}", some_of(missing)));
        }
        let name = profile.name().to_owned();
        let profile = symbolizer.finish(profile, limit).map_err(|e| e.in_input(&name))?;
        Ok(profile.with_notes(notes))
    }

    fn open(&self, path: &Path) -> Result<Arc<Binary>> {
        // A profile can spell one file's path in many ways.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(binary) = opened().get(&real) {
            return Ok(binary.clone());
        }
        let binary = Arc::new(Binary::open(path)?);
        Ok(opened().entry(real).or_insert(binary).clone())
    }

    /// For each mapping the binary that the user gave for it: the one with its build id, or with its file's name, and for
    /// the program itself any other.
    fn assign(&self, given: &[Arc<Binary>], wanted: &[Wanted<'_>]) -> Result<Vec<Option<Arc<Binary>>>> {
        let mut chosen = vec![None; wanted.len()];
        let mut refused = None;
        let main = wanted.iter().position(|w| w.is_main);
        for binary in given {
            if binary.is_of_kernel() {
                let of_kernel = wanted.iter().zip(&mut chosen).filter(|(w, _)| w.is_kernel);
                of_kernel.for_each(|(_, chosen)| *chosen = Some(binary.clone()));
                continue;
            }
            let admits = |w: &&Wanted<'_>| self.any_build || w.admits(binary);
            let file_name = binary.path().file_name().and_then(|n| n.to_str());
            let same_name = |w: &Wanted<'_>| w.file_name().is_some() && w.file_name() == file_name;
            let by_name = || wanted.iter().position(|w| same_name(w) && admits(&w));
            let at = wanted.iter().position(|w| w.is(binary)).or_else(by_name);
            match (at, main) {
                (Some(at), _) => chosen[at] = Some(binary.clone()),
                (None, Some(main)) if admits(&&wanted[main]) => {
                    chosen[main].get_or_insert_with(|| binary.clone());
                }
                (None, Some(main)) => {
                    let same = wanted.iter().find(|w| same_name(w)).unwrap_or(&wanted[main]);
                    refused.get_or_insert_with(|| {
                        Error::new(
                            ErrorKind::Incompatible,
                            format!(
                                "it was taken of {}, and {} has the build id {}; give the binary of that build, or \
                             --any-build to use this one all the same",
                                same.words,
                                binary.path().display(),
                                binary.build_id()
                            ),
                        )
                    });
                }
                (None, None) => {}
            }
        }
        // The binaries of both sides may be given for each: one of them is the right one.
        refused.filter(|_| chosen.iter().all(Option::is_none)).map_or(Ok(chosen), Err)
    }

    /// The binary of a mapping in the folders, or where the profile says that it lay. None of what is no file; in place of
    /// an error, what the user should know.
    fn search(&self, folders: &[&PathBuf], wanted: &Wanted<'_>) -> std::result::Result<Option<Arc<Binary>>, String> {
        // The kernel's own parts, and code that was made at run time.
        let no_file = ["[", "//anon", "linux-vdso", "/dev/", "anon_inode:"];
        if no_file.iter().any(|begin| wanted.file.starts_with(begin)) {
            return Ok(None);
        }
        let mut candidates = Vec::new();
        for folder in folders {
            if is_hex(&wanted.build_id) {
                let of_build = folder.join(&wanted.build_id);
                let entries = std::fs::read_dir(&of_build).into_iter().flatten().flatten();
                let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
                files.sort();
                candidates.extend(files);
                candidates.push(of_build);
            }
            candidates.extend(debug_files(&[folder], &wanted.build_id));
            candidates.extend(wanted.file_name().map(|name| folder.join(name)));
            candidates.push(folder.join(wanted.file.trim_start_matches('/')));
        }
        if !wanted.file.is_empty() {
            candidates.push(PathBuf::from(&wanted.file));
        }
        let mut other_build = None;
        for path in candidates.iter().filter(|path| path.is_file()) {
            match self.open(path) {
                Ok(binary) if wanted.admits(&binary) => return Ok(Some(binary)),
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

/// Where the debug information of a build is below a folder, as gdb lays it out, and on the system.
fn debug_files(folders: &[&PathBuf], build_id: &str) -> Vec<PathBuf> {
    if !is_hex(build_id) || build_id.len() < 4 {
        return Vec::new();
    }
    let (begin, rest) = build_id.split_at(2);
    let file = Path::new(begin).join(format!("{rest}.debug"));
    let system = Path::new(SYSTEM).join(".build-id");
    folders.iter().map(|folder| folder.join(&file)).chain([system.join(&file)]).collect()
}

/// True of what can only be an id: it is made a part of a path.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The locations without lines, by mapping; that is [`NONE`] where the profile has no mappings at all.
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

fn wanted(profile: &Profile, number: u32) -> Wanted<'_> {
    let mapping = profile.mappings().get(number as usize);
    let (file, build_id) = mapping.map_or_else(Default::default, |m| (profile.text(m.file), profile.text(m.build_id)));
    let words = mapping.map_or_else(|| "a binary that it does not name".to_owned(), |m| profile.mapping_words(m));
    let is_kernel = mapping.is_some_and(|m| m.start >> 63 != 0 && !file.starts_with("[v"));
    Wanted { mapping, file, build_id, words, is_kernel, is_main: number == 0 || profile.mappings().is_empty() }
}
