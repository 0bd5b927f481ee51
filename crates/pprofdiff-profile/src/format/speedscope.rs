//! What speedscope.app opens: a table of frames, and profiles that are sampled (stacks from the root, and a weight
//! each) or evented (frames that open and close, and when). Written by py-spy, rbspy, pyinstrument, dotnet-trace and
//! many others, by speedscope itself, and by our own writer. The format:
//! <https://www.speedscope.app/file-format-schema.json>.
//!
//! A frame is a function by its name and file, and a line. Of evented profiles, the time between two events is what the
//! stack costs that is open meanwhile; frames that are still open at the end are until `endValue`. Profiles of one unit
//! add up, with a label `profile` if there are several, which is the profile's name (often a thread); profiles of
//! another unit are another sample type. The unit tells little of what is counted: times become `time/nanoseconds`,
//! bytes `space/bytes`, and what has no unit is of `--input-type`, which also renames the others if its unit is theirs.
//!
//! Our writer says of its file what it counts, and whether the two profiles are the sides of a diff, in a member
//! `pprofdiff` that speedscope passes over: `{"sample_type": "cpu", "unit": "nanoseconds", "two_sided": true}`.
//!
//! Lost: the order of samples, the name of the file, and weights below a nanosecond.

use super::json::{self, Json, Kind};
use super::tree::{StackBudget, Tree, too_large};
use super::{InputFormat, quoted};
use crate::builder::{LocationId, ProfileBuilder};
use crate::error::{Error, Result};
use crate::profile::{BASE_LABEL, Label, LabelValue, LoadOptions, Profile, StringId};

pub(super) const SPEEDSCOPE: InputFormat = InputFormat {
    name: "speedscope",
    about: "a file of speedscope.app: .speedscope.json",
    recognises: |head| {
        let keys = json::keys(head);
        let has = |key: &str| keys.iter().any(|k| **k == *key.as_bytes());
        // Some writers put backslashes before slashes.
        has("$schema") && json::contains(head, "www.speedscope.app")
            || has("shared") && json::contains(head, "\"frames\"")
    },
    read,
};

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let mut file = File::new();
    file.read(&text, options)?;
    let size = text.len();
    drop(text);
    file.finish(size)?.build(name)
}

/// What a value is added up under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    column: u32,
    profile: StringId,
    is_base: bool,
}

struct File {
    builder: ProfileBuilder,
    frames: Vec<LocationId>,
    columns: Vec<Column>,
    tree: Tree<Root>,
    n_profiles: usize,
    two_sided: bool,
}

/// A sample type, and the first profile that is of it.
struct Column {
    kind: String,
    unit: String,
    first: String,
    /// The unit that this profile says.
    said: &'static str,
}

/// What our writer says of its file.
struct Written {
    kind: String,
    unit: String,
    two_sided: bool,
}

/// A unit of speedscope: what it becomes, and as which power of ten of that. Times may be rounded.
struct Unit {
    /// As the file says it.
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    power: i64,
}

impl Unit {
    fn from_name(name: &[u8]) -> Option<Unit> {
        let time = |name, power| Unit { name, kind: "time", unit: "nanoseconds", power };
        Some(match name {
            b"seconds" => time("seconds", 9),
            b"milliseconds" => time("milliseconds", 6),
            b"microseconds" => time("microseconds", 3),
            b"nanoseconds" => time("nanoseconds", 0),
            b"bytes" => Unit { name: "bytes", kind: "space", unit: "bytes", power: 0 },
            b"none" => Unit { name: "none", kind: "", unit: "", power: 0 },
            _ => return None,
        })
    }
}

/// Reads a member's string, or nothing of `null`.
fn optional_text(json: &mut Json<'_>) -> Result<Vec<u8>> {
    if json.null() { Ok(Vec::new()) } else { Ok(json.string()?.bytes().into_owned()) }
}

fn optional_number(json: &mut Json<'_>) -> Result<i64> {
    if json.null() { Ok(0) } else { Ok(json.number()?.scaled(0)?.0.max(0)) }
}

impl File {
    fn new() -> File {
        let (builder, tree) = (ProfileBuilder::new(), Tree::new());
        File { builder, frames: Vec::new(), columns: Vec::new(), tree, n_profiles: 0, two_sided: false }
    }

