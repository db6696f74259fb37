/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Single durations of the open window: the first ones in their order, and a random sample of all (Vitter 1985,
 * algorithm R). User space begins a window by setting ``began`` to the number of calls timed so far. */

BPF_F_TABLE("array", u32, struct call_samples, call_samples, MAX_SLOTS, 1024);

/* Store the duration of a timed call if it is among the first, or drawn; return its number in the window, from 0.
 * ``timed`` counts it already. Two CPUs may read the same number; then one cell stays 0, and user space leaves it out. */
static inline __attribute__((always_inline)) u64 keep_call_sample(struct thread *t, u32 slot, u64 timed, u64 duration)
{
	struct call_samples *s = call_samples.lookup(&slot);
	u64 number, nth;

	if (!s)
		return 0;
	nth = number = timed - 1 - s->began;
	if (nth < CALL_SAMPLES) {
		barrier_var(nth);
		nth &= CALL_SAMPLES - 1;
		s->first[nth] = duration;
	} else {
		if (nth >> 32) /* a window begins at this moment */
			return number;
		nth = (u64)random_of(t) * (nth + 1) >> 32;
		if (nth >= CALL_SAMPLES)
			return number;
		barrier_var(nth);
		nth &= CALL_SAMPLES - 1;
	}
	s->kept[nth] = duration;
	return number;
}
