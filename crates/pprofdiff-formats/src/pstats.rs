//! Profiles of Python's cProfile and profile, as `python -m cProfile -o x.prof` and `Stats.dump_stats` write them: a
//! marshalled dictionary (`marshal.rs`) of functions, with their callers:
//!
//! ```text
//! {(file, line, name): (primitive calls, calls, own time, time, {caller: (calls, primitive calls, own time, time)})}
//! ```
//!
//! The result is `time/nanoseconds`, `calls/count` and `primitive calls/count`: calls that no call of the same function
//! contains. Stacks are estimated (`kit/calls.rs`). The time of a caller is the time of the function when that caller
//! called it, so own times are exact for each pair of caller and function.
//!
//! Times are numbers of seconds in the file. cProfile reads a clock in nanoseconds, so rounding restores its numbers. The
//! module `profile` counts the calls of each caller without their time; these times are then divided by the counts.
//!
//! The module `profile` subtracts its own cost, which it measures beforehand, so short times may be negative. They count as
//! 0, because stacks divide costs of 0 or more.
//!
//! In a recursive function, the file has the time of the outermost calls. In mutual recursion, the estimated stacks
//! decide, so that its inclusive times may differ from `cumtime`.

mod marshal;
#[cfg(test)]
mod tests;

use crate::InputFormat;
use crate::kit::calls::{Balance, CallGraph, LEFT_OUT, LEFT_OUT_NAME};
use crate::kit::tree::TextBudget;
use marshal::{MarshalValue, Marshalled, ValueId};
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, ErrorKind, Profile, Result};

pub(crate) const PSTATS: InputFormat = InputFormat {
    name: "pstats",
    about: "a profile of Python's cProfile: .prof, .pstats",
    has_times: false,
    has_events: false,
    recognises: is_marshalled,
    read: |name, text, _| read(name, &text),
};

/// Returns true for a marshalled Python dictionary whose first key is a tuple of three, as cProfile writes it. The highest
/// bit of a type byte marks an object that is referenced again.
fn is_marshalled(head: &[u8]) -> bool {
    let type_byte = |index: usize| head.get(index).map(|&b| b & 0x7f);
    let is_triple = match type_byte(1) {
        Some(b')') => head.get(2) == Some(&3),
        Some(b'(') => head.get(2..6) == Some(&[3, 0, 0, 0]),
        _ => false,
    };
    type_byte(0) == Some(b'{') && is_triple
}

/// Calls of a function by one caller, or by all.
#[derive(Debug, Clone, Copy, Default)]
struct CallCounts {
    calls: i64,
    primitive: i64,
    own: i64,
    time: i64,
}

struct PstatsFile<'t> {
    values: Marshalled<'t>,
    builder: ProfileBuilder,
    texts: TextBudget,
    /// The functions by the number of their name in `values`, and by its content.
    by_value: HashMap<ValueId, u32>,
    by_content: HashMap<(StringId, i64, StringId), u32>,
    frames: Vec<LocationId>,
    /// The functions whose own record was read.
    read: Vec<bool>,
    graph: CallGraph,
    /// True if callers have a count and no times.
    has_counts_only: bool,
    /// The number of negative times.
    negative: usize,
    left: usize,
}

/// The number of callers of all functions is limited to `CALLERS + size`: a reference of five bytes can repeat a
/// dictionary of callers.
const CALLERS: usize = 1 << 20;

fn read(name: &str, text: &[u8]) -> Result<Profile> {
    let (values, root) = Marshalled::read(text)?;
    let mut file = PstatsFile {
        values,
        builder: ProfileBuilder::new(),
        texts: TextBudget::for_input(text.len()),
        by_value: HashMap::default(),
        by_content: HashMap::default(),
        frames: Vec::new(),
        read: Vec::new(),
        graph: CallGraph::new(1, 2, text.len()),
        has_counts_only: false,
        negative: 0,
        left: CALLERS + text.len(),
    };
    for (kind, unit) in [("time", "nanoseconds"), ("calls", "count"), ("primitive calls", "count")] {
        file.builder.sample_type(kind, unit);
    }
    let MarshalValue::Dict(start, end) = file.values.value_of(root) else {
        return Err(file.error(root, "a profile of cProfile is a dictionary of functions"));
    };
    for i in (start..end).step_by(2) {
        let [key, value] = [0, 1].map(|k| file.values.parts(start, end)[(i - start) as usize + k]);
        file.function_record(key, value)?;
    }
    file.build(name)
}

