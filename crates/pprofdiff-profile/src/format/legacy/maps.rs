//! The list of mapped binaries at the end of a file: lines as in Linux's `/proc/self/maps`, or brief ones, with names
//! that assignments stand for (`build=/usr/lib`, then `$build/libc.so`).
//!
//! ```text
//! 00400000-004d9000 r-xp 00000000 fd:01 1234  /usr/bin/program
//! 0x40000-0x80000 /usr/bin/program (@ff00) abc123456
//! ```

use super::{Lines, Pattern, group, trim};
use crate::builder::{MappingId, ProfileBuilder};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Mapping, StringId};

/// True of the line that such a list follows.
pub fn begin_after(line: &[u8]) -> bool {
    [&b"--- Memory map: ---"[..], b"MAPPED_LIBRARIES:"]
        .iter()
        .any(|words| line.windows(words.len()).any(|w| w == *words))
}

/// Addresses, permissions, offset, device, inode, name.
static PROC: Pattern = Pattern::new(
    r"(?-u)^\s*(?:0x)?([[:xdigit:]]+)[\s-]?\s*(?:0x)?([[:xdigit:]]+):?(?:\s+([-rwxp]+))?(?:\s+([[:xdigit:]]+))?\s+[[:xdigit:]]+:[[:xdigit:]]+\s+[0-9]+(?:\s+(\S+))?",
);
/// Addresses, permissions, name, offset, build id.
static BRIEF: Pattern = Pattern::new(
    r"(?-u)^\s*(?:0x)?([[:xdigit:]]+)[\s-]?\s*(?:0x)?([[:xdigit:]]+):?(?:\s+([-rwxp]+))?(?:\s+(\S+))?(?:\s+\(@([[:xdigit:]]+)\))?(?:\s+([[:xdigit:]]+))?",
);
/// What a logger puts before a line.
static LOGGED: Pattern = Pattern::new(r"(?-u)^[^\[\]]+:[0-9]+\]\s");
/// The name of a library.
static LIBRARY: Pattern = Pattern::new(r"(?-u)[.]so$|[.]so[._][0-9]+");

/// Linux maps 65,530 areas a process at most, unless it is told otherwise.
const MAX_MAPPINGS: usize = 1 << 20;
/// More than any real profile needs of each: names that stand for others, and bytes of what they stand for.
const MAX_NAMES: usize = 64;
const MAX_BYTES: usize = 4096;
/// Comparisons of addresses with mappings that overlap: half a second or so.
const MAX_COMPARISONS: u64 = 1 << 28;

#[derive(Clone, Copy)]
struct Entry {
    mapping: Mapping,
    is_program: bool,
    is_huge_page: bool,
}

/// The mappings of a profile, and which of them an address is of.
pub struct Mappings {
    entries: Vec<Mapping>,
    ids: Vec<MappingId>,
    /// By start, if none overlaps another.
    sorted: Option<Vec<u32>>,
    has_offsets: bool,
    /// The one for all addresses that are in no other.
    rest: Option<MappingId>,
    comparisons: u64,
}

impl Mappings {
    /// Reads what follows the current line, and adds it to a builder.
    pub fn read(lines: Lines<'_>, builder: &mut ProfileBuilder) -> Result<Mappings> {
        let mut entries = joined(entries(lines, builder)?);
        // The program comes first, as pprof: the first that is neither a library nor something of the kernel's.
        if let Some(program) = entries.iter().position(|e| e.is_program) {
            entries.swap(0, program);
        }
        if let [first, second, ..] = &entries[..]
            && first.is_huge_page
            && first.mapping.limit == second.mapping.start
        {
            entries.remove(0);
        }
        // As pprof: where programs start that are linked to a fixed address.
        const PROGRAM_START: u64 = 0x40_0000;
        if let Some(Entry { mapping: m, .. }) = entries.first_mut()
            && m.start.wrapping_sub(m.offset) == PROGRAM_START
        {
            (m.start, m.offset) = (PROGRAM_START, 0);
        }
        let entries: Vec<Mapping> = entries.into_iter().map(|e| e.mapping).collect();
        let ids = entries.iter().map(|m| builder.mapping(*m)).collect();
        let (sorted, has_offsets) = (sorted(&entries), entries.iter().any(|m| m.offset != 0));
        Ok(Mappings { entries, ids, sorted, has_offsets, rest: None, comparisons: 0 })
    }

