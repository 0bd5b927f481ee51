//! Decodes, validates, merges, subtracts and writes pprof profiles. A profile is a set of columns over one buffer.
//!
//! ```text
//! bytes -> inflate -> profile (one buffer, columns) -> merge, delta -> message -> bytes
//! ```
//!
//! This crate is the lowest layer of pprofdiff. It knows profile.proto and no other format, and it reads no files and no
//! binaries: `pprofdiff-formats` and `pprofdiff-symbols` do. It does not compare or show profiles. The root contains the most common
//! items, and the modules contain the rest. The crate starts no threads: it uses the caller's rayon pool if it runs
//! inside one, and otherwise the calling thread.

#![warn(missing_debug_implementations)]

#[doc(hidden)]
pub mod advice;
#[doc(hidden)]
pub mod cancellation;
#[doc(hidden)]
pub mod canonical;
pub mod delta;
mod demangle;
mod error;
#[doc(hidden)]
pub mod interner;
mod mentions;
#[cfg(feature = "files")]
pub mod output;
#[doc(hidden)]
pub mod parallel;
mod profile;
#[doc(hidden)]
pub mod random;
mod redact;
mod sanitize;
#[doc(hidden)]
pub mod short_lists;
#[doc(hidden)]
pub mod time;
pub mod units;
mod window;

pub use cancellation::Cancellation;
pub use delta::delta;
pub use demangle::Demangle;
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "proto")]
pub use profile::proto;
pub use profile::{Compression, Profile, Sampled, WriteOptions, merge, merge_bytes, merge_weighted};
pub use profile::{builder, columns, samples};
pub use window::{TimeSplit, TimeWindow};

/// Functions that make text from profiles and URLs safe to show.
pub mod text {
    pub use crate::mentions::spell;
    pub use crate::redact::{Secrets, redacted};
    pub use crate::sanitize::{is_harmful, sanitize};
}

/// Items shared among the crates of pprofdiff. They are not part of the API and may change at any time.
#[doc(hidden)]
pub mod shared {
    pub use crate::demangle::demangled;
    pub use crate::parallel;
    pub use crate::profile::wire;
    pub use crate::profile::{
        About, FoundLine, MessageWriter, Symbolizer, Tables, Text, inflate, inflate_file, inflate_slice, is_packed,
        merge_as, unzstd, with_default_type,
    };
    pub use crate::profile::{
        CommonType, Memo, MergePart, MergedFields, Merger, SampleOrder, SampleSelection, common_types,
        common_types_of_sides, default_type, pack,
    };
    pub use crate::time::decimal;
    pub use crate::window::{Events, Timeline};
}
