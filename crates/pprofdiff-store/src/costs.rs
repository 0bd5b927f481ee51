//! The cost of each function of a profile, computed by the caller of `Store::add`. Most questions about a fleet need
//! only this table, and a history of functions is built from it without reading samples.

use parquet::data_type::ByteArray;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::hex_16;
use super::table::{ColumnKind, StoreColumn, StoreTable};
use pprofdiff::input::{Costs, FunctionCost, TypeCosts};
use pprofdiff_profile::Profile;
use pprofdiff_profile::{Error, Result};

pub static FUNCTIONS: StoreTable = StoreTable {
    name: "functions",
    columns: &[
        ("profile", ColumnKind::Text),
        ("name", ColumnKind::Text),
        ("time_nanos", ColumnKind::Int),
        ("duration_nanos", ColumnKind::Int),
        ("sample_type", ColumnKind::Text),
        ("unit", ColumnKind::Text),
        ("function", ColumnKind::Text),
        // Set only for functions without a name.
        ("binary", ColumnKind::Text),
        ("flat", ColumnKind::Near),
        ("cum", ColumnKind::Near),
    ],
};

/// The costs in a file's metadata, next to the rows.
#[derive(Serialize, Deserialize)]
pub struct StoredCosts {
    types: Vec<StoredType>,
    default_type: usize,
    samples: usize,
    time_nanos: i64,
    duration_nanos: i64,
    /// The hash of all data that is read again.
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct StoredType {
    name: [String; 2],
    total: [i64; 2],
    /// The bits of an `f64`, because decimal text may lose the last of them.
    event: u64,
    rows: usize,
}

fn functions(costs: &Costs) -> impl Iterator<Item = (&TypeCosts, &FunctionCost)> {
    costs.types.iter().flat_map(|sample_type| sample_type.functions.iter().map(move |row| (sample_type, row)))
}

/// Returns the columns of [`FUNCTIONS`] for a profile, in their order.
pub fn rows(costs: &Costs, p: &Profile, id: &str) -> Vec<StoreColumn> {
    let n = functions(costs).count();
    let texts = |text: fn(&TypeCosts, &FunctionCost) -> ByteArray| {
        StoreColumn::Bytes(functions(costs).map(|(sample_type, row)| text(sample_type, row)).collect())
    };
    let ints =
        |value: fn(&FunctionCost) -> i64| StoreColumn::Int(functions(costs).map(|(_, row)| value(row)).collect());
    vec![
        StoreColumn::Bytes(vec![id.into(); n]),
        StoreColumn::Bytes(vec![p.name().into(); n]),
        StoreColumn::Int(vec![p.time_nanos(); n]),
        StoreColumn::Int(vec![p.duration_nanos(); n]),
        texts(|t, _| t.name[0].as_str().into()),
        texts(|t, _| t.name[1].as_str().into()),
        texts(|_, row| row.function.as_str().into()),
        texts(|_, row| row.binary.as_str().into()),
        ints(|row| row.flat),
        ints(|row| row.cum),
    ]
}

/// Returns the costs for a file's metadata, with the profile's number of samples and times. Returns `None` unless
/// [`Costs::is_plain`] is true.
pub fn to_stored(costs: &Costs, p: &Profile) -> Option<StoredCosts> {
    let to_stored_type = |t: &TypeCosts| StoredType {
        name: t.name.clone(),
        total: t.total,
        event: t.event.to_bits(),
        rows: t.functions.len(),
    };
    let (time_nanos, duration_nanos) = (p.time_nanos(), p.duration_nanos());
    let mut costs = costs.clone();
    (costs.samples, costs.time_nanos, costs.duration_nanos) = (p.n_samples(), time_nanos, duration_nanos);
    costs.is_plain.then(|| StoredCosts {
        types: costs.types.iter().map(to_stored_type).collect(),
        default_type: costs.default_type,
        samples: costs.samples,
        time_nanos,
        duration_nanos,
        hash: hash_of(&costs),
    })
}

fn hash_of(costs: &Costs) -> String {
    let mut hash = Sha256::new();
    for number in [costs.default_type as i64, costs.samples as i64, costs.time_nanos, costs.duration_nanos] {
        hash.update(number.to_le_bytes());
    }
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for t in &costs.types {
        t.name.iter().for_each(|name| text(name));
        t.functions.iter().for_each(|row| [&row.function, &row.binary].into_iter().for_each(|name| text(name)));
    }
    for t in &costs.types {
        hash.update(t.event.to_bits().to_le_bytes());
        let row_values = t.functions.iter().flat_map(|row| [row.flat, row.cum]);
        t.total.into_iter().chain(row_values).for_each(|number| hash.update(number.to_le_bytes()));
    }
    hex_16(hash)
}

/// The columns that [`read`] expects.
pub const READ: [&str; 4] = ["function", "binary", "flat", "cum"];

/// Restores costs from the columns of a store.
///
/// # Errors
/// Returns an error if the data has changed since it was written.
pub fn read(stored: StoredCosts, [functions, binaries, flat, cum]: [StoreColumn; 4]) -> Result<Costs> {
    let (functions, binaries, flat, cum) = (functions.bytes(), binaries.bytes(), flat.ints(), cum.ints());
    let text = |text: &ByteArray| String::from_utf8_lossy(text.data()).into_owned();
    let mut rows =
        functions.iter().zip(&binaries).zip(flat.into_iter().zip(cum)).map(|((function, binary), (flat, cum))| {
            FunctionCost { function: text(function), binary: text(binary), flat, cum }
        });
    let mut types = Vec::with_capacity(stored.types.len());
    for t in stored.types {
        let functions = rows.by_ref().take(t.rows).collect();
        types.push(TypeCosts { name: t.name, total: t.total, event: f64::from_bits(t.event), functions });
    }
    let mut costs = Costs::default();
    (costs.types, costs.default_type, costs.is_plain) = (types, stored.default_type, true);
    (costs.samples, costs.time_nanos, costs.duration_nanos) =
        (stored.samples, stored.time_nanos, stored.duration_nanos);
    match hash_of(&costs) == stored.hash {
        true => Ok(costs),
        false => Err(Error::malformed("the costs of its functions were changed since it was added")),
    }
}
