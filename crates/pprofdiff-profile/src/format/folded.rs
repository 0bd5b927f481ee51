//! Folded stacks, the text of flame graph tools: `root;caller;leaf 12`, a line a stack. With two numbers a line,
//! `root;leaf BASE NEW`, as `difffolded.pl` and our own writer make of two profiles.
//!
//! A line does not show how many of its words at the end are numbers of the format: `a;b 7 12` is 12 of `b 7`, or 7 and
//! 12 of `b`. So there are two formats, and content is taken for the second only under a [`Header`], which our writer
//! puts first. Without one, a text in which each line ends in two numbers may still be a diff; a warning says so.
//!
//! ```text
//! # pprofdiff-folded cpu/nanoseconds base new
//! main;parse 31 33
//! main;parse;allocate 0 8
//! ```
//!
//! The numbers are whole: what a fraction is rounded to would be an error in each line. Lines that begin with `#` and
//! do not end in a number are comments, as they are for flame graph tools, which pass over what has no number.

use std::fmt;

use super::{InputFormat, quoted};
use crate::builder::{LocationId, ProfileBuilder};
use crate::error::{Error, Result};
use crate::profile::{BASE_LABEL, Label, LabelValue, LoadOptions, Profile};
use crate::random::HashMap;
use crate::sanitize::sanitize;
use crate::work::BytePace;

pub(super) const FOLDED: InputFormat = InputFormat {
    name: "folded",
    about: "folded stacks: root;leaf 12",
    has_times: false,
    has_events: false,
    recognises: |head| recognises(head, false),
    read: |name, data, options| read(name, data, options, false),
};

pub(super) const FOLDED2: InputFormat = InputFormat {
    name: "folded2",
    about: "folded stacks of two sides: root;leaf BASE NEW",
    has_times: false,
    has_events: false,
    recognises: |head| recognises(head, true),
    read: |name, data, options| read(name, data, options, true),
};

/// The line that says what the numbers of folded stacks are. Flame graph tools pass over it, since it ends in no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The sample type.
    pub kind: String,
    /// Its unit.
    pub unit: String,
    /// Two numbers a line, the base's and the new side's.
    pub two_sided: bool,
}

/// What a header begins with, and what it ends in.
const BEGIN: &str = "# pprofdiff-folded ";
const COLUMNS: [&str; 2] = [" value", " base new"];

impl fmt::Display for Header {
    /// The line, without its end. A slash in the type is a colon, since the first one ends it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, unit, columns) = (self.kind.replace('/', ":"), &self.unit, COLUMNS[usize::from(self.two_sided)]);
        write!(f, "{BEGIN}{}/{}{columns}", sanitize(&kind), sanitize(unit))
    }
}

impl Header {
    fn parse(line: &[u8]) -> Option<Header> {
        let text = std::str::from_utf8(line.strip_prefix(BEGIN.as_bytes())?).ok()?;
        let (column, text) = COLUMNS.iter().enumerate().find_map(|(i, c)| Some((i, text.strip_suffix(c)?)))?;
        let (kind, unit) = text.split_once('/')?;
        Some(Header { kind: kind.to_owned(), unit: unit.to_owned(), two_sided: column == 1 })
    }

    /// That of a text, if it is the first line that is not blank.
    pub(super) fn find(text: &[u8]) -> Option<Header> {
        lines(text).find(|(_, line)| !line.is_empty()).and_then(|(_, line)| Header::parse(line))
    }
}

/// True if more than half of the lines fit, apart from comments that do not: then a line that does not fit is an error
/// that names it, and prose in which some lines end in a number is no profile.
pub(super) fn mostly(head: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    // The last line may be cut off.
    let whole = if head.len() < super::HEAD { head.len() } else { head.iter().rposition(|&b| b == b'\n').unwrap_or(0) };
    let (mut fit, mut others) = (0, 0);
    for (_, line) in lines(&head[..whole]).filter(|(_, line)| !line.is_empty()) {
        match fits(line) {
            true => fit += 1,
            false if line.starts_with(b"#") => {}
            false => others += 1,
        }
    }
    fit > others
}

fn recognises(head: &[u8], two_sided: bool) -> bool {
    if !super::is_text(head) || super::others::are(head) {
        return false;
    }
    if let Some(header) = Header::find(head) {
        return header.two_sided == two_sided;
    }
    !two_sided && mostly(head, |line| split_number(line).is_some())
}