impl PstatsFile<'_> {
    fn error(&self, id: ValueId, detail: &str) -> Error {
        Error::malformed(detail).at(self.values.offset_of(id))
    }

    fn tuple<const N: usize>(&self, id: ValueId, what: &str) -> Result<[ValueId; N]> {
        let parts = match self.values.value_of(id) {
            MarshalValue::Tuple(start, end) => self.values.parts(start, end).try_into().ok(),
            _ => None,
        };
        parts.ok_or_else(|| self.error(id, &format!("{what} is not a tuple of {N}")))
    }

    fn count(&self, id: ValueId) -> Result<i64> {
        match self.values.value_of(id) {
            MarshalValue::Int(count) if count >= 0 => Ok(count),
            _ => Err(self.error(id, "a number of calls is not a positive integer")),
        }
    }

    /// Returns a time in nanoseconds, and 0 for a negative time.
    fn time(&mut self, id: ValueId) -> Result<i64> {
        let seconds = match self.values.value_of(id) {
            MarshalValue::Int(seconds) => seconds as f64,
            MarshalValue::Float(seconds) => seconds,
            _ => return Err(self.error(id, "a time is not a number")),
        };
        let nanos = (seconds * 1e9).round();
        if nanos.is_nan() || nanos.abs() >= 9.2e18 {
            return Err(self.error(id, "a time is not a number of seconds that fits in an int64 of nanoseconds"));
        }
        self.negative += usize::from(nanos < 0.0);
        Ok(nanos.max(0.0) as i64)
    }

    fn function(&mut self, id: ValueId) -> Result<u32> {
        if let Some(&function) = self.by_value.get(&id) {
            return Ok(function);
        }
        let [file, line, name] = self.tuple(id, "the name of a function")?;
        let text = |id: ValueId| match self.values.value_of(id) {
            MarshalValue::Text(start, end) => Ok(self.values.text(start, end)),
            _ => Err(self.error(id, "a function or its file is not a text")),
        };
        let (file, name) = (text(file)?, text(name)?);
        let MarshalValue::Int(line) = self.values.value_of(line) else {
            return Err(self.error(line, "the line of a function is not an integer"));
        };
        // Built-in functions have this file.
        let file = if file == b"~" { b"" } else { file };
        self.texts.take(file.len() + name.len()).map_err(|e| e.at(self.values.offset_of(id)))?;
        let key = (self.builder.string(file), line, self.builder.string(name));
        let function = match self.by_content.get(&key) {
            Some(&function) => function,
            None => {
                let line = line.clamp(0, u32::MAX.into());
                let function = self.builder.function(name, file, line);
                let place = self.values.offset_of(id);
                let location = self.builder.location(None, 0, &[self.builder.line(function, line)]);
                self.frames.push(location.map_err(|e| e.at(place))?);
                self.read.push(false);
                let number = self.graph.function(0, self.frames.len() as u32 - 1).map_err(|e| e.at(place))?;
                self.by_content.insert(key, number);
                number
            }
        };
        self.by_value.insert(id, function);
        Ok(function)
    }

    fn function_record(&mut self, key: ValueId, value: ValueId) -> Result<()> {
        let function = self.function(key)?;
        if std::mem::replace(&mut self.read[function as usize], true) {
            return Err(self.error(key, "a function occurs twice"));
        }
        let [primitive, calls, own, time, callers] = self.tuple(value, "the record of a function")?;
        let all = CallCounts {
            calls: self.count(calls)?,
            primitive: self.count(primitive)?,
            own: self.time(own)?,
            time: self.time(time)?,
        };
        let MarshalValue::Dict(start, end) = self.values.value_of(callers) else {
            return Err(self.error(callers, "the callers of a function are not a dictionary"));
        };
        let place = self.values.offset_of(value);
        self.graph.add_own(function, function, &[all.own]).map_err(|e| e.at(place))?;
        let n = (end - start) as usize / 2;
        self.left = self.left.checked_sub(n).ok_or_else(|| {
            let detail = "its functions have too many callers altogether for a file of its size";
            Error::new(ErrorKind::Limit, detail).at(self.values.offset_of(callers))
        })?;
        let mut edges = Vec::with_capacity(n);
        for i in 0..n {
            let [caller, value] = [0, 1].map(|k| self.values.parts(start, end)[2 * i + k]);
            edges.push((self.function(caller)?, self.calls(value)?));
        }
        // Calls from outside of the profile, then calls by other functions, are primitive calls.
        let counted = edges.iter().fold(0i64, |sum, (_, edge)| sum.saturating_add(edge.calls));
        let outside = all.calls.saturating_sub(counted).max(0);
        let mut primitive = all.primitive;
        let mut take = |calls: i64| {
            let part = calls.min(primitive);
            primitive -= part;
            part
        };
        let outside_primitive = take(outside);
        for is_recursive in [false, true] {
            for (_, edge) in edges.iter_mut().filter(|(caller, _)| (*caller == function) == is_recursive) {
                edge.primitive = take(edge.calls);
            }
        }
        for &(caller, edge) in &edges {
            let counts = [edge.calls, edge.primitive];
            let added = self.graph.add_call((caller, caller, function), &counts, &[edge.time], &[edge.own]);
            added.map_err(|e| e.at(place))?;
        }
        // The remaining primitive calls are calls from outside, too.
        let added = self.graph.add_uncalled(function, &[outside, outside_primitive + primitive]);
        added.map_err(|e| e.at(place))
    }

    /// Returns the calls of one caller: a tuple of cProfile, or a number of `profile`.
    fn calls(&mut self, id: ValueId) -> Result<CallCounts> {
        if let MarshalValue::Int(_) = self.values.value_of(id) {
            self.has_counts_only = true;
            let calls = self.count(id)?;
            return Ok(CallCounts { calls, time: calls, ..CallCounts::default() });
        }
        let [calls, primitive, own, time] = self.tuple(id, "the calls of a caller")?;
        Ok(CallCounts {
            calls: self.count(calls)?,
            primitive: self.count(primitive)?,
            own: self.time(own)?,
            time: self.time(time)?,
        })
    }

    fn build(mut self, name: &str) -> Result<Profile> {
        let left_out = self.builder.function(LEFT_OUT_NAME, "", 0);
        let left_out = self.builder.location(None, 0, &[self.builder.line(left_out, 0)])?;
        let (frames, builder) = (&self.frames, &mut self.builder);
        let mut leaf_first = Vec::new();
        let balance = if self.has_counts_only { Balance::ByCounts } else { Balance::Measured };
        let graph = std::mem::replace(&mut self.graph, CallGraph::new(0, 0, 0));
        let estimate = graph.stacks(balance, |_, places, values| {
            leaf_first.clear();
            leaf_first
                .extend(places.iter().map(|&place| if place == LEFT_OUT { left_out } else { frames[place as usize] }));
            builder.sample(&leaf_first, values, &[])
        })?;
        let mut notes = estimate.notes("ns of time", "; py-spy record --format raw records stacks");
        if self.has_counts_only {
            notes.push("the times of callers are missing, so time is divided by the number of calls".to_owned());
        }
        match self.negative {
            0 => {}
            1 => {
                notes.push("a time is negative, and counts as 0; is the calibration of `profile` too high?".to_owned())
            }
            n => {
                notes.push(format!("{n} times are negative, and count as 0; is the calibration of `profile` too high?"))
            }
        }
        for note in &notes {
            let note = self.builder.string(note);
            self.builder.header().comments.push(note);
        }
        let default = self.builder.string("time");
        self.builder.header().default_sample_type = default;
        Ok(self.builder.build(name)?.with_notes(notes))
    }
}
