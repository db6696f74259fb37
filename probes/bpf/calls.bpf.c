/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Programs at the entry and at the return of a watched function. */

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
	u32 slot = COOKIE_SLOT(cookie), tgid = this_process(), zero = 0;
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
