/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Chance at a tenth of the price of a call of the kernel's generator, which only begins the row: xorshift (Marsaglia
 * 2003), a row for each thread. Never 0. */

static inline __attribute__((always_inline)) u32 draw(struct thread *t)
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
