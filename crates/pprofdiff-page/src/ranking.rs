//! The page of a ranking: the causes that several pairs share, small changes that many pairs share, the pairs, and the
//! pairs that could not be compared. Shared causes and changed pairs can be expanded. The page contains no script.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::file::page_style;
use pprofdiff::Pair;
use pprofdiff_explain::Verdict;
use pprofdiff_report::shared::{
    CostFormat, counted, counted_of, escape, escape_ours, growth, ranking_head, share_text, signed, total,
};
use pprofdiff_series::fleet::{RankedPair, Ranking, SharedCause};

/// The maximum number of compared pairs on the page, and of failed pairs. Changed pairs come first.
const MAX_PAIRS: usize = 2000;
/// The maximum number of shared causes on the page, and of small changes that many pairs share.
const MAX_SHARED: usize = 100;

/// Returns the complete page. All text from the input is escaped.
pub(crate) fn ranking_page(ranking: &Ranking) -> String {
    let style = format!("{}{}", page_style(), include_str!("assets/ranking.css"));
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    let title = escape(&ranking_head(ranking));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n\
         <body class=\"ranking\">\n<header><h1>{title}</h1><p><b>{}</b> of all: {}</p>{}</header>\n<main>\n",
        escape(&ranking.summary.sample_type),
        escape_ours(&total(&ranking.summary, "→")),
        ranking.summary.warnings.iter().map(|warning| format!("<p>{}</p>", escape(warning))).collect::<String>()
    );
    let max_rows = ranking.rows.unwrap_or(usize::MAX);
    let shared = &ranking.shared[..ranking.shared.len().min(MAX_SHARED).min(max_rows)];
    if !shared.is_empty() {
        let _ = writeln!(
            html,
            "<section aria-labelledby=\"shared\"><h2 id=\"shared\">Causes that several pairs share{}</h2>",
            left_out(shared.len(), ranking.shared.len(), "cause")
        );
        let cost = cost(ranking, shared.iter().map(|cause| sides(cause.base, cause.new)));
        shared.iter().for_each(|cause| push_shared(ranking, cause, cost, &mut html));
        html.push_str("</section>\n");
    }
    let common = &ranking.common[..ranking.common.len().min(MAX_SHARED).min(max_rows)];
    if !common.is_empty() {
        let _ = writeln!(
            html,
            "<section aria-labelledby=\"common\"><h2 id=\"common\">Small changes that many pairs share, each within chance by \
             itself{}</h2>",
            left_out(common.len(), ranking.common.len(), "function")
        );
        let cost = cost(ranking, common.iter().map(|change| sides(change.base, change.new)));
        for change in common {
            let _ = writeln!(
                html,
                "<div class=\"pair\"><span class=\"of\">{}</span><span class=\"size {}\">{} of all</span>\
                 <span class=\"says\">{}: {}</span></div>",
                escape(&change.function),
                class(change.delta),
                escape_ours(&share_text(Some(100.0 * change.share), true)),
                counted(change.pairs, "pair"),
                escape_ours(&cost.change(sides(change.base, change.new), "→")),
            );
        }
        html.push_str("</section>\n");
    }
    let pairs = &ranking.pairs[..ranking.pairs.len().min(MAX_PAIRS).min(max_rows)];
    let (changed, others) = pairs.split_at(ranking.changed.min(pairs.len()));
    let _ = writeln!(
        html,
        "<section aria-labelledby=\"pairs\"><h2 id=\"pairs\">Pairs, ranked by the sum of their causes{}</h2>",
        left_out(pairs.len(), ranking.pairs.len(), "pair")
    );
    let cost = cost(ranking, pairs.iter().map(|pair| Pair { base: pair.total_base, new: pair.total_new }));
    for (pair_index, pair) in (0..).zip(changed) {
        push_changed(pair_index, pair, cost, &mut html);
    }
    for pair in others {
        let _ = writeln!(
            html,
            "<div class=\"pair\"><span class=\"of\">{}</span><span class=\"size\">{} ({})</span>\
             <span class=\"says\">{}{}</span></div>",
            escape(&pair.pair),
            escape_ours(&signed(pair.total_delta, cost.delta)),
            escape_ours(&growth(Pair { base: pair.total_base, new: pair.total_new })),
            if pair.verdict == Verdict::Change { "Not significant among this many pairs: " } else { "" },
            escape(&pair.sentence),
        );
    }
    html.push_str("</section>\n");
    if !ranking.failed.is_empty() {
        let _ = writeln!(
            html,
            "<section aria-labelledby=\"failed\"><h2 id=\"failed\">Could not be compared{}</h2><ul>",
            left_out(ranking.failed.len().min(MAX_PAIRS), ranking.failed.len(), "pair")
        );
        for failed in ranking.failed.iter().take(MAX_PAIRS) {
            let _ = writeln!(html, "<li>{}</li>", escape(&failed.error));
        }
        html.push_str("</ul></section>\n");
    }
    html + "</main>\n</body>\n</html>\n"
}

