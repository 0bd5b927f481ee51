//! Profiles of stackprof, a sampling profiler for Ruby, as JSON: the output of `stackprof --json`, or
//! `JSON.generate(StackProf.results)`. `ext/stackprof/stackprof.c` of <https://github.com/tmm1/stackprof> writes the
//! members:
//!
//! ```text
//! {"version":1.2,"mode":"wall","interval":1000,"samples":9,"gc_samples":1,"missed_samples":0,"metadata":{},
//!  "frames":{"140":{"name":"Object#work","file":"a.rb","line":3,"total_samples":9,"samples":5,"edges":{..},"lines":{..}},..},
//!  "raw":[2,140,141,5,..],             the length of a stack, its frames from the root, and the number of samples
//!  "raw_lines":[2,3,7,5,..],           the line of each frame instead (since version 0.2.24)
//!  "raw_sample_timestamps":[..],"raw_timestamp_deltas":[1003,..]}       microseconds before each sample
//! ```
//!
//! A frame is a method with its file and its first line. The frames `(garbage collection)`, `(marking)` and `(sweeping)`
//! lack a file. The sample types are
//!
//! - `samples/count`, the numbers that stackprof's own reports show;
//! - in the mode `wall`, `wall/nanoseconds`: the time since the previous sample (`raw_timestamp_deltas`), like in
//!   speedscope, or the interval for each sample of a file without these times;
//! - in the mode `cpu`, `cpu/nanoseconds`: the interval for each sample, because time between samples is not CPU time;
//! - in the mode `object`, `alloc_objects/count`: the interval for each sample, because stackprof samples one object in
//!   each interval.
//!
//! A file that was recorded without `raw: true` lacks stacks. Each method then becomes a stack of its own with its own
//! samples, so flat values are exact and cumulative values are missing. A warning says so.
//!
//! Not read: `edges`, `lines`, `metadata`, and missed samples.

use crate::kit::json::{self, Json, JsonScope};
use crate::kit::tree::{StackBudget, too_large};
use crate::{InputFormat, LoadOptions};
use pprofdiff_profile::builder::{FunctionId, LocationId, ProfileBuilder};
use pprofdiff_profile::interner::Sequences;
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::shared::Timeline;
use pprofdiff_profile::{Error, Profile, Result};

pub(crate) const STACKPROF: InputFormat = InputFormat {
    name: "stackprof",
    about: "a profile of Ruby's stackprof as JSON",
    has_times: true,
    has_events: false,
    recognises: |head| {
        let keys = json::keys(head);
        ["mode", "interval", "gc_samples", "missed_samples"]
            .iter()
            .all(|key| keys.iter().any(|k| **k == *key.as_bytes()))
    },
    read,
};

/// A microsecond in nanoseconds, as a power of ten.
const MICROSECONDS: i64 = 3;

/// What a profile counts besides samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackprofMode {
    Wall,
    Cpu,
    Object,
    /// The program took samples itself.
    Custom,
}

impl StackprofMode {
    /// Returns the second sample type, and the period of the interval.
    fn sample_type(self) -> Option<(&'static str, &'static str)> {
        match self {
            StackprofMode::Wall => Some(("wall", "nanoseconds")),
            StackprofMode::Cpu => Some(("cpu", "nanoseconds")),
            StackprofMode::Object => Some(("alloc_objects", "count")),
            StackprofMode::Custom => None,
        }
    }
}

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let names = ["mode", "interval", "frames", "raw", "raw_lines", "raw_timestamp_deltas"];
    let mut json = Json::new(&text);
    let begin = json.offset();
    let [mode, interval, frames, raw, lines, deltas] = json.members(names)?;
    json.end()?;
    let mode = read_mode(mode).map_err(|e| e.at(begin))?;
    let mut file = StackprofFile {
        builder: ProfileBuilder::new(),
        mode,
        interval: read_interval(interval, mode).map_err(|e| e.at(begin))?,
        frames: HashMap::default(),
        stacks: Sequences::default(),
        sums: Vec::new(),
        timeline: options.time.as_ref().map(|window| Timeline::new(window, None)).transpose()?,
    };
    let Some(frames) = frames else { return Err(Error::malformed("`frames` is missing").at(begin)) };
    let place = frames.offset();
    let own = file.read_frames(frames)?;
    let note = match raw {
        Some(raw) => file.read_stacks(raw, lines, deltas).map(|()| None)?,
        None if options.time.is_some() => {
            return Err(Error::query("its samples lack times to select; record with raw: true"));
        }
        None => {
            file.read_sums(own).map_err(|e| e.at(place))?;
            let note = "it has sums of methods and no stacks, so cumulative values are equal to flat values; record with \
                        raw: true to get stacks";
            Some(note.to_owned())
        }
    };
    let builder = file.finish(text.len())?;
    drop(text);
    Ok(builder.build(name)?.with_notes(note.into_iter().collect()))
}

