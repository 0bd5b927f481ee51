//! The variation between builds of a history without a change: its common part in all frames, how long it lasts, and
//! how heavy its tails are. It is estimated before the search for lasting changes.
//!
//! ```text
//! counts of frames -> common factor, removed -> variance of each frame by its bends -> memory: variances of means of
//! several builds, over all frames
//! ```
//!
//! The common factor is a median polish (Tukey 1977). Memory is read from the Allan variance, the variance of the
//! differences of neighbouring means of m builds (Allan 1966): it falls with 1/m for independent builds, and more
//! slowly for lasting deviations. The variance of each frame is robust, so heavy tails also increase the apparent
//! memory.
//!
//! The common factor is a single sequence, so its memory cannot be distinguished from its steps. Steps of the common
//! factor must explain the values better than a first-order autoregression without steps.

use super::segments::{DEGREES, Sums, cut_spikes, leveled, steps};
use pprofdiff::shared::statistics::counts::{median, weighted_median};
use pprofdiff_profile::parallel;

/// The minimum median number of events per build of a frame that contributes to the noise estimate.
const TELLING: f64 = 20.0;
/// The minimum number of frames and of builds from which a common factor and memory can be estimated.
const FEWEST_FRAMES: usize = 8;
const FEWEST_BUILDS: usize = 12;
/// The maximum number of frames to use, costliest first.
const MAX_TELLING: usize = 1_000;
/// The minimum standard deviation of a typical frame's log between builds.
const LEAST_TAU: f64 = 0.01;
/// The minimum number of builds in which a single frame shows whether it wanders. With fewer builds, steps are not
/// tested against wandering.
const FEWEST_ALONE: usize = 20;
/// The maximum p-value of a step against wandering, if all frames together show how far builds wander.
const WANDERING: f64 = 2e-4;
/// The fraction of bends that count as far, and the number of standard deviations beyond which a normal variable has
/// that fraction.
const FAR_PART: f64 = 0.05;
const FAR: f64 = 1.96;
/// The ratio to a normal variable that the far bends may reach by chance.
const NORMAL: f64 = 1.1;

/// The variation between the builds of a history.
pub(crate) struct Noise {
    /// The factor per build that removes the common factor from counts. Lasting changes of the common factor are kept.
    calming: Vec<f64>,
    /// The typical frame's variance of the log between builds, beyond counting.
    typical: f64,
    /// For each number of builds: the relative excess of a mean's variance over its variance under independence. It
    /// concerns noise beyond counting, because counting noise is independent.
    memory: Vec<(usize, f64)>,
    /// The relative excess of the variance that far bends show over the variance that all bends show.
    tails: f64,
}

/// The noise of a single frame.
#[derive(Clone, Copy)]
pub(crate) struct OwnNoise {
    pub tau: f64,
    /// The part of the variance beyond counting.
    beside_counting: f64,
}

/// The bends of a frame: how far each build deviates from the average of its two neighbours.
struct Bends {
    /// The median number of events.
    typical: f64,
    /// The magnitude of the second difference of the logs at each build but the first and the last, in arbitrary order:
    /// twice the distance from a line through both neighbours.
    sizes: Vec<f64>,
    /// The variance of the log that these magnitudes show.
    variance: f64,
}

impl Bends {
    fn new(counts: &[f64]) -> Bends {
        let logs: Vec<f64> = counts.iter().map(|count| (count + 0.5).ln()).collect();
        let (sizes, variance) = bends(&logs);
        Bends { typical: median(&mut counts.to_vec()), sizes, variance }
    }

    /// Returns the variance of the log beyond counting and beyond a trend; `None` if the median number of events is
    /// below [`TELLING`].
    fn beside_counting(&self) -> Option<f64> {
        (self.typical >= TELLING).then(|| (self.variance - 1.0 / self.typical).max(0.0))
    }
}

impl Noise {
    /// Estimates the noise from the events of frames in each build. `frames` must start with the costliest frame, and each
    /// event must count in one frame.
    pub(crate) fn learn<T: Sync>(frames: &[T], counts: impl Fn(&T) -> Vec<f64> + Sync) -> Noise {
        let contributing = contributing(frames, counts);
        let factor = CommonFactor::new(&contributing);
        Noise::with_factor(contributing, &factor)
    }

