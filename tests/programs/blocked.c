// One call of top() in four waits, for what the first argument says. The program knows how long these calls took by its
// own clock, and for how long they were blocked in the functions in which they wait. SIGUSR1 has it begin to measure anew.
//
//     blocked lock|file|pipe|socket|sleep|poll|fault|nested|two|recursion|none [SECONDS]
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bounded.h"

#define PART_NS 1500000
#define PAGE 4096UL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wanted, held;
static volatile sig_atomic_t anew;
static int ends[2], file, faults, accounts;
static volatile char *page;
static const char *mode;
static uint64_t calls, slow_calls, whole, in_place, in_other;

// The clock less the thread's time on a CPU and that for which it was runnable: the difference of two of these is the
// time for which it was blocked.
static uint64_t blocked_ns(void)
{
    char text[64] = "";
    unsigned long runnable = 0;
    struct timespec t;
    if (pread(accounts, text, sizeof text - 1, 0) > 0)
        sscanf(text, "%*u %lu", &runnable);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return now_ns() - ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) - runnable;
}

// Another thread: gives what top() waits for, a while after it was wanted.
static void *giver(void *unused)
{
    struct uffdio_zeropage zero = {.mode = 0};
    for (;;) { // to the end: who waits for a page cannot be interrupted
        if (!strcmp(mode, "lock") || !strcmp(mode, "two")) {
            pthread_mutex_lock(&mutex);
            held = 1;
            sleep_ns(PART_NS);
            held = 0;
            pthread_mutex_unlock(&mutex);
            sleep_ns(2 * PART_NS);
            continue;
        }
        if (!wanted) {
            sleep_ns(50000);
            continue;
        }
        wanted = 0;
        sleep_ns(PART_NS);
        if (!strcmp(mode, "fault")) {
            zero.range.start = (uintptr_t)page;
            zero.range.len = PAGE;
            ioctl(faults, UFFDIO_ZEROPAGE, &zero);
        } else if (write(ends[1], "x", 1) < 0) {
            return unused;
        }
    }
}

FUNCTION void take_lock(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    KEEP_FRAME();
}

FUNCTION void save(void)
{
    static char data[65536];
    data[0]++;
    if (pwrite(file, data, sizeof data, 0) < 0 || fsync(file)) {
        if (!stop)
            abort();
    }
    KEEP_FRAME();
}

FUNCTION void receive(void)
{
    char byte;
    wanted = 1;
    if (read(ends[0], &byte, 1) < 0 && !stop)
        abort();
    KEEP_FRAME();
}

FUNCTION void nap(void) { sleep_ns(PART_NS); KEEP_FRAME(); }
FUNCTION void watch_nothing(void) { poll(NULL, 0, 2); KEEP_FRAME(); }

FUNCTION void touch(void)
{
    madvise((void *)page, PAGE, MADV_DONTNEED);
    wanted = 1;
    *page = 1;
    KEEP_FRAME();
}

FUNCTION void two(void) { nap(); KEEP_FRAME(); }
FUNCTION void one(void) { two(); KEEP_FRAME(); }

FUNCTION void descend(int depth)
{
    if (depth)
        descend(depth - 1);
    else
        nap();
    KEEP_FRAME();
}

static void wait_for_it(void)
{
    uint64_t before = blocked_ns();
    if (!strcmp(mode, "lock"))
        take_lock();
    else if (!strcmp(mode, "file"))
        save();
    else if (!strcmp(mode, "pipe") || !strcmp(mode, "socket"))
        receive();
    else if (!strcmp(mode, "sleep"))
        nap();
    else if (!strcmp(mode, "poll"))
        watch_nothing();
    else if (!strcmp(mode, "fault"))
        touch();
    else if (!strcmp(mode, "nested"))
        one();
    else if (!strcmp(mode, "recursion"))
        descend(4);
    else if (!strcmp(mode, "two"))
        take_lock();
    else
        spin_ns(PART_NS);
    in_place += blocked_ns() - before;
    if (!strcmp(mode, "two")) {
        before = blocked_ns();
        nap();
        in_other += blocked_ns() - before;
    }
}

FUNCTION void top(int is_slow)
{
    spin_ns(20000);
    if (is_slow)
        wait_for_it();
    KEEP_FRAME();
}

static void on_anew(int number) { anew = number; }

static int prepare(void)
{
    pthread_t thread;

    if (!strcmp(mode, "pipe") && pipe(ends))
        return 1;
    if (!strcmp(mode, "socket") && socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    if (!strcmp(mode, "file")) {
        char name[] = "blocked-XXXXXX"; // in the working directory: /tmp may be in memory
        if ((file = mkstemp(name)) < 0 || unlink(name))
            return 1;
    }
    if (!strcmp(mode, "fault")) {
        struct uffdio_api api = {.api = UFFD_API};
        struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        area.range.start = (uintptr_t)page;
        area.range.len = PAGE;
        if ((faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC)) < 0 || ioctl(faults, UFFDIO_API, &api) ||
            ioctl(faults, UFFDIO_REGISTER, &area))
            return 1;
    }
    return pthread_create(&thread, NULL, giver, NULL);
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "sleep";
    bounded(argc - 1, argv + 1);
    signal(SIGUSR1, on_anew);
    accounts = open("/proc/thread-self/schedstat", O_RDONLY);
    if (prepare()) {
        perror("blocked");
        return 2;
    }
    for (; !stop; calls++) {
        if (anew)
            anew = 0, slow_calls = whole = in_place = in_other = 0;
        int is_slow = calls % 4 == 0;
        while (is_slow && !stop && !held && (!strcmp(mode, "lock") || !strcmp(mode, "two")))
            sleep_ns(20000);
        uint64_t before = now_ns();
        top(is_slow);
        if (is_slow) {
            slow_calls++;
            whole += now_ns() - before;
        }
        sleep_ns(100000);
    }
    printf("{\"calls\": %lu, \"slow\": %lu, \"whole\": %lu, \"place\": %lu, \"other\": %lu}\n", calls, slow_calls, whole,
           in_place, in_other);
    return 0;
}
