// Under seccomp's strict mode, in which any system call but read, write and its own end kills the process.
// The kernel forbids the time stamp counter there as well, and with it every clock: the target counts.
// It is confined before it is watched, or with LATE once probes are on it.
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/seccomp.h>

#include "steps.h"

enum { CALLS = 1500, INNER = 20000, REST = 2000000 };

static volatile long outer_calls, inner_calls;

static void count_to(int most)
{
    for (volatile int i = 0; i < most; i++)
        ;
}

FUNCTION void inner(void)
{
    inner_calls++;
    count_to(INNER);
    KEEP_FRAME();
}

FUNCTION void outer(void)
{
    outer_calls++;
    inner();
    KEEP_FRAME();
}

static void confine(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        _exit(9);
}

int main(void)
{
    char line[200];
#ifndef LATE
    confine();
#endif
    await_line();
#ifdef LATE
    confine();
#endif
    for (int i = 0; i < CALLS; i++) {
        outer();
        count_to(REST);
    }
    int length = snprintf(line, sizeof(line), "{\"outer\": %ld, \"inner\": %ld}\n", outer_calls, inner_calls);
    if (write(1, line, (size_t)length) != length)
        syscall(SYS_exit, 8);
    await_line();
    syscall(SYS_exit, 12); // exit_group is not allowed
    return 0;
}
