/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The stack of a thread, read through a copied window of it. */

static inline __attribute__((always_inline)) int read_stack(struct walk *w, u64 address, u64 *value)
{
	u64 index = (address - w->base) >> 3;

	if (!(address & 7) && address >= w->base && address + 8 <= w->base + w->length) {
		barrier_var(index);
		if (index < WINDOW / 8) {
			*value = w->window[index];
			return 0;
		}
	}
	return bpf_probe_read_user(value, 8, (void *)address);
}

/* This near to the end of the window the next one is copied: each read beyond it costs as much as a copy. */
#define NEAR_END 256

/* The memory of the walking thread. A sampler looks it up only where it is needed: for the verifier, the walks of a
 * thread with and without memory would be two programs, with twice the work. */
static inline __attribute__((always_inline)) struct thread *walking(struct thread *t)
{
	return t ? t : find_thread(this_task());
}

/* Copy the stack from sp upward. Near its end there is less; the last page is found once and stored. */
static inline __attribute__((always_inline)) void copy_window(struct walk *w, struct thread *t)
{
	u64 length = WINDOW;

	t = walking(t);
	w->base = w->sp;
	if (t && t->stack_end > w->sp && t->stack_end - w->sp < WINDOW)
		length = t->stack_end - w->sp;
	barrier_var(length);
	if (length > WINDOW)
		length = WINDOW;
	w->length = length;
	if (!bpf_probe_read_user(w->window, length, (void *)w->sp))
		return;
	length = 4096 - (w->sp & 4095);
	if (t)
		t->stack_end = w->sp + length;
	barrier_var(length);
	if (length > WINDOW)
		length = WINDOW;
	w->length = length;
	if (bpf_probe_read_user(w->window, length, (void *)w->sp))
		w->length = 0;
}
