//! The contexts of CREATE (MS-SMB2 sections 2.2.13.2 and 2.2.14.2; AAPL is Apple's).
//!
//! Owns the list and the typed content of what later stages use; every other context survives as
//! name and bytes. The same name means different content in request and response.

use super::FileId;
use super::lease::{LeaseFlags, LeaseState};
use super::view::{Field, flags};
use crate::read::{array_at, slice_at, u16_at, u32_at, u64_at};
use crate::status::Status;

/// Names of the contexts on the wire.
#[allow(missing_docs)]
pub mod names {
    pub const EXTENDED_ATTRIBUTES: &[u8] = b"ExtA";
    pub const SECURITY_DESCRIPTOR: &[u8] = b"SecD";
    pub const DURABLE_REQUEST: &[u8] = b"DHnQ";
    pub const DURABLE_RECONNECT: &[u8] = b"DHnC";
    pub const DURABLE_REQUEST_V2: &[u8] = b"DH2Q";
    pub const DURABLE_RECONNECT_V2: &[u8] = b"DH2C";
    pub const ALLOCATION_SIZE: &[u8] = b"AlSi";
    pub const QUERY_MAXIMAL_ACCESS: &[u8] = b"MxAc";
    pub const TIMEWARP_TOKEN: &[u8] = b"TWrp";
    pub const QUERY_ON_DISK_ID: &[u8] = b"QFid";
    pub const LEASE: &[u8] = b"RqLs";
    pub const APPLE: &[u8] = b"AAPL";
    pub const APP_INSTANCE_ID: &[u8] = &[
        0x45, 0xbc, 0xa6, 0x6a, 0xef, 0xa7, 0xf7, 0x4a, 0x90, 0x08, 0xfa, 0x46, 0x2e, 0x14, 0x4d,
        0x74,
    ];
    pub const APP_INSTANCE_VERSION: &[u8] = &[
        0xb9, 0x82, 0xd0, 0xb7, 0x3b, 0x56, 0x07, 0x4f, 0xa0, 0x7b, 0x52, 0x4a, 0x81, 0x16, 0xa0,
        0x10,
    ];
    pub const SVHDX_OPEN_DEVICE: &[u8] = &[
        0x9c, 0xcb, 0xcf, 0x9e, 0x04, 0xc1, 0xe6, 0x43, 0x98, 0x0e, 0x15, 0x8d, 0xa1, 0xf6, 0xec,
        0x83,
    ];
    pub const POSIX: &[u8] = &[
        0x93, 0xad, 0x25, 0x50, 0x9c, 0xb4, 0x11, 0xe7, 0xb4, 0x23, 0x83, 0xde, 0x96, 0x8b, 0xcd,
        0x7c,
    ];
}

/// One create context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateContext<'a> {
    /// Its name (see [`names`]).
    pub name: &'a [u8],
    /// Its bytes; empty where it has none.
    pub data: &'a [u8],
}

/// A lease asked for or granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Chosen by the client, one per file.
    pub key: [u8; 16],
    /// Read, handle, write caching.
    pub state: LeaseState,
    /// Break in progress, parent key set.
    pub flags: LeaseFlags,
    /// What only version 2 carries.
    pub v2: Option<LeaseV2>,
}

/// The part of a lease that SMB 3.x adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    /// The lease of the directory that the file is in; meaningful when the flag says so.
    pub parent_key: [u8; 16],
    /// Counts changes of the lease's state.
    pub epoch: u16,
}

impl Lease {
    /// The parent directory's lease key, when the client or server set it.
    pub fn parent_key(&self) -> Option<[u8; 16]> {
        self.v2
            .filter(|_| self.flags.contains(LeaseFlags::PARENT_LEASE_KEY_SET))
            .map(|v2| v2.parent_key)
    }
}

flags! {
    /// Flags of a version 2 durable handle.
    DurableFlags(u32) {
        PERSISTENT = 0x0000_0002,
    }
}

