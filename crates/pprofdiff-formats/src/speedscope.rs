//! Files of speedscope.app: a table of frames, and profiles. A profile is sampled (stacks from the root, with a weight
//! each) or evented (frames that open and close at given times). py-spy, rbspy, pyinstrument, dotnet-trace, many other
//! tools, speedscope itself and our own writer produce such files. The format:
//! <https://www.speedscope.app/file-format-schema.json>.
//!
//! A frame becomes a function, identified by its name and file, and a line. In an evented profile, the time between two
//! events is the cost of the stack that is open between them. Frames that are still open at the end last until
//! `endValue`. Profiles with the same unit are added up. If a file has several profiles, each gets a label `profile`
//! with its name (often a thread). Profiles with another unit become another sample type. The file does not say what
//! the unit counts: times become `time/nanoseconds`, and bytes become `space/bytes`. Values without a unit get the type
//! of `--input-type`, which also renames another type if it has the same unit.
//!
//! The times of a time window refer to the axis that speedscope draws: events have times, and the weights of samples
//! follow one another without gaps. Costs that cross the window's ends are split. The recording begins with the
//! smallest `startValue` of a profile. Idle time that a sampler leaves out is missing on that axis.
//!
//! dotnet-trace sometimes closes a caller before the frame that it calls (4 of 22,118 events of a public file). The
//! reader closes the called frames too, and ignores their own close events, which follow. A warning counts such events.
//! Some frames of dotnet-trace are not functions; they become labels and sample types (`dotnet.rs`).
//!
//! Our writer adds a member `pprofdiff`, which speedscope ignores. It holds the sample type, and whether the two
//! profiles are the sides of a diff: `{"sample_type": "cpu", "unit": "nanoseconds", "two_sided": true}`.
//!
//! Not read: the order of samples, the name of the file, and weights below a nanosecond.

mod dotnet;
#[cfg(test)]
mod tests;

use crate::LoadOptions;
use crate::kit::json::{self, Json, JsonKind};
use crate::kit::tree::{StackBudget, ValueTree, too_large};
use crate::table::{InputFormat, quoted};
use dotnet::Dotnet;
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::columns::{BASE_LABEL, StringId};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::Timeline;
use pprofdiff_profile::{Error, Result};
use pprofdiff_profile::{Profile, Sampled};

pub(crate) const SPEEDSCOPE: InputFormat = InputFormat {
    name: "speedscope",
    about: "a file of speedscope.app: .speedscope.json",
    has_times: true,
    has_events: false,
    recognises: |head| {
        let keys = json::keys(head);
        let has = |key: &str| keys.iter().any(|k| **k == *key.as_bytes());
        // Some writers escape slashes with backslashes.
        has("$schema") && json::contains(head, "www.speedscope.app")
            || has("shared") && json::contains(head, "\"frames\"")
    },
    read,
};

fn read(name: &str, text: Vec<u8>, options: &LoadOptions) -> Result<Profile> {
    let mut file = SpeedscopeFile::new();
    file.read(&text, options)?;
    let size = text.len();
    drop(text);
    let notes = file.notes();
    Ok(file.finish(size)?.build(name)?.with_notes(notes))
}

/// The key of a sum of values, in addition to their stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SpeedscopeRoot {
    column: u32,
    profile: StringId,
    is_base: bool,
}

struct SpeedscopeFile {
    builder: ProfileBuilder,
    frames: Vec<LocationId>,
    columns: Vec<SpeedscopeColumn>,
    /// The statistics of each column. An interval between events of an evented profile counts as one sample.
    sampled: Vec<Sampled>,
    tree: ValueTree<SpeedscopeRoot>,
    n_profiles: usize,
    /// The start of the recording ([`recording_start`]), and the time window to read, if the caller set one.
    timeline: Option<(i64, Timeline)>,
    /// True if the first profile is the base of a diff and the second its new side.
    two_sided: bool,
    dotnet: Dotnet,
    n_events: u64,
    /// The number of events that close a frame before the frames that it calls.
    n_unnested: u64,
}

