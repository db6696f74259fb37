/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* A call whose return address stands where that of an open call stood: a tail call, or the open one was abandoned.
 *
 * A tail call returns to where its caller would have, so its path is its caller's. An abandoned call is dropped. */

static inline __attribute__((always_inline)) void drop_top(struct thread *t, struct open_call *top, u64 at)
{
	forget(t, top);
	t->depth = at;
	count_dropped(top->cookie);
}

/* Return sites: the return address is as the program wrote it. False if it cannot be told what happened: a tail call
 * of a function to itself, or a new call after an exception, from the same place. */
static inline __attribute__((always_inline)) bool settle_by_site(struct thread *t, struct open_call *top, u64 at,
								 u32 slot, u64 ret, u64 *path)
{
	if (top->cookie == STRUCK_OUT) {
		t->depth = at;
	} else if (ret == top->ret && COOKIE_SLOT(top->cookie) != slot) {
		*path = top->path;
		return true;
	} else {
		drop_top(t, top, at);
	}
	return ret != top->ret || t->followed;
}

/* Replaced return addresses: a tail call finds its caller's replaced one here. ``ret`` becomes the program's own,
 * 0 where it is not known. */
static inline __attribute__((always_inline)) void settle_by_session(struct thread *t, struct open_call *top, u64 at,
								    struct walk *w, struct layout *l, u64 sp,
								    u64 *ret, u64 *path)
{
	u64 returns = newest_return(), was = top->ret ? top->ret : replaced_return(&returns, sp);

	if (!*ret && bpf_probe_read_user(ret, 8, (void *)sp))
		*ret = 0;
	if (!was) { /* a tail call's is still replaced: the kernel has given this one up, and so must we */
		drop_top(t, top, at);
	} else if (*ret != was && w && l && is_replaced(w, l, *ret)) {
		*ret = was;
		*path = top->path;
	} else if (*ret != was && !w) {
		*ret = 0; /* cannot tell: a walk from below says so */
	} else {
		drop_top(t, top, at);
	}
}
