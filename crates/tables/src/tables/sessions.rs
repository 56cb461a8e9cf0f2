//! Table `sessions`: users, clients and authentication (MS-SMB2 section 2.2.5, SESSION_SETUP).

use crate::row::table;

table! {
    /// One SMB session.
    Session, "sessions" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        session_id: u64, None, Public, "SMB2 SessionId, or SMB1 UID.";
        connection: u64, None, Public, "The connection on which the session was first seen.";
        client: String, None, Machine, "The client's address.";
        server: String, None, Machine, "The server's address.";
        user: Option<String>, None, Person, "User of the session: DOMAIN\\name, or name@REALM for Kerberos if the capture shows a KDC (port 88) issuing the ticket.";
        named_by: Option<String>, None, Public, "smbstatus if the user was read from Samba's own tables, because the session was open before the recording; null if the recording shows it.";
        workstation: Option<String>, None, Machine, "The client's name as sent in NTLM.";
        mechanism: Option<String>, None, Public, "Authentication mechanism: NTLMSSP or Kerberos.";
        guest: Option<bool>, None, Public, "Whether the server granted a guest or anonymous session.";
        encrypt_data: Option<bool>, None, Public, "Whether the server requires encryption for the session.";
        channels: u64, Count, Public, "Connections of the session.";
        start as "started_at": i64, Time, Public, "First request.";
        end as "ended_at": i64, Time, Public, "Last response.";
        operations: u64, Count, Public, "Operations.";
        guid: Option<String>, None, Public, "GUID by which events of Windows name the session.";
        decryption: Option<String>, None, Public, "How the session's key is known: key (given as such), password (or NT hash) or keytab; wrong secret or no secret if none of the given secrets is the account's or the service's; null if no secrets were given or the logon was not captured in full.";
    }
}
