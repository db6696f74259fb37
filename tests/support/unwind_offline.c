/* For tests: unwinds dumped stacks (stackdump.bpf.c) with elfutils' libdw, which shares no code with specmine.
 *
 * Records on stdin; for each one line on stdout: how the walk ended, then the program counters in hex. The process
 * must still live when its first record comes, since its mappings are read from /proc. Debug files are not asked:
 * the unwind information is that of the files that are mapped.
 *
 * cc -O2 -o unwind_offline unwind_offline.c -ldw -lelf
 */
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 64 /* MAX_FRAMES */
#define BYTES 131072
#define DEEPEST 256

struct dump {
	uint32_t tgid, tid, sampled, outcome, count, pages;
	uint64_t base, regs[17], address[FRAMES];
	uint8_t stack[BYTES];
};

static struct dump record;
static int depth;
static Dwarf_Addr found[DEEPEST];
static bool outside; /* an address was needed that the dump does not hold */

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	(void)dwfl, (void)arg;
	uint64_t at = address - record.base;

	if (address < record.base || at + 8 > BYTES || !(record.pages >> at / 4096 & 1) ||
	    !(record.pages >> (at + 7) / 4096 & 1)) {
		outside = true;
		return false;
	}
	memcpy(result, record.stack + at, 8);
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl, (void)arg;
	if (*thread_arg)
		return 0;
	*thread_arg = &record;
	return record.tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid, (void)arg;
	*thread_arg = &record;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	return dwfl_thread_state_registers(thread, 0, 17, record.regs);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	Dwarf_Addr pc;

	(void)arg;
	if (!dwfl_frame_pc(frame, &pc, NULL) || depth == DEEPEST)
		return DWARF_CB_ABORT;
	found[depth++] = pc;
	return DWARF_CB_OK;
}

static int no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word crc, char **path)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)path;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};
static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

struct process {
	pid_t pid;
	Dwfl *dwfl;
	struct process *next;
};
static struct process *processes;

static Dwfl *opened(pid_t pid)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	dwfl_report_begin(dwfl);
	if (dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    !dwfl_attach_state(dwfl, NULL, pid, &thread_callbacks, NULL)) {
		dwfl_end(dwfl);
		return NULL;
	}
	return dwfl;
}

static Dwfl **of_process(pid_t pid)
{
	struct process *p;

	for (p = processes; p; p = p->next)
		if (p->pid == pid)
			return &p->dwfl;
	p = calloc(1, sizeof(*p));
	p->pid = pid;
	p->dwfl = opened(pid);
	p->next = processes;
	processes = p;
	return &p->dwfl;
}

static bool read_whole(void *buffer, size_t size)
{
	size_t have = 0;
	ssize_t got;

	while (have < size) {
		got = read(0, (char *)buffer + have, size - have);
		if (got <= 0)
			return false;
		have += got;
	}
	return true;
}

int main(void)
{
	while (read_whole(&record, sizeof(record))) {
		Dwfl **dwfl = of_process(record.tgid);
		const char *end = "no-process";
		int i;

		if (*dwfl && !dwfl_addrmodule(*dwfl, record.regs[16])) { /* a library came since */
			dwfl_end(*dwfl);
			*dwfl = opened(record.tgid);
		}
		depth = 0;
		outside = false;
		if (*dwfl)
			end = dwfl_getthread_frames(*dwfl, record.tid, on_frame, NULL) ? dwfl_errmsg(-1) : "end";
		if (outside) /* libdw takes a return address that it cannot read for the end */
			end = "outside";
		for (const char *c = end; *c; c++)
			putchar(*c == ' ' ? '-' : *c);
		for (i = 0; i < depth; i++)
			printf(" %" PRIx64, (uint64_t)found[i]);
		putchar('\n');
		fflush(stdout);
	}
	return 0;
}
