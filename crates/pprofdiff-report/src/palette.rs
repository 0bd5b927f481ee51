//! The colours for less and more, shared by the page, notebooks, call graphs and terminals.
//!
//! Both are equally strong and differ as blue and red on grey, so people with a red-green colour deficiency can tell
//! them apart.

/// A colour: red, green and blue.
pub type Rgb = [u8; 3];

/// The variants of a colour for a light and for a dark background.
#[derive(Debug)]
pub struct Shades {
    /// The colour on a light background.
    pub light: Rgb,
    /// The colour on a dark background.
    pub dark: Rgb,
}

/// The colours of one direction.
#[derive(Debug)]
pub struct Tone {
    /// The colour of boxes and lines.
    pub area: Shades,
    /// The colour of text. Its contrast to the background is at least 4.5; tests/python/test_page.py computes it.
    pub text: Shades,
    /// The nearest of the sixteen colours that each terminal defines for itself (a parameter of SGR). Blue is the
    /// bright blue, because the dark blue is unreadable on black in most terminals.
    pub ansi: u8,
}

/// The colours of less cost.
pub const LESS: Tone = Tone {
    area: Shades { light: [0x2f, 0x6f, 0xc4], dark: [0x5b, 0x9c, 0xf0] },
    text: Shades { light: [0x1f, 0x5a, 0xab], dark: [0x8a, 0xb9, 0xff] },
    ansi: 94,
};

/// The colours of more cost.
pub const MORE: Tone = Tone {
    area: Shades { light: [0xcf, 0x42, 0x37], dark: [0xf0, 0x71, 0x67] },
    text: Shades { light: [0xb3, 0x26, 0x1e], dark: [0xff, 0x92, 0x88] },
    ansi: 31,
};

/// Formats a colour for HTML, SVG and Graphviz.
pub fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio").
#[cfg(feature = "svg")]
pub(super) fn contrast(a: Rgb, b: Rgb) -> f64 {
    let linear = |v: u8| match f64::from(v) / 255.0 {
        v if v <= 0.04045 => v / 12.92,
        v => ((v + 0.055) / 1.055).powf(2.4),
    };
    let luminance = |[r, g, b]: Rgb| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Interpolates between two colours; `part` is 0 for `from` and 1 for `to`.
pub(super) fn mix(from: Rgb, to: Rgb, part: f64) -> Rgb {
    std::array::from_fn(|i| (f64::from(from[i]) + (f64::from(to[i]) - f64::from(from[i])) * part).round() as u8)
}

/// Colours terminal text by the sign of a change. Text of a zero change stays as it is.
pub(super) fn paint(text: &str, sign: i64) -> String {
    match sign {
        0 => text.to_owned(),
        sign => format!("\x1b[{}m{text}\x1b[0m", if sign < 0 { LESS } else { MORE }.ansi),
    }
}