/// A sample type, and the first profile with this type, which an error may name.
struct SpeedscopeColumn {
    kind: String,
    unit: String,
    first: String,
    /// The unit of this profile in the file.
    first_unit: &'static str,
}

/// The member `pprofdiff`, which our writer adds.
struct WriterNote {
    kind: String,
    unit: String,
    two_sided: bool,
}

/// A unit of speedscope, and its conversion: the sample type and its unit, and the factor as a power of ten. Both texts
/// are empty for values without a unit. Times may be rounded.
struct SpeedscopeUnit {
    /// The name in the file.
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    power: i64,
}

impl SpeedscopeUnit {
    fn from_name(name: &[u8]) -> Option<SpeedscopeUnit> {
        let time = |name, power| SpeedscopeUnit { name, kind: "time", unit: "nanoseconds", power };
        Some(match name {
            b"seconds" => time("seconds", 9),
            b"milliseconds" => time("milliseconds", 6),
            b"microseconds" => time("microseconds", 3),
            b"nanoseconds" => time("nanoseconds", 0),
            b"bytes" => SpeedscopeUnit { name: "bytes", kind: "space", unit: "bytes", power: 0 },
            b"none" => SpeedscopeUnit { name: "none", kind: "", unit: "", power: 0 },
            _ => return None,
        })
    }
}

/// Reads a string; `null` counts as empty.
fn optional_text(json: &mut Json<'_>) -> Result<Vec<u8>> {
    if json.null() { Ok(Vec::new()) } else { Ok(json.string()?.bytes().into_owned()) }
}

/// Reads a number, rounded to an integer; `null` and negative numbers count as 0, an unknown line or column.
fn optional_number(json: &mut Json<'_>) -> Result<i64> {
    if json.null() { Ok(0) } else { Ok(json.number()?.scaled(0)?.0.max(0)) }
}

impl SpeedscopeFile {
    fn new() -> SpeedscopeFile {
        SpeedscopeFile {
            builder: ProfileBuilder::new(),
            frames: Vec::new(),
            columns: Vec::new(),
            sampled: Vec::new(),
            tree: ValueTree::new(),
            n_profiles: 0,
            timeline: None,
            two_sided: false,
            dotnet: Dotnet::default(),
            n_events: 0,
            n_unnested: 0,
        }
    }

    /// Returns the warnings about events.
    fn notes(&self) -> Vec<String> {
        let unnested = (self.n_unnested > 0).then(|| {
            format!(
                "{} of {} events close a frame before the frames that it calls; those frames were closed with it",
                self.n_unnested, self.n_events
            )
        });
        unnested.into_iter().collect()
    }

