//! Kernel functions from a copy of `/proc/kallsyms`. The copy is valid only for profiles of the same boot, because the
//! kernel has another address after the next boot.
//!
//! ```text
//! ffffffff81000130 T entry_SYSCALL_64_after_hwframe
//! ffffffffc0000000 t read_some    [module]
//! ```

use super::file::{Symbol, Symbols};
use pprofdiff_profile::cancellation::checkpointed;

/// Parses a line into its address, type and name.
fn parts(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let address = words.next().filter(|word| word.len() <= 16)?;
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    match words.next()? {
        &[kind] => Some((address, kind, words.next()?)),
        _ => None,
    }
}

/// Returns true if the first line is a symbol in the kernel's half of the address space, or at address 0, which the
/// kernel writes for all symbols if it hides their addresses (kptr_restrict).
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let first = bytes[..bytes.len().min(1024)].split(|&b| b == b'\n').next().and_then(parts);
    first.is_some_and(|(address, kind, _)| kind.is_ascii_alphabetic() && (address == 0 || address >> 63 != 0))
}

/// Returns the functions, ordered by address. Skips hidden addresses, which are 0.
pub(super) fn functions(bytes: &[u8]) -> Symbols<'_> {
    let lines = checkpointed(bytes.split(|&b| b == b'\n')).filter_map(parts);
    let functions = lines.filter(|(address, kind, _)| *address != 0 && b"tTwW".contains(kind));
    let mut symbols: Vec<Symbol<'_>> =
        functions.map(|(address, _, name)| Symbol { address, size: 0, name, file: b"" }).collect();
    symbols.sort_by_key(|symbol| symbol.address);
    Symbols(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_module_functions_are_read_by_address() {
        let text = b"ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 d data\nffffffff81000040 t second\n\
                     ffffffffc0000000 t third\t[module]\nnot a line\n0000000000000000 T hidden\n";
        assert!(recognises(text));
        let symbols = functions(text);
        let name = |address| symbols.index(address).map(|i| String::from_utf8_lossy(symbols.0[i].name).into_owned());
        for (address, expected) in [
            (0xffff_ffff_8100_0000, "_stext"),
            (0xffff_ffff_8100_003f, "_stext"),
            (0xffff_ffff_8100_0100, "second"),
            (0xffff_ffff_c000_0001, "third"),
        ] {
            assert_eq!(name(address).as_deref(), Some(expected), "{address:x}");
        }
        assert_eq!(name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(symbols.0.len(), 4);
        for text in [&b"\x7fELF"[..], b"", b"55aa T main\n", b"ffffffff81000000 Tx _text\n", b"ffffffff81000000 T\n"] {
            assert!(!recognises(text), "{text:?}");
        }
        assert!(recognises(b"0000000000000000 T startup_64\n"));
    }
}
