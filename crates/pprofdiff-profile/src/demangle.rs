//! Demangles function names from symbol tables like pprof does: C++ (Itanium ABI) and Rust (legacy and v0).
//!
//! `go tool pprof` shows functions without parameters and template arguments. Profiles are compared by name, so a
//! profile that pprofdiff symbolizes must have the same names as after symbolization with pprof. The rules come from
//! pprof's `internal/symbolizer` and from the module `github.com/ianlancetaylor/demangle` with the options NoParams,
//! NoEnclosingParams and NoTemplateParams. `tests/demangle.rs` compares the results. [`Demangle`] provides pprof's
//! other modes.
//!
//! Names are untrusted. The demanglers recurse, and substitutions can double the output with every two bytes of a name.
//! A name therefore stays mangled if it is too long, its nesting is too deep, or its output is too large.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::mem::take;
use std::ops::Range;
use std::str;

use cpp_demangle::{DemangleNodeType, DemangleOptions, DemangleWrite, ParseOptions, Symbol};

use crate::error::Error;

/// A mode for demangling function names, named like pprof's `-symbolize=demangle=...`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demangle {
    /// Omits parameters and template arguments. Keeps any name in the profile that differs from the linker name.
    #[default]
    Default,
    /// Omits parameters. Demangles every linker name.
    Templates,
    /// Omits nothing. Demangles every linker name.
    Full,
    /// Shows the linker names.
    None,
    /// Shows the names in the profile unchanged, like pprof's `-symbolize=none`.
    Off,
}

impl Demangle {
    /// All modes with their names.
    pub const ALL: [(&'static str, Demangle); 5] = [
        ("default", Demangle::Default),
        ("templates", Demangle::Templates),
        ("full", Demangle::Full),
        ("none", Demangle::None),
        ("off", Demangle::Off),
    ];

    /// Returns the name of the mode, as users write it.
    pub fn name(self) -> &'static str {
        Demangle::ALL[self as usize].0
    }

    /// Returns true if the linker name replaces any other name. In pprof, any explicit mode does this.
    pub(crate) fn is_forced(self) -> bool {
        matches!(self, Demangle::Templates | Demangle::Full | Demangle::None)
    }

    fn keeps_templates(self) -> bool {
        matches!(self, Demangle::Templates | Demangle::Full)
    }
}

impl str::FromStr for Demangle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Demangle, Error> {
        let mode_entry = Demangle::ALL.iter().find(|(name, _)| *name == text);
        let unknown =
            || Error::query(format!("the demangling mode must be default, templates, full, none or off, not {text:?}"));
        mode_entry.map(|(_, mode)| *mode).ok_or_else(unknown)
    }
}

/// The maximum length of a name in bytes; longer names stay mangled. Some recursions in cpp_demangle are only bounded
/// by the length of the name. The longest of 384,000 names in large libraries has 1,356 bytes.
const MAX_NAME_BYTES: usize = 4096;
/// The maximum recursion depth of cpp_demangle. Only three of the 384,000 names in large libraries need
/// more. In debug builds, each level takes up to 22 kB of a thread's 2 MiB stack.
const MAX_RECURSION: u32 = 80;

/// Returns the maximum length of a demangled name. In large libraries, no name exceeds 128 bytes plus twice its mangled
/// length.
fn max_kept_bytes(mangled: usize) -> usize {
    256 + 4 * mangled
}

/// Returns the maximum number of bytes that the demangler may write, including text that is dropped. This bounds the
/// time.
fn max_written_bytes(mangled: usize) -> usize {
    4096 + 64 * mangled
}

/// Demangles a function name from a symbol table like pprof does. Names that are not mangled or cannot be parsed stay
/// unchanged. Names that look like demangled C++ lose their arguments.
pub fn demangled(name: &[u8]) -> Cow<'_, [u8]> {
    if let Some(text) = symbol(name, Demangle::Default) {
        return Cow::Owned(text.into_bytes());
    }
    if looks_demangled(name) {
        return Cow::Owned(without(&without(name, b'(', b')'), b'<', b'>'));
    }
    Cow::Borrowed(name)
}

