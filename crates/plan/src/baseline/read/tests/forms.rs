//! Each form of the registry, of templates and of lists.

use super::*;

#[test]
fn registry_pol_has_types_and_instructions() {
    let bytes = registry_pol(&[
        record("Software\\A", "Dword", 4, &7_u32.to_le_bytes()),
        record("\\Software\\A\\", "Text", 1, &utf16("b\0")),
        record("Software\\A", "NoZero", 1, &utf16("b")),
        record("Software\\A", "Expand", 2, &utf16("%x%\0")),
        record("Software\\A", "Many", 7, &utf16("a\0b\0\0")),
        record("Software\\A", "None", 7, &utf16("\0")),
        record("Software\\A", "Bytes", 3, &[1, 2]),
        record("Software\\A", "Long", 11, &8_u64.to_le_bytes()),
        record("Software\\A", "Short", 4, &[1]),
        record("Software\\A", "**del.Gone", 1, &utf16(" \0")),
        record("Software\\A", "**DelVals.", 1, &utf16(" \0")),
        record("Software\\A", "**DeleteKeys", 1, &utf16("x;y\0")),
        record("Software\\A", "**deletevalues", 1, &utf16("v\0")),
        record("Software\\A", "**soft.Mild", 4, &1_u32.to_le_bytes()),
        record("Software\\A", "**SecureKey", 4, &1_u32.to_le_bytes()),
        record("Software\\A", "**what.", 1, &utf16("\0")),
        record("Software\\New", "", 0, &[]),
    ]);
    let baseline = one("x/Machine/registry.pol", &bytes);
    let at = |name: &str| computer("Software\\A", name);
    assert_eq!(
        pairs(&baseline),
        [
            (at("Dword"), Value::Dword(7)),
            (at("Text"), text("b")),
            (at("NoZero"), text("b")),
            (at("Expand"), Value::ExpandText("%x%".to_owned())),
            (at("Many"), Value::MultiText(vec!["a".to_owned(), "b".to_owned()])),
            (at("None"), Value::MultiText(vec![])),
            (at("Bytes"), Value::Binary(vec![1, 2])),
            (at("Long"), Value::Qword(8)),
            (at("Short"), Value::Other { kind: 4, bytes: vec![1] }),
            (at("Gone"), Value::Delete),
            (at(""), Value::DeleteValues),
            (at("**DeleteKeys"), Value::DeleteNamed(vec!["x".to_owned(), "y".to_owned()])),
            (at("**DeleteValues"), Value::DeleteNamed(vec!["v".to_owned()])),
            (at("**soft.Mild"), Value::Dword(1)),
            (at("**SecureKey"), Value::Dword(1)),
            (computer("Software\\New", ""), Value::CreateKey),
        ]
    );
    assert_eq!(reasons(&baseline), ["an instruction that is not known"]);
    assert_eq!(baseline.settings[1].origin.position, 8 + 58);
}

#[test]
fn half_of_a_policy_is_in_the_path() {
    let bytes = registry_pol(&[record("A", "B", 4, &1_u32.to_le_bytes())]);
    for (name, scope) in [
        ("GPO/MACHINE/Registry.pol", Scope::Computer),
        ("C:\\Users\\Machine\\GPO\\User\\registry.pol", Scope::User),
        ("nsa-B30BE6B3-user-registry.pol", Scope::User),
        ("registry.pol", Scope::Computer),
    ] {
        let baseline = one(name, &bytes);
        let Place::Registry { scope: found, .. } = &baseline.settings[0].place else { panic!() };
        assert_eq!(*found, scope, "{name}");
        assert_eq!(baseline.sources[0].note.is_some(), name == "registry.pol");
    }
}

