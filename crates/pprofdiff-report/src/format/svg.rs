//! The call graph as an SVG picture, drawn without Graphviz: `layout` places nodes and calls on levels.
//!
//! The picture contains no script, style sheet, link or id, only presentation attributes. It therefore works under the
//! strictest content security policy, and several pictures fit into one page. It draws its own background to stay
//! readable on dark pages. A page with its own style can use `data-share`, the change of a node or call as a share of
//! the total (or a single profile's cost as a share), from -1 to 1.
//!
//! A file of its own also has a style sheet for dark backgrounds ([`push_dark_style`]). Viewers that ignore it show the
//! light picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::callgraph::{CallLook, Look, NodeLook, fill_on_dark, line_on_dark};
use crate::format::{BASE, Format, unsupported};
use crate::html::{escape, escape_ours};
use crate::layout::{self, EdgeRoute, LayoutBudget, LayoutEdge, LayoutPoint};
use crate::names::shorten;
use crate::report::Report;
use crate::shows::{self, Form};
use pprofdiff::Status;
use pprofdiff::graph::{Call, Graph};
use pprofdiff::{Error, Result};

pub(crate) const FORMAT: Format = Format {
    name: "svg",
    extensions: &["svg"],
    about: "the call graph as a picture",
    form: Form::Graph,
    asks: shows::graph,
    write: |report, out, _| match report {
        Report::Graph(graph) => writeln!(out, "{}", svg_file(graph).map_err(std::io::Error::other)?),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// The maximum number of nodes. More nodes take too long to lay out and are unreadable.
const MAX_NODES: usize = 400;

pub(super) const PAPER: &str = "#ffffff";
pub(super) const INK: &str = "#1b1b1b";
pub(super) const FONT: &str = "Verdana, 'DejaVu Sans', sans-serif";
const LEGEND_FONT: f64 = 11.0;
const CALL_FONT: f64 = 9.0;
const MARGIN: f64 = 12.0;
/// The space between the border of a node and its text.
const PADDING: f64 = 6.0;
const ARROW: f64 = 7.0;

/// A node with its size and the position of its centre.
struct Placed {
    look: NodeLook,
    /// The lines of text, each with its font size.
    lines: Vec<(String, f64)>,
    width: f64,
    height: f64,
    middle: LayoutPoint,
}

/// A call with its route.
struct Routed {
    look: CallLook,
    /// True if frames between caller and callee are not shown. The line is then dashed.
    residual: bool,
    label_width: f64,
    route: EdgeRoute,
}

/// Draws the graph as one `<svg>` element without an XML declaration. If the layout budget does not permit all calls,
/// the picture contains the heaviest call to each frame and the heaviest of the remaining calls, and its legend states
/// the number of drawn calls.
///
/// # Errors
/// Fails if the graph has more than 400 nodes. Reduce the number of nodes, or write the dot format.
pub fn svg(graph: &Graph) -> Result<String> {
    svg_within(graph, &mut LayoutBudget::for_pictures(1))
}

/// Draws the graph like [`svg`], and takes the cost of its layout from a budget that several pictures may share.
pub fn svg_within(graph: &Graph, budget: &mut LayoutBudget) -> Result<String> {
    if graph.nodes.len() > MAX_NODES {
        return Err(Error::query(format!(
            "{} nodes are too many for a picture; lower the node count to at most {MAX_NODES}, or use the dot format",
            graph.nodes.len()
        )));
    }
    let look = Look::new(graph);
    let (nodes, calls) = place(graph, &look, budget);
    let mut legend = look.legend();
    if calls.len() < graph.calls.len() {
        legend.push(format!(
            "{} of {} calls are drawn, heaviest first; the dot format contains all of them",
            calls.len(),
            graph.calls.len()
        ));
    }
    Ok(draw(&legend, &nodes, &calls))
}

/// Draws the graph like [`svg`], with colours that follow the reader's preference for a dark background.
fn svg_file(graph: &Graph) -> Result<String> {
    let mut picture = svg(graph)?;
    let look = Look::new(graph);
    let mut colors = DarkColors::default();
    for node in graph.nodes.iter().map(|row| look.node(row)) {
        colors.boxes.insert(node.fill, (fill_on_dark(node.share), DARK_INK.to_owned()));
        colors.strokes.insert(node.line, line_on_dark(node.share));
    }
    for call in graph.calls.iter().map(|call| look.call(call)) {
        colors.strokes.insert(call.line, line_on_dark(call.share));
    }
    let mut style = String::new();
    push_dark_style(&mut style, "pprofdiff-callgraph", &colors);
    let start = picture.find(">\n").map_or(0, |end| end + 2);
    picture.insert_str(start, &style);
    Ok(picture)
}

const DARK_PAPER: &str = "#1c1f25";
const DARK_INK: &str = "#e4e7eb";

/// The colours that replace the colours of a light picture on a dark background.
#[derive(Default)]
pub(super) struct DarkColors {
    /// For the fill of a box: its dark fill, and the colour of text on it.
    pub boxes: BTreeMap<String, (String, String)>,
    /// For the colour of a line or of an arrowhead: its dark colour.
    pub strokes: BTreeMap<String, String>,
}

/// Adds a style sheet for readers who prefer dark backgrounds. Its rules select elements of the class by their colour
/// attributes, so that the picture itself stays readable without the style sheet, and other pictures of a page keep
/// their colours.
pub(super) fn push_dark_style(svg: &mut String, class: &str, colors: &DarkColors) {
    let _ = write!(
        svg,
        "<style>@media (prefers-color-scheme: dark) {{\n.{class} {{ fill: {DARK_INK} }}\n\
         .{class} [fill=\"{PAPER}\"] {{ fill: {DARK_PAPER} }}\n"
    );
    for (light, (dark, ink)) in &colors.boxes {
        let _ = writeln!(svg, ".{class} rect[fill=\"{light}\"] {{ fill: {dark} }}");
        let _ = writeln!(svg, ".{class} rect[fill=\"{light}\"] ~ text {{ fill: {ink} }}");
    }
    for (light, dark) in &colors.strokes {
        let _ = writeln!(svg, ".{class} [stroke=\"{light}\"] {{ stroke: {dark} }}");
        let _ = writeln!(svg, ".{class} path[fill=\"{light}\"] {{ fill: {dark} }}");
    }
    svg.push_str("}</style>\n");
}

/// Lays out all nodes, and the calls that fit into the budget.
fn place(graph: &Graph, look: &Look<'_>, budget: &mut LayoutBudget) -> (Vec<Placed>, Vec<Routed>) {
    let edge = |c: &Call| {
        let weight = 1 + (look.share(c.weight).abs() * 20.0) as u32;
        LayoutEdge { from: c.caller as usize, to: c.callee as usize, weight }
    };
    let chosen = layout::choose(graph.nodes.len(), &graph.calls.iter().map(edge).collect::<Vec<_>>(), budget);
    let mut nodes: Vec<Placed> = graph.nodes.iter().map(|row| sized(look.node(row))).collect();
    let looks: Vec<CallLook> = chosen.calls.iter().map(|&i| look.call(&graph.calls[i])).collect();
    let sizes: Vec<LayoutPoint> = nodes.iter().map(|n| (n.width, n.height)).collect();
    let labels: Vec<LayoutPoint> =
        looks.iter().map(|l| (text_width(&l.label, CALL_FONT) + 4.0, CALL_FONT * 1.4)).collect();
    let (middles, routes) = layout::place(&sizes, &labels, &chosen);
    nodes.iter_mut().zip(middles).for_each(|(n, middle)| n.middle = middle);
    let routed = chosen.calls.iter().zip(looks).zip(labels.iter().zip(routes));
    let routed = routed.map(|((&i, look), (&(label_width, _), route))| {
        let residual = graph.calls[i].residual;
        Routed { look, residual, label_width, route }
    });
    (nodes, routed.collect())
}

/// Computes the size of a node from its text.
fn sized(look: NodeLook) -> Placed {
    let value_font = (look.font * 0.85).max(9.0);
    let named = look.name.iter().map(|l| (l.clone(), look.font));
    let lines: Vec<(String, f64)> = named.chain(look.values.iter().map(|l| (l.clone(), value_font))).collect();
    let width = lines.iter().map(|(l, font)| text_width(l, *font)).fold(0.0, f64::max) + 2.0 * PADDING;
    let height = lines.iter().map(|(_, font)| font * 1.25).sum::<f64>() + 2.0 * PADDING;
    Placed { look, lines, width, height, middle: (0.0, 0.0) }
}

fn draw(legend: &[String], nodes: &[Placed], calls: &[Routed]) -> String {
    // Compute the extent of the drawing, because it can exceed the layout. Curves need no measuring, because they stay
    // inside the hull of their points.
    let (mut left, mut top, mut right, mut bottom) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let mut reach = |(x, y): LayoutPoint, width: f64, height: f64| {
        (left, right) = (left.min(x - width / 2.0), right.max(x + width / 2.0));
        (top, bottom) = (top.min(y - height / 2.0), bottom.max(y + height / 2.0));
    };
    nodes.iter().for_each(|n| reach(n.middle, n.width, n.height));
    for c in calls {
        c.route.points.iter().for_each(|&p| reach(p, 0.0, 0.0));
        reach(c.route.label, c.label_width, CALL_FONT * 1.4);
    }
    let legend_width = legend.iter().map(|l| text_width(l, LEGEND_FONT)).fold(0.0, f64::max);
    let legend_height = legend.len() as f64 * LEGEND_FONT * 1.4 + MARGIN;
    let width = (right - left).max(legend_width) + 2.0 * MARGIN;
    let height = bottom - top + legend_height + 2.0 * MARGIN;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pprofdiff-callgraph\" role=\"img\" \
         aria-label=\"Call graph\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"{FONT}\" fill=\"{INK}\">\n<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n"
    );
    for (i, text) in legend.iter().enumerate() {
        let y = MARGIN + (i as f64 + 0.9) * LEGEND_FONT * 1.4;
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y:.1}\" font-size=\"{LEGEND_FONT}\">{}</text>", escape(text));
    }
    let (dx, dy) = (MARGIN - left, MARGIN + legend_height - top);
    let _ = writeln!(svg, "<g transform=\"translate({dx:.1} {dy:.1})\">");
    calls.iter().for_each(|c| draw_call(&mut svg, c));
    nodes.iter().for_each(|n| draw_node(&mut svg, n));
    svg.push_str("</g>\n</svg>");
    svg
}

