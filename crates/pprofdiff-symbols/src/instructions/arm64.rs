//! Decodes and formats arm64 instructions with yaxpeax-arm. Conditions are `hs` and `lo` as in LLVM's objdump; GNU's
//! objdump writes `cs` and `cc`. The decoder does not support SVE, SME and some extensions since Armv8.6; they are
//! written as `.inst`.
//!
//! An address takes two instructions: `adrp` computes its page, and the next instruction adds the offset in the page or
//! loads from there. Go always keeps the two together, and C compilers do in two thirds of the cases (measured with
//! numpy 2.5). Only adjacent instructions are recognized as an address.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand, SizeCode};

use super::Instruction;

/// A register and the address of the page in it.
type RegisterPage = (u16, u64);

pub(super) fn decode(address: u64, code: &[u8], mut each: impl FnMut(Instruction)) {
    let decoder = InstDecoder::default();
    let mut page: Option<RegisterPage> = None;
    let mut instruction_address = address;
    for bytes in code.chunks(4) {
        let previous_page = page.take();
        let decoded = decoder.decode(&mut U8Reader::new(bytes)).ok().filter(|d| d.opcode != Opcode::Invalid);
        let word = bytes.try_into().map(u32::from_le_bytes);
        each(match (word, decoded) {
            (Ok(word), Some(mut decoded)) => {
                correct(&mut decoded, word);
                let mut instruction = Instruction::new(instruction_address, 4, decoded.to_string());
                page = find_target(&mut instruction, &decoded, previous_page);
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

/// Sets the instruction's target and the address in its text. `page` is the result of the previous instruction if that
/// is `adrp`. Returns the register and the page if this instruction is `adrp`.
fn find_target(instruction: &mut Instruction, decoded: &Decoded, page: Option<RegisterPage>) -> Option<RegisterPage> {
    let operands = decoded.operands;
    let offset = operands.iter().find_map(|o| if let Operand::PCOffset(offset) = o { Some(*offset) } else { None });
    if let Some(offset) = offset {
        let is_page = decoded.opcode == Opcode::ADRP;
        let from = if is_page { instruction.address & !0xfff } else { instruction.address };
        let target = from.wrapping_add_signed(offset);
        // The address is the last operand.
        let start = instruction.text.find('$').unwrap_or(instruction.text.len());
        instruction.text.truncate(start);
        instruction.text += &format!("{target:x}");
        instruction.relative = start..instruction.text.len();
        return match operands[0] {
            Operand::Register(_, register) if is_page => Some((register, target)),
            _ => {
                instruction.target = Some(target);
                None
            }
        };
    }
    let (register, page) = page?;
    let offset = match (decoded.opcode, operands) {
        (Opcode::ADD, [_, Operand::RegisterOrSP(SizeCode::X, from), Operand::Immediate(offset), _])
            if from == register =>
        {
            i64::from(offset)
        }
        _ => operands.iter().find_map(|operand| match operand {
            Operand::RegPreIndex(from, offset, false) if *from == register => Some(i64::from(*offset)),
            _ => None,
        })?,
    };
    // The offset is `, #0x2a6`, at the end or inside the brackets. A load does not write an offset of 0.
    let brackets = instruction.text.rfind('[').unwrap_or(0);
    let end = instruction.text.rfind(']').unwrap_or(instruction.text.len());
    instruction.relative = instruction.text[brackets..end].rfind(", #").map_or(end, |offset| brackets + offset)..end;
    instruction.target = Some(page.wrapping_add_signed(offset));
    None
}
