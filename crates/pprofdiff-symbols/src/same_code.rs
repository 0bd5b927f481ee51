//! Decides whether a function has the same instructions in two builds.
//!
//! A linker places the same code and data at other addresses in each build. Instructions are therefore compared without
//! addresses. An address in an operand is resolved to its target, and the targets are compared:
//!
//! | operand refers to | equal if |
//! |---|---|
//! | the function itself | it is the same instruction, not counting padding |
//! | another function, or data with a symbol | the names and the offsets are equal; for constants also their bytes |
//! | a function of another library | the imported names are equal |
//! | a thread-local variable | its name and offset are equal. If another instruction has the offset, the names and offsets of all variables are equal |
//! | a jump table | its entries are the same instructions |
//! | data without a symbol | its content is equal, after resolving pointers, up to the next data that anything refers to |
//!
//! "Same" is a promise, and every doubt speaks against it: an operand that cannot be resolved makes the comparison
//! [`CodeComparison::Unknown`]. Padding (NOP instructions, and traps at the end of the function) is ignored.

use std::borrow::Cow;
use std::cell::Cell;

use super::code::Code;
use super::demangled;
use super::image::{DataSymbol, Image, LoadedWord, is_pool};
use super::instructions::Instruction;
use pprofdiff_profile::cancellation::checkpoint;

/// The result of a comparison of a function's code in two builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeComparison {
    /// The function consists of the same bytes, which refer to the same functions and data.
    Identical,
    /// The function has the same instructions, with other addresses.
    Relocated,
    /// Instructions differ.
    Changed {
        /// The number of instructions without an equal counterpart, on the side with more of them.
        differing: u32,
        /// The number of the function's instructions in the build that has more.
        instructions: u32,
    },
    /// The comparison is not possible, for this reason.
    Unknown(&'static str),
}

/// The maximum size of a compared function in bytes. The largest functions of compilers' output have 300,000.
const MAX_FUNCTION_BYTES: usize = 1 << 20;

/// The maximum number of bytes and table entries to compare for one function. Data may refer to data that other data
/// refers to, so that each of the binary's bytes may be compared many times.
const MAX_COMPARED: usize = 16 << 20;

/// The maximum number of bytes of data without a symbol that are compared.
const MAX_DATA_BYTES: usize = 1 << 16;

/// The maximum length of a text that ends with a zero.
const MAX_TEXT_BYTES: usize = 4096;

/// The number of printable characters before a zero that are a text. Fewer may be a small number.
const MIN_TEXT_BYTES: usize = 4;

/// The largest alignment of data, and so the largest number of unused bytes after a text.
const MAX_PADDING: usize = 64;

/// A type descriptor of Go has its size, its hash and its kind in the first bytes. The following bytes are offsets that
/// depend on the layout.
const MIN_TYPE_BYTES: usize = 24;

/// The maximum number of instructions between a comparison of an index and the load of its jump table, and between the
/// address of a text and its length.
const MAX_DISTANCE: usize = 12;

/// The registers that calls use for the address of a text, and for its length: the conventions of Go and of System V.
const LENGTH_REGISTERS: [(&str, &[&str]); 8] = [
    ("rax", &["%ebx", "%edx"]),
    ("rbx", &["%ecx"]),
    ("rcx", &["%edi", "%r8d"]),
    ("rdi", &["%esi"]),
    ("rsi", &["%r8d", "%edx"]),
    ("rdx", &["%ecx"]),
    ("r8", &["%r9d"]),
    ("r9", &["%r10d"]),
];

/// The number of entries in the largest recognised jump table.
const MAX_TABLE_ENTRIES: usize = 4096;

/// The size of a stub of the procedure linkage table, on x86-64 and on arm64.
const MAX_STUB_BYTES: usize = 16;

/// Variables with a description of the layout or of the build.
const LINKER_VARIABLES: [&[u8]; 3] = [b"runtime.firstmoduledata", b"runtime.modinfo", b"runtime.buildVersion"];

/// The length of the target of an operand or a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataLength {
    /// The length is in the data, or in the register that calls use for it.
    Exact(usize),
    /// A constant near the instruction, which may be the length.
    Possible(usize),
}

/// What instructions tell about the data at their targets.
#[derive(Debug, Clone, Copy, Default)]
struct DataUse {
    /// The number of bytes that the instructions read, or 0 if it is unknown.
    read: usize,
    length: Option<DataLength>,
    /// The numbers of the instructions, unless a pointer leads to the data.
    place: Option<(usize, usize)>,
}

/// The reason of a doubt about the offset of a thread-local variable.
const THREAD_LOCAL: &str = "a thread-local variable may be another one";

/// Two items, or the reason why they may be equal or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equality {
    Equal,
    Different,
    Unclear(&'static str),
}

impl Equality {
    fn of(is_equal: bool) -> Equality {
        if is_equal { Equality::Equal } else { Equality::Different }
    }
}

/// The instructions of a function without padding.
pub(super) struct FunctionCode<'c, 'a> {
    code: &'c Code<'a>,
    function: u32,
    address: u64,
    bytes: &'a [u8],
    instructions: Vec<Instruction>,
    /// The instructions without addresses.
    keys: Vec<String>,
}