fn draw_call(svg: &mut String, c: &Routed) {
    let [.., before, end] = c.route.points[..] else { return };
    let line = &c.look.line;
    // The line ends at the base of the arrowhead.
    let length = ((end.0 - before.0).powi(2) + (end.1 - before.1).powi(2)).sqrt().max(0.01);
    let (ux, uy) = ((end.0 - before.0) / length, (end.1 - before.1) / length);
    let size = ARROW + c.look.width;
    let back = (end.0 - ux * size, end.1 - uy * size);
    let mut route = c.route.points.clone();
    route.pop();
    route.push(back);
    let dashes = if c.residual { " stroke-dasharray=\"2 4\"" } else { "" };
    let _ = writeln!(
        svg,
        "<g class=\"call\" data-share=\"{:.4}\"><title>{}</title>",
        c.look.share,
        escape_ours(&c.look.tooltip)
    );
    let _ = writeln!(
        svg,
        "<path d=\"{}\" fill=\"none\" stroke=\"{line}\" stroke-width=\"{:.2}\"{dashes}/>",
        spline(&route),
        c.look.width
    );
    let half = size * 0.4;
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" fill=\"{line}\"/>",
        end.0,
        end.1,
        back.0 - uy * half,
        back.1 + ux * half,
        back.0 + uy * half,
        back.1 - ux * half
    );
    let (x, y) = c.route.label;
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{PAPER}\" fill-opacity=\"0.8\"/>",
        x - c.label_width / 2.0,
        y - CALL_FONT * 0.7,
        c.label_width,
        CALL_FONT * 1.4
    );
    let label = escape(&c.look.label);
    let y = y + CALL_FONT * 0.36;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{CALL_FONT}\" text-anchor=\"middle\">{label}</text></g>"
    );
}

