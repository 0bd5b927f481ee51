//! The look of a call graph, shared by all formats that draw it: the texts, sizes and colours of nodes and calls.
//!
//! The look follows pprof: the font of a node grows with its flat cost, its colour shows its cum cost, and the width
//! and colour of a call's line show its weight. For a diff, all of them show the change, red for more and blue for less
//! (a pair that colour-blind people can distinguish). Added nodes have a thick border, removed nodes a dashed one.

use super::names::{self, shorten};
use super::numbers::{self, CostFormat, counted, counted_of, growth, share, share_text, whole};
use super::palette::{LESS, MORE, Rgb, Shades, hex, mix};
use super::text::inputs;
use pprofdiff::graph::{Call, Graph};
use pprofdiff::units;
use pprofdiff::{Normalize, Pair, Status, TopRow};

/// A colour, as both Graphviz and SVG read it.
pub(super) type Color = String;

/// The colours of a box and of a line without change.
const SAME: [Rgb; 2] = [[243, 243, 241], [140, 140, 138]];
/// The same colours on a dark background.
#[cfg(feature = "svg")]
const SAME_ON_DARK: [Rgb; 2] = [[46, 50, 58], [124, 133, 148]];
/// The maximum part of red or blue in a box's colour on a dark background. The text is light there.
#[cfg(feature = "svg")]
const TINT_ON_DARK: f64 = 0.42;
/// The maximum part of red or blue in a box's colour. With this part, text on the box is still readable.
const TINT: f64 = 0.5;

/// A node, ready to be drawn. Graphviz output does not use all fields.
#[cfg_attr(not(feature = "svg"), allow(dead_code))]
pub(super) struct NodeLook {
    /// The full name.
    pub full_name: String,
    /// The name, broken into lines.
    pub name: Vec<String>,
    /// The flat cost, and the cum cost if it differs.
    pub values: Vec<String>,
    pub tooltip: String,
    /// The font size in points.
    pub font: f64,
    pub fill: Color,
    pub line: Color,
    /// The change of the cum cost as a share of the total, from -1 to 1. For a single profile, the cum cost's share.
    pub share: f64,
    /// The status to mark; `None` for a single profile.
    pub status: Option<Status>,
}

/// A call, ready to be drawn.
pub(super) struct CallLook {
    pub label: String,
    pub tooltip: String,
    /// The line width in points.
    pub width: f64,
    pub line: Color,
    /// The change of the weight as a share of the total, from -1 to 1. For a single profile, the weight's share. The
    /// layout keeps calls with large shares straight.
    pub share: f64,
}

/// The maximum length in characters of a name in a node.
const IN_NODE: usize = 84;
/// The maximum length in characters of a name in a tooltip.
const IN_TOOLTIP: usize = 300;
/// The maximum length in bytes of a full name. A graph contains about a hundred of them.
const LONGEST: usize = 16 << 10;
/// The length in characters of a line in a node. Names are broken after separators, so a part without a separator can
/// be longer.
const LINE: usize = 26;
/// The font sizes in points of a node without flat cost, and of the node with the largest flat cost or change.
const FONT: std::ops::RangeInclusive<f64> = 9.0..=20.0;

/// A graph with the values that determine its look.
pub(super) struct Look<'a> {
    graph: &'a Graph,
    cost: CostFormat,
    /// The cost that gets the full red or blue: the base's total, or the new total if there is no base or it is 0.
    total: f64,
    /// The magnitude of the largest change of a node's flat cost, or of the largest flat cost of a single profile.
    largest: f64,
}

