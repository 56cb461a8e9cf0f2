//! The page: one HTML document with its styles and scripts in it, and the policy that allows these and nothing else.
//! Data comes later, by requests to the same server; so the page is the same for all inputs.

use std::fmt::Write;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// Styles of the report, of the charts' library, and of the page.
const STYLES: [&str; 3] = [
    smbscope_report::STYLE,
    include_str!("../assets/vendor/uPlot.min.css"),
    include_str!("../assets/page.css"),
];
/// Scripts, in the order in which they run.
const SCRIPTS: [&str; 7] = [
    smbscope_report::SCRIPT,
    include_str!("../assets/vendor/uPlot.iife.min.js"),
    include_str!("../assets/state.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/pivot.js"),
    include_str!("../assets/time.js"),
    include_str!("../assets/page.js"),
];
const BODY: &str = include_str!("../assets/page.html");

/// The page, and its Content-Security-Policy.
pub struct Page {
    pub html: String,
    pub policy: String,
}

/// The only page.
pub static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let mut html = String::with_capacity(256 * 1024);
    html.push_str(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>smbscope</title>\n",
    );
    for style in STYLES {
        let _ = writeln!(html, "<style>{style}</style>");
    }
    html.push_str("</head>\n");
    html.push_str(BODY);
    for script in SCRIPTS {
        let _ = writeln!(html, "<script>{script}</script>");
    }
    html.push_str("</body>\n</html>\n");
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src 'none'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hashes(&SCRIPTS),
        hashes(&STYLES)
    );
    Page { html, policy }
});

fn hashes(sources: &[&str]) -> String {
    let hash = |source: &&str| format!("'sha256-{}'", base64(&Sha256::digest(source.as_bytes())));
    sources.iter().map(hash).collect::<Vec<_>>().join(" ")
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63] as char;
            text.push(if place > group.len() { '=' } else { digit });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        assert!(PAGE.html.len() < 300_000, "{}", PAGE.html.len());
        for source in SCRIPTS.iter().chain(&STYLES).chain([&BODY]) {
            // A script that contains its own end tag would end there.
            assert!(!source.contains("</script") && !source.contains("</style"));
        }
        let own: String = SCRIPTS[2..].concat() + STYLES[2] + BODY;
        for word in ["http://", "https://", "innerHTML", "eval(", "new Function"] {
            assert!(!own.contains(word), "{word}");
        }
    }

    #[test]
    fn what_others_wrote_is_what_was_taken() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor");
        let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        assert_eq!(sums.lines().count(), 3);
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let digest = Sha256::digest(std::fs::read(folder.join(name)).unwrap());
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, sum, "{name}");
        }
    }
}
