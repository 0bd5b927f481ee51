//! Compiled filters. Compiling them rejects invalid expressions and ranges.

use regex::bytes::Regex;

use super::Filters;
use crate::Result;
use crate::diff::pattern;
use crate::diff::tags::TagFilter;

pub(super) fn non_empty(filter: &Option<String>) -> Option<&str> {
    filter.as_deref().filter(|f| !f.is_empty())
}

/// The compiled form of [`Filters`].
pub(crate) struct Compiled {
    pub(super) focus: Option<Regex>,
    pub(super) ignore: Option<Regex>,
    pub(super) hide: Option<Regex>,
    pub(super) show: Option<Regex>,
    pub(super) show_from: Option<Regex>,
    pub(super) prune_from: Option<Regex>,
    pub(super) tagfocus: Option<TagFilter>,
    pub(super) tagignore: Option<TagFilter>,
    pub(super) tagshow: Option<Regex>,
    pub(super) taghide: Option<Regex>,
    pub(super) tagroot: Vec<String>,
    pub(super) tagleaf: Vec<String>,
    pub(super) no_inlines: bool,
    /// True if frames that match a profile's drop_frames are kept.
    pub(super) all_frames: bool,
}

impl Compiled {
    pub(crate) fn new(filters: &Filters, no_inlines: bool, all_frames: bool) -> Result<Compiled> {
        let regex = |name, value: &Option<String>| non_empty(value).map(|v| pattern::compile(name, v)).transpose();
        let tag = |name, value: &Option<String>| non_empty(value).map(|v| TagFilter::new(name, v)).transpose();
        let keys = |value: &Option<String>| -> Vec<String> {
            value.iter().flat_map(|v| v.split(',')).filter(|k| !k.is_empty()).map(str::to_owned).collect()
        };
        // These two filters replace whole profiles, so here they are only checked.
        tag("base_tagfocus", &filters.base_tagfocus)?;
        tag("new_tagfocus", &filters.new_tagfocus)?;
        Ok(Compiled {
            focus: regex("focus", &filters.focus)?,
            ignore: regex("ignore", &filters.ignore)?,
            hide: regex("hide", &filters.hide)?,
            show: regex("show", &filters.show)?,
            show_from: regex("show_from", &filters.show_from)?,
            prune_from: regex("prune_from", &filters.prune_from)?,
            tagfocus: tag("tagfocus", &filters.tagfocus)?,
            tagignore: tag("tagignore", &filters.tagignore)?,
            tagshow: regex("tagshow", &filters.tagshow)?,
            taghide: regex("taghide", &filters.taghide)?,
            tagroot: keys(&filters.tagroot),
            tagleaf: keys(&filters.tagleaf),
            no_inlines,
            all_frames,
        })
    }

    pub(super) fn by_name(&self) -> bool {
        self.focus.is_some() || self.ignore.is_some() || self.hide.is_some() || self.show.is_some()
    }
}
