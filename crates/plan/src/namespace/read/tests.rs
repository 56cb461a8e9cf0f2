//! Each form on the smallest file that has it, published samples, and damaged files.

use super::super::form::{Form, STATE_DETAIL};
use super::super::model::{Kind, Namespace, PriorityClass, State};
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

mod damaged;
mod directory;

fn files(all: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

fn reading(text: &str) -> Reading {
    let reading = read(&files(&[("file.txt", text)])).unwrap();
    assert_eq!(reading.unknown.list, []);
    reading
}

fn one(text: &str) -> ReadNamespace {
    let reading = reading(text);
    assert_eq!(reading.namespaces.len(), 1);
    reading.namespaces.into_iter().next().unwrap()
}

fn paths(namespace: &Namespace) -> Vec<String> {
    let targets = namespace.links.iter().flat_map(|link| {
        link.targets
            .iter()
            .map(move |target| format!("{} {}\\{}", link.path, target.server, target.share))
    });
    targets.collect()
}

#[test]
fn an_export_of_2003_is_read() {
    let read = one(include_str!("../../../tests/namespace/export-2003.xml"));
    assert_eq!(read.form, Form::Export2003);
    let namespace = &read.namespace;
    assert_eq!((namespace.host.as_str(), namespace.name.as_str()), ("CORP", "Shared"));
    assert_eq!((namespace.ttl_s, namespace.flags.site_costing), (Some(300), Some(true)));
    assert_eq!(namespace.targets[1].server, "DFSHOST2");
    assert_eq!(
        paths(namespace),
        [
            "Sales store1\\sales",
            "Sales store2\\sales",
            "tools store1\\tools",
            "manuals store2\\manuals"
        ]
    );
    assert_eq!(namespace.links[0].state, State::Online);
    let lines: Vec<u32> = read.link_places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [5, 9, 12]);
}

#[test]
fn an_export_of_2008_is_read() {
    let text = include_str!("../../../tests/namespace/export-2008.xml");
    let read = one(text);
    assert_eq!(read.form, Form::Export2008);
    assert_eq!(paths(&read.namespace), ["Sales STORE1\\Sales"]);
    assert_eq!(read.namespace.links[0].targets[0].state, State::Online);
    // Values that are not known are kept as they are.
    assert_eq!(read.namespace.state, State::Other(0));
    assert_eq!(read.namespace.other["export:ABDE"], "?");
    assert_eq!(read.namespace.other[STATE_DETAIL], "?");
}

#[test]
fn exports_keep_what_they_do_not_know_and_repair_ampersands() {
    let text = "<?xml version=\"1.0\"?>\n<Root Name=\"\\\\d\\n\" State=\"OK\" Timeout=\"300\" SITECOSTING=\"ENABLED\" ABDE=\"DISABLED\">\n\
        <Link Name=\"R&D\" State=\"OFFLINE\" Timeout=\"60\" PRIORITY=\"7\"><Target State=\"OFFLINE\" >\\\\s\\R&D &amp; more\\x</Target></Link></Root>";
    let namespace = one(text).namespace;
    assert_eq!(namespace.flags.site_costing, Some(true));
    assert_eq!(namespace.flags.access_based_enumeration, Some(false));
    assert_eq!(namespace.other[SWITCH], "ENABLED");
    let link = &namespace.links[0];
    assert_eq!((link.path.as_str(), link.state), ("R&D", State::Offline));
    assert_eq!(link.other["export:PRIORITY"], "7");
    assert_eq!(link.targets[0].share, "R&D & more\\x");
    assert_eq!(link.targets[0].state, State::Offline);

    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let again = read(&[("x.xml".to_owned(), utf16)]).unwrap();
    assert_eq!(again.namespaces[0].namespace, namespace);
    let mut ansi = text.replace("R&D\"", "B\u{1}ro\"").into_bytes();
    for byte in &mut ansi {
        if *byte == 1 {
            *byte = 0xfc;
        }
    }
    let again = read(&[("x.xml".to_owned(), ansi)]).unwrap();
    assert_eq!(again.namespaces[0].namespace.links[0].path, "Büro");
}

