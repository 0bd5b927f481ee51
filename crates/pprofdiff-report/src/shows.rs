//! The views that formats show: for each kind of format, the request that it answers instead of a given one. This is
//! usually the same request, sometimes another view or granularity of the same query, and `None` if the format cannot
//! answer the request.

use crate::request::Request;
use crate::view::{ShownBy, View};
use pprofdiff::Granularity;
use pprofdiff::graph::{GraphOptions, Rank};

/// Returns the request that text answers: the same request, or `None` if text does not show the view.
pub(crate) fn text(request: &Request) -> Option<Request> {
    (request.view.spec().shown_by >= ShownBy::Text).then(|| request.clone())
}

/// Returns the request that JSON answers: the same request, or `None` if JSON does not show the view.
pub(crate) fn json(request: &Request) -> Option<Request> {
    (request.view.spec().shown_by >= ShownBy::Json).then(|| request.clone())
}

/// Returns the request that formats of rows answer: the same request, or `None` if the view is not shown as rows.
pub(crate) fn rows(request: &Request) -> Option<Request> {
    (request.view.spec().shown_by == ShownBy::Rows).then(|| request.clone())
}

/// Returns the request that Markdown answers: checks, explanations, and views that are shown as rows.
pub(crate) fn findings_or_rows(request: &Request) -> Option<Request> {
    match request.view {
        #[cfg(feature = "check")]
        View::Check(_) => Some(request.clone()),
        View::Explain(_) => Some(request.clone()),
        _ => rows(request),
    }
}

/// Returns the request that formats of findings answer: the same request, or `None` if the view is not a check.
#[cfg(feature = "check")]
pub(crate) fn checks(request: &Request) -> Option<Request> {
    matches!(request.view, View::Check(_)).then(|| request.clone())
}

/// Returns the request that formats of whole stacks answer: all stacks of the query, for the views `top` and `stacks`
/// without a row limit. Returns `None` for other views, for significant rows, for stacks separated by labels, and for
/// several sample types.
pub(crate) fn all_stacks(request: &Request) -> Option<Request> {
    match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { limit: None, significant: false, .. } | View::Stacks { by_labels: false, limit: None } => {
            Some(request.asking(View::Stacks { by_labels: false, limit: None }))
        }
        _ => None,
    }
}

/// Returns the request that formats of profiles answer: the diff as a profile, for this view and for the views of
/// [`all_stacks`].
pub(crate) fn profile(request: &Request) -> Option<Request> {
    match request.view {
        View::Profile(_) => Some(request.clone()),
        _ => all_stacks(request).map(|request| request.asking(View::Profile(Default::default()))),
    }
}

/// Returns the request that pictures of the call graph answer: the call graph of the query, for the views `top`, `tree`
/// and `graph`. Returns `None` for other views, for significant rows, and for several sample types.
pub(crate) fn graph(request: &Request) -> Option<Request> {
    match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { significant: false, .. } | View::Tree { .. } => {
            Some(request.asking(View::Graph(Default::default())))
        }
        View::Graph(_) => Some(request.clone()),
        _ => None,
    }
}

/// Returns the request that formats of whole call graphs answer: all calls between addresses, for the views `top` and
/// `tree` without a row limit. Returns `None` for other views, for significant rows, and for several sample types.
pub(crate) fn whole_graph(request: &Request) -> Option<Request> {
    match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { limit: None, significant: false, .. } | View::Tree { limit: None, .. } => {
            let query = request.query.clone().with_granularity(Granularity::Addresses).with_no_inlines(false);
            let whole = GraphOptions::default()
                .with_node_count(0)
                .with_node_fraction(0.0)
                .with_edge_fraction(0.0)
                .with_rank(Rank::Flat);
            Some(Request { query, view: View::Graph(whole) })
        }
        _ => None,
    }
}
