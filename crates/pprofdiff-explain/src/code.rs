//! Adds the difference between the instructions of both builds to causes that are a function's own cost. The difference
//! does not explain the cost: equal instructions can take longer because of their number of executions, their place in
//! memory, the data, or the machine.

use std::sync::Arc;

use super::{Cause, CauseKind, Explanation};
use pprofdiff::list::{CodeChange, CodeChanges};
use pprofdiff::{Diff, Query, Result};

/// Returns the function whose own cost is the cause.
fn own_function(cause: &Cause) -> Option<&String> {
    cause.function.as_ref().filter(|_| cause.kind == CauseKind::Own && cause.callee.is_none())
}

/// Compares the instructions of functions whose own cost is a cause, if the user named binaries for both sides. Adds a
/// warning if no comparison was possible.
///
/// # Errors
/// Fails only if the work was cancelled.
pub(super) fn add_code_changes(diff: &Diff, query: &Query, explanation: &mut Explanation) -> Result<()> {
    for also in &mut explanation.also {
        add_code_changes(diff, query, also)?;
    }
    let Explanation { causes, suspects, candidate, .. } = explanation;
    let candidate = candidate.as_mut().map(|nearest| &mut nearest.cause);
    let mut causes: Vec<&mut Cause> = causes.iter_mut().chain(suspects).chain(candidate).collect();
    causes.retain(|cause| own_function(cause).is_some());
    let names: Vec<String> = causes.iter().flat_map(|cause| cause.evidence.functions.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let query = query.clone().with_sample_type(&explanation.summary.sample_type);
    let Some(CodeChanges { by_name, mut warning, .. }) = diff.named_code_changes(&query, &names)? else {
        return Ok(());
    };
    for cause in &mut causes {
        // A renamed function has several names; the name in the sentence comes first.
        let all_names = own_function(cause).into_iter().chain(&cause.evidence.functions);
        cause.code = all_names.filter_map(|name| by_name.get(name)).next().cloned();
    }
    let mut reasons = causes.iter().map(|cause| match &cause.code {
        Some(CodeChange::Unknown { reason }) => Some(reason),
        _ => None,
    });
    if let Some(Some(first)) = reasons.next()
        && reasons.all(|reason| reason == Some(first))
    {
        warning = Some(format!("it is unknown whether instructions changed: {first}"));
    }
    explanation.left_out.extend(warning.clone());
    Arc::make_mut(&mut explanation.summary).warnings.extend(warning);
    Ok(())
}
