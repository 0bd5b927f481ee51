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
//! Of a part of a recording, times are those of the axis that speedscope draws: events have theirs, samples are laid end to
//! end by their weights. Both are cut where the part ends. It begins with the profile whose `startValue` is the least. Idle
//! time that a sampler leaves out is missing on that axis.
//!
//! dotnet-trace closes a caller before the frame above it now and then (4 of 22,118 events of a public file). What is above is
//! closed with it, and its own event, which follows, is ignored; a warning says how many such events there are. Frames of
//! dotnet-trace that are no functions become labels and sample types (`dotnet.rs`).
//!
//! Our writer says of its file what it counts, and whether the two profiles are the sides of a diff, in a member
//! `pprofdiff` that speedscope passes over: `{"sample_type": "cpu", "unit": "nanoseconds", "two_sided": true}`.
//!
//! Lost: the order of samples, the name of the file, and weights below a nanosecond.

mod dotnet;
#[cfg(test)]
mod tests;

use super::json::{self, Json, Kind};
use super::tree::{StackBudget, Tree, too_large};
use super::{InputFormat, quoted};
use crate::builder::{LocationId, ProfileBuilder};
use crate::error::{Error, Result};
use crate::profile::{BASE_LABEL, Label, LabelValue, LoadOptions, Profile, Sampled, StringId};
use crate::random::HashMap;
use crate::window::Timeline;
use dotnet::Dotnet;

