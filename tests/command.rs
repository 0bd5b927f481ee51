//! Tests of the command, as one program.

mod batch;
mod builds;
mod cli;
mod files;
mod gate;
mod hostile;
mod live;
mod reading;
mod readme;
