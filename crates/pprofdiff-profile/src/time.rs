//! The grammar of durations and times. Every option, window and address uses these functions, so all of them accept the
//! same texts. jiff knows the calendar and the standards. This file adds what jiff does not accept: fractions of any
//! unit, units in any order, more than nine digits after the decimal point, and numbers since 1970.

use std::borrow::Cow;
use std::time::Duration;

use jiff::civil::{DateTime, date};
use jiff::fmt::temporal::Pieces;
use jiff::{SignedDuration, Span, SpanRelativeTo};

use crate::error::{Error, Result};

/// Nanoseconds per second.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// The units of a duration, in nanoseconds. A day always has 24 hours.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("d", 24 * 3600 * SECOND),
    ("w", 7 * 24 * 3600 * SECOND),
];

/// The beginning of Unix time.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// From this value on, a bare number counts milliseconds. In seconds it would be in the year 5138.
const MIN_MILLISECONDS: i64 = 100_000_000_000;

/// The number of digits of a fraction of a second that jiff accepts.
const MAX_DIGITS: usize = 9;

/// The accepted durations, for errors.
pub(crate) const DURATIONS: &str = "30s, 1.5m, 500ms or 1d12h";

/// Parses a duration. It consists of decimal numbers with their units (`1.5m`, `1d12h`), or has another form that jiff
/// accepts (`PT1M30S`, `1 hour 30 minutes`, `01:30:00`).
///
/// # Errors
/// Fails if the text is not a duration, or if the duration is negative.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let by_jiff = || text.parse::<Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    let duration = sum_of_units(text).map(SignedDuration::from_nanos).or_else(by_jiff);
    duration.and_then(|duration| Duration::try_from(duration).ok()).ok_or_else(|| {
        let units = UNITS.map(|(name, _)| name).join(", ");
        Error::query(format!("{text:?} is not a duration; write {DURATIONS} (units: {units})"))
    })
}

/// Parses numbers with their units, such as `1m30s`. Zero needs no unit.
fn sum_of_units(text: &str) -> Option<i64> {
    let (mut rest, mut sum) = (text, if text.is_empty() { None } else { Some(0i64) });
    if text == "0" {
        return sum;
    }
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &after[..end])?;
        sum = sum?.checked_add(decimal(number, *unit)?);
        rest = &after[end..];
    }
    sum
}

/// Parses a decimal number such as `1.5` and multiplies it by `unit`. Returns `None` if the text is not such a number,
/// or if the product exceeds an int64.
pub fn decimal(text: &str, unit: i64) -> Option<i64> {
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

/// Parses a time into nanoseconds since 1970: RFC 3339 or a number, as in `parse_moment`, or relative to `now`
/// (`now`, `-1h30m`, `now-7d`).
///
/// # Errors
/// Fails if the text is not a time, or if the time is before 1970.
pub fn parse_time(text: &str, now: i128) -> Result<i128> {
    let relative = text.strip_prefix("now").unwrap_or(text);
    let moment = if relative.is_empty() && !text.is_empty() {
        Some(now)
    } else if let Some(ago) = relative.strip_prefix('-') {
        parse_duration(ago).ok().map(|ago| now - ago.as_nanos() as i128)
    } else {
        parse_moment(text)?
    };
    moment.filter(|&moment| moment >= 0 && to_datetime(moment).is_some()).ok_or_else(|| {
        Error::query(format!("{text:?} is not a time; write now, -1h, 2026-03-01T12:00:00Z, or seconds since 1970"))
    })
}

/// Parses a time that does not depend on the current time into nanoseconds since 1970: RFC 3339, or the seconds or
/// milliseconds since 1970. RFC 3339 needs an offset from UTC, because a time without one means a different moment on
/// each machine. Returns `None` if the text is not such a time.
///
/// # Errors
/// Fails on a leap second, because Unix time has no number for it. jiff would return the second before.
pub(crate) fn parse_moment(text: &str) -> Result<Option<i128>> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let unit = |n: i64| if n < MIN_MILLISECONDS { SECOND } else { SECOND / 1000 };
        return Ok(text.parse::<i64>().ok().map(|n| i128::from(n) * i128::from(unit(n))));
    }
    let text = without_excess_digits(text);
    let Ok(pieces) = Pieces::parse(&*text) else { return Ok(None) };
    let (Some(time), Some(offset)) = (pieces.time(), pieces.to_numeric_offset()) else { return Ok(None) };
    let time_text = text.split(['T', 't', ' ']).nth(1).unwrap_or_default();
    if time_text.chars().filter(|c| *c != ':').skip(4).take(2).eq("60".chars()) {
        let problem = "is a leap second, which Unix time does not have; write the second before or after it";
        return Err(Error::query(format!("{text:?} {problem}")));
    }
    let since_1970 = pieces.date().to_datetime(time).duration_since(EPOCH).as_nanos();
    Ok(Some(since_1970 - i128::from(offset.seconds()) * i128::from(SECOND)))
}

/// Shortens the fraction of a second to the digits that jiff accepts.
fn without_excess_digits(text: &str) -> Cow<'_, str> {
    let Some((before, fraction)) = text.split_once('.') else { return text.into() };
    let n_digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits <= MAX_DIGITS {
        return text.into();
    }
    format!("{before}.{}{}", &fraction[..MAX_DIGITS], &fraction[n_digits..]).into()
}

/// Returns the date and time in UTC. `None` after the year 9999.
fn to_datetime(since_1970: i128) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::try_from_nanos_i128(since_1970)?).ok()
}

