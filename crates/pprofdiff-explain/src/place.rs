//! Adds source lines to causes: the line of the call that changed, or the line of a function's own cost. A cause gets a
//! line only if that line has most of the change.

use super::answer::{CausePart, PlaceOf};
use super::naming::rounded;
use super::thresholds::{MIN_CHANGE_OF_NAMED_WHOLE, MIN_PART_OF_LINE};
use super::{Cause, CauseKind, Explanation, Quantity};
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
    let found: Vec<Vec<CauseLines>> = {
        let mut sites: Vec<SitesOfType<'_>> =
            located.iter().zip(&measures).map(|(of_type, measure)| of_type.sites(measure)).collect();
        let sums = [true, false].map(|base| call_lines(&mut sites, base));
        let [base, new] = &sums;
        let of_types = located.iter().zip(&sites).zip(base.iter().zip(new));
        of_types.map(|((of_type, sites), (base, new))| of_type.lines([base, new], &sites.files)).collect()
    };
    for (of_type, found) in located.into_iter().zip(found) {
        for (cause, lines) in of_type.causes.into_iter().zip(found) {
            cause.place = lines.place;
            if let Some(delta) = lines.own {
                let (function, caller, kind) = (cause.function.clone(), None, CauseKind::Own);
                cause.parts.push(CausePart { function, caller, kind, delta: rounded(delta) });
            }
        }
    }
    Ok(())
}

/// The results from the lines of a cause.
struct CauseLines {
    place: Option<SourceLocation>,
    /// The change of the function's own cost, if the cause is called its own cost and most of the change is in functions
    /// that it calls. The search does not see these, because it leaves out the library functions at the end of a stack.
    own: Option<f64>,
}

/// The causes of one sample type that get a source line.
struct LocatedCauses<'e> {
    /// The position of the sample type in the diff.
    number: usize,
    /// The number of runs on the base and on the new side.
    runs: (usize, usize),
    /// The growth of the amount of work.
    factor: f64,
    /// True if the sample type measures work. Waits and allocations always happen in a library function.
    is_spent: bool,
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
    let candidate = explanation.candidate.as_ref().map(|nearest| &nearest.cause);
    let mut all = explanation.causes.iter().chain(&explanation.suspects).chain(candidate);
    let is_spent = all.all(|cause| explanation.quantity(cause) == Quantity::Spent);
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
        located.push(LocatedCauses { number, runs, factor, is_spent, causes });
    }
    also.iter_mut().for_each(|also| push_located(also, types, located));
}

impl LocatedCauses<'_> {
    fn sites<'c>(&'c self, measure: &'c Measure) -> SitesOfType<'c> {
        let sites = self.causes.iter().flat_map(|cause| sites_of(cause)).collect();
        SitesOfType { measure, runs: self.runs, sites, files: FilesOfLines::default() }
    }

    /// Returns what the lines of each cause show. `sums` has the costs of the lines of each site by side.
    fn lines(&self, sums: [&Vec<LineCosts>; 2], files: &FilesOfLines) -> Vec<CauseLines> {
        let scales = [self.factor / self.runs.0.max(1) as f64, 1.0 / self.runs.1.max(1) as f64];
        let costs = |site: usize| [0, 1].map(|side| scaled(&sums[side][site], scales[side]));
        let lines = |(i, cause): (usize, &&mut Cause)| {
            let all = [2 * i, 2 * i + 1].map(costs);
            // The second site counts only if the samples lack the first one.
            let costs = all.iter().find(|costs| costs.iter().any(|lines| !lines.is_empty()));
            let line = costs.and_then(|costs| line_of_change(costs, cause.delta));
            let is_own = cause.kind == CauseKind::Own && cause.parts.is_empty() && self.is_spent;
            let own = if is_own { small_own_change(&all, cause.delta) } else { None };
            CauseLines { place: line.map(|line| files.location(line)), own }
        };
        self.causes.iter().enumerate().map(lines).collect()
    }
}

fn change(costs: &[LineCosts; 2]) -> f64 {
    let [base, new] = costs.each_ref().map(|lines| lines.values().sum::<f64>());
    new - base
}

/// Returns the change of a function's own cost if it is much smaller than `delta`, while the function with its callees
/// changed like `delta`. Without the latter, its lines may be missing in the profiles. `all` has the costs of the lines of
/// both.
fn small_own_change(all: &[[LineCosts; 2]; 2], delta: f64) -> Option<f64> {
    let [own, whole] = all.each_ref().map(change);
    let is_along = |change: f64| change * delta.signum() >= MIN_CHANGE_OF_NAMED_WHOLE * delta.abs();
    (is_along(whole) && !is_along(own)).then_some(own)
}

fn scaled(costs: &LineCosts, scale: f64) -> LineCosts {
    costs.iter().map(|(&line, cost)| (line, cost * scale)).collect()
}

/// Returns the line with most of a change, given the costs of all lines of both sides per run, at equal work. An edit above
/// a function moves its lines, and then a large line looks like a change. Such a line counts only if each side has a single
/// line; the line of the costlier side is returned. Returns `None` if the lines together did not change like the cause.
fn line_of_change(costs: &[LineCosts; 2], delta: f64) -> Option<FileLine> {
    let needed = MIN_PART_OF_LINE * delta.abs();
    if change(costs) * delta.signum() < needed {
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
    use super::{LineCosts, line_of_change, small_own_change};

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
    fn an_own_cost_in_callees_is_told_apart_only_if_the_lines_show_it() {
        let costs = |base: f64, new: f64| [base, new].map(|cost| LineCosts::from([((0, 7), cost)]));
        // The function's own cost, the function with its callees, and the amount of the cause.
        let own = |own: [f64; 2], whole: [f64; 2], delta: f64| {
            small_own_change(&[costs(own[0], own[1]), costs(whole[0], whole[1])], delta)
        };
        assert_eq!(own([10.0, 13.0], [120.0, 850.0], 730.0), Some(3.0));
        assert_eq!(own([850.0, 840.0], [900.0, 120.0], -700.0), Some(-10.0));
        assert_eq!(own([10.0, 600.0], [120.0, 850.0], 730.0), None);
        // Without lines of the function, nothing is known.
        assert_eq!(own([0.0, 0.0], [0.0, 0.0], 730.0), None);
        // The own cost changed in the other direction.
        assert_eq!(own([90.0, 10.0], [120.0, 850.0], 730.0), Some(-80.0));
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
