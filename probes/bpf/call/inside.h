/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What happened inside a timed call: how long the timed calls directly in it took, by function.
 *
 * A timed call that ends adds its duration to the open timed call around it, in the memory of the thread. When that one
 * ends, its sums go into one entry of a map: by which functions it reached, and by the bucket of its own duration. So
 * no probe is hit for this, and what was called together in one call stays together.
 *
 * Probes of callees come and go. Before and after each change user space begins another era of the outer function. Its
 * calls are told by era, and user space knows which callees were timed in which. */

#ifndef NO_INSIDE /* bench.overhead.inside compares */

/* Add a call that has ended to the timed call around it. It is on the shadow stack no more. */
static inline __attribute__((always_inline)) void add_to_caller(struct thread *t, u64 cookie, u64 ns, struct away *away)
{
	u32 callee = (u32)cookie & COOKIE_IDENTITY, found, i;
	struct open_call *caller;
	struct callee_time *own;
	u64 at;

	caller = innermost(t, &at);
	if (!caller)
		return;
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_CALLEES - 1; i++) {
		found = caller->callees[i].callee;
		if (!found || found == callee)
			break;
	}
	/* through memory, where the verifier forgets it: else it follows what comes after once for each place */
	t->place = i;
	asm volatile("" ::: "memory");
	at = t->place;
	barrier_var(at);
	if (at >= MAX_CALLEES)
		return;
	own = &caller->callees[at];
	if (own->callee) {
		own->ns += ns;
		own->calls++;
		if (away->waiting | away->blocked) {
			own->waiting += away->waiting >> AWAY_SHIFT;
			own->blocked += away->blocked >> AWAY_SHIFT;
		}
		return;
	}
	own->callee = at < MAX_CALLEES - 1 ? callee : OTHER_CALLEES;
	own->ns = ns;
	own->calls = 1;
	own->waiting = away->waiting >> AWAY_SHIFT;
	own->blocked = away->blocked >> AWAY_SHIFT;
}

static inline __attribute__((always_inline)) void begin_inside(struct open_call *o, struct slot *s)
{
	u32 i;

	o->era = s->era;
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_CALLEES; i++)
		o->callees[i].callee = 0;
}

/* The nth timed call of a window has ended: record what it holds. The look-up in the map costs more than all else here,
 * so of many calls in a window only some are recorded, at random. */
static inline __attribute__((always_inline)) void note_inside(struct open_call *o, struct counters *c, struct slot *s,
							      struct thread *t, u64 duration, u32 bucket, u64 path,
							      u64 nth, struct away *away)
{
	struct inside_value *v, *zeros;
	struct inside_key key = {};
	u32 i, zero = 0;

	if (!o->callees[0].callee && !s->era)
		return;
	if (nth >= ALL_INSIDE && random_of(t) & (ONE_INSIDE - 1))
		return;
	key.path = path;
	key.cookie = o->cookie;
	key.bucket = bucket | (is_much(away->blocked, duration) ? BLOCKED_CALL : 0);
	key.era = o->era == s->era ? s->era : 0;
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_CALLEES; i++)
		key.callees[i] = o->callees[i].callee;
	if (key.bucket & BLOCKED_CALL) {
#pragma clang loop unroll(full)
		for (i = 0; i < MAX_CALLEES; i++) {
			if (key.callees[i] && is_much((u64)o->callees[i].blocked << AWAY_SHIFT, duration))
				key.callees[i] |= BLOCKED_IN;
		}
	}
	v = inside.lookup(&key);
	if (!v) {
		zeros = nothing_inside.lookup(&zero);
		if (zeros)
			inside.insert(&key, zeros);
		v = inside.lookup(&key);
		if (!v) {
			atomic_add(c->untold, 1);
			return;
		}
	}
	atomic_add(v->calls, 1);
	if (away->waiting | away->blocked) {
		atomic_add(v->waiting, away->waiting >> AWAY_SHIFT);
		atomic_add(v->blocked, away->blocked >> AWAY_SHIFT);
	}
#pragma clang loop unroll(full)
	for (i = 0; i < MAX_CALLEES; i++) {
		if (!o->callees[i].callee)
			break;
		atomic_add(v->of[i].ns, o->callees[i].ns);
		atomic_add(v->of[i].calls, o->callees[i].calls);
		if (o->callees[i].waiting | o->callees[i].blocked) {
			atomic_add(v->of[i].waiting, o->callees[i].waiting);
			atomic_add(v->of[i].blocked, o->callees[i].blocked);
		}
	}
}

#else
#define begin_inside(o, s)
#define note_inside(o, c, s, t, duration, bucket, path, nth, away)
#define add_to_caller(t, cookie, ns, away)
#endif