fn read_mode(mode: Option<Json<'_>>) -> Result<StackprofMode> {
    let Some(mut place) = mode else { return Err(Error::malformed("`mode` is missing")) };
    let begin = place.offset();
    match &*place.string()?.bytes() {
        b"wall" => Ok(StackprofMode::Wall),
        b"cpu" => Ok(StackprofMode::Cpu),
        b"object" => Ok(StackprofMode::Object),
        b"custom" => Ok(StackprofMode::Custom),
        _ => Err(Error::malformed("its `mode` is none of wall, cpu, object and custom").at(begin)),
    }
}

/// Returns the value of one sample in the second sample type: nanoseconds or objects.
fn read_interval(interval: Option<Json<'_>>, mode: StackprofMode) -> Result<i64> {
    if mode == StackprofMode::Custom {
        return Ok(0);
    }
    let Some(mut place) = interval else { return Err(Error::malformed("`interval` is missing")) };
    let begin = place.offset();
    let number = place.number()?;
    let value = if mode == StackprofMode::Object { number.whole()? } else { number.scaled(MICROSECONDS)?.0 };
    match value {
        1.. => Ok(value),
        _ => Err(Error::malformed("its `interval` must be greater than zero").at(begin)),
    }
}

struct StackprofFile {
    builder: ProfileBuilder,
    mode: StackprofMode,
    /// The value of one sample in the second sample type.
    interval: i64,
    /// The function and the first line of each frame, by its id.
    frames: HashMap<i64, (FunctionId, i64)>,
    /// The distinct stacks of locations, from the root.
    stacks: Sequences<u32, RandomState>,
    /// The number of samples of each stack, and its value in the second sample type.
    sums: Vec<[i64; 2]>,
    timeline: Option<Timeline>,
}

impl StackprofFile {
    /// Reads the table of frames. Returns the ids of the frames with samples of their own, and the number of these.
    fn read_frames(&mut self, mut json: Json<'_>) -> Result<Vec<(i64, i64)>> {
        let mut own = Vec::new();
        let mut object = json.object()?;
        while let Some((begin, key)) = json.key_with_place(&mut object)? {
            let key = key.bytes();
            let mut read_next = || -> Result<()> {
                let id = std::str::from_utf8(&key).ok().and_then(|key| key.parse().ok());
                let id: i64 = id.ok_or_else(|| Error::malformed("its id is not a whole number").at(begin))?;
                let (mut name, mut file, mut line, mut samples) = (None, None, 0, 0);
                let mut members = json.object()?;
                while let Some(key) = json.member(&mut members, &["name", "file", "line", "samples"])? {
                    match key {
                        _ if json.null() => {}
                        "name" => name = Some(json.string()?.bytes()),
                        "file" => file = Some(json.string()?.bytes()),
                        "line" => line = json.number()?.whole()?.max(0),
                        _ => samples = json.number()?.whole()?,
                    }
                }
                let name = name.unwrap_or(b"(unknown)"[..].into());
                let function = self.builder.function(&*name, file.unwrap_or_default(), line);
                if self.frames.insert(id, (function, line)).is_some() {
                    return Err(
                        Error::malformed(format!("the key \"{id}\" occurs twice in one object; remove one")).at(begin)
                    );
                }
                if samples != 0 {
                    own.push((id, samples));
                }
                Ok(())
            };
            read_next().map_err(|e| e.in_record(|| format!("frame {}", crate::table::quoted(&key))).at(begin))?;
        }
        Ok(own)
    }

