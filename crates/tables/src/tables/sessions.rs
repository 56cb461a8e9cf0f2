//! Table `sessions`: who logged on, from where, and how (MS-SMB2 section 2.2.5, SESSION_SETUP).

use crate::row::table;

table! {
    /// One SMB session.
    Session, "sessions" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        session_id: u64, None, Public, "SMB2 SessionId, or SMB1 UID.";
        connection: u64, None, Public, "Connection on which it was seen first.";
        client: String, None, Machine, "The client's address.";
        server: String, None, Machine, "The server's address.";
        user: Option<String>, None, Person, "User: DOMAIN\\name, or name@REALM by Kerberos, where the capture shows a KDC (port 88) give the ticket.";
        workstation: Option<String>, None, Machine, "The client's own name, as NTLM says it.";
        mechanism: Option<String>, None, Public, "How the user proved who they are: NTLMSSP or Kerberos.";
        guest: Option<bool>, None, Public, "Whether the server let the user in as a guest, or without a name.";
        encrypt_data: Option<bool>, None, Public, "Whether the server demands encryption in the session.";
        channels: u64, Count, Public, "Connections that carried it.";
        start: i64, Time, Public, "First request.";
        end: i64, Time, Public, "Last reply.";
        operations: u64, Count, Public, "Operations.";
    }
}
