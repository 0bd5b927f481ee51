//! The tables of a profile, stored as columns with dense indexes from 0. Strings are stored by their IDs.

/// A marker for a missing index in a column.
pub const NONE: u32 = u32::MAX;

/// The label that pprof adds to the base's samples when it writes a diff.
pub const BASE_LABEL: (&[u8], &[u8]) = (b"pprof::base", b"true");

/// The index of a string in one profile's table. It is meaningless in any other profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(#[doc(hidden)] pub u32);

impl StringId {
    /// The empty string, which is the first entry of every string table.
    pub const EMPTY: StringId = StringId(0);

    /// Returns the index, which is less than [`Profile::n_strings`](super::Profile::n_strings).
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The type and unit of one column of values: `("cpu", "nanoseconds")`.
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
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub limit: u64,
    /// The file offset of the bytes that are mapped at `start`.
    pub offset: u64,
    /// The binary's path.
    pub file: StringId,
    /// The build ID, which distinguishes builds of the binary.
    pub build_id: StringId,
    /// Bits 0 to 3 hold fields 7 to 10: has_functions, has_filenames, has_line_numbers, has_inline_frames.
    pub flags: u8,
}

impl Mapping {
    /// Returns a mapping that covers all addresses, for profiles that do not list their binaries.
    #[doc(hidden)]
    pub fn of_all_addresses() -> Mapping {
        let (file, build_id) = (StringId::EMPTY, StringId::EMPTY);
        Mapping { start: 0, limit: u64::MAX, offset: 0, file, build_id, flags: 0 }
    }

    /// Returns the size in bytes, rounded up to pages of 4 KiB, as pprof compares it.
    pub fn size(&self) -> u64 {
        self.limit.wrapping_sub(self.start).wrapping_add(0xfff) & !0xfff
    }
}

/// The totals of one column of values over all samples of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// The sum of the values.
    pub sum: i64,
    /// The sum of the absolute values, which is the base for percentages. Loading fails if it exceeds `i64::MAX`, so no
    /// sum over some of the samples can overflow.
    pub magnitude: i64,
}

/// The fields of the message outside its tables. A missing string is [`StringId::EMPTY`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Header {
    /// A regular expression for the frames that readers drop, together with the frames that they call. The profile
    /// still contains them.
    pub drop_frames: StringId,
    /// A regular expression for the exceptions: frames that match `drop_frames` but are kept.
    pub keep_frames: StringId,
    /// The time of the recording, in nanoseconds since 1970; 0 if unknown.
    pub time_nanos: i64,
    /// The duration of the recording, in nanoseconds; 0 if unknown.
    pub duration_nanos: i64,
    /// The type and unit of the sampling period.
    pub period_type: Option<ValueType>,
    /// The number of events between two samples, in the period's unit.
    pub period: i64,
    /// The producer's free-text comments.
    pub comments: Vec<StringId>,
    /// The name of the sample type that views show by default.
    pub default_sample_type: StringId,
    /// A link to documentation.
    pub doc_url: StringId,
}

/// The table of functions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Functions {
    /// The human-readable name.
    pub name: Vec<StringId>,
    /// The linker's name.
    pub system_name: Vec<StringId>,
    /// The source file's path.
    pub file: Vec<StringId>,
    /// The first line of the function; 0 if unknown.
    pub start_line: Vec<i64>,
}

/// The table of locations and their lines. The lines of location `l` are `first_line[l]..first_line[l + 1]`, with the
/// innermost (inlined) callee first, as in the file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Locations {
    /// The index of the mapping; [`NONE`] if the location is not mapped.
    pub mapping: Vec<u32>,
    /// The address of the instruction; 0 if unknown.
    pub address: Vec<u64>,
    /// True if the linker folded several identical functions into one.
    pub folded: Vec<bool>,
    /// The start of each location's lines, followed by the end of the last location's lines.
    pub first_line: Vec<u32>,
    /// The index of the function, by line.
    pub line_function: Vec<u32>,
    /// The line number, by line.
    pub line_number: Vec<i64>,
    /// The column, by line.
    pub line_column: Vec<i64>,
}

impl Locations {
    /// Returns the range of a location's lines.
    #[inline(always)]
    pub fn lines(&self, location: u32) -> std::ops::Range<u32> {
        let l = location as usize;
        self.first_line[l]..self.first_line[l + 1]
    }

    /// Returns the number of locations.
    pub fn len(&self) -> usize {
        self.address.len()
    }

    /// Returns true if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.address.is_empty()
    }
}
