//! The SPNEGO frame around an authentication token: mechanisms offered or chosen, state, token.
//!
//! RFC 4178 section 4.2 (NegTokenInit, NegTokenResp), MS-SPNG section 2.2.1 (NegTokenInit2), RFC
//! 2743 section 3.1 (the initial token's frame). What a token says is `ntlmssp` and `kerberos`.

use super::der::{self, Element, Elements, tag};
use std::fmt;

/// An authentication mechanism: the content bytes of its object identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mechanism<'a>(pub &'a [u8]);

#[allow(missing_docs)]
impl Mechanism<'static> {
    pub const SPNEGO: Self = Mechanism(&[0x2b, 6, 1, 5, 5, 2]);
    pub const NTLMSSP: Self = Mechanism(&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 0x0a]);
    pub const NEGOEX: Self = Mechanism(&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 0x1e]);
    pub const KERBEROS: Self = Mechanism(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2]);
    /// Kerberos with the identifier that Windows 2000 got wrong and everybody still sends.
    pub const MS_KERBEROS: Self = Mechanism(&[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 1, 2, 2]);
    pub const KERBEROS_USER_TO_USER: Self =
        Mechanism(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 3]);
    pub const IAKERB: Self = Mechanism(&[0x2b, 6, 1, 5, 2, 5]);
    /// A Windows Live and Azure AD mechanism under NEGOEX (PKU2U).
    pub const PKU2U: Self = Mechanism(&[0x2b, 5, 1, 5, 2, 7]);
}

impl Mechanism<'_> {
    /// The name in the words of Wireshark and MS-SPNG; `None` for one without a name here.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Mechanism::SPNEGO => "SPNEGO",
            Mechanism::NTLMSSP => "NTLMSSP",
            Mechanism::NEGOEX => "NEGOEX",
            Mechanism::KERBEROS | Mechanism::MS_KERBEROS => "Kerberos",
            Mechanism::KERBEROS_USER_TO_USER => "Kerberos user to user",
            Mechanism::IAKERB => "IAKERB",
            Mechanism::PKU2U => "PKU2U",
            _ => return None,
        })
    }

    /// Whether its token is one of Kerberos' messages.
    pub fn is_kerberos(self) -> bool {
        matches!(
            self,
            Mechanism::KERBEROS
                | Mechanism::MS_KERBEROS
                | Mechanism::KERBEROS_USER_TO_USER
                | Mechanism::IAKERB
        )
    }
}

impl fmt::Display for Mechanism<'_> {
    /// The name, or the object identifier in dotted form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.write_str(name);
        }
        let mut arc = 0u64;
        let mut is_first = true;
        for &byte in self.0 {
            arc = arc << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
            if is_first {
                let root = (arc / 40).min(2);
                write!(f, "{root}.{}", arc - root * 40)?;
                is_first = false;
            } else {
                write!(f, ".{arc}")?;
            }
            arc = 0;
        }
        Ok(())
    }
}

impl fmt::Debug for Mechanism<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mechanism({self})")
    }
}

/// How far the negotiation is, as the acceptor says (RFC 4178 section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(pub u8);

#[allow(missing_docs)]
impl State {
    pub const ACCEPT_COMPLETED: State = State(0);
    pub const ACCEPT_INCOMPLETE: State = State(1);
    pub const REJECT: State = State(2);
    pub const REQUEST_MIC: State = State(3);
}

/// The mechanisms that an initiator offers (or a server hints at), in its order of preference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered<'a>(&'a [u8]);

impl<'a> Iterator for Offered<'a> {
    type Item = Mechanism<'a>;

    fn next(&mut self) -> Option<Mechanism<'a>> {
        let mut elements = Elements(self.0);
        let element = elements.next()?;
        self.0 = elements.rest();
        mechanism(element)
    }
}

/// What the frame says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame<'a> {
    pub offered: Offered<'a>,
    pub chosen: Option<Mechanism<'a>>,
    pub state: Option<State>,
    /// The token of the mechanism as far as captured; empty without one.
    pub token: &'a [u8],
}

/// Reads either message of SPNEGO; `None` when `blob` is not SPNEGO.
pub(super) fn parse(blob: &[u8]) -> Option<Frame<'_>> {
    let outer = der::first(blob)?;
    if outer.tag != tag::GSS_INITIAL {
        return message(outer);
    }
    let mut inside = outer.children();
    if mechanism(inside.next()?)? != Mechanism::SPNEGO {
        return None;
    }
    Some(inside.next().and_then(message).unwrap_or_default())
}

/// The object identifier in an element.
pub(super) fn mechanism(element: Element<'_>) -> Option<Mechanism<'_>> {
    if element.tag != tag::OBJECT_IDENTIFIER {
        return None;
    }
    element.leaf().map(Mechanism)
}

fn message(choice: Element<'_>) -> Option<Frame<'_>> {
    let is_initial = match choice.tag {
        0xa0 => true,
        0xa1 => false,
        _ => return None,
    };
    let mut frame = Frame::default();
    let Some(sequence) = choice.child(tag::SEQUENCE) else {
        return Some(frame);
    };
    if is_initial {
        let list = sequence.field(0).filter(|list| list.tag == tag::SEQUENCE);
        frame.offered = Offered(list.map_or(&[], |list| list.content));
    } else {
        let state = sequence.field(0).and_then(|state| state.integer());
        frame.state = state.and_then(|state| u8::try_from(state).ok()).map(State);
        frame.chosen = sequence.field(1).and_then(mechanism);
    }
    if let Some(token) = sequence.field(2).filter(|t| t.tag == tag::OCTET_STRING) {
        frame.token = token.content;
    }
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dotted_identifiers() {
        assert_eq!(Mechanism::NTLMSSP.to_string(), "NTLMSSP");
        assert_eq!(
            Mechanism(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1]).to_string(),
            "1.2.840.113549.1.1"
        );
        assert_eq!(Mechanism(&[0x88, 0x37, 3]).to_string(), "2.999.3");
        assert_eq!(Mechanism(&[0x2b, 0xff, 0xff]).to_string(), "1.3");
        let long = [0xff; 40];
        let _ = Mechanism(&long).to_string();
    }

    #[test]
    fn reads_the_responder_state_and_choice() {
        let blob = [
            0xa1, 0x15, 0x30, 0x13, 0xa0, 3, 0x0a, 1, 1, 0xa1, 12, 0x06, 10, 0x2b, 6, 1, 4, 1,
            0x82, 0x37, 2, 2, 0x0a,
        ];
        let frame = parse(&blob).unwrap();
        assert_eq!(frame.state, Some(State::ACCEPT_INCOMPLETE));
        assert_eq!(frame.chosen, Some(Mechanism::NTLMSSP));
        assert!(frame.token.is_empty());
    }
}
