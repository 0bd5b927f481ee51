//! JSON lines, as `--jsonl` writes them: the number of samples of each frame, without stacks and times. The docstring of
//! `profiling/sampling/jsonl_collector.py` specifies the records. They come in this order:
//!
//! ```text
//! {"type":"meta","v":0,"run_id":"..","sample_interval_usec":1000,"mode":"wall"}
//! {"type":"string_table",..,"strings":[{"str_id":0,"value":"a.py"},..]}
//! {"type":"frame_table",..,"frames":[{"frame_id":0,"path_str_id":0,"func_str_id":1,"line":3,"col":4},..]}
//! {"type":"agg",..,"kind":"frame","scope":"final","samples_total":9,"entries":[{"frame_id":0,"self":5,"cumulative":9},..]}
//! {"type":"end",..,"samples_total":9}
//! ```
//!
//! CPython's main branch calls the tables `str_def` and `frame_def`, and their lists `defs`; both spellings are read. A
//! file may contain several recordings, which are added up.
//!
//! Each frame becomes a stack of its own with the samples in which it was the innermost frame (`self`), so the flat
//! values are exact. The number of samples in which the frame was anywhere on the stack (`cumulative`) is not read,
//! because a profile derives it from stacks. A warning says so.

use super::{MODES, location, nanos, write};
use crate::kit::json::{self, Json};
use crate::kit::tree::{TextBudget, ValueTree, too_large};
use crate::{InputFormat, LoadOptions};
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, Profile, Result};
use std::borrow::Cow;

pub(crate) const JSONL: InputFormat = InputFormat {
    name: "cpython-jsonl",
    about: "sums of CPython's profiling.sampling --jsonl, without stacks",
    has_times: false,
    has_events: false,
    recognises: |head| {
        let keys = json::keys(head);
        ["type", "run_id", "sample_interval_usec"].iter().all(|key| keys.iter().any(|k| **k == *key.as_bytes()))
    },
    read,
};

fn read(name: &str, text: Vec<u8>, _: &LoadOptions) -> Result<Profile> {
    let mut file = JsonlFile {
        builder: ProfileBuilder::new(),
        strings: HashMap::default(),
        frames: HashMap::default(),
        tree: ValueTree::new(),
        texts: TextBudget::for_input(text.len()),
        about: None,
        total: 0,
        is_open: false,
    };
    file.read(&text)?;
    let JsonlFile { mut builder, tree, about, .. } = file;
    let (interval, mode) = about.unwrap_or((0, None));
    write(&tree, mode, interval, text.len(), &mut builder, |(), _| {})?;
    drop(text);
    let note = "it has sums of frames and no stacks, so cumulative values are equal to flat values; record with --binary \
                to get stacks";
    Ok(builder.build(name)?.with_notes(vec![note.to_owned()]))
}

/// A file while it is read. The tables are those of the current recording.
struct JsonlFile<'t> {
    builder: ProfileBuilder,
    strings: HashMap<i64, Cow<'t, [u8]>>,
    /// The location of each frame, or `None` for frames of the profiler itself.
    frames: HashMap<i64, Option<LocationId>>,
    tree: ValueTree<()>,
    texts: TextBudget,
    /// The sampling interval in nanoseconds, and the mode.
    about: Option<(i64, Option<&'static str>)>,
    /// The number of samples of the current recording.
    total: i64,
    /// True until the current recording ends.
    is_open: bool,
}

impl<'t> JsonlFile<'t> {
    fn read(&mut self, text: &'t [u8]) -> Result<()> {
        let mut json = Json::new(text);
        let mut number = 0u64;
        while json.end().is_err() {
            let begin = json.offset();
            self.read_record(&mut json).map_err(|e| e.in_record(|| format!("record {number}")).at(begin))?;
            number += 1;
        }
        if self.is_open || self.about.is_none() {
            return Err(Error::malformed("its last record is missing (`end`); it was cut off").at(text.len()));
        }
        Ok(())
    }

