//! Options of the SMB client, and their conversion to its configuration.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use smbscope_client::{Config, Encryption, Kerberos, Signing};
use smbscope_load::workload::ClientCache;
use smbscope_tables::quantity::parse_distance;
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};

use super::migrate::Channels;
use crate::exit::Failure;
use crate::options::duration;

/// Properties of the SMB client.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client options")]
pub struct Client {
    /// Offer only this dialect (2.0.2, 2.1, 3.0, 3.0.2, 3.1.1); can be repeated [default: offer
    /// all].
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Vec<Dialect>,
    /// Signing: auto (if the server demands it), required, off, or an algorithm, which is then
    /// required: hmac-sha256, aes-cmac, aes-gmac.
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = signing)]
    pub signing: SigningChoice,
    /// Encryption: auto (if the server or share demands it), required, off, or a cipher, which is
    /// then required: aes-128-ccm, aes-128-gcm, aes-256-ccm, aes-256-gcm.
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = encryption)]
    pub encryption: EncryptionChoice,
    /// TCP connections per user (SMB3 multichannel): a number; with --workload migrate also auto (those
    /// that the server's list of interfaces offers) or addresses with a number each:
    /// 10.0.0.2,10.1.0.2x4 [default: 1; auto with --workload migrate].
    #[arg(long, value_name = "N|auto|LIST", value_parser = Channels::parse)]
    pub channels: Option<Channels>,
    /// Credits that the client tries to hold on each connection.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=8192))]
    pub credits: u16,
    /// Send related requests as compounds: on, create (only compounds that begin with a Create), off
    /// (one by one, each after the reply to the one before), or auto (what the server answers at the
    /// start).
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub compounds: Compounds,
    /// Request oplocks instead of leases.
    #[arg(long)]
    pub no_leases: bool,
    /// Request durable handles where the oplock or lease allows it, and reconnect them after a
    /// connection is lost.
    #[arg(long)]
    pub durable: bool,
    /// Directory caching of the client: published (none, the workload as defined), collapse (opens
    /// that a client answers from its cache are not sent), dirlease (use directory leases and
    /// answer from them where possible).
    #[arg(long, value_name = "MODE", default_value = "published", value_parser = ClientCache::from_str)]
    pub client_cache: ClientCache,
    /// Delay each reply in the client, for example by 20ms. This is a rough emulation: timers add 1
    /// to 2 ms, and TCP windows and handshakes are not affected. For a realistic link use `smbscope
    /// wan`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub rtt: Option<Duration>,
    /// Add to --rtt the round-trip time of a fibre of this length (2795km), at 200,000 km/s.
    #[arg(long, value_name = "LENGTH", value_parser = distance)]
    pub distance: Option<u64>,
    /// Treat a scenario that takes longer as failed.
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    pub timeout: Duration,
}

/// See [`Client::compounds`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Compounds {
    /// What the server answers.
    #[default]
    Auto,
    /// Always.
    On,
    /// Only compounds that begin with a Create.
    Create,
    /// Never.
    Off,
}

impl Compounds {
    /// The choice; `None`: to be found out.
    pub fn choice(self) -> Option<smbscope_client::Compounds> {
        match self {
            Compounds::Auto => None,
            Compounds::On => Some(smbscope_client::Compounds::All),
            Compounds::Create => Some(smbscope_client::Compounds::Opening),
            Compounds::Off => Some(smbscope_client::Compounds::Off),
        }
    }
}

/// See [`Client::signing`].
#[derive(Clone, Debug)]
pub struct SigningChoice(Signing, Option<SigningId>);

/// See [`Client::encryption`].
#[derive(Clone, Debug)]
pub struct EncryptionChoice(Encryption, Option<CipherId>);

fn distance(text: &str) -> Result<u64, String> {
    parse_distance(text).map_err(|error| error.to_string())
}

fn dialect(text: &str) -> Result<Dialect, String> {
    let known = [
        Dialect::SMB_2_0_2,
        Dialect::SMB_2_1,
        Dialect::SMB_3_0,
        Dialect::SMB_3_0_2,
        Dialect::SMB_3_1_1,
    ];
    let found = known.into_iter().find(|dialect| dialect.name() == Some(text));
    found.ok_or_else(|| "expected 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1".into())
}