    fn location(&mut self, function: FunctionId, line: i64) -> Result<LocationId> {
        let line = self.builder.line(function, line);
        self.builder.location(None, 0, &[line])
    }

    /// Adds the samples of methods without stacks.
    fn read_sums(&mut self, own: Vec<(i64, i64)>) -> Result<()> {
        for (id, count) in own {
            let Some(&(function, line)) = self.frames.get(&id) else { continue };
            let location = self.location(function, line)?;
            let value = count.checked_mul(self.interval).ok_or_else(too_large)?;
            self.add(&[location.0], [count, value])?;
        }
        Ok(())
    }

    /// Reads the stacks with their numbers of samples, and the times of the samples.
    fn read_stacks(&mut self, raw: Json<'_>, lines: Option<Json<'_>>, deltas: Option<Json<'_>>) -> Result<()> {
        let mut lines = lines.map(|lines| NumberList::begin(lines, "raw_lines")).transpose()?;
        let mut deltas = deltas.map(|deltas| NumberList::begin(deltas, "raw_timestamp_deltas")).transpose()?;
        if deltas.is_none() && self.timeline.is_some() {
            return Err(Error::query("its samples lack times to select (`raw_timestamp_deltas`)"));
        }
        let mut raw = NumberList::begin(raw, "raw")?;
        let (mut now, mut number, mut stack) = (0i64, 0u64, Vec::new());
        while raw.has_more()? {
            let begin = raw.json.offset();
            let mut read_next = || -> Result<()> {
                let (depth, place) = raw.read()?;
                let mut line = || lines.as_mut().map(NumberList::next).transpose();
                line()?;
                stack.clear();
                for _ in 0..depth {
                    let (id, place) = raw.next()?;
                    let unknown = || Error::malformed(format!("unknown frame {id}")).at(place);
                    let &(function, first_line) = self.frames.get(&id).ok_or_else(unknown)?;
                    let line = line()?.map_or(first_line, |(line, _)| line.max(0));
                    stack.push(self.location(function, line)?.0);
                }
                let (count, _) = raw.next()?;
                line()?;
                if depth < 0 || count < 0 {
                    return Err(Error::malformed("its depth or its number of samples is negative").at(place));
                }
                let Some(deltas) = &mut deltas else {
                    let value = count.checked_mul(self.interval).ok_or_else(too_large)?;
                    return self.add(&stack, [count, value]);
                };
                let mut values = [0i64; 2];
                for _ in 0..count {
                    let (delta, place) = deltas.next()?;
                    let end =
                        delta.checked_mul(1000).filter(|nanos| *nanos >= 0).and_then(|nanos| now.checked_add(nanos));
                    let end = end.ok_or_else(|| Error::malformed("this time is negative or too long").at(place))?;
                    let (one, value) = self.sample(now, end);
                    values = [values[0] + one, values[1].checked_add(value).ok_or_else(too_large)?];
                    now = end;
                }
                self.add(&stack, values)
            };
            read_next().map_err(|e| e.in_record(|| format!("stack {number}")).at(begin))?;
            number += 1;
        }
        for list in [lines, deltas].iter_mut().flatten() {
            if list.has_more()? {
                let detail = format!("`{}` has more elements than `raw` has samples or frames", list.name);
                return Err(Error::malformed(detail).at(list.json.offset()));
            }
        }
        self.builder.header().duration_nanos = now;
        Ok(())
    }

    /// Returns the values of a sample, which was taken at the end of this time. Both are 0 outside the time window.
    fn sample(&mut self, begin: i64, end: i64) -> (i64, i64) {
        let (is_read, part) = match &mut self.timeline {
            Some(timeline) => (timeline.contains(end), timeline.part(begin, end)),
            None => (true, end - begin),
        };
        let value = if self.mode == StackprofMode::Wall { part } else { self.interval * i64::from(is_read) };
        (i64::from(is_read), value)
    }

