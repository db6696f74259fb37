/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The mapping of an address, and the unwind row that holds there. */

/* Find the mapping of an address: w->range. */
static inline __attribute__((always_inline)) struct range *find_range(struct walk *w, struct layout *l, u64 address)
{
	u64 at = w->range;
	struct range *r;
	u32 step;

	barrier_var(at);
	at &= MAX_RANGES - 1;
	r = &l->ranges[at];
	if (address >= r->start && address < r->end)
		return r;
	w->range = 0;
#pragma clang loop unroll(full)
	for (step = MAX_RANGES / 2; step; step >>= 1) {
		at = w->range + step;
		barrier_var(at);
		at &= MAX_RANGES - 1;
		if (l->ranges[at].start <= address)
			w->range = at;
		FORGET_MEMORY();
	}
	at = w->range;
	barrier_var(at);
	at &= MAX_RANGES - 1;
	r = &l->ranges[at];
	return address >= r->start && address < r->end ? r : 0;
}

/* A return address that lies in no module was replaced by a return probe: a timed call is still open there.
 * One that does is what the program wrote: the open call was abandoned and something else stands there now. */
static inline __attribute__((always_inline)) bool is_replaced(struct walk *w, struct layout *l, u64 ret)
{
	struct range *r = find_range(w, l, ret);

	return !r || r->flags & (RANGE_JIT | RANGE_PROBE);
}

/* Find the unwind row of a file offset. */
static inline __attribute__((always_inline)) u32 find_row(struct walk *w, u32 index, u32 offset)
{
	u32 key = index + (offset >> PAGE_INDEX_BITS);
	u32 *entry = page_index.lookup(&key);
	u64 *row;

	if (!entry)
		return ROW_NONE;
	w->low = *entry;
	key++;
	entry = page_index.lookup(&key);
	if (!entry)
		return ROW_NONE;
	w->high = *entry;
#pragma clang loop unroll(disable)
	REPEAT(SEARCH_STEPS) {
		if (w->low >= w->high)
			break;
		key = (w->low + w->high + 1) >> 1;
		row = rows.lookup(&key);
		if (!row)
			return ROW_NONE;
		if (ROW_PC(*row) <= offset)
			w->low = key;
		else
			w->high = key - 1;
	}
	key = w->low;
	row = rows.lookup(&key);
	if (!row || ROW_PC(*row) > offset)
		return ROW_NONE;
	return ROW_INFO(*row);
}
