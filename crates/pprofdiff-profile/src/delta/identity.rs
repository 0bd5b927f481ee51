//! Computes the identity of a sample as a number of 122 bits that can't be forged.
//!
//! Two samples are the same if pprof's merge (and ours, see `profile/merge.rs`) treats them as the same. The identity
//! covers the locations and the set of labels. A location has its mapping (size, offset, build id or file, but not its
//! load address), its address relative to the mapping, its lines with functions, and a flag for folding. Only digests
//! are kept of a snapshot, so a match can't be verified. These measures protect against crafted input:
//!
//! - Strings are hashed with SipHash-2-4 to 128 bits. It is a pseudo-random function; its key is random for each
//!   [`SampleIdentity`] and never leaves it.
//! - Everything above strings (functions, mappings, locations, label sets, samples) is a sequence of numbers of up to 61 bits. The
//!   numbers are the coefficients of a polynomial, and the digest is the polynomial's value modulo p = 2^61 - 1 at two
//!   independent secret points. Two different sequences of n numbers agree at no more than n points. The chance of
//!   equal digests is therefore at most (n / p)^2 for any sequences, as long as their author does not know the points.
//!   Points and digests are never visible: no order, output or count depends on them.
//!
//! For a million samples with 200 locations and labels, the chance over all pairs is below 2^-65, less than the chance
//! of a memory error. Hashing is fast: each location of a stack costs two independent multiplications.

use std::hash::BuildHasher;

use siphasher::sip128::SipHasher24;

use crate::profile::{Label, LabelCache, LabelValue, NONE, Numbers, Profile, Sample, StringId};
use crate::random::RandomState;

/// The modulus. It is a Mersenne prime, so a reduction needs only additions.
const MODULUS: u64 = (1 << 61) - 1;

/// Two numbers below 2^61, one for each secret point.
pub(super) type Digest = [u64; 2];

/// The number of products that are added up before a reduction. A u128 holds them and one more, because each product is
/// below 2^122.
const BLOCK_NUMBERS: usize = 32;

fn reduce(x: u128) -> u64 {
    let x = (x & u128::from(MODULUS)) + (x >> 61);
    let x = ((x & u128::from(MODULUS)) + (x >> 61)) as u64;
    if x >= MODULUS { x - MODULUS } else { x }
}

fn times(a: u64, b: u64) -> u64 {
    reduce(u128::from(a) * u128::from(b))
}

/// The powers 0 to [`BLOCK_NUMBERS`] of two secret points.
struct SecretPoints([Digest; BLOCK_NUMBERS + 1]);

impl SecretPoints {
    fn new(points: Digest) -> SecretPoints {
        let mut powers = [[1; 2]; BLOCK_NUMBERS + 1];
        for i in 1..=BLOCK_NUMBERS {
            powers[i] = [0, 1].map(|lane: usize| times(powers[i - 1][lane], points[lane]));
        }
        SecretPoints(powers)
    }

    fn begin(&self) -> Polynomial<'_> {
        Polynomial { powers: &self.0, block: [0; 2], position: 0, value: [0; 2] }
    }
}

/// A sequence of numbers whose digest is being computed, block by block.
struct Polynomial<'k> {
    powers: &'k [Digest; BLOCK_NUMBERS + 1],
    block: [u128; 2],
    position: usize,
    value: Digest,
}

impl Polynomial<'_> {
    #[inline(always)]
    fn digest(&mut self, a: Digest) {
        if self.position == BLOCK_NUMBERS {
            self.end_block();
        }
        let powers = self.powers[self.position];
        self.block[0] += u128::from(a[0]) * u128::from(powers[0]);
        self.block[1] += u128::from(a[1]) * u128::from(powers[1]);
        self.position += 1;
    }

    /// Adds the digests of a stack's locations. Must come first. It does the same as [`Polynomial::digest`] for each
    /// location, in half the time: this loop keeps the sums of a block in registers.
    #[inline]
    fn locations(&mut self, digests: &[Digest], stack: &[u32]) {
        for block in stack.chunks(BLOCK_NUMBERS) {
            let mut sums = [0; 2];
            for (&location, powers) in block.iter().zip(self.powers) {
                let digest = digests[location as usize];
                sums[0] += u128::from(digest[0]) * u128::from(powers[0]);
                sums[1] += u128::from(digest[1]) * u128::from(powers[1]);
            }
            self.block = sums;
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        for lane in 0..2 {
            let shifted = u128::from(self.value[lane]) * u128::from(self.powers[BLOCK_NUMBERS][lane]);
            self.value[lane] = reduce(self.block[lane] + shifted);
        }
        (self.block, self.position) = ([0; 2], 0);
    }

    /// Adds a number of up to 32 bits, the same for both points.
    fn small(&mut self, v: u32) {
        self.digest([u64::from(v); 2]);
    }

    fn int(&mut self, v: u64) {
        self.small(v as u32);
        self.small((v >> 32) as u32);
    }

    /// Ends the sequence with its length. The length is always the last number, so sequences of different lengths
    /// differ there.
    #[inline]
    fn end(mut self, length: u32) -> Digest {
        self.end_block();
        [0, 1].map(|lane: usize| {
            reduce(u128::from(self.value[lane]) * u128::from(self.powers[1][lane]) + u128::from(length))
        })
    }
}