    /// Adds values to the sums of a stack.
    fn add(&mut self, stack: &[u32], values: [i64; 2]) -> Result<()> {
        let number = self.stacks.number(stack) as usize;
        if self.sums.len() <= number {
            self.sums.resize(number + 1, [0; 2]);
        }
        for (sum, value) in self.sums[number].iter_mut().zip(values) {
            *sum = sum.checked_add(value).ok_or_else(too_large)?;
        }
        Ok(())
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let StackprofFile { mut builder, mode, interval, stacks, sums, timeline, .. } = self;
        builder.sample_type("samples", "count");
        if let Some((kind, unit)) = mode.sample_type() {
            builder.sample_type(kind, unit);
            builder.period(kind, unit, interval);
            let default = builder.string(kind);
            builder.header().default_sample_type = default;
        }
        let n_types = 1 + usize::from(mode.sample_type().is_some());
        if let Some(timeline) = timeline {
            timeline.finish(builder.header())?;
        }
        let (mut leaf_first, mut budget) = (Vec::new(), StackBudget::for_input(size));
        for (number, values) in (0u32..).zip(&sums).filter(|(_, values)| **values != [0; 2]) {
            leaf_first.clear();
            leaf_first.extend(stacks.get(number).iter().rev().map(|&location| LocationId(location)));
            budget.take(leaf_first.len(), n_types)?;
            builder.sample(&leaf_first, &values[..n_types], &[])?;
        }
        Ok(builder)
    }
}

/// A list of whole numbers, which is read in step with others.
struct NumberList<'t> {
    name: &'static str,
    json: Json<'t>,
    array: JsonScope,
}

