//! The live page over HTTP: strangers are refused, and its numbers are those of SQL.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod browser;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use serde_json::{Value, json};
use smbscope_analysis::explain::{Diagnosis, Explain};
use smbscope_analysis::summary::{Options, Report, Summary};
use smbscope_serve::{About, Data, Inputs, Site};
use smbscope_store::Part;
use smbscope_store::source::{OpenOptions, Request, Source};
use smbscope_store::sql::Engine;

struct Files(Vec<String>);

impl Inputs for Files {
    fn open(&self) -> anyhow::Result<Source> {
        Ok(Source::open(&self.0, OpenOptions::default())?)
    }

    fn report(&self, source: &Source) -> anyhow::Result<(Report, Option<Diagnosis>)> {
        let (mut summary, mut explain) = (Summary::new(Options::default()), Explain::new());
        for part in source.parts(&Request::all())? {
            match part? {
                Part::Operations(batch) => {
                    summary.operations(&batch)?;
                    explain.operations(&batch)?;
                }
                Part::Connections(rows) => {
                    summary.connections(&rows);
                    explain.connections(&rows);
                }
                Part::Coverage(row) => {
                    summary.coverage(&row);
                    explain.coverage(std::slice::from_ref(&row));
                }
                Part::Waits(rows) => explain.waits(&rows),
                _ => {}
            }
        }
        Ok((summary.finish(), Some(explain.finish()?)))
    }
}

fn fixture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    folder.join(name).canonicalize().unwrap().display().to_string()
}

/// A page over files, and how to ask it.
struct Page {
    port: u16,
    token: String,
    files: Vec<String>,
}

impl Page {
    fn over(names: &[&str]) -> Page {
        Page::over_files(names.iter().map(|name| fixture(name)).collect())
    }

    fn over_files(files: Vec<String>) -> Page {
        let about = About { inputs: files.clone(), version: "0".to_owned(), ..About::default() };
        let data = Data::open(Box::new(Files(files.clone())), about).unwrap();
        let names = vec!["fs.example".to_owned()];
        let site = Site::bind(([127, 0, 0, 1], 0).into(), names, data).unwrap();
        let url = site.url();
        let mut parts = url.split(['/', ':']).filter(|part| !part.is_empty()).skip(2);
        let (port, token) = (parts.next().unwrap(), parts.next().unwrap().to_owned());
        let port = port.parse().unwrap();
        site.start().unwrap();
        Page { port, token, files }
    }

    /// Status, headers, body.
    fn get(&self, path: &str, headers: &str) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.port)
    }

    fn raw(&self, what: &str, question: &Value, more: &str) -> (u16, String, Vec<u8>) {
        let encoded: String =
            question.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/{}/api/{what}?q={encoded}{more}", self.token);
        self.get(&path, &self.host())
    }

    fn ask(&self, what: &str, question: Value) -> Value {
        let (status, _, body) = self.raw(what, &question, "");
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{what} {question}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// All rows of a query by an engine of its own, as floats; null is NaN.
    fn numbers(&self, sql: &str) -> Vec<Vec<f64>> {
        let source = Source::open(&self.files, OpenOptions::default()).unwrap();
        let engine = Engine::new(source).unwrap();
        let mut rows = Vec::new();
        for batch in engine.query(sql).unwrap_or_else(|error| panic!("{error}: {sql}")) {
            let batch = batch.unwrap();
            let columns = batch.columns().iter().map(|one| cast(one, &DataType::Float64).unwrap());
            let columns: Vec<_> = columns.collect();
            for row in 0..batch.num_rows() {
                let cell = |column: &arrow::array::ArrayRef| {
                    let column = column.as_primitive::<Float64Type>();
                    column.iter().nth(row).flatten().unwrap_or(f64::NAN)
                };
                rows.push(columns.iter().map(cell).collect());
            }
        }
        rows
    }
}