const TEMPLATE: &str = "[Unicode]\r\nUnicode=yes\r\n; comment\r\n[System Access]\r\nMinimumPasswordAge = 1\r\n\
    NewGuestName = \"Visi\"\"tor\"\r\n[Registry Values]\r\nMACHINE\\System\\A\\B=4,1\r\n\
    machine\\System\\A\\Caption=1,\"a, b\"\r\nMACHINE\\System\\A\\Lines=7,one,two(x)\",\" three,\"\"\r\n\
    MACHINE\\System\\A\\Empty=7,\r\nMACHINE\\System\\A\\Raw=3,1,255\r\nMACHINE\\System\\A\\Path=2,\"%x%\"\r\n\
    \"MACHINE\\System\\a=4,b\\C\"=4,0x10\r\nMACHINE\\System\\A\\Minus=4,-1\r\nUSERS\\.DEFAULT\\A\\B=4,1\r\n\
    MACHINE\\System\\A\\Bad=4,x\r\nnot a setting\r\n[Privilege Rights]\r\nSeDebugPrivilege = *S-1-5-32-544\r\n\
    SeTcbPrivilege =\r\n[Service General Setting]\r\n\"Spooler\",4,\"D:AR(A;;X)\"\r\nBrowser,2,\"\"\r\n\
    [Event Audit]\r\nAuditLogonEvents = 3\r\n[Kerberos Policy]\r\nMaxClockSkew = 5\r\n[Version]\r\nRevision=1\r\n";

#[test]
fn security_template_has_all_sections() {
    let expected = [
        (template("System Access", "MinimumPasswordAge"), text("1")),
        (template("System Access", "NewGuestName"), text("Visi\"tor")),
        (computer("System\\A", "B"), Value::Dword(1)),
        (computer("System\\A", "Caption"), text("a, b")),
        (
            computer("System\\A", "Lines"),
            Value::MultiText(["one", "two(x), three"].map(str::to_owned).to_vec()),
        ),
        (computer("System\\A", "Empty"), Value::MultiText(vec![])),
        (computer("System\\A", "Raw"), Value::Binary(vec![1, 255])),
        (computer("System\\A", "Path"), Value::ExpandText("%x%".to_owned())),
        (computer("System\\a=4,b", "C"), Value::Dword(16)),
        (computer("System\\A", "Minus"), Value::Dword(u32::MAX)),
        (template("Privilege Rights", "SeDebugPrivilege"), text("*S-1-5-32-544")),
        (template("Privilege Rights", "SeTcbPrivilege"), text("")),
        (template("Service General Setting", "Spooler"), text("4,\"D:AR(A;;X)\"")),
        (template("Service General Setting", "Browser"), text("2,\"\"")),
        (template("Event Audit", "AuditLogonEvents"), text("3")),
        (template("Kerberos Policy", "MaxClockSkew"), text("5")),
    ];
    let little = [b"\xff\xfe".to_vec(), utf16(TEMPLATE)].concat();
    let big: Vec<u8> = little.chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
    let inputs = [
        TEMPLATE.as_bytes().to_vec(),
        [b"\xef\xbb\xbf", TEMPLATE.as_bytes()].concat(),
        utf16(TEMPLATE),
        little,
        big,
    ];
    for bytes in inputs {
        // The name does not matter.
        let baseline = one("anything.txt", &bytes);
        assert_eq!(pairs(&baseline), expected);
        assert_eq!(baseline.unknown.list.len(), 5, "{:?}", baseline.unknown.list);
        assert_eq!(baseline.settings[2].origin.position, 8);
    }
}

#[test]
fn template_in_the_code_page_of_windows() {
    let bytes = b"[System Access]\nNewAdministratorName = \"Verw\xe4lter\"\n";
    assert_eq!(one("x", bytes).settings[0].value, text("Verwälter"));
}

