//! Key distribution centers: where they are, and one exchange with them.
//!
//! Owns addresses and the transport over TCP (RFC 4120 section 7.2.2: four bytes of length before
//! each message). The messages are `sspi`'s; here they are bytes.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The port of a KDC (RFC 4120 section 7.2.3).
const PORT: u16 = 88;
/// The longest reply. Windows' MaxTokenSize, which bounds tickets, is at most 65,535 bytes.
const REPLY_BYTES_MAX: u32 = 1 << 20;
/// Time for one exchange with one KDC; then the next one is tried.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a KDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KdcAddress {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Why an address is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid KDC `{0}`: expected HOST[:PORT], for example kdc.example:88; write an IPv6 address in brackets"
)]
pub struct KdcAddressError(String);

impl KdcAddress {
    /// Reads `HOST[:PORT]`, optionally with `tcp/` in front as in krb5.conf.
    pub fn parse(text: &str) -> Result<KdcAddress, KdcAddressError> {
        let error = || KdcAddressError(text.to_owned());
        let place = text.trim();
        let place = place.strip_prefix("tcp/").unwrap_or(place);
        let (host, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed.split_once(']').ok_or_else(error)?;
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(error()),
                }
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let named = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || !host.chars().all(named) {
            return Err(error());
        }
        let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| error()))?;
        Ok(KdcAddress { host: host.to_owned(), port })
    }

    /// Sends a message with its length in front, and returns the reply in the same form.
    pub async fn ask(&self, message: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
        let exchange = async {
            let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.set_nodelay(true)?;
            stream.write_all(message).await?;
            let length = stream.read_u32().await?;
            if length > REPLY_BYTES_MAX {
                let error = format!("it announces a reply of {length} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            let mut reply = length.to_be_bytes().to_vec();
            // Allocated for what arrived, not for the announced length.
            (&mut stream).take(u64::from(length)).read_to_end(&mut reply).await?;
            if reply.len() != 4 + length as usize {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(reply)
        };
        match tokio::time::timeout(patience, exchange).await {
            Ok(done) => done,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {patience:?}"),
            )),
        }
    }
}

impl fmt::Display for KdcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn addresses_are_read() {
        for (text, shown) in [
            ("kdc.lab.test", "kdc.lab.test:88"),
            ("10.0.0.1:8888", "10.0.0.1:8888"),
            ("[::1]:750", "[::1]:750"),
            ("tcp/[fe80::1]", "[fe80::1]:88"),
        ] {
            assert_eq!(KdcAddress::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            ":88",
            "a:b",
            "::1",
            "[::1",
            "[::1]x",
            "http://proxy/KdcProxy",
            "a b",
            "[fe80::1%eth0]",
        ] {
            let error = KdcAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains("HOST[:PORT]"), "{text}");
        }
    }

    /// The result of an exchange with a KDC that sends `reply` and then ends the connection or waits.
    async fn answer(reply: &[u8], waits: bool) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = KdcAddress::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 6];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(&request, b"\0\0\0\x02hi");
            stream.write_all(reply).await.unwrap();
            if waits {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        };
        let asking = address.ask(b"\0\0\0\x02hi", Duration::from_millis(300));
        tokio::select! {
            biased;
            reply = asking => reply,
            () = async { serving.await; std::future::pending().await } => unreachable!(),
        }
    }

    #[test]
    fn a_reply_is_whole_bounded_and_in_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let reply = answer(b"\0\0\0\x05helloXX", false).await.unwrap();
            assert_eq!(reply, b"\0\0\0\x05hello");
            let kind = |reply: io::Result<Vec<u8>>| reply.unwrap_err().kind();
            assert_eq!(kind(answer(b"\0\0\0\x05hel", false).await), io::ErrorKind::UnexpectedEof);
            assert_eq!(kind(answer(b"\xff\0\0\0", true).await), io::ErrorKind::InvalidData);
            assert_eq!(kind(answer(b"\0\0", true).await), io::ErrorKind::TimedOut);
        });
    }
}
