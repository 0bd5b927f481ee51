//! Parses the times of addresses into milliseconds since 1970, and formats them for errors.

use pprofdiff_profile::{Error, Result};

const SECOND: i64 = 1000;
const DAY: i64 = 86_400 * SECOND;
/// The first millisecond of the year 10000.
const END_OF_TIME: i64 = 253_402_300_800 * SECOND;
/// From this value on, a bare number counts milliseconds. In seconds it would be in the year 5138.
const MIN_MILLISECONDS: i64 = 100_000_000_000;

/// Parses `now`, `-1h30m`, `now-7d`, RFC 3339, or seconds or milliseconds since 1970.
pub(super) fn parse(text: &str, now: i64) -> Result<i64> {
    let relative = text.strip_prefix("now").unwrap_or(text);
    let moment = if relative.is_empty() && !text.is_empty() {
        Some(now)
    } else if let Some(ago) = relative.strip_prefix('-') {
        duration(ago).and_then(|ago| now.checked_sub(ago))
    } else if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let number = text.parse::<i64>().ok();
        number.and_then(|n| if n < MIN_MILLISECONDS { n.checked_mul(SECOND) } else { Some(n) })
    } else {
        rfc3339(text)
    };
    moment.filter(|moment| (0..END_OF_TIME).contains(moment)).ok_or_else(|| {
        Error::query(format!("{text:?} is not a time; write now, -1h, 2026-03-01T12:00:00Z, or seconds since 1970"))
    })
}

/// Parses a duration such as `1h30m`: numbers with one of the units w, d, h, m and s.
fn duration(text: &str) -> Option<i64> {
    let (mut rest, mut sum) = (text, 0i64);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit = match after.chars().next()? {
            'w' => 7 * DAY,
            'd' => DAY,
            'h' => 3600 * SECOND,
            'm' => 60 * SECOND,
            's' => SECOND,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)?;
        rest = &after[1..];
    }
    (!text.is_empty()).then_some(sum)
}

/// Parses `2026-03-01T12:00:00.5+02:00`. The offset is required, because a time without one means a different moment on
/// each machine.
fn rfc3339(text: &str) -> Option<i64> {
    let number = |index: usize, len: usize| {
        let digits = text.get(index..index + len)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let has_mark = |index: usize, chars: &str| text.get(index..=index).is_some_and(|c| chars.contains(c));
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let marks = has_mark(4, "-") && has_mark(7, "-") && has_mark(10, "Tt ") && has_mark(13, ":") && has_mark(16, ":");
    let days_of_month = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // Second 60 is a leap second. It is read as the next minute's first second, because Unix time has no leap seconds.
    let fits = (1..=12).contains(&month) && (1..=days_of_month).contains(&day) && hour < 24 && minute < 60;
    if !marks || !fits || second > 60 {
        return None;
    }
    let mut zone = text.get(19..)?;
    let mut millis = 0;
    if let Some(fraction) = zone.strip_prefix('.') {
        let len = fraction.find(|c: char| !c.is_ascii_digit()).filter(|&len| len > 0)?;
        let digits = format!("{:0<3}", &fraction[..len.min(3)]);
        (millis, zone) = (digits.parse::<i64>().ok()?, &fraction[len..]);
    }
    let offset = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()) => {
            let two_digits = |tens: &u8, ones: &u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
            let minutes = two_digits(h1, h2) * 60 + two_digits(m1, m2);
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute - offset) * 60 + second;
    Some(days_before(year, month, day) * DAY + seconds * SECOND + millis)
}

/// Returns the days from 1970-01-01 to a date. Years start in March in this calculation, so a leap day is the last day
/// of its year.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// Formats a time as RFC 3339 in UTC, with milliseconds unless they are zero.
pub(super) fn show(millis: i64) -> String {
    let (days, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
    // This is the latest possible year, and the year is at most one less: 400 years have 146,097 days.
    let mut year = 1970 + (days * 400).div_euclid(146_097) + 1;
    while days_before(year, 1, 1) > days {
        year -= 1;
    }
    let month = (1..=12).rev().find(|&month| days_before(year, month, 1) <= days).unwrap_or(1);
    let day = days - days_before(year, month, 1) + 1;
    let (seconds, millis) = (rest / SECOND, rest % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::{END_OF_TIME, parse, show};

    /// 2026-03-01T12:00:00Z; GNU `date` gives the same value.
    const NOW: i64 = 1_772_366_400_000;

    #[test]
    fn relative_absolute_and_numeric_times_are_parsed() {
        let cases = [
            ("now", NOW),
            ("-1h", NOW - 3_600_000),
            ("now-1h", NOW - 3_600_000),
            ("-1d2h3m4s", NOW - 93_784_000),
            ("-2w", NOW - 14 * 86_400_000),
            ("2026-03-01T12:00:00Z", NOW),
            ("2026-03-01t12:00:00z", NOW),
            ("2026-03-01 12:00:00Z", NOW),
            ("2026-03-01T13:30:00.25+01:30", NOW + 250),
            ("2026-03-01T11:59:59.9999-00:00", NOW - 1),
            ("2026-02-28T23:00:00-13:00", NOW),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("1970-01-01T00:00:00Z", 0),
            ("1772366400", NOW),
            ("1772366400000", NOW),
            ("0", 0),
        ];
        for (text, moment) in cases {
            assert_eq!(parse(text, NOW).ok(), Some(moment), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "-",
            "now-",
            "now+1h",
            "-1",
            "-h",
            "1h",
            "-1y",
            "-1h ",
            "-99999999999w",
            "-9999999999999999999d",
            "yesterday",
            "2026-03-01",
            "2026-03-01T12:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T12:00:00.Z",
            "2026-03-01T12:00:00+0100",
            "2026-03-01T12:00:00+1:00",
            "1969-12-31T23:59:59Z",
            "9999999999999999",
            "99999999999999999999",
            "2026-03-01T12:00:0é",
            "２０２６",
        ] {
            let error = parse(text, NOW).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("is not a time; write now, -1h"), "{text:?}: {error}");
        }
    }

    #[test]
    fn formatted_times_parse_to_the_same_moment() {
        assert_eq!(show(NOW), "2026-03-01T12:00:00Z");
        assert_eq!(show(NOW + 7), "2026-03-01T12:00:00.007Z");
        // Steps of about 13 days reach all years until the end of time.
        for moment in (0..END_OF_TIME).step_by(86_400_000 * 13 + 12_345_678).chain([0, END_OF_TIME - 1]) {
            assert_eq!(parse(&show(moment), NOW).ok(), Some(moment), "{moment}");
        }
    }
}
