//! Recognises sides with different forms of Go's goroutine profile. The text forms (`debug=1`, `debug=2`, SIGQUIT) leave
//! out the names of the runtime's waiting functions. The binary form has them, so the own costs of all functions that
//! call them differ between the forms.

use super::Diff;

/// The runtime's function that waits. Each binary profile with a waiting goroutine has it.
const WAITS: &[u8] = b"runtime.gopark";
/// The minimum number of goroutines of a program in which some surely wait.
const MIN_GOROUTINES: i64 = 8;

impl Diff {
    /// Returns a warning if only one side of two goroutine profiles names the runtime's waiting functions.
    pub(super) fn warning_about_goroutines(&self) -> Option<String> {
        if !self.is_two_sided() || !self.sample_types().iter().any(|(name, _)| name.starts_with("goroutine")) {
            return None;
        }
        let profiles =
            |base: bool| self.inputs.iter().filter(move |input| input.base == base).map(|input| &input.profile);
        // A few running goroutines, or no leaks, are no sign of a form.
        let has_many = |base: bool| profiles(base).any(|profile| profile.total(0).is_some_and(|n| n >= MIN_GOROUTINES));
        let waits = |base: bool| profiles(base).any(|p| p.functions().name.iter().any(|&name| p.string(name) == WAITS));
        let lacking = match [waits(true), waits(false)] {
            [false, true] if has_many(true) => "base",
            [true, false] if has_many(false) => "new side",
            _ => return None,
        };
        Some(format!(
            "the {lacking} lacks runtime.gopark, as Go's text forms of goroutines do: they leave out the runtime's \
             waiting functions; compare files of one form, or only the cum of the program's own functions"
        ))
    }
}
