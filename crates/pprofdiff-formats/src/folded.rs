//! Folded stacks, the text format of flame graph tools: one stack per line, as in `root;caller;leaf 12`. The two-sided
//! variant has two numbers per line, `root;leaf BASE NEW`. `difffolded.pl` and our own writer produce it from two
//! profiles.
//!
//! A line does not show how many of its last words are values: `a;b 7 12` may be 12 samples of `b 7`, or 7 and 12
//! samples of `b`. These are therefore two formats. Content is read as two-sided only if it begins with a [`FoldedHeader`],
//! which our writer adds. Text without a header whose lines all end in two numbers may still be a diff; a warning says
//! so.
//!
//! ```text
//! # pprofdiff-folded cpu/nanoseconds base new
//! main;parse 31 33
//! main;parse;allocate 0 8
//! ```
//!
//! Values are whole numbers, because rounding fractions would add an error to each line. Lines that begin with `#` and
//! do not end in a number are comments. Flame graph tools treat them the same way: they skip every line without a
//! number.

use crate::folded_header::{BEGIN, FoldedHeader};
use crate::kit::lines::{each_line, lines};
use crate::table::{HEAD, InputFormat, is_text, quoted};
use crate::{LoadOptions, unsupported};
use pprofdiff_profile::Profile;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::columns::BASE_LABEL;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Result};

pub(crate) const FOLDED: InputFormat = InputFormat {
    name: "folded",
    about: "folded stacks: root;leaf 12",
    has_times: false,
    has_events: false,
    recognises: |head| recognises(head, false),
    read: |name, data, options| read(name, data, options, false),
};

pub(crate) const FOLDED2: InputFormat = InputFormat {
    name: "folded2",
    about: "folded stacks of two sides: root;leaf BASE NEW",
    has_times: false,
    has_events: false,
    recognises: |head| recognises(head, true),
    read: |name, data, options| read(name, data, options, true),
};

/// Returns true if more than half of the lines fit. Comments that do not fit are not counted. A majority is enough so
/// that a single bad line leads to an error that quotes it, while prose with some lines that end in a number is
/// rejected.
pub(crate) fn most_lines_fit(head: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    // The last line of a longer text may be cut off.
    let end = if head.len() < HEAD { head.len() } else { head.iter().rposition(|&b| b == b'\n').unwrap_or(0) };
    let (mut fit, mut misfits) = (0, 0);
    for (_, line) in lines(&head[..end]).filter(|(_, line)| !line.is_empty()) {
        match fits(line) {
            true => fit += 1,
            false if line.starts_with(b"#") => {}
            false => misfits += 1,
        }
    }
    fit > misfits
}

fn recognises(head: &[u8], two_sided: bool) -> bool {
    if !is_text(head) || unsupported::recognises(head) {
        return false;
    }
    if let Some(header) = FoldedHeader::find(head) {
        return header.two_sided == two_sided;
    }
    !two_sided && most_lines_fit(head, |line| split_number(line).is_some())
}

/// Adds each line as a sample, and records lines that have a value and no stack.
pub(crate) fn add_lines<'t>(text: &'t [u8], mut add: impl FnMut(&'t [u8]) -> Result<AddedLine>) -> Result<Stackless> {
    let mut stackless = Stackless::default();
    each_line(text, |number, line| {
        if add(line)? == AddedLine::WithoutStack {
            stackless.add(number);
        }
        Ok(())
    })?;
    Ok(stackless)
}

/// Splits a line into the text before its last word, and this word. Returns `None` if the line has a single word, or if
/// the last word is not a decimal number with an optional minus sign and fraction.
pub(crate) fn split_number(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = line.iter().rposition(|&b| b == b' ' || b == b'\t')?;
    let (rest, word) = (line[..blank].trim_ascii_end(), &line[blank + 1..]);
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|&b| b.is_ascii_digit() || b == b'.')
        && digits.iter().filter(|&&b| b == b'.').count() <= 1;
    is_number.then_some((rest, word))
}

