//! The flame graph as an SVG picture without script: boxes, names and tooltips. The page has the interactive flame graph,
//! and this picture is for documents, reviews and viewers of images.
//!
//! Boxes and colours are the page's. The width is the larger side of each stack, so removed code keeps its width. Red
//! costs more, blue less, and a removed box has a dashed outline. A single profile has a colour per package.
//!
//! Colours are presentation attributes for a light background. A style sheet replaces them on dark backgrounds
//! ([`super::svg::push_dark_style`]).

use std::fmt::Write as _;
use std::io;

use crate::format::{BASE, Format, folded, unsupported};
use crate::html::{escape, escape_ours};
use crate::names::{short, shorten};
use crate::numbers::{CostFormat, counted_of, growth, total, whole};
use crate::palette::{LESS, MORE, Rgb, Shades, contrast, hex, mix};
use crate::report::Report;
use crate::shows::{self, Form};
use crate::text::inputs;
use pprofdiff::flame::{Flame, FlameFrame, FlameNode, FlameOptions};
use pprofdiff::stacks::Stacks;
use pprofdiff::{Normalize, Pair, Status};

use super::svg::{DarkColors, INK, PAPER, push_dark_style, text_width};

pub(crate) const FORMAT: Format = Format {
    name: "flamegraph",
    extensions: &["flame.svg"],
    about: "the flame graph as a picture without script",
    leaves_out: folded::stackless,
    form: Form::Stacks,
    asks: shows::all_stacks,
    write: |report, out, _| match report {
        Report::Stacks(stacks, _) => flamegraph(stacks, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// The width of the picture in pixels. It shrinks with a narrower window or notebook.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 12.0;
/// The height of a row, with the gap between rows.
const ROW: f64 = 18.0;
const FONT_SIZE: f64 = 11.0;
/// The space between the border of a box and its text.
const PADDING: f64 = 4.0;
/// The minimum width of a box in pixels. Narrower boxes become part of `(pruned)`, because no pointer can hit them.
const THIN: f64 = 1.0;
/// The maximum number of frames, which limits the picture to a few MB.
const MAX_FRAMES: usize = 10_000;
/// The maximum length in characters of a name in a tooltip.
const IN_TOOLTIP: usize = 300;

/// The colours of a box without change, of a background and of packages, which page.css also uses.
const SAME: Shades = Shades { light: [0xd8, 0xdb, 0xe0], dark: [0x4a, 0x50, 0x5a] };
const CARD: Shades = Shades { light: [0xff, 0xff, 0xff], dark: [0x1c, 0x1f, 0x25] };
const PACKAGES: [Shades; 2] = [
    Shades { light: [0xf3, 0xd0, 0x8f], dark: [0xc9, 0x9a, 0x4e] },
    Shades { light: [0xea, 0x9f, 0x76], dark: [0xb4, 0x65, 0x3f] },
];
/// The number of steps between two colours.
const STEPS: f64 = 32.0;

/// Writes the stacks as a flame graph from the root down, as one `<svg>` element.
///
/// # Errors
/// Fails if `out` fails.
pub fn flamegraph(stacks: &Stacks, out: &mut dyn io::Write) -> io::Result<()> {
    let across = WIDTH - 2.0 * MARGIN;
    let options = FlameOptions::default().with_min_width(THIN / across).with_max_frames(MAX_FRAMES);
    let flame = stacks.flame(&options);
    writeln!(out, "{}", draw(&flame, across))
}

fn draw(flame: &Flame, across: f64) -> String {
    let legend = legend(flame);
    let legend_height = legend.len() as f64 * FONT_SIZE * 1.4 + MARGIN;
    let mut boxes = String::new();
    let mut colors = DarkColors::default();
    let cost = CostFormat::new(&flame.summary, flame.nodes.iter().map(|node| node.cum));
    let scale = match flame.nodes.first() {
        Some(root) if root.width.max > 0 => across / root.width.max as f64,
        _ => 0.0,
    };
    // The left edge of the next box of each depth. Nodes come depth first, so a node's children follow it.
    let mut next_left = vec![0.0];
    let mut rows = 0;
    for node in &flame.nodes {
        let depth = node.depth as usize;
        let (left, width) = (next_left[depth], node.width.max as f64 * scale);
        next_left[depth] += width;
        next_left.truncate(depth + 1);
        next_left.push(left);
        if width >= THIN * 0.5 {
            rows = rows.max(depth + 1);
            let top = MARGIN + legend_height + depth as f64 * ROW;
            draw_box(&mut boxes, &mut colors, flame, node, cost, (MARGIN + left, top, width));
        }
    }
    let height = legend_height + rows as f64 * ROW + 2.0 * MARGIN;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pprofdiff-flamegraph\" role=\"img\" \
         aria-label=\"Flame graph\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
         font-family=\"{}\" font-size=\"{FONT_SIZE}\" fill=\"{INK}\">",
        super::svg::FONT
    );
    push_dark_style(&mut svg, "pprofdiff-flamegraph", &colors);
    svg.push_str("<style>.pprofdiff-flamegraph { max-width: 100%; height: auto }</style>\n");
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>");
    for (i, text) in legend.iter().enumerate() {
        let y = MARGIN + (i as f64 + 0.9) * FONT_SIZE * 1.4;
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y:.1}\">{}</text>", escape(text));
    }
    svg.push_str(&boxes);
    svg.push_str("</svg>");
    svg
}

