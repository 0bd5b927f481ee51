//! Any bytes as folded stacks: an error with a line, or a profile that is written and read back with the same values.

use std::sync::Arc;

use crate::inputs::Inputs;
use crate::shared::LIMIT;
use pprofdiff::{Diff, LoadOptions, Query};

pub fn run(data: &[u8]) {
    let Some((selector, text)) = data.split_first() else { return };
    let as_format = |name: &str| LIMIT.clone().with_input_format(name).unwrap_or_else(|e| panic!("{e}"));
    let options = [LIMIT.clone(), as_format("folded"), as_format("folded2")];
    let Some((first, total)) = read(text, &options[usize::from(selector % 3)]) else { return };
    let Some(again) = written(&first) else { return };
    // A profile of one side has no header if its type is samples, so its format may need to be given.
    let options = if first.is_two_sided() { &options[2] } else { &options[1] };
    let Some((second, other)) = read(&again, options) else {
        panic!("what is written is not read: {:?}", String::from_utf8_lossy(&again))
    };
    assert_eq!(first.is_two_sided(), second.is_two_sided());
    // Samples without a stack are in no table of stacks, and names that become equal may cancel.
    assert!(other.base <= total.base && other.new <= total.new, "{total:?} {other:?}");
}

/// Returns stacks with and without a header, as each format.
pub fn seeds() -> Inputs {
    const HEADER: &str = "# pprofdiff-folded cpu/nanoseconds base new\n";
    const STACKS: &str = "main;parse 31 33\n#<Class>;b c 7 -12.0\r\n\n 5 6\n";
    let formats = 0..3;
    let seeds = formats.flat_map(|format| {
        let input = |text: &[&str]| [&[format], text.concat().as_bytes()].concat();
        [(format!("{format}-header"), input(&[HEADER, STACKS])), (format!("{format}-bare"), input(&[STACKS]))]
    });
    seeds.collect()
}

fn read(text: &[u8], options: &LoadOptions) -> Option<(Diff, pprofdiff::Pair)> {
    match pprofdiff::from_bytes("in", text, options) {
        Ok(profile) => {
            let diff = Diff::of_profile(&Arc::new(profile)).ok()?;
            let total = diff.measure(&Query::default()).ok()?.summary().total;
            Some((diff, total))
        }
        Err(e) => {
            assert!(!e.to_string().contains('\n'), "an error of several lines: {e}");
            None
        }
    }
}

/// Writes the stacks with a trailing line break, because an empty text is not a valid input.
fn written(diff: &Diff) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let measure = diff.measure(&Query::default()).ok()?;
    let result = pprofdiff_report::folded(&measure.stacks(false), &mut out);
    assert!(result.is_ok(), "writing into memory failed: {result:?}");
    out.push(b'\n');
    Some(out)
}