impl<'c, 'a> FunctionCode<'c, 'a> {
    pub(super) fn new(code: &'c Code<'a>, function: u32) -> Result<Self, &'static str> {
        let (address, bytes) = code.bytes(function);
        if bytes.is_empty() {
            return Err("its bytes are not in the file");
        }
        if bytes.len() > MAX_FUNCTION_BYTES {
            return Err("it is too long");
        }
        // A function without a size, such as `_init`, must not contain the next section's code.
        let end = code.image().section_end(address).map_or(usize::MAX, |end| (end - address) as usize);
        let bytes = &bytes[..bytes.len().min(end)];
        let mut instructions: Vec<Instruction> = Vec::new();
        code.decode_at(address, bytes.len(), |instruction| instructions.push(instruction));
        if instructions.iter().any(Instruction::is_data) {
            return Err("it contains bytes that are not instructions");
        }
        while instructions.len() > 1 && instructions.last().is_some_and(Instruction::is_filler) {
            instructions.pop();
        }
        instructions.retain(|instruction| !instruction.is_padding);
        let keys = instructions.iter().map(|instruction| instruction.compared(|_| None)).collect();
        Ok(FunctionCode { code, function, address, bytes, instructions, keys })
    }

    fn image(&self) -> &Image<'a> {
        self.code.image()
    }

    fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.bytes.len() as u64)
    }

    /// Returns the number of the first instruction at or after an address in the function.
    fn index(&self, address: u64) -> usize {
        self.instructions.partition_point(|instruction| instruction.address < address)
    }

    /// Returns the constants in an instruction's text.
    fn immediates(&self, number: usize) -> impl Iterator<Item = u64> + '_ {
        let text = self.keys.get(number).map_or("", String::as_str);
        text.split(['$', '#']).skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != 'x').unwrap_or(rest.len());
            match rest[..end].strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => rest[..end].parse().ok(),
            }
        })
    }

    /// Returns the number of entries of a jump table, from the comparison or the mask of the index before its use.
    fn table_len(&self, number: usize) -> Option<usize> {
        let before = number.saturating_sub(MAX_DISTANCE)..number;
        let compares = before.rev().find(|&i| ["cmp", "and"].iter().any(|name| self.keys[i].starts_with(name)))?;
        let last = self.immediates(compares).next()?;
        usize::try_from(last).ok().filter(|&last| last < MAX_TABLE_ENTRIES).map(|last| last + 1)
    }
}

/// Compares two functions. `align` pairs two sequences of keys, or returns `None` if they differ in too much.
pub(super) fn compare<'c, 'a>(
    base: &FunctionCode<'c, 'a>,
    new: &FunctionCode<'c, 'a>,
    align: impl Fn(&[&str], &[&str]) -> Option<Vec<(Option<u32>, Option<u32>)>>,
) -> CodeComparison {
    let left = Cell::new(MAX_COMPARED);
    let sides = FunctionSides { base, new, depth: 0, left: &left };
    let [b, n] = [base, new].map(|side| side.keys.iter().map(String::as_str).collect::<Vec<_>>());
    let has_same_keys =
        b.len() == n.len() && (0..b.len()).all(|i| b[i] == n[i] || sides.constants(i, i) != Equality::Different);
    let rows = match has_same_keys {
        true => (0..b.len() as u32).map(|i| (Some(i), Some(i))).collect(),
        false => match align(&b, &n) {
            Some(rows) => rows,
            None => return CodeComparison::Unknown("the sides differ in too many instructions to be compared"),
        },
    };
    // The counterpart of each instruction of the base. Targets in the function itself must be counterparts.
    let mut counterparts: Vec<Option<u32>> = vec![None; b.len() + 1];
    for &(base, new) in &rows {
        if let Some(base) = base {
            counterparts[base as usize] = new;
        }
    }
    counterparts[b.len()] = Some(n.len() as u32);
    let (mut alone, mut differing, mut doubt) = ([0u32; 2], 0, None);
    for row in rows {
        match row {
            (Some(b), Some(n)) => match sides.operands(b as usize, n as usize, &counterparts) {
                Equality::Equal => {}
                Equality::Different => differing += 1,
                Equality::Unclear(reason) => doubt = doubt.or(Some(reason)),
            },
            (Some(_), None) => alone[0] += 1,
            (None, Some(_)) => alone[1] += 1,
            (None, None) => {}
        }
    }
    if left.get() == 0 {
        return CodeComparison::Unknown("comparing the data that it refers to takes too much work");
    }
    let differing = differing + alone[0].max(alone[1]);
    match (differing, doubt) {
        (0, Some(reason)) => CodeComparison::Unknown(reason),
        (0, None) if base.bytes == new.bytes => CodeComparison::Identical,
        (0, None) => CodeComparison::Relocated,
        _ => CodeComparison::Changed { differing, instructions: b.len().max(n.len()) as u32 },
    }
}

/// Two functions that are compared.
struct FunctionSides<'s, 'c, 'a> {
    base: &'s FunctionCode<'c, 'a>,
    new: &'s FunctionCode<'c, 'a>,
    /// The number of pointers that led here.
    depth: u32,
    /// The number of bytes and table entries that may still be compared.
    left: &'s Cell<usize>,
}

/// The maximum number of pointers to follow from an operand.
const MAX_DEPTH: u32 = 3;

