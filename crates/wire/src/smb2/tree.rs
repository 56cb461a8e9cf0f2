//! TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 sections 2.2.9 to 2.2.12).

use super::access::AccessMask;
use super::view::{buffer, codes, flags, view};

flags! {
    /// Flags of a tree connect request (3.1.1; reserved before).
    TreeConnectFlags(u16) {
        CLUSTER_RECONNECT = 0x0001,
        REDIRECT_TO_OWNER = 0x0002,
        EXTENSION_PRESENT = 0x0004,
    }
}

codes! {
    /// What a share is.
    ShareType(u8) {
        DISK = 1 => "DISK",
        PIPE = 2 => "PIPE",
        PRINT = 3 => "PRINT",
    }
}

flags! {
    /// Properties of a share. The caching mode is the number under `CACHING_MASK`.
    ShareFlags(u32) {
        DFS = 0x0000_0001,
        DFS_ROOT = 0x0000_0002,
        CACHING_MASK = 0x0000_0030,
        RESTRICT_EXCLUSIVE_OPENS = 0x0000_0100,
        FORCE_SHARED_DELETE = 0x0000_0200,
        ALLOW_NAMESPACE_CACHING = 0x0000_0400,
        ACCESS_BASED_DIRECTORY_ENUM = 0x0000_0800,
        FORCE_LEVELII_OPLOCK = 0x0000_1000,
        ENABLE_HASH_V1 = 0x0000_2000,
        ENABLE_HASH_V2 = 0x0000_4000,
        ENCRYPT_DATA = 0x0000_8000,
        IDENTITY_REMOTING = 0x0004_0000,
        COMPRESS_DATA = 0x0010_0000,
        ISOLATED_TRANSPORT = 0x0020_0000,
    }
}

impl ShareFlags {
    /// How clients may cache the share's files offline.
    pub fn caching_name(self) -> &'static str {
        match self.0 & ShareFlags::CACHING_MASK.0 {
            0x00 => "MANUAL_CACHING",
            0x10 => "AUTO_CACHING",
            0x20 => "VDO_CACHING",
            _ => "NO_CACHING",
        }
    }
}

flags! {
    /// What a share can do.
    ShareCapabilities(u32) {
        DFS = 0x0000_0008,
        CONTINUOUS_AVAILABILITY = 0x0000_0010,
        SCALEOUT = 0x0000_0020,
        CLUSTER = 0x0000_0040,
        ASYMMETRIC = 0x0000_0080,
        REDIRECT_TO_OWNER = 0x0000_0100,
    }
}

view! {
    /// A tree connect request, from its SMB2 header.
    TreeConnectRequest {
        /// Cluster reconnect, extension present.
        flags: TreeConnectFlags = 66;
        /// Where the path stands, from the header; with the extension it stands inside that.
        path_offset: u16 = 68;
        /// Bytes of the path.
        path_length: u16 = 70;
    }
}

impl<'a> TreeConnectRequest<'a> {
    /// `\\server\share` in UTF-16LE, if captured whole.
    pub fn path(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.path_offset()?);
        let length = usize::from(self.path_length()?);
        buffer(self.0, offset, length)
    }
}

view! {
    /// A tree connect response, from its SMB2 header.
    TreeConnectResponse {
        /// Disk, pipe, printer.
        share_type: ShareType = 66;
        /// Properties of the share.
        share_flags: ShareFlags = 68;
        /// What the share can do.
        capabilities: ShareCapabilities = 72;
        /// The rights that the user has on the share.
        maximal_access: AccessMask = 76;
    }
}

view! {
    /// A tree disconnect request or response, from its SMB2 header; it has no fields.
    TreeDisconnect {}
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[9, 0, 0, 0, 72, 0, 8, 0]);
        bytes.extend_from_slice(b"\\\0\\\0s\0x\0");
        let view = TreeConnectRequest(&bytes);
        assert_eq!(view.path(), Some(&b"\\\0\\\0s\0x\0"[..]));
        assert_eq!(TreeConnectRequest(&bytes[..79]).path(), None);
        abuse(&bytes, |bytes| {
            TreeConnectRequest(bytes).touch();
            let _ = TreeConnectRequest(bytes).path();
        });

        let bytes = message(&[16, 0, 1, 0, 0x30, 0x88, 0, 0, 0x18, 0, 0, 0, 0xff, 1, 0x1f, 0]);
        let view = TreeConnectResponse(&bytes);
        assert_eq!(view.share_type().unwrap().name(), Some("DISK"));
        let flags = view.share_flags().unwrap();
        assert!(flags.contains(ShareFlags::ENCRYPT_DATA));
        assert!(flags.contains(ShareFlags::ACCESS_BASED_DIRECTORY_ENUM));
        assert_eq!(flags.caching_name(), "NO_CACHING");
        let capabilities = view.capabilities().unwrap();
        assert!(capabilities.contains(ShareCapabilities::CONTINUOUS_AVAILABILITY));
        assert!(capabilities.contains(ShareCapabilities::DFS));
        assert_eq!(view.maximal_access(), Some(AccessMask(0x001f_01ff)));
        abuse(&bytes, |bytes| {
            TreeConnectResponse(bytes).touch();
            TreeDisconnect(bytes).touch();
        });
    }

    #[test]
    fn finds_the_path_behind_the_extension() {
        // Extension: contexts' offset and count, ten reserved bytes, then the path.
        let mut bytes = message(&[9, 0, 4, 0, 88, 0, 4, 0]);
        bytes.extend_from_slice(&[0; 16]);
        bytes.extend_from_slice(b"s\0x\0");
        let view = TreeConnectRequest(&bytes);
        assert_eq!(view.flags(), Some(TreeConnectFlags::EXTENSION_PRESENT));
        assert_eq!(view.path(), Some(&b"s\0x\0"[..]));
    }
}
