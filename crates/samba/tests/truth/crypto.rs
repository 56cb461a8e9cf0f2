//! The cost of signing and encryption is in their slices.

use smbscope_client::{Config, Encryption, Signing};
use smbscope_lab as lab;
use smbscope_tables::slice::Kind;

use crate::client::Client;
use crate::recorder::{Recorder, Row, alone};
use smbscope_testing::samba::{Samba, samba};

const SMALL: usize = 4096;
const LARGE: usize = 1 << 20;

/// Reads and writes, small and large, recorded.
fn run(lab: &Samba, config: Config) -> Option<Vec<Row>> {
    let recorder = Recorder::begin(lab)?;
    let mut client = Client::connect(lab, config);
    let file = client.open("file");
    let bytes = vec![7; LARGE];
    for _ in 0..10 {
        for size in [SMALL, LARGE] {
            client.write(file, 0, &bytes[..size]);
            assert_eq!(client.read(file, 0, size as u32) as usize, size);
        }
        client.query(file);
    }
    client.close(file);
    client.end();
    Some(recorder.end().rows())
}

/// The median of a slice in reads or writes of a size.
fn median(rows: &[Row], command: &str, size: usize, kind: Kind) -> i64 {
    let of = |row: &&Row| row.command == command && row.transferred == Some(size as i64);
    let mut values: Vec<i64> = rows.iter().filter(of).map(|row| row.ns(kind)).collect();
    assert_eq!(values.len(), 10, "{command} of {size}");
    values.sort_unstable();
    values[values.len() / 2]
}

/// Checks that every protected operation has both slices, and that they grow with the protected size.
fn protected(rows: &[Row], is_protected: impl Fn(&Row) -> bool, growth: i64) {
    let mut count = 0;
    // The server signs the reply to an unsigned logon, and negotiation is not protected.
    let logon = ["Negotiate", "SessionSetup"];
    for row in rows.iter().filter(|row| !logon.contains(&row.command.as_str())) {
        assert!(is_protected(row), "{}", row.command);
        count += 1;
        assert!(row.ns(Kind::CryptoIn) > 0 && row.ns(Kind::CryptoOut) > 0, "{:?}", row.told());
    }
    assert!(count > 50, "{count}");
    for (command, kind) in [("Write", Kind::CryptoIn), ("Read", Kind::CryptoOut)] {
        let [small, large] = [SMALL, LARGE].map(|size| median(rows, command, size, kind));
        eprintln!("{command} {}: {small} ns of 4 KiB, {large} ns of 1 MiB", kind.name());
        assert!(large > growth * small, "{command}: {small} and {large} ns");
    }
}

#[test]
fn signing_has_its_time() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.signing = lab::Signing::Required) else { return };
    let config = Config { signing: Signing::Required, ..Config::default() };
    let Some(rows) = run(&lab, config) else { return };
    protected(&rows, |row| row.signed, 5);
}

#[test]
fn encryption_has_its_time() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Required) else {
        return;
    };
    let config = Config { encryption: Encryption::Required, ..Config::default() };
    let Some(rows) = run(&lab, config) else { return };
    protected(&rows, |row| row.encrypted, 5);
}

#[test]
fn without_them_nothing_is_spent_on_them() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(rows) = run(&lab, Config::default()) else { return };
    let plain = |row: &&Row| !row.signed && !row.encrypted && row.command != "SessionSetup";
    let rows: Vec<_> = rows.iter().filter(plain).collect();
    assert!(rows.len() > 50, "{}", rows.len());
    for row in rows {
        assert_eq!((row.ns(Kind::CryptoIn), row.ns(Kind::CryptoOut)), (0, 0), "{:?}", row.told());
    }
}
