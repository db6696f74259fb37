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

/* What a hit costs its thread is taken from the durations of the calls that are open on it. */
static inline __attribute__((always_inline)) void charge(u32 ns)
{
	struct thread *t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 0);

	if (t)
		t->cost += ns;
}

/* The bucket is empty. Few are told, not one: the reader may have missed it. Two of 256, since entries and returns
 * take turns: one kind may see odd numbers only. */
static inline __attribute__((always_inline)) void alarm(struct counters *c, struct slot *s, u64 cookie)
{
	if ((c->hits & 255) < 2 || c->hits == s->limit + 1)
		tell(EVENT_ALARM, cookie);
}

/* Count a hit; false if it must not be used: the bucket is empty or the process was not chosen. */
static inline __attribute__((always_inline)) bool admitted(struct counters *c, u64 cookie, u32 slot)
{
	struct slot *s = slots.lookup(&slot);
	u32 tgid;

	atomic_add(c->hits, 1);
	if (!s || s->generation != COOKIE_GENERATION(cookie))
		return false;
	if (c->hits > s->limit) {
		alarm(c, s, cookie);
		charge(s->entry_ns);
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

/* An open call that will never return to us, already counted as dropped. */
#define STRUCK_OUT 0xffffffffULL /* a generation that never is */

static inline __attribute__((always_inline)) void count_dropped(u64 cookie)
{
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);

	if (c)
		atomic_add(c->dropped, 1);
}

/* Drop open calls that lie below the stack pointer: left by longjmp, by an exception, by a lost return. */
static inline __attribute__((always_inline)) void drop_abandoned(struct thread *t, u64 sp)
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
		t->depth = at;
		if (t->open[at].cookie == STRUCK_OUT)
			continue;
		forget(t, &t->open[at]);
		count_dropped(t->open[at].cookie);
	}
}

/* A call of this slot is open on this thread: true if it is one of this very attachment, a recursion.
 * An older one was open when its link was taken off; it will never return to us and is struck out. So is one whose
 * place on the stack is taken: a return that went unseen, unless it is a tail call to itself (same return address). */
static inline __attribute__((always_inline)) bool is_recursion(struct thread *t, u64 cookie, u64 sp, u64 tail_ret,
						       bool by_site)
{
	struct open_call *o;
	u64 at;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_OPEN; i++) {
		at = i;
		if (at >= t->depth)
			break;
		o = &t->open[at];
		if (o->cookie == cookie && !(by_site && o->sp == sp && o->ret != tail_ret))
			return true;
		if (COOKIE_SLOT(o->cookie) == COOKIE_SLOT(cookie)) {
			o->cookie = STRUCK_OUT;
			count_dropped(cookie);
		}
	}
	return false;
}

/* Note that a probe of this slot was hit inside an open call of another. */
static inline __attribute__((always_inline)) void note_nesting(struct thread *t, u64 sp, u32 slot)
{
	u64 at = t->depth, word = slot >> 6, bit = 1ULL << (slot & 63);
	struct nest *n;
	u32 outer;

	if (!at)
		return;
	at--;
	barrier_var(at);
	at &= MAX_OPEN - 1;
	if (t->open[at].sp == sp) /* a tail call, not a nested one */
		return;
	outer = COOKIE_SLOT(t->open[at].cookie);
	n = nests.lookup(&outer);
	if (!n)
		return;
	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	if (!(n->inner[word] & bit))
		n->inner[word] |= bit; /* a bit lost to another CPU is noted at the next hit */
}

/* Tell whether a probe stands where this call will return to; a new place is told to user space once. */
static inline __attribute__((always_inline)) bool returns_to_probe(struct process *p, u64 cookie, u64 ret, u32 tgid)
{
	struct return_site key = { .address = ret, .layout = p->layout, .slot = (u32)cookie & 0xffff00ff };
	u64 *state = return_sites.lookup(&key), asked = RETURN_ASKED;
	struct event e = { .type = EVENT_RETURN, .tgid = tgid, .address = ret };

	/* the process may be gone before this is read, but others of its layout follow */
	e.value = (u32)cookie | (u64)p->layout << 32;

	/* where other functions are called from too, their returns look like this one's after an exception */
	if (state)
		return *state == RETURN_PROBED || (*state == RETURN_SHARED && p->followed);
	if (!events.ringbuf_output(&e, sizeof(e), 0))
		return_sites.update(&key, &asked);
	return false;
}

