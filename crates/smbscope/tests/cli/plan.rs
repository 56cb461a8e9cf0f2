//! `plan cores`: outputs of a machine to findings, a layout, commands with their undo, and what they bring.

use smbscope_testing::flooded_server::{Recording, Stage};

use super::{answer, capture, complaint, folder, written};

/// Two sockets of two cores with two threads each, and an adapter on the second one.
const MACHINE: &str = "\
CPU NODE SOCKET CORE ONLINE
0   0    0      0    yes
1   0    0      1    yes
2   1    1      2    yes
3   1    1      3    yes
4   0    0      0    yes
5   0    0      1    yes
6   1    1      2    yes
7   1    1      3    yes
# ethtool -i eth4
driver: ice
bus-info: 0000:3b:00.0
Channel parameters for eth4:
Pre-set maximums:
Combined: 4
Current hardware settings:
Combined: 1
RX flow hash indirection table for eth4 with 1 RX ring(s):
    0:      0     0     0     0     0     0     0     0
RSS hash key:
6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa
           CPU0       CPU1       CPU2
 41:          0          0     900000  PCI-MSI 1-edge  ice-eth4-TxRx-0
";

/// The same idea on Windows: two nodes, and a table of one CPU of the far one.
pub const WINDOWS: &str = "\
Name                                            : Ethernet 4
Enabled                                         : True
NumberOfReceiveQueues                           : 2
Profile                                         : NUMAStatic
BaseProcessor: [Group:Number]                   : 0:0
MaxProcessor: [Group:Number]                    : 0:6
MaxProcessors                                   : 2
RssProcessorArray: [Group:Number/NUMA Distance] : 0:8/0  0:10/0  0:12/0  0:14/0  0:0/32767  0:2/32767
                                                  0:4/32767  0:6/32767
IndirectionTable: [Group:Number]                : 0:0   0:0     0:0     0:0     0:0     0:0     0:0     0:0
";

#[test]
fn pasted_outputs_give_a_layout_commands_and_their_undo() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "rss.txt", WINDOWS);
    let script = dir.join("apply.ps1");
    let arguments = [
        "plan".as_ref(),
        "cores".as_ref(),
        machine.as_os_str(),
        "--script".as_ref(),
        script.as_os_str(),
    ];
    let text = answer(arguments);
    let change = "Set-NetAdapterRss -Name 'Ethernet 4' -Profile ClosestStatic -BaseProcessorGroup 0 -BaseProcessorNumber 8 ";
    let undo = "Set-NetAdapterRss -Name 'Ethernet 4' -Profile NUMAStatic -BaseProcessorGroup 0 -BaseProcessorNumber 0 ";
    for line in [
        "Windows: 2 sockets, 2 NUMA nodes, 8 cores, 8 CPUs; 1 network adapter",
        "Assumed: The CPUs are those of Get-NetAdapterRss",
        "[high] Ethernet 4: All receive work (2 queues) is on CPU 0.",
        "node 0 (socket 0, 4 cores)",
        "    CPU 0, 2 to 6                             A···    ····",
        "    CPU 8, 10 to 14                           ····    AA··",
        "      today: 1 queue on CPU 0",
        // No more queues than it has today: how many it can have is not in the output.
        "      planned: 2 queues on CPU 8, 10; base 8, last 10,",
        "(restarts the",
        change,
        &format!("undo:  {undo}"),
        "check: Get-NetAdapterRss -Name 'Ethernet 4'",
    ] {
        assert!(text.contains(line), "{line:?} is missing:\n{text}");
    }
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let (apply, restore) = (read("apply.ps1"), read("apply.undo.ps1"));
    // The numbers of assumed nodes are not the system's.
    assert!(!apply.contains("-NumaNode"), "{apply}");
    assert!(apply.contains(change) && !apply.contains(undo), "{apply}");
    assert!(restore.contains(undo) && !restore.contains(change), "{restore}");

    // A file that is there is not replaced, neither of the two.
    let complaint = complaint(2, arguments);
    assert!(complaint.contains("exists already"), "{complaint}");
    assert_eq!((read("apply.ps1"), read("apply.undo.ps1")), (apply, restore));
}

