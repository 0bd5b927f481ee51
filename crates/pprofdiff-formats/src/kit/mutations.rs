//! Reproducible mutations of files, for tests of readers.

/// A small generator of pseudo-random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Returns the file with one to four changes: bytes replaced, inserted, removed or repeated, numbers made extreme, or the
/// end cut off.
pub fn mutate(bytes: &[u8], seed: u64) -> Vec<u8> {
    const EXTREMES: [&[u8]; 8] =
        [b"0", b"-1", b"9223372036854775807", b"18446744073709551616", b"0xffffffffffffffff", b"+", b"*", b"("];
    let mut random = Random(seed);
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() as u64 + 1) as usize;
        let length = (random.below(40) as usize).min(out.len() - at);
        match random.below(7) {
            0 => out.truncate(at),
            1 => drop(out.drain(at..at + length)),
            2 => {
                let copy = out[at..at + length].to_vec();
                let to = random.below(out.len() as u64 + 1) as usize;
                out.splice(to..to, copy);
            }
            3 => drop(out.splice(at..at, EXTREMES[random.below(8) as usize].iter().copied())),
            4 => {
                // Replaces a number.
                let digits = out[at..].iter().take_while(|b| b.is_ascii_digit()).count();
                out.splice(at..at + digits, EXTREMES[random.below(8) as usize].iter().copied());
            }
            5 if at < out.len() => out[at] ^= 1 << random.below(8),
            _ if at < out.len() => out[at] = random.next() as u8,
            _ => out.push(random.next() as u8),
        }
    }
    out
}
