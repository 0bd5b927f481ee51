//! The plan of the filters for one profile. It decides which lines of each location remain, and which samples are kept.
//!
//! pprof edits the profile in steps: drop_frames, tagroot and tagleaf, focus / ignore / hide / show, show_from,
//! tagfocus / tagignore, tagshow / taghide, prune_from, noinlines. All filters except the tag filters depend only on
//! the location, and not on the sample. A [`FilterPlan`] therefore applies them once per location. It stores the
//! remaining lines and a set of flags. Filtering a sample is then a loop over flags ([`FilterPlan::apply`]).
//!
//! Filtering by location has one visible effect, which is kept because pprof's numbers have it too. If show_from or
//! prune_from match inside an inlined group, the group is cut in all stacks, including stacks that are also cut
//! elsewhere.
//!
//! As in pprof, all profiles use the `drop_frames` of the new side's first profile. If each side used its own, frames
//! that only one side drops would look added or removed.

use regex::bytes::Regex;

use super::compiled::Compiled;
use super::names::{
    NameMatches, by_simple_name, cut_of_drops, dropped_functions, folded_functions, retain_from, simple_name,
};
use crate::diff::tags::{label_values, printed};
use crate::{Error, Result};
use pprofdiff_profile::Profile;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::shared::SampleSelection;

