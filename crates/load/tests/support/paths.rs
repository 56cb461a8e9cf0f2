//! Several network paths between a client and a server, each with a rate and a delay of its own.
//!
//! Path `i` joins the namespaces NAME-client (10.77.i.1) and NAME-server (10.77.i.2); a path with a rate or a delay
//! leads through the forwarder of `smbscope wan` in NAME-line. Root only.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use smbscope_lab::wan::{Forwarder, Options, Running, netns};

/// The paths. Dropping this removes them.
pub struct Paths {
    name: String,
    count: usize,
    forwarders: Vec<Option<Running>>,
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

impl Paths {
    /// Makes them; `None`, with a message, without root. An empty text is a plain veth pair, otherwise
    /// `rtt=2ms,rate=100mbit`.
    pub fn up(paths: &[&str]) -> Option<Paths> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mp{}x{number}", std::process::id());
        let mut this = Paths { name, count: paths.len(), forwarders: Vec::new() };
        match this.make(paths) {
            Ok(()) => Some(this),
            Err(error) => {
                smbscope_testing::skip!("network namespaces cannot be made: {error}");
                None
            }
        }
    }

    pub fn client(&self) -> String {
        format!("{}-client", self.name)
    }

    pub fn server(&self) -> String {
        format!("{}-server", self.name)
    }

    fn line(&self) -> String {
        format!("{}-line", self.name)
    }

    /// The server's address on a path.
    pub fn address(path: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, path as u8, 2)
    }

    pub fn socket(path: usize, port: u16) -> SocketAddr {
        SocketAddr::new(Paths::address(path).into(), port)
    }

    fn make(&mut self, paths: &[&str]) -> Result<(), String> {
        let (client, server, line) = (self.client(), self.server(), self.line());
        for name in [&client, &server, &line] {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        for (path, options) in paths.iter().enumerate() {
            let direct = options.is_empty();
            if direct {
                ip(&format!(
                    "link add c{path} netns {client} type veth peer name s{path} netns {server}"
                ))?;
            } else {
                for (end, namespace) in [("c", &client), ("s", &server)] {
                    ip(&format!(
                        "link add {end}{path} netns {namespace} type veth peer name {end}{path} netns {line}"
                    ))?;
                    ip(&format!(
                        "-n {line} link set {end}{path} addrgenmode none gso_max_segs 1 up"
                    ))?;
                }
            }
            for (end, namespace, host) in [("c", &client, 1), ("s", &server, 2)] {
                ip(&format!("-n {namespace} address add 10.77.{path}.{host}/24 dev {end}{path}"))?;
                let segments = if direct { "" } else { " gso_max_segs 1" };
                ip(&format!("-n {namespace} link set {end}{path}{segments} up"))?;
            }
            let running = if direct {
                None
            } else {
                let mut wan = Options::default();
                for option in options.split(',') {
                    let (key, value) = option.split_once('=').ok_or("an option without =")?;
                    wan.set(key, value).map_err(|error| error.to_string())?;
                }
                let (first, second) = (format!("c{path}"), format!("s{path}"));
                let forwarder = Forwarder::open(&first, &second, Some(&line), &wan);
                let running = forwarder.and_then(Forwarder::spawn);
                Some(running.map_err(|error| error.to_string())?)
            };
            self.forwarders.push(running);
        }
        Ok(())
    }

    /// Cuts a path: a link without its other end, like a cable that is pulled.
    pub fn cut(&self, path: usize) {
        ip(&format!("-n {} link set s{path} down", self.server())).unwrap();
    }

    /// Does something inside the client's namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::inside(&self.client(), work).unwrap()
    }

    /// How smbd is started in the server's namespace.
    pub fn enter(&self) -> Vec<std::ffi::OsString> {
        let words = ["ip", "netns", "exec", &self.server()].map(std::ffi::OsString::from);
        words.to_vec()
    }

    /// Its addresses as `interfaces` of smb.conf lists them, each with this text behind it.
    pub fn interfaces(&self, each: impl Fn(usize) -> String) -> Vec<String> {
        (0..self.count).map(|path| format!("{}{}", Paths::address(path), each(path))).collect()
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        self.forwarders.clear();
        for name in [self.client(), self.server(), self.line()] {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}
