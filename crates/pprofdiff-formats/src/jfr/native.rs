//! Native memory: finds the allocations that are in use at the end of a recording.
//!
//! async-profiler writes `profiler.Malloc` and `profiler.Free` events with an address each. An allocation is in use at
//! the end if no `profiler.Free` with its address follows it. Threads write events in buffers of their own, so the
//! events of a file are not sorted by time. Matching therefore waits until all events were read.

/// The allocations and frees of the recording, or of the time window that is read. Frees before the window are not
/// known. Memory that is freed after the window is in use at its end.
#[derive(Debug, Default)]
pub(super) struct NativeMemory {
    events: Vec<MemoryEvent>,
    has_frees: bool,
}

#[derive(Debug, Clone, Copy)]
struct MemoryEvent {
    address: i64,
    /// The time in nanoseconds since 1970.
    time: i64,
    /// The allocation, or `None` if the memory was freed.
    allocation: Option<Allocation>,
}

/// An allocation that may still be in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    /// The index of the caller's sum, which holds the stack and the labels.
    pub sum: u32,
    pub bytes: i64,
}

impl NativeMemory {
    pub fn allocate(&mut self, address: i64, time: i64, allocation: Allocation) {
        self.events.push(MemoryEvent { address, time, allocation: Some(allocation) });
    }

    pub fn free(&mut self, address: i64, time: i64) {
        self.has_frees = true;
        self.events.push(MemoryEvent { address, time, allocation: None });
    }

    /// Returns the allocations in use at the end. Returns `None` if no memory was freed: with `nofree`, async-profiler
    /// omits all frees, so the allocations of such a recording may have been freed.
    pub fn in_use(self) -> Option<impl Iterator<Item = Allocation>> {
        let mut events = self.events;
        // Events with the same address and time keep the order of the file, which is the order within their thread.
        events.sort_by_key(|event| (event.address, event.time));
        let is_last =
            |events: &[MemoryEvent], i: usize| events.get(i + 1).is_none_or(|next| next.address != events[i].address);
        self.has_frees.then(|| {
            // An allocation whose address is allocated again was freed, but the profiler missed the free.
            (0..events.len()).filter_map(move |i| events[i].allocation.filter(|_| is_last(&events, i)))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn allocations_without_a_later_free_are_in_use() {
        let mut memory = NativeMemory::default();
        let allocation = |sum| Allocation { sum, bytes: 10 };
        memory.free(1, 30);
        memory.allocate(1, 10, allocation(0));
        memory.allocate(2, 10, allocation(1));
        memory.allocate(3, 20, allocation(2));
        memory.free(3, 10);
        memory.allocate(4, 10, allocation(3));
        memory.allocate(4, 20, allocation(4));
        memory.allocate(5, 10, allocation(5));
        memory.free(5, 10);
        let in_use: Vec<u32> = memory.in_use().unwrap().map(|allocation| allocation.sum).collect();
        assert_eq!(in_use, [1, 2, 4]);
    }

    #[test]
    fn memory_in_use_is_unknown_without_frees() {
        let mut memory = NativeMemory::default();
        memory.allocate(1, 10, Allocation { sum: 0, bytes: 10 });
        assert!(memory.in_use().is_none());
    }
}
