//! The interactive page: one HTML file with a summary, the explanation, flame graph, table, callers and callees, call
//! graph, and source lines if sources are available. It makes no requests. `series` builds the page of many builds from
//! the same parts.
//!
//! The assets in this folder run in the browser. The profile is data in a block of JSON that browsers do not execute.
//! Names in profiles are untrusted: `<` is written as `\u003c`, so that no name can end the block, and the script
//! inserts names as text only. If both protections fail, the page's content security policy still permits no script and
//! style except the page's own (identified by hash), and no requests.
//!
//! The list of the frames that changed most, next to the total, is ranked by flat cost. By cum cost, its five frames
//! would be callers of each other. The page contains source lines of a few functions only, because complete source
//! trees do not belong in a file that is sent by mail.
//!
//! The flame graph is a canvas instead of SVG, a choice based on measurements with 50,000 frames. Screen readers use
//! the table instead.

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::file::fill;
use crate::names::{PageNames, visible};
use crate::views::{ChanceMarker, PageFrames, bits, drawn_frames, flame, mover_rows, movers, pair};
use pprofdiff::cancellation;
use pprofdiff::flame::{Flame, FlameOptions};
use pprofdiff::graph::{Graph, GraphOptions};
use pprofdiff::list::SourceCode;
use pprofdiff::random::HashMap;
use pprofdiff::shared::is_level_among;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::units;
use pprofdiff::{Diff, Frames, Measure, Normalize, Pair, Query, Selection, Side, Sort, Summary, TopRow, are_system};
use pprofdiff::{Error, Result, parallel};
use pprofdiff_explain::{CauseKind, Evidence, ExplainOptions, Explanation, FEW_SAMPLES};
use pprofdiff_report::Document;
use pprofdiff_report::shared::{
    LayoutBudget, code_words, escape, escape_ours, explain_panel, extent, inputs, nearest_cause, push_routines, share,
    svg_within, whole,
};

/// Options of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageOptions {
    /// The minimum width of a frame; see [`FlameOptions::min_width`].
    pub min_width: f64,
    /// The maximum number of frames in all flame graphs of the page together. Each sample type has two graphs, one from
    /// the root and one from the leaf.
    pub max_frames: usize,
    /// True to show only the flame graph of the query's sample type, without table, call graph and other sample types.
    pub only_flame: bool,
    /// Options of the explanation.
    pub explain: ExplainOptions,
}

impl Default for PageOptions {
    /// Returns options with 50,000 frames, which limits pages to a few MB.
    fn default() -> PageOptions {
        PageOptions {
            min_width: FlameOptions::default().min_width,
            max_frames: 50_000,
            only_flame: false,
            explain: ExplainOptions::default(),
        }
    }
}
/// The maximum number of sample types on a page. Programs have about ten. Each has its own graphs and table.
const MAX_TYPES: usize = 100;
/// The maximum number of sample types that are drawn concurrently: for profiles with at most [`FEW_SAMPLES`] samples,
/// and for larger profiles. Each needs memory in proportion to the number of stacks.
const TYPES_AT_A_TIME: [usize; 2] = [4, 2];
/// The maximum number of explained sample types: the query's sample type, then sample types in the profile's order. For
/// profiles with more than [`MANY_SAMPLES`] samples, only the query's sample type is explained.
pub(crate) const MAX_EXPLAINED: usize = 4;
/// The maximum number of samples of a profile whose page explains several sample types.
pub(crate) const MANY_SAMPLES: usize = 50_000;
/// The layout budget that all sample types except the query's share, in pictures: one picture's budget fits a dense
/// call graph, and a real call graph needs about a tenth of that. The query's sample type has a budget of its own.
pub(crate) const PICTURES: i64 = 3;
/// The maximum number of functions whose source lines the page contains.
const LISTED: usize = 20;

/// An interactive HTML page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The complete HTML file.
    pub html: String,
    /// The title, such as "main.pb.gz → branch.pb.gz".
    pub title: String,
    /// The number of rows in the flame graph that is shown first.
    rows: u32,
    /// True if an explanation is shown above the flame graph.
    #[serde(default)]
    explained: bool,
}