    fn read_record(&mut self, json: &mut Json<'t>) -> Result<()> {
        let begin = json.offset();
        let names = [
            "type",
            "sample_interval_usec",
            "mode",
            "strings",
            "frames",
            "defs",
            "kind",
            "scope",
            "entries",
            "samples_total",
        ];
        let [kind, interval, mode, strings, frames, definitions, sums, scope, entries, total] = json.members(names)?;
        let missing = |member: &str| Error::malformed(format!("`{member}` is missing")).at(begin);
        let kind = text(kind.ok_or_else(|| missing("type"))?)?;
        match &*kind {
            b"meta" => self.begin(interval.ok_or_else(|| missing("sample_interval_usec"))?, mode),
            b"string_table" | b"str_def" => {
                self.read_strings(strings.or(definitions).ok_or_else(|| missing("strings"))?)
            }
            b"frame_table" | b"frame_def" => self.read_frames(frames.or(definitions).ok_or_else(|| missing("frames"))?),
            b"agg" => {
                let [sums, scope] = [sums, scope].map(|place| place.map(text).transpose());
                if sums?.as_deref() == Some(b"frame") && scope?.as_deref() == Some(b"final") {
                    self.read_sums(entries.ok_or_else(|| missing("entries"))?)?;
                }
                Ok(())
            }
            b"end" => self.end(total.ok_or_else(|| missing("samples_total"))?),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, mut interval: Json<'t>, mode: Option<Json<'t>>) -> Result<()> {
        let place = interval.offset();
        if self.is_open {
            return Err(Error::malformed("the recording before it lacks its last record (`end`)").at(place));
        }
        let micros = u64::try_from(interval.number()?.whole()?).ok().filter(|&micros| micros > 0);
        let micros =
            micros.ok_or_else(|| Error::malformed("`sample_interval_usec` must be greater than zero").at(place))?;
        let mode = mode.map(text).transpose()?;
        let mode = mode.and_then(|mode| MODES.into_iter().find(|known| known.as_bytes() == &*mode));
        let about = (nanos(micros)?, mode);
        if self.about.is_some_and(|other| other != about) {
            let detail =
                "it has recordings with different intervals or modes, which must not be added up; split the file";
            return Err(Error::malformed(detail).at(place));
        }
        self.about = Some(about);
        self.strings.clear();
        self.frames.clear();
        (self.total, self.is_open) = (0, true);
        Ok(())
    }

    fn read_strings(&mut self, mut list: Json<'t>) -> Result<()> {
        let mut array = list.array()?;
        while list.element(&mut array)? {
            let begin = list.offset();
            let [id, value] = list.members(["str_id", "value"])?;
            let (Some(id), Some(value)) = (id, value) else {
                return Err(Error::malformed("a string lacks `str_id` or `value`").at(begin));
            };
            if self.strings.insert(number(id)?, text(value)?).is_some() {
                return Err(Error::malformed("another string has the same `str_id`").at(begin));
            }
        }
        Ok(())
    }

    fn read_frames(&mut self, mut list: Json<'t>) -> Result<()> {
        let mut array = list.array()?;
        while list.element(&mut array)? {
            let begin = list.offset();
            let names = ["frame_id", "path_str_id", "func_str_id", "line", "col"];
            let [Some(id), Some(file), Some(name), line, column] = list.members(names)? else {
                return Err(Error::malformed("a frame lacks `frame_id`, `path_str_id` or `func_str_id`").at(begin));
            };
            let find = |place: Json<'t>| {
                let id = number(place)?;
                let unknown = || Error::malformed(format!("unknown string {id}")).at(place.offset());
                self.strings.get(&id).ok_or_else(unknown)
            };
            let (file, name) = (find(file)?, find(name)?);
            self.texts.take(file.len() + name.len())?;
            let [line, column] = [line, column].map(|place| place.map_or(Ok(-1), number));
            let location = location(&mut self.builder, name, file, line?, column?)?;
            if self.frames.insert(number(id)?, location).is_some() {
                return Err(Error::malformed("another frame has the same `frame_id`").at(begin));
            }
        }
        Ok(())
    }

