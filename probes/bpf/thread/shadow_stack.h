/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The open timed calls of a thread, innermost last. Each is identified by the place of its return address. */

static inline __attribute__((always_inline)) void mark_closed(struct thread *t, struct open_call *o)
{
	u64 word = COOKIE_SLOT(o->cookie) >> 6;

	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	t->busy[word] &= ~(1ULL << (COOKIE_SLOT(o->cookie) & 63));
}

/* The cookie of an open call that will never return, and that is counted as dropped. */
#define ABANDONED 0xffffffffULL /* no slot has this generation */

/* Count a call that is put on the shadow stack. */
static inline __attribute__((always_inline)) void count_open(struct open_call *o, struct counters *c, struct slot *s)
{
	u64 at = o->period = s->period;

	barrier_var(at);
	at &= PERIODS - 1;
	atomic_add(c->open[at], 1);
}

/* Count a call that leaves the shadow stack. True if user space has given it up: it began two periods ago or earlier. */
static inline __attribute__((always_inline)) bool count_ended(struct open_call *o, struct counters *c, struct slot *s)
{
	u64 at = o->period;

	barrier_var(at);
	at &= PERIODS - 1;
	atomic_add(c->open[at], -1);
	if (s->period - o->period < 2)
		return false;
	atomic_add(c->late[at], 1);
	return true;
}

static inline __attribute__((always_inline)) void count_dropped(struct open_call *o)
{
	u32 slot = COOKIE_SLOT(o->cookie);
	struct counters *c = counters.lookup(&slot);
	struct slot *s = slots.lookup(&slot);

	if (!c || !s)
		return;
	count_ended(o, c, s);
	atomic_add(c->dropped, 1);
}

/* The innermost open call, 0 if no call is open. ``place`` is its index, within bounds that the verifier can follow. */
static inline __attribute__((always_inline)) struct open_call *innermost(struct thread *t, u64 *place)
{
	u64 at = t->depth;

	if (!at)
		return 0;
	at--;
	barrier_var(at);
	at &= MAX_OPEN - 1;
	*place = at;
	return &t->open[at];
}

/* Drop the open calls below the stack pointer: longjmp, an exception or a lost return left them. */
static inline __attribute__((always_inline)) void drop_abandoned(struct thread *t, u64 sp)
{
	struct open_call *o;
	u64 at;

	o = innermost(t, &at);
	if (!o || o->sp >= sp) /* nearly always, and counting a round takes time */
		return;
#pragma clang loop unroll(disable)
	REPEAT(MAX_OPEN) {
		o = innermost(t, &at);
		if (!o || o->sp >= sp)
			break;
		t->depth = at;
		if (o->cookie == ABANDONED)
			continue;
		mark_closed(t, o);
		count_dropped(o);
	}
}

/* A call of this slot is open on this thread: true if it belongs to this attachment, which makes this call a recursion.
 * An older call was open when its link was detached; it will never return here and becomes ABANDONED. So does a call
 * whose place on the stack this one has, since its return was missed; except a tail call to itself, which has the same
 * return address. */
static inline __attribute__((always_inline)) bool is_recursion(struct thread *t, u64 cookie, u64 sp, u64 tail_ret,
						       bool by_site)
{
	struct open_call *o;
	u64 at;

	t->place = 0;
#pragma clang loop unroll(disable)
	ROUNDS(at, t->place, MAX_OPEN) {
		if (at >= t->depth)
			break;
		t->place = at + 1;
		o = &t->open[at];
		if (o->cookie == cookie && !(by_site && o->sp == sp && o->ret != tail_ret))
			return true;
		if (COOKIE_SLOT(o->cookie) == COOKIE_SLOT(cookie)) {
			count_dropped(o);
			o->cookie = ABANDONED;
		}
	}
	return false;
}

/* Record that a probe of this slot was hit inside an open call of another slot. */
static inline __attribute__((always_inline)) void note_nesting(struct thread *t, u64 sp, u32 slot)
{
	u64 at = t->depth, word = slot >> 6, bit = 1ULL << (slot & 63);
	struct nest *n;
	u32 outer;

	if (!at)
		return;
	at--;
	barrier_var(at);
	at &= MAX_OPEN - 1;
	if (t->open[at].sp == sp) /* a tail call, not a nested one */
		return;
	outer = COOKIE_SLOT(t->open[at].cookie);
	n = nests.lookup(&outer);
	if (!n)
		return;
	barrier_var(word);
	word &= MAX_SLOTS / 64 - 1;
	if (!(n->inner[word] & bit))
		n->inner[word] |= bit; /* a bit that another CPU overwrites comes back at the next hit */
}
