//! A listing of source lines with their costs: for people, as JSON (schema `pprofdiff/1`) and as an HTML fragment.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::html::{self, escape};
use super::json::header as json_header;
use super::numbers::{CostFormat, whole};
use super::text::{self, Shown, TextOptions, grid, header};
use pprofdiff::Pair;
use pprofdiff::list::{Line, LineChange, Listing, Routine};
use pprofdiff::text::harmless;

const STYLE: &str = "<style>
.pprofdiff table.list td{font-family:monospace;border:0;padding:0 8px;white-space:pre}
.pprofdiff table.list .text{text-align:left}
.pprofdiff table.list tr.inserted .text,.pprofdiff table.list tr.deleted .text{background:rgba(128,128,128,.18)}
.pprofdiff table.list tr.deleted .text{text-decoration:line-through;text-decoration-color:rgba(128,128,128,.7)}
</style>";

fn two_sided(listing: &Listing) -> bool {
    listing.summary.base.is_some()
}

/// How the lines' own cost and their cum are formatted.
fn costs(listing: &Listing) -> [CostFormat; 2] {
    let lines = listing.routines.iter().flat_map(|r| &r.lines);
    [
        CostFormat::new(&listing.summary, lines.clone().map(|l| l.flat)),
        CostFormat::new(&listing.summary, lines.map(|l| l.cum)),
    ]
}

/// For which sides sources are missing, and which option names their folder: `options` are those for the base's
/// sources, for the new side's and for both (or for a single profile's), as the caller's users write them.
pub fn missing_sources(listing: &Listing, options: [&str; 3]) -> Option<String> {
    let [base, new, both] = options;
    let without = |has: fn(&Routine) -> bool| listing.routines.iter().filter(|r| !has(r)).count();
    let without_base = if two_sided(listing) { without(|r| r.places.0.is_some()) } else { 0 };
    let without_new = without(|r| r.places.1.is_some());
    let of = |n: usize| match (n, listing.routines.len()) {
        (_, 1) => String::new(),
        (n, all) if n == all => " for any of the functions".to_owned(),
        (n, all) => format!(" for {n} of {all} functions"),
    };
    Some(match (without_base, without_new) {
        (0, 0) => return None,
        (0, n) if two_sided(listing) => {
            format!("no source of the new side was found{}: name its folder with {new}", of(n))
        }
        (0, n) => format!("no source was found{}: name its folder with {both}", of(n)),
        (n, 0) => format!("no source of the base was found{}: name its folder with {base}", of(n)),
        (b, n) => format!(
            "no source was found{}: name the folders with {base} and {new}, or one for both with {both}",
            of(b.max(n))
        ),
    })
}

/// `flat 0.17s -> 0.25s  +0.08s  +47.1%  +4.21% of total`, or of one profile `flat 0.25s (8.53%)`; the same of cum.
fn in_words(listing: &Listing, r: &Routine, arrow: &str) -> [String; 2] {
    let words = |what: &str, p: Pair| {
        let cost = CostFormat::new(&listing.summary, std::iter::once(p));
        format!("{what} {}", cost.words(p, whole(&listing.summary), arrow))
    };
    [words("flat", r.flat), words("cum", r.cum)]
}

/// The heads of the columns. Cum has growth and share: what a line calls is most of what it costs.
fn heads(listing: &Listing) -> Vec<String> {
    if !two_sided(listing) {
        return ["flat", "cum", "line", "source"].map(str::to_owned).to_vec();
    }
    let sides = ["base", "new", "delta"];
    let mut heads = text::heads("flat", true, sides, false);
    heads.extend(text::heads("cum", true, sides, true));
    heads.extend(["line: base", "new", "source"].map(str::to_owned));
    heads
}

/// Writes the listing for people.
///
/// # Errors
/// The writer's.
pub fn listing_text(listing: &Listing, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    header(out, &listing.summary)?;
    let costs = costs(listing);
    if listing.routines.is_empty() {
        writeln!(out, "no function matches")?;
    }
    for r in &listing.routines {
        let status = if two_sided(listing) { format!("  ({})", r.status.name()) } else { String::new() };
        let file = r.file.as_deref().unwrap_or("a file that the profile does not name");
        writeln!(out, "\n{} in {}{status}", harmless(&r.name), harmless(file))?;
        in_words(listing, r, "->").iter().try_for_each(|words| writeln!(out, "{words}"))?;
        if let Some(places) = places(r) {
            writeln!(out, "{}", harmless(&places))?;
        }
        r.notes.iter().try_for_each(|note| writeln!(out, "note: {}", harmless(note)))?;
        let mut head = heads(listing);
        if let Some(last) = head.last_mut() {
            last.insert_str(0, "  ");
        }
        grid(out, options, &head, |push| r.lines.iter().try_for_each(|l| push(cells(listing, l, costs))))?;
    }
    Ok(())
}

fn cells(listing: &Listing, l: &Line, costs: [CostFormat; 2]) -> Vec<Shown> {
    let number = |n: Option<i64>| Shown::from(n.map_or_else(String::new, |n| n.to_string()));
    let mark = match l.change {
        LineChange::Same => ' ',
        LineChange::Inserted => '+',
        LineChange::Deleted => '-',
    };
    // A tab is as wide as four spaces; no other control character reaches a terminal.
    let text = l.text.as_deref().unwrap_or_default().replace('\t', "    ");
    let text = Shown::from(format!("{mark} {text}").trim_end().to_owned());
    let pair = |p: Pair, cost: CostFormat, full: bool| match (p == Pair::default(), two_sided(listing)) {
        (true, true) => (0..if full { 5 } else { 3 }).map(|_| ".".into()).collect(),
        (true, false) => vec![".".into()],
        (false, true) => text::change_cells(cost, p, full.then(|| whole(&listing.summary))),
        (false, false) => vec![cost.sides.format(p.new).into()],
    };
    let mut cells: Vec<Shown> = pair(l.flat, costs[0], false);
    cells.extend(pair(l.cum, costs[1], true));
    if two_sided(listing) {
        cells.push(number(l.base));
    }
    cells.extend([number(l.new), text]);
    cells
}

