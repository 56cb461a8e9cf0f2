//! Seeds of the targets `baseline` and `policies_container`: the beginning of each form, small containers.

/// A choice (see `targets/baseline.rs`) and the file.
pub fn files() -> Vec<(u8, Vec<u8>)> {
    let texts = [
        "[Unicode]\nUnicode=yes\n[System Access]\nMinimumPasswordAge = 1\n[Registry Values]\nMACHINE\\A\\B=4,1\nMACHINE\\A\\C=7,a,b\",\"c\n\
         [Service General Setting]\n\"Spooler\",4,\"D:\"\n[Privilege Rights]\nSeX = *S-1-5-32-544\n",
        "<PolicyRules><ComputerConfig><Key>A</Key><Value>**del.B</Value><RegType>REG_SZ</RegType><RegData> </RegData><PolicyName>P</PolicyName></ComputerConfig>\
         <SecurityTemplate Section=\"Registry Values\"><LineItem>MACHINE\\A\\B=4,1</LineItem></SecurityTemplate>\
         <AuditSubcategory><GUID>{0}</GUID><Setting>3</Setting></AuditSubcategory><CSE-Machine><GUID>{1}</GUID><Name>n</Name></CSE-Machine></PolicyRules>",
        "Computer\nA\\B\nC\nDWORD:1\n\nUser\nA\n*\nDELETEALLVALUES\n\nComputer\nA\nM\nMULTISZ:a\\0b\n\n",
        "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\n,System,a,{0},Success,,1\n",
        "ID,Category,Name,Method,MethodArgument,RegistryPath,RegistryItem,ClassName,Namespace,Property,DefaultValue,RecommendedValue,Operator,Severity\n\
         1,C,n,Registry,,HKLM:\\A,B,,,,0,1,=,Low\n2,C,n,accesschk,SeX,,,,,,,A;B,=,Low\n",
        "<policyDefinitions><policies><policy name=\"p\" class=\"Machine\" displayName=\"$(string.p)\" key=\"K\" valueName=\"V\" presentation=\"$(presentation.p)\">\
         <enabledValue><decimal value=\"1\"/></enabledValue><elements><enum id=\"e\" valueName=\"E\"><item displayName=\"$(string.i)\"><value><decimal value=\"4\"/></value></item></enum>\
         <list id=\"l\" key=\"L\" explicitValue=\"true\"/></elements></policy></policies></policyDefinitions>",
        "<policyDefinitionResources><stringTable><string id=\"p\">Policy</string><string id=\"i\">Item</string></stringTable><presentation id=\"p\"><dropdownList refId=\"e\">Label</dropdownList></presentation></policyDefinitionResources>",
        "Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\A]\n\"B\"=dword:00000001\n@=\"x\"\n\"H\"=hex(7):61,00,\\\n  00,00\n\"G\"=-\n[-HKEY_CURRENT_USER\\X\\Y]\n",
        "REGEDIT4\n[HKEY_CURRENT_USER\\A]\n\"E\"=hex(2):25,00\n",
        "EncryptData : False\nRejectUnencryptedAccess : True\n\nName  ScopeName Path\n----  --------- ----\ndata  *         C:\\x\n",
        "[{\"Name\":\"a\",\"ScopeName\":\"*\",\"CachingMode\":1},{\"EncryptData\":true,\"ServerHidden\":false}]",
        "[global]\n server signing = mandatory\n include = x\n[data]\n path = /x\\\n y\n writeable = yes\n[b]\n copy = data\n",
        "<RegistrySettings><Registry name=\"a\"><Properties action=\"U\" hive=\"HKEY_LOCAL_MACHINE\" key=\"A\" name=\"N\" type=\"REG_DWORD\" value=\"F\"/></Registry></RegistrySettings>",
        "<GPO><Identifier><Identifier>{0}</Identifier></Identifier><Name>P</Name><LinksTo><SOMPath>d</SOMPath></LinksTo><Computer><ExtensionData><Extension type=\"q:SecuritySettings\">\
         <SecurityOptions><KeyName>MACHINE\\A\\B</KeyName><SettingNumber>1</SettingNumber></SecurityOptions></Extension></ExtensionData><ExtensionData><Extension type=\"q:RegistrySettings\">\
         <Policy><Name>Policy</Name><State>Enabled</State><DropDownList><Name>Label</Name><Value><Name>Item</Name></Value></DropDownList></Policy></Extension></ExtensionData></Computer></GPO>",
        "<BackupInst><GPOGuid>{0}</GPOGuid><ID>{1}</ID><GPODisplayName>P</GPODisplayName></BackupInst>",
        "<GroupPolicyBackupScheme><GroupPolicyObject><GroupPolicyCoreSettings><ID>{0}</ID><DisplayName>P</DisplayName></GroupPolicyCoreSettings></GroupPolicyObject></GroupPolicyBackupScheme>",
    ];
    let mut files: Vec<(u8, Vec<u8>)> =
        texts.iter().map(|text| (0, text.as_bytes().to_vec())).collect();
    files.push((1, registry_pol()));
    // Two files: definitions with their texts, smb.conf with what it includes.
    for (first, second) in [(5, 6), (11, 11), (13, 5)] {
        let first = texts[first].as_bytes();
        let length = (first.len() as u16).to_le_bytes();
        files.push((2, [&length[..], first, texts[second].as_bytes()].concat()));
    }
    files
}