    /// Estimates the noise of costs with callees. The common factor is learned from own costs: the costs
    /// of most callers contain the same functions, so a change of one function looks like a change of all frames.
    pub(crate) fn learn_with_callees<T: Sync>(
        own: &[T],
        frames: &[T],
        counts: impl Fn(&T) -> Vec<f64> + Sync,
    ) -> Noise {
        let factor = CommonFactor::new(&contributing(own, &counts));
        Noise::with_factor(contributing(frames, counts), &factor)
    }

    fn with_factor(mut contributing: Vec<Vec<f64>>, factor: &CommonFactor) -> Noise {
        let mut noise = Noise { calming: calming(&factor.all), typical: 0.0, memory: Vec::new(), tails: 0.0 };
        contributing.iter_mut().for_each(|counts| noise.calm(counts));
        let bends = parallel::map(&contributing, |counts| Bends::new(counts));
        let mut variances: Vec<f64> = bends.iter().filter_map(Bends::beside_counting).collect();
        noise.typical = median(&mut variances).max(LEAST_TAU * LEAST_TAU);
        if can_learn(&contributing) {
            noise.memory = memory(&contributing, &bends, &noise);
            noise.tails = tails(&bends);
        }
        noise.calming = calming(&factor.calm);
        noise
    }

    /// Removes the common factor from the counts of one frame, in place.
    pub(crate) fn calm(&self, counts: &mut [f64]) {
        counts.iter_mut().zip(&self.calming).for_each(|(count, calming)| *count *= calming);
    }

    /// Returns the noise of one frame, shrunk towards the typical frame. `counts` must not contain the common factor.
    pub(crate) fn own(&self, counts: &[f64]) -> OwnNoise {
        self.own_noise_of(counts.len(), &Bends::new(counts))
    }

    fn own_noise_of(&self, n: usize, bends: &Bends) -> OwnNoise {
        let n = n as f64;
        let variance = bends.beside_counting().unwrap_or(self.typical);
        let shrunk = ((DEGREES * self.typical + n * variance) / (DEGREES + n)).max(self.typical / 4.0);
        let excess = shrunk * bends.typical;
        OwnNoise { tau: shrunk.sqrt(), beside_counting: excess / (1.0 + excess) }
    }

    /// Returns the level changes of a frame that exceed chance, each with its p-value.
    pub(crate) fn steps(&self, levels: &[f64], sums: &Sums, frame_noise: OwnNoise) -> Vec<(usize, f64)> {
        let is_alone = self.memory.is_empty();
        let level = if is_alone { single_level(levels.len()) } else { WANDERING };
        let wandering = (levels.len() >= FEWEST_ALONE).then_some(level);
        steps(levels, sums, |builds| self.memory(frame_noise, builds), wandering)
    }

    /// Returns the ratio of the variance of a mean of `builds` builds to its variance under independence.
    pub(crate) fn memory(&self, frame_noise: OwnNoise, builds: usize) -> f64 {
        let longest = self.memory.iter().find(|(length, _)| *length >= builds).or(self.memory.last());
        let part = frame_noise.beside_counting;
        (1.0 + part * longest.map_or(0.0, |(_, excess)| *excess)) * (1.0 + part * self.tails)
    }
}

/// Returns the counts of the frames with enough events, at most [`MAX_TELLING`].
fn contributing<T: Sync>(frames: &[T], counts: impl Fn(&T) -> Vec<f64> + Sync) -> Vec<Vec<f64>> {
    let mut contributing: Vec<Vec<f64>> = Vec::new();
    let contributes = |frame: &T| Some(counts(frame)).filter(|counts| median(&mut counts.clone()) >= TELLING);
    for some in frames.chunks(MAX_TELLING) {
        let room = MAX_TELLING - contributing.len();
        contributing.extend(parallel::map(some, contributes).into_iter().flatten().take(room));
    }
    contributing
}

/// Returns true if there are enough frames and builds for a common factor and memory.
fn can_learn(contributing: &[Vec<f64>]) -> bool {
    contributing.len() >= FEWEST_FRAMES && contributing[0].len() >= FEWEST_BUILDS
}

/// The log of the factor that all frames of a build share. Empty if there are too few frames or builds.
#[derive(Default)]
struct CommonFactor {
    /// With its lasting changes.
    all: Vec<f64>,
    /// Without its lasting changes.
    calm: Vec<f64>,
}

impl CommonFactor {
    fn new(contributing: &[Vec<f64>]) -> CommonFactor {
        let (all, calm) = if can_learn(contributing) { common_factor(contributing) } else { Default::default() };
        CommonFactor { all, calm }
    }
}