/* Entry: true if the return is wanted. */
static inline __attribute__((always_inline)) bool enter(struct pt_regs *ctx, u64 cookie, bool want_path, bool by_site)
{
	u32 slot = COOKIE_SLOT(cookie), tgid = 0, key, cost;
	struct counters *c = counters.lookup(&slot);
	struct process *p = 0;
	struct layout *l = 0;
	struct open_call *o, *top;
	struct thread *t;
	struct walk *w = 0;
	struct slot *s;
	u64 at, word, bit = 1ULL << (slot & 63), sp = ctx->sp, path = 0, ret = 0, began = 0;
	bool unsure;

	if (!c || !admitted(c, cookie, slot))
		return false;
	s = slots.lookup(&slot);
	if (!s)
		return false;
	cost = s->entry_ns;
	t = current_thread();
	if (!t) {
		atomic_add(c->lost, 1);
		return false;
	}
	t->cost += cost;
	drop_abandoned(t, sp);
	note_nesting(t, sp, slot);
	if (by_site) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		p = processes.lookup(&tgid);
		if (bpf_probe_read_user(&ret, 8, (void *)sp))
			ret = 0;
	}
	word = slot >> 6;
	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	if ((t->busy[word] & bit) && is_recursion(t, cookie, sp, p && p->followed ? ret : 0, by_site)) {
		atomic_add(c->inner, 1);
		return false;
	}
	atomic_add(c->calls, 1);
	if (!by_site && s->timed_of_4g && bpf_get_prandom_u32() >= s->timed_of_4g)
		return false;
	if (by_site && (!p || !ret || !returns_to_probe(p, cookie, ret, tgid))) {
		atomic_add(c->unlearnt, 1);
		return false;
	}
	if (want_path) {
		began = bpf_ktime_get_ns();
		key = SCRATCH_PROBE;
		w = walks.lookup(&key);
		if (!by_site) {
			tgid = bpf_get_current_pid_tgid() >> 32;
			p = processes.lookup(&tgid);
		}
		if (p) {
			key = p->layout;
			l = layouts.lookup(&key);
		}
	}
	if (!by_site && bpf_probe_read_user(&ret, 8, (void *)sp))
		ret = 0;
	at = t->depth;
	if (at) {
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		top = &t->open[at];
		if (top->sp == sp && by_site) {
			/* a tail call returns to where its caller would have; else that call was abandoned */
			unsure = ret == top->ret && !p->followed;
			if (top->cookie == STRUCK_OUT) {
				t->depth = at;
			} else if (ret == top->ret && COOKIE_SLOT(top->cookie) != slot) {
				path = top->path;
				unsure = false;
			} else {
				forget(t, top);
				t->depth = at;
				count_dropped(top->cookie);
			}
			/* a tail call to itself, or a new call after an exception: its length cannot be known */
			if (unsure) {
				atomic_add(c->unlearnt, 1);
				return false;
			}
		} else if (top->sp == sp) {
			/* A tail call leaves its caller's replaced return address here; else that call was abandoned. */
			if (ret != top->ret && w && l && is_replaced(w, l, ret)) {
				ret = top->ret;
				path = top->path;
			} else if (ret != top->ret && !want_path) {
				ret = 0; /* cannot tell: a walk from below says so */
			} else {
				forget(t, top);
				t->depth = at;
				count_dropped(top->cookie);
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
	note_running(o);
	o->start = bpf_ktime_get_ns(); /* last, so that our own work is not in the duration */
	if (want_path)
		t->cost += o->start - began;
	o->cost = t->cost;
	return true;
}

/* Take the duration of a call that has ended, less what other probes cost meanwhile; ``cost`` is the thread's. */
static inline __attribute__((always_inline)) void finish(struct open_call *o, u64 now, u64 cost, bool by_path)
{
	u64 duration = now - o->start, nested = cost - o->cost;
	u32 slot = COOKIE_SLOT(o->cookie), key;
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);
	struct path_bucket pb = {};
	u64 *cell, one = 1;

	if (o->cookie == STRUCK_OUT || !c)
		return;
	if (!s || s->generation != COOKIE_GENERATION(o->cookie)) {
		atomic_add(c->dropped, 1);
		return;
	}
	atomic_add(c->timed, 1);
	if (nested) {
		atomic_add(c->nested, 1);
		atomic_add(c->nested_ns, nested);
	}
	key = bucket_of(duration > nested ? duration - nested : 0);
	note_absence(o, c, duration, nested, key, by_path);
	keep_single(slot, c->timed, duration > nested ? duration - nested : 0);
	if (by_path) {
		pb.path = o->path;
		pb.cookie = o->cookie;
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

/* Return over a link that replaced the return address. */
static inline __attribute__((always_inline)) void leave(struct pt_regs *ctx, u64 cookie, bool want_path)
{
	u64 now = bpf_ktime_get_ns(), sp = ctx->sp - 8, at, cost;
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
	t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 0);
	if (!t)
		return;
	cost = t->cost;
	t->cost += s->return_ns;
	drop_abandoned(t, sp);
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
	finish(o, now, cost, want_path);
}

/* A return site was passed: what was called from here has ended, with all that it tail-called. */
static inline __attribute__((always_inline)) void leave_site(struct pt_regs *ctx, u64 cookie)
{
	u64 now = bpf_ktime_get_ns(), sp = ctx->sp - 8, at, cost;
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
	/* the place may be passed far more often than the function is called */
	if (c->hits > s->limit && s->generation == COOKIE_GENERATION(cookie))
		alarm(c, s, cookie);
	t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 0);
	if (!t)
		return;
	cost = t->cost;
	t->cost += s->return_ns;
	drop_abandoned(t, sp);
#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_TAIL_CALLS; i++) {
		at = t->depth;
		if (!at)
			break;
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		o = &t->open[at];
		if (o->sp != sp)
			break;
		t->depth = at;
		forget(t, o);
		finish(o, now, cost, o->cookie & COOKIE_PATH);
	}
}

