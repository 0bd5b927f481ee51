//! What builds of a history differ by though nothing changed: what all frames have in common, how long it lasts, and how
//! far it reaches. Learned before lasting changes are looked for.
//!
//! ```text
//! counts of frames -> what they have in common, taken out -> variance of each by its bends -> memory: variances of
//! means of so many builds, over all frames
//! ```
//!
//! The common factor is a median polish (Tukey 1977). Memory is read off the Allan variance, that of neighbouring means
//! of m builds (Allan 1966): of independent builds it falls with 1/m, of what lasts more slowly. Heavy tails show in it
//! too, since the variance of each frame is a robust one. The memory of what is common, of which there is only one course,
//! can't be told from its steps: they must explain what a first-order autoregression without them does not.

use super::counts::{median, weighted_median};
use super::segments::{DEGREES, Sums, cut_spikes, leveled, steps};
use pprofdiff_profile::parallel;

/// Frames with fewer events in a build, by the median, do not show what builds differ by.
const TELLING: f64 = 20.0;
/// So many frames and builds are needed to tell what they have in common, and how long it lasts.
const FEWEST_FRAMES: usize = 8;
const FEWEST_BUILDS: usize = 12;
/// The costliest frames show it.
const MAX_TELLING: usize = 1_000;
/// Builds differ by this at least.
const LEAST_TAU: f64 = 0.01;
/// The builds from which on one frame shows by itself whether it wanders.
const FEWEST_ALONE: usize = 20;
/// The probability with which wandering explains a step as well, where all frames say how far builds wander.
const WANDERING: f64 = 2e-4;
/// The part of the bends that is far, where a normal variable has so many deviations.
const FAR_PART: f64 = 0.05;
const FAR: f64 = 1.96;
/// How far the share of far bends may be from that of a normal variable by chance.
const NORMAL: f64 = 1.1;

/// What builds of a history differ by.
pub(crate) struct Noise {
    /// What counts are multiplied by, by build, to take out what all frames have in common, without its lasting changes.
    calming: Vec<f64>,
    /// The typical frame's variance of the log between builds, beside counting.
    typical: f64,
    /// How much more than 1 the variance of a mean of so many builds is, by that of independent ones; of noise beside
    /// counting, which has no memory.
    memory: Vec<(usize, f64)>,
    /// How much more than 1 the variance is that the far bends show, by that of all.
    tails: f64,
}

/// A frame's own noise.
#[derive(Clone, Copy)]
pub(crate) struct OwnNoise {
    pub tau: f64,
    /// The part of the variance that counting does not explain.
    beside_counting: f64,
}

/// What a frame's neighbours differ by.
struct Bends {
    /// The median of its events.
    typical: f64,
    /// How far the log of each build is from a line through its neighbours, in no order.
    sizes: Vec<f64>,
    /// The variance of the log that they show.
    variance: f64,
}

impl Bends {
    fn new(counts: &[f64]) -> Bends {
        let logs: Vec<f64> = counts.iter().map(|count| (count + 0.5).ln()).collect();
        let (sizes, variance) = bends(&logs);
        Bends { typical: median(&mut counts.to_vec()), sizes, variance }
    }

    /// What neighbours differ by beside what counting does, and beside a trend: the variance of the log; `None` of too few
    /// events.
    fn beside_counting(&self) -> Option<f64> {
        (self.typical >= TELLING).then(|| (self.variance - 1.0 / self.typical).max(0.0))
    }
}

