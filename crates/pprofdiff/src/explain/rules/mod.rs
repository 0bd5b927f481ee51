//! What is said of names before causes are sought: which functions are called otherwise, which are part of their callers on
//! the other side, and whether a library was rewritten. A file a rule.

pub(super) mod inlined;
pub(super) mod renamed;
pub(super) mod rewritten;
