//! The stages of an explanation, in order, each with the struct that it hands to the next: the comparison, rows with
//! names that both sides share, the search with its interpretation, and the answer.

use std::cell::OnceCell;
use std::sync::Arc;

use super::account::{Books, CauseEntry};
use super::agreement::independent_witnesses;
use super::answer::{
    Account, Cause, Evidence, Explanation, KnownRuntime, MoveKind, Moved, NearestCandidate, NoiseEstimate, Rewrite,
    ScaleRule, Verdict, WorkScale,
};
use super::attribution::{Attribution, CauseCandidate, CauseKind, CostShift, Description, Swap};
use super::evidence::costs::FrameCosts;
use super::evidence::recorded;
use super::evidence::rows::StackRows;
use super::evidence::sets::Sets;
use super::naming::{Naming, ShownNames, clones, rounded};
use super::rules::completed::AbsorbedCallee;
use super::rules::inlined::InlinedCall;
use super::rules::parts::{Parts, package_of};
use super::rules::renamed::RenamedFunction;
use super::rules::replaced::Exchange;
use super::rules::rewritten::Rewritten;
use super::rules::{Findings, MatchedNames};
use super::search::{self, SearchBudget, SearchResult};
use super::selfcheck::{PlainTable, has_moved};
use super::thresholds::{
    MAX_DIFFERENCE_OF_EQUAL_SIDES, MAX_DISTANCE_OF_EQUAL_WORK, MAX_FOLDED_SHIFTS, MAX_NOTICED_FOR_MOVED_COST,
    MAX_NOTICED_FOR_NO_CHANGE, MAX_P_OF_CERTAIN_TOTAL, MAX_P_OF_LIKELY_TOTAL, MAX_REPORTED_NOISE,
    MAX_REST_OF_NO_CHANGE, MIN_PART_OF_LISTED_CHANGE, MIN_PART_OF_SHOWN_MOVE, MIN_REST_OF_LIKELY_CHANGE,
    MIN_UNATTRIBUTED_PART, MIN_WITNESSES, REPORTED_FRAMES_OF_TOTAL,
};
use super::wrapped::{Wrapper, one_sided_frames, wrapper};
use super::{ExplainOptions, account};
use pprofdiff::sampling::Model;
use pprofdiff::shared::{ValueKind, is_level_among};
use pprofdiff::{Diff, Measure, Pair, Summary};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::random::HashMap;

/// The two sides, and what is known about them before any comparison of stacks.
pub(super) struct Comparison<'a> {
    diff: &'a Diff,
    measure: &'a Measure,
    /// The allocations in the heap profiles of the same runs.
    heap: Option<&'a StackRows>,
    options: &'a ExplainOptions,
    /// The ratio of the numbers of operations in one run, if they were given.
    ops: Option<f64>,
    /// The number of runs of each side, and their ratio.
    n_runs: [usize; 2],
    runs: f64,
    total: [f64; 2],
    is_equal: bool,
    model: Model,
    /// True for an unknown number of samples. With several runs, the variation between them replaces the estimate of
    /// noise.
    is_uncounted: bool,
    /// True for complete counts with one snapshot per side, which are not subject to chance.
    is_exact: bool,
    /// True if every call or instruction is counted. Only the variation between runs is noise then.
    is_counted: bool,
    is_level: bool,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        diff: &'a Diff,
        measure: &'a Measure,
        rows: &StackRows,
        heap: Option<&'a StackRows>,
        options: &'a ExplainOptions,
    ) -> Comparison<'a> {
        let ops = options.ops.map(|(base, new)| new / base);
        let m = rows.runs;
        let is_equal = rows.rows.iter().all(|r| {
            (r.values[0] * m[1] as f64 - r.values[1] * m[0] as f64).abs()
                < MAX_DIFFERENCE_OF_EQUAL_SIDES * (r.values[0] + r.values[1])
        });
        let model = measure.sampling_model();
        let is_replicated = m.iter().all(|&m| m > 1) || rows.learned > 1;
        Comparison {
            diff,
            measure,
            heap,
            options,
            ops,
            n_runs: m,
            runs: m[1] as f64 / m[0] as f64,
            total: rows.total(),
            is_equal,
            model,
            is_uncounted: model == Model::Unknown && !is_replicated,
            is_exact: model == Model::Exact && !is_replicated,
            is_counted: rows.kind == ValueKind::Counted,
            is_level: ops.is_none() && is_level_among(&diff.sample_types(), &measure.summary().sample_type),
        }
    }

    fn per_run(&self, side: usize, value: f64) -> f64 {
        rounded(value / self.n_runs[side] as f64)
    }

    /// Returns the expected ratio of all new runs to all base runs.
    fn exposure(&self) -> f64 {
        self.runs * self.ops.unwrap_or(1.0)
    }

    /// Returns the budget of the search.
    pub(super) fn budget(&self) -> SearchBudget {
        SearchBudget::new(self.measure.profile_bytes())
    }
}

