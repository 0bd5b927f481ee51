//! The sentence about the commit that most likely made a cause.

use super::markup::Markup;
use super::words::ExplanationText;
use crate::numbers::counted;
use pprofdiff_explain::{Cause, RankedCommit, RankedCommits, Reach};

/// Maximum number of characters of a commit's subject.
const LONGEST_SUBJECT: usize = 60;

impl ExplanationText<'_> {
    /// Names the commit that reaches a cause most directly. If no commit reaches the cause, says so and names the
    /// nearest commit, if there is one that changes more than the same file or folder.
    pub(super) fn commits(&self, cause: &Cause, commits: &RankedCommits) -> String {
        let function = self.markup.name(cause.function.as_deref().unwrap_or_default());
        match (commits.first(), commits.ranked.first()) {
            (Some(first), _) => self.commit(first),
            (None, nearest) => {
                let none = match commits.of {
                    // Its definition may have changed without being recognised, so the sentence does not deny it.
                    _ if commits.unlocated => {
                        let range =
                            if commits.of == 1 { "the commit".to_owned() } else { counted(commits.of, "commit") };
                        format!(
                            "no change of {function} was found in {range}; its definition was not located in the sources"
                        )
                    }
                    1 => format!("the commit does not touch {function}"),
                    count => format!("none of {} touches {function}", counted(count, "commit")),
                };
                // A commit in the same file or folder has no known effect on the cause, so it is not named.
                let nearest = nearest.filter(|near| !matches!(near.reach, Reach::File | Reach::Folder));
                nearest.map_or_else(|| none.clone(), |near| format!("{none}; nearest: {}", self.commit(near)))
            }
        }
    }

    /// Formats a commit: `3f2a1c9 validate emails, shop/email.go:41-47: its own lines`.
    fn commit(&self, commit: &RankedCommit) -> String {
        let subject: String = commit.subject.chars().take(LONGEST_SUBJECT).collect();
        let (first, last) = commit.lines;
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let place = format!("{}:{lines}", commit.file);
        let place = if self.markup == Markup::Plain { self.markup.words(&place) } else { self.markup.name(&place) };
        let words = |text: &str| self.markup.words(text);
        // In Markdown, GitHub turns a hexadecimal word into a link. Only the commit's id may become one, so it is not
        // escaped. An id with other characters is escaped, like the subject.
        let is_id = commit.short.bytes().all(|b| b.is_ascii_hexdigit());
        let id = if is_id { commit.short.clone() } else { words(&commit.short) };
        format!("{id} {}, {place}: {}", words(&subject), words(&commit.why))
    }
}
