//! Processes that serve files on Windows, as the script of `--print-windows-script` writes them.
//!
//! `Get-NetTCPConnection` (`OwningProcess`) and `Get-Process` (`ProcessorAffinity`, a mask of the processors of a group).

use serde::{Deserialize, Serialize};

use crate::input::powershell::Object;

/// A process that listens on a port of a file server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProcess {
    pub id: u32,
    pub name: String,
    /// `None` where Windows refuses it, as for System.
    pub affinity: Option<u64>,
}

/// The longest name that is kept.
const NAME_MAX: usize = 256;

pub(super) fn read(object: &Object) -> Option<ServerProcess> {
    let id = object.number(&["serverprocessid"])?;
    let name = object.text(&["processname"])?.chars().take(NAME_MAX).collect();
    let affinity = object.text(&["processoraffinity"]);
    // PowerShell writes the mask as a number with a sign.
    let affinity = affinity.and_then(|text| text.trim().parse::<i64>().ok());
    Some(ServerProcess { id, name, affinity: affinity.map(i64::cast_unsigned) })
}
