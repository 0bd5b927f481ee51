//! Iterates over the samples of a profile and applies the filters. All views read samples through this module.

use super::Input;
use super::filter::FilterPlan;
use super::frames::{Innermost, InputFrames};
use pprofdiff_profile::samples::{Label, Sample, SampleRange};

/// One profile of a measure, ready to be walked.
#[derive(Clone)]
pub struct Walk<'m> {
    /// The profile's number among the profiles of the measure.
    pub index: usize,
    /// The profile.
    pub input: &'m Input,
    /// The frames of the profile's locations.
    pub frames: &'m InputFrames,
    /// The map from the profile's own frame indexes to the common indexes.
    pub translation: &'m [u32],
    pub(super) plan: &'m FilterPlan,
    pub(super) column: usize,
    pub(super) times: i64,
}

impl std::fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").finish_non_exhaustive()
    }
}

impl<'m> Walk<'m> {
    /// Returns true if there are no filters, so that samples keep all their locations.
    fn is_unfiltered(&self) -> bool {
        self.plan.is_trivial() && self.input.part.is_none()
    }

    /// Returns the ranges of samples that can be read in parallel. With filters, returns a single range.
    pub fn ranges(&self) -> Vec<SampleRange> {
        let profile = &self.input.profile;
        if self.is_unfiltered() { profile.sample_ranges() } else { vec![profile.sample_range()] }
    }

    /// Returns the sum of the values' magnitudes, before filters.
    pub(crate) fn total(&self) -> i64 {
        self.input.total(self.column).magnitude * self.times.abs()
    }

    /// Returns the sum of the values, before filters.
    pub(crate) fn sum(&self) -> i64 {
        self.input.total(self.column).sum * self.times
    }

    /// Returns the value of a sample.
    #[inline]
    pub fn value(&self, sample: &Sample<'_>) -> i64 {
        sample.value(self.column) * self.times
    }

