//! Parses single lines of the text: samples, frames and comments.

/// Returns true for the comments that `--header` prints. A thread whose name begins with `#` is different: no blank
/// follows the `#`.
pub(super) fn is_comment(line: &[u8]) -> bool {
    let is_sample = || {
        line.get(1).is_some_and(|b| !b.is_ascii_whitespace())
            && SampleHeader::parse(line).is_some_and(|header| header.event.is_some() || header.time.is_some())
    };
    line.starts_with(b"#") && !is_sample()
}

/// Returns true for records other than samples: mapped files, new threads, lost samples. perf prints them on request.
pub(super) fn is_record(line: &[u8]) -> bool {
    const WORD: &[u8] = b" PERF_RECORD_";
    // The record's name comes after the time.
    line.split(|&b| b == b':').take(8).any(|part| part.starts_with(WORD))
}

pub(super) fn is_indented(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace)
}

/// The header line of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SampleHeader<'t> {
    /// The name of the thread, which may be empty.
    pub(super) comm: &'t [u8],
    pub(super) pid: Option<i64>,
    pub(super) tid: i64,
    /// The time in seconds, as printed.
    pub(super) time: Option<&'t [u8]>,
    /// The period, as printed.
    pub(super) period: Option<&'t [u8]>,
    pub(super) event: Option<&'t [u8]>,
    /// The rest of the line: a frame, the fields of a tracepoint, or nothing.
    pub(super) rest: &'t [u8],
}

/// Splits a text after its first word.
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

/// Returns true for a CPU in brackets, such as `[001]`.
fn is_bracketed(word: &[u8]) -> bool {
    word.len() > 2 && word.starts_with(b"[") && word.ends_with(b"]")
}

impl<'t> SampleHeader<'t> {
    /// Parses a header line. The name of a thread may contain blanks and digits, so the name ends at the first word
    /// where the rest of the line parses. Names have less than 64 bytes, which limits the attempts.
    pub(super) fn parse(line: &'t [u8]) -> Option<SampleHeader<'t>> {
        let line = line.trim_ascii();
        let (first, rest) = word(line);
        // A thread without a name has only its numbers. A lone number may also be a name, unless a CPU or a time
        // follows.
        if let Some(header) = SampleHeader::after_comm(b"", first, rest)
            && (header.pid.is_some() || header.time.is_some() || is_bracketed(word(rest).0))
        {
            return Some(header);
        }
        let mut end = first.len();
        while end < line.len().min(64) {
            let (this, rest) = word(&line[end..]);
            if let Some(header) = SampleHeader::after_comm(line[..end].trim_ascii_end(), this, rest) {
                return Some(header);
            }
            end = line.len() - rest.len();
        }
        None
    }

    fn after_comm(comm: &'t [u8], ids: &'t [u8], rest: &'t [u8]) -> Option<SampleHeader<'t>> {
        // perf prints -1 for an unknown number.
        let id = |text: &[u8]| if text == b"-1" { Some(-1) } else { number(text) };
        let (pid, tid) = match ids.iter().position(|&b| b == b'/') {
            Some(slash) => (Some(id(&ids[..slash])?), id(&ids[slash + 1..])?),
            None => (None, id(ids)?),
        };
        let mut header = SampleHeader { comm, pid, tid, time: None, period: None, event: None, rest };
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
            // A time follows, so `this` was the thread and the number before it is part of the name.
            if is_time(this) {
                return None;
            }
        }
        let event = this.strip_suffix(b":").filter(|event| event.first().is_some_and(u8::is_ascii_alphabetic));
        if event.is_some() {
            (header.period, header.event, header.rest) = (period, event, after);
        }
        header.rest = header.rest.trim_ascii();
        // Without an event, only a frame may follow.
        let fits = event.is_some() || header.rest.is_empty() || ScriptFrame::parse_on_header(header.rest).is_some();
        fits.then_some(header)
    }
}

/// A line with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptFrame<'t> {
    pub(super) address: &'t [u8],
    /// Empty if unknown.
    pub(super) symbol: &'t [u8],
    pub(super) binary: &'t [u8],
    pub(super) inlined: bool,
    /// `file:line` from the next line, or empty.
    pub(super) source: &'t [u8],
}

impl<'t> ScriptFrame<'t> {
    /// Parses the frame on a header line. The fields of a tracepoint may be there instead, and may begin with a number.
    /// The text is therefore a frame only if it ends in a parenthesis or its address has at least eight digits.
    pub(super) fn parse_on_header(rest: &'t [u8]) -> Option<ScriptFrame<'t>> {
        ScriptFrame::parse(rest).filter(|frame| rest.ends_with(b")") || frame.address.len() >= 8)
    }

    pub(super) fn parse(line: &'t [u8]) -> Option<ScriptFrame<'t>> {
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
        Some(ScriptFrame { address, symbol, binary, inlined, source: b"" })
    }
}

/// Returns the offset of the parenthesis before the binary, in `symbol (binary` without the last parenthesis. Returns
/// `None` if no parenthesis begins a word. Symbols and paths may contain parentheses too, so the choice is a guess
/// unless the symbol's end is certain.
fn find_binary(named: &[u8]) -> Option<usize> {
    let opens = || (0..named.len()).filter(|&open| opens_word(named, open));
    let last = opens().next_back()?;
    if &named[last..] == b"(inlined" {
        return Some(last);
    }
    // The end of the symbol is certain if the symbol is `[unknown]` or ends in an offset.
    let ends_symbol = |&open: &usize| {
        let symbol = named[..open].trim_ascii_end();
        let digits = symbol.iter().rev().take_while(|b| b.is_ascii_hexdigit()).count();
        symbol == b"[unknown]" || digits > 0 && symbol[..symbol.len() - digits].ends_with(b"+0x")
    };
    if let Some(open) = opens().find(ends_symbol) {
        return Some(open);
    }
    let pair = opening(named);
    let is_file = |&open: &usize| matches!(named.get(open + 1), Some(b'/' | b'['));
    pair.filter(is_file).or_else(|| opens().rfind(is_file)).or(pair).or(Some(last))
}

fn opens_word(text: &[u8], open: usize) -> bool {
    text[open] == b'(' && (open == 0 || text[open - 1] == b' ')
}

/// Returns the offset of the parenthesis that is still open at the end of the text, if it begins a word.
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
    closed.filter(|&open| opens_word(text, open))
}

fn find_last(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).rposition(|w| w == word)
}

/// Removes an offset such as `+0x1f` from the end of a symbol, if it has one.
fn without_offset(symbol: &[u8]) -> &[u8] {
    match find_last(symbol, b"+0x") {
        Some(end) if end + 3 < symbol.len() && symbol[end + 3..].iter().all(u8::is_ascii_hexdigit) => &symbol[..end],
        _ => symbol,
    }
}

/// Splits a source line into file and line number. The file is empty and the number 0 if perf did not find them and
/// printed `??:0` or `binary[address]`.
pub(super) fn source_line(source: &[u8]) -> (&[u8], i64) {
    let Some(colon) = source.iter().rposition(|&b| b == b':') else { return (b"", 0) };
    // Some builds print `file:12 (discriminator 3)`.
    let (digits, _) = word(&source[colon + 1..]);
    match (number(digits), &source[..colon]) {
        (Some(_), b"??") | (None, _) => (b"", 0),
        (Some(line), file) => (file, line),
    }
}