/// A label as numbers: a flag for numeric labels, the key, then the text, or the two halves of the number and its unit.
type LabelNumbers = [Digest; 5];

/// The digests of the strings that a profile uses. The string table may be many times larger.
#[derive(Default)]
struct StringDigests {
    /// The index in `digests` of each string.
    indices: Numbers,
    digests: Vec<Digest>,
}

impl StringDigests {
    fn begin(&mut self, p: &Profile) {
        self.digests.clear();
        self.indices.reset(p.n_strings());
    }

    #[inline]
    fn digest(&mut self, text: &SipHasher24, p: &Profile, id: StringId) -> Digest {
        let index = self.indices.get(id.0) as usize;
        if index == self.digests.len() {
            let h = text.hash(p.string(id));
            self.digests.push([h.h1 & MODULUS, h.h2 & MODULUS]);
        }
        self.digests[index]
    }
}

/// The secret keys, and the digests of all data in a profile that samples refer to.
pub(super) struct SampleIdentity {
    text: SipHasher24,
    records: SecretPoints,
    locations: SecretPoints,
    samples: SecretPoints,
    label_sets: SecretPoints,
    string_digests: StringDigests,
    mapping_digests: Vec<Digest>,
    function_digests: Vec<Digest>,
    location_digests: Vec<Digest>,
    /// A buffer for the locations of one sample.
    stack: Vec<u32>,
    /// The labels of one sample.
    labels: Vec<Label>,
}

