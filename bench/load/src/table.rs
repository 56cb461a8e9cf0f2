//! All cases, one after the other, and the tables of `docs/measurements/load-client.md`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use smbscope_lab::{Guard, Lab, Options, Signing};

use crate::measure::{self, Figures};

/// Sessions at a time.
const SESSIONS: [usize; 4] = [1, 16, 200, 1000];
/// A Samba has a process for each session: this is how many fit here.
const SAMBA_MAX: usize = 200;
/// Times that every client has its turn.
const PASSES: usize = 3;
const IDLE: usize = 10_000;

/// A server to measure against.
struct Server {
    name: &'static str,
    target: String,
    password: String,
    signed: bool,
    _lab: Option<Guard>,
}

/// Runs all and prints the tables.
pub fn print() {
    let folder = tempfile::Builder::new().prefix("smbscope-bench").tempdir().unwrap();
    let (mut child, port) = responder();
    let target = format!("//127.0.0.1:{port}/bench");
    let responder = |signed| {
        let (target, password) = (target.clone(), "x".to_owned());
        Server { name: "responder", target, password, signed, _lab: None }
    };
    let mut servers = vec![responder(false), responder(true)];
    for signed in [false, true] {
        match lab(&folder.path().join(if signed { "signed" } else { "plain" }), signed) {
            Ok(server) => servers.push(server),
            Err(error) => eprintln!("no Samba: {error}"),
        }
    }
    println!("{}\n", machine());
    println!("| server | operation | client | {} |", heads());
    println!("|---|---|---|{}", "---|".repeat(SESSIONS.len()));
    for server in &servers {
        for operation in ["query", "pair", "echo"] {
            let plain = servers.iter().find(|plain| plain.name == server.name).unwrap_or(server);
            lines(server, plain, operation);
        }
        if server.name == "samba" && !server.signed && wanted("samba echo smbtorture") {
            torture(server);
        }
    }
    if wanted("idle") {
        idle(&servers[..2]);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Lines of the table: what the clients need for an operation with growing numbers of sessions.
/// They take turns, several times, and the least of each counts: what else the machine does
/// changes from second to second and meets all alike.
fn lines(server: &Server, plain: &Server, operation: &str) {
    let clients: Vec<&str> = ["floor", "smbscope", "smb2", "smb"]
        .into_iter()
        .filter(|client| measured(server, operation, client))
        .collect();
    let mut cells = vec![Vec::new(); clients.len()];
    for sessions in SESSIONS {
        if server.name == "samba" && sessions > SAMBA_MAX {
            cells.iter_mut().for_each(|cells| cells.push(String::new()));
            continue;
        }
        let mut least: Vec<Option<Figures>> = vec![None; clients.len()];
        for _ in 0..PASSES {
            for (client, least) in clients.iter().zip(&mut least) {
                // The floor signs nothing.
                let server = if *client == "floor" { plain } else { server };
                let Some(figures) = case(client, operation, sessions, server) else { continue };
                let better = least.is_none_or(|least| figures.cpu_us < least.cpu_us);
                if better {
                    *least = Some(figures);
                }
            }
        }
        let floor = match (clients.first(), least.first()) {
            (Some(&"floor"), Some(floor)) => floor.map(|floor| floor.cpu_us),
            _ => None,
        };
        for ((client, least), cells) in clients.iter().zip(least).zip(&mut cells) {
            cells.push(least.map_or_else(
                || "failed".to_owned(),
                |figures| cell(&figures, sessions, floor.filter(|_| *client != "floor")),
            ));
        }
    }
    let operation = match operation {
        "pair" => "Create, Close",
        "query" => "QueryInfo",
        _ => "Echo",
    };
    let signed = if server.signed { ", signed" } else { "" };
    for (client, cells) in clients.iter().zip(cells) {
        let client = if *client == "floor" && server.signed { "floor, unsigned" } else { client };
        println!("| {}{signed} | {operation} | {client} | {} |", server.name, cells.join(" | "));
    }
}

fn cell(figures: &Figures, sessions: usize, floor: Option<f64>) -> String {
    let mut cell = format!("{:.1}", figures.cpu_us);
    if let Some(floor) = floor {
        cell += &format!(" ({:+.1})", figures.cpu_us - floor);
    }
    cell += &format!(", {:.0}/s", figures.per_second);
    if sessions >= 200 {
        cell += &format!(", {:.1} kB", figures.session_kb);
    }
    cell
}

/// Whether there is such a line.
fn measured(server: &Server, operation: &str, client: &str) -> bool {
    let samba = server.name == "samba";
    // The responder gives no NTLM challenge, which others need.
    let can_log_on = samba || !matches!(client, "smb" | "smb2");
    // Echo is compared with smbtorture, which has it unsigned only.
    let compares = operation != "echo" || samba && !server.signed;
    can_log_on && compares && wanted(&format!("{} {operation} {client}", server.name))
}

fn heads() -> String {
    SESSIONS.map(|sessions| format!("{sessions} sessions")).join(" | ")
}

/// Whether `BENCH_ONLY` is in the name of a line, or is not set.
fn wanted(name: &str) -> bool {
    std::env::var("BENCH_ONLY").map_or(true, |only| name.contains(&only))
}

/// Many sessions that wait.
fn idle(servers: &[Server]) {
    println!("\n| idle, in one process | kB per session | MB in total |\n|---|---|---|");
    for (client, what) in [("smbscope", "sessions"), ("users", "users that wait")] {
        for server in servers.iter().filter(|server| client == "smbscope" || !server.signed) {
            let Some(figures) = case(client, "idle", IDLE, server) else { continue };
            let signed = if server.signed { ", with a signing key" } else { "" };
            let (each, all) = (figures.session_kb, figures.total_mb);
            println!("| {IDLE} {what}{signed} | {each:.1} | {all:.0} |");
        }
    }
}

/// Runs one case in a process of its own.
fn case(client: &str, operation: &str, sessions: usize, server: &Server) -> Option<Figures> {
    let program = std::env::current_exe().unwrap();
    let program = match client {
        "smb" => program.with_file_name("smbscope-bench-load-smb"),
        _ => program,
    };
    let signed = if server.signed { "signed" } else { "plain" };
    let output = Command::new(program)
        .args([client, operation, &sessions.to_string(), signed, server.name, &server.target])
        .env("BENCH_PASSWORD", &server.password)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("figures ")) else {
        let error = String::from_utf8_lossy(&output.stderr);
        let error: String = error.chars().take(600).collect();
        eprintln!("{client} {operation} {sessions} {signed} {}: {error}", server.name);
        return None;
    };
    let numbers: Vec<f64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [cpu_us, per_second, session_kb, total_mb] = numbers[..] else { return None };
    Some(Figures { cpu_us, per_second, session_kb, total_mb })
}

fn responder() -> (Child, u16) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("responder")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("port ").unwrap().parse().unwrap();
    (child, port)
}

