//! What is said of names before causes are sought: which functions are called otherwise, and which are part of their callers
//! on the other side. A file a rule.

pub(super) mod inlined;
pub(super) mod renamed;
