/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Follows the chosen programs through fork, exec and exit, and sees when a debugger may have come. */

static inline __attribute__((always_inline)) void announce(u32 type, u32 tgid, u64 value)
{
	struct event e = { .type = type, .tgid = tgid, .value = value };

	events.ringbuf_output(&e, sizeof(e), 0);
}

int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	u64 child = ctx->args[1];
	u32 tgid = bpf_get_current_pid_tgid() >> 32, child_tgid = 0;
	struct process *p = processes.lookup(&tgid), copy;

	if (!p)
		return 0;
	bpf_probe_read_kernel(&child_tgid, 4, (void *)child + TASK_TGID);
	if (child_tgid == tgid) /* a thread */
		return 0;
	copy = *p;
	copy.followed = 0; /* the links that follow its parent do not see it */
	processes.update(&child_tgid, &copy);
	announce(EVENT_FORK, tgid, child_tgid);
	return 0;
}

/* The thread lives on in another image: what was open in the old one will never return, and nothing that it knows
 * of its process holds. */
static inline __attribute__((always_inline)) void begin_anew(void)
{
	struct thread *t = thread_met(this_task());
	struct changes *c;
	u32 zero = 0;

	if (t) {
		drop_abandoned(t, ~0ULL);
		t->stack_end = 0;
	}
	c = changes.lookup(&zero);
	if (c)
		atomic_add(c->by_kernel, 1);
}

/* Every exec is told: a program chosen by its executable may start, a bystander may map a probed file. */
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	bool watched = processes.lookup(&tgid) != 0;
	u32 was = ctx->args[1];

	if (was != tgid) /* the image goes on in a thread that is not its first; it has the first one's number now */
		vacate(was);
	if (watched) {
		processes.delete(&tgid);
		begin_anew();
	}
	announce(EVENT_EXEC, tgid, watched);
	return 0;
}

int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tgid = id >> 32, tid = id;

	vacate(tid);
	if (tgid != tid || !processes.lookup(&tgid))
		return 0;
	/* the group's other threads may live on: user space looks and removes it */
	announce(EVENT_EXIT, tgid, 0);
	return 0;
}

/* A debugger that attaches stops the process by a signal, from then on it may read code: probes must go before. */
int on_stop(struct bpf_raw_tracepoint_args *ctx)
{
	u64 task = ctx->args[2];
	u32 tgid = 0;

	if ((int)ctx->args[0] != SIGSTOP)
		return 0;
	bpf_probe_read_kernel(&tgid, 4, (void *)task + TASK_TGID);
	if (processes.lookup(&tgid))
		announce(EVENT_STOP, tgid, 0);
	return 0;
}
