// Requests: when they arrived, and which one a thread read.
#pragma once

#define STAMP_AGE_MAX 1000000000

// When the newest segment of a socket arrived. The kernel stamps packets at the device while a capture
// is running; then this is the time in the capture. Otherwise it is now, a softirq later.
static __always_inline __u64 newest(struct sock *sk)
{
	__u64 now = bpf_ktime_get_ns();
	// The tail of an empty queue is its head, which has a different layout.
	if (!sk->sk_receive_queue.qlen)
		return now;
	__u64 stamp = sk->sk_receive_queue.prev->tstamp;
	if (!stamp)
		return now;
	__u64 age = bpf_ktime_get_tai_ns() - tai_offset_ns - stamp;
	return age < STAMP_AGE_MAX ? now - age : now;
}

// Runs for every segment of every waiting socket of the host.
static __always_inline int data_came(struct sock *sk)
{
	if (!is_served(sk))
		return 0;
	struct socket_state *state =
		bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (!state || !tcp)
		return 0;
	struct arrivals *arrivals = &state->arrivals;
	__u32 place = arrivals->next % ARRIVALS;
	arrivals->time[place] = newest(sk);
	arrivals->sequence[place] = tcp->rcv_nxt;
	arrivals->next++;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(data_ready, struct sock *sk)
{
	return data_came(sk);
}

// Before Linux 6.3 this tracepoint does not exist.
SEC("fentry/sock_def_readable")
int BPF_PROG(data_ready_function, struct sock *sk)
{
	return data_came(sk);
}

// Arrival of the byte before `sequence`; 0 if it is not known any more.
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
			// The same segment may contain the next message too.
			arrivals->oldest = from;
			return lost && i == 0 ? 0 : arrivals->time[place];
		}
		from++;
	}
	arrivals->oldest = from;
	return 0;
}

// The only buffer of the system call that reads or writes, or its vector of buffers, from the registers
// at its entry; both are 0 for other calls.
static __always_inline __u64 buffer_of(struct task_struct *task, __u64 *vector, __u64 *vectors)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 call = SYSCALL_NUMBER(regs);
	__u64 argument = SYSCALL_ARGUMENT_2(regs);
	*vector = 0;
	*vectors = 1;
	if (call == CALL_RECVMSG || call == CALL_SENDMSG) {
		struct user_msghdr_abi message = {};
		if (bpf_probe_read_user(&message, sizeof(message), (void *)argument))
			return 0;
		*vector = message.iov;
		*vectors = message.iovlen;
	} else if (call == CALL_READV || call == CALL_WRITEV) {
		*vector = argument;
		*vectors = SYSCALL_ARGUMENT_3(regs);
	} else if (call == CALL_READ || call == CALL_RECVFROM || call == CALL_WRITE ||
		   call == CALL_SENDTO) {
		return argument;
	}
	return 0;
}

static __always_inline int has_read(struct sock *sk, int ret, int flags)
{
	if (ret <= 0 || (flags & MSG_PEEK) || !is_served(sk))
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
	__u64 vector, vectors;
	__u64 buffer = buffer_of(task, &vector, &vectors);
	if (vector && bpf_probe_read_user(&buffer, sizeof(buffer), (void *)vector))
		buffer = 0;
	__u32 behind = tcp->copied_seq;
	__u32 size = ret;
	if (!state->out_known) {
		state->out_end = tcp->write_seq;
		state->out_gone = state->out_end;
		state->out_known = true;
	}
	// Spliced data (`min receivefile size`) is not visible; the position in the stream shows it.
	if (state->length && (__s32)(behind - size - state->end) >= 0) {
		state->length = 0;
		state->head_read = false;
	}
	if (state->length == 0) {
		__u32 got = state->header_got;
		if (got < 4 && size <= 4 - got) {
			// The NetBIOS header, which smbd reads separately.
			if (got == 0)
				state->read_at = bpf_ktime_get_ns();
			if (size == 4)
				bpf_probe_read_user(state->header, 4, (void *)buffer);
			else
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
		// The recorder started in the middle of a message, or a whole message is read at once.
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
	// The head of a write whose data will be spliced: smbd reads exactly this much of it.
	if (!whole && state->got != SHORT_WRITE_BYTES)
		return 0;
	bool dispatched = state->head_read && !thread->fresh;
	state->head_read = !whole;
	if (dispatched) {
		// The rest of it, between read(2) and write(2).
		state->moved_at = arrival_of(&state->arrivals, state->end);
		state->length = 0;
		return 0;
	}
	struct message *message = &thread->message;
	message->base = state->base;
	message->length = state->length;
	message->captured = state->got < state->length ? state->got : state->length;
	message->sequence = state->end - state->length - 4;
	message->read_at = state->read_at;
	message->first_at = arrival_of(&state->arrivals, message->sequence + 1);
	message->arrived_at = whole ? arrival_of(&state->arrivals, state->end) : 0;
	ends_of(sk, &message->ends);
	thread->fresh = true;
	if (whole)
		state->length = 0;
	// Read back, because the verifier does not allow shifts of a pointer.
	__u64 socket = *(volatile __u64 *)&message->ends.socket;
	if (!functions)
		begin_request(thread, socket << 32 | message->sequence);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(received, struct sock *sk, int ret, int flags)
{
	return has_read(sk, ret, flags);
}

SEC("fexit/tcp_recvmsg")
int BPF_PROG(received_function, struct sock *sk, void *message, unsigned long length, int flags,
	     void *address_length, int ret)
{
	return has_read(sk, ret, flags);
}