fn signing(text: &str) -> Result<SigningChoice, String> {
    Ok(match text {
        "auto" => SigningChoice(Signing::Auto, None),
        "required" | "on" => SigningChoice(Signing::Required, None),
        "off" => SigningChoice(Signing::Off, None),
        "hmac-sha256" => SigningChoice(Signing::Required, Some(SigningId::HMAC_SHA256)),
        "aes-cmac" => SigningChoice(Signing::Required, Some(SigningId::AES_CMAC)),
        "aes-gmac" => SigningChoice(Signing::Required, Some(SigningId::AES_GMAC)),
        _ => {
            return Err("expected auto, required, off, hmac-sha256, aes-cmac or aes-gmac".into());
        }
    })
}

fn encryption(text: &str) -> Result<EncryptionChoice, String> {
    let of = |cipher| EncryptionChoice(Encryption::Required, Some(cipher));
    Ok(match text {
        "auto" => EncryptionChoice(Encryption::Auto, None),
        "required" | "on" => EncryptionChoice(Encryption::Required, None),
        "off" => EncryptionChoice(Encryption::Off, None),
        "aes-128-ccm" => of(CipherId::AES_128_CCM),
        "aes-128-gcm" => of(CipherId::AES_128_GCM),
        "aes-256-ccm" => of(CipherId::AES_256_CCM),
        "aes-256-gcm" => of(CipherId::AES_256_GCM),
        _ => {
            return Err("expected auto, required, off, aes-128-ccm, aes-128-gcm, aes-256-ccm or aes-256-gcm".into());
        }
    })
}

impl Client {
    /// Likewise for a session whose channels are chosen elsewhere.
    pub fn config_of_one(&self, kerberos: Option<Arc<Kerberos>>) -> anyhow::Result<Config> {
        self.settings(kerberos, 1)
    }

    /// The client's settings; `kerberos` says how to get tickets for logons.
    pub fn config(&self, kerberos: Option<Arc<Kerberos>>) -> anyhow::Result<Config> {
        let channels = match self.channels {
            None => 1,
            Some(Channels::Count(count)) => count,
            Some(Channels::Auto | Channels::Listed(_)) => {
                return Err(Failure::usage(
                    "--channels: auto and addresses need --workload migrate; give a number from 1 to 32",
                ));
            }
        };
        self.settings(kerberos, channels)
    }

    fn settings(&self, kerberos: Option<Arc<Kerberos>>, channels: u16) -> anyhow::Result<Config> {
        let compounds = self.compounds.choice().unwrap_or_default();
        let mut config = Config { kerberos, compounds, ..Config::default() };
        if !self.dialect.is_empty() {
            config.dialects.clone_from(&self.dialect);
            config.dialects.sort();
            config.dialects.dedup();
        }
        let SigningChoice(how, algorithm) = &self.signing;
        config.signing = *how;
        if let Some(algorithm) = algorithm {
            config.signing_algorithms = vec![*algorithm];
            let fits = |dialect: &Dialect| match *algorithm {
                SigningId::HMAC_SHA256 => {
                    *dialect < Dialect::SMB_3_0 || *dialect == Dialect::SMB_3_1_1
                }
                SigningId::AES_CMAC => *dialect >= Dialect::SMB_3_0,
                _ => *dialect == Dialect::SMB_3_1_1,
            };
            config.dialects.retain(fits);
            if config.dialects.is_empty() {
                return Err(Failure::usage(
                    "--signing: none of the offered dialects supports this algorithm; change --dialect",
                ));
            }
        }
        let EncryptionChoice(how, cipher) = &self.encryption;
        config.encryption = *how;
        if let Some(cipher) = cipher {
            config.ciphers = vec![*cipher];
        }
        if *how == Encryption::Required {
            let least = match cipher {
                None | Some(CipherId::AES_128_CCM) => Dialect::SMB_3_0,
                Some(_) => Dialect::SMB_3_1_1,
            };
            config.dialects.retain(|dialect| *dialect >= least);
            if config.dialects.is_empty() {
                return Err(Failure::usage(
                    "--encryption: none of the offered dialects supports this cipher; change --dialect",
                ));
            }
        }
        config.leases = !self.no_leases;
        config.durable = self.durable;
        config.connect_timeout = config.connect_timeout.min(self.timeout);
        config.channels = channels;
        config.credits = self.credits;
        // At 200,000 km/s the round trip takes 10 ns per metre.
        let distance = Duration::from_nanos(self.distance.unwrap_or(0).saturating_mul(10));
        config.delay = self.rtt.unwrap_or_default() + distance;
        Ok(config)
    }
}
