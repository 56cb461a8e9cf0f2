//! The cost of signing and encryption, per message and per byte.
//!
//! A byte of a long message may cost more than one of a short message: for AES-CCM of 1 MiB, Samba takes half as long
//! again per byte as for half a MiB, because its library copies the data into memory that it gets from the kernel and
//! returns for each message (docs/measurements). Costs are measured on the server's own machine with its own
//! library ([`Calibration`]), as time in addition to that of plain messages; so they include everything that protection
//! involves, such as another copy.

use serde::{Deserialize, Serialize};
use smbscope_tables::protection::Protection;

/// Largest costs that are plausible: a second per message, a microsecond per byte.
const MESSAGE_MAX_NS: f64 = 1e9;
const BYTE_MAX_NS: f64 = 1e3;

/// Up to this size of a message the cost of a byte is constant, bytes: a block of 64 KiB with its header.
const SHORT_BYTES: u64 = 65_536 + 1024;

/// The cost of messages in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Per message, whatever its length, ns.
    pub message_ns: f64,
    /// Per byte of a message with a block of up to 64 KiB, ns.
    pub byte_ns: f64,
    /// Longer messages in ascending order: their bytes, and the cost per byte, ns. Between them it is interpolated linearly,
    /// beyond the last it stays constant. Without any, as in older files, it is that of short messages.
    #[serde(default)]
    pub longer: Vec<(u64, f64)>,
}

impl Cost {
    /// The cost of a message of this many bytes, ns.
    pub fn of(&self, bytes: u64) -> f64 {
        self.message_ns + self.byte_ns(bytes) * bytes as f64
    }

    /// The cost per byte of a message of this many bytes, ns.
    pub fn byte_ns(&self, bytes: u64) -> f64 {
        let mut below = (SHORT_BYTES, self.byte_ns);
        for &above in &self.longer {
            if bytes < above.0 {
                let share = bytes.saturating_sub(below.0) as f64 / (above.0 - below.0) as f64;
                return below.1 + share * (above.1 - below.1);
            }
            below = above;
        }
        below.1
    }

    fn is_sound(&self) -> bool {
        let byte = |ns: f64| (0.0..=BYTE_MAX_NS).contains(&ns);
        let sizes = [SHORT_BYTES].into_iter().chain(self.longer.iter().map(|one| one.0));
        (0.0..=MESSAGE_MAX_NS).contains(&self.message_ns)
            && byte(self.byte_ns)
            && self.longer.iter().all(|one| byte(one.1))
            && sizes.is_sorted_by(|one, next| one < next)
    }
}

/// One side of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Messages that it receives: verified or decrypted.
    pub inbound: Cost,
    /// Messages that it sends: signed or encrypted.
    pub outbound: Cost,
}

/// The costs of one kind of protection at both sides.
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
    /// The cost of a request and its reply, ns: at the server, at the client.
    pub fn of(&self, bytes: (u64, u64)) -> ((f64, f64), (f64, f64)) {
        let Costs { server, client, .. } = self;
        let server = (server.inbound.of(bytes.0), server.outbound.of(bytes.1));
        (server, (client.outbound.of(bytes.0), client.inbound.of(bytes.1)))
    }
}

/// What was measured on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The machine's CPU.
    pub machine: String,
    /// The server's program and version.
    pub server: String,
    /// The client's.
    pub client: String,
    /// ISO 8601, UTC; empty in older files.
    #[serde(default)]
    pub measured_at: String,
    /// The server's time for plain messages: whole operations by their request and their reply. None in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<Side>,
    /// One for each kind of protection that was measured.
    pub costs: Vec<Costs>,
}

impl Calibration {
    /// The costs of a kind of protection.
    pub fn get(&self, protection: Protection) -> Option<&Costs> {
        self.costs.iter().find(|one| one.protection == protection.name())
    }

