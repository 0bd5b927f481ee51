//! Finds function names and lines in binaries, for profiles that have only addresses, and the instructions of functions.
//! A profile comes in and leaves with names; listings of instructions take the code. This crate reads no profiles and
//! computes no costs.
//!
//! ```text
//! search (the user's paths, PPROF_BINARY_PATH) -> file (ELF, Mach-O, PE) -> dwarf, symbols, go -> demangle -> profile
//!                                                         (the kernel) -> kallsyms
//!                                                                           -> code -> instructions
//! ```
//!
//! Binaries are untrusted input. Reads of debug information and of Go's tables count against a budget that is
//! proportional to the size of this data (`dwarf::CountedSlice`). Files that a binary names are opened only if they are
//! regular files.

#![warn(missing_debug_implementations)]

#[cfg(feature = "disasm")]
mod code;
mod dwarf;
mod file;
mod go;
#[cfg(feature = "disasm")]
mod image;
#[cfg(feature = "disasm")]
pub mod instructions;
mod kallsyms;
#[cfg(feature = "disasm")]
mod same_code;
mod search;

#[cfg(feature = "disasm")]
pub use code::{Code, Origin};
pub use dwarf::Memory;
pub use file::Binary;
#[doc(hidden)]
pub use pprofdiff_profile::shared::demangled;
#[cfg(feature = "disasm")]
pub use same_code::CodeComparison;
#[doc(hidden)]
pub use search::some_of;
pub use search::{Binaries, Mapped};

pub use pprofdiff_profile::shared::{FoundLine, Text};
