//! Why a change cannot be predicted, and the experiment that shows what it costs.

use super::super::catalogue::{CostKey, Row};

/// The experiment for most settings.
const LOAD: &str = "run the same load before and after the change (smbscope load //SERVER/SHARE --out before, then --out after), \
                    and compare: smbscope compare before after";

/// Why it cannot be predicted, and the experiment.
pub fn unknown(row: &Row) -> (String, String) {
    let saved = "a recording has the requests that clients sent, not those that their caches saved";
    let (because, experiment) = match row.cost {
        CostKey::Leases | CostKey::DirectoryLeases | CostKey::CacheLifetime | CostKey::Offline => {
            (saved, LOAD)
        }
        CostKey::Auditing => (
            "the cost of an event depends on the log and on who reads it; a recording has neither",
            "switch it on for an hour on one server, count its events (wevtutil gli Security), and compare: smbscope record \
             before and after, smbscope compare before after",
        ),
        CostKey::Flush => (
            "what a Flush costs on this storage is not what it would cost without it, and back",
            "smbscope durability //SERVER/SHARE says what survives a power failure; for the time run smbscope load \
             //SERVER/SHARE before and after, and compare",
        ),
        CostKey::Throttling => {
            ("a recording does not show which requests were slowed down on purpose", LOAD)
        }
        CostKey::Compression => (
            "how far the data compresses is not recorded",
            "copy the same files with and without it (robocopy with and without /compress), recorded with smbscope record",
        ),
        CostKey::Threads | CostKey::Copies | CostKey::Locks | CostKey::Listing => {
            ("the work within the server is not replayed in such detail", LOAD)
        }
        CostKey::CaseLookup => (
            "the number of entries of the folders is not recorded",
            "list and create files in the largest folder before and after, recorded with smbscope record",
        ),
        CostKey::Multichannel => (
            "the recording has sessions of several connections, and which of their requests would share one is not known",
            LOAD,
        ),
        CostKey::Credits => (
            "the recording does not show how many requests were in flight, or more were than the new limit allows",
            LOAD,
        ),
        CostKey::Authentication => (
            "logons with another method are not in the recording",
            "record an hour of the morning before and after, and compare the times of SessionSetup: smbscope compare before after",
        ),
        CostKey::Sessions => (
            "how often clients would reconnect is not in the recording",
            "record a working day before and after, and count SessionSetup: smbscope report",
        ),
        CostKey::Tcp => (
            "the buffers of sockets at the recorded time are not known",
            "smbscope net listen and send measure the network before and after, without SMB",
        ),
        CostKey::Rss => (
            "it is about CPUs, not about messages",
            "smbscope plan cores predicts where packets are received",
        ),
        CostKey::Smb1 => ("a recording of SMB 2 does not show SMB 1, and back", LOAD),
        CostKey::Dialect => ("it changes which requests clients send", LOAD),
        _ => ("no change of `smbscope predict` is this setting", LOAD),
    };
    (format!("{because}."), format!("{experiment}."))
}

/// The experiment where a prediction failed.
pub fn experiment(key: CostKey) -> String {
    let more = match key {
        CostKey::Signing | CostKey::Encryption | CostKey::Hardened => {
            "smbscope predict calibrate --out crypto.json on the server's machine gives the costs (--calibration crypto.json). \
             Or "
        }
        _ => "",
    };
    format!("{more}{LOAD}.")
}
