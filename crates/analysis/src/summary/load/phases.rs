//! Which operations count: the phase of each execution by its number, in half a byte
//! each.

use hashbrown::HashMap;
use smbscope_tables::run::{COOL_DOWN, MEASURED, WARM_UP};

/// What an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// No scenario is known: a logon, a notification that outlives its scenario.
    Without = 0,
    WarmUp = 1,
    Measured = 2,
    CoolDown = 3,
    /// Measured, in a step that was not requested.
    OtherStep = 4,
}

impl Phase {
    pub(crate) const ALL: [Phase; 5] =
        [Phase::Measured, Phase::OtherStep, Phase::WarmUp, Phase::CoolDown, Phase::Without];

    /// The phase of that name in the table of scenarios.
    pub(crate) fn from_name(name: &str) -> Phase {
        match name {
            WARM_UP => Phase::WarmUp,
            MEASURED => Phase::Measured,
            COOL_DOWN => Phase::CoolDown,
            _ => Phase::Without,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Without => "no scenario",
            Phase::WarmUp => WARM_UP,
            Phase::Measured => MEASURED,
            Phase::CoolDown => COOL_DOWN,
            Phase::OtherStep => "measured, other steps",
        }
    }

    fn from_bits(bits: u8) -> Phase {
        match bits {
            1 => Phase::WarmUp,
            2 => Phase::Measured,
            3 => Phase::CoolDown,
            4 => Phase::OtherStep,
            _ => Phase::Without,
        }
    }
}

/// Executions in one block.
const BLOCK: u64 = 4096;
/// Most blocks: 67 million executions that follow each other, 32 MiB.
const BLOCKS_MAX: usize = 1 << 14;

type Block = [u8; BLOCK as usize / 2];

/// The phases of executions, by recording and number.
#[derive(Clone, Default)]
pub(crate) struct Phases {
    blocks: HashMap<(u32, u64), Box<Block>, foldhash::fast::RandomState>,
    /// Executions that found no room.
    pub(crate) forgotten: u64,
}

impl Phases {
    pub(crate) fn set(&mut self, recording: u32, scenario_run: u64, phase: Phase) {
        let key = (recording, scenario_run / BLOCK);
        if self.blocks.len() >= BLOCKS_MAX && !self.blocks.contains_key(&key) {
            self.forgotten += 1;
            return;
        }
        let block = self.blocks.entry(key).or_insert_with(|| Box::new([0; BLOCK as usize / 2]));
        let (place, shift) = place(scenario_run);
        if let Some(byte) = block.get_mut(place) {
            *byte = *byte & !(0xf << shift) | (phase as u8) << shift;
        }
    }

    pub(crate) fn get(&self, recording: u32, scenario_run: u64) -> Phase {
        let block = self.blocks.get(&(recording, scenario_run / BLOCK));
        let (place, shift) = place(scenario_run);
        let bits = block.and_then(|block| block.get(place)).map_or(0, |byte| byte >> shift & 0xf);
        Phase::from_bits(bits)
    }
}

fn place(scenario_run: u64) -> (usize, u32) {
    let within = scenario_run % BLOCK;
    ((within / 2) as usize, (within % 2) as u32 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_execution_has_its_own_phase() {
        let mut phases = Phases::default();
        let of = |number: u64| Phase::ALL[(number % 5) as usize];
        let numbers = || (0..10_000).chain([u64::MAX - 1, u64::MAX]);
        numbers().for_each(|number| phases.set(1, number, of(number)));
        assert!(numbers().all(|number| phases.get(1, number) == of(number)));
        assert_eq!(phases.get(2, 0), Phase::Without);
        assert_eq!(phases.get(1, 20_000), Phase::Without);
    }

    #[test]
    fn numbers_that_are_far_apart_are_bounded_and_counted() {
        let mut phases = Phases::default();
        for number in 0..BLOCKS_MAX as u64 + 10 {
            phases.set(0, number * BLOCK, Phase::Measured);
        }
        assert_eq!((phases.blocks.len(), phases.forgotten), (BLOCKS_MAX, 10));
    }
}
