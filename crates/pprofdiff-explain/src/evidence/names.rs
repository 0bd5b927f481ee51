//! The names of frames in the search: names that compilers number anew are one name. Each name has a class, such as
//! system or program.

use std::borrow::Cow;
use std::sync::Arc;

use super::rows::{FrameName, SpelledName};
use pprofdiff::shared::{Asked, Class, Columns, FrameClasses, Runtime, UserRules};
use pprofdiff::{Frames, Sort};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::canonical::{Canonical, Variants, canonical_of};
use pprofdiff_profile::random::{HashMap, HashSet};

/// The distinct texts of frames. They are classified once for all sample types.
pub(crate) struct FrameTexts {
    pub runtime: &'static Runtime,
    texts: Vec<Arc<str>>,
    classes: Vec<Class>,
    /// Canonical names of texts that differ from their canonical name. Most texts are their own canonical name, and a
    /// profile may have a million of them.
    canonical: CanonicalNames,
    /// The numbers of texts in the order of canonical names.
    order: Vec<u32>,
    /// By frame: the number of its text.
    frame_texts: Vec<u32>,
}

/// Canonical names that differ from their text, by the number of the text.
type CanonicalNames = HashMap<u32, RenamedText>;

/// A canonical name that differs from its text.
#[derive(Clone)]
struct RenamedText {
    name: Arc<str>,
    /// The text without numbers that belong to a run or a build.
    stable: Arc<str>,
    /// The relation between stable names that share the name.
    variants: Variants,
}

/// Returns the canonical name of a text.
fn name_of_text<'t>(texts: &'t [Arc<str>], canonical: &'t CanonicalNames, text: u32) -> &'t Arc<str> {
    canonical.get(&text).map_or(&texts[text as usize], |other| &other.name)
}

impl FrameTexts {
    /// Classifies the texts of all frames.
    pub fn classify(frames: &Frames, user_rules: &UserRules) -> FrameTexts {
        let FrameClasses { runtime, texts, classes, frame_texts } =
            FrameClasses::classify(frames, user_rules, Asked::All);
        let renamed = checkpointed((0..).zip(&texts)).filter_map(|(number, text)| {
            let Canonical { stable, name, variants } = canonical_of(text);
            (name != **text).then(|| (number, RenamedText { name: name.into(), stable: stable.into(), variants }))
        });
        let canonical: CanonicalNames = renamed.collect();
        let order = ordered(&texts, &canonical);
        FrameTexts { runtime, texts, classes, canonical, order, frame_texts }
    }

    /// Returns the canonical names in order, and the canonical name of each frame.
    pub(super) fn names(&self, columns: &Columns<'_>) -> (Vec<FrameName>, Vec<u32>) {
        let name = |text: u32| name_of_text(&self.texts, &self.canonical, text);
        let is_same = |pair: &[u32]| name(pair[0]) == name(pair[1]);
        let are_shared = self.order.windows(2).any(is_same);
        let costs = are_shared.then(|| self.costs(columns));
        let (mut canonical, mut order) = (Cow::Borrowed(&self.canonical), Cow::Borrowed(&self.order));
        if let Some(costs) = &costs {
            keep_apart(canonical.to_mut(), &self.texts, costs);
            *order.to_mut() = ordered(&self.texts, &canonical);
        }
        let mut names: Vec<FrameName> = Vec::with_capacity(order.len());
        let mut name_of = vec![0; self.texts.len()];
        for i in order.iter().map(|&i| i as usize) {
            let text = name_of_text(&self.texts, &canonical, i as u32);
            if names.last().is_none_or(|last| last.text != *text) {
                names.push(FrameName { text: text.clone(), class: Class::default(), shown: Box::default() });
            }
            let number = names.len() - 1;
            let (class, other) = (&mut names[number].class, self.classes[i]);
            class.system |= other.system;
            class.background |= other.background;
            class.artefact |= other.artefact;
            class.own_waits |= other.own_waits;
            class.benchmark |= other.benchmark;
            class.collects |= other.collects;
            class.allocates |= other.allocates;
            class.starts |= other.starts;
            class.program |= other.program;
            name_of[i] = number as u32;
        }
        show(&mut names, &self.texts, &name_of, costs.as_deref());
        (names, self.frame_texts.iter().map(|&text| name_of[text as usize]).collect())
    }

