//! Recognises content that begins with one or several OTLP messages.

use crate::kit::json;
use crate::table::HEAD;
use pprofdiff_profile::shared::is_packed;
use pprofdiff_profile::shared::wire::varint;

/// Returns true for protobuf or JSON, with one message or several ([`combine`](super::combine)).
pub(super) fn recognises(head: &[u8]) -> bool {
    is_json(head) || length_of(head).is_some() || is_message(head)
}

/// Returns true for JSON with the top-level keys of a message. A message may be large, so its end is not needed.
pub(super) fn is_json(head: &[u8]) -> bool {
    let head = &head[..head.len().min(HEAD)];
    let keys = json::keys(head);
    let has = |key: &str| keys.iter().any(|k| **k == *key.as_bytes());
    has("resourceProfiles") || has("dictionary") && json::contains(head, "\"stringTable\"")
}

/// Returns the length of the first message, if the content begins with the length prefix of several messages. A plain
/// message begins with a byte of 8 or more, its first field. To be distinguished from it, the first of several messages
/// must be smaller than 128 MiB.
pub(super) fn length_of(head: &[u8]) -> Option<usize> {
    let (length, content) = head.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    let content = &content[..content.len().min(length).min(HEAD)];
    let is_first = length < 8 << 24 && (is_packed(content) || is_json(content) || is_message(content));
    is_first.then_some(length)
}

/// Returns true if the beginning has the outer levels of the message, and either the first field of a profile (a type
/// of two numbers) or a table of strings or stacks. Traces, metrics and logs have the same outer levels.
fn is_message(head: &[u8]) -> bool {
    let (mut profiles, mut dictionary) = (false, false);
    let fits = each_field(head, |field, kind, content| match (field, kind) {
        (1, 2) => each_field(content, |field, kind, content| match (field, kind) {
            (2, 2) => each_field(content, |field, kind, content| match (field, kind) {
                (2, 2) => is_profile(content, &mut profiles),
                (1 | 3, 2) => true,
                _ => false,
            }),
            (1 | 3, 2) => true,
            _ => false,
        }),
        (2, 2) => each_field(content, |field, kind, _| {
            dictionary |= field == 5 || field == 7;
            (1..=8).contains(&field) && kind == 2
        }),
        _ => false,
    });
    fits && (profiles || dictionary)
}

/// Returns true for a profile of any release. Releases before 1.8 are included, so that the reader can explain the
/// error.
fn is_profile(content: &[u8], seen: &mut bool) -> bool {
    each_field(content, |field, kind, content| match (field, kind) {
        (1, 2) => {
            *seen = true;
            each_field(content, |field, kind, _| (1..=3).contains(&field) && kind == 0)
        }
        (3, 1) => true,
        (2..=3 | 5 | 7..=22, 2) | (4..=16 | 19, 0) => true,
        _ => false,
    })
}

/// Calls `f` with the number, the wire type and the content of each field of a message that may be cut off. Returns
/// false if the content is not a message or `f` returns false.
fn each_field(mut rest: &[u8], mut f: impl FnMut(u64, u64, &[u8]) -> bool) -> bool {
    // A number has at most ten bytes, so a number that is incomplete after fewer bytes was cut off.
    let cut_off = |rest: &[u8]| rest.len() < 10;
    while !rest.is_empty() {
        let Some((key, n)) = varint(rest) else { return cut_off(rest) };
        rest = &rest[n..];
        let kind = key & 7;
        let len = match (kind, varint(rest)) {
            (0, Some((_, n))) => n as u64,
            (1, _) => 8,
            (5, _) => 4,
            (2, Some((len, n))) => {
                rest = &rest[n..];
                len
            }
            (0 | 2, None) => return cut_off(rest),
            _ => return false,
        };
        let (content, after) = rest.split_at(len.min(rest.len() as u64) as usize);
        if key >> 3 == 0 || !f(key >> 3, kind, content) {
            return false;
        }
        rest = after;
    }
    true
}
