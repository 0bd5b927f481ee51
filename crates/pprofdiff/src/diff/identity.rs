//! Decides which frames are the same. To match frames in another way (across renames, across shifted lines), replace
//! [`identify`].
//!
//! The key of each granularity is pprof's key, without two of its quirks: at `files`, and for functions without a name,
//! pprof also splits rows by the line on which a function starts.
//!
//! Paths are pprof's paths unless `--trim-path` is given. Guessing a prefix from the two sides would name a file
//! differently in each comparison.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::QualityState;

/// The unit that a row of a table represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Granularity {
    /// One row per function name.
    #[default]
    Functions,
    /// One row per function name and file.
    FileFunctions,
    /// One row per file.
    Files,
    /// One row per function name, file and line.
    Lines,
    /// One row per instruction address, with its function, file and line.
    Addresses,
}

impl Granularity {
    /// All granularities, with their names in options.
    pub const ALL: &'static [(&'static str, Granularity)] = &[
        ("functions", Granularity::Functions),
        ("filefunctions", Granularity::FileFunctions),
        ("files", Granularity::Files),
        ("lines", Granularity::Lines),
        ("addresses", Granularity::Addresses),
    ];

    /// Returns the name in options.
    pub fn name(self) -> &'static str {
        Granularity::ALL.iter().find(|(_, g)| *g == self).map_or("functions", |(name, _)| name)
    }
}

impl std::str::FromStr for Granularity {
    type Err = crate::Error;

    fn from_str(s: &str) -> crate::Result<Granularity> {
        Granularity::ALL.iter().find(|(name, _)| *name == s).map(|(_, g)| *g).ok_or_else(|| {
            let names = Granularity::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            crate::Error::query(format!("there is no granularity {s:?}; there are {names}"))
        })
    }
}

/// The identity of a frame. Two frames are the same if all fields are equal, with strings compared by their bytes.
/// Fields that the granularity ignores are empty or 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameIdentity {
    pub name: StringId,
    /// The file's path, compared after [`file_path`] has cleaned it.
    pub file: StringId,
    /// The file of the mapped binary. It is set only if there is no name, no file and no line.
    pub mapping: Option<StringId>,
    pub line: i64,
    pub address: u64,
}

/// Returns the identity of one line of a location. `line` is `None` for a location without lines (without symbols).
///
/// `address` is the location's address, already shifted to the binary's position on the leading side.
pub(crate) fn identify(
    p: &Profile,
    granularity: Granularity,
    location: u32,
    line: Option<u32>,
    address: u64,
) -> FrameIdentity {
    use Granularity::{Addresses, Files, Functions, Lines};
    let mut i = FrameIdentity { name: StringId::EMPTY, file: StringId::EMPTY, mapping: None, line: 0, address: 0 };
    if granularity == Addresses {
        i.address = address;
    }
    if let Some(line) = line {
        let functions = p.functions();
        let function = p.locations().line_function[line as usize] as usize;
        if granularity != Files {
            i.name = functions.name[function];
        }
        if granularity != Functions {
            i.file = functions.file[function];
        }
        if matches!(granularity, Lines | Addresses) {
            i.line = p.locations().line_number[line as usize];
        }
    }
    if i.line == 0 && p.string(i.name).is_empty() && p.string(i.file).is_empty() {
        i.mapping = Some(p.mapping_file(location));
    }
    i
}

/// Returns a file's path as tables show it: cleaned, and without the given prefixes, so that files of different
/// checkouts match.
///
/// Removes the first prefix that the path starts with, as pprof's `-trim_path` does. If there are prefixes, versions
/// are removed as well ([`without_versions`]). Without prefixes, a path stays as pprof shows it, so that numbers at
/// granularity `files` are pprof's numbers.
pub(crate) fn file_path<'p>(path: &'p [u8], trim: &[String]) -> Cow<'p, [u8]> {
    match clean_path(path) {
        Some(clean) => trimmed_path(&clean, trim).into_owned().into(),
        None => trimmed_path(path, trim),
    }
}

