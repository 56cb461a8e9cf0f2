//! Which version has which parameter of `Set-SmbServerConfiguration` and `Set-SmbClientConfiguration`: a command with one
//! that is not there fails.
//!
//! `parameters.csv` has the first and the last version of each, from the reference of these cmdlets for Windows Server 2016,
//! 2019, 2022 and 2025 (MicrosoftDocs/windows-powershell-docs, commit ab389d39) and for 2012 R2 (jj635714). Clients have
//! the parameters of the server of their time.

use super::System;
use crate::baseline::setting::SmbObject;

const TEXT: &str = include_str!("parameters.csv");

/// Whether the version has it; of an unknown version, whether all of Windows have it. Shares have other cmdlets: their
/// properties are not listed.
pub fn has_parameter(object: &SmbObject, name: &str, system: Option<System>) -> bool {
    let object = match object {
        SmbObject::Server => "server",
        SmbObject::Client => "client",
        SmbObject::Share(_) => return true,
    };
    let row = TEXT.lines().skip(1).find_map(|line| {
        let mut fields = line.split(',');
        let is_it = fields.next()? == object && fields.next()?.eq_ignore_ascii_case(name);
        is_it.then_some((fields.next()?, fields.next().unwrap_or_default()))
    });
    let Some((first, last)) = row else { return false };
    match system {
        Some(system) => {
            let has = |name: &str| System::of_name(name).ok();
            let of = generation(system);
            of.is_some_and(|of| {
                has(first).is_some_and(|first| of >= first)
                    && has(last).is_none_or(|last| of <= last)
            })
        }
        None => first == System::Windows2012R2.name() && last.is_empty(),
    }
}

/// The server of that time; none of Samba.
fn generation(system: System) -> Option<System> {
    match system {
        System::Windows10 => Some(System::Windows2019),
        System::Windows11H24 => Some(System::Windows2025),
        system => (!system.is_samba()).then_some(system),
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::PlaceKey;
    use super::super::{Preset, rows};
    use super::*;

    /// A row has a default where its parameter exists, and none where it does not.
    #[test]
    fn versions_of_parameters_and_of_defaults_agree() {
        let mut compared = 0;
        for row in rows() {
            let objects = row.places.iter().filter_map(|place| match &place.key {
                PlaceKey::Server(name) => Some((SmbObject::Server, name)),
                PlaceKey::Client(name) => Some((SmbObject::Client, name)),
                _ => None,
            });
            let objects: Vec<_> = objects.collect();
            if objects.is_empty() {
                continue;
            }
            for system in System::ALL.into_iter().filter(|system| !system.is_samba()) {
                let has = |(object, name): &(SmbObject, &String)| {
                    has_parameter(object, name, Some(system))
                };
                let exists = objects.iter().any(has);
                match row.default_of(system) {
                    Preset::Absent => assert!(!exists, "{}: {}", row.id, system.name()),
                    // The registry may have it without the cmdlet.
                    Preset::Value(_) => {
                        let has_registry = row
                            .places
                            .iter()
                            .any(|place| matches!(place.key, PlaceKey::Registry { .. }));
                        assert!(exists || has_registry, "{}: {}", row.id, system.name());
                    }
                    Preset::Unknown => continue,
                }
                compared += 1;
            }
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn parameters_that_came_and_went() {
        let server = |name, system| has_parameter(&SmbObject::Server, name, system);
        assert!(!server("Smb2DialectMax", Some(System::Windows2022)));
        assert!(server("smb2dialectmax", Some(System::Windows2025)));
        assert!(server("EncryptionCiphers", Some(System::Windows2022)));
        assert!(!server("EncryptionCiphers", Some(System::Windows2019)));
        assert!(server("AutoDisconnectTimeout", Some(System::Windows2022)));
        assert!(!server("AutoDisconnectTimeout", Some(System::Windows2025)));
        assert!(server("RequireSecuritySignature", None) && !server("EncryptionCiphers", None));
        assert!(!server("EncryptData", Some(System::Samba422)));
    }
}
