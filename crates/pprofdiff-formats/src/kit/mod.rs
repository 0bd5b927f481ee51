//! Helpers that several formats share: JSON, base64, lines of text, call trees, and budgets for hostile input.

#[cfg(feature = "otlp")]
pub mod base64;
pub mod json;
pub mod lines;
pub mod tree;