#[test]
fn lgpo_text_has_all_actions() {
    let lines = "; comment\r\n# comment\r\nComputer\r\nSoftware\\A\r\nB\r\nDWORD:1\r\n\r\nUser:Administrators\nSoftware\\A\nT\nSZ: x \n\
        Computer\nSoftware\\A\n*\nDELETEALLVALUES\n\nComputer\nSoftware\\A\nD\nDELETE\n\nComputer\nSoftware\\A\n*\nCREATEKEY\n\n\
        Computer\nSoftware\\A\nM\nMULTISZ:a\\0b\n\nComputer\nSoftware\\A\nE\nEXSZ:%x%\n\nComputer\nSoftware\\A\nY\nBINARY:00ff\n\n\
        Computer\nSoftware\\A\nQ\nQWORD:5\n\nComputer\nSoftware\\A\nX\nWHAT:1\n\nComputer\nshort\n";
    let baseline = one("settings", lines.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [
            (computer("Software\\A", "B"), Value::Dword(1)),
            (user("Software\\A", "T"), text(" x ")),
            (computer("Software\\A", ""), Value::DeleteValues),
            (computer("Software\\A", "D"), Value::Delete),
            (computer("Software\\A", ""), Value::CreateKey),
            (computer("Software\\A", "M"), Value::MultiText(vec!["a".to_owned(), "b".to_owned()])),
            (computer("Software\\A", "E"), Value::ExpandText("%x%".to_owned())),
            (computer("Software\\A", "Y"), Value::Binary(vec![0, 255])),
            (computer("Software\\A", "Q"), Value::Qword(5)),
        ]
    );
    assert_eq!(baseline.unknown.list.len(), 3, "{:?}", baseline.unknown.list);
    assert!(baseline.sources[0].note.is_some());
}

#[test]
fn policy_rules_keep_no_path_of_their_maker() {
    let xml = "\u{feff}<PolicyRules>\n<ComputerConfig><Key>SYSTEM\\A</Key><Value>requiresecuritysignature</Value><RegType>REG_DWORD</RegType>\
        <RegData>1</RegData><SourceFile>C:\\Users\\Florian\\x</SourceFile><PolicyName>d'attÃ©nuation</PolicyName></ComputerConfig>\n\
        <UserConfig><Key>A</Key><Value>**del.B</Value><RegType>REG_SZ</RegType><RegData> </RegData></UserConfig>\n\
        <ComputerConfig><Key>A</Key><Value></Value><RegType>REG_NONE</RegType><RegData></RegData></ComputerConfig>\n\
        <SecurityTemplate Section=\"Registry Values\"><LineItem>MACHINE\\A\\B=4,1</LineItem></SecurityTemplate>\n\
        <AuditSubcategory><GUID>{0cce}</GUID><Name>x</Name><Setting>3</Setting></AuditSubcategory>\n\
        <CSE-Machine><GUID>{35378EAC}</GUID><Name>Registry &amp; more</Name></CSE-Machine>\n\
        <Other><SourceFile>C:\\Users\\Florian</SourceFile><X>1</X></Other>\n</PolicyRules>";
    let baseline = one("x.PolicyRules", xml.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [
            (computer("SYSTEM\\A", "requiresecuritysignature"), Value::Dword(1)),
            (user("A", "B"), Value::Delete),
            (computer("A", ""), Value::CreateKey),
            (computer("A", "B"), Value::Dword(1)),
            (Place::Audit { subcategory: "{0cce}".to_owned() }, Value::Dword(3)),
            (
                Place::Extension { scope: Scope::Computer, guid: "{35378EAC}".to_owned() },
                text("Registry & more")
            ),
        ]
    );
    assert_eq!(baseline.settings[0].origin.policy.as_deref(), Some("d'atténuation"));
    assert_eq!(baseline.settings[1].origin.position, 3);
    assert!(!serde_json::to_string(&baseline).unwrap().contains("Florian"));
    assert_eq!(reasons(&baseline), ["an element that is not known"]);
}

