//! A configuration file as a tree.

use super::error::ConfigError;
use crate::yaml::{self, Limits, Node};

const LIMITS: Limits = Limits { bytes: 1 << 20, nodes: 10_000, keep_duplicates: false };

/// The root node; `None` if the text has only comments and white space.
pub(super) fn parse(text: &str) -> Result<Option<Node<'_>>, ConfigError> {
    Ok(yaml::read(text, LIMITS, None)?.root)
}

/// Like [`parse`], and collects the comments.
pub(super) fn parse_noting<'a>(
    text: &'a str,
    comments: &mut Vec<&'a str>,
) -> Result<Option<Node<'a>>, ConfigError> {
    Ok(yaml::read(text, LIMITS, Some(comments))?.root)
}
