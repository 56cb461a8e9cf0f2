// What the kernel's side reports: the same layouts as in ../ring_event.rs. All numbers are those of the
// machine.
#pragma once

#define EVENT_RUN 1
#define EVENT_SAMPLE 2
#define EVENT_SWITCH 3
#define EVENT_NAME 4

// Kinds of a run.
#define KIND_NONE 0
#define KIND_SOFTIRQ 1
#define KIND_IRQ 2
#define KIND_IPI 3
#define KIND_POLL 4

// Marks vectors of the local APIC, which are not irqs.
#define OF_VECTOR 0x80000000

#define FRAMES_MAX 127
#define NAME_BYTES 64

struct head {
	__u8 what;
	__u8 kind;
	__u16 cpu;
	__u32 thread; // number of the thread that was interrupted
};

// A handler or deferred work ended.
struct run_event {
	struct head head;
	__u64 start; // 0 if it is not known
	__u64 end;
	__u64 raised; // 0 if it is not known
	__u32 vector; // irq, softirq, vector; of a poll its packets
	__u32 name;   // key of an EVENT_NAME; of a vector its place in VECTORS of ring_event.rs
	__u32 budget; // of a poll
	__u32 zero;
};

struct sample_event {
	struct head head; // kind: what it hit
	__u64 time;
	__u64 address;
	__u32 process;
	__u32 ticks; // how many ticks of the clock it represents
	__u64 stack[FRAMES_MAX];
};

struct switch_event {
	struct head head; // thread: the old one
	__u64 time;
	__u32 new_thread;
	__u32 state;
	char old_name[16];
	char new_name[16];
};

// The name of a handler or of a device; sent before the first run with that key on a processor.
struct name_event {
	struct head head; // kind: KIND_IRQ or KIND_POLL
	__u32 vector;
	__u32 name;
	char text[NAME_BYTES];
};
