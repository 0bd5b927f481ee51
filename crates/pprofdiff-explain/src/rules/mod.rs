//! The rules of `explain`: one file and one table row per rule. A rule states its requirements, its finding, and the
//! meaning of the finding. The table determines the order of the rules.
//!
//! Rules of names run first. They rename and regroup stacks, so that both sides use the same names. Then `attribution`
//! describes the results of the search, and `account` measures them. Rules of causes run last: they merge, drop, or add
//! causes.

mod ambiguous;
mod candidate;
pub(super) mod completed;
mod gc_pressure;
mod in_use_level;
pub(super) mod inlined;
mod nested;
mod outlined;
mod own_cost;
pub(super) mod parts;
pub(super) mod renamed;
pub(super) mod replaced;
pub(super) mod rewritten;
mod uneven_pair;
mod whole;

use super::account::{Books, CauseEntry, Uncut};
use super::evidence::costs::FrameCosts;
use super::evidence::rows::StackRows;
use completed::AbsorbedCallee;
use inlined::InlinedCall;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::short_lists::sort_by;
use renamed::RenamedFunction;
use replaced::Exchange;
use rewritten::Rewritten;

/// A kind of finding in explanations.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Rule {
    /// The name in documentation and tests.
    pub name: &'static str,
    /// The requirements for the finding.
    pub needs: &'static str,
    /// The meaning of the finding.
    pub says: &'static str,
    find: Find,
}

impl Rule {
    /// Returns the stage that applies the rule: `names`, `search` or `causes`.
    pub fn stage(&self) -> &'static str {
        match self.find {
            Find::Rename(_) | Find::Fold(_) | Find::Cut(_) => "names",
            Find::Search => "search",
            Find::Causes(_) => "causes",
        }
    }
}

/// The stage of a rule, with the function that applies it.
#[derive(Debug, Clone, Copy)]
enum Find {
    /// Finds functions with another name on the new side.
    Rename(fn(&MatchedNames) -> Vec<RenamedFunction>),
    /// Finds functions that are inlined into their callers on one side.
    Fold(fn(&MatchedNames) -> Vec<InlinedCall>),
    /// Finds rewritten code, and the number of frames to keep of each stack. The search for causes stays above the cut.
    Cut(fn(&MatchedNames) -> Option<(Rewritten, Vec<usize>)>),
    /// Belongs to the search itself.
    Search,
    /// Changes the findings, based on the causes so far.
    Causes(fn(&Books<'_>, &mut Findings)),
}

const fn searched(name: &'static str, needs: &'static str, says: &'static str) -> Rule {
    Rule { name, needs, says, find: Find::Search }
}

/// The rules, in the order of their application.
pub static RULES: [Rule; 20] = [
    renamed::RULE,
    inlined::RULE,
    outlined::RULE,
    rewritten::RULE,
    own_cost::RULE,
    searched("calls", "stacks with a call", "\"A spends more in B\""),
    searched("added", "stacks with a call that the base lacks", "\"A now calls B\""),
    searched("removed", "stacks with a call that the new side lacks", "\"A no longer calls B\""),
    searched("labels", "a label that all runs have", "\"endpoint=/cart\" with its change, in all functions or in one"),
    searched("lock_contention", "delays, of several runs", "\"waits at X cost more\": more waits, or longer waits"),
    searched(
        "cost_shift",
        "a cause that its callers do not show, and a function that changed the other way",
        "\"the cost of A is now in B\", if they call each other or the same functions, or have similar names; \"A replaces B\", if one appeared and one disappeared",
    ),
    replaced::RULE,
    nested::RULE,
    completed::RULE,
    in_use_level::RULE,
    whole::RULE,
    ambiguous::RULE,
    uneven_pair::RULE,
    candidate::RULE,
    gc_pressure::RULE,
];

/// Both sides' stacks with the base's names, and the results of the rules of names.
pub(super) struct MatchedNames {
    pub rows: StackRows,
    pub costs: FrameCosts,
    pub renamed: Vec<RenamedFunction>,
    /// Functions that are inlined into their callers on one side. `rows` no longer contain their frames.
    pub inlined: Vec<InlinedCall>,
    /// The stacks before inlined frames were removed.
    pub uncut: Uncut,
    /// The rewritten library, if one was found. The search for causes stays above it.
    pub rewritten: Option<Rewritten>,
}

impl MatchedNames {
    /// Applies the rules of names, except for the rules that cut stacks.
    pub(super) fn matched(rows: StackRows) -> MatchedNames {
        let (costs, uncut) = (FrameCosts::new(&rows), Uncut::default());
        let mut names = MatchedNames { rows, costs, renamed: Vec::new(), inlined: Vec::new(), uncut, rewritten: None };
        for rule in &RULES {
            let Find::Rename(find) = rule.find else { continue };
            let pairs = find(&names);
            let old: HashMap<u32, u32> = pairs.iter().map(|pair| (pair.new, pair.old)).collect();
            if !old.is_empty() {
                names.regroup(|_, stack| stack.iter_mut().for_each(|f| *f = old.get(f).copied().unwrap_or(*f)));
            }
            names.renamed.extend(pairs);
        }
        names.uncut = Uncut::new(&names.rows);
        let folds = RULES.iter().filter_map(|rule| if let Find::Fold(find) = rule.find { Some(find) } else { None });
        names.inlined = folds.flat_map(|find| find(&names)).collect();
        let frames: HashSet<u32> = names.inlined.iter().map(|call| call.frame).collect();
        frames.iter().for_each(|&frame| names.uncut.is_folded[frame as usize] = true);
        if !frames.is_empty() {
            names.regroup(|_, stack| {
                if stack.iter().any(|f| !frames.contains(f)) {
                    stack.retain(|f| !frames.contains(f));
                }
            });
        }
        names
    }

    /// Applies the rules that cut stacks.
    pub(super) fn cut(&mut self) {
        for rule in &RULES {
            if let Find::Cut(find) = rule.find
                && let Some((rewritten, kept)) = find(self)
            {
                self.rewritten = Some(rewritten);
                self.regroup(|row, stack| stack.truncate(kept[row].max(1)));
            }
        }
    }

    fn regroup(&mut self, change: impl FnMut(usize, &mut Vec<u32>)) {
        self.rows.regroup(change);
        self.costs = FrameCosts::new(&self.rows);
    }
}

/// The findings about both sides, as the rules change them.
#[derive(Default)]
pub(super) struct Findings {
    pub causes: Vec<CauseEntry>,
    /// Causes that a different amount of work would explain nearly as well.
    pub suspects: Vec<CauseEntry>,
    /// The nearest candidate. `None` if there are causes or suspects, or if no change is near enough.
    pub candidate: Option<CauseEntry>,
    /// Calls that replaced others at the same cost. They are moves, not causes.
    pub exchanges: Vec<Exchange>,
    /// Callees whose cost moved into a caller's own cost, or out of it. They are moves, not causes.
    pub absorbed: Vec<AbsorbedCallee>,
}

impl Findings {
    /// Applies the rules of causes.
    pub(super) fn from_causes(books: &Books<'_>, causes: Vec<CauseEntry>) -> Findings {
        let mut findings = Findings { causes, ..Findings::default() };
        for rule in &RULES {
            if let Find::Causes(find) = rule.find {
                find(books, &mut findings);
            }
        }
        // Sorts by size, largest change first.
        let size = |entry: &CauseEntry| books.delta(entry.values).abs();
        sort_by(&mut findings.causes, |a, b| size(b).total_cmp(&size(a)));
        sort_by(&mut findings.suspects, |a, b| size(b).total_cmp(&size(a)));
        findings
    }
}