#[test]
fn strangers_are_refused() {
    let page = Page::over(&["smb311.pcapng"]);
    let (token, host, port) = (&page.token, page.host(), page.port);
    let status = |path: &str, headers: &str| page.get(path, headers).0;
    let at = format!("/{token}/");
    let data = format!("/{token}/api/about");
    assert_eq!(status(&at, &host), 200);
    assert_eq!(status(&data, &host), 200);
    // The token.
    assert_eq!(token.len(), 32);
    let wrong = format!("/{}/", token.chars().rev().collect::<String>());
    for path in ["/", "/api/about", "//", &wrong, &at[..at.len() - 2], &format!("/{token}0/")] {
        assert_eq!(status(path, &host), 403, "{path}");
    }
    assert_eq!(status(&format!("/{token}/other"), &host), 404);
    // DNS rebinding: another name, another port, none.
    let names = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1"];
    for name in names {
        assert_eq!(status(&at, &format!("Host: {name}:{port}\r\n")), 403, "{name}");
    }
    assert_eq!(status(&at, "Host: 127.0.0.1:1\r\n"), 403);
    assert_eq!(status(&at, "Host: 127.0.0.1\r\n"), 403);
    assert_eq!(status(&at, ""), 403);
    assert_eq!(status(&at, &format!("{host}{host}")), 403);
    for name in ["localhost", "LOCALHOST", "[::1]", "fs.example"] {
        assert_eq!(status(&at, &format!("Host: {name}:{port}\r\n")), 200, "{name}");
    }
    assert_eq!(status(&at, "Host: fs.example\r\nOrigin: https://fs.example\r\n"), 200, "a proxy");
    // Other origins, and requests from their pages.
    let with = |header: &str| format!("{host}{header}\r\n");
    assert_eq!(status(&data, &with(&format!("Origin: http://127.0.0.1:{port}"))), 200);
    for origin in ["http://evil.example", "null", &format!("http://127.0.0.1:{port}.evil.example")]
    {
        assert_eq!(status(&data, &with(&format!("Origin: {origin}"))), 403, "{origin}");
    }
    assert_eq!(status(&data, &with("Sec-Fetch-Site: same-origin")), 200);
    assert_eq!(status(&data, &with("Sec-Fetch-Site: cross-site")), 403);
    assert_eq!(status(&data, &with("Sec-Fetch-Site: same-site")), 403);
    // A link to the page.
    assert_eq!(status(&at, &with("Sec-Fetch-Site: cross-site")), 200);
}

#[test]
fn every_answer_has_the_policy() {
    let page = Page::over(&["smb311.pcapng"]);
    let (_, head, body) = page.get(&format!("/{}/", page.token), &page.host());
    let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy = policy.unwrap();
    let html = String::from_utf8(body).unwrap();
    let count = |what: &str| html.matches(what).count();
    let hashes = |of: &str| {
        let part = policy.split("; ").find(|part| part.starts_with(of)).unwrap();
        let sources: Vec<_> = part.split(' ').skip(1).collect();
        let is_hash = |source: &&str| source.starts_with("'sha256-") && source.len() == 53;
        assert!(sources.iter().all(is_hash), "{sources:?}");
        sources.len()
    };
    assert_eq!(hashes("script-src"), count("<script>"));
    assert_eq!(hashes("style-src"), count("<style>"));
    let others = "default-src 'none'; connect-src 'self'; img-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let rest: Vec<_> = policy
        .split("; ")
        .filter(|part| !part.starts_with("script-src") && !part.starts_with("style-src"))
        .collect();
    assert_eq!(rest.join("; "), others);
    assert_eq!(count(" style=") + count("onclick=") + count("src="), 0);
    for path in ["/", &format!("/{}/api/about", page.token), &format!("/{}/x", page.token)] {
        let (_, head, _) = page.get(path, &page.host());
        for header in [policy, "nosniff", "no-referrer", "no-store", "same-origin"] {
            assert!(head.contains(header), "{path}: {head}");
        }
    }
}