/// For each filter that is set, its name and whether it matched anything. A filter without a match causes a warning.
pub(crate) type FilterHits = Vec<(&'static str, bool)>;

// The flags of a location.
pub(super) const DROP: u8 = 1;
pub(super) const DROP_BENEATH: u8 = 2;
const FOCUS: u8 = 4;
const IGNORE: u8 = 8;
const HIDDEN: u8 = 16;
const SHOW_FROM: u8 = 32;
const PRUNE_FROM: u8 = 64;
const FOLDED: u8 = 128;

/// The plan of the filters for one profile.
#[derive(Clone)]
pub(crate) struct FilterPlan {
    /// True if no filter changes samples or lines.
    trivial: bool,
    flags: Vec<u8>,
    /// The remaining lines of location `l` are `lines[first[l]..first[l + 1]]`. Empty if no location changes.
    first: Vec<u32>,
    lines: Vec<u32>,
    /// Frames that represent label values, as (values, key). They are numbered after the profile's own locations.
    pseudo: Vec<(Vec<u8>, Vec<u8>)>,
    /// For each sample in order, its pseudo-locations at the leaf and at the root.
    added: Vec<(Vec<u32>, Vec<u32>)>,
    drops: bool,
    by_name: bool,
    show_from: bool,
    prune_from: bool,
    folds: bool,
    /// For each sample in order, whether the tag filters keep it. Empty if there are no tag filters.
    tagged: Vec<bool>,
    /// The keys of labels that are hidden.
    hidden_keys: HashSet<StringId>,
}

impl FilterPlan {
    /// Creates the plan for one profile. `rules` is the profile with the drop_frames to apply. `units` holds the units
    /// of numeric labels.
    pub(crate) fn new(
        profile: &Profile,
        rules: &Profile,
        filters: &Compiled,
        folded: &HashSet<String>,
        units: &HashMap<Vec<u8>, String>,
        warnings: &mut Vec<String>,
    ) -> Result<(FilterPlan, FilterHits)> {
        let folded = folded_functions(profile, folded);
        let mut matched = FilterHits::new();
        let dropped = if filters.all_frames { None } else { dropped_functions(profile, rules, warnings) };
        let tagged = filters.tagfocus.is_some() || filters.tagignore.is_some();
        let pseudo = !filters.tagroot.is_empty() || !filters.tagleaf.is_empty();
        let mut plan = FilterPlan {
            trivial: false,
            flags: Vec::new(),
            first: Vec::new(),
            lines: Vec::new(),
            pseudo: Vec::new(),
            added: Vec::new(),
            drops: dropped.is_some(),
            by_name: filters.by_name(),
            show_from: filters.show_from.is_some(),
            prune_from: filters.prune_from.is_some(),
            folds: folded.is_some(),
            tagged: Vec::new(),
            hidden_keys: HashSet::default(),
        };
        if filters.tagshow.is_some() || filters.taghide.is_some() {
            plan.hide_labels(profile, filters, &mut matched);
        }
        let edits = plan.drops || plan.by_name || plan.show_from || plan.prune_from || plan.folds || filters.no_inlines;
        if !edits && !tagged && !pseudo {
            plan.trivial = true;
            return Ok((plan, matched));
        }
        if pseudo {
            let (root, leaf) = plan.add_pseudo(profile, filters)?;
            if !filters.tagroot.is_empty() {
                matched.push(("tagroot", root));
            }
            if !filters.tagleaf.is_empty() {
                matched.push(("tagleaf", leaf));
            }
        }
        if tagged {
            plan.filter_tags(profile, filters, units, &mut matched);
        }
        plan.edit_locations(profile, filters, dropped, folded, &mut matched);
        Ok((plan, matched))
    }

    /// Returns true if samples keep all their locations, and locations all their lines. Labels may be hidden.
    pub(crate) fn is_trivial(&self) -> bool {
        self.trivial
    }

    pub(crate) fn pseudo(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.pseudo
    }

    /// Returns true if labels with this key are shown.
    pub(crate) fn shows_label(&self, key: StringId) -> bool {
        self.hidden_keys.is_empty() || !self.hidden_keys.contains(&key)
    }

    /// Calls `f` with each remaining line of a location, innermost first.
    pub(crate) fn for_each_line(&self, profile: &Profile, location: u32, mut f: impl FnMut(u32)) {
        let l = location as usize;
        match self.first.get(l + 1) {
            Some(&end) => self.lines[self.first[l] as usize..end as usize].iter().for_each(|&line| f(line)),
            None => profile.locations().lines(location).for_each(f),
        }
    }

    /// Collects the remaining locations of a sample, leaf first. Returns false if the sample is dropped. `index` is the
    /// sample's position in the profile.
    pub(crate) fn apply(&self, index: usize, sample: &Sample<'_>, locations: &mut Vec<u32>) -> bool {
        locations.clear();
        if self.trivial {
            sample.for_each_location(|l| locations.push(l));
            return true;
        }
        let added = self.added.get(index);
        if let Some((leaf, _)) = added {
            locations.extend(leaf);
        }
        let start = locations.len();
        sample.for_each_location(|l| locations.push(l));
        let flag = |l: u32| self.flags[l as usize];
        if self.drops {
            let cut = cut_of_drops(&locations[start..], flag);
            locations.drain(start..start + cut);
        }
        if let Some((_, root)) = added {
            locations.extend(root);
        }
        if self.by_name {
            let mut focused = false;
            for &l in locations.iter() {
                if flag(l) & IGNORE != 0 {
                    return false;
                }
                focused |= flag(l) & FOCUS != 0;
            }
            if !focused {
                return false;
            }
            locations.retain(|&l| flag(l) & HIDDEN == 0);
            if locations.is_empty() {
                return false;
            }
        }
        if self.show_from {
            match locations.iter().rposition(|&l| flag(l) & SHOW_FROM != 0) {
                Some(i) => locations.truncate(i + 1),
                None => return false,
            }
        }
        if self.tagged.get(index) == Some(&false) {
            return false;
        }
        if self.prune_from
            && let Some(i) = locations.iter().position(|&l| flag(l) & PRUNE_FROM != 0)
        {
            locations.drain(..i);
        }
        if self.folds && locations.iter().any(|&l| flag(l) & FOLDED == 0) {
            locations.retain(|&l| flag(l) & FOLDED == 0);
        }
        true
    }

    fn filter_tags(
        &mut self,
        p: &Profile,
        filters: &Compiled,
        units: &HashMap<Vec<u8>, String>,
        matched: &mut FilterHits,
    ) {
        let (mut focus_hit, mut ignore_hit) = (false, false);
        let mut focus = filters.tagfocus.as_ref().map(|f| f.on(p, units));
        let mut ignore = filters.tagignore.as_ref().map(|f| f.on(p, units));
        let keeps = |sample: Sample<'_>| {
            let focused = focus.as_mut().is_none_or(|matches| matches(&sample));
            let ignored = ignore.as_mut().is_some_and(|matches| matches(&sample));
            focus_hit |= focused;
            ignore_hit |= ignored;
            focused && !ignored
        };
        self.tagged = p.samples().map(keeps).collect();
        matched.extend(filters.tagfocus.is_some().then_some(("tagfocus", focus_hit)));
        matched.extend(filters.tagignore.is_some().then_some(("tagignore", ignore_hit)));
    }

    /// Collects the keys of labels that are hidden.
    fn hide_labels(&mut self, p: &Profile, filters: &Compiled, matched: &mut FilterHits) {
        let (mut show_hit, mut hide_hit) = (false, false);
        let mut seen: HashSet<_> = HashSet::default();
        for label in p.samples().flat_map(|s| s.labels()) {
            if seen.insert(label.key) {
                let shown = filters.tagshow.as_ref().is_none_or(|r| r.is_match(p.string(label.key)));
                let hidden = filters.taghide.as_ref().is_some_and(|r| r.is_match(p.string(label.key)));
                show_hit |= shown;
                hide_hit |= hidden;
                if !shown || hidden {
                    self.hidden_keys.insert(label.key);
                }
            }
        }
        matched.extend(filters.tagshow.is_some().then_some(("tagshow", show_hit)));
        matched.extend(filters.taghide.is_some().then_some(("taghide", hide_hit)));
    }

    /// Creates frames for the label values of `tagroot` and `tagleaf`.
    fn add_pseudo<'f>(&mut self, profile: &Profile, filters: &'f Compiled) -> Result<(bool, bool)> {
        // Two caches: by label values, so that each text is built once, and by text, so that equal texts share a frame.
        let mut by_values: HashMap<(&str, Vec<LabelValue>), u32> = HashMap::default();
        let mut by_text: HashMap<(Vec<u8>, &str), u32> = HashMap::default();
        let (mut root_matched, mut leaf_matched) = (false, false);
        let max_bytes = profile.inflated_size().saturating_mul(4).saturating_add(64 << 20).min(u32::MAX as usize);
        let mut bytes = 0;
        for sample in profile.samples() {
            let mut make = |keys: &'f [String], matched: &mut bool| -> Result<Vec<u32>> {
                // The first key is closest to the root, so it comes last.
                keys.iter()
                    .rev()
                    .map(|key| {
                        let values = label_values(profile, &sample, key.as_bytes());
                        *matched |= !values.is_empty();
                        if let Some(&id) = by_values.get(&(key.as_str(), values.clone())) {
                            return Ok(id);
                        }
                        let name = printed(profile, &values);
                        bytes += name.len();
                        if bytes > max_bytes {
                            return Err(Error::query(format!(
                                "the values of label {key} are too long to become frames"
                            )));
                        }
                        let next = (profile.n_locations() + self.pseudo.len()) as u32;
                        let id = *by_text.entry((name.clone(), key)).or_insert(next);
                        if id == next {
                            self.pseudo.push((name, key.as_bytes().to_vec()));
                        }
                        by_values.insert((key, values), id);
                        Ok(id)
                    })
                    .collect()
            };
            let root = make(&filters.tagroot, &mut root_matched)?;
            let leaf = make(&filters.tagleaf, &mut leaf_matched)?;
            self.added.push((leaf, root));
        }
        Ok((root_matched, leaf_matched))
    }

    fn edit_locations(
        &mut self,
        p: &Profile,
        filters: &Compiled,
        dropped: Option<Vec<bool>>,
        folded: Option<Vec<bool>>,
        matched: &mut FilterHits,
    ) {
        let locations = p.locations();
        let mut by_name = NameFilters::new(p, &self.pseudo, filters);
        let prune_from = filters.prune_from.as_ref().map(|r| by_simple_name(p, |name| r.is_match(name)));
        let prune_pseudo = |index: usize| {
            let name = &self.pseudo[index].0;
            filters.prune_from.as_ref().is_some_and(|r| !name.is_empty() && r.is_match(simple_name(name)))
        };

        let n = locations.len() + self.pseudo.len();
        let mut flags = Vec::with_capacity(n);
        let mut lines: Vec<u32> = Vec::with_capacity(locations.line_function.len());
        let mut first: Vec<u32> = Vec::with_capacity(n + 1);
        first.push(0);
        for location in checkpointed(0..n as u32) {
            let l = location as usize;
            // A pseudo-location has one line. The line's index identifies its pseudo-function.
            let is_pseudo = l >= locations.len();
            let mut location_lines: std::ops::Range<u32> =
                if is_pseudo { location..location + 1 } else { locations.lines(location) };
            let function = |line: u32| {
                if is_pseudo {
                    p.n_functions() + l - locations.len()
                } else {
                    locations.line_function[line as usize] as usize
                }
            };
            let mapping = if is_pseudo { NONE } else { locations.mapping[l] };
            let mut flag = 0;
            if let Some(dropped) = dropped.as_ref().filter(|_| !is_pseudo)
                && let Some(i) = location_lines.clone().rev().find(|&line| dropped[function(line)])
            {
                flag |= DROP_BENEATH;
                if i + 1 == location_lines.end {
                    flag |= DROP;
                } else {
                    location_lines.start = i + 1;
                }
            }
            let start = lines.len();
            lines.extend(location_lines);
            flag |= by_name.apply(mapping, function, &mut lines, start);
            if let Some(pruned) = &prune_from {
                let matches =
                    |&line: &u32| if is_pseudo { prune_pseudo(l - locations.len()) } else { pruned[function(line)] };
                if let Some(i) = lines[start..].iter().position(matches) {
                    flag |= PRUNE_FROM;
                    lines.drain(start..start + i);
                }
            }
            if let Some(folded) = folded.as_ref().filter(|_| !is_pseudo) {
                // If all lines of a location are folded, they are kept for stacks that contain nothing else.
                if lines[start..].iter().all(|&line| folded[function(line)]) {
                    flag |= if lines.len() > start { FOLDED } else { 0 };
                } else {
                    retain_from(&mut lines, start, |line| !folded[function(line)]);
                }
            }
            if filters.no_inlines && lines.len() > start + 1 {
                lines.drain(start..lines.len() - 1);
            }
            flags.push(flag);
            first.push(lines.len() as u32);
        }
        (self.flags, self.lines, self.first) = (flags, lines, first);
        matched.extend(by_name.hits());
        if filters.prune_from.is_some() {
            matched.push(("prune_from", self.flags.iter().any(|f| f & PRUNE_FROM != 0)));
        }
    }
}

