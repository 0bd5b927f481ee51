//! Call graphs, for formats that record the calls between functions and no stacks: callgrind and cProfile.
//!
//! ```text
//! own costs and calls of functions -> CallGraph -> cycles -> consistent costs of calls -> stacks -> samples
//!                                     (this file)  (cycles.rs)  (columns.rs)              (stacks.rs)
//! ```
//!
//! Stacks are estimated as in gprof: if a function has several callers, its costs are divided among them in proportion
//! to the cost of their calls. Everything that the file states stays exact, because each division is in integers that
//! add up: the own cost of each line, the cost and the number of each call, and thus the inclusive cost of each function
//! outside of cycles. Files do not divide the cost of a cycle among its calls, so only the calls into a cycle, the calls
//! out of it and the own costs inside it are exact.

mod columns;
mod cycles;
mod stacks;
#[cfg(test)]
mod tests;

use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::RandomState;
use pprofdiff_profile::{Error, ErrorKind, Result};

use super::tree::too_large;

/// The costs and counts of an input may have `CELLS + size` numbers altogether, where `size` is its size in bytes. A
/// format may omit zeros, so a short line may stand for many numbers.
const CELLS: usize = 4 << 20;

/// The place that stands for callers that are left out of a stack, and the name of its frame.
pub const LEFT_OUT: u32 = u32::MAX;
pub const LEFT_OUT_NAME: &str = "[callers left out]";

/// The relation of the costs of calls to the costs of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// They agree, except for calls that the input does not have.
    Exact,
    /// They may differ by rounding, so tiny differences count as equal.
    Measured,
    /// The costs of calls are only weights of the callers.
    ByCounts,
}

/// A call graph with costs, which add up along calls, and counts of calls. Places are numbers that the caller chooses;
/// a place stands for a line of a function, and becomes a frame.
#[derive(Debug, Clone)]
pub struct CallGraph {
    n_costs: usize,
    n_counts: usize,
    size: usize,
    functions: Vec<GraphFunction>,
    /// The function and the place of own costs.
    own: Interner<(u32, u32), RandomState>,
    own_costs: Vec<i64>,
    /// The caller, the place of the call, and the called function.
    calls: Interner<(u32, u32, u32), RandomState>,
    /// For each call, its counts, its costs, and the part of these that is the called function's own cost.
    call_numbers: Vec<i64>,
    /// The counts of calls without a known caller, by function.
    uncalled: Vec<i64>,
}

#[derive(Debug, Clone, Copy)]
struct GraphFunction {
    /// The group of the stacks, such as a thread.
    group: u32,
    /// The place that counts calls of this function.
    entry: u32,
}

/// The properties of estimated stacks, for notes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The number of functions that several functions call.
    pub shared: usize,
    /// The number of functions that call themselves, directly or through others.
    pub recursive: usize,
    /// The number of functions.
    pub functions: usize,
    /// True if calls cost more than the called functions, by more than a hundredth of all costs.
    pub is_lowered: bool,
    /// True if stacks beyond the budget were assigned to the first path that accounts for them.
    pub has_remainder: bool,
    /// The costs whose callers are left out, by cost.
    pub left_out: Vec<i64>,
}

impl CallGraph {
    /// Returns an empty graph for an input of `size` bytes.
    pub fn new(n_costs: usize, n_counts: usize, size: usize) -> CallGraph {
        CallGraph {
            n_costs,
            n_counts,
            size,
            functions: Vec::new(),
            own: Interner::default(),
            own_costs: Vec::new(),
            calls: Interner::default(),
            call_numbers: Vec::new(),
            uncalled: Vec::new(),
        }
    }

    /// Adds a function, and returns its number. `group` separates stacks, for example of two threads. `entry` is the place
    /// of the function that counts its calls.
    ///
    /// # Errors
    /// The costs of the input are too many.
    pub fn function(&mut self, group: u32, entry: u32) -> Result<u32> {
        self.functions.push(GraphFunction { group, entry });
        self.uncalled.resize(self.functions.len() * self.n_counts, 0);
        self.limit_cells()?;
        Ok(self.functions.len() as u32 - 1)
    }

