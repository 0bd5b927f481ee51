//! Tests of renames, moves and unchanged work in `explain`. A weaker rule would give a false answer for these synthetic
//! pairs. Each pair has a counterpart for which the same answer is right.

use std::sync::Arc;

use pprofdiff::{Diff, Profile, Query};
use pprofdiff_explain::{CauseKind, ExplainOptions, Explanation, MoveKind, ScaleRule, Verdict};

use crate::synthetic::{cpu, says, with, words};

fn explain(base: &[Arc<Profile>], new: &[Arc<Profile>], ops: Option<f64>) -> Explanation {
    let options = ops.map_or_else(ExplainOptions::default, |ops| ExplainOptions::default().with_ops(1.0, ops));
    pprofdiff_explain::explain(&Diff::new(base, new).unwrap(), &Query::default(), &[], &options).unwrap()
}

/// Explains two profiles of a Go program with thirty unchanged functions and these stacks.
fn between(base: &[(&str, i64)], new: &[(&str, i64)]) -> Explanation {
    explain(&[cpu(&with(base))], &[cpu(&with(new))], None)
}

/// Explains two profiles that have only these stacks.
fn explain_only(base: &[(&str, i64)], new: &[(&str, i64)]) -> Explanation {
    let side = |stacks: &[(&str, i64)]| cpu(&stacks.iter().map(|(stack, n)| ((*stack).to_owned(), *n)).collect());
    explain(&[side(base)], &[side(new)], None)
}

/// Checks that no rename and no cost shift is reported.
fn assert_nothing_moved(e: &Explanation) {
    assert!(e.moved.iter().all(|moved| moved.how == MoveKind::Replaced), "{:?}", e.moved);
}

#[test]
fn a_vendored_module_is_renamed_with_all_of_its_packages() {
    let side = |path: &str| {
        let stack = |function: &str| (format!("main.main;main.serve;{path}{function}"), 4000);
        let all = [stack(".(*DB).Get"), stack(".(*DB).Put"), stack("/page.Read"), stack("/page.Write")];
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side("example.com/acme/kv")], &[side("shop.org/app/vendor/example.com/acme/kv")], None);
    assert_eq!((e.verdict, e.causes.len()), (Verdict::None, 0), "{e:?}");
    says(&e, "Moved: example.com/acme/kv is now called shop.org/app/vendor/example.com/acme/kv: 4 functions.\n");
}

#[test]
fn an_optimised_function_is_not_renamed_to_a_growing_sibling() {
    let side = |generate: &'static str, made: i64, inserted: i64| {
        [("main.main;api.Add;store.(*DB).Insert", inserted), (generate, made)]
    };
    let generate = "main.main;api.Add;ids.Generate";
    let e = between(&side(generate, 5000, 4000), &side("main.main;api.Add", 0, 9000));
    assert_nothing_moved(&e);
    assert!(e.moved.is_empty(), "{:?}", e.moved);
    says(&e, "api.Add no longer calls ids.Generate: -50s");
    // A logger that logs less is not renamed to SQL that grew.
    let e = between(&side("main.main;api.Add;log.Write", 7000, 4000), &side("main.main;api.Add;log.Write", 2000, 9000));
    assert!(e.moved.is_empty(), "{:?}", e.moved);
    let delta_of =
        |function: &str| e.causes.iter().find(|cause| cause.function.as_deref() == Some(function)).unwrap().delta;
    assert_eq!((delta_of("log.Write"), delta_of("store.(*DB).Insert")), (-5e10, 5e10), "{}", words(&e));
}

#[test]
fn implementations_of_an_interface_are_not_renames() {
    let side = |package: &str, get: i64, add: i64| {
        let stack =
            |caller: &str, method: &str, n| (format!("main.main;main.{caller};shop/{package}.(*Store).{method}"), n);
        let all = [stack("find", "Get", get), stack("save", "Add", add)];
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side("pg", 3000, 3000)], &[side("memory", 18_000, 400)], None);
    assert_nothing_moved(&e);
    says(&e, "main.find calls shop/memory.(*Store).Get (+180s) instead of shop/pg.(*Store).Get (-30s): +150s");
    assert!(e.causes.iter().all(|cause| cause.kind != CauseKind::Own), "{}", words(&e));
    // If both implementations cost the same, there is no cause. The functions are still not renames.
    let e = explain(&[side("pg", 3000, 3000)], &[side("memory", 3050, 2950)], None);
    assert_nothing_moved(&e);
    assert_eq!((e.verdict, e.causes.len(), e.moved.len()), (Verdict::None, 0, 2), "{e:?}");
    says(&e, "shop/memory.(*Store).Get replaces shop/pg.(*Store).Get inside main.find: ");
    says(&e, "Functions were replaced by others; no other change was detected.");
    // Types of one package may implement the same interface, too.
    let stack = |kind: &str| format!("main.main;main.find;shop.(*{kind}).Get");
    let (old, new) = (stack("Table"), stack("Cache"));
    assert_nothing_moved(&between(&[(&old, 4000)], &[(&new, 4000)]));
}

#[test]
fn a_method_of_another_type_is_a_rename_if_it_calls_the_same() {
    let side = |kind: &str| {
        let stack = |callee: &str, n: i64| (format!("main.main;main.find;shop.(*{kind}).Get{callee}"), n);
        let all = [stack("", 1000), stack(";shop.decode", 2000), stack(";shop.hash", 1000)];
        cpu(&with(&all.iter().map(|(stack, n)| (stack.as_str(), *n)).collect::<Vec<_>>()))
    };
    let e = explain(&[side("Table")], &[side("Rows")], None);
    assert_eq!((e.verdict, e.moved.len(), e.moved[0].how), (Verdict::None, 1, MoveKind::Renamed), "{e:?}");
}

