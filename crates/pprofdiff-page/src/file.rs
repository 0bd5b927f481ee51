//! Assembles the HTML file of a page: template, style, script, data, and the content security policy.

use std::fmt::Write;
use std::io;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
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
    let mut out = PageWriter(String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + 1024));
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
        out.0.push_str(before);
        out.0.push_str(text);
        if mark == DATA {
            // Writing to a String cannot fail.
            let _ = data.serialize(&mut Serializer::with_formatter(&mut out, WithoutTags));
        }
        rest = after;
    }
    out.0.push_str(rest);
    out.0
}

/// Collects the page while it is written.
struct PageWriter(String);

impl io::Write for PageWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats JSON without any `<`, so that the data cannot contain an HTML tag. JSON has `<` in strings only, where it is
/// written as `\u003c`.
struct WithoutTags;

impl Formatter for WithoutTags {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for (i, part) in fragment.split('<').enumerate() {
            if i > 0 {
                out.write_all(b"\\u003c")?;
            }
            out.write_all(part.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn the_script_has_no_comment_lines() {
        let script = "// a\nlet x = 1; // stays\n\n  /** b */\n  /**\n   * c\n   */\n  f(\"/*\");\n";
        assert_eq!(without_comments(script), "let x = 1; // stays\n  f(\"/*\");\n");
    }
}
