//! What a packet was wrapped in: tags, tunnels and other headers that were removed to find it.
//!
//! Owns the names and the counters. The coverage shows them, so that a user sees that a mirror's
//! tunnel was understood.

use std::fmt::Write;

/// A wrapping that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layer {
    /// One tag (IEEE 802.1Q).
    Vlan,
    /// Two or more tags (IEEE 802.1ad).
    QinQ,
    /// Labels (RFC 3032).
    Mpls,
    /// PPP over Ethernet (RFC 2516).
    PppoE,
    /// PPP (RFC 1661).
    Ppp,
    /// IEEE 802.2 LLC with SNAP (RFC 1042).
    Snap,
    /// IEEE 802.11.
    Wireless,
    /// GRE (RFC 2784, RFC 2890, RFC 2637).
    Gre,
    /// ERSPAN without a header of its own.
    Erspan1,
    /// ERSPAN type II.
    Erspan2,
    /// ERSPAN type III.
    Erspan3,
    /// VXLAN (RFC 7348), its extension VXLAN-GPE too.
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// GTP-U (3GPP TS 29.281).
    Gtp,
    /// IP in IP (RFC 2003, RFC 4213).
    IpInIp,
    /// TaZmen Sniffer Protocol.
    Tzsp,
    /// EtherIP (RFC 3378).
    EtherIp,
    /// L2TP version 2 (RFC 2661).
    L2tp,
    /// LISP (RFC 9300).
    Lisp,
    /// Teredo (RFC 4380).
    Teredo,
    /// CAPWAP (RFC 5415).
    Capwap,
    /// Provider backbone bridges (IEEE 802.1ah).
    Pbb,
    /// TRILL (RFC 6325) or FabricPath.
    Trill,
    /// VN-Tag (IEEE 802.1BR).
    VnTag,
    /// HSR (IEC 62439-3).
    Hsr,
    /// MACsec without encryption (IEEE 802.1AE).
    MacSec,
    /// NSH (RFC 8300).
    Nsh,
    /// IPsec that the recording system decrypted (OpenBSD's enc).
    IpsecDecrypted,
    /// Cisco MetaData, which carries security group tags.
    CiscoMetaData,
}

/// All of them, in the order of their numbers.
const NAMES: [&str; 29] = [
    "VLAN",
    "QinQ",
    "MPLS",
    "PPPoE",
    "PPP",
    "LLC/SNAP",
    "802.11",
    "GRE",
    "ERSPAN I",
    "ERSPAN II",
    "ERSPAN III",
    "VXLAN",
    "Geneve",
    "GTP-U",
    "IP in IP",
    "TZSP",
    "EtherIP",
    "L2TP",
    "LISP",
    "Teredo",
    "CAPWAP",
    "802.1ah",
    "TRILL",
    "VN-Tag",
    "HSR",
    "MACsec",
    "NSH",
    "IPsec (decrypted)",
    "Cisco MetaData",
];

/// The wrappings of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers(u32);

impl Layers {
    /// Adds one.
    pub(super) fn add(&mut self, layer: Layer) {
        let (vlan, bit) = (1 << Layer::Vlan as u8, 1 << layer as u8);
        self.0 = match layer {
            // A second tag.
            Layer::Vlan if self.0 & vlan != 0 => self.0 & !vlan | 1 << Layer::QinQ as u8,
            Layer::Vlan if self.has(Layer::QinQ) => self.0,
            _ => self.0 | bit,
        };
    }

    /// Whether one of them is this one.
    pub fn has(self, layer: Layer) -> bool {
        self.0 & 1 << layer as u8 != 0
    }
}

/// Frames of each wrapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerCounts([u64; NAMES.len()]);

impl LayerCounts {
    /// Counts a frame.
    pub fn add(&mut self, layers: Layers) {
        let mut bits = layers.0;
        while bits != 0 {
            if let Some(count) = self.0.get_mut(bits.trailing_zeros() as usize) {
                *count += 1;
            }
            bits &= bits - 1;
        }
    }

    /// Counts a frame with only this wrapping.
    pub fn add_one(&mut self, layer: Layer) {
        let mut layers = Layers::default();
        layers.add(layer);
        self.add(layers);
    }

    /// As text, the most frequent first: `VXLAN 3320, QinQ 12`. `None` without any.
    pub fn text(&self) -> Option<String> {
        let counted = NAMES.iter().zip(self.0).filter(|(_, count)| *count > 0);
        let mut counted: Vec<_> = counted.collect();
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut text = String::new();
        for (name, count) in counted {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a string succeeds.
            let _ = write!(text, "{comma}{name} {count}");
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_layer_comes_first() {
        let mut counts = LayerCounts::default();
        assert_eq!(counts.text(), None);
        let mut layers = Layers::default();
        counts.add(layers);
        layers.add(Layer::Vlan);
        counts.add(layers);
        layers.add(Layer::Vlan);
        layers.add(Layer::Vlan);
        layers.add(Layer::Vxlan);
        assert!(layers.has(Layer::QinQ) && !layers.has(Layer::Vlan));
        counts.add(layers);
        counts.add(layers);
        assert_eq!(counts.text().as_deref(), Some("QinQ 2, VXLAN 2, VLAN 1"));
        assert_eq!(Layer::CiscoMetaData as usize + 1, NAMES.len());
    }
}
