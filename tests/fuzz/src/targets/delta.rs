//! A stream of snapshots: every delta loads, a refused snapshot changes no state, and no counter is negative.

use crate::inputs::{Inputs, pairs, part};
use crate::shared::{BARE, Choices, LIMIT, load};
use pprofdiff::delta::{CUMULATIVE, DeltaComputer, DeltaOptions, OnReset};

pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let policies = [OnReset::Error, OnReset::Pass, OnReset::Clamp];
    let on_reset = policies[usize::from(choices.byte()) % 3];
    let cumulative = (choices.byte() & 1 == 1).then(|| vec!["samples".to_owned()]);
    let mut policy = DeltaOptions::default().with_on_reset(on_reset);
    policy.cumulative = cumulative;
    let mut stream = DeltaComputer::new(policy.clone());
    let n = 2 + usize::from(choices.byte()) % 3;
    for (i, part) in choices.parts(n).into_iter().enumerate() {
        // A part that does not load is skipped. Each accepted snapshot is also sent twice: the second delta must be
        // zero.
        let Some(snapshot) = load("snapshot", part) else { continue };
        let Ok(delta) = stream.update(&snapshot) else {
            assert!(i > 0 || snapshot.is_diff() || stream_refuses(&snapshot, &policy), "a first snapshot is refused");
            continue;
        };
        assert!(delta.samples <= snapshot.n_samples());
        let bytes = delta.to_bytes(&BARE).unwrap_or_default();
        let treatments = delta.treatments.clone();
        let written = pprofdiff::from_bytes("delta", &bytes, &LIMIT);
        let written = written.unwrap_or_else(|e| panic!("a delta does not load: {e}"));
        assert_eq!(written.sample_types().len(), treatments.len());
        let again = stream.update(&snapshot).unwrap_or_else(|e| panic!("a snapshot goes down from itself: {e}"));
        assert!(again.reset.is_none(), "a snapshot is a reset of itself");
        let bytes = again.to_bytes(&BARE).unwrap_or_default();
        let nothing = pprofdiff::from_bytes("delta", &bytes, &LIMIT).unwrap_or_else(|e| panic!("{e}"));
        for (t, treatment) in treatments.iter().enumerate().filter(|(_, t)| t.cumulative) {
            assert_eq!(nothing.total(t), Some(0), "{} grew by nothing", treatment.sample_type);
        }
    }
}

/// Returns streams of two and three snapshots.
pub fn seeds() -> Inputs {
    let mut seeds = Vec::new();
    for (name, [base, new]) in pairs() {
        seeds.push((format!("{name}-clamp"), [&[2, 0, 1], &*part(&new), &part(&base), &new].concat()));
        seeds.push((name, [&[0, 0, 0], &*part(&base), &new].concat()));
    }
    seeds
}

/// Column names in the policy must occur. Without them, at least one known name must occur.
fn stream_refuses(snapshot: &pprofdiff::Profile, policy: &DeltaOptions) -> bool {
    let known_types: Vec<_> = CUMULATIVE.iter().map(|&name| name.to_owned()).collect();
    let names = policy.cumulative.as_deref().unwrap_or(&known_types);
    snapshot.sample_types().iter().all(|(kind, _)| !names.contains(kind))
}
