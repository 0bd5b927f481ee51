//! Tables as text for people. Each column has one unit. Next to a change, the text shows the row's growth and the
//! change's share of the total.
//!
//! The caller decides about colour (`palette`), which only terminals should get.

use std::io::{self, Write};

#[cfg(feature = "check")]
use crate::check::check_text;
use crate::explain::explain_text;
use crate::format::{Each, Format, Item, nothing, unsupported};
use crate::histories::histories_text;
use crate::listing::listing_text;
use crate::numbers::{counted_of, signed, total, whole};
use crate::ranking::ranking_text;
use crate::raw::raw;
use crate::report::Report;
use crate::request::Request;
use crate::series::text_header;
use crate::shows::Form;
use crate::style::Style;
use crate::table::{Data, Role, Table};
use crate::text::{GROWTH_LEGEND, TextOptions, sample_type, settings, sides};
use crate::traces::write_traces;
use pprofdiff::Diff;
use pprofdiff::Profile;
use pprofdiff::sampling::Sampling;
use pprofdiff::text::sanitize;
use pprofdiff::units;

pub(crate) const FORMAT: Format = Format {
    name: "text",
    extensions: &["txt"],
    about: "readable text",
    binary: false,
    limit: Some(20),
    warns: true,
    leaves_out: nothing,
    form: Form::Text,
    asks: Request::clone,
    write: |report, out, style| match report {
        Report::Raw(profile, merged) => raw(profile, *merged, out),
        Report::Comments(comments) => comments.iter().try_for_each(|comment| writeln!(out, "{}", sanitize(comment))),
        Report::Listing(listing) => listing_text(listing, out, style.text()),
        Report::Traces(table) => write_traces(table, out, style.text()),
        Report::Info(diff) => info(diff, out),
        Report::Explain(explanation) => explain_text(explanation, out, style),
        Report::Ranking(ranking) => ranking_text(ranking, out, style),
        Report::Histories(histories) => histories_text(histories, out, style),
        #[cfg(feature = "check")]
        Report::Check(check) => check_text(check, out, style.text()),
        _ => report.table().ok_or_else(unsupported)?.write_text(out, style.text()),
    },
    each: Some(Each { limit: Some(3), header: None, write: write_pair }),
};

/// The note about p-values, for tables with runs.
const P_LEGEND: &str = "p is the probability of such a change by chance, ~ marks changes within chance";

/// The note about the words that replace a p-value.
const LEFT_OUT_LEGEND: &str = "; profiling or inlining: the frame's presence is itself random";
/// The note about standard deviations, for tables in which a side has several runs.
const SPREAD_LEGEND: &str = "± is the standard deviation of the runs; ";

impl Table {
    /// Writes the table for people: a header, then the rows in columns.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write_text(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if let Some(builds) = &self.builds {
            text_header(out, &self.summary, builds, options.brief)?;
            return self.write_rows(out, options);
        }
        self.write_header(out, options)?;
        let growth_legend = if self.summary.base.is_some() && !options.brief { GROWTH_LEGEND } else { "" };
        let cost = match (&self.beside[..], self.lead_costs().first()) {
            ([_, ..], Some(lead)) if !lead.cost.measured.name().is_empty() => {
                format!(" by {}", lead.cost.measured.name())
            }
            _ => String::new(),
        };
        let ratio = self.ratio_name().map_or_else(String::new, |name| format!("; ratio is {}", sanitize(&name)));
        let runs = match &self.chance_columns()[..] {
            _ if options.brief => String::new(),
            [] => String::new(),
            [_] => format!("\n{P_LEGEND}"),
            _ => format!("\n{SPREAD_LEGEND}{P_LEGEND}"),
        };
        let has_left_out = !options.brief
            && self
                .in_role(Role::LeftOut)
                .is_some_and(|c| matches!(&c.data, Data::Text(t) if t.iter().any(|t| t.is_some())));
        let left_out = if has_left_out { LEFT_OUT_LEGEND } else { "" };
        // A brief text is followed by the number of omitted rows.
        if !options.brief || !cost.is_empty() || !ratio.is_empty() {
            let rows = counted_of(self.len(), self.rows_total, self.kind.row);
            writeln!(out, "{rows}{cost}{growth_legend}{ratio}{runs}{left_out}")?;
        }
        if options.brief && self.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write_rows(out, options)
    }

    /// Writes the lines above the rows: the inputs (unless the text is brief), the totals, settings and warnings.
    pub(crate) fn write_header(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if !options.brief {
            sides(out, &self.summary)?;
        }
        self.sample_types().iter().try_for_each(|s| sample_type(out, s))?;
        settings(out, &self.summary)
    }
}

