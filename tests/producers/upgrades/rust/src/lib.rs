//! Takes the CPU profile of a run with the `pprof` crate.

use pprof::protos::Message;

/// Does the work between the profiler's start and its end, and writes the profile into the file that is the program's
/// first argument. The second is how often the work is done.
pub fn run(rounds: u64, mut work: impl FnMut(u64)) {
    let out = std::env::args().nth(1).expect("usage: PROGRAM OUT.pb [ROUNDS]");
    let rounds = std::env::args().nth(2).map_or(rounds, |n| n.parse().expect("a number of rounds"));
    let guard = pprof::ProfilerGuardBuilder::default()
        .frequency(199)
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()
        .expect("a profiler");
    for round in 0..rounds {
        work(round);
    }
    let profile = guard.report().build().expect("a report").pprof().expect("a profile");
    std::fs::write(out, profile.encode_to_vec()).expect("a file");
}
