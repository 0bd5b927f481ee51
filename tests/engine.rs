//! Tests of the engine that need no process of their own, as one program.

#![allow(clippy::unwrap_used)]

mod architecture;
mod corpus;
mod delta;
mod flame;
mod malformed;
mod numbers;
mod pictures;
mod properties;
mod series;
mod verdict;

// What several of them use: the plain version of the engine, and generators.
#[path = "judge/generate.rs"]
mod generate;
#[path = "judge/series.rs"]
mod generated_series;
#[path = "judge/golibrary.rs"]
mod golibrary;
mod judge;
