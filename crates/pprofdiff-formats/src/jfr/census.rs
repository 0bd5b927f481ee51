//! Counts the events of each type, so that messages can list the types that are not read.

use super::metadata::{JfrClass, JfrField};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;
use pprofdiff_profile::text::sanitize;

/// The maximum number of event types that a message lists.
const MAX_NAMED: usize = 6;
/// The maximum length in bytes of an event type's name. Many types may share one text of megabytes, so longer names are
/// cut before they are stored. Types with the same cut name are counted as one.
const MAX_NAME: usize = 80;

/// The event type of a recording's own settings. Its events have a field for a stack, which is always empty.
const SETTINGS: &[u8] = b"jdk.ActiveSetting";

#[derive(Debug, Default)]
pub(super) struct Census {
    types: HashMap<Vec<u8>, Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    events: u64,
    is_read: bool,
    has_stacks: bool,
}

impl Census {
    pub fn add(&mut self, class: &JfrClass<'_>, events: u64) {
        let name = class.full_name();
        let has_stacks = class.has(JfrField::StackTrace) && name != SETTINGS;
        let is_read = class.event.is_some();
        let name = name[..name.len().min(MAX_NAME)].to_vec();
        let count = self.types.entry(name).or_insert(Count { events: 0, is_read, has_stacks });
        count.events += events;
    }

    /// Describes the event types with stack traces that are not read, or returns `None` if there are none.
    pub fn skipped(&self) -> Option<String> {
        let types = self.named(|count| count.has_stacks && !count.is_read)?;
        Some(format!("events with stacks that are not read: {types}"))
    }

    /// Describes all event types, or returns `None` if there are no events.
    pub fn all(&self) -> Option<String> {
        self.named(|_| true)
    }

    /// Names up to [`MAX_NAMED`] of the wanted types, the most frequent first, each with its number of events, and the
    /// number of further types. Returns `None` if no type is wanted.
    fn named(&self, is_wanted: impl Fn(&Count) -> bool) -> Option<String> {
        let mut types: Vec<_> = self.types.iter().filter(|(_, count)| is_wanted(count)).collect();
        sort_by(&mut types, |(name, count), (other_name, other)| (other.events, name).cmp(&(count.events, other_name)));
        let describe = |(name, count): &(&Vec<u8>, &Count)| {
            format!("{} ({})", sanitize(&String::from_utf8_lossy(name)), count.events)
        };
        let mut names: Vec<String> = types.iter().take(MAX_NAMED).map(describe).collect();
        let more = types.len().saturating_sub(MAX_NAMED);
        names.extend((more > 0).then(|| format!("{more} more types")));
        (!names.is_empty()).then(|| names.join(", "))
    }
}
