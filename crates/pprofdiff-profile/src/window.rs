//! A time inside of a recording: `10s..25s` of it, from one moment to another, or from or up to an event. Readers of formats
//! that say when each sample was taken ask a [`Timeline`] which of them are within.
//!
//! An event is an end of a window and no option of its own, so all that takes a window takes events, also two of them:
//! `deploy..rollback`. It is the first one of its name, since a name that stands for many times would be no end.
//!
//! A window has the time that it begins at and not the one that it ends at, so that the samples of two adjoining windows
//! are those of both together. What lasts, as a sample of V8 until the next one, is cut at the ends.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::profile::Header;

const SECOND: i64 = 1_000_000_000;

/// The units of a time, in nanoseconds.
const UNITS: [(&str, i64); 6] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND)];

/// A part of a recording, such as `10s..25s`. Either end may be missing, and is then that of the recording. Times count
/// from where the recording begins (`1m30s`, `250ms`, `0`), are moments (RFC 3339, `2026-11-25T10:00:00Z`), or the name of
/// an event, of which the first one counts (`..GarbageCollection`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeWindow {
    /// As it was written.
    text: String,
    from: Option<Time>,
    until: Option<Time>,
}

/// An end of a window, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Time {
    SinceStart(i64),
    Since1970(i64),
    /// When the first event of this name was.
    Event(String),
}

impl TimeWindow {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if an end is an event, which only some formats have.
    pub(crate) fn names_event(&self) -> bool {
        [&self.from, &self.until].into_iter().any(|end| matches!(end, Some(Time::Event(_))))
    }
}

impl FromStr for TimeWindow {
    type Err = Error;

    fn from_str(text: &str) -> Result<TimeWindow> {
        let wrong = || {
            Error::query(format!(
                "a time inside a recording is written as 10s..25s, ..1m30s or 250ms.., or with moments such as \
                 2026-11-25T10:00:00Z or names of events, not {text:?}"
            ))
        };
        let (from, until) = text.split_once("..").ok_or_else(wrong)?;
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => parse_duration(text)
                .map(Time::SinceStart)
                .or_else(|| parse_moment(text).map(Time::Since1970))
                .or_else(|| is_event_name(text).then(|| Time::Event(text.to_owned())))
                .map(Some)
                .ok_or_else(wrong),
        };
        let window = TimeWindow { text: text.to_owned(), from: end(from)?, until: end(until)? };
        match (&window.from, &window.until) {
            (None, None) => Err(wrong()),
            (Some(Time::SinceStart(from)), Some(Time::SinceStart(until)))
            | (Some(Time::Since1970(from)), Some(Time::Since1970(until)))
                if from >= until =>
            {
                Err(Error::query(format!("a time inside a recording ends after it begins, unlike {text:?}")))
            }
            _ => Ok(window),
        }
    }
}

/// A time that divides a recording, `30s` or the name of an event: what was before it, and what came from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSplit {
    text: String,
    /// The part before it.
    pub before: TimeWindow,
    /// The part that begins with it.
    pub after: TimeWindow,
}

impl TimeSplit {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for TimeSplit {
    type Err = Error;

    fn from_str(text: &str) -> Result<TimeSplit> {
        if text.trim().is_empty() || text.contains("..") {
            return Err(Error::query(format!(
                "a recording is divided at a time such as 30s or 2026-11-25T10:00:00Z, or at an event by its name, not {text:?}"
            )));
        }
        let (before, after) = (format!("..{text}").parse()?, format!("{text}..").parse()?);
        Ok(TimeSplit { text: text.to_owned(), before, after })
    }
}

/// True of what can't be a time that is written wrongly.
fn is_event_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit() || ['-', '+', '.'].contains(&c))
}

/// When the first event of each name was, in nanoseconds from where a recording begins.
#[derive(Debug, Default)]
pub(crate) struct Events(BTreeMap<String, i64>);

/// How many names of events an error has, and how many characters of each.
const MAX_NAMES: usize = 20;
const MAX_NAME: usize = 60;

impl Events {
    pub fn see(&mut self, name: &[u8], at: i64) {
        let name = String::from_utf8_lossy(name);
        match self.0.get_mut(&*name) {
            Some(first) => *first = at.min(*first),
            None => _ = self.0.insert(name.into_owned(), at),
        }
    }

