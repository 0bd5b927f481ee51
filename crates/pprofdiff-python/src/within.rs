//! `to_text(max_tokens=...)`: answers as text for language models.

use std::io;

use pprofdiff_report::{Format, MIN_BUDGET, TokenBudget, text_head, tokens};
use pyo3::prelude::*;

use crate::{REGISTRY, error, runtime};

/// Checks a token budget.
fn check(py: Python<'_>, max_tokens: Option<usize>) -> PyResult<()> {
    match max_tokens {
        Some(tokens) if tokens < MIN_BUDGET => {
            Err(error::message(py, &format!("max_tokens must be at least {MIN_BUDGET}, not {tokens}")))
        }
        _ => Ok(()),
    }
}

/// Returns a report as text with at most `max_tokens` tokens, and with the hint as its last line if there is room.
/// `within` calls `Report::within`.
pub fn text_within(
    py: Python<'_>,
    max_tokens: Option<usize>,
    hint: Option<String>,
    within: impl FnOnce(&Format, &TokenBudget<'_>) -> io::Result<String> + Send + 'static,
) -> PyResult<String> {
    check(py, max_tokens)?;
    let tokens = max_tokens.unwrap_or(usize::MAX);
    let endings = hint.map_or_else(Vec::new, |hint| vec![String::new(), format!("\n{hint}\n")]);
    runtime::run(py, move || {
        let budget = TokenBudget { tokens, advice: "set a larger max_tokens", endings: &endings };
        within(REGISTRY.format("text")?, &budget).map_err(pprofdiff::Error::io)
    })
}

/// Returns the first lines of a text with at most `max_tokens` tokens, for copies that have only the text.
pub fn head_within(py: Python<'_>, max_tokens: Option<usize>, text: &str) -> PyResult<String> {
    check(py, max_tokens)?;
    let text = format!("{text}\n");
    Ok(max_tokens.filter(|&max| tokens(&text) > max).map_or(text.clone(), |max| text_head(&text, max)))
}
