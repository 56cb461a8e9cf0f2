//! The notes of a diagnosis: facts worth knowing whose cost in time is not known, in the order in which they are shown.

use arrow::error::ArrowError;

use super::data::{About, Note, Whole};
use super::{Explain, durability, network};
use crate::channels::ChannelFinding;
use crate::net::SmbRatio;

impl Explain {
    pub(super) fn notes(
        &mut self,
        protection_cost: Option<String>,
        channels: &[ChannelFinding],
        ratios: &[SmbRatio],
    ) -> Result<Vec<Note>, ArrowError> {
        let durability = std::mem::take(&mut self.durability).finish();
        let mut notes = Vec::new();
        let mut note = |is_worth: bool, about: About, what: String| {
            if is_worth {
                notes.push(Note { about, what });
            }
        };
        let is_protected = self.protected > self.whole.operations / 2;
        for row in ratios {
            note(true, About::Network, network::sentence(row, is_protected));
        }
        note(
            self.smb1 > 0,
            About::Smb1,
            format!(
                "{} of {} operations use SMB1, which has no encryption, hardly any pipelining, and one round trip \
                 for each block; Samba and Windows disable it by default",
                self.smb1, self.whole.operations
            ),
        );
        let Whole { busy_ns, network_ns, .. } = self.whole;
        note(
            network_ns > busy_ns / 2 && network_ns > 0,
            About::Distance,
            format!(
                "{:.0} % of the waiting time is network round trips, not the server: only fewer round trips or a \
                 shorter distance help",
                100.0 * network_ns as f64 / busy_ns.max(1) as f64
            ),
        );
        let protected = self.protected;
        if let Some(cost) = protection_cost.filter(|_| is_protected) {
            let operations = self.whole.operations;
            let what =
                format!("{protected} of {operations} operations are signed or encrypted; {cost}");
            note(true, About::Protection, what);
        }
        durability::notes(durability.as_ref(), self.sample.as_mut(), &mut note)?;
        self.connections.notes(self.smb1 > 0, &mut note);
        self.channels.notes(&self.connections, channels, &mut note);
        Ok(notes)
    }
}
