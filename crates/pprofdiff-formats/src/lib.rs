//! Loads profiles: files, bytes and readers in any supported compression and format become a [`Profile`].
//!
//! ```text
//! open, from_bytes, from_reader -> inflate -> table (profile.proto first, then the format that recognises the content)
//!     -> a reader of a format -> Profile -> demangled names, names from binaries
//! ```
//!
//! Each format is a module with a feature, and `kit` contains what several formats share. Without any of these features,
//! the crate loads profile.proto only. It finds no files: callers name them. It writes nothing.

#![warn(missing_debug_implementations)]

#[cfg(feature = "callgrind")]
mod callgrind;
#[cfg(feature = "chrome")]
mod chrome;
#[cfg(feature = "folded")]
mod dialects;
#[cfg(feature = "firefox")]
mod firefox;
#[cfg(feature = "folded")]
mod folded;
mod folded_header;
#[cfg(feature = "goroutines")]
mod goroutines;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "jfr")]
mod jfr;
// A build with some of the formats leaves helpers of the others unused.
#[cfg_attr(not(feature = "all"), allow(dead_code, unused_imports))]
mod kit;
#[cfg(feature = "legacy")]
mod legacy;
mod load;
#[cfg(all(test, feature = "all"))]
mod oracle;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "perf")]
mod perf_data;
#[cfg(feature = "perf")]
mod perf_script;
#[cfg(feature = "pstats")]
mod pstats;
#[cfg(feature = "speedscope")]
mod speedscope;
#[cfg_attr(not(feature = "all"), allow(dead_code))]
mod table;
#[cfg_attr(not(feature = "all"), allow(dead_code))]
mod unsupported;

#[doc(hidden)]
pub use folded_header::FoldedHeader;
pub use load::{LoadOptions, from_bytes, from_reader, open};
pub use pprofdiff_profile::Profile;
pub use table::InputFormat;
