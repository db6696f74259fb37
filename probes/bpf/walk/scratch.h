/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Memory of a stack walk: one per CPU and kind of caller, since it is too large for the BPF stack. */

#define SCRATCH_PROBE 0
#define SCRATCH_SAMPLE 1
#define SCRATCH_SWITCH 2
#define SCRATCH_LOOK 3

struct walk {
	u64 owner;      /* the thread that uses this scratch now */
	u64 ip, sp, fp; /* instruction, stack and frame pointer */
	u64 hash;
	u64 base;       /* address of window[0] */
	u64 length;     /* readable bytes of the window */
	u64 returns;    /* the kernel's record of the next replaced return address */
	u32 open;       /* open timed calls that the walk has not reached, counted from the outermost */
	u32 exact;      /* ip is not a return address: look it up as it is */
	u32 entry;      /* sp is that of a function's first instruction, ip its return address or 0: read it */
	u32 fp_known;
	u32 range;      /* where the last address was found */
	u32 low, high;
	struct path path;
	u64 window[WINDOW / 8];
};
