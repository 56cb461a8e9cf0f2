//! What SMB Multichannel would bring to a connection that has most of the load.
//!
//! Owns how many connections an adapter would have, and where that number is from. Windows opens four for each pair of
//! RSS-capable interfaces and one for each other pair ("Deploy SMB Multichannel": `ConnectionCountPerRssNetworkInterface` 4);
//! Samba offers it since 4.4 and by default since 4.15 (smb.conf(5), `server multi channel support`).

use serde::Serialize;

use super::super::topology::{Adapter, Machine};
use super::{Connection, Path, chance};

/// Connections for each pair of RSS-capable interfaces.
const CONNECTIONS_EACH: u32 = 4;

/// Ports that Windows and most other systems give to clients (IANA's dynamic ports).
const CLIENT_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// What several connections would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Multichannel {
    /// Pairs of interfaces that use this adapter, and connections of all.
    pub pairs: u32,
    pub connections: u32,
    pub source: Source,
    /// The busiest core's share, with each connection at a random port. `None` if there would be one connection.
    pub chance: Option<chance::Busiest>,
}

/// Where the number of connections is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Get-SmbMultichannelConnection has the paths between these addresses.
    Connections,
    /// Get-SmbServerNetworkInterface says what the interface can.
    Interfaces,
    /// Samba's configuration switches it off.
    SambaOff,
    /// Samba's configuration switches it on; four connections are assumed.
    SambaOn,
    /// Nothing says it: one pair of RSS-capable interfaces is assumed.
    Assumed,
}

/// What multichannel would bring to this connection on an adapter whose packets go this way.
pub(super) fn multichannel(
    machine: &Machine,
    card: &Adapter,
    path: &Path,
    connection: &Connection,
) -> Multichannel {
    let (pairs, connections, source) = expected(machine, connection);
    let connections = connections.clamp(1, chance::CONNECTIONS_MAX);
    let several = (connections > 1).then(|| {
        let client = (connection.client, CLIENT_PORTS);
        let server = (connection.server, connection.server_port);
        path.more_connections(card, client, server, connections)
    });
    Multichannel { pairs, connections, source, chance: several.flatten() }
}

fn expected(machine: &Machine, connection: &Connection) -> (u32, u32, Source) {
    let is = |text: &Option<String>, address| {
        text.as_ref().and_then(|text| text.trim().parse().ok()) == Some(address)
    };
    // The address of this machine, as the client or as the server of a path.
    let paths = machine.multichannel.iter().filter(|path| {
        path.is_selected != Some(false)
            && (is(&path.server_address, connection.server)
                || is(&path.client_address, connection.server))
    });
    let (mut pairs, mut connections) = (0_u32, 0_u32);
    for path in paths {
        let each = if path.is_client_rss_capable == Some(false) { 1 } else { CONNECTIONS_EACH };
        let each = path.channels_max.filter(|most| *most > 0).unwrap_or(each);
        pairs = pairs.saturating_add(1);
        connections = connections.saturating_add(each);
    }
    if pairs > 0 {
        return (pairs, connections, Source::Connections);
    }
    let interface = machine
        .interfaces
        .iter()
        .find(|interface| is(&interface.address, connection.server))
        .and_then(|interface| interface.is_rss_capable);
    match (interface, machine.samba_multichannel) {
        (Some(true), _) => (1, CONNECTIONS_EACH, Source::Interfaces),
        (Some(false), _) => (1, 1, Source::Interfaces),
        (None, Some(false)) => (1, 1, Source::SambaOff),
        (None, Some(true)) => (1, CONNECTIONS_EACH, Source::SambaOn),
        (None, None) => (1, CONNECTIONS_EACH, Source::Assumed),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::read::{MultichannelConnection, NetworkInterface};
    use super::*;

    fn connection() -> Connection {
        Connection {
            card: 0,
            client: "10.0.0.1".parse().unwrap(),
            client_port: 50_000,
            server: "10.0.0.9".parse().unwrap(),
            server_port: 445,
            bytes: 1,
            packets: 1,
        }
    }

    #[test]
    fn the_number_of_connections_is_read_else_assumed() {
        let mut machine = Machine::default();
        assert_eq!(expected(&machine, &connection()), (1, 4, Source::Assumed));
        machine.samba_multichannel = Some(true);
        assert_eq!(expected(&machine, &connection()), (1, 4, Source::SambaOn));
        machine.samba_multichannel = Some(false);
        assert_eq!(expected(&machine, &connection()), (1, 1, Source::SambaOff));
        machine.interfaces = vec![NetworkInterface {
            address: Some("10.0.0.9".into()),
            is_rss_capable: Some(false),
            ..NetworkInterface::default()
        }];
        assert_eq!(expected(&machine, &connection()), (1, 1, Source::Interfaces));
        machine.interfaces[0].is_rss_capable = Some(true);
        assert_eq!(expected(&machine, &connection()), (1, 4, Source::Interfaces));
        let path = |client: &str, channels_max, is_selected| MultichannelConnection {
            client_address: Some(client.into()),
            server_address: Some("10.0.0.9".into()),
            channels_max,
            is_selected: Some(is_selected),
            ..MultichannelConnection::default()
        };
        machine.multichannel = vec![
            path("10.0.0.1", Some(8), true),
            path("10.0.0.2", None, true),
            path("10.0.0.3", None, false),
        ];
        assert_eq!(expected(&machine, &connection()), (2, 12, Source::Connections));
    }
}
