/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The return from a watched function. */

/* Return over a link that replaced the return address. */
static inline __attribute__((always_inline)) void leave(struct pt_regs *ctx, void *task, u64 cookie, bool want_path)
{
	u64 now = bpf_ktime_get_ns(), sp = STACK_POINTER(ctx) - PUSHED, at, cost;
	u32 slot = COOKIE_SLOT(cookie);
	struct open_call *o;
	struct counters *c;
	struct thread *t;
	struct slot *s;

	c = counters.lookup(&slot);
	s = slots.lookup(&slot);
	if (!c || !s)
		return;
	atomic_add(c->hits, 1);
	t = find_thread(task);
	if (!t)
		return;
	cost = t->cost;
	t->cost += s->return_ns;
	drop_abandoned(t, sp);
	o = innermost(t, &at);
	if (!o || o->sp != sp || o->cookie != cookie)
		return;
	t->depth = at;
	mark_closed(t, o);
	finish(o, c, s, t, task, now, cost, want_path);
	note_handler_time(c, now);
}

/* A return site was passed: the call from here has ended, with all its tail calls. */
static inline __attribute__((always_inline)) void leave_site(struct pt_regs *ctx, void *task, u64 cookie)
{
	u64 now = bpf_ktime_get_ns(), sp = STACK_POINTER(ctx) - PUSHED, at, cost;
	u32 slot = COOKIE_SLOT(cookie), i;
	struct open_call *o;
	struct counters *c;
	struct thread *t;
	struct slot *s;

	c = counters.lookup(&slot);
	s = slots.lookup(&slot);
	if (!c || !s)
		return;
	atomic_add(c->hits, 1);
	if (cookie & COOKIE_STEPPED)
		atomic_add(c->stepped, 1);
	/* the site may be passed far more often than the function is called */
	if (c->hits > s->limit && s->generation == COOKIE_GENERATION(cookie))
		report_rate_limit(c, s, cookie);
	t = find_thread(task);
	if (!t)
		return;
	cost = t->cost;
	t->cost += s->return_ns;
	if (cookie & COOKIE_STEPPED)
		t->cost += s->step_ns;
	drop_abandoned(t, sp);
#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_TAIL_CALLS; i++) {
		o = innermost(t, &at);
		if (!o || o->sp != sp)
			break;
		t->depth = at;
		mark_closed(t, o);
		finish_any(o, t, task, now, cost);
	}
	if (i)
		note_handler_time(c, now);
}
