//! A look at the server before the run: whether users can log on and their files are there.

use std::sync::Arc;

use smbscope_client::{ClientError, Host, Session};
use smbscope_load::run::users::{Credentials, home};
use smbscope_load::workload::Planner;
use smbscope_tables::description::RunDescription;

use super::args::Run;
use crate::exit::{Code, Failure};

/// A user who logs on once before the run.
struct Scout<'a> {
    args: &'a Run,
    host: Arc<Host>,
    credentials: &'a Credentials,
    planner: &'a Planner,
}

impl Scout<'_> {
    /// Logs on as user `number` and looks whether their files are there, so that a wrong password
    /// or missing files are told at once.
    async fn look(
        &self,
        number: u64,
        description: Option<&mut RunDescription>,
    ) -> anyhow::Result<bool> {
        let credential = self.credentials.of(number);
        let limit = self.args.client.timeout;
        let host = self.host.clone();
        let place = self.host.target.address();
        let name = credential.name();
        let connected = Session::connect(limit, host, &credential, 0, None).await;
        let mut session = connected.map_err(|failed| {
            let context = match failed.error {
                // Who got so far is logged on.
                ClientError::Share { .. } => format!("user {name} at {place}"),
                _ => format!("user {name} cannot log on at {place}"),
            };
            anyhow::Error::from(failed.error).context(context)
        })?;
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
                        "{}\\{home}: the files of user {number} were made with {options}: give the run the same, or make them again with `smbscope load prepare` and the run's options",
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

    /// The same, with an error when the files are not there.
    async fn need(&self, number: u64) -> anyhow::Result<()> {
        if self.look(number, None).await? {
            return Ok(());
        }
        let home = home(&self.host.target.folder, number);
        let message = format!(
            "{}\\{home}: the files of user {number} are not there; make them with `smbscope load prepare --users {number}` and the same workload, --seed and --scale, or ask for fewer users",
            self.host.target.unc()
        );
        Err(Failure::new(Code::Input, message).into())
    }

    /// How many users have their files: doubles, then bisects.
    async fn prepared(&self) -> anyhow::Result<u64> {
        self.need(1).await?;
        let most = match self.credentials {
            Credentials::List(list) => list.len() as u64,
            Credentials::Pattern(..) => 1 << 20,
        };
        // A user who cannot log on is none.
        let (mut there, mut missing) = (1, 2);
        while missing <= most && self.look(missing, None).await.unwrap_or(false) {
            there = missing;
            missing *= 2;
        }
        missing = missing.min(most + 1);
        while missing - there > 1 {
            let middle = there + (missing - there) / 2;
            match self.look(middle, None).await.unwrap_or(false) {
                true => there = middle,
                false => missing = middle,
            }
        }
        Ok(there)
    }
}

/// Looks at the server before a table, which only the first user measures.
pub async fn scout_first(
    args: &Run,
    host: Host,
    credentials: &Credentials,
    planner: &Planner,
) -> anyhow::Result<()> {
    Scout { args, host: Arc::new(host), credentials, planner }.need(1).await
}

/// Looks at the server before the run; the most users of the run.
pub async fn scout(
    args: &Run,
    host: &Host,
    credentials: &Credentials,
    planner: &Planner,
    description: &mut RunDescription,
) -> anyhow::Result<u64> {
    let quiet =
        Host::find(host.target.clone(), host.config.clone(), host.clock.clone(), false).await?;
    let scout = Scout { args, host: Arc::new(quiet), credentials, planner };
    scout.look(args.course.shard.index, Some(description)).await?;
    let most = match (args.search.find_capacity, args.search.max_users) {
        (false, _) => args.course.users,
        (true, Some(most)) => most,
        (true, None) => return scout.prepared().await,
    };
    if let Credentials::List(list) = credentials
        && (list.len() as u64) < most
    {
        let message = format!(
            "the list has {} users, the run {most}: add users, or ask for fewer",
            list.len()
        );
        return Err(Failure::usage(message));
    }
    if let Some(last) = args.course.shard.users(most).last() {
        scout.need(last).await?;
    }
    Ok(most)
}