impl Noise {
    /// By the events of frames in each build, the costliest frame first.
    pub(crate) fn learn<T: Sync>(frames: &[T], counts: impl Fn(&T) -> Vec<f64> + Sync) -> Noise {
        let mut telling: Vec<Vec<f64>> = Vec::new();
        let tells = |frame: &T| Some(counts(frame)).filter(|counts| median(&mut counts.clone()) >= TELLING);
        for some in frames.chunks(MAX_TELLING) {
            let room = MAX_TELLING - telling.len();
            telling.extend(parallel::map(some, tells).into_iter().flatten().take(room));
        }
        let n = telling.first().map_or(0, Vec::len);
        let can_learn = telling.len() >= FEWEST_FRAMES && n >= FEWEST_BUILDS;
        let (all, common) = if can_learn { common_factor(&telling) } else { Default::default() };
        let mut noise = Noise { calming: calming(&all), typical: 0.0, memory: Vec::new(), tails: 0.0 };
        telling.iter_mut().for_each(|counts| noise.calm(counts));
        let bends = parallel::map(&telling, |counts| Bends::new(counts));
        let mut variances: Vec<f64> = bends.iter().filter_map(Bends::beside_counting).collect();
        noise.typical = median(&mut variances).max(LEAST_TAU * LEAST_TAU);
        if can_learn {
            noise.memory = memory(&telling, &bends, &noise);
            noise.tails = tails(&bends);
        }
        noise.calming = calming(&common);
        noise
    }

    /// Takes out what all frames have in common.
    pub(crate) fn calm(&self, counts: &mut [f64]) {
        counts.iter_mut().zip(&self.calming).for_each(|(count, calming)| *count *= calming);
    }

    /// One frame's noise, drawn towards the typical one's, by its events without what is common.
    pub(crate) fn own(&self, counts: &[f64]) -> OwnNoise {
        self.own_of(counts.len(), &Bends::new(counts))
    }

    fn own_of(&self, n: usize, bends: &Bends) -> OwnNoise {
        let n = n as f64;
        let own = bends.beside_counting().unwrap_or(self.typical);
        let drawn = ((DEGREES * self.typical + n * own) / (DEGREES + n)).max(self.typical / 4.0);
        let excess = drawn * bends.typical;
        OwnNoise { tau: drawn.sqrt(), beside_counting: excess / (1.0 + excess) }
    }

    /// Where a frame's levels change by more than chance, each with its p-value.
    pub(crate) fn steps(&self, levels: &[f64], sums: &Sums, own: OwnNoise) -> Vec<(usize, f64)> {
        let is_alone = self.memory.is_empty();
        let level = if is_alone { of_one(levels.len()) } else { WANDERING };
        let wandering = (levels.len() >= FEWEST_ALONE).then_some(level);
        steps(levels, sums, |builds| self.memory(own, builds), wandering)
    }

    /// How many times the variance of independent builds the mean of so many has.
    pub(crate) fn memory(&self, own: OwnNoise, builds: usize) -> f64 {
        let longest = self.memory.iter().find(|(length, _)| *length >= builds).or(self.memory.last());
        let part = own.beside_counting;
        (1.0 + part * longest.map_or(0.0, |(_, excess)| *excess)) * (1.0 + part * self.tails)
    }
}

/// The level for any two of so many builds.
fn of_one(builds: usize) -> f64 {
    0.05 / (builds * builds) as f64
}

/// What counts are multiplied by to take out what is common.
fn calming(common: &[f64]) -> Vec<f64> {
    common.iter().map(|common| (-common).exp()).collect()
}

/// How much larger the variance is that a normal variable with bends as far would have than that of the bends in the
/// middle.
fn tails(frames: &[Bends]) -> f64 {
    let mut all: Vec<f64> = Vec::with_capacity(frames.iter().map(|bends| bends.sizes.len()).sum());
    for bends in frames {
        let deviation = bends.variance.sqrt().max(1e-9) * 6f64.sqrt();
        all.extend(bends.sizes.iter().map(|size| size / deviation));
    }
    let at = (all.len() as f64 * (1.0 - FAR_PART)) as usize;
    let far = *all.select_nth_unstable_by(at, f64::total_cmp).1 / FAR;
    (far * far / NORMAL - 1.0).max(0.0)
}

/// How far each value is from a line through its neighbours, in no order, and the variance that this shows.
fn bends(values: &[f64]) -> (Vec<f64>, f64) {
    let mut sizes: Vec<f64> = values.windows(3).map(|three| (three[0] - 2.0 * three[1] + three[2]).abs()).collect();
    // The median of a normal variable's magnitude is 0.6745 of its deviation, and a second difference has six times the
    // variance of each.
    let deviation = median(&mut sizes) / 0.6745;
    (sizes, deviation * deviation / 6.0)
}