    fn read(&mut self, text: &[u8], options: &LoadOptions) -> Result<()> {
        let mut json = Json::new(text);
        let (mut shared, mut profiles, mut written) = (None, None, None);
        let mut object = json.object()?;
        while let Some(key) = json.key(&mut object)? {
            match &*key.bytes() {
                b"shared" => shared = Some(json),
                b"profiles" => profiles = Some(json),
                b"pprofdiff" => written = Some(json),
                _ => {}
            }
            json.skip()?;
        }
        json.end()?;
        let Some(mut shared) = shared else { return Err(Error::malformed("it has no `shared`, the table of frames")) };
        let Some(mut profiles) = profiles else { return Err(Error::malformed("it has no `profiles`")) };
        let mut object = shared.object()?;
        while let Some(key) = shared.key(&mut object)? {
            match &*key.bytes() {
                b"frames" => self.read_frames(&mut shared)?,
                _ => shared.skip()?,
            }
        }
        let written = written.map(written_by_us).transpose()?;
        // A name is a label only if there are others.
        let mut counted = profiles;
        let mut array = counted.array()?;
        while counted.element(&mut array)? {
            counted.skip()?;
            self.n_profiles += 1;
        }
        if let Some(written) = &written {
            self.two_sided = written.two_sided;
            if written.two_sided && self.n_profiles != 2 {
                let detail = format!("it says that it has two sides, but there are {} profiles", self.n_profiles);
                return Err(Error::malformed(detail).at(profiles.offset()));
            }
        }
        let mut array = profiles.array()?;
        let mut number = 0;
        while profiles.element(&mut array)? {
            self.read_profile(&mut profiles, number, written.as_ref(), options)
                .map_err(|e| e.in_record(|| format!("profile {number}")))?;
            number += 1;
        }
        Ok(())
    }

    fn read_frames(&mut self, json: &mut Json<'_>) -> Result<()> {
        let mut array = json.array()?;
        while json.element(&mut array)? {
            let number = self.frames.len();
            let location = self.read_frame(json).map_err(|e| e.in_record(|| format!("frame {number}")))?;
            self.frames.push(location);
        }
        Ok(())
    }

    fn read_frame(&mut self, json: &mut Json<'_>) -> Result<LocationId> {
        let begin = json.offset();
        let (mut name, mut file, mut line, mut column) = (None, Vec::new(), 0, 0);
        let mut object = json.object()?;
        while let Some(key) = json.key(&mut object)? {
            match &*key.bytes() {
                b"name" => name = Some(json.string()?.bytes()),
                b"file" => file = optional_text(json)?,
                b"line" => line = optional_number(json)?,
                b"col" => column = optional_number(json)?,
                _ => json.skip()?,
            }
        }
        let name = name.ok_or_else(|| Error::malformed("it has no name").at(begin))?;
        let function = self.builder.function(name, file, 0);
        let line = self.builder.line(function, line).with_column(column);
        self.builder.location(None, 0, &[line])
    }

    /// Reads one profile: its members may come in any order, so where they are comes first.
    fn read_profile(
        &mut self,
        json: &mut Json<'_>,
        number: usize,
        written: Option<&Written>,
        options: &LoadOptions,
    ) -> Result<()> {
        let begin = json.offset();
        let (mut kind, mut name, mut unit, mut end) = (None, Vec::new(), None, None);
        let (mut samples, mut weights, mut events) = (None, None, None);
        let mut object = json.object()?;
        while let Some(key) = json.key(&mut object)? {
            match &*key.bytes() {
                b"type" => kind = Some(json.string()?.bytes()),
                b"name" => name = optional_text(json)?,
                b"unit" => {
                    let place = json.offset();
                    let read = json.string()?.bytes();
                    let detail = || {
                        let shown = String::from_utf8_lossy(&read[..read.len().min(40)]);
                        Error::malformed(format!("{shown:?} is no unit of speedscope")).at(place)
                    };
                    unit = Some(Unit::from_name(&read).ok_or_else(detail)?);
                }
                key => {
                    let kind = json.kind()?;
                    let place = *json;
                    match key {
                        b"endValue" => end = Some(place).filter(|_| kind == Kind::Number),
                        b"samples" => samples = Some(place),
                        b"weights" => weights = Some(place),
                        b"events" => events = Some(place),
                        _ => {}
                    }
                    json.skip()?;
                }
            }
        }
        let missing = |what: &str| Error::malformed(format!("it has no {what}")).at(begin);
        let unit = unit.ok_or_else(|| missing("unit"))?;
        // Ours are whole numbers of the unit that is said.
        let unit = if written.is_some() { Unit { kind: "", unit: "", power: 0, ..unit } } else { unit };
        let column = self.column(&unit, written, options, &name, number).map_err(|e| e.at(begin))?;
        let profile = if self.n_profiles > 1 && !self.two_sided { self.builder.string(&name) } else { StringId::EMPTY };
        let root = Root { column, profile, is_base: self.two_sided && number == 0 };
        match kind.as_deref() {
            Some(b"sampled") => {
                let samples = samples.ok_or_else(|| missing("samples"))?;
                let weights = weights.ok_or_else(|| missing("weights"))?;
                self.read_samples(samples, weights, root, &unit)
            }
            Some(b"evented") => self.read_events(events.ok_or_else(|| missing("events"))?, end, root, &unit),
            Some(_) => Err(missing("known type: it must be \"sampled\" or \"evented\"")),
            None => Err(missing("type")),
        }
    }