    /// Returns the cost of each text, by side. The measure includes A/A runs, so costs of the base are multiplied by
    /// the fraction of its runs that are compared.
    fn costs(&self, columns: &Columns<'_>) -> Vec<[f64; 2]> {
        let runs = columns.value.walks_of(true).count() as f64;
        let compared_share = (runs - columns.learned as f64) / runs.max(1.0);
        let mut costs = vec![[0.0; 2]; self.texts.len()];
        for row in columns.value.top(Sort::Cum).rows {
            let cost = &mut costs[self.frame_texts[row.frame as usize] as usize];
            *cost = [cost[0] + row.cum.base as f64 * compared_share, cost[1] + row.cum.new as f64];
        }
        costs
    }
}

/// Returns the numbers of texts in the order of canonical names.
fn ordered(texts: &[Arc<str>], canonical: &CanonicalNames) -> Vec<u32> {
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| name_of_text(texts, canonical, a).cmp(name_of_text(texts, canonical, b)));
    order
}

/// Restores stable names that both sides have, so that only names without a partner are matched by a canonical name.
fn keep_apart(canonical: &mut CanonicalNames, texts: &[Arc<str>], costs: &[[f64; 2]]) {
    let costs = costs_of_stable(canonical, texts, costs);
    let cost = |other: &RenamedText| costs.get(&other.stable).copied().unwrap_or_default();
    let is_on_both = |other: &RenamedText| cost(other).iter().all(|&cost| cost != 0.0);
    let is_on_one = |other: &RenamedText| !is_on_both(other) && cost(other) != [0.0; 2];
    let mut changed: HashSet<Arc<str>> = HashSet::default();
    for other in checkpointed(canonical.values()) {
        if other.variants == Variants::Numbered && is_on_one(other) {
            changed.insert(other.name.clone());
        }
    }
    canonical.retain(|&text, other| {
        let is_kept = match other.variants {
            Variants::Own => is_on_both(other),
            Variants::Numbered => is_on_both(other) && !changed.contains(&other.name),
            Variants::One | Variants::Random => false,
        };
        if is_kept {
            other.name = other.stable.clone();
        }
        other.name != texts[text as usize]
    });
}

/// Sums the costs of the texts that share a stable name, for names that differ from their text.
fn costs_of_stable(canonical: &CanonicalNames, texts: &[Arc<str>], costs: &[[f64; 2]]) -> HashMap<Arc<str>, [f64; 2]> {
    let mut sums: HashMap<Arc<str>, [f64; 2]> =
        canonical.values().map(|other| (other.stable.clone(), [0.0; 2])).collect();
    for (text, cost) in checkpointed((0..).zip(costs)) {
        let stable = canonical.get(&text).map_or(&texts[text as usize], |other| &other.stable);
        if let Some(sum) = sums.get_mut(stable) {
            *sum = [sum[0] + cost[0], sum[1] + cost[1]];
        }
    }
    sums
}

/// Lists the texts of each canonical name with their costs, except texts without cost that share the name. The list is
/// empty if the only text is the canonical name itself, because there is only one spelling.
fn show(names: &mut [FrameName], texts: &[Arc<str>], name_of: &[u32], costs: Option<&[[f64; 2]]>) {
    let mut sharing = vec![0u32; names.len()];
    name_of.iter().for_each(|&name| sharing[name as usize] += 1);
    let mut shown: HashMap<u32, Vec<SpelledName>> = HashMap::default();
    for (i, (text, &name)) in texts.iter().zip(name_of).enumerate() {
        let cost = costs.map_or([0.0; 2], |costs| costs[i]);
        let is_alone = sharing[name as usize] == 1;
        if !(is_alone && *text == names[name as usize].text) && (is_alone || cost != [0.0; 2]) {
            shown.entry(name).or_default().push((text.clone(), cost));
        }
    }
    for (name, mut shown) in shown {
        shown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        names[name as usize].shown = shown.into();
    }
}