#[test]
fn a_view_is_read() {
    let read =
        read(&files(&[("view.txt", include_str!("../../../tests/namespace/view-2003-2008.txt"))]))
            .unwrap();
    assert_eq!(read.unknown.count(), 0);
    let view = &read.namespaces[0];
    assert_eq!((view.form, view.blob_bytes), (Form::View, Some(812)));
    assert_eq!(view.namespace.kind, Some(Kind::DomainV1));
    assert_eq!(view.namespace.flags.site_costing, Some(true));
    assert_eq!(view.namespace.targets[0].other["view:site"], "Site-A");
    assert_eq!(paths(&view.namespace), ["manuals host1\\manuals", "manuals host2\\manuals"]);
}

#[test]
fn a_cache_is_read() {
    let text = include_str!("../../../tests/namespace/pktinfo.txt");
    let read = read(&files(&[("PC17.txt", text)])).unwrap();
    assert_eq!(read.caches.len(), 1);
    let cache = &read.caches[0];
    assert_eq!((cache.client.as_str(), cache.read_at_s, cache.referrals.len()), ("PC17", None, 2));
    let first = &cache.referrals[0];
    assert_eq!(first.entry, "corp.example\\Scans");
    assert_eq!((first.expires_s, first.use_count, first.kind), (Some(4), Some(1), Some(0x81)));
    let statuses: Vec<_> = first.targets.iter().map(|target| target.access_status).collect();
    assert_eq!(statuses, [None, Some(0xc000_00be), Some(0)]);
    let marks: Vec<_> =
        first.targets.iter().map(|target| (target.active, target.target_set)).collect();
    assert_eq!(marks, [(false, true), (false, true), (true, false)]);
    assert_eq!(
        (first.targets[1].server.as_str(), first.targets[1].share.as_str()),
        ("EAST-2", "Scans")
    );
}

#[test]
fn caches_name_their_client_their_time_and_open_files() {
    let text = "Client: PC1\nCollected: 1970-01-01T00:01:00Z\nOpen: \\\\d\\n\\a.xlsx\nC:\\>dfsutil cache referral\n\
        4 entries\nEntry: \\d\\n\nShortEntry: \\d\\n\nExpires in 20 seconds\nUseCount: 0 Type:0x81 ( REFERRAL_SVC DFS )\n  0:[\\s\\n] ( TARGETSET )\n\
        Client: PC2\nEntry: \\d\\n\n  0:[\\t\\n] AccessStatus: 0 ( ACTIVE TARGETSET )\nDone processing this command.\n";
    let read = read(&files(&[("all.txt", text)])).unwrap();
    let clients: Vec<&str> = read.caches.iter().map(|cache| cache.client.as_str()).collect();
    assert_eq!(clients, ["PC1", "PC2"]);
    assert_eq!(read.caches[0].read_at_s, Some(60));
    assert_eq!(read.caches[0].open_files, ["\\\\d\\n\\a.xlsx"]);
    assert!(read.caches[1].referrals[0].targets[0].active);
    assert_eq!(read.unknown.count(), 1);
}

#[test]
fn objects_in_lists_are_read() {
    let root = include_str!("../../../tests/namespace/Get-DfsnRoot.txt");
    let target = include_str!("../../../tests/namespace/Get-DfsnFolderTarget.txt");
    let read = read(&files(&[("root.txt", root), ("target.txt", target)])).unwrap();
    assert_eq!(read.unknown.list, []);
    assert_eq!(read.namespaces.len(), 1);
    let namespace = &read.namespaces[0].namespace;
    assert_eq!((namespace.host.as_str(), namespace.name.as_str()), ("Corp", "SalesFiles"));
    assert_eq!((namespace.kind, namespace.ttl_s), (Some(Kind::Standalone), Some(300)));
    assert_eq!(namespace.flags.site_costing, Some(true));
    assert_eq!(namespace.flags.target_failback, Some(false));
    let link = &namespace.links[0];
    assert_eq!(link.path, "OldTools");
    assert_eq!(link.targets[0].server, "Corp-Store");
    assert_eq!(link.targets[0].priority_class, Some(PriorityClass::SiteCostNormal));
    assert_eq!(link.targets[0].priority_rank, Some(0));
    assert_eq!(link.targets[0].other, std::collections::BTreeMap::new());
    assert_eq!(read.namespaces[0].link_places, [Place { file: 1, line: 1 }]);
}

