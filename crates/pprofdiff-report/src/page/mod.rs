//! The page: one HTML file with summary, explanation, flame graph, table, callers and callees, call graph, and source
//! lines if there are sources. It asks nobody for anything. `series` makes that of many builds of the same parts.
//!
//! The assets beside this file are what a browser runs; the profile is data in a block of JSON that no browser
//! executes. Names are from strangers: here every `<` becomes `\u003c`, so that nothing can end the block, and
//! the page sets them as text only. Should both fail, the page's policy (CSP) allows no script and no
//! style but the page's own, by their hashes, and no request at all.
//!
//! What moved most, beside the total, is by flat: by cum, the first five would be callers of each other. Source lines
//! are made with the page, of a few functions: whole trees of sources have no place in a file that is mailed.
//!
//! The flame graph is a canvas and not SVG: measured with 50,000 frames. The table says the same to a screen reader.

mod columns;
mod file;
mod names;
mod ranking;
mod series;
mod views;

use std::borrow::Cow;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::explain::{explain_panel, nearest_cause, whole_changed};
use super::html::{escape, escape_ours};
use super::listing::{push_routines, to_html_page};
use super::numbers::{extent, share, whole};
use super::text::inputs;
use crate::format::{BASE, Format, unsupported};
use crate::layout::LayoutBudget;
use crate::report::Report;
use crate::svg::svg_within;
use crate::view::View;
use file::fill;
pub use file::{page_hashes, page_style};
use names::{Names, visible};
use pprofdiff::explain::{CauseKind, Evidence, ExplainOptions, Explanation, FEW_SAMPLES};
use pprofdiff::flame::{Flame, FlameOptions};
use pprofdiff::graph::{Graph, GraphOptions};
use pprofdiff::list::SourceCode;
use pprofdiff::random::HashMap;
use pprofdiff::units;
use pprofdiff::work;
use pprofdiff::{Diff, Measure, Normalize, Pair, Query, Side, Sort, Summary, TopRow, are_system};
use pprofdiff::{Error, Result, parallel};
pub(crate) use series::series_page;
use views::{Chance, Table, bits, drawn_frames, flame, mover_rows, movers, pair};

pub(crate) const FORMAT: Format = Format {
    name: "html",
    extensions: &["html", "htm"],
    about: "one page for a browser: flame graph, table, call graph, source lines, every sample type",
    shows: |request| match request.view {
        _ if !request.query.extra_sample_types.is_empty() => None,
        View::Top { significant: false, .. } => {
            Some(request.asking(View::Page { options: PageOptions::default(), sources: None }))
        }
        View::Shifts { sort, limit, .. } => Some(request.asking(timelines(true, sort, limit))),
        View::Movers { sort, limit } => Some(request.asking(timelines(false, sort, limit))),
        View::Page { .. } | View::Timelines { .. } | View::List { .. } | View::Disasm { .. } => Some(request.clone()),
        _ => None,
    },
    write: |report, out, _| match report {
        Report::Page(page) => out.write_all(page.html.as_bytes()),
        Report::Listing(listing) => out.write_all(to_html_page(listing).as_bytes()),
        Report::Ranking(of) => out.write_all(ranking::ranking_page(of).as_bytes()),
        _ => Err(unsupported()),
    },
    ..BASE
};

fn timelines(lasting: bool, sort: Sort, limit: Option<usize>) -> View {
    View::Timelines { lasting, sort, limit, options: PageOptions::default() }
}

/// What a page holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageOptions {
    /// As [`FlameOptions::min_width`].
    pub min_width: f64,
    /// The most frames that all flame graphs of the page keep together: each sample type has two, one from the
    /// root and one from the leaf.
    pub max_frames: usize,
    /// Only the flame graph, of the query's sample type; no table.
    pub only_flame: bool,
    /// How causes are looked for.
    pub explain: ExplainOptions,
}

