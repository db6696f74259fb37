/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* A call whose return address stands where that of an open call stood. Either it is a tail call: it returns to where
 * its caller would have returned, so it has its caller's path. Or the open call was abandoned, and is dropped. */

static inline __attribute__((always_inline)) void drop_top(struct thread *t, struct open_call *top, u64 at)
{
	mark_closed(t, top);
	t->depth = at;
	if (top->cookie != ABANDONED)
		count_dropped(top);
}

/* Return sites: the return address is as the program wrote it. False if two cases cannot be distinguished: a tail call
 * of a function to itself, and a new call from the same address after an exception. */
static inline __attribute__((always_inline)) bool tail_call_by_site(struct thread *t, struct open_call *top, u64 at,
								 u32 slot, u64 ret, u64 *path)
{
	if (top->cookie == ABANDONED) {
		t->depth = at;
	} else if (ret == top->ret && COOKIE_SLOT(top->cookie) != slot) {
		*path = top->path;
		return true;
	} else {
		drop_top(t, top, at);
	}
	return ret != top->ret || t->followed;
}

/* Replaced return addresses: a tail call finds the replaced address of its caller here. ``ret`` becomes the program's
 * address, or 0 where it is not known. */
static inline __attribute__((always_inline)) void tail_call_by_session(struct thread *t, struct open_call *top, u64 at,
								    struct walk *w, struct layout *l, u64 sp,
								    u64 *ret, u64 *path)
{
	u64 returns = newest_return(this_task()), was = top->ret ? top->ret : replaced_return(&returns, sp);

	if (!*ret && bpf_probe_read_user(ret, 8, (void *)sp))
		*ret = 0;
	if (!was) { /* the address of a tail call would still be replaced: the kernel has dropped this call */
		drop_top(t, top, at);
	} else if (*ret != was && w && l && is_replaced(w, l, *ret)) {
		*ret = was;
		*path = top->path;
	} else if (*ret != was && !w) {
		*ret = 0; /* undecided: a walk from below will stop here */
	} else {
		drop_top(t, top, at);
	}
}
