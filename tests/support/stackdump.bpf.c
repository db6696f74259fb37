/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* For tests: what the walk says of a stack, beside the registers and the stack memory of the same moment. */

#define DUMP_BYTES 131072

struct dump {
	u32 tgid, tid;
	u32 sampled;   /* 1: a CPU sample, so that address[0] is where the thread stood */
	u32 outcome;
	u32 count;
	u32 pages;     /* bit i: page i of the stack could be read */
	u64 base;      /* address of stack[0] */
	u64 regs[17];  /* in DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip */
	u64 address[MAX_FRAMES];
	u8 stack[DUMP_BYTES];
};

/* When the last dump was taken: a stack is 128 kB. */
BPF_F_TABLE("array", u32, u64, dump_times, 2, 0);
BPF_RINGBUF_OUTPUT(dumps, 2048);

static inline __attribute__((always_inline)) int dump(struct pt_regs *regs, u32 sampled)
{
	u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), *last, base;
	u32 tgid = id >> 32, key = sampled, i;
	struct process *p = processes.lookup(&tgid);
	struct thread *t;
	struct walk *w;
	struct dump *d;

	last = dump_times.lookup(&key);
	if (!p || !last || now - *last < DUMP_GAP_NS)
		return 0;
	key = sampled ? SCRATCH_SAMPLE : SCRATCH_PROBE;
	w = walks.lookup(&key);
	t = threads.task_storage_get((void *)bpf_get_current_task_btf(), 0, 1);
	if (!w || !t || !claim(w))
		return 0;
	d = dumps.ringbuf_reserve(sizeof(*d));
	if (!d) {
		w->owner = 0;
		return 0;
	}
	*last = now;
	d->regs[0] = regs->ax;
	d->regs[1] = regs->dx;
	d->regs[2] = regs->cx;
	d->regs[3] = regs->bx;
	d->regs[4] = regs->si;
	d->regs[5] = regs->di;
	d->regs[6] = regs->bp;
	d->regs[7] = regs->sp;
	d->regs[8] = regs->r8;
	d->regs[9] = regs->r9;
	d->regs[10] = regs->r10;
	d->regs[11] = regs->r11;
	d->regs[12] = regs->r12;
	d->regs[13] = regs->r13;
	d->regs[14] = regs->r14;
	d->regs[15] = regs->r15;
	d->regs[16] = regs->ip;
	w->ip = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->bp;
	w->exact = sampled;
	w->open = 0;
	w->entry = 0;
	if (!sampled) {
		bpf_probe_read_user(&w->ip, 8, (void *)regs->sp);
		w->sp = regs->sp + 8;
	}
	take_path(w, t, p->layout, w->owner);
	d->tgid = tgid;
	d->tid = id;
	d->sampled = sampled;
	d->outcome = w->path.outcome;
	d->count = w->path.count;
	bpf_probe_read_kernel(d->address, sizeof(d->address), w->path.address);
	base = regs->sp & ~4095ULL;
	d->base = base;
	d->pages = 0;
#pragma clang loop unroll(full)
	for (i = 0; i < DUMP_BYTES / 4096; i++) /* pages that the program never touched are not there */
		if (!bpf_probe_read_user(d->stack + i * 4096, 4096, (void *)(base + i * 4096)))
			d->pages |= 1U << i;
	dumps.ringbuf_submit(d, 0);
	return 0;
}

int dump_entry(struct pt_regs *ctx)
{
	struct pt_regs regs = {};

	bpf_probe_read_kernel(&regs, sizeof(regs), ctx);
	return dump(&regs, 0);
}

int dump_sample(struct bpf_perf_event_data *ctx)
{
	struct pt_regs regs = {};

	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());

	if (is_probing(user, IN_KERNEL(&ctx->regs)))
		return 0;
	bpf_probe_read_kernel(&regs, sizeof(regs), user);
	return dump(&regs, 1);
}