impl<'t> NumberList<'t> {
    fn begin(mut json: Json<'t>, name: &'static str) -> Result<NumberList<'t>> {
        let array = json.array()?;
        Ok(NumberList { name, json, array })
    }

    /// Moves to the next number and returns true, or returns false at the end of the list.
    fn has_more(&mut self) -> Result<bool> {
        self.json.element(&mut self.array)
    }

    /// Reads the number at this position, and returns it with its offset.
    fn read(&mut self) -> Result<(i64, usize)> {
        let number = self.json.number()?;
        Ok((number.whole()?, self.json.offset() - number.text().len()))
    }

    /// Reads the next number, and returns it with its offset.
    fn next(&mut self) -> Result<(i64, usize)> {
        match self.has_more()? {
            true => self.read(),
            false => {
                let detail = format!("`{}` ends too early; the file was cut off", self.name);
                Err(Error::malformed(detail).at(self.json.offset()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;
    use pprofdiff_profile::ErrorKind;

    const FRAMES: &str = r#""frames":{
        "140":{"name":"Object#main","file":"a.rb","line":3,"total_samples":9,"samples":0,"edges":{"-5":4},"lines":{"4":[9,0]}},
        "-5":{"name":"Array#sort","file":"<cfunc>","line":null,"total_samples":4,"samples":4},
        "1":{"name":"(garbage collection)","file":"","total_samples":1,"samples":1}}"#;

    fn profile(mode: &str, rest: &str) -> String {
        format!(
            r#"{{"version":1.2,"mode":"{mode}","interval":1000,"samples":4,"gc_samples":1,"missed_samples":0,"metadata":{{}},{FRAMES}{rest}}}"#
        )
    }

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    const RAW: &str = r#","raw":[2,140,-5,3,1,1,1]"#;
    const DELTAS: &str = r#","raw_sample_timestamps":[5,6,7,8],"raw_timestamp_deltas":[900,1100,2000,50]"#;

    #[test]
    fn samples_have_the_values_of_their_mode() {
        let [sort, gc] = ["Object#main a.rb:3|Array#sort <cfunc>:0", "(garbage collection)"];
        for (mode, rest, kind, expected) in [
            ("wall", DELTAS, "wall", [" 1 50000", " 3 4000000"]),
            ("wall", "", "wall", [" 1 1000000", " 3 3000000"]),
            ("cpu", DELTAS, "cpu", [" 1 1000000", " 3 3000000"]),
            ("object", DELTAS, "alloc_objects", [" 1 1000", " 3 3000"]),
            ("custom", "", "", [" 1", " 3"]),
        ] {
            let p = load(&profile(mode, &format!("{RAW}{rest}"))).unwrap();
            assert_eq!(rows(&p), [format!("{gc}:{}", expected[0]), format!("{sort}:{}", expected[1])], "{mode}");
            assert_eq!(p.sample_types().get(1).map_or("", |t| t.0.as_str()), kind);
            assert_eq!(p.duration_nanos(), if rest.is_empty() { 0 } else { 4_050_000 });
            assert_eq!(p.default_sample_type(), Some(usize::from(!kind.is_empty())));
            assert!(p.warnings().is_empty());
        }
    }

    #[test]
    fn frames_have_the_lines_of_their_calls() {
        let p = load(&profile("wall", &format!(r#"{RAW},"raw_lines":[2,7,0,3,1,0,1]"#))).unwrap();
        assert_eq!(rows(&p)[1], "Object#main a.rb:7|Array#sort <cfunc>:0: 3 3000000");
        let error = load(&profile("wall", &format!(r#"{RAW},"raw_lines":[2,7,0,3,1,0]"#))).unwrap_err();
        assert!(error.to_string().contains("stack 1: `raw_lines` ends too early"), "{error}");
    }

    #[test]
    fn a_time_window_selects_samples() {
        let text = profile("wall", &format!("{RAW}{DELTAS}"));
        let part = |text: &str, window: &str| {
            let options = LoadOptions::default().with_time(window.parse().unwrap());
            crate::from_bytes("in", text.as_bytes(), &options).map(|p| (rows(&p), p.duration_nanos()))
        };
        let sort = "Object#main a.rb:3|Array#sort <cfunc>:0";
        assert_eq!(part(&text, "..1ms").unwrap(), (vec![format!("{sort}: 1 1000000")], 1_000_000));
        assert_eq!(part(&text, "1ms..4ms").unwrap(), (vec![format!("{sort}: 1 3000000")], 3_000_000));
        for (text, words) in [
            (profile("wall", RAW), "its samples lack times to select (`raw_timestamp_deltas`)"),
            (profile("wall", ""), "its samples lack times to select; record with raw: true"),
        ] {
            let error = part(&text, "..1ms").unwrap_err();
            assert!(error.kind() == ErrorKind::Query && error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn methods_without_stacks_have_their_own_samples() {
        let p = load(&profile("cpu", "")).unwrap();
        assert_eq!(rows(&p), ["(garbage collection): 1 1000000", "Array#sort <cfunc>:0: 4 4000000"]);
        assert!(p.warnings()[0].contains("record with raw: true to get stacks"), "{:?}", p.warnings());
    }

    #[test]
    fn errors_name_the_stack() {
        let with = |rest: &str| profile("wall", rest);
        for (text, words) in [
            (with(r#","raw":[2,140]"#), "stack 0: `raw` ends too early; the file was cut off"),
            (with(r#","raw":[1,140,1,1,7,1]"#), "stack 1: unknown frame 7"),
            (with(r#","raw":[-1,5]"#), "stack 0: its depth or its number of samples is negative"),
            (with(r#","raw":[1,140,2],"raw_timestamp_deltas":[5]"#), "`raw_timestamp_deltas` ends too early"),
            (with(r#","raw":[1,140,1],"raw_timestamp_deltas":[5,6]"#), "`raw_timestamp_deltas` has more elements"),
            (with(r#","raw":[1,140,1],"raw_timestamp_deltas":[-5]"#), "this time is negative or too long"),
            (with(r#","raw":[1,140,9223372036854775807]"#), "more than an int64 holds"),
            (with(r#","raw":[1,140.5,1]"#), "140.5 has a fraction"),
            (with("").replace("1000", "0"), "its `interval` must be greater than zero"),
            (with("").replace("wall", "tea"), "its `mode` is none of wall, cpu, object and custom"),
            (with("").replace("\"-5\":{", "\"x\":{"), "frame \"x\": its id is not a whole number"),
        ] {
            let error = load(&text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.offset().is_some() || words.contains("int64"), "{text}: {error}");
        }
        let options = LoadOptions::default().with_input_format("stackprof").unwrap();
        let whole = with(&format!("{RAW}{DELTAS}"));
        for end in 1..whole.len() {
            let error = crate::from_bytes("in", &whole.as_bytes()[..end], &options).unwrap_err();
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
    }
}
