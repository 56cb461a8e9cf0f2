//! Which operation is explained: `8` (a frame), `op:120` or `#120` (an operation's number), each with
//! the name of its file in front if there are several: `share.pcap:8`.

use std::fmt;
use std::str::FromStr;

/// An operation, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    /// The capture file or recording; `None` if the number is unique.
    pub file: Option<String>,
    /// The number.
    pub number: Number,
}

/// What identifies the operation in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A frame of the capture, counted from 1.
    Frame(u64),
    /// The operation's number in the table of operations.
    Operation(u64),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Which, String> {
        let invalid = || {
            format!(
                "invalid operation `{text}`: expected a frame number, op:NUMBER or FILE:FRAME, for example 8, op:120 \
                 or share.pcap:8"
            )
        };
        let (front, digits, is_operation) = match text.rsplit_once('#') {
            Some((front, digits)) => (front.strip_suffix(':').unwrap_or(front), digits, true),
            None => match text.rsplit_once(':') {
                None => ("", text, false),
                Some(("op", digits)) => ("", digits, true),
                Some((front, digits)) => match front.strip_suffix(":op") {
                    Some(file) => (file, digits, true),
                    None => (front, digits, false),
                },
            },
        };
        // `parse` accepts a sign.
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(invalid());
        }
        let number: u64 = digits.parse().map_err(|_| invalid())?;
        let number = match is_operation {
            true => Number::Operation(number),
            false if number == 0 => return Err(invalid()),
            false => Number::Frame(number),
        };
        let file = (!front.is_empty()).then(|| front.to_owned());
        if file.is_none() && text.starts_with(':') {
            return Err(invalid());
        }
        Ok(Which { file, number })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        match self.number {
            Number::Frame(frame) => write!(f, "{frame}"),
            Number::Operation(number) => write!(f, "op:{number}"),
        }
    }
}

impl Which {
    /// Whether a row of this capture file or recording may be meant: the names may have folders in
    /// front.
    pub(super) fn is_in(&self, names: [Option<&str>; 2]) -> bool {
        let Some(file) = &self.file else { return true };
        names.into_iter().flatten().any(|name| name == file || base(name) == base(file))
    }
}

/// The last component of a path.
fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations_are_parsed_and_printed() {
        let which = |file: Option<&str>, number| Which { file: file.map(str::to_owned), number };
        for (text, parsed, printed) in [
            ("8", which(None, Number::Frame(8)), "8"),
            ("op:120", which(None, Number::Operation(120)), "op:120"),
            ("#120", which(None, Number::Operation(120)), "op:120"),
            ("a/b.pcap:8", which(Some("a/b.pcap"), Number::Frame(8)), "a/b.pcap:8"),
            (r"C:\b.pcap:8", which(Some(r"C:\b.pcap"), Number::Frame(8)), r"C:\b.pcap:8"),
            ("b.pcap:op:7", which(Some("b.pcap"), Number::Operation(7)), "b.pcap:op:7"),
            ("b.pcap:#0", which(Some("b.pcap"), Number::Operation(0)), "b.pcap:op:0"),
        ] {
            assert_eq!(text.parse::<Which>().unwrap(), parsed, "{text}");
            assert_eq!(parsed.to_string(), printed);
        }
        for wrong in ["", "0", "-8", "+8", "op:", "b.pcap", ":8", "b.pcap:x", "8:", "#", "9e9"] {
            assert!(wrong.parse::<Which>().unwrap_err().contains("expected"), "{wrong}");
        }
    }

    #[test]
    fn files_match_with_and_without_folders() {
        let which: Which = "x/b.pcap:8".parse().unwrap();
        assert!(which.is_in([Some("b.pcap"), None]) && which.is_in([None, Some("y/b.pcap")]));
        assert!(!which.is_in([Some("a.pcap"), Some("ab.pcap")]));
        assert!("8".parse::<Which>().unwrap().is_in([Some("a.pcap"), None]));
    }
}
