// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the recorder sees inside smbd and in the kernel below it. It keeps no operation: it tells the
// program what happened on which thread, in order, and the program makes slices of that
// (assemble.rs), so that this part stays small enough to be checked.
//
// No Samba structure is read: requests are known by their address (an argument) and by the message
// that the thread read before. The message is found through the system call's arguments, which lie
// in the registers that the thread entered the kernel with; so no system-call tracepoint is needed
// for it (those slow down every process of the host).
//
// Limits: no payload is copied (`head_of`), every map is bounded, a full ring or map counts.

// clang-format off
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include "event.h"
// clang-format on

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// Set before loading.
const volatile bool syscalls = true;      // system calls are timed
const volatile bool follow_forks = true;  // children of tracked processes are tracked

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} events SEC(".maps");

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

// A byte for each system call: its class.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, __u8);
} classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counted SEC(".maps");

// Arrivals of a socket that were not read yet, the oldest overwritten.
#define ARRIVALS 64
struct arrivals {
	__u64 time[ARRIVALS];
	__u32 sequence[ARRIVALS]; // behind the last byte that had come
	__u32 next;               // count of all
	__u32 oldest;             // first that may still be of use
};

// What is being read and written on a socket.
struct socket_state {
	struct arrivals arrivals;
	__u64 base;        // of the message that is being read, in smbd's memory
	__u64 read_at;     // when its first byte was read
	__u32 length;      // of the message, without its NetBIOS header
	__u32 end;         // sequence behind it
	__u32 got;         // of it
	__u8 header[4];    // NetBIOS header
	__u32 header_got;
	__u32 to_send;     // what is left of the message that is being sent
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_state);
} sockets SEC(".maps");

// Where a walk over a reply's pieces is. In memory, so that the verifier takes all rounds of the
// loop for the same.
struct walk {
	__u32 used;
	__u32 pieces;
	__u32 place; // in its member: 0 transform, 1 header, 2 body, 3 data
	__u32 command;
};

#define SCRATCH_BYTES 4096
struct thread {
	struct walk walk;
	struct message message; // read last
	bool fresh;             // its first request was not dispatched yet
	__u64 current;          // request that is served, 0 for none
	__u64 busy;             // of system calls since `current` or the last wait
	__u32 calls;
	__u64 call_began;
	__u64 call_place;       // an argument: the buffer
	__u32 call_class;
	__u64 woke;             // when the thread last had something to do
	__u64 crypto_began;
	__u64 crypto_in;
	__u64 crypto_out;
	__u32 crypto_way;
	__u8 scratch[SCRATCH_BYTES] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

// The verifier must see the comparison that the compiler would leave out.
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

// The present thread's state, if its process is recorded.
static __always_inline struct thread *mine(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (thread || !tracked())
		return thread;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		count(COUNTER_NO_THREAD);
	return thread;
}

static __always_inline void tell(void *event, __u64 size)
{
	if (bpf_ringbuf_output(&events, event, size, BPF_RB_NO_WAKEUP))
		count(COUNTER_DROPPED);
}

static __always_inline void fill(struct head *head, __u16 kind)
{
	__u64 who = bpf_get_current_pid_tgid();
	head->time = bpf_ktime_get_ns();
	head->process = who >> 32;
	head->thread = (__u32)who;
	head->cpu = bpf_get_smp_processor_id();
	head->kind = kind;
}

static __always_inline bool is_served(struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return false;
	__u32 port = BPF_CORE_READ(sk, __sk_common.skc_num);
	__u8 *served = bpf_map_lookup_elem(&ports, &port);
	return served && *served;
}

static __always_inline void ends_of(struct sock *sk, struct ends *ends)
{
	ends->socket = (__u64)sk;
	ends->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	ends->server_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	ends->client_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (ends->family == AF_INET) {
		__u32 address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		__builtin_memcpy(ends->client, &address, 4);
		address = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		__builtin_memcpy(ends->server, &address, 4);
	} else {
		BPF_CORE_READ_INTO(&ends->client, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&ends->server, sk, __sk_common.skc_v6_rcv_saddr);
	}
}

// ---- arrival ----

// Runs for every segment of every socket of the host that waits for data.
SEC("tp_btf/sk_data_ready")
int BPF_PROG(data_ready, struct sock *sk)
{
	if (!is_served(sk))
		return 0;
	struct socket_state *state =
		bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state)
		return 0;
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct arrivals *arrivals = &state->arrivals;
	__u32 place = arrivals->next % ARRIVALS;
	arrivals->time[place] = bpf_ktime_get_ns();
	arrivals->sequence[place] = BPF_CORE_READ(tcp, rcv_nxt);
	arrivals->next++;
	return 0;
}

