//! What the user chose on the screen, and what keys do to it: no terminal, no clock.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use smbscope_analysis::live::{Key, Row, Snapshot, Sort, Span, sort};

/// Characters of a filter at most.
const FILTER_MAX: usize = 200;

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What operations are grouped by.
    pub key: Key,
    /// What groups are ordered by.
    pub sort: Sort,
    /// The other way round.
    pub reverse: bool,
    /// Of which time.
    pub span: Span,
    /// Part of the names that are shown.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Whether the screen stands still.
    pub paused: bool,
    /// Rows above the first one that is shown.
    pub offset: usize,
    /// Whether the keys are explained.
    pub help: bool,
}

/// An action that a key requests from the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// To end.
    Quit,
    /// To begin or end a recording.
    Record,
}

impl State {
    /// A key was pressed; `page` is how many rows the screen has.
    pub fn press(&mut self, event: KeyEvent, page: usize) -> Asked {
        if event.kind == KeyEventKind::Release {
            return Asked::Nothing;
        }
        if event.modifiers.contains(KeyModifiers::CONTROL) {
            return match event.code {
                KeyCode::Char('c' | 'C') => Asked::Quit,
                _ => Asked::Nothing,
            };
        }
        if self.typing {
            self.edit(event.code);
            return Asked::Nothing;
        }
        if self.help {
            self.help = false;
            return if event.code == KeyCode::Char('q') { Asked::Quit } else { Asked::Nothing };
        }
        match event.code {
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char('R') => return Asked::Record,
            KeyCode::Char(digit @ '1'..='6') => {
                let place = digit as usize - '1' as usize;
                self.group(Key::ALL.get(place).copied().unwrap_or_default());
            }
            KeyCode::Char('b') => self.group(next(&Key::ALL, self.key, 1)),
            KeyCode::Char('>' | 's') => self.order(1),
            KeyCode::Char('<') => self.order(Sort::ALL.len() - 1),
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char('w') => {
                self.span = if self.span == Span::Slot { Span::Window } else { Span::Slot };
            }
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Down => self.offset = self.offset.saturating_add(1),
            KeyCode::Up => self.offset = self.offset.saturating_sub(1),
            KeyCode::PageDown => self.offset = self.offset.saturating_add(page.max(1)),
            KeyCode::PageUp => self.offset = self.offset.saturating_sub(page.max(1)),
            KeyCode::Home => self.offset = 0,
            KeyCode::End => self.offset = usize::MAX,
            _ => {}
        }
        Asked::Nothing
    }

    /// The rows of a snapshot that are wanted, in the order that is. Others come last.
    pub fn rows(&self, snapshot: &mut Snapshot) -> Vec<Row> {
        let mut rows = std::mem::take(&mut snapshot.rows);
        if !self.filter.is_empty() {
            let wanted = self.filter.to_lowercase();
            rows.retain(|row| {
                row.name.as_ref().is_some_and(|name| name.to_lowercase().contains(&wanted))
            });
        }
        sort(&mut rows, self.sort, self.reverse);
        if self.filter.is_empty()
            && let Some(mut others) = snapshot.others.take()
        {
            others.name = Some("(others)".to_owned());
            rows.push(others);
        }
        rows
    }

    /// Limits scrolling, so that the last page of `rows` stays visible.
    pub fn scroll(&mut self, rows: usize, page: usize) {
        self.offset = self.offset.min(rows.saturating_sub(page));
    }

    fn group(&mut self, key: Key) {
        self.key = key;
        self.offset = 0;
    }

    fn order(&mut self, by: usize) {
        self.sort = next(&Sort::ALL, self.sort, by);
        self.offset = 0;
    }

    fn edit(&mut self, code: KeyCode) {
        self.offset = 0;
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.len() < FILTER_MAX => self.filter.push(c),
            _ => {}
        }
    }
}

fn next<T: Copy + PartialEq + Default>(all: &[T], now: T, by: usize) -> T {
    let place = all.iter().position(|one| *one == now).unwrap_or(0);
    all.get((place + by) % all.len().max(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, keys: &str) -> Vec<Asked> {
        keys.chars()
            .map(|key| {
                let code = match key {
                    '\n' => KeyCode::Enter,
                    '\u{1b}' => KeyCode::Esc,
                    '\u{8}' => KeyCode::Backspace,
                    '↓' => KeyCode::Down,
                    '↑' => KeyCode::Up,
                    '⇟' => KeyCode::PageDown,
                    '⇞' => KeyCode::PageUp,
                    '⤓' => KeyCode::End,
                    key => KeyCode::Char(key),
                };
                state.press(KeyEvent::new(code, KeyModifiers::NONE), 10)
            })
            .collect()
    }

    #[test]
    fn keys_choose_group_order_and_span() {
        let mut state = State::default();
        press(&mut state, "4");
        assert_eq!(state.key, Key::File);
        press(&mut state, "bbb");
        assert_eq!(state.key, Key::Command, "after the last comes the first");
        press(&mut state, ">");
        assert_eq!(state.sort, Sort::Bytes);
        press(&mut state, "<<<");
        assert_eq!(state.sort, Sort::Time);
        press(&mut state, "s");
        assert_eq!(state.sort, Sort::Name);
        press(&mut state, "rw");
        assert!(state.reverse && state.span == Span::Window);
        press(&mut state, " ");
        assert!(state.paused);
        press(&mut state, "p");
        assert!(!state.paused);
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut state = State::default();
        assert_eq!(press(&mut state, "/qR\u{8}1"), [Asked::Nothing; 5], "letters are not commands");
        assert!(state.typing && state.filter == "q1");
        press(&mut state, "\n");
        assert!(!state.typing && state.filter == "q1" && state.key == Key::Command);
        press(&mut state, "\u{1b}");
        assert_eq!(state.filter, "");
        press(&mut state, "/abc\u{1b}");
        assert_eq!((state.filter.as_str(), state.typing), ("", false));
    }

    #[test]
    fn some_keys_ask_others() {
        let mut state = State::default();
        assert_eq!(press(&mut state, "Rq"), [Asked::Record, Asked::Quit]);
        let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut state, "/");
        assert_eq!(state.press(end, 10), Asked::Quit, "also while a filter is typed");
        press(&mut state, "\u{1b}?");
        assert!(state.help);
        assert_eq!(press(&mut state, "4"), [Asked::Nothing]);
        assert!(!state.help && state.key == Key::Command, "any key ends the help");
    }

    #[test]
    fn what_is_scrolled_stays_in_sight() {
        let mut state = State::default();
        press(&mut state, "↓↓↑⇟");
        assert_eq!(state.offset, 11);
        state.scroll(15, 10);
        assert_eq!(state.offset, 5);
        press(&mut state, "⤓");
        state.scroll(100, 10);
        assert_eq!(state.offset, 90);
        press(&mut state, "⇞⇞");
        assert_eq!(state.offset, 70);
        press(&mut state, "2");
        assert_eq!(state.offset, 0, "another group begins at its top");
        state.scroll(0, 10);
        assert_eq!(state.offset, 0);
    }
}