    /// The sample type of a unit: a new one, if no profile before had it. Values without a unit are not added to
    /// others, even if the input type makes both the same.
    fn column(
        &mut self,
        unit: &Unit,
        written: Option<&Written>,
        options: &LoadOptions,
        name: &[u8],
        number: usize,
    ) -> Result<u32> {
        let (kind, named) = &options.input_type;
        let (kind, unit_of_type) = match written {
            Some(written) => (&*written.kind, &*written.unit),
            None if unit.kind.is_empty() || named == unit.unit => (&**kind, &**named),
            None => (unit.kind, unit.unit),
        };
        if let Some(at) = self.columns.iter().position(|c| c.kind == kind && c.unit == unit_of_type) {
            let Column { first, said, .. } = &self.columns[at];
            if written.is_none() && (*said == "none") != (unit.name == "none") {
                return Err(Error::malformed(format!(
                    "the unit of {} is {} and that of {first} {said}, so the input type {kind}/{unit_of_type} can't be \
                     that of both; give one of another unit, such as samples/count",
                    quoted(name),
                    unit.name
                )));
            }
            return Ok(at as u32);
        }
        let (kind, unit_of_type) = (kind.to_owned(), unit_of_type.to_owned());
        let first = format!("{} (profile {number})", quoted(name));
        self.columns.push(Column { kind, unit: unit_of_type, first, said: unit.name });
        Ok(self.columns.len() as u32 - 1)
    }

    /// Reads the number of a frame.
    fn frame(&self, json: &mut Json<'_>) -> Result<LocationId> {
        let place = json.offset();
        let number = json.number()?.whole()?;
        let frame = usize::try_from(number).ok().and_then(|number| self.frames.get(number));
        frame.copied().ok_or_else(|| {
            Error::malformed(format!("there is no frame {number}: there are {}", self.frames.len())).at(place)
        })
    }

    fn read_samples(&mut self, mut samples: Json<'_>, mut weights: Json<'_>, root: Root, unit: &Unit) -> Result<()> {
        let root = self.tree.root(root);
        let (mut stacks, mut values) = (samples.array()?, weights.array()?);
        let mut number = 0u64;
        while samples.element(&mut stacks)? {
            let mut one = || -> Result<()> {
                if !weights.element(&mut values)? {
                    return Err(Error::malformed("`weights` has no weight for it").at(weights.offset()));
                }
                let weight = value(&mut weights, unit)?;
                let mut node = root;
                let mut stack = samples.array()?;
                while samples.element(&mut stack)? {
                    let frame = self.frame(&mut samples)?;
                    node = self.tree.child(node, frame);
                }
                self.tree.add(node, weight)
            };
            one().map_err(|e| prefixed(e, "sample", number))?;
            number += 1;
        }
        if weights.element(&mut values)? {
            return Err(Error::malformed("`weights` has more weights than there are samples").at(weights.offset()));
        }
        Ok(())
    }

