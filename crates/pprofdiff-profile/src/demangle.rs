//! Names of functions as pprof shows them, of the names in symbol tables: C++ (Itanium) and Rust (legacy and v0).
//!
//! `go tool pprof` shows a function without its parameters and without template arguments, and profiles are compared by
//! name, so a profile that is symbolized here must have the names of one that pprof symbolized. The rules are those of
//! pprof's `internal/symbolizer` and of the module `github.com/ianlancetaylor/demangle` with the options NoParams,
//! NoEnclosingParams and NoTemplateParams; `tests/demangle.rs` compares with them. [`Demangle`] has pprof's other modes.
//!
//! Names are untrusted. The demanglers recurse, and substitutions can double a name with every two bytes, so a name
//! that is too long, too deep or too large when it is written out stays as it is.

#[cfg(any(test, feature = "binary"))]
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::mem::take;
use std::ops::Range;
use std::str;

use cpp_demangle::{DemangleNodeType, DemangleOptions, DemangleWrite, ParseOptions, Symbol};

use crate::error::Error;

/// How names of functions are demangled, as pprof's `-symbolize=demangle=...` says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demangle {
    /// Without parameters and template arguments, if a profile has no other name of the function.
    #[default]
    Default,
    /// Without parameters, of all names that the linker has.
    Templates,
    /// With everything, of all names that the linker has.
    Full,
    /// The linker's names.
    None,
    /// The names that the profile has, whatever they are: pprof's `-symbolize=none`.
    Off,
}

impl Demangle {
    /// All, by their names.
    pub const ALL: [(&'static str, Demangle); 5] = [
        ("default", Demangle::Default),
        ("templates", Demangle::Templates),
        ("full", Demangle::Full),
        ("none", Demangle::None),
        ("off", Demangle::Off),
    ];

    /// The name that users give it.
    pub fn name(self) -> &'static str {
        Demangle::ALL[self as usize].0
    }

    /// Returns true if the linker's name takes the place of any other, as in pprof where a mode is asked for.
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
        let found = Demangle::ALL.iter().find(|(name, _)| *name == text);
        let unknown =
            || Error::query(format!("names are demangled as default, templates, full, none or off, not {text:?}"));
        found.map(|(_, mode)| *mode).ok_or_else(unknown)
    }
}

/// Longer names stay as they are: some of cpp_demangle's recursions are bounded by the length of the name only. Of
/// 384,000 names in large libraries the longest has 1,356 bytes.
const LONGEST: usize = 4096;
/// How deep cpp_demangle may recurse. Of the same names three need more. Where nothing is optimised a level takes up to
/// 22 kB, and a thread has 2 MiB.
const DEEPEST: u32 = 80;

/// How long a name may become, of its length. In large libraries none becomes longer than 128 bytes and twice that.
fn most_kept(mangled: usize) -> usize {
    256 + 4 * mangled
}

/// How much may be written for it, with all that is not kept: this bounds the time.
fn most_written(mangled: usize) -> usize {
    4096 + 64 * mangled
}

/// The name of a function as pprof shows it, of its name in a symbol table. What is no mangled name, or is none that can
/// be read, stays as it is; but of a name that looks like demangled C++, arguments are cut.
#[cfg(any(test, feature = "binary"))]
pub fn demangled(name: &[u8]) -> Cow<'_, [u8]> {
    if let Some(text) = symbol(name, Demangle::Default) {
        return Cow::Owned(text.into_bytes());
    }
    if looks_demangled(name) {
        return Cow::Owned(without(&without(name, b'(', b')'), b'<', b'>'));
    }
    Cow::Borrowed(name)
}

/// Demangles a symbol; `None` of any other name.
pub(crate) fn symbol(name: &[u8], mode: Demangle) -> Option<String> {
    // Nearly all names begin with another letter, and cost nothing more.
    if !name.starts_with(b"_") || name.len() > LONGEST || matches!(mode, Demangle::None | Demangle::Off) {
        return None;
    }
    let name = str::from_utf8(name).ok()?;
    // Symbols of Mach-O have one underscore more.
    demangle(name, mode).or_else(|| demangle(name.strip_prefix('_')?, mode))
}

/// True for what C++ compilers write into debug information and people into profiles: `std::vector<int>::size()`.
/// `java.util.List.<init>` and Go's `pkg.(*T[...]).Method` are not meant.
#[cfg(any(test, feature = "binary"))]
fn looks_demangled(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|w| w == part);
    (name.iter().any(|b| b"<>[]".contains(b)) || has(b"::")) && !has(b".<") && !has(b"]).")
}

/// The text without what is between brackets, as far as they are balanced.
#[cfg(any(test, feature = "binary"))]
fn without(text: &[u8], open: u8, close: u8) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut from, mut first, mut depth) = (0, 0, 0usize);
    for (at, &byte) in text.iter().enumerate() {
        if byte == open {
            first = if depth == 0 { at } else { first };
            depth += 1;
        } else if byte == close {
            if depth == 0 {
                break;
            }
            depth -= 1;
            if depth == 0 {
                kept.extend_from_slice(&text[from..first]);
                from = at + 1;
            }
        }
    }
    kept.extend_from_slice(&text[from..]);
    kept
}