impl FunctionSides<'_, '_, '_> {
    /// Counts compared bytes or entries. Returns false if too many were compared.
    fn spend(&self, n: usize) -> bool {
        checkpoint();
        self.left.set(self.left.get().saturating_sub(n));
        self.left.get() > 0
    }

    /// Compares the operands of two instructions that are equal without addresses.
    fn operands(&self, b: usize, n: usize, counterparts: &[Option<u32>]) -> Equality {
        let (base, new) = (&self.base.instructions[b], &self.new.instructions[n]);
        let (from, to) = match (base.target, new.target) {
            (None, None) => return self.constants(b, n),
            (Some(from), Some(to)) => (from, to),
            _ => return Equality::Different,
        };
        match (self.base.contains(from), self.new.contains(to)) {
            (true, true) => {
                let index = self.new.index(to) as u32;
                return Equality::of(counterparts[self.base.index(from)] == Some(index));
            }
            (false, false) => {}
            _ => return Equality::Different,
        }
        let read = usize::from(base.loaded_bytes.min(new.loaded_bytes));
        self.targets(from, to, DataUse { read, length: self.text_length(b, n), place: Some((b, n)) })
    }

    /// Returns the length of a text whose address is loaded, from a constant that both sides load next to it: the
    /// constant in the register that calls use for the length, otherwise the largest constant. C's texts end with a zero
    /// instead, so that the register may contain any number.
    fn text_length(&self, b: usize, n: usize) -> Option<DataLength> {
        if !self.has_counted_texts() {
            return None;
        }
        let register = self.base.keys[b].rsplit('%').next().unwrap_or_default();
        let lengths = LENGTH_REGISTERS.iter().find(|(pointer, _)| *pointer == register).map_or(&[][..], |(_, l)| l);
        // The nearest constant in a register for lengths comes first, then the largest constant.
        let near = |side: &FunctionCode<'_, '_>, number: usize| -> Vec<DataLength> {
            let mut exact: Vec<(usize, usize)> = Vec::new();
            let mut possible = Vec::new();
            for i in number.saturating_sub(4)..(number + 5).min(side.keys.len()) {
                let key = &side.keys[i];
                let is_length = key.starts_with("mov") && lengths.iter().any(|length| key.ends_with(length));
                let constants = side.immediates(i).filter_map(|constant| usize::try_from(constant).ok());
                for constant in constants.filter(|&constant| constant <= MAX_DATA_BYTES) {
                    match is_length {
                        true => exact.push((i.abs_diff(number), constant)),
                        false => possible.push(constant),
                    }
                }
            }
            exact.sort_unstable();
            possible.sort_unstable();
            let exact = exact.into_iter().map(|(_, length)| DataLength::Exact(length));
            exact.chain(possible.into_iter().rev().map(DataLength::Possible)).collect()
        };
        let new = near(self.new, n);
        near(self.base, b).into_iter().find(|length| new.contains(length))
    }

    /// Compares the constants in two instructions. They may depend on the layout: addresses in a program with a fixed
    /// address, and offsets of thread-local variables.
    fn constants(&self, b: usize, n: usize) -> Equality {
        let images = (self.base.image(), self.new.image());
        let is_fixed = self.base.code.has_absolute_operands() && self.new.code.has_absolute_operands();
        let keys = [&self.base.keys[b], &self.new.keys[n]];
        // In the other build, another variable may have this offset. Programs of Go have a single variable, without a name.
        let is_go = |side: &FunctionCode<'_, '_>| side.code.has_symbol(b"runtime.mallocgc");
        let is_go = is_go(self.base) && is_go(self.new);
        // Other instructions add the offset to the thread pointer, which is at offset 0 on x86-64.
        let is_pointer = |key: &String| key.contains("tpidr_el0") || key.contains("%fs:0x0,");
        if keys.into_iter().any(is_pointer) && !is_go && !images.0.has_same_thread_locals(images.1) {
            return Equality::Unclear(THREAD_LOCAL);
        }
        let is_thread_local = keys.iter().all(|key| key.contains("%fs:")) && !is_go;
        if !is_fixed && !is_thread_local && keys[0] == keys[1] {
            return Equality::Equal;
        }
        // A jump through a table refers to the table.
        let is_jump = keys.iter().all(|key| key.contains("jmp") && key.contains('*'));
        let is_stack = keys.iter().any(|key| key.contains("(%rbp") || key.contains("(%rsp"));
        let (base, new) = (numbers(keys[0]), numbers(keys[1]));
        if base.1.len() != new.1.len() || base.0 != new.0 {
            return Equality::Different;
        }
        let mut result = Equality::Equal;
        for (&from, &to) in base.1.iter().zip(&new.1) {
            let is_address = is_fixed && images.0.is_in_section(from) && images.1.is_in_section(to);
            let equality = match (images.0.thread_local(from as i64), images.1.thread_local(to as i64)) {
                (Some(f), Some(g)) if is_thread_local => Equality::of(canonical(f.0) == canonical(g.0) && f.1 == g.1),
                _ if is_thread_local && (from as i64) < 0 => Equality::Unclear("a thread-local variable has no name"),
                _ if from == to && !is_address => Equality::Equal,
                _ if is_address => {
                    self.targets(from, to, DataUse { read: 0, length: self.text_length(b, n), place: Some((b, n)) })
                }
                // Sums of two addresses contain such numbers.
                _ if is_fixed
                    && images.0.is_in_section(from.wrapping_neg())
                    && images.1.is_in_section(to.wrapping_neg()) =>
                {
                    Equality::Unclear("a number may be a negative address")
                }
                (Some(f), Some(g)) if !is_stack && canonical(f.0) == canonical(g.0) && f.1 == g.1 => {
                    Equality::Unclear("a number may be the offset of a thread-local variable")
                }
                _ => Equality::Different,
            };
            match equality {
                Equality::Equal => {}
                // The number may also be a quantity that looks like an address, unless it is the start of data with a name.
                Equality::Different
                    if is_address && from == to && !is_jump && !(images.0.is_start(from) && images.1.is_start(to)) =>
                {
                    result = Equality::Unclear("a number may be an address")
                }
                Equality::Different => return Equality::Different,
                unclear @ Equality::Unclear(_) => result = unclear,
            }
        }
        result
    }

    /// Compares the targets at two addresses outside of the functions.
    fn targets(&self, from: u64, to: u64, data_use: DataUse) -> Equality {
        if self.depth > MAX_DEPTH {
            return Equality::Unclear("an operand leads through too many pointers");
        }
        let (base, new) = (self.base.image(), self.new.image());
        match (base.is_stub(from), new.is_stub(to)) {
            (true, true) => {
                return match (import_stub(self.base.code, from), import_stub(self.new.code, to)) {
                    (Some(f), Some(g)) => self.words(f, g, None),
                    _ => Equality::Unclear("the name of an imported function is unknown"),
                };
            }
            (false, false) => {}
            _ => return Equality::Unclear("an operand is an imported function in one build only"),
        }
        match (self.base.code.function_at(from), self.new.code.function_at(to)) {
            (Some(f), Some(g)) => return self.functions((f, from), (g, to)),
            (None, None) => {}
            _ => return Equality::Unclear("an operand is a function in one build only"),
        }
        match (base.symbol(from), new.symbol(to)) {
            // Without sizes, the symbol before an address may be another object, so that only equality means anything.
            (Some(f), Some(g)) if !(base.has_sizes && new.has_sizes || is_pool(f.name) || is_pool(g.name)) => {
                if f.name == g.name && from - f.address == to - g.address {
                    return match self.named((f, from), (g, to)) {
                        Equality::Different => Equality::Unclear("the length of a constant is unknown"),
                        equality => equality,
                    };
                }
            }
            // All texts of Go are one large object, so their offsets depend on the layout.
            (Some(f), Some(g)) if !is_pool(f.name) && !is_pool(g.name) => return self.named((f, from), (g, to)),
            (Some(f), Some(g)) => return self.pooled((f, from), (g, to), data_use),
            (None, None) => {}
            _ => return Equality::Unclear("an operand has a name in one build only"),
        }
        match (base.word(from), new.word(to)) {
            // An entry of the global offset table, or a constant pointer.
            (Some(f), Some(g)) if data_use.read == 8 => return self.words(f, g, None),
            _ => {}
        }
        self.data(from, to, data_use)
    }

    /// Compares data with a symbol. The content of variables changes while the program runs, so only constants must have
    /// the same bytes.
    fn named(&self, (f, from): (DataSymbol<'_>, u64), (g, to): (DataSymbol<'_>, u64)) -> Equality {
        if from - f.address != to - g.address {
            return Equality::Different;
        }
        let is_constant = !self.base.image().is_writable(from) && !self.new.image().is_writable(to);
        let has_size = f.size > 0 && g.size > 0;
        let is_generated = is_generated(f.name) && is_generated(g.name);
        if f.name != g.name && !(is_constant && (is_generated || canonical(f.name) == canonical(g.name))) {
            return Equality::Different;
        }
        // Data that other data refers to is compared without its pointers, because data may refer to itself.
        if self.depth > 0 && f.name == g.name {
            return match self.has_same_start(f, g) {
                true => Equality::Equal,
                false if is_constant && has_size => Equality::Different,
                false => Equality::Unclear("a variable has another initial value or size"),
            };
        }
        let size = usize::try_from(f.size).unwrap_or(usize::MAX);
        let is_cut = |image: &Image<'_>, symbol: DataSymbol<'_>| image.bytes(symbol.address).len() < size;
        match is_constant {
            true if has_size && f.size != g.size => Equality::Different,
            true if is_cut(self.base.image(), f) || is_cut(self.new.image(), g) => {
                Equality::Unclear("an operand is outside of the file")
            }
            true if has_size && size <= MAX_DATA_BYTES => match self.common_prefix(f.address, g.address, size) {
                equal if equal == size => Equality::Equal,
                equal => self.unequal(f.address, g.address, equal),
            },
            true => Equality::Unclear("a constant is too large to compare, or of unknown size"),
            // Compilers may generate the same name for different data.
            false if is_generated => Equality::Unclear("an operand is a variable without a name"),
            false if self.has_same_start(f, g) => Equality::Equal,
            false => Equality::Unclear("a variable has another initial value or size"),
        }
    }

    /// Returns true if two variables of known size start with the same value, not counting pointers. Many tables are
    /// variables that never change.
    fn has_same_start(&self, f: DataSymbol<'_>, g: DataSymbol<'_>) -> bool {
        let (base, new) = (self.base.image(), self.new.image());
        let size = usize::try_from(f.size).unwrap_or(usize::MAX);
        if LINKER_VARIABLES.contains(&f.name) {
            return true;
        }
        // The size of the last variable is unknown in formats without sizes.
        if f.size != g.size || f.size == 0 {
            return false;
        }
        if size > MAX_DATA_BYTES {
            // Without bytes in the file, both start with zeros.
            return base.bytes(f.address).is_empty() && new.bytes(g.address).is_empty();
        }
        // The file does not contain variables that start with zeros.
        let bytes =
            |image: &Image<'_>, symbol: DataSymbol<'_>| image.bytes(symbol.address).get(..size).map(<[u8]>::to_vec);
        let (Some(b), Some(n)) = (bytes(base, f), bytes(new, g)) else {
            return base.bytes(f.address).is_empty() == new.bytes(g.address).is_empty();
        };
        let is_pointer = |i: usize| {
            let word = 8 * (i / 8) as u64;
            base.has_pointer(f.address.wrapping_add(word)) && new.has_pointer(g.address.wrapping_add(word))
        };
        let deeper = FunctionSides { depth: self.depth + 1, ..*self };
        let are_targets_equal = |i: usize| {
            let from = base.word(f.address.wrapping_add(i as u64));
            let targets = from.zip(new.word(g.address.wrapping_add(i as u64)));
            targets.is_none_or(|(from, to)| deeper.words(from, to, None) != Equality::Different)
        };
        // Tables refer to tables, so only the pointers of the first one are followed.
        let is_followed = self.depth == 0;
        self.spend(size)
            && (0..size).all(|i| b[i] == n[i] || is_pointer(i))
            && (!is_followed || (0..size).step_by(8).all(|i| !is_pointer(i) || are_targets_equal(i)))
    }

    /// Returns the result for constants that differ after some equal bytes: a doubt if they differ in pointers that may be
    /// equal.
    fn unequal(&self, from: u64, to: u64, equal: usize) -> Equality {
        let (from, to) = (from.wrapping_add(equal as u64), to.wrapping_add(equal as u64));
        match (self.base.image().word(from), self.new.image().word(to)) {
            (Some(f), Some(g)) if self.depth < MAX_DEPTH => {
                let deeper = FunctionSides { depth: self.depth + 1, ..*self };
                match deeper.words(f, g, None) {
                    Equality::Equal => Equality::Unclear("the length of a constant is unknown"),
                    equality => equality,
                }
            }
            (Some(_), Some(_)) => Equality::Unclear("an operand leads through too many pointers"),
            _ => Equality::Different,
        }
    }

    /// Compares data in the objects that Go's linker makes of all texts, types and constants without a name.
    fn pooled(
        &self,
        (f, from): (DataSymbol<'_>, u64),
        (g, to): (DataSymbol<'_>, u64),
        DataUse { read, length, .. }: DataUse,
    ) -> Equality {
        // Symbols of Mach-O start with an underscore.
        let plain = |symbol: DataSymbol<'_>| symbol.name.strip_prefix(b"_").unwrap_or(symbol.name).to_vec();
        let (base_name, new_name) = (plain(f), plain(g));
        let is_of = |names: &[&[u8]]| names.contains(&&*base_name) && names.contains(&&*new_name);
        if read > 0 {
            return self.read_bytes(from, to, read);
        }
        if is_of(&[b"type:*", b"typerel.*", b"runtime.types"]) {
            return match self.common_prefix(from, to, MIN_TYPE_BYTES) {
                equal if equal >= MIN_TYPE_BYTES => Equality::Equal,
                0 => Equality::Different,
                _ => Equality::Unclear("the length of a constant is unknown"),
            };
        }
        let is_text = is_of(&[b"go:string.*"]);
        self.constant(from, to, length.filter(|_| is_text), None)
    }

    /// Compares constants that may be longer than what is known about their length.
    fn constant(&self, from: u64, to: u64, length: Option<DataLength>, place: Option<(usize, usize)>) -> Equality {
        let (Some(of_base), Some(of_new)) = (self.base.code.data_len(from), self.new.code.data_len(to)) else {
            return Equality::Unclear("the program is too large to find the length of a constant");
        };
        let (needed, known) = match length {
            Some(DataLength::Exact(length)) => (length, length),
            Some(DataLength::Possible(length)) => (of_base.min(of_new), length),
            None => (of_base.min(of_new), 0),
        };
        if let Some(equality) = self.distances((from, of_base), (to, of_new), place) {
            return equality;
        }
        if of_base.min(of_new) == 0 {
            return Equality::Unclear("an operand is outside of the file");
        }
        let equal = self.common_prefix(from, to, needed.min(MAX_DATA_BYTES));
        let (base, new) = (self.base.image(), self.new.image());
        // Other formats do not list all references, so a constant may be shorter.
        let is_listed = base.has_sizes && new.has_sizes;
        // The entries of a table may be distances to other data, which depend on the layout.
        let entry = equal & !3;
        let leads_out = |image: &Image<'_>, table: u64, size: usize| {
            let target = distance(image, table, entry).map(|distance| table.wrapping_add_signed(distance.into()));
            target.is_some_and(|target| target.wrapping_sub(table) >= size as u64)
        };
        let has_distances = leads_out(base, from, of_base) && leads_out(new, to, of_new);
        let is_inside = equal < of_base.min(of_new);
        match equal {
            _ if equal >= needed && needed <= MAX_DATA_BYTES => Equality::Equal,
            _ if equal >= MAX_DATA_BYTES => Equality::Unclear("a constant is too large to compare"),
            _ if has_distances => Equality::Unclear("a table has relative addresses"),
            0 => self.unequal(from, to, 0),
            _ if is_inside && is_listed && (equal < known || of_base == of_new) => self.unequal(from, to, equal),
            _ => Equality::Unclear("the length of a constant is unknown"),
        }
    }

    /// Compares the targets of two tables that consist of distances from the table to other data. Returns `None` for other
    /// data.
    fn distances(
        &self,
        (from, of_base): (u64, usize),
        (to, of_new): (u64, usize),
        place: Option<(usize, usize)>,
    ) -> Option<Equality> {
        let known = place.and_then(|(b, n)| self.base.table_len(b).filter(|&len| self.new.table_len(n) == Some(len)));
        let most = known.unwrap_or(MAX_TABLE_ENTRIES).min(of_base.min(of_new) / 4);
        let targets = |image: &Image<'_>, table: u64| -> Vec<u64> {
            let entries = (0..most).map_while(|i| distance(image, table, 4 * i));
            entries.map(|distance| table.wrapping_add_signed(distance.into())).collect()
        };
        let (mut b, mut n) = (targets(self.base.image(), from), targets(self.new.image(), to));
        let count = b.len().min(n.len());
        b.truncate(count);
        n.truncate(count);
        let is_outside = |table: u64, targets: &[u64]| {
            let own = table..table.wrapping_add(4 * count as u64);
            targets.iter().all(|target| !own.contains(target))
        };
        if count < 2 || !self.spend(count) || !is_outside(from, &b) || !is_outside(to, &n) {
            return None;
        }
        if known.is_some_and(|known| known > count) {
            return Some(Equality::Unclear("a table has relative addresses"));
        }
        let starts = |targets: &[u64]| {
            let mut starts = targets.to_vec();
            starts.sort_unstable();
            starts
        };
        let (base_starts, new_starts) = (starts(&b), starts(&n));
        let length = |code: &Code<'_>, starts: &[u64], target: u64| {
            let next = starts.get(starts.partition_point(|&start| start <= target));
            let next = next.map_or(usize::MAX, |next| usize::try_from(next - target).unwrap_or(usize::MAX));
            let data_len = code.data_len(target)?.min(MAX_DATA_BYTES);
            Some((next.min(data_len), next <= data_len))
        };
        let mut result = Equality::Equal;
        for (from, to) in b.into_iter().zip(n) {
            match (self.base.code.function_at(from), self.new.code.function_at(to)) {
                (Some(f), Some(g)) if self.functions((f, from), (g, to)) == Equality::Equal => continue,
                (None, None) => {}
                _ => return Some(Equality::Unclear("a table has relative addresses")),
            }
            let (of_base, is_base_known) = length(self.base.code, &base_starts, from)?;
            let (of_new, is_new_known) = length(self.new.code, &new_starts, to)?;
            let needed = of_base.min(of_new);
            match self.common_prefix(from, to, needed) {
                equal if equal >= needed => {}
                // Other tables of distances may refer to the data after the last target.
                _ if of_base == of_new && is_base_known && is_new_known => return Some(Equality::Different),
                _ => result = Equality::Unclear("a table has relative addresses"),
            }
        }
        Some(result)
    }

    /// Compares two functions, or addresses inside them, by name.
    fn functions(&self, (f, from): (u32, u64), (g, to): (u32, u64)) -> Equality {
        let (base, new) = (self.base.code, self.new.code);
        let (name, other) = (base.origin(f).0, new.origin(g).0);
        let offsets = (from - base.bytes(f).0, to - new.bytes(g).0);
        // A part of the function that the compiler placed elsewhere belongs to the function.
        let is_own_part = is_part_of(name, base.origin(self.base.function).0);
        if is_own_part && is_part_of(other, new.origin(self.new.function).0) {
            return self.own_parts((f, from), (g, to));
        }
        if offsets.0 != offsets.1 {
            return Equality::Different;
        }
        if name == other {
            // Local functions of several files may have one name.
            let is_one = base.origin(f).1 == new.origin(g).1 || !(base.has_several(name) || new.has_several(name));
            return if is_one { Equality::Equal } else { Equality::Unclear("several functions have one name") };
        }
        if canonical(name) != canonical(other) {
            return Equality::Different;
        }
        // Compilers derive a part of the name from the build. If a build contains both names, they are two functions.
        match new.has_symbol(name) || base.has_symbol(other) {
            true => Equality::Different,
            false => Equality::Equal,
        }
    }

    /// Compares parts of the functions that the compiler placed elsewhere, such as `f.cold`.
    fn own_parts(&self, (f, from): (u32, u64), (g, to): (u32, u64)) -> Equality {
        if !self.spend(self.base.code.bytes(f).1.len() + self.new.code.bytes(g).1.len()) {
            return Equality::Unclear("a part of the function is too long");
        }
        let parts = (FunctionCode::new(self.base.code, f), FunctionCode::new(self.new.code, g));
        let (Ok(base), Ok(new)) = parts else {
            return Equality::Unclear("a part of the function cannot be read");
        };
        if self.depth > 0 {
            return Equality::of(base.index(from) == new.index(to));
        }
        let parts = FunctionSides { base: &base, new: &new, depth: self.depth + 1, left: self.left };
        if base.keys.len() != new.keys.len() || base.index(from) != new.index(to) {
            return Equality::Different;
        }
        let counterparts: Vec<Option<u32>> = (0..=base.keys.len() as u32).map(Some).collect();
        let mut result = Equality::Equal;
        for i in 0..base.keys.len() {
            let (b, n) = (&base.instructions[i], &new.instructions[i]);
            let is_back = |side: &FunctionCode<'_, '_>, target: Option<u64>| target.is_some_and(|t| side.contains(t));
            let equality = match (is_back(self.base, b.target), is_back(self.new, n.target)) {
                // A jump back. The caller aligned only functions of equal length.
                (true, true) if base.keys[i] == new.keys[i] => Equality::of(
                    self.base.index(b.target.unwrap_or_default()) == self.new.index(n.target.unwrap_or_default()),
                ),
                (false, false) if base.keys[i] == new.keys[i] => parts.operands(i, i, &counterparts),
                _ => Equality::Different,
            };
            match equality {
                Equality::Equal => {}
                Equality::Different => return Equality::Different,
                unclear @ Equality::Unclear(_) => result = unclear,
            }
        }
        result
    }

    /// Compares pointers.
    fn words(&self, from: LoadedWord<'_>, to: LoadedWord<'_>, length: Option<DataLength>) -> Equality {
        match (from, to) {
            // Other instructions add the variable's offset to the result.
            (LoadedWord::Import(b"__tls_get_addr", _), LoadedWord::Import(b"__tls_get_addr", _))
                if !self.base.image().has_same_thread_locals(self.new.image()) =>
            {
                Equality::Unclear(THREAD_LOCAL)
            }
            (LoadedWord::Import(f, i), LoadedWord::Import(g, j)) => Equality::of(f == g && i == j),
            (LoadedWord::Address(from), LoadedWord::Address(to)) => {
                match (self.base.contains(from), self.new.contains(to)) {
                    (true, true) => Equality::of(self.base.index(from) == self.new.index(to)),
                    (false, false) => {
                        let deeper = FunctionSides { depth: self.depth + 1, ..*self };
                        deeper.targets(from, to, DataUse { length, ..DataUse::default() })
                    }
                    _ => Equality::Different,
                }
            }
            _ => Equality::Unclear("an operand is imported in one build only"),
        }
    }

    /// Compares data without a symbol.
    fn data(&self, from: u64, to: u64, DataUse { read, length, place }: DataUse) -> Equality {
        let (base, new) = (self.base.image(), self.new.image());
        if let Some(equality) = place.and_then(|place| self.jump_table(from, to, place)) {
            return equality;
        }
        if base.is_writable(from) || new.is_writable(to) {
            return Equality::Unclear("an operand is a variable without a name");
        }
        let (b, n) = (base.bytes(from), new.bytes(to));
        if b.is_empty() || n.is_empty() {
            return Equality::Unclear("an operand is outside of the file");
        }
        if base.is_unwinding(from) && new.is_unwinding(to) {
            // The start code of C registers the description of all code.
            return Equality::Unclear("an operand describes the program's code");
        }
        if read > 0 {
            return self.read_bytes(from, to, read);
        }
        if is_rust(self.base.code.origin(self.base.function).0)
            && let Some(length) = format_template_len(b)
            && self.common_prefix(from, to, length) == length
        {
            return Equality::Equal;
        }
        // The length of a slice of Rust is a number of elements, which is a number of bytes only for texts.
        let is_text = |len: usize| {
            let text = b.get(..len).filter(|_| len >= MIN_TEXT_BYTES).and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.is_some_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()))
        };
        let exact = length.and_then(|length| match length {
            DataLength::Exact(len) if is_text(len) => Some(DataLength::Exact(len)),
            DataLength::Exact(len) => Some(DataLength::Possible(len)),
            DataLength::Possible(_) => None,
        });
        match self.constant(from, to, exact, place) {
            Equality::Equal => Equality::Equal,
            equality => match self.is_equal_text(from, to) {
                Some(true) => Equality::Equal,
                // A text may be the first field of a larger constant.
                Some(false) if equality == Equality::Different => {
                    Equality::Unclear("the length of a constant is unknown")
                }
                _ => equality,
            },
        }
    }

    /// If both constants begin with the same text that ends with a zero, returns true if only unused bytes follow. Returns
    /// `None` for other constants.
    fn is_equal_text(&self, from: u64, to: u64) -> Option<bool> {
        if self.has_counted_texts() {
            return None;
        }
        let b = self.base.image().bytes(from);
        let is_text = |end: usize| b[..end].iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        let zero = b.iter().take(MAX_TEXT_BYTES).position(|&byte| byte == 0).filter(|&end| is_text(end));
        let zero = zero.filter(|&zero| self.common_prefix(from, to, zero + 1) > zero)?;
        // The unused bytes between a text and the next constant are zeros, and differ in number between layouts.
        let is_unused = |code: &Code<'_>, address| {
            let rest = code.image().bytes(address).get(zero + 1..code.data_len(address)?).unwrap_or_default();
            Some(rest.len() < MAX_PADDING && rest.iter().all(|&byte| byte == 0))
        };
        Some(is_unused(self.base.code, from)? && is_unused(self.new.code, to)?)
    }

    /// Compares a known number of bytes.
    fn read_bytes(&self, from: u64, to: u64, read: usize) -> Equality {
        if self.base.image().bytes(from).len() < read || self.new.image().bytes(to).len() < read {
            return Equality::Unclear("an operand is outside of the file");
        }
        Equality::of(self.common_prefix(from, to, read) >= read)
    }

    /// Returns true if both functions are of languages whose texts have a length instead of a zero at the end.
    fn has_counted_texts(&self) -> bool {
        let is_counted = |side: &FunctionCode<'_, '_>| has_counted_texts(side.code.origin(side.function).0);
        is_counted(self.base) && is_counted(self.new)
    }

    /// Compares two jump tables. Returns `None` if the data is not a jump table.
    fn jump_table(&self, from: u64, to: u64, (b, n): (usize, usize)) -> Option<Equality> {
        let entry = |side: &FunctionCode<'_, '_>, table: u64, i: usize| {
            let offset = i32::from_le_bytes(*side.image().bytes(table).get(4 * i..)?.first_chunk()?);
            let target = table.wrapping_add_signed(offset.into());
            side.contains(target).then(|| side.index(target))
        };
        let pointer = |side: &FunctionCode<'_, '_>, table: u64, i: usize| match side
            .image()
            .word(table.wrapping_add(8 * i as u64))?
        {
            LoadedWord::Address(target) if side.contains(target) => Some(side.index(target)),
            _ => None,
        };
        type Entry<'f> = &'f dyn Fn(&FunctionCode<'_, '_>, u64, usize) -> Option<usize>;
        let forms: [(usize, Entry<'_>); 2] = [(4, &entry), (8, &pointer)];
        let (size, form) = forms
            .into_iter()
            .find(|(_, form)| form(self.base, from, 0).is_some() && form(self.new, to, 0).is_some())?;
        let known = self.base.table_len(b).filter(|&len| self.new.table_len(n) == Some(len));
        // The nearest comparison may be of another number, so the length is a lower bound. The table ends before the first
        // entry that is outside of the function.
        let least = known.unwrap_or(2);
        // Entries before the next data belong to a table of this function.
        let lengths = self.base.code.data_len(from).zip(self.new.code.data_len(to));
        let own = lengths.filter(|(b, n)| b == n).map_or(least, |(length, _)| least.max(length / size));
        for i in 0..MAX_TABLE_ENTRIES {
            match (form(self.base, from, i), form(self.new, to, i)) {
                _ if !self.spend(1) => return None,
                (Some(b), Some(n)) if b == n => {}
                (None, None) if i >= least => return Some(Equality::Equal),
                (Some(_), Some(_)) if i < own => return Some(Equality::Different),
                _ => return Some(Equality::Unclear("the length of a jump table is unknown")),
            }
        }
        Some(Equality::Equal)
    }

    /// Returns the number of bytes that are equal, up to `limit`. Aligned words that are pointers are equal if they refer
    /// to the same.
    fn common_prefix(&self, from: u64, to: u64, limit: usize) -> usize {
        let (base, new) = (self.base.image(), self.new.image());
        let (b, n) = (base.bytes(from), new.bytes(to));
        let limit = limit.min(b.len()).min(n.len());
        let mut equal = 0;
        while equal < limit && self.spend(1) {
            let (from, to) = (from.wrapping_add(equal as u64), to.wrapping_add(equal as u64));
            let is_word = from % 8 == 0 && to % 8 == 0;
            if let (true, Some(f), Some(g)) = (is_word, base.word(from), new.word(to)) {
                let deeper = FunctionSides { depth: self.depth + 1, ..*self };
                // Texts in data have their length after the address.
                let length = |image: &Image<'_>, word: u64| {
                    Some(u64::from_le_bytes(*image.bytes(word.wrapping_add(8)).first_chunk()?))
                };
                let is_pointer = |image: &Image<'_>, word: u64| image.word(word.wrapping_add(8)).is_some();
                let length = length(base, from)
                    .filter(|&l| (1..=MAX_DATA_BYTES as u64).contains(&l) && length(new, to) == Some(l))
                    .filter(|_| !is_pointer(base, from) && !is_pointer(new, to));
                let length = length.and_then(|length| usize::try_from(length).ok()).map(DataLength::Exact);
                if deeper.depth > MAX_DEPTH || deeper.words(f, g, length) != Equality::Equal {
                    return equal;
                }
                equal += 8;
            } else if is_word && b[equal] != n[equal] && self.is_same_function(from, to) {
                equal += 8;
            } else if b[equal] == n[equal] {
                equal += 1;
            } else {
                return equal;
            }
        }
        equal.min(limit)
    }
}

