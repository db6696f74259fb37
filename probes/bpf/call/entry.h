/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The entry of a watched function. */

/* Count a hit; false if it must not be used: its link belongs to another use of the slot, or there were too many. */
static inline __attribute__((always_inline)) bool admitted(struct counters *c, struct slot *s, struct thread *t, u64 cookie)
{
	atomic_add(c->hits, 1);
	if (s->generation != COOKIE_GENERATION(cookie))
		return false;
	if (c->hits > s->limit) {
		report_rate_limit(c, s, cookie);
		if (t) /* the cost of a hit is subtracted from the durations of the open calls of its thread */
			t->cost += s->entry_ns;
		return false;
	}
	return true;
}

/* Entry: true if the return is wanted. */
static inline __attribute__((always_inline)) bool enter(struct pt_regs *ctx, void *task, u64 cookie, bool want_path, bool by_site)
{
	u32 slot = COOKIE_SLOT(cookie), key;
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);
	struct layout *l = 0;
	struct open_call *o, *top;
	struct thread *t = find_thread(task);
	struct walk *w = 0;
	u64 current = epoch(), at, word, bit = 1ULL << (slot & 63), sp = STACK_POINTER(ctx), path = 0, ret = 0, began = 0, tid;

	if (!c || !s || !admitted(c, s, t, cookie))
		return false;
	if (!is_current(t, current)) {
		t = lookup_process(c, task, cookie, current);
		if (!t)
			return false;
	}
	t->cost += s->entry_ns;
	drop_abandoned(t, sp);
	note_nesting(t, sp, slot);
	if (by_site)
		ret = return_address(t, sp);
	word = slot >> 6;
	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	if ((t->busy[word] & bit) && is_recursion(t, cookie, sp, t->followed ? ret : 0, by_site)) {
		atomic_add(c->inner, 1);
		return false;
	}
	atomic_add(c->calls, 1);
	if (!by_site && s->timed_of_4g && random_of(t) >= s->timed_of_4g) /* at random: a rhythm of the program could match every nth call */
		return false;
	if (by_site && (!ret || !returns_to_probe(t, cookie, ret, current))) {
		atomic_add(c->unlearnt, 1);
		return false;
	}
	at = t->depth;
	if (want_path) {
		if (at) /* a walk takes longer than any other work of a hit, and its time varies */
			began = bpf_ktime_get_ns();
		key = SCRATCH_PROBE;
		w = walks.lookup(&key);
		key = t->layout;
		l = layouts.lookup(&key);
	}
#ifndef KERNEL_FIELDS
	if (!by_site && bpf_probe_read_user(&ret, 8, (void *)sp))
		ret = 0;
#endif
	if (at) {
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		top = &t->open[at];
		if (top->sp == sp && by_site && !tail_call_by_site(t, top, at, slot, ret, &path)) {
			atomic_add(c->unlearnt, 1); /* its length cannot be known */
			return false;
		}
		if (top->sp == sp && !by_site)
			tail_call_by_session(t, top, at, w, l, sp, &ret, &path);
	}
	at = t->depth;
	if (at >= MAX_OPEN) {
		atomic_add(c->lost, 1);
		return false;
	}
	if (t->epoch == current && w && !path && (tid = claim(w))) {
		w->ip = ret;
		w->sp = sp;
		w->fp = FRAME_POINTER(ctx);
		w->exact = 0;
		w->entry = 1;
		w->open = at;
		path = take_path(w, t, t->layout, tid);
	}
	at = t->depth;
	barrier_var(at);
	if (at >= MAX_OPEN)
		return false;
	o = &t->open[at];
	o->sp = sp;
	o->path = path;
	o->ret = ret;
	o->cookie = cookie;
	count_open(o, c, s);
	begin_inside(o, s);
	t->busy[word] |= bit;
	t->depth = at + 1;
	note_running(o, task);
	o->start = bpf_ktime_get_ns(); /* last, so that this handler is not in the duration */
	if (began)
		t->cost += o->start - began;
	o->cost = t->cost;
	return true;
}
