//! Go's goroutine dumps as text: `debug=2` of net/http/pprof, the output of a program on SIGQUIT, and the output of a
//! crash.
//!
//! ```text
//! goroutine 18 [chan receive, 12 minutes, locked to thread]:
//! main.wait(...)
//!         /src/main.go:81
//! main.(*pool).work(0xc000012345)
//!         /src/main.go:90 +0x19
//! created by main.main in goroutine 1
//!         /src/main.go:81 +0x333
//! ```
//!
//! Each goroutine becomes a sample of `goroutine/count`, as in Go's goroutine profile, with these labels: `state`
//! (`chan receive`), `minutes` (a number), `locked` (`to thread`), `bubble` (a number), `leaked` (`true`), `created by`
//! (a function), and the program's own labels if Go prints them. The creator is a label because the stacks of Go's
//! profile do not contain it either.
//!
//! Text outside of goroutines is skipped: logs, the panic's message, registers. As in Go's profile, goroutines of the
//! runtime itself are not counted. A goroutine that is printed twice counts once: `GOTRACEBACK=crash` prints running
//! goroutines again from their own threads.
//!
//! Leak detection (`/debug/pprof/goroutineleak`) prints all goroutines and marks leaked goroutines. Such a dump has a
//! second sample type, `goroutineleak/count`, as in Go's profile of leaks.
//!
//! Arguments and offsets in functions are not read. `debug=2` omits frames of the runtime, and all dumps omit type
//! arguments (`[...]`). The source is Go's `runtime/traceback.go`.

use crate::InputFormat;
use crate::legacy::{Pattern, TextLines, decimal, group};
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::{BuilderLine, LocationId, ProfileBuilder};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Result};

pub(crate) const GOROUTINES: InputFormat = InputFormat {
    name: "goroutines",
    about: "Go's goroutines in words: debug=2, SIGQUIT, a crash",
    has_times: false,
    has_events: false,
    recognises,
    read: |name, text, _| read(name, text),
};

static HEADER: Pattern = Pattern::new(r"(?-u)\A\s*goroutine ([0-9]+)(?: gp=\S+ m=\S+(?: mp=\S+)?)? \[(.+)\]:\s*\z");
static CREATED_BY: Pattern = Pattern::new(r"(?-u)\A\s*created by (.+?)(?: in goroutine [0-9]+)?\s*\z");
static ELIDED: Pattern = Pattern::new(r"(?-u)\A\.\.\.(?:additional|[0-9]+) frames elided\.\.\.\s*\z");
/// The place of a frame. Signal handlers and crashes add registers after the offset in the function.
static PLACE: Pattern = Pattern::new(r"(?-u)\A\s+(.+?):([0-9]+)(?: (?:\+0x|fp=|pc=).*)?\s*\z");
/// The functions that the compiler generates for `go f(x)` and `defer f(x)`.
static WRAPPER: Pattern = Pattern::new(r"(?-u)\.(?:gowrap|deferwrap)[0-9]+\z");
/// A leaked goroutine, and the function that writes the dump of a leak detection.
static LEAKED: Pattern = Pattern::new(r"(?m-u)^\s*goroutine [0-9].*\(leaked\)");
static LEAK_WRITER: Pattern = Pattern::new(r"(?m-u)^\s*runtime/pprof\.writeGoroutineLeak\(");

/// The beginning of C frames without a name.
const FOREIGN: &[u8] = b"non-Go function";

/// Frames for parts of a stack that Go did not print.
const FRAMES_ELIDED: &str = "[frames elided]";
const STACK_UNAVAILABLE: &str = "[stack unavailable]";

/// Returns true if a goroutine's line is followed by a frame. The text of a log or a panic may come before it.
fn recognises(head: &[u8]) -> bool {
    if head.contains(&0) {
        return false;
    }
    let mut lines = TextLines::new(head);
    while let Some(line) = lines.next() {
        if HEADER.is_match(line) {
            let mut rest = lines.clone();
            let is_indented = |line: &[u8]| line.first().is_some_and(u8::is_ascii_whitespace);
            let (frame, place) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
            if is_indented(frame) || is_indented(place) || ELIDED.is_match(frame) || frame.starts_with(FOREIGN) {
                return true;
            }
        }
    }
    false
}

