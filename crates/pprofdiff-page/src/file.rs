//! Assembles the HTML file of a page: template, style, script, data, and the content security policy.

use std::fmt::Write;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use pprofdiff_report::shared::{ACCOUNT_STYLE, LESS, MORE, Shades, escape, hex};

const TEMPLATE: &str = include_str!("assets/page.html");
const DATA: &str = "{data}";
/// The style sheet of pages, with the palette's colours for less and more as variables.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let mut style = ":root {\n".to_owned();
    for (name, tone) in [("less", LESS), ("more", MORE)] {
        for (suffix, Shades { light, dark }) in [("", tone.area), ("-text", tone.text)] {
            let _ = writeln!(style, "  --{name}{suffix}: light-dark({}, {});", hex(light), hex(dark));
        }
    }
    style + "}\n" + ACCOUNT_STYLE + include_str!("assets/page.css")
});
/// The script of pages. It is one function, so that its names do not become properties of `window`. Lines with comments
/// only are removed.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    without_comments(concat!(
        "\"use strict\";\n(() => {\n",
        include_str!("assets/data.js"),
        include_str!("assets/names.js"),
        include_str!("assets/flame.js"),
        include_str!("assets/zoom.js"),
        include_str!("assets/timelines.js"),
        include_str!("assets/view.js"),
        include_str!("assets/choose.js"),
        include_str!("assets/table.js"),
        include_str!("assets/summary.js"),
        include_str!("assets/page.js"),
        "})();\n"
    ))
});

/// Removes blank lines and lines that contain only a comment from the script. A line inside a multi-line string could
/// be mistaken for a comment, so the script must not have such strings.
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

/// Returns the hashes of the script and of the style sheet of all pages, in this order, as sources of a content
/// security policy without quotes. A site that embeds pages has to allow both.
pub fn page_hashes() -> [String; 2] {
    [&SCRIPT, &STYLE].map(|text| format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes()))))
}

/// Returns the style sheet of all pages, for use around an embedded page.
pub fn page_style() -> &'static str {
    &STYLE
}

/// Fills the template and escapes `title`. Each placeholder is searched after the previous one, so inserted text is
/// never taken for a placeholder. `panels` (explanations) and `source` (a listing) are HTML whose text must already be
/// escaped.
pub(crate) fn fill(title: &str, panels: &str, source: &str, data: &Value) -> String {
    let [script, style] = page_hashes();
    let policy =
        format!("default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'");
    let title = escape(title);
    let mut out = String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + 1024);
    let mut rest = TEMPLATE;
    for (mark, text) in [
        ("{policy}", policy.as_str()),
        ("{title}", &title),
        ("{style}", &STYLE),
        ("{panels}", panels),
        ("{source}", source),
        (DATA, ""),
        ("{script}", &SCRIPT),
    ] {
        let Some((before, after)) = rest.split_once(mark) else { continue };
        out.push_str(before);
        out.push_str(text);
        if mark == DATA {
            push_json(&mut out, data);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Appends JSON without any `<`, so that the data cannot contain an HTML tag. JSON has `<` in strings only, where it is
/// written as `\u003c`. Otherwise the text equals the text that `serde_json` writes, but nearly all of a page is long
/// strings, and these are copied in whole.
fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (name, field)) in fields.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                push_json_string(out, name);
                out.push(':');
                push_json(out, field);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{value}");
        }
    }
}

fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(i) = next_escaped(rest.as_bytes()) {
        out.push_str(&rest[..i]);
        let byte = rest.as_bytes()[i];
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'<' => out.push_str("\\u003c"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        rest = &rest[i + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Returns the position of the first byte that [`push_json_string`] escapes. Such a byte is a whole character. Checks
/// eight bytes at a time.
fn next_escaped(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    // Sets the top bit of bytes below `limit`, and maybe of bytes after such a byte.
    let below = |word: u64, limit: u64| word.wrapping_sub(limit * EACH) & !word & TOP;
    let equal = |word: u64, byte: u8| below(word ^ (u64::from(byte) * EACH), 1);
    let is_escaped = |&byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | b'<');
    let (words, _) = bytes.as_chunks::<8>();
    let plain = words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .take_while(|&word| below(word, 0x20) | equal(word, b'"') | equal(word, b'\\') | equal(word, b'<') == 0);
    let start = 8 * plain.count();
    bytes[start..].iter().position(is_escaped).map(|i| start + i)
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde::Serialize;
    use serde_json::ser::{Formatter, Serializer};
    use serde_json::{Value, json};

    use super::{push_json, without_comments};

    /// The plain form of [`push_json`]: the JSON of `serde_json`, with each `<` replaced.
    struct WithoutTags;

    impl Formatter for WithoutTags {
        fn write_string_fragment<W: io::Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
            out.write_all(fragment.replace('<', "\\u003c").as_bytes())
        }
    }

    #[test]
    fn json_equals_that_of_serde_json_without_tags() {
        let written = |value: &Value| {
            let (mut ours, mut plain) = (String::new(), Vec::new());
            push_json(&mut ours, value);
            value
                .serialize(&mut Serializer::with_formatter(&mut plain, WithoutTags))
                .map(|()| assert_eq!(ours.as_bytes(), plain))
        };
        // Every character up to U+0100 at every position of a word, alone and among others.
        for position in 0..17 {
            for c in '\0'..='\u{100}' {
                for fill in ["a", "é", "<", "\u{7f}"] {
                    let text = format!("{}{c}{}", fill.repeat(position), fill.repeat(20 - position));
                    assert!(written(&text.into()).is_ok());
                }
            }
        }
        let values = json!({
            "a<b": [null, true, false, 0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -2.5e-7, 3.0, [], {}, ""],
            "\"": {"nested\\": [{"x": "</script>"}, [[1]]], "": "\u{2028}\u{1f600}"},
        });
        assert!(written(&values).is_ok());
    }

    #[test]
    fn the_script_has_no_comment_lines() {
        let script = "// a\nlet x = 1; // stays\n\n  /** b */\n  /**\n   * c\n   */\n  f(\"/*\");\n";
        assert_eq!(without_comments(script), "let x = 1; // stays\n  f(\"/*\");\n");
    }
}