impl FunctionSides<'_, '_, '_> {
    /// Returns true if two words are the addresses of functions with the same name. Go's tables of methods contain the
    /// address of `runtime.unreachableMethod` as a number that the loader does not write.
    fn is_same_function(&self, from: u64, to: u64) -> bool {
        let name = |side: &FunctionCode<'_, '_>, word: u64| {
            let address = u64::from_le_bytes(*side.image().bytes(word).first_chunk()?);
            let function = side.code.function_at(address).filter(|&f| side.code.bytes(f).0 == address)?;
            Some(side.code.origin(function).0.to_vec())
        };
        let name_of_base = name(self.base, from);
        name_of_base.is_some() && name_of_base == name(self.new, to)
    }
}

/// Returns the text without its hexadecimal numbers, and the numbers.
pub(super) fn numbers(text: &str) -> (String, Vec<u64>) {
    let (mut rest, mut all) = (String::new(), Vec::new());
    let mut parts = text.split("0x");
    rest.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let number = u64::from_str_radix(&part[..end], 16).unwrap_or(u64::MAX);
        all.push(if rest.ends_with('-') { number.wrapping_neg() } else { number });
        rest.push_str("0x");
        rest.push_str(&part[end..]);
    }
    (rest, all)
}

/// Returns the distance in four bytes of a table, if it leads from the table to another address of the binary.
fn distance(image: &Image<'_>, table: u64, offset: usize) -> Option<i32> {
    let distance = i32::from_le_bytes(*image.bytes(table.wrapping_add(offset as u64)).first_chunk()?);
    (distance != 0 && image.contains(table.wrapping_add_signed(distance.into()))).then_some(distance)
}

