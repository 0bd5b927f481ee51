//! What makes two samples the same, as a number of 122 bits that can't be forged.
//!
//! The same is what pprof's merge takes to be the same (and ours, see `profile/merge.rs`): locations by their mapping
//! (size, offset, build id or file, not where the kernel put it), their address relative to it, their lines with
//! functions, and whether they are folded; then the labels. Only these numbers are kept of a snapshot, so a match can't
//! be verified. What guards against crafted input instead:
//!
//! - Strings go through SipHash-2-4 with 128 bits of output, a pseudo-random function under a key that is drawn from
//!   the system's randomness for each [`Identity`] and never leaves it.
//! - Everything above strings (functions, mappings, locations, samples) is a sequence of numbers below p = 2^61 - 1,
//!   read as the coefficients of a polynomial, and its digest is that polynomial's value at a secret point; twice,
//!   modulo p at two independent points. Two different sequences of n numbers agree at no more than n points, so the
//!   chance that they get one digest is at most (n / p)^2, whatever they are, as long as their author does not know the
//!   points. Points and digests are seen nowhere: no order, no output, no count depends on them.
//!
//! For a million samples of 200 locations with labels, all pairs together, that is below 2^-65: less than the chance of
//! a memory error. Speed: a location of a stack costs two multiplications that wait for nothing.

use std::hash::BuildHasher;

use siphasher::sip128::SipHasher24;

use crate::profile::{Label, LabelValue, NONE, Numbers, Profile, Sample, StringId};
use crate::random::RandomState;

/// The modulus: a Mersenne prime, so that reducing is adding.
const P: u64 = (1 << 61) - 1;

/// Two numbers below 2^61, one for each point.
pub(super) type Digest = [u64; 2];

/// How many products of numbers below 2^61 fit a u128, with one to spare.
const BLOCK: usize = 32;

fn reduce(x: u128) -> u64 {
    let x = (x & u128::from(P)) + (x >> 61);
    let x = ((x & u128::from(P)) + (x >> 61)) as u64;
    if x >= P { x - P } else { x }
}

fn times(a: u64, b: u64) -> u64 {
    reduce(u128::from(a) * u128::from(b))
}

/// The powers 0 to [`BLOCK`] of two secret points.
struct Points([Digest; BLOCK + 1]);

impl Points {
    fn new(points: Digest) -> Points {
        let mut powers = [[1; 2]; BLOCK + 1];
        for i in 1..=BLOCK {
            powers[i] = [0, 1].map(|lane: usize| times(powers[i - 1][lane], points[lane]));
        }
        Points(powers)
    }

    fn begin(&self) -> Polynomial<'_> {
        Polynomial { powers: &self.0, block: [0; 2], at: 0, value: [0; 2] }
    }
}

/// A sequence of numbers on its way to its digest, block by block.
struct Polynomial<'k> {
    powers: &'k [Digest; BLOCK + 1],
    block: [u128; 2],
    at: usize,
    value: Digest,
}

impl Polynomial<'_> {
    #[inline(always)]
    fn digest(&mut self, a: Digest) {
        if self.at == BLOCK {
            self.end_block();
        }
        let powers = self.powers[self.at];
        self.block[0] += u128::from(a[0]) * u128::from(powers[0]);
        self.block[1] += u128::from(a[1]) * u128::from(powers[1]);
        self.at += 1;
    }

    fn end_block(&mut self) {
        for lane in 0..2 {
            let shifted = u128::from(self.value[lane]) * u128::from(self.powers[BLOCK][lane]);
            self.value[lane] = reduce(self.block[lane] + shifted);
        }
        (self.block, self.at) = ([0; 2], 0);
    }

    /// A number of up to 32 bits.
    fn small(&mut self, v: u32) {
        self.digest([u64::from(v); 2]);
    }

    fn int(&mut self, v: u64) {
        self.small(v as u32);
        self.small((v >> 32) as u32);
    }

    /// Ends the sequence with the lengths of its two parts, always in the last two places: sequences of different
    /// lengths differ there.
    fn end(mut self, first: u32, second: u32) -> Digest {
        self.end_block();
        for length in [first, second] {
            self.value = [0, 1].map(|lane: usize| {
                reduce(u128::from(self.value[lane]) * u128::from(self.powers[1][lane]) + u128::from(length))
            });
        }
        self.value
    }
}

/// A label as numbers: whether it is numeric, the key, then text, or number and unit.
type LabelNumbers = [Digest; 5];

/// The digests of the strings that a profile uses: there may be many times more of them in its table.
#[derive(Default)]
struct Strings {
    /// By string: its place in `digests`.
    places: Numbers,
    digests: Vec<Digest>,
}

impl Strings {
    fn begin(&mut self, p: &Profile) {
        self.digests.clear();
        self.places.reset(p.n_strings());
    }

