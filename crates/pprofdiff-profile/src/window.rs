//! Time windows inside a recording, such as `10s..25s`. The ends are durations from the start, timestamps or events.
//! Readers of formats with sample times use a [`Timeline`] to decide which samples are inside the window.
//!
//! An event is an end of a window rather than a separate option, so every option that takes a window supports events,
//! including two of them: `deploy..rollback`. The first event with the name counts, because an end must be a single
//! time.
//!
//! A window includes its start and excludes its end, so two adjacent windows contain each sample exactly once. A sample
//! with a duration (in V8, a sample lasts until the next sample) is cut at the ends of the window.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::profile::Header;
use crate::short_lists::sort_by_key;
use crate::time::{parse_duration, parse_moment, show_time};

/// The minimum number of digits of a time in seconds since 1970. Such times begin in 2001.
const MIN_DIGITS_OF_TIME: usize = 10;

/// A part of a recording, such as `10s..25s`. `..25s` begins with the recording, and `10s..` ends with it.
///
/// Each end is one of: a duration from the start of the recording (`1m30s`, `250ms`, `0`), a timestamp (RFC 3339,
/// `2026-11-25T10:00:00Z`), or the name of an event (`..GarbageCollection`), which means the first event with this
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeWindow {
    /// The window as the user wrote it.
    text: String,
    from: Option<Time>,
    until: Option<Time>,
}

/// An end of a window, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Time {
    SinceStart(i64),
    Since1970(i64),
    /// The time of the first event with this name.
    Event(String),
}

impl TimeWindow {
    /// Returns the window as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if an end is an event. Only some formats contain events.
    #[doc(hidden)]
    pub fn names_event(&self) -> bool {
        [&self.from, &self.until].into_iter().any(|end| matches!(end, Some(Time::Event(_))))
    }
}

impl FromStr for TimeWindow {
    type Err = Error;

    fn from_str(text: &str) -> Result<TimeWindow> {
        let syntax_error = || {
            Error::query(format!(
                "write a time inside a recording as 10s..25s, ..1m30s or 250ms.., or with timestamps such as \
                 2026-11-25T10:00:00Z or names of events, not {text:?}"
            ))
        };
        let (from, until) = text.split_once("..").ok_or_else(syntax_error)?;
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => parse_end(text)?.map(Some).ok_or_else(syntax_error),
        };
        let window = TimeWindow { text: text.to_owned(), from: end(from)?, until: end(until)? };
        match (&window.from, &window.until) {
            (None, None) => Err(syntax_error()),
            (Some(Time::SinceStart(from)), Some(Time::SinceStart(until)))
            | (Some(Time::Since1970(from)), Some(Time::Since1970(until)))
                if from >= until =>
            {
                Err(Error::query(format!("a time inside a recording must end after it begins, unlike {text:?}")))
            }
            _ => Ok(window),
        }
    }
}

/// A time that divides a recording into two parts. It is written like an end of a window, such as `30s` or the name of
/// an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSplit {
    text: String,
    /// The part before the time.
    pub before: TimeWindow,
    /// The part that begins at the time.
    pub after: TimeWindow,
}

impl TimeSplit {
    /// Returns the time as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for TimeSplit {
    type Err = Error;

    fn from_str(text: &str) -> Result<TimeSplit> {
        if text.trim().is_empty() || text.contains("..") {
            return Err(Error::query(format!(
                "a recording is divided at a time such as 30s or 2026-11-25T10:00:00Z, or at the name of an event, not {text:?}"
            )));
        }
        let (before, after) = (format!("..{text}").parse()?, format!("{text}..").parse()?);
        Ok(TimeSplit { text: text.to_owned(), before, after })
    }
}

/// Parses an end of a window. Returns `None` if it is mistyped.
///
/// # Errors
/// Fails on a leap second.
fn parse_end(text: &str) -> Result<Option<Time>> {
    if let Ok(duration) = parse_duration(text) {
        return Ok(i64::try_from(duration.as_nanos()).ok().map(Time::SinceStart));
    }
    // A short number is a duration without a unit rather than a time in the first decades after 1970.
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    if is_number && text.len() < MIN_DIGITS_OF_TIME {
        return Ok(None);
    }
    Ok(match parse_moment(text)? {
        Some(moment) => i64::try_from(moment).ok().map(Time::Since1970),
        None => is_event_name(text).then(|| Time::Event(text.to_owned())),
    })
}