/// Returns true for functions of Rust and Go, whose texts have a length instead of a zero at the end.
fn has_counted_texts(name: &[u8]) -> bool {
    let is_go = !name.starts_with(b"_") && name.contains(&b'.');
    is_rust(name) || is_go
}

/// Returns true for the names of Rust's functions.
fn is_rust(name: &[u8]) -> bool {
    let is_legacy = name.starts_with(b"_ZN") && name.len() > 20 && name[name.len() - 20..].starts_with(b"17h");
    name.starts_with(b"_R") || is_legacy
}

/// Returns the length of the data of Rust's `format_args!`, including the zero at its end: literals after their length, and
/// placeholders of at least one byte. Compilers since Rust 1.93 generate it.
fn format_template_len(bytes: &[u8]) -> Option<usize> {
    let mut i = 0;
    while i < MAX_TEXT_BYTES {
        let first = *bytes.get(i)?;
        i += match first {
            0 => return (i > 0).then_some(i + 1),
            literal @ 1..0x80 => {
                let text = bytes.get(i + 1..i + 1 + usize::from(literal))?;
                if text.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
                    return None;
                }
                1 + usize::from(literal)
            }
            0x80 => 3 + usize::from(u16::from_le_bytes(*bytes.get(i + 1..)?.first_chunk()?)),
            // Four bits select the flags (4 bytes), and the width, the precision and the argument (2 bytes each).
            0xc0..0xd0 => 1 + 4 * usize::from(first & 1) + 2 * (first & 0xe).count_ones() as usize,
            _ => return None,
        };
    }
    None
}

