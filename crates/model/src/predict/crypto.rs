//! What signing and encryption cost: for each message, and for each byte of it.
//!
//! Measured on the server's own machine with its own library ([`Calibration`]), as time beyond that of plain
//! messages: so what else protection takes along, as a copy more, is in it.

use serde::{Deserialize, Serialize};
use smbscope_event::protection::Protection;

/// Beyond this a cost is nonsense: a second for a message, a microsecond for a byte.
const MESSAGE_MAX_NS: f64 = 1e9;
const BYTE_MAX_NS: f64 = 1e3;

/// Of a message in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// However long it is, ns.
    pub message_ns: f64,
    /// For each byte, ns.
    pub byte_ns: f64,
}

impl Cost {
    /// Of a message of so many bytes, ns.
    pub fn of(&self, bytes: u64) -> f64 {
        self.message_ns + self.byte_ns * bytes as f64
    }

    fn is_sound(&self) -> bool {
        (0.0..=MESSAGE_MAX_NS).contains(&self.message_ns)
            && (0.0..=BYTE_MAX_NS).contains(&self.byte_ns)
    }
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Of a message that it receives: verified or decrypted.
    pub inbound: Cost,
    /// Of one that it sends: signed or encrypted.
    pub outbound: Cost,
}

/// Both sides, for one way of protecting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Its name ([`Protection::name`]).
    pub protection: String,
    /// The server's.
    pub server: Side,
    /// The client's.
    pub client: Side,
}

impl Costs {
    /// Of a request and its reply, ns: at the server, at the client.
    pub fn of(&self, bytes: (u64, u64)) -> ((f64, f64), (f64, f64)) {
        let Costs { server, client, .. } = self;
        let server = (server.inbound.of(bytes.0), server.outbound.of(bytes.1));
        (server, (client.outbound.of(bytes.0), client.inbound.of(bytes.1)))
    }
}

/// What was measured on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The machine's processor.
    pub machine: String,
    /// The server's program and version.
    pub server: String,
    /// The client's.
    pub client: String,
    /// When: ISO 8601, UTC; files of before have none.
    #[serde(default)]
    pub measured_at: String,
    /// One for each way that was measured.
    pub costs: Vec<Costs>,
}

impl Calibration {
    /// What a way costs; nothing, without protection.
    pub fn get(&self, protection: Protection) -> Option<Costs> {
        if protection == Protection::None {
            return Some(Costs::default());
        }
        self.costs.iter().find(|one| one.protection == protection.name()).cloned()
    }

    /// Why it cannot be used.
    pub fn wrong(&self) -> Option<String> {
        for one in &self.costs {
            if Protection::of_name(&one.protection).is_none() {
                let names = Protection::ALL.map(Protection::name).join(", ");
                return Some(format!("`{}` is none of {names}", one.protection));
            }
            let all =
                [one.server.inbound, one.server.outbound, one.client.inbound, one.client.outbound];
            if !all.iter().all(Cost::is_sound) {
                return Some(format!(
                    "the costs of {} are not between 0 and {MESSAGE_MAX_NS} ns a message and {BYTE_MAX_NS} ns a \
                     byte",
                    one.protection
                ));
            }
        }
        None
    }
}

/// Operations of one kind: their messages' bytes, and what one costs both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Of request and reply.
    pub bytes: (u64, u64),
    /// Time of one operation, which is the server's, and before and after it, which is the client's, ns.
    pub ns: (f64, f64),
}

/// The costs of one way, from its samples and those of plain messages of the same sizes in the same
/// order. Messages of either direction are taken to cost the same without bytes.
pub fn fit(protection: Protection, samples: &[Sample], plain: &[Sample]) -> Costs {
    let side = |of: fn(&Sample) -> f64| {
        let more: Vec<_> = samples
            .iter()
            .zip(plain)
            .map(|(one, plain)| (one.bytes.0 as f64, one.bytes.1 as f64, of(one) - of(plain)))
            .collect();
        plane(&more)
    };
    let [server, client] = [side(|one| one.ns.0), side(|one| one.ns.1)];
    let cost = |message: f64, byte_ns: f64| Cost { message_ns: message / 2.0, byte_ns };
    Costs {
        protection: protection.name().to_owned(),
        server: Side { inbound: cost(server.0, server.1), outbound: cost(server.0, server.2) },
        client: Side { inbound: cost(client.0, client.2), outbound: cost(client.0, client.1) },
    }
}

