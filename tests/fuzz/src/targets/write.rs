//! A loaded profile that is written can be loaded again and is equal. Merging it again changes nothing.

use crate::inputs::{Inputs, profiles};
use crate::shared::{BARE, LIMIT, load};
use pprofdiff::{Compression, Profile, WriteOptions, merge};

pub fn run(data: &[u8]) {
    let Some(profile) = load("in", data) else { return };
    let bytes = |p: &Profile, options: &WriteOptions| p.to_bytes(options).unwrap_or_else(|e| panic!("{e}"));
    let again =
        |b: &[u8]| pprofdiff::from_bytes("again", b, &LIMIT).unwrap_or_else(|e| panic!("it does not load: {e}"));
    let bare = bytes(&profile, &BARE);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let packed = bytes(&profile, &WriteOptions::default().with_compression(compression));
        assert!(bytes(&again(&packed), &BARE) == bare, "packing changes the message");
    }
    let Ok(once) = merge(&[&profile]) else { return };
    let merged = bytes(&once, &BARE);
    again(&merged);
    let twice = merge(&[&again(&merged)]).unwrap_or_else(|e| panic!("what was merged does not merge: {e}"));
    assert!(bytes(&twice, &BARE) == merged, "merging a merged profile changes it");
    // Of several columns with one name, the first is kept, with a warning. Samples that are equal except for their sign
    // cancel, so the magnitude may shrink, but plain sums do not change.
    let types = profile.sample_types();
    let first = (0..types.len()).filter(|&i| types[..i].iter().all(|t| t.0 != types[i].0));
    for (merged, column) in first.enumerate() {
        let sum = |p: &Profile, column| p.samples().map(|s| s.value(column)).sum::<i64>();
        assert_eq!(sum(&profile, column), sum(&once, merged), "{:?} has another sum", types[column]);
    }
    if let Ok(both) = merge(&[&profile, &once]) {
        again(&bytes(&both, &BARE));
    }
}

/// Returns real profiles.
pub fn seeds() -> Inputs {
    profiles()
}