fn read(name: &str, text: Vec<u8>, options: &LoadOptions, two_sided: bool) -> Result<Profile> {
    let (kind, unit) = options.input_type.clone();
    // A header with the wrong number of columns is reported below, at its own line.
    let header = FoldedHeader::find(&text).filter(|header| header.two_sided == two_sided);
    let header = header.unwrap_or(FoldedHeader { kind, unit, two_sided });
    let mut stacks = FoldedStacks::new(&header);
    let stackless = add_lines(&text, |line| match FoldedHeader::parse(line) {
        Some(other) if other != header => Err(header_mismatch(&other, &header)),
        // A header never ends in a number. A line that does is a stack, even if it begins like a header.
        None if line.starts_with(BEGIN.as_bytes()) && split_number(line).is_none() => Err(invalid_header(line)),
        _ => stacks.add(line, two_sided),
    })?;
    // A user who names the format has already decided what the numbers mean.
    let may_be_diff =
        !two_sided && options.input_format.is_none() && FoldedHeader::find(&text).is_none() && has_two_numbers(&text);
    let builder = stacks.finish(two_sided)?;
    drop(text);
    let profile = stackless.with_warning(builder.build(name)?);
    Ok(if may_be_diff { profile.with_doubtful_sides() } else { profile })
}

/// Returns true if there are stacks, and each line with a stack ends in two numbers.
fn has_two_numbers(text: &[u8]) -> bool {
    let mut stacks = lines(text).filter_map(|(_, line)| split_number(line)).peekable();
    stacks.peek().is_some() && stacks.all(|(stack, _)| split_number(stack).is_some())
}

/// The result of adding a line.
#[derive(PartialEq, Eq)]
pub(crate) enum AddedLine {
    /// A sample with a stack, or a line without a sample.
    Usual,
    /// A value without a stack. Views count it in the total, but in no row.
    WithoutStack,
}

impl AddedLine {
    /// Returns the result for a sample. A sample without a stack is usual if all its values are zero.
    pub(crate) fn from_sample(stack: &[LocationId], values: &[i64]) -> AddedLine {
        let is_lost = stack.is_empty() && values.iter().any(|&v| v != 0);
        if is_lost { AddedLine::WithoutStack } else { AddedLine::Usual }
    }
}

/// The lines that have a value and no stack. Profilers write them for threads whose frames they could not read.
#[derive(Default)]
pub(crate) struct Stackless {
    count: u64,
    /// The number of the first of these lines.
    first: u64,
}

impl Stackless {
    pub(crate) fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    /// Returns the profile, with a warning if there are lines without a stack.
    pub(crate) fn with_warning(&self, profile: Profile) -> Profile {
        let first = self.first;
        let note = match self.count {
            0 => return profile,
            1 => format!("line {first} has no stack; its value counts only in the total"),
            count => {
                format!("{count} lines have no stack, first at line {first}; their values count only in the total")
            }
        };
        profile.with_notes(vec![note])
    }
}

/// The samples of the lines that were read.
struct FoldedStacks<'t> {
    builder: ProfileBuilder,
    base_label: Label,
    has_base: bool,
    /// The location of each frame, by name. Frames have no other properties, so a frame costs a single lookup.
    locations: HashMap<&'t [u8], LocationId>,
    leaf_first: Vec<LocationId>,
}

