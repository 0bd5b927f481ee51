//! What less and more look like, wherever they are shown: the page, notebooks, call graphs and terminals.
//!
//! Blue and red of equal strength on grey are told apart by people who don't see red or green.

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// A colour on light and on dark paper.
pub(super) struct Shades {
    pub light: Rgb,
    pub dark: Rgb,
}

/// The colours of one direction.
pub(super) struct Tone {
    /// Boxes and lines.
    pub area: Shades,
    /// Letters: readable on paper (a contrast of at least 4.5, which tests/python/test_page.py computes).
    pub text: Shades,
    /// What is nearest of the sixteen colours that each terminal defines for itself (a parameter of SGR). Of the two
    /// blues it is the bright one: the other can't be read on black in most terminals.
    pub ansi: u8,
}

pub(super) const LESS: Tone = Tone {
    area: Shades { light: [0x2f, 0x6f, 0xc4], dark: [0x5b, 0x9c, 0xf0] },
    text: Shades { light: [0x1f, 0x5a, 0xab], dark: [0x8a, 0xb9, 0xff] },
    ansi: 94,
};

pub(super) const MORE: Tone = Tone {
    area: Shades { light: [0xcf, 0x42, 0x37], dark: [0xf0, 0x71, 0x67] },
    text: Shades { light: [0xb3, 0x26, 0x1e], dark: [0xff, 0x92, 0x88] },
    ansi: 31,
};

/// As HTML, SVG and Graphviz read it.
pub(super) fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// From one colour (0) to another (1).
pub(super) fn mix(from: Rgb, to: Rgb, part: f64) -> Rgb {
    std::array::from_fn(|i| (f64::from(from[i]) + (f64::from(to[i]) - f64::from(from[i])) * part).round() as u8)
}

/// Text for a terminal, in the colour of a change with this sign; as it is where there was none.
pub(super) fn paint(text: &str, sign: i64) -> String {
    match sign {
        0 => text.to_owned(),
        sign => format!("\x1b[{}m{text}\x1b[0m", if sign < 0 { LESS } else { MORE }.ansi),
    }
}
