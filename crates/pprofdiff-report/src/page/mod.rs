//! The page: one HTML file with summary, explanation, flame graph, table, callers and callees, call graph, and source
//! lines if there are sources. It asks nobody for anything. `series` makes that of many builds of the same parts.
//!
//! The assets beside this file are what a browser runs; the profile is data in a block of JSON that no browser
//! executes. Names are from strangers: here every `<` becomes `\u003c`, so that nothing can end the block, and
//! the page sets them as text only. Should both fail, the page's policy (CSP) allows no script and no
//! style but the page's own, by their hashes, and no request at all.

mod columns;
mod series;

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use columns::Numbers;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub(crate) use series::series_page;
use sha2::{Digest, Sha256};

use super::explain::explain_panel;
use super::html::{escape, escape_ours};
use super::listing::{push_routines, to_html_page};
use super::numbers::{extent, share, whole};
use super::palette::{LESS, MORE, Shades, hex};
use super::text::inputs;
use crate::format::{Format, nothing, unsupported};
use crate::layout::Room;
use crate::report::Report;
use crate::request::Ask;
use pprofdiff::edges::Relation;
use pprofdiff::explain::{CauseKind, Evidence, ExplainOptions, Explanation};
use pprofdiff::flame::{Flame, FlameFrame, FlameNode, FlameOptions};
use pprofdiff::graph::{Graph, GraphOptions};
use pprofdiff::list::SourceCode;
use pprofdiff::random::{HashMap, HashSet, RandomState};
use pprofdiff::text::{harmless, is_harmful};
use pprofdiff::units;
use pprofdiff::work::{self, paced};
use pprofdiff::{Diff, Frames, Measure, Normalize, Pair, Query, Side, Sort, Summary, Top, TopRow};
use pprofdiff::{Error, Result, parallel};

pub(crate) const FORMAT: Format = Format {
    name: "html",
    extensions: &["html", "htm"],
    about: "one page for a browser: flame graph, table, call graph, source lines, every sample type",
    binary: false,
    limit: None,
    warns: true,
    leaves_out: nothing,
    shows: |request| match request.ask {
        _ if !request.query.extra_sample_types.is_empty() => None,
        Ask::Top { significant: false, .. } => {
            Some(request.asking(Ask::Page { options: PageOptions::default(), sources: None }))
        }
        Ask::Shifts { sort, limit, .. } => Some(request.asking(courses(true, sort, limit))),
        Ask::Movers { sort, limit } => Some(request.asking(courses(false, sort, limit))),
        Ask::Page { .. } | Ask::Courses { .. } | Ask::List { .. } | Ask::Disasm { .. } => Some(request.clone()),
        _ => None,
    },
    write: |report, out, _| match report {
        Report::Page(page) => out.write_all(page.html.as_bytes()),
        Report::Listing(listing) => out.write_all(to_html_page(listing).as_bytes()),
        _ => Err(unsupported()),
    },
    each: None,
};

fn courses(lasting: bool, sort: Sort, limit: Option<usize>) -> Ask {
    Ask::Courses { lasting, sort, limit, options: PageOptions::default() }
}

const TEMPLATE: &str = include_str!("page.html");
/// What the page looks like, with less and more as variables of the palette.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let mut style = ":root {\n".to_owned();
    for (name, tone) in [("less", LESS), ("more", MORE)] {
        for (suffix, Shades { light, dark }) in [("", tone.area), ("-text", tone.text)] {
            let _ = writeln!(style, "  --{name}{suffix}: light-dark({}, {});", hex(light), hex(dark));
        }
    }
    style + "}\n" + include_str!("page.css")
});
/// One function, so that no name of it is a window's. Its comments are for who reads the source.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    without_comments(concat!(
        "\"use strict\";\n(() => {\n",
        include_str!("data.js"),
        include_str!("flame.js"),
        include_str!("courses.js"),
        include_str!("page.js"),
        "})();\n"
    ))
});

/// Our script without the lines that hold nothing but a comment. No text in it goes over several lines.
fn without_comments(script: &str) -> String {
    let mut is_comment = false;
    let code = script.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        is_comment |= line.starts_with("/*");
        let is_left_out = is_comment || line.is_empty() || line.starts_with("//");
        is_comment &= !line.ends_with("*/");
        !is_left_out
    });
    code.collect()
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

