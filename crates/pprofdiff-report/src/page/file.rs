//! The file around a page's data: template, style and script, and the policy that names the last two.

use std::fmt::Write;
use std::io;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use sha2::{Digest, Sha256};

use crate::html::escape;
use crate::palette::{LESS, MORE, Shades, hex};

const TEMPLATE: &str = include_str!("page.html");
const DATA: &str = "{data}";
/// What the page looks like, with less and more as variables of the palette.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let mut style = ":root {\n".to_owned();
    for (name, tone) in [("less", LESS), ("more", MORE)] {
        for (suffix, Shades { light, dark }) in [("", tone.area), ("-text", tone.text)] {
            let _ = writeln!(style, "  --{name}{suffix}: light-dark({}, {});", hex(light), hex(dark));
        }
    }
    style + "}\n" + include_str!("account.css") + include_str!("page.css")
});
/// One function, so that no name of it is a window's. Its comments are for who reads the source.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    without_comments(concat!(
        "\"use strict\";\n(() => {\n",
        include_str!("data.js"),
        include_str!("names.js"),
        include_str!("flame.js"),
        include_str!("zoom.js"),
        include_str!("courses.js"),
        include_str!("view.js"),
        include_str!("choose.js"),
        include_str!("table.js"),
        include_str!("summary.js"),
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
pub(super) fn fill(title: &str, panels: &str, source: &str, data: &Value) -> String {
    let [script, style] = page_hashes();
    let policy =
        format!("default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'");
    let title = escape(title);
    let mut out = Page(String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + 1024));
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
            // Into a text, which takes all of it.
            let _ = data.serialize(&mut Serializer::with_formatter(&mut out, WithoutTags));
        }
        rest = after;
    }
    out.0.push_str(rest);
    out.0
}

/// The page while it is written.
struct Page(String);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// JSON in which no tag begins. Outside of texts it has no `<`.
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
