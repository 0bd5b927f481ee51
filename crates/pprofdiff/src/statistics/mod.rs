//! Statistics: what `explain`, `check` and views of several runs know of chance. Formulas only, without profiles.
//!
//! docs/statistics.md says what is assumed, from where it is, and what was measured.
//!
//! Tables bound the part of false rows (Benjamini and Hochberg, 5 %), a check the chance of any (Bonferroni, 1 %): a
//! person reads many rows and looks on, a gate stops a build. Runs of a side are replicates everywhere.

pub(crate) mod counts;
pub(crate) mod distributions;
mod gamma;
pub(crate) mod growth;
pub(crate) mod lines;
pub(crate) mod noise;
pub(crate) mod rank;
pub(crate) mod segments;
pub mod sequential;
