//! Recognises sides with different forms of Go's goroutine profile. The text forms (`debug=1`, `debug=2`, SIGQUIT) leave
//! out the names of the runtime's waiting functions. The binary form has them, so the own costs of all functions that
//! call them differ between the forms.

use super::Diff;

/// The runtime's function that waits. Each binary profile with a waiting goroutine has it.
const WAITS: &[u8] = b"runtime.gopark";

impl Diff {
    /// Returns a warning if only one side of two goroutine profiles names the runtime's waiting functions.
    pub(super) fn warning_about_goroutines(&self) -> Option<String> {
        if !self.is_two_sided() || !self.sample_types().iter().any(|(name, _)| name.starts_with("goroutine")) {
            return None;
        }
        let waits = |base: bool| {
            self.inputs.iter().filter(|input| input.base == base).any(|input| {
                let profile = &input.profile;
                profile.functions().name.iter().any(|&name| profile.string(name) == WAITS)
            })
        };
        let lacking = match [waits(true), waits(false)] {
            [false, true] => "base",
            [true, false] => "new side",
            _ => return None,
        };
        Some(format!(
            "the {lacking} lacks runtime.gopark, as Go's text forms of goroutines do: they leave out the runtime's \
             waiting functions; compare files of one form, or only the cum of the program's own functions"
        ))
    }
}
