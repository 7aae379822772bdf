//! The terminal while the board uses it: the alternate screen, raw keys and, if enabled, the mouse.
//!
//! Guarantees: the terminal is restored when the value is dropped, when the process panics, and while it is suspended.

use std::io::{self, Stdout, stdout};

use ratatui_core::layout::Rect;
use ratatui_core::terminal::{Frame, Terminal};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui_crossterm::crossterm::{cursor, execute};

use crate::sys;

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Screen {
    pub(super) fn open(mouse: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
        enter(mouse)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal, mouse })
    }

    pub(super) fn area(&self) -> io::Result<Rect> {
        let size = self.terminal.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Takes the mouse, or leaves it to the terminal.
    pub(super) fn set_mouse(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        if mouse { execute!(stdout(), EnableMouseCapture) } else { execute!(stdout(), DisableMouseCapture) }
    }

    /// Gives the terminal back, stops the process until it is continued, and takes the terminal again.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.lend(sys::stop_job)
    }

    /// Gives the terminal back while `body` runs.
    pub(super) fn lend<T>(&mut self, body: impl FnOnce() -> T) -> io::Result<T> {
        leave();
        let result = body();
        enter(self.mouse)?;
        self.terminal.clear()?;
        Ok(result)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let entered = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide);
    let taken = if mouse { execute!(stdout(), EnableMouseCapture) } else { Ok(()) };
    entered.and(taken).inspect_err(|_| leave())
}

/// Every step is tried, even if another one fails.
fn leave() {
    let _ =
        execute!(stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
