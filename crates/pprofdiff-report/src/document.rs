//! Documents of crates above this one. A [`Report`](crate::Report) holds such a document without knowing its type.

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

use pprofdiff::Summary;

/// A document of a crate above this one, which only formats of that crate write.
pub trait Document: Any + Debug + Send + Sync {
    /// Writes the document.
    ///
    /// # Errors
    /// Fails if `out` fails.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Returns the summary, whose warnings the caller may have to show. `None` if the document contains its summaries.
    fn summary(&self) -> Option<&Arc<Summary>> {
        None
    }
}

impl dyn Document {
    /// Returns the document as its own type, or `None` if it has another type.
    pub fn downcast<T: Document>(self: Box<Self>) -> Option<T> {
        let document: Box<dyn Any> = self;
        document.downcast().ok().map(|document| *document)
    }
}
