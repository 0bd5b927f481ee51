//! Files of callgrind and their relatives: own costs of source lines, and calls with their number and inclusive cost. The
//! format: <https://valgrind.org/docs/manual/cl-format.html>. Cachegrind writes the part without calls, Xdebug's profiler
//! and `pprofdiff -o x.callgrind` write the whole format.
//!
//! ```text
//! events: Ir Dr
//! fl=(1) main.c           file and function; a number stands for a name that a line gave before
//! fn=(1) main
//! 16 400 20               own cost of line 16
//! cfn=(2) work
//! calls=3 50              3 calls of `work`, which begins at line 50
//! +2 700 30               from line 18, and their inclusive cost
//! ```
//!
//! Each event becomes a sample type, and so does each event that the file derives from others (`event: L1m = I1mr + D1mr`).
//! The number of calls becomes `calls/count`, which counts at the called function. Stacks are estimated (`kit/calls.rs`).
//! With `--separate-callers`, callgrind writes `f'caller'its caller` as the name of a function, so a function per chain of
//! callers. Each of them is a function of the call graph, and its frame has the name before the first `'`. Recursive calls
//! (`f'2`) get frames of the same name too.
//!
//! Code that was inlined from another file (`fi`, `fe`) is a frame of the function with that file. Addresses of
//! instructions and jumps are not read.

mod events;
#[cfg(test)]
mod tests;

use crate::InputFormat;
use crate::kit::calls::{Balance, CallGraph, Estimate, LEFT_OUT, LEFT_OUT_NAME};
use crate::kit::lines::{each_line, lines};
use crate::kit::tree::TextBudget;
use crate::table::{is_text, quoted};
use events::{Derived, EventType, StatedUnits, read_unit_of_time, set_unit_of_times};
use pprofdiff_profile::builder::{FunctionId, LocationId, MappingId, ProfileBuilder};
use pprofdiff_profile::columns::{Mapping, StringId};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, HashSet, RandomState};
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::{Error, Profile, Result};

pub(crate) const CALLGRIND: InputFormat = InputFormat {
    name: "callgrind",
    about: "a file of callgrind, cachegrind or Xdebug: callgrind.out.PID",
    has_times: false,
    has_events: false,
    recognises,
    read: |name, text, _| {
        let mut file = CallgrindFile::new(text.len());
        file.read(&text)?;
        drop(text);
        file.build(name)
    },
};

/// The maximum number of events, given and derived.
const MAX_EVENTS: usize = 256;

fn recognises(head: &[u8]) -> bool {
    if !is_text(head) {
        return false;
    }
    let mut has_events = false;
    for (_, line) in lines(head) {
        if line.starts_with(b"# callgrind format") {
            return true;
        }
        has_events |= line.starts_with(b"events:");
        if has_events && [&b"fn="[..], b"fl=", b"ob="].iter().any(|begin| line.starts_with(begin)) {
            return true;
        }
        let is_creator =
            |creator: &[u8]| line.strip_prefix(b"creator:").is_some_and(|c| c.trim_ascii().starts_with(creator));
        if is_creator(b"callgrind") || is_creator(b"xdebug") {
            return true;
        }
    }
    false
}

/// A function of the file: its thread, binary, file and name.
type FunctionKey = (StringId, StringId, StringId, StringId);

/// A line of a function: its number, the file of the line, and the number of the line.
type PlaceKey = (u32, StringId, u32);

/// The function that the next lines are about.
#[derive(Clone, Copy, Default)]
struct Caller {
    binary: StringId,
    /// The file of the lines, which differs from the function's file in inlined code.
    file: StringId,
    function: Option<u32>,
}

/// A called function, before its costs.
#[derive(Clone, Copy, Default)]
struct Callee {
    binary: Option<StringId>,
    file: Option<StringId>,
    name: Option<StringId>,
    /// The number of calls and the line of the called function, once they were read.
    calls: Option<(i64, u32)>,
}

