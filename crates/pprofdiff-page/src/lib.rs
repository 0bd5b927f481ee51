//! The interactive HTML pages of a diff, of many builds and of a ranking: single files that make no requests.
//!
//! [`ALL`] adds the format `html` and the views `page` and `courses` to the [`Registry`](pprofdiff_report::Registry) of
//! a frontend. [`page`] builds a page without a request. Measures and explanations flow in from the engine, texts and
//! pictures from `pprofdiff-report`, and a complete file flows out. This crate computes no costs, reads no files except
//! through the engine, and opens no browser.
//!
//! The style sheets, the script and the template in `assets/` run in the browser; `file` puts them into the page.

#![warn(missing_debug_implementations)]

mod columns;
mod file;
mod names;
mod page;
mod page_view;
mod ranking;
mod series;
mod timelines_view;
mod views;

pub use file::{page_hashes, page_style};
pub use page::{Page, PageOptions, page};
pub use page_view::PageView;
pub use timelines_view::TimelinesView;

use pprofdiff::Sort;
use pprofdiff_report::shared::unsupported;
use pprofdiff_report::{Extension, Form, Format, Report, View, to_html_page};
use ranking::ranking_page;

/// The format and the views of this crate.
pub static ALL: Extension = Extension {
    formats: &[(&FORMAT, "speedscope")],
    views: &[(&page_view::VIEW, "profile"), (&timelines_view::VIEW, "values")],
};

static FORMAT: Format = Format {
    name: "html",
    extensions: &["html", "htm"],
    about: "an interactive page: flame graph, table, call graph, source lines, every sample type",
    binary: false,
    limit: None,
    warns: true,
    leaves_out: |_| Vec::new(),
    form: Form::Page,
    asks: |request| match &request.view {
        View::Top { .. } => request.asking(View::extension(PageView::default())),
        View::Shifts { sort, limit, .. } => request.asking(timelines(true, *sort, *limit)),
        View::Movers { sort, limit } => request.asking(timelines(false, *sort, *limit)),
        _ => request.clone(),
    },
    write: |report, out, _| match report {
        Report::Document(page) => page.write(out),
        Report::Listing(listing) => out.write_all(to_html_page(listing).as_bytes()),
        Report::Ranking(ranking) => out.write_all(ranking_page(ranking).as_bytes()),
        _ => Err(unsupported()),
    },
    each: None,
};

fn timelines(lasting: bool, sort: Sort, limit: Option<usize>) -> View {
    View::extension(TimelinesView { lasting, sort, limit, options: PageOptions::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::{ALL, PageView};
    use pprofdiff_report::{Registry, Request, View};

    #[test]
    fn the_page_has_its_place_in_the_lists() {
        let registry = Registry::standard().with(&ALL);
        let formats: Vec<&str> = registry.formats().iter().map(|f| f.name).collect();
        assert_eq!(formats[6..9], ["folded", "html", "speedscope"]);
        let views: Vec<&str> = registry.views().iter().map(|v| v.name).collect();
        let after = |name| views[views.iter().position(|v| *v == name).unwrap() + 1];
        assert_eq!((after("graph"), after("page")), ("page", "profile"));
        assert_eq!((after("shifts"), after("courses")), ("courses", "values"));
        assert_eq!(registry.format_of_path(Path::new("A.HTML")).unwrap().name, "html");
    }

    #[test]
    fn a_request_of_a_page_survives_serialization() {
        let registry = Registry::standard().with(&ALL);
        let mut request = Request::default().asking(View::extension(PageView::default()));
        request.view.downcast_mut::<PageView>().unwrap().options.max_frames = 7;
        let stored = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!(registry.resolve(stored).unwrap(), request);
    }
}

/// Compiles the code examples of docs/rust.md together with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Documents;