impl SampleIdentity {
    pub(super) fn new() -> SampleIdentity {
        // The standard library provides the system's randomness only through a keyed hash, so this hashes two numbers.
        let random = RandomState::new();
        let secret = SipHasher24::new_with_keys(random.hash_one(0), random.hash_one(1));
        let points = |level: u8| {
            let h = secret.hash(&[level]);
            SecretPoints::new([h.h1 % MODULUS, h.h2 % MODULUS])
        };
        let text = secret.hash(&[0]);
        SampleIdentity {
            records: points(1),
            locations: points(2),
            samples: points(3),
            label_sets: points(4),
            text: SipHasher24::new_with_keys(text.h1, text.h2),
            string_digests: StringDigests::default(),
            mapping_digests: Vec::new(),
            function_digests: Vec::new(),
            location_digests: Vec::new(),
            stack: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Reads the tables of a profile. Later samples must belong to this profile.
    pub(super) fn read(&mut self, p: &Profile) {
        self.string_digests.begin(p);
        let SampleIdentity { text, string_digests, .. } = self;
        let mut string = |id: StringId| string_digests.digest(text, p, id);
        self.mapping_digests.clear();
        self.mapping_digests.extend((0..p.mappings().len() as u32).map(|m| {
            let (size, offset, name) = p.mapping_key(m);
            let mut numbers = self.records.begin();
            numbers.int(size);
            numbers.int(offset);
            numbers.digest(string(name));
            numbers.end(0)
        }));
        let functions = p.functions();
        self.function_digests.clear();
        self.function_digests.extend((0..p.n_functions()).map(|f| {
            let mut numbers = self.records.begin();
            numbers.digest(string(functions.name[f]));
            numbers.digest(string(functions.system_name[f]));
            numbers.digest(string(functions.file[f]));
            numbers.int(functions.start_line[f] as u64);
            numbers.end(0)
        }));
        let locations = p.locations();
        self.location_digests.clear();
        self.location_digests.extend((0..locations.len()).map(|l| {
            let mut numbers = self.locations.begin();
            let (mut mapping, mut address) = ([0; 2], locations.address[l]);
            if locations.mapping[l] != NONE {
                let m = locations.mapping[l] as usize;
                (mapping, address) = (self.mapping_digests[m], address.wrapping_sub(p.mappings()[m].start));
            }
            numbers.digest(mapping);
            numbers.small(u32::from(locations.mapping[l] != NONE));
            numbers.int(address);
            numbers.small(u32::from(locations.folded[l]));
            let lines = locations.lines(l as u32);
            for line in lines.clone().map(|line| line as usize) {
                numbers.digest(self.function_digests[locations.line_function[line] as usize]);
                numbers.int(locations.line_number[line] as u64);
                numbers.int(locations.line_column[line] as u64);
            }
            numbers.end(lines.len() as u32)
        }));
    }

    /// Returns the digest of a sample of the profile that was read last. `cache` belongs to this profile.
    #[inline]
    pub(super) fn sample<'p>(
        &mut self,
        p: &'p Profile,
        sample: &Sample<'p>,
        cache: &mut LabelCache<'p, Digest>,
    ) -> Digest {
        let label_set = match cache.find(sample.encoded_labels()) {
            Some(label_set) => label_set,
            None => {
                let label_set = self.label_set(p, sample);
                cache.insert(sample.encoded_labels(), label_set);
                label_set
            }
        };
        let mut numbers = self.samples.begin();
        let stack = sample.stack(&mut self.stack);
        numbers.locations(&self.location_digests, stack);
        numbers.digest(label_set);
        numbers.end(stack.len() as u32)
    }

    /// Returns the digest of a sample's label set.
    #[cold]
    fn label_set(&mut self, p: &Profile, sample: &Sample<'_>) -> Digest {
        self.labels.clear();
        // A merge drops labels without a value, including those that refer to a second empty string.
        let has_value = |label: &Label| match label.value {
            LabelValue::Text(text) | LabelValue::Number(0, text) => !p.string(text).is_empty(),
            LabelValue::Number(..) => true,
        };
        self.labels.extend(sample.all_labels().filter(has_value));
        let mut string = |id: StringId| self.string_digests.digest(&self.text, p, id);
        // Sorts the keys in an order that is the same for every snapshot. The values of the same key keep their order.
        if self.labels.len() > 1 {
            self.labels.sort_by_key(|l| (matches!(l.value, LabelValue::Number(..)), string(l.key)));
        }
        let mut numbers = self.label_sets.begin();
        for label in &self.labels {
            let key = string(label.key);
            let label: LabelNumbers = match label.value {
                LabelValue::Text(text) => [[0; 2], key, string(text), [0; 2], [0; 2]],
                LabelValue::Number(v, u) => [[1; 2], key, [v as u64 & 0xffff_ffff; 2], [v as u64 >> 32; 2], string(u)],
            };
            label.iter().for_each(|&d| numbers.digest(d));
        }
        numbers.end(self.labels.len() as u32)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_whole_stacks_equal_digests_of_single_locations() {
        let points = SecretPoints::new([123_456_789_123_456_789, MODULUS - 2]);
        let digests: Vec<Digest> =
            (1..9u64).map(|i| [0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i) & MODULUS, MODULUS - i]).collect();
        for n in [0, 1, 2, 31, 32, 33, 64, 100] {
            let stack: Vec<u32> = (0..n).map(|i| i * i % 8).collect();
            let (mut whole, mut single) = (points.begin(), points.begin());
            whole.locations(&digests, &stack);
            stack.iter().for_each(|&location| single.digest(digests[location as usize]));
            if n % BLOCK_NUMBERS as u32 > 0 {
                single.end_block();
            }
            whole.digest([7, 8]);
            single.digest([7, 8]);
            assert_eq!(whole.end(n), single.end(n), "{n} locations");
        }
    }

    /// Appends a field of bytes. All tags, lengths and numbers in this test have one byte.
    fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
        out.extend([field << 3 | 2, bytes.len() as u8]);
        out.extend(bytes);
    }

    #[test]
    fn labels_without_a_value_do_not_distinguish_samples() {
        let message = |fields: &[(u8, u8)]| fields.iter().flat_map(|&(field, v)| [field << 3, v]).collect::<Vec<u8>>();
        // The fields of a label: 1 (key), 2 (str), 3 (num) and 4 (num_unit). String 4 is a second empty string.
        let profile = |label: &[(u8, u8)]| {
            let mut sample = message(&[(2, 7)]);
            if !label.is_empty() {
                put_bytes(&mut sample, 3, &message(label));
            }
            let mut data = Vec::new();
            put_bytes(&mut data, 1, &message(&[(1, 1), (2, 2)]));
            put_bytes(&mut data, 2, &sample);
            ["", "cpu", "count", "key", ""].iter().for_each(|text| put_bytes(&mut data, 6, text.as_bytes()));
            Profile::decode("p", data).unwrap()
        };
        let labels = [&[][..], &[(1, 3)], &[(1, 3), (2, 4)], &[(1, 3), (4, 4)], &[(1, 3), (2, 2)]];
        let mut identity = SampleIdentity::new();
        let [none, no_value, empty_text, empty_unit, text] = labels.map(|label| {
            let p = profile(label);
            identity.read(&p);
            identity.sample(&p, &p.samples().next().unwrap(), &mut LabelCache::default())
        });
        assert_eq!([no_value, empty_text, empty_unit], [none; 3]);
        assert_ne!(text, none);
    }
}