struct CallgrindFile {
    builder: ProfileBuilder,
    /// The names by number: of binaries, files and functions.
    names: [HashMap<u64, StringId>; 3],
    texts: TextBudget,
    functions: HashMap<FunctionKey, u32>,
    keys: Vec<FunctionKey>,
    places: Interner<PlaceKey, RandomState>,
    graph: CallGraph,
    size: usize,
    has_lines: bool,
    has_addresses: bool,
    events: Vec<EventType>,
    derived: Vec<Derived>,
    /// The events of the lines that follow, as indexes.
    columns: Vec<usize>,
    /// The text of names, for frames.
    shown: HashMap<StringId, Vec<u8>>,
    thread: StringId,
    caller: Caller,
    callee: Callee,
    /// The address and the line of the last cost.
    position: [u64; 2],
    costs: Vec<i64>,
    sums: Vec<i64>,
    /// The totals that the file states, before the costs of its parts and after them.
    totals: [Option<Vec<i64>>; 2],
    has_separate_callers: bool,
    has_counts: bool,
    units_of_times: StatedUnits,
    /// True if the unit of a time in system calls is unknown.
    has_unknown_unit: bool,
    is_xdebug: bool,
    is_callgrind: bool,
}

impl CallgrindFile {
    fn new(size: usize) -> CallgrindFile {
        CallgrindFile {
            builder: ProfileBuilder::new(),
            names: Default::default(),
            texts: TextBudget::for_input(size),
            functions: HashMap::default(),
            keys: Vec::new(),
            places: Interner::default(),
            graph: CallGraph::new(0, 1, size),
            size,
            has_lines: true,
            has_addresses: false,
            events: Vec::new(),
            derived: Vec::new(),
            columns: Vec::new(),
            shown: HashMap::default(),
            thread: StringId::EMPTY,
            caller: Caller::default(),
            callee: Callee::default(),
            position: [0; 2],
            costs: Vec::new(),
            sums: Vec::new(),
            totals: [None, None],
            has_separate_callers: false,
            has_counts: false,
            units_of_times: StatedUnits::default(),
            has_unknown_unit: false,
            is_xdebug: false,
            is_callgrind: false,
        }
    }