/// The rows of both sides with common names, and the moves that the names show.
pub(super) struct CommonRows {
    rows: StackRows,
    /// The result of [`one_sided_frames`] for `rows`.
    only_on: OnceCell<Vec<u8>>,
    /// The rows before inlined frames were removed.
    uncut: account::Uncut,
    /// Warnings about frames that only one side's recorder wrote.
    recorded: Vec<String>,
    renamed: Vec<RenamedFunction>,
    /// By frame of the base: the frame with its name on the new side.
    renamed_to: HashMap<u32, u32>,
    rewrite: Option<Rewrite>,
    moved: Vec<Moved>,
    /// By wrapper that was removed from some stacks: the function behind it.
    wrapped: HashMap<u32, u32>,
}

impl CommonRows {
    /// Removes the frames of recorders, and matches names.
    pub(super) fn collect(sides: &Comparison<'_>, mut rows: StackRows) -> CommonRows {
        let recorded = recorded::leave_out(&mut rows);
        let mut names = MatchedNames::matched(rows);
        let folded = std::mem::take(&mut names.inlined);
        let renamed = std::mem::take(&mut names.renamed);
        // The search for causes stays above the code that was rewritten.
        names.cut();
        let MatchedNames { rows, costs, uncut, rewritten, .. } = names;
        let renamed_to: HashMap<u32, u32> = renamed.iter().map(|pair| (pair.old, pair.new)).collect();
        let shown = ShownNames { rows: &rows, renamed: renamed_to.clone() };
        let mut moved: Vec<Moved> = Vec::new();
        let is_large = |call: &InlinedCall| call.value > MIN_PART_OF_SHOWN_MOVE * sides.total[call.side];
        let is_shown = |call: &&InlinedCall| call.is_balanced || call.is_first && is_large(call);
        moved.extend(folded.iter().filter(is_shown).map(|call| inlined_move(sides, &shown, call)));
        moved.extend(clones(&rows, sides.total, |side, value| sides.per_run(side, value)));
        let rewrite = rewritten.map(|code| rewrite(sides, &shown, code));
        let (only_on, wrapped) = (one_sided_frames(&rows, &costs).into(), HashMap::default());
        CommonRows { rows, only_on, uncut, recorded, renamed, renamed_to, rewrite, moved, wrapped }
    }

    /// Returns, by frame, a bit for the side if only one side has the frame.
    fn only_on(&self) -> &[u8] {
        self.only_on.get_or_init(|| one_sided_frames(&self.rows, &FrameCosts::new(&self.rows)))
    }

    /// Replaces the stacks of rows, like [`StackRows::regroup`].
    fn regroup(&mut self, change: impl FnMut(usize, &mut Vec<u32>)) {
        self.rows.regroup(change);
        self.only_on.take();
    }