    /// The mapping of an address: the first that contains it; else one that it lies before by no more than that one's
    /// offset, which is corrected, since profilers leave out parts of binaries; else one for all that are in none.
    pub fn find(&mut self, address: u64, builder: &mut ProfileBuilder) -> Result<MappingId> {
        if let Some(i) = self.containing(address)? {
            return Ok(self.ids[i]);
        }
        if let Some(rest) = self.rest {
            return Ok(rest);
        }
        if self.has_offsets {
            let lies_before =
                |m: &Mapping| m.offset != 0 && m.start.wrapping_sub(m.offset) <= address && address < m.start;
            self.count()?;
            if let Some(i) = self.entries.iter().position(lies_before) {
                let m = &mut self.entries[i];
                (m.start, m.offset) = (m.start.wrapping_sub(m.offset), 0);
                if let Some(kept) = builder.mapping_mut(self.ids[i]) {
                    *kept = *m;
                }
                // It may overlap others now.
                self.sorted = None;
                return Ok(self.ids[i]);
            }
        }
        Ok(*self.rest.insert(builder.mapping(Mapping::of_all_addresses())))
    }

    fn containing(&mut self, address: u64) -> Result<Option<usize>> {
        let contains = |m: &Mapping| m.start <= address && address < m.limit;
        if let Some(sorted) = &self.sorted {
            let after = sorted.partition_point(|&i| self.entries[i as usize].start <= address);
            let before = after.checked_sub(1).map(|i| sorted[i] as usize);
            return Ok(before.filter(|&i| contains(&self.entries[i])));
        }
        self.count()?;
        Ok(self.entries.iter().position(contains))
    }

    /// Counts a walk over all mappings.
    fn count(&mut self) -> Result<()> {
        self.comparisons += self.entries.len() as u64;
        if self.comparisons > MAX_COMPARISONS {
            let n = self.entries.len();
            let detail = format!("it has too many addresses for its {n} mappings, which overlap or leave them out");
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        Ok(())
    }
}

/// Those that contain something by their start, if none overlaps another.
fn sorted(entries: &[Mapping]) -> Option<Vec<u32>> {
    let at = |i: u32| &entries[i as usize];
    let mut sorted: Vec<u32> = (0..entries.len() as u32).filter(|&i| at(i).start < at(i).limit).collect();
    sorted.sort_by_key(|&i| at(i).start);
    sorted.windows(2).all(|w| at(w[0]).limit <= at(w[1]).start).then_some(sorted)
}

fn entries(mut lines: Lines<'_>, builder: &mut ProfileBuilder) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut names = Names::default();
    while let Some(line) = lines.next() {
        let line = LOGGED.captures(line).map_or(line, |logged| &line[group(&logged, 0).len()..]);
        let replaced = names.replace(line).map_err(|e| lines.place(e))?;
        let line = replaced.as_deref().unwrap_or(line);
        match entry(line, builder) {
            Some(Some(entry)) => entries.push(entry),
            Some(None) => {}
            None => names.assign(line).map_err(|e| lines.place(e))?,
        }
        if entries.len() > MAX_MAPPINGS {
            let detail = format!("there are more than {MAX_MAPPINGS} mappings");
            return Err(lines.place(Error::new(ErrorKind::Limit, detail)));
        }
    }
    Ok(entries)
}

/// A line; `Some(None)` of a mapping that can't be executed, `None` of anything else.
fn entry(line: &[u8], builder: &mut ProfileBuilder) -> Option<Option<Entry>> {
    let (found, [permissions, offset, file, build_id]) = match PROC.captures(line) {
        Some(found) => (found, [3, 4, 5, usize::MAX]),
        None => (BRIEF.captures(line)?, [3, 5, 4, 6]),
    };
    let permissions = group(&found, permissions);
    if !permissions.is_empty() && !permissions.contains(&b'x') {
        return Some(None);
    }
    let hex = |i| u64::from_str_radix(std::str::from_utf8(group(&found, i)).ok()?, 16).ok();
    let (start, limit) = (hex(1)?, hex(2)?);
    let offset = if group(&found, offset).is_empty() { 0 } else { hex(offset)? };
    let (file, build_id) = (group(&found, file), group(&found, build_id));
    let is_huge_page = file.starts_with(b"/anon_hugepage");
    let is_program = is_program(file);
    let (file, build_id) = (builder.string(file), builder.string(build_id));
    let mapping = Mapping { start, limit, offset, file, build_id, flags: 0 };
    Some(Some(Entry { mapping, is_program, is_huge_page }))
}

fn is_program(file: &[u8]) -> bool {
    // The kernel writes this after the name of a file that is gone; on its own it is no name.
    let file = trim(file.strip_suffix(b"(deleted)").unwrap_or(file));
    !file.is_empty() && file[0] != b'[' && !LIBRARY.is_match(file)
}

/// Joins entries that are parts of one mapping.
fn joined(entries: Vec<Entry>) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match joined.last_mut() {
            Some(last) if are_parts(&last.mapping, &entry.mapping) => {
                let (m, n) = (&mut last.mapping, entry.mapping);
                m.limit = n.limit;
                if n.build_id != StringId::EMPTY {
                    m.build_id = n.build_id;
                }
                if n.file != StringId::EMPTY {
                    m.file = n.file;
                    (last.is_program, last.is_huge_page) = (entry.is_program, entry.is_huge_page);
                }
            }
            _ => joined.push(entry),
        }
    }
    joined
}

