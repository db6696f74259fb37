/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What bcc's stackcount does at a hit, and the same without the stack. */
BPF_HASH(by_stack, u64, u64, 16384);
struct addresses {
	u64 ip[127];
};
BPF_TABLE("stacktrace", int, struct addresses, stacks, 16384);

static inline __attribute__((always_inline)) void count(u64 key)
{
	u64 *value = by_stack.lookup(&key), one = 1;

	if (value)
		__sync_fetch_and_add(value, 1);
	else
		by_stack.update(&key, &one);
}

int with_stack(struct pt_regs *ctx)
{
	count(stacks.get_stackid(ctx, 1 << 8 /* BPF_F_USER_STACK */));
	return 0;
}

int without_stack(struct pt_regs *ctx)
{
	count(0);
	return 0;
}
