/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Where threads are blocked, seen from outside: user space reads all tasks by an iterator of the kernel.
 *
 * A blocked thread passes no probe for this, and pays nothing. The program may sleep, since the stack is in the memory of
 * another process. */

#ifdef LOOKING
/* The context of an iterator over tasks: metadata, whose first field is the file that is read, and the task. */
#define ITERATED_META 0
#define ITERATED_TASK 8
#define READ_FIELD(into, from, offset) asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(into) : "r"(from), "i"(offset))

/* How often a thread has gone to sleep, and whether it is blocked: neither running, nor ready to, nor gone for good. */
static inline __attribute__((always_inline)) u64 sleeps_of(void *task, bool *is_blocked)
{
	u64 sleeps = 0;
	u32 state = 0;

	bpf_probe_read_kernel(&state, 4, task + TASK_STATE);
	bpf_probe_read_kernel(&sleeps, 8, task + TASK_SLEEPS);
	*is_blocked = state && !(state & TASK_DEAD);
	return sleeps;
}

int on_look(void *ctx)
{
	u32 zero = 0, key = SCRATCH_LOOK, tgid;
	struct settings *s = settings.lookup(&zero);
	u64 meta, file, ip = 0, sp = 0, fp = 0, tid;
	struct blocked_thread seen = {};
	struct pt_regs *regs;
	struct process *p;
	struct thread *t;
	struct walk *w;
	bool is_blocked;
	void *task;

	READ_FIELD(meta, ctx, ITERATED_META);
	READ_FIELD(task, ctx, ITERATED_TASK);
	if (!task || !s)
		return 0;
	tgid = process_of(task);
	p = processes.lookup(&tgid);
	if (!p)
		return 0;
	seen.sleeps = sleeps_of(task, &is_blocked);
	if (!is_blocked || (u64)bpf_get_prandom_u32() * s->look_every >> 32)
		return 0;
	w = walks.lookup(&key);
	tid = w ? claim(w) : 0;
	if (!tid)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bpf_probe_read_kernel(&ip, 8, &INSTRUCTION_POINTER(regs));
	bpf_probe_read_kernel(&sp, 8, &STACK_POINTER(regs));
	bpf_probe_read_kernel(&fp, 8, &FRAME_POINTER(regs));
	t = find_other_thread(task);
	w->ip = ip;
	w->sp = sp;
	w->fp = fp;
	w->exact = 1;
	w->entry = 0;
	w->open = t ? t->depth : 0;
	seen.path = take_path_of(task, w, 0, p->layout, tid);
	if (sleeps_of(task, &is_blocked) != seen.sleeps || !is_blocked) /* it ran meanwhile */
		return 0;
	bpf_probe_read_kernel(&seen.tid, 4, task + TASK_PID);
	READ_FIELD(file, meta, 0);
	bpf_seq_write((void *)file, &seen, sizeof(seen));
	return 0;
}
#endif
