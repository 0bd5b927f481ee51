//! `Views`: the views that Profile and Diff share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::{Compression, Granularity, Query, Selection, Sort};
use pprofdiff_report::{Report, Request, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::answers::PageContent;
use crate::explain::{self, Explanation};
use crate::flamegraph::{self, FlameGraph};
use crate::keywords::in_keywords;
use crate::options::{
    OneOrMore, is_filter, page_sources, parse_compression, parse_normalize, parse_sort, set_query, signature,
    source_dirs, take_loading, two_sided, view_query_by, write_options,
};
use crate::pictures::{CallGraph, Listing};
use crate::profile::{Diff, with_query};
use crate::source::SideSources;
use crate::table::{ROWS_SHOWN, Table};
use crate::{error, runtime};

/// The base class of Profile and Diff: views, filters and writing.
///
/// All views accept the following keywords, and so do series() and the tables of batch(). The filters among them are
/// described in filter(). A keyword that does not apply to a view, such as `unit` for series(), raises PprofError.
#[doc = query_docs!()]
///
/// With several sample types, the columns of costs are prefixed with their sample type ("alloc_space_flat_base"). If
/// one of two types is a count, there are also ratios (flat_ratio_base: bytes per object; a float, or None if the count
/// is zero).
///
/// Values are int64 in the unit of the sample type. A question that can't be answered raises PprofError.
#[pyclass(frozen, subclass, module = "pprofdiff")]
pub struct Views {
    pub diff: pprofdiff::Diff,
    /// Filters and normalization. Each view adds the rest of the query.
    pub query: Query,
    /// The last selection, so that another view or sample type does not select and intern the same samples again.
    pub selected: Arc<Mutex<Option<(Query, Selection)>>>,
    /// The profile, if this is a single profile without filters. It is then written unchanged.
    pub profile: Option<Arc<pprofdiff::Profile>>,
}

#[pymethods]
impl Views {
    /// The sample types that all profiles have, as a list of (type, unit): [("alloc_space", "bytes"), ...].
    #[getter]
    fn sample_types(&self) -> Vec<(String, String)> {
        self.diff.sample_types()
    }

    /// The total of the default sample type before filters, after normalize(): (base, new), or (total,) for one
    /// profile.
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

    /// The sample type that views show by default: the file's default type if it has one, else its last type.
    #[getter]
    fn default_sample_type(&self) -> Option<&str> {
        self.diff.default_sample_type()
    }

    #[doc = signature!(query "top($self, n=None, *, sort='flat', significant=False")]
    /// Return the frames as a Table, ordered by the size of the change in `sort` ("flat": own cost; "cum": cost with
    /// callees), then by the change in the other cost, then by name. For one profile, the order is by value.
    ///
    /// Columns: name, file, line, address, mapping (None at granularities without them), status, flat_base, flat_new,
    /// flat_delta, cum_base, cum_new and cum_delta. For one profile: flat and cum, without status. `n` limits the rows.
    ///
    /// With several runs on a side, or with `significant`, there are more columns for the cost in
    /// `sort`: base_sd and new_sd (standard deviation of the runs), p (probability of such a difference
    /// between runs of equal builds), q (share of false positives among all rows with a difference at
    /// least as clear) and left_out (the reason why a frame is not tested: "profiling" or "inlining"
    /// makes its presence random). They are None if the runs are not sufficient. `significant` keeps
    /// only rows with q of at most 0.05. It does not need several runs, but detects smaller changes
    /// with them.
    ///
    /// For two profiles that were loaded with `binary` there is the column code: whether the instructions of
    /// a function changed ("identical", "relocated", "changed", "inlined differently" or "unknown"). It is
    /// None if they were not compared, and after the first 100 rows.
    #[pyo3(signature = (n = None, *, sort = "flat", significant = false, **options), text_signature = None)]
    fn top(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        significant: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.query_with(py, options)?);
        self.table(py, query, View::Top { sort, limit: n, significant })
    }

    #[doc = signature!(query "peek($self, regex, n=None, *, sort='flat'")]
    /// Return the callers and callees of the frames that match a regular expression. The expression is searched
    /// in the names of frames (with file and line at granularities that have them).
    ///
    /// Columns: node, other, relation ("caller" or "callee"), base, new and delta; for one profile weight instead of
    /// the last three. `n` limits the nodes. The table is empty if nothing matches.
    #[pyo3(signature = (regex, n = None, *, sort = "flat", **options), text_signature = None)]
    fn peek(
        &self,
        py: Python<'_>,
        regex: String,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.query_with(py, options)?);
        self.table(py, query, View::Peek { regex, sort, limit: n })
    }

    #[doc = signature!(query "roots($self, regex, n=None, *")]
    /// Return the call chains to the frames that match a regular expression, as in peek(): each chain from the
    /// root to the first matching frame.
    ///
    /// The columns are the same as in stacks(). `n` limits the rows. The table is empty if nothing matches.
    #[pyo3(signature = (regex, n = None, **options), text_signature = None)]
    fn roots(
        &self,
        py: Python<'_>,
        regex: String,
        n: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let query = self.query_with(py, options)?;
        self.table(py, query, View::Roots { regex, limit: n })
    }

    #[doc = signature!(query "tree($self, n=None, *, sort='flat'")]
    /// Return the callers and callees of all frames. The columns are the same as in peek().
    #[pyo3(signature = (n = None, *, sort = "flat", **options), text_signature = None)]
    fn tree(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        sort: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let (sort, query) = (parse_sort(py, sort)?, self.query_with(py, options)?);
        self.table(py, query, View::Tree { sort, limit: n })
    }

    #[doc = signature!(query "stacks($self, n=None, *, labels=False")]
    /// Return whole stacks.
    ///
    /// Columns: frames (a list, root first), base, new, delta and status; for one profile weight instead of the last
    /// four. With `labels`, stacks are separated by the labels of their samples, and a column labels (a list of
    /// "key=value") follows frames. `n` limits the rows.
    #[pyo3(signature = (n = None, *, labels = false, **options), text_signature = None)]
    fn stacks(
        &self,
        py: Python<'_>,
        n: Option<usize>,
        labels: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Table> {
        let query = self.query_with(py, options)?;
        self.table(py, query, View::Stacks { by_labels: labels, limit: n })
    }

    #[doc = signature!(query "labels($self, n=None, *")]
    /// Return the cost of each label value.
    ///
    /// Columns: key, value, unit (for numeric labels), base, new, delta and status; for one profile weight instead of
    /// the last four. `n` limits the rows of each key.
    #[pyo3(signature = (n = None, **options), text_signature = None)]
    fn labels(&self, py: Python<'_>, n: Option<usize>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
        let query = self.query_with(py, options)?;
        self.table(py, query, View::Labels { limit: n })
    }

    #[doc = signature!(query "explain($self, *, ops=None, min_effect=0.002, noise=None, heap=None, config=None")]
    /// Explain why the sides differ: the few causes of the difference, cost that only moved, and how much is noise.
    ///
    /// The profiles of a side are runs of the same program and are not added up. With several runs, noise is measured
    /// between them instead of estimated. `ops` is the number of operations per run on the base and on the new side, if
    /// known. `min_effect` is the smallest change that counts as a cause, as a fraction of the mean of
    /// both totals. `noise` has A/A runs: profiles of equal builds (given like a side of diff()), used
    /// only to estimate noise, and loaded with the keywords of load(). `heap` is a Diff of the heap
    /// profiles of the same runs: GC cost is attributed to the functions that allocate more, and the
    /// heaps are explained too. `config` is a pprofdiff.toml whose table [explain] describes the
    /// program's own runtime. Guarantees and limits: docs/explain.md.
    ///
    /// `sample_type` can name a cost with the type that counts its events. By default, both the memory in use and the
    /// allocations of a heap profile are explained.
    ///
    /// Raises PprofError for one profile, for a normalization, and for a granularity other than functions.
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
        let load = two_sided(py, &take_loading(options)?)?;
        let query = self.query_with(py, options)?;
        let mut explain_options = explain::options(ops, min_effect);
        if let Some(path) = config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| error::from_io(py, &e, Some(&name)))?;
            explain_options = explain_options.with_config(&text).map_err(|e| error::from_engine(py, &e))?;
        }
        if let Some(heap) = heap {
            explain_options = explain_options.with_heap(heap.diff.clone());
        }
        let noise = noise.map(SideSources::new).transpose()?.map_or_else(Vec::new, |side| side.sources);
        let diff = self.diff.clone();
        let explanation = runtime::run(py, move || {
            let request = Request { query, view: View::Explain(explain_options.with_noise_runs(noise.len())) };
            if noise.is_empty() {
                return Explanation::new(request.answer(&diff)?);
            }
            let noise = noise.iter().map(|source| source.load(&load)).collect::<pprofdiff::Result<Vec<_>>>()?;
            let base: Vec<_> = diff.given(true).cloned().chain(noise).collect();
            let new: Vec<_> = diff.given(false).cloned().collect();
            let mut with_noise = pprofdiff::Diff::new(&base, &new)?;
            if let Some(folder) = diff.folder() {
                with_noise = with_noise.with_folder(folder);
            }
            Explanation::new(request.answer(&with_noise)?)
        })?;
        Py::new(py, explanation)
    }

    #[doc = signature!(query "folded($self, *")]
    /// Return stacks as text for flame graph tools, one per line: "root;caller;leaf BASE NEW", or "root;caller;leaf
    /// VALUE" for one profile.
    #[pyo3(signature = (**options), text_signature = None)]
    fn folded(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let query = self.query_with(py, options)?;
        self.written(py, query, View::Stacks { by_labels: false, limit: None }, "folded")
    }

    #[doc = signature!(query "to_speedscope($self, *")]
    /// Return stacks as JSON for speedscope.app. A diff has two profiles, base and new, which speedscope can switch.
    /// speedscope does not support negative values, so they are dropped with a warning.
    #[pyo3(signature = (**options), text_signature = None)]
    fn to_speedscope(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let query = self.query_with(py, options)?;
        self.written(py, query, View::Stacks { by_labels: false, limit: None }, "speedscope")
    }

    #[doc = signature!(query "callgraph($self, n=80, *, sort=None, node_fraction=0.005, edge_fraction=0.001, call_tree=False")]
    /// Return the call graph: the `n` most informative frames (0: no limit) and their calls.
    ///
    /// Frames with cum below `node_fraction` of the total are dropped, and so are calls below `edge_fraction`. For two
    /// sides, the value that counts is the largest of |base|, |new| and |delta|. The remaining frames are ranked like
    /// in pprof, or by `sort` ("flat" or "cum"). A dotted call passes through dropped frames. With `call_tree`, each
    /// path to a frame has its own box.
    ///
    /// A notebook shows the graph as a picture: the text size shows a frame's own cost, and the color its cum. For a
    /// diff, both show the change (red: more, blue: less, thick border: added, dashed border: removed).
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
        match self.report(py, Request { query: self.query_with(py, options)?, view: View::Graph(graph) })? {
            Report::Graph(mut graph) => {
                graph.summary = in_keywords(&graph.summary);
                runtime::run(py, move || Ok(CallGraph::new(&graph)))
            }
            _ => Err(PyTypeError::new_err("this view is not a call graph")),
        }
    }

    #[doc = signature!(query "list($self, regex, *, base_source=None, new_source=None, source_path=None")]
    /// Return source lines with flat and cum, for the functions whose name matches a regular expression.
    ///
    /// `base_source` and `new_source` are folders (or lists of folders) with the sources of each build. `source_path`
    /// has the sources of both builds, or of one profile. Files are read only below these folders. A file is found even
    /// if only the end of its path matches.
    ///
    /// If a file changed between the builds, lines are matched with a text diff, so that a statement is compared with
    /// its own base cost although its line number changed. Without the sources of both builds, lines are paired by
    /// their offset in the function, and the notes mention it.
    ///
    /// If the profiles were loaded with `binary`, each line has its instructions (`instructions`).
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
    /// Return instructions with flat and cum, for the functions whose name matches a regular expression.
    ///
    /// The profiles must be loaded with `binary`, each side with the binary of its own build (x86-64 or arm64). The
    /// instructions of both builds are aligned by operation, registers and the names of called functions, but not by
    /// address. Instructions are in AT&T syntax, as in objdump, and addresses refer to the binary.
    ///
    /// Values are per address, including inlined code. Missing binaries raise a PprofError that names them.
    #[pyo3(signature = (regex, **options), text_signature = None)]
    fn disasm(&self, py: Python<'_>, regex: String, options: Option<&Bound<'_, PyDict>>) -> PyResult<Listing> {
        let query = view_query_by(py, &self.query, "disasm", Granularity::Addresses, options)?;
        self.listing(py, Request { query, view: View::Disasm { regex, limit: None } })
    }

    #[doc = signature!(query "to_html($self, *, min_width=None, max_frames=None, base_source=None, new_source=None, source_path=None")]
    /// Return a self-contained HTML page: summary, explain(), flame graph, table, callers and callees, and call
    /// graph of every sample type (at most the first hundred). The page loads nothing from the network.
    ///
    /// It shows `sample_type` first. `min_width` is the fraction of the total below which a flame graph box is merged
    /// with its siblings into "(pruned)". The default is half a pixel after zooming in ten times, and 0 draws every box
    /// that has room. `max_frames` is the maximum number of boxes in all graphs of the page. Each sample type has two
    /// graphs. The default is 50,000, which results in a page of a few MB.
    ///
    /// With `base_source`, `new_source` or `source_path`, see list(), the page also lists the source lines of the 20
    /// functions with the largest change in cum, among the functions with sources.
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
        let query = self.query_with(py, options)?;
        Ok(self.page(py, query, min_width, max_frames, PageContent::All(sources))?.html)
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
        let query = self.query_with(py, options)?;
        let page = self.page(py, query, min_width, max_frames, PageContent::All(sources))?;
        flamegraph::save(py, path, page.html)
    }

    #[doc = signature!(query "flamegraph($self, *, min_width=None, max_frames=None")]
    /// Return the flame graph of both sides for one sample type. A notebook shows it, and `.save(path)` writes it
    /// as a page (.html) or as a picture (.svg).
    ///
    /// The width of a box is the sum, over its stacks, of the larger of both values, so removed code is drawn too. The
    /// color shows the change, from blue (less) to red (more). For `min_width` and `max_frames` see to_html().
    #[pyo3(signature = (*, min_width = None, max_frames = None, **options), text_signature = None)]
    fn flamegraph(
        &self,
        py: Python<'_>,
        min_width: Option<f64>,
        max_frames: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<FlameGraph> {
        let query = self.query_with(py, options)?;
        let page = self.page(py, query.clone(), min_width, max_frames, PageContent::Flame)?;
        Ok(FlameGraph::new(page, self.diff.clone(), self.selected.clone(), query))
    }

    #[doc = signature!(filters "filter($self, *")]
    /// Return the same profiles with filters. The filters have the names and the meaning of pprof's.
    ///
    /// Regular expressions are searched in function names, file names and the name of the binary, or in labels
    /// ("key=regex", or "regex" on "key:value").
    #[doc = filter_docs!()]
    ///
    /// Earlier filters stay in effect unless given again; an empty filter is removed. Totals and percentages remain
    /// those before filters. If a filter matches nothing, the views' warnings mention it.
    #[pyo3(signature = (**filters), text_signature = None)]
    fn filter(slf: &Bound<'_, Self>, filters: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Diff>> {
        let mut query = slf.get().query.clone();
        set_query(slf.py(), &mut query, filters, is_filter)?;
        with_query(slf, query)
    }

    /// Return the same profiles with the new side scaled to the base.
    ///
    /// `how` is "total" (makes both totals equal, so that a change is one of shares), "duration" (a change is one of
    /// rates), a number to multiply the new side by (such as operations of base / operations of new, so that a change
    /// is per operation), or None (no scaling). A view raises PprofError if scaling is not possible: if a total or
    /// duration is zero, or for one profile.
    fn normalize(slf: &Bound<'_, Self>, how: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Diff>> {
        with_query(slf, slf.get().query.clone().with_normalize(parse_normalize(how)?))
    }

    /// Write the profile, or the diff as a profile, to a path or a file object (opened for bytes).
    ///
    /// Another extension of a path selects another format, as the command's -o does: the page (.html), the flame graph
    /// (.flame.svg) or call graph (.svg) as a picture, or the table (.csv, .json, .md, .txt). An unknown extension
    /// raises PprofError with all extensions. A path without extension, or any call with `compression` or `level`,
    /// writes a profile.
    ///
    /// A written diff has the samples of the base negated and labelled: `go tool pprof` shows the numbers of
    /// -diff_base, and load() opens it as a diff again. Filters and normalization apply. `compression` is "gzip",
    /// "zstd" or "none". By default the extension decides: .pb.zst uses zstd, .pb is not compressed, and any other uses
    /// gzip. `level`: gzip 0 to 9 (1 unless given), zstd 1 to 22 (3 unless given).
    #[pyo3(signature = (file, *, compression = None, level = None))]
    fn write(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        compression: Option<&str>,
        level: Option<u32>,
    ) -> PyResult<()> {
        let path = if file.hasattr("write")? { None } else { Some(file.extract::<PathBuf>()?) };
        if let (Some(path), None, None) = (&path, compression, level)
            && let Some(format) = self.format_of_path(py, path)?
        {
            let content = self.written(py, self.query.clone(), View::default(), format.name)?;
            return flamegraph::save(py, path.clone(), content);
        }
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

    /// Return the profile, or the diff as a profile, as bytes.
    #[pyo3(signature = (compression = "gzip", level = None))]
    fn to_bytes<'py>(&self, py: Python<'py>, compression: &str, level: Option<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let compression = parse_compression(py, compression)?;
        Ok(PyBytes::new(py, &self.packed(py, write_options(compression, level))?))
    }

    /// Return top() as text, see Table.to_text().
    #[pyo3(signature = (*, max_tokens = None))]
    fn to_text(&self, py: Python<'_>, max_tokens: Option<usize>) -> PyResult<String> {
        self.default_table(py)?.to_text_within(py, max_tokens)
    }

    /// Return top() as a polars.DataFrame, see Table.to_polars().
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method0("to_polars")
    }

    /// Return top() as a pandas.DataFrame, see Table.to_pandas().
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method0("to_pandas")
    }

    /// Return top() as an Arrow stream, see Table.__arrow_c_stream__().
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.default_table(py)?)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    // Shows the explanation as a picture, followed by the table.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let account = explain::account_html(py, &self.diff, &self.query)?;
        Ok(account + &self.show(py, |table| table.to_html(ROWS_SHOWN))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.show(py, Table::to_text)
    }
}