fn read(name: &str, text: Vec<u8>) -> Result<Profile> {
    let mut dump = Dump::new(&text);
    let mut lines = TextLines::new(&text);
    while let Some(line) = lines.next() {
        dump.line(line, &lines).map_err(|e| lines.place(e))?;
    }
    dump.finish().map_err(|e| lines.place(e))?;
    if dump.seen.is_empty() {
        let detail = "it has no goroutine; a goroutine begins with a line such as goroutine 1 [running]:";
        return Err(Error::malformed(detail.to_owned()).at(text.len()));
    }
    let Dump { builder, repeated, .. } = dump;
    drop(text);
    let profile = builder.build(name)?;
    if repeated == 0 {
        return Ok(profile);
    }
    let note = format!(
        "{repeated} goroutines are printed more than once and count once; if these are several dumps, give each its own \
         file"
    );
    Ok(profile.with_notes(vec![note]))
}

/// The goroutine whose lines are being read.
struct Goroutine<'t> {
    id: u64,
    status: &'t [u8],
    created_by: &'t [u8],
    /// Locations from the leaf.
    stack: Vec<LocationId>,
    /// Inlined functions whose caller was not read yet.
    inlined: Vec<BuilderLine>,
    /// The function whose file and line come next, and whether it is inlined.
    function: Option<(&'t [u8], bool)>,
    /// False if Go printed that the stack is unavailable.
    has_stack: bool,
    /// True if all frames so far are functions of the package `runtime`.
    is_in_runtime: bool,
}

struct Dump<'t> {
    builder: ProfileBuilder,
    current: Option<Goroutine<'t>>,
    /// True if the dump is from a leak detection, so that samples have a second value.
    has_leaks: bool,
    /// Goroutines without a stack, because they were running on a different thread from the printing thread. With
    /// `GOTRACEBACK=crash`, their own threads print them later.
    without_stack: Vec<Goroutine<'t>>,
    /// The numbers of the goroutines that were added.
    seen: HashSet<u64>,
    /// The number of goroutines that were printed with a stack although they had already been added.
    repeated: u64,
}

