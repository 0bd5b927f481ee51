//! Options that some formats support.

use crate::text::TextOptions;

/// Options that some formats support.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Colours text for a terminal.
    pub color: bool,
    /// CSV puts a `'` before texts that a spreadsheet would run as a formula.
    pub quote_formulas: bool,
    /// Shortens the header of text: it names neither the inputs nor the meaning of the columns.
    pub brief: bool,
    /// Fits the tables of text into this number of characters. `None` keeps all columns and whole names.
    pub width: Option<usize>,
}

impl Style {
    pub(crate) fn text(self) -> TextOptions {
        TextOptions { color: self.color, brief: self.brief, width: self.width }
    }
}
