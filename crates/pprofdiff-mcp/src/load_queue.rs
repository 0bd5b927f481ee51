//! The order of loads. A client need not wait for the answer to `load` before it sends calls that use the diff.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The end of a load: the channel closes when the load's [`Turn`] is dropped.
type LoadEnd = watch::Receiver<()>;

/// The end of the load that was sent last. Each load waits for the previous load, so its end is the end of all loads
/// before it.
#[derive(Default)]
pub struct LoadQueue(Mutex<Option<LoadEnd>>);

/// The turn of one load, which ends when this is dropped.
pub struct Turn(#[expect(dead_code, reason = "dropping the sender ends the turn")] watch::Sender<()>);

impl LoadQueue {
    /// Adds a load to the end. Returns the end of the previous load, and the new load's turn.
    pub fn join(&self) -> (Option<LoadEnd>, Option<Turn>) {
        let (sender, end) = watch::channel(());
        let previous = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(end);
        (previous, Some(Turn(sender)))
    }

    /// Returns the end of the load that was sent last.
    pub fn last(&self) -> Option<LoadEnd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the end of a load.
    pub async fn wait(end: Option<LoadEnd>) {
        if let Some(mut end) = end {
            while end.changed().await.is_ok() {}
        }
    }
}
