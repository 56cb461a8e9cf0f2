// The state between events, and how events are sent. Every map is bounded.
#pragma once

// Set before loading: TAI minus UTC, and whether Samba's functions are probed; otherwise requests begin
// when they were read and end when a reply is sent.
const volatile __u64 tai_offset_ns = 0;
const volatile bool functions = true;
const volatile bool disk = false;
const volatile __u8 classes[CALLS] = {}; // of each system call
// Set once everything is attached: half of the probes would report half of the events.
volatile bool started;
const volatile bool follow_new = false; // record every smbd that is started
// Record an smbd that is started after the chosen services ended: it is the same one.
const volatile bool follow_restart = false;
volatile __u32 services; // chosen services that run

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} events SEC(".maps");

#define OF_SERVICE 1
#define SERVICE 2 // it listens, and its end is the service's

// Processes that are recorded.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

// A byte for each TCP port: whether smbd listens on it.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counted SEC(".maps");

// Arrivals of a socket that were not read yet; the oldest is overwritten.
#define ARRIVALS 64
struct arrivals {
	__u64 time[ARRIVALS];
	__u32 sequence[ARRIVALS]; // after the last byte that had arrived
	__u32 next;               // count of all
	__u32 oldest;             // the first one that is still needed
};

// Messages of a socket that wait in the kernel; an event is sent when they are gone.
#define DUE 8

// What is being read and written on a socket.
struct socket_state {
	struct arrivals arrivals;
	__u64 base;        // of the message being read, in smbd's memory
	__u64 read_at;     // when its first byte was read
	__u32 length;      // of the message, without its NetBIOS header
	__u32 end;         // sequence after it
	__u32 got;         // bytes of it that were read
	__u8 header[4];    // NetBIOS header
	__u32 header_got;
	bool head_read;    // a write's head was read as a message; smbd moves the rest to the file itself
	__u64 moved_at;    // when the last byte of such a rest arrived; 0 if there is none
	__u32 to_send;     // rest of the message that is being sent
	__u32 out_end;     // sequence after the last byte sent before
	bool out_known;
	__u64 out_first;   // when the first byte after that went to the network device; 0 for not yet
	__u64 out_last;    // when the last one did
	__u32 out_gone;    // sequence after the last byte that ever went there
	__u32 due_first;   // number of messages that waited in the kernel and have left
	__u64 due_next;    // number of all messages that had to wait
	__u32 due[DUE];    // sequences after the waiting messages
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_state);
} sockets SEC(".maps");

// Position of a walk over a reply's pieces. In memory, so that the verifier treats all iterations of
// the loop as equal.
struct walk {
	__u32 used;
	__u32 pieces;
	__u32 place; // in a reply's member: 0 transform, 1 header, 2 body, 3 data
	__u32 at;    // in a request: where its member begins
	__u32 command;
	__u32 wanted; // how much of the current piece is reported
	struct piece piece[PIECES];
};

#define SCRATCH_BYTES 4608
#define VECTORS 40
struct thread {
	// The fields that each system call reads come first, so that they are adjacent.
	__u64 current;          // request being served, 0 if there is none
	__u64 busy;             // of system calls since `current` began or last waited
	__u64 call_began;
	__u64 call_place;       // an argument: the buffer
	__u32 call_class;
	bool fresh;             // its first request was not dispatched yet
	__u64 woke;             // when the thread last had something to do
	__u64 who;              // process and thread
	struct walk walk;
	struct message message; // the last one read
	__u64 crypto_began;
	__u64 crypto_in;
	__u64 crypto_out;
	__u32 crypto_way;
	__u64 off_since;        // when it left the processor; 0 while it runs
	struct within within;   // since the last report
	__u64 disk_seen;        // the reported part of its `disk_of`
	struct vector_abi vectors[VECTORS];
	__u8 scratch[SCRATCH_BYTES] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

// Block requests of a thread, changed by all processors.
struct disk_time {
	__u64 in_flight;
	__u64 since; // start of the first one in flight
	__u64 total; // time with any in flight
};

// By thread.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct disk_time);
} disk_of SEC(".maps");

// Block requests in flight, with their threads.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} block_requests SEC(".maps");

static __always_inline __u8 class_of(__u64 call)
{
	return call < CALLS ? classes[call] : CLASS_NONE;
}

