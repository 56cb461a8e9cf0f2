//! The messages before a connection is trusted: of fixed length, so that a stranger cannot make the
//! listener allocate.
//!
//! The listener sends a [`Challenge`] with its nonce; the sender answers with a [`Response`]: its own
//! nonce and a proof of the token; the listener answers with a [`Verdict`] and its own proof. The first
//! connection of a test proves the token and makes the test's key; all others prove that key.

use super::token::{Token, is_proof, proof};

const MAGIC: &[u8; 8] = b"SMBSNET\x01";
pub(super) const CHALLENGE_BYTES: usize = 40;
pub(super) const RESPONSE_BYTES: usize = 77;
pub(super) const VERDICT_BYTES: usize = 33;
const NONCE_BYTES: usize = 32;

pub(super) type Nonce = [u8; NONCE_BYTES];
/// The key of a test.
pub(super) type Key = [u8; 32];

/// Which side of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// `net send`.
    Sender,
    /// `net listen`.
    Listener,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The messages of the test.
    Control,
    /// A stream of bytes, with its number.
    Stream(u32),
    /// Small messages back and forth.
    RoundTrips,
}

impl Purpose {
    fn code(self) -> [u8; 5] {
        let (kind, number) = match self {
            Purpose::Control => (0, 0),
            Purpose::Stream(number) => (1, number),
            Purpose::RoundTrips => (2, 0),
        };
        let [a, b, c, d] = u32::to_be_bytes(number);
        [kind, a, b, c, d]
    }

    fn parse(kind: u8, number: u32) -> Option<Purpose> {
        Some(match kind {
            0 => Purpose::Control,
            1 => Purpose::Stream(number),
            2 => Purpose::RoundTrips,
            _ => return None,
        })
    }
}

/// The listener's first message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge(pub(super) Nonce);

impl Challenge {
    pub(super) fn bytes(&self) -> [u8; CHALLENGE_BYTES] {
        let mut bytes = [0; CHALLENGE_BYTES];
        let (magic, nonce) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        nonce.copy_from_slice(&self.0);
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Challenge> {
        let (magic, nonce) = bytes.split_first_chunk::<8>()?;
        (magic == MAGIC).then_some(())?;
        Some(Challenge(*nonce.first_chunk()?))
    }
}

/// The sender's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) purpose: Purpose,
    nonce: Nonce,
    proof: [u8; 32],
}

impl Response {
    /// Answers a challenge with what the connection is for.
    pub(super) fn new(
        key: &[u8],
        challenge: &Challenge,
        purpose: Purpose,
        nonce: Nonce,
    ) -> Response {
        let proof = proof(key, &[b"sender", &challenge.0, &nonce, &purpose.code()]);
        Response { purpose, nonce, proof }
    }

    /// Whether it was made with this key for this challenge.
    pub(super) fn is_of(&self, key: &[u8], challenge: &Challenge) -> bool {
        let parts: [&[u8]; 4] = [b"sender", &challenge.0, &self.nonce, &self.purpose.code()];
        is_proof(key, &parts, &self.proof)
    }

    pub(super) fn bytes(&self) -> [u8; RESPONSE_BYTES] {
        let mut bytes = [0; RESPONSE_BYTES];
        let parts: [&[u8]; 4] = [MAGIC, &self.purpose.code(), &self.nonce, &self.proof];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Response> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let ([kind, number @ ..], rest) = rest.split_first_chunk::<5>()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        (magic == MAGIC).then_some(())?;
        let purpose = Purpose::parse(*kind, u32::from_be_bytes(*number))?;
        Some(Response { purpose, nonce: *nonce, proof: *rest.first_chunk()? })
    }

    /// The key of the test that this connection begins.
    pub(super) fn test_key(&self, token: &Token, challenge: &Challenge) -> Key {
        proof(token.key(), &[b"test", &challenge.0, &self.nonce])
    }