#[test]
fn objects_as_tables_csv_and_json_are_the_same() {
    let table = "Path            Type      State  TimeToLiveSec Description\n----            ----      -----  ------------- -----------\n\\\\c.com\\Public  Domain V2 Online 300           files\n\n\
        Path             State  TimeToLiveSec\n----             -----  -------------\n\\\\c.com\\Public\\A Offline 1800\n";
    // The state is longer than its heading's column: PowerShell makes columns as wide as their values.
    let table = table.replace(
        "State  TimeToLiveSec\n----             -----  ---",
        "State   TimeToLiveSec\n----             -----   ---",
    );
    let csv = "#TYPE Microsoft.Management\n\"Path\",\"Type\",\"State\",\"TimeToLiveSec\",\"Description\"\n\"\\\\c.com\\Public\",\"Domain V2\",\"Online\",\"300\",\"files\"\n\"\\\\c.com\\Public\\A\",\"\",\"Offline\",\"1800\",\"\"\n";
    let json = r#"{"Roots": {"Path": "\\\\c.com\\Public", "Type": "Domain V2", "State": "Online", "TimeToLiveSec": 300, "Description": "files", "CimClass": {"a": 1}},
        "Folders": [{"Path": "\\\\c.com\\Public\\A", "State": "Offline", "TimeToLiveSec": 1800}]}"#;
    let from_table = one(&table).namespace;
    assert_eq!(from_table.kind, Some(Kind::DomainV2));
    assert_eq!(from_table.comment.as_deref(), Some("files"));
    assert_eq!(
        (from_table.links[0].path.as_str(), from_table.links[0].state),
        ("A", State::Offline)
    );
    assert_eq!(one(csv).namespace, from_table);
    assert_eq!(one(&csv.replace(',', ";")).namespace, from_table);
    assert_eq!(one(json).namespace, from_table);
    let flags =
        json.replace("\"CimClass\"", "\"Flags\": \"Target Failback Site Costing\", \"CimClass\"");
    let flags = one(&flags).namespace.flags;
    assert_eq!((flags.target_failback, flags.site_costing), (Some(true), Some(true)));
    assert_eq!(flags.insite_referrals, Some(false));
    let numbers = json.replace("\"Online\"", "1");
    let read = read(&files(&[("a.json", &numbers)])).unwrap();
    assert!(read.unknown.list[0].text.contains("select its text"));
}

#[test]
fn commands_are_read() {
    let script = "# made by hand\nNew-DfsnRoot -Path \"\\\\c.com\\Public\" -TargetPath '\\\\r1\\Public' -Type DomainV2 -EnableSiteCosting $true\n\
        New-DfsnFolder -Path '\\\\c.com\\Public\\it''s' `\n    -TargetPath '\\\\fs1\\a' -TargetState Offline -TimeToLiveSec 60 # shared\n\
        New-DfsnFolderTarget -Path:'\\\\c.com\\Public\\it''s' -TargetPath \\\\fs2\\a -ReferralPriorityClass global-high; Set-DfsnFolder -Path '\\\\c.com\\Public\\it''s' -Description 'x'\n";
    let read = one(script);
    assert_eq!(read.form, Form::Script);
    let namespace = &read.namespace;
    assert_eq!(namespace.kind, Some(Kind::DomainV2));
    assert_eq!(namespace.flags.site_costing, Some(true));
    assert_eq!(paths(namespace), ["it's fs1\\a", "it's fs2\\a"]);
    let link = &namespace.links[0];
    assert_eq!(
        (link.ttl_s, link.comment.as_deref(), link.state),
        (Some(60), Some("x"), State::Online)
    );
    assert_eq!(link.targets[0].state, State::Offline);
    assert_eq!(link.targets[1].priority_class, Some(PriorityClass::GlobalHigh));
}