/// The filters that match the names of functions, files and mappings, and whether each matched a location.
struct NameFilters {
    focus: Option<NameMatches>,
    ignore: Option<NameMatches>,
    hide: Option<NameMatches>,
    show: Option<NameMatches>,
    show_from: Option<NameMatches>,
    /// True if `focus`, `ignore`, `hide` or `show` is set.
    is_set: bool,
    focus_hit: bool,
    ignore_hit: bool,
    hide_hit: bool,
    show_hit: bool,
    show_from_hit: bool,
}

impl NameFilters {
    fn new(p: &Profile, pseudo: &[(Vec<u8>, Vec<u8>)], filters: &Compiled) -> NameFilters {
        let on = |regex: &Option<Regex>| regex.as_ref().map(|r| NameMatches::new(p, pseudo, r));
        NameFilters {
            focus: on(&filters.focus),
            ignore: on(&filters.ignore),
            hide: on(&filters.hide),
            show: on(&filters.show),
            show_from: on(&filters.show_from),
            is_set: filters.by_name(),
            focus_hit: false,
            ignore_hit: false,
            hide_hit: false,
            show_hit: false,
            show_from_hit: false,
        }
    }

    /// Applies the filters to a location, whose lines are `lines[start..]`. Removes the lines that are not shown, and
    /// returns flags. `function` returns the function of a line.
    fn apply(&mut self, mapping: u32, function: impl Fn(u32) -> usize, lines: &mut Vec<u32>, start: usize) -> u8 {
        let mut flag = 0;
        if self.is_set {
            let any = |m: &NameMatches, lines: &[u32]| {
                m.mapping(mapping) || lines.iter().any(|&line| m.functions[function(line)])
            };
            if self.ignore.as_ref().is_some_and(|m| any(m, &lines[start..])) {
                flag |= IGNORE;
                self.ignore_hit = true;
            } else if self.focus.as_ref().is_none_or(|m| any(m, &lines[start..])) {
                flag |= FOCUS;
                self.focus_hit = true;
            }
            if let Some(m) = self.hide.as_ref().filter(|m| any(m, &lines[start..])) {
                self.hide_hit = true;
                retain_from(lines, start, |line| !m.mapping(mapping) && !m.functions[function(line)]);
                if lines.len() == start {
                    flag |= HIDDEN;
                }
            }
            if let Some(m) = &self.show {
                retain_from(lines, start, |line| m.mapping(mapping) || m.functions[function(line)]);
                if lines.len() == start {
                    flag |= HIDDEN;
                } else {
                    self.show_hit = true;
                }
            }
        }
        if let Some(m) = &self.show_from {
            if m.mapping(mapping) {
                flag |= SHOW_FROM;
            } else if let Some(i) = lines[start..].iter().rposition(|&line| m.functions[function(line)]) {
                flag |= SHOW_FROM;
                lines.truncate(start + i + 1);
            }
            self.show_from_hit |= flag & SHOW_FROM != 0;
        }
        flag
    }

    /// Returns the filters that are set, and whether each matched.
    fn hits(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let hits = [
            ("focus", &self.focus, self.focus_hit),
            ("ignore", &self.ignore, self.ignore_hit),
            ("hide", &self.hide, self.hide_hit),
            ("show", &self.show, self.show_hit),
            ("show_from", &self.show_from, self.show_from_hit),
        ];
        hits.into_iter().filter(|(_, matches, _)| matches.is_some()).map(|(name, _, hit)| (name, hit))
    }
}

/// A profile with a plan, for writing the filtered profile.
pub(crate) struct Filtered<'a> {
    pub profile: &'a Profile,
    pub plan: &'a FilterPlan,
}

impl SampleSelection for Filtered<'_> {
    fn is_whole(&self) -> bool {
        self.plan.is_trivial()
    }

    fn lines(&self, location: u32, f: &mut dyn FnMut(u32)) {
        self.plan.for_each_line(self.profile, location, f);
    }

    fn locations(&self, index: usize, sample: &Sample<'_>, locations: &mut Vec<u32>) -> bool {
        self.plan.apply(index, sample, locations)
    }

    fn shows_label(&self, key: StringId) -> bool {
        self.plan.shows_label(key)
    }
}