/// The lines without blanks at their ends, and where each begins.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let (mut at, mut pace) = (0, BytePace::default());
    let lines = text.split_inclusive(|&b| b == b'\n').map(move |line| {
        at += line.len();
        pace.left(text.len() - at);
        (at - line.len(), line.trim_ascii_end())
    });
    // Editors of some systems put a mark of the encoding first.
    lines.map(|(at, line)| (at, line.strip_prefix(b"\xef\xbb\xbf").filter(|_| at == 0).unwrap_or(line)))
}

/// Calls `f` with the number and the text of each line. Its errors name the line and say where it begins.
pub(super) fn each_line<'t>(text: &'t [u8], mut f: impl FnMut(u64, &'t [u8]) -> Result<()>) -> Result<()> {
    for (number, (at, line)) in (1u64..).zip(lines(text)) {
        f(number, line).map_err(|e| e.in_record(|| format!("line {number}")).at(at))?;
    }
    Ok(())
}

/// Adds each line as a sample, and notes those without a stack.
pub(super) fn add_lines<'t>(text: &'t [u8], mut add: impl FnMut(&'t [u8]) -> Result<Added>) -> Result<Stackless> {
    let mut stackless = Stackless::default();
    each_line(text, |number, line| {
        if add(line)? == Added::WithoutStack {
            stackless.add(number);
        }
        Ok(())
    })?;
    Ok(stackless)
}

/// A line without its last word, and that word, if it is a number.
pub(super) fn split_number(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().rposition(|&b| b == b' ' || b == b'\t')?;
    let (rest, word) = (line[..at].trim_ascii_end(), &line[at + 1..]);
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|&b| b.is_ascii_digit() || b == b'.')
        && digits.iter().filter(|&&b| b == b'.').count() <= 1;
    is_number.then_some((rest, word))
}

fn read(name: &str, text: Vec<u8>, options: &LoadOptions, two_sided: bool) -> Result<Profile> {
    let (kind, unit) = options.input_type.clone();
    // One of other columns is refused where it stands.
    let header = Header::find(&text).filter(|header| header.two_sided == two_sided);
    let header = header.unwrap_or(Header { kind, unit, two_sided });
    let mut stacks = Stacks::new(&header);
    let stackless = add_lines(&text, |line| match Header::parse(line) {
        Some(other) if other != header => Err(unlike(&other, &header)),
        // A header ends in no number; a stack may begin as one does.
        None if line.starts_with(BEGIN.as_bytes()) && split_number(line).is_none() => Err(unlike_any(line)),
        _ => stacks.add(line, two_sided),
    })?;
    // Users who name the format know what the numbers are.
    let may_be_diff =
        !two_sided && options.input_format.is_none() && Header::find(&text).is_none() && has_two_numbers(&text);
    let builder = stacks.finish(two_sided)?;
    drop(text);
    let profile = stackless.noted(builder.build(name)?);
    Ok(if may_be_diff { profile.with_doubtful_sides() } else { profile })
}

/// Returns true if there are stacks and each line of one ends in two numbers.
fn has_two_numbers(text: &[u8]) -> bool {
    let mut stacks = lines(text).filter_map(|(_, line)| split_number(line)).peekable();
    stacks.peek().is_some() && stacks.all(|(stack, _)| split_number(stack).is_some())
}

/// What became of a line.
#[derive(PartialEq, Eq)]
pub(super) enum Added {
    /// A sample of a stack, or nothing.
    Usual,
    /// A value of no stack, which views count in the total and show in no row.
    WithoutStack,
}

impl Added {
    pub(super) fn from_sample(stack: &[LocationId], values: &[i64]) -> Added {
        let is_lost = stack.is_empty() && values.iter().any(|&v| v != 0);
        if is_lost { Added::WithoutStack } else { Added::Usual }
    }
}

/// Lines of values without a stack: profilers write them for threads whose frames they could not read.
#[derive(Default)]
pub(super) struct Stackless {
    count: u64,
    first: u64,
}