/// The plane a + b x + c y, with none of them below 0, that has the least squares of relative distances: by
/// coordinate descent, for there are three.
fn plane(points: &[(f64, f64, f64)]) -> (f64, f64, f64) {
    // A large message's error is large as well: without weights small ones would not count.
    let weight = |x: f64, y: f64| 1.0 / (4096.0 + x + y).powi(2);
    let (mut a, mut b, mut c) = (0.0, 0.0, 0.0);
    for _ in 0..2000 {
        let best = |of: &dyn Fn(f64, f64) -> f64, rest: &dyn Fn(f64, f64) -> f64| {
            let sums = points.iter().fold((0.0, 0.0), |sums, &(x, y, z)| {
                let (along, weight) = (of(x, y), weight(x, y));
                (sums.0 + weight * along * (z - rest(x, y)), sums.1 + weight * along * along)
            });
            if sums.1 > 0.0 { (sums.0 / sums.1).max(0.0) } else { 0.0 }
        };
        a = best(&|_, _| 1.0, &|x, y| b * x + c * y);
        b = best(&|x, _| x, &|_, y| a + c * y);
        c = best(&|_, y| y, &|x, _| a + b * x);
    }
    (a, b, c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: [(u64, u64); 5] =
        [(100, 140), (117, 65_616), (117, 1_048_656), (65_648, 84), (1_048_688, 84)];

    fn samples(of: impl Fn(u64, u64) -> (f64, f64)) -> Vec<Sample> {
        SIZES.iter().map(|&bytes| Sample { bytes, ns: of(bytes.0, bytes.1) }).collect()
    }

    proptest! {
        #[test]
        fn what_is_exact_is_found(message in 0.0..20_000.0f64, up in 0.0..5.0f64, down in 0.0..5.0f64) {
            let plain = samples(|up, down| (9_000.0 + up as f64, 4_000.0 + 0.3 * down as f64));
            let more = samples(|x, y| {
                let (x, y) = (x as f64, y as f64);
                (
                    9_000.0 + x + message + up * x + down * y,
                    4_000.0 + 0.3 * y + message / 3.0 + down * x + up * y,
                )
            });
            let costs = fit(Protection::AesCmac, &more, &plain);
            let near = |one: f64, other: f64| (one - other).abs() < 1e-3 * other + 1.0;
            prop_assert!(near(costs.server.inbound.message_ns, message / 2.0), "{costs:?}");
            prop_assert!(near(1e3 * costs.server.inbound.byte_ns, 1e3 * up));
            prop_assert!(near(1e3 * costs.server.outbound.byte_ns, 1e3 * down));
            prop_assert!(near(1e3 * costs.client.outbound.byte_ns, 1e3 * down));
            prop_assert!(near(1e3 * costs.client.inbound.byte_ns, 1e3 * up));
        }

        #[test]
        fn noise_gives_no_cost_below_zero(noise in prop::collection::vec(-5e5..5e5f64, 10)) {
            let plain = samples(|_, _| (1e6, 1e6));
            let mut more = plain.clone();
            for (place, one) in more.iter_mut().enumerate() {
                one.ns = (one.ns.0 + noise[2 * place], one.ns.1 + noise[2 * place + 1]);
            }
            let costs = fit(Protection::AesGmac, &more, &plain);
            let calibration = Calibration { costs: vec![costs], ..Calibration::default() };
            prop_assert_eq!(calibration.wrong(), None);
        }
    }

    #[test]
    fn nonsense_is_named() {
        let mut costs = Costs { protection: "rot13".to_owned(), ..Costs::default() };
        let wrong = |costs: &Costs| {
            Calibration { costs: vec![costs.clone()], ..Calibration::default() }.wrong()
        };
        assert!(wrong(&costs).unwrap().contains("rot13"));
        costs.protection = "aes-cmac".to_owned();
        assert_eq!(wrong(&costs), None);
        costs.client.inbound.byte_ns = f64::NAN;
        assert!(wrong(&costs).unwrap().contains("aes-cmac"));
    }
}