/// Formats a time in nanoseconds since 1970 as RFC 3339 in UTC, with milliseconds.
pub fn show_time(since_1970: i128) -> String {
    // Rounds towards the past, because jiff rounds towards 1970.
    let millis = since_1970.div_euclid(1_000_000);
    to_datetime(millis * 1_000_000).map_or_else(String::new, |time| format!("{time:.3}Z"))
}

#[cfg(test)]
mod tests {
    use super::{parse_duration, parse_time, show_time};

    /// 2026-03-01T12:00:00Z in milliseconds; GNU `date` gives the same value.
    const NOW: i128 = 1_772_366_400_000;

    #[test]
    fn durations_are_parsed_in_any_unit() {
        for (text, micros) in [
            ("0", 0),
            ("1.5m", 90_000_000),
            ("500ms", 500_000),
            ("1d", 86_400_000_000),
            ("1.5d", 129_600_000_000),
            ("2w", 1_209_600_000_000),
            ("1h30m", 5_400_000_000),
            ("30s1.5m", 120_000_000),
            ("1.0000000000s", 1_000_000),
            ("1500ns", 1),
            ("7us", 7),
            ("PT1M30S", 90_000_000),
            ("P1D", 86_400_000_000),
            ("1 hour 30 minutes", 5_400_000_000),
            ("01:30:00", 5_400_000_000),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_micros()).ok(), Some(micros), "{text}");
        }
        for text in ["", " ", "10", "-1s", "1s ago", "1x", "1.s", ".5s", "1sé", "s", "1h30", "1mo", "1y", "1e3s", "1S"]
        {
            let error = parse_duration(text).err().map(|e| e.to_string()).unwrap_or_default();
            let accepted = "write 30s, 1.5m, 500ms or 1d12h (units: ns, us, ms, s, m, h, d, w)";
            assert_eq!(error, format!("{text:?} is not a duration; {accepted}"));
        }
    }

    fn parse_millis(text: &str) -> Result<i128, String> {
        parse_time(text, NOW * 1_000_000).map(|time| time.div_euclid(1_000_000)).map_err(|e| e.to_string())
    }

    #[test]
    fn relative_absolute_and_numeric_times_are_parsed() {
        let cases = [
            ("now", NOW),
            ("-0", NOW),
            ("-1h", NOW - 3_600_000),
            ("now-1h", NOW - 3_600_000),
            ("-1d2h3m4s", NOW - 93_784_000),
            ("-2w", NOW - 14 * 86_400_000),
            ("-1.5m", NOW - 90_000),
            ("2026-03-01T12:00:00Z", NOW),
            ("2026-03-01t12:00:00z", NOW),
            ("2026-03-01 12:00:00Z", NOW),
            ("2026-03-01T12:00Z", NOW),
            ("20260301T130000+0100", NOW),
            ("2026-03-01T13:30:00.25+01:30", NOW + 250),
            ("2026-03-01T11:59:59.9999-00:00", NOW - 1),
            ("2026-03-01T12:00:00.00700000000099Z", NOW + 7),
            ("2026-02-28T23:00:00-13:00", NOW),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("1970-01-01T00:00:00Z", 0),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
            ("1772366400", NOW),
            ("1772366400000", NOW),
            ("0", 0),
        ];
        for (text, moment) in cases {
            assert_eq!(parse_millis(text), Ok(moment), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "-",
            "now-",
            "now+1h",
            "--1h",
            "-1",
            "-h",
            "1h",
            "-1y",
            "-99999999999w",
            "-9999999999999999999d",
            "yesterday",
            "2026-03-01",
            "2026-03-01T12:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T12:00:00.Z",
            "2026-03-01T12:00:00+1:00",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59-01:00",
            "9999999999999999",
            "99999999999999999999",
            "2026-03-01T12:00:0é",
            "２０２６",
        ] {
            let expected = "is not a time; write now, -1h, 2026-03-01T12:00:00Z, or seconds since 1970";
            assert_eq!(parse_millis(text), Err(format!("{text:?} {expected}")));
        }
    }

    #[test]
    fn leap_seconds_are_refused_with_a_reason() {
        for text in ["2016-12-31T23:59:60Z", "2016-12-31 23:59:60.5+00:00", "20161231T235960Z"] {
            let expected = "is a leap second, which Unix time does not have; write the second before or after it";
            assert_eq!(parse_millis(text), Err(format!("{text:?} {expected}")));
        }
        assert!(parse_millis("2016-12-31T23:59:00+00:60").is_err_and(|e| e.contains("is not a time")));
    }

    #[test]
    fn formatted_times_parse_to_the_same_moment() {
        assert_eq!(show_time(NOW * 1_000_000 + 7_999_999), "2026-03-01T12:00:00.007Z");
        assert_eq!(show_time(-1), "1969-12-31T23:59:59.999Z");
        let int64 = [i64::MIN, i64::MAX].map(|nanos| show_time(nanos.into()));
        assert_eq!(int64, ["1677-09-21T00:12:43.145Z", "2262-04-11T23:47:16.854Z"]);
        // Steps of about 13 days reach all years of the calendar.
        let end = 253_402_300_800_000;
        for moment in (0..end).step_by(86_400_000 * 13 + 12_345_678).chain([0, end - 1]) {
            assert_eq!(parse_millis(&show_time(moment * 1_000_000)), Ok(moment), "{moment}");
        }
    }
}