    fn read_sums(&mut self, mut list: Json<'t>) -> Result<()> {
        if !self.is_open {
            let detail = "sums outside of a recording; its first record (`meta`) is missing";
            return Err(Error::malformed(detail).at(list.offset()));
        }
        let root = self.tree.root(());
        let mut array = list.array()?;
        while list.element(&mut array)? {
            let begin = list.offset();
            let [Some(id), Some(count)] = list.members(["frame_id", "self"])? else {
                return Err(Error::malformed("a sum lacks `frame_id` or `self`").at(begin));
            };
            let (id, count) = (number(id)?, number(count)?);
            let unknown = || Error::malformed(format!("unknown frame {id}")).at(begin);
            let frame = *self.frames.get(&id).ok_or_else(unknown)?;
            if count < 0 {
                return Err(Error::malformed(format!("its number of samples, {count}, is negative")).at(begin));
            }
            self.total = self.total.checked_add(count).ok_or_else(too_large)?;
            if let Some(location) = frame {
                let node = self.tree.child(root, location);
                self.tree.add(node, count)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, total: Json<'t>) -> Result<()> {
        let stated = number(total)?;
        if stated != self.total {
            let detail = format!("it states {stated} samples, but the frames have {}; a record is missing", self.total);
            return Err(Error::malformed(detail).at(total.offset()));
        }
        self.is_open = false;
        Ok(())
    }
}

fn text(mut json: Json<'_>) -> Result<Cow<'_, [u8]>> {
    Ok(json.string()?.bytes())
}

fn number(mut json: Json<'_>) -> Result<i64> {
    json.number()?.whole()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kit::tree::rows;

    const META: &str = r#"{"type":"meta","v":0,"run_id":"a","sample_interval_usec":1000,"mode":"cpu"}"#;
    const STRINGS: &str = r#"{"type":"string_table","strings":[{"str_id":0,"value":"f"},{"str_id":1,"value":"a.py"},{"str_id":2,"value":"~"},{"str_id":3,"value":"<GC>"},{"str_id":4,"value":"/x/_sync_coordinator.py"}]}"#;
    const FRAMES: &str = r#"{"type":"frame_table","frames":[{"frame_id":0,"path_str_id":1,"func_str_id":0,"line":3,"end_line":3,"col":4},{"frame_id":1,"path_str_id":2,"func_str_id":3,"line":0},{"frame_id":2,"path_str_id":4,"func_str_id":0,"line":9}]}"#;
    const SUMS: &str = r#"{"type":"agg","kind":"frame","scope":"final","samples_total":6,"entries":[{"frame_id":0,"self":3,"cumulative":5},{"frame_id":1,"self":2,"cumulative":2},{"frame_id":2,"self":1,"cumulative":6}]}"#;
    const END: &str = r#"{"type":"end","samples_total":6}"#;

    fn load(text: &str) -> Result<Profile> {
        crate::from_bytes("in", text.as_bytes(), &LoadOptions::default())
    }

    #[test]
    fn each_frame_has_its_own_samples() {
        let whole = [META, STRINGS, FRAMES, SUMS, END].join("\n") + "\n";
        let p = load(&whole).unwrap();
        assert_eq!(rows(&p), ["<GC>: 2 2000000", "f a.py:3:5: 3 3000000"]);
        assert!(p.warnings()[0].contains("record with --binary to get stacks"), "{:?}", p.warnings());
        // Two recordings add up. The main branch of CPython has other names for the tables.
        let other = whole.replace("string_table", "str_def").replace("frame_table", "frame_def");
        let other = other.replace("\"strings\"", "\"defs\"").replace("\"frames\"", "\"defs\"");
        assert_eq!(rows(&load(&(whole + &other)).unwrap()), ["<GC>: 4 4000000", "f a.py:3:5: 6 6000000"]);
    }

    #[test]
    fn errors_name_the_record() {
        for (records, words) in [
            ([META, STRINGS, FRAMES, SUMS, ""], "its last record is missing (`end`); it was cut off"),
            (
                [META, STRINGS, FRAMES, "", END],
                "record 3: it states 6 samples, but the frames have 0; a record is missing",
            ),
            ([META, "", FRAMES, SUMS, END], "record 1: unknown string 1"),
            ([META, STRINGS, "", SUMS, END], "record 2: unknown frame 0"),
            ([META, STRINGS, STRINGS, SUMS, END], "record 2: another string has the same `str_id`"),
            ([META, FRAMES, META, SUMS, END], "record 1: unknown string 1"),
            ([META, META, FRAMES, SUMS, END], "record 1: the recording before it lacks its last record"),
            ([META, "{}", FRAMES, SUMS, END], "record 1: `type` is missing"),
            ([META, "7", FRAMES, SUMS, END], "record 1: expected an object, not '7'"),
        ] {
            let error = load(&records.join("\n")).unwrap_err();
            assert!(error.to_string().contains(words) && error.offset().is_some(), "{words}: {error}");
        }
    }
}
