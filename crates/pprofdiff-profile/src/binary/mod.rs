//! Names and lines from binaries, for profiles that have addresses only.
//!
//! ```text
//! search (what the user names, PPROF_BINARY_PATH) -> file (ELF, Mach-O, PE) -> dwarf, symbols, go -> demangle -> profile
//! ```
//!
//! Binaries are hostile input like any other: everything that is read of them is counted against a budget that follows
//! from their size (`dwarf`), and files that they name are opened only if they are regular files.

mod demangle;
mod dwarf;
mod file;
mod go;
pub mod instructions;
mod search;

#[doc(hidden)]
pub use demangle::demangled;
pub use file::Binary;
pub use search::Binaries;