impl Page {
    /// Returns the page in an iframe for notebooks. The page's script runs, but the sandbox denies it access to the
    /// notebook.
    pub fn framed(&self) -> String {
        // The height of the content above and below the flame graph, and the maximum height, which is about a screen.
        // An explanation needs more of both.
        let (around, max_height) = if self.explained { (630, 1000) } else { (330, 720) };
        let height = (self.rows.saturating_mul(20)).saturating_add(around).min(max_height);
        format!(
            "<iframe sandbox=\"allow-scripts\" title=\"{}\" style=\"width:100%;height:{height}px;border:0\" \
             srcdoc=\"{}\"></iframe>",
            escape(&self.title),
            escape_ours(&self.html)
        )
    }
}

impl Document for Page {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.html.as_bytes())
    }
}

/// Builds the page of a diff or of a single profile. The reader can switch between up to a hundred sample types.
/// The query's sample type is always included and is shown first. If the query leaves the sample type open and memory in
/// use is unexplained, the page opens with an explained sample type instead. Warnings on the page state how many sample
/// types and call graphs were omitted.
///
/// With `sources`, the page also contains the source lines of the functions with the largest change in cum cost among
/// the functions with sources, for the query's sample type.
///
/// # Errors
/// Fails like [`measure`](pprofdiff_explain::measure) for the query's sample type, and if the source listing fails. A further sample type
/// that fails becomes an option of the page that cannot be selected.
pub fn page(diff: &Diff, query: &Query, options: &PageOptions, sources: Option<&dyn SourceCode>) -> Result<Page> {
    let selection = pprofdiff_explain::select(diff, query)?;
    let selected_type = diff.find_sample_type(query.sample_type.as_deref())?;
    let all = diff.sample_types();
    let types = match options.only_flame {
        true => vec![selected_type],
        false => types_of_page(all.len(), selected_type),
    };
    let share = options.max_frames / (2 * types.len().max(1));
    let mut names = PageNames::of_one_diff();
    let mut parts = Vec::with_capacity(types.len());
    let mut selected = None;
    let mut rows = vec![0; types.len()];
    let mut pictures = Pictures {
        selected_budget: LayoutBudget::for_pictures(1),
        other_budget: LayoutBudget::for_pictures(PICTURES),
        without: 0,
    };
    let most_explained = if diff.n_samples() > MANY_SAMPLES { 1 } else { MAX_EXPLAINED };
    let measure = |i: usize| match i == selected_type {
        true => selection.measure(query.sample_type.as_deref(), query.normalize),
        false => selection.measure_type(i, query.normalize),
    };
    let mut measured: Vec<(usize, Measure)> = Vec::with_capacity(types.len());
    for (part, &i) in types.iter().enumerate() {
        match measure(i) {
            Ok(view) => {
                if i == selected_type {
                    selected = Some((part, view.summary().clone()));
                }
                parts.push(Value::Null);
                measured.push((part, view));
            }
            // This type cannot be normalized, but others may be.
            Err(e) if i != selected_type => {
                parts.push(json!({"type": visible(&all[i].0), "error": visible(&e.to_string())}));
            }
            Err(e) => return Err(e),
        }
    }
    let why = || {
        let parts = measured.iter().map(|(part, _)| *part).collect();
        explain_parts(&selection, &types, parts, selected_type, most_explained, options)
    };
    // Explaining and drawing both need memory in proportion to the samples, so run them concurrently only for few
    // samples.
    let few = diff.n_samples() <= FEW_SAMPLES;
    let at_a_time = if few { TYPES_AT_A_TIME[0] } else { parallel::threads().min(TYPES_AT_A_TIME[1]) };
    let draw = |some: &[(usize, Measure)], pictures: &mut Pictures, names: &mut PageNames| {
        let mut views = parallel::map(some, |(_, view)| PageViews::from_measure(view, share, options));
        let selected_type = some.iter().position(|(part, _)| types[*part] == selected_type);
        pictures.draw(&mut views, selected_type);
        let part = |((_, view), views): (&(usize, Measure), PageViews)| (sample_type(view, &views, names), views);
        some.iter().zip(views).map(part).collect::<Vec<_>>()
    };
    let mut begin = || {
        if !options.only_flame {
            selection.build_tree();
        }
        draw(measured.chunks(at_a_time).next().unwrap_or_default(), &mut pictures, &mut names)
    };
    let (explained, first) = if few {
        parallel::join(why, begin)
    } else {
        let explained = why();
        cancellation::begin_phase("drawing");
        (explained, begin())
    };
    let mut first = Some(first);
    let mut changed: Vec<String> = Vec::new();
    cancellation::begin_phase("drawing");
    for some in measured.chunks(at_a_time) {
        let drawn = first.take().unwrap_or_else(|| draw(some, &mut pictures, &mut names));
        for ((part_index, view), (mut part, views)) in some.iter().zip(drawn) {
            if let Some((_, explanation)) = explained.iter().find(|(explained, _)| explained == part_index) {
                mark_chance(&mut part, view, &views, explanation);
            }
            if types[*part_index] == selected_type {
                changed = views.most_changed(selection.frames());
            }
            parts[*part_index] = part;
            rows[*part_index] = views.depth() + 1;
        }
    }
    let Some((selected, summary)) = selected else { return Err(Error::query("no sample type to show")) };
    let is_replaceable = query.sample_type.is_none() && is_level_among(&all, &all[selected_type].0);
    let is_bytes = |part: usize| all[types[part]].1 == "bytes";
    let shown = if is_replaceable { opening_part(selected, &explained, is_bytes) } else { selected };
    let mut settings = settings(&summary);
    if shown != selected {
        let name = |part: usize| visible(&all[types[part]].0);
        settings.push(format!("{} is unexplained, so the page opens with {}", name(selected), name(shown)));
    }
    let mut warnings: Vec<String> = summary.warnings.iter().map(|w| visible(w).into_owned()).collect();
    if !options.only_flame {
        warnings.extend(omitted_types(all.len(), types.len(), pictures.without));
    }
    add_omissions(&explained, &mut warnings);
    let code = code_changes(diff, query, &changed, &names, &mut warnings)?;
    let mut data = json!({
        "base": summary.base.as_ref().map(|base| side(base, summary.sum)),
        "new": side(&summary.new, summary.sum),
        "settings": settings,
        "warnings": warnings,
        "shown": shown,
    });
    if let Some(code) = code {
        data["code"] = code;
    }
    let source = sources.map(|sources| source(diff, query, sources)).transpose()?.unwrap_or_default();
    Ok(assemble(title(&summary), data, parts, &explained, names, &source, rows[shown]))
}

