//! Test program for the tests of the command.

mod agents;
mod baseline;
mod batch;
mod bench;
mod buckets;
mod builds;
mod check;
mod cli;
mod files;
mod hostile;
#[cfg(feature = "store")]
mod kept;
mod layout;
mod live;
mod pprof_compat;
mod reading;
mod readme;
mod rows;
mod servers;
#[cfg(feature = "store")]
mod store;
mod times;