    /// Sets the place of a function that counts its calls.
    pub fn set_entry(&mut self, function: u32, entry: u32) {
        self.functions[function as usize].entry = entry;
    }

    /// Adds own costs of a function at a place.
    ///
    /// # Errors
    /// A sum does not fit in an int64, or the costs of the input are too many.
    pub fn add_own(&mut self, function: u32, place: u32, costs: &[i64]) -> Result<()> {
        let start = self.own.number((function, place)) as usize * self.n_costs;
        if start == self.own_costs.len() {
            self.own_costs.resize(start + self.n_costs, 0);
            self.limit_cells()?;
        }
        add_all(&mut self.own_costs[start..], costs)
    }

    /// Adds calls of a function: their number, their inclusive costs, and the called function's own costs within them.
    /// Pass no own costs if the input does not have them.
    ///
    /// # Errors
    /// Fails like [`CallGraph::add_own`].
    pub fn add_call(
        &mut self,
        (caller, place, callee): (u32, u32, u32),
        counts: &[i64],
        costs: &[i64],
        own: &[i64],
    ) -> Result<()> {
        let stride = self.n_counts + 2 * self.n_costs;
        let start = self.calls.number((caller, place, callee)) as usize * stride;
        if start == self.call_numbers.len() {
            self.call_numbers.resize(start + stride, 0);
            self.limit_cells()?;
        }
        let (sums, rest) = self.call_numbers[start..start + stride].split_at_mut(self.n_counts);
        let (inclusive, own_sums) = rest.split_at_mut(self.n_costs);
        add_all(sums, counts)?;
        add_all(inclusive, costs)?;
        add_all(own_sums, own)
    }

    /// Adds calls of a function by callers that the input does not have.
    ///
    /// # Errors
    /// A sum does not fit in an int64.
    pub fn add_uncalled(&mut self, function: u32, counts: &[i64]) -> Result<()> {
        add_all(&mut self.uncalled[function as usize * self.n_counts..], counts)
    }

    fn limit_cells(&self) -> Result<()> {
        // Each function also needs cells for its sums, even if it has no cost.
        let by_function = self.functions.len() * (self.n_costs + self.n_counts);
        if self.own_costs.len() + self.call_numbers.len() + by_function > CELLS + self.size {
            let detail = "its lines have too many costs altogether for an input of its size; record fewer events";
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        Ok(())
    }
}

fn add_all(sums: &mut [i64], values: &[i64]) -> Result<()> {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum = sum.checked_add(value).ok_or_else(too_large)?;
    }
    Ok(())
}

/// Returns `a * b / c` rounded half up, for numbers with `0 <= a <= c`. The result is between 0 and `b`.
fn share(a: i64, b: i64, c: i64) -> i64 {
    let c_wide = i128::from(c.max(1));
    if a >= c { b } else { (i128::from(a) * i128::from(b) + c_wide / 2).div_euclid(c_wide) as i64 }
}

impl Estimate {
    /// Returns notes for readers: that stacks are estimated, and what was left out. `cost` is the name of the first cost,
    /// and `advice` follows the first note.
    pub fn notes(&self, cost: &str, advice: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.shared + self.recursive > 0 {
            notes.push(format!(
                "stacks are estimated from calls ({} of {} functions have several callers; recursive functions: {}); own \
                 costs and calls are exact{advice}",
                self.shared, self.functions, self.recursive
            ));
        }
        if self.has_remainder {
            notes.push("light stacks are not in proportion, because there are too many of them".to_owned());
        }
        if self.left_out.iter().any(|&cost| cost > 0) {
            let left_out = self.left_out.first().copied().unwrap_or(0);
            notes.push(format!(
                "the callers of {left_out} {cost} are left out, because the stacks are too many and too long for a file of this size"
            ));
        }
        if self.is_lowered {
            notes.push("some calls cost more than the functions that they call; these calls are lowered".to_owned());
        }
        notes
    }
}
