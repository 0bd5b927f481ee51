//! Runs each target on its known inputs, without the fuzzing engine.

use std::any::Any;
use std::panic::catch_unwind;

use crate::TARGETS;

#[test]
fn every_target_accepts_its_seeds_and_regressions() {
    let mut failures = Vec::new();
    for target in &TARGETS {
        let inputs = target.inputs();
        assert!(!inputs.is_empty() || ["binaries", "same_code"].contains(&target.name), "{} has no input", target.name);
        for (name, data) in inputs {
            if let Err(panic) = catch_unwind(|| (target.run)(&data)) {
                failures.push(format!("{}/{name}: {}", target.name, message(&*panic)));
            }
        }
    }
    assert!(failures.is_empty(), "{} inputs break their target:\n{}", failures.len(), failures.join("\n"));
}

/// Returns the text of a panic.
fn message(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}
