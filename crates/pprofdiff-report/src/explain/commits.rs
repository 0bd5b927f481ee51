//! Which commit reaches a cause, in words.

use super::markup::Markup;
use super::words::ExplanationText;
use crate::numbers::counted;
use pprofdiff::commits::{RankedCommit, RankedCommits};

/// Subjects are cut to fit a line.
const LONGEST_SUBJECT: usize = 60;

impl ExplanationText<'_> {
    /// The commit that reaches a cause most directly, or that none does.
    pub(super) fn commits(&self, commits: &RankedCommits) -> String {
        match (commits.first(), commits.ranked.first()) {
            (Some(first), _) => self.commit(first),
            (None, nearest) => {
                let none = match commits.of {
                    1 => "the commit does not touch it".to_owned(),
                    of => format!("none of these {} touches it", counted(of, "commit")),
                };
                nearest.map_or_else(|| none.clone(), |near| format!("{none}; nearest: {}", self.commit(near)))
            }
        }
    }

    /// `3f2a1c9 validate emails, shop/email.go:41-47: its own lines`.
    fn commit(&self, commit: &RankedCommit) -> String {
        let subject: String = commit.subject.chars().take(LONGEST_SUBJECT).collect();
        let (first, last) = commit.lines;
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let place = format!("{}:{lines}", commit.file);
        let place = if self.markup == Markup::Plain { self.markup.words(&place) } else { self.markup.name(&place) };
        let words = |text: &str| self.markup.words(text);
        // GitHub may link the id of the commit, but not a subject or a file that looks like a commit id.
        let is_id = commit.short.bytes().all(|b| b.is_ascii_hexdigit());
        let id = if is_id { commit.short.clone() } else { words(&commit.short) };
        format!("{id} {}, {place}: {}", words(&subject), words(&commit.why))
    }
}