#[test]
fn export_of_the_registry_in_both_versions() {
    let body = "\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\A]\r\n\"B\"=dword:0000000f\r\n\"T \\\"q\\\" \\\\\"=\"x\\\\y\"\r\n@=\"default\"\r\n\
        \"Gone\"=-\r\n\"Raw\"=hex:00,\\\r\n  ff\r\n\"Long\"=hex(b):01,00,00,00,00,00,00,00\r\n\
        [-HKEY_LOCAL_MACHINE\\SYSTEM\\A\\Old]\r\n\"lost\"=dword:1\r\n\
        [HKEY_CURRENT_USER\\Software]\r\n\"U\"=\"1\"\r\n[HKEY_USERS\\S-1]\r\n\"V\"=\"1\"\r\n";
    let wide = "[HKEY_LOCAL_MACHINE\\SYSTEM\\W]\r\n\"M\"=hex(7):61,00,00,00,62,00,00,00,00,00\r\n\"E\"=hex(2):25,00,00,00\r\n";
    let narrow =
        "[HKEY_LOCAL_MACHINE\\SYSTEM\\W]\r\n\"M\"=hex(7):61,00,62,00,00\r\n\"E\"=hex(2):25,00\r\n";
    let five = format!("Windows Registry Editor Version 5.00\r\n{body}{wide}");
    let four = format!("REGEDIT4\r\n{body}{narrow}");
    let five = [b"\xff\xfe".to_vec(), utf16(&five)].concat();
    for bytes in [five, four.into_bytes()] {
        let baseline = one("export", &bytes);
        assert_eq!(
            pairs(&baseline),
            [
                (computer("SYSTEM\\A", "B"), Value::Dword(15)),
                (computer("SYSTEM\\A", "T \"q\" \\"), text("x\\y")),
                (computer("SYSTEM\\A", ""), text("default")),
                (computer("SYSTEM\\A", "Gone"), Value::Delete),
                (computer("SYSTEM\\A", "Raw"), Value::Binary(vec![0, 255])),
                (computer("SYSTEM\\A", "Long"), Value::Qword(1)),
                (computer("SYSTEM\\A", "**DeleteKeys"), Value::DeleteNamed(vec!["Old".to_owned()])),
                (user("Software", "U"), text("1")),
                (
                    computer("SYSTEM\\W", "M"),
                    Value::MultiText(vec!["a".to_owned(), "b".to_owned()])
                ),
                (computer("SYSTEM\\W", "E"), Value::ExpandText("%".to_owned())),
            ]
        );
        assert_eq!(baseline.unknown.list.len(), 3, "{:?}", baseline.unknown.list);
    }
}

#[test]
fn auditing_and_finding_lists() {
    let csv = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\n\
        ,System,Audit Logon,{0cce9215},Success,,1\n,S-1-5-21,Audit Logon,{0cce9215},Success,,1\n\
        ,System,Option:CrashOnAuditFail,,Disabled,,0\n";
    let baseline = one("x", csv.as_bytes());
    let audit = |name: &str| Place::Audit { subcategory: name.to_owned() };
    assert_eq!(
        pairs(&baseline),
        [
            (audit("{0cce9215}"), Value::Dword(1)),
            (audit("Option:CrashOnAuditFail"), Value::Dword(0))
        ]
    );
    assert_eq!(reasons(&baseline), ["auditing of one user"]);
    let list = "ID,Category,Name,Method,MethodArgument,RegistryPath,RegistryItem,ClassName,Namespace,Property,DefaultValue,RecommendedValue,Operator,Severity\n\
        1,C,\"a, b\",Registry,,HKLM:\\SYSTEM\\A,B,,,,0,1,=,Low\n2,C,n,Registry,,HKCU:\\A,B,,,,0,,=,Low\n\
        3,C,n,auditpol,{0CCE},,,,,,,Success and Failure,contains,Low\n4,C,n,accesschk,SeX,,,,,,,A;B,=,Low\n\
        5,C,Account lockout duration,accountpolicy,,,,,,,30,15,>=,Low\n6,C,n,secedit,System Access\\X,,,,,,,1,=,Low\n\
        7,C,n,service,Spooler,,,,,,,Disabled,=,Low\n8,C,n,Registry,,HKLM:\\A,B,,,,0,1,!=,Low\n\
        9,C,SMB1,WindowsOptionalFeature,smb1protocol,,,,,,,Disabled,=,High\n";
    let baseline = one("x", list.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [
            (computer("SYSTEM\\A", "B"), Value::Dword(1)),
            (user("A", "B"), Value::None),
            (audit("{0CCE}"), Value::Dword(3)),
            (template("Privilege Rights", "SeX"), text("A,B")),
            (template("System Access", "LockoutDuration"), text("15")),
            (template("System Access", "X"), text("1")),
            (template("Service General Setting", "Spooler"), text("4")),
        ]
    );
    assert_eq!(baseline.unknown.list.len(), 2);
    assert!(baseline.unknown.list[1].text.contains("smb1protocol"));
}