impl Stackless {
    pub(super) fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    /// The profile, with a warning if there were any.
    pub(super) fn noted(&self, profile: Profile) -> Profile {
        let first = self.first;
        let note = match self.count {
            0 => return profile,
            1 => format!("line {first} has no stack; its value counts in the total alone"),
            count => {
                format!("{count} lines have no stack, the first is line {first}; their values count in the total alone")
            }
        };
        profile.with_notes(vec![note])
    }
}

/// What lines add up to.
struct Stacks<'t> {
    builder: ProfileBuilder,
    base_label: Label,
    has_base: bool,
    /// Where each name stands: known by name alone, so that a frame costs one look.
    locations: HashMap<&'t [u8], LocationId>,
    leaf_first: Vec<LocationId>,
}

impl<'t> Stacks<'t> {
    fn new(header: &Header) -> Stacks<'t> {
        let mut builder = ProfileBuilder::new();
        builder.sample_type(&header.kind, &header.unit);
        let base_label =
            Label { key: builder.string(BASE_LABEL.0), value: LabelValue::Text(builder.string(BASE_LABEL.1)) };
        Stacks { builder, base_label, has_base: false, locations: HashMap::default(), leaf_first: Vec::new() }
    }

    fn add(&mut self, line: &'t [u8], two_sided: bool) -> Result<Added> {
        let Some((stack, last)) = split_number(line) else {
            let is_passed_over = line.is_empty() || line.starts_with(b"#");
            return if is_passed_over { Ok(Added::Usual) } else { Err(without_number(line)) };
        };
        let new = value(last)?;
        if !two_sided {
            self.locate(stack)?;
            self.builder.sample(&self.leaf_first, &[new], &[])?;
            return Ok(Added::from_sample(&self.leaf_first, &[new]));
        }
        let Some((stack, first)) = split_number(stack) else { return Err(without_base(line)) };
        let base = value(first)?;
        self.locate(stack)?;
        if new != 0 {
            self.builder.sample(&self.leaf_first, &[new], &[])?;
        }
        if base != 0 {
            self.add_base(base)?;
        }
        Ok(Added::from_sample(&self.leaf_first, &[base, new]))
    }

    /// Finds the locations of a stack.
    fn locate(&mut self, stack: &'t [u8]) -> Result<()> {
        self.leaf_first.clear();
        let stack = stack.trim_ascii_start();
        if stack.is_empty() {
            return Ok(());
        }
        for frame in stack.rsplit(|&b| b == b';') {
            let location = match self.locations.get(frame) {
                Some(&known) => known,
                None => {
                    let function = self.builder.function(frame, "", 0);
                    let new = self.builder.location(None, 0, &[self.builder.line(function, 0)])?;
                    self.locations.insert(frame, new);
                    new
                }
            };
            self.leaf_first.push(location);
        }
        Ok(())
    }

    /// Adds the base's sample as a written diff has it.
    fn add_base(&mut self, value: i64) -> Result<()> {
        self.has_base = true;
        let negative = value.checked_neg().ok_or_else(|| too_large(value.to_string().as_bytes()))?;
        self.builder.sample(&self.leaf_first, &[negative], &[self.base_label])
    }

    fn finish(mut self, two_sided: bool) -> Result<ProfileBuilder> {
        if two_sided && !self.has_base {
            // A profile is a diff by its labels, so there must be one even if the base has no values.
            self.leaf_first.clear();
            self.add_base(0)?;
        }
        Ok(self.builder)
    }
}

pub(super) fn value(word: &[u8]) -> Result<i64> {
    let mut parts = word.splitn(2, |&b| b == b'.');
    let whole = parts.next().unwrap_or_default();
    if parts.next().is_some_and(|fraction| fraction.iter().any(|&b| b != b'0')) {
        let detail = "has a fraction, and values are whole numbers; give all values in a smaller unit";
        return Err(Error::malformed(format!("{} {detail}", quoted(word))));
    }
    std::str::from_utf8(whole).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| too_large(word))
}

fn too_large(word: &[u8]) -> Error {
    Error::malformed(format!("{} is more than an int64 holds", quoted(word)))
}

pub(super) fn without_number(line: &[u8]) -> Error {
    Error::malformed(format!(
        "{} does not end in a number; a line of folded stacks is frames from the root, with semicolons between them, a \
         blank, and a number",
        quoted(line)
    ))
}

fn without_base(line: &[u8]) -> Error {
    Error::malformed(format!("{} does not end in two numbers, BASE and NEW, as lines of folded2 do", quoted(line)))
}

