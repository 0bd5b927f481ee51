//! Markers: timed notes of a browser or a program. A time window may begin or end with one.
//!
//! Markers of `performance.mark`, and marks that samply reads from files, are all named `UserTiming`. Their own name is
//! in their data. A time window may use either name.

use super::MILLISECONDS;
use super::tables::TablePositions;
use crate::kit::json::{Json, JsonKind, JsonText};
use crate::kit::tree::too_large;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::shared::Events;
use pprofdiff_profile::{Error, Result};

/// The name of markers that have their own name in their data.
const BY_USERS: &[u8] = b"UserTiming";

/// Returns the time of the first marker of each name, in nanoseconds from the recording's start.
pub(super) fn first_events(mut threads: Json<'_>, shared: &TablePositions<'_>, start: i64) -> Result<Events> {
    let (mut events, mut shared_strings, mut number) = (Events::default(), None, 0u64);
    let mut array = threads.array()?;
    while threads.element(&mut array)? {
        let mut read_next = || {
            let tables = TablePositions::read(Some(threads))?;
            let [Some(markers)] = threads.members(["markers"])? else { return Ok(()) };
            if tables.has_strings() {
                return read(markers, &tables.strings()?, start, &mut events);
            }
            if shared_strings.is_none() {
                shared_strings = Some(shared.strings()?);
            }
            read(markers, shared_strings.as_deref().unwrap_or_default(), start, &mut events)
        };
        read_next().map_err(|e| e.in_record(|| format!("thread {number}")))?;
        number += 1;
    }
    Ok(events)
}

/// Reads the columns of a thread's markers.
fn read(mut markers: Json<'_>, strings: &[JsonText<'_>], start: i64, events: &mut Events) -> Result<()> {
    let [Some(mut names), Some(mut times), mut data] = markers.members(["name", "startTime", "data"])? else {
        return Ok(());
    };
    let (mut name_array, mut time_array) = (names.array()?, times.array()?);
    let mut data_array = data.as_mut().map(Json::array).transpose()?;
    let mut pace = Checkpointer::default();
    while names.element(&mut name_array)? {
        pace.step(1);
        let name = string(&mut names, strings)?;
        if !times.element(&mut time_array)? {
            return Err(Error::malformed("its markers have more names than times").at(times.offset()));
        }
        // A marker for the end of an interval may lack a start time.
        let time = if times.null() { None } else { Some(times.number()?.scaled(MILLISECONDS)?.0) };
        let since_start = time.map(|time| time.checked_sub(start).ok_or_else(too_large)).transpose()?;
        let mut user_name = None;
        if let (Some(data), Some(array)) = (&mut data, &mut data_array)
            && data.element(array)?
        {
            user_name = read_user_name(data, name, strings)?;
        }
        for name in [Some(name), user_name].into_iter().flatten() {
            since_start.into_iter().for_each(|nanos| events.see(&name.bytes(), nanos));
        }
    }
    Ok(())
}

/// Returns the name in a marker's data, if the marker is a [`BY_USERS`] marker and its data has a name: a string, or
/// the index of a string.
fn read_user_name<'t>(
    data: &mut Json<'t>,
    name: JsonText<'t>,
    strings: &[JsonText<'t>],
) -> Result<Option<JsonText<'t>>> {
    if data.kind()? != JsonKind::Object || *name.bytes() != *BY_USERS {
        return data.skip().map(|()| None);
    }
    let [raw] = data.members(["name"])?;
    raw.map(|mut raw| if raw.kind()? == JsonKind::String { raw.string() } else { string(&mut raw, strings) })
        .transpose()
}

/// Reads the index of a string, and returns the string.
fn string<'t>(number: &mut Json<'_>, strings: &[JsonText<'t>]) -> Result<JsonText<'t>> {
    let begin = number.offset();
    let index = number.number()?.whole()?;
    let text = usize::try_from(index).ok().and_then(|index| strings.get(index)).copied();
    text.ok_or_else(|| Error::malformed(format!("unknown string {index}: there are {}", strings.len())).at(begin))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::LoadOptions;

    /// Writes a profile of two threads with a sample at each millisecond from 10 on. With `has_own_tables`, threads
    /// have their own strings.
    fn profile(markers: [&str; 2], has_own_tables: bool) -> String {
        let strings = r#""stringArray":["f","Paint","UserTiming","de\u0070loy","late"]"#;
        let tables = r#""funcTable":{"length":1,"name":[0],"resource":[-1]},"frameTable":{"func":[0],"line":[null]},
            "stackTable":{"frame":[0],"prefix":[null]}"#;
        let thread = |markers: &str| {
            format!(
                r#"{{"name":"t","samples":{{"stack":[0,0,0,0,0],"time":[10,11,12,13,14]}},"markers":{{{markers}}}{}}}"#,
                if has_own_tables { format!(",{strings},{tables}") } else { String::new() }
            )
        };
        let shared = if has_own_tables { String::new() } else { format!(r#""shared":{{{strings},{tables}}},"#) };
        format!(
            r#"{{"meta":{{"preprocessedProfileVersion":57,"profilingStartTime":10,"profilingEndTime":15}},{shared}
            "threads":[{},{}]}}"#,
            thread(markers[0]),
            thread(markers[1])
        )
    }

    fn load(text: &str, window: &str) -> Result<i64, String> {
        let options = LoadOptions::default().with_time(window.parse().unwrap());
        let p = crate::from_bytes("in", text.as_bytes(), &options);
        p.map(|p| p.total(0).unwrap()).map_err(|e| e.detail().to_owned())
    }

    #[test]
    fn a_window_may_begin_and_end_with_a_marker() {
        // The first thread paints at 13, and an interval ends at 11. The second paints at 12, and has a user's mark at
        // 13.
        let first =
            r#""name":[1,1],"startTime":[null,13],"endTime":[11,13.5],"data":[null,{"type":"x","name":4}],"length":2"#;
        let other = r#""name":[1,2,2],"startTime":[12,13,14],"data":[null,{"name":3},{"name":"in place"}]"#;
        for has_own_tables in [false, true] {
            let text = profile([first, other], has_own_tables);
            for (window, expected) in
                [("..Paint", 4), ("Paint..", 6), ("Paint..UserTiming", 2), ("deploy..", 4), ("..in place", 8)]
            {
                assert_eq!(load(&text, window), Ok(expected), "{window} {has_own_tables}");
            }
            let message = load(&text, "..late").unwrap_err();
            assert_eq!(message, "it has no event \"late\", but these: Paint, UserTiming, deploy, in place");
            let message = load(&profile(["", r#""name":[],"startTime":[]"#], has_own_tables), "..Paint").unwrap_err();
            assert_eq!(message, "it has no events, and so none that is called \"Paint\"");
        }
        for (markers, words) in [
            (r#""name":[5],"startTime":[1]"#, "unknown string 5: there are 5"),
            (r#""name":[-1],"startTime":[1]"#, "unknown string -1"),
            (r#""name":[1,1],"startTime":[1]"#, "its markers have more names than times"),
            (r#""name":[2],"startTime":[1],"data":[{"name":9}]"#, "unknown string 9"),
            (r#""name":[1],"startTime":["1"]"#, "expected a number, not"),
        ] {
            let message = load(&profile(["", markers], true), "..x").unwrap_err();
            assert!(message.contains(words), "{markers}: {message}");
            // Without an event in the window, markers are not read.
            assert_eq!(load(&profile(["", markers], true), "0..9ms"), Ok(10));
        }
    }
}
