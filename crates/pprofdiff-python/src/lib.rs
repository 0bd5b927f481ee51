//! The Python bindings: functions and classes that convert arguments, call the engine and convert errors.
//!
//! Nothing is computed here. The doc comments of public functions and classes in these files are the text of `help()`.
//! `python/pprofdiff/_native.pyi` repeats them for editors, and a test checks that both are equal.

#[macro_use]
mod docstrings;

mod answers;
mod arrow;
mod batch;
mod check;
mod delta;
mod described;
mod error;
mod explain;
mod flamegraph;
mod fleet;
mod histories;
mod keywords;
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
mod within;

use std::sync::LazyLock;

use pprofdiff_report::Registry;
use pyo3::prelude::*;

/// The formats and views of the package.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::standard().with(&pprofdiff_page::ALL));

// `gil_used` only matters for a free-threaded interpreter, which has its own wheel. All classes are frozen, or borrowed
// by one thread at a time.
#[pymodule(gil_used = false)]
mod _native {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use pprofdiff::check::{CheckPolicy, SameCode};
    use pprofdiff::recording::Recording;
    use pprofdiff::{Query, Source};
    use pprofdiff_report::{CheckOptions, Request, View};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use rayon::prelude::*;

    #[pymodule_export]
    use crate::batch::{BatchQuestion, OnThreads, Result, arrow_stream, compare, rebuild_question, sides};
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
    use crate::fleet::{Causes, FleetCollector, Ranking, rebuild_causes, rebuild_ranking};
    #[pymodule_export]
    use crate::histories::Histories;
    use crate::options::{OneOrMore, loading, signature, take_loading, two_sided, view_query, without_base};
    #[pymodule_export]
    use crate::options::{check_loading, options};
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
    use crate::source::{self, SideSources};
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
    /// Load a profile: gzip, zstd or uncompressed.
    ///
    /// `source` is a path (str or os.PathLike), a URL (str), bytes (or an object with the buffer protocol), a file
    /// object (read to its end) or a Profile (returned unchanged). pyroscope:// URLs query a server, see
    /// docs/sources.md. http://, s3://, gs:// and other URLs need fsspec, and the packages that fsspec requires for the
    /// scheme. Credentials before the @ of a URL are never shown. Loading validates the whole profile, so views can't
    /// fail on its content later. Loading options:
    #[doc = loading_docs!()]
    ///
    /// A diff that was written as a profile opens as a diff again: its views show both sides.
    ///
    /// Raises PprofError for anything that is not a valid profile, and OSError for system errors.
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
    /// Each side is anything that load() accepts, a list or tuple of these, or a pattern of paths such as
    /// "main-*.pb.gz". Several profiles on a side are runs of one program: values are their means, and top() tests
    /// which differences exceed noise. With `sum` they are added up instead. Sample types are matched by name, and
    /// units are converted to the finer one. For the other keywords see load().
    ///
    /// Raises PprofError for an invalid profile, for a written diff (it already has two sides: load() it), for sides
    /// without a common sample type and for sums beyond int64. Raises OSError for system errors.
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
        let (base, new, options) =
            (SideSources::new(base)?, SideSources::new(new)?, two_sided(py, &loading(options)?)?);
        let (base_sources, new_sources) = (base.sources, new.sources);
        let diff = runtime::run(py, move || pprofdiff::Diff::load(&base_sources, &new_sources, &options))?;
        let diff = if sum { diff.summed() } else { diff };
        Diff::wrap(py, diff, base.given, new.given)
    }

    #[doc = signature!(loading "load_runs(folder, *")]
    /// Compare the runs that bench() recorded in a folder with a runs.toml.
    ///
    /// Several runs on a side are compared as in diff(). Binaries saved in the folder are used. For the other keywords
    /// see load().
    ///
    /// Raises PprofError for a folder without recorded runs, and the same errors as diff().
    #[pyfunction]
    #[pyo3(signature = (folder, **options), text_signature = None)]
    fn load_runs(py: Python<'_>, folder: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Diff>> {
        let mut loading = loading(options)?;
        Recording::add_binaries(&folder, &mut loading);
        let options = two_sided(py, &loading)?;
        let sides = Recording::read_sides(&folder).map_err(|e| error::from_engine(py, &e))?;
        let given = sides.each_ref().map(|side| side.iter().map(|_| None).collect());
        let [base, new] = sides.map(|side| side.into_iter().map(Source::Path).collect::<Vec<_>>());
        let diff = runtime::run(py, move || pprofdiff::Diff::load(&base, &new, &options))?.with_folder(&folder);
        let [base, new] = given;
        Diff::wrap(py, diff, base, new)
    }

    #[doc = signature!(loading "merge(profiles, *, weights=None")]
    /// Merge profiles into one by adding their values.
    ///
    /// `profiles` is an iterable of anything that load() accepts. Only sample types that all profiles have are kept, in
    /// the finest of their units. Durations are added up, and the time is the earliest. Written diffs are merged into
    /// the diff of both sides' sums. `weights` has one number per profile, by which its values are multiplied: 3 is the
    /// same as the profile three times. With fractional weights, the sum of each sample type is rounded once.
    ///
    /// Raises PprofError and OSError like diff(), and PprofError for a mix of written diffs and other profiles.
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
                return Err(pprofdiff::Error::query(format!("there are {profiles} profiles, but {weights} weights")));
            }
            pprofdiff::merge_weighted(&profiles.iter().map(|p| &**p).zip(weights).collect::<Vec<_>>())
        })?;
        Profile::new(py, merged.into())
    }

    #[doc = signature!(loading "delta(prev, cur, cumulative=None, *, on_reset='error'")]
    /// Return the change between two snapshots of a cumulative profile, such as Go's heap, mutex and block profiles.
    ///
    /// `prev` (the older) and `cur` are anything that load() accepts. The sample types in `cumulative` are subtracted.
    /// All other types (gauges) are copied from `cur`. None means the types that are known to be cumulative:
    /// alloc_objects, alloc_space, contentions, delay, mutex_count, mutex_duration, block_count, block_duration. A
    /// profile without any of these is rejected. The last comment of the result lists which types were subtracted and
    /// which were copied. Samples that become zero are dropped, with all data that no other sample uses. The duration
    /// is the time between the snapshots (None if one of them has no time). All other fields are copied from `cur`.
    ///
    /// A counter that decreased means that the process restarted, and so do missing samples that held more than half of
    /// the total. With `on_reset="error"` a restart raises PprofError. With "pass" the result is `cur` unchanged, and
    /// with "clamp" decreased counters count as unchanged. The comment and a UserWarning report both, and also samples
    /// that disappeared without a restart.
    ///
    /// Raises PprofError also for snapshots in the wrong order, for snapshots with different cumulative sample types
    /// and for written diffs, and the same errors as load().
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

    #[doc = signature!(loading "check(base, new, fail_on=..., *, config=None, floor=None, strict=False, paired=False, require_power=False, same_code=None, name=None")]
    /// Check whether the changes are within limits, for CI.
    ///
    /// `base` and `new` are as in diff(). Several profiles on a side are runs of the same program: they are not added
    /// up, and the medians of the sides are compared. A rule fails if its limit is exceeded and chance alone would
    /// cause such a difference at most once in a hundred checks. A limit that is exceeded within noise is inconclusive.
    /// With `strict`, noise is ignored. With `paired`, run i of the new side is compared with run i of the base. With
    /// `require_power`, the result is inconclusive instead of passed if a growth as large as the limit could have gone
    /// unnoticed. `same_code` decides about functions whose own cost exceeds a limit on growth although their instructions
    /// are the same in both builds, for profiles with `binary`: "warn", "fail" or "ignore". The default is `same_code` in
    /// `config`, or else "warn".
    ///
    /// `fail_on` is a rule or a list: [TYPE:]total>LIMIT or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES is any (checks each
    /// frame), each=RE (checks each matching frame) or regex=RE (checks the sum of all matching frames). LIMIT is +5%
    /// or +10MB (growth), 2GB (new value) or 30% (share of the new total). A limit on a time or size needs its unit.
    /// `config` is a pprofdiff.toml with rules and exceptions. `floor` is the percentage of the total below which
    /// frames are ignored; for rules on each frame it defaults to 1. `name` names the program in the reports, and
    /// replaces the name in `config`. For the other keywords see load() and Views.
    /// `sample_type` (a single one) applies to rules that do not name one. `normalize` scales each run of the new side
    /// by a factor, or to the median "total" or "duration" of the base.
    ///
    /// Raises PprofError for invalid rules and for an empty new side, and the same errors as diff().
    #[pyfunction]
    #[pyo3(signature = (
        base, new, fail_on = OneOrMore::More(Vec::new()), *, config = None, floor = None, strict = false, paired = false,
        require_power = false, same_code = None, name = None, **options
    ), text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn check(
        py: Python<'_>,
        base: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        fail_on: OneOrMore<String>,
        config: Option<PathBuf>,
        floor: Option<f64>,
        strict: bool,
        paired: bool,
        require_power: bool,
        same_code: Option<&str>,
        name: Option<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Check>> {
        let load = two_sided(py, &take_loading(options)?)?;
        let query = view_query(py, &Query::default(), options)?;
        let mut limits = CheckOptions::default();
        (limits.fail_on, limits.floor) = (fail_on.into_vec(), floor.map(|floor| floor.to_string()));
        limits.name = name;
        let named = |name| {
            let invalid = || error::message(py, "same_code must be \"warn\", \"fail\" or \"ignore\"");
            SameCode::named(name).ok_or_else(invalid)
        };
        let same_code = same_code.map(named).transpose()?;
        limits.policy = CheckPolicy::default()
            .with_strict(strict)
            .with_paired(paired)
            .with_require_power(require_power)
            .with_same_code(same_code);
        if let Some(path) = config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| error::from_io(py, &e, Some(&name)))?;
            limits.config = Some(text);
        }
        let request = Request { query, view: View::Check(limits) };
        let (base, new) = (SideSources::new(base)?.sources, SideSources::new(new)?.sources);
        let check = move || Check::new(request.answer(&pprofdiff::Diff::load(&base, &new, &load)?)?);
        Py::new(py, runtime::run(py, check)?)
    }

    /// Run the command. `args` begins with the program's name. Returns the exit code.
    #[pyfunction]
    fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| pprofdiff_cli::run(args))
    }
}