/// Returns the part to show first. Memory in use often stays unexplained although the allocations changed, and an empty
/// account would hide them. The first part with causes then replaces the selected part. Parts in bytes come first, because
/// readers think of memory in bytes.
fn opening_part(selected: usize, explained: &[(usize, Explanation)], is_bytes: impl Fn(usize) -> bool) -> usize {
    let is_empty = |part: usize| explained.iter().any(|(other, e)| *other == part && e.causes.is_empty());
    let with_causes = explained.iter().filter(|(_, e)| !e.causes.is_empty()).map(|(part, _)| *part);
    match is_empty(selected) {
        true => with_causes.min_by_key(|&part| (!is_bytes(part), part)).unwrap_or(selected),
        false => selected,
    }
}

/// Returns the numbers of the sample types that a page contains. The query's sample type replaces the last one if it is
/// beyond the limit.
fn types_of_page(n: usize, selected_type: usize) -> Vec<usize> {
    let limit = MAX_TYPES - usize::from(selected_type >= MAX_TYPES);
    (0..n).filter(|&i| i < limit || i == selected_type).collect()
}

/// Explains at most `max_explained` of the parts, in the order of the page. `types` has the sample type of each part.
fn explain_parts(
    selection: &Selection,
    types: &[usize],
    parts: Vec<usize>,
    selected_type: usize,
    max_explained: usize,
    options: &PageOptions,
) -> Vec<(usize, Explanation)> {
    let diff = selection.diff();
    let all = diff.sample_types();
    // If two types have the same name, only the first can be explained.
    let is_found = |part: &usize| diff.find_sample_type(Some(&all[types[*part]].0)).ok() == Some(types[*part]);
    let mut candidates: Vec<usize> = parts.into_iter().filter(is_found).collect();
    // Explain the query's type first, because the number of explanations is limited.
    sort_by_key(&mut candidates, |&part| types[part] != selected_type);
    let numbers: Vec<usize> = candidates.iter().map(|&part| types[part]).collect();
    let explanations = pprofdiff_explain::explain_types(selection, &numbers, max_explained, &options.explain);
    let part_of = |number: usize| types.iter().position(|&other| other == number).unwrap_or(0);
    let mut explained: Vec<_> = explanations.into_iter().map(|(number, e)| (part_of(number), e)).collect();
    sort_by_key(&mut explained, |(part, _)| *part);
    explained
}

