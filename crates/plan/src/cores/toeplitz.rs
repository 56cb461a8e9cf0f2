//! The hash of receive-side scaling, and the queue of a connection.
//!
//! Owns the Toeplitz hash, its known keys and the choice of an entry of the indirection table. Does not own tables and
//! keys that were read from a machine ([`super::topology::Rss`]), nor what a layout makes of them
//! ([`super::prediction`]).
//!
//! Microsoft: "RSS hashing types", "RSS hashing functions" and "Verifying the RSS hash calculation" (Windows driver
//! documentation, network). Linux: `Documentation/networking/scaling.rst`, `ethtool_rxfh_indir_default` in
//! `include/linux/ethtool.h`.

use std::net::IpAddr;

use serde::Serialize;

/// The key of Microsoft's verification suite, which many drivers have as their default.
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The key of Mellanox's adapters where no other is set: the array `rsskey` of the Linux driver mlx4 (until it used
/// `netdev_rss_key_fill`, in Linux 3.19) in the byte order in which DPDK and `mlx5_vdpa` have it.
pub const MELLANOX_KEY: [u8; 40] = [
    0x2c, 0xc6, 0x81, 0xd1, 0x5b, 0xdb, 0xf4, 0xf7, 0xfc, 0xa2, 0x83, 0x19, 0xdb, 0x1a, 0x3e, 0x94,
    0x6b, 0x9e, 0x38, 0xd9, 0x2c, 0x9c, 0x03, 0xd1, 0xad, 0x99, 0x44, 0xa7, 0xd9, 0x56, 0x3d, 0x59,
    0x06, 0x3c, 0x25, 0xf3, 0xfc, 0x1f, 0xdc, 0x2a,
];

/// Entries of an indirection table that was not read: the usual size.
pub const TABLE_ENTRIES_DEFAULT: u32 = 128;

/// Where the key of a calculation is from. Only with [`KeySource::Read`] is a result exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// It was read from the machine.
    Read,
    /// It was not read. Mellanox's default is used instead.
    MellanoxDefault,
    /// It was not read. Microsoft's key of the documentation is used instead: Linux draws a key at each boot
    /// (`netdev_rss_key_fill`), and Windows gives its own to the adapter, so that queues are examples, not facts.
    Microsoft,
}

/// What the hash covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fields {
    /// Addresses and ports, the usual setting for TCP.
    #[default]
    AddressesAndPorts,
    /// Addresses only: of fragments, and of protocols without a hash of their own.
    Addresses,
}

/// The four values of a packet that the hash covers, as they are in the packet: the source is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub source: IpAddr,
    pub source_port: u16,
    pub destination: IpAddr,
    pub destination_port: u16,
}

/// The key to calculate with, given what was read (any length; empty if nothing was) and the name of the driver.
pub fn key_or_default<'a>(read: &'a [u8], driver: Option<&str>) -> (&'a [u8], KeySource) {
    if !read.is_empty() {
        (read, KeySource::Read)
    } else if matches!(driver, Some("mlx4_en" | "mlx4_core")) {
        (&MELLANOX_KEY, KeySource::MellanoxDefault)
    } else {
        (&MICROSOFT_KEY, KeySource::Microsoft)
    }
}

/// The Toeplitz hash of bytes. A key that is shorter than the input and its window of 32 bits continues with zeros.
pub fn hash(key: &[u8], input: &[u8]) -> u32 {
    let mut bytes = key.iter().copied().chain(std::iter::repeat(0));
    let mut window =
        (0..4).fold(0_u32, |window, _| window << 8 | u32::from(bytes.next().unwrap_or(0)));
    let mut hash = 0;
    for &byte in input {
        let next = bytes.next().unwrap_or(0);
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

/// The hash of a packet, or `None` if its addresses are of different families.
pub fn flow_hash(key: &[u8], flow: &Flow, fields: Fields) -> Option<u32> {
    let mut input = [0; 36];
    let addresses = match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            put(&mut input, 0, &source.octets());
            put(&mut input, 4, &destination.octets());
            8
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            put(&mut input, 0, &source.octets());
            put(&mut input, 16, &destination.octets());
            32
        }
        _ => return None,
    };
    put(&mut input, addresses, &flow.source_port.to_be_bytes());
    put(&mut input, addresses + 2, &flow.destination_port.to_be_bytes());
    let length = match fields {
        Fields::Addresses => addresses,
        Fields::AddressesAndPorts => addresses + 4,
    };
    input.get(..length).map(|input| hash(key, input))
}