    fn shown(&self) -> ShownNames<'_> {
        ShownNames { rows: &self.rows, renamed: self.renamed_to.clone() }
    }

    /// Lists cost that moved. The sum of both functions must be unchanged: otherwise their caller changed, so this is
    /// not a pure move.
    fn list_shift(&mut self, sides: &Comparison<'_>, shift: &CostShift, scale: f64) {
        if !has_moved(&self.uncut, scale, shift.gained, shift.lost, Some(shift.inside)) {
            return;
        }
        let shown = self.shown();
        let (function, from) = (shown.name(shift.gained), shown.name(shift.lost));
        let inside = Some(shown.name(shift.inside));
        let delta = sides.per_run(0, shift.amount);
        match self.moved.iter_mut().find(|m| Some(m.how) == shift.how && m.function == function && m.from == from) {
            Some(earlier) => earlier.delta = earlier.delta.max(delta),
            None => self.moved.extend(shift.how.filter(|_| shift.even).map(|how| {
                let (cost, packages) = (None, None);
                Moved { function, from, how, delta, cost, even: true, callee: None, inside, packages }
            })),
        }
    }

    /// Lists a wrapper as a move.
    fn list_wrapper(&mut self, sides: &Comparison<'_>, wrapper: &Wrapper) {
        if wrapper.instead_of.is_none() {
            self.wrapped.insert(wrapper.frame, wrapper.callee);
        }
        if wrapper.value <= MIN_PART_OF_SHOWN_MOVE * sides.total[wrapper.side] {
            return;
        }
        let Wrapper { side, frame, caller, value, instead_of, .. } = *wrapper;
        // A function of a renamed package replaces itself, which is a rename.
        let local = |frame: u32| Parts::parse(&self.rows.names[frame as usize].text).local;
        if instead_of.is_some_and(|other| local(other) == local(frame)) {
            return;
        }
        let shown = self.shown();
        let moved = match instead_of {
            Some(other) => {
                let (new, old) = if side == 1 { (frame, other) } else { (other, frame) };
                Moved {
                    function: shown.name_on(new, 1),
                    from: shown.name_on(old, 0),
                    how: MoveKind::Replaced,
                    delta: sides.per_run(side, value),
                    cost: None,
                    even: true,
                    callee: None,
                    inside: Some(shown.name(caller)),
                    packages: None,
                }
            }
            None => {
                let (callee, own_costs) = (Some(wrapper.callee), None);
                let (is_first, is_balanced) = (true, false);
                let call = InlinedCall { side, frame, caller, callee, value, own_costs, is_first, is_balanced };
                inlined_move(sides, &shown, &call)
            }
        };
        self.moved.push(moved);
    }

    /// Removes the frames of a wrapper from its routes.
    fn unwrap_stacks(&mut self, wrapper: &Wrapper) {
        let values: Vec<[f64; 2]> = self.rows.rows.iter().map(|row| row.values).collect();
        self.regroup(|row, stack| wrapper.unwrap_stack(stack, values[row]));
    }

    /// Truncates the stacks below the frame inside which cost only changed places.
    fn fold(&mut self, shift: &CostShift) {
        self.regroup(|i, stack| {
            if shift.rows.binary_search(&(i as u32)).is_ok() {
                stack.truncate(shift.kept_frames(stack));
            }
        });
    }
}

/// Describes a function that is inlined on one side.
fn inlined_move(sides: &Comparison<'_>, shown: &ShownNames<'_>, call: &InlinedCall) -> Moved {
    let (function_name, caller) = (shown.name(call.frame), shown.name(call.caller));
    let (function, from, how) = if call.side == 1 {
        (function_name, caller, MoveKind::Outlined)
    } else {
        (caller, function_name, MoveKind::Inlined)
    };
    let delta = sides.per_run(call.side, call.value);
    let cost = call.own_costs.map(|[base, new]| (sides.per_run(0, base), sides.per_run(1, new)));
    let callee = call.callee.map(|callee| shown.name(callee));
    Moved { function, from, how, delta, cost, even: false, callee, inside: None, packages: None }
}

/// Describes rewritten code.
fn rewrite(sides: &Comparison<'_>, shown: &ShownNames<'_>, rewritten_code: Rewritten) -> Rewrite {
    let [from, to] = rewritten_code.packages;
    let cost = (sides.per_run(0, rewritten_code.cost[0]), sides.per_run(1, rewritten_code.cost[1]));
    let below = rewritten_code.below.map(|caller| shown.name(caller));
    Rewrite { from, to, below, cost, gone: rewritten_code.functions[0], came: rewritten_code.functions[1] }
}

/// A cause with its split into count and unit cost.
struct MeasuredCause {
    entry: CauseEntry,
    split: Option<[f64; 4]>,
}

impl MeasuredCause {
    fn new(books: &Books<'_>, entry: CauseEntry) -> MeasuredCause {
        MeasuredCause { split: books.split(&entry), entry }
    }
}

/// The causes that the search found, attributed and measured.
struct MeasuredFindings {
    /// The expected ratio of all new runs to all base runs.
    scale: f64,
    causes: Vec<MeasuredCause>,
    suspects: Vec<MeasuredCause>,
    /// The nearest candidate, with the number of runs that would decide.
    candidate: Option<(Option<usize>, MeasuredCause)>,
    account: Account,
    swaps: Vec<Swap>,
    exchanges: Vec<Exchange>,
    absorbed: Vec<AbsorbedCallee>,
    /// The number of functions that independently show the amount of work.
    n_witnesses: usize,
    /// See [`Explanation::contradictions`].
    contradictions: usize,
}

/// The search and its interpretation.
pub(super) struct Interpretation {
    search: SearchResult,
    findings: MeasuredFindings,
}

