/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The time that handlers take. It is longer in cold caches, and so are all other costs of a probe
 * (probes/calibration/cold_cache.py). */

#define HANDLER_LIMIT_NS 1024 /* twice the longest in cold caches: beyond it an interrupt came */

/* Time one return in 32 since its begin. The clock's low bits are random enough to choose it. */
static inline __attribute__((always_inline)) void note_handler_time(struct counters *c, u64 began)
{
	u64 took;

	if (began & 31)
		return;
	took = bpf_ktime_get_ns() - began;
	if (took < HANDLER_LIMIT_NS) {
		atomic_add(c->handler_ns, took);
		atomic_add(c->handlers_timed, 1);
		atomic_add(c->handler_log, bucket_of(took));
	}
}
