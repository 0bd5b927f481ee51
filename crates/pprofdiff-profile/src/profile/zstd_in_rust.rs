//! Inflates zstd without C, by the crate ruzstd: for builds without a C compiler, as for browsers.
//!
//! That crate reads one frame and leaves some of what a frame says to its caller: here are the frames one after the
//! other, those that are skipped, and whether the size and the checksum are right. It is a little stricter than C, which
//! accepts some damaged frames that have no checksum. A frame is read block by block, and
//! no block inflates to more than 128 KiB. A window is not reserved for a frame that only claims to need it: each frame
//! has a decoder of its own, whose buffer grows with what it inflates to.
//!
//! The feature `ruzstd` does nothing beside the feature `zstd`, which is faster.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest window that is read, as in C (`ZSTD_d_windowLogMax`).
const MAX_WINDOW: u64 = 128 << 20;
/// The four bytes that a frame begins with.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Why data can't be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is damaged, or ends too early.
    Damaged,
    /// A frame needs a window of more than 128 MiB.
    Window,
}

/// All frames of an input, inflated.
pub(super) struct Decoder<'i> {
    input: &'i mut dyn BufRead,
    frame: Option<Frame>,
    /// Why [`Read::read`] failed, once it has.
    pub problem: Problem,
}

struct Frame {
    decoder: FrameDecoder,
    /// The size that its header claims, if it does.
    claimed: Option<u64>,
    has_checksum: bool,
    inflated: u64,
}

impl<'i> Decoder<'i> {
    pub(super) fn new(input: &'i mut dyn BufRead) -> Decoder<'i> {
        Decoder { input, frame: None, problem: Problem::Damaged }
    }

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
        // A bit that is reserved, which ruzstd passes over.
        if magic != MAGIC || flags & 8 != 0 {
            return Err(Problem::Damaged);
        }
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        decoder.init(magic.chain(&descriptor[..]).chain(&mut *self.input)).map_err(problem)?;
        // The size has two bits for its length, and with a single segment it has at least one byte.
        let claimed = (flags >> 6 != 0 || flags & 0x20 != 0).then(|| decoder.content_size());
        self.frame = Some(Frame { decoder, claimed, has_checksum: flags & 4 != 0, inflated: 0 });
        Ok(())
    }

    /// Inflates some of the frame; zero bytes at its end.
    fn some(frame: &mut Frame, input: &mut dyn BufRead, out: &mut [u8]) -> Result<usize, Problem> {
        while frame.decoder.can_collect() == 0 && !frame.decoder.is_finished() {
            frame.decoder.decode_blocks(&mut *input, BlockDecodingStrategy::UptoBlocks(1)).map_err(problem)?;
        }
        let n = frame.decoder.read(out).map_err(damaged)?;
        frame.inflated += n as u64;
        if n == 0 {
            let (said, is) = (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
            if frame.claimed.is_some_and(|size| size != frame.inflated) || (frame.has_checksum && said != is) {
                return Err(Problem::Damaged);
            }
        }
        Ok(n)
    }

    fn inflate(&mut self, out: &mut [u8]) -> Result<usize, Problem> {
        loop {
            if let Some(frame) = &mut self.frame {
                match Decoder::some(frame, self.input, out)? {
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

/// Judged by the reader in C.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Cursor, Read};

    use super::{Decoder, Problem};

    fn in_rust(packed: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut input = packed;
        let (mut decoder, mut out) = (Decoder::new(&mut input), Vec::new());
        // Mutations must not come to gigabytes.
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

    /// Numbers as texts, and the same again from further and further away.
    fn message(n: u32) -> Vec<u8> {
        let text = |i: u32| i.wrapping_mul(2_654_435_761).to_string().into_bytes();
        (0..n).flat_map(|i| text(if i % 5 == 0 { i / 7 } else { i })).collect()
    }

    /// A frame with a checksum or without, with the size that it inflates to or without.
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
    fn what_c_packs_is_inflated() {
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

    /// The size that a header claims, the checksum, and the bit that is reserved.
    #[test]
    fn what_a_frame_says_is_checked() {
        let message = message(500);
        let good = packed(&message, 3, true, true);
        let last = good.len() - 1;
        // The size is behind the magic number, the flags and, as it is small, no window.
        for (at, bit) in [(4, 8), (5, 1), (last, 1), (last - 3, 128)] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            assert_eq!((in_rust(&bad), in_c(&bad)), (Err(Problem::Damaged), None), "byte {at}");
        }
    }

    #[test]
    fn a_window_is_bounded_and_not_reserved() {
        let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
        // 2^27 bytes, which are 128 MiB; an eighth more; all that the byte can say.
        assert_eq!((in_rust(&frame(17 << 3)), in_c(&frame(17 << 3))), (Ok(Vec::new()), Some(Vec::new())));
        for window in [17 << 3 | 1, 18 << 3, 255] {
            assert_eq!((in_rust(&frame(window)), in_c(&frame(window))), (Err(Problem::Window), None), "{window}");
        }
        // A frame of one segment, whose window is its size.
        let mut large = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1u64 << 40).to_le_bytes(), &[1, 0, 0]].concat();
        assert_eq!((in_rust(&large), in_c(&large)), (Err(Problem::Window), None));
        large[5..13].copy_from_slice(&(100u64 << 20).to_le_bytes());
        // C does not look at the size before an empty last block.
        assert_eq!(in_rust(&large), Err(Problem::Damaged));
    }

    /// Nothing panics, and what both accept of a frame with a checksum is the same. Without one, damaged literals may come
    /// to something else in C: it does not ask whether their four streams end where they should, ruzstd not how many
    /// literals each of them has. `PPROFDIFF_MUTATIONS` says how many of each frame.
    #[test]
    fn mutations_are_inflated_as_in_c_or_refused() {
        let n = std::env::var("PPROFDIFF_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        // Accepted by both, by C alone, by Rust alone, by none.
        let mut counts = [0; 4];
        for (packed, _) in frames().into_iter().filter(|(packed, _)| packed.len() < 20_000) {
            for _ in 0..n {
                let mut bytes = packed.clone();
                for _ in 0..=random(3) {
                    // Often near the beginning, where the headers are.
                    let below = if random(2) == 0 { bytes.len().min(40) } else { bytes.len() };
                    let at = random(below);
                    match random(4) {
                        0 => bytes[at] = random(256) as u8,
                        1 => drop(bytes.remove(at)),
                        2 => bytes.insert(at, random(256) as u8),
                        _ => bytes[at] ^= 1 << random(8),
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
