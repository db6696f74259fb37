/* For tests: the walk of bpf/walk/walk.h, compiled for the host, over stacks recorded from real processes.
 *
 * A recording on stdin: the kernel's arrays as they were, then stacks (record_stacks.py). For each stack one line: how
 * the walk ended, and its addresses in hex. Maps are structs with a function for each method that bcc gives them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#include "layout.h"
#include "verifier.h"
#include "walk/unwind.h"
#include "walk/scratch.h"

struct stack {
	u64 ip, sp, bp;
	u32 exact, layout;
	u64 base, length;
};

static u64 *row_array, *index_array, row_count, index_count, outcomes[WALK_OUTCOMES];
static struct layout *layout_array;
static u64 layout_count;
static struct stack stack;
static u8 memory[131072];
static struct path told;

static long bpf_probe_read_user(void *to, u64 size, const void *from)
{
	u64 at = (u64)from - stack.base;

	if ((u64)from < stack.base || at + size > stack.length)
		return -14;
	memcpy(to, memory + at, size);
	return 0;
}

/* Of another thread than the current one. */
static long bpf_copy_from_user_task(void *to, u64 size, const void *from, void *task, u64 flags)
{
	(void)task, (void)flags;
	return bpf_probe_read_user(to, size, from);
}

static void bpf_probe_read_kernel(void *to, u64 size, const void *from)
{
	memcpy(to, from, size);
}

static u64 bpf_get_current_pid_tgid(void)
{
	return 1;
}

static u64 *find_in_rows(u32 *key)
{
	return *key < row_count ? &row_array[*key] : NULL;
}

static u32 *find_in_index(u32 *key)
{
	return *key < index_count ? (u32 *)&index_array[*key] : NULL;
}

static struct layout *find_layout(u32 *key)
{
	return *key < layout_count ? &layout_array[*key] : NULL;
}

static u64 *find_outcome(u32 *key)
{
	return *key < WALK_OUTCOMES ? &outcomes[*key] : NULL;
}

static u64 *find_seen(u64 *key)
{
	(void)key;
	return NULL;
}

static int note_seen(u64 *key, u64 *value)
{
	(void)key, (void)value;
	return 0;
}

static int tell_path(struct path *path, u64 size, u64 flags)
{
	(void)flags;
	memcpy(&told, path, size);
	return 0;
}

static struct { u64 *(*lookup)(u32 *); } rows = { find_in_rows };
static struct { u32 *(*lookup)(u32 *); } page_index = { find_in_index };
static struct { struct layout *(*lookup)(u32 *); } layouts = { find_layout };
static struct { u64 *(*lookup)(u32 *); } walk_outcomes = { find_outcome };
static struct { u64 *(*lookup)(u64 *); int (*update)(u64 *, u64 *); } seen_paths = { find_seen, note_seen };
static struct { int (*ringbuf_output)(struct path *, u64, u64); } stacks = { tell_path };
#define atomic_add(where, what) ((where) += (what))

static void count_unsent(u32 which)
{
	(void)which;
}

/* No return address was replaced on the recorded stacks. */
static u64 newest_return(void *task)
{
	(void)task;
	return 0;
}

static u64 replaced_return(u64 *at, u64 sp)
{
	(void)at, (void)sp;
	return 0;
}

static struct thread thread;

static u32 this_process(void)
{
	return 0;
}

static u32 process_of(void *task)
{
	(void)task;
	return 0;
}

static void *this_task(void)
{
	return NULL;
}

static struct thread *find_thread(void *task)
{
	(void)task;
	return &thread;
}

static struct thread *find_other_thread(void *task)
{
	return find_thread(task);
}

#include "arch.h"
#include "walk/stack_window.h"
#include "walk/lookup.h"
#include "walk/walk.h"

static void read_whole(void *to, u64 size)
{
	if (size && fread(to, size, 1, stdin) != 1)
		exit(1);
}

static void *read_array(u64 *count, u64 size)
{
	void *array;

	read_whole(count, 8);
	array = malloc(*count * size + 1);
	read_whole(array, *count * size);
	return array;
}

int main(void)
{
	static struct walk walk;
	unsigned walks = 0; /* programs on calls pass what is known of the thread, samplers do not; looks pass the thread */

	row_array = read_array(&row_count, 8);
	index_array = read_array(&index_count, 8);
	layout_array = read_array(&layout_count, sizeof(struct layout));
	while (fread(&stack, sizeof(stack), 1, stdin) == 1) {
		if (stack.length > sizeof(memory))
			return 1;
		read_whole(memory, stack.length);
		memset(&thread, 0, sizeof(thread));
		walk.ip = stack.ip;
		walk.sp = stack.sp;
		walk.fp = stack.bp;
		walk.exact = stack.exact;
		walk.open = 0;
		walk.entry = 0;
		take_path_of(walks % 3 ? NULL : &walk, &walk, walks % 3 == 1 ? &thread : NULL, stack.layout, claim(&walk));
		walks++;
		printf("%u", walk.path.outcome);
		for (int i = 0; i < walk.path.count; i++)
			printf(" %llx", (unsigned long long)walk.path.address[i]);
		printf("\n");
	}
	return 0;
}
