//! What each trouble is called, and what to do about it.

use super::data::{Remedy, Trouble};

const fn at(at: &'static str, action: &'static str) -> Remedy {
    Remedy { at, action }
}

/// The most useful first.
const SMALL: &[Remedy] = &[
    at(
        "application",
        "read and write in blocks of 1 MiB (robocopy /J, larger buffers), or several files at once",
    ),
    at(
        "client",
        "keep several requests in flight: Windows does for buffered I/O; on Linux mount with rsize=, wsize= and vers=3.1.1",
    ),
    at(
        "Samba",
        "smb2 max read = 8388608, smb2 max write = 8388608; min protocol SMB2 (SMB1 moves 60 KiB at most)",
    ),
    at(
        "Windows",
        "Set-SmbServerConfiguration -EnableSMB1Protocol $false; Set-SmbClientConfiguration -EnableLargeMtu $true",
    ),
];
const BANDWIDTH: &[Remedy] = &[
    at("network", "a faster line, or less over it: see who and what takes most of it under Where"),
    at(
        "client",
        "keep what is read often at hand: offline files, BranchCache, a cache near the users",
    ),
    at(
        "server",
        "compress what goes over it: robocopy /COMPRESS and SMB compression (Windows Server 2022 and Windows 11)",
    ),
];
const WINDOW: &[Remedy] = &[
    at(
        "Linux",
        "receiver: net.ipv4.tcp_rmem = 4096 131072 16777216, sender: tcp_wmem likewise, tcp_window_scaling = 1",
    ),
    at("Samba", "remove SO_RCVBUF and SO_SNDBUF from socket options: they fix the window"),
    at("Windows", "netsh interface tcp set global autotuninglevel=normal"),
    at("network", "firewalls and accelerators that take the window scale out of the handshake"),
];
const LOSS: &[Remedy] = &[
    at(
        "network",
        "look for errors and drops at both ends and on each switch (ethtool -S, Get-NetAdapterStatistics): duplex, \
         cable, a queue that is too short",
    ),
    at(
        "server",
        "net.ipv4.tcp_congestion_control = bbr suffers less from loss that is not congestion",
    ),
];
const CREDITS: &[Remedy] = &[
    at("Samba", "smb2 max credits = 8192 (the default)"),
    at(
        "Windows",
        "Set-SmbServerConfiguration -Smb2CreditsMin 512 -Smb2CreditsMax 8192 (the defaults)",
    ),
    at("client", "Linux: mount option max_credits; Windows: several connections by multichannel"),
];
const STRAGGLERS: &[Remedy] = &[
    at(
        "server",
        "look at what is special there: where the file lies, its size and fragments, its access list, what else \
         runs at that moment (backup, snapshot, scrub)",
    ),
    at("server", "smbscope record shows which part of the server's time it is"),
];
const QUEUEING: &[Remedy] = &[
    at(
        "server",
        "see what its processors and disks do meanwhile; more or faster ones, or fewer users on it",
    ),
    at(
        "Samba",
        "aio read size = 1, aio write size = 1 (the default since 4.11), so that one connection's requests do not wait for each other",
    ),
    at("Windows", "watch \\SMB Server Shares(*)\\Current Data Queue Length and the disk's queue"),
];
const STORAGE: &[Remedy] = &[
    at(
        "server",
        "faster storage or more memory for its cache; smbscope record shows which calls take long",
    ),
    at(
        "Samba",
        "check vfs objects (each adds calls), case sensitive = yes for large folders, store dos attributes = no",
    ),
    at("Windows", "look for file-system filters (fltmc) such as virus scanners"),
];
const LOGON: &[Remedy] = &[
    at(
        "server",
        "see how long its domain controller and name servers take to answer; a logon needs both",
    ),
    at(
        "client",
        "use the server's name, not its address, so that Kerberos is used; look for a firewall that drops instead of refusing",
    ),
];
const FLUSH: &[Remedy] = &[
    at(
        "server",
        "a log in non-volatile memory or a controller with a protected cache; check a second site's distance",
    ),
    at(
        "Samba",
        "strict sync = no and sync always = no only where losing what was written last is acceptable",
    ),
    at(
        "Windows",
        "do not open shares as continuously available where nothing needs it: every write there is stable",
    ),
];
const PROTECTION: &[Remedy] = &[
    at(
        "client and server",
        "SMB 3.1.1 with AES-GMAC for signing and AES-128-GCM for encryption; both with AES-NI",
    ),
    at(
        "Samba",
        "server smb3 signing algorithms = AES-128-GMAC, server smb3 encryption algorithms = AES-128-GCM",
    ),
    at("Windows", "Set-SmbServerConfiguration -EncryptionCiphers \"AES_128_GCM\""),
];
const LOOKUPS: &[Remedy] = &[
    at("server", "grant leases on directories: Samba from 4.22, Windows from 2012"),
    at("Samba", "smb3 directory leases = yes (from 4.22), smb2 leases = yes, kernel oplocks = no"),
    at(
        "Windows client",
        "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 -FileNotFoundCacheLifetime 5",
    ),
];
const FAILING: &[Remedy] = &[
    at(
        "Windows client",
        "stop the search for desktop.ini and Thumbs.db: policy 'Turn off the caching of thumbnails in hidden thumbs.db files'",
    ),
    at(
        "application",
        "shorten search paths (PATH, LD_LIBRARY_PATH, include folders) that begin on the share",
    ),
    at("Windows client", "Set-SmbClientConfiguration -FileNotFoundCacheLifetime 5 or more"),
];
const CHURN: &[Remedy] = &[
    at(
        "application",
        "keep files open that are used again; ask for attributes without an open where the API can",
    ),
    at("Samba", "smb2 leases = yes, so that clients may keep handles"),
];
const COMPOUND: &[Remedy] = &[
    at(
        "client",
        "use one that sends related requests together: Windows 8 and later, Linux from 5.9, smbclient from 4.x do in part",
    ),
    at("network", "bring client and server closer together, or a cache between them (BranchCache)"),
];
const CONFLICTS: &[Remedy] = &[
    at(
        "application",
        "open with FILE_SHARE_READ and FILE_SHARE_WRITE where others may look; retry later, not at once",
    ),
    at("server", "see who has the files open: smbstatus --locks, Get-SmbOpenFile"),
];
const LOCKS: &[Remedy] = &[
    at("application", "lock smaller ranges for a shorter time; databases belong on block storage"),
    at("server", "see who holds them: smbstatus --byterange, Get-SmbOpenFile"),
];
const BREAKS: &[Remedy] = &[
    at("application", "do not write files from several clients in turn; one writer at a time"),
    at("Samba", "for such shares: oplocks = no, smb2 leases = no"),
    at("Windows", "Set-SmbShare -LeasingMode None for such shares"),
];
const CLIENT: &[Remedy] = &[
    at(
        "client",
        "look at its processor, its disk and its virus scanner; the server has nothing to do meanwhile",
    ),
    at(
        "application",
        "ask for the next before the last was worked on (read ahead, several threads)",
    ),
];

