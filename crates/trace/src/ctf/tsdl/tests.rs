//! Metadata as LTTng writes it, and damaged.

use super::super::types::{Length, Type};
use super::*;

const TEXT: &str = r#"/* CTF 1.8 */
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
trace {
	major = 1; byte_order = be;
	packet.header := struct { unsigned long magic; };
};
env { domain = "kernel"; kernel_release = "4.4.3-1-ARCH"; tracer_major = 2; };
clock { name = "monotonic"; freq = 1000000000; offset = 5; offset_s = 7; };
struct event_header {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct { integer { size = 27; align = 1; map = clock.monotonic.value; } timestamp; } compact;
		struct { unsigned long id; } extended;
	} v;
} align(32);
stream { id = 3; event.header := struct event_header; packet.context := struct { unsigned long cpu_id; }; };
event {
	name = "sched_switch"; id = 17; stream_id = 3;
	fields := struct {
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _prev_comm[16];
		integer { size = 16; signed = 1; byte_order = le; } __length;
		unsigned long _many[ __length ];
		string _name;
		floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _f;
	};
};
"#;

#[test]
fn metadata_of_lttng_is_read() {
    let metadata = parse(TEXT);
    assert_eq!((metadata.damaged.len(), metadata.order), (0, Order::Big));
    assert_eq!(metadata.kernel, Some((4, 4)));
    let clock = metadata.clock.unwrap();
    assert_eq!((clock.name.as_str(), clock.nanoseconds(1)), ("monotonic", Some(7_000_000_006)));
    let types = &metadata.types;
    let stream = metadata.streams[&3];
    let header = types.get(stream.event_header.unwrap()).unwrap();
    let Type::Struct { fields, align_bits: 32 } = header else { panic!("{header:?}") };
    assert!(
        matches!(types.get(fields[1].1), Some(Type::Variant { fields, .. }) if fields.len() == 2)
    );
    let event = &metadata.events[&(3, 17)];
    assert_eq!(event.name, "sched_switch");
    let Some(Type::Struct { fields, .. }) = types.get(event.fields.unwrap()) else { panic!() };
    let names: Vec<_> = fields.iter().map(|&(name, _)| types.name(name)).collect();
    assert_eq!(names, ["_prev_comm", "__length", "_many", "_name", "_f"]);
    assert!(matches!(types.get(fields[0].1), Some(Type::Array { length: Length::Fixed(16), .. })));
    let Some(Type::Integer(length)) = types.get(fields[1].1) else { panic!() };
    assert_eq!((length.order, length.is_signed, length.align_bits), (Order::Little, true, 8));
}

#[test]
fn what_precedes_damage_is_kept() {
    let cut = &TEXT[..TEXT.find("_many").unwrap()];
    let metadata = parse(cut);
    assert_eq!((metadata.streams.len(), metadata.events.len()), (1, 0));
    assert_eq!(metadata.damaged, ["line 23"]);
    for text in [
        "enum { a };",
        "typealias integer { size = 65; } := x;",
        "typealias integer { size = 8; align = 3; } := x;",
        "struct unknown;",
        "struct s { unknown x; };",
        "variant { } ; }",
        "event { fields := integer { size := integer { } ; } };",
        "trace { a = ; };",
        "@",
    ] {
        assert_eq!(parse(text).damaged, ["line 1"], "{text}");
    }
    let deep = "struct a { struct { ".repeat(1_000_000);
    assert_eq!(parse(&deep).damaged, ["line 1"]);
    let clock = Clock { name: String::new(), frequency: 1, offset: i128::MAX, offset_seconds: 0 };
    assert_eq!(clock.nanoseconds(1), None);
}