/// Searches for causes until no cause is cost that only moved: folds such cost, and searches again.
pub(super) fn interpret(sides: &Comparison<'_>, common: &mut CommonRows, work: &mut SearchBudget) -> Interpretation {
    let mut shifts = 0;
    loop {
        cancellation::checkpoint();
        let sets = Sets::new(&common.rows);
        work.add(sets.places());
        let search = search::search(&common.rows, &sets, sides.ops, sides.options.min_effect, work);
        let attribution = Attribution::new(&common.rows, &sets, &search);
        let candidates = attribution.candidates();
        let may_fold = shifts < MAX_FOLDED_SHIFTS && !work.is_used_up();
        if may_fold && let Some(wrapper) = wrapper(&common.rows, || common.only_on(), &candidates, search.scale) {
            shifts += 1;
            common.list_wrapper(sides, &wrapper);
            common.unwrap_stacks(&wrapper);
            continue;
        }
        if may_fold && let Some(shift) = attribution.shift(&candidates) {
            shifts += 1;
            common.list_shift(sides, &shift, search.scale);
            common.fold(&shift);
            continue;
        }
        let findings = attribute(sides, common, &attribution, candidates);
        return Interpretation { search, findings };
    }
}

/// Attributes the results of a search, applies the rules of causes, and measures the causes.
fn attribute(
    sides: &Comparison<'_>,
    common: &CommonRows,
    attribution: &Attribution<'_>,
    mut candidates: Vec<CauseCandidate>,
) -> MeasuredFindings {
    let Attribution { rows, sets, search, .. } = *attribution;
    let swaps = attribution.swaps(&mut candidates);
    let candidates = attribution.merge(candidates);
    let scale = if sides.is_level { sides.exposure() } else { search.scale };
    let books = Books {
        rows,
        sets,
        search,
        attribution,
        uncut: &common.uncut,
        heap: sides.heap,
        renamed: &common.renamed_to,
        wrapped: &common.wrapped,
        min_effect: sides.options.min_effect,
        exposure: sides.exposure(),
        scale,
        is_given: sides.ops.is_some(),
        is_level: sides.is_level,
        is_uncounted: sides.is_uncounted,
        is_rewritten: common.rewrite.is_some(),
    };
    let mut findings =
        if sides.is_equal { Findings::default() } else { Findings::from_causes(&books, books.settle(candidates)) };
    if sides.options.undecided_total {
        findings.suspects.clear();
    }
    let mut contradictions = 0;
    let table = PlainTable::new(rows, &common.uncut, scale);
    for entries in [&mut findings.causes, &mut findings.suspects] {
        let checked = std::mem::take(entries).into_iter().filter_map(|entry| table.checked(entry, &mut contradictions));
        *entries = checked.collect();
    }
    table.restate_excess(&mut findings.causes, &mut contradictions);
    let account = account_of(sides, &books, &mut findings);
    let Findings { causes, suspects, candidate, exchanges, absorbed } = findings;
    let needed = |score: f64| if sides.is_uncounted { None } else { books.runs_needed(score) };
    let [causes, suspects] = [causes, suspects]
        .map(|entries| entries.into_iter().map(|entry| MeasuredCause::new(&books, entry)).collect::<Vec<_>>());
    let candidate = candidate.map(|entry| (needed(entry.score), MeasuredCause::new(&books, entry)));
    let n_witnesses = independent_witnesses(rows, sets, search, scale);
    MeasuredFindings {
        scale,
        causes,
        suspects,
        candidate,
        account,
        swaps,
        exchanges,
        absorbed,
        n_witnesses,
        contradictions,
    }
}

