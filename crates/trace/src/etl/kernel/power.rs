//! Frequencies of CPUs: events of the provider Microsoft-Windows-Kernel-Processor-Power.
//!
//! Fields are those of its manifest (build 18990), which does not say units. `Speed` and `DeliveredFrequency` are taken
//! for MHz, as the message of event 55 has it for the nominal frequency; a value that is not plausible next to the
//! frequency in the header of the log is left out.

use crate::etl::record::{Origin, Record};
use crate::windows::{Fields, Guid, Provider};

/// Its GUID.
pub const PROVIDER: Guid = Provider::ProcessorPower.guid();

/// A CPU gets another performance state: of its own, and of another kind in later builds.
const STATE_CHANGES: [u16; 2] = [10, 18];
/// What a CPU delivered in the time before.
const DELIVERED: u16 = 111;
/// First version with its frequency.
const DELIVERED_VERSION: u16 = 2;
/// A plausible frequency, compared with that of the header.
const MIN_SHARE: f64 = 0.02;
const LARGEST_SHARE: f64 = 4.0;

/// The frequency of a CPU, from an event on or in the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    pub group: u16,
    pub number: u8,
    pub mhz: u32,
    /// The time before the event that it is about.
    pub before_us: Option<u64>,
}

/// Whether an event is one of these.
pub fn is_event(origin: Origin, version: u16) -> bool {
    let Origin::Manifest { guid, id } = origin else { return false };
    guid == PROVIDER.0
        && (STATE_CHANGES.contains(&id) || id == DELIVERED && version >= DELIVERED_VERSION)
}

/// What such an event says; `None` if it is too short.
pub fn parse(record: &Record<'_>) -> Option<Frequency> {
    let Origin::Manifest { id, .. } = record.origin else { return None };
    let mut fields = Fields::new(record.payload);
    if id == DELIVERED {
        let (group, number) = (fields.u16()?, fields.u8()?);
        fields.u32()?;
        let before_us = Some(fields.u64()?);
        return Some(Frequency { group, number, mhz: fields.u32()?, before_us });
    }
    fields.u32()?;
    let mhz = fields.u32()?;
    Some(Frequency { group: fields.u16()?, number: fields.u8()?, mhz, before_us: None })
}

/// Whether a number of MHz is plausible on a machine whose header says `header_mhz`.
pub fn is_plausible(mhz: u32, header_mhz: u32) -> bool {
    let share = f64::from(mhz) / f64::from(header_mhz);
    header_mhz > 0 && (MIN_SHARE..=LARGEST_SHARE).contains(&share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u16, version: u16, payload: &[u8]) -> Record<'_> {
        Record {
            origin: Origin::Manifest { guid: PROVIDER.0, id },
            version,
            cpu: 0,
            ticks: 5,
            pointer_bytes: 8,
            payload,
            thread: 0,
            keyword: 1,
            stride_bytes: payload.len() + 80,
        }
    }

    #[test]
    fn frequencies_are_those_of_the_processor_in_the_fields() {
        let mut change = Vec::new();
        change.extend(7_u32.to_le_bytes());
        change.extend(1_200_u32.to_le_bytes());
        change.extend(1_u16.to_le_bytes());
        change.push(3);
        change.extend([9; 8]);
        let expected = Frequency { group: 1, number: 3, mhz: 1_200, before_us: None };
        for (id, version) in [(10, 0), (10, 4), (18, 2)] {
            let record = record(id, version, &change);
            assert!(is_event(record.origin, record.version));
            assert_eq!(parse(&record), Some(expected));
        }
        let mut delivered = vec![0, 0, 2];
        delivered.extend(55_u32.to_le_bytes());
        delivered.extend(15_000_u64.to_le_bytes());
        delivered.extend(1_800_u32.to_le_bytes());
        let record = record(111, 2, &delivered);
        let expected = Frequency { group: 0, number: 2, mhz: 1_800, before_us: Some(15_000) };
        assert_eq!(parse(&record), Some(expected));
        assert!(is_event(record.origin, 2) && !is_event(record.origin, 1));
        for length in 0..delivered.len() {
            assert_eq!(parse(&Record { payload: &delivered[..length], ..record }), None);
        }
        assert!(!is_event(Origin::Manifest { guid: [0; 16], id: 10 }, 0));
    }

    #[test]
    fn other_units_are_not_plausible() {
        assert!(is_plausible(800, 2_600) && is_plausible(3_900, 2_600));
        assert!(!is_plausible(100, 0));
        for of_another_unit in [45, 2_600_000, 0] {
            assert!(!is_plausible(of_another_unit, 2_600), "{of_another_unit}");
        }
    }
}
