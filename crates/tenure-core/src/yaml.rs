//! A YAML document as a tree with source positions.
//!
//! Guarantees for any input: no panic, and time and memory bounded by the [`Limits`], including the expansion of
//! aliases. The merge key `<<` and tags are not supported.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) use granit_parser::ScalarStyle;
use granit_parser::{Event, Marker, Parser, Span, StructureStyle};

use crate::config::Position;

/// The deepest accepted nesting.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of the text, and separately of what its aliases expand to.
    pub(crate) bytes: usize,
    /// Number of values, including those that aliases expand to.
    pub(crate) nodes: usize,
    /// Keeps both values of a duplicate key and reports it in [`Read::duplicate`], instead of failing.
    pub(crate) keep_duplicates: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum YamlError {
    Syntax { problem: String, at: Position },
    TooLarge { bytes: usize, limit: usize },
    DuplicateKey { key: String, at: Position, first: Position },
}

#[derive(Debug)]
pub(crate) struct Read<'a> {
    /// The root of the single document; `None` if the text has only comments and white space.
    pub(crate) root: Option<Node<'a>>,
    /// The first duplicate key.
    pub(crate) duplicate: Option<YamlError>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) at: Position,
    /// The byte range of the value. For a block collection it extends to the end of the last value. Indicators,
    /// anchors and tags are excluded.
    pub(crate) span: Range<usize>,
    /// Whether it is an alias of a value elsewhere in the text.
    pub(crate) aliased: bool,
    pub(crate) content: Content<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum Content<'a> {
    Scalar { text: Cow<'a, str>, style: ScalarStyle },
    List { items: Vec<Node<'a>>, flow: bool },
    Map { entries: Vec<Entry<'a>>, flow: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) key_at: Position,
    pub(crate) value: Node<'a>,
}

impl<'a> Node<'a> {
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, style: ScalarStyle::Plain }
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        match &self.content {
            Content::Map { entries, .. } => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Number of nodes, bytes of text, and depth.
    fn measure(&self) -> (usize, usize, usize) {
        let children: Vec<(usize, &Node<'a>)> = match &self.content {
            Content::Scalar { text, .. } => return (1, text.len(), 1),
            Content::List { items, .. } => items.iter().map(|item| (0, item)).collect(),
            Content::Map { entries, .. } => {
                entries.iter().map(|entry| (entry.key.len(), &entry.value)).collect()
            }
        };
        children.iter().fold((1, 0, 1), |(nodes, bytes, levels), (key_bytes, child)| {
            let (n, b, l) = child.measure();
            (nodes + n, bytes + key_bytes + b, levels.max(l + 1))
        })
    }
}

/// Parses a text and optionally collects its comments.
pub(crate) fn read<'a>(
    text: &'a str,
    limits: Limits,
    mut comments: Option<&mut Vec<&'a str>>,
) -> Result<Read<'a>, YamlError> {
    if text.len() > limits.bytes {
        return Err(YamlError::TooLarge { bytes: text.len(), limit: limits.bytes });
    }
    let options = granit_parser::options! {
        emit_comments: comments.is_some(),
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        // Comments are bounded by the length of the text, so they need no separate limit.
        max_buffered_comment_events: limits.bytes,
    };
    let mut tree = Tree::new(text, limits);
    for step in Parser::new_from_str_with_options(text, options) {
        let (event, span) = step.map_err(|error| syntax(error.info(), error.marker()))?;
        match (&event, &mut comments) {
            (Event::Comment(..), Some(comments)) => comments.push(span.slice(text).unwrap_or_default()),
            _ => tree.take(event, &span)?,
        }
    }
    Ok(Read { root: tree.root, duplicate: tree.duplicate })
}

struct Tree<'a> {
    text: &'a str,
    limits: Limits,
    root: Option<Node<'a>>,
    duplicate: Option<YamlError>,
    open: Vec<Open<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    documents: usize,
    nodes: usize,
    aliased_bytes: usize,
}