    fn read(&mut self, text: &[u8]) -> Result<()> {
        each_line(text, |_, line| self.line(line.trim_ascii_start()))?;
        if self.callee.calls.is_some() {
            return Err(
                Error::malformed("the file ends before the cost of its last call; is it cut off?").at(text.len())
            );
        }
        if self.events.is_empty() {
            return Err(Error::malformed("the line of events is missing, such as \"events: Ir\"").at(text.len()));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        match line.first() {
            None | Some(b'#') => return Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => return self.cost(line),
            _ => {}
        }
        if let Some(i) = line.iter().position(|&b| b == b'=' || b == b':')
            && line[..i].iter().all(u8::is_ascii_lowercase)
        {
            let (key, value) = (&line[..i], line[i + 1..].trim_ascii());
            return if line[i] == b'=' { self.specification(key, value, line) } else { self.header(key, value) };
        }
        Err(unknown_line(line))
    }

    fn header(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match key {
            b"version" => {
                let is_known =
                    std::str::from_utf8(value).ok().and_then(|v| v.parse::<f64>().ok()).is_none_or(|v| v < 2.0);
                if !is_known {
                    return Err(Error::malformed(format!(
                        "version {} of the format is unknown; only 1 is",
                        quoted(value)
                    )));
                }
            }
            b"creator" => {
                (self.is_xdebug, self.is_callgrind) = (value.starts_with(b"xdebug"), value.starts_with(b"callgrind"));
            }
            // A new part has its own positions, and may have its own events.
            b"part" => self.position = [0; 2],
            b"thread" => {
                self.thread = self.string(value)?;
                self.caller = Caller::default();
            }
            b"positions" => {
                let is_known = |w: &[u8]| [&b""[..], b"instr", b"addr", b"line"].contains(&w);
                if let Some(word) = value.split(u8::is_ascii_whitespace).find(|w| !is_known(w)) {
                    let word = String::from_utf8_lossy(word).into_owned();
                    return Err(Error::malformed(format!(
                        "position {word:?} is not supported; record without --dump-bb"
                    )));
                }
                let has = |word: &[u8]| value.split(u8::is_ascii_whitespace).any(|w| w == word);
                (self.has_lines, self.has_addresses) = (has(b"line"), has(b"instr") || has(b"addr"));
            }
            b"events" => self.set_events(value)?,
            b"event" => {
                read_unit_of_time(value, &mut self.units_of_times);
                self.derived.extend(Derived::parse(value)?);
                self.limit_events()?;
            }
            b"summary" => self.total(0, value),
            b"totals" => self.total(1, value),
            // Descriptions and unknown keys.
            _ => {}
        }
        Ok(())
    }

    fn set_events(&mut self, value: &[u8]) -> Result<()> {
        self.columns.clear();
        for name in value.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()) {
            let new = EventType::parse(name);
            let index = self.events.iter().position(|event| event.name == new.name);
            if index.is_none() && !self.keys.is_empty() {
                return Err(Error::malformed(format!(
                    "event {} is missing in an earlier part of the file; split the file into its parts",
                    quoted(name)
                )));
            }
            if index.is_some_and(|index| self.columns.contains(&index)) {
                return Err(Error::malformed(format!("event {} occurs twice", quoted(name))));
            }
            self.columns.push(index.unwrap_or(self.events.len()));
            if index.is_none() {
                self.events.push(new);
                self.limit_events()?;
            }
        }
        if self.keys.is_empty() {
            self.graph = CallGraph::new(self.events.len(), 1, self.size);
        }
        self.costs.resize(self.events.len(), 0);
        self.sums.resize(self.events.len(), 0);
        Ok(())
    }

    fn limit_events(&self) -> Result<()> {
        match self.events.len() + self.derived.len() > MAX_EVENTS {
            true => Err(Error::malformed(format!("there are more than {MAX_EVENTS} events"))),
            false => Ok(()),
        }
    }

    /// Adds the totals of a part. `summary` comes before the costs and `totals` after them, and both are optional.
    fn total(&mut self, place: usize, value: &[u8]) {
        let totals = self.totals[place].get_or_insert_default();
        totals.resize(self.events.len(), 0);
        let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for (word, &column) in words.zip(&self.columns) {
            totals[column] = totals[column].saturating_add(signed(word).unwrap_or(0));
        }
    }

    fn string(&mut self, text: &[u8]) -> Result<StringId> {
        self.texts.take(text.len())?;
        let id = self.builder.string(text);
        self.shown.entry(id).or_insert_with(|| text.to_vec());
        Ok(id)
    }

    /// Returns a name: `(3) name` names the number 3, `(3)` stands for that name, and any other text is a name itself.
    fn name(&mut self, table: usize, value: &[u8]) -> Result<StringId> {
        let close = value.iter().position(|&b| b == b')');
        let number = close.filter(|_| value.starts_with(b"(")).and_then(|close| {
            let digits = &value[1..close];
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse::<u64>().ok()?;
            Some((number, value[close + 1..].trim_ascii()))
        });
        match number {
            Some((number, b"")) => self.names[table].get(&number).copied().ok_or_else(|| {
                let kind = ["binary", "file", "function"][table];
                Error::malformed(format!(
                    "the name of {kind} ({number}) is missing; is the beginning of the file missing?"
                ))
            }),
            Some((number, name)) => {
                let id = self.string(name)?;
                self.names[table].insert(number, id);
                Ok(id)
            }
            None => self.string(value),
        }
    }

