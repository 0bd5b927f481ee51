//! The formats that pprof read before `profile.proto`: recognised by how they begin, to say what to do with them.

use super::InputFormat;

pub(super) const HEAP: InputFormat = InputFormat {
    name: "heap",
    about: "a heap profile in text form",
    recognises: |head| begins(head, &["heap profile:", "--- heapz", "--- growthz"]),
    read: None,
};

pub(super) const CONTENTION: InputFormat = InputFormat {
    name: "contention",
    about: "a contention profile in text form",
    recognises: |head| begins(head, &["--- contention", "--- mutex"]),
    read: None,
};

pub(super) const THREADS: InputFormat = InputFormat {
    name: "threads",
    about: "a thread profile in text form",
    recognises: |head| begins(head, &["--- threadz", "--- Thread"]),
    read: None,
};

pub(super) const GO_COUNT: InputFormat = InputFormat {
    name: "go-count",
    about: "a Go count profile in text form (debug=1)",
    recognises: |head| {
        let words = b" profile: total ";
        let first_line = head.trim_ascii_start().split(|&b| b == b'\n').next().unwrap_or_default();
        first_line.windows(words.len()).any(|w| w == words)
    },
    read: None,
};

pub(super) const GPERFTOOLS_CPU: InputFormat = InputFormat {
    name: "gperftools-cpu",
    about: "a gperftools CPU profile",
    recognises: |head| {
        // It begins with the words 0, 3, 0, PERIOD, 0: 32 or 64 bits wide, either endian.
        let words_4 = [[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]];
        let mut little_8 = [0; 24];
        little_8[8] = 3;
        let mut big_8 = [0; 24];
        big_8[15] = 3;
        words_4.iter().any(|w| head.starts_with(w)) || head.starts_with(&little_8) || head.starts_with(&big_8)
    },
    read: None,
};

fn begins(head: &[u8], words: &[&str]) -> bool {
    let text = head.trim_ascii_start();
    words.iter().any(|w| text.starts_with(w.as_bytes()))
}
