/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The duration of a call that has ended, into the histogram of its slot or path. */

/* Record a call of this slot that has ended: its duration minus the cost of other probes meanwhile. ``cost`` is the
 * thread's. */
static inline __attribute__((always_inline)) void finish(struct open_call *o, struct counters *c, struct slot *s,
							  struct thread *t, void *task, u64 now, u64 cost, u64 by_path)
{
	u64 duration = now - o->start, nested = cost - o->cost;
	u32 slot = COOKIE_SLOT(o->cookie), key;
	struct path_bucket pb = {};
	struct away away = {};
	u64 *cell, one = 1, nth, path;
	bool given_up = count_ended(o, c, s);

	if (s->generation != COOKIE_GENERATION(o->cookie)) {
		atomic_add(c->dropped, 1);
		return;
	}
	if (given_up)
		return;
	if (s->max_open && duration > s->max_open) {
		atomic_add(c->censored, 1);
		return;
	}
	atomic_add(c->timed, 1);
	if (nested) {
		atomic_add(c->nested, 1);
		atomic_add(c->nested_ns, nested);
	}
	path = o->path & -by_path; /* not by a branch, see verifier.h */
	key = bucket_of(duration > nested ? duration - nested : 0);
	FORGET(key, (u32)duration);
	note_off_cpu(o, c, task, duration, nested, key, path, &away);
	nth = keep_call_sample(t, slot, c->timed, duration > nested ? duration - nested : 0);
	note_inside(o, c, s, t, duration, key, path, nth, &away);
	add_to_caller(t, o->cookie, duration > nested ? duration - nested : 0, &away);
	if (by_path) {
		pb.path = path;
		pb.cookie = o->cookie;
		pb.bucket = key;
		cell = path_histogram.lookup(&pb);
		if (cell)
			atomic_add(*cell, 1);
		else if (path_histogram.update(&pb, &one))
			atomic_add(c->lost, 1);
		return;
	}
	key += slot * BUCKETS;
	cell = histogram.lookup(&key);
	if (cell)
		atomic_add(*cell, 1);
}

/* The same for a call of any slot. */
static inline __attribute__((always_inline)) void finish_any(struct open_call *o, struct thread *t, void *task, u64 now,
							      u64 cost)
{
	u32 slot = COOKIE_SLOT(o->cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);

	if (o->cookie != ABANDONED && c && s)
		finish(o, c, s, t, task, now, cost, COOKIE_BY_PATH(o->cookie));
}
