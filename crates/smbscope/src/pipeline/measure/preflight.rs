//! Checks before a run that users can log on and that their files exist.

use std::sync::Arc;
use std::time::Duration;

use smbscope_client::error::status_text;
use smbscope_client::{ClientError, Compounds, Host, Session};
use smbscope_load::run::users::{Credentials, Shard, home};
use smbscope_load::workload::{ClientCache, Planner};
use smbscope_tables::description::RunDescription;
use smbscope_tables::status_meaning::meaning;

use crate::exit::{Code, Failure};

/// Checks users, each over a connection of its own.
struct Preflight<'a> {
    timeout: Duration,
    host: Arc<Host>,
    credentials: &'a Credentials,
    planner: &'a Planner,
}

impl Preflight<'_> {
    /// A session of user `number`.
    async fn log_on(&self, number: u64) -> anyhow::Result<Session> {
        let credential = self.credentials.of_user(number);
        let connected =
            Session::connect(self.timeout, self.host.clone(), &credential, 0, None).await;
        connected.map_err(|failed| {
            let (name, place) = (credential.name(), self.host.target.address());
            let context = match &failed.error {
                // It names the address, and no user has a part in it.
                ClientError::Connect { .. } => return failed.error.into(),
                // A session that gets this far is logged on.
                ClientError::Share { .. } => format!("user {name} at {place}"),
                ClientError::Protocol(_) => place,
                ClientError::Lost(_) => format!(
                    "{place}: the server ended the connection before user {name} was logged on; is this the port of SMB (445)?"
                ),
                error => {
                    let status = error.status().map(status_text);
                    let meaning = status.and_then(|status| meaning(&status));
                    let why = meaning.map_or(String::new(), |meaning| format!(": {meaning}"));
                    format!("user {name} cannot log on at {place}{why}")
                }
            };
            anyhow::Error::from(failed.error).context(context)
        })
    }

    /// Logs on as user `number` and checks that their files exist, so that a wrong password or missing files are
    /// reported at once.
    async fn check(
        &self,
        number: u64,
        description: Option<&mut RunDescription>,
    ) -> anyhow::Result<bool> {
        let mut session = self.log_on(number).await?;
        if let Some(description) = description {
            let negotiated = *session.negotiated();
            description.dialect = negotiated.dialect.name().map(str::to_owned);
            let protection = &session.channel().protection;
            let off = || "off".to_owned();
            description.signing = Some(match (&protection.seal, protection.sign_all) {
                (None, true) => negotiated.signing.name().map_or_else(off, str::to_owned),
                _ => off(),
            });
            let cipher = protection.seal.as_ref().and(negotiated.cipher);
            let cipher = cipher.and_then(|cipher| cipher.name());
            description.encryption = Some(cipher.map_or_else(off, str::to_owned));
            let guid = negotiated.server_guid.iter().map(|byte| format!("{byte:02x}"));
            description.server_guid = Some(guid.collect());
            description.server_clock_ahead_ns = negotiated.server_clock.map(|told| told.ahead_ns);
            description.server_clock_error_ns = negotiated.server_clock.map(|told| told.error_ns);
        }
        let there = match self.planner.files().user(number).next() {
            Some(_) => {
                let home = home(&self.host.target.folder, number);
                let entries = smbscope_load::prepare::list(&mut session, &home).await?;
                let names = entries.iter().flatten().map(|entry| entry.name.as_str());
                if let Some(options) = self.planner.files().prepared_otherwise(names) {
                    let message = format!(
                        "{}\\{home}: the files of user {number} were created with {options}: use the same options for the run, or create the files again with `smbscope load prepare` and the run's options",
                        self.host.target.unc()
                    );
                    return Err(Failure::new(Code::Input, message).into());
                }
                entries.is_some()
            }
            None => true,
        };
        session.close().await;
        Ok(there)
    }

    /// An error if the server offers no directory leases: `--client-cache dirlease` would measure what
    /// `published` does.
    async fn need_directory_leases(&self, number: u64) -> anyhow::Result<()> {
        let session = self.log_on(number).await?;
        let (has_leases, dialect) = (session.directory_leases(), session.negotiated().dialect);
        session.close().await;
        if has_leases {
            return Ok(());
        }
        let dialect = dialect.name().unwrap_or("an old dialect");
        let message = format!(
            "--client-cache dirlease: {} grants no directory leases (negotiated {dialect}, without SMB2_GLOBAL_CAP_DIRECTORY_LEASING; Samba: \"smb3 directory leases = yes\" since version 4.22); use --client-cache published or collapse",
            self.host.target.address()
        );
        Err(Failure::new(Code::Input, message).into())
    }

    /// Likewise, with an error if the files do not exist.
    async fn need(&self, number: u64) -> anyhow::Result<()> {
        if self.check(number, None).await? {
            return Ok(());
        }
        let home = home(&self.host.target.folder, number);
        let message = format!(
            "{}\\{home}: the files of user {number} do not exist; create them with `smbscope load prepare //SERVER/SHARE --users {number}` and the same workload, --seed and --scale, or use fewer users",
            self.host.target.unc()
        );
        Err(Failure::new(Code::Input, message).into())
    }

    /// The number of users whose files exist, found by doubling and bisecting.
    async fn prepared(&self) -> anyhow::Result<u64> {
        self.need(1).await?;
        let most = match self.credentials {
            Credentials::List(list) => list.len() as u64,
            Credentials::Pattern(..) => 1 << 20,
        };
        // A user who cannot log on does not count.
        let (mut there, mut missing) = (1, 2);
        while missing <= most && self.check(missing, None).await.unwrap_or(false) {
            there = missing;
            missing *= 2;
        }
        missing = missing.min(most + 1);
        while missing - there > 1 {
            let middle = there + (missing - there) / 2;
            if self.check(middle, None).await.unwrap_or(false) {
                there = middle
            } else {
                missing = middle
            }
        }
        Ok(there)
    }
}

