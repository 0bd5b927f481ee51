//! CPU profiles of gperftools, and of Java in the same form: words of 32 or 64 bits, in either order of bytes.
//!
//! ```text
//! 0, 3, 0 (1: Java), microseconds between samples, 0
//! count, depth, address of the leaf, ...      for each stack
//! 0, 1, 0
//! ```
//!
//! Then the list of mappings as text; of Java, what each address is.
//!
//! As pprof: a second frame that nearly all stacks have is the signal handler's, and goes, twice at most; all addresses
//! but the leaf's are what calls return to. Not as pprof: a file that ends inside a stack is refused, where pprof takes
//! zeros for what is missing of words of 64 bits.

use super::super::InputFormat;
use super::{Addresses, Head, Lines, Sink, Stack, java};
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::random::HashMap;

pub(in crate::format) const GPERFTOOLS_CPU: InputFormat = InputFormat {
    name: "gperftools-cpu",
    about: "a CPU profile of gperftools",
    has_times: false,
    has_events: false,
    recognises: |head| header(head).is_some(),
    read: |name, data, _| read(name, &data),
};

/// How words are written: bytes of each, and whether the lowest comes first.
#[derive(Clone, Copy)]
struct Words {
    size: usize,
    little: bool,
}

impl Words {
    /// Takes a word off the front.
    fn take(self, data: &mut &[u8]) -> Option<u64> {
        let (word, rest) = data.split_at_checked(self.size)?;
        *data = rest;
        let place = |v: u64, &b: &u8| v << 8 | u64::from(b);
        Some(if self.little { word.iter().rev().fold(0, place) } else { word.iter().fold(0, place) })
    }
}

struct Header {
    words: Words,
    is_java: bool,
    /// Between two samples.
    microseconds: u64,
}

fn header(data: &[u8]) -> Option<Header> {
    let forms = [(4, true), (4, false), (8, true), (8, false)].map(|(size, little)| Words { size, little });
    forms.into_iter().find_map(|words| {
        let mut rest = data;
        let head: Option<Vec<u64>> = (0..5).map(|_| words.take(&mut rest)).collect();
        match head?[..] {
            [0, 3, java @ (0 | 1), microseconds, 0] if microseconds > 0 => {
                Some(Header { words, is_java: java == 1, microseconds })
            }
            _ => None,
        }
    })
}

fn read(name: &str, data: &[u8]) -> Result<Profile> {
    let header = header(data).ok_or_else(|| {
        Error::malformed("this is no CPU profile of gperftools, which begins with the words 0, 3, 0, PERIOD, 0").at(0)
    })?;
    let period = i64::try_from(header.microseconds).ok().and_then(|us| us.checked_mul(1000));
    let period = period.ok_or_else(|| Error::malformed("the period is more nanoseconds than an int64 holds").at(0))?;
    let head = Head::new(&[("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), period);
    let samples = Samples { data, words: header.words, period, adjust: !header.is_java, handlers: Vec::new() };
    if header.is_java {
        let end = samples.each(&mut |_| Ok(()))?;
        return java::read(name, &head, Lines::after(data, end), |sink| samples.each(sink).map(|_| ()));
    }
    let (samples, end) = samples.without_handlers()?;
    let mut profile = Addresses::new(&Head { leaf_may_be_twice: true, ..head }, Lines::after(data, end))?;
    samples.each(&mut |stack| profile.add(&stack))?;
    profile.build(name)
}

struct Samples<'d> {
    data: &'d [u8],
    words: Words,
    period: i64,
    /// All addresses but the leaf's become one less.
    adjust: bool,
    /// Second frames to drop, one after the other.
    handlers: Vec<u64>,
}

impl Samples<'_> {
    /// Gives all stacks, and returns where what follows them begins.
    fn each(&self, sink: &mut Sink<'_>) -> Result<usize> {
        let mut rest = &self.data[5 * self.words.size..];
        let mut stack = Vec::new();
        let mut index = 0u64;
        while !rest.is_empty() {
            let at = self.data.len() - rest.len();
            let place = |e: Error| e.in_record(|| format!("sample {index}")).at(at);
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
            sink(Stack { addresses: &stack, values: &values, ..Stack::default() }).map_err(place)?;
            index += 1;
        }
        Ok(self.data.len() - rest.len())
    }

    /// Finds the frames of the signal handler, and where the samples end.
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
            // One of 32 may be another. Two of them can't be as common but where there are no stacks.
            let Some((&handler, _)) = seconds.iter().find(|&(_, &count)| count >= n - n / 32) else { break };
            self.handlers.push(handler);
        }
        Ok((self, end))
    }
}
