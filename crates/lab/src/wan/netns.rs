//! Two machines on one: network namespaces NAME-client and NAME-server, joined by a line that runs
//! in NAME-line.
//!
//! Owns: making them with `ip` (iproute2), running something inside, taking all of it away again.
//! The forwarder's ends are in a namespace of their own, so that this machine's network stack never
//! answers for them. Segmentation is off on the inner ends (gso_max_segs 1), so that a frame is a
//! packet of the MTU as on a wire; a checksum left to be filled in stays one (see `port`). Each end
//! knows the other's address on the link, because no ARP travels over a routed line.
//!
//! ```text
//!  NAME-client                NAME-line                 NAME-server
//!  eth0 10.45.0.1 ═══ client ── forwarder ── server ═══ eth0 10.45.0.2
//! ```

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use nix::sched::{CloneFlags, setns};

use super::error::Error;

/// The forwarder's interfaces in NAME-line: towards the client, towards the server.
pub const ENDS: [&str; 2] = ["client", "server"];
/// The interface in NAME-client and NAME-server.
pub const INTERFACE: &str = "eth0";
/// Where `ip netns` keeps namespaces that have a name (ip-netns(8)).
const FOLDER: &str = "/var/run/netns";
const NAME_MAX: usize = 48;
const RIGHTS: &str = "the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN";
/// Locally administered addresses.
const MAC: [&str; 2] = ["02:00:5e:00:00:01", "02:00:5e:00:00:02"];

/// What the namespaces are to be like.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What their names begin with.
    pub name: String,
    /// Their addresses.
    pub subnet: Subnet,
    /// Largest IP packet (bytes).
    pub mtu: u32,
}

/// A subnet whose first address is the client's and whose second is the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    network: Ipv4Addr,
    prefix: u8,
}

impl Default for Subnet {
    fn default() -> Subnet {
        Subnet { network: Ipv4Addr::new(10, 45, 0, 0), prefix: 24 }
    }
}

impl Subnet {
    /// The client's address.
    pub fn client(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) + 1)
    }

    /// The server's address.
    pub fn server(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) + 2)
    }
}

impl FromStr for Subnet {
    type Err = Error;

    /// `10.45.0.0/24`
    fn from_str(text: &str) -> Result<Subnet, Error> {
        let wrong = || Error::Subnet(text.escape_debug().take(40).collect());
        let (network, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let network: Ipv4Addr = network.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        let host_bits = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
        if !(8..=30).contains(&prefix) || u32::from(network) & host_bits != 0 {
            return Err(wrong());
        }
        Ok(Subnet { network, prefix })
    }
}

/// The namespaces. Dropping this takes them away.
#[derive(Debug)]
pub struct Netns {
    setup: Setup,
    up: bool,
}

impl Netns {
    /// Makes the namespaces with their interfaces and addresses. What was made is taken away again
    /// when something fails.
    ///
    /// # Errors
    /// One of them exists, `ip` is missing or fails, or the rights are missing.
    pub fn up(setup: Setup) -> Result<Netns, Error> {
        let name = &setup.name;
        check_name(name)?;
        for namespace in all(name) {
            if path_of(&namespace).exists() {
                return Err(Error::Exists(namespace, name.clone()));
            }
        }
        // From here on dropping it undoes what was done.
        let namespaces = Netns { up: true, setup };
        namespaces.make()?;
        Ok(namespaces)
    }

    /// NAME-client.
    pub fn client(&self) -> String {
        format!("{}-client", self.setup.name)
    }

    /// NAME-server.
    pub fn server(&self) -> String {
        format!("{}-server", self.setup.name)
    }

    /// NAME-line, where the forwarder's [`ENDS`] are.
    pub fn line(&self) -> String {
        format!("{}-line", self.setup.name)
    }

    /// The client's address and the server's.
    pub fn subnet(&self) -> Subnet {
        self.setup.subnet
    }

    /// Keeps them until [`remove`] is called, also by another process.
    pub fn keep(mut self) {
        self.up = false;
    }

    /// Takes everything away. Programs that still run inside keep their namespace, without the
    /// line, until they end: their process ids.
    pub fn down(mut self) -> Result<Vec<u32>, Error> {
        self.up = false;
        remove(&self.setup.name)
    }