/// Returns true for names that compilers number, or derive from content.
fn is_generated(name: &[u8]) -> bool {
    let starts: [&[u8]; 9] =
        [b"anon.", b"alloc_", b".L", b"str.", b".str", b"__unnamed_", b"vtable.", b"CSWTCH.", b"$f"];
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns a symbol's name without the parts that differ between builds: the hash of Rust's names, and the numbers that
/// compilers append to clones and local functions (`f.llvm.123`, `f.part.0`).
fn canonical(name: &[u8]) -> Cow<'_, [u8]> {
    let mut end = name.len();
    while let Some(dot) = name[..end].iter().rposition(|&byte| byte == b'.') {
        let suffix = &name[dot + 1..end];
        let is_number = !suffix.is_empty() && suffix.iter().all(u8::is_ascii_digit);
        let is_word = matches!(suffix, b"llvm" | b"part" | b"constprop" | b"isra" | b"lto_priv");
        if dot == 0 || (!is_number && !is_word) {
            break;
        }
        end = dot;
    }
    demangled(&name[..end])
}

/// Returns true for a part of a function that a compiler placed elsewhere, such as `f.cold` of `f`.
fn is_part_of(name: &[u8], function: &[u8]) -> bool {
    name.strip_prefix(function).is_some_and(|rest| rest.starts_with(b".cold"))
}

/// Returns the pointer that a stub jumps to, if the address is a stub of the procedure linkage table: code outside of all
/// functions that loads one pointer and jumps to it.
fn import_stub<'a>(code: &Code<'a>, address: u64) -> Option<LoadedWord<'a>> {
    let mut slot = None;
    code.decode_at(address, MAX_STUB_BYTES, |instruction| {
        slot = slot.or(instruction.target.filter(|_| instruction.loaded_bytes == 8));
    });
    code.image().word(slot?)
}