const ADMX: &str = "<policyDefinitions><policies><policy name=\"Smb1\" class=\"Machine\" displayName=\"$(string.Smb1)\" explainText=\"$(string.Help)\" \
    presentation=\"$(presentation.Smb1)\" key=\"SYSTEM\\Services\\MrxSmb10\"><supportedOn ref=\"windows:S\"/><elements>\
    <enum id=\"Start\" valueName=\"Start\"><item displayName=\"$(string.Off)\"><value><decimal value=\"4\"/></value></item></enum>\
    <decimal id=\"N\" valueName=\"N\" minValue=\"1\" maxValue=\"9\"/><boolean id=\"B\" valueName=\"B\"/><text id=\"T\" valueName=\"T\"/>\
    <multiText id=\"M\" valueName=\"M\"/><list id=\"L\" key=\"SYSTEM\\List\" explicitValue=\"true\"/></elements></policy>\
    <policy name=\"Plain\" class=\"Both\" displayName=\"$(string.Plain)\" explainText=\"\" key=\"K\" valueName=\"V\">\
    <enabledValue><string>on</string></enabledValue><disabledValue><delete/></disabledValue></policy></policies></policyDefinitions>";

fn adml(smb1: &str) -> String {
    format!(
        "<policyDefinitionResources><resources><stringTable><string id=\"Smb1\">{smb1}</string><string id=\"Help\">why</string>\
        <string id=\"Off\">Disable driver</string><string id=\"Plain\">Plain one</string></stringTable><presentationTable>\
        <presentation id=\"Smb1\"><dropdownList refId=\"Start\">Driver</dropdownList><decimalTextBox refId=\"N\">Number</decimalTextBox>\
        <checkBox refId=\"B\">Flag</checkBox><textBox refId=\"T\"><label>Words</label></textBox><multiTextBox refId=\"M\"><label>Lines</label></multiTextBox>\
        <listBox refId=\"L\">Paths:</listBox></presentation></presentationTable></resources></policyDefinitionResources>"
    )
}

