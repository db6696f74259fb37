/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Registers and stack frames of x86-64. The other BPF sources, and the walk compiled for the host by tests, use only
 * these names. System V ABI for AMD64; arch/x86/kernel/uprobes.c. */

/* Registers as the kernel saves them at entry (ABI of BPF_PROG_TYPE_KPROBE). */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct pt_regs regs;
	u64 sample_period;
	u64 addr;
};

#define INSTRUCTION_POINTER(regs) ((regs)->ip)
#define STACK_POINTER(regs) ((regs)->sp)
#define FRAME_POINTER(regs) ((regs)->bp)
#define IN_KERNEL(regs) (!((regs)->cs & 3))

/* A call pushes so many bytes: the return address stands so far below the CFA. */
#define PUSHED 8

/* CFA of a lazy PLT stub: from its byte 11 on it has pushed a second word. */
#define PLT_CFA(sp, ip) ((sp) + 8 + ((u64)(((ip) & 15) >= 11) << 3))

/* The rule of a function that keeps a frame pointer: CFA = fp + 16, the caller's fp at CFA - 16. */
#define FRAME_POINTER_ROW (ROW_FP | (FP_SAVED << 3) | (2 << 5) | (2 << 13))

/* Where a signal frame keeps the interrupted registers: bytes from the stack pointer to those in its ucontext. */
#define SIGNAL_IP 168
#define SIGNAL_SP 160
#define SIGNAL_FP 120

/* The number of the system call that a thread is in, NO_CALL if an exception entered the kernel for it: the instruction
 * of a system call leaves its return address in cx. */
#define NO_CALL 0xffff
static inline __attribute__((always_inline)) u32 system_call(struct pt_regs *user)
{
	u64 number = 0, next = 0, ip = 0;

	bpf_probe_read_kernel(&number, 8, &user->orig_ax);
	bpf_probe_read_kernel(&next, 8, &user->cx);
	bpf_probe_read_kernel(&ip, 8, &user->ip);
	return next == ip && number < NO_CALL ? number : NO_CALL;
}

/* The first argument of that call. */
#define FIRST_ARGUMENT(regs) ((regs)->di)

/* Would a sample at this moment show a probe at work, not the program? The kernel handles a breakpoint, or the step
 * after it: both leave -1 here, other exceptions and interrupts do not. Until the handler has set it back, the
 * instruction pointer stands behind the breakpoint, where another row holds. */
static inline __attribute__((always_inline)) bool is_probing(struct pt_regs *user, bool in_kernel)
{
	u64 number = 0;

	if (!in_kernel)
		return false;
	bpf_probe_read_kernel(&number, 8, &user->orig_ax);
	return number == -1ULL;
}
