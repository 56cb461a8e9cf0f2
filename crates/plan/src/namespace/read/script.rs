//! Commands of PowerShell that make a namespace: `New-DfsnRoot`, `New-DfsnFolder` and their companions, with literal
//! values.
//!
//! Owns the words of a command (`about_Quoting_Rules`, `about_Parsing`): it executes nothing, and a variable or an
//! expression as a value is an error.

use super::super::form::Form;
use super::objects::Subject;
use super::{Context, Damage, Damaged};
use crate::input::powershell::{Object, plain};
use crate::script::quote::is_powershell_quote;

/// A word, and whether it begins with a quote.
type Word = (String, bool);

pub(super) fn read(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut commands = 0;
    let mut line = 1;
    let mut rest = text;
    while !rest.is_empty() {
        let (words, taken, start) = statement(rest, &mut line)?;
        rest = rest.get(taken..).unwrap_or_default();
        let Some((name, _)) = words.first() else { continue };
        if command(name, &words, start, context)? {
            commands += 1;
        } else if !name.starts_with("$ErrorActionPreference") {
            let text = words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ");
            context.note(start, &text);
        }
    }
    if commands == 0 {
        return Err(Damage::new(1, "no command New-Dfsn* or Set-Dfsn* with its parameters"));
    }
    Ok(())
}

/// The words up to the end of a statement, the bytes that they take, and the line of the first one.
fn statement(text: &str, line: &mut usize) -> Damaged<(Vec<Word>, usize, usize)> {
    let mut words = Vec::new();
    let mut start = *line;
    let mut word: Option<Word> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        if words.is_empty() && word.is_none() {
            start = *line;
        }
        match c {
            '\n' | ';' => {
                *line += usize::from(c == '\n');
                words.extend(word.take());
                if !words.is_empty() {
                    return Ok((words, at + 1, start));
                }
            }
            '`' if matches!(letters.peek(), Some((_, '\n' | '\r'))) => {
                // The statement continues in the next line.
                while let Some((_, c)) = letters.next_if(|(_, c)| matches!(c, '\r' | '\n')) {
                    if c == '\n' {
                        *line += 1;
                        break;
                    }
                }
                words.extend(word.take());
            }
            '#' if word.is_none() => while letters.next_if(|(_, c)| *c != '\n').is_some() {},
            c if c.is_whitespace() => words.extend(word.take()),
            quote if is_powershell_quote(quote) || is_double_quote(quote) => {
                // `-Name:'value'` is two words.
                let is_parameter = |(word, is_quoted): &Word| {
                    !is_quoted && word.starts_with('-') && word.ends_with(':')
                };
                words.extend(word.take_if(|word| is_parameter(word)));
                let (piece, _) = word.get_or_insert_with(|| (String::new(), true));
                let start = *line;
                loop {
                    let Some((_, c)) = letters.next() else {
                        return Err(Damage::new(start, "a string without its closing quote"));
                    };
                    *line += usize::from(c == '\n');
                    let is_end = if is_powershell_quote(quote) {
                        is_powershell_quote(c)
                    } else {
                        is_double_quote(c)
                    };
                    if is_end {
                        // Doubled, it is the character itself.
                        let same = |next: char| {
                            if is_powershell_quote(quote) {
                                is_powershell_quote(next)
                            } else {
                                is_double_quote(next)
                            }
                        };
                        if letters.next_if(|(_, next)| same(*next)).is_none() {
                            break;
                        }
                    } else if is_double_quote(quote) && c == '$' {
                        return Err(Damage::new(
                            start,
                            "a variable in a string; only literal values are read",
                        ));
                    } else if is_double_quote(quote) && c == '`' {
                        if let Some((_, escaped)) = letters.next() {
                            piece.push(match escaped {
                                'n' => '\n',
                                't' => '\t',
                                'r' => '\r',
                                other => other,
                            });
                        }
                        continue;
                    }
                    piece.push(c);
                }
            }
            c => word.get_or_insert_with(|| (String::new(), false)).0.push(c),
        }
    }
    words.extend(word);
    Ok((words, text.len(), start))
}

fn is_double_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

/// Whether a statement is such a command; it is then applied.
fn command(name: &str, words: &[Word], line: usize, context: &mut Context<'_>) -> Damaged<bool> {
    let Some((verb, noun)) = name.split_once('-') else { return Ok(false) };
    if !["new", "set"].contains(&verb.to_ascii_lowercase().as_str()) {
        return Ok(false);
    }
    let (subject, is_with_target) = match noun.to_ascii_lowercase().as_str() {
        "dfsnroot" => (Subject::Root, true),
        "dfsnfolder" => (Subject::Folder, true),
        "dfsnroottarget" | "dfsnfoldertarget" => (Subject::Target, false),
        _ => return Ok(false),
    };
    let mut own = Object::default();
    let mut of_target = Object::default();
    let mut has_target = false;
    let mut words = words.iter().skip(1).peekable();
    while let Some((word, is_quoted)) = words.next() {
        let Some(parameter) = word.strip_prefix('-').filter(|_| !is_quoted) else {
            return Err(Damage::new(
                line,
                format!("{word:?} has no parameter before it; only named parameters are read"),
            ));
        };
        let (parameter, value) = match parameter.split_once(':') {
            Some((parameter, value)) if !value.is_empty() => {
                (parameter, Some((value.to_owned(), false)))
            }
            _ => {
                let parameter = parameter.trim_end_matches(':');
                let next = words.next_if(|(word, is_quoted)| *is_quoted || !word.starts_with('-'));
                (parameter, next.cloned())
            }
        };
        let (value, is_quoted) = value.unwrap_or_else(|| ("true".to_owned(), false));
        let value = match value.as_str() {
            "$true" if !is_quoted => "true".to_owned(),
            "$false" if !is_quoted => "false".to_owned(),
            text if !is_quoted && text.starts_with(['$', '(', '@']) => {
                return Err(Damage::new(
                    line,
                    format!(
                        "the value {text} of -{parameter} is an expression; only literal values are read"
                    ),
                ));
            }
            _ => value,
        };
        // Priorities and the state of the first target are parameters of the folder that is made with it.
        match plain(parameter).as_str() {
            "targetpath" => {
                has_target = true;
                of_target.push("TargetPath", value, line);
            }
            "targetstate" => of_target.push("State", value, line),
            "referralpriorityclass" | "referralpriorityrank" => {
                of_target.push(parameter, value, line)
            }
            "path" => {
                of_target.push("Path", value.clone(), line);
                own.push("Path", value, line);
            }
            "state" if subject == Subject::Target => of_target.push("State", value, line),
            "whatif" | "confirm" | "asjob" | "cimsession" | "throttlelimit" | "erroraction" => {}
            _ => own.push(parameter, value, line),
        }
    }
    if !own.has("path") {
        return Err(Damage::new(line, format!("{name} has no -Path")));
    }
    let place = context.place(line);
    let damaged = |message: String| Damage::new(line, format!("{name}: {message}"));
    let mut unknown = Vec::new();
    if subject != Subject::Target {
        unknown = context.objects.apply(Form::Script, subject, &own, place).map_err(damaged)?;
    }
    if (subject == Subject::Target || is_with_target) && has_target {
        let more = context.objects.apply(Form::Script, Subject::Target, &of_target, place);
        unknown.extend(more.map_err(damaged)?);
    }
    for text in unknown {
        context.note(line, &text);
    }
    Ok(true)
}
