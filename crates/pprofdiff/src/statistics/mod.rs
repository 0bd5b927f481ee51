//! Statistics: what `explain`, `check` and views of several runs know of chance. Formulas only, without profiles.
//!
//! docs/statistics.md says what is assumed, from where it is, and what was measured.

pub(crate) mod counts;
pub(crate) mod distributions;
mod gamma;
pub(crate) mod growth;
pub(crate) mod noise;
pub(crate) mod rank;
pub(crate) mod segments;
