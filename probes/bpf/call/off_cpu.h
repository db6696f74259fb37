/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* How a timed call spent its time: on a CPU, waiting for one, or blocked.
 *
 * The scheduler accounts this for every thread anyway: how long it was runnable without a CPU (sched_info.run_delay),
 * and how long it ran (sum_exec_runtime up to exec_start). So nothing is hooked into the switch of threads, and
 * unwatched threads pay nothing. A call during which the thread was not given a CPU again had one all the time. */

/* Time that a call spent off its CPU, ns. */
struct away {
	u64 waiting;
	u64 blocked;
};

/* Whether a call that was blocked for so long is told as blocked. */
static inline __attribute__((always_inline)) bool is_much(u64 blocked, u64 duration)
{
	return blocked && blocked >= duration >> BLOCKED_SHIFT;
}

#ifdef WAITING

static inline __attribute__((always_inline)) u64 kernel_word(void *where, u32 offset)
{
	return *(u64 *)(where + offset);
}

/* Time on CPU of the current thread, less the clock's reading: a difference of two of these, and of the clock's
 * readings, is the time on CPU in between. exec_start is on the clock of threads, which stands still during
 * interrupts and while the hypervisor has the CPU; how far that is behind on this CPU is in its run queue. */
static inline __attribute__((always_inline)) u64 run_base(void *task)
{
	void *queue = *(void **)(task + TASK_CFS_RQ);
	void *rq = *(void **)(queue + CFS_RQ_RQ);

	return kernel_word(task, TASK_SUM_EXEC) - kernel_word(task, TASK_EXEC_START) +
	       kernel_word(rq, RQ_CLOCK_TASK) - kernel_word(rq, RQ_CLOCK);
}

static inline __attribute__((always_inline)) void note_running(struct open_call *o, void *task)
{
	o->arrivals = kernel_word(task, TASK_ARRIVALS);
	o->run_delay = kernel_word(task, TASK_RUN_DELAY);
	o->run_base = run_base(task);
}

/* A call has ended: if it left its CPU, record for how long and why. */
static inline __attribute__((always_inline)) void note_off_cpu(struct open_call *o, struct counters *c, void *task,
							       u64 duration, u64 nested, u32 bucket, u64 path,
							       struct away *away)
{
	struct off_cpu_value *v, fresh = {};
	struct off_cpu key = {};
	u64 waiting, running, blocked;
	u32 ran;

	if (kernel_word(task, TASK_ARRIVALS) == o->arrivals)
		return;
	waiting = kernel_word(task, TASK_RUN_DELAY) - o->run_delay;
	running = duration + run_base(task) - o->run_base;
	if ((s64)running < 0)
		running = 0;
	if (waiting > duration)
		waiting = duration;
	if (running > duration - waiting)
		running = duration - waiting;
	blocked = duration - waiting - running;
	away->waiting = waiting;
	away->blocked = blocked;
	key.path = path;
	key.cookie = o->cookie;
	key.bucket = bucket;
	ran = bucket_of(running > nested ? running - nested : 0);
	FORGET(ran, (u32)duration);
	key.running = ran | (is_much(blocked, duration) ? BLOCKED_CALL : 0);
	v = off_cpu.lookup(&key);
	if (v) {
		atomic_add(v->calls, 1);
		atomic_add(v->waiting, waiting);
		atomic_add(v->blocked, blocked);
		return;
	}
	fresh.calls = 1;
	fresh.waiting = waiting;
	fresh.blocked = blocked;
	if (off_cpu.update(&key, &fresh))
		atomic_add(c->unsplit, 1);
}

#else
#define note_running(o, task)
#define note_off_cpu(o, c, task, duration, nested, bucket, path, away)
#endif