/// Returns true if `text` cannot be a mistyped time, so it must be an event name.
fn is_event_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit() || ['-', '+', '.'].contains(&c))
}

/// The time of the first event with each name, in nanoseconds from the start of the recording.
#[derive(Debug, Default)]
pub struct Events(BTreeMap<String, i64>);

/// The maximum number of event names in an error.
const MAX_NAMES: usize = 20;
/// The maximum number of characters of each event name in an error.
const MAX_NAME: usize = 60;

impl Events {
    /// Adds an event.
    pub fn see(&mut self, name: &[u8], time: i64) {
        let name = String::from_utf8_lossy(name);
        match self.0.get_mut(&*name) {
            Some(first) => *first = time.min(*first),
            None => _ = self.0.insert(name.into_owned(), time),
        }
    }

    /// Returns the time of the first event with this name. A short name is enough if it is unambiguous:
    /// `GarbageCollection` for `jdk.GarbageCollection`, `sched_switch` for `sched:sched_switch`.
    fn time_of(&self, name: &str) -> Result<i64> {
        if let Some(&time) = self.0.get(name) {
            return Ok(time);
        }
        let ends_with_name = |full: &str| full.strip_suffix(name).is_some_and(|before| before.ends_with(['.', ':']));
        let short: Vec<(&String, &i64)> = self.0.iter().filter(|(full, _)| ends_with_name(full)).collect();
        if let [(_, &time)] = short[..] {
            return Ok(time);
        }
        if !short.is_empty() {
            let names = list_names(short.into_iter().map(|(full, _)| full.as_str()).collect());
            return Err(Error::query(format!("several event names end in {name:?}: {names}")));
        }
        // Names that contain the given name come first, because the user may have meant one of them.
        let lower_name = name.to_lowercase();
        let mut names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        sort_by_key(&mut names, |full| Reverse(full.to_lowercase().contains(&lower_name)));
        Err(Error::query(match names[..] {
            [] => format!("it has no events, and so none that is called {name:?}"),
            _ => format!("it has no event {name:?}, but these: {}", list_names(names)),
        }))
    }
}

/// Lists names for an error, shortened to the limits, with the number of omitted names.
fn list_names(mut names: Vec<&str>) -> String {
    let n_omitted = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let shortened = names.iter().map(|name| match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => (*name).to_owned(),
    });
    let more = if n_omitted > 0 { format!(", and {n_omitted} more") } else { String::new() };
    shortened.collect::<Vec<_>>().join(", ") + &more
}

/// Formats a time since the start of a recording as in a window, with milliseconds.
fn show_offset(nanos: i64) -> String {
    let millis = nanos.div_euclid(1_000_000);
    format!("{}{}.{:03}s", if millis < 0 { "-" } else { "" }, millis.abs() / 1000, millis.abs() % 1000)
}

/// A filter that cuts a recording to a window while it is read. All times are nanoseconds from the start of the
/// recording.
#[derive(Debug)]
pub struct Timeline {
    text: String,
    from: i64,
    until: i64,
    /// The start of the recording in nanoseconds since 1970, if known.
    began: Option<i64>,
    /// The range of all times in the recording, inside the window or not.
    range: Option<(i64, i64)>,
    /// True if a sample was inside the window.
    is_hit: bool,
}

impl Timeline {
    /// Creates the timeline for a window. `began` is the start of the recording in nanoseconds since 1970, if known.
    ///
    /// # Errors
    /// Fails if the window needs timestamps or events that the recording does not have, or if it does not end after it
    /// begins.
    pub fn new(window: &TimeWindow, began: Option<i64>) -> Result<Timeline> {
        Timeline::with_events(window, began, || Ok(Events::default()))
    }

