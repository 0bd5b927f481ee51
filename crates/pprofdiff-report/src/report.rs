//! Defines [`Report`], the answer to a request and the only input of a format.

use std::borrow::Cow;
use std::sync::Arc;

use crate::document::Document;
use crate::histories::HistoriesReport;
use crate::table::{LimitUnit, Table};
use pprofdiff::graph::Graph;
use pprofdiff::list::Listing;
use pprofdiff::stacks::Stacks;
use pprofdiff::{Diff, Profile, Summary};
#[cfg(feature = "check")]
use pprofdiff_explain::ExplainedCheck;
use pprofdiff_explain::Explanation;
use pprofdiff_series::fleet::Ranking;

/// The answer to a request. Each format writes the variants that it supports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// Rows, such as frames, edges between callers and callees, label values, or the steps of a series.
    Table(Table),
    /// Whole stacks, and the maximum number of stacks in the table that formats of rows show.
    Stacks(Stacks, usize),
    /// Whole stacks with their labels. Text shows each stack from the leaf.
    Traces(Table),
    /// Source lines or instructions.
    Listing(Listing),
    /// The call graph.
    Graph(Graph),
    /// A document of a crate above this one.
    Document(Box<dyn Document>),
    /// An encoded profile.
    Profile(Vec<u8>),
    /// The metadata of the input files.
    Info(Diff),
    /// The complete content of a profile, and whether it was merged from a diff.
    Raw(Arc<Profile>, bool),
    /// The comments that the profiles contain.
    Comments(Vec<String>),
    /// The outcome of each rule of a check.
    #[cfg(feature = "check")]
    Check(ExplainedCheck),
    /// The explanation of the difference between both sides.
    Explain(Box<Explanation>),
    /// The ranking of many pairs.
    Ranking(Box<Ranking>),
    /// The ranking of several histories of builds.
    Histories(Box<HistoriesReport>),
}

impl Report {
    /// Returns the summary of the report's first sample type. Returns `None` for checks, profiles, metadata,
    /// explanations, complete contents, comments and histories, which have several summaries, keep them elsewhere, or have none, and for
    /// documents that contain their summaries.
    pub fn summary(&self) -> Option<&Arc<Summary>> {
        match self {
            Report::Table(table) | Report::Traces(table) => Some(&table.summary),
            Report::Stacks(stacks, _) => Some(&stacks.summary),
            Report::Listing(listing) => Some(&listing.summary),
            Report::Graph(graph) => Some(&graph.summary),
            Report::Ranking(ranking) => Some(&ranking.summary),
            Report::Document(document) => document.summary(),
            #[cfg(feature = "check")]
            Report::Check(_) => None,
            Report::Profile(_) | Report::Info(_) | Report::Explain(_) | Report::Histories(_) => None,
            Report::Raw(..) | Report::Comments(_) => None,
        }
    }

    /// Returns true if a table or listing has no content. For a view with an expression, this means that no frame or
    /// function matches the expression.
    pub fn matches_nothing(&self) -> bool {
        match self {
            Report::Table(table) if table.kind.limit_unit == LimitUnit::Nodes => table.nodes.shown.is_empty(),
            Report::Table(table) => table.is_empty(),
            Report::Listing(listing) => listing.routines.is_empty(),
            _ => false,
        }
    }

    /// Returns the report as a table: rows, stacks, the causes of an explanation, or the pairs of a ranking. Returns
    /// `None` for all other reports.
    pub fn table(&self) -> Option<Cow<'_, Table>> {
        match self {
            Report::Table(table) | Report::Traces(table) => Some(Cow::Borrowed(table)),
            Report::Stacks(stacks, max_rows) => Some(Cow::Owned(Table::stacks(stacks, *max_rows))),
            Report::Explain(explanation) => Some(Cow::Owned(Table::causes(explanation))),
            Report::Ranking(ranking) => {
                Some(Cow::Owned(Table::ranked_pairs(ranking).head(ranking.rows.unwrap_or(usize::MAX))))
            }
            _ => None,
        }
    }
}
