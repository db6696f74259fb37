#ifndef SPECMINE_PTRACE
#define SPECMINE_PTRACE
/* x86-64 registers as the kernel saves them on entry (ABI of BPF_PROG_TYPE_KPROBE). */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#endif
