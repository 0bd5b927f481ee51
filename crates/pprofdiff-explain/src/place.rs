//! Adds source lines to causes: the line of the call that changed, or the line of a function's own cost. A cause gets a
//! line only if that line has most of the change.

use super::answer::PlaceOf;
use super::thresholds::MIN_PART_OF_LINE;
use super::{Cause, CauseKind, Explanation};
use pprofdiff::shared::{
    BelowSite, CallSite, FileLine, FilesOfLines, LineCosts, MAX_SITES, SitesOfType, SourceLocation, call_lines,
};
use pprofdiff::{Measure, Normalize, Result, Selection};

/// Maximum number of causes that get a source line. Each has two sites.
const MAX_LOCATED: usize = MAX_SITES / 2;

/// Adds the source lines to the causes of explanations of one selection, and to the suspects and the candidate. Reads the
/// samples once for all sample types.
///
/// # Errors
/// Fails only if the work was cancelled.
pub(super) fn add_places<'e>(
    selection: &Selection,
    explanations: impl IntoIterator<Item = &'e mut Explanation>,
) -> Result<()> {
    let types = selection.diff().sample_types();
    let mut located = Vec::new();
    explanations.into_iter().for_each(|explanation| push_located(explanation, &types, &mut located));
    let measure = |of_type: &LocatedCauses<'_>| selection.measure_type(of_type.number, Normalize::None);
    let measures: Vec<Measure> = located.iter().map(measure).collect::<Result<_>>()?;
    let places: Vec<Vec<Option<SourceLocation>>> = {
        let mut sites: Vec<SitesOfType<'_>> =
            located.iter().zip(&measures).map(|(of_type, measure)| of_type.sites(measure)).collect();
        let sums = [true, false].map(|base| call_lines(&mut sites, base));
        let [base, new] = &sums;
        let of_types = located.iter().zip(&sites).zip(base.iter().zip(new));
        of_types.map(|((of_type, sites), (base, new))| of_type.places([base, new], &sites.files)).collect()
    };
    for (of_type, places) in located.into_iter().zip(places) {
        of_type.causes.into_iter().zip(places).for_each(|(cause, place)| cause.place = place);
    }
    Ok(())
}

/// The causes of one sample type that get a source line.
struct LocatedCauses<'e> {
    /// The position of the sample type in the diff.
    number: usize,
    /// The number of runs on the base and on the new side.
    runs: (usize, usize),
    /// The growth of the amount of work.
    factor: f64,
    causes: Vec<&'e mut Cause>,
}

/// Appends the causes that get a source line, of an explanation and of the explanations beside it.
fn push_located<'e>(
    explanation: &'e mut Explanation,
    types: &[(String, String)],
    located: &mut Vec<LocatedCauses<'e>>,
) {
    let number = types.iter().position(|(kind, _)| *kind == explanation.summary.sample_type);
    let (runs, factor) = (explanation.noise.runs, explanation.scale.factor);
    let Explanation { causes, suspects, candidate, also, .. } = explanation;
    let candidate = candidate.as_mut().map(|nearest| &mut nearest.cause);
    let mut causes: Vec<&mut Cause> = causes.iter_mut().chain(suspects).chain(candidate).collect();
    // The lines of a label's samples may differ from the lines of all samples.
    // If other causes have a part of a function's change, the line with most of it may be theirs.
    let is_of_cause = |cause: &Cause| {
        let place = cause.place_of();
        !cause.is_partial || place == PlaceOf::Caller || place == PlaceOf::Function && cause.callee.is_some()
    };
    causes.retain(|cause| cause.label.is_none() && cause.function.is_some() && is_of_cause(cause));
    causes.truncate(MAX_LOCATED);
    if let Some(number) = number.filter(|_| !causes.is_empty()) {
        located.push(LocatedCauses { number, runs, factor, causes });
    }
    also.iter_mut().for_each(|also| push_located(also, types, located));
}

impl LocatedCauses<'_> {
    fn sites<'c>(&'c self, measure: &'c Measure) -> SitesOfType<'c> {
        let sites = self.causes.iter().flat_map(|cause| sites_of(cause)).collect();
        SitesOfType { measure, runs: self.runs, sites, files: FilesOfLines::default() }
    }

    /// Returns the line of each cause. `sums` has the costs of the lines of each site by side.
    fn places(&self, sums: [&Vec<LineCosts>; 2], files: &FilesOfLines) -> Vec<Option<SourceLocation>> {
        let scales = [self.factor / self.runs.0.max(1) as f64, 1.0 / self.runs.1.max(1) as f64];
        let costs = |site: usize| [0, 1].map(|side| scaled(&sums[side][site], scales[side]));
        let place = |(i, cause): (usize, &&mut Cause)| {
            // The second site counts only if the samples lack the first one.
            let all = [2 * i, 2 * i + 1].map(costs);
            let costs = all.iter().find(|costs| costs.iter().any(|lines| !lines.is_empty()))?;
            line_of_change(costs, cause.delta).map(|line| files.location(line))
        };
        self.causes.iter().enumerate().map(place).collect()
    }
}

