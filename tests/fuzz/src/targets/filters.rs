//! Any text as a filter on a real profile: an answer or a one-line error, in limited time.

use std::sync::{Arc, LazyLock};

use crate::inputs::Inputs;
use crate::shared::{Choices, LIMIT};
use pprofdiff::{Diff, Query, Sort};
use pprofdiff_report::Table;

static DIFF: LazyLock<Diff> = LazyLock::new(|| {
    let load = |name: &str, bytes: &[u8]| match pprofdiff::from_bytes(name, bytes, &LIMIT) {
        Ok(p) => Arc::new(p),
        Err(e) => panic!("{e}"),
    };
    let base = load("base", include_bytes!("../../../corpus/node-time.base.pb.gz"));
    let new = load("new", include_bytes!("../../../corpus/node-time.new.pb.gz"));
    Diff::new(&[base], &[new]).unwrap_or_else(|e| panic!("{e}"))
});

pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let query = Query::default().with_filters(choices.filters());
    let checked = query.filters.check();
    match DIFF.measure(&query) {
        Ok(view) => {
            assert!(checked.is_ok(), "{checked:?}, but it is answered");
            Table::top(&view.top(Sort::Flat), 20);
            view.stacks(true);
            assert!(view.summary().warnings.iter().all(|w| w.len() < 10_000), "a warning is endless");
        }
        Err(e) => assert!(!e.to_string().contains('\n'), "an error of several lines: {e}"),
    }
    let pattern = String::from_utf8_lossy(data);
    if let Ok(view) = DIFF.measure(&Query::default()) {
        let _ = view.edges(Some(&pattern), Sort::Cum);
    }
}

/// Returns each of some expressions as each filter, and as all filters.
pub fn seeds() -> Inputs {
    let expressions: [&[u8]; 6] =
        [b"main", b"(?i)RUN|loop", b"[a-z&&b]\\Q{\\E{2,3}", b"bytes=32kb:1mb", b"a{1000}{1000}", b"(((a*)*)*)*$"];
    let mut seeds = Vec::new();
    for (i, expression) in expressions.into_iter().enumerate() {
        let text = [&[128 + expression.len() as u8], expression].concat();
        for place in 0..10 {
            seeds.push((format!("{i}-{place}"), [&*vec![0; place], &text, &vec![0; 10 - place]].concat()));
        }
        seeds.push((format!("{i}-all"), text.repeat(10)));
    }
    seeds
}
