/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Programs at the entry and at the return of a watched function. */

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
	t->busy[word] |= bit;
	t->depth = at + 1;
	note_running(o, task);
	o->start = bpf_ktime_get_ns(); /* last, so that this handler is not in the duration */
	if (began)
		t->cost += o->start - began;
	o->cost = t->cost;
	return true;
}

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
	/* the site may be passed far more often than the function is called */
	if (c->hits > s->limit && s->generation == COOKIE_GENERATION(cookie))
		report_rate_limit(c, s, cookie);
	t = find_thread(task);
	if (!t)
		return;
	cost = t->cost;
	t->cost += s->return_ns;
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

/* The jump of an exception to its handler, or of longjmp to its target; the stack pointer is set already. The frames
 * below are gone. Without this, the next calls of their callers might be taken for their returns. */
int call_landing(struct pt_regs *ctx)
{
	void *task = task_hitting();
	u64 cookie = cookie_of(ctx, run_of(task));
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);
	struct thread *t;

	if (!c || !s)
		return 0;
	atomic_add(c->hits, 1);
	if (c->hits > s->limit && s->generation == COOKIE_GENERATION(cookie))
		report_rate_limit(c, s, cookie);
	t = find_thread(task);
	if (!t)
		return 0;
	t->cost += s->entry_ns;
	drop_abandoned(t, STACK_POINTER(ctx));
	return 0;
}

/* A thread is about to change its stack (setcontext, swapcontext). From now on frames may be left and resumed in any
 * order, so the process is no longer ``followed``, and the open calls of this thread count as abandoned. */
int call_context(struct pt_regs *ctx)
{
	void *task = task_hitting();
	u64 cookie = cookie_of(ctx, run_of(task));
	u32 slot = COOKIE_SLOT(cookie), tgid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct counters *c = counters.lookup(&slot);
	struct process *p = processes.lookup(&tgid);
	struct epochs *all = epochs.lookup(&zero);
	struct thread *t = find_thread(task);

	if (!c || !all)
		return 0;
	atomic_add(c->hits, 1);
	if (p && p->followed) {
		p->followed = 0;
		atomic_add(all->by_kernel, 1);
	}
	send_now(EVENT_RATE_LIMIT, cookie); /* at each hit: the first may come before user space sets ``followed`` */
	if (t)
		drop_abandoned(t, ~0ULL);
	return 0;
}

static inline __attribute__((always_inline)) void count(void *task, u64 cookie)
{
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);
	struct thread *t = find_thread(task);
	u64 current = epoch();

	if (!c || !s || !admitted(c, s, t, cookie))
		return;
	if (!is_current(t, current)) {
		t = lookup_process(c, task, cookie, current);
		if (!t)
			return;
	}
	atomic_add(c->calls, 1);
	t->cost += s->entry_ns;
}

int call_count(struct pt_regs *ctx)
{
	void *task = task_hitting();

	count(task, cookie_of(ctx, run_of(task)));
	return 0;
}

/* Over perf events. */
int call_count_perf(struct pt_regs *ctx)
{
	count(this_task(), bpf_get_attach_cookie(ctx));
	return 0;
}

/* Two links for one function, of either kind. */
int call_time_entry(struct pt_regs *ctx)
{
	enter(ctx, this_task(), bpf_get_attach_cookie(ctx), false, false);
	return 0;
}

int call_time_return(struct pt_regs *ctx)
{
	leave(ctx, this_task(), bpf_get_attach_cookie(ctx), false);
	return 0;
}

int call_path_entry(struct pt_regs *ctx)
{
	enter(ctx, this_task(), bpf_get_attach_cookie(ctx), true, false);
	return 0;
}

int call_path_return(struct pt_regs *ctx)
{
	leave(ctx, this_task(), bpf_get_attach_cookie(ctx), true);
	return 0;
}

/* Sessions: one program for both ends. */
static inline __attribute__((always_inline)) int session(struct pt_regs *ctx, bool want_path)
{
	void *task = task_hitting();
	u64 run = run_of(task), cookie = cookie_of(ctx, run);

	if (!is_return(ctx, run))
		return !enter(ctx, task, cookie, want_path, false);
	leave(ctx, task, cookie, want_path);
	return 0;
}

int call_time_session(struct pt_regs *ctx)
{
	return session(ctx, false);
}

int call_path_session(struct pt_regs *ctx)
{
	return session(ctx, true);
}

/* Return sites: the stack is left as it is, so exceptions, panics and debuggers find what they expect. */
int call_time_site(struct pt_regs *ctx)
{
	void *task = task_hitting();

	enter(ctx, task, cookie_of(ctx, run_of(task)), false, true);
	return 0;
}

int call_path_site(struct pt_regs *ctx)
{
	void *task = task_hitting();

	enter(ctx, task, cookie_of(ctx, run_of(task)), true, true);
	return 0;
}

int call_site_return(struct pt_regs *ctx)
{
	void *task = task_hitting();

	leave_site(ctx, task, cookie_of(ctx, run_of(task)));
	return 0;
}
