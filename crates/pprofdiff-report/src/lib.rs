//! The report layer: [`Request`]s for diffs and profiles, the [`Report`]s that answer them, and the formats that write
//! reports.
//!
//! Most reports are a [`Table`]: columns below a header ([`Summary`](pprofdiff::Summary)). Each [`Format`] is one file
//! that reads a report and does not change it. A [`Registry`] lists the formats and views; crates above this one, such as
//! `pprofdiff-page`, add their own.

#![warn(missing_debug_implementations)]

mod budget;
mod callgraph;
mod chart;
#[cfg(feature = "check")]
mod check;
mod document;
mod explain;
mod format;
mod fragment;
mod histories;
mod html;
mod json;
#[cfg(feature = "svg")]
mod layout;
mod listing;
mod markdown;
mod names;
mod next_step;
mod numbers;
mod palette;
mod ranking;
mod raw;
mod refusals;
mod registry;
mod report;
mod request;
mod rows;
#[cfg(feature = "schema")]
mod schema;
mod series;
mod shown;
mod shows;
mod similar;
mod style;
mod table;
mod text;
mod timelines;
mod tokens;
mod traces;
mod view;

pub use budget::{MIN_BUDGET, PairsText, TokenBudget, text_head};
pub use chart::series_chart;
#[cfg(feature = "check")]
pub use check::{AcceptedFindings, accepted_findings, exit_code};
pub use document::Document;
pub use explain::{
    answer_lines, cause_sentence, explain_exit_code, explain_html, explain_line, explain_object, pair_causes,
    shown_commands,
};
pub use format::csv::{CsvOptions, key_column};
pub use format::dot::dot;
#[cfg(feature = "svg")]
pub use format::flamegraph::flamegraph;
pub use format::folded::folded;
pub use format::json::info_json;
pub use format::speedscope::speedscope;
#[cfg(feature = "svg")]
pub use format::svg::svg;
pub use format::text::info;
pub use format::{Each, Format, Item};
pub use histories::{HistoriesReport, HistoryRow};
pub use listing::{listing_html, listing_json, listing_text, missing_sources, to_html_page};
pub use next_step::NextStep;
pub use refusals::GivenOptions;
pub use registry::{EachWriter, Extension, Registry};
pub use report::Report;
pub use request::Request;
#[cfg(feature = "schema")]
pub use schema::json_schema;
pub use series::{RUNS, builds_json, failed_builds};
pub use style::Style;
pub use table::{Cell, Column, Cost, Data, Kind, Lists, Measured, Role, RunStatistic, Table, Texts};
pub use text::TextOptions;
pub use timelines::series_html;
pub use tokens::tokens;
#[cfg(feature = "check")]
pub use view::check::CheckOptions;
pub use view::extension::{AnyView, ExtensionView};
pub use view::{Form, MatchTarget, RowLimit, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};

/// Parts of texts and pictures that crates above this one also need.
#[doc(hidden)]
pub mod shared {
    #[cfg(feature = "check")]
    pub use crate::check::RuleLines;
    pub use crate::explain::{ACCOUNT_STYLE, OPS, explain_panel, nearest_cause};
    #[cfg(feature = "svg")]
    pub use crate::format::svg::svg_within;
    pub use crate::format::unsupported;
    pub use crate::html::{escape, escape_ours};
    #[cfg(feature = "svg")]
    pub use crate::layout::LayoutBudget;
    pub use crate::listing::{code_words, push_routines};
    pub use crate::numbers::{
        CostFormat, counted, counted_of, extent, growth, share, share_text, signed, total, whole,
    };
    pub use crate::palette::{LESS, MORE, Shades, Tone, hex};
    pub use crate::ranking::head as ranking_head;
    pub use crate::series::extent as builds_extent;
    pub use crate::similar::similar_names;
    pub use crate::text::inputs;
    pub use crate::timelines::{FrameTimeline, LASTING, Timelines};
}

/// Compiles the code examples of the README together with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Documents;