/* An exception has found its handler, or longjmp its target: this is the jump there, the stack pointer is set.
 * The frames below are gone; without this, what their callers call next might return in their name. */
int call_landing(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);
	struct thread *t;

	if (!c || !s)
		return 0;
	atomic_add(c->hits, 1);
	if (c->hits > s->limit && s->generation == COOKIE_GENERATION(cookie))
		alarm(c, s, cookie);
	t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 0);
	if (!t)
		return 0;
	t->cost += s->entry_ns;
	drop_abandoned(t, ctx->sp);
	return 0;
}

int call_count(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 slot = COOKIE_SLOT(cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s;

	if (!c || !admitted(c, cookie, slot))
		return 0;
	atomic_add(c->calls, 1);
	s = slots.lookup(&slot);
	if (s)
		charge(s->entry_ns);
	return 0;
}

int call_time_entry(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), false, false);
	return 0;
}

int call_time_return(struct pt_regs *ctx)
{
	leave(ctx, bpf_get_attach_cookie(ctx), false);
	return 0;
}

int call_path_entry(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), true, false);
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
		return !enter(ctx, cookie, false, false);
	leave(ctx, cookie, false);
	return 0;
}

int call_path_session(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (ctx->ip == bpf_get_func_ip(ctx))
		return !enter(ctx, cookie, true, false);
	leave(ctx, cookie, true);
	return 0;
}

/* Return sites: the stack is left as it is, so exceptions, panics and debuggers find what they expect. */
int call_time_site(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), false, true);
	return 0;
}

int call_path_site(struct pt_regs *ctx)
{
	enter(ctx, bpf_get_attach_cookie(ctx), true, true);
	return 0;
}

int call_site_return(struct pt_regs *ctx)
{
	leave_site(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}
