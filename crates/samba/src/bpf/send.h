// Replies: their heads, when they went to the network device, and when the kernel had them.
#pragma once

static __always_inline bool tells_data(__u16 command)
{
	return command == COMMAND_CREATE || command == COMMAND_NEGOTIATE ||
	       command == COMMAND_SESSION_SETUP || command == COMMAND_IOCTL;
}

// The heads of a reply's pieces.
static __always_inline void gather(struct thread *thread, struct pieces *heads, __u64 vector,
				   __u64 vectors)
{
	volatile struct vector_abi *list = thread->vectors;
	volatile struct walk *walk = begin_walk(thread);
	walk->command = 0xffff;
	__u64 bytes = at_most(vectors, VECTORS) * sizeof(struct vector_abi);
	if (bpf_probe_read_user(thread->vectors, at_most(bytes, sizeof(thread->vectors)),
				(void *)vector))
		vectors = 0;
	for (__u32 i = 0; i < VECTORS; i++) {
		__u32 used = walk->used;
		__u32 pieces = walk->pieces;
		if (i >= vectors || pieces >= PIECES || used > DATA_BYTES - 256)
			break;
		struct vector_abi piece = { .base = list[i].base, .length = list[i].length };
		if (piece.length == 0)
			continue;
		// A header begins a member; bytes after its body are data.
		bool is_data = walk->place >= 3 && !tells_data(walk->command);
		__u64 wanted = at_most(piece.length, 256);
		if (is_data && piece.length != 64)
			wanted = 0;
		__u8 *to = heads->data + at_most(used, DATA_BYTES - 256);
		if (wanted && bpf_probe_read_user(to, at_most(wanted, 256), (void *)piece.base))
			wanted = 0;
		if (wanted == 64 && to[0] == 0xfe && to[1] == 'S' && to[2] == 'M') {
			walk->command = to[12] | to[13] << 8;
			walk->place = 1;
		} else if (is_data) {
			// Possibly 64 bytes of a file.
			wanted = 0;
		}
		walk->wanted = wanted;
		wanted = walk->wanted;
		walk->place++;
		volatile struct piece *entry = &walk->piece[at_most(pieces, PIECES - 1)];
		entry->length = piece.length;
		entry->captured = wanted;
		walk->pieces = pieces + 1;
		walk->used = used + wanted;
	}
}

static __always_inline void tell_reply(struct thread *thread, struct reply_event *event)
{
	event->crypto_out = thread->crypto_out;
	__u64 length = end_walk(thread, &event->pieces);
	tell(event, at_most(offsetof(struct reply_event, pieces.data) + length, SCRATCH_BYTES));
}

// Everything before `end` went to the network device: reports the messages that waited for that.
static __always_inline void gone(struct sock *sk, struct socket_state *state, __u32 end)
{
	if ((__s32)(end - state->out_gone) <= 0)
		return;
	state->out_gone = end;
	// Either this finds the waiting messages, or `has_to_wait` finds that they have left.
	__sync_fetch_and_add(&state->due_next, 0);
	__u32 first = state->due_first;
	__u32 waiting = *(volatile __u64 *)&state->due_next - first;
	__u32 passed = 0;
	for (__u32 i = 0; i < DUE; i++) {
		if (i >= waiting || (__s32)(end - state->due[(first + i) % DUE]) < 0)
			break;
		passed++;
	}
	if (!passed)
		return;
	state->due_first = first + passed;
	struct io_event event = {};
	fill(&event.head, EVENT_LEFT, bpf_get_current_pid_tgid());
	event.place = (__u64)sk;
	event.what = end;
	tell(&event, sizeof(event));
}

// Whether a part of a message that ends there is still in the kernel; an event follows when it has left.
static __always_inline bool has_to_wait(struct socket_state *state, __u32 end)
{
	__u32 next = state->due_next;
	if ((__s32)(state->out_gone - end) >= 0 || next - state->due_first >= DUE)
		return false;
	state->due[next % DUE] = end;
	__sync_fetch_and_add(&state->due_next, 1);
	return (__s32)(*(volatile __u32 *)&state->out_gone - end) < 0;
}

// When bytes go to the network device: the system call returns only after the loopback device, or a
// softirq on this processor, has done the client's part too. Runs for every packet of the host.
SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(departed, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	if (!sk || !is_served(sk))
		return 0;
	struct socket_state *state = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!state || !state->out_known)
		return 0;
	__u64 tcp = (__u64)skb->head + skb->transport_header;
	struct {
		__be32 ports;
		__be32 sequence;
		__be32 acknowledgement;
		__u8 offset;
	} __attribute__((packed)) header;
	if (bpf_probe_read_kernel(&header, sizeof(header), (void *)tcp))
		return 0;
	// Neither an acknowledgement without data nor a retransmission.
	__u32 headers = tcp - (__u64)skb->data + (header.offset >> 4) * 4;
	__s32 data = skb->len - headers;
	__u32 sequence = bpf_ntohl(header.sequence);
	if (data <= 0)
		return 0;
	gone(sk, state, sequence + data);
	if ((__s32)(sequence - state->out_end) < 0)
		return 0;
	state->out_last = bpf_ktime_get_ns();
	if (!state->out_first)
		state->out_first = state->out_last;
	return 0;
}

