//! Any bytes as each input format: a one-line error, or a profile that is written and read back with the same totals.

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

fn read(bytes: &[u8], options: &LoadOptions) -> Option<Profile> {
    match pprofdiff::from_bytes("in", bytes, options) {
        Ok(profile) => Some(profile),
        Err(e) => {
            assert!(!e.to_string().contains('\n'), "an error of several lines: {e}");
            None
        }
    }
}
