//! SMB2 messages built by hand (MS-SMB2 section 2.2), as short as possible.

pub const SESSION: u64 = 0x1000_0000_0005;
pub const TREE: u32 = 3;

pub const NEGOTIATE: u16 = 0;
pub const SESSION_SETUP: u16 = 1;
pub const LOGOFF: u16 = 2;
pub const TREE_CONNECT: u16 = 3;
pub const TREE_DISCONNECT: u16 = 4;
pub const CREATE: u16 = 5;
pub const CLOSE: u16 = 6;
pub const READ: u16 = 8;
pub const WRITE: u16 = 9;
pub const LOCK: u16 = 10;
pub const CANCEL: u16 = 12;
pub const ECHO: u16 = 13;
pub const CHANGE_NOTIFY: u16 = 15;
pub const QUERY_INFO: u16 = 16;
pub const BREAK: u16 = 18;

pub const SUCCESS: u32 = 0;
pub const PENDING: u32 = 0x103;
pub const CANCELLED: u32 = 0xc000_0120;
pub const NOT_FOUND: u32 = 0xc000_0034;
pub const MORE_PROCESSING: u32 = 0xc000_0016;

const REPLY: u32 = 1;
const ASYNC: u32 = 2;
const RELATED: u32 = 4;

/// One message, or one member of a compound.
#[derive(Clone)]
pub struct Pdu {
    bytes: Vec<u8>,
}

impl Pdu {
    fn new(command: u16, id: u64, body: &[u8]) -> Pdu {
        let mut bytes = b"\xfeSMB".to_vec();
        bytes.extend_from_slice(&64_u16.to_le_bytes());
        bytes.resize(64, 0);
        bytes.extend_from_slice(body);
        let no_session = matches!(command, NEGOTIATE);
        let no_tree = matches!(command, NEGOTIATE | SESSION_SETUP | LOGOFF | TREE_CONNECT | ECHO);
        Pdu { bytes }
            .put(6, &1_u16.to_le_bytes())
            .put(12, &command.to_le_bytes())
            .put(14, &1_u16.to_le_bytes())
            .put(24, &id.to_le_bytes())
            .put(36, &(if no_tree { 0 } else { TREE }).to_le_bytes())
            .put(40, &(if no_session { 0 } else { SESSION }).to_le_bytes())
    }

    pub fn put(mut self, at: usize, value: &[u8]) -> Pdu {
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self
    }

    fn flag(self, flag: u32) -> Pdu {
        let flags = u32::from_le_bytes(self.bytes[16..20].try_into().unwrap()) | flag;
        self.put(16, &flags.to_le_bytes())
    }

    /// Makes it the server's answer.
    pub fn reply(self, status: u32) -> Pdu {
        self.flag(REPLY).put(8, &status.to_le_bytes())
    }

    pub fn related(self) -> Pdu {
        self.flag(RELATED)
    }

    pub fn asynchronous(self, id: u64) -> Pdu {
        self.flag(ASYNC).put(32, &id.to_le_bytes())
    }

    pub fn session(self, id: u64) -> Pdu {
        self.put(40, &id.to_le_bytes())
    }

    pub fn tree(self, id: u32) -> Pdu {
        self.put(36, &id.to_le_bytes())
    }

    /// With another volatile part of the FileId at offset `at`.
    pub fn volatile(self, at: usize, id: u64) -> Pdu {
        self.put(at + 8, &id.to_le_bytes())
    }

    /// A session setup that names the session it replaces.
    pub fn replaces(self, session: u64) -> Pdu {
        self.put(64 + 16, &session.to_le_bytes())
    }

    pub fn charge(self, credits: u16) -> Pdu {
        self.put(6, &credits.to_le_bytes())
    }

    pub fn credits(self, credits: u16) -> Pdu {
        self.put(14, &credits.to_le_bytes())
    }

    /// With its NetBIOS header.
    pub fn framed(self) -> Vec<u8> {
        compound(vec![self])
    }
}

/// Several as one message, each except the last padded to eight bytes.
pub fn compound(members: Vec<Pdu>) -> Vec<u8> {
    let mut out = vec![0; 4];
    let last = members.len() - 1;
    for (index, member) in members.into_iter().enumerate() {
        let mut member = member;
        if index < last {
            let length = member.bytes.len().next_multiple_of(8);
            member.bytes.resize(length, 0);
            member = member.put(20, &(length as u32).to_le_bytes());
        }
        out.extend_from_slice(&member.bytes);
    }
    let length = (out.len() - 4) as u32;
    out[1..4].copy_from_slice(&length.to_be_bytes()[1..]);
    out
}

