//! Compares the engine with the plain implementation: prost's messages and separate validity rules. Both accept an
//! input or both refuse it, and an accepted input has the same samples and rows.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use crate::inputs::{Inputs, profiles};
use crate::oracle;
use crate::shared::LIMIT;
use pprofdiff::proto::Profile as Message;
use pprofdiff::samples::LabelValue;
use pprofdiff::{Demangle, Diff, Granularity, LoadOptions, Profile, Query, Sort};
use prost::Message as _;

/// prost only reads pprof's format, and names are compared without demangling.
static PPROF: LazyLock<LoadOptions> = LazyLock::new(|| {
    let mut options = LIMIT.clone().with_input_format("pprof").unwrap_or_else(|e| panic!("{e}"));
    options.demangle = Demangle::Off;
    options
});

pub fn run(data: &[u8]) {
    if data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || !is_plain(data, &PROFILE) {
        return;
    }
    let loaded = pprofdiff::from_bytes("in", data, &PPROF);
    let message = Message::decode(data).map_err(|e| e.to_string()).and_then(|m| valid(&m).map(|()| m));
    match (loaded, message) {
        (Ok(profile), Ok(message)) => same(profile, &message),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(e)) => panic!("accepted, but: {e}"),
        (Err(e), Ok(_)) => panic!("refused, but valid: {e}"),
    }
}

/// Returns real profiles.
pub fn seeds() -> Inputs {
    profiles()
}

/// The message fields of a message type, with their own message fields.
struct Kind(&'static [(u64, Kind)]);
const LEAF: Kind = Kind(&[]);
const PROFILE: Kind =
    Kind(&[(1, LEAF), (2, Kind(&[(3, LEAF)])), (3, LEAF), (4, Kind(&[(4, LEAF)])), (5, LEAF), (11, LEAF)]);

/// Returns false for content that the two intentionally read differently: numbers with bits past the 64th, groups, a
/// second period type (prost merges them, Go and we take the last), and a second time (a sign that two files were
/// concatenated).
fn is_plain(mut data: &[u8], kind: &Kind) -> bool {
    let top = kind.0.len() > 2;
    let mut seen = HashSet::new();
    while !data.is_empty() {
        let Some(key) = number(&mut data) else { return false };
        let once = top && matches!(key >> 3, 9 | 11);
        if once && !seen.insert(key >> 3) {
            return false;
        }
        match key & 7 {
            0 => {
                if number(&mut data).is_none() {
                    return false;
                }
            }
            2 => {
                let Some(len) = number(&mut data) else { return false };
                let Some((inside, rest)) = data.split_at_checked(usize::try_from(len).unwrap_or(usize::MAX)) else {
                    return true; // truncated, for both
                };
                data = rest;
                if kind.0.iter().any(|(field, inner)| *field == key >> 3 && !is_plain(inside, inner)) {
                    return false;
                }
            }
            1 | 5 => match data.split_at_checked(if key & 7 == 1 { 8 } else { 4 }) {
                Some((_, rest)) => data = rest,
                None => return true,
            },
            _ => return false,
        }
    }
    true
}

/// Parses a number without bits past the 64th.
fn number(data: &mut &[u8]) -> Option<u64> {
    let mut v = 0u128;
    for i in 0..10 {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        v |= u128::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return u64::try_from(v).ok();
        }
    }
    None
}

