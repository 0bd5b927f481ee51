//! The page that compares the profiles dropped on it. [`Session`] is its engine: in a browser as WebAssembly, and behind
//! `pprofdiff serve`. [`index`], [`style`], [`ASSETS`] and [`WORKER`] are its files; `bundle/` puts them into a folder.

mod assets;
mod session;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod wasm;

pub use assets::{ASSETS, Asset, Engine, WORKER, index, style};
pub use session::{Question, Session, Sides, choices};
