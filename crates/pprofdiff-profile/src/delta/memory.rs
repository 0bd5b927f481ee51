//! Stores the last snapshot: a digest and the counters of each of its samples.
//!
//! A process writes its samples in nearly the same order each time. Each sample is therefore expected to follow the
//! previously matched one. Only if this guess is wrong does a lookup happen; the table for it is built at the first
//! lookup. All buffers are reused and hold the samples of one snapshot, so vanished samples are forgotten.

use super::identity::Digest;
use crate::interner::{Found, Index};
use crate::profile::NONE;

/// The distinct samples of one snapshot, in its order.
#[derive(Default)]
struct Snapshot {
    digests: Vec<Digest>,
    /// The counters of each sample, one per cumulative sample type.
    counters: Vec<i64>,
}

/// The last snapshot, and the snapshot that is being read.
#[derive(Default)]
pub(super) struct SnapshotMemory {
    last: Snapshot,
    fresh: Snapshot,
    /// The row in the fresh snapshot of each sample of the last snapshot, or `NONE`.
    row_of_last: Vec<u32>,
    /// The index in the last snapshot of each row in the fresh snapshot, or `NONE`.
    last_of_row: Vec<u32>,
    /// A table of the last snapshot's samples (by index) and new samples ([`FRESH`] plus their row).
    lookup: Index,
    is_lookup_built: bool,
    guess: usize,
    /// The vanished and total counts of each counter.
    lost: Vec<Lost>,
}

/// Sums of one counter's absolute values in the last snapshot. All of them fit in an int64.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    /// The sum over the vanished samples.
    pub(super) gone: u64,
    /// The sum over all samples.
    pub(super) total: u64,
}

/// Counts of the last snapshot's samples. Samples whose counters are all zero are not counted.
pub(super) struct Vanished<'m> {
    /// The number of vanished samples.
    pub(super) samples: usize,
    /// The number of all samples.
    pub(super) total: usize,
    /// The loss of each counter.
    pub(super) counters: &'m [Lost],
}

/// The flag for rows of new samples in the lookup. Profiles of up to 4 GiB have fewer samples than this.
const FRESH: u32 = 1 << 31;

fn hash(d: &Digest) -> u64 {
    // hashbrown uses the lowest bits and the seven highest bits, but each half of a digest has only 61 bits.
    d[0] ^ d[1] << 3
}

impl SnapshotMemory {
    /// Starts a new snapshot.
    pub(super) fn begin(&mut self) {
        self.fresh.digests.clear();
        self.fresh.counters.clear();
        self.row_of_last.clear();
        self.row_of_last.resize(self.last.digests.len(), NONE);
        self.last_of_row.clear();
        (self.is_lookup_built, self.guess) = (false, 0);
    }

    /// Returns the number of rows, which are the distinct samples of the fresh snapshot so far.
    pub(super) fn n_rows(&self) -> usize {
        self.last_of_row.len()
    }

    /// Returns the row of a sample. Adds a row if the snapshot does not have the sample yet.
    #[inline]
    pub(super) fn row(&mut self, digest: Digest) -> usize {
        if self.last.digests.get(self.guess) == Some(&digest) && self.row_of_last[self.guess] == NONE {
            return self.match_last(self.guess, digest);
        }
        self.look_up(digest)
    }

    fn match_last(&mut self, index: usize, digest: Digest) -> usize {
        self.guess = index + 1;
        if self.row_of_last[index] == NONE {
            self.row_of_last[index] = self.n_rows() as u32;
            self.push(digest, index as u32);
        }
        self.row_of_last[index] as usize
    }

    fn push(&mut self, digest: Digest, index: u32) {
        self.fresh.digests.push(digest);
        self.last_of_row.push(index);
    }

    #[inline(never)]
    fn look_up(&mut self, digest: Digest) -> usize {
        let SnapshotMemory { last, fresh, lookup, .. } = self;
        let digest_of = |i: u32| match i & FRESH {
            0 => last.digests[i as usize],
            _ => fresh.digests[(i ^ FRESH) as usize],
        };
        if !self.is_lookup_built {
            self.is_lookup_built = true;
            lookup.clear();
            lookup.reserve(last.digests.len(), |i| hash(&digest_of(i)));
            for (i, d) in last.digests.iter().enumerate() {
                // All digests of one snapshot differ.
                lookup.insert_new(hash(d), i as u32, |i| hash(&digest_of(i)));
            }
        }
        let row = self.last_of_row.len();
        let next = row | FRESH as usize;
        match lookup.find_or_insert(hash(&digest), next, |i| digest_of(i) == digest, |i| hash(&digest_of(i))) {
            Found::Known(i) if i & FRESH == 0 => self.match_last(i as usize, digest),
            Found::Known(i) => (i ^ FRESH) as usize,
            Found::New(_) => {
                self.push(digest, NONE);
                row
            }
        }
    }

    /// Returns the `n` counters of a row in the last snapshot, or `None` for a new sample.
    pub(super) fn before(&self, row: usize, n: usize) -> Option<&[i64]> {
        match self.last_of_row[row] {
            NONE => None,
            index => Some(&self.last.counters[index as usize * n..][..n]),
        }
    }

    /// Counts the samples of the last snapshot that are not in the fresh snapshot, and adds up the `n` counters of
    /// each.
    pub(super) fn vanished(&mut self, n: usize) -> Vanished<'_> {
        let SnapshotMemory { last, row_of_last, lost, .. } = self;
        lost.clear();
        lost.resize(n, Lost::default());
        let (mut samples, mut total) = (0, 0);
        for (i, &row) in row_of_last.iter().enumerate() {
            let counters = &last.counters[i * n..][..n];
            if counters.iter().all(|&v| v == 0) {
                continue;
            }
            let gone = row == NONE;
            total += 1;
            samples += usize::from(gone);
            for (lost, v) in lost.iter_mut().zip(counters) {
                lost.total += v.unsigned_abs();
                lost.gone += if gone { v.unsigned_abs() } else { 0 };
            }
        }
        Vanished { samples, total, counters: lost }
    }

    /// Stores the counters of the next row. Must be called for all rows in order.
    pub(super) fn remember(&mut self, counters: impl Iterator<Item = i64>) {
        self.fresh.counters.extend(counters);
    }

    /// Makes the fresh snapshot the last one.
    pub(super) fn commit(&mut self) {
        std::mem::swap(&mut self.last, &mut self.fresh);
    }
}