fn scaled(costs: &LineCosts, scale: f64) -> LineCosts {
    costs.iter().map(|(&line, cost)| (line, cost * scale)).collect()
}

/// Returns the line with most of a change, given the costs of all lines of both sides per run, at equal work. An edit above
/// a function moves its lines, and then a large line looks like a change. Such a line counts only if each side has a single
/// line; the line of the costlier side is returned. Returns `None` if the lines together did not change like the cause.
fn line_of_change(costs: &[LineCosts; 2], delta: f64) -> Option<FileLine> {
    let sum = |lines: &LineCosts| lines.values().sum::<f64>();
    let needed = MIN_PART_OF_LINE * delta.abs();
    if (sum(&costs[1]) - sum(&costs[0])) * delta.signum() < needed {
        return None;
    }
    let mut changes = LineCosts::new();
    for (side, sign) in [(0, -1.0), (1, 1.0)] {
        costs[side].iter().for_each(|(&line, cost)| *changes.entry(line).or_default() += sign * cost * delta.signum());
    }
    let all: f64 = changes.values().map(|change| change.abs()).sum();
    let (line, change) = changes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    if change >= needed.max(MIN_PART_OF_LINE * all) {
        return Some(line);
    }
    let single = |lines: &LineCosts| lines.keys().next().copied().filter(|_| lines.len() == 1);
    let [base, new] = [single(&costs[0])?, single(&costs[1])?];
    Some(if delta < 0.0 { base } else { new })
}

/// Returns two sites of a cause: the line that describes it best, and any line of the same function in case that the
/// samples do not contain the first one.
fn sites_of(cause: &Cause) -> [CallSite<'_>; 2] {
    fn texts(names: &[String]) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }
    let [functions, callers, callees] =
        [&cause.evidence.functions, &cause.evidence.callers, &cause.evidence.callees].map(|names| texts(names));
    let part = cause.changed_call().filter(|_| cause.kind != CauseKind::Own).and_then(|part| part.function.as_deref());
    let (site, below) = match (cause.place_of(), cause.main_program()) {
        (PlaceOf::Program, Some(program)) => (texts(&program.functions), BelowSite::Anywhere(functions)),
        (PlaceOf::Caller, _) => (callers, BelowSite::Callee(functions)),
        _ if !callees.is_empty() => (functions, BelowSite::Callee(callees)),
        _ => match part {
            Some(callee) => (functions, BelowSite::Callee(vec![callee])),
            None if cause.kind == CauseKind::Own => (functions, BelowSite::Leaf),
            None => (functions, BelowSite::Any),
        },
    };
    let any = if cause.is_partial { Vec::new() } else { site.clone() };
    [CallSite { functions: site, below }, CallSite { functions: any, below: BelowSite::Any }]
}

#[cfg(test)]
mod tests {
    use super::{LineCosts, line_of_change};

    fn place(base: &[(i64, f64)], new: &[(i64, f64)]) -> Option<i64> {
        let lines =
            |costs: &[(i64, f64)]| -> LineCosts { costs.iter().map(|&(line, cost)| ((0, line), cost)).collect() };
        let sum = |costs: &[(i64, f64)]| costs.iter().map(|(_, cost)| cost).sum::<f64>();
        line_of_change(&[lines(base), lines(new)], sum(new) - sum(base)).map(|(_, line)| line)
    }

    #[test]
    fn only_a_line_with_most_of_the_change_is_named() {
        assert_eq!(place(&[], &[(7, 70.0), (9, 30.0)]), Some(7));
        assert_eq!(place(&[], &[(7, 60.0), (9, 40.0)]), None);
        // Line 7 is larger, and line 9 changed.
        assert_eq!(place(&[(7, 90.0), (9, 10.0)], &[(7, 92.0), (9, 40.0)]), Some(9));
        assert_eq!(place(&[(7, 90.0)], &[(7, 50.0)]), Some(7));
        // Three lines changed alike.
        assert_eq!(place(&[(7, 90.0), (8, 5.0), (9, 5.0)], &[(7, 95.0), (8, 10.0), (9, 10.0)]), None);
    }

    #[test]
    fn a_line_that_moved_between_the_builds_is_named_if_it_is_the_only_one() {
        assert_eq!(place(&[(7, 90.0)], &[(12, 150.0)]), Some(12));
        assert_eq!(place(&[(7, 150.0)], &[(12, 90.0)]), Some(7));
        assert_eq!(place(&[(7, 50.0), (8, 40.0)], &[(12, 80.0), (13, 70.0)]), None);
        // Three lines were inserted above, and line 9, now 12, costs more. Line 10 is the old line 7.
        assert_eq!(place(&[(7, 89.7), (9, 10.0)], &[(10, 89.8), (12, 44.0)]), None);
    }
}