fn demangle(name: &str, mode: Demangle) -> Option<String> {
    if name.starts_with("_R") {
        return rust_v0(name, mode);
    }
    rust_legacy(name).or_else(|| cpp(name, mode))
}

/// Rust's legacy names are C++ names that end in a hash, which no person wants to see: `_ZN4core3fmt5write17h...E`.
/// Their generic arguments are part of identifiers and stay.
fn rust_legacy(name: &str) -> Option<String> {
    let symbol = name.rfind("E.").map_or(name, |at| &name[..=at]);
    let (path, hash) = symbol.strip_prefix("_ZN")?.strip_suffix('E')?.rsplit_once("17h")?;
    // A name of C++ may end in such letters by chance, but those of a hash differ.
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
        // pprof takes a first underscore for what may separate a number from an identifier.
        let is_cut = identifier.starts_with('_') && !identifier.starts_with("_$");
        text.push_str(&plain[usize::from(is_cut)..]);
    }
    Some(text)
}

fn rust_v0(name: &str, mode: Demangle) -> Option<String> {
    let symbol = name.split('.').next()?;
    let mut whole = Limited { text: String::with_capacity(symbol.len()), room: most_written(symbol.len()) };
    write!(whole, "{:#}", rustc_demangle::try_demangle(symbol).ok()?).ok()?;
    // The demangler writes what it can of a name that it can't read, and says so.
    let is_read = ["{invalid syntax}", "{recursion limit reached}"].iter().all(|said| !whole.text.contains(said));
    let text = if mode.keeps_templates() { whole.text } else { without_generics(&whole.text) };
    Some(text).filter(|text| is_read && text.len() <= most_kept(symbol.len()))
}

/// A text that ends in an error where there is no more room.
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

