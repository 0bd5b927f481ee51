//! Frames that only one side has, because it was recorded differently. Examples are `runtime.goexit` at the root of all
//! stacks in Go's text profiles, `malloc` at the leaf of all stacks of one allocation profiler, and the frames of a
//! script that starts the program. `explain` ignores these frames, so that they are not reported as causes.
//!
//! A program may change in the same way: a new function may call all others, or be called by all others. Ignoring a
//! root frame loses nothing, because the cost of its callees remains, and a warning names it. A leaf takes its callers'
//! cost, so the rule for leaves is stricter.

use super::rows::StackRows;
use crate::thresholds::{
    MAX_FRAMES_OF_RECORDER, MAX_RECORDERS_FRAMES_OF_STACK, MIN_CALLERS_OF_RECORDERS_LEAF, MIN_PART_WITH_RECORDERS_LEAF,
    MIN_PART_WITH_RECORDERS_ROOT,
};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashSet;

/// An end of stacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StackEnd {
    Root,
    Leaf,
}

impl StackEnd {
    /// Returns the frame at a distance from this end.
    fn frame(self, stack: &[u32], distance: usize) -> Option<u32> {
        match self {
            StackEnd::Root => stack.get(distance).copied(),
            StackEnd::Leaf => stack.len().checked_sub(distance + 1).map(|index| stack[index]),
        }
    }
}

/// The frame that represents all runtime functions at the leaf in Go's text profiles, which omit their names.
const UNNAMED: &str = "runtime.(unnamed)";

/// Removes the frames that only one side's recorder wrote, and returns warnings that name them. Returns an empty list
/// if there are none.
pub(crate) fn leave_out(rows: &mut StackRows) -> Vec<String> {
    let sides = sides_of_names(rows);
    let mut notes: Vec<String> = leave_out_runtime(rows, &sides).into_iter().collect();
    for end in [StackEnd::Root, StackEnd::Leaf] {
        for side in [0, 1] {
            let Some((cuts, frames)) = cuts(rows, &sides, end, side) else { continue };
            let mut names: Vec<&str> = frames.iter().map(|&frame| &*rows.names[frame as usize].text).collect();
            names.sort_unstable();
            let [own_side, other_side] = if side == 0 { ["base", "new side"] } else { ["new side", "base"] };
            let position = if end == StackEnd::Root { "begin with" } else { "end with" };
            notes.push(format!(
                "stacks were recorded differently: stacks of the {own_side} {position} {}, which the {other_side} lacks; \
                 explain ignores these frames",
                names.join(", ")
            ));
            rows.regroup(|row, stack| match end {
                StackEnd::Root => drop(stack.drain(..cuts[row])),
                StackEnd::Leaf => stack.truncate(stack.len() - cuts[row]),
            });
        }
    }
    notes
}

/// Removes the runtime's functions at all leaves if one side does not name them, and returns a warning. Returns `None`
/// if neither side or both sides omit the names. Stacks with nothing but the runtime remain.
fn leave_out_runtime(rows: &mut StackRows, sides: &[[bool; 2]]) -> Option<String> {
    let unnamed = rows.names.iter().position(|name| &*name.text == UNNAMED)?;
    if sides[unnamed] == [true; 2] {
        return None;
    }
    let is_runtime: Vec<bool> = rows.names.iter().map(|name| name.text.starts_with("runtime.")).collect();
    rows.regroup(|_, stack| {
        let run = stack.iter().rev().take_while(|&&frame| is_runtime[frame as usize]).count();
        if run < stack.len() {
            stack.truncate(stack.len() - run);
        }
    });
    let side = if sides[unnamed][0] { "base" } else { "new side" };
    Some(format!(
        "stacks were recorded differently: stacks of the {side} do not name the runtime's functions at the leaf; explain \
         ignores these functions"
    ))
}