fn unlike_any(line: &[u8]) -> Error {
    Error::malformed(format!(
        "{} is no header of folded stacks, which is {BEGIN}TYPE/UNIT, then \"value\" or \"base new\"",
        quoted(line)
    ))
}

fn unlike(found: &Header, read: &Header) -> Error {
    let said = |header: &Header| header.to_string().replacen(BEGIN, "", 1);
    Error::malformed(format!(
        "the header says {:?}, but what is read is {:?}; do not name another format, and give files of different headers \
         one by one",
        said(found),
        said(read)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn load_as(text: &[u8], format: Option<&str>) -> Result<Profile> {
        let options = LoadOptions::default();
        let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
        Profile::from_bytes("in", text, &options)
    }

    /// The stacks from the root, with values and whether they are of the base.
    fn samples(p: &Profile) -> Vec<(String, i64, bool)> {
        let name = |l: u32| {
            let lines = p.locations().line_function[l as usize];
            p.text(p.functions().name[lines as usize])
        };
        let sample = |s: crate::samples::Sample<'_>| {
            let mut names = Vec::new();
            s.for_each_location(|l| names.push(name(l)));
            names.reverse();
            (names.join("|"), s.value(0), s.is_base())
        };
        p.samples().map(sample).collect()
    }

    fn read(text: &str) -> Vec<(String, i64, bool)> {
        samples(&load_as(text.as_bytes(), Some("folded")).unwrap())
    }

    fn row(stack: &str, value: i64) -> (String, i64, bool) {
        (stack.to_owned(), value, false)
    }

    #[test]
    fn lines_are_frames_from_the_root_and_a_number() {
        for (text, expected) in [
            ("a;b;c 12\na;b 3", vec![row("a|b|c", 12), row("a|b", 3)]),
            ("\u{feff}a 1\r\n\r\n  \n\tb;c\t2  \r\n", vec![row("a", 1), row("b|c", 2)]),
            ("operator new(unsigned long);a b 7 12\n", vec![row("operator new(unsigned long)|a b 7", 12)]),
            ("a;;b; 4\n; 5\n 6\n", vec![row("a||b|", 4), row("|", 5), row("", 6)]),
            ("# a comment\n#\n#<Class:0>;b 3\n", vec![row("#<Class:0>|b", 3)]),
            ("a -5\nb 12.000\nc 7.\nd 007\n", vec![row("a", -5), row("b", 12), row("c", 7), row("d", 7)]),
            ("a 9223372036854775807", vec![row("a", i64::MAX)]),
            ("a 1\na 2\n", vec![row("a", 1), row("a", 2)]),
            ("", vec![]),
        ] {
            let text = if text.is_empty() { "\n" } else { text };
            assert_eq!(read(text), expected, "{text:?}");
        }
        let p = load_as(b"a\xff\xfe;b 1", Some("folded")).unwrap();
        assert_eq!(p.string(p.functions().name[1]), b"a\xff\xfe");
    }

    #[test]
    fn errors_name_the_line_and_what_was_read() {
        for (text, format, words) in [
            ("a 1\nb;c x\n", "folded", "line 2: \"b;c x\" does not end in a number"),
            ("a 1\n\n12\n", "folded", "line 3: \"12\" does not end in a number"),
            ("a 1e5", "folded", "\"a 1e5\" does not end in a number"),
            ("a 1.2.3", "folded", "\"a 1.2.3\" does not end in a number"),
            ("a 1\r\na 12.50\r\n", "folded", "line 2: \"12.50\" has a fraction"),
            ("a 9223372036854775808", "folded", "\"9223372036854775808\" is more than an int64 holds"),
            ("a 9223372036854775807\nb 1\n", "folded", "add up to more than an int64 holds"),
            ("a 5", "folded2", "line 1: \"a 5\" does not end in two numbers"),
            ("a x 5", "folded2", "\"a x 5\" does not end in two numbers"),
            ("a -9223372036854775808 5", "folded2", "\"-9223372036854775808\" is more than"),
            ("# pprofdiff-folded c/n base new\na 1 2\n", "folded", "line 1: the header says \"c/n base new\""),
            ("# pprofdiff-folded c/n value\na 1 2\n", "folded2", "but what is read is \"samples/count base new\""),
            ("a 1\n# pprofdiff-folded c/n value\n", "folded", "line 2: the header says"),
            (
                "# pprofdiff-folded c base new\na 1 2\n",
                "folded",
                "line 1: \"# pprofdiff-folded c base new\" is no header",
            ),
        ] {
            let error = load_as(text.as_bytes(), Some(format)).unwrap_err();
            assert!(error.to_string().contains(words), "{text:?}: {error}");
        }
        let long = load_as(&[b"a 1\n".as_slice(), &[b'x'; 1000]].concat(), Some("folded")).unwrap_err();
        assert!(long.to_string().len() < 400 && long.offset() == Some(4), "{long}");
    }

    #[test]
    fn the_header_says_type_unit_and_columns() {
        for two_sided in [false, true] {
            let header = Header { kind: "wall time".to_owned(), unit: "units/s".to_owned(), two_sided };
            assert_eq!(Header::parse(header.to_string().as_bytes()), Some(header.clone()));
            let p = load_as(format!("\n{header}\na;b 3 4\n{header}\n").as_bytes(), None).unwrap();
            assert_eq!(p.sample_types(), [("wall time".to_owned(), "units/s".to_owned())]);
            let expected = match two_sided {
                true => vec![row("a|b", 4), ("a|b".to_owned(), -3, true)],
                false => vec![row("a|b 3", 4)],
            };
            assert_eq!(samples(&p), expected);
        }
        let p = load_as(b"# pprofdiff-folded c/n base new\n# pprofdiff-folded 5 6\n", None).unwrap();
        assert_eq!(samples(&p), [row("# pprofdiff-folded", 6), ("# pprofdiff-folded".to_owned(), -5, true)]);
        let slash = Header { kind: "a/b\n".to_owned(), unit: String::new(), two_sided: true };
        assert_eq!(slash.to_string(), "# pprofdiff-folded a:b\u{fffd}/ base new");
    }

    #[test]
    fn a_diff_is_one_even_if_its_base_is_empty() {
        for rows in ["", "a;b 0 3\n", "a 0 0\n"] {
            let p = load_as(format!("# pprofdiff-folded cpu/nanoseconds base new\n{rows}").as_bytes(), None).unwrap();
            assert!(p.is_diff(), "{rows:?}");
        }
        assert!(!load_as(b"a;b 0 3\n", None).unwrap().is_diff());
    }

    #[test]
    fn two_numbers_in_each_line_may_be_two_sides() {
        for (text, is) in [
            ("app;parse 40 30\n# a comment\n\napp;render 10 60\n", true),
            ("app;parse 40 30\napp;wait 5\n", false),
            ("app;parse 40\n", false),
            ("# pprofdiff-folded cpu/nanoseconds value\napp;parse 40 30\n", false),
        ] {
            let p = load_as(text.as_bytes(), None).unwrap();
            assert_eq!((p.may_be_diff(), p.is_diff()), (is, false), "{text}");
            assert_eq!(p.warnings().iter().any(|w| w.contains("--input-format folded2")), is, "{text}");
            let merged = crate::profile::merge(&[&p]);
            assert_eq!(merged.is_err_and(|e| e.to_string().contains("--input-format folded2")), is, "{text}");
            // The format by its name answers the question.
            for format in ["folded", "folded2"].iter().take(if is { 2 } else { 1 }) {
                assert!(load_as(text.as_bytes(), Some(format)).unwrap().warnings().is_empty(), "{text} {format}");
            }
        }
    }

    #[test]
    fn it_is_recognised_by_most_of_its_lines() {
        let long = "main;".repeat(20_000) + "leaf 1\n";
        for text in ["a;b 1", "a;b 1\nc;d 2\ne;f x\n", "# by a tool\na 1\n", &("a 1\n".repeat(5) + &long)] {
            assert!(recognises(text.as_bytes(), false), "{text:.40}");
            assert!(!recognises(text.as_bytes(), true), "{text:.40}");
        }
        for text in ["", "\n", "# 1st\n", "Chapter 1\n\nIt was late.\nAnd dark.\n", "a 1\n\x00b 2\n", "12\n", &long] {
            assert!(!recognises(&text.as_bytes()[..text.len().min(super::super::HEAD)], false), "{text:.40}");
        }
    }
}
