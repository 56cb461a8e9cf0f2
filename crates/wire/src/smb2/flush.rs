//! Messages with little or nothing in them: FLUSH, ECHO and CANCEL (MS-SMB2 sections 2.2.17,
//! 2.2.18 and 2.2.28 to 2.2.30).

use super::FileId;
use super::view::view;

view! {
    /// A flush request, from its SMB2 header.
    FlushRequest {
        /// The open file.
        file_id: FileId = 72;
    }
}

view! {
    /// A flush response, from its SMB2 header; it has no fields.
    FlushResponse {}
}

view! {
    /// An echo request or response, from its SMB2 header; it has no fields.
    Echo {}
}

view! {
    /// A cancel request, from its SMB2 header; it has no fields and no response. The header names
    /// the request to cancel: by AsyncId, or else by MessageId.
    CancelRequest {}
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_the_file_of_a_flush() {
        let mut bytes = message(&[24, 0]);
        put(&mut bytes, 72, &[1; 16]);
        let id = FlushRequest(&bytes).file_id().unwrap();
        assert_eq!(id.persistent, 0x0101_0101_0101_0101);
        abuse(&bytes, |bytes| {
            FlushRequest(bytes).touch();
            FlushResponse(bytes).touch();
            Echo(bytes).touch();
            CancelRequest(bytes).touch();
        });
    }
}
