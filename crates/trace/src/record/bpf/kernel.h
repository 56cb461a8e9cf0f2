// The few kernel types that are read, with only the fields that are read: their offsets are relocated
// when the program is loaded (CO-RE).
#pragma once

// Makes libbpf's headers use the kernel's register names.
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
};

#define relocated __attribute__((preserve_access_index))

struct irqaction {
	const char *name;
} relocated;

struct net_device {
	char name[16];
} relocated;

struct napi_struct {
	struct net_device *dev;
} relocated;

struct task_struct {
	int pid;
	unsigned int __state;
	char comm[16];
} relocated;

// Before Linux 5.14.
struct task_struct___old {
	long state;
} relocated;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#define ADDRESS(regs) ((regs)->ip)
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#define ADDRESS(regs) ((regs)->pc)
#else
#error "smbscope records processors of x86-64 and arm64"
#endif

// The user interface of perf programs.
struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};