    fn read_events(&mut self, mut json: Json<'_>, end: Option<Json<'_>>, root: Root, unit: &Unit) -> Result<()> {
        let root = self.tree.root(root);
        let (mut node, mut before) = (root, None);
        let mut array = json.array()?;
        let mut number = 0u64;
        while json.element(&mut array)? {
            let mut one = || -> Result<()> {
                let begin = json.offset();
                let (mut kind, mut at, mut frame) = (None, None, None);
                let mut object = json.object()?;
                while let Some(key) = json.key(&mut object)? {
                    match &*key.bytes() {
                        b"type" => kind = Some(json.string()?.bytes()),
                        b"at" => at = Some(time(&mut json, unit)?),
                        b"frame" => frame = Some(self.frame(&mut json)?),
                        _ => json.skip()?,
                    }
                }
                let wrong = |what: &str| Error::malformed(what).at(begin);
                let at = at.ok_or_else(|| wrong("it has no time `at`"))?;
                let frame = frame.ok_or_else(|| wrong("it has no frame"))?;
                let cost = at.checked_sub(before.replace(at).unwrap_or(at)).ok_or_else(too_large)?;
                if cost < 0 {
                    return Err(wrong("it is before the event that precedes it"));
                }
                if node != root {
                    self.tree.add(node, cost)?;
                }
                match kind.as_deref() {
                    Some(b"O") => node = self.tree.child(node, frame),
                    Some(b"C") if self.tree.location(node) == Some(frame) => node = self.tree.parent(node),
                    Some(b"C") => return Err(wrong("it closes a frame that is not the innermost one")),
                    _ => return Err(wrong("its type is neither \"O\" nor \"C\"")),
                }
                Ok(())
            };
            one().map_err(|e| prefixed(e, "event", number))?;
            number += 1;
        }
        if let (true, Some(mut end), Some(before)) = (node != root, end, before) {
            let cost = time(&mut end, unit)?.checked_sub(before).ok_or_else(too_large)?;
            self.tree.add(node, cost.max(0))?;
        }
        Ok(())
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let File { mut builder, columns, tree, n_profiles, two_sided, .. } = self;
        for column in &columns {
            builder.sample_type(&column.kind, &column.unit);
        }
        let base = Label { key: builder.string(BASE_LABEL.0), value: LabelValue::Text(builder.string(BASE_LABEL.1)) };
        let key = builder.string("profile");
        if two_sided {
            // A profile is a diff by its labels, so there must be one even if the base has no values.
            builder.sample(&[], &vec![0; columns.len()], &[base])?;
        }
        tree.write(&mut builder, columns.len(), &mut StackBudget::for_input(size), |root, labels| {
            if root.is_base {
                labels.push(base);
            } else if n_profiles > 1 && !two_sided {
                labels.push(Label { key, value: LabelValue::Text(root.profile) });
            }
            (root.column as usize, if root.is_base { -1 } else { 1 })
        })?;
        Ok(builder)
    }
}

/// Reads a time, which may be rounded.
fn time(json: &mut Json<'_>, unit: &Unit) -> Result<i64> {
    Ok(json.number()?.scaled(unit.power)?.0)
}

/// Reads a weight. Times may be rounded to nanoseconds; of what else is counted, a fraction would be lost.
fn value(json: &mut Json<'_>, unit: &Unit) -> Result<i64> {
    if unit.unit == "nanoseconds" { time(json, unit) } else { json.number()?.whole() }
}

/// The profile is the record of an error; this says which part of it.
fn prefixed(error: Error, what: &str, number: u64) -> Error {
    error.prefixed(&format!("{what} {number}: "))
}