fn lab(dir: &Path, signed: bool) -> Result<Server, String> {
    let mut options = Options { dir: Some(dir.to_owned()), ..Options::default() };
    if signed {
        // The best that both sides have: AES-GMAC for smbscope.
        options.signing = Signing::Required;
    }
    let running = Lab::up(&options).map_err(|error| error.to_string())?;
    let file = running.share_dir().join(crate::ours::FILE);
    let mut made = std::fs::File::create(&file).map_err(|error| error.to_string())?;
    made.write_all(&[1; 4096]).map_err(|error| error.to_string())?;
    let target = format!("//127.0.0.1:{}/{}", running.port, running.share);
    let password = running.password().map_err(|error| error.to_string())?;
    Ok(Server { name: "samba", target, password, signed, _lab: Some(running.guard()) })
}

/// smbtorture's own measure, of as many connections.
fn torture(server: &Server) {
    let (address, share) = server.target.trim_start_matches('/').split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let mut cells = Vec::new();
    for sessions in SESSIONS {
        if sessions > SAMBA_MAX {
            cells.push(String::new());
            continue;
        }
        let before = measure::cpu_us(libc::RUSAGE_CHILDREN);
        let output = Command::new("smbtorture")
            .args([&format!("//{host}/{share}"), "-p", port])
            .args(["-U", &format!("user00001%{}", server.password)])
            .arg("--option=torture:timelimit=3")
            .arg(format!("--option=torture:nprocs={sessions}"))
            .arg("--option=torture:qdepth=1")
            .arg("smb2.bench.echo")
            .stdin(Stdio::null())
            .output();
        let cpu = measure::cpu_us(libc::RUSAGE_CHILDREN) - before;
        let Ok(output) = output else { return };
        // Its rates go to standard error.
        let text = String::from_utf8_lossy(&output.stderr);
        if std::env::var_os("BENCH_SHOW").is_some() {
            eprintln!("{text}");
        }
        cells.push(match rate(&text) {
            // Its logons are in it.
            Some((seconds, rate)) => format!("{:.1}, {rate:.0}/s", cpu / (seconds * rate)),
            None => "failed".to_owned(),
        });
    }
    println!("| samba | Echo | smbtorture | {} |", cells.join(" | "));
}

/// Seconds and operations each second, from the last line that has them.
fn rate(text: &str) -> Option<(f64, f64)> {
    let line = text.split(['\n', '\r']).rfind(|line| line.contains("echo[num/s="))?;
    let (seconds, rest) = line.split_once(" second")?;
    let (_, rate) = rest.split_once("num/s=")?;
    let (rate, _) = rate.split_once(',')?;
    Some((seconds.trim().parse().ok()?, rate.parse().ok()?))
}

fn machine() -> String {
    let first = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("", |(_, value)| value).trim().to_owned()
    };
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let lock = include_str!("../Cargo.lock").to_owned() + include_str!("../smb/Cargo.lock");
    let version = |name: &str| {
        let at = format!("name = \"{name}\"\nversion = \"");
        let found = lock.split_once(at.as_str()).and_then(|(_, rest)| rest.split_once('"'));
        found.map_or(String::new(), |(version, _)| version.to_owned())
    };
    format!(
        "{threads} x {}, Linux {}, {}, tokio {}, smb2 {}, smb {}, smbd {}; load {}",
        first("/proc/cpuinfo", "model name"),
        said("uname", &["-r"]),
        said("rustc", &["--version"]),
        version("tokio"),
        version("smb2"),
        version("smb"),
        said("smbd", &["--version"]),
        said("cat", &["/proc/loadavg"]),
    )
}