#[test]
fn a_sibling_of_equal_cost_is_not_a_rename() {
    // A logger was removed and a query was added, for the same caller and at the same cost.
    let e = between(&[("main.main;main.serve;main.logRequest", 4000)], &[("main.main;main.serve;main.query", 4000)]);
    assert_nothing_moved(&e);
    assert!(e.causes.is_empty(), "{}", words(&e));
    says(&e, "main.query replaces main.logRequest inside main.serve: ");
    // Both format text, as most functions do.
    let side = |function: &str| {
        let stack = format!("main.main;main.serve;{function};fmt.Sprintf");
        cpu(&with(&[(&stack, 4000)]))
    };
    assert_nothing_moved(&explain(&[side("main.logRequest")], &[side("main.query")], None));
    // Similar names are evidence of a rename.
    let e = between(&[("main.main;main.serve;main.query", 4000)], &[("main.main;main.serve;main.queryRows", 4000)]);
    assert_eq!((e.moved.len(), e.moved[0].how), (1, MoveKind::Renamed), "{e:?}");
}

#[test]
fn equal_closure_numbers_are_not_a_rename() {
    let stack = |function: &str| format!("main.main;main.each;{function}.func1");
    let (old, new) = (stack("shop/read.scan"), stack("shop/write.flush"));
    assert_nothing_moved(&between(&[(&old, 4000)], &[(&new, 4000)]));
    // If the enclosing function moved to another path, its closure is renamed, too.
    let (old, new) = (stack("shop/read.scan"), stack("shop/input.scan"));
    let e = between(&[(&old, 4000)], &[(&new, 4000)]);
    assert_eq!((e.moved.len(), e.moved[0].how), (1, MoveKind::Renamed), "{e:?}");
    let (old, new) = ("main;run;<lambda>", "main;run;Parser.<lambda>");
    assert_nothing_moved(&explain_only(&[(old, 4000), ("main;<module>", 900)], &[(new, 4000), ("main;<module>", 900)]));
}

#[test]
fn a_script_that_is_now_required_by_another_is_not_a_cause() {
    let side = |above: &str| {
        let stack = |function: &str, n| (format!("{above}(anonymous) work.js;{function}"), n);
        let all = [stack("parse", 5000), stack("render", 4000), stack("render;escape", 3000), stack("write", 2000)];
        cpu(&all.into_iter().chain([("(program)".to_owned(), 500)]).collect())
    };
    let e = explain(&[side("(root);")], &[side("(root);(anonymous) main.js;require;Module._load;")], None);
    assert!(e.causes.is_empty(), "{}", words(&e));
    assert_eq!((e.verdict, e.moved.len(), e.moved[0].how), (Verdict::None, 1, MoveKind::Outlined), "{}", words(&e));
    says(&e, "Moved: (root) now calls (anonymous) work.js through (anonymous) main.js: 97% of the new total.");
}

#[test]
fn rewritten_code_needs_a_known_amount_of_work_for_a_verdict() {
    let side = |names: &str, n: i64| {
        let stack = |c: char| (format!("main.main;main.load;x.org/lib/{names}.{names}{c}"), n);
        cpu(&with(
            &"abcdef".chars().map(stack).collect::<Vec<_>>().iter().map(|(s, n)| (s.as_str(), *n)).collect::<Vec<_>>(),
        ))
    };
    let [base, new] = [[side("decode", 30_000)], [side("scan", 29_000)]];
    let e = explain(&base, &new, None);
    assert!(e.rewrite.is_some(), "{e:?}");
    assert_eq!(e.verdict, Verdict::Inconclusive, "{}", words(&e));
    says(&e, "Much of the code was rewritten, so these samples do not show whether the same work costs more or less.");
    assert_ne!(explain(&base, &new, Some(1.0)).verdict, Verdict::Inconclusive);
    // If little other code is left, the amount of work cannot be shown to be the same.
    let side = |names: &str| {
        let stack = |c: char| (format!("main.main;x.org/lib/{names}.{names}{c}"), 900);
        cpu(&"abcdef".chars().map(stack).chain([("main.main;main.load".to_owned(), 500)]).collect())
    };
    let e = explain(&[side("decode")], &[side("scan")], None);
    assert_eq!(e.scale.rule, ScaleRule::Unknown, "{e:?}");
    assert!(!words(&e).contains("same work ("), "{}", words(&e));
}

#[test]
fn the_same_work_needs_three_independent_functions_as_evidence() {
    let rule = |stacks: &[(&str, i64)], b: i64| {
        let side = |n: i64| [&[("main.main;main.grows", n)], stacks].concat();
        explain_only(&side(9000), &side(b)).scale.rule
    };
    let three = [("main.main;main.a", 3000), ("main.main;main.b", 3000), ("main.main;main.c", 3000)];
    assert_eq!(rule(&three, 14_000), ScaleRule::Same);
    assert_eq!(rule(&three[..2], 14_000), ScaleRule::Unknown);
    let calls =
        [("main.main;main.a", 3000), ("main.main;main.a;main.b", 3000), ("main.main;main.a;main.b;main.c", 3000)];
    assert_eq!(rule(&calls, 14_000), ScaleRule::Unknown);
    // Without usable frames, the text must not mention their number.
    let few = [("main.main;main.a", 3)];
    assert!(!words(&explain_only(&few, &few)).contains("0 of 0"), "{}", words(&explain_only(&few, &few)));
    assert!(!words(&explain_only(&few, &[("main.main;main.b", 3)])).contains("0 of 0"));
}
