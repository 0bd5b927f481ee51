//! Tests of the command, as one program.

mod baseline;
mod batch;
mod builds;
mod check;
mod cli;
mod files;
mod habits;
mod hostile;
mod live;
mod reading;
mod readme;
