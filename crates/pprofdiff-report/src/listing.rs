//! A listing of source lines or instructions with their costs: as text, as JSON (schema `pprofdiff/1`) and as HTML, in
//! which lines expand to their instructions.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::html::{self, escape};
use super::json::header as json_header;
use super::numbers::{CostFormat, whole};
use super::text::{self, TextCell, TextOptions, grid, header};
use pprofdiff::Pair;
use pprofdiff::list::{CodeChange, LineChange, Listed, ListedInstruction, ListedLine, ListedPlace, Listing, Routine};
use pprofdiff::text::sanitize;

const STYLE: &str = "<style>
.pprofdiff table.list td{font-family:monospace;border:0;padding:0 8px;white-space:pre}
.pprofdiff table.list .text{text-align:left}
.pprofdiff table.list tr.inserted .text,.pprofdiff table.list tr.deleted .text{background:rgba(128,128,128,.18)}
.pprofdiff table.list tr.deleted .text{text-decoration:line-through;text-decoration-color:rgba(128,128,128,.7)}
.pprofdiff table.list tr.code{display:none}
.pprofdiff table.list tbody:has(input:checked) tr.code{display:table-row}
.pprofdiff table.list tr.code td{opacity:.8}
.pprofdiff table.list:has(input) tr.code td.text:not(:has(input)){padding-left:3.5em}
.pprofdiff table.list:has(input) td.text:not(:has(input)){padding-left:calc(8px + 1.2em)}
.pprofdiff table.list input{appearance:none;margin:0;width:1.2em;font:inherit;cursor:pointer}
.pprofdiff table.list input::before{content:\"\\25b8\"}
.pprofdiff table.list input:checked::before{content:\"\\25be\"}
</style>";

fn two_sided(listing: &Listing) -> bool {
    listing.summary.base.is_some()
}

/// Returns the formats of the flat costs and of the cum costs. Each applies to all lines and instructions of the
/// listing.
fn costs(listing: &Listing) -> [CostFormat; 2] {
    let format_for = |line: fn(&ListedLine) -> Pair, instruction: fn(&ListedInstruction) -> Pair| {
        let pairs = listing.routines.iter().flat_map(move |r| {
            let under = r.lines.iter().flat_map(|l| &l.instructions).chain(&r.instructions);
            r.lines.iter().map(line).chain(under.map(instruction))
        });
        CostFormat::new(&listing.summary, pairs)
    };
    [format_for(|l| l.flat, |i| i.flat), format_for(|l| l.cum, |i| i.cum)]
}

/// Returns a hint if the source of at least one listed function was not found, with the option that sets its folder.
/// `options` are the caller's options for the base's sources, for the new side's sources, and for both (or for a single
/// profile's). Returns `None` for instructions.
pub fn missing_sources(listing: &Listing, options: [&str; 3]) -> Option<String> {
    if listing.of == Listed::Instructions {
        return None;
    }
    let [base, new, both] = options;
    let without = |has: fn(&Routine) -> bool| listing.routines.iter().filter(|r| !has(r)).count();
    let without_base = if two_sided(listing) { without(|r| r.places.0.is_some()) } else { 0 };
    let without_new = without(|r| r.places.1.is_some());
    let scope = |n: usize| match (n, listing.routines.len()) {
        (_, 1) => String::new(),
        (n, all) if n == all => " for any of the functions".to_owned(),
        (n, all) => format!(" for {n} of {all} functions"),
    };
    Some(match (without_base, without_new) {
        (0, 0) => return None,
        (0, n) if two_sided(listing) => {
            format!("no source of the new side was found{}: set its folder with {new}", scope(n))
        }
        (0, n) => format!("no source was found{}: set its folder with {both}", scope(n)),
        (n, 0) => format!("no source of the base was found{}: set its folder with {base}", scope(n)),
        (b, n) => format!(
            "no source was found{}: set the folders with {base} and {new}, or one for both with {both}",
            scope(b.max(n))
        ),
    })
}

/// Formats flat and cum as `flat 0.17s -> 0.25s  +0.08s  +47.1%  +4.21% of total`, or for a single profile as
/// `flat 0.25s (8.53%)`.
fn in_words(listing: &Listing, r: &Routine, arrow: &str) -> [String; 2] {
    let words = |name: &str, p: Pair| {
        let cost = CostFormat::new(&listing.summary, std::iter::once(p));
        format!("{name} {}", cost.words(p, whole(&listing.summary), arrow))
    };
    [words("flat", r.flat), words("cum", r.cum)]
}

/// Describes the change of a function's instructions, as in `relocated: the same instructions at other addresses`.
pub fn code_words(code: &CodeChange) -> String {
    let and = |names: &[String]| names.join(", ");
    match code {
        CodeChange::Identical => "identical: the same bytes in both builds".to_owned(),
        CodeChange::Relocated => "relocated: the same instructions at other addresses".to_owned(),
        CodeChange::Changed { differing, instructions, gained, lost, .. } => {
            let mut words = format!("{}: {differing} of {instructions} instructions differ", code.name());
            if !gained.is_empty() {
                words += &format!("; now inlines {}", and(gained));
            }
            if !lost.is_empty() {
                words += &format!("; no longer inlines {}", and(lost));
            }
            words
        }
        CodeChange::Unknown { reason } => format!("unknown: {reason}"),
        _ => code.name().to_owned(),
    }
}

/// Returns the heads of the columns. Growth and share belong to the cum cost, because most of a line's cost is in its
/// calls.
fn heads(listing: &Listing) -> Vec<String> {
    let (number, text) = match listing.of {
        Listed::Lines => ("line", "source"),
        Listed::Instructions => ("address", "instruction"),
    };
    if !two_sided(listing) {
        return ["flat", "cum", number, text].map(str::to_owned).to_vec();
    }
    let sides = ["base", "new", "delta"];
    let mut heads = text::heads("flat", true, sides, false);
    heads.extend(text::heads("cum", true, sides, true));
    heads.extend([format!("{number}: base"), "new".to_owned(), text.to_owned()]);
    heads
}

/// Writes the listing for people.
///
/// # Errors
/// Fails if `out` fails.
pub fn listing_text(listing: &Listing, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    header(out, &listing.summary, options)?;
    let costs = costs(listing);
    if listing.routines.is_empty() {
        writeln!(out, "{}", nothing(listing))?;
    }
    for r in &listing.routines {
        // The status is about cost. The code of an instruction listing has its own line.
        let about = if listing.of == Listed::Instructions { "cost: " } else { "" };
        let status = if two_sided(listing) { format!("  ({about}{})", r.status.name()) } else { String::new() };
        let file = match listing.of {
            Listed::Lines => format!(" in {}", r.file.as_deref().unwrap_or("a file that the profile does not name")),
            Listed::Instructions => String::new(),
        };
        writeln!(out, "\n{}{}{status}", sanitize(&r.name), sanitize(&file))?;
        if !options.brief {
            in_words(listing, r, "->").iter().try_for_each(|words| writeln!(out, "{words}"))?;
            if let Some(places) = places(listing, r) {
                writeln!(out, "{}", sanitize(&places))?;
            }
            if let Some(code) = &r.code {
                writeln!(out, "code: {}", sanitize(&code_words(code)))?;
            }
            r.notes.iter().try_for_each(|note| writeln!(out, "note: {}", sanitize(note)))?;
        }
        let mut head = heads(listing);
        if let Some(last) = head.last_mut() {
            last.insert_str(0, "  ");
        }
        shorten(&mut head, listing, options);
        // Source lines keep their length.
        grid(out, TextOptions { width: None, ..options }, &head, |push| {
            let mut push = |mut cells: Vec<TextCell>| {
                shorten(&mut cells, listing, options);
                push(cells)
            };
            r.lines.iter().try_for_each(|l| push(cells(listing, l, costs)))?;
            with_places(r, None, &r.instructions).try_for_each(|(i, place)| push(code_cells(listing, i, place, costs)))
        })?;
    }
    Ok(())
}

/// Removes growth and share from a row or from the heads if the text is brief. They are columns 6 and 7, after base,
/// new and delta of flat and of cum.
fn shorten<T>(row: &mut Vec<T>, listing: &Listing, options: TextOptions) {
    if options.brief && two_sided(listing) {
        row.drain(6..8);
    }
}

/// Returns each instruction with its origin: the source line, preceded by the function if that function was inlined
/// into the routine. The origin is empty if it is unknown, if it equals the previous instruction's, or if it is the
/// line `under` which the instructions are shown.
fn with_places<'a>(
    r: &'a Routine,
    under: Option<&'a ListedLine>,
    instructions: &'a [ListedInstruction],
) -> impl Iterator<Item = (&'a ListedInstruction, String)> {
    let is_under = move |place: &ListedPlace| {
        let number = Some(i64::from(place.line));
        place.is_of(&r.name) && under.is_some_and(|l| l.new == number || l.base == number)
    };
    let mut last = None;
    instructions.iter().map(move |i| {
        let place = i.place.as_ref().filter(|place| last != Some(*place) && !is_under(place));
        last = i.place.as_ref();
        let place_text = |place: &ListedPlace| {
            let file = place.file.rsplit(['/', '\\']).next().unwrap_or_default();
            let function = if place.is_of(&r.name) { String::new() } else { format!("{} ", place.function) };
            format!("  ; {function}{file}:{}", place.line)
        };
        (i, place.map_or_else(String::new, place_text))
    })
}

fn cells(listing: &Listing, l: &ListedLine, costs: [CostFormat; 2]) -> Vec<TextCell> {
    let number = |n: Option<i64>| n.map_or_else(String::new, |n| n.to_string());
    // A tab is shown as four spaces. Other control characters are sanitized later.
    let text = l.text.as_deref().unwrap_or_default().replace('\t', "    ");
    row(listing, [l.flat, l.cum], [number(l.base), number(l.new)], l.change, &text, costs)
}

/// Returns an instruction's cells, in the same columns as a line's cells: the address takes the place of the line
/// number.
fn code_cells(listing: &Listing, i: &ListedInstruction, place: String, costs: [CostFormat; 2]) -> Vec<TextCell> {
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| format!("{n:x}"));
    row(listing, [i.flat, i.cum], [number(i.base), number(i.new)], i.change, &format!("{}{place}", i.text), costs)
}

