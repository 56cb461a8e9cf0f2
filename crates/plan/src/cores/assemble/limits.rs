//! What an adapter cannot do although its settings look as if it could.
//!
//! Owns limits that follow from driver and table. Sources are with each limit.

use super::super::topology::Adapter;

/// The most queues that an indirection table can name, where that is known.
///
/// ixgbe: the table of 82598, 82599 and X540 has 128 entries of four bits, that of X550 and later 512 of six bits
/// (`ixgbe_rss_indir_tbl_max` and `ixgbe_rss_indir_tbl_entries` in `ixgbe.h`, `ixgbe_ethtool.c`), and each has up to 63 queues
/// for its flow director (`IXGBE_MAX_FDIR_INDICES`). Other drivers: `ethtool -X` refuses a queue that is not below the number
/// of rings of `ethtool -x` (`ethtool_copy_validate_indir` in `net/ethtool/ioctl.c`); where it is smaller than the number of
/// queues in use, it is the limit.
pub(super) fn queue_limit(card: &Adapter) -> Option<u32> {
    let by_driver = match (card.driver.as_deref(), card.rss.queue_table.len()) {
        (Some("ixgbe"), 1..=128) => Some(16),
        (Some("ixgbe"), 512) => Some(64),
        _ => None,
    };
    let rings = card.rss.rings.filter(|rings| *rings > 0);
    let by_rings = rings.filter(|rings| card.rss.queues.is_some_and(|queues| *rings < queues));
    by_driver.into_iter().chain(by_rings).min()
}
