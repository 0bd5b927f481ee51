//! The list of mapped binaries at the end of a file: lines as in Linux's `/proc/self/maps`, or a brief form.
//! Assignments may define variables for paths (`build=/usr/lib`, then `$build/libc.so`).
//!
//! ```text
//! 00400000-004d9000 r-xp 00000000 fd:01 1234  /usr/bin/program
//! 0x40000-0x80000 /usr/bin/program (@ff00) abc123456
//! ```

use super::{Pattern, TextLines, group, trim};
use pprofdiff_profile::builder::{MappingId, ProfileBuilder};
use pprofdiff_profile::columns::{Mapping, StringId};
use pprofdiff_profile::{Error, ErrorKind, Result};

/// Returns true for the line before such a list.
pub fn begin_after(line: &[u8]) -> bool {
    [&b"--- Memory map: ---"[..], b"MAPPED_LIBRARIES:"]
        .iter()
        .any(|words| line.windows(words.len()).any(|w| w == *words))
}

/// A line of `/proc/self/maps`: addresses, permissions, offset, device, inode, name.
static PROC: Pattern = Pattern::new(
    r"(?-u)^\s*(?:0x)?([[:xdigit:]]+)[\s-]?\s*(?:0x)?([[:xdigit:]]+):?(?:\s+([-rwxp]+))?(?:\s+([[:xdigit:]]+))?\s+[[:xdigit:]]+:[[:xdigit:]]+\s+[0-9]+(?:\s+(\S+))?",
);
/// A brief line: addresses, permissions, name, offset, build id.
static BRIEF: Pattern = Pattern::new(
    r"(?-u)^\s*(?:0x)?([[:xdigit:]]+)[\s-]?\s*(?:0x)?([[:xdigit:]]+):?(?:\s+([-rwxp]+))?(?:\s+(\S+))?(?:\s+\(@([[:xdigit:]]+)\))?(?:\s+([[:xdigit:]]+))?",
);
/// The prefix that a logger adds to a line.
static LOGGED: Pattern = Pattern::new(r"(?-u)^[^\[\]]+:[0-9]+\]\s");
/// The name of a library.
static LIBRARY: Pattern = Pattern::new(r"(?-u)[.]so$|[.]so[._][0-9]+");

/// The maximum number of mappings. By default, Linux allows 65,530 per process.
const MAX_MAPPINGS: usize = 1 << 20;
/// The maximum number of variables, and the maximum length of a variable in bytes. Real profiles need far less.
const MAX_NAMES: usize = 64;
const MAX_BYTES: usize = 4096;
/// The maximum number of comparisons of addresses with overlapping mappings. They take about half a second.
const MAX_COMPARISONS: u64 = 1 << 28;

#[derive(Clone, Copy)]
struct MapsEntry {
    mapping: Mapping,
    /// True if the entry has a file name that is not the name of a library and does not begin with `[`, as the kernel's
    /// own names do.
    is_program: bool,
    is_huge_page: bool,
}

/// The mappings of a profile, and the search for the mapping of an address.
pub struct Mappings {
    entries: Vec<Mapping>,
    ids: Vec<MappingId>,
    /// Indexes sorted by start, or `None` if mappings overlap.
    sorted: Option<Vec<u32>>,
    /// True if some mapping began in the middle of its file when it was read, so that it may be extended.
    has_offsets: bool,
    /// The mapping for all addresses that no entry contains.
    rest: Option<MappingId>,
    /// The number of comparisons so far ([`MAX_COMPARISONS`]).
    comparisons: u64,
}

impl Mappings {
    /// Reads the lines after the current one, and adds their mappings to a builder.
    pub fn read(lines: TextLines<'_>, builder: &mut ProfileBuilder) -> Result<Mappings> {
        let mut entries = join_parts(entries(lines, builder)?);
        // The program's mapping comes first, as in pprof. It is the first mapping of neither a library nor the kernel.
        if let Some(program) = entries.iter().position(|e| e.is_program) {
            entries.swap(0, program);
        }
        if let [first, second, ..] = &entries[..]
            && first.is_huge_page
            && first.mapping.limit == second.mapping.start
        {
            entries.remove(0);
        }
        // The address where programs linked to a fixed address start, as in pprof.
        const PROGRAM_START: u64 = 0x40_0000;
        if let Some(MapsEntry { mapping: m, .. }) = entries.first_mut()
            && m.start.wrapping_sub(m.offset) == PROGRAM_START
        {
            (m.start, m.offset) = (PROGRAM_START, 0);
        }
        let entries: Vec<Mapping> = entries.into_iter().map(|e| e.mapping).collect();
        let ids = entries.iter().map(|m| builder.mapping(*m)).collect();
        let (sorted, has_offsets) = (sorted(&entries), entries.iter().any(|m| m.offset != 0));
        Ok(Mappings { entries, ids, sorted, has_offsets, rest: None, comparisons: 0 })
    }

