//! A YAML text as a tree that remembers where everything stands.
//!
//! Guarantees for any input: no panic, and time and memory bounded by [`MAX_BYTES`], [`MAX_NODES`] and [`MAX_DEPTH`],
//! whatever its aliases would expand to. The merge key `<<` and tags have no meaning here.

use std::borrow::Cow;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StructureStyle};

use super::error::{ConfigError, Position};

pub(super) const MAX_BYTES: usize = 1 << 20;
const MAX_NODES: usize = 10_000;
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) at: Position,
    /// The bytes of the value: of a block collection up to the end of its last value, without indicators, anchor or tag.
    pub(super) span: Range<usize>,
    /// Whether it stands elsewhere in the text, under an anchor.
    pub(super) aliased: bool,
    pub(super) content: Content<'a>,
}

#[derive(Debug, Clone)]
pub(super) enum Content<'a> {
    Scalar { text: Cow<'a, str>, style: ScalarStyle },
    List { items: Vec<Node<'a>>, flow: bool },
    Map { entries: Vec<Entry<'a>>, flow: bool },
}

#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) key_span: Range<usize>,
    pub(super) key_at: Position,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, style: ScalarStyle::Plain }
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        match &self.content {
            Content::Map { entries, .. } => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Nodes, bytes of text and levels.
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

/// The root of the text's only document; `None` if there is nothing but comments and white space.
pub(super) fn parse(text: &str) -> Result<Option<Node<'_>>, ConfigError> {
    read(text, None)
}

/// [`parse`], which also collects the comments.
pub(super) fn parse_noting<'a>(
    text: &'a str,
    comments: &mut Vec<&'a str>,
) -> Result<Option<Node<'a>>, ConfigError> {
    read(text, Some(comments))
}

fn read<'a>(text: &'a str, mut comments: Option<&mut Vec<&'a str>>) -> Result<Option<Node<'a>>, ConfigError> {
    if text.len() > MAX_BYTES {
        return Err(ConfigError::TooLarge { bytes: text.len(), limit: MAX_BYTES });
    }
    let options = granit_parser::options! {
        emit_comments: comments.is_some(),
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        // Comments are limited by the text's length; a long licence header is no attack.
        max_buffered_comment_events: MAX_BYTES,
    };
    let mut tree = Tree { text, ..Tree::default() };
    for step in Parser::new_from_str_with_options(text, options) {
        let (event, span) = step.map_err(|error| syntax(error.info(), error.marker()))?;
        match (&event, &mut comments) {
            (Event::Comment(..), Some(comments)) => comments.push(span.slice(text).unwrap_or_default()),
            _ => tree.take(event, &span)?,
        }
    }
    Ok(tree.root)
}

#[derive(Default)]
struct Tree<'a> {
    text: &'a str,
    root: Option<Node<'a>>,
    open: Vec<Open<'a>>,
    anchors: Vec<(usize, Node<'a>)>,
    documents: usize,
    nodes: usize,
    aliased_bytes: usize,
}

struct Open<'a> {
    node: Node<'a>,
    anchor: usize,
    key: Option<(Cow<'a, str>, Range<usize>, Position)>,
}

impl<'a> Tree<'a> {
    fn take(&mut self, event: Event<'a>, span: &Span) -> Result<(), ConfigError> {
        if event.tag().is_some() {
            return Err(syntax("tags such as `!!str` are not used here", &span.start));
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(syntax("a second document begins", &span.start));
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let mut node = node(span, Content::Scalar { text, style });
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    // The parser's span runs up to the next token.
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
                let anchored = self.anchors.iter().rev().find(|(anchor, _)| *anchor == id);
                let Some((_, anchored)) = anchored else {
                    return Err(syntax("an alias stands inside what it refers to", &span.start));
                };
                let (nodes, text, levels) = anchored.measure();
                self.nodes += nodes;
                self.aliased_bytes += text;
                if self.aliased_bytes > MAX_BYTES || self.open.len() + levels > MAX_DEPTH {
                    return Err(syntax("aliases expand to too much", &span.start));
                }
                let copy =
                    Node { at: position(&span.start), span: bytes(span), aliased: true, ..anchored.clone() };
                self.add(copy, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, node: Node<'a>, anchor: usize, span: &Span) -> Result<(), ConfigError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(syntax("values are nested too deeply", &span.start));
        }
        self.open.push(Open { node, anchor, key: None });
        Ok(())
    }

    fn add(&mut self, node: Node<'a>, anchor: usize) -> Result<(), ConfigError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(ConfigError::Syntax {
                problem: format!("there are more than {MAX_NODES} values"),
                at: node.at,
            });
        }
        if anchor != 0 {
            self.anchors.push((anchor, node.clone()));
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
                None => open.key = Some(as_key(node, entries)?),
            },
            Content::Scalar { .. } => {}
        }
        Ok(())
    }
}

fn as_key<'a>(
    node: Node<'a>,
    entries: &[Entry<'a>],
) -> Result<(Cow<'a, str>, Range<usize>, Position), ConfigError> {
    let Content::Scalar { text, .. } = node.content else {
        return Err(ConfigError::Syntax { problem: "a key must be a single word".to_owned(), at: node.at });
    };
    match entries.iter().find(|entry| entry.key == text) {
        Some(first) => {
            Err(ConfigError::DuplicateKey { key: text.into_owned(), at: node.at, first: first.key_at })
        }
        None => Ok((text, node.span, node.at)),
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

fn syntax(problem: impl Into<String>, marker: &Marker) -> ConfigError {
    ConfigError::Syntax { problem: problem.into(), at: position(marker) }
}