#[test]
fn wrong_questions_are_answered_with_a_reason() {
    let page = Page::over(&["smb311.pcapng"]);
    let wrong = [
        ("pivot", json!({ "rows": ["nothing"] })),
        ("pivot", json!({ "rows": ["share", "share"] })),
        ("pivot", json!({ "rows": ["share"], "columns": "share" })),
        ("pivot", json!({ "table": "files" })),
        ("pivot", json!({ "value": "path" })),
        ("pivot", json!({ "show": ["sum(1)"] })),
        ("pivot", json!({ "sort": { "by": "p50" } })),
        ("pivot", json!({ "sql": "select 1" })),
        ("operations", json!({ "sort": "1; drop" })),
        ("operation", json!({ "recording": "x' OR '1'='1", "operation": 0 })),
        ("time", json!({ "filter": { "from": "9", "to": "3" } })),
        ("nothing", json!({})),
    ];
    for (what, question) in wrong {
        let (status, _, body) = page.raw(what, &question, "");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 400, "{what} {question}: {body}");
        assert!(!body["error"].as_str().unwrap().is_empty());
    }
    assert_eq!(page.raw("export", &json!({ "rows": ["share"] }), "&format=exe").0, 400);
}

/// A small generator of pseudo-random choices (Knuth, MMIX).
struct Choices(u64);

impl Choices {
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        &all[(self.0 >> 33) as usize % all.len()]
    }
}

