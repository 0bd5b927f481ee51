//! CPU profiles of V8: the ticks of its clock, and the time that each node gets.

use super::{CallNodes, NONE, NodeRole, call_frame, missing};
use crate::kit::json::Json;
use crate::kit::tree::{StackBudget, too_large};
use pprofdiff_profile::TimeWindow;
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::Label;
use pprofdiff_profile::shared::Timeline;
use pprofdiff_profile::{Error, Result};

/// A microsecond in nanoseconds, as a power of ten.
pub(super) const MICROSECONDS: i64 = 3;

/// Ids of the nodes of samples, and the microseconds before each sample.
pub(super) type SampleLists<'t> = (Json<'t>, Json<'t>);

pub(super) fn read_cpu(text: &[u8], window: Option<&TimeWindow>, builder: &mut ProfileBuilder) -> Result<()> {
    let names = ["nodes", "samples", "timeDeltas", "startTime", "endTime", "head"];
    let mut json = Json::new(text);
    let [nodes, samples, deltas, start, end, head] = json.members(names)?;
    json.end()?;
    let Some(nodes) = nodes else {
        return Err(Error::malformed(match head {
            Some(_) => {
                "it is in the format that Chrome wrote until 2016, with `head`; open it in a current Chrome and save it \
                 again"
            }
            None => "it has no `nodes`",
        }));
    };
    let (nodes, ids, hits) = read_nodes(&[nodes], builder)?;
    let time = |place: Option<Json<'_>>| {
        place.map(|mut json| json.number()?.scaled(MICROSECONDS).map(|(nanos, _)| nanos)).transpose()
    };
    let duration = match (time(start)?, time(end)?) {
        (Some(start), Some(end)) => Some(end.checked_sub(start).ok_or_else(too_large)?.max(0)),
        _ => None,
    };
    builder.header().duration_nanos = duration.unwrap_or(0);
    let mut timeline = window.map(|window| Timeline::new(window, None)).transpose()?;
    let mut times = NodeTimes::new(&nodes, &ids, 0, timeline.as_mut());
    let is_timed = match (samples, deltas) {
        (Some(samples), Some(deltas)) => times.add_up(&[(samples, deltas)], duration).map(|_| true)?,
        _ if window.is_some() => return Err(Error::query("it has no times of samples (`timeDeltas`) to select")),
        (Some(samples), None) => {
            each_sample(samples, &mut 0, |id| times.count(id, 0).map(|_| ()))?;
            times.share(duration)?
        }
        (None, _) => {
            times.counts = hits;
            times.share(duration)?
        }
    };
    let NodeTimes { counts, nanos, .. } = times;
    add_types(is_timed, builder);
    if let Some(timeline) = timeline {
        timeline.finish(builder.header())?;
    }
    let mut budget = StackBudget::for_input(text.len());
    write_nodes(&nodes, [&counts, &nanos], is_timed, &[], &mut budget, builder)
}

/// Adds the sample types.
pub(super) fn add_types(is_timed: bool, builder: &mut ProfileBuilder) {
    builder.sample_type("samples", "count");
    if is_timed {
        builder.sample_type("wall", "nanoseconds");
        builder.sample_type("cpu", "nanoseconds");
        let default = builder.string("cpu");
        builder.header().default_sample_type = default;
    }
}

/// Adds a sample for each node with a count or a time, which are in the order of the nodes.
pub(super) fn write_nodes(
    nodes: &CallNodes,
    [counts, nanos]: [&[i64]; 2],
    is_timed: bool,
    labels: &[Label],
    budget: &mut StackBudget,
    builder: &mut ProfileBuilder,
) -> Result<()> {
    let n_types = if is_timed { 3 } else { 1 };
    let mut leaf_first = Vec::new();
    for (node, (&count, &nanos)) in (0u32..).zip(counts.iter().zip(nanos)) {
        let is_idle = nodes.frames[node as usize].is_some_and(|(_, role)| role == NodeRole::Idle);
        let values = if is_idle { [0, nanos, 0] } else { [count, nanos, nanos] };
        if values[..n_types].iter().all(|&v| v == 0) {
            continue;
        }
        nodes.stack(node, &mut leaf_first);
        budget.take(leaf_first.len(), n_types)?;
        builder.sample(&leaf_first, &values[..n_types], labels)?;
    }
    Ok(())
}

/// Nodes with their indexes by id, and their hit counts.
pub(super) type ReadNodes = (CallNodes, HashMap<i64, u32>, Vec<i64>);

