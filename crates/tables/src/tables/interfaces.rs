//! Table `interfaces`: the network interfaces that servers offered for additional channels (MS-SMB2
//! section 2.2.32.5), and whether a channel used them.

use crate::row::table;

table! {
    /// One address of one interface that a server offered to a client.
    Interface, "interfaces" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        connection: u64, None, Public, "The connection on which the client asked.";
        session_id: Option<u64>, None, Public, "The session in which it asked.";
        client: String, None, Machine, "The client's address on that connection.";
        server: String, None, Machine, "The server's address on that connection.";
        index: u64, None, Public, "Number of the interface: several addresses can belong to one.";
        address: String, None, Machine, "The address offered.";
        rss_capable: bool, None, Public, "Whether it distributes connections over CPUs (receive side scaling).";
        rdma_capable: bool, None, Public, "Whether it has RDMA.";
        link_bits_per_second: u64, None, Public, "Its speed, bits/s.";
        used: bool, None, Public, "Whether a channel of the session went to the address.";
        reason: String, None, Public, "Why it was used or not: used, speed_class, subnet, no_route, connect_failed, refused, limit, loopback, link_local, family (of the address: neither IPv4 nor IPv6), same_interface, not_listed (the user listed the addresses, without this one) or not_tried (unknown).";
        status: Option<String>, None, Public, "Status with which a channel to it was refused; null if none was.";
    }
}