/// Reads what our writer says of its file.
fn written_by_us(mut json: Json<'_>) -> Result<Written> {
    let mut written = Written { kind: String::new(), unit: String::new(), two_sided: false };
    let text = |json: &mut Json<'_>| Ok(String::from_utf8_lossy(&json.string()?.bytes()).into_owned());
    let mut object = json.object()?;
    while let Some(key) = json.key(&mut object)? {
        match &*key.bytes() {
            b"sample_type" => written.kind = text(&mut json)?,
            b"unit" => written.unit = text(&mut json)?,
            b"two_sided" => written.two_sided = json.flag()?,
            _ => json.skip()?,
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::tree::rows;
    use super::*;

    fn load(text: &str) -> Result<Profile> {
        Profile::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    /// A file of frames a, b and c, with profiles.
    fn file(profiles: &str) -> String {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{profiles}],
            "shared":{{"frames":[{{"name":"a"}},{{"name":"b","file":"b.py","line":12,"col":null}},{{"name":"c","line":null}}]}}}}"#
        )
    }

    fn sampled(unit: &str, samples: &str, weights: &str) -> String {
        format!(r#"{{"type":"sampled","name":"{unit}!","unit":"{unit}","samples":{samples},"weights":{weights}}}"#)
    }

    fn evented(events: &[(&str, &str, u32)]) -> String {
        let event = |(kind, at, frame): &(&str, &str, u32)| format!(r#"{{"type":"{kind}","at":{at},"frame":{frame}}}"#);
        let events: Vec<String> = events.iter().map(event).collect();
        format!(r#"{{"unit":"milliseconds","events":[{}],"type":"evented","endValue":9}}"#, events.join(","))
    }

    #[test]
    fn samples_are_stacks_from_the_root_with_a_weight_each() {
        for (unit, weights, kind, expected) in [
            ("none", "[1,2,4]", "samples/count", [": 2", "a|b b.py:12: 5"]),
            ("bytes", "[1,-2,4]", "space/bytes", [": -2", "a|b b.py:12: 5"]),
            ("nanoseconds", "[1,2.4,4]", "time/nanoseconds", [": 2", "a|b b.py:12: 5"]),
            ("microseconds", "[1,2,4]", "time/nanoseconds", [": 2000", "a|b b.py:12: 5000"]),
            ("milliseconds", "[1,0.002,4]", "time/nanoseconds", [": 2000", "a|b b.py:12: 5000000"]),
            ("seconds", "[0.01,2,0.03]", "time/nanoseconds", [": 2000000000", "a|b b.py:12: 40000000"]),
        ] {
            let p = load(&file(&sampled(unit, "[[0,1],[],[0,1]]", weights))).unwrap();
            assert_eq!(rows(&p), expected, "{unit}");
            let (k, u) = kind.split_once('/').unwrap();
            assert_eq!(p.sample_types(), [(k.to_owned(), u.to_owned())]);
        }
    }

    #[test]
    fn events_cost_the_time_between_them() {
        let all =
            [("O", "0", 0), ("O", "1.5", 1), ("C", "2", 1), ("O", "2", 1), ("C", "4", 1), ("C", "4", 0), ("O", "5", 2)];
        let p = load(&file(&evented(&all))).unwrap();
        assert_eq!(rows(&p), ["a: 1500000", "a|b b.py:12: 2500000", "c: 4000000"]);
        // Closed, nothing is open at the end.
        let p = load(&file(&evented(&[("O", "1600000000000.25", 2), ("C", "1600000000000.5", 2)]))).unwrap();
        assert_eq!(rows(&p), ["c: 250000"]);
    }

    #[test]
    fn profiles_of_one_unit_add_up_and_others_are_beside_them() {
        let profiles = [
            sampled("none", "[[0]]", "[3]"),
            sampled("seconds", "[[0]]", "[1]"),
            evented(&[("O", "0", 0), ("C", "1", 0)]),
        ];
        let p = load(&file(&profiles.join(","))).unwrap();
        assert_eq!(rows(&p), ["a profile=none!: 3 0", "a profile=seconds!: 0 1000000000", "a: 0 1000000"]);
        let typed = |text: &str| {
            let options = LoadOptions::default().with_input_type(text).unwrap();
            Profile::from_bytes("in", file(&profiles.join(",")).as_bytes(), &options).unwrap().sample_types()
        };
        let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(kind, unit)| (kind.to_owned(), unit.to_owned()));
        assert_eq!(typed("gas/units"), pairs([("gas", "units"), ("time", "nanoseconds")]));
        assert_eq!(typed("samples/count"), pairs([("samples", "count"), ("time", "nanoseconds")]));
    }

    #[test]
    fn what_our_writer_says_is_believed() {
        let ours = |about: &str, profiles: &str| file(profiles).replacen('{', &format!("{{\"pprofdiff\":{about},"), 1);
        let about = r#"{"sample_type":"delay","unit":"seconds","two_sided":false,"more":[1]}"#;
        let p = load(&ours(about, &sampled("seconds", "[[0]]", "[3]"))).unwrap();
        assert_eq!(
            (rows(&p), p.sample_types()),
            (vec!["a: 3".to_owned()], vec![("delay".to_owned(), "seconds".to_owned())])
        );
        let about = r#"{"sample_type":"cpu","unit":"nanoseconds","two_sided":true}"#;
        let sides = [sampled("nanoseconds", "[[0],[1]]", "[3,4]"), sampled("nanoseconds", "[[0]]", "[5]")];
        let p = load(&ours(about, &sides.join(","))).unwrap();
        assert!(p.is_diff());
        assert_eq!(
            rows(&p),
            [" pprof::base=true: 0", "a pprof::base=true: -3", "a: 5", "b b.py:12 pprof::base=true: -4"]
        );
        let empty = [sampled("nanoseconds", "[]", "[]"), sides[1].clone()];
        assert!(load(&ours(about, &empty.join(","))).unwrap().is_diff());
        let error = load(&ours(about, &sides[0])).unwrap_err();
        assert!(error.to_string().contains("it has two sides, but there are 1 profiles"), "{error}");
    }

    #[test]
    fn it_is_recognised_by_its_schema_or_its_frames() {
        for (text, is) in [
            (r#"{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json","sha"#, true),
            (r#"{"$schema":"https:\/\/www.speedscope.app\/file-format-schema.json"}"#, true),
            (r#"{"shared":{"frames":[{"name":"a"}"#, true),
            (r#"{"$schema":"https://json-schema.org/draft-07/schema"}"#, false),
            (r#"{"a":{"shared":{"frames":[]}}}"#, false),
            (r#"[{"shared":{"frames":[]}}]"#, false),
        ] {
            assert_eq!((SPEEDSCOPE.recognises)(text.as_bytes()), is, "{text}");
        }
    }

    #[test]
    fn errors_name_the_profile_and_what_in_it() {
        let one = |kind: &str, samples: &str, weights: &str| file(&sampled(kind, samples, weights));
        for (text, words) in [
            (one("none", "[[3]]", "[1]"), "profile 0: sample 0: there is no frame 3: there are 3"),
            (one("none", "[[-1]]", "[1]"), "there is no frame -1"),
            (one("none", "[[0],[0]]", "[1]"), "profile 0: sample 1: `weights` has no weight for it"),
            (one("none", "[[0]]", "[1,2]"), "`weights` has more weights than there are samples"),
            (one("none", "[[0]]", "[0.5]"), "0.5 has a fraction"),
            (one("bytes", "[[0]]", "[0.5]"), "0.5 has a fraction"),
            (one("seconds", "[[0]]", "[1e10]"), "1e10 is more than an int64 holds"),
            (one("none", "[[0],[0]]", "[9223372036854775807,1]"), "add up to more than an int64 holds"),
            (one("hours", "[[0]]", "[1]"), "\"hours\" is no unit of speedscope"),
            (one("none", "[0]", "[1]"), "sample 0: '0' stands where an array should be"),
            (file(&evented(&[("O", "0", 0), ("C", "1", 1)])), "event 1: it closes a frame that is not the innermost"),
            (file(&evented(&[("C", "0", 0)])), "event 0: it closes a frame"),
            (file(&evented(&[("O", "5", 0), ("C", "4", 0)])), "event 1: it is before the event that precedes it"),
            (file(&evented(&[("X", "5", 0)])), "event 0: its type is neither \"O\" nor \"C\""),
            (file(r#"{"type":"evented","unit":"none","events":[{"type":"O","at":1}]}"#), "event 0: it has no frame"),
            (file(r#"{"type":"evented","unit":"none","events":[{"type":"O","frame":1}]}"#), "it has no time `at`"),
            (file(r#"{"type":"sampled","unit":"none","samples":[]}"#), "profile 0: it has no weights"),
            (file(r#"{"type":"other","unit":"none"}"#), "it has no known type"),
            (file(r#"{"type":"sampled"}"#), "it has no unit"),
            ("{\"shared\":{\"frames\":[]}}".to_owned(), "it has no `profiles`"),
            ("{\"shared\":{\"frames\":[{}]},\"profiles\":[]}".to_owned(), "frame 0: it has no name"),
            ("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}".to_owned(), "it has no `shared`"),
        ] {
            let error = load(&text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
        let whole = file(&[sampled("none", "[[0]]", "[3]"), evented(&[("O", "0", 0), ("C", "1", 0)])].join(","));
        let options = LoadOptions::default().with_input_format("speedscope").unwrap();
        for end in 1..whole.len() {
            let error = Profile::from_bytes("in", &whole.as_bytes()[..end], &options).unwrap_err();
            assert!(error.offset().is_some_and(|at| at <= end as u64), "{end}: {error}");
        }
    }
}
