//! A private Samba for a test, removed with it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use smbscope_client::clock::Clock;
use smbscope_client::session::Failed;
use smbscope_client::{Config, Credential, Host, Session, Target};
use smbscope_lab::{Guard, Lab, Options};
use smbscope_load::run::users::Credentials;

/// Time for a logon on a busy machine.
pub const LOGON: std::time::Duration = std::time::Duration::from_secs(60);

/// A running Samba.
pub struct Samba {
    /// `//127.0.0.1:PORT/home`
    pub target: String,
    /// The users' password.
    pub password: String,
    guard: Guard,
    folder: tempfile::TempDir,
}

/// Starts one; `None`, with a message, if there is no Samba on this machine.
pub fn samba(change: impl FnOnce(&mut Options)) -> Option<Samba> {
    let folder = tempfile::Builder::new().prefix("smbscope").tempdir().unwrap();
    // smbd walks down to the share and to its own lock files as the mapped user.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    // smbd shares its port with others that request it: each lab gets a free one, and
    // listens before the next one looks.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = Some(folder.path().join("lab"));
    let mut options = Options { dir, port: Some(free), ..Options::default() };
    change(&mut options);
    let running = match Lab::up(&options) {
        Ok(running) => running,
        Err(error) => {
            crate::skip!("{error}");
            return None;
        }
    };
    let password = running.password().unwrap();
    let target = format!("//127.0.0.1:{}/{}", running.port, running.share);
    Some(Samba { target, password, guard: running.guard(), folder })
}

/// Samba 4.22, where `scripts/samba-4.22.sh` unpacked it; otherwise `None`, with a message.
pub fn samba_4_22() -> Option<std::path::PathBuf> {
    let cache = std::env::var_os("SMBSCOPE_CACHE").map(std::path::PathBuf::from);
    let home = || Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cache/smbscope"));
    let dir = cache.or_else(home)?.join("samba-4.22");
    if dir.join("bin/smbd").exists() {
        return Some(dir);
    }
    crate::skip!("no Samba 4.22 in {}: run scripts/samba-4.22.sh", dir.display());
    None
}

/// The server of a target, `//HOST:PORT/SHARE`, with these settings of clients.
pub async fn host(target: &str, config: Config) -> Host {
    let target = Target::parse(target).unwrap();
    Host::find(target, config, Clock::start(), true).await.unwrap()
}

/// A session on any target.
pub async fn connect_to(
    target: &str,
    config: Config,
    credential: &Credential,
) -> Result<Session, Failed> {
    let host = Arc::new(host(target, config).await);
    Session::connect(LOGON, host, credential, 0, None).await
}

impl Samba {
    /// The server with the default settings of clients.
    pub async fn host(&self) -> Host {
        host(&self.target, Config::default()).await
    }

    /// A session of a user with the lab's password.
    pub async fn connect(&self, config: Config, user: &str) -> Session {
        let connected = self.try_to_connect(config, &Credential::new(user, &self.password)).await;
        connected.map_err(|failed| failed.error).unwrap()
    }

    /// Likewise with any credential, and perhaps refused.
    pub async fn try_to_connect(
        &self,
        config: Config,
        credential: &Credential,
    ) -> Result<Session, Failed> {
        connect_to(&self.target, config, credential).await
    }

    /// Its users, by number.
    pub fn users(&self) -> Credentials {
        Credentials::pattern("user{:05}", &self.password).unwrap()
    }

    /// Its guard.
    pub fn lab(&self) -> &Guard {
        &self.guard
    }

    /// The shared folder.
    pub fn share(&self) -> std::path::PathBuf {
        self.folder.path().join("lab/share")
    }

    /// The address on which it listens.
    pub fn port(&self) -> u16 {
        self.target.split([':', '/']).nth(3).unwrap().parse().unwrap()
    }

    /// All smbd processes of the lab.
    pub fn processes(&self) -> Vec<i32> {
        let main = self.guard.smbd_pid();
        main.into_iter().chain(self.children()).collect()
    }

    /// Those that serve connections.
    pub fn children(&self) -> Vec<i32> {
        let Some(main) = self.guard.smbd_pid() else { return Vec::new() };
        let file = format!("/proc/{main}/task/{main}/children");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}