    /// Why it is not valid.
    pub fn wrong(&self) -> Option<String> {
        if let Some(one) =
            self.costs.iter().find(|one| Protection::of_name(&one.protection).is_none())
        {
            let names = Protection::ALL.map(Protection::name).join(", ");
            return Some(format!("`{}` is not one of {names}", one.protection));
        }
        let plain = self.plain.iter().map(|side| ("plain messages", side));
        let protected = self
            .costs
            .iter()
            .flat_map(|one| [&one.server, &one.client].map(|side| (one.protection.as_str(), side)));
        let is_sound = |side: &Side| side.inbound.is_sound() && side.outbound.is_sound();
        if let Some((of, _)) = plain.chain(protected).find(|(_, side)| !is_sound(side)) {
            return Some(format!(
                "the costs of {of} must be between 0 and {MESSAGE_MAX_NS} ns per message and {BYTE_MAX_NS} ns per byte, \
                 with longer messages in ascending order"
            ));
        }
        None
    }
}

/// Operations of one kind: the sizes of their messages, and the time of one at both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes of request and reply.
    pub bytes: (u64, u64),
    /// Time of one operation (the server's), and before and after it (the client's), ns.
    pub ns: (f64, f64),
}

/// What was measured with one kind of protection.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The protection.
    pub protection: Protection,
    /// The same operations for each protection.
    pub samples: Vec<Sample>,
}

/// The costs of one kind of protection, from its samples and those of plain messages of the same sizes in the same,
/// ascending order. Messages of either direction are assumed to cost the same without bytes.
pub fn fit(protection: Protection, samples: &[Sample], plain: &[Sample]) -> Costs {
    let [server, client] = [|one: &Sample| one.ns.0, |one: &Sample| one.ns.1].map(|of| {
        let more = samples.iter().zip(plain);
        more.map(|(one, plain)| (one.bytes.0, one.bytes.1, of(one) - of(plain))).collect::<Vec<_>>()
    });
    // Messages that the client sends are those that the server receives.
    let [(server_in, server_out), (client_out, client_in)] =
        [server, client].map(|more| of_side(&more));
    Costs {
        protection: protection.name().to_owned(),
        server: Side { inbound: server_in, outbound: server_out },
        client: Side { inbound: client_in, outbound: client_out },
    }
}

/// The server's time for plain messages, from samples in ascending order.
pub fn fit_plain(samples: &[Sample]) -> Side {
    let times = samples.iter().map(|one| (one.bytes.0, one.bytes.1, one.ns.0));
    let (inbound, outbound) = of_side(&times.collect::<Vec<_>>());
    Side { inbound, outbound }
}

/// The costs of requests and of replies, from the bytes of both and the additional time, ns.
fn of_side(more: &[(u64, u64, f64)]) -> (Cost, Cost) {
    let short = more.iter().filter(|one| one.0.max(one.1) <= SHORT_BYTES);
    let (message, byte_in, byte_out) =
        plane(&short.map(|&(x, y, ns)| (x as f64, y as f64, ns)).collect::<Vec<_>>());
    let cost = |byte_ns: f64, other_byte_ns: f64, bytes: fn(&(u64, u64, f64)) -> (u64, u64)| {
        let long = more.iter().map(|one| (bytes(one), one.2)).filter(|one| one.0.0 > SHORT_BYTES);
        let rate = |(bytes, ns): ((u64, u64), f64)| {
            let own_ns = ns - message - other_byte_ns * bytes.1 as f64;
            (bytes.0, (own_ns / bytes.0 as f64).max(0.0))
        };
        Cost { message_ns: message / 2.0, byte_ns, longer: long.map(rate).collect() }
    };
    (
        cost(byte_in, byte_out, |&(request, reply, _)| (request, reply)),
        cost(byte_out, byte_in, |&(request, reply, _)| (reply, request)),
    )
}

