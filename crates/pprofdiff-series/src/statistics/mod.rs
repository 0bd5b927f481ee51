//! The statistics of many builds: lasting changes of level, trends, and the noise between builds. The module contains
//! formulas only, and works on numbers without profiles. docs/statistics.md documents the assumptions and the sources.

pub(crate) mod lines;
pub(crate) mod noise;
pub(crate) mod segments;
