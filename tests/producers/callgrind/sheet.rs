//! Closures, traits, formatting and collections.
use std::collections::HashMap;

trait Cell {
    fn value(&self, depth: u32) -> i64;
}

struct Number(i64);
struct Sum(Vec<Box<dyn Cell>>);

impl Cell for Number {
    fn value(&self, depth: u32) -> i64 {
        self.0 + i64::from(depth)
    }
}

impl Cell for Sum {
    fn value(&self, depth: u32) -> i64 {
        self.0.iter().map(|cell| cell.value(depth + 1)).sum()
    }
}

fn sheet(depth: u32) -> Box<dyn Cell> {
    match depth {
        0 => Box::new(Number(3)),
        _ => Box::new(Sum((0..3).map(|_| sheet(depth - 1)).collect())),
    }
}

fn main() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for i in 0..200 {
        *counts.entry(format!("key {}", i % 17)).or_default() += 1;
    }
    let mut names: Vec<_> = counts.into_iter().collect();
    names.sort();
    println!("{} {:?}", sheet(4).value(0), names.first());
}
