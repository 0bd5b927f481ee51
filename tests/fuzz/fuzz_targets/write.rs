//! What was loaded and written loads again, and is the same; merging and merging again change nothing.

#![no_main]

use pprofdiff::{Compression, Profile, WriteOptions, merge};
use pprofdiff_fuzz::{BARE, LIMIT, load};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(profile) = load("in", data) else { return };
    let bytes = |p: &Profile, options: &WriteOptions| p.to_bytes(options).unwrap_or_else(|e| panic!("{e}"));
    let again = |b: &[u8]| Profile::from_bytes("again", b, &LIMIT).unwrap_or_else(|e| panic!("it does not load: {e}"));
    let bare = bytes(&profile, &BARE);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let packed = bytes(&profile, &WriteOptions { compression, level: None });
        assert!(bytes(&again(&packed), &BARE) == bare, "packing changes the message");
    }
    let Ok(once) = merge(&[&profile]) else { return };
    let merged = bytes(&once, &BARE);
    again(&merged);
    let twice = merge(&[&again(&merged)]).unwrap_or_else(|e| panic!("what was merged does not merge: {e}"));
    assert!(bytes(&twice, &BARE) == merged, "merging a merged profile changes it");
    for (column, kind) in profile.sample_types().iter().enumerate() {
        // Samples that are equal but for their sign cancel, so the magnitude may only shrink; plain sums stay.
        let sum = |p: &Profile| p.samples().map(|s| s.value(column)).sum::<i64>();
        assert_eq!(sum(&profile), sum(&once), "{kind:?} has another sum");
    }
    if let Ok(both) = merge(&[&profile, &once]) {
        again(&bytes(&both, &BARE));
    }
});