pub(super) const SPEEDSCOPE: InputFormat = InputFormat {
    name: "speedscope",
    about: "a file of speedscope.app: .speedscope.json",
    has_times: true,
    has_events: false,
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
    let notes = file.notes();
    Ok(file.finish(size)?.build(name)?.with_notes(notes))
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
    /// By column: the samples of sampled profiles; of evented ones the intervals between events, each one sample or more.
    sampled: Vec<Sampled>,
    tree: Tree<Root>,
    n_profiles: usize,
    /// When the recording began, and what is read of it, if that is a part.
    timeline: Option<(i64, Timeline)>,
    two_sided: bool,
    dotnet: Dotnet,
    n_events: u64,
    /// The number of events that close a frame which is not the innermost one.
    n_unnested: u64,
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
        File {
            builder: ProfileBuilder::new(),
            frames: Vec::new(),
            columns: Vec::new(),
            sampled: Vec::new(),
            tree: Tree::new(),
            n_profiles: 0,
            timeline: None,
            two_sided: false,
            dotnet: Dotnet::default(),
            n_events: 0,
            n_unnested: 0,
        }
    }

    /// Lists what a user should know about the events.
    fn notes(&self) -> Vec<String> {
        let unnested = (self.n_unnested > 0).then(|| {
            format!(
                "{} of {} events close a frame before the frames that it calls; these were closed with it",
                self.n_unnested, self.n_events
            )
        });
        unnested.into_iter().collect()
    }

    fn read(&mut self, text: &[u8], options: &LoadOptions) -> Result<()> {
        let mut json = Json::new(text);
        let (mut shared, mut profiles, mut written) = (None, None, None);
        let mut object = json.object()?;
        while let Some(key) = json.member(&mut object, &["shared", "profiles", "pprofdiff"])? {
            match key {
                "shared" => shared = Some(json),
                "profiles" => profiles = Some(json),
                _ => written = Some(json),
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
        if let Some(window) = &options.time {
            if written.is_some() {
                return Err(Error::query("its samples are sums, without times"));
            }
            self.timeline = Some((start_of(profiles)?, Timeline::new(window, None)?));
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

    /// Reads one profile: its members may come in any order, so where they are comes first.
    fn read_profile(
        &mut self,
        json: &mut Json<'_>,
        number: usize,
        written: Option<&Written>,
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
                        Error::malformed(format!("{shown:?} is no unit of speedscope")).at(place)
                    };
                    unit = Some(Unit::from_name(&read).ok_or_else(detail)?);
                }
                key => {
                    let kind = json.kind()?;
                    let place = *json;
                    match key {
                        "startValue" => start = Some(place).filter(|_| kind == Kind::Number),
                        "endValue" => end = Some(place).filter(|_| kind == Kind::Number),
                        "samples" => samples = Some(place),
                        "weights" => weights = Some(place),
                        _ => events = Some(place),
                    }
                    json.skip()?;
                }
            }
        }
        let missing = |what: &str| Error::malformed(format!("it has no {what}")).at(begin);
        let unit = unit.ok_or_else(|| missing("unit"))?;
        if self.timeline.is_some() && unit.kind != "time" {
            return Err(Error::query(format!("its unit is {}, so there are no times in it", unit.name)).at(begin));
        }
        // Ours are whole numbers of the unit that is said.
        let unit = if written.is_some() { Unit { kind: "", unit: "", power: 0, ..unit } } else { unit };
        let column = self.column(&unit, written, options, &name, number).map_err(|e| e.at(begin))?;
        let profile = if self.n_profiles > 1 && !self.two_sided { self.builder.string(&name) } else { StringId::EMPTY };
        let root = Root { column, profile, is_base: self.two_sided && number == 0 };
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
        self.sampled.push(Sampled::default());
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

    /// What is read of a cost from one time to another.
    fn part(&mut self, begin: i64, end: i64) -> Result<i64> {
        let cost = end.checked_sub(begin).ok_or_else(too_large)?;
        let Some((start, timeline)) = &mut self.timeline else { return Ok(cost) };
        let since = |at: i64| at.checked_sub(*start).ok_or_else(too_large);
        Ok(timeline.part(since(begin)?, since(end)?))
    }

    fn read_samples(
        &mut self,
        mut samples: Json<'_>,
        mut weights: Json<'_>,
        start: Option<Json<'_>>,
        root: Root,
        unit: &Unit,
    ) -> Result<()> {
        let mut now = start.map_or(Ok(0), |mut start| time(&mut start, unit))?;
        let column = root.column as usize;
        let root = self.tree.root(root);
        let (mut stacks, mut values) = (samples.array()?, weights.array()?);
        let mut number = 0u64;
        while samples.element(&mut stacks)? {
            let mut one = || -> Result<()> {
                if !weights.element(&mut values)? {
                    return Err(Error::malformed("`weights` has no weight for it").at(weights.offset()));
                }
                let mut weight = value(&mut weights, unit)?;
                if self.timeline.is_some() {
                    if weight < 0 {
                        return Err(Error::query("its weight is negative, so it is no time").at(weights.offset()));
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
            one().map_err(|e| prefixed(e, "sample", number))?;
            number += 1;
        }
        if weights.element(&mut values)? {
            return Err(Error::malformed("`weights` has more weights than there are samples").at(weights.offset()));
        }
        Ok(())
    }

    fn read_events(&mut self, mut json: Json<'_>, end: Option<Json<'_>>, root: Root, unit: &Unit) -> Result<()> {
        let column = root.column as usize;
        let root = self.tree.root(root);
        let (mut node, mut before) = (root, None);
        let mut closed = ClosedEarly::default();
        let mut array = json.array()?;
        let mut number = 0u64;
        while json.element(&mut array)? {
            let mut one = || -> Result<()> {
                let begin = json.offset();
                let (mut kind, mut at, mut frame) = (None, None, None);
                let mut object = json.object()?;
                while let Some(key) = json.member(&mut object, &["type", "at", "frame"])? {
                    match key {
                        "type" => kind = Some(json.string()?.bytes()),
                        "at" => at = Some(time(&mut json, unit)?),
                        _ => frame = Some(self.frame(&mut json)?),
                    }
                }
                let wrong = |what: &str| Error::malformed(what).at(begin);
                let at = at.ok_or_else(|| wrong("it has no time `at`"))?;
                let frame = frame.ok_or_else(|| wrong("it has no frame"))?;
                let begin = before.replace(at).unwrap_or(at);
                if begin > at {
                    return Err(wrong("it is before the event that precedes it"));
                }
                if node != root {
                    let cost = self.part(begin, at)?;
                    self.sampled[column].add(cost);
                    self.dotnet.count(self.tree.location(node), cost);
                    self.tree.add(node, cost)?;
                }
                match kind.as_deref() {
                    Some(b"O") => node = self.tree.child(node, frame),
                    Some(b"C") if closed.has(frame, at) => closed.remove(frame),
                    Some(b"C") if self.tree.location(node) == Some(frame) => node = self.tree.parent(node),
                    Some(b"C") if closed.frames.contains_key(&frame) => closed.remove(frame),
                    Some(b"C") => {
                        self.n_unnested += 1;
                        while let Some(inner) = self.tree.location(node).filter(|inner| *inner != frame) {
                            closed.add(inner, at);
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
            one().map_err(|e| prefixed(e, "event", number))?;
            number += 1;
        }
        self.n_events += number;
        if let (true, Some(mut end), Some(before)) = (node != root, end, before) {
            let cost = self.part(before, time(&mut end, unit)?.max(before))?;
            self.sampled[column].add(cost);
            self.dotnet.count(self.tree.location(node), cost);
            self.tree.add(node, cost)?;
        }
        Ok(())
    }

    fn finish(self, size: usize) -> Result<ProfileBuilder> {
        let is_time = |column: &Column| column.kind == "time" && column.unit == "nanoseconds";
        if self.dotnet.is_written() && self.columns.iter().all(is_time) {
            return self.finish_dotnet(size);
        }
        let File { mut builder, columns, sampled, tree, n_profiles, timeline, two_sided, .. } = self;
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

    /// Like `finish`, for a file of dotnet-trace.
    fn finish_dotnet(self, size: usize) -> Result<ProfileBuilder> {
        let File { mut builder, tree, sampled, timeline, mut dotnet, .. } = self;
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

/// Frames that were closed before their own event came, and when the last one was.
#[derive(Default)]
struct ClosedEarly {
    frames: HashMap<LocationId, u32>,
    at: i64,
}

impl ClosedEarly {
    fn add(&mut self, frame: LocationId, at: i64) {
        *self.frames.entry(frame).or_default() += 1;
        self.at = at;
    }

    /// Returns true if the frame was closed early at this time: then its own event may not close a caller of its name.
    fn has(&self, frame: LocationId, at: i64) -> bool {
        self.at == at && self.frames.contains_key(&frame)
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

/// When the first of all profiles begins; those without a `startValue` at 0.
fn start_of(mut profiles: Json<'_>) -> Result<i64> {
    let (mut first, mut array) = (None, profiles.array()?);
    while profiles.element(&mut array)? {
        let [unit, start] = profiles.members(["unit", "startValue"])?;
        let unit = unit.map(|mut unit| Ok::<_, Error>(unit.string()?.bytes())).transpose()?;
        let unit = unit.and_then(|unit| Unit::from_name(&unit)).filter(|unit| unit.kind == "time");
        let begin = match (start, unit) {
            (Some(mut start), Some(unit)) => match start.kind()? {
                Kind::Number => time(&mut start, &unit)?,
                _ => 0,
            },
            _ => 0,
        };
        first = Some(first.map_or(begin, |first: i64| first.min(begin)));
    }
    Ok(first.unwrap_or(0))
}

/// Reads what our writer says of its file.
fn written_by_us(mut json: Json<'_>) -> Result<Written> {
    let mut written = Written { kind: String::new(), unit: String::new(), two_sided: false };
    let text = |json: &mut Json<'_>| Ok(String::from_utf8_lossy(&json.string()?.bytes()).into_owned());
    let mut object = json.object()?;
    while let Some(key) = json.member(&mut object, &["sample_type", "unit", "two_sided"])? {
        match key {
            "sample_type" => written.kind = text(&mut json)?,
            "unit" => written.unit = text(&mut json)?,
            _ => written.two_sided = json.flag()?,
        }
    }
    Ok(written)
}
