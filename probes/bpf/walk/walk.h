/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Walks a thread's stack by the unwind rows, over one copied window of it.
 *
 * What the loop carries from frame to frame lives in map memory, not in registers: the verifier knows nothing
 * of its value there, so the states of all rounds are one and 64 rounds stay far below its limit. */

/* Step from one frame to its caller: 0 to go on, else how the walk ended. */
static inline __attribute__((always_inline)) u32 step(struct walk *w, struct thread *t, struct layout *l, void *other)
{
	u64 look = w->exact ? w->ip : w->ip - 1;
	struct range *r = find_range(w, l, look);
	u64 cfa = 0, ret = 0, saved = 0; /* set, so that what the round before left in them is of no interest */
	struct open_call *o;
	u32 info;
	u64 at;

	if (!r) {
		/* return probes return to the first byte of their mapping */
		r = find_range(w, l, w->ip);
		return r && r->flags & RANGE_PROBE ? WALK_HIDDEN : WALK_NO_RANGE;
	}
	if (r->flags & RANGE_JIT)
		return WALK_JIT;
	if (r->flags & RANGE_PROBE)
		return WALK_PROBE;
	if (r->flags & RANGE_ROWS) {
		info = find_row(w, r->index, look - r->start + r->file_offset);
		if (ROW_KIND(info) == ROW_NONE)
			return WALK_NO_ROW;
	} else if (!(r->flags & RANGE_FRAMES)) { /* rows not there yet */
		return WALK_NO_ROW;
	} else {
		info = FRAME_POINTER_ROW;
	}
	w->exact = 0;
	switch (ROW_KIND(info)) {
	case ROW_END:
		return WALK_COMPLETE;
	case ROW_SP:
		cfa = w->sp + ROW_OFFSET(info);
		break;
	case ROW_FP:
		if (!w->fp_known)
			return WALK_UNSUPPORTED;
		cfa = w->fp + ROW_OFFSET(info);
		break;
	case ROW_PLT:
		cfa = PLT_CFA(w->sp, look);
		break;
	case ROW_DEREF_FP:
		if (!w->fp_known)
			return WALK_UNSUPPORTED;
		if (read_stack(w, w->fp + ROW_OFFSET(info), &cfa, other))
			return WALK_FAULT;
		break;
	case ROW_DEREF_SP:
		if (read_stack(w, w->sp + ROW_OFFSET(info), &cfa, other))
			return WALK_FAULT;
		cfa += PUSHED;
		break;
	default: /* ROW_SIGNAL: the interrupted registers stand in the ucontext at sp */
		if (read_stack(w, w->sp + SIGNAL_IP, &ret, other) || read_stack(w, w->sp + SIGNAL_FP, &saved, other) ||
		    read_stack(w, w->sp + SIGNAL_SP, &cfa, other))
			return WALK_FAULT;
		w->ip = ret;
		w->fp = saved;
		w->sp = cfa;
		w->fp_known = 1;
		w->exact = 1;
		return 0;
	}
	if (cfa <= w->sp)
		return WALK_FAULT;
	if (read_stack(w, cfa - PUSHED, &ret, other))
		return WALK_FAULT;
	if (ROW_FP_RULE(info) == FP_SAVED) {
		if (read_stack(w, cfa - ROW_FP_SLOT(info), &saved, other))
			return WALK_FAULT;
		w->fp = saved;
	} else if (ROW_FP_RULE(info) == FP_UNKNOWN) {
		w->fp_known = 0;
	}
	w->sp = cfa;
	at = w->open;
	if (at)
		t = walking(t, other);
	if (at && t) {
		at--;
		barrier_var(at);
		at &= MAX_OPEN - 1;
		o = &t->open[at];
		if (o->sp == cfa - PUSHED && is_replaced(w, l, ret)) {
			w->open = at;
			if (o->path) {
				w->path.parent = o->path;
				return WALK_JOINED;
			}
			ret = o->ret ? o->ret : replaced_return(&w->returns, o->sp);
			if (!ret)
				return WALK_HIDDEN;
		}
	}
	if (!ret)
		return WALK_COMPLETE;
	w->ip = ret;
	return 0;
}

static inline __attribute__((always_inline)) void count_outcome(u32 outcome)
{
	u64 *count = walk_outcomes.lookup(&outcome);

	if (count)
		atomic_add(*count, 1);
}

/* Take the scratch memory for this thread before anything is written to it; the thread's number, or 0 if another
 * thread was preempted in its walk on this CPU. */
static inline __attribute__((always_inline)) u64 claim(struct walk *w)
{
	if (w->owner) {
		count_outcome(WALK_BUSY);
		return 0;
	}
	w->owner = bpf_get_current_pid_tgid();
	return w->owner;
}

/* Take the path of the frames from w->ip, w->sp, w->fp outward, in scratch memory that was claimed by ``tid`` and is
 * given back; its id, or 0 if none could be taken. ``t`` may be left out. ``other`` as in stack_window.h. */
static inline __attribute__((always_inline)) u64 take_path_of(void *other, struct walk *w, struct thread *t, u32 layout,
							      u64 tid)
{
	u32 key = layout, outcome, i;
	struct layout *l = layouts.lookup(&key);

	if (!l) {
		w->owner = 0;
		return 0;
	}
	w->hash = mix(key, 0);
	w->fp_known = 1;
	w->returns = newest_return(other ? other : this_task());
	w->path.parent = 0;
	w->path.tgid = other ? process_of(other) : this_process();
	w->path.layout = key;
	w->path.count = 0;
	w->path.outcome = 0;
	if (!key)
		w->path.outcome = WALK_NO_LAYOUT;
	else
		copy_window(w, t, other);
	if (w->entry) {
		if (!w->ip && read_stack(w, w->sp, &w->ip, other))
			w->path.outcome = WALK_FAULT;
		w->sp += PUSHED;
	}
#pragma clang loop unroll(disable)
	ROUNDS(i, w->path.count, MAX_FRAMES) {
		if (w->path.outcome)
			break;
		w->path.address[i] = w->ip;
		w->path.count = i + 1;
		w->hash = mix(w->hash, w->ip);
		if (w->sp - w->base > WINDOW - NEAR_END && w->length == WINDOW)
			copy_window(w, t, other);
		w->path.outcome = step(w, t, l, other);
		FORGET_MEMORY();
	}
	FORGET_MEMORY();
	outcome = w->path.outcome;
	if (!outcome)
		outcome = WALK_DEEP;
	if (outcome == WALK_JOINED)
		w->hash = mix(w->hash, w->path.parent);
	w->path.outcome = outcome;
	w->hash = mix(w->hash, outcome) | 1;
	w->path.id = w->hash;
	if (w->owner != tid) { /* disturbed: nothing in it can be trusted */
		outcome = WALK_BUSY;
		goto counted;
	}
	if (outcome == WALK_PROBE) {
		w->owner = 0;
		goto counted;
	}
	if (!seen_paths.lookup(&w->path.id)) {
		u64 one = 1;

		if (!stacks.ringbuf_output(&w->path, sizeof(w->path), 1 /* BPF_RB_NO_WAKEUP */))
			seen_paths.update(&w->path.id, &one);
		else
			count_unsent(UNSENT_PATHS);
	}
	tid = w->hash;
	w->owner = 0;
	count_outcome(outcome);
	return tid;
counted:
	count_outcome(outcome);
	return 0;
}

static inline __attribute__((always_inline)) u64 take_path(struct walk *w, struct thread *t, u32 layout, u64 tid)
{
	return take_path_of(0, w, t, layout, tid);
}
