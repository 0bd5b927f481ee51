//! Ambiguous causes: more work everywhere would explain the difference nearly as well, so two readings are reported. If
//! the variation between runs explains the difference of the totals, neither reading is reported: a busy machine scales
//! all costs of a run by one factor, which looks the same.

use super::{Find, Findings, Rule};
use crate::account::Books;

pub(super) const RULE: Rule = Rule {
    name: "ambiguous",
    needs: "a cause with much of the total, if a ratio of work explains the difference nearly as well",
    says: "\"Either N times as much work, or ...\"",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    // A level, such as memory in use, does not depend on the amount of work.
    if !books.search.ambiguous || books.is_level {
        return;
    }
    let causes = std::mem::take(&mut findings.causes);
    if !books.account(&[]).is_within_runs(books.rows.runs) {
        findings.suspects.extend(causes);
    }
}
