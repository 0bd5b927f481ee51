//! Instructions of arm64, decoded and written by yaxpeax-arm: conditions are `hs` and `lo`, as LLVM's objdump has
//! them, where GNU's has `cs` and `cc`. It does not know SVE, SME and some extensions since Armv8.6, which come out as
//! `.inst`.
//!
//! An address is made in two steps: `adrp` takes its page, the next instruction adds the place in the page or loads
//! from there. Go keeps the two together always, C compilers in two thirds of the cases (measured: numpy 2.5), and
//! only then is the place known to be a part of an address.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand, SizeCode};

use super::Instruction;

/// A register, and the address of the page in it.
type Page = (u16, u64);

pub(super) fn decode(address: u64, code: &[u8], mut each: impl FnMut(Instruction)) {
    let decoder = InstDecoder::default();
    let mut page: Option<Page> = None;
    let mut at = address;
    for bytes in code.chunks(4) {
        let taken = page.take();
        let decoded = decoder.decode(&mut U8Reader::new(bytes)).ok().filter(|d| d.opcode != Opcode::Invalid);
        let word = bytes.try_into().map(u32::from_le_bytes);
        each(match (word, decoded) {
            (Ok(word), Some(mut decoded)) => {
                correct(&mut decoded, word);
                let mut instruction = Instruction::new(at, 4, decoded.to_string());
                page = find_target(&mut instruction, &decoded, taken);
                instruction
            }
            (Ok(word), None) => Instruction::new(at, 4, format!(".inst {word:#010x}")),
            (Err(_), _) => {
                let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
                Instruction::new(at, bytes.len(), format!(".byte {}", bytes.join(", ")))
            }
        });
        at = at.wrapping_add(4);
    }
}

/// yaxpeax-arm 0.5.0 reads only four of the five bits of this register.
fn correct(decoded: &mut Decoded, word: u32) {
    if let (Opcode::MSR, [Operand::SystemReg(_), Operand::Register(..), ..]) = (decoded.opcode, decoded.operands) {
        decoded.operands[1] = Operand::Register(SizeCode::X, (word & 31) as u16);
    }
}

/// Also the page that the next instruction may add to.
fn find_target(instruction: &mut Instruction, decoded: &Decoded, page: Option<Page>) -> Option<Page> {
    let operands = decoded.operands;
    let offset = operands.iter().find_map(|o| if let Operand::PCOffset(offset) = o { Some(*offset) } else { None });
    if let Some(offset) = offset {
        let is_page = decoded.opcode == Opcode::ADRP;
        let from = if is_page { instruction.address & !0xfff } else { instruction.address };
        let target = from.wrapping_add_signed(offset);
        // It is the last operand.
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
    let place = match (decoded.opcode, operands) {
        (Opcode::ADD, [_, Operand::RegisterOrSP(SizeCode::X, from), Operand::Immediate(place), _])
            if from == register =>
        {
            i64::from(place)
        }
        _ => operands.iter().find_map(|operand| match operand {
            Operand::RegPreIndex(from, place, false) if *from == register => Some(i64::from(*place)),
            _ => None,
        })?,
    };
    // `, #0x2a6`, at the end or in the brackets; a load does not write a place of 0.
    let brackets = instruction.text.rfind('[').unwrap_or(0);
    let end = instruction.text.rfind(']').unwrap_or(instruction.text.len());
    instruction.relative = instruction.text[brackets..end].rfind(", #").map_or(end, |place| brackets + place)..end;
    instruction.target = Some(page.wrapping_add_signed(place));
    None
}
