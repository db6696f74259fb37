/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Ids of processes, as user space knows them.
 *
 * The kernel counts by the host's ids. Where user space runs in a pid namespace of its own (PID_NAMESPACE is its inode),
 * a process has the id that it has there. One that is not in there has none: 0. Ids of threads are the host's everywhere,
 * since user space does not see them. */

#ifdef PID_NAMESPACE
#define PID_LEVELS 8 /* namespaces in each other that are looked through; the kernel allows 32 */

static inline __attribute__((always_inline)) u32 process_of(void *task)
{
	u64 leader = 0, pid = 0, namespace = 0, at;
	u32 level = 0, inode = 0, id = 0, i;

	bpf_probe_read_kernel(&leader, 8, task + TASK_LEADER);
	bpf_probe_read_kernel(&pid, 8, (void *)leader + TASK_THREAD_PID);
	bpf_probe_read_kernel(&level, 4, (void *)pid + PID_LEVEL);
#pragma clang loop unroll(disable)
	for (i = 1; i < PID_LEVELS; i++) { /* the host's is level 0 */
		if (i > level)
			break;
		at = pid + PID_NUMBERS + i * UPID_SIZE;
		bpf_probe_read_kernel(&namespace, 8, (void *)at + UPID_NAMESPACE);
		bpf_probe_read_kernel(&inode, 4, (void *)namespace + NAMESPACE_INODE);
		if (inode == PID_NAMESPACE) {
			bpf_probe_read_kernel(&id, 4, (void *)at + UPID_NUMBER);
			break;
		}
	}
	return id;
}

static inline __attribute__((always_inline)) u32 this_process(void)
{
	return process_of((void *)bpf_get_current_task());
}
#else
static inline __attribute__((always_inline)) u32 process_of(void *task)
{
	u32 id = 0;

	bpf_probe_read_kernel(&id, 4, task + TASK_TGID);
	return id;
}

static inline __attribute__((always_inline)) u32 this_process(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}
#endif