/// The decoded content of a request's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestContext<'a> {
    /// `RqLs`
    Lease(Lease),
    /// `DHnQ`
    Durable,
    /// `DHnC`: the open to take up again.
    DurableReconnect(FileId),
    /// `DH2Q`
    DurableV2 {
        /// Milliseconds to keep the open; 0 leaves it to the server.
        timeout_ms: u32,
        /// Persistent.
        flags: DurableFlags,
        /// Chosen by the client.
        create_guid: [u8; 16],
    },
    /// `DH2C`
    DurableV2Reconnect {
        /// The open to take up again.
        file_id: FileId,
        /// As in the request that made the open.
        create_guid: [u8; 16],
        /// Persistent.
        flags: DurableFlags,
    },
    /// `QFid`
    QueryOnDiskId,
    /// `MxAc`, with the time of the last query where there was one (100 ns since 1601).
    QueryMaximalAccess(Option<u64>),
    /// `AlSi`: bytes to reserve.
    AllocationSize(u64),
    /// `TWrp`: the snapshot to open, 100 ns since 1601.
    TimewarpToken(u64),
    /// `AAPL`: Apple's command (1 server query, 2 resolve id).
    Apple(u32),
    /// `ExtA`: FILE_FULL_EA_INFORMATION entries.
    ExtendedAttributes(&'a [u8]),
    /// `SecD`: a security descriptor.
    SecurityDescriptor(&'a [u8]),
    /// The application instance that owns the open.
    AppInstanceId([u8; 16]),
    /// Its version, the high half first.
    AppInstanceVersion(u64, u64),
    /// POSIX mode bits.
    Posix(u32),
    /// A name that is not known, or content that is too short for its name.
    Unknown,
}

/// The decoded content of a response's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContext {
    /// `RqLs`
    Lease(Lease),
    /// `DHnQ`: the open is durable.
    Durable,
    /// `DH2Q`: the open is durable, or persistent.
    DurableV2 {
        /// Milliseconds that the server keeps the open.
        timeout_ms: u32,
        /// Persistent.
        flags: DurableFlags,
    },
    /// `QFid`
    OnDiskId {
        /// The file's number on its volume.
        disk_file_id: u64,
        /// The volume.
        volume_id: u64,
    },
    /// `MxAc`
    MaximalAccess {
        /// Whether the query succeeded.
        status: Status,
        /// The rights that the user has.
        access: super::access::AccessMask,
    },
    /// `AAPL`: Apple's command that is answered.
    Apple(u32),
    /// A name that is not known, or content that is too short for its name.
    Unknown,
}

impl<'a> CreateContext<'a> {
    /// Decodes the content as a request's.
    pub fn request(self) -> RequestContext<'a> {
        self.known_request().unwrap_or(RequestContext::Unknown)
    }

    /// Decodes the content as a response's.
    pub fn response(self) -> ResponseContext {
        self.known_response().unwrap_or(ResponseContext::Unknown)
    }

    fn known_request(self) -> Option<RequestContext<'a>> {
        let data = self.data;
        Some(match self.name {
            names::LEASE => RequestContext::Lease(lease(data)?),
            names::DURABLE_REQUEST => RequestContext::Durable,
            names::DURABLE_RECONNECT => RequestContext::DurableReconnect(FileId::read(data, 0)?),
            names::DURABLE_REQUEST_V2 => RequestContext::DurableV2 {
                timeout_ms: u32_at(data, 0)?,
                flags: DurableFlags::read(data, 4)?,
                create_guid: *array_at(data, 16)?,
            },
            names::DURABLE_RECONNECT_V2 => RequestContext::DurableV2Reconnect {
                file_id: FileId::read(data, 0)?,
                create_guid: *array_at(data, 16)?,
                flags: DurableFlags::read(data, 32)?,
            },
            names::QUERY_ON_DISK_ID => RequestContext::QueryOnDiskId,
            names::QUERY_MAXIMAL_ACCESS => RequestContext::QueryMaximalAccess(u64_at(data, 0)),
            names::ALLOCATION_SIZE => RequestContext::AllocationSize(u64_at(data, 0)?),
            names::TIMEWARP_TOKEN => RequestContext::TimewarpToken(u64_at(data, 0)?),
            names::APPLE => RequestContext::Apple(u32_at(data, 0)?),
            names::EXTENDED_ATTRIBUTES => RequestContext::ExtendedAttributes(data),
            names::SECURITY_DESCRIPTOR => RequestContext::SecurityDescriptor(data),
            names::APP_INSTANCE_ID => RequestContext::AppInstanceId(*array_at(data, 4)?),
            names::APP_INSTANCE_VERSION => {
                RequestContext::AppInstanceVersion(u64_at(data, 8)?, u64_at(data, 16)?)
            }
            names::POSIX => RequestContext::Posix(u32_at(data, 0)?),
            _ => return None,
        })
    }

    fn known_response(self) -> Option<ResponseContext> {
        let data = self.data;
        Some(match self.name {
            names::LEASE => ResponseContext::Lease(lease(data)?),
            names::DURABLE_REQUEST => ResponseContext::Durable,
            names::DURABLE_REQUEST_V2 => ResponseContext::DurableV2 {
                timeout_ms: u32_at(data, 0)?,
                flags: DurableFlags::read(data, 4)?,
            },
            names::QUERY_ON_DISK_ID => ResponseContext::OnDiskId {
                disk_file_id: u64_at(data, 0)?,
                volume_id: u64_at(data, 8)?,
            },
            names::QUERY_MAXIMAL_ACCESS => ResponseContext::MaximalAccess {
                status: Status(u32_at(data, 0)?),
                access: Field::read(data, 4)?,
            },
            names::APPLE => ResponseContext::Apple(u32_at(data, 0)?),
            _ => return None,
        })
    }
}

