/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Memory of threads.
 *
 * At its first hit, a thread takes the cell of an array that its id gives. Its address is computed, where task storage
 * takes a call of the kernel, 20 to 30 ns at each hit. The thread has the cell until it ends. The cell holds the start
 * time of the task, so nobody takes over what another thread left. The few threads whose cell is in use have task
 * storage instead. So have all threads where the kernel's types are not known, or where the verifier must be shown that
 * walks end: two kinds of memory are twice the work for it, which is too much there. */

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

static inline __attribute__((always_inline)) struct thread *cell_of(void *task)
{
	u32 at = number_of(task) & (THREAD_CELLS - 1);
	struct thread *t = thread_cells.lookup(&at);

	return t && t->born == born(task) ? t : 0;
}

/* Take the cell for a thread that has none; 0: it is in use. */
static inline __attribute__((always_inline)) struct thread *take_cell(void *task)
{
	u32 tid = number_of(task), at = tid & (THREAD_CELLS - 1), i;
	struct thread *t = thread_cells.lookup(&at);

	if (!t || cell_owners.insert(&at, &tid))
		return 0;
	t->tid = tid;
	t->depth = 0;
	t->random = 0;
	t->low_code = 0;
	t->epoch = 0;
	t->cost = 0;
	t->stack_end = 0;
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_SLOTS / 64; i++)
		t->busy[i] = 0;
#pragma clang loop unroll(full)
	for (i = 0; i < CACHED_RETURNS; i++)
		t->returns[i].epoch = 0;
	t->born = born(task);
	return t;
}

/* The thread of this id is no more: it has ended, or taken another's id. */
static inline __attribute__((always_inline)) void free_cell(u32 tid)
{
	u32 at = tid & (THREAD_CELLS - 1);
	struct thread *t = thread_cells.lookup(&at);

	if (!t || !t->born || t->tid != tid)
		return;
	t->born = 0;
	cell_owners.delete(&at);
}
#else
#define cell_of(task) ((struct thread *)0)
#define take_cell(task) ((struct thread *)0)
#define free_cell(tid)
#endif

/* The memory of a thread that has hit a probe before, else 0. */
static inline __attribute__((always_inline)) struct thread *find_thread(void *task)
{
	struct thread *t = cell_of(task);

	return t ? t : threads.task_storage_get(this_task(), 0, 0);
}

/* The same of a thread that is not the current one. */
static inline __attribute__((always_inline)) struct thread *find_other_thread(void *task)
{
	struct thread *t = cell_of(task);

	return t ? t : threads.task_storage_get(task, 0, 0);
}

/* Of the current thread, made if it is missing; 0: no memory. */
static inline __attribute__((always_inline)) struct thread *find_or_make_thread(void *task)
{
	struct thread *t = find_thread(task);

	if (!t)
		t = take_cell(task);
	return t ? t : threads.task_storage_get(this_task(), 0, 1 /* create */);
}