/// Returns false for names that are certainly not mangled, which most names are.
pub(crate) fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_")
}

/// Demangles a symbol. Returns `None` for names that are not mangled, cannot be parsed or are too long, and for all
/// names with [`Demangle::None`] and [`Demangle::Off`].
pub(crate) fn symbol(name: &[u8], mode: Demangle) -> Option<String> {
    if !is_mangled(name) || name.len() > MAX_NAME_BYTES || matches!(mode, Demangle::None | Demangle::Off) {
        return None;
    }
    let name = str::from_utf8(name).ok()?;
    // Mach-O symbols have an additional underscore.
    demangle(name, mode).or_else(|| demangle(name.strip_prefix('_')?, mode))
}

/// Returns true for C++ names such as `std::vector<int>::size()`, which compilers write into debug information and
/// people write into profiles. Excludes `java.util.List.<init>` and Go's `pkg.(*T[...]).Method`.
fn looks_demangled(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|w| w == part);
    (name.iter().any(|b| b"<>[]".contains(b)) || has(b"::")) && !has(b".<") && !has(b"]).")
}

/// Removes brackets with the text between them. Keeps everything from the first unbalanced bracket.
fn without(text: &[u8], open: u8, close: u8) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut start, mut opening, mut depth) = (0, 0, 0usize);
    for (index, &byte) in text.iter().enumerate() {
        if byte == open {
            opening = if depth == 0 { index } else { opening };
            depth += 1;
        } else if byte == close {
            if depth == 0 {
                break;
            }
            depth -= 1;
            if depth == 0 {
                kept.extend_from_slice(&text[start..opening]);
                start = index + 1;
            }
        }
    }
    kept.extend_from_slice(&text[start..]);
    kept
}

fn demangle(name: &str, mode: Demangle) -> Option<String> {
    if name.starts_with("_R") {
        return rust_v0(name, mode);
    }
    rust_legacy(name).or_else(|| cpp(name, mode))
}

/// Demangles a legacy Rust name: a C++ name that ends in a hash, such as `_ZN4core3fmt5write17h...E`. Removes the hash.
/// Generic arguments are part of identifiers and stay.
fn rust_legacy(name: &str) -> Option<String> {
    let symbol = name.rfind("E.").map_or(name, |end| &name[..=end]);
    let (path, hash) = symbol.strip_prefix("_ZN")?.strip_suffix('E')?.rsplit_once("17h")?;
    // A C++ name may end in similar characters by chance, but the digits of a hash vary more.
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash || hash.bytes().collect::<BTreeSet<_>>().len() < 5 || path.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(symbol.len());
    let mut rest = path;
    while !rest.is_empty() {
        let letters = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let length: usize = rest[..rest.len() - letters.len()].parse().ok()?;
        let (identifier, after) = letters.split_at_checked(length)?;
        rest = after;
        if !text.is_empty() {
            text.push_str("::");
        }
        let plain = rustc_demangle::try_demangle(&format!("_ZN{length}{identifier}E")).ok()?.to_string();
        // pprof removes a leading underscore, because it may separate a number from an identifier.
        let is_cut = identifier.starts_with('_') && !identifier.starts_with("_$");
        text.push_str(&plain[usize::from(is_cut)..]);
    }
    Some(text)
}

fn rust_v0(name: &str, mode: Demangle) -> Option<String> {
    let symbol = name.split('.').next()?;
    let mut output = Limited { text: String::with_capacity(symbol.len()), room: max_written_bytes(symbol.len()) };
    write!(output, "{:#}", rustc_demangle::try_demangle(symbol).ok()?).ok()?;
    // The demangler writes the readable part of a name that it cannot parse, followed by one of these markers.
    let is_read =
        ["{invalid syntax}", "{recursion limit reached}"].iter().all(|problem| !output.text.contains(problem));
    let text = if mode.keeps_templates() { output.text } else { without_generics(&output.text) };
    Some(text).filter(|text| is_read && text.len() <= max_kept_bytes(symbol.len()))
}

