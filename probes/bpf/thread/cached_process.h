/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The process of a thread, cached in the thread, so that most hits look nothing up.
 *
 * The cache is valid for one epoch. Every write to ``processes`` and ``return_sites`` by user space ends the epoch; so
 * does an exec, which removes its process. A thread reads the epoch before it looks up; the writer ends it after the
 * write. So what was looked up during a write is looked up again at the next hit. Only positive results are
 * cached; negative ones are looked up at every hit. */

/* The present epoch; 0 is none. */
static inline __attribute__((always_inline)) u64 epoch(void)
{
	u32 zero = 0;
	struct epochs *e = epochs.lookup(&zero);

	return e ? *(volatile u64 *)&e->by_user + *(volatile u64 *)&e->by_kernel + 1 : 0;
}

/* The thread's process is watched, by what the thread has cached. */
static inline __attribute__((always_inline)) bool is_current(struct thread *t, u64 current)
{
	return t && t->epoch == current;
}

/* Look the thread's process up and cache it; 0: this hit must not be used. The thread's memory is made here: for
 * processes that are watched, and for links of one process only. */
static inline __attribute__((always_inline)) struct thread *lookup_process(struct counters *c, void *task, u64 cookie,
								       u64 current)
{
	u32 tgid = this_process();
	struct process *p = processes.lookup(&tgid);
	struct thread *t;

	if (!p && cookie & COOKIE_SHARED) {
		if (!(c->bystander_hits & 255))
			send_now(EVENT_BYSTANDER, cookie);
		atomic_add(c->bystander_hits, 1);
		return 0;
	}
	t = find_or_make_thread(task);
	if (!t) {
		atomic_add(c->lost, 1);
		return 0;
	}
	t->layout = p ? p->layout : 0;
	t->followed = p ? p->followed : 0;
	t->epoch = p ? current : 0;
	return t;
}
