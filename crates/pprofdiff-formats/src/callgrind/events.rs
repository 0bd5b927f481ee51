//! The events of a callgrind file: their sample types, and the formulas of derived events.

use crate::kit::tree::too_large;
use crate::table::quoted;
use pprofdiff_profile::{Error, Result};

/// An event that the costs of lines state.
#[derive(Debug)]
pub(super) struct EventType {
    /// The name in the file.
    pub name: Vec<u8>,
    pub kind: String,
    pub unit: &'static str,
    /// The factor from the file's unit to `unit`.
    pub factor: i64,
}

/// The units that names of events contain: Xdebug writes `Time_(10ns)`, pprofdiff and pprof write `cpu(nanoseconds)`.
const UNITS: [(&str, &str, i64); 9] = [
    ("10ns", "nanoseconds", 10),
    ("ns", "nanoseconds", 1),
    ("nanoseconds", "nanoseconds", 1),
    ("us", "microseconds", 1),
    ("µs", "microseconds", 1),
    ("microseconds", "microseconds", 1),
    ("ms", "milliseconds", 1),
    ("milliseconds", "milliseconds", 1),
    ("bytes", "bytes", 1),
];

/// The events of callgrind that have a time in system calls, by `--collect-systime`. Their long names have the unit:
/// `event: sysTime : sysTime (elapsed us)`. Only `--collect-systime=nsec` records the second event.
const TIMES: [&str; 2] = ["sysTime", "sysCpuTime"];

