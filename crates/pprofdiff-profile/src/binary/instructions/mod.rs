//! Machine code as instructions, in the words of `objdump -d`, which `pprof -disasm` runs: AT&T syntax for x86-64.
//!
//! Two builds place the same code and data elsewhere, so an instruction knows which part of its text says an address:
//! without it, what is left is the same in both. An address is an operand of its own (a branch), a displacement from
//! the instruction (`0x2acd(%rip)`), or on arm64 a page, and in the next instruction the place in it.
//!
//! All bytes are something: those that are no instruction come out as data, and decoding goes on behind them.

mod arm64;
mod x86;

use std::fmt;
use std::ops::Range;

/// What machine code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit mode of x86.
    X86_64,
    /// A64, little-endian.
    Arm64,
}

/// One instruction, or bytes that are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Where it lies.
    pub address: u64,
    /// Its bytes: at least one, at most 15.
    pub len: u8,
    /// The address that it says: where a direct branch goes, or where an operand lies that is relative to the
    /// instruction. A page of arm64 (`adrp`) is none, since what begins there has nothing to do with what is meant.
    pub target: Option<u64>,
    /// Operation and operands, all ASCII.
    text: String,
    /// The part of the text that says an address or a part of one; empty if nothing does.
    relative: Range<usize>,
}

impl Instruction {
    /// Bytes without an address, as a text.
    fn new(address: u64, len: usize, text: String) -> Instruction {
        Instruction { address, len: len as u8, target: None, text, relative: 0..0 }
    }

    /// What is the same in two builds where only addresses differ: the text without the address, and the name of what
    /// lies there, if `symbol` knows one (as in [`Instruction::named`]).
    pub fn compared<'s>(&self, symbol: impl Fn(u64) -> Option<(&'s str, u64)>) -> String {
        let (before, after) = (&self.text[..self.relative.start], &self.text[self.relative.end..]);
        match self.target.and_then(symbol) {
            Some((name, _)) => format!("{before}<{name}>{after}"),
            None => format!("{before}{after}"),
        }
    }

    /// The text with the name of what the target lies in: `call 401136 <main.run+0x10>`, or behind a comment's sign
    /// where the text has the target only in parts. `symbol` tells the name at an address, and how far it is from
    /// where that begins.
    pub fn named<'s>(&self, symbol: impl Fn(u64) -> Option<(&'s str, u64)>) -> String {
        let mut text = self.text.clone();
        let Some(target) = self.target else { return text };
        let address = format!("{target:x}");
        let is_whole = self.text[self.relative.clone()] == address;
        if !is_whole {
            text += &format!("  # {address}");
        }
        match symbol(target) {
            Some((name, 0)) => text += &format!(" <{name}>"),
            Some((name, offset)) => text += &format!(" <{name}+{offset:#x}>"),
            None => {}
        }
        text
    }
}

/// The text as it is decoded, without names.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Calls `each` with the instructions of code that lies at `address`, in order; together they are all of its bytes.
///
/// No code is an error. One instruction is in memory at a time; its text is bounded (below 200 bytes).
pub fn decode(architecture: Architecture, address: u64, code: &[u8], each: impl FnMut(Instruction)) {
    match architecture {
        Architecture::X86_64 => x86::decode(address, code, each),
        Architecture::Arm64 => arm64::decode(address, code, each),
    }
}