fn draw_node(svg: &mut String, n: &Placed) {
    let (x, y) = (n.middle.0 - n.width / 2.0, n.middle.1 - n.height / 2.0);
    let border = match n.look.status {
        Some(Status::Added) => " stroke-width=\"2.5\"",
        Some(Status::Removed) => " stroke-dasharray=\"5 3\"",
        _ => "",
    };
    let name = escape(&shorten(&n.look.full_name, usize::MAX));
    let (share, title) = (n.look.share, escape_ours(&n.look.tooltip));
    let _ = writeln!(svg, "<g class=\"node\" data-name=\"{name}\" data-share=\"{share:.4}\"><title>{title}</title>");
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\" fill=\"{}\" stroke=\"{}\"{border}/>",
        n.width, n.height, n.look.fill, n.look.line
    );
    let mut baseline = y + PADDING;
    for (text, font) in &n.lines {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{font:.1}\" text-anchor=\"middle\">{}</text>",
            n.middle.0,
            baseline + font * 0.95,
            escape(text)
        );
        baseline += font * 1.25;
    }
    svg.push_str("</g>\n");
}

/// Returns a smooth path along the points: a uniform cubic B-spline, which stays inside their hull and starts and ends
/// at the first and the last point.
fn spline(points: &[LayoutPoint]) -> String {
    let mut path = String::new();
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return path };
    let _ = write!(path, "M{:.1} {:.1}", first.0, first.1);
    if points.len() > 2 {
        // The end points count three times, so that the curve reaches them.
        let point_at = |i: usize| points[i.saturating_sub(2).min(points.len() - 1)];
        let mix = |a: LayoutPoint, b: LayoutPoint, t: f64| (a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t);
        for i in 1..=points.len() + 1 {
            let (p, q, r) = (point_at(i), point_at(i + 1), point_at(i + 2));
            let (first_control, second_control) = (mix(p, q, 1.0 / 3.0), mix(p, q, 2.0 / 3.0));
            let end = mix(second_control, mix(q, r, 1.0 / 3.0), 0.5);
            let _ = write!(
                path,
                "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                first_control.0, first_control.1, second_control.0, second_control.1, end.0, end.1
            );
        }
    }
    let _ = write!(path, "L{:.1} {:.1}", last.0, last.1);
    path
}

/// Estimates the width of a text in Verdana or DejaVu Sans, whose widths are similar. Other fonts are narrower, so
/// their text also fits.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| f64::from(char_width(c))).sum::<f64>() * size / 100.0
}

/// Returns the approximate width of a character in hundredths of the font size.
fn char_width(c: char) -> u8 {
    match c {
        'i' | 'j' | 'l' | '\'' => 29,
        'I' | 'J' | '|' | '/' | '\\' | ' ' | ',' | '.' | ':' | ';' | '-' => 36,
        '(' | ')' | '[' | ']' | 'f' | 't' | 'r' | '!' => 42,
        's' | 'c' | 'z' | '*' | '_' | '`' | '"' | 'L' => 56,
        'k' | 'v' | 'x' | 'y' | 'F' | 'a' | '?' => 61,
        'm' => 98,
        'w' | '+' | '<' | '=' | '>' | '~' | '^' | '#' | '→' => 84,
        'M' | 'O' | 'Q' | 'D' | 'G' | 'H' | 'N' | '&' => 79,
        'W' | '%' | '@' | '…' => 100,
        'A'..='Z' => 70,
        c if c.is_ascii() => 64,
        c if c < '\u{1100}' => 75,
        _ => 105,
    }
}
