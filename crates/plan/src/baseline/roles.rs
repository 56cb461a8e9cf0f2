//! What the machine is that a baseline is for, and which policies of an input are for it.
//!
//! Owns the words by which policies name their machine: "Domain Controller" and "Member Server" (Microsoft, DISA), "DC only" and
//! "MS only" (CIS). What names no machine is for all.

use serde::{Deserialize, Serialize};

use super::catalogue::{Role, System};

/// What the machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineRole {
    /// A server that clients get files from. Its client side is about connections that it makes itself.
    #[default]
    FileServer,
    /// The same; clients get policies and logon scripts from it.
    DomainController,
    /// A workstation.
    Client,
    /// Both sides of the connections in question: the baseline is for servers and clients.
    Both,
}

impl MachineRole {
    /// All, for the command line.
    pub const ALL: [MachineRole; 4] = [
        MachineRole::FileServer,
        MachineRole::DomainController,
        MachineRole::Client,
        MachineRole::Both,
    ];

    /// The word for the command line.
    pub fn name(self) -> &'static str {
        match self {
            MachineRole::FileServer => "file-server",
            MachineRole::DomainController => "domain-controller",
            MachineRole::Client => "client",
            MachineRole::Both => "both",
        }
    }

    /// The role of that name.
    ///
    /// # Errors
    ///
    /// A sentence with the names that exist.
    pub fn of_name(name: &str) -> Result<MachineRole, String> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            format!(
                "unknown role `{name}`: expected one of {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }

    /// The role of machines of that version, where nothing else is said.
    pub fn of_system(system: Option<System>) -> MachineRole {
        match system {
            Some(System::Windows10 | System::Windows11H24) => MachineRole::Client,
            _ => MachineRole::FileServer,
        }
    }

    /// Whether settings of that side act on the connections in question.
    pub fn has(self, side: Role) -> bool {
        match side {
            Role::Both => true,
            Role::Server => self != MachineRole::Client,
            Role::Client => matches!(self, MachineRole::Client | MachineRole::Both),
        }
    }

    /// Whether a policy, or a setting, with this name is for machines of this role.
    pub fn takes(self, name: &str) -> bool {
        match (of_policy(name), self) {
            (None, _) | (_, MachineRole::Both) => true,
            (Some(one), role) => one == role,
        }
    }
}

/// The machines that a policy's name says it is for; none if it does not say.
pub fn of_policy(name: &str) -> Option<MachineRole> {
    let name = name.to_lowercase().replace(['-', '_'], " ");
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let controller = has(&["domain controller", "(dc only)", "dc only", "(dc)", " dc "]);
    let member = has(&["member server", "(ms only)", "ms only", "(ms)", " ms ", "file server"]);
    match (controller, member) {
        (true, false) => Some(MachineRole::DomainController),
        (false, true) => Some(MachineRole::FileServer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_machines() {
        for (name, role) in [
            ("MSFT Windows Server 2022 - Domain Controller", Some(MachineRole::DomainController)),
            ("MSFT Windows Server 2022 - Member Server", Some(MachineRole::FileServer)),
            (
                "Configure 'Network access: Named Pipes' (DC only)",
                Some(MachineRole::DomainController),
            ),
            ("Configure 'Network access: Named Pipes' (MS only)", Some(MachineRole::FileServer)),
            ("L1 - Domain Controller and Member Server", None),
            ("MSFT Windows 11 - Computer", None),
        ] {
            assert_eq!(of_policy(name), role, "{name}");
        }
        let (server, both) = (MachineRole::FileServer, MachineRole::Both);
        assert!(!server.takes("x - Domain Controller") && both.takes("x - Domain Controller"));
        assert!(!server.has(Role::Client) && both.has(Role::Client) && server.has(Role::Both));
        assert!(MachineRole::of_name("server").unwrap_err().contains("file-server"));
    }
}
