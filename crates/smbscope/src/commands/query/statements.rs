//! Splits text into SQL statements at semicolons outside of quotation marks and comments.

/// The statements of a text; the semicolon of the last one is optional.
pub fn all(text: &str) -> Vec<String> {
    let (mut statements, rest) = complete(text);
    if !is_blank(rest) {
        statements.push(rest.trim().to_owned());
    }
    statements
}

/// The complete statements, and the text after the last semicolon.
pub fn complete(text: &str) -> (Vec<String>, &str) {
    let mut statements = Vec::new();
    let mut begin = 0;
    for (place, token) in tokens(text) {
        if token == Token::Semicolon {
            let statement = text.get(begin..place).unwrap_or_default();
            if !is_blank(statement) {
                statements.push(statement.trim().to_owned());
            }
            begin = place + 1;
        }
    }
    (statements, text.get(begin..).unwrap_or_default())
}

/// Whether the text consists of white space and comments.
pub fn is_blank(text: &str) -> bool {
    tokens(text).all(|(_, token)| token == Token::Space)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// White space or a comment.
    Space,
    Semicolon,
    /// A character, or a string in quotation marks.
    Other,
}

/// The start of each token. A doubled quotation mark counts as two strings, which is harmless here.
fn tokens(text: &str) -> impl Iterator<Item = (usize, Token)> {
    let mut place = 0;
    std::iter::from_fn(move || {
        let rest = text.get(place..)?;
        let first = rest.chars().next()?;
        let until = |end: &str, skip: usize| {
            let tail = rest.get(skip..).unwrap_or_default();
            tail.find(end).map_or(rest.len(), |found| skip + found + end.len())
        };
        let (length, token) = match first {
            _ if rest.starts_with("--") => (until("\n", 2), Token::Space),
            _ if rest.starts_with("/*") => (until("*/", 2), Token::Space),
            '\'' => (until("'", 1), Token::Other),
            '"' => (until("\"", 1), Token::Other),
            ';' => (1, Token::Semicolon),
            c if c.is_whitespace() => (c.len_utf8(), Token::Space),
            c => (c.len_utf8(), Token::Other),
        };
        let begin = place;
        place += length;
        Some((begin, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_texts_and_comments_do_not_count() {
        let text = "select ';', 'it''s;' -- one; two\n; /* ; */ select \"a;b\";; -- end";
        let found = all(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("select ';'") && found[1].ends_with("\"a;b\""));
    }

    #[test]
    fn a_statement_goes_on_until_its_semicolon() {
        assert_eq!(complete("select 1"), (vec![], "select 1"));
        assert_eq!(complete("select 1;\nselect"), (vec!["select 1".to_owned()], "\nselect"));
        assert_eq!(complete("select 'a;\nb").0.len(), 0);
        assert!(is_blank("  -- nothing\n/* here"));
        assert!(!is_blank("'"));
        assert_eq!(all("é;ü").len(), 2);
    }
}
