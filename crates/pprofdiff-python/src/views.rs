//! What Profile and Diff have in common: the same views, of one thing or of two.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::{Compression, Granularity, Query, Selection, Sort};
use pprofdiff_report::{Report, Request, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::answers::Content;
use crate::explain::{self, Explanation};
use crate::flamegraph::{self, FlameGraph};
use crate::options::{
    OneOrMore, is_filter, of_sides, page_sources, parse_compression, parse_normalize, parse_sort, set_query, signature,
    source_dirs, take_loading, view_query_by, write_options,
};
use crate::pictures::{CallGraph, Listing};
use crate::profile::{Diff, with_query};
use crate::source::Side;
use crate::table::{ROWS_SHOWN, Table};
use crate::{error, runtime};

/// What Profile and Diff have in common: views, filters, and writing.
///
/// All views take these keywords, as do series() and the tables of batch(); the filters among them are described at
/// filter(). A view to which one has no meaning, such as `unit` to series(), raises PprofError.
#[doc = pprofdiff::query_docs!()]
///
/// Of several sample types the columns of costs are named after their sample type first ("alloc_space_flat_base"), and
/// of two of which one counts there are ratios (flat_ratio_base: bytes an object; float, None where there is none).
///
/// Values are int64 in the sample type's own unit. A question that can't be answered raises PprofError.
#[pyclass(frozen, subclass, module = "pprofdiff")]
pub struct Views {
    pub diff: pprofdiff::Diff,
    /// Filters and normalization; the rest of a question comes with each view.
    pub query: Query,
    /// What was selected last, so that another sample type or view of it interns nothing again.
    pub selected: Arc<Mutex<Option<(Query, Selection)>>>,
    /// The profile, if these are the views of one, unfiltered: it is then written as it is.
    pub profile: Option<Arc<pprofdiff::Profile>>,
}

#[pymethods]
impl Views {
    /// The sample types that all profiles have, as (type, unit): [("alloc_space", "bytes"), ...].
    #[getter]
    fn sample_types(&self) -> Vec<(String, String)> {
        self.diff.sample_types()
    }

    /// The total of the default sample type, before filters: (base, new), as normalize() leaves them; of one profile
    /// its own alone.
    #[getter]
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (diff, selected, query) = (self.diff.clone(), self.selected.clone(), self.query.clone());
        let total = runtime::run(py, move || {
            let selection = Views::select(&diff, &selected, &query)?;
            Ok(selection.measure(query.sample_type.as_deref(), query.normalize)?.summary().total)
        })?;
        match self.diff.is_two_sided() {
            true => PyTuple::new(py, [total.base, total.new]),
            false => PyTuple::new(py, [total.new]),
        }
    }

    /// The type that views show unless told otherwise: the file's default if it names one, else the last.
    #[getter]
    fn default_sample_type(&self) -> Option<&str> {
        self.diff.default_sample_type()
    }

    #[doc = signature!(query "top($self, n=None, *, sort='flat', significant=False")]
    /// The frames, ordered by the magnitude of the delta of `sort` ("flat": own cost; "cum": with what is
    /// called), then by that of the other, then by name; of one profile, by the values.
    ///
    /// Columns: name, file, line, address, mapping (None where the granularity has none), status,
    /// flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta. Of one profile: flat and cum, no
    /// status. `n` rows, or all.
    ///
    /// With several runs a side, or with `significant`, also base_sd and new_sd (the standard deviation of the
    /// runs), p (how probable it is that runs of equal builds differ as much) and q (the part of false ones among
    /// all rows that differ so clearly), of the cost that `sort` names; None where the runs can't tell, and
    /// left_out (why they are not asked: "profiling" or "inlining" decides by chance whether the frame is there).
    /// `significant` leaves the rows with a q of at most 0.05; it needs no runs, but is the sharper with them.
    #[pyo3(signature = (n = None, *, sort = "flat", significant = false, **options), text_signature = None)]
    fn top(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        significant: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.asked(py, options)?);
        self.table(py, query, View::Top { sort, limit: n, significant })
    }

    #[doc = signature!(query "peek($self, regex, n=None, *, sort='flat'")]
    /// The callers and callees of the frames that match a regular expression, which is searched in their
    /// names (with file and line where the granularity has them).
    ///
    /// Columns: node, other, relation ("caller" or "callee"), base, new, delta; of one profile weight. The
    /// rows of `n` nodes, or all. No row if nothing matches.
    #[pyo3(signature = (regex, n = None, *, sort = "flat", **options), text_signature = None)]
    fn peek(
        &self,
        py: Python<'_>,
        regex: String,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.asked(py, options)?);
        self.table(py, query, View::Peek { regex, sort, limit: n })
    }

    #[doc = signature!(query "roots($self, regex, n=None, *")]
    /// The callers of the frames that match a regular expression, as in peek(): whole chains from the root to the
    /// first frame that matches.
    ///
    /// Columns as stacks(). `n` rows, or all. No row if nothing matches.
    #[pyo3(signature = (regex, n = None, **options), text_signature = None)]
    fn roots(
        &self,
        py: Python<'_>,
        regex: String,
        n: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let query = self.asked(py, options)?;
        self.table(py, query, View::Roots { regex, limit: n })
    }

    #[doc = signature!(query "tree($self, n=None, *, sort='flat'")]
    /// The callers and callees of all frames; columns as peek().
    #[pyo3(signature = (n = None, *, sort = "flat", **options), text_signature = None)]
    fn tree(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.asked(py, options)?);
        self.table(py, query, View::Tree { sort, limit: n })
    }

    #[doc = signature!(query "stacks($self, n=None, *, labels=False")]
    /// Whole stacks.
    ///
    /// Columns: frames (a list, root first), base, new, delta, status; of one profile weight. With
    /// `labels`, stacks whose samples have different labels are told apart, and a column labels (a list
    /// of "key=value") follows frames. `n` rows, or all.
    #[pyo3(signature = (n = None, *, labels = false, **options), text_signature = None)]
    fn stacks(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        labels: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let query = self.asked(py, options)?;
        self.table(py, query, View::Stacks { by_labels: labels, limit: n })
    }

    #[doc = signature!(query "labels($self, n=None, *")]
    /// What the values of each label cost.
    ///
    /// Columns: key, value, unit (of numeric labels only), base, new, delta, status; of one profile weight.
    /// `n` rows, or all.
    #[pyo3(signature = (n = None, **options), text_signature = None)]
    fn labels(&self, py: Python<'_>, n: Option<usize>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
        let query = self.asked(py, options)?;
        self.table(py, query, View::Labels { limit: n })
    }

    #[doc = signature!(query "explain($self, *, ops=None, min_effect=0.002, noise=None, heap=None, config=None")]
    /// Why the sides differ: the few causes of the difference, what only moved, and how much of it is chance.
    ///
    /// The profiles of a side are runs of the same program, and do not add up: give several to measure the
    /// noise between runs instead of estimating it. `ops` is how many operations a run of the base and of the
    /// new side did, if that is known; `min_effect` the least change that is a cause, as a part of the base's
    /// total; `noise` are runs of equal builds (as a side of diff()), from which only noise is learned, and which the
    /// keywords of load() say how to load;
    /// `heap` is a Diff of the heap profiles of the same runs: garbage collection is then theirs who allocate more,
    /// and the heaps are explained beside;
    /// `config` is a pprofdiff.toml, whose table explain says what the program's own runtime is. What is
    /// promised, and what can't be known: docs/explain.md.
    ///
    /// `sample_type` may name a cost with the type that counts it; of a heap both what is in use and what was
    /// allocated are explained unless it is given.
    /// Raises PprofError for one profile, a normalization, and a granularity other than functions.
    #[pyo3(signature = (
        *, ops = None, min_effect = 0.002, noise = None, heap = None, config = None, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn explain(
        &self,
        py: Python<'_>,
        ops: Option<(f64, f64)>,
        min_effect: f64,
        noise: Option<&Bound<'_, PyAny>>,
        heap: Option<PyRef<'_, Views>>,
        config: Option<PathBuf>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Explanation>> {
        let load = of_sides(py, &take_loading(options)?)?;
        let query = self.asked(py, options)?;
        let mut asked = explain::options(ops, min_effect);
        if let Some(path) = config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| error::from_io(py, &e, Some(&name)))?;
            asked = asked.with_config(&text).map_err(|e| error::from_engine(py, &e))?;
        }
        if let Some(heap) = heap {
            asked = asked.with_heap(heap.diff.clone());
        }
        let noise = noise.map(Side::new).transpose()?.map_or_else(Vec::new, |side| side.sources);
        let diff = self.diff.clone();
        let explanation = runtime::run(py, move || {
            let request = Request { query, view: View::Explain(asked.with_noise_runs(noise.len())) };
            if noise.is_empty() {
                return Explanation::new(&request.answer(&diff)?);
            }
            let noise = noise.iter().map(|source| source.load(&load)).collect::<pprofdiff::Result<Vec<_>>>()?;
            let base: Vec<_> = diff.given(true).cloned().chain(noise).collect();
            let new: Vec<_> = diff.given(false).cloned().collect();
            let mut with_noise = pprofdiff::Diff::new(&base, &new)?;
            if let Some(folder) = diff.folder() {
                with_noise = with_noise.with_folder(folder);
            }
            Explanation::new(&request.answer(&with_noise)?)
        })?;
        Py::new(py, explanation)
    }

    #[doc = signature!(query "folded($self, *")]
    /// Stacks as text for flame graph tools, a line each: "root;caller;leaf BASE NEW"; of one profile
    /// "root;caller;leaf VALUE".
    #[pyo3(signature = (**options), text_signature = None)]
    fn folded(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let query = self.asked(py, options)?;
        self.written(py, query, View::Stacks { by_labels: false, limit: None }, "folded")
    }

    #[doc = signature!(query "to_speedscope($self, *")]
    /// Stacks as JSON for speedscope.app: a diff is two profiles, base and new, between which it switches.
    /// Negative values, which it does not have, are left out with a warning.
    #[pyo3(signature = (**options), text_signature = None)]
    fn to_speedscope(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let query = self.asked(py, options)?;
        self.written(py, query, View::Stacks { by_labels: false, limit: None }, "speedscope")
    }

    #[doc = signature!(query "callgraph($self, n=80, *, sort=None, node_fraction=0.005, edge_fraction=0.001, call_tree=False")]
    /// The call graph: the `n` most telling frames (0: any number) and what they call.
    ///
    /// Frames whose cum is less than `node_fraction` of the total are left out, and calls that are less than
    /// `edge_fraction`; of two sides a value counts by the largest of |base|, |new| and |delta|. Which of the
    /// others are kept is pprof's choice, or by the value of `sort` ("flat" or "cum"). Where frames between
    /// two are left out, the call is dotted. With `call_tree` there is a box for each way to a frame.
    ///
    /// A notebook shows it as a picture: letters grow with a frame's own cost and colours stand for its cum; of
    /// a diff, for the changes (red: more, blue: less, thick border: added, dashed: removed).
    #[pyo3(signature = (
        n = 80, *, sort = None, node_fraction = 0.005, edge_fraction = 0.001, call_tree = false, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn callgraph(
        &self,
        py: Python<'_>,
        n: usize,
        sort: Option<&str>,
        node_fraction: f64,
        edge_fraction: f64,
        call_tree: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<CallGraph> {
        let rank = match sort.map(|sort| parse_sort(py, sort)).transpose()? {
            None => Rank::Entropy,
            Some(Sort::Flat) => Rank::Flat,
            Some(Sort::Cum) => Rank::Cum,
        };
        let graph = GraphOptions::default().with_node_count(n).with_rank(rank);
        let graph = graph.with_node_fraction(node_fraction).with_edge_fraction(edge_fraction).with_call_tree(call_tree);
        match self.report(py, Request { query: self.asked(py, options)?, view: View::Graph(graph) })? {
            Report::Graph(graph) => runtime::run(py, move || Ok(CallGraph::new(&graph))),
            _ => Err(PyTypeError::new_err("this view is no call graph")),
        }
    }

    #[doc = signature!(query "list($self, regex, *, base_source=None, new_source=None, source_path=None")]
    /// Source lines with their flat and cum, of the functions whose name matches a regular expression.
    ///
    /// `base_source` and `new_source` are folders (or lists of them) with the sources of the two builds,
    /// `source_path` those of both, or of one profile; files are read only below them, and the end of a path is
    /// enough to find one.
    ///
    /// Where a file changed between the builds, lines are matched by a text diff, so that a statement meets its
    /// own base cost although its number shifted. Without the sources of both, lines are paired by their offset in the
    /// function, and the notes say so.
    ///
    /// Of profiles that were loaded with `binary`, lines open to their instructions (`instructions` of each line).
    #[pyo3(signature = (regex, *, base_source = None, new_source = None, source_path = None, **options), text_signature = None)]
    fn list(
        &self,
        py: Python<'_>,
        regex: String,
        base_source: Option<OneOrMore<PathBuf>>,
        new_source: Option<OneOrMore<PathBuf>>,
        source_path: Option<OneOrMore<PathBuf>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Listing> {
        let query = view_query_by(py, &self.query, "list", Granularity::Lines, options)?;
        let sources = source_dirs(base_source, new_source, source_path);
        self.listing(py, Request { query, view: View::List { regex, sources, limit: None } })
    }

    #[doc = signature!(query "disasm($self, regex, *")]
    /// Instructions with their flat and cum, of the functions whose name matches a regular expression.
    ///
    /// The profiles are to be loaded with `binary`, each side with that of its own build (x86-64 or arm64). The
    /// sequences of both are aligned: operations, registers and the names of what is called are compared, addresses
    /// are not. Instructions are written as objdump does (AT&T's syntax); an address is the binary's own.
    ///
    /// Values are per address, whatever was inlined there. Missing binaries raise PprofError, which names them.
    #[pyo3(signature = (regex, **options), text_signature = None)]
    fn disasm(&self, py: Python<'_>, regex: String, options: Option<&Bound<'_, PyDict>>) -> PyResult<Listing> {
        let query = view_query_by(py, &self.query, "disasm", Granularity::Addresses, options)?;
        self.listing(py, Request { query, view: View::Disasm { regex, limit: None } })
    }

    #[doc = signature!(query "to_html($self, *, min_width=None, max_frames=None, base_source=None, new_source=None, source_path=None")]
    /// The page for a browser, as text: summary, what explain() says, flame graph, table, callers and callees, and
    /// call graph of every sample type (of more than a hundred, the first), in one file that asks nobody for anything.
    ///
    /// It shows `sample_type` first. `min_width` is the part of the whole below which a box of the graph
    /// is not drawn by itself but with its siblings as "(pruned)": half a pixel after zooming in ten times,
    /// unless given; 0 draws all that there is room for. `max_frames` is the most boxes of all the
    /// page's graphs, two for each sample type: 50,000 unless given, which makes pages of a few MB.
    ///
    /// Given `base_source`, `new_source` or `source_path`, as list() has them, the page also
    /// lists the source lines of the 20 functions whose cum changed most, of those that have sources.
    #[pyo3(signature = (
        *, min_width = None, max_frames = None,
        base_source = None, new_source = None, source_path = None, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn to_html(
        &self,
        py: Python<'_>,
        min_width: Option<f64>,
        max_frames: Option<usize>,
        base_source: Option<OneOrMore<PathBuf>>,
        new_source: Option<OneOrMore<PathBuf>>,
        source_path: Option<OneOrMore<PathBuf>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let sources = page_sources(base_source, new_source, source_path);
        let query = self.asked(py, options)?;
        Ok(self.page(py, query, min_width, max_frames, Content::All(sources))?.html)
    }

    #[doc = signature!(query "save_html($self, path, *, min_width=None, max_frames=None, base_source=None, new_source=None, source_path=None")]
    /// Write to_html() to a path.
    #[pyo3(signature = (
        path, *, min_width = None, max_frames = None,
        base_source = None, new_source = None, source_path = None, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn save_html(
        &self,
        py: Python<'_>,
        path: PathBuf,
        min_width: Option<f64>,
        max_frames: Option<usize>,
        base_source: Option<OneOrMore<PathBuf>>,
        new_source: Option<OneOrMore<PathBuf>>,
        source_path: Option<OneOrMore<PathBuf>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let sources = page_sources(base_source, new_source, source_path);
        let query = self.asked(py, options)?;
        let page = self.page(py, query, min_width, max_frames, Content::All(sources))?;
        flamegraph::save(py, path, page.html)
    }

    #[doc = signature!(query "flamegraph($self, *, min_width=None, max_frames=None")]
    /// The flame graph of both sides, of one sample type, which a notebook shows; `.save(path)` writes it.
    ///
    /// A box is as wide as the sum, over the stacks beneath it, of the larger of their two values: so what
    /// vanished is drawn too. Its colour is the change, from blue (less) to red (more). `min_width` and
    /// `max_frames` as to_html().
    #[pyo3(signature = (*, min_width = None, max_frames = None, **options), text_signature = None)]
    fn flamegraph(
        &self,
        py: Python<'_>,
        min_width: Option<f64>,
        max_frames: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<FlameGraph> {
        let query = self.asked(py, options)?;
        Ok(FlameGraph::new(self.page(py, query, min_width, max_frames, Content::Flame)?))
    }

    #[doc = signature!(filters "filter($self, *")]
    /// The same profiles, filtered; the filters have pprof's names and meaning.
    ///
    /// Regular expressions are searched in function names, file names and the binary's name, or in labels
    /// ("key=regex", or "regex" on "key:value").
    #[doc = pprofdiff::filter_docs!()]
    ///
    /// Filters that were given before stay, unless given again; an empty one is taken away. Totals and
    /// percentages stay those before filters. A filter that matches nothing is said in the views' warnings.
    #[pyo3(signature = (**filters), text_signature = None)]
    fn filter(slf: &Bound<'_, Self>, filters: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Diff>> {
        let mut query = slf.get().query.clone();
        set_query(slf.py(), &mut query, filters, is_filter)?;
        with_query(slf, query)
    }

    /// The same profiles, with the new side scaled to the base.
    ///
    /// `how` is "total" (both totals become equal: what is left is a change of shares), "duration" (a
    /// change of rates), a number to multiply the new side by (such as operations of base / operations of
    /// new: a change per operation), or None (as it was). A view raises PprofError where there is nothing
    /// to scale by: a total or duration of zero, or one profile only.
    fn normalize(slf: &Bound<'_, Self>, how: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Diff>> {
        with_query(slf, slf.get().query.clone().with_normalize(parse_normalize(how)?))
    }

    /// Write it as a profile, to a path or a file object (opened for bytes).
    ///
    /// A diff holds the base's samples negated and labelled: `go tool pprof` shows the numbers of
    /// -diff_base, and load() opens it as a diff again. Filters and normalization apply. `compression`
    /// is "gzip", "zstd" or "none"; unless given, .zst is packed with zstd, .pb not at all and anything
    /// else with gzip. `level`: gzip 0 to 9 (1 unless given), zstd 1 to 22 (3 unless given).
    #[pyo3(signature = (file, *, compression = None, level = None))]
    fn write(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        compression: Option<&str>,
        level: Option<u32>,
    ) -> PyResult<()> {
        let path = if file.hasattr("write")? { None } else { Some(file.extract::<PathBuf>()?) };
        let compression = match (compression, &path) {
            (Some(name), _) => parse_compression(py, name)?,
            (None, Some(path)) => Compression::of_path(path),
            (None, None) => Compression::Gzip,
        };
        let bytes = self.packed(py, write_options(compression, level))?;
        let Some(path) = path else {
            return file.call_method1("write", (PyBytes::new(py, &bytes),)).map(drop);
        };
        flamegraph::save(py, path, bytes)
    }

    /// What write() would write, as bytes.
    #[pyo3(signature = (compression = "gzip", level = None))]
    fn to_bytes<'py>(&self, py: Python<'py>, compression: &str, level: Option<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let compression = parse_compression(py, compression)?;
        Ok(PyBytes::new(py, &self.packed(py, write_options(compression, level))?))
    }

    /// top() as a polars.DataFrame, see Table.to_polars().
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method0("to_polars")
    }

    /// top() as a pandas.DataFrame, see Table.to_pandas().
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method0("to_pandas")
    }

    /// top() as an Arrow stream, see Table.__arrow_c_stream__().
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    // Why the sides differ, as a picture, and the table.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let why = explain::account_html(py, &self.diff, &self.query)?;
        Ok(why + &self.show(py, |table| table.to_html(ROWS_SHOWN))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.show(py, Table::to_text)
    }
}