    /// Creates the timeline for a recording with events. Calls `events` only if the window contains an event.
    ///
    /// # Errors
    /// Fails like [`Timeline::new`], and if `events` fails.
    pub fn with_events(
        window: &TimeWindow,
        began: Option<i64>,
        events: impl FnOnce() -> Result<Events>,
    ) -> Result<Timeline> {
        let events = if window.names_event() { events()? } else { Events::default() };
        let mut text = window.text.clone();
        let mut resolve = |time: &Option<Time>, open: i64| match (time, began) {
            (None, _) => Ok(open),
            (Some(Time::SinceStart(nanos)), _) => Ok(*nanos),
            (Some(Time::Since1970(nanos)), Some(began)) => Ok(nanos.saturating_sub(began)),
            (Some(Time::Since1970(_)), None) => Err(Error::query(format!(
                "{}: the recording does not contain its time of day; use times from its beginning, such as 10s..25s",
                window.text
            ))),
            (Some(Time::Event(name)), _) => {
                let time = events.time_of(name)?;
                text += &format!(" ({name} is at {})", show_offset(time));
                Ok(time)
            }
        };
        let (from, until) = (resolve(&window.from, i64::MIN)?, resolve(&window.until, i64::MAX)?);
        if from >= until {
            let why = if from == until { "is empty" } else { "ends before it begins" };
            return Err(Error::query(format!("{text}: in this recording, the window {why}")));
        }
        Ok(Timeline { text, from, until, began, range: None, is_hit: false })
    }

    /// Returns true if a sample at this time is inside the window.
    pub fn contains(&mut self, time: i64) -> bool {
        self.see(time, time);
        let is_within = (self.from..self.until).contains(&time);
        self.is_hit |= is_within;
        is_within
    }

    /// Returns how much of a sample's duration is inside the window.
    pub fn part(&mut self, begin: i64, end: i64) -> i64 {
        self.see(begin, end);
        let part = end.min(self.until).saturating_sub(begin.max(self.from)).max(0);
        self.is_hit |= part > 0;
        part
    }

    /// Extends the range of all times in the recording.
    fn see(&mut self, begin: i64, end: i64) {
        let (first, last) = self.range.unwrap_or((begin, end));
        self.range = Some((first.min(begin), last.max(end)));
    }

