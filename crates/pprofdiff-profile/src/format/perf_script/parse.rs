//! The lines of the text: which are samples, frames and comments, and what is in them.

/// The header that `--header` prints; not a thread whose name begins so, in which no blank follows.
pub(super) fn is_comment(line: &[u8]) -> bool {
    let is_sample = || {
        line.get(1).is_some_and(|b| !b.is_ascii_whitespace())
            && Header::parse(line).is_some_and(|header| header.event.is_some() || header.time.is_some())
    };
    line.starts_with(b"#") && !is_sample()
}

/// What is no sample: mapped files, new threads, lost samples, which perf prints if it is asked to.
pub(super) fn is_record(line: &[u8]) -> bool {
    const WORD: &[u8] = b" PERF_RECORD_";
    // It stands behind the time, before the rest.
    line.split(|&b| b == b':').take(8).any(|part| part.starts_with(WORD))
}

pub(super) fn is_indented(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace)
}

/// A sample's line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'t> {
    /// Empty of threads without a name.
    pub(super) comm: &'t [u8],
    pub(super) pid: Option<i64>,
    pub(super) tid: i64,
    /// In seconds, as it is printed.
    pub(super) time: Option<&'t [u8]>,
    /// As it is printed.
    pub(super) period: Option<&'t [u8]>,
    pub(super) event: Option<&'t [u8]>,
    /// What follows: a frame, or the fields of a tracepoint.
    pub(super) rest: &'t [u8],
}

/// The first word of a text and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    text.split_at(text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()))
}

fn is_number(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

pub(super) fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok().filter(|_| is_number(digits))?.parse().ok()
}

/// True of a CPU: `[001]`.
fn is_bracketed(word: &[u8]) -> bool {
    word.len() > 2 && word.starts_with(b"[") && word.ends_with(b"]")
}

impl<'t> Header<'t> {
    /// The name of a thread may have blanks and digits, so the first word counts from which on the rest fits. Names are
    /// of less than 64 bytes, so not many are tried.
    pub(super) fn parse(line: &'t [u8]) -> Option<Header<'t>> {
        let line = line.trim_ascii();
        let (first, rest) = word(line);
        // Without a name its numbers come first. A number alone may be a name, unless a CPU or a time follows.
        if let Some(header) = Header::after_comm(b"", first, rest)
            && (header.pid.is_some() || header.time.is_some() || is_bracketed(word(rest).0))
        {
            return Some(header);
        }
        let mut at = first.len();
        while at < line.len().min(64) {
            let (this, rest) = word(&line[at..]);
            if let Some(header) = Header::after_comm(line[..at].trim_ascii_end(), this, rest) {
                return Some(header);
            }
            at = line.len() - rest.len();
        }
        None
    }

    fn after_comm(comm: &'t [u8], ids: &'t [u8], rest: &'t [u8]) -> Option<Header<'t>> {
        // What is not known is -1.
        let id = |text: &[u8]| if text == b"-1" { Some(-1) } else { number(text) };
        let (pid, tid) = match ids.iter().position(|&b| b == b'/') {
            Some(slash) => (Some(id(&ids[..slash])?), id(&ids[slash + 1..])?),
            None => (None, id(ids)?),
        };
        let mut header = Header { comm, pid, tid, time: None, period: None, event: None, rest };
        let (mut this, mut after) = word(rest);
        if is_bracketed(this) {
            (header.rest, (this, after)) = (after, word(after));
        }
        let is_time = |word: &[u8]| {
            let seconds = word.strip_suffix(b":").unwrap_or_default();
            let mut parts = seconds.splitn(2, |&b| b == b'.');
            parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number)
        };
        if is_time(this) {
            header.time = this.strip_suffix(b":");
            (header.rest, (this, after)) = (after, word(after));
        }
        let period = Some(this).filter(|this| is_number(this));
        if period.is_some() {
            (this, after) = word(after);
            // Then that was the thread, and this is still its name.
            if is_time(this) {
                return None;
            }
        }
        let event = this.strip_suffix(b":").filter(|event| event.first().is_some_and(u8::is_ascii_alphabetic));
        if event.is_some() {
            (header.period, header.event, header.rest) = (period, event, after);
        }
        header.rest = header.rest.trim_ascii();
        // Without an event nothing but a frame may follow.
        let fits = event.is_some() || header.rest.is_empty() || Frame::parse_own(header.rest).is_some();
        fits.then_some(header)
    }
}

/// A frame's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'t> {
    pub(super) address: &'t [u8],
    /// Empty if it is not known.
    pub(super) symbol: &'t [u8],
    pub(super) binary: &'t [u8],
    pub(super) inlined: bool,
    /// `file:line`, if the next line has it.
    pub(super) source: &'t [u8],
}