/// Returns the account. Reduces the findings to the largest changes if the number of samples is unknown.
fn account_of(sides: &Comparison<'_>, books: &Books<'_>, findings: &mut Findings) -> Account {
    let mut account = books.account(&findings.causes);
    if sides.is_uncounted {
        // Without a number of samples, causes cannot be distinguished from chance. They are still the largest changes.
        let mut changes = std::mem::take(&mut findings.causes);
        changes.append(&mut findings.suspects);
        let mut changes = changes.into_iter();
        findings.candidate = changes.next().or(findings.candidate.take());
        let [base, new] = books.rows.total();
        let least = MIN_PART_OF_LISTED_CHANGE * (books.scale * base).max(new);
        // The amount of the largest change excludes the changes below its function.
        let others = findings.candidate.as_ref().map(|largest| largest.others.clone()).unwrap_or_default();
        let is_below = |entry: &CauseEntry| entry.subject.function.is_some_and(|function| others.contains(&function));
        let is_large = |entry: &CauseEntry| books.delta(entry.values).abs() >= least;
        findings.suspects = changes.filter(|entry| is_large(entry) || is_below(entry)).collect();
        account =
            Account { p: None, own_p: None, by_chance: false, consequences_by_chance: false, ..books.account(&[]) };
    }
    if sides.is_exact {
        let unexplained = account.rest != 0.0;
        let [p, own_p] = [account.p, account.own_p].map(|p| p.filter(|_| !sides.is_counted));
        account = Account { by_chance: false, consequences_by_chance: false, unexplained, p, own_p, ..account };
        if sides.is_counted {
            // The counts are certain, so no number of runs makes a cause of a smaller change.
            findings.candidate = None;
            let [base, new] = books.rows.total();
            let floor = books.min_effect * (books.scale * base + new) / 2.0;
            findings.suspects.retain(|entry| books.delta(entry.values).abs() > floor);
        }
    }
    account
}

/// Returns all moves: renamed functions first, then moves that names and the search showed, then swaps.
fn all_moved(sides: &Comparison<'_>, common: &mut CommonRows, interpretation: &Interpretation) -> Vec<Moved> {
    let mut moved = std::mem::take(&mut common.moved);
    let shown = common.shown();
    moved.extend(interpretation.findings.swaps.iter().filter_map(|swap| {
        let has_moved =
            |inside| has_moved(&common.uncut, interpretation.findings.scale, swap.gained, swap.lost, inside);
        // If one function contains the other, cost moved inside the outer function. Every change of a count is real, so the
        // answer must state this move.
        let around = || [swap.lost, swap.gained].into_iter().find(|&place| has_moved(Some(place)));
        let (how, inside) = match has_moved(None) {
            true => (swap.how, swap.inside),
            false => (MoveKind::Shift, Some(around().filter(|_| sides.is_counted)?)),
        };
        Some(Moved {
            function: shown.name(swap.gained),
            from: shown.name(swap.lost),
            how,
            delta: sides.per_run(0, swap.amount),
            cost: None,
            even: swap.even,
            callee: None,
            inside: inside.map(|caller| shown.name(caller)),
            packages: None,
        })
    }));
    let is_large = |exchange: &&Exchange| exchange.value > MIN_PART_OF_SHOWN_MOVE * sides.total[1];
    moved.extend(interpretation.findings.exchanges.iter().filter(is_large).map(|exchange| Moved {
        function: shown.name_on(exchange.came, 1),
        from: shown.name_on(exchange.went, 0),
        how: MoveKind::Replaced,
        delta: sides.per_run(1, exchange.value),
        cost: None,
        even: true,
        callee: None,
        inside: Some(shown.name(exchange.caller)),
        packages: None,
    }));
    let is_large = |absorbed: &&AbsorbedCallee| absorbed.value > MIN_PART_OF_SHOWN_MOVE * sides.total[absorbed.side];
    moved.extend(interpretation.findings.absorbed.iter().filter(is_large).map(|absorbed| {
        let AbsorbedCallee { caller, callee, side, value, cost } = *absorbed;
        let own_costs = Some(cost);
        let call = InlinedCall {
            side,
            frame: callee,
            caller,
            callee: None,
            value,
            own_costs,
            is_first: true,
            is_balanced: true,
        };
        inlined_move(sides, &shown, &call)
    }));
    let is_shown =
        |pair: &&RenamedFunction| (0..2).any(|side| pair.cost[side] > MIN_PART_OF_SHOWN_MOVE * sides.total[side]);
    let names_of_sides = ShownNames { rows: &common.rows, renamed: HashMap::default() };
    let event = common.rows.event();
    let renamed_functions = common.renamed.iter().filter(is_shown).map(|pair| Moved {
        function: names_of_sides.name_on(pair.new, 1),
        from: names_of_sides.name_on(pair.old, 0),
        how: MoveKind::Renamed,
        delta: sides.per_run(1, pair.cost[1]),
        cost: Some((sides.per_run(0, pair.cost[0]), sides.per_run(1, pair.cost[1]))),
        even: interpretation.search.is_even(&common.rows, event, interpretation.findings.scale, pair.cost),
        callee: None,
        inside: None,
        packages: {
            let [from, to] =
                [pair.old, pair.new].map(|frame| package_of(&common.rows.names[frame as usize].text).into_owned());
            (pair.with_package && from != to).then_some((from, to))
        },
    });
    moved.splice(0..0, renamed_functions.collect::<Vec<_>>());
    // If inlining differs between builds, a function may seem to have moved to itself. Without a number of samples,
    // only a match of names shows that cost moved.
    moved.retain(|m| m.function != m.from && !(sides.is_uncounted && m.how != MoveKind::Renamed));
    moved
}