/// A text buffer that fails when its capacity is exhausted.
struct Limited {
    text: String,
    room: usize,
}

impl Write for Limited {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.room = self.room.checked_sub(s.len()).ok_or(fmt::Error)?;
        self.text.push_str(s);
        Ok(())
    }
}

/// Shortens a Rust name like pprof does. The brackets of generic arguments stay, and so do bound arguments such as
/// `dyn Iterator<Item = u8>`, because pprof's demangler omits only types, lifetimes and constants.
fn without_generics(text: &str) -> String {
    enum OpenBracket {
        Plain,
        /// Generic arguments: the start of the current argument, and whether it is bound to a name.
        Generics(usize, bool),
    }
    let mut kept = String::with_capacity(text.len());
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let quoted = quoted(rest);
        let piece = &rest[..quoted.unwrap_or(c.len_utf8())];
        rest = &rest[piece.len()..];
        if quoted.is_some() {
            kept.push_str(piece);
            continue;
        }
        match (c, open.last_mut()) {
            (',', Some(OpenBracket::Generics(argument_start, bound))) => {
                if !take(bound) {
                    kept.truncate(*argument_start);
                }
                *argument_start = kept.len();
            }
            ('=', Some(OpenBracket::Generics(_, bound))) => *bound = true,
            ('<', _) => {
                // Other brackets belong to `<T as Trait>`.
                let is_path = kept.ends_with(|c: char| c.is_alphanumeric() || "_:}".contains(c));
                let is_binder = rest.starts_with('\'') && ends_with_word(&kept, "for");
                let is_generic = is_path && !is_binder;
                open.push(if is_generic { OpenBracket::Generics(kept.len() + 1, false) } else { OpenBracket::Plain });
            }
            ('(' | '[' | '{', _) => open.push(OpenBracket::Plain),
            ('>', _) if kept.ends_with('-') => {}
            (')' | ']' | '}' | '>', _) => {
                if let Some(OpenBracket::Generics(argument_start, false)) = open.pop() {
                    kept.truncate(argument_start);
                }
            }
            _ => {}
        }
        kept.push(c);
    }
    kept
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c)))
}

/// Returns the length of the quoted character or string at the start of the text. Constants may contain any characters,
/// including brackets. A lifetime is not quoted text, because it lacks a closing quote.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| "'\"".contains(*c))?;
    let mut is_escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(index + 1),
            _ if quote == '\'' && index > 1 && !text[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}

/// Demangles a C++ function, a clang block inside a function (`___Z..._block_invoke`), or the name that old compilers
/// give to constructors of globals.
fn cpp(name: &str, mode: Demangle) -> Option<String> {
    if let Some(key) = name.strip_prefix("_GLOBAL_") {
        let is_named = key.get(3..).is_some_and(|key| key.starts_with("_Z"));
        match key.strip_prefix(['.', '_', '$'])?.get(..2)? {
            "I_" if !is_named => return Some(format!("global constructors keyed to {key}")),
            "D_" if !is_named => return Some(format!("global destructors keyed to {key}")),
            "I_" | "D_" => {}
            _ => return None,
        }
    } else if !name.starts_with("_Z") && !name.starts_with("___Z") {
        return None;
    }
    // Thunks, transaction clones and constructors of globals show their target with its parameters.
    let is_signature = mode == Demangle::Full
        || ["_ZTh", "_ZTv", "_ZTc", "_ZGT", "_GLOBAL_"].iter().any(|code| name.starts_with(code));
    let parse = ParseOptions::default().recursion_limit(MAX_RECURSION);
    // Text after a valid name is ignored.
    let (symbol, _) = Symbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    let options = DemangleOptions::new().recursion_limit(MAX_RECURSION);
    let options = if is_signature { options } else { options.no_params().no_return_type() };
    let mut written = NameWriter::new(name.len(), mode);
    symbol.structured_demangle(&mut written, &options).ok()?;
    let NameWriter { mut text, name_end, .. } = written;
    if !is_signature && text.get(name_end..).is_some_and(are_qualifiers) {
        text.truncate(name_end);
    }
    if !name.starts_with("_GLOBAL_") {
        text.truncate(text.find(" [clone ").unwrap_or(text.len()));
    }
    Some(in_words(text, name))
}