fn row(
    listing: &Listing,
    [flat, cum]: [Pair; 2],
    [base, new]: [String; 2],
    change: LineChange,
    text: &str,
    costs: [CostFormat; 2],
) -> Vec<TextCell> {
    let mark = match change {
        LineChange::Same | LineChange::Unknown => ' ',
        LineChange::Inserted => '+',
        LineChange::Deleted => '-',
    };
    let pair = |p: Pair, cost: CostFormat, full: bool| match (p == Pair::default(), two_sided(listing)) {
        (true, true) => (0..if full { 5 } else { 3 }).map(|_| ".".into()).collect(),
        (true, false) => vec![".".into()],
        (false, true) => text::change_cells(cost, p, full.then(|| whole(&listing.summary))),
        (false, false) => vec![cost.sides.format(p.new).into()],
    };
    let mut cells: Vec<TextCell> = pair(flat, costs[0], false);
    cells.extend(pair(cum, costs[1], true));
    if two_sided(listing) {
        cells.push(TextCell::from(base));
    }
    cells.extend([TextCell::from(new), TextCell::from(format!("{mark} {text}").trim_end().to_owned())]);
    cells
}

/// Writes the listing as JSON: the header, then one object per routine, with one object per line or instruction.
///
/// # Errors
/// Fails if `out` fails.
pub fn listing_json(listing: &Listing, out: &mut dyn Write) -> io::Result<()> {
    let kind = match listing.of {
        Listed::Lines => "list",
        Listed::Instructions => "disasm",
    };
    write!(out, "{{\"schema\": \"pprofdiff/1\", \"kind\": \"{kind}\"")?;
    for (name, value) in json_header(&listing.summary) {
        write!(out, ",\n \"{name}\": {value}")?;
    }
    write!(out, ",\n \"routines\": [")?;
    for (i, r) in listing.routines.iter().enumerate() {
        // Leave the object open and stream its lines.
        let routine = routine_json(listing, r).to_string();
        let routine = routine.strip_suffix('}').unwrap_or(&routine);
        write!(out, "{}\n  {routine}", if i == 0 { "" } else { "," })?;
        if listing.of == Listed::Instructions {
            write_array(out, "instructions", r.instructions.iter().map(|i| instruction_json(listing, i)))?;
        }
        write_array(out, "lines", r.lines.iter().map(|l| line_json(listing, l)))?;
        write!(out, "}}")?;
    }
    writeln!(out, "]}}")
}

