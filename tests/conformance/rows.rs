//! The common form of both tools' reports, and their comparison as multisets.
//!
//! Two rows may print the same name (for example, two binaries with the same base name). Neither tool distinguishes
//! such rows, but both must print the same numbers equally often, so the comparison uses multisets.

use std::fmt;

/// One row of a report: its subject as pprof prints it, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub subject: String,
    pub numbers: Vec<i64>,
}

impl Row {
    pub fn is_zero(&self) -> bool {
        self.numbers.iter().all(|number| *number == 0)
    }

    pub fn negated(self) -> Row {
        Row { numbers: self.numbers.iter().map(|number| -number).collect(), ..self }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:?} {}", self.numbers, self.subject)
    }
}

/// The rows that only one of the two reports has.
pub struct Difference {
    pub only_ours: Vec<Row>,
    pub only_pprof: Vec<Row>,
}

/// Compares two reports in both directions: missing rows and additional rows are reported.
pub fn compare(mut ours: Vec<Row>, mut theirs: Vec<Row>) -> Result<(), Difference> {
    ours.sort();
    theirs.sort();
    let (mut only_ours, mut only_pprof) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(our), Some(their)) if our == their => drop((left.next(), right.next())),
            (Some(our), Some(their)) if our < their => only_ours.extend(left.next()),
            (Some(_), None) => only_ours.extend(left.next()),
            _ => only_pprof.extend(right.next()),
        }
    }
    match only_ours.is_empty() && only_pprof.is_empty() {
        true => Ok(()),
        false => Err(Difference { only_ours, only_pprof }),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        // A wrong rule changes every row, so the first few differences are enough.
        const SHOWN: usize = 4;
        for (name, rows) in [("ours ", &self.only_ours), ("pprof", &self.only_pprof)] {
            writeln!(out, "  only {name}: {} rows", rows.len())?;
            for row in rows.iter().take(SHOWN) {
                writeln!(out, "    {row}")?;
            }
        }
        Ok(())
    }
}
