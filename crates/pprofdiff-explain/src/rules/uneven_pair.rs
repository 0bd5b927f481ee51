//! Causes of a single pair that equal builds show as well. Runs of Python or V8 differ in a few functions, such as imports
//! and code that V8 compiles, by more than a pair's other functions show.

use super::{Find, Findings, Rule};
use crate::account::Books;
use crate::search::is_replicated;
use crate::thresholds::FACTOR_OF_UNEVEN_PAIR;

pub(super) const RULE: Rule = Rule {
    name: "uneven_pair",
    needs: "one pair of runs of Python or V8, and no cause that is far above the threshold",
    says: "the strongest change as the best candidate",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let needed = FACTOR_OF_UNEVEN_PAIR * books.search.threshold;
    // Without a number of samples, no change is a cause, and the answer lists the largest changes.
    let is_uneven = books.rows.runtime.uneven_runs && !is_replicated(books.rows) && !books.is_uncounted;
    // One certain cause shows that the sides differ, and others are then as likely as in any pair.
    if is_uneven && findings.causes.iter().all(|cause| cause.score < needed && !cause.is_replacement()) {
        let strongest = findings.causes.drain(..).max_by(|a, b| a.score.total_cmp(&b.score));
        findings.candidate = strongest;
    }
}
