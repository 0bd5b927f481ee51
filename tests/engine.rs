//! Tests of the engine that need no process of their own, as one program.

mod architecture;
mod corpus;
mod delta;
mod flame;
mod malformed;
mod numbers;
mod pictures;
mod properties;
mod series;
mod stored;
mod verdict;