/// Writes one of many pairs: a line with the total, the warnings, and the rows of the pair's table. For a pair without
/// a table, only writes that it failed.
fn write_pair(item: &Item<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Ok(table) = item.result else { return writeln!(out, "{}  failed", sanitize(item.name)) };
    let s = &table.summary;
    writeln!(out, "{}  {} {}", sanitize(item.name), sanitize(&s.sample_type), total(s, "->"))?;
    s.warnings.iter().try_for_each(|w| writeln!(out, "    warning: {}", sanitize(w)))?;
    if !table.kind.has_pair_lines || !table.beside.is_empty() {
        return table.write_rows(out, style.text());
    }
    let costs = table.lead_costs();
    let [lead, other] = &costs[..] else { return Ok(()) };
    let (lead_format, other_format) = (table.format(lead), table.format(other));
    let names = [lead, other].map(|c| c.cost.measured.name());
    for row in 0..table.len() {
        let words = lead_format.words(lead.pair(row), whole(s), "->");
        let rest = signed(other.pair(row).delta(), other_format.delta);
        writeln!(out, "    {} {words}  {} {rest}  {}", names[0], names[1], sanitize(&table.label(row)))?;
    }
    Ok(())
}

/// The maximum number of sample types of a profile whose sampling is shown. The limit bounds a quadratic cost: finding
/// the sampling of one sample type compares it with all others.
pub(crate) const MAX_SAMPLING: usize = 100;

/// Writes the metadata of a profile, or of each profile of a diff, for people.
///
/// # Errors
/// Fails if `out` fails.
pub fn info(diff: &Diff, out: &mut dyn Write) -> io::Result<()> {
    for (i, (side, p)) in diff.profiles().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        profile_info(side, p, out)?;
    }
    Ok(())
}

fn profile_info(side: &str, p: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let duration = |nanos: i64| units::show(nanos, "nanoseconds");
    let note = if p.is_diff() { "  (a written diff; totals include both sides)" } else { "" };
    writeln!(
        out,
        "{}{}{note}",
        if side == "profile" { String::new() } else { format!("{side:<6}") },
        sanitize(p.name())
    )?;
    let default = p.default_sample_type();
    for (i, (kind, unit)) in p.sample_types().into_iter().enumerate() {
        let total = units::show(p.total(i).unwrap_or(0), &unit);
        let note = if Some(i) == default { "  (default)" } else { "" };
        writeln!(out, "  sample type  {} ({}): {total}{note}", sanitize(&kind), sanitize(&unit))?;
    }
    for (i, (kind, _)) in p.sample_types().into_iter().enumerate().take(MAX_SAMPLING) {
        let words = Sampling::of_profile(p, i).to_words();
        writeln!(out, "  sampling     {}: {}", sanitize(&kind), sanitize(&words))?;
    }
    writeln!(out, "  stacks       {}", p.n_samples())?;
    writeln!(out, "  locations    {}", p.n_locations())?;
    writeln!(out, "  functions    {}", p.n_functions())?;
    if let Some(window) = p.window() {
        writeln!(out, "  part         {}", sanitize(window.as_str()))?;
    }
    if p.duration_nanos() != 0 {
        writeln!(out, "  duration     {}", duration(p.duration_nanos()))?;
    }
    if let Some((kind, unit)) = p.period_type() {
        writeln!(out, "  period       {} {} of {}", p.period(), sanitize(&unit), sanitize(&kind))?;
    }
    if p.time_nanos() != 0
        && let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(p.time_nanos()))
    {
        writeln!(out, "  time         {time:.0}")?;
    }
    for file in p.mapping_files().into_iter().filter(|f| !f.is_empty()) {
        writeln!(out, "  mapping      {}", sanitize(&file))?;
    }
    for (name, value) in
        [("documentation", p.doc_url())].into_iter().chain(p.comments().into_iter().map(|c| ("comment", c)))
    {
        if !value.is_empty() {
            writeln!(out, "  {name:<12} {}", sanitize(&value))?;
        }
    }
    p.warnings().iter().try_for_each(|w| writeln!(out, "  warning: {}", sanitize(w)))
}
