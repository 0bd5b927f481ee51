//! URLs without their secrets: user, password or token before the `@` are never shown.
//!
//! Every name of a profile goes through here ([`profile/input.rs`](crate::Profile)), so errors, tables, pages and JSON
//! hold no secrets. The command and Python also pass messages of other libraries through it, which may repeat a URL.
//!
//! They are cut off where a URL becomes a profile's name, so no view can forget it.

use std::borrow::Cow;

/// What stands in place of a user and password.
const HIDDEN: &str = "***";

/// The text with the user and password of every URL in it replaced by `***`: `https://***@host/path`.
///
/// A host whose port is not a number is taken for the beginning of a password with a `/`, `?` or `#` in it, which is
/// invalid in a URL; then everything up to the text's last `@` is hidden.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("://").map(|at| at + 3) {
        let (before, after) = rest.split_at(begin);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#".contains(c)).unwrap_or(after.len());
        let authority = &after[..end];
        let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
        // The last colon of `[::1]` does not begin a port.
        let odd = !port.bytes().all(|b| b.is_ascii_digit()) && !authority.ends_with(']');
        let secret = authority.rfind('@').or_else(|| after.rfind('@').filter(|_| odd));
        rest = match secret {
            Some(at) => {
                shown.push_str(HIDDEN);
                &after[at..]
            }
            None => after,
        };
    }
    if shown.is_empty() {
        return text.into();
    }
    shown.push_str(rest);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn users_and_passwords_are_not_shown() {
        for (text, shown) in [
            ("http://u:secret@host:6060/heap?debug=0", "http://***@host:6060/heap?debug=0"),
            ("https://token-secret@host", "https://***@host"),
            ("http://u:a@secret@host/x@y", "http://***@host/x@y"),
            ("zip://in.pb::https://u:secret@host/x.zip", "zip://in.pb::https://***@host/x.zip"),
            ("cannot get 'http://u:secret@h/': no", "cannot get 'http://***@h/': no"),
            ("http://a:secret@h/1 and http://b:secret@h/2", "http://***@h/1 and http://***@h/2"),
            // Invalid, and hidden all the same.
            ("http://u:secret/1@host/heap", "http://***@host/heap"),
            ("http://u:se#secret?@host/heap", "http://***@host/heap"),
            ("http://u:se secret@host/heap", "http://***@host/heap"),
            // Nothing to hide.
            ("http://localhost:6060/pkg@v1.2/heap", "http://localhost:6060/pkg@v1.2/heap"),
            ("http://[::1]:6060/a@b", "http://[::1]:6060/a@b"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("file:///tmp/a@b.pb.gz", "file:///tmp/a@b.pb.gz"),
            ("dir/user@host/x.pb.gz", "dir/user@host/x.pb.gz"),
            ("://", "://"),
            ("", ""),
        ] {
            assert_eq!(redacted(text), shown);
            assert_eq!(redacted(shown), shown, "twice is once");
        }
    }
}