    fn specification(&mut self, key: &[u8], value: &[u8], line: &[u8]) -> Result<()> {
        const BINARY: usize = 0;
        const FILE: usize = 1;
        const FUNCTION: usize = 2;
        if self.callee.calls.is_some() {
            return Err(Error::malformed(format!("the cost of a call is missing before {}", quoted(line))));
        }
        match key {
            b"ob" => self.caller.binary = self.name(BINARY, value)?,
            b"fl" => self.caller.file = self.name(FILE, value)?,
            b"fi" | b"fe" => self.caller.file = self.name(FILE, value)?,
            b"fn" => {
                let name = self.name(FUNCTION, value)?;
                let Caller { binary, file, .. } = self.caller;
                self.caller.function = Some(self.function((self.thread, binary, file, name))?);
            }
            b"cob" => self.callee.binary = Some(self.name(BINARY, value)?),
            b"cfi" | b"cfl" => self.callee.file = Some(self.name(FILE, value)?),
            b"cfn" => self.callee.name = Some(self.name(FUNCTION, value)?),
            b"calls" => self.calls(value, line)?,
            // Jumps are without cost, but they may name numbers.
            b"jfi" => drop(self.name(FILE, value)?),
            b"jfn" => drop(self.name(FUNCTION, value)?),
            b"jump" | b"jcnd" => {}
            // The caller's caller, which other names of functions contain.
            b"frfn" => drop(self.name(FUNCTION, value)?),
            _ => return Err(unknown_line(line)),
        }
        Ok(())
    }

    fn function(&mut self, key: FunctionKey) -> Result<u32> {
        if let Some(&function) = self.functions.get(&key) {
            return Ok(function);
        }
        // The name and the file are copied to a frame.
        let length = |id: StringId| self.shown.get(&id).map_or(0, Vec::len);
        let size = length(key.3) + length(key.2);
        self.texts.take(size)?;
        let function = self.graph.function(key.0.0, 0)?;
        let entry = self.places.number((function, key.2, 0));
        self.graph.set_entry(function, entry);
        self.functions.insert(key, function);
        self.keys.push(key);
        Ok(function)
    }

    fn calls(&mut self, value: &[u8], line: &[u8]) -> Result<()> {
        let mut words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let count = words.next().and_then(number).and_then(|count| i64::try_from(count).ok());
        let count = count.ok_or_else(|| unknown_line(line))?;
        if self.callee.name.is_none() {
            return Err(Error::malformed("calls come after the name of the called function (cfn=)"));
        }
        if self.caller.function.is_none() {
            return Err(no_function());
        }
        let mut target = self.position;
        self.read_position(&mut words, &mut target).ok_or_else(|| unknown_line(line))?;
        self.has_counts |= count > 0;
        self.callee.calls = Some((count, target[1].min(u64::from(u32::MAX)) as u32));
        Ok(())
    }