impl<'t> Dump<'t> {
    fn new(text: &[u8]) -> Dump<'t> {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("goroutine", "count");
        let is_leak_dump = LEAK_WRITER.is_match(text);
        let has_leaks = is_leak_dump || LEAKED.is_match(text);
        if has_leaks {
            builder.sample_type("goroutineleak", "count");
        }
        let default = if is_leak_dump { "goroutineleak" } else { "goroutine" };
        builder.period(default, "count", 1);
        builder.header().default_sample_type = builder.string(default);
        Dump { builder, current: None, has_leaks, without_stack: Vec::new(), seen: HashSet::default(), repeated: 0 }
    }

    /// Reads a line. `lines` holds the following lines.
    fn line(&mut self, line: &'t [u8], lines: &TextLines<'t>) -> Result<()> {
        if let Some(header) = HEADER.captures(line) {
            self.end_goroutine()?;
            // A goroutine whose id does not fit into 64 bits is skipped; Go's ids have 64 bits.
            let id = std::str::from_utf8(group(&header, 1)).ok().and_then(|id| id.parse().ok());
            let range = header.get(2).map_or(0..0, |status| status.range());
            self.current = id.map(|id| Goroutine {
                id,
                status: &line[range],
                created_by: b"",
                stack: Vec::new(),
                inlined: Vec::new(),
                function: None,
                has_stack: true,
                is_in_runtime: true,
            });
            return Ok(());
        }
        let Some(goroutine) = &mut self.current else { return Ok(()) };
        match goroutine.line(line, lines, &mut self.builder)? {
            true => Ok(()),
            false => self.end_goroutine(),
        }
    }

    fn end_goroutine(&mut self) -> Result<()> {
        let Some(mut goroutine) = self.current.take() else { return Ok(()) };
        goroutine.end_inlined(&mut self.builder)?;
        if goroutine.is_of_runtime() {
            return Ok(());
        }
        match goroutine.has_stack {
            true => self.add(&goroutine),
            false => {
                self.without_stack.push(goroutine);
                Ok(())
            }
        }
    }

    /// Ends the last goroutine. Adds the goroutines that were only printed without a stack.
    fn finish(&mut self) -> Result<()> {
        self.end_goroutine()?;
        for mut goroutine in std::mem::take(&mut self.without_stack) {
            if !self.seen.contains(&goroutine.id) {
                goroutine.stack = vec![special(STACK_UNAVAILABLE, &mut self.builder)?];
                self.add(&goroutine)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, goroutine: &Goroutine<'_>) -> Result<()> {
        if !self.seen.insert(goroutine.id) {
            self.repeated += 1;
            return Ok(());
        }
        let status = GoroutineStatus::parse(goroutine.status);
        let labels = self.labels(&status, goroutine.created_by);
        let values = [1, i64::from(status.is_leaked)];
        self.builder.sample(&goroutine.stack, &values[..1 + usize::from(self.has_leaks)], &labels)
    }

    fn labels(&mut self, status: &GoroutineStatus<'_>, created_by: &[u8]) -> Vec<Label> {
        let mut labels = Vec::new();
        let mut text = |key: &[u8], value: &[u8]| {
            if !value.is_empty() {
                let (key, value) = (self.builder.string(key), self.builder.string(value));
                labels.push(Label { key, value: LabelValue::Text(value) });
            }
        };
        text(b"state", status.state);
        text(b"locked", if status.is_locked { b"to thread" } else { b"" });
        text(b"leaked", if status.is_leaked { b"true" } else { b"" });
        text(b"created by", created_by);
        status.labels.iter().for_each(|(key, value)| text(key.as_bytes(), value.as_bytes()));
        let mut number = |key: &str, value: Option<i64>, unit: &str| {
            if let Some(value) = value {
                let unit = if unit.is_empty() { StringId::EMPTY } else { self.builder.string(unit) };
                labels.push(Label { key: self.builder.string(key), value: LabelValue::Number(value, unit) });
            }
        };
        number("minutes", status.minutes, "minutes");
        number("bubble", status.bubble, "");
        labels
    }
}

impl<'t> Goroutine<'t> {
    /// Reads a line of this goroutine. Returns false if the line does not belong to it, which ends the goroutine.
    fn line(&mut self, line: &'t [u8], lines: &TextLines<'t>, builder: &mut ProfileBuilder) -> Result<bool> {
        if line.first().is_some_and(u8::is_ascii_whitespace) && !line.trim_ascii().is_empty() {
            self.place(line, builder)?;
            return Ok(true);
        }
        if let Some(creator) = CREATED_BY.captures(line) {
            self.created_by = &line[creator.get(1).map_or(0..0, |name| name.range())];
            return Ok(true);
        }
        if ELIDED.is_match(line) {
            self.end_inlined(builder)?;
            self.stack.push(special(FRAMES_ELIDED, builder)?);
            return Ok(true);
        }
        // The stacks of a goroutine's ancestors were recorded when the goroutines were created, so they are skipped.
        if line.starts_with(b"[originating from goroutine ") {
            return Ok(false);
        }
        let is_foreign = line.starts_with(FOREIGN);
        let has_place = lines.clone().next().is_some_and(|next| next.first().is_some_and(u8::is_ascii_whitespace));
        if line.trim_ascii().is_empty() || !(has_place || is_foreign) {
            return Ok(false);
        }
        if !is_foreign {
            self.function = Some(function(line));
        } else {
            // The address in the line differs from run to run, so it is left out of the name.
            self.frame(FOREIGN, b"", 0, false, builder)?;
        }
        Ok(true)
    }

    /// Reads an indented line: the file and line of the previous function, or the note that the stack is unavailable.
    fn place(&mut self, line: &[u8], builder: &mut ProfileBuilder) -> Result<()> {
        let Some((function, is_inlined)) = self.function.take() else {
            self.has_stack &= !line.ends_with(b"stack unavailable");
            return Ok(());
        };
        let place = PLACE.captures(line);
        let (file, number) =
            place.as_ref().map_or((&[][..], 0), |place| (group(place, 1), decimal(group(place, 2)).unwrap_or(0)));
        self.frame(function, file, number, is_inlined, builder)
    }

    fn frame(
        &mut self,
        function: &[u8],
        file: &[u8],
        line: i64,
        is_inlined: bool,
        builder: &mut ProfileBuilder,
    ) -> Result<()> {
        self.is_in_runtime &= function.starts_with(b"runtime.");
        // Go's profile contains neither wrappers nor the function at the root of all stacks. Only a crash prints them.
        if function != b"runtime.goexit" && file != b"<autogenerated>" && !WRAPPER.is_match(function) {
            let function = builder.function(function, file, 0);
            self.inlined.push(builder.line(function, line));
        }
        if !is_inlined {
            self.end_inlined(builder)?;
        }
        Ok(())
    }

    /// Adds one location for the functions that were inlined into the last function, and this function.
    fn end_inlined(&mut self, builder: &mut ProfileBuilder) -> Result<()> {
        if !self.inlined.is_empty() {
            self.stack.push(builder.location(None, 0, &self.inlined)?);
            self.inlined.clear();
        }
        Ok(())
    }

    /// Returns true if Go's goroutine profile leaves this goroutine out. Finalizers and cleanups run in goroutines of
    /// the runtime, and are counted while they run functions of the program. Goroutine 0 is the stack of a thread.
    fn is_of_runtime(&self) -> bool {
        self.id == 0 || self.is_in_runtime && self.created_by.starts_with(b"runtime.")
    }
}

/// Adds a location for a part of a stack that Go did not print.
fn special(name: &str, builder: &mut ProfileBuilder) -> Result<LocationId> {
    let function = builder.function(name, "", 0);
    builder.location(None, 0, &[builder.line(function, 0)])
}

/// Splits a printed function from its arguments, which are numbers and braces. Returns the name, and true if the
/// function is inlined: Go then prints its arguments as `...`.
fn function(line: &[u8]) -> (&[u8], bool) {
    let line = line.trim_ascii();
    let name = match line.iter().rposition(|&b| b == b'(') {
        Some(open) if line.ends_with(b")") && open > 0 => &line[..open],
        _ => line,
    };
    // Go prints only this function under another name.
    let name = if name == b"panic" { b"runtime.gopanic" } else { name };
    (name, line.ends_with(b"(...)"))
}

/// The status in the brackets of a goroutine's line.
#[derive(Debug, Default, PartialEq, Eq)]
struct GoroutineStatus<'t> {
    state: &'t [u8],
    is_leaked: bool,
    is_locked: bool,
    minutes: Option<i64>,
    bubble: Option<i64>,
    labels: Vec<(String, String)>,
}

