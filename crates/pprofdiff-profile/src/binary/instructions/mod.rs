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

    /// What is the same in two builds where only addresses differ, as a key: the text without the address, and the name
    /// of what lies there, if `symbol` knows one (as in [`Instruction::named`]).
    pub fn compared<'s>(&self, symbol: impl Fn(u64) -> Option<(&'s str, u64)>) -> String {
        let (before, after) = (&self.text[..self.relative.start], &self.text[self.relative.end..]);
        match self.target.and_then(symbol) {
            Some((name, _)) => format!("{before}{after} <{name}>"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(architecture: Architecture, address: u64, code: &[u8]) -> Vec<Instruction> {
        let mut all = Vec::new();
        decode(architecture, address, code, |instruction| all.push(instruction));
        all
    }

    /// Everything lies in `main.run`, which begins at 0x401000, but for data from 0x404000 on.
    fn symbol(address: u64) -> Option<(&'static str, u64)> {
        match address {
            0x404000.. => Some(("main.table", address - 0x404000)),
            0x401000.. => Some(("main.run", address - 0x401000)),
            _ => None,
        }
    }

    fn to_texts(architecture: Architecture, code: &[u8]) -> Vec<[String; 2]> {
        let all = decoded(architecture, 0x401126, code);
        all.iter().map(|i| [i.named(symbol), i.compared(symbol)]).collect()
    }

    #[test]
    fn addresses_of_x86_64() {
        let code = [
            &[0xe8, 0xe5, 0xfe, 0xff, 0xff][..],         // a call of 0x401010
            &[0x48, 0x8d, 0x05, 0xce, 0x2e, 0x00, 0x00], // of rip + 0x2ece, which is 0x404000
            &[0x80, 0x3d, 0xc7, 0xfe, 0xff, 0xff, 0x07], // of rip - 0x139, which is 0x401000
            &[0x48, 0x8b, 0x44, 0xcb, 0x10],             // a place in an object, which is no address
            &[0xff, 0xd0],                               // an indirect call
        ]
        .concat();
        let expected = [
            ["call 401010 <main.run+0x10>", "call  <main.run>"],
            ["lea 0x2ece(%rip),%rax  # 404000 <main.table>", "lea (%rip),%rax <main.table>"],
            ["cmpb $0x7,-0x139(%rip)  # 401000 <main.run>", "cmpb $0x7,(%rip) <main.run>"],
            ["mov 0x10(%rbx,%rcx,8),%rax", "mov 0x10(%rbx,%rcx,8),%rax"],
            ["call *%rax", "call *%rax"],
        ];
        assert_eq!(to_texts(Architecture::X86_64, &code), expected.map(|pair| pair.map(str::to_owned)));
    }

    #[test]
    fn addresses_of_arm64() {
        let words: [u32; 10] = [
            0x97ff_ffbb, // a call of 0x401012
            0xf000_0000, // the page of 0x404000,
            0x9100_8000, // and 0x20 added to it,
            0x9100_8000, // and once more, which is no address
            0xf000_0001,
            0xf940_0022, // a load from where the page begins
            0xf000_0001,
            0xf940_0422, // and from behind that
            0xf000_0001,
            0xf940_0442, // from another register, which is no address
        ];
        let expected = [
            ["bl 401012 <main.run+0x12>", "bl  <main.run>"],
            ["adrp x0, 404000", "adrp x0, "],
            ["add x0, x0, #0x20  # 404020 <main.table+0x20>", "add x0, x0 <main.table>"],
            ["add x0, x0, #0x20", "add x0, x0, #0x20"],
            ["adrp x1, 404000", "adrp x1, "],
            ["ldr x2, [x1]  # 404000 <main.table>", "ldr x2, [x1] <main.table>"],
            ["adrp x1, 404000", "adrp x1, "],
            ["ldr x2, [x1, #0x8]  # 404008 <main.table+0x8>", "ldr x2, [x1] <main.table>"],
            ["adrp x1, 404000", "adrp x1, "],
            ["ldr x2, [x2, #0x8]", "ldr x2, [x2, #0x8]"],
        ];
        let code = words.map(u32::to_le_bytes).concat();
        assert_eq!(to_texts(Architecture::Arm64, &code), expected.map(|pair| pair.map(str::to_owned)));
    }

    /// yaxpeax-arm 0.5.0 writes x4, see `correct`.
    #[test]
    fn all_registers_of_msr() {
        assert_eq!(decoded(Architecture::Arm64, 0, &[0x54, 0xd0, 0x1b, 0xd5])[0].to_string(), "msr tpidr_el0, x20");
    }

    /// Also at the end of all addresses, and where an instruction is cut off.
    #[test]
    fn all_bytes_are_something() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for architecture in [Architecture::X86_64, Architecture::Arm64] {
            for _ in 0..20_000 {
                let (bytes, address) = (random().to_le_bytes(), 0u64.wrapping_sub(random() % 16));
                let code = &bytes[..random() as usize % 9];
                let mut at = address;
                for instruction in decoded(architecture, address, code) {
                    assert_eq!(instruction.address, at);
                    at = at.wrapping_add(instruction.len.into());
                    assert!(instruction.compared(|_| None).len() <= instruction.to_string().len());
                    assert!(instruction.to_string().len() < 200 && instruction.to_string().is_ascii());
                }
                assert_eq!(at, address.wrapping_add(code.len() as u64));
            }
        }
        let text = |architecture, code: &[u8]| {
            decoded(architecture, 0, code).iter().map(Instruction::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(Architecture::X86_64, &[0x06, 0x90, 0x48]), ["(bad)", "nop", "(bad)"]);
        assert_eq!(text(Architecture::Arm64, &[0x28, 0, 0, 4, 1, 0xff]), [".inst 0x04000028", ".byte 0x01, 0xff"]);
    }
}
