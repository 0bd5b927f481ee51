//! Filters on labels (`tagfocus`, `tagignore`), and the text of label values in frames of `tagroot` and `tagleaf`.
//!
//! All numeric labels of one key have the same unit, which is guessed from all samples as pprof does
//! ([`number_units`]).

use std::borrow::Cow;

use regex::bytes::Regex;

use super::pattern;
use crate::Result;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::units;

/// Returns the values of one label key in a sample.
pub(crate) fn label_values<'p>(p: &'p Profile, sample: &Sample<'p>, key: &[u8]) -> Vec<LabelValue> {
    sample.labels().filter(|l| p.string(l.key) == key).map(|l| l.value).collect()
}

/// Formats label values as pprof does: strings first, then numbers in a suitable unit, separated by commas.
pub(crate) fn printed(p: &Profile, values: &[LabelValue]) -> Vec<u8> {
    let mut texts: Vec<Cow<'_, [u8]>> = Vec::new();
    let mut numbers = Vec::new();
    for value in values {
        match *value {
            LabelValue::Text(t) => texts.push(p.string(t).into()),
            LabelValue::Number(v, unit) => numbers.push(units::show(v, &p.text(unit)).into_bytes().into()),
        }
    }
    texts.append(&mut numbers);
    texts.join(&[b','][..])
}

/// Returns the unit of each numeric label key, guessed as pprof does: the first unit that any sample gives, otherwise
/// bytes for `alignment` and `request`, otherwise the key itself.
pub(crate) fn number_units<'p>(profiles: impl Iterator<Item = &'p Profile>) -> HashMap<Vec<u8>, String> {
    let mut units: HashMap<Vec<u8>, String> = HashMap::default();
    for p in profiles.filter(|p| p.has_labels()) {
        let (mut last, mut seen) = (None, HashSet::<_>::default());
        for label in p.samples().flat_map(|s| s.labels()) {
            let LabelValue::Number(_, unit) = label.value else { continue };
            // Most samples repeat one key and unit.
            if last.replace((label.key, unit)) == Some((label.key, unit)) || !seen.insert((label.key, unit)) {
                continue;
            }
            let key_unit = units.entry(p.string(label.key).to_vec()).or_default();
            if key_unit.is_empty() {
                *key_unit = p.text(unit);
            }
        }
    }
    for (key, unit) in &mut units {
        if unit.is_empty() {
            *unit = match key.as_slice() {
                b"alignment" | b"request" => "bytes".to_owned(),
                key => String::from_utf8_lossy(key).into_owned(),
            };
        }
    }
    units
}

/// A parsed `tagfocus` or `tagignore`.
pub(crate) struct TagFilter {
    key: Option<String>,
    test: TagTest,
}

enum TagTest {
    /// With a key, one expression must match a value of the key. Without a key, each expression must match a
    /// `key:value`.
    Regexes(Vec<Regex>),
    /// Matches numeric labels from `low` to `high` inclusive, in `unit`.
    Range { low: f64, high: f64, unit: String },
}

impl TagFilter {
    pub(crate) fn new(name: &str, value: &str) -> Result<TagFilter> {
        let (key, value) = match value.split_once('=') {
            Some((key, value)) => (Some(key).filter(|k| !k.is_empty()).map(str::to_owned), value),
            None => (None, value),
        };
        let test = match parse_range(value) {
            Some(range) => range,
            None => TagTest::Regexes(value.split(',').map(|r| pattern::compile(name, r)).collect::<Result<_>>()?),
        };
        Ok(TagFilter { key, test })
    }

    /// Returns the filter for one profile. `units` holds the units of numeric labels. The filter caches its results,
    /// because a few bytes in each sample may refer to a label of a megabyte.
    pub(crate) fn on<'f>(
        &'f self,
        p: &'f Profile,
        units: &'f HashMap<Vec<u8>, String>,
    ) -> impl FnMut(&Sample<'_>) -> bool {
        let has_key = |key: StringId| self.key.as_ref().is_none_or(|k| k.as_bytes() == p.string(key));
        let mut unit_of: HashMap<StringId, &str> = HashMap::default();
        let mut matched: HashMap<(StringId, StringId), Box<[bool]>> = HashMap::default();
        move |sample| match &self.test {
            TagTest::Range { low, high, unit } => sample.labels().any(|l| match l.value {
                LabelValue::Number(v, _) if has_key(l.key) => {
                    let find_unit = || units.get(p.string(l.key)).map_or("", String::as_str);
                    let (v, unit_of_v) = units::convert(v, unit_of.entry(l.key).or_insert_with(find_unit), unit);
                    unit_of_v == *unit && (*low..=*high).contains(&v)
                }
                _ => false,
            }),
            TagTest::Regexes(regexes) => {
                let mut hits = vec![false; regexes.len()];
                for l in sample.labels() {
                    let LabelValue::Text(text) = l.value else { continue };
                    if !has_key(l.key) {
                        continue;
                    }
                    let matches = matched.entry((l.key, text)).or_insert_with(|| match self.key {
                        Some(_) => regexes.iter().map(|r| r.is_match(p.string(text))).collect(),
                        None => {
                            let both = [p.string(l.key), b":", p.string(text)].concat();
                            regexes.iter().map(|r| r.is_match(&both)).collect()
                        }
                    });
                    hits.iter_mut().zip(matches).for_each(|(hit, matches)| *hit |= *matches);
                }
                if self.key.is_some() { hits.contains(&true) } else { !hits.contains(&false) }
            }
        }
    }
}

/// Parses `32kb`, `:64kb`, `4mb:` or `12kb:64mb`. Anything else is a regular expression.
fn parse_range(value: &str) -> Option<TagTest> {
    let number = |s: &str| -> Option<(i64, String)> {
        let digits = s.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(s.len());
        let unit = &s[digits..];
        unit.chars().all(|c| c.is_ascii_alphabetic()).then_some(())?;
        Some((s[..digits].parse().ok()?, unit.to_owned()))
    };
    let range = |low: f64, high: f64, unit: String| Some(TagTest::Range { low, high, unit });
    let scale = |(v, unit): (i64, String)| units::convert(v, &unit, &unit);
    match value.split_once(':') {
        None => {
            let (v, unit) = scale(number(value)?);
            range(v, v, unit)
        }
        Some(("", high)) => {
            let (high, unit) = scale(number(high)?);
            range(f64::NEG_INFINITY, high, unit)
        }
        Some((low, "")) => {
            let (low, unit) = scale(number(low)?);
            range(low, f64::INFINITY, unit)
        }
        Some((low, high)) => {
            let (low, unit) = scale(number(low)?);
            let (v, from) = number(high)?;
            let (high, high_unit) = units::convert(v, &from, &unit);
            if high_unit != unit {
                return None;
            }
            range(low, high, unit)
        }
    }
}