    /// The listener's answer to it.
    pub(super) fn accept(&self, key: &[u8], challenge: &Challenge) -> [u8; VERDICT_BYTES] {
        let mut bytes = [0; VERDICT_BYTES];
        let (first, rest) = bytes.split_at_mut(1);
        first.copy_from_slice(&[Verdict::Accepted as u8]);
        rest.copy_from_slice(&proof(key, &[b"listener", &challenge.0, &self.nonce]));
        bytes
    }

    /// What the listener's answer says; `None` if it does not know the key.
    pub(super) fn verdict(
        &self,
        key: &[u8],
        challenge: &Challenge,
        bytes: &[u8],
    ) -> Option<Verdict> {
        let (first, claimed) = bytes.split_first()?;
        match first {
            0 => {
                let parts: [&[u8]; 3] = [b"listener", &challenge.0, &self.nonce];
                is_proof(key, &parts, claimed).then_some(Verdict::Accepted)
            }
            1 => Some(Verdict::Refused),
            2 => Some(Verdict::Busy),
            _ => None,
        }
    }
}

/// The listener's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verdict {
    /// The connection belongs to the test.
    Accepted = 0,
    /// The proof is wrong.
    Refused = 1,
    /// Another test is running.
    Busy = 2,
}

impl Verdict {
    /// A refusal as bytes.
    pub(super) fn refusal(self) -> [u8; VERDICT_BYTES] {
        let mut bytes = [0; VERDICT_BYTES];
        bytes[0] = self as u8;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_prove_the_token_and_get_the_same_key() {
        let token = Token::random().unwrap();
        let challenge = Challenge::parse(&Challenge([3; 32]).bytes()).unwrap();
        for purpose in [Purpose::Control, Purpose::Stream(7), Purpose::RoundTrips] {
            let sent = Response::new(token.key(), &challenge, purpose, [9; 32]);
            let response = Response::parse(&sent.bytes()).unwrap();
            assert_eq!(response, sent);
            assert!(response.is_of(token.key(), &challenge));
            assert!(!response.is_of(token.key(), &Challenge([4; 32])), "a replay");
            assert!(!response.is_of(Token::random().unwrap().key(), &challenge));
            let answer = response.accept(token.key(), &challenge);
            assert_eq!(sent.verdict(token.key(), &challenge, &answer), Some(Verdict::Accepted));
            // A listener that does not know the token cannot pretend that it does.
            let pretended = [0; VERDICT_BYTES];
            assert_eq!(sent.verdict(token.key(), &challenge, &pretended), None);
            assert_eq!(response.test_key(&token, &challenge), sent.test_key(&token, &challenge));
        }
    }

    #[test]
    fn what_the_connection_is_for_is_part_of_the_proof() {
        let challenge = Challenge([3; 32]);
        let sent = Response::new(b"key", &challenge, Purpose::Stream(1), [9; 32]);
        let mut bytes = sent.bytes();
        bytes[12] = 2;
        let changed = Response::parse(&bytes).unwrap();
        assert_eq!(changed.purpose, Purpose::Stream(2));
        assert!(!changed.is_of(b"key", &challenge));
        bytes[0] = b'X';
        assert_eq!(Response::parse(&bytes), None);
        assert_eq!(Response::parse(&bytes[..70]), None);
        bytes = sent.bytes();
        bytes[8] = 9;
        assert_eq!(Response::parse(&bytes), None);
    }

    #[test]
    fn refusals_are_understood() {
        let (challenge, key) = (Challenge([1; 32]), b"key");
        let sent = Response::new(key, &challenge, Purpose::Control, [2; 32]);
        for verdict in [Verdict::Refused, Verdict::Busy] {
            assert_eq!(sent.verdict(key, &challenge, &verdict.refusal()), Some(verdict));
        }
        assert_eq!(sent.verdict(key, &challenge, &[9; VERDICT_BYTES]), None);
        assert_eq!(sent.verdict(key, &challenge, &[]), None);
    }
}
