// A program that debugs itself: its child works under ptrace, and the parent works, too. Only the parent may be probed.
// A trap in the child that the parent did not set would be a breakpoint of somebody else's.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "steps.h"

static volatile long outer_calls, inner_calls;
static volatile sig_atomic_t ended;

FUNCTION void inner(int number)
{
    inner_calls++;
    if (number % 4 == 0)
        pause_us(100);
    KEEP_FRAME();
}

FUNCTION void outer(int number)
{
    outer_calls++;
    inner(number);
    inner(number + 1);
    KEEP_FRAME();
}

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

static void child(void)
{
    signal(SIGTERM, on_end);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(9);
    raise(SIGSTOP);
    for (int i = 0; !ended; i++) {
        outer(i);
        pause_us(550);
    }
    _exit(outer_calls > 10 && inner_calls == 2 * outer_calls ? 3 : 4);
}

// Let the child go on; returns true once it has ended, with its status.
static int go_on(pid_t pid, int wait_flags, int *status, long *traps)
{
    while (waitpid(pid, status, wait_flags) == pid) {
        if (!WIFSTOPPED(*status))
            return 1;
        int number = WSTOPSIG(*status);
        *traps += number == SIGTRAP;
        ptrace(PTRACE_CONT, pid, NULL, (void *)(long)(number == SIGSTOP || number == SIGTRAP ? 0 : number));
    }
    return 0;
}

int main(void)
{
    int status = 0;
    long traps = 0;
    pid_t pid = fork();
    if (!pid)
        child();
    await_line();
    for (int i = 0; i < 1500; i++) {
        outer(i);
        pause_us(550);
        if (go_on(pid, WNOHANG, &status, &traps))
            break;
    }
    kill(pid, SIGTERM);
    while (!go_on(pid, 0, &status, &traps))
        ;
    printf("{\"outer\": %ld, \"inner\": %ld, \"traps\": %ld, \"child\": %d}", outer_calls, inner_calls, traps,
           WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    said();
    return 12;
}