    /// Reads the address and the line at the beginning of a cost. Missing positions are 0.
    fn read_position<'w>(&self, words: &mut impl Iterator<Item = &'w [u8]>, position: &mut [u64; 2]) -> Option<()> {
        for (slot, is_present) in [(0, self.has_addresses), (1, self.has_lines)] {
            if !is_present {
                position[slot] = 0;
                continue;
            }
            let word = words.next()?;
            let last = position[slot];
            position[slot] = match word.split_first()? {
                (b'+', rest) => last.saturating_add(number(rest)?),
                (b'-', rest) => last.saturating_sub(number(rest)?),
                (b'*', b"") => last,
                _ => number(word)?,
            };
        }
        Some(())
    }

    fn cost(&mut self, line: &[u8]) -> Result<()> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut position = self.position;
        self.read_position(&mut words, &mut position).ok_or_else(|| unknown_line(line))?;
        self.position = position;
        if self.columns.is_empty() {
            return Err(Error::malformed("costs come after the line of events, such as \"events: Ir\""));
        }
        let Some(function) = self.caller.function else { return Err(no_function()) };
        self.costs.fill(0);
        let mut columns = self.columns.iter();
        for word in words {
            let Some(&column) = columns.next() else {
                return Err(Error::malformed(format!(
                    "{} has more costs than there are events ({})",
                    quoted(line),
                    self.columns.len()
                )));
            };
            let cost = signed(word).ok_or_else(|| unknown_line(line))?;
            self.costs[column] = cost.checked_mul(self.events[column].factor).ok_or_else(|| unknown_line(line))?;
        }
        let line_number = position[1].min(u64::from(u32::MAX)) as u32;
        let place = self.places.number((function, self.caller.file, line_number));
        let callee = self.callee;
        let Some((count, target)) = callee.calls else {
            self.sums.iter_mut().zip(&self.costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
            return self.graph.add_own(function, place, &self.costs);
        };
        self.callee = Callee::default();
        let binary = callee.binary.unwrap_or(self.caller.binary);
        let file = callee.file.unwrap_or(self.caller.file);
        let called = self.function((self.thread, binary, file, callee.name.unwrap_or_default()))?;
        let entry = self.places.number((called, file, target));
        self.graph.set_entry(called, entry);
        let costs = std::mem::take(&mut self.costs);
        let result = self.graph.add_call((function, place, called), &[count], &costs, &[]);
        self.costs = costs;
        result
    }

    fn build(mut self, name: &str) -> Result<Profile> {
        // pprof and pprofdiff write calls without their number.
        let has_calls = self.has_counts;
        self.has_unknown_unit = set_unit_of_times(&mut self.events, &self.units_of_times);
        for event in &self.events {
            self.builder.sample_type(&event.kind, event.unit);
        }
        let derived = Derived::resolve(&self.derived, &self.events)?;
        for event in &derived {
            self.builder.sample_type(&event.name, "count");
        }
        if has_calls {
            self.builder.sample_type("calls", "count");
        }
        let frames = self.frames()?;
        let left_out = self.builder.function(LEFT_OUT_NAME, "", 0);
        let left_out = self.builder.location(None, 0, &[self.builder.line(left_out, 0)])?;
        let n_events = self.events.len();
        let key = self.builder.string("thread");
        let (mut leaf_first, mut values) = (Vec::new(), Vec::new());
        let builder = &mut self.builder;
        self.places = Interner::default();
        let graph = std::mem::replace(&mut self.graph, CallGraph::new(0, 0, 0));
        let estimate = graph.stacks(
            if self.is_xdebug { Balance::Measured } else { Balance::Exact },
            |thread, places, numbers| {
                leaf_first.clear();
                leaf_first.extend(
                    places.iter().map(|&place| if place == LEFT_OUT { left_out } else { frames[place as usize] }),
                );
                values.clear();
                values.extend_from_slice(&numbers[..n_events]);
                for event in &derived {
                    values.push(event.value(&values)?);
                }
                if has_calls {
                    values.push(numbers[n_events]);
                }
                let thread = StringId(thread);
                let label = Label { key, value: LabelValue::Text(thread) };
                builder.sample(
                    &leaf_first,
                    &values,
                    if thread == StringId::EMPTY { &[] } else { std::slice::from_ref(&label) },
                )
            },
        )?;
        drop(frames);
        let notes = self.notes(&estimate);
        for note in &notes {
            let note = self.builder.string(note);
            self.builder.header().comments.push(note);
        }
        if let Some(first) = self.events.first() {
            let first = self.builder.string(&first.kind);
            self.builder.header().default_sample_type = first;
        }
        let CallgrindFile { builder, .. } = self;
        Ok(builder.build(name)?.with_notes(notes))
    }

    /// Returns the location of each place.
    fn frames(&mut self) -> Result<Vec<LocationId>> {
        let shown = std::mem::take(&mut self.shown);
        let text = |id: StringId| shown.get(&id).map_or(&[][..], Vec::as_slice);
        // Names of files and binaries that callgrind does not know.
        let known = |id: StringId| Some(text(id)).filter(|text| *text != b"???").unwrap_or_default();
        // The names of functions without their callers.
        let bases: HashSet<&[u8]> = self.keys.iter().map(|key| first_part(text(key.3))).collect();
        let mut mappings: HashMap<StringId, Option<MappingId>> = HashMap::default();
        let mut functions: HashMap<(StringId, StringId), FunctionId> = HashMap::default();
        let mut frames = Vec::with_capacity(self.places.values.len());
        let builder = &mut self.builder;
        for &(number, file, line) in &self.places.values {
            let (_, binary, _, name) = self.keys[number as usize];
            let function = match functions.get(&(name, file)) {
                Some(&function) => function,
                None => {
                    // A long name with many files, or the reverse, is copied and hashed for each of them.
                    self.texts.take(text(name).len() + text(file).len())?;
                    let (base, callers) = without_callers(text(name), &bases);
                    self.has_separate_callers |= callers;
                    let function = builder.function(base, known(file), 0);
                    functions.insert((name, file), function);
                    function
                }
            };
            let mapping = *mappings.entry(binary).or_insert_with(|| {
                let path = known(binary);
                (!path.is_empty()).then(|| {
                    let file = builder.string(path);
                    let build_id = StringId::EMPTY;
                    builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id, flags: 0 })
                })
            });
            frames.push(builder.location(mapping, 0, &[builder.line(function, line.into())])?);
        }
        Ok(frames)
    }

    fn notes(&self, estimate: &Estimate) -> Vec<String> {
        let has_advice = self.is_callgrind && !self.has_separate_callers;
        let more = if has_advice { "; valgrind --tool=callgrind --separate-callers=10 records callers" } else { "" };
        let first = self.events.first().map_or("", |event| &event.kind);
        let mut notes = estimate.notes(first, more);
        if self.has_unknown_unit {
            let note = "the unit of sysTime is unknown: the file has no line such as \"event: sysTime : sysTime (elapsed us)\"";
            notes.push(note.to_owned());
        }
        let stated: Vec<&Vec<i64>> =
            self.totals.iter().flatten().filter(|totals| totals.iter().any(|&t| t != 0)).collect();
        // Xdebug's totals include costs that it gives to no function.
        if !self.is_xdebug
            && let Some(other) = stated.first().filter(|_| stated.iter().all(|totals| **totals != self.sums))
        {
            let differs = self.sums.iter().zip(*other).position(|(sum, total)| sum != total).unwrap_or(0);
            let (sum, total) = (self.sums[differs], other.get(differs).copied().unwrap_or(0));
            let kind = self.events.get(differs).map_or("", |event| &event.kind);
            notes.push(format!("its costs add up to {sum} {kind}, but it states a total of {total}; is it cut off?"));
        }
        notes
    }
}

