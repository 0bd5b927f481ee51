//! The one walk from samples to what filters leave of them.

use super::Input;
use super::filter::FilterPlan;
use super::frames::{Innermost, InputFrames};
use pprofdiff_profile::samples::{Label, Sample, SampleRange};

/// One profile of a measure, ready to be walked.
#[derive(Clone)]
pub(crate) struct Walk<'m> {
    /// The profile's number among those of the measure.
    pub index: usize,
    pub input: &'m Input,
    pub frames: &'m InputFrames,
    /// From the profile's own frame indexes to the common ones.
    pub translation: &'m [u32],
    pub(super) plan: &'m FilterPlan,
    pub(super) column: usize,
    pub(super) times: i64,
}

impl<'m> Walk<'m> {
    /// True if nothing is filtered, so that samples keep all their locations.
    fn is_unfiltered(&self) -> bool {
        self.plan.is_trivial() && self.input.part.is_none()
    }

    /// The ranges of samples that can be walked at the same time: all in one where they are filtered.
    pub(crate) fn ranges(&self) -> Vec<SampleRange> {
        let profile = &self.input.profile;
        if self.is_unfiltered() { profile.sample_ranges() } else { vec![profile.sample_range()] }
    }

    /// The sum of the magnitudes of its values, before filters.
    pub(crate) fn total(&self) -> i64 {
        self.input.total(self.column).magnitude * self.times.abs()
    }

    /// The sum of its values, before filters.
    pub(crate) fn sum(&self) -> i64 {
        self.input.total(self.column).sum * self.times
    }

    /// The value of one of its samples.
    pub(crate) fn value(&self, sample: &Sample<'_>) -> i64 {
        sample.value(self.column) * self.times
    }

    /// The labels of a sample that are shown.
    pub(crate) fn labels(&self, sample: &Sample<'m>) -> impl Iterator<Item = Label> + use<'m> {
        let plan = self.plan;
        sample.labels().filter(|label| plan.shows_label(label.key))
    }

    /// Shows the visitor each sample that counts. `range` is one of [`Walk::ranges`].
    #[inline(always)]
    pub(crate) fn visit(&self, range: &SampleRange, visitor: &mut impl SampleVisitor<'m>) {
        self.visit_or(range, |_| false, visitor);
    }

    /// The same with those samples that count by another column.
    #[inline(always)]
    pub(crate) fn visit_or(
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
            let is_asked = value != 0 || counts(&sample);
            let is_asked = is_asked && self.input.part.is_none_or(|part| part == sample.is_base());
            if is_asked && self.plan.apply(index, &sample, &mut kept) {
                visitor.sample(value * self.times, &kept[..], sample);
            }
            index += 1;
        });
    }

    /// The innermost frame of each location, with common numbers.
    pub(crate) fn innermost(&self) -> Vec<Innermost> {
        let common = |first: Innermost| Innermost::new(self.translation[first.frame() as usize], first.has_more());
        self.frames.innermost().into_iter().map(common).collect()
    }

    /// Puts the frames of a location, innermost first, at the end of a stack; `first` is that of [`Walk::innermost`].
    #[inline(always)]
    pub(crate) fn push_frames(&self, first: Innermost, location: u32, stack: &mut Vec<u32>) {
        stack.push(first.frame());
        if first.has_more() {
            stack.extend(self.frames.expand(location)[1..].iter().map(|&f| self.translation[f as usize]));
        }
    }

    /// Calls `f` with each sample that counts: its value, and itself.
    pub(crate) fn for_each_sample(&self, f: impl FnMut(i64, Sample<'m>)) {
        self.visit(&self.input.profile.sample_range(), &mut WithoutLocations(f));
    }

    /// Calls `f` with each sample that counts: its value, the locations that filters leave of it (leaf first), and
    /// itself.
    pub(crate) fn for_each(&self, f: impl FnMut(i64, &[u32], Sample<'m>)) {
        self.visit(&self.input.profile.sample_range(), &mut Collecting { locations: Vec::new(), f });
    }
}

/// One profile of a selection, with its columns of all sample types.
pub(super) struct Columns<'m> {
    pub walk: Walk<'m>,
    /// By sample type: the column, and what its values are multiplied by.
    pub of_types: Vec<(usize, i64)>,
}

impl<'m> Columns<'m> {
    /// Shows the visitor each sample that counts for any sample type. `range` is one of [`Walk::ranges`].
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

/// Visits samples with the values of all sample types, as [`SampleVisitor`] those of one.
pub(super) trait ColumnVisitor {
    fn sample(&mut self, values: &[i64], locations: impl SampleLocations);
}

/// Visits samples. A trait and not a closure, so that whole and filtered samples are compiled separately: compiled
/// together, the table of frames takes 13 % more instructions.
pub(crate) trait SampleVisitor<'m> {
    /// A sample: its value, and the locations that filters leave of it.
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>);
}

/// Locations of a sample, leaf first.
pub(crate) trait SampleLocations: Copy {
    fn for_each(self, f: impl FnMut(u32));
    fn leaf(self) -> Option<u32>;
}

/// All of them.
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

/// Those that filters leave.
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

/// For what does not look at locations.
struct WithoutLocations<F>(F);

impl<'m, F: FnMut(i64, Sample<'m>)> SampleVisitor<'m> for WithoutLocations<F> {
    #[inline(always)]
    fn sample(&mut self, value: i64, _: impl SampleLocations, sample: Sample<'m>) {
        (self.0)(value, sample);
    }
}

/// Gives each sample's frames, root first.
pub(super) struct StackVisitor<'w, 'm, F> {
    pub(super) walk: &'w Walk<'m>,
    /// By location, with common numbers.
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

/// Puts the locations of each sample into a slice, for what is not worth code for both forms.
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