    #[inline]
    fn digest(&mut self, text: &SipHasher24, p: &Profile, id: StringId) -> Digest {
        let place = self.places.get(id.0) as usize;
        if place == self.digests.len() {
            let h = text.hash(p.string(id));
            self.digests.push([h.h1 & P, h.h2 & P]);
        }
        self.digests[place]
    }
}

/// The keys, and the digests of everything in one profile that samples refer to.
pub(super) struct Identity {
    text: SipHasher24,
    records: Points,
    locations: Points,
    samples: Points,
    of_strings: Strings,
    of_mappings: Vec<Digest>,
    of_functions: Vec<Digest>,
    of_locations: Vec<Digest>,
    /// The labels of one sample.
    labels: Vec<Label>,
}

impl Identity {
    pub(super) fn new() -> Identity {
        // The standard library gives the system's randomness only through a keyed hash, of numbers here.
        let random = RandomState::new();
        let secret = SipHasher24::new_with_keys(random.hash_one(0), random.hash_one(1));
        let points = |level: u8| {
            let h = secret.hash(&[level]);
            Points::new([h.h1 % P, h.h2 % P])
        };
        let text = secret.hash(&[0]);
        Identity {
            records: points(1),
            locations: points(2),
            samples: points(3),
            text: SipHasher24::new_with_keys(text.h1, text.h2),
            of_strings: Strings::default(),
            of_mappings: Vec::new(),
            of_functions: Vec::new(),
            of_locations: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Takes the tables of a profile; from then on, samples are of this one.
    pub(super) fn read(&mut self, p: &Profile) {
        self.of_strings.begin(p);
        let Identity { text, of_strings, .. } = self;
        let mut string = |id: StringId| of_strings.digest(text, p, id);
        self.of_mappings.clear();
        self.of_mappings.extend((0..p.mappings().len() as u32).map(|m| {
            let (size, offset, name) = p.mapping_key(m);
            let mut numbers = self.records.begin();
            numbers.int(size);
            numbers.int(offset);
            numbers.digest(string(name));
            numbers.end(0, 0)
        }));
        let functions = p.functions();
        self.of_functions.clear();
        self.of_functions.extend((0..p.n_functions()).map(|f| {
            let mut numbers = self.records.begin();
            numbers.digest(string(functions.name[f]));
            numbers.digest(string(functions.system_name[f]));
            numbers.digest(string(functions.file[f]));
            numbers.int(functions.start_line[f] as u64);
            numbers.end(0, 0)
        }));
        let locations = p.locations();
        self.of_locations.clear();
        self.of_locations.extend((0..locations.len()).map(|l| {
            let mut numbers = self.locations.begin();
            let (mut mapping, mut address) = ([0; 2], locations.address[l]);
            if locations.mapping[l] != NONE {
                let m = locations.mapping[l] as usize;
                (mapping, address) = (self.of_mappings[m], address.wrapping_sub(p.mappings()[m].start));
            }
            numbers.digest(mapping);
            numbers.small(u32::from(locations.mapping[l] != NONE));
            numbers.int(address);
            numbers.small(u32::from(locations.folded[l]));
            let lines = locations.lines(l as u32);
            for line in lines.clone().map(|line| line as usize) {
                numbers.digest(self.of_functions[locations.line_function[line] as usize]);
                numbers.int(locations.line_number[line] as u64);
                numbers.int(locations.line_column[line] as u64);
            }
            numbers.end(lines.len() as u32, 0)
        }));
    }

    /// The digest of a sample of the profile that was read last.
    #[inline]
    pub(super) fn sample(&mut self, p: &Profile, sample: &Sample<'_>) -> Digest {
        let mut numbers = self.samples.begin();
        let mut n = 0u32;
        sample.for_each_location(|l| {
            numbers.digest(self.of_locations[l as usize]);
            n += 1;
        });
        self.labels.clear();
        self.labels.extend(sample.all_labels());
        let mut string = |id: StringId| self.of_strings.digest(&self.text, p, id);
        // Keys in any order that is the same for every snapshot; the values of one key stay in theirs.
        if self.labels.len() > 1 {
            self.labels.sort_by_key(|l| (matches!(l.value, LabelValue::Number(..)), string(l.key)));
        }
        for label in &self.labels {
            let key = string(label.key);
            let label: LabelNumbers = match label.value {
                LabelValue::Text(text) => [[0; 2], key, string(text), [0; 2], [0; 2]],
                LabelValue::Number(v, u) => [[1; 2], key, [v as u64 & 0xffff_ffff; 2], [v as u64 >> 32; 2], string(u)],
            };
            label.iter().for_each(|&d| numbers.digest(d));
        }
        numbers.end(n, self.labels.len() as u32)
    }
}