impl<'t> FoldedStacks<'t> {
    fn new(header: &FoldedHeader) -> FoldedStacks<'t> {
        let mut builder = ProfileBuilder::new();
        builder.sample_type(&header.kind, &header.unit);
        let base_label =
            Label { key: builder.string(BASE_LABEL.0), value: LabelValue::Text(builder.string(BASE_LABEL.1)) };
        FoldedStacks { builder, base_label, has_base: false, locations: HashMap::default(), leaf_first: Vec::new() }
    }

    fn add(&mut self, line: &'t [u8], two_sided: bool) -> Result<AddedLine> {
        let Some((stack, last)) = split_number(line) else {
            let is_skipped = line.is_empty() || line.starts_with(b"#");
            return if is_skipped { Ok(AddedLine::Usual) } else { Err(without_number(line)) };
        };
        let new = value(last)?;
        if !two_sided {
            self.locate(stack)?;
            self.builder.sample(&self.leaf_first, &[new], &[])?;
            return Ok(AddedLine::from_sample(&self.leaf_first, &[new]));
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
        Ok(AddedLine::from_sample(&self.leaf_first, &[base, new]))
    }

    /// Sets `leaf_first` to the locations of a stack.
    fn locate(&mut self, stack: &'t [u8]) -> Result<()> {
        self.leaf_first.clear();
        let stack = stack.trim_ascii_start();
        if stack.is_empty() {
            return Ok(());
        }
        for frame in stack.rsplit(|&b| b == b';') {
            let location = match self.locations.get(frame) {
                Some(&existing) => existing,
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

    /// Adds a base sample in the form of a written diff: with a negated value and the base label.
    fn add_base(&mut self, value: i64) -> Result<()> {
        self.has_base = true;
        let negative = value.checked_neg().ok_or_else(|| too_large(value.to_string().as_bytes()))?;
        self.builder.sample(&self.leaf_first, &[negative], &[self.base_label])
    }

    fn finish(mut self, two_sided: bool) -> Result<ProfileBuilder> {
        if two_sided && !self.has_base {
            // Labels make a profile a diff, so a base without values still needs one labelled sample.
            self.leaf_first.clear();
            self.add_base(0)?;
        }
        Ok(self.builder)
    }
}

/// Parses a number that [`split_number`] returned.
///
/// # Errors
/// The number has a fraction other than zero, or does not fit in an int64.
pub(crate) fn value(word: &[u8]) -> Result<i64> {
    let mut parts = word.splitn(2, |&b| b == b'.');
    let whole = parts.next().unwrap_or_default();
    if parts.next().is_some_and(|fraction| fraction.iter().any(|&b| b != b'0')) {
        let detail = "has a fraction, and values must be whole numbers; write all values in a smaller unit";
        return Err(Error::malformed(format!("{} {detail}", quoted(word))));
    }
    std::str::from_utf8(whole).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| too_large(word))
}

fn too_large(word: &[u8]) -> Error {
    Error::malformed(format!("{} is more than an int64 holds", quoted(word)))
}

pub(crate) fn without_number(line: &[u8]) -> Error {
    Error::malformed(format!(
        "{} does not end in a number; a line of folded stacks is frames from the root, separated by semicolons, then a \
         blank and a number",
        quoted(line)
    ))
}

fn without_base(line: &[u8]) -> Error {
    Error::malformed(format!("{} does not end in two numbers, BASE and NEW, as lines of folded2 do", quoted(line)))
}

fn invalid_header(line: &[u8]) -> Error {
    Error::malformed(format!(
        "{} is not a valid header of folded stacks; it must be {BEGIN}TYPE/UNIT, then \"value\" or \"base new\"",
        quoted(line)
    ))
}

fn header_mismatch(actual: &FoldedHeader, expected: &FoldedHeader) -> Error {
    let columns = |header: &FoldedHeader| header.to_string().replacen(BEGIN, "", 1);
    Error::malformed(format!(
        "the header is {:?}, but {:?} is expected; do not name another format with --input-format, and pass files with \
         different headers separately",
        columns(actual),
        columns(expected)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn load_as(text: &[u8], format: Option<&str>) -> Result<Profile> {
        let options = LoadOptions::default();
        let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
        crate::from_bytes("in", text, &options)
    }

    #[test]
    fn demangling_keeps_the_warning_about_doubtful_sides() {
        let p = load_as(b"main;_ZNSt6vectorIiSaIiEE9push_backERKi 3 4\nmain;f 4 5\n", None).unwrap();
        assert!(p.may_be_diff(), "{:?}", p.warnings());
        let name = |f: usize| p.text(p.functions().name[f]);
        assert!((0..p.n_functions()).any(|f| name(f) == "std::vector::push_back"));
    }

    /// Returns the stacks from the root, with their values and whether they belong to the base.
    fn samples(p: &Profile) -> Vec<(String, i64, bool)> {
        let name = |l: u32| {
            let lines = p.locations().line_function[l as usize];
            p.text(p.functions().name[lines as usize])
        };
        let sample = |s: pprofdiff_profile::samples::Sample<'_>| {
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
    fn errors_name_the_line_and_quote_it() {
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
            ("# pprofdiff-folded c/n base new\na 1 2\n", "folded", "line 1: the header is \"c/n base new\""),
            ("# pprofdiff-folded c/n value\na 1 2\n", "folded2", "but \"samples/count base new\" is expected"),
            ("a 1\n# pprofdiff-folded c/n value\n", "folded", "line 2: the header is"),
            (
                "# pprofdiff-folded c base new\na 1 2\n",
                "folded",
                "line 1: \"# pprofdiff-folded c base new\" is not a valid header",
            ),
        ] {
            let error = load_as(text.as_bytes(), Some(format)).unwrap_err();
            assert!(error.to_string().contains(words), "{text:?}: {error}");
        }
        let long = load_as(&[b"a 1\n".as_slice(), &[b'x'; 1000]].concat(), Some("folded")).unwrap_err();
        assert!(long.to_string().len() < 400 && long.offset() == Some(4), "{long}");
    }

    #[test]
    fn the_header_sets_type_unit_and_columns() {
        for two_sided in [false, true] {
            let header = FoldedHeader { kind: "wall time".to_owned(), unit: "units/s".to_owned(), two_sided };
            assert_eq!(FoldedHeader::parse(header.to_string().as_bytes()), Some(header.clone()));
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
        let slash = FoldedHeader { kind: "a/b\n".to_owned(), unit: String::new(), two_sided: true };
        assert_eq!(slash.to_string(), "# pprofdiff-folded a:b\u{fffd}/ base new");
    }

    #[test]
    fn a_two_sided_file_is_a_diff_even_if_its_base_is_empty() {
        for rows in ["", "a;b 0 3\n", "a 0 0\n"] {
            let p = load_as(format!("# pprofdiff-folded cpu/nanoseconds base new\n{rows}").as_bytes(), None).unwrap();
            assert!(p.is_diff(), "{rows:?}");
        }
        assert!(!load_as(b"a;b 0 3\n", None).unwrap().is_diff());
    }

    #[test]
    fn two_numbers_on_each_line_without_a_header_warn_that_it_may_be_a_diff() {
        for (text, may_be_diff) in [
            ("app;parse 40 30\n# a comment\n\napp;render 10 60\n", true),
            ("app;parse 40 30\napp;wait 5\n", false),
            ("app;parse 40\n", false),
            ("# pprofdiff-folded cpu/nanoseconds value\napp;parse 40 30\n", false),
        ] {
            let p = load_as(text.as_bytes(), None).unwrap();
            assert_eq!((p.may_be_diff(), p.is_diff()), (may_be_diff, false), "{text}");
            assert_eq!(p.warnings().iter().any(|w| w.contains("--input-format folded2")), may_be_diff, "{text}");
            let merged = pprofdiff_profile::merge(&[&p]);
            assert_eq!(merged.is_err_and(|e| e.to_string().contains("--input-format folded2")), may_be_diff, "{text}");
            // Naming the format settles the question.
            for format in ["folded", "folded2"].iter().take(if may_be_diff { 2 } else { 1 }) {
                assert!(load_as(text.as_bytes(), Some(format)).unwrap().warnings().is_empty(), "{text} {format}");
            }
        }
    }

    #[test]
    fn folded_stacks_are_recognised_if_most_lines_fit() {
        let long = "main;".repeat(20_000) + "leaf 1\n";
        for text in ["a;b 1", "a;b 1\nc;d 2\ne;f x\n", "# by a tool\na 1\n", &("a 1\n".repeat(5) + &long)] {
            assert!(recognises(text.as_bytes(), false), "{text:.40}");
            assert!(!recognises(text.as_bytes(), true), "{text:.40}");
        }
        for text in ["", "\n", "# 1st\n", "Chapter 1\n\nIt was late.\nAnd dark.\n", "a 1\n\x00b 2\n", "12\n", &long] {
            assert!(!recognises(&text.as_bytes()[..text.len().min(HEAD)], false), "{text:.40}");
        }
    }
}
