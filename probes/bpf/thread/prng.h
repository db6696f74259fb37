/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Random numbers, by xorshift (Marsaglia 2003), a state for each thread. They cost a tenth of a call of the kernel's
 * generator, which gives the first state only. Never 0. */

static inline __attribute__((always_inline)) u32 random_of(struct thread *t)
{
	u32 x = t->random;

	if (!x)
		x = bpf_get_prandom_u32() | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	t->random = x;
	return x;
}