/// Writes the listing as JSON: the header, then one object a routine with an object a line.
///
/// # Errors
/// The writer's.
pub fn listing_json(listing: &Listing, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"schema\": \"pprofdiff/1\", \"kind\": \"list\"")?;
    for (name, value) in json_header(&listing.summary) {
        write!(out, ",\n \"{name}\": {value}")?;
    }
    write!(out, ",\n \"routines\": [")?;
    for (i, r) in listing.routines.iter().enumerate() {
        // The object is left open for its lines, which are written one by one.
        let routine = routine_json(listing, r).to_string();
        let routine = routine.strip_suffix('}').unwrap_or(&routine);
        write!(out, "{}\n  {routine},\"lines\":[", if i == 0 { "" } else { "," })?;
        for (i, l) in r.lines.iter().enumerate() {
            write!(out, "{}{}", if i == 0 { "" } else { "," }, line_json(listing, l))?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}

/// A routine without its lines.
fn routine_json(listing: &Listing, r: &Routine) -> Value {
    let mut routine = json!({"name": r.name, "file": r.file});
    if two_sided(listing) {
        routine["base_source"] = json!(r.places.0);
        routine["new_source"] = json!(r.places.1);
        routine["status"] = json!(r.status.name());
    } else {
        routine["source"] = json!(r.places.1);
    }
    costs_json(listing, &mut routine, r.flat, r.cum);
    routine["notes"] = json!(r.notes);
    routine
}

fn line_json(listing: &Listing, l: &Line) -> Value {
    let mut line = match two_sided(listing) {
        true => json!({"base_line": l.base, "new_line": l.new, "change": l.change.name(), "text": l.text}),
        false => json!({"line": l.new, "text": l.text}),
    };
    costs_json(listing, &mut line, l.flat, l.cum);
    line
}

fn costs_json(listing: &Listing, to: &mut Value, flat: Pair, cum: Pair) {
    for (name, p) in [("flat", flat), ("cum", cum)] {
        if two_sided(listing) {
            to[format!("{name}_base")] = json!(p.base);
            to[format!("{name}_new")] = json!(p.new);
            to[format!("{name}_delta")] = json!(p.delta());
        } else {
            to[name] = json!(p.new);
        }
    }
}

/// The listing as an HTML fragment under a summary, for notebooks. Needs no JavaScript; everything from the input is
/// escaped.
pub fn listing_html(listing: &Listing) -> String {
    let mut html = String::new();
    push_html(listing, &mut html);
    html
}

/// The listing as a page of its own, which asks for nothing and runs nothing.
pub fn to_html_page(listing: &Listing) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let mut html = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"{policy}\"><title>pprofdiff list</title></head><body>\n"
    );
    push_html(listing, &mut html);
    html.push_str("\n</body></html>\n");
    html
}

fn push_html(listing: &Listing, html: &mut String) {
    let summary = html::summary(std::slice::from_ref(&listing.summary));
    let _ = write!(html, "<div class=\"pprofdiff\">{}{STYLE}{summary}", html::style());
    push_routines(listing, html);
    html.push_str("</div>");
}

/// The routines alone, without style and summary.
pub(super) fn push_routines(listing: &Listing, html: &mut String) {
    let costs = costs(listing);
    let heads = heads(listing);
    // The last column is the text of the source.
    let text = |column: usize| if column + 1 == heads.len() { "text" } else { "" };
    let in_class = |class: &str| if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let head = heads.iter().enumerate().map(|(i, head)| format!("<th{}>{head}</th>", in_class(text(i))));
    let head: String = head.collect();
    if listing.routines.is_empty() {
        html.push_str("<div class=\"note\">no function matches</div>");
    }
    // Writing to a String does not fail.
    for r in &listing.routines {
        let status = if two_sided(listing) { format!(" ({})", r.status.name()) } else { String::new() };
        let file = r.file.as_deref().map_or_else(String::new, |f| format!(" in {}", escape(f)));
        let [flat, cum] = in_words(listing, r, "→");
        let _ = write!(
            html,
            "<details open=\"\"><summary><b>{}</b>{file}{status}<div class=\"note\">{flat} · {cum}</div></summary>",
            escape(&r.name)
        );
        for note in places(r).iter().chain(&r.notes) {
            let _ = write!(html, "<div class=\"note\">{}</div>", escape(note));
        }
        let _ = write!(html, "<table class=\"list\"><thead><tr>{head}</tr></thead><tbody>");
        for l in &r.lines {
            let _ = write!(html, "<tr class=\"{}\">", l.change.name());
            for (i, cell) in cells(listing, l, costs).into_iter().enumerate() {
                let class = ["less", text(i), "more"][(cell.sign + 1) as usize];
                let _ = write!(html, "<td{}>{}</td>", in_class(class), escape(&cell.text));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></details>");
    }
}

/// Where the texts come from, if there are some.
fn places(r: &Routine) -> Option<String> {
    let (base, new) = (r.places.0.as_ref(), r.places.1.as_ref());
    match (base, new) {
        (Some(base), Some(new)) if base != new => Some(format!("source {base} -> {new}")),
        _ => new.or(base).map(|place| format!("source {place}")),
    }
}