/// The causes with names.
struct NamedCauses {
    causes: Vec<Cause>,
    suspects: Vec<Cause>,
    candidate: Option<NearestCandidate>,
}

impl NamedCauses {
    fn new(
        sides: &Comparison<'_>,
        common: &CommonRows,
        scale: f64,
        [causes, suspects]: [Vec<MeasuredCause>; 2],
        candidate: Option<(Option<usize>, MeasuredCause)>,
    ) -> NamedCauses {
        let shown = common.shown();
        let (rows, wrapped, total) = (&common.rows, &common.wrapped, sides.total);
        let naming = Naming { rows, shown: &shown, wrapped, total, scale };
        let is_count = sides.measure.summary().unit == "count";
        let causes = without_other_causes(causes);
        let table = PlainTable::new(rows, &common.uncut, scale);
        let cause = |MeasuredCause { entry, split }: MeasuredCause| {
            naming.cause(&entry, split.filter(|_| !is_count), table.excluded(&entry))
        };
        let mut candidate = candidate.map(|(runs, measured)| NearestCandidate { cause: cause(measured), runs });
        let [causes, mut suspects] =
            [causes, suspects].map(|entries| entries.into_iter().map(cause).collect::<Vec<Cause>>());
        // The nominal number of samples only ranked the changes, so it does not belong in the result.
        let ranked = candidate.iter_mut().map(|candidate| &mut candidate.cause).chain(&mut suspects);
        for cause in ranked.filter(|_| sides.is_uncounted) {
            let Evidence { base, new, .. } = &mut cause.evidence;
            (base.events, new.events, cause.score) = (0.0, 0.0, 0.0);
        }
        NamedCauses { causes, suspects, candidate }
    }
}

/// Subtracts the stacks of other causes from the parts of each cause. A part is a callee as a plain table shows it, which
/// may contain a call that is a cause of its own.
fn without_other_causes(mut causes: Vec<MeasuredCause>) -> Vec<MeasuredCause> {
    let call = |subject: &Description| match (subject.caller, subject.function, subject.callee) {
        (_, Some(function), Some(callee)) => Some((function, callee)),
        (Some(caller), Some(function), None) if subject.kind != CauseKind::Own => Some((caller, function)),
        _ => None,
    };
    // The calls of each cause: its own call, or both calls of a replacement.
    let calls_of = |cause: &MeasuredCause| -> Vec<((u32, u32), [f64; 2])> {
        match cause.entry.is_replacement() {
            true => {
                let parts = cause.entry.parts.iter();
                parts.filter_map(|(part, values)| Some((part.caller.zip(part.function)?, *values))).collect()
            }
            false => call(&cause.entry.subject).map(|call| (call, cause.entry.values)).into_iter().collect(),
        }
    };
    let calls: Vec<Vec<((u32, u32), [f64; 2])>> = causes.iter().map(calls_of).collect();
    for (i, cause) in causes.iter_mut().enumerate().filter(|(_, cause)| !cause.entry.is_replacement()) {
        let others: Vec<_> = calls.iter().enumerate().filter(|(j, _)| *j != i).flat_map(|(_, calls)| calls).collect();
        for (part, values) in &mut cause.entry.parts {
            for (_, other) in others.iter().filter(|(call, _)| Some(*call) == part.caller.zip(part.function)) {
                *values = [0, 1].map(|side| (values[side] - other[side]).max(0.0));
            }
        }
        cause.entry.parts.retain(|(_, values)| *values != [0.0; 2]);
    }
    causes
}

/// The facts that the verdict depends on.
struct VerdictInputs<'a> {
    sides: &'a Comparison<'a>,
    search: &'a SearchResult,
    account: &'a Account,
    named: &'a NamedCauses,
    has_moved: bool,
    is_rewritten: bool,
    /// The amount of work of a new run.
    factor: f64,
    n_witnesses: usize,
}

