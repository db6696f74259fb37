/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Rules of the compact unwind rows (probes/elf/parser/unwind_rows.py makes them). Pure: also compiled for the host. */
#ifndef SPECMINE_UNWIND
#define SPECMINE_UNWIND

#define PAGE_INDEX_BITS 8  /* one index entry per 256 bytes of file */
#define SEARCH_STEPS 9     /* at most 256 rows in 256 bytes, one more for the bounds */

#define ROW_NONE 0
#define ROW_SP 1
#define ROW_FP 2
#define ROW_PLT 3
#define ROW_DEREF_FP 4
#define ROW_DEREF_SP 5  /* and what a call pushes more */
#define ROW_END 6
#define ROW_SIGNAL 7

#define ROW_KIND(info) ((info) & 7)
#define ROW_FP_RULE(info) (((info) >> 3) & 3)
#define ROW_FP_SLOT(info) ((((info) >> 5) & 0xff) * 8)
#define ROW_OFFSET(info) ((long long)((int)(info) >> 13) * 8)

#define FP_SAME 0
#define FP_SAVED 1
#define FP_UNKNOWN 2

/* A row as one number: rule in the high half, file offset in the low half. */
#define ROW_PC(row) ((unsigned int)(row))
#define ROW_INFO(row) ((unsigned int)((row) >> 32))

/* One step of a path's hash (multiply and fold; full 64 bits). */
static inline __attribute__((always_inline)) unsigned long long mix(unsigned long long hash, unsigned long long value)
{
	hash ^= value;
	hash *= 0x9E3779B97F4A7C15ULL;
	return hash ^ (hash >> 29);
}

#endif
