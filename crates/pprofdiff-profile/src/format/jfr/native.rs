//! Native memory: finds the allocations that were not freed.
//!
//! async-profiler writes `profiler.Malloc` and `profiler.Free` with an address each. An allocation is in use at the end if
//! no `profiler.Free` of its address follows it. Threads write events in buffers of their own, so events in a file are not
//! ordered by time, and matching has to wait for the last one.

/// Sample types count these events only as far as a part of the recording has them: what was freed before a part is not
/// known to it, and what is freed after it is in use when the part ends.
#[derive(Debug, Default)]
pub(super) struct NativeMemory {
    events: Vec<Event>,
    has_frees: bool,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    address: i64,
    /// Nanoseconds since 1970.
    time: i64,
    /// `None` if the memory was freed.
    allocation: Option<Allocation>,
}

/// An allocation that may be in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    /// The caller's number of the stack with its labels.
    pub sum: u32,
    pub bytes: i64,
}

impl NativeMemory {
    pub fn allocate(&mut self, address: i64, time: i64, allocation: Allocation) {
        self.events.push(Event { address, time, allocation: Some(allocation) });
    }

    pub fn free(&mut self, address: i64, time: i64) {
        self.has_frees = true;
        self.events.push(Event { address, time, allocation: None });
    }

    /// Returns the allocations in use at the end. Returns `None` if no memory was freed: async-profiler omits all frees
    /// with `nofree`, so allocations of such a recording may have been freed.
    pub fn in_use(self) -> Option<impl Iterator<Item = Allocation>> {
        let mut events = self.events;
        // Events of one address and time keep the order of the file, which is the order of their thread.
        events.sort_by_key(|event| (event.address, event.time));
        let is_last =
            |events: &[Event], i: usize| events.get(i + 1).is_none_or(|next| next.address != events[i].address);
        self.has_frees.then(|| {
            // An allocation whose address is allocated again was freed where the profiler did not see it.
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
    fn nothing_is_known_to_be_in_use_without_frees() {
        let mut memory = NativeMemory::default();
        memory.allocate(1, 10, Allocation { sum: 0, bytes: 10 });
        assert!(memory.in_use().is_none());
    }
}
