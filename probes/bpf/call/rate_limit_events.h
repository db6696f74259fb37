/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Events that wake user space at once. */

static inline __attribute__((always_inline)) void send_now(u32 type, u64 value)
{
	struct event e = { .type = type, .tgid = this_process(), .value = value };

	if (alarms.ringbuf_output(&e, sizeof(e), 2 /* BPF_RB_FORCE_WAKEUP */))
		count_unsent(UNSENT_ALARMS);
}

/* The slot passed its rate limit. Some hits send the event again, since the reader may have missed it: two of 256,
 * since entries and returns alternate and one of them may have odd numbers only. */
static inline __attribute__((always_inline)) void report_rate_limit(struct counters *c, struct slot *s, u64 cookie)
{
	if ((c->hits & 255) < 2 || c->hits == s->limit + 1)
		send_now(EVENT_RATE_LIMIT, cookie);
}