/// A number of each build, of the values that frames have in it.
fn by_build(frames: &[Vec<f64>], number: impl Fn(usize, &mut [f64]) -> f64 + Sync) -> Vec<f64> {
    // Some neighbouring builds at once, since each frame's are beside each other.
    const BESIDE: usize = 16;
    let n = frames[0].len();
    let firsts: Vec<usize> = (0..n).step_by(BESIDE).collect();
    let of_some = |&first: &usize| {
        let some = first..n.min(first + BESIDE);
        let mut values = vec![Vec::with_capacity(frames.len()); some.len()];
        for frame in frames {
            values.iter_mut().zip(&frame[some.clone()]).for_each(|(values, value)| values.push(*value));
        }
        some.zip(&mut values).map(|(build, values)| number(build, values)).collect::<Vec<f64>>()
    };
    parallel::map(&firsts, of_some).concat()
}

/// The log of what all frames have in common, without its lasting changes, and drawn towards none as far as frames that
/// have nothing in common would show as much.
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
    // The median of as many independent frames would vary so much.
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
        steps(&levels, &sums, |_| 1.0, Some(of_one(n))).into_iter().map(|(start, _)| start).collect();
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

/// By lengths, over all frames.
fn memory(frames: &[Vec<f64>], bends: &[Bends], noise: &Noise) -> Vec<(usize, f64)> {
    let n = frames[0].len();
    let mut most = 0.0_f64;
    // 1, 2, 3, 4, 6, 8, 12 ...
    let powers = (0..).map(|k| 1_usize << k).take_while(|m| 2 * m <= n);
    let mut lengths: Vec<usize> = powers.flat_map(|m| [m, m + m / 2]).filter(|m| 2 * m <= n).collect();
    lengths.dedup();
    let all: Vec<(&Vec<f64>, &Bends)> = frames.iter().zip(bends).collect();
    // The variance of neighbouring means of so many builds, by frame and length, and the part beside counting.
    let courses = parallel::map(&all, |(counts, bends)| {
        let own = noise.own_of(n, bends);
        let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, own.tau)).collect();
        let sums = Sums::new(&cut_spikes(&levels).0);
        let variance = |&m: &usize| {
            let all = n + 1 - 2 * m;
            let squares = |i: usize| sums.difference((i + m, i + 2 * m), (i, i + m)).powi(2) / 2.0;
            (0..all).map(squares).sum::<f64>() / all as f64 * m as f64
        };
        (lengths.iter().map(variance).collect::<Vec<f64>>(), own.beside_counting)
    });
    let mut found = Vec::new();
    for (place, m) in lengths.into_iter().enumerate() {
        let degrees = (n as f64 / m as f64 - 1.0).max(1.0);
        let of_median = (1.0 - 2.0 / (9.0 * degrees)).powi(3);
        // The error of a median of such variances.
        let error = 1.25 * (2.0 / degrees / courses.len() as f64).sqrt();
        let of_frame = |(variances, part): &(Vec<f64>, f64)| {
            let variance = variances[place] / of_median / (1.0 + error);
            ((variance - 1.0) / *part, *part)
        };
        most = most.max(weighted_median(courses.iter().map(of_frame).collect()));
        found.push((m, most));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::rank::false_discoveries;

    /// Numbers that are always the same (splitmix64).
    struct Random(u64);

    impl Random {
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

        fn course(&mut self, kind: Kind, n: usize) -> Vec<f64> {
            let (phase, period) =
                (self.uniform() * std::f64::consts::TAU, [8.0, 12.0, 24.0][(self.uniform() * 3.0) as usize]);
            let mut last = match kind {
                Kind::Lasting(r) => self.normal() / (1.0 - r * r).sqrt(),
                _ => 0.0,
            };
            let one = |i: usize| match kind {
                Kind::None => 0.0,
                Kind::White => self.normal(),
                Kind::Lasting(r) => {
                    last = r * last + self.normal();
                    last
                }
                Kind::Walk => {
                    last += 0.4 * self.normal();
                    last
                }
                Kind::Wave => 1.4 * (phase + std::f64::consts::TAU * i as f64 / period).sin() + 0.3 * self.normal(),
                Kind::Heavy => {
                    let wide = (self.normal().powi(2) + self.normal().powi(2)) / 2.0;
                    (self.normal() / wide.sqrt().max(1e-3)).clamp(-60.0, 60.0)
                }
            };
            (0..n).map(one).collect()
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kind {
        None,
        White,
        /// A first-order autoregression.
        Lasting(f64),
        Walk,
        Wave,
        /// Student's with two degrees of freedom.
        Heavy,
    }

    /// Frames by builds: noise of their own, of the first `few` only the others are free; and in common; deviations.
    struct Histories {
        own: Kind,
        few: usize,
        common: Kind,
        deviations: [f64; 2],
        frames: usize,
        builds: usize,
    }

    impl Histories {
        fn new(own: Kind, common: Kind) -> Histories {
            Histories { own, few: usize::MAX, common, deviations: [0.05; 2], frames: 20, builds: 40 }
        }

        fn one(&self, random: &mut Random) -> Vec<Vec<f64>> {
            let common = random.course(self.common, self.builds);
            let frame = |f: usize| {
                let cost = 10f64.powf(6.5 + 2.5 * random.uniform());
                let own = random.course(if f < self.few { self.own } else { Kind::White }, self.builds);
                let of =
                    |(own, common): (&f64, &f64)| cost * (self.deviations[0] * own + self.deviations[1] * common).exp();
                own.iter().zip(&common).map(of).collect()
            };
            (0..self.frames).map(frame).collect()
        }
    }

    /// The frames with steps as a series finds them, and where.
    fn found(frames: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let noise = Noise::learn(frames, Vec::clone);
        let of_frame = |counts: &Vec<f64>| {
            let mut counts = counts.clone();
            noise.calm(&mut counts);
            let own = noise.own(&counts);
            let levels: Vec<f64> = counts.iter().map(|&count| leveled(count, own.tau)).collect();
            let (levels, _) = cut_spikes(&levels);
            noise.steps(&levels, &Sums::new(&levels), own)
        };
        let steps: Vec<Vec<(usize, f64)>> = frames.iter().map(of_frame).collect();
        let mut p: Vec<f64> = steps.iter().flatten().map(|(_, p)| *p).collect();
        p.extend(steps.iter().filter(|steps| steps.is_empty()).map(|_| 1.0));
        let mut q = false_discoveries(&p).into_iter();
        let kept = |steps: &Vec<(usize, f64)>| {
            let with_q: Vec<(usize, f64)> = steps.iter().map(|(at, _)| (*at, q.next().unwrap_or(1.0))).collect();
            with_q.into_iter().filter(|(_, q)| *q <= 0.05).map(|(at, _)| at).collect()
        };
        steps.iter().map(kept).collect()
    }

    #[test]
    fn what_all_frames_have_in_common_is_taken_out_but_not_its_steps() {
        let mut random = Random(3);
        let mut frames = Histories::new(Kind::White, Kind::Wave).one(&mut random);
        let wave = Noise::learn(&frames, Vec::clone);
        let common = |noise: &Noise| noise.calming.iter().map(|calming| -calming.ln()).collect::<Vec<f64>>();
        assert!(common(&wave).iter().map(|c| c * c).sum::<f64>() / 40.0 > 0.04 * 0.04, "{:?}", wave.calming);
        let mut frames_of = |common| Histories::new(Kind::White, common).one(&mut random);
        let free = Noise::learn(&frames_of(Kind::None), Vec::clone);
        assert!(common(&free).iter().all(|c| c.abs() < 0.03), "{:?}", free.calming);
        frames = frames_of(Kind::None);
        frames.iter_mut().for_each(|counts| counts[20..].iter_mut().for_each(|count| *count *= 1.3));
        let step = Noise::learn(&frames, Vec::clone);
        assert!(common(&step).iter().all(|c| c.abs() < 0.05), "{:?}", step.calming);
    }

    #[test]
    fn memory_and_tails_are_found() {
        let mut random = Random(5);
        let mut learn = |own| Noise::learn(&Histories::new(own, Kind::None).one(&mut random), Vec::clone);
        let own = OwnNoise { tau: 0.05, beside_counting: 1.0 };
        let (white, lasting, heavy) = (learn(Kind::White), learn(Kind::Lasting(0.7)), learn(Kind::Heavy));
        assert!(white.memory(own, 10) < 1.5, "{:?}", white.memory);
        // Of a mean of ten 4.1 times that of independent ones, of which bends show a quarter.
        assert!((8.0..40.0).contains(&lasting.memory(own, 10)), "{:?}", lasting.memory);
        assert!(heavy.tails > 0.6 && white.tails < 0.3 && lasting.tails < 0.3, "{} {}", heavy.tails, white.tails);
    }

    /// What docs/statistics.md sums up: `cargo test --release -p pprofdiff --lib noise:: -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints what docs/statistics.md says"]
    fn how_often_histories_have_false_steps_and_true_ones() {
        const TRIES: u64 = 400;
        let seeds = || (0..TRIES).map(|i| Random(2 * i + 100_001));
        let size = |histories: Histories, frames, builds| Histories { frames, builds, ..histories };
        let (white, none) = (Kind::White, Kind::None);
        for (name, histories) in [
            ("white", Histories::new(white, none)),
            ("common AR .7", Histories::new(white, Kind::Lasting(0.7))),
            ("common wave", Histories::new(white, Kind::Wave)),
            ("common walk", Histories::new(white, Kind::Walk)),
            ("AR .7 of each frame", Histories::new(Kind::Lasting(0.7), none)),
            ("AR .9 of each frame", Histories::new(Kind::Lasting(0.9), none)),
            ("waves of each frame", Histories::new(Kind::Wave, none)),
            ("walks of each frame", Histories::new(Kind::Walk, none)),
            ("t2", Histories::new(Kind::Heavy, none)),
            ("t2, 120 frames, 60 builds", size(Histories::new(Kind::Heavy, none), 120, 60)),
            ("AR .7 of 3 of 20 frames", Histories { few: 3, ..Histories::new(Kind::Lasting(0.7), none) }),
            ("AR .7, 5 frames", size(Histories::new(Kind::Lasting(0.7), none), 5, 40)),
            ("AR .7, 16 builds", size(Histories::new(Kind::Lasting(0.7), none), 20, 16)),
        ] {
            let is_false = |random: &mut Random| found(&histories.one(random)).iter().any(|steps| !steps.is_empty());
            let of = seeds().filter_map(|mut random| is_false(&mut random).then_some(())).count();
            println!("| {name} | {:.1} |", 100.0 * of as f64 / TRIES as f64);
        }
        let machine =
            |common, own: f64, machine: f64| Histories { deviations: [own, machine], ..Histories::new(white, common) };
        for (name, histories, factor, of_all) in [
            ("7 %, white", Histories::new(white, none), 1.07, false),
            ("10 %, white", Histories::new(white, none), 1.1, false),
            ("15 %, white", Histories::new(white, none), 1.15, false),
            ("5 %, frames 2 %, machine AR .7", machine(Kind::Lasting(0.7), 0.02, 0.05), 1.05, false),
            ("10 % in all, frames 2 %, machine 3 %", machine(white, 0.02, 0.03), 1.1, true),
            ("20 %, AR .7 of each frame", Histories::new(Kind::Lasting(0.7), none), 1.2, false),
            ("40 %, AR .7 of each frame", Histories::new(Kind::Lasting(0.7), none), 1.4, false),
            ("20 %, t2", Histories::new(Kind::Heavy, none), 1.2, false),
            ("40 %, t2", Histories::new(Kind::Heavy, none), 1.4, false),
        ] {
            let is_found = |random: &mut Random| {
                let mut frames = histories.one(random);
                let at = 10 + (20.0 * random.uniform()) as usize;
                let grown = |counts: &mut Vec<f64>| counts[at..].iter_mut().for_each(|count| *count *= factor);
                frames.iter_mut().enumerate().filter(|(f, _)| of_all || *f == 3).for_each(|(_, counts)| grown(counts));
                found(&frames)[3].iter().any(|start| start.abs_diff(at) <= 3)
            };
            let of = seeds().filter_map(|mut random| is_found(&mut random).then_some(())).count();
            println!("| {name} | {:.0} |", 100.0 * of as f64 / TRIES as f64);
        }
    }
}
