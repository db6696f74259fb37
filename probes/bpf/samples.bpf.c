/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Where wall-clock time goes: samples of the CPU clock, and waits seen by the scheduler's switch tracepoint. */

static inline __attribute__((always_inline)) u64 user_path(struct walk *w, u32 layout, bool in_kernel)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	struct thread *t = thread_met(this_task());
	u64 ip = 0, sp = 0, bp = 0, tid;

	if (is_probing(regs, in_kernel)) { /* our own cost is not the program's time */
		count_outcome(WALK_PROBE);
		return 0;
	}
	tid = claim(w);
	if (!tid)
		return 0;
	bpf_probe_read_kernel(&ip, 8, &regs->ip);
	bpf_probe_read_kernel(&sp, 8, &regs->sp);
	bpf_probe_read_kernel(&bp, 8, &regs->bp);
	w->ip = ip;
	w->sp = sp;
	w->bp = bp;
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
	u32 tgid = bpf_get_current_pid_tgid() >> 32, key = SCRATCH_SAMPLE, zero = 0;
	struct process *p = processes.lookup(&tgid);
	struct settings *s = settings.lookup(&zero);
	struct walk *w;

	if (!p || !s)
		return 0;
	w = walks.lookup(&key);
	if (w)
		add_sample(user_path(w, p->layout, !(ctx->regs.cs & 3)), p->program, 0, 1, s->period_ns);
	return 0;
}

/* The thread that leaves the CPU is still the current one here; the next one is only a number. */
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	u64 prev = ctx->args[1], next = ctx->args[2], now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	u32 tgid = id >> 32, tid = id, next_tid = 0, state = 0, key = SCRATCH_SWITCH, zero = 0;
	struct wait fresh = {}, *ended;
	struct settings *s;
	struct process *p;
	struct walk *w;

	bpf_probe_read_kernel(&next_tid, 4, (void *)next + TASK_PID);
	ended = waits.lookup(&next_tid);
	if (ended) {
		add_sample(ended->path, ended->program, 1, ended->weight, (now - ended->start) * ended->weight);
		waits.delete(&next_tid);
	}
	p = processes.lookup(&tgid);
	if (!p)
		return 0;
	bpf_probe_read_kernel(&state, 4, (void *)prev + TASK_STATE);
	if (!state) /* preempted, not waiting */
		return 0;
	s = settings.lookup(&zero);
	w = walks.lookup(&key);
	if (!s || !w || !s->wait_every)
		return 0;
	if (s->wait_every > 1 && bpf_get_prandom_u32() % s->wait_every)
		return 0;
	fresh.start = now;
	fresh.program = p->program;
	fresh.weight = s->wait_every;
	fresh.path = user_path(w, p->layout, false); /* a probe does not wait */
	waits.update(&tid, &fresh);
	return 0;
}