#[test]
fn a_setting_without_undo_is_left_as_it_is() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "machine.txt", MACHINE);
    let text = answer(["plan".as_ref(), "cores".as_ref(), machine.as_os_str()]);
    for line in [
        "Linux: 2 sockets, 2 NUMA nodes, 4 cores, 8 CPUs; 1 network adapter",
        "eth4: All receive work (1 queue) is on CPU 2, and the adapter has 4 queues.",
        "Left as it is: eth4: where the interrupt of each queue goes is not known",
    ] {
        assert!(text.contains(line), "{line:?} is missing:\n{text}");
    }
    assert!(text.contains("Commands (nothing was executed)\n  None."), "{text}");
}

#[test]
fn a_recording_says_first_that_one_connection_stays_on_one_core() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "machine.txt", MACHINE);
    let machine = machine.to_str().unwrap();
    let capture = capture();
    let arguments = ["plan", "cores", machine, "--recording", &capture];
    let text = answer(arguments);
    assert!(text.contains("one connection stays on one core"), "{text}");
    // Nothing changes for it, so its place stays.
    assert!(text.contains("    after: the same; CPU 2 100 %"), "{text}");
    // The key was read, so there is no word about an example.
    assert!(!text.contains("key of the hash is not known"), "{text}");

    let json = answer(arguments.into_iter().chain(["--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let card = &json["prediction"]["cards"][0];
    assert_eq!((&card["name"], &card["connections"]), (&"eth4".into(), &1.into()));
    assert_eq!(card["verdict"], "one-connection");
    assert_eq!(json["commands"]["refused"][0]["reason"], "interrupts-unknown");
    // Today's place is where the interrupts came.
    let queue = &json["current"][0]["queues"][0];
    assert_eq!(queue["cpu"], serde_json::json!({ "group": 0, "number": 2 }));

    let complaint = complaint(2, arguments.into_iter().chain(["--adapter", "eth5"]));
    assert!(complaint.contains("eth5") && complaint.contains("eth4"), "{complaint}");
}

#[test]
fn a_dominant_connection_is_first_and_multichannel_is_counted() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "machine.txt", MACHINE);
    let machine = machine.to_str().unwrap();
    let capture = capture();
    let arguments = ["plan", "cores", machine, "--recording", &capture];
    let text = answer(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
    let first = text.find("eth4: there is one connection, and one connection stays on one core");
    assert!(first.is_some() && first < text.find("What is wrong"), "{text}");
    assert!(
        text.contains("SMB Multichannel would open 4 connections on it (assumed: one pair"),
        "{text}"
    );
    assert!(text.contains("in 9 of 10 cases"), "{text}");
    let json = answer(arguments.into_iter().chain(["--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let found = &json["prediction"]["cards"][0]["multichannel"];
    assert_eq!((&found["source"], &found["connections"]), (&"assumed".into(), &4.into()));
    let busiest = &found["chance"]["busiest"];
    let percent = |name: &str| busiest[name].as_f64().unwrap();
    assert!(
        percent("percent_p5") <= percent("percent_mean")
            && percent("percent_mean") <= percent("percent_p95")
    );
    assert!(percent("percent_p5") >= 25.0 && percent("percent_p95") <= 100.0, "{busiest}");
}

#[test]
fn connections_of_quic_are_counted_and_not_placed() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "machine.txt", MACHINE);
    let capture = super::fixture("../quic/quic.pcap");
    let arguments = ["plan", "cores", machine.to_str().unwrap(), "--recording", &capture];
    let json = answer(arguments.into_iter().chain(["--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ignored = json["prediction"]["ignored"].as_u64().unwrap();
    assert!(ignored > 0, "{}", json["prediction"]);
    let text = answer(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(&format!("{ignored} connections are not placed: RDMA or QUIC")),
        "{text}"
    );
}

#[test]
fn what_could_not_be_read_is_shown() {
    let (_guard, dir) = folder();
    let text = format!("{MACHINE}netlink error: Operation not supported\n");
    let machine = written(&dir, "machine.txt", &text);
    let text = answer(["plan".as_ref(), "cores".as_ref(), machine.as_os_str()]);
    assert!(text.contains("Not read: netlink error: Operation not supported"), "{text}");
    let json = r#"{"Format":"smbscope-machine-windows-1","Failures":["Get-NetAdapterRss: access denied"],
        "Rss":[{"Name":"E","Enabled":true,"NumberOfReceiveQueues":2}]}"#;
    let machine = written(&dir, "machine.json", json);
    let text = answer(["plan".as_ref(), "cores".as_ref(), machine.as_os_str()]);
    assert!(text.contains("Not read: Get-NetAdapterRss: access denied"), "{text}");
}

#[test]
fn the_page_is_written_instead_of_the_text() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "rss.txt", WINDOWS);
    let (machine, html) = (machine.to_str().unwrap(), dir.join("plan.html"));
    let arguments = ["plan", "cores", machine, "--html", html.to_str().unwrap()];
    assert_eq!(answer(arguments), "");
    let page = std::fs::read_to_string(&html).unwrap();
    for words in [
        "<h1>Ethernet 4: All receive work (2 queues) is on CPU 0.</h1>",
        "<h3>Today</h3>",
        "<h3>Planned</h3>",
        "CPU 8, core 4; Ethernet 4, queue 0",
        "Set-NetAdapterRss -Name &#39;Ethernet 4&#39; -Profile ClosestStatic",
        "restarts the adapter",
    ] {
        assert!(page.contains(words), "{words:?} is missing");
    }
    assert!(!page.contains("http://") && !page.contains("https://"));
    // A page that exists is not replaced; a format gives both.
    assert!(complaint(5, arguments).contains("--force"));
    let both = answer(arguments.into_iter().chain(["--format", "json", "--force"]));
    let both: serde_json::Value = serde_json::from_str(&both).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&answer(["schema", "cores"])).unwrap();
    let fields = schema["$defs"]["plan"]["properties"].as_object().unwrap();
    assert!(both.as_object().unwrap().keys().eq(fields.keys()), "{:?}", fields.keys());
}

#[test]
fn what_is_no_output_is_named() {
    let complaint = complaint(2, ["plan", "cores", &capture()]);
    assert!(complaint.contains("smb302.pcap"), "{complaint}");
}

#[test]
fn the_script_for_windows_only_reads() {
    let script = answer(["plan", "cores", "--print-windows-script"]);
    assert!(script.contains("Get-NetAdapterRss"));
    assert!(!script.contains("Set-NetAdapter"), "{script}");
}

/// A machine without readable /sys is not one that this test can collect.
#[cfg(target_os = "linux")]
#[test]
fn a_collected_machine_gives_the_same_layout_elsewhere() {
    let (_guard, dir) = folder();
    let tar = dir.join("machine.tar");
    let tar = tar.to_str().unwrap();
    answer(["plan", "cores", "--collect", tar]);
    let layout = |arguments: &[&str]| {
        let json = answer(["plan", "cores", "--format", "json"].iter().chain(arguments));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(!json["machine"]["cpus"].as_array().unwrap().is_empty());
        json["layout"].clone()
    };
    assert_eq!(layout(&[]), layout(&[tar]));
}

/// The case study of the flooded backup server: a trace alone gives its layout, commands, undo, and loads.
#[test]
fn a_trace_of_the_flooded_server_gives_the_layout_that_was_worked_out_by_hand() {
    let (_guard, dir) = folder();
    let trace = dir.join("flood.etl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&trace).unwrap());
    Recording::from_stage(Stage::Before).write(&mut file).unwrap();
    drop(file);
    let script = dir.join("apply.ps1");
    let trace = trace.to_str().unwrap();
    // Lines are folded.
    let words =
        |arguments: &[&str]| answer(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&["plan", "cores", trace, "--script", script.to_str().unwrap()]);
    for line in [
        "Windows: 2 sockets, 2 NUMA nodes, 12 cores, 24 CPUs; 6 network adapters",
        "0 and 1, 2 and 3",
        "[high] In 10.0 s, nearly all receive work ran on 4 of 24 CPUs (0, 2, 4, 6), the busiest with 92 % of its time.",
        "thread 0, CPU 0, 2 to 10 ······ AABBCC",
        "thread 0, busy, tenths 999933 444466",
        "thread 0, CPU 12, 14 to 22 ······ DDEEFF",
        "planned: 2 queues on CPU 0, 2 (core 0, 1); base 0",
        "planned: 2 queues on CPU 20, 22 (core 10, 11); base 20",
        "The busiest receives 92 % of the time before, 31 % after.",
        "CPU 0, 2, 4, 6 had no room",
        "Counted as receive work: dpc ndis.sys",
        "-InterfaceDescription 'Intel(R) Ethernet Server Adapter X520-2 #6'",
        "undo: $found = Import-Clixml",
    ] {
        assert!(text.contains(line), "{line:?} is missing:\n{text}");
    }
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let (apply, undo) = (read("apply.ps1"), read("apply.undo.ps1"));
    assert!(apply.contains("Get-NetAdapterRss | Export-Clixml"), "{apply}");
    assert!(!undo.contains("Export-Clixml") && undo.contains("@values"), "{undo}");

    let json = answer(["plan", "cores", trace, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sum = |what: &str| -> f64 {
        let cpus = json["load"]["cpus"].as_array().unwrap();
        cpus.iter().map(|cpu| cpu[what].as_f64().unwrap()).sum()
    };
    let (before, after) = (sum("receive_before_percent"), sum("receive_after_percent"));
    // 36.8 s of DPCs and 0.1 s of ISRs in 10 s.
    assert!((before - 369.0).abs() < 1.0 && (before - after).abs() < 1e-6, "{before} {after}");

    // The settings found, where they are given, make the undo exact; the trace still has the load.
    let eight = WINDOWS.replacen(": 2\n", ": 8\n", 1);
    let rss = written(&dir, "rss.txt", &eight);
    let text = answer(["plan", "cores", trace, rss.to_str().unwrap()]);
    assert!(
        text.contains("undo:  Set-NetAdapterRss -Name 'Ethernet 4' -Profile NUMAStatic"),
        "{text}"
    );
    assert!(text.contains("The busiest receives 92 % of the time before"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let counts = "its 24 CPUs count, of which the settings of receive-side scaling list 8";
    assert!(text.contains(counts), "{text}");

    // Load of another machine would be wrong.
    let linux = written(&dir, "linux.txt", MACHINE);
    let complaint = complaint(2, ["plan", "cores", trace, linux.to_str().unwrap()]);
    assert!(
        complaint.contains("the trace is of Windows, and the settings are of Linux"),
        "{complaint}"
    );
}

/// Two adapters whose settings name four of the 24 CPUs of the trace, with this number of queues each.
fn limited(queues: u32) -> String {
    let adapter = |number: u32| {
        format!(
            "Name                                            : Backup {number}\n\
             Enabled                                         : True\n\
             NumberOfReceiveQueues                           : {queues}\n\
             Profile                                         : NUMAStatic\n\
             BaseProcessor: [Group:Number]                   : 0:0\n\
             MaxProcessor: [Group:Number]                    : 0:6\n\
             MaxProcessors                                   : 4\n\
             RssProcessorArray: [Group:Number/NUMA Distance] : 0:0/0  0:2/0  0:4/0  0:6/0\n\
             IndirectionTable: [Group:Number]                : 0:0   0:2     0:4     0:6\n\n"
        )
    };
    adapter(1) + &adapter(2)
}

/// The trace knows 24 CPUs, whatever the settings limit an adapter to; without a gain there are no commands.
#[test]
fn settings_that_limit_cpus_do_not_shrink_the_machine_of_a_trace() {
    let (_guard, dir) = folder();
    let trace = dir.join("flood.etl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&trace).unwrap());
    Recording::from_stage(Stage::Before).write(&mut file).unwrap();
    drop(file);
    let plan = |queues: u32| {
        let rss = written(&dir, &format!("rss{queues}.txt"), &limited(queues));
        let files = [trace.to_str().unwrap(), rss.to_str().unwrap()];
        let json = answer(["plan", "cores", files[0], files[1], "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    let percent = |plan: &serde_json::Value, name: &str| plan["load"][name].as_f64().unwrap();
    let more = plan(4);
    assert_eq!(more["machine"]["cpus"].as_array().unwrap().len(), 24);
    let assumed = more["machine"]["assumptions"].to_string();
    assert!(assumed.contains("its 24 CPUs count"), "{assumed}");
    let (before, after) =
        (percent(&more, "busiest_before_percent"), percent(&more, "busiest_after_percent"));
    assert!(before > 90.0 && after < 65.0, "{before} {after}");
    let commands = more["commands"]["steps"].to_string();
    assert!(commands.contains("Set-NetAdapterRss -Name 'Backup 2'"), "{commands}");
    assert!(!commands.contains("-MaxProcessors 2 "), "{commands}");

    // Two queues each are four CPUs, as today.
    let same = plan(2);
    assert_eq!(same["machine"]["cpus"].as_array().unwrap().len(), 24);
    assert_eq!(same["commands"]["steps"], serde_json::json!([]));
    let refused = same["commands"]["refused"].as_array().unwrap();
    assert!(refused.len() == 2 && refused.iter().all(|one| one["reason"] == "no-gain"), "{same}");
}

/// What if adapters were added: addresses, entries and CPUs, from the recorded clients too.
#[test]
fn adapters_can_be_added_in_thought() {
    let (_guard, dir) = folder();
    let machine = written(&dir, "machine.txt", MACHINE);
    let capture = capture();
    let common = ["plan", "cores", machine.to_str().unwrap(), "--adapters", "2x10gbit"];
    let arguments = || common.into_iter().chain(["--recording", &capture]);
    let text = answer(arguments()).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "What if 2 adapters of 10 Gbit/s were added",
        "new 1: node",
        "An address each: 2 addresses, and 2 entries of one name in DNS (round robin): a client takes one. 1 recorded client: 0.5",
        "SMB Multichannel: 2 addresses that clients reach, and 1 entry in DNS",
        "A team: 1 address, and 1 entry in DNS.",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    let json = answer(arguments().chain(["--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["added"]["places"].as_array().unwrap().len(), 2);
    assert_eq!(json["added"]["ways"][1]["client_bits_per_second"], 20_000_000_000_u64);
    // One client is on one adapter.
    assert_eq!(json["added"]["ways"][0]["busiest"]["percent_mean"], 100.0);
    let complaint = complaint(2, ["plan", "cores", "--adapters", "6xfast"]);
    assert!(complaint.contains("6xfast"), "{complaint}");
}

/// With the files that the plan asks for, pasted outputs give a whole plan.
#[test]
fn pasted_files_complete_a_machine() {
    let (_guard, dir) = folder();
    let text = format!(
        "{MACHINE}# grep . /proc/irq/*/smp_affinity_list /sys/class/net/*/device/numa_node\n\
         /proc/irq/41/smp_affinity_list:2\n/sys/class/net/eth4/device/numa_node:1\n\
         /sys/class/net/eth4/queues/rx-0/rps_cpus:00\n"
    );
    let machine = written(&dir, "machine.txt", &text);
    let text = answer(["plan".as_ref(), "cores".as_ref(), machine.as_os_str()]);
    for words in ["ethtool -L 'eth4' combined 2", "set_queue_affinity 'eth4' 1 3", "node 1"] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    assert!(!text.contains("Left as it is") && !text.contains("not understood"), "{text}");
}

/// A write and a Flush that a Samba answered, with a second server at two distances.
#[test]
fn a_second_server_is_planned_from_a_capture() {
    let capture = super::fixture("replay.pcapng");
    let plan = |more: &[&str]| {
        let common = ["plan", "replication", &capture, "--rtt", "1ms"];
        answer(common.iter().chain(more).copied())
    };
    let text = plan(&[
        "--rtt",
        "20ms",
        "--bandwidth",
        "1gbit",
        "--outage",
        "1h",
        "--goal",
        "all p99 < 10ms",
    ]);
    for line in [
        "ASYNCHRONOUS COPIES",
        "Test-SRTopology -SourceComputerName",
        "all p99 < 10ms",
        "to be made",
        "not met",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    let value: serde_json::Value =
        serde_json::from_str(&plan(&["--distance", "30km", "--format", "json"])).unwrap();
    let lines = value["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (lines[0]["rtt_ns"].as_i64(), lines[1]["rtt_ns"].as_i64()),
        (Some(1_000_000), Some(300_000))
    );
    assert_eq!(value["writes"], 1);
    // No link at all: all ways to give one are named.
    let complaint = complaint(2, ["plan", "replication", &capture]);
    for option in ["--rtt", "--distance", "--link", "--test-report"] {
        assert!(complaint.contains(option), "{option}: {complaint}");
    }
    let (_guard, dir) = folder();
    // What a report measured is the link, and decides the checks.
    let measured = written(
        &dir,
        "measured.html",
        "<h2>Performance</h2><table><tr><th>Metric</th><th>Average</th></tr><tr><td>Round trip latency (ms)</td><td>6.3</td>\
         </tr></table><p>Initial Sync Performance: 4.1 hours</p>",
    );
    let measured = measured.to_str().unwrap();
    for given in [&["--rtt", "5ms"][..], &[]] {
        let common = ["plan", "replication", &capture, "--test-report", measured];
        let text = answer(common.iter().chain(given).copied());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "[not met] synchronous copies: a round trip of at most 5 ms: Test-SRTopology measured 6.300 ms",
            "Initial Sync Performance: 4.1 hours",
        ] {
            assert!(text.contains(words), "{words:?} is missing:\n{text}");
        }
    }
    let report =
        written(&dir, "report.html", "<h2>Tests</h2><table><tr><td>Log volume<td>Failed</table>");
    let page = dir.join("plan.html");
    let given = [report.to_str().unwrap(), page.to_str().unwrap()];
    assert_eq!(plan(&["--test-report", given[0], "--html", given[1]]), "");
    assert!(std::fs::read_to_string(&page).unwrap().contains("Log volume"));
}

#[test]
fn a_second_server_needs_a_link_and_a_goal_that_exists() {
    let capture = super::fixture("replay.pcapng");
    let plan = |more: &[&str]| {
        let common = ["plan", "replication", &capture];
        complaint(2, common.iter().chain(more).copied())
    };
    assert!(plan(&[]).contains("--rtt"));
    assert!(plan(&["--rtt", "1ms", "--goal", "Write"]).contains("for example"));
    let unknown = plan(&["--rtt", "1ms", "--goal", "Dance p99 < 1ms"]);
    assert!(unknown.contains("Write") && unknown.contains("all"), "{unknown}");
    let many: Vec<_> = (0..13).flat_map(|_| ["--rtt", "1ms"]).collect();
    assert!(plan(&many).contains("at most 12"));
    let (_guard, dir) = folder();
    let report = written(&dir, "report.html", "nothing");
    assert!(
        plan(&["--rtt", "1ms", "--test-report", report.to_str().unwrap()]).contains("has no table")
    );
}
