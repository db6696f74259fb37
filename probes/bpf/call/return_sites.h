/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Addresses to which calls return, of functions that are timed without a change of the stack. */

/* The return address of a call, 0 if it cannot be read.
 *
 * Reading it as a string takes the kernel one load, 30 ns less than a copy of 8 bytes. The string is complete if none
 * of the lower six bytes is 0; the upper two are 0 in all addresses of programs. This holds for 98 of 100 addresses of
 * position-independent programs and libraries. */
static inline __attribute__((always_inline)) u64 return_address(struct thread *t, u64 sp)
{
	u64 ret = 0;

	if (!t->low_code && bpf_probe_read_user_str(&ret, 8, (void *)sp) == 7)
		return ret;
	if (bpf_probe_read_user(&ret, 8, (void *)sp))
		return 0;
	t->low_code = !(ret >> 40);
	return ret;
}

/* Look up whether this return address has a probe; user space gets an event for a new one. */
static inline __attribute__((always_inline)) bool is_probed(struct thread *t, u64 cookie, u64 ret)
{
	struct return_site key = { .address = ret, .layout = t->layout, .slot = (u32)cookie & 0xffff00ff };
	u64 *state = return_sites.lookup(&key), reported = RETURN_REPORTED;
	struct event e = { .type = EVENT_RETURN, .address = ret };

	/* after an exception, the return of another function called from there would look like this one's */
	if (state)
		return *state == RETURN_PROBED || (*state == RETURN_SHARED && t->followed);
	/* the process may have ended before this is read, but the layout may serve others */
	e.tgid = this_process();
	e.value = (u32)cookie | (u64)t->layout << 32;
	if (!events.ringbuf_output(&e, sizeof(e), 2 /* BPF_RB_FORCE_WAKEUP */))
		return_sites.update(&key, &reported);
	else
		count_unsent(UNSENT_EVENTS);
	return false;
}

/* The same, with a cache of the latest return addresses of this thread. */
static inline __attribute__((always_inline)) bool returns_to_probe(struct thread *t, u64 cookie, u64 ret, u64 current)
{
	u64 at = ret ^ cookie;
	struct cached_return *k;

	barrier_var(at);
	at &= CACHED_RETURNS - 1;
	k = &t->returns[at];
	if (k->address == ret && k->cookie == cookie && k->epoch == current)
		return true;
	if (t->epoch != current || !is_probed(t, cookie, ret))
		return false;
	k->address = ret;
	k->cookie = cookie;
	k->epoch = current;
	return true;
}
