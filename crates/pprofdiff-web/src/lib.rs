//! The page that compares the profiles dropped on it. [`Session`] is its engine: in a browser as WebAssembly, and behind
//! `pprofdiff serve`. [`index`], [`style`], [`ASSETS`] and [`WORKER`] are its files; `bundle/` puts them into a folder.
//!
//! One session, two engines, which answer the same few operations. A report does not hold the module: with two profiles
//! of 50,000 samples it would be 8.7 MB instead of 3.0, and show nothing for seconds.
//!
//! The report stays one file, saved, dropped or served: this page shows it in a frame and asks for another whole one,
//! so nothing of it is written twice.

mod assets;
mod session;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod wasm;

pub use assets::{ASSETS, Asset, Engine, WORKER, index, style};
pub use session::{Question, Session, Sides, choices};
