/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The stack of a thread, read through a copied window of it.
 *
 * ``other`` is the thread if it is not the current one, which only a program that may sleep can read; else 0. */

/* Read memory of the thread whose stack is walked; 0 if it could be read. */
static inline __attribute__((always_inline)) int read_user(void *into, u32 length, u64 address, void *other)
{
	if (other)
		return bpf_copy_from_user_task(into, length, (void *)address, other, 0);
	return bpf_probe_read_user(into, length, (void *)address);
}

static inline __attribute__((always_inline)) int read_stack(struct walk *w, u64 address, u64 *value, void *other)
{
	u64 index = (address - w->base) >> 3;

	if (!(address & 7) && address >= w->base && address + 8 <= w->base + w->length) {
		barrier_var(index);
		if (index < WINDOW / 8) {
			*value = w->window[index];
			return 0;
		}
	}
	return read_user(value, 8, address, other);
}

/* This near to the end of the window the next one is copied: each read beyond it costs as much as a copy. */
#define NEAR_END 256

/* The memory of the walking thread. A sampler looks it up only where it is needed: for the verifier, the walks of a
 * thread with and without memory would be two programs, with twice the work. */
static inline __attribute__((always_inline)) struct thread *walking(struct thread *t, void *other)
{
	if (t)
		return t;
	return other ? find_other_thread(other) : find_thread(this_task());
}

/* Copy the stack from sp upward. Near its end there is less; the last page is found once and stored. */
static inline __attribute__((always_inline)) void copy_window(struct walk *w, struct thread *t, void *other)
{
	u64 length = WINDOW;

	t = walking(t, other);
	w->base = w->sp;
	if (t && t->stack_end > w->sp && t->stack_end - w->sp < WINDOW)
		length = t->stack_end - w->sp;
	barrier_var(length);
	if (length > WINDOW)
		length = WINDOW;
	w->length = length;
	if (!read_user(w->window, length, w->sp, other))
		return;
	length = 4096 - (w->sp & 4095);
	if (t && !other) /* one that runs meanwhile writes its memory itself */
		t->stack_end = w->sp + length;
	barrier_var(length);
	if (length > WINDOW)
		length = WINDOW;
	w->length = length;
	if (read_user(w->window, length, w->sp, other))
		w->length = 0;
}
