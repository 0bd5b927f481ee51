//! Sources that a crate above this one defines, such as the profiles of a store. They load themselves. Some also know
//! the costs of functions without loading, and have a place where derived data is cached.

use std::fmt;
use std::path::Path;

use crate::{LoadOptions, Profile, Result};

/// A source of a profile that loads itself; see [`Source::Custom`](super::Source::Custom).
pub trait ProfileSource: fmt::Debug + Send + Sync {
    /// Returns the profile's name in errors and reports.
    fn name(&self) -> String;

    /// Loads the profile.
    ///
    /// # Errors
    /// Returns an error if the profile can't be read or is invalid, or if it does not suit the options.
    fn load(&self, options: &LoadOptions) -> Result<Profile>;

    /// Returns the costs of the profile's functions if they are known without reading its samples.
    ///
    /// # Errors
    /// Returns an error if the costs can't be read, or if they exceed `inflated_limit` bytes.
    fn costs(&self, inflated_limit: u64) -> Result<Option<Costs>> {
        let _ = inflated_limit;
        Ok(None)
    }

    /// Returns the place for data that is derived from the profile, and a hexadecimal id that differs for profiles with
    /// different content. By default there is no such place.
    fn derived(&self) -> Option<(&dyn DerivedData, &str)> {
        None
    }
}

/// A cache of data that takes time to derive from profiles. A name identifies the inputs of the data. Content may vanish
/// at any time.
pub trait DerivedData {
    /// Returns the path that identifies the cache.
    fn path(&self) -> &Path;

    /// Returns the content with this name, if it is undamaged.
    fn read(&self, name: &str) -> Option<Vec<u8>>;

    /// Stores content under a name. Ignores failures.
    fn write(&self, name: &str, content: Vec<u8>);

    /// Removes content that has been superseded.
    fn remove(&self, name: &str);
}

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
