// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What processors do instead of running threads: handlers of interrupts, softirqs, polls of network
// devices; and samples of what they execute. Beginnings and ends are paired here, so that one event per
// run leaves the kernel. Events go to one ring for each processor: processors do not wait for each other.
//
// A program here can be interrupted by another one on the same processor, which then runs to its end. So
// `depth` is raised before a frame is filled, and lowered after it was copied.
//
// Programs are called like their tracepoint, with a prefix by which they are known in stacks; those that
// a kernel does not have are not loaded (loader.rs). Limits: all memory is fixed; what does not fit is counted for each processor.

// clang-format off
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "event.h"
// clang-format on

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define CPUS_MAX 1024
#define DEPTH_MAX 8
#define SOFTIRQS 16
// Names that were sent last, on each processor.
#define NAMES 64
// Every n-th run's cost is measured.
#define COST_EVERY 16

// Set once everything is attached.
volatile bool started;
// Every how many ticks of the clock a sample is taken; 0 for never.
volatile __u32 sample_every = 1;
volatile bool switches;

struct frame {
	__u64 start;
	__u64 raised;
	__u32 vector;
	__u32 name;
	__u32 kind;
	__u32 thread;
};

struct cpu {
	__u32 depth;
	__u32 ticks;
	__u64 raised[SOFTIRQS]; // when each softirq was requested since it last began
	__u64 poll_start;
	// Counters.
	__u64 runs; // of these programs, without samples
	__u64 cost_ns; // of every COST_EVERY-th of them
	__u64 samples_ns;
	__u64 lost;
	__u64 starts_unmatched;
	__u64 ends_unmatched;
	struct frame frames[DEPTH_MAX];
	__u32 names[NAMES];
} __attribute__((aligned(64)));

struct cpu cpus[CPUS_MAX];
// Events on processors above CPUS_MAX.
__u64 beyond;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_event);
} scratch SEC(".maps");

static __always_inline struct cpu *here(__u32 number)
{
	if (!started)
		return 0;
	if (number >= CPUS_MAX) {
		__sync_fetch_and_add(&beyond, 1);
		return 0;
	}
	return &cpus[number];
}

static __always_inline bool send(struct cpu *cpu, __u32 number, void *event, __u64 bytes)
{
	void *ring = bpf_map_lookup_elem(&rings, &number);
	if (ring && bpf_ringbuf_output(ring, event, bytes, BPF_RB_NO_WAKEUP) == 0)
		return true;
	cpu->lost++;
	return false;
}

static __always_inline void paid(struct cpu *cpu, __u64 since)
{
	if (++cpu->runs % COST_EVERY == 0)
		cpu->cost_ns += bpf_ktime_get_ns() - since;
}

static __always_inline __u32 thread_here(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

// A number for a pointer: the verifier knows pointers by type, and would not store half of one.
static __always_inline __u32 key_of(const void *pointer)
{
	__u32 key;
	asm volatile("%[key] = %[low]" : [key] "=w"(key) : [low] "w"((__u32)(__u64)pointer));
	return key;
}

// ---- beginnings and ends ----

static __always_inline void begin(__u32 kind, __u32 vector, __u32 name)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	if (!cpu)
		return;
	__u64 now = bpf_ktime_get_ns();
	__u32 depth = cpu->depth;
	if (depth >= DEPTH_MAX) {
		// Ends were missed: what began first cannot be running any more.
		cpu->starts_unmatched += DEPTH_MAX;
		depth = 0;
	}
	cpu->depth = depth + 1;
	struct frame *frame = &cpu->frames[depth & (DEPTH_MAX - 1)];
	frame->start = now;
	frame->raised = 0;
	if (kind == KIND_SOFTIRQ)
		frame->raised = __sync_lock_test_and_set(&cpu->raised[vector & (SOFTIRQS - 1)], 0);
	frame->kind = kind;
	frame->vector = vector;
	frame->name = name;
	frame->thread = thread_here();
	paid(cpu, now);
}