impl VerdictInputs<'_> {
    fn verdict(&self) -> Verdict {
        let (sides, account, m) = (self.sides, self.account, self.sides.n_runs);
        // The smaller side is the reference, so that exchanging the sides gives the same verdict.
        let less = (sides.total[1] / m[1] as f64).min(self.factor * sides.total[0] / m[0] as f64);
        let rest = account.rest.abs();
        match () {
            () if !self.named.causes.is_empty() => Verdict::Change,
            // For complete counts, "nothing on both sides" is an answer.
            () if sides.model == Model::Exact && sides.is_equal => Verdict::None,
            () if sides.is_exact && sides.is_counted && self.named.suspects.is_empty() && self.is_below_floor() => {
                Verdict::None
            }
            () if (sides.is_uncounted || sides.is_exact) && !sides.is_equal => Verdict::Inconclusive,
            () if sides.total == [0.0; 2] => Verdict::Inconclusive,
            () if sides.is_equal => Verdict::None,
            () if !self.named.suspects.is_empty() => Verdict::Inconclusive,
            // It would be a cause in another program.
            () if self.named.candidate.as_ref().is_some_and(|c| c.cause.score > self.search.threshold) => {
                Verdict::Inconclusive
            }
            // The total certainly changed, so something changed.
            () if !account.by_chance && account.own_p.is_some_and(|p| p < MAX_P_OF_CERTAIN_TOTAL) => {
                Verdict::Inconclusive
            }
            // A likely change of the total with a large unexplained rest rules out "nothing changed".
            () if account.own_p.is_some_and(|p| p < MAX_P_OF_LIKELY_TOTAL)
                && rest > MIN_REST_OF_LIKELY_CHANGE * less =>
            {
                Verdict::Inconclusive
            }
            () if rest > MAX_REST_OF_NO_CHANGE * less || account.unexplained => Verdict::Inconclusive,
            // The cost of rewritten code is comparable only if the amount of work is known.
            () if self.is_rewritten && sides.ops.is_none() => Verdict::Inconclusive,
            () if self.search.noticed < MAX_NOTICED_FOR_NO_CHANGE => Verdict::None,
            // Cost that moved is an answer, if only large changes could have stayed undetected.
            () if self.has_moved && self.search.noticed < MAX_NOTICED_FOR_MOVED_COST => Verdict::None,
            () => Verdict::Inconclusive,
        }
    }

    /// Returns true if the parts without a cause changed by at most the smallest effect that was asked for.
    fn is_below_floor(&self) -> bool {
        let (m, min_effect) = (self.sides.n_runs, self.sides.options.min_effect);
        let mean = (self.sides.total[1] / m[1] as f64 + self.factor * self.sides.total[0] / m[0] as f64) / 2.0;
        (self.account.rest + self.account.consequences).abs() <= min_effect * mean
    }

    fn scale_rule(&self, verdict: Verdict) -> ScaleRule {
        let (sides, search) = (self.sides, self.search);
        let is_same = (self.factor - 1.0).abs() < MAX_DISTANCE_OF_EQUAL_WORK;
        match () {
            () if sides.ops.is_some() => ScaleRule::Given,
            () if sides.is_level => ScaleRule::Level,
            () if sides.is_equal && search.n_telling > 0 => ScaleRule::Same,
            () if search.unknown || search.n_telling == 0 || !self.named.suspects.is_empty() || sides.is_uncounted => {
                ScaleRule::Unknown
            }
            // The answer then says that rewritten code does not show whether the same work costs more or less.
            () if self.is_rewritten && verdict == Verdict::Inconclusive => ScaleRule::Unknown,
            // Few functions may agree by accident, and much rewritten code leaves few functions.
            () if self.n_witnesses < MIN_WITNESSES && (self.is_rewritten || is_same) => ScaleRule::Unknown,
            () if is_same => ScaleRule::Same,
            () => ScaleRule::Agree,
        }
    }
}

/// Returns the warnings about the explanation itself, and the summary with them.
fn summary(sides: &Comparison<'_>, common: &mut CommonRows, is_used_up: bool) -> (Vec<String>, Summary) {
    let (rows, measure) = (&common.rows, sides.measure);
    let kind = measure.summary().sample_type.as_str();
    let all = rows.all();
    // Warnings about the explanation itself come first, because text output has room for one.
    let recorded = std::mem::take(&mut common.recorded);
    let mut left_out: Vec<String> = rows.note_of_labels().into_iter().chain(recorded).collect();
    if is_used_up {
        left_out.push("too many sets of stacks changed to compare all ways to explain the difference".to_owned());
    }
    left_out.extend(measure.sampling_warnings());
    left_out.extend(rest_warning(rows.stackless(), all, kind, "a function: no stack"));
    left_out.extend(rest_warning(rows.negative, all, kind, "a cause: negative values"));
    let mut summary = Summary::clone(measure.summary());
    summary.warnings.splice(0..0, left_out.iter().cloned());
    summary.sampling = Some(measure.sampling());
    let missing_values = |side: usize| format!("the {} side has no {kind} values", ["base", "new"][side]);
    if sides.model != Model::Exact {
        summary.warnings.extend((0..2).filter(|&side| sides.total[side] <= 0.0).map(missing_values));
    }
    let total = [0, 1].map(|side| sides.per_run(side, all[side]).round() as i64);
    summary.total = Pair { base: total[0], new: total[1] };
    // The summary's base excludes the A/A runs.
    summary.base = Some(sides.diff.side(true, sides.n_runs[0]));
    (left_out, summary)
}

