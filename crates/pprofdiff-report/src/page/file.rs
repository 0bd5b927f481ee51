//! The file around a page's data: template, style and script, and the policy that names the last two.

use std::fmt::Write;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::html::escape;
use crate::palette::{LESS, MORE, Shades, hex};

const TEMPLATE: &str = include_str!("page.html");
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
    use super::without_comments;

    #[test]
    fn the_script_has_no_comment_lines() {
        let script = "// a\nlet x = 1; // stays\n\n  /** b */\n  /**\n   * c\n   */\n  f(\"/*\");\n";
        assert_eq!(without_comments(script), "let x = 1; // stays\n  f(\"/*\");\n");
    }
}
