// The few kernel types that are read, with only the fields that are read: their offsets are relocated
// when the program is loaded (CO-RE), so no kernel's offsets are in here.
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

#define AF_INET 2
#define AF_INET6 10
#define MSG_PEEK 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10

#define COMMAND_NEGOTIATE 0
#define COMMAND_SESSION_SETUP 1
#define COMMAND_CREATE 5
#define COMMAND_READ 8
#define COMMAND_WRITE 9
#define COMMAND_IOCTL 11
#define COMMAND_SET_INFO 17

#define MAGIC_ENCRYPTED 0x424d53fd
#define TRANSFORM_BYTES 52
// SMBD_SMB2_SHORT_RECEIVEFILE_WRITE_LEN: header and fixed part of a write.
#define SHORT_WRITE_BYTES 112

#define BPF_F_NO_PREALLOC 1
#define offsetof(type, member) __builtin_offsetof(type, member)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

struct request;

#define relocated __attribute__((preserve_access_index))

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
} relocated;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} relocated;

struct sk_buff_head {
	struct sk_buff *prev;
	__u32 qlen;
} relocated;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
} relocated;

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
} relocated;

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned char *head;
	unsigned char *data;
	__u16 transport_header;
	__s64 tstamp;
} relocated;

struct task_struct {
	int pid;
	int tgid;
} relocated;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
#define SYSCALL_NUMBER(regs) ((__u64)(regs)->orig_ax)
#define SYSCALL_ARGUMENT_2(regs) ((__u64)(regs)->si)
#define SYSCALL_ARGUMENT_3(regs) ((__u64)(regs)->dx)
#define CALL_READ 0
#define CALL_WRITE 1
#define CALL_READV 19
#define CALL_WRITEV 20
#define CALL_SENDTO 44
#define CALL_RECVFROM 45
#define CALL_SENDMSG 46
#define CALL_RECVMSG 47
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31];
			__u64 sp, pc, pstate;
		};
	};
	__u64 orig_x0;
	int syscallno;
} relocated;
#define SYSCALL_NUMBER(r) ((__u64)(r)->syscallno)
#define SYSCALL_ARGUMENT_2(r) ((r)->regs[1])
#define SYSCALL_ARGUMENT_3(r) ((r)->regs[2])
#define CALL_READ 63
#define CALL_WRITE 64
#define CALL_READV 65
#define CALL_WRITEV 66
#define CALL_SENDTO 206
#define CALL_RECVFROM 207
#define CALL_SENDMSG 211
#define CALL_RECVMSG 212
#else
#error "smbscope's probe knows x86-64 and arm64"
#endif

// The user interface, the same on all 64-bit kernels.
struct vector_abi {
	__u64 base;
	__u64 length;
};
struct user_msghdr_abi {
	__u64 name;
	__u64 namelen;
	__u64 iov;
	__u64 iovlen;
};