/// Describes tables and thunks with the same words as other demanglers. cpp_demangle writes `{vtable(T)}`.
fn in_words(text: String, name: &str) -> String {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix(")}")).unwrap_or(&text);
    let target = |offsets: usize| inner.splitn(offsets + 1, ")}, ").last().unwrap_or_default();
    match name.get(..4) {
        Some("_ZTV") => inner.replacen("vtable(", "vtable for ", 1),
        Some("_ZTT") => inner.replacen("vtt(", "VTT for ", 1),
        Some("_ZTh") => format!("non-virtual thunk to {}", target(1)),
        Some("_ZTv") => format!("virtual thunk to {}", target(1)),
        Some("_ZTc") => format!("covariant return thunk to {}", target(2)),
        // The table of a base class within a derived class. The mangled name has the derived class first.
        Some("_ZTC") => match inner.strip_prefix("construction vtable for ").and_then(|both| both.split_once("-in-")) {
            Some((derived, base)) => format!("construction vtable for {base}-in-{derived}"),
            None => text,
        },
        _ => text,
    }
}

/// Returns true if the text consists of qualifiers that may follow a method's parameters.
fn are_qualifiers(text: &str) -> bool {
    text.split_whitespace().all(|word| matches!(word, "const" | "volatile" | "restrict" | "&" | "&&"))
}

/// A writer for cpp_demangle that omits the parts that `mode` omits: template arguments, and the parameters of
/// enclosing functions, as in `f()::{lambda(int)#1}`.
struct NameWriter {
    text: String,
    /// The number of bytes that may still be kept.
    room: usize,
    /// The number of bytes that may still be written.
    work: usize,
    mode: Demangle,
    /// The number of open nodes of the name.
    depth: usize,
    /// The number of open nodes within template arguments, which are dropped.
    hidden: usize,
    /// True if the next text is the bracket that closes template arguments.
    is_closing: bool,
    /// The end of the outermost name. Qualifiers may follow it, which belong to the parameters.
    name_end: usize,
    /// The starts of the open parameter lists.
    open_lists: Vec<usize>,
    /// The range of the parameter list that was closed last.
    list: Option<Range<usize>>,
}

impl NameWriter {
    fn new(name: usize, mode: Demangle) -> NameWriter {
        NameWriter {
            text: String::with_capacity(name),
            room: max_kept_bytes(name),
            work: max_written_bytes(name),
            mode,
            depth: 0,
            hidden: 0,
            is_closing: false,
            name_end: 0,
            open_lists: Vec::new(),
            list: None,
        }
    }

    /// Cuts the parameters at the end of the text, and keeps qualifiers after them. Checks all positions, because an
    /// identifier in a crafted name may be a bracket.
    fn cut_list(&mut self) {
        let Some(list) = self.list.take() else { return };
        if self.mode == Demangle::Full {
            return;
        }
        let is_last = self.text.get(list.end + 1..).is_some_and(are_qualifiers);
        if is_last && self.text.get(list.clone()).is_some() {
            self.text.replace_range(list, "");
        }
    }

    /// Writes the constructor's name for `std::string` and streams with the full class name, like the constructor in
    /// the source: `std::basic_string::basic_string`.
    fn write_constructor(&mut self, piece: &str) {
        let short = piece.strip_prefix("basic_").unwrap_or(piece);
        let class = self.text.strip_suffix('~').unwrap_or(&self.text);
        let scope = class.strip_suffix("::").and_then(|class| class.strip_suffix(short));
        if let Some(start) = scope.filter(|scope| scope.ends_with("std::")).map(str::len) {
            self.text.insert_str(start, "basic_");
            self.text.push_str("basic_");
            self.text.push_str(short);
        } else {
            self.text.push_str(piece);
        }
    }
}

