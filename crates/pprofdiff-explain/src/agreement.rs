//! Counts the functions that independently show that both sides did the same work: their own cost is unchanged at that
//! amount of work, and they do not call each other. A single function may have changed together with the amount of
//! work.

use super::evidence::rows::StackRows;
use super::evidence::sets::Sets;
use super::search::SearchResult;
use super::thresholds::{MIN_AGREEING_PART_OF_FUNCTIONS, MIN_EVENTS_OF_WITNESS, MIN_WITNESSES};
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::short_lists::sort_by;

/// Returns the number of functions whose own cost is the same on both sides at this amount of work, counting only
/// functions that do not call each other. Stops at [`MIN_WITNESSES`]. Returns 0 unless more than half of the
/// functions agree with the search's scale.
pub(super) fn independent_witnesses(rows: &StackRows, sets: &Sets, search: &SearchResult, scale: f64) -> usize {
    // If most functions changed, some agree with any amount of work by accident.
    if (search.agree as f64) <= MIN_AGREEING_PART_OF_FUNCTIONS * search.n_telling as f64 {
        return 0;
    }
    let event_of_rows = rows.event();
    let is_witness = |values: [f64; 2], event: f64| {
        values.iter().all(|value| *value > 0.0)
            && values[0] + values[1] > MIN_EVENTS_OF_WITNESS * event
            && search.is_even(rows, event_of_rows, scale, values)
    };
    let unchanged = sets.sets.iter().take(sets.telling.n_own as usize).filter(|set| is_witness(set.values, set.event));
    let mut witnesses: Vec<(f64, u32)> =
        unchanged.filter_map(|set| Some((set.values[0] + set.values[1], set.key.frame()?))).collect();
    sort_by(&mut witnesses, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut is_witness = vec![false; rows.names.len()];
    witnesses.iter().for_each(|(_, frame)| is_witness[*frame as usize] = true);
    // The tree of calls lists each call of the foreground once.
    let background = (rows.n_front()..rows.rows.len()).flat_map(|row| rows.stack(row).windows(2));
    let calls = sets.calls().iter().copied().chain(background.map(|call| (call[0], call[1])));
    let calls: HashSet<(u32, u32)> =
        calls.filter(|(a, b)| is_witness[*a as usize] && is_witness[*b as usize]).collect();
    let mut chosen: Vec<u32> = Vec::new();
    for (_, frame) in witnesses {
        let is_free = |other: &u32| !calls.contains(&(frame, *other)) && !calls.contains(&(*other, frame));
        if chosen.iter().all(is_free) {
            chosen.push(frame);
        }
        if chosen.len() >= MIN_WITNESSES {
            break;
        }
    }
    chosen.len()
}
