/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What a thread knows of its process, so that most hits look nothing up.
 *
 * ``changes`` is moved on with every change of what is known here: by user space after each write to ``processes``
 * and ``return_sites``, by the programs when an exec takes a process out. What was learnt before the last change is
 * looked up again. The number is read before what it stands for, and moved on after that was written: what was
 * looked up during a change is forgotten at the next hit. Only what may be used is kept; who is refused asks again. */

/* The number of the present state; 0 is none. */
static inline __attribute__((always_inline)) u64 present(void)
{
	u32 zero = 0;
	struct changes *c = changes.lookup(&zero);

	return c ? *(volatile u64 *)&c->by_user + *(volatile u64 *)&c->by_kernel + 1 : 0;
}

/* The thread's process is watched, as far as this thread knows. */
static inline __attribute__((always_inline)) bool is_known(struct thread *t, u64 now)
{
	return t && t->known == now;
}

/* Look the thread's process up. The thread's memory is made here, for processes that are watched and for links that
 * are made for one process only; 0: this hit must not be used. */
static inline __attribute__((always_inline)) struct thread *meet(struct counters *c, void *task, u64 cookie, u64 now)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *p = processes.lookup(&tgid);
	struct thread *t;

	if (!p && cookie & COOKIE_SHARED) {
		if (!(c->strangers & 255))
			tell(EVENT_STRANGER, cookie);
		atomic_add(c->strangers, 1);
		return 0;
	}
	t = thread_made(task);
	if (!t) {
		atomic_add(c->lost, 1);
		return 0;
	}
	t->layout = p ? p->layout : 0;
	t->followed = p ? p->followed : 0;
	t->known = p ? now : 0;
	return t;
}
