//! What each function of a profile costs, which the caller knows: the table that most questions of a fleet are asked of, and of
//! which a history is made without a look at samples.

use parquet::data_type::ByteArray;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::hex_16;
use super::table::{Column, Kind, Table};
use crate::error::{Error, Result};
use crate::profile::Profile;

pub static FUNCTIONS: Table = Table {
    name: "functions",
    columns: &[
        ("profile", Kind::Text),
        ("name", Kind::Text),
        ("time_nanos", Kind::Int),
        ("duration_nanos", Kind::Int),
        ("sample_type", Kind::Text),
        ("unit", Kind::Text),
        ("function", Kind::Text),
        // Of what has no name.
        ("binary", Kind::Text),
        ("flat", Kind::Near),
        ("cum", Kind::Near),
    ],
};

/// What a function costs in one profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCost {
    /// Its name; empty of what has none.
    pub function: String,
    /// Where it has no name, the binary that it is in.
    pub binary: String,
    /// Its own cost.
    pub flat: i64,
    /// With all that it calls.
    pub cum: i64,
}

/// One sample type of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeCosts {
    /// Its name and its unit.
    pub name: [String; 2],
    /// Sum of its values, and of their magnitudes.
    pub total: [i64; 2],
    /// What one event is worth in it; 0 if that is not known.
    pub event: f64,
    /// Its functions.
    pub functions: Vec<FunctionCost>,
}

/// What the functions of a profile cost.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// By sample type, in the profile's order.
    pub types: Vec<TypeCosts>,
    /// The type that is shown unless told otherwise.
    pub default_type: usize,
    /// True if there is nothing that a user should know before trusting them.
    pub is_plain: bool,
    /// Of the profile.
    pub samples: usize,
    /// When it was taken, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// For how long, in nanoseconds.
    pub duration_nanos: i64,
}

/// What a file says of them beside its rows.
#[derive(Serialize, Deserialize)]
pub struct StoredCosts {
    types: Vec<StoredType>,
    default_type: usize,
    samples: usize,
    time_nanos: i64,
    duration_nanos: i64,
    /// Of all that is read again.
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct StoredType {
    name: [String; 2],
    total: [i64; 2],
    /// As bits, since decimals may lose the last of them.
    event: u64,
    rows: usize,
}

impl Costs {
    fn functions(&self) -> impl Iterator<Item = (&TypeCosts, &FunctionCost)> {
        self.types.iter().flat_map(|of_type| of_type.functions.iter().map(move |row| (of_type, row)))
    }

    /// The rows of a profile, in the order of [`FUNCTIONS`].
    pub(super) fn rows(&self, p: &Profile, id: &str) -> Vec<Column> {
        let n = self.functions().count();
        let texts = |text: fn(&TypeCosts, &FunctionCost) -> ByteArray| {
            Column::Bytes(self.functions().map(|(of_type, row)| text(of_type, row)).collect())
        };
        let ints = |value: fn(&FunctionCost) -> i64| Column::Int(self.functions().map(|(_, row)| value(row)).collect());
        vec![
            Column::Bytes(vec![id.into(); n]),
            Column::Bytes(vec![p.name().into(); n]),
            Column::Int(vec![p.time_nanos(); n]),
            Column::Int(vec![p.duration_nanos(); n]),
            texts(|t, _| t.name[0].as_str().into()),
            texts(|t, _| t.name[1].as_str().into()),
            texts(|_, row| row.function.as_str().into()),
            texts(|_, row| row.binary.as_str().into()),
            ints(|row| row.flat),
            ints(|row| row.cum),
        ]
    }

    /// `None` where they are not to be trusted without the profile.
    pub(super) fn to_stored(&self, p: &Profile) -> Option<StoredCosts> {
        let of_type = |t: &TypeCosts| StoredType {
            name: t.name.clone(),
            total: t.total,
            event: t.event.to_bits(),
            rows: t.functions.len(),
        };
        let (time_nanos, duration_nanos) = (p.time_nanos(), p.duration_nanos());
        let costs = Costs { samples: p.n_samples(), time_nanos, duration_nanos, ..self.clone() };
        self.is_plain.then(|| StoredCosts {
            types: self.types.iter().map(of_type).collect(),
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
            let of_rows = t.functions.iter().flat_map(|row| [row.flat, row.cum]);
            t.total.into_iter().chain(of_rows).for_each(|number| hash.update(number.to_le_bytes()));
        }
        hex_16(hash)
    }

    /// The columns that [`Costs::read`] takes.
    pub(super) const READ: [&str; 4] = ["function", "binary", "flat", "cum"];

    /// What was read of a store.
    ///
    /// # Errors
    /// It is not what was written.
    pub(super) fn read(stored: StoredCosts, [functions, binaries, flat, cum]: [Column; 4]) -> Result<Costs> {
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
            false => Err(Error::malformed("what its functions cost was changed since it was added")),
        }
    }
}
