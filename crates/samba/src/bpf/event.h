// The events that the BPF part sends to the program. ring_event.rs reads the same layout; both are little-endian.
#pragma once

#define EVENT_DISPATCH 1
#define EVENT_DONE 2
#define EVENT_PARK 3
#define EVENT_HANDED_OVER 4
#define EVENT_IO 5
#define EVENT_CLEAR 6
#define EVENT_SENT 7
#define EVENT_SENT_MORE 8
#define EVENT_EXIT 9
#define EVENT_CLOSED 10
#define EVENT_LEFT 11

#define IO_READ 1
#define IO_WRITE 2
#define IO_FLUSH 3

#define CLASS_NONE 0
#define CLASS_FILE 1
#define CLASS_WAIT 2
#define CLASS_READ 3
#define CLASS_WRITE 4
#define CLASS_FLUSH 5

#define CRYPTO_IN 0
#define CRYPTO_OUT 1

#define COUNTERS 8
#define COUNTER_DROPPED 0
#define COUNTER_NO_THREAD 1
#define COUNTER_NO_PROCESS 2
#define COUNTER_STRANGE_SEND 3

// More than there are system calls.
#define CALLS 512

#define DATA_BYTES 2048
#define PIECES 32

struct counters {
	__u64 value[COUNTERS];
};

struct head {
	__u64 time; // CLOCK_MONOTONIC
	__u32 process;
	__u32 thread;
	__u16 kind;
	__u16 cpu;
	__u32 reserved;
};

struct ends {
	__u64 socket;
	__u32 client[4];
	__u32 server[4];
	__u16 client_port;
	__u16 server_port;
	__u16 family;
	__u16 reserved;
};

struct message {
	__u64 base;
	__u64 first_at;   // arrival of the first byte, 0 if unknown
	__u64 arrived_at; // arrival of the last byte, 0 if unknown
	__u64 read_at;    // its first byte was read
	__u32 length;     // without the NetBIOS header
	__u32 captured;
	__u32 sequence; // of the NetBIOS header's first byte
	__u32 reserved;
	struct ends ends;
};

// Pieces of a message that are not adjacent in smbd's memory, or of which some bytes are left out.
struct piece {
	__u32 length;
	__u32 captured;
};

struct pieces {
	__u32 count;
	__u32 bytes; // captured, of all pieces
	__u8 data[DATA_BYTES + PIECES * sizeof(struct piece)]; // followed by the lengths of each piece
};

struct dispatch_event {
	struct head head;
	__u64 request;
	__u64 crypto_in;
	__u32 fresh;
	__u32 encrypted;
	struct message message;
	struct pieces members;
};

// How the time of the rest was spent, if requested.
struct within {
	__u64 off;  // not on a processor
	__u64 disk; // a block device was working for it
};

struct work_event {
	struct head head;
	__u64 request;
	__u64 crypto;
	__u64 busy;
	__u64 woke;
	struct within within;
	__u32 in_dispatch;
	__u32 reserved;
};

struct io_event {
	struct head head;
	__u64 request;
	__u64 place;
	__u64 began;  // handed over: time of system calls until now
	__u64 crypto; // handed over: time of signature checks until now
	struct within within;
	__u32 what;
	__u32 reserved;
};

struct reply_event {
	struct head head;
	__u64 socket;
	__u64 first_at; // when its first byte went to the network device
	__u64 last_at;  // when the last byte did
	__u64 crypto_out;
	__u64 arrived_at; // last byte of a write that smbd spliced to its file; 0 for none
	__u32 left;
	__u32 total;
	__u32 behind; // sequence after it
	__u32 waits;  // not all of it went to the network device: EVENT_LEFT reports when
	struct pieces pieces;
};
