//! Arguments that select the profiles of both sides, and the rows of a table with their order.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pprofdiff::Sort;

/// The profiles of two sides, or a single profile.
#[derive(Args)]
pub struct SideArgs {
    /// BASE and NEW, or one FILE: files, URLs, `-` for stdin
    #[arg(value_name = "FILE|URL", num_args = 0..=2)]
    pub files: Vec<PathBuf>,
    /// Files of the base; several files are runs of the same program
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "files")]
    pub base: Vec<PathBuf>,
    /// Files of the new side; several files are runs
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "files")]
    pub new: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    Flat,
    Cum,
}

impl From<SortBy> for Sort {
    fn from(by: SortBy) -> Sort {
        match by {
            SortBy::Flat => Sort::Flat,
            SortBy::Cum => Sort::Cum,
        }
    }
}

/// The rows that a table shows.
#[derive(Args)]
pub struct RowArgs {
    /// Rows to show, 0 for all [default: 20 in text and Markdown]
    #[arg(short = 'n', value_name = "N")]
    pub n: Option<usize>,
    /// Order by the change in flat (own cost) or cum (cost with callees)
    #[arg(long, value_enum, value_name = "flat|cum", hide_possible_values = true)]
    pub sort: Option<SortBy>,
}

impl RowArgs {
    pub fn sort(&self) -> Sort {
        self.sort.map_or(Sort::default(), Sort::from)
    }

    /// Returns the maximum number of rows: `-n` (0 means all), or else `usual`.
    pub fn limit(&self, usual: Option<usize>) -> Option<usize> {
        self.n.or(usual).filter(|&n| n > 0)
    }
}