fn registry_pol() -> Vec<u8> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut bytes = b"PReg\x01\0\0\0".to_vec();
    for (name, kind, data) in
        [("B", 4_u32, vec![1, 0, 0, 0]), ("**del.C", 1, wide(" \0")), ("M", 7, wide("a\0b\0\0"))]
    {
        bytes.extend(wide(&format!("[A\0;{name}\0;")));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(wide(";"));
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(wide(";"));
        bytes.extend(data);
        bytes.extend(wide("]"));
    }
    bytes
}

/// A .zip with two members (stored and deflated, by Python's zipfile), and cabinets in MSZIP and LZX.
pub fn containers() -> Vec<Vec<u8>> {
    vec![ZIP.to_vec(), cabinet(1, MSZIP), cabinet(0, CONTENT), cabinet(0x0f03, &lzx())]
}

const CONTENT: &[u8] = b"[System Access]\nMinimumPasswordAge = 1\n";
/// The content as a block of MSZIP: one stored block of deflate.
const MSZIP: &[u8] = b"CK\x01\x27\0\xd8\xff[System Access]\nMinimumPasswordAge = 1\n";

/// The content as a block of LZX that is not compressed.
fn lzx() -> Vec<u8> {
    let bits = (3 << 28) | ((CONTENT.len() as u32) << 4);
    let mut data = ((bits >> 16) as u16).to_le_bytes().to_vec();
    data.extend((bits as u16).to_le_bytes());
    data.extend([1, 0, 0, 0].repeat(3));
    data.extend(CONTENT);
    data
}

/// A cabinet with one file in one block.
fn cabinet(compression: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"MSCF\0\0\0\0".to_vec();
    for number in [0_u32, 0, 44, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([3, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(66_u32.to_le_bytes());
    bytes.extend([1, 0]);
    bytes.extend(compression.to_le_bytes());
    bytes.extend((CONTENT.len() as u32).to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend(b"a.inf\0");
    bytes.extend([0; 4]);
    bytes.extend((data.len() as u16).to_le_bytes());
    bytes.extend((CONTENT.len() as u16).to_le_bytes());
    bytes.extend(data);
    bytes
}

const ZIP: &[u8] = &[
    80, 75, 3, 4, 20, 0, 0, 0, 0, 0, 0, 0, 33, 88, 119, 47, 78, 81, 39, 0, 0, 0, 39, 0, 0, 0, 5, 0,
    0, 0, 97, 46, 105, 110, 102, 91, 83, 121, 115, 116, 101, 109, 32, 65, 99, 99, 101, 115, 115,
    93, 10, 77, 105, 110, 105, 109, 117, 109, 80, 97, 115, 115, 119, 111, 114, 100, 65, 103, 101,
    32, 61, 32, 49, 10, 80, 75, 3, 4, 20, 0, 0, 0, 8, 0, 0, 0, 33, 88, 119, 47, 78, 81, 41, 0, 0,
    0, 39, 0, 0, 0, 13, 0, 0, 0, 98, 47, 71, 112, 116, 84, 109, 112, 108, 46, 105, 110, 102, 139,
    14, 174, 44, 46, 73, 205, 85, 112, 76, 78, 78, 45, 46, 142, 229, 242, 205, 204, 203, 204, 45,
    205, 13, 72, 44, 46, 46, 207, 47, 74, 113, 76, 79, 85, 176, 85, 48, 228, 2, 0, 80, 75, 1, 2,
    20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 33, 88, 119, 47, 78, 81, 39, 0, 0, 0, 39, 0, 0, 0, 5, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 128, 1, 0, 0, 0, 0, 97, 46, 105, 110, 102, 80, 75, 1, 2, 20, 3, 20, 0,
    0, 0, 8, 0, 0, 0, 33, 88, 119, 47, 78, 81, 41, 0, 0, 0, 39, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 128, 1, 74, 0, 0, 0, 98, 47, 71, 112, 116, 84, 109, 112, 108, 46, 105, 110, 102,
    80, 75, 5, 6, 0, 0, 0, 0, 2, 0, 2, 0, 110, 0, 0, 0, 158, 0, 0, 0, 0, 0,
];
