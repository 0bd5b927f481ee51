//! Markers: what a browser or a program noted at a time. A part of a recording may begin or end with one.
//!
//! Those of `performance.mark`, and of the files that samply reads marks from, are all called `UserTiming`, and have their own
//! name in their data. They are found by either.

use super::super::json::{Json, Kind, Text};
use super::super::tree::too_large;
use super::MILLISECONDS;
use super::tables::Places;
use crate::error::{Error, Result};
use crate::window::Events;
use crate::work::Pace;

/// The name of markers that have another one in their data.
const BY_USERS: &[u8] = b"UserTiming";

/// When the first marker of each name began, in nanoseconds from the recording's start.
pub(super) fn events_of(mut threads: Json<'_>, shared: &Places<'_>, start: i64) -> Result<Events> {
    let (mut events, mut shared_strings, mut number) = (Events::default(), None, 0u64);
    let mut array = threads.array()?;
    while threads.element(&mut array)? {
        let mut one = || {
            let own = Places::read(Some(threads))?;
            let [Some(markers)] = threads.members(["markers"])? else { return Ok(()) };
            if own.has_strings() {
                return read(markers, &own.strings()?, start, &mut events);
            }
            if shared_strings.is_none() {
                shared_strings = Some(shared.strings()?);
            }
            read(markers, shared_strings.as_deref().unwrap_or_default(), start, &mut events)
        };
        one().map_err(|e| e.in_record(|| format!("thread {number}")))?;
        number += 1;
    }
    Ok(events)
}

/// The columns of a thread's markers.
fn read(mut markers: Json<'_>, strings: &[Text<'_>], start: i64, events: &mut Events) -> Result<()> {
    let [Some(mut names), Some(mut times), mut data] = markers.members(["name", "startTime", "data"])? else {
        return Ok(());
    };
    let (mut of_names, mut of_times) = (names.array()?, times.array()?);
    let mut of_data = data.as_mut().map(Json::array).transpose()?;
    let mut pace = Pace::default();
    while names.element(&mut of_names)? {
        pace.step(1);
        let name = string(&mut names, strings)?;
        if !times.element(&mut of_times)? {
            return Err(Error::malformed("its markers have more names than times").at(times.offset()));
        }
        // The end of what lasts may be a marker of its own, without a start.
        let time = if times.null() { None } else { Some(times.number()?.scaled(MILLISECONDS)?.0) };
        let since_start = time.map(|time| time.checked_sub(start).ok_or_else(too_large)).transpose()?;
        let mut own = None;
        if let (Some(data), Some(array)) = (&mut data, &mut of_data)
            && data.element(array)?
        {
            own = own_name(data, name, strings)?;
        }
        for name in [Some(name), own].into_iter().flatten() {
            since_start.into_iter().for_each(|at| events.see(&name.bytes(), at));
        }
    }
    Ok(())
}

/// The name that a marker's data have, if its users gave it one.
fn own_name<'t>(data: &mut Json<'t>, name: Text<'t>, strings: &[Text<'t>]) -> Result<Option<Text<'t>>> {
    if data.kind()? != Kind::Object || *name.bytes() != *BY_USERS {
        return data.skip().map(|()| None);
    }
    let [own] = data.members(["name"])?;
    own.map(|mut own| if own.kind()? == Kind::String { own.string() } else { string(&mut own, strings) }).transpose()
}

/// A string by its number.
fn string<'t>(number: &mut Json<'_>, strings: &[Text<'t>]) -> Result<Text<'t>> {
    let begin = number.offset();
    let found = number.number()?.whole()?;
    let text = usize::try_from(found).ok().and_then(|found| strings.get(found)).copied();
    text.ok_or_else(|| Error::malformed(format!("there is no string {found}: there are {}", strings.len())).at(begin))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::profile::{LoadOptions, Profile};

    /// A sample of each millisecond from 10 on, of two threads; `own` have strings of their own.
    fn profile(markers: [&str; 2], own: bool) -> String {
        let strings = r#""stringArray":["f","Paint","UserTiming","de\u0070loy","late"]"#;
        let tables = r#""funcTable":{"length":1,"name":[0],"resource":[-1]},"frameTable":{"func":[0],"line":[null]},
            "stackTable":{"frame":[0],"prefix":[null]}"#;
        let thread = |markers: &str| {
            format!(
                r#"{{"name":"t","samples":{{"stack":[0,0,0,0,0],"time":[10,11,12,13,14]}},"markers":{{{markers}}}{}}}"#,
                if own { format!(",{strings},{tables}") } else { String::new() }
            )
        };
        let shared = if own { String::new() } else { format!(r#""shared":{{{strings},{tables}}},"#) };
        format!(
            r#"{{"meta":{{"preprocessedProfileVersion":57,"profilingStartTime":10,"profilingEndTime":15}},{shared}
            "threads":[{},{}]}}"#,
            thread(markers[0]),
            thread(markers[1])
        )
    }

    fn load(text: &str, window: &str) -> Result<i64, String> {
        let options = LoadOptions::default().with_time(window.parse().unwrap());
        let p = Profile::from_bytes("in", text.as_bytes(), &options);
        p.map(|p| p.total(0).unwrap()).map_err(|e| e.detail().to_owned())
    }

    #[test]
    fn a_part_may_end_with_a_marker() {
        // The first thread paints at 13, and ends something at 11; the other one at 12, where a user's mark is at 13.
        let first =
            r#""name":[1,1],"startTime":[null,13],"endTime":[11,13.5],"data":[null,{"type":"x","name":4}],"length":2"#;
        let other = r#""name":[1,2,2],"startTime":[12,13,14],"data":[null,{"name":3},{"name":"in place"}]"#;
        for own in [false, true] {
            let text = profile([first, other], own);
            for (window, expected) in
                [("..Paint", 4), ("Paint..", 6), ("Paint..UserTiming", 2), ("deploy..", 4), ("..in place", 8)]
            {
                assert_eq!(load(&text, window), Ok(expected), "{window} {own}");
            }
            let said = load(&text, "..late").unwrap_err();
            assert_eq!(said, "it has no event \"late\", but these: Paint, UserTiming, deploy, in place");
            let said = load(&profile(["", r#""name":[],"startTime":[]"#], own), "..Paint").unwrap_err();
            assert_eq!(said, "it has no events, and so none that is called \"Paint\"");
        }
        for (markers, words) in [
            (r#""name":[5],"startTime":[1]"#, "there is no string 5: there are 5"),
            (r#""name":[-1],"startTime":[1]"#, "there is no string -1"),
            (r#""name":[1,1],"startTime":[1]"#, "its markers have more names than times"),
            (r#""name":[2],"startTime":[1],"data":[{"name":9}]"#, "there is no string 9"),
            (r#""name":[1],"startTime":["1"]"#, "stands where a number should be"),
        ] {
            let said = load(&profile(["", markers], true), "..x").unwrap_err();
            assert!(said.contains(words), "{markers}: {said}");
            // Nobody asked for them.
            assert_eq!(load(&profile(["", markers], true), "0..9ms"), Ok(10));
        }
    }
}