impl Default for PageOptions {
    /// 50,000 frames, which makes pages of at most a few MB.
    fn default() -> PageOptions {
        PageOptions {
            min_width: FlameOptions::default().min_width,
            max_frames: 50_000,
            only_flame: false,
            explain: ExplainOptions::default(),
        }
    }
}
/// Sample types that a page has at most. Programs have some ten; each has its graphs and its table.
const MAX_TYPES: usize = 100;
/// Sample types that are worked out at the same time, of few samples and of many: each takes memory by the number of stacks.
const TYPES_AT_A_TIME: [usize; 2] = [4, 2];
/// Sample types that are explained: the query's, and of the others the first; of profiles with more samples than
/// `MANY_SAMPLES` only the query's.
const MAX_EXPLAINED: usize = 4;
const MANY_SAMPLES: usize = 50_000;
/// The budget of all call graphs but that of the query's sample type, which has its own: for so many dense profiles, or
/// ten times as many real ones.
const PICTURES: i64 = 3;
/// Functions that the page lists the source lines of.
const LISTED: usize = 20;

/// A page for a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The whole file.
    pub html: String,
    /// What it is of: "main.pb.gz → branch.pb.gz".
    pub title: String,
    /// Boxes on top of each other, in the flame graph that is shown first.
    rows: u32,
    /// Whether the account stands above it.
    #[serde(default)]
    explained: bool,
}

impl Page {
    /// The page in a frame, for notebooks: what is in it can run, but has no rights to what is around it.
    pub fn framed(&self) -> String {
        // The rows, and what is above and below them; no more than fits on a screen.
        let (around, most) = if self.explained { (630, 1000) } else { (330, 720) };
        let height = (self.rows.saturating_mul(20)).saturating_add(around).min(most);
        format!(
            "<iframe sandbox=\"allow-scripts\" title=\"{}\" style=\"width:100%;height:{height}px;border:0\" \
             srcdoc=\"{}\"></iframe>",
            escape(&self.title),
            escape_ours(&self.html)
        )
    }
}

