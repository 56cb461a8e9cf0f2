//! Words of TSDL, the language of CTF's metadata (CTF 1.8.3, section 7 and appendix C).

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Name(&'a str),
    Number(i128),
    Text(&'a str),
    /// One of `:=`, `...`, or a single character.
    Sign(&'a str),
}

/// Reads words, one after the other.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    rest: &'a str,
    pub line: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text, line: 1 }
    }

    /// The next word, which stays the next one.
    pub fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        taken
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !holds(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    /// Blanks and comments.
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("/*") {
                let length = self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
                self.take(length);
            } else if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else {
                return;
            }
        }
    }

    /// A text without its quotes; what is escaped stays so.
    fn text(&mut self) -> &'a str {
        self.take(1);
        let mut is_escaped = false;
        let end = self.rest.find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let text = self.take(end.unwrap_or(self.rest.len()));
        self.take(1);
        text
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip();
        let first = self.rest.chars().next()?;
        Some(match first {
            '"' => Token::Text(self.text()),
            c if c.is_ascii_digit() => {
                let digits = self.take_while(|c| c.is_ascii_alphanumeric());
                number(digits).map_or(Token::Sign("?"), Token::Number)
            }
            c if c.is_alphanumeric() || c == '_' => {
                Token::Name(self.take_while(|c| c.is_alphanumeric() || c == '_'))
            }
            _ if self.rest.starts_with("...") => Token::Sign(self.take(3)),
            _ if self.rest.starts_with(":=") => Token::Sign(self.take(2)),
            c => Token::Sign(self.take(c.len_utf8())),
        })
    }
}

/// Decimal, hexadecimal or octal, perhaps with a suffix of C (`ULL`).
fn number(digits: &str) -> Option<i128> {
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return i128::from_str_radix(digits, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => i128::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated() {
        let text = "typealias /* a\n */ integer { size = 0x1F; } := u_8; // x\n[ 010 ] \"a\\\"b\" 0 ... 30";
        let tokens: Vec<_> = Lexer::new(text).collect();
        use Token::{Name, Number, Sign, Text};
        assert_eq!(
            tokens,
            [
                Name("typealias"),
                Name("integer"),
                Sign("{"),
                Name("size"),
                Sign("="),
                Number(31),
                Sign(";"),
                Sign("}"),
                Sign(":="),
                Name("u_8"),
                Sign(";"),
                Sign("["),
                Number(8),
                Sign("]"),
                Text("a\\\"b"),
                Number(0),
                Sign("..."),
                Number(30),
            ]
        );
        let mut lexer = Lexer::new("a\n\"b");
        assert_eq!(
            (lexer.peek(), lexer.next(), lexer.next()),
            (Some(Name("a")), Some(Name("a")), Some(Text("b")))
        );
        assert_eq!((lexer.line, lexer.next()), (2, None));
        assert_eq!(Lexer::new("/* open").next(), None);
        assert_eq!(Lexer::new("9z").next(), Some(Sign("?")));
    }
}