/// Draws one box with its tooltip and as much of its name as fits. `place` has its left edge, upper edge and width.
fn draw_box(
    svg: &mut String,
    colors: &mut DarkColors,
    flame: &Flame,
    node: &FlameNode,
    cost: CostFormat,
    place: (f64, f64, f64),
) {
    let (left, top, width) = place;
    let two_sided = flame.summary.base.is_some();
    let (full, name) = match node.frame {
        FlameFrame::Root => ("all".to_owned(), "all".to_owned()),
        FlameFrame::Pruned => ("(pruned)".to_owned(), "(pruned)".to_owned()),
        FlameFrame::Frame(f) => (flame.frames.label(f), flame.frames.name(f)),
    };
    let shades = shades(node, two_sided, &name);
    let (fill, ink) = (hex(shades.light), ink_on(shades.light));
    colors.boxes.insert(fill.clone(), (hex(shades.dark), ink_on(shades.dark)));
    let outline = match is_removed(node, two_sided) && width > 3.0 {
        true => {
            colors.strokes.insert(hex(LESS.area.light), hex(LESS.area.dark));
            format!(" stroke=\"{}\" stroke-dasharray=\"3 2\"", hex(LESS.area.light))
        }
        false => String::new(),
    };
    let status = if two_sided { format!(" · {}", node.status().name()) } else { String::new() };
    let words = |p: Pair| cost.words(p, whole(&flame.summary), "→");
    let tooltip = format!("{}\ncum {}\nflat {}{status}", shorten(&full, IN_TOOLTIP), words(node.cum), words(node.flat));
    // A gap separates boxes that have room for it.
    let drawn = if width > 3.0 { width - 0.7 } else { width };
    let _ = write!(
        svg,
        "<g><title>{}</title><rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{drawn:.2}\" height=\"{:.1}\" \
         fill=\"{fill}\"{outline}/>",
        escape_ours(&tooltip),
        ROW - 1.0
    );
    let mark = match node.status() {
        _ if !two_sided || node.frame == FlameFrame::Root => "",
        Status::Removed => "− ",
        Status::Added => "+ ",
        _ => "",
    };
    let room = width - 2.0 * PADDING;
    let text = fitting(
        &format!("{mark}{}", shorten(&name, IN_TOOLTIP)),
        &format!("{mark}{}", shorten(short(&name), IN_TOOLTIP)),
        room,
    );
    if !text.is_empty() {
        let values = match two_sided {
            true => {
                let (base, new) = (cost.sides.format(node.cum.base), cost.sides.format(node.cum.new));
                format!("{text}  {base} → {new}  {}", growth(node.cum))
            }
            false => format!("{text}  {}", words(node.cum)),
        };
        let text = if text_width(&values, FONT_SIZE) <= room { values } else { text };
        let _ = write!(
            svg,
            "<text x=\"{:.2}\" y=\"{:.1}\" fill=\"{ink}\" xml:space=\"preserve\">{}</text>",
            left + PADDING,
            top + ROW * 0.69,
            escape(&text)
        );
    }
    svg.push_str("</g>\n");
}

