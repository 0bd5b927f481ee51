//! Reads pprof profiles, checks them, and holds them as columns over one buffer; merges, subtracts and writes them.
//!
//! ```text
//! input (paths, bytes, patterns, manifests) -> format -> profile (one buffer, columns) -> merge, delta -> message -> bytes
//! ```
//!
//! The lowest layer of pprofdiff: nothing here knows how profiles are compared or shown. What most callers need is at
//! the root; the rest is in modules. The crate starts no thread: inside a rayon pool of the caller's it uses that pool,
//! elsewhere it works on the calling thread.

#[doc(hidden)]
pub mod advice;
mod base64;
#[cfg(feature = "binary")]
pub mod binary;
#[doc(hidden)]
pub mod canonical;
pub mod delta;
mod demangle;
mod error;
mod format;
pub mod input;
#[doc(hidden)]
pub mod interner;
#[cfg(feature = "files")]
pub mod output;
#[doc(hidden)]
pub mod parallel;
mod profile;
#[doc(hidden)]
pub mod random;
mod redact;
mod sanitize;
#[cfg(feature = "store")]
pub mod store;
pub mod units;
mod window;
#[doc(hidden)]
pub mod work;

pub use delta::delta;
pub use demangle::Demangle;
pub use error::{Error, ErrorKind, Result};
pub use input::Source;
#[cfg(feature = "proto")]
pub use profile::proto;
pub use profile::{Compression, LoadOptions, Profile, Sampled, WriteOptions, merge, merge_weighted};
pub use profile::{builder, columns, samples};
pub use window::{TimeSplit, TimeWindow};
pub use work::Work;

/// Text of profiles and URLs, made safe to show.
pub mod text {
    pub use crate::redact::{Secrets, redacted};
    pub use crate::sanitize::{is_harmful, sanitize};
}

/// What the crates of pprofdiff share; no part of the API, and free to change.
#[doc(hidden)]
pub mod shared {
    pub use crate::format::FoldedHeader;
    pub use crate::parallel;
    pub use crate::profile::{
        CommonType, Fields, Memo, Merger, Part, Selection, common_types, common_types_of_sides, default_type, pack,
    };
}
