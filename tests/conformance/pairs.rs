//! The pairs of profiles to compare, and the questions about each.
//!
//! The filters are chosen from the names in the pair, deterministically. A filter must match some samples but not all:
//! otherwise a wrong implementation could give the same result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::exceptions::ForPprof;
use crate::profile::{Frame, Label, LabelValue, Profile, Sample};
use crate::question::{Choice, Granularity, Question};
use crate::units;

pub struct Pair {
    pub name: String,
    pub base: Input,
    pub new: Input,
}

/// Filters that are used together.
struct Variant {
    choices: Vec<Choice>,
    /// True if they match the names of binaries.
    by_binary: bool,
    /// True if numbers become names, so that their formatting matters.
    names_numbers: bool,
}

impl Variant {
    fn of(choices: Vec<Choice>) -> Variant {
        Variant { choices, by_binary: false, names_numbers: false }
    }
}

/// One profile of a pair.
pub struct Input {
    pub path: PathBuf,
    pub for_pprof: ForPprof,
    pub profile: Profile,
}

impl Input {
    pub fn read(path: PathBuf) -> Input {
        Input { for_pprof: ForPprof::new(&path), profile: Profile::read(&path), path }
    }

    pub fn unit_of(&self, sample_type: &str) -> Option<&str> {
        self.profile
            .sample_types
            .iter()
            .find(|listed_type| listed_type.name == sample_type)
            .map(|listed_type| listed_type.unit.as_str())
    }
}

impl Pair {
    pub fn read(name: &str, base: PathBuf, new: PathBuf) -> Pair {
        Pair { name: name.into(), base: Input::read(base), new: Input::read(new) }
    }

    /// Returns the sample types that both sides have, with the finer of their units.
    pub fn common_sample_types(&self) -> Vec<(String, String)> {
        let in_both = self.new.profile.sample_types.iter().filter_map(|new| {
            let base_unit = self.base.unit_of(&new.name)?;
            Some((new.name.clone(), units::finer(&new.unit, base_unit)))
        });
        in_both.collect()
    }

    /// Returns every question about this pair: sample type x granularity x (plain, noinlines, each filter, some
    /// combinations).
    pub fn questions(&self) -> Vec<Question> {
        let variants = self.variants();
        let mut questions = Vec::new();
        for (sample_type, unit) in self.common_sample_types() {
            for granularity in Granularity::ALL {
                let asked = variants.iter().filter_map(|variant| {
                    let unit = match variant.names_numbers {
                        false => unit.clone(),
                        true if units::has_family(&unit) => return None,
                        // pprof formats numbers that become names in the unit of the report. With `minimum`, which we
                        // support too, counts are still printed unchanged.
                        true => "minimum".into(),
                    };
                    let (sample_type, choices) = (sample_type.clone(), variant.choices.clone());
                    let possible = granularity != Granularity::Files || !variant.by_binary;
                    possible.then_some(Question { sample_type, unit, granularity, choices })
                });
                questions.extend(asked);
            }
        }
        questions
    }

    pub fn has_labels(&self) -> bool {
        let labelled = |input: &Input| input.profile.samples.iter().any(|sample| !sample.labels.is_empty());
        labelled(&self.base) && labelled(&self.new)
    }

    pub fn plain(&self, granularity: Granularity) -> Question {
        let (sample_type, unit) = self.common_sample_types().swap_remove(0);
        Question { sample_type, unit, granularity, choices: Vec::new() }
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.base.profile.samples.iter().chain(&self.new.profile.samples)
    }

