//! Inflates zstd without C code, with the crate ruzstd. Builds without a C compiler use it, such as the build for
//! browsers.
//!
//! ruzstd reads a single frame and leaves some checks to its caller. This module reads consecutive frames, skips
//! skippable frames, and checks the declared size and checksum. It and the C library may treat damaged frames without a
//! checksum differently; the tests below describe the known differences.
//!
//! Memory use is bounded. A frame is inflated block by block, and no block exceeds 128 KiB. No memory is reserved for a
//! window size that a frame merely declares: each frame has its own decoder, whose buffer grows with the inflated data.
//! A reused decoder would reserve the whole window.
//!
//! The feature `ruzstd` has no effect together with the feature `zstd`, which is faster.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest supported window, as in C (`ZSTD_d_windowLogMax`).
const MAX_WINDOW: u64 = 128 << 20;
/// The first four bytes of a frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The reason why data cannot be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// The data is damaged or truncated.
    Damaged,
    /// A frame needs a window of more than 128 MiB.
    Window,
}

/// A reader that inflates all frames of an input.
pub(super) struct Decoder<'i> {
    input: &'i mut dyn BufRead,
    frame: Option<ZstdFrame>,
    /// The reason for the failure, if [`Read::read`] has failed.
    pub problem: Problem,
}

struct ZstdFrame {
    decoder: FrameDecoder,
    /// The inflated size in the frame's header, if present.
    claimed: Option<u64>,
    has_checksum: bool,
    inflated: u64,
}

impl<'i> Decoder<'i> {
    pub(super) fn new(input: &'i mut dyn BufRead) -> Decoder<'i> {
        Decoder { input, frame: None, problem: Problem::Damaged }
    }

    /// Reads the header of the next frame, or skips the frame if it is skippable.
    fn next(&mut self) -> Result<(), Problem> {
        let mut magic = [0; 4];
        self.input.read_exact(&mut magic).map_err(damaged)?;
        if matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
            let mut len = [0; 4];
            self.input.read_exact(&mut len).map_err(damaged)?;
            let len = u64::from(u32::from_le_bytes(len));
            let skipped = io::copy(&mut (&mut *self.input).take(len), &mut io::sink()).map_err(damaged)?;
            return if skipped == len { Ok(()) } else { Err(Problem::Damaged) };
        }
        let mut descriptor = [0];
        self.input.read_exact(&mut descriptor).map_err(damaged)?;
        let [flags] = descriptor;
        // Flag 8 is reserved, and ruzstd does not check it.
        if magic != MAGIC || flags & 8 != 0 {
            return Err(Problem::Damaged);
        }
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        decoder.init(magic.chain(&descriptor[..]).chain(&mut *self.input)).map_err(problem)?;
        // The size is present if its length bits are set, or if the frame is a single segment.
        let claimed = (flags >> 6 != 0 || flags & 0x20 != 0).then(|| decoder.content_size());
        self.frame = Some(ZstdFrame { decoder, claimed, has_checksum: flags & 4 != 0, inflated: 0 });
        Ok(())
    }

    /// Inflates a part of the frame. Returns 0 at its end.
    fn inflate_frame(frame: &mut ZstdFrame, input: &mut dyn BufRead, out: &mut [u8]) -> Result<usize, Problem> {
        while frame.decoder.can_collect() == 0 && !frame.decoder.is_finished() {
            frame.decoder.decode_blocks(&mut *input, BlockDecodingStrategy::UptoBlocks(1)).map_err(problem)?;
        }
        let n = frame.decoder.read(out).map_err(damaged)?;
        frame.inflated += n as u64;
        if n == 0 {
            let (declared, calculated) =
                (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
            if frame.claimed.is_some_and(|size| size != frame.inflated)
                || (frame.has_checksum && declared != calculated)
            {
                return Err(Problem::Damaged);
            }
        }
        Ok(n)
    }

    fn inflate(&mut self, out: &mut [u8]) -> Result<usize, Problem> {
        loop {
            if let Some(frame) = &mut self.frame {
                match Decoder::inflate_frame(frame, self.input, out)? {
                    0 => self.frame = None,
                    n => return Ok(n),
                }
            } else if self.input.fill_buf().map_err(damaged)?.is_empty() {
                return Ok(0);
            } else {
                self.next()?;
            }
        }
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        self.inflate(out).map_err(|problem| {
            self.problem = problem;
            io::Error::from(io::ErrorKind::InvalidData)
        })
    }
}

fn damaged(_: io::Error) -> Problem {
    Problem::Damaged
}

fn problem(error: FrameDecoderError) -> Problem {
    use FrameDecoderError as E;
    match error {
        E::WindowSizeTooBig { .. } | E::FrameHeaderError(FrameHeaderError::WindowTooBig { .. }) => Problem::Window,
        _ => Problem::Damaged,
    }
}

// The C library serves as the reference.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Cursor, Read};

    use super::{Decoder, Problem};