/// The plane a + b x + c y, with no negative coefficient and the least squares of relative distances, by coordinate
/// descent.
fn plane(points: &[(f64, f64, f64)]) -> (f64, f64, f64) {
    // The error of a large message is large as well: without weights small ones would not count.
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

    const SIZES: [(u64, u64); 7] = [
        (100, 140),
        (117, 65_616),
        (117, 524_368),
        (117, 1_048_656),
        (65_648, 84),
        (524_400, 84),
        (1_048_688, 84),
    ];

    fn samples(of: impl Fn(u64, u64) -> (f64, f64)) -> Vec<Sample> {
        SIZES.iter().map(|&bytes| Sample { bytes, ns: of(bytes.0, bytes.1) }).collect()
    }

    proptest! {
        #[test]
        fn what_is_exact_is_found(
            message in 0.0..20_000.0f64,
            up in 0.0..5.0f64,
            down in 0.0..5.0f64,
            long in 1.0..2.0f64,
        ) {
            let plain = samples(|up, down| (9_000.0 + up as f64, 4_000.0 + 0.3 * down as f64));
            // A byte of a MiB costs more.
            let times = |bytes: u64| if bytes > 1_000_000 { long } else { 1.0 } * bytes as f64;
            let more = samples(|x, y| {
                let (up_ns, down_ns) = (times(x) * up, times(y) * down);
                let (up_client_ns, down_client_ns) = (times(x) * down, times(y) * up);
                let (x, y) = (x as f64, y as f64);
                (
                    9_000.0 + x + message + up_ns + down_ns,
                    4_000.0 + 0.3 * y + message / 3.0 + up_client_ns + down_client_ns,
                )
            });
            let costs = fit(Protection::AesCmac, &more, &plain);
            let near = |one: f64, other: f64| (one - other).abs() < 1e-3 * other + 1.0;
            let side = |side: &Side, message: f64, [into, out]: [f64; 2]| {
                near(side.inbound.message_ns, message / 2.0)
                    && [(&side.inbound, into), (&side.outbound, out)].iter().all(|(cost, byte_ns)| {
                        SIZES.iter().all(|&(bytes, _)| {
                            near(1e3 * cost.byte_ns(bytes), 1e3 * byte_ns * times(bytes) / bytes as f64)
                        })
                    })
            };
            prop_assert!(side(&costs.server, message, [up, down]), "{costs:?}");
            prop_assert!(side(&costs.client, message / 3.0, [up, down]), "{costs:?}");
        }

        #[test]
        fn between_sizes_it_is_between_their_costs(bytes in 1..3_000_000u64) {
            let longer = vec![(262_256, 1.4), (524_400, 1.4), (1_048_688, 2.0)];
            let cost = Cost { message_ns: 500.0, byte_ns: 1.5, longer };
            prop_assert!(cost.is_sound());
            prop_assert!((1.4..=2.0).contains(&cost.byte_ns(bytes)));
            prop_assert!(cost.of(bytes) <= cost.of(bytes + 1));
            let old = Cost { longer: Vec::new(), ..cost };
            prop_assert_eq!(old.of(bytes), 500.0 + 1.5 * bytes as f64);
        }

        #[test]
        fn noise_gives_no_cost_below_zero(noise in prop::collection::vec(-5e5..5e5f64, 2 * SIZES.len())) {
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
    fn whole_operations_are_those_that_were_measured() {
        let of = |up: u64, down: u64| 30_000.0 + 0.3 * up as f64 + 0.15 * down as f64;
        let plain = fit_plain(&samples(|up, down| (of(up, down), 0.0)));
        for (up, down) in SIZES {
            let found = plain.inbound.of(up) + plain.outbound.of(down);
            assert!((found / of(up, down) - 1.0).abs() < 0.01, "{up} {down}: {found}");
        }
        let calibration = Calibration { plain: Some(plain), ..Calibration::default() };
        assert_eq!(calibration.wrong(), None);
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
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
        costs.client.inbound.byte_ns = 0.0;
        for longer in
            [vec![(1 << 20, -1.0)], vec![(1000, 1.0)], vec![(1 << 20, 1.0), (1 << 20, 2.0)]]
        {
            costs.client.inbound.longer = longer;
            assert!(wrong(&costs).unwrap().contains("aes-cmac"));
        }
    }
}