/// A lease of either version; the version follows from the length (32 or 52 bytes).
fn lease(data: &[u8]) -> Option<Lease> {
    Some(Lease {
        key: *array_at(data, 0)?,
        state: LeaseState::read(data, 16)?,
        flags: LeaseFlags::read(data, 20)?,
        v2: array_at(data, 32)
            .zip(u16_at(data, 48))
            .map(|(key, epoch)| LeaseV2 { parent_key: *key, epoch }),
    })
}

/// The create contexts of a message, in their order. A context whose name or data is not
/// captured whole ends the list, as does one that claims to start inside the one before.
#[derive(Clone, Debug)]
pub struct CreateContexts<'a> {
    rest: &'a [u8],
}

/// Bytes before the name of a context.
const CONTEXT_HEADER_BYTES: usize = 16;

impl<'a> CreateContexts<'a> {
    /// The contexts in the bytes that the message gives to them.
    #[inline]
    pub(super) fn new(rest: &'a [u8]) -> Self {
        CreateContexts { rest }
    }
}

impl<'a> Iterator for CreateContexts<'a> {
    type Item = CreateContext<'a>;

    #[inline]
    fn next(&mut self) -> Option<CreateContext<'a>> {
        let here = std::mem::take(&mut self.rest);
        let next = u32_at(here, 0)? as usize;
        let name_offset = usize::from(u16_at(here, 4)?);
        let name_length = usize::from(u16_at(here, 6)?);
        let data_offset = usize::from(u16_at(here, 10)?);
        let data_length = u32_at(here, 12)? as usize;
        let name = slice_at(here, name_offset, name_length)?;
        let data = if data_length == 0 { &[] } else { slice_at(here, data_offset, data_length)? };
        if next >= CONTEXT_HEADER_BYTES {
            self.rest = here.get(next..).unwrap_or_default();
        }
        Some(CreateContext { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::AccessMask;
    use super::super::view::tests::abuse;
    use super::*;

    fn list(contexts: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, (name, data)) in contexts.iter().enumerate() {
            let mut one = vec![0; 16];
            one[4] = 16;
            one[6] = name.len() as u8;
            one.extend_from_slice(name);
            one.resize(one.len().next_multiple_of(8), 0);
            if !data.is_empty() {
                one[10] = one.len() as u8;
                one[12] = data.len() as u8;
                one.extend_from_slice(data);
            }
            if index + 1 < contexts.len() {
                one.resize(one.len().next_multiple_of(8), 0);
                one[0] = one.len() as u8;
            }
            bytes.extend_from_slice(&one);
        }
        bytes
    }

    fn one<'a>(name: &'a [u8], data: &'a [u8]) -> CreateContext<'a> {
        CreateContext { name, data }
    }

    #[test]
    fn lists_contexts_with_and_without_data() {
        let bytes = list(&[(b"QFid", b""), (b"MxAc", &[1; 8]), (b"????", b"abc")]);
        let found: Vec<_> = CreateContexts::new(&bytes).collect();
        assert_eq!(found, [one(b"QFid", b""), one(b"MxAc", &[1; 8]), one(b"????", b"abc")]);
        assert_eq!(found[2].request(), RequestContext::Unknown);
        assert_eq!(found[2].response(), ResponseContext::Unknown);
        abuse(&bytes, |bytes| {
            for context in CreateContexts::new(bytes) {
                let _ = (context.request(), context.response());
            }
            assert!(CreateContexts::new(bytes).count() <= 1 + bytes.len() / 16);
        });
    }

    #[test]
    fn a_list_that_points_at_itself_ends() {
        let mut bytes = list(&[(b"QFid", b""), (b"MxAc", b"")]);
        bytes[0] = 8;
        assert_eq!(CreateContexts::new(&bytes).count(), 1);
    }

    #[test]
    fn decodes_leases_of_both_versions() {
        let mut data = vec![7; 16];
        data.extend_from_slice(&[5, 0, 0, 0, 4, 0, 0, 0]);
        data.extend_from_slice(&[0; 8]);
        let RequestContext::Lease(v1) = one(b"RqLs", &data).request() else { panic!() };
        assert_eq!((v1.key, v1.state, v1.v2), ([7; 16], LeaseState(5), None));
        assert_eq!(v1.parent_key(), None);
        data.extend_from_slice(&[8; 16]);
        data.extend_from_slice(&[3, 0, 0, 0]);
        let ResponseContext::Lease(v2) = one(b"RqLs", &data).response() else { panic!() };
        assert_eq!(v2.v2.unwrap().epoch, 3);
        assert_eq!(v2.parent_key(), Some([8; 16]));
        data[20] = 0;
        let RequestContext::Lease(unset) = one(b"RqLs", &data).request() else { panic!() };
        assert_eq!(unset.parent_key(), None);
    }

    #[test]
    fn decodes_durable_handles() {
        let mut data = vec![0; 36];
        data[0] = 60;
        data[4] = 2;
        data[16..32].fill(9);
        assert_eq!(
            one(b"DH2Q", &data[..32]).request(),
            RequestContext::DurableV2 {
                timeout_ms: 60,
                flags: DurableFlags::PERSISTENT,
                create_guid: [9; 16]
            }
        );
        assert_eq!(
            one(b"DH2Q", &data[..8]).response(),
            ResponseContext::DurableV2 { timeout_ms: 60, flags: DurableFlags::PERSISTENT }
        );
        data[32] = 2;
        let file_id = FileId { persistent: 0x2_0000_003c, volatile: 0 };
        assert_eq!(
            one(b"DH2C", &data).request(),
            RequestContext::DurableV2Reconnect {
                file_id,
                create_guid: [9; 16],
                flags: DurableFlags::PERSISTENT
            }
        );
        assert_eq!(one(b"DHnC", &data).request(), RequestContext::DurableReconnect(file_id));
        assert_eq!(one(b"DHnQ", &data).request(), RequestContext::Durable);
    }

    #[test]
    fn decodes_the_rest() {
        let data: Vec<u8> = (0..32).collect();
        assert_eq!(
            one(b"QFid", &data).response(),
            ResponseContext::OnDiskId {
                disk_file_id: 0x0706_0504_0302_0100,
                volume_id: 0x0f0e_0d0c_0b0a_0908
            }
        );
        assert_eq!(
            one(b"MxAc", &data).response(),
            ResponseContext::MaximalAccess {
                status: Status(0x0302_0100),
                access: AccessMask(0x0706_0504)
            }
        );
        assert_eq!(one(b"MxAc", b"").request(), RequestContext::QueryMaximalAccess(None));
        assert_eq!(
            one(b"AlSi", &data).request(),
            RequestContext::AllocationSize(0x0706_0504_0302_0100)
        );
        assert_eq!(
            one(b"TWrp", &data).request(),
            RequestContext::TimewarpToken(0x0706_0504_0302_0100)
        );
        assert_eq!(
            one(names::APP_INSTANCE_ID, &[3; 20]).request(),
            RequestContext::AppInstanceId([3; 16])
        );
        assert_eq!(one(b"AlSi", &data[..7]).request(), RequestContext::Unknown);
    }
}
