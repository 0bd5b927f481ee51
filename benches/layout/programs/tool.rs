//! A small tool: it parses numbers, hashes, sorts, multiplies matrices and counts words. pairs.py edits one function at a
//! time. Each function prints its result, so that an edit of its data is visible too.

use std::collections::BTreeMap;
use std::hint::black_box;

const NIBBLES: [u32; 16] = [
    0x0000_0000, 0x1db7_1064, 0x3b6e_20c8, 0x26d9_30ac, 0x76dc_4190, 0x6b6b_51f4, 0x4db2_6158, 0x5005_713c, //
    0xedb8_8320, 0xf00f_9344, 0xd6d6_a3e8, 0xcb61_b38c, 0x9b64_c2b0, 0x86d3_d2d4, 0xa00a_e278, 0xbdbd_f21c,
];

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

struct Circle(f64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> f64 {
        3.14159 * self.0 * self.0
    }
}

#[inline(always)]
fn weigh(x: i64) -> i64 {
    x * 3 + (x >> 4)
}

#[inline(never)]
fn left(x: i64) -> i64 {
    x.wrapping_mul(5) + 1
}

#[inline(never)]
fn right(x: i64) -> i64 {
    x.wrapping_mul(7) + 2
}

#[inline(never)]
fn difference(x: i64, y: i64) -> i64 {
    4 * x - y
}

/// Adds the decimal numbers of a text.
#[inline(never)]
fn parse(text: &str) -> i64 {
    let (mut sum, mut value, mut sign) = (0, 0, 1);
    for c in text.bytes() {
        match c {
            b'0'..=b'9' => value = value * 10 + i64::from(c - b'0'),
            b'-' => sign = -1,
            _ => {
                sum += sign * value;
                (value, sign) = (0, 1);
            }
        }
    }
    sum + sign * value
}

#[inline(never)]
fn hash(data: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in data {
        h ^= u64::from(byte);
        h = h.wrapping_mul(0x100_0000_01b3).rotate_left(23);
    }
    h
}

#[inline(never)]
fn checksum(data: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in data {
        crc ^= u32::from(byte);
        crc = crc >> 4 ^ NIBBLES[(crc & 15) as usize];
        crc = crc >> 4 ^ NIBBLES[(crc & 15) as usize];
    }
    !crc
}

#[inline(never)]
fn insertion(values: &mut [i64]) {
    for i in 1..values.len() {
        let (value, mut j) = (values[i], i);
        while j > 0 && values[j - 1] > value {
            values[j] = values[j - 1];
            j -= 1;
        }
        values[j] = value;
    }
}

#[inline(never)]
fn multiply(a: &[f64], b: &[f64], c: &mut [f64], n: usize) -> f64 {
    let mut trace = 0.0;
    for i in 0..n {
        for j in 0..n {
            let mut sum = 0.1;
            for k in 0..n {
                sum += a[i * n + k] * b[k * n + j];
            }
            c[i * n + j] = sum;
        }
        trace += c[i * n + i] * 1.7;
    }
    trace
}

/// Counts words of at least three letters.
#[inline(never)]
fn words(text: &str) -> usize {
    let (mut count, mut length) = (0, 0);
    for c in text.bytes() {
        if c.is_ascii_alphabetic() {
            length += 1;
            continue;
        }
        if length >= 3 {
            count += 1;
        }
        length = 0;
    }
    count
}

#[inline(never)]
fn day(k: u32) -> &'static str {
    match k % 9 {
        0 => "monday",
        1 => "tuesday",
        2 => "wednesday",
        3 => "thursday",
        4 => "friday",
        5 => "saturday",
        6 => "sunday",
        7 => "holiday",
        _ => "never",
    }
}

#[inline(never)]
fn fold(values: &[i64]) -> i64 {
    values.iter().fold(1, |x, v| left(x) ^ v)
}

#[inline(never)]
fn compare(values: &[i64]) -> i64 {
    let mut x = 0;
    for i in 1..values.len() {
        x += difference(values[i], values[i - 1]);
    }
    x
}

#[inline(never)]
fn score(values: &[i64]) -> i64 {
    values.iter().map(|&v| weigh(v)).sum()
}

#[inline(never)]
fn shapes(values: &[i64]) -> Vec<Box<dyn Shape>> {
    let mut all: Vec<Box<dyn Shape>> = Vec::new();
    for (i, &v) in values.iter().enumerate() {
        match i % 2 {
            0 => all.push(Box::new(Square(v as f64))),
            _ => all.push(Box::new(Circle(v as f64))),
        }
    }
    all.sort_by(|a, b| b.area().total_cmp(&a.area()));
    all
}

#[inline(never)]
fn count(text: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 2;
    }
    counts
}

#[inline(never)]
fn interpret(program: &[u8], mut x: i64) -> i64 {
    for op in program {
        match op {
            b'a' => x = left(x),
            b'b' => x = right(x),
            b'c' => x = x.wrapping_mul(x),
            b'd' => x /= 3,
            b'e' => x = !x,
            b'f' => x += 40,
            b'g' => x ^= 0x55,
            _ => {}
        }
    }
    x
}

#[inline(never)]
fn report(name: &str, value: &dyn std::fmt::Display) {
    println!("{name}: {value}");
}

fn main() {
    let text = black_box("12 apples, 7 pears and -30 plums for 1999 guests on 24 tables");
    let mut values: Vec<i64> = (0..64).map(|i| i * 37 % 101).collect();
    let a: Vec<f64> = (0..64).map(|i| f64::from(i % 7)).collect();
    let b: Vec<f64> = (0..64).map(|i| f64::from(i % 5)).collect();
    let mut c = vec![0.0; 64];
    report("parse", &parse(text));
    report("hash", &hash(text.as_bytes()));
    report("checksum", &checksum(text.as_bytes()));
    report("fold", &fold(&values));
    report("compare", &compare(&values));
    report("score", &score(&values));
    report("shapes", &shapes(&values)[5].area());
    insertion(&mut values);
    report("insertion", &(values[3] * 1000 + values[40]));
    report("multiply", &multiply(&a, &b, &mut c, 8));
    report("words", &words(text));
    report("interpret", &interpret(black_box(b"abcfdgeabfhab"), 9));
    for (word, n) in count(text) {
        report(&word, &n);
    }
    for k in 0..9 {
        report("day", &day(k));
    }
}
