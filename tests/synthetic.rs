//! Generators of synthetic profiles: from given stacks, and by sampling programs with known costs.

use std::sync::Arc;

use pprofdiff::proto::{Function, Label, Line, Location, Profile as Message, Sample, ValueType};
use pprofdiff::{LoadOptions, Profile};
use pprofdiff_explain::Explanation;
use pprofdiff_report::{Registry, Report};
use prost::Message as _;

pub fn profile(message: &Message) -> Arc<Profile> {
    Arc::new(pprofdiff::from_bytes("made up", &message.encode_to_vec(), &LoadOptions::default()).unwrap())
}

/// A small program: a tree of calls with costs. It is sampled with a seeded generator.
pub struct Program {
    pub stacks: Vec<(Vec<String>, f64)>,
}

impl Program {
    /// Builds a program with `handlers` functions that each call four others. Their costs differ.
    pub fn new(handlers: usize) -> Program {
        let mut stacks = Vec::new();
        for h in 0..handlers {
            let handler = format!("main.handle{h}");
            stacks.push((["main.main".to_owned(), handler.clone()].to_vec(), 1.0));
            for w in 0..4 {
                let work = format!("shop/part{h}.Work{w}");
                let path = ["main.main".to_owned(), handler.clone(), work.clone()];
                stacks.push((path.to_vec(), 2.0 + w as f64));
                stacks.push(([&path[..], &["shop/codec.Encode".to_owned()]].concat(), 1.0));
                stacks.push(([&path[..], &["runtime.mallocgc".to_owned()]].concat(), 0.5));
            }
        }
        Program { stacks }
    }

    /// Multiplies the cost of the stacks that contain these consecutive frames.
    pub fn times(mut self, frames: &[&str], factor: f64) -> Program {
        let has = |stack: &[String]| stack.windows(frames.len()).any(|w| w.iter().zip(frames).all(|(a, b)| a == b));
        self.stacks.iter_mut().filter(|(stack, _)| has(stack)).for_each(|(_, cost)| *cost *= factor);
        self
    }

    /// Multiplies the own cost of a function.
    pub fn times_own(mut self, function: &str, factor: f64) -> Program {
        let own_stacks = self.stacks.iter_mut().filter(|(stack, _)| stack.last().is_some_and(|f| f == function));
        own_stacks.for_each(|(_, cost)| *cost *= factor);
        self
    }

    pub fn with(mut self, stack: &[&str], cost: f64) -> Program {
        self.stacks.push((stack.iter().map(|f| (*f).to_owned()).collect(), cost));
        self
    }

    /// Draws about `samples` samples of 10 ms from a Poisson distribution (Knuth's method, in steps within the range of
    /// exp).
    pub fn sampled(&self, samples: f64, work: f64, seed: u64) -> Arc<Profile> {
        profile(&self.message(samples, work, seed))
    }

    /// Returns the message of a run. `samples` is the expected number at the program's costs, `work` the number of
    /// repetitions.
    pub fn message(&self, samples: f64, work: f64, seed: u64) -> Message {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut uniform = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut poisson = |mean: f64| {
            let (mut n, mut left) = (0i64, mean);
            while left > 0.0 {
                let step = left.min(200.0);
                let mut product = uniform();
                while product > (-step).exp() {
                    n += 1;
                    product *= uniform();
                }
                left -= step;
            }
            n
        };
        let unit: f64 = Program::new(8).stacks.iter().map(|(_, cost)| cost).sum();
        let drawn = self.stacks.iter().map(|(stack, cost)| {
            let n = poisson(samples * work * cost / unit);
            (stack.iter().map(String::as_str).collect::<Vec<_>>(), vec![n, n * 10_000_000])
        });
        stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &drawn.collect::<Vec<_>>())
    }
}