/// Like [`file_path`], for a path that is already clean.
pub(crate) fn trimmed_path<'p>(path: &'p [u8], trim: &[String]) -> Cow<'p, [u8]> {
    let cut = without_prefix(path, trim);
    let versions = if trim.is_empty() { None } else { without_versions(cut) };
    versions.map_or(Cow::Borrowed(cut), Cow::Owned)
}

/// Removes the first matching prefix from a clean path. Removes only whole components, and never all of them.
pub(crate) fn without_prefix<'p>(path: &'p [u8], trim: &[String]) -> &'p [u8] {
    let cut = |prefix: &String| {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix).as_bytes();
        let rest = path.strip_prefix(prefix)?.strip_prefix(b"/")?;
        (!rest.is_empty()).then_some(rest)
    };
    trim.iter().filter(|prefix| !prefix.is_empty()).find_map(cut).unwrap_or(path)
}

/// Returns a path without the versions of its folders: `x/y@v1.2.3/z.go`, a path of a Go module, becomes `x/y/z.go`.
/// Returns `None` in the usual case that there are no versions.
fn without_versions(path: &[u8]) -> Option<Vec<u8>> {
    let version_start = |part: &[u8]| {
        let version_start = part.iter().position(|&b| b == b'@').filter(|&version_start| version_start > 0)?;
        let version = &part[version_start + 1..];
        version.strip_prefix(b"v").unwrap_or(version).first().filter(|b| b.is_ascii_digit()).map(|_| version_start)
    };
    // Names of files are not changed.
    let (folders, file) = path.split_at(path.iter().rposition(|&b| b == b'/')?);
    if !folders.contains(&b'@') || !folders.split(|&b| b == b'/').any(|part| version_start(part).is_some()) {
        return None;
    }
    let parts: Vec<&[u8]> =
        folders.split(|&b| b == b'/').map(|part| &part[..version_start(part).unwrap_or(part.len())]).collect();
    let mut without = parts.join(&b'/');
    without.extend(file);
    Some(without)
}

/// Returns a path as pprof shows it: without `/proc/self/cwd/`, `.`, `..` and doubled slashes. Returns `None` in the
/// usual case that the path is already clean.
pub(crate) fn clean_path(path: &[u8]) -> Option<Vec<u8>> {
    let trimmed =
        path.strip_prefix(b"/proc/self/cwd/./").or_else(|| path.strip_prefix(b"/proc/self/cwd/")).unwrap_or(path);
    let dirty = trimmed.len() != path.len()
        || (trimmed.len() > 1 && trimmed.ends_with(b"/"))
        || trimmed.windows(2).any(|w| w == b"//" || w == b"./")
        || trimmed == b".."
        || trimmed.ends_with(b"/.")
        || trimmed.ends_with(b"/..");
    if !dirty {
        return None;
    }
    let rooted = trimmed.first() == Some(&b'/');
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in trimmed.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|p| *p != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let mut clean = if rooted { b"/".to_vec() } else { Vec::new() };
    clean.extend(parts.join(&b'/'));
    if clean.is_empty() {
        clean.push(b'.');
    }
    Some(clean)
}