fn are_parts(a: &Mapping, b: &Mapping) -> bool {
    let differ = |x: StringId, y: StringId| x != y && x != StringId::EMPTY && y != StringId::EMPTY;
    let goes_on = a.offset.wrapping_add(a.limit.wrapping_sub(a.start)) == b.offset;
    !differ(a.file, b.file)
        && !differ(a.build_id, b.build_id)
        && a.limit == b.start
        && (a.offset == 0 || b.offset == 0 || goes_on)
}

/// Names that stand for others in the lines that follow.
#[derive(Default)]
struct Names {
    /// With the dollar sign.
    names: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes that were put in place of names so far.
    replaced: usize,
}

impl Names {
    /// Takes a line as an assignment, if it is one.
    fn assign(&mut self, line: &[u8]) -> Result<()> {
        let Some(at) = line.iter().position(|&b| b == b'=') else { return Ok(()) };
        let name = [b"$", trim(&line[..at])].concat();
        let value = trim(&line[at + 1..]);
        if self.names.len() == MAX_NAMES || name.len() + value.len() > MAX_BYTES {
            let detail = format!("there are more than {MAX_NAMES} names for mappings, or they are longer than a path");
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        self.names.push((name, value.to_vec()));
        Ok(())
    }

    /// The line with what its names stand for; `None` if it has none.
    fn replace(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.names.is_empty() || !line.contains(&b'$') {
            return Ok(None);
        }
        let (mut out, mut rest) = (Vec::new(), line);
        while let [first, tail @ ..] = rest {
            let named = self.names.iter().find(|(name, _)| *first == b'$' && rest.starts_with(name));
            match named {
                Some((name, value)) => {
                    out.extend_from_slice(value);
                    rest = &rest[name.len()..];
                    self.replaced += value.len();
                }
                None => {
                    out.push(*first);
                    rest = tail;
                }
            }
            if self.replaced > 16 << 20 {
                return Err(Error::new(ErrorKind::Limit, "what names of mappings stand for is more than 16 MB"));
            }
        }
        Ok(Some(out))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Start, limit, offset and file of each mapping, and the index of that of each address.
    fn read(text: &str, addresses: &[u64]) -> Result<(Vec<(u64, u64, u64, String)>, Vec<MappingId>)> {
        let mut builder = ProfileBuilder::new();
        let mut mappings = Mappings::read(Lines::new(text.as_bytes()), &mut builder)?;
        let ids: Result<Vec<_>> = addresses.iter().map(|&a| mappings.find(a, &mut builder)).collect();
        let ids = ids?;
        let mut samples = Vec::new();
        for (id, address) in ids.iter().zip(addresses) {
            samples.push(builder.location(Some(*id), *address, &[]).unwrap());
        }
        builder.sample_type("a", "b");
        builder.sample(&samples, &[1], &[]).unwrap();
        let p = builder.build("in").unwrap();
        let all = p.mappings().iter().map(|m| (m.start, m.limit, m.offset, p.text(m.file))).collect();
        Ok((all, ids))
    }

    fn first(text: &str) -> (u64, u64, u64, String) {
        read(text, &[1]).unwrap().0.swap_remove(0)
    }

    #[test]
    fn lines_are_of_proc_or_brief() {
        for (line, expected) in [
            ("00400000-004d9000 r-xp 00001000 fd:01 1234  /bin/a", (0x40_0000, 0x4d_9000, 0x1000, "/bin/a")),
            ("  0x40000-0x80000: /bin/a (@ff00) abc123", (0x4_0000, 0x8_0000, 0xff00, "/bin/a")),
            ("40000 80000 /bin/a", (0x4_0000, 0x8_0000, 0, "/bin/a")),
            ("I1234 file.cc:12] 40000-80000 r-xp /bin/a", (0x4_0000, 0x8_0000, 0, "/bin/a")),
            ("b=/usr/bin\n1-2 $b/a\n", (1, 2, 0, "/usr/bin/a")),
            ("x\n\n1-2 r--p 0 0:0 0 /data\n1-2 rwxp 5 0:0 0 /code", (1, 2, 5, "/code")),
            // The program comes before libraries.
            ("1-2 /lib/libc.so.6\n3-4 [vdso]\n5-6 /bin/a\n", (5, 6, 0, "/bin/a")),
            // Parts of one mapping.
            ("1-2 /bin/a (@1)\n2-5 /bin/a (@2)\n", (1, 5, 1, "/bin/a")),
        ] {
            let (start, limit, offset, file) = expected;
            assert_eq!(first(line), (start, limit, offset, file.to_owned()), "{line}");
        }
    }

    #[test]
    fn addresses_are_of_the_first_that_contains_them() {
        let (_, ids) =
            read("10-20 /a.so\n18-30 /b.so\n40-50 /c.so (@8)\n", &[0x11, 0x19, 0x25, 0x3a, 0x35, 0x3a]).unwrap();
        assert_eq!(ids[0], ids[1], "the first of two");
        assert_ne!(ids[1], ids[2]);
        // 3a lies before c by less than its offset, 35 does not.
        assert_eq!(ids[3], ids[5]);
        assert!(ids[4] != ids[3] && ids[4] != ids[2]);
    }

    #[test]
    fn what_would_take_too_much_is_refused() {
        let kinds = |text: &str| read(text, &[1]).map(|_| ()).unwrap_err().kind();
        assert_eq!(kinds(&"a=b\n".repeat(65)), ErrorKind::Limit);
        assert_eq!(kinds(&format!("a={}\n", "b".repeat(5000))), ErrorKind::Limit);
        assert_eq!(kinds(&format!("a={}\n{}", "b".repeat(4000), "$a$a$a$a\n".repeat(2000))), ErrorKind::Limit);
        let overlapping = "1-5 /a.so\n2-6 /b.so\n".repeat(5_000);
        let addresses: Vec<u64> = (10..100_000).collect();
        assert_eq!(read(&overlapping, &addresses).map(|_| ()).unwrap_err().kind(), ErrorKind::Limit);
    }
}