impl DemangleWrite for NameWriter {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        if self.hidden > 0 {
            self.hidden += 1;
        } else if node == DemangleNodeType::TemplateArgs && !self.mode.keeps_templates() {
            // Remove the opening bracket, which is already written, and the space before it after `operator<`.
            self.hidden = 1;
            self.text.pop();
            if self.text.ends_with("< ") {
                self.text.pop();
            }
        } else {
            self.depth += 1;
        }
    }

    fn pop_demangle_node(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
            self.is_closing = self.hidden == 0;
        } else {
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                self.name_end = self.text.len();
            }
        }
    }

    fn write_string(&mut self, piece: &str) -> fmt::Result {
        self.work = self.work.checked_sub(piece.len()).ok_or(fmt::Error)?;
        if self.hidden > 0 || take(&mut self.is_closing) {
            return Ok(());
        }
        self.room = self.room.checked_sub(piece.len()).ok_or(fmt::Error)?;
        match piece {
            "(" => self.open_lists.push(self.text.len() + 1),
            ")" => self.list = self.open_lists.pop().map(|from| from..self.text.len()),
            _ if piece.starts_with("::") => self.cut_list(),
            _ => {}
        }
        match piece {
            "string" | "ostream" | "basic_istream" | "basic_iostream" => self.write_constructor(piece),
            "std::basic_istream<char, std::char_traits<char> >" => self.text.push_str("std::istream"),
            "std::basic_iostream<char, std::char_traits<char> >" => self.text.push_str("std::iostream"),
            "std::nullptr_t" => self.text.push_str("decltype(nullptr)"),
            // `operator` and the literal's name are already written.
            "::operator \"\"" => {
                if let Some(start) = self.text.rfind("operator") {
                    self.text.insert_str(start + "operator".len(), "\"\" ");
                }
            }
            _ => self.text.push_str(piece),
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn other_modes_keep_parts_that_the_default_mode_cuts() {
        for (name, templates, full) in [
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_Z1fIiEvT_", "f<int>", "void f<int>(int)"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place", "core::ptr::drop_in_place"),
            ("_RINvC1a1bTimEE", "a::b::<(isize, u32)>", "a::b::<(isize, u32)>"),
        ] {
            assert_eq!(symbol(name.as_bytes(), Demangle::Templates).as_deref(), Some(templates), "{name}");
            assert_eq!(symbol(name.as_bytes(), Demangle::Full).as_deref(), Some(full), "{name}");
            assert_eq!(symbol(name.as_bytes(), Demangle::None), None, "{name}");
        }
    }

    #[test]
    fn demangled_names_match_pprof() {
        for (name, expected) in [
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
            ("_ZNKSt3mapIiiEltIcEEbRKS0_", "std::map::operator<"),
            ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<"),
            ("_ZNSsC1Ev", "std::basic_string::basic_string"),
            ("_ZNSs6appendEPKc", "std::string::append"),
            ("_ZNK1AcvPKcEv", "A::operator char const*"),
            ("_ZNSt8literals15chrono_literalsli2msEy", "std::literals::chrono_literals::operator\"\" ms"),
            ("_ZZNK1A1fIiEEvR1BENKUlT_E_clIiEEDaS3_", "A::f() const::{lambda(auto:1)#1}::operator()"),
            ("_ZThn8_N1A1fEi.cold", "non-virtual thunk to A::f(int)"),
            ("_ZTCSo0_Si", "construction vtable for std::istream-in-std::ostream"),
            ("_ZN12_GLOBAL__N_11fEv.isra.0", "(anonymous namespace)::f"),
            ("__ZN1A1fB5cxx11Ev", "A::f[abi:cxx11]"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.7", "core::ptr::drop_in_place"),
            ("_RINvC1a1bTimEE", "a::b::<>"),
            ("_RNvMC1aINtC1a1SDINtC1c2FnTmEEp6OutputuEL_E1m", "<a::S<>>::m"),
            ("_RNvMC1aDINtC1c2FnTmEEp6OutputuEL_1m", "<dyn c::Fn<, Output = ()>>::m"),
            ("std::vector<int>::at(unsigned long)", "std::vector::at"),
            ("pkg.(*T[go.shape.int]).M", "pkg.(*T[go.shape.int]).M"),
            ("java.util.List.<init>", "java.util.List.<init>"),
            ("_Znonsense", "_Znonsense"),
            ("main", "main"),
        ] {
            assert_eq!(String::from_utf8_lossy(&demangled(name.as_bytes())), expected, "{name}");
        }
        assert_eq!(*demangled(b"_ZN1\xffEv"), *b"_ZN1\xffEv");
        assert_eq!(*demangled(b"\xff::f(a)"), *b"\xff::f");
    }

    /// Returns a name of the maximum length: `unit` repeated between `start` and `end`.
    fn repeated(start: &str, unit: &str, end: &str) -> String {
        let count = (MAX_NAME_BYTES - start.len() - end.len()) / unit.len();
        format!("{start}{}{end}", unit.repeat(count))
    }

    /// Returns a name with four types. Each type is a function of 16 parameters of the previous type, so the last type
    /// expands to 65,536 copies of the first. `before` is the number of earlier types available to substitutions.
    fn multiplied(start: &str, before: usize, end: &str) -> String {
        let types = (0..4).map(|i| {
            let last = before + 2 * i;
            let last = if last == 0 { "S_".to_owned() } else { format!("S{}_", last - 1) };
            format!("PF{}E", last.repeat(16))
        });
        format!("{start}Pi{}{end}", types.collect::<String>())
    }

    #[test]
    fn hostile_names_have_bounded_stack_use_and_output() {
        let units = [
            ("_Z1f", "P", "i"),
            ("_Z", "clcvA", ""),
            ("_Z1f", "DTcv", ""),
            ("_ZN1a", "pl", "Ev"),
            ("_ZN1a", "C1", "Ev"),
            ("_ZN1a", "IcE", "Ev"),
            ("_ZN1a", "plIcE", "Ev"),
            ("_Z", "Z1fIi", ""),
            ("_ZTh1_1fIJEEv", "DpT_", ""),
            ("_ZGTt", "GTt", "1fv"),
            ("_", "GLOBAL__I__", "1fv"),
            ("_RINvC1a1b", "P", "uE"),
            ("_RINvC1a1b", "T", ""),
            ("_R", "INvC1a1b", ""),
            ("_RNvMC1aFG", "Z", "_EuE1m"),
            ("a::", "(", ")"),
        ];
        let mut names: Vec<String> = units.iter().map(|(start, unit, end)| repeated(start, unit, end)).collect();
        names.push(multiplied("_Z1f", 0, ""));
        let check = move || {
            for name in names {
                let shown = demangled(name.as_bytes()).len();
                assert!(shown <= max_kept_bytes(name.len()), "{name}: {shown}");
            }
        };
        // 2 MiB is the default stack size of a thread.
        std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
    }

    #[test]
    fn names_with_too_large_output_stay_mangled() {
        let long = |n: usize| format!("_ZN{}{}Ev", n, "a".repeat(n));
        for name in [multiplied("_ZTh1_1f", 0, ""), multiplied("_Z1fI", 1, "Evv"), long(MAX_NAME_BYTES)] {
            assert_eq!(*demangled(name.as_bytes()), *name.as_bytes());
        }
        for name in [multiplied("_Z1f", 0, ""), "_Z1fIPiEvv".to_owned(), long(MAX_NAME_BYTES - 10)] {
            assert_ne!(*demangled(name.as_bytes()), *name.as_bytes());
        }
    }
}
