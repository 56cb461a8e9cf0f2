//! A printed line of PowerShell as words: quotes are taken off, blocks in braces and parentheses stay as they are.

/// The commands of a pipeline, each as words.
pub fn pipeline(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = commands.len() - 1;
        match c {
            '|' => commands.push(Vec::new()),
            _ if c.is_whitespace() => {}
            _ => {
                let mut word = String::new();
                let mut next = Some(c);
                while let Some(c) = next {
                    match c {
                        '\'' | '"' => quoted(c, &mut chars, &mut word),
                        '{' | '(' => block(c, &mut chars, &mut word),
                        _ => word.push(c),
                    }
                    next = chars.next_if(|c| !c.is_whitespace() && *c != '|');
                }
                commands[last].push(word);
            }
        }
    }
    commands
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn is_single(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}

/// The text of a string; a doubled quote is one.
fn quoted(quote: char, chars: &mut Chars<'_>, word: &mut String) {
    let ends = |c: char| if quote == '"' { c == '"' } else { is_single(c) };
    while let Some(c) = chars.next() {
        if ends(c) && chars.next_if(|next| ends(*next)).is_none() {
            return;
        }
        word.push(c);
    }
    panic!("a string without an end: {word}");
}

/// A block with its quotes, to its end.
fn block(open: char, chars: &mut Chars<'_>, word: &mut String) {
    let close = if open == '{' { '}' } else { ')' };
    word.push(open);
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let mut text = String::new();
                quoted(c, chars, &mut text);
                word.push_str(&format!("'{}'", text.replace('\'', "''")));
            }
            '{' | '(' => block(c, chars, word),
            _ => word.push(c),
        }
        if c == close {
            return;
        }
    }
    panic!("a block without an end: {word}");
}

/// The value of a parameter.
pub fn parameter<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1).map(String::as_str)
}

/// Likewise, where it must be there.
pub fn must<'a>(words: &'a [String], name: &str) -> &'a str {
    parameter(words, name).unwrap_or_else(|| panic!("no {name} in {words:?}"))
}

#[test]
fn lines_are_words() {
    let words = pipeline(r#"A -Path '\\a\it''s' "b c" { x | 'y' } | B (d).e"#);
    assert_eq!(words[0], ["A", "-Path", r"\\a\it's", "b c", "{ x | 'y' }"]);
    assert_eq!(words[1], ["B", "(d).e"]);
}