static __always_inline int has_sent(struct sock *sk, int ret)
{
	if (ret <= 0 || !is_served(sk))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_of(task);
	if (!thread)
		return 0;
	struct socket_state *state =
		bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (!state || !tcp)
		return 0;
	if (!functions)
		park(thread, state->out_first);
	struct reply_event *event = (struct reply_event *)thread->scratch;
	fill(&event->head, EVENT_SENT, thread->who);
	event->socket = (__u64)sk;
	event->first_at = state->out_first;
	event->last_at = state->out_last;
	// The rest of a write, of which only the head was read as a message, arrived before its answer.
	event->arrived_at = state->moved_at;
	if (!state->moved_at && state->length && state->head_read)
		event->arrived_at = arrival_of(&state->arrivals, state->end);
	state->moved_at = 0;
	__u32 before = state->out_end;
	state->out_end = tcp->write_seq;
	if (!state->out_known)
		state->out_gone = state->out_end;
	event->behind = state->out_end;
	event->waits = 0;
	state->out_known = true;
	state->out_first = 0;
	state->out_last = 0;
	if (state->to_send) {
		// The rest of a message that did not fit into the socket's buffer.
		state->to_send = state->to_send > ret ? state->to_send - ret : 0;
		event->head.kind = EVENT_SENT_MORE;
		event->left = state->to_send;
		event->waits = !state->to_send && has_to_wait(state, event->behind);
		event->crypto_out = 0;
		tell(event, offsetof(struct reply_event, pieces));
		return 0;
	}
	__u64 vector, vectors;
	__u64 buffer = buffer_of(task, &vector, &vectors);
	struct pieces *heads = &event->pieces;
	volatile struct walk *walk = &thread->walk;
	if (vector) {
		gather(thread, heads, vector, vectors);
	} else {
		// One buffer with everything: the head of a reply that sendfile(2) completes.
		__u64 head = at_most(ret, 256);
		if (!buffer || bpf_probe_read_user(heads->data, head, (void *)buffer))
			head = 0;
		walk->piece[0].captured = head;
		walk->pieces = 1;
		walk->used = head;
	}
	// The NetBIOS header is a separate piece or the beginning of the first one.
	__u8 *header = heads->data;
	if (!walk->pieces || walk->piece[0].captured < 4 || header[0] != 0) {
		count(COUNTER_STRANGE_SEND);
		return 0;
	}
	__u32 total = (header[1] << 16 | header[2] << 8 | header[3]) + 4;
	state->to_send = total > ret ? total - ret : 0;
	// A head that waits for its data (MSG_MORE) departs with the data.
	if (state->to_send && !event->first_at)
		state->out_end = before;
	event->left = state->to_send;
	event->total = total;
	event->waits = !state->to_send && has_to_wait(state, event->behind);
	if (!vector)
		walk->piece[0].length = total;
	tell_reply(thread, event);
	thread->crypto_out = 0;
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sent, struct sock *sk, int ret, int flags)
{
	return has_sent(sk, ret);
}

// Before Linux 6.3 this tracepoint does not exist.
SEC("fexit/tcp_sendmsg")
int BPF_PROG(sent_function, struct sock *sk, void *message, unsigned long size, int ret)
{
	return has_sent(sk, ret);
}

// Until Linux 6.4 sendfile(2) uses this function, which has no tracepoint.
SEC("fexit/tcp_sendpage")
int BPF_PROG(sent_page, struct sock *sk, void *page, int offset, unsigned long size, int flags,
	     int ret)
{
	return has_sent(sk, ret);
}

// An smbd that is started later may listen on other ports.
static __always_inline int listens(struct sock *sk)
{
	__u32 port = sk->__sk_common.skc_num;
	__u8 one = 1;
	if (follow_new && tracked())
		bpf_map_update_elem(&ports, &port, &one, BPF_ANY);
	return 0;
}

// A connection can move between processes (multichannel), so it ends with the socket. The socket has
// released its port by then: if it has state, it was served.
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(closed, struct sock *sk, int oldstate, int newstate)
{
	if (newstate == TCP_LISTEN)
		return listens(sk);
	if (newstate != TCP_CLOSE || oldstate == TCP_LISTEN ||
	    !bpf_sk_storage_get(&sockets, sk, 0, 0))
		return 0;
	struct io_event event = {};
	fill(&event.head, EVENT_CLOSED, bpf_get_current_pid_tgid());
	event.place = (__u64)sk;
	tell(&event, sizeof(event));
	return 0;
}
