//! Round trips from QUIC's spin bit (RFC 9000 section 17.4, RFC 9312 section 4.2).
//!
//! The client inverts the bit that it receives and the server reflects it, so that each changes once
//! in a round trip. A side that does not take part sends a constant or a random bit: changes that do
//! not follow each other are counted, and with many of them there is no round trip.

/// Changes out of turn that are tolerated for each change in turn: packets overtake each other.
const OUT_OF_TURN_MAX: u64 = 10;
/// Fewer round trips say little about a bit that might be random.
const SAMPLES_MIN: u64 = 3;

/// Round trips between the capture point and one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    /// The shortest.
    pub(super) least_ns: Option<i64>,
    pub(super) samples: u64,
}

/// Round trips on both sides of the capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundTrips {
    pub(super) server: Side,
    pub(super) client: Side,
}

/// The last bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spin {
    /// The bit of the client, then of the server.
    bits: [Option<bool>; 2],
    /// When the last change came in turn, and whether the client made it.
    last: Option<(i64, bool)>,
    sides: RoundTrips,
    out_of_turn: u64,
}

impl Spin {
    /// Takes the bit of a packet behind the handshake.
    pub(super) fn packet(&mut self, bit: bool, from_client: bool, time_ns: i64) {
        let [client, server] = &mut self.bits;
        let (own, other) = if from_client { (client, *server) } else { (server, *client) };
        let before = own.replace(bit);
        if before.is_none_or(|before| before == bit) {
            return;
        }
        // The client sends the opposite of what it received, the server the same.
        let is_in_turn = other == Some(bit != from_client);
        if !is_in_turn {
            self.out_of_turn += 1;
            self.last = None;
            return;
        }
        if let Some((since_ns, by_client)) = self.last.filter(|(_, by)| *by != from_client) {
            let side = if by_client { &mut self.sides.server } else { &mut self.sides.client };
            let took_ns = time_ns.saturating_sub(since_ns).max(0);
            side.least_ns = Some(side.least_ns.map_or(took_ns, |least| least.min(took_ns)));
            side.samples += 1;
        }
        self.last = Some((time_ns, from_client));
    }

    /// The round trips, if the bit was used as the standard says.
    pub(super) fn round_trips(&self) -> RoundTrips {
        let RoundTrips { server, client } = self.sides;
        let samples = server.samples + client.samples;
        let is_used = samples >= 2 * SAMPLES_MIN && self.out_of_turn * OUT_OF_TURN_MAX <= samples;
        if is_used { self.sides } else { RoundTrips::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of both sides: 3 ms to the server and back, 7 ms to the client and back.
    fn spinning(mut bits: impl FnMut(bool, bool) -> bool) -> Spin {
        let mut spin = Spin::default();
        let mut bit = false;
        for round in 0..20 {
            let start_ns = round * 10_000_000;
            for packet in 0..3 {
                spin.packet(bits(true, bit), true, start_ns + packet * 1_000);
            }
            for packet in 0..3 {
                spin.packet(bits(false, bit), false, start_ns + 3_000_000 + packet * 1_000);
            }
            bit = !bit;
        }
        spin
    }

    #[test]
    fn the_spin_bit_gives_both_round_trips() {
        let found = spinning(|_, bit| bit).round_trips();
        assert_eq!(found.server.least_ns, Some(3_000_000));
        assert_eq!(found.client.least_ns, Some(7_000_000));
        assert!(found.server.samples >= 18 && found.client.samples >= 18);
    }

    #[test]
    fn constant_and_random_bits_give_none() {
        assert_eq!(spinning(|_, _| true).round_trips(), RoundTrips::default());
        assert_eq!(spinning(|client, bit| client && bit).round_trips(), RoundTrips::default());
        let mut state = 1_u32;
        let mut random = |_: bool, _: bool| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 31 == 1
        };
        assert_eq!(spinning(&mut random).round_trips(), RoundTrips::default());
    }
}