#[test]
fn templates_in_several_languages_explain_a_report() {
    let english = adml("SMB 1 driver");
    let german = adml("SMB-1-Treiber");
    let report = "<GPO><Name>P</Name><LinksTo><SOMName>OU</SOMName><SOMPath>d/OU</SOMPath><Enabled>true</Enabled><NoOverride>true</NoOverride></LinksTo>\
        <Computer><ExtensionData><Extension xmlns:q1=\"x\" xsi:type=\"q1:RegistrySettings\"><q1:Policy><q1:Name>SMB-1-Treiber</q1:Name><q1:State>Enabled</q1:State>\
        <q1:DropDownList><q1:Name>Driver</q1:Name><q1:State>Enabled</q1:State><q1:Value><q1:Name>Disable driver</q1:Name></q1:Value></q1:DropDownList>\
        <q1:Numeric><q1:Name>Number</q1:Name><q1:Value>3</q1:Value></q1:Numeric><q1:CheckBox><q1:Name>Flag</q1:Name><q1:State>Disabled</q1:State></q1:CheckBox>\
        <q1:EditText><q1:Name>Words</q1:Name><q1:Value>w</q1:Value></q1:EditText><q1:MultiText><q1:Name>Lines</q1:Name><q1:Value><q1:string>a</q1:string></q1:Value></q1:MultiText>\
        <q1:ListBox><q1:Name>Paths:</q1:Name><q1:Value><q1:Element><q1:Name>\\\\*\\X</q1:Name><q1:Data>RequireIntegrity=1</q1:Data></q1:Element></q1:Value></q1:ListBox></q1:Policy>\
        <q1:Policy><q1:Name>Plain one</q1:Name><q1:State>Disabled</q1:State></q1:Policy><q1:Policy><q1:Name>Lost</q1:Name><q1:State>Enabled</q1:State></q1:Policy>\
        <q1:RegistrySetting><q1:KeyPath>Software\\Z</q1:KeyPath><q1:Value><q1:Name>Y</q1:Name><q1:Number>2</q1:Number></q1:Value></q1:RegistrySetting>\
        </Extension><Name>Registry</Name></ExtensionData></Computer></GPO>";
    let files = [
        NamedBytes { name: "t/a.admx", bytes: ADMX.as_bytes() },
        NamedBytes { name: "t/en-US/a.adml", bytes: english.as_bytes() },
        NamedBytes { name: "t/de-DE/A.ADML", bytes: german.as_bytes() },
        NamedBytes { name: "gpreport.xml", bytes: report.as_bytes() },
    ];
    let baseline = read(&files).unwrap();
    let at = |name: &str| computer("SYSTEM\\Services\\MrxSmb10", name);
    assert_eq!(
        pairs(&baseline),
        [
            (at("Start"), Value::Dword(4)),
            (at("N"), Value::Dword(3)),
            (at("B"), Value::Dword(0)),
            (at("T"), text("w")),
            (at("M"), Value::MultiText(vec!["a".to_owned()])),
            (computer("SYSTEM\\List", "\\\\*\\X"), text("RequireIntegrity=1")),
            (computer("K", "V"), Value::Delete),
            (computer("Software\\Z", "Y"), Value::Dword(2)),
        ]
    );
    assert_eq!(baseline.unknown.list.len(), 1, "{:?}", baseline.unknown.list);
    let link = &baseline.policies[0].links[0];
    assert_eq!((link.place.as_str(), link.is_enabled, link.is_enforced), ("d/OU", true, true));
    assert_eq!(baseline.templates.languages(), ["de-de", "en-us"]);
    let text_of = |language: &str| baseline.templates.text(&at("start"), language).unwrap();
    assert_eq!(text_of("de-DE").policy, "SMB-1-Treiber");
    // A language that is not there is replaced by English.
    assert_eq!(text_of("fr-FR").policy, "SMB 1 driver");
    assert_eq!(text_of("fr-FR").language, "en-us");
    assert_eq!(text_of("").allowed, [(Value::Dword(4), "Disable driver".to_owned())]);
    assert_eq!(text_of("").label.as_deref(), Some("Driver"));
    assert_eq!(baseline.templates.text(&at("N"), "").unwrap().range, Some((1, 9)));
    assert_eq!(baseline.templates.text(&at("other"), ""), None);
}

#[test]
fn preferences_are_marked_as_such() {
    let xml = "<RegistrySettings><Registry name=\"a\"><Properties action=\"U\" default=\"0\" hive=\"HKEY_LOCAL_MACHINE\" key=\"A\\B\\\" name=\"N\" type=\"REG_DWORD\" value=\"0000000F\"/></Registry>\
        <Registry name=\"b\"><Properties action=\"D\" default=\"0\" hive=\"HKEY_CURRENT_USER\" key=\"A\" name=\"M\" type=\"REG_SZ\" value=\"\"/></Registry>\
        <Registry name=\"c\" disabled=\"1\"><Properties action=\"U\" hive=\"HKEY_CURRENT_USER\" key=\"A\" name=\"O\" type=\"REG_SZ\" value=\"\"/></Registry></RegistrySettings>";
    let baseline = one("x", xml.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [(computer("A\\B", "N"), Value::Dword(15)), (user("A", "M"), Value::Delete)]
    );
    assert_eq!(reasons(&baseline), ["a preference that is switched off"]);
    assert!(baseline.sources[0].note.as_deref().unwrap().starts_with("preferences"));
}