/// Returns the warnings about sample types that the page lacks, and about types without a call graph.
fn omitted_types(all: usize, shown: usize, without_graph: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if shown < all {
        warnings.push(format!("the page has {shown} of {all} sample types; create another page for a missing one"));
    }
    if without_graph > 0 {
        warnings.push(format!(
            "the page has call graphs of {} of {shown} sample types; create another page for a missing one",
            shown - without_graph
        ));
    }
    warnings
}

/// Assembles the page. `parts` has one entry per sample type, and `explained` numbers refer to it. `data` holds
/// everything that does not belong to one sample type, including `shown`, the number of the part to show first.
/// `source` is the listing as HTML, and `rows` the number of rows of the flame graph that is shown first.
pub(crate) fn assemble(
    title: String,
    mut data: Value,
    mut parts: Vec<Value>,
    explained: &[(usize, Explanation)],
    names: PageNames,
    source: &str,
    rows: u32,
) -> Page {
    for (part_index, explanation) in explained {
        parts[*part_index]["causes"] = causes(explanation, &names);
    }
    let shown = data["shown"].as_u64().map_or(0, |shown| shown as usize);
    let panels = panels(explained, shown);
    data["generator"] = concat!("pprofdiff ", env!("CARGO_PKG_VERSION")).into();
    // Marks the runtime's frames, which the flame graph can fold.
    data["system"] = bits(are_system(&names.texts).into_iter()).into();
    data["names"] = names.texts.into();
    data["types"] = parts.into();
    let explained = !explained.is_empty();
    Page { html: fill(&format!("{title} · pprofdiff"), &panels, source, &data), title, rows, explained }
}