    /// Returns the labels of a sample that the filters show.
    pub fn labels(&self, sample: &Sample<'m>) -> impl Iterator<Item = Label> + use<'m> {
        let plan = self.plan;
        sample.labels().filter(|label| plan.shows_label(label.key))
    }

    /// Calls the visitor with each sample that passes the filters and has a value. `range` is one of [`Walk::ranges`].
    #[inline(always)]
    pub(crate) fn visit(&self, range: &SampleRange, visitor: &mut impl SampleVisitor<'m>) {
        self.visit_or(range, |_| false, visitor);
    }

    /// Like [`Walk::visit`], but also visits samples for which `counts` returns true, even if their value is zero.
    #[inline(always)]
    pub fn visit_or(
        &self,
        range: &SampleRange,
        counts: impl Fn(&Sample<'m>) -> bool,
        visitor: &mut impl SampleVisitor<'m>,
    ) {
        let profile = &*self.input.profile;
        if self.is_unfiltered() {
            profile.for_each_sample(range, |sample| {
                let value = sample.value(self.column);
                if value != 0 || counts(&sample) {
                    visitor.sample(value * self.times, sample, sample);
                }
            });
            return;
        }
        let mut kept = Vec::new();
        let mut index = 0;
        profile.for_each_sample(range, |sample| {
            let value = sample.value(self.column);
            let is_included = value != 0 || counts(&sample);
            let is_included = is_included && self.input.part.is_none_or(|part| part == sample.is_base());
            if is_included && self.plan.apply(index, &sample, &mut kept) {
                visitor.sample(value * self.times, &kept[..], sample);
            }
            index += 1;
        });
    }

    /// Returns the innermost frame of each location, as a common number.
    pub fn innermost(&self) -> Vec<Innermost> {
        let common = |first: Innermost| Innermost::new(self.translation[first.frame() as usize], first.has_more());
        self.frames.innermost().into_iter().map(common).collect()
    }

    /// Appends the frames of a location to a stack, innermost first. `first` is the location's entry in
    /// [`Walk::innermost`].
    #[inline(always)]
    pub(crate) fn push_frames(&self, first: Innermost, location: u32, stack: &mut Vec<u32>) {
        stack.push(first.frame());
        if first.has_more() {
            stack.extend(self.frames.expand(location)[1..].iter().map(|&f| self.translation[f as usize]));
        }
    }

    /// Calls `f` with the value of each visited sample, and with the sample.
    pub(crate) fn for_each_sample(&self, f: impl FnMut(i64, Sample<'m>)) {
        self.visit(&self.input.profile.sample_range(), &mut WithoutLocations(f));
    }

    /// Like [`Walk::for_each_sample`], but also calls `f` with samples that the filters remove.
    pub(crate) fn for_each_sample_before_filters(&self, mut f: impl FnMut(i64, Sample<'m>)) {
        let profile = &*self.input.profile;
        profile.for_each_sample(&profile.sample_range(), |sample| {
            let value = sample.value(self.column);
            if value != 0 && self.input.part.is_none_or(|part| part == sample.is_base()) {
                f(value * self.times, sample);
            }
        });
    }

    /// Calls `f` with the value of each visited sample, and with the union of the bits of its locations.
    #[cfg(feature = "check")]
    pub(crate) fn for_each_union(&self, bits: &[u64], f: impl FnMut(i64, u64)) {
        self.visit(&self.input.profile.sample_range(), &mut UnionVisitor { bits, f });
    }

    /// Calls `f` with each visited sample: its value, the locations that the filters keep (leaf first), and the sample.
    pub(crate) fn for_each(&self, f: impl FnMut(i64, &[u32], Sample<'m>)) {
        self.visit(&self.input.profile.sample_range(), &mut Collecting { locations: Vec::new(), f });
    }
}

/// One profile of a selection, with its columns of all sample types.
pub(super) struct TypeColumns<'m> {
    pub walk: Walk<'m>,
    /// For each sample type, the column and the factor for its values.
    pub of_types: Vec<(usize, i64)>,
}

impl<'m> TypeColumns<'m> {
    /// Calls the visitor with each sample that passes the filters and has a value of any type. `range` is one of
    /// [`Walk::ranges`].
    #[inline(always)]
    pub(super) fn visit(&self, range: &SampleRange, visitor: &mut impl ColumnVisitor) {
        let Walk { input, plan, .. } = &self.walk;
        let is_whole = self.walk.is_unfiltered();
        let (mut read, mut values) = (Vec::new(), vec![0; self.of_types.len()]);
        let (mut kept, mut index) = (Vec::new(), 0);
        input.profile.for_each_sample(range, |sample| {
            read.clear();
            sample.for_each_value(|value| read.push(value));
            let mut any = 0;
            for (value, &(column, times)) in values.iter_mut().zip(&self.of_types) {
                *value = read.get(column).map_or(0, |read| read * times);
                any |= *value;
            }
            if is_whole {
                if any != 0 {
                    visitor.sample(&values, sample);
                }
                return;
            }
            let counts = any != 0 && input.part.is_none_or(|part| part == sample.is_base());
            if counts && plan.apply(index, &sample, &mut kept) {
                visitor.sample(&values, &kept[..]);
            }
            index += 1;
        });
    }
}

/// Visits samples with the values of all sample types. [`SampleVisitor`] gets the value of one type.
pub(super) trait ColumnVisitor {
    fn sample(&mut self, values: &[i64], locations: impl SampleLocations);
}

/// Visits samples. This is a trait and not a closure, so that unfiltered and filtered samples are compiled separately.
/// If they are compiled together, the table of frames takes 13 % more instructions.
pub trait SampleVisitor<'m> {
    /// Visits a sample with its value and the locations that the filters keep.
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>);
}

/// The locations of a sample, leaf first.
pub trait SampleLocations: Copy {
    /// Calls `f` with each location.
    fn for_each(self, f: impl FnMut(u32));
    /// Returns the innermost location.
    fn leaf(self) -> Option<u32>;
}

/// All locations of the sample.
impl SampleLocations for Sample<'_> {
    #[inline(always)]
    fn for_each(self, f: impl FnMut(u32)) {
        self.for_each_location(f);
    }

    #[inline(always)]
    fn leaf(self) -> Option<u32> {
        Sample::leaf(&self)
    }
}

/// The locations that the filters keep.
impl SampleLocations for &[u32] {
    #[inline(always)]
    fn for_each(self, f: impl FnMut(u32)) {
        self.iter().copied().for_each(f);
    }

    #[inline(always)]
    fn leaf(self) -> Option<u32> {
        self.first().copied()
    }
}

/// An adapter for closures that do not read locations.
struct WithoutLocations<F>(F);

impl<'m, F: FnMut(i64, Sample<'m>)> SampleVisitor<'m> for WithoutLocations<F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, _: impl SampleLocations, sample: Sample<'m>) {
        (self.0)(value, sample);
    }
}

/// Calls `f` with the value and the union of the bits of the locations of each sample.
#[cfg(feature = "check")]
struct UnionVisitor<'b, F> {
    bits: &'b [u64],
    f: F,
}

#[cfg(feature = "check")]
impl<'m, F: FnMut(i64, u64)> SampleVisitor<'m> for UnionVisitor<'_, F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        let mut union = 0;
        locations.for_each(|l| union |= self.bits[l as usize]);
        (self.f)(value, union);
    }
}

/// Calls `f` with the value and the frames of each sample, root first.
pub(super) struct StackVisitor<'w, 'm, F> {
    pub(super) walk: &'w Walk<'m>,
    /// The innermost frame of each location, as a common number.
    pub(super) innermost: Vec<Innermost>,
    pub(super) stack: Vec<u32>,
    pub(super) f: &'w mut F,
}

