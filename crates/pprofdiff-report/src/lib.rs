//! The report layer: [`Request`]s for diffs and profiles, the [`Report`]s that answer them, and the formats that write
//! reports.
//!
//! Most reports are a [`Table`]: columns below a header ([`Summary`](pprofdiff::Summary)). Each [`Format`] is one file
//! that reads a report and does not change it. A [`Registry`] lists the formats and views; crates above this one, such as
//! `pprofdiff-page`, add their own.

mod callgraph;
mod chart;
#[cfg(feature = "check")]
mod check;
mod explain;
mod extension;
mod format;
mod html;
#[cfg(feature = "svg")]
mod layout;
mod listing;
mod names;
mod numbers;
mod palette;
mod raw;
mod registry;
mod report;
mod request;
mod schema;
mod series;
mod shown;
mod table;
mod timelines;
mod tokens;
mod view;

#[cfg(feature = "svg")]
use format::svg;
use format::{csv, json, markdown, text};

pub use chart::series_chart;
#[cfg(feature = "check")]
pub use check::exit_code;
pub use csv::CsvOptions;
pub use explain::{INCONCLUSIVE, explain_exit_code, explain_html, explain_line, explain_object, pair_causes};
pub use extension::{AnyView, Document, ExtensionView};
pub use format::dot::dot;
pub use format::folded::folded;
pub use format::speedscope::speedscope;
pub use format::{Each, EachWriter, Format, Item, Style};
pub use json::info_json;
pub use listing::{listing_html, listing_json, listing_text, missing_sources, to_html_page};
pub use registry::{Extension, Registry};
pub use report::Report;
#[cfg(feature = "check")]
pub use request::CheckOptions;
pub use request::Request;
pub use schema::json_schema;
pub use series::{RUNS, builds_json, failed_builds};
#[cfg(feature = "svg")]
pub use svg::svg;
pub use table::{Cell, Column, Cost, Data, Kind, Lists, Measured, Role, RunStatistic, Table, Texts};
pub use text::{TextOptions, info};
pub use timelines::series_html;
pub use tokens::{text_head, tokens};
pub use view::{MatchTarget, ShownBy, Takes, View, ViewContext, ViewInput, ViewOptions, ViewSpec};

/// Parts of texts and pictures that crates above this one also need.
#[doc(hidden)]
pub mod shared {
    pub use crate::explain::{ACCOUNT_STYLE, explain_panel, nearest_cause, whole_changed};
    #[cfg(feature = "svg")]
    pub use crate::format::svg::svg_within;
    pub use crate::format::text::inputs;
    pub use crate::format::unsupported;
    pub use crate::html::{escape, escape_ours};
    #[cfg(feature = "svg")]
    pub use crate::layout::LayoutBudget;
    pub use crate::listing::push_routines;
    pub use crate::numbers::{
        CostFormat, counted, counted_of, extent, growth, share, share_text, signed, total, whole,
    };
    pub use crate::palette::{LESS, MORE, Shades, Tone, hex};
    pub use crate::series::extent as builds_extent;
    pub use crate::timelines::{FrameTimeline, LASTING, Timelines};
    pub use crate::view::ranking::head as ranking_head;
}

/// Compiles the code examples of the README and of docs/rust.md together with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/rust.md")]
struct Documents;
