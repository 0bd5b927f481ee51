//! Converts an OTLP message to `profile.proto`: merges the headers and the sample types of its profiles.

use super::attributes::AttributeRole;
use super::combine::is_1_8;
use super::dictionary::STACKS;
use super::samples::{OtlpSamples, OtlpWindow};
use super::{CURRENT, Numbering, OtlpMessage, each_number, fixed64};
use crate::LoadOptions;
use pprofdiff_profile::columns::{Header, StringId, ValueType};
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::samples::LabelValue;
use pprofdiff_profile::shared::wire::{Value, for_each_int};
use pprofdiff_profile::shared::{About, MessageWriter, Tables};
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The maximum number of sample types in a message. Each sample has a value for each type, so the output size is
/// samples times types.
const MAX_TYPES: usize = 64;

/// A sample type and its unit.
type TypeAndUnit = (StringId, StringId);

/// The fields of a profile, except its samples.
#[derive(Default)]
struct ProfileHead {
    /// The sample type, or `None` if the profile has none; it then gets the input type.
    kind: Option<TypeAndUnit>,
    /// The start in nanoseconds since 1970, or 0 if it is unknown.
    time: u64,
    /// The duration in nanoseconds.
    duration: u64,
    period_type: Option<TypeAndUnit>,
    period: i64,
    comments: Vec<StringId>,
    /// Indexes of the distinct attributes in [`OtlpMessage::attributes`].
    attributes: Vec<u32>,
}

