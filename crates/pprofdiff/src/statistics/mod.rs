//! Statistics of `explain`, `check` and the views of several runs. The module contains formulas only, and works on
//! numbers without profiles.
//!
//! docs/statistics.md documents the assumptions, the sources and the measurements.
//!
//! Tables bound the fraction of false rows (Benjamini and Hochberg, 5 %), while a check bounds the probability of any
//! false failure (Bonferroni, 1 %). A person reads many rows and investigates further, while a failed check stops a
//! build. Runs of a side are replicates everywhere.

pub mod counts;
pub mod distributions;
mod gamma;
pub mod growth;
pub mod rank;
pub mod sequential;
pub mod total;
