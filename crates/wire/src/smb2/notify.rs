//! CHANGE_NOTIFY and SERVER_TO_CLIENT_NOTIFICATION (MS-SMB2 sections 2.2.35, 2.2.36 and 2.2.44).
//!
//! The changes in the response's buffer are not decoded.

use super::FileId;
use super::view::{codes, flags, view};

flags! {
    /// Flags of a change notification.
    ChangeNotifyFlags(u16) {
        WATCH_TREE = 0x0001,
    }
}

flags! {
    /// The changes that the client wants to hear of.
    CompletionFilter(u32) {
        FILE_NAME = 0x0000_0001,
        DIR_NAME = 0x0000_0002,
        ATTRIBUTES = 0x0000_0004,
        SIZE = 0x0000_0008,
        LAST_WRITE = 0x0000_0010,
        LAST_ACCESS = 0x0000_0020,
        CREATION = 0x0000_0040,
        EA = 0x0000_0080,
        SECURITY = 0x0000_0100,
        STREAM_NAME = 0x0000_0200,
        STREAM_SIZE = 0x0000_0400,
        STREAM_WRITE = 0x0000_0800,
    }
}

view! {
    /// A change notification's request, from its SMB2 header.
    ChangeNotifyRequest {
        /// Whether the whole tree is watched.
        flags: ChangeNotifyFlags = 66;
        /// Longest answer in bytes.
        output_buffer_length: u32 = 68;
        /// The open directory.
        file_id: FileId = 72;
        /// The changes wanted.
        completion_filter: CompletionFilter = 88;
    }
}

view! {
    /// A change notification's response, from its SMB2 header.
    ChangeNotifyResponse {
        /// Where the changes stand, from the header.
        output_buffer_offset: u16 = 66;
        /// Bytes of the changes.
        output_buffer_length: u32 = 68;
    }
}

codes! {
    /// A notification that the server sends without a request.
    NotificationType(u32) {
        NOTIFY_SESSION_CLOSED = 0 => "SmbNotifySessionClosed",
    }
}

view! {
    /// A notification that the server sends on its own, from its SMB2 header.
    ServerToClientNotification {
        /// Type of the notification.
        notification_type: NotificationType = 68;
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[32, 0, 1, 0, 0, 8, 0, 0]);
        put(&mut bytes, 72, &[4; 16]);
        put(&mut bytes, 88, &0x17u32.to_le_bytes());
        let view = ChangeNotifyRequest(&bytes);
        assert_eq!(view.flags(), Some(ChangeNotifyFlags::WATCH_TREE));
        assert_eq!(view.output_buffer_length(), Some(2048));
        let filter = view.completion_filter().unwrap();
        assert!(filter.contains(CompletionFilter::LAST_WRITE));
        assert!(!filter.contains(CompletionFilter::SIZE));
        abuse(&bytes, |bytes| ChangeNotifyRequest(bytes).touch());

        let bytes = message(&[9, 0, 72, 0, 12, 0, 0, 0]);
        assert_eq!(ChangeNotifyResponse(&bytes).output_buffer_length(), Some(12));
        abuse(&bytes, |bytes| ChangeNotifyResponse(bytes).touch());

        let bytes = message(&[4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            ServerToClientNotification(&bytes).notification_type(),
            Some(NotificationType::NOTIFY_SESSION_CLOSED)
        );
        abuse(&bytes, |bytes| ServerToClientNotification(bytes).touch());
    }
}
