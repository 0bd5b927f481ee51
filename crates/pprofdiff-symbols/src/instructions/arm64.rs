//! Decodes and formats arm64 instructions with yaxpeax-arm. Conditions are `hs` and `lo` as in LLVM's objdump; GNU's
//! objdump writes `cs` and `cc`. The decoder does not support SVE, SME and some extensions since Armv8.6; they are
//! written as `.inst`.
//!
//! An address takes two instructions: `adrp` computes its page, and a later instruction adds the offset in the page or
//! loads from there. Go always keeps the two together, and C compilers do in two thirds of the cases (measured with
//! numpy 2.5). The page of a register is known until another instruction writes the register, and at most until the next
//! unconditional branch.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand, SizeCode};

use super::Instruction;

/// The address of the page in each register, if `adrp` computed it.
type Pages = [Option<u64>; 32];

pub(super) fn decode(address: u64, code: &[u8], mut each: impl FnMut(Instruction)) {
    let decoder = InstDecoder::default();
    let mut pages: Pages = [None; 32];
    let mut instruction_address = address;
    for bytes in code.chunks(4) {
        let decoded = decoder.decode(&mut U8Reader::new(bytes)).ok().filter(|d| d.opcode != Opcode::Invalid);
        let word = bytes.try_into().map(u32::from_le_bytes);
        each(match (word, decoded) {
            (Ok(word), Some(mut decoded)) => {
                correct(&mut decoded, word);
                let mut instruction = Instruction::new(instruction_address, 4, decoded.to_string());
                instruction.is_padding = instruction.text == "nop";
                find_target(&mut instruction, &decoded, &pages);
                update(&mut pages, &instruction, &decoded);
                instruction
            }
            (Ok(word), None) => Instruction::new(instruction_address, 4, format!(".inst {word:#010x}")),
            (Err(_), _) => {
                let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
                Instruction::new(instruction_address, bytes.len(), format!(".byte {}", bytes.join(", ")))
            }
        });
        instruction_address = instruction_address.wrapping_add(4);
    }
}

/// Corrects the general register of `msr`: yaxpeax-arm 0.5.0 reads only four of its five bits.
fn correct(decoded: &mut Decoded, word: u32) {
    if let (Opcode::MSR, [Operand::SystemReg(_), Operand::Register(..), ..]) = (decoded.opcode, decoded.operands) {
        decoded.operands[1] = Operand::Register(SizeCode::X, (word & 31) as u16);
    }
}

/// Sets the instruction's target and the address in its text.
fn find_target(instruction: &mut Instruction, decoded: &Decoded, pages: &Pages) {
    if let Some(target) = relative_target(instruction, decoded) {
        // The address is the last operand.
        let start = instruction.text.find('$').unwrap_or(instruction.text.len());
        instruction.text.truncate(start);
        instruction.text += &format!("{target:x}");
        instruction.relative = start..instruction.text.len();
        let is_page = decoded.opcode == Opcode::ADRP;
        instruction.target = (!is_page).then_some(target);
        return;
    }
    let page = |register: u16| pages.get(usize::from(register)).copied().flatten();
    let found = match (decoded.opcode, decoded.operands) {
        (Opcode::ADD, [_, Operand::RegisterOrSP(SizeCode::X, from), Operand::Immediate(offset), _]) => {
            page(from).map(|page| (page, i64::from(offset)))
        }
        (_, operands) => operands.iter().find_map(|operand| match operand {
            Operand::RegPreIndex(from, offset, false) => page(*from).map(|page| (page, i64::from(*offset))),
            _ => None,
        }),
    };
    let Some((page, offset)) = found else { return };
    // The offset is `, #0x2a6`, at the end or inside the brackets. A load does not write an offset of 0.
    let brackets = instruction.text.rfind('[').unwrap_or(0);
    let end = instruction.text.rfind(']').unwrap_or(instruction.text.len());
    instruction.relative = instruction.text[brackets..end].rfind(", #").map_or(end, |offset| brackets + offset)..end;
    instruction.target = Some(page.wrapping_add_signed(offset));
    instruction.loaded_bytes = loaded_bytes(&instruction.text);
}

/// Returns the address that the instruction computes from its own address.
fn relative_target(instruction: &Instruction, decoded: &Decoded) -> Option<u64> {
    let operands = decoded.operands;
    let offset = operands.iter().find_map(|o| if let Operand::PCOffset(offset) = o { Some(*offset) } else { None })?;
    let from = if decoded.opcode == Opcode::ADRP { instruction.address & !0xfff } else { instruction.address };
    Some(from.wrapping_add_signed(offset))
}

/// Returns the number of bytes that a load or a store of one register accesses, or 0 for other instructions.
fn loaded_bytes(text: &str) -> u8 {
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    match (operation, operands.bytes().next()) {
        ("ldrb" | "ldrsb" | "strb", _) | ("ldr" | "str", Some(b'b')) => 1,
        ("ldrh" | "ldrsh" | "strh", _) | ("ldr" | "str", Some(b'h')) => 2,
        ("ldrsw", _) | ("ldr" | "str", Some(b'w' | b's')) => 4,
        ("ldr" | "str", Some(b'x' | b'd')) => 8,
        ("ldr" | "str", Some(b'q')) => 16,
        _ => 0,
    }
}

/// Records the effect of an instruction on the known pages.
fn update(pages: &mut Pages, instruction: &Instruction, decoded: &Decoded) {
    match decoded.opcode {
        // A called function may change the registers that it needs not preserve, and those with its result.
        Opcode::BL | Opcode::BLR => pages[..19].fill(None),
        // The next instruction is reached from elsewhere, with other pages.
        Opcode::B | Opcode::BR | Opcode::RET => pages.fill(None),
        _ => {}
    }
    // Stores do not write their registers, but forgetting a page only leaves an operand without a target.
    for operand in decoded.operands.iter().take(2) {
        let written = match operand {
            Operand::Register(_, register) | Operand::RegisterOrSP(_, register) => Some(*register),
            Operand::RegPreIndex(register, _, true) | Operand::RegPostIndex(register, _) => Some(*register),
            _ => None,
        };
        let is_first = std::ptr::eq(operand, &decoded.operands[0]);
        let is_pair = instruction.text.starts_with("ldp");
        if let Some(register) = written.filter(|_| is_first || is_pair)
            && let Some(page) = pages.get_mut(usize::from(register))
        {
            *page = None;
        }
    }
    if let (Opcode::ADRP, Operand::Register(_, register)) = (decoded.opcode, decoded.operands[0])
        && let Some(page) = pages.get_mut(usize::from(register))
    {
        *page = relative_target(instruction, decoded);
    }
}