    fn in_rust(packed: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut input = packed;
        let (mut decoder, mut out) = (Decoder::new(&mut input), Vec::new());
        // Bound the output, because mutated data may inflate to gigabytes.
        match (&mut decoder).take(64 << 20).read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(_) => Err(decoder.problem),
        }
    }

    fn in_c(packed: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
        decoder.take(64 << 20).read_to_end(&mut out).is_ok().then_some(out)
    }

    /// Returns numbers as text, with repetitions from farther and farther away.
    fn message(n: u32) -> Vec<u8> {
        let text = |i: u32| i.wrapping_mul(2_654_435_761).to_string().into_bytes();
        (0..n).flat_map(|i| text(if i % 5 == 0 { i / 7 } else { i })).collect()
    }

    /// Returns a frame with or without a checksum, and with or without its inflated size.
    fn packed(message: &[u8], level: i32, checksum: bool, size: bool) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
        encoder.include_checksum(checksum).unwrap();
        encoder.set_pledged_src_size(size.then_some(message.len() as u64)).unwrap();
        std::io::copy(&mut Cursor::new(message), &mut encoder).unwrap();
        encoder.finish().unwrap()
    }

    fn frames() -> Vec<(Vec<u8>, Vec<u8>)> {
        let messages = [Vec::new(), vec![7], vec![b'a'; 1 << 20], message(500), message(60_000)];
        let mut frames = Vec::new();
        for message in messages {
            for (level, checksum, size) in [(-5, true, false), (1, false, true), (3, true, true), (19, false, false)] {
                frames.push((packed(&message, level, checksum, size), message.clone()));
            }
        }
        frames
    }

    #[test]
    fn frames_compressed_by_c_are_inflated() {
        let skipped = [&[0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = frames();
        for (packed, message) in &frames {
            assert!(in_rust(packed).as_ref() == Ok(message), "{} bytes", message.len());
            let several = [&skipped[..], packed, &skipped, &skipped, packed].concat();
            assert!(in_rust(&several).is_ok_and(|out| out == message.repeat(2)), "{} bytes twice", message.len());
            for cut in [1, 2, 3, 4, 5, packed.len() / 2].into_iter().filter(|&n| n < packed.len()) {
                assert_eq!(in_rust(&packed[..packed.len() - cut]), Err(Problem::Damaged), "without {cut} bytes");
            }
            assert_eq!(in_rust(&[packed, &b"x"[..]].concat()), Err(Problem::Damaged));
        }
        assert_eq!(in_rust(&skipped), Ok(Vec::new()));
        assert_eq!(in_rust(&skipped[..9]), Err(Problem::Damaged));
    }

    /// Checks the size in the header, the checksum, and the reserved bit.
    #[test]
    fn declared_size_checksum_and_reserved_bit_are_checked() {
        let message = message(500);
        let good = packed(&message, 3, true, true);
        let last = good.len() - 1;
        // The size follows the magic number and the flags. There is no window field, because the data is small.
        for (index, bit) in [(4, 8), (5, 1), (last, 1), (last - 3, 128)] {
            let mut bad = good.clone();
            bad[index] ^= bit;
            assert_eq!((in_rust(&bad), in_c(&bad)), (Err(Problem::Damaged), None), "byte {index}");
        }
    }

    #[test]
    fn window_size_is_limited_and_no_memory_is_reserved() {
        let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
        // 2^27 bytes (128 MiB), an eighth more, and the maximum that the byte can express.
        assert_eq!((in_rust(&frame(17 << 3)), in_c(&frame(17 << 3))), (Ok(Vec::new()), Some(Vec::new())));
        for window in [17 << 3 | 1, 18 << 3, 255] {
            assert_eq!((in_rust(&frame(window)), in_c(&frame(window))), (Err(Problem::Window), None), "{window}");
        }
        // A frame with a single segment, whose window equals its size.
        let mut large = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1u64 << 40).to_le_bytes(), &[1, 0, 0]].concat();
        assert_eq!((in_rust(&large), in_c(&large)), (Err(Problem::Window), None));
        large[5..13].copy_from_slice(&(100u64 << 20).to_le_bytes());
        // C does not check the size if the last block is empty.
        assert_eq!(in_rust(&large), Err(Problem::Damaged));
    }

    /// Checks that no mutation causes a panic, and that frames with a checksum inflate to the same data if both
    /// libraries accept them. Frames without a checksum may differ: with damaged literals, C does not check where their
    /// four streams end, and ruzstd does not check the number of literals in each stream. `PPROFDIFF_MUTATIONS` sets
    /// the number of mutations per frame.
    #[test]
    fn mutated_frames_are_inflated_as_in_c_or_rejected() {
        let n = std::env::var("PPROFDIFF_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        // The numbers of inputs that were accepted by both, by C alone, by Rust alone, and by neither.
        let mut counts = [0; 4];
        for (packed, _) in frames().into_iter().filter(|(packed, _)| packed.len() < 20_000) {
            for _ in 0..n {
                let mut bytes = packed.clone();
                for _ in 0..=random(3) {
                    // Half of the mutations are near the beginning, where the headers are.
                    let below = if random(2) == 0 { bytes.len().min(40) } else { bytes.len() };
                    let index = random(below);
                    match random(4) {
                        0 => bytes[index] = random(256) as u8,
                        1 => drop(bytes.remove(index)),
                        2 => bytes.insert(index, random(256) as u8),
                        _ => bytes[index] ^= 1 << random(8),
                    }
                }
                let (rust, c) = (in_rust(&bytes), in_c(&bytes));
                counts[usize::from(rust.is_err()) + 2 * usize::from(c.is_none())] += 1;
                if let (Ok(rust), Some(c), true) = (rust, c, bytes[4] & 4 != 0) {
                    assert!(rust == c, "{bytes:02x?}");
                }
            }
        }
        println!("accepted by both, by C alone, by Rust alone, by none: {counts:?}");
        assert!(counts[0] > 0 && counts[3] > 0);
    }
}