/// The units of the times in system calls, as far as the long names of a file state them.
pub(super) type StatedUnits = [Option<&'static str>; TIMES.len()];

impl EventType {
    pub fn parse(name: &[u8]) -> EventType {
        let text = String::from_utf8_lossy(name).into_owned();
        let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let unit = parts.and_then(|(kind, unit)| {
            let &(_, unit, factor) = UNITS.iter().find(|(name, ..)| *name == unit)?;
            Some((kind.trim_end_matches('_').to_lowercase(), unit, factor))
        });
        let name = name.to_vec();
        match (unit, parts) {
            (Some((kind, unit, factor)), _) if !kind.is_empty() => EventType { name, kind, unit, factor },
            (_, Some((kind, "count"))) if !kind.is_empty() => {
                EventType { name, kind: kind.trim_end_matches('_').to_owned(), unit: "count", factor: 1 }
            }
            _ => {
                let unit = if TIMES.contains(&text.as_str()) { "time" } else { "count" };
                EventType { name, kind: text, unit, factor: 1 }
            }
        }
    }
}

/// Reads the unit of a time in system calls from a line after `event:`.
pub(super) fn read_unit_of_time(value: &[u8], stated: &mut StatedUnits) {
    let text = String::from_utf8_lossy(value);
    let Some((name, long_name)) = text.split_once(':') else { return };
    let Some(time) = TIMES.iter().position(|time| *time == name.trim()) else { return };
    let word = long_name.trim().strip_suffix(')').and_then(|long_name| long_name.rsplit([' ', '(']).next());
    stated[time] = match word {
        Some("ms") => Some("milliseconds"),
        Some("us") => Some("microseconds"),
        Some("ns") => Some("nanoseconds"),
        _ => None,
    };
}

/// Sets the units of the times in system calls. Returns true if a unit remains unknown.
pub(super) fn set_unit_of_times(events: &mut [EventType], stated: &StatedUnits) -> bool {
    let has_cpu_time = events.iter().any(|event| event.name == TIMES[1].as_bytes());
    let mut is_unknown = false;
    for (name, stated) in TIMES.iter().zip(stated) {
        let unit = stated.or(has_cpu_time.then_some("nanoseconds"));
        for event in events.iter_mut().filter(|event| event.name == name.as_bytes()) {
            event.unit = unit.unwrap_or(event.unit);
            is_unknown |= unit.is_none();
        }
    }
    is_unknown
}

/// An event as a sum of multiples of others: `event: CEst = Ir + 10 L1m : Cycle Estimation`.
#[derive(Debug)]
pub(super) struct Derived {
    pub name: String,
    /// The factors and the names of the events in the sum.
    terms: Vec<(i64, String)>,
}

/// A derived event in the file's own events: a factor and an index each.
#[derive(Debug)]
pub(super) struct ResolvedEvent {
    pub name: String,
    terms: Vec<(i64, usize)>,
}

impl Derived {
    /// Parses a line after `event:`. Returns `None` for lines that only give an event a long name.
    pub fn parse(value: &[u8]) -> Result<Option<Derived>> {
        let text = String::from_utf8_lossy(value);
        let definition = text.split(':').next().unwrap_or_default();
        let Some((name, formula)) = definition.split_once('=') else { return Ok(None) };
        let wrong = || {
            let detail = "is not a formula of events, such as \"event: CEst = Ir + 10 L1m\"";
            Error::malformed(format!("{} {detail}", quoted(value)))
        };
        let term = |text: &str| {
            let text = text.trim();
            let digits = text.bytes().take_while(|b| b.is_ascii_alphanumeric()).count();
            let number = if text.starts_with(|c: char| c.is_ascii_digit()) {
                let word = &text[..digits];
                // Names may follow directly: 10L1m.
                let end = word.bytes().take_while(u8::is_ascii_digit).count();
                let end = if word.starts_with("0x") { digits } else { end };
                super::signed(&text.as_bytes()[..end]).map(|number| (number, &text[end..]))
            } else {
                Some((1, text))
            };
            let (factor, rest) = number.ok_or_else(wrong)?;
            let rest = rest.trim_start();
            let name = rest.strip_prefix('*').unwrap_or(rest).trim();
            if name.is_empty() || name.contains(char::is_whitespace) {
                Err(wrong())
            } else {
                Ok((factor, name.to_owned()))
            }
        };
        let terms = formula.split('+').map(term).collect::<Result<Vec<_>>>()?;
        let name = name.trim().to_owned();
        if name.is_empty() || terms.len() > super::MAX_EVENTS {
            Err(wrong())
        } else {
            Ok(Some(Derived { name, terms }))
        }
    }

    /// Expresses derived events in the file's own events. An event may use the derived events before it. Definitions of
    /// events that the file counts itself, repeated definitions, and those with unknown events are ignored, as in
    /// KCachegrind.
    pub fn resolve(derived: &[Derived], events: &[EventType]) -> Result<Vec<ResolvedEvent>> {
        let mut resolved: Vec<ResolvedEvent> = Vec::new();
        'events: for event in derived {
            let is_known = |name: &str| events.iter().any(|own| own.name == name.as_bytes());
            if is_known(&event.name) || resolved.iter().any(|other| other.name == event.name) {
                continue;
            }
            let mut factors = vec![0i64; events.len()];
            for (factor, name) in &event.terms {
                let terms = match events.iter().position(|own| own.name == name.as_bytes()) {
                    Some(index) => vec![(1, index)],
                    None => match resolved.iter().find(|other| other.name == *name) {
                        Some(other) => other.terms.clone(),
                        None => continue 'events,
                    },
                };
                for (times, index) in terms {
                    let sum = factor.checked_mul(times).and_then(|f| factors[index].checked_add(f));
                    factors[index] = sum.ok_or_else(|| too_large_event(&event.name))?;
                }
            }
            let terms = (0..).zip(factors).map(|(i, factor)| (factor, i)).filter(|(factor, _)| *factor != 0).collect();
            resolved.push(ResolvedEvent { name: event.name.clone(), terms });
        }
        Ok(resolved)
    }
}

impl ResolvedEvent {
    /// Returns the value of the event, from the values of the file's own events.
    pub fn value(&self, costs: &[i64]) -> Result<i64> {
        let add = |sum: i64, &(factor, index): &(i64, usize)| sum.checked_add(costs[index].checked_mul(factor)?);
        self.terms.iter().try_fold(0, add).ok_or_else(|| too_large_event(&self.name))
    }
}

/// Returns the error for a derived event whose values do not fit in an int64.
fn too_large_event(name: &str) -> Error {
    too_large().in_record(|| format!("event {}", quoted(name.as_bytes())))
}
