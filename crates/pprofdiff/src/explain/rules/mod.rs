//! What `explain` can say, as a table: a file and a row a rule. A rule says what it needs, what it finds and what that means;
//! in which order rules are asked, the table says.
//!
//! Rules of names come first: they change what stacks are called, so that both sides are called the same. What the search
//! finds is described by `attribution` and measured by `account`; rules of causes then put together, take away, or add.

mod ambiguous;
mod candidate;
mod gc_pressure;
mod in_use_level;
pub(super) mod inlined;
mod outlined;
mod own_cost;
pub(super) mod parts;
pub(super) mod renamed;
mod replaced;
pub(super) mod rewritten;
mod whole;

use super::account::{Books, Entry, Uncut};
use super::evidence::costs::Costs;
use super::evidence::rows::Rows;
use inlined::Inlined;
use pprofdiff_profile::random::{HashMap, HashSet};
use renamed::Renamed;
use rewritten::Rewritten;

/// One thing that an explanation can say.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Rule {
    /// How docs and tests call it.
    pub name: &'static str,
    /// What must be there for it to say anything.
    pub needs: &'static str,
    /// What it says.
    pub says: &'static str,
    find: Find,
}

impl Rule {
    /// When it is asked: `names`, `search` or `causes`.
    pub fn stage(&self) -> &'static str {
        match self.find {
            Find::Rename(_) | Find::Fold(_) | Find::Cut(_) => "names",
            Find::Search => "search",
            Find::Causes(_) => "causes",
        }
    }
}

/// How a rule is asked.
#[derive(Debug, Clone, Copy)]
enum Find {
    /// For functions that have other names on the new side.
    Rename(fn(&Names) -> Vec<Renamed>),
    /// For functions that are part of their callers on one side.
    Fold(fn(&Names) -> Vec<Inlined>),
    /// For what causes are sought above.
    Cut(fn(&Names) -> Option<(Rewritten, Vec<usize>)>),
    /// By the search, whose sets these are.
    Search,
    /// For what follows from the causes that were found.
    Causes(fn(&Books<'_>, &mut Findings)),
}

const fn searched(name: &'static str, needs: &'static str, says: &'static str) -> Rule {
    Rule { name, needs, says, find: Find::Search }
}

/// The rules, in the order in which they are asked.
pub static RULES: [Rule; 17] = [
    renamed::RULE,
    inlined::RULE,
    outlined::RULE,
    rewritten::RULE,
    own_cost::RULE,
    searched("calls", "stacks with a call", "a caller spends more in what it calls"),
    searched("added", "stacks with a call that the base has none of", "the caller now calls it"),
    searched("removed", "stacks with a call that the new side has none of", "the caller no longer calls it"),
    searched("labels", "a label that all runs have", "what has the label costs more, wherever it runs"),
    searched("lock_contention", "delays, of several runs", "waits at who holds the lock: more of them, or longer ones"),
    searched(
        "cost_shift",
        "a cause that its callers do not feel, and a function that changed the other way",
        "one function's cost is now the other's, if they call each other or the same functions, or have like names; one is in \
         place of the other, if one came and one went",
    ),
    replaced::RULE,
    in_use_level::RULE,
    whole::RULE,
    ambiguous::RULE,
    candidate::RULE,
    gc_pressure::RULE,
];

/// Both sides' stacks, and what rules have said of names. Stacks have the names of the base.
pub(super) struct Names {
    pub rows: Rows,
    pub costs: Costs,
    pub renamed: Vec<Renamed>,
    /// Functions that are part of their callers on the other side, of which stacks then have no calls.
    pub inlined: Vec<Inlined>,
    /// Stacks with these calls.
    pub uncut: Uncut,
    /// What was rewritten: causes are sought above it.
    pub rewritten: Option<Rewritten>,
}

impl Names {
    /// Asks the rules of names but those that cut stacks.
    pub(super) fn matched(rows: Rows) -> Names {
        let (costs, uncut) = (Costs::new(&rows), Uncut::default());
        let mut names = Names { rows, costs, renamed: Vec::new(), inlined: Vec::new(), uncut, rewritten: None };
        for rule in &RULES {
            let Find::Rename(find) = rule.find else { continue };
            let found = find(&names);
            let old: HashMap<u32, u32> = found.iter().map(|pair| (pair.new, pair.old)).collect();
            if !old.is_empty() {
                names.regroup(|_, stack| stack.iter_mut().for_each(|f| *f = old.get(f).copied().unwrap_or(*f)));
            }
            names.renamed.extend(found);
        }
        names.uncut = Uncut::of(&names.rows);
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

    /// Asks the rules that cut stacks.
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
        self.costs = Costs::new(&self.rows);
    }
}

/// What is said of both sides, as rules make it.
#[derive(Default)]
pub(super) struct Findings {
    pub causes: Vec<Entry>,
    /// Causes that the amount of work would explain as well.
    pub suspects: Vec<Entry>,
    /// What comes nearest to a cause.
    pub candidate: Option<Entry>,
}

impl Findings {
    /// Asks the rules of causes.
    pub(super) fn of(books: &Books<'_>, causes: Vec<Entry>) -> Findings {
        let mut findings = Findings { causes, ..Findings::default() };
        for rule in &RULES {
            if let Find::Causes(find) = rule.find {
                find(books, &mut findings);
            }
        }
        // The largest change first.
        let size = |entry: &Entry| books.delta(entry.values).abs();
        findings.causes.sort_by(|a, b| size(b).total_cmp(&size(a)));
        findings.suspects.sort_by(|a, b| size(b).total_cmp(&size(a)));
        findings
    }
}