// The verifier must see this comparison, which the compiler would optimize away.
static __always_inline __u64 at_most(__u64 value, __u64 most)
{
	asm volatile("" : "+r"(value));
	return value > most ? most : value;
}

static __always_inline void count(__u32 what)
{
	__u32 zero = 0;
	struct counters *counters = bpf_map_lookup_elem(&counted, &zero);
	if (counters && what < COUNTERS)
		counters->value[what]++;
}

static __always_inline bool tracked(void)
{
	__u32 process = bpf_get_current_pid_tgid() >> 32;
	return bpf_map_lookup_elem(&processes, &process) != 0;
}

// The current thread's state, if its process is recorded.
static __always_inline struct thread *thread_of(struct task_struct *task)
{
	if (!started)
		return 0;
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (thread || !tracked())
		return thread;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (thread)
		thread->who = bpf_get_current_pid_tgid();
	else
		count(COUNTER_NO_THREAD);
	return thread;
}

static __always_inline struct thread *mine(void)
{
	return thread_of(bpf_get_current_task_btf());
}

static __always_inline void tell(void *event, __u64 size)
{
	if (bpf_ringbuf_output(&events, event, size, BPF_RB_NO_WAKEUP))
		count(COUNTER_DROPPED);
}

// Whether the thread is working for a request.
static __always_inline bool works(struct thread *thread)
{
	return thread->current || (thread->call_began && thread->call_class >= CLASS_READ);
}

// Time spent within the rest since the last call; read-ahead that continues after a read belongs to the
// next one if that begins before it ends.
static __always_inline void take_within(struct thread *thread, struct within *within)
{
	if (disk) {
		__u32 id = (__u32)bpf_get_current_pid_tgid();
		struct disk_time *time = bpf_map_lookup_elem(&disk_of, &id);
		if (time) {
			__u64 total = time->total;
			if (time->in_flight)
				total += bpf_ktime_get_ns() - time->since;
			// One that ends right now may be missed once.
			if (total > thread->disk_seen)
				thread->within.disk = total - thread->disk_seen;
			thread->disk_seen = total;
		}
	}
	*within = thread->within;
	thread->within.off = 0;
	thread->within.disk = 0;
}

static __always_inline volatile struct walk *begin_walk(struct thread *thread)
{
	volatile struct walk *walk = &thread->walk;
	walk->used = 0;
	walk->pieces = 0;
	walk->place = 0;
	walk->at = 0;
	return walk;
}

// Appends the lengths of a walk's pieces to their bytes; returns the total length.
static __always_inline __u64 end_walk(struct thread *thread, struct pieces *pieces)
{
	volatile struct walk *walk = &thread->walk;
	__u64 used = at_most(walk->used, DATA_BYTES);
	__u64 lengths = at_most(walk->pieces, PIECES) * sizeof(struct piece);
	pieces->count = walk->pieces;
	pieces->bytes = used;
	// Most requests are one piece, for which no helper is called.
	if (lengths == sizeof(struct piece))
		*(struct piece *)(pieces->data + used) = thread->walk.piece[0];
	else
		bpf_probe_read_kernel(pieces->data + used,
				      at_most(lengths, PIECES * sizeof(struct piece)),
				      thread->walk.piece);
	return used + lengths;
}

static __always_inline void fill(struct head *head, __u16 kind, __u64 who)
{
	head->time = bpf_ktime_get_ns();
	head->process = who >> 32;
	head->thread = (__u32)who;
	head->cpu = bpf_get_smp_processor_id();
	head->kind = kind;
}

static __always_inline bool is_served(struct sock *sk)
{
	// Read directly: this runs for every packet of the host.
	__u16 family = sk->__sk_common.skc_family;
	if (family != AF_INET && family != AF_INET6)
		return false;
	__u32 port = sk->__sk_common.skc_num;
	__u8 *served = bpf_map_lookup_elem(&ports, &port);
	return served && *served;
}

static __always_inline void ends_of(struct sock *sk, struct ends *ends)
{
	ends->socket = (__u64)sk;
	ends->family = sk->__sk_common.skc_family;
	ends->server_port = sk->__sk_common.skc_num;
	ends->client_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (ends->family == AF_INET) {
		ends->client[0] = sk->__sk_common.skc_daddr;
		ends->server[0] = sk->__sk_common.skc_rcv_saddr;
	} else {
		for (int i = 0; i < 4; i++) {
			ends->client[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
			ends->server[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		}
	}
}