impl<'t> Frame<'t> {
    /// The frame on a sample's line. The fields of tracepoints stand there too, which may begin with a number.
    pub(super) fn parse_own(rest: &'t [u8]) -> Option<Frame<'t>> {
        Frame::parse(rest).filter(|frame| rest.ends_with(b")") || frame.address.len() >= 8)
    }

    pub(super) fn parse(line: &'t [u8]) -> Option<Frame<'t>> {
        let (address, rest) = word(line);
        if address.is_empty() || address.len() > 16 || !address.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let rest = rest.trim_ascii();
        if rest.is_empty() {
            return None;
        }
        let (mut symbol, mut binary) = (rest, &b""[..]);
        let named = rest.strip_suffix(b" (deleted))").or_else(|| rest.strip_suffix(b")"));
        if let Some((named, open)) = named.and_then(|named| Some((named, find_binary(named)?))) {
            (symbol, binary) = (named[..open].trim_ascii_end(), &named[open + 1..]);
        }
        let inlined = binary == b"inlined";
        let binary = if inlined || binary == b"[unknown]" { b"" } else { binary };
        let symbol = without_offset(symbol);
        let symbol = if symbol == b"[unknown]" { b"" } else { symbol };
        Some(Frame { address, symbol, binary, inlined, source: b"" })
    }
}

/// Where the parenthesis opens that the binary stands in, of `symbol (binary` without its end. Symbols have parentheses
/// too, and so have paths.
fn find_binary(named: &[u8]) -> Option<usize> {
    let opens = || (0..named.len()).filter(|&at| opens_word(named, at));
    let last = opens().next_back()?;
    if &named[last..] == b"(inlined" {
        return Some(last);
    }
    // With an offset or no name it is plain where the symbol ends.
    let ends_symbol = |&at: &usize| {
        let symbol = named[..at].trim_ascii_end();
        let digits = symbol.iter().rev().take_while(|b| b.is_ascii_hexdigit()).count();
        symbol == b"[unknown]" || digits > 0 && symbol[..symbol.len() - digits].ends_with(b"+0x")
    };
    if let Some(open) = opens().find(ends_symbol) {
        return Some(open);
    }
    let pair = opening(named);
    let is_file = |&at: &usize| matches!(named.get(at + 1), Some(b'/' | b'['));
    pair.filter(is_file).or_else(|| opens().rfind(is_file)).or(pair).or(Some(last))
}

fn opens_word(text: &[u8], at: usize) -> bool {
    text[at] == b'(' && (at == 0 || text[at - 1] == b' ')
}

/// The parenthesis that is closed behind the end of a text, if a word begins with it.
fn opening(text: &[u8]) -> Option<usize> {
    let mut depth = 1;
    let closed = text.iter().rposition(|b| {
        match b {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    closed.filter(|&at| opens_word(text, at))
}

fn find_last(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).rposition(|w| w == word)
}

/// A symbol without `+0x1f` at its end.
fn without_offset(symbol: &[u8]) -> &[u8] {
    match find_last(symbol, b"+0x") {
        Some(at) if at + 3 < symbol.len() && symbol[at + 3..].iter().all(u8::is_ascii_hexdigit) => &symbol[..at],
        _ => symbol,
    }
}

/// A file and its line; nothing if perf did not find them, which it prints as `??:0` or `binary[address]`.
pub(super) fn source_line(source: &[u8]) -> (&[u8], i64) {
    let Some(colon) = source.iter().rposition(|&b| b == b':') else { return (b"", 0) };
    // Some builds print `file:12 (discriminator 3)`.
    let (digits, _) = word(&source[colon + 1..]);
    match (number(digits), &source[..colon]) {
        (Some(_), b"??") | (None, _) => (b"", 0),
        (Some(line), file) => (file, line),
    }
}
