//! Of many findings, which say something of their own, and where their functions stand.

use pprofdiff_profile::random::HashMap;
use serde::Serialize;

use super::{Finding, Outcome};
use crate::diff::{Sort, identity};
use crate::runs::MeasuredRuns;

/// Where a function stands, as the profiles say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Place {
    /// The source file.
    pub file: String,
    /// The line that the function begins in, or the first that was measured.
    pub line: i64,
}

/// Finds for each failed or inconclusive finding the finding of the same outcome that contains it. If frames that call
/// one another have equal cost in all runs, the innermost frame represents them, because it is the most specific.
/// Findings on the flat cost of frames do not nest.
pub(super) fn nest(findings: &mut [Finding], cost: Sort, runs: &MeasuredRuns) {
    if cost == Sort::Cum {
        nest_outcome(findings, Outcome::Fail, runs);
        nest_outcome(findings, Outcome::Inconclusive, runs);
    }
}

fn nest_outcome(findings: &mut [Finding], outcome: Outcome, runs: &MeasuredRuns) {
    let chosen: Vec<usize> = (0..findings.len()).filter(|&i| findings[i].outcome == outcome).collect();
    if chosen.len() < 2 {
        return;
    }
    let by_name: HashMap<&str, usize> =
        chosen.iter().filter_map(|&i| Some((findings[i].frame.as_deref()?, i))).collect();
    let of_frame: Vec<Option<usize>> =
        (0..runs.frames().len() as u32).map(|f| by_name.get(runs.frames().label(f).as_str()).copied()).collect();
    let is_chained = |a: usize, b: usize| {
        [(&findings[a].base, &findings[b].base), (&findings[a].new, &findings[b].new)].iter().all(|(a, b)| a == b)
    };
    // What lies within a finding, by the outermost of its stacks that fails: value by outer finding. Both sides count, since
    // what is gone had stacks on the base alone.
    let mut within: Vec<HashMap<usize, i128>> = vec![HashMap::default(); findings.len()];
    let mut own = Vec::new();
    for base in [true, false] {
        runs.measure().for_each_stack(base, |value, stack| {
            own.clear();
            own.extend(stack.iter().filter_map(|&frame| of_frame[frame as usize]));
            let Some(&first) = own.first() else { return };
            // The innermost of those that have the outermost's cost.
            let outer = own.iter().rev().find(|&&i| is_chained(i, first)).copied().unwrap_or(first);
            own.sort_unstable();
            own.dedup();
            own.iter().for_each(|&i| *within[i].entry(outer).or_default() += i128::from(value.unsigned_abs()));
        });
    }
    for i in chosen {
        let most = within[i].iter().max_by_key(|(outer, value)| (**value, **outer));
        let outer = most.map(|(outer, _)| *outer).filter(|outer| *outer != i);
        findings[i].within = outer.and_then(|outer| findings[outer].frame.clone());
    }
}

/// Says where the functions of findings stand: on the new side, or on the base if they are gone.
pub(super) fn locate(findings: &mut [Finding], trim: &[String], runs: &MeasuredRuns) {
    let mut wanted: HashMap<String, usize> =
        findings.iter().enumerate().filter_map(|(i, f)| Some((f.frame.clone()?, i))).collect();
    for base in [false, true] {
        let mut found: HashMap<String, Place> = HashMap::default();
        for walk in runs.measure().walks_of(base) {
            let (profile, functions, locations) =
                (&*walk.input.profile, walk.input.profile.functions(), walk.input.profile.locations());
            let named = |i: usize| String::from_utf8_lossy(profile.string(functions.name[i]));
            let asked: Vec<bool> = (0..functions.name.len()).map(|i| wanted.contains_key(&*named(i))).collect();
            let mut first: Vec<i64> = functions.start_line.clone();
            for (&function, &line) in locations.line_function.iter().zip(&locations.line_number) {
                if let Some(first) = first.get_mut(function as usize)
                    && line > 0
                    && (*first == 0 || functions.start_line[function as usize] == 0 && line < *first)
                {
                    *first = line;
                }
            }
            for i in (0..asked.len()).filter(|&i| asked[i] && first[i] > 0) {
                let file = identity::file_path(profile.string(functions.file[i]), trim);
                if !file.is_empty() {
                    let place = Place { file: String::from_utf8_lossy(&file).into_owned(), line: first[i] };
                    found.entry(named(i).into_owned()).or_insert(place);
                }
            }
        }
        for (name, place) in found {
            if let Some(i) = wanted.remove(&name) {
                findings[i].place = Some(place);
            }
        }
    }
}
