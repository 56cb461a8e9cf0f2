//! A private MIT KDC for a test, removed with it: it has its own database, configuration and port.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use smbscope_client::kerberos::kdc::KdcAddress;

/// The realm.
pub const REALM: &str = "LAB.TEST";

/// A running KDC.
pub struct Kdc {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Drop for Kdc {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Kdc {
    /// Starts one; `None`, with a message, if there is no MIT KDC on this machine.
    pub fn start() -> Option<Kdc> {
        let Some(program) = find("krb5kdc").filter(|_| find("kadmin.local").is_some()) else {
            smbscope_testing::skip!("no krb5kdc (Debian: krb5-kdc krb5-admin-server)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("smbscope-kdc").tempdir().unwrap();
        let port = free_port();
        let at = folder.path().display();
        write(
            &folder.path().join("krb5.conf"),
            &format!(
                "[libdefaults]\n  default_realm = {REALM}\n  dns_lookup_kdc = false\n  \
                 dns_lookup_realm = false\n  rdns = false\n[realms]\n  {REALM} = {{\n    \
                 kdc = 127.0.0.1:{port}\n  }}\n"
            ),
        );
        write(
            &folder.path().join("kdc.conf"),
            &format!(
                "[kdcdefaults]\n  kdc_listen = \"\"\n  kdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n  \
                 {REALM} = {{\n    database_name = {at}/principal\n    key_stash_file = {at}/stash\n    \
                 acl_file = {at}/acl\n    supported_enctypes = aes256-cts-hmac-sha1-96:normal \
                 aes128-cts-hmac-sha1-96:normal\n    default_principal_flags = +preauth\n  }}\n\
                 [logging]\n  kdc = FILE:{at}/kdc.log\n"
            ),
        );
        let mut create = command(folder.path(), &find("kdb5_util")?);
        let made = create.args(["create", "-r", REALM, "-s", "-P", "master"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let process = command(folder.path(), &program)
            .args(["-n", "-P"])
            .arg(folder.path().join("kdc.pid"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kdc = Kdc { folder, port, process };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20), "the KDC does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(kdc)
    }

    /// Runs lines of kadmin.local.
    pub fn admin(&self, lines: &[String]) {
        let program = find("kadmin.local").unwrap();
        let mut process = command(self.folder.path(), &program)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let done = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !said.contains("while"), "{said}");
    }

    /// A path in the KDC's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The address on which it listens.
    pub fn address(&self) -> KdcAddress {
        KdcAddress { host: "127.0.0.1".into(), port: self.port }
    }

    /// Its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("kdc.log")).unwrap()
    }
}

/// A free port.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn command(folder: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("KRB5_CONFIG", folder.join("krb5.conf"))
        .env("KRB5_KDC_PROFILE", folder.join("kdc.conf"));
    command
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.exists())
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
