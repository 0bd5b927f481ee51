//! The requests that formats answer: for each kind of picture, another view or granularity of the query. A request gets
//! here only if its view lists the form of the format.

use crate::request::Request;
pub use crate::view::Form;
use crate::view::View;
use pprofdiff::Granularity;
use pprofdiff::graph::{GraphOptions, Rank};

/// Returns the request that formats of whole stacks answer: all stacks of the query.
pub(crate) fn all_stacks(request: &Request) -> Request {
    request.asking(View::Stacks { by_labels: false, limit: None })
}

/// Returns the request that formats of profiles answer: the diff as a profile.
pub(crate) fn profile(request: &Request) -> Request {
    match request.view {
        View::Profile(_) => request.clone(),
        _ => request.asking(View::Profile(Default::default())),
    }
}

/// Returns the request that pictures of the call graph answer: the call graph of the query.
pub(crate) fn graph(request: &Request) -> Request {
    match request.view {
        View::Graph(_) => request.clone(),
        _ => request.asking(View::Graph(Default::default())),
    }
}

/// Returns the request that formats of whole call graphs answer: all calls between addresses.
pub(crate) fn whole_graph(request: &Request) -> Request {
    let query = request.query.clone().with_granularity(Granularity::Addresses).with_no_inlines(false);
    let whole = GraphOptions::default()
        .with_node_count(0)
        .with_node_fraction(0.0)
        .with_edge_fraction(0.0)
        .with_rank(Rank::Flat);
    Request { query, view: View::Graph(whole) }
}