    /// Returns the mapping of an address: the first mapping that contains it. Otherwise, a mapping that begins after
    /// the address by at most its own offset is extended to the beginning of its file, because profilers omit parts of
    /// binaries. Otherwise, the address gets a mapping for all remaining addresses. Once that mapping exists, no
    /// mapping is extended any more.
    ///
    /// # Errors
    /// The limit of comparisons is exceeded.
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
                // The extended mapping may overlap others.
                self.sorted = None;
                return Ok(self.ids[i]);
            }
        }
        Ok(*self.rest.insert(builder.mapping(Mapping::of_all_addresses())))
    }

    /// Returns the index of the first mapping that contains an address.
    fn containing(&mut self, address: u64) -> Result<Option<usize>> {
        let contains = |m: &Mapping| m.start <= address && address < m.limit;
        if let Some(sorted) = &self.sorted {
            let after = sorted.partition_point(|&i| self.entries[i as usize].start <= address);
            let candidate = after.checked_sub(1).map(|i| sorted[i] as usize);
            return Ok(candidate.filter(|&i| contains(&self.entries[i])));
        }
        self.count()?;
        Ok(self.entries.iter().position(contains))
    }

    /// Counts the comparisons of one search over all mappings.
    fn count(&mut self) -> Result<()> {
        self.comparisons += self.entries.len() as u64;
        if self.comparisons > MAX_COMPARISONS {
            let n = self.entries.len();
            let detail =
                format!("it has too many addresses for its {n} mappings, which overlap or do not contain them");
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        Ok(())
    }
}

/// Returns the indexes of nonempty mappings, sorted by start. Returns `None` if mappings overlap.
fn sorted(entries: &[Mapping]) -> Option<Vec<u32>> {
    let entry = |i: u32| &entries[i as usize];
    let mut sorted: Vec<u32> = (0..entries.len() as u32).filter(|&i| entry(i).start < entry(i).limit).collect();
    sorted.sort_by_key(|&i| entry(i).start);
    sorted.windows(2).all(|w| entry(w[0]).limit <= entry(w[1]).start).then_some(sorted)
}