#[test]
fn links_of_samba_are_read() {
    let conf = "[global]\n  netbios name = FS1\n  host msdfs = yes\n[public]\n path = /srv/dfs\n MSDFS root = yes\n comment = all\n\
        [proxy]\n msdfs proxy = \\other\\share\n[homes]\n browseable = no\n";
    let list = ".:\ntotal 8\nlrwxrwxrwx 1 root root 20 Nov  1 10:00 accounting -> msdfs:fs1\\accounting,fs2/accounting\ndrwxr-xr-x 2 root root 40 Nov  1 10:00 sub\n\n./sub:\ntotal 0\nlrwxrwxrwx 1 root root 20 Nov  1 10:00 a b -> msdfs:fs3\\x\\y\n";
    let read = read(&files(&[("smb.conf", conf), ("links.txt", list)])).unwrap();
    assert_eq!(read.unknown.list, []);
    let [public, proxy] = read.namespaces.as_slice() else { panic!("two shares") };
    assert_eq!((public.namespace.host.as_str(), public.namespace.name.as_str()), ("FS1", "public"));
    assert_eq!(public.namespace.comment.as_deref(), Some("all"));
    assert_eq!(
        paths(&public.namespace),
        ["accounting fs1\\accounting", "accounting fs2\\accounting", "sub\\a b fs3\\x\\y"]
    );
    assert_eq!(proxy.namespace.targets[0].server, "other");
}

#[test]
fn the_folder_of_a_share_is_a_list() {
    let links = [("sub/a", "msdfs:fs1\\a"), ("b", "../other"), ("c\nd", "msdfs:fs1\\c")];
    let links = links.map(|(path, target)| (path.to_owned(), target.to_owned()));
    let (bytes, refused) = link_list("FS1", "Public", &links);
    assert_eq!(refused, ["c\nd"]);
    let namespace = one(std::str::from_utf8(&bytes).unwrap()).namespace;
    assert_eq!((namespace.host.as_str(), namespace.name.as_str()), ("FS1", "Public"));
    assert_eq!(paths(&namespace), ["sub\\a fs1\\a"]);
}

#[test]
fn lists_of_shares_are_read() {
    let net = "\nShare name   Resource                        Remark\n\n-------------------------------------------------------------------------------\n\
        C$           C:\\                             Default share\nIPC$                                         Remote IPC\na long name of a share\n             D:\\long\naccounting   D:\\accounting\nThe command completed successfully.\n";
    let view = "Shared resources at \\\\fs2\n\nShare name  Type  Used as  Comment\n\n-------------------------------------------------------------------------------\naccounting  Disk\nThe command completed successfully.\n";
    let robocopy = "-------------------------------------------------------------------------------\n   ROBOCOPY     ::     Robust File Copy for Windows\n-------------------------------------------------------------------------------\n\n  Started : Thu\n   Source : \\\\fs1\\accounting\\\n     Dest : \\\\fs9\\accounting\\\n\n2026/11/26 18:00:00 ERROR 53 (0x00000035) Creating Destination Directory \\\\fs9\\accounting\\\nThe network path was not found.\n";
    let read =
        read(&files(&[("fs1.txt", net), ("view.txt", view), ("log.txt", robocopy)])).unwrap();
    let names: Vec<_> =
        read.shares.iter().map(|list| (list.server.as_str(), list.source)).collect();
    assert_eq!(
        names,
        [
            ("fs1", ShareSource::NetShare),
            ("fs2", ShareSource::NetView),
            ("fs1", ShareSource::Robocopy),
            ("fs9", ShareSource::Robocopy)
        ]
    );
    assert_eq!(read.shares[0].shares, ["C$", "IPC$", "a long name of a share", "accounting"]);
    assert_eq!(read.shares[0].has("Accounting"), Some(true));
    assert_eq!(read.shares[0].has("x"), Some(false));
    assert_eq!(read.shares[1].has("hidden$"), None);
    assert_eq!(read.shares[2].has("accounting"), Some(true));
    assert_eq!(read.shares[3].has("accounting"), Some(false));
    assert_eq!(read.shares[3].has("other"), None);
}