/// Returns the text that fits into `room` pixels: the full name, the short name, the beginning of the short name, or
/// nothing if fewer than two characters fit.
fn fitting(full: &str, short: &str, room: f64) -> String {
    if room < 2.0 * FONT_SIZE {
        return String::new();
    }
    if let Some(text) = [full, short].into_iter().find(|text| text_width(text, FONT_SIZE) <= room) {
        return text.to_owned();
    }
    let mut text = String::new();
    let mut left = room - text_width("…", FONT_SIZE);
    for c in short.chars() {
        left -= text_width(c.encode_utf8(&mut [0; 4]), FONT_SIZE);
        if left < 0.0 {
            break;
        }
        text.push(c);
    }
    if text.chars().count() < 2 { String::new() } else { text + "…" }
}

fn is_removed(node: &FlameNode, two_sided: bool) -> bool {
    two_sided && node.frame != FlameFrame::Root && node.status() == Status::Removed
}

/// Returns the colours of a box on light and dark backgrounds.
fn shades(node: &FlameNode, two_sided: bool, name: &str) -> Shades {
    let between = |from: &Shades, to: &Shades, part: f64| Shades {
        light: mix(from.light, to.light, part),
        dark: mix(from.dark, to.dark, part),
    };
    match node.frame {
        FlameFrame::Pruned => between(&CARD, &SAME, 0.55),
        FlameFrame::Root if !two_sided => SAME,
        _ if !two_sided => between(&PACKAGES[0], &PACKAGES[1], package_shade(name)),
        _ if is_removed(node, two_sided) => between(&CARD, &LESS.area, 0.30),
        _ => {
            let change = (relative(node.cum) * STEPS).round() / STEPS;
            let tone = if change < 0.0 { &LESS } else { &MORE };
            between(&SAME, &tone.area, change.abs().powf(0.8))
        }
    }
}

/// Returns the change relative to the larger side, from -1 (removed) to 1 (added).
fn relative(cum: Pair) -> f64 {
    let larger = (cum.base as f64).abs().max((cum.new as f64).abs());
    if larger == 0.0 { 0.0 } else { ((cum.new as f64 - cum.base as f64) / larger).clamp(-1.0, 1.0) }
}

/// Returns a number from 0 to 1 that is the same for all functions of a package, as the page's `shadeOf`.
fn package_shade(name: &str) -> f64 {
    let name = name.char_indices().nth(200).map_or(name, |(end, _)| &name[..end]);
    let package = name.rfind(['.', ':']).filter(|&i| !name[i..].contains('/')).map_or(name, |end| &name[..end]);
    let hash = package.encode_utf16().fold(7_u32, |hash, c| hash.wrapping_mul(31).wrapping_add(u32::from(c)));
    f64::from(hash % (STEPS as u32 + 1)) / STEPS
}

/// Returns black or white, whichever has more contrast on `paper`.
fn ink_on(paper: Rgb) -> String {
    let is_light = contrast([0; 3], paper) >= contrast([255; 3], paper);
    hex(if is_light { [0; 3] } else { [255; 3] })
}

/// Returns the lines above the graph.
fn legend(flame: &Flame) -> Vec<String> {
    let s = &*flame.summary;
    let mut lines = match &s.base {
        Some(base) => vec![format!("base {}", inputs(base, s.sum)), format!("new {}", inputs(&s.new, s.sum))],
        None => vec![inputs(&s.new, s.sum)],
    };
    lines.push(format!("{} ({}): {}", s.sample_type, s.unit, total(s, "→")));
    if s.query.normalize != Normalize::None {
        lines.push(format!("normalized by {}: new x {}", s.query.normalize.mode(), s.factor));
    }
    lines.extend(s.query.settings());
    if s.base.is_some() {
        lines.push("width: the larger side of each stack; red: costs more, blue: less; dashed: removed".to_owned());
    }
    if flame.pruned.stacks > 0 {
        let stacks = counted_of(flame.pruned.stacks, flame.pruned.of_stacks, "stack");
        lines.push(format!("{stacks} end in boxes that are too thin to draw"));
    }
    lines.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
    lines.iter().map(|line| shorten(line, 160)).collect()
}
