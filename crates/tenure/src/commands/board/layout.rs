//! Where everything is on the screen. The layout depends only on the size of the terminal, so nothing moves while the board
//! changes.

use ratatui_core::layout::{Position, Rect};

use super::state::{Pane, Tab};

/// From this size on, the project has its own column.
const WIDE: (u16, u16) = (150, 30);
/// Below this size nothing useful can be shown.
pub(super) const SMALLEST: (u16, u16) = (40, 12);

const HEAD: u16 = 2;
/// From this width on, the keys fit into one line. On narrower terminals they have two, if the height allows it.
const ONE_LINE: u16 = 165;
const TALL: u16 = 20;

#[derive(Debug, Clone)]
pub(super) struct Areas {
    pub(super) head: Rect,
    /// The four lists, in the order of [`Pane::ALL`], each with its title.
    pub(super) panes: [Rect; 4],
    /// The details of the selected row, with the tabs as the title.
    pub(super) detail: Rect,
    /// The project, if the terminal is wide enough.
    pub(super) project: Option<Rect>,
    pub(super) message: Rect,
    pub(super) keys: Rect,
}

/// What is at a position of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// A line of a list, counted from its first visible row.
    Row(Pane, usize),
    Tab(Tab),
    Other,
}

impl Areas {
    pub(super) fn of(screen: Rect) -> Self {
        let Rect { width, height, .. } = screen;
        let keys = if width < ONE_LINE && height >= TALL { 2 } else { 1 };
        // One line is for messages.
        let middle = height.saturating_sub(HEAD + 1 + keys);
        let is_wide = width >= WIDE.0 && height >= WIDE.1;
        let left = if is_wide { width * 2 / 5 } else { width * 9 / 20 };
        let right = if is_wide { width / 4 } else { 0 };
        // Each gap is one column.
        let detail = width.saturating_sub(left + right + if is_wide { 2 } else { 1 });
        let attention = (middle / 5).clamp(2, 10);
        let held = (middle / 5).clamp(2, 12);
        let queue = (middle / 7).clamp(2, 7);
        let tasks = middle.saturating_sub(attention + held + queue);
        let mut y = HEAD;
        let panes = [attention, held, tasks, queue].map(|rows| {
            let area = Rect::new(0, y, left, rows);
            y += rows;
            area
        });
        Self {
            head: Rect::new(0, 0, width, HEAD.min(height)),
            panes,
            detail: Rect::new(left + 1, HEAD, detail, middle),
            project: is_wide.then(|| Rect::new(left + detail + 2, HEAD, right, middle)),
            message: Rect::new(0, height.saturating_sub(1 + keys), width, 1),
            keys: Rect::new(0, height.saturating_sub(keys), width, keys),
        }
    }

    /// How many rows of a list are visible.
    pub(super) fn height(&self, pane: Pane) -> usize {
        usize::from(self.panes[pane.index()].height.saturating_sub(1))
    }

    /// The tabs, and where each is in the title of the detail.
    pub(super) fn tabs(&self) -> Vec<(Tab, Rect)> {
        let shown = Tab::ALL.into_iter().filter(|tab| *tab != Tab::Project || self.project.is_none());
        let mut x = self.detail.x;
        shown
            .map(|tab| {
                let width = u16::try_from(tab.label().len() + 4).unwrap_or(0);
                let area = Rect::new(x, self.detail.y, width, 1).intersection(self.detail);
                x += width;
                (tab, area)
            })
            .collect()
    }

    /// The tab that is seen: a project with a column of its own has none.
    pub(super) fn shown_tab(&self, chosen: Tab) -> Tab {
        if chosen == Tab::Project && self.project.is_some() { Tab::Info } else { chosen }
    }

    pub(super) fn spot(&self, column: u16, row: u16) -> Option<Spot> {
        let at = Position::new(column, row);
        for pane in Pane::ALL {
            let area = self.panes[pane.index()];
            if area.contains(at) && row > area.y {
                return Some(Spot::Row(pane, usize::from(row - area.y - 1)));
            }
        }
        if let Some((tab, _)) = self.tabs().into_iter().find(|(_, area)| area.contains(at)) {
            return Some(Spot::Tab(tab));
        }
        self.detail.contains(at).then_some(Spot::Other)
    }
}