    /// Sets the header's start and duration to the part of the recording inside the window. If the format does not
    /// declare a duration, the range of the samples replaces it.
    ///
    /// # Errors
    /// Fails if no sample was inside the window.
    pub fn finish(self, header: &mut Header) -> Result<()> {
        let Some((first, last)) = self.range else {
            return Err(Error::query(format!("{}: there is no sample in the whole recording", self.text)));
        };
        if !self.is_hit {
            // A window excludes its end, so extend the range to include the last sample.
            let last = last.saturating_add(1_000_000);
            let moments = self.began.map_or_else(String::new, |began| {
                let moment = |time: i64| show_time(began.saturating_add(time).into());
                format!(", which is {}..{}", moment(first), moment(last))
            });
            let range = format!("{}..{}", show_offset(first), show_offset(last));
            return Err(Error::query(format!(
                "no sample is within {}; the samples of this recording are within {range}{moments}",
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
    use crate::time::SECOND;

    #[test]
    fn windows_are_parsed_from_durations_timestamps_and_events() {
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
            ("1.5m..1d", (since(90 * SECOND), since(86_400 * SECOND))),
            ("1795593600..1795593601000", (moment(1_795_593_600), moment(1_795_593_601))),
            ("..jdk.GarbageCollection", (None, event("jdk.GarbageCollection"))),
            ("(start) of it .. 1h", (event("(start) of it"), since(3600 * SECOND))),
            ("b..a", (event("b"), event("a"))),
            ("1970-01-01T00:00:00Z..1970-01-01T00:00:01z", (moment(0), moment(1))),
            ("2026-11-25T10:00:00.25+02:00..", (Some(Time::Since1970(1_795_593_600_250_000_000)), None)),
            ("2024-02-29 23:59:59-00:30..2000-03-01T00:00:00Z", (moment(1_709_252_999), moment(951_868_800))),
        ] {
            // This window ends before it begins, so it is invalid.
            let expected = Some(expected).filter(|_| !text.starts_with("2024"));
            assert_eq!(ends(text), expected, "{text}");
        }
        let wrong = "|..|10s|10..20|10s-20s|-1s..|1x..|1.s..|.5s..|5s..5s|1s...2s|2026-13-01T00:00:00Z..|2026-02-29T00:00:00Z..\
                     |2026-02-28T00:00:00..|2026-02-28T24:00:00Z..|2026-02-28T00:00:00+2:00..|2016-12-31T23:59:60Z..|99999999999999h..|1s..2s..3s|1sé..";
        for text in wrong.split('|') {
            assert_eq!(ends(text), None, "{text}");
        }
    }

    #[test]
    fn a_split_consists_of_two_windows() {
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
    fn the_first_event_with_a_name_counts() {
        let mut events = Events::default();
        for (name, time) in
            [("jdk.GC", 5), ("jdk.GC", 3), ("a.Rare", 4), ("b:Rare", 1), ("Rare.x", 9), ("plain", 7), ("jdk.GC", 8)]
        {
            events.see(name.as_bytes(), time * SECOND);
        }
        let time = |name: &str| events.time_of(name).map(|time| time / SECOND).map_err(|e| e.to_string());
        let names = ["jdk.GC", "GC", "b:Rare", "x", "plain"];
        assert_eq!(names.map(time), [Ok(3), Ok(3), Ok(1), Ok(9), Ok(7)]);
        assert_eq!(time("gc").unwrap_err(), "it has no event \"gc\", but these: jdk.GC, Rare.x, a.Rare, b:Rare, plain");
        assert_eq!(time("Rare").unwrap_err(), "several event names end in \"Rare\": a.Rare, b:Rare");
        assert!(time("C").is_err());
        for i in 0..30 {
            events.see(format!("more{i}").as_bytes(), 0);
        }
        let message = events.time_of("none").unwrap_err().to_string();
        assert!(
            message.ends_with(", more22, and 15 more") && message.matches(", ").count() == MAX_NAMES + 1,
            "{message}"
        );

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
                .ends_with("(b is at 2.000s) (a is at 1.000s): in this recording, the window ends before it begins")
        );
        assert!(cut("a..a").unwrap_err().to_string().ends_with("in this recording, the window is empty"));
        let mut timeline = cut("..a").unwrap();
        timeline.contains(3 * SECOND);
        let message = timeline.finish(&mut Header::default()).unwrap_err().to_string();
        assert!(message.starts_with("no sample is within ..a (a is at 1.000s); the samples"), "{message}");
        assert!(
            Timeline::new(&"..a".parse().unwrap(), None)
                .unwrap_err()
                .to_string()
                .ends_with("it has no events, and so none that is called \"a\"")
        );
    }

    #[test]
    fn times_since_the_start_are_formatted() {
        assert_eq!(["0.000s", "-1.500s", "90.250s"], [0, -1_500_000_000, 90_250_999_999].map(show_offset));
    }

    #[test]
    fn a_cut_recording_has_the_times_of_its_window() {
        let cut = |window: &str, duration: i64, ends: &[(i64, i64)]| {
            let mut timeline = Timeline::new(&window.parse().unwrap(), Some(100 * SECOND)).unwrap();
            let parts: Vec<i64> =
                ends.iter().map(|&(begin, end)| timeline.part(begin * SECOND, end * SECOND)).collect();
            let mut header = Header { duration_nanos: duration * SECOND, time_nanos: 1, ..Header::default() };
            let result = timeline.finish(&mut header).map_err(|e| e.to_string());
            result.map(|()| {
                (parts.iter().sum::<i64>() / SECOND, header.time_nanos / SECOND, header.duration_nanos / SECOND)
            })
        };
        assert_eq!(cut("2s..5s", 10, &[(0, 3), (3, 4), (4, 9)]), Ok((3, 102, 3)));
        assert_eq!(cut("5s..", 10, &[(0, 9)]), Ok((4, 105, 5)));
        assert_eq!(cut("5s..", 0, &[(0, 9)]), Ok((4, 105, 4)));
        assert_eq!(cut("..5s", 10, &[(1, 9)]), Ok((4, 100, 5)));
        assert_eq!(cut("1970-01-01T00:01:42Z..4s", 10, &[(1, 9)]), Ok((2, 102, 2)));
        let nothing = "no sample is within 9s..; the samples of this recording are within 1.000s..9.001s, which is \
                       1970-01-01T00:01:41.000Z..1970-01-01T00:01:49.001Z";
        assert_eq!(cut("9s..", 10, &[(1, 9)]), Err(nothing.to_owned()));
        assert!(cut("1s..", 10, &[]).unwrap_err().contains("no sample in the whole recording"));
        let moments: TimeWindow = "2026-11-25T10:00:00Z..".parse().unwrap();
        assert!(Timeline::new(&moments, None).unwrap_err().to_string().contains("does not contain its time of day"));
        let mut timeline = Timeline::new(&"1s..2s".parse().unwrap(), None).unwrap();
        let within = [SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND].map(|time| timeline.contains(time));
        assert_eq!(within, [false, true, true, false]);
    }
}