/// Builds a message from stacks, root first.
pub fn stacks(types: &[(&str, &str)], stacks: &[(Vec<&str>, Vec<i64>)]) -> Message {
    let mut p = Message { string_table: vec![Vec::new()], ..Message::default() };
    let mut function_ids: std::collections::HashMap<String, u64> = Default::default();
    let string = |p: &mut Message, text: &str| {
        p.string_table.push(text.as_bytes().to_vec());
        p.string_table.len() as i64 - 1
    };
    for (kind, unit) in types {
        let (kind, unit) = (string(&mut p, kind), string(&mut p, unit));
        p.sample_type.push(ValueType { r#type: kind, unit });
    }
    for (stack, values) in stacks {
        let mut location_id = Vec::new();
        for name in stack.iter().rev() {
            let id = match function_ids.get(*name) {
                Some(&id) => id,
                None => {
                    let id = function_ids.len() as u64 + 1;
                    let name_id = string(&mut p, name);
                    p.function.push(Function { id, name: name_id, ..Function::default() });
                    let line = vec![Line { function_id: id, ..Line::default() }];
                    p.location.push(Location { id, line, ..Location::default() });
                    function_ids.insert((*name).to_owned(), id);
                    id
                }
            };
            location_id.push(id);
        }
        p.sample.push(Sample { location_id, value: values.clone(), ..Sample::default() });
    }
    p
}

/// Builds a profile of the program run for four tenants, of which one may be slower. `keys` more label keys have little
/// relation to the change.
pub fn of_tenants(slow: f64, seed: u64, keys: usize) -> Arc<Profile> {
    let program = Program::new(8);
    let mut all: Option<Message> = None;
    for tenant in ["a", "b", "c", "d"] {
        let work = if tenant == "b" { slow } else { 1.0 };
        let mut m = program.message(5000.0, work, seed + u64::from(tenant.as_bytes()[0]));
        m.string_table.extend([b"tenant".to_vec(), tenant.as_bytes().to_vec()]);
        let strings = m.string_table.len() as i64;
        let label = Label { key: strings - 2, str: strings - 1, ..Label::default() };
        m.sample.iter_mut().for_each(|s| s.label.push(label));
        all = Some(match all {
            None => m,
            Some(mut sum) => {
                // The same program has the same tables.
                sum.string_table.push(tenant.as_bytes().to_vec());
                let value = sum.string_table.len() as i64 - 1;
                let label = Label { key: strings - 2, str: value, ..Label::default() };
                sum.sample.extend(m.sample.into_iter().map(|s| Sample { label: vec![label], ..s }));
                sum
            }
        });
    }
    let mut all = all.unwrap();
    let text = all.string_table.len() as i64;
    all.string_table.extend([b"x".to_vec(), b"y".to_vec()]);
    all.string_table.extend((0..keys).map(|i| format!("key{i}").into_bytes()));
    for (i, sample) in all.sample.iter_mut().enumerate() {
        let other = |key: usize| Label {
            key: text + 2 + key as i64,
            str: text + i64::from((i + key).is_multiple_of(20)),
            ..Label::default()
        };
        sample.label.extend((0..keys).map(other));
    }
    profile(&all)
}

/// Stacks (names root first, separated by `;`) with their number of samples of 10 ms.
pub type Stacks = Vec<(String, i64)>;

/// Builds a CPU profile.
pub fn cpu(samples: &Stacks) -> Arc<Profile> {
    let split = |(stack, n): &(String, i64)| (stack.split(';').map(str::to_owned).collect::<Vec<_>>(), *n);
    let all: Vec<(Vec<String>, i64)> = samples.iter().map(split).collect();
    let all: Vec<_> =
        all.iter().map(|(stack, n)| (stack.iter().map(String::as_str).collect(), vec![*n, n * 10_000_000])).collect();
    profile(&stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &all))
}

/// Returns these stacks, plus thirty functions of a Go program that do not change.
pub fn with(stacks: &[(&str, i64)]) -> Stacks {
    let others = (0..30).map(|i| (format!("main.main;main.f{i}"), 2000 + 10 * i));
    others.chain(stacks.iter().map(|(stack, n)| ((*stack).to_owned(), *n))).collect()
}

/// Returns what `explain` prints.
pub fn words(e: &Explanation) -> String {
    let (report, mut text) = (Report::Explain(Box::new(e.clone())), Vec::new());
    Registry::standard().format("text").unwrap().write(&report, &mut text, Default::default()).unwrap();
    String::from_utf8(text).unwrap()
}

/// Checks that `explain` prints a text.
pub fn says(e: &Explanation, text: &str) {
    assert!(words(e).contains(text), "no {text:?} in\n{}", words(e));
}
