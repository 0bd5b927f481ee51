//! What is remembered of the last snapshot: for each of its samples a digest and the counters, and nothing else.
//!
//! A process writes its samples in nearly the same order each time, so the next one is guessed to be the one that
//! followed the last one found, and only where the guess is wrong is anything looked up (the table for that is made
//! when it happens first). All buffers are used again for the next snapshot, and hold one snapshot's samples: what
//! vanished is forgotten.

use super::identity::Digest;
use crate::interner::{Found, Index};
use crate::profile::NONE;

/// One snapshot's samples, in its order, each once.
#[derive(Default)]
struct Snapshot {
    digests: Vec<Digest>,
    /// For each sample, one for each cumulative sample type.
    counters: Vec<i64>,
}

/// The last snapshot, and the one that is being read.
#[derive(Default)]
pub(super) struct Memory {
    known: Snapshot,
    fresh: Snapshot,
    /// For each known sample, its row in the fresh snapshot, or `NONE`; and the other way round.
    row_of_known: Vec<u32>,
    known_of_row: Vec<u32>,
    /// Known samples by their index, fresh ones that are not known by [`FRESH`] and their row.
    lookup: Index,
    lookup_made: bool,
    guess: usize,
    /// For each counter, what samples that are gone had counted, and what all had.
    lost: Vec<Lost>,
}

/// Magnitudes of what one counter had counted in the last snapshot; all of them fit an int64.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    /// In the samples that are gone.
    pub(super) gone: u64,
    /// In all samples.
    pub(super) of: u64,
}

/// Samples of the last snapshot that had counted something.
pub(super) struct Vanished<'m> {
    /// How many are gone.
    pub(super) samples: usize,
    /// How many there were.
    pub(super) of: usize,
    /// What each counter lost with them.
    pub(super) counters: &'m [Lost],
}

/// Profiles of 4 GiB have fewer samples than this.
const FRESH: u32 = 1 << 31;

fn hash(d: &Digest) -> u64 {
    // hashbrown looks at the lowest and at the seven highest bits; a digest has 61.
    d[0] ^ d[1] << 3
}

impl Memory {
    /// Begins a snapshot.
    pub(super) fn begin(&mut self) {
        self.fresh.digests.clear();
        self.fresh.counters.clear();
        self.row_of_known.clear();
        self.row_of_known.resize(self.known.digests.len(), NONE);
        self.known_of_row.clear();
        (self.lookup_made, self.guess) = (false, 0);
    }

    /// Number of rows: different samples of the fresh snapshot so far.
    pub(super) fn n_rows(&self) -> usize {
        self.known_of_row.len()
    }

    /// The row of a sample; a new one if the snapshot did not have it yet.
    #[inline]
    pub(super) fn row(&mut self, digest: Digest) -> usize {
        if self.known.digests.get(self.guess) == Some(&digest) && self.row_of_known[self.guess] == NONE {
            return self.found(self.guess, digest);
        }
        self.look_up(digest)
    }

    fn found(&mut self, known: usize, digest: Digest) -> usize {
        self.guess = known + 1;
        if self.row_of_known[known] == NONE {
            self.row_of_known[known] = self.n_rows() as u32;
            self.push(digest, known as u32);
        }
        self.row_of_known[known] as usize
    }

    fn push(&mut self, digest: Digest, known: u32) {
        self.fresh.digests.push(digest);
        self.known_of_row.push(known);
    }

    #[inline(never)]
    fn look_up(&mut self, digest: Digest) -> usize {
        let Memory { known, fresh, lookup, .. } = self;
        let digest_of = |i: u32| match i & FRESH {
            0 => known.digests[i as usize],
            _ => fresh.digests[(i ^ FRESH) as usize],
        };
        if !self.lookup_made {
            self.lookup_made = true;
            lookup.clear();
            lookup.reserve(known.digests.len(), |i| hash(&digest_of(i)));
            for (i, d) in known.digests.iter().enumerate() {
                // Digests of one snapshot differ.
                lookup.find_or_insert(hash(d), i, |_| false, |i| hash(&digest_of(i)));
            }
        }
        let row = self.known_of_row.len();
        let next = row | FRESH as usize;
        match lookup.find_or_insert(hash(&digest), next, |i| digest_of(i) == digest, |i| hash(&digest_of(i))) {
            Found::Known(i) if i & FRESH == 0 => self.found(i as usize, digest),
            Found::Known(i) => (i ^ FRESH) as usize,
            Found::New(_) => {
                self.push(digest, NONE);
                row
            }
        }
    }

    /// The counters that a row had in the last snapshot, `n` of them; none if it was not there.
    pub(super) fn before(&self, row: usize, n: usize) -> Option<&[i64]> {
        match self.known_of_row[row] {
            NONE => None,
            known => Some(&self.known.counters[known as usize * n..][..n]),
        }
    }

    /// What of the last snapshot, which has `n` counters, is not in the fresh one.
    pub(super) fn vanished(&mut self, n: usize) -> Vanished<'_> {
        let Memory { known, row_of_known, lost, .. } = self;
        lost.clear();
        lost.resize(n, Lost::default());
        let (mut samples, mut of) = (0, 0);
        for (i, &row) in row_of_known.iter().enumerate() {
            let counters = &known.counters[i * n..][..n];
            if counters.iter().all(|&v| v == 0) {
                continue;
            }
            let gone = row == NONE;
            of += 1;
            samples += usize::from(gone);
            for (lost, v) in lost.iter_mut().zip(counters) {
                lost.of += v.unsigned_abs();
                lost.gone += if gone { v.unsigned_abs() } else { 0 };
            }
        }
        Vanished { samples, of, counters: lost }
    }

    /// Remembers the counters of the next row; called for all rows in order.
    pub(super) fn remember(&mut self, counters: impl Iterator<Item = i64>) {
        self.fresh.counters.extend(counters);
    }

    /// Makes the fresh snapshot the last one.
    pub(super) fn commit(&mut self) {
        std::mem::swap(&mut self.known, &mut self.fresh);
    }
}
