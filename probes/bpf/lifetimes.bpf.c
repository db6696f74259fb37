/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Forks, execs and exits of the watched processes, and signals by which a debugger may attach. */

/* Others execute all the time: what they do waits for the next turn of the reader, whom only watched processes wake that
 * fork, execute or are stopped.
 * Forced, since the kernel by itself wakes only a reader that has read everything. */
static inline __attribute__((always_inline)) void send(u32 type, u32 tgid, u64 value, bool watched)
{
	struct event e = { .type = type, .tgid = tgid, .value = value };

	if (events.ringbuf_output(&e, sizeof(e), watched ? 2 /* BPF_RB_FORCE_WAKEUP */ : 1 /* BPF_RB_NO_WAKEUP */))
		count_unsent(UNSENT_EVENTS);
}

int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	u64 child = ctx->args[1];
	u32 tgid = this_process(), child_tgid;
	struct process *p = processes.lookup(&tgid), copy;

	if (!p)
		return 0;
	child_tgid = process_of((void *)child);
	if (child_tgid == tgid) /* a thread */
		return 0;
	copy = *p;
	copy.followed = 0; /* the probes on its parent's exits do not cover it */
	processes.update(&child_tgid, &copy);
	send(EVENT_FORK, tgid, child_tgid, true);
	return 0;
}

/* The thread continues in another image: open calls of the old one never return, and its cached process is invalid. */
static inline __attribute__((always_inline)) void begin_anew(void)
{
	struct thread *t = find_thread(this_task());
	struct epochs *c;
	u32 zero = 0;

	if (t) {
		drop_abandoned(t, ~0ULL);
		t->stack_end = 0;
	}
	c = epochs.lookup(&zero);
	if (c)
		atomic_add(c->by_kernel, 1);
}

/* Every exec is reported: a program chosen by its executable may start, a bystander may map a probed file. */
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tgid = this_process(), was = ctx->args[1];
	bool watched = processes.lookup(&tgid) != 0;

	if (was != (u32)bpf_get_current_pid_tgid()) /* a thread that is not the first continues; it has that one's id now */
		free_cell(was);
	if (!tgid)
		return 0;
	if (watched) {
		processes.delete(&tgid);
		begin_anew();
	}
	send(EVENT_EXEC, tgid, watched, watched);
	return 0;
}

int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = id, tgid;

	free_cell(tid);
	if (id >> 32 != tid)
		return 0;
	tgid = this_process();
	if (!processes.lookup(&tgid))
		return 0;
	/* Other threads of the process may live: user space checks, and removes it. That has time: a turn of the loop for
	 * each end of a short life costs more than all else about it. */
	send(EVENT_EXIT, tgid, 0, false);
	return 0;
}

/* A debugger stops the process by a signal when it attaches. Then it may read code, so probes must be detached. */
int on_stop(struct bpf_raw_tracepoint_args *ctx)
{
	u64 task = ctx->args[2];
	u32 tgid;

	if ((int)ctx->args[0] != SIGSTOP)
		return 0;
	tgid = process_of((void *)task);
	if (processes.lookup(&tgid))
		send(EVENT_STOP, tgid, 0, true);
	return 0;
}
