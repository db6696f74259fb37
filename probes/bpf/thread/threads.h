/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Where what is known of a thread is kept.
 *
 * A thread that is met first takes the place of its number in one array: found again by an address that is computed,
 * where its task's storage takes a call of the kernel, 20 to 30 ns at each hit. The place is its own until it ends, and
 * is told by its time of birth: what another left behind is never taken for this one's. A thread whose place somebody
 * has, as few have, is kept in its task's storage, and so are all where the kernel's types are not known, or where the
 * verifier must be shown that walks end: two kinds of memory are twice the work for it, which is too much there. */

#if defined(KERNEL_FIELDS) && defined(MAY_GOTO)
static inline __attribute__((always_inline)) u64 born(void *task)
{
	u64 when;

	FIELD(when, u64, task, TASK_BORN);
	return when;
}

static inline __attribute__((always_inline)) u32 number_of(void *task)
{
	u64 tid;

	FIELD(tid, u32, task, TASK_PID);
	return tid;
}

static inline __attribute__((always_inline)) struct thread *placed(void *task)
{
	u32 at = number_of(task) & (PLACES - 1);
	struct thread *t = places.lookup(&at);

	return t && t->born == born(task) ? t : 0;
}

/* Take the place for a thread that has none; 0: somebody has it. */
static inline __attribute__((always_inline)) struct thread *place(void *task)
{
	u32 tid = number_of(task), at = tid & (PLACES - 1), i;
	struct thread *t = places.lookup(&at);

	if (!t || taken.insert(&at, &tid))
		return 0;
	t->tid = tid;
	t->depth = 0;
	t->random = 0;
	t->low = 0;
	t->known = 0;
	t->cost = 0;
	t->stack_end = 0;
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_SLOTS / 64; i++)
		t->busy[i] = 0;
#pragma clang loop unroll(full)
	for (i = 0; i < KNOWN_RETURNS; i++)
		t->returns[i].known = 0;
	t->born = born(task);
	return t;
}

/* The thread of this number is no more: it has ended, or taken another's number. */
static inline __attribute__((always_inline)) void vacate(u32 tid)
{
	u32 at = tid & (PLACES - 1);
	struct thread *t = places.lookup(&at);

	if (!t || !t->born || t->tid != tid)
		return;
	t->born = 0;
	taken.delete(&at);
}
#else
#define placed(task) ((struct thread *)0)
#define place(task) ((struct thread *)0)
#define vacate(tid)
#endif

/* What is known of a thread, if it has hit a probe before. */
static inline __attribute__((always_inline)) struct thread *thread_met(void *task)
{
	struct thread *t = placed(task);

	return t ? t : threads.task_storage_get(this_task(), 0, 0);
}

/* The same, made now if need be; 0: there is no memory. */
static inline __attribute__((always_inline)) struct thread *thread_made(void *task)
{
	struct thread *t = thread_met(task);

	if (!t)
		t = place(task);
	return t ? t : threads.task_storage_get(this_task(), 0, 1 /* create */);
}