#[test]
fn random_pivots_are_those_of_sql() {
    let page = Page::over(&["smb311.pcapng", "errors.pcapng"]);
    // What SQL has for a dimension, written apart from the server.
    let dimensions = [
        ("share", "lower(share)"),
        ("command", "command"),
        ("client", "client"),
        ("status", "status_name"),
        ("extension", "extension"),
        ("path", "path"),
        ("user", "lower(\"user\")"),
        ("dialect", "dialect"),
    ];
    let values = ["elapsed_ns", "turnaround_ns", "busy_ns", "server_ns"];
    let statistics = [
        ("n", "count(*)"),
        ("known", "count(V)"),
        ("sum", "sum(V)"),
        ("mean", "avg(V)"),
        ("p50", "percentile(V, 0.5)"),
        ("p95", "percentile(V, 0.95)"),
        ("p99", "percentile(V, 0.99)"),
        ("max", "max(V)"),
    ];
    let mut choices = Choices(55);
    let mut compared = 0;
    for _ in 0..25 {
        let (rows, columns) = (choices.of(&dimensions), choices.of(&dimensions));
        if rows.0 == columns.0 {
            continue;
        }
        let value = choices.of(&values);
        let (statistic, of) = choices.of(&statistics);
        let answer = page.ask(
            "pivot",
            json!({ "rows": [rows.0], "columns": columns.0, "value": value, "show": [statistic],
                    "sort": { "by": statistic }, "limit": 500 }),
        );
        let place =
            answer["show"].as_array().unwrap().iter().position(|name| name == statistic).unwrap();
        let number = |cell: &Value| cell[place].as_f64().unwrap_or(f64::NAN);
        let of = of.replace('V', value);
        let ask = |condition: &str| {
            let sql =
                format!("SELECT {of} FROM operations WHERE waits IS NOT TRUE AND {condition}");
            page.numbers(&sql)[0][0]
        };
        let is = |sql: &str, value: &Value| match value.as_str() {
            Some(text) => format!("{sql} = '{}'", text.replace('\'', "''")),
            None => format!("({sql}) IS NULL"),
        };
        let same = |found: f64, wanted: f64, what: &str| {
            let near =
                (found - wanted).abs() <= 1e-9 * wanted.abs() || found.is_nan() && wanted.is_nan();
            assert!(
                near,
                "{what}: {found} instead of {wanted}\n{}",
                answer["sql"].as_str().unwrap()
            );
        };
        same(number(&answer["total"][0]), ask("true"), "the total");
        let column_values = answer["column_values"].as_array().unwrap();
        for row in answer["body"].as_array().unwrap().iter().take(4) {
            let condition = is(rows.1, &row["key"][0]);
            same(number(&row["cells"][0]), ask(&condition), &condition);
            for (number_of, column) in column_values.iter().enumerate().take(3) {
                let both = format!("{condition} AND {}", is(columns.1, column));
                let cell = &row["cells"][number_of + 1];
                let sql = ask(&both);
                // An absent cell is a group without rows.
                if cell.is_null() {
                    assert!(sql.is_nan() || sql == 0.0, "{both}: {sql}");
                } else {
                    same(number(cell), sql, &both);
                }
                compared += 1;
            }
        }
        // The statement that the page shows is what `smbscope query` takes.
        let lines =
            page.numbers(&format!("SELECT count(*) FROM ({})", answer["sql"].as_str().unwrap()));
        assert!(lines[0][0] >= answer["count"].as_f64().unwrap());
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_overview_has_the_numbers_of_sql_and_of_the_report() {
    let page = Page::over(&["smb311.pcapng"]);
    let about = page.ask("about", json!({}));
    assert_eq!(about["subjects"][0]["table"], "operations");
    let everything = json!({ "filter": {} });
    let groups = page.ask("groups", everything.clone());
    let sum = page.numbers("SELECT sum(busy_ns) FROM operations WHERE waits IS NOT TRUE")[0][0];
    for group in groups.as_array().unwrap() {
        let (key, answer) = (group["key"].as_str().unwrap(), &group["answer"]);
        let place = 1;
        assert_eq!(answer["show"][place], "sum");
        if key == "slice" {
            // Parts of the time add up to the elapsed time.
            let elapsed = "SELECT sum(elapsed_ns) FROM operations WHERE waits IS NOT TRUE";
            assert_eq!(answer["total"][0][place].as_f64().unwrap(), page.numbers(elapsed)[0][0]);
            continue;
        }
        assert_eq!(answer["total"][0][place].as_f64().unwrap(), sum, "{key}");
    }
    let report = page.ask("report", everything);
    let html = report["html"].as_str().unwrap();
    assert!(html.contains("class=\"verdict") && html.contains("<section id=\"coverage\""));
    assert!(!html.contains(" style=\""), "the policy allows no styles in attributes");
    let files = Files(page.files.clone());
    let (own, _) = files.report(&files.open().unwrap()).unwrap();
    assert_eq!(report["operations"], own.totals.tally.operations);
    // A filter that a report knows, and one that it does not.
    let share = groups.as_array().unwrap().iter().find(|one| one["key"] == "share").unwrap();
    let share = share["answer"]["body"][0]["key"][0].as_str().unwrap();
    let filter = json!({ "filter": { "in": { "share": [share], "status": ["STATUS_SUCCESS"] } } });
    let part = page.ask("report", filter);
    assert_eq!(part["left_out"], json!(["Status"]));
    let wanted = format!("SELECT count(*) FROM operations WHERE lower(share) = '{share}'");
    assert_eq!(part["operations"].as_f64().unwrap(), page.numbers(&wanted)[0][0]);
    assert!(part["operations"].as_u64() < report["operations"].as_u64());
}

#[test]
fn findings_lead_to_operations_and_these_to_frames() {
    let page = Page::over(&["findings/break-waits.pcap.gz"]);
    let report = page.ask("report", json!({}));
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    let html = report["html"].as_str().unwrap();
    assert_eq!(html.matches("<details class=\"finding\"").count(), findings.len());
    for found in findings {
        assert!(html.contains(&format!("<b>{}</b>", found["title"].as_str().unwrap())));
        let list = page.ask("operations", json!({ "filter": found["filter"], "limit": 50 }));
        assert!(list["count"].as_u64().unwrap() > 0, "{found}");
    }
    let examples =
        findings.iter().map(|found| &found["examples"]).find(|one| !one.is_null()).unwrap();
    let list = page.ask("operations", json!({ "filter": examples, "limit": 50 }));
    let first = &list["rows"][0];
    assert_eq!(list["count"].as_u64().unwrap() as usize, list["rows"].as_array().unwrap().len());
    assert!(first["wireshark"].as_str().unwrap().starts_with("tcp.port == "), "{first}");
    assert!(first["request_frame"].as_u64().unwrap() > 0);
    let which = json!({ "recording": first["recording"], "operation": first["operation"] });
    let one = page.ask("operation", which);
    assert_eq!(one["operation"]["elapsed_ns"], first["elapsed_ns"]);
    let is_it = |other: &&Value| other["operation"] == first["operation"];
    assert_eq!(one["connection"].as_array().unwrap().iter().filter(is_it).count(), 1);
}

#[test]
fn lines_over_time_add_up() {
    let page = Page::over(&["smb311.pcapng"]);
    let about = page.ask("about", json!({}));
    let number = |value: &Value| value.as_str().unwrap().parse::<i64>().unwrap();
    let (from, to) = (number(&about["from"]), number(&about["to"]));
    let sum = |line: &Value| line.as_array().unwrap().iter().filter_map(Value::as_f64).sum::<f64>();
    for bins in [1, 7, 300, 5_000] {
        let answer = page.ask("time", json!({ "bins": bins }));
        let lines = &answer["lines"];
        let all = page.numbers(
            "SELECT count(*), sum(transferred_bytes) FROM operations WHERE waits IS NOT TRUE AND request_start IS NOT NULL",
        );
        assert_eq!((sum(&lines["n"]), sum(&lines["bytes"])), (all[0][0], all[0][1]), "{bins}");
        let in_flight = lines["in_flight"].as_array().unwrap();
        assert!(
            in_flight.len() <= 1_001 && in_flight.iter().all(|value| value.as_i64() >= Some(0))
        );
        assert_eq!(in_flight.len(), answer["count"].as_u64().unwrap() as usize);
    }
    // The second half: what is in flight when it begins counts.
    let middle = from + (to - from) / 2;
    let filter = json!({ "from": middle.to_string(), "to": (to + 1).to_string() });
    let answer = page.ask("time", json!({ "filter": filter, "bins": 20 }));
    let wanted = page.numbers(&format!(
        "SELECT count(*) FROM operations WHERE waits IS NOT TRUE AND request_start >= {middle}"
    ));
    assert_eq!(sum(&answer["lines"]["n"]), wanted[0][0]);
    let step = answer["step_ns"].as_i64().unwrap();
    let end = middle + 3 * step;
    let wanted = page.numbers(&format!(
        "SELECT count(*) FROM operations WHERE waits IS NOT TRUE AND request_start < {end} AND response_end >= {end}"
    ));
    assert_eq!(answer["lines"]["in_flight"][2].as_f64().unwrap(), wanted[0][0]);
}

#[test]
fn a_table_is_saved_as_it_is_shown() {
    let page = Page::over(&["smb311.pcapng"]);
    let question = json!({ "rows": ["command"], "show": ["n", "p95"] });
    let answer =
        page.ask("pivot", json!({ "rows": ["command"], "show": ["n", "p95"], "limit": 500 }));
    let count = answer["count"].as_u64().unwrap() as usize;
    let (status, head, body) = page.raw("export", &question, "&format=csv");
    assert!(status == 200 && head.contains("filename=\"smbscope.csv\""), "{head}");
    let text = String::from_utf8(body).unwrap();
    // A heading, the groups, the total.
    assert_eq!(text.lines().count(), count + 2, "{text}");
    let first = &answer["body"][0];
    let (key, cells) = (first["key"][0].as_str().unwrap(), &first["cells"][0]);
    let line = format!("{key},0,{},{}", cells[0], cells[1]);
    assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    let (_, _, body) = page.raw("export", &question, "&format=parquet");
    assert!(body.starts_with(b"PAR1") && body.ends_with(b"PAR1"));
    let (_, _, body) = page.raw("export", &question, "&format=arrow");
    let reader =
        arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(body), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), count + 1);
}

#[test]
fn a_part_of_the_rows_is_the_same_part_of_all() {
    let page = Page::over(&["smb311.pcapng"]);
    let ask = |offset: usize, limit: usize| {
        let sort = json!({ "by": "n", "ascending": true });
        page.ask("pivot", json!({ "rows": ["command", "path"], "show": ["n"], "sort": sort, "offset": offset, "limit": limit }))
    };
    let all = ask(0, 500);
    let rows = all["body"].as_array().unwrap();
    assert_eq!(all["count"].as_u64().unwrap() as usize, rows.len());
    let n = |row: &Value| row["cells"][0][0].as_u64().unwrap();
    assert!(rows.windows(2).all(|pair| n(&pair[0]) <= n(&pair[1])));
    assert_eq!(ask(3, 4)["body"].as_array().unwrap(), &rows[3..7]);
    assert_eq!(ask(100_000, 4)["body"], json!([]));
}