/// Returns the significance level for a single sequence: 0.05, divided by the square of the number of builds to correct
/// for all pairs of builds.
fn single_level(builds: usize) -> f64 {
    0.05 / (builds * builds) as f64
}

/// Returns the factors that remove the common factor, given as a log for each build.
fn calming(common: &[f64]) -> Vec<f64> {
    common.iter().map(|common| (-common).exp()).collect()
}

/// Returns the relative excess of the variance by the far bends over the variance by the median bends. It is 0 for a
/// normal variable.
fn tails(frames: &[Bends]) -> f64 {
    let mut all: Vec<f64> = Vec::with_capacity(frames.iter().map(|bends| bends.sizes.len()).sum());
    for bends in frames {
        let deviation = bends.variance.sqrt().max(1e-9) * 6f64.sqrt();
        all.extend(bends.sizes.iter().map(|size| size / deviation));
    }
    let index = (all.len() as f64 * (1.0 - FAR_PART)) as usize;
    let far = *all.select_nth_unstable_by(index, f64::total_cmp).1 / FAR;
    (far * far / NORMAL - 1.0).max(0.0)
}

/// Returns the magnitudes of the second differences (see [`Bends`]), in arbitrary order, and the variance of a single
/// value that they show.
fn bends(values: &[f64]) -> (Vec<f64>, f64) {
    let mut sizes: Vec<f64> = values.windows(3).map(|three| (three[0] - 2.0 * three[1] + three[2]).abs()).collect();
    // The median magnitude of a normal variable is 0.6745 of its deviation. A second difference has six times the
    // variance of a single value.
    let deviation = median(&mut sizes) / 0.6745;
    (sizes, deviation * deviation / 6.0)
}

/// Returns a number for each build, computed from the values of all frames in that build.
fn by_build(frames: &[Vec<f64>], number: impl Fn(usize, &mut [f64]) -> f64 + Sync) -> Vec<f64> {
    // Several neighbouring builds are processed together, because the builds of a frame are adjacent in memory.
    const BESIDE: usize = 16;
    let n = frames[0].len();
    let firsts: Vec<usize> = (0..n).step_by(BESIDE).collect();
    let of_chunk = |&first: &usize| {
        let some = first..n.min(first + BESIDE);
        let mut values = vec![Vec::with_capacity(frames.len()); some.len()];
        for frame in frames {
            values.iter_mut().zip(&frame[some.clone()]).for_each(|(values, value)| values.push(*value));
        }
        some.zip(&mut values).map(|(build, values)| number(build, values)).collect::<Vec<f64>>()
    };
    parallel::map(&firsts, of_chunk).concat()
}

/// Returns the log of the common factor, first with its lasting changes and then without. Both are shrunk towards 0 by
/// the part that frames without a common factor would show by chance.
fn common_factor(frames: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let n = frames[0].len();
    let logs = parallel::map(frames, |counts| counts.iter().map(|count| (count + 0.5).ln()).collect::<Vec<f64>>());
    let mut common = vec![0.0; n];
    let mut rest = Vec::new();
    for _ in 0..3 {
        rest = parallel::map(&logs, |logs| {
            let level = median(&mut logs.iter().zip(&common).map(|(x, c)| x - c).collect::<Vec<_>>());
            logs.iter().map(|x| x - level).collect::<Vec<f64>>()
        });
        common = by_build(&rest, |_, values| median(values));
    }
    let center = median(&mut common.clone());
    common.iter_mut().for_each(|c| *c -= center);
    // The variance of a median of this number of independent frames.
    let apart = by_build(&rest, |i, values| {
        values.iter_mut().for_each(|value| *value = (*value - common[i] - center).abs());
        let deviation = median(values);
        (deviation / 0.6745).powi(2) * std::f64::consts::FRAC_PI_2 / frames.len() as f64
    });
    let by_chance = apart.iter().sum::<f64>() / n as f64;
    let tau = bends(&common).1.max(1e-12).sqrt();
    let levels: Vec<f64> = common.iter().map(|c| c / tau).collect();
    let (levels, _) = cut_spikes(&levels);
    let sums = Sums::new(&levels);
    let starts: Vec<usize> =
        steps(&levels, &sums, |_| 1.0, Some(single_level(n))).into_iter().map(|(start, _)| start).collect();
    let mut all = common.clone();
    let mut from = 0;
    for to in starts.into_iter().chain([n]) {
        let mean = levels[from..to].iter().sum::<f64>() * tau / (to - from) as f64;
        common[from..to].iter_mut().for_each(|c| *c -= mean);
        from = to;
    }
    let varies = common.iter().map(|c| c * c).sum::<f64>() / n as f64;
    let kept = (1.0 - by_chance / varies.max(1e-12)).max(0.0);
    all.iter_mut().zip(&mut common).for_each(|(all, c)| {
        *all -= *c * (1.0 - kept);
        *c *= kept;
    });
    (all, common)
}