/// Returns for each input and each of its mappings the offset to add to an address, so that the same instruction of the
/// same binary has the same address in all inputs.
///
/// The first input that uses a mapping determines its position. As in pprof and in a written diff, a mapping counts as
/// used if a sample with a value refers to it. The first mapping of the first input always counts.
pub(crate) fn address_shifts(profiles: &[&Profile]) -> Vec<Vec<u64>> {
    type MappingIdentity<'p> = (u64, u64, &'p [u8]);
    let mut starts: HashMap<MappingIdentity<'_>, u64, QualityState> = HashMap::default();
    fn key(p: &Profile, mapping: u32) -> MappingIdentity<'_> {
        let (size, offset, name) = p.mapping_key(mapping);
        (size, offset, p.string(name))
    }
    for p in profiles {
        let n = p.mappings().len();
        let mut seen = vec![false; n];
        let mut see = |mapping: u32| {
            if mapping != NONE && !std::mem::replace(&mut seen[mapping as usize], true) {
                starts.entry(key(p, mapping)).or_insert(p.mappings()[mapping as usize].start);
            }
        };
        if std::ptr::eq(*p, profiles[0]) && n > 0 {
            see(0);
        }
        for sample in p.samples() {
            let mut zero = true;
            sample.for_each_value(|v| zero &= v == 0);
            if !zero {
                sample.for_each_location(|l| see(p.locations().mapping[l as usize]));
            }
        }
    }
    let shift = |p: &Profile, m: u32| match starts.get(&key(p, m)) {
        Some(start) => start.wrapping_sub(p.mappings()[m as usize].start),
        None => 0,
    };
    profiles.iter().map(|p| (0..p.mappings().len() as u32).map(|m| shift(p, m)).collect()).collect()
}

/// Returns a location's address in the common address space of [`address_shifts`].
pub(crate) fn shifted_address(profile: &Profile, shifts: &[u64], location: u32) -> u64 {
    let locations = profile.locations();
    let address = locations.address[location as usize];
    match locations.mapping[location as usize] {
        NONE => address,
        m => address.wrapping_add(shifts[m as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::{clean_path, file_path};

    #[test]
    fn paths_of_two_checkouts_compare_once_prefixes_and_versions_are_cut() {
        let shown = |path: &str, trim: &[&str]| {
            let trim: Vec<String> = trim.iter().map(|&t| t.to_owned()).collect();
            String::from_utf8_lossy(&file_path(path.as_bytes(), &trim)).into_owned()
        };
        let module = "/root/go/pkg/mod/github.com/x/y@v1.2.3/z.go";
        let cases = [
            (module, &[][..], module),
            (module, &["/elsewhere"], "/root/go/pkg/mod/github.com/x/y/z.go"),
            (module, &["/root/go/pkg/mod"], "github.com/x/y/z.go"),
            ("mod/gopkg.in/yaml.v3@v3.0.1/a@2.go", &["mod/"], "gopkg.in/yaml.v3/a@2.go"),
            ("t@v0.0.1-go1.22.3.linux-amd64/src/p.go", &["x"], "t/src/p.go"),
            ("node_modules/@types/node@18.1.0/fs.js", &["x"], "node_modules/@types/node/fs.js"),
            ("me@home/a.c", &["x"], "me@home/a.c"),
            ("a@v1.go", &["x"], "a@v1.go"),
            ("/build/7/../8/a.c", &["/build/7", "/build/8", "/build"], "a.c"),
            ("/build/7/a.c", &["/build", "/build/7"], "7/a.c"),
            ("/build/77/a.c", &["/build/7"], "/build/77/a.c"),
            ("/build/7", &["/build/7", "", "/build/7/"], "/build/7"),
            ("/a.c", &["", "/"], "a.c"),
        ];
        for (path, trim, expected) in cases {
            assert_eq!(shown(path, trim), expected, "{path} {trim:?}");
        }
    }

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        let cases = [
            ("a//b/../c/.", "a/c"),
            ("/../a", "/a"),
            ("./a", "a"),
            ("a/", "a"),
            ("..", ".."),
            ("../../a", "../../a"),
            ("/proc/self/cwd/./x.cc", "x.cc"),
            ("a/..", "."),
        ];
        for (path, clean) in cases {
            let got = clean_path(path.as_bytes()).unwrap_or_else(|| path.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&got), clean, "{path}");
        }
        for path in ["a.b/c..d", "/usr/lib", "", "/", "a"] {
            assert_eq!(clean_path(path.as_bytes()), None, "{path}");
        }
    }
}
