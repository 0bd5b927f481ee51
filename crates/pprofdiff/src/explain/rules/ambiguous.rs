//! Causes that more work everywhere would explain nearly as well are none.

use super::{Find, Findings, Rule};
use crate::explain::account::Books;

pub(super) const RULE: Rule = Rule {
    name: "ambiguous",
    needs: "a cause with much of the total, and an amount of work that explains the difference nearly as well",
    says: "either so many times as much work, or these causes",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    // What there is, no work makes more of.
    if books.found.ambiguous && !books.is_level {
        findings.suspects.append(&mut findings.causes);
    }
}
