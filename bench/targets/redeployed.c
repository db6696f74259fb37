// A service that is deployed again: it works, and counts its own calls in a file.
//
//     redeployed FILE [WORKERS]
//
// SIGTERM ends it. SIGHUP: it executes its own path again. SIGUSR1: it replaces its workers one by one.
// The number of calls of work() of all its processes is in FILE, 8 bytes. Built with -DPROGRAM and with -DLIBRARY, work() is in a
// library.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "bounded.h"

enum { WORK_NS = 60000, REST_NS = 4000000, MOST = 16 };

#ifdef PROGRAM
void work(void);
#else
__attribute__((noinline, noclone)) void work(void)
{
    spin_ns(WORK_NS);
    KEEP_FRAME();
}
#endif

#ifndef LIBRARY
static volatile sig_atomic_t again, replace;
static unsigned long *calls;

static void on_signal(int number)
{
    if (number == SIGHUP)
        again = 1;
    else
        replace = 1;
}

static unsigned long *counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, sizeof(unsigned long)))
        _exit(9);
    void *page = mmap(NULL, sizeof(unsigned long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        _exit(9);
    return page;
}

static void call(void)
{
    work();
    __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
    sleep_ns(REST_NS);
}

static pid_t worker(void)
{
    pid_t child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    while (!stop)
        call();
    _exit(0);
}

static void end(pid_t child)
{
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    unsigned long workers = argument(argc, argv, 2, 0);
    pid_t children[MOST];
    char *life[] = {argv[0], "3600", NULL};
    bounded(2, life);
    calls = counter(argv[1]);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); // it executed itself in a handler's mask
    signal(SIGHUP, on_signal);
    signal(SIGUSR1, on_signal);
    for (unsigned long i = 0; i < workers; i++)
        children[i] = worker();
    while (!stop && !again) {
        if (workers)
            sleep_ns(REST_NS);
        else
            call();
        for (unsigned long i = 0; replace && i < workers; i++) {
            end(children[i]);
            children[i] = worker();
        }
        replace = 0;
    }
    for (unsigned long i = 0; i < workers; i++)
        end(children[i]);
    if (!stop)
        execv(argv[0], argv);
    return stop ? 0 : 8;
}
#endif
