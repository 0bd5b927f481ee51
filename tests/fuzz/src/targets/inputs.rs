//! Any bytes as each input format: a one-line error, or a profile that is written and read back with the same totals.

use crate::inputs::{Inputs, files, start_of};
use crate::shared::LIMIT;
use pprofdiff::input::InputFormat;
use pprofdiff::{LoadOptions, Profile, WriteOptions};

pub fn run(data: &[u8]) {
    let Some((selector, bytes)) = data.split_first() else { return };
    let formats: Vec<&InputFormat> = InputFormat::all().collect();
    // One additional number stands for no explicit format.
    let format = formats.get(usize::from(*selector) % (formats.len() + 1));
    let mut options = LIMIT.clone();
    if let Some(format) = format {
        options = options.with_input_format(format.name).unwrap_or_else(|e| panic!("{e}"));
    }
    let Some(profile) = read(bytes, &options) else { return };
    let written = profile.to_bytes(&WriteOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let again = read(&written, &LIMIT).unwrap_or_else(|| panic!("what is written is not read"));
    assert_eq!(profile.sample_types(), again.sample_types());
    for i in 0..profile.sample_types().len() {
        assert_eq!(profile.total(i), again.total(i), "{i}");
    }
}

/// Returns texts and files in many formats, as each format.
pub fn seeds() -> Inputs {
    const TEXTS: [&str; 6] = [
        "process 21:\"python t.py\";thread (22): worker;<module> (t.py:10);work (t.py:8) 6\n",
        "# austin: 3.7.0\n# mode: full\n\nP21;T0:22;/src/t.py:work:8 20084,1,-7\n",
        "tid:22;t.py:<module>:10;<GC> 6\ncomm-21/22;start_[k];main;f_[j] 6\n",
        "--- threadz 1 ---\n\n--- Thread 7f79 (name: main/1) stack: ---\n  PC: 0x40ab8f\n--- Memory map: ---\na=b\n4-8 $a\n",
        "--- heapz 1 ---\nformat = java\nresolution = bytes\n 7048 1 @ 0x3\n 0x3 a.B.c (B.java:1)\n",
        "heap profile: 1: 2 [3: 4] @ heap_v2/5\n1: 2 [3: 4] @ 0x6 0x7\nMAPPED_LIBRARIES:\n4-8 r-xp 1 8:1 9 /a.so\n",
    ];
    let corpus = crate::oracle::corpus();
    let files = ["legacy", "inputs"].into_iter().flat_map(|folder| files(&corpus.join(folder)));
    let texts = TEXTS.into_iter().map(|text| text.as_bytes().to_vec()).chain(files.map(|path| start_of(&path)));
    let formats = InputFormat::all().count() as u8;
    let as_each_format = |(i, text): (usize, Vec<u8>)| {
        (0..=formats).map(move |format| (format!("{i}-{format}"), [&[format], &*text].concat()))
    };
    texts.enumerate().flat_map(as_each_format).collect()
}

fn read(bytes: &[u8], options: &LoadOptions) -> Option<Profile> {
    match pprofdiff::from_bytes("in", bytes, options) {
        Ok(profile) => Some(profile),
        Err(e) => {
            assert!(!e.to_string().contains('\n'), "an error of several lines: {e}");
            None
        }
    }
}