impl<'a> Look<'a> {
    pub(super) fn new(graph: &'a Graph) -> Look<'a> {
        let total = graph.summary.total;
        let two_sided = graph.summary.base.is_some();
        let pairs: Vec<Pair> = graph.nodes.iter().flat_map(|row| [row.flat, row.cum]).collect();
        let cost = CostFormat::new(&graph.summary, pairs.into_iter());
        let whole = if two_sided && total.base != 0 { total.base } else { total.new };
        let largest = graph.nodes.iter().map(|row| row.flat.delta().unsigned_abs()).max().unwrap_or(0);
        Look { graph, cost, total: (whole as f64).max(1.0), largest: (largest as f64).max(1.0) }
    }

    fn two_sided(&self) -> bool {
        self.graph.summary.base.is_some()
    }

    /// Returns a change, or a single profile's cost, as a share of the total, clamped to -1 to 1.
    pub(super) fn share(&self, p: Pair) -> f64 {
        (p.delta() as f64 / self.total).clamp(-1.0, 1.0)
    }

    /// Formats `0.17s → 0.25s  +0.08s  +47.1%  +4.21% of total`, or for a single profile `0.25s (8.53%)`.
    fn value(&self, p: Pair) -> String {
        if !self.two_sided() && p.new == 0 {
            return self.cost.sides.format(0);
        }
        self.cost.words(p, whole(&self.graph.summary), "→")
    }

    /// Formats a change for a node, which is narrow: both sides and growth on one line, and the share on the next. If
    /// the total is 0, there is no second line.
    fn lines(&self, prefix: &str, p: Pair) -> Vec<String> {
        let (base, new) = (self.cost.sides.format(p.base), self.cost.sides.format(p.new));
        let first = format!("{prefix}{base} → {new}  {}", growth(p));
        let share = share(p.delta(), whole(&self.graph.summary));
        let second = share.map(|share| format!("{} of total", share_text(Some(share), true)));
        std::iter::once(first).chain(second).collect()
    }

    pub(super) fn node(&self, row: &TopRow) -> NodeLook {
        let frames = &self.graph.frames;
        let full = frames.name(row.frame);
        let mut name = names::lines(&shorten(names::short(&full), IN_NODE), LINE);
        if let (Some(file), Some(line)) = (frames.file(row.frame), frames.line(row.frame)) {
            name.push(shorten(&format!("{}:{line}", file.rsplit('/').next().unwrap_or(&file)), LINE + 10));
        }
        if let Some(address) = frames.address(row.frame) {
            name.push(format!("{address:#x}"));
        }
        let nothing = Pair::default();
        let values = match (row.flat == nothing, row.flat == row.cum) {
            (false, true) if self.two_sided() => self.lines("", row.flat),
            (false, true) => vec![self.value(row.flat)],
            // In a diff, the wording of pprof would read `0 of 0 → 5s`.
            (false, false) if self.two_sided() => [self.lines("", row.flat), self.lines("cum ", row.cum)].concat(),
            (true, _) if self.two_sided() => self.lines("cum ", row.cum),
            (false, false) => vec![self.value(row.flat), format!("of {}", self.value(row.cum))],
            (true, _) => vec![format!("0 of {}", self.value(row.cum))],
        };
        let status = if self.two_sided() { format!(" · {}", row.status.name()) } else { String::new() };
        let tooltip = format!(
            "{}\nflat {}\ncum {}{status}",
            shorten(&frames.label(row.frame), IN_TOOLTIP),
            self.value(row.flat),
            self.value(row.cum)
        );
        let (smallest_font, largest_font) = (FONT.start(), FONT.end());
        let font =
            smallest_font + (largest_font - smallest_font) * (row.flat.delta() as f64 / self.largest).abs().sqrt();
        let share = self.share(row.cum);
        let (fill, line) = (fill(share), line(share));
        NodeLook {
            full_name: shorten_long(full),
            name,
            values,
            tooltip,
            font,
            fill,
            line,
            share,
            status: self.two_sided().then_some(row.status),
        }
    }

    pub(super) fn call(&self, call: &Call) -> CallLook {
        let weight = call.weight;
        let name = |node: u32| shorten(&self.graph.frames.label(self.graph.nodes[node as usize].frame), IN_TOOLTIP);
        let label = match self.two_sided() {
            true => format!("{} → {}", self.cost.sides.format(weight.base), self.cost.sides.format(weight.new)),
            false => self.cost.sides.format(weight.new),
        };
        let mut notes = String::new();
        if call.residual {
            notes.push_str("\nframes in between are not shown");
        }
        if call.inlined {
            notes.push_str("\ninlined");
        }
        let share = self.share(weight);
        CallLook {
            tooltip: format!("{} → {}\n{}{notes}", name(call.caller), name(call.callee), self.value(weight)),
            label: if call.inlined { format!("{label} (inline)") } else { label },
            width: 1.0 + 4.0 * share.abs(),
            line: line(share),
            share,
        }
    }

    /// Returns the lines above the graph: each side's inputs, the total, settings, and the numbers of nodes and calls
    /// shown.
    pub(super) fn legend(&self) -> Vec<String> {
        let (g, s) = (self.graph, &*self.graph.summary);
        let number = |v: i64| units::show(v, &s.unit);
        let mut lines = Vec::new();
        match &s.base {
            Some(base) => {
                lines.push(format!("base {}", inputs(base, s.sum)));
                lines.push(format!("new {}", inputs(&s.new, s.sum)));
            }
            None => lines.push(inputs(&s.new, s.sum)),
        }
        lines.push(format!("{} ({}): {}", s.sample_type, s.unit, numbers::total(s, "→")));
        if s.query.normalize != Normalize::None {
            lines.push(format!("normalized by {}: new x {}", s.query.normalize.mode(), s.factor));
        }
        lines.extend(s.query.settings());
        let cutoff = number(i64::try_from(g.node_cutoff).unwrap_or(i64::MAX));
        lines.push(match g.nodes.len() == g.nodes_total {
            true => format!("all {}", counted(g.nodes_total, "frame")),
            false => format!("{} (cum at least {cutoff})", counted_of(g.nodes.len(), g.nodes_total, "frame")),
        });
        if g.dropped_calls > 0 {
            let cutoff = number(i64::try_from(g.edge_cutoff).unwrap_or(i64::MAX));
            let verb = if g.dropped_calls == 1 { "is" } else { "are" };
            lines.push(format!("{} below {cutoff} {verb} not shown", counted(g.dropped_calls, "call")));
        }
        if self.two_sided() {
            lines.push("red: costs more, blue: less; thick border: added, dashed: removed".to_owned());
        }
        lines.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
        lines.iter().map(|l| shorten(l, 120)).collect()
    }
}

fn shorten_long(name: String) -> String {
    if name.len() <= LONGEST { name } else { shorten(&name, LONGEST) }
}

/// Mixes grey with red or blue, by the sign of `share`. A share of 1 or -1 gets `max_part` of the colour. The square
/// root makes even small changes visible and distinguishes them from each other.
fn tinted(grey: Rgb, share: f64, max_part: f64, shade: fn(&Shades) -> Rgb) -> Color {
    let tone = if share < 0.0 { &LESS } else { &MORE };
    hex(mix(grey, shade(&tone.area), max_part * share.abs().sqrt()))
}

fn fill(share: f64) -> Color {
    tinted(SAME[0], share, TINT, |shades| shades.light)
}

fn line(share: f64) -> Color {
    tinted(SAME[1], share, 1.0, |shades| shades.light)
}

/// Returns a box's colour on a dark background.
#[cfg(feature = "svg")]
pub(super) fn fill_on_dark(share: f64) -> Color {
    tinted(SAME_ON_DARK[0], share, TINT_ON_DARK, |shades| shades.dark)
}

/// Returns a line's colour on a dark background.
#[cfg(feature = "svg")]
pub(super) fn line_on_dark(share: f64) -> Color {
    tinted(SAME_ON_DARK[1], share, 1.0, |shades| shades.dark)
}
