//! The cost of each function of a profile, computed by the caller of `Store::add`. Most questions about a fleet need
//! only this table, and a history of functions is built from it without reading samples.

use parquet::data_type::ByteArray;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::hex_16;
use super::table::{ColumnKind, StoreColumn, StoreTable};
use crate::error::{Error, Result};
use crate::profile::Profile;

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

/// The cost of a function in one profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCost {
    /// The function's name, or an empty string if it is unknown.
    pub function: String,
    /// The binary that contains the function, if its name is unknown.
    pub binary: String,
    /// The function's own cost.
    pub flat: i64,
    /// The function's cost including its callees.
    pub cum: i64,
}

/// The costs in one sample type of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeCosts {
    /// The name and unit of the type.
    pub name: [String; 2],
    /// The sum of the values, and the sum of their absolute values.
    pub total: [i64; 2],
    /// The value of one event in this type, or 0 if it is unknown.
    pub event: f64,
    /// The functions with a cost in this type.
    pub functions: Vec<FunctionCost>,
}

/// The function costs of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// The sample types, in the profile's order.
    pub types: Vec<TypeCosts>,
    /// The index of the sample type that is shown by default.
    pub default_type: usize,
    /// True if views of the profile's functions show no warnings. Otherwise the costs are not read again: warnings can
    /// only be computed from the profile.
    pub is_plain: bool,
    /// The number of samples in the profile.
    pub samples: usize,
    /// The start of the recording, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// The duration of the recording, in nanoseconds.
    pub duration_nanos: i64,
}

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

impl Costs {
    fn functions(&self) -> impl Iterator<Item = (&TypeCosts, &FunctionCost)> {
        self.types.iter().flat_map(|sample_type| sample_type.functions.iter().map(move |row| (sample_type, row)))
    }

    /// Returns the columns of [`FUNCTIONS`] for a profile, in their order.
    pub(super) fn rows(&self, p: &Profile, id: &str) -> Vec<StoreColumn> {
        let n = self.functions().count();
        let texts = |text: fn(&TypeCosts, &FunctionCost) -> ByteArray| {
            StoreColumn::Bytes(self.functions().map(|(sample_type, row)| text(sample_type, row)).collect())
        };
        let ints =
            |value: fn(&FunctionCost) -> i64| StoreColumn::Int(self.functions().map(|(_, row)| value(row)).collect());
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
    pub(super) fn to_stored(&self, p: &Profile) -> Option<StoredCosts> {
        let to_stored_type = |t: &TypeCosts| StoredType {
            name: t.name.clone(),
            total: t.total,
            event: t.event.to_bits(),
            rows: t.functions.len(),
        };
        let (time_nanos, duration_nanos) = (p.time_nanos(), p.duration_nanos());
        let costs = Costs { samples: p.n_samples(), time_nanos, duration_nanos, ..self.clone() };
        self.is_plain.then(|| StoredCosts {
            types: self.types.iter().map(to_stored_type).collect(),
            default_type: self.default_type,
            samples: costs.samples,
            time_nanos,
            duration_nanos,
            hash: costs.hash(),
        })
    }

    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for number in [self.default_type as i64, self.samples as i64, self.time_nanos, self.duration_nanos] {
            hash.update(number.to_le_bytes());
        }
        let mut text = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        for t in &self.types {
            t.name.iter().for_each(|name| text(name));
            t.functions.iter().for_each(|row| [&row.function, &row.binary].into_iter().for_each(|name| text(name)));
        }
        for t in &self.types {
            hash.update(t.event.to_bits().to_le_bytes());
            let row_values = t.functions.iter().flat_map(|row| [row.flat, row.cum]);
            t.total.into_iter().chain(row_values).for_each(|number| hash.update(number.to_le_bytes()));
        }
        hex_16(hash)
    }

    /// The columns that [`Costs::read`] expects.
    pub(super) const READ: [&str; 4] = ["function", "binary", "flat", "cum"];

    /// Restores costs from the columns of a store.
    ///
    /// # Errors
    /// Returns an error if the data has changed since it was written.
    pub(super) fn read(stored: StoredCosts, [functions, binaries, flat, cum]: [StoreColumn; 4]) -> Result<Costs> {
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
        let costs = Costs {
            types,
            default_type: stored.default_type,
            is_plain: true,
            samples: stored.samples,
            time_nanos: stored.time_nanos,
            duration_nanos: stored.duration_nanos,
        };
        match costs.hash() == stored.hash {
            true => Ok(costs),
            false => Err(Error::malformed("the costs of its functions were changed since it was added")),
        }
    }
}
