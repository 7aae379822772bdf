//! A YAML text as a tree that remembers where everything stands.
//!
//! Guarantees for any input: no panic, and time and memory bounded by the [`Limits`], whatever its aliases would expand to.
//! The merge key `<<` and tags have no meaning here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) use granit_parser::ScalarStyle;
use granit_parser::{Event, Marker, Parser, Span, StructureStyle};

use crate::config::Position;

/// Levels of nesting that anybody means.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of the text, and again of what its aliases expand to.
    pub(crate) bytes: usize,
    /// Values, with those that aliases expand to.
    pub(crate) nodes: usize,
    /// A key that occurs twice in a mapping is kept twice, and told in [`Read::twice`].
    pub(crate) keeps_twice: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum YamlError {
    Syntax { problem: String, at: Position },
    TooLarge { bytes: usize, limit: usize },
    Twice { key: String, at: Position, first: Position },
}

#[derive(Debug)]
pub(crate) struct Read<'a> {
    /// Of the text's only document; `None` if there is nothing but comments and white space.
    pub(crate) root: Option<Node<'a>>,
    /// The first key that occurs twice.
    pub(crate) twice: Option<YamlError>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) at: Position,
    /// The bytes of the value: of a block collection up to the end of its last value, without indicators, anchor or tag.
    pub(crate) span: Range<usize>,
    /// Whether it stands elsewhere in the text, under an anchor.
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

/// Reads a text, and collects its comments where somebody wants them.
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
        // Comments are limited by the text's length; a long licence header is no attack.
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
    Ok(Read { root: tree.root, twice: tree.twice })
}

struct Tree<'a> {
    text: &'a str,
    limits: Limits,
    root: Option<Node<'a>>,
    twice: Option<YamlError>,
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
    /// Where each key of a mapping stands.
    keys: HashMap<Cow<'a, str>, Position>,
}

impl<'a> Tree<'a> {
    fn new(text: &'a str, limits: Limits) -> Self {
        Self {
            text,
            limits,
            root: None,
            twice: None,
            open: Vec::new(),
            anchors: HashMap::new(),
            documents: 0,
            nodes: 0,
            aliased_bytes: 0,
        }
    }

    fn take(&mut self, event: Event<'a>, span: &Span) -> Result<(), YamlError> {
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
                let Some(anchored) = self.anchors.get(&id) else {
                    return Err(syntax("an alias stands inside what it refers to", &span.start));
                };
                let (nodes, text, levels) = anchored.measure();
                self.nodes += nodes;
                self.aliased_bytes += text;
                if self.aliased_bytes > self.limits.bytes || self.open.len() + levels > MAX_DEPTH {
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
                        let twice = YamlError::Twice { key: key.to_string(), at, first };
                        if !self.limits.keeps_twice {
                            return Err(twice);
                        }
                        self.twice.get_or_insert(twice);
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
        _ => Err(YamlError::Syntax { problem: "a key must be a single word".to_owned(), at: node.at }),
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
