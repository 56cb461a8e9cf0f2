//! The policy on lists of interfaces.

use super::*;

const GIGABIT: u64 = 1_000_000_000;

fn offer(index: u32, address: &str, gigabits: u64, rss: bool) -> NetworkInterface {
    NetworkInterface {
        index,
        capabilities: InterfaceCapabilities(u32::from(rss)),
        link_speed: gigabits * GIGABIT,
        address: Some(address.parse().unwrap()),
    }
}

fn route(gateway: Option<&str>) -> Route {
    Route {
        source: "10.0.0.1".parse().unwrap(),
        interface: Some("eth0".into()),
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        speed: None,
        receive_queues: None,
    }
}

fn on_link(_: IpAddr) -> Result<Route, String> {
    Ok(route(None))
}

fn verdicts(
    offered: &[NetworkInterface],
    rules: &Rules,
    route_to: impl Fn(IpAddr) -> Result<Route, String>,
) -> Vec<String> {
    let first = "10.0.0.2".parse().unwrap();
    let words = judge(offered, first, rules, route_to).into_iter().map(|one| match one.verdict {
        Verdict::Use(count) => count.to_string(),
        Verdict::Not(reason) => reason.word().to_owned(),
    });
    words.collect()
}

#[test]
fn each_fast_interface_gets_its_channels() {
    let rules = Rules::default();
    let two = [offer(1, "10.0.0.2", 10, true), offer(2, "10.1.0.2", 10, false)];
    assert_eq!(verdicts(&two, &rules, on_link), ["4", "1"]);
    let slow = [offer(1, "10.0.0.2", 10, true), offer(2, "10.1.0.2", 1, true)];
    assert_eq!(verdicts(&slow, &rules, on_link), ["4", "speed_class"]);
    let least = Rules { least_speed: Some(GIGABIT), ..rules };
    assert_eq!(verdicts(&slow, &least, on_link), ["4", "4"]);
    // The first connection stays, also on a slow link.
    let first_slow = [offer(1, "10.0.0.2", 1, true), offer(2, "10.1.0.2", 10, true)];
    assert_eq!(verdicts(&first_slow, &rules, on_link), ["1", "4"]);
}

#[test]
fn interfaces_without_a_number_are_told_apart_by_the_way_to_them() {
    let unknown = u32::MAX;
    let offers = [
        offer(unknown, "10.0.0.2", 1, false),
        offer(unknown, "10.1.0.2", 1, false),
        offer(unknown, "10.0.0.3", 1, false),
        offer(7, "10.2.0.2", 1, false),
    ];
    let by_subnet = |address: IpAddr| {
        let text = address.to_string();
        let interface = text.rsplit_once('.').map(|(subnet, _)| subnet.to_owned());
        Ok(Route { interface, ..route(None) })
    };
    let found = verdicts(&offers, &Rules::default(), by_subnet);
    assert_eq!(found, ["1", "1", "same_interface", "1"]);
    let one_way = verdicts(&offers, &Rules::default(), on_link);
    assert_eq!(one_way, ["1", "same_interface", "same_interface", "same_interface"]);
}

#[test]
fn there_is_a_limit_on_all_channels() {
    let offers = [
        offer(1, "10.1.0.2", 10, true),
        offer(2, "10.0.0.2", 10, true),
        offer(3, "10.2.0.2", 10, true),
    ];
    let rules = Rules { most: 6, ..Rules::default() };
    assert_eq!(verdicts(&offers, &rules, on_link), ["2", "4", "limit"]);
    // The first connection's address is not in the list, but counts.
    let elsewhere = [offer(1, "10.1.0.2", 10, true), offer(3, "10.2.0.2", 10, true)];
    let rules = Rules { most: 5, ..Rules::default() };
    assert_eq!(verdicts(&elsewhere, &rules, on_link), ["4", "limit"]);
}

#[test]
fn the_client_s_own_interface_counts_too() {
    let route_to = |_| Ok(Route { speed: Some(GIGABIT), receive_queues: Some(1), ..route(None) });
    let offers = [offer(1, "10.0.0.2", 10, true)];
    let judged = judge(&offers, "10.0.0.2".parse().unwrap(), &Rules::default(), route_to);
    assert_eq!((judged[0].speed(), judged[0].has_rss()), (GIGABIT, false));
    assert_eq!(judged[0].verdict, Verdict::Use(1));
}

#[test]
fn addresses_that_cannot_be_used_get_a_reason() {
    let offers = [
        offer(1, "10.0.0.2", 10, false),
        offer(2, "fe80::1", 10, false),
        offer(3, "127.0.0.1", 10, false),
        offer(4, "192.168.7.2", 10, false),
        offer(5, "172.16.0.2", 10, false),
        offer(1, "10.0.0.3", 10, false),
        NetworkInterface { address: None, ..offer(6, "10.9.0.2", 10, false) },
    ];
    let route_to = |address: IpAddr| match address.to_string().as_str() {
        "192.168.7.2" => Ok(route(Some("10.0.0.254"))),
        "172.16.0.2" => Err("Network is unreachable".to_owned()),
        _ => Ok(route(None)),
    };
    assert_eq!(
        verdicts(&offers, &Rules::default(), route_to),
        ["1", "link_local", "loopback", "subnet", "no_route", "same_interface", "family"]
    );
    // A client that reaches every address through a gateway uses them.
    let routed = |_| Ok(route(Some("10.0.0.254")));
    assert_eq!(verdicts(&offers[..1], &Rules::default(), routed), ["1"]);
    assert_eq!(verdicts(&offers[3..4], &Rules::default(), routed), ["1"]);
}
