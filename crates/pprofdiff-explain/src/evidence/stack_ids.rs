//! Numbers stacks by their hashes, in the order of first occurrence. On a pool with several threads, it splits the
//! hashes into parts. The numbers are the same for any number of parts.

use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index};
use pprofdiff_profile::parallel;

/// Minimum number of hashes per part.
const LEAST: usize = 1 << 16;

/// The numbers of hashes in several lists. No list contains a hash twice.
pub(super) struct StackIds {
    pub by_list: Vec<Vec<u32>>,
    /// By list: the number of its first new hash. Its new hashes have consecutive numbers from there on, in order.
    pub starts: Vec<u32>,
    /// The number of distinct hashes.
    pub len: usize,
}

impl StackIds {
    /// Numbers the hashes of lists. No list may contain a hash twice.
    pub fn new(lists: &[&[u128]]) -> StackIds {
        let total: usize = lists.iter().map(|list| list.len()).sum();
        match parallel::parts(total, LEAST) {
            parts if parts > 1 && total < NONE as usize => StackIds::in_parts(lists, parts),
            _ => StackIds::one_by_one(lists),
        }
    }

    /// Returns the positions of a list's new hashes, in the order of their numbers.
    pub fn new_places(&self, list: usize) -> impl Iterator<Item = usize> {
        let start = self.starts[list];
        self.by_list[list].iter().enumerate().filter(move |(_, number)| **number >= start).map(|(place, _)| place)
    }

    fn one_by_one(lists: &[&[u128]]) -> StackIds {
        let mut index = Index::with_capacity(lists.iter().map(|list| list.len()).max().unwrap_or(0));
        let (mut hashes, mut starts): (Vec<u128>, Vec<u32>) = (Vec::new(), Vec::with_capacity(lists.len()));
        let mut list_numbers = |list: &&[u128]| {
            starts.push(hashes.len() as u32);
            checkpointed(*list).map(|&hash| number(&mut index, &mut hashes, hash).number()).collect()
        };
        let by_list = lists.iter().map(&mut list_numbers).collect();
        StackIds { by_list, starts, len: hashes.len() }
    }

    /// Numbers hashes in parts: each part handles the hashes with its upper bits, and finds the first occurrence of
    /// each.
    fn in_parts(lists: &[&[u128]], parts: usize) -> StackIds {
        let part_of = |hash: u128| (((hash >> 96) as u64 * parts as u64) >> 32) as usize;
        // The start of each list in their concatenation.
        let mut begins: Vec<u32> = Vec::with_capacity(lists.len());
        let mut begin = 0;
        for list in lists {
            begins.push(begin);
            begin += list.len() as u32;
        }
        let results: Vec<Vec<Vec<u32>>> = parallel::map(&(0..parts).collect::<Vec<_>>(), |&part| {
            let (mut index, mut hashes, mut firsts) = (Index::default(), Vec::new(), Vec::new());
            let list_firsts = |(list, &begin): (&&[u128], &u32)| {
                let own_hashes = checkpointed(list.iter().zip(begin..)).filter(|(hash, _)| part_of(**hash) == part);
                let first_of = own_hashes.map(|(&hash, place)| {
                    let entry = number(&mut index, &mut hashes, hash);
                    if let Found::New(_) = entry {
                        firsts.push(place);
                    }
                    firsts[entry.number() as usize]
                });
                first_of.collect()
            };
            lists.iter().zip(&begins).map(list_firsts).collect()
        });
        let all: Vec<usize> = (0..lists.len()).collect();
        // By list: the first occurrence of each hash, and the number of new hashes in this list.
        let firsts: Vec<(Vec<u32>, u32)> = parallel::map(&all, |&list| {
            let mut part_firsts: Vec<_> = results.iter().map(|result| result[list].iter()).collect();
            let first = |hash: &u128| part_firsts[part_of(*hash)].next().copied().unwrap_or(NONE);
            let firsts: Vec<u32> = checkpointed(lists[list]).map(first).collect();
            let n_new = firsts.iter().zip(begins[list]..).filter(|(first, place)| *first == place).count();
            (firsts, n_new as u32)
        });
        drop(results);
        let mut starts = Vec::with_capacity(lists.len());
        let mut len = 0;
        for (_, n_new) in &firsts {
            starts.push(len);
            len += n_new;
        }
        // First, numbers for the first occurrences in each list; then, numbers for all repetitions.
        let new: Vec<Vec<u32>> = parallel::map(&all, |&list| {
            let mut numbers = starts[list]..;
            let number =
                |(first, place): (&u32, u32)| if *first == place { numbers.next() } else { None }.unwrap_or(NONE);
            checkpointed(firsts[list].0.iter().zip(begins[list]..)).map(number).collect()
        });
        let by_list = parallel::map(&all, |&list| {
            let number = |(&number, &first): (&u32, &u32)| match number {
                NONE => {
                    let list = begins.partition_point(|begin| *begin <= first) - 1;
                    new[list][(first - begins[list]) as usize]
                }
                _ => number,
            };
            checkpointed(new[list].iter().zip(&firsts[list].0)).map(number).collect()
        });
        StackIds { by_list, starts, len: len as usize }
    }
}

#[inline(always)]
fn number(index: &mut Index, hashes: &mut Vec<u128>, hash: u128) -> Found {
    let hash_of = |n: u32| hashes[n as usize];
    let entry = index.find_or_insert(hash as u64, hashes.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64);
    if let Found::New(_) = entry {
        hashes.push(hash);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::super::weights::mix;
    use super::StackIds;
    use std::collections::HashMap;

    #[test]
    fn numbers_are_the_same_for_any_number_of_parts() {
        for seed in 0..300u64 {
            let random = |i: u64| mix(seed << 32 | i);
            let lists: Vec<Vec<u128>> = (0..random(0) % 6)
                .map(|list| {
                    let n = random(1 + list) % 40;
                    let mut hashes: Vec<u128> = Vec::new();
                    for i in 0..n {
                        let value = mix(random(100 * list + 10 + i) % 60);
                        let hash = u128::from(value) << 64 | u128::from(mix(value));
                        if !hashes.contains(&hash) {
                            hashes.push(hash);
                        }
                    }
                    hashes
                })
                .collect();
            let lists: Vec<&[u128]> = lists.iter().map(Vec::as_slice).collect();
            let mut expected: HashMap<u128, u32> = HashMap::new();
            let mut by_list: Vec<Vec<u32>> = Vec::new();
            let mut new: Vec<Vec<usize>> = Vec::new();
            for list in &lists {
                let earlier = expected.clone();
                new.push((0..list.len()).filter(|&place| !earlier.contains_key(&list[place])).collect());
                let mut number = |hash: &u128| {
                    let next = expected.len() as u32;
                    *expected.entry(*hash).or_insert(next)
                };
                by_list.push(list.iter().map(&mut number).collect());
            }
            let all = (2..=5).map(|parts| StackIds::in_parts(&lists, parts)).chain([StackIds::one_by_one(&lists)]);
            for numbers in all {
                assert_eq!(numbers.by_list, by_list, "{seed}");
                assert_eq!(numbers.len, expected.len(), "{seed}");
                for (list, new) in new.iter().enumerate() {
                    assert!(numbers.new_places(list).eq(new.iter().copied()), "{seed}");
                }
            }
        }
    }
}