    fn read(&mut self, text: &[u8], options: &LoadOptions) -> Result<()> {
        let mut json = Json::new(text);
        let (mut shared, mut profiles, mut note) = (None, None, None);
        let mut object = json.object()?;
        while let Some(key) = json.member(&mut object, &["shared", "profiles", "pprofdiff"])? {
            match key {
                "shared" => shared = Some(json),
                "profiles" => profiles = Some(json),
                _ => note = Some(json),
            }
            json.skip()?;
        }
        json.end()?;
        let Some(mut shared) = shared else { return Err(Error::malformed("it has no `shared`, the table of frames")) };
        let Some(mut profiles) = profiles else { return Err(Error::malformed("it has no `profiles`")) };
        let mut object = shared.object()?;
        while shared.member(&mut object, &["frames"])?.is_some() {
            self.read_frames(&mut shared)?;
        }
        let note = note.map(read_writer_note).transpose()?;
        // The name of a profile becomes a label only if there are several profiles.
        let mut profiles_to_count = profiles;
        let mut array = profiles_to_count.array()?;
        while profiles_to_count.element(&mut array)? {
            profiles_to_count.skip()?;
            self.n_profiles += 1;
        }
        if let Some(note) = &note {
            self.two_sided = note.two_sided;
            if note.two_sided && self.n_profiles != 2 {
                let detail = format!("it should have two sides, but there are {} profiles", self.n_profiles);
                return Err(Error::malformed(detail).at(profiles.offset()));
            }
        }
        if let Some(window) = &options.time {
            if note.is_some() {
                return Err(Error::query("no time window can be selected: its samples are sums without times"));
            }
            self.timeline = Some((recording_start(profiles)?, Timeline::new(window, None)?));
        }
        let mut array = profiles.array()?;
        let mut number = 0;
        while profiles.element(&mut array)? {
            self.read_profile(&mut profiles, number, note.as_ref(), options)
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
        while let Some(key) = json.member(&mut object, &["name", "file", "line", "col"])? {
            match key {
                "name" => name = Some(json.string()?.bytes()),
                "file" => file = optional_text(json)?,
                "line" => line = optional_number(json)?,
                _ => column = optional_number(json)?,
            }
        }
        let name = name.ok_or_else(|| Error::malformed("it has no name").at(begin))?;
        let function = self.builder.function(&*name, file, 0);
        let line = self.builder.line(function, line).with_column(column);
        let location = self.builder.location(None, 0, &[line])?;
        self.dotnet.note(&name, location, &mut self.builder);
        Ok(location)
    }

    /// Reads a profile. Its members may come in any order, so their positions are found first.
    fn read_profile(
        &mut self,
        json: &mut Json<'_>,
        number: usize,
        note: Option<&WriterNote>,
        options: &LoadOptions,
    ) -> Result<()> {
        const MEMBERS: [&str; 8] = ["type", "name", "unit", "startValue", "endValue", "samples", "weights", "events"];
        let begin = json.offset();
        let (mut kind, mut name, mut unit, mut start, mut end) = (None, Vec::new(), None, None, None);
        let (mut samples, mut weights, mut events) = (None, None, None);
        let mut object = json.object()?;
        while let Some(key) = json.member(&mut object, &MEMBERS)? {
            match key {
                "type" => kind = Some(json.string()?.bytes()),
                "name" => name = optional_text(json)?,
                "unit" => {
                    let place = json.offset();
                    let read = json.string()?.bytes();
                    let detail = || {
                        let shown = String::from_utf8_lossy(&read[..read.len().min(40)]);
                        Error::malformed(format!("{shown:?} is not a unit of speedscope")).at(place)
                    };
                    unit = Some(SpeedscopeUnit::from_name(&read).ok_or_else(detail)?);
                }
                key => {
                    let kind = json.kind()?;
                    let place = *json;
                    match key {
                        "startValue" => start = Some(place).filter(|_| kind == JsonKind::Number),
                        "endValue" => end = Some(place).filter(|_| kind == JsonKind::Number),
                        "samples" => samples = Some(place),
                        "weights" => weights = Some(place),
                        _ => events = Some(place),
                    }
                    json.skip()?;
                }
            }
        }
        let missing = |member: &str| Error::malformed(format!("it has no {member}")).at(begin);
        let unit = unit.ok_or_else(|| missing("unit"))?;
        if self.timeline.is_some() && unit.kind != "time" {
            return Err(Error::query(format!("its unit is {}, so no time window can be selected", unit.name)).at(begin));
        }
        // Our writer's values are whole numbers in the unit of its note.
        let unit = if note.is_some() { SpeedscopeUnit { kind: "", unit: "", power: 0, ..unit } } else { unit };
        let column = self.column(&unit, note, options, &name, number).map_err(|e| e.at(begin))?;
        let profile = if self.n_profiles > 1 && !self.two_sided { self.builder.string(&name) } else { StringId::EMPTY };
        let root = SpeedscopeRoot { column, profile, is_base: self.two_sided && number == 0 };
        match kind.as_deref() {
            Some(b"sampled") => {
                let samples = samples.ok_or_else(|| missing("samples"))?;
                let weights = weights.ok_or_else(|| missing("weights"))?;
                self.read_samples(samples, weights, start, root, &unit)
            }
            Some(b"evented") => self.read_events(events.ok_or_else(|| missing("events"))?, end, root, &unit),
            Some(_) => Err(missing("known type: it must be \"sampled\" or \"evented\"")),
            None => Err(missing("type")),
        }
    }

    /// Returns the column for a unit, and creates it if no earlier profile had this type.
    ///
    /// # Errors
    /// The input type gives the same sample type to values without a unit and to other values, which must not be added.
    fn column(
        &mut self,
        unit: &SpeedscopeUnit,
        note: Option<&WriterNote>,
        options: &LoadOptions,
        name: &[u8],
        number: usize,
    ) -> Result<u32> {
        let (kind, input_unit) = &options.input_type;
        let (kind, unit_of_type) = match note {
            Some(note) => (&*note.kind, &*note.unit),
            None if unit.kind.is_empty() || input_unit == unit.unit => (&**kind, &**input_unit),
            None => (unit.kind, unit.unit),
        };
        if let Some(index) = self.columns.iter().position(|c| c.kind == kind && c.unit == unit_of_type) {
            let SpeedscopeColumn { first, first_unit, .. } = &self.columns[index];
            if note.is_none() && (*first_unit == "none") != (unit.name == "none") {
                return Err(Error::malformed(format!(
                    "{} has the unit {} and {first} has the unit {first_unit}, so the input type {kind}/{unit_of_type} \
                     cannot apply to both; give an input type with another unit, such as samples/count",
                    quoted(name),
                    unit.name
                )));
            }
            return Ok(index as u32);
        }
        let (kind, unit_of_type) = (kind.to_owned(), unit_of_type.to_owned());
        let first = format!("{} (profile {number})", quoted(name));
        self.sampled.push(Sampled::default());
        self.columns.push(SpeedscopeColumn { kind, unit: unit_of_type, first, first_unit: unit.name });
        Ok(self.columns.len() as u32 - 1)
    }

    /// Reads the index of a frame, and returns the frame's location.
    fn frame(&self, json: &mut Json<'_>) -> Result<LocationId> {
        let place = json.offset();
        let number = json.number()?.whole()?;
        let frame = usize::try_from(number).ok().and_then(|number| self.frames.get(number));
        frame.copied().ok_or_else(|| {
            Error::malformed(format!("unknown frame {number}: there are {}", self.frames.len())).at(place)
        })
    }

    /// Returns the time between two times, or the part of it that is inside the time window, if one is set.
    fn part(&mut self, begin: i64, end: i64) -> Result<i64> {
        let cost = end.checked_sub(begin).ok_or_else(too_large)?;
        let Some((start, timeline)) = &mut self.timeline else { return Ok(cost) };
        let since = |time: i64| time.checked_sub(*start).ok_or_else(too_large);
        Ok(timeline.part(since(begin)?, since(end)?))
    }

    fn read_samples(
        &mut self,
        mut samples: Json<'_>,
        mut weights: Json<'_>,
        start: Option<Json<'_>>,
        root: SpeedscopeRoot,
        unit: &SpeedscopeUnit,
    ) -> Result<()> {
        let mut now = start.map_or(Ok(0), |mut start| time(&mut start, unit))?;
        let column = root.column as usize;
        let root = self.tree.root(root);
        let (mut stacks, mut values) = (samples.array()?, weights.array()?);
        let mut number = 0u64;
        while samples.element(&mut stacks)? {
            let mut read_next = || -> Result<()> {
                if !weights.element(&mut values)? {
                    return Err(Error::malformed("`weights` has no weight for this sample").at(weights.offset()));
                }
                let mut weight = value(&mut weights, unit)?;
                if self.timeline.is_some() {
                    if weight < 0 {
                        return Err(Error::query("a negative weight has no time").at(weights.offset()));
                    }
                    let begin = now;
                    now = now.checked_add(weight).ok_or_else(too_large)?;
                    weight = self.part(begin, now)?;
                }
                let mut node = root;
                let mut stack = samples.array()?;
                while samples.element(&mut stack)? {
                    let frame = self.frame(&mut samples)?;
                    node = self.tree.child(node, frame);
                }
                self.sampled[column].add(weight);
                self.tree.add(node, weight)
            };
            read_next().map_err(|e| prefixed(e, "sample", number))?;
            number += 1;
        }
        if weights.element(&mut values)? {
            return Err(Error::malformed("`weights` has more elements than `samples`").at(weights.offset()));
        }
        Ok(())
    }

    fn read_events(
        &mut self,
        mut json: Json<'_>,
        end: Option<Json<'_>>,
        root: SpeedscopeRoot,
        unit: &SpeedscopeUnit,
    ) -> Result<()> {
        let column = root.column as usize;
        let root = self.tree.root(root);
        let (mut node, mut previous) = (root, None);
        let mut closed = ClosedEarly::default();
        let mut array = json.array()?;
        let mut number = 0u64;
        while json.element(&mut array)? {
            let mut read_next = || -> Result<()> {
                let begin = json.offset();
                let (mut kind, mut event_time, mut frame) = (None, None, None);
                let mut object = json.object()?;
                while let Some(key) = json.member(&mut object, &["type", "at", "frame"])? {
                    match key {
                        "type" => kind = Some(json.string()?.bytes()),
                        "at" => event_time = Some(time(&mut json, unit)?),
                        _ => frame = Some(self.frame(&mut json)?),
                    }
                }
                let wrong = |problem: &str| Error::malformed(problem).at(begin);
                let event_time = event_time.ok_or_else(|| wrong("it has no time `at`"))?;
                let frame = frame.ok_or_else(|| wrong("it has no frame"))?;
                let begin = previous.replace(event_time).unwrap_or(event_time);
                if begin > event_time {
                    return Err(wrong("it is earlier than the previous event"));
                }
                if node != root {
                    let cost = self.part(begin, event_time)?;
                    self.sampled[column].add(cost);
                    self.dotnet.count(self.tree.location(node), cost);
                    self.tree.add(node, cost)?;
                }
                match kind.as_deref() {
                    Some(b"O") => node = self.tree.child(node, frame),
                    Some(b"C") if closed.has(frame, event_time) => closed.remove(frame),
                    Some(b"C") if self.tree.location(node) == Some(frame) => node = self.tree.parent(node),
                    Some(b"C") if closed.frames.contains_key(&frame) => closed.remove(frame),
                    Some(b"C") => {
                        self.n_unnested += 1;
                        while let Some(inner) = self.tree.location(node).filter(|inner| *inner != frame) {
                            closed.add(inner, event_time);
                            node = self.tree.parent(node);
                        }
                        if node == root {
                            return Err(wrong("it closes a frame that is not open"));
                        }
                        node = self.tree.parent(node);
                    }
                    _ => return Err(wrong("its type is neither \"O\" nor \"C\"")),
                }
                Ok(())
            };
            read_next().map_err(|e| prefixed(e, "event", number))?;
            number += 1;
        }
        self.n_events += number;
        if let (true, Some(mut end), Some(previous)) = (node != root, end, previous) {
            let cost = self.part(previous, time(&mut end, unit)?.max(previous))?;
            self.sampled[column].add(cost);
            self.dotnet.count(self.tree.location(node), cost);
            self.tree.add(node, cost)?;
        }
        Ok(())
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let is_time = |column: &SpeedscopeColumn| column.kind == "time" && column.unit == "nanoseconds";
        if self.dotnet.is_written() && self.columns.iter().all(is_time) {
            return self.finish_dotnet(size);
        }
        let SpeedscopeFile { mut builder, columns, sampled, tree, n_profiles, timeline, two_sided, .. } = self;
        if !two_sided {
            sampled.into_iter().enumerate().for_each(|(column, sampled)| builder.sampled(column, sampled));
        }
        if let Some((_, timeline)) = timeline {
            timeline.finish(builder.header())?;
        }
        for column in &columns {
            builder.sample_type(&column.kind, &column.unit);
        }
        let base = Label { key: builder.string(BASE_LABEL.0), value: LabelValue::Text(builder.string(BASE_LABEL.1)) };
        let key = builder.string("profile");
        if two_sided {
            // Labels make a profile a diff, so a base without values still needs one labelled sample.
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

    /// Builds the profile of a dotnet-trace file.
    fn finish_dotnet(self, size: usize) -> Result<ProfileBuilder> {
        let SpeedscopeFile { mut builder, tree, sampled, timeline, mut dotnet, .. } = self;
        if let Some((_, timeline)) = timeline {
            timeline.finish(builder.header())?;
        }
        dotnet::TYPES.iter().for_each(|kind| builder.sample_type(kind, "nanoseconds"));
        let all = sampled.into_iter().next().unwrap_or_default();
        [all, dotnet.sampled()].into_iter().enumerate().for_each(|(column, sampled)| builder.sampled(column, sampled));
        let mut labels = Vec::new();
        tree.each_stack(dotnet::TYPES.len(), &mut StackBudget::for_input(size), |_, leaf_first, time| {
            labels.clear();
            let values = dotnet.convert(leaf_first, time, &mut labels)?;
            builder.sample(leaf_first, &values, &labels)
        })?;
        let default = dotnet.default_type(&mut builder);
        builder.header().default_sample_type = default;
        Ok(builder)
    }
}

/// The frames that were closed before their own close events, and the time when this happened last.
#[derive(Default)]
struct ClosedEarly {
    /// The number of close events still to ignore for each frame.
    frames: HashMap<LocationId, u32>,
    last_time: i64,
}

impl ClosedEarly {
    fn add(&mut self, frame: LocationId, time: i64) {
        *self.frames.entry(frame).or_default() += 1;
        self.last_time = time;
    }

    /// Returns true if the frame was closed early, and frames were last closed early at this time. Its own close event
    /// must then not close a caller of the same name.
    fn has(&self, frame: LocationId, time: i64) -> bool {
        self.last_time == time && self.frames.contains_key(&frame)
    }

    fn remove(&mut self, frame: LocationId) {
        if let Some(count) = self.frames.get_mut(&frame) {
            *count -= 1;
            if *count == 0 {
                self.frames.remove(&frame);
            }
        }
    }
}

/// Reads a time, and rounds it to nanoseconds.
fn time(json: &mut Json<'_>, unit: &SpeedscopeUnit) -> Result<i64> {
    Ok(json.number()?.scaled(unit.power)?.0)
}

/// Reads a weight. Times are rounded to nanoseconds. Other values must be whole, because rounding would change them.
fn value(json: &mut Json<'_>, unit: &SpeedscopeUnit) -> Result<i64> {
    if unit.unit == "nanoseconds" { time(json, unit) } else { json.number()?.whole() }
}

/// Adds the part of a profile to an error. The profile itself is the record of the error.
fn prefixed(error: Error, part: &str, number: u64) -> Error {
    error.prefixed(&format!("{part} {number}: "))
}

/// Returns the smallest start of all profiles in nanoseconds, or 0 if there are none. A profile starts at 0 if it has
/// no `startValue` that is a number, or its unit is not a time.
fn recording_start(mut profiles: Json<'_>) -> Result<i64> {
    let (mut first, mut array) = (None, profiles.array()?);
    while profiles.element(&mut array)? {
        let [unit, start] = profiles.members(["unit", "startValue"])?;
        let unit = unit.map(|mut unit| Ok::<_, Error>(unit.string()?.bytes())).transpose()?;
        let unit = unit.and_then(|unit| SpeedscopeUnit::from_name(&unit)).filter(|unit| unit.kind == "time");
        let begin = match (start, unit) {
            (Some(mut start), Some(unit)) => match start.kind()? {
                JsonKind::Number => time(&mut start, &unit)?,
                _ => 0,
            },
            _ => 0,
        };
        first = Some(first.map_or(begin, |first: i64| first.min(begin)));
    }
    Ok(first.unwrap_or(0))
}

/// Reads the member `pprofdiff`, which our writer adds. Missing texts are empty, and a missing `two_sided` is false.
fn read_writer_note(mut json: Json<'_>) -> Result<WriterNote> {
    let mut note = WriterNote { kind: String::new(), unit: String::new(), two_sided: false };
    let text = |json: &mut Json<'_>| Ok(String::from_utf8_lossy(&json.string()?.bytes()).into_owned());
    let mut object = json.object()?;
    while let Some(key) = json.member(&mut object, &["sample_type", "unit", "two_sided"])? {
        match key {
            "sample_type" => note.kind = text(&mut json)?,
            "unit" => note.unit = text(&mut json)?,
            _ => note.two_sided = json.flag()?,
        }
    }
    Ok(note)
}