/// The page of a diff or of a single profile. Every sample type of the first hundred can be chosen in it; the query's,
/// which it has in any case, comes first. What is left out is said.
///
/// Given `sources`, it also lists the source lines of the functions whose cum changed most, of those that have sources,
/// with the costs of the query's sample type.
///
/// # Errors
/// As [`Diff::measure`].
pub fn page(diff: &Diff, query: &Query, options: &PageOptions, sources: Option<&dyn SourceCode>) -> Result<Page> {
    let selection = diff.select(query)?;
    let wanted = diff.find_sample_type(query.sample_type.as_deref())?;
    let all = diff.sample_types();
    let types: Vec<usize> = match options.only_flame {
        true => vec![wanted],
        // The one that is asked for takes the last place, should it have none.
        false => (0..all.len()).filter(|&i| i < MAX_TYPES - usize::from(wanted >= MAX_TYPES) || i == wanted).collect(),
    };
    let share = options.max_frames / (2 * types.len().max(1));
    let mut names = Names::default();
    let mut parts = Vec::with_capacity(types.len());
    let mut shown = None;
    let mut rows = 0;
    let mut pictures = Pictures {
        of_wanted: LayoutBudget::for_pictures(1),
        of_others: LayoutBudget::for_pictures(PICTURES),
        without: 0,
    };
    let most_explained = if diff.n_samples() > MANY_SAMPLES { 1 } else { MAX_EXPLAINED };
    let measure = |i: usize| match i == wanted {
        true => selection.measure(query.sample_type.as_deref(), query.normalize),
        false => selection.measure_type(i, query.normalize),
    };
    let mut measured: Vec<(usize, Measure)> = Vec::with_capacity(types.len());
    for (part, &i) in types.iter().enumerate() {
        match measure(i) {
            Ok(view) => {
                if i == wanted {
                    shown = Some((part, view.summary().clone()));
                }
                parts.push(Value::Null);
                measured.push((part, view));
            }
            // One type can't be normalized, perhaps; the others can.
            Err(e) if i != wanted => {
                parts.push(json!({"type": visible(&all[i].0), "error": visible(&e.to_string())}));
            }
            Err(e) => return Err(e),
        }
    }
    let why = || {
        // The query's first, so that it has a place. Of two types with one name only the first can be asked for.
        let is_found = |part: usize| diff.find_sample_type(Some(&all[types[part]].0)).ok() == Some(types[part]);
        let mut candidates: Vec<usize> =
            measured.iter().map(|(part, _)| *part).filter(|&part| is_found(part)).collect();
        candidates.sort_by_key(|&part| types[part] != wanted);
        let numbers: Vec<usize> = candidates.iter().map(|&part| types[part]).collect();
        let found = selection.explain_types(&numbers, most_explained, &options.explain);
        let part_of = |number: usize| types.iter().position(|&of| of == number).unwrap_or(0);
        let mut explained: Vec<(usize, Explanation)> =
            found.into_iter().map(|(number, e)| (part_of(number), e)).collect();
        explained.sort_by_key(|(part, _)| *part);
        explained
    };
    // Both take memory, so of many samples one after the other.
    let few = diff.n_samples() <= FEW_SAMPLES;
    let at_a_time = if few { TYPES_AT_A_TIME[0] } else { parallel::threads().min(TYPES_AT_A_TIME[1]) };
    let draw = |some: &[(usize, Measure)], pictures: &mut Pictures, names: &mut Names| {
        let mut views = parallel::map(some, |(_, view)| Views::from_measure(view, share, options));
        let wanted = some.iter().position(|(part, _)| types[*part] == wanted);
        pictures.draw(&mut views, wanted);
        let part = |((_, view), views): (&(usize, Measure), Views)| (sample_type(view, &views, names), views);
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
        work::begin_phase("drawing");
        (explained, begin())
    };
    let mut first = Some(first);
    work::begin_phase("drawing");
    for some in measured.chunks(at_a_time) {
        let drawn = first.take().unwrap_or_else(|| draw(some, &mut pictures, &mut names));
        for ((at, view), (mut part, views)) in some.iter().zip(drawn) {
            if let Some((_, explanation)) = explained.iter().find(|(explained, _)| explained == at) {
                mark_chance(&mut part, view, &views, explanation);
            }
            parts[*at] = part;
            if types[*at] == wanted {
                rows = views.depth() + 1;
            }
        }
    }
    let left_out = all.len() - types.len();
    let Some((shown, summary)) = shown else { return Err(Error::query("there is no sample type to show")) };
    let mut warnings: Vec<String> = summary.warnings.iter().map(|w| visible(w).into_owned()).collect();
    if !options.only_flame && left_out > 0 {
        warnings.push(format!(
            "the page has {} of {} sample types; make another page of one that is missing",
            types.len(),
            all.len()
        ));
    }
    if !options.only_flame && pictures.without > 0 {
        warnings.push(format!(
            "the page has call graphs of {} of {} sample types; make another page of one that is missing",
            types.len() - pictures.without,
            types.len()
        ));
    }
    say_left_out(&explained, &mut warnings);
    let data = json!({
        "base": summary.base.as_ref().map(|base| side(base, summary.sum)),
        "new": side(&summary.new, summary.sum),
        "settings": settings(&summary),
        "warnings": warnings,
        "shown": shown,
    });
    let source = sources.map(|sources| source(diff, query, sources)).transpose()?.unwrap_or_default();
    Ok(assemble(title(&summary), data, parts, &explained, names, &source, rows))
}