// When the byte before `sequence` had come; 0 when that is not known any more.
static __always_inline __u64 arrival_of(struct arrivals *arrivals, __u32 sequence)
{
	__u32 next = arrivals->next;
	__u32 from = arrivals->oldest;
	bool lost = next - from > ARRIVALS;
	if (lost)
		from = next - ARRIVALS;
	for (int i = 0; i < ARRIVALS; i++) {
		if (from == next)
			return 0;
		__u32 place = from % ARRIVALS;
		if ((__s32)(arrivals->sequence[place] - sequence) >= 0) {
			// The same segment may hold the next message too.
			arrivals->oldest = from;
			return lost && i == 0 ? 0 : arrivals->time[place];
		}
		from++;
	}
	arrivals->oldest = from;
	return 0;
}

// ---- messages in ----

// The buffer of the system call that reads or writes, from the registers it was entered with.
static __always_inline __u64 first_buffer(__u64 *vector, __u64 *vectors)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	__u64 call = SYSCALL_NUMBER(regs);
	__u64 argument = SYSCALL_ARGUMENT_2(regs);
	*vector = 0;
	*vectors = 1;
	if (call == CALL_RECVMSG || call == CALL_SENDMSG) {
		struct user_msghdr_abi message = {};
		if (bpf_probe_read_user(&message, sizeof(message), (void *)argument))
			return 0;
		argument = message.iov;
		*vectors = message.iovlen;
	} else if (call == CALL_READV || call == CALL_WRITEV) {
		*vectors = SYSCALL_ARGUMENT_3(regs);
	} else if (call == CALL_READ || call == CALL_RECVFROM || call == CALL_WRITE ||
		   call == CALL_SENDTO) {
		return argument;
	} else {
		return 0;
	}
	*vector = argument;
	__u64 base = 0;
	if (bpf_probe_read_user(&base, sizeof(base), (void *)argument))
		return 0;
	return base;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(received, struct sock *sk, int ret, int flags)
{
	if (ret <= 0 || (flags & MSG_PEEK))
		return 0;
	struct thread *thread = mine();
	if (!thread || !is_served(sk))
		return 0;
	struct socket_state *state =
		bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state)
		return 0;
	__u64 vector, vectors;
	__u64 buffer = first_buffer(&vector, &vectors);
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	__u32 behind = BPF_CORE_READ(tcp, copied_seq);
	__u32 size = ret;
	// What was spliced (`min receivefile size`) is not seen; where the stream is tells.
	if (state->length && (__s32)(behind - size - state->end) >= 0)
		state->length = 0;
	if (state->length == 0) {
		__u32 got = state->header_got;
		if (got < 4 && size <= 4 - got) {
			// The NetBIOS header, which smbd reads by itself.
			if (got == 0)
				state->read_at = bpf_ktime_get_ns();
			for (__u32 i = 0; i < 4; i++)
				if (i >= got && i < got + size)
					bpf_probe_read_user(&state->header[i], 1,
							    (void *)(buffer + i - got));
			state->header_got = got + size;
			if (state->header_got < 4)
				return 0;
			state->header_got = 0;
			state->got = 0;
			state->length = state->header[1] << 16 | state->header[2] << 8 | state->header[3];
			state->end = behind + state->length;
			return 0;
		}
		// The recorder came in the middle of a message, or a whole one is read at once.
		state->header_got = 0;
		state->read_at = bpf_ktime_get_ns();
		state->length = size;
		state->end = behind;
		state->got = 0;
	}
	if (state->got == 0)
		state->base = buffer;
	state->got += size;
	bool whole = state->got >= state->length;
	// The head of a write whose data will be spliced: smbd reads just this much of it.
	if (!whole && state->got != SHORT_WRITE_BYTES)
		return 0;
	struct message *message = &thread->message;
	message->base = state->base;
	message->length = state->length;
	message->captured = state->got < state->length ? state->got : state->length;
	message->sequence = state->end - state->length - 4;
	message->read_at = state->read_at;
	message->done_at = bpf_ktime_get_ns();
	message->first_at = arrival_of(&state->arrivals, message->sequence + 1);
	message->arrived_at = whole ? arrival_of(&state->arrivals, state->end) : 0;
	ends_of(sk, &message->ends);
	thread->fresh = true;
	if (whole)
		state->length = 0;
	return 0;
}