/// Callers, and callees, of one function that the page has at most: of the thousand costliest, and of the others.
/// Edges are most of a large page, and few of them are ever looked at.
const MOST_EDGES: [usize; 2] = [12, 2];
const COSTLIEST: usize = 1000;
/// Frames beside the total: how many rose, and how many fell.
const MOVERS: usize = 5;
/// Sample types that a page has at most. Programs have some ten; each has its graphs and its table.
const MOST_TYPES: usize = 100;
/// Sample types that are worked out at the same time: each takes memory by the number of stacks.
const MAX_TYPES_AT_A_TIME: usize = 2;
/// Sample types that are explained: the query's, and of the others the first; of profiles with more samples than
/// `MANY_SAMPLES` only the query's.
const MOST_EXPLAINED: usize = 4;
const MANY_SAMPLES: usize = 50_000;
/// The room of all call graphs but that of the query's sample type, which has its own: for so many dense profiles, or
/// ten times as many real ones.
const PICTURES: i64 = 3;
/// Functions that the page lists the source lines of.
const LISTED: usize = 20;
/// Bytes of a name that the page has at most; longer ones are machines talking to machines.
const LONGEST_NAME: usize = 16 << 10;
/// From so many bytes of names on, a name has less of them.
const MANY_NAMES: usize = 4 << 20;
const SHORT_NAME: usize = 256;

/// A page for a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The whole file.
    pub html: String,
    /// What it is of: "main.pb.gz → branch.pb.gz".
    pub title: String,
    /// Boxes on top of each other, in the flame graph that is shown first.
    rows: u32,
}

