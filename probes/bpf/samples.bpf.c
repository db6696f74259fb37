/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Wall-clock time by call path: samples of the CPU clock, and waits from the scheduler's switch tracepoint. */

static inline __attribute__((always_inline)) u64 user_path(struct walk *w, u32 layout, bool in_kernel)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	struct thread *t = find_thread(this_task());
	u64 ip = 0, sp = 0, fp = 0, tid;

	if (is_probing(regs, in_kernel)) { /* the cost of probes is not the program's time */
		count_outcome(WALK_PROBE);
		return 0;
	}
	tid = claim(w);
	if (!tid)
		return 0;
	bpf_probe_read_kernel(&ip, 8, &INSTRUCTION_POINTER(regs));
	bpf_probe_read_kernel(&sp, 8, &STACK_POINTER(regs));
	bpf_probe_read_kernel(&fp, 8, &FRAME_POINTER(regs));
	w->ip = ip;
	w->sp = sp;
	w->fp = fp;
	w->exact = 1;
	w->entry = 0;
	w->open = t ? t->depth : 0;
	return take_path(w, 0, layout, tid);
}

static inline __attribute__((always_inline)) void add_sample(u64 path, u32 program, u32 waiting, u64 count, u64 ns)
{
	struct sample key = { .path = path, .program = program, .waiting = waiting };
	struct sample_value *v = samples.lookup(&key), fresh = { .count = count, .ns = ns };

	if (v) {
		atomic_add(v->count, count);
		atomic_add(v->ns, ns);
	} else {
		samples.update(&key, &fresh);
	}
}

int on_cpu(struct bpf_perf_event_data *ctx)
{
	u32 tgid = this_process(), key = SCRATCH_SAMPLE, zero = 0;
	struct process *p = processes.lookup(&tgid);
	struct settings *s = settings.lookup(&zero);
	struct walk *w;

	if (!p || !s)
		return 0;
	w = walks.lookup(&key);
	if (w)
		add_sample(user_path(w, p->layout, IN_KERNEL(&ctx->regs)), p->program, 0, 1, s->period_ns);
	return 0;
}

#define TASK_DEAD 0x80

/* The next thread may have ended a wait that is timed. Few have; a mark excludes most of the others. */
static inline __attribute__((always_inline)) void end_wait(u64 next, u32 tid, u64 now)
{
	u32 at = tid & (WAIT_MARKS - 1);
	u64 *mark = wait_marks.lookup(&at);
	struct wait *ended;

	if (!mark || !*mark)
		return;
	ended = waits.lookup(&tid);
	if (!ended)
		return;
	if (!now)
		now = bpf_ktime_get_ns();
	if (ended->weight)
		add_sample(ended->path, ended->program, 1, ended->weight, (now - ended->start) * ended->weight);
	if (ended->begun)
		add_call_wait(ended, next, now);
	waits.delete(&tid);
	atomic_add(*mark, -1);
}

static inline __attribute__((always_inline)) bool is_watched(u32 tgid)
{
	return processes.lookup(&tgid);
}

/* When the followed call began in which the current thread blocks; 0: none, or this wait is not one of those drawn. */
static inline __attribute__((always_inline)) u64 followed_wait(struct settings *s)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	u64 sp = 0, begun;

	if (!s->followed || (s64)s->left <= 0)
		return 0;
	bpf_probe_read_kernel(&sp, 8, &STACK_POINTER(regs));
	begun = followed_since(s->followed, sp);
	if (!begun || (u64)bpf_get_prandom_u32() * s->follow_every >> 32)
		return 0;
	atomic_add(s->left, -1);
	return begun;
}

/* Whether the current thread, which leaves its CPU, waits, and somebody wants to know. */
static inline __attribute__((always_inline)) bool is_waiting(u64 thread)
{
	u32 tgid = this_process(), state = 0;

	if (!is_watched(tgid))
		return false;
	bpf_probe_read_kernel(&state, 4, (void *)thread + TASK_STATE);
	return state && !(state & TASK_DEAD); /* else preempted, or gone for good */
}

#ifdef MAY_GOTO /* an older verifier would have to look at the stack walk three times as long, close to its limit */
#define WAKEUPS
#endif

/* The id of a thread that is being woken, if its wait is one of those followed; else 0. */
static inline __attribute__((always_inline)) u32 followed_thread(u64 thread)
{
	struct wait *open;
	u32 tid = 0, at;
	u64 *mark;

	bpf_probe_read_kernel(&tid, 4, (void *)thread + TASK_PID);
	at = tid & (WAIT_MARKS - 1);
	mark = wait_marks.lookup(&at);
	if (!mark || !*mark)
		return 0;
	open = waits.lookup(&tid);
	return open && open->begun && !open->waker ? tid : 0;
}