impl Trouble {
    /// What it is called: one line.
    pub fn title(self) -> &'static str {
        match self {
            Trouble::SmallReads => "small reads, one at a time",
            Trouble::SmallWrites => "small writes, one at a time",
            Trouble::BandwidthLimited => "the line is full",
            Trouble::WindowLimited => "small TCP windows",
            Trouble::Loss => "lost packets",
            Trouble::ServerQueueing => "requests queue at the server",
            Trouble::SlowFilesystem => "slow server or file system",
            Trouble::SlowLogon => "slow logons",
            Trouble::SlowFlush => "slow flushes",
            Trouble::Protection => "signing and encryption",
            Trouble::RepeatedLookups => "the same looked up again",
            Trouble::RepeatedListings => "the same folders listed again",
            Trouble::FailingLookups => "names that are not there",
            Trouble::OpenCloseChurn => "opened and closed for nothing",
            Trouble::NoCompounding => "requests one by one",
            Trouble::ShareConflicts => "share-mode conflicts",
            Trouble::LockContention => "lock contention",
            Trouble::BreakWaits => "waiting for other clients' caches",
            Trouble::CreditStarvation => "too few credits",
            Trouble::Stragglers => "out of line with the rest",
            Trouble::SlowClient => "the client pauses",
        }
    }

    /// What to do, the most useful first.
    pub fn remedies(self) -> &'static [Remedy] {
        match self {
            Trouble::SmallReads | Trouble::SmallWrites => SMALL,
            Trouble::BandwidthLimited => BANDWIDTH,
            Trouble::WindowLimited => WINDOW,
            Trouble::Loss => LOSS,
            Trouble::ServerQueueing => QUEUEING,
            Trouble::SlowFilesystem => STORAGE,
            Trouble::SlowLogon => LOGON,
            Trouble::SlowFlush => FLUSH,
            Trouble::Protection => PROTECTION,
            Trouble::RepeatedLookups | Trouble::RepeatedListings => LOOKUPS,
            Trouble::FailingLookups => FAILING,
            Trouble::OpenCloseChurn => CHURN,
            Trouble::NoCompounding => COMPOUND,
            Trouble::ShareConflicts => CONFLICTS,
            Trouble::LockContention => LOCKS,
            Trouble::BreakWaits => BREAKS,
            Trouble::CreditStarvation => CREDITS,
            Trouble::Stragglers => STRAGGLERS,
            Trouble::SlowClient => CLIENT,
        }
    }
}