/// A Rust name as pprof shows it: the brackets of generic arguments stay, and what is bound in them
/// (`dyn Iterator<Item = u8>`), since pprof's demangler leaves out types, lifetimes and constants only.
fn without_generics(text: &str) -> String {
    enum Open {
        Plain,
        /// Arguments: where the present one begins, and whether it is bound to a name.
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
            (',', Some(Open::Generics(from, bound))) => {
                if !take(bound) {
                    kept.truncate(*from);
                }
                *from = kept.len();
            }
            ('=', Some(Open::Generics(_, bound))) => *bound = true,
            ('<', _) => {
                // Otherwise it is `<T as Trait>`.
                let is_path = kept.ends_with(|c: char| c.is_alphanumeric() || "_:}".contains(c));
                let is_binder = rest.starts_with('\'') && ends_with_word(&kept, "for");
                let is_generic = is_path && !is_binder;
                open.push(if is_generic { Open::Generics(kept.len() + 1, false) } else { Open::Plain });
            }
            ('(' | '[' | '{', _) => open.push(Open::Plain),
            ('>', _) if kept.ends_with('-') => {}
            (')' | ']' | '}' | '>', _) => {
                if let Some(Open::Generics(from, false)) = open.pop() {
                    kept.truncate(from);
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

/// The length of the character or string in quotes that the text begins with, for constants have any letters; a
/// lifetime has no second quote.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| "'\"".contains(*c))?;
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at + 1),
            _ if quote == '\'' && at > 1 && !text[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}

/// A function of C++, a block of clang's within one (`___Z..._block_invoke`), or what old compilers call the code that
/// makes globals.
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
    // What these stand for is shown with its parameters: thunks, clones for transactions and constructors of globals.
    let is_signature = mode == Demangle::Full
        || ["_ZTh", "_ZTv", "_ZTc", "_ZGT", "_GLOBAL_"].iter().any(|code| name.starts_with(code));
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    // What follows a name that can be read is no reason to refuse it.
    let (symbol, _) = Symbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    let options = DemangleOptions::new().recursion_limit(DEEPEST);
    let options = if is_signature { options } else { options.no_params().no_return_type() };
    let mut written = Written::new(name.len(), mode);
    symbol.structured_demangle(&mut written, &options).ok()?;
    let Written { mut text, name_end, .. } = written;
    if !is_signature && text.get(name_end..).is_some_and(are_qualifiers) {
        text.truncate(name_end);
    }
    if !name.starts_with("_GLOBAL_") {
        text.truncate(text.find(" [clone ").unwrap_or(text.len()));
    }
    Some(in_words(text, name))
}

/// Tables and thunks in the words of all other demanglers: cpp_demangle writes `{vtable(T)}`.
fn in_words(text: String, name: &str) -> String {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix(")}")).unwrap_or(&text);
    let target = |offsets: usize| inner.splitn(offsets + 1, ")}, ").last().unwrap_or_default();
    match name.get(..4) {
        Some("_ZTV") => inner.replacen("vtable(", "vtable for ", 1),
        Some("_ZTT") => inner.replacen("vtt(", "VTT for ", 1),
        Some("_ZTh") => format!("non-virtual thunk to {}", target(1)),
        Some("_ZTv") => format!("virtual thunk to {}", target(1)),
        Some("_ZTc") => format!("covariant return thunk to {}", target(2)),
        // The table of a base within a derived class, whose name comes first in the mangled name.
        Some("_ZTC") => match inner.strip_prefix("construction vtable for ").and_then(|both| both.split_once("-in-")) {
            Some((derived, base)) => format!("construction vtable for {base}-in-{derived}"),
            None => text,
        },
        _ => text,
    }
}

/// True for what may follow the parameters of a method.
fn are_qualifiers(text: &str) -> bool {
    text.split_whitespace().all(|word| matches!(word, "const" | "volatile" | "restrict" | "&" | "&&"))
}

/// What cpp_demangle writes, piece by piece, without template arguments and without the parameters of functions that
/// something local is named by: `f()::{lambda(int)#1}`.
struct Written {
    text: String,
    /// How much may be kept yet, and how much may be written.
    room: usize,
    work: usize,
    mode: Demangle,
    /// How many nodes of the name are open.
    depth: usize,
    /// The same from the first template arguments on, of which nothing is kept.
    hidden: usize,
    /// The bracket after template arguments is to come.
    is_closing: bool,
    /// Where the outermost name ends. Behind it are qualifiers, which belong to the parameters.
    name_end: usize,
    /// Where the open lists of parameters begin, and where the last closed one was.
    open_lists: Vec<usize>,
    list: Option<Range<usize>>,
}

impl Written {
    fn new(name: usize, mode: Demangle) -> Written {
        Written {
            text: String::with_capacity(name),
            room: most_kept(name),
            work: most_written(name),
            mode,
            depth: 0,
            hidden: 0,
            is_closing: false,
            name_end: 0,
            open_lists: Vec::new(),
            list: None,
        }
    }

    /// Cuts the parameters that end the text, but for qualifiers. (A hostile identifier may be a bracket, so nothing is
    /// sure here.)
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

    /// Constructors of `std::string` and streams are shown with the whole name of the class, as that is what they have
    /// in the source: `std::basic_string::basic_string`.
    fn write_constructor(&mut self, piece: &str) {
        let short = piece.strip_prefix("basic_").unwrap_or(piece);
        let class = self.text.strip_suffix('~').unwrap_or(&self.text);
        let scope = class.strip_suffix("::").and_then(|class| class.strip_suffix(short));
        if let Some(at) = scope.filter(|scope| scope.ends_with("std::")).map(str::len) {
            self.text.insert_str(at, "basic_");
            self.text.push_str("basic_");
            self.text.push_str(short);
        } else {
            self.text.push_str(piece);
        }
    }
}

impl DemangleWrite for Written {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        if self.hidden > 0 {
            self.hidden += 1;
        } else if node == DemangleNodeType::TemplateArgs && !self.mode.keeps_templates() {
            // Their bracket is written already, behind `operator<` after a space.
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
            // `operator` and the name of a literal are written already.
            "::operator \"\"" => {
                if let Some(at) = self.text.rfind("operator") {
                    self.text.insert_str(at + "operator".len(), "\"\" ");
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
    fn other_modes_keep_what_the_default_cuts() {
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
    fn names_are_as_pprof_shows_them() {
        for (name, shown) in [
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
            assert_eq!(String::from_utf8_lossy(&demangled(name.as_bytes())), shown, "{name}");
        }
        assert_eq!(*demangled(b"_ZN1\xffEv"), *b"_ZN1\xffEv");
        assert_eq!(*demangled(b"\xff::f(a)"), *b"\xff::f");
    }

    /// A name as long as names may be: what repeats, between a beginning and an end.
    fn repeated(start: &str, unit: &str, end: &str) -> String {
        let count = (LONGEST - start.len() - end.len()) / unit.len();
        format!("{start}{}{end}", unit.repeat(count))
    }

    /// Four types, each a function of 16 of the one before it: 65,536 of the first if they are written out. Before
    /// them are so many that can be referred to.
    fn multiplied(start: &str, before: usize, end: &str) -> String {
        let types = (0..4).map(|i| {
            let last = before + 2 * i;
            let last = if last == 0 { "S_".to_owned() } else { format!("S{}_", last - 1) };
            format!("PF{}E", last.repeat(16))
        });
        format!("{start}Pi{}{end}", types.collect::<String>())
    }

    #[test]
    fn hostile_names_take_little_stack_and_stay_in_proportion() {
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
                assert!(shown <= most_kept(name.len()), "{name}: {shown}");
            }
        };
        // What threads have where nobody says.
        std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
    }

    #[test]
    fn what_would_be_out_of_proportion_stays_as_it_is() {
        let long = |n: usize| format!("_ZN{}{}Ev", n, "a".repeat(n));
        for name in [multiplied("_ZTh1_1f", 0, ""), multiplied("_Z1fI", 1, "Evv"), long(LONGEST)] {
            assert_eq!(*demangled(name.as_bytes()), *name.as_bytes());
        }
        for name in [multiplied("_Z1f", 0, ""), "_Z1fIPiEvv".to_owned(), long(LONGEST - 10)] {
            assert_ne!(*demangled(name.as_bytes()), *name.as_bytes());
        }
    }
}
