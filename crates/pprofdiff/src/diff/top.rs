//! The table of frames: flat and cum of both sides.
//!
//! flat is what a frame cost itself (it was the leaf of the stack), cum what it cost with all that it
//! called; a frame that recurs in one stack counts once. "Once per sample" is a stamp per frame, the
//! sample's number, so no set is kept or cleared. A frame whose stamp was never set has no row.

use std::cmp::Reverse;
use std::sync::Arc;

use super::frames::MemberFrames;
use super::{Frames, Pair, Status, Summary, View};
use crate::parallel;

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// By the magnitude of flat's delta (of flat, for a single profile).
    #[default]
    Flat,
    /// By that of cum.
    Cum,
}

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopRow {
    /// Index in [`Top::frames`].
    pub frame: u32,
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it called.
    pub cum: Pair,
    /// What happened to it.
    pub status: Status,
}

/// The table of frames.
#[derive(Debug, Clone)]
pub struct Top {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The frames that rows refer to.
    pub frames: Arc<Frames>,
    /// Ordered by |delta| descending, then name, then file, then line.
    pub rows: Vec<TopRow>,
}

/// One side's sums of one frame. 16 bytes, so that stamp and sum share a cache line.
#[derive(Clone, Copy, Default)]
struct Cum {
    /// Number of the last sample that had the frame, from 1; 0 if none had.
    stamp: u32,
    sum: i64,
}

/// Marks a location of more than two frames.
const MANY: u32 = u32::MAX;

/// One member's sums, by its own frame indexes.
struct Sums {
    flat: Vec<i64>,
    /// With one more entry than there are frames; see [`View::member_sums`].
    cum: Vec<Cum>,
}

impl View {
    /// The table of frames.
    pub fn top(&self, sort: Sort) -> Top {
        let indexes: Vec<usize> = (0..self.walks.len()).collect();
        let sums = parallel::map(&indexes, |&i| self.member_sums(i));
        let n = self.frames.len();
        let empty = TopRow { frame: 0, flat: Pair::default(), cum: Pair::default(), status: Status::Same };
        let mut rows = vec![empty; n];
        let mut present = vec![(false, false); n];
        for (walk, sums) in self.walks.iter().zip(&sums) {
            for (own, &common) in self.translations[walk.index].iter().enumerate() {
                if sums.cum[own].stamp == 0 {
                    continue;
                }
                let (row, present) = (&mut rows[common as usize], &mut present[common as usize]);
                let (flat, cum) = (sums.flat[own], sums.cum[own].sum);
                if walk.member.base {
                    present.0 = true;
                    row.flat.base += flat;
                    row.cum.base += cum;
                } else {
                    present.1 = true;
                    row.flat.new += flat;
                    row.cum.new += cum;
                }
            }
        }
        for (i, (row, (in_base, in_new))) in rows.iter_mut().zip(&present).enumerate() {
            row.frame = i as u32;
            row.flat.new = self.scale.apply(row.flat.new);
            row.cum.new = self.scale.apply(row.cum.new);
            row.status = Status::new(*in_base, *in_new, row.flat.delta() == 0 && row.cum.delta() == 0);
        }
        let mut i = 0;
        rows.retain(|_| {
            i += 1;
            present[i - 1] != (false, false)
        });
        let mut top = Top { summary: self.summary().clone(), frames: self.frames.clone(), rows };
        top.sort(sort);
        top
    }

    fn member_sums(&self, index: usize) -> Sums {
        let frames = self.frames.member(index);
        let n = frames.len();
        // Nearly all locations are one frame or two. Their frames lie side by side, the missing one being
        // the frame `n`, which is no frame: so the inner loop takes both without asking how many there are.
        let pairs: Vec<[u32; 2]> = (0..frames.n_locations())
            .map(|l| match *frames.of(l) {
                [one] => [one, n as u32],
                [one, two] => [one, two],
                _ => [MANY, l],
            })
            .collect();
        let mut flat = vec![0; n];
        let mut cums = Cums { cum: vec![Cum::default(); n + 1], pairs, frames };
        let mut stamp = 0;
        let leaf_of = |location: Option<u32>| location.and_then(|l| frames.of(l).first()).copied();
        let walk = &self.walks[index];
        let whole = walk.each_whole(|value, sample| {
            stamp += 1;
            if let Some(leaf) = leaf_of(sample.leaf()) {
                flat[leaf as usize] += value;
            }
            sample.each_location(|l| cums.add(stamp, value, l));
        });
        if !whole {
            walk.each(|value, locations, _| {
                stamp += 1;
                if let Some(leaf) = leaf_of(locations.first().copied()) {
                    flat[leaf as usize] += value;
                }
                locations.iter().for_each(|&l| cums.add(stamp, value, l));
            });
        }
        Sums { flat, cum: cums.cum }
    }
}

/// The sums while they are collected.
struct Cums<'a> {
    cum: Vec<Cum>,
    pairs: Vec<[u32; 2]>,
    frames: &'a MemberFrames,
}

impl Cums<'_> {
    /// Adds a sample's value to the frames of one of its locations.
    #[inline(always)]
    fn add(&mut self, stamp: u32, value: i64, location: u32) {
        let [one, two] = self.pairs[location as usize];
        if one == MANY {
            self.frames.of(two).iter().for_each(|&f| add_once(&mut self.cum, stamp, value, f));
        } else {
            add_once(&mut self.cum, stamp, value, one);
            add_once(&mut self.cum, stamp, value, two);
        }
    }
}

/// Without a branch: whether a frame occurred before in its stack can't be predicted.
#[inline(always)]
fn add_once(cum: &mut [Cum], stamp: u32, value: i64, frame: u32) {
    let cum = &mut cum[frame as usize];
    cum.sum += if cum.stamp == stamp { 0 } else { value };
    cum.stamp = stamp;
}

impl Top {
    /// Orders the rows anew.
    pub fn sort(&mut self, sort: Sort) {
        let frames = &self.frames;
        let value = |row: &TopRow| match sort {
            Sort::Flat => row.flat.delta().unsigned_abs(),
            Sort::Cum => row.cum.delta().unsigned_abs(),
        };
        // Most rows differ in value, so names are compared only where they must be.
        self.rows.sort_unstable_by(|a, b| {
            Reverse(value(a)).cmp(&Reverse(value(b))).then_with(|| frames.order(a.frame).cmp(&frames.order(b.frame)))
        });
    }
}