// ---- requests ----

// How much of a message is told: what names things, never what is in files.
static __always_inline __u32 head_of(__u16 command, __u32 length)
{
	__u32 most;
	switch (command) {
	case COMMAND_CREATE:
	case COMMAND_SESSION_SETUP:
		most = 2048;
		break;
	case COMMAND_READ:
	case COMMAND_WRITE:
		most = 112;
		break;
	case COMMAND_IOCTL:
	case COMMAND_SET_INFO:
		most = 640;
		break;
	default:
		most = 512;
	}
	return length < most ? length : most;
}

// The thread has nothing more to do: a request that is served still waits for something.
static __always_inline void park(struct thread *thread)
{
	if (thread->current) {
		struct work_event event = {};
		fill(&event.head, EVENT_PARK);
		event.request = thread->current;
		event.crypto = thread->crypto_in;
		event.busy = thread->busy;
		event.calls = thread->calls;
		event.woke = thread->woke;
		tell(&event, sizeof(event));
		thread->current = 0;
		thread->crypto_in = 0;
	}
}

SEC("uprobe")
int BPF_KPROBE(dispatch, void *request)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	if (thread->current != (__u64)request)
		park(thread);
	struct dispatch_event *event = (struct dispatch_event *)thread->scratch;
	fill(&event->head, EVENT_DISPATCH);
	event->request = (__u64)request;
	event->fresh = thread->fresh;
	event->crypto_in = thread->crypto_in;
	event->woke = thread->woke;
	event->bytes = 0;
	thread->current = (__u64)request;
	thread->busy = 0;
	thread->calls = 0;
	thread->crypto_in = 0;
	thread->crypto_out = 0;
	if (!thread->fresh) {
		tell(event, offsetof(struct dispatch_event, data));
		return 0;
	}
	thread->fresh = false;
	event->message = thread->message;
	// Encrypted messages were decrypted where they lie, behind the transform header.
	__u64 base = thread->message.base;
	__u32 magic = 0;
	__u32 length = thread->message.captured;
	bpf_probe_read_user(&magic, 4, (void *)base);
	if (magic == MAGIC_ENCRYPTED && length > TRANSFORM_BYTES) {
		base += TRANSFORM_BYTES;
		length -= TRANSFORM_BYTES;
		event->encrypted = 1;
	} else {
		event->encrypted = 0;
	}
	// Later members of a compound lie behind the first: everything up to a limit.
	__u8 fixed[24];
	if (bpf_probe_read_user(fixed, sizeof(fixed), (void *)base) == 0) {
		__u16 command = fixed[12] | fixed[13] << 8;
		__u32 next = fixed[20] | fixed[21] << 8 | fixed[22] << 16 | fixed[23] << 24;
		__u64 wanted = at_most(next ? length : head_of(command, length), DATA_BYTES);
		if (bpf_probe_read_user(event->data, wanted, (void *)base) == 0)
			event->bytes = wanted;
	}
	tell(event, at_most(offsetof(struct dispatch_event, data) + event->bytes, SCRATCH_BYTES));
	return 0;
}

SEC("uprobe")
int BPF_KPROBE(done, void *request, __u32 status)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	// One that waited can end while another is served, by what that does.
	bool own = !thread->current || thread->current == (__u64)request;
	struct work_event event = {};
	fill(&event.head, EVENT_DONE);
	event.request = (__u64)request;
	event.status = status;
	event.woke = thread->woke;
	event.in_dispatch = thread->current != 0;
	if (own) {
		event.crypto = thread->crypto_in;
		event.busy = thread->busy;
		event.calls = thread->calls;
		thread->current = 0;
		thread->busy = 0;
		thread->calls = 0;
		thread->crypto_in = 0;
	}
	tell(&event, sizeof(event));
	return 0;
}

// ---- signing and encryption ----

static __always_inline int crypto_enter(__u32 way)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	thread->crypto_way = way;
	thread->crypto_began = bpf_ktime_get_ns();
	return 0;
}

SEC("uprobe")
int BPF_KPROBE(crypto_in)
{
	return crypto_enter(CRYPTO_IN);
}

SEC("uprobe")
int BPF_KPROBE(sign)
{
	return crypto_enter(CRYPTO_OUT);
}

static __always_inline void tell_reply(struct thread *thread, struct reply_event *event,
				       __u64 vector, __u64 vectors);