impl Page {
    /// The page in a frame, for notebooks: what is in it can run, but has no rights to what is around it.
    pub fn framed(&self) -> String {
        // The rows, and what is above and below them; no more than fits on a screen.
        let height = (self.rows.saturating_mul(20)).saturating_add(330).min(720);
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
        false => {
            (0..all.len()).filter(|&i| i < MOST_TYPES - usize::from(wanted >= MOST_TYPES) || i == wanted).collect()
        }
    };
    let share = options.max_frames / (2 * types.len().max(1));
    let mut names = Names::default();
    let mut parts = Vec::with_capacity(types.len());
    let mut shown = None;
    let mut rows = 0;
    let mut explained: Vec<(usize, Explanation)> = Vec::new();
    let (mut own_room, mut room, mut without_graph) = (Room::of(1), Room::of(PICTURES), 0);
    let samples: usize = diff.profiles().map(|(_, profile)| profile.n_samples()).sum();
    let most_explained = if samples > MANY_SAMPLES { 1 } else { MOST_EXPLAINED };
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
                // The query's has a place kept for it. Explained before the tree is built, since both take memory.
                if i == wanted || explained.len() + usize::from(i < wanted) < most_explained {
                    explained.extend(explain(diff, query, i, options).map(|e| (part, e)));
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
    work::begin_phase("drawing");
    if !options.only_flame {
        selection.build_tree();
    }
    for some in measured.chunks(parallel::threads().min(MAX_TYPES_AT_A_TIME)) {
        let views = parallel::map(some, |(_, view)| Views::of(view, share, options));
        for ((part, view), views) in some.iter().zip(views) {
            let is_shown = types[*part] == wanted;
            let explanation = explained.iter().find(|(explained, _)| explained == part).map(|(_, e)| e);
            let room = if is_shown { &mut own_room } else { &mut room };
            without_graph += usize::from(room.is_used_up());
            let depth;
            (parts[*part], depth) = sample_type(view, views, explanation, &mut names, share, room);
            if is_shown {
                rows = depth + 1;
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
    if !options.only_flame && without_graph > 0 {
        warnings.push(format!(
            "the page has call graphs of {} of {} sample types; make another page of one that is missing",
            types.len() - without_graph,
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
    data["names"] = names.texts.into();
    data["types"] = parts.into();
    Page { html: fill(&format!("{title} · pprofdiff"), &panels, source, &data), title, rows }
}

/// Why the sides differ in a sample type. Nothing where that can't be said: of one side, of other granularities than
/// functions. Not normalized, since the scale is found.
fn explain(diff: &Diff, query: &Query, sample_type: usize, options: &PageOptions) -> Option<Explanation> {
    let name = &diff.sample_types()[sample_type].0;
    // Of two types with one name only the first can be asked for.
    if options.only_flame || !diff.is_two_sided() || diff.find_sample_type(Some(name)).ok() != Some(sample_type) {
        return None;
    }
    let query = query.clone().with_sample_type(name).with_normalize(Normalize::None);
    diff.explain(&query, &[], &options.explain).ok()
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

/// For each cause of an explanation, which frames of the page's are its function and the caller, and whether only the
/// function itself costs more.
fn causes(e: &Explanation, names: &Names) -> Value {
    let mut ids: HashMap<Cow<str>, Vec<usize>> = HashMap::default();
    let evidence = e.causes.iter().map(|c| &c.evidence);
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
    e.causes.iter().map(cause).collect()
}

/// What of a view is no more than chance, if that is known.
#[derive(Clone, Copy)]
struct Chance<'a> {
    e: &'a Explanation,
    /// By what the view's new values are multiplied.
    factor: f64,
    /// How many runs the values of each side are sums of.
    runs: [f64; 2],
}

impl Chance<'_> {
    fn is_chance(&self, p: Pair) -> bool {
        let [base, new] = self.runs;
        self.e.is_chance(p.base as f64 / base, p.new as f64 / self.factor / new)
    }

    /// How much of a frame is chance, by its size: the least growth of one with 1, 2, 4, 8 ... events, and how much
    /// growth is that of the work.
    fn sizes(&self, total: Pair) -> Value {
        let event = self.e.noise.event;
        let sizes =
            (0..63).map(|i| event * (1u64 << i) as f64).take_while(|size| *size > 0.0 && *size < total.base as f64);
        let digits = |factor: f64| (factor * 1e4).round() / 1e4;
        let least: Vec<f64> = sizes.map(|size| digits(self.e.least_growth(size / self.runs[0]))).collect();
        json!({"event": event, "least": least, "work": self.e.scale.factor})
    }
}

/// A bit for each of some values, in base64: a byte for eight, the first of them the lowest bit.
fn bits(values: impl Iterator<Item = bool>) -> String {
    let mut bytes = Vec::new();
    for (i, value) in values.enumerate() {
        if i % 8 == 0 {
            bytes.push(0);
        }
        bytes[i / 8] |= u8::from(value) << (i % 8);
    }
    STANDARD.encode(bytes)
}

/// What a sample type's part of the page is made of.
struct Views {
    down: Flame,
    up: Flame,
    /// The total of what filters leave, if there are any.
    kept: Option<Pair>,
    /// By flat, and the graph of it; nothing of pages of a flame graph only.
    frames: Option<(Top, Graph)>,
}

impl Views {
    fn of(view: &Measure, max_frames: usize, options: &PageOptions) -> Views {
        let stacks = view.matched_stacks();
        let grow = |inverted| {
            stacks.flame(
                &FlameOptions::default()
                    .with_inverted(inverted)
                    .with_min_width(options.min_width)
                    .with_max_frames(max_frames),
            )
        };
        let (down, up) = (grow(false), grow(true));
        drop(stacks);
        let kept = (!view.summary().query.filters.set().is_empty()).then(|| view.kept_total());
        let frames = (!options.only_flame).then(|| {
            let top = view.top(Sort::Flat);
            let graph = view.graph_of(&top, &GraphOptions::default());
            (top, graph)
        });
        Views { down, up, kept, frames }
    }
}

/// One sample type: its totals, both flame graphs, and the table. Also how deep the first graph is.
fn sample_type(
    view: &Measure,
    views: Views,
    explanation: Option<&Explanation>,
    names: &mut Names,
    max_frames: usize,
    room: &mut Room,
) -> (Value, u32) {
    work::begin_phase("drawing");
    let s = view.summary();
    let (m0, m1) = explanation.filter(|_| s.sum).map_or((1, 1), |e| e.noise.runs);
    let chance = explanation.map(|e| Chance { e, factor: s.factor, runs: [m0 as f64, m1 as f64] });
    let Views { down, up, kept, frames } = views;
    let mut part = json!({
        "type": visible(&s.sample_type),
        "unit": visible(&s.unit),
        "units": units::family(&s.unit),
        "total": pair(s.total),
        "kept": kept.map(pair),
        "delta": share(s.total.delta(), whole(s)),
        "factor": s.factor,
        "down": flame(&down, names, chance),
        "up": flame(&up, names, chance),
    });
    if let Some(chance) = chance {
        part["chance"] = chance.sizes(s.total);
    }
    if let Some((mut top, graph)) = frames {
        part["rose"] = movers(&top, names, |delta| delta > 0);
        part["fell"] = movers(&top, names, |delta| delta < 0);
        top.sort(Sort::Cum);
        part["table"] = table(view, top, &[&down, &up], names, max_frames / 4, chance);
        if let Some(graph) = call_graph(&graph, names, room) {
            part["callgraph"] = graph;
        }
    }
    (part, down.nodes.iter().map(|n| n.depth).max().unwrap_or(0))
}

/// The frames whose own cost changed most in one direction, with both values; of one profile, those that cost most. Own
/// cost, since these changes add up to that of the total; by cum, the first would be callers of each other.
///
/// `top` is by flat, largest change first.
fn movers(top: &Top, names: &mut Names, which: fn(i64) -> bool) -> Value {
    let rows = top.rows.iter().filter(|r| which(r.flat.delta())).take(MOVERS);
    rows.map(|r| json!([names.id(&top.frames, r.frame), r.flat.base.to_string(), r.flat.new.to_string()])).collect()
}

/// The frames of all views of a page, each once. Frames are interned from the profiles' tables, whatever the sample type,
/// so one frame has one number in all views of one diff; those of several diffs are the same by their names.
#[derive(Default)]
struct Names {
    /// Of the diff that is looked at.
    ids: HashMap<u32, u64>,
    texts: Vec<String>,
    bytes: usize,
    /// By label, file and mapping, of all diffs, which are long: two hashes with random keys stand for them. A diff that has
    /// two of the same has a second number for it.
    known: HashMap<[u64; 2], u64>,
    hashers: [RandomState; 2],
    /// Which of them the diff that is looked at has.
    taken: HashSet<u64>,
}

impl Names {
    /// What follows is of another diff.
    fn of_next_diff(&mut self) {
        self.ids.clear();
        self.taken.clear();
    }

    fn id(&mut self, frames: &Frames, frame: u32) -> u64 {
        if let Some(&id) = self.ids.get(&frame) {
            return id;
        }
        let label = frames.label(frame);
        let key = self.hashers.each_ref().map(|h| h.hash_one((&label, frames.file(frame), frames.mapping(frame))));
        let id = match self.known.get(&key) {
            Some(&id) if self.taken.insert(id) => id,
            _ => {
                let most = if self.bytes < MANY_NAMES { LONGEST_NAME } else { SHORT_NAME };
                let name = visible_to(&label, most).into_owned();
                self.bytes += name.len();
                self.texts.push(name);
                let id = self.texts.len() as u64 - 1;
                self.known.entry(key).or_insert(id);
                self.taken.insert(id);
                id
            }
        };
        self.ids.insert(frame, id);
        id
    }
}

/// int64 as text: JavaScript's numbers end at 2^53.
fn pair(p: Pair) -> Value {
    json!([p.base.to_string(), p.new.to_string()])
}

/// A flame graph as columns, a node a row, depth first.
///
/// What a node is: 0 the root, 1 `(pruned)`, else its frame + 2; times four, plus 1 if the base has it, plus 2 if
/// the new side has it. Values lack of the parent's. Widths that follow from the two values are left out,
/// which is all of them unless there are negative values or scaled ones.
fn flame(flame: &Flame, names: &mut Names, chance: Option<Chance>) -> Value {
    let mut ids = vec![None; flame.frames.len()];
    let mut id = |frame: u32| *ids[frame as usize].get_or_insert_with(|| names.id(&flame.frames, frame));
    let what = |n: &FlameNode| {
        let what = match n.frame {
            FlameFrame::Root => 0,
            FlameFrame::Pruned => 1,
            FlameFrame::Frame(f) => id(f) + 2,
        };
        what * 4 + u64::from(n.sides.0) + 2 * u64::from(n.sides.1)
    };
    let nodes = &flame.nodes;
    let what: Numbers = nodes.iter().map(what).collect();
    let depth: Numbers = nodes.iter().map(|n| u64::from(n.depth)).collect();
    let mut parents = Vec::with_capacity(nodes.len());
    let mut path: Vec<usize> = Vec::new();
    for (i, n) in nodes.iter().enumerate() {
        path.truncate(n.depth as usize);
        parents.push(path.last().copied());
        path.push(i);
    }
    let lacking = |value: &dyn Fn(&FlameNode) -> i64| {
        let lacks = nodes.iter().zip(&parents).map(|(n, p)| p.map_or(0, |p| value(&nodes[p])).wrapping_sub(value(n)));
        lacks.collect::<Numbers>().base64()
    };
    let mut columns = json!({
        "nodes": nodes.len(),
        "what": what.base64(),
        "depth": depth.base64(),
        "base": lacking(&|n| n.cum.base),
        "new": lacking(&|n| n.cum.new),
        "max": lacking(&|n| n.width.max),
        "pruned": {
            "stacks": flame.pruned.stacks,
            "of": flame.pruned.of_stacks,
            "share": flame.pruned.width.max as f64 / nodes.first().map_or(1, |n| n.width.max).max(1) as f64,
            "widest": flame.pruned.widest,
        },
    });
    let follows = |n: &FlameNode| {
        let (w, double) = (n.width, |v: i64| i128::from(v) * 2);
        (w.base, w.new) == (n.cum.base, n.cum.new)
            && i128::from(w.base) + i128::from(w.new) + i128::from(w.delta) == double(w.max)
    };
    if !nodes.iter().all(follows) {
        columns["base_width"] = lacking(&|n| n.width.base).into();
        columns["new_width"] = lacking(&|n| n.width.new).into();
        columns["delta_width"] = lacking(&|n| n.width.delta).into();
    }
    if let Some(chance) = chance {
        let is_frame = |n: &FlameNode| !matches!(n.frame, FlameFrame::Pruned);
        columns["chance"] = bits(nodes.iter().map(|n| is_frame(n) && chance.is_chance(n.cum))).into();
    }
    columns
}

/// The table as columns: the frames that the graphs show, and then the others as far as there is room, by
/// their cost. With each come its costliest callers and callees, out of those that the table has.
fn table(
    view: &Measure,
    mut top: Top,
    graphs: &[&Flame],
    names: &mut Names,
    most: usize,
    chance: Option<Chance>,
) -> Value {
    let frames = &top.frames.clone();
    let mut drawn = vec![false; frames.len()];
    // All graphs are of one view, so their frames have the same numbers as the table's.
    for node in graphs.iter().flat_map(|g| &g.nodes) {
        if let FlameFrame::Frame(f) = node.frame {
            drawn[f as usize] = true;
        }
    }
    let magnitude = |p: Pair| p.base.unsigned_abs().max(p.new.unsigned_abs());
    let mut rows: Vec<&TopRow> = top.rows.iter().collect();
    rows.sort_by_key(|r| std::cmp::Reverse((drawn[r.frame as usize], magnitude(r.cum))));
    let n_drawn = rows.iter().filter(|r| drawn[r.frame as usize]).count();
    rows.truncate(most.max(n_drawn));
    rows.sort_by_key(|r| std::cmp::Reverse(magnitude(r.cum)));
    let mut in_table = vec![false; frames.len()];
    rows.iter().for_each(|r| in_table[r.frame as usize] = true);

    // Of what is left out, no edges are put in order.
    let all_rows = top.rows.len();
    let nodes: Vec<TopRow> = top.rows.iter().filter(|r| in_table[r.frame as usize]).copied().collect();
    let rows: Vec<TopRow> = rows.into_iter().copied().collect();
    top.rows = nodes;
    let edges = view.edges_of(top);
    // Edges are grouped by node, in the order of the nodes.
    let mut of_frame: HashMap<u32, &[pprofdiff::edges::Edge]> = HashMap::default();
    for group in edges.edges.chunk_by(|a, b| a.node == b.node) {
        of_frame.insert(group[0].node, group);
    }
    let relation = |which: Relation, names: &mut Names| {
        let [mut shown, mut all, mut other, mut base, mut new] = [const { Vec::<i64>::new() }; 5];
        for (i, row) in paced(rows.iter().enumerate()) {
            let group = of_frame.get(&row.frame).copied().unwrap_or_default();
            let mut group: Vec<_> = group.iter().filter(|e| e.relation == which).collect();
            all.push(group.len() as i64);
            group.retain(|e| in_table[e.other as usize]);
            group.sort_by_key(|e| std::cmp::Reverse(magnitude(e.weight)));
            group.truncate(MOST_EDGES[usize::from(i >= COSTLIEST)]);
            shown.push(group.len() as i64);
            other.extend(group.iter().map(|e| names.id(frames, e.other) as i64));
            base.extend(group.iter().map(|e| e.weight.base));
            new.extend(group.iter().map(|e| e.weight.new));
        }
        let column = |v: Vec<i64>| v.into_iter().collect::<Numbers>().base64();
        json!({"shown": column(shown), "all": column(all), "other": column(other), "base": column(base), "new": column(new)})
    };
    let column = |value: &dyn Fn(&TopRow) -> i64| rows.iter().map(value).collect::<Numbers>().base64();
    let frame: Vec<u64> = rows.iter().map(|r| names.id(frames, r.frame)).collect();
    let statuses = |r: &TopRow| r.status as i64;
    let chance = |value: fn(&TopRow) -> Pair| chance.map(|c| bits(rows.iter().map(|r| c.is_chance(value(r)))));
    json!({
        "rows": rows.len(),
        "flat_chance": chance(|r| r.flat),
        "cum_chance": chance(|r| r.cum),
        "of": all_rows,
        "frame": frame.into_iter().collect::<Numbers>().base64(),
        "status": column(&statuses),
        "flat_base": column(&|r| r.flat.base),
        "flat_new": column(&|r| r.flat.new),
        "cum_base": column(&|r| r.cum.base),
        "cum_new": column(&|r| r.cum.new),
        "callers": relation(Relation::Caller, names),
        "callees": relation(Relation::Callee, names),
    })
}

/// The call graph's picture, and which frames its nodes are, in the order in which they are drawn; `None` if there is
/// nothing to draw, or no room.
fn call_graph(graph: &Graph, names: &mut Names, room: &mut Room) -> Option<Value> {
    if graph.nodes.is_empty() || room.is_used_up() {
        return None;
    }
    let svg = super::svg::svg_within(graph, room).ok()?;
    let frames: Vec<u64> = graph.nodes.iter().map(|n| names.id(&graph.frames, n.frame)).collect();
    Some(json!({"svg": svg, "frames": frames}))
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

/// Text as it can be shown to people and nothing else: what is harmful is spelled out; too long a name is cut.
fn visible(text: &str) -> Cow<'_, str> {
    visible_to(text, LONGEST_NAME)
}

fn visible_to(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most && !text.contains(is_harmful) {
        return harmless(text);
    }
    let mut out = String::with_capacity(text.len().min(most));
    for (at, c) in text.char_indices() {
        if at >= most {
            let _ = write!(out, "… ({} bytes)", text.len());
            break;
        }
        match c {
            c if is_harmful(c) => {
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            c => out.push(c),
        }
    }
    harmless(&out).into_owned().into()
}

/// Script and style of all pages, as a policy (CSP) names them: what shows pages in a frame of its own has to allow both.
pub fn page_hashes() -> [String; 2] {
    [&SCRIPT, &STYLE].map(|text| format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes()))))
}

/// The style of all pages, for what is shown around one.
pub fn page_style() -> &'static str {
    &STYLE
}

/// Puts the page together. Each mark of the template is looked for after the one before it, so nothing that is
/// put in is ever read as a mark. `panels` and `source` are HTML: explanations and a listing, escaped by who made them.
fn fill(title: &str, panels: &str, source: &str, data: &Value) -> String {
    let [script, style] = page_hashes();
    let policy =
        format!("default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'");
    let data = data.to_string().replace('<', "\\u003c");
    let mut out = String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + data.len() + 1024);
    let mut rest = TEMPLATE;
    let title = escape(title);
    for (mark, text) in [
        ("{policy}", policy.as_str()),
        ("{title}", &title),
        ("{style}", &STYLE),
        ("{panels}", panels),
        ("{source}", source),
        ("{data}", &data),
        ("{script}", &SCRIPT),
    ] {
        let Some((before, after)) = rest.split_once(mark) else { continue };
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{visible, without_comments};

    #[test]
    fn the_script_has_no_comment_lines() {
        let script = "// a\nlet x = 1; // stays\n\n  /** b */\n  /**\n   * c\n   */\n  f(\"/*\");\n";
        assert_eq!(without_comments(script), "let x = 1; // stays\n  f(\"/*\");\n");
    }

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        assert_eq!(visible("a\0b\u{202e}c\u{7f}\u{85}"), "a⟨U+0000⟩b⟨U+202E⟩c⟨U+007F⟩⟨U+0085⟩");
        assert_eq!(visible("naïve→ 名前"), "naïve→ 名前");
        assert_eq!(visible(&"é".repeat(10_000)).chars().count(), 8192 + "… (20000 bytes)".chars().count());
    }
}
