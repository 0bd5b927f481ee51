//! Names and lines from binaries, for profiles that have addresses only, and the instructions of functions.
//!
//! ```text
//! search (what the user names, PPROF_BINARY_PATH) -> file (ELF, Mach-O, PE) -> dwarf, symbols, go -> demangle -> profile
//!                                                         (the kernel) -> kallsyms
//!                                                                           -> code -> instructions
//! ```
//!
//! Binaries are hostile input like any other: everything that is read of them is counted against a budget that follows
//! from their size (`dwarf`), and files that they name are opened only if they are regular files.

#[cfg(feature = "disasm")]
mod code;
mod dwarf;
mod file;
mod go;
#[cfg(feature = "disasm")]
pub mod instructions;
mod kallsyms;
mod search;

#[doc(hidden)]
pub use crate::demangle::demangled;
#[cfg(feature = "disasm")]
pub use code::{Code, Origin};
pub use dwarf::Memory;
pub use file::Binary;
#[doc(hidden)]
pub use search::some_of;
pub use search::{Binaries, Mapped};

pub use crate::profile::{FoundLine, Text};