/// Returns a note with the number of shown items and of all items. Empty if all are shown.
fn left_out(shown: usize, all: usize, noun: &str) -> String {
    if shown == all { String::new() } else { format!(" <span class=\"note\">{}</span>", counted_of(shown, all, noun)) }
}

fn cost(ranking: &Ranking, shown: impl Iterator<Item = Pair> + Clone) -> CostFormat {
    CostFormat::for_values(&ranking.summary, true, shown)
}

fn sides(base: f64, new: f64) -> Pair {
    Pair { base: base.round() as i64, new: new.round() as i64 }
}

fn class(delta: f64) -> &'static str {
    if delta < 0.0 { "less" } else { "more" }
}

/// Appends a shared cause with links to its pairs. A pair that is not among the changed pairs on the page is only
/// named.
fn push_shared(ranking: &Ranking, cause: &SharedCause, cost: CostFormat, html: &mut String) {
    let _ = write!(
        html,
        "<details><summary><span class=\"of\">{}</span><span class=\"size {}\">{} of all</span>\
         <span class=\"says\">{}, {}; in {}: {}</span></summary><div class=\"open\"><div>{}</div><ul>",
        escape(&cause.function),
        class(cause.delta),
        escape_ours(&share_text(Some(100.0 * cause.share), true)),
        counted(cause.pairs, "pair"),
        escape_ours(&signed(cause.delta.round() as i64, cost.delta)),
        cause.named.first().map(|pair| escape(pair)).unwrap_or_default(),
        escape(&cause.sentence),
        escape_ours(&cost.change(sides(cause.base, cause.new), "→")),
    );
    for name in &cause.named {
        let pair_index = ranking.pairs[..ranking.changed].iter().position(|pair| pair.pair == *name);
        let name = escape(name);
        let _ = match pair_index.filter(|pair_index| *pair_index < MAX_PAIRS) {
            Some(pair_index) => write!(html, "<li><a href=\"#pair-{pair_index}\">{name}</a></li>"),
            None => write!(html, "<li>{name}</li>"),
        };
    }
    let more = cause.pairs - cause.named.len().min(cause.pairs);
    if more > 0 {
        let _ = write!(html, "<li>{more} more</li>");
    }
    html.push_str("</ul></div></details>\n");
}

/// Appends a changed pair with its account. Accounts of small changes are not stored; these pairs list their causes
/// instead.
fn push_changed(pair_index: usize, pair: &RankedPair, cost: CostFormat, html: &mut String) {
    let total = Pair { base: pair.total_base, new: pair.total_new };
    let _ = write!(
        html,
        "<details><summary><span class=\"of\">{}</span><span class=\"size {}\">{} ({})</span>\
         <span class=\"says\">{}</span></summary><div class=\"open\" id=\"pair-{pair_index}\">",
        escape(&pair.pair),
        class(total.delta() as f64),
        escape_ours(&signed(total.delta(), cost.delta)),
        escape_ours(&growth(total)),
        escape(&pair.sentence),
    );
    match &pair.account {
        Some(account) => html.push_str(account),
        None => {
            let _ = write!(html, "<div>{}</div><ul>", escape_ours(&cost.change(total, "→")));
            for cause in &pair.causes {
                let _ = write!(html, "<li>{}</li>", escape(&cause.sentence));
            }
            html.push_str("</ul>");
        }
    }
    html.push_str("</div></details>\n");
}
