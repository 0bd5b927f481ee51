//! Test program for tests of the engine that do not need their own process.

#![allow(clippy::unwrap_used)]

mod account;
mod architecture;
mod commits;
mod corpus;
mod counted;
mod delta;
mod demangle;
mod dialects;
mod explain;
mod explain_command;
mod explain_faults;
mod explained;
mod flame;
mod fleet;
mod folded;
mod gate;
mod goroutines;
mod instructions;
mod keywords;
mod legacy;
mod malformed;
mod matching;
mod moves;
mod numbers;
mod others;
mod otlp;
mod pictures;
mod properties;
mod prose;
mod released;
mod rules;
mod runs;
mod same_code;
mod sampling;
mod series;
mod shifts;
mod stop;
mod symbols;
mod tag_sides;
mod thresholds_pinned;
mod traces;
mod tree;
mod upgrades;
mod verdict;

// Modules that several tests use: the plain implementation of the engine, and generators.
#[path = "oracle/generate.rs"]
mod generate;
#[path = "oracle/series.rs"]
mod generated_series;
#[path = "oracle/golibrary.rs"]
mod golibrary;
mod oracle;
mod synthetic;
#[path = "oracle/tools.rs"]
mod tools;
