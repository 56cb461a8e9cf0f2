// Events about a request: when it begins, and when its thread has no more work for it.
#pragma once

// Longest head of a request that is reported.
#define HEAD_BYTES 1536
// The usual length of a head: the bytes of a member that are read before its command is known.
#define FIRST_BYTES 112

// How much of a message is reported: names, never the contents of files.
static __always_inline __u32 head_of(__u16 command, __u32 length)
{
	__u32 most;
	switch (command) {
	case COMMAND_CREATE:
	case COMMAND_SESSION_SETUP:
		most = HEAD_BYTES;
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

// The thread has no more work since `time` (0 for now): the served request still waits for something,
// or is answered.
static __always_inline void park(struct thread *thread, __u64 time)
{
	if (thread->current) {
		struct work_event event = {};
		fill(&event.head, EVENT_PARK, thread->who);
		if (time)
			event.head.time = time;
		event.request = thread->current;
		event.crypto = thread->crypto_in;
		event.busy = thread->busy;
		event.woke = thread->woke;
		take_within(thread, &event.within);
		tell(&event, sizeof(event));
		thread->current = 0;
		thread->crypto_in = 0;
	}
}

// Reports an encrypted message that stays closed, with its first bytes.
static __always_inline void tell_sealed(struct thread *thread, struct dispatch_event *event,
					__u32 length)
{
	volatile struct walk *walk = &thread->walk;
	walk->piece[0].length = length;
	walk->piece[0].captured = TRANSFORM_BYTES;
	walk->pieces = 1;
	walk->used = TRANSFORM_BYTES;
	__u64 bytes = end_walk(thread, &event->members);
	tell(event, at_most(offsetof(struct dispatch_event, members.data) + bytes, SCRATCH_BYTES));
}

// Reports the heads of the message's members. Encrypted messages were decrypted in place, after the
// transform header.
static __always_inline void tell_members(struct thread *thread, struct dispatch_event *event,
					 __u64 base, __u32 length)
{
	struct pieces *members = &event->members;
	volatile struct walk *walk = begin_walk(thread);
	event->encrypted = 0;
	for (__u32 i = 0; i <= PIECES; i++) {
		__u32 used = walk->used;
		__u32 at = walk->at;
		__u32 pieces = walk->pieces;
		if (pieces >= PIECES || used > DATA_BYTES - HEAD_BYTES || at >= length)
			break;
		// Linux 6.1 loses the result of an earlier comparison.
		__u8 *to = members->data + at_most(used, DATA_BYTES - HEAD_BYTES);
		if (bpf_probe_read_user(to, at_most(length - at, FIRST_BYTES), (void *)(base + at)))
			break;
		if (i == 0 && *(__u32 *)members->data == MAGIC_ENCRYPTED && length > TRANSFORM_BYTES) {
			if (!functions) {
				// It is read here, and not decrypted yet: its header shows that it is encrypted.
				tell_sealed(thread, event, length);
				return;
			}
			event->encrypted = 1;
			walk->at = TRANSFORM_BYTES;
			continue;
		}
		__u32 next = to[20] | to[21] << 8 | to[22] << 16 | to[23] << 24;
		__u32 own = next && next < length - at ? next : length - at;
		// In memory for the verifier, like the walk.
		walk->wanted = head_of(to[12] | to[13] << 8, own);
		__u64 wanted = walk->wanted;
		if (wanted > FIRST_BYTES &&
		    bpf_probe_read_user(to, at_most(wanted, HEAD_BYTES), (void *)(base + at)))
			wanted = 0;
		volatile struct piece *piece = &walk->piece[at_most(pieces, PIECES - 1)];
		piece->length = own;
		piece->captured = wanted;
		walk->used = used + wanted;
		walk->pieces = pieces + 1;
		walk->at = at + own;
	}
	__u64 bytes = end_walk(thread, members);
	tell(event, at_most(offsetof(struct dispatch_event, members.data) + bytes, SCRATCH_BYTES));
}

// The thread works on a request from now on: a new one, or one that waited.
static __always_inline void begin_request(struct thread *thread, __u64 request)
{
	if (thread->current != request)
		park(thread, 0);
	struct dispatch_event *event = (struct dispatch_event *)thread->scratch;
	fill(&event->head, EVENT_DISPATCH, thread->who);
	event->request = request;
	event->fresh = thread->fresh;
	event->crypto_in = thread->crypto_in;
	thread->current = request;
	struct within before;
	take_within(thread, &before);
	thread->busy = 0;
	thread->crypto_in = 0;
	thread->crypto_out = 0;
	if (!thread->fresh) {
		tell(event, offsetof(struct dispatch_event, message));
		return;
	}
	thread->fresh = false;
	event->message = thread->message;
	tell_members(thread, event, thread->message.base, thread->message.captured);
}