/// The users that a run needs.
#[derive(Clone, Copy, Debug)]
pub enum Needed {
    /// A fixed number.
    Users(u64),
    /// As many as have their files.
    AllPrepared,
}

/// Checks the first user before a matrix, which no other user measures.
pub async fn check_first(
    timeout: Duration,
    host: Host,
    credentials: &Credentials,
    planner: &Planner,
) -> anyhow::Result<()> {
    Preflight { timeout, host: Arc::new(host), credentials, planner }.need(1).await
}

/// Which related compounds the server answers, and why not all ([`Session::compounds`]).
pub async fn find_compounds(
    timeout: Duration,
    host: Arc<Host>,
    credentials: &Credentials,
    user: u64,
) -> anyhow::Result<(Compounds, Option<String>)> {
    let credential = credentials.of_user(user);
    // A user who cannot log on is reported by the checks that follow.
    let Ok(mut session) = Session::connect(timeout, host, &credential, 0, None).await else {
        return Ok((Compounds::All, None));
    };
    let probing = tokio::time::timeout(timeout, session.compounds()).await;
    let found = match probing {
        Ok(Ok((compounds, status))) => (compounds, status.map(status_text)),
        Ok(Err(error)) => (Compounds::Off, Some(error.to_string())),
        Err(_) => (Compounds::Off, Some(ClientError::Timeout(timeout).to_string())),
    };
    session.close().await;
    Ok(found)
}

/// Checks before files are created that the user with the highest number can log on.
pub async fn check_last(
    timeout: Duration,
    host: Arc<Host>,
    credentials: &Credentials,
    planner: &Planner,
    last: u64,
) -> anyhow::Result<()> {
    if let Credentials::List(list) = credentials
        && (list.len() as u64) < last
    {
        let message = format!(
            "the list has {} users, but --users is {last}: add users, or use fewer",
            list.len()
        );
        return Err(Failure::usage(message));
    }
    let preflight = Preflight { timeout, host, credentials, planner };
    let session = preflight.log_on(last).await.map_err(|error| {
        error.context(Failure::new(
            Code::Input,
            format!(
                "nothing was written, because the last of {last} users cannot log on; use fewer --users or create the accounts"
            ),
        ))
    })?;
    session.close().await;
    Ok(())
}

/// Checks the server before the run; returns the largest number of users of the run.
pub async fn check_users(
    (timeout, shard, needed): (Duration, Shard, Needed),
    cache: ClientCache,
    host: &Host,
    credentials: &Credentials,
    planner: &Planner,
    description: &mut RunDescription,
) -> anyhow::Result<u64> {
    let quiet =
        Host::find(host.target.clone(), host.config.clone(), host.clock.clone(), false).await?;
    let preflight = Preflight { timeout, host: Arc::new(quiet), credentials, planner };
    preflight.check(shard.index, Some(description)).await?;
    if cache == ClientCache::DirLease {
        preflight.need_directory_leases(shard.index).await?;
    }
    let most = match needed {
        Needed::Users(most) => most,
        Needed::AllPrepared => return preflight.prepared().await,
    };
    if let Credentials::List(list) = credentials
        && (list.len() as u64) < most
    {
        let message = format!(
            "the list has {} users, but the run needs {most}: add users, or use fewer",
            list.len()
        );
        return Err(Failure::usage(message));
    }
    if let Some(last) = shard.users(most).last() {
        preflight.need(last).await?;
    }
    Ok(most)
}