/// Reads lists of nodes, which belong to one tree.
pub(super) fn read_nodes(lists: &[Json<'_>], builder: &mut ProfileBuilder) -> Result<ReadNodes> {
    let mut read: ReadNodes = (CallNodes::default(), HashMap::default(), Vec::new());
    for &list in lists {
        read_list(list, &mut read, builder)?;
    }
    let (mut nodes, ids, hits) = read;
    let mut number = 0;
    for &list in lists {
        link(list, &mut nodes, &ids, &mut number)?;
    }
    let begin = lists.first().map_or(0, Json::offset);
    nodes.check_ends().map_err(|e| e.at(begin))?;
    Ok((nodes, ids, hits))
}

fn read_list(mut json: Json<'_>, (nodes, ids, hits): &mut ReadNodes, builder: &mut ProfileBuilder) -> Result<()> {
    let mut array = json.array()?;
    while json.element(&mut array)? {
        let number = nodes.open(NONE)?;
        let begin = json;
        let mut read_next = || -> Result<()> {
            let (mut id, mut hit) = (None, 0);
            let mut object = json.object()?;
            while let Some(key) = json.member(&mut object, &["id", "hitCount", "callFrame"])? {
                match key {
                    "id" => id = Some(json.number()?.whole()?),
                    "hitCount" => {
                        let place = json;
                        hit = json.number()?.whole()?;
                        if hit < 0 {
                            return Err(missing(&format!("its hitCount {hit} is negative"), place));
                        }
                    }
                    _ => nodes.frames[number as usize] = Some(call_frame(&mut json, builder)?),
                }
            }
            let id = id.ok_or_else(|| missing("it has no id", begin))?;
            if nodes.frames[number as usize].is_none() {
                return Err(missing("it has no callFrame", begin));
            }
            hits.push(hit);
            match ids.insert(id, number) {
                Some(other) => Err(missing(&format!("node {other} has the same id {id}"), begin)),
                None => Ok(()),
            }
        };
        read_next().map_err(|e| e.in_record(|| format!("node {number}")))?;
    }
    Ok(())
}

/// Reads nodes a second time and links parents and children, since all ids are known now. `next` is the index of the
/// first node, and then of the node after the last one.
fn link(mut json: Json<'_>, nodes: &mut CallNodes, ids: &HashMap<i64, u32>, next: &mut u32) -> Result<()> {
    let mut array = json.array()?;
    while json.element(&mut array)? {
        let number = *next;
        let mut read_next = || -> Result<()> {
            let mut object = json.object()?;
            while let Some(key) = json.member(&mut object, &["parent", "children"])? {
                match key {
                    "parent" => join(nodes, number, find(&mut json, ids)?, json)?,
                    _ if json.null() => {}
                    _ => {
                        let mut children = json.array()?;
                        while json.element(&mut children)? {
                            join(nodes, find(&mut json, ids)?, number, json)?;
                        }
                    }
                }
            }
            Ok(())
        };
        read_next().map_err(|e| e.in_record(|| format!("node {number}")))?;
        *next += 1;
    }
    Ok(())
}

fn join(nodes: &mut CallNodes, child: u32, parent: u32, place: Json<'_>) -> Result<()> {
    let current = &mut nodes.parents[child as usize];
    if *current != NONE && *current != parent {
        let detail = format!("node {child} is a child of this node and of node {current}");
        return Err(missing(&detail, place));
    }
    *current = parent;
    Ok(())
}

/// Reads an id, and returns the index of its node.
fn find(json: &mut Json<'_>, ids: &HashMap<i64, u32>) -> Result<u32> {
    let place = *json;
    let id = json.number()?.whole()?;
    ids.get(&id).copied().ok_or_else(|| missing(&format!("unknown node id {id}"), place))
}

/// Calls `f` at the position of each sample's id. `number` is the number of samples so far.
fn each_sample(mut samples: Json<'_>, number: &mut u64, mut f: impl FnMut(&mut Json<'_>) -> Result<()>) -> Result<()> {
    let mut array = samples.array()?;
    while samples.element(&mut array)? {
        f(&mut samples).map_err(|e| e.in_record(|| format!("sample {number}")))?;
        *number += 1;
    }
    Ok(())
}

/// The counts and times of all nodes.
pub(super) struct NodeTimes<'n> {
    ids: &'n HashMap<i64, u32>,
    pub counts: Vec<i64>,
    pub nanos: Vec<i64>,
    /// The time between the start of the recording and the start of this profile.
    begin: i64,
    /// The time window to read, if the caller set one. Its times count from the start of the recording.
    timeline: Option<&'n mut Timeline>,
}

/// A time in nanoseconds, as two halves, and a node. The sign bit is inverted, so that unsigned numbers sort by time. A
/// tick takes only twelve bytes, because there is one for each sample.
type Tick = [u32; 3];

