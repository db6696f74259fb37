/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Where the calls of functions that are timed without touching the stack return to. */

/* The address that a call will return to, 0 if it cannot be read.
 *
 * Read as a string it takes the kernel one load, and 30 ns less than the copy of 8 bytes. That is all of it if no byte
 * is 0 before the upper two, which are 0 in all addresses of programs: so it is where code lies as high as that of
 * position-independent programs and of libraries, but for two places in a hundred. */
static inline __attribute__((always_inline)) u64 return_address(struct thread *t, u64 sp)
{
	u64 ret = 0;

	if (!t->low && bpf_probe_read_user_str(&ret, 8, (void *)sp) == 7)
		return ret;
	if (bpf_probe_read_user(&ret, 8, (void *)sp))
		return 0;
	t->low = !(ret >> 40);
	return ret;
}

/* Ask the map whether a probe stands where this call will return to; a new place is told to user space once. */
static inline __attribute__((always_inline)) bool is_probed(struct thread *t, u64 cookie, u64 ret)
{
	struct return_site key = { .address = ret, .layout = t->layout, .slot = (u32)cookie & 0xffff00ff };
	u64 *state = return_sites.lookup(&key), asked = RETURN_ASKED;
	struct event e = { .type = EVENT_RETURN, .address = ret };

	/* where other functions are called from too, their returns look like this one's after an exception */
	if (state)
		return *state == RETURN_PROBED || (*state == RETURN_SHARED && t->followed);
	/* the process may be gone before this is read, but others of its layout follow */
	e.tgid = bpf_get_current_pid_tgid() >> 32;
	e.value = (u32)cookie | (u64)t->layout << 32;
	if (!events.ringbuf_output(&e, sizeof(e), 0))
		return_sites.update(&key, &asked);
	return false;
}

/* The same, of the places that this thread's calls returned to lately by heart. */
static inline __attribute__((always_inline)) bool returns_to_probe(struct thread *t, u64 cookie, u64 ret, u64 now)
{
	u64 at = ret ^ cookie;
	struct known_return *k;

	barrier_var(at);
	at &= KNOWN_RETURNS - 1;
	k = &t->returns[at];
	if (k->address == ret && k->cookie == cookie && k->known == now)
		return true;
	if (t->known != now || !is_probed(t, cookie, ret))
		return false;
	k->address = ret;
	k->cookie = cookie;
	k->known = now;
	return true;
}
