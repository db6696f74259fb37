/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What makes little work for the verifier. It follows each way through a program once for each set of values that it
 * knows: of two ways that meet it must follow both on, unless they know the same. */

/* A loop of at most so many rounds. The body ends it, and must not ask for the number of the round.
 *
 * A kernel that counts rounds itself (MAY_GOTO, from 6.9) need not be shown that they end: a round that begins like one
 * before is not verified again. Others verify each round. */
#ifdef MAY_GOTO
#define REPEAT(most) for (; MAY_GO_ON;)
#define MAY_GO_ON                                                                                                      \
	({                                                                                                             \
		__label__ on, out;                                                                                     \
		bool go = true;                                                                                        \
		asm volatile goto("1: .byte 0xe5; .byte 0; .long ((%l[out] - 1b - 8) / 8) & 0xffff; .short 0" ::::out); \
		goto on;                                                                                               \
	out:                                                                                                           \
		go = false;                                                                                            \
	on:                                                                                                            \
		go;                                                                                                    \
	})
#else
#define REPEAT(most) for (u32 round = 0; round < most; round++)
#endif

/* A loop over i below ``most``. The body sets ``count``, in map memory, to i + 1: what stands there is not known, so all
 * rounds begin alike. */
#ifdef MAY_GOTO
#define ROUNDS(i, count, most) for (; MAY_GO_ON && (i = (count)) < most;)
#else
#define ROUNDS(i, count, most) for (i = 0; i < most; i++)
#endif

#define barrier_var(v) asm volatile("" : "+r"(v))

/* Map memory is read again after this, and nothing is known of it. */
#define FORGET_MEMORY() asm volatile("" ::: "memory")

/* Nothing is known of a value any more, at the price of two instructions. ``unknown`` is anything that is not known. */
#define FORGET(value, unknown)                                                                                         \
	({                                                                                                             \
		value ^= (unknown);                                                                                    \
		barrier_var(value);                                                                                    \
		value ^= (unknown);                                                                                    \
		barrier_var(value);                                                                                    \
	})