static __always_inline void end(__u32 kind, __u32 vector)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	if (!cpu)
		return;
	__u64 now = bpf_ktime_get_ns();
	struct run_event event = {};
	__u32 depth = cpu->depth;
	__u32 missed = 0;
	for (int i = 0; i < DEPTH_MAX && depth > 0; i++) {
		depth--;
		struct frame *frame = &cpu->frames[depth & (DEPTH_MAX - 1)];
		if (frame->kind != kind || frame->vector != vector) {
			missed++;
			continue;
		}
		event.head.what = EVENT_RUN;
		event.head.kind = kind;
		event.head.cpu = number;
		event.head.thread = frame->thread;
		event.start = frame->start;
		event.end = now;
		event.raised = frame->raised;
		event.vector = vector;
		event.name = frame->name;
		cpu->starts_unmatched += missed;
		cpu->depth = depth;
		send(cpu, number, &event, sizeof(event));
		paid(cpu, now);
		return;
	}
	cpu->ends_unmatched++;
}

// Sends the name of a handler or device unless it was sent before.
static __always_inline void name_it(__u32 kind, __u32 vector, __u32 key, const char *text)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	if (!cpu)
		return;
	__u32 place = (kind == KIND_IRQ ? vector : key >> 6) % NAMES;
	if (cpu->names[place] == key)
		return;
	struct name_event event = {};
	event.head.what = EVENT_NAME;
	event.head.kind = kind;
	event.head.cpu = number;
	event.vector = vector;
	event.name = key;
	if (text)
		bpf_probe_read_kernel_str(event.text, sizeof(event.text), text);
	if (send(cpu, number, &event, sizeof(event)))
		cpu->names[place] = key;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(smbscope_softirq_raise, unsigned int vector)
{
	struct cpu *cpu = here(bpf_get_smp_processor_id());
	if (!cpu)
		return 0;
	__u64 *raised = &cpu->raised[vector & (SOFTIRQS - 1)];
	if (!*raised) {
		__u64 now = bpf_ktime_get_ns();
		*raised = now;
		paid(cpu, now);
	}
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(smbscope_softirq_entry, unsigned int vector)
{
	begin(KIND_SOFTIRQ, vector, 0);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(smbscope_softirq_exit, unsigned int vector)
{
	end(KIND_SOFTIRQ, vector);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(smbscope_irq_handler_entry, int irq, struct irqaction *action)
{
	__u32 key = key_of(action);
	name_it(KIND_IRQ, irq, key, action->name);
	begin(KIND_IRQ, irq, key);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(smbscope_irq_handler_exit, int irq, struct irqaction *action, int ret)
{
	end(KIND_IRQ, irq);
	return 0;
}

// Interrupts of the local APIC (arch/x86/include/asm/trace/irq_vectors.h): their name is a place in
// VECTORS of ring_event.rs.
#define VECTOR(tracepoint, kind, place)                                                              \
	SEC("tp_btf/" #tracepoint "_entry")                                                          \
	int BPF_PROG(smbscope_##tracepoint##_entry, int vector)                                                 \
	{                                                                                            \
		begin(kind, vector | OF_VECTOR, place);                                              \
		return 0;                                                                            \
	}                                                                                            \
	SEC("tp_btf/" #tracepoint "_exit")                                                           \
	int BPF_PROG(smbscope_##tracepoint##_exit, int vector)                                                  \
	{                                                                                            \
		end(kind, vector | OF_VECTOR);                                                       \
		return 0;                                                                            \
	}

VECTOR(local_timer, KIND_IRQ, 1)
VECTOR(reschedule, KIND_IPI, 2)
VECTOR(call_function, KIND_IPI, 3)
VECTOR(call_function_single, KIND_IPI, 4)
VECTOR(irq_work, KIND_IPI, 5)
VECTOR(thermal_apic, KIND_IRQ, 6)
VECTOR(x86_platform_ipi, KIND_IRQ, 7)

#if defined(__TARGET_ARCH_arm64)
SEC("tp_btf/ipi_entry")
int BPF_PROG(smbscope_ipi_entry, const char *reason)
{
	__u32 key = key_of(reason);
	name_it(KIND_IPI, 0, key, reason);
	begin(KIND_IPI, 0, key);
	return 0;
}

SEC("tp_btf/ipi_exit")
int BPF_PROG(smbscope_ipi_exit, const char *reason)
{
	end(KIND_IPI, 0);
	return 0;
}
#endif

// ---- polls of network devices ----

// The tracepoint reports the end of a poll only. This function is one poll; not every kernel has it.
SEC("fentry/__napi_poll")
int BPF_PROG(smbscope_poll_begin, struct napi_struct *napi)
{
	struct cpu *cpu = here(bpf_get_smp_processor_id());
	if (cpu)
		cpu->poll_start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(smbscope_napi_poll, struct napi_struct *napi, int work, int budget)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	if (!cpu)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	struct net_device *dev = napi->dev;
	__u32 key = key_of(napi);
	name_it(KIND_POLL, 0, key, dev ? dev->name : 0);
	struct run_event event = {};
	event.head.what = EVENT_RUN;
	event.head.kind = KIND_POLL;
	event.head.cpu = number;
	event.head.thread = thread_here();
	event.start = cpu->poll_start;
	cpu->poll_start = 0;
	event.end = now;
	event.vector = work;
	event.budget = budget;
	event.name = key;
	send(cpu, number, &event, sizeof(event));
	paid(cpu, now);
	return 0;
}

// ---- samples ----

SEC("perf_event")
int smbscope_sample(struct bpf_perf_event_data *context)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	__u32 every = sample_every;
	if (!cpu || every == 0 || ++cpu->ticks < every)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u32 key = 0;
	struct sample_event *event = bpf_map_lookup_elem(&scratch, &key);
	if (!event)
		return 0;
	__u64 who = bpf_get_current_pid_tgid();
	event->head.what = EVENT_SAMPLE;
	event->head.cpu = number;
	event->head.thread = (__u32)who;
	event->process = who >> 32;
	event->time = now;
	event->address = ADDRESS(&context->regs);
	event->ticks = cpu->ticks;
	cpu->ticks = 0;
	// The clock is itself an interrupt, the innermost one.
	__u32 depth = cpu->depth;
	__u32 kind = KIND_NONE;
	for (int i = 0; i < 2 && depth > 0; i++) {
		depth--;
		kind = cpu->frames[depth & (DEPTH_MAX - 1)].kind;
		if (i == 0 && kind == KIND_IRQ)
			kind = KIND_NONE;
		else
			break;
	}
	event->head.kind = kind;
	long bytes = bpf_get_stack(context, event->stack, sizeof(event->stack), 0);
	if (bytes < 0)
		bytes = 0;
	__u64 all = __builtin_offsetof(struct sample_event, stack) + (__u64)bytes;
	if (all <= sizeof(*event))
		send(cpu, number, event, all);
	cpu->samples_ns += bpf_ktime_get_ns() - now;
	return 0;
}

// ---- on demand: context switches ----

SEC("tp_btf/sched_switch")
int BPF_PROG(smbscope_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (!switches)
		return 0;
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = here(number);
	if (!cpu)
		return 0;
	struct switch_event event = {};
	event.time = bpf_ktime_get_ns();
	event.head.what = EVENT_SWITCH;
	event.head.kind = preempt;
	event.head.cpu = number;
	event.head.thread = prev->pid;
	event.new_thread = next->pid;
	if (bpf_core_field_exists(struct task_struct, __state))
		event.state = prev->__state;
	else
		event.state = BPF_CORE_READ((struct task_struct___old *)prev, state);
	bpf_probe_read_kernel(event.old_name, sizeof(event.old_name), prev->comm);
	bpf_probe_read_kernel(event.new_name, sizeof(event.new_name), next->comm);
	send(cpu, number, &event, sizeof(event));
	paid(cpu, event.time);
	return 0;
}