/// The validity rules in their simplest form.
fn valid(p: &Message) -> Result<(), String> {
    let ensure = |ok: bool, rule: &str| if ok { Ok(()) } else { Err(rule.to_owned()) };
    ensure(p.string_table.first().is_some_and(Vec::is_empty), "the first string is empty")?;
    let string = |&i: &i64| usize::try_from(i).is_ok_and(|i| i < p.string_table.len());
    let types = p.sample_type.iter().chain(&p.period_type).all(|t| string(&t.r#type) && string(&t.unit));
    ensure(types, "strings of types exist")?;
    let header = [p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url];
    ensure(header.iter().chain(&p.comment).all(string), "strings of the header exist")?;
    ensure(p.mapping.iter().all(|m| string(&m.filename) && string(&m.build_id)), "strings of mappings exist")?;
    let of_functions = p.function.iter().all(|f| [f.name, f.system_name, f.filename].iter().all(string));
    ensure(of_functions, "strings of functions exist")?;
    fn distinct(ids: impl Iterator<Item = u64>) -> Option<HashSet<u64>> {
        let mut seen = HashSet::new();
        for id in ids {
            if id == 0 || !seen.insert(id) {
                return None;
            }
        }
        Some(seen)
    }
    distinct(p.mapping.iter().map(|m| m.id)).ok_or("ids of mappings are distinct and not 0")?;
    let functions = distinct(p.function.iter().map(|f| f.id)).ok_or("ids of functions are distinct and not 0")?;
    let locations = distinct(p.location.iter().map(|l| l.id)).ok_or("ids of locations are distinct and not 0")?;
    let lines = p.location.iter().flat_map(|l| &l.line).all(|l| functions.contains(&l.function_id));
    ensure(lines, "functions of lines exist")?;
    let mut sums = vec![0u128; p.sample_type.len()];
    for s in &p.sample {
        ensure(s.value.len() == sums.len() && !sums.is_empty(), "a value for each type")?;
        ensure(s.location_id.iter().all(|id| locations.contains(id)), "locations of samples exist")?;
        ensure(s.label.iter().all(|l| [l.key, l.str, l.num_unit].iter().all(string)), "strings of labels exist")?;
        s.value.iter().zip(&mut sums).for_each(|(v, sum)| *sum += u128::from(v.unsigned_abs()));
    }
    ensure(sums.iter().all(|&s| s <= i64::MAX as u128), "values add up within int64")
}

fn same(p: Profile, message: &Message) {
    assert_eq!(p.n_samples(), message.sample.len());
    assert_eq!((p.n_locations(), p.n_functions()), (message.location.len(), message.function.len()));
    assert_eq!(
        (p.time_nanos(), p.duration_nanos(), p.period()),
        (message.time_nanos, message.duration_nanos, message.period)
    );
    let text = |i: i64| oracle::string(message, i);
    assert_eq!(p.comments(), message.comment.iter().map(|&c| text(c)).collect::<Vec<_>>());
    let types: Vec<_> = message.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
    assert_eq!(p.sample_types(), types);
    assert_eq!(p.mapping_files(), message.mapping.iter().map(|m| text(m.filename)).collect::<Vec<_>>());
    for (ours, plain) in p.samples().zip(&message.sample) {
        let mut locations = Vec::new();
        ours.for_each_location(|l| locations.push(message.location[l as usize].id));
        assert_eq!(locations, plain.location_id);
        let mut values = Vec::new();
        ours.for_each_value(|v| values.push(v));
        assert_eq!(values, plain.value);
        if p.is_diff() {
            continue;
        }
        let says = |l: &&pprofdiff::proto::Label| l.str != 0 || l.num != 0 || l.num_unit != 0;
        let plain: Vec<_> = plain.label.iter().filter(says).collect();
        let ours: Vec<_> = ours.labels().collect();
        assert_eq!(ours.len(), plain.len());
        for (ours, plain) in ours.iter().zip(plain) {
            let bytes = |i: i64| message.string_table[i as usize].as_slice();
            assert_eq!(p.string(ours.key), bytes(plain.key));
            match ours.value {
                LabelValue::Text(t) => assert_eq!(p.string(t), bytes(plain.str)),
                LabelValue::Number(n, u) => assert_eq!((n, p.string(u)), (plain.num, bytes(plain.num_unit))),
            }
        }
    }
    // The plain implementation has no filters, does not distinguish invalid UTF-8 names, and does not normalize unusual
    // paths. Its time is quadratic in the size.
    let unusual = |s: &[u8]| {
        std::str::from_utf8(s).is_err()
            || s.starts_with(b".")
            || s.ends_with(b"/")
            || s.windows(2).any(|w| w == b"//" || w == b"/.")
    };
    if p.is_diff()
        || message.drop_frames != 0
        || message.string_table.iter().any(|s| unusual(s))
        || message.sample.len() > 100
    {
        return;
    }
    let Ok(diff) = Diff::of_profile(&Arc::new(p)) else { return };
    for column in 0..types.len() {
        if types[..column].iter().any(|t| t.0 == types[column].0) {
            continue;
        }
        let query = Query::default().with_sample_type(types[column].0.clone()).with_granularity(Granularity::Lines);
        let Ok(view) = diff.measure(&query) else { continue };
        if view.summary().unit != types[column].1 {
            continue; // two types with the same name
        }
        let plain = oracle::stacks(message, column, Granularity::Lines, false);
        let (top, mut got) = (view.top(Sort::Flat), BTreeMap::new());
        for r in &top.rows {
            let f = |f| {
                (
                    top.frames.name(f),
                    top.frames.file(f),
                    top.frames.line(f),
                    top.frames.address(f),
                    top.frames.mapping(f),
                )
            };
            assert!(got.insert(f(r.frame), ((0, r.flat.new), (0, r.cum.new))).is_none(), "a frame has two rows");
        }
        oracle::assert_same(&got, &oracle::top(&[], &plain), "top");
        let stacks = view.stacks(false);
        let sum = plain.iter().filter(|s| !s.frames.is_empty()).map(|s| s.value).sum::<i64>();
        assert_eq!(stacks.rows.iter().map(|r| r.weight.new).sum::<i64>(), sum);
        assert_eq!(stacks.rows.len(), oracle::by_stack(&[], &plain, false).len());
    }
}
