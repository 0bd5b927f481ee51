//! Decodes and formats x86-64 instructions with iced-x86.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Mnemonic, OpKind};

use super::Instruction;

/// Creates a formatter with the format of GNU objdump: lowercase hexadecimal, no spaces between operands, and
/// `0x0(%rax)` if the code has a zero displacement. iced still differs in some cases: it omits prefixes without effect
/// and a scale of 1, and writes the operand of a shift by one.
fn formatter() -> GasFormatter {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_show_zero_displacements(true);
    options.set_signed_immediate_operands(false);
    options.set_rip_relative_addresses(true);
    formatter
}

pub(super) fn decode(address: u64, code: &[u8], mut each: impl FnMut(Instruction)) {
    let mut formatter = formatter();
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut decoded = iced_x86::Instruction::default();
    while decoder.can_decode() {
        let (start, instruction_address) = (decoder.position(), decoder.ip());
        decoder.decode_out(&mut decoded);
        if decoded.is_invalid() {
            // In data, any byte may start an instruction, so decoding skips only one byte.
            each(Instruction::new(instruction_address, 1, "(bad)".to_owned()));
            if decoder.set_position(start + 1).is_err() {
                return;
            }
            decoder.set_ip(instruction_address.wrapping_add(1));
            continue;
        }
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        let mut instruction = Instruction::new(instruction_address, decoded.len(), text);
        // Without a register, `66 90` and its longer forms are decoded as `nop`; `xchg %ax,%ax` is another form.
        instruction.is_padding = decoded.mnemonic() == Mnemonic::Nop || instruction.text == "xchg %ax,%ax";
        find_target(&mut instruction, &decoded);
        each(instruction);
    }
}

fn find_target(instruction: &mut Instruction, decoded: &iced_x86::Instruction) {
    let text = &instruction.text;
    if matches!(decoded.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64) {
        // The target is the only operand.
        let start = text.rfind(' ').map_or(text.len(), |blank| blank + 1);
        let target = decoded.near_branch_target();
        instruction.text = format!("{}{target:x}", &text[..start]);
        instruction.relative = start..instruction.text.len();
        instruction.target = Some(target);
    } else if decoded.is_ip_rel_memory_operand()
        && let Some(end) = text.find("(%rip").or_else(|| text.find("(%eip"))
    {
        let is_number = |c: char| c.is_ascii_hexdigit() || c == 'x' || c == '-';
        instruction.relative = text[..end].rfind(|c| !is_number(c)).map_or(0, |before| before + 1)..end;
        instruction.target = Some(decoded.ip_rel_memory_address());
        let is_address = matches!(decoded.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
        instruction.loaded_bytes = if is_address { 0 } else { decoded.memory_size().size().min(255) as u8 };
    }
}