// Before it is encrypted, the reply is told in clear; it is sent later.
SEC("uprobe")
int BPF_KPROBE(encrypt, void *key, __u64 vector, int vectors)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	struct reply_event *event = (struct reply_event *)thread->scratch;
	fill(&event->head, EVENT_CLEAR);
	event->socket = 0;
	tell_reply(thread, event, vector, vectors);
	return crypto_enter(CRYPTO_OUT);
}

SEC("uretprobe")
int BPF_KRETPROBE(crypto_left)
{
	struct thread *thread = mine();
	if (!thread || !thread->crypto_began)
		return 0;
	__u64 took = bpf_ktime_get_ns() - thread->crypto_began;
	thread->crypto_began = 0;
	if (thread->crypto_way == CRYPTO_IN)
		thread->crypto_in += took;
	else
		thread->crypto_out += took;
	return 0;
}

// ---- reads, writes and flushes that another thread does ----

static __always_inline int handed_over(struct thread *thread, __u64 place, __u16 what)
{
	if (!thread || !thread->current)
		return 0;
	struct io_event event = {};
	fill(&event.head, EVENT_HANDED_OVER);
	event.request = thread->current;
	event.place = place;
	event.began = thread->busy;
	event.crypto = thread->crypto_in;
	event.what = what;
	thread->busy = 0;
	thread->crypto_in = 0;
	tell(&event, sizeof(event));
	return 0;
}

SEC("uprobe")
int BPF_KPROBE(pread_send, void *handle, void *context, void *events_, void *file, __u64 buffer)
{
	return handed_over(mine(), buffer, IO_READ);
}

SEC("uprobe")
int BPF_KPROBE(pwrite_send, void *handle, void *context, void *events_, void *file, __u64 buffer)
{
	return handed_over(mine(), buffer, IO_WRITE);
}

SEC("uprobe")
int BPF_KPROBE(fsync_send)
{
	return handed_over(mine(), 0, IO_FLUSH);
}

// ---- system calls ----

SEC("tp_btf/sys_enter")
int BPF_PROG(call_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread) {
		// A thread of the pool is first seen here.
		if (number != CALL_PREAD64 && number != CALL_PWRITE64 && number != CALL_FSYNC &&
		    number != CALL_FDATASYNC)
			return 0;
		thread = mine();
		if (!thread)
			return 0;
	}
	__u32 key = number;
	__u8 *class = bpf_map_lookup_elem(&classes, &key);
	if (!class || *class == CLASS_NONE)
		return 0;
	if (*class == CLASS_WAIT)
		park(thread);
	thread->call_class = *class;
	thread->call_place = SYSCALL_ARGUMENT_2(regs);
	thread->call_began = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !thread->call_began)
		return 0;
	__u64 began = thread->call_began;
	__u64 now = bpf_ktime_get_ns();
	thread->call_began = 0;
	if (thread->call_class == CLASS_WAIT) {
		thread->woke = now;
		thread->busy = 0;
		thread->calls = 0;
		return 0;
	}
	thread->busy += now - began;
	thread->calls++;
	if (thread->call_class < CLASS_READ)
		return 0;
	__u64 who = bpf_get_current_pid_tgid();
	if ((__u32)who == who >> 32 && thread->current == 0)
		return 0;
	struct io_event event = {};
	fill(&event.head, EVENT_IO);
	event.place = thread->call_class == CLASS_FLUSH ? 0 : thread->call_place;
	event.what = thread->call_class - CLASS_READ + IO_READ;
	event.began = began;
	event.request = thread->current;
	tell(&event, sizeof(event));
	return 0;
}

// ---- messages out ----

static __always_inline bool tells_data(__u16 command)
{
	return command == COMMAND_CREATE || command == COMMAND_NEGOTIATE ||
	       command == COMMAND_SESSION_SETUP || command == COMMAND_IOCTL;
}

