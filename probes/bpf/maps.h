/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* All maps. The sizes of those marked 1 are set by probes/kernel/loader.py. */

/* Written by the programs, read in user space by memory mapping. */
BPF_F_TABLE("array", u32, u64, histogram, 1, 1024);
BPF_F_TABLE("array", u32, struct counters, counters, MAX_SLOTS, 1024);
BPF_F_TABLE("array", u32, u64, walk_outcomes, WALK_OUTCOMES, 1024);
BPF_F_TABLE("array", u32, u64, unsent, UNSENT, 1024); /* events for which a ring buffer had no room */
BPF_F_TABLE("array", u32, struct nest, nests, MAX_SLOTS, 1024);
BPF_F_TABLE("array", u32, struct switches, switches, 1, 1024);
/* Written in user space by memory mapping, read by the programs. */
BPF_F_TABLE("array", u32, struct slot, slots, MAX_SLOTS, 1024);
BPF_F_TABLE("array", u32, u64, rows, 1, 1024);
BPF_F_TABLE("array", u32, u32, page_index, 1, 1024);
BPF_F_TABLE("array", u32, struct layout, layouts, 1, 1024);
BPF_F_TABLE("array", u32, struct settings, settings, 1, 1024);

BPF_F_TABLE("array", u32, u64, wait_marks, WAIT_MARKS, 1024); /* written on both sides, never at the same time */

BPF_F_TABLE("array", u32, struct epochs, epochs, 1, 1024); /* written on both sides, a word each */

BPF_HASH(processes, u32, struct process, 1);
BPF_HASH(path_histogram, struct path_bucket, u64, 1);
BPF_HASH(off_cpu, struct off_cpu, struct off_cpu_value, 1);
BPF_HASH(inside, struct inside_key, struct inside_value, 1);
BPF_ARRAY(nothing_inside, struct inside_value, 1); /* zeros: a value is too large for the stack */
BPF_HASH(seen_paths, u64, u64, 1);
BPF_HASH(return_sites, struct return_site, u64, 1);
BPF_HASH(samples, struct sample, struct sample_value, 1);
BPF_HASH(waits, u32, struct wait, 1);
BPF_HASH(call_waits, struct call_wait, struct sample_value, 4096);
/* Memory of threads, see threads.h. */
BPF_F_TABLE("array", u32, struct thread, thread_cells, THREAD_CELLS, 0);
BPF_HASH(cell_owners, u32, u32, THREAD_CELLS); /* cells in use */
BPF_HASH(threads, u32, struct thread, 1); /* made as task storage, which the kernel frees with its thread */
BPF_PERCPU_ARRAY(walks, struct walk, 4);
BPF_PERCPU_ARRAY(queues, u64, 1); /* of the scheduler, see hit.h */

BPF_RINGBUF_OUTPUT(stacks, 1);
BPF_RINGBUF_OUTPUT(events, 1);
BPF_RINGBUF_OUTPUT(alarms, 1);

#define atomic_add(where, what) __sync_fetch_and_add(&(where), (what))

static inline __attribute__((always_inline)) void count_unsent(u32 which)
{
	u64 *count = unsent.lookup(&which);

	if (count)
		atomic_add(*count, 1);
}
