/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* How long handlers take here: longer in cold caches, and so does all else about a probe (see probes/calibration/cold_cache.py). */

#define PACE_LIMIT_NS 1024 /* twice the most that cold caches made of one: an interrupt came */

/* At one return in 32, take the time since its beginning; the clock's low bits are as good as chance. */
static inline __attribute__((always_inline)) void note_pace(struct counters *c, u64 began)
{
	u64 took;

	if (began & 31)
		return;
	took = bpf_ktime_get_ns() - began;
	if (took < PACE_LIMIT_NS) {
		atomic_add(c->pace_ns, took);
		atomic_add(c->paced, 1);
		atomic_add(c->pace_log, bucket_of(took));
	}
}