impl<'m, F: FnMut(i64, &[u32])> SampleVisitor<'m> for StackVisitor<'_, 'm, F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        let StackVisitor { walk, innermost, stack, f } = self;
        stack.clear();
        locations.for_each(|l| walk.push_frames(innermost[l as usize], l, stack));
        stack.reverse();
        f(value, stack);
    }
}

/// Calls `f` with the value and the chosen frames of each sample that has one, root first. Most locations have no chosen
/// frame, so their frames are not looked up.
#[cfg(feature = "check")]
pub(super) struct ChosenVisitor<'w, 'm, F> {
    walk: &'w Walk<'m>,
    is_chosen: &'w [bool],
    /// By location: true if it has a chosen frame.
    has_chosen: Vec<bool>,
    /// The locations of the current sample that have a chosen frame, leaf first.
    locations: Vec<u32>,
    stack: Vec<u32>,
    f: &'w mut F,
}

#[cfg(feature = "check")]
impl<'w, 'm, F> ChosenVisitor<'w, 'm, F> {
    pub(super) fn new(walk: &'w Walk<'m>, is_chosen: &'w [bool], f: &'w mut F) -> Self {
        let is_chosen_frame = |&frame: &u32| is_chosen[walk.translation[frame as usize] as usize];
        let n_locations = walk.frames.innermost().len() as u32;
        let has_chosen = (0..n_locations).map(|l| walk.frames.expand(l).iter().any(is_chosen_frame)).collect();
        ChosenVisitor { walk, is_chosen, has_chosen, locations: Vec::new(), stack: Vec::new(), f }
    }
}

#[cfg(feature = "check")]
impl<'m, F: FnMut(i64, &[u32])> SampleVisitor<'m> for ChosenVisitor<'_, 'm, F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, _: Sample<'m>) {
        let ChosenVisitor { walk, is_chosen, has_chosen, locations: chosen, stack, f } = self;
        chosen.clear();
        locations.for_each(|l| {
            if has_chosen[l as usize] {
                chosen.push(l);
            }
        });
        if chosen.is_empty() {
            return;
        }
        stack.clear();
        for &location in chosen.iter().rev() {
            let frames = walk.frames.expand(location).iter().rev().map(|&f| walk.translation[f as usize]);
            stack.extend(frames.filter(|&frame| is_chosen[frame as usize]));
        }
        f(value, stack);
    }
}

/// Copies the locations of each sample into a slice. This avoids compiling the closure for both forms of samples where
/// speed does not matter.
struct Collecting<F> {
    locations: Vec<u32>,
    f: F,
}

impl<'m, F: FnMut(i64, &[u32], Sample<'m>)> SampleVisitor<'m> for Collecting<F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        self.locations.clear();
        locations.for_each(|l| self.locations.push(l));
        (self.f)(value, &self.locations, sample);
    }
}

#[cfg(all(test, feature = "check"))]
mod tests {
    use pprofdiff_profile::builder::ProfileBuilder;

    use crate::{Diff, Query, Result};

    #[test]
    fn chosen_stacks_equal_stacks_without_the_other_frames() -> Result<()> {
        let mut seed = 1u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        let mut profile = |name: &str| {
            let mut builder = ProfileBuilder::new();
            builder.sample_type("cpu", "nanoseconds");
            let mut locations = Vec::new();
            for i in 0..40 {
                // Every third location has an inlined function.
                let names = [format!("f{i}"), format!("f{}", (i + 1) % 40)];
                let lines = names.map(|name| builder.function(name, "", 0)).map(|function| builder.line(function, 0));
                locations.push(builder.location(None, 0, if i % 3 == 0 { &lines } else { &lines[..1] })?);
            }
            for _ in 0..500 {
                let stack: Vec<_> = (0..next(9)).map(|_| locations[next(40) as usize]).collect();
                builder.sample(&stack, &[i64::from(next(4)) - 1], &[])?;
            }
            builder.build(name)
        };
        let diff = Diff::between(profile("base")?, profile("new")?)?;
        let mut filtered = Query::default();
        filtered.filters.hide = Some("f1.".to_owned());
        for query in [Query::default(), filtered] {
            let measure = diff.measure(&query)?;
            for few in [2, 7, 100] {
                let is_chosen: Vec<bool> = (0..measure.frames().len()).map(|_| next(few) == 0).collect();
                for base in [true, false] {
                    let (mut plain, mut chosen) = (Vec::new(), Vec::new());
                    measure.for_each_stack(base, |value, stack| {
                        plain.push((
                            value,
                            stack.iter().copied().filter(|&f| is_chosen[f as usize]).collect::<Vec<_>>(),
                        ));
                    });
                    plain.retain(|(_, stack)| !stack.is_empty());
                    measure
                        .for_each_chosen_stack(base, &is_chosen, |value, stack| chosen.push((value, stack.to_vec())));
                    assert!(!plain.is_empty() || few == 100);
                    assert_eq!(chosen, plain);
                }
            }
        }
        Ok(())
    }
}
