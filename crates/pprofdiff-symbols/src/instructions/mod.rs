//! Decodes machine code to instructions in the format of `objdump -d`, which `pprof -disasm` runs: AT&T syntax for
//! x86-64.
//!
//! Two builds place the same code and data at different addresses. An instruction therefore marks the part of its text
//! that is an address; the text without this part is equal in both builds. The address is an operand (of a branch), a
//! displacement from the instruction (`0x2acd(%rip)`), or on arm64 a page, with the offset in the page in the next
//! instruction.
//!
//! Every byte is part of the output. Bytes that are not a valid instruction are decoded as data, and decoding continues
//! after them.

mod arm64;
mod x86;

use std::fmt;
use std::ops::Range;

/// A supported processor architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit mode of x86.
    X86_64,
    /// A64, little-endian.
    Arm64,
}

/// An instruction, or bytes that are not an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The address of the instruction.
    pub address: u64,
    /// The length in bytes, from 1 to 15.
    pub len: u8,
    /// The address that the instruction refers to: the destination of a direct branch, or the location of an operand
    /// relative to the instruction. A page on arm64 (`adrp`) has no target, because the start of the page is unrelated
    /// to the data that the code uses.
    pub target: Option<u64>,
    /// The number of bytes that the instruction reads or writes at the target. It is 0 if it only computes the address, and
    /// for branches.
    pub loaded_bytes: u8,
    /// True for an instruction without effect, which aligns the next instruction.
    pub is_padding: bool,
    /// The operation and its operands, in ASCII.
    text: String,
    /// The part of the text that is an address or a part of an address. It is empty if there is none.
    relative: Range<usize>,
}

impl Instruction {
    /// Creates an instruction without an address.
    fn new(address: u64, len: usize, text: String) -> Instruction {
        Instruction { address, len: len as u8, target: None, loaded_bytes: 0, is_padding: false, text, relative: 0..0 }
    }

    /// Returns true for bytes that are not an instruction.
    pub fn is_data(&self) -> bool {
        self.text == "(bad)" || self.text.starts_with(".byte")
    }

    /// Returns true for a direct jump, conditional or not. Calls are no jumps.
    pub fn is_jump(&self) -> bool {
        let operation = self.text.split(' ').next().unwrap_or_default();
        let is_arm =
            operation == "b" || operation.starts_with("b.") || matches!(operation, "cbz" | "cbnz" | "tbz" | "tbnz");
        self.target.is_some() && self.loaded_bytes == 0 && (operation.starts_with('j') || is_arm)
    }

    /// Returns true for instructions that linkers and compilers place between functions.
    pub fn is_filler(&self) -> bool {
        self.is_padding || self.text == "int3" || self.text == ".inst 0x00000000" || self.text == "udf #0x0"
    }

    /// Returns a key that is equal in two builds that differ only in addresses: the text without the address, plus the
    /// name of the symbol at the target if `symbol` has one (as in [`Instruction::named`]).
    pub fn compared<'s>(&self, symbol: impl Fn(u64) -> Option<(&'s str, u64)>) -> String {
        let (before, after) = (&self.text[..self.relative.start], &self.text[self.relative.end..]);
        match self.target.and_then(symbol) {
            Some((name, _)) => format!("{before}{after} <{name}>"),
            None => format!("{before}{after}"),
        }
    }

    /// Returns the text with the symbol at the target: `call 401136 <main.run+0x10>`. If the text contains only a part
    /// of the target, the target and its symbol follow in a comment. `symbol` returns the name of the symbol at an
    /// address and the offset from its start.
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

/// Writes the decoded text without symbols.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Calls `each` with the instructions of the code at `address`, in order. Together they cover all bytes of the code.
///
/// Decoding never fails. Only one instruction is in memory at a time, and its text has less than 200 bytes.
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

    /// `main.run` starts at 0x401000, and `main.table` starts at 0x404000.
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
    fn x86_64_addresses_are_named_and_excluded_from_keys() {
        let code = [
            &[0xe8, 0xe5, 0xfe, 0xff, 0xff][..],         // a call of 0x401010
            &[0x48, 0x8d, 0x05, 0xce, 0x2e, 0x00, 0x00], // loads rip + 0x2ece, which is 0x404000
            &[0x80, 0x3d, 0xc7, 0xfe, 0xff, 0xff, 0x07], // compares the byte at rip - 0x139, which is 0x401000
            &[0x48, 0x8b, 0x44, 0xcb, 0x10],             // an offset in an object, which is not an address
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
    fn arm64_addresses_are_named_and_excluded_from_keys() {
        let words: [u32; 10] = [
            0x97ff_ffbb, // a call of 0x401012
            0xf000_0000, // the page of 0x404000
            0x9100_8000, // adds 0x20 to the page
            0x9100_8000, // adds again, which is not an address
            0xf000_0001,
            0xf940_0022, // a load from the start of the page
            0xf000_0001,
            0xf940_0422, // a load from inside the page
            0xf000_0001,
            0xf940_0442, // a load from another register, which is not an address
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

    /// yaxpeax-arm 0.5.0 writes x4; `correct` fixes it.
    #[test]
    fn msr_decodes_all_registers() {
        assert_eq!(decoded(Architecture::Arm64, 0, &[0x54, 0xd0, 0x1b, 0xd5])[0].to_string(), "msr tpidr_el0, x20");
    }

    /// The code may end inside an instruction, and may be at the end of the address space.
    #[test]
    fn decoding_covers_all_bytes() {
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
                let mut next_address = address;
                for instruction in decoded(architecture, address, code) {
                    assert_eq!(instruction.address, next_address);
                    next_address = next_address.wrapping_add(instruction.len.into());
                    assert!(instruction.compared(|_| None).len() <= instruction.to_string().len());
                    assert!(instruction.to_string().len() < 200 && instruction.to_string().is_ascii());
                }
                assert_eq!(next_address, address.wrapping_add(code.len() as u64));
            }
        }
        let text = |architecture, code: &[u8]| {
            decoded(architecture, 0, code).iter().map(Instruction::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(Architecture::X86_64, &[0x06, 0x90, 0x48]), ["(bad)", "nop", "(bad)"]);
        assert_eq!(text(Architecture::Arm64, &[0x28, 0, 0, 4, 1, 0xff]), [".inst 0x04000028", ".byte 0x01, 0xff"]);
    }
}
