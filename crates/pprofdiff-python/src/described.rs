//! The options of the engine's tables as Python describes them: annotations, and texts that name other keywords.
//!
//! pyo3 takes docstrings as literals only, so a test (`tests/keywords.rs`) writes `docstrings.rs`. The test includes this
//! file, which therefore does not depend on Python.

use pprofdiff::options::{OptionKind, OptionRow};

/// The maximum number of values that an annotation lists.
const MAX_VALUES: usize = 8;

/// The options whose values have a name in `types.py`.
const ALIASES: [(&str, &str); 2] = [("granularity", "Granularity"), ("match", "Matching")];

/// Returns an option in a docstring: `focus`, or `sort="cum"` with a value.
pub fn in_docstring(name: &str, value: Option<&str>) -> String {
    format!("`{}`", value.map_or_else(|| name.to_owned(), |value| format!("{name}=\"{value}\"")))
}

/// Returns the annotation of an option's keyword.
pub fn annotation<T: 'static>(option: &OptionRow<T>) -> String {
    let literal = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        format!("Literal[{}]", words.join(", "))
    };
    let alias = ALIASES.iter().find(|(name, _)| *name == option.name);
    let value = match ((option.kind)(), alias) {
        (_, Some((_, alias))) => (*alias).to_owned(),
        (OptionKind::Flag, _) => "bool".to_owned(),
        (OptionKind::Count, _) => "int".to_owned(),
        (OptionKind::Number([]), _) => "float".to_owned(),
        (OptionKind::Number(words), _) => format!("{} | float", literal(words)),
        (OptionKind::Texts(_), _) => "str | Sequence[str]".to_owned(),
        (OptionKind::Paths, _) => "str | PathLike[str] | Sequence[str | PathLike[str]]".to_owned(),
        (OptionKind::Choice(words), _) if words.len() <= MAX_VALUES => literal(&words),
        _ => "str".to_owned(),
    };
    format!("{value} | None")
}

/// Returns the one-line description of an option.
pub fn about<T: 'static>(option: &OptionRow<T>) -> String {
    pprofdiff::options::spell(option.about, in_docstring)
}