/// Returns the noise as results state it.
fn noise(sides: &Comparison<'_>, rows: &StackRows, search: &SearchResult) -> NoiseEstimate {
    let (deviation, noticed, event) = match sides.is_uncounted {
        true => (MAX_REPORTED_NOISE, MAX_REPORTED_NOISE, 0.0),
        false if sides.is_counted && sides.is_exact => {
            (0.0, sides.options.min_effect * REPORTED_FRAMES_OF_TOTAL, rows.event())
        }
        false => (search.deviation.min(MAX_REPORTED_NOISE), search.noticed.min(MAX_REPORTED_NOISE), rows.event()),
    };
    NoiseEstimate {
        tau: rounded(search.tau),
        need: rounded(search.threshold),
        deviation: rounded(deviation),
        noticed: rounded(noticed),
        mde: rounded((noticed / REPORTED_FRAMES_OF_TOTAL).min(1.0)),
        runs: (sides.n_runs[0], sides.n_runs[1]),
        learned: rows.learned,
        event,
        degrees: search.degrees,
    }
}

/// Turns the interpretation into the answer.
pub(super) fn answer(
    sides: &Comparison<'_>,
    mut common: CommonRows,
    interpretation: Interpretation,
    work: &SearchBudget,
) -> Explanation {
    let moved = all_moved(sides, &mut common, &interpretation);
    let Interpretation { search, findings } = interpretation;
    let MeasuredFindings { scale, causes, suspects, candidate, account, n_witnesses, contradictions, .. } = findings;
    let named = NamedCauses::new(sides, &common, scale, [causes, suspects], candidate);
    let (left_out, summary) = summary(sides, &mut common, work.is_used_up());
    let rows = &common.rows;
    let sums = |side: usize| rows.rows.iter().filter(|r| r.background).map(|r| r.values[side]).sum::<f64>();
    let background = if sides.total[0] > 0.0 { (sums(1) / scale - sums(0)) / sides.total[0] } else { 0.0 };
    let factor = rounded(scale / sides.runs);
    let all = rows.all();
    let inputs = VerdictInputs {
        sides,
        search: &search,
        account: &account,
        named: &named,
        has_moved: !moved.is_empty(),
        is_rewritten: common.rewrite.is_some(),
        factor,
        n_witnesses,
    };
    let verdict = inputs.verdict();
    let rule = inputs.scale_rule(verdict);
    let NamedCauses { causes, suspects, candidate } = named;
    Explanation {
        summary: Arc::new(summary),
        sample_type: None,
        folder: sides.diff.folder().map(str::to_owned),
        total: (sides.per_run(0, all[0]), sides.per_run(1, all[1])),
        verdict,
        scale: WorkScale { factor, rule, agree: search.agree, of: search.n_telling, calls: None, disputed: None },
        account,
        causes,
        rewrite: common.rewrite,
        moved,
        suspects,
        candidate,
        background: rounded(background),
        noise: noise(sides, rows, &search),
        runtime: KnownRuntime { name: rows.runtime.name.to_owned(), source: rows.runtime.source.to_owned() },
        pruned: rows.pruned,
        left_out,
        work: work.done,
        contradictions,
        also: Vec::new(),
    }
}

/// Returns a warning about values that cannot be attributed. Returns `None` if they are at most
/// [`MIN_UNATTRIBUTED_PART`] of each side.
fn rest_warning(values: [f64; 2], all: [f64; 2], kind: &str, why: &str) -> Option<String> {
    let parts = [0, 1].map(|side| 100.0 * values[side] / all[side].max(f64::MIN_POSITIVE));
    let [base, new] = parts.map(f64::round);
    parts
        .iter()
        .any(|part| *part > 100.0 * MIN_UNATTRIBUTED_PART)
        .then(|| format!("{base}% of the base's and {new}% of the new side's {kind} could not be attributed to {why}"))
}