/// Compares the instructions of functions by name. Returns the result in words by the number of the name, or `None` if the
/// user did not name binaries for both sides.
fn code_changes(
    diff: &Diff,
    query: &Query,
    functions: &[String],
    names: &PageNames,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>> {
    let Some(changes) = diff.named_code_changes(query, functions)? else { return Ok(None) };
    // An explanation may have the same warning.
    let warning = changes.warning.map(|warning| visible(&warning).into_owned());
    warnings.extend(warning.filter(|warning| !warnings.contains(warning)));
    let number = |name: &str| names.texts.iter().position(|text| *text == visible(name));
    let words = changes.by_name.iter().filter_map(|(name, change)| {
        Some((number(name)?.to_string(), Value::from(visible(&code_words(change)).into_owned())))
    });
    Ok(Some(Value::Object(words.collect())))
}

/// Adds warnings about everything that explanations omitted, without duplicates.
pub(crate) fn add_omissions(explained: &[(usize, Explanation)], warnings: &mut Vec<String>) {
    for note in explained.iter().flat_map(|(_, e)| &e.left_out).map(|note| visible(note).into_owned()) {
        if !warnings.contains(&note) {
            warnings.push(note);
        }
    }
}

/// Returns the explanations at the top of the page, one block per explained sample type. Only the block of the part
/// with the number `shown` is visible.
fn panels(explained: &[(usize, Explanation)], shown: usize) -> String {
    let mut html = String::new();
    for (part_index, e) in explained {
        let hidden = if *part_index == shown { "" } else { " hidden" };
        let _ = write!(html, "<div data-type=\"{part_index}\"{hidden}>{}</div>", explain_panel(e));
    }
    html
}

/// Returns, for each cause of an explanation and for the best candidate, the page's frames of its functions and
/// callers, and whether only the function's own cost changed.
fn causes(e: &Explanation, names: &PageNames) -> Value {
    let mut ids: HashMap<Cow<str>, Vec<usize>> = HashMap::default();
    let causes = || e.causes.iter().chain(nearest_cause(e));
    let evidence = causes().map(|c| &c.evidence);
    let spellings =
        evidence.flat_map(|frame_ids| frame_ids.functions.iter().chain(&frame_ids.callers).chain(&frame_ids.callees));
    spellings.for_each(|name| drop(ids.insert(visible(name), Vec::new())));
    for (id, name) in names.texts.iter().enumerate() {
        if let Some(ids) = ids.get_mut(name.as_str()) {
            ids.push(id);
        }
    }
    let frame_ids = |names: &[String]| names.iter().flat_map(|n| ids[&visible(n)].iter().copied()).collect::<Vec<_>>();
    let cause = |c: &pprofdiff_explain::Cause| {
        let Evidence { functions, callers, callees, .. } = &c.evidence;
        // If the cause is a call, highlight the callee.
        let (functions, callers) = match callees.is_empty() {
            true => (frame_ids(functions), frame_ids(callers)),
            false => (frame_ids(callees), frame_ids(functions)),
        };
        json!({"functions": functions, "callers": callers, "own": c.kind == CauseKind::Own})
    };
    causes().map(cause).collect()
}

/// The data of a sample type's part of the page.
pub(crate) struct PageViews {
    down: Flame,
    up: Flame,
    /// The total of the stacks that filters keep, or `None` without filters.
    kept: Option<Pair>,
    /// The table and the call graph, or `None` if the page only shows a flame graph.
    frames: Option<FrameViews>,
}

impl PageViews {
    /// Returns the names of the frames whose flat cost rose and fell most.
    fn most_changed(&self, frames: &Frames) -> Vec<String> {
        let rows = self.frames.iter().flat_map(|views| views.rose.iter().chain(&views.fell));
        rows.map(|row| frames.name(row.frame).to_string()).collect()
    }
}

/// The frames whose flat cost rose and fell most, the call graph and the table.
struct FrameViews {
    rose: Vec<TopRow>,
    fell: Vec<TopRow>,
    graph: Graph,
    /// The picture of the graph. `None` before drawing, for an empty graph, and if the budget is used up.
    picture: Option<String>,
    table: PageFrames,
}

/// The layout budgets of a page's call graphs: one for the query's sample type, and one for all others together.
struct Pictures {
    selected_budget: LayoutBudget,
    other_budget: LayoutBudget,
    /// The number of sample types without a call graph because the budget was used up.
    without: usize,
}

impl Pictures {
    /// Draws the call graphs of some sample types. `selected_index` is the index of the query's sample type in `views`,
    /// or `None` if it is not among them.
    fn draw(&mut self, views: &mut [PageViews], selected_index: Option<usize>) {
        let (before, behind) = views.split_at_mut(selected_index.unwrap_or(views.len()));
        let (selected, behind) = behind.split_at_mut(behind.len().min(1));
        let draw = |views: &mut dyn Iterator<Item = &mut PageViews>, budget: &mut LayoutBudget| {
            views.map(|views| usize::from(!views.draw(budget))).sum::<usize>()
        };
        // The graphs of one budget are drawn in order, so the result is deterministic.
        let without = parallel::join(
            || draw(&mut selected.iter_mut(), &mut self.selected_budget),
            || draw(&mut before.iter_mut().chain(behind), &mut self.other_budget),
        );
        self.without += without.0 + without.1;
    }
}

impl PageViews {
    pub(crate) fn from_measure(view: &Measure, max_frames: usize, options: &PageOptions) -> PageViews {
        let flames = || {
            let stacks = view.matched_stacks();
            let grow = |inverted| {
                stacks.flame(
                    &FlameOptions::default()
                        .with_inverted(inverted)
                        .with_min_width(options.min_width)
                        .with_max_frames(max_frames),
                )
            };
            parallel::join(|| grow(false), || grow(true))
        };
        let graph = || {
            (!options.only_flame).then(|| {
                let top = view.top(Sort::Flat);
                let graph = view.graph_of(&top, &GraphOptions::default());
                (top, graph)
            })
        };
        let ((down, up), graph) = parallel::join(flames, graph);
        let kept = (!view.summary().query.filters.set().is_empty()).then(|| view.kept_total());
        let frames = graph.map(|(top, graph)| FrameViews {
            rose: movers(&top, |delta| delta > 0),
            fell: movers(&top, |delta| delta < 0),
            graph,
            picture: None,
            table: PageFrames::new(view, top, &[&down, &up], max_frames / 4),
        });
        PageViews { down, up, kept, frames }
    }

    /// Returns the depth of the flame graph from the root, which the page shows first. The root has depth 0.
    pub(crate) fn depth(&self) -> u32 {
        self.down.nodes.iter().map(|n| n.depth).max().unwrap_or(0)
    }

    /// Draws the call graph, if the page has one with nodes. Returns false if the budget was already used up, so that
    /// the graph has no picture.
    pub(crate) fn draw(&mut self, budget: &mut LayoutBudget) -> bool {
        let is_used_up = budget.is_used_up();
        if let Some(frames) = self.frames.as_mut().filter(|frames| !is_used_up && !frames.graph.nodes.is_empty()) {
            frames.picture = svg_within(&frames.graph, budget).ok();
        }
        !is_used_up
    }
}

/// Returns the data of one sample type: its totals and both flame graphs, and unless the page only shows a flame graph,
/// the frames that changed most, the table and the call graph.
pub(crate) fn sample_type(view: &Measure, views: &PageViews, names: &mut PageNames) -> Value {
    let s = view.summary();
    let PageViews { down, up, kept, frames } = views;
    let mut part = json!({
        "type": visible(&s.sample_type),
        "unit": visible(&s.unit),
        "units": units::family(&s.unit),
        "total": pair(s.total),
        "kept": kept.map(pair),
        "delta": share(s.total.delta(), whole(s)),
        "factor": s.factor,
        "down": flame(down, names),
        "up": flame(up, names),
    });
    if let Some(FrameViews { rose, fell, graph, picture, table }) = frames {
        let frames = view.frames();
        part["rose"] = mover_rows(rose, frames, names);
        part["fell"] = mover_rows(fell, frames, names);
        part["table"] = table.columns(names);
        if let Some(svg) = picture {
            part["callgraph"] = json!({"svg": svg, "frames": drawn_frames(graph, names)});
        }
    }
    part
}

/// Marks the values of a sample type that are within chance: nodes of both flame graphs, and costs in the table. The
/// explanation compares means of runs, so sums are divided by the number of runs.
pub(crate) fn mark_chance(part: &mut Value, view: &Measure, views: &PageViews, e: &Explanation) {
    let s = view.summary();
    let (m0, m1) = if s.sum { e.noise.runs } else { (1, 1) };
    let chance = ChanceMarker {
        e,
        factor: s.factor,
        runs: [m0 as f64, m1 as f64],
        whole: e.has_total_changed().then_some(s.total.delta()),
    };
    part["chance"] = chance.sizes(s.total);
    part["down"]["chance"] = chance.of_flame(&views.down).into();
    part["up"]["chance"] = chance.of_flame(&views.up).into();
    if let Some(FrameViews { table, .. }) = &views.frames {
        part["table"]["flat_chance"] = table.chance(&chance, |row| row.flat).into();
        part["table"]["cum_chance"] = table.chance(&chance, |row| row.cum).into();
    }
}

/// Returns the listing as HTML, or an empty string if no function has sources.
fn source(diff: &Diff, query: &Query, sources: &dyn SourceCode) -> Result<String> {
    let listing = diff.list_with_sources(query, LISTED, sources)?;
    if listing.routines.is_empty() {
        return Ok(String::new());
    }
    let (s, n) = (&listing.summary, listing.routines.len());
    let sample_type = escape(&visible(&format!("{} ({})", s.sample_type, s.unit)));
    let order = if s.base.is_some() { "with the largest change in cum" } else { "with the largest cum" };
    let mut html =
        format!("<div class=\"note\">{sample_type}: the {n} functions {order} among those with sources</div>");
    push_routines(&listing, &mut html);
    Ok(html)
}

pub(crate) fn side(s: &Side, sum: bool) -> Value {
    let duration = (s.duration_nanos != 0).then(|| units::show(s.duration_nanos, "nanoseconds"));
    json!({
        "name": visible(&inputs(s, sum)),
        "extent": extent(s),
        "duration": duration,
        "time": (s.time_nanos != 0).then_some(s.time_nanos / 1_000_000),
    })
}

/// Returns the settings of the query, except its sample type.
pub(crate) fn settings(s: &Summary) -> Vec<String> {
    let mut settings: Vec<String> = s.query.settings().iter().map(|text| visible(text).into_owned()).collect();
    if s.query.normalize != Normalize::None {
        settings.push(format!("normalized by {}", s.query.normalize.mode()));
    }
    settings
}

fn title(s: &Summary) -> String {
    let name = |side: &Side| inputs(side, s.sum);
    let sides = match &s.base {
        Some(base) => format!("{} → {}", name(base), name(&s.new)),
        None => name(&s.new),
    };
    visible(&sides).into_owned()
}