impl OtlpMessage<'_> {
    /// Converts the message to `profile.proto`.
    pub(super) fn convert(&mut self, numbering: Option<Numbering>, options: &LoadOptions) -> Result<Vec<u8>> {
        let input_type = (self.text(options.input_type.0.as_bytes()), self.text(options.input_type.1.as_bytes()));
        let (mut types, mut about, mut samples) =
            (OtlpTypes::default(), MergedHeader::default(), OtlpSamples::default());
        let mut profiles = Vec::with_capacity(self.profiles.len());
        for number in 0..self.profiles.len() {
            let name = || format!("profile {number}");
            let head =
                self.head(number, numbering).map_err(|e| e.in_record(name).at(self.profiles[number].0 as usize))?;
            about.add(self, &head);
            let values = &self.attributes.values;
            let attributes = head.attributes.iter().filter(|&&a| !values[a as usize].1.is_of_profiles());
            let context: Vec<u32> = std::iter::once(self.profiles[number].1).chain(attributes.copied()).collect();
            profiles.push((types.number(head.kind.unwrap_or(input_type))?, samples.contexts.number(&context)));
        }
        let (columns, mut header) = (types.columns(self, input_type)?, about.finish());
        let mut window = options.time.as_ref().map(|time| OtlpWindow::new(self, time, &header)).transpose()?;
        for (number, (kind, context)) in profiles.into_iter().enumerate() {
            if let Some(column) = columns.by_type[kind as usize] {
                self.add_samples(number, numbering.unwrap_or(CURRENT), column, context, window.as_mut(), &mut samples)?;
            }
        }
        if let Some(window) = window {
            window.timeline.finish(&mut header)?;
        }
        self.write(&columns.types, &header, &samples, options)
    }

    /// Reads the fields of a profile, except its samples.
    fn head(&mut self, number: usize, numbering: Option<Numbering>) -> Result<ProfileHead> {
        let mut fields = self.profile(number);
        let mut head = ProfileHead::default();
        // Protocol 1.8 has comments in field 7. The later fields have numbers one higher, and different types.
        let is_1_8 = numbering != Some(CURRENT) && is_1_8(fields.clone())?;
        let (mut field_7, mut field_11, mut field_12) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            match (field, value) {
                (1 | 5, _) => {
                    let [kind, unit] = fields.message(value)?.numbers()?;
                    let read = Some((self.canonical(kind)?, self.canonical(unit)?));
                    if field == 1 { head.kind = read } else { head.period_type = read }
                }
                (3, _) => {
                    head.time = fixed64(self.data, start, fields.offset()).ok_or_else(|| not_a_time().at(start))?
                }
                (4, _) => head.duration = value.varint()?,
                (6, _) => head.period = value.int()?,
                (7, _) => field_7.push(value),
                (11, _) => field_11.push(value),
                (12, Value::Bytes(_)) => field_12.push(value),
                _ => {}
            }
        }
        for value in if is_1_8 { field_12 } else { field_11 } {
            self.read_attributes(value, &mut head.attributes)?;
        }
        for value in field_7.into_iter().filter(|_| is_1_8) {
            for_each_int(value, |v| {
                head.comments.push(self.canonical(v)?);
                Ok(())
            })?;
        }
        head.attributes.sort_unstable();
        head.attributes.dedup();
        Ok(head)
    }

    fn write(
        &self,
        types: &[(StringId, StringId)],
        header: &Header,
        samples: &OtlpSamples,
        options: &LoadOptions,
    ) -> Result<Vec<u8>> {
        let mut writer = MessageWriter::default();
        writer.begin(self, types.iter().copied());
        let mut values = vec![0; types.len()];
        let mut last_stack = None;
        for number in 0..samples.keys.len() as u32 {
            let (key, context) = samples.key(number);
            if last_stack.replace(key[1]) != Some(key[1]) {
                writer.begin_stack();
                each_number(self.record(STACKS, key[1]), 1, |location| {
                    writer.location(location as u32);
                    Ok(())
                })?;
            }
            values.fill(0);
            samples.values(number, |column, value| values[column as usize] = value);
            let attributes = key[2..].iter().chain(&context[1..]).map(|&a| self.attributes.values[a as usize].0);
            let resource = self.resources.get(context[0]).iter().copied();
            writer.sample(&values, attributes.chain(resource));
            if writer.ended().len() as u64 > options.inflated_limit {
                let detail = format!(
                    "the profile exceeds the limit of {} bytes, because each sample repeats its stack; set a \
                     higher limit",
                    options.inflated_limit
                );
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        writer.finish(self, &About { header, duration_nanos: header.duration_nanos, comment: None });
        Ok(writer.into_message())
    }
}

fn not_a_time() -> Error {
    Error::malformed("field 3 is not a time; releases of the protocol before 1.8 are not supported")
}

/// The distinct sample types, in the order of their first occurrence.
#[derive(Default)]
struct OtlpTypes {
    numbers: HashMap<TypeAndUnit, u32>,
    types: Vec<TypeAndUnit>,
}

/// The sample types that are read.
struct OtlpColumns {
    types: Vec<TypeAndUnit>,
    /// The column of each sample type in `OtlpTypes::types`, or `None` if the type was not chosen.
    by_type: Vec<Option<u32>>,
}

impl OtlpTypes {
    fn number(&mut self, kind: TypeAndUnit) -> Result<u32> {
        let next = self.types.len();
        let number = *self.numbers.entry(kind).or_insert(next as u32);
        if number as usize == next {
            if next == MAX_TYPES {
                return Err(Error::new(ErrorKind::Limit, format!("there are more than {MAX_TYPES} sample types")));
            }
            self.types.push(kind);
        }
        Ok(number)
    }

    /// Returns the columns of all types. If a type occurs in several units, only the input type with its unit is kept.
    ///
    /// # Errors
    /// A type occurs in several units, and the input type is none of them.
    fn columns(&self, message: &OtlpMessage<'_>, input_type: TypeAndUnit) -> Result<OtlpColumns> {
        let mut columns = OtlpColumns { types: Vec::new(), by_type: Vec::new() };
        for &kind in &self.types {
            let alike: Vec<TypeAndUnit> = self.types.iter().copied().filter(|other| other.0 == kind.0).collect();
            let is_read = alike.len() == 1 || kind == input_type;
            if !is_read && !alike.contains(&input_type) {
                return Err(ambiguous(message, &alike));
            }
            columns.by_type.push(is_read.then_some(columns.types.len() as u32));
            columns.types.extend(is_read.then_some(kind));
        }
        Ok(columns)
    }
}

fn ambiguous(message: &OtlpMessage<'_>, types: &[TypeAndUnit]) -> Error {
    let text = |id| String::from_utf8_lossy(message.string(id));
    let types: Vec<String> = types.iter().map(|t| format!("{}/{}", text(t.0), text(t.1))).collect();
    let detail = "which cannot be read together; choose one with --input-type";
    Error::malformed(format!("there are profiles of {}, {detail} {}", types.join(" and of "), types[0]))
}

/// The merged headers of the profiles. The time span covers all profiles with a start time; if there are none, the
/// duration is the longest of all. The period is kept only if all profiles that have a period agree. Comments are added
/// up, and of the other texts, the last counts.
#[derive(Default)]
struct MergedHeader {
    header: Header,
    /// The earliest start, in nanoseconds since 1970, or 0 if no profile has a start time.
    start: u64,
    /// The latest end of a profile with a start time.
    end: u64,
    /// The longest duration in nanoseconds.
    longest: u64,
    /// The first two distinct periods with their types. The period is unclear if there are two.
    periods: Vec<(Option<TypeAndUnit>, i64)>,
}

impl MergedHeader {
    fn add(&mut self, message: &OtlpMessage<'_>, head: &ProfileHead) {
        if head.time != 0 {
            let end = head.time.saturating_add(head.duration);
            self.start = if self.start == 0 { head.time } else { self.start.min(head.time) };
            self.end = self.end.max(end);
        }
        self.longest = self.longest.max(head.duration);
        let period = (head.period_type, head.period);
        if period != (None, 0) && self.periods.len() < 2 && !self.periods.contains(&period) {
            self.periods.push(period);
        }
        self.header.comments.extend_from_slice(&head.comments);
        for &attribute in &head.attributes {
            let (label, role) = message.attributes.values[attribute as usize];
            let LabelValue::Text(text) = label.value else { continue };
            let h = &mut self.header;
            match role {
                AttributeRole::Comment => h.comments.push(text),
                AttributeRole::DropFrames => h.drop_frames = text,
                AttributeRole::KeepFrames => h.keep_frames = text,
                AttributeRole::DocUrl => h.doc_url = text,
                _ => {}
            }
        }
    }

    fn finish(mut self) -> Header {
        let mut seen: HashSet<_> = HashSet::default();
        self.header.comments.retain(|comment| seen.insert(*comment));
        if let [(kind, period)] = self.periods[..] {
            self.header.period_type = kind.map(|(kind, unit)| ValueType { kind, unit });
            self.header.period = period;
        }
        let duration = if self.start == 0 { self.longest } else { self.end - self.start };
        let nanos = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        (self.header.time_nanos, self.header.duration_nanos) = (nanos(self.start), nanos(duration));
        self.header
    }
}
