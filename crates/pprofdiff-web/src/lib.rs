//! The web page that compares profiles dropped on it.
//!
//! [`Session`] is the page's engine. It runs as WebAssembly in a browser, or behind `pprofdiff serve`. The server is in
//! this crate too, with the feature `serve`. [`index`], [`style`], [`ASSETS`] and [`WORKER`] are the page's files, which
//! the example `bundle` writes into a folder.
//!
//! The WebAssembly module and the server both use [`Session`] and support the same few operations.
//!
//! The report stays a single file, whether it is saved or shown. This page shows it in a frame and requests a complete
//! new report for each question, so the report's code exists only once. The report does not contain the
//! WebAssembly module: with two profiles of 50,000 samples, it would be 8.7 MB instead of 3.0 MB, and would show
//! nothing for seconds.

mod assets;
#[cfg(feature = "serve")]
mod serve;
mod session;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod wasm;

pub use assets::{ASSETS, Asset, PageEngine, WORKER, index, style};
#[cfg(feature = "serve")]
pub use serve::{ServeOptions, serve};
pub use session::{Question, Session, SessionSides, choices};
