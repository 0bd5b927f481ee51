//! CPU profiles of gperftools, and of Java in the same form: words of 32 or 64 bits, in either byte order.
//!
//! ```text
//! 0, 3, 0 (1: Java), microseconds between samples, 0
//! count, depth, address of the leaf, ...      for each stack
//! 0, 1, 0
//! ```
//!
//! The list of mappings follows as text, or for Java the description of each address.
//!
//! If nearly all stacks have the same second frame, it belongs to the signal handler and is dropped, at most twice, as
//! in pprof. All addresses except the leaf are return addresses. Unlike pprof, the reader refuses a file that ends
//! inside a stack; pprof reads missing words of 64 bits as zeros.

use super::{AddressStack, Addresses, LegacyHead, Sink, TextLines, java};
use crate::InputFormat;
use pprofdiff_profile::Profile;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, Result};

pub(crate) const GPERFTOOLS_CPU: InputFormat = InputFormat {
    name: "gperftools-cpu",
    about: "a CPU profile of gperftools",
    has_times: false,
    has_events: false,
    recognises: |head| header(head).is_some(),
    read: |name, data, _| read(name, &data),
};

/// The encoding of words: the number of bytes, and whether the lowest byte comes first.
#[derive(Clone, Copy)]
struct Words {
    size: usize,
    little: bool,
}

impl Words {
    /// Removes a word from the front of the data.
    fn take(self, data: &mut &[u8]) -> Option<u64> {
        let (word, rest) = data.split_at_checked(self.size)?;
        *data = rest;
        let place = |v: u64, &b: &u8| v << 8 | u64::from(b);
        Some(if self.little { word.iter().rev().fold(0, place) } else { word.iter().fold(0, place) })
    }
}

struct CpuHeader {
    words: Words,
    is_java: bool,
    /// The sampling period in microseconds.
    microseconds: u64,
}

/// Parses the header in the first encoding of words that fits, or returns `None` if none fits.
fn header(data: &[u8]) -> Option<CpuHeader> {
    let forms = [(4, true), (4, false), (8, true), (8, false)].map(|(size, little)| Words { size, little });
    forms.into_iter().find_map(|words| {
        let mut rest = data;
        let head: Option<Vec<u64>> = (0..5).map(|_| words.take(&mut rest)).collect();
        match head?[..] {
            [0, 3, java @ (0 | 1), microseconds, 0] if microseconds > 0 => {
                Some(CpuHeader { words, is_java: java == 1, microseconds })
            }
            _ => None,
        }
    })
}

fn read(name: &str, data: &[u8]) -> Result<Profile> {
    let header = header(data).ok_or_else(|| {
        Error::malformed("this is not a CPU profile of gperftools: it must begin with the words 0, 3, 0, PERIOD, 0")
            .at(0)
    })?;
    let period = i64::try_from(header.microseconds).ok().and_then(|us| us.checked_mul(1000));
    let period = period.ok_or_else(|| Error::malformed("the period is more nanoseconds than an int64 holds").at(0))?;
    let head = LegacyHead::new(&[("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), period);
    let samples = CpuSamples { data, words: header.words, period, adjust: !header.is_java, handlers: Vec::new() };
    if header.is_java {
        let end = samples.each(&mut |_| Ok(()))?;
        return java::read(name, &head, TextLines::after(data, end), |sink| samples.each(sink).map(|_| ()));
    }
    let (samples, end) = samples.without_handlers()?;
    let mut profile = Addresses::new(&LegacyHead { leaf_may_be_twice: true, ..head }, TextLines::after(data, end))?;
    samples.each(&mut |stack| profile.add(&stack))?;
    profile.build(name)
}

struct CpuSamples<'d> {
    data: &'d [u8],
    words: Words,
    /// The sampling period in nanoseconds.
    period: i64,
    /// True if one is subtracted from all addresses except the leaf.
    adjust: bool,
    /// The addresses of frames to drop if they are the second frame of a stack, one after the other.
    handlers: Vec<u64>,
}

impl CpuSamples<'_> {
    /// Passes all stacks, without the frames of the signal handler, to the sink. Returns the offset after the last
    /// sample and the mark that ends the samples.
    fn each(&self, sink: &mut Sink<'_>) -> Result<usize> {
        let mut rest = &self.data[5 * self.words.size..];
        let mut stack = Vec::new();
        let mut index = 0u64;
        while !rest.is_empty() {
            let offset = self.data.len() - rest.len();
            let place = |e: Error| e.in_record(|| format!("sample {index}")).at(offset);
            let cut_off = || place(Error::malformed("the data ends inside a sample; is the profile truncated?"));
            let count = self.words.take(&mut rest).ok_or_else(cut_off)?;
            let depth = self.words.take(&mut rest).ok_or_else(cut_off)?;
            if depth > (rest.len() / self.words.size) as u64 {
                let words = rest.len() / self.words.size;
                let detail = format!("it has {depth} addresses, but {words} words are left; is the profile truncated?");
                return Err(place(Error::malformed(detail)));
            }
            stack.clear();
            for i in 0..depth {
                let address = self.words.take(&mut rest).ok_or_else(cut_off)?;
                stack.push(address.wrapping_sub(u64::from(self.adjust && i > 0)));
            }
            if count == 0 && stack == [0] {
                break;
            }
            for &handler in &self.handlers {
                if stack.get(1) == Some(&handler) {
                    stack.remove(1);
                }
            }
            let values = i64::try_from(count).ok().and_then(|n| Some([n, n.checked_mul(self.period)?]));
            let values =
                values.ok_or_else(|| place(Error::malformed("its count is more nanoseconds than an int64 holds")))?;
            sink(AddressStack { addresses: &stack, values: &values, ..AddressStack::default() }).map_err(place)?;
            index += 1;
        }
        Ok(self.data.len() - rest.len())
    }

    /// Finds the frames of the signal handler, and the end of the samples.
    fn without_handlers(mut self) -> Result<(Self, usize)> {
        let mut end = 0;
        for _ in 0..2 {
            let (mut n, mut seconds) = (0u64, HashMap::<u64, u64>::default());
            end = self.each(&mut |stack| {
                n += 1;
                if let Some(&second) = stack.addresses.get(1) {
                    *seconds.entry(second).or_default() += 1;
                }
                Ok(())
            })?;
            // One of 32 stacks may have another second frame. No two frames can both be that common, so the order of
            // the search does not matter.
            let Some((&handler, _)) = seconds.iter().find(|&(_, &count)| count >= n - n / 32) else { break };
            self.handlers.push(handler);
        }
        Ok((self, end))
    }
}
