//! Finds the line in the output of a failed command that explains the failure: the last line that looks like an error.
//! Later lines are backtraces, or messages of wrapper programs (`make`, `cargo`, `go test`, `perf record`) that only
//! report the failure.

use std::path::Path;

use super::process::tail;

/// The maximum number of characters of the line in messages. The rest of a longer line is dropped.
const MAX_CHARS: usize = 300;

/// Returns the line of a log that explains the failure.
pub fn telling_line(output: &Path) -> String {
    let line = telling(&tail(output));
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

fn telling(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let last = |is_such: &dyn Fn(usize, &str) -> bool| (0..lines.len()).rev().find(|&i| is_such(i, lines[i].trim()));
    let position = last(&|i, line| is_error(line) && !is_consequence(line) || is_end_of_traceback(&lines, i))
        .or_else(|| last(&|_, line| has_place(line) && !is_consequence(line)))
        .or_else(|| last(&|_, line| !is_consequence(line)))
        .or_else(|| last(&|_, _| true));
    let Some(index) = position else { return "it printed nothing".to_owned() };
    let line = lines[index].trim();
    // A line that ends in a colon continues on the next line: `Error:` of perf, or a panic of Rust.
    match lines.get(index + 1).filter(|_| line.ends_with(':')) {
        Some(next) => format!("{line} {}", next.trim()),
        None => line.to_owned(),
    }
}

/// Returns true for lines that start like an error: `error: x` (Rust, perf, git), `TypeError: x` and `Error [CODE]: x`
/// (Node, Python), `panic: x` and `fatal error: x` (Go), `a.c:1:2: error: x` (compilers).
fn is_error(line: &str) -> bool {
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let word = word.to_lowercase();
    let is_named = ["error", "exception", "panic", "fatal"].iter().any(|name| word.ends_with(name));
    is_named && [":", "[", " [", " error:"].iter().any(|mark| rest.starts_with(mark))
        || ["Uncaught ", "Exception in thread ", "Caused by: "].iter().any(|begin| line.starts_with(begin))
        || line.starts_with("thread '") && line.contains(" panicked at ")
        || line.contains(": error: ")
        || line.contains(": fatal error: ")
}

/// Returns true for the last line of a Python traceback, which names the exception. It is the first line after
/// `Traceback (most recent call last)` that is not indented.
fn is_end_of_traceback(lines: &[&str], index: usize) -> bool {
    let is_inside = |line: &str| line.starts_with([' ', '\t']);
    let before = lines[..index].iter().rev().find(|line| !is_inside(line));
    index > 0
        && !is_inside(lines[index])
        && before.is_some_and(|line| line.starts_with("Traceback (most recent call last)"))
}

/// Returns true for lines that start with a source position: `./a.go:3:5: undefined: x`, `a_test.go:7: wanted 4`.
fn has_place(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    let is_file = path.contains('.') && !path.contains(char::is_whitespace);
    is_file && rest.starts_with(' ') && line[path.len() + 1..].starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true for lines that only report that something failed or ended, without a reason.
fn is_consequence(line: &str) -> bool {
    let is_make = line.starts_with("make") && line.contains("] Error ");
    let is_cargo = line.starts_with("error: could not compile")
        || line.starts_with("error: aborting due to")
        || line.starts_with("error: ") && line.contains(" failed, to rerun pass ");
    let begins = ["exit status ", "FAIL", "--- FAIL", "collect2: error:", "[ perf record", "py-spy>", "Node.js v"];
    is_make || is_cargo || begins.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, telling, telling_line};

    #[test]
    fn the_line_that_explains_a_failure_is_found_in_the_output_of_many_programs() {
        for (output, expected) in [
            ("", "it printed nothing"),
            ("begin\noh no\n\n", "oh no"),
            // py-spy, with the backtrace of its own error.
            (
                "Error: Failed to look into it.\nReason: gone\n\nStack backtrace:\n   0: a::b\n   6: std::sys::thread::start\n",
                "Error: Failed to look into it.",
            ),
            // perf prints the reason on the next line; the program's own message comes before perf's last lines.
            ("Error:\nAccess is limited.\nConsider more:\n  perf_event_paranoid\n", "Error: Access is limited."),
            ("no input\n[ perf record: Woken up 1 times ]\n[ perf record: Captured 0.1 MB ]\n", "no input"),
            // go test: a compile error, a panic, a test failure, and an error of the go command.
            ("# a/b\n./x.go:3:5: undefined: y\nFAIL\ta/b [build failed]\nFAIL\n", "./x.go:3:5: undefined: y"),
            (
                "goos: linux\npanic: index out of range [1]\n\ngoroutine 6 [running]:\na/b.f(...)\n\t/x/a_test.go:7 +0x1d\nexit status 2\nFAIL\ta/b\t0.003s\nFAIL\n",
                "panic: index out of range [1]",
            ),
            ("--- FAIL: BenchmarkF\n    a_test.go:7: wanted 4\nFAIL\nexit status 1\n", "a_test.go:7: wanted 4"),
            (
                "fatal error: all goroutines are asleep\n\ngoroutine 1:\nmain.main()\n",
                "fatal error: all goroutines are asleep",
            ),
            ("go: cannot find main module\n", "go: cannot find main module"),
            // Node.
            (
                "/x/app.js:3\n  throw new Error('no')\n  ^\n\nTypeError: no\n    at run (/x/app.js:3:9)\n\nNode.js v22.1.0\n",
                "TypeError: no",
            ),
            ("node:internal/x:9\n  throw err;\nError [ERR_X]: no y {\n  code: 'ERR_X'\n}\n", "Error [ERR_X]: no y {"),
            ("node: bad option: --x\n", "node: bad option: --x"),
            // Python: the last line of a traceback starts with any exception name.
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\nshop.NotThere: no cart\nclosing\n",
                "shop.NotThere: no cart",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 1\n\nDuring handling:\n\nTraceback (most recent call last):\n  File \"a.py\", line 2\nKeyboardInterrupt\npy-spy> Wrote it\n",
                "KeyboardInterrupt",
            ),
            // cargo: a compiler error, and a panic that continues on the next line.
            (
                "error[E0425]: cannot find value `x`\n --> src/main.rs:2:5\n\nerror: could not compile `a` due to 1 error\n",
                "error[E0425]: cannot find value `x`",
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:\nno cart\nnote: run with `RUST_BACKTRACE=1`\nerror: bench failed, to rerun pass `--bench a`\n",
                "thread 'main' panicked at src/main.rs:2:5: no cart",
            ),
            // make, compilers and linkers.
            (
                "cc a.c\na.c:1:2: error: expected ';'\n  1 | int\nmake: *** [Makefile:2: a] Error 1\n",
                "a.c:1:2: error: expected ';'",
            ),
            (
                "/bin/ld: a.c: undefined reference to `f'\ncollect2: error: ld returned 1\n",
                "/bin/ld: a.c: undefined reference to `f'",
            ),
            ("make: *** No rule to make target 'a'.  Stop.\n", "make: *** No rule to make target 'a'.  Stop."),
            ("make: *** [Makefile:2: a] Error 1\n", "make: *** [Makefile:2: a] Error 1"),
            // Java.
            (
                "Exception in thread \"main\" a.B: x\n\tat a.C.run(C.java:1)\nCaused by: a.D: y\n\tat a.E\n",
                "Caused by: a.D: y",
            ),
            // Lines that only look like errors.
            ("errors: 0\nerror rate 1 %\ngone\n", "gone"),
            ("http://a.b/c: 404\ngone\n", "gone"),
        ] {
            assert_eq!(telling(output), expected, "{output}");
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        let file = std::env::temp_dir().join(format!("pprofdiff-telling-{}", std::process::id()));
        assert!(std::fs::write(&file, "\u{e4}".repeat(2 * MAX_CHARS)).is_ok());
        assert_eq!(telling_line(&file), "\u{e4}".repeat(MAX_CHARS) + "...");
        let _ = std::fs::remove_file(&file);
    }
}