/// Returns, by name, the sides that have it.
fn sides_of_names(rows: &StackRows) -> Vec<[bool; 2]> {
    let bits = |sides: [bool; 2]| u8::from(sides[0]) | u8::from(sides[1]) << 1;
    let mut sides: Vec<u8> =
        (0..rows.names.len() as u32).map(|f| bits([0, 1].map(|side| rows.may_have(f, side)))).collect();
    for row in checkpointed(&rows.rows) {
        let sides_of_row = bits(row.values.map(|value| value > 0.0));
        rows.stacks.get(row.stack).iter().for_each(|&frame| sides[frame as usize] |= sides_of_row);
    }
    sides.into_iter().map(|bits| [bits & 1 != 0, bits & 2 != 0]).collect()
}

/// Returns the number of frames that each row loses at an end, and the set of these frames. Returns `None` if too few
/// stacks of the side begin or end with frames that the opposite side lacks, or with too many different ones, because
/// the program itself may then have changed.
fn cuts(rows: &StackRows, sides: &[[bool; 2]], end: StackEnd, side: usize) -> Option<(Vec<usize>, HashSet<u32>)> {
    let is_foreign = |frame: u32| sides[frame as usize][side] && !sides[frame as usize][1 - side];
    let rows_of_side = |side: usize| (0..rows.rows.len()).filter(move |&row| rows.rows[row].values[side] > 0.0);
    // After the frames to remove, the stack must continue with a frame that also starts a stack on the opposite side.
    let mut ends = vec![false; rows.names.len()];
    for row in rows_of_side(1 - side) {
        end.frame(rows.stack(row), 0).into_iter().for_each(|frame| ends[frame as usize] = true);
    }
    let mut cuts = vec![0; rows.rows.len()];
    let (mut frames, mut callers): (HashSet<u32>, HashSet<u32>) = Default::default();
    let (mut cut_value, mut value) = (0.0, 0.0);
    for row in checkpointed(rows_of_side(side)) {
        let stack = rows.stack(row);
        value += rows.rows[row].values[side];
        let run = (0..MAX_RECORDERS_FRAMES_OF_STACK)
            .take_while(|&distance| end.frame(stack, distance).is_some_and(is_foreign))
            .count();
        let Some(next) = end.frame(stack, run).filter(|&next| run > 0 && ends[next as usize]) else { continue };
        cut_value += rows.rows[row].values[side];
        cuts[row] = run;
        callers.insert(next);
        frames.extend((0..run).filter_map(|distance| end.frame(stack, distance)));
        if frames.len() > MAX_FRAMES_OF_RECORDER {
            return None;
        }
    }
    let is_recorders = match end {
        StackEnd::Root => cut_value >= MIN_PART_WITH_RECORDERS_ROOT * value,
        StackEnd::Leaf => {
            cut_value >= MIN_PART_WITH_RECORDERS_LEAF * value && callers.len() >= MIN_CALLERS_OF_RECORDERS_LEAF
        }
    };
    (is_recorders && cut_value > 0.0).then_some((cuts, frames))
}

#[cfg(test)]
mod tests {
    use super::super::rows::{FrameName, Row, StackList, StackRows};
    use super::super::sets::tests::rows as some_rows;
    use super::leave_out;
    use pprofdiff::shared::Class;

    /// Creates rows from stacks (root first) with the values of both sides.
    fn rows(stacks: &[(&str, [f64; 2])]) -> StackRows {
        let mut rows = some_rows(0);
        let mut texts: Vec<&str> = stacks.iter().flat_map(|(stack, _)| stack.split(';')).collect();
        texts.sort_unstable();
        texts.dedup();
        let number = |text: &str| texts.iter().position(|other| *other == text).unwrap_or_default() as u32;
        let name = |text: &&str| FrameName { text: (*text).into(), class: Class::default(), shown: Box::default() };
        rows.names = texts.iter().map(name).collect();
        rows.sides.clear();
        rows.stacks = StackList::default();
        let row = |(stack, values): &(&str, [f64; 2])| Row {
            stack: rows.stacks.push(stack.split(';').map(number)),
            labels: 0,
            background: false,
            is_below: false,
            values: *values,
            counts: *values,
            events: *values,
            variance: 1.0,
        };
        rows.rows = stacks.iter().map(row).collect();
        rows.run_values = Default::default();
        rows.arrange();
        rows
    }