/// Returns the excess of the variance of means for each number of builds, over all frames ([`Noise::memory`]). It never
/// falls with the number of builds.
fn memory(frames: &[Vec<f64>], bends: &[Bends], noise: &Noise) -> Vec<(usize, f64)> {
    let n = frames[0].len();
    let mut longest_excess = 0.0_f64;
    // The lengths are 1, 2, 3, 4, 6, 8, 12 and so on.
    let powers = (0..).map(|k| 1_usize << k).take_while(|m| 2 * m <= n);
    let mut lengths: Vec<usize> = powers.flat_map(|m| [m, m + m / 2]).filter(|m| 2 * m <= n).collect();
    lengths.dedup();
    let all: Vec<(&Vec<f64>, &Bends)> = frames.iter().zip(bends).collect();
    // For each frame: the variance of the difference of neighbouring means by length, and the part beyond counting.
    let courses = parallel::map(&all, |(counts, bends)| {
        let frame_noise = noise.own_noise_of(n, bends);
        let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, frame_noise.tau)).collect();
        let sums = Sums::new(&cut_spikes(&levels).0);
        let variance = |&m: &usize| sums.mean_squared_difference(m) / 2.0 * m as f64;
        (lengths.iter().map(variance).collect::<Vec<f64>>(), frame_noise.beside_counting)
    });
    let mut memory = Vec::new();
    for (place, m) in lengths.into_iter().enumerate() {
        let degrees = (n as f64 / m as f64 - 1.0).max(1.0);
        let of_median = (1.0 - 2.0 / (9.0 * degrees)).powi(3);
        // The relative error of a median of such variances.
        let error = 1.25 * (2.0 / degrees / courses.len() as f64).sqrt();
        let of_frame = |(variances, part): &(Vec<f64>, f64)| {
            let variance = variances[place] / of_median / (1.0 + error);
            ((variance - 1.0) / *part, *part)
        };
        longest_excess = longest_excess.max(weighted_median(courses.iter().map(of_frame).collect()));
        memory.push((m, longest_excess));
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use pprofdiff::shared::statistics::rank::false_discoveries;

    /// Deterministic random numbers (SplitMix64).
    struct SplitMix(u64);

    impl SplitMix {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }

        fn course(&mut self, kind: Jitter, n: usize) -> Vec<f64> {
            let (phase, period) =
                (self.uniform() * std::f64::consts::TAU, [8.0, 12.0, 24.0][(self.uniform() * 3.0) as usize]);
            let mut last = match kind {
                Jitter::Lasting(r) => self.normal() / (1.0 - r * r).sqrt(),
                _ => 0.0,
            };
            let one = |i: usize| match kind {
                Jitter::None => 0.0,
                Jitter::White => self.normal(),
                Jitter::Lasting(r) => {
                    last = r * last + self.normal();
                    last
                }
                Jitter::Walk => {
                    last += 0.4 * self.normal();
                    last
                }
                Jitter::Wave => 1.4 * (phase + std::f64::consts::TAU * i as f64 / period).sin() + 0.3 * self.normal(),
                Jitter::Heavy => {
                    let wide = (self.normal().powi(2) + self.normal().powi(2)) / 2.0;
                    (self.normal() / wide.sqrt().max(1e-3)).clamp(-60.0, 60.0)
                }
            };
            (0..n).map(one).collect()
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Jitter {
        None,
        White,
        /// A first-order autoregression.
        Lasting(f64),
        Walk,
        Wave,
        /// Student's distribution with two degrees of freedom.
        Heavy,
    }

    /// Simulated frames by builds. The first `few` frames have noise of the kind `own`, and later frames have white
    /// noise. All frames share noise of the kind `common`. `deviations` are the standard deviations of both.
    struct Histories {
        own: Jitter,
        few: usize,
        common: Jitter,
        deviations: [f64; 2],
        frames: usize,
        builds: usize,
    }

    impl Histories {
        fn new(own_kind: Jitter, common: Jitter) -> Histories {
            Histories { own: own_kind, few: usize::MAX, common, deviations: [0.05; 2], frames: 20, builds: 40 }
        }

        fn one(&self, random: &mut SplitMix) -> Vec<Vec<f64>> {
            let common = random.course(self.common, self.builds);
            let frame = |f: usize| {
                let cost = 10f64.powf(6.5 + 2.5 * random.uniform());
                let own_course = random.course(if f < self.few { self.own } else { Jitter::White }, self.builds);
                let count = |(own_noise, common): (&f64, &f64)| {
                    cost * (self.deviations[0] * own_noise + self.deviations[1] * common).exp()
                };
                own_course.iter().zip(&common).map(count).collect()
            };
            (0..self.frames).map(frame).collect()
        }
    }

    /// Returns the builds at which each frame has steps, by the same procedure as a series.
    fn steps_of(frames: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let noise = Noise::learn(frames, Vec::clone);
        let of_frame = |counts: &Vec<f64>| {
            let mut counts = counts.clone();
            noise.calm(&mut counts);
            let own_noise = noise.own(&counts);
            let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, own_noise.tau)).collect();
            let (levels, _) = cut_spikes(&levels);
            noise.steps(&levels, &Sums::new(&levels), own_noise)
        };
        let steps: Vec<Vec<(usize, f64)>> = frames.iter().map(of_frame).collect();
        let mut p: Vec<f64> = steps.iter().flatten().map(|(_, p)| *p).collect();
        p.extend(steps.iter().filter(|steps| steps.is_empty()).map(|_| 1.0));
        let mut q = false_discoveries(&p).into_iter();
        let kept = |steps: &Vec<(usize, f64)>| {
            let with_q: Vec<(usize, f64)> = steps.iter().map(|(build, _)| (*build, q.next().unwrap_or(1.0))).collect();
            with_q.into_iter().filter(|(_, q)| *q <= 0.05).map(|(build, _)| build).collect()
        };
        steps.iter().map(kept).collect()
    }

    #[test]
    fn the_common_factor_is_removed_but_not_its_steps() {
        let mut random = SplitMix(3);
        let mut frames = Histories::new(Jitter::White, Jitter::Wave).one(&mut random);
        let wave = Noise::learn(&frames, Vec::clone);
        let common = |noise: &Noise| noise.calming.iter().map(|calming| -calming.ln()).collect::<Vec<f64>>();
        assert!(common(&wave).iter().map(|c| c * c).sum::<f64>() / 40.0 > 0.04 * 0.04, "{:?}", wave.calming);
        let mut frames_of = |common| Histories::new(Jitter::White, common).one(&mut random);
        let free = Noise::learn(&frames_of(Jitter::None), Vec::clone);
        assert!(common(&free).iter().all(|c| c.abs() < 0.03), "{:?}", free.calming);
        frames = frames_of(Jitter::None);
        frames.iter_mut().for_each(|counts| counts[20..].iter_mut().for_each(|count| *count *= 1.3));
        let step = Noise::learn(&frames, Vec::clone);
        assert!(common(&step).iter().all(|c| c.abs() < 0.05), "{:?}", step.calming);
    }

    /// One function varies and grew, and most costs with callees contain it.
    #[test]
    fn a_function_that_all_callers_share_is_no_common_factor() {
        let mut random = SplitMix(9);
        let mut frames = |frames: usize, deviation: f64| {
            let deviations = [deviation, 0.0];
            Histories { frames, deviations, builds: 12, ..Histories::new(Jitter::White, Jitter::None) }.one(&mut random)
        };
        let (mut function, mut own) = (frames(1, 0.3).remove(0), frames(20, 0.05));
        function[6..].iter_mut().for_each(|count| *count *= 1.5);
        let callers: Vec<Vec<f64>> =
            (1..21).map(|n| function.iter().map(|count| count * f64::from(n)).collect()).collect();
        own.push(function);
        let largest = |noise: &Noise| noise.calming.iter().map(|calming| calming.ln().abs()).fold(0.0, f64::max);
        let noise = Noise::learn_with_callees(&own, &callers, Vec::clone);
        assert!(largest(&noise) < 0.05, "{:?}", noise.calming);
        // By the costs with callees alone, the function would be the noise of all.
        let noise = Noise::learn(&callers, Vec::clone);
        assert!(largest(&noise) > 0.2, "{:?}", noise.calming);
    }

    #[test]
    fn memory_and_heavy_tails_are_detected() {
        let mut random = SplitMix(5);
        let mut learn = |kind| Noise::learn(&Histories::new(kind, Jitter::None).one(&mut random), Vec::clone);
        let own_noise = OwnNoise { tau: 0.05, beside_counting: 1.0 };
        let (white, lasting, heavy) = (learn(Jitter::White), learn(Jitter::Lasting(0.7)), learn(Jitter::Heavy));
        assert!(white.memory(own_noise, 10) < 1.5, "{:?}", white.memory);
        // The variance of a mean of ten is 4.1 times the variance under independence. Bends show a quarter of the
        // variance.
        assert!((8.0..40.0).contains(&lasting.memory(own_noise, 10)), "{:?}", lasting.memory);
        assert!(heavy.tails > 0.6 && white.tails < 0.3 && lasting.tails < 0.3, "{} {}", heavy.tails, white.tails);
    }

    /// Prints the tables of docs/statistics.md:
    /// `cargo test --release -p pprofdiff --lib noise:: -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints the tables of docs/statistics.md"]
    fn prints_the_rates_of_false_and_true_steps() {
        const TRIES: u64 = 400;
        let seeds = || (0..TRIES).map(|i| SplitMix(2 * i + 100_001));
        let size = |histories: Histories, frames, builds| Histories { frames, builds, ..histories };
        let (white, none) = (Jitter::White, Jitter::None);
        for (name, histories) in [
            ("white", Histories::new(white, none)),
            ("common AR .7", Histories::new(white, Jitter::Lasting(0.7))),
            ("common wave", Histories::new(white, Jitter::Wave)),
            ("common walk", Histories::new(white, Jitter::Walk)),
            ("AR .7 of each frame", Histories::new(Jitter::Lasting(0.7), none)),
            ("AR .9 of each frame", Histories::new(Jitter::Lasting(0.9), none)),
            ("waves of each frame", Histories::new(Jitter::Wave, none)),
            ("walks of each frame", Histories::new(Jitter::Walk, none)),
            ("t2", Histories::new(Jitter::Heavy, none)),
            ("t2, 120 frames, 60 builds", size(Histories::new(Jitter::Heavy, none), 120, 60)),
            ("AR .7 of 3 of 20 frames", Histories { few: 3, ..Histories::new(Jitter::Lasting(0.7), none) }),
            ("AR .7, 5 frames", size(Histories::new(Jitter::Lasting(0.7), none), 5, 40)),
            ("AR .7, 16 builds", size(Histories::new(Jitter::Lasting(0.7), none), 20, 16)),
        ] {
            let is_false =
                |random: &mut SplitMix| steps_of(&histories.one(random)).iter().any(|steps| !steps.is_empty());
            let count = seeds().filter_map(|mut random| is_false(&mut random).then_some(())).count();
            println!("| {name} | {:.1} |", 100.0 * count as f64 / TRIES as f64);
        }
        let machine = |common, per_frame: f64, machine: f64| Histories {
            deviations: [per_frame, machine],
            ..Histories::new(white, common)
        };
        for (name, histories, factor, in_all) in [
            ("7 %, white", Histories::new(white, none), 1.07, false),
            ("10 %, white", Histories::new(white, none), 1.1, false),
            ("15 %, white", Histories::new(white, none), 1.15, false),
            ("5 %, frames 2 %, machine AR .7", machine(Jitter::Lasting(0.7), 0.02, 0.05), 1.05, false),
            ("10 % in all, frames 2 %, machine 3 %", machine(white, 0.02, 0.03), 1.1, true),
            ("20 %, AR .7 of each frame", Histories::new(Jitter::Lasting(0.7), none), 1.2, false),
            ("40 %, AR .7 of each frame", Histories::new(Jitter::Lasting(0.7), none), 1.4, false),
            ("20 %, t2", Histories::new(Jitter::Heavy, none), 1.2, false),
            ("40 %, t2", Histories::new(Jitter::Heavy, none), 1.4, false),
        ] {
            let is_found = |random: &mut SplitMix| {
                let mut frames = histories.one(random);
                let start = 10 + (20.0 * random.uniform()) as usize;
                let grown = |counts: &mut Vec<f64>| counts[start..].iter_mut().for_each(|count| *count *= factor);
                frames.iter_mut().enumerate().filter(|(f, _)| in_all || *f == 3).for_each(|(_, counts)| grown(counts));
                steps_of(&frames)[3].iter().any(|step| step.abs_diff(start) <= 3)
            };
            let count = seeds().filter_map(|mut random| is_found(&mut random).then_some(())).count();
            println!("| {name} | {:.0} |", 100.0 * count as f64 / TRIES as f64);
        }
    }
}
