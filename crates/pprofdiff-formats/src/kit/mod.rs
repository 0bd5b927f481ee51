//! Helpers that several formats share: JSON, base64, lines of text, call trees, call graphs, and budgets for hostile input.

#[cfg(feature = "otlp")]
pub mod base64;
#[cfg(any(feature = "callgrind", feature = "pstats"))]
pub mod calls;
pub mod json;
pub mod lines;
#[cfg(test)]
pub mod mutations;
pub mod tree;
