//! Follows DFS links to the share behind a path.
//!
//! A client asks the server for referrals of the path (FSCTL_DFS_GET_REFERRALS on IPC$, MS-SMB2 section 3.2.4.20.3), and
//! takes the first target that can be used (MS-DFSC section 3.1.4.1): `\\dfs\public\accounting\2026` becomes
//! `\\new1\acc\2026`. It keeps no cache: it follows a path once, before work begins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smbscope_wire::dfs::{Response, ServerType, encode};
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::encode::Ioctl;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::ioctl::IoctlResponse;
use smbscope_wire::status::Status;

use crate::channel::Ask;
use crate::clock::Clock;
use crate::config::{Config, Target};
use crate::credential::Credential;
use crate::error::ClientError;
use crate::host::Host;
use crate::reply::Want;
use crate::session::{Session, within};

/// Servers asked for one path: links that lead to each other end here.
const SERVERS_MAX: usize = 16;
/// Longest answer that a request allows, in bytes.
const ANSWER_BYTES: u32 = 65_536;
/// The highest version of referrals.
const VERSION: u16 = 4;

/// One referral that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The path that the referral covers: `\\dfs\public\accounting`.
    pub link: String,
    /// Its targets in the order of the answer, as `\\server\share\path`.
    pub targets: Vec<String>,
    /// How long a client may keep the answer.
    pub ttl_s: Option<u32>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The share and folder behind all links.
    pub target: Target,
    /// The referrals on the way; empty if the path has no link.
    pub steps: Vec<Step>,
    /// Targets that could not be used, with the reason.
    pub failed: Vec<String>,
}

/// Follows the links of a target with a folder; a share alone is not a link and is returned as it is.
///
/// Targets are reached at the port of `target`, which for DFS is 445. `limit` applies to each server. If the first
/// server cannot be reached or refuses the logon, the target is returned as it is: the caller gets that error when it connects.
///
/// # Errors
///
/// If no target of a link can be used, or if links lead to each other.
pub async fn follow(
    limit: Duration,
    target: &Target,
    config: &Config,
    credential: &Credential,
) -> Result<Followed, ClientError> {
    let mut followed = Followed { target: target.clone(), steps: Vec::new(), failed: Vec::new() };
    // The next target to try is the last.
    let mut candidates = vec![target.clone()];
    let mut last = None;
    let mut has_root = false;
    if target.folder.is_empty() {
        return Ok(followed);
    }
    for _ in 0..SERVERS_MAX {
        let Some(place) = candidates.pop() else { break };
        let answer = match referral(limit, &place, config, credential).await {
            Ok(answer) => answer,
            Err(_) if followed.steps.is_empty() => return Ok(followed),
            Err(error) => {
                followed.failed.push(format!("{}: {error}", place.unc()));
                last = Some(error);
                continue;
            }
        };
        // The second answer about a root is that of the root's own server: the path continues without links.
        match answer.filter(|answer| !(answer.is_root && has_root)) {
            Some(answer) => {
                has_root |= answer.is_root;
                candidates.extend(answer.targets.into_iter().rev());
                followed.steps.push(answer.step);
            }
            None if followed.steps.is_empty() => return Ok(followed),
            None => match usable(limit, &place, config, credential).await {
                Ok(()) => {
                    followed.target = place;
                    return Ok(followed);
                }
                Err(error) => {
                    followed.failed.push(format!("{}: {error}", place.unc()));
                    last = Some(error);
                }
            },
        }
    }
    Err(last.filter(|_| candidates.is_empty()).unwrap_or_else(|| {
        let path = format!("{}\\{}", target.unc(), target.folder);
        ClientError::Protocol(format!(
            "{path}: its DFS links lead through more than {SERVERS_MAX} servers; do they lead to each other? `smbscope plan namespace` finds loops in an export"
        ))
    }))
}

/// What a server answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The referral.
    pub step: Step,
    /// Its targets with the rest of the path.
    pub targets: Vec<Target>,
    /// Whether it is about a root, and not a link.
    pub is_root: bool,
}

