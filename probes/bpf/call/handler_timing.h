/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The time that handlers take. It is longer in cold caches, and so are all other costs of a probe
 * (probes/calibration/cold_cache.py). */

#ifndef HANDLER_LIMIT_NS /* longer on an emulated CPU, see probes/kernel/loader.py */
#define HANDLER_LIMIT_NS 1024 /* twice the longest in cold caches: beyond it an interrupt came */
#endif

/* Time one return in 32 since its begin. The clock chooses it: its low bits alone repeat with the period of a loop, or
 * with the step of the clock, so all of them are mixed (a multiplicative hash, Knuth 6.4). */
#define CHOSEN_OF_32(ns) ((u32)(ns) * 2654435769U >> 27 == 0)

static inline __attribute__((always_inline)) void note_handler_time(struct counters *c, u64 began)
{
	u64 took;

	if (!CHOSEN_OF_32(began))
		return;
	took = bpf_ktime_get_ns() - began;
	if (took < HANDLER_LIMIT_NS) {
		atomic_add(c->handler_ns, took);
		atomic_add(c->handlers_timed, 1);
		atomic_add(c->handler_log, bucket_of(took));
	}
}
