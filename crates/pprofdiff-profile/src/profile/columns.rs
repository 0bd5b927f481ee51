//! The tables of a profile as columns: dense indexes from 0, strings by their numbers.

/// Marks "no such index" in a column.
pub const NONE: u32 = u32::MAX;

/// The label that pprof puts on the samples of the base when it writes a diff.
pub const BASE_LABEL: (&[u8], &[u8]) = (b"pprof::base", b"true");

/// Index of a string in one profile's table. Meaningless with any other profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub(crate) u32);

impl StringId {
    /// Entry 0 of every string table.
    pub const EMPTY: StringId = StringId(0);

    /// The index as a number below [`Profile::n_strings`](super::Profile::n_strings).
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one column of values counts, in which unit: `("cpu", "nanoseconds")`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueType {
    /// The type's name.
    pub kind: StringId,
    /// The unit's name.
    pub unit: StringId,
}

/// A mapped binary.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The address after the last.
    pub limit: u64,
    /// Offset in the file of what is at `start`.
    pub offset: u64,
    /// The binary's path.
    pub file: StringId,
    /// What tells builds of it apart.
    pub build_id: StringId,
    /// has_functions, has_filenames, has_line_numbers, has_inline_frames: fields 7 to 10, bits 0 to 3.
    pub flags: u8,
}

impl Mapping {
    /// Stands for all binaries where it is not known which there were.
    pub(crate) fn of_all_addresses() -> Mapping {
        let (file, build_id) = (StringId::EMPTY, StringId::EMPTY);
        Mapping { start: 0, limit: u64::MAX, offset: 0, file, build_id, flags: 0 }
    }

    /// The size in bytes, rounded up to pages of 4 KiB, as pprof compares it.
    pub fn size(&self) -> u64 {
        self.limit.wrapping_sub(self.start).wrapping_add(0xfff) & !0xfff
    }
}

/// Sums of one column of values over all samples of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// Sum of the values.
    pub sum: i64,
    /// Sum of their magnitudes: what percentages are of. At most `i64::MAX`, or the profile does not
    /// load; so no sum over a part of the samples can overflow.
    pub magnitude: i64,
}

/// Everything of the message that is not a table. Strings that may be missing are [`StringId::EMPTY`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Header {
    /// The expression of frames that were dropped when the profile was written.
    pub drop_frames: StringId,
    /// The expression of frames that are kept of these.
    pub keep_frames: StringId,
    /// When the profile was taken, in nanoseconds since 1970; 0 if it does not say.
    pub time_nanos: i64,
    /// For how long it was taken, in nanoseconds; 0 if it does not say.
    pub duration_nanos: i64,
    /// What a period counts.
    pub period_type: Option<ValueType>,
    /// Events between two samples, in the period's unit.
    pub period: i64,
    /// Free text that the producer left.
    pub comments: Vec<StringId>,
    /// The name of the sample type that is shown unless told otherwise.
    pub default_sample_type: StringId,
    /// A link to documentation.
    pub doc_url: StringId,
}

/// The table of functions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Functions {
    /// The name as people read it.
    pub name: Vec<StringId>,
    /// The name as the linker has it.
    pub system_name: Vec<StringId>,
    /// The source file's path.
    pub file: Vec<StringId>,
    /// The line that the function begins in; 0 if it is not known.
    pub start_line: Vec<i64>,
}

/// Locations, with their lines as ranges: the lines of `l` are `first_line[l]..first_line[l + 1]`,
/// innermost (the inlined callee) first, as in the file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Locations {
    /// Index of the mapping; [`NONE`] if there is none.
    pub mapping: Vec<u32>,
    /// The instruction's address; 0 if it is not known.
    pub address: Vec<u64>,
    /// True where the linker folded several functions into one.
    pub folded: Vec<bool>,
    /// Where each location's lines begin, and the end of the last.
    pub first_line: Vec<u32>,
    /// By line: index of the function.
    pub line_function: Vec<u32>,
    /// By line: the line number.
    pub line_number: Vec<i64>,
    /// By line: the column.
    pub line_column: Vec<i64>,
}

impl Locations {
    /// The lines of a location.
    #[inline(always)]
    pub fn lines(&self, location: u32) -> std::ops::Range<u32> {
        let l = location as usize;
        self.first_line[l]..self.first_line[l + 1]
    }

    /// Number of locations.
    pub fn len(&self) -> usize {
        self.address.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.address.is_empty()
    }
}
