/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What runs at the entry and at the return of a watched function. */

static inline __attribute__((always_inline)) struct thread *current_thread(void)
{
	return threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 1 /* create */);
}

static inline __attribute__((always_inline)) void tell(u32 type, u64 value)
{
	struct event e = { .type = type, .tgid = bpf_get_current_pid_tgid() >> 32, .value = value };

	alarms.ringbuf_output(&e, sizeof(e), 2 /* BPF_RB_FORCE_WAKEUP */);
}

/* Count a hit; false if it must not be used: the bucket is empty or the process was not chosen. */
static inline __attribute__((always_inline)) bool admitted(struct counters *c, u64 cookie, u32 slot)
{
	struct slot *s = slots.lookup(&slot);
	u32 tgid;

	atomic_add(c->hits, 1);
	if (s && c->hits > s->limit) {
		/* few, not one: the reader may have missed it */
		if (!(c->hits & 255) || c->hits == s->limit + 1) {
			atomic_add(c->alarms, 1);
			tell(EVENT_ALARM, cookie);
		}
		return false;
	}
	if (cookie & COOKIE_SHARED) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		if (!processes.lookup(&tgid)) {
			if (!(c->strangers & 255))
				tell(EVENT_STRANGER, cookie);
			atomic_add(c->strangers, 1);
			return false;
		}
	}
	return true;
}

static inline __attribute__((always_inline)) void forget(struct thread *t, struct open_call *o)
{
	u64 word = COOKIE_SLOT(o->cookie) >> 6;

	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	t->busy[word] &= ~(1ULL << (COOKIE_SLOT(o->cookie) & 63));
}

/* Drop open calls that lie below the stack pointer: left by longjmp, by an exception, by a lost return. */
static inline __attribute__((always_inline)) void drop_abandoned(struct thread *t, u64 sp, struct counters *c)
{
	u64 at;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_OPEN; i++) {
		at = t->depth;
		if (!at)
			break;
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		if (t->open[at].sp >= sp)
			break;
		forget(t, &t->open[at]);
		t->depth = at;
		atomic_add(c->dropped, 1);
	}
}

/* A call of this slot is open on this thread: true if it is one of this very attachment, a recursion.
 * An older one was open when its link was taken off; it will never return to us and is struck out. */
static inline __attribute__((always_inline)) bool is_recursion(struct thread *t, u64 cookie)
{
	u64 at;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_OPEN; i++) {
		at = i;
		if (at >= t->depth)
			break;
		if (t->open[at].cookie == cookie)
			return true;
		if (COOKIE_SLOT(t->open[at].cookie) == COOKIE_SLOT(cookie))
			t->open[at].cookie = MAX_SLOTS - 1;
	}
	return false;
}

/* Entry: true if the return is wanted. */
static inline __attribute__((always_inline)) bool enter(struct pt_regs *ctx, u64 cookie, bool want_path)
{
	u32 slot = COOKIE_SLOT(cookie), tgid = 0, key;
	struct counters *c = counters.lookup(&slot);
	struct process *p = 0;
	struct layout *l = 0;
	struct open_call *o, *top;
	struct thread *t;
	struct walk *w = 0;
	u64 at, word, bit = 1ULL << (slot & 63), sp = ctx->sp, path = 0, ret = 0;

	if (!c || !admitted(c, cookie, slot))
		return false;
	t = current_thread();
	if (!t) {
		atomic_add(c->lost, 1);
		return false;
	}
	drop_abandoned(t, sp, c);
	word = slot >> 6;
	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	if ((t->busy[word] & bit) && is_recursion(t, cookie)) {
		atomic_add(c->inner, 1);
		return false;
	}
	atomic_add(c->calls, 1);
	if (want_path) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		key = SCRATCH_PROBE;
		p = processes.lookup(&tgid);
		w = walks.lookup(&key);
		if (p) {
			key = p->layout;
			l = layouts.lookup(&key);
		}
	}
	if (bpf_probe_read_user(&ret, 8, (void *)sp))
		ret = 0;
	at = t->depth;
	if (at) {
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		top = &t->open[at];
		if (top->sp == sp) {
			/* A tail call leaves its caller's replaced return address here; else that call was abandoned. */
			if (ret != top->ret && w && l && is_replaced(w, l, ret)) {
				ret = top->ret;
				path = top->path;
			} else if (ret != top->ret && !want_path) {
				ret = 0; /* cannot tell: a walk from below says so */
			} else {
				forget(t, top);
				t->depth = at;
				atomic_add(c->dropped, 1);
			}
		}
	}
	at = t->depth;
	if (at >= MAX_OPEN) {
		atomic_add(c->lost, 1);
		return false;
	}
	if (p && w && !path && ret) {
		w->ip = ret;
		w->sp = sp + 8;
		w->bp = ctx->bp;
		w->exact = 0;
		w->open = at;
		path = take_path(w, t, p, tgid);
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
	o->start = bpf_ktime_get_ns(); /* last, so that our own work is not in the duration */
	return true;
}

/* Return: take the duration. */
static inline __attribute__((always_inline)) void leave(struct pt_regs *ctx, u64 cookie, bool want_path)
{
	u64 now = bpf_ktime_get_ns(), sp = ctx->sp - 8, at, duration, *cell, one = 1;
	u32 slot = COOKIE_SLOT(cookie), key;
	struct path_bucket pb = {};
	struct open_call *o;
	struct counters *c;
	struct thread *t;

	c = counters.lookup(&slot);
	if (!c)
		return;
	atomic_add(c->hits, 1);
	t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 0);
	if (!t)
		return;
	drop_abandoned(t, sp, c);
	at = t->depth;
	if (!at)
		return;
	at--;
	barrier_var(at);
	at &= MAX_OPEN - 1;
	o = &t->open[at];
	if (o->sp != sp || o->cookie != cookie)
		return;
	t->depth = at;
	forget(t, o);
	duration = now - o->start;
	atomic_add(c->timed, 1);
	key = bucket_of(duration);
	if (want_path) {
		pb.path = o->path;
		pb.cookie = cookie;
		pb.bucket = key;
		cell = path_histogram.lookup(&pb);
		if (cell)
			atomic_add(*cell, 1);
		else if (path_histogram.update(&pb, &one))
			atomic_add(c->lost, 1);
		return;
	}
	key += slot * BUCKETS;
	cell = histogram.lookup(&key);
	if (cell)
		atomic_add(*cell, 1);
}

int call_count(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);

	if (c && admitted(c, cookie, slot))
		atomic_add(c->calls, 1);
	return 0;
}

int call_time_entry(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), false);
	return 0;
}

int call_time_return(struct pt_regs *ctx)
{
	leave(ctx, bpf_get_attach_cookie(ctx), false);
	return 0;
}

int call_path_entry(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), true);
	return 0;
}

int call_path_return(struct pt_regs *ctx)
{
	leave(ctx, bpf_get_attach_cookie(ctx), true);
	return 0;
}

/* Sessions: one program for both ends. At the entry the instruction pointer is the probe's own address. */
int call_time_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (ctx->ip == bpf_get_func_ip(ctx))
		return !enter(ctx, cookie, false);
	leave(ctx, cookie, false);
	return 0;
}

int call_path_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (ctx->ip == bpf_get_func_ip(ctx))
		return !enter(ctx, cookie, true);
	leave(ctx, cookie, true);
	return 0;
}
