// A program of counting.py: counts words in a map with a random seed. `tenth` has about a tenth of the instructions.
use std::collections::HashMap;
#[inline(never)]
fn words(text: &str) -> HashMap<&str, u32> {
    let mut map = HashMap::new();
    for word in text.split(' ') {
        *map.entry(word).or_insert(0) += 1;
    }
    map
}
#[inline(never)]
fn tenth(n: u32) -> u32 {
    let mut x = SEEDu32;
    for i in 0..n {
        x = x.wrapping_mul(1664525).wrapping_add(std::hint::black_box(i));
    }
    x
}
#[inline(never)]
fn sorted(map: &HashMap<&str, u32>) -> usize {
    let mut all: Vec<_> = map.iter().collect();
    all.sort();
    all.len()
}
fn main() {
    let text: String = (0..400).map(|i| format!("word{} ", i * 7 % 97)).collect();
    let mut kept = 0;
    for _ in 0..REPEAT {
        let map = words(&text);
        kept += sorted(&map);
        for _ in 0..3 {
            kept += tenth(std::hint::black_box(TENTH)) as usize % 7;
        }
    }
    println!("{kept}");
}
