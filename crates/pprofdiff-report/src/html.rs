//! The parts of HTML fragments that need no table: the style sheet, the header, and escapes.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use super::numbers::{extent, total};
use super::palette::{LESS, MORE, hex};
use super::text::inputs;
use pprofdiff::text::sanitize;
use pprofdiff::{Normalize, Side, Summary};

/// The style sheet. Colours come from the notebook (`currentColor`), so dark mode only replaces red and blue by lighter
/// shades. Dark mode applies if the notebook declares it, or else if the system does.
///
/// Columns of names (`t`) wrap but keep a minimum width. Columns of words and numbers do not wrap. A table that is
/// still too wide scrolls.
const STYLE: &str = "<style>
.pprofdiff{{light};overflow-x:auto}
@media (prefers-color-scheme:dark){.pprofdiff{{dark}}}
[data-jp-theme-light=true] .pprofdiff,.vscode-light .pprofdiff{{light}}
[data-jp-theme-light=false] .pprofdiff,.vscode-dark .pprofdiff{{dark}}
.pprofdiff table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:6px 0}
.pprofdiff th,.pprofdiff td{padding:2px 8px;text-align:right;border:0;border-bottom:1px solid rgba(128,128,128,.3);white-space:nowrap}
.pprofdiff table .t,.pprofdiff table .w{text-align:left}
.pprofdiff td.t{font-family:monospace;white-space:normal;overflow-wrap:anywhere;min-width:16em}
.pprofdiff .more{color:var(--more)}.pprofdiff .less{color:var(--less)}.pprofdiff .note{opacity:.75;margin:2px 0}
</style>";

/// Returns the style sheet of fragments with the palette's colours.
pub(super) fn style() -> &'static str {
    static FILLED: LazyLock<String> = LazyLock::new(|| {
        let tones = |less, more| format!("--less:{};--more:{}", hex(less), hex(more));
        STYLE
            .replace("{light}", &tones(LESS.text.light, MORE.text.light))
            .replace("{dark}", &tones(LESS.text.dark, MORE.text.dark))
    });
    &FILLED
}

/// Returns the summary of a table or a listing as HTML: the inputs, one line per sample type, and notes about the first
/// sample type. Empty without sample types.
pub(super) fn summary(types: &[Arc<Summary>]) -> String {
    let Some(s) = types.first() else { return String::new() };
    let side = |side: &Side| format!("{} ({})", escape(&inputs(side, s.sum)), extent(side));
    let mut html = match &s.base {
        // A table about many pairs names them in its rows.
        _ if s.new.paths.is_empty() => String::new(),
        Some(base) => format!("<div>{} → {}</div>", side(base), side(&s.new)),
        None => format!("<div>{}</div>", side(&s.new)),
    };
    for s in types {
        let kind = format!("<b>{}</b> ({})", escape(&s.sample_type), escape(&s.unit));
        let change = escape_ours(&total(s, "→"));
        let _ = match s.base {
            Some(_) => {
                let class = ["less", "", "more"][(s.total.delta().signum() + 1) as usize];
                write!(html, "<div>{kind}: <span class=\"{class}\">{change}</span></div>")
            }
            None => write!(html, "<div>{kind}: {change}</div>"),
        };
    }
    for note in notes(s) {
        let _ = write!(html, "<div class=\"note\">{}</div>", escape(&note));
    }
    html
}

/// Returns the notes about a table: settings, normalization and warnings.
pub(super) fn notes(s: &Summary) -> Vec<String> {
    let mut notes = s.query.settings();
    if s.query.normalize != Normalize::None {
        notes.push(format!("normalized by {}: new × {}", s.query.normalize.mode(), s.factor));
    }
    notes.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
    notes
}

/// Sanitizes and escapes text from the input, for the content of an element or a quoted attribute in HTML and XML.
pub fn escape(text: &str) -> String {
    escape_ours(&sanitize(text))
}

/// Escapes text that pprofdiff composed. Unlike [`escape`] it keeps line breaks; parts from the input must already be
/// sanitized.
pub fn escape_ours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(i) = rest.bytes().position(|b| matches!(b, b'&' | b'<' | b'>' | b'"' | b'\'')) {
        out.push_str(&rest[..i]);
        out.push_str(match rest.as_bytes()[i] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[i + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::escape_ours;

    #[test]
    fn escaping_runs_equals_escaping_characters() {
        let plain = |text: &str| -> String {
            let escaped = text.chars().map(|c| match c {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '"' => "&quot;".to_owned(),
                '\'' => "&#39;".to_owned(),
                c => c.to_string(),
            });
            escaped.collect()
        };
        for text in ["", "plain", "<", "a<b", "'\"&><", "é<名前>\u{1f600}&", "<<", "&amp;\n", "a'b\"c'"] {
            assert_eq!(escape_ours(text), plain(text), "{text:?}");
        }
    }
}
