//! Walks over the tree of a formula.

use crate::parse::Tree;

/// The named values of the sheet.
pub struct Names {
    #[cfg(not(feature = "branch"))]
    map: std::collections::BTreeMap<String, f64>,
    #[cfg(feature = "branch")]
    list: Vec<(String, f64)>,
}

impl Names {
    pub fn new() -> Names {
        let quarters =
            (1..=4).map(|quarter| (format!("turnover of quarter {quarter}"), f64::from(quarter)));
        let named = quarters.chain([
            ("tax rate".to_string(), 0.19),
            ("unit price".to_string(), 7.5),
        ]);
        #[cfg(not(feature = "branch"))]
        return Names {
            map: named.collect(),
        };
        #[cfg(feature = "branch")]
        return Names {
            list: named.collect(),
        };
    }

    #[cfg(not(feature = "branch"))]
    #[inline(never)]
    fn look_up(&self, name: &str) -> f64 {
        self.map.get(name).copied().unwrap_or(0.0)
    }

    #[cfg(feature = "branch")]
    #[inline(never)]
    fn look_up(&self, name: &str) -> f64 {
        let found = self
            .list
            .iter()
            .find(|(known, _)| same_letters(known, name));
        found.map_or(0.0, |(_, value)| *value)
    }
}

/// Ignores case and spaces.
#[cfg(feature = "branch")]
#[inline(never)]
fn same_letters(a: &str, b: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> + '_ {
        text.bytes()
            .filter(|letter| *letter != b' ')
            .map(|letter| letter.to_ascii_lowercase())
    }
    letters(a).eq(letters(b))
}

/// Evaluates a formula in one row; recursive.
#[inline(never)]
pub fn evaluate(tree: &Tree, names: &Names, row: f64) -> f64 {
    match tree {
        Tree::Number(number) => *number,
        Tree::Name(name) if name == "row" => row,
        Tree::Name(name) => names.look_up(name),
        Tree::Operation(sign, left, right) => apply(
            *sign,
            evaluate(left, names, row),
            evaluate(right, names, row),
        ),
    }
}

fn apply(sign: char, left: f64, right: f64) -> f64 {
    match sign {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        _ => left / right,
    }
}

/// Replaces operations on two numbers by their result; recursive.
#[cfg(feature = "branch")]
#[inline(never)]
pub fn fold_constants(tree: Tree) -> Tree {
    let Tree::Operation(sign, left, right) = tree else {
        return tree;
    };
    match (fold_constants(*left), fold_constants(*right)) {
        (Tree::Number(left), Tree::Number(right)) => Tree::Number(apply(sign, left, right)),
        (left, right) => Tree::Operation(sign, Box::new(left), Box::new(right)),
    }
}