struct Open<'a> {
    node: Node<'a>,
    anchor: usize,
    key: Option<(Cow<'a, str>, Range<usize>, Position)>,
    /// The position of each key of a mapping.
    keys: HashMap<Cow<'a, str>, Position>,
}

impl<'a> Tree<'a> {
    fn new(text: &'a str, limits: Limits) -> Self {
        Self {
            text,
            limits,
            root: None,
            duplicate: None,
            open: Vec::new(),
            anchors: HashMap::new(),
            documents: 0,
            nodes: 0,
            aliased_bytes: 0,
        }
    }

    fn take(&mut self, event: Event<'a>, span: &Span) -> Result<(), YamlError> {
        if event.tag().is_some() {
            return Err(syntax("tags such as `!!str` are not supported", &span.start));
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(syntax("a second document starts here", &span.start));
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let mut node = node(span, Content::Scalar { text, style });
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    // The span from the parser extends to the next token.
                    let content = self.text.get(node.span.clone()).unwrap_or_default();
                    node.span.end = node.span.start + content.trim_end().len();
                }
                self.add(node, anchor)?;
            }
            Event::SequenceStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                self.begin(node(span, Content::List { items: Vec::new(), flow }), anchor, span)?;
            }
            Event::MappingStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                self.begin(node(span, Content::Map { entries: Vec::new(), flow }), anchor, span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { mut node, anchor, .. }) = self.open.pop() {
                    if let Content::List { flow: true, .. } | Content::Map { flow: true, .. } = node.content {
                        node.span.end = bytes(span).end;
                    }
                    self.add(node, anchor)?;
                }
            }
            Event::Alias(id) => {
                let Some(anchored) = self.anchors.get(&id) else {
                    return Err(syntax("an alias refers to a value that contains it", &span.start));
                };
                let (nodes, text, levels) = anchored.measure();
                self.nodes += nodes;
                self.aliased_bytes += text;
                if self.aliased_bytes > self.limits.bytes || self.open.len() + levels > MAX_DEPTH {
                    return Err(syntax("the aliases expand to too much data", &span.start));
                }
                let copy =
                    Node { at: position(&span.start), span: bytes(span), aliased: true, ..anchored.clone() };
                self.add(copy, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, node: Node<'a>, anchor: usize, span: &Span) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(syntax("values are nested too deeply", &span.start));
        }
        self.open.push(Open { node, anchor, key: None, keys: HashMap::new() });
        Ok(())
    }

    fn add(&mut self, node: Node<'a>, anchor: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(YamlError::Syntax {
                problem: format!("there are more than {} values", self.limits.nodes),
                at: node.at,
            });
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.node.span.end = node.span.end;
        match &mut open.node.content {
            Content::List { items, .. } => items.push(node),
            Content::Map { entries, .. } => match open.key.take() {
                Some((key, key_span, key_at)) => entries.push(Entry { key, key_span, key_at, value: node }),
                None => {
                    let (key, span, at) = as_key(node)?;
                    if let Some(first) = open.keys.insert(key.clone(), at) {
                        let duplicate = YamlError::DuplicateKey { key: key.to_string(), at, first };
                        if !self.limits.keep_duplicates {
                            return Err(duplicate);
                        }
                        self.duplicate.get_or_insert(duplicate);
                    }
                    open.key = Some((key, span, at));
                }
            },
            Content::Scalar { .. } => {}
        }
        Ok(())
    }
}

fn as_key(node: Node<'_>) -> Result<(Cow<'_, str>, Range<usize>, Position), YamlError> {
    match node.content {
        Content::Scalar { text, .. } => Ok((text, node.span, node.at)),
        _ => Err(YamlError::Syntax { problem: "a key must be a scalar".to_owned(), at: node.at }),
    }
}

fn node<'a>(span: &Span, content: Content<'a>) -> Node<'a> {
    Node { at: position(&span.start), span: bytes(span), aliased: false, content }
}

fn bytes(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or_default()
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

fn syntax(problem: impl Into<String>, marker: &Marker) -> YamlError {
    YamlError::Syntax { problem: problem.into(), at: position(marker) }
}