    /// When the first event of a name was. `GarbageCollection` stands for `jdk.GarbageCollection`, `sched_switch` for
    /// `sched:sched_switch`, if nothing else ends so.
    fn time_of(&self, name: &str) -> Result<i64> {
        if let Some(&at) = self.0.get(name) {
            return Ok(at);
        }
        let ends_so = |full: &str| full.strip_suffix(name).is_some_and(|before| before.ends_with(['.', ':']));
        let short: Vec<(&String, &i64)> = self.0.iter().filter(|(full, _)| ends_so(full)).collect();
        if let [(_, &at)] = short[..] {
            return Ok(at);
        }
        if !short.is_empty() {
            let names = listed(short.into_iter().map(|(full, _)| full.as_str()).collect());
            return Err(Error::query(format!("{name:?} is the end of several events' names: {names}")));
        }
        // Those that the user may have meant come first.
        let wanted = name.to_lowercase();
        let mut names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        names.sort_by_key(|full| Reverse(full.to_lowercase().contains(&wanted)));
        Err(Error::query(match names[..] {
            [] => format!("it has no events, and so none that is called {name:?}"),
            _ => format!("it has no event {name:?}, but these: {}", listed(names)),
        }))
    }
}

/// The first of some names, and how many others there are.
fn listed(mut names: Vec<&str>) -> String {
    let others = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let shown = names.iter().map(|name| match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => (*name).to_owned(),
    });
    let more = if others > 0 { format!(", and {others} more") } else { String::new() };
    shown.collect::<Vec<_>>().join(", ") + &more
}

/// Decimal digits, with or without a point, as a number of a unit.
pub(crate) fn decimal(text: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || text.ends_with('.') || !is_digits(whole) || !is_digits(fraction) || fraction.len() > 18 {
        return None;
    }
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let fraction = fraction * i128::from(unit) / 10i128.pow(text.split_once('.').map_or(0, |(_, f)| f.len() as u32));
    whole.checked_add(i64::try_from(fraction).ok()?)
}

/// `1m30s`, `1.5s`, `250ms`, and `0`.
fn parse_duration(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut sum) = (text, 0i64);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &after[..end])?;
        sum = sum.checked_add(decimal(number, *unit)?)?;
        rest = &after[end..];
    }
    Some(sum)
}

/// A moment of RFC 3339 in nanoseconds since 1970.
fn parse_moment(text: &str) -> Option<i64> {
    let number = |from: usize, until: usize, range: std::ops::RangeInclusive<i64>| {
        let digits = text.get(from..until).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<i64>().ok().filter(|number| range.contains(number))
    };
    let is = |at: usize, among: &[u8]| text.as_bytes().get(at).is_some_and(|b| among.contains(b));
    if ![(4, b"-" as &[u8]), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")].iter().all(|(at, among)| is(*at, among)) {
        return None;
    }
    let days = days_since_1970(number(0, 4, 0..=9999)?, number(5, 7, 1..=12)?, number(8, 10, 1..=31)?)?;
    let zone = 19 + text.get(19..)?.find(['Z', 'z', '+', '-'])?;
    let seconds = number(11, 13, 0..=23)? * 3600 + number(14, 16, 0..=59)? * 60 + number(17, 19, 0..=59)?;
    let fraction = if zone == 19 { 0 } else { decimal(&format!("0{}", text.get(19..zone)?), SECOND)? };
    let is_utc = is(zone, b"Zz");
    if text.len() != zone + if is_utc { 1 } else { 6 } || !is_utc && !is(zone + 3, b":") {
        return None;
    }
    let ahead = match is_utc {
        true => 0,
        false => (number(zone + 1, zone + 3, 0..=23)? * 60 + number(zone + 4, zone + 6, 0..=59)?) * 60,
    };
    let ahead = if is(zone, b"-") { -ahead } else { ahead };
    (days * 86_400 + seconds - ahead).checked_mul(SECOND)?.checked_add(fraction)
}

/// How many days a date of the Gregorian calendar is after 1970-01-01; nothing of a day that its month has not.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if is_leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before: i64 = lengths.iter().take(month as usize - 1).sum();
    let past = year - 1;
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * (year - 1970) + leap_days(past) - leap_days(1969) + before + day - 1;
    (day <= lengths[month as usize - 1]).then_some(days)
}

