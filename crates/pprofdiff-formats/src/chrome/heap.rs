//! Heap profiles of V8: nested nodes, and the memory that their functions allocated.

use super::{CallNodes, NONE, call_frame, missing};
use crate::kit::json::Json;
use crate::kit::tree::StackBudget;
use pprofdiff_profile::Sampled;
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::{Error, Result};

pub(super) fn read_heap(text: &[u8], builder: &mut ProfileBuilder) -> Result<()> {
    let mut json = Json::new(text);
    let [head, samples] = json.members(["head", "samples"])?;
    json.end()?;
    let Some(head) = head else { return Err(Error::malformed("it has no `head`, the root of its nodes")) };
    builder.sample_type("inuse_space", "bytes");
    let (nodes, sizes) = read_tree(head, builder)?;
    match sampled(samples)? {
        Some(sampled) => builder.sampled(0, sampled),
        None => builder.period("space", "bytes", DEFAULT_INTERVAL),
    }
    let (mut leaf_first, mut budget) = (Vec::new(), StackBudget::for_input(text.len()));
    for (node, &size) in (0u32..).zip(&sizes).filter(|(_, size)| **size != 0) {
        nodes.stack(node, &mut leaf_first);
        budget.take(leaf_first.len(), 1)?;
        builder.sample(&leaf_first, &[size], &[])?;
    }
    Ok(())
}

/// V8's default interval between samples, in bytes. It is assumed for files without the list `samples`.
const DEFAULT_INTERVAL: i64 = 512 << 10;

/// Returns the statistics of the samples from the list `samples`, or `None` without such a list.
fn sampled(samples: Option<Json<'_>>) -> Result<Option<Sampled>> {
    let mut sampled = Sampled::default();
    let Some(mut samples) = samples.filter(|samples| !{ *samples }.null()) else { return Ok(None) };
    let mut array = samples.array()?;
    while samples.element(&mut array)? {
        let mut object = samples.object()?;
        while samples.member(&mut object, &["size"])?.is_some() {
            sampled.add(samples.number()?.scaled(0)?.0);
        }
    }
    Ok(Some(sampled))
}

/// Reads nested nodes, and the size of each. The members of a node may come in any order, so a node is complete only at
/// its end. Each node knows its parent, so the reader keeps only the node that is open.
fn read_tree(mut json: Json<'_>, builder: &mut ProfileBuilder) -> Result<(CallNodes, Vec<i64>)> {
    let (mut nodes, mut sizes) = (CallNodes::default(), Vec::new());
    let open = |nodes: &mut CallNodes, sizes: &mut Vec<i64>, parent| {
        sizes.push(0);
        nodes.open(parent)
    };
    let mut node = open(&mut nodes, &mut sizes, NONE)?;
    let mut object = json.object()?;
    // The states of the objects around the current one. Their remaining members are read after it.
    let mut outer_objects = Vec::new();
    loop {
        let in_node = |e: Error| e.in_record(|| format!("node {node}"));
        let Some(key) = json.member(&mut object, &["callFrame", "selfSize", "children"]).map_err(in_node)? else {
            if nodes.frames[node as usize].is_none() {
                return Err(in_node(missing("it has no callFrame", json)));
            }
            let parent = nodes.parents[node as usize];
            if parent == NONE {
                return Ok((nodes, sizes));
            }
            if json.element(&mut Json::within()).map_err(in_node)? {
                node = open(&mut nodes, &mut sizes, parent)?;
                object = json.object().map_err(|e| e.in_record(|| format!("node {node}")))?;
            } else {
                (node, object) = (parent, outer_objects.pop().unwrap_or_else(Json::within));
            }
            continue;
        };
        match key {
            "callFrame" => nodes.frames[node as usize] = Some(call_frame(&mut json, builder).map_err(in_node)?),
            "selfSize" => {
                let size = json.number().and_then(|number| number.scaled(0)).map_err(in_node)?;
                sizes[node as usize] = size.0;
            }
            _ if json.null() => {}
            _ => {
                let mut children = json.array().map_err(in_node)?;
                if json.element(&mut children).map_err(in_node)? {
                    node = open(&mut nodes, &mut sizes, node)?;
                    let child = json.object().map_err(|e| e.in_record(|| format!("node {node}")))?;
                    outer_objects.push(std::mem::replace(&mut object, child));
                }
            }
        }
    }
}
