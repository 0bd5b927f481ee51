//! The lines of text formats, with their numbers and offsets for errors.

use pprofdiff_profile::Result;
use pprofdiff_profile::cancellation::ByteCheckpointer;

/// Returns the lines with white space trimmed at their ends, each with its offset.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let (mut offset, mut pace) = (0, ByteCheckpointer::default());
    let lines = text.split_inclusive(|&b| b == b'\n').map(move |line| {
        offset += line.len();
        pace.left(text.len() - offset);
        (offset - line.len(), line.trim_ascii_end())
    });
    // Some editors write a byte order mark first.
    lines.map(|(offset, line)| (offset, line.strip_prefix(b"\xef\xbb\xbf").filter(|_| offset == 0).unwrap_or(line)))
}

/// Calls `f` with the number and the text of each line. Its errors get the line number and the offset of the line.
pub fn each_line<'t>(text: &'t [u8], mut f: impl FnMut(u64, &'t [u8]) -> Result<()>) -> Result<()> {
    for (number, (offset, line)) in (1u64..).zip(lines(text)) {
        f(number, line).map_err(|e| e.in_record(|| format!("line {number}")).at(offset))?;
    }
    Ok(())
}