fn write_array(out: &mut dyn Write, name: &str, all: impl Iterator<Item = Value>) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (i, value) in all.enumerate() {
        write!(out, "{}{value}", if i == 0 { "" } else { "," })?;
    }
    write!(out, "]")
}

/// Returns a routine without its lines.
fn routine_json(listing: &Listing, r: &Routine) -> Value {
    let mut routine = json!({"name": r.name, "file": r.file});
    let places = places_are(listing);
    if two_sided(listing) {
        routine[format!("base_{places}")] = json!(r.places.0);
        routine[format!("new_{places}")] = json!(r.places.1);
        routine["status"] = json!(r.status.name());
    } else {
        routine[places] = json!(r.places.1);
    }
    costs_json(listing, &mut routine, r.flat, r.cum);
    routine["code"] = json!(r.code);
    routine["notes"] = json!(r.notes);
    routine
}

fn line_json(listing: &Listing, l: &ListedLine) -> Value {
    let mut line = match two_sided(listing) {
        true => json!({"base_line": l.base, "new_line": l.new, "change": l.change.name(), "text": l.text}),
        false => json!({"line": l.new, "text": l.text}),
    };
    costs_json(listing, &mut line, l.flat, l.cum);
    if !l.instructions.is_empty() {
        line["instructions"] = l.instructions.iter().map(|i| instruction_json(listing, i)).collect();
    }
    line
}

