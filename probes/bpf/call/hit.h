/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* A hit: which probe, which end of the call, which task.
 *
 * Each call of a helper costs 10 to 20 ns. With the kernel's type information (KERNEL_FIELDS; probes/compiler/btf.py
 * finds the numbers) the programs read the fields that the helpers would read. The verifier checks them by type, and a
 * load that faults gives 0. Programs over perf events run in another context and call the helper. */

#define RETURNS_PASSED 8 /* replaced return addresses passed by at once: tail calls, other tools' */

static inline __attribute__((always_inline)) void *this_task(void)
{
	return (void *)bpf_get_current_task_btf();
}

#ifdef KERNEL_FIELDS
/* bcc would make calls of what looks like a pointer into the kernel */
#define FIELD(into, width, from, offset) asm volatile("%0 = *(" #width " *)(%1 + %2)" : "=r"(into) : "r"(from), "i"(offset))

static u64 (*typed)(u64 address, u32 type) = (void *)KFUNC_RDONLY_CAST; /* no call in the end: the verifier drops it */

/* What the kernel keeps of this run of the program. */
static inline __attribute__((always_inline)) u64 run_of(void *task)
{
	u64 run;

	FIELD(run, u64, task, TASK_BPF_CTX);
	return typed(run, TYPE_RUN_CTX);
}

static inline __attribute__((always_inline)) u64 cookie_of(void *ctx, u64 run)
{
	u64 uprobe, cookie;

	FIELD(uprobe, u64, run, RUN_CTX_UPROBE);
	FIELD(cookie, u64, uprobe, UPROBE_COOKIE);
	return cookie;
}

static inline __attribute__((always_inline)) bool is_return(struct pt_regs *ctx, u64 run)
{
	u64 returned;

	FIELD(returned, u8, run, RUN_CTX_IS_RETURN);
	return returned;
}

/* Begin to look through the return addresses that the kernel has replaced on a thread's stack. */
static inline __attribute__((always_inline)) u64 newest_return(void *task)
{
	u64 at;

	FIELD(at, u64, task, TASK_UTASK);
	FIELD(at, u64, at, UTASK_RETURNS);
	return at;
}

/* Go on outward to the one that stood at this place of the stack; 0: none of the next few did. */
static inline __attribute__((always_inline)) u64 replaced_return(u64 *at, u64 sp)
{
	u64 stack, ret;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < RETURNS_PASSED; i++) {
		u64 one = typed(*at, TYPE_RETURN);

		FIELD(stack, u64, one, RETURN_STACK);
		FIELD(ret, u64, one, RETURN_ADDRESS);
		if (stack == sp)
			return ret;
		FIELD(one, u64, one, RETURN_NEXT);
		*at = one;
	}
	return 0;
}
#else
static inline __attribute__((always_inline)) u64 run_of(void *task)
{
	return 0;
}

static inline __attribute__((always_inline)) u64 cookie_of(void *ctx, u64 run)
{
	return bpf_get_attach_cookie(ctx);
}

/* At the entry the instruction pointer is the probe's own address. */
static inline __attribute__((always_inline)) bool is_return(struct pt_regs *ctx, u64 run)
{
	return INSTRUCTION_POINTER(ctx) != bpf_get_func_ip(ctx);
}

static inline __attribute__((always_inline)) u64 newest_return(void *task)
{
	return 0;
}

static inline __attribute__((always_inline)) u64 replaced_return(u64 *at, u64 sp)
{
	return 0;
}
#endif

#ifdef KERNEL_QUEUES
/* The running task of a scheduler's queue. */
static inline __attribute__((always_inline)) u64 running(u64 queue)
{
	u64 task;

	FIELD(task, u64, typed(queue, TYPE_QUEUE), QUEUE_CURR);
	return task;
}

/* The task that hit a probe: what its CPU's queue runs, since it stays on its CPU until the program ends. Which queue
 * that is the first hit on each CPU finds out. To be read only: what the kernel hands out may be handed to helpers. */
static inline __attribute__((always_inline)) void *task_hitting(void)
{
	u32 zero = 0;
	u64 *queue = queues.lookup(&zero), task, found;

	if (queue && *queue) {
		task = running(*queue);
	} else {
		task = bpf_get_current_task();
		FIELD(found, u64, typed(task, TYPE_TASK), TASK_CFS_QUEUE);
		FIELD(found, u64, found, CFS_QUEUE_QUEUE);
		if (queue && running(found) == task)
			*queue = found;
	}
	return (void *)typed(task, TYPE_TASK);
}
#else
#define task_hitting() this_task()
#endif