/// The entry of an indirection table of `entries` that a hash chooses: its low bits where the size is a power of two.
/// Other sizes exist in a few drivers; the remainder is taken for them. `None` for an empty table.
pub fn table_entry(hash: u32, entries: u32) -> Option<u32> {
    hash.checked_rem(entries)
}

/// The item of an indirection table (a queue, a CPU) that a packet goes to.
pub fn table_item<'a, T>(key: &[u8], flow: &Flow, fields: Fields, table: &'a [T]) -> Option<&'a T> {
    let entry = table_entry(flow_hash(key, flow, fields)?, u32::try_from(table.len()).ok()?)?;
    table.get(usize::try_from(entry).ok()?)
}

/// The table that a driver makes without settings, and `ethtool -X DEV equal N`: queue `i % queues` in entry `i`.
pub fn default_table(entries: u32, queues: u32) -> Vec<u32> {
    if queues == 0 {
        Vec::new()
    } else {
        (0..entries.min(TABLE_ENTRIES_MAX)).map(|entry| entry % queues).collect()
    }
}

/// The table of `ethtool -X DEV weight W0 W1 ...`: a run of entries for each queue, as ethtool computes it. `None`
/// where ethtool refuses: no weight, or a sum above the number of entries.
pub fn weight_table(entries: u32, weights: &[u32]) -> Option<Vec<u32>> {
    let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    if sum == 0 || sum > u64::from(entries) || entries > TABLE_ENTRIES_MAX {
        return None;
    }
    let mut remaining = weights.iter();
    let (mut queue, mut partial) = (None::<u32>, 0_u64);
    let mut table = Vec::new();
    for entry in 0..u64::from(entries) {
        while entry >= u64::from(entries) * partial / sum {
            partial += u64::from(*remaining.next()?);
            queue = Some(queue.map_or(0, |queue| queue + 1));
        }
        table.push(queue?);
    }
    Some(table)
}

/// Limit of the tables that are made here; the largest of an adapter known to the project has 2,048 entries.
const TABLE_ENTRIES_MAX: u32 = 65_536;

