//! The Python face: signature in, engine call, error out.
//!
//! Nothing is computed here. What a user reads in `help()` are the comments of these files;
//! `python/pprofdiff/_native.pyi` repeats them for editors, and a test keeps the two in step.

mod answers;
mod arrow;
mod batch;
mod check;
mod delta;
mod error;
mod explain;
mod flamegraph;
mod fleet;
mod listed;
mod options;
mod pairs;
mod pictures;
mod profile;
mod rendered;
mod runtime;
mod series;
mod source;
mod table;
mod views;

use pyo3::prelude::*;

// `gil_used` only matters to a free-threaded interpreter, for which a wheel of its own is built: all
// classes are frozen, or borrowed by one thread at a time.
#[pymodule(gil_used = false)]
mod _native {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use pprofdiff::check::How;
    use pprofdiff::recording::Recording;
    use pprofdiff::{Query, Source};
    use pprofdiff_report::{CheckOptions, Request, View};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use rayon::prelude::*;

    #[pymodule_export]
    use crate::batch::{OnThreads, Question, Result, arrow_stream, compare, rebuild_question, sides};
    #[pymodule_export]
    use crate::check::{Check, rebuild_check};
    #[pymodule_export]
    use crate::delta::DeltaComputer;
    use crate::delta::{policy, warn};
    #[pymodule_export]
    use crate::explain::{Explanation, rebuild_explanation};
    #[pymodule_export]
    use crate::flamegraph::{FlameGraph, rebuild_flamegraph};
    #[pymodule_export]
    use crate::fleet::{Causes, Collected, Ranking, rebuild_causes, rebuild_ranking};
    #[pymodule_export]
    use crate::options::{check_loading, options};
    use crate::options::{loading, of_sides, signature, take_loading, view_query, without_base};
    #[pymodule_export]
    use crate::pairs::{Pair, group_pairs, listed_files, pairs, rebuild_pair};
    #[pymodule_export]
    use crate::pictures::{CallGraph, Listing, rebuild_callgraph, rebuild_listing};
    #[pymodule_export]
    use crate::profile::{Diff, Profile, rebuild_diff, rebuild_profile};
    #[pymodule_export]
    use crate::rendered::Rendered;
    #[pymodule_export]
    use crate::series::{Series, rebuild_series, series};
    use crate::source::{self, Side};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::table::rebuild_table;
    #[pymodule_export]
    use crate::views::Views;
    use crate::{error, runtime};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        m.add("PprofError", error::pprof_error(m.py())?)
    }

    #[doc = signature!(loading "load(source, *")]
    /// Load a profile: gzip, zstd or raw.
    ///
    /// `source` is a path (str or os.PathLike), a URL (str; pyroscope:// and parca:// ask servers for one,
    /// see docs/sources.md; http://, s3://, gs:// and others need fsspec, each with what fsspec wants for it; what stands
    /// before its @ is shown nowhere), bytes (or anything with their buffer), a file object (read to its end) or a Profile
    /// (returned as it is). Loading validates everything, so no view can fail on the content later. How it is loaded:
    #[doc = pprofdiff::loading_docs!()]
    ///
    /// A diff that was written as a profile opens as a diff again: its views show both sides.
    ///
    /// Raises PprofError for anything that is not a valid profile, and OSError from the system.
    #[pyfunction]
    #[pyo3(signature = (source, **options), text_signature = None)]
    fn load(py: Python<'_>, source: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Profile>> {
        if let Ok(profile) = source.cast::<Profile>() {
            return Ok(profile.clone().unbind());
        }
        let (source, options) = (source::source(source)?, without_base(py, &loading(options)?)?);
        let profile = runtime::run(py, move || source.load(&options))?;
        Profile::new(py, profile)
    }

    #[doc = signature!(loading "diff(base, new, *, sum=False")]
    /// Compare two sides, `base` and `new`.
    ///
    /// Each is whatever load() takes, or a list or tuple of such, or a pattern of paths as "main-*.pb.gz": runs of one
    /// program, of which values are the means, and top() tells what is more than chance. With `sum` they add up
    /// instead. Sample types are matched by name, and units converted to the finer one. The other keywords are those of
    /// load().
    ///
    /// Raises PprofError for an invalid profile, for a written diff (which is two sides already: load() it), for
    /// sides without a common sample type and for values that add up past int64; OSError from the system.
    #[pyfunction]
    #[pyo3(signature = (base, new, *, sum = false, **options), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn diff(
        py: Python<'_>,
        base: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        sum: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Diff>> {
        let (base, new, options) = (Side::new(base)?, Side::new(new)?, of_sides(py, &loading(options)?)?);
        let (base_sources, new_sources) = (base.sources, new.sources);
        let diff = runtime::run(py, move || pprofdiff::Diff::load(&base_sources, &new_sources, &options))?;
        let diff = if sum { diff.summed() } else { diff };
        Diff::wrap(py, diff, base.given, new.given)
    }

    #[doc = signature!(loading "load_runs(folder, *")]
    /// Compare the runs that bench() took, of the folder with its runs.toml.
    ///
    /// The runs of a side are as those of diff(); binaries that are kept there are used. The other keywords are those of
    /// load().
    ///
    /// Raises PprofError for a folder without such runs, and as diff().
    #[pyfunction]
    #[pyo3(signature = (folder, **options), text_signature = None)]
    fn load_runs(py: Python<'_>, folder: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Diff>> {
        let mut loading = loading(options)?;
        Recording::add_binaries(&folder, &mut loading);
        let options = of_sides(py, &loading)?;
        let sides = Recording::read_sides(&folder).map_err(|e| error::from_engine(py, &e))?;
        let given = sides.each_ref().map(|side| side.iter().map(|_| None).collect());
        let [base, new] = sides.map(|side| side.into_iter().map(Source::Path).collect::<Vec<_>>());
        let diff = runtime::run(py, move || pprofdiff::Diff::load(&base, &new, &options))?.with_folder(&folder);
        let [base, new] = given;
        Diff::wrap(py, diff, base, new)
    }

    #[doc = signature!(loading "merge(profiles, *, weights=None")]
    /// Add profiles up to one.
    ///
    /// `profiles` is an iterable of whatever load() takes. Sample types that all have are kept, in the
    /// finest of their units; durations add up; the time is the earliest. Written diffs become the diff of both
    /// sides' sums. With `weights`, a number for each profile, values are multiplied: 3 is the same as the profile
    /// three times. Of weights that are not whole each sample type's sum is rounded once.
    ///
    /// Raises PprofError and OSError as diff() does, and PprofError for written diffs beside other profiles.
    #[pyfunction]
    #[pyo3(signature = (profiles, *, weights = None, **options), text_signature = None)]
    fn merge(
        py: Python<'_>,
        profiles: &Bound<'_, PyAny>,
        weights: Option<Vec<f64>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Profile>> {
        let sources = source::sources(profiles)?;
        let options = without_base(py, &loading(options)?)?;
        let merged = runtime::run(py, move || {
            let profiles = sources.par_iter().map(|s| s.load(&options)).collect::<pprofdiff::Result<Vec<_>>>()?;
            let weights = weights.unwrap_or_else(|| vec![1.0; profiles.len()]);
            if weights.len() != profiles.len() {
                let (profiles, weights) = (profiles.len(), weights.len());
                return Err(pprofdiff::Error::query(format!("there are {profiles} profiles, and {weights} weights")));
            }
            pprofdiff::merge_weighted(&profiles.iter().map(|p| &**p).zip(weights).collect::<Vec<_>>())
        })?;
        Profile::new(py, merged.into())
    }

    #[doc = signature!(loading "delta(prev, cur, cumulative=None, *, on_reset='error'")]
    /// What happened between two snapshots of a growing profile, such as Go's heap, mutex and block profiles.
    ///
    /// `prev` (the older) and `cur` are whatever load() takes. The sample types that `cumulative` names are
    /// subtracted; all others (gauges) are as in `cur`. None stands for those that are known to be cumulative:
    /// alloc_objects, alloc_space, contentions, delay, mutex_count, mutex_duration, block_count, block_duration; a
    /// profile that has none of these is refused. The last of the result's comments says which were treated how.
    /// Samples that come to zero are gone, with all that only they referred to; the duration is the time between the
    /// snapshots (None if one of them does not say when it was taken), all other fields are those of `cur`.
    ///
    /// A counter that went down means that the process was started anew, and so does it if the samples are gone that
    /// had counted more than half. With `on_reset="error"` that is a PprofError; with "pass" the result is `cur` as it
    /// is, with "clamp" such counters count as unchanged, and both are said in the comment and by a UserWarning, as
    /// are samples that are gone without a restart.
    ///
    /// Raises PprofError also for snapshots in the wrong order or with other cumulative sample types, and for written
    /// diffs; and as load().
    #[pyfunction]
    #[pyo3(signature = (prev, cur, cumulative = None, *, on_reset = "error", **options), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn delta(
        py: Python<'_>,
        prev: &Bound<'_, PyAny>,
        cur: &Bound<'_, PyAny>,
        cumulative: Option<Vec<String>>,
        on_reset: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Profile>> {
        let policy = policy(py, cumulative, on_reset)?;
        let (prev, cur, options) = (source::source(prev)?, source::source(cur)?, without_base(py, &loading(options)?)?);
        let (profile, warning) = runtime::run(py, move || {
            let (prev, cur) = rayon::join(|| prev.load(&options), || cur.load(&options));
            let (prev, cur) = (prev?, cur?);
            let delta = pprofdiff::delta(&prev, &cur, &policy)?;
            Ok((delta.to_profile("delta")?, delta.warning()))
        })?;
        warn(py, warning)?;
        Profile::new(py, profile.into())
    }

    #[doc = signature!(loading "check(base, new, fail_on=..., *, config=None, floor=None, strict=False, paired=False, require_power=False")]
    /// Is what changed within limits? For CI.
    ///
    /// `base` and `new` are as for diff(), but several profiles on a side are runs of the same program and do not add
    /// up: the sides' medians are compared. A rule fails if its limit is exceeded and two equal builds would hardly ever
    /// differ so much: once in a hundred checks. What is exceeded within chance is inconclusive. `strict`: limits alone
    /// decide. `paired`: run i of the new side belongs to run i of the base. `require_power`: inconclusive, and not
    /// passed, if a growth as large as the limit would have been missed.
    ///
    /// `fail_on` are rules, [TYPE:]total>LIMIT or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES are any (each frame by itself),
    /// each=RE (each that matches) or regex=RE (all that match, taken as one). A LIMIT is +5% or +10MB (growth), 2GB
    /// (the new value) or 30% (the new value's part of the total); one on a time or size needs its unit. `config` is a
    /// pprofdiff.toml with rules and what is allowed. `floor` is the percentage of the total below which frames are
    /// ignored: 1 for rules on each frame unless given. The other keywords are those of load() and of Views:
    /// `sample_type` (one) is that of rules that name none, `normalize` scales each run of the new side, to the median
    /// of the base's "total" or "duration", or by a factor.
    ///
    /// Raises PprofError for rules that are not understood, for a new side of which nothing was measured, and as diff()
    /// does.
    #[pyfunction]
    #[pyo3(signature = (
        base, new, fail_on = Vec::new(), *, config = None, floor = None, strict = false, paired = false,
        require_power = false, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn check(
        py: Python<'_>,
        base: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        fail_on: Vec<String>,
        config: Option<PathBuf>,
        floor: Option<f64>,
        strict: bool,
        paired: bool,
        require_power: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Check>> {
        let load = of_sides(py, &take_loading(options)?)?;
        let query = view_query(py, &Query::default(), options)?;
        let mut limits = CheckOptions::default();
        (limits.fail_on, limits.floor) = (fail_on, floor.map(|floor| floor.to_string()));
        limits.how = How::default().with_strict(strict).with_paired(paired).with_require_power(require_power);
        if let Some(path) = config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| error::from_io(py, &e, Some(&name)))?;
            limits.config = Some(text);
        }
        let request = Request { query, view: View::Check(limits) };
        let (base, new) = (Side::new(base)?.sources, Side::new(new)?.sources);
        let check = move || Check::new(&request.answer(&pprofdiff::Diff::load(&base, &new, &load)?)?);
        Py::new(py, runtime::run(py, check)?)
    }

    /// The command: arguments (the program's name first) in, exit code out.
    #[pyfunction]
    fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| pprofdiff_cli::run(args))
    }
}