/// A moment as RFC 3339 has it, in milliseconds.
fn show_moment(nanos: i64) -> String {
    let (millis, day) = (nanos.div_euclid(1_000_000) % 86_400_000, nanos.div_euclid(86_400 * SECOND));
    // The year is found by its first day, the month by its first: int64 has the years from 1677 to 2262.
    let first = |year: i64, month: i64| days_since_1970(year, month, 1).unwrap_or(0);
    let year = (1677..=2262).rev().find(|&year| first(year, 1) <= day).unwrap_or(1677);
    let month = (1..=12).rev().find(|&month| first(year, month) <= day).unwrap_or(1);
    let of_day = millis.rem_euclid(86_400_000);
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let date = day - first(year, month) + 1;
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// A time of a recording as a window has it, in milliseconds.
fn show_time(nanos: i64) -> String {
    let millis = nanos.div_euclid(1_000_000);
    format!("{}{}.{:03}s", if millis < 0 { "-" } else { "" }, millis.abs() / 1000, millis.abs() % 1000)
}

/// A recording that is cut to a window while it is read. Times are nanoseconds from where it begins.
#[derive(Debug)]
pub(crate) struct Timeline {
    text: String,
    from: i64,
    until: i64,
    /// When the recording began, in nanoseconds since 1970, if that is known.
    began: Option<i64>,
    /// The times that there are, within or not.
    range: Option<(i64, i64)>,
    is_hit: bool,
}

impl Timeline {
    /// Of a recording that began at a moment, in nanoseconds since 1970, if that is known.
    ///
    /// # Errors
    /// A window with moments or events where the recording has none; one that is none.
    pub fn new(window: &TimeWindow, began: Option<i64>) -> Result<Timeline> {
        Timeline::with_events(window, began, || Ok(Events::default()))
    }

    /// The same of a recording with events, which are only looked for if the window names one.
    ///
    /// # Errors
    /// As [`Timeline::new`]; those of `events`.
    pub fn with_events(
        window: &TimeWindow,
        began: Option<i64>,
        events: impl FnOnce() -> Result<Events>,
    ) -> Result<Timeline> {
        let events = if window.names_event() { events()? } else { Events::default() };
        let mut text = window.text.clone();
        let mut of = |time: &Option<Time>, open: i64| match (time, began) {
            (None, _) => Ok(open),
            (Some(Time::SinceStart(nanos)), _) => Ok(*nanos),
            (Some(Time::Since1970(nanos)), Some(began)) => Ok(nanos.saturating_sub(began)),
            (Some(Time::Since1970(_)), None) => Err(Error::query(format!(
                "{}: it does not say at what time of day it was recorded; times count from its beginning, such as 10s..25s",
                window.text
            ))),
            (Some(Time::Event(name)), _) => {
                let at = events.time_of(name)?;
                text += &format!(" ({name} is at {})", show_time(at));
                Ok(at)
            }
        };
        let (from, until) = (of(&window.from, i64::MIN)?, of(&window.until, i64::MAX)?);
        if from >= until {
            return Err(Error::query(format!("{text}: in this recording it ends before it begins")));
        }
        Ok(Timeline { text, from, until, began, range: None, is_hit: false })
    }

    /// True if what happens at a time is within.
    pub fn contains(&mut self, at: i64) -> bool {
        self.see(at, at);
        let is_within = (self.from..self.until).contains(&at);
        self.is_hit |= is_within;
        is_within
    }

    /// How much of what lasts is within.
    pub fn part(&mut self, begin: i64, end: i64) -> i64 {
        self.see(begin, end);
        let part = end.min(self.until).saturating_sub(begin.max(self.from)).max(0);
        self.is_hit |= part > 0;
        part
    }

    fn see(&mut self, begin: i64, end: i64) {
        let (first, last) = self.range.unwrap_or((begin, end));
        self.range = Some((first.min(begin), last.max(end)));
    }

    /// Has the header say what the window is of it: when it began, and how long it is. That is a part of the whole's, or,
    /// where the format does not tell that, of the range of its samples.
    ///
    /// # Errors
    /// Nothing was within.
    pub fn finish(self, header: &mut Header) -> Result<()> {
        let Some((first, last)) = self.range else {
            return Err(Error::query(format!("{}: there is no sample in the whole recording", self.text)));
        };
        if !self.is_hit {
            // The last is within, too.
            let last = last.saturating_add(1_000_000);
            let moments = self.began.map_or_else(String::new, |began| {
                let moment = |at: i64| show_moment(began.saturating_add(at));
                format!(", which is {}..{}", moment(first), moment(last))
            });
            let range = format!("{}..{}", show_time(first), show_time(last));
            return Err(Error::query(format!(
                "no sample is within {}: those of this recording are within {range}{moments}",
                self.text
            )));
        }
        let (begin, end) = if header.duration_nanos > 0 { (0, header.duration_nanos) } else { (first, last) };
        let (begin, end) = (begin.max(self.from), end.min(self.until));
        header.duration_nanos = end.saturating_sub(begin).max(0);
        if let Some(began) = self.began {
            header.time_nanos = began.saturating_add(begin);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn windows_are_written_in_several_ways() {
        let ends = |text: &str| text.parse::<TimeWindow>().map(|window| (window.from, window.until)).ok();
        let since = |nanos: i64| Some(Time::SinceStart(nanos));
        let moment = |seconds: i64| Some(Time::Since1970(seconds * SECOND));
        let event = |name: &str| Some(Time::Event(name.to_owned()));
        for (text, expected) in [
            ("10s..25s", (since(10 * SECOND), since(25 * SECOND))),
            ("..1m30s", (None, since(90 * SECOND))),
            ("250ms..", (since(250_000_000), None)),
            ("0..1.5s", (since(0), since(1_500_000_000))),
            (" 1us .. 1h", (since(1000), since(3600 * SECOND))),
            ("..jdk.GarbageCollection", (None, event("jdk.GarbageCollection"))),
            ("(start) of it .. 1h", (event("(start) of it"), since(3600 * SECOND))),
            ("b..a", (event("b"), event("a"))),
            ("1970-01-01T00:00:00Z..1970-01-01T00:00:01z", (moment(0), moment(1))),
            ("2026-11-25T10:00:00.25+02:00..", (Some(Time::Since1970(1_795_593_600_250_000_000)), None)),
            ("2024-02-29 23:59:59-00:30..2000-03-01T00:00:00Z", (moment(1_709_252_999), moment(951_868_800))),
        ] {
            // The last is one that ends before it begins.
            let expected = Some(expected).filter(|_| !text.starts_with("2024"));
            assert_eq!(ends(text), expected, "{text}");
        }
        let wrong = "|..|10s|10..20|10s-20s|-1s..|1x..|1.s..|.5s..|5s..5s|1s...2s|2026-13-01T00:00:00Z..|2026-02-29T00:00:00Z..\
                     |2026-02-28T00:00:00..|2026-02-28T24:00:00Z..|2026-02-28T00:00:00+0200..|99999999999999h..|1s..2s..3s|1sé..";
        for text in wrong.split('|') {
            assert_eq!(ends(text), None, "{text}");
        }
    }

    #[test]
    fn a_split_has_two_windows() {
        for text in ["30s", "2026-11-25T10:00:00Z", "gc"] {
            let split: TimeSplit = text.parse().unwrap();
            assert_eq!(split.as_str(), text);
            assert_eq!(
                (split.before, split.after),
                (format!("..{text}").parse().unwrap(), format!("{text}..").parse().unwrap())
            );
        }
        for text in ["", " ", "1s..2s", "..", "30", "-1s"] {
            assert!(text.parse::<TimeSplit>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_event_is_the_first_of_its_name() {
        let mut events = Events::default();
        for (name, at) in
            [("jdk.GC", 5), ("jdk.GC", 3), ("a.Rare", 4), ("b:Rare", 1), ("Rare.x", 9), ("plain", 7), ("jdk.GC", 8)]
        {
            events.see(name.as_bytes(), at * SECOND);
        }
        let time = |name: &str| events.time_of(name).map(|at| at / SECOND).map_err(|e| e.to_string());
        let names = ["jdk.GC", "GC", "b:Rare", "x", "plain"];
        assert_eq!(names.map(time), [Ok(3), Ok(3), Ok(1), Ok(9), Ok(7)]);
        assert_eq!(time("gc").unwrap_err(), "it has no event \"gc\", but these: jdk.GC, Rare.x, a.Rare, b:Rare, plain");
        assert_eq!(time("Rare").unwrap_err(), "\"Rare\" is the end of several events' names: a.Rare, b:Rare");
        assert!(time("C").is_err());
        for i in 0..30 {
            events.see(format!("more{i}").as_bytes(), 0);
        }
        let said = events.time_of("none").unwrap_err().to_string();
        assert!(said.ends_with(", more22, and 15 more") && said.matches(", ").count() == MAX_NAMES + 1, "{said}");

        let cut = |window: &str| {
            Timeline::with_events(&window.parse().unwrap(), None, || {
                Ok(Events(BTreeMap::from([("a".to_owned(), SECOND), ("b".to_owned(), 2 * SECOND)])))
            })
        };
        let timeline = cut("a..b").unwrap();
        assert_eq!((timeline.from, timeline.until), (SECOND, 2 * SECOND));
        assert!(
            cut("b..a")
                .unwrap_err()
                .to_string()
                .ends_with("(b is at 2.000s) (a is at 1.000s): in this recording it ends before it begins")
        );
        let mut timeline = cut("..a").unwrap();
        timeline.contains(3 * SECOND);
        let said = timeline.finish(&mut Header::default()).unwrap_err().to_string();
        assert!(said.starts_with("no sample is within ..a (a is at 1.000s): those"), "{said}");
        assert!(
            Timeline::new(&"..a".parse().unwrap(), None)
                .unwrap_err()
                .to_string()
                .ends_with("it has no events, and so none that is called \"a\"")
        );
    }

    #[test]
    fn moments_are_shown_as_they_are_written() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2026-11-25T10:00:00.250Z",
            "1969-12-31T23:59:59.999Z",
            "2000-02-29T12:30:01.001Z",
        ] {
            assert_eq!(show_moment(parse_moment(text).unwrap()), text);
        }
        assert_eq!(["0.000s", "-1.500s", "90.250s"], [0, -1_500_000_000, 90_250_999_999].map(show_time));
        assert_eq!([i64::MIN, i64::MAX].map(show_moment), ["1677-09-21T00:12:43.145Z", "2262-04-11T23:47:16.854Z"]);
    }

    #[test]
    fn a_cut_recording_says_when_it_is() {
        let cut = |window: &str, duration: i64, ends: &[(i64, i64)]| {
            let mut timeline = Timeline::new(&window.parse().unwrap(), Some(100 * SECOND)).unwrap();
            let parts: Vec<i64> =
                ends.iter().map(|&(begin, end)| timeline.part(begin * SECOND, end * SECOND)).collect();
            let mut header = Header { duration_nanos: duration * SECOND, time_nanos: 1, ..Header::default() };
            let done = timeline.finish(&mut header).map_err(|e| e.to_string());
            done.map(|()| {
                (parts.iter().sum::<i64>() / SECOND, header.time_nanos / SECOND, header.duration_nanos / SECOND)
            })
        };
        assert_eq!(cut("2s..5s", 10, &[(0, 3), (3, 4), (4, 9)]), Ok((3, 102, 3)));
        assert_eq!(cut("5s..", 10, &[(0, 9)]), Ok((4, 105, 5)));
        assert_eq!(cut("5s..", 0, &[(0, 9)]), Ok((4, 105, 4)));
        assert_eq!(cut("..5s", 10, &[(1, 9)]), Ok((4, 100, 5)));
        assert_eq!(cut("1970-01-01T00:01:42Z..4s", 10, &[(1, 9)]), Ok((2, 102, 2)));
        let nothing = "no sample is within 9s..: those of this recording are within 1.000s..9.001s, which is \
                       1970-01-01T00:01:41.000Z..1970-01-01T00:01:49.001Z";
        assert_eq!(cut("9s..", 10, &[(1, 9)]), Err(nothing.to_owned()));
        assert!(cut("1s..", 10, &[]).unwrap_err().contains("no sample in the whole recording"));
        let moments: TimeWindow = "2026-11-25T10:00:00Z..".parse().unwrap();
        assert!(Timeline::new(&moments, None).unwrap_err().to_string().contains("does not say at what time of day"));
        let mut timeline = Timeline::new(&"1s..2s".parse().unwrap(), None).unwrap();
        let within = [SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND].map(|at| timeline.contains(at));
        assert_eq!(within, [false, true, true, false]);
    }
}