fn entries(mut lines: TextLines<'_>, builder: &mut ProfileBuilder) -> Result<Vec<MapsEntry>> {
    let mut entries: Vec<MapsEntry> = Vec::new();
    let mut names = PathVariables::default();
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

/// Parses a line. Returns `Some(None)` for a mapping that is not executable, and `None` for a line that is not a
/// mapping or has a number of more than 64 bits.
fn entry(line: &[u8], builder: &mut ProfileBuilder) -> Option<Option<MapsEntry>> {
    let (columns, [permissions, offset, file, build_id]) = match PROC.captures(line) {
        Some(columns) => (columns, [3, 4, 5, usize::MAX]),
        None => (BRIEF.captures(line)?, [3, 5, 4, 6]),
    };
    let permissions = group(&columns, permissions);
    if !permissions.is_empty() && !permissions.contains(&b'x') {
        return Some(None);
    }
    let hex = |i| u64::from_str_radix(std::str::from_utf8(group(&columns, i)).ok()?, 16).ok();
    let (start, limit) = (hex(1)?, hex(2)?);
    let offset = if group(&columns, offset).is_empty() { 0 } else { hex(offset)? };
    let (file, build_id) = (group(&columns, file), group(&columns, build_id));
    let is_huge_page = file.starts_with(b"/anon_hugepage");
    let is_program = is_program(file);
    let (file, build_id) = (builder.string(file), builder.string(build_id));
    let mapping = Mapping { start, limit, offset, file, build_id, flags: 0 };
    Some(Some(MapsEntry { mapping, is_program, is_huge_page }))
}

fn is_program(file: &[u8]) -> bool {
    // The kernel appends "(deleted)" to the name of a deleted file. A bare "(deleted)" is not a file name.
    let file = trim(file.strip_suffix(b"(deleted)").unwrap_or(file));
    !file.is_empty() && file[0] != b'[' && !LIBRARY.is_match(file)
}

/// Joins consecutive entries that are parts of one mapping.
fn join_parts(entries: Vec<MapsEntry>) -> Vec<MapsEntry> {
    let mut joined: Vec<MapsEntry> = Vec::with_capacity(entries.len());
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

/// Returns true if `b` begins at the address where `a` ends, and their files, build ids and offsets do not contradict
/// this. An empty file or build id, and an offset of 0, contradict nothing.
fn are_parts(a: &Mapping, b: &Mapping) -> bool {
    let differ = |x: StringId, y: StringId| x != y && x != StringId::EMPTY && y != StringId::EMPTY;
    let is_contiguous = a.offset.wrapping_add(a.limit.wrapping_sub(a.start)) == b.offset;
    !differ(a.file, b.file)
        && !differ(a.build_id, b.build_id)
        && a.limit == b.start
        && (a.offset == 0 || b.offset == 0 || is_contiguous)
}

/// Variables for paths, used in later lines.
#[derive(Default)]
struct PathVariables {
    /// Pairs of name and value. Names include the dollar sign.
    names: Vec<(Vec<u8>, Vec<u8>)>,
    /// The number of bytes that were inserted for variables so far.
    replaced: usize,
}

impl PathVariables {
    /// Adds a variable if the line is an assignment.
    fn assign(&mut self, line: &[u8]) -> Result<()> {
        let Some(equals) = line.iter().position(|&b| b == b'=') else { return Ok(()) };
        let name = [b"$", trim(&line[..equals])].concat();
        let value = trim(&line[equals + 1..]);
        if self.names.len() == MAX_NAMES || name.len() + value.len() > MAX_BYTES {
            let detail =
                format!("the list of mappings has more than {MAX_NAMES} variables, or they are longer than a path");
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        self.names.push((name, value.to_vec()));
        Ok(())
    }

    /// Returns the line with its variables replaced by their values, or `None` for a line without variables.
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
                return Err(Error::new(ErrorKind::Limit, "the variables of its mappings expand to more than 16 MB"));
            }
        }
        Ok(Some(out))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Returns start, limit, offset and file of each mapping, and the mapping id of each address.
    fn read(text: &str, addresses: &[u64]) -> Result<(Vec<(u64, u64, u64, String)>, Vec<MappingId>)> {
        let mut builder = ProfileBuilder::new();
        let mut mappings = Mappings::read(TextLines::new(text.as_bytes()), &mut builder)?;
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
    fn both_forms_of_lines_are_parsed() {
        for (line, expected) in [
            ("00400000-004d9000 r-xp 00001000 fd:01 1234  /bin/a", (0x40_0000, 0x4d_9000, 0x1000, "/bin/a")),
            ("  0x40000-0x80000: /bin/a (@ff00) abc123", (0x4_0000, 0x8_0000, 0xff00, "/bin/a")),
            ("40000 80000 /bin/a", (0x4_0000, 0x8_0000, 0, "/bin/a")),
            ("I1234 file.cc:12] 40000-80000 r-xp /bin/a", (0x4_0000, 0x8_0000, 0, "/bin/a")),
            ("b=/usr/bin\n1-2 $b/a\n", (1, 2, 0, "/usr/bin/a")),
            ("x\n\n1-2 r--p 0 0:0 0 /data\n1-2 rwxp 5 0:0 0 /code", (1, 2, 5, "/code")),
            // The program comes before its libraries.
            ("1-2 /lib/libc.so.6\n3-4 [vdso]\n5-6 /bin/a\n", (5, 6, 0, "/bin/a")),
            // Two parts of one mapping.
            ("1-2 /bin/a (@1)\n2-5 /bin/a (@2)\n", (1, 5, 1, "/bin/a")),
        ] {
            let (start, limit, offset, file) = expected;
            assert_eq!(first(line), (start, limit, offset, file.to_owned()), "{line}");
        }
    }

    #[test]
    fn an_address_belongs_to_the_first_mapping_that_contains_it() {
        let (_, ids) =
            read("10-20 /a.so\n18-30 /b.so\n40-50 /c.so (@8)\n", &[0x11, 0x19, 0x25, 0x3a, 0x35, 0x3a]).unwrap();
        assert_eq!(ids[0], ids[1], "the first of two");
        assert_ne!(ids[1], ids[2]);
        // c begins after 3a by less than its offset, but not after 35.
        assert_eq!(ids[3], ids[5]);
        assert!(ids[4] != ids[3] && ids[4] != ids[2]);
    }

    #[test]
    fn lists_that_would_take_too_much_time_or_memory_are_refused() {
        let kinds = |text: &str| read(text, &[1]).map(|_| ()).unwrap_err().kind();
        assert_eq!(kinds(&"a=b\n".repeat(65)), ErrorKind::Limit);
        assert_eq!(kinds(&format!("a={}\n", "b".repeat(5000))), ErrorKind::Limit);
        assert_eq!(kinds(&format!("a={}\n{}", "b".repeat(4000), "$a$a$a$a\n".repeat(2000))), ErrorKind::Limit);
        let overlapping = "1-5 /a.so\n2-6 /b.so\n".repeat(5_000);
        let addresses: Vec<u64> = (10..100_000).collect();
        assert_eq!(read(&overlapping, &addresses).map(|_| ()).unwrap_err().kind(), ErrorKind::Limit);
    }
}