/// The page of its parts, of which some are explained; `data` has what is not of a part, and which is shown first.
fn assemble(
    title: String,
    mut data: Value,
    mut parts: Vec<Value>,
    explained: &[(usize, Explanation)],
    names: Names,
    source: &str,
    rows: u32,
) -> Page {
    for (at, explanation) in explained {
        parts[*at]["causes"] = causes(explanation, &names);
    }
    let shown = data["shown"].as_u64().map_or(0, |shown| shown as usize);
    let panels = panels(explained, shown);
    data["generator"] = concat!("pprofdiff ", env!("CARGO_PKG_VERSION")).into();
    // Which of them are the runtime's: those fold.
    data["system"] = bits(are_system(&names.texts).into_iter()).into();
    data["names"] = names.texts.into();
    data["types"] = parts.into();
    let explained = !explained.is_empty();
    Page { html: fill(&format!("{title} · pprofdiff"), &panels, source, &data), title, rows, explained }
}

/// What explanations had no room for, each once.
fn say_left_out(explained: &[(usize, Explanation)], warnings: &mut Vec<String>) {
    for note in explained.iter().flat_map(|(_, e)| &e.left_out).map(|note| visible(note).into_owned()) {
        if !warnings.contains(&note) {
            warnings.push(note);
        }
    }
}

/// What the page opens with, a block for each sample type that is explained; that of the type `shown` is in sight.
fn panels(explained: &[(usize, Explanation)], shown: usize) -> String {
    let mut html = String::new();
    for (at, e) in explained {
        let hidden = if *at == shown { "" } else { " hidden" };
        let _ = write!(html, "<div data-type=\"{at}\"{hidden}>{}</div>", explain_panel(e));
    }
    html
}

/// For each cause of an explanation, and for what is nearest to one, which frames of the page's are its function and the
/// caller, and whether only the function itself costs more.
fn causes(e: &Explanation, names: &Names) -> Value {
    let mut ids: HashMap<Cow<str>, Vec<usize>> = HashMap::default();
    let causes = || e.causes.iter().chain(nearest_cause(e));
    let evidence = causes().map(|c| &c.evidence);
    let spelled = evidence.flat_map(|of| of.functions.iter().chain(&of.callers).chain(&of.callees));
    spelled.for_each(|name| drop(ids.insert(visible(name), Vec::new())));
    for (id, name) in names.texts.iter().enumerate() {
        if let Some(ids) = ids.get_mut(name.as_str()) {
            ids.push(id);
        }
    }
    let of = |names: &[String]| names.iter().flat_map(|n| ids[&visible(n)].iter().copied()).collect::<Vec<_>>();
    let cause = |c: &pprofdiff::explain::Cause| {
        let Evidence { functions, callers, callees, .. } = &c.evidence;
        // What it calls is pointed out where that is what changed.
        let (functions, callers) = match callees.is_empty() {
            true => (of(functions), of(callers)),
            false => (of(callees), of(functions)),
        };
        json!({"functions": functions, "callers": callers, "own": c.kind == CauseKind::Own})
    };
    causes().map(cause).collect()
}

/// What a sample type's part of the page is made of.
struct Views {
    down: Flame,
    up: Flame,
    /// The total of what filters leave, if there are any.
    kept: Option<Pair>,
    /// Nothing of pages of a flame graph only.
    frames: Option<FrameViews>,
}

/// Of frames: which rose and fell most, the graph of them, and the table.
struct FrameViews {
    rose: Vec<TopRow>,
    fell: Vec<TopRow>,
    graph: Graph,
    /// The graph's, once it is drawn; nothing where there was no room, or is nothing to draw.
    picture: Option<String>,
    table: Table,
}

/// What the call graphs of a page may cost to lay out: that of the sample type that was asked for, and all others together.
struct Pictures {
    of_wanted: LayoutBudget,
    of_others: LayoutBudget,
    /// How many sample types have none for want of room.
    without: usize,
}

