//! What a request is answered with, and all that formats know.

use std::borrow::Cow;
use std::sync::Arc;

#[cfg(feature = "html")]
use crate::page::Page;
use crate::table::{Counted, Table};
#[cfg(feature = "check")]
use pprofdiff::check::Check;
use pprofdiff::explain::Explanation;
use pprofdiff::fleet::Ranking;
use pprofdiff::graph::Graph;
use pprofdiff::list::Listing;
use pprofdiff::stacks::Stacks;
use pprofdiff::{Diff, Profile, Summary};

/// An answer. Formats write it, each what it can show.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// Rows: frames, callers and callees, labels, builds.
    Table(Table),
    /// Whole stacks, of which tables show the first so many.
    Stacks(Stacks, usize),
    /// Whole stacks with their labels: a table of stacks that people read from the leaf.
    Traces(Table),
    /// Source lines, or instructions.
    Listing(Listing),
    /// The call graph.
    Graph(Graph),
    /// A page for a browser.
    #[cfg(feature = "html")]
    Page(Page),
    /// A profile's bytes.
    Profile(Vec<u8>),
    /// What is in the files.
    Info(Diff),
    /// All of a profile; true if it was merged.
    Raw(Arc<Profile>, bool),
    /// The comments of the profiles.
    Comments(Vec<String>),
    /// What became of the rules of a check.
    #[cfg(feature = "check")]
    Check(Check),
    /// Why the sides differ.
    Explain(Box<Explanation>),
    /// What many pairs come to.
    Ranking(Box<Ranking>),
}

impl Report {
    /// What it is of, where it is of one sample type.
    pub fn summary(&self) -> Option<&Arc<Summary>> {
        match self {
            Report::Table(table) | Report::Traces(table) => Some(&table.summary),
            Report::Stacks(stacks, _) => Some(&stacks.summary),
            Report::Listing(listing) => Some(&listing.summary),
            Report::Graph(graph) => Some(&graph.summary),
            Report::Ranking(ranking) => Some(&ranking.summary),
            #[cfg(feature = "html")]
            Report::Page(_) => None,
            #[cfg(feature = "check")]
            Report::Check(_) => None,
            Report::Profile(_) | Report::Info(_) | Report::Explain(_) => None,
            Report::Raw(..) | Report::Comments(_) => None,
        }
    }

    /// True if an expression was given, and no frame or function matches it.
    pub fn matches_nothing(&self) -> bool {
        match self {
            Report::Table(table) if table.kind.counted == Counted::Nodes => table.nodes.shown.is_empty(),
            Report::Table(table) => table.is_empty(),
            Report::Listing(listing) => listing.routines.is_empty(),
            _ => false,
        }
    }

    /// As a table, where it is one.
    pub fn table(&self) -> Option<Cow<'_, Table>> {
        match self {
            Report::Table(table) | Report::Traces(table) => Some(Cow::Borrowed(table)),
            Report::Stacks(stacks, most) => Some(Cow::Owned(Table::stacks(stacks, *most))),
            Report::Explain(explanation) => Some(Cow::Owned(Table::causes(explanation))),
            Report::Ranking(ranking) => {
                Some(Cow::Owned(Table::ranked_pairs(ranking).head(ranking.rows.unwrap_or(usize::MAX))))
            }
            _ => None,
        }
    }
}
