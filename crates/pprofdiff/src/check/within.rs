//! Finds the findings that contain other findings, and the source locations of their functions.

use pprofdiff_profile::random::HashMap;

use super::{Finding, Outcome, SourceLocation};
use crate::diff::{Sort, identity};
use crate::runs::MeasuredRuns;

/// The outcomes whose findings nest.
const OUTCOMES: [Outcome; 3] = [Outcome::Fail, Outcome::Inconclusive, Outcome::Allowed];

/// Sets `within` of each failed, inconclusive or allowed finding to the finding with the same outcome that contains most
/// of its value. If frames that call one another have equal cost in all runs, the innermost frame represents them,
/// because it is the most specific. Findings on the flat cost of frames do not nest.
pub(super) fn nest(findings: &mut [Finding], cost: Sort, runs: &MeasuredRuns) {
    if cost != Sort::Cum {
        return;
    }
    // By outcome: its findings. A single finding has nothing to nest in.
    let with_outcome = |outcome: Outcome| {
        let chosen: Vec<usize> = (0..findings.len()).filter(|&i| findings[i].outcome == outcome).collect();
        if chosen.len() < 2 { Vec::new() } else { chosen }
    };
    let chosen = OUTCOMES.map(with_outcome);
    if chosen.iter().all(Vec::is_empty) {
        return;
    }
    let by_name = |chosen: &Vec<usize>| -> HashMap<&str, usize> {
        chosen.iter().filter_map(|&i| Some((findings[i].frame.as_deref()?, i))).collect()
    };
    let by_name = chosen.each_ref().map(by_name);
    let of_frame = |frame: u32| {
        let label = runs.frames().label(frame);
        by_name.each_ref().map(|by_name| by_name.get(label.as_str()).copied())
    };
    let findings_of_frame: Vec<[Option<usize>; OUTCOMES.len()]> =
        (0..runs.frames().len() as u32).map(of_frame).collect();
    let has_finding: Vec<bool> =
        findings_of_frame.iter().map(|findings| findings.iter().any(Option::is_some)).collect();
    let is_chained = |a: usize, b: usize| {
        [(&findings[a].base, &findings[b].base), (&findings[a].new, &findings[b].new)].iter().all(|(a, b)| a == b)
    };
    // For each finding, the value of its stacks by the outermost frame of the stack that has a finding with this
    // outcome. Both sides count, because a frame that disappeared has stacks in the base only.
    let mut within: Vec<HashMap<usize, i128>> = vec![HashMap::default(); findings.len()];
    let mut on_stack: [Vec<usize>; OUTCOMES.len()] = Default::default();
    for base in [true, false] {
        runs.measure().for_each_chosen_stack(base, &has_finding, |value, stack| {
            on_stack.iter_mut().for_each(Vec::clear);
            for &frame in stack {
                let findings = findings_of_frame[frame as usize];
                on_stack.iter_mut().zip(findings).for_each(|(on_stack, finding)| on_stack.extend(finding));
            }
            for on_stack in &mut on_stack {
                let Some(&first) = on_stack.first() else { continue };
                // The innermost frame with the same cost as the outermost.
                let outer = on_stack.iter().rev().find(|&&i| is_chained(i, first)).copied().unwrap_or(first);
                on_stack.sort_unstable();
                on_stack.dedup();
                on_stack.iter().for_each(|&i| *within[i].entry(outer).or_default() += i128::from(value.unsigned_abs()));
            }
        });
    }
    for i in chosen.into_iter().flatten() {
        let largest = within[i].iter().max_by_key(|(outer, value)| (**value, **outer));
        let outer = largest.map(|(outer, _)| *outer).filter(|outer| *outer != i);
        findings[i].within = outer.and_then(|outer| findings[outer].frame.clone());
    }
}

/// Sets the source locations of findings. The new side takes precedence. The base supplies frames that disappeared. A
/// function without a file or a line gets no location.
pub(super) fn locate(findings: &mut [Finding], trim: &[String], runs: &MeasuredRuns) {
    let mut missing: HashMap<String, usize> =
        findings.iter().enumerate().filter_map(|(i, f)| Some((f.frame.clone()?, i))).collect();
    for base in [false, true] {
        let mut places: HashMap<String, SourceLocation> = HashMap::default();
        for walk in runs.measure().walks_of(base) {
            let (profile, functions, locations) =
                (&*walk.input.profile, walk.input.profile.functions(), walk.input.profile.locations());
            let name_of = |i: usize| String::from_utf8_lossy(profile.string(functions.name[i]));
            let is_missing: Vec<bool> = (0..functions.name.len()).map(|i| missing.contains_key(&*name_of(i))).collect();
            let mut first: Vec<i64> = functions.start_line.clone();
            for (&function, &line) in locations.line_function.iter().zip(&locations.line_number) {
                if let Some(first) = first.get_mut(function as usize)
                    && line > 0
                    && (*first == 0 || functions.start_line[function as usize] == 0 && line < *first)
                {
                    *first = line;
                }
            }
            for i in (0..is_missing.len()).filter(|&i| is_missing[i] && first[i] > 0) {
                let file = identity::file_path(profile.string(functions.file[i]), trim);
                if !file.is_empty() {
                    let place = SourceLocation { file: String::from_utf8_lossy(&file).into_owned(), line: first[i] };
                    places.entry(name_of(i).into_owned()).or_insert(place);
                }
            }
        }
        for (name, place) in places {
            if let Some(i) = missing.remove(&name) {
                findings[i].place = Some(place);
            }
        }
    }
}