    fn make(&self) -> Result<(), Error> {
        let Setup { subnet, mtu, .. } = &self.setup;
        let [client, server, line] = all(&self.setup.name);
        for namespace in [&line, &client, &server] {
            ip(&["netns", "add", namespace], "")?;
        }
        let mut script = String::new();
        for ((end, namespace), mac) in ENDS.iter().zip([&client, &server]).zip(MAC) {
            script += &format!(
                "link add {end} mtu {mtu} type veth peer name {INTERFACE} address {mac} mtu {mtu} netns {namespace}\n\
                 link set {end} addrgenmode none gso_max_segs 1 up\n"
            );
        }
        ip(&["-n", &line, "-batch", "-"], &script)?;
        let (mine, theirs) = (subnet.client(), subnet.server());
        for (namespace, own, other, mac) in
            [(&client, mine, theirs, MAC[1]), (&server, theirs, mine, MAC[0])]
        {
            let script = format!(
                "link set lo up\n\
                 link set {INTERFACE} addrgenmode none gso_max_segs 1 up\n\
                 address add {own}/{} dev {INTERFACE}\n\
                 neighbour replace {other} lladdr {mac} dev {INTERFACE} nud permanent\n",
                subnet.prefix
            );
            ip(&["-n", namespace, "-batch", "-"], &script)?;
        }
        Ok(())
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if self.up {
            // An error cannot be reported here.
            let _ = remove(&self.setup.name);
        }
    }
}

/// Whether one of the namespaces of this name is there.
///
/// # Errors
/// The name is not allowed for namespaces.
pub fn exist(name: &str) -> Result<bool, Error> {
    check_name(name)?;
    Ok(all(name).iter().any(|namespace| path_of(namespace).exists()))
}

/// Takes away the namespaces of this name, also those that an earlier run left behind; the ids of
/// processes that still run inside.
///
/// # Errors
/// There are none of this name, or `ip` fails.
pub fn remove(name: &str) -> Result<Vec<u32>, Error> {
    check_name(name)?;
    let there: Vec<_> = all(name).into_iter().filter(|name| path_of(name).exists()).collect();
    if there.is_empty() {
        return Err(Error::NoNamespace(name.to_owned()));
    }
    let (mut left, mut failed) = (Vec::new(), None);
    let line = format!("{name}-line");
    for end in ENDS.iter().filter(|_| there.contains(&line)) {
        // First the links: a namespace lives as long as a program in it. A run that was killed
        // early may not have made them.
        let _ = ip(&["-n", &line, "link", "delete", end], "");
    }
    for namespace in &there {
        // A name without a namespace behind it (left by a kill) has no processes to list.
        let pids = ip(&["netns", "pids", namespace], "").unwrap_or_default();
        left.extend(pids.lines().filter_map(|pid| pid.trim().parse::<u32>().ok()));
        if let Err(error) = ip(&["netns", "delete", namespace], "") {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(left), Err)
}

/// Runs `work` in a thread inside the namespace of this name. Sockets that it opens stay there.
///
/// # Errors
/// There is no such namespace, or CAP_SYS_ADMIN is missing.
pub fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let failed =
        |error| Error::io(format!("entering network namespace {namespace}"), error, RIGHTS);
    let file = File::open(path_of(namespace)).map_err(failed)?;
    // A thread of its own, because it cannot be relied on to find back.
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))?;
            Ok(work())
        });
        thread.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Moves the calling thread into the namespace of this name, unless it is there. Threads that it starts
/// later are there too, so a program calls it before it starts any.
///
/// # Errors
/// There is no such namespace, or CAP_SYS_ADMIN is missing.
pub fn enter(namespace: &str) -> Result<(), Error> {
    let failed =
        |error| Error::io(format!("entering network namespace {namespace}"), error, RIGHTS);
    let path = path_of(namespace);
    let same = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let wanted = same(&path).map_err(failed)?;
    if same(Path::new("/proc/thread-self/ns/net")).is_ok_and(|here| here == wanted) {
        return Ok(());
    }
    let file = File::open(path).map_err(failed)?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))
}

fn all(name: &str) -> [String; 3] {
    ["client", "server", "line"].map(|end| format!("{name}-{end}"))
}

fn path_of(namespace: &str) -> PathBuf {
    Path::new(FOLDER).join(namespace)
}

/// Names become file names and words of a script.
fn check_name(name: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_MAX && name.chars().all(good) {
        return Ok(());
    }
    Err(Error::Name(name.escape_debug().take(NAME_MAX + 2).collect()))
}

/// Runs `ip` with a script on its standard input; what it said.
fn ip(arguments: &[&str], script: &str) -> Result<String, Error> {
    let whole = || format!("ip {}", arguments.join(" "));
    let io = |error| Error::io(whole(), error, RIGHTS);
    let mut command = Command::new("ip");
    // Ordinary users do not have /sbin in their path.
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin")).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C on the terminal ends us in order; `ip` must not die halfway.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoIp,
        _ => io(error),
    })?;
    if let Some(mut input) = child.stdin.take() {
        // What it does not read it complains about itself.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(io)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let answer = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    if answer.contains("not permitted") || answer.contains("ermission denied") {
        return Err(Error::Rights { what: whole(), rights: RIGHTS });
    }
    let answer = if answer.is_empty() { output.status.to_string() } else { answer };
    Err(Error::Command { command: whole(), answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_hold_two_addresses() {
        let subnet: Subnet = "192.168.7.4/30".parse().unwrap();
        assert_eq!(subnet.client(), Ipv4Addr::new(192, 168, 7, 5));
        assert_eq!(subnet.server(), Ipv4Addr::new(192, 168, 7, 6));
        assert_eq!("10.45.0.0/24".parse::<Subnet>().unwrap(), Subnet::default());
        for text in ["10.0.0.0", "10.0.0.1/24", "10.0.0.0/31", "0.0.0.0/0", "10.0.0.0/40", "x/24"] {
            assert!(text.parse::<Subnet>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_cannot_become_paths_or_options() {
        for name in ["lab", "a-b_c", "7"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "-x", "../x", "a b", "a\nb", "a/b", &"x".repeat(49)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