    fn variants(&self) -> Vec<Variant> {
        let middle = self.splitting_name(|sample| {
            let inner = sample.get(1..sample.len().saturating_sub(1)).unwrap_or_default();
            inner.iter().map(|frame| frame.function.as_str()).collect()
        });
        let inlined = self.splitting_name(|sample| {
            sample.iter().filter(|frame| frame.inlined).map(|frame| frame.function.as_str()).collect()
        });
        let file = self.splitting_name(|sample| sample.iter().map(|frame| frame.file.as_str()).collect());
        let binary = self.splitting_name(|sample| sample.iter().map(|frame| frame.binary.as_str()).collect());

        let one = |name, value: &str| Variant::of(vec![Choice::new(name, value)]);
        let mut variants = vec![Variant::of(vec![]), Variant::of(vec![Choice::switch("noinlines")])];
        if let Some(middle) = &middle {
            for filter in ["focus", "ignore", "hide", "show", "show_from", "prune_from"] {
                variants.push(one(filter, middle));
            }
        }
        if let Some(inlined) = &inlined {
            for filter in ["hide", "show_from", "prune_from"] {
                variants.push(one(filter, inlined));
            }
            variants.push(Variant::of(vec![Choice::new("hide", inlined), Choice::switch("noinlines")]));
        }
        // Filters match file names too. `show` with a file keeps several frames of a stack.
        if let Some(file) = &file {
            for filter in ["ignore", "hide", "show"] {
                variants.push(one(filter, file));
            }
        }
        if let (Some(middle), Some(file)) = (&middle, &file) {
            variants.push(Variant::of(vec![Choice::new("focus", middle), Choice::new("ignore", file)]));
            variants.push(Variant::of(vec![Choice::new("show_from", middle), Choice::new("hide", file)]));
        }
        // Filters match the names of binaries, too. `exceptions::FILES` explains why not at `files`.
        if let Some(binary) = &binary {
            for filter in ["focus", "hide", "show"] {
                variants.push(Variant { by_binary: file.is_some(), ..one(filter, binary) });
            }
        }

        if let Some((key, value)) = self.text_label() {
            let expression = format!("{key}=^{}$", escaped(&value));
            variants.push(one("tagfocus", &expression));
            variants.push(one("tagignore", &expression));
            // Without a key, every expression must match some `key:value`. With a key, any of them must match a value
            // of the key.
            variants.push(one("tagfocus", &format!("^{key}:,{}$", escaped(&value).replace(',', "."))));
            variants.push(one("tagignore", &format!("{key}=^{}$,^x", escaped(&value).replace(',', "."))));
            // pprof treats its own label for the base like a label of the profile, and needs it for reports of diffs.
            variants.push(one("tagshow", &format!("^{}$|^pprof::base$", escaped(&key))));
            variants.push(one("taghide", &format!("^{}$", escaped(&key))));
            let shown = vec![Choice::new("tagshow", "[a-m]|^pprof::base$"), Choice::new("taghide", "^[d-k]")];
            variants.push(Variant::of(shown));
            // Labels create frames and select samples before they are hidden.
            let hidden = vec![Choice::new("taghide", escaped(&key)), Choice::new("tagfocus", &expression)];
            variants.push(Variant::of(hidden));
            let hidden = vec![Choice::new("taghide", escaped(&key)), Choice::new("tagroot", &key)];
            variants.push(Variant { names_numbers: self.has_numbers(&key), ..Variant::of(hidden) });
            // Filters see the frames that were created from labels.
            let focused = vec![Choice::new("tagroot", &key), Choice::new("focus", escaped(&value))];
            // A key that no sample has adds a frame without a name to each stack.
            let two_keys = format!("{key},absent");
            for variant in [one("tagroot", &key), one("tagleaf", &key), one("tagroot", &two_keys), Variant::of(focused)]
            {
                variants.push(Variant { names_numbers: self.has_numbers(&key), ..variant });
            }
            if let Some(middle) = &middle {
                variants.push(Variant::of(vec![Choice::new("tagfocus", &expression), Choice::new("hide", middle)]));
            }
        }
        if let Some((key, value, unit)) = self.number_label() {
            variants.push(Variant { names_numbers: true, ..one("tagroot", &key) });
            variants.push(one("tagshow", &format!("^{}$|^pprof::base$", escaped(&key))));
            // pprof only accepts letters in the unit of a range.
            if unit.chars().all(|letter| letter.is_ascii_alphabetic()) {
                variants.push(one("tagfocus", &format!("{key}={value}{unit}:")));
                variants.push(one("tagfocus", &format!("{key}={value}{unit}")));
                variants.push(one("tagignore", &format!("{key}=:{value}{unit}")));
                variants.push(one("tagfocus", &format!(":{value}{unit}")));
                variants.push(one("tagignore", &format!("{key}={}{unit}:{value}{unit}", value / 2)));
            }
        }
        variants
    }

    fn has_numbers(&self, key: &str) -> bool {
        let is_number = |label: &Label| label.key == key && matches!(label.value, LabelValue::Number { .. });
        self.samples().flat_map(|sample| &sample.labels).any(is_number)
    }

    /// Returns the most frequent name among those in at most two thirds of the samples. Ties are broken alphabetically.
    fn splitting_name<'a>(&'a self, names: impl Fn(&'a [Frame]) -> Vec<&'a str>) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut samples = 0;
        for sample in self.samples() {
            samples += 1;
            let mut frame_names = names(&sample.frames);
            frame_names.sort();
            frame_names.dedup();
            for name in frame_names.into_iter().filter(|name| !name.is_empty()) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let at_most = samples * 2 / 3;
        let best = counts.iter().filter(|(_, count)| **count <= at_most).max_by(|left, right| {
            // For equal counts, selects the first name; `max_by` alone would select the last.
            left.1.cmp(right.1).then(right.0.cmp(left.0))
        });
        best.or_else(|| counts.iter().next()).map(|(name, _)| escaped(name))
    }

    fn text_label(&self) -> Option<(String, String)> {
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for label in self.samples().flat_map(|sample| &sample.labels) {
            if let LabelValue::Text(text) = &label.value {
                *counts.entry((&label.key, text)).or_default() += 1;
            }
        }
        let (&(key, value), _) = counts.iter().max_by(|left, right| left.1.cmp(right.1).then(right.0.cmp(left.0)))?;
        Some((key.into(), value.into()))
    }

    /// Returns the median value of the alphabetically first numeric label, with its unit in pprof.
    fn number_label(&self) -> Option<(String, i64, String)> {
        let mut numbers: BTreeMap<&str, (Vec<i64>, &str)> = BTreeMap::new();
        for label in self.samples().flat_map(|sample| &sample.labels) {
            if let LabelValue::Number { value, unit } = &label.value {
                let entry = numbers.entry(&label.key).or_insert((Vec::new(), unit));
                entry.0.push(*value);
            }
        }
        let (key, (mut values, unit)) = numbers.into_iter().next()?;
        values.sort();
        let unit = match (unit, key) {
            ("", "alignment" | "request") => "bytes",
            ("", key) => key,
            (unit, _) => unit,
        };
        Some((key.into(), values[values.len() / 2], unit.into()))
    }
}

/// Returns a regular expression that matches exactly this text, in RE2 and in Rust's regex.
fn escaped(text: &str) -> String {
    let special = |letter| "\\.+*?()|[]{}^$".contains(letter);
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// Returns the pairs NAME.base.pb.gz and NAME.new.pb.gz of a folder, sorted by name.
pub fn in_folder(folder: &Path) -> Vec<Pair> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".base.pb.gz")?.to_string()))
        .collect();
    names.sort();
    let side = |name: &str, side: &str| folder.join(format!("{name}.{side}.pb.gz"));
    names.iter().map(|name| Pair::read(name, side(name, "base"), side(name, "new"))).collect()
}
