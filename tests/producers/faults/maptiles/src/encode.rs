//! Compresses pictures: predicts each line from its neighbours, then encodes runs.

use crate::raster::Picture;

#[inline(never)]
pub fn encode(picture: &Picture) -> Vec<u8> {
    let mut lines = Vec::with_capacity(picture.pixels.len());
    let mut above = vec![0; picture.size];
    for line in picture.pixels.chunks_exact(picture.size) {
        lines.extend(filter(line, &above));
        above.copy_from_slice(line);
    }
    let mut packed = pack(&lines);
    packed.extend(sum(&packed).to_be_bytes());
    packed
}

/// Returns the smallest differences of three kinds of predictions.
#[inline(never)]
fn filter(line: &[u8], above: &[u8]) -> Vec<u8> {
    let before = |i: usize| if i == 0 { 0 } else { line[i - 1] };
    let corner = |i: usize| if i == 0 { 0 } else { above[i - 1] };
    let left: Vec<u8> = (0..line.len()).map(|i| line[i].wrapping_sub(before(i))).collect();
    let up: Vec<u8> = (0..line.len()).map(|i| line[i].wrapping_sub(above[i])).collect();
    let near = |i: usize| line[i].wrapping_sub(nearest(before(i), above[i], corner(i)));
    let near: Vec<u8> = (0..line.len()).map(near).collect();
    [left, up, near].into_iter().min_by_key(|line| weight(line)).unwrap_or_default()
}

/// Of left, above and the corner between them, what lies nearest to left + above - corner (Paeth 1991).
#[inline(never)]
fn nearest(left: u8, above: u8, corner: u8) -> u8 {
    let wanted = i32::from(left) + i32::from(above) - i32::from(corner);
    let away = |value: u8| (wanted - i32::from(value)).abs();
    if away(left) <= away(above) && away(left) <= away(corner) {
        left
    } else if away(above) <= away(corner) {
        above
    } else {
        corner
    }
}

fn weight(line: &[u8]) -> u32 {
    line.iter().map(|&b| u32::from(b.min(0u8.wrapping_sub(b)))).sum()
}

/// Encodes runs of equal bytes as a count and the byte.
#[inline(never)]
fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take(255).take_while(|&&b| b == first).count();
        packed.extend([run as u8, first]);
        rest = &rest[run..];
    }
    packed
}

/// Computes a checksum, bit by bit.
#[inline(never)]
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}