/// Fields at offsets of a body of `length` zeros.
fn body(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = vec![0; length];
    out[..2].copy_from_slice(&(length as u16 | u16::from(length == 48)).to_le_bytes());
    for (at, value) in fields {
        out[*at..at + value.len()].copy_from_slice(value);
    }
    out
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn file(number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    id[8..].copy_from_slice(&(number << 8).to_le_bytes());
    id
}

/// The file of the previous member.
pub const SAME: u64 = u64::MAX;

fn file_of(number: u64) -> [u8; 16] {
    if number == SAME { [0xff; 16] } else { file(number) }
}

pub fn negotiate(id: u64) -> Pdu {
    let fields: [(usize, &[u8]); 2] = [(2, &[1, 0]), (36, &[2, 3])];
    Pdu::new(NEGOTIATE, id, &body(38, &fields))
}

pub fn negotiated(id: u64) -> Pdu {
    let size = 65_536_u32.to_le_bytes();
    let fields: [(usize, &[u8]); 5] =
        [(2, &[1, 0]), (4, &[2, 3]), (28, &size), (32, &size), (36, &size)];
    Pdu::new(NEGOTIATE, id, &body(64, &fields)).reply(SUCCESS).credits(32)
}

/// With an NTLMSSP message: the first, or the one that names the user.
pub fn session_setup(id: u64, user: Option<&str>) -> Pdu {
    let mut blob = b"NTLMSSP\0".to_vec();
    match user {
        None => blob.extend_from_slice(&[1, 0, 0, 0, 1, 2, 8, 0xa0]),
        Some(user) => {
            let name = utf16(user);
            blob.extend_from_slice(&[3, 0, 0, 0]);
            blob.resize(64, 0);
            let length = (name.len() as u16).to_le_bytes();
            blob[36..38].copy_from_slice(&length);
            blob[38..40].copy_from_slice(&length);
            blob[40..44].copy_from_slice(&64_u32.to_le_bytes());
            blob[60..64].copy_from_slice(&[1, 2, 8, 0xa0]);
            blob.extend_from_slice(&name);
        }
    }
    let length = (blob.len() as u16).to_le_bytes();
    let mut content = body(24, &[(12, &[88, 0]), (14, &length)]);
    content.extend_from_slice(&blob);
    let pdu = Pdu::new(SESSION_SETUP, id, &content);
    if user.is_none() { pdu.session(0) } else { pdu }
}

pub fn session_ready(id: u64, status: u32) -> Pdu {
    Pdu::new(SESSION_SETUP, id, &body(8, &[(0, &[9, 0]), (4, &[72, 0])])).reply(status).credits(16)
}

pub fn tree_connect(id: u64, share: &str) -> Pdu {
    let path = utf16(share);
    let mut content = body(8, &[(0, &[9, 0]), (4, &[72, 0])]);
    content[6..8].copy_from_slice(&(path.len() as u16).to_le_bytes());
    content.extend_from_slice(&path);
    Pdu::new(TREE_CONNECT, id, &content)
}

pub fn tree_connected(id: u64) -> Pdu {
    let pdu = Pdu::new(TREE_CONNECT, id, &body(16, &[(2, &[1])])).reply(SUCCESS);
    pdu.put(36, &TREE.to_le_bytes())
}

pub fn create(id: u64, name: &str) -> Pdu {
    let path = utf16(name);
    let length = (path.len() as u16).to_le_bytes();
    let mut content = body(56, &[(0, &[57, 0]), (36, &[1]), (44, &[120, 0]), (46, &length)]);
    content.extend_from_slice(&path);
    Pdu::new(CREATE, id, &content)
}

/// Opens the file of a snapshot: with one create context, TWrp.
pub fn create_of_snapshot(id: u64, name: &str, time: u64) -> Pdu {
    let mut pdu = create(id, name);
    pdu.bytes.resize(pdu.bytes.len().next_multiple_of(8), 0);
    let place = (pdu.bytes.len() as u32).to_le_bytes();
    pdu.bytes.extend([0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 24, 0, 8, 0, 0, 0]);
    pdu.bytes.extend(b"TWrp\0\0\0\0");
    pdu.bytes.extend(time.to_le_bytes());
    pdu.put(64 + 48, &place).put(64 + 52, &32_u32.to_le_bytes())
}

pub fn created(id: u64, number: u64) -> Pdu {
    let file = file(number);
    Pdu::new(CREATE, id, &body(88, &[(0, &[89, 0]), (64, &file)])).reply(SUCCESS)
}

/// A durable open.
pub fn created_durably(id: u64, number: u64) -> Pdu {
    // One create context, 24 bytes from its Next on: DHnQ with 8 zero bytes.
    let mut context = vec![0; 32];
    context[4..8].copy_from_slice(&[16, 0, 4, 0]);
    context[10..16].copy_from_slice(&[24, 0, 8, 0, 0, 0]);
    context[16..20].copy_from_slice(b"DHnQ");
    let file = file(number);
    let place: &[u8] = &[152, 0, 0, 0, 32, 0, 0, 0];
    let mut content = body(88, &[(0, &[89, 0]), (64, &file), (80, place)]);
    content.extend_from_slice(&context);
    Pdu::new(CREATE, id, &content).reply(SUCCESS)
}

pub fn close(id: u64, number: u64) -> Pdu {
    Pdu::new(CLOSE, id, &body(24, &[(8, &file_of(number))]))
}

pub fn closed(id: u64) -> Pdu {
    Pdu::new(CLOSE, id, &body(60, &[])).reply(SUCCESS)
}

pub fn read(id: u64, number: u64, offset: u64, length: u32) -> Pdu {
    let (offset, length) = (offset.to_le_bytes(), length.to_le_bytes());
    let fields: [(usize, &[u8]); 3] = [(4, &length), (8, &offset), (16, &file_of(number))];
    let mut content = body(48, &fields);
    content.push(0);
    Pdu::new(READ, id, &content)
}

pub fn data(id: u64, bytes: &[u8]) -> Pdu {
    let length = (bytes.len() as u32).to_le_bytes();
    let mut content = body(16, &[(0, &[17, 0]), (2, &[80]), (4, &length)]);
    content.extend_from_slice(bytes);
    Pdu::new(READ, id, &content).reply(SUCCESS)
}

pub fn write(id: u64, number: u64, offset: u64, bytes: &[u8]) -> Pdu {
    let (offset, length) = (offset.to_le_bytes(), (bytes.len() as u32).to_le_bytes());
    let file = file_of(number);
    let fields: [(usize, &[u8]); 4] = [(2, &[112, 0]), (4, &length), (8, &offset), (16, &file)];
    let mut content = body(48, &fields);
    content.extend_from_slice(bytes);
    Pdu::new(WRITE, id, &content)
}

pub fn written(id: u64, length: u32) -> Pdu {
    let length = length.to_le_bytes();
    Pdu::new(WRITE, id, &body(16, &[(0, &[17, 0]), (4, &length)])).reply(SUCCESS)
}

pub fn query_info(id: u64, number: u64) -> Pdu {
    let fields: [(usize, &[u8]); 4] =
        [(0, &[41, 0]), (2, &[1, 18]), (4, &[0, 1]), (24, &file_of(number))];
    Pdu::new(QUERY_INFO, id, &body(40, &fields))
}

pub fn information(id: u64, bytes: &[u8]) -> Pdu {
    let length = (bytes.len() as u32).to_le_bytes();
    let mut content = body(8, &[(0, &[9, 0]), (2, &[72, 0]), (4, &length)]);
    content.extend_from_slice(bytes);
    Pdu::new(QUERY_INFO, id, &content).reply(SUCCESS)
}

pub fn notify(id: u64, number: u64) -> Pdu {
    Pdu::new(CHANGE_NOTIFY, id, &body(32, &[(8, &file_of(number))]))
}

pub fn lock(id: u64, number: u64) -> Pdu {
    let fields: [(usize, &[u8]); 4] = [(2, &[1, 0]), (8, &file_of(number)), (32, &[9]), (40, &[2])];
    Pdu::new(LOCK, id, &body(48, &fields))
}

/// A body of four bytes: Echo, Logoff, TreeDisconnect, Cancel, and some replies.
pub fn bare(command: u16, id: u64) -> Pdu {
    Pdu::new(command, id, &body(4, &[]))
}

/// An error response.
pub fn error(command: u16, id: u64, status: u32) -> Pdu {
    Pdu::new(command, id, &body(9, &[])).reply(status)
}

pub fn lease_break() -> Pdu {
    let fields: [(usize, &[u8]); 3] = [(8, &[7; 16]), (24, &[7]), (28, &[1])];
    Pdu::new(BREAK, u64::MAX, &body(44, &fields)).reply(SUCCESS)
}

pub fn lease_acknowledgement(id: u64) -> Pdu {
    Pdu::new(BREAK, id, &body(36, &[(8, &[7; 16]), (24, &[1])]))
}
