// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the recorder observes inside smbd and in the kernel below it. It stores no operations: it
// reports what happened on which thread, in order, and the program derives slices from that
// (assemble.rs), so that this part stays small enough to be verified.
//
// No Samba structure is read: requests are identified by their address (an argument) and by the message
// that the thread read before. The message is found through the system call's arguments, which are in
// the registers that the thread entered the kernel with; so no system-call tracepoint is needed for it
// (those slow down every process of the host).
//
// Limits: no payload is copied (`head_of`), every map is bounded, a full ring or map is counted.

// clang-format off
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include "event.h"
#include "state.h"
#include "request.h"
#include "receive.h"
#include "send.h"
// clang-format on

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// ---- requests ----

SEC("uprobe")
int BPF_KPROBE(dispatch, void *request)
{
	struct thread *thread = mine();
	if (thread)
		begin_request(thread, (__u64)request);
	return 0;
}

SEC("uprobe")
int BPF_KPROBE(done, void *request)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	// A waiting request can end while another one is served, as a result of its work.
	bool own = !thread->current || thread->current == (__u64)request;
	struct work_event event = {};
	fill(&event.head, EVENT_DONE, thread->who);
	event.request = (__u64)request;
	event.woke = thread->woke;
	event.in_dispatch = thread->current != 0;
	if (own) {
		event.crypto = thread->crypto_in;
		event.busy = thread->busy;
		take_within(thread, &event.within);
		thread->current = 0;
		thread->busy = 0;
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

// Before it is encrypted, the reply is reported in plaintext; it is sent later.
SEC("uprobe")
int BPF_KPROBE(encrypt, void *key, __u64 vector, int vectors)
{
	struct thread *thread = mine();
	if (!thread)
		return 0;
	struct reply_event *event = (struct reply_event *)thread->scratch;
	fill(&event->head, EVENT_CLEAR, thread->who);
	event->socket = 0;
	gather(thread, &event->pieces, vector, vectors);
	tell_reply(thread, event);
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
	fill(&event.head, EVENT_HANDED_OVER, thread->who);
	event.request = thread->current;
	event.place = place;
	event.began = thread->busy;
	event.crypto = thread->crypto_in;
	event.what = what;
	take_within(thread, &event.within);
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
	// Most system calls of the host end here.
	__u8 class = class_of(number);
	if (class == CLASS_NONE)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread) {
		// The first event of a pool thread.
		if (class < CLASS_READ)
			return 0;
		thread = thread_of(task);
		if (!thread)
			return 0;
	}
	thread->call_class = class;
	if (class == CLASS_WAIT) {
		park(thread, 0);
		// Its start is not needed; reading the clock is half of the cost of this program.
		thread->call_began = 1;
		return 0;
	}
	thread->call_place = SYSCALL_ARGUMENT_2(regs);
	if (class >= CLASS_READ && !thread->current) {
		struct within before;
		take_within(thread, &before);
	}
	thread->call_began = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_exit, struct pt_regs *regs, long ret)
{
	if (class_of(SYSCALL_NUMBER(regs)) == CLASS_NONE)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !thread->call_began)
		return 0;
	__u64 began = thread->call_began;
	__u64 now = bpf_ktime_get_ns();
	thread->call_began = 0;
	if (thread->call_class == CLASS_WAIT) {
		struct within before;
		thread->woke = now;
		thread->busy = 0;
		if (disk)
			take_within(thread, &before);
		return 0;
	}
	thread->busy += now - began;
	if (thread->call_class < CLASS_READ)
		return 0;
	if ((__u32)thread->who == thread->who >> 32 && thread->current == 0)
		return 0;
	struct io_event event = {};
	fill(&event.head, EVENT_IO, thread->who);
	event.place = thread->call_class == CLASS_FLUSH ? 0 : thread->call_place;
	event.what = thread->call_class - CLASS_READ + IO_READ;
	event.began = began;
	event.request = thread->current;
	// The main thread's calls are reported with the rest of its work.
	if (!thread->current)
		take_within(thread, &event.within);
	tell(&event, sizeof(event));
	return 0;
}

// ---- on demand: time off the processor, and of block devices ----

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = bpf_ktime_get_ns();
	struct thread *thread = bpf_task_storage_get(&threads, prev, 0, 0);
	if (thread && works(thread))
		thread->off_since = now;
	thread = bpf_task_storage_get(&threads, next, 0, 0);
	if (thread && thread->off_since) {
		thread->within.off += now - thread->off_since;
		thread->off_since = 0;
	}
	return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(block_began, struct request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !works(thread))
		return 0;
	__u64 key = (__u64)request;
	__u32 id = (__u32)bpf_get_current_pid_tgid();
	struct disk_time *time = bpf_map_lookup_elem(&disk_of, &id);
	if (!time) {
		struct disk_time none = {};
		bpf_map_update_elem(&disk_of, &id, &none, BPF_ANY);
		time = bpf_map_lookup_elem(&disk_of, &id);
		if (!time)
			return 0;
		thread->disk_seen = 0;
	}
	if (__sync_fetch_and_add(&time->in_flight, 1) == 0)
		time->since = bpf_ktime_get_ns();
	bpf_map_update_elem(&block_requests, &key, &id, BPF_ANY);
	return 0;
}

static __always_inline int block_over(struct request *request)
{
	__u64 key = (__u64)request;
	__u32 *id = bpf_map_lookup_elem(&block_requests, &key);
	if (!id)
		return 0;
	struct disk_time *time = bpf_map_lookup_elem(&disk_of, id);
	if (time && __sync_fetch_and_add(&time->in_flight, -1) == 1)
		__sync_fetch_and_add(&time->total, bpf_ktime_get_ns() - time->since);
	bpf_map_delete_elem(&block_requests, &key);
	return 0;
}

SEC("tp_btf/block_io_done")
int BPF_PROG(block_ended, struct request *request)
{
	return block_over(request);
}

// Merged into another one.
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_merged, struct request *request)
{
	return block_over(request);
}

// ---- processes ----

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	__u32 process = parent->tgid;
	__u32 born = child->tgid;
	if (process == born || !bpf_map_lookup_elem(&processes, &process))
		return 0;
	__u8 kind = OF_SERVICE;
	if (bpf_map_update_elem(&processes, &born, &kind, BPF_ANY))
		count(COUNTER_NO_PROCESS);
	return 0;
}

// A restarted service is not a child of a recorded process.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed)
{
	char name[16] = {};
	__u32 process = bpf_get_current_pid_tgid() >> 32;
	__u8 kind = SERVICE;
	bool restarts = follow_restart && services == 0;
	if (!(follow_new || restarts) || bpf_get_current_comm(name, sizeof(name)))
		return 0;
	if (name[0] != 's' || name[1] != 'm' || name[2] != 'b' || name[3] != 'd' || name[4])
		return 0;
	if (bpf_map_update_elem(&processes, &process, &kind, BPF_ANY))
		count(COUNTER_NO_PROCESS);
	else
		__sync_fetch_and_add(&services, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ended, struct task_struct *task)
{
	__u32 process = task->tgid;
	if (task->pid != process)
		return 0;
	__u8 *kind = bpf_map_lookup_elem(&processes, &process);
	if (kind && *kind == SERVICE)
		__sync_fetch_and_add(&services, -1);
	if (bpf_map_delete_elem(&processes, &process) == 0) {
		struct head event = {};
		fill(&event, EVENT_EXIT, bpf_get_current_pid_tgid());
		tell(&event, sizeof(event));
	}
	return 0;
}