/// Asks the server of a target for the referral of its path; `None` if it has none.
async fn referral(
    limit: Duration,
    place: &Target,
    config: &Config,
    credential: &Credential,
) -> Result<Option<Answer>, ClientError> {
    let ipc = Target { share: "IPC$".to_owned(), folder: String::new(), ..place.clone() };
    let mut session = match session(limit, ipc, config, credential).await {
        Ok(session) => session,
        // A server without IPC$ has no DFS.
        Err(ClientError::Share { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let path = format!("\\{}\\{}\\{}", place.host, place.share, place.folder);
    let input = encode::request(VERSION, &path);
    let request = Ioctl {
        file_id: FileId::ANY,
        code: Fsctl::DFS_GET_REFERRALS,
        input: &input,
        output_bytes: ANSWER_BYTES,
    };
    let ask = Ask { payload_bytes: ANSWER_BYTES, want: Want::Message, ..Ask::default() };
    let reply = within(limit, session.call(&request, ask)).await;
    session.close().await;
    let reply = reply?;
    if !matches!(reply.status, Status::SUCCESS | Status::BUFFER_OVERFLOW) {
        return Ok(None);
    }
    let output = IoctlResponse(&reply.message).output().unwrap_or_default();
    Ok(answer(place, &path, output))
}

/// Reads an answer to the question about `path`; `None` if it names no usable target.
pub fn answer(place: &Target, path: &str, output: &[u8]) -> Option<Answer> {
    let response = Response::new(output);
    let units: Vec<u16> = path.encode_utf16().collect();
    let consumed = usize::from(response.path_consumed()?) / 2;
    let (covered, rest) = units.split_at_checked(consumed)?;
    let rest = String::from_utf16_lossy(rest);
    let mut is_root = false;
    let mut ttl_s = None;
    let mut paths = Vec::new();
    for entry in response.referrals() {
        let Some(address) = entry.network_address() else { continue };
        is_root |= entry.server_type() == Some(ServerType::ROOT);
        ttl_s = ttl_s.or(entry.time_to_live_s());
        paths.push(address);
    }
    let targets: Vec<Target> = paths
        .iter()
        .filter_map(|address| {
            let whole =
                format!("{}\\{}", address.trim_end_matches('\\'), rest.trim_start_matches('\\'));
            let mut parts = whole.split('\\').filter(|part| !part.is_empty());
            let (host, share) = (parts.next()?.to_owned(), parts.next()?.to_owned());
            let folder = parts.collect::<Vec<_>>().join("\\");
            Some(Target { host, port: place.port, share, folder })
        })
        .collect();
    let step = Step {
        link: format!("\\{}", String::from_utf16_lossy(covered).trim_end_matches('\\')),
        targets: paths
            .iter()
            .map(|path| format!("\\\\{}", path.trim_start_matches('\\')))
            .collect(),
        ttl_s,
    };
    (!targets.is_empty()).then_some(Answer { step, targets, is_root })
}

/// Whether the share can be connected.
async fn usable(
    limit: Duration,
    place: &Target,
    config: &Config,
    credential: &Credential,
) -> Result<(), ClientError> {
    session(limit, place.clone(), config, credential).await?.close().await;
    Ok(())
}

async fn session(
    limit: Duration,
    target: Target,
    config: &Config,
    credential: &Credential,
) -> Result<Session, ClientError> {
    let config = Config { channels: 1, ..config.clone() };
    let host = Arc::new(Host::find(target, config, Clock::start(), false).await?);
    let connected = Session::connect(limit, host, credential, 0, None).await;
    connected.map_err(|failed| failed.error)
}

impl fmt::Display for Followed {
    /// `\\dfs\public\a is a DFS link to \\new1\acc`, for each link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.steps.iter().enumerate() {
            let comma = if place == 0 { "" } else { "; " };
            write!(f, "{comma}{} is a DFS link to {}", step.link, step.targets.join(" and "))?;
            if let Some(ttl_s) = step.ttl_s {
                write!(f, " (TTL {ttl_s} s)")?;
            }
        }
        for failed in &self.failed {
            write!(f, "; cannot use {failed}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use smbscope_wire::dfs::encode::{Entry, Target as EncodedTarget, response};
    use smbscope_wire::dfs::{EntryFlags, HeaderFlags};

    use super::*;

    fn place() -> Target {
        Target::parse("//dfs:4450/public/accounting/2026/q1").unwrap()
    }

    fn output(consumed: usize, addresses: &[&str], server_type: ServerType) -> Vec<u8> {
        let entries: Vec<_> = addresses
            .iter()
            .map(|address| {
                Entry::Target(EncodedTarget {
                    version: 4,
                    server_type,
                    flags: EntryFlags(0),
                    time_to_live_s: 1800,
                    dfs_path: r"\dfs\public\accounting",
                    alternate_path: r"\dfs\public\accounting",
                    network_address: address,
                })
            })
            .collect();
        response(consumed as u16, HeaderFlags(2), &entries).unwrap()
    }

    #[test]
    fn an_answer_becomes_targets_with_the_rest_of_the_path() {
        let path = r"\dfs\public\accounting\2026\q1";
        let consumed = 2 * r"\dfs\public\accounting".len();
        let bytes = output(consumed, &[r"\new1\acc", r"\new2\data\acc\"], ServerType::NON_ROOT);
        let answer = answer(&place(), path, &bytes).unwrap();
        assert!(!answer.is_root);
        let targets: Vec<_> = answer
            .targets
            .iter()
            .map(|target| (target.address(), target.unc(), target.folder.as_str()))
            .collect();
        assert_eq!(
            targets,
            [
                ("new1:4450".to_owned(), r"\\new1\acc".to_owned(), r"2026\q1"),
                ("new2:4450".to_owned(), r"\\new2\data".to_owned(), r"acc\2026\q1"),
            ]
        );
        assert_eq!(answer.step.link, r"\\dfs\public\accounting");
        let followed =
            Followed { target: place(), steps: vec![answer.step], failed: vec!["x: gone".into()] };
        assert_eq!(
            followed.to_string(),
            r"\\dfs\public\accounting is a DFS link to \\new1\acc and \\new2\data\acc\ (TTL 1800 s); cannot use x: gone"
        );
    }

    #[test]
    fn answers_without_targets_are_none() {
        let path = r"\dfs\public\a";
        assert_eq!(answer(&place(), path, &[]), None);
        assert_eq!(answer(&place(), path, &output(10, &[], ServerType::ROOT)), None);
        assert_eq!(answer(&place(), path, &output(26, &[r"\only"], ServerType::ROOT)), None);
        // More consumed than was asked.
        assert_eq!(answer(&place(), path, &output(500, &[r"\a\b"], ServerType::ROOT)), None);
        let whole = output(20, &[r"\a\b"], ServerType::ROOT);
        for length in 0..whole.len() {
            let _ = answer(&place(), path, &whole[..length]);
        }
    }
}
