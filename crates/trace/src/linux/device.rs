//! Device and queue in the name of an irq's handler, as drivers of Linux choose it.

/// Device and queue; `None` where the name does not say.
pub fn of_handler(name: &str) -> (Option<&str>, Option<u32>) {
    // mlx5_comp3@pci:0000:3b:00.0
    if let Some((before, device)) = name.split_once("@pci:") {
        return (Some(device), trailing_number(before));
    }
    // virtio0-input.0
    if name.starts_with("virtio")
        && let Some((device, queue)) = name.split_once('-')
    {
        return (Some(device), queue.rsplit_once('.').and_then(|(_, queue)| queue.parse().ok()));
    }
    // nvme0q3
    if name.starts_with("nvme")
        && let Some((device, queue)) = name.split_once('q')
    {
        return (Some(device), queue.parse().ok());
    }
    // eth0-TxRx-3, eth0-rx-3, i40e-eth0-TxRx-3
    for part in ["-txrx-", "-tx-rx-", "-rx-", "-tx-"] {
        if let Some(at) = name.to_ascii_lowercase().find(part) {
            let device = name.get(..at).and_then(|before| before.rsplit(['-', ' ']).next());
            return (device, trailing_number(name));
        }
    }
    (None, None)
}

fn trailing_number(text: &str) -> Option<u32> {
    let start = text.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    text.get(start..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_name_their_queues_in_several_ways() {
        for (name, device, queue) in [
            ("eth0-TxRx-3", Some("eth0"), Some(3)),
            ("i40e-ens1f0-TxRx-12", Some("ens1f0"), Some(12)),
            ("ens5-Tx-Rx-0", Some("ens5"), Some(0)),
            ("virtio0-input.1", Some("virtio0"), Some(1)),
            ("virtio0-config", Some("virtio0"), None),
            ("mlx5_comp3@pci:0000:3b:00.0", Some("0000:3b:00.0"), Some(3)),
            ("nvme0q7", Some("nvme0"), Some(7)),
            ("i8042", None, None),
            ("timer", None, None),
        ] {
            assert_eq!(of_handler(name), (device, queue), "{name}");
        }
    }
}
