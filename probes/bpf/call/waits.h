/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Waits of the timed calls of one function: where, in which system call, for what kind of object.
 *
 * Only in short phases, since all threads of the host pass the switch tracepoint. Of a system call its number is read,
 * and of the descriptor in its first argument the kind of object; never a name or content. */

#define OBJECT_KNOWN 32    /* the rest of the number is valid */
#define OBJECT_NAMELESS 16 /* no file of any file system: eventfd, timerfd, epoll, io_uring */
#define NAMELESS_INODE (1 << 19) /* S_ANON_INODE, from 6.16 on; before, such an inode has no type */

static inline __attribute__((always_inline)) u64 word_at(u64 where)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, 8, (void *)where);
	return value;
}

/* The kind of object of a descriptor: the type of its inode, as in the upper four bits of st_mode; 0: not known. */
static inline __attribute__((always_inline)) u32 object_of(u64 thread, u64 descriptor)
{
#ifdef DESCRIPTORS
	u64 table = word_at(word_at(thread + TASK_FILES) + FILES_TABLE), inode;
	u32 size = 0, flags = 0;
	u16 mode = 0;

	bpf_probe_read_kernel(&size, 4, (void *)table + TABLE_SIZE);
	if (descriptor >= size)
		return 0;
	inode = word_at(word_at(word_at(table + TABLE_FILES) + 8 * descriptor) + FILE_INODE);
	if (!inode)
		return 0;
	bpf_probe_read_kernel(&mode, 2, (void *)inode + INODE_MODE);
	bpf_probe_read_kernel(&flags, 4, (void *)inode + INODE_FLAGS);
	return OBJECT_KNOWN | mode >> 12 | (flags & NAMELESS_INODE ? OBJECT_NAMELESS : 0);
#else
	return 0;
#endif
}

/* When the call of the followed function began that the current thread is in; 0: it is in none. An open call whose
 * frame lies below the stack pointer was left without a return. */
static inline __attribute__((always_inline)) u64 followed_since(u32 followed, u64 sp)
{
	struct thread *t = find_thread(this_task());
	struct open_call *o;
	u64 at;
	u32 i;

	if (!t)
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_OPEN; i++) {
		at = i;
		if (at >= t->depth)
			break;
		o = &t->open[at];
		if (((u32)o->cookie & COOKIE_IDENTITY) == followed)
			return o->sp >= sp ? o->start : 0;
	}
	return 0;
}

/* How long a thread that is about to run has been runnable: that is no part of its wait. */
static inline __attribute__((always_inline)) u64 queued_ns(u64 next)
{
#ifdef WAITING
	u64 queued = word_at(next + TASK_QUEUED), clock;

	if (!queued)
		return 0;
	clock = word_at(word_at(word_at(next + TASK_CFS_RQ) + CFS_RQ_RQ) + RQ_CLOCK);
	return clock > queued ? clock - queued : 0;
#else
	return 0;
#endif
}

static inline __attribute__((always_inline)) void add_call_wait(struct wait *ended, u64 next, u64 now)
{
	u64 took = now - ended->start, queued = queued_ns(next);
	struct sample_value *v, fresh = {};
	struct call_wait key = {};

	took = took > queued ? took - queued : 0;
	key.path = ended->path;
	key.cookie = ended->cookie;
	key.call = ended->call;
	key.object = ended->object;
	key.bucket = bucket_of(now - ended->begun);
	key.waker_call = ended->waker_call;
	key.waker = ended->waker;
	key.waker_path = ended->waker_path;
	v = call_waits.lookup(&key);
	if (v) {
		atomic_add(v->count, ended->call_weight);
		atomic_add(v->ns, took * ended->call_weight);
		return;
	}
	fresh.count = ended->call_weight;
	fresh.ns = took * ended->call_weight;
	call_waits.update(&key, &fresh);
}
