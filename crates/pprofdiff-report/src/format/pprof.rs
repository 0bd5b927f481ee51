//! The pprof format: a profile that `go tool pprof` opens as a diff, and that pprofdiff reads back as the original
//! diff. The engine encodes the profile; this file only writes its bytes.

use crate::format::{BASE, Format, unsupported};
use crate::report::Report;
use crate::shows::{self, Form};

pub(crate) const FORMAT: Format = Format {
    name: "pprof",
    extensions: &["pb.gz", "pb", "pb.zst", "gz", "zst", "pprof", "prof"],
    about: "a profile that `go tool pprof` opens as a diff",
    binary: true,
    warns: false,
    form: Form::Profile,
    asks: shows::profile,
    write: |report, out, _| match report {
        Report::Profile(bytes) => out.write_all(bytes),
        _ => Err(unsupported()),
    },
    ..BASE
};