fn put(input: &mut [u8; 36], offset: usize, bytes: &[u8]) {
    for (to, from) in input.iter_mut().skip(offset).zip(bytes) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Microsoft, "Verifying the RSS hash calculation": destination, source, hash of the addresses, hash with ports.
    const VECTORS: [(&str, u16, &str, u16, u32, u32); 8] = [
        ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e_8fc2, 0x51cc_c178),
        ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718_262a, 0xc626_b0ea),
        ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0_a5de, 0x5c2b_394a),
        ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x8298_9176, 0xafc7_327f),
        ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d18_09c5, 0x10e8_28a2),
        ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc1_8cd5, 0x4020_7d3d),
        ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c_461c, 0xdde5_1bbf),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn microsofts_vectors_hash_as_published() {
        for (destination, destination_port, source, source_port, addresses, with_ports) in VECTORS {
            let flow = Flow {
                source: source.parse().unwrap(),
                source_port,
                destination: destination.parse().unwrap(),
                destination_port,
            };
            assert_eq!(
                flow_hash(&MICROSOFT_KEY, &flow, Fields::Addresses),
                Some(addresses),
                "{source}"
            );
            assert_eq!(
                flow_hash(&MICROSOFT_KEY, &flow, Fields::AddressesAndPorts),
                Some(with_ports),
                "{source}"
            );
        }
    }

    /// Linux has no vectors of its own: its test (`tools/testing/selftests/drivers/net/hw/toeplitz.c`) computes the hash with
    /// the key of an adapter and compares what arrives. `crates/plan/tests/steering.rs` does the same. A key of one repeated
    /// word of 16 bits gives both directions of a connection the same hash (Woo and Park, KAIST, 2012), which is a vector that
    /// needs no table.
    #[test]
    fn a_symmetric_key_has_one_hash_for_both_directions() {
        let key: Vec<u8> = [0x6d, 0x5a].into_iter().cycle().take(40).collect();
        for (destination, destination_port, source, source_port, ..) in VECTORS {
            let there = Flow {
                source: source.parse().unwrap(),
                source_port,
                destination: destination.parse().unwrap(),
                destination_port,
            };
            let back = Flow {
                source: there.destination,
                source_port: destination_port,
                destination: there.source,
                destination_port: source_port,
            };
            for fields in [Fields::Addresses, Fields::AddressesAndPorts] {
                assert_eq!(flow_hash(&key, &there, fields), flow_hash(&key, &back, fields));
            }
            assert_ne!(
                flow_hash(&MICROSOFT_KEY, &there, Fields::AddressesAndPorts),
                flow_hash(&MICROSOFT_KEY, &back, Fields::AddressesAndPorts)
            );
        }
    }

    #[test]
    fn a_flow_of_two_families_has_no_hash_and_an_empty_table_no_entry() {
        let flow = Flow {
            source: "10.0.0.1".parse().unwrap(),
            source_port: 1,
            destination: "::1".parse().unwrap(),
            destination_port: 2,
        };
        assert_eq!(flow_hash(&MICROSOFT_KEY, &flow, Fields::Addresses), None);
        assert_eq!(table_entry(7, 0), None);
        assert_eq!(table_entry(0xffff_ff85, 128), Some(5));
    }

    #[test]
    fn the_key_is_the_one_that_was_read_else_a_default_with_its_name() {
        assert_eq!(key_or_default(&[1; 52], Some("mlx5_core")), (&[1; 52][..], KeySource::Read));
        assert_eq!(key_or_default(&[], Some("mlx4_en")).1, KeySource::MellanoxDefault);
        // Windows gives its own key to the adapter.
        assert_eq!(key_or_default(&[], Some("mlx4eth63")).1, KeySource::Microsoft);
        assert_eq!(key_or_default(&[], Some("ixgbe")), (&MICROSOFT_KEY[..], KeySource::Microsoft));
    }

    #[test]
    fn ethtools_tables() {
        assert_eq!(default_table(8, 3), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(weight_table(8, &[3, 0, 1]), Some(vec![0, 0, 0, 0, 0, 0, 2, 2]));
        assert_eq!(weight_table(8, &[1, 1, 1]), Some(vec![0, 0, 1, 1, 1, 2, 2, 2]));
        assert_eq!(weight_table(8, &[9]), None);
        assert_eq!(weight_table(8, &[0, 0]), None);
    }

    proptest! {
        /// The definition, bit by bit: each set bit of the input adds the 32 bits of the key from its position.
        #[test]
        fn the_hash_is_the_sum_of_windows_of_the_key(
            key in prop::collection::vec(any::<u8>(), 0..60),
            input in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bit = |bytes: &[u8], index: usize| {
                u32::from(bytes.get(index / 8).copied().unwrap_or(0) >> (7 - index % 8) & 1)
            };
            let mut expected = 0;
            for index in 0..input.len() * 8 {
                if bit(&input, index) == 1 {
                    expected ^= (0..32).fold(0, |window, offset| window << 1 | bit(&key, index + offset));
                }
            }
            prop_assert_eq!(hash(&key, &input), expected);
        }
    }
}