fn instruction_json(listing: &Listing, i: &ListedInstruction) -> Value {
    let mut instruction = match two_sided(listing) {
        true => json!({"base_address": i.base, "new_address": i.new, "change": i.change.name(), "text": i.text}),
        false => json!({"address": i.new, "text": i.text}),
    };
    let place = i.place.as_ref();
    instruction["function"] = json!(place.map(|p| &*p.function));
    instruction["file"] = json!(place.map(|p| &*p.file));
    instruction["line"] = json!(place.map(|p| p.line));
    costs_json(listing, &mut instruction, i.flat, i.cum);
    instruction
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

/// Returns the listing as an HTML fragment below a summary, for notebooks. It works without JavaScript. All text from
/// the input is escaped.
pub fn listing_html(listing: &Listing) -> String {
    let mut html = String::new();
    push_html(listing, &mut html);
    html
}

/// Returns the listing as a complete HTML page. Its content security policy permits no script and no requests.
pub fn to_html_page(listing: &Listing) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let mut html = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"{policy}\"><title>pprofdiff {}</title></head><body>\n",
        if listing.of == Listed::Lines { "list" } else { "disasm" }
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

/// Appends the routines alone, without style and summary.
pub fn push_routines(listing: &Listing, html: &mut String) {
    let costs = costs(listing);
    let heads = heads(listing);
    // The last column holds the source text.
    let text = |column: usize| if column + 1 == heads.len() { "text" } else { "" };
    let in_class = |class: &str| if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let head = heads.iter().enumerate().map(|(i, head)| format!("<th{}>{head}</th>", in_class(text(i))));
    let head: String = head.collect();
    if listing.routines.is_empty() {
        let _ = write!(html, "<div class=\"note\">{}</div>", nothing(listing));
    }
    // Writing to a String cannot fail.
    for r in &listing.routines {
        let status = if two_sided(listing) { format!(" ({})", r.status.name()) } else { String::new() };
        let file = r.file.as_deref().map_or_else(String::new, |f| format!(" in {}", escape(f)));
        let [flat, cum] = in_words(listing, r, "→");
        let _ = write!(
            html,
            "<details open=\"\"><summary><b>{}</b>{file}{status}<div class=\"note\">{flat} · {cum}</div></summary>",
            escape(&r.name)
        );
        for note in places(listing, r).iter().chain(&r.notes) {
            let _ = write!(html, "<div class=\"note\">{}</div>", escape(note));
        }
        let _ = write!(html, "<table class=\"list\"><thead><tr>{head}</tr></thead><tbody>");
        let push = |html: &mut String, class: &str, opens: bool, cells: Vec<TextCell>| {
            let _ = write!(html, "<tr class=\"{class}\">");
            for (i, cell) in cells.into_iter().enumerate() {
                let class = ["less", text(i), "more"][(cell.sign + 1) as usize];
                let (mut before, mut after) = ("", "");
                if opens && i + 1 == heads.len() {
                    (before, after) = ("<label><input type=\"checkbox\" aria-label=\"instructions\"/>", "</label>");
                }
                let _ = write!(html, "<td{}>{before}{}{after}</td>", in_class(class), escape(&cell.text));
            }
            html.push_str("</tr>");
        };
        for l in &r.lines {
            // A line and its instructions form a table body, which expands as a unit.
            let opens = !l.instructions.is_empty();
            let body_break = if opens { "</tbody><tbody>" } else { "" };
            html.push_str(body_break);
            push(html, l.change.name(), opens, cells(listing, l, costs));
            for (i, place) in with_places(r, Some(l), &l.instructions) {
                push(html, &format!("code {}", i.change.name()), false, code_cells(listing, i, place, costs));
            }
            html.push_str(body_break);
        }
        for (i, place) in with_places(r, None, &r.instructions) {
            push(html, i.change.name(), false, code_cells(listing, i, place, costs));
        }
        html.push_str("</tbody></table></details>");
    }
}

/// Returns the text for a listing without routines.
fn nothing(listing: &Listing) -> &'static str {
    match listing.of {
        Listed::Lines => "no function matches",
        Listed::Instructions => "no function with instructions matches",
    }
}

/// Returns the noun for the files that a listing's lines or instructions come from.
fn places_are(listing: &Listing) -> &'static str {
    match listing.of {
        Listed::Lines => "source",
        Listed::Instructions => "binary",
    }
}

/// Formats the files that the source lines or instructions come from: both sides' files if they differ, otherwise one.
/// Returns `None` if neither is known.
fn places(listing: &Listing, r: &Routine) -> Option<String> {
    let noun = places_are(listing);
    let (base, new) = (r.places.0.as_ref(), r.places.1.as_ref());
    match (base, new) {
        (Some(base), Some(new)) if base != new => Some(format!("{noun} {base} -> {new}")),
        _ => new.or(base).map(|place| format!("{noun} {place}")),
    }
}
