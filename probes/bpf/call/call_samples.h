/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Single durations of the open window, beside its histogram: the first ones in their order, and a fair sample of all
 * (Vitter 1985, algorithm R). User space begins a window by setting ``began`` to the number of calls timed so far. */

BPF_F_TABLE("array", u32, struct singles, singles, MAX_SLOTS, 1024);

/* Keep the duration of a timed call, if it is among the first or chance wants it; ``timed`` counts it already. Two CPUs
 * may read one number: then one place holds 0, and is left out. */
static inline __attribute__((always_inline)) void keep_single(struct thread *t, u32 slot, u64 timed, u64 duration)
{
	struct singles *s = singles.lookup(&slot);
	u64 nth;

	if (!s)
		return;
	nth = timed - 1 - s->began;
	if (nth < SINGLES) {
		barrier_var(nth);
		nth &= SINGLES - 1;
		s->first[nth] = duration;
	} else {
		if (nth >> 32) /* begun anew this moment */
			return;
		nth = (u64)draw(t) * (nth + 1) >> 32;
		if (nth >= SINGLES)
			return;
		barrier_var(nth);
		nth &= SINGLES - 1;
	}
	s->kept[nth] = duration;
}
