//! What speaks for the cost of one function being another's now: one calls the other, their names are alike, or both call
//! the same functions. A caller in common and an opposite change are no evidence, because any two siblings may have them.

use std::collections::BTreeMap;

use super::evidence::rows::Rows;
use super::rules::parts::Parts;
use pprofdiff_profile::work::paced;

/// Callees are the same if functions share this part of them.
const SAME_CALLEES: f64 = 0.5;

/// Returns true if the cost of one of two functions may have become the other's.
pub(super) fn are_related(rows: &Rows, a: u32, b: u32) -> bool {
    let parts = [a, b].map(|frame| Parts::of(&rows.names[frame as usize].text));
    a == b || parts[0].is_alike(&parts[1]) || call_each_other(rows, a, b) || have_the_same_callees(rows, a, b)
}

/// Returns true if one of two functions calls the other. What the runtime does between them is no function of the program.
pub(super) fn call_each_other(rows: &Rows, a: u32, b: u32) -> bool {
    paced(0..rows.rows.len()).any(|row| {
        let mut before = None;
        rows.stack(row).iter().any(|&frame| {
            let is_call = before == Some(a) && frame == b || before == Some(b) && frame == a;
            before = if rows.is_system(frame) && frame != a && frame != b { before } else { Some(frame) };
            is_call
        })
    })
}

/// Returns true if two functions call the same functions of the program, for like parts of what each calls.
fn have_the_same_callees(rows: &Rows, a: u32, b: u32) -> bool {
    let mut callees: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for (i, row) in paced(rows.rows.iter().enumerate()) {
        for call in rows.stack(i).windows(2).filter(|call| rows.names[call[1] as usize].class.program) {
            if let Some(of) = [a, b].iter().position(|&frame| frame == call[0]) {
                callees.entry(call[1]).or_default()[of] += row.values[0] + row.values[1];
            }
        }
    }
    let sums = [0, 1].map(|of| callees.values().map(|v| v[of]).sum::<f64>());
    let shares = callees.values().map(|v| (v[0] / sums[0]).min(v[1] / sums[1]));
    sums.iter().all(|sum| *sum > 0.0) && shares.sum::<f64>() > SAME_CALLEES
}
