//! Tests of the account of `explain`: differences add up, no stack is counted twice, and the values of a cause equal
//! plain sums over the samples. The inputs are the corpus with its faults and upgrades, and random pairs in which
//! functions are renamed, inlined, added and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pprofdiff::proto::Profile as Message;
use pprofdiff::{Diff, Profile, Query};
use pprofdiff_explain::{Cause, CauseKind, ExplainOptions, Explanation, MoveKind};
use prost::Message as _;

use crate::synthetic::{profile, stacks};
use crate::verdict::Random;

/// The stacks of a run with their values, root first, with names as in the message.
type Plain = Vec<(Vec<String>, f64)>;

struct Side {
    profiles: Vec<Arc<Profile>>,
    runs: Vec<Plain>,
}

/// Returns all samples of a sample type, including recursive stacks, empty stacks and negative values.
fn plain_stacks(message: &Message, sample_type: &str) -> Plain {
    let text = |i: i64| String::from_utf8(message.string_table[i as usize].clone()).unwrap();
    let column = message.sample_type.iter().position(|t| text(t.r#type) == sample_type).unwrap();
    let names: BTreeMap<u64, String> = message.function.iter().map(|f| (f.id, text(f.name))).collect();
    let frames: BTreeMap<u64, Vec<&String>> = message
        .location
        .iter()
        .map(|l| (l.id, l.line.iter().map(|line| &names[&line.function_id]).collect()))
        .collect();
    let stack = |ids: &[u64]| -> Vec<String> {
        ids.iter().rev().flat_map(|id| frames[id].iter().rev().map(|name| (*name).clone())).collect()
    };
    message.sample.iter().map(|s| (stack(&s.location_id), s.value[column] as f64)).collect()
}

impl Side {
    fn of(messages: &[Message], sample_type: &str) -> Side {
        Side {
            profiles: messages.iter().map(profile).collect(),
            runs: messages.iter().map(|message| plain_stacks(message, sample_type)).collect(),
        }
    }

    /// Returns the mean per run over the selected stacks. Negative values count with their magnitude, as in a table's
    /// total.
    fn mean(&self, holds: impl Fn(&[String]) -> bool) -> f64 {
        let sum = self.runs.iter().flatten().filter(|(stack, _)| holds(stack)).map(|(_, v)| v.abs()).sum::<f64>();
        sum / self.runs.len() as f64
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

fn message(path: &Path) -> Message {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut bytes).unwrap();
    Message::decode(&bytes[..]).unwrap()
}

fn explain(base: &Side, new: &Side, sample_type: &str) -> Explanation {
    let query = Query::default().with_sample_type(sample_type);
    let diff = Diff::new(&base.profiles, &new.profiles).unwrap();
    pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap()
}

/// Returns the plain sum over the stacks that match a cause.
fn sum_of_cause(side: &Side, cause: &Cause) -> f64 {
    let is = |names: &[String], frame: &String| names.iter().any(|name| name == frame);
    let evidence = &cause.evidence;
    let calls = |stack: &[String], caller: &[String], callee: &[String]| {
        stack.windows(2).any(|w| is(caller, &w[0]) && is(callee, &w[1]))
    };
    side.mean(|stack| match () {
        () if !evidence.callees.is_empty() => calls(stack, &evidence.functions, &evidence.callees),
        () if !evidence.callers.is_empty() && cause.kind != CauseKind::Own => {
            calls(stack, &evidence.callers, &evidence.functions)
        }
        () => stack.iter().any(|frame| is(&evidence.functions, frame)),
    })
}

/// Compares an explanation with plain sums, and returns the contradictions.
fn contradictions(e: &Explanation, base: &Side, new: &Side) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |right: bool, message: String| wrong.extend((!right).then_some(message));
    let (whole, s, account) = (base.mean(|_| true).max(new.mean(|_| true)), e.scale.factor, &e.account);
    let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * whole;
    let delta = new.mean(|_| true) - base.mean(|_| true);
    check(is_near(account.delta, delta), format!("{account:?} of {delta}"));
    let parts = account.work + account.causes + account.consequences + account.rest;
    check(is_near(account.delta, parts), format!("{account:?} adds up to {parts}"));
    check(is_near(account.work, (s - 1.0) * base.mean(|_| true)), format!("{account:?} at {s}"));
    let causes: f64 = e.causes.iter().map(|cause| cause.delta).sum();
    check(is_near(account.causes, causes), format!("{account:?}, but causes {causes}"));
    for side in [0, 1] {
        let value = |cause: &Cause| [cause.evidence.base.value, cause.evidence.new.value][side];
        let (sum, total) = (e.causes.iter().map(value).sum::<f64>(), [base, new][side].mean(|_| true));
        check(sum <= total * (1.0 + 1e-6), format!("causes have {sum} of {total}"));
    }
    for cause in &e.causes {
        let evidence = &cause.evidence;
        let description =
            format!("{} {:?} of {:?}: {:+e}", cause.kind.name(), cause.function, cause.caller, cause.delta);
        check(
            is_near(cause.delta, evidence.new.value - s * evidence.base.value),
            format!("{description} of {evidence:?}"),
        );
        if cause.label.is_some() || cause.function.is_none() {
            continue;
        }
        let [b, n] = [base, new].map(|side| sum_of_cause(side, cause));
        // C++ names are shown without their arguments, and unnamed frames by their mapping, so they may not match.
        if b + n == 0.0 {
            check(
                evidence.functions.iter().any(|name| name.contains(['[', ':'])),
                format!("{description}: there is no {evidence:?}"),
            );
            continue;
        }
        let least = [evidence.base.value, evidence.new.value];
        // A call through a function that is inlined on one side does not appear in a plain sum.
        let is_folded = e.moved.iter().any(|moved| matches!(moved.how, MoveKind::Inlined | MoveKind::Outlined));
        let all = b >= least[0] - 1e-6 * whole && n >= least[1] - 1e-6 * whole;
        check(all || is_folded, format!("{description}: {least:?} of {b} {n}"));
        match cause.kind {
            CauseKind::Added => check(b == 0.0, format!("{description}, but the base has {b}")),
            CauseKind::Removed => check(n == 0.0, format!("{description}, but the new side has {n}")),
            // The function's own cost is only compared if all functions belong to the program.
            CauseKind::Own | CauseKind::Calls => {}
        }
        let plain_sum = n - s * b;
        let goes_along = plain_sum * cause.delta.signum() >= 0.1 * cause.delta.abs();
        check(goes_along || cause.kind == CauseKind::Own, format!("{description}, but a plain sum has {plain_sum}"));
        // Several causes in one function may change in opposite directions.
        let is_in =
            |stack: &[String], other: &Cause| stack.iter().any(|frame| other.evidence.functions.contains(frame));
        let shares = |other: &Cause| {
            let is_shared = |stack: &[String]| is_in(stack, cause) && is_in(stack, other);
            base.mean(is_shared) + new.mean(is_shared) > 0.0
        };
        let is_bounded = cause.caller.is_some()
            || cause.delta.abs() <= plain_sum.abs() + 1e-6 * whole
            || e.causes.iter().any(|other| !std::ptr::eq(other, cause) && shares(other));
        check(
            is_bounded || cause.kind == CauseKind::Own,
            format!("{description}, more than the change {plain_sum:+e} of the whole function"),
        );
        let is_here = if cause.delta < 0.0 { b } else { n } > 0.0;
        check(is_here, format!("{description}: its name is the other side's"));
    }
    wrong
}

/// Compares an explanation with the explanation of the swapped sides, and returns a difference, if any. Functions must
/// be equal, added and removed must be swapped, and signs reversed.
fn difference_to_swapped(e: &Explanation, exchanged: &Explanation) -> Option<String> {
    let cause_keys = |e: &Explanation, sign: f64, is_exchanged: bool| -> BTreeSet<String> {
        let kind = |cause: &Cause| match (cause.kind, is_exchanged) {
            (CauseKind::Added, true) => CauseKind::Removed,
            (CauseKind::Removed, true) => CauseKind::Added,
            (kind, _) => kind,
        };
        let describe = |cause: &Cause| {
            let mut names = cause.evidence.functions.clone();
            names.sort();
            format!("{} {names:?} {}", kind(cause).name(), cause.delta * sign > 0.0)
        };
        e.causes.iter().map(describe).collect()
    };
    let (here, there) = (cause_keys(e, 1.0, false), cause_keys(exchanged, -1.0, true));
    let is_same = here == there && e.verdict == exchanged.verdict;
    (!is_same).then(|| format!("{} {here:?}, exchanged {} {there:?}", e.verdict.name(), exchanged.verdict.name()))
}

/// Returns pairs with the files of each side.
fn recorded_pairs() -> Vec<(String, Vec<PathBuf>, Vec<PathBuf>)> {
    let mut pairs = Vec::new();
    let files = |folder: &Path| -> BTreeSet<String> {
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    };
    for name in files(&corpus()).iter().filter_map(|n| n.strip_suffix(".base.pb.gz")) {
        let files_of = |side: &str| vec![corpus().join(format!("{name}.{side}.pb.gz"))];
        pairs.push((name.to_owned(), files_of("base"), files_of("new")));
    }
    let upgrades = corpus().join("upgrades");
    let all = files(&upgrades);
    for first in all.iter().filter(|name| name.contains(".a1.") && name.ends_with(".pb.gz")) {
        let files_of = |side: &str| -> Vec<PathBuf> {
            let names = (1..4).map(|run| first.replace(".a1.", &format!(".{side}{run}.")));
            names.filter(|name| all.contains(name)).map(|name| upgrades.join(name)).collect()
        };
        pairs.push((first.clone(), files_of("a"), files_of("b")));
    }
    for program in files(&corpus().join("faults")).iter().filter(|name| !name.contains('.')) {
        let folder = corpus().join("faults").join(program);
        let all = files(&folder);
        for first in all.iter().filter(|name| name.contains("-1.") && !name.starts_with("base-")) {
            let Some((_, profile)) = first.split_once("-1.") else { continue };
            let files_of = |build: &str| -> Vec<PathBuf> {
                (1..4).map(|run| folder.join(format!("{build}-{run}.{profile}"))).filter(|file| file.exists()).collect()
            };
            let build = first.strip_suffix(&format!("-1.{profile}")).unwrap();
            pairs.push((format!("{program} {first}"), files_of("base"), files_of(build)));
            pairs.push((
                format!("{program} {first} alone"),
                files_of("base")[..1].to_vec(),
                files_of(build)[..1].to_vec(),
            ));
        }
    }
    pairs.retain(|(_, base, new)| !base.is_empty() && !new.is_empty());
    pairs
}

#[test]
fn recorded_differences_add_up() {
    let (mut wrong, mut exchanged, mut causes) = (Vec::new(), Vec::new(), 0);
    for (name, base, new) in recorded_pairs() {
        let open = |files: &[PathBuf]| -> Vec<Message> { files.iter().map(|file| message(file)).collect() };
        let (base, new) = (open(&base), open(&new));
        let opened: Vec<Arc<Profile>> = base[..1].iter().map(profile).collect();
        let shown = Diff::new(&opened, &opened).unwrap();
        let types: Vec<String> = shown.sample_types().iter().map(|(name, _)| name.clone()).collect();
        // The default sample type, and all allocations.
        let chosen = shown.default_sample_type().map(str::to_owned).or(types.last().cloned()).unwrap();
        for sample_type in types.iter().filter(|name| **name == chosen || *name == "alloc_space") {
            let sides = [&base, &new].map(|messages| Side::of(messages, sample_type));
            let e = explain(&sides[0], &sides[1], sample_type);
            causes += e.causes.len();
            let faults = contradictions(&e, &sides[0], &sides[1]);
            wrong.extend(faults.into_iter().map(|fault| format!("{name} {sample_type}: {fault}")));
            let other = difference_to_swapped(&e, &explain(&sides[1], &sides[0], sample_type));
            exchanged.extend(other.map(|difference| format!("{name} {sample_type}: {difference}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // For nested sets that explain almost the same cost, the swapped answer may choose a different set.
    assert!(exchanged.len() <= 1, "{}", exchanged.join("\n"));
    assert!(causes > 50, "{causes}");
}

impl Random {
    /// Returns the stacks before and after one to three changes of a random program whose functions call each other.
    fn pair(&mut self) -> [Plain; 2] {
        let functions = 6 + self.below(20);
        let name = |f: usize| format!("pkg.f{f}");
        let mut base: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for _ in 0..10 + self.below(50) {
            let depth = 1 + self.below(6);
            let frames: BTreeSet<usize> = (0..depth).map(|_| self.below(functions)).collect();
            let stack = std::iter::once("main".to_owned()).chain(frames.into_iter().map(name)).collect();
            base.insert(stack, (5 + self.below(295)) as f64);
        }
        let base: Plain = base.into_iter().collect();
        let mut new = base.clone();
        for _ in 0..1 + self.below(3) {
            let f = name(self.below(functions));
            let has = |stack: &[String]| stack.contains(&f);
            match self.below(6) {
                0 => new
                    .iter_mut()
                    .flat_map(|(stack, _)| stack)
                    .filter(|g| **g == f)
                    .for_each(|g| *g = format!("{f}New")),
                1 => {
                    let chosen_stack = &base[self.below(base.len())].0;
                    if chosen_stack.len() > 2 {
                        let start = 1 + self.below(chosen_stack.len() - 2);
                        new.retain(|(stack, _)| !stack.windows(2).any(|w| w == &chosen_stack[start..start + 2]));
                    }
                }
                2 if !new.is_empty() => {
                    let mut stack = new[self.below(new.len())].0.clone();
                    stack.push(format!("pkg.added{}", self.below(3)));
                    new.push((stack, (50 + self.below(550)) as f64));
                }
                3 => {
                    let times = [0.3, 2.0, 3.0][self.below(3)];
                    let matching = new.iter_mut().filter(|(stack, _)| has(stack));
                    matching.for_each(|(_, v)| *v = (*v * times).floor());
                }
                4 => new.iter_mut().filter(|(stack, _)| stack.last() == Some(&f)).for_each(|(_, v)| *v *= 4.0),
                _ => new.iter_mut().for_each(|(stack, _)| stack.retain(|g| *g != f)),
            }
        }
        [base, new]
    }
}

/// Builds a profile of these stacks, with 10 ms per sample.
fn sampled(plain: &Plain) -> Message {
    let mut sums: BTreeMap<&[String], f64> = BTreeMap::new();
    plain.iter().for_each(|(stack, v)| *sums.entry(stack).or_default() += v);
    let values = |v: f64| vec![v as i64, v as i64 * 10_000_000];
    let samples = sums.iter().map(|(stack, v)| (stack.iter().map(String::as_str).collect::<Vec<_>>(), values(*v)));
    stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &samples.collect::<Vec<_>>())
}

#[test]
fn random_differences_add_up_and_contain_no_contradiction() {
    let (mut wrong, mut exchanged, mut causes, mut corrected) = (Vec::new(), Vec::new(), 0, 0);
    for seed in 1..=600u64 {
        let mut pair = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).pair();
        for (side, stacks) in pair.iter_mut().enumerate().filter(|(_, stacks)| !stacks.is_empty()) {
            let all: f64 = stacks.iter().map(|(_, v)| v).sum();
            if seed % 3 == 0 {
                stacks.push((Vec::new(), (all / (3 + side) as f64).round()));
            }
            if seed % 5 == 0 {
                stacks.push((vec!["below_nothing".to_owned()], -(all / (20 + side) as f64).round()));
            }
        }
        let pair = pair.map(|stacks| sampled(&stacks));
        if pair.iter().any(|message| message.sample.is_empty()) {
            continue;
        }
        let [base, new] = pair.map(|message| Side::of(&[message], "cpu"));
        let e = explain(&base, &new, "cpu");
        causes += e.causes.len();
        corrected += e.contradictions;
        let mut faults = contradictions(&e, &base, &new);
        // All functions belong to the program, so the own cost of a function is the cost of the stacks that end there.
        for cause in e.causes.iter().filter(|cause| cause.kind == CauseKind::Own) {
            let own_cost =
                |side: &Side| side.mean(|stack| stack.last().is_some_and(|f| cause.evidence.functions.contains(f)));
            let plain_sum = own_cost(&new) - e.scale.factor * own_cost(&base);
            if plain_sum * cause.delta.signum() < 0.1 * cause.delta.abs() {
                faults.push(format!("self {:?}: {:+e}, but a plain sum has {plain_sum}", cause.function, cause.delta));
            }
        }
        wrong.extend(faults.into_iter().map(|fault| format!("{seed}: {fault}")));
        exchanged.extend(
            difference_to_swapped(&e, &explain(&new, &base, "cpu")).map(|difference| format!("{seed}: {difference}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Near a threshold, a change may pass from one side only: at most one answer in a hundred.
    assert!(exchanged.len() <= 6, "{}", exchanged.join("\n"));
    // The self-check of the engine should find nothing that its rules missed.
    assert!(corrected * 100 <= causes, "{corrected} of {causes} causes were corrected");
    assert!(causes > 450, "{causes}");
}

#[test]
fn a_cause_is_complete_even_if_its_stacks_are_light() {
    // Most stacks are truncated to the prefix they share with heavy ones. The function grows in every second stack that
    // ends there.
    let side = |times: f64| {
        let mut random = Random(7);
        let mut all: Plain = Vec::new();
        for i in 0..30_000 {
            let depth = 3 + random.below(8);
            let frames = (0..depth).map(|_| format!("pkg.f{}", random.below(300)));
            let stack: Vec<String> = std::iter::once("main".to_owned()).chain(frames).collect();
            let grows = i % 2 == 0 && stack.last().is_some_and(|name| name == "pkg.f7");
            all.push((stack, (1 + random.below(40)) as f64 * if grows { times } else { 1.0 }));
        }
        Side::of(&[sampled(&all)], "cpu")
    };
    let (base, new) = (side(1.0), side(40.0));
    let e = explain(&base, &new, "cpu");
    assert!(e.pruned > 10_000, "{}", e.pruned);
    let [cause] = &e.causes[..] else { panic!("{:?}", e.causes) };
    assert_eq!((cause.kind, cause.function.as_deref()), (CauseKind::Own, Some("pkg.f7")));
    let own_cost = |side: &Side| side.mean(|stack| stack.last().is_some_and(|name| name == "pkg.f7"));
    assert_eq!([cause.evidence.base.value, cause.evidence.new.value], [&base, &new].map(own_cost));
    assert_eq!(contradictions(&e, &base, &new), [""; 0]);
}

#[test]
fn negative_values_are_reported_and_count_in_the_remainder() {
    let side = |n: i64, below: i64| {
        let all = [(vec!["main.main", "main.work"], vec![n]), (vec!["main.main", "main.gave"], vec![below])];
        Side::of(&[stacks(&[("samples", "count")], &all)], "samples")
    };
    let e = explain(&side(1000, -100), &side(1000, -400), "samples");
    assert_eq!(
        e.summary.warnings,
        ["9% of the base's and 29% of the new side's samples could not be attributed to a cause: negative values"]
    );
    assert_eq!((e.total, e.account.rest), ((1100.0, 1400.0), 300.0), "{:?}", e.account);
    assert!(!e.account.by_chance && e.causes.is_empty(), "{e:?}");
}