    fn texts(rows: &StackRows) -> Vec<String> {
        let text = |&frame: &u32| rows.names[frame as usize].text.to_string();
        let stack = |row: usize| rows.stack(row).iter().map(text).collect::<Vec<_>>().join(";");
        (0..rows.rows.len()).map(|row| format!("{} {:?}", stack(row), rows.rows[row].values)).collect()
    }

    #[test]
    fn common_root_frames_of_one_side_are_removed_with_a_warning() {
        let mut all = rows(&[
            ("goexit;main;a", [30.0, 0.0]),
            ("goexit;main;b", [60.0, 0.0]),
            ("mcall", [1.0, 1.0]),
            ("main;a", [0.0, 30.0]),
            ("main;b", [0.0, 90.0]),
        ]);
        let notes = leave_out(&mut all);
        assert_eq!(texts(&all), ["main;a [30.0, 30.0]", "main;b [60.0, 90.0]", "mcall [1.0, 1.0]"]);
        assert!(notes.len() == 1 && notes[0].contains("the base begin with goexit, which the new side"), "{notes:?}");
    }

    #[test]
    fn leaves_of_a_recorder_are_removed() {
        let callers = ["a", "b", "c", "d"];
        let with = callers.map(|caller| format!("main;{caller};new;malloc"));
        let without = callers.map(|caller| format!("main;{caller}"));
        let mut all: Vec<(&str, [f64; 2])> = with.iter().map(|stack| (&**stack, [0.0, 5.0])).collect();
        all.extend(without.iter().map(|stack| (&**stack, [5.0, 0.0])));
        let mut all = rows(&all);
        assert!(leave_out(&mut all)[0].contains("the new side end with malloc, new,"));
        assert_eq!(texts(&all), callers.map(|caller| format!("main;{caller} [5.0, 5.0]")));
    }

    #[test]
    fn unnamed_go_runtime_functions_are_removed_on_both_sides() {
        let mut all = rows(&[
            ("main.a;runtime.(unnamed)", [9.0, 0.0]),
            ("main.b;runtime.(unnamed)", [5.0, 0.0]),
            ("main.a;runtime.chanrecv1;runtime.gopark", [0.0, 9.0]),
            ("main.b;runtime.gopark", [0.0, 5.0]),
            ("runtime.gcBgMarkWorker;runtime.gopark", [0.0, 1.0]),
        ]);
        assert!(leave_out(&mut all)[0].contains("stacks of the base do not name the runtime's functions"));
        let kept = "runtime.gcBgMarkWorker;runtime.gopark [0.0, 1.0]";
        assert_eq!(texts(&all), ["main.a [9.0, 9.0]", "main.b [5.0, 5.0]", kept]);
    }

    #[test]
    fn frames_that_the_program_may_have_added_stay() {
        for stacks in [
            // A new thread with functions of its own.
            &[("main;a", [9.0, 9.0]), ("thread;serve;a", [0.0, 900.0])][..],
            // A renamed function.
            &[("old;a", [9.0, 0.0]), ("new;a", [0.0, 9.0])],
            // A new function with nearly all of the time.
            &[("main;a", [9.0, 0.0]), ("main;a;slow", [0.0, 900.0])],
            // Some stacks remain as before.
            &[("main;a", [9.0, 5.0]), ("wrap;main;a", [0.0, 9.0])],
        ] {
            let mut all = rows(stacks);
            let before = texts(&all);
            assert_eq!(leave_out(&mut all), Vec::<String>::new());
            assert_eq!(texts(&all), before);
        }
    }
}
