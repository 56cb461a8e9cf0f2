//! Whether a setting that the catalogue does not have can slow file serving by SMB 2 and 3, by where it is set.
//!
//! What protects more than file serving (virus scanners, firewalls, isolation by virtualization) can slow it, and no search
//! may switch it off. Sources: the places of the drivers in the path of a request (srv2, srvnet, tcpip, ndis, ntfs, the
//! cache); [MS-GPAC] for the subcategories of auditing; "Performance tuning for file servers" (Microsoft).

use crate::baseline::setting::{Place, Scope, SmbObject};

/// What a search may do with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It can slow file serving, and commands take it back.
    Files,
    /// It can, and it must be taken back by hand: why.
    ByHand(&'static str),
    /// It cannot.
    Nothing,
}

/// Keys of the computer whose values act on requests, in lower case.
const FILES: [&str; 5] = [
    r"system\currentcontrolset\services\lanmanserver\parameters",
    r"system\currentcontrolset\services\srv2\parameters",
    r"system\currentcontrolset\services\srvnet\parameters",
    r"software\policies\microsoft\windows\lanmanserver",
    r"software\policies\microsoft\peerdist",
];

/// Keys of the client side, which count for connections that the machine makes itself.
const CLIENT: [&str; 6] = [
    r"system\currentcontrolset\services\lanmanworkstation\parameters",
    r"system\currentcontrolset\services\mrxsmb\parameters",
    r"system\currentcontrolset\services\rdbss\parameters",
    r"software\policies\microsoft\windows\lanmanworkstation",
    r"software\policies\microsoft\windows\networkprovider",
    r"software\policies\microsoft\windows\netcache",
];

const SCANS: &str = "it may scan each file that is opened; it protects more than file serving";
const FILTERS: &str = "it filters each connection; it protects more than file serving";
const ISOLATES: &str =
    "isolation by virtualization takes CPU time of all drivers; it protects more than file serving";
const SHARED: &str = "it is about more than file serving, and what it decides is not known";
const BY_HAND: [(&str, &str); 15] = [
    (r"software\policies\microsoft\windows defender", SCANS),
    (r"software\policies\microsoft\microsoft antimalware", SCANS),
    (r"software\policies\microsoft\windowsfirewall", FILTERS),
    (r"software\policies\microsoft\windows\ipsec", FILTERS),
    (r"software\policies\microsoft\windows\deviceguard", ISOLATES),
    (r"system\currentcontrolset\control\deviceguard", ISOLATES),
    (r"software\policies\microsoft\windows\psched", SHARED),
    (r"software\policies\microsoft\windows\qos", SHARED),
    (r"system\currentcontrolset\services\tcpip\parameters", SHARED),
    (r"system\currentcontrolset\services\tcpip6\parameters", SHARED),
    (r"system\currentcontrolset\services\afd\parameters", SHARED),
    (r"system\currentcontrolset\services\ndis\parameters", SHARED),
    (r"system\currentcontrolset\control\filesystem", SHARED),
    (r"system\currentcontrolset\control\session manager\memory management", SHARED),
    (r"system\currentcontrolset\control\session manager\executive", SHARED),
];

/// Subcategories with an event for each access, connection or logon: object access, logon, use of privileges.
const AUDITED: [(&str, &str); 14] = [
    ("921d", "file system"),
    ("921f", "kernel object"),
    ("9223", "handle manipulation"),
    ("9224", "file share"),
    ("9225", "filtering platform packet drop"),
    ("9226", "filtering platform connection"),
    ("9244", "detailed file share"),
    ("9246", "central policy staging"),
    ("9215", "logon"),
    ("9216", "logoff"),
    ("921b", "special logon"),
    ("9249", "group membership"),
    ("9228", "sensitive privilege use"),
    ("9229", "non sensitive privilege use"),
];

/// Names that decide whether a driver runs, not how fast.
const STARTS: [&str; 4] = ["start", "dependonservice", "imagepath", "requiredprivileges"];

/// What a place that the catalogue does not have can do; on a machine that is asked about as a client too, if `is_client`.
pub fn reach(place: &Place, is_client: bool) -> Reach {
    match place.key() {
        Place::Registry { scope: Scope::Computer, key, name } => {
            of_registry(&key, &name, if is_client { &CLIENT } else { &[] })
        }
        Place::Audit { subcategory } => {
            let is_it = |(code, name): &(&str, &str)| {
                subcategory.starts_with(&format!("{{0cce{code}-")) || subcategory == *name
            };
            if AUDITED.iter().any(is_it) { Reach::Files } else { Reach::Nothing }
        }
        Place::Template { section, name } => {
            let is_audit = section == "event audit"
                && matches!(name.as_str(), "auditlogonevents" | "auditprivilegeuse");
            if is_audit { Reach::Files } else { Reach::Nothing }
        }
        Place::Smb { object: SmbObject::Client, .. } if !is_client => Reach::Nothing,
        Place::Smb { .. } => Reach::Files,
        Place::Samba { .. } => {
            Reach::ByHand("it is not known what else this parameter of smb.conf decides")
        }
        Place::Registry { .. } | Place::Wire { .. } | Place::Extension { .. } => Reach::Nothing,
    }
}

fn of_registry(key: &str, name: &str, client: &[&str]) -> Reach {
    let below = |prefix: &str| {
        key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
    };
    if STARTS.contains(&name) {
        return Reach::Nothing;
    }
    if let Some((_, why)) = BY_HAND.iter().find(|(prefix, _)| below(prefix)) {
        return Reach::ByHand(why);
    }
    if FILES.iter().chain(client).any(|prefix| below(prefix)) {
        return Reach::Files;
    }
    Reach::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_nothing_to_do_with_file_serving_cannot_be_taken_back() {
        let reg = |key: &str, name: &str| {
            let (scope, key, name) = (Scope::Computer, key.to_owned(), name.to_owned());
            reach(&Place::Registry { scope, key, name }, false)
        };
        let policies = r"SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System";
        assert_eq!(reg(policies, "EnableLUA"), Reach::Nothing);
        assert_eq!(
            reg(r"SYSTEM\CurrentControlSet\Control\Lsa", "RestrictAnonymous"),
            Reach::Nothing
        );
        assert_eq!(reg(r"SYSTEM\CurrentControlSet\Services\MrxSmb10", "Start"), Reach::Nothing);
        let server = r"SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters";
        assert_eq!(reg(server, "SomethingNew"), Reach::Files);
        assert_eq!(
            reg(r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "Start"),
            Reach::Nothing
        );
        let scan = r"SOFTWARE\Policies\Microsoft\Windows Defender\Real-Time Protection";
        assert!(matches!(reg(scan, "DisableRealtimeMonitoring"), Reach::ByHand(_)));
        let audit = |name: &str| reach(&Place::Audit { subcategory: name.to_owned() }, false);
        assert_eq!(audit("{0CCE9226-69AE-11D9-BED3-505054503030}"), Reach::Files);
        assert_eq!(audit("Logoff"), Reach::Files);
        assert_eq!(audit("User Account Management"), Reach::Nothing);
        let rights = Place::Template {
            section: "Privilege Rights".to_owned(),
            name: "SeNetworkLogonRight".to_owned(),
        };
        assert_eq!(reach(&rights, true), Reach::Nothing);
        let client = Place::Registry {
            scope: Scope::Computer,
            key: r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters".to_owned(),
            name: "Something".to_owned(),
        };
        assert_eq!((reach(&client, false), reach(&client, true)), (Reach::Nothing, Reach::Files));
    }
}