impl<'t> GoroutineStatus<'t> {
    fn parse(text: &'t [u8]) -> GoroutineStatus<'t> {
        const LABELS: &[u8] = b" labels:{";
        let (text, labels) = match text.windows(LABELS.len()).position(|w| w == LABELS) {
            Some(start) => (&text[..start], parse_labels(&String::from_utf8_lossy(&text[start + LABELS.len()..]))),
            None => (text, Vec::new()),
        };
        let mut status = GoroutineStatus { labels, ..GoroutineStatus::default() };
        let mut parts = text.split(|&b| b == b',').map(<[u8]>::trim_ascii);
        status.state = parts.next().unwrap_or_default();
        // The garbage collector was scanning this goroutine, which is not a property of the goroutine.
        status.state = status.state.strip_suffix(b" (scan)").unwrap_or(status.state);
        if let Some(state) = status.state.strip_suffix(b" (leaked)") {
            (status.state, status.is_leaked) = (state, true);
        }
        for part in parts {
            if let Some(minutes) = part.strip_suffix(b" minutes") {
                status.minutes = decimal(minutes);
            } else if let Some(bubble) = part.strip_prefix(b"synctest bubble ") {
                status.bubble = decimal(bubble);
            } else {
                status.is_locked |= part == b"locked to thread";
            }
        }
        status
    }
}

/// Parses the program's labels, which Go prints with `GODEBUG=tracebacklabels=1` as `"key": "value", "key": "value"}`.
fn parse_labels(text: &str) -> Vec<(String, String)> {
    let (mut labels, mut rest) = (Vec::new(), text);
    while let Some((key, value)) = quoted(&mut rest).zip(quoted(&mut rest)) {
        labels.push((key, value));
    }
    labels
}

/// Removes the next quoted text from `rest`, and reverts the escapes of Go's `printquoted`. Returns `None` if there is
/// no further text or it is malformed.
fn quoted(rest: &mut &str) -> Option<String> {
    let mut chars = rest.get(rest.find('"')? + 1..)?.chars();
    let mut text = String::new();
    loop {
        let c = match chars.next()? {
            '"' => break,
            '\\' => {
                let escape = chars.next()?;
                let mut hex = |digits: usize| {
                    let code: String = chars.by_ref().take(digits).collect();
                    u32::from_str_radix(&code, 16).ok().and_then(char::from_u32)
                };
                match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'x' => hex(2)?,
                    'u' => hex(4)?,
                    'U' => hex(8)?,
                    c => c,
                }
            }
            c => c,
        };
        text.push(c);
    }
    *rest = chars.as_str();
    Some(text)
}