#define VECTORS 40
static __always_inline void tell_reply(struct thread *thread, struct reply_event *event,
				       __u64 vector, __u64 vectors)
{
	struct vector_abi *list = (struct vector_abi *)vector;
	volatile struct walk *walk = &thread->walk;
	walk->used = 0;
	walk->pieces = 0;
	walk->place = 0;
	walk->command = 0xffff;
	for (__u32 i = 0; i < VECTORS; i++) {
		__u32 used = walk->used;
		__u32 pieces = walk->pieces;
		if (i >= vectors || pieces >= PIECES || used > REPLY_BYTES - 256)
			break;
		struct vector_abi piece;
		if (bpf_probe_read_user(&piece, sizeof(piece), &list[i]))
			break;
		if (piece.length == 0)
			continue;
		// A header begins a member; what follows its body is data.
		bool is_data = walk->place >= 3 && !tells_data(walk->command);
		__u64 wanted = at_most(piece.length, 256);
		if (is_data && piece.length != 64)
			wanted = 0;
		__u8 *to = event->data + used;
		if (wanted && bpf_probe_read_user(to, at_most(wanted, 256), (void *)piece.base))
			wanted = 0;
		if (wanted == 64 && to[0] == 0xfe && to[1] == 'S' && to[2] == 'M') {
			walk->command = to[12] | to[13] << 8;
			walk->place = 1;
		} else if (is_data) {
			// 64 bytes of a file, perhaps.
			wanted = 0;
		}
		walk->place++;
		event->piece[pieces].length = piece.length;
		event->piece[pieces].captured = wanted;
		walk->pieces = pieces + 1;
		walk->used = used + wanted;
	}
	event->pieces = walk->pieces;
	event->bytes = walk->used;
	event->crypto_out = thread->crypto_out;
	tell(event, at_most(offsetof(struct reply_event, data) + event->bytes, SCRATCH_BYTES));
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sent, struct sock *sk, int ret, int flags)
{
	struct thread *thread = mine();
	if (!thread || ret <= 0 || !is_served(sk))
		return 0;
	struct socket_state *state =
		bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state)
		return 0;
	struct reply_event *event = (struct reply_event *)thread->scratch;
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	fill(&event->head, EVENT_SENT);
	event->socket = (__u64)sk;
	event->sequence = BPF_CORE_READ(tcp, write_seq) - ret;
	event->sent = ret;
	event->began = thread->call_began;
	if (state->to_send) {
		// The rest of a message that did not fit into the socket's buffer.
		state->to_send = state->to_send > ret ? state->to_send - ret : 0;
		event->head.kind = EVENT_SENT_MORE;
		event->left = state->to_send;
		event->pieces = 0;
		event->bytes = 0;
		event->crypto_out = 0;
		tell(event, offsetof(struct reply_event, data));
		return 0;
	}
	__u64 vector, vectors;
	__u64 base = first_buffer(&vector, &vectors);
	__u8 header[4];
	if (!base || bpf_probe_read_user(header, 4, (void *)base) || header[0] != 0) {
		count(COUNTER_STRANGE_SEND);
		return 0;
	}
	__u32 total = (header[1] << 16 | header[2] << 8 | header[3]) + 4;
	state->to_send = total > ret ? total - ret : 0;
	event->left = state->to_send;
	event->total = total;
	if (!vector) {
		// One buffer with everything: the head of a reply that sendfile(2) completes.
		event->piece[0].length = total;
		__u64 head = at_most(ret, 256);
		if (bpf_probe_read_user(event->data, head, (void *)base))
			head = 0;
		event->piece[0].captured = head;
		event->pieces = 1;
		event->bytes = head;
		event->crypto_out = thread->crypto_out;
		tell(event, offsetof(struct reply_event, data) + at_most(head, 256));
	} else {
		tell_reply(thread, event, vector, vectors);
	}
	thread->crypto_out = 0;
	return 0;
}

// A connection can go from process to process (multichannel), so its end is the socket's.
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(closed, struct sock *sk, int oldstate, int newstate)
{
	if (newstate != TCP_CLOSE || oldstate == TCP_LISTEN || !is_served(sk))
		return 0;
	struct io_event event = {};
	fill(&event.head, EVENT_CLOSED);
	event.place = (__u64)sk;
	tell(&event, sizeof(event));
	return 0;
}

// ---- processes ----

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	__u32 process = BPF_CORE_READ(parent, tgid);
	__u32 born = BPF_CORE_READ(child, tgid);
	if (!follow_forks || process == born || !bpf_map_lookup_elem(&processes, &process))
		return 0;
	__u8 one = 1;
	if (bpf_map_update_elem(&processes, &born, &one, BPF_ANY))
		count(COUNTER_NO_PROCESS);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ended, struct task_struct *task)
{
	__u32 process = BPF_CORE_READ(task, tgid);
	if (BPF_CORE_READ(task, pid) != process)
		return 0;
	if (bpf_map_delete_elem(&processes, &process) == 0) {
		struct head event = {};
		fill(&event, EVENT_EXIT);
		tell(&event, sizeof(event));
	}
	return 0;
}