/* Note that the current thread waits, or wakes another; both by its stack. */
static inline __attribute__((always_inline)) void note_wait(u64 thread, u32 woken, u64 begun, u32 every, struct settings *s)
{
	u64 *mark, first = 0, path = 0;
	u32 tgid = this_process(), tid = bpf_get_current_pid_tgid(), key = SCRATCH_SWITCH, at = tid & (WAIT_MARKS - 1), call, program = 0;
	struct process *p = processes.lookup(&tgid);
	struct wait fresh = {}, *open;
	struct pt_regs *regs;
	struct walk *w;

	w = walks.lookup(&key);
	mark = wait_marks.lookup(&at);
	if (!w || !mark)
		return;
#ifndef WAKEUPS
	if (!p)
		return;
#endif
	fresh.start = bpf_ktime_get_ns();
	if (p) {
		program = p->program;
		path = user_path(w, p->layout, false); /* a probe neither waits nor wakes */
	}
	regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	call = system_call(regs);
	if (woken) {
		open = waits.lookup(&woken);
		if (open) {
			open->waker = p ? WAKER_WATCHED : WAKER_FOREIGN;
			open->waker_call = call;
			open->waker_path = path;
		}
		return;
	}
	fresh.program = program;
	fresh.weight = every;
	fresh.begun = begun;
	fresh.path = path;
	if (begun) {
		bpf_probe_read_kernel(&first, 8, &FIRST_ARGUMENT(regs));
		fresh.cookie = s->followed;
		fresh.call_weight = s->follow_every;
		fresh.call = call;
		fresh.object = object_of(thread, first);
	}
	if (!waits.insert(&tid, &fresh))
		atomic_add(*mark, 1);
	else /* the end of the wait before was missed */
		waits.update(&tid, &fresh);
}

/* One program for two tracepoints, since the kernel takes long to verify a stack walk.
 *
 * sched_switch(preempted, previous, next): the current thread is still the one that leaves the CPU; the next one is only
 * an address. This runs at every switch of the host, so whether the wait is timed is drawn before anything is looked up.
 *
 * sched_waking(thread), only with WAKEUPS: the current thread wakes that one, or an interrupt does that came while it
 * ran. */
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	u32 random = bpf_get_prandom_u32(), tid = 0, zero = 0, woken = 0;
	u64 first = ctx->args[0], more[2] = {}, next = first, began = 0, begun = 0;
	struct settings *s = settings.lookup(&zero);
	u32 every = 0;
	struct switches *c;

	if (!s)
		return 0;
	if (!(random & (SWITCHES_A_TIMED - 1)))
		began = bpf_ktime_get_ns();
#ifdef WAKEUPS
	if (first > 1) {
		woken = followed_thread(first);
	} else {
		/* not by ctx->args: the kernel attaches to sched_waking no program that reads more arguments than that has */
		bpf_probe_read_kernel(more, sizeof(more), (void *)ctx + 8);
#else
	{
		more[0] = ctx->args[1];
		more[1] = ctx->args[2];
#endif
		next = more[1];
		bpf_probe_read_kernel(&tid, 4, (void *)next + TASK_PID);
		end_wait(next, tid, began);
		if (s->wait_every && !((u64)random * s->wait_every >> 32))
			every = s->wait_every;
		if ((every || s->followed) && !first && is_waiting(more[0]))
			begun = followed_wait(s);
		else
			every = 0;
	}
#ifndef WAKEUPS
	if (!(begun | every)) /* before the verifier forgets it; with both tracepoints it has less to do if it does not know */
		goto passed;
#endif
	FORGET(began, next);
	FORGET(begun, next);
	FORGET(every, (u32)next);
#ifdef WAKEUPS
	FORGET(woken, (u32)next);
	FORGET(more[0], next);
#endif
	if (woken | begun | every)
		note_wait(more[0], woken, begun, every, s);
#ifndef WAKEUPS
passed:
#endif
	c = began ? switches.lookup(&zero) : 0;
	if (c) {
		if (is_watched(process_of((void *)next)) || is_watched(this_process()))
			atomic_add(c->own, 1);
		atomic_add(c->ns, bpf_ktime_get_ns() - began);
		atomic_add(c->timed, 1);
	}
	return 0;
}
