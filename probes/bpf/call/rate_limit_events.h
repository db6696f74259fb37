/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Telling user space at once. */

static inline __attribute__((always_inline)) void tell(u32 type, u64 value)
{
	struct event e = { .type = type, .tgid = bpf_get_current_pid_tgid() >> 32, .value = value };

	alarms.ringbuf_output(&e, sizeof(e), 2 /* BPF_RB_FORCE_WAKEUP */);
}

/* The bucket is empty. Few are told, not one: the reader may have missed it. Two of 256, since entries and returns
 * take turns: one kind may see odd numbers only. */
static inline __attribute__((always_inline)) void alarm(struct counters *c, struct slot *s, u64 cookie)
{
	if ((c->hits & 255) < 2 || c->hits == s->limit + 1)
		tell(EVENT_ALARM, cookie);
}