impl<'n> NodeTimes<'n> {
    pub fn new(
        nodes: &CallNodes,
        ids: &'n HashMap<i64, u32>,
        begin: i64,
        timeline: Option<&'n mut Timeline>,
    ) -> NodeTimes<'n> {
        let zeros = vec![0; nodes.parents.len()];
        NodeTimes { ids, counts: zeros.clone(), nanos: zeros, begin, timeline }
    }

    /// Reads the id of a sample's node and returns the index of the node. Counts the sample if its time, `nanos`, is
    /// inside the time window or no window is set.
    fn count(&mut self, id: &mut Json<'_>, nanos: i64) -> Result<u32> {
        let node = find(id, self.ids)?;
        let time = self.begin.saturating_add(nanos);
        let is_read = self.timeline.as_mut().is_none_or(|timeline| timeline.contains(time));
        self.counts[node as usize] += i64::from(is_read);
        Ok(node)
    }

    /// Adds the time between two points, or the part of it inside the time window, to a node.
    fn spend(&mut self, node: u32, begin: i64, end: i64) -> Result<()> {
        let nanos = match &mut self.timeline {
            Some(timeline) => timeline.part(self.begin.saturating_add(begin), self.begin.saturating_add(end)),
            None => end.checked_sub(begin).ok_or_else(too_large)?,
        };
        let sum = &mut self.nanos[node as usize];
        *sum = sum.checked_add(nanos).ok_or_else(too_large)?;
        Ok(())
    }

    /// Adds up the counts and times of all samples. If a sample is earlier than the one before it, the times are added
    /// up again in the order of time. Returns the end of the last sample, counted from the start of this profile.
    pub fn add_up(&mut self, ticks: &[SampleLists<'_>], duration: Option<i64>) -> Result<i64> {
        let (mut first, mut last, mut now, mut n) = (0i64, None, 0i64, 0i64);
        let mut is_ordered = true;
        each_step(ticks, |id, delta| {
            let previous = now;
            now = now.checked_add(delta).ok_or_else(too_large)?;
            let node = self.count(id, now)?;
            match last {
                None => first = now,
                Some(last) => self.spend(last, previous, now)?,
            }
            is_ordered &= delta >= 0 || last.is_none();
            (last, n) = (Some(node), n + 1);
            Ok(())
        })?;
        if !is_ordered {
            self.nanos.fill(0);
            (first, now, last) = self.add_up_ordered(ticks, n)?;
        }
        let Some(last) = last else { return Ok(0) };
        // The last sample ends with the recording, as in DevTools. Some writers have no end, or an end before the last
        // sample.
        let end = match duration.filter(|&end| end >= now) {
            Some(end) => end,
            None if n == 1 => now,
            None => {
                let mean = now.checked_sub(first).ok_or_else(too_large)? / (n - 1);
                now.checked_add(mean).ok_or_else(too_large)?
            }
        };
        self.spend(last, now, end)?;
        Ok(end)
    }

    /// Adds the times of samples that are not sorted by time. Returns the first time, the last time, and the node of
    /// the last sample.
    fn add_up_ordered(&mut self, ticks: &[SampleLists<'_>], n: i64) -> Result<(i64, i64, Option<u32>)> {
        const SIGN: u64 = 1 << 63;
        let mut sorted: Vec<Tick> = Vec::with_capacity(usize::try_from(n).unwrap_or(0));
        let mut now = 0i64;
        each_step(ticks, |id, delta| {
            now = now.checked_add(delta).ok_or_else(too_large)?;
            let turned = now as u64 ^ SIGN;
            sorted.push([(turned >> 32) as u32, turned as u32, find(id, self.ids)?]);
            Ok(())
        })?;
        sorted.sort_unstable();
        let time = |tick: &Tick| ((u64::from(tick[0]) << 32 | u64::from(tick[1])) ^ SIGN) as i64;
        for pair in sorted.windows(2) {
            self.spend(pair[0][2], time(&pair[0]), time(&pair[1]))?;
        }
        let (first, last) = (sorted.first().map_or(0, time), sorted.last());
        Ok((first, last.map_or(0, time), last.map(|tick| tick[2])))
    }

    /// Distributes the total time evenly over the samples, for files without times of samples. Returns false, and
    /// leaves all times at 0, if the total time is unknown too or there are no samples.
    fn share(&mut self, duration: Option<i64>) -> Result<bool> {
        let mut total = 0i64;
        for &count in &self.counts {
            total = total.checked_add(count).ok_or_else(too_large)?;
        }
        let (Some(duration), true) = (duration, total > 0) else { return Ok(false) };
        for (nanos, &count) in self.nanos.iter_mut().zip(&self.counts) {
            *nanos = (i128::from(count) * i128::from(duration) / i128::from(total)) as i64;
        }
        Ok(true)
    }
}

/// Calls `f` with the position of each sample's id, and the nanoseconds since the previous sample. The time of the
/// first sample counts from `startTime`.
fn each_step(ticks: &[SampleLists<'_>], mut f: impl FnMut(&mut Json<'_>, i64) -> Result<()>) -> Result<()> {
    let mut number = 0;
    for &(samples, mut deltas) in ticks {
        let mut array = deltas.array()?;
        each_sample(samples, &mut number, |id| {
            if !deltas.element(&mut array)? {
                return Err(missing("`timeDeltas` has no time for this sample", deltas));
            }
            let (delta, _) = deltas.number()?.scaled(MICROSECONDS)?;
            f(id, delta)
        })?;
        if deltas.element(&mut array)? {
            return Err(missing("`timeDeltas` has more elements than `samples`", deltas));
        }
    }
    Ok(())
}
