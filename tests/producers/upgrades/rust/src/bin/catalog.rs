//! Keeps a catalogue of a library's words: counts them, then looks up pairs of them, again and again. The maps are
//! those of the standard library (SipHash) with the feature a, of `hashbrown` 0.15 (foldhash) with b.

#[cfg(feature = "b")]
use hashbrown15::HashMap;
#[cfg(feature = "a")]
use std::collections::HashMap;

fn main() {
    let pages: Vec<String> = (0..40).map(write_page).collect();
    let mut total = 0;
    upgrades::run(1_600, |round| {
        let mut words = HashMap::new();
        for page in &pages {
            count(page, &mut words);
        }
        let pairs = pair_up(&pages[round as usize % pages.len()], &words);
        total += score(&pairs) + words.len() as u64;
    });
    println!("{total} points");
}

/// Counts the words of a page.
#[inline(never)]
fn count<'p>(page: &'p str, words: &mut HashMap<&'p str, u64>) {
    for word in page.split(' ') {
        *words.entry(word).or_insert(0) += 1;
    }
}

/// Counts which words are adjacent.
#[inline(never)]
fn pair_up(page: &str, words: &HashMap<&str, u64>) -> HashMap<(u64, u64), u64> {
    let mut pairs = HashMap::new();
    let mut before = 0;
    for word in page.split(' ') {
        let known = words.get(word).copied().unwrap_or_default();
        *pairs.entry((before, known)).or_insert(0) += 1;
        before = known;
    }
    pairs
}

/// Returns the value of the pairs: rare pairs count more.
#[inline(never)]
fn score(pairs: &HashMap<(u64, u64), u64>) -> u64 {
    let mut seen: Vec<_> = pairs.iter().map(|((a, b), n)| (*n, a * 31 + b)).collect();
    seen.sort_unstable();
    seen.iter().enumerate().map(|(place, (n, word))| place as u64 * n % 97 + word % 5).sum()
}

/// Generates a page of 2,000 words.
fn write_page(number: u64) -> String {
    let mut random = number + 11;
    let mut page = String::new();
    for _ in 0..2_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = (random >> 33) % ((random >> 50) % 3_000 + 1);
        page += ["ka", "lo", "mi", "ter", "un"][(word % 5) as usize];
        page += &format!("{:x}", word * word % 65_521);
        page.push(' ');
    }
    page
}