fn no_function() -> Error {
    Error::malformed("costs come after the name of a function (fn=)")
}

fn unknown_line(line: &[u8]) -> Error {
    Error::malformed(format!(
        "{} is neither a position with costs nor a name (fn=...) nor a header (events: ...) of callgrind",
        quoted(line)
    ))
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
fn number(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => text.parse().ok().filter(|_| text.as_bytes()[0].is_ascii_digit()),
    }
}

fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => i64::try_from(number(digits)?).ok().map(|value| -value),
        None => i64::try_from(number(word)?).ok(),
    }
}

fn first_part(name: &[u8]) -> &[u8] {
    name.split(|&b| b == b'\'').next().unwrap_or(name)
}

/// Returns the name of a function without the callers that callgrind appends, and true if it has callers. A part is a
/// caller if a function of the file is called so, or the number of a recursive call.
fn without_callers<'n>(name: &'n [u8], bases: &HashSet<&[u8]>) -> (&'n [u8], bool) {
    let mut parts = name.split(|&b| b == b'\'');
    let base = parts.next().unwrap_or(name);
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let mut has_callers = false;
    for part in parts {
        if !is_number(part) {
            if !bases.contains(part) {
                return (name, false);
            }
            has_callers = true;
        }
    }
    if base.is_empty() { (name, false) } else { (base, has_callers) }
}