impl Pictures {
    /// Draws the call graphs of some sample types, of which one may be that which was asked for.
    fn draw(&mut self, views: &mut [Views], wanted: Option<usize>) {
        let (before, behind) = views.split_at_mut(wanted.unwrap_or(views.len()));
        let (of_wanted, behind) = behind.split_at_mut(behind.len().min(1));
        let draw = |views: &mut dyn Iterator<Item = &mut Views>, budget: &mut LayoutBudget| {
            views.map(|views| usize::from(!views.draw(budget))).sum::<usize>()
        };
        // What one leaves to the next follows from their order.
        let without = parallel::join(
            || draw(&mut of_wanted.iter_mut(), &mut self.of_wanted),
            || draw(&mut before.iter_mut().chain(behind), &mut self.of_others),
        );
        self.without += without.0 + without.1;
    }
}

impl Views {
    fn from_measure(view: &Measure, max_frames: usize, options: &PageOptions) -> Views {
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
            table: Table::new(view, top, &[&down, &up], max_frames / 4),
        });
        Views { down, up, kept, frames }
    }

    /// How deep the graph is that is shown first.
    fn depth(&self) -> u32 {
        self.down.nodes.iter().map(|n| n.depth).max().unwrap_or(0)
    }

    /// Draws the call graph. False if there was no room for it.
    fn draw(&mut self, budget: &mut LayoutBudget) -> bool {
        let is_used_up = budget.is_used_up();
        if let Some(frames) = self.frames.as_mut().filter(|of| !is_used_up && !of.graph.nodes.is_empty()) {
            frames.picture = svg_within(&frames.graph, budget).ok();
        }
        !is_used_up
    }
}

/// One sample type: its totals, both flame graphs, the table, and the call graph that was drawn.
fn sample_type(view: &Measure, views: &Views, names: &mut Names) -> Value {
    let s = view.summary();
    let Views { down, up, kept, frames } = views;
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

/// Says of one sample type what is no more than chance.
fn mark_chance(part: &mut Value, view: &Measure, views: &Views, e: &Explanation) {
    let s = view.summary();
    let (m0, m1) = if s.sum { e.noise.runs } else { (1, 1) };
    let chance = Chance {
        e,
        factor: s.factor,
        runs: [m0 as f64, m1 as f64],
        whole: whole_changed(e).then_some(s.total.delta()),
    };
    part["chance"] = chance.sizes(s.total);
    part["down"]["chance"] = chance.of_flame(&views.down).into();
    part["up"]["chance"] = chance.of_flame(&views.up).into();
    if let Some(FrameViews { table, .. }) = &views.frames {
        part["table"]["flat_chance"] = table.chance(&chance, |row| row.flat).into();
        part["table"]["cum_chance"] = table.chance(&chance, |row| row.cum).into();
    }
}

/// The listing, as HTML; nothing if no function has sources.
fn source(diff: &Diff, query: &Query, sources: &dyn SourceCode) -> Result<String> {
    let listing = diff.list_with_sources(query, LISTED, sources)?;
    if listing.routines.is_empty() {
        return Ok(String::new());
    }
    let (s, n) = (&listing.summary, listing.routines.len());
    let of = escape(&visible(&format!("{} ({})", s.sample_type, s.unit)));
    let what = if s.base.is_some() { "whose cum changed most" } else { "with the largest cum" };
    let mut html = format!("<div class=\"note\">{of}: the {n} functions {what}, of those that have sources</div>");
    push_routines(&listing, &mut html);
    Ok(html)
}

fn side(s: &Side, sum: bool) -> Value {
    let duration = (s.duration_nanos != 0).then(|| units::show(s.duration_nanos, "nanoseconds"));
    json!({
        "name": visible(&inputs(s, sum)),
        "extent": extent(s),
        "duration": duration,
        "time": (s.time_nanos != 0).then_some(s.time_nanos / 1_000_000),
    })
}

/// What the question was, besides the sample type.
fn settings(s: &Summary) -> Vec<String> {
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
